// The plan of a job: graph, operators and inspector share a selection. When the job runs by another plan it is
// read anew, laid out, and said so; the selection stays where it can.
import { $, $$, query, readJson, readPage, setQuery } from './dom.js';
import { JobGraph } from './graph.js';
import { Inspector } from './inspector.js';
import { newestOf } from './lens.js';
import { subscribe, value } from './live.js';
import { key } from './shell.js';
import { toast } from './toasts.js';

export function showPlan(topic, first) {
  const newest = () => newestOf(value(topic) ?? {}), inspector = new Inspector($('#insp'), $('#insp').dataset.src, newest);
  let plan, graph, operators, rows, byId, chosen, settling, asked;

  function select(id) {
    rows.get(chosen)?.setAttribute('aria-selected', 'false'); rows.get(id)?.setAttribute('aria-selected', 'true');
    chosen = id; inspector.show(byId.get(id), operators[id]);
    if (!settling) setQuery('op', id);
  }
  function show(table) {
    Object.assign(operators, table); graph.update(table, newest());
    if (chosen) inspector.figures(operators[chosen]);
  }
  function take(next, figures) {
    plan = next; operators = {}; chosen = null; settling = true; asked = shapeOf(plan.nodes);
    byId = new Map(plan.nodes.map(n => [n.id, n])); rows = new Map($$('#ops tr[data-id]').map(row => [row.dataset.id, row]));
    graph = new JobGraph($('#graph'), plan, select);
    graph.setLens($('#lens [aria-pressed=true]')?.dataset.l ?? 'busy');
    show(figures);
    // Without a choice in the address, the one that has most to do is shown.
    const busiest = plan.nodes.reduce((a, b) => ((operators[b.id]?.busy ?? -1) > (operators[a.id]?.busy ?? -1) ? b : a));
    graph.select(byId.has(query.get('op')) ? query.get('op') : busiest.id);
    settling = false;
  }
  // The figures tell of other operators, or of other numbers of subtasks, than those that are drawn.
  async function changed(table) {
    const shape = shapeOf(Object.entries(table).filter(([, row]) => row).map(([id, row]) => ({ id, par: row.par })));
    if (!shape || shape === asked) return;
    asked = shape;
    const page = await readPage(location.pathname), next = page && readJson('plan', null, page);
    if (!next?.nodes.length || shapeOf(next.nodes) === shapeOf(plan.nodes)) return;
    const before = plan.nodes.length, host = $('#graph'), panel = host.closest('.panel');
    host.replaceWith(host.cloneNode(false));
    $('#ops').innerHTML = $('#ops', page).innerHTML;
    $('header .mut', panel).textContent = $('#graph', page).closest('.panel').querySelector('header .mut').textContent;
    take(next, readJson('figures', {}, page));
    document.dispatchEvent(new Event('hw:shown'));
    toast('The job runs by another plan', `The graph is laid out anew: ${before} vertices before, ${next.nodes.length} now.`, 'ok', 'deploy');
  }

  take(first, readJson('figures', {}));
  subscribe(`${topic}.ops`, (table, change) => {
    changed(table);
    const known = change === table ? table : Object.fromEntries(Object.keys(change).map(id => [id, table[id]]));
    show(Object.fromEntries(Object.entries(known).filter(([id, row]) => row && byId.has(id))));
  });
  key('f', () => graph.fit());
  $('#lens')?.addEventListener('click', event => {
    const b = event.target.closest('[data-l]');
    if (!b) return;
    for (const other of $$('#lens button')) other.setAttribute('aria-pressed', other === b);
    graph.setLens(b.dataset.l);
  });
  $('#ops')?.addEventListener('click', event => { const row = event.target.closest('tr[data-id]'); if (row) graph.select(row.dataset.id); });
  search(() => graph, () => rows);
}

const shapeOf = nodes => nodes.map(n => `${n.id}×${n.par}`).sort().join(' ');

// Finds operators by a part of a name: dims the others in the graph, hides them in the table. Of many
// operators the table shows the first ones until it is asked for all.
function search(graph, rows) {
  const field = $('#find-op');
  let found = [], at = 0, all = false;
  field?.addEventListener('input', () => {
    const words = field.value.trim().toLowerCase();
    found = graph().search(words); at = 0;
    for (const [id, row] of rows()) row.hidden = words ? !found.includes(id) : 'more' in row.dataset && !all;
    document.dispatchEvent(new Event('hw:shown'));
  });
  $('#ops')?.addEventListener('click', event => {
    if (!event.target.closest('#all-ops')) return;
    all = true; event.target.closest('tfoot').remove();
    for (const row of rows().values()) row.hidden = false;
    document.dispatchEvent(new Event('hw:shown'));
  });
  field?.addEventListener('keydown', event => {
    if (event.key === 'Escape') { field.value = ''; field.dispatchEvent(new Event('input')); }
    if (event.key !== 'Enter' || !found.length) return;
    event.preventDefault();
    graph().select(found[at % found.length]); graph().reveal(found[at++ % found.length]);
  });
}
