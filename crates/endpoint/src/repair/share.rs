//! The division of the target rate between repair and media.

use super::Fec;
use tidegate_core::{Rate, Size, Span, Time};

/// Bins of sent bytes, which make a second together (libwebrtc's statistics of sent rates).
const BINS: usize = 10;
const BIN: Span = Span::from_millis(100);
/// Largest part of the target that repair takes (libwebrtc `fec_controller_default.cc`).
const PROTECTION_OVERHEAD_RATE_THRESHOLD: f64 = 0.5;
/// Bins of the window in which retransmissions fill at most the target: 500 ms (libwebrtc
/// `rtp_transport_controller_send.cc`: `kRetransmitWindowSizeMs`).
const RETRANSMIT_WINDOW_BINS: usize = 5;

/// Purpose of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    Media,
    Resent,
    Parity,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    media: u64,
    resent: u64,
    parity: u64,
}

/// Index of a bin by its number, which is reduced before it becomes an index: 32 bits would cut it.
fn slot(number: i64) -> usize {
    number.rem_euclid(BINS as i64) as usize
}

/// Bytes of media and repair that were sent in the last second.
#[derive(Debug, Default)]
pub(crate) struct Share {
    bins: [Bin; BINS],
    /// Number of the current bin since time zero, and of the first one with a packet.
    current: i64,
    first: Option<i64>,
    /// The planned share of parity, for the first second.
    planned: f64,
}

impl Share {
    /// Shares before the first packet, with this parity, if any.
    pub(crate) fn new(fec: Option<Fec>) -> Self {
        let share = |fec: Fec| f64::from(fec.parity) / (f64::from(fec.packets) + f64::from(fec.parity));
        Self { planned: fec.map_or(0.0, share), ..Self::default() }
    }

    /// Lets time pass up to `now`; returns whether a new bin has begun.
    pub(crate) fn pass(&mut self, now: Time) -> bool {
        let bin = now.as_nanos() / BIN.as_nanos();
        let passed = bin - self.current;
        debug_assert!(passed >= 0, "time goes back by {} tenths of a second to {now}", -passed);
        for number in (self.current + 1..=bin).rev().take(BINS) {
            self.bins[slot(number)] = Bin::default();
        }
        self.current = bin;
        passed > 0
    }

    /// Counts a packet of `size` bytes, as rates count them.
    pub(crate) fn sent(&mut self, now: Time, usage: Use, size: Size) {
        self.pass(now);
        self.first.get_or_insert(self.current);
        let bin = &mut self.bins[slot(self.current)];
        match usage {
            Use::Media => bin.media += size.as_bytes(),
            Use::Resent => bin.resent += size.as_bytes(),
            Use::Parity => bin.parity += size.as_bytes(),
        }
    }

    /// The part of `target` for media, by libwebrtc's rule: repair is expected to take the share of all bytes that it
    /// has taken in the last second (`FecControllerDefault::UpdateFecRates`).
    pub(crate) fn media_rate(&self, target: Rate) -> Rate {
        let repair: u64 = self.bins.iter().map(|bin| bin.resent + bin.parity).sum();
        let all = repair + self.bins.iter().map(|bin| bin.media).sum::<u64>();
        let repair_share = if all == 0 { 0.0 } else { repair as f64 / all as f64 };
        // libwebrtc begins with no share; but then the queue of the first second would stay for good where a controller
        // paces at no more than its target
        let early = self.first.is_none_or(|first| self.current - first < BINS as i64);
        let share = if early { repair_share.max(self.planned) } else { repair_share }
            .min(PROTECTION_OVERHEAD_RATE_THRESHOLD);
        if share > 0.0 { target.scaled(1.0 - share) } else { target }
    }

    /// Whether `size` bytes may be retransmitted at the rate `target`, with `queued` bytes of retransmissions pending.
    pub(crate) fn allows(&self, target: Rate, queued: Size, size: Size) -> bool {
        let lately =
            (0..RETRANSMIT_WINDOW_BINS as i64).map(|ago| self.current - ago).filter(|&number| number >= 0);
        let resent: u64 = lately.map(|number| self.bins[slot(number)].resent).sum();
        let all = Size::from_bytes(resent) + queued + size;
        all <= target.bytes_in(BIN * RETRANSMIT_WINDOW_BINS as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repair_takes_the_share_that_it_took_in_the_last_second() {
        let mut share = Share::default();
        let kb = |n: u64| Size::from_bytes(1000 * n);
        let target = Rate::from_mbps(1);
        share.sent(Time::from_millis(50), Use::Media, kb(8));
        assert_eq!(share.media_rate(target), target);
        share.sent(Time::from_millis(150), Use::Resent, kb(1));
        share.sent(Time::from_millis(250), Use::Parity, kb(1));
        assert_eq!(share.media_rate(target), Rate::from_kbps(800));
        assert!(!share.pass(Time::from_millis(299)) && share.pass(Time::from_millis(1_049)));
        assert!((share.media_rate(target).as_bps_f64() - 5e5).abs() < 1.0, "never less than half");
        share.pass(Time::from_millis(1_150));
        share.pass(Time::from_millis(9_999));
        assert_eq!(share.media_rate(target), target);
    }

    #[test]
    fn parity_takes_its_share_from_the_beginning() {
        let mut share = Share::new(Some(Fec { packets: 4, parity: 1, by_frame: false }));
        let target = Rate::from_mbps(1);
        assert_eq!(share.media_rate(target), Rate::from_kbps(800));
        share.sent(Time::from_secs(5), Use::Media, Size::from_bytes(1000));
        share.pass(Time::from_millis(5_999));
        assert_eq!(share.media_rate(target), Rate::from_kbps(800));
        share.pass(Time::from_millis(6_000));
        assert_eq!(share.media_rate(target), target, "none was sent");
    }

    #[test]
    fn retransmissions_of_half_a_second_fill_no_more_than_the_target() {
        let mut share = Share::default();
        let target = Rate::from_kbps(800); // 50 kB in 500 ms
        let kb = |n: u64| Size::from_bytes(1000 * n);
        share.sent(Time::from_millis(1_000), Use::Resent, kb(30));
        share.sent(Time::from_millis(1_000), Use::Media, kb(900));
        assert!(share.allows(target, kb(10), kb(10)) && !share.allows(target, kb(10), kb(11)));
        share.pass(Time::from_millis(1_499));
        assert!(!share.allows(target, kb(10), kb(11)));
        share.pass(Time::from_millis(1_500));
        assert!(share.allows(target, kb(40), kb(10)));
    }
}
