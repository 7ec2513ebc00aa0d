//! The equations of NADA as functions for Python.

use crate::errors::bad;
use crate::tfrc::number;
use pyo3::prelude::*;
use tidegate_controllers::nada::settings::Settings;
use tidegate_controllers::nada::signals::Losses;
use tidegate_controllers::nada::{congestion, rate, shaping};

fn settings(preset: &str, json: &str) -> PyResult<Settings> {
    let overrides = serde_json::from_str(json).map_err(|error| bad(format!("settings: {error}")))?;
    Settings::with(preset, &overrides).map_err(|error| bad(error.to_string()))
}

fn from_zero(name: &str, value: f64) -> PyResult<f64> {
    number(name, value, 0.0, false, f64::INFINITY)
}

/// The queueing delay as it counts: `tidegate.control.nada.equivalent_delay`.
#[pyfunction]
fn nada_equivalent_delay(
    preset: &str,
    settings_json: &str,
    queueing_ms: f64,
    losses: Option<(f64, f64)>,
) -> PyResult<f64> {
    let set = settings(preset, settings_json)?;
    let losses = match losses {
        None => None,
        Some((mean, since)) => Some(Losses {
            mean: number("loss_int", mean, 0.0, true, f64::INFINITY)?,
            since: from_zero("since_loss", since)?,
        }),
    };
    Ok(congestion::equivalent(from_zero("queueing_ms", queueing_ms)?, losses, &set))
}

/// The aggregate congestion signal: `tidegate.control.nada.congestion_signal`.
#[pyfunction]
fn nada_congestion_signal(
    preset: &str,
    settings_json: &str,
    delay_ms: f64,
    marks: f64,
    loss: f64,
) -> PyResult<f64> {
    let set = settings(preset, settings_json)?;
    let [marks, loss] =
        [("p_mark", marks), ("p_loss", loss)].map(|(name, p)| number(name, p, 0.0, false, 1.0));
    Ok(congestion::aggregate(from_zero("delay_ms", delay_ms)?, marks?, loss?, &set))
}

/// By which part ramp-up goes above the receive rate: `tidegate.control.nada.gamma`.
#[pyfunction]
fn nada_gamma(preset: &str, settings_json: &str, rtt_ms: f64) -> PyResult<f64> {
    Ok(rate::gamma(from_zero("rtt_ms", rtt_ms)?, &settings(preset, settings_json)?))
}

/// A gradual update before it is clipped: `tidegate.control.nada.gradual_update`.
#[pyfunction]
fn nada_gradual_update(
    preset: &str,
    settings_json: &str,
    r_ref_bps: f64,
    signal_ms: f64,
    before_ms: f64,
    delta_ms: f64,
    rmax_bps: f64,
) -> PyResult<f64> {
    let set = settings(preset, settings_json)?;
    let (rate, most) = (from_zero("r_ref_bps", r_ref_bps)?, from_zero("rmax_bps", rmax_bps)?);
    let (x, before) = (from_zero("signal_ms", signal_ms)?, from_zero("before_ms", before_ms)?);
    Ok(rate::gradual(rate, x, before, from_zero("delta_ms", delta_ms)?, most, &set))
}

/// What the encoder and the pacer get: `tidegate.control.nada.shaped_rates`.
#[pyfunction]
fn nada_shaped_rates(
    preset: &str,
    settings_json: &str,
    r_ref_bps: f64,
    buffer_bytes: f64,
    rmin_bps: f64,
    rmax_bps: f64,
) -> PyResult<(f64, f64)> {
    let set = settings(preset, settings_json)?;
    let (rate, waiting) = (from_zero("r_ref_bps", r_ref_bps)?, from_zero("buffer_bytes", buffer_bytes)?);
    let (least, most) = (from_zero("rmin_bps", rmin_bps)?, from_zero("rmax_bps", rmax_bps)?);
    Ok(shaping::rates(rate, waiting, least, most, &set))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(nada_equivalent_delay, module)?)?;
    module.add_function(wrap_pyfunction!(nada_congestion_signal, module)?)?;
    module.add_function(wrap_pyfunction!(nada_gamma, module)?)?;
    module.add_function(wrap_pyfunction!(nada_gradual_update, module)?)?;
    module.add_function(wrap_pyfunction!(nada_shaped_rates, module)?)
}
