/** The list of changes, each with a button that removes it. */

import { get } from "./dom.ts";
import { describe } from "./moves.ts";
import type { Runner } from "./runner.ts";

/** Number of changes in the list: the last ones are enough after a long drag. */
const LISTED_MAX = 200;

export class MoveList {
  private listed: unknown = null;

  constructor(private readonly runner: Runner) {}

  update(): void {
    const { runner } = this;
    const { moves } = runner.play;
    const list = get("moves");
    if (this.listed !== moves) {
      this.listed = moves;
      get("no-moves").hidden = moves.length > 0;
      const first = Math.max(0, moves.length - LISTED_MAX);
      list.setAttribute("start", String(first + 1));
      list.replaceChildren(...moves.slice(first).map((move) => {
        const item = document.createElement("li");
        item.dataset.at = String(move.at);
        const words = describe(move, runner.play.situation.link);
        const label = document.createElement("span");
        label.textContent = words;
        const button = document.createElement("button");
        button.textContent = "×";
        button.setAttribute("aria-label", `remove: ${words}`);
        button.addEventListener("click", () => runner.remove(move));
        item.append(label, button);
        return item;
      }));
      list.scrollTop = list.scrollHeight;
    }
    for (const item of list.children as HTMLCollectionOf<HTMLElement>) item.classList.toggle("planned", Number(item.dataset.at) > runner.now);
  }
}
