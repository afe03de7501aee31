/* Memory: the curve with the steps marked, what lived at the peak, who allocated. */
function memoryCurve(memory, steps, width) {
  const height = 230, left = 64, right = 12, top = 22, bottom = 34, { curve } = memory;
  const low = Math.min(curve[0][0], ...(steps.length ? [steps[0][1]] : [])), high = Math.max(curve[curve.length - 1][0], ...(steps.length ? [steps[steps.length - 1][1] + steps[steps.length - 1][2]] : []));
  const most = Math.max(1, ...curve.map(([, allocated, reserved]) => Math.max(allocated, reserved || 0)));
  const x = (time) => left + ((time - low) / (high - low || 1)) * (width - left - right), y = (bytes) => height - bottom - (bytes / most) * (height - top - bottom);
  const path = (pick) => {
    let text = "", before = null;
    for (const point of curve) {
      const value = pick(point);
      if (value === null) continue;
      text += before === null ? `M${x(point[0]).toFixed(1)} ${y(value).toFixed(1)}` : `H${x(point[0]).toFixed(1)}V${y(value).toFixed(1)}`;
      before = value;
    }
    return text;
  };
  const allocated = path((point) => point[1]), marks = [];
  for (let part = 0; part <= 4; part++) {
    const value = (most * part) / 4;
    marks.push(s("line", { class: "rule", x1: left, x2: width - right, y1: y(value), y2: y(value) }), s("text", { class: "tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, asBytes(value)));
  }
  const every = Math.ceil(steps.length / Math.max(1, (width - left) / 46));
  steps.forEach(([name, start, length], place) => {
    marks.push(s("line", { class: "step", x1: x(start), x2: x(start), y1: top, y2: height - bottom }));
    if (place % every === 0 && x(start + length) - x(start) > 0) marks.push(s("text", { class: "tick", x: x(start) + 2, y: height - bottom + 14 }, name.replace("ProfilerStep", "")));
  });
  marks.push(s("path", { class: "allocated", d: `${allocated}V${y(0)}H${x(curve[0][0])}Z` }), s("path", { class: "edge", d: allocated }));
  if (memory.reserved !== null) marks.push(s("path", { class: "reserved", d: path((point) => point[2]) }));
  if (memory.at !== null && memory.peak !== null) marks.push(s("circle", { class: "peak", cx: x(memory.at), cy: y(memory.peak), r: 4 }), s("text", { class: "told", x: Math.min(x(memory.at) + 8, width - 150), y: Math.max(12, y(memory.peak) - 8) }, `peak ${asBytes(memory.peak)}`));
  marks.push(s("text", { class: "tick", x: left, y: height - 4 }, asTime(low)), s("text", { class: "tick", x: width - right, y: height - 4, "text-anchor": "end" }, `${asTime(high)} after the first event`));
  return s("svg", { class: "curve", role: "img", viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": `Memory of ${memory.device} over time: allocated${memory.reserved === null ? "" : " and reserved"}, peak ${asBytes(memory.peak)}` }, ...marks);
}

function memorySection(place, memories, steps, open) {
  if (!memories.length) { place.replaceChildren(h("p", { class: "note" }, place.dataset.none)); return; }
  place.replaceChildren(...memories.flatMap((memory) => {
    const parts = [h("h3", {}, memory.device)], told = [];
    if (memory.peak !== null) told.push(`Peak ${asBytes(memory.peak)} allocated${memory.reserved === null ? "" : `, ${asBytes(memory.reserved)} reserved`}${memory.capacity ? ` of ${asBytes(memory.capacity)}` : ""}.`);
    if (memory.growth !== null) { const range = memory.growth_interval; told.push(`From step to step it grows by ${asBytes(memory.growth)}${range ? ` (95 % interval ${asBytes(range[0])} to ${asBytes(range[1])})` : ""}.`); }
    if (memory.before) told.push(`Of the peak ${asBytes(memory.before)} were allocated before the recording began: by whom is not known.`);
    if (memory.phases.length) told.push(`Allocated while recording and alive at the peak: ${memory.phases.map(([phase, size]) => `${phase} ${asBytes(size)}`).join(", ")}.`);
    parts.push(h("p", {}, told.join(" ")));
    if (memory.curve.length > 1) {
      const figure = h("div", { class: "plot" }), draw = () => figure.replaceChildren(memoryCurve(memory, steps, Math.max(300, figure.clientWidth || Math.min(832, place.clientWidth))));
      draw();
      new ResizeObserver(later(draw, 80)).observe(figure);
      parts.push(h("figure", {}, figure, h("figcaption", {}, `Allocated memory (filled)${memory.reserved === null ? "" : " and what the allocator reserved (dashed)"}; vertical rules: steps. `, svgButton(`memory-${memory.device}`, () => figure.firstChild))));
    }
    memory.notes.forEach((note) => parts.push(h("p", { class: "note" }, note)));
    for (const [title, table] of [["What lived at the peak", memory.living], ["Who allocated", memory.owners]]) {
      if (!table.rows.length && !table.note) continue;
      const box = h("div", {});
      parts.push(h("h4", {}, `${title} (${memory.device})`), box);
      new TableView(box, `${title}, ${memory.device}`, [table], null);
    }
    return parts;
  }));
}
