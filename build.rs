//! Passes on what kind of Python the binding is built for (`Py_GIL_DISABLED`, `Py_LIMITED_API`,
//! `Py_3_x`), and takes the docstrings for `help()` out of the stub, so that there is one text of
//! each.

fn main() {
    #[cfg(feature = "python")]
    {
        pyo3_build_config::use_pyo3_cfgs();
        docstrings::write("python/holdback/_core.pyi");
    }
}

/// The binding says `#[doc = doc!("StopSet.stream")]`; a name that the stub has no text for does
/// not compile.
#[cfg(feature = "python")]
mod docstrings {
    use std::path::Path;
    use std::{env, fs};

    const QUOTES: &str = "\"\"\"";

    pub(crate) fn write(stub: &str) {
        println!("cargo::rerun-if-changed={stub}");
        let text =
            fs::read_to_string(stub).unwrap_or_else(|error| panic!("cannot read {stub}: {error}"));
        let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("docstrings");
        fs::create_dir_all(&out).expect("cargo's directory can be written to");
        for (name, doc) in docstrings(&text) {
            fs::write(out.join(name), doc).expect("cargo's directory can be written to");
        }
    }

    /// Names (`StopSet`, `StopSet.stream`, `compile`) and their docstrings, without the indent.
    fn docstrings(stub: &str) -> Vec<(String, String)> {
        let (mut class, mut found) = (String::new(), Vec::new());
        let mut name = String::new();
        let mut lines = stub.lines();
        while let Some(line) = lines.next() {
            let code = line.trim_start();
            let indent = line.len() - code.len();
            let word = |rest: &str| {
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
            };
            if let Some(rest) = code.strip_prefix("class ") {
                class = word(rest);
                name.clone_from(&class);
            } else if let Some(rest) = code.strip_prefix("def ") {
                name = if indent == 0 { word(rest) } else { format!("{class}.{}", word(rest)) };
            } else if let Some(first) = code.strip_prefix(QUOTES).filter(|_| !name.is_empty()) {
                let mut doc = first.to_owned();
                while !doc.ends_with(QUOTES) {
                    let line = lines.next().expect("the docstring ends");
                    doc.push('\n');
                    doc.push_str(line.get(indent..).unwrap_or(""));
                }
                doc.truncate(doc.len() - QUOTES.len());
                found.push((name.clone(), doc.trim_end().replace("\\\\", "\\")));
            }
        }
        found
    }
}
