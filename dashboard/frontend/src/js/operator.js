// An operator's page: how its subtasks differ, as bars and as a table that follows them.
import { $, $$, query, readJson, setQuery, write } from './dom.js';
import { bytes, dur, formats, iso, percent, rate, whole, sentence } from './fmt.js';
import { slices } from './frames.js';
import { newestOf } from './lens.js';
import { value } from './live.js';
import { Heat } from './heat.js';
import { poll } from './poll.js';
import { measureButtons, measured, Spread } from './subtasks.js';

const host = $('#spread'), page = readJson('page', {}), LARGE = 400;
const CELLS = { rate, busy: percent, waiting: percent, idle: percent, delay: dur, wm_ms: formats.time, bytes, rows_in: whole, rows_out: whole };

if (host) {
  const spread = new Spread(host), heat = new Heat($('#heat')), seg = measureButtons(query.get('m') ?? 'rate');
  const newest = () => newestOf(value(`job.${page.job}`) ?? page.figures);
  $('#measure').replaceWith(seg);
  seg.onclick = event => {
    const b = event.target.closest('[data-m]');
    if (!b) return;
    for (const other of $$('button', seg)) other.setAttribute('aria-pressed', other === b);
    setQuery('m', b.dataset.m === 'rate' ? '' : b.dataset.m); spread.set({ measure: b.dataset.m }); heat.choose(b.dataset.m);
  };
  $('#order').onclick = event => {
    const b = event.target.closest('[data-o]');
    if (!b) return;
    for (const other of $$('#order button')) other.setAttribute('aria-pressed', other === b);
    spread.set({ order: b.dataset.o });
  };
  const inSlices = slices(([cell, html]) => write(cell, html));
  const show = answer => {
    const wrong = $('#away'), columns = measured(answer, newest());
    wrong.hidden = !answer.away; wrong.textContent = sentence(answer.away);
    if (answer.away) return;
    const asOf = $('#subtasks > header time');
    if (asOf) asOf.dateTime = iso(answer.at_ms);
    spread.set({ columns }); heat.add(columns, answer.at_ms);
    const place = new Map(columns.index.map((index, i) => [String(index), i]));
    inSlices($$('#subtasks tr[data-i]').flatMap(row => {
      const i = place.get(row.dataset.i);
      return i === undefined ? [] : $$('[data-c]', row).map(cell => [cell, [cell, CELLS[cell.dataset.c](columns[cell.dataset.c][i])]]);
    }));
  };
  spread.set({ measure: query.get('m') ?? 'rate' }); heat.choose(query.get('m') ?? 'rate');
  show(readJson('subtasks-now', {}));
  poll(() => host.dataset.src, page.subtasks > LARGE ? 5000 : 2000, show);
}
