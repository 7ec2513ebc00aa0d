/** A picture of the queue and a strip of frames for each contender, with what they show in words. */

import { colour, HUES, type Theme } from "./look.ts";
import type { Contender } from "./contender.ts";
import type { Runner } from "./runner.ts";
import { inSight } from "./sight.ts";
import { severalQueues } from "./play.ts";
import { kB, waitingWords } from "./store.ts";
import { drawFrames, drawQueue } from "./strip.ts";
import { roundTop } from "./chart.ts";

/** As wide as the axis of the charts, so that times stand below times. */
const AXIS = 62;

/** The picture is wide enough for so many bytes at least. */
const LEAST = 30_000;

interface Picture {
  canvas: HTMLCanvasElement;
  said: HTMLElement;
}

export class Pictures {
  private queues: Picture[] = [];
  private frames: Picture[] = [];
  private room = LEAST;

  build(controllers: readonly string[]): void {
    this.queues = controllers.map((word) => picture("queue", word));
    this.frames = controllers.map((word) => picture("frames", word));
    document.getElementById("queues")!.replaceChildren(...this.queues.map((one) => one.canvas.parentElement!));
    document.getElementById("frames")!.replaceChildren(...this.frames.map((one) => one.canvas.parentElement!));
    this.room = LEAST;
  }

  draw(runner: Runner, window: [number, number], colours: string[], theme: Theme, everything: boolean): void {
    const [queues, strips] = ["queues", "frames"].map((id) => everything || inSight(document.getElementById(id)!));
    const flow = runner.play.situation.flow;
    const most = Math.max(...runner.contenders.map(({ store }) => store.waiting.reduce((sum, one) => sum + one.size, 0)));
    const wanted = Math.max(LEAST, roundTop(most));
    if (wanted > this.room || wanted < this.room * 0.3) this.room = wanted;
    for (const [place, one] of runner.contenders.entries()) {
      const own = colours[place]!;
      // others have what is left of the palette; feedback and the like of the flow its colour, too
      const others = HUES.map((_, hue) => colour(hue, theme.dark)).filter((hue) => !colours.includes(hue));
      const colourOf = (index: number): string => (one.names.flows[index]?.name === flow ? own : others[index % others.length]!);
      if (queues) this.drawWaiting(this.queues[place]!, one, flow, colourOf, theme, severalQueues(runner.play));
      if (!strips) continue;
      const frames = this.frames[place]!;
      const counts = drawFrames(frames.canvas, one.store, window, AXIS, own, theme);
      say(frames, `in sight: ${counts.shown} shown, ${counts.late} late, ${counts.missing} not whole, ${counts.key} key, ${counts.frozen} freeze${counts.frozen === 1 ? "" : "s"}`);
    }
  }

  private drawWaiting(queue: Picture, one: Contender, own: string, colourOf: (flow: number) => string, theme: Theme, several: boolean): void {
    drawQueue(queue.canvas, one.store, colourOf, theme, this.room, several);
    const shares = new Map<number, number>();
    for (const packet of one.store.waiting) shares.set(packet.flow, (shares.get(packet.flow) ?? 0) + packet.size);
    const named = [...shares].sort((some, other) => some[0] - other[0]).map(([index, size]) => ({ name: one.names.flows[index]?.name ?? "other", size }));
    const of = named.every(({ name }) => name === own) ? [] : named.map(({ name, size }) => `${name} ${kB(size)}`);
    say(queue, waitingWords(one.store.waits(), of, several));
  }

  canvases(): [string, HTMLCanvasElement][] {
    const name = (what: string, one: Picture): string => `${what}: ${one.canvas.dataset.controller}`;
    return [...this.queues.map((one): [string, HTMLCanvasElement] => [name("waiting packets", one), one.canvas]),
      ...this.frames.map((one): [string, HTMLCanvasElement] => [name("frames", one), one.canvas])];
  }
}

function picture(what: string, word: string): Picture {
  const row = document.createElement("div");
  const who = document.createElement("span");
  who.className = "who";
  who.textContent = word;
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.dataset.picture = what;
  canvas.dataset.controller = word;
  const said = document.createElement("span");
  said.className = "said";
  row.append(who, canvas, said);
  return { canvas, said };
}

function say(picture: Picture, text: string): void {
  if (picture.said.textContent === text) return;
  picture.said.textContent = text;
  picture.canvas.setAttribute("aria-label", `${picture.canvas.dataset.picture} under ${picture.canvas.dataset.controller}: ${text}`);
}
