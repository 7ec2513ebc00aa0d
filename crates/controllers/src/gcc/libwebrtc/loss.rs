//! The loss-based part, second version: the bandwidth under which the losses of the last seconds are most likely.
//!
//! `loss_based_bwe_v2.cc`. Packets are taken together to observations of at least 250 ms. A channel loses a part of
//! what it carries whatever the rate is, and all that is beyond its bandwidth; of a few candidates, that one is taken
//! under which the observations are likeliest. `channel.rs` has the likelihood; here is what the
//! estimate does from one observation to the next: how far it may rise, when it holds, when padding is asked for.

use super::channel::{Channel, Observation, Observations};
use super::rounding::{between, per};
use super::settings::Settings;
use tidegate_core::control::PacketResult;
use tidegate_core::units::{Rate, Size, Span, Time};

/// The first hold, and the longest (`kInitHoldDuration`, `kMaxHoldDuration`).
const FIRST_HOLD: Span = Span::from_millis(300);
const LONGEST_HOLD: Span = Span::from_secs(60);
/// No limit of an increase is below this (`kCongestionControllerMinBitrate`).
const LEAST: Rate = Rate::from_kbps(5);

/// What limits the rate (`LossBasedState`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// The loss-based estimate does, and it rises.
    Increasing,
    /// The same, and padding is to show that the higher rate holds.
    IncreasingWithPadding,
    /// The loss-based estimate does, and it falls or stays.
    Decreasing,
    /// The delay-based estimate does.
    #[default]
    DelayBased,
}

impl State {
    /// The code in recorded tables: 0 increasing, 1 increasing with padding, 2 decreasing, 3 delay-based.
    #[must_use]
    pub const fn code(self) -> f64 {
        match self {
            Self::Increasing => 0.0,
            Self::IncreasingWithPadding => 1.0,
            Self::Decreasing => 2.0,
            Self::DelayBased => 3.0,
        }
    }
}

/// Packets that do not make an observation yet.
#[derive(Clone, Default)]
struct Partial {
    size: u64,
    /// Number and size of each lost one, in order of numbers.
    lost: Vec<(u64, u64)>,
}

/// No increase above a rate until an instant; the next hold lasts longer.
#[derive(Clone, Copy)]
struct Hold {
    until: Option<Time>,
    duration: Span,
    rate: Rate,
}

const NO_HOLD: Hold = Hold { until: None, duration: FIRST_HOLD, rate: Rate::MAX };

/// The estimator's state.
#[derive(Clone)]
pub struct Loss {
    /// What it says.
    pub rate: Rate,
    /// What limits the rate.
    pub state: State,
    best: Option<Channel>,
    observations: Observations,
    partial: Partial,
    /// When the newest packet of the last observation was sent.
    last_sent: Option<Time>,
    acked: Option<Rate>,
    bounds: (Rate, Rate),
    delay_based: Rate,
    hold: Hold,
    /// The highest rate that padding was asked for, and since when.
    padding: Option<(Rate, Time)>,
    /// Since when, and up to where, the estimate recovers.
    recovering: Option<(Time, Rate)>,
}

impl Loss {
    /// An estimator that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            rate: Rate::ZERO,
            state: State::default(),
            best: None,
            observations: Observations::default(),
            partial: Partial::default(),
            last_sent: None,
            acked: None,
            bounds: (Rate::from_kbps(1), Rate::MAX),
            delay_based: Rate::MAX,
            hold: NO_HOLD,
            padding: None,
            recovering: None,
        }
    }

    /// Whether there is anything to be said (`IsReady`).
    #[must_use]
    pub fn is_ready(&self, settings: &Settings) -> bool {
        settings.loss_part && self.best.is_some() && self.observations.count() >= settings.loss_observations
    }

    /// The least and the highest rate of the session.
    pub fn set_bounds(&mut self, least: Rate, most: Rate) {
        self.bounds = (least, most);
    }

    /// Goes on from so many times its rate.
    pub fn scale(&mut self, factor: f64) {
        if let Some(best) = &mut self.best {
            best.bandwidth = best.bandwidth.scaled(factor);
            self.rate = self.rate.scaled(factor);
        }
    }

    /// The received rate.
    pub fn set_acked(&mut self, acked: Rate) {
        self.acked = Some(acked);
    }

    /// Takes what a report says of its packets, with the delay-based rate as it is ([`Rate::MAX`] for none), and
    /// whether the application is the limit.
    pub fn update(
        &mut self,
        settings: &Settings,
        packets: impl Iterator<Item = PacketResult>,
        delay_based: Rate,
        in_alr: bool,
    ) {
        self.delay_based = delay_based;
        if !settings.loss_part || !self.observe(settings, packets) {
            return;
        }
        let Some(now) = self.last_sent else { return };
        let before = match self.best {
            Some(best) => best,
            None if delay_based == Rate::MAX => return,
            None => {
                (self.rate, self.state) = (delay_based, State::DelayBased);
                Channel { inherent_loss: settings.loss_inherent_start, bandwidth: delay_based }
            }
        };
        let mut best = self.likeliest(settings, before, in_alr, now);
        self.limit_increase(settings, before, &mut best, now);
        let lower = self.lower_bound();
        let bounded = best.bandwidth.min(self.upper_bound(settings)).min(delay_based).max(lower);
        self.best = Some(if bounded < best.bandwidth {
            Channel { bandwidth: bounded, inherent_loss: 0.0 }
        } else {
            Channel { bandwidth: best.bandwidth.max(lower), ..best }
        });
        if self.state == State::Decreasing
            && self.hold.until.is_some_and(|until| until > now)
            && bounded < delay_based
        {
            // not at once back to what has just lost packets
            self.hold.rate = self.hold.rate.max(lower);
            self.rate = self.hold.rate.min(bounded);
            return;
        }
        self.change_state(settings, bounded, now);
        self.rate = bounded;
        let over = |(since, _)| now > since + Span::from_millis_f64(settings.loss_increase_window);
        if self.state != State::DelayBased && self.recovering.is_none_or(over) {
            let bandwidth = self.best.map_or(bounded, |best| best.bandwidth);
            self.recovering = Some((now, bandwidth.scaled(settings.loss_increase).max(LEAST)));
        }
    }

    /// Adds packets to the observation that is being made; whether one has become complete.
    fn observe(&mut self, settings: &Settings, packets: impl Iterator<Item = PacketResult>) -> bool {
        let mut sent: Option<(Time, Time)> = None;
        for packet in packets {
            let (size, at) = (packet.size.as_bytes(), packet.sent);
            let place = self.partial.lost.binary_search_by_key(&packet.sequence, |&(sequence, _)| sequence);
            match (place, packet.arrival) {
                (Ok(place), Some(_)) => _ = self.partial.lost.remove(place),
                (Err(place), None) => self.partial.lost.insert(place, (packet.sequence, size)),
                _ => {}
            }
            self.partial.size = self.partial.size.saturating_add(size);
            sent = Some(
                sent.map_or((at, at), |(first, last)| (if at < first { at } else { first }, last.max(at))),
            );
        }
        let Some((first, last)) = sent else { return false };
        let length = between(*self.last_sent.get_or_insert(first), last);
        if length <= Span::ZERO || length < Span::from_millis_f64(settings.loss_observation) {
            return false;
        }
        self.last_sent = Some(last);
        let lost = self.partial.lost.iter().fold(0_u64, |sum, &(_, size)| sum.saturating_add(size));
        let size = Size::from_bytes(self.partial.size);
        let lost = Size::from_bytes(lost.min(self.partial.size));
        self.observations.push(settings, Observation { size, lost, rate: per(size, length) });
        self.partial.size = 0;
        self.partial.lost.clear();
        true
    }

    /// The candidate under which what was observed is likeliest.
    fn likeliest(&self, settings: &Settings, before: Channel, in_alr: bool, now: Time) -> Channel {
        let padded = |(_, since): (Rate, Time)| since + Span::from_millis_f64(settings.loss_padding) >= now;
        // of a limited application the received rate says nothing, unless padding has filled it up
        let acked = self.acked.filter(|_| !in_alr || self.padding.is_some_and(padded));
        let higher = Some(self.delay_based).filter(|&rate| rate != Rate::MAX && rate > before.bandwidth);
        let most = match self.recovering {
            Some((_, limit)) if self.state != State::DelayBased => limit,
            _ => self.bounds.1,
        };
        let most = most.max(before.bandwidth);
        let [up, same, down] =
            [settings.loss_up, 1.0, settings.loss_down].map(|factor| before.bandwidth.scaled(factor));
        let candidates = [Some(up), Some(same), Some(down), acked, higher];
        let mut best = (f64::MIN, before);
        for bandwidth in candidates.into_iter().flatten() {
            let mut candidate = Channel { bandwidth: bandwidth.min(most), ..before };
            self.observations.fit(settings, &mut candidate);
            let objective = self.observations.objective(settings, &candidate);
            if objective > best.0 {
                best = (objective, candidate);
            }
        }
        best.1
    }

    /// How far the estimate may rise at once.
    fn limit_increase(&self, settings: &Settings, before: Channel, best: &mut Channel, now: Time) {
        if self.observations.loss() > best.inherent_loss && before.bandwidth < best.bandwidth {
            best.bandwidth = before.bandwidth;
        }
        if self.state == State::DelayBased {
            return;
        }
        if let Some((since, limit)) = self.recovering
            && since + Span::from_millis_f64(settings.loss_increase_window) > now
        {
            best.bandwidth = best.bandwidth.min(limit);
        }
        let Some(acked) = self.acked.filter(|_| self.rises(before.bandwidth, best.bandwidth)) else { return };
        let holds =
            self.hold.rate != Rate::MAX && acked < self.hold.rate.scaled(settings.loss_hold_threshold);
        let factor = if holds { settings.loss_rampup_hold } else { settings.loss_rampup };
        best.bandwidth = best.bandwidth.min(acked.scaled(factor)).max(before.bandwidth);
        if self.state == State::Decreasing && best.bandwidth == before.bandwidth {
            // a bit/s more, so that the state turns, and padding is asked for
            best.bandwidth = best.bandwidth + Rate::from_bps(1);
        }
    }

    fn change_state(&mut self, settings: &Settings, bounded: Rate, now: Time) {
        let padding = Span::from_millis_f64(settings.loss_padding);
        let limited = bounded < self.delay_based && bounded < self.bounds.1;
        let goes_on = match self.padding {
            Some((rate, since)) => since + padding >= now || rate < bounded,
            None => true,
        };
        let keeps = padding == Span::ZERO || self.state != State::IncreasingWithPadding || goes_on;
        if limited && keeps && self.rises(self.rate, bounded) {
            if padding > Span::ZERO && self.padding.is_none_or(|(rate, _)| bounded > rate) {
                self.padding = Some((bounded, now));
            }
            self.state = if padding > Span::ZERO { State::IncreasingWithPadding } else { State::Increasing };
        } else if limited {
            if self.state != State::Decreasing && settings.loss_hold_factor > 0.0 {
                let duration = self.hold.duration;
                self.hold = Hold {
                    until: Some(now + duration),
                    duration: duration.scaled(settings.loss_hold_factor).min(LONGEST_HOLD),
                    rate: bounded,
                };
            }
            self.padding = None;
            self.state = State::Decreasing;
        } else {
            self.hold = NO_HOLD;
            self.padding = None;
            self.state = State::DelayBased;
        }
    }

    /// Whether a loss-limited estimate rises by this step.
    fn rises(&self, from: Rate, to: Rate) -> bool {
        let rising = matches!(self.state, State::Increasing | State::IncreasingWithPadding);
        self.state != State::DelayBased && (from < to || (from == to && rising))
    }

    /// What arrives is not too much (`GetInstantLowerBound`).
    fn lower_bound(&self) -> Rate {
        self.acked.unwrap_or(Rate::ZERO).max(self.bounds.0)
    }

    /// The more is lost, the less may be sent (`GetInstantUpperBound`).
    fn upper_bound(&self, settings: &Settings) -> Rate {
        let beyond = self.observations.loss() - settings.loss_offset;
        if beyond > 0.0 { Rate::from_bps_f64(settings.loss_balance / beyond) } else { self.bounds.1 }
    }
}

impl Default for Loss {
    fn default() -> Self {
        Self::new()
    }
}
