//! Recorded and generated networks that a link plays: readers and writers for the formats in use.
//!
//! A reader takes the bytes of a file and its name, and says in every error where it stands, what it
//! found and what would be right. Whatever the format, a trace repeats at its end.

mod csv;
mod json;
mod plain;
mod play;
mod text;
mod write;

use crate::link::LinkSettings;
use crate::link::capacity::{Brownian, BrownianSettings, Instants, Recorded, Server, Steps};
use crate::link::loss::Loss;
use crate::link::phases::Phases;
use crate::refusal::Refusal;
use tidegate_core::{Rate, Span, Stream, Time};

/// A file that cannot be read as a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The name of the file.
    pub file: String,
    /// The line or entry, if the trouble has one.
    pub place: Option<String>,
    /// What was found there.
    pub found: String,
    /// What would be right.
    pub expected: String,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, place, found, expected } = self;
        match place {
            Some(place) => write!(f, "{file}, {place}: found {found}; expected {expected}"),
            None => write!(f, "{file}: found {found}; expected {expected}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// A file format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One opportunity a line, in milliseconds (mahimahi, Pantheon, NYC LTE).
    Mahimahi,
    /// Two columns, seconds and Mbit/s (Pensieve, Genet, SIGCOMM 2021 5G). A rate holds from its time on
    /// until the next one; times count from the first row.
    SecondsMbps,
    /// One capacity a line in kbit/s at a fixed frequency, `#` comments (Deutsche Telekom aml-jens).
    DataRatePattern,
    /// `uplink.trace_pattern` with durations in ms and capacities in kbit/s (AlphaRTC, OpenNetLab).
    /// Its `loss` is a fraction: the gym's own test compares it with lost / sent. Its `rtt` in ms counts
    /// as twice the one-way delay.
    OpenNetLab,
    /// `timestamps` in s, `bandwidths` in Mbit/s, `delays` in ms, `loss` as a fraction (Genet's Pantheon
    /// paths).
    PantheonPath,
    /// Phases of `DurationSeconds`, `CapacityRatio` and `DataLossRate` in per cent (pion bwe-test); needs
    /// [`ReadOptions::reference`].
    PionPhases,
    /// CSV with `Timestamp`, `DL_bitrate` and `UL_bitrate` in kbit/s (Raca et al., 4G and 5G production
    /// datasets); rows of the same second are averaged. Half of the last `PINGMIN` is the one-way delay.
    Raca,
    /// CSV with one row a video chunk, `app_throughput` in kbit/s over `delivery_time` in s (Lumos).
    Lumos,
    /// CSV with `time_s` or `time_ms` and `rate_bps`, `rate_kbps` or `rate_mbps`, and if wanted `loss` (a
    /// fraction) and `delay_ms` (one way). A comment `# duration_s=...` tells the length.
    Csv,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Mahimahi,
        Self::SecondsMbps,
        Self::DataRatePattern,
        Self::OpenNetLab,
        Self::PantheonPath,
        Self::PionPhases,
        Self::Raca,
        Self::Lumos,
        Self::Csv,
    ];

    /// The name used in scenarios and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mahimahi => "mahimahi",
            Self::SecondsMbps => "seconds-mbps",
            Self::DataRatePattern => "data-rate-pattern",
            Self::OpenNetLab => "opennetlab",
            Self::PantheonPath => "pantheon-path",
            Self::PionPhases => "pion-phases",
            Self::Raca => "raca",
            Self::Lumos => "lumos",
            Self::Csv => "csv",
        }
    }
}

/// Which way of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards the user.
    Down,
    /// From the user.
    Up,
}

/// What a file leaves open.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReadOptions {
    /// Samples per second of a data rate pattern that does not say itself.
    pub frequency: Option<f64>,
    /// What ratios refer to.
    pub reference: Option<Rate>,
    /// Which way to take of a file with two; `None`: what the format's own users take (downlink for
    /// [`Format::Raca`], uplink for [`Format::OpenNetLab`]).
    pub direction: Option<Direction>,
}

/// What a trace says of the capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Instants at which so many bytes can leave.
    Opportunities(Recorded),
    /// A rate that changes; always with a period.
    Rates(Steps),
}

/// A capacity over time, with what else a file may tell of the path. It repeats at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it comes from.
    pub name: String,
    /// The capacity.
    pub capacity: Capacity,
    /// Losses over time.
    pub loss: Option<Phases<Loss>>,
    /// One-way delay over time.
    pub delay: Option<Phases<Span>>,
}

/// A stretch of time in which nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) length: Span,
    pub(crate) rate: Rate,
    pub(crate) loss: Option<f64>,
    pub(crate) delay: Option<Span>,
}

impl Trace {
    /// What format the file `name` with these `bytes` is in.
    ///
    /// # Errors
    /// When it is none that is known.
    pub fn sniff(name: &str, bytes: &[u8]) -> Result<Format, TraceError> {
        let file = File::new(name, bytes)?;
        match file.text.trim_start().as_bytes().first() {
            Some(b'{' | b'[') => json::sniff(&file),
            _ => csv::sniff(&file).map_or_else(|| text::sniff(&file), Ok),
        }
    }

    /// Reads the file `name` with these `bytes` in whatever format it is.
    ///
    /// # Errors
    /// When it is in no known format, or is wrong in it.
    pub fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Self, TraceError> {
        Self::read_as(Self::sniff(name, bytes)?, name, bytes, options)
    }

    /// Reads the file `name` with these `bytes` as `format`.
    ///
    /// # Errors
    /// When it is wrong in this format.
    pub fn read_as(
        format: Format,
        name: &str,
        bytes: &[u8],
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let file = File::new(name, bytes)?;
        match format {
            Format::Mahimahi => text::mahimahi(&file),
            Format::SecondsMbps => text::seconds_mbps(&file),
            Format::DataRatePattern => text::data_rate_pattern(&file, options),
            Format::OpenNetLab => json::opennetlab(&file, options),
            Format::PantheonPath => json::pantheon_path(&file),
            Format::PionPhases => json::pion_phases(&file, options),
            Format::Raca => csv::raca(&file, options),
            Format::Lumos => csv::lumos(&file),
            Format::Csv => csv::generic(&file),
        }
    }

    /// A recording of `duration` of the Brownian rate process of `settings`, in whole milliseconds rounded
    /// up; its last opportunity is moved to its end, because that is where a recording repeats.
    ///
    /// # Errors
    /// When a setting is out of its range, the duration is not between 1 ms and 49 days, or there is no
    /// opportunity at all in it.
    pub fn generate_brownian(settings: BrownianSettings, seed: u64, duration: Span) -> Result<Self, Refusal> {
        settings.check()?;
        let end = u32::try_from(duration.as_nanos() / 1_000_000).unwrap_or(0);
        crate::refusal::ensure(end > 0, || Refusal::new("duration", duration, "1 ms to 49 days"))?;
        let mut process = Brownian::new(settings, Stream::new(seed, "trace", "service"));
        let mut millis = Vec::new();
        loop {
            let at = process.next();
            if at > i64::from(end) * 1_000_000 {
                break;
            }
            millis.push(((at + 999_999) / 1_000_000) as u32);
        }
        let last = millis.last_mut();
        *last.ok_or_else(|| format!("one outage of {duration}: nothing can be sent"))? = end;
        Self::of_opportunities(format!("brownian, seed {seed}"), millis, settings.bytes)
    }

    /// Opportunities of `bytes` at these milliseconds, the last of which ends the trace.
    ///
    /// # Errors
    /// When there is none, or they are not in order of time.
    pub fn of_opportunities(name: String, millis: Vec<u32>, bytes: u32) -> Result<Self, Refusal> {
        let capacity = Capacity::Opportunities(Recorded::new(millis, bytes)?);
        Ok(Self { name, capacity, loss: None, delay: None })
    }

    /// After how long it repeats.
    #[must_use]
    pub fn duration(&self) -> Span {
        match &self.capacity {
            Capacity::Opportunities(list) => list.period(),
            Capacity::Rates(steps) => steps.period().unwrap_or(Span::MAX),
        }
    }

    /// The mean capacity.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        match &self.capacity {
            Capacity::Opportunities(list) => list.mean_rate(),
            Capacity::Rates(steps) => steps.nominal_rate(),
        }
    }

    /// The transmitter of a link that follows it.
    #[must_use]
    pub fn server(&self) -> Server {
        match &self.capacity {
            Capacity::Opportunities(list) => Server::opportunities(list.clone()),
            Capacity::Rates(steps) => Server::schedule(steps.clone()),
        }
    }

    /// A link that follows it and is `plain` otherwise: delays that the trace tells come on top of the link's, losses
    /// hold where the link has none of its own.
    ///
    /// # Errors
    /// If the trace tells delays and those of the link change, too.
    pub fn link(&self, plain: LinkSettings) -> Result<LinkSettings, Refusal> {
        let delay = match (&self.delay, plain.delay.phases()) {
            (None, _) => plain.delay,
            (Some(told), &[(_, own)]) => told.map(|&more| own + more),
            _ => return Err("delays that change beside a trace that tells delays".into()),
        };
        let loss = match &self.loss {
            Some(told) if plain.loss == Phases::default() => told.clone(),
            _ => plain.loss,
        };
        Ok(LinkSettings { server: self.server(), delay, loss, ..plain })
    }

    /// One stretch after the other. Losses and delays count as told if any stretch tells them.
    fn from_stretches(file: &File<'_>, stretches: &[Stretch]) -> Result<Self, TraceError> {
        let mut at = Time::ZERO;
        let (mut rates, mut losses, mut delays) = (Vec::new(), Vec::new(), Vec::new());
        for stretch in stretches.iter().filter(|stretch| stretch.length > Span::ZERO) {
            // each stretch may be that long, and a sum of them would not fit into nanoseconds, nor be read again
            if LONGEST - (at - Time::ZERO) < stretch.length {
                let found = "rows that last more than 10^9 s together";
                return Err(file.error(
                    None,
                    found,
                    "at most 10^9 s, which are 31 years; are the times in another unit?",
                ));
            }
            rates.push((at, stretch.rate));
            losses.push((at, stretch.loss.filter(|&p| p > 0.0).map_or(Loss::None, Loss::Bernoulli)));
            delays.push((at, stretch.delay.unwrap_or_default()));
            at += stretch.length;
        }
        let period = Some(at - Time::ZERO);
        let wrong =
            |wrong: Refusal| file.error(None, wrong.to_string(), "a trace with at least one stretch of time");
        let told = |tells: fn(&Stretch) -> bool| stretches.iter().any(tells);
        Ok(Self {
            name: file.name.to_owned(),
            capacity: Capacity::Rates(Steps::new(&rates, period).map_err(wrong)?),
            loss: told(|stretch| stretch.loss.is_some())
                .then(|| Phases::new(losses, period))
                .transpose()
                .map_err(wrong)?,
            delay: told(|stretch| stretch.delay.is_some())
                .then(|| Phases::new(delays, period))
                .transpose()
                .map_err(wrong)?,
        })
    }
}

/// A file on its way to become a trace.
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl<'a> File<'a> {
    fn new(name: &'a str, bytes: &'a [u8]) -> Result<Self, TraceError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text: text.trim_start_matches('\u{feff}') }),
            Err(error) => Err(TraceError {
                file: name.to_owned(),
                place: Some(format!("byte {}", error.valid_up_to() + 1)),
                found: "what is not UTF-8".to_owned(),
                expected: "a text file (unpacked, if it was compressed)".to_owned(),
            }),
        }
    }

    pub(crate) fn error(
        &self,
        place: Option<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> TraceError {
        TraceError { file: self.name.to_owned(), place, found: found.into(), expected: expected.into() }
    }

    /// Lines that are not empty, with their numbers from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        let lines = self.text.lines().enumerate().map(|(place, line)| (place + 1, line.trim()));
        lines.filter(|(_, line)| !line.is_empty())
    }

    pub(crate) fn line_error(&self, line: usize, found: &str, expected: impl Into<String>) -> TraceError {
        self.error(Some(format!("line {line}")), shown(found), expected)
    }
}

/// What was found, for an error. A file that somebody took for a trace may hold anything, a password or a key, and
/// an error goes to logs and screens: so only what a trace is made of is repeated, numbers and what stands between them.
fn shown(found: &str) -> String {
    const LONGEST: usize = 40;
    let numeric = |c: char| {
        c.is_ascii_digit() || matches!(c, ' ' | '\t' | '.' | ',' | '-' | '+' | 'e' | 'E' | '_' | ':')
    };
    if found.is_empty() {
        return "nothing".to_owned();
    }
    if found.len() <= LONGEST && found.chars().all(numeric) {
        return format!("\"{found}\"");
    }
    let count = found.chars().count();
    if count == 1 {
        return "1 character that is no number".to_owned();
    }
    format!("{count} characters that are no numbers")
}

/// A rate of `value` times `unit` bit/s, if that is a rate a link may have.
pub(crate) fn rate(value: f64, unit: f64) -> Option<Rate> {
    // 10 Tbit/s: more is a wrong unit
    (value >= 0.0 && value * unit <= 1e13).then(|| Rate::from_bps_f64(value * unit))
}

/// The longest trace: 31 years. More is a wrong unit.
const LONGEST: Span = Span::from_secs(1_000_000_000);

/// A length of `value` times `unit` seconds, if it is not negative and no longer than the longest trace.
pub(crate) fn span(value: f64, unit: f64) -> Option<Span> {
    (value >= 0.0 && value * unit <= LONGEST.as_secs_f64()).then(|| Span::from_secs_f64(value * unit))
}

/// A length written as a decimal number of `unit`, to the nearest nanosecond, within the bounds of [`span`]. What stands
/// before the point is read by itself: one floating-point number has no room for the nanoseconds of 104 days.
pub(crate) fn span_of(text: &str, unit: Span) -> Option<Span> {
    let parts = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.0.is_empty() || !all_digits(parts.0) || !all_digits(parts.1) {
        // an exponent, a sign, nothing before the point, or no number
        return span(text.parse().ok()?, unit.as_secs_f64());
    }
    let whole = parts.0.parse::<i64>().ok()?.checked_mul(unit.as_nanos())?;
    let fraction = format!("0.{}", parts.1).parse::<f64>().ok()? * unit.as_nanos() as f64;
    let nanos = whole.checked_add(fraction.round() as i64)?;
    (nanos <= LONGEST.as_nanos()).then(|| Span::from_nanos(nanos))
}

/// A row of a table in which each row holds until the time of the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) line: usize,
    pub(crate) at: Span,
    pub(crate) rate: Rate,
    pub(crate) loss: Option<f64>,
    pub(crate) delay: Option<Span>,
}

/// Rows as stretches. Rows of the same time are averaged in rate (their last loss and delay count); the
/// last one lasts until `end`, or else as long as the median one.
pub(crate) fn stretches(
    file: &File<'_>,
    rows: &[Row],
    end: Option<Span>,
) -> Result<Vec<Stretch>, TraceError> {
    let mut merged: Vec<(Row, u64)> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some((last, _)) if row.at < last.at => {
                let found = format!("{} s", row.at.as_secs_f64());
                let expected =
                    format!("a time not before {} s, that of the row above", last.at.as_secs_f64());
                return Err(file.error(Some(format!("line {}", row.line)), found, expected));
            }
            Some((last, count)) if row.at == last.at => {
                *last = Row { rate: last.rate + row.rate, ..*row };
                *count += 1;
            }
            _ => merged.push((*row, 1)),
        }
    }
    let mut gaps: Vec<Span> = merged.windows(2).map(|pair| pair[1].0.at - pair[0].0.at).collect();
    let lengths = gaps.clone();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(Span::from_secs(1));
    merged
        .iter()
        .enumerate()
        .map(|(place, (row, count))| {
            let length = match (lengths.get(place), end) {
                (Some(&length), _) => length,
                (None, None) => usual,
                (None, Some(end)) if end > row.at => end - row.at,
                (None, Some(end)) => {
                    let found = format!("a duration of {} s", end.as_secs_f64());
                    return Err(file.error(None, found, format!("more than {} s", row.at.as_secs_f64())));
                }
            };
            let rate = Rate::from_bps(row.rate.as_bps() / count);
            Ok(Stretch { length, rate, loss: row.loss, delay: row.delay })
        })
        .collect()
}
