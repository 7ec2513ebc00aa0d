//! Datagrams as bytes: the whole IP packet, whatever it carries.

mod media;

pub use media::header_len;
pub(crate) use media::{marks, protected};

use std::sync::Arc;
use tidegate_core::address::Service;
use tidegate_core::datagram::{Attachment, Opening, Protocol, SackBlocks, TcpBody};
use tidegate_core::wire::{Error, ip, tcp};
use tidegate_core::{Body, Datagram};

/// Appends the IP packet of a datagram to `out`. What is beyond the fields that are read is zeros.
///
/// Its size counts `overhead` bytes of headers below RTP and RTCP. The packet has 28 of IPv4 and UDP whatever that is:
/// it is as long as its size says where `overhead` is 28, as with all TCP and UDP that is no media.
///
/// # Errors
/// When a value does not fit its field, or the fields do not fit the size; `out` is then as it was.
pub fn encode(datagram: &Datagram, overhead: u32, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    let header = ip::Header {
        hosts: datagram.hosts,
        protocol: datagram.protocol(),
        ecn: datagram.ecn,
        dscp: datagram.dscp,
    };
    let (put, checksum) = match &datagram.body {
        Body::Tcp(body) => (put_tcp(datagram, body, out), tcp::CHECKSUM),
        _ => (put_udp(datagram, overhead, out), ip::UDP_CHECKSUM),
    };
    put.and_then(|()| header.put_before(out, start, checksum)).inspect_err(|_| out.truncate(start))
}

/// What is left of a datagram's size behind so many bytes of headers.
fn behind(headers: u32, datagram: &Datagram) -> Result<usize, Error> {
    let (least, found) = (headers.into(), datagram.size.into());
    let rest = datagram.size.checked_sub(headers).map(|rest| rest as usize);
    rest.ok_or(Error::Unfit { what: "bytes of a packet", found, least, most: u16::MAX.into() })
}

fn put_tcp(datagram: &Datagram, body: &TcpBody, out: &mut Vec<u8>) -> Result<(), Error> {
    let room = behind(tcp::HEADERS + u32::from(body.length), datagram)?;
    let sack = datagram.sack().copied().unwrap_or_default();
    let options = tcp::Options { opening: datagram.opening(), sack };
    tcp::put(body, datagram.ports, &options, room, out)?;
    out.resize(out.len() + usize::from(body.length), 0);
    Ok(())
}

fn put_udp(datagram: &Datagram, overhead: u32, out: &mut Vec<u8>) -> Result<(), Error> {
    let length = behind(overhead, datagram)?;
    ip::put_udp(datagram.ports, length, out)?;
    let payload = out.len();
    match &datagram.body {
        Body::Tagged(number) => {
            let (carried, cut) = number.split_at(length.min(number.len()));
            if cut.iter().any(|&byte| byte != 0) {
                let (found, most) = (u64::from_le_bytes(*number), (1 << (8 * carried.len())) - 1);
                return Err(Error::Unfit { what: "number of a tagged datagram", found, least: 0, most });
            }
            out.extend(carried);
        }
        Body::Rtp(_) | Body::Rtcp => media::encode(datagram, overhead, out)?,
        Body::Empty | Body::Tcp(_) => {}
    }
    if out.len() - payload > length {
        let (found, most) = ((out.len() - payload) as u64, length as u64);
        return Err(Error::Unfit { what: "bytes of payload", found, least: 0, most });
    }
    if datagram.body == Body::Rtcp && out.len() - payload < length {
        let (found, least) = ((out.len() - payload) as u64, length as u64);
        return Err(Error::Unfit { what: "bytes of RTCP", found, least, most: least });
    }
    out.resize(payload + length, 0);
    Ok(())
}

/// Reads the IP packet `bytes`, whose size counts `overhead` bytes of headers below RTP and RTCP.
///
/// # Errors
/// When the bytes are malformed, or belong to hosts that no flow has.
pub fn decode(bytes: &[u8], overhead: u32) -> Result<Datagram, Error> {
    let header = ip::Header::decode(bytes)?;
    let content = &bytes[ip::IP_HEADER..];
    let read = match header.protocol {
        Protocol::Tcp => decode_tcp(&header, content)?,
        Protocol::Udp => {
            let ports = ip::decode_udp(&header, content)?;
            let payload = &content[ip::UDP_HEADER..];
            let below = bytes.len() - payload.len();
            Datagram {
                ports,
                ..decode_udp(&header, ports, payload, overhead).map_err(|error| error.after(below))?
            }
        }
    };
    Ok(Datagram { hosts: header.hosts, ecn: header.ecn, dscp: header.dscp, ..read })
}

/// Appends what a datagram of RTP or RTCP carries above UDP to `out`: for a socket, which has headers of its own. Its size
/// counts `overhead` bytes of headers below RTP and RTCP. What is beyond the fields that are read is zeros.
///
/// # Errors
/// When a value does not fit its field, or the fields do not fit the size; `out` is then as it was.
pub fn encode_payload(datagram: &Datagram, overhead: u32, out: &mut Vec<u8>) -> Result<(), Error> {
    media::encode(datagram, overhead, out)
}

/// Reads what [`encode_payload`] writes; ports, hosts, ECN and DSCP are the socket's to say.
///
/// # Errors
/// When the bytes are malformed.
pub fn decode_payload(bytes: &[u8], overhead: u32) -> Result<Datagram, Error> {
    media::decode(bytes, overhead)
}

fn decode_tcp(header: &ip::Header, segment: &[u8]) -> Result<Datagram, Error> {
    let (ports, body, options) = tcp::decode(segment)?;
    if !header.checks(segment) {
        let offset = ip::IP_HEADER + tcp::CHECKSUM;
        let found = u16::from_be_bytes([segment[tcp::CHECKSUM], segment[tcp::CHECKSUM + 1]]);
        return Err(Error::Invalid { what: "TCP checksum", offset, found: found.into() });
    }
    let attachment = match options {
        tcp::Options { opening, .. } if opening != Opening::default() => Some(Attachment::Opening(opening)),
        tcp::Options { sack, .. } if sack != SackBlocks::default() => Some(Attachment::Sack(sack)),
        _ => None,
    };
    let size = (ip::IP_HEADER + segment.len()) as u32;
    let attachment = attachment.map(Arc::new);
    Ok(Datagram { size, ports, body: Body::Tcp(body), attachment, ..Datagram::default() })
}

fn decode_udp(
    header: &ip::Header,
    ports: (u16, u16),
    payload: &[u8],
    overhead: u32,
) -> Result<Datagram, Error> {
    let service = match header.hosts {
        hosts if hosts.is_group() => Service::Rtp,
        hosts if hosts.is_back() => Service::at(ports.0),
        _ => Service::at(ports.1),
    };
    let body = match service {
        Service::Discard => Body::Empty,
        Service::Tagged => {
            let mut number = [0; 8];
            number.iter_mut().zip(payload).for_each(|(place, byte)| *place = *byte);
            Body::Tagged(number)
        }
        Service::Rtp | Service::Rtcp => return media::decode(payload, overhead),
    };
    Ok(Datagram { size: payload.len() as u32 + overhead, body, ..Datagram::default() })
}

#[cfg(test)]
mod tests;
