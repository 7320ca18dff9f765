//! Convolutions and poolings of bytes. The kernels run channels last; nodes whose channels come
//! first are turned around in memory of the step.

use std::sync::{Arc, Mutex, PoisonError};

use galatea_graph::ops::convolution::{
    Conv, ConvGeometry, ConvInteger, QLinearConv, QLinearConvAdd,
};
use galatea_graph::ops::pooling::{MaxPool, PoolWindow};
use galatea_graph::{GALATEA_DOMAIN, ONNX_DOMAIN, OpError};
use galatea_kernels::conv::{ConvParams, ImageBatch};
use galatea_kernels::int8::{
    ByteForm, ConvColumns, Int8Conv, Int8ConvWeights, Int8Summand, Int8Target, QuantizedBytes,
    SummandScales, conv_int8, max_pool_bytes,
};
use galatea_kernels::isa::DotIsa;
use galatea_kernels::permute::permute;
use galatea_kernels::{Isa, KernelContext};
use galatea_tensor::Tensor;

use super::CONTRIB_DOMAIN;
use super::conv_zeros::supports_byte_zeros;
use super::image::{ImageShape, leading, ones};
use super::quantized::{
    QuantizedResult, byte_type, constant_scale, constant_zero, is_signed, limits, zero_in,
    zero_points,
};
use crate::cpu::{
    CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, StepCall, WeightBytes,
};

/// The input of a `QLinearConvAdd` that joins its convolution.
const SUMMAND: usize = 9;

const QLINEAR_CONV: CpuKernelRow = CpuKernelRow {
    name: "qlinear_conv-int8",
    domain: ONNX_DOMAIN,
    ops: &["QLinearConv"],
    supports: |view| {
        supports_conv(view, 0, 3)?;
        same_type(view, 0, 2)?;
        same_type(view, 3, 5)?;
        view.floats(&[1, 4, 6])?;
        constant_scale(view, 1)?;
        constant_zero(view, 2)?;
        constant_scale(view, 6)?;
        constant_zero(view, 7)?;
        zero_points(view, 5)?;
        view.constant_floats(4)?;
        if view.has(8) {
            view.constant(8).map(drop).ok_or("the bias is no constant".into())
        } else {
            Ok(())
        }
    },
    build: |view| {
        qlinear_conv(view, &view.operator::<QLinearConv>()?.conv, None, WeightZeros::Multiplied)
    },
};

/// The same, passing over zeros of the weights.
const QLINEAR_CONV_SPARSE: CpuKernelRow = CpuKernelRow {
    name: "qlinear_conv-int8-sparse",
    supports: |view| {
        (QLINEAR_CONV.supports)(view)?;
        supports_byte_zeros(view, &view.operator::<QLinearConv>()?.conv, 3)
    },
    build: |view| {
        qlinear_conv(view, &view.operator::<QLinearConv>()?.conv, None, WeightZeros::PassedOver)
    },
    ..QLINEAR_CONV
};

const QLINEAR_CONV_ADD: CpuKernelRow = CpuKernelRow {
    name: "qlinear_conv_add-int8",
    domain: GALATEA_DOMAIN,
    ops: &["QLinearConvAdd"],
    supports: |view| {
        (QLINEAR_CONV.supports)(view)?;
        let conv = &view.operator::<QLinearConvAdd>()?.conv;
        if !conv.channels_last || conv.group != 1 {
            return Err("the kernel sums images with the channels last, and one group".into());
        }
        same_type(view, SUMMAND, 11)?;
        byte_type(view.input(SUMMAND).map(|fact| fact.dtype))?;
        byte_type(view.output(0).map(|fact| fact.dtype))?;
        view.floats(&[10, 12])?;
        constant_scale(view, 10)?;
        constant_zero(view, 11)?;
        constant_scale(view, 12)?;
        constant_zero(view, 13).map(drop)
    },
    build: |view| qlinear_conv_add(view, WeightZeros::Multiplied),
};

const CONV_INTEGER: CpuKernelRow = CpuKernelRow {
    name: "conv_integer-int8_int32",
    domain: ONNX_DOMAIN,
    ops: &["ConvInteger"],
    supports: |view| {
        supports_conv(view, 0, 1)?;
        same_type(view, 0, 2)?;
        same_type(view, 1, 3)?;
        zero_points(view, 3).map(drop)
    },
    build: |view| conv_integer(view, WeightZeros::Multiplied),
};

const MAX_POOL: CpuKernelRow = CpuKernelRow {
    name: "max_pool-int8",
    domain: ONNX_DOMAIN,
    ops: &["MaxPool"],
    supports: |view| {
        byte_type(view.input(0).map(|fact| fact.dtype))?;
        if view.node.outputs.iter().skip(1).any(Option::is_some) {
            return Err("the positions are wanted too".into());
        }
        Ok(())
    },
    build: |view| Ok(Box::new(QuantizedMaxPool(view.operator::<MaxPool>()?.window.clone()))),
};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    QLINEAR_CONV_SPARSE,
    CpuKernelRow { domain: CONTRIB_DOMAIN, ..QLINEAR_CONV_SPARSE },
    QLINEAR_CONV,
    CpuKernelRow { domain: CONTRIB_DOMAIN, ..QLINEAR_CONV },
    CpuKernelRow {
        name: "qlinear_conv_add-int8-sparse",
        supports: |view| {
            (QLINEAR_CONV_ADD.supports)(view)?;
            supports_byte_zeros(view, &view.operator::<QLinearConvAdd>()?.conv, 3)
        },
        build: |view| qlinear_conv_add(view, WeightZeros::PassedOver),
        ..QLINEAR_CONV_ADD
    },
    QLINEAR_CONV_ADD,
    CpuKernelRow {
        name: "conv_integer-int8_int32-sparse",
        supports: |view| {
            (CONV_INTEGER.supports)(view)?;
            supports_byte_zeros(view, &view.operator::<ConvInteger>()?.conv, 1)
        },
        build: |view| conv_integer(view, WeightZeros::PassedOver),
        ..CONV_INTEGER
    },
    CONV_INTEGER,
    MAX_POOL,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["MaxPoolNhwc"], ..MAX_POOL },
];

/// Treatment of weights that are zero in groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WeightZeros {
    /// They are multiplied like the others.
    Multiplied,
    /// Groups of them are left out.
    PassedOver,
}

fn qlinear_conv_add(
    view: &CpuNodeView<'_>,
    weight_zeros: WeightZeros,
) -> Result<Box<dyn CpuKernel>, String> {
    let signed =
        |index: usize| is_signed(view.input(index).ok_or("nothing is known of an input")?.dtype);
    let summand = ConvSummand {
        signed: signed(SUMMAND)?,
        signed_own: signed(7)?,
        signed_result: signed(13)?,
        scale: constant_scale(view, 10)?,
        zero: constant_zero(view, 11)?,
        result: (constant_scale(view, 12)?, constant_zero(view, 13)?),
    };
    let conv = &view.operator::<QLinearConvAdd>()?.conv;
    qlinear_conv(view, conv, Some(summand), weight_zeros)
}

fn conv_integer(
    view: &CpuNodeView<'_>,
    weight_zeros: WeightZeros,
) -> Result<Box<dyn CpuKernel>, String> {
    let conv = view.operator::<ConvInteger>()?.conv.clone();
    let weights = view.constant(1).ok_or("the weights are no constant")?.clone();
    let zeros = zero_points(view, 3)?;
    let isa = view.device.isa;
    let parts = QuantizedConvWeights { conv, isa, weights, zeros, scaled: None, weight_zeros };
    QuantizedConvKernel::build(view, parts)
}

/// Refuses a zero point of another type than its tensor.
fn same_type(view: &CpuNodeView<'_>, tensor: usize, zero: usize) -> Result<(), String> {
    let dtype = |index| view.input(index).map(|fact| fact.dtype);
    if view.has(zero) && dtype(tensor) != dtype(zero) {
        return Err(format!("input {zero} has another type than input {tensor}"));
    }
    Ok(())
}

fn supports_conv(view: &CpuNodeView<'_>, image: usize, weights: usize) -> Result<(), String> {
    byte_type(view.input(image).map(|fact| fact.dtype))?;
    byte_type(view.input(weights).map(|fact| fact.dtype))?;
    let weights = view.constant(weights).ok_or("the weights are no constant")?;
    if !(3..=5).contains(&weights.rank()) {
        return Err(format!("weights of rank {}", weights.rank()));
    }
    Ok(())
}

/// Scaling of the sums of a convolution whose parameters are constant.
struct ScaledConvSums {
    zero: i32,
    /// A factor for each output channel.
    factors: Vec<f32>,
    bias: Option<Vec<i32>>,
    result: (f32, i32),
    /// The value that is added, input [`SUMMAND`].
    summand: Option<ConvSummand>,
}

/// A value that is added to a convolution's result, and what becomes of the sum.
struct ConvSummand {
    signed: bool,
    scale: f32,
    zero: i32,
    result: (f32, i32),
    signed_result: bool,
    /// True if the convolution's own result is signed.
    signed_own: bool,
}

/// The constant operands of a convolution.
struct QuantizedConvWeights {
    conv: Conv,
    isa: Isa,
    weights: Tensor,
    zeros: Vec<i32>,
    scaled: Option<ScaledConvSums>,
    weight_zeros: WeightZeros,
}

impl QuantizedConvWeights {
    /// Returns the summand, and scale and zero point of the convolution's own result.
    fn summand(&self) -> Option<(&ConvSummand, (f32, i32))> {
        let scaled = self.scaled.as_ref()?;
        Some((scaled.summand.as_ref()?, scaled.result))
    }
}

/// Weights packed for an image of some size, and what is known of the channels.
type PackedQuantizedConv = (Arc<Int8Conv>, Option<Arc<ConvColumns>>);

/// A convolution with constant weights.
struct QuantizedConvKernel {
    parts: Arc<QuantizedConvWeights>,
    /// True if the image is signed.
    signed: bool,
    /// Packed weights by padding, which may depend on the size of the image.
    packed: Mutex<Vec<PackedQuantizedConv>>,
}

fn qlinear_conv(
    view: &CpuNodeView<'_>,
    conv: &Conv,
    summand: Option<ConvSummand>,
    weight_zeros: WeightZeros,
) -> Result<Box<dyn CpuKernel>, String> {
    let weights = view.constant(3).ok_or("the weights are no constant")?.clone();
    let channels = weights.shape().first().copied().unwrap_or(0);
    let x_scale = constant_scale(view, 1)?;
    let y_scale = constant_scale(view, 6)?;
    let w_scales = view.constant_floats(4)?;
    if w_scales.len() != 1 && w_scales.len() != channels {
        return Err(format!("{} scales for {channels} channels", w_scales.len()));
    }
    #[allow(clippy::cast_possible_truncation, reason = "rounded once")]
    let factor = |channel: usize| {
        let w_scale = w_scales[if w_scales.len() == 1 { 0 } else { channel }];
        (f64::from(x_scale) * f64::from(w_scale) / f64::from(y_scale)) as f32
    };
    let bias = match view.constant(8) {
        Some(bias) => {
            let bias = bias.to_vec::<i32>().map_err(|error| error.to_string())?;
            if bias.len() != channels {
                return Err(format!("{} biases for {channels} channels", bias.len()));
            }
            Some(bias)
        }
        None => None,
    };
    let scaled = ScaledConvSums {
        zero: constant_zero(view, 2)?,
        factors: (0..channels).map(factor).collect(),
        bias,
        result: (y_scale, constant_zero(view, 7)?),
        summand,
    };
    let conv = conv.clone();
    let zeros = zero_points(view, 5)?;
    let isa = view.device.isa;
    let scaled = Some(scaled);
    let parts = QuantizedConvWeights { conv, isa, weights, zeros, scaled, weight_zeros };
    QuantizedConvKernel::build(view, parts)
}

impl QuantizedConvKernel {
    fn build(
        view: &CpuNodeView<'_>,
        parts: QuantizedConvWeights,
    ) -> Result<Box<dyn CpuKernel>, String> {
        let channels = parts.weights.shape().first().copied().unwrap_or(0);
        if parts.zeros.len() != 1 && parts.zeros.len() != channels {
            return Err(format!("{} zero points for {channels} channels", parts.zeros.len()));
        }
        let signed = is_signed(view.input(0).ok_or("nothing is known of the image")?.dtype)?;
        let kernel = Self { parts: Arc::new(parts), signed, packed: Mutex::default() };
        // Where the size is known, the weights are packed at once.
        let known = view.input(0).and_then(|fact| {
            let shape = fact.shape.as_ref()?;
            let spatial = match kernel.parts.conv.channels_last {
                true => shape.get(1..shape.len().saturating_sub(1))?,
                false => shape.get(2..)?,
            };
            spatial.iter().map(galatea_graph::Dim::known).collect::<Option<Vec<usize>>>()
        });
        if let Some(spatial) = known {
            kernel.packed(&spatial)?;
        }
        Ok(Box::new(kernel))
    }

    fn params(&self, spatial: &[usize]) -> Result<ConvParams, String> {
        let conv = &self.parts.conv;
        let shape = self.parts.weights.shape();
        let geometry: ConvGeometry =
            conv.geometry(spatial, &shape[2..]).map_err(|error| error.to_string())?;
        Ok(ConvParams {
            in_channels: shape[1].saturating_mul(conv.group),
            out_channels: shape[0],
            kernel: ones(&shape[2..])?,
            stride: ones(&conv.strides)?,
            dilation: ones(&conv.dilations)?,
            pads_begin: leading(&geometry.pads_begin, 0)?,
            pads_end: leading(&geometry.pads_end, 0)?,
            groups: conv.group,
        })
    }

    fn packed(&self, spatial: &[usize]) -> Result<PackedQuantizedConv, String> {
        let params = self.params(spatial)?;
        let parts = &self.parts;
        check(&params)?;
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = packed.iter().find(|found| *found.0.params() == params) {
            return Ok(found.clone());
        }
        let whole = parts.weights.contiguous().map_err(|error| error.to_string())?;
        let data = whole.as_bytes().map_err(|error| error.to_string())?;
        let signed = is_signed(parts.weights.dtype())?;
        let weights = Int8ConvWeights { data, signed, zeros: &parts.zeros };
        let dot = DotIsa::of(parts.isa);
        let made = Int8Conv::pack(dot, params, weights, parts.scaled.is_some());
        let made = match parts.weight_zeros {
            WeightZeros::Multiplied => made,
            WeightZeros::PassedOver => made.passing_over_zeros(),
        };
        let columns = parts.scaled.as_ref().map(|scaled| {
            let bias = scaled.bias.as_deref();
            let image = ByteForm { signed: self.signed, zero: scaled.zero };
            Arc::new(made.columns(image, &parts.zeros, bias, |channel| scaled.factors[channel]))
        });
        let made = (Arc::new(made), columns);
        packed.push(made.clone());
        Ok(made)
    }
}

/// Lengths and pads are below this, so that sums and products of two do not overflow.
const MOST: usize = 1 << 30;

/// Refuses windows without taps or beyond memory, and channels that the groups do not divide.
fn check(params: &ConvParams) -> Result<(), String> {
    let mut lengths = params.kernel.iter().chain(&params.stride).chain(&params.dilation);
    let mut pads = params.pads_begin.iter().chain(&params.pads_end);
    if lengths.any(|&length| length == 0 || length >= MOST)
        || pads.any(|&pad| pad >= MOST)
        || params.groups == 0
        || !params.out_channels.is_multiple_of(params.groups)
    {
        return Err(format!("{params:?}"));
    }
    Ok(())
}

impl CpuKernel for QuantizedConvKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let last = self.parts.conv.channels_last;
        let image = ImageShape::of(shapes.input(0)?, last)?;
        let result = ImageShape::of(shapes.output(0)?, last)?;
        let (packed, columns) = self.packed(&image.spatial)?;
        let size = leading(&image.spatial, 1)?;
        let params = packed.params();
        if image.channels != params.in_channels
            || params.output_size(size) != leading::<3>(&result.spatial, 1)?
        {
            return Err(format!("an image of {} channels and size {size:?}", image.channels));
        }
        let signed = self.signed;
        let parts = Arc::clone(&self.parts);
        let joins = parts.summand().is_some();
        if joins && shapes.input(SUMMAND)? != shapes.output(0)? {
            return Err(format!("a summand of shape {:?}", shapes.input(SUMMAND)?));
        }
        let made = QuantizedResult::of(shapes, parts.scaled.as_ref().map(|scaled| scaled.result))?;
        let step = CpuStep::new(move |call| {
            let zero = match &parts.scaled {
                Some(scaled) => scaled.zero,
                None => zero_in(call, 2)?,
            };
            let own;
            let columns = match &columns {
                Some(columns) => &**columns,
                None => {
                    own = packed.columns(ByteForm { signed, zero }, &parts.zeros, None, |_| 1.0);
                    &own
                }
            };
            let turned;
            let data = match last {
                true => call.input_bytes(0)?,
                false => {
                    turned = channels_last(call.exec, call.input_bytes(0)?, &image);
                    &turned
                }
            };
            let x = QuantizedBytes { data, signed, zero };
            let sizes = ImageBatch { batch: image.batch, size };
            if let Some((summand, (own_scale, own_zero))) = parts.summand() {
                let data = match call.is_in_place(SUMMAND) {
                    true => None,
                    false => Some(call.input_bytes(SUMMAND)?),
                };
                let beside = Int8Summand {
                    data,
                    form: ByteForm { signed: summand.signed, zero: summand.zero },
                    scales: SummandScales {
                        own: own_scale,
                        other: summand.scale,
                        result: summand.result.0,
                    },
                    result: ByteForm { signed: summand.signed_result, zero: summand.result.1 },
                };
                let (low, high) = limits(summand.signed_own);
                let mut y = call.output_bytes(0)?;
                let target = Int8Target::Sum { out: y.bytes(), zero: own_zero, low, high, beside };
                conv_int8(call.exec, &packed, x, sizes, columns, target);
                return Ok(());
            }
            if last {
                let run = |exec: KernelContext<'_>, target: Int8Target<'_>| {
                    conv_int8(exec, &packed, x, sizes, columns, target);
                };
                return made.with(call, run);
            }
            into_channels_first(call, made, &result, |exec, target| {
                conv_int8(exec, &packed, x, sizes, columns, target);
            })
        });
        Ok(if joins { step.in_place(SUMMAND, 0) } else { step })
    }

    fn weight_bytes(&self) -> WeightBytes {
        let packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        WeightBytes::new(packed.iter().map(|(packed, _)| packed.size_bytes()).sum(), false)
    }
}

/// An image with its channels moved to the end.
fn channels_last<T: Copy + Default + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    image: &ImageShape,
) -> Vec<T> {
    let mut turned = vec![T::default(); x.len()];
    let shape = [image.batch, image.channels, image.pixels()];
    permute(exec, x, &shape, &[0, 2, 1], &mut turned);
    turned
}

/// Runs a convolution and moves the channels of its result to the front.
fn into_channels_first(
    call: &mut StepCall<'_>,
    made: QuantizedResult,
    result: &ImageShape,
    run: impl FnOnce(KernelContext<'_>, Int8Target<'_>),
) -> Result<(), OpError> {
    let exec = call.exec;
    let shape = [result.batch, result.pixels(), result.channels];
    let count = shape.iter().product();
    match made {
        QuantizedResult::Bytes { zero, low, high } => {
            let mut own = vec![0_u8; count];
            run(exec, Int8Target::Bytes { out: &mut own, zero, low, high });
            permute(exec, &own, &shape, &[0, 2, 1], call.output_bytes(0)?.bytes());
        }
        QuantizedResult::Sums => {
            let mut own = vec![0_i32; count];
            run(exec, Int8Target::Sums(&mut own));
            permute(exec, &own, &shape, &[0, 2, 1], call.output::<i32>(0)?.slice());
        }
        QuantizedResult::Floats => {
            let mut own = vec![0_f32; count];
            run(exec, Int8Target::Floats(&mut own));
            permute(exec, &own, &shape, &[0, 2, 1], call.output::<f32>(0)?.slice());
        }
    }
    Ok(())
}

/// A maximum under a window.
struct QuantizedMaxPool(PoolWindow);

impl CpuKernel for QuantizedMaxPool {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let window = &self.0;
        let last = window.channels_last;
        let image = ImageShape::of(shapes.input(0)?, last)?;
        let result = ImageShape::of(shapes.output(0)?, last)?;
        let geometry = window.geometry(&image.spatial).map_err(|error| error.to_string())?;
        let params = ConvParams {
            in_channels: image.channels,
            out_channels: image.channels,
            kernel: ones(&window.kernel_shape)?,
            stride: ones(&window.strides)?,
            dilation: ones(&window.dilations)?,
            pads_begin: leading(&geometry.pads_begin, 0)?,
            pads_end: leading(&geometry.pads_end, 0)?,
            groups: 1,
        };
        check(&params)?;
        let size = leading(&image.spatial, 1)?;
        if params.output_size(size) != leading::<3>(&result.spatial, 1)? {
            return Err(format!("a result of size {:?}", result.spatial));
        }
        let signed = is_signed(shapes.dtype(0)?)?;
        Ok(CpuStep::new(move |call| {
            let exec = call.exec;
            let x = call.input_bytes(0)?;
            let mut y = call.output_bytes(0)?;
            let sizes = ImageBatch { batch: image.batch, size };
            if last {
                max_pool_bytes(exec, &params, x, signed, sizes, y.bytes());
                return Ok(());
            }
            let x = channels_last(exec, x, &image);
            let mut own = vec![0; y.bytes().len()];
            max_pool_bytes(exec, &params, &x, signed, sizes, &mut own);
            let shape = [result.batch, result.pixels(), result.channels];
            permute(exec, &own, &shape, &[0, 2, 1], y.bytes());
            Ok(())
        }))
    }
}
