//! Tests that the doubles end the process where a caller breaks a function's rules.

use std::ffi::{c_char, c_void};
use std::process::Command;
use std::ptr::null_mut;

use super::core_foundation::CfReference;
use super::darwin::{self, RTLD_DEFAULT};

/// Variable with the name of a case, in the process that it ends.
const CASE: &str = "GALATEA_DOUBLE_MISUSE";

/// Use of a function that is wrong.
struct MisuseCase {
    name: &'static str,
    /// Part of the message.
    said: &'static str,
    run: fn(),
}

/// Function `cblas_sgemm` as its users know it.
type Sgemm = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    i32,
    i32,
    i32,
    f32,
    *const f32,
    i32,
    *const f32,
    i32,
    f32,
    *mut f32,
    i32,
);

/// Multiplies 2x3 by 3x2, with this leading dimension of the first and this place of the result.
fn multiply(leading: i32, result: *mut f32) {
    let factors = [1.0_f32; 6];
    // SAFETY: the name ends with a zero.
    let found = unsafe { darwin::dlsym(RTLD_DEFAULT, c"cblas_sgemm".as_ptr()) };
    // SAFETY: the function has this type.
    let sgemm = unsafe { std::mem::transmute::<*mut c_void, Sgemm>(found) };
    let (a, b) = (factors.as_ptr(), factors.as_ptr());
    // SAFETY: the double looks at the arguments before the memory.
    unsafe { sgemm(101, 111, 111, 2, 2, 3, 1.0, a, leading, b, 2, 0.0, result, 2) };
}

/// Uses an object after its last owner has released it.
fn use_after_release() {
    unsafe extern "C" {
        fn CFRelease(of: *const c_void);
    }
    let text = CfReference::text("gone").pointer();
    for _ in 0..2 {
        // SAFETY: the double knows its objects by their addresses alone.
        unsafe { CFRelease(text) };
    }
}

/// Sets a value of the kernel.
fn set_value() {
    let (name, value) = (c"hw.memsize", 1_u64);
    let from = (&raw const value).cast_mut().cast();
    // SAFETY: the name ends with a zero, and the value is there.
    unsafe { darwin::sysctlbyname(name.as_ptr(), null_mut(), null_mut(), from, 8) };
}

/// Asks another port than the host's.
fn ask_another_port() {
    let (mut ticks, mut count) = ([0_i32; 4], 4);
    let place = ticks.as_mut_ptr();
    // SAFETY: there is room for four integers.
    unsafe { darwin::host_statistics(1, darwin::HOST_CPU_LOAD_INFO, place, &raw mut count) };
}

/// Computes a product by BNNS without asking for its workspace.
fn skip_the_workspace() {
    type BnnsProduct = unsafe extern "C" fn(
        bool,
        bool,
        f32,
        *const c_void,
        *const c_void,
        *const c_void,
        *mut c_void,
        *const c_void,
    ) -> i32;
    // SAFETY: the name ends with a zero.
    let found = unsafe { darwin::dlsym(RTLD_DEFAULT, c"BNNSMatMul".as_ptr()) };
    // SAFETY: the function has this type.
    let mat_mul = unsafe { std::mem::transmute::<*mut c_void, BnnsProduct>(found) };
    let null = std::ptr::null();
    // SAFETY: the double looks whether there are descriptors.
    unsafe { mat_mul(false, false, 1.0, null, null, null, null_mut(), null) };
}

/// Emits a signpost of this kind with this name, and with the format and the arguments of an end.
fn emit(kind: u8, name: *const c_char) {
    unsafe extern "C" {
        static __dso_handle: u8;
        fn os_log_create(subsystem: *const c_char, category: *const c_char) -> *mut c_void;
        fn _os_signpost_emit_with_name_impl(
            dso: *const c_void,
            log: *mut c_void,
            kind: u8,
            id: u64,
            name: *const c_char,
            format: *const c_char,
            arguments: *mut u8,
            bytes: u32,
        );
    }
    #[repr(align(16))]
    struct MisalignedBytes([u8; 2]);
    let mut arguments = MisalignedBytes([0, 0]);
    // SAFETY: both names end with a zero.
    let log = unsafe { os_log_create(c"misuse".as_ptr(), c"DynamicTracing".as_ptr()) };
    let (dso, format) = ((&raw const __dso_handle).cast(), LOG_TEXT.as_ptr().cast());
    let bytes = arguments.0.as_mut_ptr();
    // SAFETY: the arguments are those of the format.
    unsafe { _os_signpost_emit_with_name_impl(dso, log, kind, 7, name, format, bytes, 2) };
}

/// An empty text where the system's log looks for texts.
#[unsafe(link_section = "oslogstring")]
static LOG_TEXT: [u8; 1] = [0];

const CASES: &[MisuseCase] = &[
    MisuseCase {
        name: "leading",
        said: "double of cblas_sgemm: lda is 2, expected 3 at least",
        run: || multiply(2, [0.0; 4].as_mut_ptr()),
    },
    MisuseCase {
        name: "null",
        said: "double of cblas_sgemm: a matrix is null",
        run: || multiply(3, null_mut()),
    },
    MisuseCase { name: "release", said: "is no live object", run: use_after_release },
    MisuseCase { name: "set", said: "a value of the kernel is set", run: set_value },
    MisuseCase { name: "port", said: "1 is not the host's port", run: ask_another_port },
    MisuseCase {
        name: "signpost name",
        said: "the name is no constant in the section of the log's texts",
        run: || emit(1, c"elsewhere".as_ptr()),
    },
    MisuseCase {
        name: "signpost end",
        said: "no '' has begun under the number 7",
        run: || emit(2, LOG_TEXT.as_ptr().cast()),
    },
    MisuseCase {
        name: "descriptor",
        said: "double of BNNSMatMul: A: no descriptor",
        run: skip_the_workspace,
    },
];

#[test]
fn misuse_ends_the_process_with_a_message() {
    for case in CASES {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["c::misuse::a_case_ends_the_process", "--exact", "--ignored"]);
        let output = command.env(CASE, case.name).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(case.said), "{}: {said}", case.name);
    }
}

#[test]
#[ignore = "ends its process"]
fn a_case_ends_the_process() {
    let name = std::env::var(CASE).unwrap();
    (CASES.iter().find(|case| case.name == name).unwrap().run)();
}
