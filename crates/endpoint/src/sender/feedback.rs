//! RTCP at the sender: reports, joined with the packets sent.

use super::{OutStream, Path, Sender};
use tidegate_core::control::{EcnCounts, LossReport};
use tidegate_core::wire::rtcp::{self, EcnCounters, Metric, ReportBlock, TwccArrival};
use tidegate_core::wire::{ntp, wrap};
use tidegate_core::{Driver, Ecn, Level, Span, Time};

/// The far clock's values in earlier reports, by which the next ones are unwrapped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// Reference time of TWCC, in 64 ms.
    reference: Option<i64>,
    /// Report timestamp of RFC 8888, in 2^-16 s.
    timestamp: Option<i64>,
}

/// The freshest round-trip sample of a datagram.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    /// From LSR and DLSR.
    report: Option<Span>,
    /// The newest packet reported as received: when it was sent, and its round trip.
    newest: Option<(Time, Span)>,
}

impl RoundTrip {
    /// Samples the packet that was sent last, which has waited least at the receiver: libwebrtc's
    /// `GoogCcNetworkController` takes the same sample. `waited`: its wait at the receiver, which RFC 8888 reports;
    /// with TWCC it is zero, and up to a feedback interval is in the sample.
    fn packet(&mut self, now: Time, sent: Time, waited: Span) {
        if self.newest.is_none_or(|(newest, _)| sent >= newest) {
            self.newest = Some((sent, now - sent - waited));
        }
    }

    /// The round trip of the newest packet.
    fn newest(self) -> Option<Span> {
        self.newest.map(|(_, rtt)| rtt).filter(|rtt| !rtt.is_negative())
    }
}

/// Sum of the report blocks on several streams, as one loss report.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    blocks: u32,
    expected: u64,
    /// Lost packets of the interval, in 1/256.
    lost: u64,
    largest_fraction: u8,
    cumulative: i64,
    highest: u32,
    jitter: Span,
}

impl Losses {
    /// Adds a block on `stream`. Sequence number and jitter are those of the first block.
    fn block(&mut self, block: &ReportBlock, stream: &mut OutStream) {
        let highest = stream.reported_highest.replace(block.highest_sequence);
        let expected = highest.map_or(0, |before| block.highest_sequence.wrapping_sub(before));
        // a receiver that has restarted, or reports out of order
        let expected = if expected > u32::MAX / 2 { 0 } else { expected };
        if self.blocks == 0 {
            self.highest = block.highest_sequence;
            let clock = i64::from(stream.signalled.clock_rate);
            self.jitter = Span::from_nanos(i64::from(block.jitter) * 1_000_000_000 / clock);
        }
        self.blocks += 1;
        self.expected += u64::from(expected);
        self.lost += u64::from(expected) * u64::from(block.fraction_lost);
        self.largest_fraction = self.largest_fraction.max(block.fraction_lost);
        self.cumulative += i64::from(block.cumulative_lost);
    }

    /// The loss report: a single block as it is; of several, the fractions weighted by the packets expected.
    fn report(self) -> Option<LossReport> {
        let fraction_lost = match (self.blocks, self.expected) {
            (0, _) => return None,
            (1, _) | (_, 0) => self.largest_fraction,
            (_, expected) => (self.lost / expected) as u8,
        };
        Some(LossReport {
            fraction_lost,
            cumulative_lost: self.cumulative.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
            highest_sequence: self.highest,
            jitter: self.jitter,
            expected: u32::try_from(self.expected).unwrap_or(u32::MAX),
        })
    }
}

impl Sender {
    /// Processes a datagram of RTCP, and passes it to the controller as one report.
    pub(crate) fn rtcp(&mut self, now: Time, packets: Vec<rtcp::Packet>, path: &Path, out: &mut dyn Driver) {
        if !matches!(self.life, super::Life::Running(_)) {
            return;
        }
        self.report.packets.clear();
        self.report.messages.clear();
        (self.report.loss, self.report.remb, self.report.ecn) = (None, None, None);
        let clock = ntp::short(path.clock.date(now));
        let (mut reporter, mut round_trip, mut losses) = (None, RoundTrip::default(), Losses::default());
        let (mut requested, mut reports) = (false, false);
        self.refused = 0;
        for packet in packets {
            let from = match packet {
                rtcp::Packet::SenderReport(report) => {
                    reports |= !path.separate_reports || !report.blocks.is_empty();
                    self.blocks(&report.blocks, clock, &mut round_trip, &mut losses).then_some(report.ssrc)
                }
                rtcp::Packet::ReceiverReport(report) => {
                    reports = true;
                    self.blocks(&report.blocks, clock, &mut round_trip, &mut losses).then_some(report.ssrc)
                }
                rtcp::Packet::Twcc(twcc) => {
                    self.twcc(now, &twcc, &mut round_trip);
                    Some(twcc.sender_ssrc)
                }
                rtcp::Packet::Ccfb(ccfb) => {
                    self.ccfb(now, &ccfb, &mut round_trip);
                    Some(ccfb.sender_ssrc)
                }
                rtcp::Packet::Remb(remb) => {
                    self.report.remb = Some(remb.bitrate);
                    Some(remb.sender_ssrc)
                }
                rtcp::Packet::App(app) => {
                    let ssrc = app.ssrc;
                    self.report.messages.push(app);
                    Some(ssrc)
                }
                rtcp::Packet::EcnFeedback(feedback) => self
                    .note_ecn(feedback.media_ssrc, &feedback.counters, false)
                    .then_some(feedback.sender_ssrc),
                rtcp::Packet::ExtendedReport(report) => {
                    let ours = report.ecn().fold(false, |ours, (ssrc, counters)| {
                        self.note_ecn(ssrc, &counters, reports) || ours
                    });
                    ours.then_some(report.ssrc)
                }
                rtcp::Packet::Nack(nack) => {
                    self.nack(now, &nack);
                    requested = true;
                    None
                }
                rtcp::Packet::Pli(pli) => {
                    self.request_key(now, pli.media_ssrc);
                    None
                }
                rtcp::Packet::Fir(fir) => {
                    fir.entries.iter().for_each(|entry| self.request_key(now, entry.ssrc));
                    None
                }
                _ => None,
            };
            reporter = reporter.or(from);
        }
        if self.refused > 0 {
            out.record().refused(now, self.flow, self.refused);
        }
        self.check_ecn(now, reports, out);
        self.watch(now, reports, round_trip.report, path, out);
        let Some(reporter) = reporter else {
            if requested {
                self.work(now, path, out);
            }
            return;
        };
        self.history.forget(now);
        self.report.reporter = reporter;
        (self.report.report_rtt, self.report.packet_rtt) = (round_trip.report, round_trip.newest());
        if let Some(rtt) = self.report.rtt() {
            self.rtt = Some(rtt);
        }
        if let (Some(repair), Some(rtt)) = (&mut self.repair, self.report.report_rtt) {
            repair.set_rtt(now, rtt);
        }
        self.report.loss = losses.report();
        self.report.in_flight = self.history.in_flight();
        self.report.backlog = self.pacer.backlog();
        self.report.pacer_delay = self.pacer.delay(now);
        if !self.report.packets.is_sorted_by_key(|result| result.sequence) {
            self.report.packets.sort_by_key(|result| result.sequence);
        }
        // lent out for the call, so that it can be reused
        let report = std::mem::take(&mut self.report);
        self.call(now, out, true, |host| host.report(now, &report));
        self.report = report;
        // nothing was sent: let time pass for the application's limit
        self.app_limit.sent(now, tidegate_core::Size::ZERO);
        if out.record().level() >= Level::Series {
            self.note_backlog(now, out);
            self.note_report(now, out);
        }
        self.work(now, path, out);
    }

    /// Records figures that follow from the report itself, whatever the controller makes of it.
    fn note_report(&self, now: Time, out: &mut dyn Driver) {
        if let Some(rtt) = self.report.rtt() {
            out.record().internal(now, self.flow, "round_trip_ms", rtt.as_millis_f64());
        }
        if !self.report.packets.is_empty() {
            let arrived = self.report.packets.iter().filter(|packet| packet.arrival.is_some());
            let bytes: u64 = arrived.map(|packet| packet.size.as_bytes()).sum();
            out.record().internal(now, self.flow, "acked_bytes", bytes as f64);
        }
    }

    /// Notes the counters of a stream in RFC 6679's reports; returns whether the stream is one of ours. `summary`:
    /// whether they came with a report.
    fn note_ecn(&mut self, ssrc: u32, counters: &EcnCounters, summary: bool) -> bool {
        let ours = self.streams.iter_mut().enumerate().find(|(_, ours)| ours.signalled.ssrc == ssrc);
        let Some((index, stream)) = ours else {
            self.refused += 1;
            return false;
        };
        if summary {
            let marked = stream.ecn.marked(counters);
            // a mark on ECT(0) counts as a loss; with ECT(1) marks are frequent, and no losses (RFC 9331 section 4.3)
            if let (Ecn::Ect0, Some(breaker)) = (self.ecn, &mut self.breaker) {
                breaker.marked(index, marked.into());
            }
        }
        if let Some(initiation) = &mut self.initiation {
            initiation.counters(index, counters);
        }
        if let (false, Some(news)) = (self.feedback_has_ecn, stream.ecn.news(counters)) {
            if self.ecn == Ecn::NotEct && (news.ect0, news.ect1, news.ce) != (0, 0, 0) {
                self.refused += 1;
                return true;
            }
            let EcnCounts { not_ect, ect0, ect1, ce } = self.report.ecn.get_or_insert_default();
            // they are the far end's and need not be true
            (*not_ect, *ect0) = (not_ect.saturating_add(news.not_ect), ect0.saturating_add(news.ect0));
            (*ect1, *ce) = (ect1.saturating_add(news.ect1), ce.saturating_add(news.ce));
        }
        true
    }

    /// Notes the blocks on our streams; returns whether there were any.
    fn blocks(
        &mut self,
        blocks: &[ReportBlock],
        clock: u32,
        rtt: &mut RoundTrip,
        losses: &mut Losses,
    ) -> bool {
        let mut any = false;
        for block in blocks {
            let ours =
                self.streams.iter_mut().enumerate().find(|(_, ours)| ours.signalled.ssrc == block.ssrc);
            let Some((index, stream)) = ours else {
                self.refused += 1;
                continue;
            };
            any = true;
            if let Some(breaker) = &mut self.breaker {
                breaker.block(index, block);
            }
            if let Some(initiation) = &mut self.initiation {
                initiation.block(index, block.highest_sequence);
            }
            losses.block(block, stream);
            rtt.report = rtt.report.or(block.round_trip(clock));
        }
        any
    }

    fn twcc(&mut self, now: Time, twcc: &rtcp::Twcc, rtt: &mut RoundTrip) {
        let reference =
            twcc.reference(self.remote_clocks.reference.unwrap_or(i64::from(twcc.reference_time)));
        self.remote_clocks.reference = Some(reference);
        let newest = self.history.next() as i64 - 1;
        for (sequence, arrival) in twcc.arrivals() {
            let sequence = wrap::nearest(u32::from(sequence), 16, newest);
            self.refused += u32::from(sequence > newest);
            let arrival = match arrival {
                TwccArrival::NotReceived => None,
                TwccArrival::At(ticks) => Some(rtcp::Twcc::instant(reference, ticks)),
                TwccArrival::Untimed => {
                    self.history.received(sequence);
                    continue;
                }
            };
            if let Some(sent) = self.history.join(sequence, arrival, Ecn::NotEct, &mut self.report) {
                rtt.packet(now, sent, Span::ZERO);
            }
        }
    }

    fn ccfb(&mut self, now: Time, ccfb: &rtcp::Ccfb, rtt: &mut RoundTrip) {
        let near = self.remote_clocks.timestamp.unwrap_or(i64::from(ccfb.report_timestamp));
        let timestamp = wrap::nearest(ccfb.report_timestamp, 32, near);
        self.remote_clocks.timestamp = Some(timestamp);
        let reported = ntp::instant(timestamp);
        let mut marks = self.report.ecn.unwrap_or_default();
        for stream in &ccfb.streams {
            let Some(ours) = self.streams.iter().find(|ours| ours.signalled.ssrc == stream.ssrc) else {
                self.refused += 1;
                continue;
            };
            let mut sequence = stream.begin.wrapping_sub(1);
            for metric in &stream.metrics {
                sequence = sequence.wrapping_add(1);
                let Some(transport) = ours.transport_of(sequence) else {
                    self.refused += 1;
                    continue;
                };
                let transport = transport as i64;
                match *metric {
                    Metric::NotReceived => {
                        self.history.join(transport, None, Ecn::NotEct, &mut self.report);
                    }
                    Metric::Received { ecn, .. } => {
                        // no queue marks packets that are not ECN-capable (RFC 3168 section 5): such a mark is ignored
                        let stray = ecn.is_capable() && self.history.is_incapable(transport);
                        self.refused += u32::from(stray);
                        let ecn = if stray { Ecn::NotEct } else { ecn };
                        let news = match metric.ago() {
                            None => self.history.received(transport),
                            Some(ago) => {
                                let arrival = Some(reported + -ago);
                                let sent = self.history.join(transport, arrival, ecn, &mut self.report);
                                if let Some(sent) = sent {
                                    rtt.packet(now, sent, ago);
                                }
                                sent.is_some()
                            }
                        };
                        if news {
                            marks.add(ecn);
                        }
                    }
                }
            }
        }
        self.report.ecn = Some(marks);
    }
}
