//! `MatMulNBits` of `com.microsoft`: a product with weights of few bits that are constants of the graph.

use std::sync::Arc;

use galatea_graph::ops::contrib::MatMulNBits;
use galatea_runtime::Precision;
use galatea_tensor::{DataType, Tensor, f16};

use super::layout::{CodeLayout, CodeShift, FactorLayout};
use super::pack::{PackingPlan, UnpackedRow, pack};
use super::product::{BlockOperand, CodedProduct, CodedProductCall, OutputSegment};
use super::{BlockKernelChoice, dispatch};
use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "matmul_n_bits",
    domain: "com.microsoft",
    ops: &["MatMulNBits"],
    supports: |view| {
        view.floats_throughout(&[0, 5])?;
        let op = view.operator::<MatMulNBits>()?;
        for index in (1..=3).filter(|&index| view.has(index)) {
            view.constant(index).ok_or_else(|| format!("input {index} is no constant"))?;
        }
        if view.has(4) {
            return Err("positions that name their blocks".into());
        }
        let row = layout(view, op)?.units(op.k) * 16;
        if row as u64 > view.device.capabilities().binding_bytes.min(1 << 30) / 4 {
            return Err("a row is larger than a binding".into());
        }
        NBitsConstants::of(view, op).map(|_| ())
    },
    build: |view: &GpuNodeView<'_>| {
        let op = view.operator::<MatMulNBits>()?;
        Ok(Box::new(NBitsProduct::new(view, op)?))
    },
};

/// Returns the layout of the weights on the device.
fn layout(view: &GpuNodeView<'_>, op: &MatMulNBits) -> Result<CodeLayout, String> {
    let dtype = |index: usize| view.input(index).map(|fact| fact.dtype);
    let points = dtype(3).filter(|dtype| dtype.is_float());
    let half = dtype(2) == Some(DataType::Fp16) && points.is_none_or(|of| of == DataType::Fp16);
    let factors = FactorLayout::Floats(if half { DataType::Fp16 } else { DataType::Fp32 });
    let shift = if view.has(3) {
        CodeShift::Zeros
    } else {
        CodeShift::Zero(if op.bits == 2 {
            2.0
        } else if op.bits == 4 {
            8.0
        } else {
            128.0
        })
    };
    CodeLayout { bits: op.bits, block: op.block_size, shift, factors }.checked()
}

/// The number at a position of packed bytes.
fn number(row: &[u8], bits: u32, at: usize) -> u8 {
    let per_byte = 8 / bits as usize;
    row[at / per_byte] >> (at % per_byte * bits as usize) & (u8::MAX >> (8 - bits))
}

/// The constants of a node, whose sizes are those that it says.
struct NBitsConstants {
    bytes: Tensor,
    scales: Tensor,
    points: Option<Tensor>,
    blocks: usize,
}

impl NBitsConstants {
    fn of(view: &GpuNodeView<'_>, op: &MatMulNBits) -> Result<Self, String> {
        let blocks = op.k.div_ceil(op.block_size);
        let constant = |index: usize| {
            let tensor = view.constant(index).ok_or("the weights are no constant")?;
            tensor.contiguous().map_err(|error| error.to_string())
        };
        let bytes = constant(1)?;
        let scales = constant(2)?;
        let points = view.has(3).then(|| constant(3)).transpose()?;
        let elements = |tensor: &Tensor| tensor.shape().iter().product::<usize>();
        let row = blocks * op.block_size * op.bits as usize / 8;
        let packed_points = op.n * (blocks * op.bits as usize).div_ceil(8);
        let wanted = |tensor: &Tensor| match tensor.dtype() {
            DataType::Uint8 => elements(tensor) == packed_points,
            DataType::Fp32 | DataType::Fp16 => elements(tensor) == op.n * blocks,
            _ => false,
        };
        let fits = bytes.dtype() == DataType::Uint8
            && elements(&bytes) == op.n * row
            && matches!(scales.dtype(), DataType::Fp32 | DataType::Fp16)
            && elements(&scales) == op.n * blocks
            && points.as_ref().is_none_or(wanted);
        if fits {
            return Ok(Self { bytes, scales, points, blocks });
        }
        Err(format!("weights, scales or zero points of other sizes or types than {op:?} has"))
    }
}

fn floats(tensor: &Tensor) -> Result<Vec<f32>, String> {
    if tensor.dtype() == DataType::Fp16 {
        let halves = tensor.to_vec::<f16>().map_err(|error| error.to_string())?;
        return Ok(halves.into_iter().map(f16::to_f32).collect());
    }
    tensor.to_vec::<f32>().map_err(|error| error.to_string())
}

/// The product, and the device that it is on.
struct NBitsProduct {
    device: Arc<GpuDevice>,
    product: CodedProduct,
}

impl NBitsProduct {
    fn new(view: &GpuNodeView<'_>, op: &MatMulNBits) -> Result<Self, String> {
        let given = NBitsConstants::of(view, op)?;
        let layout = layout(view, op)?;
        let blocks = given.blocks;
        let bytes = given.bytes.as_bytes().map_err(|error| error.to_string())?;
        let scales = floats(&given.scales)?;
        let float_points = match &given.points {
            Some(points) if points.dtype().is_float() => Some(floats(points)?),
            _ => None,
        };
        let packed_points = match &given.points {
            Some(points) if float_points.is_none() => {
                points.as_bytes().map_err(|error| error.to_string())?
            }
            _ => &[],
        };
        let row_bytes = blocks * op.block_size * op.bits as usize / 8;
        let point_bytes = (blocks * op.bits as usize).div_ceil(8);
        let binding_bytes = view.device.capabilities().binding_bytes;
        let plan = PackingPlan { layout, rows: op.n, columns: op.k, binding_bytes, together: 1 };
        let packed = pack(view.device, &plan, &|row, to| {
            let UnpackedRow { codes, scales: own, shifts, .. } = to;
            let from = &bytes[row * row_bytes..][..row_bytes];
            for (at, code) in codes.iter_mut().enumerate() {
                *code = number(from, op.bits, at);
            }
            own.copy_from_slice(&scales[row * blocks..][..blocks]);
            if let Some(points) = &float_points {
                shifts.copy_from_slice(&points[row * blocks..][..blocks]);
            } else if !shifts.is_empty() {
                let points = &packed_points[row * point_bytes..][..point_bytes];
                for (at, shift) in shifts.iter_mut().enumerate() {
                    *shift = number(points, op.bits, at).into();
                }
            }
            Ok(())
        })?;
        let segments = vec![OutputSegment { first: 0, rows: op.n, matrix: 0 }];
        let halves = view.precision == Precision::Fp16;
        let product =
            CodedProduct { packed: Arc::new(packed), segments, gate: None, halves, rounds: false };
        Ok(Self { device: Arc::clone(view.device), product })
    }
}

impl GpuKernel for NBitsProduct {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let (_, lead) = shapes.input(0)?.split_last().ok_or("A has no axes")?;
        let m: usize = lead.iter().product();
        let bias = match shapes.has(5) {
            true => {
                let n = self.product.packed.rows;
                if shapes.input(5)? != [n] {
                    return Err(format!("a bias of shape {:?} for {n}", shapes.input(5)?));
                }
                Some(BlockOperand { binding: ShaderBinding::Input(5), dtype: shapes.dtype(5)? })
            }
            false => None,
        };
        let x = BlockOperand { binding: ShaderBinding::Input(0), dtype: shapes.dtype(0)? };
        let y = BlockOperand { binding: ShaderBinding::Output(0), dtype: shapes.output_dtype(0)? };
        let call = CodedProductCall { m, x, biases: vec![bias], more: None, outputs: vec![y] };
        dispatch(&self.device, &self.product, &call, BlockKernelChoice::default(), step)
    }

    fn weight_bytes(&self) -> u64 {
        self.product.packed.size_bytes()
    }
}
