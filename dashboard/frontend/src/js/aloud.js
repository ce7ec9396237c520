// What a screen reader is told by itself: a change of state, once. Figures are never said.
import { el } from './dom.js';
import { stateOf } from './fmt.js';
import { subscribe } from './live.js';

const region = el('<p class="vh" role="status" id="aloud"></p>');
document.body.append(region);

// statesOf(value of the topic): [[name, state]].
export function sayStates(topic, statesOf) {
  let before = null;
  subscribe(topic, all => {
    const now = new Map(statesOf(all)), changed = [...now].filter(([name, state]) => before?.has(name) && before.get(name) !== state);
    if (changed.length) region.textContent = changed.map(([name, state]) => `${name}: ${stateOf(state).word.toLowerCase()}`).join('; ');
    before = now;
  });
}
