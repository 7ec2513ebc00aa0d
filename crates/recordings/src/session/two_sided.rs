//! Builds a call from two capture points, whose clocks are aligned.

use super::{Clocks, Coverage, DIRECTIONS, Direction, Fate, Packet, Session, kind, millis, timed, timed_by};
use crate::clocks::{self, Aligned, Clock, Fault, Pair};
use crate::feedback::{self, FeedbackHistory, Outcome};
use crate::kinds::{Media, media};
use crate::point::{MILLI, Nanos, Point, Rtcp, Rtp, Traffic};
use std::collections::BTreeMap;
use tidegate_core::Ecn;

impl Session {
    /// Builds a call from the recordings of two capture points.
    #[must_use]
    pub fn from_two_points(near: &Point, far: &Point, clocks: Clocks) -> Self {
        let mut session = Self::default();
        let outgoing = pairs(&near.sent, &far.received);
        let incoming: Vec<Pair> =
            pairs(&far.sent, &near.received).into_iter().map(|(far, near)| (near, far)).collect();
        let (first, last) = near.span().unwrap_or_default();
        session.span = (first, last);
        let (clock, is_certain) = session.align_clocks(clocks, &outgoing, &incoming);
        let far_span = far.span().map(|(from, to)| (clock.near(from), clock.near(to)));
        let (far_first, far_last) = far_span.unwrap_or((first, last));
        session.span = (first.min(far_first), last.max(far_last));
        let streams = [&near.streams[..], &far.streams[..]].concat();
        let formats =
            near.formats.iter().chain(&far.formats).map(|(&ssrc, &format)| (ssrc, format)).collect();
        // each stream where it was sent: arrivals are not at an even pace
        let media = media(&[&near.sent.rtp[..], &far.sent.rtp[..]].concat(), &streams, &formats);
        let of = |packets: &[Rtp]| -> BTreeMap<u32, Media> {
            packets.iter().filter_map(|packet| Some((packet.ssrc, *media.get(&packet.ssrc)?))).collect()
        };
        let identity = |time: Nanos| time;
        let coverage = Coverage {
            sent: true,
            arrived: true,
            delay: is_certain,
            steady: is_certain,
            feedback: !near.encrypted,
            rtcp: true,
        };
        if !near.sent.rtp.is_empty() {
            let (mut packets, unmatched) =
                match_packets(&near.sent.rtp, &far.received, (identity, |time| clock.near(time)), &media);
            session.remark_on_unmatched(DIRECTIONS[0], unmatched);
            let readable = !near.encrypted;
            let none: &[Rtcp] = &[];
            let (reports, received) =
                if readable { (&near.sent.rtcp[..], &near.received.rtcp[..]) } else { (none, none) };
            let history = feedback::join(&near.sent.rtp, reports, received);
            session.mark_restored_lost(DIRECTIONS[0], far, &history, &mut packets);
            packets.sort_by_key(|packet| packet.sent);
            session.directions.push(Direction {
                name: DIRECTIONS[0].to_owned(),
                packets,
                feedback: timed_by(&far.sent.rtcp, |time| clock.near(time)),
                reports: timed(&near.sent.rtcp),
                coverage,
                history,
                media: of(&near.sent.rtp),
            });
        }
        if !far.sent.rtp.is_empty() {
            let (mut packets, unmatched) =
                match_packets(&far.sent.rtp, &near.received, (|time| clock.near(time), identity), &media);
            session.remark_on_unmatched(DIRECTIONS[1], unmatched);
            if !far.encrypted {
                let history = feedback::join(&far.sent.rtp, &far.sent.rtcp, &far.received.rtcp);
                session.mark_restored_lost(DIRECTIONS[1], near, &history, &mut packets);
            }
            packets.sort_by_key(|packet| packet.sent);
            session.directions.push(Direction {
                name: DIRECTIONS[1].to_owned(),
                packets,
                feedback: timed(&near.sent.rtcp),
                reports: timed_by(&far.sent.rtcp, |time| clock.near(time)),
                coverage,
                history: FeedbackHistory::default(),
                media: of(&far.sent.rtp),
            });
        }
        session.remark_on_clocks();
        session.cut(last.min(far_last), "the recording of one capture point");
        // if neither end received anything any more, the path was gone before the recordings ended
        let last_received =
            [near.received.span().map(|(_, to)| to), far.received.span().map(|(_, to)| clock.near(to))];
        if let Some(last_received) = last_received.into_iter().flatten().max() {
            session.cut(last_received, "reception at both ends");
        }
        session
    }

    /// Whether packets pass the far point before the near one, so that the two are swapped.
    #[must_use]
    pub fn is_backwards(near: &Point, far: &Point) -> bool {
        let outgoing = pairs(&near.sent, &far.received);
        let incoming = pairs(&far.sent, &near.received);
        let swapped: Vec<Pair> = incoming.iter().map(|&(far, near)| (near, far)).collect();
        if let Some(is_backwards) = clocks::is_backwards(&outgoing, &swapped) {
            return is_backwards;
        }
        let min_delay = |pairs: &[Pair]| pairs.iter().map(|&(from, to)| to.saturating_sub(from)).min();
        match (min_delay(&outgoing), min_delay(&incoming)) {
            (Some(outgoing), Some(incoming)) => outgoing.saturating_add(incoming) < 0,
            (Some(delay), None) | (None, Some(delay)) => delay < 0,
            (None, None) => false,
        }
    }

    /// Finds the transformation from the far clock to the near one, and whether it is good for delays; remarks on how it
    /// was found.
    fn align_clocks(&mut self, clocks: Clocks, outgoing: &[Pair], incoming: &[Pair]) -> (Clock, bool) {
        let alignment = clocks::aligned(outgoing, incoming);
        let backwards =
            outgoing.iter().any(|&(near, far)| far < near) || incoming.iter().any(|&(near, far)| near < far);
        if clocks == Clocks::Same && backwards {
            self.doubts.push(
                "packets arrive before they leave: the two capture points had separate clocks".to_owned(),
            );
        }
        let fault = alignment.and_then(|alignment| alignment.fault);
        let (clock, remark) = match (clocks, alignment) {
            (_, Some(Aligned { clock, fault: Some(Fault::Set { at, step }), .. })) => {
                let (step, at) = (millis(step), millis(at.saturating_sub(self.span.0)) / 1e3);
                let remark = format!(
                    "the clock of one capture point was set by {step:+.1} ms at about {at:.0} s: delays are not known"
                );
                (clock, remark)
            }
            (Clocks::Same, _) if !backwards => {
                (Clock::SAME, "both capture points are assumed to have one clock".to_owned())
            }
            (_, Some(Aligned { clock, fault: Some(Fault::Drift(ppm)), .. })) => {
                let remark = format!(
                    "the clocks of the capture points drift by {ppm:+.0} ppm, which no clock that runs does (100 ppm or \
                     less): delays are not known"
                );
                (clock, remark)
            }
            (_, Some(alignment)) => {
                let drift = match alignment.drift_ppm {
                    Some(ppm) if alignment.clock.drift != 0.0 => {
                        format!("; a drift of {ppm:+.1} ppm is corrected")
                    }
                    Some(ppm) => {
                        let threshold = alignment.threshold / MILLI;
                        format!(
                            "; a drift of {ppm:+.1} ppm, less than {threshold} ms in all, is not corrected"
                        )
                    }
                    None => "; the recording is too short to measure the drift of the clocks".to_owned(),
                };
                let round_trip = millis(alignment.round_trip);
                let offset = millis(alignment.clock.offset);
                let remark = format!(
                    "{offset:+.3} ms are added to the far clock, so that the minimum one-way delay is the same in both \
                     directions ({:.3} ms){drift}",
                    round_trip / 2.0
                );
                (alignment.clock, remark)
            }
            (_, None) => {
                let outgoing = outgoing.iter().map(|&(near, far)| far.saturating_sub(near)).min();
                let incoming = incoming.iter().map(|&(near, far)| far.saturating_sub(near)).max();
                let offset = -outgoing.or(incoming).unwrap_or(0);
                let remark = "packets passed both capture points in one direction only, so that the offset of their \
                              clocks cannot be separated from the path's delay: the minimum one-way delay is set to 0";
                (Clock { offset, drift: 0.0, origin: 0 }, remark.to_owned())
            }
        };
        let is_doubtful = fault.is_some() || (alignment.is_none() && clocks == Clocks::Separate);
        if is_doubtful { &mut self.doubts } else { &mut self.remarks }.push(remark);
        (clock, fault.is_none() || clock == Clock::SAME)
    }

    /// Marks packets that the receiver restored (FEC) as lost: its log has them among the packets received, but its
    /// feedback reports them lost. `packets` must be in the order of `history.outcomes`.
    fn mark_restored_lost(
        &mut self,
        name: &str,
        receiver: &Point,
        history: &FeedbackHistory,
        packets: &mut [Packet],
    ) {
        if !receiver.restored {
            return;
        }
        let mut count = 0;
        for (packet, outcome) in packets.iter_mut().zip(&history.outcomes) {
            if matches!((packet.fate, outcome), (Fate::Arrived(_), Outcome::Lost)) {
                packet.fate = Fate::Lost;
                count += 1;
            }
        }
        if count > 0 {
            self.remarks.push(format!(
                "{name}: {count} packets in the receiver's log are lost according to the receiver's feedback: \
                 FEC restored them, and they count as lost"
            ));
        }
    }

    fn remark_on_unmatched(&mut self, name: &str, count: usize) {
        if count > 0 {
            let problem = "packets that arrived are not in the sender's recording and are left out";
            self.doubts.push(format!("{name}: {count} {problem}"));
        }
    }
}

/// Fields that identify an RTP packet: SSRC, sequence number and timestamp.
fn identity(packet: &Rtp) -> (u32, u16, u32) {
    (packet.ssrc, packet.sequence, packet.timestamp)
}

/// The times at which packets passed one capture point and the other, each on its own clock. RTCP is matched by its
/// bytes, if no other datagram has the same ones.
fn pairs(from: &Traffic, to: &Traffic) -> Vec<Pair> {
    let arrived: BTreeMap<_, _> = to.rtp.iter().rev().map(|packet| (identity(packet), packet.at)).collect();
    let rtp = from.rtp.iter().filter_map(|packet| Some((packet.at, *arrived.get(&identity(packet))?)));
    let unique = |rtcp: &[Rtcp]| -> BTreeMap<Vec<u8>, Option<Nanos>> {
        let mut times: BTreeMap<Vec<u8>, Option<Nanos>> = BTreeMap::new();
        for packet in rtcp {
            times.entry(packet.bytes.clone()).and_modify(|time| *time = None).or_insert(Some(packet.at));
        }
        times
    };
    let (departures, arrivals) = (unique(&from.rtcp), unique(&to.rtcp));
    let rtcp = departures.iter().filter_map(|(bytes, time)| Some(((*time)?, (*arrivals.get(bytes)?)?)));
    rtp.chain(rtcp).collect()
}

/// Matches the packets sent at one capture point with those received at the other. Returns the packets sent, in the
/// order of `sent`, with their fates, and the number of packets received that match none.
fn match_packets(
    sent: &[Rtp],
    received: &Traffic,
    (sender_clock, receiver_clock): (impl Fn(Nanos) -> Nanos, impl Fn(Nanos) -> Nanos),
    media: &BTreeMap<u32, Media>,
) -> (Vec<Packet>, usize) {
    // the first copy counts
    let mut arrived: BTreeMap<_, _> =
        received.rtp.iter().rev().map(|packet| (identity(packet), receiver_clock(packet.at))).collect();
    let mut packets: Vec<Packet> = sent
        .iter()
        .map(|rtp| {
            let sent = sender_clock(rtp.at);
            let fate = arrived.remove(&identity(rtp)).map_or(Fate::Unknown, Fate::Arrived);
            Packet { rtp: *rtp, kind: kind(media, rtp), sent, fate, ecn: Ecn::NotEct }
        })
        .collect();
    let delays = || {
        packets.iter().filter_map(|packet| match packet.fate {
            Fate::Arrived(arrival) => Some(arrival - packet.sent),
            _ => None,
        })
    };
    // a missing packet is lost if the receiver's recording covers each time at which it could have arrived; else it may
    // have arrived before that recording began, or after it ended
    if let (Some(min_delay), Some(max_delay), Some((first, last))) =
        (delays().min(), delays().max(), received.span())
    {
        let (first, last) = (receiver_clock(first), receiver_clock(last));
        for packet in &mut packets {
            let covered = packet.sent.saturating_add(min_delay) >= first
                && packet.sent.saturating_add(max_delay) <= last;
            if packet.fate == Fate::Unknown && covered {
                packet.fate = Fate::Lost;
            }
        }
    }
    (packets, arrived.len())
}
