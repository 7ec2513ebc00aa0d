//! Round trips, the queue's delay and what is averaged of it, in the program's clock of 1/65536 s
//! (ScreamV2Tx.cpp: `markAcked`, `estimateOwd`, and the second half of `incomingStandardizedFeedback`).

use std::collections::VecDeque;
use tidegate_core::{RemoteTime, Span};

/// An instant or a span in units of 1/65536 s.
pub type Ticks = i64;

/// Nanoseconds in ticks, to the nearest one.
#[must_use]
pub fn ticks(nanos: i64) -> Ticks {
    ((i128::from(nanos) * 65_536 + 500_000_000).div_euclid(1_000_000_000)) as i64
}

/// Ticks in seconds.
#[must_use]
pub fn seconds(ticks: Ticks) -> f64 {
    ticks as f64 / 65_536.0
}

/// kMinCongestionBackOffInterval_ntp: 30 ms.
pub const LEAST_BACK_OFF: Ticks = 1966;
/// kSrttVirtual.
pub const VIRTUAL_RTT: f64 = 0.025;
/// kBaseDelayUpdateInterval_ntp: 10 s, and kBaseOwdHistSize of them.
const BASE_STEP: Ticks = 655_360;
const BASE_HISTORY: usize = 50;
/// kQueueDelayAvgAlpha.
const AVERAGE_GAIN: f64 = 0.25;
/// kQueueDelayMinSlowAvgAlpha, and kQueueDelayMinSlowAvgUpdateRtts.
const SLOW_GAIN: f64 = 0.125;
const SLOW_RTTS: Ticks = 100;
/// kLatencyDiffAlpha, kQueueDelayMinMaxAlpha, kLatencyDiffThreshold.
const JITTER_GAIN: f64 = 1.0 / 32.0;
const MIN_MAX_GAIN: f64 = 1.0 / 16.0;
const JITTER_THRESHOLD: f64 = 0.01;
/// More than any delay.
const NEVER: f64 = 1000.0;

/// Both smoothed round trips.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrips {
    /// `sRtt`, in ticks.
    pub slow: Ticks,
    /// `sRttSh` of the report before, and of this one.
    short_prev: Ticks,
    short: Ticks,
    updated: Ticks,
    /// `sRtt` in seconds: 0.05 exactly before the first update.
    pub s_rtt: f64,
}

impl Default for RoundTrips {
    /// 50 ms.
    fn default() -> Self {
        Self { slow: 3277, short_prev: 3277, short: 3277, updated: 0, s_rtt: 0.05 }
    }
}

impl RoundTrips {
    /// The round trip of the newest packet of a report. `app_limited`: what is in flight is far below the window.
    pub fn sample(&mut self, now: Ticks, rtt: Ticks, app_limited: bool) {
        if rtt >= 1_000_000 {
            return;
        }
        self.short_prev = self.short;
        self.short = (7 * self.short + rtt) / 8;
        if now - self.updated > self.short {
            self.slow = if app_limited && self.slow > self.short {
                (1023 * self.slow + self.short) / 1024
            } else {
                (7 * self.slow + self.short) / 8
            };
            self.s_rtt = seconds(self.slow);
            self.updated = now;
        }
    }

    /// Whether the round trip has begun to fall.
    #[must_use]
    pub fn falls(&self) -> bool {
        self.short_prev > self.short
    }

    /// How often there may be a reaction to congestion: every round trip, and every 30 ms at least.
    #[must_use]
    pub fn step(&self) -> Ticks {
        LEAST_BACK_OFF.min(self.slow)
    }
}

/// The queue's delay.
#[derive(Clone, Debug)]
pub struct Delay {
    base: Option<Ticks>,
    history: VecDeque<Ticks>,
    base_added: Ticks,
    /// `queueDelay`, in seconds.
    pub now: f64,
    /// `queueDelayAvg`.
    pub average: f64,
    /// `queueDelayMinSlowAvg`: what stands in the queue, or drifts.
    pub standing: f64,
    least: f64,
    slow_updated: Ticks,
    updated: Ticks,
    max: f64,
    min: f64,
    jitter: f64,
    /// `latencyDiffCwndScale`.
    pub scale: f64,
}

impl Default for Delay {
    fn default() -> Self {
        Self {
            base: None,
            history: VecDeque::new(),
            base_added: 0,
            now: 0.0,
            average: 0.0,
            standing: 0.0,
            least: NEVER,
            slow_updated: 0,
            updated: 0,
            max: 0.0,
            min: NEVER,
            jitter: 0.0,
            scale: 1.0,
        }
    }
}

impl Delay {
    /// Forgets the base (`getTargetBitrate`).
    pub fn reset_base(&mut self) {
        (self.base, self.standing, self.now) = (None, 0.0, 0.0);
        self.history.clear();
    }

    /// A packet was acknowledged that had left at `sent` and arrived at `arrival`. `target`: of the delay, in seconds.
    pub fn packet(&mut self, now: Ticks, sent: Ticks, arrival: RemoteTime, target: f64) {
        let delay = ticks(arrival.as_nanos()).saturating_sub(sent);
        let mut base = self.base.map_or(delay, |base| base.min(delay));
        self.base = Some(base);
        if now - self.base_added >= BASE_STEP {
            self.base_added = now;
            self.history.push_back(base);
            if self.history.len() > BASE_HISTORY {
                self.history.pop_front();
            }
            self.base = None;
            base = i64::MAX;
        }
        let base = self.history.iter().copied().min().map_or(base, |old| old.min(base));
        self.now = seconds(delay.saturating_sub(base).max(0));
        self.spread(target);
    }

    /// The delay counts among the highest and the least ones.
    fn spread(&mut self, target: f64) {
        self.min = self.min.min(self.now);
        self.max = self.max.max(self.now).min(target);
    }

    /// A report begins. Those of the program say of each packet more than once that it has arrived, so that the delay of the report before
    /// counts among those of this one.
    pub fn again(&mut self, target: f64) {
        if self.base.is_some() || !self.history.is_empty() {
            self.spread(target);
        }
    }

    /// Updates the averages, once a round trip or every 30 ms; says whether it did.
    pub fn update(&mut self, now: Ticks, rtt: &RoundTrips) -> bool {
        if now - self.updated <= rtt.step() {
            return false;
        }
        if now - self.slow_updated > rtt.slow * SLOW_RTTS {
            self.standing = if self.least < self.standing {
                self.least
            } else {
                SLOW_GAIN * self.least + (1.0 - SLOW_GAIN) * self.standing
            };
            (self.least, self.slow_updated) = (NEVER, now);
        }
        let above = self.now - self.standing;
        self.average = if above < self.average {
            above
        } else {
            (1.0 - AVERAGE_GAIN) * self.average + AVERAGE_GAIN * above
        };
        let differ = (self.max - self.min).clamp(0.0, 2.0 * JITTER_THRESHOLD);
        self.jitter += JITTER_GAIN * (differ - self.jitter);
        self.scale = (1.0 - self.jitter / JITTER_THRESHOLD).clamp(0.0, 1.0);
        self.max *= 1.0 - MIN_MAX_GAIN;
        self.min += MIN_MAX_GAIN * (self.max - self.min);
        self.updated = now;
        true
    }

    /// Takes note of the delay at an update of the window.
    pub fn note_least(&mut self) {
        self.least = self.least.min(self.now);
    }
}

/// `at` as its nanoseconds in ticks since `origin`.
#[must_use]
pub fn since(at: tidegate_core::Time, origin: tidegate_core::Time) -> Ticks {
    let span: Span = Span::from_nanos(at.as_nanos().saturating_sub(origin.as_nanos()));
    ticks(span.as_nanos())
}
