// The four charts of a job: throughput, watermark delay, load, checkpoint duration; one cursor.
import { $, el, own } from './dom.js';
import { durT, rateT, now, wholePercentT } from './fmt.js';
import { Plot } from './plot.js';

const HEIGHT = 116, SYNC = 'job';
const CHARTS = [
  ['Throughput', rateT, data => [['in', data.rate, 0], ['out', data.out, 1]]],
  ['Watermark delay', durT, data => [['delay', data.delay, 3]]],
  ['Load, busiest subtask', wholePercentT, data => [['busy', data.busy, 0], ['waiting', data.waiting, 4]]],
  ['Checkpoint duration', durT, (data, taken) => [['duration', taken, 2]]],
];

export function charts(host) {
  if (!host) return () => {};
  own(host);
  const plots = CHARTS.map(([title, format]) => {
    const panel = el('<section class="panel"><header><h2></h2></header><div class="body"></div></section>');
    $('h2', panel).textContent = title; host.append(panel);
    return new Plot($('.body', panel), { format, height: HEIGHT, sync: SYNC, fromZero: true, label: title, narrow: true });
  });
  return (data, checkpoints, minutes) => {
    const from = now() - minutes * 60e3, taken = checkpoints.filter(c => c.status === 'completed' && c.trigger_ms >= from).map(c => [c.trigger_ms, c.dur_ms]);
    plots.forEach((plot, i) => plot.set(CHARTS[i][2](data, taken).map(([name, points, hue]) => ({ name, points: points ?? [], hue, gap: i === 3 ? null : 15e3 + minutes * 400 }))));
  };
}
