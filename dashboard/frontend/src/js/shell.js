// The frame around every page: theme, density, time zone, keys, help, jump list.
import { $, $$, el, query, readJson, root, setQuery } from './dom.js';
import { icon, tz } from './fmt.js';
import { toggleHold } from './live.js';

const keys = new Map();
export const key = (k, f) => keys.set(k, f);
const stored = (name, v) => { try { localStorage[name] = v; } catch { /* storage may be off */ } };

function theme() {
  const dark = root.dataset.theme === 'dark' || (!root.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  root.dataset.theme = dark ? 'light' : 'dark'; stored('theme', root.dataset.theme);
  if (query.has('theme')) setQuery('theme', root.dataset.theme);
  document.dispatchEvent(new Event('hw:theme'));
}
function density() {
  root.dataset.density = root.dataset.density === 'compact' ? 'comfortable' : 'compact';
  stored('density', root.dataset.density);
}
function zone() {
  tz.mode = tz.mode === 'UTC' ? 'Local' : 'UTC'; stored('tz', tz.mode);
  $('[data-tz-l]').textContent = tz.mode;
  document.dispatchEvent(new Event('hw:tz'));
}

function dialog(html, cls = '') {
  const d = el(`<dialog class="${cls}">${html}</dialog>`);
  document.body.append(d);
  d.addEventListener('close', () => d.remove());
  d.showModal();
  return d;
}

const KEYS = [['Search or jump', 'Ctrl K'], ['Filter this list', '/'], ['Hold or resume updates', 'P'], ['This list', '?'], ['Go to jobs', 'G J'], ['Go to replays', 'G R'], ['Go to cluster', 'G C'], ['Next, previous row', 'J K'], ['Open row', 'Enter'], ['Savepoint', 'S'], ['New replay', 'R'], ['Fit graph', 'F'], ['Walk the graph', 'Arrows'], ['Sections of a job', '1 to 5'], ['Theme', 'T'], ['Density', 'D']];
const help = () => dialog(`<div class="dlg"><h2>Keyboard</h2><div class="keys">${KEYS.map(([what, k]) => `<div><span>${what}</span><span>${k.split(' ').map(x => `<kbd>${x}</kbd>`).join(' ')}</span></div>`).join('')}</div><footer><button class="btn" data-close>Close</button></footer></div>`);

function jump() {
  const all = readJson('jump', []);
  const d = dialog(`<div class="field" role="combobox" aria-expanded="true" aria-haspopup="listbox" aria-controls="jl">${icon('search')}<input placeholder="Job, replay or page" aria-label="Search" autofocus></div><ul id="jl" role="listbox" aria-label="Results"></ul>`, 'cmd');
  const input = $('input', d), list = $('ul', d);
  let at = 0, found = [];
  const draw = () => {
    const words = input.value.toLowerCase();
    found = all.filter(x => `${x.name} ${x.note}`.toLowerCase().includes(words));
    at = Math.max(0, Math.min(at, found.length - 1));
    list.replaceChildren(...found.map((x, i) => {
      const li = el(`<li role="option" id="jo${i}" aria-selected="${i === at}" data-i="${i}">${icon(x.icon)}<span></span><span class="end"></span></li>`);
      li.children[1].textContent = x.name; li.children[2].textContent = x.note;
      return li;
    }));
    if (!found.length) { const li = el('<li class="empty"></li>'); li.textContent = `Nothing matches “${input.value}”.`; list.append(li); }
    input.setAttribute('aria-activedescendant', `jo${at}`);
  };
  const go = x => x && (location.href = x.url);
  input.oninput = () => { at = 0; draw(); };
  input.onkeydown = event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) { event.preventDefault(); at = (at + step + found.length) % found.length; draw(); }
    if (event.key === 'Enter') { event.preventDefault(); go(found[at]); }
  };
  list.onclick = event => { const li = event.target.closest('[data-i]'); if (li) go(found[+li.dataset.i]); };
  draw();
}

const GO = { j: '/jobs/', r: '/replays/', c: '/cluster/' };
let going = 0;
addEventListener('keydown', event => {
  if ((event.metaKey || event.ctrlKey) && event.key === 'k') { event.preventDefault(); return jump(); }
  if (event.target.closest('input,textarea,select,dialog') || event.metaKey || event.ctrlKey || event.altKey) return;
  if (Date.now() - going < 900 && GO[event.key]) { going = 0; location.href = GO[event.key]; return; }
  if (event.key === 'g') { going = Date.now(); return; }
  if (keys.has(event.key)) { event.preventDefault(); keys.get(event.key)(event); }
});

export function start() {
  if (!$('.app')) return;
  try { if (localStorage.tz === 'Local') zone(); } catch { /* storage may be off */ }
  for (const [k, f] of [['?', help], ['p', toggleHold], ['t', theme], ['d', density]]) if (!keys.has(k)) key(k, f);
  for (const [selector, f] of [['[data-cmd]', jump], ['[data-help]', help], ['[data-theme-btn]', theme], ['[data-tz]', zone], ['[data-live-pill]', toggleHold], ['[data-density-btn]', density]]) for (const node of $$(selector)) node.addEventListener('click', f);
  $$('.tabs a').forEach((a, i) => key(String(i + 1), () => a.click()));
}
