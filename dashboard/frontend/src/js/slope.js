// Catching up: wall clock across, event time up. The slope is the speed, the gap is the delay.
import { $, own } from './dom.js';
import { abs, durT, esc, hm, now, rateT, stamp } from './fmt.js';
import { plotTable } from './plot_table.js';
import { ticks, tickText } from './timeline.js';

const HEIGHT = 248, LEFT = 76, RIGHT = 10, TOP = 20, BOTTOM = 24;

// What held it back on purpose, in words; empty: nothing did.
const pace = ([, , , , rows = null, times = null]) => (rows === 0 ? 'paused' : rows !== null ? `at most ${rateT(rows)}` : times !== null ? `at most ${times}× real time` : '');

export class Slope {
  constructor(host) {
    this.host = host; this.state = { points: [], eta: null }; this.table = null; own(host);
    this.button = $(`[aria-controls=${host.id}]`);
    this.button?.addEventListener('click', () => this.asTable(!this.table));
    new ResizeObserver(() => this.draw()).observe(host);
    for (const name of ['hw:theme', 'hw:tz']) document.addEventListener(name, () => this.draw());
  }
  // points: [wall ms, replay's event ms, live event ms, restarts, rows a second at most, times real time at most];
  // eta: {low, high} in seconds, or null
  set(state) {
    Object.assign(this.state, state);
    // Nobody's row moves while it is read.
    if (this.table) { if (!this.table.matches(':hover, :focus-within')) this.asTable(true); } else this.draw();
  }
  get points() { return this.state.points.filter(p => p[1] !== null && p[2] !== null); }

  // The same points, the newest first: how far both were, and how far apart.
  asTable(on) {
    this.table = null; this.button.setAttribute('aria-pressed', on);
    if (!on) return this.draw();
    const points = this.points, columns = [points.map(p => p[0] / 1000), points.map(p => abs(p[1])), points.map(p => abs(p[2])), points.map(p => durT(Math.max(0, p[2] - p[1])))];
    this.table = plotTable('Catching up to live', [{ name: this.host.dataset.name }, { name: 'Live' }, { name: 'Behind' }], columns, [-Infinity, Infinity], text => text);
    this.host.replaceChildren(this.table);
  }
  draw() {
    const points = this.points, w = this.host.clientWidth;
    if (this.table || points.length < 2 || w < 120) return;
    const last = points.at(-1), eta = this.state.eta && this.state.eta.high !== null ? this.state.eta : null;
    const x0 = points[0][0], x1 = eta ? last[0] + Math.max(eta.high * 1000 * 1.15, (last[0] - x0) * 0.12) : last[0] + Math.max(1000, (last[0] - x0) * 0.06);
    const liveSlope = (last[2] - points[0][2]) / Math.max(1, last[0] - x0), live = t => last[2] + liveSlope * (t - last[0]);
    const y0 = Math.min(...points.map(p => Math.min(p[1], p[2]))), y1 = Math.max(live(x1), ...points.map(p => Math.max(p[1], p[2])));
    const X = t => LEFT + (t - x0) / (x1 - x0) * (w - LEFT - RIGHT), Y = e => HEIGHT - BOTTOM - (e - y0) / (y1 - y0 || 1) * (HEIGHT - TOP - BOTTOM);
    const path = i => `M${points.map(p => `${X(p[0]).toFixed(1)} ${Y(p[i]).toFixed(1)}`).join('L')}`;
    const s = [this.grid(x0, x1, y0, y1, X, Y, w)];
    s.push(`<path d="${path(1)}L${[...points].reverse().map(p => `${X(p[0]).toFixed(1)} ${Y(p[2]).toFixed(1)}`).join('L')}Z" fill="var(--c1)" opacity=".06"/>`);
    s.push(`<path d="${path(2)}" fill="none" stroke="var(--ink-2)" stroke-width="1.5"/><path d="${path(1)}" fill="none" stroke="var(--c1)" stroke-width="2" stroke-linejoin="round"/>`);
    s.push(this.marks(points, X, Y, w));
    if (eta) s.push(this.projection(last, eta, live, X, Y, x1, w));
    const gap = last[2] - last[1], px = Y(last[1]) - Y(last[2]);
    if (px > 26) s.push(`<line x1="${X(last[0])}" x2="${X(last[0])}" y1="${Y(last[2]) + 3}" y2="${Y(last[1]) - 6}" stroke="var(--ink-3)" stroke-dasharray="1.5 3"/><text x="${X(last[0]) - 7}" y="${(Y(last[1]) + Y(last[2])) / 2 + 4}" text-anchor="end" class="lb ink">${durT(gap)} to close</text>`);
    s.push(`<circle cx="${X(last[0])}" cy="${Y(last[1])}" r="4" fill="var(--c1)" stroke="var(--panel)" stroke-width="2"/>`);
    this.host.innerHTML = `<svg height="${HEIGHT}" viewBox="0 0 ${w} ${HEIGHT}" role="img" aria-label="${esc(`The replay has reached ${abs(last[1])}, the live job ${abs(last[2])}`)}">${s.join('')}</svg>`;
  }
  grid(x0, x1, y0, y1, X, Y, w) {
    const [xs, xStep] = ticks(x0, x1, w - LEFT), [ys] = ticks(y0, y1, (HEIGHT - TOP) * 2.2);
    return xs.map(t => `<line x1="${X(t)}" x2="${X(t)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="var(--grid)"/><text x="${X(t)}" y="${HEIGHT - 7}" text-anchor="middle">${tickText(t, xStep)}</text>`).join('')
      + ys.map(e => `<line x1="${LEFT}" x2="${w - RIGHT}" y1="${Y(e)}" y2="${Y(e)}" stroke="var(--grid)"/><text x="0" y="${Y(e) + 4}">${stamp(e).replace(/ 00:00$/, '')}</text>`).join('');
  }
  // What befell it on the way: a ring where its run was started again, a note under each stretch with a limit.
  marks(points, X, Y, w) {
    const s = [], stretches = [];
    for (const [i, p] of points.entries()) {
      const before = points[i - 1];
      if (before && (p[3] ?? 0) > (before[3] ?? 0)) s.push(`<g data-restart><title>${esc(`restarted by ${abs(p[0])}; ${p[3]} in all`)}</title><circle cx="${X(p[0])}" cy="${Y(p[1])}" r="4.5" fill="var(--panel)" stroke="var(--crit-f)" stroke-width="2"/><text x="${X(p[0])}" y="${Y(p[1]) + 17}" text-anchor="middle" class="lb">restarted</text></g>`);
      if (before && pace(before) === pace(p)) stretches.at(-1).push(p); else stretches.push([p]);
    }
    for (const part of stretches.filter(part => pace(part[0]) && part.length > 1).slice(-4)) {
      const first = part[0], end = part.at(-1), middle = part[part.length >> 1];
      s.push(`<text x="${Math.min(Math.max(X(middle[0]), LEFT + 80), w - RIGHT - 80)}" y="${Math.min(Y(middle[1]) + 18, HEIGHT - BOTTOM - 4)}" text-anchor="middle">${esc(pace(first))}, ${hm(first[0])} to ${hm(end[0])}</text>`);
    }
    return s.join('');
  }
  // Where it meets live, and the wedge of what is not certain.
  projection(last, eta, live, X, Y, x1, w) {
    const early = last[0] + eta.low * 1000, late = last[0] + eta.high * 1000, meet = (early + late) / 2;
    return `<path d="M${X(last[0])} ${Y(last[2])}L${X(x1)} ${Y(live(x1))}" stroke="var(--ink-2)" stroke-width="1.2" stroke-dasharray="3 3"/>`
      + `<path d="M${X(last[0])} ${Y(last[1])}L${X(early)} ${Y(live(early))}L${X(late)} ${Y(live(late))}Z" fill="var(--c1)" opacity=".12"/>`
      + `<path d="M${X(last[0])} ${Y(last[1])}L${X(meet)} ${Y(live(meet))}" stroke="var(--c1)" stroke-width="1.6" stroke-dasharray="4 4"/>`
      + `<circle cx="${X(meet)}" cy="${Y(live(meet))}" r="4.5" fill="var(--panel)" stroke="var(--c1)" stroke-width="2"/><text x="${Math.min(X(meet) + 40, w - RIGHT)}" y="${Y(live(meet)) - 9}" text-anchor="end" class="lb busy">meets live in ${durT(Math.max(0, meet - now()))}</text>`;
  }
}
