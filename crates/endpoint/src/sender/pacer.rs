//! When packets leave: the leaky bucket, the window, the gap, padding and probes of a decision.

use crate::packetizer::Queued;
use std::collections::VecDeque;
use tidegate_core::control::Probe;
use tidegate_core::{Decision, Rate, Size, Span, Time};

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

/// A probe at work.
#[derive(Debug)]
struct Cluster {
    probe: Probe,
    started: Option<Time>,
    sent: Size,
    packets: u32,
    /// When the present group of packets began to leave, and what had left before it.
    group: Time,
    before: Size,
}

impl Cluster {
    fn new(probe: Probe) -> Self {
        Self { probe, started: None, sent: Size::ZERO, packets: 0, group: Time::ZERO, before: Size::ZERO }
    }

    /// Whether the present group of packets has not yet what the rate carries until the next one may leave.
    fn open(&self) -> bool {
        self.probe.rate.time_for(self.sent - self.before) < self.probe.spacing
    }

    /// When its next packet is due: as libwebrtc's `BitrateProber`, by what was sent so far.
    fn due(&self) -> Time {
        match self.started {
            None => Time::ZERO,
            Some(_) if self.open() => self.group,
            Some(started) => {
                (started + self.probe.rate.time_for(self.sent)).max(self.group + self.probe.spacing)
            }
        }
    }

    fn take(&mut self, now: Time, size: Size) {
        if self.started.is_none() || !self.open() {
            (self.group, self.before) = (now, self.sent);
        }
        self.started.get_or_insert(now);
        self.sent += size;
        self.packets += 1;
    }

    fn done(&self) -> bool {
        self.packets >= self.probe.min_packets.max(1)
            && self.sent >= self.probe.rate.bytes_in(self.probe.length)
    }
}

/// The pacer's queue and its budgets.
#[derive(Debug)]
pub(crate) struct Pacer {
    audio: VecDeque<Queued>,
    /// Retransmissions: before video, as in libwebrtc (`prioritized_packet_queue.cc`), and paced like it.
    resent: VecDeque<Queued>,
    resent_backlog: u64,
    video: VecDeque<Queued>,
    /// Bytes that wait, as rates count them.
    backlog: u64,
    /// What each packet weighs beyond its payload, without its marks.
    header: u32,
    /// What a packet of padding weighs.
    padding_size: u32,
    burst: Span,
    pacing: Rate,
    padding: Rate,
    pace_audio: bool,
    min_gap: Option<Span>,
    window: Option<Size>,
    heartbeat: Option<Span>,
    /// When the present group of packets began, and when all that was sent is paid off.
    opened: Time,
    drained: Time,
    padded: Time,
    /// When the last packet left.
    last: Option<Time>,
    probes: VecDeque<Cluster>,
}

/// More probes than this do not wait: the oldest give way (libwebrtc `kMaxPendingProbeClusters`).
const PROBES_MAX: usize = 5;

/// Heartbeats are no faster, whatever a controller asks for: of none at all a run would never end.
const HEARTBEAT_LEAST: Span = Span::from_millis(1);

impl Pacer {
    /// `header` and `padding_size` as rates count bytes.
    pub(crate) fn new(burst: Span, header: u32, padding_size: u32) -> Self {
        Self {
            audio: VecDeque::new(),
            resent: VecDeque::new(),
            resent_backlog: 0,
            video: VecDeque::new(),
            backlog: 0,
            header,
            padding_size,
            burst,
            pacing: Rate::ZERO,
            padding: Rate::ZERO,
            pace_audio: false,
            min_gap: None,
            window: None,
            heartbeat: None,
            opened: Time::ZERO,
            drained: Time::ZERO,
            padded: Time::ZERO,
            last: None,
            probes: VecDeque::new(),
        }
    }

    /// Takes up a decision.
    pub(crate) fn decide(&mut self, now: Time, decision: &Decision) {
        if decision.pacing != self.pacing {
            self.drained = rescale(now, self.drained, self.pacing, decision.pacing);
            self.pacing = decision.pacing;
        }
        if decision.padding != self.padding {
            self.padded = rescale(now, self.padded, self.padding, decision.padding);
            self.padding = decision.padding;
        }
        self.pace_audio = decision.pace_audio;
        self.min_gap = decision.min_gap;
        self.window = decision.window;
        self.heartbeat = decision.heartbeat.map(|most| most.max(HEARTBEAT_LEAST));
        for &probe in decision.probes.iter() {
            if self.probes.len() == PROBES_MAX {
                self.probes.pop_front();
            }
            self.probes.push_back(Cluster::new(probe));
        }
    }

    /// From now on a packet weighs `header` beyond its payload, one of padding `padding_size`.
    pub(crate) fn set_header(&mut self, header: u32, padding_size: u32) {
        let waiting = (self.audio.len() + self.resent.len() + self.video.len()) as u64;
        self.backlog = self.backlog - waiting * u64::from(self.header) + waiting * u64::from(header);
        (self.header, self.padding_size) = (header, padding_size);
    }

    /// What a packet weighs.
    fn weight(&self, packet: &Queued) -> u64 {
        u64::from(packet.payload) + u64::from(self.header) + u64::from(packet.marks)
    }

    pub(crate) fn push(&mut self, audio: bool, packet: Queued) {
        self.backlog += self.weight(&packet);
        if audio { self.audio.push_back(packet) } else { self.video.push_back(packet) }
    }

    pub(crate) fn push_resent(&mut self, packet: Queued) {
        self.backlog += self.weight(&packet);
        self.resent_backlog += u64::from(packet.payload);
        self.resent.push_back(packet);
    }

    /// Bytes of payload that wait to be sent once more.
    pub(crate) fn resent_backlog(&self) -> Size {
        Size::from_bytes(self.resent_backlog)
    }

    /// Bytes that wait, as rates count them.
    pub(crate) fn backlog(&self) -> Size {
        Size::from_bytes(self.backlog)
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
        (self.backlog, self.resent_backlog) = (0, 0);
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
        if let Some(cluster) = self.probes.front() {
            return cluster.due().max(gap);
        }
        let head = match (self.audio.front(), self.resent.front().or(self.video.front())) {
            (Some(audio), _) if self.pace_audio => Some((self.media_due(), audio)),
            (Some(audio), _) => Some((Time::ZERO, audio)),
            (None, Some(video)) => Some((self.media_due(), video)),
            (None, None) => None,
        };
        let (at, size) = match head {
            Some((at, packet)) => (at, self.weight(packet)),
            None if self.padding > Rate::ZERO => (self.padded, u64::from(self.padding_size)),
            None => return Time::MAX,
        };
        // with nothing in flight one packet may always go, unless it is for heartbeats to open the window again
        let bound = in_flight > Size::ZERO || self.heartbeat.is_some();
        let shut = self.window.is_some_and(|window| bound && in_flight + Size::from_bytes(size) > window);
        if shut { Time::MAX } else { at.max(gap) }
    }

    /// When the next paced packet may go: at once while the present group has room, else when all that
    /// was sent is paid off. A group is what the pacing rate carries in a burst (draft-ietf-rmcat-gcc-02
    /// section 4), and at a low rate one packet.
    fn media_due(&self) -> Time {
        if self.pacing == Rate::ZERO {
            Time::MAX
        } else if self.drained < self.opened + self.burst {
            Time::ZERO
        } else {
            self.drained
        }
    }

    /// What leaves at `now`, if anything does; to be followed by [`Pacer::sent`].
    pub(crate) fn turn(&mut self, now: Time, in_flight: Size) -> Option<Turn> {
        if self.packet_due(in_flight) > now {
            return (self.beat() <= now).then_some(Turn::Heartbeat);
        }
        let probe = self.probes.front().map(|cluster| cluster.probe.id);
        let packet = self.audio.pop_front().or_else(|| self.pop_resent()).or_else(|| self.video.pop_front());
        let Some(packet) = packet else { return Some(Turn::Padding(probe)) };
        self.backlog -= self.weight(&packet);
        Some(Turn::Media(packet, probe))
    }

    fn pop_resent(&mut self) -> Option<Queued> {
        let packet = self.resent.pop_front()?;
        self.resent_backlog -= u64::from(packet.payload);
        Some(packet)
    }

    /// Charges `size` bytes that have left at `now`. Audio and probes are charged like all else, so that
    /// what is paced makes room for them.
    pub(crate) fn sent(&mut self, now: Time, size: Size) {
        self.last = Some(now);
        if now >= self.drained {
            (self.opened, self.drained) = (now, now);
        }
        if self.pacing > Rate::ZERO {
            self.drained += self.pacing.time_for(size);
        }
        if self.padding > Rate::ZERO {
            self.padded = self.padded.max(now) + self.padding.time_for(size);
        }
        if let Some(cluster) = self.probes.front_mut() {
            cluster.take(now, size);
            if cluster.done() {
                self.probes.pop_front();
            }
        }
    }
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
mod tests {
    use super::*;
    use tidegate_core::control::Probes;

    const PACKET: Queued = Queued {
        since: Time::ZERO,
        timestamp: 0,
        frame: 0,
        payload: 976,
        original: 0,
        stream: 0,
        flags: 0,
        marks: 0,
    };
    const SIZE: Size = Size::from_bytes(1000);
    const PROBE: Probe = Probe {
        id: 7,
        rate: Rate::from_mbps(4),
        length: Span::from_millis(15),
        min_packets: 5,
        spacing: Span::ZERO,
    };

    fn pacer(decision: Decision) -> Pacer {
        let mut pacer = Pacer::new(Span::from_millis(5), 24, 248);
        pacer.decide(Time::ZERO, &decision);
        pacer
    }

    /// Sends all that may leave up to `until` and gives the times.
    fn drive(pacer: &mut Pacer, until: Time) -> Vec<(Time, Turn)> {
        let (mut sent, mut now) = (Vec::new(), Time::ZERO);
        loop {
            now = pacer.due(Size::ZERO).max(now);
            if now > until {
                return sent;
            }
            let turn = pacer.turn(now, Size::ZERO).expect("it said that something is due");
            pacer.sent(now, if matches!(turn, Turn::Padding(_)) { Size::from_bytes(248) } else { SIZE });
            sent.push((now, turn));
        }
    }

    #[test]
    fn low_rates_are_even_and_high_rates_go_in_bursts_of_5_ms() {
        let mut slow = pacer(Decision::rate(Rate::from_mbps(1)));
        (0..4).for_each(|_| slow.push(false, PACKET));
        let times: Vec<Time> =
            drive(&mut slow, Time::MAX - Span::from_nanos(1)).iter().map(|s| s.0).collect();
        assert_eq!(times, [0, 8, 16, 24].map(Time::from_millis));

        let mut fast = pacer(Decision::rate(Rate::from_mbps(8)));
        (0..1001).for_each(|_| fast.push(false, PACKET));
        let times: Vec<Time> =
            drive(&mut fast, Time::MAX - Span::from_nanos(1)).iter().map(|s| s.0).collect();
        assert_eq!(times[..6], [0, 0, 0, 0, 0, 5].map(Time::from_millis));
        assert_eq!(times[1000], Time::from_secs(1), "1000 packets of 8000 bits take exactly a second");
        assert_eq!(fast.backlog(), Size::ZERO);
    }

    #[test]
    fn audio_goes_first_and_is_paid_for() {
        let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
        (0..2).for_each(|_| pacer.push(false, PACKET));
        assert_eq!(drive(&mut pacer, Time::ZERO).len(), 1);
        pacer.push(true, Queued { stream: 1, ..PACKET });
        assert!(matches!(
            pacer.turn(Time::ZERO, Size::ZERO),
            Some(Turn::Media(Queued { stream: 1, .. }, None))
        ));
        pacer.sent(Time::ZERO, SIZE);
        assert_eq!(pacer.due(Size::ZERO), Time::from_millis(16));
    }

    #[test]
    fn audio_waits_where_it_is_told_to() {
        let mut pacer = pacer(Decision { pace_audio: true, ..Decision::rate(Rate::from_mbps(1)) });
        (0..2).for_each(|_| pacer.push(false, PACKET));
        (0..2).for_each(|_| pacer.push(true, Queued { stream: 1, ..PACKET }));
        let sent = drive(&mut pacer, Time::from_secs(1));
        let times: Vec<Time> = sent.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 8, 16, 24].map(Time::from_millis), "1000 bytes each");
        let audio = |turn: &Turn| matches!(turn, Turn::Media(Queued { stream: 1, .. }, None));
        assert!(audio(&sent[0].1) && audio(&sent[1].1) && !audio(&sent[2].1), "but it goes first");
    }

    #[test]
    fn a_new_rate_pays_off_what_is_owed() {
        let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
        (0..2).for_each(|_| pacer.push(false, PACKET));
        assert_eq!(drive(&mut pacer, Time::ZERO).len(), 1);
        // half of the packet is paid at 4 ms; the rest takes 1 ms at four times the rate
        pacer.decide(Time::from_millis(4), &Decision::rate(Rate::from_mbps(4)));
        pacer.decide(Time::from_millis(4), &Decision::rate(Rate::from_mbps(4)));
        assert_eq!(pacer.drained, Time::from_millis(5));
        pacer.decide(Time::from_millis(4), &Decision::rate(Rate::ZERO));
        assert_eq!(pacer.due(Size::ZERO), Time::MAX);
    }

    #[test]
    fn window_and_gap_hold_packets_back() {
        let window = Some(Size::from_bytes(2500));
        let mut pacer = pacer(Decision { window, ..Decision::rate(Rate::from_mbps(100)) });
        (0..3).for_each(|_| pacer.push(false, PACKET));
        assert_eq!(pacer.due(Size::from_bytes(1500)), Time::ZERO, "just fits");
        assert_eq!(pacer.due(Size::from_bytes(1501)), Time::MAX);
        assert_eq!(pacer.turn(Time::ZERO, Size::from_bytes(1501)), None);
        let tiny = Some(Size::from_bytes(10));
        pacer.decide(Time::ZERO, &Decision { window: tiny, ..Decision::rate(Rate::from_mbps(100)) });
        assert_eq!(pacer.due(Size::ZERO), Time::ZERO, "one packet may always be in flight");

        let gap = Decision { min_gap: Some(Span::from_millis(10)), ..Decision::rate(Rate::from_mbps(100)) };
        pacer.decide(Time::ZERO, &gap);
        pacer.push(true, PACKET);
        let times: Vec<Time> = drive(&mut pacer, Time::from_secs(1)).iter().map(|s| s.0).collect();
        assert_eq!(times, [0, 10, 20, 30].map(Time::from_millis), "audio, too");
    }

    #[test]
    fn another_header_weighs_on_what_waits() {
        let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
        (0..3).for_each(|_| pacer.push(false, PACKET));
        assert_eq!(pacer.backlog(), SIZE * 3);
        pacer.set_header(36, 260);
        assert_eq!(pacer.backlog(), Size::from_bytes(3 * 1012));
        drive(&mut pacer, Time::from_secs(1));
        assert_eq!(pacer.backlog(), Size::ZERO);
    }

    #[test]
    fn padding_fills_what_media_leaves() {
        let padded = Decision { padding: Rate::from_kbps(248), ..Decision::rate(Rate::from_mbps(1)) };
        let mut pacer = pacer(padded);
        let sent = drive(&mut pacer, Time::from_millis(1000));
        assert_eq!(sent.len(), 126, "one of 248 bytes every 8 ms");
        assert!(sent.iter().all(|(_, turn)| *turn == Turn::Padding(None)));
        // a packet of media of 1000 bytes stands for 32.26 ms of padding
        pacer.push(false, PACKET);
        assert!(matches!(pacer.turn(Time::from_millis(1001), Size::ZERO), Some(Turn::Media(..))));
        pacer.sent(Time::from_millis(1001), SIZE);
        let next = pacer.due(Size::ZERO);
        assert!((next - Time::from_micros(1_040_258)).abs() < Span::from_micros(1), "{next}");
    }

    #[test]
    fn a_probe_goes_at_its_own_rate_with_media_and_then_padding() {
        let mut pacer = pacer(Decision { probes: PROBE.into(), ..Decision::rate(Rate::from_kbps(100)) });
        (0..2).for_each(|_| pacer.push(false, PACKET));
        let sent = drive(&mut pacer, Time::from_millis(100));
        // 7500 bytes: 2 of 1000 and 23 of 248 (5704)
        assert_eq!(sent.len(), 25);
        assert!(sent[..2].iter().all(|(_, turn)| matches!(turn, Turn::Media(_, Some(7)))));
        assert!(sent[2..].iter().all(|(_, turn)| *turn == Turn::Padding(Some(7))));
        assert_eq!(sent[2].0, Time::from_millis(4));
        // the last one waits for the 7456 bytes before it
        assert_eq!(sent[24].0, Time::from_micros(14_912));
    }

    #[test]
    fn a_probe_with_a_spacing_leaves_in_groups_at_the_same_rate() {
        let probe = Probe { spacing: Span::from_millis(2), ..PROBE };
        let mut pacer = pacer(Decision { probes: probe.into(), ..Decision::rate(Rate::from_kbps(100)) });
        let sent = drive(&mut pacer, Time::from_millis(100));
        // 4 Mb/s carry 1000 bytes in 2 ms: of 248 bytes each five make 1240, which take 2.48 ms; 31 make the 7500
        // bytes of 15 ms
        assert_eq!(sent.len(), 31);
        for (place, (at, turn)) in sent.iter().enumerate() {
            assert_eq!(*turn, Turn::Padding(Some(7)));
            assert_eq!(*at, Time::from_micros(2480 * (place as i64 / 5)), "packet {place}");
        }
        // a packet that takes longer than the spacing goes by itself, at its own time
        let slow = Probe { rate: Rate::from_kbps(500), ..probe };
        pacer.decide(
            Time::from_millis(100),
            &Decision { probes: slow.into(), ..Decision::rate(Rate::from_kbps(100)) },
        );
        let sent = drive(&mut pacer, Time::from_millis(200));
        assert_eq!(
            sent.iter().map(|s| s.0).collect::<Vec<_>>(),
            [0, 3968, 7936, 11_904, 15_872].map(Time::from_micros)
        );
        // the rate alone would have the second packet after 62 us
        let fast = Probe {
            rate: Rate::from_mbps(32),
            spacing: Span::from_micros(62) + Span::from_nanos(1),
            ..probe
        };
        let mut other = self::pacer(Decision { probes: fast.into(), ..Decision::rate(Rate::from_kbps(100)) });
        let sent = drive(&mut other, Time::from_millis(100));
        assert_eq!(
            sent[..4].iter().map(|s| s.0).collect::<Vec<_>>(),
            [0, 0, 124, 124].map(Time::from_micros)
        );
    }

    #[test]
    fn probes_of_one_decision_follow_each_other_and_each_has_its_least() {
        let first = Probe { length: Span::ZERO, ..PROBE };
        let second = Probe { id: 8, rate: Rate::from_mbps(8), ..PROBE };
        let both = Probes::try_from(&[first, second][..]).expect("two fit");
        let mut pacer = pacer(Decision { probes: both, ..Decision::rate(Rate::from_kbps(100)) });
        let sent = drive(&mut pacer, Time::from_millis(100));
        let of = |id| {
            sent.iter().filter(|(_, turn)| *turn == Turn::Padding(Some(id))).map(|s| s.0).collect::<Vec<_>>()
        };
        // no length: five packets and no more, 496 us apart
        assert_eq!(of(7), [0, 496, 992, 1488, 1984].map(Time::from_micros));
        // 15 ms of 8 Mb/s are 15000 bytes: 61 packets of 248 and no more, 248 us apart, the first at once
        let second: Vec<Time> = (0..61).map(|k| Time::from_micros(1984 + 248 * k)).collect();
        assert_eq!(of(8), second);
        assert_eq!(sent.len(), 66);
    }

    #[test]
    fn the_delay_is_that_of_the_media_that_has_waited_longest() {
        let at = Time::from_millis;
        let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
        assert_eq!(pacer.delay(at(100)), Span::ZERO, "nothing waits");
        pacer.push_resent(Queued { since: at(10), ..PACKET });
        assert_eq!(pacer.delay(at(100)), Span::ZERO, "a retransmission is no media");
        pacer.push(false, Queued { since: at(40), ..PACKET });
        pacer.push(false, Queued { since: at(73), ..PACKET });
        pacer.push(true, Queued { since: at(60), ..PACKET });
        assert_eq!(pacer.delay(at(100)), Span::from_millis(60));
        // audio goes first, then the retransmission, then the older video
        for left in [60, 60, 27] {
            let _ = pacer.turn(Time::from_secs(1), Size::ZERO).expect("it may leave");
            assert_eq!(pacer.delay(at(100)), Span::from_millis(left));
        }
    }

    #[test]
    fn heartbeats_break_a_silence_and_a_shut_window_stays_shut() {
        let beat = Some(Span::from_millis(50));
        let shut =
            Decision { window: Some(Size::ZERO), heartbeat: beat, ..Decision::rate(Rate::from_mbps(100)) };
        let mut pacer = pacer(shut);
        pacer.push(false, PACKET);
        // nothing in flight lets nothing through; the first heartbeat is due at once, the next after 50 ms
        let times: Vec<(Time, Turn)> = drive(&mut pacer, Time::from_millis(120));
        let expected = [0, 50, 100].map(|at| (Time::from_millis(at), Turn::Heartbeat));
        assert_eq!(times, expected);
        // what is sent for other reasons puts it off
        pacer.decide(Time::from_millis(120), &Decision { window: Some(SIZE), ..shut });
        assert_eq!(pacer.turn(Time::from_millis(120), Size::ZERO), Some(Turn::Media(PACKET, None)));
        pacer.sent(Time::from_millis(120), SIZE);
        assert_eq!(pacer.due(SIZE), Time::from_millis(170));
        // none at all is not a pace
        pacer.decide(Time::from_millis(120), &Decision { heartbeat: Some(Span::ZERO), ..shut });
        assert_eq!(pacer.due(SIZE), Time::from_millis(121));
    }
}
