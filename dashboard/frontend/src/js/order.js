// Rows keep their places while the pointer or the focus is among them: each is made anew where it stands, and how many
// would move is said. They do when whoever reads leaves, or presses the note.
import htmx from 'htmx.org';
import { $, $$, el, readPage } from './dom.js';

// Each row with the heading that it stands under.
function places(page) {
  let under = '';
  return $$('tbody[data-head], tbody[data-id]', page).flatMap(part => { under = part.dataset.head ?? under; return part.id ? [[part, `${under} ${part.id}`]] : []; });
}

const swap = (target, next) => htmx.swap({ text: next.outerHTML, target, swap: 'outerMorph' });

export function holdOrder(host) {
  const isRead = () => host.matches(':hover') || host.contains(document.activeElement);
  const note = el('<button type="button" class="btn sm order-held" hidden></button>');
  host.before(note);
  const apply = () => { if (note.hidden) return; note.hidden = true; htmx.trigger(host, 'refresh'); };

  host.addEventListener('hw:refresh', async event => {
    if (!isRead()) return;
    event.preventDefault();
    const page = await readPage(location.href);
    if (!page) return;
    const list = $(`#${host.id}`, page), now = places(host), next = places(list);
    const moves = next.filter(([, place], i) => now[i]?.[1] !== place).length || now.length - next.length;
    if (!moves || !isRead()) { note.hidden = true; return swap(host, list); }
    for (const [row] of next) { const old = document.getElementById(row.id); if (old) swap(old, row); }
    note.textContent = `Order held, ${moves} row${moves === 1 ? '' : 's'} would move`; note.hidden = false;
  });
  note.addEventListener('click', apply);
  host.addEventListener('mouseleave', () => !isRead() && apply());
  host.addEventListener('focusout', () => setTimeout(() => !isRead() && apply()));
}
