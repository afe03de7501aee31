/* The rows of a timeline: lanes as typed columns, and questions about them. Times are microseconds. */
const IDLE_COLOR = 20;
const FOLDED_LEVELS = 0;

class Lanes {
  constructor(about, bytes) {
    const columns = new Columns(bytes);
    this.about = about;
    this.texts = about.texts;
    this.list = about.lanes.map((lane, place) => this.read(lane, place, columns));
    this.kinds = this.texts.map((text) => (/^enumerate\(DataLoader\)#|^enumerate\(DataPipe\)#/.test(text) ? "loading" : /nccl|rccl|^gloo:|AllReduce_/i.test(text) ? "communication" : null));
  }
  read(lane, place, columns) {
    const n = lane.rows, start = columns.next(n, Float64Array), length = columns.next(n, Float64Array);
    let at = 0;
    for (let i = 0; i < n; i++) { at += start[i]; start[i] = at / 1000; length[i] /= 1000; }
    const level = columns.next(n, Int32Array), tint = columns.next(n, Uint8Array), text = columns.next(n, Int32Array);
    const more = columns.next(n, Int32Array), held = columns.next(n, Float64Array);
    const detail = columns.next(n, Int32Array), other = columns.next(n, Float64Array);
    for (let i = 0; i < n; i++) held[i] /= 1000;
    const firsts = new Int32Array(lane.levels + 1).fill(n);
    for (let i = n - 1; i >= 0; i--) firsts[level[i]] = i;
    for (let each = lane.levels - 1; each >= 0; each--) firsts[each] = Math.min(firsts[each], firsts[each + 1]);
    return { ...lane, place, n, start, length, level, tint, text, more, held, detail, other, firsts };
  }
  name(lane, row) {
    if (lane.kind === "idle") return `idle: ${this.about.causes[lane.text[row]]}`;
    return lane.text[row] < 0 ? "(no name)" : this.texts[lane.text[row]];
  }
  /** First row of a level that may end after `time`: rows of a level hardly overlap. */
  from(lane, level, time) {
    let low = lane.firsts[level], high = lane.firsts[level + 1];
    const first = low;
    while (low < high) { const middle = (low + high) >> 1; if (lane.start[middle] < time) low = middle + 1; else high = middle; }
    return Math.max(first, low - 2);
  }
  at(lane, level, time, slack) {
    const end = lane.firsts[level + 1];
    let found = -1;
    for (let row = this.from(lane, level, time - slack); row < end && lane.start[row] <= time + slack; row++) {
      if (lane.start[row] + lane.length[row] < time - slack) continue;
      if (found < 0 || (lane.start[row] <= time && lane.length[row] > lane.length[found])) found = row;
    }
    return found;
  }
  /** The Python frames around a moment of a host thread, innermost first. */
  frames(lane, time) {
    const python = this.list.find((each) => each.kind === "python" && each.name === lane.name && each.group === lane.group);
    const found = [];
    for (let level = 0; python && level < python.levels; level++) {
      const row = this.at(python, level, time, 0);
      if (row < 0 || python.start[row] > time || python.start[row] + python.length[row] < time) break;
      found.unshift(this.name(python, row) + (python.more[row] ? ` (${python.more[row] + 1} merged)` : ""));
    }
    return found;
  }
  /** Rows whose name holds `words`, by time. */
  search(words) {
    const held = new Uint8Array(this.texts.length), found = [];
    this.texts.forEach((text, place) => { if (text.toLowerCase().includes(words)) held[place] = 1; });
    const causes = this.about.causes.map((cause) => `idle: ${cause}`.includes(words));
    for (const lane of this.list) {
      for (let row = 0; row < lane.n; row++) {
        const text = lane.text[row];
        if (text >= 0 && (lane.kind === "idle" ? causes[text] : held[text])) found.push([lane, row]);
      }
    }
    return found.sort((a, b) => a[0].start[a[1]] - b[0].start[b[1]]);
  }
  /** The row of a name that lies nearest to `start`; the longest one where no start is given. */
  nearest(name, start) {
    let best = null, score = Infinity;
    for (const lane of this.list) {
      for (let row = 0; row < lane.n; row++) {
        if (lane.text[row] < 0 || this.name(lane, row) !== name) continue;
        const mine = start === null ? -lane.length[row] : Math.abs(lane.start[row] - start);
        if (mine < score) { score = mine; best = [lane, row]; }
      }
    }
    return best;
  }
  /** Names between two moments with their rows and time, most time first; blocks count as what they stand for. */
  summary(low, high, shown) {
    const sums = new Map();
    for (const lane of this.list) {
      if (!shown(lane)) continue;
      for (let level = 0; level < lane.levels; level++) {
        for (let row = this.from(lane, level, low); row < lane.firsts[level + 1] && lane.start[row] < high; row++) {
          const end = lane.start[row] + lane.length[row];
          if (end <= low) continue;
          const inside = Math.min(end, high) - Math.max(lane.start[row], low);
          const share = lane.length[row] > 0 ? inside / lane.length[row] : 1;
          const key = `${lane.kind}\u0000${this.name(lane, row)}`;
          const entry = sums.get(key) || [this.name(lane, row), lane.kind, 0, 0, 0];
          entry[2] += lane.more[row] + 1;
          entry[3] += lane.more[row] ? lane.held[row] * share : inside;
          if (lane.more[row]) entry[4] += lane.more[row] + 1;
          sums.set(key, entry);
        }
      }
    }
    return [...sums.values()].sort((a, b) => b[3] - a[3]);
  }
}
