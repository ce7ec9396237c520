// Builds the bundle that is committed: styles, fonts, scripts, the icon sprite and the licences.
//
//   node build.mjs           writes ../static/dashboard/ and ../../templates/_sprite.html
//   node build.mjs --check   builds, then says whether what is committed is the same (for CI)
import { build } from 'esbuild';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { GLYPHS, ICONS } from './src/icons.mjs';

const OUT = '../static/dashboard/', SPRITE = '../../templates/_sprite.html', TARGETS = ['chrome123', 'firefox120', 'safari17.5'];
const read = path => readFileSync(path, 'utf8');
const before = process.argv.includes('--check') ? contents() : null;

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });

copyFileSync('node_modules/@fontsource-variable/geist/files/geist-latin-wght-normal.woff2', `${OUT}geist.woff2`);
// Of the monospaced face only the regular weight: the variable one of the package is 13 KB more on every first page.
copyFileSync('src/fonts/geist-mono-400.woff2', `${OUT}geist-mono.woff2`);

await build({ entryPoints: { app: 'src/css/app.css' }, bundle: true, minify: true, outdir: OUT, external: ['*.woff2'], target: TARGETS, logLevel: 'warning' });
await build({
  entryPoints: Object.fromEntries(['app', 'explain', 'fleet', 'job', 'operator', 'replay'].map(n => [n, `src/js/${n}.js`])),
  bundle: true, splitting: true, format: 'esm', minify: true, target: TARGETS, outdir: OUT, chunkNames: 'part-[hash]', preserveSymlinks: true, legalComments: 'none', logLevel: 'warning',
});
await build({ entryPoints: { theme: 'src/js/theme.js', layout: 'src/js/layout.js' }, bundle: true, minify: true, legalComments: 'none', target: TARGETS, outdir: OUT, logLevel: 'warning' });

const symbols = Object.entries(ICONS).map(([name, file]) => {
  const body = read(`node_modules/lucide-static/icons/${file}.svg`).replace(/<!--[\s\S]*?-->/g, '').replace(/<svg[\s\S]*?>/, '').replace('</svg>', '').replace(/\s+/g, ' ').trim();
  return `<symbol id="i-${name}" viewBox="0 0 24 24">${body}</symbol>`;
}).concat(Object.entries(GLYPHS).map(([name, body]) => `<symbol id="g-${name}" viewBox="0 0 12 12">${body}</symbol>`));
const hatch = '<pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="4" class="hatch-l"/></pattern>';
writeFileSync(SPRITE, `<svg class="sprite" width="0" height="0" aria-hidden="true"><defs>${hatch}${symbols.join('')}</defs></svg>\n`);

const LICENCES = { 'htmx.org': 'LICENSE', uplot: 'LICENSE', '@dagrejs/dagre': 'LICENSE', '@dagrejs/graphlib': 'LICENSE', 'lucide-static': 'LICENSE', '@fontsource-variable/geist': 'LICENSE', '@fontsource-variable/geist-mono': 'LICENSE' };
writeFileSync(`${OUT}LICENSES.txt`, Object.entries(LICENCES).map(([name, file]) => `${name} ${JSON.parse(read(`node_modules/${name}/package.json`)).version}\n\n${read(`node_modules/${name}/${file}`).trim()}\n`).join(`\n${'-'.repeat(72)}\n\n`));

let total = 0;
for (const name of readdirSync(OUT).sort()) {
  const raw = readFileSync(OUT + name), size = name.endsWith('.woff2') ? raw.length : gzipSync(raw, { level: 9 }).length;
  if (name !== 'LICENSES.txt') total += size;
  console.log(name.padEnd(24), String(raw.length).padStart(8), String(size).padStart(8));
}
console.log('all pages together, gz'.padEnd(33), String(total).padStart(8));

function contents() {
  const files = Object.fromEntries(readdirSync(OUT).sort().map(name => [name, readFileSync(OUT + name, 'base64')]));
  return JSON.stringify([files, read(SPRITE)]);
}
if (before !== null && before !== contents()) {
  console.error('the committed bundle is not what the source builds: run `npm ci && node build.mjs` and commit the result');
  process.exit(1);
}
