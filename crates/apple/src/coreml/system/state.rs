//! `MLState`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use block2::RcBlock;
use objc2::rc::Retained;
use objc2_core_ml::{MLMultiArray, MLState};
use objc2_foundation::NSString;

use super::super::{CoreMlFault, CoreMlFaultKind, MultiArray};
use super::{buffer, guarded, returned};

/// A model's state. Its predictions follow each other, since each has it exclusively.
pub(in super::super) struct StateBuffers {
    state: Retained<MLState>,
}

impl StateBuffers {
    pub(super) fn new(state: Retained<MLState>) -> Self {
        Self { state }
    }

    /// Core ML's state.
    pub(super) fn state(&self) -> &MLState {
        &self.state
    }

    /// Copies an array that both have by this name. It goes through memory of its own, since each is there
    /// only while its handler runs.
    pub(in super::super) fn copy_from(
        &mut self,
        other: &Self,
        name: &str,
    ) -> Result<(), CoreMlFault> {
        let bytes = other.array(name, |array| {
            let mut bytes = vec![0; array.len_bytes()];
            array.copy_to(&mut bytes).map(|()| bytes)
        })??;
        self.array(name, |mut array| {
            array.become_writable();
            array.copy_from(&bytes)
        })?
    }

    /// Calls `look` with the array of this name, which the state has.
    fn array<R>(&self, name: &str, look: impl FnOnce(MultiArray) -> R) -> Result<R, CoreMlFault> {
        let look = Cell::new(Some(look));
        let answer = Cell::new(None);
        let block = RcBlock::new(|array: NonNull<MLMultiArray>| {
            let Some(look) = look.take() else { return };
            // SAFETY: the array is alive while the block runs.
            let array = unsafe { Retained::retain(array.as_ptr()) };
            let Some(array) = array else { return };
            answer.set(Some(catch_unwind(AssertUnwindSafe(|| returned::array(array).map(look)))));
        });
        let state_name = NSString::from_str(name);
        // SAFETY: the state has an array of this name, as its model says; the block is there until the
        // call returns, and nobody predicts on the state, whose borrow the caller has.
        let called = guarded(CoreMlFaultKind::Memory, name, || unsafe {
            self.state.getMultiArrayForStateNamed_handler(&state_name, &block);
            Ok(())
        });
        drop(block);
        called?;
        buffer::opened(answer.into_inner())?
    }
}
