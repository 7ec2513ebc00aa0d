/** Pictures on canvases: frames as a strip, and the packets that wait in the queue. */

import type { Theme } from "./look.ts";
import { FRAME, type Store } from "./store.ts";

/** Sizes of canvases as they were laid out last: to ask for one in a frame would lay out the page once more. */
const sizes = new WeakMap<Element, DOMRectReadOnly>();
let resized = (): void => undefined;
const seen = new ResizeObserver((all) => {
  for (const { target, contentRect } of all) sizes.set(target, contentRect);
  // sizes are told after the frame is drawn: what was drawn in it had the old ones
  resized();
});

/** Tells whoever draws that a canvas has another size. */
export function whenResized(what: () => void): void {
  resized = what;
}

/** A canvas as sharp as the screen; its context in CSS pixels, cleared. */
function ready(canvas: HTMLCanvasElement): { cx: CanvasRenderingContext2D; width: number; height: number } | null {
  if (!sizes.has(canvas)) {
    sizes.set(canvas, canvas.getBoundingClientRect());
    seen.observe(canvas);
  }
  const { width, height } = sizes.get(canvas)!;
  const cx = canvas.getContext("2d");
  if (!cx || width === 0) return null;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  cx.setTransform(ratio, 0, 0, ratio, 0, 0);
  cx.clearRect(0, 0, width, height);
  return { cx, width, height };
}

export interface FrameCounts {
  shown: number;
  late: number;
  missing: number;
  key: number;
  frozen: number;
}

/** Frames of a window of time as bars as high as they are large; freezes as bands behind. */
export function drawFrames(canvas: HTMLCanvasElement, store: Store, window: [number, number], left: number, colour: string, theme: Theme): FrameCounts {
  const counts: FrameCounts = { shown: 0, late: 0, missing: 0, key: 0, frozen: 0 };
  const place = ready(canvas);
  if (!place) return counts;
  const { cx, width, height } = place;
  const scale = (width - left) / (window[1] - window[0]);
  const x = (time: number): number => left + (time - window[0]) * scale;
  const { frames, freezes } = store;
  cx.fillStyle = theme.freeze;
  for (let row = freezes.from(window[0]); row < freezes.length; row += 1) {
    const ends = freezes.at(row, 0);
    const begins = Math.max(window[0], ends - freezes.at(row, 1));
    counts.frozen += 1;
    cx.fillRect(x(begins), 0, (ends - begins) * scale, height);
  }
  const first = frames.from(window[0], FRAME.captured);
  let largest = 1;
  for (let row = first; row < frames.length; row += 1) largest = Math.max(largest, frames.at(row, FRAME.size));
  for (let row = first; row < frames.length; row += 1) {
    const shown = !Number.isNaN(frames.at(row, FRAME.rendered));
    const whole = !Number.isNaN(frames.at(row, FRAME.complete));
    const key = frames.at(row, FRAME.key) === 1;
    counts[shown ? "shown" : whole ? "late" : "missing"] += 1;
    if (key) counts.key += 1;
    const high = Math.max(3, (frames.at(row, FRAME.size) / largest) * (height - 8));
    const at = x(frames.at(row, FRAME.captured));
    const wide = Math.max(1, (scale / 30) * 0.7);
    cx.fillStyle = shown ? colour : whole ? theme.warn : theme.bad;
    cx.fillRect(at, height - high, wide, high);
    if (key) {
      // a cap: what needs no earlier frame is told apart without its colour
      cx.fillStyle = theme.ink;
      cx.fillRect(at - 1, height - high - 4, wide + 2, 2);
    }
  }
  return counts;
}

/** The queue as boxes, each as wide as the packet is large. In one queue the next to go is at the right, where an arrow
 * says so; `several` stand one after the other, and each has its own next. */
export function drawQueue(canvas: HTMLCanvasElement, store: Store, colourOf: (flow: number) => string, theme: Theme, room: number, several: boolean): void {
  const place = ready(canvas);
  if (!place) return;
  const { cx, width, height } = place;
  const scale = (width - 8) / room;
  let right = width - 4;
  for (const one of store.waiting) {
    const wide = Math.max(1, one.size * scale);
    cx.fillStyle = colourOf(one.flow);
    cx.fillRect(right - wide, 5, Math.max(0.8, wide - 1), height - 10);
    right -= wide;
    if (right < 0) break;
  }
  cx.strokeStyle = theme.edge;
  cx.lineWidth = 1.5;
  cx.beginPath();
  cx.moveTo(0, 2);
  cx.lineTo(width - 1, 2);
  cx.moveTo(0, height - 2);
  cx.lineTo(width - 1, height - 2);
  cx.stroke();
  if (several) return;
  cx.fillStyle = theme.edge;
  cx.beginPath();
  cx.moveTo(width - 1, height / 2 - 4);
  cx.lineTo(width - 1, height / 2 + 4);
  cx.lineTo(width + 3, height / 2);
  cx.fill();
}
