//! Parsers of traces in JSON.

use super::{Direction, File, Format, ReadOptions, Row, Stretch, Trace, TraceError, rate, span, stretches};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_core::{Rate, Span};

const NOT_A_TRACE: &str = "\"uplink\" with a \"trace_pattern\" (OpenNetLab), \"timestamps\" and \"bandwidths\" \
                           (Genet), or a list of phases with \"CapacityRatio\" (pion)";

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
        _ if has("uplink") || has("downlink") => Ok(Format::OpenNetLab),
        _ if has("bandwidths") => Ok(Format::PantheonPath),
        _ => Err(file.error(None, "JSON that is no trace", NOT_A_TRACE)),
    }
}

fn parse<T: DeserializeOwned>(file: &File<'_>, expected: &str) -> Result<T, TraceError> {
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
fn fraction(file: &File<'_>, key: &str, value: f64, unit: f64) -> Result<f64, TraceError> {
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
            Some((span(seconds, 1.0)?, rate(mbps, 1e6)?, delay))
        };
        let Some((time, rate, delay)) = row() else {
            let found = format!("{seconds} s, {mbps} Mbit/s");
            let expected = "a time and a delay from 0 to 49 days, and a bandwidth that is not negative";
            return Err(file.error(Some(format!("entry {index}")), found, expected));
        };
        rows.push(Row { line: index, time, rate, loss: Some(loss), delay });
    }
    let origin = rows[0].time;
    rows.iter_mut().for_each(|row| row.time -= origin.min(row.time));
    Trace::from_stretches(file, stretches(file, &rows, None)?)
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
