// A plot's numbers as a table: the times that the plot shows, the newest first.
import { el } from './dom.js';
import { abs } from './fmt.js';

const MOST = 500;

export function plotTable(label, series, columns, scale, format) {
  const [times, ...values] = columns, rows = times.map((_, i) => i).filter(i => times[i] * 1000 >= scale[0] && times[i] * 1000 <= scale[1] && values.some(column => column[i] != null));
  const shown = rows.slice(-MOST).reverse(), node = el('<div class="plot-t" tabindex="0" role="region"><table class="tbl flat small"><caption class="mut"></caption><thead><tr><th scope="col">Time</th></tr></thead><tbody></tbody></table></div>');
  node.setAttribute('aria-label', `${label}, as a table`);
  node.querySelector('caption').textContent = rows.length > shown.length ? `The newest ${shown.length} of ${rows.length} points` : `${rows.length} points, newest first`;
  for (const s of series) node.querySelector('tr').append(Object.assign(el('<th class="num" scope="col"></th>'), { textContent: s.name }));
  node.querySelector('tbody').append(...shown.map(i => {
    const row = el('<tr><td class="mono"></td></tr>');
    row.firstChild.textContent = abs(times[i] * 1000);
    for (const column of values) row.append(Object.assign(el('<td class="num"></td>'), { textContent: column[i] == null ? '–' : format(column[i]) }));
    return row;
  }));
  return node;
}
