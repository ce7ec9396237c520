// The stretch of time that a page shows: the last minutes, which go on with the clock, or a chosen one, which stays.
//
//   ?range=60                 the last hour
//   ?from=1796…&to=1796…      chosen: dragged over a timeline or a plot, or gone to by the buttons
import { $, $$, query, setQuery } from './dom.js';
import { day, durT, hms, now } from './fmt.js';

const USUAL = 10, SHORTEST = 5e3, LONGEST = 7 * 24 * 3600e3;
const STEPS = { earlier: [-0.5, 1], later: [0.5, 1], closer: [0, 0.5], wider: [0, 2] };

export class Span {
  constructor(box, changed) {
    const from = +query.get('from'), to = +query.get('to');
    Object.assign(this, { box, changed, minutes: +(query.get('range') ?? USUAL) || USUAL, chosen: to > from && from > 0 ? [from, to] : null });
    box.addEventListener('click', event => {
      const b = event.target.closest('[data-m],[data-step],[data-follow]');
      if (!b) return;
      if (b.dataset.step) this.step(b.dataset.step); else this.follow(+b.dataset.m || this.minutes);
    });
    document.addEventListener('hw:tz', () => this.show());
    this.show();
  }
  get from() { return this.chosen ? this.chosen[0] : now() - this.minutes * 60e3; }
  get to() { return this.chosen ? this.chosen[1] : now(); }
  get length() { return this.to - this.from; }
  // Longer stretches change less from one look to the next.
  get every() { return Math.min(30e3, Math.max(3e3, this.length / 1500)); }
  get asked() { return this.chosen ? `from=${Math.round(this.from)}&to=${Math.round(this.to)}` : `minutes=${this.minutes}`; }

  follow(minutes) { this.minutes = minutes; this.chosen = null; this.told(); }
  choose(from, to) {
    const length = Math.min(LONGEST, Math.max(SHORTEST, to - from)), middle = (from + to) / 2, end = Math.min(now(), middle + length / 2), next = [Math.round(end - length), Math.round(end)];
    if (String(next) === String(this.chosen)) return;
    this.chosen = next; this.told();
  }
  step(name) {
    const [shift, size] = STEPS[name], { from, length } = this, middle = from + length * (0.5 + shift);
    this.choose(middle - length * size / 2, middle + length * size / 2);
  }
  told() {
    setQuery('range', this.minutes === USUAL ? '' : this.minutes);
    setQuery('from', this.chosen?.[0] ?? ''); setQuery('to', this.chosen?.[1] ?? '');
    this.show(); this.changed();
  }
  show() {
    for (const b of $$('[data-m]', this.box)) b.setAttribute('aria-pressed', !this.chosen && +b.dataset.m === this.minutes);
    $('[data-follow]', this.box).hidden = !this.chosen;
    $('[data-span]', this.box).textContent = this.chosen ? `${day(this.from)} ${hms(this.from)} to ${day(this.to) === day(this.from) ? '' : `${day(this.to)} `}${hms(this.to)}, ${durT(this.length)}` : '';
  }
}
