//! The Python module `holdback._core`: classes that wrap the core, access to text, exceptions. The
//! only code that names `PyO3`.
//!
//! No decision about matching is taken here.
#![allow(
    clippy::doc_lazy_continuation,
    clippy::doc_link_with_quotes,
    clippy::doc_markdown,
    reason = "docstrings are written for Python: see `doc!`"
)]

/// The docstring that the stub `_core.pyi` has for a name (build.rs).
macro_rules! doc {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/docstrings/", $name))
    };
}

mod arrow;
mod batch;
mod cache;
mod error;
mod fast_path;
mod feed_many;
mod fields;
mod gil;
#[cfg(not(Py_LIMITED_API))]
mod meth_o;
mod options;
mod pickle;
mod repetition;
mod state;
mod stop_match;
mod stop_set;
mod stop_stream;
mod text;
mod truncate;
mod try_cell;
mod wire;

/// The compiled part of `holdback`.
///
/// It does not need the GIL: compiled sets are immutable, and a stream's state is entered through
/// [`try_cell::TryCell`], which refuses a second caller. The one piece of global state, the
/// cache of `compile`, is behind a lock.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::arrow::ArrowStrings;
    #[pymodule_export]
    use super::batch::feed_batch;
    #[pymodule_export]
    use super::cache::compile;
    #[pymodule_export]
    use super::fields::{_json_elements, _json_object};
    #[pymodule_export]
    use super::repetition::LoopDetector;
    #[pymodule_export]
    use super::stop_match::StopMatch;
    #[pymodule_export]
    use super::stop_set::{_rebuild_set, StopSet};
    #[pymodule_export]
    use super::stop_stream::_rebuild_stream;
    #[pymodule_export]
    use super::stop_stream::StopStream;
    #[pymodule_export]
    use super::wire::{Cutter, WireMatch};

    #[pymodule_init]
    #[cfg_attr(
        Py_LIMITED_API,
        allow(
            clippy::unnecessary_wraps,
            reason = "there is nothing to install under the stable ABI"
        )
    )]
    fn init(py: pyo3::Python<'_>) -> pyo3::PyResult<()> {
        #[cfg(not(Py_LIMITED_API))]
        super::meth_o::install(py)?;
        let _ = py;
        Ok(())
    }

    /// How the module was built: benchmarks refuse anything but `release`.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __profile__: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
