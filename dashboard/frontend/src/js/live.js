// The one socket of this tab: topics, sequence numbers, resume, stale, hold.
//
//   subscribe(topic, f)   f(value, change) after every snapshot, patch or event
//   live / held / stale   the three connection states; values do not move unless live
//   gone                  what the page shows is no longer told to this person; it stays so
//
// Protocol: controlplane/live/topics.py.
import { $, $$, root } from './dom.js';
import { clock, now, hms, durT } from './fmt.js';

const STALE_AFTER = 12_000, BACK_OFF = [500, 30_000], LOG = 100;
const topics = new Map();                 // name -> {seq, value, subs, dirty}
let socket = null, delay = BACK_OFF[0], heard = Date.now(), state = 'connecting', heldAt = 0, lostAt = 0, queued = false, build = null;

export function subscribe(name, f) {
  let topic = topics.get(name);
  if (!topic) { topic = { seq: null, value: null, subs: new Set(), change: null }; topics.set(name, topic); send('sub', { [name]: null }); }
  topic.subs.add(f);
  if (topic.value) f(topic.value, topic.value);
  return () => { topic.subs.delete(f); if (!topic.subs.size) { topics.delete(name); send('unsub', [name]); } };
}
export const value = name => topics.get(name)?.value ?? null;
export const connection = () => state;
export const frozen = () => state === 'held' || state === 'gone';

function send(op, list) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ op, topics: list }));
}

const isRow = v => v !== null && typeof v === 'object' && !Array.isArray(v);
// A table merges row by row and a null row is gone; a record merges field by field.
function merge(name, value, patch) {
  if (name !== 'fleet' && name !== 'alerts' && !name.endsWith('.ops')) return { ...value, ...patch };
  const next = { ...value };
  for (const [key, row] of Object.entries(patch)) {
    if (row === null) delete next[key]; else next[key] = isRow(row) ? { ...next[key], ...row } : row;
  }
  return next;
}

function apply(message) {
  const topic = topics.get(message.t);
  if (message.ts) clock.offset = message.ts - Date.now();
  if (message.k === 'hello') { build ??= message.build; if (build !== message.build) document.dispatchEvent(new CustomEvent('hw:new-build')); }
  else if (message.k === 'gone') { topics.delete(message.t); document.dispatchEvent(new CustomEvent('hw:gone', { detail: message.t })); }
  else if (message.k === 'html') document.dispatchEvent(new CustomEvent('hw:html', { detail: message }));
  else if (!topic) return;
  else if (message.k === 'snap' || message.k === 'op') take(topic, message, message.k === 'op' ? message : message.d, message.k === 'op' ? message : message.d);
  else if (topic.seq !== null && message.prev !== undefined && message.prev !== topic.seq) { topic.seq = null; send('sub', { [message.t]: null }); }
  else if (message.k === 'patch') take(topic, message, merge(message.t, topic.value, message.d), message.d);
  else if (message.k === 'event') take(topic, message, { events: [...(topic.value?.events ?? []), message.d].slice(-LOG) }, { events: [message.d] });
}

function take(topic, message, value, change) {
  topic.seq = message.seq; topic.value = value;
  topic.change = topic.change ? (topic.change.events ? { events: [...topic.change.events, ...(change.events ?? [])] } : merge(message.t, topic.change, change)) : change;
  if (!queued) { queued = true; requestAnimationFrame(flush); }
}

// At most one write per frame; nothing while held, everything on resume.
function flush() {
  queued = false;
  if (frozen()) return;
  for (const topic of topics.values()) {
    if (!topic.change) continue;
    const change = topic.change; topic.change = null;
    topic.subs.forEach(f => f(topic.value, change));
  }
}

function connect() {
  socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws/`);
  socket.onopen = () => {
    delay = BACK_OFF[0];
    send('sub', Object.fromEntries([...topics].map(([name, topic]) => [name, topic.seq])));
  };
  socket.onmessage = event => {
    heard = Date.now();
    if (!frozen() && state !== 'live') set('live');
    apply(JSON.parse(event.data));
  };
  socket.onclose = event => {
    socket = null;
    if (event.code === 4401) return document.dispatchEvent(new CustomEvent('hw:signed-out'));
    if (!document.hidden) setTimeout(connect, delay * (0.75 + Math.random() / 2));
    delay = Math.min(BACK_OFF[1], delay * 2);
  };
}

function set(next) {
  if (next === 'held') heldAt = now();
  state = next; root.dataset.conn = next; paint();
  document.dispatchEvent(new CustomEvent('hw:connection', { detail: next }));
  if (next === 'live') { queued = true; requestAnimationFrame(flush); }
}

function paint() {
  const pill = $('[data-live-pill]');
  if (!pill) return;
  const text = { live: 'Live', connecting: 'Connecting', held: `Held at ${hms(heldAt)}`, stale: `Reconnecting, data from ${durT(Math.floor((Date.now() - heard) / 1000) * 1000)} ago`, gone: `No longer live, data from ${hms(lostAt)}` }[state];
  pill.dataset.s = state; $('span', pill).textContent = text;
  pill.dataset.tip = { live: 'Connected. Press P to hold the screen still.', connecting: 'The page is complete; numbers move once the socket is open.', held: 'Updates are held on this screen only. Press P to resume.', stale: 'The socket dropped. Values are from before it did.', gone: 'You may no longer see this, or it is gone. Reload the page.' }[state];
  pill.setAttribute('aria-label', `${text}. ${state === 'held' ? 'Resume updates' : 'Hold updates'}`);
}

// Nothing more is told of what this page is about.
export function lose() {
  if (state === 'gone') return;
  lostAt = clock.offset + heard; set('gone');
}

export function toggleHold() {
  if (state === 'held') set(Date.now() - heard > STALE_AFTER ? 'stale' : 'live');
  else if (state === 'live') set('held');
}

export function start() {
  if (!$('[data-live-pill]')) return;
  paint(); connect();
  setInterval(() => {
    if (state === 'live' && Date.now() - heard > STALE_AFTER) set('stale');
    if (state === 'connecting' && Date.now() - heard > STALE_AFTER) set('stale');
    if (state === 'stale') paint();
  }, 1000);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !socket) { delay = BACK_OFF[0]; connect(); }
    else if (!document.hidden) send('sub', Object.fromEntries([...topics].map(([name, topic]) => [name, topic.seq])));
    else send('unsub', [...topics.keys()].filter(name => !name.startsWith('op.')));
  });
}
