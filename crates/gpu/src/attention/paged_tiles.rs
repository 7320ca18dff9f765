//! Prompts in `PagedAttention`: tiles of the rows of each sequence, which share loads of its keys.

use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::flash::{CONFIGS as FLASH_CONFIGS, FlashConfig, KeyLayout};
use super::paged_operands::{
    BLOCKS, CacheElement, KEYS, LENGTHS, PagedAttentionNode, PagedRunLengths, PagedSizes, STARTS,
    VALUES, step_of, stored,
};
use super::tiles::{self, CONFIGS as TILES_CONFIGS, TilesConfig};
use crate::choices::label;
use crate::device::KernelShader;
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use galatea_runtime::NodeShapes;

/// Computes the rows of sequences that have more than `few`.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn tiles(
    paged: &PagedAttentionNode,
    shapes: &NodeShapes,
    run: &PagedRunLengths,
    few: usize,
    tile: Option<AttentionTile>,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let cache = stored(shapes.dtype(KEYS)?)?;
    let PagedSizes { shared_heads, key_width, value_width } = run.sizes;
    let queries = run.rows * shared_heads;
    let kv_heads = paged.op.kv_num_heads;
    let tile = match tile {
        Some(tile) => tile,
        None => match flash(paged, shapes, run)? {
            Some(config) => AttentionTile::Flash(config),
            None => AttentionTile::Plain(TilesConfig::choose(queries / run.sequences.max(1))),
        },
    };
    let (rows, parts, shader) = match tile {
        AttentionTile::Flash(config) => {
            let own = own(shapes, run, &cache, KeyLayout::Blocks)?;
            let widths = [key_width, value_width];
            let shader = config.shader(&paged.capabilities, widths, KeyLayout::Blocks, own)?;
            (config.rows, 1, shader)
        }
        AttentionTile::Plain(config) => plain(shapes, run, &cache, config)?,
    };
    let mut bindings =
        vec![ShaderBinding::Input(0), ShaderBinding::Output(1), ShaderBinding::Output(2)];
    bindings.extend([STARTS, LENGTHS, BLOCKS].map(ShaderBinding::Input));
    bindings.push(ShaderBinding::Output(0));
    if cache.name == "i8" {
        bindings.extend([ShaderBinding::Output(3), ShaderBinding::Output(4)]);
    }
    // The last tile of each sequence may be short.
    let most_tiles = queries.div_ceil(rows) + run.sequences;
    let lengths = [run.rows, run.sequences, run.most, kv_heads, key_width, value_width];
    let more = [run.block, run.count, paged.op.window, shared_heads, most_tiles, parts, few];
    let all = lengths.into_iter().chain(more).map(param);
    let mut params: Vec<u32> = all.collect::<Result<_, _>>()?;
    params.extend([paged.scale(key_width).to_bits(), paged.op.softcap.to_bits()]);
    step.dispatch(shader, bindings, params, fold(most_tiles * parts * kv_heads)?);
    Ok(())
}

/// A way to compute tiles.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttentionTile {
    /// By FP32, on any device.
    Plain(TilesConfig),
    /// By cooperative matrices of FP16.
    Flash(FlashConfig),
}

impl AttentionTile {
    pub(super) fn label(&self) -> String {
        match self {
            Self::Plain(own) => format!("tiles({})", label(own)),
            Self::Flash(own) => format!("flash({})", label(own)),
        }
    }
}

/// The tiles that are worth measuring for a run.
///
/// # Errors
/// Fails when an operand is missing.
pub(super) fn sensible(
    paged: &PagedAttentionNode,
    shapes: &NodeShapes,
    run: &PagedRunLengths,
) -> Result<Vec<AttentionTile>, String> {
    let PagedSizes { shared_heads, key_width, value_width } = run.sizes;
    let matrices = takes_matrices(paged, shapes, run)?;
    let queries = run.longest() * shared_heads;
    let flash = FLASH_CONFIGS.iter().filter(|own| {
        let widths = [key_width, value_width];
        let filled = own.rows <= 2 * queries.max(8);
        matrices && filled && own.fits_blocks(&paged.capabilities, widths)
    });
    let plain = TILES_CONFIGS.iter().map(|own| AttentionTile::Plain(*own));
    Ok(plain.chain(flash.map(|own| AttentionTile::Flash(*own))).collect())
}

/// Returns whether operands may be FP16 and four of them lie together.
fn takes_matrices(
    paged: &PagedAttentionNode,
    shapes: &NodeShapes,
    run: &PagedRunLengths,
) -> Result<bool, String> {
    let PagedSizes { key_width, value_width, .. } = run.sizes;
    let narrow = |dtype| matches!(dtype, DataType::Fp16 | DataType::Int8);
    let stored = [shapes.dtype(0)?, shapes.dtype(KEYS)?, shapes.dtype(VALUES)?];
    let halves = paged.halves || stored.into_iter().all(narrow);
    Ok(halves && [run.block, key_width, value_width].iter().all(|len| len % 4 == 0))
}

/// Returns the configuration in which cooperative matrices compute the step, if they can.
fn flash(
    paged: &PagedAttentionNode,
    shapes: &NodeShapes,
    run: &PagedRunLengths,
) -> Result<Option<FlashConfig>, String> {
    if !takes_matrices(paged, shapes, run)? {
        return Ok(None);
    }
    let PagedSizes { shared_heads, key_width, value_width } = run.sizes;
    let queries = run.rows * shared_heads;
    let widths = [key_width, value_width];
    let heads = paged.op.kv_num_heads;
    Ok(FlashConfig::choose_blocks(&paged.capabilities, widths, queries, heads))
}

/// By FP32, on any device: queries of a tile, parts of the columns, and the shader.
fn plain(
    shapes: &NodeShapes,
    run: &PagedRunLengths,
    cache: &CacheElement,
    config: TilesConfig,
) -> Result<(usize, usize, KernelShader), String> {
    let (quads, parts) = tiles::columns(run.sizes.value_width);
    let name = format!("paged_attention-{}-tiles", cache.name);
    let shader = tiles::shader(name, config, quads, own(shapes, run, cache, KeyLayout::Rows)?)?;
    Ok((config.rows(), parts, shader))
}

/// Returns the template context of the operands. Those for matrices are read four queries at a time, and halves
/// as such.
fn own(
    shapes: &NodeShapes,
    run: &PagedRunLengths,
    cache: &CacheElement,
    matrices: KeyLayout,
) -> Result<Value, String> {
    let matrices = matrices == KeyLayout::Blocks;
    let key_step = step_of(run.block);
    let value_step = step_of(run.sizes.value_width);
    let mut q = wgsl_float(shapes.dtype(0)?)?.to_owned();
    let mut y = wgsl_float(shapes.output_dtype(0)?)?.to_owned();
    let mut words =
        [cache.words[usize::from(key_step == 1)], cache.words[usize::from(value_step == 1)]];
    if matrices {
        (q, y) = (format!("vec4<{q}>"), format!("vec4<{y}>"));
        if cache.name == "f16" {
            words = ["vec4<f16>"; 2];
        }
    }
    let [key_word, value_word] = words;
    Ok(context! {
        paged => true,
        mask => "",
        q,
        y,
        cache => cache.name,
        key_word,
        value_word,
        key_quads => key_step == 4,
        value_quads => value_step == 4,
    })
}
