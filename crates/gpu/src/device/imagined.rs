//! A device that is not there.

use std::sync::Arc;

use wgpu::{Backends, Features, NoopBackendOptions};

use super::life::DeviceOrigin;
use super::{GpuCapabilities, GpuDevice, request};
use crate::buffers::PoolConfig;
use crate::error::GpuError;

/// The features behind what a device can do.
fn features(capabilities: &GpuCapabilities) -> Features {
    let timestamps = Features::TIMESTAMP_QUERY
        .union(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
        .union(Features::TIMESTAMP_QUERY_INSIDE_PASSES);
    let all = [
        (capabilities.f16, Features::SHADER_F16),
        (capabilities.int64, Features::SHADER_INT64),
        (capabilities.subgroup.is_some(), Features::SUBGROUP),
        (capabilities.mappable, Features::MAPPABLE_PRIMARY_BUFFERS),
        (capabilities.timestamps, timestamps),
        (!capabilities.cooperative.is_empty(), Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
    ];
    all.into_iter().filter(|(has, _)| *has).fold(Features::empty(), |sum, (_, one)| sum | one)
}

impl GpuDevice {
    /// A device that can do this and computes nothing: shaders are checked, buffers exist, results are
    /// whatever was there. It shows what kernels would do on a device that this host does not have.
    ///
    /// # Errors
    /// Fails when the capabilities contradict each other.
    pub fn imagined(
        capabilities: GpuCapabilities,
        pool: &PoolConfig,
    ) -> Result<Arc<Self>, GpuError> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = Backends::NOOP;
        descriptor.backend_options.noop = NoopBackendOptions::enabled();
        let instance = wgpu::Instance::new(descriptor);
        let name = || capabilities.name.clone();
        let refused = |reason: String| GpuError::Refused { name: name(), reason };
        let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
        let adapter = adapter.map_err(|error| refused(error.to_string()))?;
        let most = adapter.limits();
        let limits = wgpu::Limits {
            max_storage_buffer_binding_size: capabilities
                .binding_bytes
                .min(most.max_storage_buffer_binding_size),
            max_buffer_size: capabilities.buffer_bytes.min(most.max_buffer_size),
            max_compute_workgroup_storage_size: capabilities.workgroup_bytes,
            max_compute_invocations_per_workgroup: capabilities.workgroup_threads,
            max_compute_workgroups_per_dimension: capabilities.workgroups,
            max_bind_groups: 4,
            ..most
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("imagined"),
            required_features: features(&capabilities),
            required_limits: limits,
            // SAFETY: nothing runs on it.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let opened = request::plain(&adapter, &descriptor);
        let opened = opened.map_err(|error| refused(error.to_string()))?;
        let budget = pool.budget_bytes(None)?;
        let origin = DeviceOrigin::Imagined(pool.clone());
        Self::of(0, opened, capabilities, pool, budget, origin)
    }
}
