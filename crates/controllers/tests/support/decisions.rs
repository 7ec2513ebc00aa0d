//! A hash of all that a controller decides and a receiver half asks for, for golden files.

use tidegate_core::control::{Decision, FeedbackRequest, Probe, Urgency};
use tidegate_core::{Size, Span, Time};

/// FNV-1a over decisions and asks, one after the other.
#[derive(Clone, Copy)]
pub struct Decisions(u64);

impl Default for Decisions {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Decisions {
    /// The hash so far.
    pub fn hash(self) -> u64 {
        self.0
    }

    /// Its line in a golden table.
    pub fn line(self) -> String {
        format!("hash of all decisions and asks: {:016x}\n", self.0)
    }

    fn word(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn maybe(&mut self, word: Option<u64>) {
        self.word(word.is_some().into());
        self.word(word.unwrap_or(0));
    }

    /// Takes in a decision. A field that is new has to be named here before this compiles.
    pub fn add(&mut self, decision: &Decision) {
        let Decision {
            target,
            pushback,
            pacing,
            padding,
            pace_audio,
            drain_queue,
            burst,
            min_gap,
            window,
            heartbeat,
            alarm,
            probes,
        } = *decision;
        for rate in [target, pacing, padding] {
            self.word(rate.as_bps());
        }
        self.word(pace_audio.into());
        // these came after the tables of those that do without them
        if drain_queue {
            self.word(1);
        }
        if let Some(left) = pushback {
            self.word(left.as_bps());
        }
        if let Some(burst) = burst {
            self.word(burst.as_nanos() as u64);
        }
        self.maybe(min_gap.map(|gap| gap.as_nanos() as u64));
        self.maybe(window.map(Size::as_bytes));
        self.maybe(heartbeat.map(|most| most.as_nanos() as u64));
        self.maybe(alarm.map(|at| at.as_nanos() as u64));
        self.word(probes.len() as u64);
        for &Probe { id, rate, length, min_packets, spacing } in probes.iter() {
            for word in [
                id.into(),
                rate.as_bps(),
                length.as_nanos() as u64,
                min_packets.into(),
                spacing.as_nanos() as u64,
            ] {
                self.word(word);
            }
        }
    }

    /// Takes in what a receiver half asks for.
    pub fn add_ask(&mut self, ask: FeedbackRequest) {
        let FeedbackRequest { urgency, alarm } = ask;
        let (kind, within) = match urgency {
            Urgency::None => (0, Span::ZERO),
            Urgency::Regular => (1, Span::ZERO),
            Urgency::Early(within) => (2, within),
            Urgency::Now => (3, Span::ZERO),
        };
        self.word(kind);
        self.word(within.as_nanos() as u64);
        self.maybe(alarm.map(|at: Time| at.as_nanos() as u64));
    }
}
