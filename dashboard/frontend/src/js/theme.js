// Runs before the first paint, so that a pinned theme never flashes.
(function (d, q) {
  let t = q.get('theme'), n = q.get('density');
  try { t = t || localStorage.theme; n = n || localStorage.density; } catch { /* storage may be off */ }
  if (t === 'light' || t === 'dark') d.dataset.theme = t;
  if (n === 'compact') d.dataset.density = n;
})(document.documentElement, new URLSearchParams(location.search));
