/** A picture of the queue and a strip of frames for each contender, with their content in words. */

import { colour, HUES, type Theme } from "./look.ts";
import type { Contender } from "./contender.ts";
import type { Runner } from "./runner.ts";
import { inSight } from "./sight.ts";
import { severalQueues } from "./play.ts";
import { kB, waitingWords } from "./store.ts";
import { drawFrames, drawQueue } from "./strip.ts";
import { roundTop } from "./chart.ts";

/** Width of the axis of the charts, by which times of all pictures are aligned. */
const AXIS = 62;

/** Smallest number of bytes for which the picture is wide enough. */
const ROOM_MIN = 30_000;

interface Picture {
  canvas: HTMLCanvasElement;
  caption: HTMLElement;
}

export class Pictures {
  private queues: Picture[] = [];
  private frames: Picture[] = [];
  private room = ROOM_MIN;

  build(controllers: readonly string[]): void {
    this.queues = controllers.map((word) => picture("queue", word));
    this.frames = controllers.map((word) => picture("frames", word));
    document.getElementById("queues")!.replaceChildren(...this.queues.map((picture) => picture.canvas.parentElement!));
    document.getElementById("frames")!.replaceChildren(...this.frames.map((picture) => picture.canvas.parentElement!));
    this.room = ROOM_MIN;
  }

  draw(runner: Runner, window: [number, number], colours: string[], theme: Theme, everything: boolean): void {
    const [queues, strips] = ["queues", "frames"].map((id) => everything || inSight(document.getElementById(id)!));
    const flow = runner.play.situation.flow;
    const largest = Math.max(...runner.contenders.map(({ store }) => store.waiting.reduce((sum, packet) => sum + packet.size, 0)));
    const needed = Math.max(ROOM_MIN, roundTop(largest));
    if (needed > this.room || needed < this.room * 0.3) this.room = needed;
    for (const [index, contender] of runner.contenders.entries()) {
      const callColour = colours[index]!;
      // the call's flow has its colour, feedback included; other flows have the rest of the palette
      const otherColours = HUES.map((_, hue) => colour(hue, theme.dark)).filter((hue) => !colours.includes(hue));
      const colourOf = (index: number): string => (contender.names.flows[index]?.name === flow ? callColour : otherColours[index % otherColours.length]!);
      if (queues) this.drawWaiting(this.queues[index]!, contender, flow, colourOf, theme, severalQueues(runner.play));
      if (!strips) continue;
      const frames = this.frames[index]!;
      const counts = drawFrames(frames.canvas, contender.store, window, AXIS, callColour, theme);
      say(frames, `in sight: ${counts.shown} shown, ${counts.late} late or not decodable, ${counts.missing} incomplete, ${counts.key} key, ${counts.stretches} time${counts.stretches === 1 ? "" : "s"} without a new picture`);
    }
  }

  private drawWaiting(queue: Picture, contender: Contender, callFlow: string, colourOf: (flow: number) => string, theme: Theme, separateQueues: boolean): void {
    drawQueue(queue.canvas, contender.store, colourOf, theme, this.room, separateQueues);
    const shares = new Map<number, number>();
    for (const packet of contender.store.waiting) shares.set(packet.flow, (shares.get(packet.flow) ?? 0) + packet.size);
    const byFlow = [...shares].sort((first, second) => first[0] - second[0]).map(([index, size]) => ({ name: contender.names.flows[index]?.name ?? "other", size }));
    const shareTexts = byFlow.every(({ name }) => name === callFlow) ? [] : byFlow.map(({ name, size }) => `${name} ${kB(size)}`);
    say(queue, waitingWords(contender.store.waits(), shareTexts, separateQueues));
  }

  canvases(): [string, HTMLCanvasElement][] {
    const name = (kind: string, picture: Picture): string => `${kind}: ${picture.canvas.dataset.controller}`;
    return [...this.queues.map((picture): [string, HTMLCanvasElement] => [name("waiting packets", picture), picture.canvas]),
      ...this.frames.map((picture): [string, HTMLCanvasElement] => [name("frames", picture), picture.canvas])];
  }
}

function picture(kind: string, word: string): Picture {
  const row = document.createElement("div");
  const name = document.createElement("span");
  name.className = "who";
  name.textContent = word;
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.dataset.picture = kind;
  canvas.dataset.controller = word;
  const caption = document.createElement("span");
  caption.className = "said";
  row.append(name, canvas, caption);
  return { canvas, caption };
}

function say(picture: Picture, text: string): void {
  if (picture.caption.textContent === text) return;
  picture.caption.textContent = text;
  picture.canvas.setAttribute("aria-label", `${picture.canvas.dataset.picture} under ${picture.canvas.dataset.controller}: ${text}`);
}
