//! One probe: when its packets leave, and when it has had enough of them.

use tidegate_core::control::Probe;
use tidegate_core::{Size, Time};

/// A probe that is being sent (libwebrtc calls it a cluster).
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) probe: Probe,
    started: Option<Time>,
    sent: Size,
    packets: u32,
    /// When the present group of packets began to leave, and what had left before it.
    group: Time,
    before: Size,
}

impl Cluster {
    pub(super) fn new(probe: Probe) -> Self {
        Self { probe, started: None, sent: Size::ZERO, packets: 0, group: Time::ZERO, before: Size::ZERO }
    }

    /// Whether the present group of packets has not yet what the rate carries until the next one may leave.
    fn open(&self) -> bool {
        self.probe.rate.time_for(self.sent - self.before) < self.probe.spacing
    }

    /// When its next packet is due: as libwebrtc's `BitrateProber`, by what was sent so far.
    pub(super) fn due(&self) -> Time {
        match self.started {
            None => Time::ZERO,
            Some(_) if self.open() => self.group,
            Some(started) => {
                (started + self.probe.rate.time_for(self.sent)).max(self.group + self.probe.spacing)
            }
        }
    }

    /// Takes note of `size` bytes of it that leave.
    pub(super) fn take(&mut self, now: Time, size: Size) {
        if self.started.is_none() || !self.open() {
            (self.group, self.before) = (now, self.sent);
        }
        self.started.get_or_insert(now);
        self.sent += size;
        self.packets += 1;
    }

    /// Whether it has had its length and its packets.
    pub(super) fn done(&self) -> bool {
        self.packets >= self.probe.min_packets.max(1)
            && self.sent >= self.probe.rate.bytes_in(self.probe.length)
    }
}
