//! Datagrams of RTP and RTCP as bytes: what is above UDP.

use crate::packetizer::{ABS_SEND_TIME_ID, Extensions, MARKS_ID, TRANSPORT_SEQUENCE_ID};
use tidegate_core::datagram::{Extension, Marks, Protected, RtpBody};
use tidegate_core::wire::{Error, descriptor, rtp};
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

/// Bytes of the RTP header of such a packet.
#[must_use]
pub fn header_len(body: &RtpBody, stamp: Option<&Extension>) -> u32 {
    let extensions = Extensions {
        transport_sequence: body.transport_sequence.is_some(),
        abs_send_time: body.abs_send_time.is_some(),
        marks: body.marks.is_some(),
    };
    extensions.header_len(body.marks, stamp)
}

/// The first bytes behind the fixed header of such a packet.
pub(crate) fn protected(body: &RtpBody, stamp: Option<&Extension>) -> Protected {
    let mut protected = Protected::default();
    let mut bytes = Vec::with_capacity(64);
    if header(body, stamp).encode(&mut bytes).is_ok() {
        protected.iter_mut().zip(&bytes[FIXED..]).for_each(|(place, byte)| *place = *byte);
    }
    protected
}

/// The marks in the first bytes behind the fixed header of a packet, if there are any.
pub(crate) fn marks(protected: &Protected) -> Option<Marks> {
    // a header around them: version 2, with extensions; zeros for what is cut off behind them
    let mut bytes = vec![0; FIXED + protected.len() + MOST_CUT_OFF];
    bytes[0] = 0x90;
    bytes[FIXED..FIXED + protected.len()].copy_from_slice(protected);
    let (header, _) = rtp::Header::decode(&bytes).ok()?;
    header.extension(MARKS_ID).and_then(|data| descriptor::read(data).ok())
}

/// Bytes of the fixed part of an RTP header (RFC 3550 section 5.1).
const FIXED: usize = 12;
/// What a stamp of 255 bytes may have beyond the bytes that parity protects.
const MOST_CUT_OFF: usize = 256;

/// Appends the bytes of a datagram of RTP or RTCP above UDP to `out`, in a packet with `overhead` bytes of IP and UDP
/// header. What a payload holds beyond the fields that are read is zeros.
///
/// # Errors
/// When a value does not fit its field; `out` is then as it was.
pub fn encode(datagram: &Datagram, overhead: u32, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    match &datagram.body {
        Body::Rtp(body) => {
            header(body, datagram.extension()).encode(out)?;
            if let Some(parity) = datagram.parity() {
                out.extend(parity.header(body.original));
            } else if body.original != 0 {
                out.extend(body.original.to_be_bytes());
            }
            out.resize(start + datagram.size.saturating_sub(overhead) as usize, 0);
            if let (1.., Some(last)) = (body.padding, out.last_mut()) {
                *last = body.padding;
            }
        }
        _ => out.extend(datagram.rtcp().unwrap_or_default()),
    }
    Ok(())
}
