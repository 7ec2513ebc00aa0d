//! Writes the datagrams of a socket to a capture file, with the IP and UDP headers that they had on the wire, as far as
//! the socket knows them.

use crate::capture::{Capture, Link};
use crate::writer::{Items, Writer};
use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Hop limit in the capture; a socket does not know the true one (RFC 1122 section 3.2.1.7: senders begin with 64).
const HOPS: u8 = 64;
const UDP: u8 = 17;
/// Number of datagrams that go to the writing thread at once.
const CHUNK: usize = 64;

/// A datagram that was sent or received.
#[derive(Debug)]
pub(super) struct CapturedDatagram {
    /// Time in nanoseconds of CLOCK_REALTIME.
    pub(super) real: i64,
    /// Whether it was received.
    pub(super) inbound: bool,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// DSCP and ECN field.
    pub(super) class: u8,
    pub(super) bytes: Vec<u8>,
}

impl CapturedDatagram {
    /// The IP packet, as it was on the wire.
    fn packet(&self) -> Vec<u8> {
        let length = (self.bytes.len() + 8) as u16;
        let ports = [self.from.port().to_be_bytes(), self.to.port().to_be_bytes()].concat();
        let mut udp = [&ports[..], &length.to_be_bytes(), &[0, 0], &self.bytes].concat();
        let (mut packet, addresses) = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let addresses = [from.octets(), to.octets()].concat();
                // RFC 791 section 3.1
                let mut head = vec![0x45, self.class];
                head.extend((length + 20).to_be_bytes());
                head.extend([0, 0, 0x40, 0, HOPS, UDP, 0, 0]);
                head.extend(&addresses);
                let sum = checksum(&[&head]).to_be_bytes();
                head[10..12].copy_from_slice(&sum);
                (head, addresses)
            }
            (from, to) => {
                let wide = |ip: IpAddr| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                };
                let addresses = [wide(from), wide(to)].concat();
                // RFC 8200 section 3
                let mut head = vec![0x60 | self.class >> 4, self.class << 4, 0, 0];
                head.extend(length.to_be_bytes());
                head.extend([UDP, HOPS]);
                head.extend(&addresses);
                (head, addresses)
            }
        };
        // RFC 768; RFC 8200 section 8.1: includes addresses, protocol and length; 0 is sent as its complement
        let sum = match checksum(&[&addresses, &[0, UDP], &length.to_be_bytes(), &udp]) {
            0 => 0xffff,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        packet.extend(udp);
        packet
    }
}

/// The Internet checksum (RFC 1071) over parts, all but the last of even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    // a datagram has fewer than 2^16 words, so the sum cannot overflow
    let sum: u32 = words.map(word).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Writer of a capture file, with a thread of its own so that the socket's thread never waits for a disk.
#[derive(Debug)]
pub(super) struct Tap {
    writer: Writer<CapturedDatagram>,
}

impl Tap {
    /// Begins a file, with an interface called `name`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(super) fn begin(file: &Path, name: &str) -> io::Result<Self> {
        let mut capture = Capture::begin(BufWriter::new(File::create(file)?), Link::Raw, name)?;
        let write = move |datagrams: Items<CapturedDatagram>| {
            for datagram in datagrams {
                capture.packet(datagram.real, datagram.inbound, &datagram.packet())?;
            }
            capture.finish().map(drop)
        };
        Ok(Self { writer: Writer::begin("tidegate-tap", CHUNK, write)? })
    }

    /// Adds a datagram.
    pub(super) fn put(&mut self, datagram: CapturedDatagram) {
        self.writer.put(datagram);
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// If something could not be written.
    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_their_headers_and_sums() {
        for (from, to, header) in
            [("192.0.2.1:5004", "198.51.100.7:65535", 20), ("[2001:db8::1]:5004", "[2001:db8::2]:65535", 40)]
        {
            for bytes in [b"odd".to_vec(), b"even".to_vec(), Vec::new(), vec![255; 1400]] {
                let (from, to) = (from.parse().expect("an address"), to.parse().expect("an address"));
                let datagram =
                    CapturedDatagram { real: 0, inbound: true, from, to, class: 46 << 2 | 1, bytes };
                let packet = datagram.packet();
                assert_eq!(packet.len(), header + 8 + datagram.bytes.len());
                assert_eq!(&packet[header + 8..], &datagram.bytes);
                assert_eq!(packet[header..header + 4], [0x13, 0x8c, 0xff, 0xff]);
                let (class, addresses) = if header == 20 {
                    // the checksum over a header that includes its checksum is 0
                    assert_eq!(checksum(&[&packet[..20]]), 0);
                    assert_eq!(usize::from(packet[2]) << 8 | usize::from(packet[3]), packet.len());
                    (packet[1], &packet[12..20])
                } else {
                    assert_eq!(usize::from(packet[4]) << 8 | usize::from(packet[5]), packet.len() - 40);
                    (packet[0] << 4 | packet[1] >> 4, &packet[8..40])
                };
                assert_eq!(class, 46 << 2 | 1);
                let length = (packet.len() - header) as u16;
                assert_eq!(checksum(&[addresses, &[0, 17], &length.to_be_bytes(), &packet[header..]]), 0);
            }
        }
    }
}
