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
