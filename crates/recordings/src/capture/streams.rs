//! Tells RTP from other datagrams: a stream is at least three packets of one SSRC between two addresses whose sequence
//! numbers and timestamps go on. The first two bits alone, which are 10 in RTP, are the same in one of four datagrams of
//! DNS, NetBIOS, IKE or a VPN. Between the same two ports as such a stream, two packets whose numbers go on are enough:
//! a stream of retransmissions repeats old timestamps.

use super::dumps::UNSPECIFIED;
use super::layers::Datagram;
use crate::kinds::{MAX_GAP, follows};
use crate::point::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use tidegate_core::wire::rtp::Header;

/// Kind of a datagram on a media port (RFC 7983 section 7, RFC 5761 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// RTP; by the first bytes alone it may be something else.
    Rtp,
    Rtcp,
    Other,
}

/// The kind by the first bytes.
pub(super) fn kind(payload: &[u8]) -> Kind {
    match payload {
        [128..=191, 192..=223, _, _, _, _, _, _, ..] => Kind::Rtcp,
        [128..=191, ..] if payload.len() >= 12 => Kind::Rtp,
        _ => Kind::Other,
    }
}

/// Addresses and SSRC of a stream.
type Key = (SocketAddr, SocketAddr, u32);

/// Key of the stream to which a datagram belongs if it is RTP.
fn key(datagram: &Datagram<'_>) -> Option<Key> {
    let ssrc = datagram.payload.get(8..12)?.first_chunk()?;
    Some((datagram.from, datagram.to, u32::from_be_bytes(*ssrc)))
}

/// The header of an RTP packet. The end of the packet may be missing or encrypted, so its padding is not read; extensions
/// that cannot be parsed (RFC 6904 encrypts them) are left out.
pub(super) fn header(payload: &[u8]) -> Option<Header> {
    // a header has at most 60 bytes of sources and, in practice, 255 words of extensions
    const MAX_HEADER: usize = 2048;
    const PADDING: u8 = 0x20;
    const EXTENSION: u8 = 0x10;
    const SOURCES: u8 = 0x0f;
    let mut bytes = payload[..payload.len().min(MAX_HEADER)].to_vec();
    for left_out in [PADDING, PADDING | EXTENSION, PADDING | EXTENSION | SOURCES] {
        *bytes.first_mut()? &= !left_out;
        if let Ok((header, _)) = Header::decode(&bytes) {
            return Some(header);
        }
    }
    None
}

/// The progress of the packets with one key.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Highest sequence number so far, with its timestamp and time.
    last: (u16, u32, Nanos),
    first: (u32, Nanos),
    /// Packets whose number and timestamp follow those of the last.
    forward: usize,
    /// Packets for which that is not so.
    astray: usize,
    /// Packets whose number follows that of the last, whatever their timestamp: some of `forward` and `astray`.
    numbered: usize,
    /// Whether all timestamps are the same.
    is_still: bool,
    /// Whether all packets have header extensions of RFC 8285.
    is_extended: bool,
    /// Duration of the last packet's event, while all packets are events of a telephone (RFC 4733 section 2.3).
    event: Option<u16>,
    /// A bit for each payload type.
    types: u128,
}

/// Fewest packets of a stream.
pub(crate) const MIN_PACKETS: usize = 3;

impl Progress {
    fn new(sequence: u16, timestamp: u32, at: Nanos, event: Option<u16>) -> Self {
        let first = (timestamp, at);
        let last = (sequence, timestamp, at);
        let (forward, astray, numbered) = (0, 0, 0);
        let (is_still, is_extended) = (true, true);
        Self { last, first, forward, astray, numbered, is_still, is_extended, event, types: 0 }
    }

    fn add(&mut self, sequence: u16, timestamp: u32, at: Nanos, event: Option<u16>) {
        const LONGEST: i16 = MAX_GAP as i16;
        let (last_sequence, last_timestamp, last_at) = self.last;
        self.is_still &= timestamp == self.first.0;
        self.event = self.event.zip(event).filter(|(before, now)| before <= now).map(|(_, now)| now);
        let ahead = sequence.wrapping_sub(last_sequence) as i16;
        let ticks = timestamp.wrapping_sub(last_timestamp) as i32;
        let elapsed = (at - last_at) as f64 / 1e9;
        match ahead {
            // the same again, or late
            0 if ticks == 0 => (),
            late if (-LONGEST..0).contains(&late) => (),
            _ => {
                let is_numbered = (1..=LONGEST).contains(&ahead);
                self.numbered += usize::from(is_numbered);
                let goes_on = is_numbered && follows(ticks, elapsed);
                self.forward += usize::from(goes_on);
                self.astray += usize::from(!goes_on);
                self.last = (sequence, timestamp, at);
            }
        }
    }

    fn is_stream(&self, ssrc: u32) -> bool {
        /// Longest time with one timestamp: a frame, or a key of a telephone (RFC 4733).
        const MAX_STILL: Nanos = 10_000_000_000;
        /// Numbers below it are counts or versions, and no random SSRC or timestamp (RFC 3550 sections 5.1 and 8.1).
        const LEAST_RANDOM: u32 = 0x1_0000;
        let is_random = ssrc >= LEAST_RANDOM && self.first.0 >= LEAST_RANDOM;
        let is_told = is_random || self.is_extended || self.event.is_some();
        let goes_on = !self.is_still || (is_told && self.last.2 - self.first.1 < MAX_STILL);
        self.forward + 1 >= MIN_PACKETS && self.forward >= self.astray && goes_on
    }

    /// Whether it is a stream, given that there are others between the same two ports.
    fn is_stream_beside(&self) -> bool {
        2 * self.numbered > self.forward + self.astray
    }
}

/// Whether a packet has header extensions in one of the two forms of RFC 8285 (sections 4.2 and 4.3).
fn has_extensions(datagram: &[u8]) -> bool {
    const EXTENSION: u8 = 0x10;
    let Some(first) = datagram.first().filter(|&first| first & EXTENSION != 0) else { return false };
    let behind_sources = 12 + 4 * usize::from(first & 0x0f);
    matches!(datagram.get(behind_sources..behind_sources + 2), Some([0xbe, 0xde] | [0x10, 0x00..=0x0f]))
}

/// The duration of an event in the payload of a packet without extensions; `None` if that has another size.
fn event_duration(datagram: &[u8]) -> Option<u16> {
    match datagram {
        // the keys of a telephone (RFC 4733 section 3.2)
        [0x80, _, _, _, _, _, _, _, _, _, _, _, 0..=15, _volume, high, low] => {
            Some(u16::from_be_bytes([*high, *low]))
        }
        _ => None,
    }
}

/// The payload types of each stream, a bit each.
pub(super) type Streams = BTreeMap<Key, u128>;

/// The kind of a datagram beside the streams of its capture. Packets with a marker and a payload type from 64 to 95 begin as
/// RTCP does (RFC 5761 section 4), but the stream has others of that type, and their SSRC.
fn kind_beside(datagram: &Datagram<'_>, streams: &Streams) -> Kind {
    let types = key(datagram).and_then(|key| streams.get(&key));
    let is_of_stream = || {
        types.zip(datagram.payload.get(1)).is_some_and(|(types, second)| types >> (second & 0x7f) & 1 == 1)
    };
    match kind(&datagram.payload) {
        Kind::Rtp if types.is_none() => Kind::Other,
        Kind::Rtcp if is_of_stream() => Kind::Rtp,
        kind => kind,
    }
}

/// Finds the streams in datagrams that are in the order of time, and gives each datagram its kind.
pub(super) fn classify(datagrams: &mut [Datagram<'_>], certain: Option<SocketAddr>) -> Streams {
    let streams = streams(datagrams, certain);
    for datagram in datagrams {
        datagram.kind = kind_beside(datagram, &streams);
    }
    streams
}

/// Finds the streams in datagrams that are in the order of time. Everything from or to `certain` that may be RTP counts
/// as RTP, and everything in a dump of RTP, which has no sender.
fn streams(datagrams: &[Datagram<'_>], certain: Option<SocketAddr>) -> Streams {
    let mut progress: BTreeMap<Key, Progress> = BTreeMap::new();
    for datagram in datagrams.iter().filter(|datagram| kind(&datagram.payload) == Kind::Rtp) {
        let (Some(key), Some(bytes)) = (key(datagram), datagram.payload.get(1..8)) else { continue };
        let sequence = u16::from_be_bytes([bytes[1], bytes[2]]);
        let timestamp = u32::from_be_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
        let event = event_duration(&datagram.payload);
        let progress = progress
            .entry(key)
            .and_modify(|progress| progress.add(sequence, timestamp, datagram.at, event))
            .or_insert_with(|| Progress::new(sequence, timestamp, datagram.at, event));
        progress.types |= 1 << (bytes[0] & 0x7f);
        progress.is_extended &= has_extensions(&datagram.payload);
    }
    let is_certain =
        |&(from, to, _): &Key| from == UNSPECIFIED || certain.is_some_and(|end| end == from || end == to);
    let sure = progress.iter().filter(|(key, progress)| is_certain(key) || progress.is_stream(key.2));
    let sure: BTreeSet<Key> = sure.map(|(&key, _)| key).collect();
    let ports: BTreeSet<(SocketAddr, SocketAddr)> =
        sure.iter().flat_map(|&(from, to, _)| [(from, to), (to, from)]).collect();
    let is_beside =
        |key: &Key, progress: &Progress| ports.contains(&(key.0, key.1)) && progress.is_stream_beside();
    let streams =
        progress.into_iter().filter(|(key, progress)| sure.contains(key) || is_beside(key, progress));
    streams.map(|(key, progress)| (key, progress.types)).collect()
}
