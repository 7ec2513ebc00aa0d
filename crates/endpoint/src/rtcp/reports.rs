//! The times of reports by the rule of libwebrtc's `RTCPSender` (`modules/rtp_rtcp/source/rtcp_sender.cc`).
//!
//! There each stream has a module of its own. Here an end has one for what it sends and one for what it receives, each
//! with all streams; where video is among them, audio is reported at video's times.

use std::collections::VecDeque;
use tidegate_core::{Rate, Span, Time};

/// Time between two reports on video, before its randomisation (`rtp_rtcp_impl2.cc`: `rtcp_report_interval`).
const VIDEO_INTERVAL: Span = Span::from_secs(1);
/// The same for audio alone.
const AUDIO_INTERVAL: Span = Span::from_secs(5);
/// Rate above which a sender of video reports more often (`ComputeTimeUntilNextReport`).
const REDUCED_ABOVE: Rate = Rate::from_kbps(72);
/// Bits that a sender of video sends between two reports: the interval is 360 s over the rate in kbit/s (RFC 3550
/// section 6.2).
const BITS_BETWEEN: f64 = 360_000.0;
/// Window in which the rate is measured (`rtp_sender_egress.cc`: that of its `BitrateTracker`).
const RATE_WINDOW: Span = Span::from_secs(1);

/// Time between two reports of an end, before its randomisation. `video`: whether its streams have video; `sending`:
/// the rate at which it sends them, if it does.
pub(crate) fn interval(video: bool, sending: Option<Rate>) -> Span {
    match sending {
        _ if !video => AUDIO_INTERVAL,
        Some(rate) if rate > REDUCED_ABOVE => {
            Span::from_secs_f64(BITS_BETWEEN / rate.as_bps_f64()).min(VIDEO_INTERVAL)
        }
        _ => VIDEO_INTERVAL,
    }
}

/// The parts of a report: on what the end sends, and on what it receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    pub(crate) sending: bool,
    pub(crate) receiving: bool,
}

impl Parts {
    pub(crate) const ALL: Self = Self { sending: true, receiving: true };
}

/// One direction of an end.
#[derive(Clone, Copy, Debug)]
struct Module {
    video: bool,
    due: Time,
}

impl Module {
    fn new(video: bool) -> Self {
        Self { video, due: Time::MAX }
    }

    /// Sets the time of the next report, `rate` being that at which the streams are sent.
    fn schedule(&mut self, now: Time, rate: Option<Rate>, uniform: f64) {
        self.due = now + interval(self.video, rate).scaled(0.5 + uniform);
    }
}

/// When an end sends reports.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    sending: Option<Module>,
    receiving: Option<Module>,
    joined: bool,
    /// Bytes sent by the times of reports, from the last one that is as old as the window.
    sent: VecDeque<(Time, u64)>,
    /// The last measured rate.
    rate: Rate,
}

impl Reports {
    /// Reports of an end that has not joined. `sending` and `receiving`: whether it does so, and whether with video.
    pub(crate) fn new(sending: Option<bool>, receiving: Option<bool>) -> Self {
        Self {
            sending: sending.map(Module::new),
            receiving: receiving.map(Module::new),
            joined: false,
            sent: VecDeque::new(),
            rate: Rate::ZERO,
        }
    }

    /// Whether each direction has reports of its own, so that sender reports have no blocks.
    pub(crate) fn are_separate(&self) -> bool {
        self.sending.is_some() && self.receiving.is_some()
    }

    /// Begins reports; does nothing after the first time. The first one comes after half an interval
    /// (`RTCPSender::SetRTCPStatus`).
    pub(crate) fn join(&mut self, now: Time) {
        if !std::mem::replace(&mut self.joined, true) {
            for module in [&mut self.sending, &mut self.receiving].into_iter().flatten() {
                module.due = now + interval(module.video, None) / 2;
            }
            self.sent.push_back((now, 0));
        }
    }

    /// Ends reports for good.
    pub(crate) fn leave(&mut self) {
        (self.sending, self.receiving, self.joined) = (None, None, true);
    }

    /// When the next report is due; [`Time::MAX`]: never.
    pub(crate) fn due(&self) -> Time {
        let due = |module: Option<Module>| module.map_or(Time::MAX, |module| module.due);
        due(self.sending).min(due(self.receiving))
    }

    /// The part that is due first: on what the end sends, where both are due at once.
    pub(crate) fn first_due(&self) -> Parts {
        let due = |module: Option<Module>| module.map_or(Time::MAX, |module| module.due);
        let sending = due(self.sending) <= due(self.receiving);
        Parts { sending, receiving: !sending }
    }

    /// Notes that a report with these parts has been made, and draws when the next one is due. `bytes`: sent so far.
    pub(crate) fn reported(&mut self, now: Time, parts: Parts, bytes: u64, mut uniform: impl FnMut() -> f64) {
        if let Some(module) = self.sending.as_mut().filter(|_| parts.sending) {
            while self.sent.get(1).is_some_and(|&(time, _)| now - time >= RATE_WINDOW) {
                self.sent.pop_front();
            }
            if let Some(&(time, before)) = self.sent.front()
                && now > time
            {
                self.rate = Rate::from_bps_f64((bytes - before) as f64 * 8.0 / (now - time).as_secs_f64());
            }
            self.sent.push_back((now, bytes));
            module.schedule(now, Some(self.rate), uniform());
        }
        if let Some(module) = self.receiving.as_mut().filter(|_| parts.receiving) {
            module.schedule(now, None, uniform());
        }
    }

    /// Time between two reports of this end, and between two of its peer's on what this end sends (RFC 8083 section 3:
    /// Td and Tdr).
    pub(crate) fn intervals(&self) -> (Span, Span) {
        let sending = self.sending.map(|module| interval(module.video, Some(self.rate)));
        let receiving = self.receiving.map(|module| interval(module.video, None));
        let local = [sending, receiving].into_iter().flatten().min().unwrap_or(AUDIO_INTERVAL);
        (local, self.sending.map_or(AUDIO_INTERVAL, |module| interval(module.video, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Stream;

    #[test]
    fn only_senders_of_video_reduce_their_interval() {
        for (video, kbps, millis) in [
            (true, None, 1000.0),
            (true, Some(0), 1000.0),
            (true, Some(72), 1000.0),
            (true, Some(359), 1000.0),
            (true, Some(400), 900.0),
            (true, Some(3600), 100.0),
            (false, None, 5000.0),
            (false, Some(3600), 5000.0),
        ] {
            let secs = interval(video, kbps.map(Rate::from_kbps)).as_secs_f64();
            assert!((secs * 1000.0 - millis).abs() < 1e-6, "{video} {kbps:?}: {secs}");
        }
    }

    /// Times of reports until `until`, for an end that sends `rate`.
    fn times(reports: &mut Reports, until: Time, rate: u64) -> Vec<(Time, Parts)> {
        let mut stream = Stream::new(1, "end", "rtcp");
        let mut times = Vec::new();
        while reports.due() < until {
            let now = reports.due();
            let parts = reports.first_due();
            let bytes = (now - Time::ZERO).as_secs_f64() * rate as f64 / 8.0;
            reports.reported(now, parts, bytes as u64, || stream.uniform());
            times.push((now, parts));
        }
        times
    }

    /// Least, mean and largest time between two of them, in seconds.
    fn spread(times: impl Iterator<Item = Time>) -> [f64; 3] {
        let times: Vec<Time> = times.collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        [gaps.iter().copied().fold(f64::MAX, f64::min), mean, gaps.iter().copied().fold(0.0, f64::max)]
    }

    #[test]
    fn intervals_are_drawn_from_half_to_one_and_a_half() {
        for (video, interval, first) in [(true, 1.0, 500), (false, 5.0, 2500)] {
            let mut reports = Reports::new(None, Some(video));
            assert_eq!(reports.due(), Time::MAX);
            reports.join(Time::from_millis(100));
            let times = times(&mut reports, Time::from_secs((10_000.0 * interval) as i64), 0);
            assert_eq!(times[0].0, Time::from_millis(100 + first));
            let [least, mean, largest] = spread(times.iter().map(|(time, _)| *time));
            // four standard deviations of the mean of 10 000 uniform numbers: 4 / sqrt(12 * 10 000)
            assert!((mean / interval - 1.0).abs() < 0.012, "{mean}");
            let (least, largest) = (least / interval, largest / interval);
            assert!((0.5..0.502).contains(&least) && (1.498..1.5).contains(&largest), "{least} {largest}");
        }
    }

    #[test]
    fn each_direction_has_its_own_times_and_a_rate_of_a_second_or_more() {
        let mut reports = Reports::new(Some(true), Some(true));
        reports.join(Time::ZERO);
        assert!(reports.are_separate());
        let all = times(&mut reports, Time::from_secs(1000), 2_000_000);
        let [sending, receiving] = [true, false].map(|sending| {
            spread(all.iter().filter(|(_, parts)| parts.sending == sending).map(|(time, _)| *time))
        });
        assert!((sending[1] - 0.18).abs() < 0.004 && sending[2] < 0.27 + 1e-9, "{sending:?}");
        assert!((receiving[1] - 1.0).abs() < 0.04 && receiving[2] <= 1.5, "{receiving:?}");
        // a byte in a second, which the rate is cut by, are 4 millionths of it
        let (local, peer) = reports.intervals();
        assert!((local - Span::from_millis(180)).abs() < Span::from_micros(1), "{local}");
        assert_eq!(peer, Span::from_secs(1));
        // silence: the rate falls as the window moves on, and a second later nothing is left of it
        let bytes = reports.sent.back().unwrap().1;
        let mut now = reports.due();
        for _ in 0..20 {
            now += Span::from_millis(100);
            reports.reported(now, Parts::ALL, bytes, || 0.5);
        }
        assert_eq!((reports.rate, reports.intervals().0), (Rate::ZERO, Span::from_secs(1)));
        assert!(reports.sent.len() <= 11, "{} marks", reports.sent.len());
        reports.leave();
        reports.join(now);
        assert_eq!(reports.due(), Time::MAX);
    }
}
