/** The controls above the charts: choices, time, changes. */

import { Drag, STEP } from "./drag.ts";
import { MoveList } from "./movelist.ts";
import { add as put, ended, isLinkMove, MOVES_MAX, nextDownload, ownPaths, pathAt, roundRate, running, spoken, type LinkMove } from "./moves.ts";
import { capacityKind, ownValue, switched, withGap } from "./plan.ts";
import { begin } from "./play.ts";
import type { Situation } from "./payload.ts";
import type { Runner } from "./runner.ts";
import { get, notice, option, options, pressed, say, text } from "./dom.ts";
import type { View } from "./view.ts";

export const SPEEDS = [0.5, 1, 2, 5, 10, 20, 50];

/** The lowest capacity of the slider above zero, in bit/s: too low for any call. */
const CAPACITY_MIN = 10_000;

/** Minimum time between two changes of one gesture while the run goes on, in ms of its time: closer ones look the same. */
const CHANGE_INTERVAL = 100;

const LOSS = 0.05;
const OUTAGE = 2000; // ms
const HANDOVER = 500; // ms
const LONGER = 20e6; // ns

/** Notice for links whose own losses are not a fixed share. */
const LOSS_REPLACED = "The losses of the scenario are replaced for the rest of the run; undo restores them.";

/** Notice on a change by hand of a capacity that is not constant. */
const CAPACITY_REPLACED: Record<ReturnType<typeof capacityKind>, string> = {
  constant: "",
  schedule: "; the capacity of this link follows a schedule: the first change by hand replaces the rest of the schedule (an outage and a handover keep it)",
  unknown: "; the capacity of this link is recorded or random: the first change by hand replaces the capacity for the rest of the run",
};

/** Seconds in whole tenths, rounded down: the end is not shown before it is reached. */
const tenths = (ms: number): string => (Math.floor(ms / 100) / 10).toFixed(1);

export class Controls {
  private drag: Drag | null = null;
  /** The last change of the current gesture, and a value that came too soon after it. */
  private last: LinkMove | null = null;
  private late: { bps: number; ahead: number } | null = null;
  private capacityMax = 1e7;
  private readonly list: MoveList;
  /** Whether the last input was by pointer, not by key. */
  private pointed = false;
  private built: unknown[] = [];
  private seed: number | null = null;

  constructor(private readonly runner: Runner, private readonly view: View, private readonly situations: readonly Situation[], private readonly redraw: () => void) {
    options("situation", situations.map((situation) => [situation.id, situation.lesson ? `Lesson ${situation.lesson.number}: ${situation.title}` : situation.title]));
    options("speed", SPEEDS.map((speed) => [String(speed), `${speed}×`]));
    this.list = new MoveList(runner);
    runner.full = (count) => {
      const sentence = `This would make ${count} changes; a scenario has at most ${MOVES_MAX}. Nothing was changed.`;
      notice("notice", sentence);
      say(sentence);
    };
    this.wire();
  }

  private wire(): void {
    const { runner } = this;
    const on = (id: string, action: (value: string) => void): void => get<HTMLInputElement>(id).addEventListener("change", (event) => action((event.target as HTMLInputElement).value));
    const click = (id: string, action: () => void): void => get(id).addEventListener("click", action);
    on("situation", (id) => {
      const situation = this.situations.find((situation) => situation.id === id);
      if (situation) this.open(situation);
    });
    on("controller-a", (word) => runner.change({ ...runner.play, controllers: [word, ...runner.play.controllers.slice(1)] }));
    on("controller-b", (word) => runner.change({ ...runner.play, controllers: [runner.play.controllers[0]!, ...(word ? [word] : [])] }));
    on("queue", (queue) => runner.change({ ...runner.play, queue }));
    on("seed", (text) => {
      const seed = Number(text);
      if (Number.isSafeInteger(seed) && seed >= 0 && text.trim() !== "") runner.change({ ...runner.play, seed });
      else {
        get<HTMLInputElement>("seed").value = String(runner.play.seed);
        say("A seed is a whole number of at least 0.");
      }
    });
    on("speed", (text) => (runner.speed = Number(text)));
    on("theme", () => this.redraw());
    on("window", () => this.view.draw(true));
    for (const id of ["show-receive", "show-sending", "show-target", "log", "queue-unit"]) on(id, () => this.redraw());
    // chosen topics show at once, also while paused
    for (const event of ["change", "click"]) get("topics").addEventListener(event, () => this.redraw());
    click("play", () => this.toggle());
    click("back", () => this.back());
    click("step", () => this.step());
    click("download", () => this.download());
    click("loss", () => this.loss());
    click("outage", () => this.gap(OUTAGE, 0));
    click("handover", () => this.gap(HANDOVER, LONGER));
    click("path", () => this.path());
    click("undo", () => this.undo());
    click("reset", () => {
      runner.reset();
      say("All changes are removed; the time is 0 s.");
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
    document.addEventListener("pointerdown", () => (this.pointed = true), true);
    document.addEventListener("keydown", () => (this.pointed = false), true);
    // after a choice by pointer, the keys control time and capacity again; a choice by keys keeps the focus
    document.addEventListener("change", (event) => {
      if (this.pointed && event.target instanceof HTMLSelectElement) event.target.blur();
    });
  }

  /** Opens a situation from its beginning. */
  open(situation: Situation): void {
    this.runner.playing = false;
    this.runner.open(begin(situation));
    notice("notice", null);
    this.shape();
    say(situation.refused ?? `${situation.title} is opened.`);
  }

  /** Fills the controls that depend on the situation. */
  shape(): void {
    const { situation } = this.runner.play;
    if (!this.situations.includes(situation)) {
      get("situation").querySelector("[value='']")?.remove();
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
    const rates = this.runner.planned()?.rates() ?? [];
    this.capacityMax = roundRate(Math.max(4 * Math.max(capacity || 0, ...rates, 1e6), 4e6));
    get("replaced").textContent = CAPACITY_REPLACED[capacityKind(this.runner.play)];
    const restorable = ownValue(this.runner.play, "loss") !== null;
    get("loss").title = `The link loses 5 % of its packets at random, from now on${restorable ? "" : `. ${LOSS_REPLACED}`}`;
    get("download").hidden = situation.download === null;
    get("path").hidden = situation.paths.length < 2;
    get<HTMLInputElement>("ahead").value = "0";
  }

  /** Puts the knob into the chart of rates after that was built anew. */
  attach(): void {
    this.drag?.free();
    const { runner, view } = this;
    const link = (): string => runner.play.situation.link;
    this.drag = new Drag(view.rate.u, {
      now: () => runner.now / 1000,
      end: () => runner.end / 1000,
      capacity: () => runner.capacityAt(runner.now),
      planned: () => runner.play.moves.filter((move): move is LinkMove => isLinkMove(move) && move.link === link() && move.key === "capacity" && move.at > runner.now),
      begin: () => {
        view.rate.frozen = true;
        this.begin();
      },
      live: (bps) => this.setCapacity(bps, 0),
      plan: (was, at, bps) => this.plan(was, at, bps),
      remove: (move) => runner.remove(move),
      nudge: (factor) => this.nudge(factor, 0),
      finish: () => {
        view.rate.frozen = false;
        this.finish(0);
      },
    });
  }

  /** Begins a gesture, whose changes of the capacity are one step of undo. */
  private begin(): void {
    this.last = this.late = null;
    this.runner.beginGesture();
  }

  private finish(ahead: number): void {
    if (this.late) this.setCapacity(this.late.bps, ahead, 0);
    this.runner.endGesture();
    say(`Capacity ${spoken(this.runner.capacityAt(this.runner.present + ahead))}${ahead > 0 ? ` in ${ahead / 1000} s` : ""}.`);
  }

  /** Sets the capacity from now on, or from `ahead` ms on. */
  private setCapacity(bps: number, ahead: number, interval = CHANGE_INTERVAL): void {
    const { runner } = this;
    const at = Math.min(runner.end, runner.present + ahead);
    let { moves } = runner.play;
    const { last } = this;
    this.late = null;
    if (last && moves.includes(last)) {
      if (last.value === bps) return;
      if (last.at >= runner.present) moves = moves.filter((move) => move !== last);
      else if (at - last.at < interval) {
        this.late = { bps, ahead };
        return;
      }
    }
    this.last = { at, link: runner.play.situation.link, key: "capacity", value: bps };
    runner.change({ ...runner.play, moves: put(moves, this.last) });
  }

  private ahead(): number {
    const ahead = Number(get<HTMLInputElement>("ahead").value);
    return Number.isFinite(ahead) && ahead > 0 ? Math.round(ahead * 10) * 100 : 0;
  }

  private plan(was: LinkMove | null, at: number, bps: number): LinkMove {
    const { runner } = this;
    if (was && was.at === at && was.value === bps) return was;
    const move: LinkMove = { at, link: runner.play.situation.link, key: "capacity", value: bps };
    runner.change({ ...runner.play, moves: put(runner.play.moves.filter((move) => move !== was), move) });
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
    const flow = nextDownload(runner.play.moves, runner.play.situation.lowered.flows.map((flow) => flow.name));
    runner.add({ at, flow, running: true });
    say(`${flow} begins.`);
  }

  /** The path that the call takes next by the button, of those that it can take. */
  private nextPath(): readonly string[] {
    const { situation, moves } = this.runner.play;
    const now = pathAt([...ownPaths(situation), ...moves], situation.paths[0]!, this.runner.present);
    const index = situation.paths.findIndex((path) => String(path) === String(now));
    return situation.paths[(index + 1) % situation.paths.length]!;
  }

  private path(): void {
    const { runner } = this;
    const path = this.nextPath();
    runner.add({ at: runner.present, flow: runner.play.situation.flow, path });
    say(`The call goes over ${path.join(", ")}; what is under way stays on its links.`);
  }

  private loss(): void {
    const { runner } = this;
    const at = runner.present;
    if (!runner.change({ ...runner.play, moves: switched(runner.play, at, LOSS) })) return;
    const value = runner.valueAt("loss", at);
    if (value === null) say("The link has the same losses as before.");
    else say(`The link loses ${Number((value * 100).toPrecision(3))} % of its packets.${ownValue(runner.play, "loss") === null ? ` ${LOSS_REPLACED}` : ""}`);
  }

  /** Sets the capacity to zero for `length` ms, and afterwards as before or as planned; adds `longer` ns to the delay. */
  private gap(length: number, longer: number): void {
    const { runner } = this;
    const { link } = runner.play.situation;
    const at = runner.present;
    const back = Math.min(at + length, runner.end);
    let moves = withGap(runner.play, at, back, this.lastCapacity(at));
    if (longer === 0) {
      if (runner.change({ ...runner.play, moves })) say("An outage of 2 s begins.");
      return;
    }
    const delay = runner.valueAt("delay", back);
    if (delay !== null) moves = put(moves, { at: back, link, key: "delay", value: delay + longer });
    if (!runner.change({ ...runner.play, moves })) return;
    say(`A handover: the link carries nothing for 500 ms; then the delay ${delay === null ? "goes on as recorded" : "is 20 ms longer"}.`);
  }

  /** The last capacity of the link above zero. */
  private lastCapacity(at: number): number {
    const latest = this.runner.planned()?.steps(-1, at / 1000).filter(([, bps]) => bps > 0).at(-1);
    if (latest) return Math.round(latest[1]);
    const truth = this.runner.contenders[0]?.store.truth;
    for (let row = (truth?.length ?? 0) - 1; row >= 0; row -= 1) if (truth!.at(row, 1) > 0) return roundRate(truth!.at(row, 1));
    return 1e6;
  }

  private undo(): void {
    if (!this.runner.undo()) return;
    say("The last change is removed.");
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
    const index = SPEEDS.indexOf(this.runner.speed) + by;
    const speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, index))]!;
    this.runner.speed = speed;
    say(`Speed ${speed} times.`);
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const typing = target.matches("input:not([type=range]):not([type=checkbox]), textarea");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.shiftKey && !typing) {
      event.preventDefault();
      this.undo();
      return;
    }
    // controls have their own keys, but a slider does not use space
    const slides = event.key === " " && target.matches("input[type=range]");
    if (event.ctrlKey || event.metaKey || event.altKey || (target.matches("input, select, textarea, summary") && !slides) || this.runner.play.situation.refused) return;
    const does: Record<string, () => void> = {
      " ": () => this.toggle(), ArrowLeft: () => this.back(), ArrowRight: () => this.step(),
      ArrowUp: () => this.nudge(STEP), ArrowDown: () => this.nudge(1 / STEP),
      "+": () => this.faster(1), "=": () => this.faster(1), "-": () => this.faster(-1),
    };
    const action = does[event.key];
    if (!action || (event.key === " " && target.matches("button"))) return;
    event.preventDefault();
    action();
  }

  private nudge(factor: number, ahead = this.ahead()): void {
    const bps = roundRate(Math.max(this.runner.capacityAt(this.runner.present + ahead) || CAPACITY_MIN, CAPACITY_MIN) * factor);
    this.begin();
    this.setCapacity(bps, ahead);
    this.finish(ahead);
  }

  private fromSlider(position: number): number {
    return position <= 0 ? 0 : roundRate(CAPACITY_MIN * (this.capacityMax / CAPACITY_MIN) ** (position / 1000));
  }

  private toSlider(bps: number): number {
    return bps < CAPACITY_MIN ? 0 : Math.round((1000 * Math.log(bps / CAPACITY_MIN)) / Math.log(this.capacityMax / CAPACITY_MIN));
  }

  /** Shows the state of the runner in the controls. */
  update(): void {
    const { runner } = this;
    // a value that came too soon after the last one is set now, even if the pointer rests
    if (this.late && this.last && runner.present + this.late.ahead - this.last.at >= CHANGE_INTERVAL) this.setCapacity(this.late.bps, this.late.ahead);
    const { play } = runner;
    this.drag?.place();
    const busy = runner.caughtUp < 1;
    text("clock", busy ? `running … ${Math.floor(runner.caughtUp * 100)} %` : `${tenths(runner.now)} of ${runner.end / 1000} s`);
    text("play", runner.playing ? "pause" : "▶ play");
    const time = get<HTMLInputElement>("time");
    time.value = String(runner.present);
    const spokenTime = `${(runner.present / 1000).toFixed(1)} seconds`;
    if (time.getAttribute("aria-valuetext") !== spokenTime) time.setAttribute("aria-valuetext", spokenTime);
    const bps = runner.capacityAt(runner.present + this.ahead());
    // a recorded or random capacity may exceed the first estimate
    if (Number.isFinite(bps) && bps > this.capacityMax) this.capacityMax = roundRate(2 * bps);
    const capacityWords = spoken(bps);
    const slider = get<HTMLInputElement>("capacity");
    text("capacity-text", capacityWords);
    if (document.activeElement !== slider || this.fromSlider(Number(slider.value)) !== bps) slider.value = String(this.toSlider(bps));
    if (slider.getAttribute("aria-valuetext") !== capacityWords) slider.setAttribute("aria-valuetext", capacityWords);
    notice("error", runner.error !== null ? `The run stopped: ${runner.error.replace(/\.?$/, ".")} Undo or reset goes on.` : play.situation.refused !== null ? get("error").textContent : null);
    if (play.situation.paths.length > 1) {
      const next = this.nextPath().join(", ");
      text("path", `over ${next}`);
      get("path").title = `The call goes over ${next} from now on, and both its ends hear of it; what is under way stays on its links`;
    }
    pressed("download", running(play.moves, runner.present).length > 0);
    this.showLoss();
    get<HTMLButtonElement>("undo").disabled = !runner.canUndo;
    const chosen = [play, runner.speed];
    if (chosen.some((current, index) => current !== this.built[index])) {
      this.built = chosen;
      get<HTMLSelectElement>("controller-a").value = play.controllers[0] ?? "";
      get<HTMLSelectElement>("controller-b").value = play.controllers[1] ?? "";
      get<HTMLSelectElement>("queue").value = play.queue;
      // a seed that is being typed stays when other choices change
      if (this.seed !== play.seed) get<HTMLInputElement>("seed").value = String(play.seed);
      this.seed = play.seed;
      get<HTMLSelectElement>("speed").value = String(runner.speed);
    }
    this.list.update();
  }

  /** Shows the loss button: a switch if the link's own loss can be restored; else one of two actions, without a way back. */
  private showLoss(): void {
    const { runner } = this;
    const on = runner.valueAt("loss", runner.present) === LOSS;
    if (ownValue(runner.play, "loss") !== null) pressed("loss", on);
    else get("loss").removeAttribute("aria-pressed");
    text("loss", on && ownValue(runner.play, "loss") === null ? "no loss" : "5 % loss");
  }
}
