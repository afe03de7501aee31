/* What every view needs: elements, words for numbers, columns out of the page, downloads. No text becomes markup. */
const UNKNOWN = "–";
const NBSP = "\u00a0";
const SVG_NS = "http://www.w3.org/2000/svg";

function element(space, tag, attributes, children) {
  const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}
const h = (tag, attributes, ...children) => element(null, tag, attributes, children);
const s = (tag, attributes, ...children) => element(SVG_NS, tag, attributes, children);

function digits(value) {
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 1 : 2);
}
function scaled(value, units) {
  if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
  if (value === 0) return `0${NBSP}${units[units.length - 1][1]}`;
  const [scale, unit] = units.find(([each]) => Math.abs(value) >= each) || units[units.length - 1];
  return `${digits(value / scale)}${NBSP}${unit}`;
}
const asTime = (us) => (us === 0 ? `0${NBSP}µs` : scaled(us, [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]]));
const asBytes = (value) => scaled(value, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
const asRate = (value) => scaled(value, [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]]);
function asCount(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return Number.isInteger(value) || Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en-US") : value.toFixed(1);
}
function asShare(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return value > 0 && value < 0.0005 ? `<${NBSP}0.1${NBSP}%` : `${(100 * value).toFixed(1)}${NBSP}%`;
}
const asFlag = (value) => (value === null || value === undefined ? UNKNOWN : value ? "yes" : "no");
const asText = (value) => (value === null || value === undefined || value === "" ? UNKNOWN : String(value));
const SHOWN = { time: asTime, bytes: asBytes, rate: asRate, count: asCount, share: asShare, flag: asFlag };
const CSV_UNITS = { time: " (µs)", bytes: " (bytes)", rate: " (bytes/s)", share: " (0..1)" };

/** Names without what all of them share; the middle goes where they are too long. */
const plainName = (name) => name.replace(/^void /, "").replaceAll("(anonymous namespace)::", "").replaceAll("at::native::", "");
function fitted(text, most) {
  if (text.length <= most) return text;
  if (most < 3) return "";
  const head = Math.ceil((most - 1) * 0.6);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}

async function inflated(id) {
  const letters = atob(document.getElementById(id).textContent.trim());
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads columns of variable-length integers (LEB128 of zigzag codes), one behind another. */
class Columns {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }
  next(length, Kind) {
    const { bytes } = this, out = new Kind(length);
    let at = this.at;
    for (let i = 0; i < length; i++) {
      let byte = bytes[at++], value = byte & 127, scale = 128;
      while (byte & 128) { byte = bytes[at++]; value += (byte & 127) * scale; scale *= 128; }
      out[i] = value % 2 ? -(value + 1) / 2 : value / 2;
    }
    this.at = at;
    return out;
  }
}

function download(name, kind, text) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function csvCell(value) {
  if (value === null || value === undefined) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+@\t\r-]/.test(text)) text = `'${text}`; // no formula for a spreadsheet
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
const csv = (rows) => rows.map((row) => row.map(csvCell).join(",")).join("\n") + "\n";

/** A figure as a file that stands alone: the colours that the page's style sheet gives are written into it. */
function svgFile(figure) {
  const copy = figure.cloneNode(true), from = figure.querySelectorAll("*"), to = copy.querySelectorAll("*");
  const names = ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "opacity", "font-size", "font-weight", "text-anchor"];
  to.forEach((each, place) => {
    const look = getComputedStyle(from[place]);
    for (const name of names) {
      const value = look.getPropertyValue(name);
      if (value) each.setAttribute(name, value.startsWith("url") ? "url(#hatch)" : value);
    }
  });
  const box = figure.getBoundingClientRect();
  copy.setAttribute("xmlns", SVG_NS);
  copy.setAttribute("font-family", "DejaVu Sans, sans-serif");
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const hatch = document.querySelector("svg.defs defs");
  if (hatch) copy.prepend(hatch.cloneNode(true));
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: paper }));
  return new XMLSerializer().serializeToString(copy);
}
function svgButton(name, figure) {
  const save = () => download(`${name}.svg`, "image/svg+xml", svgFile(figure()));
  return h("button", { type: "button", class: "small", on: { click: save } }, "SVG");
}
function later(act, ms) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => act(...given), ms); };
}
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const reduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
