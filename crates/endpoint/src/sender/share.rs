//! The sources' shares of the target, and the rate that they want.

use super::stream::OutStream;
use super::{Sender, pushback};
use tidegate_core::driver::Driver;
use tidegate_core::{Level, Rate, Time};

impl Sender {
    /// Shares the target among the sources: first those that do not adapt, then equal parts of the rest, less repair.
    pub(super) fn share_target(&mut self, now: Time) {
        let active = || self.streams.iter().filter(|stream| stream.on());
        let fixed: Rate = active().filter(|stream| !stream.adapts()).filter_map(OutStream::max_rate).sum();
        let adaptive = active().filter(|stream| stream.adapts()).count() as u64;
        let rest = self.decision.target.saturating_sub(fixed);
        let media_rate = self.repair.as_ref().map_or(rest, |repair| repair.media_rate(rest));
        let share = Rate::from_bps(media_rate.as_bps() / adaptive.max(1));
        let pushback = pushback::ratio(&self.decision);
        let mut toggled = false;
        for stream in &mut self.streams {
            toggled |= stream.set_target(now, share, pushback);
        }
        if toggled {
            self.decide_pacing(now);
        }
        self.schedule_media();
    }

    /// Notes a step of resolution and frame rate that begins with the frame at hand; returns whether one does.
    pub(super) fn note_step(&mut self, now: Time, index: usize, out: &mut dyn Driver) -> bool {
        let stream = &mut self.streams[index];
        let Some(step) = stream.take_step() else { return false };
        if let Some(interval) = stream.video() {
            out.record().video_switched(now, self.flow, interval);
        }
        out.record().video_step(now, self.flow, &step);
        if out.record().level() >= Level::Series {
            out.record().internal(now, self.flow, "video_height", f64::from(step.height));
            out.record().internal(now, self.flow, "video_fps", step.fps);
        }
        true
    }

    /// The largest rate that the active sources would use; `None`: unlimited.
    pub(super) fn wanted(&self) -> Option<Rate> {
        self.streams.iter().filter(|stream| stream.on()).map(OutStream::max_rate).sum()
    }
}
