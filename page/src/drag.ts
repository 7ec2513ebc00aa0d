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
  /** Begins a gesture, which is one step of undo. */
  begin(): void;
  /** Sets the capacity from now on. */
  live(bps: number): void;
  /** Sets a planned point in place of `was`, or a new one. */
  plan(was: LinkMove | null, ms: number, bps: number): LinkMove;
  remove(move: LinkMove): void;
  finish(): void;
  /** Multiplies the capacity by `factor`, from the keyboard. */
  nudge(factor: number): void;
}

/** Distance from a planned point within which the pointer takes it, in CSS pixels. */
const NEAR = 14;

/** Grid of the times of planned points in ms. */
const GRID = 100;

/** Factor of a step of the keyboard. */
export const STEP = 1.1;

export class Drag {
  private readonly handle = element("handle");
  private readonly planArea = element("plan");

  constructor(private readonly u: uPlot, private readonly target: Dragged) {
    const { handle, planArea } = this;
    handle.tabIndex = 0;
    for (const [key, value] of Object.entries({ role: "slider", "aria-label": "capacity now", "aria-orientation": "vertical", "aria-valuemin": "0" })) handle.setAttribute(key, value);
    planArea.title = "Drag here to plan the capacity";
    u.over.append(planArea, handle);
    handle.addEventListener("pointerdown", (event) => this.dragNow(event));
    planArea.addEventListener("pointerdown", (event) => this.dragPlan(event));
    planArea.addEventListener("dblclick", (event) => {
      const move = this.near(event);
      if (move) target.remove(move);
    });
    handle.addEventListener("keydown", (event) => {
      const factor = { ArrowUp: STEP, ArrowDown: 1 / STEP, PageUp: 2, PageDown: 0.5 }[event.key];
      if (factor === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      target.nudge(factor);
    });
  }

  /** Moves knob and planning area to the present. */
  place(): void {
    const { u, handle, planArea, target } = this;
    const x = u.valToPos(target.now(), "x");
    const capacity = target.capacity();
    const y = Number.isFinite(capacity) ? this.yOf(capacity) : 0;
    handle.style.transform = `translate(${x}px, ${y}px)`;
    planArea.style.left = `${Math.min(x + 17, u.bbox.width / devicePixelRatio)}px`;
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
    // the lowest pixels are zero, on a logarithmic axis, too
    if (y >= box.height - 2) return 0;
    // above the chart the scale goes on, to twice its top on a linear axis
    return roundRate(this.u.posToVal(Math.max(-box.height, y), "y"));
  }

  private near(event: MouseEvent): LinkMove | null {
    const box = this.u.over.getBoundingClientRect();
    const far = (move: LinkMove): number => Math.hypot(this.u.valToPos(move.at / 1000, "x") - (event.clientX - box.left), this.yOf(move.value) - (event.clientY - box.top));
    const nearest = this.target.planned().map((move) => ({ move, far: far(move) })).sort((first, second) => first.far - second.far)[0];
    return nearest && nearest.far <= NEAR ? nearest.move : null;
  }

  private dragNow(down: PointerEvent): void {
    this.gesture(this.handle, down, (event) => this.target.live(this.rateAt(event)));
  }

  private dragPlan(down: PointerEvent): void {
    let point = this.near(down);
    this.gesture(this.planArea, down, (event) => {
      const box = this.u.over.getBoundingClientRect();
      const first = Math.ceil((this.target.now() * 1000 + 1) / GRID) * GRID;
      const wanted = Math.round((this.u.posToVal(event.clientX - box.left, "x") * 1000) / GRID) * GRID;
      const at = Math.min(Math.max(wanted, first), this.target.end() * 1000);
      point = this.target.plan(point, at, this.rateAt(event));
    }, point !== null);
  }

  private gesture(on: HTMLElement, down: PointerEvent, moved: (event: PointerEvent) => void, waits = false): void {
    if (down.button !== 0) return;
    down.preventDefault();
    on.focus({ preventScroll: true });
    on.setPointerCapture(down.pointerId);
    this.target.begin();
    if (!waits && on === this.planArea) moved(down);
    const end = new AbortController();
    const finish = (): void => {
      if (end.signal.aborted) return;
      end.abort();
      this.target.finish();
    };
    on.addEventListener("pointermove", moved, { signal: end.signal });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) on.addEventListener(name, finish, { signal: end.signal });
  }

  free(): void {
    this.handle.remove();
    this.planArea.remove();
  }
}

function element(id: string): HTMLElement {
  const div = document.createElement("div");
  div.id = id;
  return div;
}
