//! Retransmission: the packets that a sender keeps to answer requests.

use crate::packetizer::Queued;
use std::collections::VecDeque;
use tidegate_core::wire::wrap;
use tidegate_core::{Span, Time};

/// Bytes of the original sequence number before the payload (RFC 4588 section 4).
pub(crate) const OSN: u16 = 2;
/// Packets that are kept at most (libwebrtc `rtp_packet_history.h`: `kMaxCapacity`).
const MAX_CAPACITY: usize = 9600;
/// Packets from which on those that need not be kept are dropped (libwebrtc `rtp_video_sender.cc`:
/// `kMinSendSidePacketHistorySize`).
const MIN_SEND_SIDE_PACKET_HISTORY_SIZE: usize = 600;
/// Time for which a packet is kept at least, and round trips for which it is (libwebrtc `rtp_packet_history.h`:
/// `kMinPacketDuration`, `kMinPacketDurationRtt`).
const MIN_PACKET_DURATION: Span = Span::from_secs(1);
const MIN_PACKET_DURATION_RTT: i64 = 3;
/// Multiple of the least time after which a packet is dropped, however few there are (libwebrtc
/// `rtp_packet_history.h`: `kPacketCullingDelayFactor`).
const PACKET_CULLING_DELAY_FACTOR: i64 = 3;

#[derive(Clone, Copy, Debug)]
struct KeptPacket {
    /// When it left last, retransmissions included.
    sent: Time,
    packet: Queued,
    retransmitted: bool,
    /// Whether a retransmission is queued.
    pending: bool,
}

/// The latest packets of a stream, kept for retransmission by the rules of libwebrtc's `RtpPacketHistory`.
///
/// Unlike there, packets that transport feedback has reported as received are kept like the others.
#[derive(Debug)]
pub(crate) struct Resend {
    keep: Option<Span>,
    packets: VecDeque<KeptPacket>,
    /// The sequence number of the oldest one.
    first: i64,
    /// The round trip of the last receiver report.
    rtt: Option<Span>,
}

impl Resend {
    /// Nothing is kept yet. `keep`: time for which a packet is kept after it has left, whatever the round trip is;
    /// `None`: by libwebrtc's rule.
    pub(crate) fn new(keep: Option<Span>) -> Self {
        Self { keep, packets: VecDeque::new(), first: 0, rtt: None }
    }

    /// Keeps a packet that leaves with the sequence number `sequence`, which is one more than that before.
    pub(crate) fn sent(&mut self, now: Time, sequence: u16, packet: Queued) {
        self.cull(now);
        if self.packets.is_empty() {
            self.first = i64::from(sequence);
        }
        let next = self.first + self.packets.len() as i64;
        debug_assert_eq!(next as u16, sequence, "packets are kept one after the other");
        self.packets.push_back(KeptPacket { sent: now, packet, retransmitted: false, pending: false });
    }

    /// Drops packets that need not be kept any more (`CullOldPackets`).
    fn cull(&mut self, now: Time) {
        let by_rule = self.rtt.unwrap_or(Span::ZERO) * MIN_PACKET_DURATION_RTT;
        let (duration, few) = match self.keep {
            Some(keep) => (keep, 0),
            None => (by_rule.max(MIN_PACKET_DURATION), MIN_SEND_SIDE_PACKET_HISTORY_SIZE),
        };
        while let Some(oldest) = self.packets.front() {
            let is_old = |duration: Span| now - oldest.sent >= duration;
            let many = self.packets.len() >= few || is_old(duration * PACKET_CULLING_DELAY_FACTOR);
            let full = self.packets.len() >= MAX_CAPACITY;
            if !full && (oldest.pending || !is_old(duration) || !many) {
                return;
            }
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Notes a measured round trip.
    pub(crate) fn set_rtt(&mut self, now: Time, rtt: Span) {
        self.rtt = Some(rtt);
        self.cull(now);
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

    /// The packet with the number `sequence`, for the retransmission stream `stream`; none if it is not kept, if its
    /// retransmission is queued, or if no round trip has passed since its last one, of which the receiver cannot know yet.
    pub(crate) fn retransmit(&mut self, now: Time, sequence: u16, stream: u8) -> Option<Queued> {
        let rtt = self.rtt.unwrap_or(Span::ZERO);
        let kept = self.find(sequence)?;
        if kept.pending || kept.retransmitted && now - kept.sent < rtt {
            return None;
        }
        kept.pending = true;
        let payload = kept.packet.payload.saturating_add(OSN);
        Some(Queued { since: now, original: sequence, payload, stream, ..kept.packet })
    }

    /// Notes that the retransmission of `sequence` has left.
    pub(crate) fn resent(&mut self, now: Time, sequence: u16) {
        if let Some(kept) = self.find(sequence) {
            (kept.sent, kept.retransmitted, kept.pending) = (now, true, false);
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

    /// `count` packets from the number 65 534 on, one each `interval`.
    fn sent(resend: &mut Resend, count: i64, interval: Span) {
        for k in 0..count {
            resend.sent(Time::ZERO + interval * k, (65_534 + k) as u16, packet(k as u32));
        }
    }

    fn is_kept(resend: &mut Resend, sequence: u16) -> bool {
        resend.find(sequence).is_some()
    }

    #[test]
    fn a_packet_is_retransmitted_once_a_round_trip() {
        let mut resend = Resend::new(None);
        assert_eq!(resend.retransmit(ms(0), 65_534, 2), None, "nothing was sent");
        sent(&mut resend, 3, Span::from_millis(1));
        assert_eq!(resend.retransmit(ms(3), 1, 2), None, "not sent yet");
        resend.set_rtt(ms(3), Span::from_millis(100));
        let expected = Queued { since: ms(3), original: 0, payload: 102, stream: 2, ..packet(2) };
        assert_eq!(resend.retransmit(ms(3), 0, 2), Some(expected), "the first time at once");
        assert_eq!(resend.retransmit(ms(200), 0, 2), None, "it still waits for its turn");
        resend.resent(ms(200), 0);
        assert_eq!(resend.retransmit(ms(299), 0, 2), None, "the receiver cannot know yet");
        assert!(resend.retransmit(ms(300), 0, 2).is_some());
        resend.resent(ms(300), 0);
        // by the last round trip, whatever was measured before
        resend.set_rtt(ms(300), Span::from_millis(150));
        assert_eq!(resend.retransmit(ms(449), 0, 2), None);
        assert!(resend.retransmit(ms(450), 0, 2).is_some());
        resend.resent(ms(450), 0);
        resend.route_changed();
        assert!(resend.retransmit(ms(450), 0, 2).is_some(), "no round trip is known");
    }

    #[test]
    fn among_many_packets_those_are_dropped_that_have_been_kept_long_enough() {
        for (rtt, least) in [(None, 1000), (Some(300), 1000), (Some(2000), 6000)] {
            let mut resend = Resend::new(None);
            if let Some(rtt) = rtt {
                resend.set_rtt(ms(0), Span::from_millis(rtt));
            }
            // 600 packets within the time for which they are kept at least
            sent(&mut resend, 600, Span::from_micros(least * 1000 / 600));
            resend.sent(ms(least - 1), 598, packet(600));
            assert!(is_kept(&mut resend, 65_534), "{rtt:?}");
            resend.sent(ms(least), 599, packet(601));
            assert!(!is_kept(&mut resend, 65_534) && is_kept(&mut resend, 65_535), "{rtt:?}");
        }
    }

    #[test]
    fn few_packets_are_kept_three_times_as_long() {
        for (rtt, least) in [(300, 1000), (2000, 6000)] {
            let mut resend = Resend::new(None);
            resend.set_rtt(ms(0), Span::from_millis(rtt));
            // 599 in all: the first one is there until it is three times as old
            sent(&mut resend, 598, Span::from_micros(1));
            resend.sent(ms(3 * least - 1), 596, packet(598));
            assert!(is_kept(&mut resend, 65_534));
            resend.set_rtt(ms(3 * least), Span::from_millis(rtt));
            assert!(!is_kept(&mut resend, 65_534) && is_kept(&mut resend, 596));
        }
    }

    #[test]
    fn a_retransmission_renews_the_time_and_what_is_queued_stays() {
        let mut resend = Resend::new(None);
        sent(&mut resend, 600, Span::from_micros(1));
        assert!(resend.retransmit(ms(900), 65_534, 2).is_some());
        resend.sent(ms(1500), 598, packet(600));
        assert!(is_kept(&mut resend, 65_534), "queued");
        resend.resent(ms(1500), 65_534);
        resend.sent(ms(2499), 599, packet(601));
        assert!(is_kept(&mut resend, 65_535), "behind one that left lately");
        resend.sent(ms(2500), 600, packet(602));
        assert!(!is_kept(&mut resend, 0) && is_kept(&mut resend, 1), "599 are few");
    }

    #[test]
    fn no_more_than_9600_packets_are_kept_even_if_they_are_queued() {
        let mut resend = Resend::new(None);
        for k in 0..9600 {
            resend.sent(ms(0), (65_534 + k) as u16, packet(k as u32));
            assert!(resend.retransmit(ms(0), (65_534 + k) as u16, 2).is_some());
        }
        assert!(is_kept(&mut resend, 65_534));
        resend.sent(ms(0), 9598, packet(9600));
        assert!(!is_kept(&mut resend, 65_534) && is_kept(&mut resend, 65_535));
        assert_eq!(resend.packets.len(), 9600);
    }

    #[test]
    fn a_time_of_ones_own_holds_whatever_the_round_trip() {
        let mut resend = Resend::new(Some(Span::from_millis(500)));
        resend.set_rtt(ms(0), Span::from_secs(2));
        sent(&mut resend, 2, Span::from_millis(1));
        resend.sent(ms(499), 0, packet(2));
        assert!(is_kept(&mut resend, 65_534));
        resend.sent(ms(500), 1, packet(3));
        assert!(!is_kept(&mut resend, 65_534) && is_kept(&mut resend, 65_535));
    }
}
