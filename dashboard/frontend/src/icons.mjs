// The icons that pages use (lucide) and the state glyphs, each with a silhouette of its own.
export const ICONS = {
  jobs: 'list-tree', replay: 'rewind', cluster: 'server', save: 'bookmark', search: 'search', moon: 'moon', help: 'circle-question-mark', plus: 'plus', minus: 'minus',
  stop: 'square', arrow: 'arrow-right', back: 'arrow-left', up: 'arrow-up', down: 'arrow-down', x: 'x', fit: 'maximize', clock: 'clock', filter: 'list-filter', rows: 'rows-3', play: 'play', src: 'log-in', sink: 'log-out', join: 'merge',
  win: 'app-window', proc: 'cpu', camera: 'camera', upload: 'upload', trash: 'trash-2', out: 'log-out', calendar: 'calendar-clock', import: 'folder-input', shield: 'shield-check', info: 'info', sliders: 'sliders-horizontal', copy: 'copy', download: 'download',
  users: 'users', key: 'key-round', audit: 'scroll-text', settings: 'settings', bell: 'bell',
  gauge: 'gauge', pause: 'pause', swap: 'arrow-left-right',
};
export const GLYPHS = {
  running: '<circle cx="6" cy="6" r="4" fill="currentColor"/>',
  degraded: '<path d="M6 1.2 11.4 10.6H.6Z" fill="currentColor" stroke="currentColor" stroke-linejoin="round" stroke-width=".8"/>',
  failed: '<path d="M3.7.9h4.6l2.8 2.8v4.6l-2.8 2.8H3.7L.9 8.3V3.7Z" fill="currentColor"/><path d="m4.2 4.2 3.6 3.6m0-3.6L4.2 7.8" class="gx" stroke-width="1.5" stroke-linecap="round" fill="none"/>',
  restarting: '<path d="M10.4 6a4.4 4.4 0 1 1-1.5-3.3" stroke="currentColor" stroke-width="1.8" fill="none" stroke-linecap="round"/><path d="M9.4.3v3H6.4" stroke="currentColor" stroke-width="1.6" fill="none" stroke-linecap="round" stroke-linejoin="round"/>',
  starting: '<circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.6" opacity=".35"/><path d="M6 1.8A4.2 4.2 0 0 1 10.2 6" stroke="currentColor" stroke-width="1.8" fill="none" stroke-linecap="round"/>',
  suspended: '<path d="M3.6 2v8M8.4 2v8" stroke="currentColor" stroke-width="2.2" stroke-linecap="round"/>',
  finished: '<path d="m1.8 6.4 2.7 2.8 5.7-6" stroke="currentColor" stroke-width="2" fill="none" stroke-linecap="round" stroke-linejoin="round"/>',
  replaying: '<path d="M1 2.2 5.4 6 1 9.8Zm5.4 0L10.8 6 6.4 9.8Z" fill="currentColor" stroke="currentColor" stroke-width=".8" stroke-linejoin="round"/>',
  queued: '<circle cx="6" cy="6" r="3.9" fill="none" stroke="currentColor" stroke-width="1.6"/>',
  savepoint: '<path d="M6 .6 11.4 6 6 11.4.6 6Z" fill="currentColor"/>',
  deploy: '<path d="M2.6 11V1.4h7L7.6 4l2 2.6h-6" fill="currentColor" stroke="currentColor" stroke-width="1.2" stroke-linejoin="round"/>',
};
