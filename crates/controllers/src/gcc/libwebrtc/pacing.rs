//! Pacing of a call: rate, bursts and draining of the queue (`GetPacingRates`).

use super::rounding::whole_bytes;
use super::settings::{Settings, call_pacing_factor};
use crate::Content;
use tidegate_core::control::Decision;
use tidegate_core::units::{Rate, Span};

/// Pacing rate and burst, relative to a target.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pacing {
    /// Pacing rate as a multiple of the target.
    factor: f64,
    /// Duration of a burst.
    burst: Span,
}

impl Pacing {
    /// Pacing by the settings of a controller.
    pub(super) fn of(settings: &Settings) -> Self {
        Self { factor: settings.pacing_factor, burst: Span::from_millis_f64(settings.burst) }
    }

    /// Pacing of a call with `content`, before and after the first transport feedback. Before it, and so without any, the
    /// factor is `kDefaultPaceMultiplier`: without feedback there are no probes, and a strict factor would make the
    /// beginning slow (`goog_cc_network_control.cc`, `video_send_stream_impl.cc`: `kStrictPacingMultiplier`). The libwebrtc
    /// of June 2025 that this module follows has the strict factor from the beginning; that of December 2025 waits.
    #[must_use]
    pub fn in_call(content: Content, has_feedback: bool) -> Self {
        let settings = Settings::default();
        let factor = if has_feedback { call_pacing_factor(content) } else { settings.pacing_factor };
        Self::of(&Settings { pacing_factor: factor, ..settings })
    }

    /// The decision with the pacing of a call whose target is `target`.
    pub fn paced(self, decision: Decision, target: Rate) -> Decision {
        Decision {
            pacing: whole_bytes(target.scaled(self.factor)),
            drain_queue: true,
            burst: Some(self.burst),
            ..decision
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_for_feedback_before_its_pacing_is_strict() {
        let pacing = |content, has_feedback| {
            let target = Rate::from_kbps(1000);
            let paced = Pacing::in_call(content, has_feedback).paced(Decision::rate(target), target);
            assert_eq!((paced.target, paced.drain_queue), (target, true));
            assert_eq!(paced.burst, Some(Span::from_millis(40)));
            paced.pacing
        };
        assert_eq!(pacing(Content::Camera, false), Rate::from_kbps(2500));
        assert_eq!(pacing(Content::Camera, true), Rate::from_kbps(1100));
        assert_eq!(pacing(Content::Screen, false), Rate::from_kbps(2500));
        assert_eq!(pacing(Content::Screen, true), Rate::from_kbps(1000));
    }

    #[test]
    fn a_pacing_rate_is_of_whole_bytes() {
        let paced =
            Pacing::in_call(Content::Camera, true).paced(Decision::rate(Rate::ZERO), Rate::from_bps(12_347));
        // 13581.7 bit/s are 1697.7 bytes a second
        assert_eq!(paced.pacing, Rate::from_bps(8 * 1698));
        assert_eq!(paced.target, Rate::ZERO, "the target is the decision's own");
    }
}
