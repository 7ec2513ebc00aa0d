//! ECN counts of receivers (RFC 6679 section 5): the feedback packet, and the extended report (RFC 3611) with its summary.

use super::super::Error;
use super::super::error::fit;
use super::super::reader::Reader;
use super::{put16, put32};

/// Packets received of a stream since its start, by ECN field (RFC 6679 section 5.1). The short counters wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EcnCounters {
    /// Packets with ECT(0).
    pub ect0: u32,
    /// Packets with ECT(1).
    pub ect1: u32,
    /// Packets with congestion experienced, including duplicates.
    pub ce: u16,
    /// Packets that were not ECN-capable, or no longer so.
    pub not_ect: u16,
    /// Expected packets that have not arrived.
    pub lost: u16,
    /// Duplicates.
    pub duplicated: u16,
}

impl EcnCounters {
    fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            ect0: body.u32("ECT(0) counter")?,
            ect1: body.u32("ECT(1) counter")?,
            ce: body.u16("ECN-CE counter")?,
            not_ect: body.u16("not-ECT counter")?,
            lost: body.u16("lost packets counter")?,
            duplicated: body.u16("duplication counter")?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        put32(out, self.ect0);
        put32(out, self.ect1);
        [self.ce, self.not_ect, self.lost, self.duplicated].into_iter().for_each(|count| put16(out, count));
    }
}

/// ECN feedback packet (RFC 6679 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EcnFeedback {
    /// SSRC of the receiver.
    pub sender_ssrc: u32,
    /// SSRC of the stream.
    pub media_ssrc: u32,
    /// Extended highest sequence number received.
    pub highest_sequence: u32,
    /// Packets received up to it.
    pub counters: EcnCounters,
}

impl EcnFeedback {
    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let packet = Self {
            sender_ssrc: body.u32("ECN feedback sender SSRC")?,
            media_ssrc: body.u32("ECN feedback media SSRC")?,
            highest_sequence: body.u32("extended highest sequence number")?,
            counters: EcnCounters::parse(body)?,
        };
        body.end("number of bytes after an ECN feedback packet")?;
        Ok(packet)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put32(out, self.sender_ssrc);
        put32(out, self.media_ssrc);
        put32(out, self.highest_sequence);
        self.counters.write(out);
    }
}

/// Extended report (RFC 3611 section 2).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ExtendedReport {
    /// SSRC of the reporter.
    pub ssrc: u32,
    /// Report blocks.
    pub blocks: Vec<ReportExtension>,
}

/// Block of an extended report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportExtension {
    /// ECN summary (RFC 6679 section 5.2): SSRCs with the packets received of them.
    EcnSummary(Vec<(u32, EcnCounters)>),
    /// Unknown block with its original bytes. An ECN summary with a wrong length, which has to be discarded, is one, too.
    Unknown {
        /// Block type, BT.
        block_type: u8,
        /// Byte that is specific to the type.
        specific: u8,
        /// Contents, a multiple of four bytes.
        data: Vec<u8>,
    },
}

/// BT of an ECN summary.
const ECN_SUMMARY: u8 = 13;
/// 32-bit words of each entry of an ECN summary.
const SUMMARY_WORDS: usize = 5;

impl ReportExtension {
    fn parse(block_type: u8, specific: u8, mut data: Reader<'_>) -> Result<Self, Error> {
        if block_type != ECN_SUMMARY || !data.len().is_multiple_of(4 * SUMMARY_WORDS) {
            return Ok(Self::Unknown { block_type, specific, data: data.remaining().to_vec() });
        }
        let mut summary = Vec::with_capacity(data.len() / (4 * SUMMARY_WORDS));
        while !data.is_empty() {
            summary.push((data.u32("ECN summary SSRC")?, EcnCounters::parse(&mut data)?));
        }
        Ok(Self::EcnSummary(summary))
    }

    /// Block type, type-specific byte, and contents.
    fn raw(&self) -> (u8, u8, Vec<u8>) {
        match self {
            Self::EcnSummary(summary) => {
                let mut data = Vec::with_capacity(summary.len() * 4 * SUMMARY_WORDS);
                for (ssrc, counters) in summary {
                    put32(&mut data, *ssrc);
                    counters.write(&mut data);
                }
                (ECN_SUMMARY, 0, data)
            }
            Self::Unknown { block_type, specific, data } => (*block_type, *specific, data.clone()),
        }
    }
}

impl ExtendedReport {
    /// Creates a report of raw blocks: type, type-specific byte, and contents.
    ///
    /// # Errors
    /// Fails if the contents of a block are not a multiple of four bytes.
    pub fn of_raw(ssrc: u32, blocks: Vec<(u8, u8, Vec<u8>)>) -> Result<Self, Error> {
        let block = |(block_type, specific, data): (u8, u8, Vec<u8>)| {
            fit("XR block size modulo 4", data.len() % 4, 0, 0)?;
            ReportExtension::parse(block_type, specific, Reader::new(&data))
        };
        Ok(Self { ssrc, blocks: blocks.into_iter().map(block).collect::<Result<_, _>>()? })
    }

    /// Raw blocks: type, type-specific byte, and contents.
    #[must_use]
    pub fn raw(&self) -> Vec<(u8, u8, Vec<u8>)> {
        self.blocks.iter().map(ReportExtension::raw).collect()
    }

    pub(super) fn parse(body: &mut Reader<'_>) -> Result<Self, Error> {
        let ssrc = body.u32("XR SSRC")?;
        let mut blocks = Vec::new();
        while !body.is_empty() {
            let block_type = body.u8("XR block type")?;
            let specific = body.u8("XR block's specific byte")?;
            let words = usize::from(body.u16("XR block length")?);
            blocks.push(ReportExtension::parse(block_type, specific, body.part(4 * words, "XR block")?)?);
        }
        Ok(Self { ssrc, blocks })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        put32(out, self.ssrc);
        for (block_type, specific, data) in self.raw() {
            fit("XR block size modulo 4", data.len() % 4, 0, 0)?;
            let words = fit("XR block size in words", data.len() / 4, 0, u16::MAX.into())?;
            out.extend_from_slice(&[block_type, specific]);
            put16(out, words as u16);
            out.extend_from_slice(&data);
        }
        Ok(())
    }

    /// SSRCs and counters of the ECN summaries.
    pub fn ecn(&self) -> impl Iterator<Item = (u32, EcnCounters)> + '_ {
        self.blocks
            .iter()
            .flat_map(|block| match block {
                ReportExtension::EcnSummary(summary) => summary.as_slice(),
                ReportExtension::Unknown { .. } => &[],
            })
            .copied()
    }
}
