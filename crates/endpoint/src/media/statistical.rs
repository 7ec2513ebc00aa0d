//! The statistical video model of RFC 8593 section 5.
//!
//! In the steady state the interval and the size of frames deviate from their references by
//! independent zero-mean Laplace variables. A changed target starts a transient: one large frame, then
//! smaller ones, such that the mean over the transient is the new rate.
//!
//! The RFC does not say which frames are key frames. As in libwebrtc, whose encoders change their rate without one, a
//! changed target makes none: key frames are the first one, the first one after a pause, and those that are requested.
//! Each of them starts a transient, too, and may be larger than the transient's first frame.

use super::key_debt::KeyDebt;
use super::{Bounds, Frame, Source};
use serde::{Deserialize, Serialize};
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Stream, Time};

/// The parameters of RFC 8593 section 5, table 1, with their example values as defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// FPS: frames per second.
    pub fps: f64,
    /// tau_v: time after a change of the encoder's rate in which further requests have to wait. The newest waiting
    /// request is applied afterwards.
    pub tau_v: Span,
    /// K_d: length of a transient in frames.
    pub transient_frames: u32,
    /// K_B: bytes of the first frame of a transient.
    pub burst: u32,
    /// Size of a key frame as a multiple of B_0, where the first frame of a transient is smaller; 1: key frames are as
    /// large as that. The frames after it are smaller in turn, until the mean is the rate.
    pub key_factor: f64,
    /// Smallest change, relative to the rate before, that starts a transient. In the RFC each change does; under a
    /// controller that requests a little more at each report there would be nothing but transients, so that small
    /// changes start none, as in syncodecs (`bigChangeRatio`).
    pub transient_change: f64,
    /// t_0: reference interval between frames; `None`: 1 / FPS.
    pub interval: Option<Span>,
    /// B_0: reference frame size in bytes; `None`: R_v / 8 / FPS, which follows the target.
    pub frame_bytes: Option<u32>,
    /// SCALE_t: scale of the Laplace variable that is added to the normalised interval.
    pub scale_t: f64,
    /// SCALE_B: scale of the Laplace variable that is added to the normalised size.
    pub scale_b: f64,
    /// R_min and R_max: range of rates.
    pub bounds: Bounds,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fps: 30.0,
            tau_v: Span::from_millis(200),
            transient_frames: 8,
            burst: 13_500,
            key_factor: 1.0,
            transient_change: 0.1,
            interval: None,
            frame_bytes: None,
            scale_t: 0.15,
            scale_b: 0.15,
            bounds: Bounds::new(Rate::from_kbps(150), Rate::from_kbps(1500)),
        }
    }
}

impl Settings {
    /// t_0 of the frame rate, if none is given.
    fn interval(&self) -> Span {
        self.interval.unwrap_or_else(|| Span::from_secs_f64(1.0 / self.fps))
    }

    fn check(&self) -> Result<(), String> {
        if !(0.001..=100_000.0).contains(&self.fps) {
            return Err(format!("fps is {}; it must be between 0.001 and 100000", self.fps));
        }
        for (name, value, max) in [
            ("transient_change", self.transient_change, 1e9),
            ("scale_t", self.scale_t, 1.0),
            ("scale_b", self.scale_b, 1.0),
        ] {
            if !(0.0..=max).contains(&value) {
                return Err(format!("{name} is {value}; it must be between 0 and {max}"));
            }
        }
        if !(1.0..=KEY_FACTOR_MAX).contains(&self.key_factor) {
            return Err(format!(
                "key_factor is {}; it must be between 1 and {KEY_FACTOR_MAX}",
                self.key_factor
            ));
        }
        if self.interval.is_some_and(|span| span <= Span::ZERO) {
            return Err(format!("interval is {}; it must be positive", self.interval.unwrap_or_default()));
        }
        if self.tau_v.is_negative() {
            return Err(format!("tau_v is {}; it must not be negative", self.tau_v));
        }
        Ok(())
    }
}

/// The model and its state.
#[derive(Debug)]
pub struct Statistical {
    settings: Settings,
    interval: Span,
    intervals: Stream,
    sizes: Stream,
    next: Time,
    /// R_v: the rate of the encoder.
    rate: Rate,
    requested: Rate,
    deaf_until: Time,
    /// Remaining frames of the transient, the large one included.
    transient_remaining: u32,
    /// Size of the frames of the transient after the first.
    transient_rest: f64,
    /// Fraction of a byte that rounding carries over.
    fraction: f64,
    /// Whether the next frame is a key frame.
    key: bool,
    debt: KeyDebt,
    started: bool,
}

/// Bound of deviations, on both sides, which keeps intervals and sizes from being negative and their means unchanged:
/// at a scale of 0.15 it cuts off 0.14 % of the frames.
const DEVIATION_MAX: f64 = 0.99;

/// Largest size of a key frame in mean frames: ten times what libwebrtc allows at 30 frames a second
/// (`LibvpxVp8Encoder::MaxIntraTarget`, 9 times).
pub const KEY_FACTOR_MAX: f64 = 100.0;

impl Statistical {
    /// The model with substreams `component/interval` and `component/size`.
    ///
    /// # Errors
    /// The problem of a setting.
    pub fn new(settings: Settings, seed: u64, component: &str) -> Result<Self, String> {
        settings.check()?;
        Ok(Self {
            interval: settings.interval(),
            intervals: Stream::new(seed, component, "interval"),
            sizes: Stream::new(seed, component, "size"),
            next: Time::MAX,
            rate: Rate::ZERO,
            requested: Rate::ZERO,
            deaf_until: Time::ZERO,
            transient_remaining: 0,
            transient_rest: 0.0,
            fraction: 0.0,
            key: false,
            debt: KeyDebt::new(settings.key_factor, settings.transient_frames),
            started: false,
            settings,
        })
    }

    /// B_0 in bytes.
    fn reference(&self) -> f64 {
        match self.settings.frame_bytes {
            Some(bytes) => f64::from(bytes),
            None => self.rate.as_bps_f64() / 8.0 / self.settings.fps,
        }
    }

    /// Applies the requested rate, if the encoder listens again.
    fn listen(&mut self, now: Time) {
        if now < self.deaf_until || self.requested == self.rate {
            return;
        }
        let (old, new) = (self.rate.as_bps_f64(), self.requested.as_bps_f64());
        self.rate = self.requested;
        self.deaf_until = now + self.settings.tau_v;
        if old == 0.0 || (new - old).abs() > self.settings.transient_change * old {
            self.begin_transient();
        }
    }

    fn begin_transient(&mut self) {
        self.transient_remaining = self.settings.transient_frames;
    }

    /// Mean size of the next frame, before its deviation, and whether it is a large one.
    fn plan(&mut self) -> (f64, bool) {
        let reference = self.reference();
        if self.transient_remaining == 0 {
            return (reference, false);
        }
        let first = self.transient_remaining == self.settings.transient_frames;
        self.transient_remaining -= 1;
        if !first {
            return (self.transient_rest, false);
        }
        let frames = f64::from(self.settings.transient_frames);
        // at a low rate the burst alone would exceed the bytes of all frames of the transient
        let burst = f64::from(self.settings.burst).min(frames * reference).max(reference);
        self.transient_rest = if frames > 1.0 { (frames * reference - burst) / (frames - 1.0) } else { 0.0 };
        (burst, true)
    }

    /// Moves on to the next picture: draws its random numbers, and returns the deviation of its size.
    fn next_picture(&mut self) -> f64 {
        let interval_off = self.intervals.laplace(self.settings.scale_t).clamp(-DEVIATION_MAX, DEVIATION_MAX);
        let size_off = self.sizes.laplace(self.settings.scale_b).clamp(-DEVIATION_MAX, DEVIATION_MAX);
        self.next += self.interval.scaled(1.0 + interval_off);
        size_off
    }
}

impl Source for Statistical {
    fn start(&mut self, now: Time) {
        self.next = now;
        self.started = true;
        self.deaf_until = now;
        self.request_key();
    }

    fn due(&self) -> Time {
        self.next
    }

    fn frame(&mut self, now: Time) -> Frame {
        self.listen(now);
        let size_off = self.next_picture();
        let (planned, burst) = self.plan();
        let key = std::mem::take(&mut self.key);
        let reference = self.reference();
        let mean = match (key, burst) {
            (true, _) => planned + self.debt.take(reference, planned),
            (false, true) => planned,
            (false, false) => planned - self.debt.pay(reference, planned),
        };
        // the size of the burst is a setting and does not deviate
        let size = if burst || key { mean } else { mean * (1.0 + size_off) } + self.fraction;
        let bytes = tidegate_core::math::floor(size.max(0.0));
        self.fraction = size - bytes;
        Frame { bytes: bytes as u32, key }
    }

    fn leaves_out(&self) -> bool {
        true
    }

    fn leave_out(&mut self) {
        self.next_picture();
    }

    fn set_target(&mut self, now: Time, target: Rate) {
        self.requested = self.settings.bounds.clamp(target);
        if self.started {
            self.listen(now);
        } else {
            self.rate = self.requested;
        }
    }

    fn request_key(&mut self) {
        self.key = true;
        self.begin_transient();
    }

    fn bounds(&self) -> Bounds {
        self.settings.bounds
    }

    fn frame_rate(&self) -> Option<f64> {
        Some(self.settings.fps)
    }

    fn set_frame_rate(&mut self, fps: f64) -> Result<(), String> {
        let (fps_before, reference) = (self.settings.fps, self.reference());
        let settings = Settings { fps, ..self.settings.clone() };
        settings.check()?;
        self.interval = settings.interval();
        self.settings = settings;
        // what is left to pay of a burst or a key frame stays as many bytes
        self.transient_rest += self.reference() - reference;
        if self.settings.frame_bytes.is_none() {
            self.debt.scale_mean(fps_before / fps);
        }
        Ok(())
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.intervals.draws());
        visit(self.sizes.draws());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(settings: Settings) -> Statistical {
        let mut source = Statistical::new(settings, 1, "caller/video").expect("valid settings");
        source.start(Time::ZERO);
        source
    }

    #[test]
    fn the_mean_rate_and_the_moments_are_those_of_the_model() {
        let mut source = source(Settings::default());
        source.set_target(Time::ZERO, Rate::from_mbps(1));
        let frames = 60_000;
        let (mut sizes, mut gaps, mut last) = (Vec::new(), Vec::new(), None::<Time>);
        for _ in 0..frames {
            let now = source.due();
            if let Some(last) = last {
                gaps.push((now - last).as_secs_f64() * 30.0);
            }
            last = Some(now);
            sizes.push(f64::from(source.frame(now).bytes) / (1e6 / 8.0 / 30.0));
        }
        let seconds = last.expect("frames").as_secs_f64();
        let rate = sizes.iter().sum::<f64>() * (1e6 / 30.0) / seconds;
        assert!((rate - 1e6).abs() < 0.02 * 1e6, "{rate} bit/s");
        let moments = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64)
        };
        // the variance of a Laplace variable is 2 scale^2 = 0.045, less what the cut takes
        for (quantity, values) in [("sizes", &sizes[8..]), ("intervals", &gaps[..])] {
            let (mean, variance) = moments(values);
            assert!((mean - 1.0).abs() < 0.005, "{quantity}: mean {mean}");
            assert!((0.042..0.046).contains(&variance), "{quantity}: variance {variance}");
        }
    }

    #[test]
    fn a_picture_that_is_left_out_draws_its_random_numbers() {
        let settings = Settings { transient_frames: 1, burst: 10, ..Settings::default() };
        let (mut complete, mut thinned) = (source(settings.clone()), source(settings));
        for source in [&mut complete, &mut thinned] {
            source.set_target(Time::ZERO, Rate::from_mbps(1));
            source.frame(source.due());
        }
        for number in 0..100 {
            let due = complete.due();
            assert_eq!(thinned.due(), due);
            let frame = complete.frame(due);
            if number % 3 == 0 {
                thinned.leave_out();
            } else {
                // equal except for the fraction of a byte that the picture left out would have carried over
                assert!(thinned.frame(due).bytes.abs_diff(frame.bytes) <= 1);
            }
        }
    }

    #[test]
    fn a_transient_is_a_burst_and_smaller_frames_at_the_new_rate() {
        let mut source = source(Settings { scale_b: 0.0, scale_t: 0.0, ..Settings::default() });
        source.set_target(Time::ZERO, Rate::from_mbps(1));
        let first: Vec<Frame> = (0..9).map(|_| source.frame(source.due())).collect();
        assert_eq!(first[0], Frame { bytes: 13_500, key: true });
        // (8 * 4166.67 - 13500) / 7 = 2833.33
        assert!(first[1..8].iter().all(|f| (2833..=2834).contains(&f.bytes) && !f.key), "{first:?}");
        assert_eq!(first[..8].iter().map(|f| f.bytes).sum::<u32>(), 33_333);
        assert!((4166..=4167).contains(&first[8].bytes));
        // 150 kb/s: the 8 frames of the transient have 5000 bytes in all, less than the burst
        let now = source.due();
        source.set_target(now, Rate::from_kbps(10));
        let low: Vec<u32> = (0..9).map(|_| source.frame(source.due()).bytes).collect();
        assert!((5000..=5001).contains(&low[0]) && low[1..8].iter().all(|&b| b <= 1), "{low:?}");
        assert!((624..=626).contains(&low[8]));
    }

    #[test]
    fn key_frames_are_the_first_after_a_start_and_requested_ones_but_no_transients() {
        let mut source = source(Settings { scale_b: 0.0, scale_t: 0.0, ..Settings::default() });
        source.set_target(Time::ZERO, Rate::from_mbps(1));
        let mut frame = |change: fn(&mut Statistical, Time)| {
            let due = source.due();
            change(&mut source, due);
            (0..9).for_each(|_| source.leave_out());
            let frames: Vec<Frame> = (0..8).map(|_| source.frame(source.due())).collect();
            assert!(frames[1..].iter().all(|f| !f.key), "{frames:?}");
            (frames[0].bytes, frames[0].key)
        };
        assert_eq!(
            frame(|_, _| {}),
            (13_500, true),
            "the first one, though pictures were left out before it"
        );
        assert_eq!(frame(|source, now| source.set_target(now, Rate::from_kbps(500))), (13_500, false));
        assert_eq!(frame(|source, now| source.set_target(now, Rate::from_kbps(1500))), (13_500, false));
        assert_eq!(frame(|source, _| source.request_key()), (13_500, true));
        assert_eq!(frame(|_, _| {}), (6250, false));
        assert_eq!(frame(|source, now| source.start(now)), (13_500, true), "after a pause");
    }

    /// The first `count` frames at a target, without deviations.
    fn frames(key_factor: f64, target: Rate, count: usize) -> Vec<Frame> {
        let mut source = source(Settings { key_factor, scale_b: 0.0, scale_t: 0.0, ..Settings::default() });
        source.set_target(Time::ZERO, target);
        (0..count).map(|_| source.frame(source.due())).collect()
    }

    #[test]
    fn a_key_frame_costs_its_factor_and_the_frames_after_it_pay() {
        // 1500 kb/s: 6250 bytes a frame. A transient alone is 13500 bytes and 7 frames of (8 * 6250 - 13500) / 7
        let sizes = |factor, rate, count| -> Vec<u32> {
            frames(factor, rate, count).iter().map(|frame| frame.bytes).collect()
        };
        let rate = Rate::from_kbps(1500);
        let transient = sizes(1.0, rate, 9);
        assert_eq!((transient[0], transient[8]), (13_500, 6250));
        assert_eq!(transient[1], 36_500 / 7);
        assert_eq!(sizes(2.0, rate, 9), transient, "twice 6250 bytes are less");
        // three times, paid for within the transient: 7 frames of (8 - 3) / 7 of the mean
        let three = sizes(3.0, rate, 9);
        assert_eq!((three[0], three[8]), (18_750, 6250));
        assert!(three[1..8].iter().all(|bytes| (4464..=4465).contains(bytes)), "{three:?}");
        assert_eq!(three[..8].iter().sum::<u32>(), 50_000);
        // nine times: 42750 bytes more than in the transient. 16 frames pay 2672 of them each; those of the transient
        // have 5214 and pay half, so that a seventeenth pays the rest
        let nine = sizes(9.0, rate, 19);
        assert_eq!((nine[0], nine[18]), (56_250, 6250));
        assert!(nine[1..8].iter().all(|bytes| (2607..=2608).contains(bytes)), "{nine:?}");
        assert!((18 * 6250 - 1..=18 * 6250).contains(&nine[..18].iter().sum::<u32>()), "{nine:?}");
        // 300 kb/s: the burst takes all 8 frames of the transient, and three times the mean is less
        assert_eq!(sizes(3.0, Rate::from_kbps(300), 9), sizes(1.0, Rate::from_kbps(300), 9));
    }

    #[test]
    fn a_change_of_the_target_is_not_paid_for_as_a_key_frame_is() {
        let mut source =
            source(Settings { key_factor: 9.0, scale_b: 0.0, scale_t: 0.0, ..Settings::default() });
        source.set_target(Time::ZERO, Rate::from_kbps(1500));
        let mut sum: u32 = (0..3).map(|_| source.frame(source.due()).bytes).sum();
        // a transient in the middle: its burst pays nothing, and what is left of the key frame is paid for after it
        source.begin_transient();
        let burst = source.frame(source.due());
        assert_eq!(burst, Frame { bytes: 13_500, key: false });
        sum += burst.bytes + (0..40).map(|_| source.frame(source.due()).bytes).sum::<u32>();
        // the first transient was cut short: two of its seven frames have paid for its burst
        let unpaid: u32 = (13_500 - 6250) * 5 / 7;
        assert!((44 * 6250 + unpaid).abs_diff(sum) <= 1, "{sum}");
    }

    #[test]
    fn another_frame_rate_changes_intervals_and_sizes_and_not_the_rate() {
        let settings = Settings { key_factor: 9.0, scale_b: 0.0, scale_t: 0.0, ..Settings::default() };
        let mut source = source(settings);
        source.set_target(Time::ZERO, Rate::from_kbps(1500));
        let mut take = |fps: f64, count: usize| -> (Span, u32) {
            source.set_frame_rate(fps).expect("a frame rate");
            let begin = source.due();
            let bytes = (0..count).map(|_| source.frame(source.due()).bytes).sum();
            (source.due() - begin, bytes)
        };
        // in the transient of the first frame, and while its key frame is being paid for
        let parts = [take(30.0, 4), take(10.0, 3), take(60.0, 120), take(15.0, 15)];
        let near = |length: Span, seconds: f64| (length.as_secs_f64() - seconds).abs() < 1e-6;
        assert!(near(parts[1].0, 0.3) && near(parts[2].0, 2.0) && near(parts[3].0, 1.0), "{parts:?}");
        assert!(parts[3].1.abs_diff(187_500) <= 1, "1.5 Mbit/s in 15 frames: {parts:?}");
        let (length, bytes) =
            parts.iter().fold((Span::ZERO, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        assert!((f64::from(bytes) - 187_500.0 * length.as_secs_f64()).abs() <= 2.0, "{parts:?}");
        assert!(source.set_frame_rate(0.0).is_err());
    }

    #[test]
    fn the_encoder_is_deaf_for_its_tau_v_time_and_listens_afterwards() {
        let mut source = source(Settings { scale_b: 0.0, scale_t: 0.0, ..Settings::default() });
        source.set_target(Time::ZERO, Rate::from_mbps(1));
        (0..3).for_each(|_| _ = source.frame(source.due()));
        source.set_target(Time::from_millis(100), Rate::from_kbps(1050));
        source.set_target(Time::from_millis(150), Rate::from_kbps(1080));
        assert_eq!(source.rate, Rate::from_mbps(1));
        while source.due() < Time::from_millis(200) {
            let _ = source.frame(source.due());
        }
        assert_eq!(source.rate, Rate::from_mbps(1));
        let _ = source.frame(source.due());
        assert_eq!(source.rate, Rate::from_kbps(1080), "the newest request");
        assert_eq!(source.transient_remaining, 0, "8 % more is no transient");
    }

    #[test]
    fn the_number_of_draws_does_not_depend_on_the_rate() {
        let count = |rate| {
            let mut source = source(Settings::default());
            source.set_target(Time::ZERO, rate);
            (0..100).for_each(|_| _ = source.frame(source.due()));
            let mut draws = Vec::new();
            source.draws(&mut |d| draws.push(d));
            draws
        };
        assert_eq!(count(Rate::from_kbps(150)), count(Rate::from_kbps(1500)));
    }

    #[test]
    fn bad_settings_are_named() {
        let bad = Settings { scale_b: -0.1, ..Settings::default() };
        let error = Statistical::new(bad, 1, "x").expect_err("a negative scale");
        assert!(error.contains("scale_b") && error.contains("-0.1"), "{error}");
        for key_factor in [0.5, 101.0, f64::NAN] {
            let bad = Settings { key_factor, ..Settings::default() };
            let error = Statistical::new(bad, 1, "x").expect_err("a factor out of bounds");
            assert!(error.contains("key_factor") && error.contains("between 1 and 100"), "{error}");
        }
    }
}
