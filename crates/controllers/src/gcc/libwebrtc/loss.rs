//! Loss-based part, second version: the bandwidth under which the losses of the last seconds are most likely.
//!
//! `loss_based_bwe_v2.cc`. Packets are grouped into observations of at least 250 ms. A channel loses a fixed part of all
//! packets, and all bytes beyond its bandwidth; of a few candidate channels, the one that makes the observations most
//! likely is chosen. The likelihood is in `channel.rs`. This file has the changes of the estimate from one observation
//! to the next: how far it may rise, when it holds, and when it requests padding.

use super::channel::{Channel, Observation, Observations};
use super::rounding::{between, per};
use super::settings::Settings;
use tidegate_core::control::PacketResult;
use tidegate_core::units::{Rate, Size, Span, Time};

/// Duration of the first hold.
const INIT_HOLD_DURATION: Span = Span::from_millis(300);
/// Longest hold.
const MAX_HOLD_DURATION: Span = Span::from_secs(60);
/// Lowest limit of an increase (`bitrate_settings.h`).
const CONGESTION_CONTROLLER_MIN_BITRATE: Rate = Rate::from_kbps(5);

/// State of the estimate (`LossBasedState`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum State {
    /// Limited by losses, and rising.
    Increasing,
    /// Limited by losses and rising, with padding to test the higher rate.
    IncreasingWithPadding,
    /// Limited by losses, falling or constant.
    Decreasing,
    /// Limited by the delay-based estimate.
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

/// Packets that are not yet enough for an observation (`PartialObservation`).
#[derive(Clone, Default)]
struct PartialObservation {
    size: u64,
    /// Sequence number and size of each lost packet, in order of sequence numbers.
    lost: Vec<(u64, u64)>,
}

/// Hold (`HoldInfo`): no increase above `rate` until `until`; `duration` is that of the next hold.
#[derive(Clone, Copy)]
struct HoldInfo {
    until: Option<Time>,
    duration: Span,
    rate: Rate,
}

const NO_HOLD: HoldInfo = HoldInfo { until: None, duration: INIT_HOLD_DURATION, rate: Rate::MAX };

/// Second loss-based estimator (`LossBasedBweV2`).
#[derive(Clone)]
pub struct Loss {
    /// Loss-based rate.
    pub rate: Rate,
    /// State of the estimate.
    pub state: State,
    best: Option<Channel>,
    observations: Observations,
    partial: PartialObservation,
    /// Departure of the newest packet of the last observation.
    last_sent: Option<Time>,
    acked: Option<Rate>,
    bounds: (Rate, Rate),
    delay_based: Rate,
    hold: HoldInfo,
    /// Highest rate for which padding was requested, and since when (`PaddingInfo`).
    padding: Option<(Rate, Time)>,
    /// Start of the recovery and the rate that limits it (`bandwidth_limit_in_current_window_`).
    recovering: Option<(Time, Rate)>,
}

impl Loss {
    /// Creates an estimator without observations.
    #[must_use]
    pub fn new() -> Self {
        Self {
            rate: Rate::ZERO,
            state: State::default(),
            best: None,
            observations: Observations::default(),
            partial: PartialObservation::default(),
            last_sent: None,
            acked: None,
            bounds: (Rate::from_kbps(1), Rate::MAX),
            delay_based: Rate::MAX,
            hold: NO_HOLD,
            padding: None,
            recovering: None,
        }
    }

    /// Whether there are enough observations for an estimate (`IsReady`).
    #[must_use]
    pub fn is_ready(&self, settings: &Settings) -> bool {
        settings.loss_part && self.best.is_some() && self.observations.count() >= settings.loss_observations
    }

    /// Sets the lowest and the highest rate of the session (`SetMinMaxBitrate`).
    pub fn set_bounds(&mut self, min_rate: Rate, max_rate: Rate) {
        self.bounds = (min_rate, max_rate);
    }

    /// Multiplies the estimate by `factor`.
    pub fn scale(&mut self, factor: f64) {
        if let Some(best) = &mut self.best {
            best.bandwidth = best.bandwidth.scaled(factor);
            self.rate = self.rate.scaled(factor);
        }
    }

    /// Sets the received rate (`SetAcknowledgedBitrate`).
    pub fn set_acked(&mut self, acked: Rate) {
        self.acked = Some(acked);
    }

    /// Takes the packets of a report, the delay-based rate ([`Rate::MAX`] for none), and whether the application limits
    /// the sending rate (`UpdateBandwidthEstimate`).
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
            // no immediate return to the rate that has just lost packets
            self.hold.rate = self.hold.rate.max(lower);
            self.rate = self.hold.rate.min(bounded);
            return;
        }
        self.change_state(settings, bounded, now);
        self.rate = bounded;
        let is_over = |(since, _)| now > since + Span::from_millis_f64(settings.loss_increase_window);
        if self.state != State::DelayBased && self.recovering.is_none_or(is_over) {
            let bandwidth = self.best.map_or(bounded, |best| best.bandwidth);
            self.recovering =
                Some((now, bandwidth.scaled(settings.loss_increase).max(CONGESTION_CONTROLLER_MIN_BITRATE)));
        }
    }

    /// Adds packets to the partial observation and returns whether it became complete (`PushBackObservation`).
    fn observe(&mut self, settings: &Settings, packets: impl Iterator<Item = PacketResult>) -> bool {
        let mut departures: Option<(Time, Time)> = None;
        for packet in packets {
            let (size, sent) = (packet.size.as_bytes(), packet.sent);
            let position =
                self.partial.lost.binary_search_by_key(&packet.sequence, |&(sequence, _)| sequence);
            match (position, packet.arrival) {
                (Ok(index), Some(_)) => _ = self.partial.lost.remove(index),
                (Err(index), None) => self.partial.lost.insert(index, (packet.sequence, size)),
                _ => {}
            }
            self.partial.size = self.partial.size.saturating_add(size);
            departures = Some(departures.map_or((sent, sent), |(first, last)| {
                (if sent < first { sent } else { first }, last.max(sent))
            }));
        }
        let Some((first, last)) = departures else { return false };
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

    /// Candidate channel under which the observations are most likely.
    fn likeliest(&self, settings: &Settings, before: Channel, in_alr: bool, now: Time) -> Channel {
        let padded = |(_, since): (Rate, Time)| since + Span::from_millis_f64(settings.loss_padding) >= now;
        // an application-limited received rate says nothing of the path, unless padding has filled it up
        let acked = self.acked.filter(|_| !in_alr || self.padding.is_some_and(padded));
        let higher = Some(self.delay_based).filter(|&rate| rate != Rate::MAX && rate > before.bandwidth);
        let limit = match self.recovering {
            Some((_, limit)) if self.state != State::DelayBased => limit,
            _ => self.bounds.1,
        };
        let limit = limit.max(before.bandwidth);
        let [up, same, down] =
            [settings.loss_up, 1.0, settings.loss_down].map(|factor| before.bandwidth.scaled(factor));
        let candidates = [Some(up), Some(same), Some(down), acked, higher];
        let mut best = (f64::MIN, before);
        for bandwidth in candidates.into_iter().flatten() {
            let mut candidate = Channel { bandwidth: bandwidth.min(limit), ..before };
            self.observations.fit(settings, &mut candidate);
            let objective = self.observations.objective(settings, &candidate);
            if objective > best.0 {
                best = (objective, candidate);
            }
        }
        best.1
    }

    /// Limits the rise of the estimate in one step.
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
            // one bit/s more, so that the state turns to increasing, and padding is requested
            best.bandwidth = best.bandwidth + Rate::from_bps(1);
        }
    }

    fn change_state(&mut self, settings: &Settings, bounded: Rate, now: Time) {
        let padding = Span::from_millis_f64(settings.loss_padding);
        let limited = bounded < self.delay_based && bounded < self.bounds.1;
        let padding_continues = match self.padding {
            Some((rate, since)) => since + padding >= now || rate < bounded,
            None => true,
        };
        let may_increase =
            padding == Span::ZERO || self.state != State::IncreasingWithPadding || padding_continues;
        if limited && may_increase && self.rises(self.rate, bounded) {
            if padding > Span::ZERO && self.padding.is_none_or(|(rate, _)| bounded > rate) {
                self.padding = Some((bounded, now));
            }
            self.state = if padding > Span::ZERO { State::IncreasingWithPadding } else { State::Increasing };
        } else if limited {
            if self.state != State::Decreasing && settings.loss_hold_factor > 0.0 {
                let duration = self.hold.duration;
                self.hold = HoldInfo {
                    until: Some(now + duration),
                    duration: duration.scaled(settings.loss_hold_factor).min(MAX_HOLD_DURATION),
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

    /// Whether a loss-limited estimate rises with the step from `from` to `to`.
    fn rises(&self, from: Rate, to: Rate) -> bool {
        let rising = matches!(self.state, State::Increasing | State::IncreasingWithPadding);
        self.state != State::DelayBased && (from < to || (from == to && rising))
    }

    /// Lower bound of the estimate: the received rate, which the path has carried (`GetInstantLowerBound`).
    fn lower_bound(&self) -> Rate {
        self.acked.unwrap_or(Rate::ZERO).max(self.bounds.0)
    }

    /// Upper bound of the estimate, which falls with the losses (`GetInstantUpperBound`).
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
