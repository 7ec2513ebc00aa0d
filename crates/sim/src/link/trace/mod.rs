//! Recorded and generated networks that a link plays: parsers and writers for the formats in use.
//!
//! A parser takes the bytes of a file and its name. Each of its errors has the position, the value found there and
//! the expected one. In every format a trace repeats at its end.

mod bins;
mod csv;
mod json;
mod plain;
mod play;
mod profiles;
mod rows;
mod text;
mod write;

use crate::link::LinkSettings;
use crate::link::capacity::{Brownian, BrownianSettings, Instants, OpportunityTrace, Server, Steps};
use crate::link::loss::Loss;
use crate::link::phases::Phases;
use crate::refusal::Refusal;
use tidegate_core::{Rate, Span, Stream, Time};

/// An error of a file that is not a valid trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The name of the file.
    pub file: String,
    /// The line or entry, if the error has one.
    pub place: Option<String>,
    /// The value found there.
    pub found: String,
    /// A description of the right values.
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
    /// One delivery opportunity a line, in milliseconds (mahimahi, Pantheon, NYC LTE).
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
    /// CSV with `time_s` or `time_ms` and `rate_bps`, `rate_kbps` or `rate_mbps`, and optionally `loss` (a
    /// fraction) and `delay_ms` (one way). A comment `# duration_s=...` gives the length.
    Csv,
    /// Two columns, milliseconds and kbit/s (Oboe); otherwise as [`Format::SecondsMbps`].
    MillisecondsKbps,
    /// A list of `duration_ms`, `bandwidth_kbps` and `latency_ms` (Sabre). The latency is the time from a request to
    /// the first bit of its answer (`do_latency_delay` of `sabre.py`): a round trip, and twice the one-way delay.
    Sabre,
    /// The log of `mm-link --uplink-log` or `--downlink-log`, of which the delivery opportunities (`#`) are read.
    MmLinkLog,
    /// `intervals` of `iperf3 -J`: the rate of the receiver where the file has it.
    Iperf3,
    /// A throttling profile of Chrome DevTools (`download` and `upload` in byte/s) or Lighthouse (in kbit/s): one rate.
    /// Its latency counts as a round trip.
    DevTools,
    /// `connectivity.ini` of WebPageTest with one profile: `bwIn` and `bwOut` in bit/s, `latency` in ms as a round trip,
    /// `plr` in per cent.
    ConnectivityIni,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 15] = [
        Self::Mahimahi,
        Self::SecondsMbps,
        Self::DataRatePattern,
        Self::OpenNetLab,
        Self::PantheonPath,
        Self::PionPhases,
        Self::Raca,
        Self::Lumos,
        Self::Csv,
        Self::MillisecondsKbps,
        Self::Sabre,
        Self::MmLinkLog,
        Self::Iperf3,
        Self::DevTools,
        Self::ConnectivityIni,
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
            Self::MillisecondsKbps => "milliseconds-kbps",
            Self::Sabre => "sabre",
            Self::MmLinkLog => "mm-link-log",
            Self::Iperf3 => "iperf3",
            Self::DevTools => "devtools",
            Self::ConnectivityIni => "connectivity-ini",
        }
    }

    /// The names of all formats, for errors.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

/// A direction of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards the user.
    Down,
    /// From the user.
    Up,
}

/// Options for properties that a file leaves open.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReadOptions {
    /// Samples per second of a data rate pattern that does not give them.
    pub frequency: Option<f64>,
    /// Rate to which capacity ratios refer.
    pub reference: Option<Rate>,
    /// Direction to take of a file with two; `None`: the one that the format's own users take (downlink for
    /// [`Format::Raca`] and the profiles, uplink for [`Format::OpenNetLab`], the received one for [`Format::Iperf3`]).
    pub direction: Option<Direction>,
}

/// The capacity of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Delivery opportunities: instants at which a number of bytes can leave.
    Opportunities(OpportunityTrace),
    /// A changing rate; always with a period.
    Rates(Steps),
}

/// A capacity over time, with losses and delays if the file has them. It repeats at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The name of its file, or of its generator.
    pub name: String,
    /// The capacity.
    pub capacity: Capacity,
    /// Losses over time.
    pub loss: Option<Phases<Loss>>,
    /// One-way delay over time.
    pub delay: Option<Phases<Span>>,
    /// Choices of its parser that the file leaves open or contradicts, as sentences.
    pub remarks: Vec<String>,
}

/// A stretch of time with constant properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) length: Span,
    pub(crate) rate: Rate,
    pub(crate) loss: Option<f64>,
    pub(crate) delay: Option<Span>,
}

impl Trace {
    /// Detects the format of the file `name` with these `bytes`.
    ///
    /// # Errors
    /// When the format is unknown, or cannot be told from another.
    pub fn sniff(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Format, TraceError> {
        Ok(Detected::of(&File::new(name, bytes)?, options)?.format)
    }

    /// Parses the file `name` with these `bytes`, and detects its format.
    ///
    /// # Errors
    /// When the format is unknown, or the file is invalid in it.
    pub fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<(Format, Self), TraceError> {
        let Detected { format, remark } = Detected::of(&File::new(name, bytes)?, options)?;
        let mut trace = Self::read_as(format, name, bytes, options).map_err(|error| {
            // a person who did not choose the format has to know in which one the file is wrong
            let place = error.place.map_or(String::new(), |place| format!(", {place}"));
            TraceError { place: Some(format!("{}{place}", format.name())), ..error }
        })?;
        trace.remarks.splice(0..0, remark);
        Ok((format, trace))
    }

    /// Parses the file `name` with these `bytes` as `format`.
    ///
    /// # Errors
    /// When the file is invalid in this format.
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
            Format::MillisecondsKbps => text::milliseconds_kbps(&file),
            Format::Sabre => json::sabre(&file),
            Format::MmLinkLog => text::mm_link_log(&file),
            Format::Iperf3 => json::iperf3(&file, options),
            Format::DevTools => profiles::devtools(&file, options),
            Format::ConnectivityIni => profiles::connectivity_ini(&file, options),
        }
    }

    /// Generates a trace of `duration` from the Brownian rate process of `settings`, in whole milliseconds rounded
    /// up. The last opportunity is moved to the end, because a recording repeats at its last opportunity.
    ///
    /// # Errors
    /// When a setting is out of its range, the duration is not between 1 ms and 49 days, or it has no
    /// opportunity.
    pub fn generate_brownian(settings: BrownianSettings, seed: u64, duration: Span) -> Result<Self, Refusal> {
        settings.check()?;
        let end = u32::try_from(duration.as_nanos() / 1_000_000).unwrap_or(0);
        crate::refusal::ensure(end > 0, || Refusal::new("duration", duration, "1 ms to 49 days"))?;
        let mut process = Brownian::new(settings, Stream::new(seed, "trace", "service"));
        let mut millis = Vec::new();
        loop {
            let nanos = process.next();
            if nanos > i64::from(end) * 1_000_000 {
                break;
            }
            millis.push(((nanos + 999_999) / 1_000_000) as u32);
        }
        let last = millis.last_mut();
        *last.ok_or_else(|| format!("the trace is one outage of {duration}: no packet can be sent"))? = end;
        Self::of_opportunities(format!("brownian, seed {seed}"), millis, settings.bytes)
    }

    /// A trace of opportunities of `bytes` at these milliseconds, the last of which ends the trace.
    ///
    /// # Errors
    /// When there is no opportunity, or they are not in order of time.
    pub fn of_opportunities(name: String, millis: Vec<u32>, bytes: u32) -> Result<Self, Refusal> {
        let capacity = Capacity::Opportunities(OpportunityTrace::new(millis, bytes)?);
        Ok(Self { name, capacity, loss: None, delay: None, remarks: Vec::new() })
    }

    /// Time after which it repeats.
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

    /// The transmitter of a link that follows the trace.
    #[must_use]
    pub fn server(&self) -> Server {
        match &self.capacity {
            Capacity::Opportunities(list) => Server::opportunities(list.clone()),
            Capacity::Rates(steps) => Server::schedule(steps.clone()),
        }
    }

    /// The settings of a link that follows the trace, from its `base` settings: delays of the trace are added to those
    /// of `base`, losses apply where `base` has none. A queue limit in time is not computed from the mean of an outlier.
    ///
    /// # Errors
    /// If the trace has delays and those of `base` change over time, too.
    pub fn link(&self, base: LinkSettings) -> Result<LinkSettings, Refusal> {
        let delay = match (&self.delay, base.delay.phases()) {
            (None, _) => base.delay,
            (Some(traced), &[(_, base_delay)]) => traced.map(|&extra| base_delay + extra),
            _ => {
                return Err(
                    "the delay changes over time; with a trace that has delays it must be constant".into()
                );
            }
        };
        let loss = match &self.loss {
            Some(traced) if base.loss == Phases::default() => traced.clone(),
            _ => base.loss,
        };
        let nominal = base.nominal.or_else(|| self.outlying());
        Ok(LinkSettings { server: self.server(), nominal, delay, loss, ..base })
    }

    /// A trace of successive stretches. It has losses or delays if any stretch has them.
    fn from_stretches(file: &File<'_>, stretches: Vec<Stretch>) -> Result<Self, TraceError> {
        let mut begin = Time::ZERO;
        let any_stretch = |has: fn(&Stretch) -> bool| stretches.iter().any(has);
        // columns that the file does not have take no memory
        let mut losses = any_stretch(|stretch| stretch.loss.is_some()).then(Vec::new);
        let mut delays = any_stretch(|stretch| stretch.delay.is_some()).then(Vec::new);
        let mut rates = Vec::new();
        for stretch in stretches.into_iter().filter(|stretch| stretch.length > Span::ZERO) {
            // each stretch may be that long, but a sum of them would not fit into nanoseconds, nor be parsed again
            if LONGEST - (begin - Time::ZERO) < stretch.length {
                let found = "rows with a total duration of more than 49 days";
                return Err(file.error(None, found, "at most 49 days; are the times in another unit?"));
            }
            rates.push((begin, stretch.rate));
            if let Some(losses) = &mut losses {
                let loss = stretch.loss.filter(|&p| p > 0.0).map_or(Loss::None, Loss::Bernoulli);
                losses.push((begin, loss));
            }
            if let Some(delays) = &mut delays {
                delays.push((begin, stretch.delay.unwrap_or_default()));
            }
            begin += stretch.length;
        }
        let period = Some(begin - Time::ZERO);
        // the times increase: only the first one can be missing
        let wrong = |_| file.error(None, "no duration", "at least one row that lasts longer than 0 s");
        Ok(Self {
            name: file.name.to_owned(),
            capacity: Capacity::Rates(Steps::new(&rates, period).map_err(wrong)?),
            loss: losses.map(|losses| Phases::new(losses, period)).transpose().map_err(wrong)?,
            delay: delays.map(|delays| Phases::new(delays, period)).transpose().map_err(wrong)?,
            remarks: Vec::new(),
        })
    }
}

/// A detected format, and a remark on the way in which it was told from another.
struct Detected {
    format: Format,
    remark: Option<String>,
}

impl Detected {
    fn of(file: &File<'_>, options: &ReadOptions) -> Result<Self, TraceError> {
        let sure = |format| Self { format, remark: None };
        match file.text.trim_start().as_bytes().first() {
            _ if profiles::is_ini(file) => Ok(sure(Format::ConnectivityIni)),
            Some(b'{' | b'[') => json::sniff(file).map(sure),
            _ => match csv::sniff(file)? {
                Some(format) => Ok(sure(format)),
                None => text::sniff(file, options),
            },
        }
    }
}

/// A file to be parsed as a trace.
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
                found: "a byte that is not UTF-8".to_owned(),
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

    /// The lines that are not empty, with their numbers from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        lines.filter(|(_, line)| !line.is_empty())
    }

    /// The part of line `number` that `cell` takes from it, for an error.
    pub(crate) fn cell(&self, number: usize, cell: impl Fn(&'a str) -> Option<&'a str>) -> String {
        let line = self.text.lines().nth(number.saturating_sub(1)).unwrap_or_default();
        cell(line).unwrap_or_default().trim().to_owned()
    }

    pub(crate) fn line_error(&self, line: usize, found: &str, expected: impl Into<String>) -> TraceError {
        self.error(Some(format!("line {line}")), describe(found), expected)
    }
}

/// A description of the text found, for an error. A file that was mistaken for a trace may hold anything, a password or
/// a key, and errors go to logs and screens. So only the text of a trace is repeated: numbers and their separators.
fn describe(found: &str) -> String {
    const LONGEST: usize = 40;
    /// Too short for a password: the odd "x" or "nan" of a file of numbers.
    const HARMLESS: usize = 3;
    let numeric = |c: char| {
        c.is_ascii_digit() || matches!(c, ' ' | '\t' | '.' | ',' | '-' | '+' | 'e' | 'E' | '_' | ':')
    };
    if found.is_empty() {
        return "nothing".to_owned();
    }
    let harmless = found.len() <= HARMLESS && found.bytes().all(|byte| byte.is_ascii_graphic());
    if harmless || found.len() <= LONGEST && found.chars().all(numeric) {
        return format!("\"{found}\"");
    }
    let count = found.chars().count();
    if count == 1 {
        return "1 character that is not a number".to_owned();
    }
    format!("{count} characters that are not a number")
}

/// A rate of `value` times `unit` bit/s, if a link may have that rate.
pub(crate) fn rate(value: f64, unit: f64) -> Option<Rate> {
    // 10 Tbit/s: more is a wrong unit
    (value >= 0.0 && value * unit <= 1e13).then(|| Rate::from_bps_f64(value * unit))
}

/// Length of the longest trace, 49 days: the milliseconds of mahimahi's format have 32 bits. A longer one has a wrong
/// unit, and its series in bins of a second would not fit into memory.
const LONGEST: Span = Span::from_millis(u32::MAX as i64);

/// A length of `value` times `unit` seconds, if it is not negative and no longer than the longest trace.
pub(crate) fn span(value: f64, unit: f64) -> Option<Span> {
    (value >= 0.0 && value * unit <= LONGEST.as_secs_f64()).then(|| Span::from_secs_f64(value * unit))
}

/// A length written as a decimal number of `unit`, to the nearest nanosecond, within the bounds of [`span`].
pub(crate) fn span_of(text: &str, unit: Span) -> Option<Span> {
    moment_of(text, unit).filter(|&length| length <= LONGEST)
}

/// A time written as a decimal number of `unit`, to the nearest nanosecond: from zero to the year 2255 as a Unix time.
/// The digits before the point are parsed separately: a floating-point number is not precise enough for the nanoseconds
/// of 104 days.
pub(crate) fn moment_of(text: &str, unit: Span) -> Option<Span> {
    let parts = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.0.is_empty() || !all_digits(parts.0) || !all_digits(parts.1) {
        // an exponent, a sign, no digit before the point, or no number
        return moment(text.parse().ok()?, unit.as_secs_f64());
    }
    let whole_nanos = parts.0.parse::<i64>().ok()?.checked_mul(unit.as_nanos())?;
    let fraction = format!("0.{}", parts.1).parse::<f64>().ok()? * unit.as_nanos() as f64;
    let nanos = whole_nanos.checked_add(fraction.round() as i64)?;
    (nanos <= LATEST.as_nanos()).then(|| Span::from_nanos(nanos))
}

/// A time of `value` times `unit` seconds, within the bounds of [`moment_of`].
pub(crate) fn moment(value: f64, unit: f64) -> Option<Span> {
    (value >= 0.0 && value * unit <= LATEST.as_secs_f64()).then(|| Span::from_secs_f64(value * unit))
}

/// The latest time: sums of it and the longest trace fit into nanoseconds.
const LATEST: Span = Span::from_secs(9_000_000_000);
