//! `MLMultiArray`.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::slice;
use std::thread;

use block2::RcBlock;
use objc2::rc::Retained;
use objc2::{AnyThread, available};
use objc2_core_foundation::{CFDictionary, CFRetained, CFString, CFType};
use objc2_core_ml::{MLMultiArray, MLMultiArrayDataType};
use objc2_core_video::{
    CVPixelBuffer, CVPixelBufferCreate, CVPixelBufferGetBaseAddress, CVPixelBufferGetBytesPerRow,
    CVPixelBufferGetHeight, kCVPixelBufferIOSurfacePropertiesKey, kCVPixelFormatType_OneComponent8,
    kCVPixelFormatType_OneComponent16Half, kCVReturnSuccess,
};
use objc2_foundation::{NSArray, NSNumber};

use super::super::layout::{self, ArrayLayout};
use super::super::{ArrayDataType, CoreMlFault, CoreMlFaultKind};
use super::{guarded, numbers, property, refused, sizes};

/// An array, and the memory that it was given.
pub(in super::super) struct Buffer {
    array: Retained<MLMultiArray>,
    /// Start of that memory, and the number of its bytes that belong to the array.
    given: Option<(NonNull<u8>, usize)>,
}

// SAFETY: Core ML binds arrays to no thread, and what they stand on lives as long as they do.
unsafe impl Send for Buffer {}

impl Buffer {
    /// An array over memory that is not copied.
    ///
    /// # Safety
    /// The layout's span of bytes from `start` on is valid for reads, and for writes where the array
    /// is written to, for as long as `owner` lives.
    pub(in super::super) unsafe fn over(
        owner: Box<dyn Any + Send + Sync>,
        start: NonNull<u8>,
        layout: &ArrayLayout,
    ) -> Result<Self, CoreMlFault> {
        supported(layout.data_type)?;
        // Core ML lets go of the block after the array, and the block of the owner.
        let release = RcBlock::new(move |_: NonNull<c_void>| {
            let _held = &owner;
        });
        guarded(CoreMlFaultKind::Memory, "array over memory", || {
            let shape = numbers(&layout.shape);
            let strides = numbers(&layout.strides);
            // SAFETY: the caller vouches for the memory; the block holds its owner.
            let made = unsafe {
                MLMultiArray::initWithDataPointer_shape_dataType_strides_deallocator_error(
                    MLMultiArray::alloc(),
                    start.cast(),
                    &shape,
                    MLMultiArrayDataType(layout.data_type.number()),
                    &strides,
                    Some(&release),
                )
            };
            match made {
                Ok(array) => Ok(Self { array, given: Some((start, layout.span())) }),
                Err(error) => Err(refused(CoreMlFaultKind::Memory, "array over memory", &error)),
            }
        })
    }

    /// An array in a surface of this size.
    pub(in super::super) fn surface(
        width: usize,
        height: usize,
        layout: &ArrayLayout,
    ) -> Result<Self, CoreMlFault> {
        supported(layout.data_type)?;
        let format = match layout.data_type {
            ArrayDataType::Int8 => kCVPixelFormatType_OneComponent8,
            _ => kCVPixelFormatType_OneComponent16Half,
        };
        let pixels = pixel_buffer(width, height, format)?;
        guarded(CoreMlFaultKind::Memory, "array in a surface", || {
            let shape = numbers(&layout.shape);
            // SAFETY: the pixels are as wide and as high as the shape needs them.
            let array = unsafe {
                MLMultiArray::initWithPixelBuffer_shape(MLMultiArray::alloc(), &pixels, &shape)
            };
            Ok(Self { array, given: None })
        })
    }

    /// An array that Core ML made.
    pub(super) fn returned(array: Retained<MLMultiArray>) -> Self {
        Self { array, given: None }
    }

    /// Core ML's array.
    pub(super) fn array(&self) -> &MLMultiArray {
        &self.array
    }

    /// Returns whether this is the same memory as that of an array that Core ML returns.
    pub(super) fn is(&self, other: &MLMultiArray) -> bool {
        let array = &*self.array;
        let pixels = |array: &MLMultiArray| {
            property!(array.pixelBuffer()).map(|pixels| Retained::as_ptr(&pixels))
        };
        ptr::eq(array, other) || pixels(array).is_some_and(|own| pixels(other) == Some(own))
    }

    pub(in super::super) fn read<R>(
        &self,
        look: impl FnOnce(&[u8], &[usize]) -> R,
    ) -> Result<R, CoreMlFault> {
        let look = Cell::new(Some(look));
        let answer = Cell::new(None);
        let block = RcBlock::new(|start: NonNull<c_void>, len: isize| {
            let Some(look) = look.take() else { return };
            let len = self.reach(start.cast(), len);
            let strides = sizes(&*property!(self.array.strides()));
            // SAFETY: so many bytes are readable while the block runs, and the array's borrow keeps
            // writers away.
            let bytes = unsafe { slice::from_raw_parts(start.cast::<u8>().as_ptr(), len) };
            answer.set(Some(catch_unwind(AssertUnwindSafe(|| look(bytes, &strides)))));
        });
        // SAFETY: the block is there until the call returns, and Core ML keeps no copy of it.
        let called = guarded(CoreMlFaultKind::Memory, "reading an array", || unsafe {
            self.array.getBytesWithHandler(&block);
            Ok(())
        });
        drop(block);
        called?;
        opened(answer.into_inner())
    }

    pub(in super::super) fn write<R>(
        &mut self,
        change: impl FnOnce(&mut [u8], &[usize]) -> R,
    ) -> Result<R, CoreMlFault> {
        let change = Cell::new(Some(change));
        let answer = Cell::new(None);
        let this = &*self;
        let block = RcBlock::new(
            |start: NonNull<c_void>, len: isize, strides: NonNull<NSArray<NSNumber>>| {
                let Some(change) = change.take() else { return };
                let len = this.reach(start.cast(), len);
                // SAFETY: the list is alive while the block runs.
                let strides = sizes(unsafe { strides.as_ref() });
                // SAFETY: so many bytes are writable while the block runs, and the array's exclusive
                // borrow keeps everybody else away.
                let bytes = unsafe { slice::from_raw_parts_mut(start.cast().as_ptr(), len) };
                answer.set(Some(catch_unwind(AssertUnwindSafe(|| change(bytes, &strides)))));
            },
        );
        // SAFETY: the block is there until the call returns, and Core ML keeps no copy of it.
        let called = guarded(CoreMlFaultKind::Memory, "writing an array", || unsafe {
            this.array.getMutableBytesWithHandler(&block);
            Ok(())
        });
        drop(block);
        called?;
        opened(answer.into_inner())
    }

    /// Returns the number of bytes from `start` on, of which Core ML counts `len`. For memory with gaps it
    /// counts as if there were a gap behind the last row too, or none at all.
    fn reach(&self, start: NonNull<u8>, len: isize) -> usize {
        if let Some((own, span)) = self.given
            && own == start
        {
            return span;
        }
        let counted = usize::try_from(len).unwrap_or(0);
        let Some(pixels) = property!(self.array.pixelBuffer()) else {
            return self.own_reach(start, counted);
        };
        if CVPixelBufferGetBaseAddress(&pixels).cast() != start.as_ptr() {
            return counted;
        }
        CVPixelBufferGetBytesPerRow(&pixels).saturating_mul(CVPixelBufferGetHeight(&pixels))
    }

    /// Returns the number of bytes from `start` on where that is the array's own memory, of which Core ML
    /// counts `counted`; what may be a copy has no more than these.
    fn own_reach(&self, start: NonNull<u8>, counted: usize) -> usize {
        #[allow(deprecated, reason = "the address is compared, and nothing is read by it")]
        let own = property!(self.array.dataPointer());
        let Some(data_type) = ArrayDataType::of(property!(self.array.dataType()).0) else {
            return counted;
        };
        if own.cast() != start {
            return counted;
        }
        let shape = sizes(&*property!(self.array.shape()));
        let strides = sizes(&*property!(self.array.strides()));
        layout::own_bytes(counted, data_type, &shape, &strides)
    }
}

/// Integers of 8 bits are new. macOS 26 follows 15, and tells a program that was built before it that it
/// is 16.
fn supported(data_type: ArrayDataType) -> Result<(), CoreMlFault> {
    if data_type == ArrayDataType::Int8 && !available!(macos = 16.0) {
        return Err(CoreMlFault::newer("arrays of Int8", "26"));
    }
    Ok(())
}

/// Pixels in a surface.
fn pixel_buffer(
    width: usize,
    height: usize,
    format: u32,
) -> Result<CFRetained<CVPixelBuffer>, CoreMlFault> {
    let none = CFDictionary::<CFString, CFType>::empty();
    // SAFETY: a constant of Core Video's.
    let key = unsafe { kCVPixelBufferIOSurfacePropertiesKey };
    let attributes = CFDictionary::from_slices(&[key], &[none.as_opaque()]);
    let mut pixels: *mut CVPixelBuffer = ptr::null_mut();
    // SAFETY: the attribute has a dictionary as its value, as it must; the result is there to be
    // written.
    let status = unsafe {
        CVPixelBufferCreate(
            None,
            width,
            height,
            format,
            Some(attributes.as_opaque()),
            NonNull::from(&mut pixels),
        )
    };
    match NonNull::new(pixels).filter(|_| status == kCVReturnSuccess) {
        // SAFETY: what a function with `Create` in its name gives is the caller's.
        Some(pixels) => Ok(unsafe { CFRetained::from_raw(pixels) }),
        None => {
            let text =
                format!("surface of {width} by {height}: CVPixelBufferCreate gives {status}");
            Err(CoreMlFault::new(CoreMlFaultKind::Memory, text))
        }
    }
}

/// Returns the result of a handler. A panic in the handler resumes here, because it may not pass through Core
/// ML.
pub(super) fn opened<R>(answer: Option<thread::Result<R>>) -> Result<R, CoreMlFault> {
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(panic)) => resume_unwind(panic),
        None => {
            let text = "Core ML gives no access to an array";
            Err(CoreMlFault::new(CoreMlFaultKind::Memory, text))
        }
    }
}
