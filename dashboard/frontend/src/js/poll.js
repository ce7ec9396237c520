// Series are fetched, not pushed: one request at a time, none while held or hidden.
//
//   poll(url, every, take)   url() null: nothing is asked for; every: ms, or a function that says
import { frozen } from './live.js';

export function poll(url, every, take) {
  let timer = null, turn = 0;
  async function ask() {
    clearTimeout(timer);
    const mine = ++turn, address = url();
    if (address && !document.hidden && !frozen()) {
      try {
        const answer = await fetch(address, { headers: { Accept: 'application/json' } });
        if (answer.ok && mine === turn) take(await answer.json());
      } catch { /* the next turn asks again */ }
    }
    if (mine === turn) timer = setTimeout(ask, typeof every === 'function' ? every() : every);
  }
  ask();
  return ask;
}
