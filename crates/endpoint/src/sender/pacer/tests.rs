use super::*;
use tidegate_core::control::{Probe, Probes};

const PACKET: Queued = Queued {
    since: Time::ZERO,
    timestamp: 0,
    frame: 0,
    payload: 976,
    original: 0,
    stream: 0,
    flags: 0,
    marks: 0,
};
const SIZE: Size = Size::from_bytes(1000);
const PROBE: Probe = Probe {
    id: 7,
    rate: Rate::from_mbps(4),
    length: Span::from_millis(15),
    min_packets: 5,
    spacing: Span::ZERO,
};

fn pacer(decision: Decision) -> Pacer {
    let mut pacer = Pacer::new(Span::from_secs(2), 24, 248);
    pacer.decide(Time::ZERO, &decision);
    pacer
}

/// Sends all packets that may leave up to `until`, and returns them with their times.
fn drive(pacer: &mut Pacer, until: Time) -> Vec<(Time, Turn)> {
    drive_from(pacer, Time::ZERO, until)
}

fn drive_from(pacer: &mut Pacer, mut now: Time, until: Time) -> Vec<(Time, Turn)> {
    let mut sent = Vec::new();
    loop {
        now = pacer.due(Size::ZERO).max(now);
        if now > until {
            return sent;
        }
        let turn = pacer.turn(now, Size::ZERO).expect("a packet is due");
        let (size, probe) = match turn {
            Turn::Media(_, probe) => (SIZE, probe),
            Turn::Padding(probe) => (Size::from_bytes(248), probe),
            Turn::Heartbeat => (Size::from_bytes(25), None),
        };
        pacer.sent(now, size, probe.is_some());
        sent.push((now, turn));
    }
}

#[test]
fn low_rates_are_even_and_high_rates_go_in_bursts_of_5_ms() {
    let mut slow = pacer(Decision::rate(Rate::from_mbps(1)));
    (0..4).for_each(|_| slow.push(false, PACKET));
    let times: Vec<Time> = drive(&mut slow, Time::MAX - Span::from_nanos(1)).iter().map(|s| s.0).collect();
    assert_eq!(times, [0, 8, 16, 24].map(Time::from_millis));

    let mut fast = pacer(Decision::rate(Rate::from_mbps(8)));
    (0..1001).for_each(|_| fast.push(false, PACKET));
    let times: Vec<Time> = drive(&mut fast, Time::MAX - Span::from_nanos(1)).iter().map(|s| s.0).collect();
    assert_eq!(times[..6], [0, 0, 0, 0, 0, 5].map(Time::from_millis));
    assert_eq!(times[1000], Time::from_secs(1), "1000 packets of 8000 bits take exactly a second");
    assert_eq!(fast.backlog(), Size::ZERO);
}

#[test]
fn bursts_of_40_ms_leave_whenever_media_comes_to_an_empty_queue_or_audio_passes() {
    // 1000 bytes are 8 ms at 1 Mb/s: the fifth packet makes the 40 ms
    let burst = Some(Span::from_millis(40));
    let decision = Decision { burst, ..Decision::rate(Rate::from_mbps(1)) };
    let queued = |millis: i64| Queued { since: Time::from_millis(millis), ..PACKET };
    let times = |pacer: &mut Pacer, from: i64, until: i64| -> Vec<i64> {
        let sent = drive_from(pacer, Time::from_millis(from), Time::from_millis(until));
        sent.iter().map(|(time, _)| time.as_nanos() / 1_000_000).collect()
    };
    let mut even = pacer(decision);
    (0..12).for_each(|_| even.push(false, queued(0)));
    assert_eq!(times(&mut even, 0, 200), [0, 0, 0, 0, 0, 40, 40, 40, 40, 40, 80, 80]);
    // 96 ms are paid off at 96 ms. Packets that come before that, to an empty queue, have 40 ms more
    (0..6).for_each(|_| even.push(false, queued(90)));
    assert_eq!(times(&mut even, 90, 200), [90, 90, 90, 90, 90, 136]);
    // packets behind others wait with them, until audio passes: then there is room for the bytes paid off by then
    let mut mixed = pacer(decision);
    (0..6).for_each(|_| mixed.push(false, queued(0)));
    assert_eq!(times(&mut mixed, 0, 10), [0; 5]);
    mixed.push(false, queued(10));
    assert_eq!(times(&mut mixed, 10, 19), [0; 0]);
    mixed.push(true, queued(20));
    assert_eq!(
        times(&mut mixed, 20, 30),
        [20, 20, 20],
        "20 ms remain of 40, and audio takes 8: 12 for two more"
    );
    // no burst has more than 63 kB, which at 100 Mb/s are 5 ms
    let mut fast = pacer(Decision { burst, ..Decision::rate(Rate::from_mbps(100)) });
    (0..200).for_each(|_| fast.push(false, queued(0)));
    assert_eq!(times(&mut fast, 0, 4).len(), 63);
    // without a burst, paid-off bytes make room only when all are paid off
    let mut groups = pacer(Decision::rate(Rate::from_mbps(4)));
    (0..2).for_each(|_| groups.push(false, queued(0)));
    assert_eq!(times(&mut groups, 0, 2), [0, 0]);
    (0..2).for_each(|_| groups.push(false, queued(3)));
    assert_eq!(times(&mut groups, 3, 20), [3, 6]);
}

#[test]
fn audio_goes_first_and_is_paid_for() {
    let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
    (0..2).for_each(|_| pacer.push(false, PACKET));
    assert_eq!(drive(&mut pacer, Time::ZERO).len(), 1);
    pacer.push(true, Queued { stream: 1, ..PACKET });
    assert!(matches!(pacer.turn(Time::ZERO, Size::ZERO), Some(Turn::Media(Queued { stream: 1, .. }, None))));
    pacer.sent(Time::ZERO, SIZE, false);
    assert_eq!(pacer.due(Size::ZERO), Time::from_millis(16));
}

#[test]
fn audio_waits_if_the_decision_paces_it() {
    let mut pacer = pacer(Decision { pace_audio: true, ..Decision::rate(Rate::from_mbps(1)) });
    (0..2).for_each(|_| pacer.push(false, PACKET));
    (0..2).for_each(|_| pacer.push(true, Queued { stream: 1, ..PACKET }));
    let sent = drive(&mut pacer, Time::from_secs(1));
    let times: Vec<Time> = sent.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0, 8, 16, 24].map(Time::from_millis), "1000 bytes each");
    let audio = |turn: &Turn| matches!(turn, Turn::Media(Queued { stream: 1, .. }, None));
    assert!(audio(&sent[0].1) && audio(&sent[1].1) && !audio(&sent[2].1), "but it goes first");
}

#[test]
fn a_new_rate_pays_off_the_debt() {
    let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
    (0..2).for_each(|_| pacer.push(false, PACKET));
    assert_eq!(drive(&mut pacer, Time::ZERO).len(), 1);
    // half of the packet is paid at 4 ms; the rest takes 1 ms at four times the rate
    pacer.decide(Time::from_millis(4), &Decision::rate(Rate::from_mbps(4)));
    pacer.decide(Time::from_millis(4), &Decision::rate(Rate::from_mbps(4)));
    assert_eq!(pacer.drained, Time::from_millis(5));
    pacer.decide(Time::from_millis(4), &Decision::rate(Rate::ZERO));
    assert_eq!(pacer.due(Size::ZERO), Time::MAX);
}

#[test]
fn window_and_gap_hold_packets_back() {
    let window = Some(Size::from_bytes(2500));
    let mut pacer = pacer(Decision { window, ..Decision::rate(Rate::from_mbps(100)) });
    (0..3).for_each(|_| pacer.push(false, PACKET));
    assert_eq!(pacer.due(Size::from_bytes(1500)), Time::ZERO, "just fits");
    assert_eq!(pacer.due(Size::from_bytes(1501)), Time::MAX);
    assert_eq!(pacer.turn(Time::ZERO, Size::from_bytes(1501)), None);
    let tiny = Some(Size::from_bytes(10));
    pacer.decide(Time::ZERO, &Decision { window: tiny, ..Decision::rate(Rate::from_mbps(100)) });
    assert_eq!(pacer.due(Size::ZERO), Time::ZERO, "one packet may always be in flight");

    let gap = Decision { min_gap: Some(Span::from_millis(10)), ..Decision::rate(Rate::from_mbps(100)) };
    pacer.decide(Time::ZERO, &gap);
    pacer.push(true, PACKET);
    let times: Vec<Time> = drive(&mut pacer, Time::from_secs(1)).iter().map(|s| s.0).collect();
    assert_eq!(times, [0, 10, 20, 30].map(Time::from_millis), "audio, too");
}

#[test]
fn a_new_header_counts_for_queued_packets() {
    let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
    (0..3).for_each(|_| pacer.push(false, PACKET));
    assert_eq!(pacer.backlog(), SIZE * 3);
    pacer.set_header(36, 260);
    assert_eq!(pacer.backlog(), Size::from_bytes(3 * 1012));
    drive(&mut pacer, Time::from_secs(1));
    assert_eq!(pacer.backlog(), Size::ZERO);
}

#[test]
fn padding_fills_the_gaps_of_media() {
    let padded = Decision { padding: Rate::from_kbps(248), ..Decision::rate(Rate::from_mbps(1)) };
    let mut pacer = pacer(padded);
    let sent = drive(&mut pacer, Time::from_millis(1000));
    assert_eq!(sent.len(), 126, "one of 248 bytes every 8 ms");
    assert!(sent.iter().all(|(_, turn)| *turn == Turn::Padding(None)));
    // a packet of media of 1000 bytes stands for 32.26 ms of padding
    pacer.push(false, PACKET);
    assert!(matches!(pacer.turn(Time::from_millis(1001), Size::ZERO), Some(Turn::Media(..))));
    pacer.sent(Time::from_millis(1001), SIZE, false);
    let next = pacer.due(Size::ZERO);
    assert!((next - Time::from_micros(1_040_258)).abs() < Span::from_micros(1), "{next}");
}

#[test]
fn a_probe_goes_at_its_own_rate_with_media_and_then_padding() {
    let mut pacer = pacer(Decision { probes: PROBE.into(), ..Decision::rate(Rate::from_kbps(100)) });
    (0..2).for_each(|_| pacer.push(false, PACKET));
    let sent = drive(&mut pacer, Time::from_millis(100));
    // 7500 bytes: 2 of 1000 and 23 of 248 (5704), one of which comes first
    assert_eq!(sent.len(), 25);
    assert!(sent[1..3].iter().all(|(_, turn)| matches!(turn, Turn::Media(_, Some(7)))));
    assert!(sent[..1].iter().chain(&sent[3..]).all(|(_, turn)| *turn == Turn::Padding(Some(7))));
    assert_eq!(sent[1].0, Time::from_micros(496));
    assert_eq!(sent[3].0, Time::from_micros(4496));
    // the last one waits for the 7456 bytes before it
    assert_eq!(sent[24].0, Time::from_micros(14_912));
}

#[test]
fn a_probe_with_a_spacing_leaves_in_groups_at_the_same_rate() {
    let probe = Probe { spacing: Span::from_millis(2), ..PROBE };
    let mut pacer = pacer(Decision { probes: probe.into(), ..Decision::rate(Rate::from_kbps(100)) });
    pacer.push(false, PACKET);
    let sent = drive(&mut pacer, Time::from_millis(100));
    // 4 Mb/s carry 1000 bytes in 2 ms: one of 248 bytes and one of 1000 make 1248, which take 2.496 ms; then of 248
    // bytes each five make 1240. Six of those groups are needed for the 7500 bytes of 15 ms, and whole ones
    assert_eq!(sent.len(), 32);
    assert_eq!(sent[0], (Time::ZERO, Turn::Padding(Some(7))));
    assert_eq!(sent[1], (Time::ZERO, Turn::Media(PACKET, Some(7))));
    for (index, (time, turn)) in sent[2..].iter().enumerate() {
        assert_eq!(*turn, Turn::Padding(Some(7)));
        assert_eq!(*time, Time::from_micros(2496 + 2480 * (index as i64 / 5)), "packet {index}");
    }
    // a packet that takes longer than the spacing goes by itself, at its own time
    let times = |probe: Probe| {
        let mut pacer =
            super::tests::pacer(Decision { probes: probe.into(), ..Decision::rate(Rate::from_kbps(100)) });
        pacer.push(false, PACKET);
        let sent = drive(&mut pacer, Time::from_millis(100));
        sent.iter().map(|s| s.0).collect::<Vec<_>>()
    };
    let slow = Probe { rate: Rate::from_kbps(500), ..probe };
    assert_eq!(times(slow), [0, 3968, 19_968, 23_936, 27_904].map(Time::from_micros));
    // the rate alone would have each packet by itself
    let fast =
        Probe { rate: Rate::from_mbps(32), spacing: Span::from_micros(62) + Span::from_nanos(1), ..probe };
    assert_eq!(times(fast)[..6], [0, 0, 312, 312, 436, 436].map(Time::from_micros));
}

#[test]
fn a_probe_waits_for_media_that_is_large_enough_and_not_for_ever() {
    let ms = Time::from_millis;
    let probe = Probe { rate: Rate::from_kbps(900), spacing: Span::from_millis(2), ..PROBE };
    let requested =
        |id| Decision { probes: Probe { id, ..probe }.into(), ..Decision::rate(Rate::from_mbps(1)) };
    let mut pacer = pacer(requested(1));
    // 900 kbit/s carry 225 bytes in 2 ms, and 200 are enough: 175 of payload are one byte too few
    pacer.push(true, Queued { payload: 175, stream: 1, ..PACKET });
    assert!(matches!(pacer.turn(ms(0), Size::ZERO), Some(Turn::Media(_, None))));
    assert_eq!(pacer.due(Size::ZERO), Time::MAX);
    pacer.push(true, Queued { payload: 176, stream: 1, ..PACKET });
    assert_eq!(pacer.turn(ms(0), Size::ZERO), Some(Turn::Padding(Some(1))));
    pacer.clear();
    // one that has waited for more than five seconds when the next one comes is not sent any more
    pacer.decide(ms(0), &requested(2));
    pacer.decide(ms(5000), &requested(3));
    pacer.decide(ms(5001), &requested(4));
    pacer.push(false, PACKET);
    assert_eq!(pacer.turn(ms(5001), Size::ZERO), Some(Turn::Padding(Some(3))));
    // and once the last one is over, the next needs media again
    let sent = drive(&mut pacer, ms(9000));
    assert!(sent.iter().any(|(_, turn)| *turn == Turn::Padding(Some(4))));
    pacer.decide(ms(9000), &requested(5));
    assert_eq!(pacer.due(Size::ZERO), Time::MAX);
}

#[test]
fn probes_of_one_decision_follow_each_other_and_each_has_its_minimum() {
    let first = Probe { length: Span::ZERO, ..PROBE };
    let second = Probe { id: 8, rate: Rate::from_mbps(8), ..PROBE };
    let both = Probes::try_from(&[first, second][..]).expect("two fit");
    let mut pacer = pacer(Decision { probes: both, ..Decision::rate(Rate::from_kbps(100)) });
    pacer.push(false, PACKET);
    let sent = drive(&mut pacer, Time::from_millis(100));
    let times_of = |id| {
        sent.iter().filter(|(_, turn)| *turn == Turn::Padding(Some(id))).map(|s| s.0).collect::<Vec<_>>()
    };
    // no length: five packets and no more, 496 us apart, except that of media, which takes 2 ms
    assert_eq!(times_of(7), [0, 2496, 2992, 3488].map(Time::from_micros));
    // 15 ms of 8 Mb/s are 15000 bytes: 61 packets of 248 and no more, 248 us apart, the first once 4 Mb/s have carried the
    // 1992 bytes of the first probe
    let second: Vec<Time> = (0..61).map(|k| Time::from_micros(3984 + 248 * k)).collect();
    assert_eq!(times_of(8), second);
    assert_eq!(sent.len(), 66);
}

#[test]
fn the_delay_is_that_of_the_media_that_has_waited_longest() {
    let ms = Time::from_millis;
    let mut pacer = pacer(Decision::rate(Rate::from_mbps(1)));
    assert_eq!(pacer.delay(ms(100)), Span::ZERO, "nothing waits");
    pacer.push_resent(Queued { since: ms(10), ..PACKET });
    assert_eq!(pacer.delay(ms(100)), Span::ZERO, "a retransmission is no media");
    pacer.push(false, Queued { since: ms(40), ..PACKET });
    pacer.push(false, Queued { since: ms(73), ..PACKET });
    pacer.push(true, Queued { since: ms(60), ..PACKET });
    assert_eq!(pacer.delay(ms(100)), Span::from_millis(60));
    // audio goes first, then the retransmission, then the older video
    for millis in [60, 60, 27] {
        let _ = pacer.turn(Time::from_secs(1), Size::ZERO).expect("it may leave");
        assert_eq!(pacer.delay(ms(100)), Span::from_millis(millis));
    }
}

#[test]
fn heartbeats_break_a_silence_and_a_shut_window_stays_shut() {
    let beat = Some(Span::from_millis(50));
    let shut = Decision { window: Some(Size::ZERO), heartbeat: beat, ..Decision::rate(Rate::from_mbps(100)) };
    let mut pacer = pacer(shut);
    pacer.push(false, PACKET);
    // nothing in flight lets nothing through; the first heartbeat is due at once, the next after 50 ms
    let times: Vec<(Time, Turn)> = drive(&mut pacer, Time::from_millis(120));
    let expected = [0, 50, 100].map(|millis| (Time::from_millis(millis), Turn::Heartbeat));
    assert_eq!(times, expected);
    // packets that are sent for other reasons put it off
    pacer.decide(Time::from_millis(120), &Decision { window: Some(SIZE), ..shut });
    assert_eq!(pacer.turn(Time::from_millis(120), Size::ZERO), Some(Turn::Media(PACKET, None)));
    pacer.sent(Time::from_millis(120), SIZE, false);
    assert_eq!(pacer.due(SIZE), Time::from_millis(170));
    // zero is no interval
    pacer.decide(Time::from_millis(120), &Decision { heartbeat: Some(Span::ZERO), ..shut });
    assert_eq!(pacer.due(SIZE), Time::from_millis(121));
}

const DRAINED: Decision = Decision { drain_queue: true, ..Decision::rate(Rate::from_kbps(800)) };

#[test]
fn a_burst_is_out_within_the_limit_at_an_even_rate() {
    // all packets wait for the same time t, so that the rate is (backlog) / (2 s - t): that of all bytes over 2 s
    let last = |decision, count: usize| {
        let mut pacer = pacer(decision);
        (0..count).for_each(|_| pacer.push(false, PACKET));
        let sent = drive(&mut pacer, Time::from_secs(100));
        assert_eq!(sent.len(), count);
        assert_eq!((pacer.backlog(), pacer.rate), (Size::ZERO, decision.pacing));
        let halfway = sent[count / 2].0;
        (halfway, sent[count - 1].0)
    };
    let within = |decision, count: usize, seconds: f64| {
        let (halfway, last) = last(decision, count);
        // packets of 5 ms leave at once, and a byte of each is lost to rounding
        let near = |time: Time, due: f64| (due - time.as_secs_f64()).abs() < 0.008;
        let behind = seconds * (count - 1) as f64 / count as f64;
        assert!(near(halfway, seconds / 2.0) && near(last, behind), "{halfway} {last}, not {seconds} s");
    };
    within(DRAINED, 800, 2.0);
    within(DRAINED, 400, 2.0);
    within(DRAINED, 190, 1.9);
    within(Decision { drain_queue: false, ..DRAINED }, 800, 8.0);
}

#[test]
fn lasting_overload_waits_for_two_thirds_of_the_limit() {
    // 1 Mbit/s comes and 0.8 may leave: a queue of W s that leaves at 1 Mbit/s has waited W / 2 on average, and
    // W * 1 Mbit / (2 s - W / 2) = 1 Mbit/s
    let mut pacer = pacer(DRAINED);
    let (mut now, mut count, mut waited, mut departed) = (Time::ZERO, 0, Span::ZERO, 0);
    while now < Time::from_secs(60) {
        let next = Time::from_millis(8 * count);
        now = pacer.due(Size::ZERO).max(now).min(next);
        if now == next {
            pacer.push(false, Queued { since: now, ..PACKET });
            count += 1;
        } else if let Some(Turn::Media(packet, None)) = pacer.turn(now, Size::ZERO) {
            pacer.sent(now, SIZE, false);
            (waited, departed) = (now - packet.since, departed + 1);
        }
    }
    assert!((waited.as_secs_f64() - 4.0 / 3.0).abs() < 0.01, "{waited}");
    assert!((f64::from(departed) - 60.0 / 0.008 + 4.0 / 3.0 / 0.008).abs() < 3.0, "{departed} of {count}");
}

#[test]
fn a_queue_that_is_too_old_goes_within_a_millisecond() {
    let mut pacer = pacer(DRAINED);
    (0..3).for_each(|_| pacer.push(false, PACKET));
    let late = Time::from_secs(7);
    pacer.decide(late, &DRAINED);
    assert_eq!(pacer.rate, Rate::from_bps(3 * 8000 * 1000));
    pacer.clear();
    pacer.decide(late, &DRAINED);
    assert_eq!(pacer.rate, DRAINED.pacing);
}

#[test]
fn padding_begins_a_probe_and_is_no_part_of_it() {
    let mut pacer = pacer(Decision { padding: Rate::from_kbps(198), ..Decision::rate(Rate::from_mbps(1)) });
    pacer.probes.create_probe_cluster(
        Time::ZERO,
        Probe { rate: Rate::from_mbps(4), length: Span::from_millis(2), ..PROBE },
    );
    // 248 bytes at 198.4 kbit/s; the probe of 5 packets of 248 bytes, 496 us each, begins behind the first
    let sent = drive(&mut pacer, Time::from_millis(9));
    assert_eq!(sent[0], (Time::ZERO, Turn::Padding(None)));
    let probe: Vec<Time> =
        sent.iter().filter(|(_, turn)| *turn == Turn::Padding(Some(7))).map(|(time, _)| *time).collect();
    assert_eq!(probe, [0, 496, 992, 1488, 1984].map(Time::from_micros));
    assert_eq!(sent.len(), 6);
}

#[test]
fn a_heartbeat_is_no_part_of_a_probe() {
    let beat = Decision { heartbeat: Some(Span::from_millis(1)), ..Decision::rate(Rate::from_mbps(1)) };
    let mut pacer = pacer(beat);
    // five packets at 400 kbit/s: 5 ms after padding, 20 ms after media, whatever goes in between
    pacer.probes.create_probe_cluster(Time::ZERO, Probe { rate: Rate::from_kbps(400), ..PROBE });
    (0..2).for_each(|_| pacer.push(false, PACKET));
    let sent = drive(&mut pacer, Time::from_millis(60));
    let of_probe: Vec<Time> = sent
        .iter()
        .filter(|(_, turn)| matches!(turn, Turn::Media(_, Some(7)) | Turn::Padding(Some(7))))
        .map(|(time, _)| *time)
        .collect();
    assert_eq!(of_probe, [0, 4960, 24_960, 44_960, 49_920].map(Time::from_micros));
    assert!(sent.len() > 40, "and there are heartbeats in between: {}", sent.len());
}
