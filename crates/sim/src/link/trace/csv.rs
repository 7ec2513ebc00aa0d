//! Parsers of traces that are tables with a header line.

use super::rows::{Row, Stamps};
use super::{
    Direction, File, Format, ReadOptions, Stretch, Trace, TraceError, describe, moment_of, rate, rows,
    span_of,
};
use tidegate_core::Span;

/// A table of comma-separated values, without quoting: none of the known files has any.
struct Table<'a> {
    names: Vec<&'a str>,
    rows: Vec<(usize, Vec<&'a str>)>,
}

impl<'a> Table<'a> {
    fn new(file: &File<'a>) -> Result<Self, TraceError> {
        let mut lines = file.lines().filter(|(_, line)| !line.starts_with('#'));
        let Some((_, header)) = lines.next() else {
            return Err(file.error(None, "an empty file", "a header line and rows"));
        };
        let names: Vec<_> = header.split(',').map(str::trim).collect();
        let rows: Result<Vec<_>, _> = lines
            .map(|(number, line)| {
                let cells: Vec<_> = line.split(',').map(str::trim).collect();
                if cells.len() == names.len() {
                    return Ok((number, cells));
                }
                let expected =
                    format!("{} columns as in the header; this line has {}", names.len(), cells.len());
                Err(file.line_error(number, line, expected))
            })
            .collect();
        Ok(Self { names, rows: rows? })
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|&column| column == name)
    }

    /// A description of the header for an error.
    fn describe_header(&self) -> String {
        match self.names.as_slice() {
            [_] => "a first line without a comma".to_owned(),
            names => named(names, self.rows.first().map(|(_, cells)| cells.as_slice()))
                .unwrap_or_else(|| format!("a header line with {} names", names.len())),
        }
    }

    fn column(&self, file: &File<'_>, name: &str) -> Result<usize, TraceError> {
        self.find(name)
            .ok_or_else(|| file.error(None, self.describe_header(), format!("a column named {name}")))
    }
}

/// The names of columns, if a row of numbers follows: other text is not repeated, see `describe`.
fn named(names: &[&str], row: Option<&[&str]>) -> Option<String> {
    if names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Some("numbers in the first line, where the names of the columns are expected".to_owned());
    }
    let is_number = |cell: &&str| describe(cell).starts_with('"');
    let row = row.filter(|row| row.len() == names.len())?;
    (row.iter().all(is_number) && names.iter().all(|name| is_name(name))).then(|| {
        let some = names.iter().take(12).copied().collect::<Vec<_>>().join(", ");
        format!("the columns {some}{}", if names.len() > 12 { ", ..." } else { "" })
    })
}

/// Whether this may be the name of a column.
fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b" _./()%-[]".contains(&byte);
    (1..=32).contains(&name.len()) && name.bytes().all(allowed)
}

/// Detects the format of a table; `None` if it is none.
///
/// # Errors
/// When its columns have other names, or none.
pub(crate) fn sniff(file: &File<'_>) -> Result<Option<Format>, TraceError> {
    let mut lines = file.lines().filter(|(_, line)| !line.starts_with('#'));
    let mut cells = || Some(lines.next()?.1.split(',').map(str::trim).collect::<Vec<_>>());
    let Some(names) = cells().filter(|names| names.len() > 1) else { return Ok(None) };
    let has = |name: &str| names.contains(&name);
    if has("DL_bitrate") && has("Timestamp") {
        Ok(Some(Format::Raca))
    } else if has("app_throughput") && has("delivery_time") {
        Ok(Some(Format::Lumos))
    } else if names.iter().any(|name| name.starts_with("time_"))
        && names.iter().any(|name| name.starts_with("rate_"))
    {
        Ok(Some(Format::Csv))
    } else {
        let Some(found) = named(&names, cells().as_deref()) else { return Ok(None) };
        let expected = format!(
            "columns of csv (time_s or time_ms; rate_bps, rate_kbps or rate_mbps), raca (Timestamp, DL_bitrate) or lumos \
             (app_throughput, delivery_time), or another format: {}",
            Format::names()
        );
        Err(file.error(None, found, expected))
    }
}

/// Unix time in seconds of "YYYY.MM.DD_hh.mm.ss", from 1970 to 2199.
fn timestamp(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once('_')?;
    let numbers = |text: &str| -> Option<[i64; 3]> {
        let mut parts = text.split('.').map(|part| part.parse::<u16>().ok().map(i64::from));
        let fields = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(fields)
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date)?, numbers(clock)?);
    /// Days from 0000-03-01, from which they are counted below, to 1970-01-01.
    const EPOCH: i64 = 719_468;
    if !(1970..2200).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // the year begins in March, so that the leap day is its last
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1;
    Some((((days - EPOCH) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Parses [`Format::Raca`].
pub(crate) fn raca(file: &File<'_>, options: &ReadOptions) -> Result<Trace, TraceError> {
    let table = Table::new(file)?;
    let time = table.column(file, "Timestamp")?;
    let rates = table.column(
        file,
        match options.direction {
            Some(Direction::Up) => "UL_bitrate",
            Some(Direction::Down) | None => "DL_bitrate",
        },
    )?;
    // a few pings every 13 s or so, and "-" between; files without the column are valid, too. The smallest round trip
    // counts: the others waited in queues that the phone's own downloads filled
    let pings = table.column(file, "PINGMIN").ok();
    let mut rows: Vec<Row> = Vec::with_capacity(table.rows.len());
    let mut delay = None;
    for (line, cells) in &table.rows {
        if let Some(cell) = pings.map(|column| cells[column]).filter(|&cell| cell != "-") {
            let millis = span_of(cell, Span::from_millis(1));
            let round = millis
                .ok_or_else(|| file.line_error(*line, cell, "milliseconds, or - for a missing value"))?;
            delay = Some(Span::from_nanos(round.as_nanos() / 2));
        }
        if cells[rates] == "-" {
            continue;
        }
        let second = timestamp(cells[time])
            .ok_or_else(|| file.line_error(*line, cells[time], "a time such as 2020.02.27_18.39.27"))?;
        let rate = cells[rates].parse().ok().and_then(|kbps| rate(kbps, 1e3));
        let rate =
            rate.ok_or_else(|| file.line_error(*line, cells[rates], "kbit/s, or - for a missing value"))?;
        let time = Span::from_secs(second);
        rows.push(Row { line: *line, time, rate, loss: None, delay });
    }
    // before the first ping the delay is that of the first ping
    let first = rows.iter().find_map(|row| row.delay);
    rows.iter_mut().take_while(|row| row.delay.is_none()).for_each(|row| row.delay = first);
    let text = |line| file.cell(line, |text| text.split(',').nth(time));
    rows::trace(file, rows, None, &Stamps { kind: "line", text: &text, dated: true })
}

/// Parses [`Format::Lumos`].
pub(crate) fn lumos(file: &File<'_>) -> Result<Trace, TraceError> {
    let table = Table::new(file)?;
    let (rates, times) = (table.column(file, "app_throughput")?, table.column(file, "delivery_time")?);
    let stretches: Result<Vec<Stretch>, _> = table
        .rows
        .iter()
        .map(|(line, cells)| {
            let rate = cells[rates].parse().ok().and_then(|kbps| rate(kbps, 1e3));
            let rate = rate.ok_or_else(|| file.line_error(*line, cells[rates], "kbit/s"))?;
            let length = span_of(cells[times], Span::from_secs(1));
            let length = length.ok_or_else(|| file.line_error(*line, cells[times], "seconds"))?;
            Ok(Stretch { length, rate, loss: None, delay: None })
        })
        .collect();
    Trace::from_stretches(file, stretches?)
}

/// Parses [`Format::Csv`].
pub(crate) fn generic(file: &File<'_>) -> Result<Trace, TraceError> {
    let table = Table::new(file)?;
    let one_of = |names: &[(&str, f64)]| {
        let column = names.iter().find_map(|&(name, unit)| table.find(name).map(|column| (column, unit)));
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        column.ok_or_else(|| {
            let expected = format!("one of the columns {}", names.join(", "));
            file.error(None, table.describe_header(), expected)
        })
    };
    let (times, of_time) = one_of(&[("time_s", 1.0), ("time_ms", 1e-3)])?;
    let (rates, of_rate) = one_of(&[("rate_bps", 1.0), ("rate_kbps", 1e3), ("rate_mbps", 1e6)])?;
    let (losses, delays) = (table.find("loss"), table.find("delay_ms"));
    let mut rows: Vec<Row> = Vec::with_capacity(table.rows.len());
    for (line, cells) in &table.rows {
        let wrong = |column: usize, expected: &str| file.line_error(*line, cells[column], expected);
        let number = |column: usize| cells[column].parse::<f64>().ok();
        let time = moment_of(cells[times], Span::from_secs_f64(of_time));
        let bits = number(rates).and_then(|value| rate(value, of_rate));
        let lost = |column| {
            let value = number(column).filter(|value| (0.0..=1.0).contains(value));
            value.ok_or_else(|| wrong(column, "a loss from 0 to 1"))
        };
        let delayed = |column: usize| {
            let value = span_of(cells[column], Span::from_millis(1));
            value.ok_or_else(|| wrong(column, "a delay from 0 to 49 days"))
        };
        rows.push(Row {
            line: *line,
            time: time.ok_or_else(|| wrong(times, "a time from 0 to the year 2255"))?,
            rate: bits.ok_or_else(|| wrong(rates, "a rate that is not negative"))?,
            loss: losses.map(lost).transpose()?,
            delay: delays.map(delayed).transpose()?,
        });
    }
    let end = match duration(file) {
        Some((line, text)) => {
            let end = span_of(text, Span::from_secs(1));
            Some(end.ok_or_else(|| file.line_error(line, text, "a duration in seconds"))?)
        }
        None => None,
    };
    let text = |line| file.cell(line, |text| text.split(',').nth(times));
    rows::trace(file, rows, end, &Stamps { kind: "line", text: &text, dated: false })
}

/// The value of a comment `# duration_s=...`.
fn duration<'a>(file: &File<'a>) -> Option<(usize, &'a str)> {
    file.lines().find_map(|(number, line)| {
        let value = line.strip_prefix('#')?.trim().strip_prefix("duration_s=")?;
        Some((number, value.trim()))
    })
}
