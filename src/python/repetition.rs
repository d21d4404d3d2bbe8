//! `LoopDetector`: the core's detector of loops for `holdback.Repetition`.

use pyo3::prelude::*;

use crate::repetition::{Detector, Loop, Repetition};

/// Characters read, the end of the text, and each period under watch with its run.
type State = (usize, String, Vec<(usize, usize)>);

#[doc = doc!("LoopDetector")]
#[pyclass(module = "holdback._core")]
#[derive(Clone)]
pub(super) struct LoopDetector {
    core: Detector,
    found: Option<Loop>,
}

#[pymethods]
impl LoopDetector {
    #[new]
    #[pyo3(signature = (count, cover, min_unit, max_unit, short_cover))]
    fn new(
        count: usize,
        cover: usize,
        min_unit: usize,
        max_unit: usize,
        short_cover: Option<usize>,
    ) -> PyResult<Self> {
        let rule = Repetition { count, cover, min_unit, max_unit, short_cover };
        Ok(Self { core: Detector::new(rule)?, found: None })
    }

    #[doc = doc!("LoopDetector.feed")]
    #[pyo3(signature = (text, /))]
    fn feed(&mut self, text: &str) -> Option<usize> {
        let (read, found) = self.core.feed(text)?;
        self.found = Some(found);
        Some(read)
    }

    #[doc = doc!("LoopDetector.skip")]
    #[pyo3(signature = (text, /))]
    fn skip(&mut self, text: &str) {
        self.core.skip(text);
    }

    #[doc = doc!("LoopDetector.found")]
    #[getter]
    fn found(&self) -> Option<(String, usize, usize)> {
        self.found.as_ref().map(|found| (found.unit.clone(), found.count, found.start))
    }

    #[doc = doc!("LoopDetector.copy")]
    fn copy(&self) -> Self {
        self.clone()
    }

    fn __getnewargs__(&self) -> (usize, usize, usize, usize, Option<usize>) {
        let Repetition { count, cover, min_unit, max_unit, short_cover } = *self.core.rule();
        (count, cover, min_unit, max_unit, short_cover)
    }

    fn __getstate__(&self) -> (State, Option<(String, usize, usize)>) {
        (self.core.state(), self.found())
    }

    fn __setstate__(&mut self, state: (State, Option<(String, usize, usize)>)) -> PyResult<()> {
        let ((read, tail, live), found) = state;
        self.core = Detector::restore(*self.core.rule(), read, &tail, &live)?;
        self.found = found.map(|(unit, count, start)| Loop { unit, count, start });
        Ok(())
    }
}
