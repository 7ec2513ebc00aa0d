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
  { id: "trend-over-threshold", title: "trend over threshold", names: ["compared", "threshold"], mirrored: true, unit: "ms",
    about: "GCC's detector: the trend of the one-way delay, as it is compared with the threshold that adapts. Above it the link is over-used, below its negative under-used." },
  { id: "state", title: "detector", names: ["state"], words: ["normal", "over-use", "under-use"],
    about: "What GCC's detector concludes from trend and threshold." },
  { id: "rate_state", title: "rate control", names: ["rate_state"], words: ["hold", "increase", "decrease"],
    about: "What GCC's rate control does of that: it increases while the detector says normal, decreases on over-use, holds on under-use." },
  { id: "delay_based", title: "delay-based and loss-based", names: ["delay_based", "loss_based"], unit: "bps",
    about: "GCC's two estimates, one from delay and one from losses. The lower of them is the target." },
  { id: "loss_state", title: "loss-based state", names: ["loss_state"], words: ["increasing", "increasing with padding", "decreasing", "by delay"],
    about: "What GCC's loss-based estimate does, and whether the delay-based one decides." },
  { id: "x_curr", title: "congestion signal", names: ["x_curr_ms", "queueing_ms"], unit: "ms",
    about: "NADA's one signal: queueing delay, and what losses and marks count for, as a delay (RFC 8698)." },
  { id: "rmode", title: "mode", names: ["rmode"], words: ["ramp-up", "gradual"],
    about: "NADA ramps up while it sees neither delay nor losses nor marks, and goes gradually otherwise (RFC 8698)." },
  { id: "r_ref", title: "reference rate", names: ["r_ref_bps", "r_recv_bps"], unit: "bps",
    about: "NADA's reference rate, from which the target comes, and the rate at which media arrives." },
  { id: "qdelay", title: "queueing delay and its target", names: ["qdelay_ms", "qdelay_target_ms", "qdelay_avg_ms"], unit: "ms",
    about: "SCReAM's estimate of the queueing delay, its average, and the target above half of which the window shrinks." },
  { id: "ref_wnd", title: "window and bytes in flight", names: ["ref_wnd_bytes", "bytes_in_flight", "ref_wnd_i_bytes"], unit: "bytes",
    about: "SCReAM's reference window, the bytes under way, and the window at which it last had to shrink." },
  { id: "cwnd", title: "window and bytes in flight", names: ["cwnd_bytes", "bytes_in_flight"], unit: "bytes",
    about: "SCReAM's congestion window and the bytes under way (RFC 8298)." },
  { id: "l4s", title: "share of marks", names: ["l4s_alpha"], about: "SCReAM's running share of packets that were marked with congestion (L4S alpha)." },
  { id: "x", title: "allowed rate and equation", names: ["x_bps", "equation_bps", "x_recv_bps"], unit: "bps",
    about: "TFRC's allowed rate X, what TCP's throughput equation gives, and the rate at which data arrives (RFC 5348)." },
  { id: "p", title: "loss event rate", names: ["p", "receiver_p"], about: "TFRC's loss event rate: one over the mean number of packets between loss events (RFC 5348)." },
  { id: "remb", title: "the receiver's estimate", names: ["remb", "loss_based"], unit: "bps",
    about: "What the receiver told in REMB messages, and the sender's estimate from losses. The lower of them is the target." },
  { id: "window", title: "window and queue by forecast", names: ["window_bytes", "queue_bytes"], unit: "bytes",
    about: "Sprout: how many bytes may go because they will be out of the queue within 100 ms at 95 % certainty, and how many wait." },
];

const ABOUT: Record<string, string> = {
  rtt_ms: "Round-trip time that the controller works with.", s_rtt_ms: "Smoothed round-trip time.",
  round_trip_ms: "Round-trip time of reports, as the sender measures it.", acked_bytes: "Bytes that a feedback report confirms.",
  pacer_backlog: "Bytes that wait in the sender's pacer.", frames_skipped: "Frames that were not sent because too much waited at the sender.",
  app_limited: "1 while the application sends less than it may.", received_rate: "Rate of what was acknowledged.",
  probe_rate: "What a probe (a short burst of packets) has measured.", loss_fraction: "Share of packets lost.",
  group_delta_ms: "By how much more a group of packets was delayed than the one before.", trend: "Slope of the one-way delay.",
  num_deltas: "How many groups the trend is of.", offset: "The Kalman filter's estimate of the delay's change.",
  slope: "The Kalman filter's estimate of one over the capacity.", var_noise: "The Kalman filter's estimate of the jitter's variance.",
  stable_target: "A target with less noise, for decisions that should not flap.", data_limited: "1 while the sender had less to send than allowed.",
  p_loss: "Share of losses that NADA reckons with.", p_mark: "Share of marks that NADA reckons with.",
  receiver_rate: "What Sprout's receiver thinks arrives, in packets a tick.", rate_adjust: "By what SCReAM multiplies the rate so that frames fit.",
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
    return { id: name, title: name.replaceAll("_", " "), names: [name], about: ABOUT[name] ?? `What the controller notes as ${name}; the pages on the controllers say more.`, ...(unit ? { unit } : {}) };
  });
  return [...offered, ...rest];
}

/** Number of topics that are shown before a choice. */
export const TOPICS_AT_FIRST = 3;
