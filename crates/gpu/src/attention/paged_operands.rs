//! Operands of `PagedAttention`: their positions, their lengths in a run, and how caches are stored.

use galatea_graph::ops::fused::PagedAttention;
use galatea_runtime::NodeShapes;
use galatea_tensor::DataType;

use crate::device::GpuCapabilities;

/// Positions of the inputs.
pub(super) const KEYS: usize = 3;
pub(super) const VALUES: usize = 4;
pub(super) const STARTS: usize = 5;
pub(super) const LENGTHS: usize = 6;
pub(super) const BLOCKS: usize = 7;
pub(super) const KEY_SCALES: usize = 8;
pub(super) const VALUE_SCALES: usize = 9;

/// Queries of a sequence from which on tiles of them are faster than rows by themselves.
const ROWS_FOR_TILES: usize = 16;

/// Lengths that every run has.
#[derive(Clone, Copy, Debug)]
pub struct PagedSizes {
    /// Query heads of a key head.
    pub shared_heads: usize,
    /// Elements of a key.
    pub key_width: usize,
    /// Elements of a value.
    pub value_width: usize,
}

/// Elements that are loaded at once of vectors of a length.
pub(super) fn step_of(length: usize) -> usize {
    if length.is_multiple_of(4) { 4 } else { 1 }
}

/// Storage format of a cache, by its type.
pub(super) struct CacheElement {
    pub(super) name: &'static str,
    /// Elements of a word, their bits and a mask of these.
    pub(super) per_word: u32,
    pub(super) bits: u32,
    pub(super) mask: u32,
    /// WGSL types as which four elements and one are read.
    pub(super) words: [&'static str; 2],
}

pub(super) fn stored(dtype: DataType) -> Result<CacheElement, String> {
    let (name, per_word, words) = match dtype {
        DataType::Fp32 => ("f32", 1, ["vec4<f32>", "f32"]),
        DataType::Fp16 => ("f16", 2, ["vec2<u32>", "u32"]),
        DataType::Bf16 => ("bf16", 2, ["vec2<u32>", "u32"]),
        DataType::Int8 => ("i8", 4, ["u32", "u32"]),
        other => return Err(format!("a cache of {other}")),
    };
    let bits = 32 / per_word;
    let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
    Ok(CacheElement { name, per_word, bits, mask, words })
}

/// The operator on a device.
pub(super) struct PagedAttentionNode {
    pub(super) op: PagedAttention,
    pub(super) capabilities: GpuCapabilities,
    /// True if operands may be rounded to FP16.
    pub(super) halves: bool,
}

impl PagedAttentionNode {
    #[allow(clippy::cast_precision_loss, reason = "the length of a key is small")]
    pub(super) fn scale(&self, key_width: usize) -> f32 {
        self.op.scale.unwrap_or_else(|| 1.0 / (key_width as f32).sqrt())
    }
}

/// The lengths of a run.
pub(super) struct PagedRunLengths {
    pub(super) rows: usize,
    pub(super) sequences: usize,
    pub(super) most: usize,
    pub(super) count: usize,
    pub(super) block: usize,
    pub(super) sizes: PagedSizes,
}

impl PagedRunLengths {
    /// The most rows of a sequence that are computed by themselves; with more, tiles share loads of keys.
    pub(super) fn few(&self) -> usize {
        ((ROWS_FOR_TILES - 1) / self.sizes.shared_heads).max(1)
    }

    /// The most rows that a sequence may have.
    pub(super) fn longest(&self) -> usize {
        (self.rows + 1).saturating_sub(self.sequences.max(1))
    }

    pub(super) fn new(op: &PagedAttention, shapes: &NodeShapes) -> Result<Self, String> {
        let (keys, values) = (shapes.input(KEYS)?, shapes.input(VALUES)?);
        let (&[count, heads, key_width, block], &[n, h, s, value_width]) = (keys, values) else {
            return Err(format!("caches of shapes {keys:?} and {values:?}"));
        };
        if [n, h, s] != [count, heads, block] || heads != op.kv_num_heads || block == 0 {
            return Err(format!("caches {keys:?} and {values:?} for {} heads", op.kv_num_heads));
        }
        let &[rows, columns] = shapes.input(0)? else { return Err("Q has two axes".into()) };
        let own = [[rows, heads * key_width], [rows, heads * value_width]];
        if columns != op.num_heads * key_width || [shapes.input(1)?, shapes.input(2)?] != own {
            return Err("Q, K and V do not fit the caches".into());
        }
        let &[sequences, most] = shapes.input(BLOCKS)? else {
            return Err("blocks have two axes".into());
        };
        let borders = shapes.input(STARTS)? == [sequences + 1];
        if !borders || shapes.input(LENGTHS)? != [sequences] {
            return Err(format!("starts and lengths for {sequences} sequences"));
        }
        if shapes.dtype(KEYS)? == DataType::Int8 {
            let scales = [count, heads, block];
            if shapes.input(KEY_SCALES)? != scales || shapes.input(VALUE_SCALES)? != scales {
                return Err(format!("scales of another shape than {scales:?}"));
            }
        }
        let shared_heads = op.num_heads / op.kv_num_heads;
        let sizes = PagedSizes { shared_heads, key_width, value_width };
        Ok(Self { rows, sequences, most, count, block, sizes })
    }
}
