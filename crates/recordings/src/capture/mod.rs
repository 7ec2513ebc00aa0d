//! Finds the call in captures (pcap and pcapng) of one capture point.
//!
//! The call consists of the datagrams between the two addresses that exchange most RTP. With SRTP the headers of RTP
//! are readable (RFC 3711 section 3.1), but only the first eight bytes of RTCP.

mod copies;
mod dumps;
mod extensions;
mod file;
mod fragments;
mod layers;
mod names;
mod place;
mod sdp;
mod streams;
mod tcp;
mod turn;

pub use place::At;

use crate::kinds::{Format, Formats};
use crate::point::{MILLI, Nanos, Point, Rtcp, Rtp, Traffic};
use crate::problem::{Problem, Problems};
use layers::{Carrier, Counts, Datagram, LINKS, Layers};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use streams::{Kind, Streams, header, kind};
use tidegate_core::wire::rtcp;
use tidegate_core::wire::rtp::{self, Header};

fn is_rtp(datagram: &&Datagram<'_>) -> bool {
    datagram.kind == Kind::Rtp
}

/// The fixed headers of RTP packets, by which two captures are compared.
fn rtp_headers<'d, 'a: 'd>(datagrams: impl Iterator<Item = &'d Datagram<'a>>) -> BTreeSet<&'d [u8]> {
    datagrams.filter(is_rtp).map(|datagram| &datagram.payload[..12]).collect()
}

/// Whether a file is a capture or a dump of RTP, by its first bytes.
pub(crate) fn is_capture(bytes: &[u8]) -> bool {
    file::is_capture(bytes) || dumps::is_dump(bytes)
}

/// The UDP datagrams of one capture point, in the order of time.
#[derive(Default)]
pub struct Capture<'a> {
    datagrams: Vec<Datagram<'a>>,
    streams: Streams,
    /// Names and counts of the frames without a readable datagram.
    others: Counts,
    /// Number of packets that the file does not describe in a readable way.
    skipped: usize,
    /// Number of gaps in the bytes of each TCP connection, which TCP itself filled.
    gaps: BTreeMap<(SocketAddr, SocketAddr), usize>,
    formats: Formats,
    /// An address of which all RTP counts, however short.
    certain: Option<SocketAddr>,
    /// Number of packets of all kinds.
    pub packets: usize,
    /// Parts that could not be read, file by file.
    pub problems: Vec<Problems>,
    /// Times at which the times of a file step back, and by how much.
    set_back: Vec<(Nanos, Nanos)>,
    /// Sentences on packets that are in the capture more than once, for the user to read.
    pub remarks: Vec<String>,
}

/// The two addresses of a conversation, the lower one first. The ports are 0 unless both addresses are of one host.
type AddressPair = (SocketAddr, SocketAddr);

impl<'a> Capture<'a> {
    /// Reads the capture files of one capture point. All RTP of the address `certain` counts, even where there are too few
    /// packets to tell it from other protocols.
    ///
    /// # Errors
    /// The index of the file that cannot be read, and its problem.
    pub fn read(files: &[&'a [u8]], certain: Option<SocketAddr>) -> Result<Self, (usize, Problem)> {
        /// Bits of the number of an interface in its file.
        const INTERFACE_BITS: u32 = 12;
        /// Largest step back between packets of an interface whose clock runs: several queues are not in one order.
        const OUT_OF_ORDER: Nanos = 20 * MILLI;
        /// Largest number of steps that are kept; a forged file could have one at each packet.
        const MAX_STEPS: usize = 1000;
        let mut capture = Self { certain, ..Self::default() };
        let mut layers = Layers::default();
        for (number, bytes) in files.iter().enumerate() {
            let mut problems = Problems::default();
            let mut unsupported = None;
            if dumps::is_dump(bytes) {
                let interface = (number as u32) << INTERFACE_BITS;
                let datagrams = dumps::read(bytes, interface, &mut capture.formats, &mut problems);
                let datagrams = datagrams.map_err(|problem| (number, problem))?;
                capture.packets += datagrams.len();
                layers.datagrams.extend(datagrams);
                capture.problems.push(problems);
                continue;
            }
            let packets = &mut capture.packets;
            let (set_back, mut latest) = (&mut capture.set_back, BTreeMap::new());
            let mut take = |frame: file::Frame<'a>| {
                *packets += 1;
                let latest = latest.entry(frame.interface).or_insert(frame.at);
                if frame.at < *latest - OUT_OF_ORDER && set_back.len() < MAX_STEPS {
                    set_back.push((*latest, *latest - frame.at));
                }
                *latest = frame.at;
                if LINKS.contains(&frame.link) {
                    layers.add(&frame, (number as u32) << INTERFACE_BITS | frame.interface);
                } else {
                    unsupported.get_or_insert(frame.link);
                }
            };
            let skipped =
                file::frames(bytes, &mut problems, &mut take).map_err(|problem| (number, problem))?;
            if let Some(link) = unsupported {
                let message = format!(
                    "found link type {link}; expected Ethernet (1), PPP (9, 50), IEEE 802.11 (105, 127), Linux cooked \
                     (113, 276), raw IP (12, 14, 101, 228, 229) or loopback (0, 108)"
                );
                return Err((number, Problem::new(0, message)));
            }
            capture.skipped += skipped;
            capture.problems.push(problems);
        }
        layers.finish();
        (capture.datagrams, capture.others, capture.gaps) = (layers.datagrams, layers.others, layers.gaps);
        capture.datagrams.sort_by_key(|datagram| datagram.at);
        capture.find_streams();
        for datagram in capture.datagrams.iter().filter(|datagram| kind(&datagram.payload) == Kind::Other) {
            sdp::add_formats(datagram.at, &datagram.payload, &mut capture.formats);
        }
        Ok(capture)
    }

    fn find_streams(&mut self) {
        self.streams = streams::classify(&mut self.datagrams, self.certain);
    }

    fn addresses(datagram: &Datagram<'_>) -> AddressPair {
        Self::pair(datagram.from, datagram.to)
    }

    fn pair(mut a: SocketAddr, mut b: SocketAddr) -> AddressPair {
        if a.ip() != b.ip() {
            a.set_port(0);
            b.set_port(0);
        }
        (a.min(b), a.max(b))
    }

    /// The two ends that exchange most RTP, with the one that sends more bytes first. With an address given, the call is of
    /// that address.
    fn call(&self) -> Option<(SocketAddr, SocketAddr)> {
        // packets of the given address, packets, and bytes in each direction
        let mut conversations: BTreeMap<AddressPair, [u64; 4]> = BTreeMap::new();
        for datagram in self.datagrams.iter().filter(is_rtp) {
            let addresses = Self::addresses(datagram);
            let [certain, packets, up, down] = conversations.entry(addresses).or_default();
            *certain += u64::from(self.certain.is_some_and(|end| end == datagram.from || end == datagram.to));
            *packets += 1;
            *(if Self::is_from(datagram, addresses.0) { up } else { down }) += u64::from(datagram.size);
        }
        let ((a, b), [.., up, down]) =
            conversations.into_iter().max_by_key(|(_, [certain, packets, ..])| (*certain, *packets))?;
        Some(if up >= down { (a, b) } else { (b, a) })
    }

    fn is_from(datagram: &Datagram<'_>, end: SocketAddr) -> bool {
        Self::is_of(datagram.from, end)
    }

    /// Whether an address is that of an end, whose port may be 0.
    fn is_of(address: SocketAddr, end: SocketAddr) -> bool {
        address.ip() == end.ip() && (end.port() == 0 || address.port() == end.port())
    }

    fn of_call(&self, (near, far): (SocketAddr, SocketAddr)) -> impl Iterator<Item = &Datagram<'a>> {
        let addresses = (near.min(far), near.max(far));
        self.datagrams.iter().filter(move |datagram| Self::addresses(datagram) == addresses)
    }

    /// Removes second sights of packets of the call, and returns the capture of a second place if the packets of the call
    /// were captured at two.
    #[must_use]
    pub fn split(&mut self) -> Option<Self> {
        let (a, b) = self.call()?;
        let addresses = (a.min(b), a.max(b));
        let of_call: Vec<usize> = (0..self.datagrams.len())
            .filter(|&index| Self::addresses(&self.datagrams[index]) == addresses)
            .filter(|&index| kind(&self.datagrams[index].payload) != Kind::Other)
            .collect();
        let repetitions = copies::repetitions(&self.datagrams, &of_call);
        let mut copies = vec![false; self.datagrams.len()];
        let mut is_second = vec![false; self.datagrams.len()];
        let (mut count, mut lag) = (0, 0);
        for repetition in &repetitions {
            count += repetition.copies.len();
            lag = lag.max(repetition.lag);
            repetition.copies.iter().for_each(|&index| copies[index] = true);
        }
        if count > 0 {
            self.remarks.push(format!(
                "{count} packets are in the capture a second time, {:.3} ms later or less, and count once: a mirrored \
                 port or several interfaces",
                lag as f64 / 1e6
            ));
        }
        if repetitions.iter().any(|repetition| repetition.is_of_two_places) {
            let single: Vec<usize> = of_call.into_iter().filter(|&index| !copies[index]).collect();
            let is_from_a = |datagram: &Datagram<'_>| Self::is_from(datagram, a);
            for index in copies::second_place(&self.datagrams, &single, is_from_a) {
                is_second[index] = true;
            }
        }
        let mut second = Vec::new();
        let mut index = 0;
        self.datagrams.retain(|datagram| {
            let (is_copy, is_second) = (copies[index], is_second[index]);
            index += 1;
            if is_second {
                second.push(datagram.clone());
            }
            !is_copy && !is_second
        });
        if second.is_empty() {
            return None;
        }
        self.remarks.push(format!(
            "most packets of the call are in the capture twice, {} of them as they passed a second place: it was made at \
             two places, and is split",
            second.len()
        ));
        let mut other = Self { datagrams: second, certain: self.certain, ..Self::default() };
        other.formats = self.formats.clone();
        other.find_streams();
        self.find_streams();
        Some(other)
    }

    /// The headers of the RTP that the first of two ends sent to the other.
    fn headers_of(&self, ends: (SocketAddr, SocketAddr)) -> BTreeSet<&[u8]> {
        rtp_headers(self.of_call(ends).filter(|datagram| Self::is_from(datagram, ends.0)))
    }

    /// The addresses in this capture of the two ends of another one: the same, or those between which the packets of the
    /// same streams go.
    #[must_use]
    pub fn ends_of(
        &self,
        other: &Self,
        near: SocketAddr,
        far: SocketAddr,
    ) -> Option<(SocketAddr, SocketAddr)> {
        if self.of_call((near, far)).any(|datagram| is_rtp(&datagram)) {
            return Some((near, far));
        }
        let (a, b) = self.call()?;
        let common = |mine, theirs| self.headers_of(mine).intersection(&other.headers_of(theirs)).count();
        let straight = common((a, b), (near, far)) + common((b, a), (far, near));
        let crossed = common((b, a), (near, far)) + common((a, b), (far, near));
        Some(if straight >= crossed { (a, b) } else { (b, a) })
    }

    /// The packets of the call between two ends, from the point of view of `near`.
    #[must_use]
    pub fn point(&self, near: SocketAddr, far: SocketAddr) -> Point {
        // counts of unreadable and of readable RTCP datagrams
        let mut readable = [0usize; 2];
        let mut formats: BTreeMap<u32, Format> = BTreeMap::new();
        let mut traffic = |from: SocketAddr, to: SocketAddr| {
            let datagrams = || self.of_call((near, far)).filter(|datagram| Self::is_from(datagram, from));
            let headers: Vec<(&Datagram<'_>, Header)> = datagrams()
                .filter(is_rtp)
                .filter_map(|datagram| Some((datagram, header(&datagram.payload)?)))
                .collect();
            for (datagram, header) in &headers {
                if let Some(format) = self.formats.get(datagram.at, datagram.to.port(), header.payload_type) {
                    formats.entry(header.ssrc).or_insert(format);
                }
            }
            let ids = extensions::find(headers.iter().map(|(datagram, header)| (datagram.at, header)));
            let mut paths: BTreeMap<(SocketAddr, SocketAddr), u16> = BTreeMap::new();
            let rtp = headers.iter().map(|(datagram, header)| {
                let count = paths.len() as u16;
                let path = *paths.entry((datagram.from, datagram.to)).or_insert(count);
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
                    path,
                }
            });
            let rtp = rtp.collect();
            let rtcp: Vec<Rtcp> = datagrams()
                .filter(|datagram| datagram.kind == Kind::Rtcp)
                .map(|datagram| Rtcp {
                    at: datagram.at,
                    size: datagram.size,
                    bytes: datagram.payload.to_vec(),
                })
                .collect();
            for datagram in &rtcp {
                // the end may not be captured
                let words = u16::from_be_bytes([datagram.bytes[2], datagram.bytes[3]]);
                if 4 * (usize::from(words) + 1) <= datagram.bytes.len() {
                    readable[usize::from(rtcp::decode(&datagram.bytes).is_ok())] += 1;
                }
            }
            Traffic { rtp, rtcp, unread: self.unread(from, to) }
        };
        let (sent, received) = (traffic(near, far), traffic(far, near));
        // SRTCP does not decode as RTCP: an index and a tag follow the packet (RFC 3711 section 3.4), and they do not
        // look like the beginning of another one
        let encrypted = readable[0] > readable[1];
        let set_back = self.set_back.clone();
        Point { sent, received, streams: Vec::new(), formats, encrypted, restored: false, set_back }
    }

    /// The number of frames from one end to the other that may hold RTP and could not be read.
    fn unread(&self, from: SocketAddr, to: SocketAddr) -> usize {
        /// Bytes of a fixed RTP header (RFC 3550 section 5.1) behind those of IPv4 and UDP.
        const LEAST: (usize, u32) = (12, 40);
        let is_short = |datagram: &&Datagram<'_>| {
            Self::is_from(datagram, from)
                && datagram.payload.len() < LEAST.0
                && datagram.size >= LEAST.1
                && datagram.payload.first().is_none_or(|first| first >> 6 == 2)
        };
        let pair = Self::pair(from, to);
        let gaps = self.gaps.iter().filter(|&(&(source, target), _)| {
            Self::pair(source, target) == pair && Self::is_of(source, from)
        });
        let in_tcp: usize = gaps.map(|(_, count)| count).sum();
        self.of_call((from, to)).filter(is_short).count() + self.skipped + in_tcp
    }

    /// Sentences on the call: its addresses and packets, what carried them, and what is left out.
    #[must_use]
    pub fn describe(&self, near: SocketAddr, far: SocketAddr) -> Vec<String> {
        let of_call = || self.of_call((near, far));
        let packets = of_call().filter(is_rtp).count();
        let addresses = (near.min(far), near.max(far));
        let streams = self.streams.keys().filter(|&&(from, to, _)| Self::pair(from, to) == addresses).count();
        let address = |end: &SocketAddr| if end.port() == 0 { end.ip().to_string() } else { end.to_string() };
        let mut sentences = vec![format!(
            "the call between {} and {}: {} in {}",
            address(&near),
            address(&far),
            names::counted(packets, "RTP packets"),
            names::counted(streams, "streams")
        )];
        let carried = |carrier| of_call().filter(|datagram| datagram.carrier == carrier).count();
        for (carrier, name) in [(Carrier::Turn, "a TURN server"), (Carrier::Tcp, "TCP")] {
            let count = carried(carrier);
            if count > 0 {
                sentences
                    .push(format!("{} of the call went through {name}", names::counted(count, "datagrams")));
            }
        }
        let left_out = self.left_out(Some(addresses));
        if !left_out.is_empty() {
            sentences.push(format!("left out of the capture: {left_out}"));
        }
        sentences
    }

    /// Names and counts of all that is no RTP or RTCP of the call, the largest first.
    fn left_out(&self, call: Option<AddressPair>) -> String {
        /// Number of names that are listed.
        const LISTED: usize = 8;
        let mut counts = self.others.clone();
        for datagram in &self.datagrams {
            let is_of_call = call == Some(Self::addresses(datagram));
            let name = match datagram.kind {
                Kind::Rtp | Kind::Rtcp if is_of_call => continue,
                Kind::Rtp => "RTP between other addresses".into(),
                _ => names::protocol(datagram),
            };
            *counts.entry(name).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut parts: Vec<String> =
            counts.iter().take(LISTED).map(|(name, count)| names::counted(*count, name)).collect();
        let further: usize = counts.iter().skip(LISTED).map(|(_, count)| count).sum();
        if further > 0 {
            parts.push(format!("{further} of other kinds"));
        }
        parts.join(", ")
    }

    /// The problem of a capture without a call: what it holds.
    #[must_use]
    pub fn without_call(&self) -> Problem {
        let rule = format!(
            "expected a call: at least {} packets of one SSRC whose sequence numbers and timestamps go on",
            streams::MIN_PACKETS
        );
        if self.packets == 0 {
            return Problem::new(0, format!("found no packets; {rule}"));
        }
        let similar = self.datagrams.iter().find(|datagram| {
            kind(&datagram.payload) == Kind::Rtp && names::protocol(datagram).starts_with(names::UNKNOWN)
        });
        let hint = similar.map(|datagram| {
            let to = datagram.to;
            format!("; if what goes to {to} is RTP, pass --rtp {to}")
        });
        let held = match self.left_out(None) {
            list if list.is_empty() => format!("{} packets", self.packets),
            list => list,
        };
        Problem::new(0, format!("found no RTP but {held}; {rule}{}", hint.unwrap_or_default()))
    }

    /// Whether the two captures have at least half of the RTP of the smaller one in common.
    #[must_use]
    pub fn saw_the_same(&self, second: &Self) -> bool {
        let (headers_a, headers_b) =
            (rtp_headers(self.datagrams.iter()), rtp_headers(second.datagrams.iter()));
        let common = headers_a.intersection(&headers_b).count();
        common > 0 && common * 2 >= headers_a.len().min(headers_b.len())
    }
}
