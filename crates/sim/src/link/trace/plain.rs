//! Traces in JSON, for a page in a browser, which has no files.

use super::{Capacity, Trace};
use crate::link::capacity::{OpportunityTrace, Steps};
use crate::link::loss::Loss;
use crate::link::phases::Phases;
use crate::refusal::{Refusal, ensure_probability};
use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span, Time};

/// A trace in JSON: either `opportunities_ms` and `bytes`, or `rates` and `period_ns`. Times are nanoseconds, rates
/// bit/s, losses fractions.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TraceJson {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    opportunities_ms: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<Vec<(Time, Rate)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_ns: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<Vec<(Time, f64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<Vec<(Time, Span)>>,
}

impl Trace {
    /// Writes the trace as JSON, from which [`Trace::from_json`] makes the same trace.
    ///
    /// # Errors
    /// When its losses are not independent; no file format has such losses.
    pub fn to_json(&self) -> Result<String, Refusal> {
        let mut json = TraceJson { name: self.name.clone(), ..TraceJson::default() };
        match &self.capacity {
            Capacity::Opportunities(list) => {
                json.opportunities_ms = Some(list.millis().to_vec());
                json.bytes = Some(list.bytes());
            }
            Capacity::Rates(steps) => {
                json.rates = Some(steps.rates().collect());
                json.period_ns = Some(self.duration());
            }
        }
        let share = |&(time, loss): &(Time, Loss)| match loss {
            Loss::None => Ok((time, 0.0)),
            Loss::Bernoulli(share) => Ok((time, share)),
            Loss::GilbertElliott(_) => {
                Err(Refusal::new("loss", "bursts (Gilbert-Elliott)", "independent losses"))
            }
        };
        json.loss = self.loss.as_ref().map(|loss| loss.phases().iter().map(share).collect()).transpose()?;
        json.delay = self.delay.as_ref().map(|delay| delay.phases().to_vec());
        serde_json::to_string(&json).map_err(|error| error.to_string().into())
    }

    /// Parses the JSON of [`Trace::to_json`].
    ///
    /// # Errors
    /// When it does not have that form, or is no valid trace.
    pub fn from_json(text: &str) -> Result<Self, Refusal> {
        let json: TraceJson =
            serde_json::from_str(text).map_err(|error| Refusal::from(format!("trace: {error}")))?;
        let TraceJson { name, opportunities_ms, bytes, rates, period_ns, loss, delay } = json;
        let capacity = match (opportunities_ms, bytes, rates, period_ns) {
            (Some(millis), Some(bytes), None, None) => {
                Capacity::Opportunities(OpportunityTrace::new(millis, bytes)?)
            }
            (None, None, Some(rates), period @ Some(_)) => Capacity::Rates(Steps::new(&rates, period)?),
            _ => {
                let expected = "opportunities_ms and bytes, or rates and period_ns";
                return Err(Refusal::new("trace", "neither opportunities nor rates", expected));
            }
        };
        let lossless = Self { name, capacity, loss: None, delay: None, remarks: Vec::new() };
        let period = Some(lossless.duration());
        let lossy = |(time, share)| {
            ensure_probability("loss", share)?;
            Ok((time, if share > 0.0 { Loss::Bernoulli(share) } else { Loss::None }))
        };
        let loss = loss
            .map(|loss| Phases::new(loss.into_iter().map(lossy).collect::<Result<_, Refusal>>()?, period))
            .transpose()?;
        let delay = delay.map(|delay| Phases::new(delay, period)).transpose()?;
        Ok(Self { loss, delay, ..lossless })
    }
}
