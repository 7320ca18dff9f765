//! Convolutions.

use galatea_graph::{AttributeValue, Attributes, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes, bounded, text};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("conv", conv),
    LoweringRow::new("conv_quantized", conv_quantized),
    LoweringRow::new("conv_transpose", conv_transpose),
];

/// How a window moves over the axes of space.
pub(super) struct SpatialWindows {
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) padding: ConvPadding,
}

/// Padding of the input.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConvPadding {
    /// Padding that gives `ceil(input / stride)` results, the odd one behind.
    Same,
    /// The same with the odd one in front.
    SameLower,
    /// Lengths in front of each axis, then lengths behind each.
    Amounts(Vec<i64>),
}

impl SpatialWindows {
    /// Reads how the windows of an operation over `axes` axes of space move.
    pub(super) fn read(
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        axes: usize,
    ) -> Result<Self> {
        let strides = by_axis(low, op, "strides", axes, 1)?;
        let dilations = by_axis(low, op, "dilations", axes, 1)?;
        let kinds = ["valid", "same", "custom", "same_lower"];
        let padding = match low.choice(op, "pad_type", &kinds)? {
            0 => ConvPadding::Amounts(vec![0; 2 * axes]),
            1 => ConvPadding::Same,
            2 => ConvPadding::Amounts(amounts(low, op, axes)?),
            _ => ConvPadding::SameLower,
        };
        // Nothing but `custom` heeds it.
        op.ignore("pad");
        if let Some(bad) = strides.iter().chain(&dilations).find(|&&step| step < 1) {
            return Err(CoreMlError::invalid(format!("a stride or dilation of {bad}")));
        }
        Ok(Self { strides, dilations, padding })
    }

    /// The attributes of ONNX's operators that say the same.
    pub(super) fn attributes(&self) -> Attributes {
        let mut all = attributes([("strides", AttributeValue::Ints(self.strides.clone()))]);
        match &self.padding {
            ConvPadding::Same => all.insert("auto_pad".to_owned(), text("SAME_UPPER")),
            ConvPadding::SameLower => all.insert("auto_pad".to_owned(), text("SAME_LOWER")),
            ConvPadding::Amounts(pads) => {
                all.insert("pads".to_owned(), AttributeValue::Ints(pads.clone()))
            }
        };
        if self.dilations.iter().any(|&step| step != 1) {
            let dilations = AttributeValue::Ints(self.dilations.clone());
            all.insert("dilations".to_owned(), dilations);
        }
        all
    }
}

/// A list with a number for each axis of space, or the default for all of them.
pub(super) fn by_axis(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    axes: usize,
    default: i64,
) -> Result<Vec<i64>> {
    let found = low.ints(op, name)?.unwrap_or_else(|| vec![default; axes]);
    match found.len() == axes {
        true => Ok(found),
        false => {
            let text = format!("input '{name}' is {found:?}, expected {axes} numbers");
            Err(CoreMlError::invalid(text))
        }
    }
}

/// The parameter `pad`: in front of and behind the first axis, then the second.
fn amounts(low: &mut ProgramLowering, op: &LoweredOperation<'_>, axes: usize) -> Result<Vec<i64>> {
    let found = low.ints(op, "pad")?.unwrap_or_else(|| vec![0; 2 * axes]);
    if found.len() != 2 * axes {
        let text = format!("input 'pad' is {found:?}, expected {} numbers", 2 * axes);
        return Err(CoreMlError::invalid(text));
    }
    let front = found.iter().step_by(2);
    let behind = found.iter().skip(1).step_by(2);
    Ok(front.chain(behind).copied().collect())
}

/// The number of axes of space of an input with a batch and channels.
pub(super) fn space(low: &ProgramLowering, x: ValueId) -> Result<usize> {
    match low.rank(x)? {
        rank @ 3..=5 => Ok(rank - 2),
        rank => Err(CoreMlError::invalid(format!("x has {rank} axes, expected 3 to 5"))),
    }
}

fn conv(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let weight = low.required(op, "weight")?;
    let weight = low.cast(weight, dtype)?;
    convolve(low, op, x, weight)
}

fn convolve(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    x: ValueId,
    weight: ValueId,
) -> Result<()> {
    let dtype = low.dtype(x)?;
    let axes = space(low, x)?;
    let windows = SpatialWindows::read(low, op, axes)?;
    let mut named = windows.attributes();
    named.insert("group".to_owned(), low.int(op, "groups")?.unwrap_or(1).into());
    let bias = low.optional(op, "bias")?.map(|bias| low.cast(bias, dtype)).transpose()?;
    let result = low.node_with("Conv", &named, &[Some(x), Some(weight), bias])?;
    low.give(op, &[result])
}

/// Weights of 8 bits: `scale · code + bias` by output channel, or places in a table.
fn conv_quantized(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let codes = low.required(op, "weight")?;
    let scale = low.required(op, "quant_scale")?;
    let bias = low.required(op, "quant_bias")?;
    low.int(op, "nbits")?;
    if low.choice(op, "quantization_type", &["linear", "lut"])? != 0 {
        let text = "a conv_quantized with a table, which no converter writes";
        return Err(CoreMlError::unsupported(text));
    }
    let rank = low.rank(codes)?;
    let codes = low.cast(codes, dtype)?;
    let by_output = |low: &mut ProgramLowering, id: ValueId| {
        let id = low.cast(id, dtype)?;
        let mut shape = vec![1; rank];
        if let Some(first) = shape.first_mut() {
            *first = -1;
        }
        low.reshape(id, &shape)
    };
    let scale = by_output(low, scale)?;
    let bias = by_output(low, bias)?;
    let scaled = low.plain("Mul", &[codes, scale])?;
    let weight = low.plain("Add", &[scaled, bias])?;
    convolve(low, op, x, weight)
}

fn conv_transpose(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let axes = space(low, x)?;
    let weight = low.required(op, "weight")?;
    let weight = low.cast(weight, dtype)?;
    let windows = SpatialWindows::read(low, op, axes)?;
    let mut named = windows.attributes();
    named.insert("group".to_owned(), low.int(op, "groups")?.unwrap_or(1).into());
    if let Some(shape) = low.ints(op, "output_shape")? {
        let of_space = shape.get(2..).filter(|of_space| of_space.len() == axes);
        let of_space = of_space.ok_or_else(|| {
            CoreMlError::invalid(format!(
                "input 'output_shape' is {shape:?}, x has {axes} axes of space"
            ))
        })?;
        match &windows.padding {
            ConvPadding::Amounts(pads) => {
                let extra = missing(low, x, weight, &windows, pads, of_space)?;
                named.insert("output_padding".to_owned(), AttributeValue::Ints(extra));
            }
            _ => {
                named.insert("output_shape".to_owned(), AttributeValue::Ints(of_space.to_vec()));
            }
        }
    }
    let bias = low.optional(op, "bias")?.map(|bias| low.cast(bias, dtype)).transpose()?;
    let result = low.node_with("ConvTranspose", &named, &[Some(x), Some(weight), bias])?;
    low.give(op, &[result])
}

/// How much longer the results are said to be than the windows make them.
fn missing(
    low: &ProgramLowering,
    x: ValueId,
    weight: ValueId,
    windows: &SpatialWindows,
    pads: &[i64],
    wanted: &[i64],
) -> Result<Vec<i64>> {
    let axes = wanted.len();
    let len = |id: ValueId, axis: usize| -> Result<i64> {
        Ok(i64::try_from(low.known_len(id, axis)?).unwrap_or(i64::MAX))
    };
    let mut extra = Vec::with_capacity(axes);
    for (axis, &wanted) in wanted.iter().enumerate() {
        let at = |all: &[i64], at: usize| all.get(at).copied().unwrap_or(0);
        let input = len(x, axis + 2)?;
        let window = len(weight, axis + 2)?;
        let covered = input
            .saturating_sub(1)
            .saturating_mul(at(&windows.strides, axis))
            .saturating_add(window.saturating_sub(1).saturating_mul(at(&windows.dilations, axis)))
            .saturating_add(1)
            .saturating_sub(at(pads, axis))
            .saturating_sub(at(pads, axes + axis));
        let more = wanted.saturating_sub(covered);
        if more < 0 || more >= at(&windows.strides, axis).max(at(&windows.dilations, axis)) {
            let text = format!(
                "a result of length {wanted} on axis {axis} of space, the windows make {covered}"
            );
            return Err(CoreMlError::invalid(text));
        }
        extra.push(more);
    }
    Ok(extra)
}

/// Zeros of a type, one for each channel of `x`.
pub(super) fn filled(
    low: &mut ProgramLowering,
    x: ValueId,
    value: f64,
    dtype: DataType,
) -> Result<ValueId> {
    let channels = low.known_len(x, 1)?;
    let all = Tensor::from_vec(&[channels], vec![value; bounded(&[channels])?])?;
    let all = galatea_graph::converted(&all, dtype)?;
    Ok(low.constant(all))
}
