/** News of a world: sections of rows, in one typed array. */

export interface Section {
  name: string;
  columns: string[];
}

/** Rows of one section in their original order: `values[row * width + column]`. */
export interface Rows {
  rows: number;
  width: number;
  values: Float64Array;
}

/** Splits the values of `World.read()` into sections.
 *
 * @throws Error when their number does not match their counts: engine and page are of different versions.
 */
export function split(read: Float64Array, sections: readonly Section[]): Map<string, Rows> {
  const parts = new Map<string, Rows>();
  let offset = 0;
  for (const { name, columns } of sections) {
    const rows = read[offset];
    const width = columns.length;
    if (rows === undefined || !Number.isInteger(rows) || rows < 0 || offset + 1 + rows * width > read.length) {
      throw new Error(`The engine's ${name} are cut off at value ${offset} of ${read.length}.`);
    }
    parts.set(name, { rows, width, values: read.subarray(offset + 1, offset + 1 + rows * width) });
    offset += 1 + rows * width;
  }
  if (offset !== read.length) throw new Error(`The engine returned ${read.length - offset} values beyond its sections.`);
  return parts;
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
      for (const [index, old] of this.data.entries()) {
        const larger = new Float64Array(old.length * 2);
        larger.set(old);
        this.data[index] = larger;
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

  /** Index of the first row with a time not before `time`. */
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
