// The subtasks along time, as a strip of cells: a row each, by place; a column each ten seconds.
//
//   look    what all subtasks said in one column, and per measure the strength of each row, worked out once
//
// The engine keeps no history of single subtasks, so the strip begins when the page was opened.
import { $, colour, own } from './dom.js';
import { hms, known } from './fmt.js';
import { MEASURES } from './subtasks.js';
import { hideTip, showTip } from './tips.js';

const EVERY = 10e3, COLUMNS = 180, TALLEST = 14, MOST_ROWS = 320, GUTTER = 92, PALEST = 16;
const highest = (a, b) => (known(b) && !(a >= b) ? b : a);

export class Heat {
  constructor(host) {
    Object.assign(this, { host, measure: 'rate', looks: [], rows: [], opened: null });
    own(host);
    host.innerHTML = '<canvas role="img"></canvas><p class="row mut small"><span></span><span class="push"></span></p>';
    new ResizeObserver(() => this.draw()).observe(host);
    for (const name of ['hw:theme', 'hw:tz']) document.addEventListener(name, () => this.draw());
    host.addEventListener('mousemove', event => this.over(event));
    host.dataset.reads = ''; host.addEventListener('mouseleave', hideTip);
  }
  choose(measure) { this.measure = measure; this.draw(); }

  // columns: as `measured()` gives them. Of the looks within ten seconds the last one holds.
  add(columns, at) {
    this.opened ??= at;
    const slot = Math.floor(at / EVERY), rows = this.grouped(columns);
    if (String(rows) !== String(this.rows)) { this.looks = []; this.rows = rows; this.hosts = new Map(columns.index.map((index, i) => [index, columns.host[i]])); }
    if (this.looks.at(-1)?.slot === slot) this.looks.pop();
    this.looks.push({ slot, columns, place: new Map(columns.index.map((index, i) => [index, i])), strength: {} });
    while (this.looks[0].slot <= slot - COLUMNS) this.looks.shift();
    this.draw();
  }
  // The subtasks of each row: one, or a few neighbours where there are more than rows.
  grouped({ index, host }) {
    const ordered = index.map((one, i) => [host[i], one]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1])).map(pair => pair[1]), each = Math.ceil(ordered.length / MOST_ROWS);
    return Array.from({ length: Math.ceil(ordered.length / each) || 0 }, (_, i) => ordered.slice(i * each, (i + 1) * each));
  }
  values(look) {
    const column = look.columns[this.measure];
    return look.strength[this.measure] ??= this.rows.map(row => row.reduce((found, index) => highest(found, column[look.place.get(index)]), null));
  }

  draw() {
    const canvas = $('canvas', this.host), w = this.host.clientWidth, ratio = devicePixelRatio || 1;
    if (!this.looks.length || !this.rows.length || w < 200) return;
    this.tall = Math.max(2, Math.min(TALLEST, Math.floor(MOST_ROWS / this.rows.length))); this.wide = (w - GUTTER) / COLUMNS; this.end = this.looks.at(-1).slot;
    const height = this.tall * this.rows.length, top = this.looks.flatMap(look => this.values(look)).reduce(highest, null), pen = canvas.getContext('2d');
    canvas.width = w * ratio; canvas.height = height * ratio;
    Object.assign(canvas.style, { width: `${w}px`, height: `${height}px` });
    pen.scale(ratio, ratio); pen.imageSmoothingEnabled = false;
    pen.fillStyle = colour('--sunk'); pen.fillRect(GUTTER, 0, w - GUTTER, height);
    pen.drawImage(this.cells(top), GUTTER, 0, w - GUTTER, height);
    this.names(pen);
    this.say(canvas, top);
  }
  cells(top) {
    const cells = new OffscreenCanvas(COLUMNS, this.rows.length), pen = cells.getContext('2d'), image = pen.createImageData(COLUMNS, this.rows.length), [r, g, b] = colour('--busy-f').match(/\d+/g).map(Number);
    for (const look of this.looks) this.values(look).forEach((v, i) => {
      if (known(v)) image.data.set([r, g, b, PALEST + (255 - PALEST) * (top > 0 ? Math.max(0, v) / top : 0)], 4 * (i * COLUMNS + COLUMNS - 1 - this.end + look.slot));
    });
    pen.putImageData(image, 0, 0);
    return cells;
  }
  names(pen) {
    let free = 0;
    Object.assign(pen, { fillStyle: colour('--ink-3'), font: '11px "Geist Variable", sans-serif', textBaseline: 'top' });
    this.rows.forEach((row, i) => {
      const name = this.hosts.get(row[0]), y = i * this.tall;
      if (y < free || (i && this.hosts.get(this.rows[i - 1][0]) === name)) return;
      pen.fillText(name, 0, y, GUTTER - 8); free = y + 13;
    });
  }
  say(canvas, top) {
    const [name, text] = MEASURES[this.measure], [scale, since] = this.host.querySelectorAll('p span'), each = this.rows[0].length;
    scale.textContent = top === null ? `${name}: not known yet` : `Palest 0, darkest ${text(top)}${each > 1 ? `; each row the highest of ${each}` : ''}`;
    since.textContent = `Since this page was opened at ${hms(Math.max(this.opened, this.looks[0].slot * EVERY))}, half an hour at most: the engine keeps none of it`;
    canvas.setAttribute('aria-label', `${name} of each subtask along time. ${scale.textContent}`);
  }
  over(event) {
    const box = this.host.getBoundingClientRect(), at = Math.floor((event.clientY - box.top) / this.tall), row = this.rows[at], slot = this.end - COLUMNS + 1 + Math.floor((event.clientX - box.left - GUTTER) / this.wide), look = this.looks.find(one => one.slot === slot);
    if (!row || !look) return hideTip();
    showTip([[row.length > 1 ? `Subtasks ${row.join(', ')}` : `Subtask ${row[0]}`, MEASURES[this.measure][1](this.values(look)[at])], ['on', this.hosts.get(row[0])], ['at', hms(slot * EVERY)]], event.clientX, box.top, box);
  }
}
