//! Interleaved parity over groups of packets (RFC 6015): its making, and the restoring of packets by it.
//!
//! A group of `packets` packets, in the order of sending, has `parity` packets of parity, the `j`-th of which is the
//! exclusive or of the packets `j`, `j + parity`, and so on. Each restores the one packet that is missing among
//! those that it protects. A packet's header is restored by the exclusive or of headers, as on a real wire; payloads
//! are sizes only.

use super::Fec;
use crate::packetizer::Queued;
use std::collections::VecDeque;
use tidegate_core::datagram::{Parity, Protected, RtpBody};

/// Headers that a receiver keeps: more than any group has packets.
const HEADERS_MAX: usize = 1024;
/// Packets of parity that a receiver keeps while more than one of their packets is missing.
const PARITY_MAX: usize = 64;

/// A packet of parity in the making.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    parity: Parity,
    base: u16,
    longest: u16,
}

/// Maker of parity.
#[derive(Debug)]
pub(crate) struct Encoder {
    fec: Fec,
    sums: Vec<Sum>,
    count: usize,
    /// Contents of complete packets that have not left yet, in order of leaving.
    pending: VecDeque<Parity>,
}

impl Encoder {
    pub(crate) fn new(fec: Fec) -> Self {
        Self { fec, sums: vec![Sum::default(); usize::from(fec.parity)], count: 0, pending: VecDeque::new() }
    }

    /// Adds a packet that leaves with the number `sequence`; returns whether the group is complete. `last`: whether it
    /// is the last packet of its frame.
    pub(crate) fn add(&mut self, sequence: u16, header: Header, last: bool) -> bool {
        debug_assert!(
            self.count < usize::from(self.fec.packets),
            "{} packets, and no group closed",
            self.count
        );
        let index = self.count % self.sums.len();
        let sum = &mut self.sums[index];
        if self.count == index {
            *sum = Sum { base: sequence, ..Sum::default() };
            sum.parity.offset = self.fec.parity;
        }
        let parity = &mut sum.parity;
        parity.count += 1;
        add(parity, header);
        sum.longest = sum.longest.max(header.length);
        self.count += 1;
        self.count == usize::from(self.fec.packets) || self.fec.by_frame && last
    }

    /// Ends the group, and returns its parity as packets of `stream`. `last`: the last packet of the group, from which
    /// they take their timestamp and frame.
    pub(crate) fn close(&mut self, last: Queued, stream: u8) -> impl Iterator<Item = Queued> + '_ {
        let count = std::mem::take(&mut self.count).min(self.sums.len());
        let Self { sums, pending, .. } = self;
        sums[..count].iter().map(move |sum| {
            pending.push_back(sum.parity);
            let payload = Parity::HEADER.saturating_add(sum.longest);
            Queued { payload, original: sum.base, stream, flags: 0, marks: 0, ..last }
        })
    }

    /// Begins a group anew; packets of parity that wait to leave keep their contents.
    pub(crate) fn restart(&mut self) {
        self.count = 0;
    }

    /// The contents of the next packet of parity to leave.
    pub(crate) fn leaves(&mut self) -> Option<Parity> {
        self.pending.pop_front()
    }
}

/// The part of a packet that parity restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) timestamp: u32,
    pub(crate) length: u16,
    pub(crate) payload_type: u8,
    pub(crate) protected: Protected,
}

impl Header {
    /// The header of a packet with `length` bytes behind its fixed header; `protected`: the first of these bytes.
    pub(crate) fn of(body: &RtpBody, protected: Protected, length: u16) -> Self {
        let &RtpBody { timestamp, payload_type, .. } = body;
        Self { timestamp, length, payload_type, protected }
    }
}

fn add(parity: &mut Parity, header: Header) {
    parity.timestamp ^= header.timestamp;
    parity.length ^= header.length;
    parity.payload_type ^= header.payload_type;
    parity.protected.iter_mut().zip(header.protected).for_each(|(sum, byte)| *sum ^= byte);
}

/// Restorer of packets by parity.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Headers of received packets, by sequence number modulo the length.
    headers: Vec<Option<(i64, Header)>>,
    /// Parity of which more than one packet is missing, with the first number that it protects.
    waiting: VecDeque<(i64, Parity)>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { headers: vec![None; HEADERS_MAX], waiting: VecDeque::new() }
    }

    fn slot(sequence: i64) -> usize {
        sequence.rem_euclid(HEADERS_MAX as i64) as usize
    }

    /// Adds the header of a packet that has arrived or was restored.
    pub(crate) fn add(&mut self, sequence: i64, header: Header) {
        self.headers[Self::slot(sequence)] = Some((sequence, header));
    }

    fn header(&self, sequence: i64) -> Option<Header> {
        self.headers[Self::slot(sequence)].filter(|kept| kept.0 == sequence).map(|kept| kept.1)
    }

    /// Adds parity over the packets from `base` on. Parity over more packets than are kept is ignored.
    pub(crate) fn parity(&mut self, base: i64, parity: Parity) {
        if usize::from(parity.offset) * usize::from(parity.count) >= HEADERS_MAX || parity.offset == 0 {
            return;
        }
        if self.waiting.len() == PARITY_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((base, parity));
    }

    /// Restores a packet, if possible; to be called until it returns none. Drops parity that is older than the kept
    /// headers. `newest`: the highest sequence number.
    pub(crate) fn restore(&mut self, newest: i64) -> Option<(i64, Header)> {
        let mut index = 0;
        while let Some(&(base, parity)) = self.waiting.get(index) {
            let protected = (0..i64::from(parity.count)).map(|k| base + k * i64::from(parity.offset));
            let (mut sum, mut missing, mut absent) = (parity, None, 0);
            for sequence in protected {
                match self.header(sequence) {
                    Some(header) => add(&mut sum, header),
                    None => (missing, absent) = (Some(sequence), absent + 1),
                }
            }
            if absent > 1 && newest - base < HEADERS_MAX as i64 / 2 {
                index += 1;
                continue;
            }
            self.waiting.remove(index);
            if let (Some(sequence), 1) = (missing, absent) {
                let Parity { timestamp, length, payload_type, protected, .. } = sum;
                let header = Header { timestamp, length, payload_type, protected };
                self.add(sequence, header);
                return Some((sequence, header));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Time;
    use tidegate_core::rng::Stream;

    const LAST: Queued = Queued {
        since: Time::ZERO,
        timestamp: 0,
        frame: 0,
        payload: 0,
        original: 0,
        stream: 0,
        flags: 0,
        marks: 0,
    };

    fn random(rng: &mut Stream) -> Header {
        let bits = rng.next_u64();
        let mut protected = Protected::default();
        protected.fill_with(|| rng.next_u64() as u8);
        Header { timestamp: bits as u32, length: (bits >> 40) as u16, payload_type: 96, protected }
    }

    /// Sends groups of `packets` with `parity`, loses those for which `lost` is true, and returns the numbers (from 0)
    /// of the packets that remain missing. Asserts that restored packets equal those sent.
    fn residual(packets: u8, parity: u8, count: i64, mut lost: impl FnMut(bool) -> bool) -> Vec<i64> {
        let mut rng = Stream::new(1, "parity", "test");
        let mut encoder = Encoder::new(Fec { packets, parity, by_frame: false });
        let mut decoder = Decoder::new();
        let mut sent = Vec::new();
        let mut missing = Vec::new();
        for sequence in 65_000..65_000 + count {
            let header = random(&mut rng);
            sent.push(header);
            if lost(false) {
                missing.push(sequence);
            } else {
                decoder.add(sequence, header);
            }
            if encoder.add(sequence as u16, header, false) {
                let pending: Vec<Queued> = encoder.close(LAST, 3).collect();
                for queued in pending {
                    let contents = encoder.leaves().expect("one each");
                    let base = tidegate_core::wire::wrap::nearest(u32::from(queued.original), 16, sequence);
                    if !lost(true) {
                        decoder.parity(base, contents);
                    }
                }
            }
            while let Some((restored, header)) = decoder.restore(sequence) {
                assert_eq!(header, sent[(restored - 65_000) as usize]);
                let index = missing.iter().rposition(|&number| number == restored).expect("it was missing");
                missing.remove(index);
            }
        }
        missing.into_iter().map(|sequence| sequence - 65_000).collect()
    }

    #[test]
    fn one_loss_of_a_group_is_restored_and_two_are_not() {
        for first in 0..5i64 {
            for second in first..5 {
                let mut k = -1;
                let lost_numbers = residual(4, 1, 4, |_| {
                    k += 1;
                    k == first || k == second
                });
                let both: Vec<i64> = [first, second].into_iter().filter(|&k| k < 4).collect();
                assert_eq!(lost_numbers, if first == second { Vec::new() } else { both }, "{first} {second}");
            }
        }
    }

    #[test]
    fn interleaved_parity_restores_as_many_in_a_row_as_it_has_packets() {
        for first in 0..=9 {
            let mut k = -1;
            let lost_numbers = residual(12, 3, 12, |_| {
                k += 1;
                (first..first + 3).contains(&k)
            });
            assert_eq!(lost_numbers, Vec::<i64>::new(), "three from {first} on");
        }
        // four in a row are two of one of the three
        let mut k = -1;
        let lost_numbers = residual(12, 3, 12, |_| {
            k += 1;
            (2..6).contains(&k)
        });
        assert_eq!(lost_numbers, [2, 5]);
    }

    #[test]
    fn residual_loss_is_as_in_the_closed_form() {
        // a packet stays lost if it and its parity, or it and another packet of its parity, are lost: p (1 - (1 - p)^n)
        for (packets, parity) in [(10, 1), (10, 2), (4, 1)] {
            let (p, count) = (0.05, 1_000_000);
            let mut rng = Stream::new(7, "loss", "test");
            let remaining = residual(packets, parity, count, |_| rng.uniform() < p).len() as f64;
            let n = i32::from(packets / parity);
            let expected = count as f64 * p * (1.0 - (0..n).fold(1.0, |all, _| all * (1.0 - p)));
            // losses of a group come together, up to n at a time: five standard deviations
            let spread = 5.0 * (expected * f64::from(n)).sqrt();
            assert!(
                (remaining - expected).abs() < spread,
                "{packets}+{parity}: {remaining}, expected {expected}"
            );
            assert!(spread < 0.15 * expected, "the test is sensitive enough");
        }
    }
}
