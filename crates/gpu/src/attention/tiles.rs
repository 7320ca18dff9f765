//! The kernel for tiles of queries, which whole tensors and blocks of caches share.

use minijinja::{Value, context};

use crate::device::KernelShader;
use crate::template::render;

/// Tile sizes of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TilesConfig {
    /// Queries of each thread: 4 or 1. A tile has sixteen times as many.
    pub per: usize,
}

/// Configurations that a tuner may choose; the first is the default.
pub const CONFIGS: &[TilesConfig] = &[TilesConfig { per: 4 }, TilesConfig { per: 1 }];

impl TilesConfig {
    /// The one for so many queries that share keys: few of them leave large tiles empty.
    pub(super) fn choose(queries: usize) -> Self {
        let [large, small] = [CONFIGS[0], TilesConfig { per: 1 }];
        if queries > small.rows() * 2 { large } else { small }
    }

    /// Queries of a tile.
    pub(super) fn rows(self) -> usize {
        16 * self.per
    }
}

/// Fours of columns of values that a workgroup computes, and how many workgroups share the columns.
pub(super) fn columns(width: usize) -> (usize, usize) {
    (width.clamp(1, 256).div_ceil(64) * 16, width.div_ceil(256))
}

/// Keys whose values are there at a time: what fits beside the rest, and divides a tile.
fn slice(quads: usize) -> usize {
    match quads {
        16 => 32,
        32 => 16,
        _ => 8,
    }
}

/// The shader of a tile; `own` is what it is given besides the tile's sizes.
///
/// # Errors
/// Fails when the template is wrong.
pub(super) fn shader(
    name: String,
    config: TilesConfig,
    quads: usize,
    own: Value,
) -> Result<KernelShader, String> {
    let sizes = context! {
        per => config.per,
        quads,
        blocks => quads / 16,
        slice => slice(quads),
    };
    let source = render(include_str!("tiles.wgsl"), context!(..sizes, ..own))?;
    Ok(KernelShader::new(name, source))
}
