// The frame around every page: theme, density, time zone, keys, help, the search box.
//
//   <a data-go="j">        G J goes there; the navigation says so, nothing else has to be told
//   <button data-key="s">  S presses it
import { $, $$, el, query, root, setQuery } from './dom.js';
import { tz } from './fmt.js';
import { toggleHold } from './live.js';
import { openPalette } from './palette.js';

const keys = new Map();
export const key = (k, f) => keys.set(k, f);
const stored = (name, v) => { try { localStorage[name] = v; } catch { /* storage may be off */ } };
const kept = name => { try { return localStorage[name] ?? ''; } catch { return ''; } };

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

export function dialog(html, cls, label) {
  const d = el(`<dialog class="${cls}">${html}</dialog>`);
  d.setAttribute('aria-label', label);
  document.body.append(d);
  d.addEventListener('close', () => d.remove());
  d.showModal();
  return d;
}

// ---- keys: one list for what they do and for the page that explains them
const single = () => kept('keys') !== 'off';
const FIXED = [['Search or jump', 'Ctrl K'], ['Filter this list', '/'], ['Hold or resume updates', 'P'], ['This list', '?'], ['Next, previous row', 'J K'], ['Open row', 'Enter']];
const OF_A_JOB = [['Fit graph', 'F'], ['Walk the graph, the timeline', 'Arrows'], ['Savepoint', 'S'], ['New replay', 'R']];
const LOOKS = [['Theme', 'T'], ['Density', 'D'], ['Close what is on top', 'Esc']];

function help() {
  if ($('dialog.help')) return;
  const going = $$('.nav [data-go]').map(a => [`Go to ${$('span', a).textContent.toLowerCase()}`, `G ${a.dataset.go.toUpperCase()}`]);
  const tabs = $$('.tabs a').length, job = tabs ? [...OF_A_JOB, ['Sections of a job', `1 to ${Math.min(9, tabs)}`]] : OF_A_JOB;
  const d = dialog('<div class="dlg"><h2>Keyboard</h2><div class="keys"></div><label class="row"><input type="checkbox"><span>Single keys work (Ctrl K and Escape always do)</span></label><footer><button class="btn" data-close autofocus>Close</button></footer></div>', 'help', 'Keyboard');
  for (const [what, ks] of [...FIXED, ...going, ...job, ...LOOKS]) {
    const line = el('<div><span></span><span></span></div>');
    line.firstChild.textContent = what;
    for (const k of ks.split(' ')) line.lastChild.append(k === 'to' ? 'to' : Object.assign(el('<kbd></kbd>'), { textContent: k }), ' ');
    $('.keys', d).append(line);
  }
  const box = $('input', d);
  box.checked = single();
  box.onchange = () => stored('keys', box.checked ? 'on' : 'off');
}

const OWN = [['Switch theme', 'moon', 'T', theme], ['Change row density', 'rows', 'D', density], ['Hold or resume updates', 'clock', 'P', toggleHold], ['Switch time zone', 'clock', '', zone], ['Keyboard shortcuts', 'help', '?', help]];
const jump = () => $('dialog.cmd') ?? openPalette(dialog, OWN.map(([name, icon, k, go]) => ({ name, note: '', icon, keys: k, go })));

const SECOND_KEY_MS = 900;
let going = 0;
addEventListener('keydown', event => {
  if ((event.metaKey || event.ctrlKey) && event.key === 'k') { event.preventDefault(); return jump(); }
  if (!single() || event.target.closest?.('input,textarea,select,dialog') || event.metaKey || event.ctrlKey || event.altKey) return;
  const place = Date.now() - going < SECOND_KEY_MS && $(`.nav [data-go="${CSS.escape(event.key)}"]`);
  going = 0;
  if (place) { event.preventDefault(); place.click(); return; }
  if (event.key === 'g') { going = Date.now(); return; }
  if (keys.has(event.key)) { event.preventDefault(); keys.get(event.key)(event); }
});

export function start() {
  if (!$('.app')) return;
  const tab = $('.tabs [aria-current]');
  if (tab) tab.parentNode.scrollLeft = tab.offsetLeft - tab.parentNode.clientWidth / 2;   // on a narrow screen it may be out of sight
  if (kept('tz') === 'Local') zone();
  for (const [k, f] of [['?', help], ['p', toggleHold], ['t', theme], ['d', density]]) if (!keys.has(k)) key(k, f);
  for (const [selector, f] of [['[data-cmd]', jump], ['[data-help]', help], ['[data-theme-btn]', theme], ['[data-tz]', zone], ['[data-live-pill]', toggleHold], ['[data-density-btn]', density]]) for (const node of $$(selector)) node.addEventListener('click', () => f());
  $$('.tabs a').slice(0, 9).forEach((a, i) => key(String(i + 1), () => a.click()));
}
