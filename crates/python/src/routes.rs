//! Routes for Python.

use pyo3::prelude::*;

/// The routes that the engine takes over links.
#[pyclass(frozen, module = "tidegate._core")]
pub(crate) struct Routes {
    inner: tidegate_sim::scenario::Routes,
}

#[pymethods]
impl Routes {
    /// Over links between these points, in this order.
    #[new]
    #[allow(clippy::needless_pass_by_value)]
    fn new(ends: Vec<(String, String)>) -> Self {
        let ends = ends.iter().map(|(from, to)| (from.as_str(), to.as_str()));
        Self { inner: tidegate_sim::scenario::Routes::new(ends) }
    }

    /// The numbers of the links from one point to another; none between a point and itself, and nothing where no route
    /// leads there.
    fn between(&self, begin: &str, end: &str) -> Option<Vec<usize>> {
        self.inner.between(begin, end)
    }
}
