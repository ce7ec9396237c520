// A replay's page: the slope chart, the figures beside it, and its output against the live one.
import { $, $$, readJson } from './dom.js';
import { etaText, now, sentence } from './fmt.js';
import { subscribe } from './live.js';
import { showOutput } from './output.js';
import { Slope } from './slope.js';

// What came after its chart was left is not joined to it by a line.
const UNBROKEN_MS = 5000;
const MET = new Set(['caught_up', 'cutting_over', 'promoted', 'rolling_back', 'rolled_back']);
const page = readJson('page', {}), chart = $('#slope');
if (chart && page.replay) {
  const slope = new Slope(chart), points = readJson('points', []);
  slope.set({ points, eta: null });
  subscribe(`replay.${page.replay}`, r => {
    const age = now() - (points.at(-1)?.[0] ?? 0);
    if (r.event_ms != null && r.live_ms != null && age > 900 && (r.status === 'replaying' || (r.status === 'caught_up' && age < UNBROKEN_MS))) points.push([now(), r.event_ms, r.live_ms, r.restarts ?? 0, r.limit ?? null, r.speed_limit ?? null]);
    if (points.length > 1200) points.splice(1, 2);
    slope.set({ points, eta: r.status === 'replaying' && r.eta_low_s != null ? { low: r.eta_low_s, high: r.eta_high_s ?? r.eta_low_s } : null });
    const eta = $('[data-eta]');
    if (eta) {
      eta.textContent = r.status === 'replaying' ? (r.stalled ? 'not catching up' : r.eta_low_s == null ? 'not known yet' : etaText(r.eta_low_s, r.eta_high_s)) : MET.has(r.status) ? 'met' : '–';
      eta.classList.toggle('t-warn', r.status === 'replaying' && Boolean(r.stalled));
    }
    for (const node of $$('[data-note]')) { node.textContent = sentence(r.text); node.hidden = !r.text; }
  });
}

for (const host of $$('[data-output]')) showOutput(host);
