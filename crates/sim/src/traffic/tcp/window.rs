//! The congestion window, and what moves it: slow start, and the algorithm that follows it.

use super::bbr::Bbr;
use std::fmt::Debug;
use tidegate_core::{Span, Time};

/// The congestion window and the slow start threshold, in bytes.
#[derive(Debug)]
pub(super) struct Window {
    /// The congestion window.
    pub(super) cwnd: f64,
    /// Slow start below this.
    pub(super) ssthresh: f64,
    pub(super) segment: f64,
    pub(super) initial: f64,
}

impl Window {
    /// The initial window of so many segments.
    pub(super) fn new(segment: u16, initial_window: u32) -> Self {
        let segment = f64::from(segment);
        let initial = segment * f64::from(initial_window);
        // RFC 5681 section 3.1: initially arbitrarily high
        Self { cwnd: initial, ssthresh: f64::INFINITY, segment, initial }
    }

    /// The window in segments.
    pub(super) fn segments(&self) -> f64 {
        self.cwnd / self.segment
    }

    /// Whether it is in slow start.
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Sets the threshold to a share of the `flight` (RFC 5681 equation 4; RFC 9438 section 4.6).
    fn lower(&mut self, flight: u64, share: f64) {
        // what limited transmit sent beyond cwnd is not to count (RFC 5681 section 3.2 step 2)
        let flight = (flight as f64).min(self.cwnd);
        self.ssthresh = (flight * share).max(2.0 * self.segment);
    }
}

/// An algorithm of congestion control: how the window grows in congestion avoidance, and how far it falls.
///
/// What is the same for most is here: slow start, and what RFC 5681 does after a loss, a timeout and an idle time.
pub(super) trait CongestionControl: Debug + Send {
    /// `acked` bytes of new data were acknowledged in congestion avoidance, while the window was in use.
    fn avoid(&mut self, window: &mut Window, now: Time, acked: f64, srtt: Option<Span>);

    /// The share of the flight that a loss leaves.
    fn beta(&self) -> f64 {
        0.5
    }

    /// `acked` bytes of new data were acknowledged while the window was in use.
    #[inline]
    fn grow(&mut self, window: &mut Window, now: Time, acked: u64, srtt: Option<Span>) {
        let acked = acked as f64;
        if window.is_in_slow_start() {
            window.cwnd += acked.min(window.segment);
        } else {
            self.avoid(window, now, acked, srtt);
        }
    }

    /// New data was acknowledged, but the window was not in use: it stays.
    fn not_in_use(&mut self) {}

    /// `bytes` up to `una` were acknowledged, with those up to `max` sent; with a mark or without.
    fn echoed(&mut self, now: Time, bytes: u64, una: u64, max: u64, marked: bool) {
        let _ = (now, bytes, una, max, marked);
    }

    /// An acknowledgement of the bytes up to `una`, with those up to `max` sent, measured a round trip; to be called
    /// before the window grows by it.
    fn measured(&mut self, window: &mut Window, now: Time, rtt: Span, una: u64, max: u64) {
        let _ = (window, now, rtt, una, max);
    }

    /// The receiver tells of a mark, with `flight` bytes under way. Says whether the window was reduced: as after a loss
    /// (RFC 3168 section 6.1.2).
    fn marked(&mut self, window: &mut Window, now: Time, flight: u64) -> bool {
        let _ = now;
        self.loss(window, flight);
        self.fall(window);
        true
    }

    /// Duplicates said that a segment is lost, or the receiver that one was marked, with `flight` bytes under way: sets
    /// ssthresh. What becomes of cwnd is up to the recovery.
    fn loss(&mut self, window: &mut Window, flight: u64) {
        window.lower(flight, self.beta());
        self.reduced(window);
    }

    /// A loss lowered the threshold.
    fn reduced(&mut self, window: &Window) {
        let _ = window;
    }

    /// The window falls to what a loss or a mark leaves of it.
    fn fall(&self, window: &mut Window) {
        window.cwnd = window.ssthresh;
    }

    /// The timer went off with `flight` bytes under way; `None` where it did so before for the same
    /// segment, and ssthresh stays as it is (RFC 5681 section 3.1). Bytes up to `max` had been sent.
    fn timeout(&mut self, window: &mut Window, now: Time, flight: Option<u64>, max: u64) {
        self.timer(now, max);
        if let Some(flight) = flight {
            window.lower(flight, self.beta());
            self.collapsed(window);
        }
        window.cwnd = window.segment;
    }

    /// The timer went off, with bytes up to `max` sent.
    fn timer(&mut self, now: Time, max: u64) {
        let _ = (now, max);
    }

    /// A timeout lowered the threshold.
    fn collapsed(&mut self, window: &Window) {
        self.reduced(window);
    }

    /// Nothing was sent for longer than a timeout (RFC 5681 section 4.1).
    fn restart(&mut self, window: &mut Window) {
        window.cwnd = window.cwnd.min(window.initial);
    }

    /// The rate at which segments leave, in bytes of data a second; `None` if they are not paced.
    fn pacing_rate(&self, window: &Window, srtt: Option<Span>) -> Option<f64> {
        let _ = (window, srtt);
        None
    }

    /// The model of the path that sets the window, where there is one.
    fn model(&mut self) -> Option<&mut Bbr> {
        None
    }
}
