//! Doubles of the functions of texts, numbers and bytes, and of those that all objects have.
//!
//! Source: Apple, `CFBase.h`, `CFString.h`, `CFNumber.h` and `CFData.h`.

use std::ffi::{c_char, c_void};

use super::{CfContents, CfReference};
use crate::c::refuse;

/// `kCFStringEncodingUTF8` and `kCFStringEncodingASCII`.
const UTF8: u32 = 0x0800_0100;
const ASCII: u32 = 0x0600;

/// `CFNumberType`: `kCFNumberSInt32Type`, `kCFNumberSInt64Type`, and those of C.
const WHOLE_32: [isize; 2] = [3, 9];
const WHOLE_64: [isize; 4] = [4, 10, 11, 14];

/// `CFRange`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct CfRange {
    location: isize,
    length: isize,
}

/// A constant that is an address.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct ConstantAddress(*const c_void);

// SAFETY: the addresses are constants that nobody follows.
unsafe impl Sync for ConstantAddress {}

/// Double of the usual allocator, which is null.
#[unsafe(no_mangle)]
static kCFAllocatorDefault: ConstantAddress = ConstantAddress(std::ptr::null());

/// Double of the allocator that frees nothing.
#[unsafe(no_mangle)]
static kCFAllocatorNull: ConstantAddress = ConstantAddress(std::ptr::without_provenance(0x10));

/// Number of the type of an object.
fn type_of(contents: &CfContents) -> usize {
    match contents {
        CfContents::Text(_) => 7,
        CfContents::Dictionary(_) => 18,
        CfContents::Array(_) => 19,
        CfContents::Data(_) => 20,
        CfContents::Number(_) => 22,
        CfContents::Other(_) => 1,
    }
}

/// Double of `CFStringGetTypeID`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFStringGetTypeID() -> usize {
    type_of(&CfContents::Text(String::new()))
}

/// Double of `CFNumberGetTypeID`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFNumberGetTypeID() -> usize {
    type_of(&CfContents::Number(0))
}

/// Double of `CFDataGetTypeID`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFDataGetTypeID() -> usize {
    type_of(&CfContents::Data(Vec::new()))
}

/// Double of `CFDictionaryGetTypeID`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFDictionaryGetTypeID() -> usize {
    type_of(&CfContents::Dictionary(Vec::new()))
}

/// Double of `CFArrayGetTypeID`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFArrayGetTypeID() -> usize {
    type_of(&CfContents::Array(Vec::new()))
}

/// Double of `CFGetTypeID`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFGetTypeID(of: *const c_void) -> usize {
    const NAME: &str = "CFGetTypeID";
    type_of(&CfReference::given(NAME, of).contents(NAME))
}

/// Double of `CFEqual`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFEqual(one: *const c_void, other: *const c_void) -> u8 {
    const NAME: &str = "CFEqual";
    let other = CfReference::given(NAME, other);
    u8::from(CfReference::given(NAME, one).equals(NAME, other))
}

/// Makes a text of a caller's bytes.
///
/// # Safety
/// `bytes` has `length` bytes.
unsafe fn text_of(function: &str, bytes: *const u8, length: isize, encoding: u32) -> *const c_void {
    if bytes.is_null() || ![UTF8, ASCII].contains(&encoding) {
        refuse(function, &format!("expected bytes of UTF-8, found the encoding {encoding:#x}"));
    }
    let Ok(length) = usize::try_from(length) else { refuse(function, "a negative length") };
    // SAFETY: the caller gives that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, length) };
    match std::str::from_utf8(bytes) {
        Ok(text) => CfReference::text(text).pointer(),
        Err(_) => std::ptr::null(),
    }
}

/// Double of `CFStringCreateWithBytes`.
///
/// # Safety
/// `bytes` has `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFStringCreateWithBytes(
    _allocator: *const c_void,
    bytes: *const u8,
    length: isize,
    encoding: u32,
    _external: u8,
) -> *const c_void {
    // SAFETY: as for this function.
    unsafe { text_of("CFStringCreateWithBytes", bytes, length, encoding) }
}

/// Double of `CFStringCreateWithBytesNoCopy`. It takes a copy: only the allocator that frees nothing is known.
///
/// # Safety
/// `bytes` has `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFStringCreateWithBytesNoCopy(
    _allocator: *const c_void,
    bytes: *const u8,
    length: isize,
    encoding: u32,
    _external: u8,
    contents: *const c_void,
) -> *const c_void {
    const NAME: &str = "CFStringCreateWithBytesNoCopy";
    if contents != kCFAllocatorNull.0 {
        refuse(NAME, "the bytes are to be freed");
    }
    // SAFETY: as for this function.
    unsafe { text_of(NAME, bytes, length, encoding) }
}

/// Double of `CFStringGetLength`, in units of UTF-16.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFStringGetLength(of: *const c_void) -> isize {
    const NAME: &str = "CFStringGetLength";
    let text = CfReference::given(NAME, of).as_text(NAME);
    text.encode_utf16().count().cast_signed()
}

/// Double of `CFStringGetCStringPtr`, which may always have no such pointer.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFStringGetCStringPtr(of: *const c_void, _encoding: u32) -> *const c_char {
    const NAME: &str = "CFStringGetCStringPtr";
    CfReference::given(NAME, of).as_text(NAME);
    std::ptr::null()
}

/// Double of `CFStringGetCString`: nothing where the place is too small.
///
/// # Safety
/// `place` has `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFStringGetCString(
    of: *const c_void,
    place: *mut c_char,
    size: isize,
    encoding: u32,
) -> u8 {
    const NAME: &str = "CFStringGetCString";
    let text = CfReference::given(NAME, of).as_text(NAME);
    if place.is_null() || encoding != UTF8 {
        refuse(NAME, "expected a place, and UTF-8");
    }
    if (text.len() + 1).cast_signed() > size {
        return 0;
    }
    // SAFETY: the caller's place has room for all bytes and a zero.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), text.len()) };
    // SAFETY: as above.
    unsafe { *place.add(text.len()) = 0 };
    1
}

/// Double of `CFStringGetBytes`: as many whole characters as fit.
///
/// # Safety
/// `place` is null or has `size` bytes; `used` is null or a place.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFStringGetBytes(
    of: *const c_void,
    range: CfRange,
    encoding: u32,
    _loss: u8,
    _external: u8,
    place: *mut u8,
    size: isize,
    used: *mut isize,
) -> isize {
    const NAME: &str = "CFStringGetBytes";
    let text = CfReference::given(NAME, of).as_text(NAME);
    let units = text.encode_utf16().count().cast_signed();
    let end = range.location + range.length;
    if encoding != UTF8 || range.location < 0 || range.length < 0 || end > units {
        refuse(NAME, &format!("{range:?} of {units} units, in the encoding {encoding:#x}"));
    }
    let [mut at, mut taken, mut bytes] = [0_isize; 3];
    for character in text.chars() {
        let [wide, len] = [character.len_utf16(), character.len_utf8()].map(usize::cast_signed);
        let fits = place.is_null() || bytes + len <= size;
        if at >= range.location && (at + wide > end || !fits) {
            break;
        }
        if at >= range.location {
            if !place.is_null() {
                let mut room = [0; 4];
                let found = character.encode_utf8(&mut room);
                // SAFETY: there is room for the bytes of this character.
                let to = unsafe { place.offset(bytes) };
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), to, found.len()) };
            }
            bytes += len;
            taken += wide;
        }
        at += wide;
    }
    if !used.is_null() {
        // SAFETY: the caller gives the place.
        unsafe { *used = bytes };
    }
    taken
}

/// Double of `CFNumberCreate`, of whole numbers.
///
/// # Safety
/// `value` is a number of that type.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFNumberCreate(
    _allocator: *const c_void,
    kind: isize,
    value: *const c_void,
) -> *const c_void {
    const NAME: &str = "CFNumberCreate";
    if value.is_null() {
        refuse(NAME, "there is no value");
    }
    let number = if WHOLE_64.contains(&kind) {
        // SAFETY: the caller gives a number of that size.
        unsafe { value.cast::<i64>().read_unaligned() }
    } else if WHOLE_32.contains(&kind) {
        // SAFETY: as above.
        i64::from(unsafe { value.cast::<i32>().read_unaligned() })
    } else {
        refuse(NAME, &format!("no type {kind} is known"))
    };
    CfReference::new(CfContents::Number(number)).pointer()
}

/// Double of `CFNumberGetValue`: 0 where the value was changed to fit.
///
/// # Safety
/// `place` is a place of that type.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFNumberGetValue(
    of: *const c_void,
    kind: isize,
    place: *mut c_void,
) -> u8 {
    const NAME: &str = "CFNumberGetValue";
    let number = match CfReference::given(NAME, of).contents(NAME) {
        CfContents::Number(number) if !place.is_null() => number,
        other => refuse(NAME, &format!("expected a number and a place, found {other:?}")),
    };
    if WHOLE_64.contains(&kind) {
        // SAFETY: the caller's place has that size.
        unsafe { place.cast::<i64>().write_unaligned(number) };
        return 1;
    }
    if !WHOLE_32.contains(&kind) {
        refuse(NAME, &format!("no type {kind} is known"));
    }
    let low = i32::from_ne_bytes(number.to_le_bytes()[..4].try_into().unwrap_or_default());
    // SAFETY: as above.
    unsafe { place.cast::<i32>().write_unaligned(low) };
    u8::from(i64::from(low) == number)
}

/// The bytes of an object.
fn data(function: &str, of: *const c_void) -> Vec<u8> {
    match CfReference::given(function, of).contents(function) {
        CfContents::Data(bytes) => bytes,
        other => refuse(function, &format!("expected bytes, found {other:?}")),
    }
}

/// Double of `CFDataGetLength`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFDataGetLength(of: *const c_void) -> isize {
    data("CFDataGetLength", of).len().cast_signed()
}

/// Double of `CFDataGetBytes`.
///
/// # Safety
/// `place` has as many bytes as the range.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFDataGetBytes(of: *const c_void, range: CfRange, place: *mut u8) {
    const NAME: &str = "CFDataGetBytes";
    let bytes = data(NAME, of);
    let start = usize::try_from(range.location).ok();
    let end = start.zip(usize::try_from(range.length).ok()).map(|(start, len)| start + len);
    let part = start.zip(end).and_then(|(start, end)| bytes.get(start..end));
    let Some(part) = part else { refuse(NAME, &format!("{range:?} of {} bytes", bytes.len())) };
    // SAFETY: the caller's place has that many bytes.
    unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), place, part.len()) };
}

/// Double of `CFRetain`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFRetain(of: *const c_void) -> *const c_void {
    const NAME: &str = "CFRetain";
    CfReference::given(NAME, of).retain(NAME).pointer()
}

/// Double of `CFRelease`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFRelease(of: *const c_void) {
    const NAME: &str = "CFRelease";
    CfReference::given(NAME, of).release(NAME);
}
