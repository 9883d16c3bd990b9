// What a browser is given, made small: `web/assets.py` runs this in the folder where npm put its packages.
// node assets.mjs <static folder> <new folder>: scripts joined and style sheets, minified, each with its brotli twin.
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, constants } from 'node:zlib';
import { transform } from 'lightningcss';
import { minify } from 'terser';

const [from, to] = process.argv.slice(2);
const read = path => readFileSync(path, 'utf8');
const library = ['htmx.min.js', 'ext/hx-sse.min.js'].map(name => read(`node_modules/htmx.org/dist/${name}`));
const ours = async name => (await minify(read(`${from}/${name}`), { ecma: 2020, compress: { passes: 3 } })).code;
const style = name => transform({ filename: name, code: readFileSync(`${from}/${name}`), minify: true }).code;

const put = (name, content) => {
  const code = Buffer.from(content), size = { [constants.BROTLI_PARAM_SIZE_HINT]: code.length };
  writeFileSync(`${to}/${name}`, code);
  writeFileSync(`${to}/${name}.br`, brotliCompressSync(code, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, ...size } }));
};

// A font of a package, put beside the styles that name it: its address there changes with its content.
const font = (file, name) => {
  const content = readFileSync(file);
  writeFileSync(`${to}/${name}`, content);
  return `url(${name}?v=${createHash('sha256').update(content).digest('hex').slice(0, 12)})`;
};

// The page's own type: Latin, and what Polish or Turkish need besides, which is asked for only where such letters stand.
const inter = name => `node_modules/@fontsource-variable/inter/files/inter-${name}-wght-normal.woff2`;
const TYPE = { inter: font(inter('latin'), 'inter.woff2'), 'inter-ext': font(inter('latin-ext'), 'inter-ext.woff2') };
copyFileSync('node_modules/@fontsource-variable/inter/LICENSE', `${to}/inter-license.txt`); // the OFL goes wherever the font goes

put('bundle.js', [...library, await ours('app.js'), await ours('push.js')].join(';\n'));
put('lines.js', await ours('lines.js'));
put('app.css', style('app.css').toString().replace(/url\("?(inter[\w-]*)\.woff2"?\)/g, (all, name) => TYPE[name]));
put('sheet.css', style('sheet.css'));

// Diagrams, for a frame that is in no origin: `static/preview.js` hands it in.
put('mermaid.js', read('node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js'));

// Formulas: KaTeX with its way to copy TeX, and the fonts in the one format that every browser of today reads.
const katex = 'node_modules/katex/dist/';
put('math.js', [read(`${katex}katex.min.js`), read(`${katex}contrib/copy-tex.min.js`), await ours('math.js')].join(';\n'));
const formulas = {};
for (const name of readdirSync(`${katex}fonts`).filter(name => name.endsWith('.woff2'))) formulas[name] = font(`${katex}fonts/${name}`, name);
const FORMATS = /url\(fonts\/([\w-]+\.woff2)\) format\("woff2"\),url\([^)]*\) format\("woff"\),url\([^)]*\) format\("truetype"\)/g;
put('math.css', read(`${katex}katex.min.css`).replace(FORMATS, (all, name) => `${formulas[name]} format("woff2")`));
