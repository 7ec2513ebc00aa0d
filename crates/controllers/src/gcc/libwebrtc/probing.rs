//! Decides when to probe, and at which rates.
//!
//! `probe_controller.cc`. A call begins with probes at 3 and 6 times the start rate, and probes at twice the result while
//! results are good. Later probes come when the session's maximum or the sources' wanted rate rises, periodically in the
//! application-limited region, and when the path has recovered from a large drop.

use super::rounding::between;
use super::settings::Settings;
use tidegate_core::control::{Probe, Probes};
use tidegate_core::units::{Rate, Span, Time};

/// Time after which the result of a probe is no longer expected.
const MAX_WAITING_TIME_FOR_PROBING_RESULT: Span = Span::from_secs(1);
/// Highest rate of a probe where the session sets no maximum.
const DEFAULT_MAX_PROBING_BITRATE: Rate = Rate::from_mbps(5);
/// A drop of the estimate below this part of it counts as large.
const BITRATE_DROP_THRESHOLD: f64 = 0.66;
/// Time after a large drop in which a recovery is probed.
const BITRATE_DROP_TIMEOUT: Span = Span::from_secs(5);
/// Time after the end of the application-limited region in which a recovery is probed.
const ALR_ENDED_TIMEOUT: Span = Span::from_secs(3);
/// Rate of the probe after a large drop, as a part of the estimate before the drop.
const PROBE_FRACTION_AFTER_DROP: f64 = 0.85;
/// Time between two probes after drops.
const MIN_TIME_BETWEEN_ALR_PROBES: Span = Span::from_secs(5);
/// A recovery is probed only where the probe exceeds the estimate by this part.
const PROBE_UNCERTAINTY: f64 = 0.05;

/// Cause that limits the estimate, as far as it matters to a probe (`BandwidthLimitedCause`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BandwidthLimitedCause {
    /// The delay-based part, with constant delay (`kDelayBasedLimited`).
    #[default]
    Delay,
    /// Losses, while the estimate rises: probes up to a bound (`kLossLimitedBweIncreasing`).
    LossIncreasing,
    /// Losses, a changing delay, or a round trip above its limit: no probe.
    Congestion,
}

/// Phase of the probe controller (`State`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No probe yet (`kInit`).
    Init,
    /// A result above this rate leads to another probe (`kWaitingForProbingResult`).
    Waiting(Rate),
    /// No result is expected (`kProbingComplete`).
    Complete,
}

/// Probes that one event requests.
#[derive(Default)]
pub struct ProbeRequests {
    list: Vec<Probe>,
}

impl ProbeRequests {
    fn push(&mut self, probe: Probe) {
        // two for the start or an allocation, one for an estimate, one for a recovery: never more
        if self.list.len() < Probes::MAX {
            self.list.push(probe);
        }
    }

    /// Whether no probe is requested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Probes in the form of a decision.
    #[must_use]
    pub fn probes(&self) -> Probes {
        Probes::try_from(&self.list[..]).unwrap_or_default()
    }
}

/// Probe controller (`ProbeController`).
#[derive(Clone)]
pub struct Probing {
    phase: Phase,
    /// Time of the last request.
    last_request: Option<Time>,
    estimate: Rate,
    start: Rate,
    max_rate: Rate,
    /// Rate that the sources want; zero where it is unknown (`max_total_allocated_bitrate_`).
    wanted: Rate,
    cause: BandwidthLimitedCause,
    next_id: u32,
    alr_since: Option<Time>,
    alr_ended: Option<Time>,
    /// Time of the last large drop, and the estimate before it.
    drop: Option<(Time, Rate)>,
    last_drop_probe: Option<Time>,
}

impl Default for Probing {
    fn default() -> Self {
        Self {
            phase: Phase::Init,
            last_request: None,
            estimate: Rate::ZERO,
            start: Rate::ZERO,
            max_rate: DEFAULT_MAX_PROBING_BITRATE,
            wanted: Rate::ZERO,
            cause: BandwidthLimitedCause::Delay,
            next_id: 1,
            alr_since: None,
            alr_ended: None,
            drop: None,
            last_drop_probe: None,
        }
    }
}

impl Probing {
    /// Starts anew on another route (`Reset`); the numbers of probes and the wanted rate stay.
    pub fn reset(&mut self, now: Time) {
        *self = Self {
            next_id: self.next_id,
            wanted: self.wanted,
            alr_since: self.alr_since,
            last_drop_probe: Some(now),
            ..Self::default()
        };
    }

    /// Sets the session's bounds and, if given, its start rate (`SetBitrates`).
    pub fn set_limits(
        &mut self,
        settings: &Settings,
        min_rate: Rate,
        start: Option<Rate>,
        max_rate: Rate,
        now: Time,
        requests: &mut ProbeRequests,
    ) {
        if let Some(start) = start {
            (self.start, self.estimate) = (start, start);
        } else if self.start == Rate::ZERO {
            self.start = min_rate;
        }
        let max_rate = if max_rate == Rate::MAX { DEFAULT_MAX_PROBING_BITRATE } else { max_rate };
        let before = std::mem::replace(&mut self.max_rate, max_rate);
        match self.phase {
            Phase::Init => {
                let second = Some(settings.probe_second).filter(|&scale| scale > 0.0);
                let rates = [Some(settings.probe_first), second].map(|scale| Some(self.start.scaled(scale?)));
                self.initiate(settings, rates, true, now, requests);
            }
            Phase::Complete
                if self.estimate > Rate::ZERO && before < max_rate && self.estimate < max_rate =>
            {
                self.initiate(settings, [Some(max_rate), None], false, now, requests);
            }
            Phase::Waiting(_) | Phase::Complete => {}
        }
    }

    /// Sets the rate that the sources want; zero where it is unknown (`OnMaxTotalAllocatedBitrate`).
    pub fn set_wanted(&mut self, settings: &Settings, wanted: Rate, now: Time, requests: &mut ProbeRequests) {
        let rises = wanted != self.wanted && self.estimate < self.max_rate && self.estimate < wanted;
        self.wanted = wanted;
        if self.phase != Phase::Complete
            || !rises
            || self.alr_since.is_none()
            || settings.allocation_first == 0.0
        {
            return;
        }
        let limit = self.estimate.scaled(settings.allocation_limit);
        let first = wanted.scaled(settings.allocation_first).min(limit);
        let mut limited = limit < wanted.scaled(settings.allocation_first);
        let mut second = None;
        if !limited && settings.allocation_second > 0.0 {
            let rate = wanted.scaled(settings.allocation_second);
            limited = limit < rate;
            second = Some(rate.min(limit)).filter(|&rate| rate > first);
        }
        self.initiate(settings, [Some(first), second], limited, now, requests);
    }

    /// Sets the estimate and the cause that limits it (`SetEstimatedBitrate`).
    pub fn set_estimate(
        &mut self,
        settings: &Settings,
        estimate: Rate,
        cause: BandwidthLimitedCause,
        now: Time,
        requests: &mut ProbeRequests,
    ) {
        self.cause = cause;
        if estimate < self.estimate.scaled(BITRATE_DROP_THRESHOLD) {
            self.drop = Some((now, self.estimate));
        }
        self.estimate = estimate;
        if let Phase::Waiting(good) = self.phase
            && estimate > good
        {
            self.initiate(settings, [Some(estimate.scaled(settings.probe_step)), None], true, now, requests);
        }
    }

    /// Sets the start of the application-limited region, while it lasts (`SetAlrStartTimeMs`).
    pub fn set_alr(&mut self, since: Option<Time>) {
        self.alr_since = since;
    }

    /// Records the end of the application-limited region (`SetAlrEndedTimeMs`).
    pub fn alr_ended(&mut self, now: Time) {
        self.alr_ended = Some(now);
    }

    /// Probes after a recovery from over-use, where a large drop preceded it (`RequestProbe`).
    pub fn recovered(&mut self, settings: &Settings, now: Time, requests: &mut ProbeRequests) {
        let within = |time: Option<Time>, span| time.is_some_and(|time| between(time, now) < span);
        if self.phase != Phase::Complete
            || !(self.alr_since.is_some() || within(self.alr_ended, ALR_ENDED_TIMEOUT))
        {
            return;
        }
        let Some((dropped, before)) = self.drop else { return };
        let suggested = before.scaled(PROBE_FRACTION_AFTER_DROP);
        let long_ago =
            self.last_drop_probe.is_none_or(|last| between(last, now) > MIN_TIME_BETWEEN_ALR_PROBES);
        if suggested.scaled(1.0 - PROBE_UNCERTAINTY) > self.estimate
            && between(dropped, now) < BITRATE_DROP_TIMEOUT
            && long_ago
        {
            self.last_drop_probe = Some(now);
            self.initiate(settings, [Some(suggested), None], false, now, requests);
        }
    }

    /// Ends the wait for a result and probes in the application-limited region, every 25 ms (`Process`).
    pub fn process(&mut self, settings: &Settings, now: Time, requests: &mut ProbeRequests) {
        if matches!(self.phase, Phase::Waiting(_))
            && self.last_request.is_none_or(|last| between(last, now) > MAX_WAITING_TIME_FOR_PROBING_RESULT)
        {
            self.phase = Phase::Complete;
        }
        if self.estimate == Rate::ZERO || self.phase != Phase::Complete || !settings.alr_probing {
            return;
        }
        let Some(since) = self.alr_since else { return };
        let since = self.last_request.map_or(since, |last| last.max(since));
        if between(since, now) >= Span::from_millis_f64(settings.alr_interval) {
            self.initiate(
                settings,
                [Some(self.estimate.scaled(settings.alr_scale)), None],
                true,
                now,
                requests,
            );
        }
    }

    /// Requests probes at `rates`; with `probe_further`, a good result leads to another (`InitiateProbing`).
    fn initiate(
        &mut self,
        settings: &Settings,
        rates: [Option<Rate>; 2],
        mut probe_further: bool,
        now: Time,
        requests: &mut ProbeRequests,
    ) {
        let mut max_rate = self.max_rate;
        if self.wanted > Rate::ZERO {
            // twice the wanted rate: sources have bursts, and a result is a little lower than its probe
            max_rate = max_rate.min(self.wanted.scaled(2.0));
        }
        match self.cause {
            BandwidthLimitedCause::Congestion => return,
            BandwidthLimitedCause::LossIncreasing => {
                max_rate = max_rate.min(self.estimate.scaled(settings.loss_limited_scale))
            }
            BandwidthLimitedCause::Delay => {}
        }
        let mut last = Rate::ZERO;
        for rate in rates.into_iter().flatten() {
            if rate >= max_rate {
                probe_further = false;
            }
            last = rate.min(max_rate);
            if last == Rate::ZERO {
                continue;
            }
            requests.push(Probe {
                id: self.next_id,
                rate: last,
                length: Span::from_millis_f64(settings.probe_duration),
                min_packets: settings.probe_packets as u32,
                spacing: Span::from_millis_f64(settings.probe_spacing),
            });
            self.next_id += 1;
        }
        self.last_request = Some(now);
        self.phase =
            if probe_further { Phase::Waiting(last.scaled(settings.probe_further)) } else { Phase::Complete };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RATE: Rate = Rate::from_kbps(30);
    const NONE: [u64; 0] = [];

    fn millis(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// Rates of the probes that an event requests, kbit/s.
    fn probes(event: impl FnOnce(&Settings, &mut ProbeRequests)) -> Vec<u64> {
        probes_with(&Settings::default(), event)
    }

    fn probes_with(settings: &Settings, event: impl FnOnce(&Settings, &mut ProbeRequests)) -> Vec<u64> {
        let mut requests = ProbeRequests::default();
        event(settings, &mut requests);
        requests.probes().iter().map(|probe| probe.rate.as_bps() / 1000).collect()
    }

    fn started(max_rate: Rate) -> Probing {
        let mut probing = Probing::default();
        let start = Some(Rate::from_kbps(300));
        let first =
            probes(|s, requests| probing.set_limits(s, MIN_RATE, start, max_rate, millis(0), requests));
        assert_eq!(first, [900, 1800]);
        probing
    }

    /// Probe controller with a result of 1 Mbit/s whose wait for further results is over.
    fn complete(max_rate: Rate) -> Probing {
        let mut probing = started(max_rate);
        assert_eq!(
            probes(|s, requests| probing.set_estimate(
                s,
                Rate::from_mbps(1),
                BandwidthLimitedCause::Delay,
                millis(100),
                requests
            )),
            NONE
        );
        assert_eq!(probes(|s, requests| probing.process(s, millis(1001), requests)), NONE);
        assert_eq!(probing.phase, Phase::Complete);
        probing
    }

    #[test]
    fn a_good_result_is_doubled_and_a_bad_or_late_one_is_not() {
        let estimate = |probing: &mut Probing, kbps, ms| {
            probes(|s, requests| {
                probing.set_estimate(
                    s,
                    Rate::from_kbps(kbps),
                    BandwidthLimitedCause::Delay,
                    millis(ms),
                    requests,
                )
            })
        };
        let mut probing = started(Rate::from_mbps(10));
        // 0.7 of 1.8 Mbit/s is not enough, more is
        assert_eq!(estimate(&mut probing, 1260, 100), NONE);
        assert_eq!(estimate(&mut probing, 1261, 150), [2522]);
        assert_eq!(estimate(&mut probing, 1765, 200), NONE);
        assert_eq!(estimate(&mut probing, 1766, 250), [3532]);
        // no result within a second ends it, exactly a second does not
        assert_eq!(probes(|s, requests| probing.process(s, millis(1250), requests)), NONE);
        let mut late = probing.clone();
        assert_eq!(estimate(&mut probing, 3000, 1250), [6000]);
        assert_eq!(probes(|s, requests| late.process(s, millis(1251), requests)), NONE);
        assert_eq!(estimate(&mut late, 3000, 1251), NONE);
    }

    #[test]
    fn no_probe_is_above_the_maximum_nor_twice_what_is_wanted_and_none_follows_that_one() {
        let mut probing = started(Rate::from_mbps(2));
        let estimate = |probing: &mut Probing, kbps| {
            probes(|s, requests| {
                probing.set_estimate(
                    s,
                    Rate::from_kbps(kbps),
                    BandwidthLimitedCause::Delay,
                    millis(100),
                    requests,
                )
            })
        };
        assert_eq!(estimate(&mut probing, 1500), [2000]);
        assert_eq!(estimate(&mut probing, 2000), NONE);
        let mut probing = started(Rate::from_mbps(10));
        probes(|s, requests| probing.set_wanted(s, Rate::from_mbps(1), millis(0), requests));
        assert_eq!(estimate(&mut probing, 1500), [2000]);
        // where there is no maximum, 5 Mbit/s are
        let mut probing = started(Rate::MAX);
        assert_eq!(estimate(&mut probing, 4000), [5000]);
    }

    #[test]
    fn a_limited_application_is_probed_for_every_five_seconds_if_it_was_asked_for() {
        let mut probing = complete(Rate::from_mbps(10));
        let mut process = |since, ms| {
            probing.set_alr(since);
            probes(|s, requests| probing.process(s, millis(ms), requests))
        };
        assert_eq!(process(None, 9000), NONE);
        assert_eq!(process(Some(millis(6000)), 10_999), NONE);
        assert_eq!(process(Some(millis(6000)), 11_000), [2000]);
        assert_eq!(process(Some(millis(6000)), 12_001), NONE, "no result");
        assert_eq!(process(Some(millis(6000)), 15_999), NONE);
        assert_eq!(process(Some(millis(6000)), 16_000), [2000]);
        let off = Settings { alr_probing: false, ..Settings::default() };
        assert_eq!(probes_with(&off, |s, requests| probing.process(s, millis(60_000), requests)), NONE);
    }

    #[test]
    fn what_limits_the_estimate_limits_probes() {
        for (cause, expected) in [
            (BandwidthLimitedCause::Delay, vec![2000]),
            (BandwidthLimitedCause::LossIncreasing, vec![1500]),
            (BandwidthLimitedCause::Congestion, vec![]),
        ] {
            let mut probing = complete(Rate::from_mbps(10));
            probes(|s, requests| probing.set_estimate(s, Rate::from_mbps(1), cause, millis(2000), requests));
            probing.set_alr(Some(millis(0)));
            assert_eq!(
                probes(|s, requests| probing.process(s, millis(6000), requests)),
                expected,
                "{cause:?}"
            );
        }
    }

    #[test]
    fn after_a_large_drop_what_was_there_is_probed_once_the_path_has_recovered() {
        let dropped = |to, limited| {
            let mut probing = complete(Rate::from_mbps(10));
            probing.set_alr(limited);
            probes(|s, requests| {
                probing.set_estimate(
                    s,
                    Rate::from_kbps(to),
                    BandwidthLimitedCause::Delay,
                    millis(10_000),
                    requests,
                )
            });
            probing
        };
        let recover =
            |mut probing: Probing, ms| probes(|s, requests| probing.recovered(s, millis(ms), requests));
        let limited = Some(millis(9000));
        assert_eq!(recover(dropped(659, limited), 14_999), [850]);
        assert_eq!(recover(dropped(660, limited), 14_999), NONE, "no large drop");
        assert_eq!(recover(dropped(659, limited), 15_000), NONE, "too long ago");
        assert_eq!(recover(dropped(659, None), 14_000), NONE, "not limited");
        let mut ended = dropped(659, None);
        ended.alr_ended(millis(11_000));
        assert_eq!(recover(ended.clone(), 13_999), [850]);
        assert_eq!(recover(ended, 14_000), NONE, "limited, but three seconds ago");
        // once in five seconds
        let mut again = dropped(659, limited);
        assert_eq!(probes(|s, requests| again.recovered(s, millis(11_000), requests)), [850]);
        assert_eq!(probes(|s, requests| again.recovered(s, millis(12_000), requests)), NONE);
        // up to 5 % less is not worth it: 0.95 of 850 are 807.5
        let mut regained = dropped(659, limited);
        probes(|s, requests| {
            regained.set_estimate(
                s,
                Rate::from_kbps(808),
                BandwidthLimitedCause::Delay,
                millis(11_000),
                requests,
            )
        });
        assert_eq!(recover(regained, 11_000), NONE);
    }

    #[test]
    fn a_higher_maximum_is_probed_for_and_what_is_wanted_where_the_application_was_the_limit() {
        let mut probing = complete(Rate::from_mbps(2));
        let raise_max = |probing: &mut Probing, mbps| {
            probes(|s, requests| {
                probing.set_limits(s, MIN_RATE, None, Rate::from_mbps(mbps), millis(2000), requests)
            })
        };
        assert_eq!(raise_max(&mut probing, 3), [3000]);
        assert_eq!(raise_max(&mut probing, 3), NONE);
        assert_eq!(raise_max(&mut probing, 2), NONE);
        let wants = |limited, kbps| {
            let mut probing = complete(Rate::from_mbps(10));
            probing.set_alr(limited);
            probes(|s, requests| probing.set_wanted(s, Rate::from_kbps(kbps), millis(2000), requests))
        };
        assert_eq!(wants(None, 1500), NONE);
        assert_eq!(wants(Some(millis(0)), 900), NONE, "less than the estimate");
        assert_eq!(
            wants(Some(millis(0)), 1500),
            [1500, 2000],
            "and twice that, but not over twice the estimate"
        );
        assert_eq!(wants(Some(millis(0)), 3000), [2000]);
    }

    #[test]
    fn a_new_route_begins_anew_with_numbers_that_go_on() {
        let mut probing = complete(Rate::from_mbps(10));
        probing.reset(millis(5000));
        let mut requests = ProbeRequests::default();
        let start = Some(Rate::from_kbps(500));
        probing.set_limits(
            &Settings::default(),
            MIN_RATE,
            start,
            Rate::from_mbps(10),
            millis(5000),
            &mut requests,
        );
        let numbers_and_rates: Vec<_> =
            requests.probes().iter().map(|probe| (probe.id, probe.rate.as_bps() / 1000)).collect();
        assert_eq!(numbers_and_rates, [(3, 1500), (4, 3000)]);
    }
}
