// Toasts: one per operation, updated in place from "started" to its result.
import { $, el } from './dom.js';
import { glyph, icon, sentence, stateOf } from './fmt.js';
import { subscribe } from './live.js';

const LINGER = 8000;
const ENDED = new Set(['succeeded', 'failed', 'cancelled']);

export function toast(title, body = '', tone = 'ok', mark = 'finished', url = null) {
  const node = el('<div class="toast"><span class="st"></span><b class="em"></b><button class="tokx" aria-label="Dismiss"></button><p></p></div>');
  $('button', node).innerHTML = icon('x', 's');
  $('button', node).onclick = () => node.remove();
  $('.toasts').append(node);
  return write(node, title, body, tone, mark, url);
}

function write(node, title, body, tone, mark, url) {
  $('.st', node).className = `st ${tone}`;
  $('.st', node).innerHTML = glyph(mark);
  $('b', node).textContent = title;
  const p = $('p', node);
  p.textContent = sentence(body); p.hidden = !body && !url;
  if (url?.startsWith('/')) { const a = el('<a class="lnk">Open</a>'); a.href = url; p.append(body ? ' ' : '', a); }
  if (tone !== 'crit' && tone !== 'busy') setTimeout(() => node.remove(), LINGER);
  return node;
}

const followed = new Set();
// Follows `op.<id>` until it ends; whoever shows the operation elsewhere hears `hw:op-ended`.
export function followOperation(id, title) {
  if (followed.has(id)) return;
  followed.add(id);
  const node = toast(title, 'Asked for; the server has not answered yet.', 'busy', 'starting');
  const off = subscribe(`op.${id}`, op => {
    const s = stateOf(op.state), ended = ENDED.has(op.state);
    const counted = op.total ? ` (${op.done ?? 0} of ${op.total})` : '';
    write(node, op.title || title, (op.state === 'failed' ? op.error || op.text : op.text + counted) || '', s.tone === 'idle' ? 'warn' : s.tone, s.glyph, op.url);
    if (!ended) return;
    document.dispatchEvent(new CustomEvent('hw:op-ended', { detail: op }));
    queueMicrotask(() => off());
  });
}
