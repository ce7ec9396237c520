// The subtasks of one operator: what is measured of each, and one bar each beside the median.
//
//   columns   what `subtasks.json` gives: {index: […], host: […], rate: […], busy: […] …}
//   Spread    draws one measure; where there are more bars than pixels, each is the highest of a few
import { $, el, own } from './dom.js';
import { bytesT, durT, esc, known, rateT, wholePercentT } from './fmt.js';
import { behind } from './lens.js';
import { median, quantile, sorted } from './quantiles.js';
import { hideTip, showTip } from './tips.js';

const HEIGHT = 104, FOOT = 16, WIDEST = 40, NARROWEST = 2, OUTLIER = 2, FEW = 3;
export const MEASURES = {
  rate: ['Records/s', rateT],
  busy: ['Busy', wholePercentT],
  waiting: ['Waiting', wholePercentT],
  delay: ['Delay', durT],
  bytes: ['State', bytesT],
};

// The columns with the delay of each watermark behind `newest`; a source has no watermark in.
export function measured(columns, newest) {
  return { ...columns, delay: columns.wm_ms.map(wm_ms => behind({ wm_ms }, newest)) };
}

export class Spread {
  constructor(host) {
    this.host = host; this.measure = 'rate'; this.order = 'index'; this.columns = null;
    own(host); host.classList.add('dist');
    new ResizeObserver(() => this.draw()).observe(host);
    host.addEventListener('mousemove', event => this.over(event));
    host.dataset.reads = ''; host.addEventListener('mouseleave', hideTip);
  }
  set(change) { Object.assign(this, change); this.draw(); }

  draw() {
    const w = this.host.clientWidth;
    if (!this.columns || w < 40) return;
    const values = this.columns[this.measure], [name, text] = MEASURES[this.measure], ordered = sorted(values);
    if (!ordered.length) { this.bars = []; this.host.innerHTML = '<p class="mut small"></p>'; $('p', this.host).textContent = `${name}: not known yet.`; return; }
    const middle = median(ordered), top = ordered.at(-1), base = HEIGHT - FOOT, Y = v => base - (v / (top * 1.14 || 1)) * (base - 4);
    this.bars = this.bucket(values, w);
    const width = Math.min(WIDEST, w / this.bars.length), gap = width > 6 ? 1.6 : width > 3 ? 1 : 0;
    const path = chosen => this.bars.map((b, i) => (chosen(b) && known(b.value) ? `M${(i * width + gap / 2).toFixed(1)} ${base}V${Y(b.value).toFixed(1)}h${(width - gap).toFixed(1)}V${base}z` : '')).join('');
    const hot = b => ordered.length > FEW && b.value > OUTLIER * middle, worst = this.bars.reduce((a, b) => ((b.value ?? -1) > (a.value ?? -1) ? b : a)), at = this.bars.indexOf(worst);
    const right = at > this.bars.length * 0.6, label = hot(worst) ? `<text x="${(at + (right ? 0 : 1)) * width + (right ? -4 : 4)}" y="${Y(worst.value) + 9}" text-anchor="${right ? 'end' : 'start'}" class="out">subtask ${worst.index}, ${text(worst.value)} on ${esc(worst.host)}</text>` : '';
    const every = Math.ceil(this.bars.length / 5 / 4) * 4, foot = this.order === 'index' ? this.bars.map((b, i) => (i % every ? '' : `<text x="${i * width + width / 2}" y="${HEIGHT - 3}" text-anchor="${i ? 'middle' : 'start'}">${b.index}</text>`)).join('') : '';
    this.width = width;
    this.host.innerHTML = `<svg width="${w}" height="${HEIGHT}" viewBox="0 0 ${w} ${HEIGHT}" role="img"><path class="b" d="${path(b => !hot(b))}"/><path class="b hot" d="${path(hot)}"/><line x1="0" x2="${width * this.bars.length}" y1="${Y(middle)}" y2="${Y(middle)}"/>${label}${foot}</svg><p class="row mut small"><span></span><span class="push"></span></p>`;
    $('svg', this.host).setAttribute('aria-label', `${name} of ${values.length} subtasks: median ${text(middle)}, highest ${text(top)}${hot(worst) ? ` in subtask ${worst.index}` : ''}`);
    const [left, end] = this.host.querySelectorAll('p span'), each = Math.ceil(values.length / this.bars.length);
    left.textContent = `Dashed: median ${text(middle)}; 95 % are below ${text(quantile(ordered, 0.95))}${each > 1 ? `; each bar the highest of ${each}` : ''}`;
    end.textContent = middle > 0 ? `highest ÷ median ${(top / middle).toFixed(1)}×` : '';
  }
  bucket(values, w) {
    const all = values.map((value, i) => ({ value, index: this.columns.index[i], host: this.columns.host[i] }));
    if (this.order === 'value') all.sort((a, b) => (b.value ?? -1) - (a.value ?? -1));
    const each = Math.ceil(all.length / Math.floor(w / NARROWEST));
    if (each <= 1) return all;
    return Array.from({ length: Math.ceil(all.length / each) }, (_, i) => all.slice(i * each, (i + 1) * each).reduce((a, b) => ((b.value ?? -1) > (a.value ?? -1) ? b : a)));
  }
  over(event) {
    const box = this.host.getBoundingClientRect(), bar = this.bars?.[Math.floor((event.clientX - box.left) / this.width)];
    if (!bar || event.clientY > box.top + HEIGHT) return hideTip();
    showTip([[`Subtask ${bar.index}`, MEASURES[this.measure][1](bar.value)], ['on', bar.host]], event.clientX, box.top, box);
  }
}

// Buttons that choose the measure.
export function measureButtons(chosen) {
  const seg = el('<div class="seg" role="group" aria-label="Measure"></div>');
  for (const [key, [name]] of Object.entries(MEASURES)) {
    const b = el(`<button type="button" data-m="${key}" aria-pressed="${key === chosen}"></button>`);
    b.textContent = name; seg.append(b);
  }
  return seg;
}
