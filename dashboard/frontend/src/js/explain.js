// Pages that explain a job: the plots of streaming statistics, metrics and outputs.
import { $ } from './dom.js';
import { showBatches } from './batches.js';

const batches = $('[data-batches]');
if (batches) showBatches(batches);
