//! Transport-wide congestion control feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1), as in
//! libwebrtc and pion.

use super::super::error::fit;
use super::super::reader::Reader;
use super::super::{Error, wrap};
use super::{put16, put32};
use crate::units::RemoteTime;

/// Length of a tick of deltas: 250 us, in nanoseconds.
const TICK: i64 = 250_000;
/// Number of ticks in a unit of the reference time, 64 ms.
const REFERENCE_TICKS: i64 = 256;
/// Number of bits of the reference time.
const REFERENCE_BITS: u32 = 24;
/// Largest number of statuses in a run-length chunk: 13 bits.
const RUN: usize = 0x1fff;
/// Number of statuses in a vector chunk with one bit each.
const ONE_BIT: usize = 14;
/// Number of statuses in a vector chunk with two bits each.
const TWO_BIT: usize = 7;
/// Largest number of missing packets between two received ones; a larger gap looks like a step backwards.
const GAP: u64 = 0x7fff;

/// Feedback on packets of all streams of a transport, which have common sequence numbers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Twcc {
    /// SSRC of the receiver.
    pub sender_ssrc: u32,
    /// SSRC of one of the streams.
    pub media_ssrc: u32,
    /// Transport-wide sequence number of the first reported packet.
    pub base_sequence: u16,
    /// Time by the receiver's clock to which the first delta is relative, in 64 ms, 24 bits (wraps after 12.4 days).
    pub reference_time: u32,
    /// Running number of feedback packets, modulo 256.
    pub feedback_count: u8,
    /// Results of the packets from `base_sequence` on, at most 65535.
    pub packets: Vec<Status>,
}

/// Result of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not received (yet).
    NotReceived,
    /// Received.
    Received {
        /// Time since the previous received packet, or since the reference time, in 250 us.
        delta: i16,
    },
    /// Received, without a time (the symbol that the draft reserves).
    ReceivedWithoutDelta,
}

impl Status {
    /// Two-bit symbol in a chunk.
    const fn symbol(self) -> u16 {
        match self {
            Self::NotReceived => 0,
            Self::Received { delta: 0..=0xff } => 1,
            Self::Received { .. } => 2,
            Self::ReceivedWithoutDelta => 3,
        }
    }
}

/// Arrival of a packet, from [`Twcc::arrivals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwccArrival {
    /// Not reported as received.
    NotReceived,
    /// Received this many times 250 us after the reference time.
    At(i64),
    /// Received, without a time.
    Untimed,
}

impl Twcc {
    /// Transport-wide sequence number and arrival of each reported packet, in order.
    pub fn arrivals(&self) -> impl Iterator<Item = (u16, TwccArrival)> + '_ {
        let mut ticks = 0i64;
        let mut sequence = self.base_sequence.wrapping_sub(1);
        self.packets.iter().map(move |status| {
            sequence = sequence.wrapping_add(1);
            let arrival = match *status {
                Status::NotReceived => TwccArrival::NotReceived,
                Status::Received { delta } => {
                    ticks += i64::from(delta);
                    TwccArrival::At(ticks)
                }
                Status::ReceivedWithoutDelta => TwccArrival::Untimed,
            };
            (sequence, arrival)
        })
    }

    /// Unwrapped reference time, in 64 ms: the candidate nearest to `near`, the unwrapped reference time of an earlier report
    /// (as in libwebrtc).
    #[must_use]
    pub const fn reference(&self, near: i64) -> i64 {
        wrap::nearest(self.reference_time, REFERENCE_BITS, near)
    }

    /// Time of the receiver's clock `ticks` of 250 us after `reference`, an unwrapped reference time in 64 ms.
    #[must_use]
    pub const fn instant(reference: i64, ticks: i64) -> RemoteTime {
        let ticks = reference.saturating_mul(REFERENCE_TICKS).saturating_add(ticks);
        RemoteTime::from_nanos(ticks.saturating_mul(TICK))
    }

    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let sender_ssrc = body.u32("TWCC sender SSRC")?;
        let media_ssrc = body.u32("TWCC media SSRC")?;
        let base_sequence = body.u16("TWCC base sequence number")?;
        let count = usize::from(body.u16("TWCC packet status count")?);
        let reference_time = body.u24("TWCC reference time")?;
        let feedback_count = body.u8("TWCC feedback packet count")?;

        // first skips the chunks to find the deltas after them, then reads both in parallel
        let mut chunks = *body;
        let mut covered = 0;
        while covered < count {
            covered += Chunk(body.u16("TWCC status chunk")?).len();
        }
        let mut packets = Vec::with_capacity(count);
        while packets.len() < count {
            let chunk = Chunk(chunks.u16("TWCC status chunk")?);
            // symbols of a chunk beyond the count are padding
            for index in 0..chunk.len().min(count - packets.len()) {
                packets.push(match chunk.symbol(index) {
                    0 => Status::NotReceived,
                    1 => Status::Received { delta: i16::from(body.u8("TWCC small delta")?) },
                    2 => Status::Received { delta: body.u16("TWCC large delta")? as i16 },
                    _ => Status::ReceivedWithoutDelta,
                });
            }
        }
        // remaining bytes are padding, with the P bit or without
        Ok(Self { sender_ssrc, media_ssrc, base_sequence, reference_time, feedback_count, packets })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let count = fit("TWCC packet status count", self.packets.len(), 0, usize::from(u16::MAX))?;
        let max = (1 << REFERENCE_BITS) - 1;
        fit("TWCC reference time", self.reference_time as usize, 0, max)?;
        put32(out, self.sender_ssrc);
        put32(out, self.media_ssrc);
        put16(out, self.base_sequence);
        put16(out, count as u16);
        put32(out, self.reference_time << 8 | u32::from(self.feedback_count));
        let mut remaining = &self.packets[..];
        while !remaining.is_empty() {
            let (chunk, covered) = Chunk::cover(remaining);
            put16(out, chunk.0);
            remaining = &remaining[covered..];
        }
        for status in &self.packets {
            if let Status::Received { delta } = *status {
                match u8::try_from(delta) {
                    Ok(small) => out.push(small),
                    Err(_) => put16(out, delta as u16),
                }
            }
        }
        Ok(())
    }
}

/// Packet status chunk: a run of one symbol, 14 symbols of one bit, or 7 symbols of two bits.
#[derive(Clone, Copy)]
struct Chunk(u16);

impl Chunk {
    const VECTOR: u16 = 0x8000;
    const TWO_BIT: u16 = 0x4000;

    const fn len(self) -> usize {
        match (self.0 & Self::VECTOR != 0, self.0 & Self::TWO_BIT != 0) {
            (false, _) => self.0 as usize & RUN,
            (true, false) => ONE_BIT,
            (true, true) => TWO_BIT,
        }
    }

    /// Symbol at `index`, which is below the length. A symbol of one bit means received with a small delta, or not received.
    /// libwebrtc and pion agree on this, while the draft's legend has it the other way round.
    const fn symbol(self, index: usize) -> u16 {
        match (self.0 & Self::VECTOR != 0, self.0 & Self::TWO_BIT != 0) {
            (false, _) => self.0 >> 13 & 0b11,
            (true, false) => self.0 >> (ONE_BIT - 1 - index) & 0b1,
            (true, true) => self.0 >> (2 * (TWO_BIT - 1 - index)) & 0b11,
        }
    }

    /// Chunk that covers the most statuses at the beginning of `statuses`, and their number. A vector with fewer statuses
    /// than fit is padded with zeros.
    fn cover(statuses: &[Status]) -> (Self, usize) {
        let first = statuses[0].symbol();
        let run = statuses.iter().take(RUN).take_while(|status| status.symbol() == first).count();
        let one_bit = statuses.len().min(ONE_BIT);
        let two_bit = statuses.len().min(TWO_BIT);
        let small = |status: &Status| status.symbol() <= 1;
        if run < one_bit && statuses[..one_bit].iter().all(small) {
            let pack = |bits, (i, status): (usize, &Status)| bits | status.symbol() << (ONE_BIT - 1 - i);
            (Self(statuses[..one_bit].iter().enumerate().fold(Self::VECTOR, pack)), one_bit)
        } else if run < two_bit {
            let pack =
                |bits, (i, status): (usize, &Status)| bits | status.symbol() << (2 * (TWO_BIT - 1 - i));
            let empty = Self::VECTOR | Self::TWO_BIT;
            (Self(statuses[..two_bit].iter().enumerate().fold(empty, pack)), two_bit)
        } else {
            (Self(first << 13 | run as u16), run)
        }
    }
}

/// Builder of feedback from arrivals. Each receiver needs its own, which counts the feedback packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TwccBuilder {
    /// SSRC of the receiver.
    pub sender_ssrc: u32,
    /// SSRC of one of the streams.
    pub media_ssrc: u32,
    /// Number of the next feedback packet.
    pub feedback_count: u8,
}

impl TwccBuilder {
    /// Creates a builder of feedback from `sender_ssrc` on `media_ssrc` and the other streams of the transport.
    #[must_use]
    pub const fn new(sender_ssrc: u32, media_ssrc: u32) -> Self {
        Self { sender_ssrc, media_ssrc, feedback_count: 0 }
    }

    /// Reports on all packets from `begin` to the last of `arrivals`, which is in ascending order of unwrapped transport-wide
    /// sequence numbers. A number that is not above the previous one (a duplicate) is skipped. Packets in between count as
    /// not received. If the first arrival is below `begin` (a late packet), the report begins there.
    ///
    /// Arrival times are rounded to the nearest 250 us (half a tick away from zero, as in libwebrtc), each relative to the
    /// rounded time of the previous packet, so that no error accumulates. A new feedback packet begins with a delta that
    /// does not fit 16 bits, and with the 65536th packet. A gap of 32768 or more looks like a step backwards and is not
    /// reported: the feedback continues after it.
    #[must_use]
    pub fn build(&mut self, begin: u64, arrivals: &[(u64, RemoteTime)]) -> Vec<Twcc> {
        let mut reports: Vec<Twcc> = Vec::new();
        let mut next = arrivals.first().map_or(begin, |&(first, _)| begin.min(first));
        // rounded time of the last received packet, in ticks since the clock's origin
        let mut last = 0;
        for &(sequence, arrival) in arrivals {
            if sequence < next {
                continue;
            }
            let missing = sequence - next;
            let delta = i16::try_from(ticks_between(last, arrival)).ok();
            let open = reports
                .last_mut()
                .filter(|open| missing <= GAP && open.packets.len() as u64 + missing < u64::from(u16::MAX));
            let (open, delta) = match (open, delta) {
                (Some(open), Some(delta)) => (open, delta),
                _ => {
                    let reference = arrival.as_nanos().div_euclid(REFERENCE_TICKS * TICK);
                    last = reference * REFERENCE_TICKS;
                    if missing > GAP {
                        next = sequence;
                    }
                    reports.push(Twcc {
                        sender_ssrc: self.sender_ssrc,
                        media_ssrc: self.media_ssrc,
                        base_sequence: next as u16,
                        reference_time: (reference & ((1 << REFERENCE_BITS) - 1)) as u32,
                        feedback_count: self.feedback_count,
                        packets: Vec::new(),
                    });
                    self.feedback_count = self.feedback_count.wrapping_add(1);
                    let open = reports.len() - 1;
                    // at most the 256 ticks of a unit of the reference time
                    (&mut reports[open], ticks_between(last, arrival) as i16)
                }
            };
            open.packets.resize(open.packets.len() + (sequence - next) as usize, Status::NotReceived);
            open.packets.push(Status::Received { delta });
            last += i64::from(delta);
            next = sequence + 1;
        }
        reports
    }
}

/// Ticks from `from`, which is in ticks, to `to`: rounded to the nearest tick, half a tick away from zero.
const fn ticks_between(from: i64, to: RemoteTime) -> i64 {
    let nanos = to.as_nanos().saturating_sub(from.saturating_mul(TICK));
    let half = if nanos < 0 { -TICK / 2 } else { TICK / 2 };
    nanos.saturating_add(half) / TICK
}
