//! From the bytes of files to a run.

use crate::beside;
use crate::event_log::EventLog;
use crate::point::Point;
use crate::problem::{Problem, Problems};
use crate::record::{Beside, Recorded};
use crate::session::{Clocks, Session};

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// An RTC event log of libwebrtc.
    EventLog,
}

/// What is wrong, and with which file: by its place among those that were given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The file.
    pub file: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// A call that was imported.
pub struct Imported {
    /// The call.
    pub session: Session,
    /// What the recording says of the controllers of its ways.
    pub beside: Vec<Beside>,
    /// The call as a run.
    pub recorded: Recorded,
    /// For each file what could not be read of it.
    pub problems: Vec<Problems>,
    /// Unix time at which it begins, in ms, where a file says so.
    pub begun: Option<i64>,
}

/// What kind of file this is.
///
/// # Errors
/// When it is none that can be imported.
pub fn format(bytes: &[u8]) -> Result<Format, Problem> {
    // tag and wire type of the fields that logs begin with: an event of format 1, or the beginning of the log
    match bytes {
        [0x0a | 0x12 | 0x1a | 0x22 | 0x2a | 0x82, ..] => Ok(Format::EventLog),
        [] => Err(Problem::new(0, "the file is empty")),
        _ => {
            let begin = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            Err(Problem::new(0, format!("found {begin}; expected an RTC event log (format 2)")))
        }
    }
}

/// Imports the event logs of one end, and of the other end if there is one.
///
/// # Errors
/// Says which file is wrong, and how.
pub fn event_logs(files: &[&[u8]], clocks: Clocks) -> Result<Imported, Wrong> {
    let mut logs = Vec::with_capacity(files.len());
    for (file, bytes) in files.iter().enumerate() {
        logs.push(EventLog::read(bytes).map_err(|problem| Wrong { file, problem })?);
    }
    let wrong = |file, problem| Wrong { file, problem };
    let (session, beside): (Session, Vec<Beside>) = match &logs[..] {
        [near] => {
            let session = Session::of_one(&Point::of_log(near));
            let beside = session.ways.iter().map(|way| match way.known.sent {
                true => beside::of_log(near),
                false => Beside { controller: "recorded".to_owned(), ..Beside::default() },
            });
            let beside = beside.collect();
            (session, beside)
        }
        [near, far] => {
            let session = Session::of_two(&Point::of_log(near), &Point::of_log(far), clocks);
            let own = |way: &str| beside::of_log(if way == crate::session::WAYS[0] { near } else { far });
            let beside = session.ways.iter().map(|way| own(&way.name)).collect();
            (session, beside)
        }
        _ => {
            let what = format!("found {} event logs; expected one of each end of the call", files.len());
            return Err(wrong(2.min(files.len()), Problem::new(0, what)));
        }
    };
    let begun = logs[0].begin.map(|(at, utc)| utc - at + session.span.0 / crate::point::MILLI);
    // where nothing is left of a call, what could not be read of the file is the reason
    let broken = logs.iter().enumerate().find_map(|(file, log)| Some((file, log.problems.first.first()?)));
    let recorded = Recorded::of(&session, &beside).map_err(|problem| match broken {
        Some((file, first)) => wrong(file, first.clone()),
        None => wrong(0, problem),
    })?;
    let problems = logs.into_iter().map(|log| log.problems).collect();
    Ok(Imported { session, beside, recorded, problems, begun })
}
