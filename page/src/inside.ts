/** Small charts of the controllers' internals, chosen by topics. */

import { Chart, type Line, type Values } from "./chart.ts";
import type { Theme } from "./look.ts";
import type { Runner } from "./runner.ts";
import { forget, watch } from "./sight.ts";
import { gridded, held } from "./store.ts";
import { TOPICS_AT_FIRST, topics, type Topic } from "./topics.ts";
import { bandwidth } from "./truth.ts";

const DASHES = [[], [6, 4], [2, 3]];

interface Small {
  topic: Topic;
  chart: Chart;
  figure: HTMLElement;
  /** Contender and name of each line, and whether it is drawn below zero. */
  lines: { contender: number; name: string; minus: boolean }[];
}

/** The title of a topic, with the unit if the axis has none. */
const titleOf = ({ title, unit }: Topic): string => (unit === "ms" ? `${title} (ms)` : title);

export class Inside {
  private charts: Small[] = [];
  private chosen = new Set<string>();
  private key = "";
  private names = "";
  private offered: Topic[] = [];

  /** Elements of the charts. */
  places(): HTMLElement[] {
    return this.charts.map((small) => small.chart.element);
  }

  /** Makes the charts anew if the names of internals have changed, or in any case. */
  build(runner: Runner, theme: Theme, colours: string[], everything: boolean): void {
    const internals = runner.contenders.map((contender) => [...contender.store.internals.keys()]);
    const names = internals.map((names) => names.join()).join(";") + runner.play.controllers.join();
    if (!everything && names === this.names) return;
    this.names = names;
    const controllers = runner.play.controllers.join();
    this.offered = topics([...new Set(internals.flat())]);
    if (controllers !== this.key) {
      this.key = controllers;
      this.chosen.clear();
    }
    const visible = this.chosen.size > 0 ? this.offered.filter((topic) => this.chosen.has(topic.id)) : this.first(internals);
    this.offer(visible);
    for (const small of this.charts) {
      small.chart.free();
      forget(small.chart.element);
      small.figure.remove();
    }
    this.charts = visible.map((topic) => this.small(topic, internals, runner, theme, colours));
    document.getElementById("inside-title")!.hidden = this.offered.length === 0;
    document.getElementById("inside-choice")!.hidden = this.offered.length === 0;
  }

  /** The first topics of each contender, so that two different contenders both show. */
  private first(internals: string[][]): Topic[] {
    const ids = new Set<string>();
    for (const names of internals) {
      for (const topic of this.offered.filter((topic) => names.includes(topic.names[0]!)).slice(0, internals.length > 1 ? 2 : TOPICS_AT_FIRST + 1)) ids.add(topic.id);
    }
    return this.offered.filter((topic) => ids.has(topic.id));
  }

  private offer(visible: Topic[]): void {
    const all = document.createElement("button");
    all.textContent = visible.length === this.offered.length ? "fewer" : "all";
    all.dataset.all = "";
    all.addEventListener("click", () => {
      this.chosen = visible.length === this.offered.length ? new Set() : new Set(this.offered.map((topic) => topic.id));
    });
    const element = document.getElementById("topics")!;
    const focused = element.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.topic : undefined;
    element.replaceChildren(all, ...this.offered.map((topic) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.dataset.topic = topic.id;
      box.checked = visible.includes(topic);
      box.addEventListener("change", () => {
        this.chosen = new Set(visible.map((topic) => topic.id));
        if (box.checked) this.chosen.add(topic.id);
        else this.chosen.delete(topic.id);
      });
      label.title = topic.about;
      label.append(box, ` ${topic.title}`);
      return label;
    }));
    // keeps the keyboard focus
    if (focused !== undefined) element.querySelector<HTMLElement>(`[data-topic="${CSS.escape(focused)}"]`)?.focus();
  }

  private small(topic: Topic, internals: string[][], runner: Runner, theme: Theme, colours: string[]): Small {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const title = document.createElement("details");
    const head = document.createElement("summary");
    const about = document.createElement("p");
    title.className = "about";
    title.title = topic.about;
    head.textContent = titleOf(topic);
    about.textContent = topic.about;
    title.append(head, about);
    const element = document.createElement("div");
    element.className = "chart";
    element.setAttribute("role", "img");
    caption.append(title);
    figure.append(caption, element);
    figure.dataset.topic = topic.id;
    document.getElementById("inside")!.append(figure);
    watch(element);
    const lines: Small["lines"] = [];
    const looks: Line[] = [];
    for (const [contender, names] of internals.entries()) {
      for (const [number, name] of topic.names.entries()) {
        if (!names.includes(name)) continue;
        const look: Line = {
          label: `${runner.play.controllers[contender]} ${topic.names.length > 1 ? name : ""}`.trim(), colour: colours[contender]!,
          width: number === 0 ? 1.8 : 1, ...(DASHES[number]?.length ? { dash: DASHES[number] } : {}), ...(topic.words ? { stepped: true } : {}),
        };
        lines.push({ contender, name, minus: false });
        looks.push(look);
        if (topic.mirrored && number === 1) {
          lines.push({ contender, name, minus: true });
          looks.push({ ...look, label: `−${name}` });
        }
      }
    }
    const short = (value: number): string => String(Number(value.toPrecision(3)));
    const format = topic.unit === "bps" ? bandwidth : topic.unit === "bytes" ? (value: number) => `${short(value / 1000)} kB` : short;
    const chart = new Chart(element, { height: topic.words ? 84 : 120, unit: topic.unit === "ms" ? "ms" : "", format, lines: looks, signed: true, ...(topic.words ? { words: topic.words } : {}) }, theme);
    return { topic, chart, figure, lines };
  }

  draw(index: number, runner: Runner, window: [number, number], from: number, cells: number, step: number): void {
    const small = this.charts[index];
    if (!small) return;
    const { topic, chart, lines } = small;
    const times = Array.from({ length: cells }, (_, cell) => from + cell * step);
    const values: Values[] = lines.map(({ contender, name, minus }) => {
      const columns = runner.contenders[contender]?.store.internals.get(name);
      if (!columns) return new Array<null>(cells).fill(null);
      // a state holds until the next one; a measured value counts only in its own cell
      const found = topic.words ? held(columns, 1, from, step, cells, runner.now / 1000) : gridded(columns, 1, from, step, cells, "last");
      return minus ? found.map((value) => (value === null ? null : -value)) : found;
    });
    chart.show(times, values, window);
    chart.describe(`${topic.title}. ${lines.map(({ contender, name }, number) => {
      const last = values[number]!.filter((value) => value !== null).at(-1);
      const text = last == null ? "none yet" : topic.words ? (topic.words[last] ?? String(last)) : last.toPrecision(3);
      return `${runner.play.controllers[contender]} ${name.replaceAll("_", " ")}: ${text}`;
    }).join("; ")}.`);
  }

  resize(): void {
    for (const small of this.charts) small.chart.resize();
  }

  canvases(): [string, HTMLCanvasElement][] {
    return this.charts.map((small) => [titleOf(small.topic), small.chart.u.ctx.canvas]);
  }
}
