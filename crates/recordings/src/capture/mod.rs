//! Captures of calls: pcap and pcapng, of one place or of two.
//!
//! A call is what goes between the two addresses that exchange most RTP. With SRTP the headers of RTP are readable (RFC
//! 3711 section 3.1), of RTCP only the first eight bytes.

mod datagrams;
mod extensions;
mod file;

pub(crate) use file::is_capture;

use crate::point::{Passed, Point, Rtcp, Rtp};
use crate::problem::{Problem, Problems};
use datagrams::{LINKS, Udp, datagram};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tidegate_core::wire::rtcp;
use tidegate_core::wire::rtp::{self, Header};

/// The datagrams of one place, in the order of time.
#[derive(Default)]
pub struct Capture<'a> {
    datagrams: Vec<Udp<'a>>,
    /// Packets in all.
    pub packets: usize,
    /// What could not be read, file by file.
    pub problems: Vec<Problems>,
}

/// Two addresses, the lower one first: whom a conversation is between. Where both are one host's, ports count, too.
type Between = (SocketAddr, SocketAddr);

/// What a datagram on a port of media is (RFC 7983 section 7, RFC 5761 section 4).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rtp,
    Rtcp,
    Other,
}

fn kind(payload: &[u8]) -> Kind {
    match payload {
        [128..=191, 192..=223, _, _, _, _, _, _, ..] => Kind::Rtcp,
        [128..=191, ..] if payload.len() >= 12 => Kind::Rtp,
        _ => Kind::Other,
    }
}

/// What a datagram is that is left out, by its first byte (RFC 7983 section 7), and announcements of sessions by their port.
fn other(one: &Udp<'_>) -> Option<&'static str> {
    /// RFC 2974 section 3.
    const SAP: u16 = 9875;
    match (kind(one.payload), one.payload.first()) {
        (Kind::Rtcp, _) => None,
        (Kind::Rtp, _) => header(one).is_none().then_some("RTP whose header is cut or wrong"),
        (Kind::Other, _) if one.to.port() == SAP => Some("SAP"),
        (Kind::Other, Some(0..=3)) => Some("STUN"),
        (Kind::Other, Some(16..=19)) => Some("ZRTP"),
        (Kind::Other, Some(20..=63)) => Some("DTLS"),
        (Kind::Other, Some(64..=79)) => Some("TURN channels"),
        (Kind::Other, _) => Some("of another kind"),
    }
}

impl<'a> Capture<'a> {
    /// Reads the captures of one place, which belong together.
    ///
    /// # Errors
    /// The number of the file that is wrong, and what is wrong with it.
    pub fn read(files: &[&'a [u8]]) -> Result<Self, (usize, Problem)> {
        let mut capture = Self::default();
        for (number, bytes) in files.iter().enumerate() {
            let mut problems = Problems::default();
            let mut strange = None;
            let mut packets = 0;
            let found = &mut capture.datagrams;
            let mut take = |frame: file::Frame<'a>| {
                packets += 1;
                if !LINKS.contains(&frame.link) {
                    strange.get_or_insert(frame.link);
                }
                found.extend(datagram(&frame));
            };
            file::frames(bytes, &mut problems, &mut take).map_err(|problem| (number, problem))?;
            if let Some(link) = strange {
                let what = format!(
                    "found link type {link}; expected Ethernet (1), Linux cooked (113, 276), raw IP (101) or loopback (0)"
                );
                return Err((number, Problem::new(0, what)));
            }
            capture.packets += packets;
            capture.problems.push(problems);
        }
        capture.datagrams.sort_by_key(|one| one.at);
        Ok(capture)
    }

    fn between(one: &Udp<'_>) -> Between {
        let (mut a, mut b) = (one.from, one.to);
        if a.ip() != b.ip() {
            a.set_port(0);
            b.set_port(0);
        }
        (a.min(b), a.max(b))
    }

    /// Who exchanges most RTP, the one that sends more of it first; and how many packets of RTP others exchange.
    #[must_use]
    pub fn call(&self) -> Option<((SocketAddr, SocketAddr), usize)> {
        let mut all: BTreeMap<Between, [u64; 3]> = BTreeMap::new();
        for one in self.datagrams.iter().filter(|one| kind(one.payload) == Kind::Rtp) {
            let between = Self::between(one);
            let [packets, up, down] = all.entry(between).or_default();
            *packets += 1;
            *(if Self::is_from(one, between.0) { up } else { down }) += u64::from(one.size);
        }
        let total: u64 = all.values().map(|counts| counts[0]).sum();
        let ((a, b), [packets, up, down]) = all.into_iter().max_by_key(|(_, counts)| counts[0])?;
        let ends = if up >= down { (a, b) } else { (b, a) };
        Some((ends, (total - packets) as usize))
    }

    fn is_from(one: &Udp<'_>, end: SocketAddr) -> bool {
        one.from.ip() == end.ip() && (end.port() == 0 || one.from.port() == end.port())
    }

    /// Whether this place is at the end `near`, or at any rate nearer to it: what it sends has not passed a router yet.
    fn is_near(&self, near: SocketAddr, far: SocketAddr) -> bool {
        let fresh = |end: SocketAddr| {
            let first = self
                .datagrams
                .iter()
                .find(|one| Self::is_from(one, end) && Self::between(one) == (near.min(far), near.max(far)));
            first.is_some_and(|one| matches!(one.hops, 64 | 128 | 255))
        };
        fresh(near) || !fresh(far)
    }

    /// What this place saw of the call between two ends, of which it is taken to be the nearer one's.
    #[must_use]
    pub fn point(&self, near: SocketAddr, far: SocketAddr) -> Point {
        let between = (near.min(far), near.max(far));
        let ours = || self.datagrams.iter().filter(|one| Self::between(one) == between);
        let mut readable = [0usize; 2];
        let mut passed = |from: SocketAddr| {
            let mine = || ours().filter(|one| Self::is_from(one, from));
            let headers: Vec<(&Udp<'_>, Header)> = mine()
                .filter(|one| kind(one.payload) == Kind::Rtp)
                .filter_map(|one| Some((one, header(one)?)))
                .collect();
            let ids = extensions::find(headers.iter().map(|(one, header)| (one.at, header)));
            let rtp = headers.iter().map(|(one, header)| {
                let extension = |id: Option<u8>| id.and_then(|id| header.extension(id));
                Rtp {
                    at: one.at,
                    ssrc: header.ssrc,
                    timestamp: header.timestamp,
                    size: one.size,
                    abs_send_time: extension(ids.abs_send_time).and_then(rtp::read_abs_send_time),
                    sequence: header.sequence,
                    transport_sequence: extension(ids.transport_sequence)
                        .and_then(rtp::read_transport_sequence),
                    payload_type: header.payload_type,
                    marker: header.marker,
                    padding: false,
                }
            });
            let rtp = rtp.collect();
            let rtcp: Vec<Rtcp> = mine()
                .filter(|one| kind(one.payload) == Kind::Rtcp)
                .map(|one| Rtcp { at: one.at, size: one.size, bytes: one.payload.to_vec() })
                .collect();
            for one in &rtcp {
                readable[usize::from(rtcp::decode(&one.bytes).is_ok())] += 1;
            }
            Passed { rtp, rtcp }
        };
        let (sent, received) = (passed(near), passed(far));
        // an index and a tag stand behind each packet of SRTCP (RFC 3711 section 3.4), which no packet of RTCP begins with
        Point { sent, received, streams: Vec::new(), encrypted: readable[0] > readable[1], restored: false }
    }

    /// The ends of the call as this place stands to them: the nearer one first.
    #[must_use]
    pub fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let ((more, less), _) = self.call()?;
        Some(if self.is_near(more, less) { (more, less) } else { (less, more) })
    }

    /// What went between two ends that is neither RTP nor RTCP, as a sentence; `None` where there was nothing.
    #[must_use]
    pub fn others(&self, near: SocketAddr, far: SocketAddr) -> Option<String> {
        let between = (near.min(far), near.max(far));
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        for one in self.datagrams.iter().filter(|one| Self::between(one) == between) {
            if let Some(what) = other(one) {
                *counts.entry(what).or_default() += 1;
            }
        }
        let total: usize = counts.values().sum();
        let each: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let what = "datagrams between them are neither RTP nor RTCP, and are left out";
        (total > 0).then(|| format!("{total} {what}: {}", each.join(", ")))
    }

    /// Whether most of what this place saw of RTP, another one saw, too.
    #[must_use]
    pub fn saw_the_same(&self, other: &Self) -> bool {
        let seen = |capture: &Self| -> std::collections::BTreeSet<Vec<u8>> {
            let rtp = capture.datagrams.iter().filter(|one| kind(one.payload) == Kind::Rtp);
            rtp.map(|one| one.payload[..12].to_vec()).collect()
        };
        let (one, two) = (seen(self), seen(other));
        let common = one.intersection(&two).count();
        common > 0 && common * 2 >= one.len().min(two.len())
    }
}

/// The header of a packet of RTP, whose end may be missing or encrypted, so that its padding cannot be read.
fn header(one: &Udp<'_>) -> Option<Header> {
    // a header has at most 60 bytes of sources and as many as 255 words of extensions in practice
    const MOST: usize = 2048;
    let mut bytes = one.payload[..one.payload.len().min(MOST)].to_vec();
    bytes[0] &= !0x20;
    Header::decode(&bytes).ok().map(|(header, _)| header)
}
