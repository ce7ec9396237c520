// Chosen metrics along time, a plot per unit. Kept ones come whole; of live ones the page keeps what it saw.
import { bytesT, countT, durT, now, percentT, rateT, stamp, timesT } from './fmt.js';
import { el, own, readJson } from './dom.js';
import { Plot, STEPS } from './plot.js';
import { poll } from './poll.js';

const short = v => (v !== 0 && (Math.abs(v) >= 1e4 || Math.abs(v) < 1e-3) ? v.toExponential(1) : String(Number(v.toPrecision(3))));
const FORMATS = { rate: rateT, count: countT, bytes: bytesT, dur: durT, percent: percentT, times: timesT, time: stamp, plain: short };
const UNITS = { rate: 'Rows per second', count: 'Counts', bytes: 'Bytes', dur: 'Lengths of time', percent: 'Shares of time', times: 'Times real time', time: 'Points in time', plain: 'Numbers' };
const opened = now();
const SEEN = 1200;                         // an hour, at one look in three seconds

export function showMetrics(host) {
  const seen = new Map(), plots = new Map(), gap = Math.max(15e3, +host.dataset.minutes * 60e3 / 300 * 4);
  const remember = one => {
    if (!seen.has(one.key)) seen.set(one.key, []);
    const looks = seen.get(one.key);
    if (one.now && looks.at(-1)?.at !== one.at_ms) looks.push({ at: one.at_ms, now: one.now });
    looks.splice(0, Math.max(0, looks.length - SEEN));
    return looks;
  };
  function lines(one, hue) {
    if (one.kept) return [{ name: one.label, hue, gap, points: one.points }];
    const looks = remember(one), line = (name, i, more = {}) => ({ name, hue, gap: 15e3, points: looks.map(look => [look.at, look.now[i]]), ...more });
    if (!looks.some(look => look.now[0] !== look.now[2])) return [line(one.label, 1)];
    return [line(`${one.label}, mean`, 1), line(`${one.label}, least`, 0, { dash: [2, 3] }), line(`${one.label}, largest`, 2, { dash: [5, 3] })];
  }
  // An axis over the chosen time, or since the page was opened where nothing was kept before.
  function stretched(all, kept) {
    const from = Math.max(now() - host.dataset.minutes * 60e3, kept ? 0 : Math.min(opened, now() - 60e3));
    return all.map((line, i) => (i ? line : { ...line, points: [[from, null], ...line.points] }));
  }
  function plot(format) {
    if (!plots.has(format)) {
      const panel = el('<section class="panel" data-live><header><h2></h2></header><div class="body"><div></div></div></section>');
      panel.querySelector('h2').textContent = UNITS[format];
      host.append(panel);
      plots.set(format, new Plot(panel.querySelector('.body > div'), { format: FORMATS[format], steps: STEPS[format], height: 200, sync: 'metrics', fromZero: format !== 'time', label: UNITS[format] }));
    }
    return plots.get(format);
  }
  const take = data => {
    const byFormat = new Map();
    data.figures.forEach((one, hue) => { if (!one.missing) byFormat.set(one.format, [...(byFormat.get(one.format) ?? []), ...lines(one, hue)]); });
    for (const [format, all] of byFormat) plot(format).set(stretched(all, data.figures.some(one => one.kept && one.format === format)));
    for (const [format, drawn] of plots) drawn.host.closest('.panel').hidden = !byFormat.has(format);
  };
  own(host);
  take(readJson('plots', { figures: [] }));
  poll(() => host.dataset.metrics, 3000, take);
}
