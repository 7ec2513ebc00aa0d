//! Interleaved parity over groups of packets (RFC 6015): making it, and restoring by it.
//!
//! A group of `packets` packets, in the order of sending, has `parity` packets of parity, the `j`-th of which is the
//! exclusive or of the packets `j`, `j + parity`, and so on. Each restores the one packet that is missing among
//! those that it protects. What a packet's header says is restored by the exclusive or of headers, as on a real wire;
//! payloads are sizes only.

use super::Fec;
use crate::packetizer::Queued;
use std::collections::VecDeque;
use tidegate_core::datagram::{Parity, Protected, RtpBody};

/// Packets whose headers a receiver keeps: more than any group has.
const KEPT: usize = 1024;
/// Packets of parity that wait for others to be restored.
const WAITING: usize = 64;

/// Parity that is made.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    parity: Parity,
    base: u16,
    longest: u16,
}

/// Makes parity.
#[derive(Debug)]
pub(crate) struct Encoder {
    fec: Fec,
    sums: Vec<Sum>,
    count: usize,
    /// What is made and has not left yet, in order of leaving.
    made: VecDeque<Parity>,
}

impl Encoder {
    pub(crate) fn new(fec: Fec) -> Self {
        Self { fec, sums: vec![Sum::default(); usize::from(fec.parity)], count: 0, made: VecDeque::new() }
    }

    /// Adds a packet that leaves with the number `sequence`, and is the `last` of its frame or not; says whether the
    /// group is complete.
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

    /// Ends the group: gives what is to be sent, as packets of `stream` like `last`, the last one of the group.
    pub(crate) fn close(&mut self, last: Queued, stream: u8) -> impl Iterator<Item = Queued> + '_ {
        let count = std::mem::take(&mut self.count).min(self.sums.len());
        let Self { sums, made, .. } = self;
        sums[..count].iter().map(move |sum| {
            made.push_back(sum.parity);
            let payload = Parity::HEADER.saturating_add(sum.longest);
            Queued { payload, original: sum.base, stream, flags: 0, marks: 0, ..last }
        })
    }

    /// The contents of the next packet of parity to leave.
    pub(crate) fn leaves(&mut self) -> Option<Parity> {
        self.made.pop_front()
    }
}

/// What parity restores of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) timestamp: u32,
    pub(crate) length: u16,
    pub(crate) payload_type: u8,
    pub(crate) protected: Protected,
}

impl Header {
    /// Of a packet with `length` bytes behind the fixed header, the first of which are `protected`.
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

/// Restores by parity.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// By sequence number modulo the length.
    kept: Vec<Option<(i64, Header)>>,
    /// Parity that misses more than one packet, and the first number that it protects.
    waiting: VecDeque<(i64, Parity)>,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { kept: vec![None; KEPT], waiting: VecDeque::new() }
    }

    fn slot(sequence: i64) -> usize {
        sequence.rem_euclid(KEPT as i64) as usize
    }

    /// Takes note of a packet that has arrived or was restored.
    pub(crate) fn have(&mut self, sequence: i64, header: Header) {
        self.kept[Self::slot(sequence)] = Some((sequence, header));
    }

    fn header(&self, sequence: i64) -> Option<Header> {
        self.kept[Self::slot(sequence)].filter(|kept| kept.0 == sequence).map(|kept| kept.1)
    }

    /// Takes parity over the packets from `base` on. What protects more than is kept is nobody's.
    pub(crate) fn parity(&mut self, base: i64, parity: Parity) {
        if usize::from(parity.offset) * usize::from(parity.count) >= KEPT || parity.offset == 0 {
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((base, parity));
    }

    /// A packet that can be restored, if there is one; to be called until there is none. What is older than the
    /// packets that are kept, with `newest` the highest number, is let go.
    pub(crate) fn restore(&mut self, newest: i64) -> Option<(i64, Header)> {
        let mut at = 0;
        while let Some(&(base, parity)) = self.waiting.get(at) {
            let protected = (0..i64::from(parity.count)).map(|k| base + k * i64::from(parity.offset));
            let (mut sum, mut missing, mut absent) = (parity, None, 0);
            for sequence in protected {
                match self.header(sequence) {
                    Some(header) => add(&mut sum, header),
                    None => (missing, absent) = (Some(sequence), absent + 1),
                }
            }
            if absent > 1 && newest - base < KEPT as i64 / 2 {
                at += 1;
                continue;
            }
            self.waiting.remove(at);
            if let (Some(sequence), 1) = (missing, absent) {
                let Parity { timestamp, length, payload_type, protected, .. } = sum;
                let header = Header { timestamp, length, payload_type, protected };
                self.have(sequence, header);
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

    /// Sends groups of `packets` with `parity`, loses those of which `lost` says so, and gives the numbers (from 0)
    /// of the packets that are missing then; what is restored equals what was sent.
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
                decoder.have(sequence, header);
            }
            if encoder.add(sequence as u16, header, false) {
                let made: Vec<Queued> = encoder.close(LAST, 3).collect();
                for queued in made {
                    let contents = encoder.leaves().expect("one each");
                    let base = tidegate_core::wire::wrap::nearest(u32::from(queued.original), 16, sequence);
                    if !lost(true) {
                        decoder.parity(base, contents);
                    }
                }
            }
            while let Some((restored, header)) = decoder.restore(sequence) {
                assert_eq!(header, sent[(restored - 65_000) as usize]);
                let place = missing.iter().rposition(|&one| one == restored).expect("it was missing");
                missing.remove(place);
            }
        }
        missing.into_iter().map(|sequence| sequence - 65_000).collect()
    }

    #[test]
    fn one_loss_of_a_group_is_restored_and_two_are_not() {
        for first in 0..5i64 {
            for second in first..5 {
                let mut k = -1;
                let left = residual(4, 1, 4, |_| {
                    k += 1;
                    k == first || k == second
                });
                let both: Vec<i64> = [first, second].into_iter().filter(|&k| k < 4).collect();
                assert_eq!(left, if first == second { Vec::new() } else { both }, "{first} {second}");
            }
        }
    }

    #[test]
    fn interleaved_parity_restores_as_many_in_a_row_as_it_has_packets() {
        for first in 0..=9 {
            let mut k = -1;
            let left = residual(12, 3, 12, |_| {
                k += 1;
                (first..first + 3).contains(&k)
            });
            assert_eq!(left, Vec::<i64>::new(), "three from {first} on");
        }
        // four in a row are two of one of the three
        let mut k = -1;
        let left = residual(12, 3, 12, |_| {
            k += 1;
            (2..6).contains(&k)
        });
        assert_eq!(left, [2, 5]);
    }

    #[test]
    fn residual_loss_is_as_in_the_closed_form() {
        // a packet stays lost if it is lost and any other of its parity's is, or that: p (1 - (1 - p)^n)
        for (packets, parity) in [(10, 1), (10, 2), (4, 1)] {
            let (p, count) = (0.05, 1_000_000);
            let mut luck = Stream::new(7, "loss", "test");
            let left = residual(packets, parity, count, |_| luck.uniform() < p).len() as f64;
            let n = i32::from(packets / parity);
            let expected = count as f64 * p * (1.0 - (0..n).fold(1.0, |all, _| all * (1.0 - p)));
            // losses of a group come together, up to n at a time: five standard deviations
            let spread = 5.0 * (expected * f64::from(n)).sqrt();
            assert!((left - expected).abs() < spread, "{packets}+{parity}: {left}, expected {expected}");
            assert!(spread < 0.15 * expected, "the test can tell");
        }
    }
}
