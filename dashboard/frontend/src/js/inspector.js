// The operator that is selected: figures, its subtasks as bars, the four that have most to do.
import { $, $$, el, own, write } from './dom.js';
import { bytes, dur, formats, icon, known, rate, sentence } from './fmt.js';
import { poll } from './poll.js';
import { measureButtons, measured, MEASURES, Spread } from './subtasks.js';

const EVERY_MS = 2000, LARGE = 400, WORST = 4;
const KINDS = { source: 'Source', sink: 'Sink', window: 'Window', join: 'Join', process: 'Process' };
const FIGURES = [['In', 'in', rate], ['Out', 'out', rate], ['Watermark', 'wm_ms', formats.time], ['State', 'bytes', bytes]];

export class Inspector {
  constructor(host, src, newest) {
    Object.assign(this, { host, src, newest, node: null });
    own(host);
    this.again = poll(() => this.node && `${src}${this.node.id}/subtasks.json`, () => (this.node?.par > LARGE ? 2.5 * EVERY_MS : EVERY_MS), answer => this.take(answer));
  }
  show(node, figures) {
    if (this.node === node) return this.figures(figures);
    this.node = node;
    this.host.innerHTML = `<header><h2 class="tr"></h2><span class="mut tr"></span><div class="end"><a class="btn q sm">Open${icon('arrow', 's')}</a></div></header><div class="body"><p class="mut tr" data-chain></p><dl class="kv">${FIGURES.map(([name]) => `<dt>${name}</dt><dd></dd>`).join('')}</dl><div data-seg></div><div data-spread></div><p class="error" hidden></p></div><table class="tbl flat small"><thead><tr><th scope="col">Subtask</th><th scope="col">On</th><th class="num" scope="col">Records/s</th><th class="num" scope="col">Busy</th><th class="num" scope="col">Delay</th><th class="num" scope="col">State</th></tr></thead><tbody></tbody></table>`;
    $('h2', this.host).textContent = node.chain[0];
    $('header .mut', this.host).textContent = `${KINDS[node.kind] ?? 'Process'}, ${node.par} subtask${node.par === 1 ? '' : 's'}`;
    $('a', this.host).href = `${this.src}${node.id}/`;
    const chain = $('[data-chain]', this.host);
    chain.textContent = node.chain.length > 1 ? `then ${node.chain.slice(1).join(', ')}` : ''; chain.hidden = node.chain.length < 2;
    const seg = measureButtons('rate');
    seg.onclick = event => { const b = event.target.closest('[data-m]'); if (b) { for (const other of $$('button', seg)) other.setAttribute('aria-pressed', other === b); this.spread.set({ measure: b.dataset.m }); this.worst(); } };
    $('[data-seg]', this.host).append(seg);
    this.spread = new Spread($('[data-spread]', this.host));
    this.figures(figures); this.again();
  }
  figures(f = {}) {
    if (this.node) $$('dd', this.host).forEach((dd, i) => write(dd, FIGURES[i][2](f[FIGURES[i][1]])));
  }
  take(answer) {
    const wrong = $('.error', this.host);
    wrong.hidden = !answer.away; wrong.textContent = sentence(answer.away);
    if (answer.away || answer.vertex !== this.node.id) return;
    this.spread.set({ columns: measured(answer, this.newest()) });
    this.worst();
  }
  worst() {
    const c = this.spread.columns, values = c?.[this.spread.measure];
    if (!c) return;
    const top = c.index.map((_, i) => i).filter(i => known(values[i])).sort((a, b) => values[b] - values[a]).slice(0, WORST);
    $('tbody', this.host).replaceChildren(...top.map(i => {
      const row = el(`<tr class="r"><td>${c.index[i]}</td><td class="tr"></td><td class="num">${rate(c.rate[i])}</td><td class="num">${MEASURES.busy[1](c.busy[i])}</td><td class="num">${dur(c.delay[i])}</td><td class="num">${bytes(c.bytes[i])}</td></tr>`);
      row.children[1].textContent = c.host[i];
      return row;
    }));
  }
}
