// A job's page: graph and operators share a selection; history and output plots follow the job.
import { $, $$, query, readJson, setQuery } from './dom.js';
import { durT, rateT, now } from './fmt.js';
import { JobGraph } from './graph.js';
import { connection, subscribe, value } from './live.js';
import { showOutput } from './output.js';
import { key } from './shell.js';
import { checkpointsOf, checkpointStrip } from './spark.js';
import { Timeline } from './timeline.js';
import { poll } from './poll.js';

const page = readJson('page', {}), topic = `job.${page.job}`;

// ---- graph and table
const host = $('#graph'), plan = readJson('plan', null);
if (host && plan?.nodes.length) {
  const graph = new JobGraph(host, plan.nodes, plan.edges, select);
  const figures = readJson('figures', {});
  const show = table => {
    const newest = value(topic)?.event_ms, delay = value(topic)?.delay_ms;
    graph.newest = newest != null && delay != null ? newest + delay : null;
    graph.update(table);
  };
  show(figures);
  subscribe(`${topic}.ops`, show);
  key('f', () => graph.fit());
  $('#lens')?.addEventListener('click', event => {
    const b = event.target.closest('[data-l]');
    if (!b) return;
    for (const other of $$('#lens button')) other.setAttribute('aria-pressed', other === b);
    graph.setLens(b.dataset.l);
  });
  $('#ops')?.addEventListener('click', event => { const row = event.target.closest('tr[data-id]'); if (row) graph.select(row.dataset.id); });
  if (query.has('op')) graph.select(query.get('op'));
}
function select(id) {
  setQuery('op', id);
  for (const row of $$('#ops tr[data-id]')) row.setAttribute('aria-selected', row.dataset.id === id);
}

// ---- checkpoints
const log = readJson('checkpoints', []);
function strips() {
  const list = checkpointsOf(log);
  for (const node of $$('[data-checkpoints]')) node.innerHTML = checkpointStrip(list, { w: Math.max(120, node.clientWidth), h: +node.dataset.h || 28, n: +node.dataset.checkpoints });
}
strips();
subscribe(`${topic}.ckpt`, (all, change) => { log.push(...(change.events ?? [])); log.splice(0, Math.max(0, log.length - 400)); strips(); });
addEventListener('resize', strips);
document.addEventListener('hw:swapped', strips);

// ---- history: rate and delay over the events that explain them
const history = $('#history');
if (history) {
  let minutes = +(query.get('range') ?? 10), data = { rate: [], delay: [], events: readJson('events', []) };
  const draw = () => {
    const to = now() + minutes * 600, from = now() - minutes * 60e3, list = checkpointsOf(log), top = Math.max(1, ...list.map(c => c.dur_ms ?? 0));
    const bars = list.map(c => ({ id: `c${c.run}-${c.checkpoint}`, at_ms: c.trigger_ms, lane: 'bars', kind: c.status === 'failed' ? 'x' : 'bar', tone: c.status === 'failed' ? 'crit' : 'idle', share: (c.dur_ms ?? 0) / top, title: `Checkpoint ${c.checkpoint}${c.dur_ms == null ? '' : `, ${durT(c.dur_ms)}`}`, text: c.failure ?? '' }));
    timeline.set({
      from, to, events: [...data.events, ...bars],
      series: [{ label: 'Records in', note: rateT(value(topic)?.in), points: data.rate, height: 34, colour: 'var(--c1)', format: rateT, gap: 15e3 + minutes * 400 }, { label: 'Watermark delay', note: durT(value(topic)?.delay_ms), points: data.delay, height: 30, colour: 'var(--c4)', format: durT, gap: 15e3 + minutes * 400 }],
    });
  };
  const timeline = new Timeline(history, { from: now() - minutes * 60e3, to: now(), label: 'Job history', lanes: [{ id: 'dep', label: 'Deploys', height: 18 }, { id: 'bars', label: 'Checkpoints', height: 22, bars: true }, { id: 'sav', label: 'Savepoints', height: 18 }, { id: 'rs', label: 'Restarts', height: 18 }] });
  $('#ranges').addEventListener('click', event => {
    const b = event.target.closest('[data-m]');
    if (!b) return;
    minutes = +b.dataset.m; setQuery('range', minutes === 10 ? '' : b.dataset.m);
    for (const other of $$('#ranges button')) other.setAttribute('aria-pressed', other === b);
    again();
  });
  for (const b of $$('#ranges button')) b.setAttribute('aria-pressed', +b.dataset.m === minutes);
  subscribe(`${topic}.events`, (all, change) => { const byId = new Map(data.events.map(e => [e.id, e])); for (const e of change.events ?? []) byId.set(e.id, e); data.events = [...byId.values()]; draw(); });
  const again = poll(() => `${history.dataset.src}?minutes=${minutes}`, 3000, answer => { data = { ...data, ...answer, events: data.events }; draw(); });
  setInterval(() => connection() === 'live' && !document.hidden && draw(), 1000);
}

// ---- what the job writes
for (const host of $$('[data-output]')) showOutput(host);
