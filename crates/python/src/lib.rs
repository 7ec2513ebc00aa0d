//! Python bindings of tidegate: a scenario goes in, columns come out. Glue only.
// this crate is not pure: it may read a clock for progress, but never for results
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod arguments;
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

/// The compiled core of tidegate.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::control::decision::{PyDecision, PyLimits, PyNeeds, PyProbe};
    #[pymodule_export]
    use crate::control::host::{
        PyControllerHost, PyReceiverHost, check_controller, controller, controller_defaults,
        controller_needs, controllers_json, receiver,
    };
    #[pymodule_export]
    use crate::control::packets::{PyArrived, PyNewFrame, PyOutgoing, PySent};
    #[pymodule_export]
    use crate::control::report::{PyEcnCounts, PyLossReport, PyPacketResult, PyReport};
    #[pymodule_export]
    use crate::gym::{PyAgentController, PyEpisode, PyTerms, StepThreads};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::live::{PyShell, drop_rights, enter_network, make_network, replay_session};
    #[pymodule_export]
    use crate::nada::{
        nada_congestion_signal, nada_equivalent_delay, nada_gamma, nada_gradual_update, nada_shaped_rates,
    };
    #[pymodule_export]
    use crate::panics::Panics;
    #[pymodule_export]
    use crate::quality::{mos, r_factor};
    #[pymodule_export]
    use crate::recordings::{PyImported, import_captures, import_event_logs, recording_format};
    #[pymodule_export]
    use crate::routes::Routes;
    #[pymodule_export]
    use crate::rtcp::PySchedule;
    #[pymodule_export]
    use crate::run::{Recording, run};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::sockets::{live_receive, live_send};
    #[pymodule_export]
    use crate::sprout::sprout_forecasts;
    #[pymodule_export]
    use crate::table::{Table, read_parquet, table_of};
    #[pymodule_export]
    use crate::tfrc::{
        tfrc_discount_factor, tfrc_initial_window, tfrc_loss_event_rate, tfrc_mean_interval,
        tfrc_small_packet_interval, tfrc_small_packet_rate, tfrc_throughput,
    };
    #[pymodule_export]
    use crate::trace::{PyStream, PyTrace, lte_survey};
    #[pymodule_export]
    use crate::wire::{
        App, Bye, Ccfb, EcnFeedback, ExtendedReport, Fir, Nack, Pli, ReceiverReport, Remb, ReportBlock, Rtp,
        Sdes, SenderReport, Sli, Twcc, TwccBuilder, Unknown, decode, decode_rtp, encode, encode_rtp,
    };
    #[pymodule_export]
    use crate::world::{PyPacket, PyWorld};
    use crate::{encoder, errors, guard, gym};
    use pyo3::prelude::*;
    use tidegate_sim::record::metrics::{FAIRNESS, FLOWS, LINKS, MEMBERS, Row};

    /// Adds constants and exceptions to the module.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        guard::install(py)?;
        module.add("InternalError", py.get_type::<guard::InternalError>())?;
        module.add("Refused", py.get_type::<errors::Refused>())?;
        module.add("RunError", py.get_type::<errors::RunError>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("COMMIT", env!("TIDEGATE_COMMIT"))?;
        module.add("ENCODERS", encoder::ENCODERS.to_vec())?;
        module.add("FEATURES", gym::features())?;
        module.add("STEP_NUMBERS", gym::NAMES.to_vec())?;
        let row = |r: &Row| (r.name, r.label, r.unit, r.better, r.definition, r.scale, r.digits, r.headline);
        let parts = [("flows", FLOWS), ("links", LINKS), ("fairness", FAIRNESS), ("members", MEMBERS)];
        module.add(
            "METRICS",
            parts.map(|(part, rows)| (part, rows.iter().map(row).collect::<Vec<_>>())).to_vec(),
        )
    }
}
