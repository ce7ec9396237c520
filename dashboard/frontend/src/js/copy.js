// Buttons that copy the text beside them, and selects that submit their form when they change.
import { $$, root } from './dom.js';

function byHand(text) { // without a secure context there is no clipboard to ask
  const area = Object.assign(document.createElement('textarea'), { value: text });
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

async function copy(button) {
  const from = button.closest('[data-trace]'), text = $$('pre', from).map(p => p.textContent).join('\n'), label = button.lastChild;
  let done;
  try { await navigator.clipboard.writeText(text); done = true; } catch { done = byHand(text); }
  label.textContent = done ? 'Copied' : 'Not copied: select the text';
  setTimeout(() => { label.textContent = 'Copy'; }, 2000);
}

root.addEventListener('click', event => { const button = event.target.closest('[data-copy]'); if (button) copy(button); });
root.addEventListener('change', event => { if (event.target.matches('[data-submit]')) event.target.form.requestSubmit(); });
