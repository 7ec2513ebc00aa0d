//! A run that is stepped, read and changed, with an interface of texts and numbers.

use serde_json::json;
use std::sync::Arc;
use tidegate_core::{Cause, Kind, Span, Time};
use tidegate_sim::link::trace::Trace;
use tidegate_sim::record::news::{NewsCursor, SECTIONS, section};
use tidegate_sim::scenario::assemble::from_registry;
use tidegate_sim::scenario::{FlowKind, Queued, Run, Scenario};

/// Number of packets of each link's queue that are shown at most.
pub const WAITING_MAX: usize = 300;

const WAITING: [&str; 5] = ["link", "flow", "kind", "size", "since_s"];

/// A run. Times are in seconds from its beginning, capacities in bit/s, losses are fractions; errors are sentences.
pub struct Session {
    /// `None` when it is over.
    run: Option<Box<Run>>,
    duration: Span,
    news: NewsCursor,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a session at {} s of {}", self.now(), self.duration)
    }
}

/// An instant in whole nanoseconds.
fn instant(name: &str, seconds: f64) -> Result<Time, String> {
    // more is beyond the range of nanoseconds, and of the length of a scenario
    if (0.0..=1e9).contains(&seconds) {
        return Ok(Time::from_nanos((seconds * 1e9).round() as i64));
    }
    Err(format!("{name}: found {seconds}; expected seconds, from 0 to 1e9"))
}

impl Session {
    /// The run of a lowered scenario. `traces`: a list of the recorded capacities that it refers to by number
    /// ([`Trace::to_json`]). Both are JSON.
    ///
    /// # Errors
    /// When they cannot be parsed, or the scenario makes no sense, or it needs a part that a browser does not have: a
    /// controller in Python, or the driver of an external flow or link.
    pub fn new(lowered: &str, traces: &str) -> Result<Self, String> {
        let scenario: Scenario =
            serde_json::from_str(lowered).map_err(|error| format!("the scenario cannot be read: {error}"))?;
        for flow in &scenario.flows {
            let FlowKind::Media(media) = &flow.kind else { continue };
            if media.controller.python {
                let name = &media.controller.name;
                return Err(format!(
                    "flows.{}.controller: {name} is written in Python, which does not run in a browser",
                    flow.name
                ));
            }
        }
        let traces: Vec<serde_json::Value> =
            serde_json::from_str(traces).map_err(|error| format!("the traces cannot be read: {error}"))?;
        let trace = |trace: &serde_json::Value| Trace::from_json(&trace.to_string()).map(Arc::new);
        let traces: Vec<_> =
            traces.iter().map(trace).collect::<Result<_, _>>().map_err(|refusal| refusal.to_string())?;
        let run = Run::new(&scenario, &traces, &mut from_registry).map_err(|refusal| refusal.to_string())?;
        if let Some(key) = run.external().first() {
            return Err(format!(
                "{key}: an external link or flow needs a driver, which a browser does not have"
            ));
        }
        Ok(Self { duration: run.duration(), run: Some(Box::new(run)), news: NewsCursor::default() })
    }

    fn run(&mut self) -> Result<&mut Run, String> {
        self.run.as_deref_mut().ok_or_else(|| "this run is over".to_owned())
    }

    /// The sections of [`Session::read`], as JSON.
    #[must_use]
    pub fn sections() -> String {
        let sections = SECTIONS.into_iter().chain([("waiting", &WAITING[..])]);
        let sections: Vec<_> =
            sections.map(|(name, columns)| json!({"name": name, "columns": columns})).collect();
        json!(sections).to_string()
    }

    /// The names for the numbers in [`Session::read`], as JSON.
    #[must_use]
    pub fn names(&self) -> String {
        let Some(run) = &self.run else { return json!({}).to_string() };
        let record = run.recording();
        let index = |node| record.links.iter().position(|link| link.node == node);
        let flows = record.flows.iter().map(|flow| {
            let links: Vec<_> = flow.path.at(Time::ZERO).iter().filter_map(|&node| index(node)).collect();
            json!({"name": flow.name, "kind": flow.kind, "controller": flow.controller, "links": links})
        });
        let links = record.links.iter().zip(run.managed_links());
        let links = links.map(|(link, managed)| json!({"name": link.name, "managed": managed}));
        json!({
            "flows": flows.collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "internals": record.internal_names(),
            "kinds": Kind::ALL.map(Kind::name),
            "causes": Cause::ALL.map(Cause::name),
        })
        .to_string()
    }

    /// The time in seconds before which all events have been done.
    #[must_use]
    pub fn now(&self) -> f64 {
        self.run.as_ref().map_or(self.duration.as_secs_f64(), |run| run.reached().as_secs_f64())
    }

    /// Length of the run in seconds.
    #[must_use]
    pub fn duration(&self) -> f64 {
        self.duration.as_secs_f64()
    }

    /// Does all events before `until`, but not many more than `events` of them; returns whether it has reached `until`.
    ///
    /// # Errors
    /// When a component fails, `until` is not a time, or the world is over.
    pub fn step(&mut self, until: f64, events: f64) -> Result<bool, String> {
        let until = instant("until", until)?;
        // a number that is no count of events counts as one
        let done = self.run()?.run_before(until, events.max(1.0) as u64);
        done.map_err(|stopped| {
            self.run = None;
            stopped.to_string()
        })
    }

    /// Changes a managed link at `time`, which is not before [`Session::now`], as JSON with its new properties says; the
    /// others stay.
    ///
    /// # Errors
    /// When it cannot: no such link, a value out of its range, a time that is past.
    pub fn change(&mut self, link: &str, time: f64, change: &str) -> Result<(), String> {
        let time = instant("time", time)?;
        let change = serde_json::from_str(change).map_err(|error| format!("links.{link}: {error}"))?;
        self.run()?.plan(link, time, change).map_err(|refusal| refusal.to_string())
    }

    /// Drops the pending changes of a link from `from` on.
    ///
    /// # Errors
    /// When there is no managed link of that name.
    pub fn forget(&mut self, link: &str, from: f64) -> Result<(), String> {
        let from = instant("from", from)?;
        self.run()?.forget(link, from).map_err(|refusal| refusal.to_string())
    }

    /// The rows that are new since the last call, section by section, and the packets that wait now.
    ///
    /// # Errors
    /// When the world is over.
    pub fn read(&mut self) -> Result<Vec<f64>, String> {
        let mut news = self.news;
        let run = self.run()?;
        let mut out = Vec::new();
        run.recording().news(run.reached(), &mut news, &mut out);
        let mut waiting = Vec::new();
        run.waiting(WAITING_MAX, &mut |Queued { link, flow, kind, size, since }| {
            let since = since.map_or(f64::NAN, Time::as_secs_f64);
            waiting.push([f64::from(link), f64::from(flow.0), f64::from(kind as u8), f64::from(size), since]);
        });
        section(&mut out, waiting.into_iter());
        self.news = news;
        Ok(out)
    }

    /// The metrics so far, as JSON.
    ///
    /// # Errors
    /// When the world is over.
    pub fn metrics(&mut self) -> Result<String, String> {
        serde_json::to_string(&self.run()?.summary_so_far()).map_err(|error| error.to_string())
    }

    /// Runs to the end; returns the metrics with the digest, as JSON.
    ///
    /// # Errors
    /// When a component fails, or the world is over.
    pub fn finish(&mut self) -> Result<String, String> {
        self.run()?;
        let Some(mut run) = self.run.take() else { unreachable!("it was there") };
        let end = Time::ZERO + self.duration;
        let outcome =
            run.run_until(end).and_then(|()| run.finish()).map_err(|stopped| stopped.to_string())?;
        serde_json::to_string(&outcome.summary).map_err(|error| error.to_string())
    }
}
