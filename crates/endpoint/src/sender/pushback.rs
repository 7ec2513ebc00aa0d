//! Pictures that video leaves out because congestion-window pushback reduces its target: libwebrtc's
//! `VideoStreamEncoder::UpdateTargetBitrate` and `OnFrame` (`video/video_stream_encoder.cc`).

use super::Sender;
use tidegate_core::{Decision, Rate, Span};

/// Expected queue time above which encoders pause, whatever the queue's limit is (libwebrtc's
/// `CongestionControlHandler::GetUpdate` and `PacingController`).
const MAX_EXPECTED_QUEUE_LENGTH: Span = Span::from_secs(2);

/// The part of the target up to which pushback is ignored.
const REDUCE_RATIO_MIN: f64 = 0.01;
/// Smallest interval between pictures that are left out: at most every other one is.
const FRAME_DROP_INTERVAL_MIN: u64 = 2;

/// The part of the target that pushback takes (`cwnd_reduce_ratio`).
pub(super) fn ratio(decision: &Decision) -> f64 {
    let target = decision.target;
    match decision.pushback {
        Some(reduced) if reduced < target => {
            target.saturating_sub(reduced).as_bps_f64() / target.as_bps_f64()
        }
        _ => 0.0,
    }
}

/// The choice of pictures of a stream that are left out.
#[derive(Debug, Default)]
pub(super) struct CwndFrameDropper {
    /// One picture of so many is left out; `None`: none is.
    interval: Option<u64>,
    /// Pictures that came while pushback was on. The count goes on where it was when pushback begins again.
    pictures: u64,
    /// Pictures that were left out.
    pub(super) count: u64,
}

impl CwndFrameDropper {
    /// Sets the part of `target` that pushback takes, and returns the rate at which the remaining pictures are encoded:
    /// `min_rate` at least.
    pub(super) fn set(&mut self, target: Rate, ratio: f64, min_rate: Rate) -> Rate {
        let reduction = ((target.as_bps_f64() * ratio) as u64).min(target.saturating_sub(min_rate).as_bps());
        self.interval = match target.as_bps().checked_div(reduction) {
            Some(interval) if ratio > REDUCE_RATIO_MIN => Some(interval.max(FRAME_DROP_INTERVAL_MIN)),
            _ => None,
        };
        let dropped = self.interval.map_or(0, |interval| target.as_bps() / interval);
        target.saturating_sub(Rate::from_bps(dropped))
    }

    /// Ends leaving out pictures.
    pub(super) fn stop(&mut self) {
        self.interval = None;
    }

    /// Whether the next picture is left out: in its turn, or because the encoder is paused.
    pub(super) fn next(&mut self, paused: bool) -> bool {
        let turn = self.interval.is_some_and(|interval| self.pictures.is_multiple_of(interval));
        self.pictures += u64::from(self.interval.is_some());
        let out = turn || paused;
        self.count += u64::from(out);
        out
    }
}

impl Sender {
    /// Whether the encoders pause: if the decision drains the queue, while the queue takes too long to leave.
    pub(super) fn paused(&self) -> bool {
        self.decision.drain_queue && self.pacer.expected_queue_time() > MAX_EXPECTED_QUEUE_LENGTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_pushback_takes_is_that_of_the_decision() {
        let decision = |pushback| Decision { pushback, ..Decision::rate(Rate::from_kbps(1000)) };
        let reduction = |pushback: Option<u64>| ratio(&decision(pushback.map(Rate::from_kbps)));
        assert_eq!(
            [None, Some(1000), Some(2000), Some(950), Some(0)].map(reduction),
            [0.0, 0.0, 0.0, 0.05, 1.0]
        );
        assert_eq!(ratio(&Decision { pushback: Some(Rate::ZERO), ..Decision::rate(Rate::ZERO) }), 0.0);
    }

    #[test]
    fn one_picture_of_so_many_is_left_out_and_the_rate_falls_by_as_much() {
        let set = |ratio, min_rate| {
            let mut out = CwndFrameDropper::default();
            let rate = out.set(Rate::from_kbps(1000), ratio, Rate::from_kbps(min_rate));
            (rate.as_bps(), out.interval)
        };
        assert_eq!(set(0.0, 100), (1_000_000, None));
        assert_eq!(set(0.01, 100), (1_000_000, None), "one percent is not enough");
        assert_eq!(set(0.02, 100), (980_000, Some(50)));
        assert_eq!(set(0.3, 100), (666_667, Some(3)), "1000 / 300, and a third less");
        assert_eq!(set(0.45, 100), (500_000, Some(2)));
        assert_eq!(set(0.9, 100), (500_000, Some(2)), "at most every other one");
        assert_eq!(set(0.9, 800), (800_000, Some(5)), "and not below the encoder's least rate");
        assert_eq!(set(0.9, 1000), (1_000_000, None));
        assert_eq!(set(0.9, 1200), (1_000_000, None));
    }

    #[test]
    fn the_count_goes_on_where_it_stopped() {
        let mut out = CwndFrameDropper::default();
        let take = |out: &mut CwndFrameDropper, count| -> Vec<bool> {
            (0..count).map(|_| out.next(false)).collect()
        };
        assert_eq!(take(&mut out, 3), [false; 3]);
        out.set(Rate::from_kbps(900), 0.34, Rate::ZERO);
        assert_eq!(take(&mut out, 4), [true, false, true, false], "900 / 306 is 2");
        out.set(Rate::from_kbps(900), 0.3, Rate::ZERO);
        assert_eq!(take(&mut out, 4), [false, false, true, false], "the fifth to the eighth, of three one");
        out.stop();
        assert_eq!(take(&mut out, 2), [false; 2]);
        out.set(Rate::from_kbps(900), 0.3, Rate::ZERO);
        assert_eq!((take(&mut out, 2), out.count), (vec![false, true], 4));
        assert_eq!(([out.next(true), out.next(false), out.next(false)], out.count), ([true, false, true], 6));
    }
}
