// Streaming statistics: a plot per figure, each with a histogram on the same scale beside it.
import { $$, readJson } from './dom.js';
import { durT, rateT, timesT } from './fmt.js';
import { Histogram } from './histogram.js';
import { Plot, STEPS } from './plot.js';
import { poll } from './poll.js';

const length = v => (v !== 0 && Math.abs(v) < 10 ? `${Number(v.toPrecision(2))} ms` : durT(v));
const along = (data, values) => data.time_ms.map((t, i) => [t, values(i)]);
const pair = name => data => [
  { name: 'mean', points: along(data, i => data.series[`${name}_ms`][i]) },
  { name: 'longest', hue: 3, dash: [4, 3], points: along(data, i => data.series[`${name}_max_ms`][i]) },
];
const product = (a, b) => (a === null || b === null ? null : a * b);

// What each plot draws, how it prints, and how much a value counts in the histogram.
const FIGURES = {
  rows: { format: rateT, steps: STEPS.rate, lines: data => [{ name: 'read', points: along(data, i => data.series.rows_per_second[i]) }, { name: 'could be read', hue: 1, dash: [4, 3], points: along(data, i => product(data.series.rows_per_second[i], data.series.headroom[i])) }] },
  processing_time: { format: length, lines: pair('processing_time') },
  queue_delay: { format: length, lines: pair('queue_delay') },
  total_delay: { format: length, lines: pair('total_delay') },
  headroom: { format: timesT, lines: data => [{ name: 'headroom', points: along(data, i => data.series.headroom[i]) }] },
  watermark_delay: { format: durT, steps: STEPS.dur, lines: data => [{ name: 'delay', hue: 4, points: data.delay }] },
};

export function showBatches(host) {
  const drawn = $$('[data-figure]', host).map(node => {
    const figure = FIGURES[node.dataset.figure];
    const plot = new Plot(node, { format: figure.format, steps: figure.steps, height: 150, sync: 'batches', fromZero: true, label: node.dataset.title });
    return { figure, plot, histogram: new Histogram(node.nextElementSibling, plot, figure.format) };
  });
  const take = data => {
    host.hidden = !data.time_ms.length;
    if (host.hidden) return;
    for (const { figure, plot, histogram } of drawn) {
      const lines = figure.lines(data);
      plot.set(lines);
      histogram.set(lines[0].points.map(p => p[1]));
    }
  };
  take(readJson('plots', { time_ms: [] }));
  poll(() => host.dataset.batches, 3000, take);
}
