/** Exports of a play: a link, the scenario with its digest, a picture. */

import { digest } from "./contender.ts";
import { message } from "./engine.ts";
import { encode } from "./fragment.ts";
import type { Runner } from "./runner.ts";
import { fileName, toml } from "./toml.ts";
import { get, say } from "./dom.ts";
import type { View } from "./view.ts";

/** Offers bytes as a file. */
function save(name: string, contents: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(contents);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Length in characters above which programs for mail and chat cut links off. */
const LONG = 8000;

/** Hosts on which the command serves the page. */
const LOCAL = ["127.0.0.1", "localhost"];

export class Keep {
  private request = 0;

  constructor(private readonly runner: Runner, private readonly view: View) {
    get("share").addEventListener("click", () => void this.share());
    get("export").addEventListener("click", () => void this.export());
    get("png").addEventListener("click", () => this.png());
  }

  /** Hides the exports of an earlier play. */
  forget(): void {
    this.request += 1;
    for (const link of get("exported").querySelectorAll("a")) URL.revokeObjectURL(link.href);
    get("shared").hidden = true;
    get("exported").hidden = true;
  }

  private async share(): Promise<void> {
    const { runner } = this;
    const withSituation = get<HTMLInputElement>("whole").checked;
    let fragment: string;
    try {
      fragment = await encode({ play: runner.play, at: runner.present, speed: runner.speed }, withSituation);
    } catch (error) {
      get("shared").hidden = false;
      get<HTMLInputElement>("link").value = "";
      get("link-said").textContent = message(error);
      say(message(error));
      return;
    }
    const address = `${location.href.split("#")[0]}${fragment}`;
    history.replaceState(null, "", fragment);
    const field = get<HTMLInputElement>("link");
    field.value = address;
    get("shared").hidden = false;
    field.select();
    let linkNotice = "The link is in the address line, too.";
    try {
      await navigator.clipboard.writeText(address);
      linkNotice = "The link is copied, and in the address line.";
    } catch {
      // without the right to the clipboard, the selected link can be copied by hand
    }
    if (address.length > LONG) linkNotice += ` It has ${address.length} characters: some programs truncate it.`;
    if (LOCAL.includes(location.hostname)) linkNotice += ` This address works while \`tidegate play\` runs; the part from # on works with any page of tidegate${withSituation ? "" : " that has the scenario"}.`;
    get("link-said").textContent = linkNotice;
    say(`The link is made. ${linkNotice}`);
  }

  /** The scenario of each contender as a file, with the digest of running it to its end. */
  private async export(): Promise<void> {
    const { runner } = this;
    const { play } = runner;
    this.forget();
    const { request } = this;
    const list = get("exported");
    list.hidden = false;
    list.replaceChildren();
    for (const [number, word] of play.controllers.entries()) {
      const name = fileName(play, word);
      const part = document.createElement("p");
      part.dataset.contender = number === 0 ? "a" : "b";
      const link = document.createElement("a");
      link.textContent = name;
      link.download = name;
      link.href = URL.createObjectURL(new Blob([toml(play, word)], { type: "application/toml" }));
      const bar = document.createElement("progress");
      bar.max = 1;
      bar.setAttribute("aria-label", `running ${word} to its end`);
      part.append(link, bar);
      list.append(part);
      try {
        const result = await digest(play, word, (done) => {
          bar.value = done;
          return request === this.request;
        });
        if (result === null) return;
        const code = document.createElement("code");
        code.dataset.digest = result;
        code.textContent = `tidegate run ${name}`;
        const value = document.createElement("code");
        value.textContent = result;
        part.append(document.createElement("br"), code, " gives the digest ", value);
        say(`${name} is ready; its digest is ${result}.`);
      } catch (error) {
        part.append(` cannot be run to its end: ${message(error)}`);
      }
      bar.remove();
    }
  }

  /** All charts on one sheet. */
  private png(): void {
    const { runner, view } = this;
    view.draw(true);
    const ratio = devicePixelRatio || 1;
    const parts = view.canvases().filter(([, canvas]) => canvas.width > 0 && canvas.height > 0);
    const title = 22 * ratio;
    const width = Math.max(...parts.map(([, canvas]) => canvas.width)) + 24 * ratio;
    const { situation, controllers, queue, seed, moves } = runner.play;
    // the picture by itself has to name the lines and the changes
    const changes = moves.length === 0 ? "" : `, ${moves.length} change${moves.length === 1 ? "" : "s"}`;
    const head: [string, string][] = [[`${situation.title}: `, view.background.ink]];
    for (const [index, word] of controllers.entries()) head.push([index > 0 ? " beside " : "", view.background.ink], [word, view.colours()[index]!]);
    const foot = `queue: ${situation.queues[queue]?.title ?? queue}; seed ${seed}; at ${(runner.now / 1000).toFixed(1)} s${changes}`;
    const sheet = document.createElement("canvas");
    // narrow charts stand side by side
    let x = 0, y = title * 2.3, row = 0;
    const places = parts.map(([, canvas]) => {
      if (x > 0 && x + canvas.width > width) {
        x = 0;
        y += row + title;
        row = 0;
      }
      const place = [x + 12 * ratio, y] as const;
      x += canvas.width + 12 * ratio;
      row = Math.max(row, canvas.height);
      return place;
    });
    sheet.width = width;
    sheet.height = y + row + title * 1.2;
    const cx = sheet.getContext("2d")!;
    cx.fillStyle = view.background.page;
    cx.fillRect(0, 0, sheet.width, sheet.height);
    cx.fillStyle = view.background.ink;
    cx.textBaseline = "top";
    cx.font = `600 ${15 * ratio}px system-ui, sans-serif`;
    let x0 = 12 * ratio;
    for (const [words, colour] of head) {
      cx.fillStyle = colour;
      cx.fillText(words, x0, 7 * ratio);
      x0 += cx.measureText(words).width;
    }
    cx.font = `${12 * ratio}px system-ui, sans-serif`;
    cx.fillStyle = view.background.soft;
    cx.fillText(foot, 12 * ratio, 28 * ratio);
    cx.fillStyle = view.background.ink;
    for (const [index, [name, canvas]] of parts.entries()) {
      const [left, top] = places[index]!;
      cx.fillText(name, left, top);
      cx.drawImage(canvas, left, top + title * 0.8);
    }
    sheet.toBlob((blob) => {
      if (blob) save(`${runner.play.situation.id}-${(runner.now / 1000).toFixed(1)}s.png`, blob);
    });
    say("The picture is made.");
  }
}

