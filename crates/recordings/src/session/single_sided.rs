//! Builds a call from one capture point. Feedback determines the fates of outgoing packets; gaps in sequence numbers
//! show which incoming packets were lost.

use super::{Coverage, DIRECTIONS, Direction, Fate, Packet, Session, kind, millis, timed};
use crate::feedback::{self, FeedbackHistory, Outcome};
use crate::kinds::kinds;
use crate::point::{Nanos, Point, Rtcp, Rtp};
use std::collections::BTreeMap;
use tidegate_core::Ecn;

impl Session {
    /// Builds a call from the recording of one capture point.
    #[must_use]
    pub fn from_one_point(point: &Point) -> Self {
        let mut session = Self { span: point.span().unwrap_or_default(), ..Self::default() };
        let readable = |rtcp: &[Rtcp]| if point.encrypted { Vec::new() } else { rtcp.to_vec() };
        let history =
            feedback::join(&point.sent.rtp, &readable(&point.sent.rtcp), &readable(&point.received.rtcp));
        let min_round_trip = min_round_trip(&history);
        if !point.sent.rtp.is_empty() {
            let direction = session.outgoing(point, history, min_round_trip);
            session.directions.push(direction);
        }
        if !point.received.rtp.is_empty() {
            let direction = session.incoming(point, min_round_trip);
            session.directions.push(direction);
        }
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
        let kinds = kinds(sent, &point.streams);
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
            Packet { rtp: *packet, kind: kind(&kinds, packet), sent: packet.at, fate, ecn }
        });
        let packets: Vec<Packet> = packets.collect();
        let coverage = Coverage {
            sent: true,
            arrived: min_difference.is_some(),
            delay: min_difference.is_some() && min_round_trip.is_some(),
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
        if history.malformed > 0 {
            self.remarks
                .push(format!("{} datagrams of RTCP could not be read and are left out", history.malformed));
        }
        Direction {
            name: DIRECTIONS[0].to_owned(),
            packets,
            feedback: timed(&point.received.rtcp),
            reports: timed(&point.sent.rtcp),
            coverage,
            history,
        }
    }

    /// The incoming direction: the packets that this point received, with times of sending from abs-send-time.
    fn incoming(&mut self, point: &Point, min_round_trip: Option<(Nanos, bool)>) -> Direction {
        let received = &point.received.rtp;
        let kinds = kinds(received, &point.streams);
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
                    kind: kind(&kinds, rtp),
                    sent,
                    fate: Fate::Arrived(rtp.at),
                    ecn: Ecn::NotEct,
                }
            })
            .collect();
        let missing = missing_packets(&packets);
        packets.extend(missing);
        packets.sort_by_key(|packet| packet.sent);
        let send_times = if stamps.is_some() { "are from abs-send-time" } else { "are not known" };
        self.remarks.push(format!(
            "{}: the send times of packets {send_times}; losses are gaps in sequence numbers, and the sizes of \
             lost packets are not known",
            DIRECTIONS[1]
        ));
        let coverage = Coverage {
            sent: false,
            arrived: true,
            delay: stamps.is_some() && min_round_trip.is_some(),
            feedback: !point.encrypted,
            rtcp: true,
        };
        let (feedback, reports) = (timed(&point.sent.rtcp), timed(&point.received.rtcp));
        let history = FeedbackHistory::default();
        Direction { name: DIRECTIONS[1].to_owned(), packets, feedback, reports, coverage, history }
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
    /// Longest gap; a longer one means that the stream began anew.
    const MAX_GAP: u16 = 3000;
    let mut last: BTreeMap<u32, u16> = BTreeMap::new();
    let mut open: BTreeMap<(u32, u16), Packet> = BTreeMap::new();
    // a call that lost more cannot be analysed, and a forged file must not fill the memory
    let max_missing = 2 * packets.len() + usize::from(MAX_GAP);
    for packet in packets {
        let (ssrc, sequence) = (packet.rtp.ssrc, packet.rtp.sequence);
        let before = last.get(&ssrc).copied();
        let ahead = before.map_or(1, |before| sequence.wrapping_sub(before));
        if ahead == 0 || ahead > u16::MAX / 2 {
            // late or duplicated
            open.remove(&(ssrc, sequence));
            continue;
        }
        last.insert(ssrc, sequence);
        if ahead > MAX_GAP || open.len() >= max_missing {
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
