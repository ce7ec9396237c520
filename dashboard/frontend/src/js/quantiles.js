// Quantiles of what is known of some values.
import { known } from './fmt.js';

export const sorted = values => values.filter(known).sort((a, b) => a - b);
export const median = ordered => (ordered.length ? (ordered[(ordered.length - 1) >> 1] + ordered[ordered.length >> 1]) / 2 : null);
export const quantile = (ordered, q) => (ordered.length ? ordered[Math.min(ordered.length - 1, Math.floor(q * ordered.length))] : null);
