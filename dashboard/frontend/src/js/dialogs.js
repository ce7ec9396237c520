// Native dialogs that templates declare; those for dangerous actions ask for a typed name.
//
//   <button data-open="stop">            opens <dialog id="stop">
//   <input data-typed="flights">         enables the form's [data-armed] button when it matches
//   <dialog data-facts="job.12:state">   says that this has changed since it was opened, and rests
import { $, $$ } from './dom.js';
import { stateOf } from './fmt.js';
import { subscribe } from './live.js';
import { rest, wake } from './rest.js';

export function open(dialog) {
  dialog.showModal();
  watch(dialog);
  dialog.dispatchEvent(new CustomEvent('hw:open'));
  const first = $('[autofocus]', dialog);
  first?.focus();
  first?.select?.();
}

function watch(dialog) {
  const form = $('form', dialog), facts = (dialog.dataset.facts ?? '').split(' ').filter(Boolean);
  const offs = facts.map(fact => {
    const [topic, name] = fact.split(':');
    let before, first = true;
    return subscribe(topic, all => {
      if (!first && all[name] !== before) rest(form, `This has changed since you opened it: ${name === 'run' ? 'the job was started again' : `it is ${stateOf(all[name]).word.toLowerCase()} now`}. Close it and look again.`);
      if (first) { before = all[name]; first = false; }
    });
  });
  if (offs.length) dialog.addEventListener('close', () => { offs.forEach(off => off()); if ('rests' in form.dataset) wake(form); }, { once: true });
}

document.addEventListener('click', event => {
  const opener = event.target.closest('[data-open]');
  if (opener) { const d = document.getElementById(opener.dataset.open); if (d) { event.preventDefault(); if (opener.dataset.pick) $('select', d).value = opener.dataset.pick; open(d); } }
  if (event.target.closest('[data-close]')) event.target.closest('dialog')?.close();
  if (event.target instanceof HTMLDialogElement && event.target.open && !inside(event)) event.target.close();
});
function inside(event) {
  const box = event.target.getBoundingClientRect();
  return event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
}

document.addEventListener('input', event => {
  const field = event.target.closest('[data-typed]');
  if (field) for (const button of $$('[data-armed]', field.form)) button.disabled = field.value !== field.dataset.typed || 'rests' in field.form.dataset;
});

// The words on the red button follow the chosen variant.
document.addEventListener('change', event => {
  const radio = event.target.closest('input[type=radio][data-says]');
  if (radio) for (const button of $$('[data-armed]', radio.form)) button.textContent = radio.dataset.says;
  if (event.target.matches('input[type=file]')) {
    const name = event.target.closest('.file')?.querySelector('[data-name]');
    if (name) name.textContent = event.target.files[0]?.name ?? 'No file chosen';
  }
});
