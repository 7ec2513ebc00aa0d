//! Probes: when their packets leave, and when they have had enough of them (libwebrtc's
//! `modules/pacing/bitrate_prober.cc`).

use std::collections::VecDeque;
use tidegate_core::control::Probe;
use tidegate_core::{Size, Span, Time};

/// More probes than this do not wait: the oldest give way to new ones (`kMaxPendingProbeClusters`; libwebrtc lets one more
/// in before it looks).
const MOST: usize = 5;

/// Nor does one that has waited longer than this when a new one comes (`kProbeClusterTimeout`).
const WAITS: Span = Span::from_secs(5);

/// A packet of this size begins a probe whatever its rate (`min_packet_size`).
const BEGINS: Size = Size::from_bytes(200);

/// The probes that were asked for, one after the other. Where there is no media there is none: the first waits until a
/// packet comes in that is large enough, and those behind it follow.
#[derive(Debug, Default)]
pub(super) struct Prober {
    waiting: VecDeque<Cluster>,
    begun: bool,
    /// When the next one may begin: once the rate of the one before has carried all that it was.
    next: Time,
}

impl Prober {
    pub(super) fn ask(&mut self, now: Time, probe: Probe) {
        while self.waiting.front().is_some_and(|one| now - one.asked > WAITS || self.waiting.len() > MOST) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Cluster::new(probe, now));
    }

    /// A packet has come in that weighs so much.
    pub(super) fn came(&mut self, weight: Size) {
        if !self.begun && self.waiting.front().is_some_and(|one| weight >= one.least()) {
            (self.begun, self.next) = (true, Time::ZERO);
        }
    }

    /// The probe at work.
    pub(super) fn present(&self) -> Option<&Cluster> {
        self.waiting.front().filter(|_| self.begun)
    }

    /// When its next packet is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.present().map(|one| if one.started() { one.due() } else { self.next })
    }

    /// Takes note of `size` bytes that leave.
    pub(super) fn sent(&mut self, now: Time, size: Size) {
        if let Some(cluster) = self.waiting.front_mut().filter(|_| self.begun) {
            cluster.take(now, size);
            if cluster.done() {
                self.next = cluster.carried();
                self.waiting.pop_front();
                self.begun = !self.waiting.is_empty();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A probe (libwebrtc calls it a cluster).
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) probe: Probe,
    asked: Time,
    started: Option<Time>,
    sent: Size,
    groups: u32,
    /// When the present group of packets began to leave, and what had left before it.
    group: Time,
    before: Size,
}

impl Cluster {
    fn new(probe: Probe, asked: Time) -> Self {
        let (sent, group) = (Size::ZERO, Time::ZERO);
        Self { probe, asked, started: None, sent, groups: 0, group, before: sent }
    }

    /// The smallest packet that may begin it.
    fn least(&self) -> Size {
        self.probe.rate.bytes_in(self.probe.spacing).min(BEGINS)
    }

    /// Whether a packet of it has left.
    pub(super) fn started(&self) -> bool {
        self.started.is_some()
    }

    /// Whether the present group of packets has not yet what the rate carries until the next one may leave.
    fn open(&self) -> bool {
        self.probe.rate.time_for(self.sent - self.before) < self.probe.spacing
    }

    /// When its next packet is due: by what was sent so far.
    fn due(&self) -> Time {
        if self.open() { self.group } else { self.carried().max(self.group + self.probe.spacing) }
    }

    /// When its rate has carried what was sent so far.
    fn carried(&self) -> Time {
        self.started.map_or(Time::ZERO, |started| started + self.probe.rate.time_for(self.sent))
    }

    fn take(&mut self, now: Time, size: Size) {
        if self.started.is_none() || !self.open() {
            (self.group, self.before) = (now, self.sent);
            self.groups += 1;
        }
        self.started.get_or_insert(now);
        self.sent += size;
    }

    /// Whether it has had its length and its packets. What leaves at once counts as one packet, and is not broken off.
    fn done(&self) -> bool {
        !self.open()
            && self.groups >= self.probe.min_packets.max(1)
            && self.sent >= self.probe.rate.bytes_in(self.probe.length)
    }
}
