/* Drawing a window of time, with one of two pens: a canvas, or an SVG figure. */
const ROW = 16;
const HEAD = 17;
const AXIS = 38; // the scale of time, and the steps below it
const TINTS = { 0: "sky", 1: "yellow", 2: "yellow", 3: "green", 4: "grey", 5: "vermilion", 6: "grey", 10: "blue", 11: "purple", 12: "grey", 13: "yellow", 14: "green", 20: "orange", 21: "sky", 22: "yellow", 23: "purple", 24: "vermilion", 25: "grey" };
const KIND_TINTS = { loading: "orange", communication: "vermilion" };
const HATCHED = new Set([20, 24]); // told apart without colours, too

class CanvasPen {
  constructor(context) { this.context = context; context.font = "11px system-ui, sans-serif"; context.textBaseline = "middle"; }
  rect(x, y, width, height, fill, alpha) { const { context } = this; context.globalAlpha = alpha; context.fillStyle = fill; context.fillRect(x, y, width, height); context.globalAlpha = 1; }
  frame(x, y, width, height, stroke) { const { context } = this; context.strokeStyle = stroke; context.lineWidth = 2; context.strokeRect(x + 1, y + 1, Math.max(1, width - 2), height - 2); }
  line(x0, y0, x1, y1, stroke) { const { context } = this; context.strokeStyle = stroke; context.lineWidth = 1; context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke(); }
  text(x, y, text, fill, bold) { const { context } = this; context.font = `${bold ? "600 " : ""}11px system-ui, sans-serif`; context.fillStyle = fill; context.fillText(text, x, y); }
}
class SvgPen {
  constructor() { this.marks = []; }
  rect(x, y, width, height, fill, alpha) { this.marks.push(s("rect", { x: x.toFixed(2), y, width: Math.max(0.1, width).toFixed(2), height, fill, "fill-opacity": alpha })); }
  frame(x, y, width, height, stroke) { this.marks.push(s("rect", { x, y, width: Math.max(1, width), height, fill: "none", stroke, "stroke-width": 2 })); }
  line(x1, y1, x2, y2, stroke) { this.marks.push(s("line", { x1, y1, x2, y2, stroke })); }
  text(x, y, text, fill, bold) { this.marks.push(s("text", { x: x.toFixed(1), y: y + 4, fill, "font-size": 11, "font-weight": bold ? 600 : null }, text)); }
}

/** Where each lane stands: its heading, and its rows below unless it is folded. */
function layout(lanes, folded) {
  const places = [];
  let y = 0, group = null;
  for (const lane of lanes.list) {
    if (lane.group !== group) { group = lane.group; places.push({ y, height: HEAD + 3, group }); y += HEAD + 3; }
    const height = HEAD + (folded.has(lane.place) ? 0 : lane.levels * ROW + 4);
    places.push({ y, height, lane });
    y += height;
  }
  return { places, height: y };
}

class Painter {
  constructor(lanes) { this.lanes = lanes; this.theme(); }
  theme() { this.colors = Object.fromEntries(["paper", "card", "ink", "muted", "grid", "line", "accent", "bad", ...Object.values(TINTS)].map((name) => [name, color(name)])); }
  tint(lane, row) {
    const special = lane.kind !== "idle" && lane.text[row] >= 0 ? this.lanes.kinds[lane.text[row]] : null;
    return this.colors[special ? KIND_TINTS[special] : TINTS[lane.tint[row]] || "grey"];
  }
  /** Draw the window; returns how many rows lie in it, and how many marks they became. */
  paint(pen, view, width, height, top) {
    const told = { rows: 0, marks: 0 };
    pen.rect(0, 0, width, height, this.colors.paper, 1);
    const scale = width / (view.high - view.low);
    for (const [, low, length] of this.lanes.about.steps) {
      const x = (low - view.low) * scale, end = x + length * scale;
      if (end >= 0 && end <= width) pen.line(Math.round(end) + 0.5, AXIS, Math.round(end) + 0.5, height, this.colors.line);
      if (x >= 0 && x <= width) pen.line(Math.round(x) + 0.5, AXIS, Math.round(x) + 0.5, height, this.colors.line);
    }
    for (const place of view.layout.places) {
      const y = place.y - top + AXIS;
      if (y + place.height < AXIS || y > height) continue;
      if (place.group !== undefined) pen.text(4, y + HEAD / 2 + 2, fitted(place.group, Math.floor(width / 7)), this.colors.ink, true);
      else this.lane(pen, place.lane, view, width, height, y, scale, told);
    }
    this.axis(pen, view, width, scale);
    return told;
  }
  lane(pen, lane, view, width, height, y, scale, told) {
    const folded = view.folded.has(lane.place), count = lane.all > lane.n ? `${asCount(lane.all)} rows, ${asCount(lane.n)} drawn` : `${asCount(lane.n)} rows`;
    pen.text(4, y + HEAD / 2, fitted(`${folded ? "▸" : "▾"} ${lane.name}${lane.kind === "python" ? ", Python" : ""} · ${count}`, Math.floor(width / 6)), this.colors.muted, false);
    pen.line(0, y + 0.5, width, y + 0.5, this.colors.grid);
    if (folded) return;
    for (let level = 0; level < lane.levels; level++) {
      const at = y + HEAD + level * ROW;
      if (at + ROW >= AXIS && at <= height) this.level(pen, lane, level, view, width, at, scale, told);
    }
  }
  level(pen, lane, level, view, width, y, scale, told) {
    const end = lane.firsts[level + 1], { low, high, found } = view;
    let pixel = -1, held = 0, best = 0, tint = null, hit = false, run = 0;
    const flush = () => {
      if (run) { pen.rect(pixel, y, 1, ROW - 1, tint, found && !hit ? 0.15 : 0.3 + 0.7 * Math.min(1, held)); told.marks++; }
      run = 0; held = 0; best = 0; hit = false;
    };
    for (let row = this.lanes.from(lane, level, low); row < end && lane.start[row] < high; row++) {
      const x = (lane.start[row] - low) * scale, wide = lane.length[row] * scale;
      if (x + wide < 0) continue;
      told.rows++;
      const match = found !== null && found.has(lane.place * 0x10000000 + row);
      if (wide < 1.5) {
        const here = Math.floor(x);
        if (here !== pixel) { flush(); pixel = here; }
        run++; held += lane.more[row] ? lane.held[row] * scale : wide; hit = hit || match;
        if (wide >= best || match) { best = wide; tint = match ? this.colors.bad : this.tint(lane, row); }
        continue;
      }
      flush();
      pixel = -1;
      this.box(pen, lane, row, view, Math.max(x, -2), Math.min(x + wide, width + 2), y, match);
      told.marks++;
    }
    flush();
  }
  box(pen, lane, row, view, x0, x1, y, match) {
    const { found, chosen } = view, dim = found !== null && !match, tint = this.tint(lane, row), wide = x1 - x0;
    const full = lane.more[row] && lane.length[row] > 0 ? Math.max(0.25, lane.held[row] / lane.length[row]) : 1;
    pen.rect(x0, y, Math.max(1, wide - 0.6), ROW - 1, tint, dim ? 0.15 : 0.62 * Math.min(1, full));
    pen.rect(x0, y + ROW - 3, Math.max(1, wide - 0.6), 2, tint, dim ? 0.2 : 1);
    if (HATCHED.has(lane.tint[row]) && wide > 6) for (let x = x0 + 4; x < x1 - 1; x += 7) pen.line(x, y + ROW - 3, Math.min(x + 5, x1 - 1), y + 1, this.colors.muted);
    if (chosen && chosen[0] === lane && chosen[1] === row) pen.frame(x0, y, wide, ROW - 1, this.colors.ink);
    else if (match) pen.frame(x0, y, wide, ROW - 1, this.colors.bad);
    if (wide < 26) return;
    const name = plainName(this.lanes.name(lane, row)), text = lane.more[row] ? `${asCount(lane.more[row] + 1)} merged, most: ${name}` : name;
    pen.text(x0 + 4, y + ROW / 2 - 1, fitted(text, Math.floor((wide - 6) / 6.8)), dim ? this.colors.muted : this.colors.ink, false);
  }
  axis(pen, view, width, scale) {
    pen.rect(0, 0, width, AXIS, this.colors.card, 1);
    const wanted = (view.high - view.low) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(wanted));
    const tick = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= wanted);
    for (let number = Math.ceil(view.low / tick); number * tick <= view.high; number++) {
      const at = number * tick || 0; // no negative zero
      const x = (at - view.low) * scale;
      pen.line(Math.round(x) + 0.5, 12, Math.round(x) + 0.5, 18, this.colors.muted);
      pen.text(x + 3, 10, axisLabel(at, tick), this.colors.muted, false);
    }
    const { steps, typical, slowest } = this.lanes.about;
    steps.forEach(([name, low, length, complete], place) => {
      const x0 = Math.max(-1, (low - view.low) * scale), x1 = Math.min(width + 1, (low + length - view.low) * scale);
      if (x1 < 0 || x0 > width) return;
      pen.rect(x0, 20, Math.max(1, x1 - x0 - 1), 16, place === slowest && steps.length > 1 ? this.colors.orange : this.colors.sky, place === typical || place === slowest ? 0.6 : 0.3);
      const mark = steps.length < 2 ? "" : place === slowest ? " · slowest" : place === typical ? " · typical" : "";
      if (x1 - x0 > 30) pen.text(x0 + 4, 28, fitted(`${name}${mark}${complete ? "" : " · cut off"} · ${asTime(length)}`, Math.floor((x1 - x0 - 6) / 7)), this.colors.ink, place === typical || place === slowest);
    });
  }
}
/** A moment on the scale: as many digits as the ticks need. */
function axisLabel(us, tick) {
  const [scale, unit] = tick >= 1e6 ? [1e6, "s"] : tick >= 100 ? [1e3, "ms"] : [1, "µs"];
  const places = Math.max(0, Math.min(9, -Math.floor(Math.log10(tick / scale) + 1e-9)));
  return `${(us / scale).toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })} ${unit}`;
}
