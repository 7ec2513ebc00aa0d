//! A call as two places saw it, whose clocks are brought together.

use super::{Clocks, Fate, Known, Packet, Session, WAYS, Way, kind, left, millis, timed};
use crate::clocks::{self, Clock, Pair};
use crate::feedback::{self, Said, Told};
use crate::kinds::kinds;
use crate::point::{MILLI, Nanos, Passed, Point, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::{Ecn, Kind};

impl Session {
    /// A call as two places saw it.
    #[must_use]
    pub fn of_two(near: &Point, far: &Point, clocks: Clocks) -> Self {
        let mut session = Self::default();
        let there = pairs(&near.sent, &far.received);
        let back: Vec<Pair> =
            pairs(&far.sent, &near.received).into_iter().map(|(far, near)| (near, far)).collect();
        let clock = session.clock(clocks, &there, &back);
        let (first, last) = near.span().unwrap_or_default();
        let far_span = far.span().map(|(from, to)| (clock.near(from), clock.near(to)));
        let (far_first, far_last) = far_span.unwrap_or((first, last));
        session.span = (first.min(far_first), last.max(far_last));
        let streams = [&near.streams[..], &far.streams[..]].concat();
        let kinds = kinds(&[&near.sent.rtp[..], &near.received.rtp[..]].concat(), &streams);
        let one = |at: Nanos| at;
        let known = Known { sent: true, arrived: true, delay: true, feedback: !near.encrypted, rtcp: true };
        if !near.sent.rtp.is_empty() {
            let (mut packets, strange) =
                crossed(&near.sent.rtp, &far.received, (one, |at| clock.near(at)), &kinds);
            session.strange(WAYS[0], strange);
            let readable = !near.encrypted;
            let none: &[Rtcp] = &[];
            let (reports, received) =
                if readable { (&near.sent.rtcp[..], &near.received.rtcp[..]) } else { (none, none) };
            let said = feedback::join(&near.sent.rtp, reports, received);
            session.unrestored(WAYS[0], far, &said, &mut packets);
            packets.sort_by_key(|packet| packet.sent);
            session.ways.push(Way {
                name: WAYS[0].to_owned(),
                packets,
                feedback: left(&far.sent.rtcp, |at| clock.near(at)),
                reports: timed(&near.sent.rtcp),
                known,
                said,
            });
        }
        if !far.sent.rtp.is_empty() {
            let (mut packets, strange) =
                crossed(&far.sent.rtp, &near.received, (|at| clock.near(at), one), &kinds);
            session.strange(WAYS[1], strange);
            if !far.encrypted {
                let said = feedback::join(&far.sent.rtp, &far.sent.rtcp, &far.received.rtcp);
                session.unrestored(WAYS[1], near, &said, &mut packets);
            }
            packets.sort_by_key(|packet| packet.sent);
            session.ways.push(Way {
                name: WAYS[1].to_owned(),
                packets,
                feedback: timed(&near.sent.rtcp),
                reports: left(&far.sent.rtcp, |at| clock.near(at)),
                known,
                said: Said::default(),
            });
        }
        session.cut(last.min(far_last), "what one of the two places saw");
        // one end hears nothing any more and the other one neither: the way between them was gone before the recording was
        let heard =
            [near.received.span().map(|(_, to)| to), far.received.span().map(|(_, to)| clock.near(to))];
        if let Some(heard) = heard.into_iter().flatten().max() {
            session.cut(heard, "all that came to either place");
        }
        session
    }

    /// Whether packets pass the far place before the near one, so that the two are the other way round.
    #[must_use]
    pub fn is_backwards(near: &Point, far: &Point) -> bool {
        let there = pairs(&near.sent, &far.received);
        let back = pairs(&far.sent, &near.received);
        let least = |pairs: &[Pair]| pairs.iter().map(|&(from, to)| to.saturating_sub(from)).min();
        match (least(&there), least(&back)) {
            // whatever the clocks, a round trip takes time
            (Some(there), Some(back)) => there.saturating_add(back) < 0,
            (Some(one), None) | (None, Some(one)) => one < 0,
            (None, None) => false,
        }
    }

    fn clock(&mut self, clocks: Clocks, there: &[Pair], back: &[Pair]) -> Clock {
        let found = clocks::aligned(there, back);
        let backwards =
            there.iter().any(|&(near, far)| far < near) || back.iter().any(|&(near, far)| near < far);
        if clocks == Clocks::Same && backwards {
            self.remarks.push(
                "packets arrive before they leave, so that the two places had clocks of their own".to_owned(),
            );
        }
        let (clock, told) = match (clocks, found) {
            (Clocks::Same, _) if !backwards => {
                (Clock::SAME, "both places are taken to have one clock".to_owned())
            }
            (_, Some(found)) => {
                let drift = match found.drift_ppm {
                    Some(ppm) if found.clock.drift != 0.0 => {
                        format!("; a drift of {ppm:+.1} ppm is taken out")
                    }
                    Some(ppm) => {
                        let worth = found.worth / MILLI;
                        format!("; their drift of {ppm:+.1} ppm comes to less than {worth} ms and is left in")
                    }
                    None => "; the recording is too short to tell their drift".to_owned(),
                };
                let round = millis(found.round_trip);
                let offset = millis(found.clock.offset);
                let told = format!(
                    "{offset:+.3} ms are added to the far clock, so that the least one-way delay is the same both ways \
                     ({:.3} ms){drift}",
                    round / 2.0
                );
                (found.clock, told)
            }
            (_, None) => {
                let least = there.iter().map(|&(near, far)| far.saturating_sub(near)).min();
                let back = back.iter().map(|&(near, far)| far.saturating_sub(near)).max();
                let offset = -least.or(back).unwrap_or(0);
                let told = "packets passed both places one way only, so that their clocks cannot be told apart from the \
                            path: the least one-way delay is set to nothing";
                (Clock { offset, drift: 0.0, origin: 0 }, told.to_owned())
            }
        };
        self.remarks.push(told);
        clock
    }

    /// Takes what an end restored for lost: its log has such packets among those that came, its feedback knows better.
    /// `packets` are still in the order in which `said` has them.
    fn unrestored(&mut self, way: &str, to: &Point, said: &Said, packets: &mut [Packet]) {
        if !to.restored {
            return;
        }
        let mut count = 0;
        for (packet, told) in packets.iter_mut().zip(&said.packets) {
            if matches!((packet.fate, told), (Fate::Arrived(_), Told::Lost)) {
                packet.fate = Fate::Lost;
                count += 1;
            }
        }
        if count > 0 {
            self.remarks.push(format!(
                "{way}: {count} packets are in the receiver's log, but were lost by its feedback: FEC restored them, and they are taken for lost"
            ));
        }
    }

    fn strange(&mut self, way: &str, count: usize) {
        if count > 0 {
            let what = "packets arrived that nobody saw leave, and are left out";
            self.remarks.push(format!("{way}: {count} {what}"));
        }
    }
}

/// What tells a packet of RTP from all others.
fn identity(packet: &Rtp) -> (u32, u16, u32) {
    (packet.ssrc, packet.sequence, packet.timestamp)
}

/// When packets passed one place and then the other, each by its clock. RTCP belongs together by its bytes, if they are
/// there once only.
fn pairs(from: &Passed, to: &Passed) -> Vec<Pair> {
    let arrived: BTreeMap<_, _> = to.rtp.iter().rev().map(|packet| (identity(packet), packet.at)).collect();
    let rtp = from.rtp.iter().filter_map(|packet| Some((packet.at, *arrived.get(&identity(packet))?)));
    let once = |rtcp: &[Rtcp]| -> BTreeMap<Vec<u8>, Option<Nanos>> {
        let mut all: BTreeMap<Vec<u8>, Option<Nanos>> = BTreeMap::new();
        for packet in rtcp {
            all.entry(packet.bytes.clone()).and_modify(|at| *at = None).or_insert(Some(packet.at));
        }
        all
    };
    let (left, came) = (once(&from.rtcp), once(&to.rtcp));
    let rtcp = left.iter().filter_map(|(bytes, at)| Some(((*at)?, (*came.get(bytes)?)?)));
    rtp.chain(rtcp).collect()
}

/// Packets that left one place, in the order of `sent`, with what became of them at the other; and how many came there that
/// never left.
fn crossed(
    sent: &[Rtp],
    received: &Passed,
    (leaving, coming): (impl Fn(Nanos) -> Nanos, impl Fn(Nanos) -> Nanos),
    kinds: &BTreeMap<u32, Kind>,
) -> (Vec<Packet>, usize) {
    // the first copy counts
    let mut arrived: BTreeMap<_, _> =
        received.rtp.iter().rev().map(|packet| (identity(packet), coming(packet.at))).collect();
    let mut packets: Vec<Packet> = sent
        .iter()
        .map(|rtp| {
            let sent = leaving(rtp.at);
            let fate = arrived.remove(&identity(rtp)).map_or(Fate::Unknown, Fate::Arrived);
            Packet { rtp: *rtp, kind: kind(kinds, rtp), sent, fate, ecn: Ecn::NotEct }
        })
        .collect();
    let delays = || {
        packets.iter().filter_map(|packet| match packet.fate {
            Fate::Arrived(at) => Some(at - packet.sent),
            _ => None,
        })
    };
    // what would have been seen had it come is lost; what would have come before the other place began to watch, or after
    // it ended, may have arrived
    if let (Some(least), Some(most), Some((first, last))) = (delays().min(), delays().max(), received.span())
    {
        let (first, last) = (coming(first), coming(last));
        for packet in &mut packets {
            let watched =
                packet.sent.saturating_add(least) >= first && packet.sent.saturating_add(most) <= last;
            if packet.fate == Fate::Unknown && watched {
                packet.fate = Fate::Lost;
            }
        }
    }
    (packets, arrived.len())
}
