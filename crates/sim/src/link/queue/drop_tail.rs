//! The limits of a queue, and drop-tail: packets that fit are kept in order, the others are dropped.

use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::fifo::Fifo;
use serde::Deserialize;
use tidegate_core::record::Backlog;
use tidegate_core::{Rate, Size, Span};

/// The limits of a queue. If there are several, a packet must fit all of them. Drop-tail has nothing else; for any
/// other discipline they are the size of its buffer.
///
/// The limits count all packets that have not fully left, as in libwebrtc's and str0m's link models, so that
/// no packet waits longer than limit / rate. Without [`DropTail::counts_in_service`] they count only waiting packets,
/// as a device queue in ns-3 and ns-2, where a packet in transmission has left the queue object. (ns-2's
/// `DropTail::enque` drops when `length + 1 >= limit`: with its limit of 50, 49 packets wait beside the one in service,
/// as with 50 here.)
///
/// A packet that comes to an empty link is accepted in any size, because every real buffer holds at least one packet:
/// limits in bytes or time that are too small for it would lose all packets on an idle link. The link warns about
/// such packets at the end of the run ([`tidegate_core::Node::warnings`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DropTail {
    /// Largest number of packets.
    pub packets: Option<u32>,
    /// Largest number of bytes.
    pub bytes: Option<Size>,
    /// Limit in bytes as the time in which the link's nominal rate carries them (RFC 8868 section 4.3:
    /// seconds times bit/s over 8).
    pub time: Option<Span>,
    /// Whether the packet in service counts.
    pub counts_in_service: bool,
}

/// The limits of a [`DropTail`] on a link of known rate, in packets and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    packets: u64,
    bytes: u64,
    pub(crate) counts_in_service: bool,
    /// Size of the largest packet that was accepted only because the link was empty; 0: there was none.
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

    /// At most the bytes that the link's nominal rate carries in `time`.
    #[must_use]
    pub const fn time(time: Span) -> Self {
        Self { time: Some(time), ..Self::UNLIMITED }
    }

    /// Excludes the packet in service from the limits.
    #[must_use]
    pub const fn of_waiting(mut self) -> Self {
        self.counts_in_service = false;
        self
    }

    /// Computes the limits on a link of `nominal` rate.
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

    /// Whether the limits allow so many waiting packets of so many bytes. They always allow none, and a single packet
    /// in an otherwise empty link.
    pub(crate) fn holds(&self, moment: &Moment<'_>, packets: u64, bytes: u64) -> bool {
        if packets == 0 || packets == 1 && moment.in_service.is_none() {
            return true;
        }
        let (packets_served, bytes_served) = self.in_service(moment);
        packets + packets_served <= self.packets && bytes + bytes_served <= self.bytes
    }

    /// Packets and bytes in service, as far as they count.
    fn in_service(&self, moment: &Moment<'_>) -> (u64, u64) {
        let counted = moment.in_service.filter(|_| self.counts_in_service);
        counted.map_or((0, 0), |size| (1, u64::from(size)))
    }

    /// Remembers a packet of `size` that is accepted because the link is empty, if it exceeds the limit.
    #[inline]
    pub(crate) fn takes_one(&mut self, size: u32) {
        if u64::from(size) > self.bytes {
            self.oversized = self.oversized.max(size);
        }
    }

    /// These limits, after those of `self`.
    pub(super) const fn with(self, limits: Self) -> Self {
        Self { oversized: self.oversized, ..limits }
    }

    /// Sets the limits, and drops packets from the tail of `queue` until they hold.
    pub(super) fn change(&mut self, moment: &mut Moment<'_>, limits: &DropTail, queue: &mut Fifo) {
        *self = self.with(limits.resolve(moment.nominal));
        while !self.holds(moment, queue.packets(), queue.bytes()) {
            let Some(last) = queue.pop_last() else { return };
            moment.drop(last.packet);
        }
    }

    /// Warns about packets that were larger than the limit.
    pub(crate) fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        if self.oversized > 0 {
            let (bytes, size) = (self.bytes, self.oversized);
            let warning = format!(
                "{bytes} bytes are too few for a packet of {size} bytes: it is accepted only while the link is empty"
            );
            tell("queue", warning);
        }
    }

    /// Whether a packet of `size` is accepted while `packets` packets of `bytes` bytes wait.
    pub(crate) fn admits(&mut self, moment: &Moment<'_>, packets: u64, bytes: u64, size: u32) -> bool {
        if packets == 0 && moment.in_service.is_none() {
            self.takes_one(size);
            return true;
        }
        let (packets_served, bytes_served) = self.in_service(moment);
        self.fits(packets + packets_served, bytes + bytes_served, size)
    }

    /// Whether there is no limit.
    #[inline]
    pub(crate) const fn is_unlimited(&self) -> bool {
        self.packets == u64::MAX && self.bytes == u64::MAX
    }
}

/// A drop-tail queue as a discipline: first in, first out, and packets that do not fit are dropped.
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

    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
        self.room.change(moment, limits, &mut self.queue);
    }

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.queue.into_waiting()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.queue.for_each(visit);
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
