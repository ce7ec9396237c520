// Checks ../dashboards/*.json: their shape by @grafana/schema, every query by the Flux language.
//
//     node check.mjs        prints what is wrong, one line each; exit code 1 when anything is

import { readFileSync, readdirSync, writeFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const HERE = dirname(fileURLToPath(import.meta.url));
const FOLDER = join(HERE, '..', 'dashboards');
const GENERATED = join(HERE, 'generated.ts');

// What Grafana fills in before a query is run.
const JOB = /\$\{job\}/g;
const FILLED_IN = 'option v = {timeRangeStart: -1h, timeRangeStop: now(), windowPeriod: 10s}\n';

const dashboards = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name) => [name, JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))]);

/** Sources of TypeScript: each dashboard, and the options of each panel, as a literal of its type. */
function source() {
  const raw = '@grafana/schema/dist/types/raw/composable';
  const lines = [
    "import type * as own from '@grafana/schema/dist/types/raw/dashboard/x/types.gen';",
    "import type { DataQuery } from '@grafana/schema';",
    `import type * as timeseries from '${raw}/timeseries/panelcfg/x/types.gen';`,
    // The schema's target of an annotation is that of Grafana's own store; here it is a query.
    "type Marks = Omit<own.AnnotationQuery, 'target'> & { target: DataQuery & { query: string } };",
    "type Dashboard = Omit<own.Dashboard, 'annotations'> & { annotations: { list: Marks[] } };",
    // JSON has strings where the types have enums.
    'type Plain<T> = T extends string ? `${T}` : T extends number | boolean | undefined | null ? T',
    '  : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;',
  ];
  dashboards.forEach(([name, dashboard], number) => {
    lines.push(`// ${name}`, `const d${number}: Plain<Dashboard> = ${JSON.stringify(dashboard)};`);
    dashboard.panels.forEach((panel, at) => {
      const options = JSON.stringify(panel.options);
      lines.push(`const o${number}_${at}: Plain<${panel.type}.Options> = ${options};`);
      const custom = panel.fieldConfig.defaults.custom;
      if (custom !== undefined) {
        const given = JSON.stringify(custom);
        lines.push(`const c${number}_${at}: Plain<${panel.type}.FieldConfig> = ${given};`);
      }
    });
  });
  return `${lines.join('\n')}\nexport {};\n`;
}

function typeErrors() {
  writeFileSync(GENERATED, source());
  const program = ts.createProgram([GENERATED], {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Node10,
    target: ts.ScriptTarget.ES2022,
  });
  const found = ts.getPreEmitDiagnostics(program).map((one) => {
    const text = ts.flattenDiagnosticMessageText(one.messageText, ' ');
    const line = one.file?.getLineAndCharacterOfPosition(one.start ?? 0).line ?? -1;
    const about = one.file?.text.split('\n')[line]?.slice(0, 60) ?? '';
    return `types: ${about}… ${text}`;
  });
  rmSync(GENERATED);
  return found;
}

/** The language server. It is built for bundlers, whose way to load it is done here by hand. */
function flux() {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve('@influxdata/flux-lsp-browser/package.json'));
  const text = readFileSync(join(folder, 'flux-lsp-browser_bg.js'), 'utf8');
  const names = [...text.matchAll(/^export (?:function|class) (\w+)/gm)].map((match) => match[1]);
  const body = text
    .replace(/^import .*$/m, '')
    .replace(/^export /gm, '')
    .replace(/(\ncached\w+ = new \w+\(wasm\.memory\.buffer\);)+\s*$/, 'function begin() {$&}');
  const wasm = {};
  const glue = new Function('wasm', `${body}\nreturn {begin, ${names.join(', ')}};`)(wasm);
  const module = new WebAssembly.Module(readFileSync(join(folder, 'flux-lsp-browser_bg.wasm')));
  const instance = new WebAssembly.Instance(module, { './flux-lsp-browser_bg.js': glue });
  Object.assign(wasm, instance.exports);
  glue.begin();
  return glue;
}

function queries(dashboard) {
  return [
    ...dashboard.panels.flatMap((panel) => panel.targets.map((one) => [panel.title, one.query])),
    ...dashboard.annotations.list.map((one) => [one.name, one.target.query]),
    ...dashboard.templating.list.map((one) => [one.name, one.query.query]),
  ];
}

function fluxErrors(language) {
  return dashboards.flatMap(([name, dashboard]) =>
    queries(dashboard)
      .filter(([, query]) => !new language.Flux(FILLED_IN + query.replace(JOB, 'flights')).is_valid())
      .map(([title]) => `flux: ${name}: ${title}`),
  );
}

const language = flux();
for (const wrong of ['from(bucket: ', 'from(bucket: 7)', 'nothing(bucket: "a")']) {
  if (new language.Flux(wrong).is_valid()) throw new Error(`taken for Flux: ${wrong}`);
}
const problems = [...typeErrors(), ...fluxErrors(language)];
problems.forEach((problem) => console.error(problem));
const count = dashboards.reduce((sum, [, one]) => sum + queries(one).length, 0);
console.log(`${dashboards.length} dashboards, ${count} queries, ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
