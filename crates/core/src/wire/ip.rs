//! IPv4 (RFC 791) and UDP (RFC 768) headers.

use super::Error;
use super::error::fit;
use super::reader::Reader;
use crate::address::Hosts;
use crate::datagram::{Ecn, Protocol};

/// Length of an IPv4 header without options, bytes (RFC 791 section 3.1).
pub const IP_HEADER: usize = 20;
/// Length of a UDP header, bytes (RFC 768).
pub const UDP_HEADER: usize = 8;
/// Length of the headers of a UDP datagram, bytes.
pub const UDP_HEADERS: u32 = (IP_HEADER + UDP_HEADER) as u32;

/// IPv4 header. Identification is 0, "don't fragment" is set, and the time to live is 64 (RFC 6864: atomic datagrams need
/// no identification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source and destination hosts.
    pub hosts: Hosts,
    /// Transport protocol.
    pub protocol: Protocol,
    /// ECN field (RFC 3168 section 5).
    pub ecn: Ecn,
    /// DSCP, six bits (RFC 2474).
    pub dscp: u8,
}

impl Header {
    /// Inserts the IPv4 header before the bytes of `out` from `start` on, which are a TCP segment or a UDP datagram, and sets
    /// their checksum, which is at `checksum`.
    ///
    /// # Errors
    /// Fails if a value does not fit its field; `out` then ends at `start`.
    pub fn put_before(&self, out: &mut Vec<u8>, start: usize, checksum: usize) -> Result<(), Error> {
        let length = out.len() - start;
        let fields = fit("IP packet size in bytes", IP_HEADER + length, IP_HEADER, usize::from(u16::MAX))
            .and_then(|total| Ok((total as u16, fit("DSCP", usize::from(self.dscp), 0, 63)? as u8)));
        let (total, dscp) = fields.inspect_err(|_| out.truncate(start))?;
        let (from, to) = self.hosts.addresses();
        let sum = !folded(self.pseudo_header(length) + words(&out[start..]));
        // RFC 768: zero stands for no checksum, and all ones are the same sum
        let sum = if sum == 0 && self.protocol == Protocol::Udp { u16::MAX } else { sum };
        out[start + checksum..start + checksum + 2].copy_from_slice(&sum.to_be_bytes());

        let mut header = [0; IP_HEADER];
        (header[0], header[1]) = (0x45, dscp << 2 | self.ecn as u8);
        header[2..4].copy_from_slice(&total.to_be_bytes());
        (header[6], header[8], header[9]) = (0x40, 64, self.protocol as u8);
        header[12..16].copy_from_slice(&from);
        header[16..20].copy_from_slice(&to);
        let sum = !folded(words(&header));
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        out.splice(start..start, header);
        Ok(())
    }

    /// Parses the header of the packet `bytes`, whose payload begins at [`IP_HEADER`].
    ///
    /// # Errors
    /// Fails if the packet is malformed, a fragment, has options, or has addresses that belong to no flow.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let invalid = |field, offset: usize, found: u64| Err(Error::Invalid { field, offset, value: found });
        let version = reader.u8("IPv4 header")?;
        if version != 0x45 {
            return invalid("IP version and header length", 0, version.into());
        }
        let class = reader.u8("DSCP and ECN")?;
        let total = reader.u16("IPv4 total length")?;
        if usize::from(total) != bytes.len() {
            return invalid("IPv4 total length", 2, total.into());
        }
        reader.u16("IPv4 identification")?;
        let fragment = reader.u16("IPv4 fragment offset")?;
        if fragment & 0x3fff != 0 {
            return invalid("IPv4 fragment offset", 6, fragment.into());
        }
        reader.u8("IPv4 time to live")?;
        let protocol = match reader.u8("IPv4 protocol")? {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            unknown => return invalid("IPv4 protocol", 9, unknown.into()),
        };
        let checksum = reader.u16("IPv4 header checksum")?;
        let (from, to) = (reader.u32("IPv4 source address")?, reader.u32("IPv4 destination address")?);
        if folded(words(&bytes[..IP_HEADER])) != u16::MAX {
            return invalid("IPv4 header checksum", 10, checksum.into());
        }
        let Some(hosts) = Hosts::from_addresses(from.to_be_bytes(), to.to_be_bytes()) else {
            return invalid("IPv4 addresses", 12, u64::from(from) << 32 | u64::from(to));
        };
        Ok(Self { hosts, protocol, ecn: Ecn::from_bits(class), dscp: class >> 2 })
    }

    /// Whether the checksum of the packet's payload `segment` is correct.
    #[must_use]
    pub fn checks(&self, segment: &[u8]) -> bool {
        folded(self.pseudo_header(segment.len()) + words(segment)) == u16::MAX
    }

    /// Sum of the pseudo-header, which the checksums of TCP and UDP include (RFC 9293 section 3.1, RFC 768).
    fn pseudo_header(&self, length: usize) -> u64 {
        let (from, to) = self.hosts.addresses();
        words(&from) + words(&to) + self.protocol as u64 + length as u64
    }
}

/// Appends the header of a UDP datagram with `payload` bytes of payload; the checksum is zero and has to be set later.
///
/// # Errors
/// Fails if the payload is too long; `out` is then unchanged.
pub fn put_udp(ports: (u16, u16), payload: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let length = fit("UDP datagram size in bytes", UDP_HEADER + payload, UDP_HEADER, usize::from(u16::MAX))?;
    for field in [ports.0, ports.1, length as u16, 0] {
        out.extend(field.to_be_bytes());
    }
    Ok(())
}

/// Position of the checksum in a UDP header.
pub const UDP_CHECKSUM: usize = 6;

/// Parses the ports from the UDP header of `datagram`, the payload of the packet with the header `ip`. The datagram's
/// payload begins at [`UDP_HEADER`].
///
/// # Errors
/// Fails if the datagram is malformed.
pub fn decode_udp(ip: &Header, datagram: &[u8]) -> Result<(u16, u16), Error> {
    let mut reader = Reader::with_offset(datagram, IP_HEADER);
    let ports = (reader.u16("UDP source port")?, reader.u16("UDP destination port")?);
    let length = reader.u16("UDP length")?;
    if usize::from(length) != datagram.len() {
        return Err(Error::Invalid { field: "UDP length", offset: IP_HEADER + 4, value: length.into() });
    }
    let checksum = reader.u16("UDP checksum")?;
    // zero: no checksum was computed (RFC 768)
    if checksum != 0 && !ip.checks(datagram) {
        let offset = IP_HEADER + UDP_CHECKSUM;
        return Err(Error::Invalid { field: "UDP checksum", offset, value: checksum.into() });
    }
    Ok(ports)
}

/// Sum of 16-bit words (RFC 1071); a last odd byte is padded with zeros.
fn words(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs.remainder().first().map_or(0, |&byte| u64::from(byte) << 8);
    pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>() + odd
}

/// Folds a sum to 16 bits in ones' complement arithmetic (RFC 1071).
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Direction;
    use crate::ids::FlowId;

    fn header(protocol: Protocol) -> Header {
        Header { hosts: Hosts::of_flow(FlowId(258), Direction::Reverse), protocol, ecn: Ecn::Ect1, dscp: 46 }
    }

    #[test]
    fn the_sum_of_rfc_1071() {
        // section 3 of the RFC: the sum of these words is ddf2
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(folded(words(&bytes)), 0xddf2);
        assert_eq!(words(&bytes[..7]), words(&bytes) - 0xf7);
    }

    #[test]
    fn a_packet_by_hand() {
        let mut out = vec![0xaa];
        put_udp((5005, 5004), 3, &mut out).unwrap();
        out.extend([1, 2, 3]);
        header(Protocol::Udp).put_before(&mut out, 1, UDP_CHECKSUM).unwrap();
        let ip = &out[1..];
        let expected = [0x45, 46 << 2 | 1, 0, 31, 0, 0, 0x40, 0, 64, 17];
        assert_eq!(ip[..10], expected);
        // the network is the flow's number, 258; the addresses end in 2 and 1
        assert_eq!(ip[12..20], [10, 1, 2, 2, 10, 1, 2, 1]);
        assert_eq!(ip[20..26], [0x13, 0x8d, 0x13, 0x8c, 0, 11]);
        assert_eq!(Header::decode(ip), Ok(header(Protocol::Udp)));
        assert_eq!(decode_udp(&header(Protocol::Udp), &ip[20..]), Ok((5005, 5004)));
        for index in 0..31 {
            let mut spoilt = ip.to_vec();
            spoilt[index] ^= 1;
            let ports = Header::decode(&spoilt).and_then(|ip| decode_udp(&ip, &spoilt[20..]));
            assert!(ports.is_err(), "byte {index}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut out = vec![0xaa; 3];
        let dscp = Header { dscp: 64, ..header(Protocol::Tcp) };
        let error = dscp.put_before(&mut out, 3, 0).unwrap_err();
        assert_eq!(error, Error::Unfit { field: "DSCP", value: 64, minimum: 0, maximum: 63 });
        assert_eq!(out.len(), 3);
        out.resize(3 + 65_516, 0);
        assert!(header(Protocol::Tcp).put_before(&mut out, 3, 16).is_err());
        assert_eq!(out.len(), 3, "unchanged");
        assert!(put_udp((1, 2), 65_528, &mut out).is_err());
        assert_eq!(out.len(), 3);
    }
}
