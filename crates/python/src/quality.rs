//! The E-model (ITU-T G.107) as functions for Python.

use crate::tfrc::number;
use pyo3::prelude::*;
use tidegate_sim::record::emodel;

/// The rating of speech: `tidegate.quality.r_factor`.
#[pyfunction]
#[pyo3(signature = (delay_ms, loss_fraction, ie=0.0, bpl=25.1))]
fn r_factor(delay_ms: f64, loss_fraction: f64, ie: f64, bpl: f64) -> PyResult<f64> {
    let delay = number("delay_ms", delay_ms, 0.0, false, f64::INFINITY)?;
    let loss = number("loss_fraction", loss_fraction, 0.0, false, 1.0)?;
    let (ie, bpl) = (number("ie", ie, 0.0, false, 95.0)?, number("bpl", bpl, 0.0, true, f64::INFINITY)?);
    Ok(emodel::rating(delay, loss, ie, bpl))
}

/// The score of a rating: `tidegate.quality.mos`.
#[pyfunction]
fn mos(rating: f64) -> PyResult<f64> {
    Ok(emodel::mos(number("rating", rating, f64::NEG_INFINITY, true, f64::INFINITY)?))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(r_factor, module)?)?;
    module.add_function(wrap_pyfunction!(mos, module)?)
}
