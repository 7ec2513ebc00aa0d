/** The table of numbers so far. */

/** Metrics in the table: key, label, unit, factor and digits as in `crates/sim/src/record/metrics.rs`, and explanation. */
export const ROWS: readonly [string, string, string, number, number, string][] = [
  ["receive_rate_bps", "receive rate", "Mbit/s", 1e-6, 2, "Bits that arrived per second so far, headers included."],
  ["goodput_bps", "goodput", "Mbit/s", 1e-6, 2, "Bits of useful payload per second so far."],
  ["utilisation", "utilisation", "%", 100, 1, "Ratio of the receive rate to the capacity of the link."],
  ["loss_fraction", "loss", "%", 100, 2, "Share of lost packets among the packets whose fate is known."],
  ["marked", "marked by queues", "packets", 1, 0, "Packets marked with congestion experienced (ECN)."],
  ["one_way_delay_ms_mean", "one-way delay, mean", "ms", 1, 1, "Mean time from departure at the sender to arrival at the receiver."],
  ["one_way_delay_ms_p95", "one-way delay, 95th percentile", "ms", 1, 1, "19 of 20 packets had at most this delay."],
  ["queueing_delay_ms_mean", "queueing delay, mean", "ms", 1, 1, "Mean of the time that packets waited in queues."],
  ["frame_delay_ms_p95", "frame delay, 95th percentile", "ms", 1, 1, "19 of 20 frames took at most this time from capture to display."],
  ["frames_rendered", "frames shown", "", 1, 0, "Number of frames that were shown."],
  ["without_picture_s", "time without a new picture", "s", 1, 2, "Total length of the stretches without a new picture; a stretch counts when it is over."],
  ["freezes", "freezes", "", 1, 0, "Number of freezes as a browser counts them; a freeze counts when it is over."],
  ["discarded_late", "discarded late", "packets", 1, 0, "Packets that arrived too late for playout."],
];

/** The text of a value in the table. */
export function cellText(value: unknown, factor: number, digits: number): string {
  return typeof value === "number" && Number.isFinite(value) ? (value * factor).toFixed(digits) : "–";
}

/** The metrics of a flow in the result of `World.metrics()`. */
export function ofFlow(metrics: Record<string, unknown>, flow: string): Record<string, unknown> {
  const flows = Array.isArray(metrics.flows) ? (metrics.flows as Record<string, unknown>[]) : [];
  return flows.find((entry) => entry.flow === flow) ?? {};
}

/** Fills the table's body: a row for each metric, a column for each contender. */
export function fill(body: HTMLTableSectionElement, contenders: Record<string, unknown>[]): void {
  if (body.rows.length !== ROWS.length || body.rows[0]?.cells.length !== contenders.length + 1) {
    body.replaceChildren(...ROWS.map(([key, label, unit, , , about]) => {
      const row = document.createElement("tr");
      row.dataset.metric = key;
      const head = document.createElement("th");
      head.scope = "row";
      head.title = about;
      head.textContent = unit ? `${label} (${unit})` : label;
      row.append(head, ...contenders.map(() => document.createElement("td")));
      return row;
    }));
  }
  for (const [index, [key, , , factor, digits]] of ROWS.entries()) {
    for (const [column, metrics] of contenders.entries()) {
      const cell = body.rows[index]!.cells[column + 1]!;
      const text = cellText(metrics[key], factor, digits);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }
}
