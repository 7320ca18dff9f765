//! Signposts: intervals that Instruments shows on its timeline.
//!
//! The log has the category that macOS keeps for tracing on demand: its signposts are off unless a tool such as
//! Instruments records. [`SignpostLog::is_enabled`] then says so for the cost of a look at memory.
//!
//! Source: Apple, `os/signpost.h` and `os/log.h`. Layout of arguments: LLVM, `clang/AST/OSLog.h`.

use crate::Unavailable;

/// Names of intervals. Instruments groups intervals by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignpostName {
    /// A request to a model.
    Request,
    /// A batch on an instance.
    Batch,
    /// A step of an engine for language models.
    EngineStep,
    /// A part of a graph.
    Partition,
    /// An operator on the CPU.
    Operator,
    /// A run on a GPU.
    GpuRun,
    /// A prediction of Core ML.
    Prediction,
}

impl SignpostName {
    /// Every name.
    pub const ALL: [Self; 7] = [
        Self::Request,
        Self::Batch,
        Self::EngineStep,
        Self::Partition,
        Self::Operator,
        Self::GpuRun,
        Self::Prediction,
    ];
}

/// Number of an interval, which pairs its end with its begin; 0 for one that the system did not take.
pub type SignpostId = u64;

/// Subsystem that signposts belong to, as Instruments shows it.
pub const SUBSYSTEM: &str = "galatea";

/// The most bytes of a text that are passed on; the system cuts longer ones.
#[cfg(any(target_os = "macos", apple_doubles, test))]
const MAX_TEXT_BYTES: usize = 255;

/// The program's log of signposts.
#[derive(Debug)]
pub struct SignpostLog {
    #[cfg(any(target_os = "macos", apple_doubles))]
    log: system::LogHandle,
}

impl SignpostLog {
    /// Opens the log.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS, or when the system has no log.
    pub fn open() -> Result<Self, Unavailable> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return Ok(Self { log: system::LogHandle::open()? });
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        Err(Unavailable::off_macos("signposts"))
    }

    /// Returns whether a tool records at present.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return self.log.is_enabled();
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        false
    }

    /// Begins an interval with a text that Instruments shows beside its name. What follows a zero byte in the text is
    /// left out.
    #[must_use]
    pub fn begin(&self, name: SignpostName, text: &str) -> SignpostId {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return self.log.begin(name, text);
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        {
            let _ = (name, text);
            0
        }
    }

    /// Ends an interval, on any thread.
    pub fn end(&self, name: SignpostName, id: SignpostId) {
        #[cfg(any(target_os = "macos", apple_doubles))]
        self.log.end(name, id);
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        let _ = (name, id);
    }
}

/// The part of a text that a signpost has: up to its first zero byte, of some length at most.
#[cfg(any(target_os = "macos", apple_doubles, test))]
fn shown(text: &str) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    let ends = text.char_indices().map(|(at, character)| at + character.len_utf8());
    &text[..ends.take_while(|end| *end <= MAX_TEXT_BYTES).last().unwrap_or(0)]
}

/// Arguments of the format `%{public}s`: the address of a text.
///
/// A byte says that something is no number, one how many arguments there are, and then two for each: its kind (2, a
/// text) with its privacy (2, public), and the bytes that it takes.
#[cfg(any(target_os = "macos", apple_doubles, test))]
fn text_argument(address: u64) -> [u8; 12] {
    let mut bytes = [0x02, 1, 0x22, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[4..].copy_from_slice(&address.to_ne_bytes());
    bytes
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod system {
    use std::ffi::{CString, c_char, c_void};
    use std::ptr::NonNull;

    use super::{SignpostId, SignpostName, shown, text_argument};
    use crate::Unavailable;

    /// Category of logs that are off unless a tool records.
    const DYNAMIC_TRACING: &std::ffi::CStr = c"DynamicTracing";
    /// Kinds of signposts.
    const BEGIN: u8 = 1;
    const END: u8 = 2;
    /// Numbers that stand for no interval.
    const NULL_ID: SignpostId = 0;
    const INVALID_ID: SignpostId = SignpostId::MAX;

    unsafe extern "C" {
        /// Header of the image that has the names.
        static __dso_handle: u8;

        fn os_log_create(subsystem: *const c_char, category: *const c_char) -> *mut c_void;
        fn os_signpost_enabled(log: *mut c_void) -> bool;
        fn os_signpost_id_generate(log: *mut c_void) -> SignpostId;
        fn _os_signpost_emit_with_name_impl(
            dso: *const c_void,
            log: *mut c_void,
            kind: u8,
            id: SignpostId,
            name: *const c_char,
            format: *const c_char,
            arguments: *mut u8,
            bytes: u32,
        );
    }

    /// A text in the section where the system's log looks for names and formats.
    macro_rules! log_text {
        ($text:literal) => {{
            const BYTES: &[u8] = concat!($text, "\0").as_bytes();
            #[cfg_attr(
                target_os = "macos",
                unsafe(link_section = "__TEXT,__oslogstring,cstring_literals")
            )]
            #[cfg_attr(not(target_os = "macos"), unsafe(link_section = "oslogstring"))]
            static TEXT: [u8; BYTES.len()] = {
                let mut text = [0; BYTES.len()];
                text.copy_from_slice(BYTES);
                text
            };
            TEXT.as_ptr().cast::<c_char>()
        }};
    }

    fn name_text(name: SignpostName) -> *const c_char {
        match name {
            SignpostName::Request => log_text!("Request"),
            SignpostName::Batch => log_text!("Batch"),
            SignpostName::EngineStep => log_text!("Engine step"),
            SignpostName::Partition => log_text!("Graph partition"),
            SignpostName::Operator => log_text!("Operator"),
            SignpostName::GpuRun => log_text!("GPU run"),
            SignpostName::Prediction => log_text!("Core ML prediction"),
        }
    }

    /// Arguments, aligned as the system's own macros align them.
    #[repr(C, align(16))]
    struct ArgumentBytes<const N: usize>([u8; N]);

    /// A log of the system. It is never given back: the system has one for each name.
    #[derive(Debug)]
    pub(super) struct LogHandle(NonNull<c_void>);

    // SAFETY: the system's logs may be used by all threads.
    unsafe impl Send for LogHandle {}
    // SAFETY: as above.
    unsafe impl Sync for LogHandle {}

    impl LogHandle {
        pub(super) fn open() -> Result<Self, Unavailable> {
            let subsystem = c"galatea";
            debug_assert_eq!(subsystem.to_bytes(), super::SUBSYSTEM.as_bytes());
            // SAFETY: both texts end with a zero.
            let log = unsafe { os_log_create(subsystem.as_ptr(), DYNAMIC_TRACING.as_ptr()) };
            let none = || Unavailable::new("signposts", "the system gives no log".to_owned());
            NonNull::new(log).map(Self).ok_or_else(none)
        }

        pub(super) fn is_enabled(&self) -> bool {
            // SAFETY: the log is one of the system's.
            unsafe { os_signpost_enabled(self.0.as_ptr()) }
        }

        pub(super) fn begin(&self, name: SignpostName, text: &str) -> SignpostId {
            // SAFETY: the log is one of the system's.
            let id = unsafe { os_signpost_id_generate(self.0.as_ptr()) };
            if matches!(id, NULL_ID | INVALID_ID) {
                return NULL_ID;
            }
            let text = CString::new(shown(text)).unwrap_or_default();
            let address = text.as_ptr().expose_provenance() as u64;
            let mut arguments = ArgumentBytes(text_argument(address));
            self.emit(BEGIN, (name, id), log_text!("%{public}s"), &mut arguments.0);
            id
        }

        pub(super) fn end(&self, name: SignpostName, id: SignpostId) {
            if id != NULL_ID {
                let mut arguments = ArgumentBytes([0, 0]);
                self.emit(END, (name, id), log_text!(""), &mut arguments.0);
            }
        }

        /// Passes a signpost on. The text that an argument points to lives as long as the call.
        fn emit(
            &self,
            kind: u8,
            of: (SignpostName, SignpostId),
            format: *const c_char,
            arguments: &mut [u8],
        ) {
            let bytes = u32::try_from(arguments.len()).unwrap_or(0);
            let dso = (&raw const __dso_handle).cast();
            // SAFETY: name and format are texts of this image, in the section for them, and the arguments are
            // those of the format.
            unsafe {
                _os_signpost_emit_with_name_impl(
                    dso,
                    self.0.as_ptr(),
                    kind,
                    of.1,
                    name_text(of.0),
                    format,
                    arguments.as_mut_ptr(),
                    bytes,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_a_zero_byte_and_on_a_whole_character() {
        assert_eq!(shown("a\0b"), "a");
        assert_eq!(shown("model on gpu"), "model on gpu");
        let long = "é".repeat(200);
        assert_eq!(shown(&long).len(), 254);
    }

    #[test]
    fn arguments_are_laid_out_as_the_system_reads_them() {
        let found = text_argument(0x0102_0304_0506_0708);
        assert_eq!(found[..4], [2, 1, 0x22, 8]);
        assert_eq!(found[4..], 0x0102_0304_0506_0708_u64.to_ne_bytes());
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_is_no_log() {
        assert_eq!(SignpostLog::open().unwrap_err().door, "signposts");
    }

    #[cfg(apple_doubles)]
    #[test]
    fn intervals_are_told_while_a_tool_records_and_pair_by_their_numbers() {
        use galatea_doubles::c::SignpostRecording;

        let log = SignpostLog::open().unwrap();
        let recording = SignpostRecording::start();
        assert!(log.is_enabled());
        let first = log.begin(SignpostName::Request, "mine");
        let second = log.begin(SignpostName::Request, "mine\0cut");
        assert_ne!(first, second);
        log.end(SignpostName::Request, first);
        std::thread::scope(|scope| {
            scope.spawn(|| log.end(SignpostName::Request, second));
        });
        for name in SignpostName::ALL {
            log.end(name, log.begin(name, "every name"));
        }
        log.end(SignpostName::Request, 0);
        let found = recording.of("mine");
        let told: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.id, one.ended)).collect();
        assert_eq!(told, [("Request", first, true), ("Request", second, true)]);
        let mut names: Vec<_> =
            recording.of("every name").into_iter().map(|one| one.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), SignpostName::ALL.len());
    }
}
