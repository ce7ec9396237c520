// Timeline: optional series on top, event lanes below, one axis and one hairline through all.
// Arrow keys walk the events; near marks merge into one with a count. Where a stretch can be chosen, it is
// dragged over, or + and - go closer and wider, and Shift with an arrow goes along.
import { abs, day, esc, hm, hms, now } from './fmt.js';
import { brush } from './brush.js';
import { own } from './dom.js';
import { hideTip, showTip, tell } from './tips.js';

const MINUTE = 60e3, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [MINUTE / 12, MINUTE / 6, MINUTE / 2, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 365 * DAY];
const KEYS = { '+': 'closer', '=': 'closer', '-': 'wider' }, SHIFTED = { ArrowLeft: 'earlier', ArrowRight: 'later' };
const TONES = { ok: 'var(--ok-f)', busy: 'var(--busy-f)', warn: 'var(--warn-f)', crit: 'var(--crit-f)', save: 'var(--save-f)', ink: 'var(--ink-2)', idle: 'var(--c-mute)' };
const tone = name => TONES[name] ?? 'var(--ink-2)';

export function ticks(from, to, px) {
  const step = STEPS.find(s => s >= (to - from) / Math.max(2, px / 92)) ?? STEPS.at(-1), out = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return [out, step];
}
export const tickText = (t, step) => (step >= DAY || hm(t) === '00:00' ? day(t) : step < MINUTE ? hms(t) : hm(t));

export class Timeline {
  constructor(host, options) {
    this.host = host; this.o = { gutter: 104, right: 14, series: [], lanes: [], events: [], ...options };
    own(host); host.classList.add('tl'); host.dataset.reads = '';
    new ResizeObserver(() => this.draw()).observe(host);
    for (const name of ['hw:theme', 'hw:tz']) document.addEventListener(name, () => this.draw());
    this.listen();
    if (!this.o.choose) return;
    host.tabIndex = 0; host.setAttribute('role', 'group'); host.setAttribute('aria-label', `${this.o.label}: plus and minus go closer and wider, Shift with an arrow goes along`);
    brush(this, this.o.choose);
  }
  set(options) { Object.assign(this.o, options); if (!this.dragged && !this.host.querySelector('.ev:focus')) this.draw(); }
  x(t) { return this.left + (t - this.o.from) / (this.o.to - this.o.from) * this.width; }
  time(x) { return this.o.from + (x - this.left) / this.width * (this.o.to - this.o.from); }

  draw() {
    const o = this.o, w = this.host.clientWidth;
    if (!w || !(o.to > o.from)) return;
    this.left = o.gutter; this.width = w - o.gutter - o.right; this.shown = [];
    this.bottom = 6 + o.series.reduce((s, x) => s + x.height + 8, 0) + o.lanes.reduce((s, x) => s + (x.height ?? 20), 0);
    const parts = [this.axis()];
    let y = 6;
    for (const s of o.series) { parts.push(this.series(s, y)); y += s.height + 8; }
    for (const lane of o.lanes) { parts.push(this.lane(lane, y)); y += lane.height ?? 20; }
    const x = this.x(now());
    if (x <= this.left + this.width + 1) parts.push(`<line class="now" x1="${x}" x2="${x}" y1="0" y2="${this.bottom + 3}"/><text x="${Math.min(x, w - 13)}" y="${this.bottom + 15}" text-anchor="middle" class="day">now</text>`);
    parts.push(`<line class="hair" x1="-9" x2="-9" y1="0" y2="${this.bottom + 2}"/>`);
    this.host.innerHTML = `<svg height="${this.bottom + 20}" viewBox="0 0 ${w} ${this.bottom + 20}" role="group" aria-label="${esc(o.label ?? 'Timeline')}">${parts.join('')}</svg>`;
    if (this.pointer) this.readAgain(this.pointer);
  }
  // Under a pointer that rests the line and what it reads go on with the picture.
  readAgain({ clientX, clientY }) {
    document.elementFromPoint(clientX, clientY)?.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, clientX, clientY }));
  }
  axis() {
    const [list, step] = ticks(this.o.from, this.o.to, this.width);
    return list.map(t => {
      const x = this.x(t), text = tickText(t, step);
      if (x < this.left + 2) return '';
      return `<line class="tick" x1="${x}" x2="${x}" y1="2" y2="${this.bottom + 2}"/>${x < this.left + this.width - 34 ? `<text x="${x}" y="${this.bottom + 15}" text-anchor="middle" ${/[A-Z]/.test(text) ? 'class="day"' : ''}>${text}</text>` : ''}`;
    }).join('');
  }
  series(s, y) {
    const top = Math.max(...s.points.map(p => p[1] ?? 0), s.limit ?? 0, 1e-9) * 1.1, Y = v => y + s.height - v / top * s.height;
    const runs = [[]];
    let last = null;
    for (const [t, v] of s.points) {
      if (v === null || (last !== null && s.gap && t - last > s.gap)) runs.push([]);
      if (v !== null) { runs.at(-1).push(`${this.x(t).toFixed(1)} ${Y(v).toFixed(1)}`); last = t; }
    }
    const paths = runs.filter(r => r.length > 1).map(r => `<path d="M${r.join('L')}L${r.at(-1).split(' ')[0]} ${y + s.height}L${r[0].split(' ')[0]} ${y + s.height}Z" fill="${s.colour}" opacity=".12"/><path d="M${r.join('L')}" fill="none" stroke="${s.colour}" stroke-width="1.4" stroke-linejoin="round"/>`);
    const limit = s.limit ? `<line class="limit" x1="${this.left}" x2="${this.left + this.width}" y1="${Y(s.limit)}" y2="${Y(s.limit)}" stroke="${s.colour}"/>` : '';
    return `${paths.join('')}${limit}<text x="0" y="${y + 11}" class="strong">${esc(s.label)}</text><text x="0" y="${y + 26}">${esc(s.note ?? '')}</text>`;
  }
  lane(lane, y) {
    const h = lane.height ?? 20, cy = y + h / 2, out = [`<line class="lane" x1="${this.left}" x2="${this.left + this.width}" y1="${y + h}" y2="${y + h}"/><text x="0" y="${cy + 4}" class="strong">${esc(lane.label)}</text>`];
    const events = this.o.events.filter(e => e.lane === lane.id && (e.until_ms ?? e.at_ms) >= this.o.from && e.at_ms <= this.o.to).sort((a, b) => a.at_ms - b.at_ms);
    let group = [];
    const flush = () => { if (group.length) out.push(...this.merged(group, lane, cy, h)); group = []; };
    for (const e of events) {
      if (group.length && (lane.bars || this.x(e.at_ms) - this.x(group.at(-1).at_ms) > 11)) flush();
      group.push(e);
    }
    flush();
    return out.join('');
  }
  merged(group, lane, cy, h) {
    if (group.length === 1 || lane.bars || group.some(e => e.kind === 'band')) return group.map(e => this.mark(e, cy, h));
    const worst = group.find(e => e.tone === 'crit') ?? group.find(e => e.tone === 'warn') ?? group[0];
    const middle = (group[0].at_ms + group.at(-1).at_ms) / 2;
    return [this.mark({ ...worst, at_ms: middle, id: `${group[0].id}+`, title: `${group.length} ${lane.label.toLowerCase()}`, lines: group.map(e => `${hms(e.at_ms)}  ${e.title}`) }, cy, h, group.length)];
  }
  mark(e, cy, h, count) {
    this.shown.push(e);
    const x = this.x(e.at_ms), x2 = e.until_ms ? Math.max(x + 3, this.x(e.until_ms)) : x, silent = e.kind === 'bar';
    const first = !silent && this.shown.filter(s => s.kind !== 'bar').length === 1;
    return `<g class="ev" data-id="${esc(e.id)}" ${silent ? 'aria-hidden="true"' : `tabindex="${first ? 0 : -1}" role="img" aria-label="${esc(`${hm(e.at_ms)}, ${e.title}`)}"`}><rect x="${x - 7}" y="${cy - h / 2}" width="${silent ? 4 : x2 - x + 14}" height="${h}" fill="transparent"/>${this.shape(e, x, x2, cy, h)}${count ? `<text x="${x + 8}" y="${cy + 4}" class="many">${count}</text>` : ''}${silent ? '' : `<circle class="halo" cx="${(x + x2) / 2}" cy="${cy}" r="8.5"/>`}</g>`;
  }
  shape(e, x, x2, cy, h) {
    const c = tone(e.tone);
    switch (e.kind) {
      case 'band': return `<rect x="${x}" y="${cy - h / 2 + 2}" width="${x2 - x}" height="${h - 4}" rx="2" fill="${c}"/>`;
      case 'bar': { const tall = Math.max(2.5, (h - 3) * e.share); return `<rect x="${x - 1.2}" y="${cy + h / 2 - 1 - tall}" width="2.4" height="${tall}" rx=".6" fill="${c}"/>`; }
      case 'x': return `<path d="M${x - 3.4} ${cy - 3.4}l6.8 6.8m0-6.8l-6.8 6.8" stroke="${c}" stroke-width="1.9" stroke-linecap="round"/>`;
      case 'diamond': return `<path d="M${x} ${cy - 5.2}l5.2 5.2-5.2 5.2-5.2-5.2z" fill="${c}"/>`;
      case 'flag': return `<path d="M${x - 3} ${cy + 5.5}v-11h7.6l-1.8 2.6 1.8 2.6h-6" fill="${c}" stroke="${c}" stroke-width="1.2" stroke-linejoin="round"/>`;
      case 'ring': return `<circle cx="${x}" cy="${cy}" r="3.6" fill="none" stroke="${c}" stroke-width="1.8"/>`;
      default: return `<circle cx="${x}" cy="${cy}" r="3.4" fill="${c}"/>`;
    }
  }
  listen() {
    const host = this.host, lines = e => [e.title, ...(e.lines ?? []), ...(e.text ? [e.text] : []), ['', abs(e.at_ms)]];
    host.addEventListener('mousemove', event => {
      this.pointer = event;
      const box = host.getBoundingClientRect(), x = event.clientX - box.left;
      if (x < this.left || x > this.left + this.width) return hideTip();
      const hair = host.querySelector('.hair');
      hair?.setAttribute('x1', x); hair?.setAttribute('x2', x);
      const t = this.time(x), id = event.target.closest('.ev')?.dataset.id, hit = id && this.shown.find(e => String(e.id) === id);
      const near = s => s.points.reduce((b, p) => (Math.abs(p[0] - t) < Math.abs(b[0] - t) ? p : b), [Infinity, null])[1];
      showTip(hit ? lines(hit) : [[day(t), hms(t)], ...this.o.series.map(s => [s.label, near(s) === null ? 'no data' : s.format(near(s))])], event.clientX, box.top + (hit ? 6 : 2), box);
    });
    host.addEventListener('mouseleave', () => { this.pointer = null; hideTip(); });
    host.addEventListener('keydown', event => {
      const step = (event.shiftKey ? SHIFTED : KEYS)[event.key] ?? KEYS[event.key];
      if (step && this.o.step) { event.preventDefault(); event.stopPropagation(); host.focus(); hideTip(); return this.o.step(step); }
      const all = [...host.querySelectorAll('.ev[tabindex]')], i = all.indexOf(document.activeElement), next = all[i + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0)];
      if (!next || next === all[i]) return;
      event.preventDefault(); event.stopPropagation();
      if (i >= 0) all[i].tabIndex = -1;
      next.tabIndex = 0; next.focus();
      const e = this.shown.find(s => String(s.id) === next.dataset.id);
      if (e) tell(next, lines(e));
    });
  }
}
