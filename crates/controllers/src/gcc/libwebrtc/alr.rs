//! Application-limited region: whether the sender uses clearly less than its target.
//!
//! `alr_detector.cc` with `modules/pacing/interval_budget.cc`: a budget that fills at a part of the target and is
//! emptied by what is sent.

use super::rounding::ms;
use super::settings::Settings;
use tidegate_core::units::{Rate, Size, Time};

/// Time in which an empty budget fills up, ms (`interval_budget.cc`).
const WINDOW_MS: i64 = 500;

/// Detector of the application-limited region (`AlrDetector`).
#[derive(Clone, Default)]
pub struct Alr {
    /// Rate at which the budget fills, kbit/s.
    target_rate_kbps: i64,
    /// Bytes that may be sent; negative after more was sent.
    budget: i64,
    /// Bound of the budget, bytes: it stays between minus this and this.
    max_budget: i64,
    /// Departure of the last packet, ms.
    last_sent: Option<i64>,
    /// Start of the application-limited region, while it lasts.
    since: Option<Time>,
}

impl Alr {
    /// Sets the target rate (`SetEstimatedBitrate`).
    pub fn set_estimate(&mut self, settings: &Settings, target: Rate) {
        self.target_rate_kbps = (target.as_bps_f64() * settings.alr_usage / 1000.0) as i64;
        self.max_budget = self.target_rate_kbps.saturating_mul(WINDOW_MS) / 8;
        self.budget = self.budget.max(-self.max_budget).min(self.max_budget);
    }

    /// Counts a packet of `size` that leaves `now` (`OnBytesSent`).
    pub fn sent(&mut self, settings: &Settings, now: Time, size: Size) {
        let now_ms = ms(now.as_nanos());
        // the interval that the first packet stands for is unknown
        let Some(last) = self.last_sent.replace(now_ms) else { return };
        let used = i64::try_from(size.as_bytes()).unwrap_or(i64::MAX);
        let filled = self.target_rate_kbps.saturating_mul(now_ms.saturating_sub(last)) / 8;
        self.budget = self
            .budget
            .saturating_sub(used)
            .max(-self.max_budget)
            .saturating_add(filled)
            .min(self.max_budget);
        let level = if self.max_budget == 0 { 0.0 } else { self.budget as f64 / self.max_budget as f64 };
        match self.since {
            None if level > settings.alr_start => self.since = Some(now),
            Some(_) if level < settings.alr_stop => self.since = None,
            _ => {}
        }
    }

    /// Start of the application-limited region, while it lasts (`GetApplicationLimitedRegionStartTime`).
    #[must_use]
    pub fn since(&self) -> Option<Time> {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends packets of `bytes` every 10 ms for `millis` after `from`; returns the times (ms) of changed verdicts.
    fn run(alr: &mut Alr, from: i64, millis: i64, bytes: u64) -> Vec<(i64, bool)> {
        let settings = Settings::default();
        let mut changes = vec![];
        for ms in (from + 10..=from + millis).step_by(10) {
            let before = alr.since().is_some();
            alr.sent(&settings, Time::from_millis(ms), Size::from_bytes(bytes));
            if alr.since().is_some() != before {
                changes.push((ms, !before));
            }
        }
        changes
    }

    #[test]
    fn four_fifths_of_the_target_are_used_and_less_is_a_limit() {
        let mut alr = Alr::default();
        alr.set_estimate(&Settings::default(), Rate::from_mbps(1));
        // 80 %: 1000 bytes flow in every 10 ms, as many go out
        assert_eq!(run(&mut alr, 0, 20_000, 1000), []);
        // 30 %: 625 bytes more every 10 ms; 40 % of 50 000 bytes are passed with the 33rd
        assert_eq!(run(&mut alr, 20_000, 10_000, 375), [(20_330, true)]);
        // full: 50 000. 100 %: 250 less every 10 ms, and -30 000 are passed after 321 steps
        assert_eq!(run(&mut alr, 30_000, 10_000, 1250), [(33_210, false)]);
    }

    #[test]
    fn nothing_is_known_without_a_target_and_a_lower_one_keeps_the_budget_in_its_bounds() {
        let mut alr = Alr::default();
        assert_eq!(run(&mut alr, 0, 5000, 10), []);
        alr.set_estimate(&Settings::default(), Rate::from_mbps(1));
        run(&mut alr, 5000, 5000, 0);
        alr.set_estimate(&Settings::default(), Rate::from_kbps(100));
        assert_eq!(alr.budget, 5000);
    }
}
