//! WGSL to Metal as wgpu's Metal backend does it.

use std::collections::BTreeMap;

use galatea_gpu::KernelShader;
use naga::back::msl;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage, StorageAccess};

/// Returns the WGSL capabilities of Metal on an Apple GPU.
fn capabilities() -> Capabilities {
    Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::SHADER_INT64
        | Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
        | Capabilities::COOPERATIVE_MATRIX
}

/// A checked module.
pub(crate) struct Checked {
    pub(crate) module: Module,
    info: ModuleInfo,
}

pub(crate) fn check(shader: &KernelShader) -> Result<Checked, String> {
    let mut options = naga::front::wgsl::Options::new();
    options.capabilities = capabilities();
    let mut frontend = naga::front::wgsl::Frontend::new_with_options(options);
    let module = frontend.parse(&shader.source).map_err(|error| error.to_string())?;
    let mut validator = Validator::new(ValidationFlags::all(), capabilities());
    let info = validator.validate(&module).map_err(|error| format!("{error:?}"))?;
    Ok(Checked { module, info })
}

/// Checks that a kernel stays within the limits of an Apple GPU: at most 32 KiB for a workgroup and at most
/// 1024 threads. Workgroups that share memory have at least 64 threads, because Apple's compiler omits barriers
/// from smaller ones.
pub(crate) fn limits(shader: &KernelShader, checked: &Checked) {
    let threads: u32 = checked.module.entry_points[0].workgroup_size.iter().product();
    let entry = checked.info.get_entry_point(0);
    let shared = checked.module.global_variables.iter().filter(|(handle, variable)| {
        variable.space == AddressSpace::WorkGroup && !entry[*handle].is_empty()
    });
    let context = checked.module.to_ctx();
    let sizes = shared.map(|(_, variable)| checked.module.types[variable.ty].inner.size(context));
    // Each lies by itself in multiples of 16 bytes.
    let bytes: u32 = sizes.map(|size| size.next_multiple_of(16)).sum();
    let name = &shader.name;
    // Some devices read matrices wrongly from other addresses, and compilers lay variables out back to back.
    let matrices = |ty: &naga::Type| matches!(ty.inner, naga::TypeInner::CooperativeMatrix { .. });
    if checked.module.types.iter().any(|(_, ty)| matrices(ty)) {
        for (_, variable) in checked.module.global_variables.iter() {
            let size = checked.module.types[variable.ty].inner.size(context);
            let shared = variable.space == AddressSpace::WorkGroup;
            assert!(
                !shared || size.is_multiple_of(16),
                "{name}: {:?} has {size} bytes",
                variable.name
            );
        }
    }
    assert!(bytes <= 32 << 10, "{name}: {bytes} bytes in a workgroup");
    assert!(threads <= 1024, "{name}: {threads} threads");
    assert!(bytes == 0 || threads >= 64, "{name}: {threads} threads share memory");
}

/// The bindings as a layout made from the shader numbers them: those it uses, in order, then the
/// sizes of buffers.
fn resources(checked: &Checked) -> msl::EntryPointResources {
    let entry = checked.info.get_entry_point(0);
    let mut used = BTreeMap::new();
    let mut sizes = false;
    for (handle, variable) in checked.module.global_variables.iter() {
        if let Some(binding) = &variable.binding
            && !entry[handle].is_empty()
        {
            let mutable = match variable.space {
                AddressSpace::Storage { access } => {
                    sizes = true;
                    access.contains(StorageAccess::STORE)
                }
                _ => false,
            };
            used.insert((binding.group, binding.binding), (*binding, mutable));
        }
    }
    let mut resources = msl::EntryPointResources::default();
    let count = u8::try_from(used.len()).unwrap();
    for (slot, (binding, mutable)) in (0_u8..).zip(used.into_values()) {
        let target = msl::BindTarget { buffer: Some(slot), mutable, ..Default::default() };
        resources.resources.insert(binding, target);
    }
    resources.sizes_buffer = sizes.then_some(count);
    resources
}

/// The text that Metal compiles. The options are those of `wgpu-hal`'s `metal/device.rs` for the checks that
/// `device/pipelines.rs` asks for; the language is that of macOS 15, and naga writes no other text for those
/// of macOS 14 and 26.
pub(crate) fn metal(shader: &KernelShader, checked: &Checked) -> Result<String, String> {
    let policy = match shader.proved {
        true => BoundsCheckPolicy::Unchecked,
        false => BoundsCheckPolicy::Restrict,
    };
    let name = "main".to_owned();
    let options = msl::Options {
        lang_version: (3, 2),
        per_entry_point_map: [(name.clone(), resources(checked))].into_iter().collect(),
        bounds_check_policies: BoundsCheckPolicies {
            index: policy,
            buffer: policy,
            image_load: policy,
            binding_array: BoundsCheckPolicy::Unchecked,
        },
        fake_missing_bindings: false,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        emit_int_div_checks: !shader.proved,
        ray_query_initialization_tracking: !shader.proved,
        ..msl::Options::default()
    };
    let entry = msl::PipelineOptions {
        entry_point: Some((ShaderStage::Compute, name)),
        vertex_pulling_transform: true,
        ..msl::PipelineOptions::default()
    };
    let written = msl::write_string(&checked.module, &checked.info, &options, &entry);
    let (text, info) = written.map_err(|error| error.to_string())?;
    info.entry_point_names
        .into_iter()
        .next()
        .ok_or("no entry point")?
        .map_err(|e| e.to_string())?;
    Ok(text)
}
