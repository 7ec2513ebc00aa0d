//! The delay-based part: groups of packets, the slope of their delay, a verdict on it, and the rate control.
//!
//! `delay_based_bwe.cc`. Groups, trendline and detector are those that the older presets are made of.

use super::aimd::Aimd;
use super::rounding::ms;
use super::settings::Settings;
use crate::gcc::detector::{self, Detector, Usage};
use crate::gcc::groups::{self, Groups};
use crate::gcc::trendline::Trendline;
use tidegate_core::control::{Context, PacketResult};
use tidegate_core::units::{Rate, Span, Time};

/// After so long without packets everything but the rate begins anew (`kStreamTimeOut`).
const TIMEOUT: Span = Span::from_secs(2);

/// What one report has led to.
#[derive(Clone, Copy, Default)]
pub struct Verdict {
    /// The delay-based rate, where it was updated.
    pub rate: Option<Rate>,
    /// It is a probe's result.
    pub by_probe: bool,
    /// The queue has drained.
    pub recovered: bool,
}

/// The delay-based part.
pub struct Delay {
    /// The rate control.
    pub rate: Aimd,
    trend_window: u64,
    groups: Groups,
    trend: Trendline,
    detector: Detector,
    last_heard: Option<Time>,
}

impl Delay {
    /// A part that has seen nothing, fits its line to so many groups, and begins with `start`.
    #[must_use]
    pub fn new(trend_window: u64, start: Rate, least: Rate) -> Self {
        Self {
            rate: Aimd::new(start, least),
            trend_window,
            groups: Groups::new(groups::Rules::LIBWEBRTC),
            trend: Trendline::new(trend_window),
            detector: Detector::new(detector::Rules::LIBWEBRTC),
            last_heard: None,
        }
    }

    /// The last verdict.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.detector.usage
    }

    /// Takes the packets of a report that have arrived, in order of arrival, with what is received and what a
    /// probe has found, if anything. There is at least one packet.
    pub fn report(
        &mut self,
        settings: &Settings,
        packets: &[PacketResult],
        acked: Option<Rate>,
        probe: Option<Rate>,
        now: Time,
        cx: &mut Context<'_>,
    ) -> Verdict {
        if self.last_heard.replace(now).is_some_and(|last| now.saturating_since(last) > TIMEOUT) {
            self.groups = Groups::new(groups::Rules::LIBWEBRTC);
            self.trend = Trendline::new(self.trend_window);
            self.detector = Detector::new(detector::Rules::LIBWEBRTC);
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
            // nothing is measured yet: half the rate, with each report, because the gate is asked for less than
            // half of it (InitialTimeToReduceFurther)
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
