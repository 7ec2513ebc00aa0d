//! Calls over sockets from Python: our endpoints on UDP, by the wall clock.

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
use tidegate_live::call::{Answering, Calling, Ended, NoCall, Offer, Phase, Why, Wish, answer, call, merge};
use tidegate_live::session::keys::PresharedKey;
use tidegate_sim::Refusal;
use tidegate_sim::scenario::assemble::{self, Halves, Makers, Wanted};
use tidegate_sim::scenario::{ControllerSpec, Scenario};

/// Asks Python now and then: for Ctrl-C, and whoever shows how far the call is.
struct Asking<'a> {
    progress: Option<&'a Py<PyAny>>,
    /// What a signal or the callback has raised.
    raised: Option<PyErr>,
}

impl Asking<'_> {
    fn ask(&mut self, phase: Phase, share: f64) -> Wish {
        let phase = match phase {
            Phase::Waiting => "waiting",
            Phase::Media => "media",
            Phase::Exchange => "exchange",
        };
        let asked = Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = self.progress else { return Ok(true) };
            progress.call1(py, (phase, share))?.extract::<bool>(py)
        });
        match asked {
            Ok(true) => Wish::Go,
            Ok(false) => Wish::Stop,
            Err(error) => {
                self.raised.get_or_insert(error);
                Wish::Stop
            }
        }
    }
}

fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| bad(format!("{text}: expected ADDRESS:PORT, IPv6 in brackets")))
}

fn preshared(key: &[u8]) -> PyResult<PresharedKey> {
    let least = PresharedKey::LEAST;
    PresharedKey::new(key).map_err(|found| bad(format!("a key of {found} bytes; expected at least {least}")))
}

/// What is left of a call: its recording, and how it went as JSON.
type Left = (Recording, String);

/// What Python gets of a call that has ended.
fn left(
    py: Python<'_>,
    done: Result<Ended, NoCall>,
    asking: Asking<'_>,
    (caller, tapes, begun, raised): (bool, Tapes, Instant, &Raised),
) -> PyResult<Left> {
    let ended = match done {
        Ok(ended) => ended,
        Err(NoCall::Wrong(reason)) => return Err(bad(reason)),
        Err(NoCall::Failed(reason)) => return Err(RunError::new_err(reason)),
        Err(NoCall::Stopped(ignored)) => {
            return Err(asking.raised.unwrap_or_else(|| {
                let (total, forged) = (ignored.total(), ignored.forged);
                let counted = format!("{total} datagrams were ignored, {forged} of them with a wrong tag");
                let hint = if forged > 0 { ": another key?" } else { "" };
                RunError::new_err(format!("no call came; {counted}{hint}"))
            }));
        }
    };
    if let Why::Failed(reason) = &ended.why {
        return Err(with_cause(py, reason.clone(), raised));
    }
    // Ctrl-C ends a call in order; anything else that was raised is an error
    if let Some(error) = asking.raised
        && !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
    {
        return Err(error);
    }
    let run_seconds = begun.elapsed().as_secs_f64();
    let Ended { offer, own, other, why, captured } = ended;
    let merged = py.detach(|| {
        if caller {
            merge(&offer, Some(&own), other.as_ref())
        } else {
            merge(&offer, other.as_ref(), Some(&own))
        }
    });
    let other = other.as_ref();
    let told = serde_json::json!({
        "why": why,
        "side": if caller { "sender" } else { "receiver" },
        "flow": offer.flow,
        "controller": offer.controller,
        "seed": offer.seed,
        "clock_ahead_ms": merged.ahead.map(Span::as_millis_f64),
        "clock_drift_ppm": merged.drift_ppm,
        "clock_drift_removed": merged.straightened,
        "least_round_trip_ms": merged.least_round_trip.map(Span::as_millis_f64),
        "lasted_s": own.lasted.as_secs_f64(),
        "capture_failed": captured.err(),
        "own": own.health,
        "other": other.map(|record| &record.health),
        "about": other.map(|record| &record.about),
    });
    let recording = Recording::new(merged.outcome, tapes, run_seconds);
    Ok((recording, told.to_string()))
}

/// Sends the only flow of a scenario over UDP to another machine, and stays until the call is over; only where there is
/// Linux. Gives the recording and how it went, as JSON.
///
/// `objects` are as in `run`; `about` is for the other side. `progress` is called every 50 ms with a phase (waiting, media,
/// exchange) and a share, and says whether to go on. `capture` is a file for what this side sees.
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
) -> PyResult<Left> {
    let scenario: Scenario = serde_json::from_str(scenario_json).map_err(bad)?;
    let most = Rate::from_bps(max_rate_bps);
    let calling = Calling {
        peer: address(peer)?,
        bind: bind.map(address).transpose()?,
        key: preshared(key)?,
        most,
        about: about.to_owned(),
        capture,
    };
    let (raised, mut tapes) = (Raised::default(), Tapes::new());
    let made = {
        let mut make = |spec: &ControllerSpec| -> Result<Halves, Refusal> {
            if spec.python { from_python(py, spec, &objects, &raised) } else { assemble::from_registry(spec) }
        };
        let mut encoder = |wanted: &Wanted<'_>| encoder::make(wanted, &objects, &raised, &mut tapes);
        Offer::new(&scenario, most, &mut Makers { controller: &mut make, encoder: &mut encoder })
    };
    let (endpoint, offer) = made.map_err(|refusal| {
        let error = refused(py, &refusal);
        if let Some(cause) = raised.lock().ok().and_then(|mut raised| raised.take()) {
            error.set_cause(py, Some(cause));
        }
        error
    })?;
    let begun = Instant::now();
    let mut asking = Asking { progress: progress.as_ref(), raised: None };
    let done = {
        let asking = &mut asking;
        py.detach(move || call(calling, endpoint, offer, &mut |phase, share| asking.ask(phase, share)))
    };
    left(py, done, asking, (true, tapes, begun, &raised))
}

/// Waits for a call on `bind`, answers it, and stays until it is over; see `live_send`.
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
) -> PyResult<Left> {
    let answering = Answering {
        bind: address(bind)?,
        key: preshared(key)?,
        most: Rate::from_bps(max_rate_bps),
        about: about.to_owned(),
        capture,
    };
    let begun = Instant::now();
    let mut asking = Asking { progress: progress.as_ref(), raised: None };
    let done = {
        let asking = &mut asking;
        py.detach(move || {
            let mut make = |spec: &ControllerSpec| assemble::from_registry(spec);
            answer(answering, &mut make, &mut |phase, share| asking.ask(phase, share))
        })
    };
    left(py, done, asking, (false, Tapes::new(), begun, &Raised::default()))
}
