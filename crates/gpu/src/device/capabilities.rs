//! Capabilities of a device, as the device reports them.

use wgpu::{CooperativeScalarType, DeviceType, Features};

/// Types of a product of cooperative matrices: `sums += a · b` of square matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CooperativeMatrix {
    /// Rows and columns of each.
    pub size: u32,
    /// True if sums are FP32; FP16 otherwise.
    pub wide_sums: bool,
}

/// Capabilities of a device that kernels depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuCapabilities {
    /// The name that the driver gives.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// The interface that the driver is reached by, such as Vulkan or Metal.
    pub backend: String,
    /// True if the CPU emulates the GPU.
    pub software: bool,
    /// True if the CPU and the GPU share memory.
    pub unified: bool,
    /// True if a storage buffer can be mapped.
    pub mappable: bool,
    /// True if shaders have FP16.
    pub f16: bool,
    /// True if shaders have integers of 64 bits.
    pub int64: bool,
    /// The least and most threads of a subgroup; none where shaders have no subgroup operations.
    pub subgroup: Option<(u32, u32)>,
    /// Products of cooperative matrices of FP16.
    pub cooperative: Vec<CooperativeMatrix>,
    /// True if cooperative matrices may lie in memory that is seen as vectors; Metal reads and writes single
    /// elements.
    pub wide_matrices: bool,
    /// True if dot products of four bytes are instructions of the device.
    pub packed_dot: bool,
    /// True if dispatches can be timed one by one.
    pub timestamps: bool,
    /// True if passes can be timed: where dispatches cannot, each is timed in a pass of its own.
    pub pass_timestamps: bool,
    /// The most bytes of one binding.
    pub binding_bytes: u64,
    /// The most bytes of one buffer.
    pub buffer_bytes: u64,
    /// The most bytes that threads of a workgroup share.
    pub workgroup_bytes: u32,
    /// The most threads of a workgroup.
    pub workgroup_threads: u32,
    /// The most workgroups along one axis.
    pub workgroups: u32,
    /// Offsets of bindings are multiples of this.
    pub alignment: u64,
}

impl GpuCapabilities {
    pub(super) fn of(adapter: &wgpu::Adapter, features: Features, limits: &wgpu::Limits) -> Self {
        let info = adapter.get_info();
        let has = |feature: Features| features.contains(feature);
        let software = info.device_type == DeviceType::Cpu;
        let unified = software
            || info.device_type == DeviceType::IntegratedGpu
            || (info.backend == wgpu::Backend::Metal && cfg!(target_arch = "aarch64"));
        let mut cooperative = Vec::new();
        if has(Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
            for found in adapter.cooperative_matrix_properties() {
                let square = found.m_size == found.n_size && found.n_size == found.k_size;
                let sums = found.cr_type;
                let halves = found.ab_type == CooperativeScalarType::F16;
                let known = matches!(sums, CooperativeScalarType::F16 | CooperativeScalarType::F32);
                let wide_sums = sums == CooperativeScalarType::F32;
                let entry = CooperativeMatrix { size: found.m_size, wide_sums };
                if square && halves && known && !cooperative.contains(&entry) {
                    cooperative.push(entry);
                }
            }
        }
        let subgroup = (info.subgroup_min_size, info.subgroup_max_size);
        let alignment = limits
            .min_storage_buffer_offset_alignment
            .max(limits.min_uniform_buffer_offset_alignment);
        Self {
            name: info.name,
            driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
            backend: info.backend.to_string(),
            software,
            unified,
            mappable: has(Features::MAPPABLE_PRIMARY_BUFFERS),
            f16: has(Features::SHADER_F16),
            int64: has(Features::SHADER_INT64),
            subgroup: has(Features::SUBGROUP).then_some(subgroup),
            cooperative,
            wide_matrices: info.backend == wgpu::Backend::Vulkan,
            // Metal has no such instruction; on Vulkan all devices of these years do.
            packed_dot: info.backend == wgpu::Backend::Vulkan,
            timestamps: has(Features::TIMESTAMP_QUERY)
                && has(Features::TIMESTAMP_QUERY_INSIDE_PASSES),
            pass_timestamps: has(Features::TIMESTAMP_QUERY),
            binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            workgroup_threads: limits.max_compute_invocations_per_workgroup,
            workgroups: limits.max_compute_workgroups_per_dimension,
            alignment: u64::from(alignment).max(256),
        }
    }

    /// The product of cooperative matrices with FP32 sums, if there is one; the largest of several.
    #[must_use]
    pub fn wide_cooperative(&self) -> Option<CooperativeMatrix> {
        self.cooperative.iter().copied().filter(|found| found.wide_sums).max_by_key(|c| c.size)
    }
}
