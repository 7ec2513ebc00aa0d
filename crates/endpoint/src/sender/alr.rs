//! Detection of an application that uses less than its target: libwebrtc's application-limited region (ALR).

use tidegate_core::{Rate, Size, Span, Time};

/// The budget of libwebrtc's `AlrDetector`
/// (`modules/congestion_controller/goog_cc/alr_detector.cc`): it fills at a part of the target rate and
/// is emptied by the bytes that are sent.
#[derive(Debug)]
pub(crate) struct AlrDetector {
    target: Rate,
    /// In bit-nanoseconds per second, so that short steps lose nothing.
    budget: i128,
    last: Time,
    limited: bool,
}

/// The part of the target that fills the budget: `bandwidth_usage_ratio`. This and the next two constants are those of
/// the field trial that is on by default (`alr_experiment.cc`: `1.0,2875,80,40,-60,3`), not those of the struct (65,
/// 80, 50).
const BANDWIDTH_USAGE_PERCENT: i128 = 80;
/// `kWindowMs` of libwebrtc's `IntervalBudget`.
const WINDOW: Span = Span::from_millis(500);
/// Budget, as a part of the window, above which the application is limited: `start_budget_level_ratio`.
const START_BUDGET_LEVEL_PERCENT: i128 = 40;
/// Budget, as a part of the window, below which it is no longer limited: `stop_budget_level_ratio`.
const STOP_BUDGET_LEVEL_PERCENT: i128 = -60;

impl AlrDetector {
    pub(crate) fn new(now: Time) -> Self {
        Self { target: Rate::ZERO, budget: 0, last: now, limited: false }
    }

    pub(crate) fn set_target(&mut self, now: Time, target: Rate) {
        if target != self.target {
            self.pass(now);
            self.target = target;
            let max_budget = self.max_budget();
            self.budget = self.budget.clamp(-max_budget, max_budget);
        }
    }

    /// Subtracts `size` bytes sent at `now` from the budget; zero lets time pass.
    pub(crate) fn sent(&mut self, now: Time, size: Size) {
        // use before increase, the order of AlrDetector::OnBytesSent
        self.budget = (self.budget - i128::from(size.as_bits()) * 1_000_000_000).max(-self.max_budget());
        self.pass(now);
        let (budget, max_budget) = (self.budget * 100, self.max_budget());
        if !self.limited && budget > START_BUDGET_LEVEL_PERCENT * max_budget {
            self.limited = true;
        } else if self.limited && budget < STOP_BUDGET_LEVEL_PERCENT * max_budget {
            self.limited = false;
        }
    }

    pub(crate) fn limited(&self) -> bool {
        self.limited
    }

    fn budget_rate(&self) -> i128 {
        i128::from(self.target.as_bps()) * BANDWIDTH_USAGE_PERCENT / 100
    }

    fn max_budget(&self) -> i128 {
        self.budget_rate() * i128::from(WINDOW.as_nanos())
    }

    fn pass(&mut self, now: Time) {
        let passed = i128::from(now.saturating_since(self.last).as_nanos());
        self.budget = (self.budget + self.budget_rate() * passed).min(self.max_budget());
        self.last = now;
        debug_assert!(self.budget.abs() <= self.max_budget(), "the budget is out of its bounds: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends at `rate` for `millis` in packets of 10 ms; returns the times at which the verdict changed.
    fn run(alr: &mut AlrDetector, from: i64, millis: i64, rate: Rate) -> Vec<(i64, bool)> {
        let mut changes = Vec::new();
        for millis in (from + 10..=from + millis).step_by(10) {
            let before = alr.limited();
            alr.sent(Time::from_millis(millis), rate.bytes_in(Span::from_millis(10)));
            if alr.limited() != before {
                changes.push((millis, alr.limited()));
            }
        }
        changes
    }

    #[test]
    fn under_80_percent_is_limited_and_over_is_not() {
        let mut alr = AlrDetector::new(Time::ZERO);
        alr.set_target(Time::ZERO, Rate::from_mbps(1));
        // 85 % of the target: never
        assert_eq!(run(&mut alr, 0, 20_000, Rate::from_kbps(850)), []);
        // and leaves the budget at its bottom, -400 kbit, plus a step of 8. 30 % let it rise by 5 kbit a step, to
        // 0.4 * 400 = 160 kbit: (160 + 392) / 5 = 110.4 steps
        assert_eq!(run(&mut alr, 20_000, 10_000, Rate::from_kbps(300)), [(21_110, true)]);
        // 100 %: from 400 kbit down to -240 kbit by 2 kbit a step: more than 320 steps
        assert_eq!(run(&mut alr, 30_000, 10_000, Rate::from_mbps(1)), [(33_210, false)]);
    }

    /// The detector of libwebrtc itself, fed with packets.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test reads its data")]
    fn its_verdicts_are_libwebrtcs() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/gcc/goog_cc_alr.csv");
        let text = std::fs::read_to_string(path).expect("it is carried");
        let rows =
            text.lines().skip(1).map(|line| line.split(',').map(|cell| cell.parse().expect("a number")));
        let mut alr = None;
        let (mut count, mut changes) = (0, 0);
        for mut row in rows {
            let mut next = || -> i64 { row.next().expect("four columns") };
            let (now, bytes, target) =
                (Time::from_millis(next()), next() as u64, Rate::from_bps(next() as u64));
            let limited = next() >= 0;
            // the first packet does not count there: nothing says since when its bytes were sent
            let first = alr.is_none();
            let alr = alr.get_or_insert_with(|| AlrDetector::new(now));
            let before = alr.limited();
            alr.set_target(now, target);
            if !first {
                alr.sent(now, Size::from_bytes(bytes));
            }
            assert_eq!(alr.limited(), limited, "at {now}");
            count += 1;
            changes += u32::from(alr.limited() != before);
        }
        assert_eq!((count, changes), (1200, 2), "it begins, and it stops");
    }
}
