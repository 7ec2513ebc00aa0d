//! Numbers the frames of packets without marks.

use std::collections::BTreeMap;

/// Numbers the frames of streams in which each packet is a frame, as in audio (RFC 7587 section 4.2), by RTP sequence
/// numbers.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// Sequence number of the first packet of each SSRC, and the highest one, unwrapped.
    streams: BTreeMap<u32, (u16, i64)>,
}

impl Numbering {
    /// The number of a frame, counted from the first one received; 0 for frames before it. The record has the true
    /// numbers.
    pub(super) fn frame(&mut self, ssrc: u32, sequence: u16) -> u32 {
        let (first, last) = self.streams.entry(ssrc).or_insert((sequence, sequence.into()));
        let ahead = i64::from(sequence.wrapping_sub(*last as u16) as i16);
        let number = *last + ahead;
        *last = number.max(*last);
        u32::try_from(number - i64::from(*first)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_across_the_ends_of_sequence_numbers_and_in_any_order() {
        let mut numbering = Numbering::default();
        let first = 65_530_u16;
        for number in 0..200_000_u32 {
            let sequence = first.wrapping_add(number as u16);
            assert_eq!(numbering.frame(7, sequence), number);
            // an earlier packet arrives late, or again
            let late = number.min(40);
            assert_eq!(numbering.frame(7, sequence.wrapping_sub(late as u16)), number - late);
        }
        assert_eq!(numbering.frame(7, first.wrapping_add(199_999_u32 as u16).wrapping_add(3)), 200_002);
        // another stream has its own count, and nothing is before its first
        assert_eq!((numbering.frame(8, 5), numbering.frame(8, 4), numbering.frame(8, 6)), (0, 0, 1));
    }
}
