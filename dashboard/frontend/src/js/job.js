// A job's page: graph, operators and inspector share a selection; history and plots follow the job.
import { $, $$, query, readJson, setQuery } from './dom.js';
import { durT, rateT } from './fmt.js';
import { charts } from './charts.js';
import { JobGraph } from './graph.js';
import { Inspector } from './inspector.js';
import { newestOf } from './lens.js';
import { connection, subscribe, value } from './live.js';
import { showOutput } from './output.js';
import { key } from './shell.js';
import { Span } from './span.js';
import { checkpointsOf, checkpointStrip } from './spark.js';
import { Timeline } from './timeline.js';
import { poll } from './poll.js';

const page = readJson('page', {}), topic = `job.${page.job}`;

// ---- graph and table
const host = $('#graph'), plan = readJson('plan', null);
if (host && plan?.nodes.length) {
  const operators = {}, byId = new Map(plan.nodes.map(n => [n.id, n])), rows = new Map($$('#ops tr[data-id]').map(row => [row.dataset.id, row]));
  const newest = () => newestOf(value(topic) ?? {});
  const inspector = new Inspector($('#insp'), $('#insp').dataset.src, newest);
  let chosen = null;
  const graph = new JobGraph(host, plan, id => {
    rows.get(chosen)?.setAttribute('aria-selected', 'false'); rows.get(id)?.setAttribute('aria-selected', 'true');
    chosen = id; inspector.show(byId.get(id), operators[id]);
    if (!settling) setQuery('op', id);
  });
  let settling = true;
  const show = table => {
    Object.assign(operators, table); graph.update(table, newest());
    if (chosen) inspector.figures(operators[chosen]);
  };
  show(readJson('figures', {}));
  subscribe(`${topic}.ops`, (table, change) => show(change === table ? table : Object.fromEntries(Object.keys(change).map(id => [id, table[id]]))));
  // Without a choice in the address, the one that has most to do is shown.
  const busiest = plan.nodes.reduce((a, b) => ((operators[b.id]?.busy ?? -1) > (operators[a.id]?.busy ?? -1) ? b : a));
  graph.select(byId.has(query.get('op')) ? query.get('op') : busiest.id);
  settling = false;
  searchOf(graph, rows);
  key('f', () => graph.fit());
  $('#lens')?.addEventListener('click', event => {
    const b = event.target.closest('[data-l]');
    if (!b) return;
    for (const other of $$('#lens button')) other.setAttribute('aria-pressed', other === b);
    graph.setLens(b.dataset.l);
  });
  $('#ops')?.addEventListener('click', event => { const row = event.target.closest('tr[data-id]'); if (row) graph.select(row.dataset.id); });
}
// Finds operators by a part of a name: dims the others in the graph, hides them in the table. Of many
// operators the table shows the first ones until it is asked for all.
function searchOf(graph, rows) {
  const field = $('#find-op');
  let found = [], at = 0, all = false;
  field?.addEventListener('input', () => {
    const words = field.value.trim().toLowerCase();
    found = graph.search(words); at = 0;
    for (const [id, row] of rows) row.hidden = words ? !found.includes(id) : 'more' in row.dataset && !all;
    document.dispatchEvent(new Event('hw:shown'));
  });
  $('#all-ops')?.addEventListener('click', event => {
    all = true; event.target.closest('tfoot').remove();
    for (const row of rows.values()) row.hidden = false;
    document.dispatchEvent(new Event('hw:shown'));
  });
  field?.addEventListener('keydown', event => {
    if (event.key === 'Escape') { field.value = ''; field.dispatchEvent(new Event('input')); }
    if (event.key !== 'Enter' || !found.length) return;
    event.preventDefault();
    graph.select(found[at % found.length]); graph.reveal(found[at++ % found.length]);
  });
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

// A bar of the last checkpoints leads where its row in the history does.
document.addEventListener('click', event => { const bar = event.target.closest('.ckbars [data-href]'); if (bar) location.href = bar.dataset.href; });

// ---- history: rate and delay over the events that explain them
const history = $('#history');
if (history) {
  const span = new Span(history.closest('.panel'), () => again()), drawCharts = charts($('#charts'), (from, to) => span.choose(from, to));
  let data = { rate: [], delay: [], out: [], busy: [], waiting: [], checkpoints: [], events: [] }, told = readJson('events', []);
  // What happened before the first event that the page was told of is read with the history.
  const happened = () => { const first = Math.min(...told.map(e => e.at_ms)) - 5e3; return [...data.events.filter(e => e.at_ms < first), ...told]; };
  const bar = (c, top) => ({ id: `c${c.run}-${c.checkpoint}`, at_ms: c.trigger_ms, lane: 'bars', kind: c.status === 'failed' ? 'x' : 'bar', tone: c.status === 'failed' ? 'crit' : 'idle', share: (c.dur_ms ?? 0) / top, title: c.of > 1 ? `Longest of ${c.of} checkpoints, ${durT(c.dur_ms)}` : `Checkpoint ${c.checkpoint}${c.dur_ms == null ? '' : `, ${durT(c.dur_ms)}`}`, text: c.failure ?? '' });
  const draw = () => {
    const { from, to, length } = span, top = Math.max(1, ...data.checkpoints.map(c => c.dur_ms ?? 0)), gap = 15e3 + length / 150;
    const line = (label, points, live, format, height, colour) => ({ label, note: format(span.chosen ? points.at(-1)?.[1] : live), points: points.filter(p => p[0] >= from && p[0] <= to), height, colour, format, gap });
    timeline.set({
      from, to: span.chosen ? to : to + length / 100, events: [...happened(), ...data.checkpoints.map(c => bar(c, top))],
      series: [line('Records in', data.rate, value(topic)?.in, rateT, 34, 'var(--c1)'), { ...line('Watermark delay', data.delay, value(topic)?.delay_ms, durT, 30, 'var(--c4)'), limit: value(topic)?.goal_ms }],
    });
  };
  const timeline = new Timeline(history, { from: span.from, to: span.to, label: 'Job history', choose: (from, to) => span.choose(from, to), step: name => span.step(name), lanes: [{ id: 'dep', label: 'Deploys', height: 18 }, { id: 'bars', label: 'Checkpoints', height: 22, bars: true }, { id: 'sav', label: 'Savepoints', height: 18 }, { id: 'rs', label: 'Restarts', height: 18 }] });
  subscribe(`${topic}.events`, (all, change) => { told = [...new Map([...told, ...change.events ?? []].map(e => [e.id, e])).values()]; draw(); });
  const again = poll(() => `${history.dataset.src}?${span.asked}`, () => span.every, answer => { data = answer; draw(); drawCharts(data, span); });
  setInterval(() => !span.chosen && connection() === 'live' && !document.hidden && draw(), 1000);
}

// ---- what the job writes
for (const host of $$('[data-output]')) showOutput(host);
