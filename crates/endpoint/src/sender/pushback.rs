//! Pictures that video leaves out to come down to what congestion-window pushback leaves of its target: libwebrtc's
//! `VideoStreamEncoder::UpdateTargetBitrate` and `OnFrame` (`video/video_stream_encoder.cc`).

use tidegate_core::{Decision, Rate};

/// Up to this part of the target is left alone.
const LEAST: f64 = 0.01;
/// At most every other picture is left out.
const LEAST_INTERVAL: u64 = 2;

/// The part of the target that pushback takes (`cwnd_reduce_ratio`).
pub(super) fn ratio(decision: &Decision) -> f64 {
    let target = decision.target;
    match decision.pushback {
        Some(left) if left < target => target.saturating_sub(left).as_bps_f64() / target.as_bps_f64(),
        _ => 0.0,
    }
}

/// Which pictures of a stream are left out.
#[derive(Debug, Default)]
pub(super) struct LeavingOut {
    /// One of so many is; `None`: none is.
    interval: Option<u64>,
    /// Pictures that came while any were left out. It goes on from where it was when that begins again.
    pictures: u64,
    /// Pictures that were left out.
    pub(super) count: u64,
}

impl LeavingOut {
    /// Takes up the part of `target` that pushback takes, and gives the rate at which the other pictures are encoded.
    /// An encoder is not asked for less than `least`.
    pub(super) fn set(&mut self, target: Rate, ratio: f64, least: Rate) -> Rate {
        let less = ((target.as_bps_f64() * ratio) as u64).min(target.saturating_sub(least).as_bps());
        self.interval = match target.as_bps().checked_div(less) {
            Some(interval) if ratio > LEAST => Some(interval.max(LEAST_INTERVAL)),
            _ => None,
        };
        let taken = self.interval.map_or(0, |interval| target.as_bps() / interval);
        target.saturating_sub(Rate::from_bps(taken))
    }

    /// None is left out any longer.
    pub(super) fn stop(&mut self) {
        self.interval = None;
    }

    /// Whether the picture that comes now is left out: in its turn, or because the encoder is paused.
    pub(super) fn next(&mut self, paused: bool) -> bool {
        let turn = self.interval.is_some_and(|interval| self.pictures.is_multiple_of(interval));
        self.pictures += u64::from(self.interval.is_some());
        let out = turn || paused;
        self.count += u64::from(out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_pushback_takes_is_that_of_the_decision() {
        let decision = |left| Decision { pushback: left, ..Decision::rate(Rate::from_kbps(1000)) };
        let found = |left: Option<u64>| ratio(&decision(left.map(Rate::from_kbps)));
        assert_eq!([None, Some(1000), Some(2000), Some(950), Some(0)].map(found), [0.0, 0.0, 0.0, 0.05, 1.0]);
        assert_eq!(ratio(&Decision { pushback: Some(Rate::ZERO), ..Decision::rate(Rate::ZERO) }), 0.0);
    }

    #[test]
    fn one_picture_of_so_many_is_left_out_and_the_rate_falls_by_as_much() {
        let set = |ratio, least| {
            let mut out = LeavingOut::default();
            let rate = out.set(Rate::from_kbps(1000), ratio, Rate::from_kbps(least));
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
        let mut out = LeavingOut::default();
        let take =
            |out: &mut LeavingOut, count| -> Vec<bool> { (0..count).map(|_| out.next(false)).collect() };
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
