//! Loss detection, and the loss event of each loss (RFC 5348 sections 5.1 to 5.3).
//!
//! A missing packet is lost when `reordering` later packets have arrived. The time of the loss is its interpolated arrival
//! between its neighbours. A marked packet counts as lost at once, at the time of its arrival. Losses within one
//! round-trip time of the first one are one event. A packet that arrives after its loss was counted takes the loss back.

use super::intervals::{self, Closed, INTERVALS};
use std::collections::VecDeque;
use tidegate_core::{Span, Time};

/// Change of the history by a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// No change: in order, or late without having been counted as lost.
    None,
    /// New loss or mark.
    Loss,
    /// Loss taken back: the packet had been counted as lost.
    Filled,
    /// Packet that had arrived before.
    Duplicate,
}

/// Received packet: sequence number and time.
type Arrival = (i64, Time);

/// Missing packets `first..end`, and their neighbours.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: i64,
    end: i64,
    /// Last packet in order that arrived before them.
    before: Arrival,
    /// First packet that arrived after them.
    after: Arrival,
    /// Number of later packets that have arrived.
    later: u32,
}

impl Gap {
    /// Interpolated arrival of the packet `sequence` (T_loss of RFC 5348 section 5.2).
    fn time(&self, sequence: i64) -> Time {
        let span = i128::from((self.after.1 - self.before.1).as_nanos());
        let step = i128::from(sequence - self.before.0);
        let nanos = span * step / i128::from((self.after.0 - self.before.0).max(1));
        self.before.1 + Span::from_nanos(nanos as i64)
    }

    /// First packet of the gap with an interpolated arrival after `time`; the gap's end if there is none.
    fn first_after(&self, time: Time) -> i64 {
        let span = i128::from((self.after.1 - self.before.1).as_nanos());
        if span <= 0 {
            return if self.time(self.first) > time { self.first } else { self.end };
        }
        let wait = i128::from((time - self.before.1).as_nanos());
        let steps = wait * i128::from(self.after.0 - self.before.0) / span;
        let mut next =
            (i128::from(self.before.0) + steps).clamp(i128::from(self.first), i128::from(self.end)) as i64;
        // the division rounds, so compare the times
        while next > self.first && self.time(next - 1) > time {
            next -= 1;
        }
        while next < self.end && self.time(next) <= time {
            next += 1;
        }
        next
    }
}

/// Losses that began within one round-trip time.
#[derive(Clone, Copy, Debug)]
struct Event {
    start: i64,
    time: Time,
    rtt: Span,
    lost: u64,
    /// Discount DF_i of the interval that the event begins, once that is closed.
    discount: f64,
}

/// Parameters of a loss history.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Number of later packets after which a missing packet is lost (NDUPACK).
    pub reordering: u32,
    /// Lowest factor by which the past is discounted; 1: not at all.
    pub discount_threshold: f64,
    /// Whether short intervals count their losses (RFC 4828 section 3).
    pub short_intervals: bool,
}

/// Losses that still count.
#[derive(Clone, Debug)]
pub struct LossHistory {
    config: Config,
    highest: Option<Arrival>,
    /// Gaps that are not yet lost, in order; few at any time.
    gaps: Vec<Gap>,
    /// Lost or marked packets, in order, with the round-trip time at the loss.
    lost: VecDeque<(Gap, Span)>,
    /// Loss events, the present one last.
    events: Vec<Event>,
    /// Interval before the very first event, while it counts.
    first: Option<Closed>,
    /// Whether older events were dropped.
    dropped_events: bool,
    /// Start of the last event that has discounted the past.
    discounted: i64,
}

/// Number of events kept: they bound eight closed intervals and the open one.
const MAX_EVENTS: usize = INTERVALS + 1;

/// Number of runs of losses that can be taken back; older ones stay counted in their events.
const MAX_LOST_RUNS: usize = 8192;

impl LossHistory {
    /// Creates a history without packets.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            highest: None,
            gaps: Vec::with_capacity(8),
            lost: VecDeque::new(),
            events: Vec::with_capacity(2 * MAX_EVENTS),
            first: None,
            dropped_events: false,
            discounted: i64::MIN,
        }
    }

    /// Takes a packet that arrives `now`, marked or not, while the round-trip time is `rtt`.
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
                unchanged => return unchanged,
            }
        }
        for gap in self.gaps.iter_mut().filter(|gap| gap.end <= sequence) {
            gap.later += 1;
        }
        while let Some(index) = self.gaps.iter().position(|gap| gap.later >= self.config.reordering) {
            let gap = self.gaps.remove(index);
            self.add_loss(gap, rtt);
            news = News::Loss;
        }
        match self.mark(sequence, now, rtt, marked) {
            News::None => news,
            mark => mark,
        }
    }

    /// Whether there is no loss event.
    #[must_use]
    pub fn lossless(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether the interval before the first event has to be set by [`LossHistory::set_first`].
    #[must_use]
    pub fn wants_first(&self) -> bool {
        !self.events.is_empty() && self.first.is_none() && !self.dropped_events
    }

    /// Sets the length of the interval before the first event, packets.
    pub fn set_first(&mut self, length: f64) {
        self.first = Some(Closed::new(length));
    }

    /// Loss event rate p as of `now`, from 0 to 1.
    #[must_use]
    pub fn rate(&self, now: Time) -> f64 {
        let Some(present) = self.events.last() else { return 0.0 };
        let closed = self.closed(self.events.len() - 1);
        let open = self.highest.map_or(0, |highest| highest.0 - present.start + 1) as f64;
        let factor = intervals::discount(open, &closed, self.config.discount_threshold);
        let counts = !self.config.short_intervals || now - present.time > present.rtt * 2;
        (1.0 / intervals::mean(counts.then_some(open), &closed, factor)).min(1.0)
    }

    /// Closed intervals up to the event with the index `last`, newest first.
    fn closed(&self, last: usize) -> Vec<Closed> {
        let mut closed = Vec::with_capacity(MAX_EVENTS);
        for pair in self.events[..=last].windows(2).rev() {
            let (event, next) = (pair[0], pair[1]);
            let packets = (next.start - event.start) as f64;
            let length = if self.config.short_intervals {
                let duration = (next.time - event.time).as_secs_f64();
                intervals::small_packet_length(packets, event.lost as f64, duration, event.rtt.as_secs_f64())
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
        let arrival = (sequence, now);
        let gap = Gap { first: sequence, end: sequence + 1, before: arrival, after: arrival, later: 0 };
        self.add_loss(gap, rtt);
        News::Loss
    }

    /// Splits the gap at `index` for a late packet.
    fn split(&mut self, index: usize, sequence: i64, now: Time) {
        let gap = self.gaps[index];
        let earlier = Gap { end: sequence, ..gap };
        let later = Gap { first: sequence + 1, before: (sequence, now), ..gap };
        let parts = [earlier, later].into_iter().filter(|part| part.first < part.end);
        self.gaps.splice(index..=index, parts);
    }

    /// Takes back the loss of `sequence`, if it was one. If the packet is marked, the loss stays for the mark.
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

    fn add_loss(&mut self, gap: Gap, rtt: Span) {
        if self.lost.back().is_none_or(|(last, _)| last.end <= gap.first) {
            self.lost.push_back((gap, rtt));
            self.extend(gap, rtt);
        } else {
            let index = self.lost.partition_point(|(lost, _)| lost.first < gap.first);
            self.lost.insert(index, (gap, rtt));
            self.rebuild(gap.first);
        }
        self.drop_old();
    }

    /// Groups the losses anew, from the event of `sequence` on.
    fn rebuild(&mut self, sequence: i64) {
        let unchanged = self.events.partition_point(|event| event.start <= sequence).saturating_sub(1);
        let old = self.events.split_off(unchanged.min(self.events.len()));
        let from = old.first().map_or(sequence, |event| event.start.min(sequence));
        let index = self.lost.partition_point(|(gap, _)| gap.first < from);
        for i in index..self.lost.len() {
            let (gap, rtt) = self.lost[i];
            self.extend(gap, rtt);
        }
        let unchanged = unchanged.min(self.events.len());
        for event in &mut self.events[unchanged..] {
            let before = old.iter().rev().find(|old| old.start <= event.start);
            event.discount = before.map_or(1.0, |old| old.discount);
        }
        if self.events.is_empty() {
            self.first = None;
        }
    }

    /// Adds losses after all others to the present event, or begins new events with them.
    fn extend(&mut self, gap: Gap, rtt: Span) {
        let mut next = gap.first;
        if let Some(present) = self.events.last_mut() {
            // "T_old + R >= T_new" is the same event (RFC 5348 section 5.2)
            next = gap.first_after(present.time + rtt);
            present.lost += (next - gap.first) as u64;
        }
        while next < gap.end {
            let start = next;
            let time = gap.time(start);
            next = gap.first_after(time + rtt).max(start + 1);
            let (per_event, remaining) = (next - start, gap.end - start);
            if remaining / per_event > 2 * MAX_EVENTS as i64 {
                // a long outage: all its events but the last are alike, and are dropped at once
                let skipped = (remaining / per_event - MAX_EVENTS as i64 - 1) * per_event;
                self.events.clear();
                (self.first, self.dropped_events) = (None, true);
                next = start + skipped;
                continue;
            }
            self.begin_event(Event { start, time, rtt, lost: per_event as u64, discount: 1.0 });
        }
    }

    fn begin_event(&mut self, event: Event) {
        if event.start > self.discounted
            && let Some(last) = self.events.len().checked_sub(1)
        {
            let closed = self.closed(last);
            let open = (event.start - self.events[last].start) as f64;
            let factor = intervals::discount(open, &closed, self.config.discount_threshold);
            self.events[..last].iter_mut().for_each(|event| event.discount *= factor);
            if let Some(first) = &mut self.first {
                first.discount *= factor;
            }
        }
        debug_assert!(self.events.last().is_none_or(|last| last.start < event.start), "events in order");
        self.discounted = self.discounted.max(event.start);
        self.events.push(event);
    }

    /// Drops events and losses that no longer count.
    fn drop_old(&mut self) {
        if let Some(old) = self.events.len().checked_sub(MAX_EVENTS).filter(|&old| old > 0) {
            self.events.drain(..old);
            (self.first, self.dropped_events) = (None, true);
            let start = self.events[0].start;
            let old = self.lost.partition_point(|(gap, _)| gap.end <= start);
            self.lost.drain(..old);
            if let Some((gap, _)) = self.lost.front_mut() {
                gap.first = gap.first.max(start);
            }
        }
        while self.lost.len() > MAX_LOST_RUNS {
            self.lost.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);
    const CONFIG: Config = Config { reordering: 3, discount_threshold: 1.0, short_intervals: false };

    /// Arrival of a packet, one every 10 ms.
    fn arrival(sequence: i64) -> Time {
        Time::from_millis(10 * sequence)
    }

    /// Takes all packets of `sequences` that are not among `lost`.
    fn arrive(history: &mut LossHistory, sequences: std::ops::Range<i64>, lost: &[i64]) {
        for sequence in sequences.filter(|sequence| !lost.contains(sequence)) {
            history.packet(sequence, arrival(sequence), RTT, false);
        }
    }

    fn starts(history: &LossHistory) -> Vec<i64> {
        history.events.iter().map(|event| event.start).collect()
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        let mut history = LossHistory::new(CONFIG);
        arrive(&mut history, 0..10, &[]);
        assert_eq!(history.packet(11, arrival(11), RTT, false), News::None);
        assert_eq!(history.packet(12, arrival(12), RTT, false), News::None);
        assert_eq!(history.packet(12, arrival(12), RTT, false), News::Duplicate, "which does not count");
        assert!(history.lossless());
        assert_eq!(history.packet(13, arrival(13), RTT, false), News::Loss);
        assert_eq!(starts(&history), [10]);
        assert_eq!(history.events[0].time, arrival(10), "halfway between its neighbours");
    }

    #[test]
    fn a_late_packet_is_no_loss_and_a_very_late_one_takes_it_back() {
        let mut history = LossHistory::new(CONFIG);
        arrive(&mut history, 0..10, &[]);
        arrive(&mut history, 11..13, &[]);
        assert_eq!(history.packet(10, arrival(13), RTT, false), News::None);
        arrive(&mut history, 13..30, &[]);
        assert!(history.lossless());
        arrive(&mut history, 31..40, &[]);
        assert_eq!(starts(&history), [30]);
        history.set_first(50.0);
        assert_eq!(history.packet(30, arrival(41), RTT, false), News::Filled);
        assert!(history.lossless());
        assert_eq!(history.rate(arrival(41)), 0.0);
        arrive(&mut history, 41..60, &[]);
        assert_eq!(history.packet(30, arrival(61), RTT, false), News::Duplicate);
        assert!(history.wants_first(), "the next first event, of the packet 40, begins anew");
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut history = LossHistory::new(CONFIG);
        // 10 at 100 ms: up to 200 ms, packet 20, it is one event; 21 begins the next
        arrive(&mut history, 0..60, &[10, 15, 20, 21, 32]);
        assert_eq!(starts(&history), [10, 21, 32]);
        assert_eq!(history.events.iter().map(|event| event.lost).collect::<Vec<_>>(), [3, 1, 1]);
        history.set_first(40.0);
        // I_0 = 59 - 32 + 1 = 28; I = 11, 11, 40 and so (28 + 11 + 11) / 3 against (11 + 11 + 40) / 3
        assert!((history.rate(arrival(60)) - 3.0 / 62.0).abs() < 1e-15);
    }

    #[test]
    fn an_outage_is_an_event_each_round_trip() {
        let mut history = LossHistory::new(CONFIG);
        arrive(&mut history, 0..10, &[]);
        arrive(&mut history, 50..60, &[]);
        // 10 to 49 are lost, evenly at their own times
        assert_eq!(starts(&history), [10, 21, 32, 43]);
        // 100 million packets take no longer, and the last nine events are the same as without the shortcut
        arrive(&mut history, 100_000_060..100_000_070, &[]);
        let last = starts(&history);
        assert_eq!(last.len(), MAX_EVENTS);
        assert!(last.windows(2).all(|pair| pair[1] - pair[0] == 11), "{last:?}");
        assert!(100_000_060 - last[MAX_EVENTS - 1] <= 2 * 11, "{last:?}");
        assert!(history.lost.len() <= 2);
    }

    #[test]
    fn marks_count_at_once() {
        let mut history = LossHistory::new(CONFIG);
        arrive(&mut history, 0..10, &[]);
        assert_eq!(history.packet(10, arrival(10), RTT, true), News::Loss);
        assert_eq!(history.packet(11, arrival(11), RTT, true), News::Loss);
        assert_eq!(starts(&history), [10], "one event");
        // a loss before the mark that is detected after it moves the start of the event
        let mut history = LossHistory::new(CONFIG);
        arrive(&mut history, 0..10, &[9]);
        history.packet(10, arrival(10), RTT, true);
        assert_eq!(starts(&history), [10]);
        arrive(&mut history, 11..14, &[]);
        assert_eq!(starts(&history), [9]);
        assert_eq!(history.events[0].lost, 2);
    }

    #[test]
    fn taking_back_the_first_loss_of_an_event_moves_its_start() {
        let mut history = LossHistory::new(CONFIG);
        arrive(&mut history, 0..60, &[10, 15, 21, 40]);
        assert_eq!(starts(&history), [10, 21, 40]);
        assert_eq!(history.packet(10, arrival(60), RTT, false), News::Filled);
        // 15 is now the first, and 21 within a round trip of it
        assert_eq!(starts(&history), [15, 40]);
        assert_eq!(history.events[0].lost, 2);
    }

    #[test]
    fn the_past_is_discounted_and_stays_so() {
        let mut history = LossHistory::new(Config { discount_threshold: 0.25, ..CONFIG });
        let lost: Vec<i64> = (1..=9).map(|n| 20 * n).chain([300]).collect();
        arrive(&mut history, 0..250, &lost);
        // nine events 20 apart; I_0 = 249 - 180 + 1 = 70, DF = 40 / 70
        let df = 40.0 / 70.0;
        let mean = (70.0 + df * 20.0 * 5.0) / (1.0 + df * 5.0);
        assert!((history.rate(arrival(250)) - 1.0 / mean).abs() < 1e-15);
        arrive(&mut history, 250..310, &lost);
        // closed at 300 - 180 = 120 packets: DF = 40 / 120 enters the earlier discounts
        let discounted = 1.0 / 3.0;
        let discounts: Vec<f64> = history.events.iter().map(|event| event.discount).collect();
        assert!(discounts[..7].iter().all(|discount| (discount - discounted).abs() < 1e-15), "{discounts:?}");
        assert_eq!(discounts[7..], [1.0, 1.0]);
        let mean = (120.0 + discounted * 20.0 * 5.0) / (1.0 + discounted * 5.0);
        assert!((history.rate(arrival(310)) - 1.0 / mean).abs() < 1e-15);
    }

    #[test]
    fn small_packets_count_losses_of_short_intervals() {
        let mut history = LossHistory::new(Config { short_intervals: true, ..CONFIG });
        // events at 10 (3 lost), 21 (2 lost), 60: intervals 11 of 110 ms, 39 of 390 ms
        arrive(&mut history, 0..70, &[10, 12, 14, 21, 22, 60]);
        history.set_first(40.0);
        let closed: Vec<f64> = history.closed(2).iter().map(|closed| closed.length).collect();
        assert_eq!(closed, [39.0, 11.0 / 3.0, 40.0]);
        // I_0 began at 600 ms and counts from 800 ms on
        let without = (39.0 + 11.0 / 3.0 + 40.0) / 3.0;
        assert!((history.rate(arrival(80)) - 1.0 / without).abs() < 1e-15);
        arrive(&mut history, 70..200, &[]);
        let with = (140.0 + 39.0 + 11.0 / 3.0) / 3.0;
        assert!((history.rate(arrival(200)) - 1.0 / with).abs() < 1e-15);
    }
}
