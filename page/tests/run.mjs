// The page's tests without a browser: each tests/*.test.ts through esbuild, then node's own test runner.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const made = mkdtempSync(join(tmpdir(), "tidegate-page-"));
try {
  const entryPoints = readdirSync(here).filter((name) => name.endsWith(".test.ts")).map((name) => join(here, name));
  await build({
    entryPoints, bundle: true, platform: "node", format: "esm", outdir: made, outExtension: { ".js": ".mjs" }, logLevel: "warning",
    // the engine itself is not needed here
    plugins: [{ name: "engine", setup: ({ onResolve }) => onResolve({ filter: /tidegate_wasm\.js$/ }, () => ({ path: join(here, "engine.ts") })) }],
    define: { ROOT: JSON.stringify(join(here, "../..")) },
  });
  const files = readdirSync(made).map((name) => join(made, name));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(made, { recursive: true });
}
