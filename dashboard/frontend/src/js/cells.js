// Cells that live values are written to: data-b="topic path format".
//
//   <td data-b="fleet 12.in rate">412 k/s</td>     one path of a topic's value, formatted
//   data-refresh="job.12:state job.12.events"      fetch this fragment again when that changes
import htmx from 'htmx.org';
import { $$, write } from './dom.js';
import { formats, agoText, hms, stamp, now } from './fmt.js';
import { slices } from './frames.js';
import { connection, frozen, subscribe, value } from './live.js';

const bound = new Map();                  // topic -> {cells: Map(first step of the path -> [[path, format, node]]), off}
const reach = (value, path) => (path === '.' ? value : path.split('.').reduce((v, k) => v?.[k], value));

export function bind() {
  for (const entry of bound.values()) entry.cells = new Map();
  for (const node of $$('[data-b]')) {
    const [topic, path, format] = node.dataset.b.split(' ');
    if (!bound.has(topic)) {
      const entry = { cells: new Map() };
      bound.set(topic, entry);
      entry.off = subscribe(topic, (all, change) => paint(topic, all, change));
    }
    const { cells } = bound.get(topic), first = path.split('.')[0];
    if (!cells.has(first)) cells.set(first, []);
    cells.get(first).push([path, format, node]);
  }
  // A fragment may be older than what the socket has said meanwhile.
  for (const [topic, entry] of bound) if (!entry.cells.size) { entry.off(); bound.delete(topic); } else if (value(topic) && !frozen()) paint(topic, value(topic), value(topic));
}

const inSlices = slices(([node, html]) => write(node, html));
// Only the rows that changed are looked at, and the page is written to in slices.
function paint(topic, all, change) {
  const { cells } = bound.get(topic) ?? { cells: new Map() };
  const rows = change === all ? [...cells.keys()] : [...Object.keys(change), ''].filter(key => cells.has(key));
  // Of a row that is hidden nothing is written; whoever shows it says `hw:shown`.
  inSlices(rows.flatMap(row => cells.get(row)).flatMap(([path, format, node]) => {
    if (node.closest('tr[hidden]')) return [];
    const html = formats[format]?.(reach(all, path));
    return html === undefined ? [] : [[node, [node, html]]];
  }));
}

// ---- structure comes as HTML: the fragment is asked for again, at most every 1.2 s (or data-every)
const OPERATIONS = 'ops';                 // the key of fragments that list operations
const watching = new Map();
const EVERY = 1200;
const due = new Map();                    // node id -> timer
export function watch() {
  const wanted = new Set($$('[data-refresh]').flatMap(node => node.dataset.refresh.trim().split(/\s+/)).filter(key => key && key !== OPERATIONS));
  for (const [key, off] of watching) if (!wanted.has(key)) { off(); watching.delete(key); }
  for (const key of wanted) if (!watching.has(key)) watching.set(key, follow(key));
}

function follow(key) {
  const [topic, path] = key.split(':');
  let before, first = true;
  return subscribe(topic, (all, change) => {
    const at = path ? JSON.stringify(reach(all, path) ?? null) : change;
    if (!first && at !== before) refresh(key);
    before = at; first = false;
  });
}

export function refresh(key) {
  for (const node of $$('[data-refresh]')) {
    if (!node.dataset.refresh.split(/\s+/).includes(key) || due.has(node.id)) continue;
    due.set(node.id, setTimeout(() => {
      due.delete(node.id);
      const now = document.getElementById(node.id);
      if (now && !frozen() && !document.hidden && !isFilledIn(now) && isWanted(now)) { keepPlace(now); htmx.trigger(now, 'refresh'); }
    }, +node.dataset.every || EVERY));
  }
}

// Whoever would rather do it in another way prevents it.
const isWanted = node => node.dispatchEvent(new CustomEvent('hw:refresh', { cancelable: true }));

// Whether somebody writes or chooses something there; a button that was pressed is no reason to wait.
const isFilledIn = node => node.contains(document.activeElement?.closest('form')) && document.activeElement.matches('input, select, textarea');

// The button with the focus may be gone afterwards: then the one in its place gets it.
function keepPlace(node) {
  const at = $$('form button', node).indexOf(document.activeElement);
  if (at < 0) return;
  node.addEventListener('htmx:after:swap', () => {
    const buttons = $$('form button', document.getElementById(node.id) ?? node);
    if (document.activeElement === document.body) buttons[Math.min(at, buttons.length - 1)]?.focus({ preventScroll: true });
  }, { once: true });
}

// ---- times: ages count, the zone switch reaches every one of them
export function paintTimes() {
  const at = now();
  for (const node of $$('time[data-as]')) {
    const t = Date.parse(node.dateTime), as = node.dataset.as;
    const text = as === 'ago' ? agoText(t, at) : as === 'age' ? agoText(t, at).replace(' ago', '') : as === 'left' ? left(t - at) : as === 'second' ? hms(t) : stamp(t, at);
    if (node.textContent !== text) node.textContent = text;
  }
}
const left = ms => (ms <= 0 ? 'now' : `in ${agoText(0, ms).replace(' ago', '')}`);

export function start() {
  bind(); watch(); paintTimes();
  setInterval(() => connection() !== 'held' && paintTimes(), 1000);
  document.addEventListener('hw:tz', paintTimes);
  document.addEventListener('hw:shown', bind);
  for (const name of ['hw:op-started', 'hw:op-ended']) document.addEventListener(name, () => refresh(OPERATIONS));
  document.addEventListener('htmx:after:swap', () => { bind(); watch(); paintTimes(); document.dispatchEvent(new CustomEvent('hw:swapped')); });
}
