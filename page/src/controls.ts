/** The controls above the charts: what is chosen, time, changes. */

import { Drag, STEP } from "./drag.ts";
import { MoveList } from "./movelist.ts";
import { add as put, ended, isLinkMove, MOST_MOVES, nextDownload, roundRate, running, spoken, type LinkMove } from "./moves.ts";
import { capacityKind, ownValue, switched, withGap } from "./plan.ts";
import { begin } from "./play.ts";
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

/** Said where a link has losses of its own that are no plain share. */
const GONE = "Its own losses are gone for good; undo brings them back.";

/** What a change by hand does to a capacity that is not constant. */
const REPLACED: Record<ReturnType<typeof capacityKind>, string> = {
  constant: "",
  schedule: "; what this link will carry is a schedule: the first change by hand replaces the rest of it (an outage and a handover keep it)",
  unknown: "; what this link will carry is recorded or drawn at random: the first change of its capacity replaces that for good",
};

/** Tenths of a second that are over: the end is not shown before it is there. */
const tenths = (ms: number): string => (Math.floor(ms / 100) / 10).toFixed(1);

export class Controls {
  private drag: Drag | null = null;
  /** The last change of the gesture that is under way, and a value that came too soon after it. */
  private last: LinkMove | null = null;
  private late: { bps: number; ahead: number } | null = null;
  private most = 1e7;
  private readonly list: MoveList;
  /** Whether the last thing done was by pointer, not by key. */
  private pointed = false;
  private built: unknown[] = [];
  private seed: number | null = null;

  constructor(private readonly runner: Runner, private readonly view: View, private readonly situations: readonly Situation[], private readonly redraw: () => void) {
    options("situation", situations.map((one) => [one.id, one.lesson ? `Lesson ${one.lesson.number}: ${one.title}` : one.title]));
    options("speed", SPEEDS.map((one) => [String(one), `${one}×`]));
    this.list = new MoveList(runner);
    runner.full = (count) => {
      const sentence = `That would be ${count} changes, and a scenario has at most ${MOST_MOVES}: nothing is changed.`;
      notice("notice", sentence);
      say(sentence);
    };
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
    document.addEventListener("pointerdown", () => (this.pointed = true), true);
    document.addEventListener("keydown", () => (this.pointed = false), true);
    // who has chosen with the pointer has the keys for time and capacity again; who goes by keys stays there
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

  /** What depends on the situation. */
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
    const known = this.runner.planned()?.rates() ?? [];
    this.most = roundRate(Math.max(4 * Math.max(capacity || 0, ...known, 1e6), 4e6));
    get("replaced").textContent = REPLACED[capacityKind(this.runner.play)];
    const plain = ownValue(this.runner.play, "loss") !== null;
    get("loss").title = `The link loses 5 % of its packets at random, from now on${plain ? "" : `. ${GONE}`}`;
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
      nudge: (factor) => this.nudge(factor, 0),
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
    if (this.late) this.setCapacity(this.late.bps, ahead, 0);
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
        this.late = { bps, ahead };
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
    if (!runner.change({ ...runner.play, moves: switched(runner.play, at, LOSS) })) return;
    const value = runner.valueAt("loss", at);
    if (value === null) say("The link loses what it lost before.");
    else say(`The link loses ${Number((value * 100).toPrecision(3))} % of its packets.${ownValue(runner.play, "loss") === null ? ` ${GONE}` : ""}`);
  }

  /** Nothing is carried for a while; afterwards as before or as planned, with a longer delay if there is one to add. */
  private gap(length: number, longer: number): void {
    const { runner } = this;
    const { link } = runner.play.situation;
    const at = runner.present;
    const back = Math.min(at + length, runner.end);
    let moves = withGap(runner.play, at, back, this.lastCapacity(at));
    if (longer === 0) {
      if (runner.change({ ...runner.play, moves })) say("An outage of 2 s.");
      return;
    }
    const delay = runner.valueAt("delay", back);
    if (delay !== null) moves = put(moves, { at: back, link, key: "delay", value: delay + longer });
    if (!runner.change({ ...runner.play, moves })) return;
    say(`A handover: nothing is carried for 500 ms, and then ${delay === null ? "the delay goes on as it is recorded" : "the delay is 20 ms longer"}.`);
  }

  /** What the link carried last when it carried anything. */
  private lastCapacity(at: number): number {
    const known = this.runner.planned()?.steps(-1, at / 1000).filter(([, bps]) => bps > 0).at(-1);
    if (known) return Math.round(known[1]);
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
    // controls have their own use of keys, but sliders none of space
    const slides = event.key === " " && at.matches("input[type=range]");
    if (event.ctrlKey || event.metaKey || event.altKey || (at.matches("input, select, textarea, summary") && !slides) || this.runner.play.situation.refused) return;
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

  private nudge(factor: number, ahead = this.ahead()): void {
    const bps = roundRate(Math.max(this.runner.capacityAt(this.runner.present + ahead) || LEAST, LEAST) * factor);
    this.begin();
    this.setCapacity(bps, ahead);
    this.finish(ahead);
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
    // a value that came too soon after the last one has its turn, also when nobody moves any more
    if (this.late && this.last && runner.present + this.late.ahead - this.last.at >= APART) this.setCapacity(this.late.bps, this.late.ahead);
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
    // what is recorded or drawn at random may be more than was thought at the beginning
    if (Number.isFinite(bps) && bps > this.most) this.most = roundRate(2 * bps);
    const said = spoken(bps);
    const slider = get<HTMLInputElement>("capacity");
    text("capacity-text", said);
    if (document.activeElement !== slider || this.fromSlider(Number(slider.value)) !== bps) slider.value = String(this.toSlider(bps));
    if (slider.getAttribute("aria-valuetext") !== said) slider.setAttribute("aria-valuetext", said);
    notice("error", runner.error !== null ? `The run stopped: ${runner.error.replace(/\.?$/, ".")} Undo or reset goes on.` : play.situation.refused !== null ? get("error").textContent : null);
    pressed("download", running(play.moves, runner.present).length > 0);
    this.showLoss();
    get<HTMLButtonElement>("undo").disabled = !runner.canUndo;
    const chosen = [play, runner.speed];
    if (chosen.some((one, place) => one !== this.built[place])) {
      this.built = chosen;
      get<HTMLSelectElement>("controller-a").value = play.controllers[0] ?? "";
      get<HTMLSelectElement>("controller-b").value = play.controllers[1] ?? "";
      get<HTMLSelectElement>("queue").value = play.queue;
      // a seed that is being typed stays, whatever else changes
      if (this.seed !== play.seed) get<HTMLInputElement>("seed").value = String(play.seed);
      this.seed = play.seed;
      get<HTMLSelectElement>("speed").value = String(runner.speed);
    }
    this.list.update();
  }

  /** A switch, where the link's own loss can be had again; else two things to do, of which neither leads back. */
  private showLoss(): void {
    const { runner } = this;
    const on = runner.valueAt("loss", runner.present) === LOSS;
    if (ownValue(runner.play, "loss") !== null) pressed("loss", on);
    else get("loss").removeAttribute("aria-pressed");
    text("loss", on && ownValue(runner.play, "loss") === null ? "no loss" : "5 % loss");
  }
}
