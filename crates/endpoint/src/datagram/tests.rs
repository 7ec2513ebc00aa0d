use super::*;
use tidegate_core::address::Direction;
use tidegate_core::datagram::{Opening, SackBlocks};
use tidegate_core::rng::Stream;
use tidegate_core::wire::rtcp;
use tidegate_core::wire::tcp::{Options, Timestamps};
use tidegate_core::{Ecn, FlowId};

fn random_tcp(rng: &mut Stream) -> Datagram {
    let bits = rng.next_u64();
    let maybe = |bit: u32| bits >> bit & 1 == 1;
    let syn = maybe(0);
    let opening = Opening {
        segment: maybe(1).then_some((bits >> 20) as u16),
        scale: maybe(2).then_some((bits >> 8) as u8 % 15),
        sack: maybe(3),
    };
    let mut sack = SackBlocks::default();
    let blocks = (bits >> 16 & 3) as usize;
    sack[..blocks].fill_with(|| (rng.next_u64() as u32 | 1, rng.next_u64() as u32));
    let numbers = rng.next_u64();
    let stamped = maybe(5).then_some(Timestamps { value: numbers as u32, echo: (numbers >> 32) as u32 });
    let options = match syn {
        true => Options { opening, timestamps: stamped, ..Options::default() },
        false => Options { timestamps: stamped, sack, ..Options::default() },
    };
    let mut body = TcpBody {
        sequence: rng.next_u64() as u32,
        ack: rng.next_u64() as u32,
        window: (bits >> 40) as u16,
        length: (bits >> 50) as u16,
        flags: (bits >> 12) as u8 & !TcpBody::SYN,
    };
    body.flags |= if syn { TcpBody::SYN } else { 0 };
    let attachment = (!options.is_empty()).then(|| Arc::new(Attachment::Options(options)));
    let datagram = Datagram { body: Body::Tcp(body), attachment, ..Datagram::default() };
    // now and then there is room for more
    let room = (options.len() + 4 * (bits >> 4 & 1) as usize).min(40);
    Datagram { size: tcp::HEADERS + room as u32 + u32::from(body.length), ..datagram }
}

/// A random datagram of a random flow, and the bytes of headers that its size counts.
fn random(rng: &mut Stream) -> (Datagram, u32) {
    let bits = rng.next_u64();
    let rtcp = |rng: &mut Stream| {
        let report =
            rtcp::ReceiverReport { ssrc: rng.next_u64() as u32, blocks: Vec::new(), extension: Vec::new() };
        let mut bytes = Vec::new();
        rtcp::encode(&[rtcp::Packet::ReceiverReport(report)], &mut bytes).expect("a report");
        let size = 28 + bytes.len() as u32;
        Datagram {
            size,
            body: Body::Rtcp,
            attachment: Some(Arc::new(Attachment::Rtcp(bytes))),
            ..Datagram::default()
        }
    };
    let length = 28 + (bits >> 32) as u32 % 1473;
    let (service, datagram) = match bits % 5 {
        0 => (Service::Discard, random_tcp(rng)),
        1 => (Service::Discard, Datagram { size: length, ..Datagram::default() }),
        2 => {
            let number = rng.next_u64() >> (64 - 8 * (length - 28).clamp(1, 8));
            let number = if length == 28 { 0 } else { number };
            (
                Service::Tagged,
                Datagram { size: length, body: Body::Tagged(number.to_le_bytes()), ..Datagram::default() },
            )
        }
        3 => (Service::Rtcp, rtcp(rng)),
        _ => (Service::Rtp, media::tests::random(rng)),
    };
    let overhead = if matches!(service, Service::Rtp | Service::Rtcp) {
        [0, 28, 60][bits as usize >> 8 & 1]
    } else {
        28
    };
    let direction = match bits >> 12 & 3 {
        0 => Direction::Reverse,
        1 if matches!(service, Service::Rtp | Service::Rtcp) => Direction::Group((bits >> 16) as u16 % 100),
        _ => Direction::Forward,
    };
    let datagram = Datagram {
        size: datagram.size - 28 + overhead,
        ecn: Ecn::from_bits((bits >> 10) as u8),
        dscp: (bits >> 56) as u8 & 63,
        ..datagram
    };
    let datagram = if matches!(datagram.body, Body::Tcp(_)) {
        Datagram { size: datagram.size + 28 - overhead, ..datagram }
    } else {
        datagram
    };
    (datagram.between(FlowId((bits >> 20) as u32 % 100_000), direction, service), overhead)
}

#[test]
fn datagrams_survive_encoding_and_decoding() {
    let mut rng = Stream::new(3, "packet", "test");
    for _ in 0..20_000 {
        let (datagram, overhead) = random(&mut rng);
        let mut bytes = vec![0xaa];
        encode(&datagram, overhead, &mut bytes).expect("it fits");
        let below = if datagram.protocol() == Protocol::Tcp { 0 } else { 28 - i64::from(overhead) };
        assert_eq!(bytes.len() as i64, 1 + i64::from(datagram.size) + below);
        assert_eq!(decode(&bytes[1..], overhead), Ok(datagram));
    }
}

/// Corrects the checksums of spoiled bytes, so that decoding goes beyond them.
fn fix_checksums(bytes: &mut [u8]) {
    let Some(header) = bytes.first_chunk::<20>() else { return };
    let checksum = match header[9] {
        6 => 20 + tcp::CHECKSUM,
        _ => 20 + ip::UDP_CHECKSUM,
    };
    if let Some(field) = bytes.get_mut(10..12) {
        field.fill(0);
        let sum = ones(bytes.chunks(2).take(10));
        bytes[10..12].copy_from_slice(&(!sum).to_be_bytes());
    }
    if bytes.len() >= checksum + 2 {
        bytes[checksum..checksum + 2].fill(0);
        let pseudo = [0, bytes[9], ((bytes.len() - 20) >> 8) as u8, (bytes.len() - 20) as u8];
        let sum = ones(bytes[12..20].chunks(2).chain(pseudo.chunks(2)).chain(bytes[20..].chunks(2)));
        bytes[checksum..checksum + 2].copy_from_slice(&(!sum).to_be_bytes());
    }
}

fn ones<'a>(pairs: impl Iterator<Item = &'a [u8]>) -> u16 {
    let sum = pairs.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum::<u32>();
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + sum) as u16
}

#[test]
fn spoiled_bytes_are_errors_or_other_datagrams() {
    let mut rng = Stream::new(4, "packet", "test");
    let (mut refused, mut decoded) = (0, 0);
    for _ in 0..40_000 {
        let (datagram, overhead) = random(&mut rng);
        let mut bytes = Vec::new();
        encode(&datagram, overhead, &mut bytes).expect("it fits");
        for _ in 0..=rng.below(3) {
            let index = rng.below(bytes.len().min(80) as u64) as usize;
            if rng.below(6) == 0 {
                bytes.truncate(index.max(1));
            } else {
                bytes[index] = rng.next_u64() as u8;
            }
        }
        if rng.below(8) > 0 && bytes.len() >= 4 {
            let length = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            fix_checksums(&mut bytes);
        }
        match decode(&bytes, overhead) {
            Ok(datagram) => {
                decoded += 1;
                let mut again = Vec::new();
                encode(&datagram, overhead, &mut again).expect("a decoded datagram can be encoded");
                assert_eq!(again.len(), bytes.len());
                assert_eq!(decode(&again, overhead), Ok(datagram));
            }
            Err(Error::Truncated { offset, .. } | Error::Invalid { offset, .. }) => {
                refused += 1;
                assert!(offset <= bytes.len(), "an error at {offset} of {}", bytes.len());
            }
            Err(error @ Error::Unfit { .. }) => panic!("decoding writes nothing: {error}"),
        }
    }
    assert!(refused > 5000 && decoded > 5000, "{refused} refused, {decoded} taken");
}

#[test]
fn a_syn_by_hand() {
    let opening = Opening { segment: Some(1460), scale: Some(7), sack: true };
    let body = TcpBody { sequence: 7, window: 0xffff, flags: TcpBody::SYN, ..TcpBody::default() };
    let datagram = Datagram {
        size: 52,
        body: Body::Tcp(body),
        attachment: Some(Arc::new(Attachment::Options(Options { opening, ..Options::default() }))),
        ..Datagram::default()
    };
    let datagram = datagram.between(FlowId(0), Direction::Forward, Service::Discard);
    let mut bytes = Vec::new();
    encode(&datagram, 28, &mut bytes).unwrap();
    let ports = [0xc0, 0, 0, 9];
    let numbers = [0, 0, 0, 7, 0, 0, 0, 0];
    // eight words, SYN
    let flags = [0x80, 2, 0xff, 0xff];
    let options = [2, 4, 5, 180, 1, 3, 3, 7, 1, 1, 4, 2];
    assert_eq!(
        [&bytes[20..24], &bytes[24..32], &bytes[32..36], &bytes[40..]],
        [&ports[..], &numbers, &flags, &options]
    );
    // an unknown option is skipped, and its room stays in the size
    bytes[40..44].copy_from_slice(&[254, 4, 1, 2]);
    fix_checksums(&mut bytes);
    let datagram = decode(&bytes, 28).unwrap();
    assert_eq!((datagram.size, datagram.opening()), (52, Opening { segment: None, ..opening }));
    // RFC 7323 section 2.3: a shift of more than 14 is one of 14
    bytes[47] = 200;
    fix_checksums(&mut bytes);
    assert_eq!(decode(&bytes, 28).unwrap().opening().scale, Some(14));
    bytes[46] = 9;
    fix_checksums(&mut bytes);
    let error = Error::Truncated { field: "TCP option", offset: 47, needed: 7, available: 5 };
    assert_eq!(decode(&bytes, 28), Err(error));
    bytes[46] = 4;
    fix_checksums(&mut bytes);
    assert_eq!(decode(&bytes, 28), Err(Error::Invalid { field: "TCP option length", offset: 46, value: 4 }));
}

/// RFC 7323 section 3.2 and its appendix A: two NOPs in front; without room for padding the options follow each other.
#[test]
fn timestamps_by_hand() {
    let timestamps = Some(Timestamps { value: 0x0102_0304, echo: 7 });
    let stamp = [8, 10, 1, 2, 3, 4, 0, 0, 0, 7];
    let block = [5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let sack = [(1, 2), (0, 0), (0, 0)];
    let body = Body::Tcp(TcpBody { flags: TcpBody::ACK, ..TcpBody::default() });
    let written = |options: Options, size| {
        let attachment = Some(Arc::new(Attachment::Options(options)));
        let datagram = Datagram { size, body, attachment, ..Datagram::default() };
        let datagram = datagram.between(FlowId(0), Direction::Forward, Service::Discard);
        let mut bytes = Vec::new();
        encode(&datagram, 28, &mut bytes).unwrap();
        assert_eq!(decode(&bytes, 28), Ok(datagram));
        bytes[40..].to_vec()
    };
    let stamped = Options { timestamps, ..Options::default() };
    assert_eq!((stamped.len(), written(stamped, 52)), (12, [&[1, 1][..], &stamp].concat()));
    let both = Options { sack, ..stamped };
    assert_eq!((both.len(), written(both, 64)), (24, [&[1, 1][..], &stamp, &[1, 1], &block].concat()));
    assert_eq!(written(both, 60), [stamp, block].concat());
}

#[test]
fn fields_that_do_not_fit_their_size_are_refused() {
    let mut bytes = vec![1, 2];
    let mut refused = |datagram: Datagram| {
        let error = encode(&datagram, 28, &mut bytes).unwrap_err();
        assert_eq!(bytes, [1, 2], "as it was");
        error
    };
    let tagged = |size, number: u64| {
        let datagram = Datagram { size, body: Body::Tagged(number.to_le_bytes()), ..Datagram::default() };
        datagram.between(FlowId(1), Direction::Forward, Service::Tagged)
    };
    let error = Error::Unfit { field: "number of a tagged datagram", value: 256, minimum: 0, maximum: 255 };
    assert_eq!(refused(tagged(29, 256)), error);
    let error = Error::Unfit { field: "packet size in bytes", value: 27, minimum: 28, maximum: 65_535 };
    assert_eq!(refused(Datagram { size: 27, ..Datagram::default() }), error);
    let body = Body::Tcp(TcpBody { length: 10, ..TcpBody::default() });
    assert_eq!(
        refused(Datagram { size: 49, body, ..Datagram::default() }),
        Error::Unfit { field: "packet size in bytes", value: 49, minimum: 50, maximum: 65_535 }
    );
    // a window of 40 bytes for options at most, and in words
    assert!(matches!(refused(Datagram { size: 53, body, ..Datagram::default() }), Error::Unfit { .. }));
    assert!(matches!(refused(Datagram { size: 94, body, ..Datagram::default() }), Error::Unfit { .. }));
    let sack = Options { sack: [(1, 2), (0, 0), (0, 0)], ..Options::default() };
    let sack = Some(Arc::new(Attachment::Options(sack)));
    let error = Error::Unfit { field: "TCP options size in bytes", value: 10, minimum: 0, maximum: 0 };
    assert_eq!(refused(Datagram { size: 50, body, attachment: sack, ..Datagram::default() }), error);
    assert!(matches!(refused(Datagram { size: 65_536, ..Datagram::default() }), Error::Unfit { .. }));
}
