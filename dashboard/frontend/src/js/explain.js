// Pages that explain a job: the plots of streaming statistics, metrics and outputs.
import { $ } from './dom.js';
import { showBatches } from './batches.js';
import { showChanges } from './changes.js';
import { showMetrics } from './metrics.js';

for (const [selector, show] of [['[data-batches]', showBatches], ['[data-changes]', showChanges], ['[data-metrics]', showMetrics]]) {
  const host = $(selector);
  if (host) show(host);
}
