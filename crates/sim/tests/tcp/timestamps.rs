//! Timestamps (RFC 7323): their place in each segment, what a receiver returns, and the round trips that they measure.

use crate::bench::{MSS, established, receiver, sender};
use crate::harness::Dumbbell;
use tidegate_core::datagram::{Opening, TcpBody};
use tidegate_core::wire::tcp::Timestamps;
use tidegate_core::{Span, Time};
use tidegate_sim::traffic::tcp::{TcpSettings, Variant};

fn stamped(settings: TcpSettings) -> TcpSettings {
    TcpSettings { timestamps: true, ..settings }
}

/// A SYN of MSS, window scale, SACK permitted and timestamps has 24 bytes of options, which Linux packs into 20.
#[test]
fn each_segment_is_twelve_bytes_larger() {
    let mut end = sender(stamped(TcpSettings { variant: Variant::Sack, ..TcpSettings::default() }));
    let (_, syn) = end.sent().remove(0);
    assert_eq!((syn.size, syn.options().timestamps), (64, Some(Timestamps::default())));
    end.now = Time::from_micros(40_900);
    let body = TcpBody { ack: 1, flags: TcpBody::SYN | TcpBody::ACK, window: 60_000, ..TcpBody::default() };
    let timestamps = Some(Timestamps { value: 20, echo: 0 });
    let mut options = syn.options();
    (options.opening, options.timestamps) = (Opening { scale: Some(0), ..options.opening }, timestamps);
    end.answer(body, options);
    let (_, data) = end.sent().remove(0);
    assert_eq!((data.size, data.options().timestamps), (52 + MSS, Some(Timestamps { value: 40, echo: 20 })));
    for (settings, size) in [(stamped(established()), 52), (established(), 40)] {
        let mut end = receiver(&settings);
        end.data(0, 1000);
        assert_eq!(end.sent()[0].1.size, size);
    }
    // without options in SYNs both ends know of it beforehand
    let mut end = sender(stamped(TcpSettings { options: false, ..TcpSettings::default() }));
    assert_eq!(end.sent()[0].1.size, 40);
    let mut end = receiver(&stamped(TcpSettings { options: false, ..TcpSettings::default() }));
    end.syn(0);
    assert_eq!(end.sent()[0].1.size, 40);
}

/// RFC 7323 section 4.3: of delayed acknowledgements the first segment's value, behind a hole that of the last segment
/// in order, and with the hole filled that of the segment that filled it.
#[test]
fn a_receiver_returns_the_value_that_advanced_the_left_edge() {
    let mut end = receiver(&stamped(TcpSettings {
        variant: Variant::Sack,
        delayed_ack: Some(Span::from_millis(200)),
        ..established()
    }));
    let mut echo = |segment: u32, value: u32| {
        end.stamped_data(segment * MSS, value);
        end.sent().pop().map(|(_, ack)| ack.options().timestamps.unwrap().echo)
    };
    assert_eq!([echo(0, 1), echo(1, 2)], [None, Some(1)], "delayed");
    assert_eq!([echo(3, 4), echo(4, 5)], [Some(1), Some(1)], "behind a hole");
    assert_eq!(echo(2, 6), Some(6), "the hole is filled by a later segment");
    assert_eq!(echo(1, 3), Some(6), "an older one");
    assert_eq!([echo(5, 7), echo(6, 8)], [None, Some(7)]);
}

/// The first segment leaves at 0 and again at 1 s, and is acknowledged at 1.1 s. By Karn's algorithm that measures
/// nothing, and the timeout stays at 2 s; the timestamp tells which copy arrived.
#[test]
fn a_copy_measures_a_round_trip() {
    let timeout = |timestamps: bool, echo: u32| {
        let settings = TcpSettings { variant: Variant::Sack, initial_window: 1, timestamps, ..established() };
        let mut end = sender(settings);
        assert_eq!(end.segments(), [0]);
        assert_eq!((end.wait_for_packet(), end.segments()), (Time::from_secs(1), vec![0]));
        end.now = Time::from_millis(1100);
        end.stamped_ack(1, timestamps.then_some(echo));
        assert_eq!(end.segments(), [1, 2]);
        let again = end.wait_for_packet();
        assert_eq!(end.segments(), [1]);
        (again - Time::from_millis(1100)).as_millis_f64()
    };
    assert_eq!(timeout(false, 0), 2000.0);
    assert_eq!(timeout(true, 1000), 1000.0, "the smallest one");
    // 1.1 s and four times half of that
    assert_eq!(timeout(true, 0), 3300.0);
    // the clock of another connection, later than now, measures nothing
    assert_eq!(timeout(true, 2000), 2000.0);
}

/// With RACK the probe and the timeout after it repeat the segment. Its acknowledgement at 2.1 s measures nothing, so that
/// the doubled timeout is next; by the timestamp it is a probe after two round trips and 2 ms.
#[test]
fn a_copy_measures_a_round_trip_for_probes() {
    let probe = |timestamps: bool| {
        let settings =
            TcpSettings { variant: Variant::Cubic, receive_window: MSS, timestamps, ..established() };
        let mut end = sender(settings);
        assert_eq!(end.segments(), [0]);
        end.wait_until(Time::from_millis(2100));
        assert_eq!(end.segments(), [0, 0]);
        end.stamped_ack(1, timestamps.then_some(2000));
        assert_eq!(end.segments(), [1, 2]);
        (end.wait_for_packet() - Time::from_millis(2100)).as_millis_f64()
    };
    assert_eq!([probe(false), probe(true)], [2000.0, 202.0]);
}

/// A link carries the data in 1460 of 1512 bytes.
#[test]
fn they_cost_their_bytes() {
    let run = |timestamps| {
        let settings = TcpSettings { variant: Variant::Cubic, timestamps, ..TcpSettings::default() };
        Dumbbell::reference(settings).run()
    };
    let (with, without) = (run(true), run(false));
    let ratio = with.goodput(0) / without.goodput(0);
    assert!((ratio - 1500.0 / 1512.0).abs() < 0.002, "{ratio}");
    assert_eq!(with.flows[0].ack_bytes / with.flows[0].acks, 52);
}
