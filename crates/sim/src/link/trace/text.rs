//! Parsers of traces that are columns of numbers: mahimahi's and its logs, times and rates, data rate patterns.

use super::rows::{Row, Stamps};
use super::{
    Capacity, Detected, File, Format, ReadOptions, Stretch, Trace, TraceError, moment_of, rate, rows,
};
use crate::link::capacity::{MAHIMAHI_BYTES, OpportunityTrace};
use tidegate_core::Span;

/// Fewest bits of a row of rates: a third of a packet of 1500 bytes. A row that carries less is in other units.
const LEAST_OF_A_ROW: f64 = 4e3;
/// Most bits of a row of rates, 25 GB: 100 s at 2 Gbit/s. A row that carries more is in other units.
const MOST_OF_A_ROW: f64 = 2e11;
/// A mean rate in Mbit/s and a length of a row in seconds beyond those of public recordings, whose largest are 0.9 Gbit/s
/// (SIGCOMM 2021 5G) and 5 s (FCC).
const UNUSUAL_RATE: f64 = 1500.0;
const UNUSUAL_ROW: f64 = 60.0;
/// Longest silence at the beginning, in milliseconds, of an opportunity list that is silent for most of its length.
const LONGEST_SILENCE: u32 = 100;

fn not_a_trace() -> String {
    format!("a recorded network in one of the formats {} (docs/traces.md)", Format::names())
}

/// The lines that are not comments.
fn samples<'a>(file: &File<'a>) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    file.lines().filter(|(_, line)| !line.starts_with('#'))
}

/// Lines from which a format is detected: some minutes of any, and few enough that a file of millions is refused in time.
const LOOKED_AT: usize = 100_000;

/// The number of columns, if all are numbers.
fn columns(line: &str) -> Option<usize> {
    let numbers = line.split_whitespace().map(|column| column.parse::<f64>().ok());
    numbers.map(|number| number.map(|_| 1)).sum()
}

/// Detects the format of columns of numbers by what most lines are: an odd one is left to the parser, which names it.
pub(crate) fn sniff(file: &File<'_>, options: &ReadOptions) -> Result<Detected, TraceError> {
    let (mut total, mut single, mut pairs, mut logged) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut odd = None;
    for (number, line) in samples(file).take(LOOKED_AT) {
        total += 1;
        match columns(line) {
            Some(1) => single += 1,
            Some(2) => pairs += 1,
            _ if event(line).is_some() => logged += 1,
            _ => odd = odd.or(Some((number, line))),
        }
    }
    if total == 0 {
        return Err(file.error(None, "an empty file", not_a_trace()));
    }
    let most = |count: usize| 2 * count > total;
    if most(logged) {
        Ok(Detected { format: Format::MmLinkLog, remark: None })
    } else if most(pairs) {
        sniff_pairs(file)
    } else if most(single) {
        sniff_single(file, options)
    } else {
        let (number, line) = odd.or_else(|| samples(file).next()).unwrap_or((1, ""));
        Err(file.line_error(number, line, not_a_trace()))
    }
}

/// Tells seconds and Mbit/s from milliseconds and kbit/s by the bits of a mean row: a million times more in the former.
fn sniff_pairs(file: &File<'_>) -> Result<Detected, TraceError> {
    let (mut first, mut last, mut rows, mut sum) = (None, (0.0, 0.0), 0_u64, 0.0);
    for (_, line) in samples(file).take(LOOKED_AT) {
        let mut numbers = line.split_whitespace().filter_map(|column| column.parse::<f64>().ok());
        let (Some(time), Some(rate)) = (numbers.next(), numbers.next()) else { continue };
        if first.is_some() {
            sum += last.1 * f64::max(time - last.0, 0.0);
            rows += 1;
        }
        first.get_or_insert(time);
        last = (time, rate);
    }
    let mean = if rows == 0 { 0.0 } else { sum / rows as f64 };
    let length = last.0 - first.unwrap_or(0.0);
    let (rate, gap) = (sum / length, length / rows as f64);
    if mean.is_nan() || mean < LEAST_OF_A_ROW {
        let remark = (rate > UNUSUAL_RATE || gap > UNUSUAL_ROW).then(|| {
            format!(
                "two columns are read as seconds and Mbit/s (seconds-mbps): rows of {gap:.0} s at {rate:.0} Mbit/s; if one of \
                 them is in another unit, csv has a header line for it (time_ms, rate_kbps)"
            )
        });
        return Ok(Detected { format: Format::SecondsMbps, remark });
    }
    let names = "seconds-mbps or milliseconds-kbps";
    if mean * 1e6 > MOST_OF_A_ROW {
        let remark = format!(
            "two columns are read as milliseconds and kbit/s (milliseconds-kbps): as seconds and Mbit/s a mean row would \
             last {gap:.0} s at {:.3} Gbit/s; another choice is --format seconds-mbps, or format = \"seconds-mbps\"",
            rate / 1e3
        );
        return Ok(Detected { format: Format::MillisecondsKbps, remark: Some(remark) });
    }
    let found = format!(
        "two columns that can be rows of {gap:.3} s at {rate:.1} Mbit/s, or of {gap:.3} ms at {rate:.1} kbit/s"
    );
    let expected = format!("the format by --format, or format = in a scenario: {names}");
    Err(file.error(None, found, expected))
}

/// Tells mahimahi's format from data rate patterns: its milliseconds are whole and never decrease.
fn sniff_single(file: &File<'_>, options: &ReadOptions) -> Result<Detected, TraceError> {
    let base = file.name.rsplit(['/', '\\']).next().unwrap_or(file.name);
    let pattern = Detected { format: Format::DataRatePattern, remark: None };
    if base.starts_with("drp") || comment(file, "recommended_freq").is_some() || options.frequency.is_some() {
        return Ok(pattern);
    }
    let (mut good, mut odd, mut first, mut last) = (0_usize, 0_usize, None, 0);
    for (_, line) in samples(file).take(LOOKED_AT) {
        match line.parse::<u32>() {
            Ok(millis) if millis >= last => {
                good += 1;
                first.get_or_insert(millis);
                last = millis;
            }
            _ => odd += 1,
        }
    }
    if odd > usize::max(1, (good + odd) / 5) || good < 2 * odd {
        return Ok(pattern);
    }
    let first = first.unwrap_or(0);
    if good > 1 && first > LONGEST_SILENCE && first > last / 2 {
        let found = format!(
            "{good} numbers of which the first is {first} and the last {last}: as mahimahi's milliseconds the link would \
             be silent for most of its time"
        );
        let expected = "the format by --format, or format = in a scenario: mahimahi, or data-rate-pattern (kbit/s, with \
                        --frequency); sizes of frames are no network (frames of a video source)";
        return Err(file.error(None, found, expected));
    }
    Ok(Detected { format: Format::Mahimahi, remark: None })
}

/// Parses [`Format::Mahimahi`].
pub(crate) fn mahimahi(file: &File<'_>) -> Result<Trace, TraceError> {
    let mut millis: Vec<u32> = Vec::new();
    for (number, line) in samples(file) {
        let expected = "whole milliseconds since the beginning, below 2^32";
        let millis_at = line.parse().map_err(|_| file.line_error(number, line, expected))?;
        if let Some(&last) = millis.last().filter(|&&last| millis_at < last) {
            let expected = format!("at least {last}, the value of the previous line");
            return Err(file.line_error(number, line, expected));
        }
        millis.push(millis_at);
    }
    let comments = file.lines().count() - millis.len();
    let remarks = match comments {
        0 => Vec::new(),
        1 => vec!["1 line of comment is left out; mahimahi refuses it".to_owned()],
        count => vec![format!("{count} lines of comment are left out; mahimahi refuses them")],
    };
    Ok(Trace { remarks, ..opportunities(file, millis, MAHIMAHI_BYTES)? })
}

fn opportunities(file: &File<'_>, millis: Vec<u32>, bytes: u32) -> Result<Trace, TraceError> {
    let capacity = OpportunityTrace::new(millis, bytes)
        .map_err(|_| file.error(None, "no opportunity later than 0 ms", "at least one"))?;
    Ok(Trace {
        name: file.name.to_owned(),
        capacity: Capacity::Opportunities(capacity),
        loss: None,
        delay: None,
        remarks: Vec::new(),
    })
}

/// A line of mahimahi's log (`record_...` of `link_queue.cc`): its time in milliseconds, its kind, and its bytes. Kinds
/// are an opportunity `#`, an arrival `+`, a departure `-` and a drop `d`.
fn event(line: &str) -> Option<(u64, &str, u32)> {
    let mut parts = line.split_whitespace();
    let (time, kind, bytes) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?.parse().ok()?);
    ["#", "+", "-", "d"].contains(&kind).then_some((time, kind, bytes))
}

/// Parses [`Format::MmLinkLog`].
pub(crate) fn mm_link_log(file: &File<'_>) -> Result<Trace, TraceError> {
    let stamp = |(number, line): (usize, &'_ str)| {
        let text = line.trim_start_matches('#').trim().strip_prefix("base timestamp:")?.trim();
        Some(
            text.parse::<u64>()
                .map_err(|_| file.line_error(number, text, "a base timestamp in milliseconds")),
        )
    };
    let base = file.lines().find_map(stamp).transpose()?;
    let (mut origin, mut millis, mut size) = (base, Vec::<u32>::new(), None);
    for (number, line) in samples(file) {
        let expected = "a line of mm-link's log: milliseconds, one of # + - d, and bytes";
        let (time, kind, bytes) = event(line).ok_or_else(|| file.line_error(number, line, expected))?;
        // without a base timestamp the first event is the beginning
        let since = time.checked_sub(*origin.get_or_insert(time)).and_then(|since| since.try_into().ok());
        let since: u32 = since.ok_or_else(|| {
            file.line_error(number, line, "a time from the base timestamp to 49 days after it")
        })?;
        if kind != "#" {
            continue;
        }
        let &mut size = size.get_or_insert(bytes);
        if bytes != size || bytes == 0 {
            let expected = format!("opportunities of {MAHIMAHI_BYTES} bytes, or all of one size");
            return Err(file.line_error(number, line, expected));
        }
        if let Some(&last) = millis.last().filter(|&&last| since < last) {
            let expected =
                format!("an opportunity not before the previous one, {last} ms after the beginning");
            return Err(file.line_error(number, line, expected));
        }
        millis.push(since);
    }
    let mut trace = opportunities(file, millis, size.unwrap_or(MAHIMAHI_BYTES))?;
    if base.is_none() {
        let remark = "no base timestamp: times are counted from the first line of the log";
        trace.remarks.push(remark.to_owned());
    }
    Ok(trace)
}

/// Parses [`Format::SecondsMbps`].
pub(crate) fn seconds_mbps(file: &File<'_>) -> Result<Trace, TraceError> {
    let expected = "two numbers: seconds, and Mbit/s that are not negative";
    times_and_rates(file, Span::from_secs(1), 1e6, expected)
}

/// Parses [`Format::MillisecondsKbps`].
pub(crate) fn milliseconds_kbps(file: &File<'_>) -> Result<Trace, TraceError> {
    let expected = "two numbers: milliseconds, and kbit/s that are not negative";
    times_and_rates(file, Span::from_millis(1), 1e3, expected)
}

fn times_and_rates(
    file: &File<'_>,
    of_time: Span,
    of_rate: f64,
    expected: &str,
) -> Result<Trace, TraceError> {
    let mut rows: Vec<Row> = Vec::new();
    for (line, text) in samples(file) {
        let row = || {
            let mut columns = text.split_whitespace();
            let time = moment_of(columns.next()?, of_time)?;
            let rate = rate(columns.next()?.parse().ok()?, of_rate)?;
            columns.next().is_none().then_some((time, rate))
        };
        let (time, rate) = row().ok_or_else(|| file.line_error(line, text, expected))?;
        rows.push(Row { line, time, rate, loss: None, delay: None });
    }
    let text = |line| file.cell(line, |text| text.split_whitespace().next());
    rows::trace(file, rows, None, &Stamps { kind: "line", text: &text, dated: false })
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
