//! The builder of transport-wide feedback, and the way back to arrival times.

use crate::{decoded_one, encoded};
use tidegate_core::RemoteTime;
use tidegate_core::rng::Stream;
use tidegate_core::wire::rtcp::{Packet, Pli, Status, Twcc, TwccArrival, TwccBuilder};
use tidegate_core::wire::wrap;

const MS: i64 = 1_000_000;
const TICK: i64 = 250_000;

fn at(nanos: i64) -> RemoteTime {
    RemoteTime::from_nanos(nanos)
}

/// A sender's data from reports that were written and parsed: (unwrapped sequence, arrival in ns,
/// if it arrived), in the order of the reports.
fn learned(reports: &[Twcc], near_sequence: u64, near: RemoteTime) -> Vec<(u64, Option<i64>)> {
    let mut sequence = near_sequence as i64;
    let mut reference = near.as_nanos().div_euclid(64 * MS);
    let mut learned = Vec::new();
    for report in reports {
        let Packet::Twcc(read) = decoded_one(&encoded(&[Packet::Twcc(report.clone())])) else { panic!() };
        assert_eq!(read, *report);
        reference = read.reference(reference);
        for (wire, arrival) in read.arrivals() {
            sequence = wrap::nearest(u32::from(wire), 16, sequence);
            learned.push((
                sequence as u64,
                match arrival {
                    TwccArrival::NotReceived => None,
                    TwccArrival::At(ticks) => Some(Twcc::instant(reference, ticks).as_nanos()),
                    TwccArrival::Untimed => panic!("a builder knows the time"),
                },
            ));
        }
    }
    learned
}

#[test]
fn a_report_by_hand() {
    let mut builder = TwccBuilder { sender_ssrc: 1, media_ssrc: 2, feedback_count: 255 };
    // 130 ms is 2 units of the reference time and 2 ms; then 1 ms earlier; then 70 ms later
    let arrivals = [(11, at(130 * MS)), (12, at(129 * MS)), (14, at(199 * MS))];
    let reports = builder.build(10, &arrivals);
    let received = |delta| Status::Received { delta };
    let expected = Twcc {
        sender_ssrc: 1,
        media_ssrc: 2,
        base_sequence: 10,
        reference_time: 2,
        feedback_count: 255,
        packets: vec![Status::NotReceived, received(8), received(-4), Status::NotReceived, received(280)],
    };
    assert_eq!(reports, [expected]);
    assert_eq!(builder.feedback_count, 0);
    let bytes = encoded(&[Packet::Twcc(reports[0].clone())]);
    // two bits each: 0 1 2 0 2 0 0; deltas 08, fffc, 0118; three bytes of padding
    let hex = "afcd0006 00000001 00000002 000a0005 000002ff d6208 fffc 0118 000003";
    assert_eq!(bytes[..20], crate::bytes_of(&hex[..44])[..]);
    assert_eq!(bytes[20..], [0b1100_0110, 0b0010_0000, 8, 0xff, 0xfc, 1, 0x18, 1][..]);
}

#[test]
fn rounding_does_not_drift() {
    // 100 us apart: each alone would round to nothing
    let arrivals: Vec<_> = (0..5000).map(|i| (i, at(64 * MS + 100_000 * i as i64))).collect();
    let reports = TwccBuilder::new(1, 2).build(0, &arrivals);
    let learned = learned(&reports, 0, at(64 * MS));
    assert_eq!(learned.len(), arrivals.len());
    for (&(_, exact), (_, heard)) in arrivals.iter().zip(learned) {
        let error = heard.expect("received") - exact.as_nanos();
        assert!(error.abs() <= TICK / 2, "{error} ns");
    }
}

#[test]
fn half_a_tick_is_rounded_away_from_zero() {
    let first = 64 * MS;
    let delta = |nanos| {
        let reports = TwccBuilder::new(1, 2).build(0, &[(0, at(first)), (1, at(first + nanos))]);
        reports[0].packets[1]
    };
    let received = |delta| Status::Received { delta };
    assert_eq!(delta(TICK / 2 - 1), received(0));
    assert_eq!(delta(TICK / 2), received(1));
    assert_eq!(delta(-TICK / 2 + 1), received(0));
    assert_eq!(delta(-TICK / 2), received(-1));
}

#[test]
fn a_delta_beyond_sixteen_bits_starts_a_new_report() {
    let far = |ticks: i64| {
        let first = 64 * MS;
        let arrivals = [(5, at(first)), (8, at(first + ticks * TICK))];
        let reports = TwccBuilder::new(1, 2).build(5, &arrivals);
        let fates = learned(&reports, 5, at(first));
        let expected = [(5, Some(first)), (6, None), (7, None), (8, Some(first + ticks * TICK))];
        assert_eq!(fates, expected);
        reports
    };
    assert_eq!(far(32_767).len(), 1);
    assert_eq!(far(-32_768).len(), 1);
    let apart = far(32_768);
    assert_eq!(apart.len(), 2);
    // the second one goes on where the first one ended
    assert_eq!((apart[0].packets.len(), apart[1].base_sequence), (1, 6));
    assert_eq!((apart[0].feedback_count, apart[1].feedback_count), (0, 1));
    assert_eq!(far(-32_769).len(), 2);
}

#[test]
fn clocks_and_counters_wrap() {
    // the reference time wraps between two packets of one report, and between two reports
    let wrap = (64 * MS) << 24;
    for start in [wrap - 10 * MS, wrap - 64 * MS, wrap, 3 * wrap - MS, -5 * MS] {
        let arrivals: Vec<_> = (0..200).map(|i| (65_500 + i, at(start + 5 * MS * i as i64))).collect();
        let mut builder = TwccBuilder::new(1, 2);
        let mut reports = builder.build(65_500, &arrivals[..100]);
        reports.extend(builder.build(65_600, &arrivals[100..]));
        assert_eq!(reports.len(), 2);
        assert!(reports.iter().all(|report| report.reference_time < 1 << 24));
        let heard = learned(&reports, 65_500, at(start));
        let exact = arrivals.iter().map(|&(sequence, at)| (sequence, at.as_nanos()));
        assert_eq!(heard.len(), 200);
        for (heard, exact) in heard.into_iter().zip(exact) {
            assert_eq!(heard.0, exact.0);
            assert!((heard.1.expect("received") - exact.1).abs() <= TICK / 2);
        }
    }
}

#[test]
fn latecomers_duplicates_and_gaps() {
    let mut builder = TwccBuilder::new(1, 2);
    assert_eq!(builder.build(7, &[]), []);
    assert_eq!(builder.feedback_count, 0);
    // 3 came late: the report goes back to it, and says of 4 what it is told
    let late = builder.build(6, &[(3, at(70 * MS)), (3, at(71 * MS)), (4, at(60 * MS)), (6, at(70 * MS))]);
    let fates = learned(&late, 3, at(64 * MS));
    assert_eq!(fates, [(3, Some(70 * MS)), (4, Some(60 * MS)), (5, None), (6, Some(70 * MS))]);
    // 32767 missing ones are reported, 32768 are not
    let near = builder.build(0, &[(32_767, at(0))]);
    assert_eq!((near[0].base_sequence, near[0].packets.len()), (0, 32_768));
    let far = builder.build(0, &[(32_768, at(0))]);
    assert_eq!((far[0].base_sequence, far[0].packets.len()), (32_768, 1));
    let apart = builder.build(0, &[(0, at(0)), (40_000, at(MS))]);
    assert_eq!(apart.len(), 2);
    assert_eq!((apart[1].base_sequence, apart[1].packets.len()), (40_000, 1));
}

#[test]
fn a_report_holds_65535_packets() {
    let arrivals: Vec<_> = (0..65_536).map(|i| (i, at(TICK * i as i64))).collect();
    let reports = TwccBuilder::new(1, 2).build(0, &arrivals);
    assert_eq!(reports.iter().map(|report| report.packets.len()).collect::<Vec<_>>(), [65_535, 1]);
    // nine runs, and a byte for every delta
    let bytes = encoded(&[Packet::Twcc(reports[0].clone())]);
    assert_eq!(bytes.len(), (20usize + 2 * 9 + 65_535).next_multiple_of(4));
    assert_eq!(learned(&reports, 0, at(0)).len(), 65_536);
}

#[test]
fn random_arrivals_come_back_within_half_a_tick() {
    let mut rng = Stream::new(1, "twcc", "random");
    for _ in 0..300 {
        let first = rng.next_u64() >> 40;
        let mut now = (rng.next_u64() >> 8) as i64;
        let start = now;
        let (mut arrivals, mut sequence) = (Vec::new(), first);
        for _ in 0..1 + rng.below(300) {
            now += match rng.below(20) {
                0 => 20_000 * MS, // beyond a delta
                1 => -(rng.below(9_000_000_000) as i64),
                _ => rng.exponential(3e6) as i64,
            };
            arrivals.push((sequence, at(now)));
            let widest = if rng.chance(0.1) { 40 } else { 2 };
            sequence += 1 + rng.below(widest);
        }
        let reports = TwccBuilder::new(1, 2).build(first, &arrivals);
        let heard = learned(&reports, first, at(start));
        assert_eq!(heard.len() as u64, arrivals.last().expect("one").0 - first + 1);
        let mut exact = arrivals.iter().peekable();
        for (i, (sequence, arrival)) in heard.into_iter().enumerate() {
            assert_eq!(sequence, first + i as u64);
            match exact.next_if(|&&(exact, _)| exact == sequence) {
                Some((_, at)) => {
                    assert!((arrival.expect("received") - at.as_nanos()).abs() <= TICK / 2);
                }
                None => assert_eq!(arrival, None),
            }
        }
    }
}

#[test]
fn chunks_are_few() {
    let length = |packets: Vec<Status>| {
        let deltas: usize = packets
            .iter()
            .map(|status| match *status {
                Status::Received { delta } => 1 + usize::from(u8::try_from(delta).is_err()),
                _ => 0,
            })
            .sum();
        let bytes = encoded(&[Packet::Twcc(Twcc { packets, ..Twcc::default() })]);
        let padding = if bytes[0] & 0x20 != 0 { usize::from(*bytes.last().expect("some")) } else { 0 };
        // 20 bytes in front of the chunks
        (bytes.len() - 20 - deltas - padding) / 2
    };
    let small = Status::Received { delta: 4 };
    let missing = Status::NotReceived;
    // one run; one vector, full or not; three vectors
    assert_eq!(length(vec![small; 100]), 1);
    assert_eq!(length([small, missing].repeat(7)), 1);
    assert_eq!(length([vec![missing], vec![small; 4]].concat()), 1);
    assert_eq!(length([small, missing, missing].repeat(14)), 3);
    // a large delta makes seven of two bits, the other fourteen take one bit
    let large = Status::Received { delta: -1 };
    let mixed = [vec![large, missing, small, small, missing, missing, small], [small, missing].repeat(7)];
    assert_eq!(length(mixed.concat()), 2);
}

/// (padding bit, packet type, bytes) of each packet of a datagram.
fn packets_of(mut datagram: &[u8]) -> Vec<(bool, u8, usize)> {
    let mut packets = Vec::new();
    while let [first, kind, high, low, ..] = *datagram {
        let length = 4 * (usize::from(u16::from_be_bytes([high, low])) + 1);
        packets.push((first & 0x20 != 0, kind, length));
        datagram = &datagram[length..];
    }
    packets
}

#[test]
fn only_the_last_packet_of_a_datagram_has_the_padding_bit() {
    // with so many deltas feedback ends 0 to 3 bytes before a word's end: after 20 bytes and one chunk of two
    for received in 1..=4 {
        let packets = vec![Status::Received { delta: 1 }; received];
        let feedback = Packet::Twcc(Twcc { packets, ..Twcc::default() });
        let alone = encoded(std::slice::from_ref(&feedback));
        let filled = received != 2;
        assert_eq!(packets_of(&alone), [(filled, 205, alone.len())]);
        let pli = Packet::Pli(Pli { sender_ssrc: 1, media_ssrc: 2 });
        for mut compound in [vec![feedback.clone(), pli.clone()], vec![pli, feedback.clone()]] {
            compound.insert(1, feedback.clone());
            let bytes = encoded(&compound);
            let told = packets_of(&bytes);
            let last = matches!(compound.last(), Some(Packet::Twcc(_)));
            assert_eq!(told.iter().map(|told| told.0).collect::<Vec<_>>(), [false, false, filled && last]);
            // as long as with the bit, and what is said is the same
            assert_eq!(bytes.len(), 2 * alone.len() + 12);
            assert_eq!(tidegate_core::wire::rtcp::decode(&bytes), Ok(compound));
        }
    }
}
