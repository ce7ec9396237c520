// Work in slices: a long list of small writes never holds up a frame.
const BUDGET_MS = 4;

// slices(work) gives add(items): each item is worked off once per round, newest round only.
export function slices(work) {
  const waiting = new Map();
  let running = false;
  function step() {
    const until = performance.now() + BUDGET_MS;
    for (const [key, item] of waiting) {
      waiting.delete(key);
      work(item);
      if (performance.now() > until) break;
    }
    running = waiting.size > 0;
    if (running) requestAnimationFrame(step);
  }
  return items => {
    for (const [key, item] of items) waiting.set(key, item);
    if (!running && waiting.size) { running = true; step(); }
  };
}
