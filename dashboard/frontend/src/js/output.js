// What a job writes, as a plot that follows it; a select beside it says which of its series.
import { countT } from './fmt.js';
import { Plot } from './plot.js';
import { poll } from './poll.js';

const short = v => (v === 0 ? '0' : Math.abs(v) >= 1000 ? countT(v) : Math.abs(v) < 1e-6 ? v.toExponential(1) : String(Number(v.toPrecision(3))));

// A job that has just started has nothing to offer yet; what it writes may also grow.
function offer(select, choices) {
  if (!select || select.options.length === choices.length) return;
  const chosen = select.value;
  select.replaceChildren(...choices.map(one => new Option(one.label, one.value, false, one.value === chosen)));
  select.closest('[data-choose]').hidden = false;
}

export function showOutput(host) {
  const panel = host.closest('.panel'), select = panel.querySelector('[data-choose] select'), note = panel.querySelector('[data-empty]');
  const plot = new Plot(host, { format: short, height: 240, label: host.dataset.output });
  const again = poll(() => `${host.dataset.src}&choice=${encodeURIComponent(select?.value ?? '')}`, 2000, answer => {
    const empty = !answer.series.some(s => s.points.length);
    offer(select, answer.choices);
    host.hidden = empty;
    if (note) note.hidden = !empty;
    if (!empty) plot.set(answer.series);
  });
  select?.addEventListener('change', again);
}
