//! Source descriptions, goodbyes, and application-defined packets (RFC 3550 sections 6.5 to 6.7).

use super::super::Error;
use super::super::error::fit;
use super::super::reader::Reader;
use super::put32;

/// Source description (RFC 3550 section 6.5).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sdes {
    /// Chunks of the sources, at most 31.
    pub chunks: Vec<SdesChunk>,
}

/// Description of a source.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SdesChunk {
    /// SSRC or CSRC.
    pub ssrc: u32,
    /// Items in the order on the wire.
    pub items: Vec<SdesItem>,
}

/// Item of a source description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SdesItem {
    /// Type: [`SdesItem::CNAME`] is 1, NAME 2, EMAIL 3 and so on, never 0.
    pub kind: u8,
    /// Text of at most 255 bytes; UTF-8 by the specification, which is not checked.
    pub text: Vec<u8>,
}

impl SdesItem {
    /// Type of the canonical name of an endpoint (RFC 3550 section 6.5.1).
    pub const CNAME: u8 = 1;
}

impl Sdes {
    /// Creates a source description with the canonical name of a source.
    #[must_use]
    pub fn cname(ssrc: u32, name: &str) -> Self {
        let item = SdesItem { kind: SdesItem::CNAME, text: name.into() };
        Self { chunks: vec![SdesChunk { ssrc, items: vec![item] }] }
    }

    /// Whether there is a canonical name.
    #[must_use]
    pub fn has_cname(&self) -> bool {
        self.chunks.iter().flat_map(|chunk| &chunk.items).any(|item| item.kind == SdesItem::CNAME)
    }

    pub(super) fn parse(count: u8, body: &mut Reader<'_>) -> Result<Self, Error> {
        let chunks = (0..count).map(|_| SdesChunk::parse(body)).collect::<Result<_, _>>()?;
        body.end("number of bytes after the last SDES chunk")?;
        Ok(Self { chunks })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        for chunk in &self.chunks {
            let start = out.len();
            put32(out, chunk.ssrc);
            for item in &chunk.items {
                fit("SDES item type", usize::from(item.kind), 1, 255)?;
                put_text(&item.text, out, Some(item.kind), "SDES item size in bytes")?;
            }
            // one to four null octets end the list and pad the word
            out.resize(out.len() + 4 - (out.len() - start) % 4, 0);
        }
        Ok(())
    }
}

impl SdesChunk {
    fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let start = body.offset();
        let ssrc = body.u32("SDES chunk SSRC")?;
        let mut items = Vec::new();
        loop {
            let kind = body.u8("SDES item type")?;
            if kind == 0 {
                break;
            }
            let length = usize::from(body.u8("SDES item length")?);
            items.push(SdesItem { kind, text: body.take(length, "SDES item text")?.to_vec() });
        }
        let fill = (4 - (body.offset() - start) % 4) % 4;
        body.take(fill, "SDES chunk padding")?;
        Ok(Self { ssrc, items })
    }
}

/// Goodbye (RFC 3550 section 6.6).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bye {
    /// Sources that leave, at most 31.
    pub ssrcs: Vec<u32>,
    /// Reason of at most 255 bytes; UTF-8 by the specification, which is not checked. An empty reason differs from none.
    pub reason: Option<Vec<u8>>,
}

impl Bye {
    pub(super) fn parse(count: u8, body: &mut Reader<'_>) -> Result<Self, Error> {
        let ssrcs = (0..count).map(|_| body.u32("BYE SSRC")).collect::<Result<_, _>>()?;
        let mut reason = None;
        if !body.is_empty() {
            let length = usize::from(body.u8("BYE reason length")?);
            reason = Some(body.take(length, "BYE reason")?.to_vec());
            body.take((3 - length % 4).min(body.len()), "BYE padding")?;
            body.end("number of bytes after the BYE reason")?;
        }
        Ok(Self { ssrcs, reason })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        for &ssrc in &self.ssrcs {
            put32(out, ssrc);
        }
        if let Some(reason) = &self.reason {
            put_text(reason, out, None, "BYE reason size in bytes")?;
            out.resize(out.len() + 3 - reason.len() % 4, 0);
        }
        Ok(())
    }
}

fn put_text(text: &[u8], out: &mut Vec<u8>, kind: Option<u8>, field: &'static str) -> Result<(), Error> {
    let length = fit(field, text.len(), 0, 255)? as u8;
    out.extend(kind);
    out.push(length);
    out.extend_from_slice(text);
    Ok(())
}

/// Application-defined packet (RFC 3550 section 6.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Five bits for the application's use.
    pub subtype: u8,
    /// SSRC of the sender.
    pub ssrc: u32,
    /// Name of four ASCII characters.
    pub name: [u8; 4],
    /// Data, a multiple of four bytes.
    pub data: Vec<u8>,
}

impl App {
    pub(super) fn parse(subtype: u8, body: &mut Reader<'_>) -> Result<Self, Error> {
        let ssrc = body.u32("APP SSRC")?;
        let name = body.u32("APP name")?.to_be_bytes();
        let length = body.len();
        if !length.is_multiple_of(4) {
            return Err(Error::Invalid {
                field: "APP data size in bytes",
                offset: body.offset(),
                value: length as u64,
            });
        }
        Ok(Self { subtype, ssrc, name, data: body.take(length, "APP data")?.to_vec() })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        put32(out, self.ssrc);
        out.extend_from_slice(&self.name);
        fit("APP data size modulo 4", self.data.len() % 4, 0, 0)?;
        out.extend_from_slice(&self.data);
        Ok(())
    }
}
