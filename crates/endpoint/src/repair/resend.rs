//! Retransmission: the packets that a sender keeps, and the requests that it answers with them.

use crate::packetizer::Queued;
use std::collections::VecDeque;
use tidegate_core::wire::wrap;
use tidegate_core::{Span, Time};

/// Bytes of the original sequence number before the payload (RFC 4588 section 4).
pub(crate) const OSN: u16 = 2;
/// More are not kept: a quarter of the numbers that 16 bits tell apart.
const KEPT_MAX: usize = 1 << 14;
/// A packet is not sent twice within this where no round trip was measured (libwebrtc `kDefaultRtt`).
const FIRST_ROUND: Span = Span::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Kept {
    sent: Time,
    packet: Queued,
    /// When it was answered for last; [`Time::MAX`] while the answer waits for its turn.
    resent: Option<Time>,
}

/// The packets of a stream that were sent lately.
#[derive(Debug)]
pub(crate) struct Resend {
    keep: Span,
    kept: VecDeque<Kept>,
    /// The sequence number of the oldest one.
    first: i64,
    /// The least round trip that was measured.
    round: Option<Span>,
}

impl Resend {
    pub(crate) fn new(keep: Span) -> Self {
        Self { keep, kept: VecDeque::new(), first: 0, round: None }
    }

    /// Keeps a packet that leaves with the sequence number `sequence`, which is one more than that before.
    pub(crate) fn sent(&mut self, now: Time, sequence: u16, packet: Queued) {
        if self.kept.is_empty() {
            self.first = i64::from(sequence);
        }
        let next = self.first + self.kept.len() as i64;
        debug_assert_eq!(next as u16, sequence, "packets are kept one after the other");
        self.kept.push_back(Kept { sent: now, packet, resent: None });
        while self.kept.len() > KEPT_MAX || self.kept.front().is_some_and(|kept| now - kept.sent > self.keep)
        {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// Takes note of a round trip.
    pub(crate) fn round(&mut self, round: Span) {
        self.round = Some(self.round.map_or(round, |least| least.min(round)));
    }

    /// The path is another one: round trips may be longer or shorter.
    pub(crate) fn route_changed(&mut self) {
        self.round = None;
    }

    fn find(&mut self, sequence: u16) -> Option<&mut Kept> {
        let newest = self.first + self.kept.len() as i64 - 1;
        let at = wrap::nearest(u32::from(sequence), 16, newest) - self.first;
        self.kept.get_mut(usize::try_from(at).ok()?)
    }

    /// The packet with the number `sequence`, for the retransmission stream `stream`; nothing if it is not kept, or
    /// if whoever asks cannot know yet what became of the last answer: the least round trip has not passed since.
    pub(crate) fn answer(&mut self, now: Time, sequence: u16, stream: u8) -> Option<Queued> {
        let (round, keep) = (self.round.unwrap_or(FIRST_ROUND), self.keep);
        let kept = self.find(sequence)?;
        if now - kept.sent > keep || kept.resent.is_some_and(|at| at == Time::MAX || now - at < round) {
            return None;
        }
        kept.resent = Some(Time::MAX);
        let payload = kept.packet.payload.saturating_add(OSN);
        Some(Queued { since: now, original: sequence, payload, stream, ..kept.packet })
    }

    /// The answer to a request for `sequence` has left.
    pub(crate) fn left(&mut self, now: Time, sequence: u16) {
        if let Some(kept) = self.find(sequence) {
            kept.resent = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
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
    fn a_packet_is_answered_for_once_a_round_trip_while_it_is_kept() {
        let mut resend = Resend::new(Span::from_secs(1));
        assert_eq!(resend.answer(at(0), 65_535, 2), None, "nothing was sent");
        for k in 0..1200 {
            resend.sent(at(k), (65_000 + k) as u16, packet(k as u32));
        }
        assert_eq!(resend.kept.len(), 1001);
        assert_eq!(resend.answer(at(1200), 65_198, 2), None, "forgotten");
        assert_eq!(resend.answer(at(1200), 664, 2), None, "not sent yet");
        let expected = Queued { since: at(1200), original: 0, payload: 102, stream: 2, ..packet(536) };
        assert_eq!(resend.answer(at(1200), 0, 2), Some(expected));
        assert_eq!(resend.answer(at(1400), 0, 2), None, "it still waits for its turn");
        resend.left(at(1400), 0);
        resend.round(Span::from_millis(70));
        resend.round(Span::from_millis(50));
        assert_eq!(resend.answer(at(1449), 0, 2), None, "nobody can know yet");
        assert!(resend.answer(at(1450), 0, 2).is_some());
    }
}
