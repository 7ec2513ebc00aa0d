//! The formulas of TFRC as functions for Python.

use crate::errors::bad;
use pyo3::prelude::*;
use tidegate_controllers::tfrc::equation;
use tidegate_controllers::tfrc::intervals::{self, Closed};

/// `value` if it is a number from `least` (or above it) to `most`.
pub(crate) fn number(name: &str, value: f64, least: f64, open: bool, most: f64) -> PyResult<f64> {
    let fits = value.is_finite() && value <= most && if open { value > least } else { value >= least };
    if fits {
        return Ok(value);
    }
    let from = if open { "more than" } else { "at least" };
    let to = if most.is_finite() { format!(" and at most {most}") } else { String::new() };
    Err(bad(format!("{name}: found {value}; expected a number of {from} {least}{to}")))
}

fn positive(name: &str, value: f64) -> PyResult<f64> {
    number(name, value, 0.0, true, f64::INFINITY)
}

fn from_zero(name: &str, value: f64) -> PyResult<f64> {
    number(name, value, 0.0, false, f64::INFINITY)
}

/// Segment, round-trip time, b, and t_RTO, 4 round trips where none is given.
fn path(segment: f64, rtt: f64, b: f64, t_rto: Option<f64>) -> PyResult<(f64, f64, f64, f64)> {
    let (segment, rtt) = (positive("segment_bytes", segment)?, positive("rtt_s", rtt)?);
    let t_rto = t_rto.map_or(Ok(4.0 * rtt), |t_rto| from_zero("t_rto_s", t_rto))?;
    Ok((segment, rtt, positive("b", b)?, t_rto))
}

/// TCP's rate under loss in bytes/s: `tidegate.tfrc.throughput`.
#[pyfunction]
#[pyo3(signature = (segment_bytes, rtt_s, p, b=1.0, t_rto_s=None))]
fn tfrc_throughput(segment_bytes: f64, rtt_s: f64, p: f64, b: f64, t_rto_s: Option<f64>) -> PyResult<f64> {
    let p = number("p", p, 0.0, false, 1.0)?;
    let (segment, rtt, b, t_rto) = path(segment_bytes, rtt_s, b, t_rto_s)?;
    Ok(equation::throughput(segment, rtt, p, b, t_rto))
}

/// Its inverse: `tidegate.tfrc.loss_event_rate`.
#[pyfunction]
#[pyo3(signature = (segment_bytes, rtt_s, rate, b=1.0, t_rto_s=None))]
fn tfrc_loss_event_rate(
    segment_bytes: f64,
    rtt_s: f64,
    rate: f64,
    b: f64,
    t_rto_s: Option<f64>,
) -> PyResult<f64> {
    let rate = positive("rate", rate)?;
    let (segment, rtt, b, t_rto) = path(segment_bytes, rtt_s, b, t_rto_s)?;
    Ok(equation::loss_event_rate(segment, rtt, rate, b, t_rto))
}

/// Bytes in the first round trip: `tidegate.tfrc.initial_window`.
#[pyfunction]
fn tfrc_initial_window(mss_bytes: f64) -> PyResult<f64> {
    Ok(equation::initial_window(positive("mss_bytes", mss_bytes)?))
}

/// The open interval and the closed ones behind it.
fn history(intervals: &[f64], discounts: Option<&[f64]>) -> PyResult<(f64, Vec<Closed>)> {
    let Some((&open, lengths)) = intervals.split_first() else {
        return Err(bad("intervals: found none; expected at least I_0, the open one"));
    };
    if let Some(discounts) = discounts.filter(|discounts| discounts.len() != lengths.len()) {
        let (found, closed) = (discounts.len(), lengths.len());
        return Err(bad(format!(
            "discounts: found {found}; expected {closed}, one for each closed interval"
        )));
    }
    let closed = lengths.iter().enumerate().map(|(i, &length)| {
        let discount = discounts.map_or(1.0, |discounts| discounts[i]);
        let discount = number(&format!("discounts[{i}]"), discount, 0.0, true, 1.0)?;
        Ok(Closed { length: positive(&format!("intervals[{}]", i + 1), length)?, discount })
    });
    Ok((from_zero("intervals[0]", open)?, closed.collect::<PyResult<_>>()?))
}

/// The average loss interval in packets: `tidegate.tfrc.mean_interval`.
#[pyfunction]
#[pyo3(signature = (intervals, discounts=None, threshold=None))]
fn tfrc_mean_interval(
    intervals: Vec<f64>,
    discounts: Option<Vec<f64>>,
    threshold: Option<f64>,
) -> PyResult<f64> {
    let (open, closed) = history(&intervals, discounts.as_deref())?;
    let factor = match threshold {
        None => 1.0,
        Some(threshold) => {
            intervals::discount(open, &closed, number("threshold", threshold, 0.0, false, 1.0)?)
        }
    };
    Ok(intervals::mean(Some(open), &closed, factor))
}

/// How much the past counts: `tidegate.tfrc.discount_factor`.
#[pyfunction]
#[pyo3(signature = (intervals, discounts=None, threshold=0.25))]
fn tfrc_discount_factor(intervals: Vec<f64>, discounts: Option<Vec<f64>>, threshold: f64) -> PyResult<f64> {
    let (open, closed) = history(&intervals, discounts.as_deref())?;
    Ok(intervals::discount(open, &closed, number("threshold", threshold, 0.0, false, 1.0)?))
}

/// What small packets may use in bytes/s: `tidegate.tfrc.small_packet_rate`.
#[pyfunction]
#[pyo3(signature = (rate, size_bytes, header_bytes=40.0))]
fn tfrc_small_packet_rate(rate: f64, size_bytes: f64, header_bytes: f64) -> PyResult<f64> {
    let (size, header) = (positive("size_bytes", size_bytes)?, from_zero("header_bytes", header_bytes)?);
    Ok(from_zero("rate", rate)? * equation::small_packet_share(size, header))
}

/// A loss interval of small packets: `tidegate.tfrc.small_packet_interval`.
#[pyfunction]
fn tfrc_small_packet_interval(packets: f64, lost: f64, lasted_s: f64, rtt_s: f64) -> PyResult<f64> {
    let (packets, lost) = (positive("packets", packets)?, from_zero("lost", lost)?);
    let (lasted, rtt) = (from_zero("lasted_s", lasted_s)?, positive("rtt_s", rtt_s)?);
    Ok(intervals::small_packet_length(packets, lost, lasted, rtt))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tfrc_throughput, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_loss_event_rate, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_initial_window, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_mean_interval, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_discount_factor, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_small_packet_rate, module)?)?;
    module.add_function(wrap_pyfunction!(tfrc_small_packet_interval, module)?)
}
