//! Ticks of 20 ms: what came in them, and whether that says anything of the link (`receiver.cc`, `advance_to`).

use super::ewma::Average;
use super::forecast::{Forecast, Tables};
use super::model::{Belief, TICK, Transition};
use super::settings::{AppLimited, Settings};
use tidegate_core::math::floor;
use tidegate_core::{Span, Time};

/// How the rate is inferred.
#[derive(Clone, Debug)]
enum Inference {
    /// Sprout: a distribution, and a quantile of it.
    Belief { belief: Box<Belief>, quantile: f64 },
    /// Sprout-EWMA.
    Average(Average),
}

/// The receiver's inference, tick by tick.
#[derive(Clone, Debug)]
pub struct Ticks {
    inference: Inference,
    app_limited: AppLimited,
    /// Bytes that make a packet.
    packet: f64,
    /// When the present tick began.
    began: Time,
    /// Packets that came in it, in parts.
    count: f64,
    /// From when on an empty tick says something: until then the sender has said that it will be silent.
    silent_until: Time,
    /// Whether the sender had nothing more after the last packet; and whether it was so at any time of the tick.
    limited: bool,
    limited_once: bool,
}

impl Ticks {
    /// The first tick begins at `now`.
    #[must_use]
    pub fn new(settings: &Settings, now: Time) -> Self {
        let inference = if settings.average_weight > 0.0 {
            Inference::Average(Average::new(settings.average_weight))
        } else {
            let quantile = (100.0 - settings.confidence) / 100.0;
            Inference::Belief { belief: Box::default(), quantile }
        };
        Self {
            inference,
            app_limited: settings.app_limited,
            packet: settings.packet as f64,
            began: now,
            count: 0.0,
            silent_until: now,
            limited: false,
            limited_once: false,
        }
    }

    /// When the present tick ends.
    #[must_use]
    pub fn ends(&self) -> Time {
        self.began + TICK
    }

    /// Skips the ticks that are over by `now`: nothing is inferred from them. Says how many.
    pub fn rest_until(&mut self, now: Time) -> u32 {
        let over = (now - self.began).as_nanos() / TICK.as_nanos();
        self.began += TICK * over;
        over as u32
    }

    /// A packet of `bytes` has come in the present tick, after which the sender is to be silent for
    /// `time_to_next` at most; `limited`: because it has nothing more.
    pub fn packet(&mut self, bytes: u64, time_to_next: Span, limited: bool) {
        self.count += bytes as f64 / self.packet;
        // from the beginning of the tick, as the original counts
        self.silent_until = self.silent_until.max(self.began + time_to_next);
        self.limited = limited && self.app_limited == AppLimited::Ignore;
        self.limited_once |= self.limited;
    }

    /// Ends the present tick and begins the next one.
    pub fn end(&mut self) {
        if let Inference::Belief { belief, .. } = &mut self.inference {
            belief.evolve(Transition::shared());
        }
        let due = self.began >= self.silent_until;
        if self.count > 0.0 || due {
            self.learn();
            self.count = 0.0;
        }
        self.began += TICK;
        self.limited_once = self.limited;
    }

    fn learn(&mut self) {
        // part of a packet counts as one. The original's average takes it as it is: an empty packet is then next to
        // nothing, and the average, which begins at zero, would never let a first full one go
        let count = if self.count > 0.0 && self.count < 1.0 { 1.0 } else { self.count };
        // within a pause for want of data, packets show what the link can carry at least; none after the time
        // that the sender had said shows an outage, limited or not
        let bound = self.limited_once && count > 0.0;
        match &mut self.inference {
            Inference::Belief { belief, .. } => {
                // `as` ends at the largest number
                let (whole, transition) = (floor(count + 0.5) as u32, Transition::shared());
                if bound {
                    belief.observe_at_least(whole, transition);
                } else {
                    belief.observe(whole, transition);
                }
            }
            Inference::Average(average) if bound => average.observe_at_least(count),
            Inference::Average(average) => average.observe(count),
        }
    }

    /// What is to come, counted from the end of the last tick.
    pub fn forecast(&mut self) -> Forecast {
        match &mut self.inference {
            Inference::Belief { belief, quantile } => {
                belief.normalise();
                Tables::shared().forecast(belief, *quantile)
            }
            Inference::Average(average) => average.forecast(),
        }
    }

    /// The mean rate believed, in packets a second.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match &self.inference {
            Inference::Belief { belief, .. } => belief.mean(),
            Inference::Average(average) => average.packets() / TICK.as_secs_f64(),
        }
    }
}

/// Replays ticks in which one packet each of so many bytes came (none at 0), each followed by a silence of
/// `time_to_next` at most. One forecast for each tick.
#[must_use]
pub fn replay(settings: &Settings, ticks: &[u64], time_to_next: &[Span]) -> Vec<Forecast> {
    let mut state = Ticks::new(settings, Time::ZERO);
    let silences = time_to_next.iter().copied().chain(std::iter::repeat(TICK));
    let mut forecasts = Vec::with_capacity(ticks.len());
    for (&bytes, silence) in ticks.iter().zip(silences) {
        if bytes > 0 {
            state.packet(bytes, silence, false);
        }
        state.end();
        forecasts.push(state.forecast());
    }
    forecasts
}
