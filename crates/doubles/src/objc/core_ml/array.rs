//! `MLMultiArray`.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use block2::{Block, RcBlock};
use objc2::rc::{Allocated, Retained};
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class, msg_send};
use objc2_core_ml::{MLMultiArray, MLMultiArrayDataType};
use objc2_core_video::CVPixelBuffer;
use objc2_foundation::{NSArray, NSError, NSNumber};

use super::layout;
use super::made;
use super::played::{OutputLayout, PlayedTensor};
use crate::objc::core_video;
use crate::objc::foundation::raise;

/// Memory that several objects share.
pub(super) struct ArrayBytes {
    words: Box<[u64]>,
}

impl ArrayBytes {
    pub(super) fn zeroed(bytes: usize) -> Arc<Self> {
        Arc::new(Self { words: vec![0; bytes.div_ceil(8)].into_boxed_slice() })
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }
}

/// Place of an array's elements.
enum ArrayPlace {
    /// In memory of the caller's, who is told when it is no longer needed.
    Given { start: *mut u8, release: Option<RcBlock<dyn Fn(NonNull<c_void>)>> },
    /// In memory of its own or of a state.
    Shared(Arc<ArrayBytes>),
    /// In a surface.
    Pixels(Retained<CVPixelBuffer>),
}

/// Contents of an array.
pub(crate) struct ElementContents {
    place: ArrayPlace,
    data_type: isize,
    shape: Vec<usize>,
    strides: Vec<usize>,
    /// Bytes that it says it has.
    counted: usize,
}

impl Drop for ElementContents {
    fn drop(&mut self) {
        if let ArrayPlace::Given { start, release: Some(release) } = &self.place
            && let Some(start) = NonNull::new(start.cast::<c_void>())
        {
            release.call((start,));
        }
    }
}

fn numbers(sizes: &[usize]) -> Retained<NSArray<NSNumber>> {
    let numbers: Vec<_> = sizes.iter().map(|&size| NSNumber::new_usize(size)).collect();
    NSArray::from_retained_slice(&numbers)
}

/// Sizes of a list of numbers; a negative one is an exception.
pub(super) fn sizes(numbers: &NSArray<NSNumber>) -> Vec<usize> {
    let size = |number: Retained<NSNumber>| match usize::try_from(number.as_isize()) {
        Ok(size) => size,
        Err(_) => raise("NSInvalidArgumentException", "a size is negative"),
    };
    numbers.iter().map(size).collect()
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLMultiArray"]
    #[ivars = ElementContents]
    pub(crate) struct ArrayDouble;

    unsafe impl NSObjectProtocol for ArrayDouble {}

    impl ArrayDouble {
        #[unsafe(method_id(initWithDataPointer:shape:dataType:strides:deallocator:error:))]
        fn init_with_pointer(
            this: Allocated<Self>,
            start: NonNull<c_void>,
            shape: &NSArray<NSNumber>,
            data_type: MLMultiArrayDataType,
            strides: &NSArray<NSNumber>,
            release: Option<&Block<dyn Fn(NonNull<c_void>)>>,
            _error: *mut *mut NSError,
        ) -> Option<Retained<Self>> {
            let shape = sizes(shape);
            let strides = sizes(strides);
            if shape.len() != strides.len() || shape.is_empty() || shape.contains(&0) {
                raise("NSInvalidArgumentException", "shape and strides do not fit");
            }
            let release = release.map(Block::copy);
            let place = ArrayPlace::Given { start: start.as_ptr().cast(), release };
            let counted = layout::span(data_type.0, &shape, &strides);
            let data_type = data_type.0;
            let contents = ElementContents { place, data_type, shape, strides, counted };
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this.set_ivars(contents)), init] }
        }

        #[unsafe(method_id(initWithPixelBuffer:shape:))]
        fn init_with_pixels(
            this: Allocated<Self>,
            pixels: &CVPixelBuffer,
            shape: &NSArray<NSNumber>,
        ) -> Retained<Self> {
            let shape = sizes(shape);
            let contents = pixel_contents(pixels, shape);
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this.set_ivars(contents)), init] }
        }

        #[unsafe(method(dataType))]
        fn data_type(&self) -> MLMultiArrayDataType {
            MLMultiArrayDataType(self.ivars().data_type)
        }

        #[unsafe(method_id(shape))]
        fn shape(&self) -> Retained<NSArray<NSNumber>> {
            numbers(&self.ivars().shape)
        }

        #[unsafe(method_id(strides))]
        fn strides(&self) -> Retained<NSArray<NSNumber>> {
            numbers(&self.ivars().strides)
        }

        #[unsafe(method(dataPointer))]
        fn pointer(&self) -> NonNull<c_void> {
            self.start().cast()
        }

        // The type is no object in the declaration of the method.
        #[unsafe(method(pixelBuffer))]
        fn pixels(&self) -> *mut CVPixelBuffer {
            match &self.ivars().place {
                ArrayPlace::Pixels(pixels) => Retained::autorelease_return(pixels.clone()),
                _ => std::ptr::null_mut(),
            }
        }

        #[unsafe(method(getBytesWithHandler:))]
        fn read(&self, handler: &Block<dyn Fn(NonNull<c_void>, isize)>) {
            handler.call((self.start().cast(), self.counted()));
        }

        #[unsafe(method(getMutableBytesWithHandler:))]
        fn write(
            &self,
            handler: &Block<dyn Fn(NonNull<c_void>, isize, NonNull<NSArray<NSNumber>>)>,
        ) {
            let strides = numbers(&self.ivars().strides);
            handler.call((self.start().cast(), self.counted(), NonNull::from(&*strides)));
        }
    }
);

/// Contents of an array in a surface, whose size must be that of the shape.
fn pixel_contents(pixels: &CVPixelBuffer, shape: Vec<usize>) -> ElementContents {
    let facts = core_video::facts(pixels);
    let width = shape.last().copied().unwrap_or(0);
    let height: usize = shape.iter().rev().skip(1).product();
    if facts.width != width || facts.height != height {
        let text = format!(
            "pixels of {} by {} for an array of {height} rows of {width}",
            facts.width, facts.height
        );
        raise("NSInvalidArgumentException", &text);
    }
    let data_type = facts.array_type;
    let row = facts.bytes_per_row / layout::element_bytes(data_type);
    let strides = layout::row_strides(&shape, row);
    let counted = facts.bytes_per_row * facts.height;
    let pixels = core_video::retained(pixels);
    ElementContents { place: ArrayPlace::Pixels(pixels), data_type, shape, strides, counted }
}

impl ArrayDouble {
    fn start(&self) -> NonNull<u8> {
        let start = match &self.ivars().place {
            ArrayPlace::Given { start, .. } => *start,
            ArrayPlace::Shared(bytes) => bytes.start(),
            ArrayPlace::Pixels(pixels) => core_video::facts(pixels).start,
        };
        NonNull::new(start).unwrap_or_else(|| panic!("an array without memory"))
    }

    fn counted(&self) -> isize {
        isize::try_from(self.ivars().counted).unwrap_or(isize::MAX)
    }

    /// Reads the elements in order.
    pub(super) fn tensor(&self) -> PlayedTensor {
        let ElementContents { data_type, shape, strides, .. } = self.ivars();
        let count: usize = shape.iter().product();
        let mut bytes = vec![0; count * layout::element_bytes(*data_type)];
        let start = self.start();
        layout::each(*data_type, shape, strides, |at, index, len| {
            // SAFETY: the element lies within the array's memory.
            let from = unsafe { start.add(at) };
            // SAFETY: so do its bytes, and nobody writes them while Core ML reads.
            let element = unsafe { std::slice::from_raw_parts(from.as_ptr(), len) };
            bytes[index..index + len].copy_from_slice(element);
        });
        PlayedTensor { data_type: *data_type, shape: shape.clone(), bytes }
    }

    /// Writes the elements, where type and shape are those of the tensor.
    pub(super) fn take(&self, tensor: &PlayedTensor) -> bool {
        let ElementContents { data_type, shape, strides, .. } = self.ivars();
        if *data_type != tensor.data_type || *shape != tensor.shape {
            return false;
        }
        let start = self.start();
        layout::each(*data_type, shape, strides, |at, index, len| {
            // SAFETY: the element lies within the array's memory.
            let to = unsafe { start.add(at) };
            // SAFETY: so do its bytes, and nobody uses them while Core ML writes.
            let element = unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), len) };
            element.copy_from_slice(&tensor.bytes[index..index + len]);
        });
        true
    }
}

/// Returns the double that an array is.
pub(super) fn double(array: &MLMultiArray) -> &ArrayDouble {
    let array: *const MLMultiArray = array;
    // SAFETY: every array here is a double.
    unsafe { &*array.cast() }
}

/// Makes an array over memory that others use too.
pub(super) fn shared(
    bytes: &Arc<ArrayBytes>,
    data_type: isize,
    shape: &[usize],
) -> Retained<MLMultiArray> {
    let strides = layout::close_strides(shape);
    let counted = layout::span(data_type, shape, &strides);
    let place = ArrayPlace::Shared(Arc::clone(bytes));
    let contents = ElementContents { place, data_type, shape: shape.to_vec(), strides, counted };
    made!(ArrayDouble, contents, MLMultiArray)
}

/// Makes an array that a model returns.
pub(super) fn output(tensor: &PlayedTensor, order: OutputLayout) -> Retained<MLMultiArray> {
    let data_type = tensor.data_type;
    let contents = if order == OutputLayout::Surface {
        let width = tensor.shape.last().copied().unwrap_or(1);
        let height = tensor.shape.iter().rev().skip(1).product();
        pixel_contents(&core_video::surface(width, height, data_type), tensor.shape.clone())
    } else {
        let strides = layout::output_strides(tensor, order);
        let span = layout::span(data_type, &tensor.shape, &strides);
        let counted = match order {
            OutputLayout::PaddedUncounted => tensor.bytes.len(),
            _ => span,
        };
        let place = ArrayPlace::Shared(ArrayBytes::zeroed(span));
        ElementContents { place, data_type, shape: tensor.shape.clone(), strides, counted }
    };
    let array = made!(ArrayDouble, contents, MLMultiArray);
    double(&array).take(tensor);
    array
}

/// Makes another array over the surface of this one, or returns the array itself.
pub(super) fn returned(backing: &MLMultiArray) -> Retained<MLMultiArray> {
    let contents = double(backing).ivars();
    match &contents.place {
        ArrayPlace::Pixels(pixels) => {
            let contents = pixel_contents(pixels, contents.shape.clone());
            made!(ArrayDouble, contents, MLMultiArray)
        }
        _ => objc2::Message::retain(backing),
    }
}
