//! Reads dumps of RTP as a receiver got it: those of rtptools, which libwebrtc and Wireshark write, too (rtpdump), and
//! those of Janus (.mjr). They have no IP addresses of both ends; sizes are RTP with [`UDP_HEADERS`].

use super::file::Reader;
use super::layers::{Carrier, Datagram};
use super::streams::Kind;
use crate::kinds::{Format, Formats};
use crate::point::{MILLI, Nanos};
use crate::problem::{Problem, Problems};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tidegate_core::wire::ip::UDP_HEADERS;

/// First bytes of a dump of rtptools (rtpdump.c).
const RTPDUMP: &[u8] = b"#!rtpplay1.0 ";
/// First bytes of a recording of Janus with times (src/record.c), and of the older kind without.
const MJR: &[u8] = b"MJR00002";
const MJR_OLD: &[u8] = b"MEETECHO";
const MJR_1: &[u8] = b"MJR00001";

/// Whether a file is such a dump, by its first bytes.
pub(super) fn is_dump(bytes: &[u8]) -> bool {
    [RTPDUMP, MJR, MJR_OLD, MJR_1].iter().any(|begin| bytes.starts_with(begin))
}

/// The sender of a dump's packets, which is not in the file.
pub(super) const UNSPECIFIED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The receiver of a dump that does not name it.
const LOCALHOST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The header of a dump.
struct Header {
    /// Address of the receiver.
    to: SocketAddr,
    /// Time to which those of packets are added.
    start: Nanos,
    /// Format of all packets, if it is known.
    format: Option<Format>,
    /// Bytes of the header.
    length: usize,
}

/// Reads a dump as far as it can be read.
///
/// # Errors
/// If it is of a kind without times, or has no RTP.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    interface: u32,
    formats: &mut Formats,
    problems: &mut Problems,
) -> Result<Vec<Datagram<'a>>, Problem> {
    let file = Reader { bytes, big_endian: true };
    let (header, next): (Header, NextPacket<'a>) = if bytes.starts_with(RTPDUMP) {
        (rtpdump(file)?, rtpdump_packet)
    } else if bytes.starts_with(MJR) {
        (mjr(file)?, mjr_packet)
    } else {
        let message = "found a recording of an old Janus, which has no times of arrival; expected MJR00002";
        return Err(Problem::new(0, message));
    };
    let mut datagrams = Vec::new();
    let mut offset = header.length;
    while offset < bytes.len() {
        match next(file, offset) {
            Ok(packet) => {
                if let (Some(format), Some(&second)) = (header.format, packet.payload.get(1)) {
                    formats.add(0, 0, second & 0x7f, format);
                }
                datagrams.push(datagram(&header, &packet, interface));
                offset = packet.end;
            }
            Err(problem) => {
                problems.add(problem);
                break;
            }
        }
    }
    Ok(datagrams)
}

/// A packet of a dump.
struct Packet<'a> {
    millis: u32,
    /// Bytes of the whole packet.
    length: usize,
    payload: &'a [u8],
    /// Offset of what follows.
    end: usize,
}

/// Reads the packet at an offset.
type NextPacket<'a> = fn(Reader<'a>, usize) -> Result<Packet<'a>, Problem>;

fn datagram<'a>(header: &Header, packet: &Packet<'a>, interface: u32) -> Datagram<'a> {
    Datagram {
        at: header.start + i64::from(packet.millis) * MILLI,
        from: UNSPECIFIED,
        to: header.to,
        size: (packet.length + UDP_HEADERS as usize).min(usize::from(u16::MAX)) as u32,
        hops: 0,
        interface,
        leaves: Some(false),
        carrier: Carrier::Udp,
        kind: Kind::Other,
        payload: Cow::Borrowed(packet.payload),
    }
}

fn rtpdump(file: Reader<'_>) -> Result<Header, Problem> {
    /// Longest first line.
    const MAX_LINE: usize = 128;
    /// Bytes of the header behind it: time, source, port, padding.
    const HEADER: usize = 16;
    let line = file.bytes.iter().take(MAX_LINE).position(|&byte| byte == b'\n').ok_or_else(|| {
        Problem::new(RTPDUMP.len(), "the first line does not end; expected an address and a port")
    })?;
    let address = std::str::from_utf8(&file.bytes[RTPDUMP.len()..line]).ok().and_then(|text| {
        let (address, port) = text.trim().rsplit_once('/')?;
        Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
    });
    // the unspecified address would be the sender's
    let to = address.filter(|&to| to != UNSPECIFIED).unwrap_or(LOCALHOST);
    let begin = line + 1;
    let seconds = i64::from(file.number(begin, 4, "the time of the dump")?);
    let micros = i64::from(file.number(begin + 4, 4, "the time of the dump")?);
    let start = seconds * 1_000_000_000 + micros * 1000;
    Ok(Header { to, start, format: None, length: begin + HEADER })
}

/// A packet behind its length, that of the whole RTP packet (0 for RTCP), and milliseconds.
fn rtpdump_packet<'a>(file: Reader<'a>, offset: usize) -> Result<Packet<'a>, Problem> {
    const HEADER: usize = 8;
    let field = |place, length| file.number(offset + place, length, "a packet's header");
    let (length, whole, millis) = (field(0, 2)? as usize, field(2, 2)? as usize, field(4, 4)?);
    if length < HEADER {
        return Err(Problem::new(
            offset,
            format!("found a packet of {length} bytes; expected at least {HEADER}"),
        ));
    }
    let payload = &file.part(offset, length, "a packet")?[HEADER..];
    Ok(Packet { millis, length: whole.max(payload.len()), payload, end: offset + length })
}

fn mjr(file: Reader<'_>) -> Result<Header, Problem> {
    let length = file.number(MJR.len(), 2, "the length of the header")? as usize;
    let begin = MJR.len() + 2;
    let about =
        file.part(begin, length, "the header").ok().and_then(|text| serde_json::from_slice(text).ok());
    let about: serde_json::Value = about
        .ok_or_else(|| Problem::new(begin, "found no JSON; expected the header of a recording of Janus"))?;
    let kind = about["t"].as_str().unwrap_or_default();
    if !matches!(kind, "a" | "v") {
        return Err(Problem::new(begin, "found a recording of data or text; expected audio or video"));
    }
    let clock = match (kind, about["c"].as_str().unwrap_or_default()) {
        ("v", _) => Some(90_000),
        (_, "opus" | "multiopus" | "l16-48") => Some(48_000),
        (_, "pcmu" | "pcma" | "g711" | "g722") => Some(8_000),
        (_, "l16") => Some(16_000),
        _ => None,
    };
    // real time of the first packet in microseconds; older files have that of their creation
    let micros = about["u"].as_i64().or(about["s"].as_i64()).filter(|&at| (0..1 << 52).contains(&at));
    Ok(Header {
        to: LOCALHOST,
        start: micros.unwrap_or(0) * 1000,
        format: clock.map(|clock| Format { clock, is_audio: kind == "a" }),
        length: begin + length,
    })
}

/// A packet behind the word MEET, milliseconds and its length.
fn mjr_packet<'a>(file: Reader<'a>, offset: usize) -> Result<Packet<'a>, Problem> {
    const FRAME: &[u8] = b"MEET";
    const HEADER: usize = 10;
    if !file.bytes[offset..].starts_with(FRAME) {
        return Err(Problem::new(offset, "found no packet; expected MEET, a time and a length"));
    }
    let millis = file.number(offset + 4, 4, "a packet's header")?;
    let length = file.number(offset + 8, 2, "a packet's header")? as usize;
    let payload = file.part(offset + HEADER, length, "a packet")?;
    Ok(Packet { millis, length, payload, end: offset + HEADER + length })
}
