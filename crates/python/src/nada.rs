//! The equations of NADA as functions for Python: `tidegate.control.nada`.

use crate::arguments::json;
use crate::errors::bad;
use crate::tfrc::number;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidegate_controllers::nada::settings::Settings;
use tidegate_controllers::nada::signals::Losses;
use tidegate_controllers::nada::{congestion, rate, shaping};

fn with(preset: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Settings> {
    Settings::with(preset, &json(settings)?).map_err(|error| bad(error.to_string()))
}

fn from_zero(name: &str, value: f64) -> PyResult<f64> {
    number(name, value, 0.0, false, f64::INFINITY)
}

/// The queueing delay as it counts, in ms: warped by equation (1) if there were losses lately.
///
/// Args:
///     queueing_ms: Queueing delay d_queue in ms.
///     loss_int: Mean loss interval in packets; None if there was no loss.
///     since_loss: Packets since the last loss. From `multiloss` intervals on, within one more, the warped delay
///         goes back linearly to what it is (RFC 8698 section 4.2).
///     preset: Whose settings.
///     settings: Other values of them.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (queueing_ms, *, loss_int=None, since_loss=0.0, preset="rfc8698", **settings: "float"))]
pub(crate) fn nada_equivalent_delay(
    queueing_ms: f64,
    loss_int: Option<f64>,
    since_loss: f64,
    preset: &str,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<f64> {
    let set = with(preset, settings)?;
    let losses = match loss_int {
        None => None,
        Some(mean) => Some(Losses {
            mean: number("loss_int", mean, 0.0, true, f64::INFINITY)?,
            since: from_zero("since_loss", since_loss)?,
        }),
    };
    Ok(congestion::equivalent(from_zero("queueing_ms", queueing_ms)?, losses, &set))
}

/// The aggregate congestion signal x_curr in ms (equation (2)).
///
/// Args:
///     delay_ms: What `equivalent_delay` says.
///     p_mark: Smoothed marking ratio, 0 to 1.
///     p_loss: Smoothed loss ratio, 0 to 1.
///     preset: Whose settings.
///     settings: Other values of them.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (delay_ms, *, p_mark=0.0, p_loss=0.0, preset="rfc8698", **settings: "float"))]
pub(crate) fn nada_congestion_signal(
    delay_ms: f64,
    p_mark: f64,
    p_loss: f64,
    preset: &str,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<f64> {
    let set = with(preset, settings)?;
    let [marks, loss] =
        [("p_mark", p_mark), ("p_loss", p_loss)].map(|(name, p)| number(name, p, 0.0, false, 1.0));
    Ok(congestion::aggregate(from_zero("delay_ms", delay_ms)?, marks?, loss?, &set))
}

/// By which part above the receive rate accelerated ramp-up goes, at a round trip of `rtt_ms` (equation (3)).
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (rtt_ms, *, preset="rfc8698", **settings: "float"))]
pub(crate) fn nada_gamma(rtt_ms: f64, preset: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
    Ok(rate::gamma(from_zero("rtt_ms", rtt_ms)?, &with(preset, settings)?))
}

/// The reference rate after a gradual update, in bit/s, before it is clipped (equations (5) to (7)).
///
/// Args:
///     r_ref_bps: The rate before it.
///     signal_ms: The congestion signal x_curr.
///     before_ms: That of the update before, x_prev.
///     delta_ms: Time since then.
///     rmax_bps: The largest rate of the flow, RMAX.
///     preset: Whose settings.
///     settings: Other values of them.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (r_ref_bps, signal_ms, before_ms, delta_ms, *, rmax_bps, preset="rfc8698", **settings: "float"))]
pub(crate) fn nada_gradual_update(
    r_ref_bps: f64,
    signal_ms: f64,
    before_ms: f64,
    delta_ms: f64,
    rmax_bps: f64,
    preset: &str,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<f64> {
    let set = with(preset, settings)?;
    let (rate, max_rate) = (from_zero("r_ref_bps", r_ref_bps)?, from_zero("rmax_bps", rmax_bps)?);
    let (signal, previous) = (from_zero("signal_ms", signal_ms)?, from_zero("before_ms", before_ms)?);
    Ok(rate::gradual(rate, signal, previous, from_zero("delta_ms", delta_ms)?, max_rate, &set))
}

/// Rates of the encoder and of the pacer in bit/s, r_vin and r_send (equations (11) to (14)).
///
/// Args:
///     r_ref_bps: The reference rate.
///     buffer_bytes: What waits in the rate shaping buffer.
///     rmin_bps: The least rate of the flow, RMIN.
///     rmax_bps: Its largest rate, RMAX.
///     preset: Whose settings.
///     settings: Other values of them.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (r_ref_bps, buffer_bytes, *, rmin_bps=0.0, rmax_bps, preset="rfc8698", **settings: "float"))]
pub(crate) fn nada_shaped_rates(
    r_ref_bps: f64,
    buffer_bytes: f64,
    rmin_bps: f64,
    rmax_bps: f64,
    preset: &str,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<(f64, f64)> {
    let set = with(preset, settings)?;
    let (rate, waiting) = (from_zero("r_ref_bps", r_ref_bps)?, from_zero("buffer_bytes", buffer_bytes)?);
    let (min_rate, max_rate) = (from_zero("rmin_bps", rmin_bps)?, from_zero("rmax_bps", rmax_bps)?);
    Ok(shaping::rates(rate, waiting, min_rate, max_rate, &set))
}
