//! What the far end said of the packets that were sent to it: transport-wide feedback and RFC 8888, joined with what
//! was sent; and round trips by receiver reports.

use crate::point::{MILLI, Nanos, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::wire::rtcp::{self, Ccfb, Metric, Packet, Twcc, TwccArrival};
use tidegate_core::wire::{ntp, wrap};
use tidegate_core::{Ecn, Span};

/// What is known of a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Told {
    /// Nothing.
    #[default]
    Nothing,
    /// That it did not arrive.
    Lost,
    /// That it arrived, and when by the far clock, if that was told.
    Arrived(Option<Nanos>, Ecn),
}

/// A datagram of feedback, joined with what was sent before it came.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Feedback {
    /// When it came.
    pub at: Nanos,
    /// For each packet that it tells something of: which one, and what. Packets are told of once as lost and once as
    /// received, whatever is repeated.
    pub packets: Vec<(usize, Told)>,
    /// A round trip by LSR and DLSR.
    pub round_trip: Option<Span>,
    /// The least of the times from sending a packet to this feedback about it.
    pub since_sent: Option<Span>,
    /// A rate that the receiver allows (REMB), bit/s.
    pub remb: Option<u64>,
    /// What receiver reports say of the streams: SSRC, and the block.
    pub blocks: Vec<rtcp::ReportBlock>,
}

/// All that feedback said.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Said {
    /// Of each packet sent.
    pub packets: Vec<Told>,
    /// Datagram by datagram.
    pub feedback: Vec<Feedback>,
    /// Datagrams of RTCP that could not be read.
    pub malformed: usize,
    /// Whether any of it told of single packets.
    pub per_packet: bool,
}

/// Packets older than this are not meant by feedback; their numbers have come round (libwebrtc
/// `TransportFeedbackAdapter::kSendTimeHistoryWindow`).
const MEMORY: Nanos = 60_000 * MILLI;

struct Join<'a> {
    sent: &'a [Rtp],
    said: Said,
    /// The latest packet of each transport-wide number.
    by_transport: Vec<Option<u32>>,
    /// The latest packet of each stream and number.
    by_stream: BTreeMap<(u32, u16), u32>,
    /// When reports were sent, by the middle of their NTP timestamp.
    reports: BTreeMap<u32, Nanos>,
    /// The last reference time, in 64 ms, and the last report timestamp, in 2^-16 s: unwrapped.
    clocks: (Option<i64>, Option<i64>),
}

/// Joins what came (`received`) with what was sent (`sent`, and the reports of `sent_rtcp`), all in the order of time.
#[must_use]
pub fn join(sent: &[Rtp], sent_rtcp: &[Rtcp], received: &[Rtcp]) -> Said {
    let mut join = Join {
        sent,
        said: Said { packets: vec![Told::Nothing; sent.len()], ..Said::default() },
        by_transport: vec![None; 1 << 16],
        by_stream: BTreeMap::new(),
        reports: BTreeMap::new(),
        clocks: (None, None),
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
            Err(_) => join.said.malformed += 1,
        }
    }
    join.said
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
        self.said.feedback.push(feedback);
    }

    fn blocks(&mut self, blocks: &[rtcp::ReportBlock], feedback: &mut Feedback) {
        for block in blocks {
            let sent = self.reports.get(&block.last_sr).filter(|_| block.last_sr != 0);
            let round = sent.map(|&sent| {
                let waited = ntp::span(i64::from(block.delay_since_last_sr));
                Span::from_nanos(feedback.at - sent) - waited
            });
            // stamps of a millisecond can make it negative on short paths
            let round = round.filter(|round| !round.is_negative());
            feedback.round_trip = feedback.round_trip.into_iter().chain(round).min();
            feedback.blocks.push(*block);
        }
    }

    fn twcc(&mut self, twcc: &Twcc, feedback: &mut Feedback) {
        self.said.per_packet = true;
        let near = self.clocks.0.unwrap_or(i64::from(twcc.reference_time));
        let reference = twcc.reference(near);
        self.clocks.0 = Some(reference);
        for (number, arrival) in twcc.arrivals() {
            let told = match arrival {
                TwccArrival::NotReceived => Told::Lost,
                TwccArrival::At(ticks) => {
                    Told::Arrived(Some(Twcc::instant(reference, ticks).as_nanos()), Ecn::NotEct)
                }
                TwccArrival::Untimed => Told::Arrived(None, Ecn::NotEct),
            };
            let index = self.by_transport[usize::from(number)];
            self.tell(index, told, feedback);
        }
    }

    fn ccfb(&mut self, ccfb: &Ccfb, feedback: &mut Feedback) {
        self.said.per_packet = true;
        let near = self.clocks.1.unwrap_or(i64::from(ccfb.report_timestamp));
        let made = wrap::nearest(ccfb.report_timestamp, 32, near);
        self.clocks.1 = Some(made);
        let made = ntp::instant(made).as_nanos();
        for stream in &ccfb.streams {
            let mut number = stream.begin.wrapping_sub(1);
            for metric in &stream.metrics {
                number = number.wrapping_add(1);
                let told = match *metric {
                    Metric::NotReceived => Told::Lost,
                    Metric::Received { ecn, .. } => {
                        Told::Arrived(metric.ago().map(|ago| made - ago.as_nanos()), ecn)
                    }
                };
                let index = self.by_stream.get(&(stream.ssrc, number)).copied();
                self.tell(index, told, feedback);
            }
        }
    }

    fn tell(&mut self, index: Option<u32>, told: Told, feedback: &mut Feedback) {
        let Some(index) = index.map(|index| index as usize) else { return };
        let since = feedback.at - self.sent[index].at;
        let known = &mut self.said.packets[index];
        if since > MEMORY || matches!(*known, Told::Arrived(..)) || *known == told {
            return;
        }
        *known = told;
        if matches!(told, Told::Arrived(Some(_), _)) {
            let since = Span::from_nanos(since);
            feedback.since_sent = Some(feedback.since_sent.map_or(since, |least| least.min(since)));
        }
        feedback.packets.push((index, told));
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
        }
    }

    fn datagram(at: Nanos, packet: Packet) -> Rtcp {
        let mut bytes = Vec::new();
        rtcp::encode(&[packet], &mut bytes).unwrap();
        Rtcp { at, size: bytes.len() as u32 + 28, bytes }
    }

    /// Feedback on packets from transport-wide number `base` on; those that came are told 1 ms apart, from 64 s on.
    fn twcc(at: Nanos, base: u16, came: &[bool]) -> Rtcp {
        let status = |&came: &bool| if came { Status::Received { delta: 4 } } else { Status::NotReceived };
        let packets = came.iter().map(status).collect();
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

    fn came(at: Nanos) -> Told {
        Told::Arrived(Some(at), Ecn::NotEct)
    }

    #[test]
    fn a_number_that_has_come_round_means_the_latest_packet() {
        let sent = [packet(0, 1, 5), packet(SECOND, 2, 5), packet(3 * SECOND, 3, 5)];
        let said = join(&sent, &[], &[twcc(2 * SECOND, 5, &[true])]);
        assert_eq!(said.packets, [Told::Nothing, came(64_001 * MILLI), Told::Nothing]);
        assert_eq!(said.feedback[0].since_sent, Some(Span::from_nanos(SECOND)));
    }

    #[test]
    fn what_was_told_as_lost_may_have_come_but_not_the_other_way_round() {
        let sent = [packet(0, 1, 5), packet(0, 2, 6)];
        let told = [
            twcc(SECOND, 5, &[false, true]),
            twcc(2 * SECOND, 5, &[true, false]),
            twcc(3 * SECOND, 5, &[true, true]),
        ];
        let said = join(&sent, &[], &told);
        assert!(said.packets.iter().all(|told| matches!(told, Told::Arrived(..))), "{said:?}");
        let counts: Vec<usize> = said.feedback.iter().map(|one| one.packets.len()).collect();
        assert_eq!(counts, [2, 1, 0], "each is told of once as lost and once as received");
    }

    #[test]
    fn a_packet_of_over_a_minute_ago_is_not_meant() {
        let said = join(&[packet(0, 1, 5)], &[], &[twcc(61 * SECOND, 5, &[true])]);
        assert_eq!(said.packets, [Told::Nothing]);
        let said = join(&[packet(0, 1, 5)], &[], &[twcc(59 * SECOND, 5, &[true])]);
        assert_eq!(said.packets, [came(64_001 * MILLI)]);
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
        let said = join(
            &[],
            &[datagram(SECOND, Packet::SenderReport(sr))],
            &[datagram(SECOND + 600 * MILLI, Packet::ReceiverReport(rr))],
        );
        assert_eq!(said.feedback[0].round_trip, Some(Span::from_nanos(100 * MILLI)));
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
        let said = join(&sent, &[], &[datagram(SECOND, Packet::Ccfb(ccfb))]);
        let at = |millis: i64, ecn| Told::Arrived(Some(millis * MILLI), ecn);
        assert_eq!(said.packets, [at(2500, Ecn::Ce), Told::Lost, at(3000, Ecn::Ect1)]);
    }
}
