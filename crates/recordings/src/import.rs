//! From the bytes of files to a run.

use crate::beside;
use crate::capture::{self, Capture};
use crate::event_log::EventLog;
use crate::point::{MILLI, Point};
use crate::problem::{Problem, Problems};
use crate::record::{Beside, Recorded};
use crate::replay;
use crate::session::{Clocks, Session};
use tidegate_core::ControllerHost;

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// An RTC event log of libwebrtc.
    EventLog,
    /// A capture: pcap or pcapng.
    Capture,
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
        _ if capture::is_capture(bytes) => Ok(Format::Capture),
        [0x0a | 0x12 | 0x1a | 0x22 | 0x2a | 0x82, ..] => Ok(Format::EventLog),
        [] => Err(Problem::new(0, "the file is empty")),
        _ => {
            let begin = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            Err(Problem::new(
                0,
                format!("found {begin}; expected an RTC event log (format 2), pcap or pcapng"),
            ))
        }
    }
}

/// Imports the event logs of one end, and of the other end if there is one; `replay` hears what the near end was told.
///
/// # Errors
/// Says which file is wrong, and how.
pub fn event_logs(
    files: &[&[u8]],
    clocks: Clocks,
    replay: Option<&mut ControllerHost>,
) -> Result<Imported, Wrong> {
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
    let begun = logs[0].begin.map(|(at, utc)| utc - at + session.span.0 / MILLI);
    let problems = logs.into_iter().map(|log| log.problems).collect();
    finished(session, beside, problems, begun, replay)
}

/// A session as a run. Where nothing is left of a call, what could not be read of a file is the reason.
fn finished(
    mut session: Session,
    mut beside: Vec<Beside>,
    problems: Vec<Problems>,
    begun: Option<i64>,
    replay: Option<&mut ControllerHost>,
) -> Result<Imported, Wrong> {
    let broken = || {
        let first =
            |(file, one): (usize, &Problems)| Some(Wrong { file, problem: one.first.first()?.clone() });
        problems.iter().enumerate().find_map(first)
    };
    if let Some(host) = replay {
        let remark =
            replay::onto(&mut beside, &session, host).map_err(|problem| Wrong { file: 0, problem })?;
        session.remarks.push(remark);
    }
    let recorded = Recorded::of(&session, &beside);
    let recorded = recorded.map_err(|problem| broken().unwrap_or(Wrong { file: 0, problem }))?;
    Ok(Imported { session, beside, recorded, problems, begun })
}

/// What a place saw, of which the first file is number `before`.
fn place<'a>(files: &[&'a [u8]], before: usize) -> Result<Option<Capture<'a>>, Wrong> {
    let wrong = |(file, problem)| Wrong { file: before + file, problem };
    if files.is_empty() { Ok(None) } else { Ok(Some(Capture::read(files).map_err(wrong)?)) }
}

/// Imports the captures of one place, and of a second one if there are any. Two captures that saw the same are two places,
/// though nobody says so.
///
/// # Errors
/// Says which file is wrong, and how.
pub fn captures(
    near: &[&[u8]],
    far: &[&[u8]],
    clocks: Clocks,
    replay: Option<&mut ControllerHost>,
) -> Result<Imported, Wrong> {
    let (first, mut second) = (place(near, 0)?, place(far, near.len())?);
    let mut first = first.unwrap_or_default();
    if let ([one, other], None) = (near, &second) {
        let wrong = |file| move |(_, problem)| Wrong { file, problem };
        let one = Capture::read(&[one]).map_err(wrong(0))?;
        let other = Capture::read(&[other]).map_err(wrong(1))?;
        if one.saw_the_same(&other) {
            (first, second) = (one, Some(other));
        }
    }
    let mut problems = std::mem::take(&mut first.problems);
    problems.extend(second.as_mut().map(|second| std::mem::take(&mut second.problems)).unwrap_or_default());
    let others = first.call().map_or(0, |(_, others)| others);
    let mut session = match (first.ends(), &second) {
        (None, _) => Session::default(),
        (Some((near, far)), None) => Session::of_one(&first.point(near, far)),
        (Some((near, far)), Some(second)) => {
            let (one, two) = (first.point(near, far), second.point(far, near));
            if Session::is_backwards(&one, &two) {
                Session::of_two(&first.point(far, near), &second.point(near, far), clocks)
            } else {
                Session::of_two(&one, &two, clocks)
            }
        }
    };
    if let Some((near, far)) = first.ends() {
        let sent = |from: &std::net::SocketAddr| {
            if from.port() == 0 { from.ip().to_string() } else { from.to_string() }
        };
        session.remarks.push(format!("the call between {} and {}", sent(&near), sent(&far)));
    }
    if let Some(remark) = first.ends().and_then(|(near, far)| first.others(near, far)) {
        session.remarks.push(remark);
    }
    if others > 0 {
        session.remarks.push(format!("{others} packets of RTP between others are left out"));
    }
    // what a capture has no controller for, nobody knows
    let beside =
        session.ways.iter().map(|_| Beside { controller: "recorded".to_owned(), ..Beside::default() });
    let beside = beside.collect();
    let begun = Some(session.span.0 / MILLI);
    finished(session, beside, problems, begun, replay)
}
