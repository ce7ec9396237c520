// What changed in the fleet: the rate of all jobs over the events that explain it.
import { rateT, now } from './fmt.js';
import { Timeline } from './timeline.js';
import { poll } from './poll.js';

const LANES = [{ id: 'dep', label: 'Starts' }, { id: 'sav', label: 'Savepoints' }, { id: 'ck', label: 'Checkpoints' }, { id: 'rs', label: 'Restarts' }].map(lane => ({ ...lane, height: 18 }));

export function showChanges(host) {
  const timeline = new Timeline(host, { from: now() - 6 * 3600e3, to: now(), label: 'What changed', lanes: LANES });
  poll(() => host.dataset.changes, 10_000, ({ from_ms: from, to_ms: to, events, rate, rate_missing: missing }) => timeline.set({
    from, to, events,
    series: [{ label: 'Records in', note: missing || rateT(rate.at(-1)?.[1]), points: rate, height: 34, colour: 'var(--c1)', format: rateT, gap: Math.max(15e3, (to - from) / 200 * 4) }],
  }));
  // A mark leads to the page that says more; a merged one to the page of the first of its events.
  const follow = event => {
    const id = event.target.closest?.('.ev')?.dataset.id?.replace(/\+$/, ''), found = timeline.o.events.find(e => e.id === id);
    if (found) location.href = found.url;
  };
  host.addEventListener('click', follow);
  host.addEventListener('keydown', event => { if (event.key === 'Enter') follow(event); });
}
