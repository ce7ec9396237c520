// Forms that rest: nothing can be sent, and each button says why.
import { $, $$ } from './dom.js';

export const buttons = form => $$('button:not([type=button])', form).concat(form.id ? $$(`button[form="${form.id}"]`) : []);

export function say(form, message) {
  const place = $('[data-error]', form);
  if (place) { place.textContent = message; place.hidden = !message; }
  return place;
}
export function rest(form, why) {
  form.dataset.rests = why;
  for (const button of buttons(form)) { button.disabled = true; button.title = why; }
  say(form, why);
}
export function wake(form) {
  delete form.dataset.rests;
  for (const button of buttons(form)) { button.disabled = 'armed' in button.dataset; button.title = ''; }
  say(form, '');
}
