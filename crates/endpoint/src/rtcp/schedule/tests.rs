use super::*;
use tidegate_core::Stream;

fn schedule(minimum: Span) -> Schedule {
    let session = Rate::from_mbps(1);
    Schedule::new(&Timing { profile: Profile::Avp, session, minimum, first_size: 128 })
}

fn uniforms() -> impl FnMut() -> f64 {
    let mut stream = Stream::new(1, "endpoint", "rtcp");
    move || stream.uniform()
}

/// Runs `count` intervals and gives the times of sending.
fn run(schedule: &mut Schedule, count: usize, mut uniforms: impl FnMut() -> f64) -> Vec<Time> {
    let mut times = Vec::new();
    while times.len() < count {
        let now = schedule.due();
        if schedule.expire(now, false, &mut uniforms) == Due::Regular {
            times.push(now);
            schedule.sent(now, 128, &mut uniforms);
        }
    }
    times
}

#[test]
fn intervals_have_the_mean_of_section_6_3() {
    let mut schedule = schedule(Span::from_secs(5));
    let mut uniforms = uniforms();
    schedule.join(Time::ZERO, 2, &mut uniforms);
    schedule.set_senders(1, false);
    let times = run(&mut schedule, 20_001, uniforms);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    // reconsideration and compensation cancel: the mean is Td
    assert!((mean - 5.0).abs() < 0.05, "{mean}");
    let (min, max) = gaps.iter().fold((f64::MAX, 0.0f64), |(l, m), &g| (l.min(g), m.max(g)));
    assert!((2.5 / 1.218_29..2.3).contains(&min), "{min}");
    assert!((6.0..=7.5 / 1.218_28).contains(&max), "{max}");
    // the first one comes after half the minimum in the mean
    assert!((1.02..=3.08).contains(&times[0].as_secs_f64()), "{}", times[0]);
}

#[test]
fn the_deterministic_interval_is_as_by_hand() {
    // 1 Mb/s: 6250 bytes a second for RTCP
    let mut schedule = schedule(Span::from_millis(100));
    schedule.join(Time::ZERO, 100, uniforms());
    schedule.initial = false;
    schedule.set_senders(10, true);
    // 10 of 100 are senders and share a quarter: 10 * 128 / 1562.5
    assert_eq!(schedule.deterministic(), Span::from_micros(819_200));
    schedule.set_senders(10, false);
    assert_eq!(schedule.deterministic(), Span::from_micros(2_457_600), "90 * 128 / 4687.5");
    schedule.set_senders(50, true);
    assert_eq!(schedule.deterministic(), Span::from_micros(2_048_000), "100 * 128 / 6250");
    schedule.set_senders(0, false);
    assert_eq!(schedule.deterministic(), Span::from_nanos(2_730_666_667), "75 % without any sender, too");
    schedule.received(144);
    assert!((schedule.average_size - 129.0).abs() < 1e-12);
    schedule.set_members(Time::ZERO, 2);
    schedule.set_senders(1, true);
    assert_eq!(schedule.deterministic(), Span::from_millis(100), "the minimum");
}

#[test]
fn fewer_members_bring_the_timer_forward() {
    let mut schedule = schedule(Span::from_secs(5));
    schedule.join(Time::ZERO, 4, uniforms());
    (schedule.previous, schedule.next) = (Time::from_secs(2), Time::from_secs(10));
    schedule.set_members(Time::from_secs(6), 2);
    assert_eq!((schedule.previous, schedule.next), (Time::from_secs(4), Time::from_secs(8)));
    schedule.leave();
    schedule.join(Time::from_secs(7), 2, uniforms());
    assert_eq!(schedule.due(), Time::MAX, "a participant that has left does not come back");
}

fn avpf(avpf: Avpf) -> Schedule {
    let session = Rate::from_mbps(1);
    let minimum = Span::from_secs(5);
    Schedule::new(&Timing { profile: Profile::Avpf(avpf), session, minimum, first_size: 128 })
}

/// The mean and the largest distance between the distribution of `values` and `cdf` (Kolmogorov-Smirnov).
fn compare(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let distance = values.iter().enumerate().map(|(index, &value)| {
        let expected = cdf(value);
        (expected - index as f64 / count).abs().max((expected - (index + 1) as f64 / count).abs())
    });
    (values.iter().sum::<f64>() / count, distance.fold(0.0, f64::max))
}

/// Distribution of the number that timer reconsideration picks from uniform ones: the first whose successor is smaller.
/// Its density at x is `x + x^2 + x^3 / 2! + ... = x e^x`.
fn first_descent(x: f64) -> f64 {
    let x = x.clamp(0.0, 1.0);
    (x - 1.0) * tidegate_core::math::exp(x) + 1.0
}

#[test]
fn intervals_have_the_distribution_that_reconsideration_gives_them() {
    let count = 20_000;
    // a distance above this has a probability of 1 in 1000
    let critical = 1.95 / f64::from(count).sqrt();
    // AVP with its minimum; AVPF, whose Td is 2 * 128 / 6250 s
    for (mut schedule, td) in [(schedule(Span::from_secs(5)), 5.0), (avpf(Avpf::default()), 0.040_96)] {
        let mut uniforms = uniforms();
        schedule.join(Time::ZERO, 2, &mut uniforms);
        schedule.set_senders(1, false);
        let times = run(&mut schedule, count as usize + 1, uniforms);
        let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() / td).collect();
        let (mean, distance) = compare(gaps, |gap| first_descent(gap * COMPENSATION - 0.5));
        // 0.5 + (e - 2), compensated: Td; the deviation of one gap is 0.179 Td
        assert!((mean - 1.0).abs() < 3.3 * 0.179 / f64::from(count).sqrt(), "{mean}");
        assert!(distance < critical, "{distance}");
    }
}

#[test]
fn full_packets_are_thinned_by_t_rr_interval() {
    let mut schedule = avpf(Avpf { rr_interval: Span::from_secs(4), ..Avpf::default() });
    let mut uniforms = uniforms();
    schedule.join(Time::ZERO, 2, &mut uniforms);
    schedule.set_senders(1, false);
    let times = run(&mut schedule, 5001, uniforms);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    // there is a slot every 41 ms, and one at s * 4 s after the last packet is taken with probability s - 1/2:
    // nearly a Rayleigh distribution; the tolerance is the slot in which it falls
    let slot = 0.040_96;
    let expected = 2.0 + 4.0 * (core::f64::consts::PI * slot / 4.0 / 2.0).sqrt();
    assert!((mean - expected).abs() < slot, "{mean}, not {expected}");
    assert!(gaps.iter().all(|&gap| (2.0..6.0 + 0.07).contains(&gap)));
}

#[test]
fn a_waiting_message_goes_in_a_minimal_packet_where_a_full_one_may_not() {
    let mut schedule = avpf(Avpf { rr_interval: Span::from_secs(4), ..Avpf::default() });
    let mut uniforms = uniforms();
    schedule.join(Time::ZERO, 2, &mut uniforms);
    schedule.set_senders(1, false);
    let (mut full, mut minimal) = (Vec::new(), 0);
    while full.len() < 500 {
        let now = schedule.due();
        match schedule.expire(now, true, &mut uniforms) {
            Due::Regular => full.push(now),
            Due::Minimal => minimal += 1,
            Due::Nothing => continue,
            due => panic!("{due:?}"),
        }
        schedule.sent(now, 128, &mut uniforms);
    }
    // every slot is used now
    let slots = (full[499] - full[0]).as_secs_f64() / 0.040_96;
    assert!((f64::from(minimal + 499) / slots - 1.0).abs() < 0.01, "{minimal} in {slots}");
}

#[test]
fn continuous_feedback_goes_early_every_second_time() {
    let mut schedule = avpf(Avpf::default());
    let mut uniforms = uniforms();
    schedule.join(Time::ZERO, 2, &mut uniforms);
    schedule.set_senders(1, false);
    let (mut packets, mut last_early, mut now) = (0, false, Time::ZERO);
    while packets < 20_000 {
        // there is always something to report
        let early = match schedule.feedback(now, None, &mut uniforms) {
            Chance::Early(time) => {
                assert_eq!(time, now, "between two there is no other member to wait for");
                assert!(!last_early, "no two early packets without a regular one between");
                let (_, next, interval) = schedule.state();
                let previous = schedule.previous;
                schedule.sent_early(128);
                assert_eq!(schedule.state(), (next, previous + interval * 2, interval));
                true
            }
            Chance::Regular | Chance::No => {
                now = schedule.due();
                if schedule.expire(now, true, &mut uniforms) == Due::Nothing {
                    continue;
                }
                schedule.sent(now, 128, &mut uniforms);
                false
            }
        };
        assert_ne!(early, last_early, "by turns");
        last_early = early;
        packets += 1;
    }
    // an early packet takes T, which is not reconsidered and whose mean is Td / (e - 3/2); then the regular one comes
    // after its usual time: RFC 4585 lets 9.8 % more through than its share
    let pace = f64::from(packets) * 0.040_96 / now.as_secs_f64();
    let expected = 2.0 / (1.0 + 1.0 / COMPENSATION);
    assert!((expected - 1.0984).abs() < 1e-4);
    assert!((pace - expected).abs() < 0.006, "{pace}, not {expected}");
}

#[test]
fn early_packets_of_many_are_spread_over_t_dither_max() {
    let rtt = Span::from_millis(80);
    for (k, l, rtt) in [(None, 0.5, None), (None, 0.25, Some(rtt)), (Some(1.0), 0.5, Some(rtt))] {
        let mut delays = Vec::new();
        let mut stream = Stream::new(2, "endpoint", "dither");
        for _ in 0..10_000 {
            let mut schedule = avpf(Avpf { k, l, ..Avpf::default() });
            schedule.join(Time::ZERO, 8, || stream.uniform());
            let t0 = Time::from_millis(1);
            let Chance::Early(te) = schedule.feedback(t0, rtt, || stream.uniform()) else {
                panic!("nothing is in its way")
            };
            // k * RTT / 2 * members of the draft: 320 ms
            let dither_max = if k.is_some() { Span::from_millis(320) } else { schedule.interval.scaled(l) };
            delays.push((te - t0).as_secs_f64() / dither_max.as_secs_f64());
        }
        let (mean, distance) = compare(delays, |delay| delay.clamp(0.0, 1.0));
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        assert!(distance < 1.95 / 100.0, "{distance}");
    }
}

#[test]
fn a_dither_of_an_interval_drawn_anew_ends_at_three_times_the_interval() {
    let early = |l: f64, redraw: bool| {
        let mut stream = Stream::new(5, "endpoint", "redraw");
        let mut count = 0;
        for _ in 0..10_000 {
            let mut schedule = avpf(Avpf { l, redraw, ..Avpf::default() });
            schedule.join(Time::ZERO, 8, || stream.uniform());
            let chance = schedule.feedback(Time::from_nanos(1), None, || stream.uniform());
            count += u32::from(matches!(chance, Chance::Early(_)));
        }
        f64::from(count) / 1e4
    };
    // u and v uniform on [1/2, 3/2]: l v < u never for l = 3, in one of 16 cases for l = 2; u alone: only for l < 1
    assert_eq!(early(3.0, true), 0.0);
    assert!((early(2.0, true) - 0.0625).abs() < 0.0073);
    assert_eq!((early(2.0, false), early(1.0, false), early(0.99, false)), (0.0, 0.0, 1.0));
}

#[test]
fn feedback_follows_the_steps_of_rfc_4585() {
    let half = || 0.5;
    let mut schedule = avpf(Avpf { max_feedback_delay: Span::from_millis(900), ..Avpf::default() });
    assert_eq!(schedule.feedback(Time::ZERO, None, half), Chance::No, "it has not joined");
    schedule.join(Time::ZERO, 4, half);
    // Tmin is 1 s: T = 1 / 1.218 s, the dither at most half of it
    let t_rr = Span::from_secs(1).scaled(1.0 / COMPENSATION);
    assert_eq!(schedule.state(), (Time::ZERO, Time::ZERO + t_rr, t_rr));
    // 3a: the regular packet comes before the dither has passed, and 2a: what follows joins it
    let late = Time::ZERO + t_rr.scaled(0.51);
    assert_eq!(schedule.feedback(late, None, half), Chance::Regular);
    assert!(schedule.allows_early());
    assert_eq!(schedule.feedback(Time::from_millis(1), None, half), Chance::Regular, "it waits");
    // 5a: nothing waits any more
    schedule.cancel_early();
    // 4b, and 2a again
    let te = Time::from_millis(1) + t_rr.scaled(0.25);
    assert_eq!(schedule.feedback(Time::from_millis(1), None, half), Chance::Early(te));
    assert_eq!(schedule.feedback(late, None, || panic!("it is drawn")), Chance::Early(te));
    assert_eq!(schedule.due(), te);
    assert_eq!(schedule.expire(te - Span::from_nanos(1), true, half), Due::Nothing);
    assert_eq!(schedule.expire(te, true, half), Due::Early);
    // 6
    schedule.sent_early(64);
    assert_eq!(schedule.state(), (Time::ZERO + t_rr, Time::ZERO + t_rr * 2, t_rr));
    assert!(!schedule.allows_early() && (schedule.average_size() - 124.0).abs() < 1e-12);
    // 4a: too late, and just in time
    let next = Time::ZERO + t_rr * 2;
    assert_eq!(schedule.feedback(next - Span::from_millis(900), None, half), Chance::No);
    let in_time = next - Span::from_nanos(899_999_999);
    assert_eq!(schedule.feedback(in_time, None, half), Chance::Regular);
    // the same number again is no smaller, so that it goes
    assert_eq!(schedule.expire(next, true, half), Due::Regular);
    schedule.sent(next, 128, half);
    assert!(schedule.allows_early());
}

#[test]
fn a_regular_packet_carries_feedback_that_waited_for_an_early_one() {
    let mut schedule = avpf(Avpf::default());
    schedule.join(Time::ZERO, 8, || 0.5);
    let Chance::Early(te) = schedule.feedback(Time::ZERO, None, || 0.9) else { panic!() };
    // members leave, and the timer comes forward, past te
    schedule.set_members(Time::from_millis(1), 2);
    assert!(schedule.due() < te);
    let now = schedule.due();
    assert_eq!(schedule.expire(now, true, || 0.0), Due::Regular);
    schedule.sent(now, 100, || 0.5);
    assert_eq!(schedule.early, None);
}

#[test]
fn a_single_member_is_no_pair_yet() {
    let first = |members| {
        let mut schedule = avpf(Avpf::default());
        schedule.join(Time::ZERO, members, || 0.5);
        schedule.deterministic()
    };
    assert_eq!([first(1), first(3)], [Span::from_secs(1); 2], "time to hear of other members");
    assert_eq!(first(2), Span::from_secs_f64(2.0 * 128.0 / 4687.5));
}

#[test]
fn reverse_reconsideration_scales_a_tp_that_is_still_to_come() {
    let mut schedule = avpf(Avpf::default());
    schedule.join(Time::ZERO, 4, || 0.5);
    (schedule.next, schedule.interval) = (Time::from_secs(4), Span::from_secs(4));
    schedule.sent_early(128);
    assert_eq!((schedule.previous, schedule.next), (Time::from_secs(4), Time::from_secs(8)));
    schedule.set_members(Time::from_secs(2), 2);
    // tc - 1/2 (tc - tp) and tc + 1/2 (tn - tc)
    assert_eq!((schedule.previous, schedule.next), (Time::from_secs(3), Time::from_secs(5)));
}

#[test]
fn a_goodbye_backs_off_among_more_than_fifty() {
    let leaving_at = Time::from_secs(100);
    for profile in [Profile::Avp, Profile::Avpf(Avpf::default())] {
        let session = Rate::from_mbps(1);
        let timing = Timing { profile, session, minimum: Span::from_secs(5), first_size: 128 };
        let joined = |members| {
            let mut schedule = Schedule::new(&timing);
            schedule.join(Time::ZERO, members, || 0.5);
            schedule.set_senders(3, true);
            schedule
        };
        assert!(joined(50).goodbye(leaving_at, 100, || 0.5), "at once");
        let mut schedule = joined(51);
        assert!(!schedule.goodbye(leaving_at, 100, || 0.5));
        // as if it joined anew: alone, with the first interval of its profile
        let first = if profile == Profile::Avp { Span::from_millis(2500) } else { Span::from_secs(1) };
        assert_eq!(schedule.deterministic(), first);
        assert_eq!(schedule.due(), leaving_at + first.scaled(1.0 / COMPENSATION));
        // reports and new members do not count, goodbyes do
        schedule.received(5000);
        schedule.set_members(leaving_at, 1000);
        schedule.set_senders(500, false);
        assert_eq!(schedule.deterministic(), first);
        for _ in 0..999 {
            schedule.heard_goodbye(100);
        }
        let crowded = Span::from_secs_f64(1000.0 * 100.0 / 4687.5);
        assert_eq!(schedule.deterministic(), crowded);
        assert_eq!(schedule.feedback(leaving_at, None, || 0.5) == Chance::No, profile != Profile::Avp);
        let now = schedule.due();
        assert_eq!(schedule.expire(now, false, || 0.5), Due::Nothing, "reconsidered");
        assert_eq!(schedule.due(), leaving_at + crowded.scaled(1.0 / COMPENSATION));
        let now = schedule.due();
        assert_eq!(schedule.expire(now, false, || 0.5), Due::Goodbye);
        assert_eq!(schedule.due(), Time::MAX, "silent for ever");
    }
}

#[test]
fn time_outs_do_not_depend_on_the_profile() {
    // RFC 8108 section 7.1.4: 5 s, also where AVPF has T_rr_interval or AVP a reduced minimum
    let rr_interval = Span::from_secs(1);
    for mut schedule in [schedule(Span::from_millis(360)), avpf(Avpf { rr_interval, ..Avpf::default() })] {
        schedule.join(Time::ZERO, 100, uniforms());
        schedule.set_senders(10, true);
        assert_eq!(schedule.member_timeout(), Span::from_secs(25));
        assert_eq!(schedule.sender_timeout(), Span::from_secs(10));
        // and the interval of a receiver where that is longer, whether this participant sends or not
        schedule.set_members(Time::ZERO, 1000);
        let receiver = Span::from_secs_f64(990.0 * 128.0 / 4687.5);
        assert_eq!(schedule.member_timeout(), receiver * 5);
        assert_eq!(schedule.sender_timeout(), receiver * 2);
    }
}

#[test]
fn numbers_are_drawn_where_the_rfcs_draw_them() {
    let drawn = core::cell::Cell::new(0);
    let count = || {
        drawn.set(drawn.get() + 1);
        0.5
    };
    let mut schedule = avpf(Avpf { rr_interval: Span::from_secs(9), ..Avpf::default() });
    let expect = |draws: &str, count: i32| assert_eq!(drawn.take(), count, "{draws}");
    schedule.join(Time::ZERO, 2, count);
    expect("T", 1);
    let now = schedule.due();
    assert_eq!(schedule.expire(now, false, count), Due::Regular);
    expect("T; no T_rr_current_interval for the first regular packet", 1);
    schedule.sent(now, 128, count);
    expect("T", 1);
    schedule.feedback(now, None, count);
    expect("te, also where T_dither_max is zero", 1);
    schedule.cancel_early();
    let now = schedule.due();
    assert_eq!(schedule.expire(now, false, count), Due::Nothing);
    expect("T, T_rr_current_interval, and T when it is suppressed", 3);
}
