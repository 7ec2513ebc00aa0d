//! The limits of a queue, and drop-tail: what fits is kept in order, what does not fit is dropped.

use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::fifo::Fifo;
use serde::Deserialize;
use tidegate_core::record::Backlog;
use tidegate_core::{Rate, Size, Span};

/// The limits of a queue. Several may be given: a packet must fit all of them. Drop-tail has nothing else; to any other
/// discipline they are the size of its buffer.
///
/// What the limits count: everything that has not fully left, as in libwebrtc's and str0m's link models, so that
/// no packet waits longer than limit / rate. Without [`DropTail::counts_in_service`] only packets that wait: that
/// is the way of a device queue in ns-3 and of ns-2, where a packet in transmission has left the queue object. (ns-2's
/// `DropTail::enque` drops when `length + 1 >= limit`: with its limit of 50 there wait 49 beside the one in service,
/// as with 50 here.)
///
/// A packet that finds nothing in the link is taken in whatever its size, as every real buffer holds at least one packet:
/// limits in bytes or time that are too small for it would lose everything on an idle link. The link tells of
/// such packets when the run ends ([`tidegate_core::Node::warnings`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DropTail {
    /// At most so many packets.
    pub packets: Option<u32>,
    /// At most so many bytes.
    pub bytes: Option<Size>,
    /// At most as many bytes as the link's nominal rate carries in this time (RFC 8868 section 4.3:
    /// seconds times bit/s over 8).
    pub time: Option<Span>,
    /// Whether the packet in service counts.
    pub counts_in_service: bool,
}

/// The limits of a [`DropTail`] on a link of known rate, as plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    packets: u64,
    bytes: u64,
    pub(crate) counts_in_service: bool,
    /// The size of the largest packet that was taken in only because nothing was there; 0: there was none.
    oversized: u32,
}

impl DropTail {
    /// No limit.
    pub const UNLIMITED: Self = Self { packets: None, bytes: None, time: None, counts_in_service: true };

    /// At most `packets` packets.
    #[must_use]
    pub const fn packets(packets: u32) -> Self {
        Self { packets: Some(packets), ..Self::UNLIMITED }
    }

    /// At most `bytes`.
    #[must_use]
    pub const fn bytes(bytes: Size) -> Self {
        Self { bytes: Some(bytes), ..Self::UNLIMITED }
    }

    /// At most what the link's nominal rate carries in `time`.
    #[must_use]
    pub const fn time(time: Span) -> Self {
        Self { time: Some(time), ..Self::UNLIMITED }
    }

    /// This, for packets that wait alone: the one in service does not count.
    #[must_use]
    pub const fn of_waiting(mut self) -> Self {
        self.counts_in_service = false;
        self
    }

    /// As numbers, on a link of `nominal` rate.
    pub(crate) fn resolve(&self, nominal: Rate) -> Room {
        let bytes = self.bytes.map_or(u64::MAX, Size::as_bytes);
        let timed = self.time.filter(|_| nominal != Rate::MAX);
        let timed = timed.map_or(u64::MAX, |time| nominal.bytes_in(time).as_bytes());
        Room {
            packets: self.packets.map_or(u64::MAX, u64::from),
            bytes: bytes.min(timed),
            counts_in_service: self.counts_in_service,
            oversized: 0,
        }
    }
}

impl Default for DropTail {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

impl Room {
    /// Whether one more packet of `size` fits beside `packets` packets of `bytes` bytes.
    #[inline]
    pub(crate) const fn fits(&self, packets: u64, bytes: u64, size: u32) -> bool {
        packets < self.packets && bytes.saturating_add(size as u64) <= self.bytes
    }

    /// Whether so many waiting packets of so many bytes are no more than there is room for. None always are, and one that
    /// is alone.
    pub(crate) fn holds(&self, moment: &Moment<'_>, packets: u64, bytes: u64) -> bool {
        if packets == 0 || packets == 1 && moment.in_service.is_none() {
            return true;
        }
        let (more, length) = self.in_service(moment);
        packets + more <= self.packets && bytes + length <= self.bytes
    }

    /// Packets and bytes in service, as far as they count.
    fn in_service(&self, moment: &Moment<'_>) -> (u64, u64) {
        let counted = moment.in_service.filter(|_| self.counts_in_service);
        counted.map_or((0, 0), |size| (1, u64::from(size)))
    }

    /// Takes note of a packet of `size` that is taken in because nothing is there.
    #[inline]
    pub(crate) fn takes_one(&mut self, size: u32) {
        if u64::from(size) > self.bytes {
            self.oversized = self.oversized.max(size);
        }
    }

    /// What is to be told of packets that were larger than all there is room for.
    pub(crate) fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        if self.oversized > 0 {
            let (bytes, size) = (self.bytes, self.oversized);
            let told = format!(
                "its {bytes} bytes hold no packet of {size}: one goes in where nothing else is, and nothing beside it"
            );
            tell("queue", told);
        }
    }

    /// Whether a packet of `size` is taken in where `packets` packets of `bytes` bytes wait.
    pub(crate) fn admits(&mut self, moment: &Moment<'_>, packets: u64, bytes: u64, size: u32) -> bool {
        if packets == 0 && moment.in_service.is_none() {
            self.takes_one(size);
            return true;
        }
        let (more, length) = self.in_service(moment);
        self.fits(packets + more, bytes + length, size)
    }

    /// Whether everything fits always.
    #[inline]
    pub(crate) const fn is_unlimited(&self) -> bool {
        self.packets == u64::MAX && self.bytes == u64::MAX
    }
}

/// First in, first out, and what does not fit is dropped: a [`DropTail`] at work, as a discipline.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    room: Room,
    pub(super) queue: Fifo,
}

impl Tail {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, queue: Fifo::default() }
    }
}

impl QueueDiscipline for Tail {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        if self.room.admits(moment, self.queue.packets(), self.queue.bytes(), waiting.packet.size) {
            self.queue.push(waiting);
        } else {
            moment.drop(waiting.packet);
        }
    }

    fn dequeue(&mut self, _moment: &mut Moment<'_>) -> Option<Waiting> {
        self.queue.pop()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.queue.each(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.room.warnings(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_holds() {
        let queue = DropTail {
            packets: Some(100),
            bytes: Some(Size::from_bytes(40_000)),
            time: Some(Span::from_millis(300)),
            counts_in_service: false,
        };
        // 300 ms at 1 Mbit/s are 37500 bytes
        let room = queue.resolve(Rate::from_mbps(1));
        assert!(room.fits(24, 36_000, 1500));
        assert!(!room.fits(24, 36_001, 1500));
        assert!(room.fits(99, 0, 1500));
        assert!(!room.fits(100, 0, 1));
        let room = queue.resolve(Rate::from_mbps(2));
        assert!(room.fits(24, 38_500, 1500) && !room.fits(24, 38_501, 1500));
        assert!(DropTail::time(Span::from_millis(1)).resolve(Rate::MAX).is_unlimited());
        assert!(!room.is_unlimited());
    }
}
