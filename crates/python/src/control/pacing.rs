//! Pacing of answers that leave it to the call.

use std::cell::Cell;
use tidegate_controllers::Content;
use tidegate_controllers::gcc::libwebrtc::pacing::Pacing;
use tidegate_core::control::{Decision, Report};

/// Pacing of a controller's answers that leave it to the call: that of `gcc` in a call of the same content.
pub(super) struct DefaultPacing {
    content: Content,
    has_feedback: Cell<bool>,
    /// Whether the last answer left its pacing to the call, as the target before the first answer does.
    in_force: Cell<bool>,
}

impl DefaultPacing {
    pub(super) const fn new(content: Content) -> Self {
        Self { content, has_feedback: Cell::new(false), in_force: Cell::new(true) }
    }

    /// Takes note of a report, the first of which with results of packets ends the looser pacing of the beginning.
    pub(super) fn report(&self, report: &Report) {
        self.has_feedback.set(self.has_feedback.get() || !report.packets.is_empty());
    }

    /// An answer that leaves its pacing to the call.
    pub(super) fn paced(&self, answer: Decision) -> Decision {
        self.in_force.set(true);
        Pacing::in_call(self.content, self.has_feedback.get()).paced(answer, answer.target)
    }

    /// An answer that says its pacing itself.
    pub(super) fn own(&self, answer: Decision) -> Decision {
        self.in_force.set(false);
        answer
    }

    /// The last decision again, paced as the call paces now if its answer left that to the call.
    pub(super) fn unchanged(&self, last: Decision) -> Decision {
        if self.in_force.get() { self.paced(last) } else { last }
    }
}
