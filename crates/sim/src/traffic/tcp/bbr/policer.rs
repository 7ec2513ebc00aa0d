//! BBR's long-term bandwidth: where two intervals in a row lose much and deliver alike, a token bucket polices the path
//! (`bbr_lt_bw_sampling` of Linux's `net/ipv4/tcp_bbr.c`; the draft leaves it out).

use tidegate_core::Time;

/// An interval has so many rounds at least (`bbr_lt_intvl_min_rtts`), and four times as many at most.
const MIN_ROUNDS: u32 = 4;
/// It is lossy from so many bytes lost for each delivered on (`bbr_lt_loss_thresh`, 50 of 256).
const LOSSY: f64 = 50.0 / 256.0;
/// Two rates are alike within this share (`bbr_lt_bw_ratio`), or within so many bytes a second (`bbr_lt_bw_diff`).
const ALIKE: f64 = 1.0 / 8.0;
const ALIKE_BYTES: f64 = 4000.0 / 8.0;
/// For so many rounds the policed rate is used (`bbr_lt_bw_max_rtts`).
const USE_ROUNDS: u32 = 48;

/// What is told of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) now: Time,
    /// Bytes, since the connection began.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Whether this acknowledgement told of losses, and began a round.
    pub(super) losses: bool,
    pub(super) round_start: bool,
    pub(super) app_limited: bool,
}

/// The state of the search.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// Of the last lossy interval, or that of the policer, in bytes a second.
    rate: Option<f64>,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    since: Time,
    delivered: u64,
    lost: u64,
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Nothing,
    /// From now on the path is taken for policed.
    Policed,
    /// It was for long enough: look for bandwidth again.
    Over,
}

impl Policer {
    /// The rate of the policer, while the path is taken for policed.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.in_use)
    }

    pub(super) fn acked(&mut self, progress: &Progress, probing: bool) -> Verdict {
        if self.in_use {
            self.rounds += u32::from(probing && progress.round_start);
            if self.rounds < USE_ROUNDS {
                return Verdict::Nothing;
            }
            self.reset(progress);
            return Verdict::Over;
        }
        // the first loss says that the bucket is empty: what came before was faster than the policer's rate
        if !self.sampling {
            if !progress.losses {
                return Verdict::Nothing;
            }
            self.begin(progress);
            self.sampling = true;
        }
        if progress.app_limited {
            self.reset(progress);
            return Verdict::Nothing;
        }
        self.rounds += u32::from(progress.round_start);
        if self.rounds < MIN_ROUNDS {
            return Verdict::Nothing;
        }
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(progress);
            return Verdict::Nothing;
        }
        let delivered = (progress.delivered - self.delivered) as f64;
        let lost = (progress.lost - self.lost) as f64;
        let took = (progress.now - self.since).as_secs_f64();
        if !progress.losses || delivered <= 0.0 || lost < LOSSY * delivered || took < 1e-3 {
            return Verdict::Nothing;
        }
        let rate = delivered / took;
        if let Some(last) = self.rate
            && ((rate - last).abs() <= ALIKE * last || (rate - last).abs() <= ALIKE_BYTES)
        {
            self.rate = Some((rate + last) / 2.0);
            (self.in_use, self.rounds) = (true, 0);
            return Verdict::Policed;
        }
        self.rate = Some(rate);
        self.begin(progress);
        Verdict::Nothing
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

    /// Rounds of 40 ms in which so many bytes are delivered and lost; after how many rounds the path is taken for policed,
    /// and at which rate.
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
    fn after_48_rounds_bandwidth_is_looked_for_again() {
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
            assert_eq!(policer.acked(&progress, true), Verdict::Nothing);
            assert_eq!(policer.acked(&Progress { round_start: false, ..progress }, true), Verdict::Nothing);
        }
        assert_eq!((policer.rate(), policer.acked(&progress, true)), (Some(1e5), Verdict::Over));
        assert_eq!(policer.rate(), None);
    }
}
