//! Joins feedback (transport-wide feedback and RFC 8888) with the packets that it reports on, and takes round trips
//! from receiver reports.

use crate::point::{MILLI, Nanos, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::wire::rtcp::{self, Ccfb, Metric, Packet, Twcc, TwccArrival};
use tidegate_core::wire::{ntp, wrap};
use tidegate_core::{Ecn, Span};

/// The report on a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outcome {
    /// No feedback mentions it.
    #[default]
    Unreported,
    /// It did not arrive.
    Lost,
    /// It arrived; with the time on the far clock, if the feedback has it, and its ECN field.
    Arrived(Option<Nanos>, Ecn),
}

/// A datagram of RTCP, joined with the packets sent before it arrived.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Feedback {
    /// Time of its arrival.
    pub at: Nanos,
    /// Index and outcome of each packet that it has news of. A packet is reported at most once as lost and once as
    /// received; repetitions are dropped.
    pub packets: Vec<(usize, Outcome)>,
    /// Round trip by LSR and DLSR; the minimum of its report blocks.
    pub round_trip: Option<Span>,
    /// Minimum time from sending a packet to this feedback about it.
    pub since_sent: Option<Span>,
    /// Rate that the receiver allows (REMB), bit/s.
    pub remb: Option<u64>,
    /// Report blocks of its sender and receiver reports.
    pub blocks: Vec<rtcp::ReportBlock>,
}

/// All feedback of a direction.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FeedbackHistory {
    /// Outcome of each packet sent.
    pub outcomes: Vec<Outcome>,
    /// The datagrams of RTCP, in the order of time.
    pub feedback: Vec<Feedback>,
    /// Number of RTCP datagrams that could not be read.
    pub malformed: usize,
    /// Whether any feedback reports on single packets.
    pub per_packet: bool,
}

/// Age beyond which feedback cannot mean a packet, since its sequence number has been used again (libwebrtc
/// `TransportFeedbackAdapter`).
const SEND_TIME_HISTORY_WINDOW: Nanos = 60_000 * MILLI;

struct Join<'a> {
    sent: &'a [Rtp],
    history: FeedbackHistory,
    /// Index of the latest packet with each transport-wide sequence number.
    by_transport: Vec<Option<u32>>,
    /// Index of the latest packet with each SSRC and sequence number.
    by_stream: BTreeMap<(u32, u16), u32>,
    /// Times of sender reports, by the middle 32 bits of their NTP timestamp.
    reports: BTreeMap<u32, Nanos>,
    /// Last reference time (transport-wide feedback) in units of 64 ms, unwrapped.
    last_reference: Option<i64>,
    /// Last report timestamp (RFC 8888) in 2^-16 s, unwrapped.
    last_report: Option<i64>,
}

/// Joins the RTCP received with the packets sent (`sent`) and the sender reports in `sent_rtcp`, all in the order of
/// time.
#[must_use]
pub fn join(sent: &[Rtp], sent_rtcp: &[Rtcp], received: &[Rtcp]) -> FeedbackHistory {
    let mut join = Join {
        sent,
        history: FeedbackHistory {
            outcomes: vec![Outcome::Unreported; sent.len()],
            ..FeedbackHistory::default()
        },
        by_transport: vec![None; 1 << 16],
        by_stream: BTreeMap::new(),
        reports: BTreeMap::new(),
        last_reference: None,
        last_report: None,
    };
    let (mut packets, mut reports) = (sent.iter().enumerate().peekable(), sent_rtcp.iter().peekable());
    for datagram in received {
        while let Some((index, packet)) = packets.next_if(|(_, packet)| packet.at <= datagram.at) {
            if let Some(number) = packet.transport_sequence {
                join.by_transport[usize::from(number)] = Some(index as u32);
            }
            join.by_stream.insert((packet.ssrc, packet.sequence), index as u32);
        }
        while let Some(report) = reports.next_if(|report| report.at <= datagram.at) {
            for packet in rtcp::decode(&report.bytes).unwrap_or_default() {
                if let Packet::SenderReport(sr) = packet {
                    join.reports.insert(sr.middle(), report.at);
                }
            }
        }
        match rtcp::decode(&datagram.bytes) {
            Ok(packets) => join.datagram(datagram.at, &packets),
            Err(_) => join.history.malformed += 1,
        }
    }
    join.history
}

impl Join<'_> {
    fn datagram(&mut self, at: Nanos, packets: &[Packet]) {
        let mut feedback = Feedback { at, ..Feedback::default() };
        for packet in packets {
            match packet {
                Packet::Twcc(twcc) => self.twcc(twcc, &mut feedback),
                Packet::Ccfb(ccfb) => self.ccfb(ccfb, &mut feedback),
                Packet::SenderReport(report) => self.blocks(&report.blocks, &mut feedback),
                Packet::ReceiverReport(report) => self.blocks(&report.blocks, &mut feedback),
                Packet::Remb(remb) => feedback.remb = Some(remb.bitrate.as_bps()),
                _ => (),
            }
        }
        self.history.feedback.push(feedback);
    }

    fn blocks(&mut self, blocks: &[rtcp::ReportBlock], feedback: &mut Feedback) {
        for block in blocks {
            let sent = self.reports.get(&block.last_sr).filter(|_| block.last_sr != 0);
            let round_trip = sent.map(|&sent| {
                let waited = ntp::span(i64::from(block.delay_since_last_sr));
                Span::from_nanos(feedback.at - sent) - waited
            });
            // on short paths, times in whole milliseconds can make it negative
            let round_trip = round_trip.filter(|round_trip| !round_trip.is_negative());
            feedback.round_trip = feedback.round_trip.into_iter().chain(round_trip).min();
            feedback.blocks.push(*block);
        }
    }

    fn twcc(&mut self, twcc: &Twcc, feedback: &mut Feedback) {
        self.history.per_packet = true;
        let near = self.last_reference.unwrap_or(i64::from(twcc.reference_time));
        let reference = twcc.reference(near);
        self.last_reference = Some(reference);
        for (number, arrival) in twcc.arrivals() {
            let outcome = match arrival {
                TwccArrival::NotReceived => Outcome::Lost,
                TwccArrival::At(ticks) => {
                    Outcome::Arrived(Some(Twcc::instant(reference, ticks).as_nanos()), Ecn::NotEct)
                }
                TwccArrival::Untimed => Outcome::Arrived(None, Ecn::NotEct),
            };
            let index = self.by_transport[usize::from(number)];
            self.set_outcome(index, outcome, feedback);
        }
    }

    fn ccfb(&mut self, ccfb: &Ccfb, feedback: &mut Feedback) {
        self.history.per_packet = true;
        let near = self.last_report.unwrap_or(i64::from(ccfb.report_timestamp));
        let report_timestamp = wrap::nearest(ccfb.report_timestamp, 32, near);
        self.last_report = Some(report_timestamp);
        let report_time = ntp::instant(report_timestamp).as_nanos();
        for stream in &ccfb.streams {
            let mut number = stream.begin.wrapping_sub(1);
            for metric in &stream.metrics {
                number = number.wrapping_add(1);
                let outcome = match *metric {
                    Metric::NotReceived => Outcome::Lost,
                    Metric::Received { ecn, .. } => {
                        Outcome::Arrived(metric.ago().map(|ago| report_time - ago.as_nanos()), ecn)
                    }
                };
                let index = self.by_stream.get(&(stream.ssrc, number)).copied();
                self.set_outcome(index, outcome, feedback);
            }
        }
    }

    /// Stores the outcome of a packet, unless it is too old, reported as received before, or the outcome is no news.
    fn set_outcome(&mut self, index: Option<u32>, outcome: Outcome, feedback: &mut Feedback) {
        let Some(index) = index.map(|index| index as usize) else { return };
        let age = feedback.at - self.sent[index].at;
        let previous = &mut self.history.outcomes[index];
        if age > SEND_TIME_HISTORY_WINDOW || matches!(*previous, Outcome::Arrived(..)) || *previous == outcome
        {
            return;
        }
        *previous = outcome;
        if matches!(outcome, Outcome::Arrived(Some(_), _)) {
            let age = Span::from_nanos(age);
            feedback.since_sent = Some(feedback.since_sent.map_or(age, |least| least.min(age)));
        }
        feedback.packets.push((index, outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::wire::rtcp::{ReceiverReport, ReportBlock, SenderReport, Status, StreamMetrics};

    const SECOND: Nanos = 1_000 * MILLI;

    fn packet(at: Nanos, sequence: u16, transport: u16) -> Rtp {
        Rtp {
            at,
            ssrc: 7,
            timestamp: 0,
            size: 1200,
            abs_send_time: None,
            sequence,
            transport_sequence: Some(transport),
            payload_type: 96,
            marker: false,
            padding: false,
            path: 0,
        }
    }

    fn datagram(at: Nanos, packet: Packet) -> Rtcp {
        let mut bytes = Vec::new();
        rtcp::encode(&[packet], &mut bytes).unwrap();
        Rtcp { at, size: bytes.len() as u32 + 28, bytes }
    }

    /// Feedback on packets from transport-wide number `base` on. The packets received arrived 1 ms apart, from 64 s on.
    fn twcc(at: Nanos, base: u16, received: &[bool]) -> Rtcp {
        let status =
            |&received: &bool| if received { Status::Received { delta: 4 } } else { Status::NotReceived };
        let packets = received.iter().map(status).collect();
        let twcc = Twcc {
            sender_ssrc: 1,
            media_ssrc: 7,
            base_sequence: base,
            reference_time: 1000,
            feedback_count: 0,
            packets,
        };
        datagram(at, Packet::Twcc(twcc))
    }

    fn arrived(time: Nanos) -> Outcome {
        Outcome::Arrived(Some(time), Ecn::NotEct)
    }

    #[test]
    fn a_number_that_has_come_round_means_the_latest_packet() {
        let sent = [packet(0, 1, 5), packet(SECOND, 2, 5), packet(3 * SECOND, 3, 5)];
        let history = join(&sent, &[], &[twcc(2 * SECOND, 5, &[true])]);
        assert_eq!(history.outcomes, [Outcome::Unreported, arrived(64_001 * MILLI), Outcome::Unreported]);
        assert_eq!(history.feedback[0].since_sent, Some(Span::from_nanos(SECOND)));
    }

    #[test]
    fn a_lost_packet_may_still_arrive_but_not_the_other_way_round() {
        let sent = [packet(0, 1, 5), packet(0, 2, 6)];
        let received = [
            twcc(SECOND, 5, &[false, true]),
            twcc(2 * SECOND, 5, &[true, false]),
            twcc(3 * SECOND, 5, &[true, true]),
        ];
        let history = join(&sent, &[], &received);
        assert!(
            history.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Arrived(..))),
            "{history:?}"
        );
        let counts: Vec<usize> = history.feedback.iter().map(|feedback| feedback.packets.len()).collect();
        assert_eq!(counts, [2, 1, 0], "each is reported once as lost and once as received");
    }

    #[test]
    fn feedback_does_not_mean_a_packet_of_over_a_minute_ago() {
        let history = join(&[packet(0, 1, 5)], &[], &[twcc(61 * SECOND, 5, &[true])]);
        assert_eq!(history.outcomes, [Outcome::Unreported]);
        let history = join(&[packet(0, 1, 5)], &[], &[twcc(59 * SECOND, 5, &[true])]);
        assert_eq!(history.outcomes, [arrived(64_001 * MILLI)]);
    }

    #[test]
    fn a_round_trip_is_without_what_the_receiver_waited() {
        let ntp = 0x1234_5678_8000_0000;
        let sr = SenderReport {
            ssrc: 7,
            ntp,
            rtp_timestamp: 0,
            packet_count: 0,
            octet_count: 0,
            blocks: vec![],
            extension: vec![],
        };
        let last_sr = sr.middle();
        let block = ReportBlock {
            ssrc: 7,
            fraction_lost: 0,
            cumulative_lost: 0,
            highest_sequence: 1,
            jitter: 0,
            last_sr,
            delay_since_last_sr: 1 << 15,
        };
        let rr = ReceiverReport { ssrc: 1, blocks: vec![block], extension: vec![] };
        let history = join(
            &[],
            &[datagram(SECOND, Packet::SenderReport(sr))],
            &[datagram(SECOND + 600 * MILLI, Packet::ReceiverReport(rr))],
        );
        assert_eq!(history.feedback[0].round_trip, Some(Span::from_nanos(100 * MILLI)));
    }

    #[test]
    fn rfc_8888_counts_back_from_its_report_and_up_from_its_first_number() {
        let sent = [packet(0, 10, 1), packet(0, 11, 2), packet(0, 12, 3)];
        // ATO in 2^-10 s: 512 is half a second before the report at 3 s
        let metrics = vec![
            Metric::Received { ecn: Ecn::Ce, offset: 512 },
            Metric::NotReceived,
            Metric::Received { ecn: Ecn::Ect1, offset: 0 },
        ];
        let ccfb = Ccfb {
            sender_ssrc: 1,
            streams: vec![StreamMetrics { ssrc: 7, begin: 10, metrics }],
            report_timestamp: 3 << 16,
        };
        let history = join(&sent, &[], &[datagram(SECOND, Packet::Ccfb(ccfb))]);
        let arrived = |millis: i64, ecn| Outcome::Arrived(Some(millis * MILLI), ecn);
        assert_eq!(history.outcomes, [arrived(2500, Ecn::Ce), Outcome::Lost, arrived(3000, Ecn::Ect1)]);
    }
}
