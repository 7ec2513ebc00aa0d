//! RTP headers (RFC 3550 section 5.1) and their extensions (RFC 8285).

use super::Error;
use super::error::fit;
use super::reader::Reader;
use crate::datagram::Extension;
use crate::units::Time;
use core::ops::Range;

/// "Defined by profile" value of one-byte extension elements (RFC 8285 section 4.2).
const ONE_BYTE: u16 = 0xbede;
/// "Defined by profile" value of two-byte elements; the four lowest bits are the application's (section 4.3).
const TWO_BYTE: u16 = 0x1000;

/// RTP header (RFC 3550 section 5.1) of version 2.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Header {
    /// Bytes of padding after the payload, whose last byte contains this number; zero for none (and no P bit).
    pub padding: u8,
    /// Marker bit: for video, the last packet of a frame.
    pub marker: bool,
    /// Payload type, seven bits.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp in units of the payload type's clock.
    pub timestamp: u32,
    /// SSRC of the stream.
    pub ssrc: u32,
    /// Contributing sources, at most 15.
    pub csrcs: Vec<u32>,
    /// Extension elements in the order on the wire. They are encoded with one-byte headers if all have an identifier of 1 to
    /// 14 and 1 to 16 bytes of data, else with two-byte headers, for identifiers of 1 to 255 and up to 255 bytes. Other
    /// kinds of extension are skipped in decoding.
    pub extensions: Vec<Extension>,
}

impl Header {
    /// Encoded length of the header, without payload and padding, bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        12 + 4 * self.csrcs.len() + encoded_extensions_len(&self.extensions)
    }

    /// Appends the header to `out`. The caller has to append payload and padding.
    ///
    /// # Errors
    /// Fails if a value does not fit its field; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let csrcs = fit("number of CSRCs", self.csrcs.len(), 0, 15)? as u8;
        let payload_type = fit("payload type", usize::from(self.payload_type), 0, 0x7f)? as u8;
        for element in &self.extensions {
            fit("identifier of an extension element", usize::from(element.id), 1, 255)?;
            fit("extension element size in bytes", element.data.len(), 0, 255)?;
        }
        let bytes = encoded_extensions_len(&self.extensions).saturating_sub(4);
        let words = fit("RTP extension length in words", bytes / 4, 0, usize::from(u16::MAX))? as u16;

        let padding = u8::from(self.padding != 0) << 5;
        let extension = u8::from(!self.extensions.is_empty()) << 4;
        out.push(0x80 | padding | extension | csrcs);
        out.push(u8::from(self.marker) << 7 | payload_type);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.ssrc.to_be_bytes());
        for csrc in &self.csrcs {
            out.extend_from_slice(&csrc.to_be_bytes());
        }
        if !self.extensions.is_empty() {
            let one_byte = fits_one_byte(&self.extensions);
            out.extend_from_slice(&if one_byte { ONE_BYTE } else { TWO_BYTE }.to_be_bytes());
            out.extend_from_slice(&words.to_be_bytes());
            let end = out.len() + bytes;
            for Extension { id, data } in &self.extensions {
                let length = data.len() as u8;
                if one_byte {
                    out.push(id << 4 | (length - 1));
                } else {
                    out.extend_from_slice(&[*id, length]);
                }
                out.extend_from_slice(data);
            }
            out.resize(end, 0);
        }
        Ok(())
    }

    /// Parses the header of the packet `bytes`, and returns it with the range of the payload.
    ///
    /// # Errors
    /// Fails if the packet is malformed.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Range<usize>), Error> {
        let mut reader = Reader::new(bytes);
        let first = reader.u8("RTP header")?;
        if first >> 6 != 2 {
            return Err(Error::Invalid { field: "RTP version", offset: 0, value: u64::from(first >> 6) });
        }
        let second = reader.u8("RTP marker and payload type")?;
        let mut header = Self {
            marker: second & 0x80 != 0,
            payload_type: second & 0x7f,
            sequence: reader.u16("RTP sequence number")?,
            timestamp: reader.u32("RTP timestamp")?,
            ssrc: reader.u32("RTP SSRC")?,
            ..Self::default()
        };
        header.csrcs = (0..first & 0x0f).map(|_| reader.u32("RTP CSRC")).collect::<Result<_, _>>()?;
        if first & 0x10 != 0 {
            let profile = reader.u16("RTP extension profile")?;
            let words = usize::from(reader.u16("RTP extension length")?);
            let extension = reader.part(4 * words, "RTP extension")?;
            header.extensions = parse_extensions(profile, extension)?;
        }
        if first & 0x20 != 0 {
            let remaining = reader.remaining();
            let count = remaining.last().copied().unwrap_or(0);
            if count == 0 || usize::from(count) > remaining.len() {
                let offset = bytes.len() - 1;
                return Err(Error::Invalid { field: "RTP padding count", offset, value: u64::from(count) });
            }
            header.padding = count;
        }
        let payload = reader.offset()..bytes.len() - usize::from(header.padding);
        Ok((header, payload))
    }

    /// Data of the first extension element with the identifier `id`.
    #[must_use]
    pub fn extension(&self, id: u8) -> Option<&[u8]> {
        self.extensions.iter().find(|element| element.id == id).map(|element| element.data.as_slice())
    }
}

/// Encoded length of `extensions` in an RTP header, including the four bytes before them; zero for none.
#[must_use]
pub fn encoded_extensions_len(extensions: &[Extension]) -> usize {
    if extensions.is_empty() {
        return 0;
    }
    let overhead = if fits_one_byte(extensions) { 1 } else { 2 };
    let bytes: usize = extensions.iter().map(|element| overhead + element.data.len()).sum();
    4 + bytes.next_multiple_of(4)
}

fn fits_one_byte(extensions: &[Extension]) -> bool {
    extensions.iter().all(|e| (1..=14).contains(&e.id) && (1..=16).contains(&e.data.len()))
}

fn parse_extensions(profile: u16, mut body: Reader<'_>) -> Result<Vec<Extension>, Error> {
    let mut elements = Vec::new();
    let one_byte = profile == ONE_BYTE;
    if !one_byte && profile & 0xfff0 != TWO_BYTE {
        // RFC 3550 section 5.3.1: an unknown extension may be ignored
        return Ok(elements);
    }
    while !body.is_empty() {
        let first = body.u8("extension element header")?;
        if first == 0 {
            continue;
        }
        let (id, length) = if one_byte {
            let (id, length) = (first >> 4, first & 0x0f);
            // RFC 8285 section 4.2: both end the list, regardless of what follows
            if id == 15 || id == 0 {
                break;
            }
            (id, usize::from(length) + 1)
        } else {
            (first, usize::from(body.u8("extension element length")?))
        };
        elements.push(Extension { id, data: body.take(length, "extension element")?.to_vec() });
    }
    Ok(elements)
}

/// Encodes the transport-wide sequence number as an extension element
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 2).
#[must_use]
pub fn transport_sequence(id: u8, sequence: u16) -> Extension {
    Extension { id, data: sequence.to_be_bytes().to_vec() }
}

/// Parses the transport-wide sequence number in an element's data: two bytes, or the first two of the four bytes of the
/// second version.
#[must_use]
pub fn read_transport_sequence(data: &[u8]) -> Option<u16> {
    match *data {
        [high, low] | [high, low, _, _] => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

/// Converts a time to abs-send-time: seconds in 6.18 fixed point, 24 bits (wraps every 64 s). Rounded down to
/// microseconds and then to 2^-18 s, as in libwebrtc (`AbsoluteSendTime::To24Bits`).
#[must_use]
pub const fn abs_send_time(time: Time) -> u32 {
    let micros = time.as_nanos().div_euclid(1_000).rem_euclid(64_000_000);
    ((micros << 18) / 1_000_000) as u32
}

/// Encodes a time as an extension element with abs-send-time.
#[must_use]
pub fn abs_send_time_element(id: u8, time: Time) -> Extension {
    let [_, high, middle, low] = abs_send_time(time).to_be_bytes();
    Extension { id, data: vec![high, middle, low] }
}

/// Parses the abs-send-time in an element's data, in 2^-18 s.
#[must_use]
pub fn read_abs_send_time(data: &[u8]) -> Option<u32> {
    match *data {
        [high, middle, low] => Some(u32::from_be_bytes([0, high, middle, low])),
        _ => None,
    }
}
