//! Images: convolutions and pooling. The kernels run channels last; nodes whose channels come
//! first are turned around in the step's own memory.

use galatea_graph::Dim;
use galatea_graph::ops::convolution::{Conv, ConvGeometry, FusedConv};
use galatea_graph::ops::pooling::{AveragePool, GlobalAveragePool, MaxPool, PoolWindow};
use galatea_graph::{GALATEA_DOMAIN, ONNX_DOMAIN, OpError};
use galatea_kernels::bf16::{Bf16Summand, ConvBf16, conv_bf16};
use galatea_kernels::conv::{
    ConvParams, CpuConvAlgorithm, ImageBatch, PackedConv, candidates, conv, conv_depthwise_bf16,
    is_accurate, sparse_candidates, weight_zeros,
};
use galatea_kernels::permute::transpose;
use galatea_kernels::pooling::{PoolParams, WindowPool, WindowRounding, pool, pool_bf16};
use galatea_kernels::reduce::{RowReduce, reduce_last};
use galatea_kernels::{
    ActivationFunction, GemmEpilogue, KernelContext, MatrixJoin, RealSlice, RealsMut,
    ResidualMatrix,
};
use galatea_runtime::Precision;
use galatea_runtime::tune::{ConfigAxis, ConfigSpace};
use galatea_tensor::DataType;

use super::conv_zeros::supports_bf16_zeros;
use super::elementwise::fused;
use crate::cpu::{
    Bf16Operands, CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, WeightBytes, packing,
};

const CONV_BF16: CpuKernelRow = CpuKernelRow {
    name: "conv-bf16-packed",
    domain: ONNX_DOMAIN,
    ops: &["Conv"],
    supports: supports_bf16,
    build: |view| conv_bf16_kernel(view, view.operator::<Conv>()?, ActivationFunction::None),
};

/// The same, passing over zeros.
const CONV_BF16_SPARSE: CpuKernelRow = CpuKernelRow {
    name: "conv-bf16-sparse",
    supports: |view| {
        supports_bf16(view)?;
        supports_bf16_zeros(view, view.operator::<Conv>()?)
    },
    build: |view| conv_bf16_sparse_kernel(view, view.operator::<Conv>()?, ActivationFunction::None),
    ..CONV_BF16
};

const CONV: CpuKernelRow = CpuKernelRow {
    name: "conv-f32-packed",
    domain: ONNX_DOMAIN,
    ops: &["Conv"],
    supports: supports_conv,
    build: |view| conv_kernel(view, view.operator::<Conv>()?, ActivationFunction::None),
};

const CONV_SPARSE: CpuKernelRow = CpuKernelRow {
    name: "conv-f32-sparse",
    domain: ONNX_DOMAIN,
    ops: &["Conv"],
    supports: |view| supports_sparse(view, view.operator::<Conv>()?),
    build: |view| conv_kernel(view, view.operator::<Conv>()?, ActivationFunction::None),
};

const MAX_POOL: CpuKernelRow = CpuKernelRow {
    name: "max_pool-f32",
    domain: ONNX_DOMAIN,
    ops: &["MaxPool"],
    supports: supports_pool,
    build: |view| {
        let op = view.operator::<MaxPool>()?;
        Ok(Box::new(PoolKernel { window: op.window.clone(), pool: WindowPool::Max }))
    },
};

const AVERAGE_POOL: CpuKernelRow = CpuKernelRow {
    name: "average_pool-f32",
    domain: ONNX_DOMAIN,
    ops: &["AveragePool"],
    supports: supports_pool,
    build: |view| {
        let op = view.operator::<AveragePool>()?;
        let pool =
            if op.count_include_pad { WindowPool::AverageWithPadding } else { WindowPool::Average };
        Ok(Box::new(PoolKernel { window: op.window.clone(), pool }))
    },
};

const GLOBAL_POOL: CpuKernelRow = CpuKernelRow {
    name: "global_average_pool-f32",
    domain: ONNX_DOMAIN,
    ops: &["GlobalAveragePool"],
    supports: |view| view.floats(&[0]),
    build: |view| Ok(Box::new(view.operator::<GlobalAveragePool>()?.clone())),
};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CONV_BF16_SPARSE,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["ConvNhwc"], ..CONV_BF16_SPARSE },
    CpuKernelRow {
        name: "fused_conv-bf16-sparse",
        domain: GALATEA_DOMAIN,
        ops: &["FusedConv"],
        supports: |view| {
            supports_bf16(view)?;
            supports_bf16_zeros(view, &view.operator::<FusedConv>()?.conv)
        },
        build: |view| {
            let op = view.operator::<FusedConv>()?;
            conv_bf16_sparse_kernel(view, &op.conv, fused(op.activation))
        },
    },
    CONV_BF16,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["ConvNhwc"], ..CONV_BF16 },
    CpuKernelRow {
        name: "fused_conv-bf16-packed",
        domain: GALATEA_DOMAIN,
        ops: &["FusedConv"],
        supports: supports_bf16,
        build: |view| {
            let op = view.operator::<FusedConv>()?;
            conv_bf16_kernel(view, &op.conv, fused(op.activation))
        },
    },
    CONV_SPARSE,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["ConvNhwc"], ..CONV_SPARSE },
    CpuKernelRow {
        name: "fused_conv-f32-sparse",
        domain: GALATEA_DOMAIN,
        ops: &["FusedConv"],
        supports: |view| supports_sparse(view, &view.operator::<FusedConv>()?.conv),
        build: |view| {
            let op = view.operator::<FusedConv>()?;
            conv_kernel(view, &op.conv, fused(op.activation))
        },
    },
    CONV,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["ConvNhwc"], ..CONV },
    CpuKernelRow {
        name: "fused_conv-f32-packed",
        domain: GALATEA_DOMAIN,
        ops: &["FusedConv"],
        supports: supports_conv,
        build: |view| {
            let op = view.operator::<FusedConv>()?;
            conv_kernel(view, &op.conv, fused(op.activation))
        },
    },
    MAX_POOL,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["MaxPoolNhwc"], ..MAX_POOL },
    AVERAGE_POOL,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["AveragePoolNhwc"], ..AVERAGE_POOL },
    GLOBAL_POOL,
    CpuKernelRow { domain: GALATEA_DOMAIN, ops: &["GlobalAveragePoolNhwc"], ..GLOBAL_POOL },
];

/// An image of `[batch, channels, spatial…]`, whatever the order in memory.
#[derive(Debug)]
pub(super) struct ImageShape {
    pub(super) batch: usize,
    pub(super) channels: usize,
    pub(super) spatial: Vec<usize>,
}

impl ImageShape {
    pub(super) fn of(shape: &[usize], channels_last: bool) -> Result<Self, String> {
        let [batch, rest @ ..] = shape else { return Err("the input is a scalar".into()) };
        let split = if channels_last { rest.split_last() } else { rest.split_first() };
        let Some((&channels, spatial)) = split else { return Err("no channels".into()) };
        if spatial.is_empty() || spatial.len() > 3 {
            return Err(format!("{} spatial axes", spatial.len()));
        }
        Ok(Self { batch: *batch, channels, spatial: spatial.to_vec() })
    }

    pub(super) fn pixels(&self) -> usize {
        self.spatial.iter().product()
    }

    /// Elements to keep a turned copy; none where both orders are the same.
    pub(super) fn turned(&self, channels_last: bool) -> usize {
        let same = channels_last || self.channels == 1 || self.pixels() == 1;
        if same { 0 } else { self.batch * self.channels * self.pixels() }
    }
}

/// Limit of the lengths of images and windows: the kernels multiply and add them.
const MOST: usize = 1 << 30;

/// Up to `N` lengths, the missing leading ones filled.
pub(super) fn leading<const N: usize>(values: &[usize], fill: usize) -> Result<[usize; N], String> {
    if values.iter().any(|&value| value >= MOST) {
        return Err(format!("lengths {values:?}, of which one is {MOST} or more"));
    }
    let missing = N.checked_sub(values.len()).ok_or_else(|| format!("{} axes", values.len()))?;
    Ok(std::array::from_fn(|at| at.checked_sub(missing).map_or(fill, |at| values[at])))
}

/// A list of the window, where an empty one means ones.
pub(super) fn ones<const N: usize>(values: &[usize]) -> Result<[usize; N], String> {
    leading(values, 1)
}

pub(super) fn supports_conv(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.floats(&[0, 1, 2, 3])?;
    let weights = view.constant(1).ok_or("the weights are no constant")?;
    if !(3..=5).contains(&weights.rank()) {
        return Err(format!("weights of rank {}", weights.rank()));
    }
    Ok(())
}

fn supports_sparse(view: &CpuNodeView<'_>, op: &Conv) -> Result<(), String> {
    supports_conv(view)?;
    if view.precision == Precision::Bf16 {
        return Err("convolutions in BF16 pass over zeros by a kernel of their own".into());
    }
    let shape = view.constant(1).ok_or("the weights are no constant")?.shape().to_vec();
    let none = vec![0; shape.len().saturating_sub(2)];
    let params = conv_params(op, &shape, &none, &none)?;
    match algorithm(view, op, &shape, params)? {
        CpuConvAlgorithm::Sparse(_) => Ok(()),
        dense => Err(format!("few weights are zero, or {} is faster", dense.name())),
    }
}

/// Fewest channels of a group whose products are worth tiles of BF16.
const BF16_CHANNELS: usize = 16;

fn supports_bf16(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.wants(Precision::Bf16)?;
    supports_conv(view)?;
    let op = match view.operator::<FusedConv>() {
        Ok(op) => &op.conv,
        Err(_) => view.operator::<Conv>()?,
    };
    let channels = view.constant(1).map_or(0, |weights| weights.shape()[0] / op.group.max(1));
    if op.group > 1 && channels < BF16_CHANNELS {
        return Err(format!("groups of {channels} channels"));
    }
    Ok(())
}

fn conv_bf16_kernel(
    view: &CpuNodeView<'_>,
    op: &Conv,
    activation: ActivationFunction,
) -> Result<Box<dyn CpuKernel>, String> {
    let shape = view.constant(1).ok_or("the weights are no constant")?.shape().to_vec();
    let none = vec![0; shape.len().saturating_sub(2)];
    let params = conv_params(op, &shape, &none, &none)?;
    let packed = PackedImageWeights::Bf16(packing::convolution_bf16(view, 1, params)?);
    Ok(Box::new(CpuConvKernel { op: op.clone(), activation, shape, packed }))
}

/// The same, passing over zeros of the weights.
fn conv_bf16_sparse_kernel(
    view: &CpuNodeView<'_>,
    op: &Conv,
    activation: ActivationFunction,
) -> Result<Box<dyn CpuKernel>, String> {
    let shape = view.constant(1).ok_or("the weights are no constant")?.shape().to_vec();
    let none = vec![0; shape.len().saturating_sub(2)];
    let params = conv_params(op, &shape, &none, &none)?;
    let packed = packing::convolution_bf16(view, 1, params)?.passing_over_zeros();
    let packed = PackedImageWeights::Bf16(packed);
    Ok(Box::new(CpuConvKernel { op: op.clone(), activation, shape, packed }))
}

/// Packed weights, by what the convolution computes in.
#[derive(Clone)]
enum PackedImageWeights {
    Floats(PackedConv),
    Bf16(ConvBf16),
}

impl PackedImageWeights {
    fn params(&self) -> &ConvParams {
        match self {
            Self::Floats(packed) => packed.params(),
            Self::Bf16(packed) => packed.params(),
        }
    }

    fn with_params(&self, params: ConvParams) -> Option<Self> {
        match self {
            Self::Floats(packed) => packed.with_params(params).map(Self::Floats),
            Self::Bf16(packed) => packed.with_params(params).map(Self::Bf16),
        }
    }

    /// Returns whether what a result of this type holds before can be the residual.
    fn joins_result(&self, result: DataType) -> bool {
        match self {
            Self::Floats(packed) => result == DataType::Fp32 && packed.joins_result(),
            Self::Bf16(_) => result == DataType::Bf16,
        }
    }

    fn run(
        &self,
        exec: KernelContext<'_>,
        x: RealSlice<'_>,
        image: ImageBatch,
        y: RealsMut<'_>,
        epilogue: &GemmEpilogue<'_>,
        beside: Option<Bf16Summand<'_>>,
    ) -> Result<(), OpError> {
        match (self, x, y) {
            (Self::Bf16(packed), x, y) => {
                conv_bf16(exec, packed, x, image, y, epilogue, beside);
            }
            (Self::Floats(packed), RealSlice::Fp32(x), RealsMut::Fp32(y)) => {
                conv(exec, packed, x, image.batch, image.size, y, epilogue);
            }
            (Self::Floats(packed), RealSlice::Bf16(x), RealsMut::Bf16(y)) => {
                conv_depthwise_bf16(exec, packed, x, image, y, epilogue);
            }
            _ => return Err(OpError::new("an image of another type than the result")),
        }
        Ok(())
    }
}

/// A convolution with constant weights.
struct CpuConvKernel {
    op: Conv,
    activation: ActivationFunction,
    /// Shape of the weights in ONNX's order.
    shape: Vec<usize>,
    /// The weights; their padding is that of no image.
    packed: PackedImageWeights,
}

fn conv_kernel(
    view: &CpuNodeView<'_>,
    op: &Conv,
    activation: ActivationFunction,
) -> Result<Box<dyn CpuKernel>, String> {
    let shape = view.constant(1).ok_or("the weights are no constant")?.shape().to_vec();
    let none = vec![0; shape.len().saturating_sub(2)];
    let params = conv_params(op, &shape, &none, &none)?;
    let algorithm = algorithm(view, op, &shape, params)?;
    let packed = PackedImageWeights::Floats(packing::convolution(view, 1, params, algorithm)?);
    Ok(Box::new(CpuConvKernel { op: op.clone(), activation, shape, packed }))
}

/// Images of a batch whose length is not known.
const SOME_IMAGES: usize = 4;

/// Length of a spatial axis that is not known.
const SOME_LENGTH: usize = 32;

/// The fastest algorithm for the images that the graph announces.
fn algorithm(
    view: &CpuNodeView<'_>,
    op: &Conv,
    weights: &[usize],
    params: ConvParams,
) -> Result<CpuConvAlgorithm, String> {
    let shape = view.input(0).and_then(|fact| fact.shape.as_deref()).unwrap_or_default();
    let spatial = match (op.channels_last, shape) {
        (false, [_, _, spatial @ ..]) | (true, [_, spatial @ .., _]) => spatial,
        _ => return Ok(CpuConvAlgorithm::for_any_size(&params)),
    };
    let images = shape[0].known().unwrap_or(SOME_IMAGES);
    let length = |dim: &Dim| dim.known().unwrap_or(SOME_LENGTH);
    let spatial: Vec<usize> = spatial.iter().map(length).collect();
    // What the padding of these lengths is, if they are possible at all.
    let Ok(geometry) = op.geometry(&spatial, &weights[2..]) else {
        return Ok(CpuConvAlgorithm::for_any_size(&params));
    };
    let params = conv_params(op, weights, &geometry.pads_begin, &geometry.pads_end)?;
    let size = leading(&spatial, 1)?;
    let isa = view.device.isa;
    let constant = view.constant(1).ok_or("the weights are no constant")?;
    // Weights that do not lie side by side are not looked at.
    let elements = constant.as_slice::<f32>().ok();
    let accurate = |found: &CpuConvAlgorithm| match elements {
        Some(elements) => is_accurate(*found, &params, elements),
        None => *found != CpuConvAlgorithm::Winograd6,
    };
    // What loses digits beside a plain product is no choice, however fast.
    let dense = candidates(isa, &params, images, size).into_iter();
    let mut all: Vec<CpuConvAlgorithm> = dense.filter(accurate).collect();
    let likely = all.first().copied().unwrap_or(CpuConvAlgorithm::for_any_size(&params));
    // What was packed densely before is not looked at again.
    let is_new = !packing::is_convolution_kept(view, 1, params, likely);
    if let Some(elements) = elements.filter(|_| is_new && view.precision != Precision::Bf16) {
        let zeros = weight_zeros(isa, &params, elements);
        let sparse = zeros.map(|zeros| sparse_candidates(isa, &params, images, size, &zeros));
        all.splice(0..0, sparse.unwrap_or_default());
    }
    if all.len() < 2 {
        return Ok(all.first().copied().unwrap_or(likely));
    }
    let names: Vec<&str> = all.iter().map(|algorithm| algorithm.name()).collect();
    let lengths = [
        ("n", images),
        ("pixels", size.iter().product()),
        ("in", params.in_channels / params.groups),
        ("out", params.out_channels),
    ];
    let space = ConfigSpace::new(vec![ConfigAxis::names("algorithm", &names)]);
    let family = format!("conv-f32 {:?} {:?}", params.kernel, params.stride);
    Ok(all[view.device.choose(&family, &lengths, &space)])
}

/// The constants of a convolution with weights of this shape and these pads.
pub(super) fn conv_params(
    op: &Conv,
    shape: &[usize],
    pads_begin: &[usize],
    pads_end: &[usize],
) -> Result<ConvParams, String> {
    let params = ConvParams {
        in_channels: shape[1].saturating_mul(op.group),
        out_channels: shape[0],
        kernel: ones(&shape[2..])?,
        stride: ones(&op.strides)?,
        dilation: ones(&op.dilations)?,
        pads_begin: leading(pads_begin, 0)?,
        pads_end: leading(pads_end, 0)?,
        groups: op.group,
    };
    let mut lengths = params.kernel.iter().chain(&params.stride).chain(&params.dilation);
    if lengths.any(|&length| length == 0) || !params.out_channels.is_multiple_of(params.groups) {
        return Err(format!("{params:?}"));
    }
    Ok(params)
}

impl CpuConvKernel {
    /// The weights for images of this size, on which the padding may depend.
    fn packed(&self, spatial: &[usize]) -> Result<PackedImageWeights, String> {
        let geometry: ConvGeometry =
            self.op.geometry(spatial, &self.shape[2..]).map_err(|error| error.to_string())?;
        let begin = &geometry.pads_begin;
        let end = &geometry.pads_end;
        let params = conv_params(&self.op, &self.shape, begin, end)?;
        self.packed.with_params(params).ok_or_else(|| format!("{params:?}"))
    }
}

impl CpuKernel for CpuConvKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let last = self.op.channels_last;
        let image = ImageShape::of(shapes.input(0)?, last)?;
        let result = ImageShape::of(shapes.output(0)?, last)?;
        let packed = self.packed(&image.spatial)?;
        let size = leading(&image.spatial, 1)?;
        let params = packed.params();
        if image.channels != params.in_channels
            || params.output_size(size) != leading::<3>(&result.spatial, 1)?
        {
            return Err(format!("an image of {} channels and size {size:?}", image.channels));
        }
        if let Ok(bias) = shapes.input(2)
            && *bias != [params.out_channels]
        {
            return Err(format!("a bias of shape {bias:?}"));
        }
        let residual = matches!(shapes.inputs.get(3), Some(Some(_)));
        if residual && shapes.input(3)? != shapes.output(0)? {
            return Err(format!("a residual of shape {:?}", shapes.input(3)?));
        }
        let x_turned = image.turned(last);
        let y_turned = result.turned(last);
        let z_turned = if residual { y_turned } else { 0 };
        let activation = self.activation;
        let ld = params.out_channels;
        let dtype = shapes.output_dtype(0)?;
        let over =
            residual && y_turned == 0 && shapes.dtype(3)? == dtype && packed.joins_result(dtype);
        let step = CpuStep::new(move |call| {
            let mut scratch = call.scratch_if(x_turned + y_turned + z_turned)?;
            let (x_own, rest) = scratch.split(x_turned);
            let (y_own, z_own) = rest.split_at_mut(y_turned);
            let x = match call.reals(0)? {
                RealSlice::Fp32(x) => RealSlice::Fp32(image_in(call.exec, x, &image, x_own)),
                half @ RealSlice::Bf16(_) => half,
            };
            let mut epilogue = GemmEpilogue { bias: call.optional(2)?, residual: None, activation };
            let mut beside = None;
            let join = MatrixJoin::Add;
            match (residual, call.is_in_place(3), dtype) {
                (false, ..) => {}
                (true, true, DataType::Bf16) => beside = Some(Bf16Summand { data: None, ld, join }),
                (true, true, _) => {
                    epilogue.residual = Some(ResidualMatrix { data: None, ld, join })
                }
                (true, false, _) => match call.reals(3)? {
                    RealSlice::Fp32(z) => {
                        let data = Some(image_in(call.exec, z, &result, z_own));
                        epilogue.residual = Some(ResidualMatrix { data, ld, join });
                    }
                    RealSlice::Bf16(data) => {
                        beside = Some(Bf16Summand { data: Some(data), ld, join })
                    }
                },
            }
            let exec = call.exec;
            let image = ImageBatch { batch: image.batch, size };
            if y_turned == 0 {
                return packed.run(
                    exec,
                    x,
                    image,
                    call.output_reals(0)?.reals(),
                    &epilogue,
                    beside,
                );
            }
            packed.run(exec, x, image, RealsMut::Fp32(y_own), &epilogue, beside)?;
            image_out(exec, y_own, &result, call.output::<f32>(0)?.slice());
            Ok(())
        });
        let step = step.with_scratch(x_turned + y_turned + z_turned).without(&[1]);
        Ok(if over { step.in_place(3, 0) } else { step })
    }

    fn halves(&self, shapes: &NodeShapes) -> Bf16Operands {
        if !self.op.channels_last {
            return Bf16Operands::default();
        }
        match &self.packed {
            PackedImageWeights::Bf16(packed) => {
                let p = packed.params();
                // Channels of BF16 are read in pairs.
                let pairs = (p.in_channels / p.groups).is_multiple_of(2);
                let inputs: &[usize] = if pairs { &[0, 3] } else { &[3] };
                Bf16Operands { inputs, output: true, together: false }
            }
            PackedImageWeights::Floats(packed) => {
                let clamps = matches!(
                    self.activation,
                    ActivationFunction::None
                        | ActivationFunction::Relu
                        | ActivationFunction::Clip { .. }
                );
                let alone = !matches!(shapes.inputs.get(3), Some(Some(_)));
                if packed.algorithm() == CpuConvAlgorithm::Depthwise && clamps && alone {
                    Bf16Operands { inputs: &[0], output: true, together: true }
                } else {
                    Bf16Operands::default()
                }
            }
        }
    }

    fn weight_bytes(&self) -> WeightBytes {
        match &self.packed {
            PackedImageWeights::Floats(packed) => {
                WeightBytes::new(packed.size_bytes(), packed.is_mapped())
            }
            PackedImageWeights::Bf16(packed) => {
                WeightBytes::new(packed.size_bytes(), packed.is_mapped())
            }
        }
    }
}

/// The image with its channels last: as it is, or turned into `own`.
pub(super) fn image_in<'a>(
    exec: KernelContext<'_>,
    x: &'a [f32],
    image: &ImageShape,
    own: &'a mut [f32],
) -> &'a [f32] {
    if own.is_empty() {
        return x;
    }
    transpose(exec, x, image.batch, image.channels, image.pixels(), own);
    own
}

/// Turns a result whose channels are last.
pub(super) fn image_out(exec: KernelContext<'_>, own: &[f32], image: &ImageShape, y: &mut [f32]) {
    transpose(exec, own, image.batch, image.pixels(), image.channels, y);
}

fn supports_pool(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.floats(&[0])?;
    if view.node.outputs.iter().skip(1).any(Option::is_some) {
        return Err("the positions are wanted too".into());
    }
    Ok(())
}

/// A pooling over one or two spatial axes.
struct PoolKernel {
    window: PoolWindow,
    pool: WindowPool,
}

impl CpuKernel for PoolKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let window = &self.window;
        let image = ImageShape::of(shapes.input(0)?, window.channels_last)?;
        let result = ImageShape::of(shapes.output(0)?, window.channels_last)?;
        let geometry = window.geometry(&image.spatial).map_err(|error| error.to_string())?;
        let params = PoolParams {
            pool: self.pool,
            kernel: ones(&window.kernel_shape)?,
            stride: ones(&window.strides)?,
            dilation: ones(&window.dilations)?,
            pads_begin: leading(&geometry.pads_begin, 0)?,
            pads_end: leading(&geometry.pads_end, 0)?,
            rounding: if window.ceil_mode { WindowRounding::Ceil } else { WindowRounding::Floor },
        };
        let size = leading(&image.spatial, 1)?;
        if params.output_size(size) != leading::<2>(&result.spatial, 1)? {
            return Err(format!("a result of size {:?}", result.spatial));
        }
        let last = window.channels_last;
        let x_turned = image.turned(last);
        let y_turned = result.turned(last);
        let step = CpuStep::new(move |call| {
            let mut scratch = call.scratch_if(x_turned + y_turned)?;
            let (x_own, y_own) = scratch.split(x_turned);
            let batch = image.batch;
            let channels = image.channels;
            if let RealSlice::Bf16(x) = call.reals(0)? {
                let mut y = call.output(0)?;
                let image = ImageBatch { batch, size };
                pool_bf16(call.exec, &params, x, image, channels, y.slice());
                return Ok(());
            }
            let x = image_in(call.exec, call.input::<f32>(0)?, &image, x_own);
            let mut y = call.output::<f32>(0)?;
            if y_turned == 0 {
                pool(call.exec, &params, x, batch, size, channels, y.slice());
            } else {
                pool(call.exec, &params, x, batch, size, channels, y_own);
                image_out(call.exec, y_own, &result, y.slice());
            }
            Ok(())
        });
        Ok(step.with_scratch(x_turned + y_turned))
    }

    fn halves(&self, _shapes: &NodeShapes) -> Bf16Operands {
        let last = self.window.channels_last;
        Bf16Operands { inputs: if last { &[0] } else { &[] }, output: last, together: true }
    }
}

impl CpuKernel for GlobalAveragePool {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let image = ImageShape::of(shapes.input(0)?, self.channels_last)?;
        let pixels = image.pixels();
        if !self.channels_last || image.channels == 1 {
            return Ok(CpuStep::new(move |call| {
                let x = call.input::<f32>(0)?;
                let mut y = call.output::<f32>(0)?;
                reduce_last(call.exec, RowReduce::Mean, x, pixels, y.slice());
                Ok(())
            }));
        }
        let size = [1, pixels];
        let params = PoolParams {
            pool: WindowPool::Average,
            kernel: size,
            stride: [1; 2],
            dilation: [1; 2],
            pads_begin: [0; 2],
            pads_end: [0; 2],
            rounding: WindowRounding::Floor,
        };
        if pixels == 0 {
            return Err("an image without pixels".into());
        }
        Ok(CpuStep::new(move |call| {
            let batch = image.batch;
            let channels = image.channels;
            if let RealSlice::Bf16(x) = call.reals(0)? {
                let mut y = call.output(0)?;
                let image = ImageBatch { batch, size };
                pool_bf16(call.exec, &params, x, image, channels, y.slice());
                return Ok(());
            }
            let x = call.input::<f32>(0)?;
            let mut y = call.output::<f32>(0)?;
            pool(call.exec, &params, x, batch, size, channels, y.slice());
            Ok(())
        }))
    }

    fn halves(&self, shapes: &NodeShapes) -> Bf16Operands {
        let many = shapes.input(0).is_ok_and(|shape| shape.last().is_some_and(|&len| len > 1));
        let last = self.channels_last && many;
        Bf16Operands { inputs: if last { &[0] } else { &[] }, output: last, together: true }
    }
}
