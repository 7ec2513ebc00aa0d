//! Round trips and the queueing delay with its averages, in the program's clock of 1/65536 s
//! (ScreamV2Tx.cpp: `markAcked`, `estimateOwd`, and the second half of `incomingStandardizedFeedback`).

use std::collections::VecDeque;
use tidegate_core::{RemoteTime, Span};

/// Time or duration in units of 1/65536 s.
pub type Ticks = i64;

/// Converts nanoseconds to ticks, to the nearest one.
#[must_use]
pub fn ticks(nanos: i64) -> Ticks {
    ((i128::from(nanos) * 65_536 + 500_000_000).div_euclid(1_000_000_000)) as i64
}

/// Converts ticks to seconds.
#[must_use]
pub fn seconds(ticks: Ticks) -> f64 {
    ticks as f64 / 65_536.0
}

/// Shortest time between two back-offs, 30 ms; a shorter round trip takes its place (ScreamV2Tx.cpp, as are the
/// constants below).
pub const MIN_CONGESTION_BACK_OFF_INTERVAL: Ticks = 1966;
/// Virtual round-trip time, s.
pub const SRTT_VIRTUAL: f64 = 0.025;
/// Time over which each minimum of the base delay is taken: 10 s.
const BASE_DELAY_UPDATE_INTERVAL: Ticks = 655_360;
/// Number of these minima.
const BASE_OWD_HIST_SIZE: usize = 50;
/// Weight of a delay in its average.
const QUEUE_DELAY_AVG_ALPHA: f64 = 0.25;
/// Weight of a minimum in the slow average.
const QUEUE_DELAY_MIN_SLOW_AVG_ALPHA: f64 = 0.125;
/// Round trips between two updates of the slow average.
const QUEUE_DELAY_MIN_SLOW_AVG_UPDATE_RTTS: Ticks = 100;
/// Weight of a difference in the average jitter.
const LATENCY_DIFF_ALPHA: f64 = 1.0 / 32.0;
/// Part by which highest and lowest delay approach each other at each update.
const QUEUE_DELAY_MIN_MAX_ALPHA: f64 = 1.0 / 16.0;
/// Jitter at which the scale is zero, s.
const LATENCY_DIFF_THRESHOLD: f64 = 0.01;
/// Delay above all others, s.
const NO_DELAY: f64 = 1000.0;

/// Slow and fast smoothed round trip.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrips {
    /// Slow one (`sRtt`), ticks.
    pub slow: Ticks,
    /// Fast one (`sRttSh`) of the previous report.
    short_prev: Ticks,
    /// Fast one of this report.
    short: Ticks,
    updated: Ticks,
    /// Slow one in seconds; exactly 0.05 before the first update.
    pub s_rtt: f64,
}

impl Default for RoundTrips {
    /// Round trips of 50 ms.
    fn default() -> Self {
        Self { slow: 3277, short_prev: 3277, short: 3277, updated: 0, s_rtt: 0.05 }
    }
}

impl RoundTrips {
    /// Takes the round trip of a report's newest packet. With `app_limited`, the bytes in flight are far below the window.
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

    /// Whether the fast round trip falls.
    #[must_use]
    pub fn falls(&self) -> bool {
        self.short_prev > self.short
    }

    /// Shortest time between two reactions to congestion: a round trip, at most 30 ms.
    #[must_use]
    pub fn reaction_interval(&self) -> Ticks {
        MIN_CONGESTION_BACK_OFF_INTERVAL.min(self.slow)
    }
}

/// Queueing delay.
#[derive(Clone, Debug)]
pub struct Delay {
    base: Option<Ticks>,
    history: VecDeque<Ticks>,
    base_added: Ticks,
    /// Present queueing delay, s (`queueDelay`).
    pub now: f64,
    /// Average, s (`queueDelayAvg`).
    pub average: f64,
    /// Slow average of minima, s: a standing queue or clock drift (`queueDelayMinSlowAvg`).
    pub standing: f64,
    lowest: f64,
    slow_updated: Ticks,
    updated: Ticks,
    max: f64,
    min: f64,
    jitter: f64,
    /// Factor by the jitter (`latencyDiffCwndScale`).
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
            lowest: NO_DELAY,
            slow_updated: 0,
            updated: 0,
            max: 0.0,
            min: NO_DELAY,
            jitter: 0.0,
            scale: 1.0,
        }
    }
}

impl Delay {
    /// Drops the base delay (`getTargetBitrate`).
    pub fn reset_base(&mut self) {
        (self.base, self.standing, self.now) = (None, 0.0, 0.0);
        self.history.clear();
    }

    /// Takes an acknowledged packet; `target` is the delay's target, s.
    pub fn packet(&mut self, now: Ticks, sent: Ticks, arrival: RemoteTime, target: f64) {
        let delay = ticks(arrival.as_nanos()).saturating_sub(sent);
        let mut base = self.base.map_or(delay, |base| base.min(delay));
        self.base = Some(base);
        if now - self.base_added >= BASE_DELAY_UPDATE_INTERVAL {
            self.base_added = now;
            self.history.push_back(base);
            if self.history.len() > BASE_OWD_HIST_SIZE {
                self.history.pop_front();
            }
            self.base = None;
            base = i64::MAX;
        }
        let base = self.history.iter().copied().min().map_or(base, |old| old.min(base));
        self.now = seconds(delay.saturating_sub(base).max(0));
        self.update_range(target);
    }

    /// Updates the highest and the lowest delay.
    fn update_range(&mut self, target: f64) {
        self.min = self.min.min(self.now);
        self.max = self.max.max(self.now).min(target);
    }

    /// Begins a report. The program's reports repeat each received packet, so that the delay of the previous report counts
    /// in this one, too.
    pub fn begin_report(&mut self, target: f64) {
        if self.base.is_some() || !self.history.is_empty() {
            self.update_range(target);
        }
    }

    /// Updates the averages, once per round trip or every 30 ms; returns whether it did.
    pub fn update(&mut self, now: Ticks, rtt: &RoundTrips) -> bool {
        if now - self.updated <= rtt.reaction_interval() {
            return false;
        }
        if now - self.slow_updated > rtt.slow * QUEUE_DELAY_MIN_SLOW_AVG_UPDATE_RTTS {
            self.standing = if self.lowest < self.standing {
                self.lowest
            } else {
                QUEUE_DELAY_MIN_SLOW_AVG_ALPHA * self.lowest
                    + (1.0 - QUEUE_DELAY_MIN_SLOW_AVG_ALPHA) * self.standing
            };
            (self.lowest, self.slow_updated) = (NO_DELAY, now);
        }
        let excess = self.now - self.standing;
        self.average = if excess < self.average {
            excess
        } else {
            (1.0 - QUEUE_DELAY_AVG_ALPHA) * self.average + QUEUE_DELAY_AVG_ALPHA * excess
        };
        let difference = (self.max - self.min).clamp(0.0, 2.0 * LATENCY_DIFF_THRESHOLD);
        self.jitter += LATENCY_DIFF_ALPHA * (difference - self.jitter);
        self.scale = (1.0 - self.jitter / LATENCY_DIFF_THRESHOLD).clamp(0.0, 1.0);
        self.max *= 1.0 - QUEUE_DELAY_MIN_MAX_ALPHA;
        self.min += QUEUE_DELAY_MIN_MAX_ALPHA * (self.max - self.min);
        self.updated = now;
        true
    }

    /// Includes the present delay in the minimum, at an update of the window.
    pub fn update_lowest(&mut self) {
        self.lowest = self.lowest.min(self.now);
    }
}

/// Ticks from `origin` to `time`.
#[must_use]
pub fn since(time: tidegate_core::Time, origin: tidegate_core::Time) -> Ticks {
    let span: Span = Span::from_nanos(time.as_nanos().saturating_sub(origin.as_nanos()));
    ticks(span.as_nanos())
}
