//! Python objects in the seat of a controller or a receiver half.

use super::{PyArrived, PyDecision, PyLimits, PyReport, describe, rate_of};
use crate::errors::bad;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex};
use tidegate_core::control::{
    Arrived, Ask, Context, Controller, Decision, Feedback, Limits, Outgoing, ReceiverHalf, Report, Sent,
    Urgency,
};
use tidegate_core::datagram::Extension;
use tidegate_core::{Rate, Span, Time};

/// Where the exception of a Python controller waits until the run has stopped.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// A Python object in the seat of a controller or a receiver half.
pub(crate) struct PyHalf {
    object: Py<PyAny>,
    raised: Raised,
    on_alarm: bool,
    on_sent: bool,
    stamp: bool,
    /// Why `stamp` failed, until a call that can say so.
    broken: Option<String>,
}

/// An exception in one line.
pub(crate) fn told(py: Python<'_>, method: &str, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map_or_else(|_| "error".to_owned(), |name| name.to_string());
    let text = error.value(py).to_string();
    if text.is_empty() {
        format!("{method} raised {kind}")
    } else {
        format!("{method} raised {kind}: {text}")
    }
}

impl PyHalf {
    /// Takes `object` for a seat.
    ///
    /// # Errors
    /// When it lacks one of the `required` methods.
    pub(crate) fn new(object: &Bound<'_, PyAny>, raised: Raised, required: &[&str]) -> PyResult<Self> {
        for method in required {
            if !object.hasattr(*method)? {
                let what = describe(object);
                return Err(bad(format!("{what} has no method {method}; it needs {}", required.join(", "))));
            }
        }
        // a base class may define a method that does nothing and mark it as such, to spare the calls
        let has = |method: &str| -> PyResult<bool> {
            Ok(object.hasattr(method)? && !object.getattr(method)?.hasattr("_tidegate_default")?)
        };
        Ok(Self {
            on_alarm: has("on_alarm")?,
            on_sent: has("on_sent")?,
            stamp: has("stamp")?,
            object: object.clone().unbind(),
            raised,
            broken: None,
        })
    }

    fn failed(&self, py: Python<'_>, method: &str, error: PyErr, cx: &mut Context<'_>) {
        cx.fail(told(py, method, &error));
        self.keep(error);
    }

    /// Keeps the exception of a failed call for the error of the run.
    fn keep(&self, error: PyErr) {
        if let Ok(mut raised) = self.raised.lock() {
            raised.get_or_insert(error);
        }
    }

    fn decide(
        &self,
        method: &str,
        cx: &mut Context<'_>,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Decision {
        if let Some(reason) = &self.broken {
            cx.fail(reason.clone());
            return cx.unchanged();
        }
        Python::attach(|py| {
            let answer =
                call(self.object.bind(py)).and_then(|answer| decision_of(answer.bind(py), method, cx));
            match answer {
                Ok(decision) => decision,
                Err(error) => {
                    self.failed(py, method, error, cx);
                    cx.unchanged()
                }
            }
        })
    }
}

/// What a Python controller may answer: a `Decision`, a rate, or `None` for no change.
fn decision_of(answer: &Bound<'_, PyAny>, method: &str, cx: &Context<'_>) -> PyResult<Decision> {
    if answer.is_none() {
        return Ok(cx.unchanged());
    }
    if let Ok(decision) = answer.cast::<PyDecision>() {
        return Ok(decision.get().to_core());
    }
    if answer.extract::<f64>().is_err() {
        return Err(bad(format!(
            "{method} returned {}; it must be a Decision, a rate in bit/s, or None for no change",
            describe(answer)
        )));
    }
    rate_of(answer, method).map(|bps| Decision::rate(Rate::from_bps(bps)))
}

impl Controller for PyHalf {
    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        let decision = self.decide("on_report", cx, |object| {
            let report = PyReport { inner: report.clone() };
            Ok(object.call_method1("on_report", (now.as_nanos(), report))?.unbind())
        });
        self.note_internals(cx);
        decision
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        if !self.on_alarm {
            return cx.unchanged();
        }
        self.decide("on_alarm", cx, |object| Ok(object.call_method1("on_alarm", (now.as_nanos(),))?.unbind()))
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision {
        self.decide("on_limits", cx, |object| {
            let limits = PyLimits::from_core(limits);
            Ok(object.call_method1("on_limits", (now.as_nanos(), limits))?.unbind())
        })
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        self.decide("on_sent", cx, |object| {
            let args = (
                now.as_nanos(),
                packet.sequence,
                packet.size.as_bytes(),
                packet.in_flight.as_bytes(),
                packet.backlog.as_bytes(),
            );
            Ok(object.call_method1("on_sent", args)?.unbind())
        })
    }

    fn needs_sent(&self) -> bool {
        self.on_sent
    }

    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        if !self.stamp {
            return None;
        }
        Python::attach(|py| {
            let args = (now.as_nanos(), packet.sequence, packet.size.as_bytes());
            let answer = self.object.bind(py).call_method1("stamp", args);
            match answer.and_then(|answer| answer.extract::<Option<(u8, Vec<u8>)>>()) {
                Ok(extension) => extension.map(|(id, data)| Extension { id, data }),
                Err(error) => {
                    // a stamp cannot fail the run itself: the next call does, or else the run's end
                    self.broken.get_or_insert_with(|| told(py, "stamp", &error));
                    self.keep(error);
                    None
                }
            }
        })
    }
}

impl PyHalf {
    /// Records what a call put into the attribute `internals` of the object, a dict of names and numbers,
    /// and empties it, so that the next call is not taken to have said the same again.
    fn note_internals(&self, cx: &mut Context<'_>) {
        if !cx.wants_notes() {
            return;
        }
        Python::attach(|py| {
            let Ok(internals) = self.object.bind(py).getattr("internals") else { return };
            let Ok(internals) = internals.cast_into::<PyDict>() else { return };
            for (name, value) in &internals {
                if let (Ok(name), Ok(value)) = (name.extract::<String>(), value.extract::<f64>()) {
                    cx.note(name, value);
                }
            }
            internals.clear();
        });
    }

    fn ask(
        &self,
        method: &str,
        cx: &mut Context<'_>,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Ask {
        Python::attach(|py| {
            match call(self.object.bind(py)).and_then(|answer| ask_of(answer.bind(py), method)) {
                Ok(ask) => ask,
                Err(error) => {
                    self.failed(py, method, error, cx);
                    Ask::default()
                }
            }
        })
    }
}

/// What a Python receiver half may answer: None, an urgency, or (urgency, alarm in ns). An urgency is
/// "none", "regular", "now", or a number: early, and worthless after so many nanoseconds.
fn ask_of(answer: &Bound<'_, PyAny>, method: &str) -> PyResult<Ask> {
    let (urgency, alarm) = match answer.extract::<(Bound<'_, PyAny>, Option<i64>)>() {
        Ok((urgency, alarm)) => (urgency, alarm.map(Time::from_nanos)),
        Err(_) => (answer.clone(), None),
    };
    let wrong = || {
        bad(format!(
            "{method} returned {}; it must be None, \"none\", \"regular\", \"now\", a number of nanoseconds within \
             which it must be early, or a pair of that and an alarm in nanoseconds",
            describe(answer)
        ))
    };
    let urgency = if urgency.is_none() {
        Urgency::None
    } else if let Ok(within) = urgency.extract::<i64>() {
        Urgency::Early(Span::from_nanos(within))
    } else {
        match urgency.extract::<String>().map_err(|_| wrong())?.as_str() {
            "none" => Urgency::None,
            "regular" => Urgency::Regular,
            "now" => Urgency::Now,
            _ => return Err(wrong()),
        }
    };
    Ok(Ask { urgency, alarm })
}

impl ReceiverHalf for PyHalf {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, cx: &mut Context<'_>) -> Ask {
        self.ask("on_packet", cx, |object| {
            let packet = PyArrived {
                sequence: packet.sequence,
                size: packet.size.as_bytes(),
                abs_send_time: packet.abs_send_time,
                ssrc: packet.ssrc,
                rtp_sequence: packet.rtp_sequence,
                timestamp: packet.timestamp,
                marker: packet.marker,
                ecn: packet.ecn as u8,
                extension: packet.extension.map(|e| (e.id, e.data.clone())),
            };
            Ok(object.call_method1("on_packet", (now.as_nanos(), packet))?.unbind())
        })
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Ask {
        if !self.on_alarm {
            return Ask::default();
        }
        self.ask("on_alarm", cx, |object| Ok(object.call_method1("on_alarm", (now.as_nanos(),))?.unbind()))
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> Feedback {
        let said = Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("message", (now.as_nanos(),));
            match answer.and_then(|answer| crate::wire::packets_from_python(&answer)) {
                Ok(packets) => packets,
                Err(error) => {
                    self.failed(py, "message", error, cx);
                    Feedback::new()
                }
            }
        });
        self.note_internals(cx);
        said
    }
}
