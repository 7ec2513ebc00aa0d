//! Types of arguments from Python that PyO3 does not have.

use crate::errors::bad;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::ops::Deref;

/// Numbers from any Python iterable.
pub(crate) struct Numbers(Vec<f64>);

impl Deref for Numbers {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl FromPyObject<'_, '_> for Numbers {
    type Error = PyErr;
    fn extract(values: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        values.try_iter()?.map(|value| value?.extract()).collect::<PyResult<_>>().map(Self)
    }
}

/// Converts a controller's settings from keyword arguments to JSON.
pub(crate) fn json(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Value> {
    let Some(settings) = settings else { return Ok(Value::Object(serde_json::Map::new())) };
    let text = settings.py().import("json")?.call_method1("dumps", (settings,))?;
    serde_json::from_str(text.extract()?).map_err(|error| bad(format!("settings: {error}")))
}
