/** Small charts of what controllers note of their inside, chosen by topics. */

import { Chart, type Line, type Values } from "./chart.ts";
import type { Theme } from "./look.ts";
import type { Runner } from "./runner.ts";
import { forget, watch } from "./sight.ts";
import { gridded, held } from "./store.ts";
import { AT_FIRST, topics, type Topic } from "./topics.ts";
import { bandwidth } from "./truth.ts";

const DASHES = [[], [6, 4], [2, 3]];

interface Small {
  topic: Topic;
  chart: Chart;
  figure: HTMLElement;
  /** Which contender and name each line is of, and whether it is below zero. */
  lines: { place: number; name: string; minus: boolean }[];
}

/** With the unit where the axis has none. */
const titleOf = ({ title, unit }: Topic): string => (unit === "ms" ? `${title} (ms)` : title);

export class Inside {
  private shown: Small[] = [];
  private chosen = new Set<string>();
  private key = "";
  private names = "";
  private offered: Topic[] = [];

  /** Where the charts are. */
  places(): HTMLElement[] {
    return this.shown.map((one) => one.chart.place);
  }

  /** Makes the charts anew where there are other names, or all of them. */
  build(runner: Runner, theme: Theme, colours: string[], everything: boolean): void {
    const known = runner.contenders.map((one) => [...one.store.internals.keys()]);
    const names = known.map((one) => one.join()).join(";") + runner.play.controllers.join();
    if (!everything && names === this.names) return;
    this.names = names;
    const controllers = runner.play.controllers.join();
    this.offered = topics([...new Set(known.flat())]);
    if (controllers !== this.key) {
      this.key = controllers;
      this.chosen.clear();
    }
    const shown = this.chosen.size > 0 ? this.offered.filter((one) => this.chosen.has(one.id)) : this.first(known);
    this.offer(shown);
    for (const one of this.shown) {
      one.chart.free();
      forget(one.chart.place);
      one.figure.remove();
    }
    this.shown = shown.map((topic) => this.small(topic, known, runner, theme, colours));
    document.getElementById("inside-title")!.hidden = this.offered.length === 0;
    document.getElementById("inside-choice")!.hidden = this.offered.length === 0;
  }

  /** The first topics of each contender, so that each of two different ones is seen. */
  private first(known: string[][]): Topic[] {
    const ids = new Set<string>();
    for (const names of known) {
      for (const one of this.offered.filter((topic) => names.includes(topic.names[0]!)).slice(0, known.length > 1 ? 2 : AT_FIRST + 1)) ids.add(one.id);
    }
    return this.offered.filter((one) => ids.has(one.id));
  }

  private offer(shown: Topic[]): void {
    const all = document.createElement("button");
    all.textContent = shown.length === this.offered.length ? "fewer" : "all";
    all.dataset.all = "";
    all.addEventListener("click", () => {
      this.chosen = shown.length === this.offered.length ? new Set() : new Set(this.offered.map((one) => one.id));
    });
    const place = document.getElementById("topics")!;
    const at = place.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.topic : undefined;
    place.replaceChildren(all, ...this.offered.map((topic) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.dataset.topic = topic.id;
      box.checked = shown.includes(topic);
      box.addEventListener("change", () => {
        this.chosen = new Set(shown.map((one) => one.id));
        if (box.checked) this.chosen.add(topic.id);
        else this.chosen.delete(topic.id);
      });
      label.title = topic.about;
      label.append(box, ` ${topic.title}`);
      return label;
    }));
    // whoever chooses by keys goes on from there
    if (at !== undefined) place.querySelector<HTMLElement>(`[data-topic="${CSS.escape(at)}"]`)?.focus();
  }

  private small(topic: Topic, known: string[][], runner: Runner, theme: Theme, colours: string[]): Small {
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
    const place = document.createElement("div");
    place.className = "chart";
    place.setAttribute("role", "img");
    caption.append(title);
    figure.append(caption, place);
    figure.dataset.topic = topic.id;
    document.getElementById("inside")!.append(figure);
    watch(place);
    const lines: Small["lines"] = [];
    const looks: Line[] = [];
    for (const [who, names] of known.entries()) {
      for (const [number, name] of topic.names.entries()) {
        if (!names.includes(name)) continue;
        const look: Line = {
          label: `${runner.play.controllers[who]} ${topic.names.length > 1 ? name : ""}`.trim(), colour: colours[who]!,
          width: number === 0 ? 1.8 : 1, ...(DASHES[number]?.length ? { dash: DASHES[number] } : {}), ...(topic.words ? { stepped: true } : {}),
        };
        lines.push({ place: who, name, minus: false });
        looks.push(look);
        if (topic.mirrored && number === 1) {
          lines.push({ place: who, name, minus: true });
          looks.push({ ...look, label: `−${name}` });
        }
      }
    }
    const short = (value: number): string => String(Number(value.toPrecision(3)));
    const format = topic.unit === "bps" ? bandwidth : topic.unit === "bytes" ? (value: number) => `${short(value / 1000)} kB` : short;
    const chart = new Chart(place, { height: topic.words ? 84 : 120, unit: topic.unit === "ms" ? "ms" : "", format, lines: looks, signed: true, ...(topic.words ? { words: topic.words } : {}) }, theme);
    return { topic, chart, figure, lines };
  }

  draw(at: number, runner: Runner, window: [number, number], from: number, cells: number, step: number): void {
    const small = this.shown[at];
    if (!small) return;
    const { topic, chart, lines } = small;
    const times = Array.from({ length: cells }, (_, cell) => from + cell * step);
    const values: Values[] = lines.map(({ place, name, minus }) => {
      const columns = runner.contenders[place]?.store.internals.get(name);
      if (!columns) return new Array<null>(cells).fill(null);
      // a state holds until the next one; of a measured value each cell has what was measured in it
      const found = topic.words ? held(columns, 1, from, step, cells, runner.now / 1000) : gridded(columns, 1, from, step, cells, "last");
      return minus ? found.map((value) => (value === null ? null : -value)) : found;
    });
    chart.show(times, values, window);
    chart.describe(`${topic.title}. ${lines.map(({ place, name }, number) => {
      const last = values[number]!.filter((value) => value !== null).at(-1);
      const text = last == null ? "none yet" : topic.words ? (topic.words[last] ?? String(last)) : last.toPrecision(3);
      return `${runner.play.controllers[place]} ${name.replaceAll("_", " ")}: ${text}`;
    }).join("; ")}.`);
  }

  resize(): void {
    for (const one of this.shown) one.chart.resize();
  }

  canvases(): [string, HTMLCanvasElement][] {
    return this.shown.map((one) => [titleOf(one.topic), one.chart.u.ctx.canvas]);
  }
}
