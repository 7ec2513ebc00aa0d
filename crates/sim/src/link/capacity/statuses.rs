//! A capacity that is one of several statuses, drawn anew at the end of each interval.
//!
//! The network of Hoang's thesis (2017), section 3.4.2: "It has some statuses ... Each status occurs with
//! different probability ... Network updates its status each an interval time." The losses of packets that it
//! causes are in [`crate::link::overload`].

use crate::refusal::{Refusal, ensure, ensure_probability};
use serde::Deserialize;
use std::sync::Arc;
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Stream, Time};

/// One status of a link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Its name for people.
    pub name: String,
    /// The link's capacity in this status.
    pub capacity: Rate,
    /// The probability that it is drawn.
    pub probability: f64,
}

/// The settings of a link with statuses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statuses {
    /// Duration of a status; the first one is drawn at time 0.
    pub interval: Span,
    /// Window over which the offered rate is measured; zero: since the last earlier instant at which a packet came.
    #[serde(default)]
    pub rate_window: Span,
    /// The statuses.
    pub statuses: Vec<Status>,
}

/// Largest deviation of the probabilities' sum from 1: the rounding of decimal fractions.
const ROUNDING: f64 = 1e-9;

impl Statuses {
    /// Checks that each setting is in its range.
    ///
    /// # Errors
    /// With the setting and its range. The bounds keep the work for a second of simulated time, and the
    /// number of packets that a window holds, within reason.
    pub fn check(&self) -> Result<(), Refusal> {
        ensure(self.interval >= Span::from_micros(100), || {
            Refusal::new("capacity.interval", self.interval, "at least 0.1 ms")
        })?;
        ensure((Span::ZERO..=Span::from_secs(60)).contains(&self.rate_window), || {
            Refusal::new("capacity.rate_window", self.rate_window, "0 to 60 s")
        })?;
        ensure(!self.statuses.is_empty(), || {
            Refusal::new("capacity.statuses", "none", "at least one status")
        })?;
        for (index, status) in self.statuses.iter().enumerate() {
            ensure_probability(&format!("capacity.statuses.{index}.probability"), status.probability)?;
            let duplicate = self.statuses[..index].iter().any(|earlier| earlier.name == status.name);
            ensure(!duplicate, || {
                Refusal::new(
                    format!("capacity.statuses.{index}.name"),
                    &status.name,
                    "a name that no other status has",
                )
            })?;
        }
        let sum: f64 = self.statuses.iter().map(|status| status.probability).sum();
        ensure((sum - 1.0).abs() <= ROUNDING, || {
            Refusal::new(
                "capacity.statuses",
                format!("probabilities that sum to {sum}"),
                "probabilities with a sum of 1",
            )
        })
    }

    /// The mean capacity in the long run.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let mean = self.statuses.iter().map(|status| status.probability * status.capacity.as_bps_f64()).sum();
        Rate::from_bps_f64(mean)
    }

    /// The capacity for a draw `u`, uniform in [0, 1). If rounding leaves a gap below 1, it belongs to the
    /// last status that can occur.
    fn capacity_at(&self, u: f64) -> Rate {
        let mut below = 0.0;
        let mut capacity = Rate::ZERO;
        for status in self.statuses.iter().filter(|status| status.probability > 0.0) {
            below += status.probability;
            capacity = status.capacity;
            if u < below {
                break;
            }
        }
        capacity
    }
}

/// The sequence of statuses. It draws one number an interval, independent of the traffic, so that the same
/// seed gives every sender the same network.
#[derive(Clone, Debug)]
pub(crate) struct StatusProcess {
    settings: Arc<Statuses>,
    luck: Stream,
    capacity: Rate,
    /// The end of the present status.
    until: Time,
}

impl StatusProcess {
    /// The process with checked `settings`, drawing from `luck`.
    pub(crate) fn new(settings: Statuses, luck: Stream) -> Self {
        Self { settings: Arc::new(settings), luck, capacity: Rate::ZERO, until: Time::ZERO }
    }

    pub(crate) fn settings(&self) -> &Statuses {
        &self.settings
    }

    /// The capacity at `now`, which must not be earlier than at the last call.
    pub(crate) fn at(&mut self, now: Time) -> Rate {
        while self.until <= now {
            self.capacity = self.settings.capacity_at(self.luck.uniform());
            self.until += self.settings.interval;
        }
        self.capacity
    }

    /// The exact mean over `[begin, end)`, in whole bit/s; to be called in order of time.
    pub(crate) fn mean_rate(&mut self, begin: Time, end: Time) -> Rate {
        let (mut work, mut time) = (0, begin);
        while time < end {
            let rate = u128::from(self.at(time).as_bps());
            let next = self.until.min(end);
            work += rate * (next - time).as_nanos() as u128;
            time = next;
        }
        let mean = work / (end - begin).as_nanos().max(1) as u128;
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    pub(crate) fn draws(&self) -> Draws {
        self.luck.draws()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables 7 and 8 of the thesis; 25 % for two kinds of cross traffic together are taken as half each.
    fn thesis() -> Statuses {
        let status = |name: &str, bps, probability| Status {
            name: name.to_owned(),
            capacity: Rate::from_bps(bps),
            probability,
        };
        Statuses {
            interval: Span::from_secs(2),
            rate_window: Span::ZERO,
            statuses: vec![
                status("idle", 5_760_000, 0.7),
                status("cross-traffic-1", 4_320_000, 0.125),
                status("cross-traffic-2", 2_880_000, 0.125),
                status("saturated", 0, 0.05),
            ],
        }
    }

    #[test]
    fn statuses_have_their_shares_and_last_an_interval() {
        let settings = thesis();
        settings.check().unwrap();
        let mut process = StatusProcess::new(settings.clone(), Stream::new(1, "network", "status"));
        let n = 100_000;
        let mut counts = vec![0; settings.statuses.len()];
        for k in 0..n {
            let (begin, end) = (Time::from_secs(2 * k), Time::from_secs(2 * k + 2));
            let rate = process.at(begin);
            assert_eq!(process.at(end - Span::from_nanos(1)), rate, "it stays for the whole interval");
            let index = settings.statuses.iter().position(|status| status.capacity == rate).unwrap();
            counts[index] += 1;
        }
        assert_eq!(process.draws().count, n as u64, "one number an interval");
        for (status, count) in settings.statuses.iter().zip(counts) {
            let p = status.probability;
            let error = tidegate_core::math::sqrt(p * (1.0 - p) / n as f64);
            let share = f64::from(count) / n as f64;
            assert!((share - p).abs() < 4.0 * error, "{}: {share} for {p}", status.name);
        }
        // 0.7 * 5.76 + 0.125 * (4.32 + 2.88)
        assert_eq!(settings.mean_rate(), Rate::from_bps(4_932_000));
    }

    #[test]
    fn means_are_exact_whatever_the_bins() {
        let mut process = StatusProcess::new(thesis(), Stream::new(2, "network", "status"));
        let mut parts = process.clone();
        let rates: Vec<u64> = (0..50).map(|k| process.at(Time::from_secs(2 * k)).as_bps()).collect();
        // bins of 3 s: one whole interval and half of another, in turn
        for k in 0..33 {
            let (begin, end) = (Time::from_secs(3 * k), Time::from_secs(3 * k + 3));
            let expected: u64 = (3 * k..3 * k + 3).map(|second| rates[second as usize / 2]).sum();
            assert_eq!(parts.mean_rate(begin, end), Rate::from_bps(expected / 3));
        }
        assert_eq!(parts.mean_rate(Time::from_secs(99), Time::from_secs(99)), Rate::ZERO, "of nothing");
    }

    #[test]
    fn an_impossible_status_never_occurs_and_the_others_leave_no_gap() {
        let mut settings = thesis();
        settings.statuses[3].probability = 0.0;
        settings.statuses[0].probability = 0.75;
        settings.check().unwrap();
        assert_eq!(settings.capacity_at(0.0), Rate::from_bps(5_760_000));
        assert_eq!(settings.capacity_at(0.75), Rate::from_bps(4_320_000));
        assert_eq!(settings.capacity_at(1.0 - f64::EPSILON / 2.0), Rate::from_bps(2_880_000));
        // a sum that rounding leaves below 1
        settings.statuses[2].probability -= 1e-10;
        settings.check().unwrap();
        assert_eq!(settings.capacity_at(1.0 - f64::EPSILON / 2.0), Rate::from_bps(2_880_000));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let change = |change: &dyn Fn(&mut Statuses)| {
            let mut settings = thesis();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        assert!(change(&|s| s.interval = Span::ZERO).starts_with("capacity.interval: found 0"));
        assert!(
            change(&|s| s.rate_window = Span::from_secs(61)).starts_with("capacity.rate_window: found 61")
        );
        assert!(
            change(&|s| s.rate_window = Span::from_nanos(-1)).starts_with("capacity.rate_window: found -")
        );
        assert!(change(&|s| s.statuses.clear()).starts_with("capacity.statuses: found none"));
        assert!(change(&|s| s.statuses[0].probability = 0.7001).contains("sum to 1.0001"));
        assert!(
            change(&|s| s.statuses[0].probability = f64::NAN)
                .starts_with("capacity.statuses.0.probability: found NaN")
        );
        assert!(
            change(&|s| s.statuses[1].name = "idle".to_owned())
                .starts_with("capacity.statuses.1.name: found idle")
        );
    }
}
