//! Files of recorded networks as other programs write them: their formats, the choices that are made, and refusals.

use tidegate_core::{Span, Time};
use tidegate_sim::LinkSettings;
use tidegate_sim::link::loss::Loss;
use tidegate_sim::link::trace::{Capacity, Direction, Format, ReadOptions, Trace, TraceError};

const DEFAULT: ReadOptions = ReadOptions { frequency: None, reference: None, direction: None };

fn read(text: &str) -> Result<(Format, Trace), TraceError> {
    Trace::read("f", text.as_bytes(), &DEFAULT)
}

/// The trace, whose format is detected as `format`.
fn parse(format: Format, text: &str) -> Trace {
    let (detected, trace) = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(detected, format, "{text}");
    trace
}

fn rates(trace: &Trace) -> Vec<(i64, u64)> {
    let Capacity::Rates(steps) = &trace.capacity else { panic!("{:?}", trace.capacity) };
    steps.rates().map(|(time, rate)| (time.as_nanos() / 1_000_000, rate.as_bps())).collect()
}

fn delay(trace: &Trace, at: Time) -> Span {
    *trace.delay.clone().unwrap().at(at)
}

/// Asserts that `text` is refused in words with all of `parts`.
fn refused(text: &str, parts: &[&str]) {
    let message =
        read(text).map_or_else(|error| error.to_string(), |(format, _)| format!("read as {format:?}"));
    for part in parts {
        assert!(message.contains(part), "{text}: {message} lacks {part}");
    }
}

#[test]
fn lists_of_durations_have_round_trips() {
    let text = r#"[{"duration_ms": 725, "bandwidth_kbps": 36014, "latency_ms": 20},
                   {"duration_ms": 1000, "bandwidth_kbps": 0, "latency_ms": 31}]"#;
    let trace = parse(Format::Sabre, text);
    assert_eq!(rates(&trace), [(0, 36_014_000), (725, 0)]);
    assert_eq!(trace.duration(), Span::from_millis(1725));
    assert_eq!(delay(&trace, Time::ZERO), Span::from_millis(10));
    assert_eq!(delay(&trace, Time::from_secs(1)), Span::from_micros(15_500));
    refused(r#"[{"duration_ms": -1, "bandwidth_kbps": 1}]"#, &["f, sabre, period 0", "-1 ms, 1 kbit/s"]);
    refused(
        r#"[{"duration_ms": 1, "bandwidth_kbps": 1, "latency_ms": -2}]"#,
        &["period 0", "-2 ms of latency"],
    );
    refused(r#"[{"duration_ms": 1}, {"bandwidth_kbps": 1}]"#, &["sabre", "bandwidth_kbps"]);
}

#[test]
fn two_columns_have_the_units_that_make_sense() {
    // chunks of a second or two at 3 Mbit/s
    let trace = parse(Format::MillisecondsKbps, "15.0 3168.5\n1474.0 3168.5\n1514.0 2000\n3905.0 2000\n");
    assert_eq!(rates(&trace), [(0, 3_168_500), (1459, 3_168_500), (1499, 2_000_000), (3890, 2_000_000)]);
    let [units, first] = trace.remarks.as_slice() else { panic!("{:?}", trace.remarks) };
    assert!(units.contains("milliseconds and kbit/s") && units.contains("--format seconds-mbps"), "{units}");
    assert!(first.contains("line 1: the first time is \"15.0\""), "{first}");
    // rows of a second or of five minutes at some Mbit/s, and of a second at 2 Gbit/s
    for text in ["0 2.5\n1 3\n2 0\n", "0 2.5\n300 3\n600 1\n", "0 2000\n1 1500\n2 1800\n", "3 4000\n"] {
        let unusual = text.contains("300") || text.contains("2000");
        let trace = parse(Format::SecondsMbps, text);
        let said = trace.remarks.iter().any(|remark| remark.contains("read as seconds and Mbit/s"));
        assert_eq!(said, unusual, "{:?}", trace.remarks);
    }
    let both = [
        "20.000 s at 3000.0 Mbit/s",
        "20.000 ms at 3000.0 kbit/s",
        "--format",
        "format =",
        "seconds-mbps",
        "milliseconds-kbps",
    ];
    refused("0 3000\n20 3000\n40 3000\n", &both);
    let (format, text) = (Format::SecondsMbps, "0 3000\n20 3000\n40 3000\n");
    assert_eq!(Trace::read_as(format, "f", text.as_bytes(), &DEFAULT).unwrap().remarks, [""; 0]);
}

#[test]
fn a_column_of_sizes_is_no_mahimahi() {
    refused(
        &"  20000\n".repeat(99),
        &["the first is 20000 and the last 20000", "data-rate-pattern", "frames"],
    );
    refused("15000\n15500\n15500\n16000\n", &["the first is 15000", "mahimahi"]);
    // twelve Mbit/s and more, and a link that is silent at first
    for text in ["1\n", "1\n1\n1\n", "90\n90\n", "4000\n5000\n9000\n12000\n"] {
        assert_eq!(parse(Format::Mahimahi, text).remarks, [""; 0]);
    }
    let hertz = ReadOptions { frequency: Some(50.0), ..DEFAULT };
    let (format, trace) = Trace::read("f", "200\n200\n".as_bytes(), &hertz).unwrap();
    assert_eq!((format, trace.duration()), (Format::DataRatePattern, Span::from_millis(40)));
}

#[test]
fn an_odd_line_is_named_in_the_format_of_the_others() {
    refused(
        "1\n2\n2\n5\n6\nx\n9\n9\n12\n",
        &["f, mahimahi, line 6: found \"x\"; expected whole milliseconds"],
    );
    refused("1\n2\n2\n5\n6\n6.5\n9\n9\n12\n", &["f, mahimahi, line 6: found \"6.5\""]);
    refused("1\n2\n2\n5\n6\n3\n9\n9\n12\n", &["f, mahimahi, line 6: found \"3\"", "at least 6"]);
    refused("x\n2\n2\n5\n6\n", &["f, mahimahi, line 1: found \"x\""]);
    refused("# why\n1\n2\n2\n5\nx\n6\n", &["f, mahimahi, line 6: found \"x\""]);
    refused("0 1\n1 2\n2\n3 1\n", &["f, seconds-mbps, line 3: found \"2\"", "two numbers"]);
    refused("x\n0 1\n1 2\n2 3\n3 1\n", &["f, seconds-mbps, line 1: found \"x\""]);
    let trace = parse(Format::Mahimahi, "1\n2\n# why\n2\n5\n");
    assert_eq!(trace.mean_rate().as_bps(), 4 * 12_032 * 200);
    assert_eq!(trace.remarks, ["1 line of comment is left out; mahimahi refuses it"]);
    refused("a b c\n", &["line 1", "mahimahi, seconds-mbps", "connectivity-ini"]);
}

#[test]
fn columns_of_other_names_are_told() {
    refused(
        "Time,Downlink Rate\n2020-01-01 00:00:00,5\n",
        &["the columns Time, Downlink Rate", "time_ms", "raca", "iperf3"],
    );
    refused("time_s,rate\n0,1\n", &["the columns time_s, rate"]);
    refused("0,5\n1,6\n", &["numbers in the first line", "time_s"]);
    refused("time_s,rate_mbps\n1605000000000,5\n", &["csv, line 2", "the year 2255"]);
    refused("user,password\nme,secret\n", &["line 1: found 13 characters", "mahimahi, seconds-mbps"]);
}

#[test]
fn a_step_back_of_a_second_is_put_in_order() {
    let head = "Timestamp,DL_bitrate\n";
    let rows = |seconds: &[u32]| {
        let line = |(index, second): (usize, &u32)| format!("2019.11.27_07.45.{second},{}\n", 10 * index);
        format!("{head}{}", seconds.iter().enumerate().map(line).collect::<String>())
    };
    let trace = parse(Format::Raca, &rows(&[18, 19, 20, 21, 20, 20, 21]));
    // 20, 40 and 50 kbit/s at :20, 30 and 60 at :21
    assert_eq!(rates(&trace), [(0, 0), (1000, 10_000), (2000, 36_666), (3000, 45_000)]);
    let [remark] = trace.remarks.as_slice() else { panic!("{:?}", trace.remarks) };
    assert!(
        remark.starts_with("line 6 (\"2019.11.27_07.45.20\") and 1 more row: the time steps back"),
        "{remark}"
    );
    refused(
        &rows(&[18, 21, 19]),
        &[
            "f, raca, line 4",
            "\"2019.11.27_07.45.19\"",
            "at most 1 s before \"2019.11.27_07.45.21\"",
            "line 3",
        ],
    );
    let trace = parse(Format::Csv, "time_ms,rate_kbps\n0,1\n100,2\n50,3\n");
    assert_eq!(rates(&trace), [(0, 1000), (50, 3000), (100, 2000)]);
    assert_eq!(trace.remarks.len(), 1);
}

#[test]
fn times_count_from_the_first_row_in_every_format() {
    for (format, text, first) in [
        (
            Format::Csv,
            "time_ms,rate_mbps\n1605000000000,5\n1605000001000,6\n1605000002500,3\n",
            "line 2: the first time is \"1605000000000\", a Unix time; ",
        ),
        (
            Format::Csv,
            "time_s,rate_mbps\n1605000000.5,5\n1605000001.5,6\n1605000003,3\n",
            "line 2: the first time is \"1605000000.5\", a Unix time; ",
        ),
        (Format::Csv, "time_s,rate_mbps\n7,5\n8,6\n9.5,3\n", "line 2: the first time is \"7\"; "),
        (
            Format::SecondsMbps,
            "1605000000.25 5\n1605000001.25 6\n1605000002.75 3\n",
            "line 1: the first time is \"1605000000.25\", a Unix time; ",
        ),
        (
            Format::PantheonPath,
            "{\"timestamps\": [2, 3, 4.5], \"bandwidths\": [5, 6, 3]}",
            "entry 0: the first time is \"2\"; ",
        ),
    ] {
        let trace = parse(format, text);
        assert_eq!(rates(&trace), [(0, 5_000_000), (1000, 6_000_000), (2500, 3_000_000)], "{text}");
        assert_eq!(trace.remarks, [format!("{first}times are counted from it")]);
    }
    refused(
        "time_s,rate_mbps\n0,5\n1605000000,3\n",
        &["f, csv, line 3: found \"1605000000\"", "49 days after"],
    );
}

#[test]
fn logs_of_mm_link_have_opportunities() {
    let text = "# mahimahi mm-link (uplink) [a.trace] > a.log\n# command line: mm-link a b\n# base timestamp: 1000\n\
                1000 # 1504\n1003 + 1400\n1004 # 1504\n1004 - 1400 1\n1005 d 1 1400\n1010 # 1504\n";
    let trace = parse(Format::MmLinkLog, text);
    assert_eq!(trace.to_mahimahi().unwrap(), "0\n4\n10\n");
    assert_eq!(trace.remarks, [""; 0]);
    let trace = parse(Format::MmLinkLog, "5 # 1500\n7 + 1400\n9 # 1500\n");
    let Capacity::Opportunities(list) = &trace.capacity else { panic!() };
    assert_eq!((list.millis(), list.bytes()), (&[0, 4][..], 1500));
    assert!(trace.remarks[0].contains("no base timestamp"));
    refused("# base timestamp: 9\n5 # 1504\n10 # 1504\n", &["f, mm-link-log, line 2", "base timestamp"]);
    refused("5 # 1504\n10 # 1500\n", &["f, mm-link-log, line 2", "1504 bytes"]);
    refused("5 + 1504\n10 - 1504 5\n", &["mm-link-log", "no opportunity"]);
    refused("5 # 1504\n6 # 1504\n7 # 1504\n8 # x\n", &["mm-link-log, line 4"]);
}

#[test]
fn transfers_of_iperf3_have_the_rates_of_the_receiver() {
    let sum = |start: f64, rate: f64, sender: bool, omitted: bool| {
        let end = start + 1.0;
        format!(
            r#"{{"start": {start}, "end": {end}, "bits_per_second": {rate}, "omitted": {omitted}, "sender": {sender}}}"#
        )
    };
    let alone = format!(
        r#"{{"start": {{}}, "intervals": [{{"streams": [], "sum": {}}}, {{"sum": {}}}, {{"sum": {}}}], "end": {{}}}}"#,
        sum(0.0, 1e6, true, true),
        sum(0.0, 5e6, true, false),
        sum(1.0, 3e6, true, false)
    );
    let trace = parse(Format::Iperf3, &alone);
    assert_eq!(rates(&trace), [(0, 5_000_000), (1000, 3_000_000)]);
    assert_eq!(trace.duration(), Span::from_secs(2));
    assert!(
        trace.remarks[0].contains("the sender") && trace.remarks[1].contains("1 of 3"),
        "{:?}",
        trace.remarks
    );
    // the other end's output, or the direction back
    let other = format!(
        r#"{{"intervals": [{{"sum": {}}}], "server_output_json": {{"intervals": [{{"sum": {}}}]}}}}"#,
        sum(0.0, 5e6, true, false),
        sum(0.0, 4e6, false, false)
    );
    let trace = parse(Format::Iperf3, &other);
    assert_eq!(rates(&trace), [(0, 4_000_000)]);
    assert!(trace.remarks[0].contains("the receiver"));
    let both = format!(
        r#"{{"intervals": [{{"sum": {}, "sum_bidir_reverse": {}}}]}}"#,
        sum(0.0, 5e6, true, false),
        sum(0.0, 2e6, false, false)
    );
    assert_eq!(rates(&parse(Format::Iperf3, &both)), [(0, 2_000_000)]);
    let up = ReadOptions { direction: Some(Direction::Up), ..DEFAULT };
    let (_, trace) = Trace::read("f", both.as_bytes(), &up).unwrap();
    assert_eq!(rates(&trace), [(0, 5_000_000)]);
    refused(r#"{"intervals": [], "error": "interrupt"}"#, &["iperf3", "no interval"]);
    refused(
        r#"{"intervals": [{"sum": {"start": 1, "end": 0, "bits_per_second": 1}}]}"#,
        &["interval 0", "1 s to 0 s"],
    );
}

#[test]
fn throttling_profiles_are_links_of_a_rate_and_a_delay() {
    let up = ReadOptions { direction: Some(Direction::Up), ..DEFAULT };
    let ini = "; made here\n[Cable]\nlabel=\"Cable (5/1 Mbps 28ms RTT)\"\nbwIn=5000000\nbwOut=1000000\nlatency=28\nplr=2\n";
    let cases = [
        (Format::ConnectivityIni, ini, 14),
        (
            Format::DevTools,
            r#"{"title": "a", "download": 625000, "upload": 125000, "latency": 28, "packetLoss": 2}"#,
            14,
        ),
        (
            Format::DevTools,
            r#"[{"downloadThroughput": 625000, "uploadThroughput": 125000, "latency": 28}]"#,
            14,
        ),
        (
            Format::DevTools,
            r#"{"settings": {"throttling": {"rttMs": 28, "throughputKbps": 5000, "requestLatencyMs": 562.5,
            "downloadThroughputKbps": 4500, "uploadThroughputKbps": 1000}}}"#,
            14,
        ),
    ];
    for (format, text, millis) in cases {
        let mut trace = parse(format, text);
        assert_eq!(rates(&trace), [(0, 5_000_000)], "{text}");
        assert_eq!(delay(&trace, Time::ZERO), Span::from_millis(millis), "{text}");
        if let Some(loss) = &mut trace.loss {
            assert_eq!(*loss.at(Time::ZERO), Loss::Bernoulli(0.02));
        }
        assert_eq!(rates(&Trace::read("f", text.as_bytes(), &up).unwrap().1), [(0, 1_000_000)], "{text}");
    }
    refused(
        "[DSL]\nbwIn=1\nbwOut=1\n[Cable]\nbwIn=2\n",
        &["connectivity-ini", "2 profiles (DSL, Cable)", "a file of its own"],
    );
    refused("[DSL]\nbwIn=fast\n", &["connectivity-ini, line 2", "bwIn"]);
    refused(
        r#"[{"download": 1, "upload": 1}, {"download": 2, "upload": 2}]"#,
        &["devtools", "2 profiles", "a file of its own"],
    );
    refused(r#"{"download": -1, "upload": -1, "latency": 0}"#, &["devtools, download", "more than 0"]);
    refused(r#"{"name": "a"}"#, &["JSON that is no trace", "bandwidth_kbps", "iperf3"]);
}

#[test]
fn no_queue_is_sized_by_an_outlier() {
    let link =
        |text: &str| parse(Format::SecondsMbps, text).link(LinkSettings::default()).unwrap().nominal_rate();
    // the means are 57.3 and 7.3 Mbit/s: the last row lasts 4 s
    assert_eq!(link("0 2\n4 500\n5 2\n").as_bps(), 2_000_000);
    assert_eq!(link("0 2\n4 50\n5 2\n").as_bps(), 7_333_333);
    assert_eq!(
        link("0 2\n4 50\n5 2\n").as_bps(),
        parse(Format::SecondsMbps, "0 2\n4 50\n5 2\n").mean_rate().as_bps()
    );
}
