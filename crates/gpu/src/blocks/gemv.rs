//! Products of a few rows: every number of the matrix is read once for up to eight rows of X.

use minijinja::context;

use super::codes::{codes, is_scaled, restore, unscale};
use super::layout::Layout;
use super::product::{Call, Product, activation};
use crate::device::{Capabilities, Shader};
use crate::kernel::{Step, fold, param, wgsl_float};
use crate::template::render;

/// Bytes of workgroup memory for X.
const TILE_BYTES: usize = 16 << 10;

/// How few rows are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemvConfig {
    /// Threads of a workgroup.
    pub threads: usize,
    /// Threads that share a packed row.
    pub lanes: usize,
    /// Packed rows of a thread: an even number.
    pub rows: usize,
    /// Whether X may be rounded to bytes, where the node allows it and the device has products of bytes.
    pub bytes: bool,
    /// Whether lanes add up by operations of subgroups, where the device has them.
    pub subgroups: bool,
}

const fn config(threads: usize, lanes: usize, rows: usize) -> GemvConfig {
    GemvConfig { threads, lanes, rows, bytes: true, subgroups: true }
}

/// What a tuner may choose; the first is the default.
pub const GEMV_CONFIGS: &[GemvConfig] = &[
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
    config(256, 32, 2),
    config(256, 64, 4),
    config(64, 16, 4),
    config(64, 8, 4),
    GemvConfig { bytes: false, ..config(128, 32, 4) },
    GemvConfig { bytes: false, ..config(256, 32, 4) },
    GemvConfig { bytes: false, ..config(128, 128, 4) },
    GemvConfig { bytes: false, ..config(64, 32, 2) },
    GemvConfig { subgroups: false, ..config(128, 32, 4) },
];

impl GemvConfig {
    /// Whether a device can run it.
    #[must_use]
    pub fn is_valid(&self, device: &Capabilities) -> bool {
        let Self { threads, lanes, rows, .. } = *self;
        let whole = lanes.is_power_of_two() && threads.is_multiple_of(lanes.max(1));
        // Apple's compiler breaks barriers of workgroups of one subgroup.
        let known = threads >= 64 && threads <= device.workgroup_threads as usize;
        whole && known && rows >= 2 && rows.is_multiple_of(2) && rows * threads <= 2048
    }

    /// The default for a matrix of so many units a row.
    pub(super) fn choose(device: &Capabilities, units: usize) -> Self {
        let mut own = GEMV_CONFIGS[0];
        while own.lanes > 8 && own.lanes / 2 >= units {
            own.lanes /= 2;
        }
        if device.software {
            // Rows are what a processor has to spare.
            own.threads = 64;
        }
        own
    }

    /// The most rows of X that a dispatch takes at once, for so many.
    fn chunk(m: usize) -> usize {
        m.next_power_of_two().clamp(1, 8)
    }

    /// Units of X in workgroup memory.
    fn tile(&self, layout: &Layout, m: usize, bytes: bool, device: &Capabilities) -> usize {
        let limit = TILE_BYTES.min(device.workgroup_bytes as usize / 2);
        // Bytes have scales and sums beside them.
        let (width, most) = if bytes { (2, 512) } else { (4, 256) };
        let tile = limit / (layout.unit() * width * m);
        // A power of two, so that lanes divide it.
        (1 << tile.max(1).ilog2()).min(most)
    }
}

/// Adds the dispatches of a product of few rows.
///
/// # Errors
/// When sizes are beyond the device.
pub(super) fn dispatch(
    device: &Capabilities,
    product: &Product,
    call: &Call,
    forced: Option<GemvConfig>,
    step: &mut Step,
) -> Result<(), String> {
    let (layout, columns) = (&product.packed.layout, product.packed.columns);
    let units = layout.units(columns);
    let mut own = forced.unwrap_or_else(|| GemvConfig::choose(device, units));
    let m = GemvConfig::chunk(call.m);
    let shuffles = device.subgroup.is_some_and(|(least, _)| least >= 8) && own.subgroups;
    let bytes = own.bytes && product.rounds && device.packed_dot && shuffles && layout.has_bytes();
    // A whole block of 32 numbers of X.
    let least = 32 / layout.unit().min(32);
    let tile = own.tile(layout, m, bytes, device);
    let tile = tile.min(units.next_power_of_two()).max(least);
    own.lanes = own.lanes.min(tile);
    for piece in &product.packed.pieces {
        let shares = product.shares(piece);
        let per_group = own.threads / own.lanes * own.rows;
        let (params, groups) = product.params(&shares, call.m, per_group)?;
        let aligned = columns.is_multiple_of(4);
        let x = wgsl_float(call.x.dtype)?;
        let x = if aligned { format!("vec4<{x}>") } else { x.to_owned() };
        let declared = product.declared((piece, &shares), call, x)?;
        let (types, biases) = Product::stores(&shares, call)?;
        let subgroup = device.subgroup.filter(|_| own.subgroups);
        let fast = subgroup.map_or(1, |(least, _)| own.lanes.min(least.max(1) as usize));
        let bindings = declared
            .iter()
            .map(|d| context!(name => d.name.clone(), access => d.access, of => d.of.clone()));
        let steps = (0..own.lanes.ilog2()).map(|bit| 1 << bit).collect::<Vec<u32>>();
        let per_block = (layout.block / layout.unit()).max(1).ilog2();
        let source = render(
            include_str!("gemv.wgsl"),
            context!(
                bindings => bindings.collect::<Vec<_>>(),
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
                y => types,
                subgroups => subgroup.is_some(),
                zero => format!("{:?}", layout.byte_zero()),
                m, tile, aligned, biases, fast, steps, per_block, bytes,
            ),
        )?;
        let way = if bytes { "gemv_i8x" } else { "gemv" };
        let shader = Shader::new(format!("block_mat_mul-{}-{way}{m}", layout.name()), source);
        let [columns, lines, _] = fold(groups)?;
        let bindings = declared.into_iter().map(|d| d.binding).collect();
        let chunks = param(call.m.div_ceil(m))?;
        step.dispatch(shader.proved(), bindings, params, [columns, lines, chunks]);
    }
    Ok(())
}
