/* Tables that answer: sort, filter, group, fold, download. */
const PAGE_ROWS = 20;
const PRESETS = [
  ["all calls", () => true],
  ["many and short (100 or more, below 20 µs)", (calls, mean) => calls >= 100 && mean < 20],
  ["few and long (below 100, 1 ms or more)", (calls, mean) => calls < 100 && mean >= 1000],
];

class TableView {
  /** Shows one of several `tables` (ways of grouping) in `place`; `open(text)` is asked for the place of a name. */
  constructor(place, name, tables, open) {
    Object.assign(this, { place, name, tables, open, chosen: 0, sort: null, filter: "", preset: 0, shown: PAGE_ROWS });
    this.folded = new Set();
    const first = tables.findIndex((table) => table.rows.length);
    this.chosen = Math.max(0, first);
    this.build();
  }
  get table() { return this.tables[this.chosen]; }
  build() {
    const { tables } = this, id = `table-${this.name}`;
    const tools = h("div", { class: "tools" });
    if (tables.length > 1) {
      const choose = h("select", { on: { change: (event) => this.choose(Number(event.target.value)) } },
        tables.map((table, place) => h("option", { value: place, selected: place === this.chosen }, `by ${table.label} (${table.rows.length})`)));
      tools.append(h("label", {}, "Group ", choose));
      this.chooser = choose;
    }
    const type = later(() => this.change({ filter: this.box.value.toLowerCase() }), 120);
    this.box = h("input", { type: "search", placeholder: "name, shape, line …", size: 18, on: { input: type } });
    const filter = h("label", {}, "Filter ", this.box);
    if (tables.every((table) => table.rows.length <= 5)) filter.hidden = true;
    tools.append(filter);
    this.presets = h("select", { on: { change: (event) => this.change({ preset: Number(event.target.value) }) } },
      PRESETS.map(([label], place) => h("option", { value: place }, label)));
    this.presetLabel = h("label", {}, "Calls ", this.presets);
    tools.append(this.presetLabel);
    tools.append(h("button", { type: "button", class: "small", on: { click: () => this.save() } }, "CSV"));
    this.count = h("span", { class: "note", role: "status" });
    tools.append(this.count);
    this.head = h("thead");
    this.body = h("tbody");
    this.grid = h("table", { class: "grid", id, "aria-label": this.name }, this.head, this.body);
    this.note = h("p", { class: "note" });
    this.more = h("button", { type: "button", on: { click: () => this.change({ shown: this.shown * 5 }, true) } }, "Show more");
    this.scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${this.name}` }, this.grid);
    if (!tables.some((table) => table.rows.length)) tools.hidden = true;
    this.place.replaceChildren(tools, this.scroll, this.more, this.note);
    this.draw();
  }
  choose(place) {
    this.chosen = place;
    if (this.chooser) this.chooser.value = String(place);
    this.folded = new Set();
    this.change({ sort: null });
  }
  change(what, keep) {
    Object.assign(this, keep ? {} : { shown: PAGE_ROWS }, what);
    this.draw();
  }
  sorted() {
    const { table, sort } = this, places = table.rows.map((_, place) => place);
    if (!sort) return places;
    const [column, up] = sort, rows = table.rows;
    const order = (a, b) => {
      const x = rows[a][column], y = rows[b][column];
      if (x === null || x === undefined) return y === null || y === undefined ? a - b : 1; // unknown comes last
      if (y === null || y === undefined) return -1;
      const found = typeof x === "string" ? x.localeCompare(y) : Number(x) - Number(y);
      return (up ? found : -found) || a - b;
    };
    return places.sort(order);
  }
  matches(row) {
    const { columns } = this.table;
    const calls = columns.findIndex(([label]) => label === "calls"), mean = columns.findIndex(([label]) => label.startsWith("mean"));
    if (this.preset && calls >= 0 && mean >= 0 && !PRESETS[this.preset][1](row[calls], row[mean])) return false;
    return !this.filter || row.some((cell, at) => /text|code|stack/.test(columns[at][1]) && cell !== null && String(cell).toLowerCase().includes(this.filter));
  }
  /** The rows that are shown, in order, each with its depth: of a tree the rows around a match are kept, too. */
  visible() {
    const { table } = this, order = this.sorted();
    if (!table.tree) return order.filter((place) => this.matches(table.rows[place])).map((place) => [place, 0]);
    const kept = new Set();
    for (const place of order) {
      if (!this.matches(table.rows[place])) continue;
      for (let at = place; at !== null && at !== undefined && !kept.has(at); at = table.tree[at]) kept.add(at);
    }
    const inner = new Map();
    for (const place of order) {
      if (!kept.has(place)) continue;
      const outer = table.tree[place] ?? -1;
      if (!inner.has(outer)) inner.set(outer, []);
      inner.get(outer).push(place);
    }
    this.inner = inner;
    const found = [], stack = (inner.get(-1) || []).map((place) => [place, 0]).reverse();
    while (stack.length) {
      const [place, depth] = stack.pop();
      found.push([place, depth]);
      if (!this.isFolded(place, depth)) stack.push(...(inner.get(place) || []).map((each) => [each, depth + 1]).reverse());
    }
    return found;
  }
  isFolded(place, depth) { return this.filter ? false : this.folded.has(place) !== depth >= 2; }
  draw() {
    const { table } = this, rows = this.visible();
    const callsShown = table.columns.some(([label]) => label === "calls") && table.columns.some(([label]) => label.startsWith("mean"));
    this.presetLabel.hidden = !callsShown || Boolean(table.tree);
    this.head.replaceChildren(h("tr", {}, table.columns.map((column, at) => this.heading(column, at))));
    this.body.replaceChildren(...rows.slice(0, this.shown).map(([place, depth]) => this.row(place, depth)));
    this.scroll.hidden = !table.rows.length;
    this.more.hidden = rows.length <= this.shown;
    const left = table.left ? `; ${table.left.toLocaleString("en-US")} cheaper ones are not listed` : "";
    this.count.textContent = `${Math.min(rows.length, this.shown)} of ${rows.length} rows${left}`;
    this.note.textContent = table.note || "";
  }
  heading([label, kind], at) {
    const sorted = this.sort && this.sort[0] === at, numeric = kind in SHOWN;
    const turn = () => this.change({ sort: [at, sorted ? !this.sort[1] : !numeric] });
    const arrow = sorted ? (this.sort[1] ? " ▲" : " ▼") : "";
    return h("th", { scope: "col", class: numeric ? "number" : null, "aria-sort": sorted ? (this.sort[1] ? "ascending" : "descending") : "none" },
      h("button", { type: "button", class: "sort", on: { click: turn } }, label + arrow));
  }
  row(place, depth) {
    const { table } = this;
    return h("tr", {}, table.rows[place].map((value, at) => {
      const kind = table.columns[at][1];
      if (kind in SHOWN) return h("td", { class: "number" }, SHOWN[kind](value));
      return h("td", { class: kind === "text" ? null : "wide id", dir: kind === "text" ? null : "ltr" }, ...this.text(place, depth, at, kind));
    }));
  }
  text(place, depth, at, kind) {
    const { table } = this, value = table.rows[place][at], shown = asText(value);
    if (kind === "stack" && value) {
      const [first, ...others] = value.split("\n");
      return others.length ? [h("details", {}, h("summary", {}, first), h("pre", {}, value))] : [first];
    }
    const long = shown.length > 160 ? [h("details", {}, h("summary", {}, fitted(shown, 120)), shown)] : [shown];
    if (table.tree && at === 0) return [this.fold(place, depth), ...long];
    if (at === 0 && this.open && value) return [this.opener(value), " ", ...long];
    return long;
  }
  opener(value) {
    return h("button", { type: "button", class: "go", title: "Show the longest one in the timeline", "aria-label": `Show ${fitted(value, 60)} in the timeline`, on: { click: () => this.open(value) } }, "↗");
  }
  fold(place, depth) {
    const indent = h("span", { class: "indent" });
    indent.style.setProperty("inline-size", `${depth * 1.1}rem`);
    if (!(this.inner.get(place) || []).length) return h("span", {}, indent, h("span", { class: "leaf" }));
    const open = !this.isFolded(place, depth);
    const turn = () => { if (!this.folded.delete(place)) this.folded.add(place); this.draw(); };
    return h("span", {}, indent, h("button", { type: "button", class: "fold", "aria-expanded": String(open), "aria-label": "modules inside", on: { click: turn } }, open ? "▾" : "▸"));
  }
  save() {
    const { table } = this;
    const heads = table.columns.map(([label, kind]) => label + (CSV_UNITS[kind] || ""));
    const places = this.sorted().filter((place) => this.matches(table.rows[place]));
    const outer = table.tree ? [["row", "row around it"], (place) => [place, table.tree[place]]] : [[], () => []];
    download(`${this.name}-${table.label}.csv`.replaceAll(" ", "-"), "text/csv", csv([[...outer[0], ...heads], ...places.map((place) => [...outer[1](place), ...table.rows[place]])]));
  }
}
