// Runs the engine for browsers: node page-engine.mjs FOLDER SCENARIO.json [CHANGES.json [TRACES.json]]
// FOLDER is what crates/wasm/build wrote, SCENARIO a lowered scenario, TRACES the list of what it plays. The run goes in uneven steps, is read and asked
// for its metrics on the way, and changed by hand at the times of CHANGES ([{time_s, link, change}], a change as the engine takes it).
// Prints the digest.
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, scenario, changes, traces] = process.argv.slice(2);
const engine = await import(pathToFileURL(resolve(join(folder, "tidegate_wasm.js"))).href);
await engine.default({ module_or_path: await readFile(join(folder, "tidegate_wasm_bg.wasm")) });
const planned = changes ? JSON.parse(await readFile(changes, "utf8")) : [];
const world = new engine.World(await readFile(scenario, "utf8"), traces ? await readFile(traces, "utf8") : "[]");
const sections = JSON.parse(engine.World.sections());

let rows = 0;
for (let step = 1; world.now < world.duration; step += 1) {
    // steps of 7 to 500 ms, and to the next change
    const next = Math.min(world.now + ((step * 7) % 499) / 1e3 + 0.007, planned[0]?.time_s ?? Infinity, world.duration);
    while (!world.step(next, 1000));
    while (planned.length > 0 && planned[0].time_s === world.now) {
        const { time_s, link, change } = planned.shift();
        world.change(link, time_s, JSON.stringify(change));
    }
    const news = world.read();
    let place = 0;
    for (const { columns } of sections) {
        rows += news[place];
        place += 1 + news[place] * columns.length;
    }
    if (place !== news.length) throw new Error(`${news.length} numbers are read as ${place}`);
    if (step % 20 === 0) JSON.parse(world.metrics());
}
if (!(rows > world.duration)) throw new Error(`${rows} rows were read of ${world.duration} s`);
console.log(JSON.parse(world.finish()).digest);
