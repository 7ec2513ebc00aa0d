//! The E-model (ITU-T G.107) as functions for Python: `tidegate.results.quality`.

use crate::tfrc::number;
use pyo3::prelude::*;
use tidegate_sim::record::emodel;

/// The rating R of speech by the E-model, everything but delay, loss and codec at its default.
///
/// Args:
///     delay_ms: From mouth to ear, in milliseconds, at least 0.
///     loss_fraction: What is missing at the ear, at random, 0 to 1.
///     ie: Equipment impairment of the codec, 0 to 95; 0 for G.711.
///     bpl: Robustness of the codec to loss, above 0; that of G.711 with its concealment by default.
///
/// Returns:
///     R: 93.2 with neither delay nor loss; may be negative.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (delay_ms, loss_fraction, *, ie=0.0, bpl=25.1))]
pub(crate) fn r_factor(delay_ms: f64, loss_fraction: f64, ie: f64, bpl: f64) -> PyResult<f64> {
    let delay = number("delay_ms", delay_ms, 0.0, false, f64::INFINITY)?;
    let loss = number("loss_fraction", loss_fraction, 0.0, false, 1.0)?;
    let (ie, bpl) = (number("ie", ie, 0.0, false, 95.0)?, number("bpl", bpl, 0.0, true, f64::INFINITY)?);
    Ok(emodel::rating(delay, loss, ie, bpl))
}

/// The mean opinion score, 1 to 4.5, of a rating R (G.107 annex B).
///
/// Raises:
///     ValueError: When the rating is not a number.
#[pyfunction]
pub(crate) fn mos(rating: f64) -> PyResult<f64> {
    Ok(emodel::mos(number("rating", rating, f64::NEG_INFINITY, true, f64::INFINITY)?))
}
