/* Flame graphs, outermost calls on top: what is wide is expensive. Nodes that are too narrow are drawn as one. */
const FLAME_ROW = 19;
const FLAME_TINTS = ["sky", "green", "orange", "yellow", "purple", "blue"];

class FlameView {
  constructor(place, graphs) {
    this.place = place;
    this.graphs = graphs.filter((graph) => graph.name.length);
    this.missing = graphs.filter((graph) => !graph.name.length && graph.why).map((graph) => `${graph.label}: ${graph.why}`);
    if (!this.graphs.length) { place.replaceChildren(h("p", { class: "note" }, this.missing.join("; ") || "Nothing was recorded.")); return; }
    this.build();
    this.choose(0);
    new ResizeObserver(later(() => this.draw(), 60)).observe(place);
  }
  build() {
    const choose = h("select", { on: { change: (event) => this.choose(Number(event.target.value)) } },
      this.graphs.map((graph, at) => h("option", { value: at }, graph.label)));
    this.box = h("input", { type: "search", size: 18, on: { input: later(() => { this.filter = this.box.value.toLowerCase(); this.draw(); }, 120) } });
    this.figure = s("svg", { class: "flame", tabindex: 0, role: "application", "aria-label": "Flame graph. Arrow keys move, Enter zooms, Escape goes back.", on: { keydown: (event) => this.key(event) } });
    this.told = h("p", { class: "told id", role: "status" });
    const back = h("button", { type: "button", class: "small", on: { click: () => this.zoom(-1) } }, "Whole");
    this.place.replaceChildren(
      h("div", { class: "tools" }, h("label", {}, "Show ", choose), h("label", {}, "Find ", this.box), back, svgButton("flame", () => this.figure)),
      this.figure, this.told, h("p", { class: "note" }, "Click a call to zoom in; each level is what the one above it called.",
        this.missing.length ? ` ${this.missing.join("; ")}.` : ""));
  }
  choose(at) {
    this.graph = this.graphs[at];
    this.filter = (this.box.value || "").toLowerCase();
    const { parent, total } = this.graph;
    this.inner = parent.map(() => []);
    this.roots = [];
    parent.forEach((outer, place) => (outer < 0 ? this.roots : this.inner[outer]).push(place));
    this.whole = this.roots.reduce((sum, place) => sum + total[place], 0);
    this.at = this.roots[0];
    this.zoom(-1);
  }
  zoom(place) { this.root = place; if (place >= 0) this.at = place; this.draw(); }
  name(place) { return this.graph.texts[this.graph.name[place]] ?? "(no name)"; }
  describe(place) {
    const { total, calls } = this.graph, inside = this.inner[place].reduce((sum, each) => sum + total[each], 0);
    return `${this.name(place)}: ${asTime(total[place])} (${asShare(total[place] / this.whole)} of all), ${asTime(Math.max(0, total[place] - inside))} of its own, ${asCount(calls[place])} calls, ${asTime(total[place] / (calls[place] || 1))} each`;
  }
  draw() {
    const width = Math.max(200, this.place.clientWidth), marks = [];
    this.boxes = new Map();
    let deepest = 0;
    const put = (place, x, share, level) => {
      deepest = Math.max(deepest, level);
      this.boxes.set(place, [x, share, level]);
      marks.push(this.mark(place, x, share, level));
      let at = x, rest = 0;
      const own = Math.max(this.graph.total[place], 1e-9), inside = this.inner[place].reduce((sum, each) => sum + this.graph.total[each], 0);
      for (const each of this.inner[place]) {
        const wide = (share * this.graph.total[each]) / Math.max(own, inside);
        if (wide < 1) rest += wide; else { put(each, at, wide, level + 1); at += wide; }
      }
      if (rest >= 1) { deepest = Math.max(deepest, level + 1); marks.push(s("rect", { class: "rest", x: at, y: (level + 1) * FLAME_ROW, width: Math.max(0.5, rest - 0.5), height: FLAME_ROW - 1 })); }
    };
    const above = [];
    for (let at = this.root >= 0 ? this.graph.parent[this.root] : -1; at >= 0; at = this.graph.parent[at]) above.unshift(at);
    above.forEach((place, level) => { this.boxes.set(place, [0, width, level]); marks.push(this.mark(place, 0, width, level, true)); });
    if (this.root >= 0) put(this.root, 0, width, above.length);
    else { let at = 0; for (const place of this.roots) { const wide = (width * this.graph.total[place]) / Math.max(this.whole, 1e-9); if (wide >= 1) put(place, at, wide, 0); at += wide; } }
    this.figure.setAttribute("height", String((deepest + 1) * FLAME_ROW));
    this.figure.setAttribute("viewBox", `0 0 ${width} ${(deepest + 1) * FLAME_ROW}`);
    this.figure.replaceChildren(...marks);
    this.told.textContent = this.at === undefined ? "" : fitted(this.describe(this.at), 400);
  }
  mark(place, x, wide, level, above) {
    const name = this.name(place), letters = Math.floor((wide - 6) / 7);
    const found = this.filter && name.toLowerCase().includes(this.filter);
    const tint = FLAME_TINTS[this.graph.name[place] < 0 ? 0 : this.graph.name[place] % FLAME_TINTS.length];
    const classes = `node t-${tint}${place === this.at ? " at" : ""}${this.filter && !found ? " dim" : ""}${above ? " above" : ""}`;
    const group = s("g", { class: classes, on: { click: () => this.zoom(place), mouseenter: () => { this.told.textContent = fitted(this.describe(place), 400); } } },
      s("title", {}, fitted(this.describe(place), 600)),
      s("rect", { x: x.toFixed(2), y: level * FLAME_ROW, width: Math.max(0.5, wide - 0.5).toFixed(2), height: FLAME_ROW - 1 }));
    if (letters >= 3) group.append(s("text", { x: (x + 3).toFixed(2), y: level * FLAME_ROW + 13 }, fitted(plainName(name), letters)));
    return group;
  }
  key(event) {
    const outer = this.graph.parent[this.at], beside = outer >= 0 ? this.inner[outer] : this.roots, place = beside.indexOf(this.at);
    const moves = { ArrowUp: outer, ArrowDown: this.inner[this.at][0], ArrowLeft: beside[place - 1], ArrowRight: beside[place + 1] };
    if (event.key in moves) { const to = moves[event.key]; if (to !== undefined && to >= 0) { this.at = to; if (!this.boxes.has(to)) this.root = this.graph.parent[to]; this.draw(); } }
    else if (event.key === "Enter") this.zoom(this.at);
    else if (event.key === "Escape") this.zoom(-1);
    else return;
    event.preventDefault();
  }
}
