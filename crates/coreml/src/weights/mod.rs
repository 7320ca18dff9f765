//! How weights are stored: with fewer bits than they are computed with.
//!
//! Each form is an operation `constexpr_*` that makes the constant when the program is loaded. Before
//! CoreML8 their operands are attributes, bits packed; from then on they are inputs.

mod palette;

use std::sync::Arc;

use galatea_formats::coreml::mil::{
    MilArgument, MilBuilder, MilElement, MilOperation, MilValue, MilVar,
};
use galatea_graph::converted;
use galatea_tensor::{DataType, OrderedMap, Tensor};

use super::unwritable::{Result, UnwritableNode, small_all};

/// Constants with fewer elements are not worth an operation, as coremltools has it.
const MIN_ELEMENTS: usize = 2048;

/// How weights are stored in a package.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum WeightCompression {
    /// Stored in the type of the computation.
    #[default]
    None,
    /// 8 bits, with a scale for each output channel.
    Int8,
    /// 4 bits, with a scale for each block of so many input channels of an output channel.
    Int4 {
        /// Input channels of a block, with all taps of a window. The format has equal blocks only:
        /// where it does not divide the channels, the nearest number that does counts.
        block: usize,
    },
    /// Places in a table of 2 to the power of `bits` values, which k-means finds; a table for each
    /// `group` output channels, or one for all where it is 0.
    Palette {
        /// 1, 2, 3, 4, 6 or 8.
        bits: u32,
        /// Output channels that share a table; the nearest number that divides the channels counts.
        group: usize,
    },
    /// This share of the elements, those nearest to zero, is left out; a mask says which.
    Sparse {
        /// From 0 to 1.
        share: f32,
    },
}

impl WeightCompression {
    /// The oldest set of operators that has the form.
    #[must_use]
    pub fn oldest_opset(self) -> u32 {
        match self {
            Self::None => 5,
            Self::Int8 | Self::Sparse { .. } => 6,
            Self::Palette { bits: 3, .. } | Self::Palette { group: 1.., .. } => 8,
            Self::Palette { .. } => 6,
            Self::Int4 { .. } => 8,
        }
    }

    /// The constant as an operation that makes it of compressed ones; none where it is stored as it is.
    pub(super) fn apply(
        self,
        builder: &mut MilBuilder,
        name: &str,
        element: MilElement,
        tensor: &Tensor,
    ) -> Result<Option<MilVar>> {
        let floats = matches!(element, MilElement::Fp16 | MilElement::Fp32);
        let worth = tensor.rank() >= 2 && tensor.elements() >= MIN_ELEMENTS;
        if self == Self::None || !floats || !worth {
            return Ok(None);
        }
        if builder.opset() < self.oldest_opset() {
            let needed = self.oldest_opset();
            let found = builder.opset();
            let text = format!(
                "this form of weights came with CoreML{needed}, the package is CoreML{found}"
            );
            return Err(UnwritableNode(text));
        }
        let weights = CompressibleWeights::new(tensor, element)?;
        let operation = match self {
            Self::None => return Ok(None),
            Self::Int8 => weights.by_channel()?,
            Self::Int4 { block } => weights.by_block(block)?,
            Self::Palette { bits, group } => weights.palette(bits, group, builder.opset())?,
            Self::Sparse { share } => weights.sparse(share, builder.opset())?,
        };
        Ok(Some(builder.compressed(operation, name, element, &weights.shape)?))
    }
}

/// Weights that are being compressed: their first axis is that of the output channels.
struct CompressibleWeights {
    element: MilElement,
    shape: Vec<usize>,
    values: Vec<f32>,
}

fn failed(error: impl std::fmt::Display) -> UnwritableNode {
    UnwritableNode(error.to_string())
}

/// Elements of a stored type as a constant.
fn stored<T: galatea_tensor::Element>(
    element: MilElement,
    shape: &[usize],
    all: Vec<T>,
) -> Result<MilValue> {
    Ok(MilValue::Tensor(element, Tensor::from_vec(shape, all).map_err(failed)?))
}

fn attributes(operator: &str, all: Vec<(&str, MilValue)>) -> MilOperation {
    let named = all.into_iter().map(|(name, value)| (name.to_owned(), Arc::new(value)));
    MilOperation {
        operator: operator.to_owned(),
        attributes: named.collect(),
        ..MilOperation::default()
    }
}

fn inputs(operator: &str, all: Vec<(&str, MilValue)>) -> MilOperation {
    let named = all
        .into_iter()
        .map(|(name, value)| (name.to_owned(), vec![MilArgument::Value(Arc::new(value))]));
    let inputs: OrderedMap<String, Vec<MilArgument>> = named.collect();
    MilOperation { operator: operator.to_owned(), inputs, ..MilOperation::default() }
}

/// The divisor of a length that is nearest to a wanted one by their ratio; of two the smaller.
fn nearest_divisor(length: usize, wanted: usize) -> usize {
    let length = length.max(1);
    let ratio = |divisor: usize| {
        let (less, more) = (divisor.min(wanted), divisor.max(wanted));
        more as f64 / less.max(1) as f64
    };
    let divisors = (1..=length).filter(|&divisor| length.is_multiple_of(divisor));
    divisors.min_by(|&a, &b| ratio(a).total_cmp(&ratio(b))).unwrap_or(length)
}

/// The nearest whole number within bounds.
#[allow(clippy::cast_possible_truncation, reason = "bounds are those of the type")]
fn code(value: f32, least: f32, most: f32) -> i8 {
    value.round_ties_even().clamp(least, most) as i8
}

impl CompressibleWeights {
    fn new(tensor: &Tensor, element: MilElement) -> Result<Self> {
        let wide = converted(tensor, DataType::Fp32).map_err(failed)?;
        let values = wide.to_vec::<f32>().map_err(failed)?;
        Ok(Self { element, shape: tensor.shape().to_vec(), values })
    }

    fn channels(&self) -> usize {
        self.shape.first().copied().unwrap_or(1).max(1)
    }

    /// Numbers in the type that the weights are computed in.
    fn floats(&self, shape: &[usize], all: Vec<f32>) -> Result<MilValue> {
        let wide = Tensor::from_vec(shape, all).map_err(failed)?;
        let narrow = converted(&wide, self.element.stored_as()).map_err(failed)?;
        Ok(MilValue::Tensor(self.element, narrow))
    }

    /// A scale as the program holds it: codes are counted in what it is after rounding.
    fn rounded(&self, scale: f32) -> f32 {
        let least = match self.element {
            MilElement::Fp16 => galatea_tensor::f16::MIN_POSITIVE.to_f32(),
            _ => f32::MIN_POSITIVE,
        };
        let scale = scale.max(least);
        match self.element {
            MilElement::Fp16 => galatea_tensor::f16::from_f32(scale).to_f32(),
            _ => scale,
        }
    }

    /// Codes of blocks of so many neighbours, and the blocks' scales.
    fn coded(&self, block: usize, most: f32) -> (Vec<i8>, Vec<f32>) {
        let mut codes = Vec::with_capacity(self.values.len());
        let mut scales = Vec::new();
        for block in self.values.chunks(block.max(1)) {
            let largest = block.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let scale = self.rounded(largest / most);
            codes.extend(block.iter().map(|value| code(value / scale, -most, most)));
            scales.push(scale);
        }
        (codes, scales)
    }

    fn by_channel(&self) -> Result<MilOperation> {
        let (codes, scales) = self.coded(self.values.len() / self.channels(), 127.0);
        let channels = self.channels();
        Ok(attributes(
            "constexpr_affine_dequantize",
            vec![
                ("quantized_data", stored(MilElement::Int8, &self.shape, codes)?),
                ("zero_point", stored(MilElement::Int8, &[channels], vec![0_i8; channels])?),
                ("scale", self.floats(&[channels], scales)?),
                ("axis", stored(MilElement::Int32, &[], vec![0_i32])?),
            ],
        ))
    }

    /// Blocks lie along the second axis, that of the input channels, and have all taps of a window.
    fn by_block(&self, block: usize) -> Result<MilOperation> {
        if block == 0 {
            return Err(UnwritableNode("blocks of no channels".into()));
        }
        let along = self.shape.get(1).copied().unwrap_or(1);
        let length = nearest_divisor(along, block);
        let taps: usize = self.shape.iter().skip(2).product();
        let (codes, scales) = self.coded(length * taps, 7.0);
        let mut shape = vec![1; self.shape.len()];
        if let [channels, blocks, ..] = shape.as_mut_slice() {
            *channels = self.channels();
            *blocks = along / length;
        }
        Ok(inputs(
            "constexpr_blockwise_shift_scale",
            vec![
                ("data", stored(MilElement::Int4, &self.shape, codes)?),
                ("scale", self.floats(&shape, scales)?),
            ],
        ))
    }

    fn palette(&self, bits: u32, group: usize, opset: u32) -> Result<MilOperation> {
        let narrow = match bits {
            1 => MilElement::Uint1,
            2 => MilElement::Uint2,
            3 => MilElement::Uint3,
            4 => MilElement::Uint4,
            6 => MilElement::Uint6,
            8 => MilElement::Uint8,
            other => return Err(UnwritableNode(format!("palettes of {other} bits"))),
        };
        let entries = 1_usize << bits;
        let groups = match group {
            0 => 1,
            group => self.channels() / nearest_divisor(self.channels(), group),
        };
        let part = self.values.len() / groups;
        let mut codes = Vec::with_capacity(self.values.len());
        let mut tables = Vec::new();
        for part in self.values.chunks(part.max(1)) {
            let table = palette::table(part, entries);
            // Entries are what the program holds: places are chosen by what they are after rounding.
            let table: Vec<f32> = table.into_iter().map(|value| self.value(value)).collect();
            codes.extend(palette::places(part, &table));
            tables.extend(table);
        }
        if opset >= 8 {
            let mut shape = vec![1; self.shape.len() + 2];
            if let [first, .., count, _] = shape.as_mut_slice() {
                (*first, *count) = (groups, entries);
            }
            return Ok(inputs(
                "constexpr_lut_to_dense",
                vec![
                    ("indices", stored(narrow, &self.shape, codes)?),
                    ("lut", self.floats(&shape, tables)?),
                ],
            ));
        }
        let packed = narrow.pack(&codes);
        Ok(attributes(
            "constexpr_lut_to_dense",
            vec![
                ("indices", stored(MilElement::Uint8, &[packed.len()], packed)?),
                ("lut", self.floats(&[entries], tables)?),
                ("shape", self.lengths()?),
            ],
        ))
    }

    /// A number as the program holds it.
    fn value(&self, value: f32) -> f32 {
        match self.element {
            MilElement::Fp16 => galatea_tensor::f16::from_f32(value).to_f32(),
            _ => value,
        }
    }

    fn sparse(&self, share: f32, opset: u32) -> Result<MilOperation> {
        let mut sizes: Vec<f32> = self.values.iter().map(|value| value.abs()).collect();
        sizes.sort_by(f32::total_cmp);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        #[allow(
            clippy::cast_precision_loss,
            reason = "which of two equal elements goes is of no account"
        )]
        let dropped = (f64::from(share.clamp(0.0, 1.0)) * sizes.len() as f64) as usize;
        let limit = dropped.checked_sub(1).and_then(|at| sizes.get(at)).copied();
        let stays = |value: &f32| limit.is_none_or(|limit| value.abs() > limit) && *value != 0.0;
        let mask: Vec<u8> = self.values.iter().map(|value| u8::from(stays(value))).collect();
        let kept: Vec<f32> = self.values.iter().copied().filter(|value| stays(value)).collect();
        let count = kept.len();
        let kept = self.floats(&[count], kept)?;
        if opset >= 8 {
            let mask = stored(MilElement::Uint1, &self.shape, mask)?;
            let all = vec![("nonzero_data", kept), ("mask", mask)];
            return Ok(inputs("constexpr_sparse_to_dense", all));
        }
        let packed = MilElement::Uint1.pack(&mask);
        Ok(attributes(
            "constexpr_sparse_to_dense",
            vec![
                ("nonzero_data", kept),
                ("mask", stored(MilElement::Uint8, &[packed.len()], packed)?),
                ("shape", self.lengths()?),
            ],
        ))
    }

    /// The shape as the older forms have it.
    fn lengths(&self) -> Result<MilValue> {
        let unsigned = |len: i32| u32::try_from(len).unwrap_or(0);
        let lengths = small_all(&self.shape)?.into_iter().map(unsigned).collect();
        stored::<u32>(MilElement::Uint32, &[self.shape.len()], lengths)
    }
}
