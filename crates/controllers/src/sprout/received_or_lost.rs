//! Number of bytes of a flow that are received or lost (`receiver.cc`, `RecvQueue`; the field `received_or_lost_count`).

use std::collections::VecDeque;
use tidegate_core::wire::wrap;

/// Bytes of a flow, numbered by the sender.
#[derive(Clone, Debug, Default)]
pub struct ReceivedOrLost {
    /// Newest number, from which the numbers on the wire are unwrapped.
    newest: i64,
    /// Number before which all bytes are received or lost.
    before: i64,
    /// First byte and length of the received packets from there on.
    arrived: VecDeque<(i64, u64)>,
}

/// Largest number of packets kept of the last [`super::settings::Settings::reordering`]; beyond it, older ones are given
/// up early.
const MAX_PACKETS: usize = 4096;

impl ReceivedOrLost {
    /// Takes a received packet; bytes more than `throwaway` before it that have not arrived are lost.
    pub fn packet(&mut self, sequence: u32, throwaway: u16, bytes: u64) {
        let sequence = wrap::nearest(sequence, 32, self.newest);
        self.newest = self.newest.max(sequence);
        self.before = self.before.max(sequence - i64::from(throwaway));
        self.arrived.push_back((sequence, bytes));
        if self.arrived.len() > MAX_PACKETS
            && let Some((oldest, _)) = self.arrived.pop_front()
        {
            self.before = self.before.max(oldest);
        }
        debug_assert!(self.before <= self.newest, "{} is lost, and {} the newest", self.before, self.newest);
        let before = self.before;
        while self.arrived.front().is_some_and(|&(sequence, _)| sequence < before) {
            self.arrived.pop_front();
        }
    }

    /// Bytes received or lost. As in the original, a packet counts its RTP bytes, while the numbers between two packets
    /// include the overhead.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        let arrived = self.arrived.iter().filter(|&&(sequence, _)| sequence >= self.before);
        self.before.saturating_add_unsigned(arrived.map(|&(_, bytes)| bytes).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_lost_when_the_sender_says_so() {
        let mut count = ReceivedOrLost::default();
        count.packet(0, 0, 1000);
        assert_eq!(count.bytes(), 1000);
        // the one at 1050 is missing, and may still come
        count.packet(2100, 2100, 1000);
        assert_eq!(count.bytes(), 2000);
        count.packet(3150, 1050, 1000);
        assert_eq!(count.bytes(), 2100 + 2000, "the first byte that may still come, and two packets");
        // it comes too late to count
        count.packet(1050, 1050, 1000);
        assert_eq!(count.bytes(), 4100);
        count.packet(4200, 0, 1000);
        assert_eq!(count.bytes(), 5200);
    }

    #[test]
    fn numbers_wrap() {
        let mut count = ReceivedOrLost::default();
        for k in 0..5_000_000_i64 / 1050 * 1000 {
            count.packet((k * 1050) as u32, 1050, 1000);
        }
        let last = (5_000_000_i64 / 1050 * 1000 - 1) * 1050;
        assert!(last > 1 << 32);
        assert_eq!(count.bytes(), last - 1050 + 2000);
    }

    #[test]
    fn a_stampede_is_bounded() {
        let mut count = ReceivedOrLost::default();
        (0..100_000).for_each(|k| count.packet(k, u16::MAX, 10));
        assert!(count.arrived.len() <= MAX_PACKETS);
    }
}
