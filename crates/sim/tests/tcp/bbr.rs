//! BBR version 1 by its draft: states, gains, the cap, and its behaviour with policers and losses.

use crate::harness::Dumbbell;
use tidegate_core::{Rate, Span, Time};
use tidegate_sim::traffic::tcp::{TcpSettings, Variant, Workload};

fn bbr() -> TcpSettings {
    TcpSettings { variant: Variant::Bbr, ..TcpSettings::default() }
}

/// Packets sent in each stretch of `length` from `from` on, over the rate of the link in packets.
fn paces(path: Dumbbell, from: f64, length: f64, count: usize) -> Vec<f64> {
    let rate = path.rate.as_bps_f64() / 12_000.0;
    let result = Dumbbell { detailed: true, from: Time::ZERO, ..path }.run();
    let mut paces = vec![0.0; count];
    for (departure, _) in &result.flows[0].departures {
        let index = ((departure - from) / length).floor();
        if index >= 0.0 && (index as usize) < count {
            paces[index as usize] += 1.0 / (rate * length);
        }
    }
    paces
}

/// Draft section 4.3.4: cycles of eight round trips pace at 1.25, 0.75 and six times 1 (less the margin of 1 %),
/// beginning at any of them. A round trip of 100 ms gives 83 packets each.
#[test]
fn cycles_pace_at_their_gains() {
    let mut path = Dumbbell::reference(bbr());
    (path.one_way, path.queue, path.until) = (Span::from_millis(49), 1000, Time::from_secs(9));
    let paces = paces(path, 3.0, 0.01, 500);
    let share = |low: f64, high: f64| {
        // over ten stretches, a tenth of a second
        let smooth: Vec<f64> = paces.windows(10).map(|window| window.iter().sum::<f64>() / 10.0).collect();
        smooth.iter().filter(|&&pace| pace > low && pace < high).count() as f64 / smooth.len() as f64
    };
    let (up, down, level) = (share(1.2, 1.3), share(0.6, 0.8), share(0.94, 1.04));
    println!("{up:.3} of the time 1.25, {down:.3} 0.75, {level:.3} 1");
    // each change takes a stretch to show: some share is at neither
    assert!((0.02..0.125).contains(&up) && (0.02..0.125).contains(&down), "{up} {down}");
    assert!((0.55..0.80).contains(&level), "{level}");
}

/// Draft section 4.3.5: while other flows keep a queue, the smallest round trip does not recur, and after ten seconds
/// four segments are under way for 200 ms and a round trip.
#[test]
fn the_round_trip_is_probed_after_ten_seconds() {
    let mut path = Dumbbell::reference(bbr());
    // CUBIC keeps the queue from being empty
    let cubic = TcpSettings { variant: Variant::Cubic, ..TcpSettings::default() };
    path.flows = vec![(bbr(), Span::ZERO), (TcpSettings { start: Time::from_secs(1), ..cubic }, Span::ZERO)];
    (path.queue, path.until) = (200, Time::from_secs(60));
    let paces = paces(path, 0.0, 0.1, 600);
    // a tenth of a second with hardly any data; four segments each round trip of up to 280 ms are less than 2 %
    let quiet: Vec<usize> = (0..600).filter(|&n| paces[n] < 0.05 && n > 150).collect();
    let episodes: Vec<usize> =
        quiet.iter().copied().filter(|n| !quiet.contains(&(n - 1)) && !quiet.contains(&(n - 2))).collect();
    println!("{episodes:?}");
    assert_eq!(episodes.len(), 4, "one in ten seconds and a little: {episodes:?}");
    assert!(episodes.windows(2).all(|two| (100..=125).contains(&(two[1] - two[0]))), "{episodes:?}");
}

/// Draft section 4.2.3.2: at most two bandwidth-delay products and three segments are under way, so that the queue
/// has at most one of them, and its share beside a loss-based flow shrinks as the queue grows.
#[test]
fn at_most_two_bandwidth_delay_products_are_under_way() {
    let mut path = Dumbbell::reference(bbr());
    (path.queue, path.until) = (1000, Time::from_secs(60));
    path.from = Time::from_secs(5);
    let result = path.run();
    let longest = result.flows[0].queued.iter().copied().fold(0.0, f64::max);
    // a quarter of 41.3 ms in the probing phase, and three segments and two of 1.2 ms
    println!("{longest:.2} ms at most");
    assert!((0.25 * 41.3..0.25 * 41.3 + 5.0 * 1.2).contains(&longest), "{longest}");
    assert_eq!(result.flows[0].lost, 0);
    // the queue that CUBIC fills: half a bandwidth-delay product of 34 packets, and sixteen
    let share = |queue| {
        let mut path = Dumbbell::reference(bbr());
        let cubic = TcpSettings { variant: Variant::Cubic, ..TcpSettings::default() };
        path.flows = vec![(bbr(), Span::ZERO), (cubic, Span::ZERO)];
        (path.queue, path.until) = (queue, Time::from_secs(120));
        path.jitter = Some(Span::from_micros(1200));
        let result = path.run();
        result.goodput(0) / (result.goodput(0) + result.goodput(1))
    };
    let (shallow, deep) = (share(17), share(17 * 32));
    println!("beside CUBIC {shallow:.3} of the goodput at half a bandwidth-delay product, {deep:.3} at 16");
    assert!(shallow > 0.8 && deep < 0.4, "{shallow} {deep}");
}

/// Random loss of 1 % hardly lowers its goodput, but NewReno's by nine tenths: it does not respond to losses.
#[test]
fn random_loss_is_repaired_and_not_answered() {
    let carried = |variant| {
        let mut path = Dumbbell::reference(TcpSettings { variant, ..TcpSettings::default() });
        (path.rate, path.queue, path.loss) = (Rate::from_mbps(50), 400, 0.01);
        path.run().utilisation()
    };
    let (bbr, sack) = (carried(Variant::Bbr), carried(Variant::Sack));
    println!("with a loss of 1 %: BBR carries {bbr:.3}, SACK {sack:.3}");
    assert!(bbr > 0.93 && sack < 0.12, "{bbr} {sack}");
}

/// A file, downloads with pauses, and an application that stops: a sender without data does not count as a slow path.
#[test]
fn pauses_do_not_lower_the_bandwidth() {
    let web = Workload::Web { min: 400_000, max: 400_000, idle: Span::from_millis(300), begins_idle: false };
    let mut path = Dumbbell::reference(TcpSettings { workload: web, ..bbr() });
    (path.queue, path.from) = (200, Time::ZERO);
    let downloads = path.run().flows[0].downloads.clone();
    // 274 segments: 0.33 s at the link's rate, and a handshake and four round trips of startup
    let mean = downloads.iter().sum::<f64>() / downloads.len() as f64;
    println!("{} downloads, {mean:.0} ms", downloads.len());
    assert!((0.33e3 + 80.0..0.33e3 + 6.0 * 42.0).contains(&mean), "{mean}");
}
