//! The figures that ns-2.35 and ns-3.37 agree on.

use crate::harness::Dumbbell;
use tidegate_core::{Rate, Span, Time};
use tidegate_sim::tcp::{TcpSettings, Variant};

fn of(variant: Variant) -> TcpSettings {
    TcpSettings { variant, ..TcpSettings::default() }
}

#[test]
fn one_flow() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack, Variant::Cubic] {
        let result = Dumbbell::reference(of(variant)).run();
        let (mean, p95) = result.queueing();
        println!(
            "{variant:?}: {:.4} loss {:.5} mean {mean:.1} p95 {p95:.1}",
            result.utilisation(),
            result.loss()
        );
    }
}

#[test]
fn two_flows() {
    for jitter in [Some(Span::from_micros(1200)), None] {
        for seed in 1..=5 {
            let mut path = Dumbbell::reference(of(Variant::NewReno));
            path.flows = [0, 40].map(|further| (of(Variant::NewReno), Span::from_millis(further))).to_vec();
            let start = tidegate_core::Stream::new(seed, "test", "start").uniform();
            path.flows[1].0.start = Time::ZERO + Span::from_secs_f64(start);
            path.jitter = jitter;
            path.seed = seed;
            path.until = Time::from_secs(600);
            let result = path.run();
            println!(
                "{jitter:?} {seed}: {:.3} / {:.3} = {:.3}",
                result.goodput(0),
                result.goodput(1),
                result.goodput(0) / result.goodput(1)
            );
        }
    }
}

#[test]
fn mathis() {
    for loss in [0.001, 0.005, 0.01, 0.02] {
        for variant in [Variant::NewReno, Variant::Sack] {
            let mut path = Dumbbell::reference(of(variant));
            path.rate = Rate::from_mbps(1000);
            path.one_way = Span::from_millis(60);
            path.queue = 100_000;
            path.loss = loss;
            path.from = Time::ZERO;
            path.until = Time::from_secs(3000);
            let result = path.run();
            let expected = 1460.0 * 8e-6 / 0.12 * (1.5 / loss).sqrt();
            println!(
                "{variant:?} {loss}: {:.3} of {expected:.3} = {:.3}",
                result.goodput(0),
                result.goodput(0) / expected
            );
        }
    }
}

#[test]
#[ignore]
fn look() {
    let mut path =
        Dumbbell::reference(TcpSettings { min_rto: Span::from_millis(200), ..of(Variant::NewReno) });
    path.detailed = true;
    path.from = Time::ZERO;
    path.until = Time::from_secs(30);
    path.queue = 32;
    let result = path.run();
    let mut last = 0u32;
    for &(t, w) in &result.flows[0].windows {
        if t < 4.0 {
            println!("W {t:.4} {:.2}", w / 1460.0);
        }
    }
    for &(t, s) in &result.flows[0].departures {
        if t < 4.0 {
            println!("D {t:.4} {} {}", s / 1460, if s <= last { "again" } else { "" });
            last = last.max(s);
        }
    }
}
