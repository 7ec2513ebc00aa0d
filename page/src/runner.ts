/** The course of a play: contenders in step, changes and undo; going back runs it again from the seed. */

import { Contender } from "./contender.ts";
import { message } from "./engine.ts";
import { add, MOVES_MAX, remove, type Move } from "./moves.ts";
import { plannedCapacity, valueAt, type Plan } from "./plan.ts";
import { begin, type Play } from "./play.ts";

/** Milliseconds of a frame that the engine may take while playing, and while a run catches up with its time. */
const BUDGET = 3.5;
const CATCHING_UP = 12;

/** Largest step of time in a frame in ms, so that time does not leap after a pause of the page (another tab). */
const LONGEST_FRAME = 100;

export class Runner {
  contenders: Contender[] = [];
  playing = false;
  speed = 1;
  /** The error of the engine, until a play is begun or changed. */
  error: string | null = null;
  /** Number of times that worlds were made anew, by which the view notices it. */
  generation = 0;
  private coming: Contender[] | null = null;
  private madeFor: Play | null = null;
  private target = 0;
  private rest = 0;
  private past: Play[] = [];
  private gesture: Play | null = null;
  private plan: { play: Play; value: Plan | null } | null = null;

  /** Called with the number of changes when a change is refused because there would be too many. */
  full: (count: number) => void = () => undefined;

  constructor(public play: Play) {}

  /** The end of the run in ms. */
  get end(): number {
    return this.play.situation.lowered.duration / 1e6;
  }

  /** The time of the run on display, in ms. */
  get now(): number {
    return this.contenders.length > 0 ? Math.min(...this.contenders.map((contender) => contender.now)) : 0;
  }

  /** The time that the run has to reach, in ms: from then on changes are live. */
  get present(): number {
    return this.target;
  }

  /** The part that is done while a run catches up; 1 when it has reached its time. */
  get caughtUp(): number {
    if (!this.coming || this.target === 0) return this.contenders.some((contender) => contender.now < this.target - 1000) ? this.now / this.target : 1;
    return Math.min(...this.coming.map((contender) => contender.now)) / this.target;
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  /** Whether the display has reached the requested play and time. */
  get idle(): boolean {
    return this.error !== null || (this.coming === null && this.madeFor === this.play && this.now === this.target);
  }

  /** The planned capacity of the link in bit/s at a time in ms; the last measured one if the plan is unknown. */
  capacityAt(ms: number): number {
    const capacity = this.planned()?.at(ms / 1000) ?? NaN;
    if (!Number.isNaN(capacity)) return capacity;
    const truth = this.contenders[0]?.store.truth;
    return truth && truth.length > 0 ? truth.at(truth.length - 1, 1) : NaN;
  }

  /** The capacity over time, as far as it is known beforehand. */
  planned(): Plan | null {
    if (this.plan?.play !== this.play) this.plan = { play: this.play, value: plannedCapacity(this.play) };
    return this.plan.value;
  }

  /** The link's delay in ns or loss at a time in ms; null if it is not a fixed number. */
  valueAt(key: "delay" | "loss", ms: number): number | null {
    return valueAt(this.play, key, ms);
  }

  /** Opens another play at a time. */
  open(play: Play, at = 0): void {
    this.past = [];
    this.play = play;
    this.target = at;
    this.error = null;
    for (const contender of [...this.contenders, ...(this.coming ?? [])]) contender.free();
    this.contenders = [];
    this.coming = null;
    this.madeFor = null;
  }

  /** Changes the play: one step of undo, or a part of the current gesture. Returns false if the change is refused. */
  change(play: Play): boolean {
    if (play === this.play) return true;
    const count = play.moves.length + (play.situation.lowered.moves?.length ?? 0);
    if (count > MOVES_MAX && play.moves.length > this.play.moves.length) {
      this.full(count);
      return false;
    }
    if (!this.gesture) this.past.push(this.play);
    this.play = play;
    this.error = null;
    return true;
  }

  beginGesture(): void {
    this.endGesture();
    this.gesture = this.play;
  }

  endGesture(): void {
    if (this.gesture && this.gesture !== this.play) this.past.push(this.gesture);
    this.gesture = null;
  }

  add(move: Move): boolean {
    return this.change({ ...this.play, moves: add(this.play.moves, move) });
  }

  remove(move: Move): void {
    this.change({ ...this.play, moves: remove(this.play.moves, move) });
  }

  undo(): boolean {
    const before = this.past.pop();
    if (!before) return false;
    this.play = before;
    this.error = null;
    return true;
  }

  reset(): void {
    this.past.push(this.play);
    this.play = { ...begin(this.play.situation), controllers: this.play.controllers, queue: this.play.queue, seed: this.play.seed };
    this.seek(0);
    this.error = null;
  }

  /** Goes to a time in ms: on from here, or again from the seed. */
  seek(ms: number): void {
    const wanted = Math.max(0, Math.min(this.end, Math.round(ms)));
    // a world does not run backwards
    if (wanted < this.target) this.madeFor = null;
    this.target = wanted;
    this.rest = 0;
  }

  /** Does the work of one frame, `elapsed` ms after the last one; returns whether the display has to change. */
  frame(elapsed: number): boolean {
    if (this.error !== null) return false;
    try {
      return this.advance(elapsed);
    } catch (error) {
      this.error = message(error);
      this.playing = false;
      for (const contender of this.coming ?? []) contender.free();
      this.coming = null;
      // the world that failed is over: the next play begins anew
      this.madeFor = null;
      return true;
    }
  }

  private advance(elapsed: number): boolean {
    const began = performance.now();
    this.follow();
    if (this.coming) {
      if (!this.run(this.coming, began + CATCHING_UP)) return false;
      for (const contender of this.coming) contender.read();
      for (const contender of this.contenders) contender.free();
      this.contenders = this.coming;
      this.coming = null;
      this.generation += 1;
      return true;
    }
    if (this.playing && this.contenders.every((contender) => contender.now === this.target)) {
      const wanted = this.target + this.rest + Math.min(elapsed, LONGEST_FRAME) * this.speed;
      this.target = Math.min(this.end, Math.floor(wanted));
      this.rest = wanted - Math.floor(wanted);
      if (this.target === this.end) this.playing = false;
    }
    if (this.now === this.target) return false;
    const far = this.target - this.now > LONGEST_FRAME * 50;
    this.run(this.contenders, began + (far ? CATCHING_UP : BUDGET));
    for (const contender of this.contenders) contender.read();
    return true;
  }

  /** Runs each contender to the target time, in equal parts of the remaining budget; returns whether all have reached it. */
  private run(contenders: Contender[], deadline: number): boolean {
    let arrived = true;
    for (const [index, contender] of contenders.entries()) {
      const now = performance.now();
      arrived = contender.run(this.target, now + (deadline - now) / (contenders.length - index)) && arrived;
    }
    return arrived;
  }

  /** Brings the worlds in line with the play: passes changes to them, or makes them anew. */
  private follow(): void {
    const { play } = this;
    if (this.madeFor === play) return;
    const same = this.madeFor !== null && !this.coming && this.contenders.length === play.controllers.length &&
      this.contenders.every((contender, index) => contender.controller === play.controllers[index]);
    // changes are passed after all events before them
    if (same && this.contenders.some((contender) => contender.now !== this.target)) {
      if (!this.run(this.contenders, performance.now() + BUDGET)) return;
    }
    if (!same || !this.contenders.every((contender) => contender.follow(play))) {
      for (const contender of this.coming ?? []) contender.free();
      this.coming = null;
      const fresh: Contender[] = [];
      try {
        for (const word of play.controllers) fresh.push(new Contender(play, word));
      } catch (error) {
        for (const contender of fresh) contender.free();
        throw error;
      }
      this.coming = fresh;
    }
    this.madeFor = play;
  }
}
