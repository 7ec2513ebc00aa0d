//! ECN counters of a receiver, and their reports (RFC 6679 section 5).

use super::feedback::LoggedPacket;
use tidegate_core::Ecn;
use tidegate_core::wire::rtcp::{EcnCounters, EcnFeedback, ExtendedReport, Packet, ReportExtension};

/// Offset of sequence numbers in the log, which keeps them from being negative.
const AHEAD: i64 = 1 << 16;

/// Counters of one stream.
#[derive(Debug, Default)]
struct Tally {
    ssrc: u32,
    /// The first and the highest sequence number.
    range: Option<(i64, i64)>,
    received: [u32; 4],
    /// Packets received, duplicates not included.
    unique: u32,
    duplicated: u32,
    /// Whether feedback is due at once.
    news: bool,
}

impl Tally {
    /// Counts a packet; returns whether feedback on it is due at once: on each mark, and on the first ECN-capable
    /// packet, which shows that the path lets it pass (section 7.2.1).
    fn packet(&mut self, packet: &LoggedPacket) -> bool {
        let sequence = packet.rtp_sequence;
        let (first, highest) = self.range.unwrap_or((sequence, sequence));
        self.range = Some((first, highest.max(sequence)));
        let capable = |received: &[u32; 4]| received[Ecn::Ect0 as usize] + received[Ecn::Ect1 as usize] > 0;
        let before = capable(&self.received);
        self.received[packet.ecn as usize] = self.received[packet.ecn as usize].wrapping_add(1);
        *if packet.first { &mut self.unique } else { &mut self.duplicated } += 1;
        let news = packet.ecn == Ecn::Ce || capable(&self.received) != before;
        self.news |= news;
        news
    }

    fn counters(&self) -> Option<(u32, EcnCounters)> {
        let (first, highest) = self.range?;
        let lost = highest - first + 1 - i64::from(self.unique);
        let count = |ecn: Ecn| self.received[ecn as usize];
        let counters = EcnCounters {
            ect0: count(Ecn::Ect0),
            ect1: count(Ecn::Ect1),
            ce: count(Ecn::Ce) as u16,
            not_ect: count(Ecn::NotEct) as u16,
            lost: lost.max(0) as u16,
            duplicated: self.duplicated as u16,
        };
        Some(((highest - AHEAD) as u32, counters))
    }
}

/// The ECN counters of a receiver.
#[derive(Debug)]
pub(super) struct EcnLog {
    streams: Vec<Tally>,
}

impl EcnLog {
    pub(super) fn new(ssrcs: &[u32]) -> Self {
        Self { streams: ssrcs.iter().map(|&ssrc| Tally { ssrc, ..Tally::default() }).collect() }
    }

    /// Counts a packet; returns whether feedback on it is due at once.
    pub(super) fn packet(&mut self, packet: &LoggedPacket) -> bool {
        self.streams.get_mut(packet.stream).is_some_and(|tally| tally.packet(packet))
    }

    /// The feedback that is due.
    pub(super) fn take(&mut self, sender_ssrc: u32) -> impl Iterator<Item = Packet> + '_ {
        self.streams.iter_mut().filter_map(move |tally| {
            std::mem::take(&mut tally.news).then_some(())?;
            let (highest_sequence, counters) = tally.counters()?;
            let media_ssrc = tally.ssrc;
            Some(Packet::EcnFeedback(EcnFeedback { sender_ssrc, media_ssrc, highest_sequence, counters }))
        })
    }

    /// The summary that goes with each regular report, also before any packet has come.
    pub(super) fn summary(&self, ssrc: u32) -> Packet {
        let counters = |tally: &Tally| tally.counters().map(|(_, counters)| (tally.ssrc, counters));
        let summary = self.streams.iter().filter_map(counters).collect();
        Packet::ExtendedReport(ExtendedReport { ssrc, blocks: vec![ReportExtension::EcnSummary(summary)] })
    }
}
