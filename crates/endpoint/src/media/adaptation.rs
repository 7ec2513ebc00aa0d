//! Video whose resolution and frame rate follow its rate in steps, with a hysteresis.
//!
//! libwebrtc lowers them when the quantiser of its encoder is too coarse (`QualityScaler`,
//! modules/video_coding/utility/quality_scaler.cc), and raises the resolution when the quantiser is fine again and the
//! target reaches the least rate of the next resolution (`BitrateConstraint::IsAdaptationUpAllowed`,
//! video/adaptation/bitrate_constraint.cc). The models of encoders have no quantiser: here the rate alone decides.

use super::{Bounds, Frame, Source};
use serde::{Deserialize, Serialize};
use tidegate_core::record::VideoStep;
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Time};

/// Largest hysteresis. Ours: far above what keeps steps apart, and far below what overflows a rate.
const HYSTERESIS_MAX: f64 = 100.0;

/// A resolution and a frame rate, with the least rate at which the encoder has them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The least rate; zero for the first step.
    pub rate: Rate,
    /// Height of the pictures in pixels.
    pub height: u32,
    /// Frames per second.
    pub fps: f64,
}

/// Parameters of the adaptation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The steps, in ascending order of rate.
    pub steps: Vec<Step>,
    /// Ratio of the rate that is needed to go up to a step and the step's least rate.
    pub hysteresis: f64,
    /// Time for which the rate has to be enough for the next step before it is taken.
    pub up_after: Span,
    /// Time for which the rate has to be too little for a step before it is left.
    pub down_after: Span,
}

impl Settings {
    fn check(&self) -> Result<(), String> {
        if self.steps.first().is_none_or(|first| first.rate != Rate::ZERO) {
            return Err("the steps of resolution and frame rate must begin at a rate of zero".to_owned());
        }
        if !self.steps.is_sorted_by(|a, b| a.rate < b.rate) {
            return Err(
                "the steps of resolution and frame rate must be in ascending order of rate".to_owned()
            );
        }
        if let Some(step) = self.steps.iter().find(|step| step.height == 0) {
            return Err(format!("the height of the step at {:?} is zero; it must be positive", step.rate));
        }
        if !(1.0..=HYSTERESIS_MAX).contains(&self.hysteresis) {
            return Err(format!(
                "the hysteresis is {}; it must be between 1 and {HYSTERESIS_MAX}",
                self.hysteresis
            ));
        }
        for (direction, after) in [("up", self.up_after), ("down", self.down_after)] {
            if after.is_negative() {
                return Err(format!("a step {direction} is taken after {after}; it must not be negative"));
            }
        }
        Ok(())
    }

    /// The highest step that `rate` is enough for, whatever the hysteresis.
    fn index_at(&self, rate: Rate) -> usize {
        self.steps.partition_point(|step| step.rate <= rate).max(1) - 1
    }
}

/// A model of an encoder that is given its frame rate, and makes a key frame when its resolution changes.
pub(crate) struct Adapted {
    source: Box<dyn Source>,
    settings: Settings,
    /// Index of the step.
    index: usize,
    /// The rate of the encoder.
    rate: Rate,
    /// Whether a frame was encoded. Up to the first one each target chooses the step.
    encoded: bool,
    /// Since when the rate has been enough for the next step.
    enough_since: Option<Time>,
    /// Since when the rate has been too little for this step.
    short_since: Option<Time>,
    /// The step that began with the last frame, if that has not been taken.
    begun: Option<VideoStep>,
}

impl Adapted {
    /// # Errors
    /// When a parameter makes no sense, or the frame rate of the source is not to be changed.
    pub(crate) fn new(source: Box<dyn Source>, settings: Settings) -> Result<Self, String> {
        settings.check()?;
        let mut adapted = Self {
            source,
            settings,
            index: 0,
            rate: Rate::ZERO,
            encoded: false,
            enough_since: None,
            short_since: None,
            begun: None,
        };
        // from the last one to the first: all of them are checked
        for index in (0..adapted.settings.steps.len()).rev() {
            adapted.take(index)?;
        }
        Ok(adapted)
    }

    /// The step at present.
    fn present(&self) -> Step {
        self.settings.steps[self.index]
    }

    /// Goes to a step, with its frame rate.
    fn take(&mut self, index: usize) -> Result<(), String> {
        self.index = index;
        self.source.set_frame_rate(self.present().fps)
    }

    /// Notes since when the rate has been enough for the next step, or too little for this one.
    fn watch(&mut self, now: Time) {
        let Settings { steps, hysteresis, .. } = &self.settings;
        let next = steps.get(self.index + 1);
        let enough = next.is_some_and(|next| self.rate >= next.rate.scaled(*hysteresis));
        let short = self.rate < self.present().rate;
        self.enough_since = enough.then(|| self.enough_since.unwrap_or(now));
        self.short_since = short.then(|| self.short_since.unwrap_or(now));
    }

    /// Begins to wait again, from `now` on.
    fn watch_again(&mut self, now: Time) {
        (self.enough_since, self.short_since) = (None, None);
        self.watch(now);
    }

    /// The step of a frame at `now`: one up, or down to the one that the rate is enough for.
    fn next_index(&self, now: Time) -> usize {
        let waited = |since: Option<Time>, span| since.is_some_and(|since| now - since >= span);
        if waited(self.short_since, self.settings.down_after) {
            self.settings.index_at(self.rate)
        } else if waited(self.enough_since, self.settings.up_after) {
            self.index + 1
        } else {
            self.index
        }
    }

    /// Takes the step that is due with a frame at `now`.
    fn adapt(&mut self, now: Time) {
        let (before, index) = (self.present(), self.next_index(now));
        if index != self.index {
            let changed = self.take(index);
            debug_assert!(changed.is_ok(), "the frame rate of each step was checked: {changed:?}");
            self.watch_again(now);
            if self.present().height != before.height {
                self.source.request_key();
            }
        } else if self.encoded {
            return;
        }
        self.encoded = true;
        let Step { height, fps, .. } = self.present();
        self.begun = Some(VideoStep { height, fps });
    }
}

impl Source for Adapted {
    fn begin(&mut self, now: Time) {
        self.source.begin(now);
    }

    fn start(&mut self, now: Time) {
        // the time in which it was off does not count
        self.watch_again(now);
        self.source.start(now);
    }

    fn due(&self) -> Time {
        self.source.due()
    }

    fn step(&mut self, now: Time) {
        self.source.step(now);
    }

    fn frame(&mut self, now: Time) -> Frame {
        self.adapt(now);
        self.source.frame(now)
    }

    fn leaves_out(&self) -> bool {
        self.source.leaves_out()
    }

    fn leave_out(&mut self) {
        self.source.leave_out();
    }

    fn set_target(&mut self, now: Time, target: Rate) {
        self.rate = self.source.bounds().clamp(target);
        if self.encoded {
            self.watch(now);
        } else {
            let changed = self.take(self.settings.index_at(self.rate));
            debug_assert!(changed.is_ok(), "the frame rate of each step was checked: {changed:?}");
            self.watch_again(now);
        }
        self.source.set_target(now, target);
    }

    fn uses(&self) -> Rate {
        self.source.uses()
    }

    fn request_key(&mut self) {
        self.source.request_key();
    }

    fn bounds(&self) -> Bounds {
        self.source.bounds()
    }

    fn frame_rate(&self) -> Option<f64> {
        self.source.frame_rate()
    }

    fn frame_rate_at(&self, rate: Rate) -> Option<f64> {
        Some(self.settings.steps[self.settings.index_at(rate)].fps)
    }

    fn take_step(&mut self) -> Option<VideoStep> {
        self.begun.take()
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.source.draws(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ticker;
    use super::super::greedy::Greedy;
    use super::super::ideal::Ideal;
    use super::*;

    fn step(kbps: u64, height: u32, fps: f64) -> Step {
        Step { rate: Rate::from_kbps(kbps), height, fps }
    }

    /// 180 lines at 10 frames a second, from 200 kbit/s at 20, from 500 kbit/s 360 lines; hysteresis 1.2, 5 s and 2 s.
    fn settings() -> Settings {
        Settings {
            steps: vec![step(0, 180, 10.0), step(200, 180, 20.0), step(500, 360, 20.0)],
            hysteresis: 1.2,
            up_after: Span::from_secs(5),
            down_after: Span::from_secs(2),
        }
    }

    fn ideal(bounds: Bounds) -> Box<Ideal> {
        Box::new(Ideal::new(Ticker::new(30.0).expect("a frame rate"), bounds))
    }

    /// Frames and the steps that begin, under targets in kbit/s from the times in ms beside them on.
    #[derive(Default)]
    struct Played {
        frames: Vec<(i64, Frame)>,
        steps: Vec<(i64, u32, f64)>,
    }

    fn play(settings: Settings, targets: &[(i64, u64)], end: i64) -> Played {
        let mut source = Adapted::new(ideal(Bounds::default()), settings).expect("settings");
        let (mut played, mut targets) = (Played::default(), targets.iter().peekable());
        source.begin(Time::ZERO);
        source.start(Time::ZERO);
        loop {
            let due = source.due();
            if let Some(&&(at, kbps)) = targets.peek()
                && Time::from_millis(at) <= due
            {
                source.set_target(Time::from_millis(at), Rate::from_kbps(kbps));
                targets.next();
                continue;
            }
            let at = due.as_nanos() / 1_000_000;
            if at >= end {
                return played;
            }
            played.frames.push((at, source.frame(due)));
            played.steps.extend(source.take_step().map(|VideoStep { height, fps }| (at, height, fps)));
            assert_eq!(source.take_step(), None, "a step begins once");
        }
    }

    #[test]
    fn a_rate_that_is_enough_for_long_enough_takes_one_step_after_the_other() {
        // 600 kbit/s are 1.2 times 500
        let played = play(settings(), &[(0, 100), (3000, 600)], 20_000);
        assert_eq!(played.steps, [(0, 180, 10.0), (8000, 180, 20.0), (13_000, 360, 20.0)]);
        let keys: Vec<i64> = played.frames.iter().filter(|(_, frame)| frame.key).map(|(at, _)| *at).collect();
        assert_eq!(keys, [0, 13_000], "another frame rate needs none, another resolution does");
        let times: Vec<i64> = played.frames.iter().map(|(at, _)| *at).collect();
        let expected: Vec<i64> = (0..80).map(|k| 100 * k).chain((0..240).map(|k| 8000 + 50 * k)).collect();
        assert_eq!(times, expected);
        let bytes = |from, to| -> u32 {
            played.frames.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, frame)| frame.bytes).sum()
        };
        assert_eq!([bytes(0, 3000), bytes(3000, 8000), bytes(8000, 20_000)], [37_500, 375_000, 900_000]);
    }

    #[test]
    fn less_than_the_hysteresis_or_the_time_is_not_enough() {
        assert_eq!(play(settings(), &[(0, 100), (3000, 239)], 60_000).steps.len(), 1);
        assert_eq!(play(settings(), &[(0, 100), (3000, 240)], 60_000).steps.len(), 2);
        // 600 kbit/s from a second after the beginning of each period to its end
        let swings = |period: i64| -> Vec<(i64, u64)> {
            (0..12).flat_map(|k| [(period * k, 100), (period * k + 1000, 600)]).collect()
        };
        assert_eq!(play(settings(), &swings(6000), 60_000).steps.len(), 1, "4.9 s to the last frame");
        assert_eq!(play(settings(), &swings(6100), 60_000).steps[1], (6000, 180, 20.0), "5 s are enough");
    }

    #[test]
    fn within_the_hysteresis_nothing_goes_back_and_forth() {
        // the second step stays from 200 kbit/s on, and it takes 600 to go up to the third
        let swings: Vec<(i64, u64)> =
            (0..200).map(|k| (1000 * k, if k % 2 == 0 { 599 } else { 200 })).collect();
        let start = [(0, 240)].into_iter().chain(swings[1..].iter().copied()).collect::<Vec<_>>();
        let played = play(settings(), &start, 200_000);
        assert_eq!(played.steps, [(0, 180, 20.0)]);
        assert_eq!(played.frames.iter().filter(|(_, frame)| frame.key).count(), 1);
    }

    #[test]
    fn too_little_leads_down_to_what_it_is_enough_for() {
        let targets = [(0, 1000), (4000, 150), (5000, 1000), (10_000, 499), (20_000, 100)];
        let played = play(settings(), &targets, 30_000);
        // a second is too short; two steps at once would be as short
        assert_eq!(played.steps, [(0, 360, 20.0), (12_000, 180, 20.0), (22_000, 180, 10.0)]);
        let at_once = Settings { down_after: Span::ZERO, ..settings() };
        let played = play(at_once, &[(0, 1000), (4010, 150)], 8_000);
        assert_eq!(played.steps, [(0, 360, 20.0), (4050, 180, 10.0)]);
        let expected: Vec<i64> =
            (0..81).map(|k| 50 * k).chain((0..40).map(|k| 4050 + 100 * k).filter(|at| *at < 8000)).collect();
        assert_eq!(played.frames.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn before_the_first_frame_each_target_chooses_the_step() {
        let mut source = Adapted::new(ideal(Bounds::default()), settings()).expect("settings");
        source.begin(Time::ZERO);
        for (kbps, fps) in [(1000, 20.0), (100, 10.0), (200, 20.0)] {
            source.set_target(Time::ZERO, Rate::from_kbps(kbps));
            assert_eq!(source.frame_rate(), Some(fps), "{kbps}");
        }
        source.start(Time::from_secs(30));
        source.frame(source.due());
        assert_eq!(source.take_step(), Some(VideoStep { height: 180, fps: 20.0 }));
        assert_eq!(source.due(), Time::from_millis(30_050));
    }

    #[test]
    fn the_time_of_a_pause_does_not_count() {
        let mut source = Adapted::new(ideal(Bounds::default()), settings()).expect("settings");
        source.set_target(Time::ZERO, Rate::from_kbps(100));
        source.start(Time::ZERO);
        source.frame(Time::ZERO);
        source.set_target(Time::from_secs(1), Rate::from_kbps(300));
        source.start(Time::from_secs(20));
        source.take_step();
        while source.take_step().is_none() {
            source.frame(source.due());
        }
        assert_eq!(source.due(), Time::from_millis(25_050), "a frame of 20 a second after 5 s");
    }

    #[test]
    fn the_range_of_the_encoder_bounds_its_steps() {
        let bounds = Bounds::new(Rate::from_kbps(300), Rate::from_kbps(400));
        let mut source = Adapted::new(ideal(bounds), settings()).expect("settings");
        for kbps in [10, 5000] {
            source.set_target(Time::ZERO, Rate::from_kbps(kbps));
            assert_eq!(source.present(), settings().steps[1]);
        }
        let rates = [0, 199, 200, 5000].map(|kbps| source.frame_rate_at(Rate::from_kbps(kbps)));
        assert_eq!(rates, [10.0, 10.0, 20.0, 20.0].map(Some));
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let new = |change: fn(&mut Settings)| {
            let mut wrong = settings();
            change(&mut wrong);
            Adapted::new(ideal(Bounds::default()), wrong).map(|_| ()).expect_err("it makes no sense")
        };
        for (error, says) in [
            (new(|wrong| wrong.steps.clear()), "must begin at a rate of zero"),
            (new(|wrong| wrong.steps[0].rate = Rate::from_bps(1)), "must begin at a rate of zero"),
            (new(|wrong| wrong.steps.swap(1, 2)), "in ascending order of rate"),
            (new(|wrong| wrong.steps[1].rate = Rate::ZERO), "in ascending order of rate"),
            (new(|wrong| wrong.steps[2].height = 0), "is zero; it must be positive"),
            (new(|wrong| wrong.steps[2].fps = 0.0), "fps is 0; it must be between"),
            (new(|wrong| wrong.hysteresis = 0.99), "the hysteresis is 0.99; it must be between 1 and 100"),
            (new(|wrong| wrong.hysteresis = f64::NAN), "the hysteresis is NaN"),
            (new(|wrong| wrong.up_after = Span::from_nanos(-1)), "a step up is taken after"),
            (new(|wrong| wrong.down_after = Span::from_nanos(-1)), "a step down is taken after"),
        ] {
            assert!(error.contains(says), "{error}");
        }
        let greedy = Box::new(Greedy::new(Bounds::default(), 1200));
        let error = Adapted::new(greedy, settings()).map(|_| ()).expect_err("it has no frames");
        assert!(error.contains("cannot be changed"), "{error}");
    }
}
