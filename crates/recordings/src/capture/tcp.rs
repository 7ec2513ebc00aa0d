//! Puts TCP segments in order, and takes messages out of what they carry: RTSP's interleaved frames (RFC 7826
//! section 14), RTP with a length before each packet (RFC 4571), and messages to a TURN server (RFC 8656).

use super::layers::{Bytes, Carrier, Datagram, Sight, word};
use super::streams::Kind;
use super::turn;
use crate::point::Nanos;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A captured TCP segment.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    pub(super) sight: Sight,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) hops: u8,
    pub(super) sequence: u32,
    /// Whether it has the flag SYN, which takes a number.
    pub(super) begins: bool,
    /// Its length, of which the end may not be captured.
    pub(super) length: usize,
    pub(super) payload: Bytes<'a>,
}

/// The segments of a capture point, by connection and direction.
#[derive(Debug, Default)]
pub(super) struct Segments<'a> {
    flows: BTreeMap<(SocketAddr, SocketAddr), Vec<Segment<'a>>>,
    without_data: usize,
}

/// Bytes of a connection without a gap.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Offset of each segment, with its time, or that of a later one which came before it.
    segments: Vec<(usize, Nanos)>,
}

impl<'a> Segments<'a> {
    pub(super) fn add(&mut self, segment: Segment<'a>) {
        if segment.payload.is_empty() && !segment.begins {
            self.without_data += 1;
        } else {
            self.flows.entry((segment.from, segment.to)).or_default().push(segment);
        }
    }

    /// Adds the messages in all connections to `datagrams`, and the number of gaps in each of these to `gaps`; returns the
    /// number of segments in which there are none.
    pub(super) fn messages(
        self,
        datagrams: &mut Vec<Datagram<'a>>,
        gaps: &mut BTreeMap<(SocketAddr, SocketAddr), usize>,
    ) -> usize {
        let mut unused = self.without_data;
        for (ends, segments) in self.flows {
            let count = segments.len();
            let (mut read, mut all) = (0, 0);
            let mut of_flow = Vec::new();
            let chunks = chunks(segments);
            let missing = chunks.len().saturating_sub(1);
            for (first, chunk) in chunks {
                let message = |(from, to): (usize, usize), at| Datagram {
                    at,
                    from: first.from,
                    to: first.to,
                    // the headers of IP and TCP without options, and of the frame
                    size: (to - from + first.overhead).min(usize::from(u16::MAX)) as u32,
                    hops: first.hops,
                    interface: first.sight.interface,
                    leaves: first.sight.leaves,
                    carrier: Carrier::Tcp,
                    kind: Kind::Other,
                    payload: Cow::Owned(chunk.bytes[from..to].to_vec()),
                };
                all += chunk.bytes.len();
                for (range, at) in messages(&chunk, !of_flow.is_empty()) {
                    read += range.1 - range.0;
                    of_flow.push(message(range, at));
                }
            }
            // in other bytes there are messages by chance, most of them long
            if read * 2 > all && of_flow.len() * 20 > count {
                datagrams.append(&mut of_flow);
                gaps.insert(ends, missing);
            } else {
                unused += count;
            }
        }
        unused
    }
}

/// The facts about a connection that its messages take over.
#[derive(Clone, Copy)]
struct Ends {
    from: SocketAddr,
    to: SocketAddr,
    hops: u8,
    sight: Sight,
    overhead: usize,
}

/// The bytes of a connection in order, in pieces between which something is missing.
fn chunks(mut segments: Vec<Segment<'_>>) -> Vec<(Ends, Chunk)> {
    let first = &segments[0];
    let ends = Ends {
        from: first.from,
        to: first.to,
        hops: first.hops,
        sight: first.sight,
        overhead: if first.from.is_ipv4() { 42 } else { 62 },
    };
    // numbers on a line, since they wrap
    let mut near = i64::from(first.sequence);
    let mut places: Vec<(i64, usize)> = Vec::with_capacity(segments.len());
    for (index, segment) in segments.iter().enumerate() {
        let number = segment.sequence.wrapping_add(u32::from(segment.begins));
        near += i64::from(number.wrapping_sub(near as u32) as i32);
        places.push((near, index));
    }
    places.sort_unstable();
    let mut chunks: Vec<Chunk> = vec![Chunk::default()];
    let mut next = places[0].0;
    let mut latest = Nanos::MIN;
    for (place, index) in places {
        let segment = &mut segments[index];
        let payload = std::mem::take(&mut segment.payload);
        // what was sent again
        let known = usize::try_from(next - place).unwrap_or(0);
        if known >= payload.len() {
            continue;
        }
        if place > next {
            chunks.push(Chunk::default());
            latest = Nanos::MIN;
        }
        if let Some(chunk) = chunks.last_mut() {
            latest = latest.max(segment.sight.at);
            chunk.segments.push((chunk.bytes.len(), latest));
            chunk.bytes.extend_from_slice(&payload[known..]);
        }
        next = place + payload.len() as i64;
        if payload.len() < segment.length {
            // the end of the segment was not captured
            chunks.push(Chunk::default());
            latest = Nanos::MIN;
            next = place + segment.length as i64;
        }
    }
    chunks.retain(|chunk| !chunk.bytes.is_empty());
    chunks.into_iter().map(|chunk| (ends, chunk)).collect()
}

/// The messages in bytes without a gap, with the time at which the last byte of each was there. What is not understood is
/// skipped up to the next segment, since programs as a rule write whole messages; in a connection of which messages are
/// known, up to the next two that follow each other.
fn messages(chunk: &Chunk, are_known: bool) -> Vec<((usize, usize), Nanos)> {
    /// Longest part that is searched for a message: two large segments.
    const SEARCHED: usize = 4096;
    let bytes = &chunk.bytes[..];
    let mut messages = Vec::new();
    let mut segments = chunk.segments.iter().copied().peekable();
    let mut at = Nanos::MIN;
    let mut offset = 0;
    while offset < bytes.len() {
        match step(&bytes[offset..]) {
            Some((length, message)) => {
                if let Some((from, to)) = message {
                    while let Some((_, time)) = segments.next_if(|&(begin, _)| begin < offset + to) {
                        at = time;
                    }
                    messages.push(((offset + from, offset + to), at));
                }
                offset += length;
            }
            None => {
                if are_known || !messages.is_empty() {
                    let end = bytes.len().min(offset + SEARCHED);
                    // the part that was searched is not searched again
                    offset = (offset + 1..end).find(|&place| are_two(&bytes[place..])).unwrap_or(end);
                    continue;
                }
                let next = chunk.segments.partition_point(|&(begin, _)| begin <= offset);
                let Some(&(begin, _)) = chunk.segments.get(next) else { break };
                offset = begin;
            }
        }
    }
    messages
}

/// Whether two messages follow each other here.
fn are_two(bytes: &[u8]) -> bool {
    let is_message = |bytes| matches!(step(bytes), Some((_, Some(_))));
    match step(bytes) {
        Some((length, Some(_))) => bytes.get(length..).is_some_and(is_message),
        _ => false,
    }
}

/// Whether these may be the first bytes of RTP, RTCP, DTLS or STUN.
fn is_media(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && (matches!(bytes[0], 128..=191 | 20..=23) || turn::is_stun(bytes))
}

/// Length of what comes first, and the range of the message in it if that is one; `None` if it is not understood.
fn step(bytes: &[u8]) -> Option<(usize, Option<(usize, usize)>)> {
    const MAX_TEXT: usize = 16_384;
    let first = word(bytes, 0)?;
    if bytes[0] == b'$' {
        let length = usize::from(word(bytes, 2)?);
        if bytes.get(4..4 + length).is_some_and(is_media) {
            return Some((4 + length, Some((4, 4 + length))));
        }
    }
    if turn::is_stun(bytes) {
        let length = 20 + usize::from(word(bytes, 2)?);
        let message = bytes.get(..length)?;
        return Some((length, Some(turn::contents(message, length).unwrap_or((0, length)))));
    }
    if turn::is_channel(first) {
        // over TCP the data is padded to a multiple of four bytes (RFC 8656 section 12.5)
        let length = usize::from(word(bytes, 2)?);
        if bytes.get(4..4 + length).is_some_and(is_media) {
            return Some((4 + length.next_multiple_of(4), Some((4, 4 + length))));
        }
    }
    let length = usize::from(first);
    if bytes.get(2..2 + length).is_some_and(is_media) {
        return Some((2 + length, Some((2, 2 + length))));
    }
    const MAX_LINE: usize = 300;
    let line = &bytes[..bytes.len().min(MAX_LINE)];
    if bytes[0].is_ascii_uppercase() && line.windows(5).any(|window| window == b"RTSP/") {
        // a request or an answer of RTSP with its body, which is SDP
        let text = &bytes[..bytes.len().min(MAX_TEXT)];
        let end = 4 + text.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&text[..end]).ok()?;
        let body = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let length = end.checked_add(body.unwrap_or(0)).filter(|&length| length <= bytes.len())?;
        return Some((length, Some((0, length))));
    }
    None
}
