//! `gcc:libwebrtc` when something goes wrong for ten seconds: what it decides stays within its limits, and it finds its
//! way back. The table says how far each fault takes it down and how soon it is back.

use crate::support::libwebrtc::{Loop, PLAIN, Path, at, run};
use crate::support::table_of_page;
use std::fmt::Write as _;
use tidegate_core::control::{Decision, Limits, PacketResult, Report};
use tidegate_core::{ControllerHost, Rate, Span, Stream, Time};

/// A link of 2 Mbit/s, 25 ms each way, a queue of 400 ms.
const CALL: Loop = Loop { seconds: 90, capacity: &[(0.0, 2000)], ..PLAIN };
const BEGIN: Time = Time::from_secs(20);
const END: Time = Time::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    FeedbackLost,
    HalfOfFeedbackLost,
    FeedbackLateByHalfASecond,
    FeedbackLateByFiveSeconds,
    FeedbackOutOfOrder,
    FeedbackTwice,
    FeedbackAgainASecondLater,
    EveryOtherPacketMissingInFeedback,
    AllPacketsMissingInFeedback,
    ReceiverReportsLost,
    ReceiverReportsFromTheStartOnLost,
    LossCounterGoesBack,
    LossCounterJumps,
    RoundTripOfZero,
    RoundTripOfAMinute,
    FarClockJumpsForwardASecond,
    FarClockJumpsBackASecond,
    FarClockJumpsADay,
    FarClockDrifts,
    FarClockStandsStill,
    RouteChanges,
    MaximumOf30k,
    MaximumOfZero,
    MinimumAboveTheLink,
    StartAboveTheMaximum,
    MinimumIsTheMaximum,
    Pause,
    LittleToSend,
    Outage,
    HalfOfPacketsLost,
    DelayOfHalfASecondMore,
    DelayThatJumps,
    HalfOfProbesLost,
    AllProbesLost,
    RembOf50k,
    RembOf1,
}

use Fault::*;

const FAULTS: [(Fault, &str); 37] = [
    (None, "nothing"),
    (FeedbackLost, "no feedback for 10 s"),
    (HalfOfFeedbackLost, "half of the feedback is lost"),
    (FeedbackLateByHalfASecond, "feedback comes 0.5 s later"),
    (FeedbackLateByFiveSeconds, "feedback comes 5 s later"),
    (FeedbackOutOfOrder, "feedback comes up to 0.3 s later, out of order"),
    (FeedbackTwice, "each feedback comes twice"),
    (FeedbackAgainASecondLater, "each feedback comes again a second later"),
    (EveryOtherPacketMissingInFeedback, "feedback tells of every other packet as lost"),
    (AllPacketsMissingInFeedback, "feedback tells of all packets as lost"),
    (ReceiverReportsLost, "no receiver report for 10 s"),
    (ReceiverReportsFromTheStartOnLost, "no receiver report until 30 s"),
    (LossCounterGoesBack, "receiver reports count losses backwards"),
    (LossCounterJumps, "receiver reports count 2^30 losses at once"),
    (RoundTripOfZero, "round trips of zero"),
    (RoundTripOfAMinute, "round trips of a minute"),
    (FarClockJumpsForwardASecond, "the far clock jumps a second forward, and back after 10 s"),
    (FarClockJumpsBackASecond, "the far clock jumps a second back, and forward after 10 s"),
    (FarClockJumpsADay, "the far clock jumps a day forward, and stays there"),
    (FarClockDrifts, "the far clock is 0.1 % fast"),
    (FarClockStandsStill, "the far clock stands still for 10 s"),
    (RouteChanges, "another route at 20 s, the same again at 30 s"),
    (MaximumOf30k, "a maximum of 30 kbit/s for 10 s"),
    (MaximumOfZero, "a maximum of zero for 10 s"),
    (MinimumAboveTheLink, "a minimum of 4 Mbit/s for 10 s"),
    (StartAboveTheMaximum, "a start rate of 20 Mbit/s, a maximum of 10"),
    (MinimumIsTheMaximum, "a minimum and a maximum of 1 Mbit/s for 10 s"),
    (Pause, "nothing to send for 10 s"),
    (LittleToSend, "30 kbit/s to send for 10 s"),
    (Outage, "nothing arrives for 10 s"),
    (HalfOfPacketsLost, "half of the packets are lost for 10 s"),
    (DelayOfHalfASecondMore, "a delay of 0.5 s more for 10 s"),
    (DelayThatJumps, "a delay of 0.2 s more in every other second"),
    (HalfOfProbesLost, "half of each probe is lost, throughout"),
    (AllProbesLost, "all of each probe is lost, throughout"),
    (RembOf50k, "the receiver asks for 50 kbit/s for 10 s"),
    (RembOf1, "the receiver asks for 1 bit/s for 10 s"),
];

const PAUSED: &[(f64, u64)] = &[(0.0, 0), (20.0, 1), (30.0, 0)];
const LITTLE: &[(f64, u64)] = &[(0.0, 0), (20.0, 30), (30.0, 0)];

struct Faulty {
    fault: Fault,
    luck: Stream,
    limits: Limits,
    /// The session's current limits.
    allowed: Limits,
}

impl Faulty {
    fn on(&self, now: Time) -> bool {
        (BEGIN..END).contains(&now)
    }

    fn set(&mut self, now: Time, host: &mut ControllerHost, limits: Limits) {
        self.allowed = limits;
        let _ = host.limits(now, &limits).expect("contract");
    }
}

impl Path for Faulty {
    fn lost(&mut self, sequence: u64, now: Time, probe: bool) -> bool {
        match self.fault {
            Outage => self.on(now),
            HalfOfPacketsLost => self.on(now) && self.luck.chance(0.5),
            HalfOfProbesLost => probe && sequence.is_multiple_of(2),
            AllProbesLost => probe,
            _ => false,
        }
    }

    fn feedback(&mut self, now: Time, mut packets: Vec<PacketResult>) -> Vec<(Span, Vec<PacketResult>)> {
        let none = Span::ZERO;
        if !self.on(now) {
            return vec![(none, packets)];
        }
        match self.fault {
            FeedbackLost => vec![],
            HalfOfFeedbackLost if self.luck.chance(0.5) => vec![],
            FeedbackLateByHalfASecond => vec![(Span::from_millis(500), packets)],
            FeedbackLateByFiveSeconds => vec![(Span::from_secs(5), packets)],
            FeedbackOutOfOrder => vec![(Span::from_millis(self.luck.below(300) as i64), packets)],
            FeedbackTwice => vec![(none, packets.clone()), (none, packets)],
            FeedbackAgainASecondLater => vec![(none, packets.clone()), (Span::from_secs(1), packets)],
            EveryOtherPacketMissingInFeedback | AllPacketsMissingInFeedback => {
                let all = self.fault == AllPacketsMissingInFeedback;
                for packet in packets.iter_mut().filter(|packet| all || packet.sequence % 2 == 0) {
                    packet.arrival = Option::None;
                }
                vec![(none, packets)]
            }
            _ => vec![(none, packets)],
        }
    }

    fn receiver_report(&mut self, now: Time, mut report: Report) -> Option<Report> {
        let on = self.on(now);
        let loss = report.loss.as_mut()?;
        match self.fault {
            ReceiverReportsLost if on => return Option::None,
            ReceiverReportsFromTheStartOnLost if now < END => return Option::None,
            LossCounterGoesBack if on => {
                loss.cumulative_lost -= ((now - BEGIN).as_nanos() / 1_000_000) as i32
            }
            LossCounterJumps if on => loss.cumulative_lost += 1 << 30,
            RoundTripOfZero if on => report.report_rtt = Some(Span::ZERO),
            RoundTripOfAMinute if on => report.report_rtt = Some(Span::from_secs(60)),
            _ => {}
        }
        Some(report)
    }

    fn clock(&self, at: Time) -> i64 {
        let on = (BEGIN..END).contains(&at);
        let second = 1_000_000_000;
        match self.fault {
            FarClockJumpsForwardASecond if on => at.as_nanos() + second,
            FarClockJumpsBackASecond if on => at.as_nanos() - second,
            FarClockJumpsADay if at >= BEGIN => at.as_nanos() + 86_400 * second,
            FarClockDrifts => at.as_nanos() + at.as_nanos() / 1000,
            FarClockStandsStill if on => BEGIN.as_nanos(),
            _ => at.as_nanos(),
        }
    }

    fn longer(&self, now: Time) -> Span {
        match self.fault {
            DelayOfHalfASecondMore if self.on(now) => Span::from_millis(500),
            DelayThatJumps if self.on(now) && now.as_nanos() / 1_000_000_000 % 2 == 0 => {
                Span::from_millis(200)
            }
            _ => Span::ZERO,
        }
    }

    fn step(&mut self, now: Time, host: &mut ControllerHost) {
        let every_second = now.as_nanos() % 1_000_000_000 == 0;
        let asked = |host: &mut ControllerHost, rate| {
            let report = Report { remb: Some(Rate::from_bps(rate)), ..Report::default() };
            let _ = host.report(now, &report).expect("contract");
        };
        match self.fault {
            RembOf50k if self.on(now) && every_second => asked(host, 50_000),
            RembOf1 if self.on(now) && every_second => asked(host, 1),
            // a REMB of zero lifts the limit
            RembOf50k | RembOf1 if now == END => asked(host, 0),
            _ => {}
        }
        let within =
            |min, max| Limits { min: Rate::from_kbps(min), max: Rate::from_kbps(max), ..self.limits };
        let during = match self.fault {
            MaximumOf30k => within(30, 30),
            MaximumOfZero => within(0, 0),
            MinimumAboveTheLink => within(4000, 10_000),
            MinimumIsTheMaximum => within(1000, 1000),
            RouteChanges => Limits { route_changed: true, ..self.limits },
            _ => return,
        };
        if now == BEGIN {
            self.set(now, host, during);
        } else if now == END {
            self.set(now, host, Limits { route_changed: self.fault == RouteChanges, ..self.limits });
        }
    }

    fn decided(&mut self, now: Time, decision: &Decision) {
        let Limits { min, max, .. } = self.allowed;
        let Decision { target, pacing, padding, alarm, .. } = *decision;
        let what = format!("{:?} at {now}: {decision:?}", self.fault);
        assert!((min..=max).contains(&target), "{what}, allowed are {min} to {max}");
        assert!(pacing >= target && pacing <= Rate::from_mbps(100), "{what}");
        assert!(padding <= max, "{what}");
        assert!(alarm.is_some_and(|at| at > now && at <= now + Span::from_secs(1)), "{what}");
        assert!(decision.probes.iter().all(|probe| probe.rate > Rate::ZERO), "{what}");
    }
}

#[test]
fn it_stays_within_its_limits_and_comes_back() {
    let mut table = String::from(
        "| fault, from 20 to 30 s | least target meanwhile (kbit/s) | first at 1600 kbit/s after (s) | mean of the last 20 s (kbit/s) |\n|---|---:|---:|---:|\n",
    );
    for (fault, name) in FAULTS {
        let application = match fault {
            Pause => PAUSED,
            LittleToSend => LITTLE,
            _ => CALL.application,
        };
        let start = if fault == StartAboveTheMaximum { 20_000 } else { CALL.start };
        let of = Loop { application, start, ..CALL };
        let limits = Limits { start: Rate::from_kbps(start), ..Limits::default() };
        let luck = Stream::new(1, "faults", name);
        let mut path = Faulty { fault, luck, limits, allowed: limits };
        let targets = run(&of, &mut path).targets;
        let over =
            |from: i64, to: i64| (from..to).map(|ms| at(&targets, Time::from_millis(ms)).as_bps_f64() / 1e3);
        let least = over(20_000, 30_000).fold(f64::INFINITY, f64::min);
        let back = over(30_000, 90_000).position(|kbps| kbps >= 1600.0);
        let last = over(70_000, 90_000).sum::<f64>() / 20_000.0;
        let back_text = back.map_or_else(|| "not".to_owned(), |ms| format!("{:.1}", ms as f64 / 1e3));
        // it is on the link again, and not far above it
        assert!((1700.0..2200.0).contains(&last), "{fault:?}: {last}");
        writeln!(table, "| {name} | {least:.0} | {back_text} | {last:.0} |").expect("text");
    }
    table_of_page("docs/controllers/gcc.md", "faults", &table);
}
