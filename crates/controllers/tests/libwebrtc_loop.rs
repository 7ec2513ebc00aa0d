//! `gcc:libwebrtc` in a closed loop of the form in which libwebrtc's own recordings were made: steps of 1 ms, no
//! pacer, packets of 1200 bytes at the target, a drop-tail queue of 400 ms. What leaves, arrives and is allowed has to
//! come out as it was recorded.

use crate::support::libwebrtc::{Loop, PLAIN, Path, at, run};
use crate::support::{read, shared};
use tidegate_core::{Rate, Stream, Time};

const LOOPS: [Loop; 8] = [
    Loop { name: "const1m", capacity: &[(0.0, 1000)], ..PLAIN },
    Loop { name: "steps", seconds: 60, capacity: &[(0.0, 2000), (15.0, 500), (30.0, 2000)], ..PLAIN },
    Loop {
        name: "drop_recovery",
        seconds: 60,
        capacity: &[(0.0, 3000), (10.0, 300), (14.0, 3000)],
        application: &[(0.0, 0), (25.0, 300), (40.0, 0)],
        ..PLAIN
    },
    Loop { name: "alr", capacity: &[(0.0, 5000)], application: &[(0.0, 400)], ..PLAIN },
    Loop {
        name: "alr_drop",
        capacity: &[(0.0, 3000), (12.0, 400), (13.2, 3000)],
        application: &[(0.0, 1000)],
        ..PLAIN
    },
    Loop {
        name: "limited_noalr",
        alr_probing: false,
        capacity: &[(0.0, 5000)],
        application: &[(0.0, 400)],
        ..PLAIN
    },
    Loop { name: "bursty", capacity: &[(0.0, 2000)], lossy: true, ..PLAIN },
    Loop {
        name: "loss5",
        seconds: 30,
        start: 500,
        max: 5000,
        one_way_ms: 40,
        capacity: &[(0.0, 10_000)],
        lossy: true,
        ..PLAIN
    },
];

/// A path on which nothing happens but losses.
struct Losses<F>(F);

impl<F: FnMut(u64, Time) -> bool> Path for Losses<F> {
    fn lost(&mut self, sequence: u64, now: Time, _probe: bool) -> bool {
        (self.0)(sequence, now)
    }
}

/// Compares a run with what was recorded: every packet by when it left and arrived, and every target.
fn compare(of: &Loop, packets: &str, targets: &str) -> usize {
    let cells =
        |line: &str| -> Vec<i64> { line.split(',').map(|cell| cell.parse().unwrap_or_default()).collect() };
    let recorded: Vec<Vec<i64>> = packets.lines().skip(1).map(cells).collect();
    let lost: Vec<bool> = recorded.iter().map(|row| of.lossy && row[3] < 0).collect();
    let mut lost = Losses(|sequence: u64, _| lost.get(sequence as usize).copied().unwrap_or(false));
    let run = run(of, &mut lost);
    for (packet, row) in run.packets.iter().zip(&recorded) {
        let arrival = packet.arrival.map_or(-1, |at| at.as_nanos() / 1000);
        let here = (packet.sent.as_nanos() / 1000, arrival, packet.probe.map_or(-1, i64::from));
        assert_eq!(here, (row[1], row[3], row[4]), "{}: packet {}", of.name, packet.sequence);
    }
    assert_eq!(run.packets.len(), recorded.len(), "{}", of.name);
    let recorded: Vec<(Time, Rate)> = targets
        .lines()
        .skip(1)
        .map(cells)
        .map(|row| (Time::from_micros(row[1]), Rate::from_bps(row[2] as u64)))
        .collect();
    for ms in 0..of.seconds * 1000 {
        let now = Time::from_millis(ms);
        assert_eq!(at(&run.targets, now), at(&recorded, now), "{} at {now}", of.name);
    }
    run.packets.len()
}

#[test]
fn a_loop_of_its_own_goes_as_it_was_recorded() {
    let carried = |what| read(&format!("tests/data/gcc/goog_cc_bursty_{what}.csv"));
    let bursty = LOOPS.iter().find(|of| of.name == "bursty").expect("it is there");
    let short = Loop { seconds: 6, ..*bursty };
    assert_eq!(compare(&short, &carried("packets"), &carried("targets")), 1162);
    let mut packets = 0;
    for of in &LOOPS {
        let file = |what: &str| shared(&format!("vectors/goog_cc_{}_{what}.csv", of.name));
        let (Some(sent), Some(targets)) = (file("packets"), file("targets")) else { continue };
        packets += compare(of, &sent, &targets);
    }
    assert!(packets == 0 || packets == 51_415, "{packets}");
}

/// The second probe of a call is asked for with the first one. In the recordings it is late when the first one is through,
/// and goes out with a packet in each step of 1 ms, at 9.6 Mbit/s: it finds 5 Mbit/s at once. Where it takes its own
/// time, it finds the 1.8 Mbit/s that it was sent at, and two more follow, at twice what was found.
#[test]
fn probes_with_a_time_of_their_own_double_the_rate_step_by_step() {
    let alr = LOOPS.iter().find(|of| of.name == "alr").expect("it is there");
    let found = |own_time| {
        let of = Loop { seconds: 1, own_time, ..*alr };
        let targets = run(&of, &mut Losses(|_, _| false)).targets;
        let reached = targets.iter().find(|(_, target)| *target >= Rate::from_kbps(4500));
        (at(&targets, Time::from_millis(200)), reached.expect("it finds the link").0)
    };
    assert_eq!(found(false), (Rate::from_kbps(4750), Time::from_millis(125)));
    let (first, reached) = found(true);
    println!("{first} at 0.2 s, 4.5 Mbit/s at {reached}");
    assert!((1700..1900).contains(&(first.as_bps() / 1000)), "{first}: the second probe's rate");
    assert!(
        (250..350).contains(&(reached.as_nanos() / 1_000_000)),
        "{reached}: two round trips and reports later"
    );
}

/// After the drop of this link losses and delay allow nearly the same. The probe for what was there before is sent only if
/// it is delay that limits the target when the queue is gone; losses do where a receiver report has told of them by then.
#[test]
fn a_drop_is_probed_away_or_not_by_the_phase_of_receiver_reports() {
    let alr_drop = LOOPS.iter().find(|of| of.name == "alr_drop").expect("it is there");
    let recovers = |report_phase_ms| {
        let of = Loop { report_phase_ms, ..*alr_drop };
        let targets = run(&of, &mut Losses(|_, _| false)).targets;
        at(&targets, Time::from_secs(20)) >= Rate::from_mbps(1)
    };
    assert!(recovers(0), "as it was recorded");
    let count = (0..1000).step_by(50).filter(|&phase| recovers(phase)).count();
    println!("{count} of 20");
    assert!((2..=10).contains(&count), "{count} of 20");
}

/// The targets, bit/s, of twenty seeds of ours in the end of each of these seconds, sorted.
fn seeds(loss: f64, seconds: &[i64]) -> Vec<Vec<u64>> {
    let of = Loop { start: 500, max: 5000, one_way_ms: 40, capacity: &[(0.0, 10_000)], ..PLAIN };
    let runs: Vec<Vec<(Time, Rate)>> = (1..=20)
        .map(|seed| {
            let mut luck = Stream::new(seed, "link", "loss");
            let mut lost = Losses(|_, now| now >= Time::from_secs(10) && luck.chance(loss));
            run(&of, &mut lost).targets
        })
        .collect();
    let sorted = |&second: &i64| {
        let mut targets: Vec<u64> =
            runs.iter().map(|run| at(run, Time::from_secs(second)).as_bps()).collect();
        targets.sort_unstable();
        targets
    };
    seconds.iter().map(sorted).collect()
}

#[test]
fn under_random_loss_the_median_is_within_libwebrtcs_seeds() {
    let seconds = [15, 20, 30, 39];
    for (loss, name) in [(0.2, "loss20"), (0.1, "loss10")] {
        let Some(text) = shared(&format!("vectors/goog_cc_{name}_seeds.csv")) else { continue };
        let ours = seeds(loss, &seconds);
        for (second, ours) in seconds.iter().zip(ours) {
            let there = text.lines().skip(1).filter_map(|line| {
                let (_, row) = line.split_once(',')?;
                row.strip_prefix(&format!("{},", second * 1_000_000))?.parse::<u64>().ok()
            });
            let theirs: Vec<u64> = there.collect();
            assert_eq!(theirs.len(), 10);
            let (least, most) = (theirs.iter().min().expect("ten"), theirs.iter().max().expect("ten"));
            let median = (ours[9] + ours[10]) / 2;
            println!(
                "{name} at {second} s: {median} ({} to {}), libwebrtc {least} to {most}",
                ours[0], ours[19]
            );
            assert!((*least..=*most).contains(&median), "{name} at {second} s: {median}, {least} to {most}");
        }
    }
}
