//! The fast link compared with two simple ones, to the nanosecond, over random settings and arrivals.
//!
//! One reference counts the work done since the beginning and searches for the instant at which a packet's
//! share is complete; the other is mahimahi's loop over all opportunities. Both keep every packet and count
//! the queue anew for each arrival.

use std::collections::VecDeque;
use tidegate_core::record::NullRecorder;
use tidegate_core::{
    Datagram, FlowId, Kind, Node, Outbox, Packet, Port, Rate, RouteId, Size, Span, Stream, Time,
};
use tidegate_sim::link::capacity::{OpportunityTrace, Server, Steps};
use tidegate_sim::link::queue::DropTail;
use tidegate_sim::{Link, LinkSettings};

/// The fate of a packet: its arrival and its wait, or `None` if it was dropped.
type Fate = Option<(Time, Span)>;

/// A packet that a reference accepted.
#[derive(Clone, Copy)]
struct Accepted {
    index: usize,
    size: u64,
    start: i64,
    finish: i64,
}

/// Whether one more packet of `size` fits, if `held` packets (in order) have not left at `now`.
fn fits(queue: &DropTail, held: &[Accepted], now: i64, size: u64) -> bool {
    if held.is_empty() {
        return true;
    }
    let waits = |packet: &&Accepted| queue.counts_in_service || packet.start > now;
    let packets = held.iter().filter(waits).count();
    let bytes: u64 = held.iter().filter(waits).map(|packet| packet.size).sum();
    queue.packets.is_none_or(|limit| packets < limit as usize)
        && queue.bytes.is_none_or(|limit| bytes + size <= limit.as_bytes())
}

/// Service at `steps` of (ns, bit/s) that repeat after `period`.
fn by_work(
    steps: &[(i64, u64)],
    period: i64,
    queue: &DropTail,
    arrivals: &[(i64, u64)],
) -> Vec<Option<Accepted>> {
    let within = |t: i64| -> u128 {
        let ends = steps.iter().skip(1).map(|step| step.0).chain([period]);
        let done = |((begin, rate), end): (&(i64, u64), i64)| {
            u128::from(*rate) * (t.min(end) - begin).max(0) as u128
        };
        steps
            .iter()
            .map(|(begin, rate)| (begin, rate))
            .zip(ends)
            .map(|((b, r), e)| done((&(*b, *r), e)))
            .sum()
    };
    let work = |t: i64| within(period) * (t / period) as u128 + within(t % period);
    // the first instant at which `reached` holds, which then holds for ever
    let search = |reached: &dyn Fn(i64) -> bool| {
        let (mut low, mut high) = (-1, 1 << 50);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if reached(middle) { high = middle } else { low = middle }
        }
        high
    };
    let mut accepted: Vec<Accepted> = Vec::new();
    let mut through: u128 = 0;
    let decide = |(index, &(now, size)): (usize, &(i64, u64))| {
        let held: Vec<Accepted> = accepted.iter().copied().filter(|packet| packet.finish > now).collect();
        if !fits(queue, &held, now, size) {
            return None;
        }
        let begin = through.max(work(now));
        through = begin + u128::from(size) * 8_000_000_000;
        // the last instant at which no part of it is done
        let last = search(&|t| work(t) > begin) - 1;
        let start = if work(last) == begin { last } else { last + 1 };
        let finish = search(&|t| work(t) >= through);
        accepted.push(Accepted { index, size, start: start.max(now), finish });
        accepted.last().copied()
    };
    arrivals.iter().enumerate().map(decide).collect()
}

/// Service of `bytes` at each of `millis`, which repeat after the last.
fn by_opportunities(
    millis: &[u32],
    bytes: u64,
    queue: &DropTail,
    arrivals: &[(i64, u64)],
) -> Vec<Option<Accepted>> {
    let last = i64::from(millis[millis.len() - 1]);
    let mut opportunities = (0..)
        .flat_map(|round| millis.iter().map(move |&ms| (round * last + i64::from(ms)) * 1_000_000))
        .peekable();
    let mut fates = vec![None; arrivals.len()];
    // packets inside with what each still needs; not yet started: start is i64::MAX
    let mut inside: VecDeque<(Accepted, u64)> = VecDeque::new();
    let mut upcoming = arrivals.iter().enumerate().peekable();
    while upcoming.peek().is_some() || !inside.is_empty() {
        let now = upcoming.peek().map_or(i64::MAX, |(_, arrival)| arrival.0);
        if *opportunities.peek().unwrap() <= now {
            let time = opportunities.next().unwrap();
            let mut remaining = bytes;
            while let Some((packet, need)) = inside.front_mut().filter(|_| remaining > 0) {
                packet.start = packet.start.min(time);
                let portion = remaining.min(*need);
                (remaining, *need) = (remaining - portion, *need - portion);
                if *need == 0 {
                    fates[packet.index] = Some(Accepted { finish: time, ..*packet });
                    inside.pop_front();
                }
            }
        } else {
            let (index, &(now, size)) = upcoming.next().unwrap();
            let held: Vec<Accepted> = inside.iter().map(|&(packet, _)| packet).collect();
            if fits(queue, &held, now, size) {
                inside.push_back((Accepted { index, size, start: i64::MAX, finish: i64::MAX }, size));
            }
        }
    }
    fates
}

/// The link itself, woken now before and now after a packet that comes at the same instant.
fn by_link(settings: LinkSettings, arrivals: &[(i64, u64)], luck: &mut Stream) -> Vec<Fate> {
    let mut link = Link::new("link", 1, settings).unwrap();
    let mut out = Outbox::new(1, Box::new(NullRecorder));
    let mut fates = vec![None; arrivals.len()];
    let mut upcoming = arrivals.iter().enumerate().peekable();
    loop {
        let wakeup = link.next_wakeup().map_or(i64::MAX, Time::as_nanos);
        let next = upcoming.peek().map_or(i64::MAX, |(_, arrival)| arrival.0);
        if wakeup == i64::MAX && next == i64::MAX {
            assert_eq!(link.inside().packets, 0);
            return fates;
        }
        let now = Time::from_nanos(wakeup.min(next));
        if wakeup < next || wakeup == next && luck.chance(0.5) {
            link.advance(now, &mut out);
            for (_, packet) in out.packets.drain(..) {
                assert_eq!(fates[packet.sequence as usize], None);
                fates[packet.sequence as usize] = Some((now, packet.queued));
            }
        } else {
            let (index, &(_, size)) = upcoming.next().unwrap();
            let packet = Packet::new(
                now,
                FlowId(0),
                RouteId(0),
                index as u32,
                Kind::Datagram,
                Datagram { size: size as u32, ..Datagram::default() },
            );
            link.receive(now, Port::ZERO, Box::new(packet), &mut out);
        }
    }
}

/// Arrivals in bursts and pauses, often several at one instant, often on whole milliseconds.
fn random_arrivals(luck: &mut Stream) -> Vec<(i64, u64)> {
    let usual = 1 + luck.below(3000);
    let mean = 10f64 * [1e3, 1e4, 1e5, 1e6][luck.below(4) as usize];
    let mut now = 0;
    let mut arrivals = Vec::new();
    for _ in 0..150 {
        now += match luck.below(10) {
            0..3 => 0,
            3 => luck.exponential(mean * 30.0) as i64,
            _ => luck.exponential(mean) as i64,
        };
        if luck.chance(0.2) {
            now = (now + 999_999) / 1_000_000 * 1_000_000;
        }
        arrivals.push((now, if luck.chance(0.7) { usual } else { 1 + luck.below(9000) }));
    }
    arrivals
}

fn random_queue(luck: &mut Stream) -> DropTail {
    DropTail {
        packets: luck.chance(0.5).then(|| luck.below(12) as u32),
        bytes: luck.chance(0.5).then(|| Size::from_bytes(luck.below(20_000))),
        time: None,
        counts_in_service: luck.chance(0.5),
    }
}

fn compare(
    expected: &[Option<Accepted>],
    settings: LinkSettings,
    arrivals: &[(i64, u64)],
    luck: &mut Stream,
) -> usize {
    let delay = settings.delay.phases()[0].1;
    let described = format!("{settings:?}");
    let actual = by_link(settings, arrivals, luck);
    for (index, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        let now = Time::from_nanos(arrivals[index].0);
        let expected = expected.map(|accepted| {
            (Time::from_nanos(accepted.finish) + delay, Time::from_nanos(accepted.start) - now)
        });
        assert_eq!(*actual, expected, "packet {index} of {arrivals:?} through {described}");
    }
    actual.iter().flatten().count()
}

#[test]
fn rates_agree_with_work_done() {
    let mut luck = Stream::new(1, "reference", "rates");
    let (mut carried, mut dropped) = (0, 0);
    for round in 0..600 {
        let arrivals = random_arrivals(&mut luck);
        let queue = random_queue(&mut luck);
        let delay = Span::from_nanos(luck.below(100_000_000) as i64);
        let mut steps = vec![(0, 1 + luck.below(50_000_000))];
        for _ in 0..luck.below(6) {
            let begin = steps[steps.len() - 1].0 + 1 + luck.below(30_000_000) as i64;
            steps.push((begin, if luck.chance(0.3) { 0 } else { 1 + luck.below(100_000_000) }));
        }
        let period = steps[steps.len() - 1].0 + 1 + luck.below(30_000_000) as i64;
        let service = if steps.len() == 1 && round % 2 == 0 {
            Server::constant(Rate::from_bps(steps[0].1))
        } else {
            let rates: Vec<_> =
                steps.iter().map(|&(time, rate)| (Time::from_nanos(time), Rate::from_bps(rate))).collect();
            Server::schedule(Steps::new(&rates, Some(Span::from_nanos(period))).unwrap())
        };
        let expected = by_work(&steps, period, &queue, &arrivals);
        let settings = LinkSettings::new(service, delay).with_queue(queue);
        let count = compare(&expected, settings, &arrivals, &mut luck);
        carried += count;
        dropped += arrivals.len() - count;
    }
    assert!(carried > 20_000 && dropped > 10_000, "{carried} carried, {dropped} dropped");
}

#[test]
fn opportunities_agree_with_mahimahi() {
    let mut luck = Stream::new(1, "reference", "opportunities");
    let (mut carried, mut dropped) = (0, 0);
    for _ in 0..600 {
        let arrivals = random_arrivals(&mut luck);
        let queue = random_queue(&mut luck);
        let delay = Span::from_nanos(luck.below(100_000_000) as i64);
        let mut millis = vec![luck.below(3) as u32];
        for _ in 0..1 + luck.below(40) {
            let gap = if luck.chance(0.5) { 0 } else { luck.below(12) as u32 };
            millis.push(millis[millis.len() - 1] + gap);
        }
        millis.push(millis[millis.len() - 1] + 1);
        let bytes = if luck.chance(0.5) { 1504 } else { 1 + luck.below(5000) as u32 };
        let expected = by_opportunities(&millis, u64::from(bytes), &queue, &arrivals);
        let service = Server::opportunities(OpportunityTrace::new(millis, bytes).unwrap());
        let settings = LinkSettings::new(service, delay).with_queue(queue);
        let count = compare(&expected, settings, &arrivals, &mut luck);
        carried += count;
        dropped += arrivals.len() - count;
    }
    assert!(carried > 20_000 && dropped > 10_000, "{carried} carried, {dropped} dropped");
}
