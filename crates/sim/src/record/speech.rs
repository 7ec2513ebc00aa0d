//! Quality of a flow's speech: the frames that are played out, their delay, and the score by the E-model.

use super::emodel::{BPL_G711, BPL_G711_CONCEALED, mos, rating};
use tidegate_core::{Span, Time};

/// The speech of a flow: its audio frames, from capture to playout.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speech {
    heard: u64,
    missing: u64,
    /// Sum of the times from capture to playout, and the largest.
    delay: Span,
    longest: Span,
}

impl Speech {
    /// Counts a frame that was played out `delay` after its capture, or never.
    pub fn frame(&mut self, delay: Option<Span>) {
        match delay {
            None => self.missing += 1,
            Some(delay) => {
                self.heard += 1;
                self.delay += delay;
                self.longest = self.longest.max(delay);
            }
        }
    }

    /// Counts a frame of time `captured` whose fate is not known when the recording ends at `end`: it is missing if
    /// it is later than any other frame was.
    pub fn unknown(&mut self, captured: Time, end: Time) {
        if captured + self.longest < end {
            self.frame(None);
        }
    }

    /// The rating R with concealed loss, and the mean opinion scores with and without concealment; `None` if no
    /// frame was played out.
    pub(super) fn scores(&self) -> Option<(f64, f64, f64)> {
        if self.heard == 0 {
            return None;
        }
        let delay = self.delay.as_secs_f64() * 1e3 / self.heard as f64;
        let loss = self.missing as f64 / (self.heard + self.missing) as f64;
        // G.711: Ie = 0 (ITU-T G.113 appendix I)
        let [concealed, unconcealed] =
            [BPL_G711_CONCEALED, BPL_G711].map(|bpl| rating(delay, loss, 0.0, bpl));
        Some((concealed, mos(concealed), mos(unconcealed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speech_is_rated_by_what_is_heard() {
        let mut speech = Speech::default();
        assert_eq!(speech.scores(), None);
        for k in 0..100 {
            speech.frame((k % 20 != 0).then_some(Span::from_millis(if k % 2 == 0 { 100 } else { 60 })));
        }
        let end = Time::from_secs(10);
        speech.unknown(end - Span::from_millis(100), end);
        speech.unknown(end, end);
        // 45 frames after 100 ms and 50 after 60 ms; 5 of 100 are missing
        let (concealed, score, unconcealed) = speech.scores().unwrap();
        let delay = (45.0 * 100.0 + 50.0 * 60.0) / 95.0;
        assert_eq!(concealed, rating(delay, 0.05, 0.0, 25.1));
        assert_eq!((score, unconcealed), (mos(concealed), mos(rating(delay, 0.05, 0.0, 4.3))));
        speech.unknown(end - Span::from_millis(101), end);
        assert!(speech.scores().unwrap().0 < concealed, "it would have been heard by now");
    }
}
