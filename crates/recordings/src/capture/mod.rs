//! Finds the call in captures (pcap and pcapng) of one capture point.
//!
//! The call consists of the datagrams between the two addresses that exchange most RTP. With SRTP the headers of RTP
//! are readable (RFC 3711 section 3.1), but only the first eight bytes of RTCP.

mod datagrams;
mod extensions;
mod file;

pub(crate) use file::is_capture;

use crate::point::{Point, Rtcp, Rtp, Traffic};
use crate::problem::{Problem, Problems};
use datagrams::{LINKS, Udp, datagram};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tidegate_core::wire::rtcp;
use tidegate_core::wire::rtp::{self, Header};

/// The UDP datagrams of one capture point, in the order of time.
#[derive(Default)]
pub struct Capture<'a> {
    datagrams: Vec<Udp<'a>>,
    /// Number of packets of all kinds.
    pub packets: usize,
    /// Parts that could not be read, file by file.
    pub problems: Vec<Problems>,
}

/// The two addresses of a conversation, the lower one first. The ports are 0 unless both addresses are of one host.
type AddressPair = (SocketAddr, SocketAddr);

/// Kind of a datagram on a media port (RFC 7983 section 7, RFC 5761 section 4).
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

/// Names the protocol of a datagram that is not imported, by its first byte (RFC 7983 section 7), or for SAP by its
/// port.
/// `None` for RTP and RTCP.
fn ignored_protocol(datagram: &Udp<'_>) -> Option<&'static str> {
    /// RFC 2974 section 3.
    const SAP: u16 = 9875;
    match (kind(datagram.payload), datagram.payload.first()) {
        (Kind::Rtcp, _) => None,
        (Kind::Rtp, _) => header(datagram).is_none().then_some("RTP with an incomplete or invalid header"),
        (Kind::Other, _) if datagram.to.port() == SAP => Some("SAP"),
        (Kind::Other, Some(0..=3)) => Some("STUN"),
        (Kind::Other, Some(16..=19)) => Some("ZRTP"),
        (Kind::Other, Some(20..=63)) => Some("DTLS"),
        (Kind::Other, Some(64..=79)) => Some("TURN channels"),
        (Kind::Other, _) => Some("of another kind"),
    }
}

impl<'a> Capture<'a> {
    /// Reads the capture files of one capture point.
    ///
    /// # Errors
    /// The index of the file that cannot be read, and its problem.
    pub fn read(files: &[&'a [u8]]) -> Result<Self, (usize, Problem)> {
        let mut capture = Self::default();
        for (number, bytes) in files.iter().enumerate() {
            let mut problems = Problems::default();
            let mut unsupported = None;
            let mut packets = 0;
            let datagrams = &mut capture.datagrams;
            let mut take = |frame: file::Frame<'a>| {
                packets += 1;
                if !LINKS.contains(&frame.link) {
                    unsupported.get_or_insert(frame.link);
                }
                datagrams.extend(datagram(&frame));
            };
            file::frames(bytes, &mut problems, &mut take).map_err(|problem| (number, problem))?;
            if let Some(link) = unsupported {
                let message = format!(
                    "found link type {link}; expected Ethernet (1), Linux cooked (113, 276), raw IP (101) or loopback (0)"
                );
                return Err((number, Problem::new(0, message)));
            }
            capture.packets += packets;
            capture.problems.push(problems);
        }
        capture.datagrams.sort_by_key(|datagram| datagram.at);
        Ok(capture)
    }

    fn addresses(datagram: &Udp<'_>) -> AddressPair {
        let (mut a, mut b) = (datagram.from, datagram.to);
        if a.ip() != b.ip() {
            a.set_port(0);
            b.set_port(0);
        }
        (a.min(b), a.max(b))
    }

    /// The two ends that exchange most RTP, with the one that sends more bytes first; and the number of RTP packets
    /// between all other addresses.
    #[must_use]
    pub fn call(&self) -> Option<((SocketAddr, SocketAddr), usize)> {
        let mut conversations: BTreeMap<AddressPair, [u64; 3]> = BTreeMap::new();
        for datagram in self.datagrams.iter().filter(|datagram| kind(datagram.payload) == Kind::Rtp) {
            let addresses = Self::addresses(datagram);
            let [packets, up, down] = conversations.entry(addresses).or_default();
            *packets += 1;
            *(if Self::is_from(datagram, addresses.0) { up } else { down }) += u64::from(datagram.size);
        }
        let total: u64 = conversations.values().map(|counts| counts[0]).sum();
        let ((a, b), [packets, up, down]) = conversations.into_iter().max_by_key(|(_, counts)| counts[0])?;
        let ends = if up >= down { (a, b) } else { (b, a) };
        Some((ends, (total - packets) as usize))
    }

    fn is_from(datagram: &Udp<'_>, end: SocketAddr) -> bool {
        datagram.from.ip() == end.ip() && (end.port() == 0 || datagram.from.port() == end.port())
    }

    /// Whether this capture point is at `near`, or at least nearer to it than to `far`: packets from `near` have an
    /// initial hop limit, so that they have not passed a router yet.
    fn is_near(&self, near: SocketAddr, far: SocketAddr) -> bool {
        let fresh = |end: SocketAddr| {
            let first = self.datagrams.iter().find(|datagram| {
                Self::is_from(datagram, end) && Self::addresses(datagram) == (near.min(far), near.max(far))
            });
            first.is_some_and(|datagram| matches!(datagram.hops, 64 | 128 | 255))
        };
        fresh(near) || !fresh(far)
    }

    /// The packets of the call between two ends, from the point of view of `near`.
    #[must_use]
    pub fn point(&self, near: SocketAddr, far: SocketAddr) -> Point {
        let addresses = (near.min(far), near.max(far));
        let of_call = || self.datagrams.iter().filter(|datagram| Self::addresses(datagram) == addresses);
        // counts of unreadable and of readable RTCP datagrams
        let mut readable = [0usize; 2];
        let mut traffic = |from: SocketAddr| {
            let datagrams = || of_call().filter(|datagram| Self::is_from(datagram, from));
            let headers: Vec<(&Udp<'_>, Header)> = datagrams()
                .filter(|datagram| kind(datagram.payload) == Kind::Rtp)
                .filter_map(|datagram| Some((datagram, header(datagram)?)))
                .collect();
            let ids = extensions::find(headers.iter().map(|(datagram, header)| (datagram.at, header)));
            let rtp = headers.iter().map(|(datagram, header)| {
                let extension = |id: Option<u8>| id.and_then(|id| header.extension(id));
                Rtp {
                    at: datagram.at,
                    ssrc: header.ssrc,
                    timestamp: header.timestamp,
                    size: datagram.size,
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
            let rtcp: Vec<Rtcp> = datagrams()
                .filter(|datagram| kind(datagram.payload) == Kind::Rtcp)
                .map(|datagram| Rtcp {
                    at: datagram.at,
                    size: datagram.size,
                    bytes: datagram.payload.to_vec(),
                })
                .collect();
            for datagram in &rtcp {
                readable[usize::from(rtcp::decode(&datagram.bytes).is_ok())] += 1;
            }
            Traffic { rtp, rtcp }
        };
        let (sent, received) = (traffic(near), traffic(far));
        // SRTCP does not decode as RTCP: an index and a tag follow the packet (RFC 3711 section 3.4), and they do not
        // look like the beginning of another one
        Point { sent, received, streams: Vec::new(), encrypted: readable[0] > readable[1], restored: false }
    }

    /// The ends of the call, with the one nearer to this capture point first.
    #[must_use]
    pub fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let ((larger_sender, smaller_sender), _) = self.call()?;
        Some(if self.is_near(larger_sender, smaller_sender) {
            (larger_sender, smaller_sender)
        } else {
            (smaller_sender, larger_sender)
        })
    }

    /// A remark on the datagrams between two ends that are neither RTP nor RTCP; `None` if there are none.
    #[must_use]
    pub fn remark_on_ignored(&self, near: SocketAddr, far: SocketAddr) -> Option<String> {
        let addresses = (near.min(far), near.max(far));
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        for datagram in self.datagrams.iter().filter(|datagram| Self::addresses(datagram) == addresses) {
            if let Some(protocol) = ignored_protocol(datagram) {
                *counts.entry(protocol).or_default() += 1;
            }
        }
        let total: usize = counts.values().sum();
        let by_protocol: Vec<String> =
            counts.iter().map(|(protocol, count)| format!("{count} {protocol}")).collect();
        let remark = "datagrams between the two ends are neither RTP nor RTCP and are left out";
        (total > 0).then(|| format!("{total} {remark}: {}", by_protocol.join(", ")))
    }

    /// Whether the two captures have at least half of the RTP of the smaller one in common.
    #[must_use]
    pub fn saw_the_same(&self, second: &Self) -> bool {
        let headers = |capture: &Self| -> std::collections::BTreeSet<Vec<u8>> {
            let rtp = capture.datagrams.iter().filter(|datagram| kind(datagram.payload) == Kind::Rtp);
            rtp.map(|datagram| datagram.payload[..12].to_vec()).collect()
        };
        let (headers_a, headers_b) = (headers(self), headers(second));
        let common = headers_a.intersection(&headers_b).count();
        common > 0 && common * 2 >= headers_a.len().min(headers_b.len())
    }
}

/// The header of an RTP packet. The end of the packet may be missing or encrypted, so its padding is not read.
fn header(datagram: &Udp<'_>) -> Option<Header> {
    // a header has at most 60 bytes of sources and, in practice, 255 words of extensions
    const MAX_HEADER: usize = 2048;
    let mut bytes = datagram.payload[..datagram.payload.len().min(MAX_HEADER)].to_vec();
    bytes[0] &= !0x20;
    Header::decode(&bytes).ok().map(|(header, _)| header)
}
