//! The fuzz targets as a library, so that one body serves cargo-fuzz, the stable driver and the
//! replay in `tests/fuzz.rs`.

pub mod targets;
