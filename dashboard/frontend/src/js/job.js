// A job's page: its plan, and history and plots that follow the job.
import { $, $$, readJson } from './dom.js';
import { sayStates } from './aloud.js';
import { durT, rateT } from './fmt.js';
import { charts } from './charts.js';
import { connection, subscribe, value } from './live.js';
import { showOutput } from './output.js';
import { showPlan } from './plan.js';
import { Span } from './span.js';
import { checkpointsOf, checkpointStrip } from './spark.js';
import { Timeline } from './timeline.js';
import { poll } from './poll.js';

const page = readJson('page', {}), topic = `job.${page.job}`;

if ($('#graph')) showPlan(topic, readJson('plan', null));

sayStates(topic, job => (job.state ? [['The job', job.state]] : []));

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
