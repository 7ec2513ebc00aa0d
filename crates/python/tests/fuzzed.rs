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

/// A table whose footer ends in `fields` more, each an unknown list of 2^31 - 1 Booleans, which take no bytes.
fn with_lists(table: &[u8], fields: usize) -> Vec<u8> {
    let tail = table.len() - 8;
    // a list, five bytes of length, and the stop of the structure
    let lists = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07].repeat(fields);
    let length = u32::from_le_bytes(table[tail..tail + 4].try_into().expect("four")) + lists.len() as u32;
    [&table[..tail - 1], &lists, &[0], &length.to_le_bytes(), b"PAR1"].concat()
}

#[test]
fn unknown_lists_are_no_longer_than_their_file() {
    for table in mutations::corpus("parquet") {
        let read = |bytes: Vec<u8>| parquet::read(bytes::Bytes::from(bytes));
        if read(table.clone()).is_ok() {
            assert!(read(with_lists(&table, 0)).is_ok());
            let why = read(with_lists(&table, 100)).expect_err("longer than the file");
            assert!(why.contains("its footer ends too early"), "{why}");
        }
    }
    // mutation 548818 of seed 1: a list of strings that goes on behind the end of the file
    let file = include_bytes!("../../../tests/data/damaged/page-header.parquet");
    let why = parquet::read(bytes::Bytes::from_static(file)).expect_err("longer than the file");
    assert!(why.contains("the header of a page ends too early"), "{why}");
}
