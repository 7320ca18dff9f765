//! Devices of the machine, and what they can do.

use galatea::{DeviceClass, DeviceDescription};
use serde_json::Value;

use crate::api_status::ApiStatus;
use crate::caller::{CallerPointers, SizedStruct};
use crate::engine::{ENGINES, OpaqueEngine};
use crate::owned_text::{OpaqueText, put_text};

/// Abilities of the machine and of the library.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MachineCapabilities {
    /// `sizeof(galatea_capabilities)`, set by the caller.
    pub size: usize,
    /// Cores of the CPU.
    pub cpu_cores: u32,
    /// GPUs that are no emulation.
    pub gpus: u32,
    /// GPUs that the CPU emulates.
    pub emulated_gpus: u32,
    /// 1 if the CPU has a matrix unit that the library uses (AMX or SME).
    pub has_matrix_unit: i32,
    /// 1 if there is a Neural Engine.
    pub has_neural_engine: i32,
    /// 1 if the first GPU shares memory with the CPU.
    pub has_unified_memory: i32,
    /// 1: models with open lengths run, on the Neural Engine for the lengths that their packages have.
    pub dynamic_shapes: i32,
    /// 1: attention and caches of keys and values are operators of their own.
    pub transformers: i32,
    /// 1: sparse weights of Core ML are read. They are stored small; their zeros are multiplied like other numbers.
    pub sparse_weights: i32,
    /// Estimate of the CPU's matrix unit, Gflop/s of FP32; 0 where it is not known.
    pub matrix_unit_gflops: f64,
    /// Estimate of the Neural Engine, 10^12 operations on FP16 a second; 0 where there is none.
    pub neural_engine_tops: f64,
    /// Bytes of the machine's memory; 0 where it is not known.
    pub memory_bytes: u64,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for MachineCapabilities {}

fn capabilities(devices: &[DeviceDescription]) -> MachineCapabilities {
    let of = |class: DeviceClass| devices.iter().filter(move |device| device.class == class);
    let fact = |class, name: &str| of(class).next().map_or(&Value::Null, |one| &one.facts[name]);
    let count = |emulated| {
        let found = of(DeviceClass::Gpu).filter(|gpu| gpu.is_emulated == emulated).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let cores = fact(DeviceClass::Cpu, "cores").as_u64().unwrap_or(0);
    MachineCapabilities {
        size: size_of::<MachineCapabilities>(),
        cpu_cores: u32::try_from(cores).unwrap_or(u32::MAX),
        gpus: count(false),
        emulated_gpus: count(true),
        has_matrix_unit: i32::from(fact(DeviceClass::Cpu, "matrix_unit").is_string()),
        has_neural_engine: i32::from(of(DeviceClass::NeuralEngine).next().is_some()),
        has_unified_memory: i32::from(
            fact(DeviceClass::Gpu, "unified_memory").as_bool().unwrap_or(false),
        ),
        dynamic_shapes: 1,
        transformers: 1,
        sparse_weights: 1,
        matrix_unit_gflops: fact(DeviceClass::Cpu, "matrix_f32_gflops").as_f64().unwrap_or(0.0),
        neural_engine_tops: fact(DeviceClass::NeuralEngine, "fp16_tops").as_f64().unwrap_or(0.0),
        memory_bytes: fact(DeviceClass::Cpu, "memory_bytes").as_u64().unwrap_or(0),
    }
}

/// Tells what the machine and the library can do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_engine_capabilities(
    engine: *const OpaqueEngine,
    capabilities: *mut MachineCapabilities,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let devices = ENGINES.get(engine)?.engine.device_list();
        caller.report(self::capabilities(&devices), capabilities, "capabilities")
    })
}

/// Lists the devices of the machine as a JSON array: class, name by which a model asks for it, name, and facts. What the
/// machine does not tell is absent.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_engine_devices(
    engine: *const OpaqueEngine,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let devices = ENGINES.get(engine)?.engine.device_list();
        let all: Vec<Value> = devices.iter().map(DeviceDescription::json).collect();
        put_text(caller, Value::Array(all).to_string(), json, "json")
    })
}
