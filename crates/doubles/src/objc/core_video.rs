//! Core Video's pixel buffers, each in memory that stands for a surface.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{AnyThread, DefinedClass, define_class, msg_send};
use objc2_core_video::CVPixelBuffer;

use super::foundation::constant;
use super::runtime::is_alive;

/// Rows of surfaces begin at multiples of these bytes.
const ROW: usize = 64;

/// `kCVPixelFormatType_OneComponent8` and `kCVPixelFormatType_OneComponent16Half`.
const BYTE: u32 = u32::from_be_bytes(*b"L008");
const HALF: u32 = u32::from_be_bytes(*b"L00h");

/// Numbers of `MLMultiArrayDataType` whose elements are such pixels.
const INT8: isize = 0x2_0008;
const FLOAT16: isize = 0x1_0010;

/// `kCVReturnInvalidPixelFormat`, `kCVReturnInvalidSize` and `kCVReturnInvalidArgument`.
const INVALID_FORMAT: i32 = -6680;
const INVALID_SIZE: i32 = -6681;
const INVALID_ARGUMENT: i32 = -6661;

/// Widest and highest surface.
const MAX_SIDE: usize = 16384;

constant! {
    kCVPixelBufferIOSurfacePropertiesKey = c"IOSurfaceProperties";
}

/// Returns whether an address is that of an object, which functions of Core Foundation may retain and release.
#[unsafe(no_mangle)]
extern "C-unwind" fn galatea_double_is_object(address: *const c_void) -> bool {
    let key: *const c_void = ptr::from_ref(kCVPixelBufferIOSurfacePropertiesKey).cast();
    is_alive(address) || ptr::eq(address, key)
}

/// Contents of a pixel buffer.
pub(crate) struct PixelContents {
    width: usize,
    height: usize,
    bytes_per_row: usize,
    array_type: isize,
    words: Box<[u64]>,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "__NSCFType"]
    #[ivars = PixelContents]
    pub(crate) struct PixelDouble;

    unsafe impl NSObjectProtocol for PixelDouble {}
);

/// Facts of a pixel buffer.
pub(super) struct PixelFacts {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) bytes_per_row: usize,
    /// Number of the `MLMultiArrayDataType` whose elements are such pixels.
    pub(super) array_type: isize,
    pub(super) start: *mut u8,
}

fn contents(pixels: &CVPixelBuffer) -> &PixelContents {
    let pixels: *const CVPixelBuffer = pixels;
    // SAFETY: every pixel buffer here is a double.
    unsafe { &*pixels.cast::<PixelDouble>() }.ivars()
}

/// Returns what is known of a pixel buffer.
pub(super) fn facts(pixels: &CVPixelBuffer) -> PixelFacts {
    let of = contents(pixels);
    PixelFacts {
        width: of.width,
        height: of.height,
        bytes_per_row: of.bytes_per_row,
        array_type: of.array_type,
        start: of.words.as_ptr().cast_mut().cast(),
    }
}

/// Makes the caller an owner.
pub(super) fn retained(pixels: &CVPixelBuffer) -> Retained<CVPixelBuffer> {
    objc2::Message::retain(pixels)
}

/// Makes a surface whose pixels are elements of this type.
pub(super) fn surface(width: usize, height: usize, array_type: isize) -> Retained<CVPixelBuffer> {
    let bytes = if array_type == INT8 { 1 } else { 2 };
    let bytes_per_row = (width * bytes).next_multiple_of(ROW);
    let words = vec![0; bytes_per_row * height / 8].into_boxed_slice();
    let contents = PixelContents { width, height, bytes_per_row, array_type, words };
    let this = PixelDouble::alloc().set_ivars(contents);
    // SAFETY: the parent's method takes nothing.
    let made: Retained<PixelDouble> = unsafe { msg_send![super(this), init] };
    // SAFETY: pixel buffers are objects, and this is what they are here.
    unsafe { Retained::cast_unchecked(made) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CVPixelBufferCreate(
    _allocator: *const c_void,
    width: usize,
    height: usize,
    format: u32,
    attributes: *const c_void,
    place: NonNull<*mut CVPixelBuffer>,
) -> i32 {
    let array_type = match format {
        BYTE => INT8,
        HALF => FLOAT16,
        _ => return INVALID_FORMAT,
    };
    if attributes.is_null() {
        return INVALID_ARGUMENT;
    }
    if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
        return INVALID_SIZE;
    }
    let pixels = Retained::into_raw(surface(width, height, array_type));
    // SAFETY: the caller has a place for the pixels.
    unsafe { place.write(pixels) };
    0
}

#[unsafe(no_mangle)]
extern "C-unwind" fn CVPixelBufferGetBaseAddress(pixels: &CVPixelBuffer) -> *mut c_void {
    facts(pixels).start.cast()
}

#[unsafe(no_mangle)]
extern "C-unwind" fn CVPixelBufferGetBytesPerRow(pixels: &CVPixelBuffer) -> usize {
    contents(pixels).bytes_per_row
}

#[unsafe(no_mangle)]
extern "C-unwind" fn CVPixelBufferGetHeight(pixels: &CVPixelBuffer) -> usize {
    contents(pixels).height
}
