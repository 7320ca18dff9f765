//! The way in from C: nothing unwinds out, and pointers are looked at in one place.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::api_status::{ApiStatus, CallFailure, remember};

/// Proof that the pointers of the running call are what the text of the called function asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallerPointers(());

/// A structure whose first field is its size in bytes, so that later versions may add fields behind the others.
///
/// # Safety
/// The type is `repr(C)`, begins with a `usize`, has no padding that matters, and is valid when all bytes are zero.
pub(crate) unsafe trait SizedStruct: Copy {}

impl CallerPointers {
    /// # Safety
    /// Every pointer that C has handed to the running call is valid for what the call's text says, until it returns.
    pub(crate) unsafe fn promised() -> Self {
        Self(())
    }

    /// Runs the body of a function. Failures are remembered for the thread, a panic among them.
    pub(crate) fn enter(self, body: impl FnOnce(Self) -> Result<(), CallFailure>) -> ApiStatus {
        let failure = match catch_unwind(AssertUnwindSafe(|| body(self))) {
            Ok(Ok(())) => return ApiStatus::Ok,
            Ok(Err(failure)) => failure,
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                let text = text.unwrap_or_else(|| "a panic without a text".to_owned());
                CallFailure::new(ApiStatus::Internal, text)
            }
        };
        remember(&failure.sentence);
        failure.status
    }

    /// Reads a text that ends with a zero byte.
    pub(crate) fn text<'a>(
        self,
        pointer: *const c_char,
        name: &str,
    ) -> Result<&'a str, CallFailure> {
        if pointer.is_null() {
            return Err(CallFailure::null(name));
        }
        // SAFETY: the caller promises a text that ends with a zero byte and lasts for the call.
        let text = unsafe { CStr::from_ptr(pointer) };
        text.to_str().map_err(|_| CallFailure::argument(format!("'{name}' is not UTF-8")))
    }

    /// Reads a text, or none where the pointer is null.
    pub(crate) fn optional_text<'a>(
        self,
        pointer: *const c_char,
        name: &str,
    ) -> Result<Option<&'a str>, CallFailure> {
        if pointer.is_null() { Ok(None) } else { self.text(pointer, name).map(Some) }
    }

    /// Reads elements that lie one behind the other. Null is right for none.
    pub(crate) fn slice<'a, T>(
        self,
        pointer: *const T,
        count: usize,
        name: &str,
    ) -> Result<&'a [T], CallFailure> {
        self.check(pointer, count, name)?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: the caller promises so many elements, which nobody changes before the call returns.
        Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
    }

    /// Copies elements to memory of the caller that has room for `capacity` of them.
    pub(crate) fn copy_to<T: Copy>(
        self,
        from: &[T],
        to: *mut T,
        capacity: usize,
        name: &str,
    ) -> Result<(), CallFailure> {
        self.check(to, capacity, name)?;
        if from.len() > capacity {
            let needed = from.len();
            let text = format!("'{name}' has room for {capacity} elements, {needed} are needed");
            return Err(CallFailure::new(ApiStatus::TooSmall, text));
        }
        if !from.is_empty() {
            // SAFETY: the caller promises memory for `capacity` elements, which is not memory of the library.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        }
        Ok(())
    }

    /// Writes a result.
    pub(crate) fn put<T>(self, to: *mut T, value: T, name: &str) -> Result<(), CallFailure> {
        self.check(to, 1, name)?;
        // SAFETY: the caller promises memory for one value.
        unsafe { to.write(value) };
        Ok(())
    }

    /// Refuses a place for a result before work is done for it.
    pub(crate) fn check<T>(
        self,
        pointer: *const T,
        count: usize,
        name: &str,
    ) -> Result<(), CallFailure> {
        if count == 0 {
            return Ok(());
        }
        if pointer.is_null() {
            return Err(CallFailure::null(name));
        }
        if !pointer.is_aligned() {
            return Err(CallFailure::argument(format!("'{name}' is not aligned")));
        }
        let bytes = count.checked_mul(size_of::<T>());
        if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(CallFailure::argument(format!(
                "{count} elements of '{name}' are too many"
            )));
        }
        Ok(())
    }

    /// Reads a structure of this or another version; the usual values where the pointer is null.
    pub(crate) fn options<T: SizedStruct>(
        self,
        pointer: *const T,
        name: &str,
    ) -> Result<T, CallFailure> {
        let mut value = MaybeUninit::<T>::zeroed();
        if !pointer.is_null() {
            let size = self.size_of_struct(pointer, name)?;
            let bytes = self.slice(pointer.cast::<u8>(), size, name)?;
            let known = size.min(size_of::<T>());
            if bytes.iter().skip(known).any(|byte| *byte != 0) {
                let text = format!("'{name}' sets fields that this version does not know");
                return Err(CallFailure::new(ApiStatus::Unsupported, text));
            }
            // SAFETY: the value has room for as many bytes as its type has.
            unsafe { value.as_mut_ptr().cast::<u8>().copy_from(bytes.as_ptr(), known) };
        }
        // SAFETY: zeros are a valid value of the type, and so is what a caller has written over them.
        Ok(unsafe { value.assume_init() })
    }

    /// Writes a structure whose size field the caller has set, as far as the caller's version has its fields.
    pub(crate) fn report<T: SizedStruct>(
        self,
        value: T,
        to: *mut T,
        name: &str,
    ) -> Result<(), CallFailure> {
        let size = self.size_of_struct(to, name)?;
        let known = size.min(size_of::<T>());
        let first = size_of::<usize>();
        let from = (&raw const value).cast::<u8>();
        // SAFETY: both have at least `known` bytes, of which the size field stays the caller's.
        unsafe { to.cast::<u8>().add(first).copy_from(from.add(first), known - first) };
        Ok(())
    }

    /// Reads the size that a structure says it has.
    fn size_of_struct<T>(self, pointer: *const T, name: &str) -> Result<usize, CallFailure> {
        self.check(pointer, 1, name)?;
        // SAFETY: the structure begins with its size.
        let size = unsafe { pointer.cast::<usize>().read() };
        if size < size_of::<usize>() || size > MAX_STRUCT_BYTES {
            let expected = size_of::<T>();
            let text = format!("'{name}' has size {size}, expected {expected}: set it to sizeof");
            return Err(CallFailure::argument(text));
        }
        Ok(size)
    }
}

/// The most bytes of a structure of any version.
const MAX_STRUCT_BYTES: usize = 4096;
