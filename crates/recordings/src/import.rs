//! Imports files: from their bytes to a run.

use crate::capture::{self, Capture};
use crate::controller_trace;
use crate::event_log::EventLog;
use crate::point::{MILLI, Point};
use crate::problem::{Problem, Problems};
use crate::record::{ControllerTrace, Recorded};
use crate::replay;
use crate::session::{Clocks, Session};
use tidegate_core::ControllerHost;

/// Format of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// An RTC event log of libwebrtc.
    EventLog,
    /// A capture: pcap or pcapng.
    Capture,
}

/// A problem for which a file cannot be imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileProblem {
    /// Index of the file among those that were passed.
    pub file: usize,
    /// The problem.
    pub problem: Problem,
}

/// A call that was imported.
pub struct Imported {
    /// The call.
    pub session: Session,
    /// Targets and internals of the senders' controllers, one for each direction.
    pub traces: Vec<ControllerTrace>,
    /// The call as a run.
    pub recorded: Recorded,
    /// Parts that could not be read, file by file.
    pub problems: Vec<Problems>,
    /// Unix time at which the call begins, in ms, if a file has it.
    pub start_unix_ms: Option<i64>,
}

/// Detects the format of a file by its first bytes.
///
/// # Errors
/// If it is no format that can be imported.
pub fn format(bytes: &[u8]) -> Result<Format, Problem> {
    // the tags that an event log can begin with: of an event of format 1, of the log's begin event, or of a batch
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

/// Imports the event log of the near end, and that of the far end if there is one. `replay` is a controller that gets
/// the feedback that the near end received.
///
/// # Errors
/// The file that cannot be imported, and its problem.
pub fn event_logs(
    files: &[&[u8]],
    clocks: Clocks,
    replay: Option<&mut ControllerHost>,
) -> Result<Imported, FileProblem> {
    let mut logs = Vec::with_capacity(files.len());
    for (file, bytes) in files.iter().enumerate() {
        logs.push(EventLog::read(bytes).map_err(|problem| FileProblem { file, problem })?);
    }
    let wrong = |file, problem| FileProblem { file, problem };
    let (session, traces): (Session, Vec<ControllerTrace>) = match &logs[..] {
        [near] => {
            let session = Session::from_one_point(&Point::of_log(near));
            let traces = session.directions.iter().map(|direction| match direction.coverage.sent {
                true => controller_trace::of_log(near),
                false => ControllerTrace { controller: "recorded".to_owned(), ..ControllerTrace::default() },
            });
            let traces = traces.collect();
            (session, traces)
        }
        [near, far] => {
            let session = Session::from_two_points(&Point::of_log(near), &Point::of_log(far), clocks);
            let trace = |direction: &str| {
                controller_trace::of_log(if direction == crate::session::DIRECTIONS[0] { near } else { far })
            };
            let traces = session.directions.iter().map(|direction| trace(&direction.name)).collect();
            (session, traces)
        }
        _ => {
            let message = format!("found {} event logs; expected one from each end of the call", files.len());
            return Err(wrong(2.min(files.len()), Problem::new(0, message)));
        }
    };
    let start_unix_ms =
        logs[0].begin.map(|(at, utc)| utc.saturating_sub(at).saturating_add(session.span.0 / MILLI));
    let problems = logs.into_iter().map(|log| log.problems).collect();
    finish(session, traces, problems, start_unix_ms, replay)
}

/// Turns a session into a run. If that fails because the call has no packets, the error is the first problem of a file.
fn finish(
    mut session: Session,
    mut traces: Vec<ControllerTrace>,
    problems: Vec<Problems>,
    start_unix_ms: Option<i64>,
    replay: Option<&mut ControllerHost>,
) -> Result<Imported, FileProblem> {
    let first_problem = || {
        let of_file = |(file, problems): (usize, &Problems)| {
            Some(FileProblem { file, problem: problems.first.first()?.clone() })
        };
        problems.iter().enumerate().find_map(of_file)
    };
    if let Some(host) = replay {
        let remark = replay::add_replay(&mut traces, &session, host)
            .map_err(|problem| FileProblem { file: 0, problem })?;
        session.remarks.push(remark);
    }
    let recorded = Recorded::of(&session, &traces);
    let recorded = recorded.map_err(|problem| first_problem().unwrap_or(FileProblem { file: 0, problem }))?;
    Ok(Imported { session, traces, recorded, problems, start_unix_ms })
}

/// Reads the captures of one capture point; `None` if there are none. `offset` is the index of its first file.
fn read_captures<'a>(files: &[&'a [u8]], offset: usize) -> Result<Option<Capture<'a>>, FileProblem> {
    let wrong = |(file, problem)| FileProblem { file: offset + file, problem };
    if files.is_empty() { Ok(None) } else { Ok(Some(Capture::read(files).map_err(wrong)?)) }
}

/// Imports the captures of one capture point, and of a second one if there are any. Two captures that are passed as one
/// point but contain the same packets are taken as two points.
///
/// # Errors
/// The file that cannot be imported, and its problem.
pub fn captures(
    near: &[&[u8]],
    far: &[&[u8]],
    clocks: Clocks,
    replay: Option<&mut ControllerHost>,
) -> Result<Imported, FileProblem> {
    let (first, mut second) = (read_captures(near, 0)?, read_captures(far, near.len())?);
    let mut first = first.unwrap_or_default();
    if let ([bytes_a, bytes_b], None) = (near, &second) {
        let wrong = |file| move |(_, problem)| FileProblem { file, problem };
        let capture_a = Capture::read(&[bytes_a]).map_err(wrong(0))?;
        let capture_b = Capture::read(&[bytes_b]).map_err(wrong(1))?;
        if capture_a.saw_the_same(&capture_b) {
            (first, second) = (capture_a, Some(capture_b));
        }
    }
    let mut problems = std::mem::take(&mut first.problems);
    problems.extend(second.as_mut().map(|second| std::mem::take(&mut second.problems)).unwrap_or_default());
    let unrelated = first.call().map_or(0, |(_, unrelated)| unrelated);
    let mut session = match (first.ends(), &second) {
        (None, _) => Session::default(),
        (Some((near, far)), None) => Session::from_one_point(&first.point(near, far)),
        (Some((near, far)), Some(second)) => {
            let (near_point, far_point) = (first.point(near, far), second.point(far, near));
            if Session::is_backwards(&near_point, &far_point) {
                Session::from_two_points(&first.point(far, near), &second.point(near, far), clocks)
            } else {
                Session::from_two_points(&near_point, &far_point, clocks)
            }
        }
    };
    if let Some((near, far)) = first.ends() {
        let address = |end: &std::net::SocketAddr| {
            if end.port() == 0 { end.ip().to_string() } else { end.to_string() }
        };
        session.remarks.push(format!("the call between {} and {}", address(&near), address(&far)));
    }
    if let Some(remark) = first.ends().and_then(|(near, far)| first.remark_on_ignored(near, far)) {
        session.remarks.push(remark);
    }
    if unrelated > 0 {
        session.remarks.push(format!("{unrelated} RTP packets between other addresses are left out"));
    }
    // a capture does not say which controller ran
    let traces = session
        .directions
        .iter()
        .map(|_| ControllerTrace { controller: "recorded".to_owned(), ..ControllerTrace::default() });
    let traces = traces.collect();
    let start_unix_ms = Some(session.span.0 / MILLI);
    finish(session, traces, problems, start_unix_ms, replay)
}
