//! Bursts of segmentation offload: their sizes and distances by Linux's rules, and what they leave as it is.

use crate::bench::{Bench, MSS, established, sender};
use crate::harness::{Dumbbell, Result};
use std::collections::BTreeMap;
use tidegate_core::datagram::TcpBody;
use tidegate_core::{Rate, Span, Time};
use tidegate_sim::traffic::tcp::{TcpSender, TcpSettings, Variant, Workload};

/// A flow over a link of so many Mbit/s with a round trip of so many milliseconds, whose queue holds 20 ms.
fn run(variant: Variant, mbps: u64, rtt_ms: i64, offload: bool) -> Result {
    let mut path = Dumbbell::reference(TcpSettings { variant, offload, ..TcpSettings::default() });
    path.rate = Rate::from_mbps(mbps);
    path.one_way = Span::from_micros(500 * rtt_ms);
    path.queue = (mbps * 20_000 / 12_000) as u32;
    (path.from, path.until) = (Time::from_secs(10), Time::from_secs(20));
    path.detailed = true;
    path.run()
}

/// Times of bursts, and the number of segments in each.
fn bursts(result: &Result) -> Vec<(f64, usize)> {
    let departures = &result.flows[0].departures;
    departures.chunk_by(|a, b| a.0 == b.0).map(|burst| (burst[0].0, burst.len())).collect()
}

/// Share of segments in bursts of each size.
fn sizes(result: &Result) -> BTreeMap<usize, f64> {
    let mut sizes = BTreeMap::new();
    for (_, size) in bursts(result) {
        *sizes.entry(size).or_default() += size as f64 / result.flows[0].departures.len() as f64;
    }
    sizes
}

/// BBR paces at 0.99 of 100 Mbit/s, 12.05 MB of data a second: 11 765 bytes in 2^-10 s are 8 segments, which take 969 us;
/// 1.25 and 0.75 of it are 10 and 6.
#[test]
fn bbr_paces_bursts_of_a_millisecond() {
    let result = run(Variant::Bbr, 100, 40, true);
    let sizes = sizes(&result);
    println!("{sizes:?}");
    assert!(sizes[&8] > 0.6 && sizes[&10] > 0.08 && sizes[&6] > 0.05, "{sizes:?}");
    assert!(sizes.range(1..6).map(|(_, share)| share).sum::<f64>() < 0.05, "{sizes:?}");
    let mut gaps: Vec<f64> = bursts(&result)
        .windows(2)
        .filter(|pair| pair[0].1 == 8 && pair[1].1 == 8)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    gaps.sort_by(f64::total_cmp);
    let expected = 8.0 * 1460.0 / (0.99 * 12.5e6 * 1460.0 / 1500.0);
    let median = gaps[gaps.len() / 2];
    assert!((median - expected).abs() < 0.01 * expected, "{median} {expected}");
    assert!(bursts(&run(Variant::Bbr, 100, 40, false)).iter().all(|&(_, size)| size == 1));
}

/// Below 1.2 Mbit/s BBR sends single segments, above two at least (`bbr_min_tso_segs`).
#[test]
fn bbr_sends_pairs_from_1200_kilobits_a_second_on() {
    let share = |result: &Result, size| sizes(result).get(&size).copied().unwrap_or(0.0);
    // probes at 1.25 stay below 1.2 Mbit/s, and drains at 0.75 above it
    let mut path =
        Dumbbell::reference(TcpSettings { variant: Variant::Bbr, offload: true, ..TcpSettings::default() });
    (path.rate, path.queue, path.detailed) = (Rate::from_kbps(900), 100, true);
    let slow = path.run();
    assert!(share(&slow, 1) > 0.98, "{:?}", sizes(&slow));
    let fast = run(Variant::Bbr, 4, 40, true);
    assert!(share(&fast, 2) > 0.95, "{:?}", sizes(&fast));
}

/// CUBIC's bursts wait for acknowledgements until they have 2^-10 s of 1.2 windows a round trip. The queue is never
/// empty, so that a window a round trip is the capacity: 14 258 bytes are 9 segments. At 10 Mbit/s acknowledgements are
/// more than 1 ms apart, which is too long to wait.
#[test]
fn cubic_waits_for_a_burst_where_acknowledgements_are_close() {
    let result = run(Variant::Cubic, 100, 40, true);
    let sizes = sizes(&result);
    println!("{sizes:?}");
    assert!(sizes.range(9..=10).map(|(_, share)| share).sum::<f64>() > 0.7, "{sizes:?}");
    let without = run(Variant::Cubic, 100, 40, false);
    assert!(self::sizes(&without)[&1] > 0.95);
    let ratio = result.flows[0].goodput as f64 / without.flows[0].goodput as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    let slow = |offload| run(Variant::Cubic, 10, 40, offload).flows[0].departures.clone();
    assert_eq!(slow(true), slow(false));
}

/// 2 ms away, three times 512 us and a part, bursts are larger by 2^13 bytes: 13 segments instead of 8.
#[test]
fn bursts_to_a_near_host_are_larger() {
    let sizes = sizes(&run(Variant::Bbr, 100, 2, true));
    assert!(sizes[&13] > 0.6 && !sizes.contains_key(&8), "{sizes:?}");
}

/// At 1 Gbit/s bursts have 64 kB, if acknowledgements allow as much within 1 ms: 82 segments of 1500 bytes.
#[test]
fn a_burst_has_64_kilobytes_at_most() {
    let mut path =
        Dumbbell::reference(TcpSettings { variant: Variant::Cubic, offload: true, ..TcpSettings::default() });
    (path.rate, path.one_way, path.queue) = (Rate::from_mbps(1000), Span::from_micros(100), 1000);
    (path.from, path.until, path.detailed) = (Time::from_millis(500), Time::from_millis(1500), true);
    let result = path.run();
    let sizes = sizes(&result);
    assert!(sizes[&44] > 0.9 && sizes.keys().all(|&size| size <= 44), "{sizes:?}");
    assert!(result.utilisation() > 0.95, "{}", result.utilisation());
}

/// A hundred segments under way, acknowledged from `rtt_us` on.
fn hundred(settings: TcpSettings, rtt_us: i64) -> Bench<TcpSender> {
    let mut end = sender(TcpSettings { initial_window: 100, offload: true, ..settings });
    assert_eq!(end.segments().len(), 100);
    end.now = Time::from_micros(rtt_us);
    end
}

fn sack() -> TcpSettings {
    TcpSettings { variant: Variant::Sack, ..established() }
}

/// Twice the window of 101 segments in 40 ms is 4.9 segments in 2^-10 s, and with 103 it is 5.02.
#[test]
fn a_burst_waits_for_an_acknowledgement_that_is_due() {
    let mut end = hundred(sack(), 40_000);
    end.ack(1);
    assert_eq!(end.segments(), [100, 101], "after a pause nothing waits");
    end.now += Span::from_micros(100);
    end.ack(2);
    assert!(end.segments().is_empty(), "two of four, and the next acknowledgement is due");
    end.now += Span::from_micros(100);
    end.ack(3);
    assert!(end.segments().is_empty(), "four of five");
    end.now += Span::from_micros(100);
    end.ack(4);
    assert_eq!(end.segments(), [102, 103, 104, 105, 106], "and the sixth waits");
    // the first segment under way left 0.4 ms ago: its acknowledgement is due in 40 ms, and what remains does not wait
    end.now += Span::from_micros(100);
    end.ack(100);
    assert_eq!(end.segments().len(), 105 - 7);
}

/// Two of four segments wait, but not if they are the last ones.
#[test]
fn the_end_of_a_file_does_not_wait() {
    for (segments, waits) in [(104, false), (105, true)] {
        let workload = Workload::File(u64::from(MSS * segments));
        let mut end = hundred(TcpSettings { workload, ..sack() }, 40_000);
        end.ack(1);
        assert_eq!(end.segments(), [100, 101]);
        end.now += Span::from_micros(100);
        end.ack(2);
        assert_eq!(end.segments().is_empty(), waits);
    }
}

/// The receiver's window limits a burst, too: it leaves one segment of five, where the congestion window has room for five.
#[test]
fn a_burst_waits_for_the_receivers_window() {
    let mut end = hundred(TcpSettings { receive_window: 100_000, ..sack() }, 40_000);
    let mut ack = |count: u32, segments: u32| {
        let window = ((segments * MSS) >> 1) as u16;
        end.header(TcpBody { ack: count * MSS, window, flags: TcpBody::ACK, ..TcpBody::default() });
        end.now += Span::from_micros(100);
        end.segments().len()
    };
    assert_eq!([ack(1, 100), ack(2, 99), ack(3, 99), ack(5, 101)], [1, 0, 0, 5]);
}

/// With a round trip of 1 ms an acknowledgement that is due in 0.7 ms is too far: half a round trip is the limit.
#[test]
fn half_a_round_trip_is_too_long_to_wait() {
    let mut end = hundred(sack(), 1000);
    end.ack(40);
    let sent = end.segments().len();
    assert_eq!(sent, 41);
    end.now += Span::from_micros(300);
    end.ack(100);
    assert_eq!(end.segments().len(), 102 - 41);
}

/// In recovery segments leave one by one as acknowledgements allow it, also when the one of the copy is due.
#[test]
fn recovery_does_not_wait() {
    let mut end = hundred(sack(), 40_000);
    end.ack(1);
    (3..=101).for_each(|highest| {
        end.now += Span::from_micros(10);
        end.ack_with(1, &[(2, highest)]);
    });
    assert_eq!(end.segments().iter().filter(|&&segment| segment == 1).count(), 1);
    // the copy of segment 1 left at 40.03 ms
    end.now = Time::from_millis(79);
    (102..110).for_each(|highest| {
        end.now += Span::from_micros(100);
        end.ack_with(1, &[(2, highest)]);
        assert_eq!(end.segments().len(), 1, "{highest}");
    });
}

/// A burst is half the window at most (`tcp_cwnd_test`).
#[test]
fn a_burst_is_half_the_window_at_most() {
    let mut end = sender(TcpSettings { variant: Variant::Bbr, offload: true, ..established() });
    assert_eq!(end.segments(), [0, 1, 2, 3, 4]);
    end.wait_for_packet();
    assert_eq!(end.segments(), [5, 6, 7, 8, 9]);
}
