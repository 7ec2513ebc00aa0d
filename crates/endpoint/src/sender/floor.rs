//! The least rate of the sources, and the behaviour of a sender while the target is below it.

use super::Sender;
use super::stream::OutStream;
use crate::settings::BelowMin;
use tidegate_core::driver::Driver;
use tidegate_core::record::LeastRate;
use tidegate_core::{Decision, Rate, Time};

/// Rate beyond its least one at which suspended video goes on: a tenth of it, and no less than 20 kbit/s (libwebrtc's
/// `kToggleFactor` and `kMinToggleBitrateBps`, `call/bitrate_allocator.cc`).
const TOGGLE_FACTOR: f64 = 0.1;
const MIN_TOGGLE_RATE: Rate = Rate::from_kbps(20);

/// The rate at which suspended video with this least rate goes on (`MinBitrateWithHysteresis`).
pub(super) fn resume_rate(least: Rate) -> Rate {
    least + least.scaled(TOGGLE_FACTOR).max(MIN_TOGGLE_RATE)
}

impl Sender {
    /// The decision with what the least rate of the sources changes of it.
    ///
    /// With [`BelowMin::Send`] the pacing rate is at least the one that a target of the least rate has (libwebrtc's
    /// `GetPacingRates`: `max(min_total_allocated_bitrate_, target) * pacing_factor_`). While video is suspended,
    /// padding keeps up to the target on the wire, so that the controller can find out when there is room for video again
    /// (`BitrateAllocator::UpdateAllocationLimits`: `max_padding_rate`).
    pub(super) fn with_least(&self, decision: &Decision) -> Decision {
        let Decision { target, pacing, padding, .. } = *decision;
        let least = self.sent_least();
        let lifted = if target >= least {
            pacing
        } else if target == Rate::ZERO {
            pacing.max(least)
        } else {
            pacing.max(least.scaled(pacing.as_bps_f64() / target.as_bps_f64()))
        };
        let padding = if self.streams.iter().any(OutStream::suspended) {
            padding.max(target.min(self.resumes_at()))
        } else {
            padding
        };
        Decision { pacing: lifted, padding, ..*decision }
    }

    /// The rate that is sent whatever the target; zero where nothing is.
    pub(super) fn sent_least(&self) -> Rate {
        let sends = self.streams.iter().any(|stream| stream.below_min() == BelowMin::Send);
        if sends { self.least } else { Rate::ZERO }
    }

    /// The target at which all active sources are sent if video is suspended.
    fn resumes_at(&self) -> Rate {
        let active = self.streams.iter().filter(|stream| stream.on());
        active
            .map(|stream| match stream.below_min() {
                BelowMin::Suspend if stream.adapts() => resume_rate(stream.least_rate()),
                _ => stream.least_rate(),
            })
            .sum()
    }

    /// Computes the least rate of the active sources anew: audio, and the encoder's lowest rate, headers included. It is
    /// zero where no frames follow the target.
    pub(super) fn update_least(&mut self, now: Time) {
        let active = || self.streams.iter().filter(|stream| stream.on());
        let follows = active().any(|stream| stream.adapts() && stream.signalled.frames);
        let least = if follows { active().map(OutStream::least_rate).sum() } else { Rate::ZERO };
        self.least = least;
        if self.streams.iter().any(|stream| stream.below_min() != BelowMin::Wait) {
            self.decide_pacing(now);
        }
    }

    /// Passes the decision to the pacer.
    pub(super) fn decide_pacing(&mut self, now: Time) {
        let decision = self.with_least(&self.decision);
        self.pacer.decide(now, &decision);
    }

    /// Records when the target falls below the least rate, and when it no longer is.
    pub(super) fn note_least(&mut self, now: Time, out: &mut dyn Driver) {
        let held = self.sent_least() < self.least || self.decision.window.is_some();
        let least = LeastRate { rate: self.least, held };
        let below = (self.decision.target < self.least).then_some(least);
        if below != self.below_least {
            self.below_least = below;
            out.record().below_least(now, self.flow, below);
        }
    }
}
