/** The page of `tidegate play`. */

import "uplot/dist/uPlot.min.css";
import { Controls } from "./controls.ts";
import { digest } from "./contender.ts";
import { get, notice } from "./dom.ts";
import { message, startEngine } from "./engine.ts";
import { decode } from "./fragment.ts";
import { Keep } from "./keep.ts";
import { readPayload } from "./payload.ts";
import { begin } from "./play.ts";
import { Runner } from "./runner.ts";
import { whenResized } from "./strip.ts";
import { toml } from "./toml.ts";
import { View } from "./view.ts";

/** Number of frames whose times are kept. */
const FRAME_TIMES_MAX = 2000;

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function colours(): void {
  const chosen = get<HTMLSelectElement>("theme").value;
  document.documentElement.dataset.theme = chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
}

async function start(): Promise<void> {
  colours();
  const payload = readPayload(get("payload").textContent ?? "");
  await startEngine(get("engine").textContent ?? "");
  const runner = new Runner(begin(payload.situations[0]!));
  const view = new View(runner);
  let dirty = true;
  let rebuilt = false;
  const redraw = (): void => {
    colours();
    rebuilt = true;
  };
  const controls = new Controls(runner, view, payload.situations, redraw);
  const keep = new Keep(runner, view);

  const openFragment = async (): Promise<void> => {
    notice("notice", null);
    const { play: before, present } = runner;
    try {
      const shared = await decode(location.hash, payload.situations);
      if (!shared) return;
      runner.playing = false;
      runner.speed = shared.speed;
      runner.open(shared.play, shared.at);
      // a link may carry a value that only looks like a scenario
      controls.shape();
      notice("notice", shared.notice);
    } catch (error) {
      if (runner.play !== before) runner.open(before, present);
      controls.shape();
      notice("notice", `${message(error)} ${before.situation.title} is shown instead.`);
    }
  };
  controls.shape();
  await openFragment();
  window.addEventListener("hashchange", () => void openFragment());
  dark.addEventListener("change", redraw);
  window.addEventListener("resize", () => {
    view.resize();
    dirty = true;
  });
  whenResized(() => (dirty = true));

  const times: number[] = [];
  let last = performance.now();
  let generation = -1;
  let play = runner.play;
  let rested = false;
  const frame = (now: number): void => {
    requestAnimationFrame(frame);
    const began = performance.now();
    if (runner.play.situation.refused === null) {
      const news = runner.frame(Math.max(0, now - last));
      if (play !== runner.play) {
        play = runner.play;
        keep.forget();
        dirty = true;
      }
      // at rest, all charts are drawn, not only those that have their turn
      const resting = !runner.playing && runner.idle;
      if (resting && (news || !rested)) dirty = true;
      rested = resting;
      const { contenders } = runner;
      if (generation !== runner.generation || rebuilt) {
        // colours and lines are those of the contenders, which exist only now
        if (contenders.length === runner.play.controllers.length) {
          generation = runner.generation;
          rebuilt = false;
          view.build();
          controls.attach();
          dirty = true;
        }
      }
      if ((news || dirty) && contenders.length > 0) view.draw(dirty);
      dirty = false;
      if (contenders.length > 0 || runner.error !== null) controls.update();
      if (runner.playing) times.push(performance.now() - began);
      if (times.length > FRAME_TIMES_MAX) times.shift();
    }
    last = now;
  };
  requestAnimationFrame(frame);

  /** Whether the requested state is shown: after a run has come to rest, the next frame draws all of it. */
  const ready = (): boolean => runner.idle && (runner.playing || rested);

  const which = (word: "a" | "b"): string => runner.play.controllers[word === "b" ? 1 : 0] ?? runner.play.controllers[0]!;
  Object.assign(window, {
    tidegate: {
      version: payload.version,
      /** The state of the page, as plain data. */
      state: () => runner.play.situation.refused !== null ? { situation: runner.play.situation.id, refused: runner.play.situation.refused } : ({
        situation: runner.play.situation.id, controllers: runner.play.controllers, queue: runner.play.queue, seed: runner.play.seed,
        moves: runner.play.moves, now: runner.now / 1000, duration: runner.end / 1000, playing: runner.playing, speed: runner.speed,
        capacity: runner.capacityAt(runner.present), ready: ready(), error: runner.error, undo: runner.canUndo,
        rows: runner.contenders.map(({ store }) => ({
          series: store.series.length, decisions: store.decisions.length, frames: store.frames.length, queue: store.queue.length,
          waiting: store.waiting.length, internals: [...store.internals.keys()],
        })),
      }),
      /** The digest of running a contender to the end. */
      digest: (word: "a" | "b" = "a") => digest(runner.play, which(word), () => true),
      /** Times of frames while it played, in ms: script and engine. */
      frameTimes: (forget = false) => (forget ? times.splice(0) : [...times]),
      toml: (word: "a" | "b" = "a") => toml(runner.play, which(word)),
    },
  });
}

start().catch((error: unknown) => {
  notice("error", message(error));
  get("work").hidden = true;
  get("story").hidden = true;
  document.querySelector("header")!.querySelectorAll("label").forEach((label) => (label.hidden = true));
});
