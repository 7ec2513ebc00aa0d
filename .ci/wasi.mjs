// Runs a program that was built for wasm32-wasip1, with the files of this machine: node wasi.mjs PROGRAM [ARGUMENT ...]
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const args = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args, preopens: { "/": "/" }, returnOnExit: true });
const { instance } = await WebAssembly.instantiate(await readFile(args[0]), wasi.getImportObject());
process.exit(wasi.start(instance));
