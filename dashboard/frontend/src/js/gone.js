// A job or replay that this person may no longer see, or that is no more: what is on the page is
// marked as old, and its actions rest and say why.
import { $$, readJson } from './dom.js';
import { lose } from './live.js';
import { rest } from './rest.js';

const page = readJson('page', {}), subject = page.replay ? `replay.${page.replay}` : `job.${page.job}`;
const WHY = 'You may no longer see this, or it is gone; reload the page.';

document.addEventListener('hw:gone', event => {
  if (event.detail !== subject && !event.detail.startsWith(`${subject}.`)) return;
  lose();
  for (const button of $$('[data-open]')) { button.disabled = true; button.title = WHY; }
  for (const form of $$('main form[method=post], dialog form[method=post]')) rest(form, WHY);
});
