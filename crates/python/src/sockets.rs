//! Calls over sockets from Python: our endpoints on UDP, in real time.

use crate::control::half::Raised;
use crate::encoder::{self, Tapes};
use crate::errors::{RunError, bad, refused};
use crate::run::{Recording, from_python, with_cause};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;
use tidegate_core::{Rate, Span};
use tidegate_live::call::{
    AnswererSettings, CallError, CallerSettings, EndReason, EndedCall, Offer, Phase, ProgressReply, answer,
    call, merge,
};
use tidegate_live::session::keys::PresharedKey;
use tidegate_sim::Refusal;
use tidegate_sim::scenario::assemble::{self, EncoderRequest, Halves, Makers};
use tidegate_sim::scenario::{ControllerSpec, Scenario};

/// Checks for signals such as Ctrl-C, and calls the progress callback.
struct ProgressReporter<'a> {
    progress: Option<&'a Py<PyAny>>,
    /// Exception that a signal or the callback has raised.
    raised: Option<PyErr>,
}

impl ProgressReporter<'_> {
    fn report(&mut self, phase: Phase, share: f64) -> ProgressReply {
        let phase = match phase {
            Phase::Waiting => "waiting",
            Phase::Media => "media",
            Phase::Exchange => "exchange",
        };
        let result = Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = self.progress else { return Ok(true) };
            progress.call1(py, (phase, share))?.extract::<bool>(py)
        });
        match result {
            Ok(true) => ProgressReply::Continue,
            Ok(false) => ProgressReply::Stop,
            Err(error) => {
                self.raised.get_or_insert(error);
                ProgressReply::Stop
            }
        }
    }
}

fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse()
        .map_err(|_| bad(format!("{text}: expected ADDRESS:PORT, with brackets around an IPv6 address")))
}

fn preshared(key: &[u8]) -> PyResult<PresharedKey> {
    let min = PresharedKey::MIN_LENGTH;
    PresharedKey::new(key)
        .map_err(|length| bad(format!("key: found {length} bytes; expected at least {min}")))
}

/// Result of a call for Python: its recording, and its facts as JSON.
type CallResult = (Recording, String);

/// Converts the end of a call for Python.
fn convert_result(
    py: Python<'_>,
    result: Result<EndedCall, CallError>,
    reporter: ProgressReporter<'_>,
    (caller, tapes, started, raised): (bool, Tapes, Instant, &Raised),
) -> PyResult<CallResult> {
    let call = match result {
        Ok(call) => call,
        Err(CallError::Invalid(reason)) => return Err(bad(reason)),
        Err(CallError::Failed(reason)) => return Err(RunError::new_err(reason)),
        Err(CallError::Stopped(ignored)) => {
            return Err(reporter.raised.unwrap_or_else(|| {
                let hint = if ignored.forged > 0 { "; does the other side have another key?" } else { "" };
                RunError::new_err(format!("no call arrived; {ignored}{hint}"))
            }));
        }
    };
    if let EndReason::Failed(reason) = &call.reason {
        return Err(with_cause(py, reason.clone(), raised));
    }
    // Ctrl-C ends a call in order; any other exception is an error
    if let Some(error) = reporter.raised
        && !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
    {
        return Err(error);
    }
    let run_seconds = started.elapsed().as_secs_f64();
    let EndedCall { offer, local, remote, reason, capture } = call;
    let merged = py.detach(|| {
        if caller {
            merge(&offer, Some(&local), remote.as_ref())
        } else {
            merge(&offer, remote.as_ref(), Some(&local))
        }
    });
    let remote = remote.as_ref();
    let facts = serde_json::json!({
        "why": reason,
        "side": if caller { "sender" } else { "receiver" },
        "flow": offer.flow,
        "controller": offer.controller,
        "seed": offer.seed,
        "clock_ahead_ms": merged.clock_ahead.map(Span::as_millis_f64),
        "clock_drift_ppm": merged.drift_ppm,
        "clock_drift_removed": merged.drift_corrected,
        "least_round_trip_ms": merged.min_round_trip.map(Span::as_millis_f64),
        "lasted_s": local.lasted.as_secs_f64(),
        "capture_failed": capture.err(),
        "own": local.health,
        "other": remote.map(|record| &record.health),
        "about": remote.map(|record| &record.about),
    });
    let recording = Recording::new(merged.outcome, tapes, run_seconds);
    Ok((recording, facts.to_string()))
}

/// Sends the only flow of a scenario over UDP to another machine, and returns when the call is over; only on Linux.
/// Returns the recording, and the facts of the call as JSON.
///
/// `objects` are as in `run`; `about` is a text for the other side. `progress` is called every 50 ms with a phase
/// (waiting, media, exchange) and the share of it that is over, and returns whether to go on. `capture` is a file for a
/// capture of this side's datagrams.
#[pyfunction]
#[pyo3(signature = (scenario_json, peer, key, max_rate_bps, about="", bind=None, objects: "_Objects" = BTreeMap::new(), progress: "Callable[[str, float], bool] | None" = None, capture=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn live_send(
    py: Python<'_>,
    scenario_json: &str,
    peer: &str,
    key: &[u8],
    max_rate_bps: u64,
    about: &str,
    bind: Option<&str>,
    objects: BTreeMap<String, Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    capture: Option<PathBuf>,
) -> PyResult<CallResult> {
    let scenario: Scenario = serde_json::from_str(scenario_json).map_err(bad)?;
    let max_rate = Rate::from_bps(max_rate_bps);
    let settings = CallerSettings {
        peer: address(peer)?,
        bind: bind.map(address).transpose()?,
        key: preshared(key)?,
        max_rate,
        about: about.to_owned(),
        capture,
    };
    let (raised, mut tapes) = (Raised::default(), Tapes::new());
    let prepared = {
        let mut make = |spec: &ControllerSpec| -> Result<Halves, Refusal> {
            if spec.python { from_python(py, spec, &objects, &raised) } else { assemble::from_registry(spec) }
        };
        let mut encoder = |wanted: &EncoderRequest<'_>| encoder::make(wanted, &objects, &raised, &mut tapes);
        Offer::new(&scenario, max_rate, &mut Makers { controller: &mut make, encoder: &mut encoder })
    };
    let (endpoint, offer) = prepared.map_err(|refusal| {
        let error = refused(py, &refusal);
        if let Some(cause) = raised.lock().ok().and_then(|mut raised| raised.take()) {
            error.set_cause(py, Some(cause));
        }
        error
    })?;
    let started = Instant::now();
    let mut reporter = ProgressReporter { progress: progress.as_ref(), raised: None };
    let result = {
        let reporter = &mut reporter;
        py.detach(move || call(settings, endpoint, offer, &mut |phase, share| reporter.report(phase, share)))
    };
    convert_result(py, result, reporter, (true, tapes, started, &raised))
}

/// Waits for a call on `bind`, answers it, and returns when it is over; see `live_send`.
#[pyfunction]
#[pyo3(signature = (bind, key, max_rate_bps, about="", progress: "Callable[[str, float], bool] | None" = None, capture=None))]
pub(crate) fn live_receive(
    py: Python<'_>,
    bind: &str,
    key: &[u8],
    max_rate_bps: u64,
    about: &str,
    progress: Option<Py<PyAny>>,
    capture: Option<PathBuf>,
) -> PyResult<CallResult> {
    let settings = AnswererSettings {
        bind: address(bind)?,
        key: preshared(key)?,
        max_rate: Rate::from_bps(max_rate_bps),
        about: about.to_owned(),
        capture,
    };
    let started = Instant::now();
    let mut reporter = ProgressReporter { progress: progress.as_ref(), raised: None };
    let result = {
        let reporter = &mut reporter;
        py.detach(move || {
            let mut make = |spec: &ControllerSpec| assemble::from_registry(spec);
            answer(settings, &mut make, &mut |phase, share| reporter.report(phase, share))
        })
    };
    convert_result(py, result, reporter, (false, Tapes::new(), started, &Raised::default()))
}
