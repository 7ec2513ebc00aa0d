//! Coupled congestion control (RFC 8699): the flows of one sender share, by priority, the sum of the rates that their
//! controllers have found.
//!
//! This is only the flow state exchange (FSE), in the RFC's names: the driver of the endpoints passes each new rate to
//! it and assigns the rates that it returns.

use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span, Time};

/// Rule by which the aggregate follows the rate of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// It changes by as much as the flow's rate does (section 5.3.1).
    #[default]
    Active,
    /// It falls in proportion, once in two round trips, as a single flow would (section 5.3.2).
    Conservative,
}

/// A sender's state, as it passes it to the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowUpdate {
    /// The initial rate of its controller.
    pub initial: Rate,
    /// CC_R: the rate that its controller has calculated.
    pub rate: Rate,
    /// DR: the rate that its sources and its session allow.
    pub desired: Rate,
    /// Its last round trip.
    pub rtt: Option<Span>,
}

/// State of a flow (section 5.2).
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// P(f).
    priority: f64,
    /// FSE_R(f), bit/s; none while the flow is not registered.
    rate: Option<f64>,
    /// DR(f), bit/s; infinite where nothing limits it.
    desired: f64,
}

/// The flow state exchange of one group of flows.
#[derive(Clone, Debug)]
pub struct Fse {
    algorithm: Algorithm,
    flows: Vec<Entry>,
    /// S_CR, bit/s.
    sum: f64,
    /// When the conservative algorithm may reduce the sum again.
    timer: Time,
}

impl Fse {
    /// An exchange for as many flows as there are `priorities`, each more than zero; none is registered yet.
    #[must_use]
    pub fn new(algorithm: Algorithm, priorities: &[f64]) -> Self {
        let entry = |&priority| Entry { priority, rate: None, desired: f64::INFINITY };
        Self { algorithm, flows: priorities.iter().map(entry).collect(), sum: 0.0, timer: Time::ZERO }
    }

    /// FSE_R of a flow; none while it is not registered.
    #[must_use]
    pub fn rate(&self, flow: usize) -> Option<Rate> {
        self.flows[flow].rate.map(Rate::from_bps_f64)
    }

    /// Step (1): a flow starts, or goes on after a pause, with this rate. Distributes the new sum.
    pub fn register(&mut self, flow: usize, rate: Rate, desired: Option<Rate>) {
        let rate = rate.as_bps_f64();
        self.sum += rate - self.flows[flow].rate.unwrap_or(0.0);
        self.flows[flow].rate = Some(rate);
        self.desire(flow, desired);
        self.distribute();
    }

    /// Step (2): a flow stops or pauses. The sum stays, as in the RFC: the remaining flows share it at their next
    /// update, since the bottleneck is as wide as before.
    pub fn deregister(&mut self, flow: usize) {
        self.flows[flow].rate = None;
        if self.flows.iter().all(|entry| entry.rate.is_none()) {
            self.sum = 0.0;
        }
    }

    /// Step (3): the controller of a registered flow has calculated a new rate, or its sources want another one.
    /// Distributes the new sum. `rtt`: the round trip of the flow.
    pub fn update(
        &mut self,
        now: Time,
        flow: usize,
        calculated: Rate,
        desired: Option<Rate>,
        rtt: Option<Span>,
    ) {
        let Some(rate) = self.flows[flow].rate else { return };
        let calculated = calculated.as_bps_f64();
        match self.algorithm {
            Algorithm::Active => self.sum += calculated - rate,
            Algorithm::Conservative if now < self.timer => {}
            Algorithm::Conservative if calculated < rate => {
                self.sum *= calculated / rate;
                self.timer = now + rtt.map_or(Span::ZERO, |rtt| rtt + rtt);
            }
            Algorithm::Conservative => self.sum += calculated - rate,
        }
        self.desire(flow, desired);
        self.distribute();
    }

    /// Notes that a flow goes at another rate than the one assigned, because its session has limits of its own.
    pub fn took(&mut self, flow: usize, rate: Rate) {
        if let Some(assigned) = &mut self.flows[flow].rate {
            *assigned = rate.as_bps_f64();
        }
    }

    fn desire(&mut self, flow: usize, desired: Option<Rate>) {
        self.flows[flow].desired = desired.map_or(f64::INFINITY, Rate::as_bps_f64);
    }

    /// Steps (b) and (c): shares the sum by priority, and gives no flow more than it desires. A share only grows when
    /// another flow is limited, so the loop runs while a pass limits further flows: the RFC's own condition
    /// (`TLO - AR > 0`) may never be met in rounded numbers.
    fn distribute(&mut self) {
        self.sum = self.sum.max(0.0);
        let mut rest = self.sum;
        let mut priorities = 0.0;
        let mut open: Vec<&mut Entry> = self.flows.iter_mut().filter(|entry| entry.rate.is_some()).collect();
        open.iter().for_each(|entry| priorities += entry.priority);
        loop {
            let before = open.len();
            open.retain_mut(|entry| {
                let limited = rest * entry.priority / priorities >= entry.desired;
                if limited {
                    rest -= entry.desired;
                    priorities -= entry.priority;
                    entry.rate = Some(entry.desired);
                }
                !limited
            });
            if open.is_empty() {
                // S_CR is a sum of rates that flows have, so the rest that no flow wants leaves it: if it stayed,
                // it would have to be used up before congestion shows.
                self.sum -= rest;
                return;
            }
            if open.len() == before {
                break;
            }
        }
        for entry in open {
            entry.rate = Some(rest * entry.priority / priorities);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1);

    fn kbps(kbps: u64) -> Rate {
        Rate::from_kbps(kbps)
    }

    fn rates(fse: &Fse) -> Vec<Option<u64>> {
        (0..fse.flows.len()).map(|flow| fse.rate(flow).map(|rate| rate.as_bps() / 1000)).collect()
    }

    /// Three flows of priorities 2, 1 and 1 that came with 1 Mbit/s each.
    fn three(algorithm: Algorithm) -> Fse {
        let mut fse = Fse::new(algorithm, &[2.0, 1.0, 1.0]);
        (0..3).for_each(|flow| fse.register(flow, kbps(1000), None));
        fse
    }

    #[test]
    fn rates_go_by_priority_and_follow_each_change() {
        let mut fse = three(Algorithm::Active);
        assert_eq!(rates(&fse), [Some(1500), Some(750), Some(750)]);
        fse.update(NOW, 1, kbps(1150), None, None);
        assert_eq!(rates(&fse), [Some(1700), Some(850), Some(850)], "400 kbit/s more");
        fse.update(NOW, 0, kbps(900), None, None);
        assert_eq!(rates(&fse), [Some(1300), Some(650), Some(650)], "800 less, of any flow");
    }

    #[test]
    fn a_limited_flow_leaves_its_rest_to_its_siblings() {
        let mut fse = three(Algorithm::Active);
        fse.update(NOW, 0, kbps(1500), Some(kbps(600)), None);
        assert_eq!(rates(&fse), [Some(600), Some(1200), Some(1200)]);
        // a second limited flow takes part of the rate that the first one leaves
        fse.update(NOW, 1, kbps(1200), Some(kbps(1000)), None);
        assert_eq!(rates(&fse), [Some(600), Some(1000), Some(1400)]);
        // all are: the rest that no flow wants is dropped, so that the next reduction is felt at once
        fse.update(NOW, 2, kbps(1400), Some(kbps(700)), None);
        assert_eq!(rates(&fse), [Some(600), Some(1000), Some(700)]);
        fse.update(NOW, 2, kbps(500), Some(kbps(700)), None);
        assert_eq!(rates(&fse), [Some(600), Some(800), Some(700)], "2100 of 2300");
        fse.update(NOW, 0, kbps(600), None, None);
        assert_eq!(rates(&fse), [Some(1050), Some(525), Some(525)], "no limit any longer");
    }

    #[test]
    fn a_flow_that_leaves_leaves_its_share_and_one_that_comes_brings_its_rate() {
        let mut fse = three(Algorithm::Active);
        fse.deregister(0);
        assert_eq!(rates(&fse), [None, Some(750), Some(750)], "at the next update");
        fse.update(NOW, 2, kbps(760), None, None);
        assert_eq!(rates(&fse), [None, Some(1505), Some(1505)]);
        fse.register(0, kbps(300), None);
        assert_eq!(rates(&fse), [Some(1655), Some(827), Some(827)]);
        (0..3).for_each(|flow| fse.deregister(flow));
        fse.register(1, kbps(300), None);
        assert_eq!(rates(&fse), [None, Some(300), None], "no flow was left to keep the sum");
        // updates of an unregistered flow change nothing
        fse.update(NOW, 0, kbps(900), None, None);
        fse.took(0, kbps(900));
        assert_eq!(rates(&fse), [None, Some(300), None]);
    }

    #[test]
    fn the_conservative_sum_falls_in_proportion_and_then_waits() {
        let mut fse = three(Algorithm::Conservative);
        let rtt = Some(Span::from_millis(100));
        // a third less of one flow is a third less of all, where the active algorithm takes 250 kbit/s
        fse.update(NOW, 1, kbps(500), None, rtt);
        assert_eq!(rates(&fse), [Some(1000), Some(500), Some(500)]);
        let soon = NOW + Span::from_millis(199);
        fse.update(soon, 0, kbps(700), None, rtt);
        fse.update(soon, 2, kbps(900), None, rtt);
        assert_eq!(
            rates(&fse),
            [Some(1000), Some(500), Some(500)],
            "neither less nor more within two round trips"
        );
        let later = NOW + Span::from_millis(200);
        fse.update(later, 2, kbps(900), None, rtt);
        assert_eq!(rates(&fse), [Some(1200), Some(600), Some(600)]);
    }

    #[test]
    fn what_a_session_does_not_allow_is_not_counted_as_growth() {
        let mut fse = three(Algorithm::Active);
        fse.took(1, kbps(900));
        fse.update(NOW, 1, kbps(900), None, None);
        assert_eq!(rates(&fse), [Some(1500), Some(750), Some(750)]);
    }

    #[test]
    fn rates_add_up_and_keep_within_desires_whatever_comes() {
        let mut rng = tidegate_core::Stream::new(1, "coupling", "test");
        for _ in 0..2000 {
            let count = 1 + (rng.uniform() * 6.0) as usize;
            let priorities: Vec<f64> = (0..count).map(|_| 0.1 + 8.0 * rng.uniform()).collect();
            let mut fse = Fse::new(Algorithm::Active, &priorities);
            for step in 0..40 {
                let flow = (rng.uniform() * count as f64) as usize;
                let random = |rng: &mut tidegate_core::Stream| Rate::from_bps((rng.uniform() * 5e6) as u64);
                let desired = (rng.uniform() < 0.5).then(|| random(&mut rng));
                match rng.uniform() {
                    x if x < 0.2 => fse.register(flow, random(&mut rng), desired),
                    x if x < 0.3 => fse.deregister(flow),
                    _ => fse.update(Time::from_secs(step), flow, random(&mut rng), desired, None),
                }
                let registered: Vec<_> = fse.flows.iter().filter(|entry| entry.rate.is_some()).collect();
                let rate = |entry: &Entry| entry.rate.unwrap_or(0.0);
                let sum: f64 = registered.iter().map(|entry| rate(entry)).sum();
                assert!(
                    registered
                        .iter()
                        .all(|entry| rate(entry) >= 0.0 && rate(entry) <= entry.desired * (1.0 + 1e-9))
                );
                if fse.flows[flow].rate.is_some() {
                    assert!((sum - fse.sum).abs() <= 1e-6 * (1.0 + fse.sum), "{sum} of {}", fse.sum);
                    let open = registered.iter().filter(|entry| rate(entry) < entry.desired * (1.0 - 1e-9));
                    let shares: Vec<f64> = open.map(|entry| rate(entry) / entry.priority).collect();
                    let (min, max) = (
                        shares.iter().copied().fold(f64::MAX, f64::min),
                        shares.iter().copied().fold(0.0, f64::max),
                    );
                    assert!(shares.is_empty() || max - min <= 1e-6 * max, "{shares:?}");
                }
            }
        }
    }
}
