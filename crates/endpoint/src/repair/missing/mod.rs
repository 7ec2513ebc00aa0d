//! Missing packets of one stream at its receiver, and the times of requests for them, by the rules of libwebrtc's
//! `NackRequester` (`modules/video_coding/nack_requester.cc`).

use super::Nack;
use std::collections::VecDeque;
use tidegate_core::datagram::Parity;
use tidegate_core::{Span, Time};

/// Packets that are missing at most: with more of them the list is cleared, and only a key frame helps (libwebrtc
/// `nack_requester.cc`: `kMaxNackPackets`).
const MAX_NACK_PACKETS: usize = 1000;
/// Packets behind the newest one after which a packet is not requested any more (libwebrtc `nack_requester.cc`:
/// `kMaxPacketAge`).
const MAX_PACKET_AGE: i64 = 10_000;
/// Restored packets that are remembered, in case they arrive late.
const RESTORED_MAX: usize = 1000;
/// Assumed time from a request to the retransmission, before the first one (libwebrtc `nack_requester.cc`:
/// `kDefaultRtt`).
const DEFAULT_RTT: Span = Span::from_millis(100);
/// Time between two looks at the list, for packets to request again (libwebrtc `nack_requester.h`:
/// `NackPeriodicProcessor::kUpdateInterval`).
const UPDATE_INTERVAL: Span = Span::from_millis(20);
/// Numbers that one entry of a request has room for: its PID and 16 bits (RFC 4585 section 6.2.1).
const PAIR_NUMBERS: i64 = 17;
/// Time for which parity may repair a packet that is not requested.
const PARITY_EXPIRY: Span = Span::from_secs(1);

/// Frame of a packet, and whether the packet is the last one of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FramePosition {
    pub(crate) frame: u32,
    pub(crate) last: bool,
}

/// State of a packet when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivalKind {
    /// It is new, or was missing.
    New,
    /// It was given up before, or has never been missing: it is not needed.
    Unneeded,
    /// It has been restored already.
    Restored,
}

#[derive(Clone, Copy, Debug)]
struct MissingPacket {
    sequence: i64,
    since: Time,
    /// When it is requested next; [`Time::MAX`]: not any more, or not before a later packet arrives.
    request_due: Time,
    /// Times of the first request, the last but one, and the last.
    first_requested: Time,
    requested_before: Time,
    requested: Time,
    requests: u32,
    /// The first and the last frame that it may belong to.
    first: u32,
    last: u32,
}

/// The missing packets of a stream.
#[derive(Debug)]
pub(crate) struct Missing {
    nack: Option<Nack>,
    /// Packets that a group of parity has at most, if there is parity, and the highest first number of parity that
    /// came.
    group: Option<i64>,
    parity: i64,
    /// The next sequence number, and the frame of the packet before it.
    next: Option<i64>,
    newest: FramePosition,
    /// Missing packets in the order of their numbers.
    entries: VecDeque<MissingPacket>,
    restored: VecDeque<i64>,
    /// Times from request to retransmission: mean and mean deviation, and the shortest.
    response_time: Option<(Span, Span)>,
    shortest: Span,
    /// When the first packet is to be requested, and when the first one is to be given up.
    request_due: Time,
    expiry: Time,
    /// Whether too many packets were missing since [`Missing::take_overflow`].
    overflowed: bool,
}

impl Missing {
    /// No packet is missing yet. `group`: packets of a group of parity, if there is parity.
    pub(crate) fn new(nack: Option<Nack>, group: Option<u8>) -> Self {
        Self {
            nack,
            group: group.map(i64::from),
            parity: i64::MIN,
            next: None,
            newest: FramePosition::default(),
            entries: VecDeque::new(),
            restored: VecDeque::new(),
            response_time: None,
            shortest: Span::ZERO,
            request_due: Time::MAX,
            expiry: Time::MAX,
            overflowed: false,
        }
    }

    /// When a packet is to be requested; [`Time::MAX`]: never.
    pub(crate) fn request_due(&self) -> Time {
        self.request_due
    }

    /// When a packet is to be given up.
    pub(crate) fn expiry(&self) -> Time {
        self.expiry
    }

    /// Whether more packets were missing than may be requested since the last call. The list is empty then, and a key
    /// frame is to be requested at once (libwebrtc's `AddPacketsToNack`).
    pub(crate) fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflowed)
    }

    /// The next sequence number, once there was one.
    pub(crate) fn next(&self) -> Option<i64> {
        self.next
    }

    /// The first frame that may yet be repaired.
    pub(crate) fn first_repairable(&self) -> Option<u32> {
        self.entries.front().map(|entry| entry.first)
    }

    /// The time from a request to the retransmission, after which the request is repeated.
    fn response_time(&self) -> Span {
        let (mean, deviation) = self.response_time.unwrap_or((DEFAULT_RTT, Span::ZERO));
        // as in RFC 6298 for TCP, but with no deviation at first: else the first losses would be requested again only
        // after three round trips
        mean + deviation * 4
    }

    /// Notes a packet that has arrived from the network.
    pub(crate) fn arrived(&mut self, now: Time, sequence: i64, position: FramePosition) -> ArrivalKind {
        let Some(next) = self.next else {
            (self.next, self.newest) = (Some(sequence + 1), position);
            return ArrivalKind::New;
        };
        if sequence < next {
            if let Some(index) = self.restored.iter().position(|&restored| restored == sequence) {
                self.restored.remove(index);
                return ArrivalKind::Restored;
            }
            return if self.remove(sequence).is_some() { ArrivalKind::New } else { ArrivalKind::Unneeded };
        }
        let released = self.release(now);
        if sequence > next {
            let request_due = self.first_request(now);
            self.enter_gap(now, next, sequence, position.frame, request_due);
        }
        if released || sequence > next {
            self.update_times();
        }
        (self.next, self.newest) = (Some(sequence + 1), position);
        ArrivalKind::New
    }

    /// When a packet is requested first whose absence shows at `now`: at once, or at the first look after `wait`.
    fn first_request(&self, now: Time) -> Time {
        match self.nack {
            None => Time::MAX,
            Some(nack) if nack.wait == Span::ZERO => now,
            Some(nack) => next_look(now + nack.wait),
        }
    }

    /// Lets the packets be requested before which only restored ones have come: now a later one has arrived. Returns
    /// whether there were any.
    fn release(&mut self, now: Time) -> bool {
        if self.nack.is_none() {
            return false;
        }
        let request_due = self.first_request(now);
        let held = |entry: &&mut MissingPacket| entry.requests == 0 && entry.request_due == Time::MAX;
        let mut released = false;
        for entry in self.entries.iter_mut().rev().take_while(held) {
            entry.request_due = request_due;
            released = true;
        }
        released
    }

    /// Enters the packets from `next` up to but not including `sequence`, which belongs to `frame`, as missing.
    fn enter_gap(&mut self, now: Time, next: i64, sequence: i64, frame: u32, request_due: Time) {
        while self.entries.front().is_some_and(|entry| entry.sequence < sequence - MAX_PACKET_AGE) {
            self.entries.pop_front();
        }
        if self.entries.len() as i64 + (sequence - next) > MAX_NACK_PACKETS as i64 {
            self.entries.clear();
            self.overflowed |= self.nack.is_some();
            return;
        }
        let first = self.newest.frame.wrapping_add(u32::from(self.newest.last));
        self.entries.extend((next..sequence).map(|sequence| MissingPacket {
            sequence,
            since: now,
            request_due,
            first_requested: now,
            requested_before: now,
            requested: now,
            requests: 0,
            first,
            last: frame,
        }));
    }

    fn remove(&mut self, sequence: i64) -> Option<MissingPacket> {
        let index = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence).ok()?;
        let entry = self.entries.remove(index);
        self.update_times();
        entry
    }

    /// Notes that a packet has been restored, by retransmission (`resent`) or by parity; returns whether it was needed.
    pub(crate) fn restored(
        &mut self,
        now: Time,
        sequence: i64,
        resent: bool,
        position: FramePosition,
    ) -> bool {
        let Some(next) = self.next else { return false };
        if sequence >= next {
            // parity has restored it before any later packet arrived; until one does, those before it are not requested
            if sequence - next > MAX_NACK_PACKETS as i64 {
                return false;
            }
            self.enter_gap(now, next, sequence, position.frame, Time::MAX);
            (self.next, self.newest) = (Some(sequence + 1), position);
            self.update_times();
        } else {
            let Some(entry) = self.remove(sequence) else { return false };
            if resent {
                self.sample(now, &entry);
            }
        }
        if self.restored.len() == RESTORED_MAX {
            self.restored.pop_front();
        }
        self.restored.push_back(sequence);
        true
    }

    /// Notes that parity over the packets from `base` on has come and has restored the packets that it can: without
    /// requests, the others that it protects stay lost.
    pub(crate) fn parity(&mut self, base: i64, parity: &Parity) {
        self.parity = self.parity.max(base);
        if self.nack.is_none() {
            let (offset, length) =
                (i64::from(parity.offset), i64::from(parity.offset) * i64::from(parity.count));
            let protects =
                |sequence: i64| (base..base + length).contains(&sequence) && (sequence - base) % offset == 0;
            self.entries.retain(|entry| !protects(entry.sequence));
            self.update_times();
        }
    }

    /// Measures the time from request to retransmission. After several requests, the answered one is unknown (Karn's
    /// rule), with two exceptions. A response that comes sooner after the last request than any before is the response
    /// to the request before that. The very first response is to the first request, because the sender waits for a
    /// round trip, too.
    fn sample(&mut self, now: Time, entry: &MissingPacket) {
        let request_time = match (entry.requests, self.response_time) {
            (0, _) => return,
            (1, _) => entry.requested,
            (_, None) => entry.first_requested,
            _ if now - entry.requested < self.shortest => entry.requested_before,
            _ => return,
        };
        let response_time = now - request_time;
        (self.response_time, self.shortest) = match self.response_time {
            None => (Some((response_time, Span::ZERO)), response_time),
            Some((mean, deviation)) => {
                let mean_now = mean + (response_time - mean) / 8;
                let deviation = deviation + ((response_time - mean).abs() - deviation) / 4;
                (Some((mean_now, deviation)), self.shortest.min(response_time))
            }
        };
    }

    /// Gives up packets that cannot be repaired any more, and those of frames before `base`; returns whether there were
    /// any.
    pub(crate) fn give_up(&mut self, now: Time, base: u32) -> bool {
        let before = self.entries.len();
        let late = |entry: &MissingPacket| (entry.last.wrapping_sub(base) as i32) < 0;
        let (nack, group, response_time, parity) = (self.nack, self.group, self.response_time(), self.parity);
        self.entries.retain(|entry| {
            !late(entry)
                && expiry(entry, nack, response_time) > now
                && may_be_repaired(entry, group, nack, parity)
        });
        // response times may have become longer since the expiry was computed
        if self.entries.len() != before || self.expiry <= now {
            self.update_times();
        }
        self.entries.len() != before
    }

    /// Takes the sequence numbers to request now, in order: as many as fit into `limit` entries of a request.
    pub(crate) fn take(&mut self, now: Time, limit: usize) -> Vec<u16> {
        let Some(nack) = self.nack else { return Vec::new() };
        if self.request_due > now {
            return Vec::new();
        }
        // never at this look again
        let (response_time, later) = (self.response_time(), Span::from_nanos(1));
        let (mut numbers, mut pairs, mut first) = (Vec::new(), 0, i64::MIN);
        for entry in self.entries.iter_mut().filter(|entry| entry.request_due <= now) {
            if entry.sequence >= first.saturating_add(PAIR_NUMBERS) {
                if pairs == limit {
                    // the next request asks for it
                    entry.request_due = next_look(now + later);
                    continue;
                }
                (pairs, first) = (pairs + 1, entry.sequence);
            }
            entry.requests += 1;
            if entry.requests == 1 {
                entry.first_requested = now;
            }
            (entry.requested_before, entry.requested) = (entry.requested, now);
            entry.request_due = if entry.requests < nack.requests {
                next_look(now + response_time.max(later))
            } else {
                Time::MAX
            };
            numbers.push(entry.sequence as u16);
        }
        self.update_times();
        numbers
    }

    fn update_times(&mut self) {
        debug_assert!(self.entries.len() <= MAX_NACK_PACKETS, "{} packets are missing", self.entries.len());
        debug_assert!(
            self.entries.iter().is_sorted_by(|a, b| a.sequence < b.sequence),
            "{} packets, not in the order of their numbers",
            self.entries.len()
        );
        let response_time = self.response_time();
        self.request_due = self.entries.iter().map(|entry| entry.request_due).min().unwrap_or(Time::MAX);
        let expiries = self.entries.iter().map(|entry| expiry(entry, self.nack, response_time));
        self.expiry = expiries.min().unwrap_or(Time::MAX);
    }
}

/// The first look at the list from `time` on.
fn next_look(time: Time) -> Time {
    let interval = UPDATE_INTERVAL.as_nanos();
    // the same as div_ceil, which is not stable for signed numbers
    Time::from_nanos(-(-time.as_nanos()).div_euclid(interval) * interval)
}

/// When a packet is given up at the latest: when the last request has had its time, or the sender has dropped the packet
/// for sure. By libwebrtc's rule for what a sender keeps, the receiver cannot know when that is.
fn expiry(entry: &MissingPacket, nack: Option<Nack>, response_time: Span) -> Time {
    let Some(nack) = nack else { return entry.since + PARITY_EXPIRY };
    let answered =
        if entry.requests == nack.requests { entry.requested + response_time * 2 } else { Time::MAX };
    nack.keep.map_or(answered, |keep| answered.min(entry.since + keep))
}

/// Whether a packet may still be repaired: without requests only parity does, which comes in the order of its groups.
fn may_be_repaired(entry: &MissingPacket, group: Option<i64>, nack: Option<Nack>, parity: i64) -> bool {
    nack.is_some() || group.is_some_and(|packets| parity < entry.sequence + packets)
}

#[cfg(test)]
mod tests;
