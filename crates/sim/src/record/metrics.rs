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
        "Name of the flow."
        flow: String;
        "Kind of the flow: `media`, `udp` or `tcp`."
        kind: &'static str;
        "Label of the flow's controller, TCP algorithm or UDP pattern."
        controller: String;
        "Time at which the flow starts, in seconds."
        start_s: f64;
        "Time at which the flow ends, in seconds: its own stop, or the end of the run."
        stop_s: f64;
        "Bits put on the wire per second while the flow ran, headers included (RFC 8868 section 3, metric 1)."
        sending_rate_bps: Metric => "sending rate", "Mbit/s", neither, 1e-06, 2;
        "Bits that arrived per second while the flow ran, headers included (RFC 8868 section 3, metric 1)."
        receive_rate_bps: Metric => "receive rate", "Mbit/s", higher, 1e-06, 2, 1;
        "Bits of useful payload per second while the flow ran: first copies of media, TCP data in order (RFC 8868 \
         section 3)."
        goodput_bps: Metric => "goodput", "Mbit/s", higher, 1e-06, 2;
        "Packets put on the wire, without feedback."
        packets_sent: u64 => "packets sent", "", neither, 1.0, 0;
        "Packets that arrived after the warm-up, whenever they were sent."
        packets_received: u64 => "packets received", "", higher, 1.0, 0;
        "Bytes put on the wire, headers included."
        bytes_sent: u64 => "bytes sent", "MB", neither, 1e-06, 2;
        "Bytes that arrived, headers included."
        bytes_received: u64 => "bytes received", "MB", higher, 1e-06, 2;
        "Share of lost packets among the packets sent after the warm-up whose fate is known (RFC 8868 section 3, \
         metric 5)."
        loss_fraction: Metric => "loss", "%", lower, 100.0, 2, 3;
        "Share of audio and video packets that were lost or late and not repaired in time for playout, among those \
         sent after the warm-up whose fate is known. Lost packets of padding and repair do not count."
        residual_loss_fraction: Metric => "residual loss", "%", lower, 100.0, 3;
        "Ratio of the bytes of retransmissions and parity to the bytes of audio and video put on the wire."
        repair_overhead: Metric => "repair overhead", "%", lower, 100.0, 2;
        "RTCP packets with a Generic NACK (RFC 4585) from the receiver."
        nacks: Option<u64> => "retransmission requests", "packets", neither, 1.0, 0;
        "Packets sent in the retransmission stream (RFC 4588)."
        retransmissions: Option<u64> => "retransmitted", "packets", neither, 1.0, 0;
        "Lost packets of video that a retransmission replaced in time for playout."
        repaired_resent: Option<u64> => "repaired by retransmission", "packets", neither, 1.0, 0;
        "Lost packets of video that parity restored in time for playout."
        repaired_parity: Option<u64> => "repaired by parity", "packets", neither, 1.0, 0;
        "RTCP packets with a picture loss indication from the receiver."
        plis: Option<u64> => "key frame requests", "packets", neither, 1.0, 0;
        "Captured video frames that are coded without reference to an earlier frame."
        key_frames: Option<u64> => "key frames", "", neither, 1.0, 0;
        "Switches of the video to another step of `adaptation`: to another resolution, frame rate, or both. None \
         without `adaptation`."
        video_switches: Option<u64> => "switches of resolution or frame rate", "", neither, 1.0, 0;
        "Mean height of the encoded pictures, over captured video frames. None without `adaptation`."
        video_height_mean: Metric => "mean height of pictures", "pixels", higher, 1.0, 0;
        "Packets that a queue dropped because it was full or because its discipline decided so."
        lost_queue: u64 => "lost in queues", "packets", lower, 1.0, 0;
        "Packets lost to a link's loss model."
        lost_wire: u64 => "lost on the wire", "packets", neither, 1.0, 0;
        "Packets that a queue marked with congestion experienced (ECN) instead of dropping them; for a link all \
         packets, feedback included."
        marked: u64 => "marked by queues", "packets", neither, 1.0, 0;
        "Packets that arrived after the deadline of their frame (RFC 8868 section 3, metric 5). An adaptive playout \
         shows late video all the same."
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
        "Maximum of the time that media packets waited at their sender, from capture to departure, where one-way \
         delay begins."
        sender_delay_ms_max: Metric => "delay at the sender, maximum", "ms", lower, 1.0, 1;
        "Frames of video and audio that were not sent, because media of more than `queue_limit` waited at the sender."
        sender_skipped_frames: Option<u64> => "frames skipped at the sender", "frames", lower, 1.0, 0;
        "Encoded bytes of the frames that were skipped at the sender."
        sender_skipped_bytes: Option<u64> => "bytes skipped at the sender", "kB", lower, 0.001, 1;
        "Pictures that were not encoded, because the controller's congestion window was full (libwebrtc's pushback by \
         frames), because the media waiting at the sender would have taken more than 2 s to leave, or because the \
         encoder left them out to hold its rate."
        left_out_frames: Option<u64> => "pictures not encoded", "frames", lower, 1.0, 0;
        "Time in which the target was below the lowest rates of the sources, those of audio and of the encoder (`min`), \
         headers included."
        below_least_s: Metric => "target below the lowest rates", "s", lower, 1.0, 1;
        "Maximum of the time that media packets waited at their sender which were captured and left while the target was \
         below the lowest rates of the sources and they had to wait for it, behind none that was encoded at an earlier rate."
        below_least_wait_ms_max: Metric => "delay at the sender below the lowest rates, maximum", "ms", lower, 1.0, 0;
        "Result of the sender's check of ECN on the path (RFC 6679 sections 7.2.1 and 7.4), with `ecn_initiation`: \
         `verified`, or the reason for which the sender uses no ECN codepoint: `unreported`, `cleared`, `dropped`."
        ecn_check: Option<String> => "check of ECN", "", neither, 1.0, 1;
        "Invalid feedback that the sender ignored: about streams or packets that it never sent, marks on packets \
         without an ECN codepoint, bytes that are not RTCP. No controller receives it."
        feedback_refused: Option<u64> => "feedback refused", "", neither, 1.0, 0;
        "The first circuit breaker that tripped (RFC 8083): `RTCP timeout`, `media timeout`, `congestion` or `media \
         usability`; none if no circuit breaker tripped."
        circuit_breaker: Option<String> => "circuit breaker", "", neither, 1.0, 1;
        "Simulated time at which the circuit breaker tripped. The sender stopped then (`circuit_breaker` = \
         `act`), or should have stopped."
        circuit_breaker_s: Metric => "circuit breaker trips at", "s", neither, 1.0, 1;
        "Whether the sender stopped when the circuit breaker tripped."
        circuit_breaker_stopped: Option<bool>;
        "Mean of the time from departure to arrival, over packets that arrived (RFC 8868 section 3, \
         metric 4)."
        one_way_delay_ms_mean: Metric => "one-way delay, mean", "ms", lower, 1.0, 1;
        "Standard deviation of the time from departure to arrival, over packets that arrived (RFC 8868 \
         section 3, metric 4)."
        one_way_delay_ms_std: Metric => "one-way delay, standard deviation", "ms", lower, 1.0, 1;
        "Minimum of the time from departure to arrival, over packets that arrived (RFC 8868 section 3, metric 4)."
        one_way_delay_ms_min: Metric => "one-way delay, minimum", "ms", lower, 1.0, 1;
        "Median of the time from departure to arrival, over packets that arrived (RFC 8868 section 3, \
         metric 4)."
        one_way_delay_ms_p50: Metric => "one-way delay, median", "ms", lower, 1.0, 1;
        "95th percentile of the time from departure to arrival, over packets that arrived (RFC 8868 \
         section 3, metric 4)."
        one_way_delay_ms_p95: Metric => "one-way delay, 95th percentile", "ms", lower, 1.0, 1, 4;
        "99th percentile of the time from departure to arrival, over packets that arrived (RFC 8868 \
         section 3, metric 4)."
        one_way_delay_ms_p99: Metric => "one-way delay, 99th percentile", "ms", lower, 1.0, 1;
        "Maximum of the time from departure to arrival, over packets that arrived (RFC 8868 section 3, metric 4)."
        one_way_delay_ms_max: Metric => "one-way delay, maximum", "ms", lower, 1.0, 1;
        "Mean interarrival jitter (RFC 3550 section 6.4.1) of the packets, by their times of departure."
        jitter_ms_mean: Metric => "jitter, mean", "ms", lower, 1.0, 2;
        "Maximum of the interarrival jitter (RFC 3550 section 6.4.1) of the packets, by their times of departure."
        jitter_ms_max: Metric => "jitter, maximum", "ms", lower, 1.0, 2;
        "Mean interarrival jitter (RFC 3550 section 6.4.1) of audio and video packets, by their RTP timestamps: it \
         includes waiting at the sender and the spread of a frame's packets."
        media_jitter_ms_mean: Metric => "jitter by RTP timestamps, mean", "ms", lower, 1.0, 2;
        "Maximum of the interarrival jitter (RFC 3550 section 6.4.1) of audio and video packets, by their RTP \
         timestamps: it includes waiting at the sender and the spread of a frame's packets."
        media_jitter_ms_max: Metric => "jitter by RTP timestamps, maximum", "ms", lower, 1.0, 2;
        "`met` if loss is at most 1 %, mean latency at most 150 ms and mean jitter at most 30 ms (Vardhan and Reddy, \
         section 3); otherwise the limits exceeded: loss, delay, jitter. Media that waits or is skipped at the sender \
         counts."
        quality: Option<String> => "loss, delay and jitter within limits", "", neither, 1.0, 1;
        "`met` if loss, one-way delay and jitter from departure to arrival are within the limits of `quality`; \
         otherwise the limits exceeded."
        quality_network: Option<String> => "loss, delay and jitter within limits, network alone", "", neither, 1.0, 1;
        "Rating R of the audio by the E-model (ITU-T G.107, default values) as G.711 with the concealment of its \
         appendix I, from the mean time from capture to playout and the share of audio frames that were not played \
         out."
        r_factor: Metric => "rating R", "", higher, 1.0, 1;
        "Mean opinion score for the rating R, 1 to 4.5 (G.107 annex B)."
        mos: Metric => "MOS", "", higher, 1.0, 2;
        "Mean opinion score for G.711 without packet loss concealment (Bpl = 4.3 instead of 25.1, ITU-T G.113 \
         appendix I)."
        mos_without_plc: Metric => "MOS without concealment", "", higher, 1.0, 2;
        "Mean of the time that packets waited in queues, without the time of their transmission."
        queueing_delay_ms_mean: Metric => "queueing delay, mean", "ms", lower, 1.0, 1, 5;
        "Median of the time that packets waited in queues, without the time of their transmission."
        queueing_delay_ms_p50: Metric => "queueing delay, median", "ms", lower, 1.0, 1;
        "95th percentile of the time that packets waited in queues, without the time of their transmission."
        queueing_delay_ms_p95: Metric => "queueing delay, 95th percentile", "ms", lower, 1.0, 1;
        "99th percentile of the time that packets waited in queues, without the time of their transmission."
        queueing_delay_ms_p99: Metric => "queueing delay, 99th percentile", "ms", lower, 1.0, 1;
        "Maximum of the time that packets waited in queues, without the time of their transmission."
        queueing_delay_ms_max: Metric => "queueing delay, maximum", "ms", lower, 1.0, 1;
        "Mean of the time from capture to rendering, over captured pictures (RFC 8869 section 2.3). A picture that \
         is never shown counts until a later one is shown, or until the end."
        frame_delay_ms_mean: Metric => "frame delay, mean", "ms", lower, 1.0, 1;
        "Median of the time from capture to rendering, over captured pictures (RFC 8869 section 2.3). A picture that \
         is never shown counts until a later one is shown, or until the end."
        frame_delay_ms_p50: Metric => "frame delay, median", "ms", lower, 1.0, 1;
        "95th percentile of the time from capture to rendering, over captured pictures (RFC 8869 section 2.3). A picture that \
         is never shown counts until a later one is shown, or until the end."
        frame_delay_ms_p95: Metric => "frame delay, 95th percentile", "ms", lower, 1.0, 1, 6;
        "99th percentile of the time from capture to rendering, over captured pictures (RFC 8869 section 2.3). A picture that \
         is never shown counts until a later one is shown, or until the end."
        frame_delay_ms_p99: Metric => "frame delay, 99th percentile", "ms", lower, 1.0, 1;
        "Maximum of the time from capture to rendering, over captured pictures (RFC 8869 section 2.3). A picture that \
         is never shown counts until a later one is shown, or until the end."
        frame_delay_ms_max: Metric => "frame delay, maximum", "ms", lower, 1.0, 1;
        "Median of the time from capture to rendering, over captured pictures, if each frame that is whole in time could be \
         decoded: the measure for flows whose losses are not repaired. A picture whose frame is not whole counts until a later \
         one is shown, or until the end."
        whole_frame_delay_ms_p50: Metric => "delay of whole frames, median", "ms", lower, 1.0, 1;
        "Video frames captured."
        frames_sent: Option<u64> => "frames sent", "", neither, 1.0, 0;
        "Video frames shown. A frame is shown if it is complete in time and can be decoded."
        frames_rendered: Option<u64> => "frames rendered", "", higher, 1.0, 0;
        "Time without a new picture: total length of all stretches, from the first capture to the flow's end, in which \
         none is shown for more than max(3 intervals, an interval + 150 ms) of the source. Only pictures that can be \
         decoded are shown. Time in which the source is off does not count."
        without_picture_s: Metric => "time without a new picture", "s", lower, 1.0, 2, 7;
        "Freezes as a browser counts them (W3C webrtc-stats, freezeCount): intervals between shown frames of at least \
         max(3 x mean, mean + 150 ms) of the last 30 intervals. The time after the last shown frame does not count."
        freezes: Option<u64> => "freezes", "", lower, 1.0, 1;
        "Total duration of the freezes, as a browser counts them (W3C webrtc-stats, totalFreezesDuration)."
        freeze_time_s: Metric => "time frozen", "s", lower, 1.0, 2;
        "Bits of RTCP or bare acknowledgements per second while the flow ran, headers included."
        feedback_rate_bps: Metric => "feedback rate", "kbit/s", lower, 0.001, 1;
        "Ratio of feedback bytes to the bytes that arrived (RFC 8867 section 4)."
        feedback_overhead: Metric => "feedback overhead", "%", lower, 100.0, 2;
        "Ratio of the receive rate to the mean capacity of the tightest link on the flow's path while the flow ran \
         (RFC 8868 section 3, metric 10, averaged)."
        utilisation: Metric => "utilisation", "%", higher, 100.0, 1, 2;
        "Time from the flow's start to the first of five successive seconds whose receive rate is within 10 % of the \
         flow's final share: the mean of the last fifth of its time (RFC 8868 section 3, metric 8, which leaves the \
         rule open)."
        convergence_time_s: Metric => "convergence time", "s", lower, 1.0, 1;
        "Full swings per second of the receive rate (averaged over each second) from 20 % below its mean to 20 % \
         above it and back (RFC 8868 section 3, metric 9 with the sending rate, which leaves the watermarks open)."
        oscillation_hz: Metric => "oscillation", "1/s", lower, 1.0, 3;
        "Mean of the controller's target, over time, while the flow ran and did not pause. A target is the rate \
         that the controller allows, up to `max_rate`, whatever the encoder makes of it."
        target_rate_bps: Metric => "target rate", "Mbit/s", neither, 1e-06, 2;
        "Mean of the rate available to the flow, over the time of its target. Available in each 200 ms is the \
         least, of the links on the path, of the mean capacity less the rate of flows that do not adapt (UDP, audio \
         alone, packets of a constant rate, controllers without feedback), divided by the number of flows that \
         share the link, the flow itself included: media while they run and do not pause, TCP while the last second \
         has a packet. None without a limit, with a radio network, and beside programs or flows of a driver."
        available_rate_bps: Metric => "available rate", "Mbit/s", neither, 1e-06, 2;
        "Mean of what the target exceeds the available rate by, zero where it does not, relative to the mean \
         available rate."
        target_excess_fraction: Metric => "target excess", "%", lower, 100.0, 1;
        "Mean of what the target falls short of the available rate by, zero where it does not, relative to the mean \
         available rate."
        target_shortfall_fraction: Metric => "target shortfall", "%", lower, 100.0, 1;
        "Share of the time in which the target is more than 10 % over the available rate."
        target_over_fraction: Metric => "time with the target over", "%", lower, 100.0, 1;
        "Share of the time in which the target is more than 10 % under the available rate."
        target_under_fraction: Metric => "time with the target under", "%", lower, 100.0, 1;
        "Changes of the available rate by more than 10 % since the last one, the flow's start and the ends of its \
         pauses included. Changes within 5 s of the next one, or of the end, do not count."
        available_rate_changes: Option<u64> => "changes of the available rate", "", neither, 1.0, 0;
        "Changes of the available rate after which the target did not converge before the next one, or the end."
        target_unconverged: Option<u64> => "changes without convergence", "", lower, 1.0, 0;
        "Mean time from a change of the available rate until the target is within 10 % of the available rate and \
         stays so for 5 s. A change without convergence counts with the time to the next one, or to the end. None \
         without a change."
        target_convergence_s: Metric => "convergence time of the target", "s", lower, 1.0, 1;
    }
}

rows! {
    /// The metrics of one link.
    #[derive(Clone, Debug, Serialize)]
    pub struct LinkSummary, LINKS {
        "Name of the link."
        link: String;
        "Mean capacity of the link."
        capacity_bps: Metric => "capacity", "Mbit/s", neither, 1e-06, 2;
        "Bits that the link carried per second."
        carried_bps: f64 => "carried", "Mbit/s", higher, 1e-06, 2;
        "Ratio of the bits carried to the capacity of the link."
        utilisation: Metric;
        "Packets that the link's queue dropped because it was full or because its discipline decided so, feedback \
         included."
        dropped_queue: u64 => "dropped by the queue", "packets", lower, 1.0, 0;
        "Packets lost by the link itself, feedback included."
        dropped_wire: u64 => "lost on the wire", "packets", neither, 1.0, 0;
        "Packets that the link's queue marked with congestion experienced (ECN), feedback included."
        marked: u64;
        "Packets whose ECN field the link cleared, because its path does not support ECN."
        bleached: u64 => "ECN fields cleared", "packets", neither, 1.0, 0;
    }
}

rows! {
    /// Fairness of the flows on the link that is crossed by the largest number of them (RFC 8868 section 3, metric 7).
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Fairness, FAIRNESS {
        "Names of the flows compared."
        flows: Vec<String>;
        "Mean of Jain's fairness index (Jain, Chiu, Hawe 1984) of the flows' bytes in intervals of 1 s: 1 if all are \
         equal, 1/n if one of n flows has all (RFC 8868 section 3, metric 7)."
        jain_1s: Metric => "Jain's index, 1 s", "", higher, 1.0, 3;
        "Mean of Jain's fairness index (Jain, Chiu, Hawe 1984) of the flows' bytes in intervals of 5 s: 1 if all are \
         equal, 1/n if one of n flows has all (RFC 8868 section 3, metric 7)."
        jain_5s: Metric => "Jain's index, 5 s", "", higher, 1.0, 3;
        "Mean of Jain's fairness index (Jain, Chiu, Hawe 1984) of the flows' bytes in intervals of 20 s: 1 if all are \
         equal, 1/n if one of n flows has all (RFC 8868 section 3, metric 7)."
        jain_20s: Metric => "Jain's index, 20 s", "", higher, 1.0, 3;
        "Mean ratio of the smallest to the largest of the flows' bytes in intervals of 1 s. RFC 8868 section 3, \
         metric 7 requires at least 0.333."
        ratio_1s: Metric => "smallest share / largest, 1 s", "", higher, 1.0, 3;
        "Mean ratio of the smallest to the largest of the flows' bytes in intervals of 5 s. RFC 8868 section 3, \
         metric 7 requires at least 0.333."
        ratio_5s: Metric => "smallest share / largest, 5 s", "", higher, 1.0, 3;
        "Mean ratio of the smallest to the largest of the flows' bytes in intervals of 20 s. RFC 8868 section 3, \
         metric 7 requires at least 0.333."
        ratio_20s: Metric => "smallest share / largest, 20 s", "", higher, 1.0, 3;
    }
}

rows! {
    /// The metrics of one member.
    #[derive(Clone, Debug, Serialize)]
    pub struct MemberSummary, MEMBERS {
        "Flow of the member: `SESSION.MEMBER`."
        flow: String;
        "Name of the member in the session."
        member: String;
        "RTP profile of the member: `avp` or `avpf`."
        profile: String;
        "RTCP packets that the member sent."
        rtcp_packets: u64;
        "RTCP bits that the member sent per second, IP and UDP headers included."
        rtcp_bps: Option<f64>;
        "Share of the session bandwidth that the member used for RTCP, IP and UDP headers included; all members \
         together may use 5 % (RFC 3550 section 6.2)."
        rtcp_share: Option<f64> => "RTCP share", "%", neither, 100.0, 3;
        "Losses that the member detected and whose report is decided: the sum of `reported_early`, `reported_regular`, \
         `suppressed` and `not_allowed`."
        losses: u64 => "losses", "", lower, 1.0, 0;
        "Losses reported in early packets (RFC 4585 section 3.5.2)."
        reported_early: u64 => "reported early", "", neither, 1.0, 0;
        "Losses reported in regular RTCP packets."
        reported_regular: u64 => "reported in regular RTCP", "", neither, 1.0, 0;
        "Losses not reported, because another member had reported them (RFC 4585 section 3.5.2)."
        suppressed: u64 => "suppressed", "", neither, 1.0, 0;
        "Losses not reported, because the report would have been later than max_feedback_delay (RFC 4585 section \
         3.5.2)."
        not_allowed: u64 => "not allowed", "", lower, 1.0, 0;
        "Mean time from the detection of a loss to the departure of its report, over the reports sent."
        waiting_ms_mean: Option<f64> => "waiting time", "ms", lower, 1.0, 1;
        "95th percentile of the waiting time, as in `waiting_ms_mean`."
        waiting_ms_p95: Option<f64>;
        "Maximum of the waiting time, as in `waiting_ms_mean`."
        waiting_ms_max: Option<f64>;
        "Losses of the member's own packets that were reported to the member."
        losses_heard: u64;
        "Mean time from the departure of a packet of the member to the first report of its loss."
        loss_report_delay_ms_mean: Option<f64> => "loss report delay", "ms", lower, 1.0, 1;
        "95th percentile of the loss report delay, as in `loss_report_delay_ms_mean`."
        loss_report_delay_ms_p95: Option<f64>;
        "Losses whose damage was repaired."
        recovered: u64;
        "Mean time from the detection of a lost segment to a segment that was coded after the report of the loss \
         (NEWPRED)."
        recovery_ms_mean: Option<f64> => "recovery time", "ms", lower, 1.0, 1;
        "95th percentile of the recovery time, as in `recovery_ms_mean`."
        recovery_ms_p95: Option<f64>;
    }
}
