//! Reads dumps of RTP as a receiver got it: those of rtptools, which libwebrtc and Wireshark write, too (rtpdump), and
//! those of Janus (.mjr). They have no IP addresses of both ends; sizes are RTP with [`UDP_HEADERS`].

use super::layers::{Carrier, Datagram};
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

fn datagram(at: Nanos, to: SocketAddr, length: usize, payload: &[u8], interface: u32) -> Datagram<'_> {
    Datagram {
        at,
        from: UNSPECIFIED,
        to,
        size: (length + UDP_HEADERS as usize).min(usize::from(u16::MAX)) as u32,
        hops: 0,
        interface,
        leaves: Some(false),
        carrier: Carrier::Udp,
        payload: Cow::Borrowed(payload),
    }
}

fn number(bytes: &[u8], offset: usize, length: usize) -> Option<usize> {
    let part = bytes.get(offset..offset.checked_add(length)?)?;
    Some(part.iter().fold(0, |value, &byte| value << 8 | usize::from(byte)))
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
    if bytes.starts_with(RTPDUMP) {
        rtpdump(bytes, interface, problems)
    } else if bytes.starts_with(MJR) {
        mjr(bytes, interface, formats, problems)
    } else {
        let message = "found a recording of an old Janus, which has no times of arrival; expected MJR00002";
        Err(Problem::new(0, message))
    }
}

fn rtpdump<'a>(
    bytes: &'a [u8],
    interface: u32,
    problems: &mut Problems,
) -> Result<Vec<Datagram<'a>>, Problem> {
    /// Longest first line.
    const MAX_LINE: usize = 128;
    /// Bytes of the header behind it: time, source, port, padding; and of that of a packet: length, length of the RTP
    /// packet (0 for RTCP), milliseconds.
    const HEADERS: [usize; 2] = [16, 8];
    let line = bytes.iter().take(MAX_LINE).position(|&byte| byte == b'\n').ok_or_else(|| {
        Problem::new(RTPDUMP.len(), "the first line does not end; expected an address and a port")
    })?;
    let address = std::str::from_utf8(&bytes[RTPDUMP.len()..line]).ok().and_then(|text| {
        let (address, port) = text.trim().rsplit_once('/')?;
        Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
    });
    // the unspecified address would be the sender's
    let to =
        address.filter(|&to| to != UNSPECIFIED).unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0));
    let header = line + 1;
    let (seconds, micros) = (number(bytes, header, 4), number(bytes, header + 4, 4));
    let (Some(seconds), Some(micros)) = (seconds, micros) else {
        return Err(Problem::new(header, "the file ends within its header"));
    };
    let begin = seconds as i64 * 1_000_000_000 + micros as i64 * 1000;
    let mut datagrams = Vec::new();
    let mut offset = header + HEADERS[0];
    while offset < bytes.len() {
        let fields = (number(bytes, offset, 2), number(bytes, offset + 2, 2), number(bytes, offset + 4, 4));
        let (Some(length), Some(whole), Some(millis)) = fields else {
            problems.add(Problem::new(offset, "the file ends within a packet's header"));
            break;
        };
        let Some(payload) =
            (length >= HEADERS[1]).then(|| bytes.get(offset + HEADERS[1]..offset + length)).flatten()
        else {
            let left = bytes.len() - offset;
            problems.add(Problem::new(offset, format!("a packet takes {length} bytes, but {left} are left")));
            break;
        };
        let at = begin + millis as i64 * MILLI;
        datagrams.push(datagram(at, to, whole.max(payload.len()), payload, interface));
        offset += length;
    }
    Ok(datagrams)
}

fn mjr<'a>(
    bytes: &'a [u8],
    interface: u32,
    formats: &mut Formats,
    problems: &mut Problems,
) -> Result<Vec<Datagram<'a>>, Problem> {
    /// The word before each packet; behind it stand milliseconds and a length.
    const FRAME: &[u8] = b"MEET";
    const HEADER: usize = 10;
    let wrong = |offset, message: &str| Problem::new(offset, message);
    let length =
        number(bytes, MJR.len(), 2).ok_or_else(|| wrong(MJR.len(), "the file ends within its header"))?;
    let begin = MJR.len() + 2;
    let about = bytes.get(begin..begin + length).and_then(|text| serde_json::from_slice(text).ok());
    let about: serde_json::Value =
        about.ok_or_else(|| wrong(begin, "found no JSON; expected the header of a recording of Janus"))?;
    let kind = about["t"].as_str().unwrap_or_default();
    if !matches!(kind, "a" | "v") {
        return Err(wrong(begin, "found a recording of data or text; expected audio or video"));
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
    let start = micros.unwrap_or(0) * 1000;
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let mut datagrams = Vec::new();
    let mut offset = begin + length;
    while offset < bytes.len() {
        let fields = (number(bytes, offset + 4, 4), number(bytes, offset + 8, 2));
        let (true, (Some(millis), Some(length))) = (bytes[offset..].starts_with(FRAME), fields) else {
            problems.add(wrong(offset, "found no packet; expected MEET, a time and a length"));
            break;
        };
        let Some(payload) = bytes.get(offset + HEADER..offset + HEADER + length) else {
            let left = bytes.len() - offset - HEADER;
            problems.add(Problem::new(offset, format!("a packet takes {length} bytes, but {left} are left")));
            break;
        };
        if let (Some(clock), Some(&second)) = (clock, payload.get(1)) {
            formats.add(0, second & 0x7f, Format { clock, is_audio: kind == "a" });
        }
        datagrams.push(datagram(start + millis as i64 * MILLI, to, payload.len(), payload, interface));
        offset += HEADER + length;
    }
    Ok(datagrams)
}
