//! Retransmission: the packets that a sender keeps to answer requests.

use crate::packetizer::Queued;
use std::collections::VecDeque;
use tidegate_core::wire::wrap;
use tidegate_core::{Span, Time};

/// Bytes of the original sequence number before the payload (RFC 4588 section 4).
pub(crate) const OSN: u16 = 2;
/// Packets that are kept at most: a quarter of the range of 16-bit sequence numbers.
const PACKETS_MAX: usize = 1 << 14;
/// Round trip that is assumed until one is measured (libwebrtc).
const DEFAULT_RTT: Span = Span::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct KeptPacket {
    sent: Time,
    packet: Queued,
    /// When it was retransmitted last; [`Time::MAX`] while the retransmission is queued.
    resent: Option<Time>,
}

/// The latest packets of a stream, kept for retransmission.
#[derive(Debug)]
pub(crate) struct Resend {
    keep: Span,
    packets: VecDeque<KeptPacket>,
    /// The sequence number of the oldest one.
    first: i64,
    /// The shortest measured round trip.
    rtt: Option<Span>,
}

impl Resend {
    pub(crate) fn new(keep: Span) -> Self {
        Self { keep, packets: VecDeque::new(), first: 0, rtt: None }
    }

    /// Keeps a packet that leaves with the sequence number `sequence`, which is one more than that before.
    pub(crate) fn sent(&mut self, now: Time, sequence: u16, packet: Queued) {
        if self.packets.is_empty() {
            self.first = i64::from(sequence);
        }
        let next = self.first + self.packets.len() as i64;
        debug_assert_eq!(next as u16, sequence, "packets are kept one after the other");
        self.packets.push_back(KeptPacket { sent: now, packet, resent: None });
        while self.packets.len() > PACKETS_MAX
            || self.packets.front().is_some_and(|kept| now - kept.sent > self.keep)
        {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Notes a measured round trip.
    pub(crate) fn set_rtt(&mut self, rtt: Span) {
        self.rtt = Some(self.rtt.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Forgets the round trip: on another path it may be longer or shorter.
    pub(crate) fn route_changed(&mut self) {
        self.rtt = None;
    }

    fn find(&mut self, sequence: u16) -> Option<&mut KeptPacket> {
        let newest = self.first + self.packets.len() as i64 - 1;
        let index = wrap::nearest(u32::from(sequence), 16, newest) - self.first;
        self.packets.get_mut(usize::try_from(index).ok()?)
    }

    /// The packet with the number `sequence`, for the retransmission stream `stream`; none if it is not kept, or if the
    /// shortest round trip has not passed since its last retransmission, of which the receiver cannot know yet.
    pub(crate) fn retransmit(&mut self, now: Time, sequence: u16, stream: u8) -> Option<Queued> {
        let (rtt, keep) = (self.rtt.unwrap_or(DEFAULT_RTT), self.keep);
        let kept = self.find(sequence)?;
        if now - kept.sent > keep || kept.resent.is_some_and(|time| time == Time::MAX || now - time < rtt) {
            return None;
        }
        kept.resent = Some(Time::MAX);
        let payload = kept.packet.payload.saturating_add(OSN);
        Some(Queued { since: now, original: sequence, payload, stream, ..kept.packet })
    }

    /// Notes that the retransmission of `sequence` has left.
    pub(crate) fn resent(&mut self, now: Time, sequence: u16) {
        if let Some(kept) = self.find(sequence) {
            kept.resent = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    fn packet(frame: u32) -> Queued {
        Queued {
            since: Time::ZERO,
            timestamp: 9,
            frame,
            payload: 100,
            original: 0,
            stream: 0,
            flags: 3,
            marks: 0,
        }
    }

    #[test]
    fn a_packet_is_retransmitted_once_a_round_trip_while_it_is_kept() {
        let mut resend = Resend::new(Span::from_secs(1));
        assert_eq!(resend.retransmit(ms(0), 65_535, 2), None, "nothing was sent");
        for k in 0..1200 {
            resend.sent(ms(k), (65_000 + k) as u16, packet(k as u32));
        }
        assert_eq!(resend.packets.len(), 1001);
        assert_eq!(resend.retransmit(ms(1200), 65_198, 2), None, "forgotten");
        assert_eq!(resend.retransmit(ms(1200), 664, 2), None, "not sent yet");
        let expected = Queued { since: ms(1200), original: 0, payload: 102, stream: 2, ..packet(536) };
        assert_eq!(resend.retransmit(ms(1200), 0, 2), Some(expected));
        assert_eq!(resend.retransmit(ms(1400), 0, 2), None, "it still waits for its turn");
        resend.resent(ms(1400), 0);
        resend.set_rtt(Span::from_millis(70));
        resend.set_rtt(Span::from_millis(50));
        assert_eq!(resend.retransmit(ms(1449), 0, 2), None, "the receiver cannot know yet");
        assert!(resend.retransmit(ms(1450), 0, 2).is_some());
    }
}
