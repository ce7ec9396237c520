// Prints what fmt.js makes of many values: tests/dashboard/format.json, which Python must match.
//
//   node fixture.mjs > ../../tests/dashboard/format.json
import { build } from 'esbuild';

const { outputFiles } = await build({ entryPoints: ['src/js/fmt.js'], bundle: true, format: 'esm', write: false });
const fmt = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);

const NUMBERS = [0, 0.004, 0.05, 0.5, 1, 1.005, 1.25, 2.5, 9.94, 9.95, 9.994, 9.995, 10, 12.345, 99.94, 99.95, 99.985, 99.9996, 100, 320, 411.5, 999.4, 999.5, 1000, 1023.4, 1023.5, 1024, 3104, 9999.4, 9999.5, 10000, 99949, 99950, 411499, 999499, 999500, 4500000, 12345678, 99950000, 999500000, 82400000000, 318e9, 1.5e15];
const DURATIONS = [0, 1, 480, 999, 999.9, 1000, 3149, 9999, 10000, 24000, 59999, 60000, 161000, 3599999, 3600000, 18780000, 86399999, 86400000, 205200000, 31536000000];
const NOW = Date.UTC(2026, 10, 30, 4, 12, 31);
const TIMES = [NOW, NOW - 60000, Date.UTC(2026, 10, 30), Date.UTC(2026, 10, 29, 23, 59), Date.UTC(2026, 0, 1), Date.UTC(2025, 11, 31, 23, 59), Date.UTC(2013, 2, 14, 5, 7), Date.UTC(2027, 0, 1)];
const AGES = [0, 999, 1000, 9999, 10000, 61000, 3600000, 90000000];

const cases = [];
for (const kind of ['rate', 'count', 'bytes', 'percent', 'times']) for (const v of NUMBERS) cases.push({ kind, value: v, text: fmt[`${kind}T`](v), html: fmt[kind](v) });
for (const v of DURATIONS) cases.push({ kind: 'dur', value: v, text: fmt.durT(v), html: fmt.dur(v) });
for (const kind of ['rate', 'count', 'bytes', 'percent', 'times', 'dur']) cases.push({ kind, value: null, text: fmt[`${kind}T`](null), html: fmt[kind](null) });
const stamps = TIMES.map(t => ({ ms: t, now_ms: NOW, text: fmt.stamp(t, NOW) }));
const ages = AGES.map(a => ({ ms: NOW - a, now_ms: NOW, text: fmt.agoText(NOW - a, NOW) }));
const etas = [[null, null], [5, 5], [12, 90], [3600, 7300], [0.4, null]].map(([low, high]) => ({ low, high, text: fmt.etaText(low, high) }));
const cells = [
  ['whole', 1234567], ['whole', null], ['badge', 'RUNNING'], ['badge', 'no such state'], ['pill', 'RESTARTING'], ['mark', 'FAILED'], ['word', 'FAILED'], ['word', 'CANCELED'], ['word', 'CREATED'],
  ['busy', { busy: 42.4, bp: 12.6 }], ['busy', { busy: 98, bp: 71 }], ['busy', { busy: null }], ['busy', null], ['waiting', 71.4], ['waiting', 12], ['waiting', 0.2], ['waiting', null],
  ['progress', 78.12], ['progress', null], ['tally', 0], ['tally', 1], ['tally', 12], ['tally', null], ['alarm', 0], ['alarm', 2], ['alarm', null], ['delay', { delay_ms: 24000, goal_ms: 60000 }], ['delay', { delay_ms: 161000, goal_ms: 60000 }], ['delay', { delay_ms: 846000, goal_ms: 60000 }], ['delay', { delay_ms: 24000, goal_ms: null }], ['delay', null], ['goal', 60000], ['goal', null], ['took', { dur_ms: 1234, bytes: 7200 }], ['took', { dur_ms: null, bytes: null }], ['took', null], ['up', 61000], ['up', null], ['text', '<script>"&\''], ['text', ''], ['text', null], ['busyBarOf', 33.333], ['second', Date.UTC(2026, 10, 30, 4, 12, 31)],
].map(([format, value]) => ({ format, value, html: fmt.formats[format](value) }));
const sentences = ['', 'job file is empty: got nothing; choose another', 'bad.py cannot be read', 'HTTP failed', 'done.', 'now', 'it was cut…'].map(text => ({ raw: text, text: fmt.sentence(text) }));
console.log(JSON.stringify({ numbers: cases, stamps, ages, etas, cells, sentences }, null, 1));
