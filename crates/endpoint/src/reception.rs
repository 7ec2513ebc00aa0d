//! Reception statistics of one source: RFC 3550 appendix A.

use tidegate_core::Time;
use tidegate_core::wire::rtcp::ReportBlock;
use tidegate_core::wire::{ntp, wrap};

/// Range of sequence numbers, up to the highest one, in which first copies and duplicates are told apart.
const WINDOW: usize = 4096;
const WORDS: usize = WINDOW / 64;

/// Statistics of one source.
#[derive(Debug)]
pub(crate) struct Reception {
    ssrc: u32,
    clock_rate: u32,
    /// Extended sequence number, whose lower 16 bits are on the wire. The first packet's is in 0..65536.
    base: i64,
    highest: i64,
    /// Packets received, duplicates and late ones included (appendix A.3).
    received: u64,
    expected_prior: i64,
    received_prior: u64,
    /// Last relative transit time in timestamp units, modulo 2^32.
    transit: u32,
    /// Sixteen times the jitter, in timestamp units (appendix A.8).
    jitter: u32,
    /// One bit for each of the last [`WINDOW`] sequence numbers.
    received_bits: Box<[u64; WORDS]>,
    /// The middle 32 bits of the last sender report's timestamp, and its arrival.
    last_sr: Option<(u32, Time)>,
    /// Whether a packet has arrived since the last report.
    heard: bool,
    /// The sequence number that follows on the last packet from far behind.
    stray_next: i64,
}

/// Position of a packet in its stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    /// RTP sequence number, unwrapped.
    pub(crate) sequence: i64,
    /// Whether this is the first copy of it.
    pub(crate) first: bool,
}

impl Reception {
    pub(crate) fn new(ssrc: u32, clock_rate: u32) -> Self {
        Self {
            ssrc,
            clock_rate,
            base: 0,
            highest: 0,
            received: 0,
            expected_prior: 0,
            received_prior: 0,
            transit: 0,
            jitter: 0,
            received_bits: Box::new([0; WORDS]),
            last_sr: None,
            heard: false,
            stray_next: -1,
        }
    }

    /// Counts a packet. There is no probation: in a session with signalling a source is valid from its first packet
    /// on.
    pub(crate) fn packet(&mut self, now: Time, sequence: u16, timestamp: u32) -> Placement {
        self.heard = true;
        let arrival = rtp_clock(now, self.clock_rate);
        let transit = arrival.wrapping_sub(timestamp);
        let sequence = if self.received == 0 {
            (self.base, self.highest) = (i64::from(sequence), i64::from(sequence));
            self.mark(self.highest);
            self.received = 1;
            self.transit = transit;
            return Placement { sequence: self.highest, first: true };
        } else {
            wrap::nearest(u32::from(sequence), 16, self.highest)
        };
        self.received += 1;
        // appendix A.8, with 4 bits of fraction: J += (|D| - J) / 16
        let difference = transit.wrapping_sub(self.transit) as i32;
        self.transit = transit;
        self.jitter =
            self.jitter.wrapping_add(difference.unsigned_abs()).wrapping_sub((self.jitter + 8) >> 4);
        let first = if sequence > self.highest {
            self.advance(sequence);
            true
        } else if self.highest - sequence >= WINDOW as i64 {
            // appendix A.1: two in a row from so far away are no latecomers; the jump ahead before them
            // was in error, or the sender has begun anew
            let again = sequence == self.stray_next;
            self.stray_next = sequence + 1;
            if again {
                self.received_bits.fill(0);
                self.highest = sequence;
                self.mark(sequence);
            }
            again
        } else {
            self.mark(sequence)
        };
        Placement { sequence, first }
    }

    /// Moves the window up to `sequence`.
    fn advance(&mut self, sequence: i64) {
        debug_assert!(sequence > self.highest, "{sequence} is no advance over {}", self.highest);
        if sequence - self.highest >= WINDOW as i64 {
            self.received_bits.fill(0);
        } else {
            for between in self.highest + 1..sequence {
                let (word, bit) = word_and_bit(between);
                self.received_bits[word] &= !bit;
            }
            let (word, bit) = word_and_bit(sequence);
            self.received_bits[word] &= !bit;
        }
        self.highest = sequence;
        self.mark(sequence);
    }

    /// Marks `sequence` as received; returns whether it had not been.
    fn mark(&mut self, sequence: i64) -> bool {
        let (word, bit) = word_and_bit(sequence);
        let fresh = self.received_bits[word] & bit == 0;
        self.received_bits[word] |= bit;
        fresh
    }

    /// Notes a sender report. `middle`: the middle 32 bits of its NTP timestamp.
    pub(crate) fn sender_report(&mut self, now: Time, middle: u32) {
        self.last_sr = Some((middle, now));
    }

    /// A block without statistics, for a source of which only sender reports have come: it lets the source compute the
    /// round-trip time. `None` if there was no sender report.
    pub(crate) fn echo(&self, now: Time) -> Option<ReportBlock> {
        let (middle, arrival) = self.last_sr?;
        let delay = ntp::short_span(now - arrival);
        Some(ReportBlock {
            ssrc: self.ssrc,
            last_sr: middle,
            delay_since_last_sr: delay,
            ..ReportBlock::default()
        })
    }

    /// The report block on the packets since the last one; `None` if there were none (RFC 3550 section 6.4: only
    /// sources heard from since then are reported on).
    pub(crate) fn block(&mut self, now: Time) -> Option<ReportBlock> {
        if !std::mem::take(&mut self.heard) {
            return None;
        }
        let expected = self.highest - self.base + 1;
        let lost = expected - i64::try_from(self.received).unwrap_or(i64::MAX);
        let expected_interval = expected - self.expected_prior;
        let received_interval = self.received - self.received_prior;
        (self.expected_prior, self.received_prior) = (expected, self.received);
        let lost_interval = expected_interval - i64::try_from(received_interval).unwrap_or(i64::MAX);
        let fraction_lost = if expected_interval <= 0 || lost_interval <= 0 {
            0
        } else {
            // if all is lost, this is 256/256: one more than the field holds
            ((lost_interval << 8) / expected_interval).min(255) as u8
        };
        let (last_sr, delay) = match self.last_sr {
            Some((middle, arrival)) => (middle, ntp::short_span(now - arrival)),
            None => (0, 0),
        };
        Some(ReportBlock {
            ssrc: self.ssrc,
            fraction_lost,
            cumulative_lost: lost.clamp(-0x80_0000, 0x7f_ffff) as i32,
            highest_sequence: self.highest as u32,
            jitter: self.jitter >> 4,
            last_sr,
            delay_since_last_sr: delay,
        })
    }
}

/// Word and bit of `sequence` in the window.
fn word_and_bit(sequence: i64) -> (usize, u64) {
    let slot = sequence.rem_euclid(WINDOW as i64) as usize;
    (slot / 64, 1 << (slot % 64))
}

/// `time` in units of an RTP clock, rounded down, modulo 2^32.
#[must_use]
pub fn rtp_clock(time: Time, clock_rate: u32) -> u32 {
    const SECOND: i64 = 1_000_000_000;
    let (seconds, nanos) = (time.as_nanos().div_euclid(SECOND), time.as_nanos().rem_euclid(SECOND));
    let rate = i64::from(clock_rate);
    seconds.wrapping_mul(rate).wrapping_add(nanos * rate / SECOND) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn fraction_and_cumulative_lost_are_what_was_lost() {
        let mut source = Reception::new(1, 90_000);
        // 100 packets across the wrap, every fourth lost
        for k in (0..100u16).filter(|k| k % 4 != 3) {
            assert!(source.packet(ms(i64::from(k)), k.wrapping_add(65_500), 90 * u32::from(k)).first);
        }
        let block = source.block(ms(100)).expect("packets came");
        // the 100th packet was lost and is not yet expected: 99 expected, 75 received
        assert_eq!(block.highest_sequence, 65_500 + 98);
        assert_eq!(block.cumulative_lost, 24);
        assert_eq!(block.fraction_lost, (24 * 256 / 99) as u8);
        assert_eq!(source.block(ms(101)), None, "nothing new");
        // the next interval is clean but for the loss of number 99
        for k in 100..=200u16 {
            source.packet(ms(i64::from(k)), k.wrapping_add(65_500), 90 * u32::from(k));
        }
        let block = source.block(ms(300)).expect("packets came");
        assert_eq!((block.cumulative_lost, block.fraction_lost), (25, (256 / 102) as u8));
    }

    #[test]
    fn duplicates_make_the_loss_negative_and_are_known() {
        let mut source = Reception::new(1, 90_000);
        assert_eq!(source.packet(ms(0), 10, 0), Placement { sequence: 10, first: true });
        assert_eq!(source.packet(ms(1), 10, 0), Placement { sequence: 10, first: false });
        assert_eq!(source.packet(ms(2), 12, 0), Placement { sequence: 12, first: true });
        assert_eq!(source.packet(ms(3), 11, 0), Placement { sequence: 11, first: true });
        assert_eq!(source.packet(ms(4), 11, 0), Placement { sequence: 11, first: false });
        assert_eq!(source.packet(ms(4), 9, 0), Placement { sequence: 9, first: true });
        assert_eq!(source.block(ms(5)).expect("packets came").cumulative_lost, -3);
        // a jump over the whole window forgets nothing wrongly
        assert_eq!(source.packet(ms(6), 12 + 5000, 0), Placement { sequence: 5012, first: true });
        assert_eq!(source.packet(ms(6), 12 + 4999, 0), Placement { sequence: 5011, first: true });
        assert_eq!(
            source.packet(ms(6), 12, 0),
            Placement { sequence: 12, first: false },
            "beyond the window"
        );
        // but two in a row from there show that the jump was in error
        assert_eq!(source.packet(ms(7), 13, 0), Placement { sequence: 13, first: true });
        assert_eq!(source.packet(ms(8), 14, 0), Placement { sequence: 14, first: true });
    }

    #[test]
    fn jitter_is_that_of_appendix_a8() {
        let mut source = Reception::new(1, 90_000);
        let mut jitter = 0.0f64;
        let delays = [0i64, 3, 1, 7, 2, 2, 9, 4, 0, 5];
        for k in 0..1000usize {
            let delay = delays[k % 10];
            source.packet(ms(20 * k as i64 + delay), k as u16, 1800 * k as u32);
            if k > 0 {
                let difference = (delay - delays[(k - 1) % 10]).abs() * 90;
                jitter += (difference as f64 - jitter) / 16.0;
            }
        }
        let block = source.block(ms(20_000)).expect("packets came");
        assert!((f64::from(block.jitter) - jitter).abs() < 2.0, "{} {jitter}", block.jitter);
    }

    #[test]
    fn a_sender_report_comes_back_with_its_delay() {
        let mut source = Reception::new(1, 90_000);
        source.packet(ms(0), 1, 0);
        source.sender_report(ms(100), 0xabcd_1234);
        let block = source.block(ms(600)).expect("packets came");
        assert_eq!((block.last_sr, block.delay_since_last_sr), (0xabcd_1234, 0x8000));
    }

    #[test]
    fn the_rtp_clock_is_exact() {
        assert_eq!(rtp_clock(Time::from_secs(3), 90_000), 270_000);
        assert_eq!(rtp_clock(Time::from_millis(20), 8_000), 160);
        // 2^32 / 90000 s = 47721.858844... s, where it wraps
        assert_eq!(rtp_clock(Time::from_millis(47_721_858), 90_000), u32::MAX - 75);
        assert_eq!(rtp_clock(Time::from_secs(47_722), 90_000), 12_704);
    }
}
