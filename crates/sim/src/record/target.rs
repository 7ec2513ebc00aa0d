//! Targets of media flows: their means, and their distances from the rates that the paths leave to the flows.

use super::FlowInfo;
use tidegate_core::{NodeId, Rate, Span, Time};

/// Interval in which the available rate is measured (RFC 8868 section 3 logs rates every 200 ms).
pub const INTERVAL: Span = Span::from_millis(200);

/// Distance from the available rate up to which a target is neither over nor under it, and up to which an available
/// rate has not changed, as a fraction of that rate; and of a receive rate from its final share. Ours.
pub(super) const BAND: f64 = 0.1;

/// Seconds that a target, or a receive rate, has to stay within [`BAND`] to have converged. Ours.
pub(super) const HOLD_S: u8 = 5;
const HOLD: Span = Span::from_secs(HOLD_S as i64);

/// Time after its last packet in which a TCP flow still shares its path. Ours: the least retransmission timeout of RFC
/// 6298, so that a pause for one does not end a share.
const TCP_SILENCE: Span = Span::from_secs(1);

/// Part that a flow has in the rate which others find available.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sharing {
    /// Shares its path during its life, except in its pauses: media under a controller that adapts.
    Adaptive,
    /// Shares its path while it sends: TCP.
    Sending,
    /// Takes its rate first: UDP, media that do not adapt.
    Fixed,
    /// Unknown: traffic of a driver, a program or a session.
    #[default]
    Unknown,
}

/// Parts of `[from, to)` after the warm-up in which a flow runs and does not pause.
fn active(info: &FlowInfo, warmup: Time, from: Time, to: Time) -> impl Iterator<Item = (Time, Time)> + '_ {
    let (mut begin, end) = (from.max(info.start).max(warmup), to.min(info.stop));
    let pauses = info.pauses.iter().copied().chain([(Time::MAX, Time::MAX)]);
    pauses
        .map(move |(pause, resumption)| {
            let part = (begin, pause.min(end));
            begin = begin.max(resumption);
            part
        })
        .filter(|(begin, end)| begin < end)
}

/// The mean of a target while its flow was active.
#[derive(Clone, Copy, Debug, Default)]
struct TargetMean {
    target: Option<Rate>,
    since: Time,
    seconds: f64,
    bits: f64,
}

impl TargetMean {
    fn advance(&mut self, info: &FlowInfo, warmup: Time, now: Time) {
        if let Some(target) = self.target {
            for (begin, end) in active(info, warmup, self.since, now) {
                let seconds = (end - begin).as_secs_f64();
                self.seconds += seconds;
                self.bits += target.as_bps_f64() * seconds;
            }
        }
        self.since = now;
    }
}

/// A change of the available rate, and the target since then.
#[derive(Clone, Copy, Debug)]
struct Change {
    time: Time,
    /// Since when the target has been within [`BAND`].
    within: Option<Time>,
    converged: Option<Span>,
}

/// A target, compared with the available rate.
#[derive(Clone, Copy, Debug, Default)]
struct Comparison {
    seconds: f64,
    available: f64,
    excess: f64,
    shortfall: f64,
    over: f64,
    under: f64,
    /// The available rate after the last change, in bit/s.
    reference: f64,
    change: Option<Change>,
    changes: u64,
    unconverged: u64,
    convergence: Span,
    /// End of the last compared stretch.
    compared: Option<Time>,
}

impl Comparison {
    /// Takes a stretch of time with one target and one available rate, in bit/s. `begins`: whether it is the first one, and
    /// its beginning counts as a change.
    fn add(&mut self, (from, to): (Time, Time), target: f64, available: f64, begins: bool) {
        let resumed = self.compared.map_or(begins, |compared| compared != from);
        let changed = (available - self.reference).abs() > BAND * self.reference;
        if resumed || (changed && self.compared.is_some()) {
            self.close();
            self.change = Some(Change { time: from, within: None, converged: None });
        }
        if resumed || changed {
            self.reference = available;
        }
        self.compared = Some(to);
        let (seconds, distance) = ((to - from).as_secs_f64(), target - available);
        self.seconds += seconds;
        self.available += available * seconds;
        self.excess += distance.max(0.0) * seconds;
        self.shortfall += (-distance).max(0.0) * seconds;
        let is_within = distance.abs() <= BAND * available;
        if !is_within {
            *(if distance > 0.0 { &mut self.over } else { &mut self.under }) += seconds;
        }
        if let Some(change) = self.change.as_mut().filter(|change| change.converged.is_none()) {
            change.within = if is_within { change.within.or(Some(from)) } else { None };
            change.converged =
                change.within.filter(|&since| to - since >= HOLD).map(|since| since - change.time);
        }
    }

    /// Counts the last change, unless it was followed by another one, or by the end, so soon that no target could converge.
    fn close(&mut self) {
        let (Some(change), Some(end)) = (self.change.take(), self.compared) else { return };
        if end - change.time < HOLD {
            return;
        }
        self.changes += 1;
        self.unconverged += u64::from(change.converged.is_none());
        self.convergence += change.converged.unwrap_or(end - change.time);
    }
}

/// Sums over a flow's time, as metrics: see the rows of the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TargetMetrics {
    /// Mean target, in bit/s.
    pub target: Option<f64>,
    /// Mean available rate, in bit/s.
    pub available: Option<f64>,
    /// Mean excess as a fraction of the mean available rate.
    pub excess: Option<f64>,
    /// Mean shortfall as a fraction of the mean available rate.
    pub shortfall: Option<f64>,
    /// Share of the time with a target over the available rate.
    pub over: Option<f64>,
    /// Share of the time with a target under the available rate.
    pub under: Option<f64>,
    /// Changes of the available rate.
    pub changes: Option<u64>,
    /// Changes after which the target did not converge.
    pub unconverged: Option<u64>,
    /// Mean convergence time, in seconds.
    pub convergence: Option<f64>,
}

/// A link in the present interval.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Mean capacity; [`Rate::MAX`] for no limit, `None` for an unknown one.
    capacity: Option<Rate>,
    /// Rate of the flows that do not adapt, in bit/s.
    fixed: f64,
    /// Number of flows that share it.
    sharing: u32,
    /// Whether a flow crosses it of which nothing is known.
    unknown: bool,
}

/// A flow in the present interval.
#[derive(Clone, Debug, Default)]
struct FlowState {
    mean: TargetMean,
    /// Target at the beginning of the interval, and the changes in it: as many as the controller makes in 200 ms.
    target: Option<Rate>,
    targets: Vec<(Time, Rate)>,
    /// Departure of the last packet.
    last_sent: Option<Time>,
    /// Bits of a flow that does not adapt, in this interval and in the next one.
    offered: [f64; 2],
    /// Rate of a flow that does not adapt, in bit/s.
    fixed: f64,
    shares: bool,
    comparison: Comparison,
}

/// Targets of all flows, and what is available to them.
#[derive(Clone, Debug)]
pub struct Targets {
    warmup: Time,
    /// Whether intervals will end; otherwise only means are computed.
    compares: bool,
    /// Beginning of the present interval.
    from: Time,
    flows: Vec<FlowState>,
    loads: Vec<Load>,
}

impl Targets {
    /// No targets yet of `flows` flows on `nodes` nodes; nothing counts before `warmup`.
    #[must_use]
    pub fn new(warmup: Time, flows: usize, nodes: usize) -> Self {
        let flows = vec![FlowState::default(); flows];
        Self { warmup, compares: false, from: Time::ZERO, flows, loads: vec![Load::default(); nodes] }
    }

    /// Enables comparisons, for which [`Targets::end_interval`] has to be called.
    pub(super) fn compare(&mut self) {
        self.compares = true;
    }

    /// Beginning of the interval that is open at `end`, if there is one.
    pub(super) fn open(&self, end: Time) -> Option<Time> {
        (self.compares && self.from < end).then_some(self.from)
    }

    /// Takes a new target of a flow.
    pub fn decided(&mut self, now: Time, flow: usize, info: &FlowInfo, target: Rate) {
        let state = &mut self.flows[flow];
        state.mean.advance(info, self.warmup, now);
        state.mean.target = Some(target);
        if self.compares {
            state.targets.push((now, target));
        }
    }

    /// Takes a packet of media or data. Its bits count evenly over the time since the flow's last packet, at most an
    /// interval, from its departure on: so a constant bit rate has its rate in each interval.
    #[inline]
    pub fn sent(&mut self, now: Time, flow: usize, sharing: Sharing, size: u32) {
        if matches!(sharing, Sharing::Adaptive | Sharing::Unknown) {
            return;
        }
        let state = &mut self.flows[flow];
        let gap = state.last_sent.replace(now).map_or(INTERVAL, |last| (now - last).min(INTERVAL));
        if sharing == Sharing::Fixed {
            let bits = f64::from(size) * 8.0;
            let rest = self.from + INTERVAL - now;
            let part = if rest >= gap && rest > Span::ZERO {
                1.0
            } else {
                rest.max(Span::ZERO).as_secs_f64() / gap.max(Span::from_nanos(1)).as_secs_f64()
            };
            state.offered[0] += bits * part;
            state.offered[1] += bits * (1.0 - part);
        }
    }

    /// Ends an interval in which the links with a known capacity had these means.
    pub fn end_interval(&mut self, infos: &[FlowInfo], (from, to): (Time, Time), rates: &[(NodeId, Rate)]) {
        self.loads.fill(Load::default());
        for &(node, rate) in rates {
            self.loads[node.0 as usize].capacity = Some(rate);
        }
        let seconds = (to - from).as_secs_f64();
        for (state, info) in self.flows.iter_mut().zip(infos) {
            state.fixed = state.offered[0] / seconds;
            state.offered = [state.offered[1], 0.0];
            state.shares = match info.sharing {
                Sharing::Adaptive => active(info, Time::ZERO, from, to).next().is_some(),
                Sharing::Sending => state.last_sent.is_some_and(|last| from - last <= TCP_SILENCE),
                Sharing::Fixed | Sharing::Unknown => false,
            };
            for link in info.path.at(from) {
                let load = &mut self.loads[link.0 as usize];
                load.fixed += state.fixed;
                load.sharing += u32::from(state.shares);
                load.unknown |= info.sharing == Sharing::Unknown;
            }
        }
        for (state, info) in self.flows.iter_mut().zip(infos) {
            let available = available(&self.loads, state, info.path.at(from));
            compare(state, info, self.warmup, (from, to), available);
        }
        self.from = to;
    }

    /// The metrics of a flow up to its stop.
    #[must_use]
    pub fn metrics(&self, flow: usize, info: &FlowInfo) -> TargetMetrics {
        let FlowState { mut mean, mut comparison, .. } = self.flows[flow].clone();
        mean.advance(info, self.warmup, info.stop);
        comparison.close();
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let compared = comparison.seconds > 0.0;
        let changes = comparison.changes;
        TargetMetrics {
            target: ratio(mean.bits, mean.seconds),
            available: ratio(comparison.available, comparison.seconds),
            excess: ratio(comparison.excess, comparison.available),
            shortfall: ratio(comparison.shortfall, comparison.available),
            over: ratio(comparison.over, comparison.seconds),
            under: ratio(comparison.under, comparison.seconds),
            changes: compared.then_some(changes),
            unconverged: compared.then_some(comparison.unconverged),
            convergence: (changes > 0).then(|| comparison.convergence.as_secs_f64() / changes as f64),
        }
    }
}

/// The rate that is available to a flow, in bit/s: the least, of the links on its path, of what the flows that do not adapt
/// leave, divided by the number of flows that share the link, the flow itself included. `None` without a limit, or where it
/// is unknown.
fn available(loads: &[Load], state: &FlowState, links: &[NodeId]) -> Option<f64> {
    let mut least = f64::INFINITY;
    for link in links {
        let load = &loads[link.0 as usize];
        let capacity = load.capacity.filter(|_| !load.unknown)?;
        if capacity != Rate::MAX {
            let rest = capacity.as_bps_f64() - (load.fixed - state.fixed);
            least = least.min(rest.max(0.0) / f64::from(load.sharing + u32::from(!state.shares)));
        }
    }
    least.is_finite().then_some(least)
}

/// Compares the targets of an interval with the available rate.
fn compare(
    state: &mut FlowState,
    info: &FlowInfo,
    warmup: Time,
    (from, to): (Time, Time),
    available: Option<f64>,
) {
    let begins = info.start >= warmup;
    let mut begin = from;
    let end = std::iter::once((to, None));
    for (time, target) in state.targets.drain(..).map(|(time, target)| (time, Some(target))).chain(end) {
        if let (Some(target), Some(available)) = (state.target, available) {
            for part in active(info, warmup, begin, time) {
                let begins = begins || part.0 > warmup;
                state.comparison.add(part, target.as_bps_f64(), available, begins);
            }
        }
        begin = time;
        state.target = target.or(state.target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: NodeId = NodeId(0);

    fn info(sharing: Sharing, start: i64, stop: i64, pauses: &[(i64, i64)]) -> FlowInfo {
        FlowInfo {
            name: "x".into(),
            kind: "media",
            controller: "y".into(),
            start: Time::from_secs(start),
            stop: Time::from_secs(stop),
            tightest: None,
            path: vec![LINK].into(),
            overhead: 28,
            sharing,
            pauses: pauses.iter().map(|&(from, to)| (Time::from_secs(from), Time::from_secs(to))).collect(),
        }
    }

    #[test]
    fn a_flow_is_active_but_for_its_pauses() {
        let parts = |warmup, from, to| -> Vec<(i64, i64)> {
            let info = info(Sharing::Adaptive, 2, 20, &[(0, 3), (5, 6), (6, 8), (18, 30)]);
            let seconds = |time: Time| time.as_nanos() / 1_000_000_000;
            let [warmup, from, to] = [warmup, from, to].map(Time::from_secs);
            active(&info, warmup, from, to).map(|(from, to)| (seconds(from), seconds(to))).collect()
        };
        assert_eq!(parts(0, 0, 40), [(3, 5), (8, 18)]);
        assert_eq!(parts(9, 0, 40), [(9, 18)]);
        assert_eq!(parts(0, 4, 9), [(4, 5), (8, 9)]);
        assert_eq!(parts(0, 5, 8), []);
        assert_eq!(parts(0, 19, 40), []);
    }

    /// The rate of a flow that does not adapt in each of the first intervals; packets leave at these times in ms.
    fn offered(departures: impl IntoIterator<Item = i64>, size: u32, intervals: i64) -> Vec<f64> {
        let infos = [info(Sharing::Fixed, 0, 100, &[])];
        let mut targets = Targets::new(Time::ZERO, 1, 1);
        let mut departures = departures.into_iter().map(Time::from_millis).peekable();
        let ends = (1..=intervals).map(|n| Time::ZERO + INTERVAL * n);
        ends.map(|to| {
            while let Some(time) = departures.next_if(|&time| time <= to) {
                targets.sent(time, 0, Sharing::Fixed, size);
            }
            targets.end_interval(&infos, (to - INTERVAL, to), &[(LINK, Rate::MAX)]);
            targets.flows[0].fixed
        })
        .collect()
    }

    #[test]
    fn constant_packets_have_their_rate_in_each_interval() {
        // 1250 bytes each 30 ms, of which 200 ms are no multiple
        let constant = offered((0..600).step_by(30), 1250, 4);
        let rate = 10_000.0 / 0.03;
        // the first packet counts for 200 ms, in the place of the next 30
        assert!((constant[0] - (rate * 0.17 / 0.2 + 50_000.0)).abs() < 1e-6, "{constant:?}");
        assert!((constant[1] - rate).abs() < 1e-6 && (constant[2] - rate).abs() < 1e-6, "{constant:?}");
        assert!(constant[3] == 0.0, "{constant:?}");
        // sparse ones count in the interval after each
        assert_eq!(offered([100, 900], 1250, 6), [25e3, 25e3, 0.0, 0.0, 25e3, 25e3]);
        // and several at one instant at once
        assert_eq!(offered([0, 0, 200], 1250, 2), [100e3, 50e3]);
    }

    #[test]
    fn a_target_without_intervals_has_a_mean_and_nothing_else() {
        let mut targets = Targets::new(Time::from_secs(4), 1, 1);
        let info = info(Sharing::Unknown, 0, 10, &[]);
        targets.decided(Time::ZERO, 0, &info, Rate::from_kbps(100));
        targets.decided(Time::from_secs(8), 0, &info, Rate::from_kbps(400));
        let metrics = targets.metrics(0, &info);
        assert_eq!(metrics, TargetMetrics { target: Some(200_000.0), ..TargetMetrics::default() });
        assert!(targets.flows[0].targets.is_empty(), "nothing is kept that no interval takes");
    }

    #[test]
    fn an_unknown_flow_leaves_the_rate_unknown() {
        let run = |other: Sharing, rates: &[(NodeId, Rate)]| {
            let infos = [info(Sharing::Adaptive, 0, 10, &[]), info(other, 0, 10, &[])];
            let mut targets = Targets::new(Time::ZERO, 2, 1);
            targets.compare();
            targets.decided(Time::ZERO, 0, &infos[0], Rate::from_mbps(1));
            targets.sent(Time::ZERO, 1, other, 1250);
            targets.end_interval(&infos, (Time::ZERO, Time::ZERO + INTERVAL), rates);
            targets.metrics(0, &infos[0]).available
        };
        let known = [(LINK, Rate::from_mbps(2))];
        assert_eq!(run(Sharing::Adaptive, &known), Some(1e6));
        assert_eq!(run(Sharing::Sending, &known), Some(1e6));
        assert_eq!(run(Sharing::Fixed, &known), Some(1.95e6));
        assert_eq!(run(Sharing::Unknown, &known), None);
        assert_eq!(run(Sharing::Adaptive, &[]), None);
        assert_eq!(run(Sharing::Adaptive, &[(LINK, Rate::MAX)]), None);
    }
}
