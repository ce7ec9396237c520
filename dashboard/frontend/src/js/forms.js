// Forms that start an operation: one request per click, a toast that follows it, refusals in place.
//
// The server answers 202 with HX-Trigger {"operation": {"id", "title"}}, 200 with {"said": "…"}, or
// 4xx with X-Refused and one sentence. Without this script the form is a plain POST and redirect.
import { $, $$ } from './dom.js';
import { buttons, say } from './rest.js';
import { followOperation, toast } from './toasts.js';

const newKey = () => crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, '0')).join('');

function settle(form) {
  for (const button of buttons(form)) button.removeAttribute('aria-busy');
}

function refuse(form, message) {
  if (!say(form, message)) toast('Not done', message, 'crit', 'failed');
}

function done(form) {
  say(form, '');
  const key = $('input[name=idempotency_key]', form);
  if (key) key.value = newKey();       // the next click is a new wish
  if (form.closest('dialog')?.open) { form.closest('dialog').close(); form.reset(); if (key) key.value = newKey(); for (const b of $$('[data-armed]', form)) b.disabled = true; }
}

// While an answer is awaited nothing more is sent: htmx would queue it, and it would come with a new key.
document.addEventListener('submit', event => {
  const form = event.target.closest('form[hx-post]');
  if (form && buttons(form).some(button => button.ariaBusy === 'true')) { event.preventDefault(); event.stopImmediatePropagation(); }
}, true);
// What is only asked is in addresses and logs: nothing that a form proves itself with.
document.addEventListener('htmx:config:request', event => {
  const { method, body } = event.detail.ctx.request;
  if (method === 'GET') for (const name of ['csrfmiddlewaretoken', 'idempotency_key']) body?.delete?.(name);
});
document.addEventListener('htmx:before:request', event => {
  const form = event.target.closest?.('form[hx-post]');
  if (form) for (const button of buttons(form)) button.setAttribute('aria-busy', 'true');
});
document.addEventListener('htmx:finally:request', event => {
  const form = event.target.closest?.('form[hx-post]');
  if (form) settle(form);
});
document.addEventListener('htmx:after:request', event => {
  const form = event.target.closest?.('form[hx-post]'), { response, text } = event.detail?.ctx ?? {};
  if (!form || !response) return;
  if (response.headers.get('X-Refused')) return refuse(form, new DOMParser().parseFromString(text, 'text/html').body.textContent.trim());
  if (response.status >= 400) return refuse(form, `The server answered ${response.status}; nothing was changed. Reload the page and try again.`);
  if (event.target !== form) return;   // something in it was asked for; the form itself was not sent
  const told = response.headers.get('HX-Trigger'), news = told?.startsWith('{') ? JSON.parse(told) : {};
  done(form);
  if (news.operation) { followOperation(news.operation.id, news.operation.title); document.dispatchEvent(new CustomEvent('hw:op-started')); }
  if (news.said) toast(news.said);
});
document.addEventListener('htmx:error', event => {
  const form = event.target.closest?.('form[hx-post]');
  if (form) refuse(form, 'The server did not answer; nothing is known of what was asked. Try again: it is asked only once.');
});
