//! Images that grow or shrink: resizing and transposed convolutions.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::convolution::{ConvGeometry, ConvTranspose};
use galatea_graph::ops::resize::{CoordinateMode, Resize, WeightedSample};
use galatea_kernels::conv::{ConvParams, PackedTransposed, TransposedSizes, conv_transposed};
use galatea_kernels::resize::{MiddleAxis, ResizeSamples, resize_axis};

use super::image::{ImageShape, image_in, image_out, leading, ones, supports_conv};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes, WeightBytes, packing};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "resize-f32",
        domain: ONNX_DOMAIN,
        ops: &["Resize", "Upsample"],
        supports: |view| {
            view.floats(&[0])?;
            let op = view.operator::<Resize>()?;
            let all_inside = op.coordinates != CoordinateMode::TfCropAndResize;
            if all_inside { Ok(()) } else { Err("places outside the image".into()) }
        },
        build: |view| Ok(Box::new(view.operator::<Resize>()?.clone())),
    },
    CpuKernelRow {
        name: "conv_transpose-f32-packed",
        domain: ONNX_DOMAIN,
        ops: &["ConvTranspose"],
        supports: supports_conv,
        build: |view| {
            let op = view.operator::<ConvTranspose>()?.clone();
            let shape = view.constant(1).ok_or("the weights are no constant")?.shape().to_vec();
            let params = transposed_params(&op, &shape)?;
            let packed = packing::transposed(view, 1, params)?;
            Ok(Box::new(TransposedKernel { op, shape, params, packed }))
        },
    },
];

/// One axis to resize, and its places.
struct ResizingAxis {
    samples: ResizeSamples,
    axis: MiddleAxis,
}

impl ResizingAxis {
    /// Elements before the axis is resized.
    fn input(&self) -> usize {
        self.axis.outer * self.axis.length * self.axis.inner
    }
}

impl CpuKernel for Resize {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let known = |input: Option<usize>| match input {
            Some(input) if matches!(shapes.inputs.get(input), Some(Some(_))) => {
                let value = shapes.constants.get(input).and_then(Option::as_ref);
                value.map(Some).ok_or_else(|| format!("input {input} is not known"))
            }
            _ => Ok(None),
        };
        let scales = known(self.scales_input)?;
        let sizes = known(self.sizes_input)?;
        let all = self.samples(shape, scales, sizes, None).map_err(|error| error.to_string())?;
        if !all.iter().map(Vec::len).eq(shapes.output(0)?.iter().copied()) {
            return Err(format!("a result of shape {:?}", shapes.output(0)?));
        }
        let mut now = shape.to_vec();
        let mut steps = Vec::new();
        // The last axes first: what is resized later moves in longer runs.
        for (axis, places) in all.iter().enumerate().rev() {
            let still = |(at, place): (usize, &WeightedSample)| *place == Some(vec![(at, 1.0)]);
            if places.len() == shape[axis] && places.iter().enumerate().all(still) {
                continue;
            }
            let whole = MiddleAxis {
                outer: now[..axis].iter().product(),
                length: now[axis],
                inner: now[axis + 1..].iter().product(),
            };
            steps.push(ResizingAxis { samples: samples(places), axis: whole });
            now[axis] = places.len();
        }
        let between = |step: &ResizingAxis| step.axis.outer * step.samples.len() * step.axis.inner;
        let rooms = steps.iter().rev().skip(1).map(between).max().unwrap_or(0);
        let scratch = 2 * rooms;
        Ok(CpuStep::new(move |call| {
            let mut scratch = call.scratch_if(scratch)?;
            let (mut from, mut to) = scratch.split(rooms);
            let x = call.input::<f32>(0)?;
            let mut y = call.output::<f32>(0)?;
            let Some((last, before)) = steps.split_last() else {
                y.slice().copy_from_slice(x);
                return Ok(());
            };
            for (at, step) in before.iter().enumerate() {
                let len = between(step);
                if at == 0 {
                    resize_axis(call.exec, &step.samples, x, step.axis, &mut to[..len]);
                } else {
                    let x = &from[..step.input()];
                    resize_axis(call.exec, &step.samples, x, step.axis, &mut to[..len]);
                }
                std::mem::swap(&mut from, &mut to);
            }
            let x = if before.is_empty() { x } else { &from[..last.input()] };
            resize_axis(call.exec, &last.samples, x, last.axis, y.slice());
            Ok(())
        })
        .with_scratch(scratch))
    }
}

/// The places of an axis; all are inside.
#[allow(clippy::cast_possible_truncation, reason = "each weight is rounded once")]
fn samples(places: &[WeightedSample]) -> ResizeSamples {
    let mut samples = ResizeSamples::default();
    for place in places {
        samples.push(place.iter().flatten().map(|&(from, weight)| (from, weight as f32)));
    }
    samples
}

/// A transposed convolution with constant weights.
struct TransposedKernel {
    op: ConvTranspose,
    /// Shape of the weights in ONNX's order.
    shape: Vec<usize>,
    params: ConvParams,
    packed: PackedTransposed,
}

/// The constants of a transposed convolution, without what is cut from the result.
fn transposed_params(op: &ConvTranspose, shape: &[usize]) -> Result<ConvParams, String> {
    let params = ConvParams {
        in_channels: shape[0],
        out_channels: shape[1].saturating_mul(op.group),
        kernel: ones(&shape[2..])?,
        stride: ones(&op.strides)?,
        dilation: ones(&op.dilations)?,
        pads_begin: [0; 3],
        pads_end: [0; 3],
        groups: op.group,
    };
    let mut lengths = params.kernel.iter().chain(&params.stride).chain(&params.dilation);
    if lengths.any(|&length| length == 0) || !params.in_channels.is_multiple_of(params.groups) {
        return Err(format!("{params:?}"));
    }
    Ok(params)
}

impl CpuKernel for TransposedKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let image = ImageShape::of(shapes.input(0)?, false)?;
        let result = ImageShape::of(shapes.output(0)?, false)?;
        let geometry: ConvGeometry = self
            .op
            .geometry(&image.spatial, &self.shape[2..])
            .map_err(|error| error.to_string())?;
        let channels = self.params.out_channels;
        if image.channels != self.params.in_channels
            || result.channels != channels
            || result.spatial != geometry.output
        {
            return Err(format!("an image of {} channels, {result:?}", image.channels));
        }
        if let Ok(bias) = shapes.input(2)
            && *bias != [channels]
        {
            return Err(format!("a bias of shape {bias:?}"));
        }
        let size = leading(&image.spatial, 1)?;
        let out = leading(&result.spatial, 1)?;
        let pads_begin = leading(&geometry.pads_begin, 0)?;
        let room = self.packed.room(size);
        let x_turned = image.turned(false);
        let y_turned = result.turned(false);
        let packed = self.packed.clone();
        let step = CpuStep::new(move |call| {
            let mut scratch = call.scratch_if(x_turned + y_turned + room)?;
            let (x_own, rest) = scratch.split(x_turned);
            let (y_own, room) = rest.split_at_mut(y_turned);
            let x = image_in(call.exec, call.input::<f32>(0)?, &image, x_own);
            let bias = call.optional::<f32>(2)?;
            let mut y = call.output::<f32>(0)?;
            let exec = call.exec;
            let sizes = TransposedSizes { batch: image.batch, size, pads_begin, out };
            let to = if y_turned == 0 { y.slice() } else { &mut *y_own };
            conv_transposed(exec, &packed, x, sizes, bias, room, to);
            if y_turned != 0 {
                image_out(exec, y_own, &result, y.slice());
            }
            Ok(())
        });
        Ok(step.with_scratch(x_turned + y_turned + room).without(&[1]))
    }

    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::new(self.packed.size_bytes(), self.packed.is_mapped())
    }
}
