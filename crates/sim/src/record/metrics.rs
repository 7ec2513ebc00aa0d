//! Definitions of the numbers of a summary: one row for each, from which the summary itself, Python, reports and
//! reference pages are made. Beside its row a metric needs only the expression that computes it.

use serde::Serialize;

/// A metric; `None` (null) where it has no meaning for the flow.
pub type Metric = Option<f64>;

/// A number of a summary, and its presentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Its key in the summary, with the unit as suffix.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// The unit in which it is shown.
    pub unit: &'static str,
    /// The better direction: `higher`, `lower` or `neither`.
    pub better: &'static str,
    /// Its definition, with the source.
    pub definition: &'static str,
    /// Factor that converts a value to `unit`.
    pub scale: f64,
    /// Digits after the point.
    pub digits: u8,
    /// Its position among the metrics that comparisons show, from 1; 0: not shown.
    pub headline: u8,
}

/// A part of the summary: `"definition" key: type => label, unit, better, scale, digits[, place in comparisons];`.
/// Fields without a row are names and numbers that tables do not show.
macro_rules! rows {
    ($(#[$about:meta])* pub struct $part:ident, $rows:ident { $(
        $definition:literal
        $field:ident: $type:ty
            $(=> $label:literal, $unit:literal, $better:ident, $scale:literal, $digits:literal $(, $place:literal)?)?;
    )* }) => {
        $(#[$about])*
        pub struct $part {
            $(#[doc = $definition] pub $field: $type,)*
        }

        #[doc = concat!("The rows of [`", stringify!($part), "`].")]
        pub const $rows: &[Row] = &[$($(Row {
            name: stringify!($field),
            label: $label,
            unit: $unit,
            better: stringify!($better),
            definition: $definition,
            scale: $scale,
            digits: $digits,
            headline: 0 $(+ $place)?,
        },)?)*];
    };
}

rows! {
    /// The metrics of one flow. Rates in bit/s count bytes on the wire, headers included.
    #[derive(Clone, Debug, Serialize)]
    pub struct FlowSummary, FLOWS {
        "Its name."
        flow: String;
        "`media`, `udp` or `tcp`."
        kind: &'static str;
        "Label of its controller, TCP algorithm or UDP pattern."
        controller: String;
        "Time of its beginning, in seconds."
        start_s: f64;
        "Time of its end, in seconds: its own stop, or the end of the run."
        stop_s: f64;
        "Bytes put on the wire over the flow's time, headers included (RFC 8868 section 3, metric 1)."
        sending_rate_bps: Metric => "sending rate", "Mbit/s", neither, 1e-06, 2;
        "Bytes that arrived over the flow's time, headers included (RFC 8868 section 3, metric 1)."
        receive_rate_bps: Metric => "receive rate", "Mbit/s", higher, 1e-06, 2, 1;
        "Useful payload bytes over the flow's time: first copies of media, TCP in order (RFC 8868 section \
         3)."
        goodput_bps: Metric => "goodput", "Mbit/s", higher, 1e-06, 2;
        "Packets put on the wire, feedback left out."
        packets_sent: u64 => "packets sent", "", neither, 1.0, 0;
        "Packets that arrived after the warm-up, whenever they were sent."
        packets_received: u64 => "packets received", "", higher, 1.0, 0;
        "Bytes put on the wire, headers included."
        bytes_sent: u64 => "bytes sent", "MB", neither, 1e-06, 2;
        "Bytes that arrived, headers included."
        bytes_received: u64 => "bytes received", "MB", higher, 1e-06, 2;
        "Packets lost over packets whose fate is known, of those sent after the warm-up (RFC 8868 section \
         3, metric 5)."
        loss_fraction: Metric => "loss", "%", lower, 100.0, 2, 3;
        "Packets of audio and video that were lost or late and not repaired in time for playout, over \
         those whose fate is known, of those sent after the warm-up. Lost packets of padding and repair \
         do not count."
        residual_loss_fraction: Metric => "residual loss", "%", lower, 100.0, 3;
        "Bytes of retransmissions and parity over bytes of audio and video, as they were put on the wire."
        repair_overhead: Metric => "repair overhead", "%", lower, 100.0, 2;
        "RTCP packets with a Generic NACK (RFC 4585), from the receiver."
        nacks: Option<u64> => "requests of packets", "packets", neither, 1.0, 0;
        "Packets of the retransmission stream (RFC 4588) sent."
        retransmissions: Option<u64> => "sent once more", "packets", neither, 1.0, 0;
        "Lost packets of video that a retransmission replaced in time for playout."
        repaired_resent: Option<u64> => "repaired by retransmission", "packets", neither, 1.0, 0;
        "Lost packets of video that parity restored in time for playout."
        repaired_parity: Option<u64> => "repaired by parity", "packets", neither, 1.0, 0;
        "RTCP packets with a picture loss indication, from the receiver."
        plis: Option<u64> => "requests of key frames", "packets", neither, 1.0, 0;
        "Video frames that need no earlier one, as captured."
        key_frames: Option<u64> => "key frames", "", neither, 1.0, 0;
        "Packets that a queue dropped, because it was full or by its discipline."
        lost_queue: u64 => "lost in queues", "packets", lower, 1.0, 0;
        "Packets lost to a link's loss model."
        lost_wire: u64 => "lost on the wire", "packets", neither, 1.0, 0;
        "Packets that a queue marked with congestion experienced (ECN) instead of dropping them; for a link all \
         packets, including feedback."
        marked: u64 => "marked by queues", "packets", neither, 1.0, 0;
        "Packets that came too late for playout (RFC 8868 section 3, metric 5)."
        discarded_late: u64 => "discarded late", "packets", lower, 1.0, 0;
        "Mean of the time that media packets waited at their sender, from capture to departure, where one-way \
         delay begins."
        sender_delay_ms_mean: Metric => "delay at the sender, mean", "ms", lower, 1.0, 1;
        "Median of the time that media packets waited at their sender, from capture to departure, where one-way \
         delay begins."
        sender_delay_ms_p50: Metric => "delay at the sender, median", "ms", lower, 1.0, 1;
        "95th percentile of the time that media packets waited at their sender, from capture to departure, where \
         one-way delay begins."
        sender_delay_ms_p95: Metric => "delay at the sender, 95th percentile", "ms", lower, 1.0, 1;
        "99th percentile of the time that media packets waited at their sender, from capture to departure, where \
         one-way delay begins."
        sender_delay_ms_p99: Metric => "delay at the sender, 99th percentile", "ms", lower, 1.0, 1;
        "Largest time that media packets waited at their sender, from capture to departure, where one-way \
         delay begins."
        sender_delay_ms_max: Metric => "delay at the sender, largest", "ms", lower, 1.0, 1;
        "Frames of video and audio that were not sent, because more than `queue_limit` waited at the \
         sender."
        sender_skipped_frames: Option<u64> => "skipped at the sender", "frames", lower, 1.0, 0;
        "Encoded bytes of those frames."
        sender_skipped_bytes: Option<u64> => "bytes skipped at the sender", "kB", lower, 0.001, 1;
        "Pictures that were not encoded, because the controller's congestion window was full (libwebrtc's pushback by \
         frames), or because the media waiting at the sender would have taken more than 2 s to leave."
        left_out_frames: Option<u64> => "left out by the encoder", "frames", lower, 1.0, 0;
        "Result of the sender's check of ECN on its path (RFC 6679 sections 7.2.1 and 7.4), with `ecn_initiation`: \
         `verified`, or the reason for which it sends without a codepoint: `unreported`, `cleared`, `dropped`."
        ecn_check: Option<String> => "ECN on the path", "", neither, 1.0, 1;
        "Invalid feedback that the sender refused: about streams or packets that it never sent, marks on packets \
         without an ECN codepoint, bytes that are not RTCP. No controller receives it."
        feedback_refused: Option<u64> => "feedback refused", "", neither, 1.0, 0;
        "The first circuit breaker that tripped (RFC 8083): `RTCP timeout`, `media timeout`, `congestion` or `media \
         usability`; none if none tripped."
        circuit_breaker: Option<String> => "circuit breaker", "", neither, 1.0, 1;
        "Simulated time at which it tripped: the sender stopped then, or would have stopped if `circuit_breaker` \
         said so."
        circuit_breaker_s: Metric => "circuit breaker trips at", "s", neither, 1.0, 1;
        "Whether the sender stopped then."
        circuit_breaker_stopped: Option<bool>;
        "Mean of the time from departure to arrival, over packets that arrived (RFC 8868 section 3, \
         metric 4)."
        one_way_delay_ms_mean: Metric => "one-way delay, mean", "ms", lower, 1.0, 1;
        "Standard deviation of the time from departure to arrival, over packets that arrived (RFC 8868 \
         section 3, metric 4)."
        one_way_delay_ms_std: Metric => "one-way delay, standard deviation", "ms", lower, 1.0, 1;
        "Smallest time from departure to arrival, over packets that arrived (RFC 8868 section 3, \
         metric 4)."
        one_way_delay_ms_min: Metric => "one-way delay, least", "ms", lower, 1.0, 1;
        "Median of the time from departure to arrival, over packets that arrived (RFC 8868 section 3, \
         metric 4)."
        one_way_delay_ms_p50: Metric => "one-way delay, median", "ms", lower, 1.0, 1;
        "95th percentile of the time from departure to arrival, over packets that arrived (RFC 8868 \
         section 3, metric 4)."
        one_way_delay_ms_p95: Metric => "one-way delay, 95th percentile", "ms", lower, 1.0, 1, 4;
        "99th percentile of the time from departure to arrival, over packets that arrived (RFC 8868 \
         section 3, metric 4)."
        one_way_delay_ms_p99: Metric => "one-way delay, 99th percentile", "ms", lower, 1.0, 1;
        "Largest time from departure to arrival, over packets that arrived (RFC 8868 section 3, \
         metric 4)."
        one_way_delay_ms_max: Metric => "one-way delay, largest", "ms", lower, 1.0, 1;
        "Mean interarrival jitter (RFC 3550 section 6.4.1) over packets, by their times of \
         departure."
        jitter_ms_mean: Metric => "jitter, mean", "ms", lower, 1.0, 2;
        "Largest interarrival jitter (RFC 3550 section 6.4.1) over packets, by their times of \
         departure."
        jitter_ms_max: Metric => "jitter, largest", "ms", lower, 1.0, 2;
        "Mean interarrival jitter (RFC 3550 section 6.4.1) over packets of audio and video, each by its \
         RTP timestamps: waiting at the sender, and the spread of a frame's packets, are included."
        media_jitter_ms_mean: Metric => "jitter from capture, mean", "ms", lower, 1.0, 2;
        "Largest interarrival jitter (RFC 3550 section 6.4.1) over packets of audio and video, each by its \
         RTP timestamps: waiting at the sender, and the spread of a frame's packets, are included."
        media_jitter_ms_max: Metric => "jitter from capture, largest", "ms", lower, 1.0, 2;
        "`met` where loss is at most 1 %, mean latency at most 150 ms and mean jitter at most 30 ms \
         (Vardhan and Reddy, section 3), else the exceeded ones: loss, delay, jitter. Includes media that waits \
         or is skipped at the sender."
        quality: Option<String> => "fit for a call", "", neither, 1.0, 1;
        "The same from departure to arrival: loss, one-way delay and jitter."
        quality_network: Option<String> => "fit for a call, network alone", "", neither, 1.0, 1;
        "R of the audio by the E-model (ITU-T G.107, default values) as G.711 with the concealment of its \
         appendix I, from the mean time from capture to playout and the share of audio frames that were \
         not played out."
        r_factor: Metric => "rating R", "", higher, 1.0, 1;
        "Mean opinion score of that rating, 1 to 4.5 (G.107 annex B)."
        mos: Metric => "MOS", "", higher, 1.0, 2;
        "The same for G.711 without packet loss concealment (Bpl = 4.3 instead of 25.1, ITU-T G.113 \
         appendix I)."
        mos_without_plc: Metric => "MOS without concealment", "", higher, 1.0, 2;
        "Mean of the time that packets waited in queues, their own transmission left out."
        queueing_delay_ms_mean: Metric => "queueing delay, mean", "ms", lower, 1.0, 1, 5;
        "Median of the time that packets waited in queues, their own transmission left out."
        queueing_delay_ms_p50: Metric => "queueing delay, median", "ms", lower, 1.0, 1;
        "95th percentile of the time that packets waited in queues, their own transmission left out."
        queueing_delay_ms_p95: Metric => "queueing delay, 95th percentile", "ms", lower, 1.0, 1;
        "99th percentile of the time that packets waited in queues, their own transmission left out."
        queueing_delay_ms_p99: Metric => "queueing delay, 99th percentile", "ms", lower, 1.0, 1;
        "Largest time that packets waited in queues, their own transmission left out."
        queueing_delay_ms_max: Metric => "queueing delay, largest", "ms", lower, 1.0, 1;
        "Mean of the time from capture to rendering of video frames (RFC 8869 section 2.3)."
        frame_delay_ms_mean: Metric => "frame delay, mean", "ms", lower, 1.0, 1;
        "Median of the time from capture to rendering of video frames (RFC 8869 section 2.3)."
        frame_delay_ms_p50: Metric => "frame delay, median", "ms", lower, 1.0, 1;
        "95th percentile of the time from capture to rendering of video frames (RFC 8869 section 2.3)."
        frame_delay_ms_p95: Metric => "frame delay, 95th percentile", "ms", lower, 1.0, 1, 6;
        "99th percentile of the time from capture to rendering of video frames (RFC 8869 section 2.3)."
        frame_delay_ms_p99: Metric => "frame delay, 99th percentile", "ms", lower, 1.0, 1;
        "Largest time from capture to rendering of video frames (RFC 8869 section 2.3)."
        frame_delay_ms_max: Metric => "frame delay, largest", "ms", lower, 1.0, 1;
        "Video frames captured."
        frames_sent: Option<u64> => "frames sent", "", neither, 1.0, 0;
        "Video frames shown."
        frames_rendered: Option<u64> => "frames rendered", "", higher, 1.0, 0;
        "Gaps between rendered frames above max(3 x mean gap, mean gap + 150 ms) (W3C webrtc-stats), the end included; \
         and no picture in the first second or longer."
        freezes: Option<u64> => "freezes", "", lower, 1.0, 1;
        "Total length of the freezes (W3C webrtc-stats, totalFreezesDuration), of a late first picture and of an early \
         last one."
        freeze_time_s: Metric => "time frozen", "s", lower, 1.0, 2, 7;
        "Bytes of RTCP or bare acknowledgements over the flow's time, headers included."
        feedback_rate_bps: Metric => "feedback rate", "kbit/s", lower, 0.001, 1;
        "Feedback bytes over bytes that arrived (RFC 8867 section 4)."
        feedback_overhead: Metric => "feedback overhead", "%", lower, 100.0, 2;
        "Receive rate over the mean capacity, in the same time, of the tightest link on the flow's path \
         (RFC 8868 section 3, metric 10, averaged)."
        utilisation: Metric => "utilisation", "%", higher, 100.0, 1, 2;
        "From the flow's start to the first second from which five in a row are within 10 % of its final \
         share, the mean of its last fifth (RFC 8868 section 3, metric 8, which leaves the rule open)."
        convergence_time_s: Metric => "convergence time", "s", lower, 1.0, 1;
        "Full swings of the receive rate, by seconds, between 20 % under and 20 % over its mean, a second \
         (RFC 8868 section 3, metric 9 with the sending rate, which leaves the watermarks open)."
        oscillation_hz: Metric => "oscillation", "1/s", lower, 1.0, 3;
    }
}

rows! {
    /// The metrics of one link.
    #[derive(Clone, Debug, Serialize)]
    pub struct LinkSummary, LINKS {
        "Its name."
        link: String;
        "Mean capacity of the link."
        capacity_bps: Metric => "capacity", "Mbit/s", neither, 1e-06, 2;
        "Bytes that the link carried over the time."
        carried_bps: f64 => "carried", "Mbit/s", higher, 1e-06, 2;
        "Carried over capacity."
        utilisation: Metric;
        "All packets that the queue dropped, because it was full or by its discipline, including feedback."
        dropped_queue: u64 => "dropped by the queue", "packets", lower, 1.0, 0;
        "All packets lost by the link itself, including feedback."
        dropped_wire: u64 => "lost on the wire", "packets", neither, 1.0, 0;
        "All packets that its queue marked with congestion experienced (ECN), including feedback."
        marked: u64;
        "All packets whose ECN field it cleared, because its path does not support ECN."
        bleached: u64 => "ECN fields cleared", "packets", neither, 1.0, 0;
    }
}

rows! {
    /// Fairness of the flows on the link that is crossed by the largest number of them (RFC 8868 section 3, metric 7).
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Fairness, FAIRNESS {
        "The flows compared."
        flows: Vec<String>;
        "Jain's fairness index (Jain, Chiu, Hawe 1984) of the flows' bytes in windows of 1 s, mean: 1 is \
         equal, 1/n means that one flow has all (RFC 8868 section 3, metric 7)."
        jain_1s: Metric => "Jain's index over 1 s", "", higher, 1.0, 3;
        "Jain's fairness index (Jain, Chiu, Hawe 1984) of the flows' bytes in windows of 5 s, mean: 1 is \
         equal, 1/n means that one flow has all (RFC 8868 section 3, metric 7)."
        jain_5s: Metric => "Jain's index over 5 s", "", higher, 1.0, 3;
        "Jain's fairness index (Jain, Chiu, Hawe 1984) of the flows' bytes in windows of 20 s, mean: 1 is \
         equal, 1/n means that one flow has all (RFC 8868 section 3, metric 7)."
        jain_20s: Metric => "Jain's index over 20 s", "", higher, 1.0, 3;
        "Smallest divided by largest of the flows' bytes in windows of 1 s, mean; RFC 8868 section 3, metric 7 \
         requires at least 0.333."
        ratio_1s: Metric => "least over largest share, 1 s", "", higher, 1.0, 3;
        "Smallest divided by largest of the flows' bytes in windows of 5 s, mean; RFC 8868 section 3, metric 7 \
         requires at least 0.333."
        ratio_5s: Metric => "least over largest share, 5 s", "", higher, 1.0, 3;
        "Smallest divided by largest of the flows' bytes in windows of 20 s, mean; RFC 8868 section 3, metric 7 \
         requires at least 0.333."
        ratio_20s: Metric => "least over largest share, 20 s", "", higher, 1.0, 3;
    }
}

rows! {
    /// The metrics of one member.
    #[derive(Clone, Debug, Serialize)]
    pub struct MemberSummary, MEMBERS {
        "Its flow: `SESSION.MEMBER`."
        flow: String;
        "Its name in the session."
        member: String;
        "`avp` or `avpf`."
        profile: String;
        "RTCP packets that it sent."
        rtcp_packets: u64;
        "RTCP bytes that it sent over time, IP and UDP headers included."
        rtcp_bps: Option<f64>;
        "RTCP that the member sent, IP and UDP headers included, over the session bandwidth, of which all \
         members together may use 5 % (RFC 3550 section 6.2)."
        rtcp_share: Option<f64> => "RTCP", "%", neither, 100.0, 3;
        "Lost packets that the member detected, and for whose report the outcome is known."
        losses: u64 => "losses", "", lower, 1.0, 0;
        "Losses reported in early packets (RFC 4585 section 3.5.2)."
        reported_early: u64 => "reported early", "", neither, 1.0, 0;
        "Losses reported in regular RTCP packets."
        reported_regular: u64 => "reported regularly", "", neither, 1.0, 0;
        "Losses not reported, because another member had (RFC 4585 section 3.5.2)."
        suppressed: u64 => "suppressed", "", neither, 1.0, 0;
        "Losses not reported, because that would have been later than max_feedback_delay (RFC 4585 section \
         3.5.2)."
        not_allowed: u64 => "not allowed", "", lower, 1.0, 0;
        "Mean time from the detection of a loss to sending the report, of the reports sent."
        waiting_ms_mean: Option<f64> => "waiting", "ms", lower, 1.0, 1;
        "95th percentile of the waiting time, as in `waiting_ms_mean`."
        waiting_ms_p95: Option<f64>;
        "Largest waiting time, as in `waiting_ms_mean`."
        waiting_ms_max: Option<f64>;
        "Losses of its own packets that were reported to it."
        losses_heard: u64;
        "Of packets that the member sent: mean time from sending to the first report of a loss."
        loss_report_delay_ms_mean: Option<f64> => "loss report delay", "ms", lower, 1.0, 1;
        "95th percentile of the loss report delay, as in `loss_report_delay_ms_mean`."
        loss_report_delay_ms_p95: Option<f64>;
        "Losses whose damage was repaired."
        recovered: u64;
        "NEWPRED: mean time from the detection of a lost segment to one that was coded after the loss was \
         reported."
        recovery_ms_mean: Option<f64> => "recovery", "ms", lower, 1.0, 1;
        "95th percentile of the time of recovery, as in `recovery_ms_mean`."
        recovery_ms_p95: Option<f64>;
    }
}
