//! Names of what is in captures beside RTP and RTCP.

use super::layers::Datagram;
use super::streams::{Kind, kind};
use super::turn;
use std::borrow::Cow;

/// UDP ports (IANA) whose protocols do not tell themselves by their first bytes.
const PORTS: [(u16, &str); 21] = [
    (53, "DNS"),
    (5353, "mDNS"),
    (5355, "LLMNR"),
    (67, "DHCP"),
    (68, "DHCP"),
    (546, "DHCPv6"),
    (547, "DHCPv6"),
    (123, "NTP"),
    (137, "NetBIOS"),
    (138, "NetBIOS"),
    (161, "SNMP"),
    (500, "IKE"),
    (4500, "IPsec"),
    (514, "syslog"),
    (1900, "SSDP"),
    (2049, "NFS"),
    (47808, "BACnet"),
    (51820, "WireGuard"),
    (1194, "OpenVPN"),
    // RFC 2974 section 3
    (9875, "SAP"),
    (443, "QUIC"),
];

/// Beginning of the name of an unknown protocol.
pub(super) const UNKNOWN: &str = "datagrams to port ";

/// Names the protocol of a datagram that is not RTP, by its port or its first bytes (RFC 7983 section 7).
pub(super) fn protocol(datagram: &Datagram<'_>) -> Cow<'static, str> {
    let payload = &datagram.payload[..];
    let ports = [datagram.from.port(), datagram.to.port()];
    if turn::is_stun(payload) {
        return "STUN".into();
    }
    if let Some(&(_, name)) = PORTS.iter().find(|(port, _)| ports.contains(port)) {
        return name.into();
    }
    let is_text = |word: &[u8]| payload.windows(word.len()).take(200).any(|window| window == word);
    match payload {
        // content type and version (RFC 6347 section 4.1)
        [20..=63, 0xfe, ..] => "DTLS".into(),
        [16..=19, _, _, _, b'Z', b'R', b'T', b'P', ..] => "ZRTP".into(),
        // version 1 (RFC 9000 section 17.2), or version 2 (RFC 9369)
        [192..=255, 0, 0, 0, 1, ..] | [192..=255, 0x6b, 0x33, 0x43, 0xcf, ..] => "QUIC".into(),
        // without the cookie (RFC 3489 section 11.1): a length of all that follows
        &[0..=1, _, high, low, ..] if usize::from(u16::from_be_bytes([high, low])) + 20 == payload.len() => {
            "STUN".into()
        }
        [b'A'..=b'Z', ..] if is_text(b"SIP/2.0") => "SIP".into(),
        [b'A'..=b'Z', ..] if is_text(b"RTSP/") => "RTSP".into(),
        [b'A'..=b'Z', ..] if is_text(b"HTTP/1") => "SSDP".into(),
        // the types that RFC 3550, RFC 4585 and RFC 3611 define
        &[_, 200..=207, high, low, ..]
            if kind(payload) == Kind::Rtcp
                && 4 * usize::from(u16::from_be_bytes([high, low])) < payload.len() =>
        {
            "RTCP of no call".into()
        }
        [] => "empty datagrams".into(),
        _ => format!("{UNKNOWN}{}", datagram.to.port()).into(),
    }
}

/// A count and the name of what is counted, which is plural where it is no abbreviation.
pub(super) fn counted(count: usize, name: &str) -> String {
    /// Words of names, and the same of a single frame or packet.
    const SINGULAR: [(&str, &str); 9] = [
        ("frames that end ", "frame that ends "),
        ("frames that were ", "frame that was "),
        ("packets that are ", "packet that is "),
        ("frames", "frame"),
        ("datagrams", "datagram"),
        ("fragments", "fragment"),
        ("packets", "packet"),
        ("streams", "stream"),
        ("tunnels", "tunnel"),
    ];
    let words = SINGULAR.iter().find(|(plural, _)| count == 1 && name.contains(plural));
    let name = words.map_or_else(|| name.to_owned(), |(plural, singular)| name.replacen(plural, singular, 1));
    format!("{count} {name}")
}
