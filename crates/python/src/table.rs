//! Tables for Python: the Arrow C stream, NumPy arrays, Parquet files.

use crate::errors::{bad, file_error};
use crate::guard::caught;
use crate::parquet::{read, words};
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, RecordBatch, RecordBatchIterator,
    StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_sim::record::columns::{Column, Table as Columns};

/// Columns of equal length with names.
///
/// Speaks the Arrow C stream interface, so that ``polars.DataFrame(table)``, ``pyarrow.table(table)``,
/// ``pandas.DataFrame.from_arrow(table)`` and duckdb take it as it is.
#[pyclass(frozen, module = "tidegate._core")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(table: Columns) -> PyResult<Self> {
        let columns = table.columns.into_iter().map(|(name, column)| (name, array(column)));
        let batch = RecordBatch::try_from_iter(columns).map_err(bad)?;
        Ok(Self { batch })
    }

    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.batch
            .column_by_name(name)
            .ok_or_else(|| bad(format!("no column {name:?}; there are {}", self.columns().join(", "))))
    }
}

fn array(column: Column) -> ArrayRef {
    match column {
        Column::F64(values) => Arc::new(Float64Array::from(values)),
        Column::U64(values) => Arc::new(UInt64Array::from(values)),
        Column::U32(values) => Arc::new(UInt32Array::from(values)),
        Column::Bool(values) => Arc::new(BooleanArray::from(values)),
        Column::Words { words, codes } => {
            let words = Arc::new(StringArray::from(words));
            Arc::new(DictionaryArray::<UInt32Type>::new(UInt32Array::from(codes), words))
        }
    }
}

/// A column out of a NumPy array of floats or whole numbers, or a list of words.
fn given(values: &Bound<'_, PyAny>) -> PyResult<Column> {
    if let Ok(found) = values.extract::<PyReadonlyArray1<'_, f64>>() {
        return Ok(Column::F64(found.as_array().to_vec()));
    }
    if let Ok(found) = values.extract::<PyReadonlyArray1<'_, u64>>() {
        return Ok(Column::U64(found.as_array().to_vec()));
    }
    if let Ok(found) = values.extract::<PyReadonlyArray1<'_, u32>>() {
        return Ok(Column::U32(found.as_array().to_vec()));
    }
    let rows: Vec<String> = values.extract()?;
    let mut places = BTreeMap::new();
    let mut words: Vec<String> = Vec::new();
    let codes = rows.into_iter().map(|row| {
        *places.entry(row).or_insert_with_key(|row| {
            words.push(row.clone());
            words.len() as u32 - 1
        })
    });
    let codes = codes.collect();
    Ok(Column::Words { words, codes })
}

#[pymethods]
impl Table {
    /// A table of columns of equal length: arrays of float64, uint64 or uint32, or lists of words.
    #[staticmethod]
    fn of(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let arrays = columns.iter().map(|(name, values)| Ok((name, array(given(values)?))));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        Ok(Self { batch: RecordBatch::try_from_iter(arrays).map_err(bad)? })
    }

    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// How many rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// One column as a NumPy array; words become an array of strings.
    fn to_numpy<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyAny>> {
        let array = self.column(column)?;
        Ok(match array.data_type() {
            DataType::Float64 => {
                PyArray1::from_slice(py, array.as_primitive::<Float64Type>().values()).into_any()
            }
            DataType::UInt64 => {
                PyArray1::from_slice(py, array.as_primitive::<UInt64Type>().values()).into_any()
            }
            DataType::UInt32 => {
                PyArray1::from_slice(py, array.as_primitive::<UInt32Type>().values()).into_any()
            }
            DataType::Boolean => PyArray1::from_iter(py, array.as_boolean().values().iter()).into_any(),
            _ => {
                let numpy = py.import("numpy")?;
                let (words, codes) = words(array).map_err(bad)?;
                let words = numpy.call_method1("array", (words,))?;
                if words.len()? == 0 {
                    return numpy.call_method1("array", (Vec::<String>::new(), "<U1"));
                }
                words.get_item(PyArray1::from_vec(py, codes))?
            }
        })
    }

    /// The table with two columns more, the same in all rows: of which controller and seed it is.
    fn labelled(&self, controller: &str, seed: u64) -> PyResult<Self> {
        let rows = self.batch.num_rows();
        let words = Column::Words { words: vec![controller.to_owned()], codes: vec![0; rows] };
        let more = [("controller", array(words)), ("seed", array(Column::U64(vec![seed; rows])))];
        let fields = self.batch.schema();
        let own = fields
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .zip(self.batch.columns().iter().cloned());
        Ok(Self { batch: RecordBatch::try_from_iter(own.chain(more)).map_err(bad)? })
    }

    /// The Arrow C stream of the table (one batch).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // the interface allows a producer to ignore the wish
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Writes the table as a Parquet file (zstd).
    fn write_parquet(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let write = || {
            let file = std::fs::File::create(path).map_err(|error| file_error(path, &error))?;
            let level = ZstdLevel::try_new(3).map_err(bad)?;
            let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
            let mut writer =
                ArrowWriter::try_new(file, self.batch.schema(), Some(properties)).map_err(bad)?;
            writer.write(&self.batch).map_err(|error| bad(format!("{path}: {error}")))?;
            writer.close().map_err(|error| bad(format!("{path}: {error}")))?;
            Ok(())
        };
        py.detach(write)
    }

    fn __repr__(&self) -> String {
        format!("<tidegate Table, {} rows: {}>", self.batch.num_rows(), self.columns().join(", "))
    }
}

/// Reads a Parquet file that [`Table::write_parquet`] wrote; whatever is in it, a wrong one is an error.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: &str) -> PyResult<Table> {
    let file = std::fs::File::open(path).map_err(|error| file_error(path, &error))?;
    // the reader panics on some damaged files
    let batch = py.detach(|| caught(|| read(file))).map_err(|panic| format!("damaged ({panic})"));
    let batch = batch.flatten();
    batch
        .map(|batch| Table { batch })
        .map_err(|why| bad(format!("{path}: not a Parquet file of tidegate: {why}")))
}
