//! Which packets were lost, and to which loss event each loss belongs (RFC 5348 sections 5.1 to 5.3).
//!
//! A packet that is missing when `reordering` later ones have arrived is lost, at the time at which it would have
//! arrived had it come evenly between its neighbours. A marked packet counts as lost at once, at the time of
//! its arrival. Losses within one round-trip time of the first one are one event. A packet that comes
//! after all takes its loss back.

use super::intervals::{self, Closed, INTERVALS};
use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// What a packet changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Nothing: in order, or late without having been given up.
    None,
    /// A loss or a mark.
    Loss,
    /// It had been given up: a loss is taken back.
    Filled,
    /// It was there before.
    Duplicate,
}

/// A packet that arrived: its number, and when.
type Seen = (i64, Time);

/// Packets that are missing, `first..end`, and their neighbours.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: i64,
    end: i64,
    /// The last to arrive before them in order, and the first to arrive after them.
    before: Seen,
    after: Seen,
    /// How many later ones have arrived.
    later: u32,
}

impl Gap {
    /// When the packet `sequence` would have arrived: T_loss of RFC 5348 section 5.2.
    fn time(&self, sequence: i64) -> Time {
        let span = i128::from((self.after.1 - self.before.1).as_nanos());
        let step = i128::from(sequence - self.before.0);
        let nanos = span * step / i128::from((self.after.0 - self.before.0).max(1));
        self.before.1 + Span::from_nanos(nanos as i64)
    }

    /// The first packet of it that would have arrived later than `at`; its end if none.
    fn first_after(&self, at: Time) -> i64 {
        let span = i128::from((self.after.1 - self.before.1).as_nanos());
        if span <= 0 {
            return if self.time(self.first) > at { self.first } else { self.end };
        }
        let wait = i128::from((at - self.before.1).as_nanos());
        let steps = wait * i128::from(self.after.0 - self.before.0) / span;
        let mut next =
            (i128::from(self.before.0) + steps).clamp(i128::from(self.first), i128::from(self.end)) as i64;
        // the division rounds; the times decide
        while next > self.first && self.time(next - 1) > at {
            next -= 1;
        }
        while next < self.end && self.time(next) <= at {
            next += 1;
        }
        next
    }
}

/// Losses that began within one round-trip time.
#[derive(Clone, Copy, Debug)]
struct Event {
    start: i64,
    at: Time,
    rtt: Span,
    lost: u64,
    /// DF_i of the interval that it begins, once that is closed.
    discount: f64,
}

/// How a loss history is kept.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A packet is lost when this many later ones have arrived (NDUPACK).
    pub reordering: u32,
    /// The least factor by which the past is discounted; 1: not at all.
    pub discount_threshold: f64,
    /// Whether short intervals count their losses (RFC 4828 section 3).
    pub short_intervals: bool,
}

/// The losses that still matter.
#[derive(Clone, Debug)]
pub struct LossHistory {
    rules: Rules,
    highest: Option<Seen>,
    /// Missing, not yet given up; in order, a handful.
    gaps: Vec<Gap>,
    /// Given up, or marked; in order.
    lost: VecDeque<(Gap, Span)>,
    /// The present event last.
    events: Vec<Event>,
    /// The interval before the very first event, while it counts.
    first: Option<Closed>,
    /// Whether older events than those were forgotten.
    forgotten: bool,
    /// The start of the last event whose coming has discounted the past.
    discounted: i64,
}

/// Events that matter: they bound eight closed intervals and the open one.
const EVENTS: usize = INTERVALS + 1;

/// Stretches of losses that can be taken back; older ones stay counted in their events.
const STRETCHES: usize = 8192;

impl LossHistory {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            highest: None,
            gaps: Vec::with_capacity(8),
            lost: VecDeque::new(),
            events: Vec::with_capacity(2 * EVENTS),
            first: None,
            forgotten: false,
            discounted: i64::MIN,
        }
    }

    /// The packet `sequence` has arrived at `now`, marked or not, while the round-trip time was `rtt`.
    pub fn packet(&mut self, sequence: i64, now: Time, rtt: Span, marked: bool) -> News {
        let Some(highest) = self.highest else {
            self.highest = Some((sequence, now));
            return self.mark(sequence, now, rtt, marked);
        };
        let mut news = News::None;
        if sequence > highest.0 {
            self.highest = Some((sequence, now));
            if sequence > highest.0 + 1 {
                let gap = Gap {
                    first: highest.0 + 1,
                    end: sequence,
                    before: highest,
                    after: (sequence, now),
                    later: 0,
                };
                self.gaps.push(gap);
            }
        } else if let Some(index) = self.gaps.iter().position(|gap| (gap.first..gap.end).contains(&sequence))
        {
            self.split(index, sequence, now);
        } else {
            match self.take_back(sequence, marked) {
                News::Filled => news = News::Filled,
                other => return other,
            }
        }
        for gap in self.gaps.iter_mut().filter(|gap| gap.end <= sequence) {
            gap.later += 1;
        }
        while let Some(index) = self.gaps.iter().position(|gap| gap.later >= self.rules.reordering) {
            let gap = self.gaps.remove(index);
            self.lose(gap, rtt);
            news = News::Loss;
        }
        match self.mark(sequence, now, rtt, marked) {
            News::None => news,
            mark => mark,
        }
    }

    /// Whether any loss is known.
    #[must_use]
    pub fn lossless(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether it has to be told by [`LossHistory::set_first`] what came before the first event.
    #[must_use]
    pub fn wants_first(&self) -> bool {
        !self.events.is_empty() && self.first.is_none() && !self.forgotten
    }

    /// Sets the length in packets of the interval before the first event.
    pub fn set_first(&mut self, length: f64) {
        self.first = Some(Closed::new(length));
    }

    /// The loss event rate p as of `now`, 0 to 1.
    #[must_use]
    pub fn rate(&self, now: Time) -> f64 {
        let Some(present) = self.events.last() else { return 0.0 };
        let closed = self.closed(self.events.len() - 1);
        let open = self.highest.map_or(0, |highest| highest.0 - present.start + 1) as f64;
        let factor = intervals::discount(open, &closed, self.rules.discount_threshold);
        let counts = !self.rules.short_intervals || now - present.at > present.rtt * 2;
        (1.0 / intervals::mean(counts.then_some(open), &closed, factor)).min(1.0)
    }

    /// The closed intervals up to the event at `last`, newest first.
    fn closed(&self, last: usize) -> Vec<Closed> {
        let mut closed = Vec::with_capacity(EVENTS);
        for pair in self.events[..=last].windows(2).rev() {
            let (event, next) = (pair[0], pair[1]);
            let packets = (next.start - event.start) as f64;
            let length = if self.rules.short_intervals {
                let lasted = (next.at - event.at).as_secs_f64();
                intervals::small_packet_length(packets, event.lost as f64, lasted, event.rtt.as_secs_f64())
            } else {
                packets
            };
            closed.push(Closed { length, discount: event.discount });
        }
        closed.extend(self.first);
        closed.truncate(INTERVALS);
        closed
    }

    fn mark(&mut self, sequence: i64, now: Time, rtt: Span, marked: bool) -> News {
        if !marked {
            return News::None;
        }
        let at = (sequence, now);
        self.lose(Gap { first: sequence, end: sequence + 1, before: at, after: at, later: 0 }, rtt);
        News::Loss
    }

    /// A packet of the gap at `index` has come late.
    fn split(&mut self, index: usize, sequence: i64, now: Time) {
        let gap = self.gaps[index];
        let left = Gap { end: sequence, ..gap };
        let right = Gap { first: sequence + 1, before: (sequence, now), ..gap };
        let parts = [left, right].into_iter().filter(|part| part.first < part.end);
        self.gaps.splice(index..=index, parts);
    }

    /// Takes back the loss of `sequence`, if it was one. If it comes with a mark, the loss stands for that.
    fn take_back(&mut self, sequence: i64, marked: bool) -> News {
        let index = self.lost.partition_point(|(gap, _)| gap.end <= sequence);
        let Some(&(gap, rtt)) = self.lost.get(index) else { return News::Duplicate };
        let is_mark = gap.before.0 == gap.first;
        if is_mark || gap.first > sequence {
            return News::Duplicate;
        }
        if marked {
            return News::None;
        }
        self.lost.remove(index);
        for part in [Gap { first: sequence + 1, ..gap }, Gap { end: sequence, ..gap }] {
            if part.first < part.end {
                self.lost.insert(index, (part, rtt));
            }
        }
        self.rebuild(sequence);
        News::Filled
    }

    fn lose(&mut self, gap: Gap, rtt: Span) {
        if self.lost.back().is_none_or(|(last, _)| last.end <= gap.first) {
            self.lost.push_back((gap, rtt));
            self.extend(gap, rtt);
        } else {
            let index = self.lost.partition_point(|(other, _)| other.first < gap.first);
            self.lost.insert(index, (gap, rtt));
            self.rebuild(gap.first);
        }
        self.forget();
    }

    /// Groups the losses anew from the event on that `sequence` belongs to.
    fn rebuild(&mut self, sequence: i64) {
        let kept = self.events.partition_point(|event| event.start <= sequence).saturating_sub(1);
        let old = self.events.split_off(kept.min(self.events.len()));
        let from = old.first().map_or(sequence, |event| event.start.min(sequence));
        let index = self.lost.partition_point(|(gap, _)| gap.first < from);
        for i in index..self.lost.len() {
            let (gap, rtt) = self.lost[i];
            self.extend(gap, rtt);
        }
        let kept = kept.min(self.events.len());
        for event in &mut self.events[kept..] {
            let before = old.iter().rev().find(|old| old.start <= event.start);
            event.discount = before.map_or(1.0, |old| old.discount);
        }
        if self.events.is_empty() {
            self.first = None;
        }
    }

    /// Adds losses later than all others to the present event, or lets them begin new ones.
    fn extend(&mut self, gap: Gap, rtt: Span) {
        let mut next = gap.first;
        if let Some(present) = self.events.last_mut() {
            // "T_old + R >= T_new" is the same event (RFC 5348 section 5.2)
            next = gap.first_after(present.at + rtt);
            present.lost += (next - gap.first) as u64;
        }
        while next < gap.end {
            let start = next;
            let at = gap.time(start);
            next = gap.first_after(at + rtt).max(start + 1);
            let (each, left) = (next - start, gap.end - start);
            if left / each > 2 * EVENTS as i64 {
                // a long outage: all its events but the last are alike, and forgotten at once
                let skipped = (left / each - EVENTS as i64 - 1) * each;
                self.events.clear();
                (self.first, self.forgotten) = (None, true);
                next = start + skipped;
                continue;
            }
            self.begin(Event { start, at, rtt, lost: each as u64, discount: 1.0 });
        }
    }

    fn begin(&mut self, event: Event) {
        if event.start > self.discounted
            && let Some(last) = self.events.len().checked_sub(1)
        {
            let closed = self.closed(last);
            let open = (event.start - self.events[last].start) as f64;
            let factor = intervals::discount(open, &closed, self.rules.discount_threshold);
            self.events[..last].iter_mut().for_each(|event| event.discount *= factor);
            if let Some(first) = &mut self.first {
                first.discount *= factor;
            }
        }
        debug_assert!(self.events.last().is_none_or(|last| last.start < event.start), "events in order");
        self.discounted = self.discounted.max(event.start);
        self.events.push(event);
    }

    /// Lets go of what no longer matters.
    fn forget(&mut self) {
        if let Some(old) = self.events.len().checked_sub(EVENTS).filter(|&old| old > 0) {
            self.events.drain(..old);
            (self.first, self.forgotten) = (None, true);
            let start = self.events[0].start;
            let old = self.lost.partition_point(|(gap, _)| gap.end <= start);
            self.lost.drain(..old);
            if let Some((gap, _)) = self.lost.front_mut() {
                gap.first = gap.first.max(start);
            }
        }
        while self.lost.len() > STRETCHES {
            self.lost.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);
    const RULES: Rules = Rules { reordering: 3, discount_threshold: 1.0, short_intervals: false };

    /// A packet every 10 ms, `sequence` at 10 ms times its number.
    fn at(sequence: i64) -> Time {
        Time::from_millis(10 * sequence)
    }

    /// All of `sequences` that are not among `lost`.
    fn arrive(history: &mut LossHistory, sequences: std::ops::Range<i64>, lost: &[i64]) {
        for sequence in sequences.filter(|sequence| !lost.contains(sequence)) {
            history.packet(sequence, at(sequence), RTT, false);
        }
    }

    fn starts(history: &LossHistory) -> Vec<i64> {
        history.events.iter().map(|event| event.start).collect()
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        let mut history = LossHistory::new(RULES);
        arrive(&mut history, 0..10, &[]);
        assert_eq!(history.packet(11, at(11), RTT, false), News::None);
        assert_eq!(history.packet(12, at(12), RTT, false), News::None);
        assert_eq!(history.packet(12, at(12), RTT, false), News::Duplicate, "which does not count");
        assert!(history.lossless());
        assert_eq!(history.packet(13, at(13), RTT, false), News::Loss);
        assert_eq!(starts(&history), [10]);
        assert_eq!(history.events[0].at, at(10), "halfway between its neighbours");
    }

    #[test]
    fn a_late_packet_is_no_loss_and_a_very_late_one_takes_it_back() {
        let mut history = LossHistory::new(RULES);
        arrive(&mut history, 0..10, &[]);
        arrive(&mut history, 11..13, &[]);
        assert_eq!(history.packet(10, at(13), RTT, false), News::None);
        arrive(&mut history, 13..30, &[]);
        assert!(history.lossless());
        arrive(&mut history, 31..40, &[]);
        assert_eq!(starts(&history), [30]);
        history.set_first(50.0);
        assert_eq!(history.packet(30, at(41), RTT, false), News::Filled);
        assert!(history.lossless());
        assert_eq!(history.rate(at(41)), 0.0);
        arrive(&mut history, 41..60, &[]);
        assert_eq!(history.packet(30, at(61), RTT, false), News::Duplicate);
        assert!(history.wants_first(), "the next first event, of the packet 40, begins anew");
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut history = LossHistory::new(RULES);
        // 10 at 100 ms: up to 200 ms, packet 20, it is one event; 21 begins the next
        arrive(&mut history, 0..60, &[10, 15, 20, 21, 32]);
        assert_eq!(starts(&history), [10, 21, 32]);
        assert_eq!(history.events.iter().map(|event| event.lost).collect::<Vec<_>>(), [3, 1, 1]);
        history.set_first(40.0);
        // I_0 = 59 - 32 + 1 = 28; I = 11, 11, 40 and so (28 + 11 + 11) / 3 against (11 + 11 + 40) / 3
        assert!((history.rate(at(60)) - 3.0 / 62.0).abs() < 1e-15);
    }

    #[test]
    fn an_outage_is_an_event_each_round_trip() {
        let mut history = LossHistory::new(RULES);
        arrive(&mut history, 0..10, &[]);
        arrive(&mut history, 50..60, &[]);
        // 10 to 49 are lost, evenly at their own times
        assert_eq!(starts(&history), [10, 21, 32, 43]);
        // 100 million packets are no more work, and the last nine events are as they would be
        arrive(&mut history, 100_000_060..100_000_070, &[]);
        let last = starts(&history);
        assert_eq!(last.len(), EVENTS);
        assert!(last.windows(2).all(|pair| pair[1] - pair[0] == 11), "{last:?}");
        assert!(100_000_060 - last[EVENTS - 1] <= 2 * 11, "{last:?}");
        assert!(history.lost.len() <= 2);
    }

    #[test]
    fn marks_count_at_once() {
        let mut history = LossHistory::new(RULES);
        arrive(&mut history, 0..10, &[]);
        assert_eq!(history.packet(10, at(10), RTT, true), News::Loss);
        assert_eq!(history.packet(11, at(11), RTT, true), News::Loss);
        assert_eq!(starts(&history), [10], "of the same event");
        // a loss before the mark that is known after it moves the start of the event
        let mut history = LossHistory::new(RULES);
        arrive(&mut history, 0..10, &[9]);
        history.packet(10, at(10), RTT, true);
        assert_eq!(starts(&history), [10]);
        arrive(&mut history, 11..14, &[]);
        assert_eq!(starts(&history), [9]);
        assert_eq!(history.events[0].lost, 2);
    }

    #[test]
    fn taking_back_the_first_loss_of_an_event_moves_its_start() {
        let mut history = LossHistory::new(RULES);
        arrive(&mut history, 0..60, &[10, 15, 21, 40]);
        assert_eq!(starts(&history), [10, 21, 40]);
        assert_eq!(history.packet(10, at(60), RTT, false), News::Filled);
        // 15 is now the first, and 21 within a round trip of it
        assert_eq!(starts(&history), [15, 40]);
        assert_eq!(history.events[0].lost, 2);
    }

    #[test]
    fn the_past_is_discounted_and_stays_so() {
        let mut history = LossHistory::new(Rules { discount_threshold: 0.25, ..RULES });
        let lost: Vec<i64> = (1..=9).map(|n| 20 * n).chain([300]).collect();
        arrive(&mut history, 0..250, &lost);
        // nine events 20 apart; I_0 = 249 - 180 + 1 = 70, DF = 40 / 70
        let df = 40.0 / 70.0;
        let mean = (70.0 + df * 20.0 * 5.0) / (1.0 + df * 5.0);
        assert!((history.rate(at(250)) - 1.0 / mean).abs() < 1e-15);
        arrive(&mut history, 250..310, &lost);
        // closed at 300 - 180 = 120 packets: DF = 40 / 120 goes into those before
        let kept = 1.0 / 3.0;
        let discounts: Vec<f64> = history.events.iter().map(|event| event.discount).collect();
        assert!(discounts[..7].iter().all(|discount| (discount - kept).abs() < 1e-15), "{discounts:?}");
        assert_eq!(discounts[7..], [1.0, 1.0]);
        let mean = (120.0 + kept * 20.0 * 5.0) / (1.0 + kept * 5.0);
        assert!((history.rate(at(310)) - 1.0 / mean).abs() < 1e-15);
    }

    #[test]
    fn small_packets_count_losses_of_short_intervals() {
        let mut history = LossHistory::new(Rules { short_intervals: true, ..RULES });
        // events at 10 (3 lost), 21 (2 lost), 60: intervals 11 of 110 ms, 39 of 390 ms
        arrive(&mut history, 0..70, &[10, 12, 14, 21, 22, 60]);
        history.set_first(40.0);
        let closed: Vec<f64> = history.closed(2).iter().map(|closed| closed.length).collect();
        assert_eq!(closed, [39.0, 11.0 / 3.0, 40.0]);
        // I_0 began at 600 ms and counts from 800 ms on
        let without = (39.0 + 11.0 / 3.0 + 40.0) / 3.0;
        assert!((history.rate(at(80)) - 1.0 / without).abs() < 1e-15);
        arrive(&mut history, 70..200, &[]);
        let with = (140.0 + 39.0 + 11.0 / 3.0) / 3.0;
        assert!((history.rate(at(200)) - 1.0 / with).abs() < 1e-15);
    }
}
