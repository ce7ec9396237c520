// Dragging over a timeline chooses a stretch of it; Escape lets go. Fingers scroll, as everywhere.
const LEAST_PX = 5;

export function brush(timeline, choose) {
  const host = timeline.host, inside = event => Math.max(timeline.left, Math.min(timeline.left + timeline.width, event.clientX - host.getBoundingClientRect().left));
  let from = null, mark = null;
  const end = () => { from = null; mark?.remove(); mark = null; timeline.dragged = false; };
  function draw(x) {
    if (!mark && Math.abs(x - from) < LEAST_PX) return;
    timeline.dragged = true;
    mark ??= host.querySelector('svg').appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'rect'));
    for (const [name, value] of Object.entries({ class: 'brush', x: Math.min(x, from), width: Math.abs(x - from), y: 0, height: timeline.bottom + 2 })) mark.setAttribute(name, value);
  }
  host.addEventListener('pointerdown', event => {
    const x = event.clientX - host.getBoundingClientRect().left;
    if (event.button || event.pointerType === 'touch' || x < timeline.left || x > timeline.left + timeline.width) return;
    from = x;
  });
  addEventListener('pointermove', event => { if (from !== null) draw(inside(event)); });
  addEventListener('pointerup', event => {
    const to = inside(event), chosen = mark && [timeline.time(Math.min(from, to)), timeline.time(Math.max(from, to))];
    end();
    if (!chosen) return;
    // The click that ends a drag is none on the mark below.
    addEventListener('click', click => click.stopPropagation(), { capture: true, once: true });
    setTimeout(() => choose(...chosen));
  });
  addEventListener('pointercancel', end);
  addEventListener('keydown', event => { if (event.key === 'Escape' && from !== null) { event.stopPropagation(); end(); timeline.draw(); } }, true);
}
