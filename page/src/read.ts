/** What a world gives to be read: news in sections of rows, in one typed array. */

export interface Section {
  name: string;
  columns: string[];
}

/** Rows of one section, as they came: `values[row * width + column]`. */
export interface Rows {
  rows: number;
  width: number;
  values: Float64Array;
}

/** Splits what `World.read()` gave into its sections.
 *
 * @throws Error when its length is not what its own counts say: engine and page are of different versions.
 */
export function split(read: Float64Array, sections: readonly Section[]): Map<string, Rows> {
  const found = new Map<string, Rows>();
  let place = 0;
  for (const { name, columns } of sections) {
    const rows = read[place];
    const width = columns.length;
    if (rows === undefined || !Number.isInteger(rows) || rows < 0 || place + 1 + rows * width > read.length) {
      throw new Error(`The engine's ${name} are cut off at value ${place} of ${read.length}.`);
    }
    found.set(name, { rows, width, values: read.subarray(place + 1, place + 1 + rows * width) });
    place += 1 + rows * width;
  }
  if (place !== read.length) throw new Error(`The engine gave ${read.length - place} values more than its sections have.`);
  return found;
}

/** Columns that grow by rows; a row's first column is its time. */
export class Columns {
  length = 0;
  private readonly data: Float64Array[];

  constructor(readonly width: number, room = 256) {
    this.data = Array.from({ length: width }, () => new Float64Array(room));
  }

  push(rows: Rows, row: number, skip = -1): void {
    if (this.length === this.data[0]!.length) {
      for (const [place, old] of this.data.entries()) {
        const larger = new Float64Array(old.length * 2);
        larger.set(old);
        this.data[place] = larger;
      }
    }
    let to = 0;
    for (let column = 0; column < rows.width; column += 1) {
      if (column === skip) continue;
      this.data[to]![this.length] = rows.values[row * rows.width + column]!;
      to += 1;
    }
    this.length += 1;
  }

  at(row: number, column: number): number {
    return this.data[column]![row]!;
  }

  /** The first row whose time is not before `time`. */
  from(time: number, column = 0): number {
    const times = this.data[column]!;
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle]! < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
