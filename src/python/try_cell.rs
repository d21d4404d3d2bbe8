//! One caller at a time, or an error: the guard around a stream's state.
//!
//! Feeding one stream from two threads is a caller's bug. It must neither corrupt the state nor
//! wait in silence, so a second entry is refused. A `Mutex` would do, but its two locked
//! instructions cost a sixth of a token; under the GIL a plain flag is enough, because entering is
//! one uninterrupted stretch of native code. Free-threaded builds pay for the locked instruction.
//!
//! `TryCell` is one of the few places with `unsafe` in the binding: docs/architecture.md lists
//! them.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::Python;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A value that one thread at a time may enter.
pub(super) struct TryCell<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `enter` hands out at most one guard at a time, so sharing the cell between threads gives
// no two of them access to the value at once; moving the value between threads, as the guard's
// owner may change from call to call, needs `T: Send`.
unsafe impl<T: Send> Sync for TryCell<T> {}

impl<T> TryCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self { busy: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Exclusive access, or `RuntimeError` when another call is inside.
    #[inline]
    pub(super) fn enter(&self, _py: Python<'_>) -> PyResult<Guard<'_, T>> {
        if self.take() { Ok(Guard { cell: self, _mutable: PhantomData }) } else { Err(busy()) }
    }

    /// A look at the value for the collector, which has no `Python` token and stops all other
    /// threads; `None` if the value is in use.
    pub(super) fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        if self.busy.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: no guard is out, and none can be taken while the collector runs: under the GIL it
        // holds it, and on free-threaded builds it has stopped every thread that is attached, as
        // every caller of `enter` is.
        Some(look(unsafe { &*self.value.get() }))
    }

    /// Under the GIL, which the `Python` token of `enter` proves, no other thread runs between the
    /// load and the store.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline]
    fn take(&self) -> bool {
        let free = !self.busy.load(Ordering::Acquire);
        if free {
            self.busy.store(true, Ordering::Relaxed);
        }
        free
    }

    #[cfg(Py_GIL_DISABLED)]
    #[inline]
    fn take(&self) -> bool {
        self.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cold]
fn busy() -> PyErr {
    PyRuntimeError::new_err(
        "this stream is in use by another call, of another thread or around this one: one stream belongs to one caller at a time",
    )
}

/// Access to the value until it is dropped.
pub(super) struct Guard<'a, T> {
    cell: &'a TryCell<T>,
    /// A guard is a `&mut T` in disguise, so it may not be shared between threads just because
    /// `TryCell` may.
    _mutable: PhantomData<&'a mut T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one of its cell, and it is borrowed for as long as the
        // reference lives.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed mutably.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.cell.busy.store(false, Ordering::Release);
    }
}
