//! Proportional rate reduction: the window during a recovery (RFC 6937; Linux's `tcp_cwnd_reduction`).

/// One recovery: bytes delivered and sent since its beginning.
#[derive(Debug)]
pub(super) struct Prr {
    /// RecoverFS: the bytes under way when the recovery began.
    recover_flight: f64,
    /// prr_delivered: bytes acknowledged or SACKed since then.
    delivered: f64,
    /// prr_out: bytes sent since then, again or for the first time.
    out: f64,
}

impl Prr {
    /// The state at the beginning of a recovery with `flight` bytes under way.
    pub(super) fn new(flight: f64) -> Self {
        Self { recover_flight: flight.max(1.0), delivered: 0.0, out: 0.0 }
    }

    /// Counts `bytes` that were sent.
    pub(super) fn sent(&mut self, bytes: u32) {
        self.out += f64::from(bytes);
    }

    /// The window (bytes) after an acknowledgement that delivered `bytes`, with `pipe` bytes still under way.
    ///
    /// With more under way than `ssthresh` as much leaves as the reduction's share of what arrives; with less, slow start
    /// fills up to `ssthresh`, by one `segment` more an acknowledgement if it `is_safe`: it advances, and shows no
    /// further loss (the heuristic of RFC 9937 section 6.2; in Linux since 4.3).
    pub(super) fn window(
        &mut self,
        ssthresh: f64,
        pipe: u64,
        bytes: u64,
        is_safe: bool,
        segment: f64,
    ) -> f64 {
        let (pipe, bytes) = (pipe as f64, bytes as f64);
        self.delivered += bytes;
        let room = ssthresh - pipe;
        let allowed = if room < 0.0 {
            self.delivered * ssthresh / self.recover_flight - self.out
        } else {
            let bound = (self.delivered - self.out).max(bytes) + if is_safe { segment } else { 0.0 };
            bound.min(room)
        };
        // the first segment to repair leaves at once
        let least = if self.out > 0.0 { 0.0 } else { segment };
        pipe + allowed.max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty segments under way, the first of them lost, half the window to keep: each second acknowledgement lets a
    /// segment leave, so that sending goes on through the whole recovery (RFC 6937 section 4, first example).
    #[test]
    fn every_second_arrival_lets_a_segment_leave() {
        let segment = 1000.0;
        let mut prr = Prr::new(20.0 * segment);
        let (mut pipe, mut leaves) = (19_000_u64, Vec::new());
        for n in 0..17 {
            pipe -= 1000;
            let window = prr.window(10_000.0, pipe, 1000, false, segment);
            if window >= pipe as f64 + segment {
                prr.sent(1000);
                pipe += 1000;
                leaves.push(n);
            }
        }
        // the last one waits until less than ssthresh is under way
        assert_eq!(leaves, [0, 3, 5, 7, 9, 11, 13, 16]);
        assert_eq!(pipe, 10_000, "it ends at ssthresh");
    }

    /// After a burst of losses less than ssthresh is under way: slow start by what is delivered (the slow start
    /// reduction bound), or by what is delivered alone where more was lost.
    #[test]
    fn below_the_threshold_it_grows_by_one_segment_an_acknowledgement() {
        let segment = 1000.0;
        let mut prr = Prr::new(20.0 * segment);
        assert_eq!(prr.window(10_000.0, 4_000, 1000, false, segment), 5_000.0);
        prr.sent(1000);
        assert_eq!(prr.window(10_000.0, 4_000, 1000, true, segment), 6_000.0);
        prr.sent(2000);
        assert_eq!(prr.window(10_000.0, 9_500, 1000, true, segment), 10_000.0, "not beyond ssthresh");
    }

    #[test]
    fn the_first_repair_is_not_held_up() {
        let mut prr = Prr::new(20_000.0);
        assert_eq!(prr.window(10_000.0, 18_000, 0, false, 1000.0), 19_000.0);
        prr.sent(1000);
        assert_eq!(prr.window(10_000.0, 19_000, 0, false, 1000.0), 19_000.0);
    }
}
