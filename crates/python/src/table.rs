//! Tables for Python: the Arrow C stream, NumPy arrays, Parquet files.

use crate::errors::{bad, file_error};
use crate::guard::catch_panic;
use crate::parquet::{read, words};
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::ChunkReader;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, RecordBatch, RecordBatchIterator,
    StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType};
use bytes::Bytes;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyImportError, PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PySlice};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_sim::record::columns::{Column, Table as Columns};

/// Largest number of columns that a table's `repr` names.
const MAX_NAMED: usize = 8;

/// Columns whose names are methods of data frames (`df.size`, `df.where`), and the further names of the same columns.
const FURTHER_NAMES: [(&str, &str); 2] = [("size", "size_bytes"), ("where", "fate_at")];

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
        Ok(Self { batch: with_further_names(batch).map_err(bad)? })
    }

    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.batch
            .column_by_name(name)
            .ok_or_else(|| bad(format!("no column {name:?}; available: {}", self.columns().join(", "))))
    }
}

/// Adds the columns of [`FURTHER_NAMES`] that a table lacks; they share the memory of those that it has.
fn with_further_names(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let missing: Vec<_> = FURTHER_NAMES
        .into_iter()
        .filter(|(_, further)| batch.column_by_name(further).is_none())
        .filter_map(|(name, further)| Some((further, batch.column_by_name(name)?.clone())))
        .collect();
    if missing.is_empty() {
        return Ok(batch);
    }
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    RecordBatch::try_from_iter(names.zip(batch.columns().iter().cloned()).chain(missing))
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

/// Converts a NumPy array of floats or whole numbers, or a list of words, to a column.
fn column_from_python(values: &Bound<'_, PyAny>) -> PyResult<Column> {
    if let Ok(array) = values.extract::<PyReadonlyArray1<'_, f64>>() {
        return Ok(Column::F64(array.as_array().to_vec()));
    }
    if let Ok(array) = values.extract::<PyReadonlyArray1<'_, u64>>() {
        return Ok(Column::U64(array.as_array().to_vec()));
    }
    if let Ok(array) = values.extract::<PyReadonlyArray1<'_, u32>>() {
        return Ok(Column::U32(array.as_array().to_vec()));
    }
    let rows: Vec<String> = values.extract()?;
    let mut codes_by_word = BTreeMap::new();
    let mut words: Vec<String> = Vec::new();
    let codes = rows.into_iter().map(|row| {
        *codes_by_word.entry(row).or_insert_with_key(|row| {
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
    #[pyo3(signature = (columns: "Sequence[tuple[str, npt.NDArray[np.float64 | np.uint64 | np.uint32] | list[str]]]"))]
    fn of(columns: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let arrays = columns.iter().map(|(name, values)| Ok((name, array(column_from_python(values)?))));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        Ok(Self { batch: RecordBatch::try_from_iter(arrays).map_err(bad)? })
    }

    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// One column as a NumPy array; words become an array of strings.
    #[pyo3(signature = (column) -> "npt.NDArray[Any]")]
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

    /// A column by its name, as `to_numpy` gives it; a row by its number, as a dictionary; some rows as a table.
    fn __getitem__<'py>(&self, py: Python<'py>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.batch.num_rows();
        if let Ok(name) = key.extract::<String>() {
            return self
                .to_numpy(py, &name)
                .map_err(|error| PyKeyError::new_err(error.value(py).to_string()));
        }
        if let Ok(slice) = key.cast::<PySlice>() {
            let range = slice.indices(rows as isize)?;
            if range.step != 1 {
                let expected = "expected 1 (a single column supports other steps: table[\"t_s\"][::2])";
                return Err(bad(format!("rows: found a step of {}; {expected}", range.step)));
            }
            let batch = self.batch.slice(range.start as usize, range.slicelength);
            return Ok(Bound::new(py, Self { batch })?.into_any());
        }
        let row: isize = key.extract().map_err(|_| {
            let array = key.get_type();
            PyTypeError::new_err(format!(
                "found {array}; expected a column's name, a row's number, or a slice of rows"
            ))
        })?;
        let index = if row < 0 { row + rows as isize } else { row };
        if index < 0 || index as usize >= rows {
            return Err(PyIndexError::new_err(format!("row {row}: the table has {rows} rows")));
        }
        let row = Self { batch: self.batch.slice(index as usize, 1) };
        let cells = PyDict::new(py);
        for name in self.columns() {
            cells.set_item(&name, row.to_numpy(py, &name)?.call_method0("tolist")?.get_item(0)?)?;
        }
        Ok(cells.into_any())
    }

    /// The table as a `pandas.DataFrame`; ImportError says what to install.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for name in self.columns() {
            columns.set_item(&name, self.to_numpy(py, &name)?)?;
        }
        library(py, "pandas")?.call_method1("DataFrame", (columns,))
    }

    /// The table as a `polars.DataFrame`; ImportError says what to install.
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars")?.call_method1("DataFrame", (slf,))
    }

    /// Itself: nothing in it can be changed.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Itself: nothing in it can be changed.
    fn __deepcopy__(slf: Py<Self>, memo: Bound<'_, PyAny>) -> Py<Self> {
        drop(memo);
        slf
    }

    /// Pickles the table as a Parquet file.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let mut file = Vec::new();
        py.detach(|| write(&self.batch, &mut file))?;
        Ok((py.import("tidegate._core")?.getattr("table_of")?, (PyBytes::new(py, &file),)))
    }

    /// The table with two more columns, `controller` and `seed`, the same in all rows. They replace columns of these
    /// names.
    fn labelled(&self, controller: &str, seed: u64) -> PyResult<Self> {
        let rows = self.batch.num_rows();
        let words = Column::Words { words: vec![controller.to_owned()], codes: vec![0; rows] };
        let labels = [("controller", array(words)), ("seed", array(Column::U64(vec![seed; rows])))];
        let fields = self.batch.schema();
        let columns = fields
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .zip(self.batch.columns().iter().cloned())
            .filter(|(name, _)| !matches!(*name, "controller" | "seed"));
        Ok(Self { batch: RecordBatch::try_from_iter(columns.chain(labels)).map_err(bad)? })
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
        py.detach(|| {
            let file = std::fs::File::create(path).map_err(|error| file_error(path, &error))?;
            write(&self.batch, file).map_err(|error| bad(format!("{path}: {error}")))
        })
    }

    fn __repr__(&self) -> String {
        let columns = self.columns();
        let names = columns.get(..MAX_NAMED).unwrap_or(&columns).join(", ");
        let rest = columns.len().saturating_sub(MAX_NAMED);
        let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
        format!("<tidegate Table, {} rows: {names}{more}>", self.batch.num_rows())
    }

    /// Its first rows, for a notebook.
    #[pyo3(signature = () -> "str")]
    fn _repr_html_<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tidegate.output.notebook")?.call_method1("of_table", (slf,))
    }
}

/// Imports a library that takes tables.
fn library<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import(name).map_err(|_| {
        PyImportError::new_err(format!(
            "{name} is not installed: pip install {name} (to_numpy does not need it)"
        ))
    })?;
    Ok(array.into_any())
}

fn write(batch: &RecordBatch, to: impl std::io::Write + Send) -> PyResult<()> {
    let level = ZstdLevel::try_new(3).map_err(bad)?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let mut writer = ArrowWriter::try_new(to, batch.schema(), Some(properties)).map_err(bad)?;
    writer.write(batch).map_err(bad)?;
    writer.close().map_err(bad)?;
    Ok(())
}

/// Reads a Parquet file that `Table.write_parquet` wrote; whatever is in it, a wrong one is an error.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: &str) -> PyResult<Table> {
    // looked at before it is opened, which would wait for the writer of a pipe
    let is_file = std::fs::metadata(path).map_err(|error| file_error(path, &error))?.is_file();
    if !is_file {
        return Err(bad(format!("{path}: not a regular file")));
    }
    let file = std::fs::File::open(path).map_err(|error| file_error(path, &error))?;
    table(py, file).map_err(|why| bad(format!("{path}: not a Parquet file of tidegate: {why}")))
}

/// The table in the bytes of a Parquet file of tidegate; ValueError where they are none.
#[pyfunction]
#[pyo3(signature = (file: "bytes"))]
pub(crate) fn table_of(py: Python<'_>, file: Vec<u8>) -> PyResult<Table> {
    table(py, Bytes::from(file)).map_err(|why| bad(format!("not a table of tidegate: {why}")))
}

fn table(py: Python<'_>, file: impl ChunkReader + 'static) -> Result<Table, String> {
    // the reader panics on some damaged files
    let batch = py.detach(|| catch_panic(|| read(file))).map_err(|panic| format!("damaged ({panic})"));
    let batch = with_further_names(batch.flatten()?).map_err(|error| error.to_string())?;
    Ok(Table { batch })
}
