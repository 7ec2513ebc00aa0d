//! When to probe, and at which rate.
//!
//! `probe_controller.cc`. A call begins with probes at 3 and 6 times the start rate, and doubles while a result is
//! good. Later on there are probes when the session's maximum or what its sources want rises, in the
//! application-limited region, and at what a large drop has taken once the path has recovered.

use super::rounding::between;
use super::settings::Settings;
use tidegate_core::control::{Probe, Probes};
use tidegate_core::units::{Rate, Span, Time};

/// A result that has not come after this does not come (`kMaxWaitingTimeForProbingResult`).
const WAIT: Span = Span::from_secs(1);
/// No probe is above this where the session has no maximum (`kDefaultMaxProbingBitrate`).
const MOST: Rate = Rate::from_mbps(5);
/// A drop to this part is a large one (`kBitrateDropThreshold`); within 5 s of it (`kBitrateDropTimeout`), and 3 s of
/// the application-limited region's end (`kAlrEndedTimeout`), 85 % of what was there before are probed
/// (`kProbeFractionAfterDrop`), once in 5 s (`kMinTimeBetweenAlrProbes`) and if that is more by 5 %
/// (`kProbeUncertainty`).
const DROP: f64 = 0.66;
const DROP_TIMEOUT: Span = Span::from_secs(5);
const ALR_ENDED_TIMEOUT: Span = Span::from_secs(3);
const AFTER_DROP: f64 = 0.85;
const DROP_PROBE_GAP: Span = Span::from_secs(5);
const UNCERTAINTY: f64 = 0.05;

/// What limits the estimate (`BandwidthLimitedCause`), as far as it matters to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Limit {
    /// The delay-based part, and the delay stands still.
    #[default]
    Delay,
    /// Losses, and the estimate rises: probes up to a bound.
    LossIncreasing,
    /// Losses, a delay that moves, or a round trip beyond all measure: no probe.
    Congestion,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No probe yet.
    Begin,
    /// A result above this leads to another probe.
    Waiting(Rate),
    Complete,
}

/// The probes that one event leads to.
#[derive(Default)]
pub struct Asked {
    list: Vec<Probe>,
}

impl Asked {
    fn push(&mut self, probe: Probe) {
        // two for the start or an allocation, one for an estimate, one for a recovery: there are never more
        if self.list.len() < Probes::MOST {
            self.list.push(probe);
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// As a decision has them.
    #[must_use]
    pub fn probes(&self) -> Probes {
        Probes::try_from(&self.list[..]).unwrap_or_default()
    }
}

/// The probe controller's state.
#[derive(Clone)]
pub struct Probing {
    phase: Phase,
    /// When the last probe was asked for.
    last: Option<Time>,
    estimate: Rate,
    start: Rate,
    most: Rate,
    /// What the sources want; zero where that is not known.
    wanted: Rate,
    limit: Limit,
    next_id: u32,
    alr_since: Option<Time>,
    alr_ended: Option<Time>,
    /// The last large drop: when, and from where.
    drop: Option<(Time, Rate)>,
    last_drop_probe: Option<Time>,
}

impl Default for Probing {
    fn default() -> Self {
        Self {
            phase: Phase::Begin,
            last: None,
            estimate: Rate::ZERO,
            start: Rate::ZERO,
            most: MOST,
            wanted: Rate::ZERO,
            limit: Limit::Delay,
            next_id: 1,
            alr_since: None,
            alr_ended: None,
            drop: None,
            last_drop_probe: None,
        }
    }
}

impl Probing {
    /// A new route: everything begins anew, but for the numbers of probes and what the sources want.
    pub fn reset(&mut self, now: Time) {
        *self = Self {
            next_id: self.next_id,
            wanted: self.wanted,
            alr_since: self.alr_since,
            last_drop_probe: Some(now),
            ..Self::default()
        };
    }

    /// New bounds of the session, and a new start rate if there is one.
    pub fn set_limits(
        &mut self,
        settings: &Settings,
        least: Rate,
        start: Option<Rate>,
        most: Rate,
        now: Time,
        asked: &mut Asked,
    ) {
        if let Some(start) = start {
            (self.start, self.estimate) = (start, start);
        } else if self.start == Rate::ZERO {
            self.start = least;
        }
        let most = if most == Rate::MAX { MOST } else { most };
        let before = std::mem::replace(&mut self.most, most);
        match self.phase {
            Phase::Begin => {
                let second = Some(settings.probe_second).filter(|&scale| scale > 0.0);
                let rates = [Some(settings.probe_first), second].map(|scale| Some(self.start.scaled(scale?)));
                self.initiate(settings, rates, true, now, asked);
            }
            Phase::Complete if self.estimate > Rate::ZERO && before < most && self.estimate < most => {
                self.initiate(settings, [Some(most), None], false, now, asked);
            }
            Phase::Waiting(_) | Phase::Complete => {}
        }
    }

    /// What the sources want has changed; zero where that is not known.
    pub fn set_wanted(&mut self, settings: &Settings, wanted: Rate, now: Time, asked: &mut Asked) {
        let more = wanted != self.wanted && self.estimate < self.most && self.estimate < wanted;
        self.wanted = wanted;
        if self.phase != Phase::Complete
            || !more
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
        self.initiate(settings, [Some(first), second], limited, now, asked);
    }

    /// A new estimate, and what limits it.
    pub fn set_estimate(
        &mut self,
        settings: &Settings,
        estimate: Rate,
        limit: Limit,
        now: Time,
        asked: &mut Asked,
    ) {
        self.limit = limit;
        if estimate < self.estimate.scaled(DROP) {
            self.drop = Some((now, self.estimate));
        }
        self.estimate = estimate;
        if let Phase::Waiting(good) = self.phase
            && estimate > good
        {
            self.initiate(settings, [Some(estimate.scaled(settings.probe_step)), None], true, now, asked);
        }
    }

    /// Since when the application is the limit, if it is.
    pub fn set_alr(&mut self, since: Option<Time>) {
        self.alr_since = since;
    }

    /// The application is the limit no longer.
    pub fn alr_ended(&mut self, now: Time) {
        self.alr_ended = Some(now);
    }

    /// The delay has recovered from a drain.
    pub fn recovered(&mut self, settings: &Settings, now: Time, asked: &mut Asked) {
        let within = |at: Option<Time>, span| at.is_some_and(|at| between(at, now) < span);
        if self.phase != Phase::Complete
            || !(self.alr_since.is_some() || within(self.alr_ended, ALR_ENDED_TIMEOUT))
        {
            return;
        }
        let Some((dropped, before)) = self.drop else { return };
        let suggested = before.scaled(AFTER_DROP);
        let long_ago = self.last_drop_probe.is_none_or(|last| between(last, now) > DROP_PROBE_GAP);
        if suggested.scaled(1.0 - UNCERTAINTY) > self.estimate
            && between(dropped, now) < DROP_TIMEOUT
            && long_ago
        {
            self.last_drop_probe = Some(now);
            self.initiate(settings, [Some(suggested), None], false, now, asked);
        }
    }

    /// Time passes (every 25 ms).
    pub fn process(&mut self, settings: &Settings, now: Time, asked: &mut Asked) {
        if matches!(self.phase, Phase::Waiting(_)) && self.last.is_none_or(|last| between(last, now) > WAIT) {
            self.phase = Phase::Complete;
        }
        if self.estimate == Rate::ZERO || self.phase != Phase::Complete || !settings.alr_probing {
            return;
        }
        let Some(since) = self.alr_since else { return };
        let since = self.last.map_or(since, |last| last.max(since));
        if between(since, now) >= Span::from_millis_f64(settings.alr_interval) {
            self.initiate(settings, [Some(self.estimate.scaled(settings.alr_scale)), None], true, now, asked);
        }
    }

    /// Asks for probes at these rates, `further` ones to follow on a good result.
    fn initiate(
        &mut self,
        settings: &Settings,
        rates: [Option<Rate>; 2],
        mut further: bool,
        now: Time,
        asked: &mut Asked,
    ) {
        let mut most = self.most;
        if self.wanted > Rate::ZERO {
            // twice what is wanted: sources have bursts, and a result is a little less than its probe
            most = most.min(self.wanted.scaled(2.0));
        }
        match self.limit {
            Limit::Congestion => return,
            Limit::LossIncreasing => most = most.min(self.estimate.scaled(settings.loss_limited_scale)),
            Limit::Delay => {}
        }
        let mut last = Rate::ZERO;
        for rate in rates.into_iter().flatten() {
            if rate >= most {
                further = false;
            }
            last = rate.min(most);
            if last == Rate::ZERO {
                continue;
            }
            asked.push(Probe {
                id: self.next_id,
                rate: last,
                length: Span::from_millis_f64(settings.probe_duration),
                min_packets: settings.probe_packets as u32,
                spacing: Span::from_millis_f64(settings.probe_spacing),
            });
            self.next_id += 1;
        }
        self.last = Some(now);
        self.phase =
            if further { Phase::Waiting(last.scaled(settings.probe_further)) } else { Phase::Complete };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Rate = Rate::from_kbps(30);
    const NONE: [u64; 0] = [];

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// The rates, kbit/s, of the probes that an event leads to.
    fn probes(event: impl FnOnce(&Settings, &mut Asked)) -> Vec<u64> {
        probes_with(&Settings::default(), event)
    }

    fn probes_with(settings: &Settings, event: impl FnOnce(&Settings, &mut Asked)) -> Vec<u64> {
        let mut asked = Asked::default();
        event(settings, &mut asked);
        asked.probes().iter().map(|probe| probe.rate.as_bps() / 1000).collect()
    }

    fn begun(most: Rate) -> Probing {
        let mut probing = Probing::default();
        let start = Some(Rate::from_kbps(300));
        let first = probes(|s, asked| probing.set_limits(s, LEAST, start, most, at(0), asked));
        assert_eq!(first, [900, 1800]);
        probing
    }

    /// One that has begun and has found 1 Mbit/s, a second and more ago.
    fn complete(most: Rate) -> Probing {
        let mut probing = begun(most);
        assert_eq!(
            probes(|s, asked| probing.set_estimate(s, Rate::from_mbps(1), Limit::Delay, at(100), asked)),
            NONE
        );
        assert_eq!(probes(|s, asked| probing.process(s, at(1001), asked)), NONE);
        assert_eq!(probing.phase, Phase::Complete);
        probing
    }

    #[test]
    fn a_good_result_is_doubled_and_a_bad_or_late_one_is_not() {
        let estimate = |probing: &mut Probing, kbps, ms| {
            probes(|s, asked| probing.set_estimate(s, Rate::from_kbps(kbps), Limit::Delay, at(ms), asked))
        };
        let mut probing = begun(Rate::from_mbps(10));
        // 0.7 of 1.8 Mbit/s is not enough, more is
        assert_eq!(estimate(&mut probing, 1260, 100), NONE);
        assert_eq!(estimate(&mut probing, 1261, 150), [2522]);
        assert_eq!(estimate(&mut probing, 1765, 200), NONE);
        assert_eq!(estimate(&mut probing, 1766, 250), [3532]);
        // no result within a second ends it, exactly a second does not
        assert_eq!(probes(|s, asked| probing.process(s, at(1250), asked)), NONE);
        let mut late = probing.clone();
        assert_eq!(estimate(&mut probing, 3000, 1250), [6000]);
        assert_eq!(probes(|s, asked| late.process(s, at(1251), asked)), NONE);
        assert_eq!(estimate(&mut late, 3000, 1251), NONE);
    }

    #[test]
    fn no_probe_is_above_the_maximum_nor_twice_what_is_wanted_and_none_follows_that_one() {
        let mut probing = begun(Rate::from_mbps(2));
        let estimate = |probing: &mut Probing, kbps| {
            probes(|s, asked| probing.set_estimate(s, Rate::from_kbps(kbps), Limit::Delay, at(100), asked))
        };
        assert_eq!(estimate(&mut probing, 1500), [2000]);
        assert_eq!(estimate(&mut probing, 2000), NONE);
        let mut probing = begun(Rate::from_mbps(10));
        probes(|s, asked| probing.set_wanted(s, Rate::from_mbps(1), at(0), asked));
        assert_eq!(estimate(&mut probing, 1500), [2000]);
        // where there is no maximum, 5 Mbit/s are
        let mut probing = begun(Rate::MAX);
        assert_eq!(estimate(&mut probing, 4000), [5000]);
    }

    #[test]
    fn a_limited_application_is_probed_for_every_five_seconds_if_it_was_asked_for() {
        let mut probing = complete(Rate::from_mbps(10));
        let mut process = |since, ms| {
            probing.set_alr(since);
            probes(|s, asked| probing.process(s, at(ms), asked))
        };
        assert_eq!(process(None, 9000), NONE);
        assert_eq!(process(Some(at(6000)), 10_999), NONE);
        assert_eq!(process(Some(at(6000)), 11_000), [2000]);
        assert_eq!(process(Some(at(6000)), 12_001), NONE, "no result");
        assert_eq!(process(Some(at(6000)), 15_999), NONE);
        assert_eq!(process(Some(at(6000)), 16_000), [2000]);
        let off = Settings { alr_probing: false, ..Settings::default() };
        assert_eq!(probes_with(&off, |s, asked| probing.process(s, at(60_000), asked)), NONE);
    }

    #[test]
    fn what_limits_the_estimate_limits_probes() {
        for (limit, expected) in
            [(Limit::Delay, vec![2000]), (Limit::LossIncreasing, vec![1500]), (Limit::Congestion, vec![])]
        {
            let mut probing = complete(Rate::from_mbps(10));
            probes(|s, asked| probing.set_estimate(s, Rate::from_mbps(1), limit, at(2000), asked));
            probing.set_alr(Some(at(0)));
            assert_eq!(probes(|s, asked| probing.process(s, at(6000), asked)), expected, "{limit:?}");
        }
    }

    #[test]
    fn after_a_large_drop_what_was_there_is_probed_once_the_path_has_recovered() {
        let dropped = |to, limited| {
            let mut probing = complete(Rate::from_mbps(10));
            probing.set_alr(limited);
            probes(|s, asked| probing.set_estimate(s, Rate::from_kbps(to), Limit::Delay, at(10_000), asked));
            probing
        };
        let recover = |mut probing: Probing, ms| probes(|s, asked| probing.recovered(s, at(ms), asked));
        let limited = Some(at(9000));
        assert_eq!(recover(dropped(659, limited), 14_999), [850]);
        assert_eq!(recover(dropped(660, limited), 14_999), NONE, "no large drop");
        assert_eq!(recover(dropped(659, limited), 15_000), NONE, "too long ago");
        assert_eq!(recover(dropped(659, None), 14_000), NONE, "not limited");
        let mut ended = dropped(659, None);
        ended.alr_ended(at(11_000));
        assert_eq!(recover(ended.clone(), 13_999), [850]);
        assert_eq!(recover(ended, 14_000), NONE, "limited, but three seconds ago");
        // once in five seconds
        let mut again = dropped(659, limited);
        assert_eq!(probes(|s, asked| again.recovered(s, at(11_000), asked)), [850]);
        assert_eq!(probes(|s, asked| again.recovered(s, at(12_000), asked)), NONE);
        // up to 5 % less is not worth it: 0.95 of 850 are 807.5
        let mut regained = dropped(659, limited);
        probes(|s, asked| regained.set_estimate(s, Rate::from_kbps(808), Limit::Delay, at(11_000), asked));
        assert_eq!(recover(regained, 11_000), NONE);
    }

    #[test]
    fn a_higher_maximum_is_probed_for_and_what_is_wanted_where_the_application_was_the_limit() {
        let mut probing = complete(Rate::from_mbps(2));
        let more = |probing: &mut Probing, most| {
            probes(|s, asked| probing.set_limits(s, LEAST, None, Rate::from_mbps(most), at(2000), asked))
        };
        assert_eq!(more(&mut probing, 3), [3000]);
        assert_eq!(more(&mut probing, 3), NONE);
        assert_eq!(more(&mut probing, 2), NONE);
        let wants = |limited, kbps| {
            let mut probing = complete(Rate::from_mbps(10));
            probing.set_alr(limited);
            probes(|s, asked| probing.set_wanted(s, Rate::from_kbps(kbps), at(2000), asked))
        };
        assert_eq!(wants(None, 1500), NONE);
        assert_eq!(wants(Some(at(0)), 900), NONE, "less than the estimate");
        assert_eq!(wants(Some(at(0)), 1500), [1500, 2000], "and twice that, but not over twice the estimate");
        assert_eq!(wants(Some(at(0)), 3000), [2000]);
    }

    #[test]
    fn a_new_route_begins_anew_with_numbers_that_go_on() {
        let mut probing = complete(Rate::from_mbps(10));
        probing.reset(at(5000));
        let mut asked = Asked::default();
        let start = Some(Rate::from_kbps(500));
        probing.set_limits(&Settings::default(), LEAST, start, Rate::from_mbps(10), at(5000), &mut asked);
        let found: Vec<_> =
            asked.probes().iter().map(|probe| (probe.id, probe.rate.as_bps() / 1000)).collect();
        assert_eq!(found, [(3, 1500), (4, 3000)]);
    }
}
