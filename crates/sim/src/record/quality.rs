//! Fitness of a flow for a call: its loss, delay and jitter against the limits of a call, and the score of its speech.

use super::flow::FlowStats;
use super::jitter::Jitter;

/// Requirements of voice and video conferences on the path (Vardhan, Reddy, section 3; the delay is that of ITU-T
/// G.114): a fraction of loss, and delay and jitter in milliseconds. The document does not say whether it means the
/// mean or the largest value; here it is the mean over the flow.
const LIMITS: [(&str, f64); 3] = [("loss", 0.01), ("delay", 150.0), ("jitter", 30.0)];

/// Names those of `values` (loss as a fraction, delay and jitter in milliseconds) that exceed the limits, separated by
/// commas; `met` if none does. `None` where neither loss nor delay has a value.
fn verdict(values: [Option<f64>; 3]) -> Option<String> {
    values[0].or(values[1])?;
    let over: Vec<&str> = LIMITS
        .iter()
        .zip(values)
        .filter(|((_, limit), value)| value.is_some_and(|value| value > *limit))
        .map(|((name, _), _)| *name)
        .collect();
    Some(if over.is_empty() { "met".to_owned() } else { over.join(", ") })
}

/// The quality of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Quality {
    /// Mean and largest jitter in the network.
    pub(super) jitter: (Option<f64>, Option<f64>),
    /// Mean and largest jitter from capture to arrival.
    pub(super) media_jitter: (Option<f64>, Option<f64>),
    /// The verdict including media that waits or is skipped at the sender.
    pub(super) end_to_end: Option<String>,
    /// The verdict on the network alone.
    pub(super) network: Option<String>,
    /// R, and mean opinion scores with and without concealment.
    pub(super) speech: Option<(f64, f64, f64)>,
}

impl Quality {
    /// The quality of a flow of this `kind`. TCP has jitter but no verdict: it is not used for calls.
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
            end_to_end: verdict([
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
    fn a_verdict_names_exceeded_limits_and_allows_the_limits_themselves() {
        let verdict_of = |loss, delay, jitter| verdict([Some(loss), Some(delay), Some(jitter)]).unwrap();
        assert_eq!(verdict_of(0.01, 150.0, 30.0), "met");
        assert_eq!(verdict_of(0.010_001, 150.0, 30.0), "loss");
        assert_eq!(verdict_of(0.0, 150.1, 30.1), "delay, jitter");
        assert_eq!(verdict_of(1.0, 151.0, 31.0), "loss, delay, jitter");
        assert_eq!(verdict([None; 3]), None);
        assert_eq!(verdict([Some(1.0), None, None]).unwrap(), "loss", "nothing has arrived");
    }
}
