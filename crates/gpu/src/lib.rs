//! The GPU provider on wgpu: WGSL kernels, memory on the device, plans that are replayed (Metal on macOS,
//! Vulkan elsewhere).
//!
//! A kernel is a row of a table ([`KERNELS`]), a host file that says which dispatches compute a node,
//! and a `.wgsl` template beside it. A plan for a set of input shapes lays values out in one arena and binds
//! every dispatch once; a run replays it with one submit.

pub mod attention;
mod axis;
pub mod blocks;
mod buffers;
mod capture;
mod cell;
mod choices;
mod completion;
pub mod conv;
mod device;
mod element;
mod elementwise;
mod error;
#[cfg(target_os = "macos")]
mod exception;
mod executable;
mod fuse;
pub mod kernel;
pub mod matmul;
mod memory;
mod movement;
mod normalize;
mod oversized;
mod parts;
mod plan;
mod pooling;
mod provider;
mod quantise;
pub mod recurrent;
mod reduce;
mod resize;
mod rotary;
mod rows;
mod softmax;
mod stream;
pub mod template;
mod throughput;
mod timers;
mod timing;
mod trial;
mod tune;
mod workspace;

use galatea_runtime::KernelTable;

pub use capture::{CaptureProgress, CaptureRequest, MAX_CAPTURED_RUNS};
pub use device::{
    CooperativeMatrix, DeviceCounters, DeviceFault, GpuCapabilities, GpuDevice, KernelShader,
    devices,
};
pub use error::GpuError;
pub use kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuKernels, GpuNodeView, OverlaidValue, ShaderBinding,
    ShaderDispatch,
};
pub use memory::{
    BufferReach, ClassStatistics, DeviceBlock, MemoryLimit, MemoryStatistics, PoolClass, PoolConfig,
};
pub use provider::GpuProvider;
pub use stream::StreamStatistics;
pub use timing::{DeviceUsage, HostTimes, KernelLabel, KernelRun, RunRecord, TimingObserver};
pub use trial::StepTrial;

/// The provider's name.
pub const NAME: &str = "gpu";

/// The rows of every family of operators.
pub const KERNELS: KernelTable<GpuKernels> = KernelTable(&[
    attention::ROWS,
    blocks::ROWS,
    conv::ROWS,
    elementwise::ROWS,
    matmul::ROWS,
    movement::ROWS,
    normalize::ROWS,
    pooling::ROWS,
    quantise::ROWS,
    recurrent::ROWS,
    reduce::ROWS,
    resize::ROWS,
    rotary::ROWS,
    softmax::ROWS,
]);
