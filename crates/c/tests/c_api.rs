//! The functions as C calls them: null arguments, freed handles, sizes, threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each call hands over null, or places of the test"
)]

use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use galatea_c::*;
use galatea_tensor::OrderedSet;

const HEADER: &str = include_str!("../include/galatea.h");

/// A function and its result for arguments that are all null or zero.
struct NullCall {
    name: &'static str,
    call: unsafe fn() -> ApiStatus,
}

macro_rules! null_calls {
    ($($name:ident($($argument:expr),*);)*) => {
        &[$(NullCall { name: stringify!($name), call: || unsafe { $name($($argument),*) } }),*]
    };
}

const NULL_CALLS: &[NullCall] = null_calls![
    galatea_buffer_create(null(), 0, null_mut());
    galatea_buffer_data(null(), null_mut(), null_mut());
    galatea_buffer_free(null_mut());
    galatea_buffer_tensor(null(), 0, null(), 0, null_mut());
    galatea_compare_models(null(), null(), null(), 0, null(), null_mut());
    galatea_convolution(null(), null(), null(), null(), null(), null_mut(), null_mut());
    galatea_encoder_embed(null(), null(), 0, null_mut(), 0);
    galatea_encoder_free(null_mut());
    galatea_encoder_load(null(), null(), null(), null_mut());
    galatea_encoder_rank(null(), null(), null(), 0, null_mut());
    galatea_encoder_sizes(null(), null_mut(), null_mut());
    galatea_engine_capabilities(null(), null_mut());
    galatea_engine_create(null(), null_mut());
    galatea_engine_devices(null(), null_mut());
    galatea_engine_free(null_mut());
    galatea_engine_gpu_memory(null(), null_mut());
    galatea_gemm(null(), null(), null(), null(), null(), null_mut(), null_mut());
    galatea_llm_chat(null(), null(), 0, null(), None, null_mut(), null_mut(), null_mut());
    galatea_llm_describe(null(), null_mut());
    galatea_llm_detokenize(null(), null(), 0, null_mut());
    galatea_llm_free(null_mut());
    galatea_llm_generate(null(), null(), null(), None, null_mut(), null_mut(), null_mut());
    galatea_llm_load(null(), null(), null(), null_mut());
    galatea_llm_stream_chat(null(), null(), 0, null(), null_mut());
    galatea_llm_stream_generate(null(), null(), null(), null_mut());
    galatea_llm_tokenize(null(), null(), null_mut(), 0, null_mut());
    galatea_model_counts(null(), null_mut(), null_mut());
    galatea_model_devices(null(), null_mut());
    galatea_model_free(null_mut());
    galatea_model_input(null(), 0, null_mut());
    galatea_model_load(null(), null(), null(), null_mut());
    galatea_model_memory(null(), null_mut());
    galatea_model_output(null(), 0, null_mut());
    galatea_model_run(null(), null(), 0, null_mut(), 0, null_mut());
    galatea_monitor_bottlenecks(null(), 0, null_mut());
    galatea_monitor_metrics(null(), null_mut());
    galatea_monitor_start(null(), null());
    galatea_monitor_stop(null(), null_mut(), null_mut());
    galatea_pool_limit(null(), 0);
    galatea_pool_read(null(), null_mut());
    galatea_power_read(null(), null_mut());
    galatea_power_start(null(), null());
    galatea_power_stop(null());
    galatea_region_access(null(), 0, 0);
    galatea_region_free(null_mut());
    galatea_region_prefetch(null(), 0, 0);
    galatea_region_read(null(), null_mut());
    galatea_region_register(null(), 0, 0, null_mut());
    galatea_server_address(null(), 0, null_mut());
    galatea_server_infer(null(), null(), null(), 0, null_mut(), 0, null_mut());
    galatea_server_start(null(), null(), null(), null_mut());
    galatea_server_stop(null_mut(), 0, null_mut());
    galatea_stream_cancel(null());
    galatea_stream_free(null_mut());
    galatea_stream_next(null(), null_mut(), null_mut());
    galatea_stream_usage(null(), null_mut());
    galatea_tensor_copy(null(), null_mut(), 0);
    galatea_tensor_create(0, null(), 0, null(), 0, null_mut());
    galatea_tensor_create_strings(null(), 0, null(), null(), 0, null_mut());
    galatea_tensor_data(null(), null_mut(), null_mut());
    galatea_tensor_describe(null(), null_mut());
    galatea_tensor_free(null_mut());
    galatea_tensor_string(null(), 0, null_mut(), null_mut());
    galatea_tensor_wrap(0, null(), 0, null(), 0, None, null_mut(), null_mut());
    galatea_text_data(null(), null_mut(), null_mut());
    galatea_text_free(null_mut());
    galatea_tuning_run(null(), null(), 0, null(), null_mut());
    galatea_tuning_space(null(), null(), 0, null_mut());
];

/// Functions without pointers, which return no status.
const WITHOUT_POINTERS: [&str; 6] = [
    "galatea_abi_version",
    "galatea_last_error",
    "galatea_require_abi",
    "galatea_status_name",
    "galatea_type_size",
    "galatea_version",
];

/// Names of the functions that the header declares.
fn declared() -> OrderedSet<&'static str> {
    let lines =
        HEADER.lines().filter(|line| !line.starts_with("//") && !line.starts_with([' ', '#']));
    let before = lines.filter_map(|line| line.split_once('(').map(|(before, _)| before));
    let last = before.filter_map(|text| text.rsplit([' ', '*']).next());
    last.filter(|name| name.starts_with("galatea_")).collect()
}

fn last_error() -> String {
    unsafe { CStr::from_ptr(galatea_last_error()) }.to_string_lossy().into_owned()
}

#[track_caller]
fn ok(status: ApiStatus) {
    assert_eq!(status, ApiStatus::Ok, "{}", last_error());
}

fn path(below: &str) -> CString {
    CString::new(format!("{}/../../{below}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn engine() -> *mut OpaqueEngine {
    let mut engine = null_mut();
    ok(unsafe { galatea_engine_create(null(), &raw mut engine) });
    engine
}

fn model(engine: *mut OpaqueEngine) -> *mut OpaqueModel {
    let mut model = null_mut();
    let path = path("examples/models/simple");
    ok(unsafe { galatea_model_load(engine, path.as_ptr(), null(), &raw mut model) });
    model
}

/// A tensor of the sample model's inputs, `[1, 16]` of the same number.
fn tensor(value: i32) -> *mut OpaqueTensor {
    let mut tensor = null_mut();
    let elements = [value; 16];
    let (data, type_) = (elements.as_ptr().cast(), ValueType::Int32 as i32);
    ok(unsafe { galatea_tensor_create(type_, [1, 16].as_ptr(), 2, data, 64, &raw mut tensor) });
    tensor
}

/// Runs the sample model and returns the sum of the first elements of its inputs.
fn run(model: *mut OpaqueModel, first: *mut OpaqueTensor, second: *mut OpaqueTensor) -> i32 {
    let inputs = [
        ApiNamedTensor { name: c"INPUT0".as_ptr(), tensor: first },
        ApiNamedTensor { name: c"INPUT1".as_ptr(), tensor: second },
    ];
    let mut outputs = [null_mut(); 2];
    let mut count = 0;
    ok(unsafe {
        galatea_model_run(model, inputs.as_ptr(), 2, outputs.as_mut_ptr(), 2, &raw mut count)
    });
    assert_eq!(count, 2);
    let mut sums = [0_i32; 16];
    ok(unsafe { galatea_tensor_copy(outputs[0], sums.as_mut_ptr().cast(), 64) });
    for output in outputs {
        ok(unsafe { galatea_tensor_free(output) });
    }
    sums[0]
}

#[test]
fn every_function_refuses_null_arguments_with_a_code_and_a_sentence() {
    for NullCall { name, call } in NULL_CALLS {
        let status = unsafe { call() };
        assert_eq!(status, ApiStatus::NullArgument, "{name}: {}", last_error());
        assert!(last_error().contains("null"), "{name}: {}", last_error());
    }
}

#[test]
fn the_table_of_null_calls_has_every_function_of_the_header() {
    let known = NULL_CALLS.iter().map(|call| call.name).chain(WITHOUT_POINTERS);
    assert_eq!(declared(), known.collect());
}

#[test]
fn a_place_for_a_result_that_is_null_is_refused_where_all_else_is_right() {
    let engine = engine();
    let model = model(engine);
    let input = tensor(1);
    let path = path("examples/models/simple");
    let calls = [
        unsafe { galatea_model_load(engine, path.as_ptr(), null(), null_mut()) },
        unsafe { galatea_model_load(engine, null(), null(), &mut null_mut()) },
        unsafe { galatea_model_devices(model, null_mut()) },
        unsafe { galatea_model_run(model, null(), 0, null_mut(), 0, &mut 0) },
        unsafe { galatea_model_run(model, null(), 2, &mut null_mut(), 2, &mut 0) },
        unsafe { galatea_tensor_describe(input, null_mut()) },
        unsafe { galatea_tensor_data(input, null_mut(), null_mut()) },
        unsafe { galatea_tensor_copy(input, null_mut(), 64) },
        unsafe { galatea_gemm(engine, null(), input, input, null(), null_mut(), null_mut()) },
        unsafe { galatea_power_read(engine, null_mut()) },
        unsafe { galatea_engine_capabilities(engine, null_mut()) },
    ];
    for (at, status) in calls.into_iter().enumerate() {
        assert_ne!(status, ApiStatus::Ok, "call {at}");
    }
    ok(unsafe { galatea_tensor_free(input) });
    ok(unsafe { galatea_model_free(model) });
    ok(unsafe { galatea_engine_free(engine) });
}

#[test]
fn a_model_outlives_its_engine_and_a_freed_handle_is_an_error() {
    let engine = engine();
    let model = model(engine);
    ok(unsafe { galatea_engine_free(engine) });
    let (first, second) = (tensor(3), tensor(4));
    assert_eq!(run(model, first, second), 7);
    ok(unsafe { galatea_model_free(model) });
    for status in [
        unsafe { galatea_model_free(model) },
        unsafe { galatea_model_counts(model, null_mut(), null_mut()) },
        unsafe { galatea_engine_free(engine) },
        unsafe { galatea_engine_free(model.cast()) },
    ] {
        assert_eq!(status, ApiStatus::InvalidHandle, "{}", last_error());
    }
    ok(unsafe { galatea_tensor_free(first) });
    ok(unsafe { galatea_tensor_free(second) });
}

#[test]
fn wrong_sizes_are_refused_and_too_small_places_are_told_what_they_need() {
    let engine = engine();
    let model = model(engine);
    let mut made = null_mut();
    let elements = [0_i32; 16];
    let wrong = unsafe {
        galatea_tensor_create(
            ValueType::Int32 as i32,
            [1, 17].as_ptr(),
            2,
            elements.as_ptr().cast(),
            64,
            &raw mut made,
        )
    };
    assert_eq!(wrong, ApiStatus::InvalidArgument, "{}", last_error());
    let input = tensor(1);
    assert_eq!(
        unsafe { galatea_tensor_copy(input, &raw mut made as *mut c_void, 8) },
        ApiStatus::TooSmall
    );
    let mut count = 0;
    let status = unsafe { galatea_model_run(model, null(), 0, &raw mut made, 1, &raw mut count) };
    assert_eq!((status, count), (ApiStatus::TooSmall, 2));
    let mut info = TensorInfo { size: 3, ..unsafe { std::mem::zeroed() } };
    let status = unsafe { galatea_tensor_describe(input, &raw mut info) };
    assert_eq!(status, ApiStatus::InvalidArgument, "{}", last_error());
    assert!(last_error().contains("sizeof"), "{}", last_error());
    ok(unsafe { galatea_tensor_free(input) });
    ok(unsafe { galatea_model_free(model) });
    ok(unsafe { galatea_engine_free(engine) });
}

/// A structure of a later version.
#[repr(C)]
struct LaterOptions {
    known: EngineCreateOptions,
    later: u64,
}

#[test]
fn structures_of_other_versions_are_read_as_far_as_they_go() {
    let mut engine = null_mut();
    let known = EngineCreateOptions { size: size_of::<LaterOptions>(), gpu_memory_limit: null() };
    let mut options = LaterOptions { known, later: 0 };
    ok(unsafe { galatea_engine_create((&raw const options).cast(), &raw mut engine) });
    ok(unsafe { galatea_engine_free(engine) });
    options.later = 1;
    let status = unsafe { galatea_engine_create((&raw const options).cast(), &raw mut engine) };
    assert_eq!(status, ApiStatus::Unsupported, "{}", last_error());
    let older = size_of::<usize>();
    ok(unsafe { galatea_engine_create((&raw const older).cast(), &raw mut engine) });
    ok(unsafe { galatea_engine_free(engine) });
    assert_eq!(galatea_require_abi(GALATEA_ABI_VERSION), ApiStatus::Ok);
    assert_eq!(galatea_require_abi(GALATEA_ABI_VERSION + 1), ApiStatus::AbiMismatch);
    assert_eq!(galatea_require_abi(0), ApiStatus::AbiMismatch);
}

unsafe extern "C" fn count_release(context: *mut c_void) {
    unsafe { &*context.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn memory_of_the_caller_is_given_back_once_and_kept_where_a_call_fails() {
    let engine = engine();
    let model = model(engine);
    let elements = [5_i32; 17];
    let released = AtomicUsize::new(0);
    let wrap = |from: *const i32, length: i64| {
        let mut made = null_mut();
        let context = (&raw const released).cast_mut().cast();
        let (lengths, type_) = ([1, length], ValueType::Int32 as i32);
        let release: ReleaseCallback = Some(count_release);
        let status = unsafe {
            galatea_tensor_wrap(
                type_,
                lengths.as_ptr(),
                2,
                from.cast(),
                64,
                release,
                context,
                &raw mut made,
            )
        };
        (status, made)
    };
    assert_eq!(wrap(elements.as_ptr(), 15).0, ApiStatus::InvalidArgument);
    assert_eq!(released.load(Ordering::SeqCst), 0);
    let (status, whole) = wrap(elements.as_ptr(), 16);
    ok(status);
    let mut data = null();
    ok(unsafe { galatea_tensor_data(whole, &raw mut data, null_mut()) });
    assert_eq!(data, elements.as_ptr().cast());
    assert_eq!(run(model, whole, whole), 10);
    // Bytes that are not aligned are copied, and given back at once.
    let (status, copied) = wrap(elements.as_ptr().wrapping_byte_add(1), 16);
    ok(status);
    assert_eq!(released.load(Ordering::SeqCst), 1);
    ok(unsafe { galatea_tensor_free(copied) });
    ok(unsafe { galatea_model_free(model) });
    ok(unsafe { galatea_tensor_free(whole) });
    assert_eq!(released.load(Ordering::SeqCst), 2);
    ok(unsafe { galatea_engine_free(engine) });
}

#[test]
fn threads_share_a_model_and_each_has_its_own_last_error() {
    let engine = engine();
    let model = model(engine) as usize;
    let work = |value: i32| {
        let model = model as *mut OpaqueModel;
        for at in 0..50 {
            let (first, second) = (tensor(value), tensor(at));
            assert_eq!(run(model, first, second), value + at);
            let status = unsafe { galatea_model_input(model, value as usize, null_mut()) };
            assert_eq!(status, ApiStatus::InvalidArgument);
            assert!(last_error().contains(&format!("number {value} ")), "{}", last_error());
            ok(unsafe { galatea_tensor_free(first) });
            ok(unsafe { galatea_tensor_free(second) });
        }
    };
    std::thread::scope(|scope| {
        for value in 10..14 {
            scope.spawn(move || work(value));
        }
    });
    ok(unsafe { galatea_model_free(model as *mut OpaqueModel) });
    ok(unsafe { galatea_engine_free(engine) });
}
