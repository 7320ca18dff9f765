//! Quantised values: from floats and back, sums, and products of bytes.

use std::sync::Arc;

use galatea_graph::ops::contrib::QGemm;
use galatea_graph::ops::fused::LookUp;
use galatea_graph::ops::quantize::{DequantizeLinear, QuantizeLinear};
use galatea_graph::{GALATEA_DOMAIN, ONNX_DOMAIN, OpError};
use galatea_kernels::int8::{
    ByteForm, ColumnScales, Int8BatchedOperand, Int8Target, PackedInt8, PairFunction,
    QuantizedBytes, dequantize, extremes, gemm_int8, look_up, matmul_int8_batched, pair_bytes,
    quantize,
};
use galatea_kernels::isa::DotIsa;
use galatea_kernels::{KernelContext, ProductSize};
use galatea_tensor::{DataType, Tensor};

use super::CONTRIB_DOMAIN;
use super::batched::batch_offsets;
use crate::cpu::{
    CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, StepCall, WeightBytes,
};

/// Where the parts of a product are among the inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuantizedInputs {
    pub(super) a: usize,
    pub(super) b: usize,
    a_scale: Option<usize>,
    b_scale: Option<usize>,
    a_zero: usize,
    b_zero: usize,
    /// Bias of 32 bits, added to the sums.
    sums: Option<usize>,
    /// Bias of floats, added to scaled sums.
    bias: Option<usize>,
    /// Scale and zero point of the result.
    result: Option<(usize, usize)>,
}

pub(super) const QLINEAR: QuantizedInputs = QuantizedInputs {
    a: 0,
    b: 3,
    a_scale: Some(1),
    b_scale: Some(4),
    a_zero: 2,
    b_zero: 5,
    sums: None,
    bias: None,
    result: Some((6, 7)),
};

pub(super) const INTEGER: QuantizedInputs = QuantizedInputs {
    a: 0,
    b: 1,
    a_scale: None,
    b_scale: None,
    a_zero: 2,
    b_zero: 3,
    sums: None,
    bias: None,
    result: None,
};

pub(super) const TO_FLOAT: QuantizedInputs = QuantizedInputs {
    a_scale: Some(2),
    b_scale: Some(3),
    a_zero: 4,
    b_zero: 5,
    bias: Some(6),
    ..INTEGER
};

pub(super) const GEMM: QuantizedInputs =
    QuantizedInputs { sums: Some(6), result: Some((7, 8)), ..QLINEAR };

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "quantize_linear-f32_int8",
        domain: ONNX_DOMAIN,
        ops: &["QuantizeLinear"],
        supports: |view| {
            view.floats(&[0, 1])?;
            byte_type(view.output(0).map(|fact| fact.dtype))?;
            one_scale(view, view.operator::<QuantizeLinear>()?.grouping.block_size)
        },
        build: |_| Ok(Box::new(QuantizeKernel)),
    },
    CpuKernelRow {
        name: "dequantize_linear-int8_f32",
        domain: ONNX_DOMAIN,
        ops: &["DequantizeLinear"],
        supports: |view| {
            view.floats(&[1])?;
            byte_type(view.input(0).map(|fact| fact.dtype))?;
            if view.output(0).is_some_and(|fact| fact.dtype != DataType::Fp32) {
                return Err("the result is not FP32".into());
            }
            one_scale(view, view.operator::<DequantizeLinear>()?.grouping.block_size)
        },
        build: |_| Ok(Box::new(DequantizeKernel)),
    },
    CpuKernelRow {
        name: "dynamic_quantize_linear-f32_uint8",
        domain: ONNX_DOMAIN,
        ops: &["DynamicQuantizeLinear"],
        supports: |view| view.floats(&[0]),
        build: |_| Ok(Box::new(DynamicQuantize)),
    },
    CpuKernelRow {
        name: "qlinear_matmul-int8",
        domain: ONNX_DOMAIN,
        ops: &["QLinearMatMul"],
        supports: |view| supports_product(view, QLINEAR),
        build: |view| product(view, QLINEAR, false, 1.0),
    },
    CpuKernelRow {
        name: "matmul_integer-int8_int32",
        domain: ONNX_DOMAIN,
        ops: &["MatMulInteger"],
        supports: |view| supports_product(view, INTEGER),
        build: |view| product(view, INTEGER, false, 1.0),
    },
    CpuKernelRow {
        name: "matmul_integer-int8_f32",
        domain: CONTRIB_DOMAIN,
        ops: &["MatMulIntegerToFloat"],
        supports: |view| supports_product(view, TO_FLOAT),
        build: |view| product(view, TO_FLOAT, false, 1.0),
    },
    CpuKernelRow {
        name: "qgemm-int8",
        domain: CONTRIB_DOMAIN,
        ops: &["QGemm"],
        supports: |view| {
            if view.operator::<QGemm>()?.trans_a {
                return Err("the kernel takes A as it is".into());
            }
            view.constant(3).ok_or("B is no constant")?;
            supports_product(view, GEMM)
        },
        build: |view| {
            let op = view.operator::<QGemm>()?;
            product(view, GEMM, op.trans_b, op.alpha)
        },
    },
    CpuKernelRow {
        name: "look_up-int8",
        domain: GALATEA_DOMAIN,
        ops: &["LookUp"],
        supports: |_| Ok(()),
        build: |view| {
            let table = view.operator::<LookUp>()?.table.as_slice().try_into();
            let table: [u8; 256] = table.map_err(|_| "the table is not one of bytes")?;
            Ok(Box::new(ByteFunction(table)))
        },
    },
    CpuKernelRow {
        name: "qlinear_pair-int8",
        domain: CONTRIB_DOMAIN,
        ops: &["QLinearAdd", "QLinearMul"],
        supports: |view| {
            view.floats(&[1, 4, 6])?;
            for index in [0, 3] {
                byte_type(view.input(index).map(|fact| fact.dtype))?;
            }
            byte_type(view.output(0).map(|fact| fact.dtype))?;
            for index in [1, 2, 4, 5, 6, 7].into_iter().filter(|&index| view.has(index)) {
                constant_number(view, index)?;
            }
            Ok(())
        },
        build: |view| {
            let scale = |index| constant_scale(view, index);
            let zero = |index| constant_zero(view, index);
            let scales = [scale(1)?, scale(4)?, scale(6)?];
            let pair = if view.node.op_type == "QLinearMul" {
                PairFunction::Product
            } else {
                PairFunction::Sum
            };
            Ok(Box::new(TensorPair { pair, scales, zeros: [zero(2)?, zero(5)?, zero(7)?] }))
        },
    },
];

/// Returns whether a type of bytes is signed.
pub(super) fn is_signed(dtype: DataType) -> Result<bool, String> {
    match dtype {
        DataType::Int8 => Ok(true),
        DataType::Uint8 => Ok(false),
        other => Err(format!("type {other}, the kernel takes INT8 and UINT8")),
    }
}

/// Refuses other types than those of bytes.
pub(super) fn byte_type(dtype: Option<DataType>) -> Result<(), String> {
    is_signed(dtype.ok_or("nothing is known of a type")?).map(drop)
}

/// Refuses scales that are not one for all.
fn one_scale(view: &CpuNodeView<'_>, block_size: usize) -> Result<(), String> {
    for index in [1, 2].into_iter().filter(|&index| view.has(index)) {
        let shape = view.input(index).and_then(|fact| fact.known_shape());
        if block_size > 0 || shape.is_none_or(|shape| shape.iter().product::<usize>() != 1) {
            return Err("the kernel takes one scale for all".into());
        }
    }
    Ok(())
}

/// The one element of a constant input.
pub(super) fn constant_number<'a>(
    view: &CpuNodeView<'a>,
    index: usize,
) -> Result<&'a Tensor, String> {
    let found = view.constant(index).filter(|tensor| tensor.elements() == 1);
    found.ok_or_else(|| format!("input {index} is not one constant number"))
}

/// A constant scale.
pub(super) fn constant_scale(view: &CpuNodeView<'_>, index: usize) -> Result<f32, String> {
    constant_number(view, index)?.item::<f32>().map_err(|error| error.to_string())
}

/// Constant zero points as integers; 0 where there are none.
pub(super) fn zero_points(view: &CpuNodeView<'_>, index: usize) -> Result<Vec<i32>, String> {
    if !view.has(index) {
        return Ok(vec![0]);
    }
    let tensor = view.constant(index).ok_or_else(|| format!("input {index} is no constant"))?;
    let all = tensor.to_i64_vec().map_err(|error| error.to_string())?;
    all.into_iter().map(|zero| i32::try_from(zero).map_err(|error| error.to_string())).collect()
}

/// A constant zero point; 0 if absent.
pub(super) fn constant_zero(view: &CpuNodeView<'_>, index: usize) -> Result<i32, String> {
    match zero_points(view, index)?[..] {
        [zero] => Ok(zero),
        _ => Err(format!("input {index} has several zero points")),
    }
}

/// The only number of a tensor of bytes in a run; 0 if absent.
pub(super) fn zero_in(call: &StepCall<'_>, index: usize) -> Result<i32, OpError> {
    let Some(Some(tensor)) = call.inputs.get(index) else { return Ok(0) };
    match (tensor.dtype(), tensor.bytes()) {
        (DataType::Int8, Some(&[byte])) => Ok(byte.cast_signed().into()),
        (DataType::Uint8, Some(&[byte])) => Ok(byte.into()),
        _ => Err(OpError::new(format!("input {index} is not one zero point"))),
    }
}

/// The only scale of an input in a run.
fn scale_in(call: &StepCall<'_>, index: usize) -> Result<f32, OpError> {
    match call.input::<f32>(index)? {
        &[scale] => Ok(scale),
        _ => Err(OpError::new(format!("input {index} is not one scale"))),
    }
}

/// The smallest and the largest value of a type of bytes.
pub(super) fn limits(signed: bool) -> (i32, i32) {
    if signed { (-128, 127) } else { (0, 255) }
}

struct QuantizeKernel;

impl CpuKernel for QuantizeKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let dtype = shapes.output_dtype(0)?;
        let signed = is_signed(dtype)?;
        Ok(CpuStep::new(move |call| {
            let x = call.input::<f32>(0)?;
            let scale = scale_in(call, 1)?;
            let zero = zero_in(call, 2)?;
            let form = ByteForm { signed, zero };
            quantize(call.exec, x, scale, form, call.output_bytes(0)?.bytes());
            Ok(())
        }))
    }
}

struct DequantizeKernel;

impl CpuKernel for DequantizeKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let signed = is_signed(shapes.dtype(0)?)?;
        Ok(CpuStep::new(move |call| {
            let data = call.input_bytes(0)?;
            let scale = scale_in(call, 1)?;
            let zero = zero_in(call, 2)?;
            let mut y = call.output::<f32>(0)?;
            dequantize(call.exec, QuantizedBytes { data, signed, zero }, scale, y.slice());
            Ok(())
        }))
    }
}

struct DynamicQuantize;

impl CpuKernel for DynamicQuantize {
    fn bind(&self, _: &NodeShapes) -> Result<CpuStep, String> {
        Ok(CpuStep::new(move |call| {
            let x = call.input::<f32>(0)?;
            let (low, high) = extremes(call.exec, x);
            // Data that is zero everywhere fits any scale.
            let scale = if high > low { (high - low) / 255.0 } else { 1.0 };
            #[allow(clippy::cast_possible_truncation, reason = "limited to a byte")]
            let zero = (-low / scale).round_ties_even().clamp(0.0, 255.0) as u8;
            let form = ByteForm { signed: false, zero: zero.into() };
            quantize(call.exec, x, scale, form, call.output_bytes(0)?.bytes());
            if call.outputs.get(1).is_some_and(Option::is_some) {
                call.output::<f32>(1)?.slice().fill(scale);
            }
            if call.outputs.get(2).is_some_and(Option::is_some) {
                call.output_bytes(2)?.bytes().fill(zero);
            }
            Ok(())
        }))
    }
}

/// Two tensors, element by element; the second may be a vector that is repeated.
struct TensorPair {
    pair: PairFunction,
    scales: [f32; 3],
    zeros: [i32; 3],
}

impl CpuKernel for TensorPair {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let a = shapes.input(0)?;
        let b = shapes.input(3)?;
        // Leading axes of length 1 repeat too, where the others are those of the first operand.
        let own = b.iter().skip_while(|&&len| len == 1).count();
        if a.len() < own || a[a.len() - own..] != b[b.len() - own..] || b.len() > a.len() {
            return Err(format!("a second operand of shape {b:?} for {a:?}"));
        }
        let signed = [is_signed(shapes.dtype(0)?)?, is_signed(shapes.dtype(3)?)?];
        let dtype = shapes.output_dtype(0)?;
        let pair = self.pair;
        let scales = self.scales;
        let zeros = self.zeros;
        let result = ByteForm { signed: is_signed(dtype)?, zero: zeros[2] };
        Ok(CpuStep::new(move |call| {
            let a =
                QuantizedBytes { data: call.input_bytes(0)?, signed: signed[0], zero: zeros[0] };
            let b =
                QuantizedBytes { data: call.input_bytes(3)?, signed: signed[1], zero: zeros[1] };
            let mut y = call.output_bytes(0)?;
            pair_bytes(call.exec, pair, a, b, scales, result, y.bytes());
            Ok(())
        }))
    }
}

/// A function of a byte.
struct ByteFunction([u8; 256]);

impl CpuKernel for ByteFunction {
    fn bind(&self, _: &NodeShapes) -> Result<CpuStep, String> {
        let table = self.0;
        Ok(CpuStep::new(move |call| {
            let x = call.input_bytes(0)?;
            look_up(call.exec, x, &table, call.output_bytes(0)?.bytes());
            Ok(())
        }))
    }
}

pub(super) fn supports_product(
    view: &CpuNodeView<'_>,
    places: QuantizedInputs,
) -> Result<(), String> {
    for index in [places.a, places.b] {
        byte_type(view.input(index).map(|fact| fact.dtype))?;
    }
    let scales = [places.a_scale, places.b_scale, places.bias, places.result.map(|place| place.0)];
    view.floats(&scales.into_iter().flatten().collect::<Vec<_>>())?;
    for index in [places.b_scale, Some(places.b_zero), places.sums].into_iter().flatten() {
        if view.has(index) && view.constant(index).is_none() {
            return Err(format!("input {index} is no constant"));
        }
    }
    if let Some((scale, zero)) = places.result.filter(|&(scale, _)| view.has(scale)) {
        constant_scale(view, scale)?;
        constant_zero(view, zero)?;
    }
    // Of A there is one scale and one zero point; they need not be constant.
    for index in [places.a_scale, Some(places.a_zero)].into_iter().flatten() {
        let shape = view.input(index).and_then(|fact| fact.known_shape());
        if view.has(index) && shape.is_none_or(|shape| shape.iter().product::<usize>() != 1) {
            return Err("the kernel takes one scale and one zero point for A".into());
        }
    }
    if let Some(weights) = view.constant(places.b) {
        let lead = weights.rank().saturating_sub(2);
        if weights.rank() < 2 || weights.shape()[..lead].iter().any(|&len| len != 1) {
            return Err(format!("B has shape {:?}, not that of a matrix", weights.shape()));
        }
        return Ok(());
    }
    constant_zero(view, places.b_zero)?;
    places.b_scale.map_or(Ok(()), |index| constant_scale(view, index).map(drop))?;
    if places.bias.is_some_and(|index| view.has(index)) {
        return Err("B is no constant, and there is a bias".into());
    }
    Ok(())
}

/// Properties of a matrix multiplication that are known before a run.
struct QuantizedProduct {
    places: QuantizedInputs,
    /// B where it is constant.
    packed: Option<Arc<PackedInt8>>,
    b_scales: Vec<f32>,
    b_zeros: Vec<i32>,
    sums: Option<Vec<i32>>,
    /// A factor on everything.
    alpha: f32,
    /// Scale and zero point of a quantised result.
    result: Option<(f32, i32)>,
    /// The columns for a signed and an unsigned A, where nothing of them changes.
    fixed: Option<(bool, Arc<ColumnScales>)>,
}

fn product(
    view: &CpuNodeView<'_>,
    places: QuantizedInputs,
    trans_b: bool,
    alpha: f32,
) -> Result<Box<dyn CpuKernel>, String> {
    let weights = view.constant(places.b);
    let packed = weights.map(|weights| pack(view, weights, trans_b)).transpose()?;
    product_of(view, places, packed, alpha)
}

/// The kernel of a product whose constant weights are packed already.
pub(super) fn product_of(
    view: &CpuNodeView<'_>,
    places: QuantizedInputs,
    packed: Option<PackedInt8>,
    alpha: f32,
) -> Result<Box<dyn CpuKernel>, String> {
    let packed = packed.map(Arc::new);
    let sums = match places.sums.filter(|&index| view.has(index)) {
        Some(index) => {
            let tensor = view.constant(index).ok_or("C is no constant")?;
            let n = &packed;
            let n = n.as_ref().map_or(0, |packed| packed.n());
            let row = tensor.broadcast_to(&[1, n]).map_err(|error| error.to_string())?;
            Some(row.to_vec::<i32>().map_err(|error| error.to_string())?)
        }
        None => None,
    };
    let result = match places.result.filter(|&(scale, _)| view.has(scale)) {
        Some((scale, zero)) => Some((constant_scale(view, scale)?, constant_zero(view, zero)?)),
        None => None,
    };
    let b_scales = places.b_scale.map_or(Ok(vec![1.0]), |index| view.constant_floats(index))?;
    let b_zeros = zero_points(view, places.b_zero)?;
    let n = packed.as_ref().map_or(1, |packed| packed.n());
    for count in [b_scales.len(), b_zeros.len()] {
        if count != 1 && count != n {
            return Err(format!("{count} scales or zero points for {n} columns"));
        }
    }
    let mut made =
        QuantizedProduct { places, packed, b_scales, b_zeros, sums, alpha, result, fixed: None };
    made.fixed = made.fixed_columns(view);
    Ok(Box::new(ProductKernel(Arc::new(made))))
}

/// Packs constant weights.
pub(super) fn pack(
    view: &CpuNodeView<'_>,
    weights: &Tensor,
    trans_b: bool,
) -> Result<PackedInt8, String> {
    let [.., rows, columns] = *weights.shape() else { return Err("B is no matrix".into()) };
    let signed = is_signed(weights.dtype())?;
    let whole = weights.contiguous().map_err(|error| error.to_string())?;
    let bytes = whole.as_bytes().map_err(|error| error.to_string())?;
    let dot = DotIsa::of(view.device.isa);
    Ok(if trans_b {
        PackedInt8::pack(dot, columns, rows, signed, |i, j| bytes[j * columns + i])
    } else {
        PackedInt8::pack(dot, rows, columns, signed, |i, j| bytes[i * columns + j])
    })
}

impl QuantizedProduct {
    /// The columns, where scale and zero point of A and the bias are constant.
    fn fixed_columns(&self, view: &CpuNodeView<'_>) -> Option<(bool, Arc<ColumnScales>)> {
        let packed = self.packed.as_ref()?;
        let signed = is_signed(view.input(self.places.a)?.dtype).ok()?;
        let zero = constant_zero(view, self.places.a_zero).ok()?;
        let scale = match self.places.a_scale {
            Some(index) => constant_scale(view, index).ok()?,
            None => 1.0,
        };
        let bias = match self.places.bias.filter(|&index| view.has(index)) {
            Some(index) => Some(view.constant_floats(index).ok()?),
            None => None,
        };
        let form = ByteForm { signed, zero };
        let columns = self.columns(packed, form, scale, bias.as_deref()).ok()?;
        Some((signed, Arc::new(columns)))
    }

    /// The factor of a column's sums.
    fn factor(&self, a_scale: f32, column: usize) -> f32 {
        let b_scale = self.b_scales[if self.b_scales.len() == 1 { 0 } else { column }];
        let product = f64::from(self.alpha) * f64::from(a_scale) * f64::from(b_scale);
        #[allow(clippy::cast_possible_truncation, reason = "rounded once")]
        let factor = (product / self.result.map_or(1.0, |(scale, _)| f64::from(scale))) as f32;
        factor
    }

    fn columns(
        &self,
        packed: &PackedInt8,
        a: ByteForm,
        a_scale: f32,
        bias: Option<&[f32]>,
    ) -> Result<ColumnScales, String> {
        let columns = ColumnScales::new(packed, a, &self.b_zeros);
        let mut columns = columns.with_scales(|column| self.factor(a_scale, column));
        if let Some(sums) = &self.sums {
            columns = columns.with_sums(sums);
        }
        match bias {
            Some(&[one]) => columns = columns.with_biases(&vec![one; packed.n()]),
            Some(bias) if bias.len() == packed.n() => columns = columns.with_biases(bias),
            Some(bias) => return Err(format!("{} biases for {packed:?}", bias.len())),
            None => {}
        }
        Ok(columns)
    }

    /// Returns the parameters that a run brings: scale, zero point and bias.
    fn columns_in(
        &self,
        call: &StepCall<'_>,
        packed: &PackedInt8,
        signed: bool,
    ) -> Result<ColumnScales, OpError> {
        let (scale, zero) = self.a_in(call)?;
        let bias = match self.places.bias {
            Some(index) => call.optional::<f32>(index)?,
            None => None,
        };
        self.columns(packed, ByteForm { signed, zero }, scale, bias).map_err(OpError::new)
    }

    /// Scale and zero point of A.
    fn a_in(&self, call: &StepCall<'_>) -> Result<(f32, i32), OpError> {
        let scale = self.places.a_scale.map_or(Ok(1.0), |index| scale_in(call, index))?;
        Ok((scale, zero_in(call, self.places.a_zero)?))
    }

    fn bind_packed(
        self: Arc<Self>,
        packed: Arc<PackedInt8>,
        shapes: &NodeShapes,
    ) -> Result<CpuStep, String> {
        let a = shapes.input(self.places.a)?;
        let signed = is_signed(shapes.dtype(self.places.a)?)?;
        let Some((&k, lead)) = a.split_last() else { return Err("A is a scalar".into()) };
        if k != packed.k() {
            return Err(format!("A has {k} columns for {packed:?}"));
        }
        let m: usize = lead.iter().product();
        let result = QuantizedResult::of(shapes, self.result)?;
        Ok(CpuStep::new(move |call| {
            let data = call.input_bytes(self.places.a)?;
            let zero = 0;
            let made;
            let columns = match &self.fixed {
                Some((of, columns)) if *of == signed => &**columns,
                _ => {
                    made = self.columns_in(call, &packed, signed)?;
                    &made
                }
            };
            let a = QuantizedBytes { data, signed, zero };
            result.with(call, |exec, target| gemm_int8(exec, m, a, &packed, columns, target))
        }))
    }

    fn bind_batched(self: Arc<Self>, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let a = shapes.input(self.places.a)?;
        let b = shapes.input(self.places.b)?;
        let ([a_lead @ .., m, k], [b_lead @ .., rows, n]) = (a, b) else {
            return Err("an operand has fewer than two axes".into());
        };
        let m = *m;
        let k = *k;
        let n = *n;
        if *rows != k {
            return Err(format!("A has {k} columns for {rows} rows"));
        }
        let lead = galatea_tensor::broadcast_shapes(a_lead, b_lead).map_err(|e| e.to_string())?;
        let a_offsets = batch_offsets(a_lead, &lead, m * k).ok_or("A does not broadcast")?;
        let b_offsets = batch_offsets(b_lead, &lead, k * n).ok_or("B does not broadcast")?;
        let signed = is_signed(shapes.dtype(self.places.a)?)?;
        let b_signed = is_signed(shapes.dtype(self.places.b)?)?;
        let b_zero = self.b_zeros[0];
        let result = QuantizedResult::of(shapes, self.result)?;
        Ok(CpuStep::new(move |call| {
            let (scale, zero) = self.a_in(call)?;
            let bytes = QuantizedBytes { data: call.input_bytes(self.places.a)?, signed, zero };
            let a = Int8BatchedOperand { bytes, offsets: &a_offsets };
            let data = call.input_bytes(self.places.b)?;
            let bytes = QuantizedBytes { data, signed: b_signed, zero: b_zero };
            let b = Int8BatchedOperand { bytes, offsets: &b_offsets };
            let factor = self.factor(scale, 0);
            result.with(call, |exec, target| {
                matmul_int8_batched(exec, ProductSize { m, k, n }, a, b, factor, target);
            })
        }))
    }
}

/// Type of a result, and the limits of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum QuantizedResult {
    /// Bytes, moved by `zero` and limited.
    Bytes { zero: i32, low: i32, high: i32 },
    /// Floats.
    Floats,
    /// Sums as they are.
    Sums,
}

impl QuantizedResult {
    /// Returns the type of output 0; bytes need scale and zero point.
    pub(super) fn of(shapes: &NodeShapes, result: Option<(f32, i32)>) -> Result<Self, String> {
        match (shapes.output_dtype(0)?, result) {
            (DataType::Fp32, None) => Ok(Self::Floats),
            (DataType::Int32, None) => Ok(Self::Sums),
            (dtype, Some((_, zero))) => {
                let (low, high) = limits(is_signed(dtype)?);
                Ok(Self::Bytes { zero, low, high })
            }
            (dtype, None) => Err(format!("a result of type {dtype} without a scale")),
        }
    }

    /// Runs a product into output 0.
    pub(super) fn with(
        self,
        call: &mut StepCall<'_>,
        run: impl FnOnce(KernelContext<'_>, Int8Target<'_>),
    ) -> Result<(), OpError> {
        let exec = call.exec;
        match self {
            Self::Bytes { zero, low, high } => {
                let mut y = call.output_bytes(0)?;
                run(exec, Int8Target::Bytes { out: y.bytes(), zero, low, high });
            }
            Self::Floats => run(exec, Int8Target::Floats(call.output::<f32>(0)?.slice())),
            Self::Sums => run(exec, Int8Target::Sums(call.output::<i32>(0)?.slice())),
        }
        Ok(())
    }
}

/// A product, shared with the steps that it is bound to.
struct ProductKernel(Arc<QuantizedProduct>);

impl CpuKernel for ProductKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let product = Arc::clone(&self.0);
        match &self.0.packed {
            Some(packed) => product.bind_packed(Arc::clone(packed), shapes),
            None => product.bind_batched(shapes),
        }
    }

    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::new(self.0.packed.as_ref().map_or(0, |packed| packed.size_bytes()), false)
    }
}
