//! Values of few bits with scales: weights stay compressed in the package, activations pass through
//! `quantize` and `dequantize`, which Core ML's compiler makes one with what lies between.

use std::sync::Arc;

use galatea_formats::coreml::mil::{MilArg, MilElement, MilOperation, MilValue, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::quantize::{DequantizeLinear, QuantizeLinear, ScaleGrouping};
use galatea_tensor::{DataType, OrderedMap, SmallType, Tensor};

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("QuantizeLinear", quantize),
    EmitRow::onnx("DequantizeLinear", dequantize),
    EmitRow::onnx("QuantizeLinear", quantize).of("com.microsoft"),
    EmitRow::onnx("DequantizeLinear", dequantize).of("com.microsoft"),
];

/// The sets of operators that brought weights of 8 bits, activations of 8 bits, and blocks.
const AFFINE_SINCE: u32 = 6;
const ACTIVATIONS_SINCE: u32 = 7;
const BLOCKS_SINCE: u32 = 8;

/// The least number that FP16 holds with all of its bits.
const MIN_HALF: f32 = 6.2e-5;

/// Scales and zero points, and what shares them.
struct QuantizeScales {
    scale: Vec<f32>,
    zero: Vec<f32>,
    /// The axis along which they differ; none where there is one for everything.
    axis: Option<usize>,
}

impl QuantizeScales {
    fn read(emit: &ProgramEmitter<'_>, node: &Node, grouping: &ScaleGrouping) -> Result<Self> {
        if grouping.block_size > 0 {
            return refuse("scales by block of what is known in a run only");
        }
        let scale = emit.numbers(node, 1)?;
        let zero = match node.input(2) {
            Some(_) => emit.numbers(node, 2)?,
            None => vec![0.0; scale.len()],
        };
        let rank = emit.rank(emit.input(node, 0)?)?;
        let axis = if scale.len() == 1 { None } else { Some(emit.axis(grouping.axis, rank)?) };
        Ok(Self { scale, zero, axis })
    }

    /// Returns whether FP16 holds the scales as well as other numbers.
    fn fit(&self, element: MilElement) -> bool {
        let fits = |scale: &f32| (MIN_HALF..65504.0).contains(&scale.abs());
        element != MilElement::Fp16 || self.scale.iter().all(fits)
    }

    /// Numbers as a constant that broadcasts over a value of this rank.
    fn spread(&self, emit: &mut ProgramEmitter<'_>, all: &[f32], rank: usize) -> Result<MilArg> {
        match (self.axis, all) {
            (None, &[one]) => Ok(emit.float(one)),
            (Some(axis), all) => {
                let mut shape = vec![1; rank];
                if let Some(len) = shape.get_mut(axis) {
                    *len = all.len();
                }
                Ok(MilArg::Var(emit.floats(&shape, all.to_vec())?))
            }
            _ => refuse("zero points that are not those of the scales"),
        }
    }

    /// The parameters of `quantize` and `dequantize`.
    fn parameters(
        &self,
        emit: &mut ProgramEmitter<'_>,
        codes: MilElement,
    ) -> Result<Vec<(&'static str, MilArg)>> {
        let shape = if self.axis.is_some() { vec![self.scale.len()] } else { Vec::new() };
        let scale = emit.floats(&shape, self.scale.clone())?;
        let zero = Tensor::from_vec(&shape, self.zero.clone());
        let zero = zero.map_err(|error| UnwritableNode(error.to_string()))?;
        let zero = galatea_graph::converted(&zero, codes.stored_as());
        let zero = zero.map_err(|error| UnwritableNode(error.to_string()))?;
        let zero = MilValue::Tensor(codes, zero);
        let zero = emit.builder().value("zero_point", Arc::new(zero))?;
        let mut all = vec![("scale", MilArg::Var(scale)), ("zero_point", MilArg::Var(zero))];
        if let Some(axis) = self.axis {
            all.push(("axis", MilArg::Int(small(axis)?)));
        }
        Ok(all)
    }
}

/// Codes of 8 bits as programs have them.
fn codes_of(dtype: DataType) -> Option<(MilElement, &'static str)> {
    match dtype {
        DataType::Int8 => Some((MilElement::Int8, "int8")),
        DataType::Uint8 => Some((MilElement::Uint8, "uint8")),
        _ => None,
    }
}

fn quantize(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<QuantizeLinear>() else {
        return refuse("a quantisation of another kind");
    };
    let scales = QuantizeScales::read(emit, node, &operator.grouping)?;
    let Some(output) = node.output(0) else { return refuse("the first output is absent") };
    let dtype = emit.dtype(output)?;
    if !scales.fit(emit.float_element()) {
        emit.widen();
    }
    if let (Some((element, word)), ACTIVATIONS_SINCE..) = (codes_of(dtype), emit.opset()) {
        let x = emit.var(node, 0)?;
        let mut inputs = scales.parameters(emit, element)?;
        inputs.extend([("input", MilArg::Var(x)), ("output_dtype", MilArg::Text(word))]);
        return Ok(vec![emit.op("quantize", inputs)?]);
    }
    let (low, high) = match dtype {
        DataType::Int8 => (-128.0, 127.0),
        DataType::Uint8 => (0.0, 255.0),
        DataType::Int16 => (-32768.0, 32767.0),
        DataType::Uint16 => (0.0, 65535.0),
        other => return refuse(format!("codes of {other}")),
    };
    if matches!(dtype, DataType::Int16 | DataType::Uint16) {
        emit.widen();
    }
    let rank = emit.rank(emit.input(node, 0)?)?;
    let x = emit.var(node, 0)?;
    let scale = scales.spread(emit, &scales.scale, rank)?;
    let zero = scales.spread(emit, &scales.zero, rank)?;
    let scaled = emit.pair("real_div", &x, scale)?;
    let rounded = emit.op("round", vec![("x", MilArg::Var(scaled))])?;
    let moved = emit.pair("add", &rounded, zero)?;
    let low = emit.float(low);
    let high = emit.float(high);
    let inputs = vec![("x", MilArg::Var(moved)), ("alpha", low), ("beta", high)];
    let limited = emit.op("clip", inputs)?;
    Ok(vec![emit.cast(&limited, MilElement::Int32)?])
}

fn dequantize(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<DequantizeLinear>() else {
        return refuse("a quantisation of another kind");
    };
    if let Some(codes) = emit.known(node, 0) {
        emit.fix(node);
        return Ok(vec![weights(emit, node, &operator.grouping, &codes)?]);
    }
    let scales = QuantizeScales::read(emit, node, &operator.grouping)?;
    if !scales.fit(emit.float_element()) {
        emit.widen();
    }
    let id = emit.input(node, 0)?;
    if let (Some((codes, element)), ACTIVATIONS_SINCE..) = (emit.narrow(id)?, emit.opset()) {
        let mut inputs = scales.parameters(emit, element)?;
        inputs.push(("input", MilArg::Var(codes)));
        return Ok(vec![emit.op("dequantize", inputs)?]);
    }
    if codes_of(emit.dtype(id)?).is_none() {
        emit.widen();
    }
    let rank = emit.rank(id)?;
    let x = emit.var(node, 0)?;
    let x = emit.cast(&x, emit.float_element())?;
    let zero = scales.spread(emit, &scales.zero, rank)?;
    let scale = scales.spread(emit, &scales.scale, rank)?;
    let centred = emit.pair("sub", &x, zero)?;
    Ok(vec![emit.pair("mul", &centred, scale)?])
}

/// Weights: their codes, where programs have them; else the numbers that they stand for.
fn weights(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    grouping: &ScaleGrouping,
    codes: &Tensor,
) -> Result<MilVar> {
    let element = emit.float_element();
    if grouping.block_size == 0 && codes_of(codes.dtype()).is_some() {
        let scales = QuantizeScales::read(emit, node, grouping)?;
        if emit.opset() >= AFFINE_SINCE && scales.fit(element) {
            return affine(emit, node, &scales, codes);
        }
    }
    if emit.opset() >= BLOCKS_SINCE
        && let Some(found) = blocks(emit, node, grouping, codes)?
    {
        return Ok(found);
    }
    let Some(operator) = node.operator::<DequantizeLinear>() else {
        return refuse("a quantisation of another kind");
    };
    let parts: Vec<Option<Tensor>> = (1..3).map(|at| emit.known(node, at)).collect();
    let inputs = [Some(codes), parts[0].as_ref(), parts[1].as_ref()];
    let result =
        galatea_graph::Operator::reference(operator, galatea_graph::OperatorInputs::new(&inputs));
    let mut all = result.map_err(|error| UnwritableNode(error.to_string()))?;
    match all.pop() {
        Some(tensor) => emit.tensor(&tensor),
        None => refuse("no weights"),
    }
}

/// One scale for everything, or for each position of an axis.
fn affine(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    scales: &QuantizeScales,
    codes: &Tensor,
) -> Result<MilVar> {
    let Some((stored, _)) = codes_of(codes.dtype()) else { return refuse("codes of many bits") };
    let float = emit.float_element();
    let shape = if scales.axis.is_some() { vec![scales.scale.len()] } else { Vec::new() };
    let number = |all: &[f32], element: MilElement| {
        let wide = Tensor::from_vec(&shape, all.to_vec());
        let wide = wide.map_err(|error| UnwritableNode(error.to_string()))?;
        let tensor = galatea_graph::converted(&wide, element.stored_as());
        let tensor = tensor.map_err(|error| UnwritableNode(error.to_string()))?;
        Ok::<_, UnwritableNode>(Arc::new(MilValue::Tensor(element, tensor)))
    };
    let axis = Tensor::scalar(small(scales.axis.unwrap_or(0))?);
    let attributes = OrderedMap::from([
        ("quantized_data".to_owned(), Arc::new(MilValue::Tensor(stored, codes.clone()))),
        ("scale".to_owned(), number(&scales.scale, float)?),
        ("zero_point".to_owned(), number(&scales.zero, stored)?),
        ("axis".to_owned(), Arc::new(MilValue::Tensor(MilElement::Int32, axis))),
    ]);
    let operation = MilOperation {
        operator: "constexpr_affine_dequantize".to_owned(),
        attributes,
        ..MilOperation::default()
    };
    emit.compressed(operation, emit.input(node, 0)?, codes.shape())
}

/// Codes of 4 or 8 bits with a scale for each block; none where programs have no such blocks.
fn blocks(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    grouping: &ScaleGrouping,
    codes: &Tensor,
) -> Result<Option<MilVar>> {
    let (stored, bytes) = match codes.dtype() {
        DataType::Int8 => (MilElement::Int8, DataType::Int8),
        DataType::Uint8 => (MilElement::Uint8, DataType::Uint8),
        DataType::Small(SmallType::Int4) => (MilElement::Int4, DataType::Int8),
        DataType::Small(SmallType::Uint4) => (MilElement::Uint4, DataType::Uint8),
        _ => return Ok(None),
    };
    let failed = |error: &dyn std::fmt::Display| UnwritableNode(error.to_string());
    let (Some(scale), zero) = (emit.known(node, 1), emit.known(node, 2)) else { return Ok(None) };
    let mut shape = scale.shape().to_vec();
    if grouping.block_size == 0 {
        shape = vec![1; codes.rank()];
        if scale.elements() != 1 {
            shape[emit.axis(grouping.axis, codes.rank())?] = scale.elements();
        }
    }
    let whole = |(len, count): (&usize, &usize)| *count > 0 && len.is_multiple_of(*count);
    let fits = shape.len() == codes.rank() && codes.shape().iter().zip(&shape).all(whole);
    let float = emit.float_element();
    let numbers =
        galatea_graph::converted(&scale, DataType::Fp32).map_err(|error| failed(&error))?;
    let numbers = numbers.to_vec::<f32>().map_err(|error| failed(&error))?;
    let held =
        |value: &f32| float != MilElement::Fp16 || (MIN_HALF..65504.0).contains(&value.abs());
    if !fits || !numbers.iter().all(held) {
        return Ok(None);
    }
    let shaped = |tensor: &Tensor, dtype: DataType, shape: &[usize]| {
        let tensor = galatea_graph::converted(tensor, dtype).map_err(|error| failed(&error))?;
        tensor.reshape(shape).map_err(|error| failed(&error))
    };
    let value = |element: MilElement, tensor: Tensor| {
        vec![galatea_formats::coreml::mil::MilArgument::Value(Arc::new(MilValue::Tensor(
            element, tensor,
        )))]
    };
    let scale = shaped(&scale, float.stored_as(), &shape)?;
    let data = shaped(codes, bytes, codes.shape())?;
    let mut inputs = OrderedMap::from([
        ("data".to_owned(), value(stored, data)),
        ("scale".to_owned(), value(float, scale)),
    ]);
    if let Some(zero) = zero {
        inputs.insert("offset".to_owned(), value(stored, shaped(&zero, bytes, &shape)?));
    }
    let operation = MilOperation {
        operator: "constexpr_blockwise_shift_scale".to_owned(),
        inputs,
        ..MilOperation::default()
    };
    emit.compressed(operation, emit.input(node, 0)?, codes.shape()).map(Some)
}
