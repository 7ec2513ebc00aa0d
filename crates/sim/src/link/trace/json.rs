//! Parsers of traces in JSON.

use super::rows::{Row, Stamps};
use super::{
    Direction, File, Format, ReadOptions, Stretch, Trace, TraceError, moment, profiles, rate, rows, span,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_core::{Rate, Span};

/// Detects the JSON format.
pub(crate) fn sniff(file: &File<'_>) -> Result<Format, TraceError> {
    let value: serde_json::Value = parse(file, "JSON")?;
    let has = |key: &str| value.get(key).is_some();
    match &value {
        serde_json::Value::Array(phases)
            if phases.iter().any(|phase| phase.get("CapacityRatio").is_some()) =>
        {
            Ok(Format::PionPhases)
        }
        serde_json::Value::Array(periods)
            if periods.iter().any(|period| period.get("bandwidth_kbps").is_some()) =>
        {
            Ok(Format::Sabre)
        }
        _ if has("uplink") || has("downlink") => Ok(Format::OpenNetLab),
        _ if has("bandwidths") => Ok(Format::PantheonPath),
        _ if has("intervals") => Ok(Format::Iperf3),
        _ if profiles::is_devtools(&value) => Ok(Format::DevTools),
        _ => {
            let expected = format!(
                "\"uplink\" with a \"trace_pattern\" (opennetlab), \"timestamps\" and \"bandwidths\" (pantheon-path), a \
                 list with \"CapacityRatio\" (pion-phases) or \"bandwidth_kbps\" (sabre), \"intervals\" (iperf3), \
                 \"download\" and \"upload\" (devtools), or another format: {}",
                Format::names()
            );
            Err(file.error(None, "JSON that is no trace", expected))
        }
    }
}

pub(crate) fn parse<T: DeserializeOwned>(file: &File<'_>, expected: &str) -> Result<T, TraceError> {
    serde_json::from_str(file.text).map_err(|error| {
        let line = (error.line() > 0).then(|| format!("line {}", error.line()));
        file.error(line, describe(&error), expected)
    })
}

/// The error without the file's text, which serde's messages repeat.
fn describe(error: &serde_json::Error) -> String {
    match error.classify() {
        serde_json::error::Category::Data => {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            match (message.split_once(" \""), message.rsplit_once(", expected ")) {
                // invalid type: string "...", expected f64
                (Some((begin, _)), Some((_, expected))) => format!("{begin}, where {expected} is expected"),
                (Some((begin, _)), None) => begin.to_owned(),
                (None, _) => message.to_owned(),
            }
        }
        serde_json::error::Category::Eof => "incomplete JSON".to_owned(),
        _ => format!("invalid JSON at column {}", error.column()),
    }
}

/// Checks that a loss, given in `unit`, is a fraction.
pub(crate) fn fraction(file: &File<'_>, key: &str, value: f64, unit: f64) -> Result<f64, TraceError> {
    let fraction = value * unit;
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    let expected = format!("a loss from 0 to {}", 1.0 / unit);
    Err(file.error(Some(key.to_owned()), format!("a loss of {value}"), expected))
}

#[derive(Deserialize)]
struct Paths {
    #[serde(default)]
    uplink: Path,
    #[serde(default)]
    downlink: Path,
}

#[derive(Deserialize, Default)]
struct Path {
    #[serde(default)]
    trace_pattern: Vec<Pattern>,
}

#[derive(Deserialize)]
struct Pattern {
    duration: f64,
    capacity: f64,
    loss: Option<f64>,
    rtt: Option<f64>,
    jitter: Option<f64>,
}

/// Parses [`Format::OpenNetLab`].
pub(crate) fn opennetlab(file: &File<'_>, options: &ReadOptions) -> Result<Trace, TraceError> {
    let expected =
        "trace_pattern entries with duration (ms), capacity (kbit/s), and optionally loss and rtt (ms)";
    let paths: Paths = parse(file, expected)?;
    let (key, path) = match options.direction {
        Some(Direction::Down) => ("downlink", paths.downlink),
        Some(Direction::Up) | None => ("uplink", paths.uplink),
    };
    let mut stretches = Vec::with_capacity(path.trace_pattern.len());
    for (index, pattern) in path.trace_pattern.iter().enumerate() {
        let entry = format!("{key}.trace_pattern[{index}]");
        let wrong = |found: String, expected: &str| file.error(Some(entry.clone()), found, expected);
        let length = span(pattern.duration, 1e-3)
            .ok_or_else(|| wrong(format!("a duration of {}", pattern.duration), "milliseconds"))?;
        let rate = rate(pattern.capacity, 1e3)
            .ok_or_else(|| wrong(format!("a capacity of {}", pattern.capacity), "kbit/s"))?;
        let loss = pattern.loss.map(|loss| fraction(file, &entry, loss, 1.0)).transpose()?;
        let delay = match pattern.rtt {
            None => None,
            Some(rtt) => {
                // half a round trip in each direction
                Some(span(rtt, 0.5e-3).ok_or_else(|| wrong(format!("an rtt of {rtt}"), "milliseconds"))?)
            }
        };
        if let Some(jitter) = pattern.jitter.filter(|&jitter| jitter != 0.0) {
            let expected = "0: the format does not define jitter, and its gym ignores it";
            return Err(wrong(format!("a jitter of {jitter}"), expected));
        }
        stretches.push(Stretch { length, rate, loss, delay });
    }
    if stretches.is_empty() {
        return Err(file.error(Some(key.to_owned()), "no trace_pattern", expected));
    }
    Trace::from_stretches(file, stretches)
}

#[derive(Deserialize)]
struct PantheonPath {
    timestamps: Vec<f64>,
    bandwidths: Vec<f64>,
    #[serde(default)]
    delays: Vec<f64>,
    #[serde(default)]
    loss: f64,
}

/// Parses [`Format::PantheonPath`]. Its queue, `delay_noise` and `T_s` describe a simulator and not the path.
pub(crate) fn pantheon_path(file: &File<'_>) -> Result<Trace, TraceError> {
    let expected = "timestamps (s); one bandwidth (Mbit/s) for each; one delay (ms), or one for each; and loss \
         (fraction)";
    let path: PantheonPath = parse(file, expected)?;
    let (times, delays) = (path.timestamps.len(), path.delays.len());
    if times != path.bandwidths.len() || delays > 1 && delays != times || times == 0 {
        let found = format!("{times} timestamps, {} bandwidths and {delays} delays", path.bandwidths.len());
        return Err(file.error(None, found, expected));
    }
    let loss = fraction(file, "loss", path.loss, 1.0)?;
    let mut rows: Vec<Row> = Vec::with_capacity(times);
    for (index, (&seconds, &mbps)) in path.timestamps.iter().zip(&path.bandwidths).enumerate() {
        let row = || {
            let delay = match path.delays.get(index).or(path.delays.first()) {
                Some(&millis) => Some(span(millis, 1e-3)?),
                None => None,
            };
            Some((moment(seconds, 1.0)?, rate(mbps, 1e6)?, delay))
        };
        let Some((time, rate, delay)) = row() else {
            let found = format!("{seconds} s, {mbps} Mbit/s");
            let expected = "a time that is not negative, a delay from 0 to 49 days, and a bandwidth that is not negative";
            return Err(file.error(Some(format!("entry {index}")), found, expected));
        };
        rows.push(Row { line: index, time, rate, loss: Some(loss), delay });
    }
    let text = |index: usize| path.timestamps.get(index).map_or_else(String::new, f64::to_string);
    rows::trace(file, rows, None, &Stamps { kind: "entry", text: &text, dated: false })
}

#[derive(Deserialize)]
struct Phase {
    #[serde(rename = "DurationSeconds")]
    seconds: f64,
    #[serde(rename = "CapacityRatio")]
    ratio: f64,
    #[serde(rename = "DataLossRate", default)]
    loss: f64,
}

/// Parses [`Format::PionPhases`]. Its `MaxBurstKbps` describes a token bucket, which a link is not.
pub(crate) fn pion_phases(file: &File<'_>, options: &ReadOptions) -> Result<Trace, TraceError> {
    let phases: Vec<Phase> = parse(file, "phases with DurationSeconds, CapacityRatio and DataLossRate (%)")?;
    let reference = options
        .reference
        .filter(|&reference| reference > Rate::ZERO)
        .ok_or_else(|| file.error(None, "capacities as ratios", "a reference rate as an option"))?;
    let mut stretches = Vec::with_capacity(phases.len());
    for (index, phase) in phases.iter().enumerate() {
        let entry = format!("phase {index}");
        let length: Option<Span> = span(phase.seconds, 1.0);
        let rate = rate(phase.ratio, reference.as_bps_f64());
        let (Some(length), Some(rate)) = (length, rate) else {
            let found = format!("{} s at ratio {}", phase.seconds, phase.ratio);
            return Err(file.error(
                Some(entry),
                found,
                "a duration from 0 to 49 days, and a ratio that is not negative",
            ));
        };
        let loss = Some(fraction(file, &entry, phase.loss, 0.01)?);
        stretches.push(Stretch { length, rate, loss, delay: None });
    }
    Trace::from_stretches(file, stretches)
}

#[derive(Deserialize)]
struct Period {
    duration_ms: f64,
    bandwidth_kbps: f64,
    latency_ms: Option<f64>,
}

/// Parses [`Format::Sabre`].
pub(crate) fn sabre(file: &File<'_>) -> Result<Trace, TraceError> {
    let expected = "a list of periods with duration_ms, bandwidth_kbps, and optionally latency_ms";
    let periods: Vec<Period> = parse(file, expected)?;
    let mut stretches = Vec::with_capacity(periods.len());
    for (index, period) in periods.iter().enumerate() {
        // half a round trip in each direction
        let delay = period.latency_ms.map(|millis| span(millis, 0.5e-3));
        let (Some(length), Some(rate), None | Some(Some(_))) =
            (span(period.duration_ms, 1e-3), rate(period.bandwidth_kbps, 1e3), delay)
        else {
            let latency =
                period.latency_ms.map_or(String::new(), |millis| format!(", {millis} ms of latency"));
            let found = format!("{} ms, {} kbit/s{latency}", period.duration_ms, period.bandwidth_kbps);
            let expected = "a duration and a latency from 0 to 49 days, and a bandwidth that is not negative";
            return Err(file.error(Some(format!("period {index}")), found, expected));
        };
        stretches.push(Stretch { length, rate, loss: None, delay: delay.flatten() });
    }
    Trace::from_stretches(file, stretches)
}

#[derive(Deserialize)]
struct Transfer {
    intervals: Vec<Interval>,
    /// The other end's file, with `--get-server-output`.
    server_output_json: Option<Box<Self>>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
    /// The other direction, with `--bidir`.
    sum_bidir_reverse: Option<Sum>,
}

#[derive(Deserialize, Clone, Copy)]
struct Sum {
    start: f64,
    end: f64,
    bits_per_second: f64,
    #[serde(default)]
    omitted: bool,
    /// Whether this end sent it; files of iperf 3.0 to 3.6 do not have it.
    sender: Option<bool>,
}

/// Parses [`Format::Iperf3`]. Seconds at the beginning that the transfer omits (`--omit`) are left out.
pub(crate) fn iperf3(file: &File<'_>, options: &ReadOptions) -> Result<Trace, TraceError> {
    let expected = "the output of iperf3 -J: intervals, each with a sum of start, end and bits_per_second";
    let transfer: Transfer = parse(file, expected)?;
    let received = |sum: &Sum| sum.sender != Some(true);
    // at the sender the rate is that of its socket's buffer: the receiver's is that of the network
    let wanted = match options.direction {
        Some(Direction::Up) => false,
        Some(Direction::Down) => true,
        None => transfer.intervals.iter().any(|interval| interval.sums().any(|sum| received(&sum))),
    };
    let own: Vec<Sum> = transfer.chosen(|sum| received(sum) == wanted);
    let (sums, whose) = match &transfer.server_output_json {
        // what this end sent, the other one received
        Some(other) if !wanted => (other.chosen(received), "the receiver"),
        _ => (own, if wanted { "the receiver" } else { "the sender" }),
    };
    let mut stretches = Vec::with_capacity(sums.len());
    for (index, sum) in sums.iter().enumerate().filter(|(_, sum)| !sum.omitted) {
        let (Some(length), Some(rate)) = (span(sum.end - sum.start, 1.0), rate(sum.bits_per_second, 1.0))
        else {
            let found = format!("{} s to {} s, {} bit/s", sum.start, sum.end, sum.bits_per_second);
            let expected = "an end not before the start, and a rate that is not negative";
            return Err(file.error(Some(format!("interval {index}")), found, expected));
        };
        stretches.push(Stretch { length, rate, loss: None, delay: None });
    }
    if stretches.is_empty() {
        return Err(file.error(None, "no interval of this direction", expected));
    }
    let omitted = sums.iter().filter(|sum| sum.omitted).count();
    let mut remarks =
        vec![format!("these are the rates of {whose} of a transfer, which can be below the capacity")];
    if omitted > 0 {
        remarks.push(format!("{omitted} of {} intervals are left out: iperf3 omitted them", sums.len()));
    }
    Ok(Trace { remarks, ..Trace::from_stretches(file, stretches)? })
}

impl Transfer {
    /// In each interval the first sum that fulfils `wanted`.
    fn chosen(&self, wanted: impl Fn(&Sum) -> bool) -> Vec<Sum> {
        self.intervals.iter().filter_map(|interval| interval.sums().find(&wanted)).collect()
    }
}

impl Interval {
    fn sums(&self) -> impl Iterator<Item = Sum> + '_ {
        [Some(self.sum), self.sum_bidir_reverse].into_iter().flatten()
    }
}
