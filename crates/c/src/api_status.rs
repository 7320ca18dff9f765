//! Status codes, and the sentence about the last failure of a thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use galatea::ErrorKind;

/// Result of a call: 0, or a code that says what is wrong. `galatea_last_error` has the sentence.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiStatus {
    /// The call did what it says.
    Ok = 0,
    /// A pointer that must not be null is null.
    NullArgument = 1,
    /// A handle was freed, is of another kind, or never came from this library.
    InvalidHandle = 2,
    /// An argument has a value that is not allowed, such as a size.
    InvalidArgument = 3,
    /// A file is missing, damaged, or of an unknown format.
    File = 4,
    /// A device is unknown or not present.
    Device = 5,
    /// A model cannot be prepared.
    Model = 6,
    /// An input does not fit the model.
    Input = 7,
    /// A run failed.
    Run = 8,
    /// A server cannot start, or refuses a request.
    Server = 9,
    /// The caller's memory is too small; the call tells the size that is needed.
    TooSmall = 10,
    /// The caller has cancelled the work.
    Cancelled = 11,
    /// This machine or this build does not have what was asked for.
    Unsupported = 12,
    /// A defect of the library was caught; the sentence is for a report.
    Internal = 13,
    /// The header and the library are of different versions.
    AbiMismatch = 14,
    /// There is nothing more: a stream is at its end.
    End = 15,
}

impl ApiStatus {
    /// All codes with their names, which end with a zero byte.
    const NAMES: [(Self, &'static str); 16] = [
        (Self::Ok, "ok\0"),
        (Self::NullArgument, "null argument\0"),
        (Self::InvalidHandle, "invalid handle\0"),
        (Self::InvalidArgument, "invalid argument\0"),
        (Self::File, "file\0"),
        (Self::Device, "device\0"),
        (Self::Model, "model\0"),
        (Self::Input, "input\0"),
        (Self::Run, "run\0"),
        (Self::Server, "server\0"),
        (Self::TooSmall, "too small\0"),
        (Self::Cancelled, "cancelled\0"),
        (Self::Unsupported, "unsupported\0"),
        (Self::Internal, "internal\0"),
        (Self::AbiMismatch, "ABI mismatch\0"),
        (Self::End, "end\0"),
    ];
}

/// Failure of a call: its code, and a sentence that says what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) status: ApiStatus,
    pub(crate) sentence: String,
}

impl CallFailure {
    pub(crate) fn new(status: ApiStatus, sentence: impl Into<String>) -> Self {
        Self { status, sentence: sentence.into() }
    }

    /// A value that is not allowed.
    pub(crate) fn argument(sentence: impl Into<String>) -> Self {
        Self::new(ApiStatus::InvalidArgument, sentence)
    }

    /// A pointer that must not be null.
    pub(crate) fn null(name: &str) -> Self {
        Self::new(ApiStatus::NullArgument, format!("'{name}' is null"))
    }
}

impl From<galatea::Error> for CallFailure {
    fn from(error: galatea::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::File => ApiStatus::File,
            ErrorKind::Device => ApiStatus::Device,
            ErrorKind::Model => ApiStatus::Model,
            ErrorKind::Input => ApiStatus::Input,
            ErrorKind::Server => ApiStatus::Server,
            _ => ApiStatus::Run,
        };
        Self::new(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the sentence for the thread that made the call.
pub(crate) fn remember(sentence: &str) {
    let text: String = sentence.chars().filter(|&one| one != '\0').collect();
    // A thread that ends has no such memory any more, and nobody who asks.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
}

/// Returns the sentence about the last call of this thread that failed; an empty one if none did.
///
/// Ownership: the text belongs to the library and is valid until the next call of this thread fails or the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn galatea_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the name of a status code, such as "invalid handle"; null for a number that is none.
///
/// Ownership: the text belongs to the library and is always valid.
#[unsafe(no_mangle)]
pub extern "C" fn galatea_status_name(status: i32) -> *const c_char {
    let row = ApiStatus::NAMES.iter().find(|(code, _)| *code as i32 == status);
    row.map_or(std::ptr::null(), |(_, name)| name.as_ptr().cast())
}
