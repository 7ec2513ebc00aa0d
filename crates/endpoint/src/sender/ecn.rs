//! ECN counters that receivers report beside per-packet feedback (RFC 6679 section 5).

use tidegate_core::control::EcnCounts;
use tidegate_core::wire::rtcp::EcnCounters;

/// The counters that a receiver has reported of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportedEcn {
    last: EcnCounters,
    /// Marks as of the last summary that came with a report.
    summed: u16,
}

impl ReportedEcn {
    /// The increase of `counters` over the last ones; none if they are older.
    pub(super) fn news(&mut self, counters: &EcnCounters) -> Option<EcnCounts> {
        let difference32 =
            |now: u32, before: u32| i32::try_from(now.wrapping_sub(before)).ok().map(i32::unsigned_abs);
        let difference16 =
            |now: u16, before: u16| i16::try_from(now.wrapping_sub(before)).ok().map(i16::unsigned_abs);
        let counts = EcnCounts {
            ect0: difference32(counters.ect0, self.last.ect0)?,
            ect1: difference32(counters.ect1, self.last.ect1)?,
            ce: difference16(counters.ce, self.last.ce)?.into(),
            not_ect: difference16(counters.not_ect, self.last.not_ect)?.into(),
        };
        self.last = *counters;
        Some(counts)
    }

    /// Marks since the last summary, by the next one, `counters`.
    pub(super) fn marked(&mut self, counters: &EcnCounters) -> u16 {
        let marked = counters.ce.wrapping_sub(self.summed);
        if marked > u16::MAX / 2 {
            return 0;
        }
        self.summed = counters.ce;
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_counted_once_wrap_and_never_go_back() {
        let mut reported = ReportedEcn::default();
        let counters = EcnCounters { ect0: u32::MAX, ce: 65_530, not_ect: 5, ..EcnCounters::default() };
        assert_eq!(reported.news(&counters), None, "half of the range behind");
        let counters = EcnCounters { ect0: 10, ce: 3, not_ect: 5, ..EcnCounters::default() };
        let counts = EcnCounts { ect0: 10, ce: 3, not_ect: 5, ect1: 0 };
        assert_eq!(reported.news(&counters), Some(counts));
        assert_eq!(reported.news(&counters), Some(EcnCounts::default()), "reported again");
        let older = EcnCounters { ect0: 9, ..counters };
        assert_eq!(reported.news(&older), None);
        for step in 1..100u32 {
            let next = EcnCounters { ce: (step * 30_000 + 3) as u16, ect1: step, ..counters };
            let counts = EcnCounts { ce: 30_000, ect1: 1, ..EcnCounts::default() };
            assert_eq!(reported.news(&next), Some(counts), "{step}");
        }
    }

    #[test]
    fn marks_of_summaries_are_counted_by_themselves() {
        let mut reported = ReportedEcn::default();
        let counters = |ce| EcnCounters { ce, ..EcnCounters::default() };
        assert!(reported.news(&counters(7)).is_some());
        assert_eq!(
            (reported.marked(&counters(9)), reported.marked(&counters(9)), reported.marked(&counters(8))),
            (9, 0, 0)
        );
    }
}
