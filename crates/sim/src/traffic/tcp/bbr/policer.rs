//! BBR's long-term bandwidth: two successive intervals with high loss and similar rates show that a token bucket
//! polices the path (`bbr_lt_bw_sampling` of Linux's `net/ipv4/tcp_bbr.c`; the draft does not have it).

use tidegate_core::Time;

/// Minimum length of an interval in rounds (`bbr_lt_intvl_min_rtts`); the maximum is four times that.
const LT_INTVL_MIN_RTTS: u32 = 4;
/// Lost bytes per delivered byte from which an interval is lossy (`bbr_lt_loss_thresh`, 50 of 256).
const LT_LOSS_THRESH: f64 = 50.0 / 256.0;
/// Share within which two rates are similar (`bbr_lt_bw_ratio`), and difference in bytes a second within which they are
/// as well (`bbr_lt_bw_diff`).
const LT_BW_RATIO: f64 = 1.0 / 8.0;
const LT_BW_DIFF: f64 = 4000.0 / 8.0;
/// Rounds for which the policed rate is used (`bbr_lt_bw_max_rtts`).
const LT_BW_MAX_RTTS: u32 = 48;

/// Progress by an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) now: Time,
    /// Bytes delivered and lost since the connection began.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Whether this acknowledgement showed losses, and whether it began a round.
    pub(super) losses: bool,
    pub(super) round_start: bool,
    pub(super) app_limited: bool,
}

/// The state of the detection.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// Rate of the last lossy interval, or that of the policer, in bytes a second.
    rate: Option<f64>,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    since: Time,
    delivered: u64,
    lost: u64,
}

/// The conclusion from an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Unchanged,
    /// From now on the path counts as policed.
    Policed,
    /// The policed rate was used for long enough: probe for bandwidth again.
    Over,
}

impl Policer {
    /// The rate of the policer, while the path counts as policed.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.in_use)
    }

    pub(super) fn acked(&mut self, progress: &Progress, probing: bool) -> Verdict {
        if self.in_use {
            self.rounds += u32::from(probing && progress.round_start);
            if self.rounds < LT_BW_MAX_RTTS {
                return Verdict::Unchanged;
            }
            self.reset(progress);
            return Verdict::Over;
        }
        // the first loss shows that the bucket is empty: earlier data was faster than the policer's rate
        if !self.sampling {
            if !progress.losses {
                return Verdict::Unchanged;
            }
            self.begin(progress);
            self.sampling = true;
        }
        if progress.app_limited {
            self.reset(progress);
            return Verdict::Unchanged;
        }
        self.rounds += u32::from(progress.round_start);
        if self.rounds < LT_INTVL_MIN_RTTS {
            return Verdict::Unchanged;
        }
        if self.rounds > 4 * LT_INTVL_MIN_RTTS {
            self.reset(progress);
            return Verdict::Unchanged;
        }
        let delivered = (progress.delivered - self.delivered) as f64;
        let lost = (progress.lost - self.lost) as f64;
        let seconds = (progress.now - self.since).as_secs_f64();
        if !progress.losses || delivered <= 0.0 || lost < LT_LOSS_THRESH * delivered || seconds < 1e-3 {
            return Verdict::Unchanged;
        }
        let rate = delivered / seconds;
        if let Some(last) = self.rate
            && ((rate - last).abs() <= LT_BW_RATIO * last || (rate - last).abs() <= LT_BW_DIFF)
        {
            self.rate = Some((rate + last) / 2.0);
            (self.in_use, self.rounds) = (true, 0);
            return Verdict::Policed;
        }
        self.rate = Some(rate);
        self.begin(progress);
        Verdict::Unchanged
    }

    fn begin(&mut self, progress: &Progress) {
        self.rounds = 0;
        (self.since, self.delivered, self.lost) = (progress.now, progress.delivered, progress.lost);
    }

    fn reset(&mut self, progress: &Progress) {
        *self = Self::default();
        self.begin(progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Span;

    /// Feeds rounds of 40 ms with these bytes delivered and lost; returns the round after which the path counts as
    /// policed, and the rate.
    fn after(rounds: impl Fn(u32) -> (u64, u64)) -> Option<(u32, f64)> {
        let mut policer = Policer::default();
        let mut progress = Progress {
            now: Time::from_secs(1),
            delivered: 0,
            lost: 0,
            losses: false,
            round_start: true,
            app_limited: false,
        };
        for round in 0..60 {
            let (delivered, lost) = rounds(round);
            progress.now += Span::from_millis(40);
            progress.delivered += delivered;
            progress.lost += lost;
            progress.losses = lost > 0;
            if policer.acked(&progress, true) == Verdict::Policed {
                return policer.rate().map(|rate| (round, rate));
            }
        }
        None
    }

    #[test]
    fn two_lossy_intervals_that_deliver_alike_are_a_policer() {
        // four rounds, of which the first begins with a loss, and four more
        let (round, rate) = after(|_| (4000, 2000)).unwrap();
        assert_eq!(round, 7);
        assert!((rate - 4000.0 / 0.04).abs() < 1e-6, "{rate}");
        // 19 % are lost: less than 50 for each 256
        assert_eq!(after(|_| (10_000, 1900)), None);
        assert!(after(|_| (10_000, 1960)).is_some());
        // rates that differ by more than an eighth from one interval to the next
        assert_eq!(after(|round| if round / 4 % 2 == 0 { (40_000, 20_000) } else { (30_000, 15_000) }), None);
    }

    #[test]
    fn after_48_rounds_it_probes_for_bandwidth_again() {
        let mut policer = Policer { rate: Some(1e5), in_use: true, ..Policer::default() };
        let progress = Progress {
            now: Time::from_secs(1),
            delivered: 0,
            lost: 0,
            losses: true,
            round_start: true,
            app_limited: false,
        };
        for _ in 0..47 {
            assert_eq!(policer.acked(&progress, true), Verdict::Unchanged);
            assert_eq!(policer.acked(&Progress { round_start: false, ..progress }, true), Verdict::Unchanged);
        }
        assert_eq!((policer.rate(), policer.acked(&progress, true)), (Some(1e5), Verdict::Over));
        assert_eq!(policer.rate(), None);
    }
}
