/** Pictures on canvases: frames as a strip, and the packets that wait in the queue. */

import type { Theme } from "./look.ts";
import { FRAME, type Store } from "./store.ts";

/** Sizes of canvases after the last layout: reading one in a frame would lay out the page once more. */
const sizes = new WeakMap<Element, DOMRectReadOnly>();
let resized = (): void => undefined;
const observer = new ResizeObserver((all) => {
  for (const { target, contentRect } of all) sizes.set(target, contentRect);
  // sizes arrive after the frame is drawn, which was drawn with the old ones
  resized();
});

/** Sets the function to call when a canvas has another size. */
export function whenResized(redraw: () => void): void {
  resized = redraw;
}

/** A canvas as sharp as the screen; its context in CSS pixels, cleared. */
function ready(canvas: HTMLCanvasElement): { cx: CanvasRenderingContext2D; width: number; height: number } | null {
  if (!sizes.has(canvas)) {
    sizes.set(canvas, canvas.getBoundingClientRect());
    observer.observe(canvas);
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
  stretches: number;
}

/** Draws the frames of a window of time as bars, with their sizes as heights, and times without a new picture as bands behind them. */
export function drawFrames(canvas: HTMLCanvasElement, store: Store, window: [number, number], axisWidth: number, colour: string, theme: Theme): FrameCounts {
  const counts: FrameCounts = { shown: 0, late: 0, missing: 0, key: 0, stretches: 0 };
  const context = ready(canvas);
  if (!context) return counts;
  const { cx, width, height } = context;
  const scale = (width - axisWidth) / (window[1] - window[0]);
  const x = (time: number): number => axisWidth + (time - window[0]) * scale;
  const { frames, withoutPicture } = store;
  cx.fillStyle = theme.freeze;
  for (let row = withoutPicture.from(window[0]); row < withoutPicture.length; row += 1) {
    const ends = withoutPicture.at(row, 0);
    const begins = Math.max(window[0], withoutPicture.at(row, 1));
    counts.stretches += 1;
    cx.fillRect(x(begins), 0, (ends - begins) * scale, height);
  }
  const first = frames.from(window[0], FRAME.captured);
  let largest = 1;
  for (let row = first; row < frames.length; row += 1) largest = Math.max(largest, frames.at(row, FRAME.size));
  for (let row = first; row < frames.length; row += 1) {
    const rendered = !Number.isNaN(frames.at(row, FRAME.rendered));
    const complete = !Number.isNaN(frames.at(row, FRAME.complete));
    const key = frames.at(row, FRAME.key) === 1;
    counts[rendered ? "shown" : complete ? "late" : "missing"] += 1;
    if (key) counts.key += 1;
    const high = Math.max(3, (frames.at(row, FRAME.size) / largest) * (height - 8));
    const x0 = x(frames.at(row, FRAME.captured));
    const wide = Math.max(1, (scale / 30) * 0.7);
    cx.fillStyle = rendered ? colour : complete ? theme.warn : theme.bad;
    cx.fillRect(x0, height - high, wide, high);
    if (key) {
      // a cap, which marks key frames without relying on colour
      cx.fillStyle = theme.ink;
      cx.fillRect(x0 - 1, height - high - 4, wide + 2, 2);
    }
  }
  return counts;
}

/** Draws the queue as boxes, with the sizes of packets as widths. In a single queue the next packet to go is at the right,
 * where an arrow shows it; `separateQueues` are drawn one after the other, and each has its own next packet. */
export function drawQueue(canvas: HTMLCanvasElement, store: Store, colourOf: (flow: number) => string, theme: Theme, room: number, separateQueues: boolean): void {
  const context = ready(canvas);
  if (!context) return;
  const { cx, width, height } = context;
  const scale = (width - 8) / room;
  let right = width - 4;
  for (const packet of store.waiting) {
    const wide = Math.max(1, packet.size * scale);
    cx.fillStyle = colourOf(packet.flow);
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
  if (separateQueues) return;
  cx.fillStyle = theme.edge;
  cx.beginPath();
  cx.moveTo(width - 1, height / 2 - 4);
  cx.lineTo(width - 1, height / 2 + 4);
  cx.lineTo(width + 3, height / 2);
  cx.fill();
}
