//! When to work without the GIL, and how often to look for Ctrl-C.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// From this many units on, a chunk is read without the GIL.
///
/// Below, giving it away and taking it back costs more than the reading, and beside one busy Python
/// thread it puts the interpreter's switch interval (5 ms) on the tail of every call. Set by
/// `benches/test_gil.py`.
pub(super) const DETACH_UNITS: usize = 16 << 10;

/// Work without the GIL takes it back this often. Doing so can cost the switch interval, so it is
/// not done after so many units, which some texts need a hundred times longer for than others.
const PAUSE: Duration = Duration::from_millis(50);

/// With the GIL, signals are looked at after this many units: a millisecond of the slowest text.
const UNITS: usize = 256 << 10;

/// A chunk is some work even if it is empty: as much as so many units.
pub(super) const CHUNK: usize = 64;

/// Runs `work` on `units` units, without the GIL if they are many.
#[inline]
pub(super) fn detach_if_long<T: Send>(
    py: Python<'_>,
    units: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    if units < DETACH_UNITS { work() } else { py.detach(work) }
}

/// Looks for Ctrl-C in work without the GIL: at once, and then every so often.
#[derive(Default)]
pub(super) struct Pauses(Option<Instant>);

impl Pauses {
    /// Called as often as is convenient.
    ///
    /// # Errors
    /// `KeyboardInterrupt`, or whatever a signal handler raises.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is tied to one lifetime"
    )]
    pub(super) fn look(&mut self) -> PyResult<()> {
        if self.0.is_some_and(|last| last.elapsed() < PAUSE) {
            return Ok(());
        }
        let looked = Python::attach(|py| py.check_signals());
        self.0 = Some(Instant::now());
        looked
    }
}

/// Looks for Ctrl-C between pieces of work that hold the GIL, or give it away for a while.
#[derive(Default)]
pub(super) struct Signals(usize);

impl Signals {
    /// Called before a piece of `units` units.
    ///
    /// # Errors
    /// `KeyboardInterrupt`, or whatever a signal handler raises.
    #[inline]
    pub(super) fn before(&mut self, py: Python<'_>, units: usize) -> PyResult<()> {
        self.0 = self.0.saturating_add(units).saturating_add(CHUNK);
        if self.0 < UNITS {
            return Ok(());
        }
        self.0 = 0;
        py.check_signals()
    }
}
