// The search box (Ctrl K): places, found by the server while one types, and what this page can do.
//
//   pages     the links of the navigation and of the job's tabs
//   actions   <button data-open> and <a data-key> of the page: what is not offered cannot be done
//   found     jobs, operators, savepoints and replays, from data-src
import { $, $$, el } from './dom.js';
import { icon } from './fmt.js';

const PAUSE = 120, LONGEST = 40;
const textOf = node => (node.dataset.title ?? node.textContent).trim().replace(/\s+/g, ' ');
const named = (node, note, go) => ({ name: textOf(node), note, go, icon: $('use', node)?.getAttribute('href').replace('#i-', '') ?? 'arrow' });

const pages = () => [
  ...$$('.nav a').map(a => ({ ...named($('span', a), 'page', () => a.click()), icon: $('use', a)?.getAttribute('href').replace('#i-', ''), keys: a.dataset.go ? `G ${a.dataset.go.toUpperCase()}` : '' })),
  ...$$('.tabs a').map((a, i) => ({ ...named(a, 'section of this job', () => a.click()), name: a.firstChild.textContent.trim(), keys: String(i + 1) })),
];
const actions = () => $$('main [data-open], main a[data-key], main button[data-key]').filter(node => !node.disabled && !node.closest('[hidden]')).map(node => ({ ...named(node, '', () => node.click()), keys: (node.dataset.key ?? '').toUpperCase() }));
const once = list => [...new Map(list.map(one => [`${one.name} ${one.note}`, one])).values()];

export function openPalette(dialog, own) {
  const box = dialog(`<div class="field">${icon('search')}<input role="combobox" aria-expanded="true" aria-controls="jl" aria-autocomplete="list" placeholder="Job, operator, savepoint, page or action" aria-label="Search" autofocus autocomplete="off" spellcheck="false"></div><div id="jl" role="listbox" aria-label="Results" tabindex="-1"></div>`, 'cmd', 'Search');
  const input = $('input', box), list = $('#jl', box), src = $('[data-cmd]').dataset.src, doing = once([...actions(), ...own]), going = pages();
  let at = 0, shown = [], found = [], asked = null, timer = null, answered = null, chosen = false;
  const fits = one => `${one.name} ${one.note}`.toLowerCase().includes(input.value.trim().toLowerCase());

  function draw() {
    const groups = [['Go to', [...found, ...going.filter(fits)]], ['Actions', doing.filter(fits)]].filter(([, all]) => all.length);
    shown = groups.flatMap(([, all]) => all).slice(0, LONGEST);
    at = Math.max(0, Math.min(at, shown.length - 1));
    let i = 0;
    list.replaceChildren(...groups.map(([title, all]) => group(title, all.map(one => option(one, i++)))));
    if (!shown.length && answered === input.value.trim()) { const none = el('<p class="empty"></p>'); none.textContent = `Nothing is called “${input.value}”.`; list.append(none); }
    mark();
  }
  function group(title, options) {
    const node = el('<div role="group"><div class="h" aria-hidden="true"></div></div>');
    node.setAttribute('aria-label', title); node.firstChild.textContent = title; node.append(...options);
    return node;
  }
  function option(one, i) {
    const node = el(`<div role="option" id="jo${i}" data-i="${i}">${icon(one.icon)}<span class="tr"></span><span class="end"></span></div>`);
    node.children[1].textContent = one.name; node.children[2].textContent = one.keys ? '' : one.note;
    for (const k of (one.keys ?? '').split(' ').filter(Boolean)) { const kbd = el('<kbd></kbd>'); kbd.textContent = k; node.children[2].append(kbd, ' '); }
    return node;
  }
  function mark() {
    for (const node of $$('[role=option]', list)) node.setAttribute('aria-selected', +node.dataset.i === at);
    $(`#jo${at}`, list)?.scrollIntoView({ block: 'nearest' });
    if (shown.length) input.setAttribute('aria-activedescendant', `jo${at}`); else input.removeAttribute('aria-activedescendant');
  }
  async function ask() {
    const words = asked = input.value.trim();
    let told = [];
    try {
      const answer = await fetch(`${src}?q=${encodeURIComponent(words)}`, { headers: { Accept: 'application/json' } });
      if (answer.ok) told = (await answer.json()).found;
    } catch { /* what this page offers is still there */ }
    if (words !== asked) return;
    found = told.map(one => ({ ...one, go: () => { location.href = one.url; } }));
    answered = words; draw();
    if (chosen) choose(shown[at]);
  }
  const choose = one => { if (one && box.open) { box.close(); one.go(); } };

  // Enter means what was typed, not what an earlier answer has left in the list: it waits for the answer.
  input.oninput = () => { at = 0; chosen = false; found = found.filter(fits); draw(); clearTimeout(timer); timer = setTimeout(ask, PAUSE); };
  input.onkeydown = event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) { event.preventDefault(); at = (at + step + shown.length) % shown.length; mark(); }
    if (event.key === 'Enter') { event.preventDefault(); if (answered === input.value.trim() || at) choose(shown[at]); else chosen = true; }
  };
  list.onclick = event => choose(shown[event.target.closest('[data-i]')?.dataset.i]);
  draw(); ask();
}
