/* A study that can be asked: variants sorted and filtered with every run a point, two of them side by side, effects. */
SHOWN.ratio = (value) => (value === null || value === undefined ? UNKNOWN : `×${value.toFixed(value < 0.1 ? 3 : 2)}`);

class Study {
  constructor(place, about) {
    Object.assign(this, { place, about, chosen: [], only: about.factors.map(() => ""), order: "time", words: "", shown: 40 });
    const base = about.cases.findIndex((each) => each.baseline), timed = about.cases.map((each, at) => at).filter((at) => about.cases[at].time);
    const best = timed.sort((a, b) => about.cases[a].time[0] - about.cases[b].time[0])[0];
    this.chosen = base >= 0 && best !== undefined && best !== base ? [base, best] : [];
    this.build();
  }
  build() {
    const { about } = this, tools = h("div", { class: "tools" }), redraw = () => this.draw();
    about.factors.forEach((factor, at) => {
      const values = [...new Set(about.cases.map((each) => each.factors[at]))];
      if (values.length < 2) return;
      tools.append(h("label", {}, `${factor} `, h("select", { on: { change: (event) => { this.only[at] = event.target.value; redraw(); } } }, h("option", { value: "" }, "all"), values.map((value) => h("option", { value: `=${value}` }, value)))));
    });
    const type = later((event) => { this.words = event.target.value.toLowerCase(); redraw(); }, 120);
    tools.append(h("label", {}, "Filter ", h("input", { type: "search", size: 16, placeholder: "setting, finding, verdict …", on: { input: type } })));
    const orders = { time: `fastest first (${about.metric})`, study: "as in the study", memory: "least memory first", loading: "least waiting for data first" };
    tools.append(h("label", {}, "Order ", h("select", { on: { change: (event) => { this.order = event.target.value; redraw(); } } }, Object.entries(orders).map(([value, label]) => h("option", { value }, label)))));
    this.figure = s("svg", { class: "strip", role: "group", "aria-label": "Variants, every run a point" });
    tools.append(svgButton("variants", () => this.figure), h("button", { type: "button", class: "small", on: { click: () => this.save() } }, "CSV"));
    this.count = h("span", { class: "note", role: "status" });
    tools.append(this.count);
    this.more = h("button", { type: "button", on: { click: () => { this.shown *= 5; redraw(); } } }, "Show more");
    this.pair = h("div", { class: "pair", "aria-live": "polite" });
    this.effects = h("div", {});
    this.place.replaceChildren(tools, h("p", { class: "note" }, `Circles: runs, by ${about.metric}; mark and bar: median and interval. Choose two variants (click, or Enter on one) to see what changed.`), this.figure, this.more, this.pair, this.effects);
    new ResizeObserver(later(redraw, 80)).observe(this.place);
    this.draw();
    this.compare();
    this.tellEffects();
  }
  rows() {
    const { about } = this, keys = { time: (each) => (each.time ? each.time[0] : null), memory: (each) => each.peak, loading: (each) => each.loading };
    const found = about.cases.map((each, at) => at).filter((at) => {
      const each = about.cases[at];
      return this.only.every((value, factor) => value === "" || value === `=${each.factors[factor]}`) && `${each.label} ${each.finding} ${each.verdict}`.toLowerCase().includes(this.words);
    });
    const key = keys[this.order];
    if (key) found.sort((a, b) => { const x = key(about.cases[a]), y = key(about.cases[b]); return x === null ? (y === null ? a - b : 1) : y === null ? -1 : x - y || a - b; });
    return found;
  }
  draw() {
    const rows = this.rows(), shown = rows.slice(0, this.shown), width = Math.max(300, this.place.clientWidth), narrow = width < 640, row = narrow ? 42 : 24;
    const left = narrow ? 8 : Math.min(340, width * 0.36), right = narrow ? 70 : 210, all = shown.flatMap((at) => this.times(at));
    const low = Math.min(...all) * 0.98, high = Math.max(...all) * 1.02, x = (time) => left + ((time - low) / (high - low || 1)) * (width - left - right);
    const marks = [];
    for (let part = 0; part <= 3 && all.length; part++) {
      const at = low + ((high - low) * part) / 3;
      marks.push(s("line", { class: "rule", x1: x(at), x2: x(at), y1: 16, y2: 20 + row * shown.length }), s("text", { class: "tick", x: x(at), y: 11, "text-anchor": part === 3 ? "end" : part ? "middle" : "start" }, asTime(at)));
    }
    shown.forEach((at, place) => marks.push(this.line(at, 20 + place * row, { x, row, width, left, right, narrow })));
    this.figure.setAttribute("viewBox", `0 0 ${width} ${28 + row * shown.length}`);
    this.figure.setAttribute("height", String(28 + row * shown.length));
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.case : undefined;
    this.figure.replaceChildren(...marks);
    if (focused !== undefined) { const again = this.figure.querySelector(`[data-case="${Number(focused)}"]`); if (again) again.focus(); }
    this.more.hidden = rows.length <= this.shown;
    this.count.textContent = `${shown.length} of ${this.about.cases.length} variants`;
  }
  times(at) { const each = this.about.cases[at]; return [...each.runs.map(([, time]) => time).filter((time) => time !== null), ...(each.time || [])]; }
  line(at, y, { x, row, width, left, right, narrow }) {
    const each = this.about.cases[at], place = this.chosen.indexOf(at), middle = y + row - 11;
    const act = () => this.choose(at);
    const told = each.time ? `${asTime(each.time[0])}${each.verdict ? `, ${each.verdict}` : ""}` : "no run has a result";
    const group = s("g", { class: `variant${place >= 0 ? " chosen" : ""}${each.baseline ? " base" : ""}`, tabindex: 0, role: "button", "aria-pressed": String(place >= 0), "data-case": at, "aria-label": `${fitted(each.label, 200)}: ${told}`, on: { click: act, keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } } } },
      s("rect", { class: "row", x: 0, y, width, height: row - 1 }), s("title", {}, `${fitted(each.label, 400)}: ${told}. ${fitted(each.finding, 300)}`));
    group.append(s("text", { class: "name", x: 6, y: narrow ? y + 14 : middle + 4 }, fitted(`${place >= 0 ? `${"AB"[place]} · ` : ""}${each.label || "(no factors)"}${each.baseline ? " · baseline" : ""}`, Math.floor((narrow ? width - 12 : left - 14) / 6.9))));
    for (const [, time] of each.runs) if (time !== null) group.append(s("circle", { class: "run", cx: x(time).toFixed(1), cy: middle, r: 3 }));
    if (each.time) {
      const [value, lowest, highest] = each.time;
      group.append(s("line", { class: "bar", x1: x(lowest).toFixed(1), x2: x(highest).toFixed(1), y1: middle, y2: middle }), s("rect", { class: "median", x: (x(value) - 1.5).toFixed(1), y: middle - 6, width: 3, height: 12 }));
    }
    const words = each.ratio ? `${SHOWN.ratio(each.ratio[0])}${narrow ? "" : ` ${each.verdict}`}` : each.baseline ? "baseline" : UNKNOWN;
    group.append(s("text", { class: "verdict", x: width - right + 12, y: middle + 4 }, fitted(words, Math.floor((right - 14) / 6.6))));
    return group;
  }
  choose(at) {
    const place = this.chosen.indexOf(at);
    if (place >= 0) this.chosen.splice(place, 1);
    else { if (this.chosen.length === 2) this.chosen.pop(); this.chosen.push(at); }
    this.draw();
    this.compare();
  }
  save() {
    const { about } = this, heads = ["environment", ...about.factors, "repeat", `${about.metric} (µs)`, "variant median (µs)", "low (µs)", "high (µs)", "verdict", "finding"];
    const rows = this.rows().flatMap((at) => { const each = about.cases[at]; return each.runs.map(([repeat, time]) => [each.environment, ...each.factors, repeat, time, ...(each.time || [null, null, null]), each.verdict, each.finding]); });
    download("variants.csv", "text/csv", csv([heads, ...rows]));
  }
  compare() {
    if (this.chosen.length < 2) { this.pair.replaceChildren(h("p", { class: "note" }, "Fewer than two variants are chosen.")); return; }
    const { about } = this, [a, b] = this.chosen.map((at) => about.cases[at]);
    const parts = [h("h3", {}, "What changed from A to B"), h("p", {}, h("strong", {}, "A "), h("span", { class: "id" }, a.label || "(no factors)"), h("br"), h("strong", {}, "B "), h("span", { class: "id" }, b.label || "(no factors)"))];
    if (a.time && b.time) {
      const judged = a.baseline && a.environment === b.environment ? b.verdict : "";
      parts.push(h("p", {}, `${about.metric}: ${asTime(a.time[0])} to ${asTime(b.time[0])}, ${SHOWN.ratio(b.time[0] / a.time[0])}. `, judged ? `Against the baseline: ${judged}.` : "The study judges variants against the baseline of their environment; these two are shown side by side without a verdict."));
    }
    const names = [...new Set([...Object.keys(a.settings), ...Object.keys(b.settings)])].filter((name) => a.settings[name] !== b.settings[name]);
    const settings = names.map((name) => [name, a.settings[name] ?? null, b.settings[name] ?? null]);
    if (a.environment !== b.environment) settings.unshift(["environment", a.environment, b.environment]);
    if (a.settings.batch_size !== b.settings.batch_size) parts.push(h("p", { class: "note" }, "Their steps hold different numbers of samples: times of a step below are not per sample."));
    if (a.environment !== b.environment) parts.push(h("p", { class: "note" }, "Packages and machines of both environments: ", h("a", { href: "#measured" }, "how it was measured"), "."));
    const boxes = [["Settings", { label: "settings", columns: [["setting", "code"], ["A", "code"], ["B", "code"]], rows: settings, note: settings.length ? "" : "All settings are equal." }],
      ["Where the step goes", this.partTable(a.breakdown, b.breakdown, about.parts, "time")],
      ["Why the device is idle (shares of the profiled time)", this.partTable(a.idle, b.idle, about.causes, "share")],
      ["Operators", this.operatorTable(a, b)],
      ["Kernels", this.kernelTable(a, b)]];
    for (const [title, table] of boxes) {
      if (!table) continue;
      const box = h("div", {});
      parts.push(h("h4", {}, title), box);
      new TableView(box, `A to B, ${title}`, [table], null);
    }
    this.pair.replaceChildren(...parts);
  }
  /** Whether a difference is large enough for parts of it to mean anything. */
  differs(difference, whole) { return Math.abs(difference) >= 0.02 * Math.abs(whole || 1); }
  partTable(a, b, words, kind) {
    if (!a || !b) return null;
    const whole = a.reduce((sum, value, at) => sum + b[at] - value, 0);
    const told = kind === "time" && this.differs(whole, a.reduce((sum, value) => sum + value, 0));
    const rows = words.map((word, at) => [word, a[at], b[at], b[at] - a[at], told ? (b[at] - a[at]) / whole : null]).filter((row) => row[1] || row[2]).sort((x, y) => Math.abs(y[3]) - Math.abs(x[3]));
    const columns = [["part", "text"], ["A", kind], ["B", kind], ["B − A", kind]];
    if (kind === "time") columns.push(["of the difference", "share"]);
    return { label: "parts", columns, rows: rows.map((row) => row.slice(0, columns.length)), note: kind === "time" ? "From the profiled steps, exclusive parts; they sum to the step." : "" };
  }
  operatorTable(a, b) {
    if (!a.operators.length || !b.operators.length) return null;
    const cost = ([, , host, device]) => host + (device || 0), from = new Map(a.operators.map((row) => [row[0], row])), to = new Map(b.operators.map((row) => [row[0], row]));
    const whole = (b.profiled ?? 0) - (a.profiled ?? 0), rows = [];
    for (const name of new Set([...from.keys(), ...to.keys()])) {
      const x = from.get(name), y = to.get(name), change = (y ? cost(y) : 0) - (x ? cost(x) : 0);
      rows.push([this.about.names[name], x ? y ? "both" : "A alone" : "B alone", x ? x[1] : null, y ? y[1] : null, x ? cost(x) : null, y ? cost(y) : null, change, this.differs(whole, a.profiled) ? change / whole : null]);
    }
    rows.sort((x, y) => Math.abs(y[6]) - Math.abs(x[6]));
    return { label: "operators", columns: [["operator", "code"], ["in", "text"], ["calls A", "count"], ["calls B", "count"], ["own time A", "time"], ["own time B", "time"], ["B − A", "time"], ["of the step's difference", "share"]], rows, note: "A profiled step: own time on the host and on the device together. Of each variant the 60 most expensive operators are here; “alone” means that the other's 60 do not hold it." };
  }
  /** Kernels by what they are without a build's additions to their names, so that one that only changed its name is no other. */
  kernelTable(a, b) {
    if (!a.kernels.length && !b.kernels.length) return null;
    const { names } = this.about, whole = (b.profiled ?? 0) - (a.profiled ?? 0), rows = [];
    const gathered = ({ kernels }) => kernels.reduce((found, [name, same, calls, time]) => {
      const one = found.get(same) || { names: [], calls: 0, time: 0 };
      one.names.push(names[name]); one.calls += calls; one.time += time;
      return found.set(same, one);
    }, new Map());
    const from = gathered(a), to = gathered(b);
    for (const same of new Set([...from.keys(), ...to.keys()])) {
      const x = from.get(same), y = to.get(same), change = (y?.time ?? 0) - (x?.time ?? 0), told = [...new Set([...(x?.names ?? []), ...(y?.names ?? [])])];
      rows.push([told.length === 1 ? told[0] : `${names[same]} (${told.length} names)`, x ? y ? "both" : "gone in B" : "new in B", x?.calls ?? null, y?.calls ?? null, x?.time ?? null, y?.time ?? null, change, this.differs(whole, a.profiled) ? change / whole : null]);
    }
    rows.sort((x, y) => Math.abs(y[6]) - Math.abs(x[6]));
    return { label: "kernels", columns: [["kernel", "code"], ["in", "text"], ["calls A", "count"], ["calls B", "count"], ["time A", "time"], ["time B", "time"], ["B − A", "time"], ["of the step's difference", "share"]], rows, note: "A profiled step. Names are matched without what a version or a build puts into them. Of each variant the 60 most expensive kernels are here; one that appeared or is gone may be among the cheaper ones of the other." };
  }
  tellEffects() {
    const parts = [];
    for (const [environment, { main, pairs, left }] of Object.entries(this.about.effects)) {
      if (!main.length) continue;
      const where = Object.keys(this.about.effects).length > 1 ? ` in ${environment}` : "", first = h("div", {}), second = h("div", {});
      parts.push(h("h3", {}, `What each factor does${where}`), first);
      new TableView(first, `effects${where}`, [{ label: "effects", columns: [["factor", "code"], ["value", "code"], ["against", "code"], ["time", "ratio"], ["least", "ratio"], ["most", "ratio"], ["contexts", "count"]], rows: main, note: "Time against the other value with all other factors equal: geometric mean over the contexts that were measured, and the least and the largest of them (not an uncertainty)." }], null);
      if (!pairs.length) continue;
      parts.push(h("h3", {}, `Factors that depend on each other${where}`), second);
      new TableView(second, `interactions${where}`, [{ label: "interactions", columns: [["both changed", "code"], ["measured", "ratio"], ["each alone would give", "ratio"], ["measured over that", "ratio"], ["contexts", "count"]], rows: pairs, left, note: "Near ×1: the factors act independently. Below: together they save more than each alone." }], null);
    }
    this.effects.replaceChildren(...parts);
  }
}
async function startStudy() {
  document.documentElement.classList.add("live");
  try {
    const about = JSON.parse(new TextDecoder().decode(await inflated("about-study")));
    window.study = new Study(document.getElementById("ask-view"), about);
    document.querySelectorAll("section#variants table, details table").forEach((table) => {
      const around = table.closest("details");
      if (table.closest("#ask-view")) return;
      if (!around || around.open) upgrade(table);
      else around.addEventListener("toggle", () => upgrade(table), { once: true });
    });
    document.querySelectorAll("figure[id^=figure-]").forEach((figure) => figure.querySelector("figcaption").append(" ", svgButton(figure.id, () => [...figure.querySelectorAll("svg")].find((each) => each.checkVisibility()) || figure.querySelector("svg"))));
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    document.documentElement.classList.remove("live");
    document.getElementById("ask-view").replaceChildren(h("p", { class: "notice" }, `This part could not be built (${error.message}); the rest of the page is as it should be.`));
  }
}
/** A table that stands in the page already: headings sort it, and a button saves it. */
function upgrade(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const said = (row, at) => row.cells[at] ? row.cells[at].textContent.trim().replace(/\s+/g, " ") : "";
  const size = (text) => { const found = /^[×]?(-?[\d,]+(?:\.\d+)?)\s*(s|ms|µs|ns|GB|MB|kB|B|%)?/.exec(text); return found ? Number(found[1].replaceAll(",", "")) * ({ s: 1e6, ms: 1e3, ns: 1e-3, GB: 1e9, MB: 1e6, kB: 1e3 }[found[2]] || 1) : null; };
  heads.forEach((head, at) => {
    let up = false;
    const turn = () => {
      const numbers = head.classList.contains("number") || [...body.rows].every((row) => size(said(row, at)) !== null);
      up = head.getAttribute("aria-sort") === null ? !numbers : !up;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => (numbers ? size(said(row, at)) : said(row, at));
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => (a === null ? (b === null ? 0 : 1) : b === null ? -1 : (typeof a === "string" ? a.localeCompare(b) : a - b) * (up ? 1 : -1)));
      body.append(...rows.map(([, row]) => row));
    };
    head.replaceChildren(h("button", { type: "button", class: "sort", on: { click: turn } }, ...head.childNodes));
  });
  const save = () => download("table.csv", "text/csv", csv([heads.map((head) => head.textContent.trim()), ...[...body.rows].map((row) => heads.map((_, at) => said(row, at)))]));
  (table.closest(".scroll") || table).before(h("button", { type: "button", class: "small csv", on: { click: save } }, "CSV"));
}
startStudy();
