//! Traces as plain data, for where there is no file: a page in a browser.

use super::{Capacity, Trace};
use crate::link::capacity::{Recorded, Steps};
use crate::link::loss::Loss;
use crate::link::phases::Phases;
use crate::refusal::{Refusal, ensure_probability};
use serde::{Deserialize, Serialize};
use tidegate_core::{Rate, Span, Time};

/// A trace in JSON: either `opportunities_ms` and `bytes`, or `rates` and `period_ns`. Times are nanoseconds, rates
/// bit/s, losses fractions.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Plain {
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
    /// As JSON, from which [`Trace::from_json`] makes the same trace.
    ///
    /// # Errors
    /// When it loses packets in another way than each by itself, which no file format tells.
    pub fn to_json(&self) -> Result<String, Refusal> {
        let mut plain = Plain { name: self.name.clone(), ..Plain::default() };
        match &self.capacity {
            Capacity::Opportunities(list) => {
                plain.opportunities_ms = Some(list.millis().to_vec());
                plain.bytes = Some(list.bytes());
            }
            Capacity::Rates(steps) => {
                plain.rates = Some(steps.rates().collect());
                plain.period_ns = Some(self.duration());
            }
        }
        let share = |&(at, loss): &(Time, Loss)| match loss {
            Loss::None => Ok((at, 0.0)),
            Loss::Bernoulli(share) => Ok((at, share)),
            Loss::GilbertElliott(_) => {
                Err(Refusal::new("loss", "a chain of states", "a probability for each packet"))
            }
        };
        plain.loss = self.loss.as_ref().map(|loss| loss.phases().iter().map(share).collect()).transpose()?;
        plain.delay = self.delay.as_ref().map(|delay| delay.phases().to_vec());
        serde_json::to_string(&plain).map_err(|error| error.to_string().into())
    }

    /// What [`Trace::to_json`] wrote.
    ///
    /// # Errors
    /// When it is not of that form, or no trace.
    pub fn from_json(text: &str) -> Result<Self, Refusal> {
        let plain: Plain =
            serde_json::from_str(text).map_err(|error| Refusal::from(format!("a trace: {error}")))?;
        let Plain { name, opportunities_ms, bytes, rates, period_ns, loss, delay } = plain;
        let capacity = match (opportunities_ms, bytes, rates, period_ns) {
            (Some(millis), Some(bytes), None, None) => Capacity::Opportunities(Recorded::new(millis, bytes)?),
            (None, None, Some(rates), period @ Some(_)) => Capacity::Rates(Steps::new(&rates, period)?),
            _ => {
                let right = "opportunities_ms and bytes, or rates and period_ns";
                return Err(Refusal::new("a trace", "neither a list nor rates", right));
            }
        };
        let bare = Self { name, capacity, loss: None, delay: None };
        let period = Some(bare.duration());
        let lossy = |(at, share)| {
            ensure_probability("loss", share)?;
            Ok((at, if share > 0.0 { Loss::Bernoulli(share) } else { Loss::None }))
        };
        let loss = loss
            .map(|loss| Phases::new(loss.into_iter().map(lossy).collect::<Result<_, Refusal>>()?, period))
            .transpose()?;
        let delay = delay.map(|delay| Phases::new(delay, period)).transpose()?;
        Ok(Self { loss, delay, ..bare })
    }
}
