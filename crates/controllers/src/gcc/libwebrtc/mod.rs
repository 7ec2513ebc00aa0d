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
//! This file has the data flow of `goog_cc_network_control.cc`; each part has its own file. Numbers that a user may want
//! to vary are in [`settings`].

pub mod aimd;
pub mod alr;
pub mod bandwidth;
mod channel;
pub mod delay;
pub mod loss;
pub mod pacing;
pub mod probe_rate;
pub mod probing;
mod pushback;
mod rounding;
pub mod settings;
mod stable;

use super::detector::Usage;
use super::received::robust::Robust;
use super::report_history::{News, ReportHistory};
use aimd::NetworkStateEstimate;
use alr::Alr;
use bandwidth::{Bandwidth, CONGESTION_CONTROLLER_MIN_BITRATE};
use delay::Delay;
use loss::State;
use pacing::Pacing;
use probe_rate::ProbeRate;
use probing::{BandwidthLimitedCause, ProbeRequests, Probing};
use pushback::Window;
use rounding::{between, whole_bytes};
use settings::{Pushback, Settings};
use tidegate_core::control::{
    Context, Controller, Counts, Decision, FeedbackKind, Limits, LossReport, Needs, PacketResult, Report,
    Sent,
};
use tidegate_core::units::{Rate, Span, Time};

/// Name of the preset.
pub const NAME: &str = "libwebrtc";

/// Interval of periodic processing (`GoogCcNetworkControllerFactory::GetProcessInterval`, `RtpTransportControllerSend`).
const PROCESS_INTERVAL: Span = Span::from_millis(25);
/// A probe's result is raised to this part of the received rate, where it is lower.
const PROBE_DROP_THROUGHPUT_FRACTION: f64 = 0.85;

/// Network state that was last published to the dependent parts (`MaybeTriggerOnNetworkChanged`).
#[derive(Clone, Copy, PartialEq)]
struct PublishedState {
    target: Rate,
    /// Target that the congestion window leaves to the encoder (`last_pushback_target_rate_`).
    pushback_target: Rate,
    stable: Rate,
    fraction_lost: u8,
    rtt: Span,
    state: State,
}

/// libwebrtc's controller (`GoogCcNetworkController`).
pub struct GoogCc {
    settings: Settings,
    limits: Limits,
    /// Time of the next periodic processing; none before the first limits.
    next_process: Option<Time>,
    alr: Alr,
    was_app_limited: bool,
    history: ReportHistory,
    acked: Robust,
    probe_rate: ProbeRate,
    delay: Delay,
    bandwidth: Bandwidth,
    window: Window,
    probing: Probing,
    network: Option<NetworkStateEstimate>,
    /// Cumulative number of packets lost in the last receiver report.
    lost: i64,
    published: Option<PublishedState>,
    /// Target that the window leaves, as the encoder last got it.
    pushback: Option<Rate>,
    /// Decision without alarm and probes; none after a change of the published state or of the limits.
    policy: Option<Decision>,
    /// New results of one report; a field so that the memory is reused.
    fresh: Vec<PacketResult>,
    /// Received packets among them, in order of arrival.
    arrived: Vec<PacketResult>,
}

impl GoogCc {
    /// Creates a controller, which begins with the first limits.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let start = Limits::default().start;
        Self {
            acked: Robust::default(),
            delay: Delay::new(settings.trend_window, start, CONGESTION_CONTROLLER_MIN_BITRATE),
            limits: Limits::default(),
            next_process: None,
            alr: Alr::default(),
            was_app_limited: false,
            history: ReportHistory::default(),
            probe_rate: ProbeRate::default(),
            bandwidth: Bandwidth::new(),
            window: Window::default(),
            probing: Probing::default(),
            network: None,
            lost: 0,
            published: None,
            pushback: None,
            policy: None,
            fresh: Vec::new(),
            arrived: Vec::new(),
            settings,
        }
    }

    /// Sets the capacity that the network reports of itself (`OnNetworkStateEstimate`); none withdraws it.
    pub fn set_network(&mut self, network: Option<NetworkStateEstimate>) {
        self.network = network;
    }

    /// Passes on the limits and, if given, a new start rate (`ResetConstraints`).
    fn reset_constraints(&mut self, start: Option<Rate>, now: Time, requests: &mut ProbeRequests) {
        let allocated = Rate::from_bps_f64(self.settings.least_allocated);
        let min_rate = self.limits.min.max(CONGESTION_CONTROLLER_MIN_BITRATE).max(allocated);
        let max_rate = self.limits.max.max(min_rate);
        let start = start.map(|start| start.max(min_rate));
        self.bandwidth.set_limits(start, min_rate, max_rate, now);
        if let Some(start) = start {
            self.delay.rate.set_start(start);
        }
        self.delay.rate.set_min_rate(min_rate);
        self.probing.set_limits(&self.settings, min_rate, start, max_rate, now, requests);
    }

    /// Starts anew on another route (`OnNetworkRouteChange`).
    fn change_route(&mut self, now: Time, requests: &mut ProbeRequests) {
        self.acked = Robust::default();
        self.probe_rate.reset();
        self.delay =
            Delay::new(self.settings.trend_window, self.limits.start, CONGESTION_CONTROLLER_MIN_BITRATE);
        self.bandwidth.reset();
        self.probing.reset(now);
        self.reset_constraints(Some(self.limits.start), now, requests);
        self.publish(now, requests);
    }

    /// Processes periodically, if that is due (`OnProcessInterval`).
    fn process(&mut self, now: Time, requests: &mut ProbeRequests) {
        if self.next_process.is_none_or(|due| due > now) {
            return;
        }
        self.next_process = Some(now + PROCESS_INTERVAL);
        self.bandwidth.update(&self.settings, now);
        self.probing.set_alr(self.alr.since());
        self.probing.process(&self.settings, now, requests);
        self.resize_window();
        self.publish(now, requests);
    }

    fn resize_window(&mut self) {
        if let (Some(published), true) = (self.published, self.settings.pushback != Pushback::Off) {
            self.window.resize(&self.settings, published.target);
        }
    }

    /// Takes the losses of a receiver report (`RtpTransportControllerSend::OnReport`, `OnTransportLossReport`).
    fn on_loss_report(&mut self, report: &LossReport, now: Time) {
        let lost = i64::from(report.cumulative_lost) - self.lost;
        self.lost = i64::from(report.cumulative_lost);
        let expected = i64::from(report.expected);
        // the first report has no predecessor, and a report without a received packet says nothing of losses
        if expected > 0 && expected - lost >= 1 {
            self.bandwidth.report(&self.settings, lost, expected, now);
        }
    }

    /// Collects the new results of a report, as they are and, of received packets, in order of arrival.
    fn collect_new(&mut self, report: &Report) {
        let history = &mut self.history;
        let is_new =
            |packet: &&PacketResult| history.note(packet.sequence, packet.arrival.is_some()) != News::Stale;
        self.fresh.clear();
        self.fresh.extend(report.packets.iter().filter(is_new));
        self.arrived.clear();
        self.arrived.extend(self.fresh.iter().filter(|packet| packet.arrival.is_some()));
        let order = |packet: &PacketResult| (packet.arrival, packet.sent, packet.sequence);
        if !self.arrived.is_sorted_by_key(order) {
            self.arrived.sort_unstable_by_key(order);
        }
    }

    /// Passes the round trips of a report's packets to the congestion window and the back-off.
    fn update_round_trips(&mut self, now: Time) {
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
        self.bandwidth.on_feedback(shortest, now);
    }

    /// Takes a probe's result, if there is a credible one.
    fn probe_result(&mut self, acked: Option<Rate>) -> Option<Rate> {
        let result = self.probe_rate.take()?;
        let estimate = self.delay.rate.rate;
        if self.network.is_some_and(|network| result < estimate && result < network.lower) {
            return None;
        }
        // not far below the received rate, which the path has carried
        Some(
            acked.map_or(result, |acked| {
                result.max(estimate.min(acked.scaled(PROBE_DROP_THROUGHPUT_FRACTION)))
            }),
        )
    }

    /// Start of the application-limited region, while it lasts; its end is passed to the probe controller.
    fn update_app_limited(&mut self, now: Time) -> Option<Time> {
        let since = self.alr.since();
        if self.was_app_limited && since.is_none() {
            self.probing.alr_ended(now);
        }
        self.was_app_limited = since.is_some();
        since
    }

    /// Takes per-packet feedback (`OnTransportPacketsFeedback`).
    fn on_packets(&mut self, now: Time, report: &Report, requests: &mut ProbeRequests, cx: &mut Context<'_>) {
        self.collect_new(report);
        if self.fresh.is_empty() {
            return;
        }
        if let Some(newest) = self.fresh.iter().map(|packet| packet.sequence).max() {
            self.window.reported(newest);
        }
        self.update_round_trips(now);
        let app_limited = self.update_app_limited(now);
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
        self.bandwidth.packets(&self.settings, packets, app_limited.is_some(), now);
        if verdict.rate.is_some() {
            self.publish(now, requests);
        }
        if verdict.recovered {
            self.probing.set_alr(app_limited);
            self.probing.recovered(&self.settings, now, requests);
        }
        self.resize_window();
        if cx.wants_notes() {
            self.note(acked, probe, cx);
        }
    }

    /// Publishes a changed state to the parts that depend on it (`MaybeTriggerOnNetworkChanged`).
    fn publish(&mut self, now: Time, requests: &mut ProbeRequests) {
        let target = self.bandwidth.target();
        let pushback_target = match self.settings.pushback {
            Pushback::Off => target,
            Pushback::Frames | Pushback::Rate => {
                self.window.pushback_target(&self.settings, target).max(self.bandwidth.min_rate())
            }
        };
        let state = PublishedState {
            target,
            pushback_target,
            stable: self.bandwidth.stable().min(pushback_target),
            fraction_lost: self.bandwidth.fraction_lost,
            rtt: self.bandwidth.rtt,
            state: self.bandwidth.state,
        };
        if self.published == Some(state) {
            return;
        }
        // the call forwards only changes of target, loss or round trip (`CongestionControlHandler::GetUpdate`)
        let forwarded = |state: PublishedState| (state.target, state.fraction_lost, state.rtt);
        if self.published.is_none_or(|before| forwarded(before) != forwarded(state)) {
            let pushes_back = self.settings.pushback == Pushback::Frames && pushback_target < target;
            self.pushback = pushes_back.then_some(pushback_target);
        }
        self.published = Some(state);
        self.policy = None;
        self.alr.set_estimate(&self.settings, target);
        self.probing.set_estimate(&self.settings, target, self.limited_cause(), now, requests);
    }

    /// Cause that limits the target, as far as it matters to a probe (`GetBandwidthLimitedCause`).
    fn limited_cause(&self) -> BandwidthLimitedCause {
        if self.delay.usage() != Usage::Normal || self.bandwidth.is_rtt_above_limit(&self.settings) {
            return BandwidthLimitedCause::Congestion;
        }
        match self.bandwidth.state {
            State::DelayBased => BandwidthLimitedCause::Delay,
            State::Increasing => BandwidthLimitedCause::LossIncreasing,
            State::IncreasingWithPadding | State::Decreasing => BandwidthLimitedCause::Congestion,
        }
    }

    /// Complete decision, with the probes that the event requested.
    fn decision(&mut self, requests: &ProbeRequests) -> Decision {
        let mut decision = match self.policy {
            Some(policy) => policy,
            None => *self.policy.insert(self.rates()),
        };
        if !requests.is_empty() {
            decision.probes = requests.probes();
            decision.probes.iter().for_each(|&probe| self.probe_rate.request(probe));
        }
        decision.alarm = self.next_process;
        decision
    }

    /// Target, pacing and padding rate (`GetPacingRates`).
    fn rates(&self) -> Decision {
        let target = self.bandwidth.target();
        let PublishedState { target, pushback_target, state, .. } =
            self.published.unwrap_or(PublishedState {
                target,
                pushback_target: target,
                stable: target,
                fraction_lost: 0,
                rtt: Span::ZERO,
                state: State::DelayBased,
            });
        let allocated = Rate::from_bps_f64(self.settings.least_allocated);
        let configured = Rate::from_bps_f64(self.settings.padding);
        let padding = if state == State::IncreasingWithPadding { configured.max(target) } else { configured };
        let decided = if self.settings.pushback == Pushback::Rate { pushback_target } else { target };
        let decision = Decision {
            padding: whole_bytes(padding.min(pushback_target)),
            pushback: self.pushback,
            ..Decision::rate(decided.clamp(self.limits.min, self.limits.max))
        };
        Pacing::of(&self.settings).paced(decision, target.max(allocated))
    }

    fn note(&self, acked: Option<Rate>, probe: Option<Rate>, cx: &mut Context<'_>) {
        cx.note("rate_state", self.delay.rate.state.code());
        cx.note("delay_based", self.delay.rate.rate.as_bps_f64());
        cx.note("loss_based", self.bandwidth.loss.rate.as_bps_f64());
        cx.note("loss_state", self.bandwidth.state.code());
        cx.note("loss_fraction", f64::from(self.bandwidth.fraction_lost) / 256.0);
        cx.note("rtt_ms", self.bandwidth.rtt.as_millis_f64());
        cx.note("app_limited", f64::from(u8::from(self.was_app_limited)));
        if let Some(acked) = acked {
            cx.note("received_rate", acked.as_bps_f64());
        }
        if let Some(probe) = probe {
            cx.note("probe_rate", probe.as_bps_f64());
        }
    }

    /// Notes the stable target if it has changed since `before`, and returns the decision.
    fn decide(
        &mut self,
        before: Option<PublishedState>,
        requests: &ProbeRequests,
        cx: &mut Context<'_>,
    ) -> Decision {
        if let Some(published) = self.published
            && before.is_none_or(|before| before.stable != published.stable)
        {
            cx.note("stable_target", published.stable.as_bps_f64());
        }
        self.decision(requests)
    }
}

impl Controller for GoogCc {
    fn needs(&self) -> Needs {
        Needs { counts: Counts::Ip, ..Needs::feedback(FeedbackKind::PerPacket) }
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let (before, mut requests) = (self.published, ProbeRequests::default());
        self.process(now, &mut requests);
        if let Some(remb) = report.remb {
            self.bandwidth.set_receiver(remb, now);
        }
        if let Some(loss) = &report.loss {
            self.on_loss_report(loss, now);
        }
        if let Some(rtt) = report.report_rtt.filter(|&rtt| rtt > Span::ZERO) {
            self.delay.rate.set_rtt(rtt);
            self.bandwidth.rtt = rtt;
        }
        if !report.packets.is_empty() {
            self.on_packets(now, report, &mut requests, cx);
        }
        self.decide(before, &requests, cx)
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        let (before, mut requests) = (self.published, ProbeRequests::default());
        self.process(now, &mut requests);
        self.decide(before, &requests, cx)
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision {
        let (before, mut requests) = (self.published, ProbeRequests::default());
        let old = std::mem::replace(&mut self.limits, *limits);
        self.policy = None;
        let wanted = limits.wanted.unwrap_or(Rate::ZERO);
        let first = self.next_process.is_none();
        if first {
            self.next_process = Some(now);
            self.reset_constraints(Some(limits.start), now, &mut requests);
            self.probing.set_wanted(&self.settings, wanted, now, &mut requests);
        }
        self.process(now, &mut requests);
        if !first {
            if limits.route_changed {
                self.change_route(now, &mut requests);
            } else if (old.min, old.max, old.start) != (limits.min, limits.max, limits.start) {
                self.reset_constraints(
                    Some(limits.start).filter(|&start| start != old.start),
                    now,
                    &mut requests,
                );
                self.publish(now, &mut requests);
            }
            if limits.wanted != old.wanted {
                self.probing.set_wanted(&self.settings, wanted, now, &mut requests);
            }
        }
        self.decide(before, &requests, cx)
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        let (before, mut requests) = (self.published, ProbeRequests::default());
        self.process(now, &mut requests);
        self.alr.sent(&self.settings, now, packet.size);
        self.bandwidth.sent(now);
        if self.settings.pushback != Pushback::Off {
            self.window.sent(packet.sequence, packet.size);
            self.publish(now, &mut requests);
        }
        self.decide(before, &requests, cx)
    }

    fn needs_sent(&self) -> bool {
        true
    }

    /// Target, which is A_hat in RFC 8699 appendix A.
    fn coupled_rate(&self) -> Option<Rate> {
        Some(self.bandwidth.target())
    }

    fn on_coupled(&mut self, now: Time, rate: Rate, cx: &mut Context<'_>) -> Decision {
        let (before, mut requests) = (self.published, ProbeRequests::default());
        // scales all parts, so that those above the target keep their distance from it
        let factor = rate.as_bps_f64() / self.bandwidth.target().as_bps_f64().max(1.0);
        self.delay.rate.scale(factor);
        self.bandwidth.scale(factor, now);
        self.publish(now, &mut requests);
        self.decide(before, &requests, cx)
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
        controller.probe_rate.request(Probe { id: 1, rate, min_packets: 5, ..Probe::default() });
        for i in 0..5 {
            controller.probe_rate.packet(1, i * 40_000_000, i * 40_000_000, Size::from_bytes(1000));
        }
        controller
    }

    #[test]
    fn a_probe_far_below_what_arrives_is_not_believed() {
        let result = |acked: Option<u64>| probed().probe_result(acked.map(Rate::from_kbps));
        assert_eq!(result(None), Some(Rate::from_kbps(200)));
        assert_eq!(result(Some(800)), Some(Rate::from_kbps(680)));
        assert_eq!(result(Some(2000)), Some(Rate::from_mbps(1)), "nor does it raise the rate");
        assert_eq!(result(Some(100)), Some(Rate::from_kbps(200)));
        // nor is a result below the capacity that the network reports
        let result_with_lower = |lower| {
            let mut controller = probed();
            controller
                .set_network(Some(NetworkStateEstimate { lower: Rate::from_kbps(lower), upper: Rate::MAX }));
            controller.probe_result(None)
        };
        assert_eq!((result_with_lower(201), result_with_lower(200)), (None, Some(Rate::from_kbps(200))));
    }

    #[test]
    fn the_end_of_a_limit_lets_a_recovery_be_probed_for() {
        let recovered = |limited| {
            let mut controller = GoogCc::new(Settings::default());
            let (mut requests, settings) = (ProbeRequests::default(), Settings::default());
            let millis = Time::from_millis;
            controller.probing.set_limits(
                &settings,
                CONGESTION_CONTROLLER_MIN_BITRATE,
                Some(Rate::from_mbps(1)),
                Rate::MAX,
                millis(0),
                &mut requests,
            );
            controller.probing.process(&settings, millis(1001), &mut requests);
            controller.probing.set_estimate(
                &settings,
                Rate::from_kbps(300),
                BandwidthLimitedCause::Delay,
                millis(2000),
                &mut requests,
            );
            controller.was_app_limited = limited;
            controller.update_app_limited(millis(2100));
            let mut requests = ProbeRequests::default();
            controller.probing.recovered(&settings, millis(2200), &mut requests);
            requests.probes().first().map(|probe| probe.rate)
        };
        assert_eq!(recovered(true), Some(Rate::from_kbps(850)));
        assert_eq!(recovered(false), None);
    }
}
