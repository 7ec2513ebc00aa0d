//! How much of the target rate repair takes, and how much it leaves for media.

use super::Fec;
use tidegate_core::{Rate, Size, Span, Time};

/// What was sent is counted over a second (libwebrtc's statistics of sent rates), in parts of a tenth.
const BINS: usize = 10;
const BIN: Span = Span::from_millis(100);
/// Repair takes at most half of the target (libwebrtc `fec_controller_default.cc`: `kProtectionOverheadRateThreshold`).
const MOST: f64 = 0.5;
/// Retransmissions of so long a time fill at most the target (libwebrtc `rtp_transport_controller_send.cc`:
/// `kRetransmitWindowSizeMs`).
const RESENT_BINS: usize = 5;

/// What a packet is for.
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

/// Where a bin is counted. The number is reduced before it becomes an index: 32 bits would cut it.
fn place(number: i64) -> usize {
    number.rem_euclid(BINS as i64) as usize
}

/// What was sent in the last second, media and repair.
#[derive(Debug, Default)]
pub(crate) struct Share {
    bins: [Bin; BINS],
    /// Number of the present bin since the beginning of time, and of the first in which anything was sent.
    present: i64,
    begun: Option<i64>,
    /// The share that parity is to take, for the first second.
    planned: f64,
}

impl Share {
    /// With this parity, if any.
    pub(crate) fn new(fec: Option<Fec>) -> Self {
        let share = |fec: Fec| f64::from(fec.parity) / (f64::from(fec.packets) + f64::from(fec.parity));
        Self { planned: fec.map_or(0.0, share), ..Self::default() }
    }

    /// Lets time pass up to `now`; says whether a new tenth of a second has begun.
    pub(crate) fn pass(&mut self, now: Time) -> bool {
        let bin = now.as_nanos() / BIN.as_nanos();
        let passed = bin - self.present;
        debug_assert!(passed >= 0, "time goes back by {} tenths of a second to {now}", -passed);
        for number in (self.present + 1..=bin).rev().take(BINS) {
            self.bins[place(number)] = Bin::default();
        }
        self.present = bin;
        passed > 0
    }

    /// Counts bytes that leave, as rates count them.
    pub(crate) fn sent(&mut self, now: Time, what: Use, size: Size) {
        self.pass(now);
        self.begun.get_or_insert(self.present);
        let bin = &mut self.bins[place(self.present)];
        match what {
            Use::Media => bin.media += size.as_bytes(),
            Use::Resent => bin.resent += size.as_bytes(),
            Use::Parity => bin.parity += size.as_bytes(),
        }
    }

    /// The part of `target` that is left for media: libwebrtc's rule, by which repair is expected to take the share
    /// of all bytes that it has taken in the last second (`FecControllerDefault::UpdateFecRates`).
    pub(crate) fn media(&self, target: Rate) -> Rate {
        let repair: u64 = self.bins.iter().map(|bin| bin.resent + bin.parity).sum();
        let all = repair + self.bins.iter().map(|bin| bin.media).sum::<u64>();
        let taken = if all == 0 { 0.0 } else { repair as f64 / all as f64 };
        // libwebrtc begins with nothing; but what waits then for its turn would wait for good where a controller paces
        // at no more than its target
        let early = self.begun.is_none_or(|begun| self.present - begun < BINS as i64);
        let share = if early { taken.max(self.planned) } else { taken }.min(MOST);
        if share > 0.0 { target.scaled(1.0 - share) } else { target }
    }

    /// Whether `size` more may be sent once more at the rate `target`; `queued` waits for it already.
    pub(crate) fn allows(&self, target: Rate, queued: Size, size: Size) -> bool {
        let lately = (0..RESENT_BINS as i64).map(|ago| self.present - ago).filter(|&number| number >= 0);
        let resent: u64 = lately.map(|number| self.bins[place(number)].resent).sum();
        let all = Size::from_bytes(resent) + queued + size;
        all <= target.bytes_in(BIN * RESENT_BINS as i64)
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
        assert_eq!(share.media(target), target);
        share.sent(Time::from_millis(150), Use::Resent, kb(1));
        share.sent(Time::from_millis(250), Use::Parity, kb(1));
        assert_eq!(share.media(target), Rate::from_kbps(800));
        assert!(!share.pass(Time::from_millis(299)) && share.pass(Time::from_millis(1_049)));
        assert!((share.media(target).as_bps_f64() - 5e5).abs() < 1.0, "never less than half");
        share.pass(Time::from_millis(1_150));
        share.pass(Time::from_millis(9_999));
        assert_eq!(share.media(target), target);
    }

    #[test]
    fn parity_takes_its_share_from_the_beginning() {
        let mut share = Share::new(Some(Fec { packets: 4, parity: 1, by_frame: false }));
        let target = Rate::from_mbps(1);
        assert_eq!(share.media(target), Rate::from_kbps(800));
        share.sent(Time::from_secs(5), Use::Media, Size::from_bytes(1000));
        share.pass(Time::from_millis(5_999));
        assert_eq!(share.media(target), Rate::from_kbps(800));
        share.pass(Time::from_millis(6_000));
        assert_eq!(share.media(target), target, "none was sent");
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
