//! The log of arrivals, and per-packet feedback made from it.

use super::ecn::EcnLog;
use super::ticks::Ticks;
use crate::settings::{FeedbackFormat, FeedbackSettings};
use tidegate_core::wire::rtcp::{self, Arrival, StreamMetrics, TwccBuilder};
use tidegate_core::wire::{ntp, wrap};
use tidegate_core::{Ecn, RemoteTime, Span, Time};

/// Time for which reported arrivals are kept, to be repeated when an earlier packet comes late (libwebrtc
/// `RemoteEstimatorProxy`).
const BACK_WINDOW: Span = Span::from_millis(500);

/// Sequence numbers that a report covers at most, so that it fits a datagram (16 kB a stream in RFC 8888) whatever
/// numbers arrive: at 50 ms that is 1.9 Gb/s of full packets.
const SPAN_MAX: u64 = 8192;

/// Sequence numbers that a report on several streams covers at most: at 2 bytes each, and headers, they fit the 64 kB
/// of a datagram.
const SPAN_DATAGRAM: u64 = 3 * SPAN_MAX;

/// Sequence numbers that a report covers at most where the profile limits RTCP's bandwidth. They fit an Ethernet packet
/// of 1500 bytes beside reports and names, at 2 bytes each in RFC 8888 and 16/7 at most in TWCC. Older numbers are left
/// out, or packets would grow as fast as the time between them.
const SPAN_PACKET: u64 = 512;

/// Time between two reports where neither settings nor rates determine it.
const DEFAULT_INTERVAL: Span = Span::from_millis(50);

/// Packets that a report with frames waits for at most (draft-ietf-ccwg-rfc8298bis-screamv2, section "Receiver
/// Requirements on Feedback Intensity": 16 packets and 40 ms have been tested with good results).
const FRAME_PACKETS_MAX: u32 = 16;
/// Time since the last report that a report with frames waits for at most (the same section).
const FRAME_INTERVAL_MAX: Span = Span::from_millis(40);

/// Rule for when reports are due.
#[derive(Debug)]
enum Trigger {
    /// On a grid.
    Ticks,
    /// With frames: packets since the last report, and its time.
    Frame { packets: u32, reported: Option<Time> },
}

/// One packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedPacket {
    /// Index of its stream.
    pub(crate) stream: usize,
    /// RTP sequence number, unwrapped.
    pub(crate) rtp_sequence: i64,
    /// Transport-wide sequence number, unwrapped, if it has one.
    pub(crate) transport_sequence: Option<i64>,
    /// Its arrival by this end's clock.
    pub(crate) arrival: RemoteTime,
    /// The ECN field as it arrived.
    pub(crate) ecn: Ecn,
    /// Whether it is the first copy.
    pub(crate) first: bool,
    /// Whether it is the last of its frame.
    pub(crate) marker: bool,
}

/// Arrivals by one sequence numbering, and which of them have been reported.
#[derive(Debug, Default)]
struct Track {
    /// The next number to report on.
    begin: Option<u64>,
    /// Arrivals of the back window, then those since the last report.
    arrivals: Vec<Arrival>,
    /// Number of arrivals, from the first one on, that have been reported.
    reported: usize,
    /// The number that follows on the last arrival from far behind.
    stray_next: u64,
}

impl Track {
    /// Adds an arrival; returns whether it is to be reported. One from too far behind is not, unless it is the second
    /// in a row: then the jump ahead before the two was in error.
    fn push(&mut self, arrival: Arrival) -> bool {
        let sequence = arrival.sequence;
        if self.begin.is_some_and(|begin| sequence + SPAN_MAX < begin) {
            let again = sequence == self.stray_next;
            self.stray_next = sequence + 1;
            if !again {
                return false;
            }
            self.begin = Some(sequence);
            self.arrivals.clear();
            self.reported = 0;
        }
        self.arrivals.push(arrival);
        true
    }

    fn is_news(&self) -> bool {
        self.arrivals.len() > self.reported
    }

    /// The range to report on, of at most `limit` numbers: the first one, and the one after the last.
    fn take(&mut self, limit: u64) -> Option<(u64, u64)> {
        let news = &self.arrivals[self.reported..];
        let first = news.iter().map(|arrival| arrival.sequence).min()?;
        let last = news.iter().map(|arrival| arrival.sequence).max()?;
        let end = (last + 1).max(self.begin.unwrap_or(0));
        let begin = self.begin.map_or(first, |begin| begin.min(first));
        debug_assert!(
            self.reported < self.arrivals.len() && begin < end,
            "a report on nothing: {begin}..{end}"
        );
        self.begin = Some(end);
        Some((begin.max(end.saturating_sub(limit)), end))
    }

    /// After a report: drops arrivals older than the back window.
    fn trim(&mut self, now: RemoteTime) {
        self.arrivals.retain(|arrival| now - arrival.at < BACK_WINDOW);
        self.reported = self.arrivals.len();
    }
}

/// The log, as the feedback format needs it.
#[derive(Debug)]
enum Log {
    None,
    Twcc { builder: TwccBuilder, track: Track, sorted: Vec<(u64, RemoteTime)> },
    Ccfb { tracks: Vec<(u32, Track)> },
}

/// The feedback of a receiver.
#[derive(Debug)]
pub(crate) struct FeedbackLog {
    log: Log,
    /// Counters for RFC 6679's reports, where these are sent.
    ecn: Option<EcnLog>,
    /// The grid, where reports are on one.
    pub(crate) ticks: Ticks,
    trigger: Trigger,
    /// Whether a report has to fit a packet of any network.
    small: bool,
    due: Time,
}

impl FeedbackLog {
    /// Feedback on the streams `ssrcs`.
    pub(crate) fn new(settings: FeedbackSettings, ssrcs: &[u32]) -> Self {
        let log = match settings.format {
            FeedbackFormat::None => Log::None,
            FeedbackFormat::Twcc => Log::Twcc {
                builder: TwccBuilder::new(0, ssrcs.first().copied().unwrap_or(0)),
                track: Track::default(),
                sorted: Vec::new(),
            },
            FeedbackFormat::Ccfb => {
                Log::Ccfb { tracks: ssrcs.iter().map(|&ssrc| (ssrc, Track::default())).collect() }
            }
        };
        let interval = match settings.format {
            FeedbackFormat::Twcc => settings.interval,
            // libwebrtc has other rules for RFC 8888, which it does not use by default
            FeedbackFormat::Ccfb | FeedbackFormat::None => {
                Some(settings.interval.unwrap_or(DEFAULT_INTERVAL))
            }
        };
        let ecn = settings.ecn_reports.then(|| EcnLog::new(ssrcs));
        let trigger = match settings.frames {
            true => Trigger::Frame { packets: 0, reported: None },
            false => Trigger::Ticks,
        };
        Self { log, ecn, ticks: Ticks::new(interval), trigger, small: false, due: Time::MAX }
    }

    /// Keeps reports so small that a compound with them fits a packet of any network.
    pub(crate) fn keep_small(&mut self) {
        self.small = true;
    }

    /// When a report is due; [`Time::MAX`] while there is nothing to report.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Logs a packet that arrived at `now`, and schedules a report on it.
    pub(crate) fn packet(&mut self, now: Time, packet: LoggedPacket) {
        let urgent = self.ecn.as_mut().is_some_and(|ecn| ecn.packet(&packet));
        if self.log_packet(packet) || urgent {
            self.schedule(now, packet.marker);
        }
    }

    /// Logs a packet for per-packet feedback; returns whether it is to be reported.
    fn log_packet(&mut self, packet: LoggedPacket) -> bool {
        let (track, sequence) = match &mut self.log {
            Log::None => return false,
            Log::Twcc { track, .. } => match packet.transport_sequence {
                Some(sequence) if packet.first => (track, sequence),
                _ => return false,
            },
            Log::Ccfb { tracks } => match tracks.get_mut(packet.stream) {
                Some((_, track)) => (track, packet.rtp_sequence),
                None => return false,
            },
        };
        // more than a wrap before the first one to arrive: no packet of the sender has that number
        let Ok(sequence) = u64::try_from(sequence) else { return false };
        track.push(Arrival { sequence, at: packet.arrival, ecn: packet.ecn })
    }

    /// RFC 6679's summary for a regular report, where these reports are sent.
    pub(crate) fn ecn_summary(&self, reporter: u32) -> Option<rtcp::Packet> {
        self.ecn.as_ref().map(|ecn| ecn.summary(reporter))
    }

    /// Schedules a report on a packet.
    fn schedule(&mut self, now: Time, marker: bool) {
        match &mut self.trigger {
            Trigger::Ticks if self.due == Time::MAX => self.due = self.ticks.next(now),
            Trigger::Ticks => {}
            Trigger::Frame { packets, reported } => {
                *packets += 1;
                if marker || *packets >= FRAME_PACKETS_MAX {
                    self.due = now;
                } else if self.due == Time::MAX {
                    self.due = now.max(reported.map_or(now, |reported| reported + FRAME_INTERVAL_MAX));
                }
            }
        }
    }

    /// The feedback on arrivals since the last one; empty if there were none. `local_time`: `now` by this end's clock.
    pub(crate) fn take(&mut self, now: Time, local_time: RemoteTime, reporter: u32) -> Vec<rtcp::Packet> {
        self.due = Time::MAX;
        if let Trigger::Frame { packets, reported } = &mut self.trigger
            && *packets > 0
        {
            (*packets, *reported) = (0, Some(now));
        }
        let mut packets: Vec<rtcp::Packet> = Vec::new();
        if let Some(ecn) = &mut self.ecn {
            packets.extend(ecn.take(reporter));
        }
        // transport-wide feedback may end off a word boundary: it goes last
        packets.extend(self.take_log(local_time, reporter));
        packets
    }

    fn take_log(&mut self, local_time: RemoteTime, reporter: u32) -> Vec<rtcp::Packet> {
        match &mut self.log {
            Log::None => Vec::new(),
            Log::Twcc { builder, track, sorted } => {
                let limit = if self.small { SPAN_PACKET } else { SPAN_MAX };
                let Some((begin, _)) = track.take(limit) else { return Vec::new() };
                builder.sender_ssrc = reporter;
                sorted.clear();
                let covered = track.arrivals.iter().filter(|arrival| arrival.sequence >= begin);
                sorted.extend(covered.map(|arrival| (arrival.sequence, arrival.at)));
                sorted.sort_unstable();
                track.trim(local_time);
                builder.build(begin, sorted).into_iter().map(rtcp::Packet::Twcc).collect()
            }
            Log::Ccfb { tracks } => {
                let mut streams = Vec::new();
                let news = tracks.iter().filter(|(_, track)| track.is_news()).count() as u64;
                let limit = if self.small { SPAN_PACKET } else { SPAN_DATAGRAM } / news.max(1);
                let limit = limit.min(SPAN_MAX);
                for (ssrc, track) in tracks.iter_mut().filter(|(_, track)| track.is_news()) {
                    if let Some((begin, end)) = track.take(limit) {
                        streams.push(StreamMetrics::new(*ssrc, begin, end, &track.arrivals, local_time));
                        track.trim(local_time);
                    }
                }
                if streams.is_empty() {
                    return Vec::new();
                }
                let ccfb =
                    rtcp::Ccfb { sender_ssrc: reporter, streams, report_timestamp: ntp::short(local_time) };
                vec![rtcp::Packet::Ccfb(ccfb)]
            }
        }
    }
}

/// Unwraps the transport-wide sequence numbers of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportNumbers {
    highest: Option<i64>,
}

impl TransportNumbers {
    pub(crate) fn unwrap(&mut self, sequence: u16) -> i64 {
        let unwrapped = match self.highest {
            None => i64::from(sequence),
            Some(highest) => wrap::nearest(u32::from(sequence), 16, highest),
        };
        self.highest = self.highest.max(Some(unwrapped));
        unwrapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::wire::rtcp::{Packet, Status};

    fn log(format: FeedbackFormat) -> FeedbackLog {
        FeedbackLog::new(
            FeedbackSettings {
                format,
                interval: Some(Span::from_millis(50)),
                ecn_reports: false,
                frames: false,
            },
            &[7, 8],
        )
    }

    fn arrive(log: &mut FeedbackLog, millis: i64, sequence: i64) {
        let packet = LoggedPacket {
            stream: 0,
            rtp_sequence: sequence,
            transport_sequence: Some(sequence),
            arrival: RemoteTime::from_nanos(millis * 1_000_000),
            ecn: Ecn::Ect1,
            first: true,
            marker: false,
        };
        log.packet(Time::from_millis(millis), packet);
    }

    fn statuses(packets: &[Packet]) -> (u16, Vec<bool>) {
        let [Packet::Twcc(twcc)] = packets else { panic!("one TWCC: {packets:?}") };
        let received = twcc.packets.iter().map(|status| *status != Status::NotReceived).collect();
        (twcc.base_sequence, received)
    }

    #[test]
    fn reports_are_on_a_grid_and_only_when_something_arrived() {
        let mut log = log(FeedbackFormat::Twcc);
        assert_eq!(log.due(), Time::MAX);
        arrive(&mut log, 103, 0);
        assert_eq!(log.due(), Time::from_millis(153));
        arrive(&mut log, 120, 1);
        let local_time = |millis: i64| RemoteTime::from_nanos(millis * 1_000_000);
        assert_eq!(statuses(&log.take(Time::from_millis(153), local_time(153), 1)), (0, vec![true, true]));
        assert_eq!(log.due(), Time::MAX);
        assert!(log.take(Time::from_millis(203), local_time(203), 1).is_empty());
        // the grid goes on through the silence
        arrive(&mut log, 1000, 2);
        assert_eq!(log.due(), Time::from_millis(1003));
    }

    #[test]
    fn a_latecomer_repeats_what_came_after_it() {
        let mut log = log(FeedbackFormat::Twcc);
        let local_time = |millis: i64| RemoteTime::from_nanos(millis * 1_000_000);
        for sequence in [0, 1, 3, 4] {
            arrive(&mut log, 10 * sequence, sequence);
        }
        assert_eq!(
            statuses(&log.take(Time::from_millis(50), local_time(50), 1)),
            (0, vec![true, true, false, true, true])
        );
        arrive(&mut log, 60, 2);
        arrive(&mut log, 70, 6);
        assert_eq!(
            statuses(&log.take(Time::from_millis(100), local_time(100), 1)),
            (2, vec![true, true, true, false, true])
        );
        // and a gap at the beginning of a report is in it
        arrive(&mut log, 110, 9);
        assert_eq!(
            statuses(&log.take(Time::from_millis(150), local_time(150), 1)),
            (7, vec![false, false, true])
        );
        // a late packet alone is worth a report, and does not move the start of the next one back
        arrive(&mut log, 160, 8);
        assert_eq!(statuses(&log.take(Time::from_millis(200), local_time(200), 1)), (8, vec![true, true]));
        arrive(&mut log, 210, 10);
        assert_eq!(statuses(&log.take(Time::from_millis(250), local_time(250), 1)), (10, vec![true]));
    }

    #[test]
    fn a_small_report_tells_of_the_newest() {
        for format in [FeedbackFormat::Twcc, FeedbackFormat::Ccfb] {
            let mut log = log(format);
            log.keep_small();
            for sequence in 0..2000 {
                arrive(&mut log, sequence, sequence);
            }
            let packets = log.take(Time::from_nanos(2_000_000_000), RemoteTime::from_nanos(2_000_000_000), 1);
            let mut bytes = Vec::new();
            tidegate_core::wire::rtcp::encode(&packets, &mut bytes).unwrap();
            assert!((512..1300).contains(&bytes.len()), "{}", bytes.len());
            let (begin, count) = match &packets[0] {
                Packet::Twcc(twcc) => (twcc.base_sequence, twcc.packets.len()),
                Packet::Ccfb(ccfb) => (ccfb.streams[0].begin, ccfb.streams[0].metrics.len()),
                packet => panic!("{packet:?}"),
            };
            assert_eq!((begin, count), (2000 - 512, 512), "{format:?}");
            // and the next one goes on behind it
            arrive(&mut log, 2001, 2001);
            let packets = log.take(Time::from_nanos(2_100_000_000), RemoteTime::from_nanos(2_100_000_000), 1);
            match &packets[0] {
                Packet::Twcc(twcc) => assert_eq!((twcc.base_sequence, twcc.packets.len()), (2000, 2)),
                Packet::Ccfb(ccfb) => assert_eq!(ccfb.streams[0].metrics.len(), 2),
                packet => panic!("{packet:?}"),
            }
        }
    }

    #[test]
    fn rfc_8888_reports_each_stream_by_itself() {
        let mut log = log(FeedbackFormat::Ccfb);
        arrive(&mut log, 10, 65_535);
        arrive(&mut log, 20, 65_537);
        let packets = log.take(Time::from_nanos(60_000_000), RemoteTime::from_nanos(60_000_000), 1);
        let [Packet::Ccfb(ccfb)] = &packets[..] else { panic!("{packets:?}") };
        assert_eq!(ccfb.streams.len(), 1);
        assert_eq!((ccfb.streams[0].ssrc, ccfb.streams[0].begin), (7, 65_535));
        let agos: Vec<Option<i64>> =
            ccfb.streams[0].metrics.iter().map(|m| m.ago().map(|ago| ago.as_nanos() / 1_000_000)).collect();
        assert_eq!(agos, [Some(49), None, Some(39)], "rounded down to 1/1024 s");
    }

    #[test]
    fn with_frames_reports_go_at_the_marker_after_sixteen_packets_and_after_40_ms() {
        for format in [FeedbackFormat::Twcc, FeedbackFormat::Ccfb] {
            let mut log = FeedbackLog::new(
                FeedbackSettings { format, interval: None, ecn_reports: false, frames: true },
                &[7],
            );
            let mut sequence = 0;
            let mut due = |millis: i64, marker: bool| {
                let arrival = RemoteTime::from_nanos(millis * 1_000_000);
                let packet = LoggedPacket {
                    stream: 0,
                    rtp_sequence: sequence,
                    transport_sequence: Some(sequence),
                    arrival,
                    ecn: Ecn::NotEct,
                    first: true,
                    marker,
                };
                sequence += 1;
                log.packet(Time::from_millis(millis), packet);
                let due = log.due();
                if due <= Time::from_millis(millis) {
                    assert_eq!(log.take(due, arrival, 1).len(), 1, "there is something to report");
                }
                due
            };
            assert_eq!(due(100, false), Time::from_millis(100), "the first packet, before any report");
            assert_eq!(due(101, false), Time::from_millis(140), "40 ms after the last report");
            assert_eq!(due(110, true), Time::from_millis(110), "the marker");
            for millis in 111..126 {
                assert_eq!(due(millis, false), Time::from_millis(150), "{millis}");
            }
            assert_eq!(due(126, false), Time::from_millis(126), "the sixteenth");
            assert_eq!(due(200, false), Time::from_millis(200), "long after the last report");
            assert_eq!(due(201, false), Time::from_millis(240));
            assert!(log.take(Time::from_millis(240), RemoteTime::from_nanos(1), 1).len() == 1);
            assert_eq!(log.due(), Time::MAX, "nothing to report");
        }
    }
}
