// Formatting of every number, state and time on screen. dashboard/fmt.py prints the same strings;
// tests/dashboard/format.json holds both to it.
import states from '../../../states.json';

export const MISSING = '<span class="mut">–</span>';
export const esc = s => String(s).replace(/[&<>"']/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c]);
export const icon = (name, size = '') => `<svg class="i ${size}" aria-hidden="true"><use href="#i-${name}"/></svg>`;
export const glyph = name => `<svg class="g" aria-hidden="true"><use href="#g-${name}"/></svg>`;

// The server's clock, with which ages count: the page brings it, hello and heartbeats correct it. A
// page gone back to may be an old one from the cache, and then the browser's clock is the better one.
function brought() {
  const told = Number(globalThis.document?.documentElement.dataset.now), [visit] = told ? performance.getEntriesByType('navigation') : [];
  return visit && visit.type !== 'back_forward' ? told - performance.timeOrigin - visit.responseStart : 0;
}
export const clock = { offset: brought() };
export const now = () => Date.now() + clock.offset;

export const known = v => v !== null && v !== undefined && Number.isFinite(v);
const grouped = v => Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, ',');
const digits3 = v => (v >= 99.95 ? String(Math.round(v)) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2));

export function rateParts(v) {
  if (!known(v)) return null;
  if (v >= 999.5e3) return [digits3(v / 1e6), 'M/s'];
  if (v >= 999.5) return [digits3(v / 1e3), 'k/s'];
  return [v >= 9.95 || v === 0 ? String(Math.round(v)) : v.toFixed(1), '/s'];
}
export function countParts(v) {
  if (!known(v)) return null;
  if (v >= 999.5e6) return [(v / 1e9).toFixed(2), 'B'];
  if (v >= 999.5e3) return [digits3(v / 1e6), 'M'];
  if (v >= 9999.5) return [digits3(v / 1e3), 'k'];
  return [grouped(v), ''];
}
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
export function bytesParts(v) {
  if (!known(v)) return null;
  let i = 0;
  while (v >= 1023.5 && i < 4) { v /= 1024; i++; }
  return [i ? digits3(v) : String(Math.round(v)), UNITS[i]];
}
export function percentParts(v) {
  if (!known(v)) return null;
  for (let d = 0; d < 4; d++) if (v >= 100 || Number(v.toFixed(d)) < 100) return [v.toFixed(d), '%'];
  return ['99.999', '%'];
}
// How many times as fast as real time.
export function timesParts(v) {
  if (!known(v)) return null;
  if (v >= 999.5e3) return [digits3(v / 1e6), 'M×'];
  if (v >= 9999.5) return [digits3(v / 1e3), 'k×'];
  return [v === 0 ? '0' : v >= 99.95 ? grouped(v) : v >= 9.95 ? v.toFixed(1) : v.toFixed(2), '×'];
}
const two = n => String(Math.floor(n)).padStart(2, '0');
// Two units at most: 480 ms, 3.1 s, 24 s, 2m 41s, 5h 13m, 2d 09h. Cut off, never rounded up.
export function durParts(v) {
  if (!known(v)) return null;
  const ms = Math.floor(Math.abs(v)), s = Math.floor(ms / 1000);
  if (ms < 1000) return [`${ms}`, 'ms'];
  if (ms < 10000) return [`${s}.${Math.floor(ms % 1000 / 100)}`, 's'];
  if (s < 60) return [`${s}`, 's'];
  if (s < 3600) return [`${Math.floor(s / 60)}`, 'm', two(s % 60), 's'];
  if (s < 86400) return [`${Math.floor(s / 3600)}`, 'h', two(s % 3600 / 60), 'm'];
  return [`${Math.floor(s / 86400)}`, 'd', two(s % 86400 / 3600), 'h'];
}

const html = parts => {
  if (!parts) return MISSING;
  if (parts.length === 4) return `<span class="n">${parts[0]}<span class="u t">${parts[1]}</span> ${parts[2]}<span class="u t">${parts[3]}</span></span>`;
  return parts[1] ? `<span class="n">${parts[0]}<span class="u">${parts[1]}</span></span>` : `<span class="n">${parts[0]}</span>`;
};
const text = parts => {
  if (!parts) return '–';
  if (parts.length === 4) return `${parts[0]}${parts[1]} ${parts[2]}${parts[3]}`;
  return parts[1] ? `${parts[0]} ${parts[1]}` : parts[0];
};
export const rate = v => html(rateParts(v)), rateT = v => text(rateParts(v));
export const count = v => html(countParts(v)), countT = v => text(countParts(v));
export const bytes = v => html(bytesParts(v)), bytesT = v => text(bytesParts(v));
export const percent = v => html(percentParts(v)), percentT = v => text(percentParts(v));
export const wholePercentT = v => percentT(known(v) ? Math.round(v) : null);
export const times = v => html(timesParts(v)), timesT = v => text(timesParts(v));
export const dur = v => html(durParts(v)), durT = v => text(durParts(v));
export const whole = v => (known(v) ? `<span class="n">${grouped(v)}</span>` : MISSING);

// ---- times: UTC unless the person asked for local ones
export const tz = { mode: 'UTC' };
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
function fields(t) {
  const d = new Date(t);
  return tz.mode === 'UTC'
    ? [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()]
    : [d.getFullYear(), d.getMonth(), d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()];
}
export const hm = t => { const f = fields(t); return `${two(f[3])}:${two(f[4])}`; };
export const hms = t => `${hm(t)}:${two(fields(t)[5])}`;
export const day = t => { const f = fields(t); return `${f[2]} ${MONTHS[f[1]]}`; };
export const abs = t => { const f = fields(t); return `${f[0]}-${two(f[1] + 1)}-${two(f[2])} ${hms(t)}`; };
// HH:MM today, D Mon HH:MM this year, D Mon YYYY HH:MM otherwise.
export function stamp(t, at = now()) {
  if (!known(t)) return '–';
  const f = fields(t), n = fields(at);
  if (f[0] !== n[0]) return `${day(t)} ${f[0]} ${hm(t)}`;
  return f[1] === n[1] && f[2] === n[2] ? hm(t) : `${day(t)} ${hm(t)}`;
}
export const iso = t => new Date(t).toISOString();
export const timeTag = t => (known(t) ? `<time datetime="${iso(t)}" data-as="stamp">${stamp(t)}</time>` : MISSING);
export const second = t => (known(t) ? `<time datetime="${iso(t)}" data-as="second">${hms(t)}</time>` : MISSING);
export function agoText(t, at = now()) {
  const s = Math.floor(Math.max(0, at - t) / 1000);
  return s < 1 ? 'now' : `${s < 10 ? `${s} s` : durT(s * 1000)} ago`;
}
export const ago = t => (known(t) ? `<time datetime="${iso(t)}" data-as="ago">${agoText(t)}</time>` : MISSING);
export const age = t => (known(t) ? `<time datetime="${iso(t)}" data-as="age">${agoText(t).replace(' ago', '')}</time>` : MISSING);

// ---- states: glyph, word, colour, in this order of importance
export const stateOf = name => states[name] ?? { glyph: 'queued', word: name ? String(name) : 'Unknown', tone: 'idle', group: 'stopped' };
export const badge = name => { const s = stateOf(name); return `<span class="st ${s.tone}">${glyph(s.glyph)}<span>${esc(s.word)}</span></span>`; };
export const pill = name => { const s = stateOf(name); return `<span class="st pill ${s.tone}">${glyph(s.glyph)}<span>${esc(s.word)}</span></span>`; };
export const mark = name => { const s = stateOf(name); return `<span class="st ${s.tone}">${glyph(s.glyph)}<span class="vh">${esc(s.word)}</span></span>`; };
export const word = name => { const s = stateOf(name); return `<span class="${{ crit: 't-crit', warn: 't-warn', busy: 'sub' }[s.tone] ?? 'mut'}">${esc(s.word)}</span>`; };

// ---- bars: SVG, so that no style attribute is needed
const share = v => Math.max(0, Math.min(100, known(v) ? v : 0)).toFixed(1).replace(/\.0$/, '');
export const bar = (v, tone = 'ink') => `<svg class="mbar" aria-hidden="true"><rect class="${tone}" width="${share(v)}%" height="100%"/></svg>`;
export function busyBar(row) {
  if (!row || !known(row.busy)) return '<svg class="mbar" aria-hidden="true"></svg>';
  const bp = known(row.bp) ? row.bp : 0, wait = bp > 50 ? 'crit' : bp > 10 ? 'warn' : '';
  return `<svg class="mbar" aria-hidden="true"><rect class="${row.busy > 90 ? 'warn' : 'ink'}" width="${share(row.busy)}%" height="100%"/>`
    + `<rect class="${wait}" x="${share(row.busy)}%" width="${share(bp)}%" height="100%"/><rect class="hatch" x="${share(row.busy)}%" width="${share(bp)}%" height="100%"/></svg>`;
}
export const busy = row => (row && known(row.busy) ? `${busyBar(row)}<span class="n${row.busy > 90 ? ' t-warn' : ''}">${Math.round(row.busy)}<span class="u">%</span></span>` : MISSING);
export const waiting = v => (known(v) && v >= 0.5 ? `<span class="n${v > 50 ? ' t-crit' : ' mut'}">${Math.round(v)}<span class="u">%</span></span>` : '<span class="mut">–</span>');
export const progress = v => (known(v) ? `${bar(v, 'busy')}<span class="n">${percent(v)}</span>` : MISSING);
export const tally = v => (known(v) ? `<span class="${v > 2 ? 't-crit' : v > 0 ? 't-warn' : 'mut'}">${grouped(v)}</span>` : MISSING);
export const alarm = v => (known(v) ? `<span class="n${v > 0 ? ' t-crit' : ''}">${grouped(v)}</span>` : MISSING);
// A delay; with an objective also a bar, in the middle of which the objective is.
export function delay(row) {
  const late = row?.delay_ms, goal = row?.goal_ms;
  if (!known(late) || !goal) return dur(late);
  const tone = late > 3 * goal ? 'crit' : late > goal ? 'warn' : '';
  return `<span class="${tone && `t-${tone}`}">${dur(late)}</span><svg class="bul" aria-hidden="true"><rect class="${tone || 'ink'}" width="${share(50 * late / goal)}%" height="100%"/><line x1="50%" x2="50%" y1="0" y2="100%"/></svg>`;
}
export const took = checkpoint => (checkpoint ? `took ${durT(checkpoint.dur_ms)}, ${bytesT(checkpoint.bytes)}` : 'none of this run yet');
export const up = v => (known(v) ? `up ${durT(v)}` : 'does not run');
export const goal = v => (v ? `objective ${durT(v)}` : 'no objective');

export function etaText(low, high) {
  if (!known(low) && !known(high)) return '–';
  const a = known(low) ? low : high, b = known(high) ? high : low, x = durT(a * 1000), y = durT(b * 1000);
  return x === y ? x : `${x} to ${y}`;
}

// An error's text as a sentence: capital letter, full stop; a name or path stays as it is.
export function sentence(raw) {
  const text = (raw ?? '').trim(), first = text.split(' ')[0];
  const begun = text.includes(' ') && /^[a-z]+$/.test(first) ? text[0].toUpperCase() + text.slice(1) : text;
  return text && !/[.!?…]$/.test(text) ? `${begun}.` : begun;
}

// The formats that a cell may name in data-b="topic path format".
export const formats = {
  rate, count, bytes, percent, times, dur, whole, ago, age, second, time: timeTag, badge, pill, mark, word, busy, waiting, progress, tally, alarm, delay, goal, took, up, busyBar,
  text: v => (v === null || v === undefined || v === '' ? MISSING : esc(v)),
  busyBarOf: v => bar(v, 'busy'),
  some: v => (known(v) ? (v > 0 ? grouped(v) : '') : undefined),   // none is empty; what is not known leaves what is there
};
