//! When packets leave: the queues, and what a decision allows them (rate, window, gap, padding, heartbeats, probes).

mod probe;
mod waiting;

use crate::packetizer::Queued;
use probe::Prober;
use std::collections::VecDeque;
use tidegate_core::{Decision, Rate, Size, Span, Time};
use waiting::Waiting;

/// What may leave now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// This packet, as part of a probe or not.
    Media(Queued, Option<u32>),
    /// A packet of padding, as part of a probe or not.
    Padding(Option<u32>),
    /// The smallest packet of padding, against silence.
    Heartbeat,
}

/// The pacer's queue and its budgets.
#[derive(Debug)]
pub(crate) struct Pacer {
    audio: VecDeque<Queued>,
    /// Retransmissions: before video, as in libwebrtc (`prioritized_packet_queue.cc`), and paced like it.
    resent: VecDeque<Queued>,
    resent_backlog: Size,
    video: VecDeque<Queued>,
    /// Bytes that wait, as rates count them.
    backlog: Size,
    waiting: Waiting,
    /// For how long a packet may wait where a decision says that the queue is to be drained.
    queue_limit: Span,
    /// What each packet weighs beyond its payload, without its marks.
    header: u32,
    /// What a packet of padding weighs.
    padding_size: u32,
    /// How long a burst may leave whenever media comes to an empty queue; `None`: groups of [`GROUP`] leave.
    burst: Option<Span>,
    pacing: Rate,
    /// What is sent at: `pacing`, or more where what waits would otherwise wait for too long.
    rate: Rate,
    padding: Rate,
    pace_audio: bool,
    drain_queue: bool,
    min_gap: Option<Span>,
    window: Option<Size>,
    heartbeat: Option<Span>,
    /// When the present group of packets began, and when all that was sent is paid off.
    opened: Time,
    drained: Time,
    padded: Time,
    /// When the last packet left.
    last: Option<Time>,
    probes: Prober,
}

/// What leaves at once where a decision says nothing of bursts (draft-ietf-rmcat-gcc-02 section 4).
const GROUP: Span = Span::from_millis(5);

/// No burst has more (libwebrtc's `pacing_controller.h`: `kMaxBurstSize`).
const BURST_MOST: Size = Size::from_bytes(63_000);

/// Heartbeats are no faster, whatever a controller asks for: of none at all a run would never end.
const HEARTBEAT_LEAST: Span = Span::from_millis(1);

impl Pacer {
    /// `header` and `padding_size` as rates count bytes.
    pub(crate) fn new(queue_limit: Span, header: u32, padding_size: u32) -> Self {
        Self {
            audio: VecDeque::new(),
            resent: VecDeque::new(),
            resent_backlog: Size::ZERO,
            video: VecDeque::new(),
            backlog: Size::ZERO,
            waiting: Waiting::default(),
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
            probes: Prober::default(),
        }
    }

    /// Takes up a decision.
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
        self.heartbeat = decision.heartbeat.map(|most| most.max(HEARTBEAT_LEAST));
        for &probe in decision.probes.iter() {
            self.probes.ask(now, probe);
        }
    }

    /// Sends at the pacing rate, and faster where the queue is too long for it.
    fn set_rate(&mut self, now: Time) {
        let mut rate = self.pacing;
        if self.drain_queue && self.backlog > Size::ZERO {
            rate = rate.max(self.waiting.rate(now, self.backlog, self.queue_limit));
        }
        if rate != self.rate {
            self.drained = rescale(now, self.drained, self.rate, rate);
            self.rate = rate;
        }
    }

    /// From now on a packet weighs `header` beyond its payload, one of padding `padding_size`.
    pub(crate) fn set_header(&mut self, header: u32, padding_size: u32) {
        let waiting = (self.audio.len() + self.resent.len() + self.video.len()) as u64;
        let bytes = |header: u32| Size::from_bytes(waiting * u64::from(header));
        self.backlog = self.backlog - bytes(self.header) + bytes(header);
        (self.header, self.padding_size) = (header, padding_size);
        self.check();
    }

    /// Holds that bytes are counted for as long as packets wait, and no longer.
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

    /// What a packet weighs.
    fn weight(&self, packet: &Queued) -> Size {
        Size::from_bytes(u64::from(packet.payload) + u64::from(self.header) + u64::from(packet.marks))
    }

    fn came(&mut self, packet: &Queued) {
        let weight = self.weight(packet);
        self.backlog += weight;
        self.waiting.came(packet);
        self.probes.came(weight);
        if self.drain_queue {
            self.set_rate(packet.since);
        }
    }

    pub(crate) fn push(&mut self, audio: bool, packet: Queued) {
        // what is paid off by now makes room for another burst (`PacingController::EnqueuePacket`), also when audio passes
        let unpaced = audio && !self.pace_audio;
        if self.burst.is_some() && (unpaced || self.backlog == Size::ZERO) {
            self.opened = packet.since;
        }
        self.came(&packet);
        if audio { self.audio.push_back(packet) } else { self.video.push_back(packet) }
    }

    pub(crate) fn push_resent(&mut self, packet: Queued) {
        self.came(&packet);
        self.resent_backlog += payload(&packet);
        self.resent.push_back(packet);
    }

    /// Bytes of payload that wait to be sent once more.
    pub(crate) fn resent_backlog(&self) -> Size {
        self.resent_backlog
    }

    /// Bytes that wait, as rates count them.
    pub(crate) fn backlog(&self) -> Size {
        self.backlog
    }

    /// How long it will take until all that waits has left (`ExpectedQueueTime`).
    pub(crate) fn expected(&self) -> Span {
        if self.backlog == Size::ZERO { Span::ZERO } else { self.rate.time_for(self.backlog) }
    }

    /// How long the packet of media that has waited longest has waited by `now`; zero if none waits.
    pub(crate) fn delay(&self, now: Time) -> Span {
        let oldest =
            self.audio.front().into_iter().chain(self.video.front()).map(|packet| packet.since).min();
        oldest.map_or(Span::ZERO, |since| now - since)
    }

    /// Throws away all that waits.
    pub(crate) fn clear(&mut self) {
        self.audio.clear();
        self.resent.clear();
        self.video.clear();
        self.probes.clear();
        (self.backlog, self.resent_backlog) = (Size::ZERO, Size::ZERO);
        self.waiting = Waiting::default();
    }

    /// When [`Pacer::turn`] gives something next, with `in_flight` bytes on their way; the past for at
    /// once, [`Time::MAX`] for not before something changes.
    pub(crate) fn due(&self, in_flight: Size) -> Time {
        self.packet_due(in_flight).min(self.beat())
    }

    /// When there has been enough silence; at once if nothing was ever sent.
    fn beat(&self) -> Time {
        match (self.heartbeat, self.last) {
            (None, _) => Time::MAX,
            (Some(_), None) => Time::ZERO,
            (Some(most), Some(last)) => last + most,
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
        let (at, size) = match head {
            Some((at, packet)) => (at, self.weight(packet)),
            None if self.padding > Rate::ZERO => {
                (self.padded, Size::from_bytes(u64::from(self.padding_size)))
            }
            None => return Time::MAX,
        };
        // with nothing in flight one packet may always go, unless it is for heartbeats to open the window again
        let bound = in_flight > Size::ZERO || self.heartbeat.is_some();
        let shut = self.window.is_some_and(|window| bound && in_flight + size > window);
        if shut { Time::MAX } else { at.max(gap) }
    }

    /// When the next paced packet may go: at once while the present group has room, else when all that
    /// was sent is paid off. A group is what the pacing rate carries in a burst, and at a low rate one packet.
    fn media_due(&self) -> Time {
        if self.rate == Rate::ZERO {
            return Time::MAX;
        }
        let burst = self.burst.map_or(GROUP, |burst| burst.min(self.rate.time_for(BURST_MOST)));
        if self.drained < self.opened + burst { Time::ZERO } else { self.drained }
    }

    /// What leaves at `now`, if anything does; to be followed by [`Pacer::sent`].
    pub(crate) fn turn(&mut self, now: Time, in_flight: Size) -> Option<Turn> {
        if self.packet_due(in_flight) > now {
            return (self.beat() <= now).then_some(Turn::Heartbeat);
        }
        let cluster = self.probes.present();
        let probe = cluster.map(|cluster| cluster.probe.id);
        // a probe begins with padding, so that what it is measured from is the same each time (`pacing_controller.cc`)
        if cluster.is_some_and(|cluster| !cluster.started()) {
            return Some(Turn::Padding(probe));
        }
        let packet = self.audio.pop_front().or_else(|| self.pop_resent()).or_else(|| self.video.pop_front());
        let Some(packet) = packet else {
            // libwebrtc puts padding into the queue, too, and what comes there may begin a probe
            self.probes.came(Size::from_bytes(u64::from(self.padding_size)));
            return Some(Turn::Padding(probe));
        };
        self.backlog -= self.weight(&packet);
        self.waiting.left(&packet);
        self.check();
        Some(Turn::Media(packet, probe))
    }

    fn pop_resent(&mut self) -> Option<Queued> {
        let packet = self.resent.pop_front()?;
        self.resent_backlog -= payload(&packet);
        Some(packet)
    }

    /// Charges `size` bytes that have left at `now`. Audio and probes are charged like all else, so that
    /// what is paced makes room for them. `probe`: it was part of one.
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

/// What waits of a packet to be sent once more.
fn payload(packet: &Queued) -> Size {
    Size::from_bytes(u64::from(packet.payload))
}

/// The instant at which what was owed until `until` at the rate `old` is paid off at the rate `new`.
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
