//! The checks of the fuzz targets of recorded networks and of the engine's JSON, for their corpora and a thousand
//! mutations of each.

#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;
#[path = "../../../fuzz/src/scenario.rs"]
#[allow(unreachable_pub)]
mod scenario;
#[path = "../../../fuzz/src/traces.rs"]
#[allow(unreachable_pub)]
mod traces;

use tidegate_sim::link::trace::Format;

#[test]
fn traces_of_numbers() {
    let formats = [Format::Mahimahi, Format::SecondsMbps, Format::DataRatePattern];
    mutations::each(&mutations::corpus("trace_text"), |input| traces::check(&formats, input));
}

#[test]
fn traces_of_tables() {
    let formats = [Format::Raca, Format::Lumos, Format::Csv];
    mutations::each(&mutations::corpus("trace_csv"), |input| traces::check(&formats, input));
}

#[test]
fn traces_in_json() {
    let formats = [Format::OpenNetLab, Format::PantheonPath, Format::PionPhases];
    mutations::each(&mutations::corpus("trace_json"), |input| traces::check(&formats, input));
}

#[test]
fn scenarios() {
    mutations::each(&mutations::corpus("scenario"), scenario::check);
}
