//! Properties that hold for any bytes: no panic, errors that point into the input, and values that survive encoding and
//! decoding. The fuzz targets call these functions, and so does `crates/core/tests/wire` with its own mutations.

use tidegate_core::wire::rtcp::{self, Packet};
use tidegate_core::wire::{Error, rtp};

/// A target in `fuzz_targets/`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// RTP headers.
    Rtp,
    /// Compound RTCP datagrams.
    Rtcp,
    /// Sender and receiver reports.
    SrRr,
    /// SDES, BYE and APP.
    SdesByeApp,
    /// NACK, PLI, SLI and FIR.
    NackPliFir,
    /// REMB.
    Remb,
    /// Transport-wide feedback.
    Twcc,
    /// RFC 8888 feedback.
    Ccfb,
    /// RFC 6679 feedback and extended reports.
    EcnXr,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 9] = [
        Self::Rtp,
        Self::Rtcp,
        Self::SrRr,
        Self::SdesByeApp,
        Self::NackPliFir,
        Self::Remb,
        Self::Twcc,
        Self::Ccfb,
        Self::EcnXr,
    ];

    /// (packet type, format) of the packets that a target puts its input into; no format where the five bits are a
    /// count. Empty for targets that take the input as it is.
    #[must_use]
    pub const fn kinds(self) -> &'static [(u8, Option<u8>)] {
        match self {
            Self::Rtp | Self::Rtcp => &[],
            Self::SrRr => &[(200, None), (201, None)],
            Self::SdesByeApp => &[(202, None), (203, None), (204, None)],
            Self::NackPliFir => &[(205, Some(1)), (206, Some(1)), (206, Some(2)), (206, Some(4))],
            Self::Remb => &[(206, Some(15))],
            Self::Twcc => &[(205, Some(15))],
            Self::Ccfb => &[(205, Some(11))],
            Self::EcnXr => &[(205, Some(8)), (207, None)],
        }
    }

    /// Checks `input`; returns whether it was well-formed.
    ///
    /// # Panics
    /// When a property does not hold.
    pub fn check(self, input: &[u8]) -> bool {
        match self {
            Self::Rtp => check_rtp(input),
            Self::Rtcp => check_rtcp(input),
            _ => check_rtcp(&self.frame(input)),
        }
    }

    /// Puts `input` into an RTCP packet with a header that fits it, so that fuzzing gets past the header at once: the
    /// first byte chooses the packet type, the second one gives the padding bit and the count, the rest is the body.
    #[must_use]
    pub fn frame(self, input: &[u8]) -> Vec<u8> {
        let kinds = self.kinds();
        let [choice, bits, body @ ..] = input else { return Vec::new() };
        let (packet_type, format) = kinds[usize::from(*choice) % kinds.len()];
        let words = (body.len() / 4).min(usize::from(u16::MAX));
        let count = format.unwrap_or(bits & 0x1f);
        let mut packet = vec![0x80 | (bits & 0x20) | count, packet_type];
        packet.extend_from_slice(&(words as u16).to_be_bytes());
        packet.extend_from_slice(&body[..4 * words]);
        packet
    }

    /// The inverse of [`Target::frame`] for a packet of this target, which makes the seeds of a corpus.
    #[must_use]
    pub fn unframe(self, packet: &[u8]) -> Option<Vec<u8>> {
        let [first, packet_type, _, _, body @ ..] = packet else { return None };
        let format = first & 0x1f;
        let fits = |&(kind, wanted): &(u8, Option<u8>)| {
            kind == *packet_type && wanted.is_none_or(|wanted| wanted == format)
        };
        let choice = self.kinds().iter().position(fits)?;
        let mut input = vec![choice as u8, first & 0x3f];
        input.extend_from_slice(body);
        Some(input)
    }
}

/// Checks that an error points into the input and can be printed.
fn check_error(error: Error, length: usize) {
    match error {
        Error::Truncated { offset, needed, available, .. } => {
            assert!(offset + available <= length && needed > available, "{error:?} in {length} bytes");
        }
        Error::Invalid { offset, .. } => assert!(offset < length, "{error:?} in {length} bytes"),
        Error::Unfit { .. } => panic!("{error:?} is no error of decoding"),
    }
    assert!(!error.to_string().is_empty());
}

fn check_rtp(input: &[u8]) -> bool {
    let (header, payload) = match rtp::Header::decode(input) {
        Ok(decoded) => decoded,
        Err(error) => {
            check_error(error, input.len());
            return false;
        }
    };
    assert_eq!(payload.end + usize::from(header.padding), input.len());
    let mut bytes = Vec::new();
    header.encode(&mut bytes).expect("a decoded header can be encoded");
    assert_eq!(bytes.len(), header.encoded_len());
    bytes.extend_from_slice(&input[payload.start..]);
    let (again, payload_again) = rtp::Header::decode(&bytes).expect("an encoded header can be decoded");
    assert_eq!(again, header);
    assert_eq!(bytes[payload_again], input[payload]);
    for element in &header.extensions {
        let _ = (rtp::read_transport_sequence(&element.data), rtp::read_abs_send_time(&element.data));
    }
    true
}

fn check_rtcp(input: &[u8]) -> bool {
    let packets = match rtcp::decode(input) {
        Ok(packets) => packets,
        Err(error) => {
            check_error(error, input.len());
            return false;
        }
    };
    let mut bytes = Vec::new();
    rtcp::encode(&packets, &mut bytes).expect("decoded packets can be encoded");
    let again = rtcp::decode(&bytes).expect("encoded packets can be decoded");
    assert_eq!(again, packets);
    let mut bytes_again = Vec::new();
    rtcp::encode(&again, &mut bytes_again).expect("decoded packets can be encoded");
    assert_eq!(bytes_again, bytes);
    assert!(!rtcp::is_compound(&packets) || rtcp::Contents::of(&packets).bits() & 0b111 > 0b100);
    packets.iter().for_each(check_reading);
    true
}

/// Checks the methods of decoded packets.
fn check_reading(packet: &Packet) {
    match packet {
        Packet::Nack(nack) => {
            let lost: Vec<u16> = nack.lost().collect();
            let bits: u32 = nack.pairs.iter().map(|pair| 1 + pair.blp.count_ones()).sum();
            assert_eq!(lost.len(), bits as usize);
            if lost.is_sorted_by(|a, b| a < b) {
                let again = rtcp::Nack::new(nack.sender_ssrc, nack.media_ssrc, &lost);
                assert!(again.lost().eq(lost));
                assert!(again.pairs.len() <= nack.pairs.len());
            }
        }
        Packet::Twcc(twcc) => {
            assert_eq!(twcc.arrivals().count(), twcc.packets.len());
            let near = i64::from(twcc.feedback_count) << 24;
            assert!((twcc.reference(near) - near).abs() <= 1 << 23);
        }
        Packet::Ccfb(ccfb) => {
            for stream in &ccfb.streams {
                assert_eq!(stream.packets().count(), stream.metrics.len());
                for metric in &stream.metrics {
                    let (rtcp::Metric::Received { ecn, offset }, Some(ago)) = (*metric, metric.ago()) else {
                        continue;
                    };
                    // the longest one ends in half a nanosecond, and is out of range when rounded up
                    if offset < 8189 {
                        assert_eq!(rtcp::Metric::received(ecn, ago), *metric);
                    }
                }
            }
        }
        Packet::ExtendedReport(report) => {
            let again = rtcp::ExtendedReport::of_raw(report.ssrc, report.raw());
            assert_eq!(again.as_ref(), Ok(report));
        }
        Packet::Remb(remb) => assert_eq!(rtcp::Remb::carried(remb.bitrate), remb.bitrate),
        _ => {}
    }
}
