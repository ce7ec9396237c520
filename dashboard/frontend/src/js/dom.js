// Small helpers around the document.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
export const root = document.documentElement;

export function el(html) {
  const t = document.createElement('template');
  t.innerHTML = html.trim();
  return t.content.firstElementChild;
}

// What a script draws into is its own: a fragment that covers it leaves it as it is.
export function own(host) { host.setAttribute('hx-morph-skip', ''); }

// Writes markup only where it differs from what was written before.
export function write(node, html) { if (node.dataset.h !== html) { node.innerHTML = html; node.dataset.h = html; } }

export const query = new URLSearchParams(location.search);
export function setQuery(key, value) {
  if (value === null || value === '') query.delete(key); else query.set(key, value);
  const s = query.toString();
  history.replaceState(null, '', location.pathname + (s ? `?${s}` : '') + location.hash);
}

// The computed colour of a token: canvas code cannot resolve light-dark() itself.
let probe;
export function colour(token) {
  probe ??= document.body.appendChild(el('<i hidden></i>'));
  probe.style.color = `var(${token})`;
  return getComputedStyle(probe).color;
}

// A page read anew, as a document; null when the server does not give it.
export async function readPage(address) {
  const answer = await fetch(address);
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), 'text/html') : null;
}

export function readJson(id, fallback, page = document) {
  const node = page.getElementById(id);
  return node ? JSON.parse(node.textContent) : fallback;
}
