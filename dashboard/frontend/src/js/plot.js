// Line charts over time: uPlot with our tokens, synced cursors and a table for those who prefer one.
// Dragging over one chooses a stretch of time: `choose(from, to)` gets it, or else the plot zooms and stays so.
import uPlot from 'uplot';
import { $, colour, el, own } from './dom.js';
import { abs, day, hm, hms, icon, tz } from './fmt.js';
import { plotTable } from './plot_table.js';

const COLOURS = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--ink-2', '--c-mute'];
const SPANS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];
// Steps of an upward axis that print as different, round words; without a unit any decimal will do.
const decimals = least => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].flatMap(n => [1, 2, 5].map(k => k * least * 10 ** n));
export const STEPS = {
  rate: decimals(0.1), percent: [1, 2, 5, 10, 20, 25, 50, 100],
  dur: [1, 2, 5, 10, 20, 50, 100, 200, 500, ...SPANS.flatMap(s => (s === 5 ? [1e3, 2e3, 5e3] : s * 1e3))],
  bytes: [0, 1, 2, 3, 4].flatMap(n => [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map(k => k * 1024 ** n)),
};

// Where a line stops: points further apart than its `gap` have nothing between them.
const broken = ({ points, gap }) => (gap ? points.flatMap((p, i) => (i && p[0] - points[i - 1][0] > gap ? [[points[i - 1][0] + 1, null], p] : [p])) : points);

// Series of [ms, value] on one shared axis of times.
function columns(drawn) {
  const series = drawn.map(s => ({ ...s, points: broken(s) }));
  const times = [...new Set(series.flatMap(s => s.points.map(p => p[0])))].sort((a, b) => a - b);
  const index = new Map(times.map((t, i) => [t, i]));
  return [times.map(t => t / 1000), ...series.map(s => {
    const column = new Array(times.length).fill(undefined); // not null: no gap where another line has a point
    for (const [t, v] of s.points) column[index.get(t)] = v;
    return column;
  })];
}

export class Plot {
  constructor(host, { format, height = 220, sync = null, fromZero = false, label, narrow = false, steps = null, choose = null }) {
    Object.assign(this, { host, format, height, sync, fromZero, label, narrow, steps, choose, series: [], span: null, zoom: null, table: null });
    own(host); host.classList.add('plot');
    host.innerHTML = `<div class="plot-c" role="img"></div><div class="legend plot-l"><span></span><button type="button" class="push" data-whole hidden>Whole time</button><button type="button" data-table aria-pressed="false" data-tip="As table">${icon('rows', 's')}</button></div>`;
    $('[data-table]', host).setAttribute('aria-label', `${label} as a table`);
    new ResizeObserver(() => this.u?.setSize({ width: $('.plot-c', host).clientWidth, height })).observe(host);
    for (const name of ['hw:theme', 'hw:tz']) document.addEventListener(name, () => { this.shape = null; this.set(this.series); });
    this.hidden = new Set();
    $('.plot-l', host).addEventListener('click', event => this.toggle(event.target.closest('[data-s]')?.dataset.s));
    $('[data-table]', host).addEventListener('click', () => this.asTable(!this.table));
    $('[data-whole]', host).addEventListener('click', () => this.zoomTo(null));
  }
  // span: [from, to] in ms that the axis shows; without one it shows what there is.
  set(series, span = null) {
    Object.assign(this, { series, span });
    const shape = series.map(s => s.name).join('\n');
    if (shape !== this.shape) { this.shape = shape; this.build(); }
    this.fill();
    $('.plot-c', this.host).setAttribute('aria-label', `${this.label}: ${series.map(s => `${s.name} ${s.points.at(-1)?.[1] == null ? 'not known' : this.format(s.points.at(-1)[1])}`).join(', ')}`);
    // Nobody's row moves while it is read.
    if (this.table && !this.table.matches(':hover, :focus-within')) this.asTable(true);
  }
  fill() {
    const scale = this.zoom ?? this.span;
    this.u.setData(columns(this.series), !scale);
    if (scale) this.u.setScale('x', { min: scale[0] / 1000, max: scale[1] / 1000 });
  }
  zoomTo(scale) {
    this.zoom = scale; $('[data-whole]', this.host).hidden = !scale;
    this.fill();
    if (this.table) this.asTable(true);
  }
  // What was dragged over, here or on a plot with the same cursor.
  dragged() {
    const { left, width } = this.u.select;
    if (!width) return;
    const at = x => Math.round(this.u.posToVal(x, 'x') * 1000), chosen = [at(left), at(left + width)];
    this.u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (this.choose) this.choose(...chosen); else this.zoomTo(chosen);
  }
  asTable(on) {
    this.table?.remove(); this.table = null;
    $('[data-table]', this.host).setAttribute('aria-pressed', on); $('.plot-c', this.host).hidden = on;
    if (!on) return;
    const shown = this.series.map((s, i) => ({ s, column: this.u.data[i + 1] })).filter(({ s }) => !this.hidden.has(s.name)), { min, max } = this.u.scales.x;
    this.table = plotTable(this.label, shown.map(one => one.s), [this.u.data[0], ...shown.map(one => one.column)], this.zoom ?? this.span ?? [(min ?? 0) * 1000, (max ?? 0) * 1000], this.format);
    $('.plot-c', this.host).after(this.table);
  }
  colourOf(s, i) { return COLOURS[(s.hue ?? i) % COLOURS.length]; }
  toggle(i) {
    if (i === undefined) return;
    const name = this.series[+i].name;
    if (this.hidden.has(name)) this.hidden.delete(name); else this.hidden.add(name);
    this.u.setSeries(+i + 1, { show: !this.hidden.has(name) });
    this.legend();
    if (this.table) this.asTable(true);
  }
  legend(at = null) {
    const nodes = this.series.map((s, i) => {
      const node = el(`<button type="button" data-s="${i}" aria-pressed="${!this.hidden.has(s.name)}"><i class="sw"></i><span></span><b></b></button>`), v = at === null ? s.points.at(-1)?.[1] : this.u.data[i + 1][at];
      $('.sw', node).style.background = `var(${this.colourOf(s, i)})`;
      if (s.dash) $('.sw', node).classList.add('dash');
      $('span', node).textContent = s.name; $('b', node).textContent = v == null ? '–' : this.format(v);
      return node;
    });
    const when = el('<span class="when"></span>');
    if (at !== null) when.textContent = abs(this.u.data[0][at] * 1000);
    $('.plot-l > span', this.host).replaceChildren(...nodes, when);
  }
  build() {
    this.u?.destroy();
    const ink = colour('--ink-3'), grid = colour('--grid'), host = $('.plot-c', this.host), font = '11px "Geist Variable", sans-serif';
    const axis = { stroke: ink, font, ticks: { show: false } };
    this.u = new uPlot({
      width: Math.max(80, host.clientWidth), height: this.height, legend: { show: false }, padding: [8, 14, 0, 0],
      cursor: { sync: this.sync ? { key: this.sync } : undefined, points: { size: 5 }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => this.zoomTo(null) } },
      scales: { x: { time: true }, y: { range: (u, a, b) => this.range(a, b) } },
      tzDate: ts => (tz.mode === 'UTC' ? uPlot.tzDate(new Date(ts * 1e3), 'Etc/UTC') : new Date(ts * 1e3)),
      axes: [{ ...axis, grid: { show: false }, size: 24, space: this.narrow ? 56 : 74, incrs: SPANS, values: (u, splits, i, space, step) => splits.map(t => (step >= 86400 ? `${day(t * 1e3)}` : step < 60 ? hms(t * 1e3) : hm(t * 1e3) === '00:00' ? day(t * 1e3) : hm(t * 1e3))) },
        { ...axis, grid: { stroke: grid, width: 1 }, size: 56, space: 36, gap: 6, ...(this.steps ? { incrs: this.steps } : {}), values: (u, splits) => splits.map(v => this.format(v)) }],
      series: [{}, ...this.series.map((s, i) => ({ stroke: colour(this.colourOf(s, i)), width: s.width ?? 1.5, dash: s.dash, spanGaps: false, points: { show: false }, show: !this.hidden.has(s.name) }))],
      hooks: { setCursor: [u => this.legend(u.cursor.idx ?? null)], setData: [() => this.legend()], setSelect: [() => this.dragged()] },
    }, [[]], host);
  }
  range(a, b) {
    if (a === null || b === null) return [0, 1];
    const low = this.fromZero ? Math.min(0, a) : a, pad = (b - low || Math.abs(b) || 1) * 0.08;
    return [this.fromZero && a >= 0 ? 0 : low - pad, b + pad];
  }
}
