// Line charts over time: uPlot with our tokens, synced cursors and a table for those who prefer one.
import uPlot from 'uplot';
import { $, colour, el, own } from './dom.js';
import { abs, day, hm, hms, tz } from './fmt.js';

const COLOURS = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--ink-2', '--c-mute'];
const SPANS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];

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
  constructor(host, { format, height = 220, sync = null, fromZero = false, label, narrow = false }) {
    Object.assign(this, { host, format, height, sync, fromZero, label, narrow, series: [] });
    own(host); host.classList.add('plot');
    host.innerHTML = '<div class="plot-c" role="img"></div><div class="legend plot-l"></div>';
    new ResizeObserver(() => this.u?.setSize({ width: $('.plot-c', host).clientWidth, height })).observe(host);
    for (const name of ['hw:theme', 'hw:tz']) document.addEventListener(name, () => { this.shape = null; this.set(this.series); });
    this.hidden = new Set();
    $('.plot-l', host).addEventListener('click', event => this.toggle(event.target.closest('[data-s]')?.dataset.s));
  }
  set(series) {
    this.series = series;
    const shape = series.map(s => s.name).join('\n');
    if (shape !== this.shape) { this.shape = shape; this.build(); }
    this.u.setData(columns(series));
    $('.plot-c', this.host).setAttribute('aria-label', `${this.label}: ${series.map(s => `${s.name} ${this.format(s.points.at(-1)?.[1] ?? 0)}`).join(', ')}`);
  }
  colourOf(s, i) { return COLOURS[(s.hue ?? i) % COLOURS.length]; }
  toggle(i) {
    if (i === undefined) return;
    const name = this.series[+i].name;
    if (this.hidden.has(name)) this.hidden.delete(name); else this.hidden.add(name);
    this.u.setSeries(+i + 1, { show: !this.hidden.has(name) });
    this.legend();
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
    $('.plot-l', this.host).replaceChildren(...nodes, when);
  }
  build() {
    this.u?.destroy();
    const ink = colour('--ink-3'), grid = colour('--grid'), host = $('.plot-c', this.host), font = '11px "Geist Variable", sans-serif';
    const axis = { stroke: ink, font, ticks: { show: false } };
    this.u = new uPlot({
      width: Math.max(80, host.clientWidth), height: this.height, legend: { show: false }, padding: [8, 14, 0, 0],
      cursor: { sync: this.sync ? { key: this.sync } : undefined, points: { size: 5 }, drag: { x: true, y: false } },
      scales: { x: { time: true }, y: { range: (u, a, b) => this.range(a, b) } },
      tzDate: ts => (tz.mode === 'UTC' ? uPlot.tzDate(new Date(ts * 1e3), 'Etc/UTC') : new Date(ts * 1e3)),
      axes: [{ ...axis, grid: { show: false }, size: 24, space: this.narrow ? 56 : 74, incrs: SPANS, values: (u, splits, i, space, step) => splits.map(t => (step >= 86400 ? `${day(t * 1e3)}` : step < 60 ? hms(t * 1e3) : hm(t * 1e3) === '00:00' ? day(t * 1e3) : hm(t * 1e3))) },
        { ...axis, grid: { stroke: grid, width: 1 }, size: 56, space: 36, gap: 6, values: (u, splits) => splits.map(v => this.format(v)) }],
      series: [{}, ...this.series.map((s, i) => ({ stroke: colour(this.colourOf(s, i)), width: s.width ?? 1.5, dash: s.dash, spanGaps: false, points: { show: false }, show: !this.hidden.has(s.name) }))],
      hooks: { setCursor: [u => this.legend(u.cursor.idx ?? null)], setData: [() => this.legend()] },
    }, [[]], host);
  }
  range(a, b) {
    if (a === null || b === null) return [0, 1];
    const low = this.fromZero ? Math.min(0, a) : a, pad = (b - low || Math.abs(b) || 1) * 0.08;
    return [this.fromZero && a >= 0 ? 0 : low - pad, b + pad];
  }
}
