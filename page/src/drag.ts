/** Dragging the capacity: a knob at the present, and the plan to its right. */

import type uPlot from "uplot";
import { roundRate, spoken, type LinkMove } from "./moves.ts";

export interface Dragged {
  /** The present in s. */
  now(): number;
  /** The end of the run in s. */
  end(): number;
  capacity(): number;
  /** Planned points of the capacity. */
  planned(): LinkMove[];
  /** A gesture begins; what it does is one step of undo. */
  begin(): void;
  /** The capacity from now on. */
  live(bps: number): void;
  /** A planned point, at a place where one was, or a new one. */
  plan(was: LinkMove | null, ms: number, bps: number): LinkMove;
  remove(move: LinkMove): void;
  finish(): void;
  /** The capacity by keys: so many times what it is. */
  nudge(factor: number): void;
}

/** How near a planned point one has to be to take it, in CSS pixels. */
const NEAR = 14;

/** Times of planned points are whole tenths of a second. */
const GRID = 100;

/** A step of the keyboard. */
export const STEP = 1.1;

export class Drag {
  private readonly handle = element("handle");
  private readonly ahead = element("plan");

  constructor(private readonly u: uPlot, private readonly told: Dragged) {
    const { handle, ahead } = this;
    handle.tabIndex = 0;
    for (const [key, value] of Object.entries({ role: "slider", "aria-label": "capacity now", "aria-orientation": "vertical", "aria-valuemin": "0" })) handle.setAttribute(key, value);
    ahead.title = "Drag here to plan the capacity";
    u.over.append(ahead, handle);
    handle.addEventListener("pointerdown", (event) => this.dragNow(event));
    ahead.addEventListener("pointerdown", (event) => this.dragPlan(event));
    ahead.addEventListener("dblclick", (event) => {
      const found = this.near(event);
      if (found) told.remove(found);
    });
    handle.addEventListener("keydown", (event) => {
      const factor = { ArrowUp: STEP, ArrowDown: 1 / STEP, PageUp: 2, PageDown: 0.5 }[event.key];
      if (factor === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      told.nudge(factor);
    });
  }

  /** Puts knob and plan where they are now. */
  place(): void {
    const { u, handle, ahead, told } = this;
    const x = u.valToPos(told.now(), "x");
    const capacity = told.capacity();
    const y = Number.isFinite(capacity) ? this.yOf(capacity) : 0;
    handle.style.transform = `translate(${x}px, ${y}px)`;
    ahead.style.left = `${Math.min(x + 17, u.bbox.width / devicePixelRatio)}px`;
    const text = spoken(capacity);
    if (handle.getAttribute("aria-valuetext") !== text) {
      handle.setAttribute("aria-valuetext", text);
      handle.setAttribute("aria-valuenow", String(Math.round(capacity) || 0));
      handle.setAttribute("aria-valuemax", String(Math.round(u.scales.y!.max ?? 0)));
    }
  }

  private yOf(bps: number): number {
    const low = this.u.scales.y!.min ?? 0;
    return Math.min(this.u.bbox.height / devicePixelRatio, Math.max(0, this.u.valToPos(Math.max(bps, low, this.u.scales.y!.distr === 3 ? 1 : 0), "y")));
  }

  private rateAt(event: PointerEvent): number {
    const box = this.u.over.getBoundingClientRect();
    const y = event.clientY - box.top;
    // the lowest pixels are no capacity at all, on a logarithmic axis too
    if (y >= box.height - 2) return 0;
    // above the chart it goes on, to twice its top on a linear axis
    return roundRate(this.u.posToVal(Math.max(-box.height, y), "y"));
  }

  private near(event: MouseEvent): LinkMove | null {
    const box = this.u.over.getBoundingClientRect();
    const far = (move: LinkMove): number => Math.hypot(this.u.valToPos(move.at / 1000, "x") - (event.clientX - box.left), this.yOf(move.value) - (event.clientY - box.top));
    const found = this.told.planned().map((move) => ({ move, far: far(move) })).sort((one, other) => one.far - other.far)[0];
    return found && found.far <= NEAR ? found.move : null;
  }

  private dragNow(down: PointerEvent): void {
    this.gesture(this.handle, down, (event) => this.told.live(this.rateAt(event)));
  }

  private dragPlan(down: PointerEvent): void {
    let point = this.near(down);
    this.gesture(this.ahead, down, (event) => {
      const box = this.u.over.getBoundingClientRect();
      const first = Math.ceil((this.told.now() * 1000 + 1) / GRID) * GRID;
      const wanted = Math.round((this.u.posToVal(event.clientX - box.left, "x") * 1000) / GRID) * GRID;
      const at = Math.min(Math.max(wanted, first), this.told.end() * 1000);
      point = this.told.plan(point, at, this.rateAt(event));
    }, point !== null);
  }

  private gesture(on: HTMLElement, down: PointerEvent, moved: (event: PointerEvent) => void, waits = false): void {
    if (down.button !== 0) return;
    down.preventDefault();
    on.focus({ preventScroll: true });
    on.setPointerCapture(down.pointerId);
    this.told.begin();
    if (!waits && on === this.ahead) moved(down);
    const end = new AbortController();
    const finish = (): void => {
      if (end.signal.aborted) return;
      end.abort();
      this.told.finish();
    };
    on.addEventListener("pointermove", moved, { signal: end.signal });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) on.addEventListener(name, finish, { signal: end.signal });
  }

  free(): void {
    this.handle.remove();
    this.ahead.remove();
  }
}

function element(id: string): HTMLElement {
  const made = document.createElement("div");
  made.id = id;
  return made;
}
