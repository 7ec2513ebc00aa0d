//! The pacer: queues of packets, and the times at which a decision lets them leave (rate, window, gap, padding,
//! heartbeats, probes).

mod probe;
mod waiting;

use crate::packetizer::Queued;
use probe::BitrateProber;
use std::collections::VecDeque;
use tidegate_core::{Decision, Rate, Size, Span, Time};
use waiting::QueueAges;

/// A packet that may leave now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// A queued packet, and the id of the probe that it is part of, if any.
    Media(Queued, Option<u32>),
    /// A packet of padding, and the id of the probe that it is part of, if any.
    Padding(Option<u32>),
    /// The smallest packet of padding, against silence.
    Heartbeat,
}

/// The pacer's queue and its budgets.
#[derive(Debug)]
pub(crate) struct Pacer {
    audio: VecDeque<Queued>,
    /// Retransmissions, which go before video, as in libwebrtc (`prioritized_packet_queue.cc`), and are paced like it.
    resent: VecDeque<Queued>,
    resent_backlog: Size,
    video: VecDeque<Queued>,
    /// Bytes of the queued packets, as rates count them.
    backlog: Size,
    ages: QueueAges,
    /// Time that a packet may wait if the decision drains the queue.
    queue_limit: Span,
    /// Bytes that rates count for a packet beyond its payload and its marks.
    header: u32,
    /// Bytes that rates count for a packet of padding.
    padding_size: u32,
    /// Length of the burst that may leave whenever media comes to an empty queue; `None`: [`BURST_TIME`].
    burst: Option<Span>,
    pacing: Rate,
    /// Sending rate: `pacing`, or more where packets would otherwise wait for too long.
    rate: Rate,
    padding: Rate,
    pace_audio: bool,
    drain_queue: bool,
    min_gap: Option<Span>,
    window: Option<Size>,
    heartbeat: Option<Span>,
    /// When the current group of packets began.
    opened: Time,
    /// When the sending rate has paid off all bytes sent.
    drained: Time,
    /// When the padding rate has paid off all bytes sent.
    padded: Time,
    /// When the last packet left.
    last: Option<Time>,
    probes: BitrateProber,
}

/// Time whose bytes leave at once where a decision sets no burst (draft-ietf-rmcat-gcc-02 section 4: `burst_time`).
const BURST_TIME: Span = Span::from_millis(5);

/// Largest size of a burst (libwebrtc's `pacing_controller.h`).
const MAX_BURST_SIZE: Size = Size::from_bytes(63_000);

/// Smallest time between heartbeats, whatever a controller wants: with no time between them a run would never end.
const HEARTBEAT_INTERVAL_MIN: Span = Span::from_millis(1);

impl Pacer {
    /// An empty pacer; `header` and `padding_size` in bytes as rates count them.
    pub(crate) fn new(queue_limit: Span, header: u32, padding_size: u32) -> Self {
        Self {
            audio: VecDeque::new(),
            resent: VecDeque::new(),
            resent_backlog: Size::ZERO,
            video: VecDeque::new(),
            backlog: Size::ZERO,
            ages: QueueAges::default(),
            queue_limit,
            header,
            padding_size,
            burst: None,
            pacing: Rate::ZERO,
            rate: Rate::ZERO,
            padding: Rate::ZERO,
            pace_audio: false,
            drain_queue: false,
            min_gap: None,
            window: None,
            heartbeat: None,
            opened: Time::ZERO,
            drained: Time::ZERO,
            padded: Time::ZERO,
            last: None,
            probes: BitrateProber::default(),
        }
    }

    /// Applies a decision.
    pub(crate) fn decide(&mut self, now: Time, decision: &Decision) {
        (self.pacing, self.drain_queue) = (decision.pacing, decision.drain_queue);
        self.set_rate(now);
        if decision.padding != self.padding {
            self.padded = rescale(now, self.padded, self.padding, decision.padding);
            self.padding = decision.padding;
        }
        (self.pace_audio, self.burst) = (decision.pace_audio, decision.burst);
        self.min_gap = decision.min_gap;
        self.window = decision.window;
        self.heartbeat = decision.heartbeat.map(|interval| interval.max(HEARTBEAT_INTERVAL_MIN));
        for &probe in decision.probes.iter() {
            self.probes.create_probe_cluster(now, probe);
        }
    }

    /// Sets the sending rate: the pacing rate, or more where the queue is too long for it.
    fn set_rate(&mut self, now: Time) {
        let mut rate = self.pacing;
        if self.drain_queue && self.backlog > Size::ZERO {
            rate = rate.max(self.ages.rate(now, self.backlog, self.queue_limit));
        }
        if rate != self.rate {
            self.drained = rescale(now, self.drained, self.rate, rate);
            self.rate = rate;
        }
    }

    /// Sets the bytes that rates count for a packet beyond its payload, and for a packet of padding.
    pub(crate) fn set_header(&mut self, header: u32, padding_size: u32) {
        let waiting = (self.audio.len() + self.resent.len() + self.video.len()) as u64;
        let bytes = |header: u32| Size::from_bytes(waiting * u64::from(header));
        self.backlog = self.backlog - bytes(self.header) + bytes(header);
        (self.header, self.padding_size) = (header, padding_size);
        self.check();
    }

    /// Asserts that bytes are counted as long as packets wait, and no longer.
    fn check(&self) {
        let waits = !(self.audio.is_empty() && self.resent.is_empty() && self.video.is_empty());
        debug_assert!(waits || self.backlog == Size::ZERO, "{} wait in no packet", self.backlog);
        debug_assert!(
            self.resent_backlog <= self.backlog,
            "{} wait, {} of them to be sent again",
            self.backlog,
            self.resent_backlog
        );
        debug_assert!(
            !self.resent.is_empty() || self.resent_backlog == Size::ZERO,
            "no packet is to be sent again"
        );
    }

    /// Bytes that rates count for a packet.
    fn counted_size(&self, packet: &Queued) -> Size {
        Size::from_bytes(u64::from(packet.payload) + u64::from(self.header) + u64::from(packet.marks))
    }

    fn enqueue(&mut self, packet: &Queued) {
        let counted_size = self.counted_size(packet);
        self.backlog += counted_size;
        self.ages.enqueued(packet);
        self.probes.incoming_packet(counted_size);
        if self.drain_queue {
            self.set_rate(packet.since);
        }
    }

    pub(crate) fn push(&mut self, audio: bool, packet: Queued) {
        // the bytes paid off by now make room for another burst (`PacingController::EnqueuePacket`), also when audio
        // passes
        let unpaced = audio && !self.pace_audio;
        if self.burst.is_some() && (unpaced || self.backlog == Size::ZERO) {
            self.opened = packet.since;
        }
        self.enqueue(&packet);
        if audio { self.audio.push_back(packet) } else { self.video.push_back(packet) }
    }

    pub(crate) fn push_resent(&mut self, packet: Queued) {
        self.enqueue(&packet);
        self.resent_backlog += payload(&packet);
        self.resent.push_back(packet);
    }

    /// Bytes of payload in the queue of retransmissions.
    pub(crate) fn resent_backlog(&self) -> Size {
        self.resent_backlog
    }

    /// Bytes of the queued packets, as rates count them.
    pub(crate) fn backlog(&self) -> Size {
        self.backlog
    }

    /// Time until all queued packets have left (libwebrtc: `ExpectedQueueTime`).
    pub(crate) fn expected_queue_time(&self) -> Span {
        if self.backlog == Size::ZERO { Span::ZERO } else { self.rate.time_for(self.backlog) }
    }

    /// Time that the oldest queued packet of media has waited by `now`; zero if there is none.
    pub(crate) fn delay(&self, now: Time) -> Span {
        let oldest =
            self.audio.front().into_iter().chain(self.video.front()).map(|packet| packet.since).min();
        oldest.map_or(Span::ZERO, |since| now - since)
    }

    /// Drops all queued packets and probes.
    pub(crate) fn clear(&mut self) {
        self.audio.clear();
        self.resent.clear();
        self.video.clear();
        self.probes.clear();
        (self.backlog, self.resent_backlog) = (Size::ZERO, Size::ZERO);
        self.ages = QueueAges::default();
    }

    /// When [`Pacer::turn`] returns a packet next, with `in_flight` bytes on their way. A time in the past: at once;
    /// [`Time::MAX`]: not before a change.
    pub(crate) fn due(&self, in_flight: Size) -> Time {
        self.packet_due(in_flight).min(self.heartbeat_due())
    }

    /// When a heartbeat is due; at once if nothing was ever sent.
    fn heartbeat_due(&self) -> Time {
        match (self.heartbeat, self.last) {
            (None, _) => Time::MAX,
            (Some(_), None) => Time::ZERO,
            (Some(interval), Some(last)) => last + interval,
        }
    }

    /// When a probe, media or padding is due.
    fn packet_due(&self, in_flight: Size) -> Time {
        let gap = match (self.min_gap, self.last) {
            (Some(gap), Some(last)) => last + gap,
            _ => Time::ZERO,
        };
        if let Some(due) = self.probes.due() {
            return due.max(gap);
        }
        let head = match (self.audio.front(), self.resent.front().or(self.video.front())) {
            (Some(audio), _) if self.pace_audio => Some((self.media_due(), audio)),
            (Some(audio), _) => Some((Time::ZERO, audio)),
            (None, Some(video)) => Some((self.media_due(), video)),
            (None, None) => None,
        };
        let (due, size) = match head {
            Some((due, packet)) => (due, self.counted_size(packet)),
            None if self.padding > Rate::ZERO => {
                (self.padded, Size::from_bytes(u64::from(self.padding_size)))
            }
            None => return Time::MAX,
        };
        // with nothing in flight one packet may always go, unless heartbeats are there to open the window again
        let bound = in_flight > Size::ZERO || self.heartbeat.is_some();
        let shut = self.window.is_some_and(|window| bound && in_flight + size > window);
        if shut { Time::MAX } else { due.max(gap) }
    }

    /// When the next paced packet may go: at once while the current group has room, else when all bytes sent are paid
    /// off. A group has the bytes that the pacing rate carries in a burst, and at a low rate one packet.
    fn media_due(&self) -> Time {
        if self.rate == Rate::ZERO {
            return Time::MAX;
        }
        let burst = self.burst.map_or(BURST_TIME, |burst| burst.min(self.rate.time_for(MAX_BURST_SIZE)));
        if self.drained < self.opened + burst { Time::ZERO } else { self.drained }
    }

    /// The packet that leaves at `now`, if one does; [`Pacer::sent`] has to follow.
    pub(crate) fn turn(&mut self, now: Time, in_flight: Size) -> Option<Turn> {
        if self.packet_due(in_flight) > now {
            return (self.heartbeat_due() <= now).then_some(Turn::Heartbeat);
        }
        let cluster = self.probes.present();
        let probe = cluster.map(|cluster| cluster.probe.id);
        // a probe begins with padding, so that its measurement begins with the same packet each time
        // (`pacing_controller.cc`)
        if cluster.is_some_and(|cluster| !cluster.started()) {
            return Some(Turn::Padding(probe));
        }
        let packet = self.audio.pop_front().or_else(|| self.pop_resent()).or_else(|| self.video.pop_front());
        let Some(packet) = packet else {
            // libwebrtc puts padding into the queue, too, and a queued packet may begin a probe
            self.probes.incoming_packet(Size::from_bytes(u64::from(self.padding_size)));
            return Some(Turn::Padding(probe));
        };
        self.backlog -= self.counted_size(&packet);
        self.ages.dequeued(&packet);
        self.check();
        Some(Turn::Media(packet, probe))
    }

    fn pop_resent(&mut self) -> Option<Queued> {
        let packet = self.resent.pop_front()?;
        self.resent_backlog -= payload(&packet);
        Some(packet)
    }

    /// Charges `size` bytes that have left at `now`. Audio and probes are charged, too, so that paced packets make room
    /// for them. `probe`: whether the packet was part of a probe.
    pub(crate) fn sent(&mut self, now: Time, size: Size, probe: bool) {
        debug_assert!(self.last <= Some(now), "a packet leaves at {now}, after one at {:?}", self.last);
        self.last = Some(now);
        if now >= self.drained {
            (self.opened, self.drained) = (now, now);
        }
        if self.rate > Rate::ZERO {
            self.drained += self.rate.time_for(size);
        }
        if self.padding > Rate::ZERO {
            self.padded = self.padded.max(now) + self.padding.time_for(size);
        }
        if probe {
            self.probes.sent(now, size);
        }
        if self.drain_queue {
            self.set_rate(now);
        }
    }
}

/// Payload bytes of a packet.
fn payload(packet: &Queued) -> Size {
    Size::from_bytes(u64::from(packet.payload))
}

/// The instant at which the rate `new` pays off the debt that the rate `old` would have paid off by `until`.
fn rescale(now: Time, until: Time, old: Rate, new: Rate) -> Time {
    if until <= now {
        until
    } else if new == Rate::ZERO {
        now
    } else {
        now + new.time_for(old.bytes_in(until - now))
    }
}

#[cfg(test)]
mod tests;
