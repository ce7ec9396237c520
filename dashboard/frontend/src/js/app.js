// Every page: htmx, the shell, live cells, operation forms. Pages add their own entry.
import htmx from 'htmx.org';
import './tips.js';
import './dialogs.js';
import './forms.js';
import './copy.js';
import './gone.js';
import * as cells from './cells.js';
import * as live from './live.js';
import * as shell from './shell.js';
import * as fmt from './fmt.js';
import { $$, readJson } from './dom.js';
import { followOperation, toast } from './toasts.js';

htmx.config.includeIndicatorCSS = false;
htmx.config.morphIgnore = [...(htmx.config.morphIgnore ?? []), 'open', 'data-h'];
htmx.config.noSwap = [204, 304, 400, 403, 404, 409, 413, 422, 500, 502, 503];

document.addEventListener('hw:html', event => {
  const target = document.querySelector(event.detail.target);
  if (target) htmx.swap({ text: event.detail.html, target, swap: event.detail.swap ?? 'outerMorph' });
});
document.addEventListener('hw:new-build', () => toast('There is a new version', 'Reload the page to get it.', 'warn', 'deploy'));
document.addEventListener('hw:signed-out', () => document.getElementById('signed-out')?.showModal());

// The page's shell keys (s, r, /) press what the page itself offers.
for (const node of $$('[data-key]')) shell.key(node.dataset.key, () => (node.matches('input') ? node.focus() : node.click()));

// A panel that scrolls sideways can be reached by keyboard.
function scrollable() { for (const node of $$('.panel, .pickwrap')) { if (node.scrollWidth > node.clientWidth + 1 || node.matches('.pickwrap')) node.tabIndex = 0; else node.removeAttribute('tabindex'); } }
addEventListener('resize', scrollable);
document.addEventListener('hw:swapped', scrollable);
scrollable();

shell.start();
live.start();
cells.start();
for (const op of readJson('operations', [])) followOperation(op.id, op.title);
for (const text of readJson('said', [])) toast(text);
window.headwater = { fmt, live: { connection: live.connection, value: live.value } };
