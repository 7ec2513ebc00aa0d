/** In the engine's place in these tests: a world that breaks off as a real one does when its code traps, even when it is given back. */

export default async function init(): Promise<void> {}

export class World {
  static sections = (): string => "[]";
  readonly duration = 60;
  names = (): string => JSON.stringify({ flows: [{ name: "call" }], links: [{ name: "line.back" }], internals: [] });
  read = (): Float64Array => new Float64Array();
  step(): boolean {
    throw new Error("unreachable");
  }
  free(): void {
    throw new Error("attempted to take ownership of Rust value while it was borrowed");
  }
}
