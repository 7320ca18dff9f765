//! Constants, and those that are stored with fewer bits than they are computed with.

use std::sync::Arc;

use galatea_graph::limits;
use galatea_tensor::{DataType, Tensor, checked_elements};

use super::LoweringRow;
use super::elementwise::named_type;
use super::lowering::{BoundName, ProgramLowering, Result};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{MilElement, MilType, MilValue};

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("const", constant),
    LoweringRow::since(6, "constexpr_affine_dequantize", affine),
    LoweringRow::since(6, "constexpr_cast", cast),
    LoweringRow::since(6, "constexpr_lut_to_dense", look_up),
    LoweringRow::since(6, "constexpr_sparse_to_dense", spread),
    LoweringRow::since(8, "constexpr_blockwise_shift_scale", blockwise),
    LoweringRow::since(8, "constexpr_lut_to_sparse", sparse_look_up),
    LoweringRow::since(8, "constexpr_sparse_blockwise_shift_scale", sparse_blockwise),
];

/// Gives an output a constant of the type that the program says.
fn give(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    index: usize,
    element: MilElement,
    tensor: Tensor,
) -> Result<()> {
    let Some((name, stated)) = op.outputs().get(index) else {
        return Err(CoreMlError::invalid("the operation has too few outputs"));
    };
    if let Some(given) = &mut low.given {
        given.push(MilType::tensor(element, tensor.shape()));
        return low.define(name, BoundName::Constant(Arc::new(MilValue::Tensor(element, tensor))));
    }
    let shape = tensor.shape();
    let fits = stated.as_tensor().is_some_and(|stated| {
        let same = |lengths: &Vec<Option<usize>>| {
            lengths.len() == shape.len()
                && lengths
                    .iter()
                    .zip(shape)
                    .all(|(stated, len)| stated.is_none_or(|one| one == *len))
        };
        stated.element == element && stated.shape.as_ref().is_none_or(same)
    });
    if !fits {
        let text =
            format!("output '{name}' is said to be {stated}, the constant is {element}{shape:?}");
        return Err(CoreMlError::invalid(text));
    }
    low.define(name, BoundName::Constant(Arc::new(MilValue::Tensor(element, tensor))))
}

fn outputs(op: &LoweredOperation<'_>, expected: usize) -> Result<()> {
    match op.outputs().len() == expected {
        true => Ok(()),
        false => Err(CoreMlError::invalid(format!(
            "the operation has {} outputs, expected {expected}",
            op.outputs().len()
        ))),
    }
}

fn constant(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 1)?;
    let Some(value) = op.attribute("val") else {
        return Err(CoreMlError::invalid("attribute 'val' is missing"));
    };
    match &**value {
        MilValue::Tensor(element, tensor) => give(low, op, 0, *element, tensor.clone()),
        other => {
            let Some((name, _)) = op.outputs().first() else { return Ok(()) };
            low.define(name, BoundName::Constant(Arc::new(other.clone())))
        }
    }
}

/// A constant operand.
fn operand(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<(MilElement, Tensor)> {
    low.tensor(op, name)?
        .ok_or_else(|| CoreMlError::invalid(format!("operand '{name}' is missing")))
}

/// The elements of an operand as numbers.
fn numbers(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(galatea_graph::converted(tensor, DataType::Fp32)?.to_vec::<f32>()?)
}

/// Numbers as a tensor of elements.
fn tensor(element: MilElement, shape: &[usize], all: Vec<f32>) -> Result<Tensor> {
    let wide = Tensor::from_vec(shape, all)?;
    Ok(galatea_graph::converted(&wide, element.stored_as())?)
}

/// The codes of an operand as positions.
fn positions(tensor: &Tensor) -> Result<Vec<usize>> {
    let all = tensor.to_i64_vec()?;
    Ok(all.into_iter().map(|code| usize::try_from(code).unwrap_or(usize::MAX)).collect())
}

/// `scale · (code - zero point)`, for the whole or by position of an axis.
fn affine(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 1)?;
    let (_, codes) = operand(low, op, "quantized_data")?;
    let (element, scale) = operand(low, op, "scale")?;
    let (_, zero) = operand(low, op, "zero_point")?;
    let axis = low.int(op, "axis")?.unwrap_or(0);
    let shape = codes.shape().to_vec();
    let axis = low.axis(axis, shape.len().max(1))?;
    let len = shape.get(axis).copied().unwrap_or(1);
    for (name, found) in [("scale", &scale), ("zero_point", &zero)] {
        if found.elements() != 1 && found.elements() != len {
            let text = format!(
                "operand '{name}' has {} elements, axis {axis} has {len}",
                found.elements()
            );
            return Err(CoreMlError::invalid(text));
        }
    }
    let inner: usize = shape.iter().skip(axis + 1).product();
    let scale = numbers(&scale)?;
    let zero = numbers(&zero)?;
    let at = |all: &[f32], index: usize| {
        let place = if all.len() == 1 { 0 } else { index / inner.max(1) % len.max(1) };
        all.get(place).copied().unwrap_or(0.0)
    };
    let value = |(index, code): (usize, f32)| at(&scale, index) * (code - at(&zero, index));
    let all = numbers(&codes)?.into_iter().enumerate().map(value).collect();
    give(low, op, 0, element, tensor(element, &shape, all)?)
}

/// FP16 that is computed with as FP32.
fn cast(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 1)?;
    let (_, source) = operand(low, op, "source_val")?;
    let dtype = named_type(low, op, "output_dtype")?;
    let element = dtype.and_then(MilElement::of);
    let element =
        element.ok_or_else(|| CoreMlError::invalid("operand 'output_dtype' is missing"))?;
    let cast = galatea_graph::converted(&source, element.stored_as())?;
    give(low, op, 0, element, cast)
}

/// How many elements a constant of a shape has: no more than a value may.
fn bounded(shape: &[usize]) -> Result<usize> {
    let count = checked_elements(shape)?;
    let most = limits::get().value_bytes;
    match count.checked_mul(size_of::<f32>()) {
        Some(bytes) if bytes <= most => Ok(count),
        _ => {
            Err(CoreMlError::invalid(format!("{count} elements, a value has {most} bytes at most")))
        }
    }
}

/// The shape that an operand of the older form says.
fn stated_shape(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<Vec<usize>> {
    let (_, shape) = operand(low, op, "shape")?;
    let shape = positions(&shape)?;
    // Before anybody makes as many elements.
    bounded(&shape)?;
    Ok(shape)
}

/// Positions in a table. Before CoreML8 their bits are packed, and there is one table.
fn look_up(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 1)?;
    let (_, indices) = operand(low, op, "indices")?;
    let (element, table) = operand(low, op, "lut")?;
    if op.opset >= 8 {
        let axis = low.int(op, "vector_axis")?;
        let found = PaletteTables::new(&indices, element, &table, axis, low)?.dense(&indices)?;
        return give(low, op, 0, element, found);
    }
    let shape = stated_shape(low, op)?;
    let narrow = match table.elements() {
        2 => MilElement::Uint1,
        4 => MilElement::Uint2,
        16 => MilElement::Uint4,
        64 => MilElement::Uint6,
        256 => MilElement::Uint8,
        other => {
            let text = format!("a table of {other} entries, expected 2, 4, 16, 64 or 256");
            return Err(CoreMlError::invalid(text));
        }
    };
    let count = checked_elements(&shape)?;
    let packed = indices.to_vec::<u8>()?;
    let expected = (count * narrow.bits()).div_ceil(8);
    if packed.len() != expected {
        let text = format!(
            "{count} positions of {} bits take {expected} bytes, found {}",
            narrow.bits(),
            packed.len()
        );
        return Err(CoreMlError::invalid(text));
    }
    let table = numbers(&table)?;
    let entry = |code: u8| table.get(usize::from(code)).copied().unwrap_or(0.0);
    let all = narrow.unpack(&packed, count).into_iter().map(entry).collect();
    give(low, op, 0, element, tensor(element, &shape, all)?)
}

/// Tables of vectors, each for a block of the positions.
struct PaletteTables {
    element: MilElement,
    /// Number of tables along each axis of the positions.
    groups: Vec<usize>,
    entries: usize,
    /// Length of a vector, and the axis that it lies along.
    width: usize,
    axis: usize,
    values: Vec<f32>,
}

impl PaletteTables {
    fn new(
        indices: &Tensor,
        element: MilElement,
        table: &Tensor,
        axis: Option<i64>,
        low: &ProgramLowering,
    ) -> Result<Self> {
        let rank = indices.rank();
        let shape = table.shape();
        let refuse = |text: &str| {
            let found = format!("{text}: positions {:?}, table {shape:?}", indices.shape());
            Err(CoreMlError::invalid(found))
        };
        let (Some(groups), Some(&[entries, width])) = (shape.get(..rank), shape.get(rank..)) else {
            return refuse("a table has two axes more than the positions");
        };
        let divides = |(len, groups): (&usize, &usize)| *groups > 0 && len.is_multiple_of(*groups);
        if !indices.shape().iter().zip(groups).all(divides) || entries == 0 || width == 0 {
            return refuse("the tables do not divide the positions");
        }
        let axis = match axis {
            Some(axis) => low.axis(axis, rank.max(1))?,
            None if width == 1 => 0,
            None => return refuse("vectors need a 'vector_axis'"),
        };
        let groups = groups.to_vec();
        let values = numbers(table)?;
        Ok(Self { element, groups, entries, width, axis, values })
    }

    /// The value at a part of a vector, for the position at an index of the positions' shape.
    fn value(&self, shape: &[usize], index: usize, code: usize, part: usize) -> f32 {
        let mut rest = index;
        let mut group = 0;
        let mut stride = 1;
        for (&len, &groups) in shape.iter().zip(&self.groups).rev() {
            let at = rest % len.max(1);
            rest /= len.max(1);
            group += at / (len / groups).max(1) * stride;
            stride *= groups;
        }
        let place = (group * self.entries + code) * self.width + part;
        match code < self.entries {
            true => self.values.get(place).copied().unwrap_or(0.0),
            false => 0.0,
        }
    }

    /// All values, the vectors laid out along their axis.
    fn dense(&self, indices: &Tensor) -> Result<Tensor> {
        let shape = indices.shape();
        let codes = positions(indices)?;
        let inner: usize = shape.iter().skip(self.axis + 1).product();
        let inner = inner.max(1);
        let mut target = shape.to_vec();
        if let Some(len) = target.get_mut(self.axis) {
            *len = len.saturating_mul(self.width);
        }
        let count = bounded(&target)?;
        let value = |index: usize| {
            // Behind the axis, the part of the vector, and all before.
            let behind = index % inner;
            let before = index / inner;
            let part = before % self.width;
            let before = before / self.width;
            let source = before * inner + behind;
            self.value(shape, source, codes.get(source).copied().unwrap_or(0), part)
        };
        tensor(self.element, &target, (0..count).map(value).collect())
    }
}

/// The places that a mask of single bits names, whose form is checked.
fn mask(found: &Tensor) -> Result<Vec<bool>> {
    Ok(found.to_vec::<u8>()?.into_iter().map(|bit| bit != 0).collect())
}

/// Values at the places of a mask, zeros elsewhere.
fn scattered(mask: &[bool], values: &[f32]) -> Result<Vec<f32>> {
    let expected = mask.iter().filter(|set| **set).count();
    if expected != values.len() {
        let text = format!("the mask has {expected} places, there are {} values", values.len());
        return Err(CoreMlError::invalid(text));
    }
    let mut next = values.iter().copied();
    Ok(mask.iter().map(|&set| if set { next.next().unwrap_or(0.0) } else { 0.0 }).collect())
}

/// Before CoreML8 the mask's bits are packed.
fn spread(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 1)?;
    let (element, values) = operand(low, op, "nonzero_data")?;
    let (_, bits) = operand(low, op, "mask")?;
    let (shape, places) = match op.opset >= 8 {
        true => (bits.shape().to_vec(), mask(&bits)?),
        false => {
            let shape = stated_shape(low, op)?;
            let count = checked_elements(&shape)?;
            let packed = bits.to_vec::<u8>()?;
            if packed.len() != count.div_ceil(8) {
                let text = format!("a mask of {} bytes for {count} elements", packed.len());
                return Err(CoreMlError::invalid(text));
            }
            let places = MilElement::Uint1.unpack(&packed, count);
            (shape, places.into_iter().map(|bit| bit != 0).collect())
        }
    };
    let all = scattered(&places, &numbers(&values)?)?;
    give(low, op, 0, element, tensor(element, &shape, all)?)
}

/// Scales (and offsets) for blocks of a shape.
struct BlockScales {
    element: MilElement,
    lengths: Vec<usize>,
    scales: Vec<f32>,
    offsets: Option<Vec<f32>>,
}

impl BlockScales {
    fn read(low: &mut ProgramLowering, op: &LoweredOperation<'_>, shape: &[usize]) -> Result<Self> {
        let (element, scale) = operand(low, op, "scale")?;
        let offset = low.tensor(op, "offset")?;
        let divides = |(len, blocks): (&usize, &usize)| *blocks > 0 && len.is_multiple_of(*blocks);
        let fits = scale.rank() == shape.len() && shape.iter().zip(scale.shape()).all(divides);
        if !fits {
            let text = format!("scales {:?} do not divide {shape:?}", scale.shape());
            return Err(CoreMlError::invalid(text));
        }
        let offsets = match offset {
            Some((_, offset)) if offset.shape() != scale.shape() => {
                let text = format!("offsets {:?} with scales {:?}", offset.shape(), scale.shape());
                return Err(CoreMlError::invalid(text));
            }
            Some((_, offset)) => Some(numbers(&offset)?),
            None => None,
        };
        Ok(Self { element, lengths: scale.shape().to_vec(), scales: numbers(&scale)?, offsets })
    }

    /// The number that a code at an index of the shape stands for.
    fn value(&self, shape: &[usize], index: usize, code: f32) -> f32 {
        let mut rest = index;
        let mut block = 0;
        let mut stride = 1;
        for (&len, &blocks) in shape.iter().zip(&self.lengths).rev() {
            let at = rest % len.max(1);
            rest /= len.max(1);
            block += at / (len / blocks).max(1) * stride;
            stride *= blocks;
        }
        let offset = self.offsets.as_ref().and_then(|all| all.get(block)).copied();
        self.scales.get(block).copied().unwrap_or(0.0) * (code - offset.unwrap_or(0.0))
    }
}

/// `scale · (code - offset)` by block.
fn blockwise(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 1)?;
    let (_, codes) = operand(low, op, "data")?;
    let shape = codes.shape().to_vec();
    let blocks = BlockScales::read(low, op, &shape)?;
    let value = |(index, code): (usize, f32)| blocks.value(&shape, index, code);
    let all = numbers(&codes)?.into_iter().enumerate().map(value).collect();
    give(low, op, 0, blocks.element, tensor(blocks.element, &shape, all)?)
}

/// Positions in tables for the places of a mask: gives the mask of the vectors, and their values.
fn sparse_look_up(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 2)?;
    let (_, bits) = operand(low, op, "indices_mask")?;
    let (_, codes) = operand(low, op, "indices_nonzero_data")?;
    let (element, table) = operand(low, op, "lut")?;
    let axis = low.int(op, "vector_axis")?;
    let places = mask(&bits)?;
    let mut next = positions(&codes)?.into_iter();
    let found = places.iter().filter(|set| **set).count();
    if found != codes.elements() {
        let text = format!("the mask has {found} places, there are {} positions", codes.elements());
        return Err(CoreMlError::invalid(text));
    }
    // Positions at every place: those that are not there are not read again.
    let all = places.iter().map(|&set| if set { next.next().unwrap_or(0) } else { 0 });
    let all: Vec<i64> = all.map(|code| i64::try_from(code).unwrap_or(i64::MAX)).collect();
    let all = Tensor::from_vec(bits.shape(), all)?;
    let tables = PaletteTables::new(&all, element, &table, axis, low)?;
    let dense = tables.dense(&all)?;
    let ones: Vec<f32> = places.iter().map(|&set| f32::from(u8::from(set))).collect();
    let wide = Tensor::from_vec(bits.shape(), ones)?;
    let wide = repeated(&wide, tables.axis, tables.width)?;
    let set: Vec<bool> = wide.to_vec::<f32>()?.into_iter().map(|bit| bit != 0.0).collect();
    let values = numbers(&dense)?.into_iter().zip(&set);
    let values: Vec<f32> = values.filter(|(_, set)| **set).map(|(value, _)| value).collect();
    let mask: Vec<u8> = set.into_iter().map(u8::from).collect();
    let mask = Tensor::from_vec(wide.shape(), mask)?;
    let count = values.len();
    give(low, op, 0, MilElement::Uint1, mask)?;
    give(low, op, 1, element, tensor(element, &[count], values)?)
}

/// A tensor with each element repeated along an axis.
fn repeated(tensor: &Tensor, axis: usize, times: usize) -> Result<Tensor> {
    let inner: usize = tensor.shape().iter().skip(axis + 1).product();
    let inner = inner.max(1);
    let all = tensor.to_vec::<f32>()?;
    let mut shape = tensor.shape().to_vec();
    if let Some(len) = shape.get_mut(axis) {
        *len = len.saturating_mul(times);
    }
    let count = bounded(&shape)?;
    let value = |index: usize| {
        let source = index / inner / times * inner + index % inner;
        all.get(source).copied().unwrap_or(0.0)
    };
    Ok(Tensor::from_vec(&shape, (0..count).map(value).collect())?)
}

/// Codes at the places of a mask, with scales by block: gives the mask and the values.
fn sparse_blockwise(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    outputs(op, 2)?;
    let (_, bits) = operand(low, op, "data_mask")?;
    let (_, codes) = operand(low, op, "nonzero_data")?;
    let shape = bits.shape().to_vec();
    let blocks = BlockScales::read(low, op, &shape)?;
    let places = mask(&bits)?;
    let codes = numbers(&codes)?;
    let indices = places.iter().enumerate().filter(|(_, set)| **set).map(|(index, _)| index);
    let indices: Vec<usize> = indices.collect();
    if indices.len() != codes.len() {
        let text =
            format!("the mask has {} places, there are {} codes", indices.len(), codes.len());
        return Err(CoreMlError::invalid(text));
    }
    let value = |(index, code): (usize, f32)| blocks.value(&shape, index, code);
    let values: Vec<f32> = indices.into_iter().zip(codes).map(value).collect();
    let count = values.len();
    let values = tensor(blocks.element, &[count], values)?;
    give(low, op, 0, MilElement::Uint1, bits)?;
    give(low, op, 1, blocks.element, values)
}
