//! Congestion window: more bytes in flight than the target carries in a round trip lower the encoder's rate.
//!
//! `congestion_window_pushback_controller.cc`, and `UpdateCongestionWindowSize` of `goog_cc_network_control.cc`. Packets
//! in flight are those sent after the newest reported packet (`transport_feedback_adapter.cc`).

use super::rounding::{bytes_in, ms};
use super::settings::{Pushback, Settings};
use std::collections::VecDeque;
use tidegate_core::units::{Rate, Size, Span};

/// Number of reports whose longest round trips are kept.
const MAX_FEEDBACK_RTT_WINDOW: usize = 32;
/// Smallest window, bytes.
const MIN_CWND: u64 = 2 * 1500;

/// Largest number of packets in flight that are counted (ours).
const MAX_IN_FLIGHT: usize = 8192;

/// Congestion window and the bytes in flight.
#[derive(Clone)]
pub(super) struct Window {
    /// Longest round trip in each of the last reports, ms (`feedback_max_rtts_`).
    longest: VecDeque<i64>,
    /// Minimum of these, ms.
    shortest: Option<i64>,
    /// Window, bytes.
    size: Option<u64>,
    /// Sequence number and size of each packet in flight.
    flight: VecDeque<(u64, u64)>,
    /// Sum of their sizes, bytes.
    in_flight: u64,
    /// Part of the target that the encoder gets (`encoding_rate_ratio_`).
    ratio: f64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            longest: VecDeque::new(),
            shortest: None,
            size: None,
            flight: VecDeque::new(),
            in_flight: 0,
            ratio: 1.0,
        }
    }
}

impl Window {
    /// Counts a packet that has left.
    pub(super) fn sent(&mut self, sequence: u64, size: Size) {
        if self.flight.len() == MAX_IN_FLIGHT {
            self.drop_oldest();
        }
        // capped so that the sum cannot overflow, whatever sizes come
        let size = size.as_bytes().min(u64::from(u32::MAX));
        self.flight.push_back((sequence, size));
        self.in_flight += size;
    }

    /// Removes a reported packet and all before it from those in flight.
    pub(super) fn reported(&mut self, sequence: u64) {
        while self.flight.front().is_some_and(|&(oldest, _)| oldest <= sequence) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.in_flight -= self.flight.pop_front().map_or(0, |(_, size)| size);
        debug_assert!(
            !self.flight.is_empty() || self.in_flight == 0,
            "{} bytes in no packet",
            self.in_flight
        );
    }

    /// Takes the longest round trip of a report's packets.
    pub(super) fn report(&mut self, longest: Span) {
        self.longest.push_back(ms(longest.as_nanos()));
        if self.longest.len() > MAX_FEEDBACK_RTT_WINDOW {
            self.longest.pop_front();
        }
        self.shortest = self.longest.iter().copied().min();
    }

    /// Updates the window from the target and the round trips (`UpdateCongestionWindowSize`).
    pub(super) fn resize(&mut self, settings: &Settings, target: Rate) {
        let Some(shortest) = self.shortest else { return };
        let span =
            Span::from_millis(shortest.clamp(0, 1_000_000)) + Span::from_millis_f64(settings.window_extra);
        let size = bytes_in(target, span).as_bytes();
        self.size =
            Some(self.size.map_or(size, |before| size / 2 + before / 2 + (size & before & 1)).max(MIN_CWND));
    }

    /// Encoder's rate under `target` (`UpdateTargetBitrate`).
    pub(super) fn pushback_target(&mut self, settings: &Settings, target: Rate) -> Rate {
        let Some(size) = self.size.filter(|_| settings.pushback != Pushback::Off) else { return target };
        let fill_ratio = self.in_flight as f64 / size as f64;
        if fill_ratio > 1.5 {
            self.ratio *= 0.9;
        } else if fill_ratio > 1.0 {
            self.ratio *= 0.95;
        } else if fill_ratio < 0.1 {
            self.ratio = 1.0;
        } else {
            self.ratio = (self.ratio * 1.05).min(1.0);
        }
        let floor = Rate::from_bps_f64(settings.window_floor);
        let rate = Rate::from_bps((target.as_bps_f64() * self.ratio) as u64);
        if rate < floor { target.min(floor) } else { rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_takes_a_part_of_the_target_with_each_call_and_an_empty_one_gives_it_back() {
        let settings = Settings::default();
        let mut window = Window::default();
        let target = Rate::from_mbps(1);
        assert_eq!(window.pushback_target(&settings, target), target, "no window yet");
        window.report(Span::from_millis(50));
        window.report(Span::from_millis(90));
        window.resize(&settings, target);
        assert_eq!(window.size, Some(50_000), "400 ms");
        let fill = |window: &mut Window, bytes| {
            window.reported(7);
            window.sent(7, Size::from_bytes(bytes));
        };
        fill(&mut window, 50_001);
        assert_eq!(window.pushback_target(&settings, target), Rate::from_kbps(950));
        fill(&mut window, 75_001);
        assert_eq!(window.pushback_target(&settings, target), Rate::from_kbps(855));
        fill(&mut window, 50_000);
        assert_eq!(window.pushback_target(&settings, target), Rate::from_bps(897_750));
        fill(&mut window, 75_001);
        for _ in 0..100 {
            window.pushback_target(&settings, target);
        }
        assert_eq!(window.pushback_target(&settings, target), Rate::from_kbps(30));
        assert_eq!(window.pushback_target(&settings, Rate::from_kbps(20)), Rate::from_kbps(20));
        fill(&mut window, 4999);
        assert_eq!(window.pushback_target(&settings, target), target);
        let off = Settings { pushback: Pushback::Off, ..settings };
        fill(&mut window, 1 << 30);
        assert_eq!(window.pushback_target(&off, target), target);
    }

    #[test]
    fn the_window_is_the_mean_of_two_to_the_byte() {
        let (settings, mut window) = (Settings::default(), Window::default());
        window.report(Span::from_millis(50));
        window.size = Some(30_001);
        window.resize(&settings, Rate::from_bps(1_000_020));
        assert_eq!(window.size, Some(40_001), "of 30 001 and of 400 ms at this rate, 50 001");
    }

    #[test]
    fn what_is_newer_than_the_newest_report_is_in_flight() {
        let mut window = Window::default();
        (0..10).for_each(|sequence| window.sent(sequence, Size::from_bytes(100)));
        assert_eq!(window.in_flight, 1000);
        window.reported(6);
        window.reported(2);
        assert_eq!(window.in_flight, 300);
        (10..20_000).for_each(|sequence| window.sent(sequence, Size::from_bytes(1)));
        assert_eq!(window.in_flight, MAX_IN_FLIGHT as u64, "the oldest are given up");
        window.reported(u64::MAX);
        assert_eq!((window.in_flight, window.flight.len()), (0, 0));
    }
}
