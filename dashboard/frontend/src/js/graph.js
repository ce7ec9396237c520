// Job graph: nodes are placed once per plan; afterwards only numbers, bars and colours move.
//
// Plain wheel scrolls the page, Ctrl or Cmd with the wheel zooms, drag pans, F fits, arrow keys
// follow the edges. Nodes are buttons whose name is a full sentence.
import { $, el, own, write } from './dom.js';
import { esc, icon, rateParts, rateT } from './fmt.js';
import { slices } from './frames.js';
import { behind, LENSES, spoken, tagsOf } from './lens.js';
import { placed } from './placed.js';

const WIDTH = 184, HEAD = 72, CHAINED = 17, SHOWN = 4, KINDS = { source: 'src', sink: 'sink', window: 'win', join: 'join', process: 'proc' };
const MANY = 40, FAR = 0.68, CLOSE = 0.9;  // from MANY nodes on, the whole may become as small as it must
const number = v => { const p = rateParts(v); return p ? `${p[0]}<span class="u">${p[1]}</span>` : '–'; };

// A vertex is a chain: its head gives the name, the operators after it stand below.
const chained = node => (node.chain.length > SHOWN + 1 ? [...node.chain.slice(1, SHOWN), `${node.chain.length - SHOWN} more`] : node.chain.slice(1));
const heightOf = node => HEAD + (node.chain.length > 1 ? chained(node).length * CHAINED + 4 : 0);

export class JobGraph {
  constructor(host, { nodes, edges }, onSelect) {
    Object.assign(this, { host, nodes, edges, onSelect, figures: {}, all: {}, lens: 'busy', stale: new Set(), size: { w: 0, h: 0 }, k: 1, tx: 0, ty: 0, touched: false, boxes: {}, lines: [] });
    own(host);
    this.byId = Object.fromEntries(nodes.map(n => [n.id, n]));
    this.ups = Object.fromEntries(nodes.map(n => [n.id, edges.filter(e => e.target === n.id).map(e => e.source)]));
    this.later = slices(work => work());
    host.innerHTML = `<p class="gr-wait mut" role="status">${nodes.length > MANY ? `Placing ${nodes.length} operators` : ''}</p><div class="gr-in"><svg aria-hidden="true"></svg></div><div class="gr-ctl"><button class="btn sm ico" data-z="1.2" aria-label="Zoom in">${icon('plus', 's')}</button><button class="btn sm ico" data-z=".833" aria-label="Zoom out">${icon('minus', 's')}</button><button class="btn sm ico" data-fit aria-label="Fit graph" data-tip="Fit (F)">${icon('fit', 's')}</button></div>`;
    this.inner = $('.gr-in', host); this.svg = $('svg', this.inner);
    this.ready = placed(nodes.map(n => ({ id: n.id, w: WIDTH, h: heightOf(n) })), edges.map(e => [e.source, e.target]), host.dataset.layout).then(where => this.build(where));
  }

  build({ at, w, h }) {
    const { host, nodes } = this;
    Object.assign(this, { w, h, at: Object.fromEntries(nodes.map(n => [n.id, { x: at[n.id][0], y: at[n.id][1], h: heightOf(n) }])) });
    this.svg.setAttribute('width', w); this.svg.setAttribute('height', h);
    host.style.setProperty('--gr-h', `${Math.round(Math.min(460, Math.max(180, h + 64)))}px`);
    $('.gr-wait', host).remove();
    for (const [i, node] of nodes.entries()) this.boxes[node.id] = this.box(node, i);
    this.inner.append(...Object.values(this.boxes).map(b => b.box));
    this.drawEdges(); this.listen(); this.fit();
    if (this.selected) this.select(this.selected);
    this.update(this.figures, this.newest);
    new ResizeObserver(() => { if (this.touched) this.apply(); else this.fit(); }).observe(host);
  }
  box(node, i) {
    const at = this.at[node.id], box = el(`<button class="nd" tabindex="${i ? -1 : 0}"><span class="nd-h">${icon(KINDS[node.kind] ?? 'proc', 's')}<b class="tr"></b></span><span class="nd-r"></span><span class="nd-b"></span>${chained(node).map(name => `<span class="nd-c"><span class="tr">${esc(name)}</span></span>`).join('')}<span class="tags"></span><span class="vh"></span></button>`);
    Object.assign(box.style, { left: `${at.x}px`, top: `${at.y}px`, width: `${WIDTH}px`, height: `${at.h}px` });
    $('b', box).textContent = node.chain[0];
    box.dataset.id = node.id; box.dataset.tip = node.chain.join('\n');
    return { box, rates: $('.nd-r', box), meter: $('.nd-b', box), tags: $('.tags', box), said: $('.vh', box) };
  }

  // ---- numbers: only what changed is written, a few nodes per frame
  update(table, newest) {
    Object.assign(this.figures, table); this.newest = newest;
    const rows = this.nodes.map(n => this.figures[n.id] ?? {});
    this.all = { newest, furthest: Math.max(0, ...rows.map(f => behind(f, newest) ?? 0)), largest: Math.max(0, ...rows.map(f => f.bytes ?? 0)) };
    for (const id of Object.keys(table)) this.stale.add(id);
    this.refresh();
  }
  // Only what is in view is drawn; the rest waits until it comes into view.
  refresh() {
    if (!this.at) return;
    const seen = this.nodes.filter(n => this.stale.has(n.id) && this.inView(n.id));
    this.later([...seen.map(n => [n.id, () => this.draw(n)]), ...this.lines.map(line => [line, () => this.tint(line)])]);
  }
  inView(id) {
    const p = this.at[id], x = p.x * this.k + this.tx, y = p.y * this.k + this.ty;
    return x < this.size.w && y < this.size.h && x + WIDTH * this.k > 0 && y + p.h * this.k > 0;
  }
  setLens(lens) { this.lens = lens; this.update(this.figures, this.newest); }

  draw(node) {
    const f = this.figures[node.id] ?? {}, b = this.boxes[node.id], source = node.kind === 'source', sink = node.kind === 'sink';
    const far = this.k < FAR, tags = tagsOf(f, this.ups[node.id].map(id => this.figures[id] ?? {}));
    if (!far) this.stale.delete(node.id);
    if (!far) write(b.rates, `${source || sink ? `<span>${number(source ? f.out : f.in)}</span>` : `<span>${number(f.in)}</span>${icon('arrow', 's')}<span>${number(f.out)}</span>`}<i>×${node.par}</i>`);
    write(b.meter, LENSES[this.lens](f, this.all));
    write(b.tags, tags.map(([css, text]) => `<span class="tag ${css}">${text}</span>`).join(''));
    if (!far) write(b.said, `, in ${rateT(f.in)}, out ${rateT(f.out)}, ${spoken(node, f, this.all)}`);
    b.box.dataset.t = tags.some(([, text]) => text === 'bottleneck') ? 'warn' : '';
  }

  // ---- edges: width is the log of the rate, dashed where the source waits
  drawEdges() {
    const outs = Map.groupBy(this.edges, e => e.source), ins = Map.groupBy(this.edges, e => e.target);
    for (const list of outs.values()) list.sort((a, b) => this.at[a.target].y - this.at[b.target].y);
    for (const list of ins.values()) list.sort((a, b) => this.at[a.source].y - this.at[b.source].y);
    const port = (list, e, box) => box.y + box.h / 2 + (list.indexOf(e) - (list.length - 1) / 2) * Math.min(14, (box.h - 12) / list.length);
    this.svg.innerHTML = this.edges.map(e => {
      const a = this.at[e.source], b = this.at[e.target];
      const x1 = a.x + WIDTH, x2 = b.x, y1 = port(outs.get(e.source), e, a), y2 = port(ins.get(e.target), e, b), dx = Math.max(18, (x2 - x1) / 2);
      return `<g class="ed"><path d="M${x1} ${y1}C${x1 + dx} ${y1} ${x2 - dx} ${y2} ${x2 - 4} ${y2}"/><path class="ah" d="M${x2 - 5.5} ${y2 - 3.2}l5 3.2-5 3.2z"/></g>`;
    }).join('');
    this.lines = this.edges.map((edge, i) => ({ edge, g: this.svg.children[i], was: '' }));
    this.lines.forEach(line => this.tint(line));
  }
  tint(line) {
    const { edge: e, g } = line, f = this.figures[e.source] ?? {};
    const css = `ed ${f.bp > 40 ? 'bp' : ''} ${e.ship} ${e.source === this.selected || e.target === this.selected ? 'on' : ''}`;
    const width = Math.max(1, Math.min(4, Math.log10((f.out ?? 0) + 1) * 0.68)).toFixed(1), is = css + width;
    if (line.was === is) return;
    line.was = is; g.setAttribute('class', css); g.firstChild.setAttribute('stroke-width', width);
  }

  // ---- selection, search, zoom, pan
  select(id, focus = false) {
    if (!this.byId[id]) return;
    const before = this.boxes[this.selected]?.box ?? this.boxes[this.nodes[0].id]?.box, now = this.boxes[id]?.box;
    this.selected = id;
    if (now) {
      before.setAttribute('aria-pressed', 'false'); before.tabIndex = -1;
      now.setAttribute('aria-pressed', 'true'); now.tabIndex = 0;
      this.lines.forEach(line => this.tint(line));
      if (focus) { now.focus({ preventScroll: true }); this.reveal(id); }
    }
    this.onSelect?.(id);
  }
  // Dims what does not fit; the ids that do, in the order of the plan.
  search(words) {
    const fits = n => !words || n.chain.join(' ').toLowerCase().includes(words);
    for (const node of this.nodes) this.boxes[node.id]?.box.classList.toggle('dim', !fits(node));
    return words ? this.nodes.filter(fits).map(n => n.id) : [];
  }
  reveal(id) {
    const p = this.at[id], r = this.host.getBoundingClientRect();
    if (this.k < FAR) { this.k = CLOSE; this.tx = r.width / 2 - (p.x + WIDTH / 2) * CLOSE; this.ty = r.height / 2 - (p.y + p.h / 2) * CLOSE; this.touched = true; }
    const x = p.x * this.k + this.tx, y = p.y * this.k + this.ty;
    if (x < 0) this.tx -= x - 20;
    if (x + WIDTH * this.k > r.width) this.tx -= x + WIDTH * this.k - r.width + 20;
    if (y < 0) this.ty -= y - 20;
    if (y + p.h * this.k > r.height) this.ty -= y + p.h * this.k - r.height + 20;
    this.apply();
  }
  apply() {
    this.inner.style.transform = `translate(${this.tx}px,${this.ty}px) scale(${this.k})`;
    this.host.classList.toggle('far', this.k < FAR);
    this.size = { w: this.host.clientWidth, h: this.host.clientHeight };
    this.refresh();
  }
  fit() {
    const r = this.host.getBoundingClientRect(), least = this.nodes.length > MANY ? [0.08, 0.08] : [0.6, 0.5];
    if (!r.width || !this.at) return;
    const across = Math.max(least[0], (r.width - 32) / this.w), down = Math.max(least[1], (r.height - 48) / this.h);
    this.k = Math.min(1, across, down);
    this.tx = Math.max(16, (r.width - this.w * this.k) / 2); this.ty = (r.height - this.h * this.k) / 2;
    this.touched = false; this.apply();
  }
  zoom(factor, cx = this.host.clientWidth / 2, cy = this.host.clientHeight / 2) {
    const k = Math.min(1.6, Math.max(this.nodes.length > MANY ? 0.08 : 0.35, this.k * factor));
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
