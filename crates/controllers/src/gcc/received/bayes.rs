//! Received rate as libwebrtc measured it from 2017 to 2022: a Bayesian estimate over short windows.
//!
//! libwebrtc `bitrate_estimator.cc` with the defaults of its trial `WebRTC-BweThroughputWindowConfig`. A sample far from
//! the estimate counts as uncertain and moves it little; a variance that grows with each sample models changes of the
//! rate. Unlike the robust estimate that replaced it, this one follows a drop of the capacity within two or three windows
//! of 150 ms, but varies more.

/// Length of the window before the first estimate, ns (libwebrtc, there in ms).
const INITIAL_RATE_WINDOW: i64 = 500_000_000;
/// Length of the later windows, ns (libwebrtc, there in ms).
const RATE_WINDOW: i64 = 150_000_000;
/// First variance of the estimate, (kbit/s)^2 (libwebrtc bitrate_estimate_var_).
const FIRST_VARIANCE: f64 = 50.0;
/// Variance that each sample adds, (kbit/s)^2 (libwebrtc Update).
const DRIFT: f64 = 5.0;
/// Standard deviation of a sample that differs from the estimate by 100 %, kbit/s (libwebrtc uncertainty_scale).
const UNCERTAINTY_SCALE: f64 = 10.0;
/// Variance that the end of an application-limited time adds, (kbit/s)^2 (libwebrtc ExpectFastRateChange).
const FAST_CHANGE: f64 = 200.0;

/// Bayesian estimator (libwebrtc `BitrateEstimator`).
#[derive(Clone, Default)]
pub struct Bayes {
    /// Estimate, kbit/s, and its variance.
    estimate: Option<(f64, f64)>,
    bytes: u64,
    /// Time of the window that has passed, ns.
    passed: i64,
    last: Option<i64>,
}

impl Bayes {
    /// Takes a received packet: arrival in ns, size in bytes.
    pub fn packet(&mut self, arrival: i64, size: u64) {
        let Some(sample) = self.sample(arrival, size) else { return };
        let Some((estimate, variance)) = self.estimate else {
            self.estimate = Some((sample, FIRST_VARIANCE));
            return;
        };
        // no distance relative to an estimate of zero: all samples count the same
        let distance = if estimate > 0.0 { (estimate - sample) / estimate } else { 0.0 };
        let uncertainty = UNCERTAINTY_SCALE * distance;
        let sample_variance = uncertainty * uncertainty;
        let variance = variance + DRIFT;
        let sum = sample_variance + variance;
        debug_assert!(variance > 0.0, "a variance of {variance}");
        self.estimate =
            Some(((sample_variance * estimate + variance * sample) / sum, sample_variance * variance / sum));
    }

    /// Rate of the window that ends with this packet, kbit/s, if one does.
    fn sample(&mut self, arrival: i64, size: u64) -> Option<f64> {
        let window = if self.estimate.is_none() { INITIAL_RATE_WINDOW } else { RATE_WINDOW };
        match self.last.replace(arrival) {
            Some(last) if arrival < last => (self.bytes, self.passed) = (0, 0),
            Some(last) => {
                let step = arrival.saturating_sub(last);
                self.passed = self.passed.saturating_add(step);
                // a window without packets gives no sample
                if step > window {
                    (self.bytes, self.passed) = (0, self.passed % window);
                }
            }
            None => {}
        }
        let mut sample = None;
        if self.passed >= window {
            sample = Some(self.bytes as f64 * 8e6 / window as f64);
            self.passed -= window;
            self.bytes = 0;
        }
        debug_assert!(
            (0..=INITIAL_RATE_WINDOW).contains(&self.passed),
            "{} ns have passed of a window",
            self.passed
        );
        self.bytes = self.bytes.saturating_add(size);
        sample
    }

    /// Prepares for different samples at the end of an application-limited time (libwebrtc ExpectFastRateChange).
    pub fn expect_change(&mut self) {
        if let Some((_, variance)) = &mut self.estimate {
            *variance += FAST_CHANGE;
        }
    }

    /// Received rate, bit/s; none before the end of the first window.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.estimate.map(|(estimate, _)| estimate * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Feeds `steps` packets of `size` bytes, one every 10 ms, from `start` (ms) on; returns the time after.
    fn feed(bayes: &mut Bayes, start: i64, steps: i64, size: u64) -> i64 {
        (0..steps).for_each(|i| bayes.packet((start + 10 * i) * MS, size));
        start + 10 * steps
    }

    #[test]
    fn a_steady_stream_is_known_after_half_a_second() {
        let mut bayes = Bayes::default();
        let end = feed(&mut bayes, 0, 50, 1250);
        assert_eq!(bayes.rate(), None);
        feed(&mut bayes, end, 500, 1250);
        assert!((bayes.rate().expect("some") - 1e6).abs() < 1e-6);
    }

    #[test]
    fn one_step_is_as_worked_by_hand() {
        let mut bayes = Bayes::default();
        let end = feed(&mut bayes, 0, 51, 1250);
        // 15 packets of half the size: a sample of 500 + the one packet of 1250 that opened the window
        feed(&mut bayes, end, 15, 625);
        let sample: f64 = (1250.0 + 14.0 * 625.0) * 8.0 / 150.0;
        let uncertainty = 10.0 * (1000.0 - sample) / 1000.0;
        let sample_variance = uncertainty * uncertainty;
        let expected = (sample_variance * 1000.0 + 55.0 * sample) / (sample_variance + 55.0);
        assert!((bayes.rate().expect("some") / 1000.0 - expected).abs() < 1e-9);
    }

    #[test]
    fn a_drop_to_half_is_followed_within_three_quarters_of_a_second_and_sooner_after_a_limit() {
        let after = |expect: bool| {
            let mut bayes = Bayes::default();
            let end = feed(&mut bayes, 0, 1000, 1250);
            if expect {
                bayes.expect_change();
            }
            let end = feed(&mut bayes, end, 16, 625);
            let soon = bayes.rate().expect("some");
            feed(&mut bayes, end, 60, 625);
            (soon, bayes.rate().expect("some"))
        };
        let (soon, late) = after(false);
        assert!((0.7e6..0.95e6).contains(&soon), "{soon}");
        assert!((0.5e6..0.56e6).contains(&late), "{late}");
        assert!(after(true).0 < soon - 50e3);
    }

    #[test]
    fn silence_and_a_clock_set_back_give_no_sample() {
        let mut bayes = Bayes::default();
        let end = feed(&mut bayes, 0, 100, 1250);
        let before = bayes.rate();
        // ten seconds of nothing: what was counted before does not stand for them
        bayes.packet((end + 10_000) * MS, 1250);
        assert_eq!(bayes.rate(), before);
        bayes.packet(0, 1250);
        assert_eq!(bayes.rate(), before);
        for arrival in [i64::MAX, i64::MIN, 0, i64::MAX] {
            (0..5).for_each(|_| bayes.packet(arrival, u64::MAX));
            assert!(bayes.rate().is_some_and(f64::is_finite));
        }
    }
}
