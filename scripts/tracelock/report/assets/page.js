/* The page of a trace: reads what lies in it, fills the views, goes from findings to places. */
const page = { timeline: null, number: 0 };

function buildViews(about, rows) {
  const find = (id) => document.getElementById(id);
  if (page.timeline) page.timeline.watch.disconnect();
  page.timeline = new Timeline(find("timeline-view"), about.timeline, rows);
  const open = (name) => page.timeline.prove(name, null, 0);
  for (const box of document.querySelectorAll("[data-table]")) {
    const tables = about.tables[box.dataset.table];
    if (tables) new TableView(box, box.dataset.name, tables, box.dataset.open === "yes" ? open : null);
  }
  new FlameView(find("flame-view"), about.flames);
  memorySection(find("memory-view"), about.memory, about.timeline.marked ? about.timeline.steps : [], open);
}
async function show(number) {
  page.number = number;
  const [document_, rows] = await Promise.all([inflated(`about-${number}`), inflated(`rows-${number}`)]);
  if (page.number !== number) return;
  buildViews(JSON.parse(new TextDecoder().decode(document_)), rows);
  document.querySelectorAll("[data-file]").forEach((each) => { each.hidden = each.dataset.file !== String(number); });
}
function listen() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-at], [data-step]");
    if (!button) return;
    const file = button.closest("[data-file]");
    if (file && Number(file.dataset.file) !== page.number) await show(Number(file.dataset.file));
    if (button.dataset.step) { page.timeline.goStep(Number(button.dataset.step)); page.timeline.prove(null, null, 0); return; }
    const start = button.dataset.at === "" ? null : Number(button.dataset.at);
    page.timeline.prove(button.dataset.row || null, start, Number(button.dataset.for || 0));
  });
  document.querySelectorAll("figure[data-figure]").forEach((figure) => {
    figure.querySelector("figcaption").append(" ", svgButton(figure.dataset.figure, () => figure.querySelector("svg")));
  });
  const choose = document.getElementById("choose-file");
  if (choose) choose.addEventListener("change", () => show(Number(choose.value)));
}
async function start() {
  document.documentElement.classList.add("live");
  try {
    listen();
    await show(0);
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    const why = document.getElementById("no-views");
    why.hidden = false;
    why.append(` (${error.message})`);
    document.documentElement.classList.remove("live");
  }
}
start();
