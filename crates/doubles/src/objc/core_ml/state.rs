//! `MLState`.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use block2::Block;
use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class};
use objc2_core_ml::{MLMultiArray, MLState};
use objc2_foundation::NSString;

use super::array::{self, ArrayBytes};
use super::played::{PlayedInterface, PlayedKind, PlayedTensor};
use super::{layout, made};
use crate::objc::foundation::raise;

/// One array of a state.
struct StateArray {
    name: String,
    data_type: isize,
    shape: Vec<usize>,
    bytes: Arc<ArrayBytes>,
}

/// Contents of a state.
pub(crate) struct StateContents {
    arrays: Vec<StateArray>,
    /// True while a prediction has it.
    busy: AtomicBool,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLState"]
    #[ivars = StateContents]
    pub(crate) struct StateDouble;

    unsafe impl NSObjectProtocol for StateDouble {}

    impl StateDouble {
        #[unsafe(method(getMultiArrayForStateNamed:handler:))]
        fn look(&self, name: &NSString, handler: &Block<dyn Fn(NonNull<MLMultiArray>)>) {
            let name = name.to_string();
            let found = self.ivars().arrays.iter().find(|one| one.name == name);
            let Some(found) = found else {
                raise("NSInvalidArgumentException", &format!("there is no state {name}"))
            };
            let busy = self.occupied();
            let array = array::shared(&found.bytes, found.data_type, &found.shape);
            handler.call((NonNull::from(&*array),));
            drop(busy);
        }
    }
);

/// A state that is in use, until this is dropped.
pub(super) struct OccupiedState<'a>(&'a AtomicBool);

impl Drop for OccupiedState<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl StateDouble {
    /// Takes the state for oneself. That somebody else has it is an exception.
    pub(super) fn occupied(&self) -> OccupiedState<'_> {
        let busy = &self.ivars().busy;
        if busy.swap(true, Ordering::SeqCst) {
            raise("NSInternalInconsistencyException", "a state is in use");
        }
        OccupiedState(busy)
    }

    pub(super) fn tensors(&self) -> Vec<PlayedTensor> {
        let tensor = |of: &StateArray| {
            let array = array::shared(&of.bytes, of.data_type, &of.shape);
            array::double(&array).tensor()
        };
        self.ivars().arrays.iter().map(tensor).collect()
    }

    pub(super) fn take(&self, tensors: &[PlayedTensor]) {
        for (of, tensor) in self.ivars().arrays.iter().zip(tensors) {
            let array = array::shared(&of.bytes, of.data_type, &of.shape);
            assert!(array::double(&array).take(tensor), "a state changes its type or shape");
        }
    }
}

/// Returns the double that a state is.
pub(super) fn double(state: &MLState) -> &StateDouble {
    let state: *const MLState = state;
    // SAFETY: every state here is a double.
    unsafe { &*state.cast() }
}

/// Makes a state of zeros.
pub(super) fn state(of: &PlayedInterface) -> Retained<MLState> {
    let array = |feature: &super::played::PlayedFeature| {
        let PlayedKind::State { data_type, shape } = &feature.kind else { return None };
        let strides = layout::close_strides(shape);
        let bytes = ArrayBytes::zeroed(layout::span(*data_type, shape, &strides));
        let name = feature.name.clone();
        Some(StateArray { name, data_type: *data_type, shape: shape.clone(), bytes })
    };
    let arrays = of.states.iter().filter_map(array).collect();
    let contents = StateContents { arrays, busy: AtomicBool::new(false) };
    made!(StateDouble, contents, MLState)
}
