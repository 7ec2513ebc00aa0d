//! RTCP timing on its own: `tidegate.rtcp.Schedule`.

use crate::errors::bad;
use crate::tfrc::number;
use pyo3::prelude::*;
use tidegate_core::{Rate, Span, Time};
use tidegate_endpoint::rtcp::schedule::{Avpf, Chance, Due, Profile, Schedule, Timing};

/// The transmission state of one participant of an RTP session (RFC 3550 section 6.3, RFC 4585 section 3).
#[pyclass(module = "tidegate.net.rtcp", name = "Schedule")]
pub(crate) struct PySchedule {
    schedule: Schedule,
    /// Gives the pseudo-random numbers: a callable, or an iterator.
    uniform: Py<PyAny>,
    calls: bool,
}

/// A span that is not negative, and not so long that two of them overflow.
fn span(name: &str, nanos: i64) -> PyResult<Span> {
    if (0..=i64::MAX / 4).contains(&nanos) {
        return Ok(Span::from_nanos(nanos));
    }
    Err(bad(format!("{name}: found {nanos}; expected nanoseconds from 0 to {}", i64::MAX / 4)))
}

fn time(now_ns: i64) -> PyResult<Time> {
    Ok(Time::ZERO + span("now_ns", now_ns)?)
}

impl PySchedule {
    /// The next pseudo-random number.
    fn draw(&self, py: Python<'_>) -> PyResult<f64> {
        let value = if self.calls {
            self.uniform.call0(py)?
        } else {
            let next = self.uniform.bind(py).try_iter()?.next();
            next.ok_or_else(|| bad("uniform: found no more numbers; expected one more"))??.unbind()
        };
        number("uniform", value.extract(py)?, 0.0, false, 1.0)
    }

    /// Calls `operation` with pseudo-random numbers; if there are none left, the schedule does not change.
    fn with<T>(
        &mut self,
        py: Python<'_>,
        operation: impl FnOnce(&mut Schedule, &mut dyn FnMut() -> f64) -> T,
    ) -> PyResult<T> {
        let mut schedule = self.schedule.clone();
        let mut draw_error = None;
        let mut draw = || {
            self.draw(py).unwrap_or_else(|error| {
                draw_error.get_or_insert(error);
                0.5
            })
        };
        let result = operation(&mut schedule, &mut draw);
        if let Some(error) = draw_error {
            return Err(error);
        }
        self.schedule = schedule;
        Ok(result)
    }
}

#[pymethods]
impl PySchedule {
    #[new]
    #[pyo3(signature = (
        profile: "Literal['avp', 'avpf']" = "avp",
        *,
        session_bandwidth,
        uniform: "Callable[[], float] | Iterable[float]",
        minimum=5_000_000_000,
        first_size=100,
        l=0.5,
        k=None,
        max_feedback_delay=1_000_000_000,
        rr_interval=0,
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        profile: &str,
        session_bandwidth: u64,
        uniform: Bound<'_, PyAny>,
        minimum: i64,
        first_size: u32,
        l: f64,
        k: Option<f64>,
        max_feedback_delay: i64,
        rr_interval: i64,
    ) -> PyResult<Self> {
        let profile = match profile {
            "avp" => Profile::Avp,
            "avpf" => Profile::Avpf(Avpf {
                l: number("l", l, 0.0, false, 1e6)?,
                k: k.map(|k| number("k", k, 0.0, false, 1e6)).transpose()?,
                max_feedback_delay: span("max_feedback_delay", max_feedback_delay)?,
                rr_interval: span("rr_interval", rr_interval)?,
                ..Avpf::default()
            }),
            _ => return Err(bad(format!("profile: found \"{profile}\"; expected \"avp\" or \"avpf\""))),
        };
        if session_bandwidth == 0 {
            return Err(bad("session_bandwidth: found 0; expected bit/s, more than 0"));
        }
        if first_size == 0 {
            return Err(bad("first_size: found 0; expected bytes, more than 0"));
        }
        let timing = Timing {
            profile,
            session: Rate::from_bps(session_bandwidth),
            minimum: span("minimum", minimum)?,
            first_size,
        };
        let calls = uniform.is_callable();
        let uniform = if calls { uniform } else { uniform.try_iter()?.into_any() };
        Ok(Self { schedule: Schedule::new(&timing), uniform: uniform.unbind(), calls })
    }

    /// Joins the session, which then has `members` members (RFC 3550 section 6.3.2).
    fn join(&mut self, py: Python<'_>, now_ns: i64, members: u32) -> PyResult<()> {
        let now = time(now_ns)?;
        self.with(py, |schedule, uniform| schedule.join(now, members, uniform))
    }

    /// Leaves the session: nothing is sent any more.
    fn leave(&mut self) {
        self.schedule.leave();
    }

    /// The timer has gone off (RFC 3550 section 6.3.6, RFC 4585 section 3.5.3): what to do now.
    #[pyo3(signature = (now_ns, waiting=false) -> "Literal['nothing', 'regular', 'minimal', 'early', 'goodbye']")]
    fn expire(&mut self, py: Python<'_>, now_ns: i64, waiting: bool) -> PyResult<&'static str> {
        let now = time(now_ns)?;
        let due = self.with(py, |schedule, uniform| schedule.expire(now, waiting, uniform))?;
        Ok(match due {
            Due::Nothing => "nothing",
            Due::Regular => "regular",
            Due::Minimal => "minimal",
            Due::Early => "early",
            Due::Goodbye => "goodbye",
        })
    }

    /// A regular or minimal packet of `size` bytes was sent: a new interval begins.
    fn sent(&mut self, py: Python<'_>, now_ns: i64, size: u32) -> PyResult<()> {
        let now = time(now_ns)?;
        self.with(py, |schedule, uniform| schedule.sent(now, size, uniform))
    }

    /// An early packet of `size` bytes was sent: a regular one is left out (RFC 4585 section 3.5.2, step 6).
    fn sent_early(&mut self, size: u32) {
        self.schedule.sent_early(size);
    }

    /// Requests to send feedback on an event of this instant: how and when it is sent (RFC 4585 section 3.5.2).
    #[pyo3(signature = (now_ns, rtt_ns=None) -> "tuple[Literal['early', 'regular', 'discard'], int | None]")]
    fn feedback(
        &mut self,
        py: Python<'_>,
        now_ns: i64,
        rtt_ns: Option<i64>,
    ) -> PyResult<(&'static str, Option<i64>)> {
        let now = time(now_ns)?;
        let rtt = rtt_ns.map(|rtt| span("rtt_ns", rtt)).transpose()?;
        let chance = self.with(py, |schedule, uniform| schedule.feedback(now, rtt, uniform))?;
        Ok(match chance {
            Chance::Early(time) => ("early", Some(time.as_nanos())),
            Chance::Regular => ("regular", self.tn()),
            Chance::No => ("discard", None),
        })
    }

    /// Cancels the waiting feedback, which other participants have sent (RFC 4585 section 3.5.2, step 5a).
    fn cancel_early(&mut self) {
        self.schedule.cancel_early();
    }

    /// A packet of `size` bytes was received, IP and UDP headers included (RFC 3550 section 6.3.3).
    fn received(&mut self, size: u32) {
        self.schedule.received(size);
    }

    /// The number of members has changed; with fewer, the timer comes forward (RFC 3550 section 6.3.4).
    fn set_members(&mut self, now_ns: i64, members: u32) -> PyResult<()> {
        self.schedule.set_members(time(now_ns)?, members);
        Ok(())
    }

    /// Sets the number of senders, and whether this participant is one (RFC 3550 section 6.3.8).
    fn set_senders(&mut self, senders: u32, we_sent: bool) {
        self.schedule.set_senders(senders, we_sent);
    }

    /// Requests to send a goodbye of `size` bytes; returns whether it may be sent at once (RFC 3550 section 6.3.7).
    fn goodbye(&mut self, py: Python<'_>, now_ns: i64, size: u32) -> PyResult<bool> {
        let now = time(now_ns)?;
        self.with(py, |schedule, uniform| schedule.goodbye(now, size, uniform))
    }

    /// A goodbye of `size` bytes was received while the own goodbye waits (RFC 3550 section 6.3.7).
    fn heard_goodbye(&mut self, size: u32) {
        self.schedule.heard_goodbye(size);
    }

    /// When the timer goes off: te or tn; None for never.
    #[getter]
    fn due(&self) -> Option<i64> {
        finite_ns(self.schedule.due())
    }

    /// tp, when the last packet was sent or should have been.
    #[getter]
    fn tp(&self) -> i64 {
        self.schedule.state().0.as_nanos()
    }

    /// tn, when the next regular packet is scheduled; None for never.
    #[getter]
    fn tn(&self) -> Option<i64> {
        finite_ns(self.schedule.state().1)
    }

    /// T_rr, the last interval computed.
    #[getter]
    fn t_rr(&self) -> i64 {
        self.schedule.state().2.as_nanos()
    }

    /// avg_rtcp_size in bytes.
    #[getter]
    fn average_size(&self) -> f64 {
        self.schedule.average_size()
    }

    /// Whether the next feedback may go early.
    #[getter]
    fn allow_early(&self) -> bool {
        self.schedule.allows_early()
    }

    /// Td, the interval without randomisation (RFC 3550 section 6.3.1).
    #[getter]
    fn deterministic(&self) -> i64 {
        self.schedule.deterministic().as_nanos()
    }

    /// Silence after which a member has left (RFC 3550 section 6.3.5, RFC 8108 section 7.1.4).
    #[getter]
    fn member_timeout(&self) -> i64 {
        self.schedule.member_timeout().as_nanos()
    }

    /// Time without RTP after which a sender counts as a receiver (RFC 3550 section 6.3.5).
    #[getter]
    fn sender_timeout(&self) -> i64 {
        self.schedule.sender_timeout().as_nanos()
    }
}

/// Nanoseconds of a time; `None` for never.
fn finite_ns(time: Time) -> Option<i64> {
    (time != Time::MAX).then(|| time.as_nanos())
}
