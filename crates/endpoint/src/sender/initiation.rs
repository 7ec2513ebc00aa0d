//! The check whether a path carries ECN: initiation with RTP and RTCP (RFC 6679 section 7.2.1), and monitoring
//! afterwards (section 7.4).

use super::{OutStream, Path, Sender};
use tidegate_core::record::EcnCheck;
use tidegate_core::wire::rtcp::EcnCounters;
use tidegate_core::{Driver, Ecn, Span, Time};

/// Packets per probe, at least: until the path is verified, only a small fraction of the packets bears the codepoint.
const PACKETS_PER_PROBE: u32 = 5;
/// Probes that reports have to cover before their absence counts: more than three (section 7.2.1).
const PROBES: u32 = 4;
/// Lost packets from which on a loss counts as a sign (section 7.4.2: care where there are few).
const LOST_MIN: u16 = 10;
/// Reports in a row without any received packet after which the path is taken to drop packets with a codepoint.
const SILENT_REPORTS: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Initiation,
    Verified,
    Failed,
}

/// Packets sent of one stream, and the reports on them.
#[derive(Debug, Default)]
struct StreamCheck {
    capable: u32,
    incapable: u32,
    /// The RTP sequence number of the last probe that reports have to cover.
    probed: Option<u16>,
    /// Packets received without a codepoint, and duplicates.
    cleared: u32,
    last: EcnCounters,
    /// Highest sequence number and counters in the RTCP datagram at hand.
    highest: Option<u32>,
    counters: Option<EcnCounters>,
    reported: u32,
    silent: u8,
}

/// The check of a path.
#[derive(Debug)]
pub(super) struct Initiation {
    stage: Stage,
    streams: Vec<StreamCheck>,
    last_probe: Option<Time>,
    since_probe: u32,
}

impl Initiation {
    pub(super) fn new(streams: usize) -> Self {
        let streams = (0..streams).map(|_| StreamCheck::default()).collect();
        Self { stage: Stage::Initiation, streams, last_probe: None, since_probe: 0 }
    }

    /// Whether the next packet bears the codepoint: at least two packets do in each interval of RTCP, if packets are
    /// frequent enough.
    fn probes(&mut self, now: Time, interval: Span) -> bool {
        match self.stage {
            Stage::Verified => true,
            Stage::Failed => false,
            Stage::Initiation => {
                self.since_probe += 1;
                let due = self.last_probe.is_none_or(|last| now - last >= interval / 2);
                let probe = due && self.since_probe >= PACKETS_PER_PROBE;
                if probe {
                    (self.last_probe, self.since_probe) = (Some(now), 0);
                }
                probe
            }
        }
    }

    fn sent(&mut self, stream: usize, sequence: u16, capable: bool) {
        let Some(sent) = self.streams.get_mut(stream) else { return };
        if !capable {
            sent.incapable += 1;
            return;
        }
        sent.capable += 1;
        if sent.capable == PROBES {
            sent.probed = Some(sequence);
        }
    }

    /// Notes that a report has a block on `stream`.
    pub(super) fn block(&mut self, stream: usize, highest: u32) {
        if let Some(sent) = self.streams.get_mut(stream) {
            sent.highest = Some(highest);
        }
    }

    /// Notes the counters of `stream` in the same datagram.
    pub(super) fn counters(&mut self, stream: usize, counters: &EcnCounters) {
        if let Some(sent) = self.streams.get_mut(stream) {
            sent.counters = Some(*counters);
        }
    }

    /// The verdict after all of a datagram has been noted, if it allows one.
    fn received(&mut self, reports: bool) -> Option<EcnCheck> {
        let stage = self.stage;
        let verdict =
            self.streams.iter_mut().fold(None, |verdict, sent| verdict.or(sent.check(stage, reports)));
        if let Some(check) = verdict {
            self.stage = if check == EcnCheck::Verified { Stage::Verified } else { Stage::Failed };
        }
        verdict
    }
}

impl StreamCheck {
    fn check(&mut self, stage: Stage, reports: bool) -> Option<EcnCheck> {
        let (highest, counters) = (self.highest.take(), self.counters.take());
        let before = self.last;
        if let Some(counters) = counters {
            let cleared = counters.not_ect.wrapping_sub(before.not_ect);
            self.cleared = self.cleared.saturating_add(cleared.into());
            self.last = counters;
        }
        // packets that came without a codepoint beyond those sent so, less duplicates
        let excess = self.cleared.saturating_sub(self.incapable + u32::from(self.last.duplicated));
        let sending = std::mem::replace(&mut self.reported, self.capable + self.incapable)
            != self.capable + self.incapable;
        match stage {
            Stage::Failed => None,
            Stage::Initiation => {
                let capable = self.last.ect0 > 0 || self.last.ect1 > 0 || self.last.ce > 0;
                let reported =
                    |last: u16| highest.is_some_and(|highest| (highest as u16).wrapping_sub(last) < 1 << 15);
                if capable && excess == 0 {
                    Some(EcnCheck::Verified)
                } else if !reports || !self.probed.is_some_and(reported) {
                    None
                } else if counters.is_none() {
                    Some(EcnCheck::Unreported)
                } else if excess == 0 && u32::from(self.last.lost) >= PROBES {
                    Some(EcnCheck::Dropped)
                } else {
                    // the probes are not missing, so they have arrived without their codepoint
                    Some(EcnCheck::Cleared)
                }
            }
            Stage::Verified if !reports => None,
            Stage::Verified => {
                self.silent = if highest.is_some() || !sending { 0 } else { self.silent + 1 };
                // the counters are the far end's and need not be true
                let arrivals = counters.map_or((0, 0, 0), |now| {
                    let (ect0, ect1) =
                        (now.ect0.wrapping_sub(before.ect0), now.ect1.wrapping_sub(before.ect1));
                    let marked = u32::from(now.ce.wrapping_sub(before.ce));
                    let capable = ect0.saturating_add(ect1).saturating_add(marked);
                    let lost = now.lost.wrapping_sub(before.lost);
                    let lost = if lost > u16::MAX / 2 { 0 } else { lost };
                    (capable, u32::from(now.not_ect.wrapping_sub(before.not_ect)), lost)
                });
                let (capable, cleared, lost) = arrivals;
                if excess >= PROBES && cleared > capable {
                    Some(EcnCheck::Cleared)
                } else if self.silent >= SILENT_REPORTS
                    || (lost >= LOST_MIN && u32::from(lost) > capable.saturating_add(cleared))
                {
                    Some(EcnCheck::Dropped)
                } else {
                    None
                }
            }
        }
    }
}

impl Sender {
    /// The ECN field of the packet that leaves.
    pub(super) fn codepoint(&mut self, now: Time, path: &Path) -> Ecn {
        let bears = self.initiation.as_mut().is_none_or(|check| check.probes(now, path.reports.peer));
        if bears { self.ecn } else { Ecn::NotEct }
    }

    /// Notes that the packet `sequence` of `stream` has left with this ECN field.
    pub(super) fn sent_with(&mut self, stream: usize, sequence: u16, ecn: Ecn) {
        if let Some(initiation) = &mut self.initiation {
            initiation.sent(stream, sequence, ecn.is_capable());
        }
    }

    /// Records a verdict after RTCP has come in and was parsed.
    pub(super) fn check_ecn(&mut self, now: Time, reports: bool, out: &mut dyn Driver) {
        if let Some(check) = self.initiation.as_mut().and_then(|initiation| initiation.received(reports)) {
            out.record().ecn_checked(now, self.flow, check);
        }
    }
}

/// The check of `streams`, if it is wanted and ECN is in use.
pub(super) fn initiation(wanted: bool, ecn: Ecn, streams: &[OutStream]) -> Option<Initiation> {
    (wanted && ecn.is_capable()).then(|| Initiation::new(streams.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends packets every 10 ms for a second, at most one in five of them a probe.
    fn sent() -> (Initiation, u32) {
        let mut initiation = Initiation::new(1);
        let interval = Span::from_millis(200);
        for k in 0..100u16 {
            let capable = initiation.probes(Time::from_millis(i64::from(k) * 10), interval);
            initiation.sent(0, k, capable);
        }
        let capable = initiation.streams[0].capable;
        (initiation, capable)
    }

    fn counters(ect0: u32, not_ect: u16, lost: u16) -> EcnCounters {
        EcnCounters { ect0, not_ect, lost, ..EcnCounters::default() }
    }

    /// The verdict after a report of these counters on all packets up to `highest`.
    fn report(initiation: &mut Initiation, highest: u32, counters: Option<EcnCounters>) -> Option<EcnCheck> {
        initiation.block(0, highest);
        counters.iter().for_each(|counters| initiation.counters(0, counters));
        initiation.received(true)
    }

    #[test]
    fn two_probes_go_in_each_interval_and_never_more_than_one_in_five() {
        assert_eq!(sent().1, 10, "every 100 ms of a second, from 40 ms on");
        let mut initiation = Initiation::new(1);
        let dense = (0..100).filter(|_| initiation.probes(Time::ZERO, Span::ZERO)).count();
        assert_eq!(dense, 20);
    }

    #[test]
    fn reports_decide() {
        // probes: 4, 14, 24, 34: the fourth is packet 34
        let (incapable, complete) = (90, Some(counters(10, 90, 0)));
        assert_eq!(report(&mut sent().0, 99, complete), Some(EcnCheck::Verified));
        assert_eq!(report(&mut sent().0, 33, None), None, "three probes are covered");
        assert_eq!(report(&mut sent().0, 34, None), Some(EcnCheck::Unreported));
        assert_eq!(report(&mut sent().0, 99, Some(counters(0, 100, 0))), Some(EcnCheck::Cleared));
        assert_eq!(report(&mut sent().0, 99, Some(counters(0, incapable, 10))), Some(EcnCheck::Dropped));
        // some codepoints were cleared: a negative sign
        assert_eq!(report(&mut sent().0, 99, Some(counters(5, 95, 0))), Some(EcnCheck::Cleared));
        // feedback without a report is enough to verify the path, and too little to fail it
        let (mut initiation, _) = sent();
        initiation.counters(0, &counters(0, 90, 0));
        assert_eq!(initiation.received(false), None);
        initiation.counters(0, &counters(1, 90, 0));
        assert_eq!(initiation.received(false), Some(EcnCheck::Verified));
    }

    #[test]
    fn a_path_that_breaks_later_is_detected() {
        let verified = || {
            let (mut initiation, _) = sent();
            assert_eq!(report(&mut initiation, 99, Some(counters(10, 90, 0))), Some(EcnCheck::Verified));
            for k in 100..150 {
                assert!(initiation.probes(Time::ZERO, Span::ZERO));
                initiation.sent(0, k, true);
            }
            initiation
        };
        assert_eq!(report(&mut verified(), 149, Some(counters(60, 90, 0))), None);
        assert_eq!(report(&mut verified(), 149, Some(counters(36, 90, 24))), None, "half of it is lost");
        assert_eq!(report(&mut verified(), 149, Some(counters(34, 90, 26))), Some(EcnCheck::Dropped));
        assert_eq!(report(&mut verified(), 149, Some(counters(30, 120, 0))), Some(EcnCheck::Cleared));
        assert_eq!(
            report(&mut verified(), 149, Some(counters(50, 100, 0))),
            None,
            "less than half is cleared"
        );
        // impossible counters: sums of them stay within bounds
        let extreme = EcnCounters { ect1: u32::MAX, ce: u16::MAX, ..counters(u32::MAX, u16::MAX, 0) };
        assert_eq!(report(&mut verified(), 149, Some(extreme)), None);
        let mut silent = verified();
        let checks: Vec<_> = (0..4u16)
            .map(|k| {
                silent.sent(0, 150 + k, true);
                silent.received(true)
            })
            .collect();
        assert_eq!(checks, [None, None, Some(EcnCheck::Dropped), None]);
        assert!(!silent.probes(Time::ZERO, Span::ZERO), "for good");
    }
}
