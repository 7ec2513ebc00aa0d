//! Ticks of 20 ms: their arrivals, and the use of these for the inference (`receiver.cc`, `advance_to`).

use super::ewma::Average;
use super::forecast::{Forecast, Tables};
use super::model::{Belief, TICK, Transition};
use super::settings::{AppLimited, Settings};
use tidegate_core::math::floor;
use tidegate_core::{Span, Time};

/// Inference of the rate.
#[derive(Clone, Debug)]
enum Inference {
    /// Sprout: a distribution, and the quantile of the forecast.
    Belief { belief: Box<Belief>, quantile: f64 },
    /// Sprout-EWMA: a moving average.
    Average(Average),
}

/// Receiver's inference, tick by tick.
#[derive(Clone, Debug)]
pub struct Ticks {
    inference: Inference,
    app_limited: AppLimited,
    /// Bytes that count as a packet.
    packet: f64,
    /// Start of the present tick.
    start: Time,
    /// Packets of the present tick, with fractions.
    count: f64,
    /// End of the silence that the sender has announced; before it, an empty tick says nothing of the link.
    silent_until: Time,
    /// Whether the sender had nothing more after the last packet.
    limited: bool,
    /// Whether this was so at any time of the tick.
    limited_in_tick: bool,
}

impl Ticks {
    /// Creates a state whose first tick begins at `now`.
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
            start: now,
            count: 0.0,
            silent_until: now,
            limited: false,
            limited_in_tick: false,
        }
    }

    /// End of the present tick.
    #[must_use]
    pub fn end_time(&self) -> Time {
        self.start + TICK
    }

    /// Skips the ticks that are over by `now` without inference; returns their number.
    pub fn skip_until(&mut self, now: Time) -> u32 {
        let skipped = (now - self.start).as_nanos() / TICK.as_nanos();
        self.start += TICK * skipped;
        skipped as u32
    }

    /// Takes a packet of `bytes` in the present tick, after which the sender is silent for at most `time_to_next`; `limited`
    /// if it has nothing more to send.
    pub fn packet(&mut self, bytes: u64, time_to_next: Span, limited: bool) {
        self.count += bytes as f64 / self.packet;
        // from the beginning of the tick, as the original counts
        self.silent_until = self.silent_until.max(self.start + time_to_next);
        self.limited = limited && self.app_limited == AppLimited::Ignore;
        self.limited_in_tick |= self.limited;
    }

    /// Ends the present tick and begins the next one.
    pub fn end(&mut self) {
        if let Inference::Belief { belief, .. } = &mut self.inference {
            belief.evolve(Transition::shared());
        }
        let silence_is_over = self.start >= self.silent_until;
        if self.count > 0.0 || silence_is_over {
            self.learn();
            self.count = 0.0;
        }
        self.start += TICK;
        self.limited_in_tick = self.limited;
    }

    fn learn(&mut self) {
        // a fraction of a packet counts as one. The original's average takes the fraction: an empty packet would be
        // almost zero, and the average, which begins at zero, would never allow a first full packet
        let count = if self.count > 0.0 && self.count < 1.0 { 1.0 } else { self.count };
        // while the sender has nothing more, packets show a lower bound of the link; an empty tick after the announced
        // silence shows an outage in any case
        let is_lower_bound = self.limited_in_tick && count > 0.0;
        match &mut self.inference {
            Inference::Belief { belief, .. } => {
                // `as` saturates
                let (packets, transition) = (floor(count + 0.5) as u32, Transition::shared());
                if is_lower_bound {
                    belief.observe_at_least(packets, transition);
                } else {
                    belief.observe(packets, transition);
                }
            }
            Inference::Average(average) if is_lower_bound => average.observe_at_least(count),
            Inference::Average(average) => average.observe(count),
        }
    }

    /// Forecast from the end of the last tick on.
    pub fn forecast(&mut self) -> Forecast {
        match &mut self.inference {
            Inference::Belief { belief, quantile } => {
                belief.normalise();
                Tables::shared().forecast(belief, *quantile)
            }
            Inference::Average(average) => average.forecast(),
        }
    }

    /// Mean estimated rate, packets/s.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match &self.inference {
            Inference::Belief { belief, .. } => belief.mean(),
            Inference::Average(average) => average.packets() / TICK.as_secs_f64(),
        }
    }
}

/// Replays ticks with one packet each, of the given bytes (0: no packet), followed by a silence of at most `time_to_next`.
/// Returns one forecast per tick.
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
