//! Whether a flow is fit for a call, and how its speech sounds.

use super::emodel::{BPL_G711, BPL_G711_CONCEALED, mos, rating};
use super::flow::FlowStats;
use super::jitter::Jitter;
use tidegate_core::{Span, Time};

/// What voice and video conferences need of the way (Vardhan, Reddy, section 3; the delay is that of ITU-T
/// G.114): a fraction of loss, and means in milliseconds. The document does not say whether it means the mean
/// or the largest value; here it is the mean over the flow.
const MOST: [(&str, f64); 3] = [("loss", 0.01), ("delay", 150.0), ("jitter", 30.0)];

/// What of `values` (loss as a fraction, delay and jitter in milliseconds) is more than a call bears, with
/// commas; `met` if nothing is. `None` where neither loss nor delay has a value.
fn verdict(values: [Option<f64>; 3]) -> Option<String> {
    values[0].or(values[1])?;
    let over: Vec<&str> = MOST
        .iter()
        .zip(values)
        .filter(|((_, most), value)| value.is_some_and(|value| value > *most))
        .map(|((name, _), _)| *name)
        .collect();
    Some(if over.is_empty() { "met".to_owned() } else { over.join(", ") })
}

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
    /// A frame was played out so long after its capture, or never.
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

    /// The fate of a frame captured at `captured` is not known when the recording ends at `end`: it is missing if
    /// it is later than any other was.
    pub fn unknown(&mut self, captured: Time, end: Time) {
        if captured + self.longest < end {
            self.frame(None);
        }
    }

    /// R with concealed loss, and the mean opinion scores with and without concealment; `None` where nothing
    /// was heard.
    fn scores(&self) -> Option<(f64, f64, f64)> {
        if self.heard == 0 {
            return None;
        }
        let delay = self.delay.as_secs_f64() * 1e3 / self.heard as f64;
        let loss = self.missing as f64 / (self.heard + self.missing) as f64;
        // G.711: Ie = 0 (ITU-T G.113 appendix I)
        let [concealed, plain] = [BPL_G711_CONCEALED, BPL_G711].map(|bpl| rating(delay, loss, 0.0, bpl));
        Some((concealed, mos(concealed), mos(plain)))
    }
}

/// The quality of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Quality {
    /// Mean and largest jitter in the network.
    pub(super) jitter: (Option<f64>, Option<f64>),
    /// From capture to arrival.
    pub(super) media_jitter: (Option<f64>, Option<f64>),
    /// With what waits and is skipped at the sender.
    pub(super) whole: Option<String>,
    /// In the network alone.
    pub(super) network: Option<String>,
    /// R, and mean opinion scores with and without concealment.
    pub(super) speech: Option<(f64, f64, f64)>,
}

impl Quality {
    /// Of a flow of this `kind`. TCP has jitter but no verdict: nobody calls over it.
    pub(super) fn of(stats: &FlowStats, kind: &str) -> Self {
        let jitter = Jitter::of(&[stats.jitter]);
        let media_jitter = Jitter::of(&stats.media_jitter);
        let speech = stats.speech.scores();
        if kind == "tcp" {
            return Self { jitter, media_jitter, speech, ..Self::default() };
        }
        let (lost, arrived) = (stats.lost().packets as f64, stats.arrived.packets as f64);
        let skipped = stats.skipped_packets as f64;
        let fraction = |lost: f64| (lost + arrived > 0.0).then(|| lost / (lost + arrived));
        let delay = stats.delay.mean_ms();
        let waited = stats.paced.mean_ms().unwrap_or(0.0);
        Self {
            network: verdict([fraction(lost), delay, jitter.0]),
            whole: verdict([
                fraction(lost + skipped),
                delay.map(|delay| delay + waited),
                media_jitter.0.or(jitter.0),
            ]),
            jitter,
            media_jitter,
            speech,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_what_is_over_and_allows_the_limits_themselves() {
        let of = |loss, delay, jitter| verdict([Some(loss), Some(delay), Some(jitter)]).unwrap();
        assert_eq!(of(0.01, 150.0, 30.0), "met");
        assert_eq!(of(0.010_001, 150.0, 30.0), "loss");
        assert_eq!(of(0.0, 150.1, 30.1), "delay, jitter");
        assert_eq!(of(1.0, 151.0, 31.0), "loss, delay, jitter");
        assert_eq!(verdict([None; 3]), None);
        assert_eq!(verdict([Some(1.0), None, None]).unwrap(), "loss", "nothing has arrived");
    }

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
        let (concealed, score, plain) = speech.scores().unwrap();
        let delay = (45.0 * 100.0 + 50.0 * 60.0) / 95.0;
        assert_eq!(concealed, rating(delay, 0.05, 0.0, 25.1));
        assert_eq!((score, plain), (mos(concealed), mos(rating(delay, 0.05, 0.0, 4.3))));
        speech.unknown(end - Span::from_millis(101), end);
        assert!(speech.scores().unwrap().0 < concealed, "it would have been heard by now");
    }
}
