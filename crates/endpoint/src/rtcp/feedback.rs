//! The log of arrivals, and per-packet feedback made from it.

use super::ecn::EcnLog;
use super::ticks::Ticks;
use crate::settings::{FeedbackFormat, FeedbackSettings};
use tidegate_core::wire::rtcp::{self, Arrival, StreamMetrics, TwccBuilder};
use tidegate_core::wire::{ntp, wrap};
use tidegate_core::{Ecn, RemoteTime, Span, Time};

/// How long arrivals that were reported on are kept, to be repeated when an earlier packet comes after
/// all (libwebrtc `RemoteEstimatorProxy`: `kBackWindow`).
const BACK_WINDOW: Span = Span::from_millis(500);

/// No report covers more numbers than this, so that it fits a datagram (16 kB a stream in RFC 8888) whatever
/// numbers arrive: at 50 ms that is 1.9 Gb/s of full packets.
const SPAN_MAX: u64 = 8192;

/// Nor do several streams together: at 2 bytes each, and headers, that fits the 64 kB of a datagram.
const SPAN_DATAGRAM: u64 = 3 * SPAN_MAX;

/// Nor does one that goes when the profile lets it: so many numbers fit an Ethernet packet of 1500 bytes beside
/// reports and names, at 2 bytes each in RFC 8888 and 16/7 at most in TWCC. Where RTCP's bandwidth is too small for
/// more, the older ones are left out, or packets would grow as fast as the time between them.
const SPAN_PACKET: u64 = 512;

/// Time between two reports where nothing follows from rates.
const USUAL: Span = Span::from_millis(50);

/// A report that goes with frames does not wait for more packets than this, nor for longer since the last one
/// (draft-ietf-ccwg-rfc8298bis-screamv2, section "Receiver Requirements on Feedback Intensity": 16 and 40 ms have been tested with good
/// results).
const FRAME_PACKETS: u32 = 16;
const FRAME_APART: Span = Span::from_millis(40);

/// When reports are due.
#[derive(Debug)]
enum Due {
    /// On a grid.
    Ticks,
    /// With frames: packets since the last report, and when that was.
    Frame { packets: u32, reported: Option<Time> },
}

/// One packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged {
    /// Index of its stream.
    pub(crate) stream: usize,
    /// RTP sequence number, unwrapped.
    pub(crate) rtp_sequence: i64,
    /// Transport-wide sequence number, unwrapped, if it has one.
    pub(crate) transport_sequence: Option<i64>,
    /// When, by this end's clock.
    pub(crate) at: RemoteTime,
    /// The ECN field as it arrived.
    pub(crate) ecn: Ecn,
    /// Whether it is the first copy.
    pub(crate) first: bool,
    /// Whether it is the last of its frame.
    pub(crate) marker: bool,
}

/// What has arrived of one numbering, and what was reported of it.
#[derive(Debug, Default)]
struct Track {
    /// The next number to report on.
    begin: Option<u64>,
    /// Arrivals since the last report; and before them those of the back window.
    arrivals: Vec<Arrival>,
    /// How many at the beginning were reported on already.
    reported: usize,
    /// What would follow on the last arrival from far behind.
    stray_next: u64,
}

impl Track {
    /// Takes an arrival, and says whether it is to be reported. What comes from too far behind is not,
    /// unless it is two in a row: then the jump ahead before them was in error.
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

    /// What to report on, at most so many: the first number, and the one after the last.
    fn take(&mut self, most: u64) -> Option<(u64, u64)> {
        let news = &self.arrivals[self.reported..];
        let least = news.iter().map(|arrival| arrival.sequence).min()?;
        let last = news.iter().map(|arrival| arrival.sequence).max()?;
        let end = (last + 1).max(self.begin.unwrap_or(0));
        let begin = self.begin.map_or(least, |begin| begin.min(least));
        debug_assert!(
            self.reported < self.arrivals.len() && begin < end,
            "a report on nothing: {begin}..{end}"
        );
        self.begin = Some(end);
        Some((begin.max(end.saturating_sub(most)), end))
    }

    /// After a report: lets go of what is older than the back window.
    fn trim(&mut self, now: RemoteTime) {
        self.arrivals.retain(|arrival| now - arrival.at < BACK_WINDOW);
        self.reported = self.arrivals.len();
    }
}

/// The log, in the form that the format needs.
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
    /// What is counted for RFC 6679's reports, where these are sent.
    ecn: Option<EcnLog>,
    /// The grid, where reports are on one.
    pub(crate) ticks: Ticks,
    times: Due,
    /// Whether a report is to fit a packet of any network.
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
            // libwebrtc's other format has other rules, and is not in use by default
            FeedbackFormat::Ccfb | FeedbackFormat::None => Some(settings.interval.unwrap_or(USUAL)),
        };
        let ecn = settings.ecn_reports.then(|| EcnLog::new(ssrcs));
        let times = match settings.frames {
            true => Due::Frame { packets: 0, reported: None },
            false => Due::Ticks,
        };
        Self { log, ecn, ticks: Ticks::new(interval), times, small: false, due: Time::MAX }
    }

    /// Keeps reports so small that a compound with them fits a packet of any network.
    pub(crate) fn keep_small(&mut self) {
        self.small = true;
    }

    /// When a report is due; [`Time::MAX`] while there is nothing to report.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Takes note of a packet that arrived at `now`.
    pub(crate) fn packet(&mut self, now: Time, packet: Logged) {
        let urgent = self.ecn.as_mut().is_some_and(|ecn| ecn.packet(&packet));
        if self.log_packet(packet) || urgent {
            self.schedule(now, packet.marker);
        }
    }

    /// Logs a packet for per-packet feedback, and says whether it is to be reported.
    fn log_packet(&mut self, packet: Logged) -> bool {
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
        // more than a wrap before the first one to arrive: nobody's
        let Ok(sequence) = u64::try_from(sequence) else { return false };
        track.push(Arrival { sequence, at: packet.at, ecn: packet.ecn })
    }

    /// RFC 6679's summary, which goes with each regular report, where such are sent.
    pub(crate) fn ecn_summary(&self, reporter: u32) -> Option<rtcp::Packet> {
        self.ecn.as_ref().map(|ecn| ecn.summary(reporter))
    }

    /// There is something to report on.
    fn schedule(&mut self, now: Time, marker: bool) {
        match &mut self.times {
            Due::Ticks if self.due == Time::MAX => self.due = self.ticks.next(now),
            Due::Ticks => {}
            Due::Frame { packets, reported } => {
                *packets += 1;
                if marker || *packets >= FRAME_PACKETS {
                    self.due = now;
                } else if self.due == Time::MAX {
                    self.due = now.max(reported.map_or(now, |at| at + FRAME_APART));
                }
            }
        }
    }

    /// The feedback on what has arrived since the last one, made `now`, which is `at` by this end's clock; nothing
    /// if nothing has.
    pub(crate) fn take(&mut self, now: Time, at: RemoteTime, reporter: u32) -> Vec<rtcp::Packet> {
        self.due = Time::MAX;
        if let Due::Frame { packets, reported } = &mut self.times
            && *packets > 0
        {
            (*packets, *reported) = (0, Some(now));
        }
        let mut packets: Vec<rtcp::Packet> = Vec::new();
        if let Some(ecn) = &mut self.ecn {
            packets.extend(ecn.take(reporter));
        }
        // transport-wide feedback may end off a word: it goes last
        packets.extend(self.take_log(at, reporter));
        packets
    }

    fn take_log(&mut self, at: RemoteTime, reporter: u32) -> Vec<rtcp::Packet> {
        match &mut self.log {
            Log::None => Vec::new(),
            Log::Twcc { builder, track, sorted } => {
                let most = if self.small { SPAN_PACKET } else { SPAN_MAX };
                let Some((begin, _)) = track.take(most) else { return Vec::new() };
                builder.sender_ssrc = reporter;
                sorted.clear();
                let wanted = track.arrivals.iter().filter(|arrival| arrival.sequence >= begin);
                sorted.extend(wanted.map(|arrival| (arrival.sequence, arrival.at)));
                sorted.sort_unstable();
                track.trim(at);
                builder.build(begin, sorted).into_iter().map(rtcp::Packet::Twcc).collect()
            }
            Log::Ccfb { tracks } => {
                let mut streams = Vec::new();
                let news = tracks.iter().filter(|(_, track)| track.is_news()).count() as u64;
                let most = if self.small { SPAN_PACKET } else { SPAN_DATAGRAM } / news.max(1);
                let most = most.min(SPAN_MAX);
                for (ssrc, track) in tracks.iter_mut().filter(|(_, track)| track.is_news()) {
                    if let Some((begin, end)) = track.take(most) {
                        streams.push(StreamMetrics::new(*ssrc, begin, end, &track.arrivals, at));
                        track.trim(at);
                    }
                }
                if streams.is_empty() {
                    return Vec::new();
                }
                let ccfb = rtcp::Ccfb { sender_ssrc: reporter, streams, report_timestamp: ntp::short(at) };
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
        let packet = Logged {
            stream: 0,
            rtp_sequence: sequence,
            transport_sequence: Some(sequence),
            at: RemoteTime::from_nanos(millis * 1_000_000),
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
        let at = |millis: i64| RemoteTime::from_nanos(millis * 1_000_000);
        assert_eq!(statuses(&log.take(Time::from_millis(153), at(153), 1)), (0, vec![true, true]));
        assert_eq!(log.due(), Time::MAX);
        assert!(log.take(Time::from_millis(203), at(203), 1).is_empty());
        // the grid goes on through the silence
        arrive(&mut log, 1000, 2);
        assert_eq!(log.due(), Time::from_millis(1003));
    }

    #[test]
    fn a_latecomer_repeats_what_came_after_it() {
        let mut log = log(FeedbackFormat::Twcc);
        let at = |millis: i64| RemoteTime::from_nanos(millis * 1_000_000);
        for sequence in [0, 1, 3, 4] {
            arrive(&mut log, 10 * sequence, sequence);
        }
        assert_eq!(
            statuses(&log.take(Time::from_millis(50), at(50), 1)),
            (0, vec![true, true, false, true, true])
        );
        arrive(&mut log, 60, 2);
        arrive(&mut log, 70, 6);
        assert_eq!(
            statuses(&log.take(Time::from_millis(100), at(100), 1)),
            (2, vec![true, true, true, false, true])
        );
        // and a gap at the beginning of a report is told
        arrive(&mut log, 110, 9);
        assert_eq!(statuses(&log.take(Time::from_millis(150), at(150), 1)), (7, vec![false, false, true]));
        // a latecomer alone is a report, too, and does not set the next one back
        arrive(&mut log, 160, 8);
        assert_eq!(statuses(&log.take(Time::from_millis(200), at(200), 1)), (8, vec![true, true]));
        arrive(&mut log, 210, 10);
        assert_eq!(statuses(&log.take(Time::from_millis(250), at(250), 1)), (10, vec![true]));
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
                other => panic!("{other:?}"),
            };
            assert_eq!((begin, count), (2000 - 512, 512), "{format:?}");
            // and goes on behind it
            arrive(&mut log, 2001, 2001);
            let packets = log.take(Time::from_nanos(2_100_000_000), RemoteTime::from_nanos(2_100_000_000), 1);
            match &packets[0] {
                Packet::Twcc(twcc) => assert_eq!((twcc.base_sequence, twcc.packets.len()), (2000, 2)),
                Packet::Ccfb(ccfb) => assert_eq!(ccfb.streams[0].metrics.len(), 2),
                other => panic!("{other:?}"),
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
        let told: Vec<Option<i64>> =
            ccfb.streams[0].metrics.iter().map(|m| m.ago().map(|ago| ago.as_nanos() / 1_000_000)).collect();
        assert_eq!(told, [Some(49), None, Some(39)], "rounded down to 1/1024 s");
    }

    #[test]
    fn with_frames_reports_go_at_the_marker_after_sixteen_packets_and_after_40_ms() {
        for format in [FeedbackFormat::Twcc, FeedbackFormat::Ccfb] {
            let mut log = FeedbackLog::new(
                FeedbackSettings { format, interval: None, ecn_reports: false, frames: true },
                &[7],
            );
            let mut sequence = 0;
            let mut at = |millis: i64, marker: bool| {
                let at = RemoteTime::from_nanos(millis * 1_000_000);
                let packet = Logged {
                    stream: 0,
                    rtp_sequence: sequence,
                    transport_sequence: Some(sequence),
                    at,
                    ecn: Ecn::NotEct,
                    first: true,
                    marker,
                };
                sequence += 1;
                log.packet(Time::from_millis(millis), packet);
                let due = log.due();
                if due <= Time::from_millis(millis) {
                    assert_eq!(log.take(due, at, 1).len(), 1, "there is something to tell");
                }
                due
            };
            assert_eq!(at(100, false), Time::from_millis(100), "the first packet, of which nobody knows");
            assert_eq!(at(101, false), Time::from_millis(140), "40 ms after the last report");
            assert_eq!(at(110, true), Time::from_millis(110), "the marker");
            for millis in 111..126 {
                assert_eq!(at(millis, false), Time::from_millis(150), "{millis}");
            }
            assert_eq!(at(126, false), Time::from_millis(126), "the sixteenth");
            assert_eq!(at(200, false), Time::from_millis(200), "long after the last report");
            assert_eq!(at(201, false), Time::from_millis(240));
            assert!(log.take(Time::from_millis(240), RemoteTime::from_nanos(1), 1).len() == 1);
            assert_eq!(log.due(), Time::MAX, "nothing to tell");
        }
    }
}
