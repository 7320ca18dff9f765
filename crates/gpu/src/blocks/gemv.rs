//! Products of a few rows: every number of the matrix is read once for up to eight rows of X.

use minijinja::context;

use super::codes::{codes, is_scaled, restore, unscale};
use super::layout::Layout;
use super::product::{Call, Declared, Product, Share, activation, x_type};
use crate::device::{Capabilities, Shader};
use crate::kernel::{Binding, Step, fold, param};
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
    /// Whether that is done by a dispatch of its own, and not by every workgroup.
    pub ahead: bool,
    /// Whether lanes add up by operations of subgroups, where the device has them.
    pub subgroups: bool,
}

const fn config(threads: usize, lanes: usize, rows: usize) -> GemvConfig {
    GemvConfig { threads, lanes, rows, bytes: true, ahead: false, subgroups: true }
}

/// What a tuner may choose; the first is the default.
pub const GEMV_CONFIGS: &[GemvConfig] = &[
    config(256, 32, 4),
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
    config(256, 32, 2),
    config(256, 64, 4),
    config(64, 16, 4),
    config(64, 8, 4),
    GemvConfig { ahead: true, ..config(128, 32, 4) },
    GemvConfig { ahead: true, ..config(256, 32, 4) },
    GemvConfig { ahead: true, ..config(64, 32, 4) },
    GemvConfig { ahead: true, ..config(64, 32, 2) },
    GemvConfig { ahead: true, ..config(128, 64, 4) },
    GemvConfig { ahead: true, ..config(128, 128, 4) },
    GemvConfig { ahead: true, ..config(128, 32, 8) },
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

    /// The default for a matrix of so many packed rows and units a row, and so many rows of X. Every
    /// workgroup brings X for itself, so that large ones are better, as long as there are enough of them.
    pub(super) fn choose(device: &Capabilities, [rows, units]: [usize; 2], m: usize) -> Self {
        let mut own = GEMV_CONFIGS[0];
        if m > 2 {
            // Sums of more rows need the registers of more threads.
            own.threads = 128;
        } else if rows < 8192 {
            own.rows = 2;
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

/// What a configuration comes to for a product.
struct Way {
    own: GemvConfig,
    /// Rows of X that a dispatch takes at once.
    m: usize,
    /// Units of X in workgroup memory.
    tile: usize,
    bytes: bool,
    ahead: bool,
}

impl Way {
    fn new(mut own: GemvConfig, device: &Capabilities, product: &Product, m: usize) -> Self {
        let layout = &product.packed.layout;
        let units = layout.units(product.packed.columns);
        let m = GemvConfig::chunk(m);
        let shuffles = device.subgroup.is_some_and(|(least, _)| least >= 8) && own.subgroups;
        let bytes = own.bytes && product.rounds && device.packed_dot && layout.has_bytes();
        let bytes = bytes && shuffles;
        // A whole block of 32 numbers of X.
        let least = 32 / layout.unit().min(32);
        let tile = own.tile(layout, m, bytes, device);
        let tile = tile.min(units.next_power_of_two()).max(least);
        let ahead = bytes && own.ahead;
        if !ahead {
            own.lanes = own.lanes.min(tile);
        }
        Self { own, m, tile, bytes, ahead }
    }

    fn source(
        &self,
        device: &Capabilities,
        product: &Product,
        (shares, call): (&[Share], &Call),
        bindings: &[Declared],
    ) -> Result<String, String> {
        let Self { own, m, tile, bytes, ahead } = *self;
        let layout = &product.packed.layout;
        let (types, biases) = Product::stores(shares, call)?;
        let subgroup = device.subgroup.filter(|_| own.subgroups);
        let fast = subgroup.map_or(1, |(least, _)| own.lanes.min(least.max(1) as usize));
        let steps = (0..own.lanes.ilog2()).map(|bit| 1 << bit).collect::<Vec<u32>>();
        let per_block = (layout.block / layout.unit()).max(1).ilog2();
        render(
            include_str!("gemv.wgsl"),
            context!(
                bindings => bindings.iter().map(Declared::shown).collect::<Vec<_>>(),
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
                aligned => product.packed.columns.is_multiple_of(4),
                m, tile, biases, fast, steps, per_block, bytes, ahead,
            ),
        )
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
    let own = forced.unwrap_or_else(|| {
        GemvConfig::choose(device, [product.packed.rows, layout.units(columns)], call.m)
    });
    let way = Way::new(own, device, product, call.m);
    let rounded = if way.ahead { Some(round(columns, call, step)?) } else { None };
    for piece in &product.packed.pieces {
        let shares = product.shares(piece);
        let per_group = way.own.threads / way.own.lanes * way.own.rows;
        let (params, groups) = product.params(&shares, call.m, per_group)?;
        let mut declared = product.declared((piece, &shares), call, x_type(columns, call)?)?;
        if let (Some([codes, steps]), Some(first)) = (rounded, declared.first_mut()) {
            first.binding = Binding::Scratch(codes);
            first.of = "vec4<u32>".into();
            declared.push(Declared {
                binding: Binding::Scratch(steps),
                name: "steps".into(),
                access: "read_write",
                of: "vec4<f32>".into(),
            });
        }
        let source = way.source(device, product, (&shares, call), &declared)?;
        let (name, m) = (layout.name(), way.m);
        let kind = if way.bytes { "gemv_i8x" } else { "gemv" };
        let shader = Shader::new(format!("block_mat_mul-{name}-{kind}{m}"), source);
        let [columns, lines, _] = fold(groups)?;
        let bindings = declared.into_iter().map(|d| d.binding).collect();
        let chunks = param(call.m.div_ceil(m))?;
        step.dispatch(shader.proved(), bindings, params, [columns, lines, chunks]);
    }
    Ok(())
}

/// Rounds X to bytes, and gives the scratch with them and the one with their scales and sums.
fn round(columns: usize, call: &Call, step: &mut Step) -> Result<[usize; 2], String> {
    let blocks = call.m * columns.div_ceil(32);
    let both = [32, 16].map(|bytes| step.scratch((blocks * bytes) as u64));
    let aligned = columns.is_multiple_of(4);
    let x = x_type(columns, call)?;
    let source = render(include_str!("round.wgsl"), context!(x, aligned))?;
    let shader = Shader::new("block_mat_mul-round", source).proved();
    let mut bindings = vec![call.x.binding.clone()];
    bindings.extend(both.map(Binding::Scratch));
    let params = vec![param(columns)?, param(call.m)?, param(columns.div_ceil(32) * 8)?];
    step.dispatch(shader, bindings, params, fold((blocks * 8).div_ceil(64))?);
    Ok(both)
}
