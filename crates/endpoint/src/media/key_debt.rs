//! The debt of key frames: their bytes beyond the mean, for which the frames after them pay.

/// The part of key frames that later frames still have to pay for.
///
/// It counts in mean frames and not in bytes, so that what is left of it follows the target. It is never more than a key
/// frame takes: a key frame that comes before the last one is paid for is smaller by what is left, as an encoder with
/// a rate buffer makes it. So the mean rate holds however often key frames are requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyDebt {
    /// Size of a key frame as a multiple of the mean frame.
    factor: f64,
    /// Number of frames that pay for a key frame.
    payers: f64,
    /// The part that is left, in mean frames.
    left: f64,
    /// The part that each frame pays, in mean frames.
    payment: f64,
}

/// The part of a frame that pays at most: libvpx lowers the target of a frame by half at most while its rate buffer is below
/// its optimum (`vp8/encoder/ratectrl.c`, `calc_pframe_target_size`: `percent_low / 200`, and libwebrtc's
/// `rc_undershoot_pct` is 100).
const PAYMENT_MAX: f64 = 0.5;

impl KeyDebt {
    /// For key frames of `factor` mean frames, paid for in a transient of `transient_frames`, or in as many more that no
    /// frame pays more than a half.
    pub(crate) fn new(factor: f64, transient_frames: u32) -> Self {
        let payers = f64::from(transient_frames.max(2)) - 1.0;
        let payers = payers.max(tidegate_core::math::ceil((factor - 1.0) / PAYMENT_MAX));
        Self { factor, payers, left: 0.0, payment: 0.0 }
    }

    /// Bytes that a key frame takes beyond the `planned` ones, where a mean frame has `mean` bytes.
    pub(crate) fn take(&mut self, mean: f64, planned: f64) -> f64 {
        if mean <= 0.0 {
            return 0.0;
        }
        let taken = (self.factor - planned / mean - self.left).max(0.0);
        self.left += taken;
        self.payment = self.left / self.payers;
        taken * mean
    }

    /// Bytes that a frame of `planned` bytes pays, where a mean frame has `mean` bytes.
    pub(crate) fn pay(&mut self, mean: f64, planned: f64) -> f64 {
        if self.left <= 0.0 || mean <= 0.0 {
            return 0.0;
        }
        let paid = self.payment.min(self.left).min(PAYMENT_MAX * planned / mean);
        self.left -= paid;
        paid * mean
    }

    /// Makes the mean frame larger by `factor`, as a lower frame rate does: what is left stays as many bytes.
    pub(crate) fn scale_mean(&mut self, factor: f64) {
        self.left /= factor;
        self.payment /= factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of `count` frames of a mean of 1000 bytes, a key frame each `every`.
    fn sizes(factor: f64, every: usize, count: usize) -> Vec<f64> {
        let mut debt = KeyDebt::new(factor, 8);
        let size = |k: usize| {
            if k.is_multiple_of(every) {
                1000.0 + debt.take(1000.0, 1000.0)
            } else {
                1000.0 - debt.pay(1000.0, 1000.0)
            }
        };
        (0..count).map(size).collect()
    }

    #[test]
    fn the_frames_after_a_key_frame_pay_for_it_and_for_no_more() {
        for (factor, payers) in [(1.0, 7), (3.0, 7), (4.5, 7), (9.0, 16)] {
            let sizes = sizes(factor, 1000, 40);
            assert!((sizes[0] - 1000.0 * factor).abs() < 1e-9, "{factor}: {sizes:?}");
            let each = 1000.0 * (1.0 - (factor - 1.0) / f64::from(payers));
            let (paying, rest) = sizes[1..].split_at(payers as usize);
            assert!(paying.iter().all(|size| (size - each).abs() < 1e-6), "{factor}: {sizes:?}");
            assert!(rest.iter().all(|size| (size - 1000.0).abs() < 1e-6), "{factor}: {sizes:?}");
        }
    }

    #[test]
    fn the_mean_holds_however_often_key_frames_come() {
        // 300 ms at 30 frames a second, and more often still
        for (factor, every) in [(3.0, 9), (9.0, 9), (9.0, 2), (100.0, 5), (9.0, 1)] {
            let sizes = sizes(factor, every, 10_000);
            let sum: f64 = sizes.iter().sum();
            assert!((0.0..=1000.0 * (factor - 1.0)).contains(&(sum - 1e7)), "{factor} {every}: {sum}");
            assert!(sizes.iter().all(|size| (500.0..=1000.0 * factor).contains(size)), "{factor} {every}");
        }
        // 9 mean frames each 9 frames: 8 halves are paid, so that a key frame has 1 + 4
        let sizes = sizes(9.0, 9, 900);
        assert_eq!((sizes[891], sizes[892]), (5000.0, 500.0));
    }

    #[test]
    fn what_is_left_stays_as_many_bytes_where_frames_become_larger() {
        let mut debt = KeyDebt::new(8.0, 8);
        assert_eq!(debt.take(1000.0, 1000.0), 7000.0);
        debt.scale_mean(4.0);
        assert_eq!(debt.pay(4000.0, 4000.0), 500.0, "as before");
        assert_eq!((0..100).map(|_| debt.pay(4000.0, 4000.0)).sum::<f64>(), 6500.0);
    }

    #[test]
    fn what_is_left_follows_the_target() {
        let mut debt = KeyDebt::new(8.0, 8);
        assert_eq!(debt.take(1000.0, 1000.0), 7000.0);
        assert_eq!(debt.pay(1000.0, 1000.0), 500.0);
        assert_eq!(debt.pay(100.0, 100.0), 50.0, "a tenth of the rate");
        assert_eq!((0..100).map(|_| debt.pay(100.0, 100.0)).sum::<f64>(), 600.0);
        assert_eq!([debt.take(0.0, 0.0), debt.pay(0.0, 0.0)], [0.0; 2], "a target of zero");
    }
}
