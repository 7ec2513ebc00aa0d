//! Controllers and receiver halves that are Python objects, which the engine calls.

use super::decision::{PyDecision, PyLimits, PyNeeds};
use super::pacing::DefaultPacing;
use super::packets::{PyArrived, PyNewFrame, PyOutgoing, PySent};
use super::report::PyReport;
use super::{bytes_of, describe, rate_of};
use crate::errors::{bad, check_environment};
use crate::trace::PyStream;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};
use tidegate_controllers::Content;
use tidegate_core::control::{
    Arrived, Context, Controller, Decision, Feedback, FeedbackRequest, Limits, Needs, NewFrame, Outgoing,
    ReceiverHalf, Report, Sent, Urgency,
};
use tidegate_core::datagram::Extension;
use tidegate_core::{Rate, Size, Span, Stream, Time, math};

/// The first exception of a Python controller, which is stored until the run has stopped.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// A Python object in the host of a controller or a receiver half.
pub(crate) struct PyHalf {
    object: Py<PyAny>,
    /// The name of its class, for errors.
    class: String,
    raised: Raised,
    on_alarm: bool,
    on_sent: bool,
    on_frame: bool,
    stamp: bool,
    in_flight: bool,
    coupled: bool,
    needs: Needs,
    needs_true_delay: bool,
    pacing: DefaultPacing,
    /// The substream for draws during a call; `None` if the object has an `rng` of its own, or no room for one.
    rng: Option<Py<PyStream>>,
    /// The last result of `in_flight`, which is valid until the next call: only calls change an object.
    cached_in_flight: Cell<Option<Option<Size>>>,
    /// Reason why `stamp`, `in_flight` or `coupled_rate` failed, until a call that can report it.
    broken: RefCell<Option<String>>,
}

/// Describes an exception in one line.
pub(crate) fn exception_text(py: Python<'_>, method: &str, error: &PyErr) -> String {
    // of the value: in Python 3.11 the type of a panic that nothing has caught is still PyO3's
    let kind = error.value(py).get_type().name().map_or_else(|_| "error".to_owned(), |name| name.to_string());
    let text = error.value(py).to_string();
    if text.is_empty() {
        format!("{method} raised {kind}")
    } else {
        format!("{method} raised {kind}: {text}")
    }
}

/// Error of a call of a Python method.
enum CallError {
    /// It raised this exception.
    Raised(PyErr),
    /// It returned an invalid value; the message names the method and the problem.
    Invalid(String),
}

impl From<PyErr> for CallError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl PyHalf {
    /// Wraps a controller for a host in a call with `content`.
    ///
    /// # Errors
    /// If it lacks a method that it needs, or one of its attributes violates the contract.
    pub(crate) fn controller(object: &Bound<'_, PyAny>, raised: Raised, content: Content) -> PyResult<Self> {
        Self::new(object, raised, &["on_report", "on_limits"], content)
    }

    /// Wraps a receiver half for a host.
    ///
    /// # Errors
    /// If it lacks a method that it needs, or one of its attributes violates the contract.
    pub(crate) fn receiver(object: &Bound<'_, PyAny>, raised: Raised) -> PyResult<Self> {
        Self::new(object, raised, &["on_packet", "message"], Content::default())
    }

    fn new(object: &Bound<'_, PyAny>, raised: Raised, required: &[&str], content: Content) -> PyResult<Self> {
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
        let class = class_of(object);
        let flag = |name: &str, default: bool| -> PyResult<bool> {
            let Some(value) = object.getattr_opt(name)? else { return Ok(default) };
            let wrong =
                |_| bad(format!("{class}.{name}: found {}; it must be True or False", describe(&value)));
            value.extract().map_err(wrong)
        };
        let needs = match object.getattr_opt("needs")? {
            None => Needs::default(),
            Some(needs) => needs
                .cast::<PyNeeds>()
                .map_err(|_| bad(format!("{class}.needs: found {}; it must be a Needs", describe(&needs))))?
                .get()
                .to_core(),
        };
        let mut rng = None;
        if !object.hasattr("rng")? {
            let lent = Py::new(object.py(), PyStream::empty())?;
            // an object with slots may have no room for it, and then draws nothing
            rng = object.setattr("rng", &lent).is_ok().then_some(lent);
        }
        Ok(Self {
            on_alarm: has("on_alarm")?,
            on_sent: flag("needs_sent", has("on_sent")?)?,
            on_frame: flag("needs_frames", has("on_frame")?)?,
            stamp: has("stamp")?,
            in_flight: has("in_flight")?,
            coupled: has("coupled_rate")?,
            needs,
            needs_true_delay: flag("needs_true_delay", false)?,
            pacing: DefaultPacing::new(content),
            rng,
            object: object.clone().unbind(),
            class,
            raised,
            cached_in_flight: Cell::new(None),
            broken: RefCell::new(None),
        })
    }

    /// The name of a method, for errors.
    fn name(&self, method: &str) -> String {
        format!("{}.{method}", self.class)
    }

    /// Ends the run.
    fn failed(&self, py: Python<'_>, method: &str, wrong: CallError, cx: &mut Context<'_>) {
        match wrong {
            CallError::Raised(error) => {
                cx.fail(exception_text(py, &self.name(method), &error));
                self.keep(error);
            }
            CallError::Invalid(message) => cx.fail(message),
        }
    }

    /// Keeps the exception of a failed call for the error of the run.
    fn keep(&self, error: PyErr) {
        if let Ok(mut raised) = self.raised.lock() {
            raised.get_or_insert(error);
        }
    }

    /// Stores why a call failed that cannot stop the run itself; the next call stops it, or else the run's end reports
    /// it.
    fn set_broken(&self, py: Python<'_>, method: &str, error: PyErr) {
        self.broken.borrow_mut().get_or_insert_with(|| exception_text(py, &self.name(method), &error));
        self.keep(error);
    }

    /// Calls a method, with the controller's substream in the object's hands.
    fn call<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
        cx: &mut Context<'_>,
    ) -> Result<Bound<'py, PyAny>, CallError> {
        self.cached_in_flight.set(None);
        let answer = self.call_with_rng(py, method, args, cx)?;
        let left = |other: math::OtherEnvironment| format!("after {}: {other}", self.name(method));
        math::check_environment().map_err(|other| CallError::Invalid(left(other)))?;
        Ok(answer)
    }

    fn call_with_rng<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
        cx: &mut Context<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = self.object.bind(py);
        let args = args.into_pyobject(py)?;
        let Some(rng) = &self.rng else { return object.call_method1(method, args) };
        let lent = std::mem::replace(cx.rng, Stream::new(0, "", ""));
        rng.bind(py).try_borrow_mut()?.swap(Some(lent));
        let answer = object.call_method1(method, args);
        if let Some(back) = rng.bind(py).try_borrow_mut()?.swap(None) {
            *cx.rng = back;
        }
        answer
    }

    /// Calls a method without a context: its failure waits in `broken`.
    fn call_plainly<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        args: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.object.bind(py).call_method1(method, args)?;
        check_environment()?;
        Ok(answer)
    }

    fn decide<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
        cx: &mut Context<'_>,
    ) -> Decision {
        if let Some(reason) = &*self.broken.borrow() {
            cx.fail(reason.clone());
            return cx.unchanged();
        }
        let name = || self.name(method);
        let answer = self.call(py, method, args, cx);
        let decision = answer.and_then(|answer| self.decision_of(&answer, name, cx)).and_then(|decision| {
            match cx.objection(&decision) {
                None => Ok(decision),
                Some(why) => Err(CallError::Invalid(format!("{} {why}", name()))),
            }
        });
        decision.unwrap_or_else(|wrong| {
            self.failed(py, method, wrong, cx);
            cx.unchanged()
        })
    }

    /// Converts the result of a Python controller: a `Decision`, a rate, or `None` for no change.
    fn decision_of(
        &self,
        answer: &Bound<'_, PyAny>,
        name: impl Fn() -> String,
        cx: &Context<'_>,
    ) -> Result<Decision, CallError> {
        if answer.is_none() {
            return Ok(self.pacing.unchanged(cx.unchanged()));
        }
        if let Ok(decision) = answer.cast::<PyDecision>() {
            return Ok(decision.get().to_core(&self.pacing));
        }
        // Python takes True for 1, but it is no rate
        if answer.is_instance_of::<PyBool>() || answer.extract::<f64>().is_err() {
            return Err(CallError::Invalid(format!(
                "{} returned {}; it must be a Decision, a rate in bit/s, or None for no change",
                name(),
                describe(answer)
            )));
        }
        let rate = rate_of(answer, &name())
            .map_err(|error| CallError::Invalid(error.value(answer.py()).to_string()))?;
        Ok(self.pacing.paced(Decision::rate(Rate::from_bps(rate))))
    }
}

/// The name of an object's class.
fn class_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

impl Controller for PyHalf {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_report(&mut self, now: Time, report: &Report, cx: &mut Context<'_>) -> Decision {
        self.pacing.report(report);
        Python::attach(|py| {
            let report = PyReport { inner: report.clone() };
            let decision = self.decide(py, "on_report", (now.as_nanos(), report), cx);
            self.note_internals(py, cx);
            decision
        })
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> Decision {
        if !self.on_alarm {
            return cx.unchanged();
        }
        Python::attach(|py| self.decide(py, "on_alarm", (now.as_nanos(),), cx))
    }

    fn on_limits(&mut self, now: Time, limits: &Limits, cx: &mut Context<'_>) -> Decision {
        Python::attach(|py| self.decide(py, "on_limits", (now.as_nanos(), PyLimits::from_core(limits)), cx))
    }

    fn on_sent(&mut self, now: Time, packet: &Sent, cx: &mut Context<'_>) -> Decision {
        Python::attach(|py| self.decide(py, "on_sent", (now.as_nanos(), PySent::from_core(packet)), cx))
    }

    fn needs_sent(&self) -> bool {
        self.on_sent
    }

    fn on_frame(&mut self, now: Time, frame: &NewFrame, cx: &mut Context<'_>) -> Decision {
        Python::attach(|py| self.decide(py, "on_frame", (now.as_nanos(), PyNewFrame::from_core(frame)), cx))
    }

    fn needs_frames(&self) -> bool {
        self.on_frame
    }

    fn in_flight(&self) -> Option<Size> {
        if !self.in_flight {
            return None;
        }
        if let Some(cached) = self.cached_in_flight.get() {
            return cached;
        }
        let counted = Python::attach(|py| {
            let answer = self.call_plainly(py, "in_flight", ()).and_then(|answer| {
                let bytes = |answer| bytes_of(answer, "the returned value").map(Size::from_bytes);
                (!answer.is_none()).then(|| bytes(&answer)).transpose()
            });
            answer.unwrap_or_else(|error| {
                self.set_broken(py, "in_flight", error);
                None
            })
        });
        self.cached_in_flight.set(Some(counted));
        counted
    }

    fn coupled_rate(&self) -> Option<Rate> {
        if !self.coupled {
            return None;
        }
        Python::attach(|py| {
            let answer = self.call_plainly(py, "coupled_rate", ()).and_then(|answer| {
                let rate = |answer| rate_of(answer, "the returned value").map(Rate::from_bps);
                (!answer.is_none()).then(|| rate(&answer)).transpose()
            });
            answer.unwrap_or_else(|error| {
                self.set_broken(py, "coupled_rate", error);
                None
            })
        })
    }

    fn on_coupled(&mut self, now: Time, rate: Rate, cx: &mut Context<'_>) -> Decision {
        Python::attach(|py| self.decide(py, "on_coupled", (now.as_nanos(), rate.as_bps()), cx))
    }

    fn stamp(&mut self, now: Time, packet: &Outgoing) -> Option<Extension> {
        if !self.stamp {
            return None;
        }
        self.cached_in_flight.set(None);
        Python::attach(|py| {
            let args = (now.as_nanos(), PyOutgoing::from_core(packet));
            let answer = self.call_plainly(py, "stamp", args);
            match answer.and_then(|answer| answer.extract::<Option<(u8, Vec<u8>)>>()) {
                Ok(extension) => extension.map(|(id, data)| Extension { id, data }),
                Err(error) => {
                    self.set_broken(py, "stamp", error);
                    None
                }
            }
        })
    }
}

impl PyHalf {
    /// Records the attribute `internals` of the object, a dict of names and numbers, and empties it, so that the values
    /// are not recorded again after the next call.
    fn note_internals(&self, py: Python<'_>, cx: &mut Context<'_>) {
        if !cx.wants_notes() {
            return;
        }
        let Ok(internals) = self.object.bind(py).getattr("internals") else { return };
        let Ok(internals) = internals.cast_into::<PyDict>() else { return };
        for (name, value) in &internals {
            match (name.extract::<String>(), value.extract::<f64>()) {
                (Ok(name), Ok(value)) => cx.note(name, value),
                _ => {
                    let (attribute, name, value) =
                        (self.name("internals"), describe(&name), describe(&value));
                    let message = format!(
                        "{attribute}: {name} is {value}; internals must be a dict of names and numbers"
                    );
                    self.failed(py, "internals", CallError::Invalid(message), cx);
                }
            }
        }
        internals.clear();
    }

    fn ask<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
        cx: &mut Context<'_>,
    ) -> FeedbackRequest {
        let answer = self.call(py, method, args, cx);
        let ask = answer.and_then(|answer| ask_of(&answer, &self.name(method)).map_err(CallError::Invalid));
        let ask = ask.and_then(|ask| match cx.alarm_objection(ask.alarm) {
            None => Ok(ask),
            Some(why) => Err(CallError::Invalid(format!("{} {why}", self.name(method)))),
        });
        ask.unwrap_or_else(|wrong| {
            self.failed(py, method, wrong, cx);
            FeedbackRequest::default()
        })
    }
}

/// Converts the result of a Python receiver half: None, an urgency, or (urgency, alarm in ns). An urgency is "none",
/// "regular", "now", or a number of nanoseconds within which feedback must be sent early.
fn ask_of(answer: &Bound<'_, PyAny>, name: &str) -> Result<FeedbackRequest, String> {
    let (urgency, alarm) = match answer.extract::<(Bound<'_, PyAny>, Option<i64>)>() {
        Ok((urgency, alarm)) => (urgency, alarm.map(Time::from_nanos)),
        Err(_) => (answer.clone(), None),
    };
    let wrong = || {
        format!(
            "{name} returned {}; it must be None, \"none\", \"regular\", \"now\", a number of nanoseconds within \
             which feedback must be sent early, or a pair of one of these and an alarm in nanoseconds",
            describe(answer)
        )
    };
    let urgency = if urgency.is_none() {
        Urgency::None
    } else if let Ok(within) = urgency.extract::<i64>() {
        if within < 0 {
            return Err(wrong());
        }
        Urgency::Early(Span::from_nanos(within))
    } else {
        match urgency.extract::<String>().map_err(|_| wrong())?.as_str() {
            "none" => Urgency::None,
            "regular" => Urgency::Regular,
            "now" => Urgency::Now,
            _ => return Err(wrong()),
        }
    };
    Ok(FeedbackRequest { urgency, alarm })
}

impl ReceiverHalf for PyHalf {
    fn on_packet(&mut self, now: Time, packet: &Arrived<'_>, cx: &mut Context<'_>) -> FeedbackRequest {
        Python::attach(|py| self.ask(py, "on_packet", (now.as_nanos(), PyArrived::from_core(packet)), cx))
    }

    fn on_alarm(&mut self, now: Time, cx: &mut Context<'_>) -> FeedbackRequest {
        if !self.on_alarm {
            return FeedbackRequest::default();
        }
        Python::attach(|py| self.ask(py, "on_alarm", (now.as_nanos(),), cx))
    }

    fn message(&mut self, now: Time, cx: &mut Context<'_>) -> Feedback {
        Python::attach(|py| {
            let answer = self.call(py, "message", (now.as_nanos(),), cx);
            let packets = |answer| crate::wire::packets_from_python(&answer).map_err(CallError::from);
            let feedback = match answer.and_then(packets) {
                Ok(packets) => packets,
                Err(wrong) => {
                    self.failed(py, "message", wrong, cx);
                    Feedback::new()
                }
            };
            self.note_internals(py, cx);
            feedback
        })
    }

    fn needs_true_delay(&self) -> bool {
        self.needs_true_delay
    }
}
