//! Closed forms: the report at which each breaker trips, and the bounds just within which none does.

use super::stream::cb_interval;
use super::*;

fn ms(millis: i64) -> Time {
    Time::from_millis(millis)
}

/// Reports a second apart.
const SECOND: Intervals =
    Intervals { timeout: Span::from_secs(5), local: Span::from_secs(1), peer: Span::from_secs(1) };

/// A stream of packets of 1000 bytes, a frame each, every 20 ms, with reports once a second.
struct Call {
    breaker: CircuitBreaker,
    frames: i64,
    traffic: Traffic,
    highest: u32,
}

impl Call {
    fn new(unrepaired: bool) -> Self {
        let mut breaker = CircuitBreaker::new(1, unrepaired);
        breaker.begin(Time::ZERO, SECOND);
        Self { breaker, frames: 0, traffic: Traffic::default(), highest: 0 }
    }

    /// Sends for a second, with traffic of `rate` bytes.
    fn send(&mut self, second: i64, rate: u64) {
        while self.frames * 20 < second * 1000 {
            self.breaker.frame(ms(self.frames * 20), 0, 1, 1000);
            self.frames += 1;
        }
        self.traffic.packets += 50;
        self.traffic.bytes += rate;
    }

    /// Passes the report at the end of this second; `lost`: fraction lost in 1/256, or no block if `None`.
    fn report(&mut self, second: i64, lost: Option<u8>, round_trip: f64) -> Option<Breaker> {
        if let Some(fraction_lost) = lost {
            self.highest += 50;
            let block =
                ReportBlock { fraction_lost, highest_sequence: self.highest, ..ReportBlock::default() };
            self.breaker.block(0, &block);
        }
        let round_trip = Some(Span::from_secs_f64(round_trip));
        let traffic = [self.traffic].into_iter();
        self.breaker.received(ms(1000 * second), true, round_trip, SECOND, traffic)
    }
}

/// The first breaker that trips in 100 s of `rate`, and the second in which it does.
fn run(unrepaired: bool, rate: u64, lost: Option<u8>, round_trip: f64) -> Option<(i64, Breaker)> {
    let mut call = Call::new(unrepaired);
    (1..=100).find_map(|second| {
        call.send(second, rate);
        call.report(second, lost, round_trip).map(|breaker| (second, breaker))
    })
}

#[test]
fn congestion_trips_above_ten_times_the_rate_of_tcp_and_when_its_intervals_are_full() {
    // p = 1/4, Tr = 100 ms, s = 1000: 10 X = 10 * 1000 / (0.1 sqrt(1/6)) = 244949 bytes/s
    // CB_INTERVAL = ceil(3 * 3 / 3) = 3: three intervals end with the fourth block
    assert_eq!(run(false, 244_950, Some(64), 0.1), Some((4, Breaker::Congestion)));
    assert_eq!(run(false, 244_948, Some(64), 0.1), None);
    // and with Tr = 390 ms 62808; CB_INTERVAL = ceil(3 * 3.9 / 3) = 4
    assert_eq!(run(false, 62_809, Some(64), 0.39), Some((5, Breaker::Congestion)));
    assert_eq!(run(false, 62_807, Some(64), 0.39), None);
    assert_eq!(run(false, u64::MAX >> 20, Some(0), 0.1), None, "without loss TCP has no bound");
}

#[test]
fn loss_is_averaged_over_the_intervals_by_their_length() {
    // 3/4 lost in one second of three is 1/4 on average
    for (rate, trips) in [(244_950, true), (244_948, false)] {
        let mut call = Call::new(false);
        let mut tripped = None;
        for second in 1..=6 {
            call.send(second, rate);
            let lost = if second % 3 == 0 { 192 } else { 0 };
            tripped = tripped.or(call.report(second, Some(lost), 0.1));
        }
        assert_eq!(tripped.is_some(), trips, "{rate}");
    }
}

#[test]
fn a_long_interval_weighs_more() {
    // 3/8 lost in four seconds of six is 1/4 on average
    for (rate, trips) in [(244_950, true), (244_948, false)] {
        let mut call = Call::new(false);
        let mut tripped = Vec::new();
        for second in 1..=7 {
            call.send(second, rate);
            match second {
                1..=3 => tripped.extend(call.report(second, Some(0), 0.1)),
                7 => tripped.extend(call.report(second, Some(96), 0.1)),
                _ => {}
            }
        }
        assert_eq!(!tripped.is_empty(), trips, "{rate}");
    }
}

#[test]
fn a_few_packets_do_not_count() {
    let mut call = Call::new(false);
    for second in 1..=100 {
        call.breaker.frame(ms(1000 * second), 0, 1, 1000);
        // one packet in two seconds, on which every other report has a block
        call.traffic.packets += u32::from(second % 2 == 0);
        call.traffic.bytes += 100_000_000;
        assert_eq!(call.report(second, (second % 2 == 0).then_some(250), 0.1), None);
    }
}

#[test]
fn cb_interval_is_that_of_section_4_3() {
    let intervals = |local, peer| Intervals {
        local: Span::from_secs_f64(local),
        peer: Span::from_secs_f64(peer),
        ..SECOND
    };
    // ten round trips of 100 ms in reports every 144 ms
    assert_eq!(cb_interval(0.033, &intervals(0.144, 0.144), 0.1), 7);
    // ten frames of 1 s
    assert_eq!(cb_interval(1.0, &intervals(0.5, 0.5), 0.1), 20);
    // at least three reports
    assert_eq!(cb_interval(0.02, &intervals(5.0, 5.0), 0.05), 3);
    // at most 15 s
    assert_eq!(cb_interval(0.02, &intervals(0.5, 0.5), 3.0), 30);
    // or three reports of our own, where these come more rarely
    assert_eq!(cb_interval(0.02, &intervals(10.0, 1.0), 3.5), 30);
}

#[test]
fn media_times_out_after_five_reports_or_more_where_round_trips_are_long() {
    for (round_trip, reports) in [(0.1, 5), (1.0, 5), (1.5, 8)] {
        let mut call = Call::new(false);
        call.send(1, 1000);
        assert_eq!(call.report(1, Some(0), round_trip), None);
        let tripped = (2..100).find_map(|second| {
            call.send(second, 1000);
            call.report(second, None, round_trip).map(|breaker| (second - 1, breaker))
        });
        assert_eq!(tripped, Some((reports, Breaker::MediaTimeout)), "{round_trip}");
    }
}

#[test]
fn a_block_on_the_same_number_is_no_reception_and_one_on_a_later_number_cancels() {
    let mut call = Call::new(false);
    for second in 1..=60 {
        call.send(second, 1000);
        if second % 5 != 0 {
            call.highest -= 50.min(call.highest);
        }
        let lost = Some(0);
        assert_eq!(call.report(second, lost, 0.1), None, "only four in a row: {second}");
    }
    let tripped = (61..).find(|&second| {
        call.send(second, 1000);
        call.highest -= 50;
        call.report(second, Some(0), 0.1).is_some()
    });
    assert_eq!(tripped, Some(65));
}

#[test]
fn a_silent_sender_is_not_timed_out() {
    let mut call = Call::new(false);
    call.send(1, 1000);
    assert_eq!(call.report(1, Some(0), 0.1), None);
    for second in 2..100 {
        assert_eq!(call.report(second, None, 0.1), None);
    }
    // four reports without reception, a pause, four more
    for second in (100..104).chain(110..114) {
        call.send(second, 1000);
        assert_eq!(call.report(second, None, 0.1), None);
        if second == 103 {
            call.breaker.switched(0);
        }
    }
}

#[test]
fn rtcp_times_out_after_three_intervals_of_at_least_5_s_of_sending() {
    let mut call = Call::new(false);
    assert_eq!(call.breaker.deadline(), ms(15_000));
    call.send(1, 1000);
    assert_eq!(call.report(1, Some(0), 0.1), None);
    // feedback without a report counts
    let traffic = [call.traffic].into_iter();
    assert_eq!(call.breaker.received(ms(3000), false, None, SECOND, traffic), None);
    assert_eq!(call.breaker.deadline(), ms(18_000));
    // nothing was sent since: it is no timeout
    assert_eq!(call.breaker.expire(call.traffic.packets), None);
    assert_eq!(call.breaker.deadline(), ms(33_000));
    assert_eq!(call.breaker.expire(call.traffic.packets + 1), Some(Breaker::RtcpTimeout));
    assert_eq!(call.breaker.deadline(), Time::MAX, "it has tripped for good");
}

#[test]
fn media_is_of_no_use_where_loss_or_delay_last_for_10_s() {
    // 54/256 = 21.1 %, 53/256 = 20.7 %; a rate far below TCP's
    assert_eq!(
        run(true, 1000, Some(54), 0.1),
        Some((12, Breaker::Usability)),
        "known from the second block on"
    );
    assert_eq!(run(true, 1000, Some(53), 0.1), None);
    assert_eq!(run(false, 1000, Some(54), 0.1), None, "losses after repair are not known here");
    assert_eq!(run(true, 1000, Some(0), 0.81), Some((11, Breaker::Usability)));
    assert_eq!(run(true, 1000, Some(0), 0.79), None);
}
