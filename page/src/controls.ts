/** The controls above the charts: what is chosen, time, changes. */

import { Drag, STEP } from "./drag.ts";
import { add as put, describe, ended, isLinkMove, nextDownload, roundRate, running, spoken, type LinkMove } from "./moves.ts";
import { begin, chosenLink } from "./play.ts";
import type { Situation } from "./payload.ts";
import type { Runner } from "./runner.ts";
import { get, notice, option, options, pressed, say, text } from "./dom.ts";
import type { View } from "./view.ts";

export const SPEEDS = [0.5, 1, 2, 5, 10, 20, 50];

/** The least capacity of the slider but zero, in bit/s: less than any call can live on. */
const LEAST = 10_000;

/** Between two changes of one gesture while the run goes on, in ms of its time: more are not told apart. */
const APART = 100;

const LOSS = 0.05;
const OUTAGE = 2000; // ms
const HANDOVER = 500; // ms
const LONGER = 20e6; // ns

export class Controls {
  private drag: Drag | null = null;
  /** The last change of the gesture that is under way, and a value that came too soon after it. */
  private last: LinkMove | null = null;
  private late: number | null = null;
  private most = 1e7;
  private shownMoves: unknown = null;
  private built: unknown[] = [];

  constructor(private readonly runner: Runner, private readonly view: View, private readonly situations: readonly Situation[], private readonly redraw: () => void) {
    options("situation", situations.map((one) => [one.id, one.lesson ? `Lesson ${one.lesson.number}: ${one.title}` : one.title]));
    options("speed", SPEEDS.map((one) => [String(one), `${one}×`]));
    this.wire();
  }

  private wire(): void {
    const { runner } = this;
    const on = (id: string, what: (value: string) => void): void => get<HTMLInputElement>(id).addEventListener("change", (event) => what((event.target as HTMLInputElement).value));
    const click = (id: string, what: () => void): void => get(id).addEventListener("click", what);
    on("situation", (id) => {
      const found = this.situations.find((one) => one.id === id);
      if (found) this.open(found);
    });
    on("controller-a", (word) => runner.change({ ...runner.play, controllers: [word, ...runner.play.controllers.slice(1)] }));
    on("controller-b", (word) => runner.change({ ...runner.play, controllers: [runner.play.controllers[0]!, ...(word ? [word] : [])] }));
    on("queue", (queue) => runner.change({ ...runner.play, queue }));
    on("seed", (text) => {
      const seed = Number(text);
      if (Number.isSafeInteger(seed) && seed >= 0 && text.trim() !== "") runner.change({ ...runner.play, seed });
      else {
        get<HTMLInputElement>("seed").value = String(runner.play.seed);
        say("A seed is a whole number from 0 on.");
      }
    });
    on("speed", (text) => (runner.speed = Number(text)));
    on("theme", () => this.redraw());
    on("window", () => this.view.draw(true));
    for (const id of ["show-receive", "show-sending", "show-target", "log", "queue-unit"]) on(id, () => this.redraw());
    // what is chosen of the inside shows while nothing plays, too
    for (const event of ["change", "click"]) get("topics").addEventListener(event, () => this.redraw());
    click("play", () => this.toggle());
    click("back", () => this.back());
    click("step", () => this.step());
    click("download", () => this.download());
    click("loss", () => this.loss());
    click("outage", () => this.gap(OUTAGE, 0));
    click("handover", () => this.gap(HANDOVER, LONGER));
    click("undo", () => this.undo());
    click("reset", () => {
      runner.reset();
      say("All changes are gone; at 0 s.");
    });
    get("time").addEventListener("input", (event) => runner.seek(Number((event.target as HTMLInputElement).value)));
    const capacity = get<HTMLInputElement>("capacity");
    let sliding = false;
    capacity.addEventListener("input", () => {
      if (!sliding) this.begin();
      sliding = true;
      this.setCapacity(this.fromSlider(Number(capacity.value)), this.ahead());
    });
    capacity.addEventListener("change", () => {
      sliding = false;
      this.finish(this.ahead());
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** Opens a situation from its beginning. */
  open(situation: Situation): void {
    this.runner.playing = false;
    this.runner.open(begin(situation));
    this.shape();
    say(situation.refused ?? `${situation.title} is opened.`);
  }

  /** What depends on the situation. */
  shape(): void {
    const { situation } = this.runner.play;
    if (!this.situations.includes(situation) && !get("situation").querySelector("[value='']")) {
      get("situation").prepend(option("", `${situation.title} (from the link)`));
    }
    get<HTMLSelectElement>("situation").value = this.situations.includes(situation) ? situation.id : "";
    get("about").textContent = situation.about ?? "";
    get("lesson").hidden = !situation.lesson;
    get("work").hidden = situation.refused !== null;
    if (situation.lesson) {
      get("look-for").textContent = situation.lesson.look_for;
      get("question").textContent = situation.lesson.question;
      get("answer").textContent = situation.lesson.answer;
      get("question").parentElement!.removeAttribute("open");
    }
    notice("error", situation.refused !== null ? `This scenario cannot be played in a browser. ${situation.refused}` : null);
    if (situation.refused !== null) return;
    const words = Object.keys(situation.controllers).map((word): [string, string] => [word, word]);
    options("controller-a", words);
    options("controller-b", [["", "none"], ...words]);
    options("queue", Object.entries(situation.queues).map(([word, { title }]) => [word, title]));
    get<HTMLInputElement>("time").max = String(this.runner.end);
    const capacity = this.runner.capacityAt(0);
    const known = (this.runner.planned() ?? []).map(([, bps]) => bps).filter((bps) => bps > 0);
    this.most = roundRate(Math.max(4 * Math.max(capacity || 0, ...known, 1e6), 4e6));
    get("unknown").hidden = this.runner.planned() !== null;
    get("download").hidden = situation.download === null;
    get<HTMLInputElement>("ahead").value = "0";
  }

  /** Puts the knob into the chart of rates, which has been built anew. */
  attach(): void {
    this.drag?.free();
    const { runner, view } = this;
    const link = (): string => runner.play.situation.link;
    this.drag = new Drag(view.rate.u, {
      now: () => runner.now / 1000,
      end: () => runner.end / 1000,
      capacity: () => runner.capacityAt(runner.now),
      planned: () => runner.play.moves.filter((one): one is LinkMove => isLinkMove(one) && one.link === link() && one.key === "capacity" && one.at > runner.now),
      begin: () => {
        view.rate.frozen = true;
        this.begin();
      },
      live: (bps) => this.setCapacity(bps, 0),
      plan: (was, at, bps) => this.plan(was, at, bps),
      remove: (move) => runner.remove(move),
      finish: () => {
        view.rate.frozen = false;
        this.finish(0);
      },
    });
  }

  /** A gesture begins that sets the capacity, perhaps often: one step of undo. */
  private begin(): void {
    this.last = this.late = null;
    this.runner.beginGesture();
  }

  private finish(ahead: number): void {
    if (this.late !== null) this.setCapacity(this.late, ahead, 0);
    this.runner.endGesture();
    say(`Capacity ${spoken(this.runner.capacityAt(this.runner.present + ahead))}${ahead > 0 ? ` in ${ahead / 1000} s` : ""}.`);
  }

  /** The capacity from now on, or from `ahead` ms on. */
  private setCapacity(bps: number, ahead: number, apart = APART): void {
    const { runner } = this;
    const at = Math.min(runner.end, runner.present + ahead);
    let { moves } = runner.play;
    const { last } = this;
    this.late = null;
    if (last && moves.includes(last)) {
      if (last.value === bps) return;
      if (last.at >= runner.present) moves = moves.filter((one) => one !== last);
      else if (at - last.at < apart) {
        this.late = bps;
        return;
      }
    }
    this.last = { at, link: runner.play.situation.link, key: "capacity", value: bps };
    runner.change({ ...runner.play, moves: put(moves, this.last) });
  }

  private ahead(): number {
    const found = Number(get<HTMLInputElement>("ahead").value);
    return Number.isFinite(found) && found > 0 ? Math.round(found * 10) * 100 : 0;
  }

  private plan(was: LinkMove | null, at: number, bps: number): LinkMove {
    const { runner } = this;
    if (was && was.at === at && was.value === bps) return was;
    const move: LinkMove = { at, link: runner.play.situation.link, key: "capacity", value: bps };
    runner.change({ ...runner.play, moves: put(runner.play.moves.filter((one) => one !== was), move) });
    return move;
  }

  private download(): void {
    const { runner } = this;
    const going = running(runner.play.moves, runner.present);
    const at = runner.present;
    if (going.length > 0) {
      runner.change({ ...runner.play, moves: ended(runner.play.moves, at) });
      say(`${going.join(", ")} ends.`);
      return;
    }
    const flow = nextDownload(runner.play.moves, runner.play.situation.lowered.flows.map((one) => one.name));
    runner.add({ at, flow, running: true });
    say(`${flow} begins.`);
  }

  private loss(): void {
    const { runner } = this;
    const at = runner.present;
    const on = runner.valueAt("loss", at) !== LOSS;
    const settings = chosenLink(runner.play).settings.loss as { bernoulli?: number } | string;
    const before = typeof settings === "object" ? (settings.bernoulli ?? 0) : 0;
    const value = on ? LOSS : before === LOSS ? 0 : before;
    runner.add({ at, link: runner.play.situation.link, key: "loss", value });
    say(on ? "The link loses 5 % of its packets." : `The link loses ${value * 100} % of its packets.`);
  }

  /** Nothing is carried for a while; afterwards as before or as planned, with a longer delay if there is one to add. */
  private gap(length: number, longer: number): void {
    const { runner } = this;
    const { link } = runner.play.situation;
    const at = runner.present;
    const back = Math.min(at + length, runner.end);
    const before = runner.capacityAt(back);
    const capacity = Number.isNaN(before) || before === 0 ? this.lastCapacity(at) : Math.round(before);
    // planned changes of the capacity within the gap would end it
    const kept = runner.play.moves.filter((one) => !isLinkMove(one) || one.link !== link || one.key !== "capacity" || one.at < at || one.at > back);
    let moves = put(kept, { at, link, key: "capacity", value: 0 });
    moves = put(moves, { at: back, link, key: "capacity", value: capacity });
    if (longer > 0) moves = put(moves, { at: back, link, key: "delay", value: runner.valueAt("delay", at) + longer });
    runner.change({ ...runner.play, moves });
    say(longer > 0 ? "A handover: nothing is carried for 500 ms, and then the delay is 20 ms longer." : "An outage of 2 s.");
  }

  /** What the link carried last when it carried anything. */
  private lastCapacity(at: number): number {
    const steps = (this.runner.planned() ?? []).filter(([time, bps]) => time * 1000 <= at && bps > 0);
    if (steps.length > 0) return Math.round(steps.at(-1)![1]);
    const truth = this.runner.contenders[0]?.store.truth;
    for (let row = (truth?.length ?? 0) - 1; row >= 0; row -= 1) if (truth!.at(row, 1) > 0) return roundRate(truth!.at(row, 1));
    return 1e6;
  }

  private undo(): void {
    if (!this.runner.undo()) return;
    say("The last change is taken back.");
  }

  private toggle(): void {
    const { runner } = this;
    if (!runner.playing && runner.present >= runner.end) runner.seek(0);
    runner.playing = !runner.playing;
    say(runner.playing ? "Playing." : `Paused at ${(runner.present / 1000).toFixed(1)} s.`);
  }

  private step(): void {
    this.runner.playing = false;
    this.runner.seek(this.runner.present + 100);
  }

  private back(): void {
    this.runner.seek(this.runner.present - 1000);
    say(`Back at ${(this.runner.present / 1000).toFixed(1)} s.`);
  }

  private faster(by: number): void {
    const place = SPEEDS.indexOf(this.runner.speed) + by;
    const speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, place))]!;
    this.runner.speed = speed;
    say(`Speed ${speed} times.`);
  }

  private key(event: KeyboardEvent): void {
    const at = event.target as HTMLElement;
    const typing = at.matches("input:not([type=range]):not([type=checkbox]), textarea");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.shiftKey && !typing) {
      event.preventDefault();
      this.undo();
      return;
    }
    // controls have their own use of keys
    if (event.ctrlKey || event.metaKey || event.altKey || at.matches("input, select, textarea, summary") || this.runner.play.situation.refused) return;
    const does: Record<string, () => void> = {
      " ": () => this.toggle(), ArrowLeft: () => this.back(), ArrowRight: () => this.step(),
      ArrowUp: () => this.nudge(STEP), ArrowDown: () => this.nudge(1 / STEP),
      "+": () => this.faster(1), "=": () => this.faster(1), "-": () => this.faster(-1),
    };
    const found = does[event.key];
    if (!found || (event.key === " " && at.matches("button"))) return;
    event.preventDefault();
    found();
  }

  private nudge(factor: number): void {
    const bps = roundRate(Math.max(this.runner.capacityAt(this.runner.present + this.ahead()) || LEAST, LEAST) * factor);
    this.begin();
    this.setCapacity(bps, this.ahead());
    this.finish(this.ahead());
  }

  private fromSlider(place: number): number {
    return place <= 0 ? 0 : roundRate(LEAST * (this.most / LEAST) ** (place / 1000));
  }

  private toSlider(bps: number): number {
    return bps < LEAST ? 0 : Math.round((1000 * Math.log(bps / LEAST)) / Math.log(this.most / LEAST));
  }

  /** Shows how things stand. */
  update(): void {
    const { runner } = this;
    const { play } = runner;
    this.drag?.place();
    const busy = runner.caughtUp < 1;
    text("clock", busy ? `running … ${Math.floor(runner.caughtUp * 100)} %` : `${(runner.now / 1000).toFixed(1)} of ${runner.end / 1000} s`);
    text("play", runner.playing ? "pause" : "▶ play");
    const time = get<HTMLInputElement>("time");
    time.value = String(runner.present);
    const spokenTime = `${(runner.present / 1000).toFixed(1)} seconds`;
    if (time.getAttribute("aria-valuetext") !== spokenTime) time.setAttribute("aria-valuetext", spokenTime);
    const bps = runner.capacityAt(runner.present + this.ahead());
    const said = spoken(bps);
    const slider = get<HTMLInputElement>("capacity");
    text("capacity-text", said);
    if (document.activeElement !== slider || this.fromSlider(Number(slider.value)) !== bps) slider.value = String(this.toSlider(bps));
    if (slider.getAttribute("aria-valuetext") !== said) slider.setAttribute("aria-valuetext", said);
    notice("error", runner.error !== null ? `The run stopped: ${runner.error.replace(/\.?$/, ".")} Undo or reset goes on.` : play.situation.refused !== null ? get("error").textContent : null);
    pressed("download", running(play.moves, runner.present).length > 0);
    pressed("loss", runner.valueAt("loss", runner.present) === LOSS);
    get<HTMLButtonElement>("undo").disabled = !runner.canUndo;
    const chosen = [play, runner.speed];
    if (chosen.some((one, place) => one !== this.built[place])) {
      this.built = chosen;
      get<HTMLSelectElement>("controller-a").value = play.controllers[0] ?? "";
      get<HTMLSelectElement>("controller-b").value = play.controllers[1] ?? "";
      get<HTMLSelectElement>("queue").value = play.queue;
      get<HTMLInputElement>("seed").value = String(play.seed);
      get<HTMLSelectElement>("speed").value = String(runner.speed);
    }
    this.listMoves();
  }

  private listMoves(): void {
    const { runner } = this;
    const { moves } = runner.play;
    const list = get("moves");
    if (this.shownMoves !== moves) {
      this.shownMoves = moves;
      get("no-moves").hidden = moves.length > 0;
      // of a long drag the last ones are enough to see
      const first = Math.max(0, moves.length - 200);
      list.setAttribute("start", String(first + 1));
      list.replaceChildren(...moves.slice(first).map((move) => {
        const item = document.createElement("li");
        item.dataset.at = String(move.at);
        const words = describe(move, runner.play.situation.link);
        const said = document.createElement("span");
        said.textContent = words;
        const button = document.createElement("button");
        button.textContent = "×";
        button.setAttribute("aria-label", `remove: ${words}`);
        button.addEventListener("click", () => runner.remove(move));
        item.append(said, button);
        return item;
      }));
      list.scrollTop = list.scrollHeight;
    }
    for (const item of list.children as HTMLCollectionOf<HTMLElement>) item.classList.toggle("planned", Number(item.dataset.at) > runner.now);
  }
}
