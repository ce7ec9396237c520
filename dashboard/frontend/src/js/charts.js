// The four charts of a job: throughput, watermark delay, load, checkpoint duration; one cursor.
import { $, el, own } from './dom.js';
import { durT, rateT, wholePercentT } from './fmt.js';
import { Plot, STEPS } from './plot.js';

const HEIGHT = 116, SYNC = 'job';
const CHARTS = [
  ['Throughput', rateT, STEPS.rate, data => [['in', data.rate, 0], ['out', data.out, 1]]],
  ['Watermark delay', durT, STEPS.dur, data => [['delay', data.delay, 3]]],
  ['Load, busiest subtask', wholePercentT, STEPS.percent, data => [['busy', data.busy, 0], ['waiting', data.waiting, 4]]],
  ['Checkpoint duration', durT, STEPS.dur, data => [['duration', data.checkpoints.filter(c => c.status === 'completed').map(c => [c.trigger_ms, c.dur_ms]), 2]]],
];

// choose(from, to): what was dragged over.
export function charts(host, choose) {
  if (!host) return () => {};
  own(host);
  const plots = CHARTS.map(([title, format, steps]) => {
    const panel = el('<section class="panel"><header><h2></h2></header><div class="body"></div></section>');
    $('h2', panel).textContent = title; host.append(panel);
    return new Plot($('.body', panel), { format, height: HEIGHT, sync: SYNC, fromZero: true, label: title, narrow: true, steps, choose });
  });
  return (data, { from, to, length }) => plots.forEach((plot, i) => plot.set(CHARTS[i][3](data).map(([name, points, hue]) => ({ name, points: points ?? [], hue, gap: i === 3 ? null : 15e3 + length / 150 })), [from, to]));
}
