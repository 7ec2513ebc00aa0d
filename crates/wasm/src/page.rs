//! The interface to JavaScript: each call goes to [`Session`].

use crate::session::Session;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

/// A run that is stepped, read and changed. Times are in seconds from its beginning, capacities in bit/s, losses are
/// fractions.
#[wasm_bindgen]
#[derive(Debug)]
pub struct World {
    session: Session,
}

fn thrown(reason: String) -> JsError {
    JsError::new(&reason)
}

#[wasm_bindgen]
impl World {
    /// The world of a lowered scenario. `traces`: a list of the recorded capacities that it refers to by number. Both
    /// are JSON. Throws an Error that describes the problem.
    #[wasm_bindgen(constructor)]
    pub fn new(lowered: &str, traces: &str) -> Result<Self, JsError> {
        // a panic in the console names its place in the source, so that users can report it
        std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
        Ok(Self { session: Session::new(lowered, traces).map_err(thrown)? })
    }

    /// The sections of `read()`, in order, as JSON: [{name, columns}].
    pub fn sections() -> String {
        Session::sections()
    }

    /// The names for the numbers in `read()`, as JSON: {flows: [{name, kind, controller, links}], links: [{name,
    /// managed}], internals, kinds, causes}. New names of internals are appended as the run goes on.
    pub fn names(&self) -> String {
        self.session.names()
    }

    /// The time in seconds before which all events have been done.
    #[wasm_bindgen(getter)]
    pub fn now(&self) -> f64 {
        self.session.now()
    }

    /// Length of the run in seconds.
    #[wasm_bindgen(getter)]
    pub fn duration(&self) -> f64 {
        self.session.duration()
    }

    /// Does all events before `until`, but not many more than `events` of them; returns whether it has reached `until`.
    /// Throws an Error when a component fails.
    pub fn step(&mut self, until: f64, events: f64) -> Result<bool, JsError> {
        self.session.step(until, events).map_err(thrown)
    }

    /// Changes a managed link at `time`, which is not before `now`, as JSON with its new properties says; the others
    /// stay. Throws an Error when it cannot.
    pub fn change(&mut self, link: &str, time: f64, change: &str) -> Result<(), JsError> {
        self.session.change(link, time, change).map_err(thrown)
    }

    /// Drops the pending changes of a link from a time on.
    pub fn forget(&mut self, link: &str, from: f64) -> Result<(), JsError> {
        self.session.forget(link, from).map_err(thrown)
    }

    /// The rows that are new since the last call: for each section their number, and then the values, row by row; NaN
    /// for a missing value. The last section, `waiting`, has the packets that wait now, whether they are new or not.
    pub fn read(&mut self) -> Result<Vec<f64>, JsError> {
        self.session.read().map_err(thrown)
    }

    /// The metrics as if the run ended now, as JSON; a time without a picture that still lasts is not among them.
    pub fn metrics(&mut self) -> Result<String, JsError> {
        self.session.metrics().map_err(thrown)
    }

    /// Runs to the end; returns the metrics with the digest, as JSON. The world is over then.
    pub fn finish(&mut self) -> Result<String, JsError> {
        self.session.finish().map_err(thrown)
    }
}
