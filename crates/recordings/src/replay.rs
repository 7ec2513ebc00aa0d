//! A controller that hears, open loop, what the recorded one was told.
//!
//! The packets are those that the recorded controller sent, so that this says what another one would have thought of that
//! feedback, and not what would have happened: it never sends what it decides.

use crate::feedback::{Feedback, Told};
use crate::point::Nanos;
use crate::problem::Problem;
use crate::record::Beside;
use crate::session::{Session, WAYS, Way};
use std::collections::BTreeMap;
use tidegate_core::control::{Counts, Failure, LossReport, PacketResult, Sent};
use tidegate_core::wire::ip::UDP_HEADERS;
use tidegate_core::{ControllerHost, Ecn, Rate, RemoteTime, Report, Size, Span, Time};

/// Before the names of what the replayed controller notes.
const PREFIX: &str = "replayed_";

/// Lets a controller hear what the near end was told, puts what it says beside the rest of the outgoing way, and says what
/// that is.
///
/// # Errors
/// When there is no feedback on packets, or the controller fails.
pub fn onto(beside: &mut [Beside], session: &Session, host: &mut ControllerHost) -> Result<String, Problem> {
    let place = session.ways.iter().position(|way| way.name == WAYS[0] && way.said.per_packet);
    let Some((way, beside)) = place.and_then(|at| Some((&session.ways[at], beside.get_mut(at)?))) else {
        let what = "found no feedback on packets that the near end sent (transport-wide, or RFC 8888), which a controller \
                    could hear";
        return Err(Problem::new(0, what));
    };
    let (begin, _) = session.span;
    let said = Replay::new(way, begin, host)
        .run()
        .map_err(|failure| Problem::new(0, format!("the replayed controller failed: {failure}")))?;
    beside
        .internals
        .extend(said.into_iter().map(|(at, name, value)| (at, format!("{PREFIX}{name}").into(), value)));
    beside.internals.sort_by_key(|one| one.0);
    Ok(format!(
        "{PREFIX}...: what the controller would have thought of the feedback that the recorded one's sending caused. It sent \
         nothing itself, and knew of no probes: compare its detector, not its rates"
    ))
}

struct Replay<'a> {
    way: &'a Way,
    host: &'a mut ControllerHost,
    begin: Nanos,
    /// Bytes that the controller does not count.
    headers: u32,
    /// Bytes sent before each packet, and before the next one.
    before: Vec<u64>,
    total: u64,
    /// Bytes sent up to the last packet that was reported on.
    landed: u64,
    /// For each stream the highest number that was reported, and with the last report.
    highest: BTreeMap<u32, u32>,
    target: Option<Rate>,
    said: Vec<(Nanos, String, f64)>,
}

impl<'a> Replay<'a> {
    fn new(way: &'a Way, begin: Nanos, host: &'a mut ControllerHost) -> Self {
        let headers = if host.needs().counts == Counts::Ip { 0 } else { UDP_HEADERS };
        host.notes.wanted = true;
        Self {
            way,
            host,
            begin,
            headers,
            before: Vec::with_capacity(way.packets.len()),
            total: 0,
            landed: 0,
            highest: BTreeMap::new(),
            target: None,
            said: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Vec<(Nanos, String, f64)>, Failure> {
        let way = self.way;
        let mut sent = way.packets.iter().peekable();
        for feedback in &way.said.feedback {
            while let Some(packet) = sent.next_if(|packet| packet.sent <= feedback.at) {
                self.alarms(packet.sent)?;
                self.sent(packet.sent, packet.rtp.size)?;
            }
            self.alarms(feedback.at)?;
            let report = self.report(feedback);
            let now = self.time(feedback.at);
            self.host.report(now, &report)?;
            self.note(feedback.at);
        }
        Ok(self.said)
    }

    fn time(&self, at: Nanos) -> Time {
        Time::from_nanos((at - self.begin).max(0))
    }

    /// Alarms that are due before something happens at `at`.
    fn alarms(&mut self, at: Nanos) -> Result<(), Failure> {
        // one that always asks for the next nanosecond would never let anything happen
        const MOST: usize = 100_000;
        let now = self.time(at);
        for _ in 0..MOST {
            let Some(alarm) = self.host.decision().alarm.filter(|&alarm| alarm <= now) else { return Ok(()) };
            self.host.alarm(alarm)?;
            self.note(self.begin + alarm.as_nanos());
        }
        let who = "replay".to_owned();
        Err(Failure { at: now, who, reason: format!("asks for more than {MOST} alarms between two packets") })
    }

    fn sent(&mut self, at: Nanos, size: u32) -> Result<(), Failure> {
        let size = u64::from(size.saturating_sub(self.headers));
        let number = self.before.len() as u64;
        self.before.push(self.total);
        self.total += size;
        if self.host.needs_sent() {
            let in_flight = Size::from_bytes(self.total - self.landed);
            let packet =
                Sent { sequence: number, size: Size::from_bytes(size), in_flight, backlog: Size::ZERO };
            let now = self.time(at);
            self.host.sent(now, &packet)?;
        }
        Ok(())
    }

    fn report(&mut self, feedback: &Feedback) -> Report {
        let mut packets = Vec::with_capacity(feedback.packets.len());
        for &(index, told) in &feedback.packets {
            let Some(packet) = self.way.packets.get(index).filter(|_| index < self.before.len()) else {
                continue;
            };
            let (arrival, ecn) = match told {
                Told::Arrived(Some(at), ecn) => (Some(RemoteTime::from_nanos(at)), ecn),
                Told::Lost => (None, Ecn::NotEct),
                _ => continue,
            };
            let size = u64::from(packet.rtp.size.saturating_sub(self.headers));
            self.landed = self.landed.max(self.before[index] + size);
            packets.push(PacketResult {
                sequence: index as u64,
                size: Size::from_bytes(size),
                sent: self.time(packet.sent),
                arrival,
                ecn,
                probe: None,
            });
        }
        packets.sort_by_key(|packet| packet.sequence);
        Report {
            packets,
            in_flight: Size::from_bytes(self.total.saturating_sub(self.landed)),
            report_rtt: feedback.round_trip,
            packet_rtt: feedback.since_sent,
            loss: self.loss(feedback),
            remb: feedback.remb.map(Rate::from_bps),
            ..Report::default()
        }
    }

    /// What receiver reports say of all streams, the fractions weighted by what each expected.
    fn loss(&mut self, feedback: &Feedback) -> Option<LossReport> {
        let (mut expected, mut lost) = (0u32, 0u64);
        let mut last = None;
        for block in &feedback.blocks {
            let before = self.highest.insert(block.ssrc, block.highest_sequence);
            let more = before.map_or(0, |before| block.highest_sequence.wrapping_sub(before));
            let more = if more < 1 << 31 { more } else { 0 };
            expected = expected.saturating_add(more);
            lost += u64::from(block.fraction_lost) * u64::from(more);
            last = Some(block);
        }
        last.map(|block| LossReport {
            fraction_lost: lost.checked_div(u64::from(expected)).unwrap_or(0) as u8,
            cumulative_lost: block.cumulative_lost,
            highest_sequence: block.highest_sequence,
            jitter: Span::ZERO,
            expected,
        })
    }

    /// Takes down the target where it changed, and what the controller noted.
    fn note(&mut self, at: Nanos) {
        let target = self.host.decision().target;
        if self.target.replace(target) != Some(target) {
            self.said.push((at, "target".to_owned(), target.as_bps_f64()));
        }
        let values = self.host.notes.values.iter().map(|(name, value)| (at, name.to_string(), *value));
        self.said.extend(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::Said;
    use crate::point::{MILLI, Rtp};
    use crate::session::{Fate, Known, Packet};
    use std::sync::mpsc;
    use tidegate_core::Kind;
    use tidegate_core::control::{Context, Controller, Decision, FeedbackKind, Limits, Needs};
    use tidegate_core::rng::Stream;
    use tidegate_core::wire::rtcp::ReportBlock;

    const BEGIN: Nanos = 7_000 * MILLI;

    /// What a controller is told, with the time in milliseconds.
    #[derive(Clone, PartialEq, Debug)]
    enum Heard {
        Sent(i64, Sent),
        Report(i64, Report),
        Alarm(i64),
    }

    /// Tells a test what it is told, asks to be woken 15 ms after each report, and notes the time of it.
    struct Witness(mpsc::Sender<Heard>, Counts);

    impl Controller for Witness {
        fn needs(&self) -> Needs {
            Needs { counts: self.1, ..Needs::feedback(FeedbackKind::PerPacket) }
        }

        fn on_limits(&mut self, _: Time, limits: &Limits, _: &mut Context<'_>) -> Decision {
            Decision::rate(limits.start)
        }

        fn needs_sent(&self) -> bool {
            true
        }

        fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
            self.0.send(Heard::Sent(now.as_nanos() / MILLI, *packet)).unwrap();
            cx.unchanged()
        }

        fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
            self.0.send(Heard::Report(now.as_nanos() / MILLI, report.clone())).unwrap();
            cx.note("heard", now.as_nanos() as f64);
            let rate = Rate::from_bps(1_000 * report.packets.len() as u64);
            Decision { alarm: Some(now + Span::from_nanos(15 * MILLI)), ..Decision::rate(rate) }
        }

        fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
            self.0.send(Heard::Alarm(now.as_nanos() / MILLI)).unwrap();
            cx.unchanged()
        }
    }

    /// Packets of these bytes, 10 ms apart from the beginning on.
    fn way(sizes: &[u32], feedback: Vec<Feedback>) -> Way {
        let packet = |(at, &size): (usize, &u32)| {
            let sent = BEGIN + 10 * MILLI * at as i64;
            let rtp = Rtp {
                at: sent,
                ssrc: 7,
                timestamp: 0,
                size,
                abs_send_time: None,
                sequence: at as u16,
                transport_sequence: None,
                payload_type: 96,
                marker: false,
                padding: false,
            };
            Packet { rtp, kind: Kind::Video, sent, fate: Fate::Unknown, ecn: Ecn::NotEct }
        };
        Way {
            name: WAYS[0].to_owned(),
            packets: sizes.iter().enumerate().map(packet).collect(),
            feedback: vec![],
            reports: vec![],
            known: Known::default(),
            said: Said { feedback, per_packet: true, ..Said::default() },
        }
    }

    fn heard(way: Way, counts: Counts) -> (Vec<Heard>, Vec<Beside>) {
        let (to, from) = mpsc::channel();
        let limits = Limits::default();
        let stream = Stream::new(1, "test", "rng");
        let mut host =
            ControllerHost::new("witness", Box::new(Witness(to, counts)), stream, Time::ZERO, &limits)
                .unwrap();
        let session = Session { ways: vec![way], span: (BEGIN, BEGIN + 1_000 * MILLI), remarks: vec![] };
        let mut beside = vec![Beside::default()];
        onto(&mut beside, &session, &mut host).unwrap();
        drop(host);
        (from.iter().collect(), beside)
    }

    fn at(millis: i64) -> Nanos {
        BEGIN + millis * MILLI
    }

    fn reports(heard: &[Heard]) -> Vec<&Report> {
        heard
            .iter()
            .filter_map(|one| if let Heard::Report(_, report) = one { Some(report) } else { None })
            .collect()
    }

    fn arrived(millis: i64) -> Told {
        Told::Arrived(Some(millis * MILLI), Ecn::Ce)
    }

    #[test]
    fn all_is_heard_in_the_order_of_time_and_by_the_calls_own() {
        let said = vec![
            Feedback { at: at(12), packets: vec![(0, arrived(3))], ..Feedback::default() },
            Feedback { at: at(29), packets: vec![(2, arrived(23))], ..Feedback::default() },
            Feedback { at: at(50), packets: vec![(3, arrived(33))], ..Feedback::default() },
        ];
        let (heard, beside) = heard(way(&[1028; 7], said), Counts::Rtp);
        let order: Vec<String> = heard
            .iter()
            .map(|one| match one {
                Heard::Sent(at, _) => format!("s{at}"),
                Heard::Report(at, _) => format!("r{at}"),
                Heard::Alarm(at) => format!("a{at}"),
            })
            .collect();
        // the packet of 60 ms leaves after the last feedback: there is nothing more to be heard of it
        let expected = "s0 s10 r12 s20 a27 r29 s30 s40 a44 s50 r50";
        assert_eq!(order.join(" "), expected);
        let notes: Vec<(i64, &str, f64)> = beside[0]
            .internals
            .iter()
            .map(|(at, name, value)| ((at - BEGIN) / MILLI, &**name, *value))
            .collect();
        // a target that is the same is not told again
        let expected = [
            (12, "replayed_target", 1_000.0),
            (12, "replayed_heard", 12e6),
            (29, "replayed_heard", 29e6),
            (50, "replayed_heard", 50e6),
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn a_packet_is_told_with_the_bytes_that_the_controller_counts() {
        let said = || vec![Feedback { at: at(15), packets: vec![(1, arrived(13))], ..Feedback::default() }];
        for (counts, size) in [(Counts::Rtp, 1000), (Counts::Ip, 1000 + u64::from(UDP_HEADERS))] {
            let (heard, _) = heard(way(&[1000 + UDP_HEADERS, 1000 + UDP_HEADERS], said()), counts);
            let Heard::Sent(10, sent) = heard[1] else { panic!("{heard:?}") };
            assert_eq!((sent.sequence, sent.size), (1, Size::from_bytes(size)));
            let told = reports(&heard)[0].packets[0];
            assert_eq!((told.sequence, told.size), (1, Size::from_bytes(size)));
            assert_eq!(told.sent, Time::from_nanos(10 * MILLI));
            assert_eq!((told.arrival, told.ecn), (Some(RemoteTime::from_nanos(13 * MILLI)), Ecn::Ce));
        }
    }

    #[test]
    fn packets_come_by_number_and_without_those_of_which_no_time_is_told() {
        let packets = vec![
            (3, arrived(33)),
            (1, Told::Lost),
            (2, Told::Arrived(None, Ecn::NotEct)),
            (0, arrived(3)),
            // feedback cannot tell of what has not been sent
            (4, arrived(1)),
        ];
        let (heard, _) =
            heard(way(&[1000; 5], vec![Feedback { at: at(36), packets, ..Feedback::default() }]), Counts::Ip);
        let told: Vec<(u64, bool)> =
            reports(&heard)[0].packets.iter().map(|one| (one.sequence, one.arrival.is_some())).collect();
        assert_eq!(told, [(0, true), (1, false), (3, true)]);
    }

    #[test]
    fn in_flight_is_what_was_sent_after_the_last_packet_that_was_told_of() {
        let said = vec![
            Feedback { at: at(25), packets: vec![(1, arrived(13)), (0, Told::Lost)], ..Feedback::default() },
            Feedback { at: at(35), packets: vec![(0, arrived(34))], ..Feedback::default() },
        ];
        let (heard, _) = heard(way(&[100, 200, 400, 800], said), Counts::Ip);
        let sent: Vec<u64> = heard
            .iter()
            .filter_map(
                |one| if let Heard::Sent(_, sent) = one { Some(sent.in_flight.as_bytes()) } else { None },
            )
            .collect();
        assert_eq!(sent, [100, 300, 700, 1200]);
        let left: Vec<u64> = reports(&heard).iter().map(|one| one.in_flight.as_bytes()).collect();
        assert_eq!(left, [400, 1200], "an earlier packet that is told of late takes nothing back");
    }

    #[test]
    fn loss_is_the_mean_of_the_streams_by_what_each_expected() {
        let block = |ssrc, fraction_lost, highest_sequence| ReportBlock {
            ssrc,
            fraction_lost,
            cumulative_lost: 9,
            highest_sequence,
            jitter: 5,
            last_sr: 0,
            delay_since_last_sr: 0,
        };
        let said = vec![
            Feedback { at: at(1), blocks: vec![block(7, 0, 100), block(8, 255, 50)], ..Feedback::default() },
            // 300 of one stream and 100 of the other: (300 * 8 + 100 * 100) / 400
            Feedback {
                at: at(2),
                blocks: vec![block(7, 8, 400), block(8, 100, 150)],
                remb: Some(5_000),
                round_trip: Some(Span::from_nanos(30)),
                since_sent: Some(Span::from_nanos(40)),
                ..Feedback::default()
            },
            // one that has an older number, and one that is as before
            Feedback { at: at(3), blocks: vec![block(7, 8, 390), block(8, 100, 150)], ..Feedback::default() },
            Feedback { at: at(4), ..Feedback::default() },
        ];
        let (heard, _) = heard(way(&[1000], said), Counts::Ip);
        let told = reports(&heard);
        let loss: Vec<Option<(u8, u32)>> =
            told.iter().map(|one| one.loss.map(|loss| (loss.fraction_lost, loss.expected))).collect();
        assert_eq!(loss, [Some((0, 0)), Some((31, 400)), Some((0, 0)), None]);
        let last = told[1].loss.unwrap();
        assert_eq!((last.cumulative_lost, last.highest_sequence), (9, 150));
        assert_eq!(told[1].remb, Some(Rate::from_bps(5_000)));
        assert_eq!(told[1].report_rtt, Some(Span::from_nanos(30)));
        assert_eq!(told[1].packet_rtt, Some(Span::from_nanos(40)));
    }

    #[test]
    fn a_call_without_feedback_on_packets_is_refused() {
        let mut silent = way(&[1000], vec![]);
        silent.said.per_packet = false;
        let session = Session { ways: vec![silent], span: (BEGIN, BEGIN), remarks: vec![] };
        let (to, _from) = mpsc::channel();
        let stream = Stream::new(1, "test", "rng");
        let who = Box::new(Witness(to, Counts::Ip));
        let mut host = ControllerHost::new("witness", who, stream, Time::ZERO, &Limits::default()).unwrap();
        let error = onto(&mut [Beside::default()], &session, &mut host).unwrap_err();
        assert!(error.to_string().contains("found no feedback on packets"), "{error}");
    }
}
