/** A chart over time: uPlot with our axes, colours, a scale that does not jump, and a text alternative. */

import uPlot from "uplot";
import type { Theme } from "./look.ts";

export type Values = (number | null)[];

export interface Line {
  label: string;
  colour: string;
  width?: number;
  dash?: number[];
  /** Steps instead of a line. */
  stepped?: boolean;
}

export interface ChartOptions {
  height: number;
  unit: string;
  lines: Line[];
  /** Numbers at the axis and in the legend. */
  format: (value: number) => string;
  /** Smallest top of the scale. */
  topMin?: number;
  /** Whether values may be below zero. */
  signed?: boolean;
  /** Words at 0, 1, 2 and so on, which also fix the range of the scale. */
  words?: string[];
  log?: boolean;
  /** Draws below the lines, and above the grid. */
  under?: (u: uPlot) => void;
}

/** A round number not below a value: 1, 1.5, 2, 3, 5 or 7.5 times a power of ten. */
export function roundTop(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 1.5, 2, 3, 5, 7.5, 10].find((factor) => factor * power >= value * (1 - 1e-9));
  return (factor ?? 10) * power;
}

/** The CSS border style of a dash. */
const dashes = (dash: number[] | undefined): string => (!dash ? "solid" : dash[0]! < 3 ? "dotted" : "dashed");

export class Chart {
  readonly u: uPlot;
  private top = 0;
  private bottom = 0;
  private range: [number, number] = [0, 1];
  /** Whether the scale stays, as it does during a drag. */
  frozen = false;

  constructor(readonly element: HTMLElement, private readonly options: ChartOptions, theme: Theme) {
    const { lines, unit, format, words } = options;
    const axis = { stroke: theme.soft, grid: { stroke: theme.grid, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    this.u = new uPlot({
      width: Math.max(200, element.clientWidth),
      height: options.height,
      cursor: { drag: { x: false, y: false }, sync: { key: "time" }, points: { show: false } },
      // dashed as the line itself: a solid mark would be that of another line
      legend: { live: true, markers: { dash: (_, index) => dashes(lines[index - 1]?.dash) } },
      scales: {
        x: { time: false, auto: false },
        y: { auto: false, distr: options.log ? 3 : 1 },
      },
      axes: [
        { ...axis, size: 26, values: (_, splits) => splits.map((split) => (split < 0 ? "" : `${Number(split.toFixed(2))} s`)) },
        words
          ? { ...axis, size: 62, splits: () => words.map((_, index) => index), values: () => words }
          : { ...axis, size: 62, values: (_, splits) => splits.map((split) => (split === null ? "" : format(split))), space: 26 },
      ],
      series: [
        { label: "time", value: (_, value) => (value === null ? "" : `${value.toFixed(1)} s`) },
        ...lines.map((line): uPlot.Series => ({
          label: line.label,
          stroke: line.colour,
          width: line.width ?? 1.5,
          points: { show: false },
          spanGaps: true,
          ...(line.dash ? { dash: line.dash } : {}),
          ...(line.stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
          value: (_, value) => (value === null || value === undefined ? "" : words ? (words[value] ?? String(value)) : `${format(value)} ${unit}`.trim()),
        })),
      ],
      hooks: options.under ? { drawAxes: [options.under] } : {},
    }, [[0], ...lines.map((): Values => [null])] as uPlot.AlignedData, element);
  }

  /** Shows values on their times, over a window of time. `reach`: a value that the scale has to include, too. */
  show(times: number[], values: Values[], window: [number, number], reach = 0): void {
    this.fit(values, reach);
    this.u.batch(() => {
      this.u.setData([times, ...values] as uPlot.AlignedData, false);
      this.u.setScale("x", { min: window[0], max: window[1] });
      this.u.setScale("y", { min: this.range[0], max: this.range[1] });
    });
  }

  private fit(values: Values[], reach: number): void {
    const { words, topMin, signed, log } = this.options;
    if (words) {
      this.range = [-0.4, words.length - 0.6];
      return;
    }
    if (this.frozen) return;
    let high = Math.max(topMin ?? 0, reach);
    let low = 0;
    for (const line of values) {
      for (const value of line) {
        if (value === null) continue;
        if (value > high) high = value;
        if (value < low) low = value;
      }
    }
    const top = roundTop(high);
    // grows at once, and shrinks only when there is much room, so that the picture does not jump
    if (top > this.top || top < this.top * 0.45) this.top = top;
    const bottom = signed && low < 0 ? -roundTop(-low) : 0;
    if (bottom < this.bottom || bottom > this.bottom * 0.45) this.bottom = bottom;
    this.range = log ? [Math.min(10_000, this.top / 100), this.top] : [this.bottom, this.top];
  }

  resize(): void {
    const width = Math.max(200, this.element.clientWidth);
    if (width !== this.u.width) this.u.setSize({ width, height: this.options.height });
  }

  /** Its text alternative. */
  describe(text: string): void {
    if (this.element.getAttribute("aria-label") !== text) this.element.setAttribute("aria-label", text);
  }

  free(): void {
    this.u.destroy();
  }
}
