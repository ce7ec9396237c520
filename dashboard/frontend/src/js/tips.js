// Tooltips: text only, where the pointer has rested for 350 ms and on keyboard focus; Escape hides them.
import { el } from './dom.js';

const tip = el('<div class="tip" role="tooltip" id="tip" hidden></div>');
document.body.append(tip);
let timer, again = null;

// Lines of text; a pair is a dimmed label and a value.
function fill(lines) {
  tip.replaceChildren(...lines.map(line => {
    const row = el('<div class="tr2"><span class="k"></span><span></span></div>');
    if (Array.isArray(line)) { row.children[0].textContent = line[0]; row.children[1].textContent = line[1]; } else { row.className = ''; row.textContent = line; }
    return row;
  }));
}

export function showTip(lines, x, y, box) {
  fill(lines); again = null;
  tip.hidden = false; tip.classList.add('on');
  const size = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(innerWidth - size.width - 8, Math.max(8, x - size.width / 2))}px`;
  tip.style.top = `${y - size.height - 8 < 8 ? (box ? box.bottom : y) + 10 : y - size.height - 8}px`;
}
function above(node, lines) { const box = node.getBoundingClientRect(); showTip(lines, box.left + box.width / 2, box.top, box); }
// For an element that has focus: the tip goes where the element goes, also when focus itself has scrolled the page.
export function tell(node, lines) {
  above(node, lines);
  again = () => (node.isConnected ? tell(node, lines) : hideTip());
}
export function hideTip() { clearTimeout(timer); again = null; tip.classList.remove('on'); tip.hidden = true; }

function linesOf(node) {
  if (!node.matches('time')) return node.dataset.tip.split('\n');
  const t = Date.parse(node.dateTime), d = new Date(t), off = -d.getTimezoneOffset() / 60;
  return [['UTC', d.toISOString().slice(0, 19).replace('T', ' ')], [`Local ${off >= 0 ? '+' : '−'}${Math.abs(off)}`, d.toLocaleString('sv-SE')], ['Epoch ms', String(t)]];
}
const SOURCES = '[data-tip], time[datetime]';

// What lies under the pointer is asked when the wait is over: by then the page may have scrolled, or have put a new element there.
const hovered = () => [...document.querySelectorAll(SOURCES)].findLast(node => node.matches(':hover'));
function rest() { clearTimeout(timer); timer = setTimeout(() => { const node = hovered(); if (node) above(node, linesOf(node)); }, 350); }

// Inside [data-reads] whoever draws it says what the tooltip reads, also when it is drawn anew under a pointer that rests.
addEventListener('mouseover', event => { if (event.target.closest?.(SOURCES)) rest(); else if (!event.target.closest?.('[data-reads]')) hideTip(); });
addEventListener('scroll', () => { if (again) again(); else { hideTip(); rest(); } }, true);
addEventListener('focusin', event => { const node = event.target.closest?.(SOURCES); if (node?.matches(':focus-visible')) { tell(node, linesOf(node)); node.setAttribute('aria-describedby', 'tip'); } });
addEventListener('focusout', hideTip);
addEventListener('mousedown', hideTip);
addEventListener('keydown', event => event.key === 'Escape' && hideTip());
