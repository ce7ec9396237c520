// Positions of a graph's nodes: from this tab's memory of the same plan, else from the worker.
const KEPT = 'layout:';

// A plan is known by its nodes with their sizes and its edges, not by the job that runs it.
function nameOf(nodes, edges) {
  let h = 5381;
  for (const c of JSON.stringify([nodes, edges])) h = (h * 33 ^ c.charCodeAt(0)) >>> 0;
  return `${KEPT}${nodes.length}.${edges.length}.${h}`;
}
const remember = (name, placed) => { try { sessionStorage[name] = JSON.stringify(placed); } catch { /* storage may be off or full */ } };
const recall = name => { try { return JSON.parse(sessionStorage[name] ?? 'null'); } catch { return null; } };

export function placed(nodes, edges, script) {
  const name = nameOf(nodes, edges), known = recall(name);
  if (known) return Promise.resolve(known);
  return new Promise((done, failed) => {
    const worker = new Worker(script);
    worker.onmessage = ({ data }) => { worker.terminate(); remember(name, data); done(data); };
    worker.onerror = failed;
    worker.postMessage({ nodes, edges });
  });
}
