//! Groups of any kind keep RTCP's share: `rtcp::schedule` and `rtcp::members` on a network of their own.
//!
//! Every member has its own loss, the operations are drawn from a stream: members join, leave with a goodbye,
//! crash without one, come back, begin and cease to send, and want to send feedback.

use tidegate_core::{Rate, Span, Stream, Time};
use tidegate_endpoint::rtcp::members::Members;
use tidegate_endpoint::rtcp::schedule::{Avpf, Chance, Due, Profile, Schedule, Timing};

const SESSION: Rate = Rate::from_kbps(200);
/// What [`SESSION`] leaves RTCP, in bytes a second.
const SHARE: f64 = 1250.0;
const DELAY: Span = Span::from_millis(40);
/// How often RTP of a sender is heard of.
const RTP_EVERY: Span = Span::from_millis(200);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    Rtp,
    Rtcp,
    Bye,
}

/// A packet on its way to `to`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Flying {
    at: Time,
    order: u64,
    to: usize,
    from: u32,
    what: What,
    size: u32,
}

struct Peer {
    ssrc: u32,
    schedule: Schedule,
    members: Members,
    luck: Stream,
    up: bool,
    rtp_at: Time,
    sends: bool,
    waits: bool,
    /// When it sent RTCP last, or joined.
    spoke: Time,
    /// The feedback that waits was detected.
    detected: Time,
    early_last: bool,
}

/// What a run told.
#[derive(Debug, Default)]
struct Told {
    bytes: u64,
    packets: u64,
    early: u64,
    most_silent: Span,
}

struct Group {
    now: Time,
    peers: Vec<Peer>,
    flying: std::collections::BTreeSet<Flying>,
    order: u64,
    loss: f64,
    luck: Stream,
    told: Told,
    /// From when on it is told.
    from: Time,
    fresh: u32,
}

impl Group {
    fn new(seed: u64, loss: f64) -> Self {
        let luck = Stream::new(seed, "group", "network");
        let flying = std::collections::BTreeSet::new();
        let (now, from) = (Time::ZERO, Time::ZERO);
        Self { now, peers: Vec::new(), flying, order: 0, loss, luck, told: Told::default(), from, fresh: 1 }
    }

    fn add(&mut self, profile: Profile) -> usize {
        let (ssrc, minimum) = (self.fresh, Span::from_secs(5));
        self.fresh += 1;
        let timing = Timing { profile, session: SESSION, minimum, first_size: 100 };
        let mut peer = Peer {
            ssrc,
            schedule: Schedule::new(&timing),
            members: Members::default(),
            luck: Stream::new(u64::from(ssrc), "group", "peer"),
            up: true,
            rtp_at: Time::MAX,
            sends: false,
            waits: false,
            spoke: self.now,
            detected: Time::ZERO,
            early_last: false,
        };
        peer.schedule.join(self.now, 1, || peer.luck.uniform());
        self.peers.push(peer);
        self.peers.len() - 1
    }

    fn multicast(&mut self, from: usize, what: What, size: u32) {
        if what != What::Rtp && self.now >= self.from {
            self.told.bytes += u64::from(size);
            self.told.packets += 1;
        }
        for to in 0..self.peers.len() {
            if to != from && self.peers[to].up && !self.luck.chance(self.loss) {
                self.order += 1;
                let (order, ssrc) = (self.order, self.peers[from].ssrc);
                let at = self.now + DELAY;
                self.flying.insert(Flying { at, order, to, from: ssrc, what, size });
            }
        }
    }

    fn count(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        let senders = peer.members.senders() + u32::from(peer.sends);
        peer.schedule.set_senders(senders, peer.sends);
        peer.schedule.set_members(now, peer.members.count());
    }

    fn spoke(&mut self, index: usize, early: bool) {
        let peer = &mut self.peers[index];
        assert!(!(early && peer.early_last), "two early packets without a regular slot between");
        peer.early_last = early;
        self.told.most_silent = self.told.most_silent.max(self.now - peer.spoke);
        peer.spoke = self.now;
        peer.waits = false;
        self.told.early += u64::from(early && self.now >= self.from);
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
        let size = 60 + (peer.luck.uniform() * 80.0) as u32;
        match peer.schedule.expire(now, peer.waits, || peer.luck.uniform()) {
            Due::Nothing => {
                if peer.schedule.allows_early() && !allowed {
                    peer.early_last = false; // a slot that T_rr_interval left empty
                }
            }
            due @ (Due::Regular | Due::Minimal) => {
                let (_, _, fresh) = peer.schedule.state();
                assert!(previous + fresh <= now, "reconsideration never sends early");
                peer.schedule.sent(now, size, || peer.luck.uniform());
                assert!(peer.schedule.allows_early());
                assert!(due == Due::Regular || peer.schedule.due() > now);
                self.spoke(index, false);
                self.multicast(index, What::Rtcp, size);
            }
            Due::Early => {
                assert!(allowed && peer.waits && peer.detected <= now, "not before its detection");
                peer.schedule.sent_early(size);
                self.spoke(index, true);
                self.multicast(index, What::Rtcp, size);
            }
            Due::Goodbye => {
                peer.up = false;
                self.multicast(index, What::Bye, 80);
            }
        }
    }

    fn receive(&mut self, packet: Flying) {
        let (now, index) = (self.now, packet.to);
        let peer = &mut self.peers[index];
        if !peer.up {
            return;
        }
        match packet.what {
            What::Bye => {
                peer.schedule.heard_goodbye(packet.size);
                peer.schedule.received(packet.size);
                peer.members.bye(now, packet.from);
            }
            What::Rtp => drop(peer.members.heard(now, packet.from, true)),
            What::Rtcp => {
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
            let (index, at) = self.peers.iter().map(due).enumerate().min_by_key(|&(_, at)| at).unwrap();
            let arrives = self.flying.first().map_or(Time::MAX, |packet| packet.at);
            if arrives.min(at) > end {
                self.now = end;
                return;
            }
            self.now = arrives.min(at);
            if arrives <= at {
                let packet = self.flying.pop_first().unwrap();
                self.receive(packet);
            } else if self.peers[index].rtp_at <= at {
                self.peers[index].rtp_at += RTP_EVERY;
                self.multicast(index, What::Rtp, 1000);
            } else {
                self.expire(index);
            }
        }
    }

    fn feedback(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        match peer.schedule.feedback(now, None, || peer.luck.uniform()) {
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
            if peer.schedule.goodbye(now, 80, || peer.luck.uniform()) {
                peer.schedule.leave();
                peer.up = false;
                self.multicast(index, What::Bye, 80);
            }
        }
    }

    fn crash(&mut self, index: usize) {
        self.peers[index].up = false;
    }

    /// RTCP's share of [`SHARE`] since `from`.
    fn share(&self) -> f64 {
        self.told.bytes as f64 / (self.now - self.from).as_secs_f64() / SHARE
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
        (group.from, group.told) = (group.now, Told::default());
        group.run(Time::from_secs(1100));
        // 100 bytes each: senders share a quarter, receivers the rest, and AVP speaks every 5 s at most
        let every = |index: usize| {
            let part = if index < senders { 0.25 / senders as f64 } else { 0.75 / (100 - senders) as f64 };
            let least = if profiles[index % profiles.len()] == Profile::Avp { 5.0 } else { 0.0 };
            (100.0 / SHARE / part).max(least)
        };
        let expected: f64 = (0..100).map(|index| 100.0 / every(index) / SHARE).sum();
        let share = group.share();
        assert!((share / expected - 1.0).abs() < 0.02, "{share}, not {expected}: {profiles:?}");
        assert_eq!(group.told.early, 0);
    }
}

#[test]
fn nothing_that_happens_breaks_the_share_or_silences_anybody() {
    for seed in 0..8 {
        let mut script = Stream::new(seed, "group", "script");
        let mut group = Group::new(seed, [0.0, 0.1, 0.3][seed as usize % 3]);
        let profiles = [Profile::Avp, AVPF, thinned()];
        for index in 0..30 {
            let own = script.below(3) as usize;
            group.add(profiles[if seed % 4 == 0 { 1 } else { own }]);
            group.send(index, script.chance(0.1));
        }
        group.run(Time::from_secs(60));
        (group.from, group.told) = (group.now, Told::default());
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
                    // seen by many
                    let up: Vec<usize> = (0..group.peers.len()).filter(|&i| group.peers[i].up).collect();
                    up.into_iter().for_each(|index| group.feedback(index));
                }
                _ if group.peers[index].up => group.feedback(index),
                _ => {}
            }
        }
        let share = group.share();
        // less than all, because who has crashed is counted for a while and AVP speaks every 5 s at most; more
        // than that only by what early packets bring forward (9.8 % if there were nothing else)
        assert!((0.75..1.05).contains(&share), "seed {seed}: {share}");
        assert!(group.told.early > 100, "seed {seed}: {}", group.told.early);
        // 60 receivers share 937 bytes/s: 1.23 times 6.4 s at most between two packets, twice that after an
        // early one, and a little more for those who are counted but have crashed
        let most = Span::from_secs(20);
        let silent = group.told.most_silent;
        assert!(silent < most, "seed {seed}: {silent}");
        for peer in group.peers.iter().filter(|peer| peer.up) {
            assert!(group.now - peer.spoke < most, "seed {seed}: {} is silent", peer.ssrc);
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
        (group.from, group.told) = (group.now, Told::default());
        for index in 100..200 {
            group.leave(index);
        }
        assert_eq!(group.told.packets, 0, "nobody at once");
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
        // and those who stay know it
        group.run(group.now + Span::from_secs(1));
        assert!(group.peers[..100].iter().all(|peer| peer.members.count() == 100));
    }
}

#[test]
fn those_who_crash_are_forgotten_and_the_rest_speak_oftener() {
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
    // 99 receivers instead of 199, sizes being what they are
    assert!((ratio / (99.0 / 199.0) - 1.0).abs() < 0.1, "{ratio}");
    // and a sender that stops is none any more after two intervals of a receiver
    let stopped = group.now;
    group.send(0, false);
    let timeout = group.peers[1].schedule.sender_timeout();
    group.run(stopped + timeout - Span::from_millis(500));
    assert_eq!(group.peers[1].members.senders(), 1);
    group.run(stopped + timeout * 2);
    assert_eq!(group.peers[1].members.senders(), 0);
}
