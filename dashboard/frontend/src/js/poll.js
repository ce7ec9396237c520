// Series are fetched, not pushed: one request at a time, none while held or hidden.
import { connection } from './live.js';

export function poll(url, every, take) {
  let timer = null, turn = 0;
  async function ask() {
    clearTimeout(timer);
    const mine = ++turn;
    if (!document.hidden && connection() !== 'held') {
      try {
        const answer = await fetch(url(), { headers: { Accept: 'application/json' } });
        if (answer.ok && mine === turn) take(await answer.json());
      } catch { /* the next turn asks again */ }
    }
    if (mine === turn) timer = setTimeout(ask, every);
  }
  ask();
  return ask;
}
