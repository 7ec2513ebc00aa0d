//! libwebrtc's controller of June 2025: `GoogCcNetworkController` with its default field trials.
//!
//! ```text
//!            sent packet --> alr ---------------------------------------------+
//!                 |                                                           v
//!                 +--> window, silence                                     probing --> probes
//!                                                                             ^
//! feedback --> received rate --+--> delay: groups, trendline, detector, aimd  | target and what limits it
//!     |                        |        ^ probe's result  |                   |
//!     +--> probe_rate ---------|--------+                 v                   |
//!     |                        +---------------------> bandwidth -------------+--> target, pacing, padding
//!     +--> lost and received packets --> loss ----------> ^
//! receiver report --> fraction lost, round trip ----------+
//! REMB ---------------------------------------------------+
//! ```
//!
//! This file is the data flow of `goog_cc_network_control.cc`; each part is a file of its own. What a person would
//! vary is in [`settings`].

pub mod aimd;
pub mod alr;
pub mod bandwidth;
mod channel;
pub mod delay;
pub mod loss;
pub mod probe_rate;
pub mod probing;
mod pushback;
mod rounding;
pub mod settings;
mod stable;

use super::detector::Usage;
use super::received::robust::Robust;
use super::seen::{News, Seen};
use aimd::NetworkState;
use alr::Alr;
use bandwidth::{Bandwidth, LEAST};
use delay::Delay;
use loss::State;
use probe_rate::ProbeRate;
use probing::{Asked, Limit, Probing};
use pushback::Window;
use rounding::{between, whole_bytes};
use settings::{Pushback, Settings};
use tidegate_core::control::{
    Context, Controller, Counts, Decision, FeedbackKind, Limits, LossReport, Needs, PacketResult, Report,
    Sent,
};
use tidegate_core::units::{Rate, Span, Time};

/// The preset's name.
pub const NAME: &str = "libwebrtc";

/// Time passes in steps of this (`RtpTransportControllerSend`, `GoogCcNetworkControllerFactory::GetProcessInterval`).
const STEP: Span = Span::from_millis(25);
/// A probe that found less than this part of what arrives is not believed (`kProbeDropThroughputFraction`).
const PROBE_FLOOR: f64 = 0.85;

/// What was last told of the network; the parts that depend on it hear of each change.
#[derive(Clone, Copy, PartialEq)]
struct Said {
    target: Rate,
    /// What the congestion window leaves of it.
    left: Rate,
    stable: Rate,
    fraction_lost: u8,
    rtt: Span,
    state: State,
}

/// The controller.
pub struct GoogCc {
    settings: Settings,
    limits: Limits,
    /// When time passes next; none before the first limits.
    next_step: Option<Time>,
    alr: Alr,
    was_limited: bool,
    seen: Seen,
    acked: Robust,
    probe_rate: ProbeRate,
    delay: Delay,
    bandwidth: Bandwidth,
    window: Window,
    probing: Probing,
    network: Option<NetworkState>,
    /// Packets lost as of the last receiver report.
    lost: i64,
    said: Option<Said>,
    /// What the window leaves of the target, as the encoder was last told.
    pushback: Option<Rate>,
    /// The policy that follows from it and from the limits, without alarm and probes.
    policy: Option<Decision>,
    /// What one report newly says; kept for their room.
    fresh: Vec<PacketResult>,
    arrived: Vec<PacketResult>,
}

impl GoogCc {
    /// A controller with these settings; it begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let start = Limits::default().start;
        Self {
            acked: Robust::default(),
            delay: Delay::new(settings.trend_window, start, LEAST),
            limits: Limits::default(),
            next_step: None,
            alr: Alr::default(),
            was_limited: false,
            seen: Seen::default(),
            probe_rate: ProbeRate::default(),
            bandwidth: Bandwidth::new(),
            window: Window::default(),
            probing: Probing::default(),
            network: None,
            lost: 0,
            said: None,
            pushback: None,
            policy: None,
            fresh: Vec::new(),
            arrived: Vec::new(),
            settings,
        }
    }

    /// The network says something of its own capacity (`OnNetworkStateEstimate`); none: nothing any longer.
    pub fn set_network(&mut self, network: Option<NetworkState>) {
        self.network = network;
    }

    /// New bounds, and a new start rate if there is one (`ResetConstraints`).
    fn bound(&mut self, start: Option<Rate>, now: Time, asked: &mut Asked) {
        let allocated = Rate::from_bps_f64(self.settings.least_allocated);
        let least = self.limits.min.max(LEAST).max(allocated);
        let most = self.limits.max.max(least);
        let start = start.map(|start| start.max(least));
        self.bandwidth.set_limits(start, least, most, now);
        if let Some(start) = start {
            self.delay.rate.set_start(start);
        }
        self.delay.rate.set_least(least);
        self.probing.set_limits(&self.settings, least, start, most, now, asked);
    }

    /// Another route (`OnNetworkRouteChange`).
    fn change_route(&mut self, now: Time, asked: &mut Asked) {
        self.acked = Robust::default();
        self.probe_rate.reset();
        self.delay = Delay::new(self.settings.trend_window, self.limits.start, LEAST);
        self.bandwidth.reset();
        self.probing.reset(now);
        self.bound(Some(self.limits.start), now, asked);
        self.tell(now, asked);
    }

    /// Time passes (`OnProcessInterval`), if it is due.
    fn step(&mut self, now: Time, asked: &mut Asked) {
        if self.next_step.is_none_or(|at| at > now) {
            return;
        }
        self.next_step = Some(now + STEP);
        self.bandwidth.update(&self.settings, now);
        self.probing.set_alr(self.alr.since());
        self.probing.process(&self.settings, now, asked);
        self.resize_window();
        self.tell(now, asked);
    }

    fn resize_window(&mut self) {
        if let (Some(said), true) = (self.said, self.settings.pushback != Pushback::Off) {
            self.window.resize(&self.settings, said.target);
        }
    }

    /// A receiver report's losses (`RtpTransportControllerSend::OnReport`, `OnTransportLossReport`).
    fn losses(&mut self, report: &LossReport, now: Time) {
        let lost = i64::from(report.cumulative_lost) - self.lost;
        self.lost = i64::from(report.cumulative_lost);
        let expected = i64::from(report.expected);
        // the first report is nothing to compare with, and one without anything received says nothing of losses
        if expected > 0 && expected - lost >= 1 {
            self.bandwidth.report(&self.settings, lost, expected, now);
        }
    }

    /// What feedback newly says, as it is and in order of arrival.
    fn sort(&mut self, report: &Report) {
        let seen = &mut self.seen;
        let news =
            |packet: &&PacketResult| seen.note(packet.sequence, packet.arrival.is_some()) != News::Nothing;
        self.fresh.clear();
        self.fresh.extend(report.packets.iter().filter(news));
        self.arrived.clear();
        self.arrived.extend(self.fresh.iter().filter(|packet| packet.arrival.is_some()));
        let order = |packet: &PacketResult| (packet.arrival, packet.sent, packet.sequence);
        if !self.arrived.is_sorted_by_key(order) {
            self.arrived.sort_unstable_by_key(order);
        }
    }

    /// Round trips of the packets in a report: what the window and the back-off go by.
    fn round_trips(&mut self, now: Time) {
        let Some(newest) = self.arrived.last().and_then(|packet| packet.arrival) else { return };
        let (mut longest, mut shortest) = (Span::ZERO, Span::MAX);
        for packet in &self.arrived {
            let Some(arrival) = packet.arrival else { continue };
            let waited = newest.as_nanos().saturating_sub(arrival.as_nanos());
            let trip = between(packet.sent, now);
            longest = longest.max(trip);
            shortest = shortest.min(Span::from_nanos(trip.as_nanos().saturating_sub(waited).max(0)));
        }
        self.window.report(longest);
        self.bandwidth.heard(shortest, now);
    }

    /// What a probe has found, if it can be believed.
    fn probe_result(&mut self, acked: Option<Rate>) -> Option<Rate> {
        let found = self.probe_rate.take()?;
        let estimate = self.delay.rate.rate;
        if self.network.is_some_and(|network| found < estimate && found < network.lower) {
            return None;
        }
        // not far below what arrives: that much the path has carried
        Some(acked.map_or(found, |acked| found.max(estimate.min(acked.scaled(PROBE_FLOOR)))))
    }

    /// Since when the application is the limit, if it is; that it no longer is, is told.
    fn limited(&mut self, now: Time) -> Option<Time> {
        let since = self.alr.since();
        if self.was_limited && since.is_none() {
            self.probing.alr_ended(now);
        }
        self.was_limited = since.is_some();
        since
    }

    /// Per-packet feedback (`OnTransportPacketsFeedback`).
    fn feedback(&mut self, now: Time, report: &Report, asked: &mut Asked, cx: &mut Context<'_>) {
        self.sort(report);
        if self.fresh.is_empty() {
            return;
        }
        if let Some(newest) = self.fresh.iter().map(|packet| packet.sequence).max() {
            self.window.reported(newest);
        }
        self.round_trips(now);
        let limited = self.limited(now);
        for packet in &self.arrived {
            let Some(arrival) = packet.arrival else { continue };
            self.acked.packet(packet.sent, arrival, packet.size);
            if let Some(id) = packet.probe {
                self.probe_rate.packet(id, packet.sent.as_nanos(), arrival.as_nanos(), packet.size);
            }
        }
        let acked = self.acked.rate().map(rounding::bps);
        self.bandwidth.set_acked(acked);
        let probe = self.probe_result(acked);
        self.delay.rate.set_network(self.network);
        let mut verdict = delay::Verdict::default();
        if !self.arrived.is_empty() {
            verdict = self.delay.report(&self.settings, &self.arrived, acked, probe, now, cx);
        }
        if let Some(rate) = verdict.rate {
            if verdict.by_probe {
                self.bandwidth.set_target(rate, now);
            }
            self.bandwidth.set_delay_based(rate, now);
        }
        let packets = self.fresh.iter().copied();
        self.bandwidth.packets(&self.settings, packets, limited.is_some(), now);
        if verdict.rate.is_some() {
            self.tell(now, asked);
        }
        if verdict.recovered {
            self.probing.set_alr(limited);
            self.probing.recovered(&self.settings, now, asked);
        }
        self.resize_window();
        if cx.wants_notes() {
            self.note(acked, probe, cx);
        }
    }

    /// Tells what has changed to the parts that depend on it (`MaybeTriggerOnNetworkChanged`).
    fn tell(&mut self, now: Time, asked: &mut Asked) {
        let target = self.bandwidth.target();
        let left = match self.settings.pushback {
            Pushback::Off => target,
            Pushback::Frames | Pushback::Rate => {
                self.window.left(&self.settings, target).max(self.bandwidth.least())
            }
        };
        let said = Said {
            target,
            left,
            stable: self.bandwidth.stable().min(left),
            fraction_lost: self.bandwidth.fraction_lost,
            rtt: self.bandwidth.rtt,
            state: self.bandwidth.state,
        };
        if self.said == Some(said) {
            return;
        }
        // the call passes on what has another target, loss or round trip (`CongestionControlHandler::GetUpdate`)
        let told = |said: Said| (said.target, said.fraction_lost, said.rtt);
        if self.said.is_none_or(|before| told(before) != told(said)) {
            let takes = self.settings.pushback == Pushback::Frames && left < target;
            self.pushback = takes.then_some(left);
        }
        self.said = Some(said);
        self.policy = None;
        self.alr.set_estimate(&self.settings, target);
        self.probing.set_estimate(&self.settings, target, self.limit(), now, asked);
    }

    /// What limits the target, as far as it matters to a probe (`GetBandwidthLimitedCause`).
    fn limit(&self) -> Limit {
        if self.delay.usage() != Usage::Normal || self.bandwidth.rtt_is_too_long(&self.settings) {
            return Limit::Congestion;
        }
        match self.bandwidth.state {
            State::DelayBased => Limit::Delay,
            State::Increasing => Limit::LossIncreasing,
            State::IncreasingWithPadding | State::Decreasing => Limit::Congestion,
        }
    }

    /// The whole policy, with the probes that the event led to.
    fn decision(&mut self, asked: &Asked) -> Decision {
        let mut decision = match self.policy {
            Some(policy) => policy,
            None => *self.policy.insert(self.rates()),
        };
        if !asked.is_empty() {
            decision.probes = asked.probes();
            decision.probes.iter().for_each(|&probe| self.probe_rate.ask(probe));
        }
        decision.alarm = self.next_step;
        decision
    }

    /// Target, pacing and padding (`GetPacingRates`).
    fn rates(&self) -> Decision {
        let target = self.bandwidth.target();
        let Said { target, left, state, .. } = self.said.unwrap_or(Said {
            target,
            left: target,
            stable: target,
            fraction_lost: 0,
            rtt: Span::ZERO,
            state: State::DelayBased,
        });
        let allocated = Rate::from_bps_f64(self.settings.least_allocated);
        let configured = Rate::from_bps_f64(self.settings.padding);
        let padding = if state == State::IncreasingWithPadding { configured.max(target) } else { configured };
        let shown = if self.settings.pushback == Pushback::Rate { left } else { target };
        Decision {
            pacing: whole_bytes(target.max(allocated).scaled(self.settings.pacing_factor)),
            padding: whole_bytes(padding.min(left)),
            drain_queue: true,
            burst: Some(Span::from_millis_f64(self.settings.burst)),
            pushback: self.pushback,
            ..Decision::rate(shown.clamp(self.limits.min, self.limits.max))
        }
    }

    fn note(&self, acked: Option<Rate>, probe: Option<Rate>, cx: &mut Context<'_>) {
        cx.note("rate_state", self.delay.rate.state.code());
        cx.note("delay_based", self.delay.rate.rate.as_bps_f64());
        cx.note("loss_based", self.bandwidth.loss.rate.as_bps_f64());
        cx.note("loss_state", self.bandwidth.state.code());
        cx.note("loss_fraction", f64::from(self.bandwidth.fraction_lost) / 256.0);
        cx.note("rtt_ms", self.bandwidth.rtt.as_millis_f64());
        cx.note("app_limited", f64::from(u8::from(self.was_limited)));
        if let Some(acked) = acked {
            cx.note("received_rate", acked.as_bps_f64());
        }
        if let Some(probe) = probe {
            cx.note("probe_rate", probe.as_bps_f64());
        }
    }

    /// Notes the stable target where it has changed since `before`, and answers with the policy.
    fn answer(&mut self, before: Option<Said>, asked: &Asked, cx: &mut Context<'_>) -> Decision {
        if let Some(said) = self.said
            && before.is_none_or(|before| before.stable != said.stable)
        {
            cx.note("stable_target", said.stable.as_bps_f64());
        }
        self.decision(asked)
    }
}

impl Controller for GoogCc {
    fn needs(&self) -> Needs {
        Needs { counts: Counts::Ip, ..Needs::feedback(FeedbackKind::PerPacket) }
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let (before, mut asked) = (self.said, Asked::default());
        self.step(now, &mut asked);
        if let Some(remb) = report.remb {
            self.bandwidth.set_receiver(remb, now);
        }
        if let Some(loss) = &report.loss {
            self.losses(loss, now);
        }
        if let Some(rtt) = report.report_rtt.filter(|&rtt| rtt > Span::ZERO) {
            self.delay.rate.set_rtt(rtt);
            self.bandwidth.rtt = rtt;
        }
        if !report.packets.is_empty() {
            self.feedback(now, report, &mut asked, cx);
        }
        self.answer(before, &asked, cx)
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        let (before, mut asked) = (self.said, Asked::default());
        self.step(now, &mut asked);
        self.answer(before, &asked, cx)
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision {
        let (before, mut asked) = (self.said, Asked::default());
        let old = std::mem::replace(&mut self.limits, *limits);
        self.policy = None;
        let wanted = limits.wanted.unwrap_or(Rate::ZERO);
        let first = self.next_step.is_none();
        if first {
            self.next_step = Some(now);
            self.bound(Some(limits.start), now, &mut asked);
            self.probing.set_wanted(&self.settings, wanted, now, &mut asked);
        }
        self.step(now, &mut asked);
        if !first {
            if limits.route_changed {
                self.change_route(now, &mut asked);
            } else if (old.min, old.max, old.start) != (limits.min, limits.max, limits.start) {
                self.bound(Some(limits.start).filter(|&start| start != old.start), now, &mut asked);
                self.tell(now, &mut asked);
            }
            if limits.wanted != old.wanted {
                self.probing.set_wanted(&self.settings, wanted, now, &mut asked);
            }
        }
        self.answer(before, &asked, cx)
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let (before, mut asked) = (self.said, Asked::default());
        self.step(now, &mut asked);
        self.alr.sent(&self.settings, now, packet.size);
        self.bandwidth.sent(now);
        if self.settings.pushback != Pushback::Off {
            self.window.sent(packet.sequence, packet.size);
            self.tell(now, &mut asked);
        }
        self.answer(before, &asked, cx)
    }

    fn needs_sent(&self) -> bool {
        true
    }

    /// A_hat (RFC 8699 appendix A).
    fn coupled_rate(&self) -> Option<Rate> {
        Some(self.bandwidth.target())
    }

    fn on_coupled(&mut self, now: Time, rate: Rate, cx: &mut Context<'_>) -> Decision {
        let (before, mut asked) = (self.said, Asked::default());
        // all parts, also those that do not limit the target: how far above they are stays
        let factor = rate.as_bps_f64() / self.bandwidth.target().as_bps_f64().max(1.0);
        self.delay.rate.scale(factor);
        self.bandwidth.scale(factor, now);
        self.tell(now, &mut asked);
        self.answer(before, &asked, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::control::Probe;
    use tidegate_core::units::Size;

    /// A controller with an estimate of 1 Mbit/s and a probe that found 200 kbit/s.
    fn probed() -> GoogCc {
        let mut controller = GoogCc::new(Settings::default());
        controller.delay.rate.set_start(Rate::from_mbps(1));
        let rate = Rate::from_mbps(1);
        controller.probe_rate.ask(Probe { id: 1, rate, min_packets: 5, ..Probe::default() });
        for i in 0..5 {
            controller.probe_rate.packet(1, i * 40_000_000, i * 40_000_000, Size::from_bytes(1000));
        }
        controller
    }

    #[test]
    fn a_probe_far_below_what_arrives_is_not_believed() {
        let found = |acked: Option<u64>| probed().probe_result(acked.map(Rate::from_kbps));
        assert_eq!(found(None), Some(Rate::from_kbps(200)));
        assert_eq!(found(Some(800)), Some(Rate::from_kbps(680)));
        assert_eq!(found(Some(2000)), Some(Rate::from_mbps(1)), "nor is it a reason to rise");
        assert_eq!(found(Some(100)), Some(Rate::from_kbps(200)));
        // nor one below what the network says that it has
        let told = |lower| {
            let mut controller = probed();
            controller.set_network(Some(NetworkState { lower: Rate::from_kbps(lower), upper: Rate::MAX }));
            controller.probe_result(None)
        };
        assert_eq!((told(201), told(200)), (None, Some(Rate::from_kbps(200))));
    }

    #[test]
    fn the_end_of_a_limit_lets_a_recovery_be_probed_for() {
        let recovered = |limited| {
            let mut controller = GoogCc::new(Settings::default());
            let (mut asked, settings) = (Asked::default(), Settings::default());
            let at = Time::from_millis;
            controller.probing.set_limits(
                &settings,
                LEAST,
                Some(Rate::from_mbps(1)),
                Rate::MAX,
                at(0),
                &mut asked,
            );
            controller.probing.process(&settings, at(1001), &mut asked);
            controller.probing.set_estimate(
                &settings,
                Rate::from_kbps(300),
                Limit::Delay,
                at(2000),
                &mut asked,
            );
            controller.was_limited = limited;
            controller.limited(at(2100));
            let mut asked = Asked::default();
            controller.probing.recovered(&settings, at(2200), &mut asked);
            asked.probes().first().map(|probe| probe.rate)
        };
        assert_eq!(recovered(true), Some(Rate::from_kbps(850)));
        assert_eq!(recovered(false), None);
    }
}
