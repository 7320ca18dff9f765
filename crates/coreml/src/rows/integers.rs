//! Products of integers of 8 bits that are summed in 32.
//!
//! A program multiplies floats, and FP32 holds every integer up to 2^24: as long as no sum of the absolute
//! values of the products exceeds that, each step of the product is exact in whatever order it is summed.
//! Longer sums are cut into pieces that are, and these are added as integers. FP16 is exact up to 2048 only,
//! so that these rows compute in FP32 whatever the precision of the program.

use std::sync::Arc;

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::ops::convolution::ConvInteger;
use galatea_graph::{Node, ValueId};
use galatea_tensor::DataType;

use super::EmitRow;
use super::parts::DecomposedNode;
use super::quantized::dequantized;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse};

const SUMS: &str = "sums of products of integers exceed what FP16 holds";
const RANGE: &str = "codes and their scale are exact in FP32 only";

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("MatMulInteger", mat_mul).wide(SUMS),
    EmitRow::onnx("ConvInteger", convolution).wide(SUMS),
    EmitRow::onnx("DynamicQuantizeLinear", quantize).wide(RANGE),
    EmitRow::onnx("MatMulIntegerToFloat", to_float).of("com.microsoft"),
    EmitRow::onnx("DynamicQuantizeMatMul", dynamic).of("com.microsoft"),
];

/// Beyond this FP32 leaves integers out.
const EXACT: u64 = 1 << 24;

/// The most that a code differs from its zero point where nothing is known of either.
const MOST: u64 = 255;

/// Integers that are known before a run.
fn known(emit: &ProgramEmitter<'_>, node: &Node, at: usize) -> Option<(Vec<i64>, Vec<usize>)> {
    let tensor = emit.known(node, at)?;
    Some((tensor.to_i64_vec().ok()?, tensor.shape().to_vec()))
}

/// The most that an element of the input `at` differs from its zero point, the input `zero`.
fn reach(emit: &ProgramEmitter<'_>, node: &Node, at: usize, zero: usize) -> Result<u64> {
    let unsigned = emit.dtype(emit.input(node, at)?)? == DataType::Uint8;
    let (low, high) = if unsigned { (0, 255) } else { (-128, 127) };
    let zeros = match node.input(zero) {
        None => Some(vec![0]),
        Some(_) => known(emit, node, zero).map(|(all, _)| all),
    };
    let Some(zeros) = zeros else { return Ok(MOST) };
    let far = zeros.iter().map(|&zero| (zero - low).max(high - zero).unsigned_abs());
    Ok(far.max().unwrap_or(MOST))
}

/// Codes of the input `at` less their zero points, the input `zero`, as floats. Several zero points lie along
/// `axis`.
fn centred(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    zero: usize,
    axis: i64,
) -> Result<ValueId> {
    let x = parts.input(emit, node, at)?;
    let zero = parts.optional(emit, node, zero)?;
    // Several zero points need as many scales.
    let count = zero.map_or(Ok(1), |zero| parts.known_elements(zero))?;
    if zero.is_none_or(|zero| parts.is_constant(zero)) && parts.is_constant(x) {
        let shape = if count == 1 { Vec::new() } else { vec![count] };
        let zero = zero.map(|zero| match count {
            1 => parts.reshape(zero, &[]),
            _ => Ok(zero),
        });
        let zero = zero.transpose()?;
        let one = parts.floats(&shape, vec![1.0; count])?;
        return dequantized(parts, x, one, zero, axis);
    }
    let x = parts.cast(x, DataType::Fp32)?;
    let Some(zero) = zero else { return Ok(x) };
    let zero = parts.cast(zero, DataType::Fp32)?;
    let zero = match (count, axis) {
        (1, _) => parts.reshape(zero, &[])?,
        (_, -1) => zero,
        (_, -2) => parts.unsqueeze(zero, &[1])?,
        _ => return refuse("several zero points that are known in a run only"),
    };
    parts.plain("Sub", &[x, zero])
}

/// In how many pieces the sums over `length` products are exact: `most(start, end)` is the largest sum of
/// absolute values of what the other side has there.
fn pieces(
    length: usize,
    reach: u64,
    most: impl Fn(usize, usize) -> u64,
) -> Option<Vec<(usize, usize)>> {
    for count in 1..=length.max(1) {
        let size = length.div_ceil(count).max(1);
        let cut: Vec<(usize, usize)> =
            (0..length).step_by(size).map(|start| (start, (start + size).min(length))).collect();
        if cut.iter().all(|&(start, end)| most(start, end).saturating_mul(reach) < EXACT) {
            return Some(cut);
        }
    }
    None
}

/// The largest sum of absolute values of a column of a matrix less its zero point, between two rows.
fn column_sums(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    length: usize,
) -> impl Fn(usize, usize) -> u64 {
    let found = known(emit, node, 1).filter(|(_, shape)| shape.len() == 2);
    let zeros = match node.input(3) {
        None => Some(vec![0]),
        Some(_) => known(emit, node, 3).map(|(all, _)| all),
    };
    let found = found.zip(zeros).filter(|((all, _), _)| all.len() >= length);
    move |start, end| {
        let Some(((all, shape), zeros)) = &found else {
            return MOST.saturating_mul(u64::try_from(end - start).unwrap_or(u64::MAX));
        };
        let columns = shape[1];
        let mut sums = vec![0_u64; columns];
        for row in all[start * columns..end * columns].chunks(columns.max(1)) {
            for ((sum, value), column) in sums.iter_mut().zip(row).zip(0..) {
                let zero = zeros.get(column).or(zeros.first()).copied().unwrap_or(0);
                *sum += (value - zero).unsigned_abs();
            }
        }
        sums.into_iter().max().unwrap_or(0)
    }
}

fn mat_mul(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let of_a = emit.rank(emit.input(node, 0)?)?;
    let of_b = emit.rank(emit.input(node, 1)?)?;
    if of_a == 0 || of_b == 0 {
        return refuse("a product of numbers without axes");
    }
    let length = emit.known_length(emit.input(node, 0)?, of_a - 1)?;
    let reach = reach(emit, node, 0, 2)?;
    let Some(cut) = pieces(length, reach, column_sums(emit, node, length)) else {
        return refuse("products beyond what FP32 holds");
    };
    let mut parts = DecomposedNode::new();
    let a = centred(&mut parts, emit, node, 0, 2, -2)?;
    let b = centred(&mut parts, emit, node, 1, 3, -1)?;
    let down = if of_b == 1 { 0 } else { -2 };
    let whole = cut.len() == 1;
    let mut sum = None;
    for (start, end) in cut {
        let mut x = a;
        let mut y = b;
        if !whole {
            x = parts.slice(a, -1, start, end, 1)?;
            y = parts.slice(b, down, start, end, 1)?;
        }
        let product = parts.plain("MatMul", &[x, y])?;
        let product = parts.cast(product, DataType::Int64)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => parts.plain("Add", &[sum, product])?,
        });
    }
    match sum {
        Some(sum) => parts.write(emit, &[sum]),
        None => refuse("a product over no elements"),
    }
}

fn convolution(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ConvInteger>() else {
        return refuse("a convolution of another kind");
    };
    let shape = emit.shape(emit.input(node, 1)?)?;
    let &[filters, channels, ..] = shape.as_slice() else {
        return refuse(format!("weights of shape {shape:?}"));
    };
    let window: usize = shape[2..].iter().product();
    let weights = known(emit, node, 1).map(|(all, _)| all);
    let zeros = match node.input(3) {
        None => Some(vec![0]),
        Some(_) => known(emit, node, 3).map(|(all, _)| all),
    };
    let found = weights.zip(zeros);
    // Of the filters' channels from one to before another.
    let most = |start: usize, end: usize| {
        let count = u64::try_from((end - start) * window).unwrap_or(u64::MAX);
        let Some((all, zeros)) = &found else { return MOST.saturating_mul(count) };
        let of = |filter: usize| {
            let first = filter * channels * window;
            let zero = zeros.get(filter).or(zeros.first()).copied().unwrap_or(0);
            let all = &all[first + start * window..first + end * window];
            all.iter().map(|value| (value - zero).unsigned_abs()).sum()
        };
        (0..filters).map(of).max().unwrap_or(0)
    };
    let reach = reach(emit, node, 0, 2)?;
    let cut = pieces(channels, reach, most);
    let Some(cut) = cut.filter(|cut| cut.len() == 1 || operator.conv.group == 1) else {
        return refuse("sums of products beyond what FP32 holds");
    };
    let mut parts = DecomposedNode::new();
    let x = centred(&mut parts, emit, node, 0, 2, 0)?;
    let weight = centred(&mut parts, emit, node, 1, 3, 0)?;
    let whole = cut.len() == 1;
    let mut sum = None;
    for (start, end) in cut {
        let mut image = x;
        let mut filters = weight;
        if !whole {
            image = parts.slice(x, 1, start, end, 1)?;
            filters = parts.slice(weight, 1, start, end, 1)?;
        }
        let conv = Arc::new(operator.conv.clone());
        let product = parts.parsed(("", "Conv"), conv, &[image, filters]);
        let product = parts.cast(product, DataType::Int64)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => parts.plain("Add", &[sum, product])?,
        });
    }
    match sum {
        Some(sum) => parts.write(emit, &[sum]),
        None => refuse("a convolution of no channels"),
    }
}

/// Codes from 0 to 255 of floats, their scale and their zero point.
fn coded(parts: &mut DecomposedNode, x: ValueId) -> Result<[ValueId; 3]> {
    let keep = [("keepdims", 0_i64.into())];
    let zero = parts.float(0.0);
    let one = parts.float(1.0);
    let most = parts.float(255.0);
    let high = parts.op("ReduceMax", &keep, &[x])?;
    let high = parts.plain("Max", &[high, zero])?;
    let low = parts.op("ReduceMin", &keep, &[x])?;
    let low = parts.plain("Min", &[low, zero])?;
    let range = parts.plain("Sub", &[high, low])?;
    let scale = parts.plain("Div", &[range, most])?;
    // What is zero everywhere fits any scale.
    let varies = parts.plain("Greater", &[range, zero])?;
    let scale = parts.plain("Where", &[varies, scale, one])?;
    let below = parts.plain("Neg", &[low])?;
    let point = parts.plain("Div", &[below, scale])?;
    let point = parts.plain("Round", &[point])?;
    let point = parts.plain("Clip", &[point, zero, most])?;
    let codes = parts.plain("Div", &[x, scale])?;
    let codes = parts.plain("Round", &[codes])?;
    let codes = parts.plain("Add", &[codes, point])?;
    let codes = parts.plain("Clip", &[codes, zero, most])?;
    Ok([codes, scale, point])
}

fn quantize(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let mut parts = DecomposedNode::new();
    let x = parts.input(emit, node, 0)?;
    let [codes, scale, point] = coded(&mut parts, x)?;
    let codes = parts.cast(codes, DataType::Int64)?;
    let point = parts.cast(point, DataType::Int64)?;
    parts.write(emit, &[codes, scale, point])
}

/// One number for all, or one for each column.
fn by_column(parts: &mut DecomposedNode, all: ValueId) -> Result<ValueId> {
    match parts.known_elements(all)? {
        1 => parts.reshape(all, &[]),
        _ => Ok(all),
    }
}

/// A matrix of codes, the input `at`, as floats. Its parameters, the inputs `scale` and `zero`, lie along its
/// columns.
fn weights(
    parts: &mut DecomposedNode,
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    scale: usize,
    zero: usize,
) -> Result<ValueId> {
    let b = parts.input(emit, node, at)?;
    let scale = parts.input(emit, node, scale)?;
    let mut scale = by_column(parts, scale)?;
    let mut zero = parts.optional(emit, node, zero)?;
    if let Some(found) = zero {
        let found = by_column(parts, found)?;
        // As many of the one as of the other.
        let scales = parts.known_elements(scale)?;
        let zeros = parts.known_elements(found)?;
        zero = Some(found);
        if scales < zeros {
            scale = parts.repeated(scale, zeros)?;
        } else if zeros < scales {
            zero = Some(parts.repeated(found, scales)?);
        }
    }
    dequantized(parts, b, scale, zero, -1)
}

/// Floats that codes stand for, made in FP32 by `make`: their units may be too small for FP16, their differences too
/// large. What they are themselves FP16 holds.
fn narrowed(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    make: impl FnOnce(&mut DecomposedNode, &mut ProgramEmitter<'_>) -> Result<ValueId>,
) -> Result<(DecomposedNode, ValueId)> {
    let shape = emit.fact(emit.input(node, 0)?)?.shape.clone();
    emit.widen();
    let mut parts = DecomposedNode::new();
    let made = make(&mut parts, emit)?;
    let made = parts.write(emit, &[made])?;
    emit.narrow_again(node);
    let Some(wide) = made.into_iter().next() else { return refuse("no floats of codes") };
    let var = emit.cast(&wide, emit.float_element())?;
    let mut parts = DecomposedNode::new();
    let id = parts.given(var, shape);
    Ok((parts, id))
}

/// The product of what codes stand for, whose sums are as large as those of floats.
fn to_float(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let (mut parts, a) = narrowed(emit, node, |parts, emit| {
        let a = parts.input(emit, node, 0)?;
        let scale = parts.input(emit, node, 2)?;
        let zero = parts.optional(emit, node, 4)?;
        dequantized(parts, a, scale, zero, -2)
    })?;
    let b = weights(&mut parts, emit, node, 1, 3, 5)?;
    let mut y = parts.plain("MatMul", &[a, b])?;
    if let Some(bias) = parts.optional(emit, node, 6)? {
        y = parts.plain("Add", &[y, bias])?;
    }
    parts.write(emit, &[y])
}

fn dynamic(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let (mut parts, a) = narrowed(emit, node, |parts, emit| {
        let x = parts.input(emit, node, 0)?;
        let [codes, scale, point] = coded(parts, x)?;
        let centred = parts.plain("Sub", &[codes, point])?;
        parts.plain("Mul", &[centred, scale])
    })?;
    let b = weights(&mut parts, emit, node, 1, 2, 3)?;
    let mut y = parts.plain("MatMul", &[a, b])?;
    if let Some(bias) = parts.optional(emit, node, 4)? {
        y = parts.plain("Add", &[y, bias])?;
    }
    parts.write(emit, &[y])
}
