//! DualPI2 (RFC 9332, appendix A): a queue for L4S and one for classic traffic, coupled so that their flows get equal
//! shares.

use super::discipline::{Moment, QueueDiscipline, Waiting};
use super::drop_tail::{DropTail, Room};
use super::fifo::Fifo;
use super::ticks::{Ticks, ensure_periods};
use crate::refusal::{Refusal, ensure};
use serde::Deserialize;
use tidegate_core::record::Backlog;
use tidegate_core::{Ecn, Size, Span, Time};

/// The parameters of DualPI2, by the names of RFC 9332 figure 2; `limit` is the room of the link's queue.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DualPi2Settings {
    /// k: the coupling factor, by which marks for L4S exceed the square root of classic drops (2).
    pub k: f64,
    /// The target wait of the PI controller (15 ms).
    pub target: Span,
    /// `RTT_max`: the longest round trip with which it is stable; its gains follow from it (100 ms).
    pub rtt_max: Span,
    /// `minTh`: the wait in the L4S queue from which on packets are marked (800 us).
    pub min_th: Span,
    /// Additional wait over which the probability rises to one; zero makes it a step (400 us).
    pub range: Span,
    /// `Th_len`: with at most this many packets in the L4S queue, including the one that goes, none is marked for its
    /// wait (1).
    pub th_len: u32,
    /// Guaranteed share of the classic queue while both queues have packets (section 4.2.2: 1/16).
    pub classic_weight: f64,
}

impl DualPi2Settings {
    /// The values of RFC 9332 figure 2.
    pub const RFC_9332: Self = Self {
        k: 2.0,
        target: Span::from_millis(15),
        rtt_max: Span::from_millis(100),
        min_th: Span::from_micros(800),
        range: Span::from_micros(400),
        th_len: 1,
        classic_weight: 1.0 / 16.0,
    };

    fn check(&self) -> Result<(), Refusal> {
        ensure_periods("target", self.target, 1)?;
        ensure_periods("rtt_max", self.rtt_max, 3)?;
        for (key, time) in [("min_th", self.min_th), ("range", self.range)] {
            ensure(!time.is_negative(), || Refusal::new(key, time, "zero or more"))?;
        }
        ensure((0.1..=100.0).contains(&self.k), || Refusal::new("k", self.k, "from 0.1 to 100"))?;
        let weight = self.classic_weight;
        ensure((0.001..=0.999).contains(&weight), || {
            Refusal::new("classic_weight", weight, "from 0.001 to 0.999")
        })
    }

    /// Tupdate (line 12): the time between updates of the base probability.
    fn t_update(&self) -> Span {
        self.target.min(self.rtt_max / 3)
    }
}

/// One of the two queues.
#[derive(Clone, Debug, Default)]
struct Queue {
    packets: Fifo,
    /// Sum of likelihoods, less a whole one at each event.
    count: f64,
}

impl Queue {
    /// Returns true with a certain likelihood, evenly spaced instead of at random (`recur`, figure 4).
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let is_whole = self.count > 1.0;
        if is_whole {
            self.count -= 1.0;
        }
        is_whole
    }

    /// Wait of the packet at the head; zero if the queue is empty.
    fn time(&self, now: Time) -> Span {
        self.packets.head().map_or(Span::ZERO, |head| now - head.since)
    }
}

/// The two queues of DualPI2 and their controller.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2 {
    settings: DualPi2Settings,
    room: Room,
    l4s: Queue,
    classic: Queue,
    /// Credit of the scheduler, in parts of a byte: while both queues have packets, the L4S queue goes first unless it
    /// is positive.
    credit: i64,
    /// Credit that a byte of the L4S queue adds, and credit that a byte of the classic queue takes.
    weights: (i64, i64),
    /// p', the base probability.
    base: f64,
    /// prevq: the wait at the last update.
    before: Span,
    updates: Ticks,
}

/// Parts of a byte in which weights are whole numbers.
const PARTS: i64 = 1 << 16;

impl DualPi2 {
    pub(crate) fn new(settings: DualPi2Settings, room: Room) -> Result<Self, Refusal> {
        settings.check()?;
        let classic = (settings.classic_weight * PARTS as f64) as i64;
        Ok(Self {
            settings,
            room,
            l4s: Queue::default(),
            classic: Queue::default(),
            credit: 0,
            weights: (classic, PARTS - classic),
            base: 0.0,
            before: Span::ZERO,
            updates: Ticks::new(settings.t_update()),
        })
    }

    /// p_C, the probability of drops and marks of the classic queue.
    fn classic_probability(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL, the probability coupled from the classic queue to the L4S queue.
    fn coupled_probability(&self) -> f64 {
        self.settings.k * self.base
    }

    /// The native probability of the L4S queue (`laqm`, figure 5).
    fn native_probability(&self, qdelay: Span) -> f64 {
        let DualPi2Settings { min_th, range, .. } = self.settings;
        if qdelay >= min_th + range {
            1.0
        } else if qdelay > min_th {
            (qdelay - min_th).as_secs_f64() / range.as_secs_f64()
        } else {
            0.0
        }
    }

    /// Computes the base probability (`dualpi2_update`, figure 8, with the gains of lines 13 and 14 of figure 2).
    fn update(&mut self, now: Time) {
        let DualPi2Settings { target, rtt_max, .. } = self.settings;
        let rtt = rtt_max.as_secs_f64();
        let (alpha, beta) = (0.1 * self.settings.t_update().as_secs_f64() / (rtt * rtt), 0.3 / rtt);
        let current = self.classic.time(now).max(self.l4s.time(now));
        let step = alpha * (current - target).as_secs_f64() + beta * (current - self.before).as_secs_f64();
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.before = current;
    }

    /// Whether the next packet comes from the L4S queue: weighted round robin by bytes, with a
    /// credit that moves only while both queues have packets, as in Linux (appendix A.1).
    fn schedules_l4s(&self) -> bool {
        let (l4s, classic) = (self.l4s.packets.packets(), self.classic.packets.packets());
        l4s > 0 && (classic == 0 || self.credit <= 0)
    }

    /// Updates the credit for a packet that goes.
    fn charge(&mut self, size: u32, is_l4s: bool) {
        let opposite = if is_l4s { &self.classic } else { &self.l4s };
        if opposite.packets.packets() > 0 {
            let (adds, takes) = self.weights;
            self.credit += i64::from(size) * if is_l4s { adds } else { -takes };
        }
    }

    /// The next packet of the L4S queue (lines 4a to 8j of figure 7); `None` if it was dropped.
    ///
    /// In saturation all packets that are not dropped are marked, as the text says. Line 8h adds p_CL to the same
    /// count for that; where k p' is above one, the remainder in the count would make line 8c drop more than p_C.
    fn next_l4s(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        let packets = self.l4s.packets.packets();
        let mut going = self.l4s.packets.pop()?;
        let coupled = self.coupled_probability();
        let marks = if coupled < 1.0 {
            let is_alone = packets <= u64::from(self.settings.th_len);
            let native = if is_alone { 0.0 } else { self.native_probability(moment.now - going.since) };
            self.l4s.recur(native.max(coupled))
        } else if self.l4s.recur(self.classic_probability()) {
            moment.drop(going.packet);
            return None;
        } else {
            true
        };
        if marks {
            let _ = moment.mark(&mut going.packet);
        }
        Some(going)
    }

    /// The next packet of the classic queue (lines 10 to 17); `None` if it was dropped.
    fn next_classic(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        let mut going = self.classic.packets.pop()?;
        let probability = self.classic_probability();
        if self.classic.recur(probability) {
            let k = self.settings.k;
            let is_overload = probability >= (1.0 / (k * k)).min(1.0);
            if is_overload || !moment.mark(&mut going.packet) {
                moment.drop(going.packet);
                return None;
            }
        }
        Some(going)
    }
}

impl QueueDiscipline for DualPi2 {
    fn enqueue(&mut self, moment: &mut Moment<'_>, waiting: Waiting) {
        self.updates.resume(moment.now);
        let Backlog { packets, bytes } = self.backlog();
        if packets == 0 && moment.in_service.is_none() {
            self.credit = 0;
        }
        if !self.room.admits(moment, u64::from(packets), bytes.as_bytes(), waiting.packet.size) {
            return moment.drop(waiting.packet);
        }
        let is_l4s = matches!(waiting.packet.ecn, Ecn::Ect1 | Ecn::Ce);
        let queue = if is_l4s { &mut self.l4s } else { &mut self.classic };
        queue.packets.push(waiting);
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Waiting> {
        while self.backlog().packets > 0 {
            let is_l4s = self.schedules_l4s();
            let going = if is_l4s { self.next_l4s(moment) } else { self.next_classic(moment) };
            if let Some(going) = going {
                self.charge(going.packet.size, is_l4s);
                return Some(going);
            }
        }
        None
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.updates.next()
    }

    fn wake(&mut self, moment: &mut Moment<'_>) {
        self.update(moment.now);
        let rests = self.base == 0.0 && self.before == Span::ZERO && self.backlog().packets == 0;
        self.updates.done(moment.now, !rests);
    }

    fn limit(&mut self, moment: &mut Moment<'_>, limits: &DropTail) {
        self.room = self.room.with(limits.resolve(moment.nominal));
        loop {
            let Backlog { packets, bytes } = self.backlog();
            if self.room.holds(moment, u64::from(packets), bytes.as_bytes()) {
                return;
            }
            // from the tail of the longer queue
            let is_l4s = self.l4s.packets.bytes() > self.classic.packets.bytes();
            let queue = if is_l4s { &mut self.l4s } else { &mut self.classic };
            let Some(last) = queue.packets.pop_last() else { return };
            moment.drop(last.packet);
        }
    }

    fn into_waiting(self: Box<Self>) -> Vec<Waiting> {
        [self.l4s, self.classic].into_iter().flat_map(|queue| queue.packets.into_waiting()).collect()
    }

    fn backlog(&self) -> Backlog {
        let (l4s, classic) = (self.l4s.packets.backlog(), self.classic.packets.backlog());
        let bytes = l4s.bytes.as_bytes() + classic.bytes.as_bytes();
        Backlog { packets: l4s.packets + classic.packets, bytes: Size::from_bytes(bytes) }
    }

    fn parts(&self, visit: &mut dyn FnMut(&'static str, Backlog)) {
        visit("l4s", self.l4s.packets.backlog());
        visit("classic", self.classic.packets.backlog());
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Waiting)) {
        self.l4s.packets.for_each(visit);
        self.classic.packets.for_each(visit);
    }

    fn warnings(&self, tell: &mut dyn FnMut(&'static str, String)) {
        self.room.warnings(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::super::desk::Desk;
    use super::*;
    use tidegate_core::Rate;

    const NOW: Time = Time::from_millis(1000);

    fn desk(settings: DualPi2Settings) -> Desk<DualPi2> {
        let room = DropTail::UNLIMITED.resolve(Rate::from_mbps(10));
        Desk::new(DualPi2::new(settings, room).unwrap())
    }

    /// The numbers of dropped and marked packets, of `count` packets of `ecn` that wait for less than any threshold.
    fn losses_and_marks(base: f64, ecn: Ecn, count: u32) -> (u32, u32) {
        let mut desk = desk(DualPi2Settings::RFC_9332);
        desk.queue.base = base;
        (0..count).for_each(|_| desk.put(NOW, Span::ZERO, 0, 1000, ecn));
        while desk.take(NOW).is_some() {}
        let events = desk.take_events();
        let dropped = events.iter().filter(|(_, _, died)| *died).count() as u32;
        (dropped, events.len() as u32 - dropped)
    }

    #[test]
    fn updates_are_so_far_apart_that_a_run_ends() {
        let us = Span::from_micros;
        let refused = |target, rtt_max| {
            let settings = DualPi2Settings { target, rtt_max, ..DualPi2Settings::RFC_9332 };
            settings.check().err().map(|refusal| refusal.key)
        };
        assert_eq!(refused(us(10), us(30)), None);
        assert_eq!(refused(us(9), us(30)).as_deref(), Some("target"));
        assert_eq!(refused(us(10), us(29)).as_deref(), Some("rtt_max"));
    }

    /// p_C = p'^2 and p_CL = k p', so p_C = (p_CL / k)^2; the counts agree to one packet, because `recur` spaces them
    /// evenly.
    #[test]
    fn the_classic_probability_is_the_square_of_half_the_coupled_one() {
        let count = 100_000;
        let near =
            |events: u32, expected: f64| (f64::from(events) - f64::from(count) * expected).abs() <= 1.001;
        for base in [0.0, 0.001, 0.01, 0.1, 0.3, 0.49] {
            let coupled = f64::from(losses_and_marks(base, Ecn::Ect1, count).1) / f64::from(count);
            assert!((coupled - 2.0 * base).abs() <= 1.1e-5, "{base}: {coupled}");
            let expected = (coupled / 2.0) * (coupled / 2.0);
            let (dropped, marked) = losses_and_marks(base, Ecn::NotEct, count);
            assert!(near(dropped, expected) && marked == 0, "{base}: {dropped}");
            assert_eq!(losses_and_marks(base, Ecn::Ect0, count), (0, dropped), "marks for drops");
            assert_eq!(losses_and_marks(base, Ecn::Ect1, count).0, 0);
        }
        // from p_C = 1/4 on ECN does not protect: all traffic has the same loss, and the rest of L4S is marked
        for base in [0.5, 0.7] {
            for ecn in [Ecn::NotEct, Ecn::Ect0] {
                let (dropped, marked) = losses_and_marks(base, ecn, count);
                assert!(near(dropped, base * base) && marked == 0, "{base}: {dropped}");
            }
            let (dropped, marked) = losses_and_marks(base, Ecn::Ect1, count);
            assert!(near(dropped, base * base) && dropped + marked == count, "{base}: {dropped}, {marked}");
        }
    }

    #[test]
    fn the_base_probability_is_that_of_the_controller() {
        let mut queue = desk(DualPi2Settings::RFC_9332);
        // alpha = 0.1 15 ms / (100 ms)^2 = 0.15, beta = 0.3 / 100 ms = 3
        queue.put(NOW, Span::from_millis(25), 0, 1000, Ecn::NotEct);
        queue.queue.update(NOW);
        let first = 0.15 * 0.010 + 3.0 * 0.025;
        assert!((queue.queue.base - first).abs() < 1e-12, "{}", queue.queue.base);
        queue.queue.update(NOW + Span::from_millis(15));
        let second = first + 0.15 * 0.025 + 3.0 * 0.015;
        assert!((queue.queue.base - second).abs() < 1e-12, "{}", queue.queue.base);
        // the longer wait of the two queues counts
        queue.put(NOW, Span::from_millis(35), 0, 1000, Ecn::Ect1);
        queue.queue.update(NOW);
        let third = second + 0.15 * 0.020 + 3.0 * -0.005;
        assert!((queue.queue.base - third).abs() < 1e-12, "{}", queue.queue.base);
    }

    #[test]
    fn the_l4s_queue_marks_by_a_ramp_or_a_step_and_not_a_packet_alone() {
        let us = Span::from_micros;
        for (range, waited, expected) in [
            (400, 800, 0.0),
            (400, 900, 0.25),
            (400, 1000, 0.5),
            (400, 1200, 1.0),
            (0, 799, 0.0),
            (0, 800, 1.0),
            (0, 5000, 1.0),
        ] {
            let mut desk = desk(DualPi2Settings { range: us(range), ..DualPi2Settings::RFC_9332 });
            (0..1001).for_each(|_| desk.put(NOW, us(waited), 0, 1000, Ecn::Ect1));
            while desk.take(NOW).is_some() {}
            let marks = desk.take_events().len() as f64;
            // the last packet is alone
            assert!((marks - 1000.0 * expected).abs() <= 1.0, "{range}, {waited}: {marks}");
            // a packet with CE stays in the L4S queue, and is not reported as marked again
            desk.put(NOW, us(waited), 0, 1000, Ecn::Ce);
            assert_eq!((desk.queue.l4s.packets.packets(), desk.queue.classic.packets.packets()), (1, 0));
        }
    }

    #[test]
    fn while_both_have_packets_the_classic_queue_has_its_share_by_bytes_and_otherwise_all() {
        for weight in [1.0 / 16.0, 0.25] {
            let mut desk = desk(DualPi2Settings { classic_weight: weight, ..DualPi2Settings::RFC_9332 });
            for _ in 0..4000 {
                desk.put(NOW, Span::ZERO, 0, 1500, Ecn::NotEct);
                desk.put(NOW, Span::ZERO, 1, 700, Ecn::Ect1);
            }
            let (mut classic, mut total) = (0.0, 0.0);
            while desk.queue.l4s.packets.packets() > 1 {
                let (flow, _, size) = desk.take(NOW).unwrap();
                total += f64::from(size);
                classic += if flow == 0 { f64::from(size) } else { 0.0 };
                assert!((classic - weight * total).abs() <= 1500.0, "{classic} of {total}");
            }
            while desk.take(NOW).is_some() {}
            assert_eq!(desk.queue.backlog().packets, 0);
        }
    }

    #[test]
    fn it_rests_when_nothing_is_left_to_compute() {
        let mut desk = desk(DualPi2Settings::RFC_9332);
        desk.put(NOW, Span::ZERO, 0, 1000, Ecn::NotEct);
        assert_eq!(desk.queue.next_wakeup(), Some(Time::from_millis(1005)));
        desk.queue.base = 0.2;
        desk.take(NOW);
        let mut now = NOW;
        while let Some(next) = desk.queue.next_wakeup() {
            now = next;
            desk.with(now, |queue, moment| queue.wake(moment));
        }
        // 0.15 15 ms = 0.00225 an update: 89 of them
        assert_eq!(now, Time::from_millis(1005 + 15 * 88));
    }
}
