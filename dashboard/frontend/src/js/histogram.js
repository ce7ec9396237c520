// How often each value came, as bars lying beside a plot, on the plot's own scale.
import { quantile, sorted } from './quantiles.js';

const BINS = 24;

export class Histogram {
  constructor(host, plot, format) { Object.assign(this, { host, plot, format }); }
  set(values) {
    const ordered = sorted(values), { u } = this.plot, ratio = devicePixelRatio || 1;
    const { min, max } = u.scales.y, top = u.bbox.top / ratio, height = u.bbox.height / ratio, width = Math.max(24, this.host.clientWidth), counts = new Array(BINS).fill(0);
    if (!ordered.length || !(max > min)) { this.host.replaceChildren(); return; }
    for (const v of ordered) counts[Math.max(0, Math.min(BINS - 1, Math.floor((v - min) / (max - min) * BINS)))]++;
    const most = Math.max(...counts), tall = height / BINS;
    const bars = counts.map((n, i) => (n ? `<rect x="0" y="${(top + height - (i + 1) * tall + 0.5).toFixed(1)}" width="${Math.max(1.5, n / most * (width - 4)).toFixed(1)}" height="${Math.max(1, tall - 1).toFixed(1)}"/>` : ''));
    this.host.innerHTML = `<svg class="hg" width="${width}" height="${top + height}" aria-hidden="true">${bars.join('')}</svg>`;
    const at = share => this.format(quantile(ordered, share));
    this.host.setAttribute('aria-label', `Half of the steps up to ${at(0.5)}, ninety-five in a hundred up to ${at(0.95)}`);
    this.host.dataset.tip = `half up to ${at(0.5)}, 95 % up to ${at(0.95)}`;
  }
}
