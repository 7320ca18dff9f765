//! Functions of elements.
//!
//! One generator makes the kernels of all of them: a [`ElementProgram`] says what is computed at a
//! position, [`broadcast::MergedBroadcast`] how operands are read there, and [`generate`] writes the text.

pub(crate) mod broadcast;
mod element_program;
mod generate;
mod program;
mod quantised;

use galatea_tensor::DataType;

use self::broadcast::{MergedBroadcast, OperandWalk};
use self::element_program::ElementProgram;
use self::program::program;
use crate::axis::position;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView};
use galatea_runtime::NodeShapes;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[
    row("elementwise", "", ONNX),
    row("elementwise", "ai.galatea", &["FusedElementwise"]),
    row("elementwise", "com.microsoft", CONTRIB),
];

const fn row(
    name: &'static str,
    domain: &'static str,
    ops: &'static [&'static str],
) -> GpuKernelRow {
    GpuKernelRow { name, domain, ops, supports, build }
}

const CONTRIB: &[&str] = &[
    "BiasAdd",
    "BiasGelu",
    "DequantizeLinear",
    "FastGelu",
    "Gelu",
    "QLinearAdd",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "QLinearWhere",
    "QuantizeLinear",
    "QuickGelu",
];

const ONNX: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "Affine",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BatchNormalization",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "DequantizeLinear",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "ParametricSoftplus",
    "Pow",
    "QuantizeLinear",
    "Reciprocal",
    "Relu",
    "Round",
    "Scale",
    "ScaledTanh",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "SwiGLU",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Where",
    "Xor",
];

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    program(view).map(|_| ())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    Ok(Box::new(ElementwiseKernel { program: program(view)? }))
}

struct ElementwiseKernel {
    program: ElementProgram,
}

/// Makes an axis two, of which the second has so many positions.
fn cut(lengths: &mut Vec<usize>, axis: usize, size: usize) {
    if let Some(len) = lengths.get_mut(axis) {
        *len /= size;
        lengths.insert(axis + 1, size);
    }
}

impl GpuKernel for ElementwiseKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let result = shapes.output(0)?;
        let inputs = &self.program.inputs;
        let lengths = |&index: &usize| -> Result<Vec<usize>, String> {
            let mut lengths = shapes.input(index)?.to_vec();
            if let (Some(axis), &[len]) = (self.program.axis, lengths.as_slice())
                && index > 0
                && len != 1
            {
                lengths.resize(result.len() - position(axis, result.len())?, 1);
            }
            Ok(lengths)
        };
        let mut lengths: Vec<Vec<usize>> = inputs.iter().map(lengths).collect::<Result<_, _>>()?;
        let mut result = result.to_vec();
        if let Some((axis, size)) = self.program.blocks {
            // Positions in a block are an axis of their own, along which the others stay.
            for (lengths, &index) in lengths.iter_mut().zip(inputs) {
                cut(lengths, axis, if index == 0 { size } else { 1 });
            }
            cut(&mut result, axis, size);
        }
        let lengths: Vec<&[usize]> = lengths.iter().map(Vec::as_slice).collect();
        let types: Result<Vec<DataType>, String> =
            inputs.iter().map(|&index| shapes.dtype(index)).collect();
        let types = types?;
        let output = shapes.output_dtype(0)?;
        let broadcast = MergedBroadcast::new(&lengths, &result)?;
        for ((&index, dtype), walk) in inputs.iter().zip(&types).zip(&broadcast.walks) {
            // A thread reads its quad of such an operand before it writes the same bytes.
            if *walk == OperandWalk::Same && dtype.size_bytes() == output.size_bytes() {
                step.in_place(index, 0);
            }
        }
        let operands = generate::ElementwiseOperands {
            types: &types,
            output,
            broadcast: &broadcast,
            elements: result.iter().product(),
        };
        generate::dispatch(&self.program, &operands, step)
    }
}

#[cfg(test)]
mod tests {
    use galatea_graph::ops;

    use super::*;

    /// Operators of these kernels that are not element-wise by their rows: their parameters lie along an axis, or two
    /// halves of an input are computed with each other.
    const ALONG_AXES: &[&str] =
        &["BatchNormalization", "DequantizeLinear", "QuantizeLinear", "SwiGLU"];

    #[test]
    fn kernels_of_elements_are_for_element_wise_operators() {
        for (domain, names) in [("", ONNX), ("com.microsoft", CONTRIB)] {
            for name in names {
                let by_element = ops::traits(domain, name).elementwise.is_some();
                let quantized = name.starts_with("QLinear");
                assert!(by_element || quantized || ALONG_AXES.contains(name), "{domain}:{name}");
            }
        }
    }

    #[test]
    fn element_wise_operators_of_onnx_have_a_kernel() {
        let elementwise = ops::all().filter(|def| def.traits.elementwise.is_some());
        for def in elementwise.filter(|def| def.domain.is_empty() && def.name != "Identity") {
            assert!(ONNX.contains(&def.name), "{} has no kernel", def.name);
        }
    }
}
