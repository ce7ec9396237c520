// Cells that live values are written to: data-b="topic path format".
//
//   <td data-b="fleet 12.in rate">412 k/s</td>     one path of a topic's value, formatted
//   data-refresh="job.12:state job.12.events"      fetch this fragment again when that changes
import htmx from 'htmx.org';
import { $$ } from './dom.js';
import { formats, agoText, stamp, now } from './fmt.js';
import { subscribe, connection } from './live.js';

const bound = new Map();                  // topic -> {cells: [[path, format, node]], off}
const reach = (value, path) => (path === '.' ? value : path.split('.').reduce((v, k) => v?.[k], value));

export function bind() {
  for (const entry of bound.values()) entry.cells = [];
  for (const node of $$('[data-b]')) {
    const [topic, path, format] = node.dataset.b.split(' ');
    if (!bound.has(topic)) {
      const entry = { cells: [] };
      bound.set(topic, entry);
      entry.off = subscribe(topic, value => paint(topic, value));
    }
    bound.get(topic).cells.push([path, format, node]);
  }
  for (const [topic, entry] of bound) if (!entry.cells.length) { entry.off(); bound.delete(topic); }
}

function paint(topic, value) {
  for (const [path, format, node] of bound.get(topic)?.cells ?? []) {
    const html = formats[format]?.(reach(value, path));
    if (html !== undefined && node.dataset.h !== html) { node.innerHTML = html; node.dataset.h = html; }
  }
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
  return subscribe(topic, (value, change) => {
    const at = path ? JSON.stringify(reach(value, path) ?? null) : change;
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
      if (now && connection() !== 'held' && !document.hidden && !now.contains(document.activeElement?.closest('form'))) htmx.trigger(now, 'refresh');
    }, +node.dataset.every || EVERY));
  }
}

// ---- times: ages count, the zone switch reaches every one of them
export function paintTimes() {
  const at = now();
  for (const node of $$('time[data-as]')) {
    const t = Date.parse(node.dateTime), as = node.dataset.as;
    const text = as === 'ago' ? agoText(t, at) : as === 'age' ? agoText(t, at).replace(' ago', '') : as === 'left' ? left(t - at) : stamp(t, at);
    if (node.textContent !== text) node.textContent = text;
  }
}
const left = ms => (ms <= 0 ? 'now' : `in ${agoText(0, ms).replace(' ago', '')}`);

export function start() {
  bind(); watch(); paintTimes();
  setInterval(() => connection() !== 'held' && paintTimes(), 1000);
  document.addEventListener('hw:tz', paintTimes);
  for (const name of ['hw:op-started', 'hw:op-ended']) document.addEventListener(name, () => refresh(OPERATIONS));
  document.addEventListener('htmx:after:swap', () => { bind(); watch(); paintTimes(); document.dispatchEvent(new CustomEvent('hw:swapped')); });
}
