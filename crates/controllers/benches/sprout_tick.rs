//! Cost of a tick of Sprout's receiver, with its forecast, and of its tables, which are computed once.

use serde_json::Value;
use std::hint::black_box;
use tidegate_controllers::sprout::forecast::Tables;
use tidegate_controllers::sprout::settings::Settings;
use tidegate_controllers::sprout::ticks::Ticks;
use tidegate_core::{Span, Stream, Time};

const TICKS: u32 = 100_000;
/// Passes for each; the fastest counts, being the least disturbed.
const PASSES: usize = 5;

#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark looks at the clock")]
fn main() {
    let begin = std::time::Instant::now();
    black_box(Tables::shared());
    println!("tables, once: {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    for (name, preset) in [("sprout", "nsdi2013"), ("sprout", "aware"), ("sprout-ewma", "nsdi2013")] {
        let settings = Settings::with(name, preset, &Value::Null).expect("a preset");
        let pass = || {
            let mut rng = Stream::new(1, "bench", "packets");
            let mut ticks = Ticks::new(&settings, Time::ZERO);
            let begin = std::time::Instant::now();
            for tick in 0..TICKS {
                // rates over the full range; a fifth of the packets have no packet behind them
                for _ in 0..rng.below(u64::from(1 + tick / 100 % 29)) {
                    ticks.packet(1400, Span::from_millis(50), rng.chance(0.2));
                }
                ticks.end();
                black_box(ticks.forecast());
            }
            begin.elapsed().as_secs_f64() * 1e6 / f64::from(TICKS)
        };
        let micros = (0..PASSES).map(|_| pass()).fold(f64::INFINITY, f64::min);
        println!("{name} {preset}: {micros:.1} us a tick");
    }
}
