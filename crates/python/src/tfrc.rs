//! The formulas of TFRC as functions for Python: `tidegate.control.tfrc`.

use crate::arguments::Numbers;
use crate::errors::bad;
use pyo3::prelude::*;
use tidegate_controllers::tfrc::equation;
use tidegate_controllers::tfrc::intervals::{self, Closed};

/// Checks that `value` is a number of at least `min` (if `open`, of more than `min`) and at most `max`.
pub(crate) fn number(name: &str, value: f64, min: f64, open: bool, max: f64) -> PyResult<f64> {
    let fits = value.is_finite() && value <= max && if open { value > min } else { value >= min };
    if fits {
        return Ok(value);
    }
    let from = if open { "more than" } else { "at least" };
    let to = if max.is_finite() { format!(" and at most {max}") } else { String::new() };
    Err(bad(format!("{name}: found {value}; expected a number of {from} {min}{to}")))
}

fn positive(name: &str, value: f64) -> PyResult<f64> {
    number(name, value, 0.0, true, f64::INFINITY)
}

fn from_zero(name: &str, value: f64) -> PyResult<f64> {
    number(name, value, 0.0, false, f64::INFINITY)
}

/// Checks segment, round-trip time, b, and t_RTO, which is 4 round trips by default.
fn path(segment: f64, rtt: f64, b: f64, t_rto: Option<f64>) -> PyResult<(f64, f64, f64, f64)> {
    let (segment, rtt) = (positive("segment_bytes", segment)?, positive("rtt_s", rtt)?);
    let t_rto = t_rto.map_or(Ok(4.0 * rtt), |t_rto| from_zero("t_rto_s", t_rto))?;
    Ok((segment, rtt, positive("b", b)?, t_rto))
}

/// The rate of a TCP under loss, in bytes/s (RFC 5348 section 3.1).
///
/// Args:
///     segment_bytes: Segment size s, above 0.
///     rtt_s: Round-trip time R in seconds, above 0.
///     p: Loss event rate, 0 to 1; with 0 there is no limit and the answer is infinite.
///     b: Packets acknowledged by one ACK.
///     t_rto_s: Retransmission timeout in seconds; 4 R by default.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (segment_bytes, rtt_s, p, *, b=1.0, t_rto_s=None))]
pub(crate) fn tfrc_throughput(
    segment_bytes: f64,
    rtt_s: f64,
    p: f64,
    b: f64,
    t_rto_s: Option<f64>,
) -> PyResult<f64> {
    let p = number("p", p, 0.0, false, 1.0)?;
    let (segment, rtt, b, t_rto) = path(segment_bytes, rtt_s, b, t_rto_s)?;
    Ok(equation::throughput(segment, rtt, p, b, t_rto))
}

/// The loss event rate under which `throughput` is `rate` bytes/s: its inverse, for RFC 5348 section 6.3.1.
///
/// Args:
///     segment_bytes: Segment size s, above 0.
///     rtt_s: Round-trip time R in seconds, above 0.
///     rate: Bytes/s, above 0.
///     b: Packets acknowledged by one ACK.
///     t_rto_s: Retransmission timeout in seconds; 4 R by default.
///
/// Returns:
///     p from 1e-18 to 1: one of these ends where the equation does not give such a rate.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (segment_bytes, rtt_s, rate, *, b=1.0, t_rto_s=None))]
pub(crate) fn tfrc_loss_event_rate(
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

/// Bytes in the first round trip: min(4 MSS, max(2 MSS, 4380)) (RFC 5348 section 4.2, RFC 3390).
#[pyfunction]
#[pyo3(signature = (mss_bytes=1460.0))]
pub(crate) fn tfrc_initial_window(mss_bytes: f64) -> PyResult<f64> {
    Ok(equation::initial_window(positive("mss_bytes", mss_bytes)?))
}

/// The open interval, and the closed intervals after it.
fn history(intervals: &[f64], discounts: Option<&[f64]>) -> PyResult<(f64, Vec<Closed>)> {
    let Some((&open, lengths)) = intervals.split_first() else {
        return Err(bad("intervals: found none; expected at least the open interval I_0"));
    };
    if let Some(discounts) = discounts.filter(|discounts| discounts.len() != lengths.len()) {
        let (count, closed) = (discounts.len(), lengths.len());
        return Err(bad(format!(
            "discounts: found {count} values; expected {closed}, one for each closed interval"
        )));
    }
    let closed = lengths.iter().enumerate().map(|(i, &length)| {
        let discount = discounts.map_or(1.0, |discounts| discounts[i]);
        let discount = number(&format!("discounts[{i}]"), discount, 0.0, true, 1.0)?;
        Ok(Closed { length: positive(&format!("intervals[{}]", i + 1), length)?, discount })
    });
    Ok((from_zero("intervals[0]", open)?, closed.collect::<PyResult<_>>()?))
}

/// The average loss interval in packets; the loss event rate is one over it (RFC 5348 sections 5.4 and 5.5).
///
/// Args:
///     intervals: I_0 (open), I_1, I_2 and so on: those beyond I_8 do not count.
///     discounts: DF_1, DF_2 and so on, above 0 and at most 1: what earlier discounting left of each closed
///         interval's weight; 1 by default.
///     discounting: Whether a long I_0 discounts the closed intervals now.
///     threshold: By this factor at most.
///
/// Returns:
///     Infinite if there is no closed interval.
///
/// Raises:
///     ValueError: With what is wrong and what would be right.
#[pyfunction]
#[pyo3(signature = (intervals: "Iterable[float]", *, discounts: "Iterable[float] | None" = None, discounting=false, threshold=0.25))]
pub(crate) fn tfrc_mean_interval(
    intervals: Numbers,
    discounts: Option<Numbers>,
    discounting: bool,
    threshold: f64,
) -> PyResult<f64> {
    let (open, closed) = history(&intervals, discounts.as_deref())?;
    let factor = if discounting {
        intervals::discount(open, &closed, number("threshold", threshold, 0.0, false, 1.0)?)
    } else {
        1.0
    };
    Ok(intervals::mean(Some(open), &closed, factor))
}

/// The general discount factor DF: 2 I_mean / I_0 once that is below 1, and at least `threshold`.
///
/// RFC 5348 section 5.5; I_mean is that of the closed intervals. Arguments as of `mean_interval`.
#[pyfunction]
#[pyo3(signature = (intervals: "Iterable[float]", *, discounts: "Iterable[float] | None" = None, threshold=0.25))]
pub(crate) fn tfrc_discount_factor(
    intervals: Numbers,
    discounts: Option<Numbers>,
    threshold: f64,
) -> PyResult<f64> {
    let (open, closed) = history(&intervals, discounts.as_deref())?;
    Ok(intervals::discount(open, &closed, number("threshold", threshold, 0.0, false, 1.0)?))
}

/// The share of `rate` in bytes/s that small packets may use, each charged with a header (RFC 4828 section 3).
#[pyfunction]
#[pyo3(signature = (rate, size_bytes, *, header_bytes=40.0))]
pub(crate) fn tfrc_small_packet_rate(rate: f64, size_bytes: f64, header_bytes: f64) -> PyResult<f64> {
    let (size, header) = (positive("size_bytes", size_bytes)?, from_zero("header_bytes", header_bytes)?);
    Ok(from_zero("rate", rate)? * equation::small_packet_share(size, header))
}

/// The length of a closed loss interval for small packets, in packets (RFC 4828 section 3).
///
/// `packets` over `lost` where the interval lasted for at most two round trips, else all `packets`.
#[pyfunction]
pub(crate) fn tfrc_small_packet_interval(
    packets: f64,
    lost: f64,
    lasted_s: f64,
    rtt_s: f64,
) -> PyResult<f64> {
    let (packets, lost) = (positive("packets", packets)?, from_zero("lost", lost)?);
    let (lasted, rtt) = (from_zero("lasted_s", lasted_s)?, positive("rtt_s", rtt_s)?);
    Ok(intervals::small_packet_length(packets, lost, lasted, rtt))
}
