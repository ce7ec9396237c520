// Job graph: dagre places the nodes once per plan; afterwards only numbers and bars move.
//
// Plain wheel scrolls the page, Ctrl or Cmd with the wheel zooms, drag pans, F fits, arrow keys
// follow the edges. Nodes are buttons whose name is a full sentence.
import { Graph, layout } from '@dagrejs/dagre';
import { $, el } from './dom.js';
import { busyBar, bar, dur, esc, icon, rateParts, rateT } from './fmt.js';

const WIDTH = 184, HEAD = 72, CHAINED = 17, SHOWN = 4, KINDS = { source: 'src', sink: 'sink', window: 'win', join: 'join', process: 'proc' };
const number = v => { const p = rateParts(v); return p ? `${p[0]}<span class="u">${p[1]}</span>` : '–'; };

// A vertex is a chain: its head gives the name, the operators after it stand below.
const chained = node => (node.chain.length > SHOWN + 1 ? [...node.chain.slice(1, SHOWN), `${node.chain.length - SHOWN} more`] : node.chain.slice(1));
const heightOf = node => HEAD + (node.chain.length > 1 ? chained(node).length * CHAINED + 4 : 0);

export class JobGraph {
  constructor(host, nodes, edges, onSelect) {
    Object.assign(this, { host, nodes, edges, onSelect, figures: {}, lens: 'busy', k: 1, tx: 0, ty: 0, touched: false });
    this.place();
    host.innerHTML = `<div class="gr-in"><svg width="${this.w}" height="${this.h}" aria-hidden="true"></svg></div><div class="gr-ctl"><button class="btn sm ico" data-z="1.2" aria-label="Zoom in">${icon('plus', 's')}</button><button class="btn sm ico" data-z=".833" aria-label="Zoom out">${icon('minus', 's')}</button><button class="btn sm ico" data-fit aria-label="Fit graph" data-tip="Fit (F)">${icon('fit', 's')}</button></div>`;
    host.style.setProperty('--gr-h', `${Math.round(Math.min(460, Math.max(180, this.h + 64)))}px`);
    this.inner = $('.gr-in', host); this.svg = $('svg', this.inner);
    this.boxes = {};
    nodes.forEach((node, i) => {
      const box = el(`<button class="nd" tabindex="${i ? -1 : 0}"></button>`), at = this.at[node.id];
      Object.assign(box.style, { left: `${at.x}px`, top: `${at.y}px`, width: `${WIDTH}px`, height: `${at.h}px` });
      box.dataset.id = node.id; box.dataset.tip = node.chain.join('\n'); this.inner.append(box); this.boxes[node.id] = box; this.draw(node);
    });
    this.drawEdges(); this.listen();
    new ResizeObserver(() => this.touched || this.fit()).observe(host);
  }

  place() {
    const g = new Graph();
    g.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 44, ranker: 'network-simplex' });
    g.setDefaultEdgeLabel(() => ({}));
    this.nodes.forEach(n => g.setNode(n.id, { width: WIDTH, height: heightOf(n) }));
    this.edges.forEach(e => g.setEdge(e.source, e.target));
    layout(g);
    this.at = Object.fromEntries(this.nodes.map(n => { const p = g.node(n.id); return [n.id, { x: p.x - WIDTH / 2, y: p.y - heightOf(n) / 2, h: heightOf(n) }]; }));
    ({ width: this.w, height: this.h } = g.graph());
  }

  // ---- numbers
  update(table) {
    for (const node of this.nodes) {
      const row = table[node.id];
      if (row) { this.figures[node.id] = row; this.draw(node); }
    }
    this.drawEdges();
  }
  setLens(lens) { this.lens = lens; this.nodes.forEach(n => this.draw(n)); }

  draw(node) {
    const f = this.figures[node.id] ?? {}, source = node.kind === 'source', sink = node.kind === 'sink';
    const rates = source ? `<span>${number(f.out)}</span>` : sink ? `<span>${number(f.in)}</span>` : `<span>${number(f.in)}</span>${icon('arrow', 's')}<span>${number(f.out)}</span>`;
    const tag = f.busy >= 95 ? '<span class="tag warn">bottleneck</span>' : f.bp > 50 ? '<span class="tag crit">waiting</span>' : '';
    const partly = f.running !== undefined && f.par && f.running < f.par ? `<span class="tag skew">${f.running} of ${f.par} running</span>` : '';
    const spoken = `, ${node.par} subtasks, in ${rateT(f.in)}, out ${rateT(f.out)}, busy ${Math.round(f.busy ?? 0)} percent, waiting ${Math.round(f.bp ?? 0)} percent`;
    const body = `<span class="nd-h">${icon(KINDS[node.kind] ?? 'proc', 's')}<b class="tr">${esc(node.chain[0])}</b></span><span class="nd-r">${rates}<i>×${node.par}</i></span>${this.meter(f)}${chained(node).map(name => `<span class="nd-c"><span class="tr">${esc(name)}</span></span>`).join('')}${tag}${partly}<span class="vh">${spoken}</span>`;
    const box = this.boxes[node.id];
    if (box.dataset.h === body) return;
    box.innerHTML = body; box.dataset.h = body;
    box.dataset.t = f.busy >= 95 ? 'warn' : '';
  }
  // One measure at a time; the lens picks which.
  meter(f) {
    if (this.lens === 'wm') {
      const behind = f.wm_ms == null || this.newest == null ? null : this.newest - f.wm_ms;
      return `<span class="nd-b">${bar(behind == null ? 0 : Math.min(100, behind / 36e5), 'ink')}<span class="pc">${dur(behind)}</span></span>`;
    }
    const waits = f.bp > 50;
    return `<span class="nd-b">${busyBar(f)}<span class="pc ${waits ? 't-crit' : f.busy >= 95 ? 't-warn' : ''}">${f.busy == null ? '–' : `${Math.round(waits ? f.bp : f.busy)}<span class="u">%</span>`}</span></span>`;
  }

  // ---- edges: width is the log of the rate, dashed where the source waits
  drawEdges() {
    const outs = {}, ins = {};
    this.edges.forEach(e => { (outs[e.source] ??= []).push(e); (ins[e.target] ??= []).push(e); });
    for (const list of Object.values(outs)) list.sort((a, b) => this.at[a.target].y - this.at[b.target].y);
    for (const list of Object.values(ins)) list.sort((a, b) => this.at[a.source].y - this.at[b.source].y);
    const port = (list, e, box) => box.y + box.h / 2 + (list.indexOf(e) - (list.length - 1) / 2) * 14;
    this.svg.innerHTML = this.edges.map(e => {
      const a = this.at[e.source], b = this.at[e.target], f = this.figures[e.source] ?? {};
      const x1 = a.x + WIDTH, x2 = b.x, y1 = port(outs[e.source], e, a), y2 = port(ins[e.target], e, b), dx = Math.max(18, (x2 - x1) / 2);
      const width = Math.max(1, Math.min(4, Math.log10((f.out ?? 0) + 1) * 0.68)).toFixed(2);
      const on = e.source === this.selected || e.target === this.selected;
      return `<g class="ed ${f.bp > 40 ? 'bp' : ''} ${e.ship} ${on ? 'on' : ''}"><path d="M${x1} ${y1}C${x1 + dx} ${y1} ${x2 - dx} ${y2} ${x2 - 4} ${y2}" stroke-width="${width}"/><path class="ah" d="M${x2 - 5.5} ${y2 - 3.2}l5 3.2-5 3.2z"/></g>`;
    }).join('');
  }

  // ---- selection, zoom, pan
  select(id, focus = false) {
    if (!this.boxes[id]) return;
    this.selected = id;
    for (const [key, box] of Object.entries(this.boxes)) { box.setAttribute('aria-pressed', key === id); box.tabIndex = key === id ? 0 : -1; }
    this.drawEdges();
    if (focus) { this.boxes[id].focus({ preventScroll: true }); this.reveal(id); }
    this.onSelect?.(id);
  }
  reveal(id) {
    const p = this.at[id], r = this.host.getBoundingClientRect(), x = p.x * this.k + this.tx, y = p.y * this.k + this.ty;
    if (x < 0) this.tx -= x - 20;
    if (x + WIDTH * this.k > r.width) this.tx -= x + WIDTH * this.k - r.width + 20;
    if (y < 0) this.ty -= y - 20;
    if (y + p.h * this.k > r.height) this.ty -= y + p.h * this.k - r.height + 20;
    this.apply();
  }
  apply() { this.inner.style.transform = `translate(${this.tx}px,${this.ty}px) scale(${this.k})`; this.host.classList.toggle('far', this.k < 0.68); }
  fit() {
    const r = this.host.getBoundingClientRect();
    if (!r.width) return;
    this.k = Math.min(1, Math.max(0.6, (r.width - 32) / this.w), Math.max(0.5, (r.height - 48) / this.h));
    this.tx = Math.max(16, (r.width - this.w * this.k) / 2); this.ty = (r.height - this.h * this.k) / 2;
    this.touched = false; this.apply();
  }
  zoom(factor, cx = this.host.clientWidth / 2, cy = this.host.clientHeight / 2) {
    const k = Math.min(1.6, Math.max(0.35, this.k * factor));
    this.tx = cx - (cx - this.tx) * k / this.k; this.ty = cy - (cy - this.ty) * k / this.k; this.k = k; this.touched = true; this.apply();
  }
  listen() {
    const host = this.host;
    let drag = null;
    host.addEventListener('click', event => {
      const z = event.target.closest('[data-z]'), box = event.target.closest('.nd');
      if (z) this.zoom(+z.dataset.z); else if (event.target.closest('[data-fit]')) this.fit(); else if (box) this.select(box.dataset.id);
    });
    host.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const r = host.getBoundingClientRect();
      this.zoom(event.deltaY < 0 ? 1.1 : 0.91, event.clientX - r.left, event.clientY - r.top);
    }, { passive: false });
    host.addEventListener('pointerdown', event => {
      if (event.target.closest('button') || event.button) return;
      drag = [event.clientX - this.tx, event.clientY - this.ty]; host.setPointerCapture(event.pointerId); host.classList.add('drag');
    });
    host.addEventListener('pointermove', event => { if (drag) { this.tx = event.clientX - drag[0]; this.ty = event.clientY - drag[1]; this.touched = true; this.apply(); } });
    for (const name of ['pointerup', 'pointercancel']) host.addEventListener(name, () => { drag = null; host.classList.remove('drag'); });
    host.addEventListener('keydown', event => {
      const box = event.target.closest('.nd'), next = box && this.neighbour(box.dataset.id, event.key);
      if (!next) return;
      event.preventDefault(); event.stopPropagation(); this.select(next, true);
    });
  }
  neighbour(id, key) {
    if (key === 'ArrowRight') return this.edges.find(e => e.source === id)?.target;
    if (key === 'ArrowLeft') return this.edges.find(e => e.target === id)?.source;
    const way = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (!way) return null;
    const near = other => Math.hypot((this.at[other].x - this.at[id].x) * 2, this.at[other].y - this.at[id].y);
    return this.nodes.map(n => n.id).filter(o => (this.at[o].y - this.at[id].y) * way > 4).sort((a, b) => near(a) - near(b))[0];
  }
}
