// The list of jobs: filter, rows by keyboard, sparklines and checkpoint strips that grow.
import htmx from 'htmx.org';
import { sayStates } from './aloud.js';
import { showChanges } from './changes.js';
import { $, $$, query, readJson, setQuery } from './dom.js';
import { subscribe } from './live.js';
import { holdOrder } from './order.js';
import { key } from './shell.js';
import { checkpointStrip, Recent, spark } from './spark.js';

// ---- filter: the server understands the same ?f= and ?view=, so a reload shows the same rows. Where not all jobs
// are on the page, what is typed narrows those that are, and after a moment the server answers for all.
const TYPED_MS = 300;
const field = $('#f');
const isPartial = () => 'partial' in ($('#jobs')?.dataset ?? {});
let asking;
let view = query.get('view') ?? 'all';

function matches(row, words) {
  const facts = row.dataset;
  if (!facts.views.split(' ').includes(view)) return false;
  return words.every(word => {
    const [name, wanted] = word.split(':');
    if (wanted === undefined) return `${facts.name} ${facts.team}`.includes(name);
    return name === 'team' ? facts.team === wanted : name === 'state' ? [facts.state, facts.shown].includes(wanted) : false;
  });
}

export function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of $$('#jobs tbody[data-name]')) { row.hidden = !matches(row, words); shown += row.hidden ? 0 : 1; }
  for (const head of $$('#jobs tbody[data-head]')) {
    const inside = $$(`#jobs tbody[data-name][data-under="${CSS.escape(head.dataset.head)}"]`).filter(r => !r.hidden).length;
    head.hidden = !inside; $('.c', head).textContent = inside;
  }
  if (!isPartial()) for (const count of $$('#views [data-count]')) count.textContent = $$('#jobs tbody[data-id]').filter(row => row.dataset.views.split(' ').includes(count.dataset.count)).length;
  const none = $('#none');
  if (none && !isPartial()) { none.hidden = shown > 0 || !$('#jobs tbody[data-name]'); $('[data-hidden]', none).textContent = String($$('#jobs tbody[data-name]').length); }
  for (const b of $$('#views [data-v]')) b.setAttribute('aria-pressed', b.dataset.v === view);
  setQuery('f', field.value.trim()); setQuery('view', view === 'all' ? '' : view);
}
function typed() {
  filter();
  if (!isPartial()) return;
  clearTimeout(asking);
  setQuery('page', '');
  asking = setTimeout(() => htmx.ajax('GET', location.pathname + location.search, { target: '#jobs', select: '#jobs', swap: 'outerMorph' }), TYPED_MS);
}
if (field) {
  field.addEventListener('input', typed);
  field.addEventListener('keydown', event => { if (event.key === 'Escape') { field.value = ''; field.blur(); typed(); } });
  $('#views').addEventListener('click', event => { const b = event.target.closest('[data-v]'); if (b) { event.preventDefault(); view = b.dataset.v; filter(); } });
  // Where the server answers for a view, it is told what has been typed meanwhile.
  $('#views').addEventListener('pointerdown', event => { const a = event.target.closest('a'); if (a) { const to = new URL(a.href); to.searchParams.set('f', field.value.trim()); a.href = to; } });
  document.addEventListener('click', event => { if (event.target.closest('[data-clear]')) { event.preventDefault(); field.value = ''; view = 'all'; filter(); } });
  document.addEventListener('hw:swapped', () => { filter(); draw(); });
  filter();
}

// ---- rows: J and K walk, Enter opens
let at = -1;
function walk(step) {
  const rows = $$('#jobs tbody[data-name]').filter(r => !r.hidden);
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  rows.forEach((row, i) => row.toggleAttribute('data-cur', i === at));
  $('a.name', rows[at])?.focus({ preventScroll: true });
  rows[at]?.scrollIntoView({ block: 'nearest' });
}
key('j', () => walk(1)); key('k', () => walk(-1));
$('#jobs')?.addEventListener('click', event => {
  if (event.target.closest('a,button,form')) return;
  const row = event.target.closest('tbody[data-name]');
  if (row && !getSelection().toString()) location.href = $('a.name', row).href;
});

if ($('#jobs')) holdOrder($('#jobs'));
sayStates('fleet', table => $$('#jobs tbody[data-id]').filter(row => table[row.dataset.id]?.state).map(row => [row.dataset.name, table[row.dataset.id].state]));

// ---- small pictures
const rates = new Map(), strips = new Map(Object.entries(readJson('strips', {})));
function draw() {
  for (const row of $$('#jobs tbody[data-name]')) {
    const id = row.dataset.id, place = $('[data-spark]', row), strip = $('[data-strip]', row);
    if (place && rates.has(id)) place.innerHTML = spark(rates.get(id).values);
    if (strip) strip.innerHTML = checkpointStrip(strips.get(id) ?? [], { w: 76, h: 17 });
  }
  const total = $('[data-spark-sum]');
  if (total && rates.has('sum')) total.innerHTML = spark(rates.get('sum').values, { w: 76, h: 24, colour: 'var(--c1)' });
}
draw();
// The lines begin with the last minute; then they grow with the page.
async function begin() {
  const ids = $$('#jobs tbody[data-id]').map(row => `job=${row.dataset.id}`);
  if (!ids.length) return;
  const answer = await fetch(`${$('[data-rates]').dataset.rates}?${ids.join('&')}`).catch(() => null);
  if (!answer?.ok) return;
  const lines = await answer.json(), every = Object.values(lines);
  if (every.length && !isPartial()) lines.sum = every[0].map((_, i) => every.reduce((sum, line) => (line[i] === null ? sum : (sum ?? 0) + line[i]), null));
  for (const [id, values] of Object.entries(lines)) {
    if (!rates.has(id)) rates.set(id, new Recent());
    rates.get(id).begin(values);
  }
  draw();
}
begin();
subscribe('fleet', (table, change) => {
  for (const [id, row] of Object.entries(table)) {
    if (!rates.has(id)) rates.set(id, new Recent());
    rates.get(id).push(row?.in);
  }
  for (const [id, row] of Object.entries(change)) {
    if (!row?.ckpt_ms) continue;
    const list = (strips.get(id) ?? []).filter(c => c.status !== 'in_progress'), last = list.at(-1);
    if (last && (last.end_ms ?? last.trigger_ms + last.dur_ms) >= row.ckpt_ms) continue;
    list.push({ status: 'completed', kind: 'checkpoint', dur_ms: row.ckpt_dur ?? table[id].ckpt_dur ?? 0, end_ms: row.ckpt_ms });
    strips.set(id, list.slice(-16));
  }
  draw();
});

for (const host of $$('[data-changes]')) showChanges(host);
