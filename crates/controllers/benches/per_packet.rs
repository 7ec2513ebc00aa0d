//! Cost of a packet for each controller, with reports and `on_sent`: an hour of a 2.5 Mb/s call.

use serde_json::Value;
use std::hint::black_box;
use tidegate_controllers::{Entry, registry};
use tidegate_core::control::{Limits, PacketResult, Report, Sent};
use tidegate_core::{ControllerHost, Ecn, RemoteTime, Size, Stream, Time};

const PACKETS: u64 = 940_000;
/// Packets per report: one report every 50 ms.
const BATCH: u64 = 13;
const GAP_NANOS: i64 = 3_840_000;

/// Passes for each controller; the fastest counts, being the least disturbed.
const PASSES: usize = 5;

fn main() {
    let reports = reports();
    for entry in registry() {
        for preset in entry.presets {
            let nanos = (0..PASSES).map(|_| pass(entry, preset, &reports)).fold(f64::INFINITY, f64::min);
            println!("{} {preset}: {nanos:.0} ns a packet", entry.name);
        }
    }
}

fn reports() -> Vec<Report> {
    let mut rng = Stream::new(1, "bench", "jitter");
    let mut packet = |sequence: u64| {
        let sent = Time::from_nanos(sequence as i64 * GAP_NANOS);
        let delay = 50_000_000 + rng.below(2_000_000) as i64;
        let arrival = Some(RemoteTime::from_nanos(sent.as_nanos() + delay));
        let size = Size::from_bytes(1200);
        PacketResult { sequence, size, sent, arrival, ecn: Ecn::default(), probe: None }
    };
    let mut batch = |first: u64| Report {
        packets: (first..first + BATCH).map(&mut packet).collect(),
        ..Report::default()
    };
    (0..PACKETS / BATCH).map(|i| batch(i * BATCH)).collect()
}

/// Measures the nanoseconds per packet over the hour.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark looks at the clock")]
fn pass(entry: &Entry, preset: &str, reports: &[Report]) -> f64 {
    let controller = (entry.build)(preset, &Value::Null).expect("valid");
    let rng = Stream::new(1, "bench", "controller");
    let mut host = ControllerHost::new("bench", controller, rng, Time::ZERO, &Limits::default())
        .expect("the contract is kept");
    let begin = std::time::Instant::now();
    for report in reports {
        for packet in &report.packets {
            if !host.needs_sent() {
                break;
            }
            let (sequence, size) = (packet.sequence, packet.size);
            let sent = Sent { sequence, size, in_flight: size, backlog: Size::ZERO };
            let _ = black_box(host.sent(packet.sent, &sent).expect("contract"));
        }
        let last = report.packets.last().expect("not empty").sent;
        let now = Time::from_nanos(last.as_nanos() + 100_000_000);
        let _ = black_box(host.report(now, report).expect("contract"));
    }
    begin.elapsed().as_nanos() as f64 / PACKETS as f64
}
