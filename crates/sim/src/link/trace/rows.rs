//! Rows of tables with times: put in order, counted from the first, and made stretches.

use super::{File, LONGEST, Stretch, Trace, TraceError, describe};
use tidegate_core::{Rate, Span};

/// The longest step back in time that is put in order: stamps of whole seconds, as those of [`super::Format::Raca`],
/// step back by one when the clock is corrected within it.
const STEP_BACK: Span = Span::from_secs(1);

/// 2001-09-09 to 2286: a first time of so many seconds is a Unix time.
const UNIX_TIMES: std::ops::Range<i64> = 1_000_000_000..10_000_000_000;

/// A row of a table in which each row holds until the time of the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) line: usize,
    pub(crate) time: Span,
    pub(crate) rate: Rate,
    pub(crate) loss: Option<f64>,
    pub(crate) delay: Option<Span>,
}

/// The way in which a file writes the times of its rows.
pub(crate) struct Stamps<'a> {
    /// "line" or "entry".
    pub(crate) kind: &'a str,
    /// The text of a row's time, by the row's number.
    pub(crate) text: &'a dyn Fn(usize) -> String,
    /// Whether times are dates, so that none is zero.
    pub(crate) dated: bool,
}

impl Stamps<'_> {
    fn place(&self, row: &Row) -> String {
        format!("{} {}", self.kind, row.line)
    }

    fn quoted(&self, row: &Row) -> String {
        describe(&(self.text)(row.line))
    }
}

/// A trace of rows. Times count from the earliest row. Rates of rows with the same time are averaged (the last loss and
/// delay count); the last row lasts until `end`, or as long as the median row.
pub(crate) fn trace(
    file: &File<'_>,
    mut rows: Vec<Row>,
    end: Option<Span>,
    stamps: &Stamps<'_>,
) -> Result<Trace, TraceError> {
    let mut remarks: Vec<String> = put_in_order(file, &mut rows, stamps)?.into_iter().collect();
    if let Some(&first) = rows.first() {
        remarks.extend(count_from(file, &first, &mut rows, stamps)?);
    }
    let stretches = stretches(file, &rows, end, stamps)?;
    Ok(Trace { remarks, ..Trace::from_stretches(file, stretches)? })
}

/// Sorts the rows by time if none is more than [`STEP_BACK`] before an earlier one, and says so.
fn put_in_order(
    file: &File<'_>,
    rows: &mut [Row],
    stamps: &Stamps<'_>,
) -> Result<Option<String>, TraceError> {
    let (mut latest, mut back): (Option<Row>, Vec<Row>) = (None, Vec::new());
    for row in rows.iter() {
        match latest {
            Some(before) if before.time - row.time > STEP_BACK => {
                let expected = format!(
                    "at most 1 s before {}, the time of {}",
                    stamps.quoted(&before),
                    stamps.place(&before)
                );
                return Err(file.error(Some(stamps.place(row)), stamps.quoted(row), expected));
            }
            Some(before) if row.time < before.time => back.push(*row),
            _ => latest = Some(*row),
        }
    }
    let Some(first) = back.first() else { return Ok(None) };
    rows.sort_by_key(|row| row.time);
    let others = match back.len() {
        1 => String::new(),
        2 => " and 1 more row".to_owned(),
        count => format!(" and {} more rows", count - 1),
    };
    Ok(Some(format!(
        "{} ({}){others}: the time steps back, by at most 1 s; rows are put in order of time, and those of the \
         same time averaged",
        stamps.place(first),
        stamps.quoted(first),
    )))
}

/// Makes the time of the first row zero, and says so.
fn count_from(
    file: &File<'_>,
    first: &Row,
    rows: &mut [Row],
    stamps: &Stamps<'_>,
) -> Result<Option<String>, TraceError> {
    for row in rows.iter_mut() {
        row.time -= first.time;
        if row.time > LONGEST {
            let expected = "a time from the first row's time to 49 days after it";
            return Err(file.error(Some(stamps.place(row)), stamps.quoted(row), expected));
        }
    }
    if first.time == Span::ZERO || stamps.dated {
        return Ok(None);
    }
    let unix = UNIX_TIMES.contains(&(first.time.as_nanos() / 1_000_000_000));
    Ok(Some(format!(
        "{}: the first time is {}{}; times are counted from it",
        stamps.place(first),
        stamps.quoted(first),
        if unix { ", a Unix time" } else { "" },
    )))
}

/// Converts rows in order of time to stretches.
fn stretches(
    file: &File<'_>,
    rows: &[Row],
    end: Option<Span>,
    stamps: &Stamps<'_>,
) -> Result<Vec<Stretch>, TraceError> {
    let mut merged: Vec<(Row, u64)> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some((last, count)) if row.time == last.time => {
                *last = Row { rate: last.rate + row.rate, ..*row };
                *count += 1;
            }
            _ => merged.push((*row, 1)),
        }
    }
    let mut gaps: Vec<Span> = merged.windows(2).map(|pair| pair[1].0.time - pair[0].0.time).collect();
    let lengths = gaps.clone();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(Span::from_secs(1));
    merged
        .iter()
        .enumerate()
        .map(|(index, (row, count))| {
            let length = match (lengths.get(index), end) {
                (Some(&length), _) => length,
                (None, None) => usual,
                (None, Some(end)) if end > row.time => end - row.time,
                (None, Some(end)) => {
                    let found = format!("a duration of {} s", end.as_secs_f64());
                    let expected =
                        format!("more than the time of the last row, {} from the first", stamps.quoted(row));
                    return Err(file.error(None, found, expected));
                }
            };
            let rate = Rate::from_bps(row.rate.as_bps() / count);
            Ok(Stretch { length, rate, loss: row.loss, delay: row.delay })
        })
        .collect()
}
