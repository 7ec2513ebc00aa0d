//! Builds a call from one capture point. Feedback determines the fates of outgoing packets; gaps in sequence numbers
//! show which incoming packets were lost.

use super::{Coverage, DIRECTIONS, Direction, Fate, Packet, Session, kind, millis, timed};
use crate::feedback::{self, FeedbackHistory, Outcome};
use crate::kinds::{MAX_GAP, follows, media};
use crate::point::{Nanos, Point, Rtcp, Rtp, Traffic};
use std::collections::BTreeMap;
use tidegate_core::Ecn;

impl Session {
    /// Builds a call from the recording of one capture point: of an end, or of a place between the ends, where the packets
    /// of both directions have arrived.
    #[must_use]
    pub fn from_one_point(point: &Point, is_between: bool) -> Self {
        let mut session = Self { span: point.span().unwrap_or_default(), ..Self::default() };
        let readable = |rtcp: &[Rtcp]| if point.encrypted { Vec::new() } else { rtcp.to_vec() };
        let history =
            feedback::join(&point.sent.rtp, &readable(&point.sent.rtcp), &readable(&point.received.rtcp));
        let min_round_trip = min_round_trip(&history);
        if !point.sent.rtp.is_empty() {
            let direction = if is_between {
                session.arrived(DIRECTIONS[0], point, (&point.sent, &point.received), None)
            } else {
                session.outgoing(point, history, min_round_trip)
            };
            session.directions.push(direction);
        }
        if !point.received.rtp.is_empty() {
            let round_trip = min_round_trip.filter(|_| !is_between);
            let direction = session.arrived(DIRECTIONS[1], point, (&point.received, &point.sent), round_trip);
            session.directions.push(direction);
        }
        session.remark_on_clocks();
        session.doubt_times(&point.set_back);
        let with_arrivals = session.directions.iter().filter(|direction| direction.coverage.arrived);
        let last_event = with_arrivals.filter_map(Direction::last_event).max();
        if let Some(last_event) = last_event {
            session.cut(last_event, "feedback");
        }
        if point.encrypted {
            session.remarks.push(
                "RTCP is encrypted, so that one capture point does not show which packets arrived; add a capture of \
                 the far end (--far)"
                    .to_owned(),
            );
        }
        session
    }

    /// The outgoing direction: the packets that this point sent, with their fates by the feedback that it received.
    fn outgoing(
        &mut self,
        point: &Point,
        history: FeedbackHistory,
        min_round_trip: Option<(Nanos, bool)>,
    ) -> Direction {
        let sent = &point.sent.rtp;
        let media = media(sent, &point.streams, &point.formats);
        // each difference is the offset of the far clock plus the packet's delay
        let differences = sent.iter().zip(&history.outcomes).filter_map(|(packet, outcome)| match outcome {
            Outcome::Arrived(Some(arrival), _) => Some(arrival.saturating_sub(packet.at)),
            _ => None,
        });
        let min_difference = differences.min();
        let half = min_round_trip.map_or(0, |(round_trip, _)| round_trip / 2);
        let packets = sent.iter().zip(&history.outcomes).map(|(packet, outcome)| {
            let (fate, ecn) = match *outcome {
                Outcome::Unreported => (Fate::Unknown, Ecn::NotEct),
                Outcome::Lost => (Fate::Lost, Ecn::NotEct),
                Outcome::Arrived(arrival, ecn) => {
                    let near_arrival = arrival
                        .zip(min_difference)
                        .map(|(arrival, least)| arrival.saturating_sub(least).saturating_add(half));
                    (near_arrival.map_or(Fate::Unknown, Fate::Arrived), ecn)
                }
            };
            Packet { rtp: *packet, kind: kind(&media, packet), sent: packet.at, fate, ecn }
        });
        let packets: Vec<Packet> = packets.collect();
        let coverage = Coverage {
            sent: true,
            arrived: min_difference.is_some(),
            delay: min_difference.is_some() && min_round_trip.is_some(),
            steady: true,
            feedback: !point.encrypted,
            rtcp: true,
        };
        if let Some((round_trip, from_reports)) = min_round_trip.filter(|_| coverage.arrived) {
            let method = if from_reports {
                "from LSR and DLSR of receiver reports"
            } else {
                "from sending a packet to the feedback about it, including the time before the feedback was sent"
            };
            self.remarks.push(format!(
                "arrival times are from feedback; the far clock is set so that the minimum one-way delay is half of \
                 the minimum round-trip time ({:.1} ms, {method}); the drift of the far clock is not known",
                millis(round_trip)
            ));
        } else if !point.encrypted {
            let problem =
                "the arrival times of packets are not known: no feedback on single packets was recorded";
            self.remarks.push(format!("{}: {problem}", DIRECTIONS[0]));
        }
        let missing = missing_packets(&packets).len();
        if missing > 0 {
            let share = 100.0 * missing as f64 / (missing + packets.len()) as f64;
            self.doubts.push(format!(
                "{}: {missing} of {} sequence numbers ({share:.1} %) are missing at the place of capture: lost before it, \
                 or not captured",
                DIRECTIONS[0],
                missing + packets.len()
            ));
        }
        if history.malformed > 0 {
            self.doubts
                .push(format!("{} datagrams of RTCP could not be read and are left out", history.malformed));
        }
        Direction {
            name: DIRECTIONS[0].to_owned(),
            packets,
            feedback: timed(&point.received.rtcp),
            reports: timed(&point.sent.rtcp),
            coverage,
            history,
            media,
        }
    }

    /// A direction whose packets arrived at this point: with times of sending from abs-send-time, beside the traffic of the
    /// other direction.
    fn arrived(
        &mut self,
        name: &str,
        point: &Point,
        (traffic, back): (&Traffic, &Traffic),
        min_round_trip: Option<(Nanos, bool)>,
    ) -> Direction {
        let received = &traffic.rtp;
        let media = media(received, &point.streams, &point.formats);
        let stamps = send_times(received);
        let min_difference = stamps.as_ref().and_then(|stamps| {
            received.iter().zip(stamps).map(|(packet, &stamp)| packet.at.saturating_sub(stamp)).min()
        });
        let half = min_round_trip.map_or(0, |(round_trip, _)| round_trip / 2);
        let mut packets: Vec<Packet> = received
            .iter()
            .enumerate()
            .map(|(index, rtp)| {
                let stamp = stamps
                    .as_ref()
                    .zip(min_difference)
                    .map(|(stamps, least)| stamps[index].saturating_add(least) - half);
                let sent = stamp.unwrap_or(rtp.at);
                Packet {
                    rtp: *rtp,
                    kind: kind(&media, rtp),
                    sent,
                    fate: Fate::Arrived(rtp.at),
                    ecn: Ecn::NotEct,
                }
            })
            .collect();
        let mut missing = missing_packets(&packets);
        /// Missing packets for each unread one from which on most of them must have been lost.
        const LOST: usize = 10;
        if traffic.unread * LOST > missing.len() && !missing.is_empty() {
            // what cannot be read was not lost by the network
            missing.iter_mut().for_each(|packet| packet.fate = Fate::Unknown);
            self.doubts.push(format!(
                "{name}: {} sequence numbers are missing, but {} packets of the recording could not be read, so that \
                 their fate is not known",
                missing.len(),
                traffic.unread
            ));
        }
        packets.extend(missing);
        packets.sort_by_key(|packet| packet.sent);
        let send_times = if stamps.is_some() { "are from abs-send-time" } else { "are not known" };
        self.remarks.push(format!(
            "{name}: the send times of packets {send_times}; losses are gaps in sequence numbers, and the sizes of \
             lost packets are not known"
        ));
        let coverage = Coverage {
            sent: false,
            arrived: true,
            delay: stamps.is_some() && min_round_trip.is_some(),
            steady: true,
            feedback: !point.encrypted,
            rtcp: true,
        };
        let (feedback, reports) = (timed(&back.rtcp), timed(&traffic.rtcp));
        let history = FeedbackHistory::default();
        Direction { name: name.to_owned(), packets, feedback, reports, coverage, history, media }
    }
}

/// The minimum round trip, and whether it is from receiver reports; else it is from sending a packet to its feedback.
fn min_round_trip(history: &FeedbackHistory) -> Option<(Nanos, bool)> {
    let reported = history.feedback.iter().filter_map(|feedback| feedback.round_trip).min();
    let since_sent = history.feedback.iter().filter_map(|feedback| feedback.since_sent).min();
    reported
        .map(|round_trip| (round_trip.as_nanos(), true))
        .or(since_sent.map(|since_sent| (since_sent.as_nanos(), false)))
}

/// Send times of packets on the sender's clock in nanoseconds: abs-send-time, unwrapped (it wraps every 64 s). `None`
/// if a packet has none.
fn send_times(packets: &[Rtp]) -> Option<Vec<Nanos>> {
    const BITS: u32 = 24;
    let mut near = i64::from(packets.first()?.abs_send_time?);
    let unwrapped = packets.iter().map(|packet| {
        near = tidegate_core::wire::wrap::nearest(packet.abs_send_time?, BITS, near);
        Some(((i128::from(near) * 1_000_000_000) >> 18) as i64)
    });
    unwrapped.collect()
}

/// Packets that are missing in the streams, by their sequence numbers. Each gets the send time of the next packet that
/// arrived, and size 0.
fn missing_packets(packets: &[Packet]) -> Vec<Packet> {
    let mut last: BTreeMap<(u32, u16), Rtp> = BTreeMap::new();
    let mut open: BTreeMap<((u32, u16), u16), Packet> = BTreeMap::new();
    // a call that lost more cannot be analysed, and a forged file must not fill the memory
    let max_missing = 2 * packets.len() + usize::from(MAX_GAP);
    for packet in packets {
        let (stream, sequence) = ((packet.rtp.ssrc, packet.rtp.path), packet.rtp.sequence);
        let before = last.get(&stream).copied();
        let ahead = before.map_or(1, |before| sequence.wrapping_sub(before.sequence));
        if ahead == 0 || ahead > u16::MAX / 2 {
            // late or duplicated
            open.remove(&(stream, sequence));
            continue;
        }
        last.insert(stream, packet.rtp);
        let begins_anew = before.is_some_and(|before| {
            let ticks = packet.rtp.timestamp.wrapping_sub(before.timestamp) as i32;
            !follows(ticks, (packet.rtp.at - before.at) as f64 / 1e9)
        });
        if ahead > MAX_GAP || begins_anew || open.len() >= max_missing {
            continue;
        }
        for missing in 1..ahead {
            let sequence = sequence.wrapping_sub(missing);
            let rtp = Rtp { sequence, size: 0, transport_sequence: None, abs_send_time: None, ..packet.rtp };
            open.insert((stream, sequence), Packet { rtp, fate: Fate::Lost, ..*packet });
        }
    }
    open.into_values().collect()
}
