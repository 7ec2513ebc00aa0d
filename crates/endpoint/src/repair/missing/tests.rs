//! What is requested when, and libwebrtc's rules (its `nack_requester_unittest.cc`), as facts.

use super::*;

fn ms(millis: i64) -> Time {
    Time::from_millis(millis)
}

fn frame(frame: u32) -> FramePosition {
    FramePosition { frame, last: true }
}

fn missing(requests: u32) -> Missing {
    Missing::new(Some(Nack { requests, ..Nack::default() }), None)
}

/// All packets from the first number up to the second arrive, each a frame.
fn arrive(missing: &mut Missing, now: Time, numbers: std::ops::RangeInclusive<i64>) {
    for number in numbers {
        missing.arrived(now, number, frame(number as u32));
    }
}

#[test]
fn packets_that_do_not_fit_into_a_request_are_in_the_next_one() {
    let mut missing = missing(3);
    missing.arrived(ms(0), 0, frame(0));
    missing.arrived(ms(10), 301, frame(4));
    assert_eq!(missing.request_due(), ms(10));
    // an entry has 17 numbers
    let first = missing.take(ms(40), 10);
    assert_eq!((first.len(), first[0], first[169]), (170, 1, 170));
    assert_eq!(missing.request_due(), ms(60), "the next look");
    let rest = missing.take(ms(60), 10);
    assert_eq!((rest.len(), rest[0], rest[129]), (130, 171, 300));
    assert_eq!(missing.request_due(), ms(140), "the first ones again, after a round trip");
}

#[test]
fn entries_of_requests_begin_with_their_packet() {
    let mut missing = missing(3);
    missing.arrived(ms(0), 0, frame(0));
    // 1, 18 and 35 are missing: two entries have room for the first two numbers, and 18 is not in the first one
    arrive(&mut missing, ms(0), 2..=17);
    arrive(&mut missing, ms(0), 19..=34);
    arrive(&mut missing, ms(0), 36..=36);
    assert_eq!(missing.take(ms(0), 2), [1, 18]);
    assert_eq!(missing.take(ms(20), 2), [35]);
}

#[test]
fn a_gap_is_requested_at_once_and_once_a_round_trip_and_no_more_than_allowed() {
    let mut missing = missing(3);
    missing.arrived(ms(0), 65_534, frame(0));
    assert_eq!(missing.request_due(), Time::MAX);
    missing.arrived(ms(10), 65_538, frame(4));
    assert_eq!((missing.request_due(), missing.first_repairable()), (ms(10), Some(1)));
    assert_eq!(missing.take(ms(10), 100), [65_535, 0, 1], "no packet may be late");
    // one was late nevertheless
    assert_eq!(missing.arrived(ms(14), 65_536, frame(2)), ArrivalKind::New);
    // its retransmission gives the first response time
    assert!(missing.restored(ms(45), 65_535, true, frame(1)));
    assert_eq!(missing.arrived(ms(46), 65_535, frame(1)), ArrivalKind::Restored);
    // 100 ms were the round trip then, and 110 ms is between two looks
    assert_eq!(missing.request_due(), ms(120));
    assert!(missing.take(ms(119), 100).is_empty());
    assert_eq!(missing.take(ms(120), 100), [1]);
    // 35 ms of round trip, and the look after that
    assert_eq!(missing.request_due(), ms(160));
    assert_eq!(missing.take(ms(160), 100), [1]);
    assert_eq!((missing.request_due(), missing.expiry()), (Time::MAX, ms(230)));
    assert!(!missing.give_up(ms(229), 0) && missing.give_up(ms(230), 0));
    assert_eq!(missing.first_repairable(), None);
    assert!(!missing.restored(ms(231), 65_537, true, frame(3)), "it is not needed");
    assert_eq!(missing.arrived(ms(232), 65_537, frame(3)), ArrivalKind::Unneeded);
}

#[test]
fn by_default_a_packet_is_requested_a_hundred_times() {
    let mut missing = Missing::new(Some(Nack::default()), None);
    missing.arrived(ms(0), 1, frame(0));
    missing.arrived(ms(0), 3, frame(2));
    let mut times = Vec::new();
    for millis in 0..20_000 {
        times.extend(missing.take(ms(millis), 9).iter().map(|_| millis));
    }
    assert_eq!(times, (0..100).map(|k| 100 * k).collect::<Vec<i64>>());
    assert!(missing.give_up(ms(20_000), 0));
}

#[test]
fn a_wait_ends_with_the_next_look() {
    let mut missing = Missing::new(Some(Nack { wait: Span::from_millis(5), ..Nack::default() }), None);
    missing.arrived(ms(0), 0, frame(0));
    missing.arrived(ms(14), 2, frame(2));
    assert_eq!(missing.request_due(), ms(20));
    missing.arrived(ms(16), 4, frame(4));
    assert_eq!(missing.take(ms(20), 9), [1], "4 ms are less than 5");
    assert_eq!((missing.request_due(), missing.take(ms(40), 9)), (ms(40), vec![3]));
    // a packet that was overtaken by less is not requested
    missing.arrived(ms(41), 6, frame(6));
    missing.arrived(ms(43), 5, frame(5));
    missing.give_up(ms(44), 7);
    assert_eq!(missing.request_due(), Time::MAX);
}

/// With round trips of less than a nanosecond, too, there is one request at a look.
#[test]
fn a_packet_is_requested_once_at_a_look() {
    let mut missing = missing(100);
    missing.arrived(ms(0), 0, frame(0));
    missing.arrived(ms(20), 2, frame(2));
    assert_eq!(missing.take(ms(20), 9), [1]);
    assert!(missing.restored(ms(20), 1, true, frame(1)));
    missing.arrived(ms(20), 4, frame(4));
    assert_eq!(missing.take(ms(20), 9), [3]);
    assert_eq!(missing.request_due(), ms(40));
}

#[test]
fn a_list_that_is_too_long_is_cleared_and_a_key_frame_is_due() {
    let mut missing = Missing::new(Some(Nack::default()), None);
    missing.arrived(ms(0), 0, frame(0));
    missing.arrived(ms(0), 1001, frame(1));
    let numbers = missing.take(ms(0), 256);
    assert_eq!((numbers.len(), numbers[0], numbers[999]), (1000, 1, 1000));
    assert!(!missing.take_overflow());
    missing.arrived(ms(1), 1003, frame(3));
    assert!(missing.take(ms(1), 256).is_empty());
    assert_eq!((missing.first_repairable(), missing.request_due()), (None, Time::MAX));
    assert!(missing.take_overflow() && !missing.take_overflow());
    missing.arrived(ms(2), 1004, frame(4));
    assert!(!missing.take_overflow());
    // and the list goes on with the next gap; a gap of 1001 packets alone is too long
    missing.arrived(ms(2), 1006, frame(6));
    assert_eq!(missing.take(ms(2), 256), [1005]);
    missing.arrived(ms(3), 2008, frame(7));
    assert!(missing.take_overflow() && missing.first_repairable().is_none());
}

#[test]
fn a_packet_is_not_requested_when_it_is_ten_thousand_packets_old() {
    for (last, requested) in [(9_999, vec![1, 10_000]), (10_000, vec![10_001])] {
        let mut missing = Missing::new(Some(Nack::default()), None);
        missing.arrived(ms(0), 0, frame(0));
        arrive(&mut missing, ms(0), 2..=last);
        assert_eq!(missing.take(ms(0), 9), [1]);
        missing.arrived(ms(100), last + 2, frame(0));
        assert_eq!(missing.take(ms(100), 9), requested, "up to {last}");
    }
}

/// libwebrtc's list waits with packets before a restored one until one arrives itself (`HandleFecRecoveredPacket`).
#[test]
fn a_restored_packet_shows_no_gap() {
    let mut missing = Missing::new(Some(Nack::default()), Some(4));
    missing.arrived(ms(0), 1, frame(1));
    assert!(missing.restored(ms(1), 4, false, frame(4)));
    assert_eq!(missing.request_due(), Time::MAX);
    missing.arrived(ms(2), 5, frame(5));
    assert_eq!((missing.request_due(), missing.take(ms(2), 9)), (ms(2), vec![2, 3]));
    // and those that have been requested keep their time
    missing.arrived(ms(3), 6, frame(6));
    assert_eq!(missing.request_due(), ms(120));
}

#[test]
fn a_long_round_trip_is_learnt_from_the_first_response() {
    let mut missing = missing(10);
    missing.arrived(ms(0), 0, frame(0));
    for (k, response) in [(1, 300), (2, 1297)] {
        let lost = 1000 * (k - 1);
        missing.arrived(ms(lost), 2 * k, frame(2 * k as u32));
        let mut request_times = Vec::new();
        for millis in lost..response {
            request_times.extend(missing.take(ms(millis), 9).iter().map(|_| millis - lost));
        }
        assert!(missing.restored(ms(response), 2 * k - 1, true, frame(0)));
        // 300 ms from the first request; then 297 ms, before which there is no second one
        assert_eq!(request_times, if k == 1 { vec![0, 100, 200] } else { vec![0] });
    }
    // 299.625 ms in the mean, with a deviation of 0.75 ms; a response soon after the second request is to the first
    missing.arrived(ms(2000), 6, frame(6));
    assert_eq!(missing.take(ms(2000), 9), [5]);
    assert_eq!(missing.response_time().as_nanos(), 302_625_000);
    assert_eq!(missing.request_due(), ms(2320));
    assert_eq!(missing.take(ms(2320), 9), [5]);
    assert!(missing.restored(ms(2325), 5, true, frame(5)));
    assert_eq!(
        missing.response_time().as_nanos(),
        299_625_000 + 25_375_000 / 8 + 4 * (750_000 + (25_375_000 - 750_000) / 4)
    );
}

#[test]
fn packets_of_shown_frames_and_dropped_packets_are_not_requested() {
    let mut missing = missing(10);
    missing.arrived(ms(0), 0, frame(0));
    missing.arrived(ms(0), 2, frame(2));
    missing.arrived(ms(0), 4, frame(4));
    assert!(missing.give_up(ms(1), 3), "frame 1 or 2 has been shown");
    assert_eq!(missing.take(ms(5), 100), [3]);
    assert!(!missing.give_up(ms(5000), 3), "the sender may have kept it");
    let keep = Nack { keep: Some(Span::from_secs(1)), ..Nack::default() };
    let mut missing = Missing::new(Some(keep), None);
    missing.arrived(ms(0), 0, frame(0));
    missing.arrived(ms(0), 2, frame(2));
    assert_eq!(missing.expiry(), ms(1000));
    assert!(!missing.give_up(ms(999), 0) && missing.give_up(ms(1000), 0), "the sender has dropped it");
}

#[test]
fn without_requests_missing_packets_wait_for_their_parity() {
    let mut missing = Missing::new(None, Some(4));
    missing.arrived(ms(0), 0, frame(0));
    missing.arrived(ms(0), 2, frame(2));
    assert_eq!((missing.request_due(), missing.first_repairable()), (Time::MAX, Some(1)));
    missing.arrived(ms(1), 3, frame(3));
    // groups may be shorter, and then this is not yet parity of a later one
    let over = |offset, count| Parity { offset, count, ..Parity::default() };
    missing.parity(4, &over(1, 4));
    assert!(!missing.give_up(ms(1), 0));
    // nor does this protect packet 1
    missing.parity(0, &over(2, 2));
    assert_eq!(missing.first_repairable(), Some(1));
    missing.parity(5, &over(1, 4));
    assert!(missing.give_up(ms(1), 0), "its parity has come or is lost");
    missing.arrived(ms(1), 5, frame(5));
    missing.parity(4, &over(1, 4));
    assert_eq!(missing.first_repairable(), None, "its parity has come and could not restore it");
    // parity may restore a packet before any later one arrives
    assert!(missing.restored(ms(2), 7, false, frame(7)));
    assert_eq!((missing.next(), missing.first_repairable()), (Some(8), Some(6)));
    assert!(!missing.give_up(ms(1001), 0) && missing.give_up(ms(1002), 0));
}
