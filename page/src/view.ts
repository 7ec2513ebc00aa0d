/** The display of a run: charts, the queue, frames, the controllers' internals, numbers. */

import { Chart, type Line, type Values } from "./chart.ts";
import { colour, hues, theme, type Theme } from "./look.ts";
import { spoken, isLinkMove } from "./moves.ts";
import { fill, ofFlow } from "./numbers.ts";
import type { Runner } from "./runner.ts";
import { DECISION, gridded, held, QUEUE, SERIES } from "./store.ts";
import { get } from "./dom.ts";
import { Inside } from "./inside.ts";
import { Pictures } from "./pictures.ts";
import { inSight, watch } from "./sight.ts";
import { bandwidth, underRate } from "./truth.ts";

const PAST = 0.75; // of the window

/** Number of smaller charts that are redrawn in a frame. */
const CHARTS_PER_FRAME = 2;

const RATES: Record<string, Omit<Line, "colour">> = {
  receive: { label: "received", width: 2.2 }, sending: { label: "sent", width: 1 }, target: { label: "target", dash: [5, 3] },
};

const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

export class View {
  rate!: Chart;
  private charts: Chart[] = [];
  private theme: Theme = theme();
  private hues: number[] = [];
  private readonly inside = new Inside();
  private readonly pictures = new Pictures();
  private turn = 0;
  private describedAt = 0;
  private countedAt = 0;
  private picturedAt = 0;
  private odd = false;
  private times: number[] = [];

  constructor(private readonly runner: Runner) {
    for (const id of ["chart-delay", "chart-queue", "chart-loss", "queues", "frames"]) watch(get(id));
  }

  /** The window of time in s. */
  window(): [number, number] {
    const length = Number(get<HTMLSelectElement>("window").value);
    const now = this.runner.now / 1000;
    const from = Math.max(0, now - length * PAST);
    return [from, from + length];
  }

  colours(): string[] {
    return this.hues.map((hue) => colour(hue, this.theme.dark));
  }

  /** Builds all anew, after other contenders or other colours. */
  build(): void {
    for (const chart of this.charts) chart.free();
    const { runner } = this;
    this.theme = theme();
    this.hues = hues(runner.play.controllers);
    const log = get<HTMLInputElement>("log").checked;
    const height = window.innerWidth < 700 ? 240 : 300;
    const forContenders = (line: (colour: string, word: string) => Line[]): Line[] =>
      runner.play.controllers.flatMap((word, index) => line(this.colours()[index]!, word));
    this.rate = new Chart(get("chart-rate"), {
      height, unit: "", format: bandwidth, topMin: 100_000, log,
      lines: forContenders((colour, word) => this.kinds().map((kind, index) => ({ ...RATES[kind]!, colour, label: index === 0 ? `${word} ${RATES[kind]!.label}` : RATES[kind]!.label }))),
      under: (u) => underRate(u, runner, this.theme, this.colours()),
    }, this.theme);
    const delay = new Chart(get("chart-delay"), {
      height: 150, unit: "ms", format: (ms) => String(Number(ms.toPrecision(3))), topMin: 20,
      lines: forContenders((colour, word) => [{ label: word, colour, width: 2 }, { label: "maximum", colour, width: 1, dash: [1.5, 3] }, { label: "in queues", colour, width: 1, dash: [6, 4] }]),
    }, this.theme);
    const bytes = get<HTMLSelectElement>("queue-unit").value === "bytes";
    const queue = new Chart(get("chart-queue"), {
      height: 150, unit: bytes ? "kB" : "packets", format: (value) => String(Number(value.toPrecision(3))), topMin: 3,
      lines: forContenders((colour, word) => [{ label: word, colour, stepped: true }]),
    }, this.theme);
    const loss = new Chart(get("chart-loss"), {
      height: 120, unit: "%", format: (value) => String(Number(value.toPrecision(3))), topMin: 5,
      lines: forContenders((colour, word) => [{ label: `${word} lost`, colour, stepped: true }, { label: "marked", colour, stepped: true, dash: [4, 3] }]),
    }, this.theme);
    this.charts = [this.rate, delay, queue, loss];
    for (const id of ["a", "b"]) get(`dot-${id}`).style.background = this.colours()[id === "a" ? 0 : 1] ?? "transparent";
    for (const element of document.querySelectorAll(".link-name")) element.textContent = runner.play.situation.link;
    this.pictures.build(runner.play.controllers);
    this.inside.build(runner, this.theme, this.colours(), true);
    this.headNumbers();
  }

  /** The rates that are shown. */
  private kinds(): string[] {
    return Object.keys(RATES).filter((kind) => get<HTMLInputElement>(`show-${kind}`).checked);
  }

  private headNumbers(): void {
    const words = ["number", ...this.runner.play.controllers];
    get("numbers").querySelector("thead tr")!.replaceChildren(...words.map((word, index) => {
      const head = document.createElement("th");
      head.scope = "col";
      // a long name breaks before its preset
      head.textContent = word.replace(":", ":\u200b");
      // the colour is a line below the name: some colours are too bright for text
      if (index > 0) head.style.borderBottom = `3px solid ${this.colours()[index - 1]!}`;
      return head;
    }));
    this.countedAt = 0;
  }

  resize(): void {
    for (const chart of this.charts) chart.resize();
    this.inside.resize();
  }

  /** Draws the news. All charts but that of rates take turns, so that a frame stays short. */
  draw(everything: boolean): void {
    const { runner } = this;
    if (runner.contenders.length !== runner.play.controllers.length) return;
    const window = this.window();
    const step = Math.max(0.1, Math.ceil((window[1] - window[0]) / 300 * 10) / 10);
    const from = Math.floor(window[0] / step + 1e-6) * step;
    const now = runner.now / 1000;
    const cells = Math.max(1, Math.min(320, Math.floor((now - from) / step + 1e-6) + 1));
    this.times = Array.from({ length: cells }, (_, cell) => from + cell * step);
    this.drawRate(from, step, cells, window);
    const at = performance.now();
    this.inside.build(runner, this.theme, this.colours(), false);
    const turns: [HTMLElement, () => void][] = [
      [this.charts[1]!.element, () => this.drawDelay(from, step, cells, window)],
      [this.charts[2]!.element, () => this.drawQueues(from, step, cells, window)],
      [this.charts[3]!.element, () => this.drawLoss(from, step, cells, window)],
      ...this.inside.places().map((place, small): [HTMLElement, () => void] => [place, () => this.inside.draw(small, runner, window, from, cells, step)]),
    ];
    const visible = everything ? turns : turns.filter(([element]) => inSight(element));
    // pictures and small charts are drawn in different frames; with reduced motion, pictures move in steps
    this.odd = !this.odd;
    const pictures = everything || (this.odd && at - this.picturedAt >= (calm.matches ? 500 : 30));
    const count = everything ? visible.length : pictures ? 0 : Math.min(CHARTS_PER_FRAME, visible.length);
    for (let turn = 0; turn < count; turn += 1) visible[(this.turn + turn) % visible.length]![1]();
    this.turn += count;
    if (pictures) {
      this.picturedAt = at;
      this.pictures.draw(runner, window, this.colours(), this.theme, everything);
    }
    if (everything || at - this.countedAt > 1000) {
      this.countedAt = at;
      fill(get<HTMLTableElement>("numbers").tBodies[0]!, runner.contenders.map((contender) => ofFlow(contender.metrics(), runner.play.situation.flow)));
    }
    if (everything || at - this.describedAt > 2000) {
      this.describedAt = at;
      this.describe();
    }
  }

  private drawRate(from: number, step: number, cells: number, window: [number, number]): void {
    const { runner } = this;
    const values = runner.contenders.flatMap(({ store }) => this.kinds().map((kind) =>
      kind === "target" ? held(store.decisions, DECISION.target, from, step, cells, runner.now / 1000)
        : gridded(store.series, kind === "receive" ? SERIES.receive : SERIES.sending, from, step, cells, "mean")));
    this.rate.show(this.times, values, window, this.reach(window));
  }

  /** Smallest top of the rate's scale: the capacity in sight, as far as it is near the sending rates. */
  private reach(window: [number, number]): number {
    const { runner } = this;
    const largest = runner.play.situation.lowered.flows.length > 0 ? this.loudest() : 0;
    let capacity = runner.capacityAt(window[0] * 1000) || 0;
    for (const [, bps] of runner.planned()?.steps(window[0], window[1]) ?? []) capacity = Math.max(capacity, bps);
    capacity = Math.max(capacity, runner.capacityAt(runner.present) || 0);
    // a link that is far too large for the flow would make its line flat
    return Math.min(capacity * 1.15, Math.max(largest * 8, 1e6));
  }

  private loudest(): number {
    let max = 0;
    for (const { store } of this.runner.contenders) {
      for (let row = Math.max(0, store.series.length - 300); row < store.series.length; row += 1) max = Math.max(max, store.series.at(row, SERIES.sending));
    }
    return max;
  }

  private drawDelay(from: number, step: number, cells: number, window: [number, number]): void {
    this.charts[1]!.show(this.times, this.runner.contenders.flatMap(({ store }) => [
      gridded(store.series, SERIES.delayMean, from, step, cells, "mean"),
      gridded(store.series, SERIES.delayMax, from, step, cells, "max"),
      gridded(store.series, SERIES.queueing, from, step, cells, "mean"),
    ]), window);
  }

  private drawQueues(from: number, step: number, cells: number, window: [number, number]): void {
    const bytes = get<HTMLSelectElement>("queue-unit").value === "bytes";
    this.charts[2]!.show(this.times, this.runner.contenders.map(({ store }) => {
      const values = gridded(store.queue, bytes ? QUEUE.bytes : QUEUE.packets, from, step, cells, "max");
      return bytes ? values.map((value) => (value === null ? null : value / 1000)) : values;
    }), window);
  }

  private drawLoss(from: number, step: number, cells: number, window: [number, number]): void {
    this.charts[3]!.show(this.times, this.runner.contenders.flatMap(({ store }) => {
      const [lost, arrived, marked] = [SERIES.lost, SERIES.arrived, SERIES.marked].map((column) => gridded(store.series, column, from, step, cells, "sum"));
      const share = (part: Values, denominator: (cell: number) => number): Values =>
        part.map((value, cell) => (value === null || denominator(cell) === 0 ? null : (100 * value) / denominator(cell)));
      return [share(lost!, (cell) => (lost![cell] ?? 0) + (arrived![cell] ?? 0)), share(marked!, (cell) => arrived![cell] ?? 0)];
    }), window);
  }

  /** The text alternatives of the charts, every two seconds. */
  private describe(): void {
    const { runner } = this;
    const last = runner.contenders.map(({ store }) => ({ store, row: store.series.length - 1 })).filter(({ row }) => row >= 0);
    const at = `At ${(runner.now / 1000).toFixed(1)} s`;
    const perContender = (text: (row: number, index: number) => string): string =>
      last.map(({ row }, index) => `${runner.play.controllers[index]} ${text(row, index)}`).join("; ") || "nothing has been sent yet";
    const value = (index: number, row: number, column: number): number => last[index]!.store.series.at(row, column);
    const ms = (number: number): string => (Number.isNaN(number) ? "none" : `${number.toFixed(0)} ms`);
    const planned = runner.play.moves.filter((move) => isLinkMove(move) && move.at > runner.now).length;
    this.rate.describe(`Rates. ${at}: the link carries ${spoken(runner.capacityAt(runner.now))}; ${perContender((row, index) => `receives ${spoken(value(index, row, SERIES.receive))}, sends ${spoken(value(index, row, SERIES.sending))}`)}. ${planned} changes planned.`);
    this.charts[1]!.describe(`One-way delay. ${at}: ${perContender((row, index) => `mean ${ms(value(index, row, SERIES.delayMean))}, in queues ${ms(value(index, row, SERIES.queueing))}`)}.`);
    this.charts[2]!.describe(`Queue. ${at}: ${perContender((_, index) => {
      const { packets, bytes } = last[index]!.store.waits();
      return `${packets} packets wait, ${(bytes / 1000).toFixed(1)} kB`;
    })}.`);
    this.charts[3]!.describe(`Losses and marks. ${at}: ${perContender((row, index) => `${value(index, row, SERIES.lost)} packets lost and ${value(index, row, SERIES.marked)} marked in the last tenth of a second`)}.`);
  }

  /** All canvases with a title each, for a picture file. */
  canvases(): [string, HTMLCanvasElement][] {
    const bytes = get<HTMLSelectElement>("queue-unit").value === "bytes";
    const named: [string, HTMLCanvasElement][] = this.charts.map((chart, index) => [["rates and capacity", "one-way delay (ms)", `queue of ${this.runner.play.situation.link} (${bytes ? "kB" : "packets"})`, "losses and marks (%)"][index]!, chart.u.ctx.canvas]);
    return [...named, ...this.inside.canvases(), ...this.pictures.canvases()];
  }

  get background(): Theme {
    return this.theme;
  }
}

