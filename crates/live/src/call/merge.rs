//! Merges the records of both sides into the record of a run, with the same tables, metrics and digest as for a
//! simulation.
//!
//! The answerer's times are converted to the caller's clock by the minimum delay in each direction, as for recorded
//! calls: its clock is taken to be ahead by half of the difference of the two. The two minimum one-way delays thus
//! become equal. This is exact for a symmetric path; else the delays are off by half of the asymmetry, but their sum
//! over both directions is exact. A drift is measured from the beginning and the end of the call, and corrected where
//! it matters.

use super::offer::Offer;
use super::record::{Fact, Record, Sent};
use std::collections::BTreeMap;
use tidegate_core::record::{FrameRecord, FrameSent, RepairRecord, RtcpRecord};
use tidegate_core::{Cause, Decision, Ecn, FlowId, NodeId, Packet, Recorder, Size, Span, Time};
use tidegate_recordings::clocks::{Clock, Pair, aligned};
use tidegate_sim::record::summary::Warning;
use tidegate_sim::record::target::Sharing;
use tidegate_sim::record::{FlowInfo, LinkInfo, Recording};
use tidegate_sim::scenario::Outcome;

const FLOW: FlowId = FlowId(0);
/// The only node: the network between the two sides.
const NETWORK: NodeId = NodeId(0);

/// A run, and the relation of the two clocks.
pub struct Merged {
    /// The outcome, as of a simulated run.
    pub outcome: Outcome,
    /// Lead of the answerer's clock over the caller's, each counted from its beginning; `None` if a record is missing.
    pub clock_ahead: Option<Span>,
    /// Drift of the answerer's clock in parts per million (positive: too slow), if the call was long enough to measure
    /// it.
    pub drift_ppm: Option<f64>,
    /// Whether the drift was corrected, which is done if it comes to more than a millisecond.
    pub drift_corrected: bool,
    /// The sum of the minimum delays in both directions.
    pub min_round_trip: Option<Span>,
}

/// Packets of one direction by number, with their times on the caller's clock.
struct Direction {
    sent: BTreeMap<u64, (i64, Sent)>,
    arrived: BTreeMap<u64, i64>,
    /// The minimum delay of a packet.
    min_delay: Option<i64>,
}

impl Direction {
    fn new((sender, sender_clock): (&Record, Clock), (receiver, receiver_clock): (&Record, Clock)) -> Self {
        let sent = sender.facts.iter().filter_map(|(time, fact)| match fact {
            Fact::Sent(number, sent) => Some((*number, (sender_clock.near(*time), *sent))),
            _ => None,
        });
        let arrived = receiver.facts.iter().filter_map(|(time, fact)| match fact {
            Fact::Arrived(number, _) => Some((*number, receiver_clock.near(*time))),
            _ => None,
        });
        let (sent, arrived): (BTreeMap<_, (i64, Sent)>, BTreeMap<_, i64>) =
            (sent.collect(), arrived.collect());
        let delay = |(number, arrival): (&u64, &i64)| Some(arrival.saturating_sub(sent.get(number)?.0));
        let min_delay = arrived.iter().filter_map(delay).min();
        Self { sent, arrived, min_delay }
    }

    /// The times of sending and of arrival of each packet that arrived.
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.arrived.iter().filter_map(|(number, arrival)| Some((self.sent.get(number)?.0, *arrival)))
    }
}

/// A substitute for the caller's record from what the answerer received: each packet counts as sent when it arrived.
fn caller_from_received(answerer: &Record) -> Record {
    let received: BTreeMap<u64, Sent> = answerer.received.iter().copied().collect();
    let facts = answerer.facts.iter().filter_map(|(time, fact)| match fact {
        Fact::Arrived(number, _) => Some((*time, Fact::Sent(*number, *received.get(number)?))),
        _ => None,
    });
    Record { facts: facts.collect(), lasted: answerer.lasted, ..Record::default() }
}

/// Merges the records of both sides. If one is missing, the run has what the other side recorded, and a warning.
#[must_use]
pub fn merge(offer: &Offer, caller: Option<&Record>, answerer: Option<&Record>) -> Merged {
    let mut warnings = Vec::new();
    let (substitute, empty);
    let both = caller.is_some() && answerer.is_some();
    let caller = match (caller, answerer) {
        (Some(caller), _) => caller,
        (None, answerer) => {
            warnings.push("the sender's record did not arrive: delays and losses are not known");
            substitute = answerer.map(caller_from_received).unwrap_or_default();
            &substitute
        }
    };
    let answerer = match answerer {
        Some(answerer) => answerer,
        None => {
            warnings.push("the receiver's record did not arrive: arrivals are not known");
            empty = Record::default();
            &empty
        }
    };
    let directions = |far: Clock| {
        let (near, far) = ((caller, Clock::SAME), (answerer, far));
        (Direction::new(near, far), Direction::new(far, near))
    };
    let (outgoing, incoming) = directions(Clock::SAME);
    let pairs: [Vec<Pair>; 2] =
        [outgoing.pairs().collect(), incoming.pairs().map(|(far, near)| (near, far)).collect()];
    let alignment = aligned(&pairs[0], &pairs[1]).filter(|_| both);
    let clock = alignment.map_or(Clock::SAME, |alignment| alignment.clock);
    let (outgoing, incoming) = if clock == Clock::SAME { (outgoing, incoming) } else { directions(clock) };
    let first_audio = answerer.facts.iter().find_map(|(_, fact)| match fact {
        Fact::Arrived(number, _) => outgoing.sent.get(number).and_then(|(_, sent)| sent.audio_frame()),
        _ => None,
    });
    // in a substitute for the caller's record, the first frame received has number 0
    let first_audio = first_audio.filter(|_| both).unwrap_or(0);
    // at least a bin, since means need one
    let duration = caller.lasted.min(offer.duration).max(offer.bin);
    let warmup = if offer.warmup < duration { offer.warmup } else { Span::ZERO };
    let mut merger = Merger {
        recording: Box::new(recording(offer, duration, warmup)),
        end: Time::ZERO + duration,
        directions: [outgoing, incoming],
        clocks: [Clock::SAME, clock],
        both,
        carried: 0,
        hops: 0,
        first_audio,
        warmup_end: Time::ZERO + warmup,
        under_way: Vec::new(),
    };
    let mut facts: Vec<(i64, usize, &Fact)> = Vec::new();
    for (side, record) in [caller, answerer].into_iter().enumerate() {
        let clock = merger.clocks[side];
        facts.extend(record.facts.iter().map(|(time, fact)| (clock.near(*time), side, fact)));
    }
    // the sort is stable: facts of one side at one instant stay in order, and the caller's facts come first
    facts.sort_by_key(|&(time, side, _)| (time, side));
    let events = facts.len() as u64;
    for (time, side, fact) in facts {
        merger.add(Time::from_nanos(time.max(0)), side, fact);
    }
    let warnings = warnings.into_iter().map(|says| Warning { key: "live".to_owned(), says: says.to_owned() });
    Merged {
        outcome: merger.outcome(duration, warmup, events, warnings.collect()),
        // at the answerer's first packet, where the drift is 0
        clock_ahead: alignment.map(|_| Span::from_nanos(clock.offset.saturating_neg())),
        drift_ppm: alignment.and_then(|alignment| alignment.drift_ppm),
        drift_corrected: clock.drift != 0.0,
        min_round_trip: alignment.map(|alignment| Span::from_nanos(alignment.round_trip)),
    }
}

fn recording(offer: &Offer, duration: Span, warmup: Span) -> Recording {
    let end = Time::ZERO + duration;
    let info = FlowInfo {
        name: offer.flow.clone(),
        kind: "media",
        controller: offer.controller.clone(),
        start: offer.start.min(end),
        stop: offer.stop.unwrap_or(end).min(end),
        tightest: None,
        path: vec![NETWORK].into(),
        overhead: offer.overhead,
        sharing: Sharing::Unknown,
        pauses: Vec::new(),
    };
    let link = LinkInfo { node: NETWORK, name: "network".to_owned(), capacity: None };
    let names = vec![link.name.clone(), format!("{}.sender", offer.flow), format!("{}.receiver", offer.flow)];
    Recording::new(offer.level, offer.bin, Time::ZERO + warmup, vec![info], vec![link], names)
}

/// Adds the facts of both sides to a recording.
struct Merger {
    recording: Box<Recording>,
    end: Time,
    /// The packets that each side sent.
    directions: [Direction; 2],
    /// Conversions of each side's times to the caller's clock.
    clocks: [Clock; 2],
    /// Whether both records are there.
    both: bool,
    /// Bytes that arrived after the warm-up.
    carried: u64,
    /// Packets that arrived.
    hops: u64,
    /// The number of the first frame of audio received.
    first_audio: u32,
    warmup_end: Time,
    /// Packets that were in flight at the end.
    under_way: Vec<Packet>,
}

impl Merger {
    /// Packet `number` from the peer of `receiver`, as it was sent.
    fn packet(&self, receiver: usize, number: u64) -> Option<Packet> {
        let direction = &self.directions[1 - receiver];
        let (sent_at, sent) = direction.sent.get(&number)?;
        let mut packet = sent.packet(Time::from_nanos((*sent_at).max(0)));
        // the queues are not observed: a packet's excess over the minimum delay counts as queueing
        let delay = direction.arrived.get(&number).map(|arrival| arrival.saturating_sub(*sent_at));
        packet.queued = Span::from_nanos(
            delay.zip(direction.min_delay).map_or(0, |(delay, least)| delay.saturating_sub(least)),
        );
        Some(packet)
    }

    fn add(&mut self, time: Time, side: usize, fact: &Fact) {
        let (end, clock) = (self.end, self.clocks[side]);
        if time > end {
            match fact {
                // it was in flight at the end, unless it was sent after the end by a side that woke late
                Fact::Arrived(number, _) => {
                    self.under_way.extend(self.packet(side, *number).filter(|packet| packet.sent <= end));
                }
                // frames shown before the end are recorded when the receiver ends
                Fact::Frame(_) => self.add(end, side, fact),
                _ => {}
            }
            return;
        }
        let record: &mut Recording = &mut self.recording;
        match fact {
            Fact::Sent(number, sent) => {
                let packet = sent.packet(time);
                record.sent(time, &packet);
                if self.directions[side].arrived.contains_key(number) {
                } else if self.both {
                    record.dropped(time, &packet, NETWORK, Cause::Loss);
                } else {
                    self.under_way.push(packet);
                }
            }
            Fact::Arrived(number, ecn) => {
                let Some(mut packet) = self.packet(side, *number) else { return };
                let ecn = Ecn::from_bits(*ecn);
                let sent_ecn = std::mem::replace(&mut packet.datagram.ecn, ecn);
                let record = &mut self.recording;
                match ecn {
                    Ecn::Ce if sent_ecn != Ecn::Ce => record.marked(time, &packet, NETWORK),
                    Ecn::NotEct if sent_ecn != Ecn::NotEct => record.bleached(time, &packet, NETWORK),
                    _ => {}
                }
                record.arrived(time, &packet);
                self.hops += 1;
                self.carried += if time >= self.warmup_end { u64::from(packet.size) } else { 0 };
            }
            Fact::Late(number) => {
                if let Some(packet) = self.packet(side, *number) {
                    self.recording.late(time, FLOW, &packet);
                }
            }
            Fact::Ended => record.ended(time, FLOW),
            Fact::EcnChecked(check) => record.ecn_checked(time, FLOW, *check),
            Fact::Tripped(breaker, stops) => record.tripped(time, FLOW, *breaker, *stops),
            Fact::Refused(count) => record.refused(time, FLOW, *count),
            // the other side's record is untrusted input: sums of its values must not overflow
            Fact::Goodput(bytes) => record.goodput(time, FLOW, (*bytes).min(Size::from_bytes(1 << 16))),
            Fact::Repaired(repair) => record.repaired(time, &RepairRecord { flow: FLOW, ..*repair }),
            Fact::Paced(waited) => record.paced(time, FLOW, *waited),
            Fact::Skipped(packets, bytes) => {
                record.skipped(time, FLOW, *packets, (*bytes).min(Size::from_bytes(1 << 32)));
            }
            Fact::LeftOut => record.left_out(time, FLOW),
            Fact::BelowLeast(least) => record.below_least(time, FLOW, *least),
            Fact::Decision(target, pacing, window) => {
                let decision = Decision { pacing: *pacing, window: *window, ..Decision::rate(*target) };
                record.decision(time, FLOW, &decision);
            }
            Fact::Internal(name, value) => record.internal(time, FLOW, name, *value),
            Fact::VideoSwitched(interval) => record.video_switched(time, FLOW, *interval),
            Fact::VideoStep(step) => record.video_step(time, FLOW, step),
            Fact::FrameSent(frame) => record.frame_sent(time, &FrameSent { flow: FLOW, ..*frame }),
            Fact::Frame(frame) => {
                let on_near_clock = |time: Option<Time>| {
                    let near = time.map(|time| Time::from_nanos(clock.near(time.as_nanos())));
                    near.filter(|time| (Time::ZERO..=end).contains(time))
                };
                let (complete, rendered) = (on_near_clock(frame.complete), on_near_clock(frame.rendered));
                // the receiver counts frames of audio from the first one received
                let number =
                    if frame.video { frame.frame } else { frame.frame.wrapping_add(self.first_audio) };
                let due = on_near_clock(frame.due);
                let frame = FrameRecord { flow: FLOW, complete, rendered, due, frame: number, ..*frame };
                record.frame(time, &frame);
            }
            Fact::Freeze(length) => record.freeze(time, FLOW, *length),
            Fact::Rtcp(rtcp) => record.rtcp(time, &RtcpRecord { flow: FLOW, ..*rtcp }),
        }
    }

    fn outcome(self, duration: Span, warmup: Span, events: u64, warnings: Vec<Warning>) -> Outcome {
        let mut recording = self.recording;
        self.under_way.iter().for_each(|packet| recording.under_way(packet, NETWORK));
        recording.close_frames(self.end);
        recording.end(self.end);
        let carried = self.carried;
        recording.set_carried(|_| carried);
        let summary = recording.summary(duration, warmup).warned(warnings);
        Outcome { recording, summary, draws: Vec::new(), events, hops: self.hops }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Body, Datagram, Frame, Kind, Level, Rate};
    use tidegate_endpoint::{FeedbackSettings, Playout, Repair, RtcpSettings};

    fn offer() -> Offer {
        Offer {
            flow: "call".to_owned(),
            controller: "gcc".to_owned(),
            seed: 1,
            duration: Span::from_secs(2),
            warmup: Span::ZERO,
            start: Time::ZERO,
            stop: None,
            bin: Span::from_millis(200),
            level: Level::Packets,
            overhead: 52,
            payload: 1200,
            end: ("call.receiver".to_owned(), 1),
            streams: Vec::new(),
            feedback: FeedbackSettings::default(),
            playout: Playout::default(),
            pictures: Time::ZERO,
            repair: Repair::default(),
            rtcp: RtcpSettings::default(),
            half: None,
        }
    }

    /// Records of a call with a packet every 10 ms in each direction for two seconds. The delay is 20 ms plus, for the
    /// caller's packets, `queueing`; every tenth of these is lost. The answerer's clock is `ahead` of the caller's.
    fn sides(ahead: Span, queueing: impl Fn(u64) -> Span) -> (Record, Record) {
        sides_for(200, &|time| time + ahead, queueing)
    }

    /// Records with `count` packets in each direction; `far` converts the caller's time to the answerer's clock.
    fn sides_for(count: u64, far: &dyn Fn(Time) -> Time, queueing: impl Fn(u64) -> Span) -> (Record, Record) {
        let datagram = Datagram { size: 1000, body: Body::Rtcp, ecn: Ecn::Ect1, ..Datagram::default() };
        let (mut caller, mut answerer) = (Record::default(), Record::default());
        let sent = |number: u64, kind| Sent::new(number as u32, kind, Frame::default(), &datagram);
        for number in 0..count {
            let departure = Time::from_millis(number as i64 * 10);
            caller.add(departure, Fact::Sent(number, sent(number, Kind::Video)));
            let arrival = departure + Span::from_millis(20) + queueing(number);
            if number % 10 != 9 {
                let ecn = if number % 20 == 0 { Ecn::Ce } else { Ecn::Ect1 };
                answerer.add(far(arrival), Fact::Arrived(number, ecn as u8));
            }
            answerer.add(far(departure), Fact::Sent(number, sent(number, Kind::Rtcp)));
            caller.add(departure + Span::from_millis(20), Fact::Arrived(number, Ecn::NotEct as u8));
        }
        let end = Time::from_millis(count as i64 * 10);
        (caller.lasted, answerer.lasted) = (end - Time::ZERO, far(end) - Time::ZERO);
        (caller, answerer)
    }

    #[test]
    fn clocks_come_together_by_the_least_delays_and_losses_are_what_did_not_arrive() {
        let offer = offer();
        for ahead in [Span::ZERO, Span::from_secs(7), Span::from_millis(-30)] {
            let (caller, answerer) = sides(ahead, |number| Span::from_millis((number % 5) as i64));
            let merged = merge(&offer, Some(&caller), Some(&answerer));
            assert_eq!(merged.clock_ahead, Some(ahead));
            assert_eq!(merged.min_round_trip, Some(Span::from_millis(40)));
            let flow = &merged.outcome.summary.flows[0];
            // the last two were in flight when the call ended; one of these was lost
            assert_eq!((flow.packets_sent, flow.lost_wire), (200, 20));
            assert_eq!(flow.one_way_delay_ms_min, Some(20.0));
            assert_eq!(flow.one_way_delay_ms_max, Some(24.0));
            assert_eq!(flow.queueing_delay_ms_max, Some(4.0));
            assert_eq!(flow.marked, 10);
        }
    }

    #[test]
    fn a_drift_is_measured_and_corrected_where_it_matters() {
        // a clock that is too fast or too slow, by 5 ms over 100 s, which one offset cannot correct
        for ppm in [50, -50] {
            let far = |time: Time| {
                let nanos = time.as_nanos();
                Time::from_nanos(nanos + 7_000_000_000 + nanos * ppm / 1_000_000)
            };
            let (caller, answerer) = sides_for(10_000, &far, |number| Span::from_millis((number % 5) as i64));
            let offer = Offer { duration: Span::from_secs(100), ..offer() };
            let merged = merge(&offer, Some(&caller), Some(&answerer));
            let drift = merged.drift_ppm.expect("long enough");
            assert!((drift + ppm as f64).abs() < 0.5, "{drift}");
            assert!(merged.drift_corrected);
            let ahead = merged.clock_ahead.expect("both").as_millis_f64();
            assert!((ahead - 7000.0).abs() < 0.1, "{ahead}");
            let flow = &merged.outcome.summary.flows[0];
            let min = flow.one_way_delay_ms_min.expect("some arrived");
            let max = flow.one_way_delay_ms_max.expect("some arrived");
            assert!((19.9..20.1).contains(&min) && (23.9..24.1).contains(&max), "{min} to {max}");
            assert!(flow.queueing_delay_ms_max.expect("some arrived") < 4.2);
        }
        // in two seconds it is 0.1 ms: measured, but not corrected
        let far = |time: Time| Time::from_nanos(time.as_nanos() + time.as_nanos() * 50 / 1_000_000);
        let (caller, answerer) = sides_for(200, &far, |_| Span::ZERO);
        let merged = merge(&offer(), Some(&caller), Some(&answerer));
        assert!((merged.drift_ppm.expect("both ways") + 50.0).abs() < 1.0);
        assert!(!merged.drift_corrected);
    }

    #[test]
    fn one_record_alone_makes_a_run_with_a_warning() {
        let offer = offer();
        let (caller, mut answerer) = sides(Span::from_secs(1), |_| Span::ZERO);
        let alone = merge(&offer, Some(&caller), None).outcome.summary;
        assert_eq!((alone.flows[0].packets_sent, alone.flows[0].packets_received), (200, 0));
        assert_eq!((alone.flows[0].lost_wire, alone.warnings.len()), (0, 1));
        let datagram = Datagram { size: 1000, body: Body::Rtcp, ..Datagram::default() };
        answerer.received = (0..200)
            .map(|number| (number, Sent::new(number as u32, Kind::Video, Frame::default(), &datagram)))
            .collect();
        answerer.lasted = Span::from_secs(2);
        let alone = merge(&offer, None, Some(&answerer)).outcome.summary;
        assert_eq!((alone.flows[0].lost_wire, alone.warnings.len()), (0, 1));
        assert!(alone.flows[0].packets_received > 80);
    }

    #[test]
    fn a_hostile_record_breaks_nothing() {
        let offer = offer();
        let (caller, _) = sides(Span::ZERO, |_| Span::ZERO);
        let mut hostile = Record { lasted: Span::MAX, ..Record::default() };
        let frame = |time| FrameRecord {
            flow: FlowId(9),
            video: true,
            frame: 7,
            complete: time,
            rendered: time,
            due: time,
        };
        for time in [i64::MIN, -1, 0, 5, 1_000_000_000, i64::MAX] {
            let facts = [
                Fact::Arrived(u64::MAX, 255),
                Fact::Arrived(3, 255),
                Fact::Late(u64::MAX),
                Fact::Goodput(Size::from_bytes(u64::MAX)),
                Fact::Goodput(Size::from_bytes(u64::MAX)),
                Fact::Skipped(u32::MAX, Size::from_bytes(u64::MAX)),
                Fact::Paced(Span::from_nanos(i64::MIN)),
                Fact::Freeze(Span::MAX),
                Fact::Decision(Rate::MAX, Rate::MAX, Some(Size::from_bytes(u64::MAX))),
                Fact::Internal("x".repeat(1000), f64::NAN),
                Fact::Frame(frame(Some(Time::from_nanos(i64::MIN)))),
                Fact::Frame(frame(Some(Time::MAX))),
            ];
            hostile.facts.extend(facts.into_iter().map(|fact| (time, fact)));
        }
        let merged = merge(&offer, Some(&caller), Some(&hostile));
        assert_eq!(merged.outcome.summary.flows[0].packets_sent, 200);
        drop(merge(&offer, Some(&hostile), Some(&caller)));
        drop(merge(&offer, None, Some(&hostile)));
    }
}
