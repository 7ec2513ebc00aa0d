//! The check of the fuzz target of saved tables, for its corpus and a thousand mutations of it.

#[path = "../../../fuzz/src/mutations.rs"]
#[allow(dead_code, unreachable_pub)]
mod mutations;
#[path = "../src/parquet.rs"]
#[allow(dead_code)]
mod parquet;
#[path = "../../../fuzz/src/tables.rs"]
#[allow(unreachable_pub)]
mod tables;
#[path = "../../../fuzz/src/thrift.rs"]
#[allow(unreachable_pub)]
mod thrift;

#[test]
fn saved_tables() {
    std::panic::set_hook(Box::new(|_| {}));
    let tally =
        mutations::each("parquet", &mutations::corpus("parquet"), Some(thrift::change), tables::check);
    assert!(tally.accepted > tally.count / 10, "{tally:?}");
}
