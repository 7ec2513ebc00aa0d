//! The congestion window, and the interface of algorithms of congestion control.

use super::model::Model;
use super::offload::MIN_TSO_SEGS;
use std::fmt::Debug;
use tidegate_core::{Span, Time};

/// The congestion window and the slow start threshold, in bytes.
#[derive(Debug)]
pub(super) struct Window {
    /// The congestion window.
    pub(super) cwnd: f64,
    /// The slow start threshold.
    pub(super) ssthresh: f64,
    pub(super) segment: f64,
    pub(super) initial: f64,
}

impl Window {
    /// A window with an initial size in segments.
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

    /// Lowers the threshold to a share of the `flight` (RFC 5681 equation 4; RFC 9438 section 4.6).
    fn lower(&mut self, flight: u64, share: f64) {
        // segments that limited transmit sent beyond cwnd do not count (RFC 5681 section 3.2 step 2)
        let flight = (flight as f64).min(self.cwnd);
        self.ssthresh = (flight * share).max(2.0 * self.segment);
    }
}

/// An algorithm of congestion control: growth and reduction of the window.
///
/// The default methods are common to most algorithms: slow start, and the rules of RFC 5681 after a loss, a timeout and
/// an idle time.
pub(super) trait CongestionControl: Debug + Send {
    /// Grows the window in congestion avoidance for `acked` bytes of new data, while the window was in use.
    fn avoid(&mut self, window: &mut Window, now: Time, acked: f64, srtt: Option<Span>);

    /// The share of the flight that the window keeps after a loss.
    fn beta(&self) -> f64 {
        0.5
    }

    /// Grows the window for `acked` bytes of new data, while the window was in use.
    #[inline]
    fn grow(&mut self, window: &mut Window, now: Time, acked: u64, srtt: Option<Span>) {
        let acked = acked as f64;
        if window.is_in_slow_start() {
            window.cwnd += acked.min(window.segment);
        } else {
            self.avoid(window, now, acked, srtt);
        }
    }

    /// Handles an acknowledgement of new data while the window was not in use; it does not grow.
    fn not_in_use(&mut self) {}

    /// Counts `bytes` up to `una` that were acknowledged with a mark or without; bytes up to `max` had been sent.
    fn echoed(&mut self, now: Time, bytes: u64, una: u64, max: u64, marked: bool) {
        let _ = (now, bytes, una, max, marked);
    }

    /// Takes in a round trip measured by an acknowledgement of the bytes up to `una`, with bytes up to `max` sent; to
    /// be called before the window grows by it.
    fn measured(&mut self, window: &mut Window, now: Time, rtt: Span, una: u64, max: u64) {
        let _ = (window, now, rtt, una, max);
    }

    /// Responds to a mark with `flight` bytes under way. Returns whether the window was reduced, by default as after a
    /// loss (RFC 3168 section 6.1.2).
    fn marked(&mut self, window: &mut Window, now: Time, flight: u64) -> bool {
        let _ = now;
        self.loss(window, flight);
        self.fall(window);
        true
    }

    /// Sets ssthresh after a loss or a mark with `flight` bytes under way. Recovery sets cwnd.
    fn loss(&mut self, window: &mut Window, flight: u64) {
        window.lower(flight, self.beta());
        self.reduced(window);
    }

    /// Takes note that a loss lowered the threshold.
    fn reduced(&mut self, window: &Window) {
        let _ = window;
    }

    /// Reduces the window after a loss or a mark.
    fn fall(&self, window: &mut Window) {
        window.cwnd = window.ssthresh;
    }

    /// Handles a timeout with `flight` bytes under way, and bytes up to `max` sent. `None` if there was a timeout of
    /// the same segment before; then ssthresh does not change (RFC 5681 section 3.1).
    fn timeout(&mut self, window: &mut Window, now: Time, flight: Option<u64>, max: u64) {
        self.timer(now, max);
        if let Some(flight) = flight {
            window.lower(flight, self.beta());
            self.collapsed(window);
        }
        window.cwnd = window.segment;
    }

    /// Takes note of a timeout, with bytes up to `max` sent.
    fn timer(&mut self, now: Time, max: u64) {
        let _ = (now, max);
    }

    /// Takes note that a timeout lowered the threshold.
    fn collapsed(&mut self, window: &Window) {
        self.reduced(window);
    }

    /// Reduces the window after idle time longer than a timeout (RFC 5681 section 4.1).
    fn restart(&mut self, window: &mut Window) {
        window.cwnd = window.cwnd.min(window.initial);
    }

    /// The rate at which segments leave, in bytes of data a second; `None` if they are not paced.
    fn pacing_rate(&self, window: &Window, srtt: Option<Span>) -> Option<f64> {
        let _ = (window, srtt);
        None
    }

    /// The smallest burst with segmentation offload, in segments (Linux's `min_tso_segs`).
    fn min_tso_segs(&self) -> u32 {
        MIN_TSO_SEGS
    }

    /// The model of the path that sets the window, if there is one.
    fn model(&mut self) -> Option<&mut dyn Model> {
        None
    }
}
