//! Doubles of the functions of arrays and dictionaries, which own what they hold.
//!
//! Source: Apple, `CFArray.h` and `CFDictionary.h`.

use std::ffi::c_void;

use super::{CfContents, CfPair, CfReference, LiveObjects};
use crate::c::refuse;

/// Callbacks of a collection. Their address alone is looked at: collections own what they hold.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct OwningCallbacks {
    version: isize,
    functions: [usize; 5],
}

const OWNING: OwningCallbacks = OwningCallbacks { version: 0, functions: [0; 5] };

/// Double of the callbacks of arrays that own their items.
#[unsafe(no_mangle)]
static kCFTypeArrayCallBacks: OwningCallbacks = OWNING;

/// Double of the callbacks of dictionaries that own their keys.
#[unsafe(no_mangle)]
static kCFTypeDictionaryKeyCallBacks: OwningCallbacks = OWNING;

/// Double of the callbacks of dictionaries that own their values.
#[unsafe(no_mangle)]
static kCFTypeDictionaryValueCallBacks: OwningCallbacks = OWNING;

/// Ends the process unless the callbacks are those that own.
fn owning(function: &str, given: *const c_void, known: &'static OwningCallbacks) {
    if given != std::ptr::from_ref(known).cast() {
        refuse(function, "expected the callbacks of a collection that owns what it holds");
    }
}

/// References that a caller gave, each with one more owner.
///
/// # Safety
/// There are as many as `count` says.
unsafe fn retained(function: &str, from: *const *const c_void, count: isize) -> Vec<CfReference> {
    let Ok(count) = usize::try_from(count) else { refuse(function, "a negative count") };
    if count == 0 {
        return Vec::new();
    }
    if from.is_null() {
        refuse(function, "there are no objects");
    }
    // SAFETY: the caller gives that many.
    let all = unsafe { std::slice::from_raw_parts(from, count) };
    all.iter().map(|of| CfReference::given(function, *of).retain(function)).collect()
}

fn items(function: &str, of: *const c_void) -> Vec<CfReference> {
    match CfReference::given(function, of).contents(function) {
        CfContents::Array(items) => items,
        other => refuse(function, &format!("expected an array, found {other:?}")),
    }
}

fn pairs(function: &str, of: *const c_void) -> Vec<CfPair> {
    match CfReference::given(function, of).contents(function) {
        CfContents::Dictionary(pairs) => pairs,
        other => refuse(function, &format!("expected a dictionary, found {other:?}")),
    }
}

/// Double of `CFArrayCreate`.
///
/// # Safety
/// There are as many items as `count` says.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFArrayCreate(
    _allocator: *const c_void,
    from: *const *const c_void,
    count: isize,
    callbacks: *const c_void,
) -> *const c_void {
    const NAME: &str = "CFArrayCreate";
    owning(NAME, callbacks, &kCFTypeArrayCallBacks);
    // SAFETY: as for this function.
    CfReference::array(unsafe { retained(NAME, from, count) }).pointer()
}

/// Double of `CFArrayCreateMutable`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFArrayCreateMutable(
    _allocator: *const c_void,
    _capacity: isize,
    callbacks: *const c_void,
) -> *const c_void {
    owning("CFArrayCreateMutable", callbacks, &kCFTypeArrayCallBacks);
    CfReference::array(Vec::new()).pointer()
}

/// Double of `CFArrayAppendValue`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFArrayAppendValue(of: *const c_void, value: *const c_void) {
    const NAME: &str = "CFArrayAppendValue";
    let value = CfReference::given(NAME, value).retain(NAME);
    match &mut LiveObjects::lock().find(NAME, CfReference::given(NAME, of)).contents {
        CfContents::Array(items) => items.push(value),
        other => refuse(NAME, &format!("expected an array, found {other:?}")),
    }
}

/// Double of `CFArrayGetCount`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFArrayGetCount(of: *const c_void) -> isize {
    items("CFArrayGetCount", of).len().cast_signed()
}

/// Double of `CFArrayGetValueAtIndex`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFArrayGetValueAtIndex(of: *const c_void, index: isize) -> *const c_void {
    const NAME: &str = "CFArrayGetValueAtIndex";
    let items = items(NAME, of);
    let item = usize::try_from(index).ok().and_then(|index| items.get(index));
    let wrong = || -> ! { refuse(NAME, &format!("item {index} of {}", items.len())) };
    item.unwrap_or_else(|| wrong()).pointer()
}

/// Double of `CFDictionaryCreate`.
///
/// # Safety
/// There are as many keys and values as `count` says.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFDictionaryCreate(
    _allocator: *const c_void,
    keys: *const *const c_void,
    values: *const *const c_void,
    count: isize,
    key_callbacks: *const c_void,
    value_callbacks: *const c_void,
) -> *const c_void {
    const NAME: &str = "CFDictionaryCreate";
    owning(NAME, key_callbacks, &kCFTypeDictionaryKeyCallBacks);
    owning(NAME, value_callbacks, &kCFTypeDictionaryValueCallBacks);
    // SAFETY: as for this function.
    let keys = unsafe { retained(NAME, keys, count) };
    // SAFETY: as above.
    let values = unsafe { retained(NAME, values, count) };
    let pairs = keys.into_iter().zip(values).map(|(key, value)| CfPair { key, value }).collect();
    CfReference::new(CfContents::Dictionary(pairs)).pointer()
}

/// Double of `CFDictionaryCreateMutableCopy`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFDictionaryCreateMutableCopy(
    _allocator: *const c_void,
    _capacity: isize,
    of: *const c_void,
) -> *const c_void {
    const NAME: &str = "CFDictionaryCreateMutableCopy";
    let pairs = pairs(NAME, of);
    for pair in &pairs {
        pair.key.retain(NAME);
        pair.value.retain(NAME);
    }
    CfReference::new(CfContents::Dictionary(pairs)).pointer()
}

/// Double of `CFDictionarySetValue`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFDictionarySetValue(
    of: *const c_void,
    key: *const c_void,
    value: *const c_void,
) {
    const NAME: &str = "CFDictionarySetValue";
    let key = CfReference::given(NAME, key);
    let value = CfReference::given(NAME, value).retain(NAME);
    let equal = pairs(NAME, of).iter().position(|pair| pair.key.equals(NAME, key));
    let mut objects = LiveObjects::lock();
    let before = match (&mut objects.find(NAME, CfReference::given(NAME, of)).contents, equal) {
        (CfContents::Dictionary(pairs), Some(at)) => {
            Some(std::mem::replace(&mut pairs[at].value, value))
        }
        (CfContents::Dictionary(pairs), None) => {
            pairs.push(CfPair { key, value });
            None
        }
        (other, _) => refuse(NAME, &format!("expected a dictionary, found {other:?}")),
    };
    match before {
        Some(before) => objects.release(NAME, before),
        None => objects.retain(NAME, key),
    }
}

/// Double of `CFDictionaryGetCount`.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFDictionaryGetCount(of: *const c_void) -> isize {
    pairs("CFDictionaryGetCount", of).len().cast_signed()
}

/// Double of `CFDictionaryGetValue`: null where there is none.
#[unsafe(no_mangle)]
extern "C-unwind" fn CFDictionaryGetValue(of: *const c_void, key: *const c_void) -> *const c_void {
    const NAME: &str = "CFDictionaryGetValue";
    let key = CfReference::given(NAME, key).contents(NAME);
    let found = CfReference::given(NAME, of).value(NAME, &key);
    found.map_or(std::ptr::null(), CfReference::pointer)
}

/// Double of `CFDictionaryGetValueIfPresent`.
///
/// # Safety
/// `place` is null or there to be written.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFDictionaryGetValueIfPresent(
    of: *const c_void,
    key: *const c_void,
    place: *mut *const c_void,
) -> u8 {
    let found = CFDictionaryGetValue(of, key);
    if !found.is_null() && !place.is_null() {
        // SAFETY: the caller gives the place.
        unsafe { *place = found };
    }
    u8::from(!found.is_null())
}

/// Double of `CFDictionaryGetKeysAndValues`.
///
/// # Safety
/// Both places are null or have room for all.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn CFDictionaryGetKeysAndValues(
    of: *const c_void,
    keys: *mut *const c_void,
    values: *mut *const c_void,
) {
    for (at, pair) in pairs("CFDictionaryGetKeysAndValues", of).into_iter().enumerate() {
        if !keys.is_null() {
            // SAFETY: the caller gives room for all.
            unsafe { *keys.add(at) = pair.key.pointer() };
        }
        if !values.is_null() {
            // SAFETY: as above.
            unsafe { *values.add(at) = pair.value.pointer() };
        }
    }
}
