//! Exceptions, which unwind the stack as those of macOS do: Rust's `catch_unwind` ends the process where one meets
//! it, and so does one that no frame catches.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::process;

use super::class::ObjectHead;
use super::object::{release, retain};

/// Exception as the unwinder has it, with what it carries.
#[repr(C, align(16))]
struct UnwindException {
    class: u64,
    cleanup: Option<unsafe extern "C" fn(c_int, *mut UnwindException)>,
    private: [usize; 6],
    /// Address of an [`ObjectHead`].
    object: *mut c_void,
}

/// Name by which exceptions of Objective-C are told from others.
const CLASS: u64 = u64::from_be_bytes(*b"GLTAOBJC");

/// Questions of the unwinder, in bits.
const SEARCH: c_int = 1;
const HANDLER_FRAME: c_int = 4;

/// Answers to them.
const HANDLER_FOUND: c_int = 6;
const INSTALL_CONTEXT: c_int = 7;
const CONTINUE: c_int = 8;

unsafe extern "C-unwind" {
    fn _Unwind_RaiseException(exception: *mut UnwindException) -> c_int;
    fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
    fn _Unwind_SetIP(context: *mut c_void, address: usize);
}

/// Function that may raise, with what it is called with.
type RaisingCode = unsafe extern "C-unwind" fn(*mut c_void);

unsafe extern "C-unwind" {
    fn galatea_doubles_try_catch(
        code: RaisingCode,
        context: *mut c_void,
        place: *mut *mut c_void,
    ) -> u8;
}

thread_local! {
    /// Frames of this thread that catch exceptions.
    static CATCHING: Cell<usize> = const { Cell::new(0) };
}

/// Counts a frame until it is dropped.
struct CatchingFrame;

impl CatchingFrame {
    fn new() -> Self {
        CATCHING.set(CATCHING.get() + 1);
        Self
    }
}

impl Drop for CatchingFrame {
    fn drop(&mut self) {
        CATCHING.set(CATCHING.get() - 1);
    }
}

/// The function of objc2's that runs another one and catches what it raises.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn objc2_exception_helper_0_1_try_catch(
    code: RaisingCode,
    context: *mut c_void,
    place: *mut *mut ObjectHead,
) -> u8 {
    let _frame = CatchingFrame::new();
    // SAFETY: the caller asks for the same.
    unsafe { galatea_doubles_try_catch(code, context, place.cast()) }
}

unsafe extern "C" {
    /// Place where the frame of `try_catch` goes on with an exception.
    fn galatea_doubles_landing();
}

// A function that runs another one and catches what it raises. The frame keeps the place for the
// exception; the personality says that it goes on at `galatea_doubles_landing`.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".text",
    ".globl galatea_doubles_try_catch",
    ".globl galatea_doubles_landing",
    "galatea_doubles_try_catch:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, galatea_doubles_personality",
    "push rbx",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbx, -16",
    "mov rbx, rdx",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "xor eax, eax",
    "jmp 2f",
    "galatea_doubles_landing:",
    "mov rdi, rax",
    "mov rsi, rbx",
    "call {caught}",
    "mov eax, 1",
    "2:",
    "pop rbx",
    ".cfi_def_cfa_offset 8",
    "ret",
    ".cfi_endproc",
    caught = sym caught,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".text",
    ".globl galatea_doubles_try_catch",
    ".globl galatea_doubles_landing",
    "galatea_doubles_try_catch:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, galatea_doubles_personality",
    "stp x29, x30, [sp, -32]!",
    ".cfi_def_cfa_offset 32",
    ".cfi_offset x29, -32",
    ".cfi_offset x30, -24",
    "str x19, [sp, 16]",
    ".cfi_offset x19, -16",
    "mov x19, x2",
    "mov x8, x0",
    "mov x0, x1",
    "blr x8",
    "mov w0, 0",
    "b 2f",
    "galatea_doubles_landing:",
    "mov x1, x19",
    "bl {caught}",
    "mov w0, 1",
    "2:",
    "ldr x19, [sp, 16]",
    "ldp x29, x30, [sp], 32",
    ".cfi_def_cfa_offset 0",
    "ret",
    ".cfi_endproc",
    caught = sym caught,
);

/// Says that the frame of `try_catch` catches exceptions of Objective-C and no others.
#[unsafe(no_mangle)]
unsafe extern "C" fn galatea_doubles_personality(
    _version: c_int,
    asked: c_int,
    class: u64,
    exception: *mut UnwindException,
    context: *mut c_void,
) -> c_int {
    if class != CLASS {
        return CONTINUE;
    }
    if asked & SEARCH != 0 {
        return HANDLER_FOUND;
    }
    if asked & HANDLER_FRAME == 0 {
        return CONTINUE;
    }
    // SAFETY: the unwinder has called, and register 0 is the one that landings read on both architectures.
    unsafe { _Unwind_SetGR(context, 0, exception.expose_provenance()) };
    let landing: unsafe extern "C" fn() = galatea_doubles_landing;
    // SAFETY: the landing belongs to this frame.
    unsafe { _Unwind_SetIP(context, landing as usize) };
    INSTALL_CONTEXT
}

/// Hands the object that was raised, with its owner, to whoever catches it.
unsafe extern "C" fn caught(exception: *mut UnwindException, place: *mut *mut ObjectHead) {
    // SAFETY: it was made so when it was raised.
    let exception = unsafe { Box::from_raw(exception) };
    // SAFETY: the place is there to be written.
    unsafe { place.write(exception.object.cast()) };
}

/// Lets go of an exception that somebody else has caught.
unsafe extern "C" fn cleanup(_reason: c_int, exception: *mut UnwindException) {
    // SAFETY: it was made so when it was raised.
    let exception = unsafe { Box::from_raw(exception) };
    // SAFETY: the exception is one of its owners.
    unsafe { release(exception.object.cast()) };
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn objc_exception_throw(object: *mut ObjectHead) -> ! {
    // Where no frame catches, macOS ends the process before anything is dropped. A thread of Rust's has a frame that
    // would come first.
    if CATCHING.get() == 0 {
        process::abort();
    }
    // SAFETY: what is raised is alive, or null.
    unsafe { retain(object) };
    let exception = UnwindException {
        class: CLASS,
        cleanup: Some(cleanup),
        private: [0; 6],
        object: object.cast(),
    };
    // SAFETY: the exception is whole.
    unsafe { _Unwind_RaiseException(Box::into_raw(Box::new(exception))) };
    // No frame catches it.
    process::abort()
}
