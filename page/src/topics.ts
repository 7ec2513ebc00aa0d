/** Topics of the controllers' internals, each for a small chart, and the meanings of the names. */

export interface Topic {
  id: string;
  title: string;
  /** Names of internals that go into one chart; the first is drawn strong. */
  names: string[];
  /** Explanation, shown on hovering. */
  about: string;
  /** Words for the values of a state. */
  words?: string[];
  /** Whether the second name is also drawn below zero: a threshold on both sides. */
  mirrored?: boolean;
  /** Values are bit/s, or bytes: axis and numbers are shortened. */
  unit?: "bps" | "bytes" | "ms";
}

/** Topics in the order in which they are offered; the first topics of a controller are shown at once. */
const TOPICS: Topic[] = [
  { id: "trend-over-threshold", title: "trend and threshold", names: ["compared", "threshold"], mirrored: true, unit: "ms",
    about: "GCC's detector: the trend of the one-way delay and the adaptive threshold. With a trend above the threshold the link is over-used, below the negative threshold under-used." },
  { id: "state", title: "detector", names: ["state"], words: ["normal", "over-use", "under-use"],
    about: "State of GCC's detector, from trend and threshold." },
  { id: "rate_state", title: "rate control", names: ["rate_state"], words: ["hold", "increase", "decrease"],
    about: "State of GCC's rate control: it increases the rate while the detector is normal, decreases it on over-use and holds it on under-use." },
  { id: "delay_based", title: "delay-based and loss-based", names: ["delay_based", "loss_based"], unit: "bps",
    about: "GCC's two estimates, from delay and from losses. The lower one is the target." },
  { id: "loss_state", title: "loss-based state", names: ["loss_state"], words: ["increasing", "increasing with padding", "decreasing", "by delay"],
    about: "State of GCC's loss-based estimate; \"by delay\": the delay-based estimate decides." },
  { id: "x_curr", title: "congestion signal", names: ["x_curr_ms", "queueing_ms"], unit: "ms",
    about: "NADA's congestion signal: queueing delay, plus losses and marks as an equivalent delay (RFC 8698)." },
  { id: "rmode", title: "mode", names: ["rmode"], words: ["ramp-up", "gradual"],
    about: "NADA's mode: ramp-up without queueing delay, losses and marks, otherwise gradual (RFC 8698)." },
  { id: "r_ref", title: "reference rate", names: ["r_ref_bps", "r_recv_bps"], unit: "bps",
    about: "NADA's reference rate, from which the target is computed, and the receive rate." },
  { id: "qdelay", title: "queueing delay and its target", names: ["qdelay_ms", "qdelay_target_ms", "qdelay_avg_ms"], unit: "ms",
    about: "SCReAM's estimate of the queueing delay, its average, and the target; the reference window shrinks above half of the target." },
  { id: "ref_wnd", title: "window and bytes in flight", names: ["ref_wnd_bytes", "bytes_in_flight", "ref_wnd_i_bytes"], unit: "bytes",
    about: "SCReAM's reference window, the bytes in flight, and the window at its last decrease." },
  { id: "cwnd", title: "window and bytes in flight", names: ["cwnd_bytes", "bytes_in_flight"], unit: "bytes",
    about: "SCReAM's congestion window and the bytes in flight (RFC 8298)." },
  { id: "l4s", title: "share of marks", names: ["l4s_alpha"], about: "SCReAM's moving average of the share of packets marked with congestion experienced (L4S alpha)." },
  { id: "x", title: "allowed rate and equation", names: ["x_bps", "equation_bps", "x_recv_bps"], unit: "bps",
    about: "TFRC's allowed rate X, the rate by TCP's throughput equation, and the receive rate (RFC 5348)." },
  { id: "p", title: "loss event rate", names: ["p", "receiver_p"], about: "TFRC's loss event rate: the inverse of the mean number of packets between loss events (RFC 5348)." },
  { id: "remb", title: "the receiver's estimate", names: ["remb", "loss_based"], unit: "bps",
    about: "The receiver's estimate in REMB messages, and the sender's estimate from losses. The lower one is the target." },
  { id: "window", title: "window and queue by forecast", names: ["window_bytes", "queue_bytes"], unit: "bytes",
    about: "Sprout: number of bytes that may be sent because they leave the queue within 100 ms with 95 % probability, and bytes in the queue." },
];

const ABOUT: Record<string, string> = {
  rtt_ms: "Round-trip time that the controller uses.", s_rtt_ms: "Smoothed round-trip time.",
  round_trip_ms: "Round-trip time that the sender measures from reports.", acked_bytes: "Bytes that a feedback report acknowledges.",
  pacer_backlog: "Bytes that wait in the sender's pacer.", frames_skipped: "Frames that were not sent because too many bytes waited at the sender.",
  app_limited: "1 while the application sends less than the controller allows.", received_rate: "Rate of the acknowledged bytes.",
  probe_rate: "Rate measured by a probe (a short burst of packets).", loss_fraction: "Share of packets lost.",
  group_delta_ms: "Difference of the delays of two successive groups of packets.", trend: "Slope of the one-way delay.",
  num_deltas: "Number of packet groups from which the trend is computed.", offset: "The Kalman filter's estimate of the delay's change.",
  slope: "The Kalman filter's estimate of the inverse of the capacity.", var_noise: "The Kalman filter's estimate of the jitter's variance.",
  stable_target: "A smoothed target, for decisions that should not oscillate.", data_limited: "1 while the sender had less data than it was allowed to send.",
  p_loss: "Loss ratio that NADA uses.", p_mark: "Marking ratio that NADA uses.",
  receiver_rate: "Sprout's estimate of the receive rate, in packets per tick.", rate_adjust: "Factor by which SCReAM multiplies the rate so that frames fit.",
};

const unitOf = (name: string): Topic["unit"] =>
  name.endsWith("_ms") ? "ms" : name.endsWith("_bps") || name.endsWith("_rate") ? "bps" : name.endsWith("_bytes") || name === "pacer_backlog" ? "bytes" : undefined;

/** The topics of contenders with these names of internals: those above first, then a topic for each remaining name. */
export function topics(names: readonly string[]): Topic[] {
  const has = new Set(names);
  const offered = TOPICS.filter((topic) => has.has(topic.names[0]!)).map((topic) => ({ ...topic, names: topic.names.filter((name) => has.has(name)) }));
  const covered = new Set(offered.flatMap((topic) => topic.names));
  const rest = [...has].filter((name) => !covered.has(name)).sort().map((name): Topic => {
    const unit = unitOf(name);
    return { id: name, title: name.replaceAll("_", " "), names: [name], about: ABOUT[name] ?? `Value that the controller records as ${name}; see the documentation of the controller.`, ...(unit ? { unit } : {}) };
  });
  return [...offered, ...rest];
}

/** Number of topics that are shown before a choice. */
export const TOPICS_AT_FIRST = 3;
