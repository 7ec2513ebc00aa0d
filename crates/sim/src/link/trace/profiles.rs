//! Parsers of throttling profiles, which are one rate and one delay: Chrome DevTools, Lighthouse, WebPageTest.

use super::{Direction, File, ReadOptions, Stretch, Trace, TraceError, json, rate, span};
use serde_json::Value;
use tidegate_core::Span;

/// Period of a capacity that does not change.
const PERIOD: Span = Span::from_secs(1);

/// Keys of a profile with the unit of their rates in bit/s: for the direction towards the user, and from the user.
/// The first two are of Lighthouse (`throttling` of its settings), in kbit/s: those of the network, and those which it
/// asks of DevTools for it. The others are of Chrome DevTools (`Network.emulateNetworkConditions` of its protocol, and
/// its settings), in byte/s.
const RATES: [(&str, &str, f64); 4] = [
    ("throughputKbps", "uploadThroughputKbps", 1e3),
    ("downloadThroughputKbps", "uploadThroughputKbps", 1e3),
    ("downloadThroughput", "uploadThroughput", 8.0),
    ("download", "upload", 8.0),
];
const LATENCIES: [&str; 3] = ["rttMs", "requestLatencyMs", "latency"];

/// The profiles of a file: itself, a list, or the part of a larger file that has them.
fn profiles(value: &Value) -> Vec<&Value> {
    let inner = ["settings", "throttling", "customNetworkConditions"].iter().find_map(|key| value.get(*key));
    match (inner, value) {
        (Some(inner), _) => profiles(inner),
        (None, Value::Array(list)) => list.iter().collect(),
        _ => vec![value],
    }
}

/// The rate in bit/s, if the profile has one.
fn throughput(profile: &Value, direction: Direction) -> Option<(&'static str, f64)> {
    let mut values = RATES.iter().filter_map(|&(down, up, unit)| {
        let key = if direction == Direction::Up { up } else { down };
        Some((key, profile.get(key)?.as_f64()? * unit))
    });
    let first = values.next();
    // zero of Lighthouse is no limit here, and another key has the limit; -1 of DevTools is no limit
    first.into_iter().chain(values).find(|&(_, bps)| bps > 0.0).or(first)
}

/// Whether this is a profile, or a list of profiles.
pub(crate) fn is_devtools(value: &Value) -> bool {
    let has = |profile: &&Value| throughput(profile, Direction::Down).is_some();
    profiles(value).iter().any(has)
}

/// Parses [`Format::DevTools`].
pub(crate) fn devtools(file: &File<'_>, options: &ReadOptions) -> Result<Trace, TraceError> {
    let value: Value = json::parse(file, "JSON")?;
    let list = profiles(&value);
    let [profile] = list.as_slice() else {
        let expected = "one profile: keep the one that is wanted in a file of its own";
        return Err(file.error(None, format!("{} profiles", list.len()), expected));
    };
    let direction = options.direction.unwrap_or(Direction::Down);
    let expected = "a throttling profile: download and upload in byte/s (Chrome DevTools), or downloadThroughputKbps and \
                    uploadThroughputKbps (Lighthouse), more than 0";
    let Some((key, bps)) = throughput(profile, direction) else {
        return Err(file.error(None, "no throughput of this direction", expected));
    };
    let rate = rate(bps, 1.0).filter(|&rate| rate.as_bps() > 0);
    let rate = rate.ok_or_else(|| file.error(Some(key.to_owned()), format!("{bps} bit/s"), expected))?;
    let number = |key: &'static str| profile.get(key).and_then(Value::as_f64).map(|value| (key, value));
    let delay = match LATENCIES.into_iter().find_map(number) {
        None => None,
        Some((key, millis)) => Some(half(file, key, millis)?),
    };
    let loss = match number("packetLoss") {
        None => None,
        Some((key, percent)) => Some(json::fraction(file, key, percent, 0.01)?),
    };
    Trace::from_stretches(file, vec![Stretch { length: PERIOD, rate, loss, delay }])
}

/// Half of a round trip of so many milliseconds.
fn half(file: &File<'_>, key: &str, millis: f64) -> Result<Span, TraceError> {
    span(millis, 0.5e-3).ok_or_else(|| {
        file.error(Some(key.to_owned()), format!("{millis} ms"), "a latency from 0 to 49 days")
    })
}

/// Key and value of a line of an ini file.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    Some((key.trim(), value.trim().trim_matches('"')))
}

fn section(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

/// Whether the file has a line for the rate of a profile of WebPageTest.
pub(crate) fn is_ini(file: &File<'_>) -> bool {
    file.text.contains("bwIn")
        && file.lines().filter_map(|(_, line)| entry(line)).any(|(key, _)| key == "bwIn")
}

/// Parses [`Format::ConnectivityIni`].
pub(crate) fn connectivity_ini(file: &File<'_>, options: &ReadOptions) -> Result<Trace, TraceError> {
    let lines: Vec<_> = file.lines().filter(|(_, line)| !line.starts_with([';', '#'])).collect();
    let rates = lines.iter().filter_map(|(_, line)| entry(line)).filter(|(key, _)| *key == "bwIn").count();
    if rates > 1 {
        let named = lines.iter().filter_map(|(_, line)| section(line)).filter(|name| is_name(name));
        let names: Vec<_> = named.take(12).collect();
        let expected = "one profile: keep the section that is wanted in a file of its own";
        return Err(file.error(None, format!("{rates} profiles ({})", names.join(", ")), expected));
    }
    let number = |wanted: &str| {
        let line = lines.iter().find_map(|&(line, text)| {
            entry(text).filter(|(key, _)| *key == wanted).map(|(_, value)| (line, value))
        });
        line.map(|(line, value)| {
            value.parse::<f64>().map_err(|_| file.line_error(line, value, format!("{wanted}: a number")))
        })
        .transpose()
    };
    let key = if options.direction == Some(Direction::Up) { "bwOut" } else { "bwIn" };
    let bps = number(key)?.ok_or_else(|| file.error(None, format!("no {key}"), "bwIn and bwOut in bit/s"))?;
    let rate = rate(bps, 1.0).filter(|&rate| rate.as_bps() > 0);
    let rate = rate.ok_or_else(|| file.error(Some(key.to_owned()), format!("{bps} bit/s"), "more than 0"))?;
    let delay = number("latency")?.map(|millis| half(file, "latency", millis)).transpose()?;
    let loss = number("plr")?.map(|percent| json::fraction(file, "plr", percent, 0.01)).transpose()?;
    Trace::from_stretches(file, vec![Stretch { length: PERIOD, rate, loss, delay }])
}

/// Whether the name of a section may be repeated in an error.
fn is_name(name: &str) -> bool {
    name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ._-".contains(&byte))
}
