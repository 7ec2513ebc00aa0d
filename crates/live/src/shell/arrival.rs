//! The log files of a session, with a line for each packet: arrivals (`arrivals.csv`) and fates (`fates.csv`). A replay
//! in virtual time needs only the arrivals.

use super::frame::{Frame, Rtp, Tuple};
use super::model::Fate;
use super::{FLOWS, Side};
use std::fmt::Write as _;
use tidegate_core::{Cause, Ecn, Span, Time};

/// The first line of `arrivals.csv`.
pub const ARRIVALS: &str = "number,at_ns,clamped_ns,from,flow,size,ecn,protocol,\
                            address_a,port_a,address_b,port_b,\
                            ssrc,sequence,timestamp,payload_type,marker";
/// The first line of `fates.csv`.
pub const FATES: &str = "number,at_ns,fate,written_ns";

/// A packet that arrived at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number in the session.
    pub number: u64,
    /// Model time at which it entered.
    pub at: Time,
    /// Difference to the kernel's time stamp.
    pub clamped: Span,
    /// Side that sent it.
    pub from: Side,
    /// Its flow's number, from 0 on.
    pub flow: usize,
    /// The other fields.
    pub frame: Frame,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FateRecord {
    /// Its number in the session.
    pub number: u64,
    /// Model time at which it was due, or was dropped.
    pub at: Time,
    /// Its fate.
    pub fate: Fate,
    /// Model time at which it was written to the device; `None` if it was not.
    pub written: Option<Time>,
}

const ARRIVES: &str = "arrives";
const MARKED: &str = "arrives marked";

impl Arrival {
    /// Appends it as a line.
    pub fn write(&self, to: &mut String) {
        let Self { number, at, clamped, from, flow, frame } = *self;
        let Frame { size, ecn, tuple: Tuple { protocol, address_a, port_a, address_b, port_b }, rtp } = frame;
        let (at, clamped, from, ecn) = (at.as_nanos(), clamped.as_nanos(), from.name(), ecn as u8);
        let flow = flow + 1;
        let _ = write!(to, "{number},{at},{clamped},{from},{flow},{size},{ecn},{protocol},");
        let _ = write!(to, "{address_a},{port_a},{address_b},{port_b},");
        let _ = match rtp {
            None => writeln!(to, ",,,,"),
            Some(Rtp { ssrc, sequence, timestamp, payload_type, marker }) => {
                writeln!(to, "{ssrc},{sequence},{timestamp},{payload_type},{}", u8::from(marker))
            }
        };
    }

    fn parse(line: &str) -> Result<Self, String> {
        let mut cells = Cells::of(line, ARRIVALS)?;
        let number = cells.number("number", u64::MAX)?;
        let at = Time::from_nanos(cells.number("at_ns", i64::MAX as u64)? as i64);
        let clamped = Span::from_nanos(cells.number("clamped_ns", i64::MAX as u64)? as i64);
        let from =
            cells.word("from", "A or B", |word| Side::ALL.into_iter().find(|side| side.name() == word))?;
        let flow = cells.word("flow", "1 to 128", |word| {
            word.parse().ok().filter(|number| (1..=FLOWS).contains(number)).map(|number| number - 1)
        })?;
        let size = cells.word("size", "20 to 65535", |word| {
            word.parse().ok().filter(|size: &u32| (20..=65535).contains(size))
        })?;
        let ecn = Ecn::from_bits(cells.number("ecn", 3)? as u8);
        let protocol = cells.number("protocol", 255)? as u8;
        let address_a = cells.word("address_a", "an IPv4 address", |word| word.parse().ok())?;
        let port_a = cells.number("port_a", 65535)? as u16;
        let address_b = cells.word("address_b", "an IPv4 address", |word| word.parse().ok())?;
        let port_b = cells.number("port_b", 65535)? as u16;
        let rtp = if cells.rest() == ",,,," {
            None
        } else {
            Some(Rtp {
                ssrc: cells.number("ssrc", u64::from(u32::MAX))? as u32,
                sequence: cells.number("sequence", 65535)? as u16,
                timestamp: cells.number("timestamp", u64::from(u32::MAX))? as u32,
                payload_type: cells.number("payload_type", 127)? as u8,
                marker: cells.number("marker", 1)? == 1,
            })
        };
        let frame = Frame { size, ecn, tuple: Tuple { protocol, address_a, port_a, address_b, port_b }, rtp };
        Ok(Self { number, at, clamped, from, flow, frame })
    }
}

impl FateRecord {
    /// Appends it as a line.
    pub fn write(&self, to: &mut String) {
        let fate = match self.fate {
            Fate::Arrives { marked: false } => ARRIVES,
            Fate::Arrives { marked: true } => MARKED,
            Fate::Dies(cause) => cause.name(),
        };
        let _ = write!(to, "{},{},{fate},", self.number, self.at.as_nanos());
        let _ = match self.written {
            Some(written) => writeln!(to, "{}", written.as_nanos()),
            None => writeln!(to),
        };
    }

    fn parse(line: &str) -> Result<Self, String> {
        let mut cells = Cells::of(line, FATES)?;
        let number = cells.number("number", u64::MAX)?;
        let at = Time::from_nanos(cells.number("at_ns", i64::MAX as u64)? as i64);
        let fate =
            cells.word(
                "fate",
                "arrives, arrives marked, queue, loss, corrupt or outage",
                |word| match word {
                    ARRIVES => Some(Fate::Arrives { marked: false }),
                    MARKED => Some(Fate::Arrives { marked: true }),
                    _ => Cause::ALL.into_iter().find(|cause| cause.name() == word).map(Fate::Dies),
                },
            )?;
        let written = match cells.rest() {
            "" => None,
            _ => Some(Time::from_nanos(cells.number("written_ns", i64::MAX as u64)? as i64)),
        };
        Ok(Self { number, at, fate, written })
    }
}

/// The cells of a line.
struct Cells<'a>(&'a str);

impl<'a> Cells<'a> {
    fn of(line: &'a str, head: &str) -> Result<Self, String> {
        let (count, expected) = (line.matches(',').count() + 1, head.matches(',').count() + 1);
        if count == expected {
            return Ok(Self(line));
        }
        Err(format!("found {count} cells; expected {expected} ({head})"))
    }

    fn rest(&self) -> &'a str {
        self.0
    }

    fn word<T>(
        &mut self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, String> {
        let (word, rest) = self.0.split_once(',').unwrap_or((self.0, ""));
        self.0 = rest;
        parse(word).ok_or_else(|| {
            let start: String = word.chars().take(40).collect();
            format!("{name}: found {start:?}; expected {expected}")
        })
    }

    fn number(&mut self, name: &str, max: u64) -> Result<u64, String> {
        let digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        self.word(name, &format!("a whole number up to {max}"), |word| {
            word.parse().ok().filter(|&value| value <= max && digits(word))
        })
    }
}

/// Parses all lines of a file after the first one, which must be `head`. An incomplete last line is skipped: the files
/// of a session that was killed end so.
fn lines<T>(text: &str, head: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = complete.split('\n');
    if lines.next() != Some(head) {
        return Err(format!("line 1: expected {head}"));
    }
    lines
        .enumerate()
        .map(|(index, line)| parse(line).map_err(|error| format!("line {}: {error}", index + 2)))
        .collect()
}

/// Parses `arrivals.csv`, whose lines are in the order in which packets were read from their devices.
///
/// # Errors
/// With line, cell, the text found and the text expected.
pub fn arrivals(text: &str) -> Result<Vec<Arrival>, String> {
    let arrivals = lines(text, ARRIVALS, Arrival::parse)?;
    for (index, arrival) in arrivals.iter().enumerate() {
        if arrival.number != index as u64 {
            return Err(format!("line {}: number: found {}; expected {index}", index + 2, arrival.number));
        }
    }
    Ok(arrivals)
}

/// Parses `fates.csv`, whose lines are in the order in which packets left the model or were dropped.
///
/// # Errors
/// With line, cell, the text found and the text expected.
pub fn fates(text: &str) -> Result<Vec<FateRecord>, String> {
    lines(text, FATES, FateRecord::parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn arrival(number: u64, rtp: Option<Rtp>) -> Arrival {
        let [address_a, address_b] = [1, 254].map(|last| Ipv4Addr::new(10, 77, 0, last));
        let tuple = Tuple { protocol: 17, address_a, port_a: 5004, address_b, port_b: 65535 };
        let frame = Frame { size: 1228, ecn: Ecn::Ect1, tuple, rtp };
        let entered = Time::from_nanos(1_234_567_890_123);
        Arrival { number, at: entered, clamped: Span::from_nanos(77), from: Side::B, flow: 31, frame }
    }

    #[test]
    fn lines_are_read_as_they_were_written_and_a_cut_one_is_skipped() {
        let rtp = Rtp { ssrc: u32::MAX, sequence: 65535, timestamp: 0, payload_type: 127, marker: true };
        let written = [arrival(0, None), arrival(1, Some(rtp))];
        let mut text = format!("{ARRIVALS}\n");
        written.iter().for_each(|row| row.write(&mut text));
        assert_eq!(arrivals(&text).unwrap(), written);
        assert_eq!(arrivals(&text[..text.len() - 1]).unwrap(), written[..1]);
        let fates_written = [
            (Fate::Arrives { marked: false }, Some(Time::from_nanos(5))),
            (Fate::Arrives { marked: true }, None),
            (Fate::Dies(Cause::Queue), None),
            (Fate::Dies(Cause::Outage), None),
        ]
        .map(|(fate, written)| FateRecord { number: 3, at: Time::from_nanos(4), fate, written });
        let mut text = format!("{FATES}\n");
        fates_written.iter().for_each(|row| row.write(&mut text));
        assert_eq!(fates(&text).unwrap(), fates_written);
    }

    #[test]
    fn errors_have_their_line_and_cell() {
        let wrong = |line: &str| arrivals(&format!("{ARRIVALS}\n{line}\n")).unwrap_err();
        assert_eq!(wrong("1,2"), format!("line 2: found 2 cells; expected 17 ({ARRIVALS})"));
        assert_eq!(
            wrong("0,-1,0,A,1,100,0,17,10.77.0.1,1,10.77.0.2,2,,,,,"),
            "line 2: at_ns: found \"-1\"; expected a whole number up to 9223372036854775807"
        );
        assert_eq!(
            wrong("0,1,0,C,1,100,0,17,10.77.0.1,1,10.77.0.2,2,,,,,"),
            "line 2: from: found \"C\"; expected A or B"
        );
        assert_eq!(
            wrong(&format!("0,1,0,A,{},100,0,17,10.77.0.1,1,10.77.0.2,2,,,,,", FLOWS + 1)),
            format!("line 2: flow: found \"{}\"; expected 1 to {FLOWS}", FLOWS + 1)
        );
        assert_eq!(
            wrong("0,1,0,A,1,100,0,17,10.77.0,1,10.77.0.2,2,,,,,"),
            "line 2: address_a: found \"10.77.0\"; expected an IPv4 address"
        );
        assert_eq!(
            wrong("5,1,0,A,1,100,0,17,10.77.0.1,1,10.77.0.2,2,,,,,"),
            "line 2: number: found 5; expected 0"
        );
        assert_eq!(
            fates(&format!("{FATES}\n0,1,eaten,\n")).unwrap_err(),
            "line 2: fate: found \"eaten\"; expected arrives, arrives marked, queue, loss, corrupt or outage"
        );
        assert!(arrivals("").unwrap_err().starts_with("line 1: expected number,at_ns"));
    }
}
