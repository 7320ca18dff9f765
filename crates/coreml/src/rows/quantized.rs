//! Operators on codes of few bits as ones on floats between `DequantizeLinear` and `QuantizeLinear`: Core
//! ML's compiler makes one of these with what lies between, and computes with the codes where the chip can.

use std::sync::Arc;

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::ops::contrib::{QGemm, QLinear};
use galatea_graph::ops::convolution::{Conv, QLinearConv, QLinearConvAdd};
use galatea_graph::{Node, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::EmitRow;
use super::parts::DecomposedNode;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("QLinearConv", convolution),
    EmitRow::onnx("QLinearConv", convolution).of("com.microsoft"),
    EmitRow::onnx("QLinearConvAdd", convolution_and_sum).of("ai.galatea"),
    EmitRow::onnx("QLinearMatMul", product),
    EmitRow::onnx("QGemm", gemm).of("com.microsoft"),
    EmitRow::onnx("QAttention", attention).of("com.microsoft"),
    EmitRow::onnx("QLinearAdd", |emit, node| between(emit, node, "Add")).of("com.microsoft"),
    EmitRow::onnx("QLinearMul", |emit, node| between(emit, node, "Mul")).of("com.microsoft"),
    EmitRow::onnx("QLinearAveragePool", |emit, node| between(emit, node, "AveragePool"))
        .of("com.microsoft"),
    EmitRow::onnx("QLinearGlobalAveragePool", |emit, node| {
        between(emit, node, "GlobalAveragePool")
    })
    .of("com.microsoft"),
    EmitRow::onnx("QLinearLeakyRelu", |emit, node| between(emit, node, "LeakyRelu"))
        .of("com.microsoft"),
    EmitRow::onnx("QLinearSigmoid", |emit, node| between(emit, node, "Sigmoid"))
        .of("com.microsoft"),
    EmitRow::onnx("QLinearSoftmax", |emit, node| between(emit, node, "Softmax"))
        .of("com.microsoft"),
    EmitRow::onnx("QLinearReduceMean", |emit, node| between(emit, node, "ReduceMean"))
        .of("com.microsoft"),
    EmitRow::onnx("QLinearWhere", |emit, node| between(emit, node, "Where")).of("com.microsoft"),
    EmitRow::onnx("QLinearConcat", |emit, node| between(emit, node, "Concat")).of("com.microsoft"),
];

/// Inputs of a node as values of its parts.
struct QuantizedReader<'a, 'g> {
    emit: &'a mut ProgramEmitter<'g>,
    node: &'a Node,
    parts: DecomposedNode,
}

impl<'a, 'g> QuantizedReader<'a, 'g> {
    fn new(emit: &'a mut ProgramEmitter<'g>, node: &'a Node) -> Self {
        Self { emit, node, parts: DecomposedNode::new() }
    }

    fn at(&mut self, at: usize) -> Result<ValueId> {
        self.parts.input(self.emit, self.node, at)
    }

    fn optional(&mut self, at: usize) -> Result<Option<ValueId>> {
        self.parts.optional(self.emit, self.node, at)
    }

    /// The floats that the codes of input `code` stand for, with the inputs `scale` and `zero`. Scales and
    /// zero points lie along `axis` where there is more than one.
    fn floats(&mut self, code: usize, scale: usize, zero: usize, axis: i64) -> Result<ValueId> {
        let x = self.at(code)?;
        let scale = self.at(scale)?;
        let zero = self.optional(zero)?;
        dequantized(&mut self.parts, x, scale, zero, axis)
    }

    /// The type of the codes at a position.
    fn dtype(&self, at: usize) -> Result<DataType> {
        self.emit.dtype(self.emit.input(self.node, at)?)
    }

    /// Writes the parts, whose result is `y` as codes by the inputs `scale` and `zero`.
    fn codes(
        mut self,
        y: ValueId,
        scale: usize,
        zero: usize,
        usual: DataType,
    ) -> Result<Vec<MilVar>> {
        let scale = self.at(scale)?;
        let zero = match self.optional(zero)? {
            Some(zero) => zero,
            None => self.parts.constant(&none(usual)?)?,
        };
        let codes = self.parts.plain("QuantizeLinear", &[y, scale, zero])?;
        self.parts.write(self.emit, &[codes])
    }
}

/// The zero point that codes have where nothing says another.
fn none(dtype: DataType) -> Result<Tensor> {
    match dtype {
        DataType::Int8 => Ok(Tensor::scalar(0_i8)),
        DataType::Uint8 => Ok(Tensor::scalar(0_u8)),
        DataType::Int16 => Ok(Tensor::scalar(0_i16)),
        DataType::Uint16 => Ok(Tensor::scalar(0_u16)),
        other => refuse(format!("codes of {other}")),
    }
}

/// Floats of codes; where scale or zero point are known in a run only, as their difference and product.
pub(super) fn dequantized(
    parts: &mut DecomposedNode,
    x: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
    axis: i64,
) -> Result<ValueId> {
    let known = parts.is_constant(scale) && zero.is_none_or(|zero| parts.is_constant(zero));
    if known {
        let inputs: Vec<ValueId> = [x, scale].into_iter().chain(zero).collect();
        return parts.op("DequantizeLinear", &[("axis", axis.into())], &inputs);
    }
    let spread =
        |parts: &mut DecomposedNode, parameter: ValueId| match parts.known_elements(parameter)? {
            1 => parts.reshape(parameter, &[]),
            _ if axis == -1 => Ok(parameter),
            _ => refuse("scales along an axis that are known in a run only"),
        };
    let mut all = parts.cast(x, DataType::Fp32)?;
    if let Some(zero) = zero {
        let zero = parts.cast(zero, DataType::Fp32)?;
        let zero = spread(parts, zero)?;
        all = parts.plain("Sub", &[all, zero])?;
    }
    let scale = spread(parts, scale)?;
    parts.plain("Mul", &[all, scale])
}

/// An operator on floats between codes.
fn between(emit: &mut ProgramEmitter<'_>, node: &Node, name: &str) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<QLinear>() else {
        return refuse("an operator on codes of another kind");
    };
    let mut reader = QuantizedReader::new(emit, node);
    let operands: Vec<[usize; 3]> = operator.operands().collect();
    let first = operands.first().map_or(0, |place| place[0]);
    let mut inputs = Vec::new();
    // What is no code comes first.
    for at in 0..first.min(if name == "Where" { 1 } else { 0 }) {
        inputs.push(reader.at(at)?);
    }
    for [code, scale, zero] in operands {
        inputs.push(reader.floats(code, scale, zero, 0)?);
    }
    let y = reader.parts.parsed(("", name), Arc::clone(operator.between()), &inputs);
    let usual = reader.dtype(first)?;
    let (scale, zero) = operator.result();
    reader.codes(y, scale, zero, usual)
}

/// The floats of a convolution of codes, before they become codes again.
fn convolved(reader: &mut QuantizedReader<'_, '_>, conv: &Conv) -> Result<ValueId> {
    let x = reader.floats(0, 1, 2, 0)?;
    let weight = reader.floats(3, 4, 5, 0)?;
    let mut inputs = vec![x, weight];
    if let Some(bias) = reader.optional(8)? {
        // In units of both scales.
        let of_x = reader.at(1)?;
        let of_weight = reader.at(4)?;
        let parts = &mut reader.parts;
        let bias = parts.cast(bias, DataType::Fp32)?;
        let of_x = parts.reshape(of_x, &[])?;
        let unit = parts.plain("Mul", &[of_weight, of_x])?;
        inputs.push(parts.plain("Mul", &[bias, unit])?);
    }
    let name = match conv.channels_last {
        true => ("ai.galatea", "ConvNhwc"),
        false => ("", "Conv"),
    };
    Ok(reader.parts.parsed(name, Arc::new(conv.clone()), &inputs))
}

fn convolution(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<QLinearConv>() else {
        return refuse("a convolution of another kind");
    };
    let mut reader = QuantizedReader::new(emit, node);
    let y = convolved(&mut reader, &operator.conv)?;
    let usual = reader.dtype(0)?;
    reader.codes(y, 6, 7, usual)
}

/// The convolution becomes codes before the sum, as in the two operators that it is made of.
fn convolution_and_sum(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<QLinearConvAdd>() else {
        return refuse("a convolution of another kind");
    };
    let mut reader = QuantizedReader::new(emit, node);
    let y = convolved(&mut reader, &operator.conv)?;
    let scale = reader.at(6)?;
    let zero = reader.at(7)?;
    let codes = reader.parts.plain("QuantizeLinear", &[y, scale, zero])?;
    let y = dequantized(&mut reader.parts, codes, scale, Some(zero), 0)?;
    let other = reader.floats(9, 10, 11, 0)?;
    let sum = reader.parts.plain("Add", &[y, other])?;
    let usual = reader.dtype(13)?;
    reader.codes(sum, 12, 13, usual)
}

fn product(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let mut reader = QuantizedReader::new(emit, node);
    let a = reader.floats(0, 1, 2, -2)?;
    let b = reader.floats(3, 4, 5, -1)?;
    let y = reader.parts.plain("MatMul", &[a, b])?;
    let usual = reader.dtype(7)?;
    reader.codes(y, 6, 7, usual)
}

fn gemm(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(&QGemm { alpha, trans_a, trans_b }) = node.operator::<QGemm>() else {
        return refuse("a product of another kind");
    };
    let mut reader = QuantizedReader::new(emit, node);
    let a = reader.floats(0, 1, 2, 0)?;
    let b = reader.floats(3, 4, 5, i64::from(!trans_b))?;
    let mut inputs = vec![a, b];
    if let Some(bias) = reader.optional(6)? {
        let of_a = reader.at(1)?;
        let of_b = reader.at(4)?;
        let parts = &mut reader.parts;
        let bias = parts.cast(bias, DataType::Fp32)?;
        let of_a = parts.reshape(of_a, &[])?;
        let unit = parts.plain("Mul", &[of_b, of_a])?;
        inputs.push(parts.plain("Mul", &[bias, unit])?);
    }
    let attributes = [
        ("alpha", alpha.into()),
        ("beta", alpha.into()),
        ("transA", trans_a.into()),
        ("transB", trans_b.into()),
    ];
    let y = reader.parts.op("Gemm", &attributes, &inputs)?;
    match (node.input(7), node.input(8)) {
        (Some(_), Some(_)) => {
            let usual = reader.dtype(8)?;
            reader.codes(y, 7, 8, usual)
        }
        _ => reader.parts.write(reader.emit, &[y]),
    }
}

/// Attention whose input and weights are codes.
fn attention(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some((_, attributes)) = node.attributes() else {
        return refuse("attention of another kind");
    };
    let mut reader = QuantizedReader::new(emit, node);
    let x = reader.floats(0, 3, 6, -1)?;
    let weight = reader.floats(1, 4, 7, -1)?;
    let bias = reader.optional(2)?;
    let mask = reader.optional(5)?;
    let past = reader.optional(8)?;
    let inputs = vec![Some(x), Some(weight), bias, mask, past];
    let outputs = node.outputs.len();
    let name = ("com.microsoft", "Attention");
    let made = reader.parts.with_absent(name, attributes, inputs, outputs)?;
    reader.parts.write(reader.emit, &made)
}
