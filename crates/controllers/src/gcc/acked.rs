//! The received rate R_hat: how fast what was sent arrives.
//!
//! Draft 5.5; libwebrtc `robust_throughput_estimator.cc`, and before it `bitrate_estimator.cc`; aiortc
//! `RateCounter`.

use super::bayes::Bayes;
use super::settings::{ReceivedRate, Settings};
use std::collections::VecDeque;
use tidegate_core::units::{RemoteTime, Size, Span, Time};

const NANOS_IN_MILLI: i64 = 1_000_000;

#[derive(Clone, Copy)]
struct Packet {
    arrival: i64,
    sent: i64,
    size: u64,
}

/// The estimator's state.
#[derive(Clone)]
pub struct Acked {
    /// In order of arrival.
    window: VecDeque<Packet>,
    bytes: u128,
    /// Where the sliding window begins; and whether it gave a rate since it was begun.
    origin: i64,
    rated: bool,
    /// The latest send time of a packet that has left the robust window.
    discarded: i64,
    /// The window's greatest length, and the robust one's least, ns.
    longest: i64,
    shortest: i64,
    bayes: Bayes,
}

impl Acked {
    /// An estimator that has seen nothing.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let room = match settings.received_rate {
            ReceivedRate::Robust => settings.robust_most as usize + 1,
            // a sliding window has as many as arrive in it
            ReceivedRate::Window | ReceivedRate::Bayesian => 0,
        };
        let longest = match settings.received_rate {
            ReceivedRate::Robust => settings.robust_longest,
            ReceivedRate::Window | ReceivedRate::Bayesian => settings.received_window,
        };
        Self {
            window: VecDeque::with_capacity(room),
            bytes: 0,
            origin: i64::MIN,
            rated: true,
            discarded: i64::MIN,
            longest: Span::from_millis_f64(longest).as_nanos(),
            shortest: Span::from_millis_f64(settings.received_window).as_nanos(),
            bayes: Bayes::default(),
        }
    }

    /// Takes a received packet.
    pub fn packet(&mut self, settings: &Settings, sent: Time, arrived: RemoteTime, size: Size) {
        let packet = Packet { arrival: arrived.as_nanos(), sent: sent.as_nanos(), size: size.as_bytes() };
        // a far clock that went back by more than the window is a new clock
        let behind = |last: &Packet| last.arrival.saturating_sub(packet.arrival) > self.longest;
        if self.window.back().is_some_and(behind) {
            self.clear();
        }
        match settings.received_rate {
            ReceivedRate::Robust => self.robust_packet(settings, packet),
            ReceivedRate::Window => self.window_packet(packet),
            ReceivedRate::Bayesian => self.bayes.packet(packet.arrival, packet.size),
        }
    }

    /// The application was limited until now (libwebrtc SetAlrEndedTime).
    pub fn limit_ended(&mut self) {
        self.bayes.expect_change();
    }

    fn clear(&mut self) {
        self.window.clear();
        (self.origin, self.rated) = (i64::MIN, true);
        self.bytes = 0;
        self.discarded = i64::MIN;
    }

    fn push(&mut self, packet: Packet) {
        self.bytes += u128::from(packet.size);
        self.window.push_back(packet);
        // reports may overtake each other: keep the order of arrival
        let mut at = self.window.len() - 1;
        while at > 0 && self.window[at].arrival < self.window[at - 1].arrival {
            self.window.swap(at, at - 1);
            at -= 1;
        }
        debug_assert!(self.window.iter().is_sorted_by_key(|packet| packet.arrival), "in order of arrival");
    }

    fn pop(&mut self) {
        if let Some(packet) = self.window.pop_front() {
            self.bytes -= u128::from(packet.size);
            self.discarded = self.discarded.max(packet.sent);
        }
        debug_assert!(!self.window.is_empty() || self.bytes == 0, "{} bytes in no packet", self.bytes);
    }

    fn window_packet(&mut self, packet: Packet) {
        let newest = self.window.back().map_or(packet.arrival, |last| last.arrival.max(packet.arrival));
        // in whole milliseconds, as there: a window of 1000 ms ends with the present one
        let oldest = newest.saturating_sub(self.longest);
        while self.window.front().is_some_and(|first| first.arrival <= oldest) {
            self.pop();
        }
        self.origin = self.origin.max(oldest.saturating_add(NANOS_IN_MILLI));
        // aiortc begins a window anew only when it goes from some rate to none
        if !self.window.is_empty() && newest > self.origin {
            self.rated = true;
        } else if self.rated {
            (self.origin, self.rated) = (packet.arrival, false);
        }
        self.push(packet);
    }

    fn robust_packet(&mut self, settings: &Settings, packet: Packet) {
        self.push(packet);
        while let (Some(first), Some(last)) = (self.window.front(), self.window.back()) {
            let length = last.arrival.saturating_sub(first.arrival);
            let packets = self.window.len() as u64;
            let over = packets > settings.robust_most
                || length > self.longest
                || (packets > settings.robust_packets && length > self.shortest);
            if !over {
                break;
            }
            self.pop();
        }
    }

    /// The received rate in bit/s as of the newest packet; none while too little has arrived.
    #[must_use]
    pub fn rate(&self, settings: &Settings) -> Option<f64> {
        match settings.received_rate {
            ReceivedRate::Robust => self.robust_rate(settings),
            ReceivedRate::Window => self.window_rate(settings),
            ReceivedRate::Bayesian => self.bayes.rate(),
        }
    }

    fn window_rate(&self, settings: &Settings) -> Option<f64> {
        let newest = self.window.back()?.arrival;
        let passed = if settings.received_partial {
            let passed = newest.saturating_sub(self.origin);
            if passed <= 0 {
                return None;
            }
            passed.saturating_add(NANOS_IN_MILLI) as f64 / 1e6
        } else {
            settings.received_window
        };
        let rate = 8000.0 * self.bytes as f64 / passed;
        Some(if settings.whole_rates { rate.round_ties_even() } else { rate })
    }

    fn robust_rate(&self, settings: &Settings) -> Option<f64> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        let required = settings.robust_required;
        if (self.window.len() as u64) < required {
            return None;
        }
        let (mut largest, mut second) = (0_i64, 0_i64);
        let mut previous = first.arrival;
        let (mut first_sent, mut last_sent, mut last_size) = (i64::MAX, i64::MIN, 0);
        let (mut sent_bytes, mut sent_packets) = (0_u128, 0_u64);
        for packet in &self.window {
            let gap = packet.arrival.saturating_sub(previous);
            previous = packet.arrival;
            if gap > largest {
                second = largest;
                largest = gap;
            } else if gap > second {
                second = gap;
            }
            // sent before something that has left the window already: reordered, and too old to count
            if packet.sent < self.discarded {
                continue;
            }
            if packet.sent > last_sent {
                (last_sent, last_size) = (packet.sent, packet.size);
            }
            first_sent = first_sent.min(packet.sent);
            sent_bytes += u128::from(packet.size);
            sent_packets += 1;
        }
        // n packets span n - 1 intervals: on arrival the first one's size does not count, on sending
        // the last one's. The largest gap, which may be a stall of the network, is cut to the second.
        let rate = |bytes: u128, nanos: i64| bytes as f64 * 8e9 / nanos.max(NANOS_IN_MILLI) as f64;
        let duration = last.arrival.saturating_sub(first.arrival) - largest + second;
        let received = rate(self.bytes - u128::from(first.size), duration);
        if sent_packets < required {
            return Some(received);
        }
        let sent = rate(sent_bytes - u128::from(last_size), last_sent.saturating_sub(first_sent));
        Some(received.min(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Run {
        settings: Settings,
        acked: Acked,
    }

    impl Run {
        fn new(preset: &str) -> Self {
            let settings = Settings::preset(preset).expect("known");
            let acked = Acked::new(&settings);
            Self { settings, acked }
        }
        fn packet(&mut self, sent: i64, arrival: i64, size: u64) -> Option<f64> {
            let arrived = RemoteTime::from_nanos(arrival * NANOS_IN_MILLI);
            self.acked.packet(&self.settings, Time::from_millis(sent), arrived, Size::from_bytes(size));
            self.acked.rate(&self.settings)
        }
    }

    #[test]
    fn aiortc_counts_whole_bits_over_the_milliseconds_so_far() {
        let mut run = Run::new("aiortc");
        // the first rows of the public trace: 1200 bytes at 49, 59 and 68 ms
        assert_eq!(run.packet(0, 49, 1200), None);
        assert_eq!(run.packet(0, 59, 1200), Some(1_745_455.0));
        assert_eq!(run.packet(0, 68, 1200), Some(1_440_000.0));
        // the window is full: 1000 ms, the packet of 1049 in and that of 49 out
        assert_eq!(run.packet(0, 1049, 1200), Some(3.0 * 9600.0));
        // after silence it begins anew
        assert_eq!(run.packet(0, 9000, 1200), None);
        assert_eq!(run.packet(0, 9009, 1200), Some(1_920_000.0));
    }

    #[test]
    fn the_draft_divides_by_its_window() {
        let mut run = Run::new("draft-02");
        assert_eq!(run.packet(0, 0, 1000), Some(16_000.0));
        for i in 1..500 {
            run.packet(i * 10, i * 10, 1000);
        }
        assert_eq!(run.packet(5000, 5000, 1000), Some(800_000.0));
    }

    #[test]
    fn the_robust_rate_is_exact_for_a_steady_stream() {
        let mut run = Run::new("libwebrtc-v1");
        for i in 0..9 {
            assert_eq!(run.packet(i * 10, i * 10 + 7, 1250), None, "ten packets are required");
        }
        for i in 9..1000 {
            let rate = run.packet(i * 10, i * 10 + 7, 1250).expect("enough");
            assert!((rate - 1e6).abs() < 1e-3, "{rate} at {i}");
            assert!(run.acked.window.len() <= 101);
        }
    }

    #[test]
    fn a_stall_does_not_lower_the_robust_rate_nor_does_its_burst_raise_it() {
        let mut run = Run::new("libwebrtc-v1");
        (0..200).for_each(|i| _ = run.packet(i * 10, i * 10, 1250));
        // half a second of stall, then everything at once
        let burst = (200..250).map(|i| run.packet(i * 10, 2490, 1250).expect("enough"));
        let rates: Vec<f64> = burst.collect();
        assert!(rates.iter().all(|rate| (0.98e6..=1.0001e6).contains(rate)), "{rates:?}");
    }

    #[test]
    fn the_window_obeys_its_bounds_and_a_clock_set_back_empties_it() {
        let mut run = Run::new("libwebrtc-v1");
        (0..5000).for_each(|i| _ = run.packet(i, i / 10, 100));
        assert_eq!(run.acked.window.len(), 500);
        (0..50).for_each(|i| _ = run.packet(5000 + i * 400, 5000 + i * 400, 100));
        assert_eq!(run.acked.window.len(), 13, "5 s at 400 ms");
        assert_eq!(run.packet(30_000, 1000, 100), None);
        assert_eq!((run.acked.window.len(), run.acked.bytes), (1, 100));
        for arrival in [i64::MIN / NANOS_IN_MILLI, i64::MAX / NANOS_IN_MILLI, 0, 5] {
            for size in [u64::MAX, 0] {
                assert!(run.packet(arrival, arrival, size).is_none_or(f64::is_finite));
            }
        }
    }
}
