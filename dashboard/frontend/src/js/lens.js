// The one measure that a graph's nodes show: load, watermark, skew or state.
import { bar, busyBar, bytes, bytesT, dur, durT, known, MISSING } from './fmt.js';

const NARROW = 3.3;                        // skew at which the bar is full: x - 1 of it is too much
const skewed = f => known(f.skew) && f.skew > 2;
const one = (width, tone, text, css = '') => `${bar(width, tone)}<span class="pc ${css}">${text}</span>`;
// The event time of the newest row that was read: the job's own, plus how far it is behind.
export const newestOf = job => (known(job.event_ms) && known(job.delay_ms) ? job.event_ms + job.delay_ms : null);
export const behind = (f, newest) => (known(f.wm_ms) && known(newest) ? Math.max(0, newest - f.wm_ms) : null);

export const LENSES = {
  busy(f) {
    const waits = f.bp > 50, share = waits ? f.bp : f.busy;
    return `${busyBar(f)}<span class="pc ${waits ? 't-crit' : f.busy >= 95 ? 't-warn' : ''}">${known(share) ? `${Math.round(share)}<span class="u">%</span>` : MISSING}</span>`;
  },
  // Against the one that is furthest behind: a replay is years behind and still in step.
  wm(f, all) {
    const away = behind(f, all.newest);
    return one(known(away) && all.furthest > 0 ? 100 * away / all.furthest : 0, 'ink', dur(away));
  },
  skew: f => one(known(f.skew) ? (f.skew - 1) / NARROW * 100 : 0, skewed(f) ? 'warn' : 'ink', known(f.skew) ? `${f.skew.toFixed(1)}<span class="u">×</span>` : MISSING, skewed(f) ? 't-warn' : ''),
  state: (f, all) => one(known(f.bytes) && all.largest > 0 ? 100 * f.bytes / all.largest : 0, 'ink', bytes(f.bytes)),
};

// The busy one right behind those that wait is what holds a job back.
export function tagsOf(f, ups) {
  const held = ups.some(u => u.bp > 50), tags = [];
  if (f.busy >= 95 || (held && f.busy >= 60 && !(f.bp > 50))) tags.push(['warn', 'bottleneck']);
  else if (f.bp > 50) tags.push(['crit', 'waiting']);
  if (known(f.running) && f.par && f.running < f.par) tags.push(['skew', `${f.running} of ${f.par} running`]);
  else if (skewed(f)) tags.push(['skew', `skew ${f.skew.toFixed(1)}×`]);
  return tags;
}

export function spoken(node, f, all) {
  const said = [`${node.par} subtask${node.par === 1 ? '' : 's'}`, known(f.busy) ? `busy ${Math.round(f.busy)} percent` : 'load not known'];
  if (f.bp >= 0.5) said.push(`waiting ${Math.round(f.bp)} percent`);
  if (behind(f, all.newest) !== null) said.push(`watermark ${durT(behind(f, all.newest))} behind`);
  if (skewed(f)) said.push(`skew ${f.skew.toFixed(1)}`);
  if (known(f.bytes)) said.push(`state ${bytesT(f.bytes)}`);
  return said.join(', ');
}
