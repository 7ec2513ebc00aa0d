//! Sprout's forecasts as a function for Python: `tidegate.control.sprout`.

use crate::arguments::json;
use crate::errors::bad;
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt};
use tidegate_controllers::sprout::settings::Settings;
use tidegate_controllers::sprout::{ENTRY, EWMA, ticks};
use tidegate_core::Span;

/// Extracts a whole number from 0 to `max` from an int or a float of Python; `bounds` describes `max` in the error.
fn whole(name: &str, index: usize, value: &Bound<'_, PyAny>, max: u64, bounds: &str) -> PyResult<u64> {
    let number = if value.is_instance_of::<PyBool>() {
        None
    } else if value.is_instance_of::<PyInt>() {
        value.extract::<u64>().ok()
    } else if let Ok(float) = value.cast::<PyFloat>() {
        Some(float.value()).filter(|value| *value >= 0.0 && value.fract() == 0.0).map(|value| value as u64)
    } else {
        None
    };
    let wrong =
        || bad(format!("{name}[{index}]: found {value}; expected a whole number of at least 0{bounds}"));
    number.filter(|number| *number <= max).ok_or_else(wrong)
}

/// Extracts whole numbers from `values`, which NumPy must convert to an array of one dimension.
fn whole_numbers(name: &str, values: &Bound<'_, PyAny>, max: u64, bounds: &str) -> PyResult<Vec<u64>> {
    let array = values.py().import("numpy")?.call_method1("asarray", (values,))?;
    let dimensions: usize = array.getattr("ndim")?.extract()?;
    if dimensions != 1 {
        return Err(bad(format!("{name}: found {dimensions} dimensions; expected one, for the ticks")));
    }
    let values = array.call_method0("tolist")?;
    values.try_iter()?.enumerate().map(|(index, value)| whole(name, index, &value?, max, bounds)).collect()
}

/// Packets that the link will have delivered 20, 40, ... 160 ms after the end of each tick.
///
/// The receiver begins without knowledge at the first tick, as keithw/sprout does.
///
/// Args:
///     bytes_per_tick: Bytes received in each tick of 20 ms, shape (ticks,).
///     time_to_next_ms: How long the sender says that it will be silent at most, with what came in a tick: one number,
///         or one for each tick, from 0 to 65535 (the original's field has 16 bits). An empty tick that begins before
///         that says nothing of the link.
///     controller: Which of the two.
///     settings: Settings of the controller other than its preset's: `confidence`, `packet`, `average_weight`.
///
/// Returns:
///     Cumulative packets, shape (ticks, 8).
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(
    signature = (bytes_per_tick, *, time_to_next_ms=None, controller="sprout", **settings),
    text_signature = "(bytes_per_tick, *, time_to_next_ms=20, controller=\"sprout\", **settings)"
)]
pub(crate) fn sprout_forecasts<'py>(
    py: Python<'py>,
    bytes_per_tick: &Bound<'py, PyAny>,
    time_to_next_ms: Option<&Bound<'py, PyAny>>,
    controller: &str,
    settings: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let bytes = whole_numbers("bytes_per_tick", bytes_per_tick, 1 << 53, "")?;
    let (name, max, bounds) = ("time_to_next_ms", u64::from(u16::MAX), " and at most 65535");
    let silences = match time_to_next_ms {
        None => vec![20; bytes.len()],
        Some(value) if value.is_instance_of::<PyInt>() && bytes.is_empty() => Vec::new(),
        Some(value) if value.is_instance_of::<PyInt>() => {
            vec![whole(name, 0, value, max, bounds)?; bytes.len()]
        }
        Some(values) => whole_numbers(name, values, max, bounds)?,
    };
    let variant = [ENTRY.name, EWMA.name].into_iter().find(|name| *name == controller);
    let Some(name) = variant else {
        let names = format!("`{}` or `{}`", ENTRY.name, EWMA.name);
        return Err(bad(format!("controller: found `{controller}`; expected {names}")));
    };
    if silences.len() != bytes.len() {
        let (count, expected) = (silences.len(), bytes.len());
        return Err(bad(format!(
            "time_to_next_ms: found {count} values; expected {expected}, one for each tick"
        )));
    }
    let settings = Settings::with(name, ENTRY.default_preset(), &json(settings)?)
        .map_err(|error| bad(error.to_string()))?;
    let silences: Vec<Span> = silences.iter().map(|&millis| Span::from_millis(millis as i64)).collect();
    let forecasts = py.detach(|| ticks::replay(&settings, &bytes, &silences));
    let rows: Vec<Vec<u32>> = forecasts.iter().map(|forecast| forecast.to_vec()).collect();
    if rows.is_empty() {
        return Ok(PyArray2::zeros(py, [0, tidegate_controllers::sprout::forecast::TICKS], false));
    }
    PyArray2::from_vec2(py, &rows).map_err(|error| bad(error.to_string()))
}
