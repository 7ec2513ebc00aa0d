//! Datagrams as bytes: the complete IP packet, with any payload.

mod media;

pub use media::header_len;
pub(crate) use media::{marks, protected};

use std::sync::Arc;
use tidegate_core::address::Service;
use tidegate_core::datagram::{Attachment, Protocol, TcpBody};
use tidegate_core::wire::{Error, ip, tcp};
use tidegate_core::{Body, Datagram};

/// Appends the IP packet of a datagram to `out`, with zeros behind its fields.
///
/// Its size counts `overhead` bytes of headers below RTP and RTCP. The packet always has 28 bytes of IPv4 and UDP
/// headers: its length equals the size if `overhead` is 28, as with TCP, and with UDP that carries no media.
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

/// Bytes of a datagram behind `headers` bytes of headers.
fn payload_room(headers: u32, datagram: &Datagram) -> Result<usize, Error> {
    let (min, size) = (headers.into(), datagram.size.into());
    let room = datagram.size.checked_sub(headers).map(|room| room as usize);
    room.ok_or(Error::Unfit {
        field: "packet size in bytes",
        value: size,
        minimum: min,
        maximum: u16::MAX.into(),
    })
}

fn put_tcp(datagram: &Datagram, body: &TcpBody, out: &mut Vec<u8>) -> Result<(), Error> {
    let room = payload_room(tcp::HEADERS + u32::from(body.length), datagram)?;
    tcp::put(body, datagram.ports, &datagram.options(), room, out)?;
    out.resize(out.len() + usize::from(body.length), 0);
    Ok(())
}

fn put_udp(datagram: &Datagram, overhead: u32, out: &mut Vec<u8>) -> Result<(), Error> {
    let length = payload_room(overhead, datagram)?;
    ip::put_udp(datagram.ports, length, out)?;
    let payload = out.len();
    match &datagram.body {
        Body::Tagged(number) => {
            let (carried, cut) = number.split_at(length.min(number.len()));
            if cut.iter().any(|&byte| byte != 0) {
                let (number, max) = (u64::from_le_bytes(*number), (1 << (8 * carried.len())) - 1);
                return Err(Error::Unfit {
                    field: "number of a tagged datagram",
                    value: number,
                    minimum: 0,
                    maximum: max,
                });
            }
            out.extend(carried);
        }
        Body::Rtp(_) | Body::Rtcp => media::encode(datagram, overhead, out)?,
        Body::Empty | Body::Tcp(_) => {}
    }
    if out.len() - payload > length {
        let (written, max) = ((out.len() - payload) as u64, length as u64);
        return Err(Error::Unfit {
            field: "payload size in bytes",
            value: written,
            minimum: 0,
            maximum: max,
        });
    }
    if datagram.body == Body::Rtcp && out.len() - payload < length {
        let (written, exact) = ((out.len() - payload) as u64, length as u64);
        return Err(Error::Unfit {
            field: "RTCP size in bytes",
            value: written,
            minimum: exact,
            maximum: exact,
        });
    }
    out.resize(payload + length, 0);
    Ok(())
}

/// Decodes the IP packet `bytes`, with a size that counts `overhead` bytes of headers below RTP and RTCP.
///
/// # Errors
/// When the bytes are malformed, or have hosts of no flow.
pub fn decode(bytes: &[u8], overhead: u32) -> Result<Datagram, Error> {
    let header = ip::Header::decode(bytes)?;
    let content = &bytes[ip::IP_HEADER..];
    let decoded = match header.protocol {
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
    Ok(Datagram { hosts: header.hosts, ecn: header.ecn, dscp: header.dscp, ..decoded })
}

/// Appends the UDP payload of a datagram of RTP or RTCP to `out`, with zeros behind its fields: for a socket, which
/// adds its own headers. Its size counts `overhead` bytes of headers below RTP and RTCP.
///
/// # Errors
/// When a value does not fit its field, or the fields do not fit the size; `out` is then as it was.
pub fn encode_payload(datagram: &Datagram, overhead: u32, out: &mut Vec<u8>) -> Result<(), Error> {
    media::encode(datagram, overhead, out)
}

/// Decodes the bytes of [`encode_payload`]; ports, hosts, ECN and DSCP are known to the socket only.
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
        let checksum = u16::from_be_bytes([segment[tcp::CHECKSUM], segment[tcp::CHECKSUM + 1]]);
        return Err(Error::Invalid { field: "TCP checksum", offset, value: checksum.into() });
    }
    let attachment = (!options.is_empty()).then(|| Arc::new(Attachment::Options(options)));
    let size = (ip::IP_HEADER + segment.len()) as u32;
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
        hosts if hosts.is_reverse() => Service::from_receiver_port(ports.0),
        _ => Service::from_receiver_port(ports.1),
    };
    let body = match service {
        Service::Discard => Body::Empty,
        Service::Tagged => {
            let mut number = [0; 8];
            number.iter_mut().zip(payload).for_each(|(target, byte)| *target = *byte);
            Body::Tagged(number)
        }
        Service::Rtp | Service::Rtcp => return media::decode(payload, overhead),
    };
    Ok(Datagram { size: (payload.len() as u32).saturating_add(overhead), body, ..Datagram::default() })
}

#[cfg(test)]
mod tests;
