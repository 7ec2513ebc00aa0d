//! Whether the application uses less than it may: libwebrtc's application-limited region.

use tidegate_core::{Rate, Size, Span, Time};

/// The budget of libwebrtc's `AlrDetector`
/// (`modules/congestion_controller/goog_cc/alr_detector.cc`): it fills at a part of the target rate and
/// is emptied by what is sent.
#[derive(Debug)]
pub(crate) struct AppLimit {
    target: Rate,
    /// In bit-nanoseconds per second, so that short steps lose nothing.
    budget: i128,
    last: Time,
    limited: bool,
}

/// The part of the target that is to be used: `bandwidth_usage_ratio`, 65 %.
const USAGE_PERCENT: i128 = 65;
/// `kWindowMs` of libwebrtc's `IntervalBudget`.
const WINDOW: Span = Span::from_millis(500);
/// Limited from a budget of 80 % of the window on: `start_budget_level_ratio`.
const START_PERCENT: i128 = 80;
/// Until it is less than 50 %: `stop_budget_level_ratio`.
const STOP_PERCENT: i128 = 50;

impl AppLimit {
    pub(crate) fn new(now: Time) -> Self {
        Self { target: Rate::ZERO, budget: 0, last: now, limited: false }
    }

    pub(crate) fn set_target(&mut self, now: Time, target: Rate) {
        if target != self.target {
            self.pass(now);
            self.target = target;
            let most = self.most();
            self.budget = self.budget.clamp(-most, most);
        }
    }

    /// Takes note of `size` sent at `now`; zero to let time pass.
    pub(crate) fn sent(&mut self, now: Time, size: Size) {
        // use before increase, the order of AlrDetector::OnBytesSent
        self.budget = (self.budget - i128::from(size.as_bits()) * 1_000_000_000).max(-self.most());
        self.pass(now);
        let (budget, most) = (self.budget * 100, self.most());
        if !self.limited && budget > START_PERCENT * most {
            self.limited = true;
        } else if self.limited && budget < STOP_PERCENT * most {
            self.limited = false;
        }
    }

    pub(crate) fn limited(&self) -> bool {
        self.limited
    }

    fn usage(&self) -> i128 {
        i128::from(self.target.as_bps()) * USAGE_PERCENT / 100
    }

    fn most(&self) -> i128 {
        self.usage() * i128::from(WINDOW.as_nanos())
    }

    fn pass(&mut self, now: Time) {
        let passed = i128::from(now.saturating_since(self.last).as_nanos());
        self.budget = (self.budget + self.usage() * passed).min(self.most());
        self.last = now;
        debug_assert!(self.budget.abs() <= self.most(), "the budget is out of its bounds: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends at `rate` for `millis` in packets of 10 ms and says when the verdict changed.
    fn run(alr: &mut AppLimit, from: i64, millis: i64, rate: Rate) -> Vec<(i64, bool)> {
        let mut changes = Vec::new();
        for at in (from + 10..=from + millis).step_by(10) {
            let before = alr.limited();
            alr.sent(Time::from_millis(at), rate.bytes_in(Span::from_millis(10)));
            if alr.limited() != before {
                changes.push((at, alr.limited()));
            }
        }
        changes
    }

    #[test]
    fn under_65_percent_is_limited_and_over_is_not() {
        let mut alr = AppLimit::new(Time::ZERO);
        alr.set_target(Time::ZERO, Rate::from_mbps(1));
        // 70 % of the target: never
        assert_eq!(run(&mut alr, 0, 20_000, Rate::from_kbps(700)), []);
        // and leaves the budget at its bottom, -325 kbit, plus a step of 6.5. 30 % let it rise by 3.5 kbit
        // a step, to 0.8 * 325 = 260 kbit: (260 + 318.5) / 3.5 = 165.3 steps
        assert_eq!(run(&mut alr, 20_000, 10_000, Rate::from_kbps(300)), [(21_660, true)]);
        // 100 %: from 325 kbit down to 162.5 kbit by 3.5 kbit a step: 46.4 steps
        assert_eq!(run(&mut alr, 30_000, 10_000, Rate::from_mbps(1)), [(30_470, false)]);
    }
}
