// Sparkline and checkpoint strip, as strings of SVG.
const KEEP = 60;

export function spark(values, { w = 80, h = 22, colour = 'var(--c-mute)' } = {}) {
  const known = values.filter(v => v !== null);
  if (known.length < 4) return `<svg class="sp" width="${w}" height="${h}" aria-hidden="true"></svg>`;
  const hi = Math.max(...known) * 1.06, lo = Math.min(...known) * 0.86, k = (h - 4) / (hi - lo || 1), dx = (w - 4) / (KEEP - 1);
  const x = i => 1 + (KEEP - values.length + i) * dx, y = v => h - 2 - (v - lo) * k;
  let d = '', pen = false;
  values.forEach((v, i) => { if (v === null) { pen = false; return; } d += `${pen ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}`; pen = true; });
  const last = values.at(-1), lx = x(values.length - 1).toFixed(1);
  const area = known.length === values.length ? `<path d="${d}L${lx} ${h}L${x(0).toFixed(1)} ${h}Z" fill="${colour}" opacity=".13"/>` : '';
  return `<svg class="sp" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" aria-hidden="true">${area}<path d="${d}" fill="none" stroke="${colour}" stroke-width="1.25" stroke-linejoin="round"/>${last === null ? '' : `<circle cx="${lx}" cy="${y(last).toFixed(1)}" r="1.8" fill="${colour}"/>`}</svg>`;
}

// The newest values of a figure, kept while the page is open.
export class Recent {
  constructor() { this.values = []; }
  // What was measured before comes first; what has come meanwhile stays.
  begin(values) { this.values = [...values.slice(this.values.length), ...this.values]; }
  push(v) { this.values.push(v ?? null); if (this.values.length > KEEP) this.values.shift(); return this.values; }
}

// Last checkpoints as bars: height is duration, failed is full height with a notch, running an outline.
export function checkpointStrip(list, { w = 84, h = 18, n = 16 } = {}) {
  const last = list.slice(-n), gap = Math.max(1.6, w / n / 6), width = Math.max(2.4, (w - (n - 1) * gap) / n), top = Math.max(1, ...last.map(c => (c.status === 'completed' ? c.dur_ms : 0)));
  return `<svg width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" aria-hidden="true">${last.map((c, i) => {
    const x = ((n - last.length + i) * (width + gap)).toFixed(1), bar = width.toFixed(1);
    if (c.status === 'failed') return `<path d="M${x} 0h${bar}v${h}h-${bar}z" fill="var(--crit-f)"/><path d="M${x} ${h / 2 - 0.9}h${bar}v1.8h-${bar}z" fill="var(--panel)"/>`;
    if (c.status !== 'completed') return `<rect x="${+x + 0.5}" y="${h * 0.45}" width="${(width - 1).toFixed(1)}" height="${h * 0.55 - 0.5}" fill="none" stroke="var(--busy-f)"/>`;
    const tall = Math.max(3, h * (0.22 + 0.72 * c.dur_ms / top));
    return `<rect x="${x}" y="${(h - tall).toFixed(1)}" width="${bar}" height="${tall.toFixed(1)}" rx=".6" fill="${c.kind === 'savepoint' ? 'var(--save-f)' : 'var(--c-mute)'}"/>`;
  }).join('')}</svg>`;
}
// A log of checkpoint events as one entry a checkpoint: the later event holds.
export function checkpointsOf(events) {
  const latest = new Map();
  for (const e of events) latest.set(`${e.run}/${e.checkpoint}`, e);
  return [...latest.values()].sort((a, b) => a.trigger_ms - b.trigger_ms);
}
