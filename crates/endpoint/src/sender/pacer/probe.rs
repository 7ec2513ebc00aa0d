//! Probes: the times at which their packets leave, and their ends (libwebrtc's `modules/pacing/bitrate_prober.cc`).

use std::collections::VecDeque;
use tidegate_core::control::Probe;
use tidegate_core::{Size, Span, Time};

/// Probes that may wait: the oldest give way to new ones (libwebrtc adds one before it checks).
const MAX_PENDING_PROBE_CLUSTERS: usize = 5;

/// Wait after which a probe is dropped when a new one comes.
const PROBE_CLUSTER_TIMEOUT: Span = Span::from_secs(5);

/// Size of a packet that begins a probe whatever its rate (libwebrtc: `BitrateProberConfig::min_packet_size`).
const MIN_PACKET_SIZE: Size = Size::from_bytes(200);

/// The requested probes, which are sent one after the other. Without media there are none: the first one waits for a
/// packet that is large enough, and the next ones follow it.
#[derive(Debug, Default)]
pub(super) struct BitrateProber {
    waiting: VecDeque<ProbeCluster>,
    active: bool,
    /// When the next probe may begin: once the rate of the one before has carried all its bytes.
    next: Time,
}

impl BitrateProber {
    pub(super) fn create_probe_cluster(&mut self, now: Time, probe: Probe) {
        while self.waiting.front().is_some_and(|cluster| {
            now - cluster.requested > PROBE_CLUSTER_TIMEOUT || self.waiting.len() > MAX_PENDING_PROBE_CLUSTERS
        }) {
            self.waiting.pop_front();
        }
        self.waiting.push_back(ProbeCluster::new(probe, now));
    }

    /// Begins the first probe if a queued packet of `size` bytes is large enough.
    pub(super) fn incoming_packet(&mut self, size: Size) {
        if !self.active && self.waiting.front().is_some_and(|cluster| size >= cluster.min_start_size()) {
            (self.active, self.next) = (true, Time::ZERO);
        }
    }

    /// The probe that is being sent.
    pub(super) fn present(&self) -> Option<&ProbeCluster> {
        self.waiting.front().filter(|_| self.active)
    }

    /// When its next packet is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.present().map(|cluster| if cluster.started() { cluster.due() } else { self.next })
    }

    /// Counts `size` bytes that leave for the current probe.
    pub(super) fn sent(&mut self, now: Time, size: Size) {
        if let Some(cluster) = self.waiting.front_mut().filter(|_| self.active) {
            cluster.take(now, size);
            if cluster.done() {
                self.next = cluster.carried();
                self.waiting.pop_front();
                self.active = !self.waiting.is_empty();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A probe (libwebrtc calls it a cluster).
#[derive(Debug)]
pub(super) struct ProbeCluster {
    pub(super) probe: Probe,
    requested: Time,
    started: Option<Time>,
    sent: Size,
    groups: u32,
    /// When the current group of packets began to leave, and the bytes that had left before it.
    group: Time,
    sent_before: Size,
}

impl ProbeCluster {
    fn new(probe: Probe, requested: Time) -> Self {
        let (sent, group) = (Size::ZERO, Time::ZERO);
        Self { probe, requested, started: None, sent, groups: 0, group, sent_before: sent }
    }

    /// The smallest packet that may begin it.
    fn min_start_size(&self) -> Size {
        self.probe.rate.bytes_in(self.probe.spacing).min(MIN_PACKET_SIZE)
    }

    /// Whether a packet of it has left.
    pub(super) fn started(&self) -> bool {
        self.started.is_some()
    }

    /// Whether the current group of packets lacks bytes that the rate carries until the next group.
    fn open(&self) -> bool {
        self.probe.rate.time_for(self.sent - self.sent_before) < self.probe.spacing
    }

    /// When its next packet is due, by the bytes sent so far.
    fn due(&self) -> Time {
        if self.open() { self.group } else { self.carried().max(self.group + self.probe.spacing) }
    }

    /// When its rate has carried the bytes sent so far.
    fn carried(&self) -> Time {
        self.started.map_or(Time::ZERO, |started| started + self.probe.rate.time_for(self.sent))
    }

    fn take(&mut self, now: Time, size: Size) {
        if self.started.is_none() || !self.open() {
            (self.group, self.sent_before) = (now, self.sent);
            self.groups += 1;
        }
        self.started.get_or_insert(now);
        self.sent += size;
    }

    /// Whether it has had its length and its packets. A group counts as one packet, and is not broken off.
    fn done(&self) -> bool {
        !self.open()
            && self.groups >= self.probe.min_packets.max(1)
            && self.sent >= self.probe.rate.bytes_in(self.probe.length)
    }
}
