//! Traces for Python.

use crate::errors::{bad, check_environment};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use tidegate_core::{Rate, Span, Stream, Time};
use tidegate_sim::link::capacity::BrownianSettings;
use tidegate_sim::link::trace::{Capacity, Direction, Format, ReadOptions, Trace};
use tidegate_sim::radio::lte;
use tidegate_sim::scenario::{AccessSpec, RadioSpec};

/// A recorded or generated capacity over time.
#[pyclass(frozen, module = "tidegate._core", name = "Trace")]
pub(crate) struct PyTrace {
    pub(crate) inner: Arc<Trace>,
    format: String,
}

fn format_named(name: &str) -> PyResult<Format> {
    Format::ALL
        .into_iter()
        .find(|format| format.name() == name)
        .ok_or_else(|| bad(format!("{name}: no such trace format; available: {}", Format::names())))
}

fn radio_spec(json: &str) -> PyResult<RadioSpec> {
    serde_json::from_str(json).map_err(|error| bad(format!("lte: {error}")))
}

fn lte_description(spec: &RadioSpec) -> lte::survey::NetworkDescription<'_> {
    let AccessSpec::Lte(settings) = &spec.access;
    (&spec.name, settings, &spec.users)
}

/// A radio network without packets, as JSON in the form of the crate's `scenario::RadioSpec`: for each user the cell
/// that serves it at the beginning, its geometry in dB, the bytes that its full buffer got between two times in
/// nanoseconds, and for each user and cell the gain in dB, users one after the other.
#[pyfunction]
#[allow(clippy::type_complexity)]
#[pyo3(signature = (spec_json, seed, begin_ns, end_ns) -> "tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64], npt.NDArray[np.uint64], npt.NDArray[np.float64]]")]
pub(crate) fn lte_survey<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    begin_ns: i64,
    end_ns: i64,
) -> PyResult<(
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<f64>>,
)> {
    check_environment()?;
    let spec = radio_spec(spec_json)?;
    let (begin, end) = (Time::from_nanos(begin_ns), Time::from_nanos(end_ns));
    let survey = py.detach(|| lte::survey::survey(lte_description(&spec), seed, begin, end)).map_err(bad)?;
    Ok((
        PyArray1::from_vec(py, survey.serving),
        PyArray1::from_vec(py, survey.geometry_db),
        PyArray1::from_vec(py, survey.served_bytes),
        PyArray1::from_vec(py, survey.gains_db),
    ))
}

#[pymethods]
impl PyTrace {
    /// Reads the bytes of a trace file. Raises ValueError with file, line, what was found and what
    /// would be right.
    #[staticmethod]
    #[pyo3(signature = (name, data, format=None, frequency_hz=None, direction: "Literal['down', 'up'] | None" = None, reference_rate=None))]
    fn parse(
        py: Python<'_>,
        name: &str,
        data: &[u8],
        format: Option<&str>,
        frequency_hz: Option<f64>,
        direction: Option<&str>,
        reference_rate: Option<u64>,
    ) -> PyResult<Self> {
        let direction = match direction {
            None => None,
            Some("down") => Some(Direction::Down),
            Some("up") => Some(Direction::Up),
            Some(direction) => {
                return Err(bad(format!("direction: found {direction:?}; it must be \"down\" or \"up\"")));
            }
        };
        let reference = reference_rate.map(Rate::from_bps);
        let options = ReadOptions { frequency: frequency_hz, reference, direction };
        let format = format.map(format_named).transpose()?;
        let read = || match format {
            Some(format) => Ok((format, Trace::read_as(format, name, data, &options)?)),
            None => Trace::read(name, data, &options),
        };
        let (format, trace) = py.detach(read).map_err(bad)?;
        Ok(Self { inner: Arc::new(trace), format: format.name().to_owned() })
    }

    /// A cellular link by the process of Winstein et al. (NSDI 2013, the Sprout paper): kind "brownian".
    ///
    /// Rates are in bit/s; sigma is the standard deviation that the rate gains in one second.
    #[staticmethod]
    #[pyo3(signature = (kind: "Literal['brownian']", seed, duration_ns, *, start=None, max=None, sigma=None, outage_escape=None))]
    #[allow(clippy::too_many_arguments)]
    fn generate(
        py: Python<'_>,
        kind: &str,
        seed: u64,
        duration_ns: i64,
        start: Option<f64>,
        max: Option<f64>,
        sigma: Option<f64>,
        outage_escape: Option<f64>,
    ) -> PyResult<Self> {
        if kind != "brownian" {
            return Err(bad(format!("kind: found {kind:?}; it must be \"brownian\"")));
        }
        let defaults = BrownianSettings::default();
        let packets = |bps: f64| bps / (f64::from(defaults.bytes) * 8.0);
        let settings = BrownianSettings {
            sigma: sigma.map_or(defaults.sigma, packets),
            max: max.map_or(defaults.max, packets),
            escape: outage_escape.unwrap_or(defaults.escape),
            initial: start.map(packets),
            // what a mahimahi file's opportunities carry, so that the trace can be written as one
            bytes: 1504,
            ..defaults
        };
        let generate = || Trace::generate_brownian(settings, seed, Span::from_nanos(duration_ns));
        let trace = py.detach(generate).map_err(bad)?;
        Ok(Self { inner: Arc::new(trace), format: "generated".to_owned() })
    }

    /// The capacity of the first user of a radio network with a full buffer between two times in nanoseconds. The
    /// network is JSON as in the crate's `scenario::RadioSpec`.
    #[staticmethod]
    fn generate_lte(
        py: Python<'_>,
        spec_json: &str,
        seed: u64,
        begin_ns: i64,
        end_ns: i64,
    ) -> PyResult<Self> {
        let spec = radio_spec(spec_json)?;
        let (begin, end) = (Time::from_nanos(begin_ns), Time::from_nanos(end_ns));
        let trace =
            py.detach(|| lte::survey::trace(lte_description(&spec), seed, begin, end)).map_err(bad)?;
        Ok(Self { inner: Arc::new(trace), format: "generated".to_owned() })
    }

    /// Name of its file or generator.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }
    /// Its file format.
    #[getter]
    fn format(&self) -> &str {
        &self.format
    }
    /// Either "opportunities" of delivery, or "rates": a schedule of them.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.inner.capacity {
            Capacity::Opportunities(_) => "opportunities",
            Capacity::Rates(_) => "rates",
        }
    }
    /// Mean capacity in bit/s.
    #[getter]
    fn mean_rate(&self) -> u64 {
        self.inner.mean_rate().as_bps()
    }
    /// Duration in nanoseconds, after which it repeats.
    #[getter]
    fn duration_ns(&self) -> i64 {
        self.inner.duration().as_nanos()
    }
    /// Whether the file has losses, and whether it has delays.
    #[getter]
    fn tells(&self) -> (bool, bool) {
        (self.inner.loss.is_some(), self.inner.delay.is_some())
    }

    /// Choices of its parser that the file leaves open or contradicts, as sentences.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        self.inner.remarks.clone()
    }

    /// The median capacity by time in bit/s, if the mean is more than ten times as large.
    #[getter]
    fn outlying(&self) -> Option<u64> {
        self.inner.outlying().map(Rate::as_bps)
    }

    /// Mean capacity in bins: (times in s, rates in bit/s).
    #[allow(clippy::type_complexity)]
    #[pyo3(signature = (bin_ns) -> "tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]")]
    fn series<'py>(
        &self,
        py: Python<'py>,
        bin_ns: i64,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        if bin_ns <= 0 {
            return Err(bad(format!("bin_ns: found {bin_ns}; it must be positive")));
        }
        let series = self.inner.binned(Span::from_nanos(bin_ns));
        let times = PyArray1::from_iter(py, series.iter().map(|(at, _)| at.as_secs_f64()));
        Ok((times, PyArray1::from_iter(py, series.iter().map(|(_, rate)| rate.as_bps_f64()))))
    }

    /// As a mahimahi file: one opportunity of 1504 bytes a line, in milliseconds.
    fn to_mahimahi<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let text = py.detach(|| self.inner.to_mahimahi()).map_err(bad)?;
        Ok(PyBytes::new(py, text.as_bytes()))
    }

    /// As JSON, all of it: what the engine for browsers takes.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.to_json()).map_err(bad)
    }

    /// As CSV with time_s and rate_bps, in bins where the trace is one of opportunities.
    #[pyo3(signature = (bin_ns=100_000_000))]
    fn to_csv<'py>(&self, py: Python<'py>, bin_ns: i64) -> PyResult<Bound<'py, PyBytes>> {
        let text = py.detach(|| self.inner.to_csv(Span::from_nanos(bin_ns))).map_err(bad)?;
        Ok(PyBytes::new(py, text.as_bytes()))
    }

    fn __repr__(&self) -> String {
        let seconds = self.inner.duration().as_secs_f64();
        format!(
            "<Trace {:?}, {}, {:.3} Mb/s, {seconds:.1} s>",
            self.inner.name,
            self.format,
            self.mean_rate() as f64 / 1e6
        )
    }
}

/// A random substream, named by seed, component and purpose: the one that the engine draws from.
#[pyclass(module = "tidegate._core", name = "Stream")]
pub(crate) struct PyStream {
    /// None while it is the engine's.
    inner: Option<Stream>,
}

impl PyStream {
    /// A stream to lend the engine's own with, during calls.
    pub(crate) fn empty() -> Self {
        Self { inner: None }
    }

    /// Takes what the engine lends, or gives it back.
    pub(crate) fn swap(&mut self, lent: Option<Stream>) -> Option<Stream> {
        std::mem::replace(&mut self.inner, lent)
    }

    fn get(&mut self) -> PyResult<&mut Stream> {
        self.inner.as_mut().ok_or_else(|| {
            let when = "on_report, on_alarm, on_limits, on_sent, on_packet and message";
            bad(format!(
                "this random stream can be used only during {when}, so that every run gets the same numbers"
            ))
        })
    }
}

#[pymethods]
impl PyStream {
    #[new]
    fn new(seed: u64, component: &str, purpose: &str) -> Self {
        Self { inner: Some(Stream::new(seed, component, purpose)) }
    }
    /// 64 random bits.
    fn next_u64(&mut self) -> PyResult<u64> {
        Ok(self.get()?.next_u64())
    }
    /// Uniform in [0, 1).
    fn uniform(&mut self) -> PyResult<f64> {
        Ok(self.get()?.uniform())
    }
    /// Exponential with the given mean.
    fn exponential(&mut self, mean: f64) -> PyResult<f64> {
        Ok(self.get()?.exponential(mean))
    }
    /// Standard normal.
    fn normal(&mut self) -> PyResult<f64> {
        Ok(self.get()?.normal())
    }
    /// Uniform whole number in [0, bound); 0 for a bound of 0.
    fn below(&mut self, bound: u64) -> PyResult<u64> {
        Ok(self.get()?.below(bound))
    }
    /// True with the given probability; draws one number whatever it is.
    fn chance(&mut self, probability: f64) -> PyResult<bool> {
        Ok(self.get()?.chance(probability))
    }
}
