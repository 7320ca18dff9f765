//! Peak rates of the device, measured by short kernels of its own.

use std::sync::Arc;
use std::time::Duration;

use galatea_runtime::DevicePeaks;
use minijinja::context;

use crate::device::{GpuDevice, KernelShader};
use crate::error::GpuError;
use crate::kernel::{DispatchStep, ShaderBinding, fold};
use crate::template::render;
use crate::trial::StepTrial;

/// Nanoseconds that a measured kernel is to take at least.
const LONG_NS: f64 = 10e6;
/// Nanoseconds by the host's clock after which a kernel is not made longer, and that one submit takes at most.
const MAX_NS: f64 = 100e6;
/// Times that each is measured; the best counts.
const ROUNDS: usize = 5;
/// Threads of a workgroup.
const THREADS: usize = 256;
/// Kernels in a pass that does nothing.
const EMPTY: usize = 500;
/// Bytes that are copied, where a binding holds as many: more than caches do.
const COPIED: u64 = 256 << 20;
/// The same where the processor plays the GPU.
const COPIED_BY_SOFTWARE: u64 = 64 << 20;
/// Multiplications with additions that a thread does in a round: see the shaders.
const CHAINS: usize = 8;
const UNROLLED: usize = 8;

impl GpuDevice {
    /// Returns the peak rates of the device. The first call measures them, which takes about a second; it
    /// should not happen while the device computes for others.
    ///
    /// # Errors
    /// Fails when the device has no memory for it, or is lost.
    pub fn peaks(self: &Arc<Self>) -> Result<DevicePeaks, GpuError> {
        if let Some(known) = self.peaks.get() {
            return Ok(*known);
        }
        let (dispatch, submit) = starts(self)?;
        let halves = self.capabilities().f16;
        let measured = DevicePeaks {
            vector_f32: Some(arithmetic(self, "f32")?),
            vector_f16: halves.then(|| arithmetic(self, "f16")).transpose()?,
            matrix_f16: matrices(self)?,
            bytes: Some(copies(self)?),
            dispatch: Some(dispatch),
            submit: Some(submit),
            ..DevicePeaks::default()
        };
        Ok(*self.peaks.get_or_init(|| measured))
    }

    /// The same where it was measured before.
    #[must_use]
    pub fn known_peaks(&self) -> Option<DevicePeaks> {
        self.peaks.get().copied()
    }
}

fn refused(reason: String) -> GpuError {
    GpuError::Refusal(reason)
}

/// A step of one dispatch with these bindings, whose bytes are scratch.
fn step(shader: KernelShader, scratch: &[u64], params: Vec<u32>, groups: [u32; 3]) -> DispatchStep {
    let mut step = DispatchStep::default();
    let bindings =
        scratch.iter().map(|&bytes| ShaderBinding::Scratch(step.scratch(bytes))).collect();
    step.dispatch(shader, bindings, params, groups);
    step
}

/// The least nanoseconds of a step.
fn best(device: &Arc<GpuDevice>, step: &DispatchStep) -> Result<f64, GpuError> {
    let trial = StepTrial::new(device, step, &[], &[], 1)?;
    let mut least = trial.run(1)?;
    // The device's clock may run slow: what the host sees bounds how long the device is kept busy.
    let wall = trial.alone()?.as_secs_f64() * 1e9;
    let most = (MAX_NS / wall.max(1.0)).clamp(1.0, 100.0);
    let times = (LONG_NS / least.max(1.0)).clamp(1.0, most);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 100")]
    let times = times as usize;
    for _ in 0..ROUNDS {
        least = least.min(trial.run(times)?);
    }
    Ok(least)
}

#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn rate(amount: u64, nanoseconds: f64) -> f64 {
    amount as f64 * 1e9 / nanoseconds.max(1.0)
}

/// Bytes a second that a copy reads and writes.
fn copies(device: &Arc<GpuDevice>) -> Result<f64, GpuError> {
    let able = device.capabilities();
    let wanted = if able.software { COPIED_BY_SOFTWARE } else { COPIED };
    let bytes = wanted.min(able.binding_bytes) / 4096 * 4096;
    let vectors = usize::try_from(bytes / 16).unwrap_or(0);
    // A thread copies four vectors, a group apart.
    let groups = fold(vectors.div_ceil(4 * THREADS)).map_err(refused)?;
    let source = render(include_str!("copy.wgsl"), context! { threads => THREADS });
    let shader = KernelShader::new("peak-copy", source.map_err(refused)?).proved();
    let count = u32::try_from(vectors).unwrap_or(u32::MAX);
    let step = step(shader, &[bytes, bytes], vec![count, 0, 0, 0], groups);
    Ok(rate(2 * bytes, best(device, &step)?))
}

/// Workgroups that keep a device busy.
fn workgroups(device: &GpuDevice) -> usize {
    if device.capabilities().software { 16 } else { 2048 }
}

/// Returns the number of rounds at which a kernel takes long enough, and the time of one round.
fn long_enough(
    device: &Arc<GpuDevice>,
    made: &dyn Fn(u32) -> Result<DispatchStep, GpuError>,
) -> Result<(u32, f64), GpuError> {
    let mut rounds = 16;
    loop {
        let step = made(rounds)?;
        let trial = StepTrial::new(device, &step, &[], &[], 1)?;
        // The first time the kernel may have to be compiled.
        let once = trial.run(1)?;
        let wall = trial.alone()?.as_secs_f64() * 1e9;
        if once >= LONG_NS || wall >= MAX_NS || rounds >= 1 << 20 {
            return Ok((rounds, best(device, &step)?));
        }
        rounds *= if once < LONG_NS / 16.0 { 8 } else { 2 };
    }
}

/// Multiplications and additions a second of threads.
fn arithmetic(device: &Arc<GpuDevice>, float: &str) -> Result<f64, GpuError> {
    let count = workgroups(device);
    let groups = fold(count).map_err(refused)?;
    let context = context! { threads => THREADS, chains => CHAINS, unrolled => UNROLLED, float };
    let source = render(include_str!("arithmetic.wgsl"), context).map_err(refused)?;
    let shader = KernelShader::new(format!("peak-{float}"), source).proved();
    let bytes = (count * THREADS * 16) as u64;
    let made = |rounds: u32| Ok(step(shader.clone(), &[bytes], vec![rounds, 0, 0, 0], groups));
    let (rounds, nanoseconds) = long_enough(device, &made)?;
    // Vectors of four, each multiplied and added to.
    let each = (CHAINS * UNROLLED * 4 * 2) as u64;
    let all = (count * THREADS) as u64 * each * u64::from(rounds);
    Ok(rate(all, nanoseconds))
}

/// Multiplications and additions a second of cooperative matrices with sums in FP32; nothing where the
/// device has none, or subgroups of several sizes, so that nobody knows how many there are.
fn matrices(device: &Arc<GpuDevice>) -> Result<Option<f64>, GpuError> {
    let able = device.capabilities();
    let (Some(matrix), Some((least, most))) = (able.wide_cooperative(), able.subgroup) else {
        return Ok(None);
    };
    if least != most || least == 0 || !(THREADS as u64).is_multiple_of(u64::from(least)) {
        return Ok(None);
    }
    let subgroups = THREADS as u64 / u64::from(least);
    let count = workgroups(device);
    let groups = fold(count).map_err(refused)?;
    let context = context! {
        threads => THREADS, chains => CHAINS, unrolled => UNROLLED, size => matrix.size, subgroups
    };
    let source = render(include_str!("matrices.wgsl"), context).map_err(refused)?;
    let shader = KernelShader::new("peak-matrices", source).proved();
    let bytes = (count * THREADS * 4) as u64;
    let made = |rounds: u32| Ok(step(shader.clone(), &[bytes], vec![rounds, 0, 0, 0], groups));
    let (rounds, nanoseconds) = long_enough(device, &made)?;
    let each = (CHAINS * UNROLLED) as u64 * 2 * u64::from(matrix.size).pow(3);
    Ok(Some(rate(count as u64 * subgroups * each * u64::from(rounds), nanoseconds)))
}

/// The time of a kernel that does nothing among others, and of handing one over and waiting for it.
fn starts(device: &Arc<GpuDevice>) -> Result<(Duration, Duration), GpuError> {
    let text = "@group(0) @binding(0) var<storage, read_write> word: array<u32>;\n\
                @compute @workgroup_size(64)\n\
                fn main(@builtin(local_invocation_index) thread: u32) {\n\
                    if thread == 0u { word[0] = 1u; }\n\
                }\n";
    let step = step(KernelShader::new("peak-empty", text), &[256], Vec::new(), [1, 1, 1]);
    let trial = StepTrial::new(device, &step, &[], &[], 1)?;
    let mut dispatch = f64::MAX;
    let mut submit = Duration::MAX;
    for _ in 0..ROUNDS {
        dispatch = dispatch.min(trial.run(EMPTY)?);
        submit = submit.min(trial.alone()?);
    }
    Ok((Duration::from_secs_f64(dispatch / 1e9), submit))
}
