//! Datagrams of RTP and RTCP as bytes: what is above UDP.

use crate::packetizer::{ABS_SEND_TIME_ID, TRANSPORT_SEQUENCE_ID};
use tidegate_core::datagram::{Extension, RtpBody};
use tidegate_core::wire::{Error, rtp};
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
