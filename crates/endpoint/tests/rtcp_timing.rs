//! Groups of any kind keep RTCP's share of bandwidth: `rtcp::schedule` and `rtcp::members` on a minimal network.
//!
//! Each member has its own loss. The operations are random: members join, leave with a goodbye, crash without one, come
//! back, begin and cease to send, and want to send feedback.

use tidegate_core::{Rate, Span, Stream, Time};
use tidegate_endpoint::rtcp::members::Members;
use tidegate_endpoint::rtcp::schedule::{Avpf, Chance, Due, Profile, Schedule, Timing};

const SESSION: Rate = Rate::from_kbps(200);
/// RTCP's share of [`SESSION`] in bytes a second.
const SHARE: f64 = 1250.0;
const DELAY: Span = Span::from_millis(40);
/// Time between two RTP packets of a sender.
const RTP_EVERY: Span = Span::from_millis(200);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum PacketKind {
    Rtp,
    Rtcp,
    Bye,
}

/// A packet on its way to `to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Flying {
    arrival: Time,
    order: u64,
    to: usize,
    from: u32,
    kind: PacketKind,
    size: u32,
}

struct Peer {
    ssrc: u32,
    schedule: Schedule,
    members: Members,
    rng: Stream,
    up: bool,
    rtp_at: Time,
    sends: bool,
    waits: bool,
    /// When it sent RTCP last, or joined.
    last_sent: Time,
    /// When the pending feedback was detected.
    detected: Time,
    early_last: bool,
}

/// Totals of a run.
#[derive(Debug, Default)]
struct Totals {
    bytes: u64,
    packets: u64,
    early: u64,
    longest_silence: Span,
}

struct Group {
    now: Time,
    peers: Vec<Peer>,
    flying: std::collections::BTreeSet<Flying>,
    order: u64,
    loss: f64,
    rng: Stream,
    totals: Totals,
    /// The time from which on totals are counted.
    from: Time,
    next_ssrc: u32,
}

impl Group {
    fn new(seed: u64, loss: f64) -> Self {
        let rng = Stream::new(seed, "group", "network");
        let flying = std::collections::BTreeSet::new();
        let (now, from) = (Time::ZERO, Time::ZERO);
        Self {
            now,
            peers: Vec::new(),
            flying,
            order: 0,
            loss,
            rng,
            totals: Totals::default(),
            from,
            next_ssrc: 1,
        }
    }

    fn add(&mut self, profile: Profile) -> usize {
        let (ssrc, minimum) = (self.next_ssrc, Span::from_secs(5));
        self.next_ssrc += 1;
        let timing = Timing { profile, session: SESSION, minimum, first_size: 100 };
        let mut peer = Peer {
            ssrc,
            schedule: Schedule::new(&timing),
            members: Members::default(),
            rng: Stream::new(u64::from(ssrc), "group", "peer"),
            up: true,
            rtp_at: Time::MAX,
            sends: false,
            waits: false,
            last_sent: self.now,
            detected: Time::ZERO,
            early_last: false,
        };
        peer.schedule.join(self.now, 1, || peer.rng.uniform());
        self.peers.push(peer);
        self.peers.len() - 1
    }

    fn multicast(&mut self, from: usize, kind: PacketKind, size: u32) {
        if kind != PacketKind::Rtp && self.now >= self.from {
            self.totals.bytes += u64::from(size);
            self.totals.packets += 1;
        }
        for to in 0..self.peers.len() {
            if to != from && self.peers[to].up && !self.rng.chance(self.loss) {
                self.order += 1;
                let (order, ssrc) = (self.order, self.peers[from].ssrc);
                let arrival = self.now + DELAY;
                self.flying.insert(Flying { arrival, order, to, from: ssrc, kind, size });
            }
        }
    }

    fn count(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        let senders = peer.members.senders() + u32::from(peer.sends);
        peer.schedule.set_senders(senders, peer.sends);
        peer.schedule.set_members(now, peer.members.count());
    }

    /// Notes that a member has sent a packet.
    fn note_sent(&mut self, index: usize, early: bool) {
        let peer = &mut self.peers[index];
        assert!(!(early && peer.early_last), "two early packets without a regular slot between");
        peer.early_last = early;
        self.totals.longest_silence = self.totals.longest_silence.max(self.now - peer.last_sent);
        peer.last_sent = self.now;
        peer.waits = false;
        self.totals.early += u64::from(early && self.now >= self.from);
    }

    fn expire(&mut self, index: usize) {
        let now = self.now;
        let peer = &mut self.peers[index];
        let (member, sender) = (peer.schedule.member_timeout(), peer.schedule.sender_timeout());
        peer.members.time_out(now, member, sender);
        self.count(index);
        let peer = &mut self.peers[index];
        let (previous, ..) = peer.schedule.state();
        let allowed = peer.schedule.allows_early();
        let size = 60 + (peer.rng.uniform() * 80.0) as u32;
        match peer.schedule.expire(now, peer.waits, || peer.rng.uniform()) {
            Due::Nothing => {
                if peer.schedule.allows_early() && !allowed {
                    peer.early_last = false; // a slot that T_rr_interval left empty
                }
            }
            due @ (Due::Regular | Due::Minimal) => {
                let (_, _, fresh) = peer.schedule.state();
                assert!(previous + fresh <= now, "reconsideration never sends early");
                peer.schedule.sent(now, size, || peer.rng.uniform());
                assert!(peer.schedule.allows_early());
                assert!(due == Due::Regular || peer.schedule.due() > now);
                self.note_sent(index, false);
                self.multicast(index, PacketKind::Rtcp, size);
            }
            Due::Early => {
                assert!(allowed && peer.waits && peer.detected <= now, "not before its detection");
                peer.schedule.sent_early(size);
                self.note_sent(index, true);
                self.multicast(index, PacketKind::Rtcp, size);
            }
            Due::Goodbye => {
                peer.up = false;
                self.multicast(index, PacketKind::Bye, 80);
            }
        }
    }

    fn receive(&mut self, packet: Flying) {
        let (now, index) = (self.now, packet.to);
        let peer = &mut self.peers[index];
        if !peer.up {
            return;
        }
        match packet.kind {
            PacketKind::Bye => {
                peer.schedule.heard_goodbye(packet.size);
                peer.schedule.received(packet.size);
                peer.members.bye(now, packet.from);
            }
            PacketKind::Rtp => drop(peer.members.heard(now, packet.from, true)),
            PacketKind::Rtcp => {
                peer.schedule.received(packet.size);
                peer.members.heard(now, packet.from, false);
            }
        }
        self.count(index);
    }

    /// Runs to `end`.
    fn run(&mut self, end: Time) {
        loop {
            let due = |peer: &Peer| if peer.up { peer.schedule.due().min(peer.rtp_at) } else { Time::MAX };
            let (index, due_at) =
                self.peers.iter().map(due).enumerate().min_by_key(|&(_, due_at)| due_at).unwrap();
            let arrives = self.flying.first().map_or(Time::MAX, |packet| packet.arrival);
            if arrives.min(due_at) > end {
                self.now = end;
                return;
            }
            self.now = arrives.min(due_at);
            if arrives <= due_at {
                let packet = self.flying.pop_first().unwrap();
                self.receive(packet);
            } else if self.peers[index].rtp_at <= due_at {
                self.peers[index].rtp_at += RTP_EVERY;
                self.multicast(index, PacketKind::Rtp, 1000);
            } else {
                self.expire(index);
            }
        }
    }

    fn feedback(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        match peer.schedule.feedback(now, None, || peer.rng.uniform()) {
            Chance::Early(te) => {
                assert!(now <= te, "an early packet never before its detection");
                assert!(peer.schedule.allows_early());
                if !peer.waits {
                    peer.detected = now;
                }
                peer.waits = true;
            }
            Chance::Regular => peer.waits = true,
            Chance::No => {}
        }
    }

    fn send(&mut self, index: usize, sends: bool) {
        let peer = &mut self.peers[index];
        if peer.up && peer.sends != sends {
            peer.sends = sends;
            peer.rtp_at = if sends { self.now } else { Time::MAX };
            self.count(index);
        }
    }

    fn leave(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        if peer.up {
            peer.rtp_at = Time::MAX;
            if peer.schedule.goodbye(now, 80, || peer.rng.uniform()) {
                peer.schedule.leave();
                peer.up = false;
                self.multicast(index, PacketKind::Bye, 80);
            }
        }
    }

    fn crash(&mut self, index: usize) {
        self.peers[index].up = false;
    }

    /// RTCP's share of [`SHARE`] since `from`.
    fn share(&self) -> f64 {
        self.totals.bytes as f64 / (self.now - self.from).as_secs_f64() / SHARE
    }
}

const AVPF: Profile = Profile::Avpf(Avpf {
    l: 0.5,
    k: None,
    redraw: false,
    max_feedback_delay: Span::from_secs(1),
    rr_interval: Span::ZERO,
});

fn thinned() -> Profile {
    Profile::Avpf(Avpf { rr_interval: Span::from_secs(3), ..Avpf::default() })
}

#[test]
fn quiet_groups_use_their_share_and_no_more() {
    // enough members that the interval, not its minimum, decides: 1250 bytes/s carry 12.5 packets of 100
    for (profiles, senders) in [(&[Profile::Avp][..], 1), (&[AVPF], 1), (&[Profile::Avp, AVPF], 8)] {
        let mut group = Group::new(3, 0.0);
        for index in 0..100 {
            group.add(profiles[index % profiles.len()]);
            group.send(index, index < senders);
        }
        group.run(Time::from_secs(100));
        (group.from, group.totals) = (group.now, Totals::default());
        group.run(Time::from_secs(1100));
        // 100 bytes each: senders share a quarter, receivers the rest, and members under AVP send every 5 s at most
        let interval = |index: usize| {
            let part = if index < senders { 0.25 / senders as f64 } else { 0.75 / (100 - senders) as f64 };
            let minimum = if profiles[index % profiles.len()] == Profile::Avp { 5.0 } else { 0.0 };
            (100.0 / SHARE / part).max(minimum)
        };
        let expected: f64 = (0..100).map(|index| 100.0 / interval(index) / SHARE).sum();
        let share = group.share();
        assert!((share / expected - 1.0).abs() < 0.02, "{share}, not {expected}: {profiles:?}");
        assert_eq!(group.totals.early, 0);
    }
}

#[test]
fn no_operation_breaks_the_share_or_silences_a_member() {
    for seed in 0..8 {
        let mut script = Stream::new(seed, "group", "script");
        let mut group = Group::new(seed, [0.0, 0.1, 0.3][seed as usize % 3]);
        let profiles = [Profile::Avp, AVPF, thinned()];
        for index in 0..30 {
            let profile = script.below(3) as usize;
            group.add(profiles[if seed % 4 == 0 { 1 } else { profile }]);
            group.send(index, script.chance(0.1));
        }
        group.run(Time::from_secs(60));
        (group.from, group.totals) = (group.now, Totals::default());
        let end = Time::from_secs(1560);
        while group.now < end {
            let next = group.now + Span::from_secs_f64(script.exponential(0.5));
            group.run(next.min(end));
            let index = script.below(group.peers.len() as u64) as usize;
            match script.below(100) {
                0 => group.leave(index),
                1 => group.crash(index),
                2 | 3 if group.peers.iter().filter(|peer| peer.up).count() < 60 => {
                    group.add(profiles[script.below(3) as usize]);
                }
                4..12 => group.send(index, script.chance(0.2)),
                12..40 => {
                    // an event that all members detect
                    let up: Vec<usize> = (0..group.peers.len()).filter(|&i| group.peers[i].up).collect();
                    up.into_iter().for_each(|index| group.feedback(index));
                }
                _ if group.peers[index].up => group.feedback(index),
                _ => {}
            }
        }
        let share = group.share();
        // less than the share, because crashed members count for a while and members under AVP send every 5 s at most;
        // more only by early packets (9.8 % if there were nothing else)
        assert!((0.75..1.05).contains(&share), "seed {seed}: {share}");
        assert!(group.totals.early > 100, "seed {seed}: {}", group.totals.early);
        // 60 receivers share 937 bytes/s: 1.23 times 6.4 s at most between two packets, twice that after an early one,
        // and a little more for crashed members that still count
        let longest_allowed = Span::from_secs(20);
        let silent = group.totals.longest_silence;
        assert!(silent < longest_allowed, "seed {seed}: {silent}");
        for peer in group.peers.iter().filter(|peer| peer.up) {
            assert!(group.now - peer.last_sent < longest_allowed, "seed {seed}: {} is silent", peer.ssrc);
        }
    }
}

#[test]
fn a_hundred_leave_at_once_without_a_flood() {
    for profile in [Profile::Avp, AVPF] {
        let mut group = Group::new(9, 0.0);
        for index in 0..200 {
            group.add(profile);
            group.send(index, index == 0);
        }
        group.run(Time::from_secs(200));
        (group.from, group.totals) = (group.now, Totals::default());
        for index in 100..200 {
            group.leave(index);
        }
        assert_eq!(group.totals.packets, 0, "no goodbye at once");
        let begin = group.now;
        let mut half = None;
        while group.peers[100..].iter().any(|peer| peer.up) {
            group.run(group.now + Span::from_millis(100));
            let gone = group.peers[100..].iter().filter(|peer| !peer.up).count();
            if gone >= 50 {
                half.get_or_insert(group.now - begin);
            }
            assert!(group.now - begin < Span::from_secs(60), "{gone} have left");
        }
        // 80 bytes each at three quarters of 1250 bytes/s: 8.5 s if they come in one row
        let (took, half) = ((group.now - begin).as_secs_f64(), half.unwrap().as_secs_f64());
        assert!((4.0..20.0).contains(&took), "{took}");
        assert!(half > 2.0, "{half}");
        // and the remaining members know it
        group.run(group.now + Span::from_secs(1));
        assert!(group.peers[..100].iter().all(|peer| peer.members.count() == 100));
    }
}

#[test]
fn crashed_members_are_forgotten_and_the_rest_report_more_often() {
    let mut group = Group::new(4, 0.0);
    for _ in 0..200 {
        group.add(AVPF);
    }
    group.send(0, true);
    group.run(Time::from_secs(200));
    let before = group.peers[1].schedule.deterministic();
    (100..200).for_each(|index| group.crash(index));
    let timeout = group.peers[1].schedule.member_timeout();
    group.run(group.now + timeout + before * 3);
    assert!(group.peers[..100].iter().all(|peer| peer.members.count() == 100));
    let ratio = group.peers[1].schedule.deterministic().as_secs_f64() / before.as_secs_f64();
    // 99 receivers instead of 199, with packets of random sizes
    assert!((ratio / (99.0 / 199.0) - 1.0).abs() < 0.1, "{ratio}");
    // and a sender that stops is no longer one after two intervals of a receiver
    let stopped = group.now;
    group.send(0, false);
    let timeout = group.peers[1].schedule.sender_timeout();
    group.run(stopped + timeout - Span::from_millis(500));
    assert_eq!(group.peers[1].members.senders(), 1);
    group.run(stopped + timeout * 2);
    assert_eq!(group.peers[1].members.senders(), 0);
}
