//! Parsers of traces that are columns of numbers: mahimahi's, seconds and Mbit/s, data rate patterns.

use super::{Capacity, File, Format, ReadOptions, Row, Stretch, Trace, TraceError, rate, span_of, stretches};
use crate::link::capacity::{MAHIMAHI_BYTES, OpportunityTrace};
use tidegate_core::Span;

const NOT_A_TRACE: &str =
    "lines of \"milliseconds\", \"kbit/s\" or \"seconds Mbit/s\", CSV with a header line, or JSON";

/// The samples of a data rate pattern, without its comments.
fn samples<'a>(file: &File<'a>) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    file.lines().filter(|(_, line)| !line.starts_with('#'))
}

/// Detects the format of columns of numbers.
pub(crate) fn sniff(file: &File<'_>) -> Result<Format, TraceError> {
    let Some((number, first)) = samples(file).next() else {
        return Err(file.error(None, "an empty file", NOT_A_TRACE));
    };
    let columns: Vec<_> = first.split_whitespace().collect();
    if columns.iter().any(|column| column.parse::<f64>().is_err()) || columns.len() > 2 {
        return Err(file.line_error(number, first, NOT_A_TRACE));
    }
    if columns.len() == 2 {
        return Ok(Format::SecondsMbps);
    }
    // both formats have one number a line; milliseconds are whole, never decrease, and have no comments
    let base = file.name.rsplit(['/', '\\']).next().unwrap_or(file.name);
    let pattern = base.starts_with("drp")
        || file.text.trim_start().starts_with('#')
        || samples(file)
            .map(|(_, line)| line.parse::<u32>())
            .try_fold(0, |last, millis| millis.ok().filter(|&millis| millis >= last))
            .is_none();
    Ok(if pattern { Format::DataRatePattern } else { Format::Mahimahi })
}

/// Parses [`Format::Mahimahi`].
pub(crate) fn mahimahi(file: &File<'_>) -> Result<Trace, TraceError> {
    let mut millis: Vec<u32> = Vec::new();
    for (number, line) in file.lines() {
        let expected = "whole milliseconds since the beginning, below 2^32";
        let millis_at = line.parse().map_err(|_| file.line_error(number, line, expected))?;
        if let Some(&last) = millis.last().filter(|&&last| millis_at < last) {
            let expected = format!("at least {last}, the value of the previous line");
            return Err(file.line_error(number, line, expected));
        }
        millis.push(millis_at);
    }
    let capacity = OpportunityTrace::new(millis, MAHIMAHI_BYTES)
        .map_err(|_| file.error(None, "no opportunity later than 0 ms", "at least one"))?;
    Ok(Trace {
        name: file.name.to_owned(),
        capacity: Capacity::Opportunities(capacity),
        loss: None,
        delay: None,
    })
}

/// Parses [`Format::SecondsMbps`].
pub(crate) fn seconds_mbps(file: &File<'_>) -> Result<Trace, TraceError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut origin = Span::ZERO;
    for (line, text) in samples(file) {
        let expected = "two numbers: seconds within 49 days, and Mbit/s that are not negative";
        let row = || {
            let mut columns = text.split_whitespace();
            let time = span_of(columns.next()?, Span::from_secs(1))?;
            let rate = rate(columns.next()?.parse().ok()?, 1e6)?;
            columns.next().is_none().then_some((time, rate))
        };
        let (time, rate) = row().ok_or_else(|| file.line_error(line, text, expected))?;
        if rows.is_empty() {
            origin = time;
        }
        rows.push(Row { line, time: time - origin, rate, loss: None, delay: None });
    }
    Trace::from_stretches(file, stretches(file, &rows, None)?)
}

/// The value of a comment of the form `# :key=value` whose key begins with `prefix`.
fn comment<'a>(file: &File<'a>, prefix: &str) -> Option<(usize, &'a str)> {
    file.lines().take_while(|(_, line)| line.starts_with('#')).find_map(|(number, line)| {
        let (key, value) = line.trim_start_matches('#').trim().strip_prefix(':')?.split_once('=')?;
        key.starts_with(prefix).then_some((number, value.trim()))
    })
}

/// Parses [`Format::DataRatePattern`].
pub(crate) fn data_rate_pattern(file: &File<'_>, options: &ReadOptions) -> Result<Trace, TraceError> {
    // the key in the published files is spelt "recommended_freqeuncy": the part before the misspelling is enough
    let frequency = match (comment(file, "recommended_freq"), options.frequency) {
        (Some((number, value)), _) => {
            value.parse().ok().filter(|hz| (1e-3..=1e6).contains(hz)).ok_or_else(|| {
                file.line_error(number, value, "a frequency of 0.001 to a million samples/s")
            })?
        }
        (None, Some(hz)) if (1e-3..=1e6).contains(&hz) => hz,
        (None, out_of_range) => {
            let found =
                out_of_range.map_or("no frequency".to_owned(), |hz| format!("a frequency of {hz} Hz"));
            let expected = "a comment \"# :recommended_freqeuncy=10\", or a frequency of 0.001 to a million \
                            samples/s as an option";
            return Err(file.error(None, found, expected));
        }
    };
    let length = Span::from_secs_f64(1.0 / frequency);
    let stretches: Result<Vec<Stretch>, _> = samples(file)
        .map(|(number, line)| {
            let rate = line.parse().ok().and_then(|kbps| rate(kbps, 1e3));
            let rate = rate.ok_or_else(|| file.line_error(number, line, "a capacity in kbit/s"))?;
            Ok(Stretch { length, rate, loss: None, delay: None })
        })
        .collect();
    Trace::from_stretches(file, stretches?)
}
