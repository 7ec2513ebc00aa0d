//! What a session writes down, a line each: packets that came in (`arrivals.csv`) and what became of them
//! (`fates.csv`). The first is all that is needed to do everything again in virtual time.

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

/// A packet that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its number in the session.
    pub number: u64,
    /// When it came in, by the model.
    pub at: Time,
    /// By how much that is later than the kernel's stamp.
    pub clamped: Span,
    /// Who sent it.
    pub from: Side,
    /// Its flow's number, from 0 on.
    pub flow: usize,
    /// The rest.
    pub frame: Frame,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its number in the session.
    pub number: u64,
    /// When it was due, or died, by the model.
    pub at: Time,
    /// Which of them.
    pub fate: Fate,
    /// When it was written to the device, in model time; `None` for one that was not.
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

    fn read(line: &str) -> Result<Self, String> {
        let mut cells = Cells::of(line, ARRIVALS)?;
        let number = cells.number("number", u64::MAX)?;
        let at = Time::from_nanos(cells.number("at_ns", i64::MAX as u64)? as i64);
        let clamped = Span::from_nanos(cells.number("clamped_ns", i64::MAX as u64)? as i64);
        let from =
            cells.word("from", "A or B", |word| Side::ALL.into_iter().find(|side| side.name() == word))?;
        let flow = cells.word("flow", "1 to 32", |word| {
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

impl Ending {
    /// Appends it as a line.
    pub fn write(&self, to: &mut String) {
        let fate = match self.fate {
            Fate::Arrives { marked: false } => ARRIVES,
            Fate::Arrives { marked: true } => MARKED,
            Fate::Dies(cause) => cause.name(),
        };
        let _ = write!(to, "{},{},{fate},", self.number, self.at.as_nanos());
        let _ = match self.written {
            Some(at) => writeln!(to, "{}", at.as_nanos()),
            None => writeln!(to),
        };
    }

    fn read(line: &str) -> Result<Self, String> {
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
        let (found, expected) = (line.matches(',').count() + 1, head.matches(',').count() + 1);
        if found == expected {
            return Ok(Self(line));
        }
        Err(format!("found {found} cells; expected {expected} ({head})"))
    }

    fn rest(&self) -> &'a str {
        self.0
    }

    fn word<T>(
        &mut self,
        name: &str,
        right: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, String> {
        let (word, rest) = self.0.split_once(',').unwrap_or((self.0, ""));
        self.0 = rest;
        read(word).ok_or_else(|| {
            let shown: String = word.chars().take(40).collect();
            format!("{name}: found {shown:?}; expected {right}")
        })
    }

    fn number(&mut self, name: &str, most: u64) -> Result<u64, String> {
        let digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        self.word(name, &format!("a whole number up to {most}"), |word| {
            word.parse().ok().filter(|&value| value <= most && digits(word))
        })
    }
}

/// Reads all lines of a file whose first one is `head`. A last line that is not whole is left out: a session that was
/// killed ends so.
fn lines<T>(text: &str, head: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.split('\n');
    if lines.next() != Some(head) {
        return Err(format!("line 1: expected {head}"));
    }
    lines
        .enumerate()
        .map(|(at, line)| read(line).map_err(|error| format!("line {}: {error}", at + 2)))
        .collect()
}

/// Reads `arrivals.csv`: in the order in which packets were read from their devices.
///
/// # Errors
/// Line, cell, what was found and what would be right.
pub fn arrivals(text: &str) -> Result<Vec<Arrival>, String> {
    let found = lines(text, ARRIVALS, Arrival::read)?;
    for (at, one) in found.iter().enumerate() {
        if one.number != at as u64 {
            return Err(format!("line {}: number: found {}; expected {at}", at + 2, one.number));
        }
    }
    Ok(found)
}

/// Reads `fates.csv`: in the order in which packets came to their end.
///
/// # Errors
/// Line, cell, what was found and what would be right.
pub fn endings(text: &str) -> Result<Vec<Ending>, String> {
    lines(text, FATES, Ending::read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn arrival(number: u64, rtp: Option<Rtp>) -> Arrival {
        let [address_a, address_b] = [1, 254].map(|last| Ipv4Addr::new(10, 77, 0, last));
        let tuple = Tuple { protocol: 17, address_a, port_a: 5004, address_b, port_b: 65535 };
        let frame = Frame { size: 1228, ecn: Ecn::Ect1, tuple, rtp };
        let at = Time::from_nanos(1_234_567_890_123);
        Arrival { number, at, clamped: Span::from_nanos(77), from: Side::B, flow: 31, frame }
    }

    #[test]
    fn lines_are_read_as_they_were_written_and_a_cut_one_is_left_out() {
        let rtp = Rtp { ssrc: u32::MAX, sequence: 65535, timestamp: 0, payload_type: 127, marker: true };
        let written = [arrival(0, None), arrival(1, Some(rtp))];
        let mut text = format!("{ARRIVALS}\n");
        written.iter().for_each(|one| one.write(&mut text));
        assert_eq!(arrivals(&text).unwrap(), written);
        assert_eq!(arrivals(&text[..text.len() - 1]).unwrap(), written[..1]);
        let endings_written = [
            (Fate::Arrives { marked: false }, Some(Time::from_nanos(5))),
            (Fate::Arrives { marked: true }, None),
            (Fate::Dies(Cause::Queue), None),
            (Fate::Dies(Cause::Outage), None),
        ]
        .map(|(fate, written)| Ending { number: 3, at: Time::from_nanos(4), fate, written });
        let mut text = format!("{FATES}\n");
        endings_written.iter().for_each(|one| one.write(&mut text));
        assert_eq!(endings(&text).unwrap(), endings_written);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_cell() {
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
            wrong("0,1,0,A,33,100,0,17,10.77.0.1,1,10.77.0.2,2,,,,,"),
            "line 2: flow: found \"33\"; expected 1 to 32"
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
            endings(&format!("{FATES}\n0,1,eaten,\n")).unwrap_err(),
            "line 2: fate: found \"eaten\"; expected arrives, arrives marked, queue, loss, corrupt or outage"
        );
        assert!(arrivals("").unwrap_err().starts_with("line 1: expected number,at_ns"));
    }
}
