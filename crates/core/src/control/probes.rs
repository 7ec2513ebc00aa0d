//! Probes: bursts that are sent faster than the media, to measure the capacity.

use crate::units::{Rate, Span};
use std::ops::Deref;

/// Burst of packets sent faster than the media: a padding packet, then packets of the pacer, with further padding if
/// needed. It begins with the next packet that enters the pacer and has at least 200 bytes, or the bytes that its rate
/// carries in [`Probe::spacing`] if these are fewer. So there is no probe without media, and a probe that has waited for
/// 5 s is replaced by the next. It ends after both [`Probe::length`] and [`Probe::min_packets`] (libwebrtc's
/// `modules/pacing/bitrate_prober.cc`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Probe {
    /// Identifier, repeated in [`PacketResult::probe`](super::PacketResult::probe) of its packets.
    pub id: u32,
    /// Rate, above zero.
    pub rate: Rate,
    /// Minimum duration: the probe has at least the bytes that its rate carries in this time.
    pub length: Span,
    /// Minimum number of packets; packets that leave at once count as one.
    pub min_packets: u32,
    /// Shortest time between two departures. The bytes that the rate carries in this time leave at once, so that the rate is
    /// kept with short packets, too (libwebrtc's `min_probe_delta`, `modules/pacing/bitrate_prober.cc`: 2 ms). Zero: packet
    /// by packet.
    pub spacing: Span,
}

/// Probes of a decision, in the order in which they are sent; at most [`Probes::MAX`].
#[derive(Clone, Copy, Eq, Debug, Default)]
pub struct Probes {
    count: u8,
    probes: [Probe; Self::MAX],
}

impl Probes {
    /// Largest number of probes: libwebrtc's `ProbeController` requests at most two at once, at the start of a call.
    pub const MAX: usize = 4;

    /// No probe.
    pub const NONE: Self = Self {
        count: 0,
        probes: [Probe { id: 0, rate: Rate::ZERO, length: Span::ZERO, min_packets: 0, spacing: Span::ZERO };
            Self::MAX],
    };
}

impl PartialEq for Probes {
    // compares only the used elements, because most decisions have none
    #[inline]
    fn eq(&self, rhs: &Self) -> bool {
        **self == **rhs
    }
}

impl Deref for Probes {
    type Target = [Probe];

    #[inline]
    fn deref(&self) -> &[Probe] {
        &self.probes[..usize::from(self.count)]
    }
}

impl From<Probe> for Probes {
    fn from(probe: Probe) -> Self {
        let mut probes = Self::NONE;
        (probes.count, probes.probes[0]) = (1, probe);
        probes
    }
}

/// Error for more probes than a decision can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyProbes(pub usize);

impl std::fmt::Display for TooManyProbes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "found {} probes; a decision has at most {}", self.0, Probes::MAX)
    }
}

impl std::error::Error for TooManyProbes {}

impl TryFrom<&[Probe]> for Probes {
    type Error = TooManyProbes;

    fn try_from(list: &[Probe]) -> Result<Self, TooManyProbes> {
        let mut probes = Self::NONE;
        probes.probes.get_mut(..list.len()).ok_or(TooManyProbes(list.len()))?.copy_from_slice(list);
        probes.count = list.len() as u8;
        debug_assert_eq!(&*probes, list);
        Ok(probes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_what_it_is_given_and_no_more_than_it_can() {
        let probe = |id| Probe { id, rate: Rate::from_mbps(1), ..Probe::default() };
        let all: Vec<Probe> = (0..=Probes::MAX as u32).map(probe).collect();
        for count in 0..=Probes::MAX {
            assert_eq!(Probes::try_from(&all[..count]).as_deref(), Ok(&all[..count]));
        }
        let error = Probes::try_from(&all[..]).expect_err("one too many");
        assert_eq!(error.to_string(), "found 5 probes; a decision has at most 4");
        assert_eq!(*Probes::from(all[3]), [all[3]]);
        assert_eq!(Probes::try_from(&all[..0]), Ok(Probes::NONE));
        assert_eq!(Probes::default(), Probes::NONE);
    }
}
