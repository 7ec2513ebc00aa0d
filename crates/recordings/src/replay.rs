//! Replays a recorded call to another controller, open loop.
//!
//! The packets and the feedback are the recorded ones. The replay shows how the controller would have judged that
//! feedback, and not how a call with it would have gone, since its decisions have no effect on what is sent.

use crate::feedback::{Feedback, Outcome};
use crate::point::Nanos;
use crate::problem::Problem;
use crate::record::ControllerTrace;
use crate::session::{DIRECTIONS, Direction, Session};
use std::collections::BTreeMap;
use tidegate_core::control::{Counts, Failure, LossReport, PacketResult, Sent};
use tidegate_core::wire::ip::UDP_HEADERS;
use tidegate_core::{ControllerHost, Ecn, Rate, RemoteTime, Report, Size, Span, Time};

/// Prefix of the names of the replayed controller's internals.
const PREFIX: &str = "replayed_";

/// Replays the feedback that the near end received to a controller, and adds the controller's internals to the trace of
/// the outgoing direction. Returns a remark for the user on what they mean.
///
/// # Errors
/// If there is no feedback on packets, or the controller fails.
pub fn add_replay(
    traces: &mut [ControllerTrace],
    session: &Session,
    host: &mut ControllerHost,
) -> Result<String, Problem> {
    let outgoing = session
        .directions
        .iter()
        .position(|direction| direction.name == DIRECTIONS[0] && direction.history.per_packet);
    let Some((direction, trace)) =
        outgoing.and_then(|index| Some((&session.directions[index], traces.get_mut(index)?)))
    else {
        let message = "found no feedback on packets sent by the near end (transport-wide or RFC 8888); a replay \
                       needs it";
        return Err(Problem::new(0, message));
    };
    let (begin, _) = session.span;
    let internals = Replay::new(direction, begin, host)
        .run()
        .map_err(|failure| Problem::new(0, format!("the replayed controller failed: {failure}")))?;
    trace.internals.extend(
        internals.into_iter().map(|(time, name, value)| (time, format!("{PREFIX}{name}").into(), value)),
    );
    trace.internals.sort_by_key(|&(time, ..)| time);
    Ok(format!(
        "{PREFIX}...: the state of the replayed controller, which got the feedback on the packets that the recorded \
         controller sent. The replayed controller sent nothing and knew of no probes: compare the detectors, \
         not the rates"
    ))
}

struct Replay<'a> {
    direction: &'a Direction,
    host: &'a mut ControllerHost,
    begin: Nanos,
    /// Header bytes of each packet that the controller does not count.
    headers: u32,
    /// Bytes sent before each packet.
    sent_before: Vec<u64>,
    /// Bytes sent.
    sent_bytes: u64,
    /// Bytes sent up to the last packet that was reported on.
    reported_bytes: u64,
    /// Highest sequence number in the last report block of each stream.
    highest: BTreeMap<u32, u32>,
    target: Option<Rate>,
    /// Targets and internals of the controller, with their times.
    internals: Vec<(Nanos, String, f64)>,
}

impl<'a> Replay<'a> {
    fn new(direction: &'a Direction, begin: Nanos, host: &'a mut ControllerHost) -> Self {
        let headers = if host.needs().counts == Counts::Ip { 0 } else { UDP_HEADERS };
        host.notes.wanted = true;
        Self {
            direction,
            host,
            begin,
            headers,
            sent_before: Vec::with_capacity(direction.packets.len()),
            sent_bytes: 0,
            reported_bytes: 0,
            highest: BTreeMap::new(),
            target: None,
            internals: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Vec<(Nanos, String, f64)>, Failure> {
        let direction = self.direction;
        let mut sent = direction.packets.iter().peekable();
        for feedback in &direction.history.feedback {
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
        Ok(self.internals)
    }

    fn time(&self, time: Nanos) -> Time {
        Time::from_nanos((time - self.begin).max(0))
    }

    /// Runs the alarms that are due up to `now`.
    fn alarms(&mut self, now: Nanos) -> Result<(), Failure> {
        // a controller that always asks for the next nanosecond would stop the replay
        const MAX_ALARMS: usize = 100_000;
        let now = self.time(now);
        for _ in 0..MAX_ALARMS {
            let Some(alarm) = self.host.decision().alarm.filter(|&alarm| alarm <= now) else { return Ok(()) };
            self.host.alarm(alarm)?;
            self.note(self.begin + alarm.as_nanos());
        }
        let who = "replay".to_owned();
        Err(Failure {
            at: now,
            who,
            reason: format!("requests more than {MAX_ALARMS} alarms between two packets"),
        })
    }

    fn sent(&mut self, time: Nanos, size: u32) -> Result<(), Failure> {
        let size = u64::from(size.saturating_sub(self.headers));
        let number = self.sent_before.len() as u64;
        self.sent_before.push(self.sent_bytes);
        self.sent_bytes += size;
        if self.host.needs_sent() {
            let in_flight = Size::from_bytes(self.sent_bytes - self.reported_bytes);
            let packet =
                Sent { sequence: number, size: Size::from_bytes(size), in_flight, backlog: Size::ZERO };
            let now = self.time(time);
            self.host.sent(now, &packet)?;
        }
        Ok(())
    }

    fn report(&mut self, feedback: &Feedback) -> Report {
        let mut packets = Vec::with_capacity(feedback.packets.len());
        for &(index, outcome) in &feedback.packets {
            let Some(packet) = self.direction.packets.get(index).filter(|_| index < self.sent_before.len())
            else {
                continue;
            };
            let (arrival, ecn) = match outcome {
                Outcome::Arrived(Some(arrival), ecn) => (Some(RemoteTime::from_nanos(arrival)), ecn),
                Outcome::Lost => (None, Ecn::NotEct),
                _ => continue,
            };
            let size = u64::from(packet.rtp.size.saturating_sub(self.headers));
            self.reported_bytes = self.reported_bytes.max(self.sent_before[index] + size);
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
            in_flight: Size::from_bytes(self.sent_bytes.saturating_sub(self.reported_bytes)),
            report_rtt: feedback.round_trip,
            packet_rtt: feedback.since_sent,
            loss: self.loss(feedback),
            remb: feedback.remb.map(Rate::from_bps),
            ..Report::default()
        }
    }

    /// The report blocks of all streams as one, with the mean of the loss fractions weighted by the packets expected.
    fn loss(&mut self, feedback: &Feedback) -> Option<LossReport> {
        let (mut expected, mut lost) = (0u32, 0u64);
        let mut last = None;
        for block in &feedback.blocks {
            let previous = self.highest.insert(block.ssrc, block.highest_sequence);
            let new = previous.map_or(0, |previous| block.highest_sequence.wrapping_sub(previous));
            let new = if new < 1 << 31 { new } else { 0 };
            expected = expected.saturating_add(new);
            lost += u64::from(block.fraction_lost) * u64::from(new);
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

    /// Records the target if it changed, and the internals that the controller noted.
    fn note(&mut self, time: Nanos) {
        let target = self.host.decision().target;
        if self.target.replace(target) != Some(target) {
            self.internals.push((time, "target".to_owned(), target.as_bps_f64()));
        }
        let values = self.host.notes.values.iter().map(|(name, value)| (time, name.to_string(), *value));
        self.internals.extend(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::FeedbackHistory;
    use crate::point::{MILLI, Rtp};
    use crate::session::{Coverage, Fate, Packet};
    use std::sync::mpsc;
    use tidegate_core::Kind;
    use tidegate_core::control::{Context, Controller, Decision, FeedbackKind, Limits, Needs};
    use tidegate_core::rng::Stream;
    use tidegate_core::wire::rtcp::ReportBlock;

    const BEGIN: Nanos = 7_000 * MILLI;

    /// A call of the controller, with the time in milliseconds.
    #[derive(Clone, PartialEq, Debug)]
    enum Event {
        Sent(i64, Sent),
        Report(i64, Report),
        Alarm(i64),
    }

    /// Sends each of its calls to the test, sets an alarm 15 ms after each report, and notes the report's time.
    struct RecordingController(mpsc::Sender<Event>, Counts);

    impl Controller for RecordingController {
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
            self.0.send(Event::Sent(now.as_nanos() / MILLI, *packet)).unwrap();
            cx.unchanged()
        }

        fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
            self.0.send(Event::Report(now.as_nanos() / MILLI, report.clone())).unwrap();
            cx.note("heard", now.as_nanos() as f64);
            let rate = Rate::from_bps(1_000 * report.packets.len() as u64);
            Decision { alarm: Some(now + Span::from_nanos(15 * MILLI)), ..Decision::rate(rate) }
        }

        fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
            self.0.send(Event::Alarm(now.as_nanos() / MILLI)).unwrap();
            cx.unchanged()
        }
    }

    /// A direction with packets of these sizes in bytes, 10 ms apart from the beginning on.
    fn direction(sizes: &[u32], feedback: Vec<Feedback>) -> Direction {
        let packet = |(index, &size): (usize, &u32)| {
            let sent = BEGIN + 10 * MILLI * index as i64;
            let rtp = Rtp {
                at: sent,
                ssrc: 7,
                timestamp: 0,
                size,
                abs_send_time: None,
                sequence: index as u16,
                transport_sequence: None,
                payload_type: 96,
                marker: false,
                padding: false,
                path: 0,
            };
            Packet { rtp, kind: Kind::Video, sent, fate: Fate::Unknown, ecn: Ecn::NotEct }
        };
        Direction {
            name: DIRECTIONS[0].to_owned(),
            packets: sizes.iter().enumerate().map(packet).collect(),
            feedback: vec![],
            reports: vec![],
            coverage: Coverage::default(),
            history: FeedbackHistory { feedback, per_packet: true, ..FeedbackHistory::default() },
            media: BTreeMap::new(),
        }
    }

    fn replay(direction: Direction, counts: Counts) -> (Vec<Event>, Vec<ControllerTrace>) {
        let (sender, receiver) = mpsc::channel();
        let limits = Limits::default();
        let stream = Stream::new(1, "test", "rng");
        let mut host = ControllerHost::new(
            "witness",
            Box::new(RecordingController(sender, counts)),
            stream,
            Time::ZERO,
            &limits,
        )
        .unwrap();
        let session = Session {
            directions: vec![direction],
            span: (BEGIN, BEGIN + 1_000 * MILLI),
            ..Session::default()
        };
        let mut traces = vec![ControllerTrace::default()];
        add_replay(&mut traces, &session, &mut host).unwrap();
        drop(host);
        (receiver.iter().collect(), traces)
    }

    fn at(millis: i64) -> Nanos {
        BEGIN + millis * MILLI
    }

    fn reports(events: &[Event]) -> Vec<&Report> {
        events
            .iter()
            .filter_map(|event| if let Event::Report(_, report) = event { Some(report) } else { None })
            .collect()
    }

    fn arrived(millis: i64) -> Outcome {
        Outcome::Arrived(Some(millis * MILLI), Ecn::Ce)
    }

    #[test]
    fn events_come_in_the_order_of_time_and_on_the_calls_clock() {
        let feedback = vec![
            Feedback { at: at(12), packets: vec![(0, arrived(3))], ..Feedback::default() },
            Feedback { at: at(29), packets: vec![(2, arrived(23))], ..Feedback::default() },
            Feedback { at: at(50), packets: vec![(3, arrived(33))], ..Feedback::default() },
        ];
        let (events, traces) = replay(direction(&[1028; 7], feedback), Counts::Rtp);
        let order: Vec<String> = events
            .iter()
            .map(|event| match event {
                Event::Sent(time, _) => format!("s{time}"),
                Event::Report(time, _) => format!("r{time}"),
                Event::Alarm(time) => format!("a{time}"),
            })
            .collect();
        // the packet of 60 ms is sent after the last feedback, with which the replay ends
        let expected = "s0 s10 r12 s20 a27 r29 s30 s40 a44 s50 r50";
        assert_eq!(order.join(" "), expected);
        let notes: Vec<(i64, &str, f64)> = traces[0]
            .internals
            .iter()
            .map(|(time, name, value)| ((time - BEGIN) / MILLI, &**name, *value))
            .collect();
        // a target that has not changed is not recorded again
        let expected = [
            (12, "replayed_target", 1_000.0),
            (12, "replayed_heard", 12e6),
            (29, "replayed_heard", 29e6),
            (50, "replayed_heard", 50e6),
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn a_packet_has_the_bytes_that_the_controller_counts() {
        let feedback =
            || vec![Feedback { at: at(15), packets: vec![(1, arrived(13))], ..Feedback::default() }];
        for (counts, size) in [(Counts::Rtp, 1000), (Counts::Ip, 1000 + u64::from(UDP_HEADERS))] {
            let (events, _) =
                replay(direction(&[1000 + UDP_HEADERS, 1000 + UDP_HEADERS], feedback()), counts);
            let Event::Sent(10, sent) = events[1] else { panic!("{events:?}") };
            assert_eq!((sent.sequence, sent.size), (1, Size::from_bytes(size)));
            let result = reports(&events)[0].packets[0];
            assert_eq!((result.sequence, result.size), (1, Size::from_bytes(size)));
            assert_eq!(result.sent, Time::from_nanos(10 * MILLI));
            assert_eq!((result.arrival, result.ecn), (Some(RemoteTime::from_nanos(13 * MILLI)), Ecn::Ce));
        }
    }

    #[test]
    fn packets_come_by_number_and_without_those_that_have_no_arrival_time() {
        let packets = vec![
            (3, arrived(33)),
            (1, Outcome::Lost),
            (2, Outcome::Arrived(None, Ecn::NotEct)),
            (0, arrived(3)),
            // this packet has not been sent yet
            (4, arrived(1)),
        ];
        let (events, _) = replay(
            direction(&[1000; 5], vec![Feedback { at: at(36), packets, ..Feedback::default() }]),
            Counts::Ip,
        );
        let results: Vec<(u64, bool)> = reports(&events)[0]
            .packets
            .iter()
            .map(|result| (result.sequence, result.arrival.is_some()))
            .collect();
        assert_eq!(results, [(0, true), (1, false), (3, true)]);
    }

    #[test]
    fn in_flight_is_what_was_sent_after_the_last_packet_that_was_reported() {
        let feedback = vec![
            Feedback {
                at: at(25),
                packets: vec![(1, arrived(13)), (0, Outcome::Lost)],
                ..Feedback::default()
            },
            Feedback { at: at(35), packets: vec![(0, arrived(34))], ..Feedback::default() },
        ];
        let (events, _) = replay(direction(&[100, 200, 400, 800], feedback), Counts::Ip);
        let sent: Vec<u64> = events
            .iter()
            .filter_map(
                |event| if let Event::Sent(_, sent) = event { Some(sent.in_flight.as_bytes()) } else { None },
            )
            .collect();
        assert_eq!(sent, [100, 300, 700, 1200]);
        let in_flight: Vec<u64> = reports(&events).iter().map(|report| report.in_flight.as_bytes()).collect();
        assert_eq!(in_flight, [400, 1200], "a late report on an earlier packet takes nothing back");
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
        let feedback = vec![
            Feedback { at: at(1), blocks: vec![block(7, 0, 100), block(8, 255, 50)], ..Feedback::default() },
            // 300 packets of one stream and 100 of the other: (300 * 8 + 100 * 100) / 400
            Feedback {
                at: at(2),
                blocks: vec![block(7, 8, 400), block(8, 100, 150)],
                remb: Some(5_000),
                round_trip: Some(Span::from_nanos(30)),
                since_sent: Some(Span::from_nanos(40)),
                ..Feedback::default()
            },
            // one stream has an older number, the other one the same as before
            Feedback { at: at(3), blocks: vec![block(7, 8, 390), block(8, 100, 150)], ..Feedback::default() },
            Feedback { at: at(4), ..Feedback::default() },
        ];
        let (events, _) = replay(direction(&[1000], feedback), Counts::Ip);
        let reports = reports(&events);
        let loss: Vec<Option<(u8, u32)>> = reports
            .iter()
            .map(|report| report.loss.map(|loss| (loss.fraction_lost, loss.expected)))
            .collect();
        assert_eq!(loss, [Some((0, 0)), Some((31, 400)), Some((0, 0)), None]);
        let last = reports[1].loss.unwrap();
        assert_eq!((last.cumulative_lost, last.highest_sequence), (9, 150));
        assert_eq!(reports[1].remb, Some(Rate::from_bps(5_000)));
        assert_eq!(reports[1].report_rtt, Some(Span::from_nanos(30)));
        assert_eq!(reports[1].packet_rtt, Some(Span::from_nanos(40)));
    }

    #[test]
    fn a_call_without_feedback_on_packets_is_refused() {
        let mut silent = direction(&[1000], vec![]);
        silent.history.per_packet = false;
        let session = Session { directions: vec![silent], span: (BEGIN, BEGIN), ..Session::default() };
        let (sender, _receiver) = mpsc::channel();
        let stream = Stream::new(1, "test", "rng");
        let controller = Box::new(RecordingController(sender, Counts::Ip));
        let mut host =
            ControllerHost::new("witness", controller, stream, Time::ZERO, &Limits::default()).unwrap();
        let error = add_replay(&mut [ControllerTrace::default()], &session, &mut host).unwrap_err();
        assert!(error.to_string().contains("found no feedback on packets"), "{error}");
    }
}
