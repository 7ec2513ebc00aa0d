//! Receiver estimated maximum bitrate (draft-alvestrand-rmcat-remb-03).

use super::super::Error;
use super::super::error::fit;
use super::super::reader::Reader;
use super::put32;
use crate::units::Rate;

const NAME: &[u8] = b"REMB";

/// Receiver's estimate of the rate that it can receive (draft-alvestrand-rmcat-remb-03 section 2.2).
///
/// The media SSRC is zero: encoded so, and ignored in decoding.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Remb {
    /// SSRC of the receiver.
    pub sender_ssrc: u32,
    /// Total rate of all `ssrcs`. The wire has a mantissa of 18 bits; lower bits are dropped, see [`Remb::carried`].
    pub bitrate: Rate,
    /// Streams to which it applies, at most 255.
    pub ssrcs: Vec<u32>,
}

impl Remb {
    /// Rate on the wire: the 18 most significant bits, never more than `rate`.
    #[must_use]
    pub const fn carried(rate: Rate) -> Rate {
        let (exponent, mantissa) = split(rate.as_bps());
        Rate::from_bps((mantissa as u64) << exponent)
    }

    /// Whether the application layer feedback in `body` is a REMB.
    pub(super) fn is_remb(body: &Reader<'_>) -> bool {
        body.remaining().get(8..12) == Some(NAME)
    }

    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let sender_ssrc = body.u32("REMB sender SSRC")?;
        body.u32("REMB media SSRC")?;
        body.take(NAME.len(), "REMB identifier")?;
        let count = body.u8("REMB number of SSRCs")?;
        let offset = body.offset();
        let word = body.u24("REMB bitrate")?;
        let (exponent, mantissa) = (word >> 18, u64::from(word & 0x3_ffff));
        // with an exponent of up to 63 the rate may exceed 64 bits
        let bitrate = mantissa << exponent;
        if bitrate >> exponent != mantissa {
            return Err(Error::Invalid { field: "REMB bitrate", offset, value: u64::from(word) });
        }
        let ssrcs = (0..count).map(|_| body.u32("REMB SSRC")).collect::<Result<_, _>>()?;
        body.end("number of bytes after the last REMB SSRC")?;
        Ok(Self { sender_ssrc, bitrate: Rate::from_bps(bitrate), ssrcs })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let count = fit("number of REMB SSRCs", self.ssrcs.len(), 0, 255)? as u32;
        let (exponent, mantissa) = split(self.bitrate.as_bps());
        put32(out, self.sender_ssrc);
        put32(out, 0);
        out.extend_from_slice(NAME);
        put32(out, count << 24 | exponent << 18 | mantissa);
        for &ssrc in &self.ssrcs {
            put32(out, ssrc);
        }
        Ok(())
    }
}

/// Smallest exponent, and the mantissa of 18 bits for it, rounded down.
const fn split(bps: u64) -> (u32, u32) {
    let exponent = (u64::BITS - bps.leading_zeros()).saturating_sub(18);
    (exponent, (bps >> exponent) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighteen_bits_are_kept_and_the_rest_is_cut_off() {
        let carried = |bps| Remb::carried(Rate::from_bps(bps)).as_bps();
        for exact in [0, 1, 0x3_ffff, 0x4_0000, 0x3_ffff << 20, 0x3_ffff << 46] {
            assert_eq!(carried(exact), exact);
        }
        assert_eq!(carried(0x4_0001), 0x4_0000);
        assert_eq!(carried(0x7_ffff), 0x7_fffe);
        assert_eq!(carried(u64::MAX), 0x3_ffff << 46);
        // beyond 32 bits
        assert_eq!(carried(10_000_000_000), 9_999_941_632);
        assert_eq!(split(10_000_000_000), (16, 152_587));
    }
}
