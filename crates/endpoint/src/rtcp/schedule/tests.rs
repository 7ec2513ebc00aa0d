use super::*;
use tidegate_core::Stream;

fn schedule(minimum: Span) -> Schedule {
    let session = Rate::from_mbps(1);
    Schedule::new(&Timing { profile: Profile::Avp, session, minimum, first_size: 128 })
}

fn luck() -> impl FnMut() -> f64 {
    let mut stream = Stream::new(1, "endpoint", "rtcp");
    move || stream.uniform()
}

/// Runs `count` intervals and gives the times of sending.
fn run(schedule: &mut Schedule, count: usize, mut luck: impl FnMut() -> f64) -> Vec<Time> {
    let mut times = Vec::new();
    while times.len() < count {
        let now = schedule.due();
        if schedule.expire(now, false, &mut luck) == Due::Regular {
            times.push(now);
            schedule.sent(now, 128, &mut luck);
        }
    }
    times
}

#[test]
fn intervals_have_the_mean_of_section_6_3() {
    let mut schedule = schedule(Span::from_secs(5));
    let mut luck = luck();
    schedule.join(Time::ZERO, 2, &mut luck);
    schedule.set_senders(1, false);
    let times = run(&mut schedule, 20_001, luck);
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    // reconsideration and compensation cancel: the mean is Td
    assert!((mean - 5.0).abs() < 0.05, "{mean}");
    let (least, most) = gaps.iter().fold((f64::MAX, 0.0f64), |(l, m), &g| (l.min(g), m.max(g)));
    assert!((2.5 / 1.218_29..2.3).contains(&least), "{least}");
    assert!((6.0..=7.5 / 1.218_28).contains(&most), "{most}");
    // the first one comes after half the minimum in the mean
    assert!((1.02..=3.08).contains(&times[0].as_secs_f64()), "{}", times[0]);
}

#[test]
fn the_deterministic_interval_is_as_by_hand() {
    // 1 Mb/s: 6250 bytes a second for RTCP
    let mut schedule = schedule(Span::from_millis(100));
    schedule.join(Time::ZERO, 100, luck());
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
    schedule.join(Time::ZERO, 4, luck());
    (schedule.previous, schedule.next) = (Time::from_secs(2), Time::from_secs(10));
    schedule.set_members(Time::from_secs(6), 2);
    assert_eq!((schedule.previous, schedule.next), (Time::from_secs(4), Time::from_secs(8)));
    schedule.leave();
    schedule.join(Time::from_secs(7), 2, luck());
    assert_eq!(schedule.due(), Time::MAX, "who has left does not come back");
}
