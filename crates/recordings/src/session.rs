//! A call as it is known from one or two places: each way of it with its packets, when they were sent, when they arrived,
//! and what became of them.

use crate::clocks::{self, Clock, Pair};
use crate::feedback::{self, Said, Told};
use crate::kinds::kinds;
use crate::point::{MILLI, Nanos, Passed, Point, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::{Ecn, Kind};

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived, at this time.
    Arrived(Nanos),
    /// It did not.
    Lost,
    /// Nobody tells.
    Unknown,
}

/// A packet of RTP on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its header.
    pub rtp: Rtp,
    /// What it carries.
    pub kind: Kind,
    /// When it was sent; of one that nobody saw leave, when it is taken to have.
    pub sent: Nanos,
    /// What became of it.
    pub fate: Fate,
    /// The ECN field as it arrived, where that is told.
    pub ecn: Ecn,
}

/// What is known of a way, and what therefore may be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// When packets were sent, and all of them.
    pub sent: bool,
    /// Which arrived, and when as against each other.
    pub arrived: bool,
    /// How long they were on their way, and not only how much longer than the fastest.
    pub delay: bool,
    /// Its RTCP, and what is in it.
    pub feedback: bool,
    /// Its RTCP, be it encrypted.
    pub rtcp: bool,
}

/// One way of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Way {
    /// Its name.
    pub name: String,
    /// Its packets, in the order of sending.
    pub packets: Vec<Packet>,
    /// RTCP about it, from its receiver: when it was sent, or else seen.
    pub feedback: Vec<(Nanos, Rtcp)>,
    /// RTCP of its sender.
    pub reports: Vec<(Nanos, Rtcp)>,
    /// What is known.
    pub known: Known,
    /// What feedback said to the sender, where that could be read.
    pub said: Said,
}

impl Way {
    /// When the last thing happened of which it is known: a packet arrived, or feedback came.
    fn last_known(&self) -> Option<Nanos> {
        let arrivals = self.packets.iter().filter_map(|packet| match packet.fate {
            Fate::Arrived(at) => Some(at),
            _ => None,
        });
        let told = self.said.feedback.iter().filter(|one| !one.packets.is_empty()).map(|one| one.at);
        arrivals.chain(told).max()
    }

    /// What is known of it.
    #[must_use]
    pub fn known(&self) -> Known {
        let rtcp = !self.feedback.is_empty();
        Known { rtcp, feedback: rtcp && self.known.feedback, ..self.known }
    }
}

/// A call.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Session {
    /// Its ways: those in which media went.
    pub ways: Vec<Way>,
    /// When it begins and ends, by the near clock.
    pub span: (Nanos, Nanos),
    /// What has to be known of how it was put together: sentences.
    pub remarks: Vec<String>,
}

/// Whose clocks two places have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clocks {
    /// One.
    Same,
    /// Each its own.
    Own,
}

/// Names of the two ways: from the near end, and to it.
pub const WAYS: [&str; 2] = ["outgoing", "incoming"];

fn millis(nanos: Nanos) -> f64 {
    nanos as f64 / MILLI as f64
}

impl Session {
    /// A call as one place saw it.
    #[must_use]
    pub fn of_one(point: &Point) -> Self {
        let mut session = Self { span: point.span().unwrap_or_default(), ..Self::default() };
        let read = |rtcp: &[Rtcp]| if point.encrypted { Vec::new() } else { rtcp.to_vec() };
        let said = feedback::join(&point.sent.rtp, &read(&point.sent.rtcp), &read(&point.received.rtcp));
        let round = least_round_trip(&said);
        if !point.sent.rtp.is_empty() {
            let way = session.outgoing(point, said, round);
            session.ways.push(way);
        }
        if !point.received.rtp.is_empty() {
            let way = session.incoming(point, round);
            session.ways.push(way);
        }
        let told = session.ways.iter().filter(|way| way.known.arrived).filter_map(Way::last_known).max();
        if let Some(told) = told {
            session.cut(told, "feedback");
        }
        if point.encrypted {
            session.remarks.push(
                "RTCP is encrypted, so that one capture point does not tell what became of packets; a second one, at \
                 the far end (--far), does"
                    .to_owned(),
            );
        }
        session
    }

    /// What this place sent, and what became of it by what it was told.
    fn outgoing(&mut self, point: &Point, said: Said, round: Option<(Nanos, bool)>) -> Way {
        let sent = &point.sent.rtp;
        let kinds = kinds(sent, &point.streams);
        // the far clock minus ours, and the least delay
        let apart = sent.iter().zip(&said.packets).filter_map(|(packet, told)| match told {
            Told::Arrived(Some(at), _) => Some(at.saturating_sub(packet.at)),
            _ => None,
        });
        let least = apart.min();
        let half = round.map_or(0, |(round, _)| round / 2);
        let packets = sent.iter().zip(&said.packets).map(|(packet, told)| {
            let (fate, ecn) = match *told {
                Told::Nothing => (Fate::Unknown, Ecn::NotEct),
                Told::Lost => (Fate::Lost, Ecn::NotEct),
                Told::Arrived(at, ecn) => {
                    let near = at.zip(least).map(|(at, least)| at.saturating_sub(least).saturating_add(half));
                    (near.map_or(Fate::Unknown, Fate::Arrived), ecn)
                }
            };
            Packet { rtp: *packet, kind: kind(&kinds, packet), sent: packet.at, fate, ecn }
        });
        let packets: Vec<Packet> = packets.collect();
        let known = Known {
            sent: true,
            arrived: least.is_some(),
            delay: least.is_some() && round.is_some(),
            feedback: !point.encrypted,
            rtcp: true,
        };
        if let Some((round, reported)) = round.filter(|_| known.arrived) {
            let by = if reported {
                "by LSR and DLSR of receiver reports"
            } else {
                "from sending a packet to the feedback about it, which has waited"
            };
            self.remarks.push(format!(
                "arrivals are those that feedback tells of; the far clock is set so that the least one-way delay is half of \
                 the least round trip ({:.1} ms, {by}); its drift is not known",
                millis(round)
            ));
        } else if !point.encrypted {
            let what = "nothing tells when its packets arrived: no feedback on single packets was recorded";
            self.remarks.push(format!("{}: {what}", WAYS[0]));
        }
        if said.malformed > 0 {
            self.remarks
                .push(format!("{} datagrams of RTCP could not be read and are left out", said.malformed));
        }
        Way {
            name: WAYS[0].to_owned(),
            packets,
            feedback: timed(&point.received.rtcp),
            reports: timed(&point.sent.rtcp),
            known,
            said,
        }
    }

    /// What came in, and when it was sent by its sender's stamps.
    fn incoming(&mut self, point: &Point, round: Option<(Nanos, bool)>) -> Way {
        let received = &point.received.rtp;
        let kinds = kinds(received, &point.streams);
        let stamps = send_times(received);
        let least = stamps.as_ref().and_then(|stamps| {
            received.iter().zip(stamps).map(|(packet, &stamp)| packet.at.saturating_sub(stamp)).min()
        });
        let half = round.map_or(0, |(round, _)| round / 2);
        let mut packets: Vec<Packet> = received
            .iter()
            .enumerate()
            .map(|(at, rtp)| {
                let stamp =
                    stamps.as_ref().zip(least).map(|(stamps, least)| stamps[at].saturating_add(least) - half);
                let sent = stamp.unwrap_or(rtp.at);
                Packet {
                    rtp: *rtp,
                    kind: kind(&kinds, rtp),
                    sent,
                    fate: Fate::Arrived(rtp.at),
                    ecn: Ecn::NotEct,
                }
            })
            .collect();
        let missing = gaps(&packets);
        packets.extend(missing);
        packets.sort_by_key(|packet| packet.sent);
        let by = if stamps.is_some() { "abs-send-time" } else { "nothing" };
        self.remarks.push(format!(
            "{}: {by} tells when its packets were sent; losses are gaps in sequence numbers, whose sizes nobody knows",
            WAYS[1]
        ));
        let known = Known {
            sent: false,
            arrived: true,
            delay: stamps.is_some() && round.is_some(),
            feedback: !point.encrypted,
            rtcp: true,
        };
        let (feedback, reports) = (timed(&point.sent.rtcp), timed(&point.received.rtcp));
        Way { name: WAYS[1].to_owned(), packets, feedback, reports, known, said: Said::default() }
    }

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
            let (packets, strange) =
                crossed(&near.sent.rtp, &far.received, (one, |at| clock.near(at)), &kinds);
            session.strange(WAYS[0], strange);
            let readable = !near.encrypted;
            let none: &[Rtcp] = &[];
            let (reports, received) =
                if readable { (&near.sent.rtcp[..], &near.received.rtcp[..]) } else { (none, none) };
            session.ways.push(Way {
                name: WAYS[0].to_owned(),
                packets,
                feedback: left(&far.sent.rtcp, |at| clock.near(at)),
                reports: timed(&near.sent.rtcp),
                known,
                said: feedback::join(&near.sent.rtp, reports, received),
            });
        }
        if !far.sent.rtp.is_empty() {
            let (packets, strange) =
                crossed(&far.sent.rtp, &near.received, (|at| clock.near(at), one), &kinds);
            session.strange(WAYS[1], strange);
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
        session
    }

    /// Leaves out what comes after `end`, when `what` ends: of it nobody could tell what became. What is no more than on
    /// its way then stays.
    fn cut(&mut self, end: Nanos, what: &str) {
        const UNDER_WAY: Nanos = 1000 * MILLI;
        let over = self.span.1.saturating_sub(end);
        if over <= UNDER_WAY {
            return;
        }
        let seconds = over as f64 / 1e9;
        self.remarks.push(format!("the last {seconds:.1} s, after the end of {what}, are left out"));
        self.span.1 = end;
        for way in &mut self.ways {
            way.packets.retain(|packet| packet.sent <= end);
            way.feedback.retain(|one| one.0 <= end);
            way.reports.retain(|one| one.0 <= end);
        }
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
                        format!("; their drift of {ppm:+.1} ppm comes to less than 1 ms and is left in")
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

    fn strange(&mut self, way: &str, count: usize) {
        if count > 0 {
            let what = "packets arrived that nobody saw leave, and are left out";
            self.remarks.push(format!("{way}: {count} {what}"));
        }
    }
}

/// The least round trip that was told of, and whether by receiver reports.
fn least_round_trip(said: &Said) -> Option<(Nanos, bool)> {
    let reported = said.feedback.iter().filter_map(|one| one.round_trip).min();
    let since = said.feedback.iter().filter_map(|one| one.since_sent).min();
    reported.map(|round| (round.as_nanos(), true)).or(since.map(|since| (since.as_nanos(), false)))
}

fn kind(kinds: &BTreeMap<u32, Kind>, packet: &Rtp) -> Kind {
    if packet.padding { Kind::Padding } else { kinds.get(&packet.ssrc).copied().unwrap_or(Kind::Video) }
}

fn timed(rtcp: &[Rtcp]) -> Vec<(Nanos, Rtcp)> {
    left(rtcp, |at| at)
}

fn left(rtcp: &[Rtcp], clock: impl Fn(Nanos) -> Nanos) -> Vec<(Nanos, Rtcp)> {
    rtcp.iter().map(|one| (clock(one.at), one.clone())).collect()
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

/// Packets that left one place, with what became of them at the other; and how many came there that never left.
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
    packets.sort_by_key(|packet| packet.sent);
    (packets, arrived.len())
}

/// When packets were sent by their sender's clock, in nanoseconds, if all of them say so (abs-send-time, without its
/// wraps every 64 s).
fn send_times(packets: &[Rtp]) -> Option<Vec<Nanos>> {
    const BITS: u32 = 24;
    let mut near = i64::from(packets.first()?.abs_send_time?);
    let unwrapped = packets.iter().map(|packet| {
        near = tidegate_core::wire::wrap::nearest(packet.abs_send_time?, BITS, near);
        Some(((i128::from(near) * 1_000_000_000) >> 18) as i64)
    });
    unwrapped.collect()
}

/// Packets that are missing between those of a stream that came. They are taken to have left with the one behind them,
/// and to have no size.
fn gaps(packets: &[Packet]) -> Vec<Packet> {
    /// A longer gap is a stream that began anew.
    const LONGEST: u16 = 3000;
    let mut last: BTreeMap<u32, u16> = BTreeMap::new();
    let mut open: BTreeMap<(u32, u16), Packet> = BTreeMap::new();
    // of a call that lost more nothing can be said; of a file that was made to, the memory is bounded
    let most = 2 * packets.len() + usize::from(LONGEST);
    for packet in packets {
        let (ssrc, sequence) = (packet.rtp.ssrc, packet.rtp.sequence);
        let before = last.get(&ssrc).copied();
        let ahead = before.map_or(1, |before| sequence.wrapping_sub(before));
        if ahead == 0 || ahead > u16::MAX / 2 {
            // late, or twice
            open.remove(&(ssrc, sequence));
            continue;
        }
        last.insert(ssrc, sequence);
        if ahead > LONGEST || open.len() >= most {
            continue;
        }
        for missing in 1..ahead {
            let sequence = sequence.wrapping_sub(missing);
            let rtp = Rtp { sequence, size: 0, transport_sequence: None, abs_send_time: None, ..packet.rtp };
            open.insert((ssrc, sequence), Packet { rtp, fate: Fate::Lost, ..*packet });
        }
    }
    open.into_values().collect()
}
