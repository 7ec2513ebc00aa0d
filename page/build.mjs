// The page in one file: script, style and engine inlined into src/page.html.
// node build.mjs [OUT]: by default where the package has it.

import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../python/tidegate/show/play/page.html");
const engine = join(here, "engine/tidegate_wasm_bg.wasm");
if (!existsSync(engine)) {
  console.error("page/engine has no engine: `crates/wasm/build page/engine` makes it (`make page` does both)");
  process.exit(1);
}

const { outputFiles, warnings } = await build({
  entryPoints: [join(here, "src/main.ts")],
  bundle: true,
  format: "iife",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "inline",
  write: false,
  outdir: "out",
  logLevel: "warning",
  // the engine's own way to find its file, which is not used: it is in the page
  define: { "import.meta.url": '"about:blank"' },
});
if (warnings.length > 0) process.exit(1);
const script = outputFiles.find((file) => file.path.endsWith(".js")).text;
const style = outputFiles.find((file) => file.path.endsWith(".css")).text + readFileSync(join(here, "src/style.css"), "utf8");
for (const [name, text, end] of [["script", script, /<\/script|<!--/i], ["style", style, /<\/style/i]]) {
  if (end.test(text)) throw new Error(`the ${name} has what ends its element`);
}

// the words that their licences ask for
const licences = ["uplot", "smol-toml"].map((name) => `${name}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").replaceAll("--", "- -")}`);

const parts = {
  "<!--LICENCES-->": `<!--\n${licences.join("\n\n")}\n-->`,
  "/*STYLE*/": style,
  "/*ENGINE*/": gzipSync(readFileSync(engine), { level: 9 }).toString("base64"),
  "/*SCRIPT*/": script,
};
let page = readFileSync(join(here, "src/page.html"), "utf8");
for (const [mark, text] of Object.entries(parts)) {
  if (page.split(mark).length !== 2) throw new Error(`src/page.html has ${mark} not once`);
  page = page.replace(mark, () => text);
}
if (page.split("/*PAYLOAD*/null").length !== 2) throw new Error("the page has the place of the payload not once");
mkdirSync(dirname(out), { recursive: true });
writeFileSync(`${out}.new`, page);
renameSync(`${out}.new`, out);
console.log(`${out}: ${Math.round(page.length / 1000)} kB`);
