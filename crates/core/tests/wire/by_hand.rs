//! Packets written out by hand, and what must be refused.

use crate::{bytes_of, decoded_one, encoded};
use tidegate_core::datagram::Extension;
use tidegate_core::wire::rtcp::{self, Arrival, Ccfb, Contents, Metric, Packet, StreamMetrics};
use tidegate_core::wire::{Error, ntp, rtp};
use tidegate_core::{Ecn, Rate, RemoteTime, Span, Time};

fn element(id: u8, data: &[u8]) -> Extension {
    Extension { id, data: data.to_vec() }
}

#[test]
fn an_rtp_header_with_one_byte_elements() {
    let header = rtp::Header {
        marker: true,
        payload_type: 96,
        sequence: 0x1234,
        timestamp: 0x5566_7788,
        ssrc: 0x99aa_bbcc,
        csrcs: vec![1],
        extensions: vec![
            rtp::transport_sequence(3, 0xfffe),
            rtp::abs_send_time_element(2, Time::from_millis(500)),
        ],
        ..rtp::Header::default()
    };
    let mut bytes = Vec::new();
    header.encode(&mut bytes).expect("fits");
    let hex = "91e01234 55667788 99aabbcc 00000001 bede0002 31fffe22 02000000";
    assert_eq!(bytes, bytes_of(hex));
    assert_eq!(header.encoded_len(), bytes.len());
    bytes.extend([1, 2, 3]);
    assert_eq!(rtp::Header::decode(&bytes), Ok((header.clone(), 28..31)));
    assert_eq!(header.extension(3).and_then(rtp::read_transport_sequence), Some(0xfffe));
    assert_eq!(header.extension(2).and_then(rtp::read_abs_send_time), Some(0x2_0000));
    assert_eq!(header.extension(1), None);
}

#[test]
fn extension_elements_take_two_bytes_where_they_must() {
    let length = |extensions: Vec<Extension>| {
        let header = rtp::Header { extensions, ..rtp::Header::default() };
        let mut bytes = Vec::new();
        header.encode(&mut bytes).expect("fits");
        assert_eq!(header.encoded_len(), bytes.len());
        assert_eq!(rtp::Header::decode(&bytes), Ok((header, bytes.len()..bytes.len())));
        (bytes.len() > 12).then(|| (u16::from_be_bytes([bytes[12], bytes[13]]), bytes.len() - 16))
    };
    assert_eq!(length(vec![]), None);
    assert_eq!(length(vec![element(14, &[9; 16])]), Some((0xbede, 20)));
    assert_eq!(length(vec![element(15, &[9])]), Some((0x1000, 4)));
    assert_eq!(length(vec![element(1, &[9; 17])]), Some((0x1000, 20)));
    assert_eq!(length(vec![element(1, &[]), element(2, &[1])]), Some((0x1000, 8)));
    assert_eq!(length(vec![element(255, &[9; 255])]), Some((0x1000, 260)));
}

#[test]
fn extension_elements_are_read_as_rfc_8285_says() {
    let read = |extension: &str| {
        let bytes = bytes_of(&format!("90000000 00000000 00000000 {extension}"));
        rtp::Header::decode(&bytes).map(|(header, payload)| (header.extensions, payload.start))
    };
    let both = vec![element(1, &[0xaa]), element(2, &[0xbb, 0xcc])];
    // padding between elements
    assert_eq!(read("bede0002 10aa0000 21bbcc00"), Ok((both.clone(), 24)));
    assert_eq!(read("100f0002 0101aa00 0202bbcc"), Ok((both, 24)));
    // identifier 15 ends the list, and so does 0 with a length
    let first = vec![element(1, &[0xaa])];
    assert_eq!(read("bede0002 10aaf0bb 21bbcc00"), Ok((first.clone(), 24)));
    assert_eq!(read("bede0002 10aa03bb 21bbcc00"), Ok((first, 24)));
    // an extension of an unknown profile is skipped
    assert_eq!(read("abcd0001 10aa0000"), Ok((vec![], 20)));
    assert_eq!(read("bede0000"), Ok((vec![], 16)));
    // an element that is longer than the extension
    let error = Error::Truncated { field: "extension element", offset: 17, needed: 5, available: 3 };
    assert_eq!(read("bede0001 14aabbcc"), Err(error));
    let error = Error::Truncated { field: "RTP extension", offset: 16, needed: 8, available: 4 };
    assert_eq!(read("bede0002 10aa0000"), Err(error));
}

#[test]
fn rtp_padding_is_not_payload() {
    let padded = |tail: &str| rtp::Header::decode(&bytes_of(&format!("a0000000 00000000 00000000 {tail}")));
    let (header, payload) = padded("aabb0002").expect("well-formed");
    assert_eq!((header.padding, payload), (2, 12..14));
    assert_eq!(padded("00000004").expect("padding only").1, 12..12);
    for (tail, found) in [("", 0), ("aabbcc00", 0), ("aabbcc05", 5)] {
        let offset = 11 + tail.len() / 2;
        let error = Error::Invalid { field: "RTP padding count", offset, value: found };
        assert_eq!(padded(tail), Err(error));
    }
    let error = Error::Invalid { field: "RTP version", offset: 0, value: 1 };
    assert_eq!(rtp::Header::decode(&[0x40; 12]), Err(error));
}

#[test]
fn an_rtp_header_that_does_not_fit_is_refused_whole() {
    let with = |change: fn(&mut rtp::Header)| {
        let mut header = rtp::Header::default();
        change(&mut header);
        let mut out = vec![1, 2, 3];
        let done = header.encode(&mut out);
        assert_eq!(out[..3], [1, 2, 3]);
        assert_eq!(done.is_err(), out.len() == 3);
        done.map_err(|error| error.to_string())
    };
    assert_eq!(with(|header| header.payload_type = 127), Ok(()));
    let error = "cannot write 128 as payload type: it must be from 0 to 127";
    assert_eq!(with(|header| header.payload_type = 128), Err(error.into()));
    assert_eq!(with(|header| header.csrcs = vec![0; 15]), Ok(()));
    assert!(with(|header| header.csrcs = vec![0; 16]).is_err());
    assert!(with(|header| header.extensions = vec![element(0, &[1])]).is_err());
    assert!(with(|header| header.extensions = vec![element(1, &[1; 256])]).is_err());
    // 65535 words of extension, and one more
    assert_eq!(with(|header| header.extensions = vec![element(1, &[1; 254]); 1023]), Ok(()));
    assert!(with(|header| header.extensions = vec![element(1, &[1; 254]); 1024]).is_err());
}

#[test]
fn abs_send_time_is_libwebrtcs() {
    assert_eq!(rtp::abs_send_time(Time::ZERO), 0);
    assert_eq!(rtp::abs_send_time(Time::from_secs(1)), 1 << 18);
    assert_eq!(rtp::abs_send_time(Time::from_secs(65)), 1 << 18);
    assert_eq!(rtp::abs_send_time(Time::from_secs(-63)), 1 << 18);
    // 3.81 us a unit: (us << 18) / 1e6, rounded down
    assert_eq!(rtp::abs_send_time(Time::from_micros(3)), 0);
    assert_eq!(rtp::abs_send_time(Time::from_micros(4)), 1);
    assert_eq!(rtp::abs_send_time(Time::from_nanos(3_999)), 0);
    assert_eq!(rtp::abs_send_time(Time::from_nanos(63_999_999_999)), 0xff_ffff);
    // (1 234 567 << 18) / 1 000 000
    assert_eq!(rtp::abs_send_time(Time::from_micros(1_234_567)), 323_634);
}

#[test]
fn a_compound_is_told_from_reduced_size() {
    let report = Packet::ReceiverReport(rtcp::ReceiverReport { ssrc: 1, ..Default::default() });
    let sdes = Packet::Sdes(rtcp::Sdes::cname(1, "a@b"));
    let pli = Packet::Pli(rtcp::Pli { sender_ssrc: 1, media_ssrc: 2 });
    let nameless = Packet::Sdes(rtcp::Sdes { chunks: vec![rtcp::SdesChunk { ssrc: 1, items: vec![] }] });
    let bytes = encoded(&[report.clone(), sdes.clone(), pli.clone()]);
    let hex = "80c90001 00000001 81ca0003 00000001 01036140 62000000 81ce0002 00000001 00000002";
    assert_eq!(bytes, bytes_of(hex));
    assert_eq!(rtcp::decode(&bytes), Ok(vec![report.clone(), sdes.clone(), pli.clone()]));
    assert!(rtcp::is_compound(&[report.clone(), sdes.clone(), pli.clone()]));
    assert!(rtcp::is_compound(&[report.clone(), pli.clone(), sdes.clone()]));
    assert!(!rtcp::is_compound(&[pli.clone(), report.clone(), sdes.clone()]));
    assert!(!rtcp::is_compound(&[report.clone(), pli.clone()]));
    assert!(!rtcp::is_compound(&[report.clone(), nameless]));
    assert!(!rtcp::is_compound(&[]));
    let types = Contents::RR | Contents::SDES | Contents::PLI;
    assert_eq!(Contents::of(&[report, sdes, pli]), types);
}

#[test]
fn every_kind_has_its_bit() {
    let mut rng = tidegate_core::rng::Stream::new(1, "wire", "bits");
    let names =
        ["SR", "RR", "SDES", "BYE", "APP", "NACK", "PLI", "", "FIR", "REMB", "TWCC", "CCFB", "ECN", "XR", ""];
    for (kind, name) in names.into_iter().enumerate() {
        let packet = crate::arbitrary::packet(&mut rng, kind as u64);
        let bit = Contents::NAMES.iter().position(|known| *known == name).map_or(0, |at| 1 << at);
        assert_eq!(Contents::of(&[packet]).bits(), bit, "{name}");
    }
}

#[test]
fn goodbyes_and_descriptions_fill_their_words() {
    for length in 0..9 {
        let reason = Some(vec![b'x'; length]);
        let bye = Packet::Bye(rtcp::Bye { ssrcs: vec![7], reason });
        let bytes = encoded(std::slice::from_ref(&bye));
        assert_eq!(bytes.len(), 8 + (1 + length).next_multiple_of(4));
        assert_eq!(decoded_one(&bytes), bye);

        let items = vec![rtcp::SdesItem { kind: 1, text: vec![b'x'; length] }];
        let sdes = Packet::Sdes(rtcp::Sdes { chunks: vec![rtcp::SdesChunk { ssrc: 7, items }; 2] });
        let bytes = encoded(std::slice::from_ref(&sdes));
        // an item, and one to four null octets
        assert_eq!(bytes.len(), 4 + 2 * (4 + (2 + length + 1).next_multiple_of(4)));
        assert_eq!(decoded_one(&bytes), sdes);
    }
    let bye = Packet::Bye(rtcp::Bye { ssrcs: vec![], reason: None });
    assert_eq!(encoded(std::slice::from_ref(&bye)), [0x80, 203, 0, 0]);
    assert_eq!(decoded_one(&[0x80, 203, 0, 0]), bye);
    // a reason without the filling is read as well where the P bit cuts it off, as pion writes it
    let pion = bytes_of("a1cb0003 00000007 02786900 00000005");
    let bye = rtcp::Bye { ssrcs: vec![7], reason: Some(b"xi".to_vec()) };
    assert_eq!(decoded_one(&pion), Packet::Bye(bye));
}

#[test]
fn reports_carry_signed_loss_and_extensions() {
    let lost = |cumulative_lost| {
        let block = rtcp::ReportBlock { cumulative_lost, ..Default::default() };
        let report = rtcp::ReceiverReport { blocks: vec![block], ..Default::default() };
        let bytes = encoded(&[Packet::ReceiverReport(report)]);
        let Packet::ReceiverReport(report) = decoded_one(&bytes) else { panic!() };
        (u32::from_be_bytes([0, bytes[13], bytes[14], bytes[15]]), report.blocks[0].cumulative_lost)
    };
    assert_eq!(lost(0), (0, 0));
    assert_eq!(lost(-1), (0xff_ffff, -1));
    assert_eq!(lost(0x7f_ffff), (0x7f_ffff, 0x7f_ffff));
    assert_eq!(lost(0x80_0000), (0x7f_ffff, 0x7f_ffff));
    assert_eq!(lost(i32::MIN), (0x80_0000, -0x80_0000));

    let bytes = bytes_of("80c90002 00000001 deadbeef");
    let Packet::ReceiverReport(report) = decoded_one(&bytes) else { panic!() };
    assert_eq!(report.extension, bytes_of("deadbeef"));
    assert_eq!(encoded(&[Packet::ReceiverReport(report)]), bytes);

    let report = rtcp::SenderReport { ntp: 0x1234_5678_9abc_def0, ..Default::default() };
    assert_eq!(report.middle(), 0x5678_9abc);
    let block = rtcp::ReportBlock { last_sr: 0x1_0000, delay_since_last_sr: 0x8000, ..Default::default() };
    assert_eq!(block.round_trip(0x2_0000), Some(Span::from_millis(500)));
}

#[test]
fn nack_pairs_wrap() {
    let nack = rtcp::Nack::new(1, 2, &[65_534, 65_535, 0, 0, 14, 15]);
    let pairs: Vec<_> = nack.pairs.iter().map(|pair| (pair.pid, pair.blp)).collect();
    assert_eq!(pairs, [(65_534, 0b1000_0000_0000_0011), (15, 0)]);
    assert!(nack.lost().eq([65_534, 65_535, 0, 14, 15]));
    assert!(rtcp::encode(&[Packet::Nack(rtcp::Nack::new(1, 2, &[]))], &mut Vec::new()).is_err());
    assert!(rtcp::decode(&bytes_of("81cd0002 00000001 00000002")).is_err());
}

#[test]
fn remb_goes_beyond_32_bits_but_not_beyond_64() {
    let remb = |word: &str| rtcp::decode(&bytes_of(&format!("8fce0004 00000001 00000000 52454d42 {word}")));
    let rate = |word| match remb(word).expect("well-formed")[..] {
        [Packet::Remb(ref remb)] => remb.bitrate,
        ref other => panic!("{other:?}"),
    };
    // mantissa 0x2540b, exponent 16
    assert_eq!(rate("0042540b"), Rate::from_bps(0x2_540b << 16));
    assert_eq!(rate("00bbffff"), Rate::from_bps(0x3_ffff << 46));
    assert_eq!(rate("00fc0001"), Rate::from_bps(1 << 63));
    let error = Error::Invalid { field: "REMB bitrate", offset: 17, value: 0xfc0002 };
    assert_eq!(remb("00fc0002"), Err(error));
    // other application layer feedback is kept as it is
    let other = bytes_of("8fce0003 00000001 00000000 4f544852");
    assert!(matches!(decoded_one(&other), Packet::Unknown(_)));
    assert_eq!(encoded(&[decoded_one(&other)]), other);
}

fn received(ecn: Ecn, offset: u16) -> Metric {
    Metric::Received { ecn, offset }
}

#[test]
fn ccfb_by_hand() {
    let metrics = vec![received(Ecn::Ect1, 512), Metric::NotReceived, received(Ecn::Ce, 0x1fff)];
    let stream = StreamMetrics { ssrc: 2, begin: 0xffff, metrics };
    let ccfb = Ccfb { sender_ssrc: 1, streams: vec![stream], report_timestamp: 0x0102_0304 };
    let bytes = encoded(&[Packet::Ccfb(ccfb.clone())]);
    assert_eq!(bytes, bytes_of("8bcd0006 00000001 00000002 ffff0003 a2000000 ffff0000 01020304"));
    assert_eq!(decoded_one(&bytes), Packet::Ccfb(ccfb.clone()));
    let sequences = ccfb.streams[0].packets().map(|(sequence, _)| sequence);
    assert!(sequences.eq([0xffff, 0, 1]));
    // without the R bit the rest is nothing
    let stale = bytes_of("8bcd0006 00000001 00000002 ffff0003 a2007fff ffff0000 01020304");
    assert_eq!(decoded_one(&stale), Packet::Ccfb(ccfb));
    let bare = Ccfb { sender_ssrc: 1, streams: vec![], report_timestamp: 9 };
    assert_eq!(decoded_one(&encoded(&[Packet::Ccfb(bare.clone())])), Packet::Ccfb(bare));
}

#[test]
fn ccfb_is_read_with_one_block_more_than_it_says() {
    let metrics = |hex: &str| match decoded_one(&bytes_of(hex)) {
        Packet::Ccfb(ccfb) => {
            assert_eq!(ccfb.report_timestamp, 0x0102_0304);
            ccfb.streams.into_iter().map(|stream| stream.metrics.len()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    // num_reports 1: the padding is a received packet, or it is padding
    assert_eq!(metrics("8bcd0005 00000001 00000002 00050001 80018002 01020304"), [2]);
    assert_eq!(metrics("8bcd0005 00000001 00000002 00050001 80010000 01020304"), [1]);
    // num_reports 0 and 2, with one block more and padding
    assert_eq!(metrics("8bcd0005 00000001 00000002 00050000 80010000 01020304"), [1]);
    assert_eq!(metrics("8bcd0006 00000001 00000002 00050002 80018002 80030000 01020304"), [3]);
    assert_eq!(metrics("8bcd0004 00000001 00000002 00050000 01020304"), [0]);
    assert_eq!(metrics("8bcd0005 00000001 00000002 00050002 80018002 01020304"), [2]);
    // two streams, both with one more
    let two = "8bcd0009 00000001 00000002 00050002 80018002 80030000 89abcdef 00050001 80018002 01020304";
    assert_eq!(metrics(two), [3, 2]);
}

#[test]
fn ccfb_refuses_what_is_too_much() {
    let with = |count| {
        let stream = StreamMetrics { metrics: vec![received(Ecn::NotEct, 1); count], ..Default::default() };
        let packet = Packet::Ccfb(Ccfb { streams: vec![stream], ..Default::default() });
        let mut bytes = Vec::new();
        rtcp::encode(std::slice::from_ref(&packet), &mut bytes)
            .map(|()| assert_eq!(decoded_one(&bytes), packet))
    };
    assert_eq!(with(16_384), Ok(()));
    assert!(with(16_385).is_err());
    let wide = StreamMetrics { metrics: vec![received(Ecn::NotEct, 0x2000)], ..Default::default() };
    let packet = Packet::Ccfb(Ccfb { streams: vec![wide], ..Default::default() });
    let mut out = vec![1];
    assert!(rtcp::encode(&[packet], &mut out).is_err());
    assert_eq!(out, [1]);
    let error = Error::Invalid { field: "CCFB num_reports", offset: 14, value: 0x4001 };
    assert_eq!(rtcp::decode(&bytes_of("8bcd0004 00000001 00000002 00054001 01020304")), Err(error));
}

#[test]
fn arrival_time_offsets() {
    let offset = |nanos| match Metric::received(Ecn::NotEct, Span::from_nanos(nanos)) {
        Metric::Received { offset, .. } => offset,
        Metric::NotReceived => panic!(),
    };
    assert_eq!(offset(0), 0);
    assert_eq!(offset(976_562), 0); // 976562.5 ns is a unit
    assert_eq!(offset(976_563), 1);
    assert_eq!(offset(500_000_000), 512);
    let most = 7_997_070_312; // 8189/1024 s and half a nanosecond less
    assert_eq!(offset(most), 8188);
    assert_eq!(offset(most + 1), Metric::OVER_RANGE);
    assert_eq!(offset(i64::MAX), Metric::OVER_RANGE);
    assert_eq!(offset(-1), Metric::UNAVAILABLE);
    assert_eq!(received(Ecn::NotEct, 512).ago(), Some(Span::from_millis(500)));
    assert_eq!(received(Ecn::NotEct, 8189).ago(), Some(Span::from_nanos(most + 1)));
    assert_eq!(received(Ecn::NotEct, Metric::OVER_RANGE).ago(), None);
    assert_eq!(received(Ecn::NotEct, Metric::UNAVAILABLE).ago(), None);
    assert_eq!(Metric::NotReceived.ago(), None);
}

#[test]
fn a_stream_is_reported_as_it_arrived() {
    let ms = |ms: i64| RemoteTime::from_nanos(ms * 1_000_000);
    let arrival = |sequence, at, ecn| Arrival { sequence, at: ms(at), ecn };
    let arrivals = [
        arrival(65_537, 1_000, Ecn::Ect0),
        arrival(65_535, 1_250, Ecn::Ect1),
        arrival(65_535, 1_500, Ecn::Ce), // a copy: the mark counts, the time does not
        arrival(65_537, 1_500, Ecn::Ect1), // a copy that changes nothing
        arrival(65_534, 1_500, Ecn::Ce), // before what is reported
        arrival(65_539, 1_500, Ecn::Ce), // and after
    ];
    let stream = StreamMetrics::new(9, 65_535, 65_539, &arrivals, ms(1_500));
    let metrics =
        vec![received(Ecn::Ce, 256), Metric::NotReceived, received(Ecn::Ect0, 512), Metric::NotReceived];
    assert_eq!(stream, StreamMetrics { ssrc: 9, begin: 65_535, metrics });
    // the newest 16384
    let long = StreamMetrics::new(9, 0, 20_000, &[arrival(19_999, 0, Ecn::Ce)], ms(0));
    assert_eq!((long.begin, long.metrics.len()), (3_616, 16_384));
    assert_eq!(long.metrics.last(), Some(&received(Ecn::Ce, 0)));
    assert_eq!(StreamMetrics::new(9, 5, 5, &[], ms(0)).metrics, []);
}

#[test]
fn ccfb_arrivals_come_back_within_a_unit() {
    let now = RemoteTime::from_nanos(70_000_123_456_789);
    let at = RemoteTime::from_nanos(now.as_nanos() - 123_456_789);
    let stream = StreamMetrics::new(9, 5, 6, &[Arrival { sequence: 5, at, ecn: Ecn::Ect1 }], now);
    let report_timestamp = ntp::short(now);
    let near = i64::from(report_timestamp) + (1 << 32); // 70000 s is once around
    let unwrapped = tidegate_core::wire::wrap::nearest(report_timestamp, 32, near);
    let report = ntp::instant(unwrapped);
    let heard = report + -stream.metrics[0].ago().expect("told");
    let error = (heard - at).as_nanos();
    // rounded down twice: the timestamp by up to 15 us, the offset by up to 977 us
    assert!((-15_300..976_563).contains(&error), "{error} ns");
}

#[test]
fn malformed_rtcp_is_refused_with_a_place() {
    let refused = |hex: &str| rtcp::decode(&bytes_of(hex)).expect_err(hex).to_string();
    assert_eq!(refused(""), "RTCP header at byte 0 takes 1 bytes, but 0 are left");
    assert_eq!(refused("40c90001 00000001"), "RTCP version at byte 0 must not be 1 (0x1)");
    assert_eq!(refused("80c90002 00000001"), "RTCP packet body at byte 4 takes 8 bytes, but 4 are left");
    assert_eq!(refused("81c90001 00000001"), "report block at byte 8 takes 24 bytes, but 0 are left");
    assert_eq!(refused("a0c90001 00000009"), "RTCP padding count at byte 7 must not be 9 (0x9)");
    assert_eq!(refused("a0c90000"), "RTCP padding count at byte 3 must not be 0 (0x0)");
    let second = "80c90001 00000001 81ca0002 00000001 01ff6162";
    assert_eq!(refused(second), "SDES item text at byte 18 takes 255 bytes, but 2 are left");
    let chunks = "8fcd0004 00000001 00000002 00000009 00000000";
    assert_eq!(refused(chunks), "TWCC status chunk at byte 20 takes 2 bytes, but 0 are left");
    let deltas = "8fcd0005 00000001 00000002 00000005 00000000 20050101";
    assert_eq!(refused(deltas), "TWCC small delta at byte 24 takes 1 bytes, but 0 are left");
    let mut out = vec![5];
    assert!(rtcp::encode(&[], &mut out).is_err());
    let ssrcs = vec![0; 32];
    let packets = [Packet::Pli(rtcp::Pli::default()), Packet::Bye(rtcp::Bye { ssrcs, reason: None })];
    assert!(rtcp::encode(&packets, &mut out).is_err());
    assert_eq!(out, [5]);
}

#[test]
fn transport_wide_feedback_is_read_with_tolerance() {
    let read = |hex: &str| match decoded_one(&bytes_of(hex)) {
        Packet::Twcc(twcc) => twcc.packets,
        other => panic!("{other:?}"),
    };
    let received = |delta| rtcp::Status::Received { delta };
    // zero padding without the P bit; the same with it; a run that is longer than the count
    let expected = vec![received(1), received(2)];
    assert_eq!(read("8fcd0005 00000001 00000002 00000002 00000000 20020102"), expected);
    assert_eq!(read("8fcd0006 00000001 00000002 00000002 00000000 20020102 00000000"), expected);
    assert_eq!(read("afcd0006 00000001 00000002 00000002 00000000 20020102 00000004"), expected);
    assert_eq!(read("8fcd0005 00000001 00000002 00000002 00000000 3fff0102"), expected);
    // a vector with symbols beyond the count, which have no deltas
    assert_eq!(read("8fcd0005 00000001 00000002 00000002 00000000 bfff0102"), expected);
    // symbols 3, 1, 2 in two bits
    let mixed = "8fcd0006 00000001 00000002 00000003 00000000 f6000580 00000000";
    let expected = vec![rtcp::Status::ReceivedWithoutDelta, received(5), received(-0x8000)];
    assert_eq!(read(mixed), expected);
    assert_eq!(read("8fcd0004 00000001 00000002 00000000 00000000"), []);
}

#[test]
fn ecn_feedback_and_summary_are_those_of_rfc_6679() {
    let counters = rtcp::EcnCounters {
        ect0: 0x0102_0304,
        ect1: 0x0506_0708,
        ce: 0x090a,
        not_ect: 0x0b0c,
        lost: 0x0d0e,
        duplicated: 0x0f10,
    };
    let feedback = Packet::EcnFeedback(rtcp::EcnFeedback {
        sender_ssrc: 0x1111_1111,
        media_ssrc: 0x2222_2222,
        highest_sequence: 0x0001_ffff,
        counters,
    });
    // V=2, FMT=8, PT=205, 7 words
    let bytes = bytes_of("88cd0007 11111111 22222222 0001ffff 01020304 05060708 090a0b0c 0d0e0f10");
    assert_eq!(encoded(std::slice::from_ref(&feedback)), bytes);
    assert_eq!(decoded_one(&bytes), feedback);
    assert!(
        rtcp::decode(&bytes_of("88cd0006 11111111 22222222 0001ffff 01020304 05060708 090a0b0c")).is_err()
    );
    let long = "88cd0008 11111111 22222222 0001ffff 01020304 05060708 090a0b0c 0d0e0f10 00000000";
    assert!(rtcp::decode(&bytes_of(long)).is_err(), "nothing may follow");

    let report = rtcp::ExtendedReport {
        ssrc: 0x1111_1111,
        blocks: vec![
            rtcp::ReportExtension::EcnSummary(vec![(0x2222_2222, counters)]),
            // receiver reference time (RFC 3611 section 4.4), which this crate does not parse
            rtcp::ReportExtension::Unknown { block_type: 4, specific: 0, data: vec![7; 8] },
            rtcp::ReportExtension::EcnSummary(vec![]),
        ],
    };
    let bytes = bytes_of(
        "80cf000b 11111111 0d000005 22222222 01020304 05060708 090a0b0c 0d0e0f10 \
         04000002 07070707 07070707 0d000000",
    );
    assert_eq!(encoded(&[Packet::ExtendedReport(report.clone())]), bytes);
    assert_eq!(decoded_one(&bytes), Packet::ExtendedReport(report.clone()));
    assert_eq!(report.ecn().collect::<Vec<_>>(), [(0x2222_2222, counters)]);

    // a summary that is no multiple of five words is discarded, and the blocks around it are not
    let bytes = bytes_of("80cf0005 11111111 0d000001 00000000 0dff0000 0d000000");
    let Packet::ExtendedReport(report) = decoded_one(&bytes) else { panic!("an extended report") };
    assert_eq!(report.ecn().count(), 0);
    assert_eq!(report.blocks.len(), 3);
    assert!(rtcp::decode(&bytes_of("80cf0002 11111111 0d000005")).is_err(), "a block longer than its packet");
    assert_eq!(Contents::of(&[feedback]).bits() | Contents::XR.bits(), 0b1_1000_0000_0000);
}
