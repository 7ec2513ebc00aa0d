/** The capacity of the link under the rates: past, present and planned. */

import type uPlot from "uplot";
import type { Theme } from "./look.ts";
import { isLinkMove } from "./moves.ts";
import type { Runner } from "./runner.ts";

/** A rate at an axis. */
export function bandwidth(bps: number): string {
  if (bps === 0) return "0";
  const digits = (value: number): string => String(Number(value.toPrecision(3)));
  return bps >= 1e6 ? `${digits(bps / 1e6)} Mb/s` : bps >= 1e3 ? `${digits(bps / 1e3)} kb/s` : `${digits(bps)} b/s`;
}

/** Draws the capacity as a filled step line until now, the plan dashed behind it with its points, and results of probes. */
export function underRate(u: uPlot, runner: Runner, theme: Theme, colours: string[]): void {
  const { ctx: cx, bbox } = u;
  const { min, max } = u.scales.x!;
  const low = u.scales.y!.min;
  if (min === undefined || max === undefined || min === null || max === null || low === null || low === undefined) return;
  const x = (time: number): number => u.valToPos(time, "x", true);
  const y = (bps: number): number => Math.min(bbox.top + bbox.height, Math.max(bbox.top, u.valToPos(Math.max(bps, low), "y", true)));
  const bottom = bbox.top + bbox.height;
  const now = runner.now / 1000;
  cx.save();
  // the line drawn before may have been a dashed one
  cx.setLineDash([]);
  cx.beginPath();
  cx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  cx.clip();
  const steps = knownSteps(runner, min, now);
  if (steps.length > 0) {
    const outline = (): void => {
      cx.beginPath();
      for (const [index, [time, bps]] of steps.entries()) {
        const until = steps[index + 1]?.[0] ?? now;
        if (index === 0) cx.moveTo(x(time), y(bps));
        else cx.lineTo(x(time), y(bps));
        cx.lineTo(x(until), y(bps));
      }
    };
    outline();
    cx.lineTo(x(now), bottom);
    cx.lineTo(x(steps[0]![0]), bottom);
    cx.fillStyle = theme.fill;
    cx.fill();
    outline();
    cx.strokeStyle = theme.edge;
    cx.lineWidth = 2 * devicePixelRatio;
    cx.stroke();
  }
  ahead(cx, runner, now, Math.min(max, runner.end / 1000), x, y, theme);
  for (const [index, { store }] of runner.contenders.entries()) {
    const probes = store.internals.get("probe_rate");
    cx.strokeStyle = colours[index] ?? theme.ink;
    cx.lineWidth = 2 * devicePixelRatio;
    for (let row = probes?.from(min) ?? 0; row < (probes?.length ?? 0); row += 1) {
      cx.beginPath();
      cx.arc(x(probes!.at(row, 0)), y(probes!.at(row, 1)), 4 * devicePixelRatio, 0, 2 * Math.PI);
      cx.stroke();
    }
  }
  cx.strokeStyle = theme.soft;
  cx.lineWidth = devicePixelRatio;
  cx.beginPath();
  cx.moveTo(x(now), bbox.top);
  cx.lineTo(x(now), bottom);
  cx.stroke();
  cx.restore();
}

/** Steps of the capacity from a time until now: the planned ones if known, else the bins of the engine. */
function knownSteps(runner: Runner, from: number, now: number): [number, number][] {
  const planned = runner.planned();
  if (planned && !Number.isNaN(planned.at(0))) return [[from, planned.at(from)], ...planned.steps(from, now)];
  const truth = runner.contenders[0]?.store.truth;
  if (!truth) return [];
  const steps: [number, number][] = [];
  for (let row = Math.max(0, truth.from(from) - 1); row < truth.length; row += 1) steps.push([truth.at(row, 0), truth.at(row, 1)]);
  return steps.filter(([, bps]) => !Number.isNaN(bps));
}

function ahead(cx: CanvasRenderingContext2D, runner: Runner, now: number, end: number, x: (time: number) => number, y: (bps: number) => number, theme: Theme): void {
  const planned = runner.planned();
  if (!planned) return;
  cx.strokeStyle = theme.ink;
  cx.lineWidth = 1.5 * devicePixelRatio;
  cx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  cx.beginPath();
  let last = runner.capacityAt(now * 1000);
  cx.moveTo(x(now), y(last));
  for (const [time, bps] of planned.steps(now, end)) {
    cx.lineTo(x(time), y(last));
    cx.lineTo(x(time), y(bps));
    last = bps;
  }
  cx.lineTo(x(end), y(last));
  cx.stroke();
  cx.setLineDash([]);
  const { link } = runner.play.situation;
  for (const move of runner.play.moves) {
    if (!isLinkMove(move) || move.link !== link || move.key !== "capacity" || move.at / 1000 <= now || move.at / 1000 > end) continue;
    cx.beginPath();
    cx.arc(x(move.at / 1000), y(move.value), 5 * devicePixelRatio, 0, 2 * Math.PI);
    cx.fillStyle = theme.page;
    cx.fill();
    cx.stroke();
  }
}
