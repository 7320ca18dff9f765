//! Products of many rows: tiles whose numbers are whole, by cooperative matrices or in registers.

use minijinja::context;

use super::codes::{codes, unscale};
use super::layout::CodeLayout;
use super::product::{CodedProduct, CodedProductCall, DeclaredBinding, activation, x_type};
use crate::device::{GpuCapabilities, KernelShader};
use crate::kernel::{DispatchStep, fold, param};
use crate::template::render;

/// Configuration of the kernel for many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TiledRowsConfig {
    /// Rows of X, packed rows and numbers of each that a workgroup has at a time.
    pub tile: [usize; 3],
    /// Part of it that a subgroup computes, or a thread where there are no cooperative matrices.
    pub part: [usize; 2],
    /// True if cooperative matrices of FP16 are multiplied; sums are FP32.
    pub cooperative: bool,
}

const fn by_matrices(tile: [usize; 3], part: [usize; 2]) -> TiledRowsConfig {
    TiledRowsConfig { tile, part, cooperative: true }
}

const fn by_threads(tile: [usize; 3], part: [usize; 2]) -> TiledRowsConfig {
    TiledRowsConfig { tile, part, cooperative: false }
}

/// Configurations that a tuner may choose.
pub const TILED_CONFIGS: &[TiledRowsConfig] = &[
    by_matrices([128, 128, 32], [64, 64]),
    by_matrices([128, 128, 64], [64, 64]),
    by_matrices([128, 128, 32], [32, 64]),
    by_matrices([64, 128, 32], [32, 64]),
    by_matrices([64, 128, 64], [32, 64]),
    by_matrices([64, 64, 32], [32, 32]),
    by_matrices([64, 64, 64], [32, 32]),
    by_matrices([32, 64, 64], [16, 32]),
    by_matrices([32, 64, 64], [32, 16]),
    by_matrices([16, 64, 64], [16, 16]),
    by_matrices([16, 128, 64], [16, 32]),
    by_threads([128, 64, 16], [8, 8]),
    by_threads([64, 64, 32], [8, 4]),
    by_threads([64, 64, 32], [4, 4]),
    by_threads([32, 64, 32], [4, 4]),
    by_threads([16, 64, 32], [4, 4]),
];

/// Sides of a device's matrices, and threads of its subgroups.
fn matrices(device: &GpuCapabilities) -> Option<(usize, usize)> {
    let size = device.wide_cooperative()?.size as usize;
    let lanes = match device.subgroup? {
        (least, most) if least == most => least as usize,
        // A device that lists a range and has matrices has subgroups of 32.
        (least, most) if (least..=most).contains(&32) => 32,
        _ => return None,
    };
    (device.f16 && matches!(size, 8 | 16)).then_some((size, lanes))
}

impl TiledRowsConfig {
    /// Threads of a workgroup, and bytes of its memory.
    fn needs(&self, device: &GpuCapabilities) -> Option<(usize, usize)> {
        let ([bm, bn, bk], [pm, pn]) = (self.tile, self.part);
        let parts = (bm / pm.max(1)) * (bn / pn.max(1));
        if !self.cooperative {
            return Some((parts, (bm + bn + 8) * bk * 4));
        }
        let (size, lanes) = matrices(device)?;
        Some((parts * lanes, (bm + bn) * (bk + 8) * 2 + parts * size * size * 4))
    }

    /// Returns whether a device can run it.
    #[must_use]
    pub fn is_valid(&self, device: &GpuCapabilities) -> bool {
        let Some((threads, bytes)) = self.needs(device) else { return false };
        let ([bm, bn, bk], [pm, pn]) = (self.tile, self.part);
        let least = if self.cooperative { matrices(device).map_or(1, |(size, _)| size) } else { 4 };
        let whole = [(bm, pm), (bn, pn), (pm, least), (pn, least), (bk, least.max(16))];
        whole.iter().all(|(all, part)| *part > 0 && all.is_multiple_of(*part))
            && threads >= 64
            && threads <= (device.workgroup_threads as usize).min(1024)
            && bytes <= device.workgroup_bytes as usize
    }

    /// The first that a device can run of those that fit so many rows; by matrices only where FP16 will do.
    pub(super) fn choose(
        device: &GpuCapabilities,
        m: usize,
        n: usize,
        halves: bool,
    ) -> Option<Self> {
        let fits = |config: &&Self| {
            let [bm, bn, _] = config.tile;
            // Neither most of a tile without rows, nor fewer tiles than there are processors.
            let rows = bm <= m.next_power_of_two().max(16);
            let many = bm <= 32 || m.div_ceil(bm) * n.div_ceil(bn) >= 64 || device.software;
            rows && many && (halves || !config.cooperative) && config.is_valid(device)
        };
        let found = TILED_CONFIGS.iter().find(fits);
        let valid = |config: &&Self| !config.cooperative && config.is_valid(device);
        found.or_else(|| TILED_CONFIGS.iter().rev().find(valid)).copied()
    }

    /// The tile for a layout, whose units it must hold.
    fn deep(&self, layout: &CodeLayout) -> usize {
        self.tile[2].next_multiple_of(layout.unit())
    }
}

/// Adds the dispatches of a product of many rows.
///
/// # Errors
/// Fails when sizes are beyond the device.
pub(super) fn dispatch(
    device: &GpuCapabilities,
    product: &CodedProduct,
    call: &CodedProductCall,
    own: TiledRowsConfig,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let layout = &product.packed.layout;
    let columns = product.packed.columns;
    let ([bm, bn, _], [pm, pn]) = (own.tile, own.part);
    let bk = own.deep(layout);
    let (threads, _) = own.needs(device).ok_or("the device has no cooperative matrices")?;
    let (size, _) = matrices(device).unwrap_or((0, 0));
    for piece in &product.packed.pieces {
        let shares = product.shares(piece);
        let (params, groups) = product.params(&shares, call.m, bn)?;
        let aligned = columns.is_multiple_of(4);
        let declared = product.declared(piece, &shares, call, x_type(columns, call)?)?;
        let (types, biases) = CodedProduct::stores(&shares, call)?;
        let per_block = (layout.block / layout.unit()).max(1).ilog2();
        let source = render(
            include_str!("tiled.wgsl"),
            context!(
                bindings => declared.iter().map(DeclaredBinding::shown).collect::<Vec<_>>(),
                codes => codes(layout),
                unscale => unscale(layout),
                parts => layout.parts(),
                outputs => shares.len(),
                gated => product.gate.map(activation),
                more => call.more.is_some(),
                y => types,
                cooperative => own.cooperative,
                subgroups => (bm / pm) * (bn / pn),
                // On Metal, where they are of 8, they are read from single elements only.
                wide => size > 8,
                bm, bn, bk, pm, pn, threads, size, aligned, biases, per_block,
                edge => !columns.is_multiple_of(bk),
                x_of => x_type(columns, call)?,
            ),
        )?;
        let way = if own.cooperative { "matrices" } else { "tiles" };
        let shader = KernelShader::new(format!("block_mat_mul-{}-{way}", layout.name()), source);
        let [columns, lines, _] = fold(groups)?;
        let bindings = declared.into_iter().map(|d| d.binding).collect();
        let chunks = param(call.m.div_ceil(bm))?;
        step.dispatch(shader.proved(), bindings, params, [columns, lines, chunks]);
    }
    Ok(())
}
