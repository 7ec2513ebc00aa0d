//! RACK-TLP, acknowledgement by acknowledgement: segments that leave, and their times.

use crate::bench::{Bench, MSS, established, sender};
use tidegate_core::datagram::TcpBody;
use tidegate_core::{Span, Time};
use tidegate_sim::traffic::tcp::{SackRecovery, TcpSender, TcpSettings, Variant, Workload};

fn rack() -> TcpSettings {
    TcpSettings { variant: Variant::Sack, recovery: Some(SackRecovery::Rack), ..established() }
}

fn file(segments: u32) -> TcpSettings {
    TcpSettings { workload: Workload::File(u64::from(segments * MSS)), ..rack() }
}

fn ms(millis: i64) -> Time {
    Time::from_millis(millis)
}

/// An acknowledgement up to `ack` with this window, both in segments.
fn header(ack: u32, window: u32) -> TcpBody {
    TcpBody { ack: ack * MSS, window: (window * MSS) as u16, flags: TcpBody::ACK, ..TcpBody::default() }
}

/// A sender whose first ten segments left at 0 s and are acknowledged one by one up to `ack` at 100 ms; it has a round
/// trip of 100 ms. Returns it without the segments that it has sent.
fn after(ack: u32, settings: TcpSettings) -> Bench<TcpSender> {
    let mut end = sender(settings);
    assert_eq!(end.segments().len(), 10);
    end.now = ms(100);
    (1..=ack).for_each(|next| end.ack(next));
    end.segments();
    end
}

/// RFC 8985 section 3.4 without the second loss: the last three of a flight are lost, the probe tells so two round trips
/// later, and the other two are sent again, the second when the first has arrived (slow start of RFC 6937).
#[test]
fn the_last_segment_is_sent_again_as_a_probe() {
    let mut end = after(7, file(10));
    assert_eq!(end.wait_for_packet(), ms(100 + 2 * 100 + 2));
    assert_eq!(end.segments(), [9]);
    end.now = ms(402);
    end.ack_with(7, &[(9, 10)]);
    assert_eq!(end.segments(), [7]);
    end.now = ms(502);
    end.ack_with(8, &[(9, 10)]);
    assert_eq!(end.segments(), [8]);
}

/// With one segment under way its acknowledgement may be delayed (section 7.2), by 200 ms; a timeout that is earlier
/// becomes a probe.
#[test]
fn a_lone_segment_has_more_time() {
    for (min_rto, expected) in [(1000, 100 + 2 * 100 + 200), (200, 100 + 100 + 200)] {
        let mut end = after(9, TcpSettings { min_rto: Some(Span::from_millis(min_rto)), ..file(10) });
        assert_eq!((end.wait_for_packet(), end.segments()), (ms(expected), vec![9]));
    }
}

#[test]
fn a_probe_is_new_data_where_there_are_any() {
    let mut end = after(0, rack());
    // no round trip is known, and the timeout is as late as the probe
    assert_eq!(end.wait_for_packet(), Time::from_secs(1));
    assert_eq!(end.segments(), [10], "beyond the window");
    // one probe at a time: the timeout is next, two seconds after it for its backoff has not begun
    assert_eq!(end.wait_for_packet(), Time::from_secs(2));
    assert_eq!(end.segments(), [0]);
}

/// Section 7.4.2: an acknowledgement of what follows the probe shows that the probe repaired a loss, unless the receiver
/// had said that both copies arrived: by an acknowledgement that says nothing new, or by a D-SACK.
#[test]
fn a_loss_that_the_probe_repaired_halves_the_window() {
    let sent = |answer: fn(&mut Bench<TcpSender>)| {
        let mut end = after(0, TcpSettings { receive_window: 60_000, ..rack() });
        // the receiver's window is full: the probe is the last segment again
        end.header(header(1, 9));
        assert_eq!((end.wait_for_packet(), end.segments()), (ms(302), vec![9]));
        end.now = ms(402);
        end.header(header(10, 60));
        assert!(end.segments().len() >= 10);
        answer(&mut end);
        end.now = ms(502);
        end.ack(11);
        end.segments().len()
    };
    assert_eq!(sent(|_| {}), 0);
    assert_eq!(sent(|end| end.header(header(10, 60))), 2);
    assert_eq!(sent(|end| end.ack_with(10, &[(9, 10)])), 2);
    assert_eq!(sent(|end| end.ack_with(10, &[(8, 9)])), 0, "another segment's copy");
    // the D-SACK comes with the acknowledgement of what follows
    let mut end = after(0, TcpSettings { receive_window: 60_000, ..rack() });
    end.header(header(1, 9));
    end.wait_for_packet();
    end.ack(10);
    end.segments();
    end.ack_with(11, &[(9, 10)]);
    assert_eq!(end.segments().len(), 2);
}

/// RFC 6675 leaves a lost copy to the timer. By time it is lost when a segment that left later has arrived.
#[test]
fn a_lost_copy_is_sent_again_after_a_round_trip() {
    for (recovery, expected) in [(SackRecovery::Rack, vec![0]), (SackRecovery::Rfc6675, vec![])] {
        let mut end = after(0, TcpSettings { recovery: Some(recovery), ..rack() });
        (2..7).for_each(|highest| end.ack_with(0, &[(1, highest)]));
        let first = end.segments();
        assert!(first.contains(&0), "{first:?}");
        // the rest of the first flight says nothing of the copy, which left after it
        end.now = ms(150);
        end.ack_with(0, &[(1, 10)]);
        let second = end.segments();
        assert!(!second.contains(&0) && second.contains(&12), "{second:?}");
        // 12 left after the copy
        end.now = ms(250);
        end.ack_with(0, &[(1, 13)]);
        let again: Vec<_> = end.segments().into_iter().filter(|&segment| segment == 0).collect();
        assert_eq!(again, expected, "{recovery:?}");
    }
}

/// Step 4 of section 6.2: with fewer than three segments SACKed a quarter of the smallest round trip passes first.
#[test]
fn a_segment_that_may_be_late_is_waited_for() {
    let mut end = after(0, file(10));
    end.ack(1);
    end.ack_with(1, &[(2, 3)]);
    assert!(end.segments().is_empty());
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(125), vec![1]));
    let mut end = after(0, file(10));
    end.ack(1);
    end.ack_with(1, &[(2, 3)]);
    end.pass(Span::from_millis(20));
    // it was late: nothing was sent, and from now on three segments above a hole do not tell that it is lost
    end.ack(3);
    assert!(end.segments().is_empty());
    (5..8).for_each(|highest| end.ack_with(3, &[(4, highest)]));
    assert!(end.segments().is_empty());
    assert_eq!(
        (end.wait_for_packet(), end.segments()),
        (ms(120 + 25), vec![3]),
        "120 ms is the round trip of the last"
    );
}

/// When the timer goes off it counts as an acknowledgement of one segment (Linux's `tcp_rack_reo_timeout`): one leaves,
/// however many are lost.
#[test]
fn one_segment_leaves_when_the_wait_is_over() {
    let mut end = after(0, rack());
    end.ack(1);
    end.ack_with(1, &[(3, 4)]);
    end.segments();
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(125), vec![1]));
}

/// Section 7.3: one probe at a time; the timeout comes next.
#[test]
fn no_probe_follows_a_probe() {
    let mut end = after(6, file(10));
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(302), vec![9]));
    end.now = ms(310);
    end.ack(7);
    end.wait_for_packet();
    assert_eq!(end.segments(), [7]);
}

/// Each round trip with a D-SACK adds a quarter of the smallest round trip to the window, up to the smoothed round trip
/// (step 4).
#[test]
fn needless_copies_make_it_wait_longer() {
    let waits = |copies: u32| {
        let (mut end, mut first) = (sender(rack()), 0);
        for round in 0..=copies {
            first = 1 + end.segments().last().copied().unwrap_or(first);
            end.pass(Span::from_millis(100));
            // twice in a round trip is once
            let blocks: &[_] = if round < copies { &[(0, 1)] } else { &[] };
            end.ack_with(first - 2, blocks);
            end.ack_with(first - 1, blocks);
            end.ack(first);
        }
        end.segments();
        end.pass(Span::from_millis(100));
        let now = end.now;
        end.ack_with(first, &[(first + 1, first + 2)]);
        end.segments();
        let wait = end.wait_for_packet() - now;
        assert_eq!(end.segments()[0], first);
        wait.as_millis_f64()
    };
    assert_eq!([0, 1, 2, 3, 4].map(waits), [25.0, 50.0, 75.0, 100.0, 100.0]);
}

/// Times (ms) at which a sender sends its first segment, over a path of 100 ms that loses the first five copies of it and
/// delivers everything else.
fn copies_of_the_first(recovery: SackRecovery) -> Vec<f64> {
    let mut end = sender(TcpSettings { recovery: Some(recovery), ..rack() });
    let (mut arrivals, mut copies) = (Vec::new(), Vec::new());
    while copies.len() < 6 {
        for segment in end.segments() {
            match segment {
                0 => copies.push(end.now.as_secs_f64() * 1e3),
                _ => arrivals.push((end.now + Span::from_millis(100), segment)),
            }
        }
        let Some(&(time, segment)) = arrivals.first() else {
            end.wait_for_packet();
            continue;
        };
        end.wait_until_packet(time);
        if end.now == time {
            arrivals.remove(0);
            end.ack_with(0, &[(1, segment + 1)]);
        }
    }
    copies
}

/// The stall that RACK ends: by RFC 6675 a copy that is lost, too, waits for the timer, which backs off because no round
/// trip is measured meanwhile.
#[test]
fn a_segment_that_is_lost_again_and_again_leaves_once_a_round_trip() {
    let by_count = copies_of_the_first(SackRecovery::Rfc6675);
    assert_eq!(by_count, [0.0, 100.0, 1100.0, 3100.0, 7100.0, 15_100.0]);
    let by_time = copies_of_the_first(SackRecovery::Rack);
    assert_eq!(by_time, [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
}

/// Segments that are SACKed and were sent once measure round trips (RFC 6298 section 3), which also end the backoff.
#[test]
fn sacked_segments_measure_round_trips() {
    let times = |recovery| {
        let mut end = after(0, TcpSettings { recovery: Some(recovery), ..rack() });
        (2..=10).for_each(|highest| end.ack_with(0, &[(1, highest)]));
        end.segments();
        let times = [0; 2].map(|_| (end.wait_for_packet().as_secs_f64(), end.segments()[0]));
        // a segment that left at 0.1 s, before the last copy: a round trip of a second
        end.pass(Span::from_millis(100));
        end.ack_with(0, &[(1, 11)]);
        end.segments();
        (times, (end.wait_for_packet() - Time::ZERO).as_secs_f64())
    };
    let (by_time, next) = times(SackRecovery::Rack);
    assert_eq!(by_time, [(0.4, 0), (1.0, 0)], "100 + 200 ms, and twice that");
    // the variation is 50 ms after the first sample of nine, and (3/4)^8 of that after the last one: the timer begins anew
    // with SRTT 212.5 ms and a variation of 228.8 ms
    assert!((1.1 + 1.1274..1.1 + 1.1278).contains(&next), "{next}");
    let (by_count, next) = times(SackRecovery::Rfc6675);
    assert_eq!((by_count, next), ([(1.1, 0), (3.1, 0)], 7.1));
}

/// Section 6.3: the timer means that the first segment is lost; others only if they left a round trip ago.
#[test]
fn a_timeout_leaves_what_left_just_now() {
    let mut end = after(10, TcpSettings { workload: Workload::File(u64::from(25 * MSS)), ..rack() });
    // 10 to 24 left at 100 ms, and nothing of it arrives; the probe and the timeout
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(302), vec![24]));
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(602), vec![10]));
    // the copy of 24 left 300 ms ago and is lost, too; slow start from one segment repairs the rest in order
    end.pass(Span::from_millis(100));
    end.ack(11);
    assert_eq!(end.segments(), [11, 12]);
}

/// Karn: a segment that was sent twice measures nothing, so that the next probe waits as if no round trip were known.
#[test]
fn copies_measure_nothing() {
    let mut end = sender(TcpSettings { initial_window: 1, ..rack() });
    assert_eq!(end.segments(), [0]);
    // the probe is new data, after which the timer sends the first segment again, and the probe with it
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(1000), vec![1]));
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(2000), vec![0]));
    end.pass(Span::from_millis(100));
    end.ack(1);
    end.segments();
    // not a round trip of 0.1 or 2.1 s
    assert_eq!(end.wait_for_packet(), ms(2100 + 2000));
}

/// Section 6.2, step 2: a copy that is acknowledged sooner than any round trip was needless. What left before it is not
/// lost by that.
#[test]
fn the_acknowledgement_of_a_late_segment_proves_nothing_of_its_copy() {
    let mut end = after(0, file(10));
    (2..=4).for_each(|highest| end.ack_with(0, &[(1, highest)]));
    assert_eq!(end.segments(), [0]);
    end.now = ms(110);
    end.ack(5);
    assert!(end.segments().is_empty());
}

/// An acknowledgement that advances and shows no further loss lets two segments leave, another one only what it delivered
/// (RFC 9937 section 6.2).
#[test]
fn a_repair_that_goes_well_is_faster() {
    let mut end = after(0, file(10));
    (7..=9).for_each(|highest| end.ack_with(0, &[(6, highest)]));
    assert_eq!(end.segments(), [0]);
    end.ack_with(0, &[(6, 10)]);
    assert_eq!(end.segments(), [1]);
    end.now = ms(200);
    end.ack_with(1, &[(6, 10)]);
    assert_eq!(end.segments(), [2, 3]);
}

/// A copy of the first segment has a whole timeout (Linux's `tcp_xmit_retransmit_queue`).
#[test]
fn a_copy_of_the_first_segment_has_a_whole_timeout() {
    let mut end = after(1, file(10));
    // the timers are to go off at 302 and 400 ms
    end.pass(Span::from_millis(190));
    (3..=5).for_each(|highest| end.ack_with(1, &[(2, highest)]));
    assert_eq!(end.segments(), [1]);
    assert!(end.wait_for_packet() > ms(490));
}

/// After a timeout a copy that is lost again is a second loss: the window is halved once more (Linux's
/// `tcp_fastretrans_alert`), and slow start does not go on to the first half.
#[test]
fn a_copy_that_is_lost_after_a_timeout_counts_again() {
    let mut end = sender(TcpSettings { initial_window: 20, ..file(20) });
    end.segments();
    // the probe finds nothing new to send
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(1000), vec![19]));
    assert_eq!((end.wait_for_packet(), end.segments()), (ms(2000), vec![0]));
    let mut rounds = Vec::new();
    for (ack, block) in [(1, None), (1, Some((2, 3))), (3, None)] {
        end.pass(Span::from_millis(100));
        end.ack_with(ack, block.as_slice());
        rounds.push(end.segments());
    }
    assert_eq!(rounds, [vec![1, 2], vec![1], vec![3, 4]]);
}
