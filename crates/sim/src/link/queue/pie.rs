//! PIE (RFC 8033): drops or marks incoming packets at random, with a probability that holds the wait at a target.

use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::{DropTail, Room};
use super::fifo::Fifo;
use super::ticks::{Ticks, ensure_periods};
use crate::refusal::{Refusal, ensure, ensure_probability};
use serde::Deserialize;
use tidegate_core::record::Backlog;
use tidegate_core::rng::Draws;
use tidegate_core::{Size, Span, Stream, Time};

/// The parameters of PIE, by the names of RFC 8033.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieSettings {
    /// `QDELAY_REF`: the target wait (section 4.2: 15 ms).
    pub qdelay_ref: Span,
    /// `T_UPDATE`: the time between updates of the probability (section 4.2: 15 ms).
    pub t_update: Span,
    /// `MAX_BURST`: the time after a calm period for which no packet is dropped (section 4.4: 150 ms).
    pub max_burst: Span,
    /// Gain of the distance from the target, in hertz (appendix A: 1/8).
    pub alpha: f64,
    /// Gain of a change of the wait, in hertz (appendix A: 1 1/4).
    pub beta: f64,
    /// `MEAN_PKTSIZE`: with at most twice this many bytes waiting no packet is dropped (section 4.1, which has no
    /// value; the default is that of ns-3's `PieQueueDisc`).
    pub mean_pktsize: Size,
    /// Whether packets of ECN-capable transports are marked instead of dropped (section 5.1).
    pub ecn: bool,
    /// `mark_ecnth`: the probability from which these packets are dropped, too (section 5.1: 0.1).
    pub mark_ecnth: f64,
    /// Whether drops are kept from being too close to each other or too far apart (section 5.4).
    pub derandomize: bool,
    /// Whether the probability, from 10 % on, grows by at most 2 % an update (section 5.5).
    pub cap_drop: bool,
}

impl PieSettings {
    /// The values of RFC 8033, with its optional parts except 5.2 and 5.3.
    pub const RFC_8033: Self = Self {
        qdelay_ref: Span::from_millis(15),
        t_update: Span::from_millis(15),
        max_burst: Span::from_millis(150),
        alpha: 0.125,
        beta: 1.25,
        mean_pktsize: Size::from_bytes(1000),
        ecn: true,
        mark_ecnth: 0.1,
        derandomize: true,
        cap_drop: true,
    };

    fn check(&self) -> Result<(), Refusal> {
        let target = self.qdelay_ref;
        ensure(target > Span::ZERO, || Refusal::new("qdelay_ref", target, "more than zero"))?;
        ensure_periods("t_update", self.t_update, 1)?;
        ensure(!self.max_burst.is_negative(), || Refusal::new("max_burst", self.max_burst, "zero or more"))?;
        for (key, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            ensure((0.0..=1e6).contains(&gain), || Refusal::new(key, gain, "from 0 to 10^6 hertz"))?;
        }
        ensure_probability("mark_ecnth", self.mark_ecnth)
    }
}

/// Divisors of a step (second) below each probability (first) (section 4.2).
const TUNING: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];

/// Bounds of the accumulated probability: below there is no drop, above a certain one, between a random one (section
/// 5.4).
const ACCUMULATED: (f64, f64) = (0.85, 8.5);

/// The probability and the state from which it is computed, with the names of appendix A.
#[derive(Clone, Debug)]
struct Probability {
    settings: PieSettings,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: Span,
    current_qdelay: Span,
    qdelay_old: Span,
}

impl Probability {
    const fn new(settings: PieSettings) -> Self {
        Self {
            settings,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: settings.max_burst,
            current_qdelay: Span::ZERO,
            qdelay_old: Span::ZERO,
        }
    }

    /// Updates the probability: `calculate_drop_prob` (section 4.2 with 5.5).
    fn update(&mut self) {
        let PieSettings { qdelay_ref, alpha, beta, t_update, cap_drop, .. } = self.settings;
        let (current, previous) = (self.current_qdelay, self.qdelay_old);
        let mut step =
            alpha * (current - qdelay_ref).as_secs_f64() + beta * (current - previous).as_secs_f64();
        let scale = TUNING.iter().find(|(upper, _)| self.drop_prob < *upper);
        step /= scale.map_or(1.0, |(_, divisor)| *divisor);
        if cap_drop && self.drop_prob >= 0.1 {
            step = step.min(0.02);
        }
        self.drop_prob += step;
        if current == Span::ZERO && previous == Span::ZERO {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = current;
        self.burst_allowance = (self.burst_allowance - t_update).max(Span::ZERO);
    }

    /// Whether there is no congestion, so that the next burst is allowed again (section 4.4).
    fn is_calm(&self) -> bool {
        let half = self.settings.qdelay_ref.scaled(0.5);
        self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half
    }

    /// Whether updates have no effect until a packet comes.
    fn rests(&self) -> bool {
        self.drop_prob == 0.0 && self.current_qdelay == Span::ZERO && self.qdelay_old == Span::ZERO
    }

    /// Whether a packet that comes to a queue of `bytes` is to be dropped or marked (`drop_early` of appendices A and
    /// B).
    fn drops(&mut self, bytes: u64, luck: &mut Stream) -> bool {
        if self.is_calm() {
            self.burst_allowance = self.settings.max_burst;
        }
        if self.burst_allowance > Span::ZERO {
            return false;
        }
        let is_short = bytes <= self.settings.mean_pktsize.as_bytes().saturating_mul(2);
        if is_short || self.qdelay_old < self.settings.qdelay_ref.scaled(0.5) && self.drop_prob < 0.2 {
            return false;
        }
        if !self.settings.derandomize {
            return luck.chance(self.drop_prob);
        }
        self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + self.drop_prob };
        let (lower, upper) = ACCUMULATED;
        let drops = self.accu_prob >= lower && (self.accu_prob >= upper || luck.chance(self.drop_prob));
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }
}

/// A queue managed by PIE.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    probability: Probability,
    room: Room,
    queue: Fifo,
    updates: Ticks,
    luck: Stream,
}

impl Pie {
    /// Draws from the substream of `name` for "drop".
    pub(crate) fn new(settings: PieSettings, room: Room, seed: u64, name: &str) -> Result<Self, Refusal> {
        settings.check()?;
        Ok(Self {
            probability: Probability::new(settings),
            room,
            queue: Fifo::default(),
            updates: Ticks::new(settings.t_update),
            luck: Stream::new(seed, name, "drop"),
        })
    }
}

impl QueueDiscipline for Pie {
    fn enqueue(&mut self, moment: &mut Moment<'_>, mut waiting: Waiting) {
        self.updates.resume(moment.now);
        let (packets, bytes) = (self.queue.packets(), self.queue.bytes());
        if !self.room.admits(moment, packets, bytes, waiting.packet.size) {
            self.probability.accu_prob = 0.0;
            return moment.drop(waiting.packet);
        }
        if self.probability.drops(bytes, &mut self.luck) {
            let PieSettings { ecn, mark_ecnth, .. } = self.probability.settings;
            let marks = ecn && self.probability.drop_prob < mark_ecnth;
            if !(marks && moment.mark(&mut waiting.packet)) {
                return moment.drop(waiting.packet);
            }
        }
        self.queue.push(waiting);
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        let going = self.queue.pop()?;
        // after the last packet the wait is zero, as in Linux (`pie_process_dequeue`); otherwise its wait would stay
        // for ever
        let is_last = self.queue.packets() == 0;
        self.probability.current_qdelay = if is_last { Span::ZERO } else { moment.now - going.since };
        Some(going)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.updates.next()
    }

    fn wake(&mut self, moment: &mut Moment<'_>) {
        self.probability.update();
        let rests = self.probability.rests() && self.queue.packets() == 0;
        self.updates.done(moment.now, !rests);
    }

    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
        self.room.change(moment, limits, &mut self.queue);
    }

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        self.queue.into_waiting()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.queue.for_each(visit);
    }

    fn draws(&self, visit: &mut dyn FnMut(Draws)) {
        visit(self.luck.draws());
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.room.warnings(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::super::desk::Desk;
    use super::*;
    use tidegate_core::{Ecn, Rate, math};

    fn pie(settings: PieSettings) -> Desk<Pie> {
        let room = DropTail::UNLIMITED.resolve(Rate::from_mbps(10));
        let mut desk = Desk::new(Pie::new(settings, room, 1, "link").unwrap());
        // enough packets that the queue does not count as short
        (0..10).for_each(|_| desk.put(Time::ZERO, Span::ZERO, 0, 1000, Ecn::NotEct));
        desk
    }

    /// A queue that has been congested for long, with this probability.
    fn congested(settings: PieSettings, drop_prob: f64) -> Desk<Pie> {
        let mut desk = pie(settings);
        let state = &mut desk.queue.probability;
        (state.drop_prob, state.burst_allowance) = (drop_prob, Span::ZERO);
        (state.current_qdelay, state.qdelay_old) = (Span::from_millis(30), Span::from_millis(30));
        desk
    }

    /// The dropped or marked packets of `count`: number, and whether it was dropped.
    fn put(desk: &mut Desk<Pie>, count: u32, ecn: Ecn) -> Vec<(u32, bool)> {
        let first = desk.sent;
        (0..count).for_each(|_| desk.put(Time::ZERO, Span::ZERO, 0, 1000, ecn));
        desk.take_events().into_iter().map(|(_, number, died)| (number - first, died)).collect()
    }

    #[test]
    fn with_any_packet_size_of_the_settings_twice_as_much_is_spared() {
        for mean_pktsize in [1 << 62, 1 << 63, u64::MAX].map(Size::from_bytes) {
            let mut desk = congested(PieSettings { mean_pktsize, ..PieSettings::RFC_8033 }, 1.0);
            assert_eq!(put(&mut desk, 100, Ecn::NotEct), []);
        }
    }

    #[test]
    fn updates_are_so_far_apart_that_a_run_ends() {
        let room = DropTail::UNLIMITED.resolve(Rate::from_mbps(10));
        let refusal_for =
            |t_update| Pie::new(PieSettings { t_update, ..PieSettings::RFC_8033 }, room, 1, "link").err();
        assert_eq!(refusal_for(Span::from_micros(10)), None);
        let refused = refusal_for(Span::from_nanos(9999)).unwrap();
        assert_eq!((&*refused.key, &*refused.expected), ("t_update", "at least 0.010000ms"));
    }

    #[test]
    fn the_probability_is_that_of_the_equations() {
        let mut state = Probability::new(PieSettings::RFC_8033);
        let ms = Span::from_millis;
        // (1/8 (30 - 15) + 5/4 (30 - 0)) ms = 0.039375, of which a 2048th while it is below a millionth
        state.current_qdelay = ms(30);
        state.update();
        assert!((state.drop_prob - 0.039_375 / 2048.0).abs() < 1e-15, "{}", state.drop_prob);
        // 1.9e-5 is below 1e-4: a 128th of 1/8 15 ms
        state.update();
        let expected = 0.039_375 / 2048.0 + 0.001_875 / 128.0;
        assert!((state.drop_prob - expected).abs() < 1e-15, "{}", state.drop_prob);
        for (before, divisor) in [
            (0.000_000_9, 2048.0),
            (0.000_001, 512.0),
            (0.000_01, 128.0),
            (0.000_1, 32.0),
            (0.001, 8.0),
            (0.01, 2.0),
            (0.1, 1.0),
            (0.5, 1.0),
        ] {
            (state.drop_prob, state.qdelay_old) = (before, ms(30));
            state.update();
            let step = 0.001_875 / divisor;
            assert!((state.drop_prob - before - step).abs() < 1e-15, "from {before} by {step}");
        }
        // a jump of 100 ms would be 0.135625; from 10 % on it is 2 % at most, and down it is not capped
        for (cap_drop, expected) in [(true, 0.12), (false, 0.1 + 0.135_625)] {
            let mut state = Probability::new(PieSettings { cap_drop, ..PieSettings::RFC_8033 });
            (state.drop_prob, state.current_qdelay) = (0.1, ms(100));
            state.update();
            assert!((state.drop_prob - expected).abs() < 1e-12, "{}", state.drop_prob);
        }
        (state.drop_prob, state.current_qdelay, state.qdelay_old) = (0.5, ms(0), ms(100));
        state.update();
        assert!((state.drop_prob - (0.5 - 0.001_875 - 0.125)).abs() < 1e-12);
        // without waiting packets it decays by 2 % each time
        let before = state.drop_prob;
        state.update();
        assert!((state.drop_prob - (before - 0.001_875) * 0.98).abs() < 1e-12);
        (0..10_000).for_each(|_| state.update());
        assert!(state.rests());
    }

    #[test]
    fn independent_drops_are_as_many_as_the_probability_says() {
        let settings = PieSettings { derandomize: false, ..PieSettings::RFC_8033 };
        for p in [0.01, 0.3] {
            let count = 40_000;
            let drops = put(&mut congested(settings, p), count, Ecn::NotEct).len() as f64;
            let (mean, deviation) = (f64::from(count) * p, math::sqrt(f64::from(count) * p * (1.0 - p)));
            assert!((drops - mean).abs() < 4.0 * deviation, "{drops} instead of {mean}");
        }
    }

    /// After each drop no packet is dropped until 0.85 is accumulated, and then each with probability p, or for
    /// certain at 8.5: a drop in about 1.85 / p packets.
    #[test]
    fn drops_keep_their_distance() {
        for p in [0.01, 0.1] {
            let count = 100_000;
            let drops = put(&mut congested(PieSettings::RFC_8033, p), count, Ecn::NotEct);
            let gaps: Vec<u32> = drops.windows(2).map(|two| two[1].0 - two[0].0).collect();
            let (smallest, largest) = (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap());
            assert!(
                f64::from(smallest) >= 0.85 / p && f64::from(largest) <= 8.5 / p + 1.0,
                "{smallest} to {largest}"
            );
            let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
            assert!((0.93..=1.07).contains(&(mean * p / 1.85)), "{mean}");
        }
        // a packet that comes at a sum of 8.5 is dropped for certain
        let mut desk = congested(PieSettings::RFC_8033, 1e-9);
        desk.queue.probability.accu_prob = 8.5;
        assert_eq!(put(&mut desk, 3, Ecn::NotEct), [(0, true)]);
    }

    #[test]
    fn marks_stand_for_drops_while_the_probability_is_low() {
        for (p, ecn, dies) in [(0.09, Ecn::Ect0, false), (0.09, Ecn::NotEct, true), (0.1, Ecn::Ect1, true)] {
            let events = put(&mut congested(PieSettings::RFC_8033, p), 1000, ecn);
            assert!(events.len() > 30 && events.iter().all(|&(_, died)| died == dies), "{p}, {ecn:?}");
        }
        let without = PieSettings { ecn: false, ..PieSettings::RFC_8033 };
        assert!(put(&mut congested(without, 0.05), 1000, Ecn::Ect0).iter().all(|&(_, died)| died));
    }

    #[test]
    fn short_queues_and_low_waits_and_bursts_are_spared() {
        let high = PieSettings { derandomize: false, ..PieSettings::RFC_8033 };
        // the first three packets find at most 2000 bytes in the queue
        let mut desk = congested(high, 1.0);
        while desk.take(Time::ZERO).is_some() {}
        desk.queue.probability.current_qdelay = Span::from_millis(30);
        assert_eq!(put(&mut desk, 6, Ecn::NotEct), [(3, true), (4, true), (5, true)]);
        // a wait below half of the target spares while the probability is below 20 %
        for (p, drops) in [(0.199, false), (0.2, true)] {
            let mut desk = congested(high, p);
            desk.queue.probability.qdelay_old = Span::from_micros(7499);
            assert_eq!(!put(&mut desk, 200, Ecn::NotEct).is_empty(), drops, "{p}");
        }
        // a burst goes through for `max_burst`, which is ten updates
        let mut desk = congested(high, 1.0);
        desk.queue.probability.burst_allowance = high.max_burst;
        for _ in 0..10 {
            assert!(put(&mut desk, 5, Ecn::NotEct).is_empty());
            desk.queue.probability.update();
        }
        assert_eq!(put(&mut desk, 5, Ecn::NotEct).len(), 5);
    }

    #[test]
    fn it_computes_every_15_ms_and_rests_when_nothing_is_left_to_compute() {
        let mut desk = pie(PieSettings::RFC_8033);
        let ms = Time::from_millis;
        assert_eq!(desk.queue.next_wakeup(), Some(ms(15)));
        for tick in 1..100 {
            desk.put(ms(15 * tick), Span::ZERO, 0, 1000, Ecn::NotEct);
            desk.take(ms(15 * tick));
            desk.with(ms(15 * tick), |queue, moment| queue.wake(moment));
            assert_eq!(desk.queue.next_wakeup(), Some(ms(15 * (tick + 1))));
        }
        assert!(desk.queue.probability.drop_prob > 0.0);
        let mut now = ms(15 * 99);
        while desk.take(now).is_some() {}
        while let Some(next) = desk.queue.next_wakeup() {
            now = next;
            desk.with(now, |queue, moment| queue.wake(moment));
        }
        assert!(desk.queue.probability.rests() && now > ms(15 * 100) && now < Time::from_secs(60), "{now}");
        desk.put(now + Span::from_millis(40), Span::ZERO, 0, 1000, Ecn::NotEct);
        assert_eq!(desk.queue.next_wakeup(), Some(now + Span::from_millis(45)));
    }
}
