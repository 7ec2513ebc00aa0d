//! The model by itself, fed with acknowledgements and losses: each rule of the draft with its numbers.

use super::super::delivery::{RateSample, Snapshot};
use super::super::sack::Loss;
use super::*;

const SEGMENT: u64 = 1000;
/// Bytes a second; with a round trip of 100 ms the bandwidth-delay product is 100 segments.
const BW: f64 = 1e6;
const BDP: f64 = 100_000.0;
const RTT: Span = Span::from_millis(100);

fn luck() -> Stream {
    Stream::new(1, "test", "model")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// A model that knows the path, in a state, with a window of two bandwidth-delay products.
fn model(state: State) -> Bbr3 {
    let settings = TcpSettings { segment: SEGMENT as u16, ..TcpSettings::default() };
    let mut model = Bbr3::new(&settings, Time::ZERO);
    model.opened(Time::ZERO, RTT, 2.0 * BDP);
    model.max_bw_filter.update(0, BW);
    (model.max_bw, model.bw, model.state) = (BW, BW, state);
    model.full_bw_reached = state != State::Startup;
    model
}

/// An acknowledgement of a segment, at a rate, `in_flight` bytes under way; it begins a round if `round`.
fn ack(model: &Bbr3, now: Time, rate: f64, in_flight: f64, round: bool) -> AckEvent {
    let prior = if round { model.c.delivered } else { 0 };
    let delivered = model.c.delivered + SEGMENT;
    let latest = Snapshot { delivered: prior, tx_in_flight: in_flight as u64, ..Snapshot::default() };
    let sample = RateSample {
        delivered: (rate * RTT.as_secs_f64()).round() as u64,
        interval: RTT,
        prior_delivered: prior,
        app_limited: false,
    };
    AckEvent {
        now,
        acked: SEGMENT,
        delivered,
        lost: 0,
        prior_in_flight: in_flight as u64 + SEGMENT,
        in_flight: in_flight as u64,
        latest: Some(latest),
        sample: Some(sample),
        rtt: Some(RTT),
        phase: model.c.phase,
    }
}

fn feed(model: &mut Bbr3, event: &AckEvent) {
    let mut cwnd = model.c.cwnd;
    model.acked(event, &mut cwnd, &mut luck());
}

/// A round at the path's bandwidth, with a bandwidth-delay product under way.
fn round(model: &mut Bbr3, ms: i64) {
    let event = ack(model, Time::from_millis(ms), BW, BDP, true);
    feed(model, &event);
}

/// A loss of the segment that begins at `start`, which left with `tx_in_flight` bytes under way; `lost` bytes were
/// lost since.
fn lose(model: &mut Bbr3, start: u64, tx_in_flight: u64, lost: u64, app_limited: bool) {
    let snapshot = Snapshot { tx_in_flight, app_limited, ..Snapshot::default() };
    let event = LossEvent {
        now: model.c.now,
        loss: Loss { start, end: start + SEGMENT, snapshot, lost },
        delivered: model.c.delivered,
        in_flight: model.c.inflight as u64,
        cwnd: model.c.cwnd,
        phase: Phase::Recovery,
    };
    model.lost(&event, &mut luck());
}

/// Section 5.6.1, with the margin of 1 %.
#[test]
fn each_state_has_its_gains() {
    for (state, pacing, cwnd) in [
        (State::Startup, 2.772_588_722_239_781, 2.0),
        (State::Drain, 0.5, 2.0),
        (State::ProbeBwDown, 0.9, 2.0),
        (State::ProbeBwCruise, 1.0, 2.0),
        (State::ProbeBwRefill, 1.0, 2.0),
        (State::ProbeBwUp, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
    ] {
        let mut model = model(state);
        model.c.cwnd = 10.0 * BDP;
        model.set_pacing_rate();
        assert!(close(model.pacing_rate, 0.99 * pacing * BW), "{state:?}: {}", model.pacing_rate);
        model.full_bw_reached = true;
        model.set_cwnd();
        // two segments more while it probes, for a small path
        let budget = if state == State::ProbeBwUp { 2000.0 } else { 0.0 };
        assert!(close(model.c.cwnd, cwnd * BDP + budget), "{state:?}: {}", model.c.cwnd);
    }
}

/// Section 5.6.2: the initial window in the round trip of the handshake, or in a millisecond before any is measured.
#[test]
fn it_begins_with_the_initial_window_in_a_round_trip() {
    let settings = TcpSettings { segment: SEGMENT as u16, ..TcpSettings::default() };
    let mut model = Bbr3::new(&settings, Time::ZERO);
    assert!(close(model.pacing_rate, 2.772_588_722_239_781 * 10_000.0 / 0.001));
    let event = ack(&model, Time::from_millis(100), 1000.0, 9000.0, true);
    feed(&mut model, &event);
    assert!(close(model.pacing_rate, 2.772_588_722_239_781 * 10_000.0 / 0.1), "{}", model.pacing_rate);
    assert!(close(super::tests::model(State::Startup).pacing_rate, model.pacing_rate));
}

/// Section 5.6.4.3: four segments on the smallest path.
#[test]
fn four_segments_are_the_least_window() {
    for state in [State::Drain, State::ProbeBwDown, State::ProbeBwCruise, State::ProbeRtt] {
        let mut model = model(state);
        (model.max_bw, model.bw, model.c.cwnd, model.inflight_shortterm) = (1.0, 1.0, 1000.0, 1.0);
        model.set_cwnd();
        assert_eq!(model.c.cwnd, 4000.0, "{state:?}");
    }
}

/// Section 5.3.1.2: three rounds with less than a quarter more end Startup; a quarter more begins anew, and rounds
/// limited by the application do not count. Then Drain lasts until a
/// bandwidth-delay product is under way.
#[test]
fn startup_ends_with_a_plateau_of_three_rounds() {
    /// More than a bandwidth-delay product.
    const FULL: f64 = 1e9;
    let mut model = model(State::Startup);
    // ten times a quarter more are whole numbers
    let mut rate = 10.0 * f64::from(1_u32 << 20);
    for n in 0..10 {
        let event = ack(&model, Time::from_millis(100 * n), rate, FULL, true);
        feed(&mut model, &event);
        rate *= 1.25;
        assert_eq!((model.state, model.full_bw_count), (State::Startup, 0), "{n}");
    }
    for (n, grown) in [1.24, 1.24, 1.24].into_iter().enumerate() {
        assert_eq!((model.state, model.full_bw_count), (State::Startup, n as u32));
        let mut event = ack(&model, Time::from_secs(3), grown * model.full_bw, FULL, true);
        event.latest = event.latest.map(|latest| Snapshot { app_limited: true, ..latest });
        feed(&mut model, &event);
        assert_eq!((model.state, model.full_bw_count), (State::Startup, n as u32), "limited");
        let event = ack(&model, Time::from_secs(3), grown * model.full_bw, FULL, true);
        feed(&mut model, &event);
    }
    assert_eq!((model.state, model.full_bw_now, model.full_bw_reached), (State::Drain, true, true));
    assert!(close(model.pacing_rate, 0.99 * 0.5 * model.bw));
    let bdp = model.bdp_multiple(model.bw, 1.0);
    // with so much DOWN is over, too
    for (in_flight, state) in [(bdp + 1000.0, State::Drain), (bdp, State::ProbeBwCruise)] {
        let event = ack(&model, Time::from_secs(3), BW, in_flight, false);
        feed(&mut model, &event);
        assert_eq!(model.state, state);
    }
}

/// Section 5.3.2: after three rounds Drain ends with the queue not drained.
#[test]
fn drain_ends_after_three_rounds() {
    let mut model = model(State::Drain);
    for n in 0..4 {
        let event = ack(&model, Time::from_millis(n), BW, 2.0 * BDP, true);
        assert_eq!(model.state, State::Drain);
        feed(&mut model, &event);
    }
    assert_eq!(model.state, State::ProbeBwDown);
}

/// Feeds Startup with a recovery of a round: `ranges` segments apart are lost, and the round's end reports `lost` of
/// 100,000 bytes that were under way; the recovery began in this round if `late`.
fn startup_with_losses(ranges: u64, lost: u64, late: bool) -> Bbr3 {
    let mut model = model(State::Startup);
    (0..ranges).for_each(|n| lose(&mut model, 2 * SEGMENT * n, BDP as u64, lost, false));
    // adjacent: no further range
    lose(&mut model, 2 * SEGMENT * (ranges - 1) + SEGMENT, BDP as u64, lost, false);
    assert_eq!(model.ranges_lost as u64, ranges);
    let mut event = ack(&model, Time::from_millis(100), BW, 2.0 * BDP, true);
    event.latest = event.latest.map(|latest| Snapshot { tx_in_flight: BDP as u64, ..latest });
    if late {
        model.recovery_delivered = model.c.delivered + 1;
    }
    feed(&mut model, &AckEvent { lost, ..event });
    model
}

/// Section 5.3.1.3: a full round of recovery, more than 2 % and six ranges; then the volume that arrived bounds the
/// window, or a bandwidth-delay product.
#[test]
fn startup_ends_with_losses_if_they_are_many_and_scattered() {
    assert_eq!(startup_with_losses(5, 7000, false).state, State::Startup);
    assert_eq!(startup_with_losses(6, 2000, false).state, State::Startup, "2 % is not more");
    assert_eq!(startup_with_losses(6, 2001, true).state, State::Startup);
    let model = startup_with_losses(6, 2001, false);
    assert_eq!((model.state, model.full_bw_now, model.full_bw_reached), (State::Drain, true, true));
    assert_eq!(model.inflight_longterm, BDP);
}

/// Section 5.5.10.2: 2 % of what was under way, within the segment that crossed it, and never less than 0.7 of a
/// bandwidth-delay product; the probe ends, and is answered once.
#[test]
fn a_probe_with_too_many_losses_bounds_the_volume() {
    let probe = || Bbr3 { is_bw_probe_sample: true, ..model(State::ProbeBwUp) };
    let mut safe = probe();
    lose(&mut safe, 0, 120_000, 2400, false);
    assert_eq!((safe.inflight_longterm, safe.state), (f64::INFINITY, State::ProbeBwUp), "2 % is not more");
    let mut high = Bbr3 { bw_latest: BW, inflight_latest: BDP, ..probe() };
    lose(&mut high, 0, 120_000, 3000, false);
    let crossed = 119_000.0 + (0.02 * 119_000.0 - 2000.0) / 0.98;
    assert!(close(high.inflight_longterm, crossed), "{} {crossed}", high.inflight_longterm);
    assert_eq!((high.state, high.prev_probe_too_high), (State::ProbeBwDown, true));
    assert_eq!((high.bw_latest, high.inflight_latest, high.is_loss_in_round), (0.0, 0.0, false), "forgotten");
    lose(&mut high, 5000, 80_000, 9000, false);
    assert!(close(high.inflight_longterm, crossed), "once for each probe");
    let mut low = probe();
    lose(&mut low, 0, 50_000, 3000, false);
    assert!(close(low.inflight_longterm, 0.7 * BDP));
    let mut limited = probe();
    lose(&mut limited, 0, 50_000, 3000, true);
    assert_eq!((limited.inflight_longterm, limited.state), (f64::INFINITY, State::ProbeBwDown));
    let mut cruising = model(State::ProbeBwCruise);
    lose(&mut cruising, 0, 50_000, 3000, false);
    assert_eq!(cruising.inflight_longterm, f64::INFINITY);
}

/// Section 5.5.10.3: a round with a loss lowers the short-term model to what arrived, by 0.3 at most; not while it
/// probes; and the next probe forgets it.
#[test]
fn each_round_with_a_loss_lowers_the_short_term_model() {
    let after = |state, rate| {
        let mut model = model(state);
        model.bw_probe_wait = Span::from_secs(100);
        lose(&mut model, 0, BDP as u64, 1000, false);
        let event = ack(&model, Time::from_millis(100), rate, BDP, true);
        feed(&mut model, &event);
        model
    };
    let model = after(State::ProbeBwCruise, 0.95 * BW);
    assert!(close(model.bw_shortterm, 0.95 * BW) && close(model.bw, 0.95 * BW));
    let mut model = after(State::ProbeBwCruise, 0.5 * BW);
    assert!(close(model.bw_shortterm, 0.7 * BW));
    // of the window, two bandwidth-delay products; only a segment arrived
    assert!(close(model.inflight_shortterm, 0.7 * 2.0 * BDP), "{}", model.inflight_shortterm);
    // a segment less than two bandwidth-delay products of the new rate and extra_acked
    assert!(close(model.c.cwnd, model.inflight_shortterm), "{}", model.c.cwnd);
    round(&mut model, 200);
    assert!(close(model.bw_shortterm, 0.7 * BW), "a round without a loss");
    model.cycle_stamp = Time::from_millis(200);
    model.bw_probe_wait = Span::from_millis(50);
    round(&mut model, 300);
    assert_eq!((model.state, model.bw_shortterm), (State::ProbeBwRefill, f64::INFINITY));
    for state in [State::Startup, State::ProbeBwRefill, State::ProbeBwUp] {
        assert_eq!(after(state, 0.5 * BW).bw_shortterm, f64::INFINITY, "{state:?}");
    }
}

/// Section 5.3.3.1 and 5.3.3.9: DOWN lasts until 0.85 of the bound and a bandwidth-delay product are under way.
#[test]
fn down_leaves_headroom() {
    let state = |bound: f64, in_flight: f64| {
        let mut model = model(State::ProbeBwDown);
        (model.inflight_longterm, model.bw_probe_wait) = (bound, Span::from_secs(2));
        let mut event = ack(&model, Time::from_millis(100), BW, in_flight, false);
        event.latest = None;
        feed(&mut model, &event);
        (model.state, model.c.cwnd)
    };
    let infinite = f64::INFINITY;
    assert_eq!(state(infinite, BDP + 1.0).0, State::ProbeBwDown);
    assert_eq!(state(infinite, BDP).0, State::ProbeBwCruise);
    assert_eq!(state(BDP, 0.86 * BDP).0, State::ProbeBwDown);
    let (cruise, cwnd) = state(BDP, 0.85 * BDP);
    assert_eq!(cruise, State::ProbeBwCruise);
    assert!(close(cwnd, 0.85 * BDP), "{cwnd}");
}

/// Section 5.3.3.8: 2 to 3 s, or as many rounds as there are segments in a bandwidth-delay product, 62 or 63 at most.
#[test]
fn probes_wait_two_to_three_seconds_or_renos_rounds() {
    let mut model = model(State::ProbeBwCruise);
    let mut luck = luck();
    let (mut waits, mut begun) = (Vec::new(), [0; 2]);
    for _ in 0..4000 {
        model.pick_probe_wait(&mut luck);
        waits.push(model.bw_probe_wait.as_secs_f64());
        begun[model.rounds_since_probe_up as usize] += 1;
    }
    waits.sort_by(f64::total_cmp);
    assert!((2.0..2.01).contains(&waits[0]) && (2.99..3.0).contains(&waits[3999]), "{waits:?}");
    // a mean of 4000 uniform numbers is within 5 standard deviations of 0.0046
    assert!((waits.iter().sum::<f64>() / 4000.0 - 2.5).abs() < 0.023);
    // and the number of heads in 4000 throws within 5 of 32
    assert!(begun.iter().all(|&count: &i32| (count - 2000).abs() < 160), "{begun:?}");
    for (bw, rounds) in [(0.34 * BW, 34), (2.0 * BW, 63)] {
        model.bw = bw;
        for (since, expected) in [(rounds - 1, false), (rounds, true)] {
            model.rounds_since_probe_up = since;
            assert_eq!(model.is_reno_coexistence_probe_time(), expected, "{bw} {since}");
        }
    }
    model.rounds_since_probe_up = 0;
    (model.bw_probe_wait, model.cycle_stamp) = (Span::from_secs(2), Time::from_secs(1));
    for (now, expected) in [(3000, false), (3001, true)] {
        model.c.now = Time::from_millis(now);
        assert_eq!(model.is_time_to_probe_bw(), expected);
    }
}

/// Section 5.3.3.5: while the bound limits the window it grows by 1, 2, 4 and 8 segments a round.
#[test]
fn the_bound_grows_twice_as_fast_each_round() {
    let mut model = model(State::ProbeBwRefill);
    model.inflight_longterm = BDP;
    model.c.cwnd = BDP;
    let mut bounds = Vec::new();
    for n in 0..5 {
        // one round: a window of segments, at the bound, the first of them begins the round
        let segments = (model.inflight_longterm / SEGMENT as f64) as u64;
        for segment in 0..segments {
            let in_flight = model.inflight_longterm - SEGMENT as f64;
            let mut event = ack(&model, Time::from_millis(100 * n), BW, in_flight, segment == 0);
            event.latest = event.latest.map(|latest| Snapshot { tx_in_flight: 0, ..latest });
            feed(&mut model, &event);
        }
        bounds.push((model.inflight_longterm / SEGMENT as f64) as u64);
    }
    assert_eq!(model.state, State::ProbeBwUp, "no plateau counts while the bound is in the way");
    let growth: Vec<_> = bounds.windows(2).map(|two| two[1] - two[0]).collect();
    // the first segment falls due with the first acknowledgement of the next round
    assert_eq!(growth, [2, 4, 8, 16]);
}

/// Section 5.3.3.6: the probe after one with too many losses ends where that one crossed the threshold, and if that
/// was safe another follows at once, without a cruise.
#[test]
fn a_probe_after_losses_is_cautious() {
    let mut model = model(State::ProbeBwUp);
    (model.inflight_longterm, model.prev_probe_too_high) = (BDP, true);
    let event = ack(&model, Time::from_millis(100), BW, BDP - 1.0, false);
    feed(&mut model, &event);
    assert_eq!(model.state, State::ProbeBwUp);
    let event = ack(&model, Time::from_millis(100), BW, BDP, false);
    feed(&mut model, &event);
    assert_eq!((model.state, model.prev_probe_precautionary), (State::ProbeBwDown, true));
    assert!(!model.prev_probe_too_high);
    let mut after_loss = Bbr3 { prev_probe_too_high: true, ..model.clone() };
    let event = ack(&model, Time::from_millis(200), BW, BDP, true);
    feed(&mut model, &event);
    assert_eq!((model.state, model.prev_probe_precautionary), (State::ProbeBwRefill, false));
    feed(&mut after_loss, &event);
    assert_ne!(after_loss.state, State::ProbeBwRefill, "it was not safe");
    let event = ack(&model, Time::from_millis(300), BW, BDP, true);
    feed(&mut model, &event);
    assert_eq!((model.state, model.is_bw_probe_sample), (State::ProbeBwUp, true), "a round of REFILL");
}

/// Section 5.3.3.7: without a bound UP ends with the third round in which the rate does not grow by a quarter.
#[test]
fn up_ends_with_a_plateau_of_three_rounds() {
    let mut model = model(State::ProbeBwRefill);
    round(&mut model, 100);
    for n in 0..3 {
        assert_eq!((model.state, model.full_bw_count), (State::ProbeBwUp, n));
        round(&mut model, 200 + 100 * i64::from(n));
    }
    assert_eq!(model.state, State::ProbeBwDown);
}

/// Sections 2.11 and 5.5.6: the largest rate of this cycle and of the one before.
#[test]
fn the_bandwidth_is_forgotten_after_two_cycles() {
    let mut model = model(State::ProbeBwCruise);
    model.bw_probe_wait = Span::from_secs(100);
    let mut rates = Vec::new();
    for cycle in 0..4 {
        model.ack_phase = AckPhase::ProbeStopping;
        let event = ack(&model, Time::from_millis(100 * cycle), 0.5 * BW, 0.4 * BDP, true);
        feed(&mut model, &event);
        let event = ack(&model, Time::from_millis(100 * cycle), 0.5 * BW, 0.4 * BDP, false);
        feed(&mut model, &event);
        rates.push(model.max_bw / BW);
    }
    assert_eq!(rates, [1.0, 0.5, 0.5, 0.5]);
    model.rs = Sample { delivery_rate: 0.6 * BW, is_app_limited: true, ..Sample::default() };
    model.update_max_bw();
    assert!(close(model.max_bw, 0.6 * BW), "a limited rate counts if it is larger");
    model.rs.delivery_rate = 0.4 * BW;
    model.cycle_count += 2;
    model.update_max_bw();
    assert!(close(model.max_bw, 0.6 * BW), "and only then");
}

/// Section 5.3.4: five seconds without a smaller round trip begin ProbeRTT, with half a bandwidth-delay product; it
/// lasts 200 ms and a round from the time at which no more is under way.
#[test]
fn the_round_trip_is_probed_after_five_seconds() {
    for (full, after) in [(true, State::ProbeBwCruise), (false, State::Startup)] {
        let mut model = model(State::ProbeBwCruise);
        (model.full_bw_reached, model.bw_probe_wait) = (full, Span::from_secs(100));
        let at = |model: &mut Bbr3, ms: i64, in_flight: f64, begins: bool| {
            let mut event = ack(model, Time::from_millis(ms), BW, in_flight, begins);
            // as the sender marks them
            event.latest = event.latest.map(|latest| Snapshot { app_limited: true, ..latest });
            feed(model, &AckEvent { rtt: Some(Span::from_millis(120)), ..event });
            model.state
        };
        assert_eq!(at(&mut model, 5000, BDP, false), State::ProbeBwCruise);
        assert_eq!(at(&mut model, 5001, BDP, false), State::ProbeRtt);
        assert!(close(model.c.cwnd, 0.5 * BDP));
        assert_eq!(model.min_rtt, Some(RTT), "remembered for ten seconds");
        assert_eq!(at(&mut model, 5100, 0.5 * BDP + 1.0, true), State::ProbeRtt);
        assert_eq!(at(&mut model, 5200, 0.5 * BDP, true), State::ProbeRtt, "200 ms begin");
        assert_eq!(at(&mut model, 5300, 0.5 * BDP, true), State::ProbeRtt, "a round");
        assert_eq!(at(&mut model, 5400, 0.5 * BDP, false), State::ProbeRtt);
        assert_eq!(at(&mut model, 5401, 0.5 * BDP, false), after);
        assert!(model.c.cwnd > 1.9 * BDP, "the window is restored: {}", model.c.cwnd);
        assert_eq!(model.probe_rtt_min_stamp, Time::from_millis(5401));
    }
    let mut model = model(State::ProbeBwCruise);
    model.bw_probe_wait = Span::from_secs(100);
    for (ms, expected) in [(10_000, 100), (10_001, 120)] {
        let event = ack(&model, Time::from_millis(ms), BW, BDP, false);
        feed(&mut model, &AckEvent { rtt: Some(Span::from_millis(120)), ..event });
        assert_eq!(model.min_rtt, Some(Span::from_millis(expected)), "{ms}");
    }
}

/// Section 5.4.1: it paces at the bandwidth, and the idle time stands for a ProbeRTT.
#[test]
fn idle_time_stands_for_a_probe_of_the_round_trip() {
    let mut model = model(State::ProbeBwUp);
    model.set_pacing_rate();
    let mut cwnd = model.c.cwnd;
    Model::restart(&mut model, Time::from_secs(6), &mut cwnd, &mut luck());
    assert!(close(model.pacing_rate, 0.99 * BW) && cwnd == 2.0 * BDP);
    let event = ack(&model, Time::from_millis(6100), BW, BDP, false);
    feed(&mut model, &event);
    assert_ne!(model.state, State::ProbeRtt);
    let mut resting = Bbr3 { probe_rtt_done_stamp: Some(Time::from_secs(5)), ..self::model(State::ProbeRtt) };
    Model::restart(&mut resting, Time::from_secs(6), &mut cwnd, &mut luck());
    assert_eq!(resting.state, State::ProbeBwCruise, "a ProbeRTT that is over by then");
}

/// Section 5.5.9: what arrives in a bunch beyond the expected volume counts for ten rounds, and in Startup for one.
#[test]
fn bunched_acknowledgements_widen_the_window() {
    for (state, rounds) in [(State::ProbeBwCruise, 10), (State::Startup, 1)] {
        let mut model = model(state);
        (model.bw_probe_wait, model.full_bw_now) = (Span::from_secs(100), true);
        let event = ack(&model, Time::from_millis(100), BW, BDP, true);
        let bunch = AckEvent { acked: 30 * SEGMENT, delivered: 30 * SEGMENT, ..event };
        feed(&mut model, &bunch);
        assert_eq!(model.extra_acked, 30_000.0);
        for n in 1..=rounds {
            round(&mut model, 100 + 100 * n);
            assert_eq!(model.extra_acked, 30_000.0, "{state:?} {n}");
        }
        assert!(model.full_bw_reached != (state == State::Startup));
        round(&mut model, 200 + 100 * rounds);
        assert_eq!(model.extra_acked, 1000.0, "{state:?}: a segment each 100 ms is no bunch");
    }
}

/// Section 5.6.4.4: the end of a recovery restores the window, which the model bounds.
#[test]
fn the_window_is_restored_after_a_timeout() {
    let mut model = model(State::ProbeBwCruise);
    model.bw_probe_wait = Span::from_secs(100);
    let mut window = Window::new(SEGMENT as u16, 10);
    window.cwnd = model.c.cwnd;
    CongestionControl::timeout(&mut model, &mut window, Time::ZERO, Some(5), 5);
    assert_eq!(window.cwnd, 1000.0);
    Model::timeout(&mut model, Time::ZERO, 0, 0, &mut luck());
    model.c.cwnd = window.cwnd;
    let event = ack(&model, Time::from_millis(100), BW, BDP, false);
    feed(&mut model, &event);
    assert_eq!(model.c.cwnd, 4000.0, "the least window");
    let event = ack(&model, Time::from_millis(100), BW, BDP, false);
    feed(&mut model, &AckEvent { phase: Phase::Open, ..event });
    assert_eq!(model.c.cwnd, 2.0 * BDP + 1000.0, "with a segment of extra_acked");
}

/// BBRUpdateOffloadBudget (section 5.5.8): 10 Mbyte/s are bursts of 9 segments, and three of them are more than what
/// 1 ms holds; on a longer path they have no effect.
#[test]
fn the_window_has_room_for_three_bursts() {
    let mut model = model(State::ProbeBwCruise);
    (model.pacing_rate, model.min_rtt) = (10.0 * BW, Some(Span::from_millis(1)));
    assert_eq!(model.inflight(10.0 * BW, 1.0), 10_000.0);
    model.offload = true;
    assert_eq!(model.inflight(10.0 * BW, 1.0), 27_000.0);
    model.min_rtt = Some(RTT);
    assert!(close(model.inflight(10.0 * BW, 1.0), 10.0 * BDP));
}
