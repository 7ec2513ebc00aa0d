//! The two placements of GCC at their sending half, and the thesis's reading of the first one.

use crate::support::{host, result};
use serde_json::{Value, json};
use tidegate_controllers::gcc::detector::Usage;
use tidegate_controllers::gcc::kalman::Kalman;
use tidegate_controllers::gcc::presets::draft_02;
use tidegate_core::control::{Limits, LossReport, PacketResult, Report, Sent};
use tidegate_core::{ControllerHost, Rate, Size, Span, Time};

const MS: i64 = 1_000_000;

/// The thesis's limits (its table 7).
fn thesis() -> Limits {
    Limits {
        min: Rate::from_mbps(3),
        max: Rate::from_mbps(10),
        start: Rate::from_bps(7_200_000),
        ..Limits::default()
    }
}

fn at(ms: i64) -> Time {
    Time::from_millis(ms)
}

/// A packet of 30 kB with its number, sent and arrived at these milliseconds; `None`: lost.
fn packet(sequence: u64, sent: i64, arrival: Option<i64>) -> PacketResult {
    result(sequence, 30_000, at(sent), arrival.map(|ms| ms * MS))
}

fn hand_in(host: &mut ControllerHost, now: i64, packets: Vec<PacketResult>) -> u64 {
    let report = Report { packets, ..Report::default() };
    host.report(at(now), &report).expect("contract").target.as_bps()
}

fn all(host: &ControllerHost, name: &str) -> Vec<f64> {
    host.notes.values.iter().filter(|(known, _)| known == name).map(|&(_, value)| value).collect()
}

fn last(host: &ControllerHost, name: &str) -> f64 {
    *all(host, name).last().unwrap_or_else(|| panic!("no {name} in {:?}", host.notes.values))
}

#[test]
fn a_lost_packet_repeats_the_variation_before_it_in_order_of_numbers() {
    let mut host = host("gcc", "hoang2017", &Value::Null, &thesis());
    host.notes.wanted = true;
    // the fourth overtakes the third; the fifth and the sixth are lost
    let packets = vec![
        packet(0, 0, Some(50)),
        packet(1, 33, Some(90)),
        packet(2, 66, Some(150)),
        packet(3, 99, Some(140)),
        packet(4, 132, None),
        packet(5, 165, None),
        packet(6, 198, Some(250)),
    ];
    hand_in(&mut host, 3000, packets);
    let steps = [(40.0, 33.0), (60.0, 33.0), (-10.0, 33.0), (-10.0, 33.0), (-10.0, 33.0), (110.0, 99.0)];
    let variations: Vec<f64> = steps.iter().map(|(arrival, send)| arrival - send).collect();
    assert_eq!(all(&host, "group_delta_ms"), variations);
    let mut filter = Kalman::new(draft_02::Settings::default().kalman());
    let by_hand = steps.map(|(arrival, send)| {
        filter.update(arrival, send, 0.0, Usage::Normal);
        filter.offset
    });
    assert_eq!(all(&host, "offset"), by_hand);
    // without it they are not heard of
    let mut deaf = crate::support::host("gcc", "hoang2017", &json!({"lost_repeat": false}), &thesis());
    deaf.notes.wanted = true;
    hand_in(&mut deaf, 3000, vec![packet(0, 0, Some(50)), packet(1, 33, Some(90)), packet(2, 66, None)]);
    assert_eq!(all(&deaf, "group_delta_ms"), [7.0]);
}

#[test]
fn reports_every_three_seconds_lose_nothing() {
    let mut host = host("gcc", "hoang2017", &Value::Null, &thesis());
    host.notes.wanted = true;
    let mut deltas = 0;
    for report in 0..10 {
        // a hundred packets a report, none lost, 50 ms on their way; reports some 3.05 s apart
        let first = report * 100;
        let packets =
            (first..first + 100).map(|i| packet(i as u64, 30 * i, Some(30 * i + 50))).collect::<Vec<_>>();
        let now = 3050 * (report + 1);
        let target = hand_in(&mut host, now, packets);
        deltas += all(&host, "num_deltas").len();
        // R over the last half second: 17 packets of 30 kB, 8.16 Mb/s; steady delays are no over-use, so that
        // both parts grow: 1.08 and 1.05 + 1000 b/s, to the limit
        assert!((last(&host, "received_rate") - 17.0 * 240_000.0 / 0.5).abs() < 1e-6);
        let steps = i32::try_from(report + 1).expect("few");
        let growth = (0..steps).fold(7.2e6, |rate, _| rate * 1.08_f64);
        assert!((last(&host, "delay_based") - growth.min(1e7)).abs() < 1e-3, "report {report}");
        let by_loss = (0..steps).fold(7.2e6, |rate: f64, _| (rate * 1.05 + 1000.0).min(1e7));
        assert!((last(&host, "loss_based") - by_loss).abs() < 1e-3, "report {report}");
        assert!((target as f64 - by_loss).abs() <= 1.0);
        // receiver reports in between are no feedback of his
        let rr = LossReport {
            fraction_lost: 0,
            cumulative_lost: 0,
            highest_sequence: 0,
            jitter: Span::ZERO,
            expected: 50,
        };
        let report = Report { loss: Some(rr), ..Report::default() };
        assert_eq!(host.report(at(now + 100), &report).expect("contract").target.as_bps(), target);
    }
    assert_eq!(deltas, 999, "every packet but the first is a difference, over all reports");
}

#[test]
fn a_report_of_nothing_but_losses_halves_the_loss_based_rate_alone() {
    let mut host = host("gcc", "hoang2017", &Value::Null, &thesis());
    host.notes.wanted = true;
    hand_in(&mut host, 3000, (0..100).map(|i| packet(i, 30 * i as i64, Some(30 * i as i64 + 50))).collect());
    let (delay, loss) = (last(&host, "delay_based"), last(&host, "loss_based"));
    let target = hand_in(&mut host, 6000, (100..200).map(|i| packet(i, 30 * i as i64, None)).collect());
    // p = 1: As (1 - 0.5), from 7.561 Mb/s; Ar stays as it is
    assert_eq!(target, ((7.2e6 * 1.05 + 1000.0) / 2.0) as u64);
    assert_eq!(loss, 7.561e6);
    let after = hand_in(
        &mut host,
        9000,
        (200..300).map(|i| packet(i, 30 * i as i64, Some(30 * i as i64 + 50))).collect(),
    );
    assert!((last(&host, "delay_based") - delay * 1.08).abs() < 1e-3);
    assert_eq!(after, (target as f64 * 1.05 + 1000.0) as u64);
}

#[test]
fn late_packets_count_as_lost_where_a_limit_is_set() {
    let fraction = |late_after: f64| {
        let overrides = json!({"late_after": late_after});
        let mut host = host("gcc", "hoang2017", &overrides, &thesis());
        host.notes.wanted = true;
        // least delay 50 ms; every tenth packet has 90 ms, every twentieth is lost
        let delay = |i: i64| if i % 10 == 9 { 90 } else { 50 };
        let one = |i: i64| packet(i as u64, 30 * i, (i % 20 != 4).then(|| 30 * i + delay(i)));
        hand_in(&mut host, 3000, (0..100).map(one).collect());
        last(&host, "loss_fraction")
    };
    assert_eq!(fraction(0.0), 0.05);
    assert_eq!(fraction(40.0), 0.05, "40 ms more is not more than 40 ms");
    assert_eq!(fraction(39.9), 0.15);
}

/// The sending half of the second placement, begun with 300 kb/s.
fn remb_host(preset: &str) -> ControllerHost {
    let mut host = host("gcc-remb", preset, &Value::Null, &Limits::default());
    host.notes.wanted = true;
    host
}

fn remb(host: &mut ControllerHost, now: i64, kbps: u64) -> u64 {
    let report = Report { remb: Some(Rate::from_kbps(kbps)), ..Report::default() };
    host.report(at(now), &report).expect("contract").target.as_bps()
}

/// A receiver report: so many expected since the last one, and lost since the beginning.
fn receiver_report(host: &mut ControllerHost, now: i64, expected: u32, cumulative_lost: i32) -> u64 {
    let loss =
        LossReport { fraction_lost: 0, cumulative_lost, highest_sequence: 0, jitter: Span::ZERO, expected };
    let report = Report { loss: Some(loss), report_rtt: Some(Span::from_millis(100)), ..Report::default() };
    host.report(at(now), &report).expect("contract").target.as_bps()
}

#[test]
fn the_second_placement_takes_the_lower_of_loss_part_and_remb() {
    let mut host = remb_host("draft-02");
    assert_eq!(host.decision().target, Rate::from_kbps(300));
    // before the first REMB the loss part rules: 5 % a second
    receiver_report(&mut host, 0, 0, 0);
    assert_eq!(receiver_report(&mut host, 1000, 50, 0), 315_000);
    assert_eq!(receiver_report(&mut host, 2001, 50, 0), 330_750);
    // a REMB above changes nothing, one below holds at once and bounds the loss part
    assert_eq!(remb(&mut host, 2100, 1000), 330_750);
    assert_eq!(remb(&mut host, 2200, 200), 200_000);
    assert_eq!(last(&host, "loss_based"), 200_000.0);
    assert_eq!(last(&host, "remb"), 200_000.0);
    assert_eq!(remb(&mut host, 2300, 400), 200_000);
    // 20 % lost: 200 kb/s (1 - 0.5 * 0.2)
    assert_eq!(receiver_report(&mut host, 3100, 100, 20), 180_000);
    // zero lifts the limit, and the loss part grows from where it is
    assert_eq!(remb(&mut host, 3200, 0), 180_000);
    assert_eq!(receiver_report(&mut host, 4200, 100, 20), 189_000);
}

#[test]
fn without_a_loss_part_remb_alone_rules() {
    let mut host = remb_host("aiortc");
    assert_eq!(host.decision().target, Rate::from_kbps(300));
    receiver_report(&mut host, 0, 0, 0);
    assert_eq!(receiver_report(&mut host, 1000, 50, 25), 300_000);
    assert_eq!(remb(&mut host, 1100, 2500), 2_500_000);
    assert_eq!(remb(&mut host, 1200, 10), 30_000, "the session's least");
    assert_eq!(remb(&mut host, 1300, 0), 10_000_000, "and its most");
}

#[test]
fn silence_of_messages_and_reports_lowers_the_rate() {
    let mut host = remb_host("draft-02");
    let send = |host: &mut ControllerHost, ms: i64| {
        while let Some(due) = host.decision().alarm.filter(|&due| due <= at(ms)) {
            let _ = host.alarm(due).expect("contract");
        }
        let size = Size::from_bytes(1000);
        let sent = Sent { sequence: 0, size, in_flight: size, backlog: Size::ZERO };
        host.sent(at(ms), &sent).expect("contract").target.as_bps()
    };
    send(&mut host, 0);
    remb(&mut host, 50, 1000);
    // either of the two will do
    for ms in (1000..20_000).step_by(2000) {
        receiver_report(&mut host, ms, 0, 0);
        assert_eq!(send(&mut host, ms + 900), 300_000);
        remb(&mut host, ms + 1000, 1000);
        assert_eq!(send(&mut host, ms + 1900), 300_000);
    }
    // 3 s, of which the round trip of 100 ms is a part, and then a fifth less every second
    assert_eq!(send(&mut host, 20_000 + 2900), 300_000);
    assert_eq!(send(&mut host, 20_000 + 2901), 240_000);
    assert_eq!(send(&mut host, 20_000 + 3900), 240_000);
    assert_eq!(send(&mut host, 20_000 + 3902), 192_000);
    // a REMB ends it
    assert_eq!(remb(&mut host, 25_000, 1000), 192_000);
    assert_eq!(send(&mut host, 27_000), 192_000);
}
