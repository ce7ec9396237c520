// Where the nodes of a graph stand: dagre, in a worker, so that no page waits for it.
//
//   → {nodes: [{id, w, h}], edges: [[source, target]]}
//   ← {at: {id: [x, y]}, w, h}      left upper corners, and the size of the whole
import { Graph, layout } from '@dagrejs/dagre';

onmessage = ({ data: { nodes, edges } }) => {
  const g = new Graph();
  // Of a large graph the simplex would take seconds; its longest paths are as readable.
  g.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 44, ranker: nodes.length > 120 ? 'longest-path' : 'network-simplex' });
  g.setDefaultEdgeLabel(() => ({}));
  for (const n of nodes) g.setNode(n.id, { width: n.w, height: n.h });
  for (const [source, target] of edges) g.setEdge(source, target);
  layout(g);
  const at = Object.fromEntries(nodes.map(n => { const p = g.node(n.id); return [n.id, [p.x - n.w / 2, p.y - n.h / 2]]; }));
  postMessage({ at, w: g.graph().width, h: g.graph().height });
};
