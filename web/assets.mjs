// What a browser is given, made small: `web/assets.py` runs this in the folder where npm put its packages.
// node assets.mjs <static folder> <new folder>: scripts joined and style sheets, minified, each with its brotli twin.
import { readFileSync, writeFileSync } from 'node:fs';
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

put('bundle.js', [...library, await ours('app.js'), await ours('push.js')].join(';\n'));
put('app.css', style('app.css'));
