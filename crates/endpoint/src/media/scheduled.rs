//! A source whose application limits its rate over time.

use super::{Bounds, Frame, Source};
use tidegate_core::record::VideoStep;
use tidegate_core::rng::Draws;
use tidegate_core::{Rate, Span, Time};

/// A source that gets its target or the rate of the application, whichever is less.
pub(crate) struct Scheduled {
    source: Box<dyn Source>,
    /// Pairs of a time since the start and the largest rate from then on, in order.
    steps: Vec<(Span, Rate)>,
    /// When its flow started, from which the times of the steps count, also after a pause.
    origin: Option<Time>,
    /// Index of the next step.
    next: usize,
    target: Option<Rate>,
}

impl Scheduled {
    /// # Errors
    /// When the steps are not in order of time.
    pub(crate) fn new(source: Box<dyn Source>, steps: Vec<(Span, Rate)>) -> Result<Self, String> {
        if !steps.is_sorted_by(|a, b| a.0 < b.0) {
            return Err("the steps of a schedule must be in order of time".to_owned());
        }
        Ok(Self { source, steps, origin: None, next: 0, target: None })
    }

    /// When the next step is due.
    fn step_due(&self) -> Time {
        match (self.origin, self.steps.get(self.next)) {
            (Some(origin), Some(&(after, _))) => origin + after,
            _ => Time::MAX,
        }
    }

    /// Takes the steps that are due, and sets the target of the source.
    fn allow(&mut self, now: Time) {
        while self.step_due() <= now {
            self.next += 1;
        }
        if let Some(target) = self.target {
            self.source.set_target(now, target.min(self.application_rate()));
        }
    }

    /// The largest rate of the application at present.
    fn application_rate(&self) -> Rate {
        self.next.checked_sub(1).map_or(Rate::MAX, |step| self.steps[step].1)
    }
}

impl Source for Scheduled {
    fn begin(&mut self, now: Time) {
        self.origin = Some(now);
        self.source.begin(now);
    }

    fn start(&mut self, now: Time) {
        self.source.start(now);
        self.allow(now);
    }

    fn due(&self) -> Time {
        self.source.due().min(self.step_due())
    }

    fn step(&mut self, now: Time) {
        if self.step_due() <= now {
            self.allow(now);
        }
        self.source.step(now);
    }

    fn frame(&mut self, now: Time) -> Frame {
        self.source.frame(now)
    }

    fn leaves_out(&self) -> bool {
        self.source.leaves_out()
    }

    fn leave_out(&mut self) {
        self.source.leave_out();
    }

    fn uses(&self) -> Rate {
        self.source.uses().min(self.application_rate())
    }

    fn set_target(&mut self, now: Time, target: Rate) {
        self.target = Some(target);
        self.allow(now);
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
        self.source.frame_rate_at(rate)
    }

    fn take_step(&mut self) -> Option<VideoStep> {
        self.source.take_step()
    }

    fn adapts(&self) -> bool {
        self.source.adapts()
    }

    fn packet_size(&self) -> Option<u32> {
        self.source.packet_size()
    }

    fn slices(&self) -> Option<&[u32]> {
        self.source.slices()
    }

    fn failure(&self) -> Option<&str> {
        self.source.failure()
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        self.source.draws(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::greedy::Greedy;

    /// Bytes that a greedy source with these steps, in kbit/s from second to second, sends in each second.
    fn seconds(bounds: Bounds, steps: &[(i64, u64)], count: usize) -> Vec<u32> {
        let steps = steps.iter().map(|&(s, kbps)| (Span::from_secs(s), Rate::from_kbps(kbps))).collect();
        let mut source = Scheduled::new(Box::new(Greedy::new(bounds, 1250)), steps).expect("in order");
        let mut bytes = vec![0; count];
        let begin = Time::from_millis(7);
        source.begin(begin);
        source.set_target(begin, Rate::from_mbps(1));
        source.start(begin);
        loop {
            let due = source.due();
            let second = due.saturating_since(begin).as_nanos() / 1_000_000_000;
            let Some(sum) = bytes.get_mut(second as usize) else { return bytes };
            source.step(due);
            if source.due() <= due {
                *sum += source.frame(due).bytes;
            }
        }
    }

    #[test]
    fn it_sends_no_more_than_the_application_has_and_no_more_than_its_target() {
        let bytes = seconds(Bounds::default(), &[(1, 500), (3, 4000), (4, 100)], 6);
        assert_eq!(bytes, [125_000, 62_500, 62_500, 125_000, 12_500, 12_500]);
    }

    #[test]
    fn from_zero_it_goes_on_at_the_step() {
        // at a step up from zero, the packet goes that has been due since, and then one in each gap
        let bytes = seconds(Bounds::default(), &[(0, 0), (2, 400), (3, 0), (4, 1000)], 5);
        assert_eq!(bytes, [0, 0, 50_000 + 1250, 0, 125_000 + 1250]);
        assert_eq!(
            seconds(Bounds::new(Rate::from_kbps(100), Rate::from_mbps(2)), &[(0, 0)], 2),
            [12_500, 12_500],
            "never less than the encoder's lowest rate"
        );
    }

    #[test]
    fn times_count_from_the_flows_start_though_the_source_begins_later() {
        let steps = vec![(Span::from_secs(2), Rate::from_kbps(100))];
        let mut source =
            Scheduled::new(Box::new(Greedy::new(Bounds::default(), 1250)), steps).expect("in order");
        source.begin(Time::ZERO);
        source.set_target(Time::ZERO, Rate::from_mbps(1));
        source.start(Time::from_secs(1));
        assert_eq!(source.uses(), Rate::MAX);
        source.step(Time::from_secs(2));
        assert_eq!(source.uses(), Rate::from_kbps(100));
    }

    #[test]
    fn steps_are_in_order() {
        let steps = [3, 2].map(|s| (Span::from_secs(s), Rate::ZERO)).to_vec();
        assert!(Scheduled::new(Box::new(Greedy::new(Bounds::default(), 1250)), steps).is_err());
    }
}
