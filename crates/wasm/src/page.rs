//! What JavaScript sees, and nothing more: each call goes to [`Session`].

use crate::session::Session;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

/// A run that is stepped, read and changed. Times are seconds from its beginning, capacities bit/s, losses fractions.
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
    /// The world of a lowered scenario; `traces` is a list of the recorded capacities that it names by number. Both are
    /// JSON. Throws an Error that says what is wrong.
    #[wasm_bindgen(constructor)]
    pub fn new(lowered: &str, traces: &str) -> Result<Self, JsError> {
        // whoever finds an error of ours in the console can tell us where it is
        std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
        Ok(Self { session: Session::new(lowered, traces).map_err(thrown)? })
    }

    /// The sections of `read()`, in order, as JSON: [{name, columns}].
    pub fn sections() -> String {
        Session::sections()
    }

    /// What the numbers in `read()` stand for, as JSON: {flows: [{name, kind, controller, links}], links: [{name, managed}],
    /// internals, kinds, causes}. New names of internals come behind the others as the run goes on.
    pub fn names(&self) -> String {
        self.session.names()
    }

    /// All that happens before this time has been done, in seconds.
    #[wasm_bindgen(getter)]
    pub fn now(&self) -> f64 {
        self.session.now()
    }

    /// How long it runs, in seconds.
    #[wasm_bindgen(getter)]
    pub fn duration(&self) -> f64 {
        self.session.duration()
    }

    /// Does all that happens before `until`, but not many more than `events` events; true when it is there. Throws an
    /// Error when a component fails.
    pub fn step(&mut self, until: f64, events: f64) -> Result<bool, JsError> {
        self.session.step(until, events).map_err(thrown)
    }

    /// Changes a managed link at a time from `now` on; what is undefined stays. Throws an Error when it cannot.
    pub fn change(
        &mut self,
        link: &str,
        at: f64,
        capacity: Option<f64>,
        delay: Option<f64>,
        loss: Option<f64>,
    ) -> Result<(), JsError> {
        self.session.change(link, at, capacity, delay, loss).map_err(thrown)
    }

    /// Drops the changes of a link from a time on that have not been made.
    pub fn forget(&mut self, link: &str, from: f64) -> Result<(), JsError> {
        self.session.forget(link, from).map_err(thrown)
    }

    /// What is new since the last call: for each section the number of rows, and then the values, row by row; NaN where
    /// there is none. The last section, `waiting`, is the present and not news.
    pub fn read(&mut self) -> Result<Vec<f64>, JsError> {
        self.session.read().map_err(thrown)
    }

    /// The metrics as if the run ended now, as JSON; a freeze that still lasts is not among them.
    pub fn metrics(&mut self) -> Result<String, JsError> {
        self.session.metrics().map_err(thrown)
    }

    /// Runs to the end: the metrics with the digest, as JSON. The world is over then.
    pub fn finish(&mut self) -> Result<String, JsError> {
        self.session.finish().map_err(thrown)
    }
}
