//! Trace readers and writers: by hand, against malformed input, and over the collected public traces.
//!
//! The collected traces are not part of the project; if the folder is absent, their tests print so and
//! pass. The expected figures were computed from the files with another program.
#![allow(clippy::disallowed_methods, reason = "a test reads files")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use tidegate_core::{Rate, Span, Stream, Time};
use tidegate_sim::LinkSettings;
use tidegate_sim::link::capacity::{BrownianSettings, OpportunityTrace, Steps};
use tidegate_sim::link::loss::Loss;
use tidegate_sim::link::trace::{Capacity, Direction, Format, ReadOptions, Trace};

const DEFAULT: ReadOptions = ReadOptions { frequency: None, reference: None, direction: None };

fn parse(name: &str, text: &str) -> Trace {
    Trace::read(name, text.as_bytes(), &DEFAULT).unwrap().1
}

fn rates(trace: &Trace) -> Vec<(i64, u64)> {
    match &trace.capacity {
        Capacity::Rates(steps) => {
            steps.rates().map(|(time, rate)| (time.as_nanos() / 1_000_000, rate.as_bps())).collect()
        }
        Capacity::Opportunities(list) => panic!("opportunities: {list:?}"),
    }
}

#[test]
fn mahimahi_lists_are_read_and_written() {
    let trace = parse("link.down", "0\n4\n4\n\n10\n");
    assert_eq!(trace.capacity, Capacity::Opportunities(OpportunityTrace::new([0, 4, 4, 10], 1504).unwrap()));
    assert_eq!(trace.mean_rate(), Rate::from_bps(4 * 1504 * 8 * 100));
    assert_eq!(trace.to_mahimahi().unwrap(), "0\n4\n4\n10\n");
}

#[test]
fn columns_of_seconds_and_megabits() {
    let trace = parse("fcc", "10.5\t2\n11.5\t0.5\n12.5\t1\n12.5\t3\n13.5\t0.0\n");
    assert_eq!(rates(&trace), [(0, 2_000_000), (1000, 500_000), (2000, 2_000_000), (3000, 0)]);
    // the last one lasts as long as the median one
    assert_eq!(trace.duration(), Span::from_secs(4));
    assert_eq!(trace.mean_rate(), Rate::from_bps(1_125_000));
    assert_eq!(parse("one row", "7 3.25").mean_rate(), Rate::from_bps(3_250_000));
}

#[test]
fn data_rate_patterns_know_their_frequency() {
    let text = "# a comment\n# :recommended_freqeuncy=20\n#\n1000\n2500\n0\n";
    let trace = parse("pattern", text);
    assert_eq!(rates(&trace), [(0, 1_000_000), (50, 2_500_000), (100, 0)]);
    assert_eq!(trace.duration(), Span::from_millis(150));
    // without a comment it must be given
    let bytes = b"87761\n80166\n";
    let error = Trace::read("drp.csv", bytes, &DEFAULT).unwrap_err();
    assert!(error.to_string().contains("recommended_freqeuncy=10"), "{error}");
    let ten = ReadOptions { frequency: Some(10.0), ..DEFAULT };
    assert_eq!(Trace::read("drp.csv", bytes, &ten).unwrap().1.duration(), Span::from_millis(200));
}

#[test]
fn opennetlab_patterns_have_outages_losses_and_delays() {
    let text = r#"{"downlink": {}, "uplink": {"trace_pattern": [
        {"duration": 500, "capacity": 1000, "loss": 0, "rtt": 200, "jitter": 0},
        {"duration": 250, "capacity": 0, "loss": 0.2, "rtt": 100, "jitter": 0}]}}"#;
    let mut trace = parse("pattern.json", text);
    assert_eq!(rates(&trace), [(0, 1_000_000), (500, 0)]);
    assert_eq!(trace.duration(), Span::from_millis(750));
    let (loss, delay) = (trace.loss.as_mut().unwrap(), trace.delay.as_mut().unwrap());
    assert_eq!(*loss.at(Time::from_millis(499)), Loss::None);
    assert_eq!(*loss.at(Time::from_millis(500)), Loss::Bernoulli(0.2));
    assert_eq!(*loss.at(Time::from_millis(750)), Loss::None);
    assert_eq!(*delay.at(Time::from_millis(0)), Span::from_millis(100));
    assert_eq!(*delay.at(Time::from_millis(600)), Span::from_millis(50));
    let down = ReadOptions { direction: Some(Direction::Down), ..DEFAULT };
    assert!(
        Trace::read("pattern.json", text.as_bytes(), &down).unwrap_err().to_string().contains("downlink")
    );
}

#[test]
fn pion_phases_need_a_reference() {
    let text = r#"[{"DurationSeconds": 25, "CapacityRatio": 2.0, "MaxBurstKbps": 160},
                   {"DurationSeconds": 5, "CapacityRatio": 0.5, "DataLossRate": 50}]"#;
    let bytes = text.as_bytes();
    assert_eq!(Trace::sniff("phases.json", bytes, &DEFAULT), Ok(Format::PionPhases));
    assert!(Trace::read("phases.json", bytes, &DEFAULT).is_err());
    let options = ReadOptions { reference: Some(Rate::from_mbps(1)), ..DEFAULT };
    let (_, mut trace) = Trace::read("phases.json", bytes, &options).unwrap();
    assert_eq!(rates(&trace), [(0, 2_000_000), (25_000, 500_000)]);
    assert_eq!(*trace.loss.as_mut().unwrap().at(Time::from_secs(26)), Loss::Bernoulli(0.5));
}

#[test]
fn pantheon_paths_have_one_delay_or_many() {
    let text = r#"{"timestamps": [0.0, 0.5, 1.0], "bandwidths": [0.1, 2.5, 0.0], "delays": [30.5], "loss": 0,
                   "queue": 10, "delay_noise": 0}"#;
    let mut trace = parse("path.json", text);
    assert_eq!(rates(&trace), [(0, 100_000), (500, 2_500_000), (1000, 0)]);
    assert_eq!(*trace.delay.as_mut().unwrap().at(Time::from_secs(1)), Span::from_micros(30_500));
}

#[test]
fn raca_rows_of_a_second_are_averaged_across_midnight() {
    let text = "Timestamp,NetworkMode,DL_bitrate,UL_bitrate\n2020.02.29_23.59.59,5G,100,7\n\
                2020.02.29_23.59.59,5G,300,9\n2020.03.01_00.00.00,5G,-,8\n2020.03.01_00.00.01,LTE,500,8\n";
    assert_eq!(rates(&parse("5g.csv", text)), [(0, 200_000), (2000, 500_000)]);
    let up = ReadOptions { direction: Some(Direction::Up), ..DEFAULT };
    let (_, trace) = Trace::read("5g.csv", text.as_bytes(), &up).unwrap();
    assert_eq!(rates(&trace), [(0, 8_000), (1000, 8_000), (2000, 8_000)]);
}

#[test]
fn tables_with_named_units() {
    let trace =
        parse("own.csv", "# duration_s=2.5\ntime_ms,rate_kbps,loss,delay_ms\n0,100,0,10\n1500,250,0.5,20\n");
    assert_eq!(rates(&trace), [(0, 100_000), (1500, 250_000)]);
    assert_eq!(trace.duration(), Span::from_millis(2500));
    assert_eq!(trace.mean_rate(), Rate::from_bps(160_000));
    assert_eq!(rates(&parse("own.csv", "rate_mbps,time_s\n2,0\n3,1\n")), [(0, 2_000_000), (1000, 3_000_000)]);
    let lumos = "app_throughput,delivery_time\n285,0.5\n3826,9.5\n";
    assert_eq!(rates(&parse("lumos.csv", lumos)), [(0, 285_000), (500, 3_826_000)]);
}

#[test]
fn errors_say_where_and_what() {
    let cases: [(Format, &str, &[&str]); 19] = [
        (Format::Mahimahi, "1\n2\nx\n", &["f, line 3", "\"x\"", "whole milliseconds"]),
        (Format::Mahimahi, "1\n5\n4\n", &["f, line 3", "\"4\"", "at least 5"]),
        (Format::Mahimahi, "0\n0\n", &["later than 0 ms"]),
        (Format::Mahimahi, "4294967296\n", &["line 1", "below 2^32"]),
        (Format::SecondsMbps, "0 1\n1 -2\n", &["line 2", "\"1 -2\"", "not negative"]),
        (Format::SecondsMbps, "5 1\n3.5 2\n", &["line 2", "\"3.5\"", "at most 1 s before \"5\"", "line 1"]),
        (Format::SecondsMbps, "0 inf\n", &["line 1"]),
        (Format::SecondsMbps, "0 1 2\n", &["line 1", "two numbers"]),
        (Format::DataRatePattern, "# :recommended_freqeuncy=0\n1\n", &["line 1", "frequency"]),
        (
            Format::OpenNetLab,
            "{\"uplink\": {\"trace_pattern\": [\n{\"duration\": 5}]}}",
            &["line 2", "capacity"],
        ),
        (
            Format::OpenNetLab,
            "{\"uplink\": {\"trace_pattern\": [{\"duration\": 5, \"capacity\": 1, \"loss\": 50}]}}",
            &["uplink.trace_pattern[0]", "a loss of 50", "0 to 1"],
        ),
        (Format::PantheonPath, "{\"timestamps\": [0], \"bandwidths\": []}", &["1 timestamps, 0 bandwidths"]),
        (Format::Csv, "time_s,rate_bps\n0,1\n1\n", &["line 3", "2 columns"]),
        (Format::Csv, "time_s,rate\n0,1\n", &["the columns time_s, rate", "rate_mbps"]),
        (Format::Csv, "time_s,rate_bps\n2,1\n-1,1\n", &["line 3", "a time from 0"]),
        (
            Format::Raca,
            "Timestamp,DL_bitrate\n2020.01.01_00.00.00,1\n2040.01.01_00.00.00,1\n",
            &["line 3", "2040.01.01_00.00.00", "49 days after it"],
        ),
        (
            Format::Raca,
            "Timestamp,DL_bitrate\n2020.13.01_00.00.00,1\n",
            &["line 2", "2020.13.01", "2020.02.27"],
        ),
        // each row is short enough, but their sum is not: the last row of the first lasts as long as the one before
        (Format::Csv, "time_ms,rate_kbps\n0,100\n3456000000,0\n", &["more than 49 days", "another unit"]),
        (Format::Lumos, "app_throughput,delivery_time\n1,3e6\n1,3e6\n", &["more than 49 days"]),
    ];
    for (format, text, parts) in cases {
        let error = Trace::read_as(format, "f", text.as_bytes(), &DEFAULT).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{format:?} of {text:?}: {error:?} lacks {part:?}");
        }
    }
    assert!(Trace::read("f", b"\xff\xfe", &DEFAULT).unwrap_err().to_string().contains("byte 1"));
    for unknown in ["", "hello world\n", "{\"a\": 1}", "[]", "a,b\n1,2\n", "{"] {
        assert!(Trace::sniff("f", unknown.as_bytes(), &DEFAULT).is_err(), "{unknown:?}");
    }
}

/// The contents of a file that is mistaken for a trace do not end up in a log.
#[test]
fn errors_do_not_repeat_what_is_no_trace() {
    let secrets = [
        "root:x:0:0:root:/root:/bin/bash\nhidden:$6$abc:19000:0:99999:7:::\n",
        "hidden,hidden\n",
        "hidden\n",
        "-----BEGIN PRIVATE KEY-----\nMIIhiddenQAB\n",
        "{\"hidden\": \"hidden\"}",
        "{\"uplink\": {\"trace_pattern\": [{\"duration\": \"hidden \\\", expected hidden\", \"capacity\": 1}]}}",
        "{\"uplink\": \"hidden\"}",
        "{\"timestamps\": [\"hidden\"], \"bandwidths\": 0}",
        "[{\"CapacityRatio\": \"hidden\"}]",
        "\"hidden\"",
        "[hidden",
        "time_s,rate_bps,hidden\n0,hidden,1\n",
        "time_s,rate_bps\nhidden,0,1\n",
        "hidden,time_s\n1,hidden\n",
        "# duration_s=hidden\ntime_s,rate_bps\n0,1\n",
        "# :recommended_freqeuncy=hidden\n1\n",
        "Timestamp,DL_bitrate,hidden\nhidden,hidden,hidden\n",
        "Timestamp,DL_bitrate\n2020.02.29_23.59.59,hidden\n",
        "app_throughput,delivery_time\n1,hidden\n",
        "0\n1\nhidden\n",
        "0 1\n1 hidden\n",
    ];
    let options = ReadOptions { frequency: Some(10.0), reference: Some(Rate::from_mbps(1)), ..DEFAULT };
    let mut errors = 0;
    for text in secrets {
        let sniffed = Trace::read("f", text.as_bytes(), &options).map(|(_, trace)| trace);
        let traces = Format::ALL.map(|format| Trace::read_as(format, "f", text.as_bytes(), &options));
        for error in traces.into_iter().chain([sniffed]).filter_map(Result::err) {
            errors += 1;
            let message = error.to_string();
            assert!(
                !["hidden", "root", "MII"].iter().any(|part| message.contains(part)),
                "{text:?}: {message}"
            );
        }
    }
    assert!(errors > 180, "{errors}");
    // numbers are repeated, because traces consist of numbers
    let message = Trace::read("f", b"0 1\n1 -2\n", &options).unwrap_err().to_string();
    assert!(message.contains("f, seconds-mbps, line 2: found \"1 -2\""), "{message}");
}

/// Every parser takes every text with a piece changed, and refuses it or gives a usable trace.
#[test]
fn broken_files_never_panic() {
    let seeds = [
        "0\n4\n4\n10\n",
        "0.0\t2.5\n1e0\t.5\n",
        "# :recommended_freqeuncy=20\n1000\n2500\n",
        "{\"uplink\":{\"trace_pattern\":[{\"duration\":500,\"capacity\":1000,\"loss\":0.1,\"rtt\":20}]}}",
        "{\"timestamps\":[0.0,0.5],\"bandwidths\":[0.1,2.5],\"delays\":[30.5],\"loss\":0}",
        "[{\"DurationSeconds\":25,\"CapacityRatio\":2.0,\"DataLossRate\":50}]",
        "Timestamp,DL_bitrate,UL_bitrate\n2020.02.29_23.59.59,100,7\n2020.03.01_00.00.01,-,8\n",
        "app_throughput,delivery_time\n285,0.5\n",
        "# duration_s=2.5\ntime_ms,rate_kbps,loss,delay_ms\n0,100,0,10\n1500,250,0.5,20\n",
        "15.0 3168.5\n474.0 3168.5\n514.0 3183.5\n",
        "[{\"duration_ms\":725,\"bandwidth_kbps\":36014,\"latency_ms\":20}]",
        "# mahimahi mm-link (uplink)\n# base timestamp: 7\n9 # 1504\n10 + 1400\n12 # 1504\n",
        "{\"intervals\":[{\"sum\":{\"start\":0,\"end\":1,\"bits_per_second\":5e6,\"sender\":true}}]}",
        "[{\"title\":\"a\",\"download\":625000,\"upload\":125000,\"latency\":40}]",
        "[Cable]\nbwIn=5000000\nbwOut=1000000\nlatency=28\nplr=0\n",
    ];
    let options =
        ReadOptions { frequency: Some(10.0), reference: Some(Rate::from_mbps(1)), ..ReadOptions::default() };
    let mut luck = Stream::new(1, "traces", "fuzz");
    let alphabet = b"0123456789.,-+eE_:\n\t#{}[]\"aN\xff";
    let (mut good, mut bad) = (0, 0);
    for _ in 0..40_000 {
        let mut bytes = seeds[luck.below(seeds.len() as u64) as usize].as_bytes().to_vec();
        for _ in 0..=luck.below(3) {
            let position = luck.below(bytes.len() as u64 + 1) as usize;
            let letter = alphabet[luck.below(alphabet.len() as u64) as usize];
            match luck.below(4) {
                0 => bytes.insert(position, letter),
                1 => bytes.truncate(position),
                _ if position < bytes.len() => bytes[position] = letter,
                _ => {}
            }
        }
        _ = Trace::read("f", &bytes, &options);
        let format = Format::ALL[luck.below(Format::ALL.len() as u64) as usize];
        match Trace::read_as(format, "f", &bytes, &options) {
            Ok(trace) => {
                good += 1;
                assert!(trace.duration() > Span::ZERO);
                _ = trace.to_csv(Span::from_secs(3600)).map(|text| text.len());
                _ = tidegate_sim::Link::new("l", 1, trace.link(LinkSettings::default()).unwrap()).unwrap();
            }
            Err(error) => {
                bad += 1;
                assert!(!error.found.is_empty() && !error.expected.is_empty());
            }
        }
    }
    assert!(good > 500 && bad > 20_000, "{good} read, {bad} refused");
}

#[test]
fn csv_survives_a_round_trip() {
    let text = r#"{"uplink": {"trace_pattern": [
        {"duration": 500, "capacity": 1000, "loss": 0, "rtt": 200},
        {"duration": 333, "capacity": 1000, "loss": 0.2, "rtt": 101},
        {"duration": 250, "capacity": 0, "loss": 0.2, "rtt": 100}]}}"#;
    let trace = parse("pattern.json", text);
    let again = parse("again.csv", &trace.to_csv(Span::from_secs(1)).unwrap());
    assert_eq!((&again.capacity, &again.loss, &again.delay), (&trace.capacity, &trace.loss, &trace.delay));
}

#[test]
fn the_longest_trace_comes_back_too() {
    let trace = parse("long.csv", "# duration_s=4294967.295\ntime_s,rate_bps\n0,5\n4294967.294,7\n");
    assert_eq!(trace.duration(), Span::from_millis(u32::MAX.into()));
    let again = parse("again.csv", &trace.to_csv(Span::from_secs(1)).unwrap());
    assert_eq!(again.capacity, trace.capacity);
}

#[test]
fn nanoseconds_come_back_after_many_days() {
    // 49 days and some nanoseconds: a floating-point number of seconds has a resolution of 1 ns there, of ms 0.5 us
    let text = "# duration_s=4222222.130000003\ntime_s,rate_bps,delay_ms\n0,5,0.000001\n4222222.130000002,7,4200000000.000003\n";
    let trace = parse("long.csv", text);
    assert_eq!(trace.duration(), Span::from_nanos(4_222_222_130_000_003));
    let delays: Vec<_> =
        trace.delay.iter().flat_map(|delay| delay.phases()).map(|&(_, delay)| delay).collect();
    assert_eq!(delays, [Span::from_nanos(1), Span::from_nanos(4_200_000_000_000_003)]);
    let again = parse("again.csv", &trace.to_csv(Span::from_secs(1)).unwrap());
    assert_eq!((&again.capacity, &again.delay), (&trace.capacity, &trace.delay));
    // the last row lasts as long as the one before it: twice 24 days
    let twice = parse("twice.csv", "time_ms,rate_bps\n0,5\n2111111065.0000005,7\n");
    let again = parse("again.csv", &twice.to_csv(Span::from_secs(1)).unwrap());
    assert_eq!((again.duration(), &again.capacity), (twice.duration(), &twice.capacity));
}

#[test]
fn times_may_have_any_format_of_numbers() {
    for (time, nanos) in
        [("1e-3", 1_000_000), (".5", 500_000_000), ("+2.", 2_000_000_000), ("0.0000000005", 1)]
    {
        let trace = parse("t.csv", &format!("# duration_s=9\ntime_s,rate_bps\n0,5\n{time},7\n"));
        let Capacity::Rates(steps) = &trace.capacity else { panic!("rates") };
        assert_eq!(steps.rates().nth(1).map(|(time, _)| time), Some(Time::from_nanos(nanos)), "{time}");
    }
    for time in ["-1", "", ".", "1.2.3", "inf", "nan", "1_0", "99999999999999999999", "4294967.295000001"] {
        let text = format!("time_s,rate_bps\n0,5\n{time},7\n");
        assert!(Trace::read("t.csv", text.as_bytes(), &ReadOptions::default()).is_err(), "{time}");
    }
}

#[test]
fn rates_as_opportunities_keep_their_mean_and_outages() {
    let millis = Time::from_millis;
    let rates =
        [(millis(0), Rate::from_mbps(5)), (millis(400), Rate::ZERO), (millis(700), Rate::from_kbps(12_345))];
    let steps = Steps::new(&rates, Some(Span::from_millis(1000))).unwrap();
    let capacity = Capacity::Rates(steps);
    let trace = Trace { name: "steps".into(), capacity, loss: None, delay: None, remarks: Vec::new() };
    let written = parse("steps.down", &trace.to_mahimahi().unwrap());
    let Capacity::Opportunities(list) = &written.capacity else { panic!() };
    // (5 Mbit/s * 0.4 s + 12.345 Mbit/s * 0.3 s) / 12032 bit = 474.03
    assert_eq!(list.millis().len(), 474);
    assert_eq!(written.duration(), Span::from_secs(1));
    assert!(list.millis().iter().all(|&ms| ms <= 400 || ms > 700));
    assert_eq!(list.millis().iter().filter(|&&ms| ms <= 400).count(), 166);
    // and back, in bins of 100 ms: one opportunity more or less in each
    let back = parse("steps.csv", &written.to_csv(Span::from_millis(100)).unwrap());
    let (Capacity::Rates(was), Capacity::Rates(is)) = (&trace.capacity, &back.capacity) else { panic!() };
    for bin in 0..10 {
        let (from, to) = (millis(bin * 100), millis(bin * 100 + 100));
        let difference = was.mean_rate(from, to).as_bps().abs_diff(is.mean_rate(from, to).as_bps());
        assert!(difference <= 2 * 120_320, "{difference} bit/s in bin {bin}");
    }
    assert_eq!(back.mean_rate().as_bps() / 1000, written.mean_rate().as_bps() / 1000);
    let empty = Steps::new(&[(millis(0), Rate::from_bps(1))], Some(Span::from_millis(1))).unwrap();
    let empty = Trace { capacity: Capacity::Rates(empty), ..trace };
    assert!(empty.to_mahimahi().is_err());
}

#[test]
fn generated_traces_are_recordings_of_the_process() {
    let settings = BrownianSettings { bytes: 1504, ..BrownianSettings::default() };
    let make = |seed| Trace::generate_brownian(settings, seed, Span::from_secs(600)).unwrap();
    let trace = make(7);
    assert_eq!(trace.duration(), Span::from_secs(600));
    assert_eq!(trace, make(7));
    assert_ne!(trace.capacity, make(8).capacity);
    assert_eq!(parse("written", &trace.to_mahimahi().unwrap()).capacity, trace.capacity);
    // over many seeds: the mean of the process
    let sum: f64 = (0..60).map(|seed| make(seed).mean_rate().as_bps_f64()).sum();
    let ratio = sum / 60.0 / settings.mean_rate().as_bps_f64();
    assert!((ratio - 1.0).abs() < 0.08, "{ratio}");
    assert!(Trace::generate_brownian(settings, 1, Span::ZERO).is_err());
    let dead = BrownianSettings { sigma: 0.0, initial: Some(0.0), ..settings };
    assert!(Trace::generate_brownian(dead, 1, Span::from_secs(1)).unwrap_err().value.contains("outage"));
}

/// The folder of collected traces, if it exists.
fn collection() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("TIDEGATE_SHARED").map_or(beside, PathBuf::from).join("traces");
    if root.is_dir() {
        return Some(root);
    }
    eprintln!("skipped: no traces in {} (set TIDEGATE_SHARED)", root.display());
    None
}

/// All traces of `folder`, by file name.
fn load(folder: &str, options: &ReadOptions) -> Vec<(String, Trace)> {
    let Some(root) = collection() else { return Vec::new() };
    let mut folders = vec![root.join(folder)];
    let mut traces = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name != "README.md" {
                let mut bytes = std::fs::read(&path).unwrap();
                if name.ends_with(".gz") {
                    let packed = std::mem::take(&mut bytes);
                    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
                }
                let (_, trace) =
                    Trace::read(&name, &bytes, options).unwrap_or_else(|error| panic!("{error}"));
                traces.push((name, trace));
            }
        }
    }
    traces.sort_by(|first, second| first.0.cmp(&second.0));
    traces
}

/// Asserts that every trace of `folder` has the expected mean rate in bit/s and duration in ms.
fn check(folder: &str, options: &ReadOptions, expected: &[(&str, u64, i64)]) {
    let traces = load(folder, options);
    if traces.is_empty() {
        return;
    }
    assert_eq!(traces.len(), expected.len(), "{folder}");
    for ((name, trace), (expected_name, rate, millis)) in traces.iter().zip(expected) {
        assert_eq!(name, expected_name);
        assert!(trace.mean_rate().as_bps().abs_diff(*rate) <= 1, "{name}: {}", trace.mean_rate());
        assert_eq!(trace.duration(), Span::from_millis(*millis), "{name}");
    }
}

#[test]
fn collected_mahimahi_traces() {
    // lines * 1504 * 8 bit over the last timestamp
    let expected_rate = |lines: u64, last: u64| lines * 12_032 * 1000 / last;
    check(
        "mahimahi",
        &DEFAULT,
        &[
            ("ATT-LTE-driving.down", expected_rate(338_895, 786_112), 786_112),
            ("ATT-LTE-driving.up", expected_rate(70_336, 1_012_472), 1_012_472),
            ("TMobile-LTE-short.down", expected_rate(194_846, 139_986), 139_986),
            ("TMobile-LTE-short.up", expected_rate(155_381, 140_000), 140_000),
            ("Verizon-EVDO-driving.down", expected_rate(46_065, 1_062_016), 1_062_016),
            ("Verizon-EVDO-driving.up", expected_rate(74_768, 1_064_718), 1_064_718),
            ("Verizon-LTE-short.down", expected_rate(58_655, 140_000), 140_000),
            ("Verizon-LTE-short.up", expected_rate(69_367, 140_000), 140_000),
        ],
    );
    check(
        "nyc-lte",
        &DEFAULT,
        &[
            ("trace-2768760-taxi3", expected_rate(83_547, 104_814), 104_814),
            ("trace-2925703-home1", expected_rate(189_438, 299_690), 299_690),
            ("trace-3114405-bus", expected_rate(212_684, 314_891), 314_891),
            ("trace-3201711-timessquare", expected_rate(42_403, 128_118), 128_118),
            ("trace-3204803-timessquare", expected_rate(112_882, 188_326), 188_326),
        ],
    );
}

#[test]
fn collected_calibrated_traces_have_the_rate_in_their_name() {
    for (name, trace) in load("indigo-calibrated", &DEFAULT) {
        // the names count 1500 bytes an opportunity. The file called 3.04 has 2.82: 14084 lines in 60.005 s
        let mbps_in_name: f64 = name.split("mbps").next().unwrap().parse().unwrap();
        let rate = trace.mean_rate().as_bps_f64() * 1500.0 / 1504.0 / 1e6;
        let slack = if name.starts_with("3.04") {
            0.08
        } else if name.contains("poisson") {
            0.03
        } else {
            0.001
        };
        assert!((rate / mbps_in_name - 1.0).abs() < slack, "{name}: {rate} Mbit/s");
    }
}

#[test]
fn collected_data_rate_patterns() {
    let ten = ReadOptions { frequency: Some(10.0), ..DEFAULT };
    check(
        "aml-jens-drp",
        &ten,
        &[
            ("drp_3valleys.csv", 16_818_511, 300_000),
            ("drp_60-12Mbits_sin.csv", 23_321_135, 300_000),
            ("drp_bratislava.csv", 215_359_180, 516_700),
            ("drp_ericsson.csv", 76_607_293, 361_500),
            ("drp_munich_autobahn.csv", 34_766_006, 297_500),
            ("drp_munich_village.csv", 72_360_740, 121_200),
        ],
    );
}

#[test]
fn collected_opennetlab_patterns() {
    // the two mobile names give the median; the 4G file has a single 8 Gbit/s entry that lifts the mean
    let expected = [
        ("4G_3mbps.json", 30_195_272, 60_889),
        ("5G_13mbps.json", 173_156_313, 60_780),
        ("WIRED_200kbps.json", 203_615, 222_926),
        ("trace_300k.json", 300_000, 60_000),
        ("trace_example.json", 387_219, 106_040),
        ("trace_loss_0.json", 1_000_000, 200),
        ("trace_loss_0dot1.json", 1_000_000, 200),
        ("trace_loss_0dot5.json", 1_000_000, 200),
        ("trace_loss_pattern_2.json", 1_000_000, 1000),
        ("trace_loss_pattern_3.json", 1_000_000, 1500),
        ("trace_loss_pattern_4.json", 1_000_000, 2000),
        ("trace_rtt_200.json", 1_000_000, 1000),
        ("trace_rtt_400.json", 1_000_000, 1000),
        ("trace_rtt_600.json", 1_000_000, 1000),
        ("trace_rtt_pattern_2.json", 1_000_000, 4000),
        ("trace_rtt_pattern_4.json", 1_000_000, 8000),
    ];
    check("opennetlab-gym", &DEFAULT, &expected);
    for (name, mut trace) in load("opennetlab-gym", &DEFAULT) {
        let first = trace.loss.as_mut().map(|loss| *loss.at(Time::ZERO));
        match name.as_str() {
            "trace_loss_0dot1.json" => assert_eq!(first, Some(Loss::Bernoulli(0.1))),
            "trace_rtt_400.json" => {
                assert_eq!(*trace.delay.unwrap().at(Time::ZERO), Span::from_millis(200));
            }
            _ => {}
        }
    }
}

#[test]
fn collected_5g_sessions() {
    check(
        "raca-5g",
        &DEFAULT,
        &[
            ("Download_Driving_B_2019.12.16_07.22.43.csv.gz", 24_713_488, 2_597_000),
            ("Download_Driving_B_2019.12.16_11.49.59.csv.gz", 7_855_871, 394_000),
            ("Download_Driving_B_2019.12.16_12.27.05.csv.gz", 26_824_210, 1_352_000),
            ("Download_Driving_B_2019.12.16_14.23.32.csv.gz", 61_345_983, 2_950_000),
            ("Download_Driving_B_2020.01.16_07.26.43.csv.gz", 9_978_784, 2_090_000),
            ("Download_Driving_B_2020.01.16_09.56.56.csv.gz", 42_479_455, 1_825_000),
            ("Download_Driving_B_2020.01.16_12.10.03.csv.gz", 130_164_727, 387_000),
            ("Download_Driving_B_2020.02.13_13.03.24.csv.gz", 7_520_606, 2_668_000),
            ("Download_Driving_B_2020.02.13_15.02.01.csv.gz", 39_148_616, 3_777_000),
            ("Download_Driving_B_2020.02.14_12.58.17.csv.gz", 4_731_794, 997_000),
            ("Download_Driving_B_2020.02.27_17.30.15.csv.gz", 3_110_284, 886_000),
            ("Download_Driving_B_2020.02.27_20.35.57.csv.gz", 28_156_918, 850_000),
            ("Download_Static_B_2020.01.16_10.43.34.csv.gz", 73_373_242, 3_680_000),
            ("Download_Static_B_2020.02.13_13.57.29.csv.gz", 47_037_341, 3_498_000),
            ("Download_Static_B_2020.02.14_13.21.26.csv.gz", 130_214_519, 1_103_000),
            ("Download_Static_B_2020.02.27_18.39.27.csv.gz", 79_682_590, 6_654_000),
        ],
    );
}

#[test]
fn the_other_collections() {
    let reference = ReadOptions { reference: Some(Rate::from_mbps(1)), ..DEFAULT };
    // folder, files, mean of the files' mean rates in bit/s
    for (folder, count, mean) in [
        ("genet-norway", 69, 1_294_752.3),
        ("genet-fcc", 66, 1_185_910.2),
        ("sigcomm21-5g", 201, 219_697_744.5),
        ("genet-pantheon-paths", 43, 23_552_495.7),
        ("lumos-wifi-4g", 20, 27_414_454.0),
        // half_loss 1.25, multiple_flows 1.25, quick_test 1.75, single_flow 1.2, single_phase 1.0
        ("pion-bwe-phases", 5, 1_290_000.0),
    ] {
        let traces = load(folder, &reference);
        if traces.is_empty() {
            continue;
        }
        assert_eq!(traces.len(), count, "{folder}");
        let sum: f64 = traces.iter().map(|(_, trace)| trace.mean_rate().as_bps_f64()).sum();
        assert!((sum / count as f64 / mean - 1.0).abs() < 1e-5, "{folder}: {}", sum / count as f64);
    }
}
