//! Jitter: delay on a link's medium that varies from packet to packet.

use crate::link::capacity::Served;
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::rng::Draws;
use tidegate_core::{Span, Stream, Time};

/// Variation of a link's propagation delay.
#[derive(Clone, Copy, Debug, PartialEq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Constant delay.
    #[default]
    None,
    /// No-reorder bounded packet delay variation (RFC 8868, section 4.5.2). Packet n, served at s(n), arrives at
    /// `a(n) = s(n) + delay + z(n)`, or when its serialisation after `a(n-1)` ends, if that is later; the serialisation
    /// takes its own service time on this link. (The RFC counts from the emission of packets; there it is the
    /// serialisation of the previous packet.) `z = |clamp(N(0, std^2), -n_std * std, n_std * std)|`, and no packet is
    /// later than the largest z, because the packets were served one after the other. The RFC's x_mean is added to the
    /// delay of every packet.
    Rfc8868 {
        /// Standard deviation of the normal distribution that is clamped and folded.
        std: Span,
        /// The clamp, in standard deviations.
        n_std: f64,
        /// The RFC's x_mean.
        #[serde(default)]
        mean: Span,
    },
    /// Uniform from zero up to this span, added to the delay: packets overtake each other.
    Uniform(Span),
    /// Normal around the delay with this standard deviation: packets overtake each other. No packet arrives before it
    /// has been served.
    Normal(Span),
}

impl Jitter {
    /// The no-reorder form with the values of RFC 8868: 5 ms and 3 standard deviations, so at most 15 ms.
    pub const RFC_8868: Self = Self::Rfc8868 { std: Span::from_millis(5), n_std: 3.0, mean: Span::ZERO };

    /// Whether packets can overtake each other.
    #[must_use]
    pub const fn reorders(&self) -> bool {
        matches!(self, Self::Uniform(_) | Self::Normal(_))
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let (length, bound) = match *self {
            Self::None => return Ok(()),
            Self::Rfc8868 { std, n_std, mean } => (std.min(mean), n_std),
            Self::Uniform(length) | Self::Normal(length) => (length, 0.0),
        };
        ensure(!length.is_negative(), || Refusal::new("jitter", length, "zero or more"))?;
        ensure(bound >= 0.0 && bound.is_finite(), || {
            Refusal::new("jitter.n_std", bound, "zero or more standard deviations")
        })
    }
}

/// State of a link's jitter.
#[derive(Clone, Debug)]
pub(crate) struct JitterProcess {
    jitter: Jitter,
    /// Arrival of the last packet.
    last: Time,
    luck: Stream,
}

impl JitterProcess {
    /// Draws from the substream of `name` for "jitter"; `None` without jitter.
    pub(crate) fn new(jitter: Jitter, seed: u64, name: &str) -> Result<Option<Self>, Refusal> {
        jitter.check()?;
        let luck = Stream::new(seed, name, "jitter");
        Ok((jitter != Jitter::None).then_some(Self { jitter, last: Time::ZERO, luck }))
    }

    /// Replaces the jitter from now on; it must be valid.
    pub(crate) fn change(&mut self, jitter: Jitter) {
        self.jitter = jitter;
    }

    /// The arrival of a packet that was `served`, with the propagation `delay`.
    pub(crate) fn arrival(&mut self, served: Served, delay: Span) -> Time {
        let ideal = served.finish + delay;
        match self.jitter {
            Jitter::None => ideal,
            Jitter::Rfc8868 { std, n_std, mean } => {
                let z = std.scaled(self.luck.normal().clamp(-n_std, n_std)).abs();
                let service = served.finish - served.start;
                self.last = (ideal + mean + z).max(self.last + service);
                self.last
            }
            Jitter::Uniform(max) => ideal + max.scaled(self.luck.uniform()),
            Jitter::Normal(std) => (ideal + std.scaled(self.luck.normal())).max(served.finish),
        }
    }

    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.luck.draws());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Span = Span::from_millis(50);

    /// Services and arrivals of packets that take 0.1 to 2 ms of service each, or 200 ms in a pause of the capacity,
    /// with up to 2 ms between them.
    fn arrivals(jitter: Jitter) -> Vec<(Served, Time)> {
        let mut process = JitterProcess::new(jitter, 1, "link").unwrap().unwrap();
        let mut luck = Stream::new(2, "test", "arrivals");
        let mut finish = Time::ZERO;
        (0..200_000)
            .map(|_| {
                let gap = Span::from_micros(luck.below(2000) as i64);
                let start = finish + gap;
                let service = if luck.below(100) == 0 { 200_000 } else { 100 + luck.below(1900) };
                finish = start + Span::from_micros(service as i64);
                let served = Served { start, finish };
                (served, process.arrival(served, DELAY))
            })
            .collect()
    }

    #[test]
    fn the_rfc_form_keeps_order_and_bounds() {
        let packets = arrivals(Jitter::RFC_8868);
        assert!(packets.windows(2).all(|pair| pair[1].1 - pair[0].1 >= pair[1].0.finish - pair[1].0.start));
        let extra: Vec<_> =
            packets.iter().map(|(served, arrival)| *arrival - (served.finish + DELAY)).collect();
        let bound = Span::from_millis(15);
        assert!(extra.iter().all(|extra| !extra.is_negative() && *extra <= bound));
        assert!(extra.iter().any(|extra| *extra > Span::from_millis(14)), "the bound is reached");
        // a tiny jitter has a tiny effect, whatever the services before
        let faint = Jitter::Rfc8868 { std: Span::from_micros(1), n_std: 3.0, mean: Span::ZERO };
        assert!(
            arrivals(faint)
                .iter()
                .all(|(served, arrival)| *arrival - (served.finish + DELAY) <= Span::from_micros(3))
        );
    }

    #[test]
    fn a_lone_packet_has_a_folded_normal_delay() {
        let mut process = JitterProcess::new(Jitter::RFC_8868, 1, "link").unwrap().unwrap();
        let n = 100_000;
        let sum: f64 = (0..n)
            .map(|second| {
                let start = Time::from_secs(second);
                let served = Served { start, finish: start };
                (process.arrival(served, DELAY) - (start + DELAY)).as_millis_f64()
            })
            .sum();
        // mean of |clamp(N, -3, 3)| is sqrt(2/pi) (1 - exp(-4.5)) + 6 (1 - Phi(3)) = 0.797119...
        let mean = sum / n as f64;
        assert!((mean / (5.0 * 0.797_12) - 1.0).abs() < 0.01, "{mean} ms");
    }

    #[test]
    fn the_reordering_forms_have_their_moments_and_reorder() {
        let moments = |jitter| {
            let packets = arrivals(jitter);
            let extra: Vec<f64> = packets
                .iter()
                .map(|(served, arrival)| (*arrival - (served.finish + DELAY)).as_millis_f64())
                .collect();
            let mean = extra.iter().sum::<f64>() / extra.len() as f64;
            let var = extra.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / extra.len() as f64;
            let overtaken = packets.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
            let bounds = extra.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
            (mean, var, overtaken, bounds)
        };
        let (mean, var, overtaken, (low, high)) = moments(Jitter::Uniform(Span::from_millis(12)));
        assert!((mean - 6.0).abs() < 0.03 && (var - 12.0).abs() < 0.1, "{mean} {var}");
        assert!(overtaken > 1000 && low >= 0.0 && high <= 12.0);
        let (mean, var, overtaken, _) = moments(Jitter::Normal(Span::from_millis(3)));
        assert!(mean.abs() < 0.03 && (var - 9.0).abs() < 0.1, "{mean} {var}");
        assert!(overtaken > 1000);
        // 50 ms of delay and a deviation of 50 ms: one in six would arrive before it was sent
        let packets = arrivals(Jitter::Normal(Span::from_millis(50)));
        assert!(packets.iter().all(|(served, arrival)| *arrival >= served.finish));
    }

    #[test]
    fn negative_jitter_is_refused() {
        let negative = Span::from_millis(-1);
        for jitter in [
            Jitter::Rfc8868 { std: negative, n_std: 3.0, mean: Span::ZERO },
            Jitter::Rfc8868 { std: Span::ZERO, n_std: 3.0, mean: negative },
            Jitter::Rfc8868 { std: Span::ZERO, n_std: f64::NAN, mean: Span::ZERO },
            Jitter::Uniform(negative),
            Jitter::Normal(negative),
        ] {
            assert!(JitterProcess::new(jitter, 1, "link").is_err());
        }
    }
}
