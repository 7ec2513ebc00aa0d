//! Takes UDP datagrams, and what TCP carries, out of captured frames: through VLANs, PPPoE, MPLS, IP in IP, GRE, VXLAN,
//! Geneve, GTP-U, IP fragments and TURN.

use super::file::Frame;
use super::fragments::{Fragment, Fragments};
use super::streams::Kind;
use super::tcp::{Segment, Segments};
use super::turn;
use crate::point::Nanos;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A captured UDP datagram, or a message that TCP carried.
#[derive(Clone, Debug)]
pub(super) struct Datagram<'a> {
    pub(super) at: Nanos,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Size of the IP packet in bytes.
    pub(super) size: u32,
    /// Time to live, or hop limit.
    pub(super) hops: u8,
    /// Number of the interface among all files of the capture point.
    pub(super) interface: u32,
    /// Whether the capturing host sent it, if the file says so.
    pub(super) leaves: Option<bool>,
    /// Its carrier.
    pub(super) carrier: Carrier,
    /// Its kind, once the streams of the capture are known.
    pub(super) kind: Kind,
    /// Its payload, as much of it as was captured.
    pub(super) payload: Bytes<'a>,
}

/// The carrier of a payload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Carrier {
    Udp,
    /// A TURN channel or indication (RFC 8656) in UDP.
    Turn,
    Tcp,
}

/// Bytes of a file, or bytes that were put together from several places of it.
pub(super) type Bytes<'a> = Cow<'a, [u8]>;

/// A part of bytes; `None` if it begins behind their end.
pub(super) fn part<'a>(bytes: Bytes<'a>, from: usize, to: usize) -> Option<Bytes<'a>> {
    let to = to.min(bytes.len());
    if from > to {
        return None;
    }
    Some(match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[from..to]),
        Cow::Owned(bytes) => Cow::Owned(bytes[from..to].to_vec()),
    })
}

fn rest<'a>(bytes: Bytes<'a>, from: usize) -> Option<Bytes<'a>> {
    part(bytes, from, usize::MAX)
}

pub(super) fn word(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(offset)?, *bytes.get(offset + 1)?]))
}

/// The time and the place of a captured frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) at: Nanos,
    pub(super) interface: u32,
    pub(super) leaves: Option<bool>,
    /// Bytes of the frame that were not captured.
    missing: usize,
    /// Number of headers of tunnels that were opened.
    depth: u8,
}

/// The fields of an IP header that are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) hops: u8,
    pub(super) size: u32,
}

/// Names of what is not imported, with their counts.
pub(super) type Counts = BTreeMap<Cow<'static, str>, usize>;

/// The supported link types (LINKTYPE_*).
pub(super) const LINKS: [u32; 14] = [0, 1, 9, 12, 14, 50, 101, 105, 108, 113, 127, 228, 229, 276];

/// The datagrams of the frames of a capture point.
#[derive(Default)]
pub(super) struct Layers<'a> {
    pub(super) datagrams: Vec<Datagram<'a>>,
    /// Counts of frames without UDP and readable TCP, by name.
    pub(super) others: Counts,
    /// Number of gaps in the bytes of each TCP connection with messages.
    pub(super) gaps: BTreeMap<(SocketAddr, SocketAddr), usize>,
    fragments: Fragments<'a>,
    segments: Segments<'a>,
    /// Last sequence control of each 802.11 transmitter, so that frames that are sent again count once.
    radio: BTreeMap<[u8; 6], u16>,
}

impl<'a> Layers<'a> {
    fn other(&mut self, name: impl Into<Cow<'static, str>>) {
        /// Largest number of names; a forged file could make many.
        const MAX_NAMES: usize = 300;
        let name = name.into();
        let name = if self.others.len() < MAX_NAMES || self.others.contains_key(&name) {
            name
        } else {
            Cow::Borrowed("of further kinds")
        };
        *self.others.entry(name).or_default() += 1;
    }

    /// Whether a tunnel is in too many others; counts a layer.
    fn is_too_deep(&mut self, sight: &mut Sight) -> bool {
        sight.depth += 1;
        let is_too_deep = sight.depth > 16;
        if is_too_deep {
            self.other("tunnels in more than 16 layers");
        }
        is_too_deep
    }

    /// Takes the datagram out of a frame of a supported link type. `interface` is the number of its interface among all
    /// files.
    pub(super) fn add(&mut self, frame: &Frame<'a>, interface: u32) {
        let missing = (frame.length as usize).saturating_sub(frame.bytes.len());
        let sight = Sight { at: frame.at, interface, leaves: frame.leaves, missing, depth: 0 };
        if self.frame(frame.link, Cow::Borrowed(frame.bytes), sight).is_none() {
            self.other("frames that end within a header");
        }
    }

    /// Takes what remains: messages in TCP, and fragments whose other parts are missing.
    pub(super) fn finish(&mut self) {
        let (firsts, incomplete) = std::mem::take(&mut self.fragments).incomplete();
        for (protocol, payload, ip, sight) in firsts {
            self.other("first IP fragments without the others, read as far as they go");
            if self.transport(protocol, payload, ip, sight).is_none() {
                self.other("frames that end within a header");
            }
        }
        if incomplete > 0 {
            self.others.insert("IP fragments whose other parts are missing".into(), incomplete);
        }
        let segments = std::mem::take(&mut self.segments);
        let unused = segments.messages(&mut self.datagrams, &mut self.gaps);
        if unused > 0 {
            *self.others.entry("TCP".into()).or_default() += unused;
        }
    }

    /// `None` if the frame ends within a header, here and in all functions below.
    fn frame(&mut self, link: u32, bytes: Bytes<'a>, mut sight: Sight) -> Option<()> {
        // packet type of Linux cooked captures: 0 to us, 4 sent by us
        let leaves = |kind: Option<&u8>| match kind {
            Some(4) => Some(true),
            Some(0) => Some(false),
            _ => None,
        };
        match link {
            // BSD loopback, in the byte order of the host or of the network
            0 | 108 => self.ip(rest(bytes, 4)?, sight),
            1 => self.ethernet(bytes, sight),
            9 | 50 => self.ppp(bytes, sight),
            105 => self.wireless(bytes, sight),
            127 => {
                let length = u16::from_le_bytes([*bytes.get(2)?, *bytes.get(3)?]);
                self.wireless(rest(bytes, usize::from(length))?, sight)
            }
            113 => {
                sight.leaves = sight.leaves.or(leaves(bytes.get(1)));
                self.ethertype(word(&bytes, 14)?, rest(bytes, 16)?, sight)
            }
            276 => {
                sight.leaves = sight.leaves.or(leaves(bytes.get(10)));
                self.ethertype(word(&bytes, 0)?, rest(bytes, 20)?, sight)
            }
            _ => self.ip(bytes, sight),
        }
    }

    fn ethernet(&mut self, bytes: Bytes<'a>, sight: Sight) -> Option<()> {
        self.ethertype(word(&bytes, 12)?, rest(bytes, 14)?, sight)
    }

    /// The contents of a frame by its EtherType (IEEE 802 numbers of IANA).
    fn ethertype(&mut self, kind: u16, bytes: Bytes<'a>, mut sight: Sight) -> Option<()> {
        if self.is_too_deep(&mut sight) {
            return Some(());
        }
        match kind {
            0x0800 | 0x86dd => self.ip(bytes, sight),
            // IEEE 802.1Q and 802.1ad
            0x8100 | 0x88a8 | 0x9100 => self.ethertype(word(&bytes, 2)?, rest(bytes, 4)?, sight),
            // PPPoE (RFC 2516 section 4)
            0x8864 => self.ppp(rest(bytes, 6)?, sight),
            // MPLS (RFC 3032 section 2.1): labels up to the bottom of the stack
            0x8847 | 0x8848 => {
                let mut offset = 0;
                while bytes.get(offset + 2)? & 1 == 0 {
                    offset += 4;
                }
                match bytes.get(offset + 4)? >> 4 {
                    4 | 6 => self.ip(rest(bytes, offset + 4)?, sight),
                    // Ethernet behind a control word (RFC 4448 section 4.6)
                    0 => self.ethernet(rest(bytes, offset + 8)?, sight),
                    _ => self.ethernet(rest(bytes, offset + 4)?, sight),
                }
            }
            0x6558 => self.ethernet(bytes, sight),
            _ => {
                self.other(match kind {
                    0x0806 => Cow::Borrowed("ARP"),
                    0x88cc => Cow::Borrowed("LLDP"),
                    0x888e => Cow::Borrowed("EAPOL"),
                    0x8863 => Cow::Borrowed("PPPoE discovery"),
                    0x86dd.. | 0x0600.. => Cow::Owned(format!("frames of EtherType 0x{kind:04x}")),
                    _ => Cow::Borrowed("IEEE 802.3 frames"),
                });
                Some(())
            }
        }
    }

    /// PPP (RFC 1661 section 2, RFC 1662): address and control fields, and the first byte of a protocol, may be left out.
    fn ppp(&mut self, bytes: Bytes<'a>, sight: Sight) -> Option<()> {
        let offset = if bytes.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
        let (protocol, offset) = match *bytes.get(offset)? {
            short if short & 1 == 1 => (u16::from(short), offset + 1),
            _ => (word(&bytes, offset)?, offset + 2),
        };
        match protocol {
            0x0021 | 0x0057 => self.ip(rest(bytes, offset)?, sight),
            0x0281 | 0x0283 => self.ethertype(0x8847, rest(bytes, offset)?, sight),
            _ => {
                self.other("PPP control");
                Some(())
            }
        }
    }

    /// An 802.11 frame (IEEE 802.11-2020 section 9.2): data in the clear, behind LLC and SNAP.
    fn wireless(&mut self, bytes: Bytes<'a>, sight: Sight) -> Option<()> {
        const DATA: u8 = 2;
        let (control, flags) = (*bytes.first()?, *bytes.get(1)?);
        let (kind, subtype) = (control >> 2 & 3, control >> 4);
        let (is_protected, is_retry) = (flags & 0x40 != 0, flags & 0x08 != 0);
        if kind != DATA || subtype & 4 != 0 {
            self.other("802.11 frames without data");
            return Some(());
        }
        if is_protected {
            self.other("encrypted 802.11");
            return Some(());
        }
        let transmitter: [u8; 6] = *bytes.get(10..16)?.first_chunk()?;
        let sequence = word(&bytes, 22)?;
        if self.radio.insert(transmitter, sequence) == Some(sequence) && is_retry {
            self.other("802.11 frames that were sent again");
            return Some(());
        }
        let four_addresses = flags & 3 == 3;
        let mut offset = if four_addresses { 30 } else { 24 };
        if subtype & 8 != 0 {
            if bytes.get(offset)? & 0x80 != 0 {
                self.other("aggregated 802.11 frames (A-MSDU)");
                return Some(());
            }
            // QoS control, and HT control
            offset += if flags & 0x80 != 0 { 6 } else { 2 };
        }
        if bytes.get(offset..offset + 3)? != [0xaa, 0xaa, 0x03] {
            self.other("802.11 data without SNAP");
            return Some(());
        }
        self.ethertype(word(&bytes, offset + 6)?, rest(bytes, offset + 8)?, sight)
    }

    fn ip(&mut self, bytes: Bytes<'a>, mut sight: Sight) -> Option<()> {
        if self.is_too_deep(&mut sight) {
            return Some(());
        }
        // packets that the network adapter is to segment have no length in the IP header yet
        let on_link = bytes.len() + sight.missing;
        let size = |length: usize| if length == 0 { on_link } else { length };
        let packet_size = |size: usize| size.min(usize::from(u16::MAX)) as u32;
        match bytes.first()? >> 4 {
            4 => {
                let header = usize::from(bytes[0] & 0x0f) * 4;
                if header < 20 {
                    self.other("IP packets with a wrong header");
                    return Some(());
                }
                let address = |offset: usize| -> Option<IpAddr> {
                    Some(Ipv4Addr::from(*bytes.get(offset..offset + 4)?.first_chunk::<4>()?).into())
                };
                let size = size(match usize::from(word(&bytes, 2)?) {
                    0 => 0,
                    length => length.max(header),
                });
                let ip = Ip {
                    from: address(12)?,
                    to: address(16)?,
                    hops: *bytes.get(8)?,
                    size: packet_size(size),
                };
                let (protocol, id, fragment) =
                    (*bytes.get(9)?, u32::from(word(&bytes, 4)?), word(&bytes, 6)?);
                let payload = part(bytes, header, size)?;
                if fragment & 0x3fff == 0 {
                    return self.transport(protocol, payload, ip, sight);
                }
                let fragment = Fragment {
                    offset: usize::from(fragment & 0x1fff) * 8,
                    more: fragment & 0x2000 != 0,
                    length: size - header,
                    payload,
                };
                self.fragment(protocol, id, fragment, ip, sight)
            }
            6 => {
                let address = |offset: usize| -> Option<IpAddr> {
                    Some(Ipv6Addr::from(*bytes.get(offset..offset + 16)?.first_chunk::<16>()?).into())
                };
                let size = size(match usize::from(word(&bytes, 4)?) {
                    0 => 0,
                    length => 40 + length,
                });
                let ip =
                    Ip { from: address(8)?, to: address(24)?, hops: *bytes.get(7)?, size: packet_size(size) };
                let (mut next_header, mut offset) = (*bytes.get(6)?, 40);
                // hop-by-hop options, routing, destination options (RFC 8200 section 4)
                while matches!(next_header, 0 | 43 | 60) {
                    let length = usize::from(*bytes.get(offset + 1)?) * 8 + 8;
                    next_header = *bytes.get(offset)?;
                    offset += length;
                }
                const FRAGMENT: u8 = 44;
                if next_header != FRAGMENT {
                    return self.transport(next_header, part(bytes, offset, size)?, ip, sight);
                }
                let place = word(&bytes, offset + 2)?;
                let id = u32::from(word(&bytes, offset + 4)?) << 16 | u32::from(word(&bytes, offset + 6)?);
                let protocol = *bytes.get(offset)?;
                let payload = part(bytes, offset + 8, size)?;
                let fragment = Fragment {
                    offset: usize::from(place & 0xfff8),
                    more: place & 1 != 0,
                    length: size.saturating_sub(offset + 8),
                    payload,
                };
                self.fragment(protocol, id, fragment, ip, sight)
            }
            _ => {
                self.other("packets that are no IP");
                Some(())
            }
        }
    }

    fn fragment(
        &mut self,
        protocol: u8,
        id: u32,
        fragment: Fragment<'a>,
        ip: Ip,
        sight: Sight,
    ) -> Option<()> {
        match self.fragments.add((protocol, id), fragment, ip, sight) {
            Some((protocol, payload, ip, sight)) => self.transport(protocol, payload, ip, sight),
            None => Some(()),
        }
    }

    /// The contents of an IP packet by its protocol number (IANA).
    fn transport(&mut self, protocol: u8, bytes: Bytes<'a>, ip: Ip, mut sight: Sight) -> Option<()> {
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        match protocol {
            UDP => self.udp(bytes, ip, sight),
            TCP => {
                let (from, to) = (word(&bytes, 0)?, word(&bytes, 2)?);
                let header = usize::from(bytes.get(12)? >> 4) * 4;
                let (sequence, flags) = (*bytes.get(4..)?.first_chunk()?, *bytes.get(13)?);
                let length = (ip.size as usize).saturating_sub(if ip.from.is_ipv4() { 20 } else { 40 });
                self.segments.add(Segment {
                    sight,
                    from: SocketAddr::new(ip.from, from),
                    to: SocketAddr::new(ip.to, to),
                    hops: ip.hops,
                    sequence: u32::from_be_bytes(sequence),
                    begins: flags & 2 != 0,
                    length: length.saturating_sub(header).max(bytes.len().saturating_sub(header)),
                    payload: rest(bytes, header)?,
                });
                Some(())
            }
            4 | 41 => {
                sight.missing = (ip.size as usize).saturating_sub(bytes.len());
                self.ip(bytes, sight)
            }
            // GRE (RFC 2784, RFC 2890): optional checksum, key and sequence number
            47 => {
                let (flags, kind) = (*bytes.first()?, word(&bytes, 2)?);
                let optional = [0x80, 0x20, 0x10].iter().filter(|&&bit| flags & bit != 0).count();
                let offset = 4 + 4 * optional;
                match kind {
                    // ERSPAN, with its own header behind a sequence number
                    0x88be if flags & 0x10 == 0 => self.ethernet(rest(bytes, offset)?, sight),
                    0x88be => self.ethernet(rest(bytes, offset + 8)?, sight),
                    0x22eb => self.ethernet(rest(bytes, offset + 12)?, sight),
                    // PPP of PPTP (RFC 2637 section 4.1) has another acknowledgement bit
                    0x880b => {
                        let acknowledged = usize::from(bytes.get(1)? & 0x80 != 0);
                        self.ppp(rest(bytes, offset + 4 * acknowledged)?, sight)
                    }
                    _ => self.ethertype(kind, rest(bytes, offset)?, sight),
                }
            }
            _ => {
                self.other(match protocol {
                    1 | 58 => Cow::Borrowed("ICMP"),
                    2 => Cow::Borrowed("IGMP"),
                    50 => Cow::Borrowed("ESP"),
                    89 => Cow::Borrowed("OSPF"),
                    132 => Cow::Borrowed("SCTP"),
                    _ => Cow::Owned(format!("IP protocol {protocol}")),
                });
                Some(())
            }
        }
    }

    fn udp(&mut self, bytes: Bytes<'a>, ip: Ip, mut sight: Sight) -> Option<()> {
        let (source, destination) = (word(&bytes, 0)?, word(&bytes, 2)?);
        let length = usize::from(word(&bytes, 4)?);
        // a length of 0 is a jumbogram or a packet that the adapter is to segment
        let length = if length < 8 { ip.size as usize } else { length };
        let payload = part(bytes, 8, length)?;
        let is_port = |port: u16| source == port || destination == port;
        sight.missing = (length - 8).saturating_sub(payload.len());
        if is_port(2152)
            && let Some(offset) = gtp_header(&payload)
        {
            return self.ip(rest(payload, offset)?, sight);
        }
        // VXLAN (RFC 7348 section 5): the flag I, and the rest reserved
        if (is_port(4789) || is_port(8472)) && payload.starts_with(&[0x08, 0, 0, 0]) {
            return self.ethernet(rest(payload, 8)?, sight);
        }
        // Geneve (RFC 8926 section 3.4)
        if is_port(6081)
            && let Some(&first) = payload.first().filter(|&&first| first >> 6 == 0)
        {
            let (kind, offset) = (word(&payload, 2)?, 8 + 4 * usize::from(first & 0x3f));
            return self.ethertype(kind, rest(payload, offset)?, sight);
        }
        let (carrier, payload) = match turn::contents(&payload, length - 8) {
            Some((from, to)) => (Carrier::Turn, part(payload, from, to)?),
            None => (Carrier::Udp, payload),
        };
        self.datagrams.push(Datagram {
            at: sight.at,
            from: SocketAddr::new(ip.from, source),
            to: SocketAddr::new(ip.to, destination),
            size: ip.size,
            hops: ip.hops,
            interface: sight.interface,
            leaves: sight.leaves,
            carrier,
            kind: Kind::Other,
            payload,
        });
        Some(())
    }
}

/// Length of the header of a GTP-U message with a user's packet (3GPP TS 29.281 section 5); `None` for others.
fn gtp_header(bytes: &[u8]) -> Option<usize> {
    const USER_PACKET: u8 = 255;
    let flags = *bytes.first()?;
    if flags >> 4 != 3 || *bytes.get(1)? != USER_PACKET {
        return None;
    }
    let mut offset = 8;
    if flags & 7 != 0 {
        offset = 12;
        // extension headers, each with its length in units of 4 bytes and the type of the next one
        let mut next = if flags & 4 != 0 { *bytes.get(11)? } else { 0 };
        while next != 0 {
            let length = 4 * usize::from(*bytes.get(offset)?).max(1);
            next = *bytes.get(offset + length - 1)?;
            offset += length;
        }
    }
    Some(offset)
}
