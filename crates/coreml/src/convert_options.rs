//! Options of packages.

use galatea_tensor::{OrderedMap, OrderedSet};

use galatea_graph::rewrite::RewriteLevel;
use galatea_runtime::quantize::AffineScale;

use super::weights::WeightCompression;

/// Options of a package.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// True if floats are computed in FP16; in FP32 otherwise, which the Neural Engine does not take.
    pub half: bool,
    /// True if floats of a program of FP16 are FP16 in its inputs and outputs too, from version 7 of the
    /// format on; they are FP32 otherwise.
    pub half_border: bool,
    /// Version of the format: 6 (macOS 12) to 9 (macOS 15).
    pub specification: i32,
    /// Numbers that symbols of the inputs' shapes stand for, by symbol. A symbol without one is a length
    /// that each run brings.
    pub lengths: OrderedMap<String, usize>,
    /// Sets of numbers for the symbols, of which each run brings one; any up to `longest` where empty.
    pub buckets: Vec<OrderedMap<String, usize>>,
    /// The most that a length is which each run brings.
    pub longest: usize,
    /// Shapes of inputs by name, in place of those that the graph declares.
    pub shapes: OrderedMap<String, Vec<usize>>,
    /// How weights are stored.
    pub compression: WeightCompression,
    /// Activations of 8 bits.
    pub activations: Int8Activations,
    /// Nodes that are computed in FP32 where the others are FP16, by their first results.
    pub islands: OrderedSet<String>,
    /// How far the graph is rewritten before.
    pub level: RewriteLevel,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            half: true,
            half_border: false,
            specification: 9,
            lengths: OrderedMap::new(),
            buckets: Vec::new(),
            longest: 2048,
            shapes: OrderedMap::new(),
            compression: WeightCompression::None,
            activations: Int8Activations::default(),
            islands: OrderedSet::new(),
            level: RewriteLevel::O2,
        }
    }
}

/// 8-bit quantization of activations, by their names in the graph that a package is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Int8Activations {
    /// Scale and zero point of each value.
    pub scales: OrderedMap<String, AffineScale>,
    /// Nodes that read floats all the same: their names, operators, or constants that they read.
    pub exclude: Vec<String>,
}
