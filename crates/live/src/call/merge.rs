//! From the records of both sides to the record of a run: the same tables, metrics and digest as of a simulated one.
//!
//! The far side's times are brought to the caller's clock by the least delay in each direction, as those of recorded calls
//! are: its clock is taken to be ahead by half of the difference of the two. So the two least one-way delays come out
//! equal, which is exact where the path is symmetric, and else off by half of the asymmetry; sums over both directions are
//! never off. A drift is found from the beginning and the end of the call, and taken out where it matters.

use super::offer::Offer;
use super::record::{Fact, Record, Sent};
use std::collections::BTreeMap;
use tidegate_core::record::{FrameRecord, FrameSent, RepairRecord, RtcpRecord};
use tidegate_core::{Cause, Decision, Ecn, FlowId, NodeId, Packet, Recorder, Size, Span, Time};
use tidegate_recordings::clocks::{Clock, Pair, aligned};
use tidegate_sim::record::summary::{Summary, Warning};
use tidegate_sim::record::{FlowInfo, LinkInfo, Recording};
use tidegate_sim::scenario::Outcome;

const FLOW: FlowId = FlowId(0);
/// All that is between the two sides.
const NETWORK: NodeId = NodeId(0);

/// A run, and how the two clocks were brought together.
pub struct Merged {
    /// As a simulated run leaves it.
    pub outcome: Outcome,
    /// By how much the answerer's clock was ahead of the caller's, counted from the beginning of each; not known where one
    /// record is missing.
    pub ahead: Option<Span>,
    /// By how much its clock went too slow, in parts per million (negative: too fast), if the call was long enough to tell.
    pub drift_ppm: Option<f64>,
    /// Whether that was taken out of its times: where it came to more than a millisecond.
    pub straightened: bool,
    /// The sum of the least delays in both directions.
    pub least_round_trip: Option<Span>,
}

/// What went in one direction: by number when it was sent, what it was, and when it arrived, by the caller's clock.
struct Direction {
    sent: BTreeMap<u64, (i64, Sent)>,
    arrived: BTreeMap<u64, i64>,
    /// The least time from a sending to its arrival.
    least: Option<i64>,
}

impl Direction {
    fn new((from, out): (&Record, Clock), (to, into): (&Record, Clock)) -> Self {
        let sent = from.facts.iter().filter_map(|(at, fact)| match fact {
            Fact::Sent(number, sent) => Some((*number, (out.near(*at), *sent))),
            _ => None,
        });
        let arrived = to.facts.iter().filter_map(|(at, fact)| match fact {
            Fact::Arrived(number, _) => Some((*number, into.near(*at))),
            _ => None,
        });
        let (sent, arrived): (BTreeMap<_, (i64, Sent)>, BTreeMap<_, i64>) =
            (sent.collect(), arrived.collect());
        let took = |(number, at): (&u64, &i64)| Some(at.saturating_sub(sent.get(number)?.0));
        let least = arrived.iter().filter_map(took).min();
        Self { sent, arrived, least }
    }

    /// When each packet that arrived was sent, and when it arrived.
    fn passed(&self) -> impl Iterator<Item = Pair> {
        self.arrived.iter().filter_map(|(number, at)| Some((self.sent.get(number)?.0, *at)))
    }
}

/// A caller's record for an answerer that has none: what it heard, as if it had been sent when it came.
fn as_heard(answerer: &Record) -> Record {
    let heard: BTreeMap<u64, Sent> = answerer.heard.iter().copied().collect();
    let facts = answerer.facts.iter().filter_map(|(at, fact)| match fact {
        Fact::Arrived(number, _) => Some((*at, Fact::Sent(*number, *heard.get(number)?))),
        _ => None,
    });
    Record { facts: facts.collect(), lasted: answerer.lasted, ..Record::default() }
}

/// Brings the records of both sides together. Where the other side's did not come, the run has what one side knows, and
/// says so.
#[must_use]
pub fn merge(offer: &Offer, caller: Option<&Record>, answerer: Option<&Record>) -> Merged {
    let mut warnings = Vec::new();
    let (alone, nobody);
    let both = caller.is_some() && answerer.is_some();
    let caller = match (caller, answerer) {
        (Some(caller), _) => caller,
        (None, answerer) => {
            warnings.push("the sender's record did not come: delays are not known, nor what was lost");
            alone = answerer.map(as_heard).unwrap_or_default();
            &alone
        }
    };
    let answerer = match answerer {
        Some(answerer) => answerer,
        None => {
            warnings.push("the receiver's record did not come: what arrived, and when, is not known");
            nobody = Record::default();
            &nobody
        }
    };
    let directions = |far: Clock| {
        let (near, far) = ((caller, Clock::SAME), (answerer, far));
        (Direction::new(near, far), Direction::new(far, near))
    };
    let (there, back) = directions(Clock::SAME);
    let pairs: [Vec<Pair>; 2] =
        [there.passed().collect(), back.passed().map(|(far, near)| (near, far)).collect()];
    let found = aligned(&pairs[0], &pairs[1]).filter(|_| both);
    let clock = found.map_or(Clock::SAME, |found| found.clock);
    let (there, back) = if clock == Clock::SAME { (there, back) } else { directions(clock) };
    let audio = answerer.facts.iter().find_map(|(_, fact)| match fact {
        Fact::Arrived(number, _) => there.sent.get(number).and_then(|(_, sent)| sent.audio_frame()),
        _ => None,
    });
    // in a record that was made from what was heard, it is the first
    let audio = audio.filter(|_| both).unwrap_or(0);
    // at least a bin, or there is nothing to be a mean of
    let duration = caller.lasted.min(offer.duration).max(offer.bin);
    let warmup = if offer.warmup < duration { offer.warmup } else { Span::ZERO };
    let mut teller = Teller {
        recording: Box::new(recording(offer, duration, warmup)),
        end: Time::ZERO + duration,
        sides: [there, back],
        clocks: [Clock::SAME, clock],
        both,
        carried: 0,
        hops: 0,
        audio,
        warm: Time::ZERO + warmup,
        under_way: Vec::new(),
    };
    let mut facts: Vec<(i64, usize, &Fact)> = Vec::new();
    for (side, record) in [caller, answerer].into_iter().enumerate() {
        let clock = teller.clocks[side];
        facts.extend(record.facts.iter().map(|(at, fact)| (clock.near(*at), side, fact)));
    }
    // stable: what one side told at one instant stays in order, and the caller's own comes first
    facts.sort_by_key(|&(at, side, _)| (at, side));
    let events = facts.len() as u64;
    for (at, side, fact) in facts {
        teller.tell(Time::from_nanos(at.max(0)), side, fact);
    }
    let told = warnings.into_iter().map(|says| Warning { key: "live".to_owned(), says: says.to_owned() });
    Merged {
        outcome: teller.outcome(duration, warmup, events, told.collect()),
        // when it first told of a packet
        ahead: found.map(|_| Span::from_nanos(clock.offset.saturating_neg())),
        drift_ppm: found.and_then(|found| found.drift_ppm),
        straightened: clock.drift != 0.0,
        least_round_trip: found.map(|found| Span::from_nanos(found.round_trip)),
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
        links: vec![NETWORK],
        overhead: offer.overhead,
    };
    let link = LinkInfo { node: NETWORK, name: "network".to_owned(), capacity: None };
    let names = vec![link.name.clone(), format!("{}.sender", offer.flow), format!("{}.receiver", offer.flow)];
    Recording::new(offer.level, offer.bin, Time::ZERO + warmup, vec![info], vec![link], names)
}

/// Tells a recording what two sides say.
struct Teller {
    recording: Box<Recording>,
    end: Time,
    /// What each side sent.
    sides: [Direction; 2],
    /// How the times of each side become the caller's.
    clocks: [Clock; 2],
    both: bool,
    /// Bytes that arrived after the warm-up, and packets at any time.
    carried: u64,
    hops: u64,
    /// The number of the first frame of audio that was heard.
    audio: u32,
    warm: Time,
    under_way: Vec<Packet>,
}

impl Teller {
    /// Packet `number` of the side that is not `side`, as it was sent.
    fn packet(&self, side: usize, number: u64) -> Option<Packet> {
        let other = 1 - side;
        let direction = &self.sides[other];
        let (at, sent) = direction.sent.get(&number)?;
        let mut packet = sent.packet(Time::from_nanos((*at).max(0)));
        // nobody has looked into the queues: what a packet took longer than the fastest one, it has waited
        let took = direction.arrived.get(&number).map(|arrived| arrived.saturating_sub(*at));
        packet.queued =
            Span::from_nanos(took.zip(direction.least).map_or(0, |(took, least)| took.saturating_sub(least)));
        Some(packet)
    }

    fn tell(&mut self, at: Time, side: usize, fact: &Fact) {
        let (end, clock) = (self.end, self.clocks[side]);
        if at > end {
            match fact {
                // it was still on its way, unless it was sent by a side that woke late, after the end
                Fact::Arrived(number, _) => {
                    self.under_way.extend(self.packet(side, *number).filter(|packet| packet.sent <= end));
                }
                // what was shown by then is told when the receiver ends
                Fact::Frame(_) => self.tell(end, side, fact),
                _ => {}
            }
            return;
        }
        let record: &mut Recording = &mut self.recording;
        match fact {
            Fact::Sent(number, sent) => {
                let packet = sent.packet(at);
                record.sent(at, &packet);
                if self.sides[side].arrived.contains_key(number) {
                } else if self.both {
                    record.dropped(at, &packet, NETWORK, Cause::Loss);
                } else {
                    self.under_way.push(packet);
                }
            }
            Fact::Arrived(number, ecn) => {
                let Some(mut packet) = self.packet(side, *number) else { return };
                let ecn = Ecn::from_bits(*ecn);
                let before = std::mem::replace(&mut packet.datagram.ecn, ecn);
                let record = &mut self.recording;
                match ecn {
                    Ecn::Ce if before != Ecn::Ce => record.marked(at, &packet, NETWORK),
                    Ecn::NotEct if before != Ecn::NotEct => record.bleached(at, &packet, NETWORK),
                    _ => {}
                }
                record.arrived(at, &packet);
                self.hops += 1;
                self.carried += if at >= self.warm { u64::from(packet.size) } else { 0 };
            }
            Fact::Late(number) => {
                if let Some(packet) = self.packet(side, *number) {
                    self.recording.late(at, FLOW, &packet);
                }
            }
            Fact::Ended => record.ended(at, FLOW),
            Fact::EcnChecked(check) => record.ecn_checked(at, FLOW, *check),
            Fact::Tripped(breaker, stops) => record.tripped(at, FLOW, *breaker, *stops),
            Fact::Refused(count) => record.refused(at, FLOW, *count),
            // what another side tells is input: no sum of it may overflow
            Fact::Goodput(bytes) => record.goodput(at, FLOW, (*bytes).min(Size::from_bytes(1 << 16))),
            Fact::Repaired(repair) => record.repaired(at, &RepairRecord { flow: FLOW, ..*repair }),
            Fact::Paced(waited) => record.paced(at, FLOW, *waited),
            Fact::Skipped(packets, bytes) => {
                record.skipped(at, FLOW, *packets, (*bytes).min(Size::from_bytes(1 << 32)));
            }
            Fact::LeftOut => record.left_out(at, FLOW),
            Fact::Decision(target, pacing, window) => {
                let decision = Decision { pacing: *pacing, window: *window, ..Decision::rate(*target) };
                record.decision(at, FLOW, &decision);
            }
            Fact::Internal(name, value) => record.internal(at, FLOW, name, *value),
            Fact::FrameSent(frame) => record.frame_sent(at, &FrameSent { flow: FLOW, ..*frame }),
            Fact::Frame(frame) => {
                let ours = |time: Option<Time>| {
                    let near = time.map(|time| Time::from_nanos(clock.near(time.as_nanos())));
                    near.filter(|time| (Time::ZERO..=end).contains(time))
                };
                let (complete, rendered) = (ours(frame.complete), ours(frame.rendered));
                // frames of audio are counted from the first one that was heard
                let number = if frame.video { frame.frame } else { frame.frame.wrapping_add(self.audio) };
                let frame = FrameRecord { flow: FLOW, complete, rendered, frame: number, ..*frame };
                record.frame(at, &frame);
            }
            Fact::Freeze(length) => record.freeze(at, FLOW, *length),
            Fact::Rtcp(rtcp) => record.rtcp(at, &RtcpRecord { flow: FLOW, ..*rtcp }),
        }
    }

    fn outcome(self, duration: Span, warmup: Span, events: u64, warnings: Vec<Warning>) -> Outcome {
        let mut recording = self.recording;
        self.under_way.iter().for_each(|packet| recording.under_way(packet, NETWORK));
        recording.close_frames(self.end);
        recording.end(self.end);
        let carried = self.carried;
        recording.set_carried(|_| carried);
        let summary = Summary { warnings, ..recording.summary(duration, warmup) };
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

    /// A packet every 10 ms each way for two seconds, 20 ms there and 20 ms back beside what `waits` says; every tenth is
    /// lost on its way there. The answerer began `ahead` before the caller.
    fn sides(ahead: Span, waits: impl Fn(u64) -> Span) -> (Record, Record) {
        sides_for(200, &|at| at + ahead, waits)
    }

    /// So many packets, by an answerer's clock that shows `far` of the caller's time.
    fn sides_for(count: u64, far: &dyn Fn(Time) -> Time, waits: impl Fn(u64) -> Span) -> (Record, Record) {
        let datagram = Datagram { size: 1000, body: Body::Rtcp, ecn: Ecn::Ect1, ..Datagram::default() };
        let (mut caller, mut answerer) = (Record::default(), Record::default());
        let sent = |number: u64, kind| Sent::new(number as u32, kind, Frame::default(), &datagram);
        for number in 0..count {
            let at = Time::from_millis(number as i64 * 10);
            caller.add(at, Fact::Sent(number, sent(number, Kind::Video)));
            let there = at + Span::from_millis(20) + waits(number);
            if number % 10 != 9 {
                let ecn = if number % 20 == 0 { Ecn::Ce } else { Ecn::Ect1 };
                answerer.add(far(there), Fact::Arrived(number, ecn as u8));
            }
            answerer.add(far(at), Fact::Sent(number, sent(number, Kind::Rtcp)));
            caller.add(at + Span::from_millis(20), Fact::Arrived(number, Ecn::NotEct as u8));
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
            assert_eq!(merged.ahead, Some(ahead));
            assert_eq!(merged.least_round_trip, Some(Span::from_millis(40)));
            let flow = &merged.outcome.summary.flows[0];
            // the last two were on their way when the call ended; one of these was lost
            assert_eq!((flow.packets_sent, flow.lost_wire), (200, 20));
            assert_eq!(flow.one_way_delay_ms_min, Some(20.0));
            assert_eq!(flow.one_way_delay_ms_max, Some(24.0));
            assert_eq!(flow.queueing_delay_ms_max, Some(4.0));
            assert_eq!(flow.marked, 10);
        }
    }

    #[test]
    fn a_drift_is_told_and_taken_out_where_it_matters() {
        // a clock that goes too fast or too slow, over 100 s: 5 ms, which one offset cannot take out
        for ppm in [50, -50] {
            let far = |at: Time| {
                let nanos = at.as_nanos();
                Time::from_nanos(nanos + 7_000_000_000 + nanos * ppm / 1_000_000)
            };
            let (caller, answerer) = sides_for(10_000, &far, |number| Span::from_millis((number % 5) as i64));
            let offer = Offer { duration: Span::from_secs(100), ..offer() };
            let merged = merge(&offer, Some(&caller), Some(&answerer));
            let found = merged.drift_ppm.expect("long enough");
            assert!((found + ppm as f64).abs() < 0.5, "{found}");
            assert!(merged.straightened);
            let ahead = merged.ahead.expect("both").as_millis_f64();
            assert!((ahead - 7000.0).abs() < 0.1, "{ahead}");
            let flow = &merged.outcome.summary.flows[0];
            let least = flow.one_way_delay_ms_min.expect("some arrived");
            let most = flow.one_way_delay_ms_max.expect("some arrived");
            assert!((19.9..20.1).contains(&least) && (23.9..24.1).contains(&most), "{least} to {most}");
            assert!(flow.queueing_delay_ms_max.expect("some arrived") < 4.2);
        }
        // in two seconds it is 0.1 ms: told, but left in
        let far = |at: Time| Time::from_nanos(at.as_nanos() + at.as_nanos() * 50 / 1_000_000);
        let (caller, answerer) = sides_for(200, &far, |_| Span::ZERO);
        let merged = merge(&offer(), Some(&caller), Some(&answerer));
        assert!((merged.drift_ppm.expect("both ways") + 50.0).abs() < 1.0);
        assert!(!merged.straightened);
    }

    #[test]
    fn one_side_alone_says_what_it_knows() {
        let offer = offer();
        let (caller, mut answerer) = sides(Span::from_secs(1), |_| Span::ZERO);
        let alone = merge(&offer, Some(&caller), None).outcome.summary;
        assert_eq!((alone.flows[0].packets_sent, alone.flows[0].packets_received), (200, 0));
        assert_eq!((alone.flows[0].lost_wire, alone.warnings.len()), (0, 1));
        let datagram = Datagram { size: 1000, body: Body::Rtcp, ..Datagram::default() };
        answerer.heard = (0..200)
            .map(|number| (number, Sent::new(number as u32, Kind::Video, Frame::default(), &datagram)))
            .collect();
        answerer.lasted = Span::from_secs(2);
        let alone = merge(&offer, None, Some(&answerer)).outcome.summary;
        assert_eq!((alone.flows[0].lost_wire, alone.warnings.len()), (0, 1));
        assert!(alone.flows[0].packets_received > 80);
    }

    #[test]
    fn what_another_side_tells_cannot_break_anything() {
        let offer = offer();
        let (caller, _) = sides(Span::ZERO, |_| Span::ZERO);
        let mut hostile = Record { lasted: Span::MAX, ..Record::default() };
        let frame =
            |time| FrameRecord { flow: FlowId(9), video: true, frame: 7, complete: time, rendered: time };
        for at in [i64::MIN, -1, 0, 5, 1_000_000_000, i64::MAX] {
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
            hostile.facts.extend(facts.into_iter().map(|fact| (at, fact)));
        }
        let merged = merge(&offer, Some(&caller), Some(&hostile));
        assert_eq!(merged.outcome.summary.flows[0].packets_sent, 200);
        drop(merge(&offer, Some(&hostile), Some(&caller)));
        drop(merge(&offer, None, Some(&hostile)));
    }
}
