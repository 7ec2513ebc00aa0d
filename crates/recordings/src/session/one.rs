//! A call as one place saw it: what became of what it sent, by feedback; what came in, and what of that is missing.

use super::{Fate, Known, Packet, Session, WAYS, Way, kind, millis, timed};
use crate::feedback::{self, Said, Told};
use crate::kinds::kinds;
use crate::point::{Nanos, Point, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::Ecn;

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
}

/// The least round trip that was told of, and whether by receiver reports.
fn least_round_trip(said: &Said) -> Option<(Nanos, bool)> {
    let reported = said.feedback.iter().filter_map(|one| one.round_trip).min();
    let since = said.feedback.iter().filter_map(|one| one.since_sent).min();
    reported.map(|round| (round.as_nanos(), true)).or(since.map(|since| (since.as_nanos(), false)))
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
