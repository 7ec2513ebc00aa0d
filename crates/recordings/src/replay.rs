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
