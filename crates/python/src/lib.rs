//! Python bindings of tidegate: a scenario goes in, columns come out. Glue only.
// the one crate above the pure ones that may look at a clock: for progress, never for results
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod control;
mod encoder;
mod errors;
mod guard;
mod gym;
#[cfg(target_os = "linux")]
mod live;
mod nada;
mod panics;
mod parquet;
mod quality;
mod recordings;
mod routes;
mod rtcp;
mod run;
#[cfg(target_os = "linux")]
mod sockets;
mod sprout;
mod table;
mod tfrc;
mod trace;
mod wire;
mod world;

use pyo3::prelude::*;
use tidegate_sim::record::metrics::{FAIRNESS, FLOWS, LINKS, MEMBERS, Row};

/// A metric: name, label, unit, which direction is better, definition, scale, digits, place in comparisons.
type Metric = (&'static str, &'static str, &'static str, &'static str, &'static str, f64, u8, u8);

/// The rows of each part of a summary.
fn metrics() -> Vec<(&'static str, Vec<Metric>)> {
    let plain = |r: &Row| (r.name, r.label, r.unit, r.better, r.definition, r.scale, r.digits, r.headline);
    [("flows", FLOWS), ("links", LINKS), ("fairness", FAIRNESS), ("members", MEMBERS)]
        .map(|(part, rows)| (part, rows.iter().map(plain).collect()))
        .into()
}

/// The compiled core of tidegate.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("COMMIT", env!("TIDEGATE_COMMIT"))?;
    module.add("ENCODERS", encoder::ENCODERS.to_vec())?;
    module.add("METRICS", metrics())?;
    module.add("Refused", module.py().get_type::<errors::Refused>())?;
    guard::register(module)?;
    module.add("RunError", module.py().get_type::<errors::RunError>())?;
    module.add_class::<panics::Panics>()?;
    control::register(module)?;
    gym::register(module)?;
    module.add_class::<rtcp::PySchedule>()?;
    module.add_class::<run::Recording>()?;
    module.add_class::<world::PyPacket>()?;
    module.add_class::<world::PyWorld>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<routes::Routes>()?;
    module.add_class::<trace::PyTrace>()?;
    module.add_class::<trace::PyStream>()?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(trace::lte_survey, module)?)?;
    module.add_function(wrap_pyfunction!(table::read_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(table::table_of, module)?)?;
    #[cfg(target_os = "linux")]
    {
        live::register(module)?;
        module.add_function(wrap_pyfunction!(sockets::live_send, module)?)?;
        module.add_function(wrap_pyfunction!(sockets::live_receive, module)?)?;
    }
    nada::register(module)?;
    sprout::register(module)?;
    tfrc::register(module)?;
    quality::register(module)?;
    recordings::register(module)?;
    wire::register(module)?;
    module.add_function(wrap_pyfunction!(wire::decode, module)?)?;
    module.add_function(wrap_pyfunction!(wire::encode, module)?)?;
    module.add_function(wrap_pyfunction!(wire::decode_rtp, module)?)?;
    module.add_function(wrap_pyfunction!(wire::encode_rtp, module)?)?;
    Ok(())
}
