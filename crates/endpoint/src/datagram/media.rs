//! RTP and RTCP as bytes: the payload of UDP.

use crate::packetizer::{ABS_SEND_TIME_ID, Extensions, MARKS_ID, TRANSPORT_SEQUENCE_ID};
use crate::settings::{PARITY_TYPE, RETRANSMISSION_TYPE};
use std::sync::Arc;
use tidegate_core::datagram::{Attachment, Extension, Parity, Protected, RtpBody};
use tidegate_core::frame::Marks;
use tidegate_core::wire::{Error, descriptor, rtcp, rtp};
use tidegate_core::{Body, Datagram};

/// The header of an RTP packet with its extensions.
fn header(body: &RtpBody, stamp: Option<&Extension>) -> rtp::Header {
    let mut extensions = Vec::new();
    if let Some(time) = body.abs_send_time {
        extensions.push(Extension { id: ABS_SEND_TIME_ID, data: time.to_vec() });
    }
    if let Some(sequence) = body.transport_sequence {
        extensions.push(rtp::transport_sequence(TRANSPORT_SEQUENCE_ID, sequence));
    }
    if let Some(marks) = body.marks {
        let (bytes, length) = descriptor::write(marks);
        extensions.push(Extension { id: MARKS_ID, data: bytes[..length].to_vec() });
    }
    extensions.extend(stamp.cloned());
    rtp::Header {
        padding: body.padding,
        marker: body.marker,
        payload_type: body.payload_type,
        sequence: body.sequence,
        timestamp: body.timestamp,
        ssrc: body.ssrc,
        csrcs: Vec::new(),
        extensions,
    }
}

/// Bytes of the RTP header of a packet with these fields and this stamp.
#[must_use]
pub fn header_len(body: &RtpBody, stamp: Option<&Extension>) -> u32 {
    let extensions = Extensions {
        transport_sequence: body.transport_sequence.is_some(),
        abs_send_time: body.abs_send_time.is_some(),
        marks: body.marks.is_some(),
    };
    extensions.header_len(body.marks, stamp)
}

/// The first bytes behind the fixed header of a packet with these fields and this stamp.
pub(crate) fn protected(body: &RtpBody, stamp: Option<&Extension>) -> Protected {
    let mut protected = Protected::default();
    let mut bytes = Vec::with_capacity(64);
    if header(body, stamp).encode(&mut bytes).is_ok() {
        protected.iter_mut().zip(&bytes[FIXED..]).for_each(|(target, byte)| *target = *byte);
    }
    protected
}

/// The marks in the first bytes behind the fixed header of a packet, if there are any.
pub(crate) fn marks(protected: &Protected) -> Option<Marks> {
    // a header around them: version 2, with extensions; zeros for the bytes that are cut off behind them
    let mut bytes = vec![0; FIXED + protected.len() + CUT_OFF_MAX];
    bytes[0] = 0x90;
    bytes[FIXED..FIXED + protected.len()].copy_from_slice(protected);
    let (header, _) = rtp::Header::decode(&bytes).ok()?;
    header.extension(MARKS_ID).and_then(|data| descriptor::read(data).ok())
}

/// Bytes of the fixed part of an RTP header (RFC 3550 section 5.1).
const FIXED: usize = 12;
/// Bytes that a stamp of 255 bytes may have beyond those that parity protects.
const CUT_OFF_MAX: usize = 256;

/// Appends the UDP payload of a datagram of RTP or RTCP to `out`, in a packet with `overhead` bytes of IP and UDP
/// header. Behind the fields of a payload are zeros.
///
/// # Errors
/// When a value does not fit its field, or the fields do not fit the size; `out` is then as it was.
pub(super) fn encode(datagram: &Datagram, overhead: u32, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    match &datagram.body {
        Body::Rtp(body) => {
            header(body, datagram.extension()).encode(out)?;
            write_fields(datagram, body, out);
            let (size, fields) = (datagram.size.saturating_sub(overhead), (out.len() - start) as u64);
            if let Some(parity) = datagram.parity() {
                out.extend(parity.protected);
            } else if fields > u64::from(size) {
                out.truncate(start);
                return Err(Error::Unfit {
                    field: "RTP fields size in bytes",
                    value: fields,
                    minimum: 0,
                    maximum: size.into(),
                });
            }
            out.resize(start + size as usize, 0);
            if let (1.., Some(last)) = (body.padding, out.last_mut()) {
                *last = body.padding;
            }
        }
        _ => out.extend(datagram.rtcp().unwrap_or_default()),
    }
    Ok(())
}

/// The fields at the beginning of the payload.
fn write_fields(datagram: &Datagram, body: &RtpBody, out: &mut Vec<u8>) {
    match datagram.attachment.as_deref() {
        Some(Attachment::Parity(parity, _)) => out.extend(parity.header(body.original)),
        Some(Attachment::Avoids(avoids)) => {
            out.extend((avoids.len() as u16).to_be_bytes());
            avoids.iter().for_each(|number| out.extend(number.to_be_bytes()));
        }
        _ if body.payload_type == RETRANSMISSION_TYPE => out.extend(body.original.to_be_bytes()),
        _ => {}
    }
}

/// Decodes the bytes of [`encode`]. Ports, ECN and DSCP are in the headers below, and stay at their defaults.
///
/// # Errors
/// When the bytes are malformed.
pub(super) fn decode(bytes: &[u8], overhead: u32) -> Result<Datagram, Error> {
    let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_add(overhead);
    // RFC 5761 section 4: the byte of RTP's marker and payload type tells RTCP from RTP
    if matches!(bytes.get(1), Some(192..=223)) {
        rtcp::decode(bytes)?;
        let attachment = Some(Arc::new(Attachment::Rtcp(bytes.to_vec())));
        return Ok(Datagram { size, body: Body::Rtcp, attachment, ..Datagram::default() });
    }
    let (header, payload) = rtp::Header::decode(bytes)?;
    let payload = &bytes[payload];
    let mut body = RtpBody {
        timestamp: header.timestamp,
        ssrc: header.ssrc,
        sequence: header.sequence,
        payload_type: header.payload_type,
        padding: header.padding,
        marker: header.marker,
        ..RtpBody::default()
    };
    let mut stamp = None;
    for element in header.extensions {
        match element.id {
            ABS_SEND_TIME_ID => body.abs_send_time = element.data.first_chunk().copied(),
            TRANSPORT_SEQUENCE_ID => body.transport_sequence = rtp::read_transport_sequence(&element.data),
            MARKS_ID => body.marks = Some(descriptor::read(&element.data)?),
            _ => stamp = Some(element),
        }
    }
    let attachment = match header.payload_type {
        RETRANSMISSION_TYPE => {
            body.original = u16::from_be_bytes(*field(payload, bytes, "original sequence number")?);
            stamp.map(Attachment::Extension)
        }
        PARITY_TYPE => {
            let fields: &[u8; Parity::HEADER as usize] = field(payload, bytes, "parity header")?;
            let (base, mut parity) = Parity::read(fields);
            let protected = &payload[fields.len()..];
            parity.protected.iter_mut().zip(protected).for_each(|(target, byte)| *target = *byte);
            body.original = base;
            Some(Attachment::Parity(parity, stamp))
        }
        _ => stamp.map(Attachment::Extension).or_else(|| avoids(payload).map(Attachment::Avoids)),
    };
    Ok(Datagram { size, body: Body::Rtp(body), attachment: attachment.map(Arc::new), ..Datagram::default() })
}

/// The first `N` bytes of `payload`, the end of the datagram `bytes`; `name`: the name of the field in errors.
fn field<'a, const N: usize>(
    payload: &'a [u8],
    bytes: &[u8],
    name: &'static str,
) -> Result<&'a [u8; N], Error> {
    let (offset, length) = (bytes.len() - payload.len(), payload.len());
    payload.first_chunk().ok_or(Error::Truncated { field: name, offset, needed: N, available: length })
}

/// The numbers of the losses that a segment of a picture avoids, if any, which follow their count. Payloads of other
/// packets begin with zeros.
fn avoids(payload: &[u8]) -> Option<Vec<u16>> {
    let (count, rest) = payload.split_first_chunk()?;
    let count = usize::from(u16::from_be_bytes(*count));
    let numbers = rest.get(..2 * count).filter(|_| count > 0)?;
    Some(numbers.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tidegate_core::frame::Position;
    use tidegate_core::rng::Stream;

    pub(in super::super) fn random(rng: &mut Stream) -> Datagram {
        let bits = rng.next_u64();
        let maybe = |bit: u32| bits >> bit & 1 == 1;
        let kind = bits % 5;
        let mut body = RtpBody {
            timestamp: (bits >> 7) as u32,
            ssrc: (bits >> 31) as u32,
            sequence: (bits >> 13) as u16,
            transport_sequence: maybe(1).then_some((bits >> 17) as u16),
            abs_send_time: maybe(2).then_some([bits as u8, 7, 9]),
            payload_type: [96, 111, 127, RETRANSMISSION_TYPE, PARITY_TYPE][kind as usize],
            marker: maybe(3),
            ..RtpBody::default()
        };
        body.marks = maybe(4)
            .then(|| Marks::new((bits >> 40) as u16, Position::from_bits((bits >> 5) as u8), maybe(8), 0));
        let stamp = maybe(9).then(|| Extension {
            id: 7 + (bits >> 10 & 15) as u8,
            data: vec![3; (bits >> 20 & 31) as usize + 1],
        });
        let attachment = match kind {
            4 => {
                let mut parity = Parity {
                    offset: 2,
                    count: 5,
                    payload_type: 96,
                    length: 77,
                    timestamp: 5,
                    ..Parity::default()
                };
                parity.protected.fill_with(|| rng.next_u64() as u8);
                Some(Attachment::Parity(parity, stamp.clone()))
            }
            0 if maybe(11) && stamp.is_none() => Some(Attachment::Avoids(vec![1, 65_535, bits as u16])),
            _ => stamp.clone().map(Attachment::Extension),
        };
        body.padding = if kind == 2 { 1 + (bits >> 50) as u8 % 200 } else { 0 };
        body.original = if kind >= 3 { (bits >> 22) as u16 } else { 0 };
        let payload = if kind == 2 { u32::from(body.padding) } else { 100 };
        let size = header_len(&body, stamp.as_ref()) + payload + 28;
        Datagram { size, body: Body::Rtp(body), attachment: attachment.map(Arc::new), ..Datagram::default() }
    }

    #[test]
    fn datagrams_survive_encoding_and_decoding() {
        let mut rng = Stream::new(3, "datagram", "test");
        for _ in 0..20_000 {
            let datagram = random(&mut rng);
            let mut bytes = vec![0xaa];
            encode(&datagram, 28, &mut bytes).expect("it fits");
            assert_eq!(bytes.len() as u32, 1 + datagram.size - 28);
            assert_eq!(decode(&bytes[1..], 28), Ok(datagram));
        }
    }

    #[test]
    fn spoiled_bytes_are_errors_or_other_datagrams() {
        let mut rng = Stream::new(4, "datagram", "test");
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            encode(&random(&mut rng), 28, &mut bytes).expect("it fits");
            for _ in 0..=rng.below(3) {
                let index = rng.below(bytes.len().min(64) as u64) as usize;
                if rng.below(4) == 0 {
                    bytes.truncate(index.max(1))
                } else {
                    bytes[index] = rng.next_u64() as u8
                }
                if bytes.len() < 2 {
                    break;
                }
            }
            match decode(&bytes, 28) {
                Ok(datagram) => {
                    assert_eq!(datagram.size as usize, bytes.len() + 28);
                    let mut again = Vec::new();
                    encode(&datagram, 28, &mut again).expect("a decoded datagram can be encoded");
                    assert_eq!(decode(&again, 28), Ok(datagram));
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        assert!(refused > 1000, "{refused}");
    }

    #[test]
    fn fields_that_do_not_fit_their_size_are_refused() {
        let body = RtpBody { payload_type: RETRANSMISSION_TYPE, ..RtpBody::default() };
        let datagram = |size| Datagram { size, body: Body::Rtp(body), ..Datagram::default() };
        let mut bytes = Vec::new();
        assert_eq!(encode(&datagram(28 + 14), 28, &mut bytes), Ok(()));
        let most = Error::Unfit { field: "RTP fields size in bytes", value: 14, minimum: 0, maximum: 13 };
        assert_eq!(encode(&datagram(28 + 13), 28, &mut bytes), Err(most));
        assert_eq!(bytes.len(), 14, "as it was");
    }
}
