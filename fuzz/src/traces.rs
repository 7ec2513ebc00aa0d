//! Properties of files of recorded networks, which hold for any bytes: an error with a description, or a trace that can
//! be used, written, and parsed again as the same.
#![allow(dead_code)]

use tidegate_core::{Rate, Span};
use tidegate_sim::link::capacity::MAHIMAHI_BYTES;
use tidegate_sim::link::trace::{Capacity, Direction, Format, ReadOptions, Trace};
use tidegate_sim::link::{Link, LinkSettings};

/// Formats of columns of numbers, of tables, and of JSON.
pub const NUMBERS: [Format; 6] = [
    Format::Mahimahi,
    Format::SecondsMbps,
    Format::DataRatePattern,
    Format::MillisecondsKbps,
    Format::MmLinkLog,
    Format::ConnectivityIni,
];
pub const TABLES: [Format; 3] = [Format::Raca, Format::Lumos, Format::Csv];
pub const JSON: [Format; 6] = [
    Format::OpenNetLab,
    Format::PantheonPath,
    Format::PionPhases,
    Format::Sabre,
    Format::Iperf3,
    Format::DevTools,
];

/// Checks `input`, and returns whether it is a trace: its first byte chooses the format, or its detection; its second one the options.
///
/// # Panics
/// When a property does not hold.
pub fn check(formats: &[Format], input: &[u8]) -> bool {
    let [choice, bits, file @ ..] = input else { return false };
    let options = ReadOptions {
        frequency: (bits & 1 != 0).then_some(10.0),
        reference: (bits & 2 != 0).then_some(Rate::from_mbps(1)),
        direction: [None, None, Some(Direction::Down), Some(Direction::Up)][usize::from(bits >> 2 & 3)],
    };
    let trace = match formats.get(usize::from(*choice) % (formats.len() + 1)) {
        Some(&format) => Trace::read_as(format, "f", file, &options),
        None => Trace::read("f", file, &options).map(|(_, trace)| trace),
    };
    match &trace {
        Ok(trace) => check_trace(trace),
        Err(error) => assert!(!error.found.is_empty() && !error.expected.is_empty(), "{error:?}"),
    }
    trace.is_ok()
}

fn check_trace(trace: &Trace) {
    let period = trace.duration();
    assert!(period > Span::ZERO);
    let settings =
        trace.link(LinkSettings::default()).expect("a link whose delay does not change follows any trace");
    Link::new("l", 1, settings).expect("a parsed trace makes a link");
    let (offset, bin) =
        (Span::from_nanos(period.as_nanos() / 3), Span::from_nanos(period.as_nanos() / 10 + 1));
    if let Ok(played) = trace.played(offset, 0.5) {
        assert_eq!(played.duration(), period);
    }
    // opportunities are written as means; and of a rate there may be a gigabyte of opportunities
    let text = trace.to_csv(bin).expect("a parsed trace has one probability of loss at a time");
    let again = Trace::read_as(Format::Csv, "f", text.as_bytes(), &ReadOptions::default());
    let again = again.unwrap_or_else(|error| panic!("a written trace can be parsed: {error}"));
    assert_eq!(again.duration(), period);
    match &trace.capacity {
        Capacity::Rates(steps) => {
            assert_eq!(again.capacity, trace.capacity);
            assert_eq!((&again.loss, &again.delay), (&trace.loss, &trace.delay));
            if steps.nominal_rate().bytes_in(period).as_bytes() < 1_000_000 {
                _ = trace.to_mahimahi().map(|text| {
                    Trace::read_as(Format::Mahimahi, "f", text.as_bytes(), &ReadOptions::default())
                });
            }
        }
        // a log of mm-link can have opportunities of another size, which mahimahi cannot play
        Capacity::Opportunities(list) if list.bytes() != MAHIMAHI_BYTES => {
            assert!(trace.to_mahimahi().is_err());
        }
        Capacity::Opportunities(_) => {
            let text = trace.to_mahimahi().expect("opportunities of 1504 bytes");
            let again = Trace::read_as(Format::Mahimahi, "f", text.as_bytes(), &ReadOptions::default());
            assert_eq!(again.expect("a written trace can be parsed").capacity, trace.capacity);
        }
    }
}
