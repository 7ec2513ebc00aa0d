//! Row by row against what ns-2 and ns-3 measured (`benches/reference/tcp_reference.csv`).

use crate::harness::{Dumbbell, Result};
use std::collections::BTreeMap;
use tidegate_core::{Rate, Span, Stream, Time};
use tidegate_sim::tcp::{RttSampling, TcpSettings, Variant, Workload};

pub(crate) type Row = BTreeMap<String, String>;

/// The rows of the reference file, or none with a word on why.
pub(crate) fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/reference/tcp_reference.csv");
    #[expect(clippy::disallowed_methods, reason = "a test reads its reference data")]
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: there is no {path}");
        return Vec::new();
    };
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let row =
        |line: &str| names.iter().map(|s| s.to_string()).zip(line.split(',').map(String::from)).collect();
    lines.map(row).collect()
}

fn number(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap_or(f64::NAN)
}

fn list(text: &str) -> Vec<f64> {
    text.split(';').filter_map(|item| item.parse().ok()).collect()
}

/// Which of our variants a row speaks of.
pub(crate) fn variant(row: &Row) -> Option<Variant> {
    Some(match row["variant"].as_str() {
        "Tahoe" => Variant::Tahoe,
        "Reno" => Variant::Reno,
        "Newreno" | "TcpNewReno/nosack" => Variant::NewReno,
        "Sack1" | "TcpNewReno" => Variant::Sack,
        // ns-2's CUBIC is not that of RFC 9438
        "TcpCubic/nohystart" | "TcpCubic" => Variant::Cubic,
        _ => return None,
    })
}

/// Our run with the settings of a row.
pub(crate) fn ours(row: &Row) -> Option<Result> {
    let ns2 = row["tool"] == "ns-2";
    let bytes = number(row, "bytes") as u64;
    let settings = TcpSettings {
        variant: variant(row)?,
        initial_window: number(row, "iw") as u32,
        delayed_ack: (row["delack"] == "1").then(|| Span::from_millis(100)),
        min_rto: Span::from_secs_f64(number(row, "min_rto_s")),
        granularity: Span::from_millis(if ns2 { 10 } else { 1 }),
        rtt_sampling: if ns2 { RttSampling::OneAtATime } else { RttSampling::PerAck },
        handshake: true,
        workload: match bytes {
            0 => Workload::Long,
            bytes => Workload::File { bytes: bytes.div_ceil(1460) * 1460 },
        },
        ..TcpSettings::default()
    };
    let seed = number(row, "seed") as u64;
    let mut starts = Stream::new(seed, "test", "start");
    let extra = list(&row["extra_ms"]);
    let flows = (0..number(row, "flows") as usize)
        .map(|flow| {
            // ns-2's first seed begins so (`tcp.tcl` prints it); other seeds only need another start
            let start = if seed == 1 && flow == 0 { 0.334_644_583_675 } else { starts.uniform() };
            let start = Time::ZERO + Span::from_secs_f64(start);
            let further = Span::from_millis_f64(extra[flow % extra.len()]);
            (TcpSettings { start, ..settings.clone() }, further)
        })
        .collect();
    let jitter = number(row, "jitter_ms");
    let path = Dumbbell {
        rate: Rate::from_mbps(number(row, "rate_mbps") as u64),
        one_way: Span::from_millis_f64(number(row, "one_way_ms")),
        // ns-2 counts the packet that comes in
        queue: number(row, "queue_packets") as u32 - 1,
        seed,
        jitter: (jitter > 0.0).then(|| Span::from_millis_f64(jitter)),
        flows,
        loss: number(row, "random_loss"),
        from: Time::ZERO + Span::from_secs_f64(number(row, "from_s")),
        until: Time::ZERO + Span::from_secs_f64(number(row, "to_s")),
        detailed: false,
    };
    Some(path.run())
}

#[test]
#[ignore = "prints a table of all rows"]
fn print_all() {
    for row in rows() {
        let Some(result) = ours(&row) else { continue };
        print!("{} {} {} ", row["experiment"], row["tool"], row["variant"]);
        for name in [
            "rate_mbps",
            "one_way_ms",
            "queue_packets",
            "flows",
            "delack",
            "iw",
            "jitter_ms",
            "random_loss",
            "min_rto_s",
            "seed",
        ] {
            print!("{} ", row[name]);
        }
        if row["bytes"] != "0" {
            println!("| dl {} {:.5}", row["download_s"], result.flows[0].downloads[0] / 1e3);
            continue;
        }
        let (mean, p95) = result.queueing();
        let goodputs: Vec<String> =
            (0..result.flows.len()).map(|flow| format!("{:.4}", result.goodput(flow))).collect();
        println!(
            "| u {} {:.4} | l {} {:.6} | q {} {mean:.3} | p {} {p95:.3} | g {} {}",
            row["utilisation"],
            result.utilisation(),
            row["loss_fraction"],
            result.loss(),
            row["mean_qdelay_ms"],
            row["p95_qdelay_ms"],
            row["goodput_mbps"],
            goodputs.join(";")
        );
    }
}
