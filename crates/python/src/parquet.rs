//! Reads tidegate's Parquet files, which may be damaged or changed. It does not use Python, so that it can be fuzzed
//! alone.

use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use ::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
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
    check_footer(&file)?;
    let metadata =
        ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|error| error.to_string())?;
    for column in metadata.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        check_pages(&file, column, FLOOR.max(RATIO * size))
            .map_err(|why| format!("column {}: damaged ({why})", column.column_path()))?;
    }
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
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

/// Checks the footer before the `parquet` crate reads it: the crate steps through a list of any length that it does not know,
/// though no bytes are left.
fn check_footer(file: &impl ChunkReader) -> Result<(), String> {
    let tail = file.len().checked_sub(8).ok_or("too short")?;
    let bytes = |start, length| file.get_bytes(start, length).map_err(|error| error.to_string());
    let length = u32::from_le_bytes(*bytes(tail, 4)?.first_chunk().ok_or("too short")?);
    // a length that does not fit is left to the crate, which says so
    let Some(start) = tail.checked_sub(u64::from(length)) else { return Ok(()) };
    let footer = bytes(start, length as usize)?;
    Thrift::new(&footer).structure(0).ok_or("damaged (its footer ends too early)")?;
    Ok(())
}

/// Checks the headers of a column's pages, likewise, and that each of them unpacks to at most `limit` bytes.
fn check_pages(file: &impl ChunkReader, column: &ColumnChunkMetaData, limit: u64) -> Result<(), String> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let (Ok(start), Ok(length)) = (u64::try_from(start), usize::try_from(column.compressed_size())) else {
        return Err("its place is negative".to_owned());
    };
    let end = start.checked_add(length as u64);
    if end.is_none_or(|end| end > file.len()) {
        return Err("it ends behind the file".to_owned());
    }
    let pages = file.get_bytes(start, length).map_err(|error| error.to_string())?;
    let mut rest = &pages[..];
    while !rest.is_empty() {
        let mut header = Thrift::new(rest);
        let (unpacked, packed) = header.page_header().ok_or("the header of a page ends too early")?;
        if u64::try_from(unpacked).is_ok_and(|unpacked| unpacked > limit) {
            return Err(format!("a page takes {} MB", unpacked / 1_000_000));
        }
        let body = usize::try_from(packed).ok().and_then(|packed| header.bytes.get(packed..));
        rest = body.ok_or("a page ends behind its column")?;
    }
    Ok(())
}

/// Steps through Thrift's compact encoding (thrift-compact-protocol.md), in which Parquet has its footer and the headers of
/// pages, with at most as many steps as there are bytes. All results are `None` where the bytes end too early.
struct Thrift<'a> {
    bytes: &'a [u8],
    steps: usize,
}

impl<'a> Thrift<'a> {
    const I32: u8 = 5;
    const STOP: u8 = 0;
    /// Largest depth of nested values, as in the `parquet` crate.
    const DEPTH_MAX: u32 = 64;

    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, steps: bytes.len() }
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes = self.bytes.get(count..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    /// A number in groups of seven bits.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A signed number.
    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The type of the next field, and its number after that of the field before.
    fn field(&mut self, before: i64) -> Option<(u8, i64)> {
        let byte = self.byte()?;
        let number = match byte >> 4 {
            _ if byte == Self::STOP => before,
            0 => self.zigzag()?,
            delta => before.checked_add(i64::from(delta))?,
        };
        Some((byte & 0x0f, number))
    }

    /// `uncompressed_page_size` and `compressed_page_size` of a `PageHeader` (parquet.thrift).
    fn page_header(&mut self) -> Option<(i64, i64)> {
        let (mut number, mut sizes) = (0, [None, None]);
        loop {
            let kind;
            (kind, number) = self.field(number)?;
            match (kind, number) {
                (Self::STOP, _) => return Some((sizes[0]?, sizes[1]?)),
                (Self::I32, 2 | 3) => sizes[number as usize - 2] = Some(self.zigzag()?),
                _ => self.value(kind, 1)?,
            }
        }
    }

    fn structure(&mut self, depth: u32) -> Option<()> {
        loop {
            match self.field(0)? {
                (Self::STOP, _) => return Some(()),
                (kind, _) => self.value(kind, depth + 1)?,
            }
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        self.steps = self.steps.checked_sub(1).filter(|_| depth <= Self::DEPTH_MAX)?;
        match kind {
            // the value of a Boolean field is its type
            1 | 2 => Some(()),
            3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => self.varint().and_then(|length| self.skip(usize::try_from(length).ok()?)),
            9 | 10 => {
                let byte = self.byte()?;
                let count = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
                (0..count).try_for_each(|_| self.value(byte & 0x0f, depth + 1))
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.value(kinds >> 4, depth + 1)?;
                    self.value(kinds & 0x0f, depth + 1)
                })
            }
            12 => self.structure(depth),
            13 => self.skip(16),
            _ => None,
        }
    }
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
