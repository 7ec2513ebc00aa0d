//! Sprout's forecasts as a function for Python.

use crate::errors::bad;
use numpy::PyArray2;
use pyo3::prelude::*;
use serde_json::Value;
use tidegate_controllers::sprout::settings::Settings;
use tidegate_controllers::sprout::{ENTRY, EWMA, ticks};
use tidegate_core::Span;

/// Forecasts of a series of ticks: `tidegate.sprout.forecasts`.
#[pyfunction]
fn sprout_forecasts<'py>(
    py: Python<'py>,
    controller: &str,
    settings: &str,
    bytes_per_tick: Vec<u64>,
    time_to_next_ms: Vec<u16>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let found = [ENTRY.name, EWMA.name].into_iter().find(|name| *name == controller);
    let Some(name) = found else {
        let known = format!("`{}` or `{}`", ENTRY.name, EWMA.name);
        return Err(bad(format!("controller: found `{controller}`; expected {known}")));
    };
    if time_to_next_ms.len() != bytes_per_tick.len() {
        let (found, expected) = (time_to_next_ms.len(), bytes_per_tick.len());
        return Err(bad(format!("time_to_next_ms: found {found}; expected {expected}, one for each tick")));
    }
    let overrides: Value =
        serde_json::from_str(settings).map_err(|error| bad(format!("settings: {error}")))?;
    let settings =
        Settings::with(name, ENTRY.default_preset(), &overrides).map_err(|error| bad(error.to_string()))?;
    let silences: Vec<Span> =
        time_to_next_ms.iter().map(|&millis| Span::from_millis(i64::from(millis))).collect();
    let forecasts = py.detach(|| ticks::replay(&settings, &bytes_per_tick, &silences));
    let rows: Vec<Vec<u32>> = forecasts.iter().map(|forecast| forecast.to_vec()).collect();
    if rows.is_empty() {
        return Ok(PyArray2::zeros(py, [0, tidegate_controllers::sprout::forecast::TICKS], false));
    }
    PyArray2::from_vec2(py, &rows).map_err(|error| bad(error.to_string()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sprout_forecasts, module)?)
}
