//! Every number and every choice of GCC in one table, with the value each preset gives it.
//!
//! The draft and the shipped implementations differ in many places. Each such place is a setting here,
//! so that a preset is a column of this table and nothing else.

use crate::settings::{Kind, settings, words};

words! {
    /// Which filter turns delay variation into a trend.
    Filter:
    /// Least-squares slope of the smoothed accumulated delay (libwebrtc since 2017).
    Trendline = "trendline",
    /// Kalman filter (the draft, older libwebrtc, aiortc).
    Kalman = "kalman",
}
words! {
    /// What the filter takes for a group.
    Grouping:
    /// What was sent, or delivered, in one burst; in order of arrival.
    Bursts = "bursts",
    /// Each packet by itself; those of a report in order of their numbers.
    Packets = "packets",
}
words! {
    /// To which resolution send times are known.
    SendClock:
    /// As they are.
    Exact = "exact",
    /// Rounded to the 2^-18 s of the abs-send-time header extension.
    AbsSendTime = "abs-send-time",
}
words! {
    /// Which arrival time stands for a group in the detector.
    AdaptClock:
    /// That of the packet that showed the group to be complete.
    Packet = "packet",
    /// That of the group's last packet.
    Group = "group",
}
words! {
    /// How outliers are kept out of the noise estimate.
    Outliers:
    /// Residuals beyond three sigma on either side are clamped.
    BothSides = "both-sides",
    /// Only those above are.
    Above = "above",
}
words! {
    /// What the first rate is.
    StartFrom:
    /// The session's start rate.
    Limits = "limits",
    /// What was received after a while; the start rate until then.
    Throughput = "throughput",
}
words! {
    /// The rate control's first state.
    StartState:
    /// Hold.
    Hold = "hold",
    /// Increase.
    Increase = "increase",
}
words! {
    /// When Decrease ends.
    DecreaseEnds:
    /// With the decrease itself: Hold follows at once.
    AtOnce = "at-once",
    /// When the detector no longer signals over-use.
    WhenOver = "when-over",
}
words! {
    /// How the received rate is measured.
    ReceivedRate:
    /// Packets over a window of 20 to 500 packets without its largest gap, at most the send rate.
    Robust = "robust",
    /// Bits over a sliding window of arrival time.
    Window = "window",
    /// Bayesian estimate over windows of 150 ms (libwebrtc until 2022).
    Bayesian = "bayesian",
}
words! {
    /// Where the loss part hears of losses.
    LossFrom:
    /// Per-packet results.
    Packets = "packets",
    /// Receiver reports.
    ReceiverReports = "receiver-reports",
}
words! {
    /// Over which packets the fraction lost is taken.
    LossOver:
    /// Those reported since the last fraction, for `loss_interval` and at least `loss_packets`.
    Interval = "interval",
    /// The last `loss_packets` that were reported on.
    Packets = "packets",
    /// Those reported on that were sent in the `loss_interval` up to the last one of them.
    Time = "time",
}
words! {
    /// From which rate the loss part increases.
    IncreaseFrom:
    /// The lowest target within the increase interval.
    WindowMinimum = "window-minimum",
    /// The present target, at most once in the increase interval.
    Current = "current",
}

use Kind::{Flag, Number, Whole};

pub(super) const LIBWEBRTC_V1: Settings = preset(0);
pub(super) const DRAFT_02: Settings = preset(1);
pub(super) const AIORTC: Settings = preset(2);
pub(super) const HOANG_2017: Settings = preset(3);

// One setting a block: name, type, unit, what it may be, [libwebrtc-v1, draft-02, aiortc, hoang2017], meaning, source.
settings! {
    // -- pre-filter: packets into groups -------------------------------------------------------------
    grouping: Grouping, "", Grouping::KIND,
        [Grouping::Bursts, Grouping::Bursts, Grouping::Bursts, Grouping::Packets],
        "what the filter takes for a group",
        "draft 5.2; thesis 3.4.3.1: the i-th packet";
    lost_repeat: bool, "", Flag, [false, false, false, true],
        "a lost packet repeats the last delay variation into filter and detector; with bursts after the report's arrivals",
        "thesis 3.4.3.1: is assigned the value of the previous packet; gcc-remb: the receiver half has no lost packets";
    group_length: f64, "ms", Number(0.0, 1000.0), [5.0, 5.0, 5.0, 5.0],
        "packets sent within this of a group's first packet belong to it",
        "draft 5.2 burst_time; libwebrtc kSendTimeGroupLength; aiortc TIMESTAMP_GROUP_LENGTH_MS";
    burst_interval: f64, "ms", Number(0.0, 1000.0), [5.0, 5.0, 5.0, 5.0],
        "a packet that arrives within this of the group's last one, and earlier than it was spaced, belongs to the group",
        "draft 5.2; libwebrtc kBurstDeltaThreshold; aiortc BURST_DELTA_THRESHOLD_MS";
    max_burst: f64, "ms", Number(0.0, 1e6), [100.0, 0.0, 0.0, 0.0],
        "a group grows by bursts for at most this long; 0: without end",
        "libwebrtc kMaxBurstDuration; not in the draft nor in aiortc";
    reordered_reset: u64, "groups", Whole(0, 1000), [3, 3, 0, 0],
        "start anew after this many groups in a row that arrived before their predecessor, and skip those; 0: use them as they are",
        "libwebrtc kReorderedResetThreshold; the draft is silent, libwebrtc's is taken";
    clock_jump_reset: f64, "ms", Number(0.0, 1e6), [3000.0, 3000.0, 3000.0, 0.0],
        "start anew when the far clock advances this much more, or less, than ours did; 0: never",
        "libwebrtc kArrivalTimeOffsetThreshold (more only); the others have none, libwebrtc's is taken";
    stream_timeout: f64, "ms", Number(0.0, 1e6), [2000.0, 2000.0, 0.0, 0.0],
        "start grouping, filter and detector anew after this long without feedback; 0: never",
        "libwebrtc kStreamTimeOut; the draft is silent, libwebrtc's is taken";
    send_clock: SendClock, "", SendClock::KIND, [SendClock::Exact, SendClock::Exact, SendClock::Exact, SendClock::Exact],
        "to which resolution send times are known",
        "transport-wide feedback: exact; aiortc's receive-side estimator: abs-send-time";
    send_unsigned: bool, "", Flag, [false, false, false, false],
        "differences of send times are unsigned, modulo 64 s, and those in a burst rounded to whole milliseconds",
        "aiortc's receive-side estimator: uint32_add, round(); for the send clock abs-send-time only";
    adapt_clock: AdaptClock, "", AdaptClock::KIND, [AdaptClock::Packet, AdaptClock::Group, AdaptClock::Group, AdaptClock::Group],
        "which arrival time stands for a group in trend and threshold",
        "libwebrtc Update(..., arrival_time_ms); draft 5.4 t(i); aiortc's receive-side estimator: packet";

    // -- filter ------------------------------------------------------------------------------------------
    filter: Filter, "", Filter::KIND, [Filter::Trendline, Filter::Kalman, Filter::Kalman, Filter::Kalman],
        "which filter turns delay variation into a trend",
        "libwebrtc TrendlineEstimator; draft 5.3; aiortc OveruseEstimator";
    trend_window: u64, "groups", Whole(2, 1000), [20, 20, 20, 20],
        "the line is fitted to this many groups; no trend before",
        "libwebrtc kDefaultTrendlineWindowSize";
    trend_smoothing: f64, "", Number(0.0, 0.9999), [0.9, 0.9, 0.9, 0.9],
        "weight of the old value in the smoothed delay",
        "libwebrtc kDefaultTrendlineSmoothingCoeff";
    process_noise: f64, "ms^2", Number(1e-12, 1e3), [1e-3, 1e-3, 1e-3, 1e-3],
        "state noise variance q of the Kalman filter",
        "draft 5.3 table 1; aiortc process_noise, second";
    initial_error: f64, "ms^2", Number(1e-12, 1e6), [0.1, 0.1, 0.1, 0.1],
        "first error variance e(0) of the Kalman filter",
        "draft 5.3 table 1; aiortc E, lower right";
    initial_noise: f64, "ms^2", Number(1.0, 1e9), [50.0, 50.0, 50.0, 50.0],
        "first measurement noise variance of the Kalman filter",
        "libwebrtc and aiortc var_noise; not given in the draft";
    noise_weight: f64, "", Number(1e-6, 0.5), [0.01, 0.01, 0.01, 0.01],
        "chi: weight of a new sample in the measurement noise at 30 groups a second",
        "draft 5.3 chi in [0.001, 0.1]; aiortc alpha";
    noise_weight_later: f64, "", Number(1e-6, 0.5), [0.002, 0.01, 0.002, 0.01],
        "chi after 300 groups",
        "aiortc alpha after 10 * 30 deltas; the draft has one chi";
    noise_history: u64, "groups", Whole(1, 1000), [60, 60, 60, 60],
        "K: the shortest send interval of this many groups is 1/f_max",
        "aiortc MIN_FRAME_PERIOD_HISTORY_LENGTH; K is not given in the draft";
    noise_outliers: Outliers, "", Outliers::KIND, [Outliers::BothSides, Outliers::Above, Outliers::BothSides, Outliers::Above],
        "how outliers are kept out of the measurement noise",
        "draft 5.3 (z > 3 sqrt(var_v)); libwebrtc and aiortc abs(residual)";
    noise_when_normal: bool, "", Flag, [true, false, true, false],
        "estimate the measurement noise only while the detector says normal",
        "libwebrtc and aiortc; the draft always does";
    noise_centred: bool, "", Flag, [true, false, true, false],
        "take the noise variance about a running mean of the residual, not about zero",
        "libwebrtc and aiortc avg_noise; draft 5.3 uses z^2";
    size_in_filter: bool, "", Flag, [true, false, true, false],
        "estimate a second state, the delay per byte of group size",
        "libwebrtc and aiortc slope; the draft's filter has one state";
    state_boost: f64, "", Number(0.0, 1000.0), [10.0, 0.0, 10.0, 0.0],
        "this many times q on top while the estimate moves against the detector's verdict",
        "libwebrtc and aiortc; not in the draft";

    // -- over-use detector -----------------------------------------------------------------------------
    threshold_gain: f64, "", Number(1e-3, 1000.0), [4.0, 1.0, 1.0, 1.0],
        "the trend times this is compared with the threshold",
        "libwebrtc kDefaultTrendlineThresholdGain; 1 for a Kalman filter";
    num_deltas_cap: u64, "groups", Whole(1, 1000), [60, 60, 60, 1],
        "... times the number of groups so far, at most this; 1: compare the estimate itself",
        "libwebrtc kMinNumDeltas, aiortc MIN_NUM_DELTAS; draft 5.4 as printed is 1, which needs 12.5 ms a group";
    overuse_time: f64, "ms", Number(0.0, 10_000.0), [10.0, 10.0, 10.0, 0.0],
        "over-use is signalled when it lasted longer than this in send time; 0: at once",
        "draft 5.4 overuse_time_th; libwebrtc kOverUsingTimeThreshold";
    overuse_groups: u64, "groups", Whole(1, 1000), [2, 2, 2, 1],
        "... and for at least so many groups in a row",
        "libwebrtc overuse_counter_ > 1, aiortc; draft 5.4 is silent, libwebrtc's is taken; thesis: at once";
    overuse_latched: bool, "", Flag, [true, false, true, false],
        "over-use, once signalled, stands until the estimate is back below the threshold, and its clock starts anew; false: each group speaks for itself",
        "libwebrtc hypothesis_, aiortc hypothesis; draft 5.4: when m(i) < m(i-1), over-use will not be signaled";
    threshold_start: f64, "ms", Number(0.01, 10_000.0), [12.5, 12.5, 12.5, 12.5],
        "first threshold",
        "draft 5.4 del_var_th(0); libwebrtc threshold_";
    threshold_min: f64, "ms", Number(0.01, 10_000.0), [6.0, 6.0, 6.0, 0.01],
        "lowest threshold", "draft 5.4; libwebrtc SafeClamp";
    threshold_max: f64, "ms", Number(0.01, 100_000.0), [600.0, 600.0, 600.0, 100_000.0],
        "highest threshold", "draft 5.4; libwebrtc SafeClamp";
    k_up: f64, "1/ms", Number(0.0, 1.0), [0.0087, 0.01, 0.0087, 0.01],
        "speed of the threshold towards a trend above it",
        "draft 5.4 K_u; libwebrtc k_up_, aiortc k_up; thesis table 6 (its text has the two the other way round)";
    k_down: f64, "1/ms", Number(0.0, 1.0), [0.039, 0.00018, 0.039, 0.00018],
        "speed of the threshold towards a trend below it",
        "draft 5.4 K_d; libwebrtc k_down_, aiortc k_down";
    threshold_skip: f64, "ms", Number(0.0, 1e6), [15.0, 15.0, 15.0, 1e6],
        "leave the threshold alone when the trend is this far above it",
        "draft 5.4; libwebrtc kMaxAdaptOffsetMs";
    threshold_step: f64, "ms", Number(1.0, 1e9), [100.0, 100.0, 100.0, 1e9],
        "count at most this much time between two groups",
        "libwebrtc kMaxTimeDeltaMs, aiortc; not in the draft, which diverges for gaps over 1/K_u without it";

    // -- received rate ----------------------------------------------------------------------------------
    received_rate: ReceivedRate, "", ReceivedRate::KIND,
        [ReceivedRate::Robust, ReceivedRate::Window, ReceivedRate::Window, ReceivedRate::Window],
        "how the received rate is measured",
        "libwebrtc RobustThroughputEstimator (2023 and later), BitrateEstimator (bayesian, before); draft 5.5 R_hat; aiortc RateCounter";
    received_window: f64, "ms", Number(10.0, 60_000.0), [1000.0, 500.0, 1000.0, 500.0],
        "length of the sliding window, or the least length of the robust one",
        "libwebrtc min_window_duration; draft 5.5 T in 0.5 to 1 s; aiortc RateCounter(1000)";
    received_partial: bool, "", Flag, [true, false, true, false],
        "divide by the part of the sliding window that has passed since the first packet, not by all of it",
        "aiortc active_window_size; draft 5.5 R_hat = sum of L(j) / T";
    robust_longest: f64, "ms", Number(10.0, 600_000.0), [5000.0, 5000.0, 5000.0, 5000.0],
        "greatest length of the robust window", "libwebrtc max_window_duration";
    robust_packets: u64, "packets", Whole(2, 10_000), [20, 20, 20, 20],
        "least content of the robust window once it is full", "libwebrtc window_packets";
    robust_most: u64, "packets", Whole(2, 10_000), [500, 500, 500, 500],
        "greatest content of the robust window", "libwebrtc max_window_packets";
    robust_required: u64, "packets", Whole(2, 10_000), [10, 10, 10, 10],
        "no robust rate before this many packets", "libwebrtc required_packets";

    // -- rate control (AIMD) ----------------------------------------------------------------------------
    update_interval: f64, "ms", Number(0.0, 60_000.0), [0.0, 0.0, 500.0, 0.0],
        "without over-use, update the rate only when the last update is longer ago than this",
        "aiortc feedback_interval; the others update with every report";
    gate_decreases: bool, "", Flag, [true, false, false, false],
        "decrease at most once in a round trip of 10 to 200 ms, or below half the rate; halve while nothing is measured",
        "libwebrtc TimeToReduceFurther, InitialTimeToReduceFurther";
    start_from: StartFrom, "", StartFrom::KIND, [StartFrom::Limits, StartFrom::Limits, StartFrom::Throughput, StartFrom::Limits],
        "what the first rate is",
        "libwebrtc SetStartBitrate; aiortc current_bitrate_initialized";
    start_after: f64, "ms", Number(0.0, 60_000.0), [5000.0, 5000.0, 3000.0, 5000.0],
        "measure for longer than this before starting from throughput",
        "libwebrtc kInitializationTime; aiortc 3000";
    start_by_decrease: bool, "", Flag, [true, true, false, true],
        "let a decrease end the wait for throughput",
        "libwebrtc bitrate_is_initialized_; aiortc goes on waiting, deaf to anything but over-use";
    start_state: StartState, "", StartState::KIND, [StartState::Hold, StartState::Increase, StartState::Hold, StartState::Increase],
        "the rate control's first state",
        "draft 5.5: Increase; libwebrtc and aiortc: Hold";
    decrease_ends: DecreaseEnds, "", DecreaseEnds::KIND,
        [DecreaseEnds::AtOnce, DecreaseEnds::WhenOver, DecreaseEnds::AtOnce, DecreaseEnds::WhenOver],
        "when the state Decrease ends",
        "draft 5.5 table of states; libwebrtc and aiortc go to Hold with the decrease";
    beta: f64, "", Number(0.1, 1.0), [0.85, 0.85, 0.85, 0.95],
        "on over-use the rate becomes this times the received rate",
        "draft 5.5 (0.8 to 0.95); libwebrtc kDefaultBackoffFactor";
    decrease_offset: f64, "bit/s", Number(0.0, 1e6), [5000.0, 0.0, 0.0, 0.0],
        "... less this, where it is less than the result",
        "libwebrtc 2023 and later; not in the draft nor in aiortc";
    decrease_may_raise: bool, "", Flag, [false, false, true, true],
        "let a decrease to beta times the received rate exceed the present rate",
        "aiortc and the draft's formula do; libwebrtc never, and its reading is taken for the draft";
    decrease_by_capacity: bool, "", Flag, [true, false, false, false],
        "where the decrease would exceed the present rate, use beta times the link capacity estimate",
        "libwebrtc AimdRateControl";
    increase_per_second: f64, "", Number(1.0, 4.0), [1.08, 1.08, 1.08, 1.08],
        "growth in a second far from the link capacity",
        "draft 5.5 eta; libwebrtc, aiortc alpha";
    increase_floor: f64, "bit/s", Number(0.0, 1e6), [1000.0, 0.0, 1000.0, 0.0],
        "... but at least this at each update",
        "libwebrtc, aiortc; in draft 5.5 the floor is on the additive increase";
    additive_gain: f64, "", Number(0.001, 100.0), [0.5, 0.5, 1.0, 0.5],
        "packets added in a response time near the link capacity",
        "draft 5.5 alpha = 0.5 * ...; libwebrtc response_time * 2; aiortc 1";
    additive_capped: bool, "", Flag, [false, true, false, true],
        "count at most one response time between two updates",
        "draft 5.5 min(dt / response_time, 1)";
    additive_floor: f64, "bit/s", Number(0.0, 1e6), [0.0, 1000.0, 0.0, 1000.0],
        "add at least this at each update",
        "draft 5.5 max(1000, ...)";
    additive_slope: f64, "bit/s per s", Number(0.0, 1e6), [4000.0, 0.0, 4000.0, 0.0],
        "add at least this in a second",
        "libwebrtc kMinIncreaseRateBpsPerSecond; aiortc 4000";
    response_time: f64, "ms", Number(1.0, 10_000.0), [100.0, 100.0, 100.0, 100.0],
        "the response time is a round trip and this",
        "draft 5.5; libwebrtc; aiortc";
    default_rtt: f64, "ms", Number(1.0, 10_000.0), [200.0, 200.0, 200.0, 200.0],
        "the round trip before it is measured",
        "libwebrtc kDefaultRtt; aiortc rtt (never measured there)";
    measure_rtt: bool, "", Flag, [true, true, false, true],
        "use measured round trips",
        "aiortc keeps its default for ever";
    bound_factor: f64, "", Number(0.0, 100.0), [1.5, 1.5, 1.5, 0.0],
        "never increase beyond this times the received rate; 0: no bound",
        "draft 5.5 A_hat < 1.5 R_hat; libwebrtc increase_limit; aiortc; not in the thesis";
    bound_offset: f64, "bit/s", Number(0.0, 1e6), [10_000.0, 0.0, 10_000.0, 0.0],
        "... and this",
        "libwebrtc, aiortc; not in the draft";
    capacity_weight: f64, "", Number(1e-4, 1.0), [0.05, 0.05, 0.05, 0.05],
        "weight of the received rate at a decrease in the link capacity estimate",
        "libwebrtc LinkCapacityEstimator, aiortc; draft 5.5 smoothing factor 0.95, read as the weight of the old value";
    whole_rates: bool, "", Flag, [false, false, true, false],
        "round every rate to whole bit/s where aiortc does",
        "aiortc int() and round()";

    // -- loss part ----------------------------------------------------------------------------------------
    loss_part: bool, "", Flag, [true, true, false, true],
        "whether losses limit the rate",
        "draft 6; libwebrtc SendSideBandwidthEstimation; aiortc has none";
    loss_from: LossFrom, "", LossFrom::KIND, [LossFrom::Packets, LossFrom::Packets, LossFrom::Packets, LossFrom::Packets],
        "where the loss part hears of losses",
        "draft 3 (a) and (b); libwebrtc PacketFeedbackOnly or OnTransportLossReport";
    loss_over: LossOver, "", LossOver::KIND,
        [LossOver::Interval, LossOver::Interval, LossOver::Interval, LossOver::Packets],
        "over which packets the fraction lost is taken",
        "draft and libwebrtc: since the last fraction; thesis 3.4.3.1: the last RTCP_limit packets; thesis table 6: a time window T";
    late_after: f64, "ms", Number(0.0, 1e6), [0.0, 0.0, 0.0, 0.0],
        "a packet with this much more delay than the least so far is late, and counts as lost; 0: none is late",
        "thesis 3.4.2: status 2, arriving late (neither threshold nor use is given)";
    loss_interval: f64, "ms", Number(0.0, 60_000.0), [1000.0, 1000.0, 1000.0, 500.0],
        "losses are summed up this long, or the length of the window of time",
        "libwebrtc kLossUpdateInterval; draft 3 (b) at least once every second; thesis table 6: T";
    loss_packets: u64, "packets", Whole(1, 10_000), [20, 1, 20, 100],
        "... and until this many packets were reported on, or the length of the window of packets",
        "libwebrtc kLimitNumPackets; not in the draft; thesis RTCP_limit (no value is given)";
    loss_in_256ths: bool, "", Flag, [true, false, true, false],
        "round the fraction lost down to 1/256, as in a receiver report",
        "libwebrtc last_fraction_loss_; RFC 3550 6.4.1";
    loss_low: f64, "", Number(0.0, 1.0), [0.02, 0.02, 0.02, 0.02],
        "increase at a fraction lost up to this",
        "draft 6; libwebrtc kDefaultLowLossThreshold";
    loss_low_held: bool, "", Flag, [false, false, false, true],
        "hold, rather than increase, at exactly that fraction",
        "thesis 2.2.2.4: hold from 0.02 on; libwebrtc <=, and its reading is taken for the draft's: less than 2 %";
    loss_high: f64, "", Number(0.0, 1.0), [0.1, 0.1, 0.1, 0.1],
        "decrease at a fraction lost above this",
        "draft 6; libwebrtc kDefaultHighLossThreshold";
    loss_increase: f64, "", Number(1.0, 4.0), [1.08, 1.05, 1.08, 1.05],
        "factor of an increase",
        "draft 6: 1.05; libwebrtc: 1.08";
    loss_increase_offset: f64, "bit/s", Number(0.0, 1e6), [1000.0, 0.0, 1000.0, 1000.0],
        "... and this much more",
        "libwebrtc, against getting stuck at low rates";
    loss_increase_from: IncreaseFrom, "", IncreaseFrom::KIND,
        [IncreaseFrom::WindowMinimum, IncreaseFrom::Current, IncreaseFrom::WindowMinimum, IncreaseFrom::Current],
        "from which rate the loss part increases",
        "libwebrtc min_bitrate_history_; draft 6 As_hat(i-1)";
    loss_increase_interval: f64, "ms", Number(0.0, 60_000.0), [1000.0, 1000.0, 1000.0, 0.0],
        "length of that window, or least time between two increases; 0: one for each fraction",
        "libwebrtc kBweIncreaseInterval; draft: none, its receiver-report interval is taken";
    loss_decrease: f64, "", Number(0.0, 1.0), [0.5, 0.5, 0.5, 0.5],
        "a decrease is to 1 less this times the fraction lost",
        "draft 6; libwebrtc (512 - loss) / 512";
    loss_decrease_interval: f64, "ms", Number(0.0, 60_000.0), [300.0, 300.0, 300.0, 0.0],
        "least time between two decreases, and a round trip; 0: one for each fraction",
        "libwebrtc kBweDecreaseInterval; draft: none, libwebrtc's is taken";
    loss_stale: f64, "ms", Number(0.0, 1e6), [6000.0, 6000.0, 6000.0, 6000.0],
        "a fraction lost is not acted upon when it is older than this",
        "libwebrtc 1.2 * kMaxRtcpFeedbackInterval; not in the draft";
    loss_bounded: bool, "", Flag, [true, true, true, false],
        "the loss-based rate never exceeds the delay-based one",
        "libwebrtc delay_based_limit_; thesis 3.4.3.1: As and Ar each by itself, the lower one counts";
    start_phase: f64, "ms", Number(0.0, 60_000.0), [2000.0, 0.0, 2000.0, 0.0],
        "follow the delay-based rate upwards for this long while nothing is lost",
        "libwebrtc kStartPhase; not in the draft";

    // -- silence and output ----------------------------------------------------------------------------
    silence_limit: f64, "ms", Number(0.0, 1e6), [3000.0, 3000.0, 0.0, 0.0],
        "back off when packets go out this long (and a round trip less) after the last feedback; 0: never",
        "libwebrtc RttBasedBackoff limit; the draft is silent, libwebrtc's is taken; aiortc has none";
    silence_factor: f64, "", Number(0.0, 1.0), [0.8, 0.8, 0.8, 0.8],
        "factor of a back-off", "libwebrtc RttBasedBackoff fraction";
    silence_interval: f64, "ms", Number(1.0, 60_000.0), [1000.0, 1000.0, 1000.0, 1000.0],
        "time between two back-offs", "libwebrtc RttBasedBackoff interval";
    silence_floor: f64, "bit/s", Number(0.0, 1e9), [5000.0, 5000.0, 5000.0, 5000.0],
        "never back off below this", "libwebrtc RttBasedBackoff floor";
    remb_interval: f64, "ms", Number(0.0, 60_000.0), [1000.0, 1000.0, 0.0, 1000.0],
        "gcc-remb: a REMB at least this often while packets arrive; 0: one with each update of the rate",
        "draft 3 (b): at least once every second; aiortc: each update";
    remb_least: f64, "bit/s", Number(1.0, 1e9), [5000.0, 5000.0, 1.0, 5000.0],
        "gcc-remb: the receiver's estimate is never less, which does not know the session's limits",
        "libwebrtc AimdRateControl min_configured_bitrate_; aiortc has none, but zero would lift the limit";
    remb_drop: f64, "", Number(0.0, 1.0), [0.03, 0.03, 0.03, 0.03],
        "gcc-remb: ... and at once when the rate is less than the last one said by more than this part of it",
        "draft 3 (b): as soon as congestion is detected; libwebrtc vie_remb kSendThresholdPercent 97, RembThrottler 103";
    pacing_factor: f64, "", Number(1.0, 100.0), [2.5, 1.0, 1.0, 1.0],
        "the pacer may send this times the target",
        "libwebrtc kDefaultPaceMultiplier; draft 4: the target";
}
