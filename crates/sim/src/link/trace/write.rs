//! Writers of traces: mahimahi's format and CSV.

use super::{Capacity, Trace};
use crate::link::capacity::{MAHIMAHI_BYTES, Schedule};
use crate::link::loss::Loss;
use crate::refusal::{Refusal, ensure};
use std::fmt::Write as _;
use tidegate_core::{Rate, Size, Span, Time};

/// Largest number of rows of a file, which then has some 200 MB: an hour of opportunities at 60 Mbit/s.
const MAX_ROWS: u64 = 20_000_000;

const SECOND: Span = Span::from_secs(1);

/// Formats a length of time, which must not be negative, as a decimal number of `unit`, a power of ten of nanoseconds:
/// exact and without trailing zeros.
fn decimal(length: Span, unit: Span) -> String {
    let (nanos, unit) = (length.as_nanos(), unit.as_nanos());
    let text = format!("{}.{:0places$}", nanos / unit, nanos % unit, places = unit.ilog10() as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Trace {
    /// Writes the trace as a mahimahi file: one opportunity of 1504 bytes a line, in milliseconds rounded up. A rate
    /// gives an opportunity whenever its bytes have accumulated; the last one is put at the end of the trace,
    /// because mahimahi repeats it there. The mean rate changes by at most one opportunity and the
    /// rounding of the duration. The format has no losses and delays.
    ///
    /// # Errors
    /// When its opportunities are not of 1504 bytes, or it carries less than half an opportunity or more than 20
    /// million of them.
    pub fn to_mahimahi(&self) -> Result<String, Refusal> {
        let mut text = String::new();
        match &self.capacity {
            Capacity::Opportunities(list) => {
                ensure(list.bytes() == MAHIMAHI_BYTES, || {
                    format!(
                        "the trace has opportunities of {} bytes; mahimahi needs {MAHIMAHI_BYTES} bytes",
                        list.bytes()
                    )
                })?;
                for millis in list.millis() {
                    _ = writeln!(text, "{millis}");
                }
            }
            Capacity::Rates(steps) => {
                let opportunity = Size::from_bytes(u64::from(MAHIMAHI_BYTES));
                let total = self.mean_rate().bytes_in(self.duration());
                let count = (total + Size::from_bytes(opportunity.as_bytes() / 2)).as_bytes()
                    / opportunity.as_bytes();
                ensure((1..=MAX_ROWS).contains(&count), || {
                    format!(
                        "{}: {total} make {count} opportunities; a file can have 1 to 20 million",
                        self.name
                    )
                })?;
                let mut link = Schedule::new(steps.clone());
                let end = (self.duration().as_nanos() + 999_999) / 1_000_000;
                for _ in 1..count {
                    let nanos = link.serve(Time::ZERO, MAHIMAHI_BYTES).finish.as_nanos();
                    _ = writeln!(text, "{}", ((nanos + 999_999) / 1_000_000).min(end));
                }
                _ = writeln!(text, "{end}");
            }
        }
        Ok(text)
    }

    /// Writes the trace as CSV with `time_s`, `rate_bps`, and `loss` and `delay_ms` where the trace has them. A
    /// schedule of rates is written exactly; opportunities as the mean rate in each `bin`.
    ///
    /// # Errors
    /// When the bin is not positive, the trace has more than 20 million of them, or a loss model has no single
    /// probability.
    pub fn to_csv(&self, bin: Span) -> Result<String, Refusal> {
        ensure(bin > Span::ZERO, || Refusal::new("bin", bin, "more than zero"))?;
        let bins = self.duration().as_nanos().unsigned_abs() / bin.as_nanos().unsigned_abs();
        let binned = matches!(self.capacity, Capacity::Opportunities(_));
        ensure(!binned || bins <= MAX_ROWS, || {
            format!(
                "{}: {} has {bins} bins of {bin}: a file can have 20 million rows",
                self.name,
                self.duration()
            )
        })?;
        let rates: Vec<(Time, Rate)> = match &self.capacity {
            Capacity::Rates(steps) => steps.rates().collect(),
            Capacity::Opportunities(_) => self.binned(bin),
        };
        // a row at every change
        let mut times: Vec<Time> = rates.iter().map(|&(time, _)| time).collect();
        times.extend(self.loss.iter().flat_map(|loss| loss.phases()).map(|(time, _)| *time));
        times.extend(self.delay.iter().flat_map(|delay| delay.phases()).map(|(time, _)| *time));
        times.sort_unstable();
        times.dedup();

        let (mut loss, mut delay) = (self.loss.clone(), self.delay.clone());
        let mut text = format!(
            "# {}\n# duration_s={}\n",
            self.name.replace(['\r', '\n'], " "),
            decimal(self.duration(), SECOND)
        );
        text.push_str("time_s,rate_bps");
        text.push_str(if loss.is_some() { ",loss" } else { "" });
        text.push_str(if delay.is_some() { ",delay_ms\n" } else { "\n" });
        let mut index = 0;
        for time in times {
            while rates.get(index + 1).is_some_and(|&(next, _)| next <= time) {
                index += 1;
            }
            _ = write!(text, "{},{}", decimal(time - Time::ZERO, SECOND), rates[index].1.as_bps());
            if let Some(loss) = &mut loss {
                let probability = match *loss.at(time) {
                    Loss::None => 0.0,
                    Loss::Bernoulli(p) => p,
                    Loss::GilbertElliott(_) => {
                        return Err("CSV has one probability of loss and cannot describe bursts".into());
                    }
                };
                _ = write!(text, ",{probability}");
            }
            if let Some(delay) = &mut delay {
                _ = write!(text, ",{}", decimal(*delay.at(time), Span::from_millis(1)));
            }
            text.push('\n');
        }
        Ok(text)
    }
}
