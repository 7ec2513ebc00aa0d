//! Delay-based part: groups of packets, the slope of their delay, the over-use detector and the rate control.
//!
//! `delay_based_bwe.cc`. Groups, trendline and detector are shared with the older presets.

use super::aimd::Aimd;
use super::rounding::ms;
use super::settings::Settings;
use crate::gcc::detector::{self, Detector, Usage};
use crate::gcc::groups::{self, Groups};
use crate::gcc::trendline::Trendline;
use tidegate_core::control::{Context, PacketResult};
use tidegate_core::units::{Rate, Span, Time};

/// Time without packets after which all but the rate starts anew.
const STREAM_TIME_OUT: Span = Span::from_secs(2);

/// Result of one report (`DelayBasedBwe::Result`).
#[derive(Clone, Copy, Default)]
pub struct Verdict {
    /// Delay-based rate, if it was updated.
    pub rate: Option<Rate>,
    /// Whether the rate is a probe's result.
    pub by_probe: bool,
    /// Whether the queue has drained (`recovered_from_overuse`).
    pub recovered: bool,
}

/// Delay-based part (`DelayBasedBwe`).
pub struct Delay {
    /// Rate control.
    pub rate: Aimd,
    trend_window: u64,
    groups: Groups,
    trend: Trendline,
    detector: Detector,
    last_report: Option<Time>,
}

impl Delay {
    /// Creates a part that fits its line to `trend_window` groups, begins with `start` and stays above `min_rate`.
    #[must_use]
    pub fn new(trend_window: u64, start: Rate, min_rate: Rate) -> Self {
        Self {
            rate: Aimd::new(start, min_rate),
            trend_window,
            groups: Groups::new(groups::Config::LIBWEBRTC),
            trend: Trendline::new(trend_window),
            detector: Detector::new(detector::Config::LIBWEBRTC),
            last_report: None,
        }
    }

    /// Last verdict of the detector.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.detector.usage
    }

    /// Takes the received packets of a report in order of arrival (at least one), the received rate and a probe's
    /// result.
    pub fn report(
        &mut self,
        settings: &Settings,
        packets: &[PacketResult],
        acked: Option<Rate>,
        probe: Option<Rate>,
        now: Time,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if self.last_report.replace(now).is_some_and(|last| now.saturating_since(last) > STREAM_TIME_OUT) {
            self.groups = Groups::new(groups::Config::LIBWEBRTC);
            self.trend = Trendline::new(self.trend_window);
            self.detector = Detector::new(detector::Config::LIBWEBRTC);
        }
        let mut recovered = false;
        for packet in packets {
            let before = self.usage();
            self.packet(packet, now, cx);
            recovered |= before == Usage::Under && self.usage() == Usage::Normal;
        }
        if self.usage() == Usage::Over {
            return Verdict { rate: self.overuse(settings, acked, now), ..Verdict::default() };
        }
        if let Some(probe) = probe {
            self.rate.set(settings, probe, now);
            return Verdict { rate: Some(self.rate.rate), by_probe: true, recovered: false };
        }
        let rate = Some(self.rate.update(settings, self.usage(), acked, now));
        Verdict { rate, by_probe: false, recovered }
    }

    fn overuse(&mut self, settings: &Settings, acked: Option<Rate>, now: Time) -> Option<Rate> {
        match acked {
            Some(acked) if self.rate.may_decrease(acked, now) => {
                Some(self.rate.update(settings, Usage::Over, Some(acked), now))
            }
            Some(_) => None,
            // no received rate yet: each report halves the rate. InitialTimeToReduceFurther always agrees, because
            // libwebrtc passes it less than half the rate
            None => {
                self.rate.set(settings, Rate::from_bps(self.rate.rate.as_bps() / 2), now);
                Some(self.rate.rate)
            }
        }
    }

    fn packet(&mut self, packet: &PacketResult, now: Time, cx: &mut Context<'_>) {
        let Some(arrived) = packet.arrival else { return };
        let delta = self.groups.packet(packet.sent, arrived, packet.size, now);
        let Some(delta) = delta else { return };
        let clock = ms(arrived.as_nanos()) as f64;
        self.trend.update(delta.variation(), clock);
        self.detector.detect(self.trend.trend, delta.send, clock);
        if cx.wants_notes() {
            cx.note("trend", self.trend.trend);
            cx.note("compared", self.detector.compared);
            cx.note("threshold", self.detector.threshold.value);
            cx.note("state", self.usage().code());
            cx.note("group_delta_ms", delta.variation());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_use_before_anything_is_measured_halves_the_rate_with_each_report() {
        let settings = Settings::default();
        let mut delay = Delay::new(20, Rate::from_kbps(300), Rate::from_kbps(30));
        for (ms, expected) in [(0, 150), (1, 75)] {
            let halved = delay.overuse(&settings, None, Time::from_millis(ms));
            assert_eq!(halved, Some(Rate::from_kbps(expected)));
        }
        // with something measured it waits for a round trip
        assert_eq!(delay.overuse(&settings, Some(Rate::from_kbps(70)), Time::from_millis(2)), None);
    }
}
