//! RTCP packets (RFC 3550 section 6, RFC 3611), feedback messages (RFC 4585, 5104, 6679, 8888 and two drafts), and compound
//! packets.

mod ccfb;
mod contents;
mod ecn;
mod feedback;
mod remb;
mod reports;
mod session;
mod twcc;

pub use ccfb::{Arrival, Ccfb, Metric, StreamMetrics};
pub use contents::Contents;
pub use ecn::{EcnCounters, EcnFeedback, ExtendedReport, ReportExtension};
pub use feedback::{Fir, FirEntry, Nack, NackPair, Pli, Sli, SliEntry};
pub use remb::Remb;
pub use reports::{ReceiverReport, ReportBlock, SenderReport};
pub use session::{App, Bye, Sdes, SdesChunk, SdesItem};
pub use twcc::{Status, Twcc, TwccArrival, TwccBuilder};

use super::Error;
use super::error::fit;
use super::reader::Reader;

/// Packet types (RFC 3550 section 12.1, RFC 4585 section 6.1).
mod packet_type {
    pub(super) const SR: u8 = 200;
    pub(super) const RR: u8 = 201;
    pub(super) const SDES: u8 = 202;
    pub(super) const BYE: u8 = 203;
    pub(super) const APP: u8 = 204;
    pub(super) const RTPFB: u8 = 205;
    pub(super) const PSFB: u8 = 206;
    /// RFC 3611 section 2.
    pub(super) const XR: u8 = 207;
}

/// Feedback message types.
mod format {
    /// RFC 4585 section 6.2.1.
    pub(super) const NACK: u8 = 1;
    /// RFC 6679 section 5.1.
    pub(super) const ECN: u8 = 8;
    /// RFC 8888 section 6.
    pub(super) const CCFB: u8 = 11;
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1.
    pub(super) const TWCC: u8 = 15;
    /// RFC 4585 section 6.3.1.
    pub(super) const PLI: u8 = 1;
    /// RFC 4585 section 6.3.2.
    pub(super) const SLI: u8 = 2;
    /// RFC 5104 section 4.3.1.
    pub(super) const FIR: u8 = 4;
    /// Application layer feedback, RFC 4585 section 6.4; REMB is one.
    pub(super) const AFB: u8 = 15;
}

/// RTCP packet of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Sender report.
    SenderReport(SenderReport),
    /// Receiver report.
    ReceiverReport(ReceiverReport),
    /// Source description.
    Sdes(Sdes),
    /// Goodbye.
    Bye(Bye),
    /// Application-defined.
    App(App),
    /// Generic negative acknowledgement.
    Nack(Nack),
    /// Picture loss indication.
    Pli(Pli),
    /// Slice loss indication.
    Sli(Sli),
    /// Full intra request.
    Fir(Fir),
    /// Receiver estimated maximum bitrate.
    Remb(Remb),
    /// Transport-wide feedback.
    Twcc(Twcc),
    /// RFC 8888 congestion control feedback.
    Ccfb(Ccfb),
    /// RFC 6679 ECN feedback.
    EcnFeedback(EcnFeedback),
    /// Extended report.
    ExtendedReport(ExtendedReport),
    /// Packet of another type, with its original bytes.
    Unknown(Unknown),
}

/// SSRC of the sender of a datagram: that of the first packet which has one.
#[must_use]
pub fn speaker(packets: &[Packet]) -> Option<u32> {
    packets.iter().find_map(|packet| match packet {
        Packet::SenderReport(report) => Some(report.ssrc),
        Packet::ReceiverReport(report) => Some(report.ssrc),
        Packet::Sdes(sdes) => sdes.chunks.first().map(|chunk| chunk.ssrc),
        Packet::Bye(bye) => bye.ssrcs.first().copied(),
        Packet::App(app) => Some(app.ssrc),
        Packet::Nack(nack) => Some(nack.sender_ssrc),
        Packet::Pli(pli) => Some(pli.sender_ssrc),
        Packet::Sli(sli) => Some(sli.sender_ssrc),
        Packet::Fir(fir) => Some(fir.sender_ssrc),
        Packet::Remb(remb) => Some(remb.sender_ssrc),
        Packet::Twcc(twcc) => Some(twcc.sender_ssrc),
        Packet::Ccfb(ccfb) => Some(ccfb.sender_ssrc),
        Packet::EcnFeedback(ecn) => Some(ecn.sender_ssrc),
        Packet::ExtendedReport(report) => Some(report.ssrc),
        // all types in use begin with it (RFC 3550 section 6, RFC 4585 section 6.1)
        Packet::Unknown(unknown) => unknown.body.first_chunk().map(|ssrc| u32::from_be_bytes(*ssrc)),
    })
}

/// RTCP packet of an unknown type or format, kept byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Padding bit.
    pub padding: bool,
    /// Five bits that are a count, a subtype or a format.
    pub count: u8,
    /// Packet type.
    pub packet_type: u8,
    /// Bytes after the first four, including padding; a multiple of four bytes.
    pub body: Vec<u8>,
}

/// Common header of an RTCP packet, and its body.
struct Frame<'a> {
    padding: bool,
    count: u8,
    packet_type: u8,
    /// Body with padding.
    raw: &'a [u8],
    /// Body without padding.
    body: Reader<'a>,
}

impl<'a> Frame<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let start = reader.offset();
        let first = reader.u8("RTCP header")?;
        if first >> 6 != 2 {
            return Err(Error::Invalid {
                field: "RTCP version",
                offset: start,
                value: u64::from(first >> 6),
            });
        }
        let padding = first & 0x20 != 0;
        let packet_type = reader.u8("RTCP packet type")?;
        let length = 4 * usize::from(reader.u16("RTCP length")?);
        let mut body = reader.part(length, "RTCP packet body")?;
        let raw = body.remaining();
        if padding {
            // RFC 3550 section 6.4.1: the last octet is the number of padding octets, including itself
            let last = raw.last().copied().unwrap_or(0);
            let unpadded = raw.len().checked_sub(usize::from(last)).filter(|_| last != 0);
            let unpadded = unpadded.ok_or(Error::Invalid {
                field: "RTCP padding count",
                offset: start + 3 + raw.len(),
                value: u64::from(last),
            })?;
            body = body.part(unpadded, "RTCP packet body")?;
        }
        Ok(Self { padding, count: first & 0x1f, packet_type, raw, body })
    }

    fn packet(mut self) -> Result<Packet, Error> {
        let (count, body) = (self.count, &mut self.body);
        Ok(match (self.packet_type, count) {
            (packet_type::SR, _) => Packet::SenderReport(SenderReport::parse(count, body)?),
            (packet_type::RR, _) => Packet::ReceiverReport(ReceiverReport::parse(count, body)?),
            (packet_type::SDES, _) => Packet::Sdes(Sdes::parse(count, body)?),
            (packet_type::BYE, _) => Packet::Bye(Bye::parse(count, body)?),
            (packet_type::APP, _) => Packet::App(App::parse(count, body)?),
            (packet_type::RTPFB, format::NACK) => Packet::Nack(Nack::parse(body)?),
            (packet_type::RTPFB, format::TWCC) => Packet::Twcc(Twcc::parse(body)?),
            (packet_type::RTPFB, format::CCFB) => Packet::Ccfb(Ccfb::parse(body)?),
            (packet_type::RTPFB, format::ECN) => Packet::EcnFeedback(EcnFeedback::parse(body)?),
            (packet_type::XR, _) => Packet::ExtendedReport(ExtendedReport::parse(body)?),
            (packet_type::PSFB, format::PLI) => Packet::Pli(Pli::parse(body)?),
            (packet_type::PSFB, format::SLI) => Packet::Sli(Sli::parse(body)?),
            (packet_type::PSFB, format::FIR) => Packet::Fir(Fir::parse(body)?),
            (packet_type::PSFB, format::AFB) if Remb::is_remb(body) => Packet::Remb(Remb::parse(body)?),
            _ => Packet::Unknown(Unknown {
                padding: self.padding,
                count,
                packet_type: self.packet_type,
                body: self.raw.to_vec(),
            }),
        })
    }
}

/// Parses a datagram: a compound, or one or more reduced-size packets (RFC 5506); see [`is_compound`].
///
/// # Errors
/// Fails if a packet is malformed, or if there is none.
pub fn decode(bytes: &[u8]) -> Result<Vec<Packet>, Error> {
    let mut reader = Reader::new(bytes);
    let mut packets = Vec::with_capacity(2);
    loop {
        packets.push(Frame::parse(&mut reader)?.packet()?);
        if reader.is_empty() {
            return Ok(packets);
        }
    }
}

/// Appends `packets` to `out` as one datagram. Only the last one is padded with the padding bit (RFC 3550
/// section 6.4.1).
///
/// # Errors
/// Fails if a value does not fit its field, or if there is no packet; `out` is then unchanged.
pub fn encode(packets: &[Packet], out: &mut Vec<u8>) -> Result<(), Error> {
    fit("number of RTCP packets", packets.len(), 1, usize::MAX)?;
    let start = out.len();
    let last = packets.len() - 1;
    let result = packets.iter().enumerate().try_for_each(|(index, packet)| packet.write(index == last, out));
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Whether `packets` form a compound by RFC 3550 section 6.1: a report first, and a source description with a CNAME.
/// Otherwise only RFC 5506 allows sending them.
#[must_use]
pub fn is_compound(packets: &[Packet]) -> bool {
    let report_first = matches!(packets.first(), Some(Packet::SenderReport(_) | Packet::ReceiverReport(_)));
    report_first
        && packets.iter().any(|packet| match packet {
            Packet::Sdes(sdes) => sdes.has_cname(),
            _ => false,
        })
}

impl Packet {
    /// Name of the five bits after version and padding, for errors.
    fn count_name(&self) -> &'static str {
        match self {
            Self::SenderReport(_) | Self::ReceiverReport(_) => "number of report blocks",
            Self::Sdes(_) => "number of SDES chunks",
            Self::Bye(_) => "number of BYE SSRCs",
            Self::App(_) => "APP subtype",
            _ => "RTCP count, subtype or format",
        }
    }

    fn write(&self, is_last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        use packet_type::{APP, BYE, PSFB, RR, RTPFB, SDES, SR, XR};
        let (count, packet_type) = match self {
            Self::SenderReport(report) => (report.blocks.len(), SR),
            Self::ReceiverReport(report) => (report.blocks.len(), RR),
            Self::Sdes(sdes) => (sdes.chunks.len(), SDES),
            Self::Bye(bye) => (bye.ssrcs.len(), BYE),
            Self::App(app) => (usize::from(app.subtype), APP),
            Self::Nack(_) => (usize::from(format::NACK), RTPFB),
            Self::Twcc(_) => (usize::from(format::TWCC), RTPFB),
            Self::Ccfb(_) => (usize::from(format::CCFB), RTPFB),
            Self::EcnFeedback(_) => (usize::from(format::ECN), RTPFB),
            // reserved: zero (RFC 3611 section 2)
            Self::ExtendedReport(_) => (0, XR),
            Self::Pli(_) => (usize::from(format::PLI), PSFB),
            Self::Sli(_) => (usize::from(format::SLI), PSFB),
            Self::Fir(_) => (usize::from(format::FIR), PSFB),
            Self::Remb(_) => (usize::from(format::AFB), PSFB),
            Self::Unknown(unknown) => (usize::from(unknown.count), unknown.packet_type),
        };
        let count = fit(self.count_name(), count, 0, 0x1f)? as u8;
        let start = out.len();
        out.extend_from_slice(&[0x80 | count, packet_type, 0, 0]);
        match self {
            Self::SenderReport(report) => report.write(out)?,
            Self::ReceiverReport(report) => report.write(out)?,
            Self::Sdes(sdes) => sdes.write(out)?,
            Self::Bye(bye) => bye.write(out)?,
            Self::App(app) => app.write(out)?,
            Self::Nack(nack) => nack.write(out)?,
            Self::Pli(pli) => pli.write(out),
            Self::Sli(sli) => sli.write(out)?,
            Self::Fir(fir) => fir.write(out)?,
            Self::Remb(remb) => remb.write(out)?,
            Self::Twcc(twcc) => twcc.write(out)?,
            Self::Ccfb(ccfb) => ccfb.write(out)?,
            Self::EcnFeedback(ecn) => ecn.write(out),
            Self::ExtendedReport(report) => report.write(out)?,
            Self::Unknown(unknown) => {
                fit("size of an unknown packet modulo 4", unknown.body.len() % 4, 0, 0)?;
                out.extend_from_slice(&unknown.body);
                out[start] |= u8::from(unknown.padding) << 5;
            }
        }
        // Only transport-wide feedback can end within a word. The last packet is padded with the P bit and a count, as in
        // libwebrtc and pion. Other packets must not have the P bit (RFC 3550 section 6.4.1) and get the draft's zeros,
        // which receivers skip, because the statuses determine the end of the deltas.
        let remainder = (out.len() - start) % 4;
        if remainder != 0 {
            let padding = 4 - remainder;
            out.resize(out.len() + padding, 0);
            if is_last {
                out[start] |= 0x20;
                if let Some(count) = out.last_mut() {
                    *count = padding as u8;
                }
            }
        }
        let words = fit("RTCP length in words", (out.len() - start) / 4 - 1, 0, usize::from(u16::MAX))?;
        out[start + 2..start + 4].copy_from_slice(&(words as u16).to_be_bytes());
        Ok(())
    }
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}
