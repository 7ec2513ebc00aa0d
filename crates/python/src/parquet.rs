//! Reads tidegate's Parquet files, which may be damaged or changed. It does not use Python, so that it can be fuzzed
//! alone.

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::file::reader::ChunkReader;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

/// A table may take this many bytes of memory, or this multiple of the size of its file: a column of equal values packs
/// without limit, and the columns that tidegate writes pack three to thirty times.
const FLOOR: u64 = 128_000_000;
const RATIO: u64 = 100;

/// The table in a Parquet file.
///
/// # Errors
/// If the file is damaged, is not of tidegate, or unpacks to far more than its size. The reader of the `parquet` crate panics on some damaged files.
pub(crate) fn read(file: impl ChunkReader + 'static) -> Result<RecordBatch, String> {
    let size = file.len();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    let schema = builder.schema().clone();
    let metadata = builder.metadata();
    let groups: i64 = metadata.row_groups().iter().map(|group| group.num_rows().max(0)).sum();
    let rows = metadata.file_metadata().num_rows();
    if rows != groups || u32::try_from(rows).is_err() {
        return Err(format!("damaged (the file has {rows} rows, its row groups {groups})"));
    }
    // eight bytes a value: times, counts and codes
    let memory = 8 * rows as u64 * schema.fields().len() as u64;
    if memory > FLOOR.max(RATIO * size) {
        return Err(format!("{rows} rows take {} MB, over {RATIO} times its size", memory / 1_000_000));
    }
    let reader =
        builder.with_batch_size((rows as usize).max(1)).build().map_err(|error| error.to_string())?;
    let mut batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let batch = match batches.len() {
        0 => RecordBatch::new_empty(schema),
        1 => batches.remove(0),
        parts => return Err(format!("damaged (the rows are in {parts} batches)")),
    };
    if batch.num_rows() != rows as usize {
        return Err(format!("damaged (only {} of {rows} rows can be read)", batch.num_rows()));
    }
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        check_column(column).map_err(|why| format!("column {}: {why}", field.name()))?;
    }
    Ok(batch)
}

/// Checks that a column is one that tidegate writes: of one of its types, without nulls, and with a word for each code.
fn check_column(column: &ArrayRef) -> Result<(), String> {
    match column.data_type() {
        DataType::Float64 | DataType::UInt64 | DataType::UInt32 | DataType::Boolean => {}
        _ => {
            let (words, codes) =
                words(column).map_err(|_| format!("type {} is not supported", column.data_type()))?;
            if codes.iter().any(|&code| usize::try_from(code).is_ok_and(|code| code >= words.len())) {
                return Err("some codes have no word".to_owned());
            }
        }
    }
    if column.null_count() > 0 { Err("some values are missing".to_owned()) } else { Ok(()) }
}

/// The words of a column, and the index of each row's word.
pub(crate) fn words(array: &ArrayRef) -> Result<(Vec<String>, Vec<i64>), String> {
    if let Some(dictionary) = array.as_dictionary_opt::<UInt32Type>() {
        let words =
            dictionary.values().as_string::<i32>().iter().map(|w| w.unwrap_or_default().to_owned()).collect();
        return Ok((words, dictionary.keys().values().iter().map(|&code| i64::from(code)).collect()));
    }
    if let Some(strings) = array.as_string_opt::<i32>() {
        let words = strings.iter().map(|w| w.unwrap_or_default().to_owned()).collect();
        return Ok((words, (0..strings.len() as i64).collect()));
    }
    Err(format!("a column has type {}, which tidegate does not write", array.data_type()))
}
