//! Congestion window (RFC 8298 section 4.1.2.2), fast increase (4.1.2.7) and send window (4.1.2.5).

use super::settings::Settings;
use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// Time over which the largest number of bytes in flight is taken (section 4.1.2.2).
const MAX_IN_FLIGHT_WINDOW: Span = Span::from_secs(5);

/// Largest number of bytes in flight in the last 5 s.
#[derive(Clone, Debug, Default)]
pub struct MaxInFlight(VecDeque<(Time, u64)>);

impl MaxInFlight {
    /// Takes the bytes in flight.
    pub fn take(&mut self, now: Time, bytes: u64) {
        // smaller numbers before this one can never be the largest again
        while self.0.back().is_some_and(|&(_, last)| last <= bytes) {
            self.0.pop_back();
        }
        self.0.push_back((now, bytes));
        while self.0.front().is_some_and(|&(time, _)| now - time > MAX_IN_FLIGHT_WINDOW) {
            self.0.pop_front();
        }
    }

    /// Largest number, bytes.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.front().map_or(0, |&(_, bytes)| bytes)
    }
}

/// Input of an acknowledgement. Sizes in bytes, times in s.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Newly acknowledged bytes (`bytes_newly_acked`).
    pub bytes: f64,
    /// Bytes in flight (`bytes_in_flight`).
    pub in_flight: f64,
    /// Largest number of bytes in flight in the last 5 s (`max_bytes_in_flight`).
    pub max_in_flight: f64,
    /// Queueing delay (`qdelay`).
    pub qdelay: f64,
    /// Target of the queueing delay (`qdelay_target`).
    pub qdelay_target: f64,
    /// Trend of the delay (`qdelay_trend`).
    pub trend: f64,
}

/// Congestion window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Window, bytes (`cwnd`).
    pub bytes: f64,
    /// Whether the window is in fast increase (`in_fast_increase`).
    pub fast: bool,
    /// Time since which the trend has been low.
    low_since: Option<Time>,
}

impl Window {
    /// Creates a window of MIN_CWND.
    #[must_use]
    pub fn new(set: &Settings) -> Self {
        Self { bytes: set.min_cwnd, fast: true, low_since: None }
    }

    /// Reduces the window for lost or marked packets.
    pub fn congestion(&mut self, lost: bool, set: &Settings) {
        (self.fast, self.low_since) = (false, None);
        self.bytes = (self.bytes * if lost { set.beta_loss } else { set.beta_ecn }).max(set.min_cwnd);
    }

    /// Takes an acknowledgement without congestion; returns whether fast increase ends.
    pub fn acknowledged(&mut self, acked: &Acknowledged, set: &Settings) -> bool {
        let Acknowledged { bytes, in_flight, max_in_flight, qdelay, qdelay_target, trend } = *acked;
        let ends = self.fast && trend >= set.trend_threshold;
        if self.fast && !ends {
            if in_flight * 1.5 + bytes > self.bytes {
                self.bytes += bytes;
            }
            return false;
        }
        if ends {
            (self.fast, self.low_since) = (false, None);
        }
        let off_target = (qdelay_target - qdelay) / qdelay_target;
        let is_used = in_flight * 1.25 + bytes > self.bytes;
        if off_target <= 0.0 || is_used {
            self.bytes += set.gain * off_target * bytes * set.mss / self.bytes;
        }
        self.bytes = self.bytes.min(max_in_flight * set.head_room).max(set.min_cwnd);
        ends
    }

    /// Resumes fast increase if the trend has been low for long enough.
    pub fn resume(&mut self, now: Time, trend: f64, set: &Settings) {
        if trend >= set.trend_low {
            self.low_since = None;
        } else if !self.fast {
            let since = *self.low_since.get_or_insert(now);
            self.fast = (now - since).as_secs_f64() >= set.resume_after;
        }
    }

    /// Send window, bytes.
    #[must_use]
    pub fn send(&self, qdelay: f64, qdelay_target: f64, set: &Settings) -> f64 {
        if qdelay <= qdelay_target { self.bytes + set.mss } else { self.bytes }
    }
}
