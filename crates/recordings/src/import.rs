//! Imports files: from their bytes to a run.

use crate::capture::{self, At, Capture};
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
    /// A capture (pcap, pcapng) or a dump of RTP (rtpdump, Janus .mjr).
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
            Err(Problem::new(0, format!("found {begin}")))
        }
    }
}

/// Facts about captures that the user gives.
#[derive(Clone, Copy, Default, Debug)]
pub struct Hints {
    /// The place of the first capture; told by the packets if it is not given.
    pub at: Option<At>,
    /// An address and port from or to which all that may be RTP is RTP.
    pub rtp: Option<std::net::SocketAddr>,
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
            let session = Session::from_one_point(&Point::of_log(near), false);
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

/// Reads captures of one capture point without copies of packets, and splits them if they were made at two. `offset` is
/// the index of the first file.
fn read_captures<'a>(
    files: &[&'a [u8]],
    offset: usize,
    hints: Hints,
) -> Result<(Capture<'a>, Option<Capture<'a>>), FileProblem> {
    let wrong = |(file, problem)| FileProblem { file: offset + file, problem };
    let mut capture = Capture::read(files, hints.rtp).map_err(wrong)?;
    let second = capture.split();
    Ok((capture, second))
}

/// Imports the captures of one capture point, and of a second one if there are any. Two captures that are passed as one
/// point but contain the same packets are taken as two points, and one capture that was made at two is split.
///
/// # Errors
/// The file that cannot be imported, and its problem.
pub fn captures(
    near: &[&[u8]],
    far: &[&[u8]],
    hints: Hints,
    clocks: Clocks,
    replay: Option<&mut ControllerHost>,
) -> Result<Imported, FileProblem> {
    let read = |files, offset| read_captures(files, offset, hints);
    let (mut first, mut second) = match (near, far) {
        ([_, _], []) => {
            let (capture_a, capture_b) = (read(&near[..1], 0)?.0, read(&near[1..], 1)?.0);
            if capture_a.saw_the_same(&capture_b) { (capture_a, Some(capture_b)) } else { read(near, 0)? }
        }
        (_, []) => read(near, 0)?,
        _ => (read(near, 0)?.0, Some(read(far, near.len())?.0)),
    };
    let mut problems = std::mem::take(&mut first.problems);
    problems.extend(second.as_mut().map(|second| std::mem::take(&mut second.problems)).unwrap_or_default());
    let Some(ends) = first.ends(hints.at) else {
        let damaged = problems.iter().find_map(|problems| problems.first.first());
        let problem = damaged.filter(|_| first.packets == 0).cloned().unwrap_or_else(|| first.without_call());
        return Err(FileProblem { file: 0, problem });
    };
    let (near, far) = (ends.near, ends.far);
    let mut session = match &second {
        None => {
            let is_between = hints.at == Some(At::Middle);
            let mut session = Session::from_one_point(&first.point(near, far), is_between);
            let place = if is_between { "between the ends, nearer to" } else { "at" };
            session
                .remarks
                .insert(0, format!("the capture was made {place} {} ({})", near.ip(), ends.evidence));
            session
        }
        Some(second) => {
            // a NAT or a relay between the captures changes addresses
            let (near_there, far_there) = second.ends_of(&first, near, far).unwrap_or((near, far));
            let (near_point, far_point) = (first.point(near, far), second.point(far_there, near_there));
            if Session::is_backwards(&near_point, &far_point) {
                Session::from_two_points(
                    &first.point(far, near),
                    &second.point(near_there, far_there),
                    clocks,
                )
            } else {
                Session::from_two_points(&near_point, &far_point, clocks)
            }
        }
    };
    let mut remarks = first.describe(near, far);
    remarks.append(&mut first.remarks);
    session.remarks.splice(0..0, remarks);
    // a capture does not say which controller ran
    let traces = session
        .directions
        .iter()
        .map(|_| ControllerTrace { controller: "recorded".to_owned(), ..ControllerTrace::default() });
    let traces = traces.collect();
    // a dump may have no time of day
    let start_unix_ms = Some(session.span.0 / MILLI).filter(|&start| start > 0);
    finish(session, traces, problems, start_unix_ms, replay)
}
