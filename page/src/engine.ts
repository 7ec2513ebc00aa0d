/** The engine, unpacked from the page itself. */

import init, { World } from "../engine/tidegate_wasm.js";
import type { Section } from "./read.ts";

export { World };

/** Its sections, in the order of `read()`. */
export let sections: Section[] = [];

/** Unpacks and starts it.
 *
 * @throws Error with a sentence for people when this browser cannot.
 */
export async function startEngine(packed: string): Promise<void> {
  if (typeof WebAssembly !== "object") {
    throw new Error("This browser has no WebAssembly (or it is switched off), in which the engine runs. Any browser since 2017 has it.");
  }
  if (typeof DecompressionStream !== "function") {
    throw new Error("This browser cannot unpack the engine: it has no DecompressionStream. Chrome 80, Firefox 113, Safari 16.4 and later have it.");
  }
  const bytes = Uint8Array.from(atob(packed.trim()), (char) => char.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  try {
    await init({ module_or_path: await new Response(unpacked).arrayBuffer() });
  } catch (error) {
    throw new Error(`The engine cannot be started in this browser: ${message(error)}`);
  }
  sections = JSON.parse(World.sections()) as Section[];
}

export const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));
