//! Products of a few rows: every number of the matrix is read once for up to eight rows of X.

use minijinja::context;

use super::codes::{codes, is_scaled, restore, unscale};
use super::layout::CodeLayout;
use super::pack::PackedCodes;
use super::product::{
    CodedProduct, CodedProductCall, DeclaredBinding, PieceShare, activation, x_type,
};
use crate::device::{GpuCapabilities, KernelShader};
use crate::kernel::{DispatchStep, ShaderBinding, fold, param};
use crate::template::render;

/// Bytes of workgroup memory for X.
const TILE_BYTES: usize = 16 << 10;

/// Configuration of the kernel for few rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemvConfig {
    /// Threads of a workgroup.
    pub threads: usize,
    /// Threads that share a packed row.
    pub lanes: usize,
    /// Packed rows of a thread: an even number.
    pub rows: usize,
    /// True if X may be rounded to bytes, where the node allows it and the device has dot products of bytes.
    pub bytes: bool,
    /// True if that is done by a separate dispatch, and not by every workgroup.
    pub ahead: bool,
    /// True if lanes add up by subgroup operations, where the device has them.
    pub subgroups: bool,
    /// Workgroups that share a packed row at most: each has a part of it, and a dispatch of its own adds up.
    pub split: usize,
    /// The most rows of X that a workgroup takes: a power of two.
    pub most: usize,
}

const fn config(threads: usize, lanes: usize, rows: usize) -> GemvConfig {
    let bytes = true;
    let ahead = false;
    let subgroups = true;
    GemvConfig { threads, lanes, rows, bytes, ahead, subgroups, split: 1, most: 8 }
}

const fn ahead(own: GemvConfig) -> GemvConfig {
    GemvConfig { ahead: true, ..own }
}

const fn split(own: GemvConfig, split: usize) -> GemvConfig {
    GemvConfig { split, ..own }
}

/// Threads that keep a large device's memory busy.
const ENOUGH: usize = 128 << 10;

/// Configurations that a tuner may choose; the first is the default.
pub const GEMV_CONFIGS: &[GemvConfig] = &[
    config(256, 32, 2),
    config(128, 32, 4),
    config(64, 32, 2),
    config(64, 32, 8),
    config(64, 64, 2),
    config(128, 128, 2),
    config(256, 256, 4),
    config(64, 32, 4),
    config(64, 64, 4),
    config(128, 32, 2),
    config(128, 64, 4),
    config(128, 128, 4),
    config(128, 128, 8),
    config(128, 32, 8),
    config(256, 32, 4),
    config(256, 64, 4),
    config(64, 16, 4),
    config(64, 8, 4),
    ahead(config(128, 32, 4)),
    ahead(config(256, 32, 2)),
    ahead(config(256, 32, 4)),
    ahead(config(64, 32, 4)),
    ahead(config(64, 32, 2)),
    ahead(config(128, 64, 2)),
    ahead(config(128, 64, 4)),
    ahead(config(128, 128, 2)),
    ahead(config(128, 128, 4)),
    ahead(config(256, 256, 2)),
    ahead(config(128, 32, 8)),
    split(config(256, 32, 4), 2),
    split(config(256, 32, 4), 4),
    split(config(256, 32, 4), 8),
    split(config(256, 32, 2), 2),
    split(config(256, 32, 2), 4),
    split(config(128, 32, 4), 4),
    split(ahead(config(256, 32, 4)), 4),
    split(ahead(config(128, 32, 4)), 4),
    split(ahead(config(128, 32, 2)), 2),
    GemvConfig { most: 4, ..ahead(config(128, 32, 4)) },
    GemvConfig { most: 4, ..ahead(config(128, 32, 8)) },
    GemvConfig { most: 16, ..ahead(config(128, 32, 2)) },
    GemvConfig { most: 16, ..ahead(config(128, 32, 4)) },
    GemvConfig { bytes: false, ..config(128, 32, 4) },
    GemvConfig { bytes: false, ..config(256, 32, 4) },
    GemvConfig { bytes: false, ..config(128, 128, 4) },
    GemvConfig { bytes: false, ..config(64, 32, 2) },
    GemvConfig { bytes: false, ..split(config(256, 32, 4), 4) },
    GemvConfig { subgroups: false, ..config(128, 32, 4) },
    GemvConfig { subgroups: false, ..split(config(128, 32, 4), 3) },
];

impl GemvConfig {
    /// Returns whether a device can run it.
    #[must_use]
    pub fn is_valid(&self, device: &GpuCapabilities) -> bool {
        let Self { threads, lanes, rows, split, most, .. } = *self;
        let whole = lanes.is_power_of_two() && threads.is_multiple_of(lanes.max(1));
        // Apple's compiler breaks barriers of workgroups of one subgroup.
        let known = threads >= 64 && threads <= device.workgroup_threads as usize;
        let rows = rows >= 2 && rows.is_multiple_of(2) && rows * threads <= 2048;
        whole && known && rows && (1..=64).contains(&split) && most.is_power_of_two() && most <= 16
    }

    /// The default for a product with so many rows of X, all of which may be rounded to bytes or not. Every
    /// workgroup brings X for itself, so that large ones are better, as long as there are enough of them.
    pub(super) fn choose(
        device: &GpuCapabilities,
        packed: &PackedCodes,
        m: usize,
        bytes: bool,
    ) -> Self {
        let rows = packed.rows;
        let columns = packed.columns;
        let units = packed.layout.units(columns);
        let mut own = GEMV_CONFIGS[0];
        let few = m == 1 && bytes && (2048..=8192).contains(&rows) && units >= 64;
        if m > 1 {
            // Sums of more rows need the registers of more threads, and rounding more rows takes each
            // workgroup as long as its products.
            (own.threads, own.rows, own.ahead) = (128, 4, bytes);
        } else if !bytes && rows >= 8192 {
            own.rows = 4;
        } else if few {
            // There are too few workgroups for each to round X: that takes them as long as their products.
            own = ahead(config(128, 64, 2));
        }
        if rows < 2048 && (4096..8192).contains(&columns) {
            // To add up what several workgroups leave would take as long as this.
            (own.lanes, own.rows) = (64, 2);
        } else if columns >= 8192 && !few && !device.software {
            // Few long rows: there are more threads where several workgroups share them.
            (own.lanes, own.rows) = (32, 4);
            let threads = rows.div_ceil(own.rows).max(1) * own.lanes * m.div_ceil(own.most);
            own.split = (ENOUGH / threads).clamp(1, 16);
        }
        while own.lanes > 8 && own.lanes / 2 >= units {
            own.lanes /= 2;
        }
        if device.software {
            // Rows are what a processor has to spare.
            own.threads = 64;
        }
        own
    }

    /// The most rows of X that a workgroup takes, for so many.
    fn chunk(&self, m: usize) -> usize {
        m.next_power_of_two().clamp(1, self.most)
    }

    /// Units of X in workgroup memory.
    fn tile(&self, layout: &CodeLayout, m: usize, bytes: bool, device: &GpuCapabilities) -> usize {
        let limit = TILE_BYTES.min(device.workgroup_bytes as usize / 2);
        // Bytes have scales and sums beside them.
        let (width, most) = if bytes { (2, 512) } else { (4, 256) };
        let tile = limit / (layout.unit() * width * m);
        // A power of two, so that lanes divide it.
        (1 << tile.max(1).ilog2()).min(most)
    }
}

/// Returns whether a device can multiply rows of X that are rounded to bytes.
pub(super) fn rounds(device: &GpuCapabilities, product: &CodedProduct) -> bool {
    let shuffles = device.subgroup.is_some_and(|(least, _)| least >= 8);
    shuffles && product.rounds && device.packed_dot && product.packed.layout.has_bytes()
}

/// Configuration as it applies to one matrix multiplication.
struct GemvPlan {
    own: GemvConfig,
    /// Rows of X that a workgroup takes.
    m: usize,
    /// Units of X in workgroup memory.
    tile: usize,
    bytes: bool,
    ahead: bool,
    /// Units of a part of a row, and how many parts there are.
    part: usize,
    parts: usize,
}

impl GemvPlan {
    fn new(
        mut own: GemvConfig,
        device: &GpuCapabilities,
        product: &CodedProduct,
        m: usize,
    ) -> Self {
        let layout = &product.packed.layout;
        let units = layout.units(product.packed.columns);
        let m = own.chunk(m);
        let bytes = own.bytes && own.subgroups && rounds(device, product);
        // A whole block of 32 numbers of X.
        let least = 32 / layout.unit().min(32);
        let part = units.div_ceil(own.split.max(1)).max(1);
        let part = part.next_multiple_of(own.lanes.max(least));
        let parts = units.div_ceil(part).max(1);
        let tile = own.tile(layout, m, bytes, device);
        let tile = tile.min(units.min(part).next_power_of_two()).max(least);
        let ahead = bytes && own.ahead;
        if !ahead {
            own.lanes = own.lanes.min(tile);
        }
        Self { own, m, tile, bytes, ahead, part, parts }
    }

    /// Packed rows of a workgroup.
    fn per_group(&self) -> usize {
        self.own.threads / self.own.lanes * self.own.rows
    }

    fn source(
        &self,
        device: &GpuCapabilities,
        product: &CodedProduct,
        shares: &[PieceShare],
        call: &CodedProductCall,
        bindings: &[DeclaredBinding],
    ) -> Result<String, String> {
        let Self { own, m, tile, bytes, ahead, .. } = *self;
        let layout = &product.packed.layout;
        let (types, biases) = CodedProduct::stores(shares, call)?;
        let subgroup = device.subgroup.filter(|_| own.subgroups);
        let fast = subgroup.map_or(1, |(least, _)| own.lanes.min(least.max(1) as usize));
        let steps = (0..own.lanes.ilog2()).map(|bit| 1 << bit).collect::<Vec<u32>>();
        let per_block = (layout.block / layout.unit()).max(1).ilog2();
        render(
            include_str!("gemv.wgsl"),
            context!(
                bindings => bindings.iter().map(DeclaredBinding::shown).collect::<Vec<_>>(),
                codes => codes(layout),
                unscale => unscale(layout),
                restore => restore(layout),
                scaled => is_scaled(layout),
                threads => own.threads,
                lanes => own.lanes,
                rows => own.rows,
                parts => layout.parts(),
                outputs => shares.len(),
                gated => product.gate.map(activation),
                more => call.more.is_some(),
                y => types,
                subgroups => subgroup.is_some(),
                zero => format!("{:?}", layout.byte_zero()),
                aligned => product.packed.columns.is_multiple_of(4),
                split => self.parts > 1,
                per_group => self.per_group(),
                m, tile, biases, fast, steps, per_block, bytes, ahead,
            ),
        )
    }

    /// Adds up the sums of the parts.
    fn merge(
        &self,
        product: &CodedProduct,
        shares: &[PieceShare],
        call: &CodedProductCall,
        partial: &PartialProduct,
        params: Vec<u32>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let (types, biases) = CodedProduct::stores(shares, call)?;
        let mut declared = vec![partial.declared()];
        declared.extend(CodedProduct::results(shares, call)?);
        let source = render(
            include_str!("merge.wgsl"),
            context!(
                bindings => declared.iter().map(DeclaredBinding::shown).collect::<Vec<_>>(),
                outputs => shares.len(),
                gated => product.gate.map(activation),
                more => call.more.is_some(),
                per_group => self.per_group(),
                y => types,
                biases,
            ),
        )?;
        let shader = KernelShader::new("block_mat_mul-merge", source).proved();
        let bindings = declared.into_iter().map(|d| d.binding).collect();
        let elements = call.m * partial.groups * self.per_group() / product.per_column();
        step.dispatch(shader, bindings, params, fold(elements.div_ceil(64))?);
        Ok(())
    }
}

/// Adds the dispatches of a product of few rows: those that round X, multiply and add up.
///
/// # Errors
/// Fails when sizes are beyond the device.
pub(super) fn dispatch(
    device: &GpuCapabilities,
    product: &CodedProduct,
    call: &CodedProductCall,
    forced: Option<GemvConfig>,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let columns = product.packed.columns;
    let chosen = || GemvConfig::choose(device, &product.packed, call.m, rounds(device, product));
    let plan = GemvPlan::new(forced.unwrap_or_else(chosen), device, product, call.m);
    let rounded = if plan.ahead { Some(round(columns, call, step)?) } else { None };
    for piece in &product.packed.pieces {
        let shares = product.shares(piece);
        let (mut params, groups) = product.params(&shares, call.m, plan.per_group())?;
        let cuts = call.m.div_ceil(plan.m);
        params[CUTS..][..2].copy_from_slice(&[param(cuts)?, param(plan.part)?]);
        let mut declared = product.operands(piece, call, x_type(columns, call)?);
        let sums = (plan.parts * call.m * groups * plan.per_group() * 4) as u64;
        let partial =
            (plan.parts > 1).then(|| PartialProduct { scratch: step.scratch(sums), groups });
        match &partial {
            Some(partial) => declared.push(partial.declared()),
            None => declared.extend(CodedProduct::results(&shares, call)?),
        }
        if let (Some([codes, steps]), Some(first)) = (rounded, declared.first_mut()) {
            first.binding = ShaderBinding::Scratch(codes);
            first.of = "vec4<u32>".into();
            let steps = ShaderBinding::Scratch(steps);
            declared.push(DeclaredBinding::written(steps, "steps".into(), "vec4<f32>".into()));
        }
        let source = plan.source(device, product, &shares, call, &declared)?;
        let name = product.packed.layout.name();
        let m = plan.m;
        let kind = if plan.bytes { "gemv_i8x" } else { "gemv" };
        let shader = KernelShader::new(format!("block_mat_mul-{name}-{kind}{m}"), source);
        let [across, lines, _] = fold(groups * cuts)?;
        let bindings = declared.into_iter().map(|d| d.binding).collect();
        let parts = param(plan.parts)?;
        step.dispatch(shader.proved(), bindings, params.clone(), [across, lines, parts]);
        if let Some(partial) = partial {
            params[CUTS] = parts;
            plan.merge(product, &shares, call, &partial, params, step)?;
        }
    }
    Ok(())
}

/// Position of the parameters that say how often something is cut.
const CUTS: usize = 6;

/// Sums that workgroups leave for each part of a row.
struct PartialProduct {
    /// Scratch with the sums.
    scratch: usize,
    /// Workgroups of a part.
    groups: usize,
}

impl PartialProduct {
    /// The sums as a shader declares them.
    fn declared(&self) -> DeclaredBinding {
        let binding = ShaderBinding::Scratch(self.scratch);
        DeclaredBinding::written(binding, "partial".into(), "f32".into())
    }
}

/// Rounds X to bytes, and gives the scratch with them and the one with their scales and sums.
fn round(
    columns: usize,
    call: &CodedProductCall,
    step: &mut DispatchStep,
) -> Result<[usize; 2], String> {
    let blocks = call.m * columns.div_ceil(32);
    let both = [32, 16].map(|bytes| step.scratch((blocks * bytes) as u64));
    let aligned = columns.is_multiple_of(4);
    let x = x_type(columns, call)?;
    let source = render(include_str!("round.wgsl"), context!(x, aligned))?;
    let shader = KernelShader::new("block_mat_mul-round", source).proved();
    let mut bindings = vec![call.x.binding.clone()];
    bindings.extend(both.map(ShaderBinding::Scratch));
    let params = vec![param(columns)?, param(call.m)?, param(columns.div_ceil(32) * 8)?];
    step.dispatch(shader, bindings, params, fold((blocks * 8).div_ceil(64))?);
    Ok(both)
}
