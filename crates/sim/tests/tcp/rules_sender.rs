//! The behaviour of a sender, acknowledgement by acknowledgement.

use crate::bench::{Bench, MSS, established, sender};
use tidegate_core::datagram::{Opening, TcpBody};
use tidegate_core::{Span, Time};
use tidegate_sim::traffic::tcp::{SackRecovery, TcpSender, TcpSettings, Variant, Workload};

fn settings_of(variant: Variant) -> TcpSettings {
    TcpSettings { variant, ..established() }
}

/// A sender whose window is 10 segments in congestion avoidance or slow start, all of them under way.
fn ten(settings: TcpSettings) -> Bench<TcpSender> {
    let mut end = sender(settings);
    assert_eq!(end.segments(), (0..10).collect::<Vec<_>>());
    end.now = Time::from_millis(100);
    end
}

#[test]
fn the_initial_window_is_as_set() {
    for initial_window in [1, 2, 3, 10] {
        let mut end = sender(TcpSettings { initial_window, ..established() });
        assert_eq!(end.segments().len(), initial_window as usize);
    }
}

#[test]
fn slow_start_sends_two_for_one() {
    let mut end = ten(settings_of(Variant::Reno));
    end.ack(1);
    assert_eq!(end.segments(), [10, 11]);
    end.ack(3);
    assert_eq!(end.segments(), [12, 13, 14], "L = 1: two segments acknowledged are worth one");
}

/// RFC 3042: a new segment for each of the first two duplicates, the lost one with the third.
#[test]
fn limited_transmit() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno] {
        for (limited_transmit, expected) in [(true, vec![10, 11, 0]), (false, vec![0])] {
            let mut end = ten(TcpSettings { limited_transmit, ..settings_of(variant) });
            (0..3).for_each(|_| end.ack(0));
            assert_eq!(end.segments(), expected, "{variant:?}");
        }
    }
    for (limited_transmit, expected) in [(true, vec![10, 11, 0]), (false, vec![0])] {
        let mut end = ten(TcpSettings { limited_transmit, ..settings_of(Variant::Sack) });
        (2..5).for_each(|highest| end.ack_with(0, &[(1, highest)]));
        assert_eq!(end.segments(), expected);
    }
}

/// Duplicates must be exact ones (RFC 5681 section 2): same window, no data.
#[test]
fn a_window_update_is_no_duplicate() {
    let mut end = ten(TcpSettings { limited_transmit: false, ..settings_of(Variant::NewReno) });
    for window in [1 << 6, 1 << 7, 1 << 8, 1 << 9] {
        end.header(TcpBody { window, flags: TcpBody::ACK, ..TcpBody::default() });
    }
    assert!(end.segments().is_empty());
}

/// RFC 5681 section 3.2: ssthresh 5, inflated by three and by one more per duplicate; new segments go out
/// once the inflated window exceeds the ten (and two of limited transmit) under way.
#[test]
fn reno_inflates_and_leaves_recovery_with_the_first_new_acknowledgement() {
    let mut end = ten(settings_of(Variant::Reno));
    (0..3).for_each(|_| end.ack(0));
    assert_eq!(end.segments(), [10, 11, 0]);
    (0..4).for_each(|_| end.ack(0));
    assert!(end.segments().is_empty(), "5 + 3 + 4 = 12 = under way");
    end.ack(0);
    assert_eq!(end.segments(), [12]);
    // another one was lost: Reno is out of recovery, 5 segments of window, 10 under way
    end.ack(3);
    assert!(end.segments().is_empty());
}

/// RFC 6582 section 3.2 step 3: a partial acknowledgement means the next hole, and recovery goes on.
#[test]
fn newreno_repairs_a_hole_per_partial_acknowledgement() {
    let mut end = ten(settings_of(Variant::NewReno));
    (0..3).for_each(|_| end.ack(0));
    assert_eq!(end.segments(), [10, 11, 0]);
    (0..6).for_each(|_| end.ack(0));
    assert_eq!(end.segments(), [12, 13], "5 + 3 + 6 = 14 = under way");
    // window 14: minus the three acknowledged, plus the one repeated: 12; 3 .. 13 are 11 under way
    end.ack(3);
    assert_eq!(end.segments(), [3, 14]);
    end.ack(6);
    assert_eq!(end.segments(), [6, 15], "the next hole, and 12 - 3 + 1 = 10 = 6 .. 15");
    // all data under way at the beginning of recovery: window min(ssthresh, flight + 1) = min(5, 4 + 1)
    end.ack(12);
    assert_eq!(end.segments(), [16]);
    end.ack(12);
    assert_eq!(end.segments(), [17], "limited transmit again: duplicates are counted from zero");
}

/// RFC 6582 section 3.2 step 2: duplicates after a timeout that may come from needless repetition do not
/// start fast retransmit.
#[test]
fn newreno_is_careful_after_a_timeout() {
    let mut end = ten(TcpSettings { limited_transmit: false, ..settings_of(Variant::NewReno) });
    end.wait_until(Time::from_millis(1000));
    assert_eq!(end.segments(), [0]);
    end.ack(5);
    assert_eq!(end.segments(), [5, 6]);
    (0..5).for_each(|_| end.ack(5));
    assert!(end.segments().is_empty(), "recover is 10, and 5 is not more");
    end.ack(10);
    assert_eq!(end.segments(), [10, 11, 12]);
    (0..5).for_each(|_| end.ack(10));
    assert!(end.segments().is_empty(), "10 is not more either");
    end.ack(11);
    end.segments();
    (0..3).for_each(|_| end.ack(11));
    assert_eq!(end.segments(), [11, 15], "11 is; window 2 + 3 for 11 .. 15");
}

#[test]
fn tahoe_goes_back_to_one_segment() {
    let mut end = ten(settings_of(Variant::Tahoe));
    (0..3).for_each(|_| end.ack(0));
    assert_eq!(end.segments(), [10, 11, 0]);
    (0..5).for_each(|_| end.ack(0));
    assert!(end.segments().is_empty(), "no recovery: duplicates bring nothing");
    end.ack(4);
    assert_eq!(end.segments(), [4, 5], "slow start over the next segments");
    end.ack(12);
    assert_eq!(end.segments(), [12, 13, 14]);
}

/// RFC 6675 with holes at 0, 2 and 4 of ten: all of them are sent again as the pipe allows, nothing twice.
#[test]
fn sack_repairs_all_holes_in_one_recovery() {
    let mut end = ten(TcpSettings { limited_transmit: false, ..settings_of(Variant::Sack) });
    end.ack_with(0, &[(1, 2)]);
    end.ack_with(0, &[(3, 4), (1, 2)]);
    assert!(end.segments().is_empty());
    // three runs above 0: lost; window 5; in the pipe: 2, 4, 6, 7, 8, 9 and then 0 again
    end.ack_with(0, &[(5, 6), (3, 4), (1, 2)]);
    assert_eq!(end.segments(), [0]);
    // 2 has two runs and two segments above it, not yet lost; the pipe is still 6
    end.ack_with(0, &[(5, 7), (3, 4), (1, 2)]);
    assert!(end.segments().is_empty(), "2 is lost now: the pipe falls to 5, no room");
    end.ack_with(0, &[(5, 8), (3, 4), (1, 2)]);
    assert_eq!(end.segments(), [2, 4], "4 is lost too: 8, 9 and 0 in the pipe, two more fit");
    end.ack_with(0, &[(5, 9), (3, 4), (1, 2)]);
    assert_eq!(end.segments(), [10]);
    end.ack_with(0, &[(5, 10), (3, 4), (1, 2)]);
    assert_eq!(end.segments(), [11]);
    // 0 arrives: 2, 4, 10, 11 in the pipe
    end.ack_with(2, &[(5, 10), (3, 4)]);
    assert_eq!(end.segments(), [12]);
    end.ack_with(4, &[(5, 10)]);
    assert_eq!(end.segments(), [13]);
    // recovery ends; the window is 5, with 10 .. 13 under way
    end.ack(10);
    assert_eq!(end.segments(), [14]);
}

/// RFC 6675 section 4 NextSeg rule 3: with no new data, segments that may be lost go out again in time.
#[test]
fn sack_sends_again_segments_that_may_be_lost_when_there_is_no_new_data() {
    let workload = Workload::File(10 * u64::from(MSS));
    let mut end = ten(TcpSettings { workload, ..settings_of(Variant::Sack) });
    (2..5).for_each(|highest| end.ack_with(0, &[(1, highest)]));
    assert_eq!(end.segments(), [0]);
    // 5 is missing, but with one segment above it is not lost by IsLost; the window is 5, the pipe 5, 7, 8, 9 and 0
    end.ack_with(0, &[(6, 7), (1, 5)]);
    assert!(end.segments().is_empty());
    end.ack_with(0, &[(6, 8), (1, 5)]);
    assert_eq!(end.segments(), [5]);
}

/// RFC 6675 rule 4: the last segment is lost, which no duplicate would show.
#[test]
fn sack_rescues_the_tail() {
    let workload = Workload::File(10 * u64::from(MSS));
    let mut end = ten(TcpSettings { workload, ..settings_of(Variant::Sack) });
    (2..8).for_each(|highest| end.ack_with(0, &[(1, highest)]));
    assert_eq!(end.segments(), [0, 9], "0 is lost; no other hole is below: the last segment again");
    end.ack_with(0, &[(1, 8)]);
    assert!(end.segments().is_empty(), "one rescue a recovery");
}

/// RFC 6298 section 5.5: 1, 2, 4 s and so on, always the first segment, until a measurement.
#[test]
fn timeouts_back_off() {
    let by_count = Some(SackRecovery::Rfc6675);
    for (variant, recovery) in [
        (Variant::Tahoe, None),
        (Variant::Reno, None),
        (Variant::NewReno, None),
        (Variant::Sack, None),
        (Variant::Cubic, by_count),
    ] {
        let mut end = sender(TcpSettings { recovery, ..settings_of(variant) });
        end.segments();
        let fired: Vec<_> = (0..7)
            .map(|_| {
                let time = end.wait_for_packet();
                assert_eq!(end.segments(), [0]);
                time.as_secs_f64()
            })
            .collect();
        assert_eq!(fired, [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 123.0], "{variant:?}: 60 s at most");
    }
}

/// Karn: a segment sent twice gives no sample, and the backoff stays until another segment does.
#[test]
fn the_backoff_ends_with_a_segment_sent_once() {
    let mut end = sender(TcpSettings { initial_window: 1, ..settings_of(Variant::NewReno) });
    end.pass(Span::from_millis(1000));
    assert_eq!(end.segments(), [0, 0]);
    end.pass(Span::from_millis(100));
    end.ack(1);
    assert_eq!(end.segments(), [1, 2]);
    // not 1 s but 2: the acknowledgement of a repeated segment proves nothing
    assert_eq!(end.pass(Span::from_secs(10)), Some(Time::from_millis(3100)));
    assert_eq!(end.segments()[0], 1);
    // 2 was sent at 1.1 s and once only; it arrives with 1, and 1 spoils the measurement
    let mut end = sender(TcpSettings { initial_window: 1, ..settings_of(Variant::NewReno) });
    end.pass(Span::from_millis(1000));
    end.pass(Span::from_millis(100));
    end.ack(1);
    end.segments();
    end.pass(Span::from_millis(100));
    end.ack(2);
    end.segments();
    assert_eq!(end.pass(Span::from_secs(10)), Some(Time::from_millis(2200)), "measured: 1 s again");
}

/// RFC 5681 section 3.1: a second timeout of the same segment leaves ssthresh alone.
#[test]
fn a_second_timeout_keeps_ssthresh() {
    let mut end = ten(settings_of(Variant::NewReno));
    end.wait_until(Time::from_secs(4));
    assert_eq!(end.segments(), [0, 0], "at 1 and 3 s");
    // slow start from one segment up to the five of the first timeout, then one in a round trip
    let sent: Vec<_> = (10..16)
        .map(|ack| {
            end.ack(ack);
            end.segments().len()
        })
        .collect();
    assert_eq!(sent, [2, 2, 2, 2, 1, 1]);
}

#[test]
fn after_an_idle_time_the_window_starts_anew() {
    let mut end = sender(TcpSettings {
        initial_window: 2,
        workload: Workload::Web { min: 20_000, max: 20_000, idle: Span::from_millis(1), begins_idle: false },
        ..settings_of(Variant::NewReno)
    });
    // slow start through one download; the next one is a new connection
    let mut sent = end.segments().len() as u32;
    assert_eq!(sent, 2);
    while sent < 20 {
        end.pass(Span::from_millis(100));
        end.ack(sent);
        sent += end.segments().len() as u32;
    }
    end.ack(20);
    end.pass(Span::from_millis(500));
    assert_eq!(end.segments(), [20, 21]);
}

/// RFC 5681 section 4.1, with a receiver that closes its window for a while.
#[test]
fn silence_longer_than_a_timeout_restarts_slow_start() {
    let mut end = ten(TcpSettings { initial_window: 10, ..settings_of(Variant::NewReno) });
    for ack in 1..=10 {
        end.ack(ack);
    }
    assert_eq!(end.segments().len(), 20, "a window of 20");
    let shut = |ack: u32| TcpBody { ack: ack * MSS, flags: TcpBody::ACK, ..TcpBody::default() };
    end.header(shut(30));
    assert!(end.segments().is_empty());
    for (pause, expected) in [(900, 21), (5000, 10)] {
        let mut end = ten(TcpSettings { initial_window: 10, ..settings_of(Variant::NewReno) });
        (1..=10).for_each(|ack| end.ack(ack));
        end.segments();
        end.header(shut(30));
        end.pass(Span::from_millis(pause));
        end.ack(30);
        assert_eq!(end.segments().len(), expected, "after {pause} ms");
    }
}

#[test]
fn the_receivers_window_is_kept_and_unused_windows_do_not_grow() {
    let mut end = sender(TcpSettings { receive_window: 5500, ..settings_of(Variant::NewReno) });
    assert_eq!(end.segments(), [0, 1, 2, 3, 4]);
    for ack in 1..100 {
        end.header(TcpBody { ack: ack * MSS, window: 5500, flags: TcpBody::ACK, ..TcpBody::default() });
        assert_eq!(end.segments().len(), 1);
    }
    // now there is room: still the ten segments of the start
    end.ack(100);
    assert_eq!(end.segments().len(), 10 - 4);
}

/// RFC 7323 section 2.3: 100 000 B need a shift by one, and so a header's window counts twos.
#[test]
fn windows_are_shifted() {
    let settings =
        TcpSettings { receive_window: 100_001, initial_window: 200, ..settings_of(Variant::NewReno) };
    let mut end = sender(settings);
    assert_eq!(end.segments().len(), 100);
    end.header(TcpBody { ack: 100 * MSS, window: 12_499, flags: TcpBody::ACK, ..TcpBody::default() });
    assert_eq!(end.segments().len(), 24, "24 998 B");
    end.header(TcpBody { ack: 100 * MSS, window: 12_500, flags: TcpBody::ACK, ..TcpBody::default() });
    assert_eq!(end.segments().len(), 1);
}

/// RFC 7323 section 2.2: the receiver's shift is that of its SYN, or none; the window of the SYN is not shifted.
#[test]
fn the_answer_to_a_syn_says_how_windows_are_shifted() {
    for (scale, expected) in [(Some(3), 32), (Some(0), 4), (None, 4)] {
        let settings = TcpSettings {
            handshake: true,
            initial_window: 200,
            receive_window: 1 << 20,
            ..settings_of(Variant::Sack)
        };
        let mut end = sender(settings);
        let syn = &end.sent()[0].1;
        assert_eq!((syn.size, syn.opening().sack), (52, true));
        let answer =
            TcpBody { ack: 1, window: 4000, flags: TcpBody::SYN | TcpBody::ACK, ..TcpBody::default() };
        end.opening(answer, Opening { scale, ..Opening::default() });
        assert_eq!(end.sent().len(), 4, "4000 B");
        let ack = TcpBody { ack: 1 + 4 * MSS, window: 4000, flags: TcpBody::ACK, ..TcpBody::default() };
        end.header(ack);
        assert_eq!(end.sent().len(), expected, "4000 B, shifted by {scale:?}");
    }
    let without_options = TcpSettings { handshake: true, options: false, ..settings_of(Variant::Sack) };
    let syn = &sender(without_options).sent()[0].1;
    assert_eq!((syn.size, syn.opening()), (40, Opening::default()));
}

#[test]
fn invalid_acknowledgements_are_ignored() {
    for variant in [Variant::NewReno, Variant::Sack] {
        let mut end = ten(settings_of(variant));
        end.ack(3);
        end.segments();
        for ack in [2, 1, 0, 17, 4_000_000] {
            end.ack(ack);
            end.ack_with(ack, &[(0, 2), (15, 4), (500, 900)]);
        }
        if variant == Variant::Sack {
            (0..5).for_each(|_| end.ack_with(3, &[(1, 3), (400, 500)]));
        }
        assert!(end.segments().is_empty());
        assert_eq!(end.failure(), None);
    }
}

/// RFC 6298 section 5.7 and RFC 5681 section 3.1: a lost SYN leaves one segment and 3 s.
#[test]
fn a_lost_syn_is_repeated_and_remembered() {
    let settings = || TcpSettings { handshake: true, initial_sequence: 7, ..settings_of(Variant::NewReno) };
    let answer = TcpBody {
        sequence: 70,
        ack: 8,
        window: u16::MAX,
        flags: TcpBody::SYN | TcpBody::ACK,
        ..TcpBody::default()
    };
    let mut end = sender(settings());
    let sent = end.sent();
    assert_eq!((sent.len(), sent[0].0.flags, sent[0].0.sequence, sent[0].1.size), (1, TcpBody::SYN, 7, 48));
    assert_eq!(sent[0].1.opening(), Opening { segment: Some(MSS as u16), scale: Some(0), sack: false });
    end.now = Time::from_millis(300);
    end.header(answer);
    let sent = end.sent();
    assert_eq!(sent.iter().map(|(body, _)| body.sequence).collect::<Vec<_>>()[..2], [8, 1008]);
    // the answer took number 70 of its sender
    assert!(sent.iter().all(|(body, _)| (body.ack, body.flags) == (71, TcpBody::ACK)));
    let mut end = sender(settings());
    assert_eq!(end.wait_until(Time::from_millis(1500)), Some(Time::from_secs(1)));
    assert_eq!(end.sent().len(), 2);
    end.opening(answer, Opening::default());
    assert_eq!(end.sent().len(), 1, "one segment");
    assert_eq!(end.pass(Span::from_secs(10)), Some(Time::from_millis(4500)), "3 s");
}

/// RFC 7323 section 2.2: the window of a SYN is not shifted, so that of a second answer is no window of the connection.
#[test]
fn a_second_answer_to_a_syn_changes_nothing() {
    let settings = TcpSettings {
        handshake: true,
        initial_window: 200,
        receive_window: 1 << 20,
        ..settings_of(Variant::NewReno)
    };
    let mut end = sender(settings);
    end.sent();
    let answer = TcpBody { ack: 1, window: 4000, flags: TcpBody::SYN | TcpBody::ACK, ..TcpBody::default() };
    let opening = Opening { scale: Some(3), ..Opening::default() };
    end.opening(answer, opening);
    assert_eq!(end.sent().len(), 4, "4000 B");
    end.opening(answer, opening);
    assert_eq!(end.sent().len(), 0, "its window is 4000 B, not 32 000");
}

/// RFC 9293 section 3.10.4: a CLOSE in SYN-SENT ends the connection.
#[test]
fn a_sender_stopped_before_the_answer_to_its_syn_does_not_repeat_it_and_sends_no_data() {
    let stop = Some(Time::from_millis(30));
    let mut end = sender(TcpSettings { handshake: true, stop, ..settings_of(Variant::NewReno) });
    assert_eq!(end.sent().len(), 1);
    assert_eq!(end.wait_until(Time::from_millis(40)), None);
    let answer = TcpBody { ack: 1, window: 4000, flags: TcpBody::SYN | TcpBody::ACK, ..TcpBody::default() };
    end.opening(answer, Opening::default());
    assert_eq!(end.wait_until(Time::from_secs(100)), None);
    assert_eq!(end.sent().len(), 0);
}

#[test]
fn a_packet_that_is_not_tcp_ends_the_run_with_a_reason() {
    let mut end = ten(settings_of(Variant::NewReno));
    end.stray();
    assert_eq!(end.failure(), Some("a TCP sender got a datagram packet of flow 7"));
}
