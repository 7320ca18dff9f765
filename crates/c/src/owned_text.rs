//! Texts that calls return.

use std::ffi::c_char;

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::CallerPointers;
use crate::handle_table::HandleTable;

/// A text that a call has returned: UTF-8, often JSON.
#[derive(Debug)]
pub struct OpaqueText(());

pub(crate) static TEXTS: HandleTable<String, OpaqueText> = HandleTable::new(1, "text");

/// Hands a text to C.
pub(crate) fn put_text(
    caller: CallerPointers,
    text: String,
    to: *mut *mut OpaqueText,
    name: &str,
) -> Result<(), CallFailure> {
    caller.check(to, 1, name)?;
    let mut text = text.replace('\0', "\u{fffd}");
    // C reads to the zero byte; the length does not count it.
    text.push('\0');
    caller.put(to, TEXTS.insert(text)?, name)
}

/// Gives the bytes of a text, which end with a zero byte that `length` does not count. `length` may be null.
///
/// Ownership: the bytes belong to the text and are valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_text_data(
    text: *const OpaqueText,
    data: *mut *const c_char,
    length: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let text = TEXTS.get(text)?;
        if !length.is_null() {
            caller.put(length, text.len() - 1, "length")?;
        }
        caller.put(data, text.as_ptr().cast(), "data")
    })
}

/// Frees a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_text_free(text: *mut OpaqueText) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| TEXTS.remove(text).map(drop))
}
