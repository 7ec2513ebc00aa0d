//! Losses of packets on the medium.
//!
//! Losses happen after service: a lost packet has used the link's time. Each model draws exactly one
//! number for each packet, so that changing a probability does not shift later draws.

use crate::link::phases::Phases;
use crate::refusal::{Refusal, ensure, ensure_probability};
use serde::Deserialize;
use tidegate_core::rng::Draws;
use tidegate_core::{Span, Stream, Time, math};

/// Two states, each with its own loss probability (Gilbert 1960, Elliott 1963).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of going from good to bad, for each packet.
    pub to_bad: f64,
    /// Probability of going from bad to good, for each packet.
    pub to_good: f64,
    /// Loss probability in the good state.
    pub loss_good: f64,
    /// Loss probability in the bad state.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// Gilbert's simple form: all packets are lost in the bad state and none in the good one. The share `mean`
    /// of all packets is lost, in bursts of `burst` packets on average.
    ///
    /// # Errors
    /// Unless `0 <= mean < 1`, `burst >= 1`, and the gaps between bursts come out at one packet or more.
    pub fn from_bursts(mean: f64, burst: f64) -> Result<Self, Refusal> {
        ensure((0.0..1.0).contains(&mean), || {
            Refusal::new("loss.mean", mean, "a share from 0 to less than 1")
        })?;
        ensure(burst >= 1.0 && burst.is_finite(), || Refusal::new("loss.burst", burst, "at least 1 packet"))?;
        let to_good = 1.0 / burst;
        let to_bad = to_good * mean / (1.0 - mean);
        ensure(to_bad <= 1.0, || {
            Refusal::new(
                "loss.mean",
                mean,
                format!("a share that leaves at least 1 packet on average between bursts of {burst} packets"),
            )
        })?;
        Ok(Self { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 })
    }

    /// The share of packets lost in the long run; that of the good state if the state never changes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let Self { to_bad, to_good, loss_good, loss_bad } = *self;
        let changes = to_bad + to_good;
        if changes > 0.0 { (to_good * loss_good + to_bad * loss_bad) / changes } else { loss_good }
    }
}

/// A loss model.
#[derive(Clone, Copy, Debug, PartialEq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet with the same probability, independent of the others.
    Bernoulli(f64),
    /// In bursts. The initial state is the good one, and the state steps before each packet.
    GilbertElliott(GilbertElliott),
}

impl Loss {
    fn check(&self) -> Result<(), Refusal> {
        match *self {
            Self::None => Ok(()),
            Self::Bernoulli(p) => ensure_probability("loss", p),
            Self::GilbertElliott(GilbertElliott { to_bad, to_good, loss_good, loss_bad }) => {
                ensure_probability("loss.to_bad", to_bad)?;
                ensure_probability("loss.to_good", to_good)?;
                ensure_probability("loss.loss_good", loss_good)?;
                ensure_probability("loss.loss_bad", loss_bad)
            }
        }
    }
}

/// State of a loss model.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    phases: Phases<Loss>,
    bad: bool,
    luck: Stream,
}

impl LossProcess {
    /// Draws from the substream of `name` for "loss"; `None` if no packet can be lost.
    pub(crate) fn new(phases: Phases<Loss>, seed: u64, name: &str) -> Result<Option<Self>, Refusal> {
        phases.check()?;
        let never = phases.phases().iter().all(|(_, loss)| *loss == Loss::None);
        Ok((!never).then(|| Self { phases, bad: false, luck: Stream::new(seed, name, "loss") }))
    }

    /// Replaces the loss model from now on; it must be valid.
    pub(crate) fn change(&mut self, phases: Phases<Loss>) {
        (self.phases, self.bad) = (phases, false);
    }

    /// Whether the packet that leaves at `now` is lost.
    pub(crate) fn takes(&mut self, now: Time) -> bool {
        let u = self.luck.uniform();
        match *self.phases.at(now) {
            Loss::None => false,
            Loss::Bernoulli(p) => u < p,
            Loss::GilbertElliott(model) => {
                // the position of u within its branch is uniform again: one number decides both transition and loss
                let turn = if self.bad { model.to_good } else { model.to_bad };
                let within = if u < turn { u / turn } else { (u - turn) / (1.0 - turn) };
                self.bad ^= u < turn;
                within < if self.bad { model.loss_bad } else { model.loss_good }
            }
        }
    }

    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.luck.draws());
    }
}

/// Independent byte errors: a packet of `n` bytes survives with `(1 - p)^n`.
#[derive(Clone, Debug)]
pub(crate) struct ByteErrors {
    log_survival: f64,
    size: u32,
    hit: f64,
    luck: Stream,
}

impl ByteErrors {
    /// Draws from the substream of `name` for "byte errors"; `None` at probability zero.
    pub(crate) fn new(probability: f64, seed: u64, name: &str) -> Result<Option<Self>, Refusal> {
        ensure_probability("byte_error", probability)?;
        Ok((probability > 0.0).then(|| Self {
            log_survival: math::ln_1p(-probability),
            size: 0,
            hit: 0.0,
            luck: Stream::new(seed, name, "byte errors"),
        }))
    }

    /// Replaces the probability from now on; it must be valid.
    pub(crate) fn change(&mut self, probability: f64) {
        (self.log_survival, self.size, self.hit) = (math::ln_1p(-probability), 0, 0.0);
    }

    /// Whether a packet of `size` bytes is hit.
    pub(crate) fn hit(&mut self, size: u32) -> bool {
        if size != self.size {
            self.size = size;
            // without bytes there is nothing to hit, but minus infinity (ln 0) times 0 is not a number
            self.hit = if size == 0 { 0.0 } else { 1.0 - math::exp(self.log_survival * f64::from(size)) };
        }
        self.luck.chance(self.hit)
    }

    pub(crate) fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.luck.draws());
    }
}

impl Phases<Loss> {
    /// Checks the probabilities.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.phases().iter().try_for_each(|(_, loss)| loss.check())
    }

    /// Losses in stretches of the given lengths, one after the other, repeated for ever.
    ///
    /// # Errors
    /// Unless there is a stretch and every length is positive.
    pub fn repeating(stretches: &[(Span, Loss)]) -> Result<Self, Refusal> {
        let mut start = Time::ZERO;
        let mut phases = Vec::with_capacity(stretches.len());
        for &(length, loss) in stretches {
            ensure(length > Span::ZERO, || Refusal::new("length", length, "more than zero"))?;
            phases.push((start, loss));
            start += length;
        }
        Self::new(phases, Some(start - Time::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 1_000_000;

    fn losses(loss: Loss) -> Vec<bool> {
        let mut process = LossProcess::new(Phases::constant(loss), 1, "link").unwrap().unwrap();
        let losses = (0..N).map(|_| process.takes(Time::ZERO)).collect();
        let mut draws = 0;
        process.draws(&mut |draw| draws += draw.count);
        assert_eq!(draws, N as u64, "one number for each packet");
        losses
    }

    fn mean_and_burst(losses: &[bool]) -> (f64, f64) {
        let lost = losses.iter().filter(|&&lost| lost).count() as f64;
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        (lost / losses.len() as f64, lost / bursts)
    }

    #[test]
    fn bernoulli_loses_its_share_and_without_memory() {
        for p in [0.01, 0.2] {
            let (mean, burst) = mean_and_burst(&losses(Loss::Bernoulli(p)));
            assert!((mean / p - 1.0).abs() < 0.02, "{mean}");
            assert!((burst * (1.0 - p) - 1.0).abs() < 0.02, "{burst}");
        }
        assert!(losses(Loss::Bernoulli(1.0)).iter().all(|&lost| lost));
    }

    #[test]
    fn gilbert_elliott_has_its_mean_and_bursts() {
        for (mean, burst) in [(0.05, 4.0), (0.2, 2.0), (0.5, 10.0)] {
            let model = GilbertElliott::from_bursts(mean, burst).unwrap();
            assert!((model.mean() - mean).abs() < 1e-12);
            let actual = mean_and_burst(&losses(Loss::GilbertElliott(model)));
            assert!((actual.0 / mean - 1.0).abs() < 0.02, "{actual:?} for {mean}, {burst}");
            assert!((actual.1 / burst - 1.0).abs() < 0.02, "{actual:?} for {mean}, {burst}");
        }
        let model = GilbertElliott { to_bad: 0.1, to_good: 0.3, loss_good: 0.02, loss_bad: 0.4 };
        // in state good 3/4 of the time: 0.75 * 0.02 + 0.25 * 0.4
        assert!((model.mean() - 0.115).abs() < 1e-12);
        let (mean, _) = mean_and_burst(&losses(Loss::GilbertElliott(model)));
        assert!((mean / 0.115 - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn alternating_states_are_certain() {
        let model = GilbertElliott { to_bad: 1.0, to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
        let lost = losses(Loss::GilbertElliott(model));
        assert!(lost.iter().enumerate().all(|(packet, &lost)| lost == (packet % 2 == 0)));
    }

    #[test]
    fn bytes_are_hit_independently() {
        let mut errors = ByteErrors::new(1e-4, 1, "link").unwrap().unwrap();
        for size in [1500, 100] {
            let hits = (0..N).filter(|_| errors.hit(size)).count() as f64 / N as f64;
            let expected = 1.0 - math::pow(1.0 - 1e-4, f64::from(size));
            assert!((hits / expected - 1.0).abs() < 0.03, "{hits} for {size} B, {expected} expected");
        }
        let mut certain = ByteErrors::new(1.0, 1, "link").unwrap().unwrap();
        assert!(certain.hit(1) && !certain.hit(0) && certain.hit(9));
        assert!(ByteErrors::new(0.0, 1, "link").unwrap().is_none());
    }

    #[test]
    fn phases_switch_the_model() {
        let stretches = [(Span::from_secs(1), Loss::None), (Span::from_secs(2), Loss::Bernoulli(1.0))];
        let phases = Phases::repeating(&stretches).unwrap();
        let mut process = LossProcess::new(phases, 1, "link").unwrap().unwrap();
        let lost = [0, 999, 1000, 2999, 3000, 4000].map(|ms| process.takes(Time::from_millis(ms)));
        assert_eq!(lost, [false, false, true, true, false, true]);
    }

    #[test]
    fn invalid_probabilities_are_refused() {
        for loss in [
            Loss::Bernoulli(1.1),
            Loss::Bernoulli(f64::NAN),
            Loss::GilbertElliott(GilbertElliott {
                to_bad: -0.1,
                to_good: 0.5,
                loss_good: 0.0,
                loss_bad: 1.0,
            }),
        ] {
            assert!(LossProcess::new(Phases::constant(loss), 1, "link").is_err());
        }
        assert!(ByteErrors::new(-1.0, 1, "link").is_err());
        assert!(GilbertElliott::from_bursts(0.9, 2.0).is_err());
        assert!(GilbertElliott::from_bursts(1.0, 2.0).is_err());
        assert!(GilbertElliott::from_bursts(0.1, 0.5).is_err());
        assert!(LossProcess::new(Phases::constant(Loss::None), 1, "link").unwrap().is_none());
    }
}
