//! Arrays that Core ML made.

use objc2::rc::Retained;
use objc2_core_ml::MLMultiArray;

use super::super::{ArrayDataType, CoreMlFault, CoreMlFaultKind, MultiArray};
use super::buffer::Buffer;
use super::{property, sizes};

/// Takes an array that Core ML made.
pub(super) fn array(array: Retained<MLMultiArray>) -> Result<MultiArray, CoreMlFault> {
    let number = property!(array.dataType()).0;
    let data_type = ArrayDataType::of(number).ok_or_else(|| {
        let text = format!("an array has elements of type {number:#x}, which is unknown");
        CoreMlFault::new(CoreMlFaultKind::Predict, text)
    })?;
    let shape = sizes(&*property!(array.shape()));
    Ok(MultiArray::returned(Buffer::returned(array), data_type, shape))
}
