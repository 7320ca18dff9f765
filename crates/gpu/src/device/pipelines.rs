//! Compiled kernels by their source.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use wgpu::{ErrorFilter, ShaderSource};

use crate::error::GpuError;

/// The text of a kernel, ready to be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelShader {
    /// The kernel's name: `{op}-{dtypes}-{variant}`.
    pub name: Arc<str>,
    /// WGSL with one entry point, `main`.
    pub source: Arc<str>,
    /// True if every index is proved to be in bounds, which lets the compiler omit checks.
    pub proved: bool,
}

impl KernelShader {
    /// A kernel whose indices the compiler checks.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, source: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), source: source.into(), proved: false }
    }

    /// The same without checks of bounds and divisors. Only for kernels that guard their indices
    /// themselves.
    #[must_use]
    pub fn proved(mut self) -> Self {
        self.proved = true;
        self
    }
}

/// A compiled kernel.
#[derive(Debug)]
pub struct KernelPipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// Each with its place in the order in which they were asked for.
#[derive(Debug, Default)]
pub(super) struct PipelineCache(Mutex<HashMap<KernelShader, (usize, Arc<KernelPipeline>)>>);

impl PipelineCache {
    pub(super) fn get(
        &self,
        device: &wgpu::Device,
        shader: &KernelShader,
    ) -> Result<Arc<KernelPipeline>, GpuError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known().get(shader) {
            return Ok(Arc::clone(found));
        }
        let begin = Instant::now();
        let made = Arc::new(compile(device, shader)?);
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        tracing::debug!(kernel = %shader.name, "compiled in {ms:.1} ms");
        let mut known = known();
        let place = known.len();
        known.entry(shader.clone()).or_insert((place, Arc::clone(&made)));
        Ok(made)
    }

    /// All shaders, in the order in which they were asked for.
    pub(super) fn shaders(&self) -> Vec<KernelShader> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(usize, KernelShader)> =
            known.iter().map(|(shader, (place, _))| (*place, shader.clone())).collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, shader)| shader).collect()
    }
}

fn compile(device: &wgpu::Device, shader: &KernelShader) -> Result<KernelPipeline, GpuError> {
    let label = Some(&*shader.name);
    let scope = device.push_error_scope(ErrorFilter::Validation);
    let internal = device.push_error_scope(ErrorFilter::Internal);
    let descriptor = wgpu::ShaderModuleDescriptor {
        label,
        source: ShaderSource::Wgsl((&*shader.source).into()),
    };
    let mut checks = match shader.proved {
        true => wgpu::ShaderRuntimeChecks::unchecked(),
        false => wgpu::ShaderRuntimeChecks::checked(),
    };
    // What would end loops by force is a counter of 64 bits beside each loop's own.
    checks.force_loop_bounding = false;
    // SAFETY: every loop of a kernel counts to a length that is known before it, halves an interval, or
    // repeats an exchange that another thread forestalled. Where there are no checks, whoever made the shader
    // proved its indices and divisors.
    let module = unsafe { device.create_shader_module_trusted(descriptor, checks) };
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &[],
            // Kernels write what they read.
            zero_initialize_workgroup_memory: false,
        },
        cache: None,
    });
    let layout = pipeline.get_bind_group_layout(0);
    let errors = [pollster::block_on(internal.pop()), pollster::block_on(scope.pop())];
    match errors.into_iter().flatten().next() {
        Some(error) => {
            Err(GpuError::Shader { kernel: shader.name.to_string(), reason: error.to_string() })
        }
        None => Ok(KernelPipeline { pipeline, layout }),
    }
}
