/* The timeline as a person uses it: zoom, pan, hover, choose, search, keyboard; what is in view as a table. */
class Timeline {
  constructor(place, about, bytes) {
    this.place = place;
    this.about = about;
    this.lanes = new Lanes(about, bytes);
    this.painter = new Painter(this.lanes);
    const folded = new Set(this.lanes.list.filter((lane) => lane.kind === "python" || (lane.kind === "calls" && lane.n < 30 && this.lanes.list.length > 8)).map((lane) => lane.place));
    this.view = { low: about.span[0], high: about.span[1], folded, found: null, chosen: null, layout: layout(this.lanes, folded) };
    this.matches = [];
    this.build();
    this.listen();
    this.resize();
    if (about.typical !== null) this.goStep(about.typical); else this.go(about.span[0], about.span[1]);
  }
  build() {
    const tool = (label, title, act) => h("button", { type: "button", class: "small", title, "aria-label": title, on: { click: act } }, label);
    const { about } = this, tools = h("div", { class: "tools" });
    if (about.typical !== null && about.steps.length > 1) {
      tools.append(tool("Typical step", "Show the typical step", () => this.goStep(about.typical)));
      tools.append(tool("Slowest step", "Show the slowest step", () => this.goStep(about.slowest)));
      const options = about.steps.map(([name, , length], at) => h("option", { value: at }, `${name}, ${asTime(length)}`));
      this.stepBox = h("select", { on: { change: (event) => this.goStep(Number(event.target.value)) } }, options);
      tools.append(h("label", {}, "Step ", this.stepBox));
    }
    tools.append(tool("Whole", "Show the whole trace (0)", () => this.go(...about.span)), tool("+", "Zoom in (w)", () => this.zoom(0.5)), tool("−", "Zoom out (s)", () => this.zoom(2)));
    this.box = h("input", { type: "search", placeholder: "operator, kernel, frame …", size: 18, on: { input: later(() => this.search(this.box.value), 150), keydown: (event) => { if (event.key === "Enter") { event.preventDefault(); this.next(event.shiftKey ? -1 : 1); } } } });
    this.foundText = h("span", { class: "note", role: "status" });
    tools.append(h("label", {}, "Find ", this.box), tool("‹", "Previous match (p)", () => this.next(-1)), tool("›", "Next match (n)", () => this.next(1)), this.foundText);
    tools.append(tool("SVG", "Save this view as SVG", () => download("timeline.svg", "image/svg+xml", this.svg())));
    this.canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": "Timeline. Keys: w and s zoom, a and d move, n and p go through matches, 0 shows all, Enter tells of the row under the middle. What is in view stands as a table below." });
    this.spacer = h("div", { class: "spacer" });
    this.frame = h("div", { class: "timeline" }, this.canvas, this.spacer);
    this.overview = h("canvas", { class: "overview", "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.status = h("p", { class: "note", role: "status" });
    this.detail = h("div", { class: "detail", "aria-live": "polite" }, h("p", { class: "note" }, "Click a row to see what it is. Drag moves, Ctrl and wheel (or pinch) zooms, Shift and drag zooms into what is marked; with the keyboard w, s, a, d."));
    this.summary = h("div", {});
    this.summaryBox = h("details", { on: { toggle: () => this.tell() } }, h("summary", {}, "What is in view, as a table"), this.summary);
    const causes = about.lanes.some((lane) => lane.kind === "idle") ? about.causes.map((cause, at) => this.key(TINTS[IDLE_COLOR + at], `idle: ${cause}`, HATCHED.has(IDLE_COLOR + at))) : [];
    const kinds = [["sky", "operator"], ["green", "label"], ["yellow", "runtime call"], ["orange", "data loading"], ["vermilion", "communication"]];
    const device = about.lanes.some((lane) => lane.kind === "stream") ? [["blue", "kernel"], ["purple", "copy"]] : [];
    this.keys = h("p", { class: "keys" }, ...[...device, ...kinds].map(([tint, label]) => this.key(tint, label, false)), ...causes);
    this.place.replaceChildren(tools, this.overview, this.frame, this.tip, this.status, this.detail, this.keys, this.summaryBox);
  }
  key(tint, label, hatched) { return h("span", { class: "key" }, h("i", { class: `swatch t-${tint}${hatched ? " hatched" : ""}` }), label); }
  listen() {
    const { canvas, frame } = this;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); drag = { x: event.offsetX, y: event.clientY, low: this.view.low, high: this.view.high, top: frame.scrollTop, moved: false, mark: event.shiftKey }; });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) { this.hover(event); return; }
      const across = event.offsetX - drag.x;
      if (Math.abs(across) + Math.abs(event.clientY - drag.y) > 4) drag.moved = true;
      if (!drag.moved) return;
      this.tip.hidden = true;
      if (drag.mark) { this.draw(); this.painter.paint && this.mark(drag.x, event.offsetX); return; }
      const shift = (across / this.width) * (drag.high - drag.low);
      if (event.pointerType !== "touch") frame.scrollTop = drag.top - (event.clientY - drag.y);
      this.set(drag.low - shift, drag.high - shift);
    });
    canvas.addEventListener("pointerup", (event) => {
      const done = drag;
      drag = null;
      if (!done) return;
      if (!done.moved) this.click(event);
      else if (done.mark) { const [a, b] = [done.x, event.offsetX].sort((x, y) => x - y); this.set(this.time(a), this.time(b)); }
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.time(event.offsetX)));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) { event.preventDefault(); this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), this.time(event.offsetX)); }
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); this.pan(event.deltaX / this.width); }
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.press(event));
    frame.addEventListener("scroll", () => this.draw());
    const jump = (event) => { if (event.buttons) { const middle = this.about.span[0] + (event.offsetX / this.width) * (this.about.span[1] - this.about.span[0]), half = (this.view.high - this.view.low) / 2; this.set(middle - half, middle + half); } };
    this.overview.addEventListener("pointerdown", jump);
    this.overview.addEventListener("pointermove", jump);
    this.watch = new ResizeObserver(later(() => this.resize(), 40));
    this.watch.observe(this.place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.painter.theme(); this.draw(); });
    matchMedia("print").addEventListener("change", () => { this.painter.theme(); this.paint(); }); // paper is light
    for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => { this.painter.theme(); this.resize(); });
  }
  press(event) {
    const acts = { w: () => this.zoom(0.6), "+": () => this.zoom(0.6), s: () => this.zoom(1 / 0.6), "-": () => this.zoom(1 / 0.6), a: () => this.pan(-0.25), ArrowLeft: () => this.pan(-0.25), d: () => this.pan(0.25), ArrowRight: () => this.pan(0.25), ArrowDown: () => { this.frame.scrollTop += 48; }, ArrowUp: () => { this.frame.scrollTop -= 48; }, n: () => this.next(1), p: () => this.next(-1), 0: () => this.go(...this.about.span), Enter: () => this.chooseMiddle(), Escape: () => this.choose(null) };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }
  time(x) { return this.view.low + (x / this.width) * (this.view.high - this.view.low); }
  set(low, high) {
    const [first, last] = this.about.span, wide = Math.min(Math.max(high - low, 0.02), (last - first) * 1.1 || 1), room = (last - first) * 0.05;
    const from = Math.max(first - room, Math.min(low, last + room - wide));
    Object.assign(this.view, { low: from, high: from + wide });
    this.draw();
  }
  go(low, high) { const room = (high - low) * 0.02; this.set(low - room, high + room); }
  goStep(at) { const [, low, length] = this.about.steps[at]; if (this.stepBox) this.stepBox.value = String(at); this.go(low, low + length); }
  zoom(factor, around) {
    const { low, high } = this.view, at = around ?? (low + high) / 2;
    this.set(at - (at - low) * factor, at + (high - at) * factor);
  }
  pan(part) { const { low, high } = this.view; this.set(low + part * (high - low), high + part * (high - low)); }
  resize() {
    this.width = Math.max(200, this.place.clientWidth);
    this.view.layout = layout(this.lanes, this.view.folded);
    const wanted = AXIS + this.view.layout.height + 6;
    this.height = Math.min(wanted, Math.max(280, Math.round(innerHeight * 0.72)));
    this.frame.style.setProperty("block-size", `${this.height}px`);
    this.spacer.style.setProperty("block-size", `${Math.max(0, wanted - this.height)}px`);
    this.fit(this.canvas, this.width, this.height);
    this.fit(this.overview, this.width, 26);
    this.paint();
  }
  fit(canvas, width, height) {
    const ratio = Math.min(devicePixelRatio || 1, 2.5);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.setProperty("inline-size", `${width}px`);
    canvas.style.setProperty("block-size", `${height}px`);
    canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  draw() { if (!this.pending) { this.pending = true; requestAnimationFrame(() => { this.pending = false; this.paint(); }); } }
  paint() {
    const begun = performance.now();
    const told = this.painter.paint(new CanvasPen(this.canvas.getContext("2d")), this.view, this.width, this.height, this.frame.scrollTop);
    this.paintOverview();
    this.drawn = { ...told, ms: performance.now() - begun };
    const { resolution_us: resolution, rows, shown } = this.about;
    const merged = resolution ? ` This file holds ${asCount(shown)} of ${asCount(rows)} rows: neighbours shorter than ${asTime(resolution)} are merged and say how many they stand for${this.about.typical === null ? "" : ", but not in the typical and the slowest step"}.` : "";
    this.status.textContent = `${asTime(this.view.high - this.view.low)} in view: ${asCount(told.rows)} rows as ${asCount(told.marks)} marks; rows of one pixel are drawn as one.${merged}`;
    this.tellSoon = this.tellSoon || later(() => this.tell(), 250);
    this.tellSoon();
  }
  paintOverview() {
    const pen = new CanvasPen(this.overview.getContext("2d")), { colors } = this.painter, [first, last] = this.about.span, scale = this.width / (last - first || 1);
    pen.rect(0, 0, this.width, 26, colors.card, 1);
    this.about.steps.forEach(([, low, length], at) => pen.rect((low - first) * scale, 6, Math.max(0.5, length * scale - 0.5), 14, at === this.about.slowest && this.about.steps.length > 1 ? colors.orange : colors.sky, at % 2 ? 0.45 : 0.65));
    const x = (this.view.low - first) * scale, wide = Math.max(3, (this.view.high - this.view.low) * scale);
    pen.rect(x, 0, wide, 26, colors.accent, 0.18);
    pen.frame(x, 0, wide, 26, colors.accent);
  }
  mark(from, to) { this.paint(); new CanvasPen(this.canvas.getContext("2d")).rect(Math.min(from, to), AXIS, Math.abs(to - from), this.height, this.painter.colors.accent, 0.2); }
  svg() {
    const pen = new SvgPen(), height = AXIS + this.view.layout.height;
    this.painter.paint(pen, this.view, this.width, height, 0);
    return svgFile(s("svg", { viewBox: `0 0 ${this.width} ${height}`, width: this.width, height }, ...pen.marks));
  }
  /** What lies under a point of the canvas: a heading, or a row. */
  under(x, y) {
    if (y < AXIS) { const at = this.about.steps.findIndex(([, low, length]) => this.time(x) >= low && this.time(x) <= low + length); return at >= 0 && y > 18 ? { step: at } : {}; }
    const top = y - AXIS + this.frame.scrollTop, place = this.view.layout.places.find((each) => top >= each.y && top < each.y + each.height);
    if (!place || !place.lane) return {};
    if (top < place.y + HEAD) return { heading: place.lane };
    const level = Math.floor((top - place.y - HEAD) / ROW), slack = (2 * (this.view.high - this.view.low)) / this.width;
    if (level >= place.lane.levels) return {};
    const row = this.lanes.at(place.lane, level, this.time(x), slack);
    return row < 0 ? {} : { lane: place.lane, row };
  }
  hover(event) {
    const found = this.under(event.offsetX, event.offsetY);
    this.canvas.style.setProperty("cursor", found.lane || found.heading || found.step !== undefined ? "pointer" : "grab");
    this.tip.hidden = found.row === undefined;
    if (found.row === undefined) return;
    this.tip.replaceChildren(...this.facts(found.lane, found.row, 6).map((line) => h("div", { dir: "ltr" }, line)));
    const box = this.place.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    this.tip.style.setProperty("left", `${Math.max(0, Math.min(x + 14, this.width - this.tip.offsetWidth - 4))}px`);
    this.tip.style.setProperty("top", `${y + 18}px`);
  }
  click(event) {
    const found = this.under(event.offsetX, event.offsetY);
    if (found.step !== undefined) this.goStep(found.step);
    else if (found.heading) { const { place } = found.heading; if (!this.view.folded.delete(place)) this.view.folded.add(place); this.resize(); }
    else this.choose(found.row === undefined ? null : [found.lane, found.row]);
  }
  chooseMiddle() { const { x, y } = { x: this.width / 2, y: AXIS }; for (let at = y + HEAD; at < this.height; at += ROW / 2) { const found = this.under(x, at); if (found.row !== undefined) { this.choose([found.lane, found.row]); return; } } }
  /** What is known of a row, one line a fact. */
  facts(lane, row, stackLines) {
    const name = this.lanes.name(lane, row), texts = this.about.texts, start = lane.start[row], length = lane.length[row], lines = [];
    lines.push(fitted(name, stackLines > 10 ? 1300 : 300));
    if (lane.more[row]) {
      lines.push(`${asCount(lane.more[row] + 1)} rows merged in this file, together ${asTime(lane.held[row])} within ${asTime(length)}; the name is that of most of their time`);
    } else lines.push(`${asTime(length)}, from ${asTime(start)} on`);
    lines.push(`${lane.name}${lane.kind === "python" ? ", Python" : ""}`);
    if (lane.kind === "stream") {
      if (lane.detail[row] >= 0) lines.push(`launched by ${fitted(texts[lane.detail[row]], 200)}`);
      if (lane.other[row]) lines.push(`${asTime((lane.other[row] > 0 ? lane.other[row] - 1 : lane.other[row]) / 1000)} after its launch call began`);
    }
    if (lane.kind === "calls" || lane.kind === "python") {
      if (lane.detail[row] >= 0) lines.push(`shapes ${fitted(texts[lane.detail[row]], 300)}`);
      const frames = lane.other[row] >= 0 ? texts[lane.other[row]].split(";").map((frame) => frame.trim()) : lane.kind === "calls" ? this.lanes.frames(lane, start + length / 2) : [];
      frames.slice(0, stackLines).forEach((frame) => lines.push(`  ${fitted(frame, 200)}`));
      if (frames.length > stackLines) lines.push(`  and ${frames.length - stackLines} frames more`);
    }
    return lines;
  }
  choose(found) {
    this.view.chosen = found;
    this.draw();
    if (!found) { this.detail.replaceChildren(h("p", { class: "note" }, "Nothing chosen.")); return; }
    const [lane, row] = found, [name, ...facts] = this.facts(lane, row, 60);
    const act = (label, then) => h("button", { type: "button", class: "small", on: { click: then } }, label);
    const buttons = [act("Zoom to it", () => this.focus(found)), act("Find its name", () => { this.box.value = this.lanes.name(lane, row); this.search(this.box.value, true); })];
    if (lane.kind === "stream" && lane.other[row]) buttons.push(act("Go to its launch", () => this.goLaunch(lane, row)));
    this.detail.replaceChildren(h("p", { class: "id", dir: "ltr" }, h("strong", {}, name)), h("pre", { dir: "ltr", tabindex: 0 }, facts.join("\n")), h("p", {}, ...buttons.flatMap((each) => [each, " "])));
  }
  goLaunch(lane, row) {
    const shift = lane.other[row] > 0 ? lane.other[row] - 1 : lane.other[row], at = lane.start[row] - shift / 1000;
    for (const host of this.lanes.list) {
      if (host.kind !== "calls") continue;
      for (let level = host.levels - 1; level >= 0; level--) {
        for (let found = this.lanes.from(host, level, at - 0.01); found < host.firsts[level + 1] && host.start[found] <= at + 0.01; found++) {
          if (Math.abs(host.start[found] - at) < 0.0015 && (host.tint[found] === 1 || host.tint[found] === 2)) { this.focus([host, found]); return; }
        }
      }
    }
    this.foundText.textContent = "the launch call is merged with its neighbours in this file";
  }
  focus([lane, row]) {
    this.view.folded.delete(lane.place);
    this.resize();
    const room = Math.max(lane.length[row] * 1.5, 2);
    this.set(lane.start[row] - room, lane.start[row] + lane.length[row] + room);
    const place = this.view.layout.places.find((each) => each.lane === lane), y = place.y + HEAD + lane.level[row] * ROW;
    const inside = this.height - AXIS;
    if (y < this.frame.scrollTop || y > this.frame.scrollTop + inside - ROW) this.frame.scrollTop = Math.max(0, y - inside / 2);
    this.choose([lane, row]);
  }
  /** From a finding to the place that proves it. */
  prove(name, start, length) {
    const known = name ? this.lanes.nearest(name, start) : null;
    if (known) this.focus(known);
    else if (start !== null) { const room = Math.max(length * 0.5, 5); this.set(start - room, start + length + room); }
    this.place.scrollIntoView({ behavior: reduced() ? "auto" : "smooth", block: "start" });
    this.canvas.focus({ preventScroll: true });
  }
  search(words, stay) {
    const wanted = words.trim().toLowerCase();
    this.matches = wanted ? this.lanes.search(wanted) : [];
    this.view.found = wanted ? new Set(this.matches.map(([lane, row]) => lane.place * 0x10000000 + row)) : null;
    this.at = -1;
    const blocks = this.about.resolution_us ? "; what is merged is found by its main name alone" : "";
    this.foundText.textContent = wanted ? `${asCount(this.matches.length)} found${blocks}` : "";
    this.draw();
    if (this.matches.length && !stay) this.next(1);
  }
  next(by) {
    const { matches } = this;
    if (!matches.length) return;
    if (this.at < 0) { const first = matches.findIndex(([lane, row]) => lane.start[row] >= this.view.low); this.at = Math.max(0, first); }
    else this.at = (this.at + by + matches.length) % matches.length;
    const [lane, row] = matches[this.at], { low, high } = this.view;
    this.foundText.textContent = `${asCount(this.at + 1)} of ${asCount(matches.length)}`;
    if (lane.start[row] >= low && lane.start[row] + lane.length[row] <= high && (lane.length[row] / (high - low)) * this.width > 4 && !this.view.folded.has(lane.place)) this.choose(matches[this.at]);
    else this.focus(matches[this.at]);
  }
  tell() {
    if (!this.summaryBox.open) return;
    const rows = this.lanes.summary(this.view.low, this.view.high, (lane) => !this.view.folded.has(lane.place)).slice(0, 200);
    const words = { calls: "host", python: "Python", stream: "device", labels: "device label", idle: "idle" };
    const table = { label: "in-view", columns: [["name", "code"], ["on", "text"], ["rows", "count"], ["time in view", "time"], ["of the rows, merged", "count"]], rows: rows.map(([name, kind, count, time, merged]) => [name, words[kind], count, time, merged]), note: "Of lanes that are unfolded; time of calls with what they called. Merged rows count under the name that took most of their time." };
    if (this.table) { this.table.tables = [table]; this.table.draw(); } else this.table = new TableView(this.summary, "in view", [table], (name) => this.prove(name, null, 0));
  }
}
