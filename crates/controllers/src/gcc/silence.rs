//! Lower bound of the round trip while packets are sent and no feedback comes.
//!
//! libwebrtc `RttBasedBackoff`; not in the draft.

use tidegate_core::units::{Span, Time};

/// Times of the last feedback and the last packet (libwebrtc `RttBasedBackoff`).
#[derive(Clone, Copy, Default)]
pub struct Silence {
    feedback: Option<Time>,
    rtt: Span,
    sent: Option<Time>,
}

impl Silence {
    /// Counts a packet that leaves `now`.
    pub fn packet(&mut self, now: Time) {
        // before the first feedback, the first packet stands for it
        self.feedback.get_or_insert(now);
        self.sent = Some(now);
    }

    /// Counts feedback that arrives `now`; `rtt` is the shortest round trip in it.
    pub fn feedback(&mut self, rtt: Span, now: Time) {
        self.feedback = Some(now);
        self.rtt = rtt;
    }

    /// Whether the round trip, with the time in which packets were sent since the last feedback, is above `limit` (ms);
    /// zero is no limit.
    #[must_use]
    pub fn too_long(&self, limit: f64) -> bool {
        let (Some(feedback), Some(sent)) = (self.feedback, self.sent) else { return false };
        let waiting = sent.saturating_since(feedback) + self.rtt;
        limit > 0.0 && waiting.as_millis_f64() > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_from_feedback_to_the_last_packet() {
        let mut silence = Silence::default();
        assert!(!silence.too_long(3000.0));
        silence.packet(Time::from_secs(10));
        silence.packet(Time::from_secs(13));
        assert!(!silence.too_long(3000.0), "3 s is not more than 3 s");
        silence.packet(Time::from_millis(13_001));
        assert!(silence.too_long(3000.0));
        silence.feedback(Span::from_millis(200), Time::from_millis(13_002));
        assert!(!silence.too_long(3000.0));
        silence.packet(Time::from_millis(15_803));
        assert!(silence.too_long(3000.0), "2801 ms and a round trip");
        assert!(!silence.too_long(0.0), "never");
    }
}
