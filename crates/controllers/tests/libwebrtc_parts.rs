//! The parts of `gcc:libwebrtc` against recordings of libwebrtc's own, each fed by itself (June 2025, default field
//! trials). Some rows are in `tests/data/gcc`; whole files lie beside the checkout.

use crate::support::{read, result, shared};
use tidegate_controllers::gcc::detector::{self, Detector, Usage};
use tidegate_controllers::gcc::groups::{self, Groups};
use tidegate_controllers::gcc::libwebrtc::aimd::Aimd;
use tidegate_controllers::gcc::libwebrtc::alr::Alr;
use tidegate_controllers::gcc::libwebrtc::loss::Loss;
use tidegate_controllers::gcc::libwebrtc::settings::Settings;
use tidegate_controllers::gcc::trendline::{self, Trendline};
use tidegate_core::{Rate, RemoteTime, Size, Span, Time};

/// The cells of a recording, row by row.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(text: &str) -> Self {
        let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        Self { columns: rows.next().expect("a header"), rows: rows.collect() }
    }

    fn text(&self, row: usize, column: &str) -> &str {
        let at = self.columns.iter().position(|name| name == column);
        &self.rows[row][at.unwrap_or_else(|| panic!("no column {column}"))]
    }

    fn number(&self, row: usize, column: &str) -> i64 {
        self.text(row, column).parse().unwrap_or_else(|_| panic!("row {row}: {}", self.text(row, column)))
    }

    fn rate(&self, row: usize, column: &str) -> Rate {
        Rate::from_bps(self.number(row, column) as u64)
    }
}

/// Replays the rows that are carried, and the whole file where it is there: as many rows as are said.
fn both(name: &str, carried: usize, whole: usize, replay: impl Fn(&Table)) {
    let table = Table::new(&read(&format!("tests/data/gcc/goog_cc_{name}.csv")));
    assert_eq!(table.rows.len(), carried);
    replay(&table);
    if let Some(text) = shared(&format!("vectors/goog_cc_{name}.csv")) {
        let table = Table::new(&text);
        assert_eq!(table.rows.len(), whole);
        replay(&table);
    }
}

fn usage(name: &str) -> Usage {
    match name {
        "normal" => Usage::Normal,
        "overuse" | "over" => Usage::Over,
        "underuse" | "under" => Usage::Under,
        other => panic!("no state {other}"),
    }
}

#[test]
fn groups_of_packets_are_libwebrtcs() {
    both("inter_arrival", 120, 800, |table| {
        let mut groups = Groups::new(groups::Config::LIBWEBRTC);
        for row in 0..table.rows.len() {
            let micros = |column| table.number(row, column) * 1000;
            let delta = groups.packet(
                Time::from_nanos(micros("send_us")),
                RemoteTime::from_nanos(micros("arrival_us")),
                Size::from_bytes(table.number(row, "size") as u64),
                Time::from_nanos(micros("system_us")),
            );
            let expected = (table.number(row, "calculated") == 1).then(|| {
                let ms = |column| micros(column) as f64 / 1e6;
                (ms("send_delta_us"), ms("recv_delta_us"), table.number(row, "size_delta") as f64)
            });
            assert_eq!(delta.map(|d| (d.send, d.arrival, d.size)), expected, "row {row}");
        }
    });
}

#[test]
fn the_trendlines_verdicts_are_libwebrtcs() {
    both("trendline", 480, 1500, |table| {
        let mut trend = Trendline::new(trendline::DEFAULT_TRENDLINE_WINDOW_SIZE);
        let mut detector = Detector::new(detector::Config::LIBWEBRTC);
        let mut verdicts = [0; 3];
        for row in 0..table.rows.len() {
            let ms = |column| table.text(row, column).parse::<f64>().expect("ms");
            let (arrived, sent) = (ms("recv_delta_ms"), ms("send_delta_ms"));
            trend.update(arrived - sent, ms("arrival_time_ms"));
            detector.detect(trend.trend, sent, ms("arrival_time_ms"));
            assert_eq!(detector.usage, usage(table.text(row, "state")), "row {row}");
            verdicts[detector.usage.code() as usize] += 1;
        }
        assert!(verdicts.iter().all(|&count| count > 0), "{verdicts:?}");
    });
}

#[test]
fn the_rate_control_is_libwebrtcs_to_the_bit() {
    both("aimd", 150, 600, |table| {
        let settings = Settings::default();
        let mut aimd = Aimd::new(Rate::from_kbps(300), Rate::from_kbps(30));
        for row in 0..table.rows.len() {
            let now = Time::from_millis(table.number(row, "time_ms"));
            aimd.set_rtt(Span::from_millis(table.number(row, "rtt_ms")));
            let received = Some(table.number(row, "throughput_bps")).filter(|&rate| rate >= 0);
            let received = received.map(|rate| Rate::from_bps(rate as u64));
            let rate = aimd.update(&settings, usage(table.text(row, "usage")), received, now);
            assert_eq!(rate, table.rate(row, "target_bps"), "row {row}");
            let slope = table.text(row, "near_max_increase_bps_per_s").parse::<f64>().expect("bit/s");
            assert_eq!(aimd.slope(), slope, "row {row}");
        }
    });
}

#[test]
fn the_application_limited_region_is_libwebrtcs() {
    both("alr", 1200, 1200, |table| {
        let settings = Settings::default();
        let (mut alr, mut estimate, mut limited) = (Alr::default(), Rate::ZERO, 0);
        for row in 0..table.rows.len() {
            let target = table.rate(row, "estimate_bps");
            if target != estimate {
                alr.set_estimate(&settings, target);
                estimate = target;
            }
            let now = Time::from_millis(table.number(row, "time_ms"));
            alr.sent(&settings, now, Size::from_bytes(table.number(row, "bytes") as u64));
            let since = Some(table.number(row, "in_alr_since_ms")).filter(|&since| since >= 0);
            assert_eq!(alr.since(), since.map(Time::from_millis), "row {row}");
            limited += usize::from(since.is_some());
        }
        assert!(limited > 0 && limited < table.rows.len());
    });
}

#[test]
fn the_loss_based_part_is_libwebrtcs_to_the_bit() {
    both("loss_v2", 120, 240, |table| {
        let settings = Settings::default();
        let mut loss = Loss::new();
        loss.set_bounds(Rate::from_kbps(30), Rate::from_mbps(10));
        let (mut sequence, mut states) = (0, [0; 4]);
        for row in 0..table.rows.len() {
            let number = |column| table.number(row, column);
            let mask = number("lost_mask_lsb_first") as u64;
            let packets = (0..number("n_packets")).map(|i| {
                let sent = number("first_send_us") + i * number("send_gap_us");
                let arrival = (mask >> i & 1 == 0).then(|| (sent + number("rtt_us") / 2) * 1000);
                sequence += 1;
                result(sequence, number("size") as u64, Time::from_micros(sent), arrival)
            });
            let packets: Vec<_> = packets.collect();
            loss.set_acked(table.rate(row, "acked_bps"));
            let delay_based = table.rate(row, "delay_based_bps");
            loss.update(&settings, packets.into_iter(), delay_based, number("in_alr") == 1);
            let said = if loss.is_ready(&settings) { loss.rate } else { delay_based };
            assert_eq!(said, table.rate(row, "result_bps"), "row {row}");
            assert_eq!(loss.state.code(), number("state") as f64, "row {row}");
            states[loss.state.code() as usize] += 1;
        }
        assert!(states[1..].iter().all(|&count| count > 0), "{states:?}");
    });
}
