//! Passes on what kind of Python the binding is built for (`Py_GIL_DISABLED`, `Py_LIMITED_API`, `Py_3_x`).

fn main() {
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
}
