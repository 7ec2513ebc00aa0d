//! Runs the checks of the fuzz targets on their corpora, and on a thousand mutations of each input.

#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;
#[path = "../../../fuzz/src/recordings.rs"]
#[allow(unreachable_pub)]
mod recordings;

#[test]
fn event_logs() {
    mutations::each(&mutations::corpus("event_log"), recordings::event_log);
}

#[test]
fn captures() {
    mutations::each(&mutations::corpus("capture"), recordings::capture);
}
