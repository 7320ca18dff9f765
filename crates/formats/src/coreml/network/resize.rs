//! Images of another size: `upsample`, `resizeBilinear` and `cropResize`.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::activation::linear;
use super::convolution::two;
use super::elementwise::or_default;
use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, choice, int, ints, text};
use super::shape::target;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    BoxCoordinates, CropResize, InterpolationProto, LinearUpsample, ResizeBilinear, SamplingMethod,
    UpsampleLayerProto,
};

/// Parameters of a `ResizeLayer` of images.
struct ResizeLayer {
    mode: &'static str,
    coordinates: &'static str,
    region: Option<[f32; 8]>,
}

impl ResizeLayer {
    fn linear(coordinates: &'static str) -> Self {
        Self { mode: "linear", coordinates, region: None }
    }

    fn add(
        &self,
        cx: &mut NetworkLowering,
        image: ValueId,
        scales: Option<[f32; 4]>,
        sizes: Option<ValueId>,
    ) -> Result<ValueId, CoreMlError> {
        let mut attributes = vec![
            ("mode", text(self.mode)),
            ("coordinate_transformation_mode", text(self.coordinates)),
        ];
        if self.mode == "nearest" {
            attributes.push(("nearest_mode", text("floor")));
        }
        let region = self.region.map(|all| cx.constant(Tensor::vector(all.to_vec())));
        let scales = scales.map(|all| cx.constant(Tensor::vector(all.to_vec())));
        let mut inputs = vec![Some(image), region, scales];
        inputs.extend(sizes.map(Some));
        let all = cx.nodes("Resize", inputs, &attributes, 1)?;
        all.first().copied().ok_or_else(|| CoreMlError::invalid("an operator has no result"))
    }
}

/// The lengths of an image's batch and channels, and these of height and width.
fn resized(
    cx: &mut NetworkLowering,
    image: ValueId,
    height_width: &[usize],
) -> Result<ValueId, CoreMlError> {
    let shape = cx.shape(image)?;
    let leading = cx.part(shape, 0, 2)?;
    let wanted = cx.longs(&ints(height_width));
    cx.node("Concat", &[leading, wanted], &[("axis", 0_i64.into())])
}

/// A length times a factor, rounded down.
fn scaled(length: usize, factor: f32) -> Result<usize, CoreMlError> {
    let wide = u32::try_from(length).ok().map(|length| f64::from(length) * f64::from(factor));
    let wide = wide.filter(|wide| (0.0..1e9).contains(wide));
    let wrong = || CoreMlError::invalid(format!("{factor} times a length of {length}"));
    // The range was looked at just now.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    wide.map(|wide| wide.floor() as usize).ok_or_else(wrong)
}

/// `upsample`.
pub(super) fn upsample(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: UpsampleLayerProto = call.read()?;
    let resize = match choice(params.mode, "interpolation")? {
        InterpolationProto::Nearest => {
            ResizeLayer { mode: "nearest", coordinates: "asymmetric", region: None }
        }
        InterpolationProto::Bilinear => {
            ResizeLayer::linear(match choice(params.linear_upsample_mode, "mode of upsampling")? {
                LinearUpsample::Default => "asymmetric",
                LinearUpsample::AlignCornersTrue => "align_corners",
                LinearUpsample::AlignCornersFalse => "half_pixel",
            })
        }
    };
    let (image, form) = cx.image(call.input(0)?)?;
    let id = match params.fractional_scaling_factor[..] {
        [] => {
            let factors = two(&params.scaling_factor, 1, "scalingFactor")?;
            let factor = |at: usize| {
                let found = factors.get(at).and_then(|&found| u16::try_from(found).ok());
                found.filter(|&found| found > 0).map(f32::from)
            };
            let (Some(height), Some(width)) = (factor(0), factor(1)) else {
                return Err(CoreMlError::invalid(format!("factors of {factors:?}")));
            };
            resize.add(cx, image, Some([1.0, 1.0, height, width]), None)?
        }
        [height, width] => match (cx.dim(image, -2)?, cx.dim(image, -1)?) {
            (Some(rows), Some(columns)) => {
                let wanted = [scaled(rows, height)?, scaled(columns, width)?];
                let sizes = resized(cx, image, &wanted)?;
                resize.add(cx, image, None, Some(sizes))?
            }
            _ => resize.add(cx, image, Some([1.0, 1.0, height, width]), None)?,
        },
        _ => return Err(CoreMlError::invalid("'fractionalScalingFactor' has not 2 numbers")),
    };
    Ok(vec![cx.unbatched(id, form)?])
}

/// A length as a float; sizes of images are far from where that rounds.
fn float(length: usize) -> Result<f32, CoreMlError> {
    let narrow = u16::try_from(length).ok().filter(|&narrow| narrow > 0);
    narrow.map(f32::from).ok_or_else(|| CoreMlError::invalid(format!("a size of {length}")))
}

/// `resizeBilinear`.
pub(super) fn resize_bilinear(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ResizeBilinear = call.read()?;
    let wanted = target(&params.target_size)?;
    let &[height, width] = &wanted[..] else {
        return Err(CoreMlError::invalid("'targetSize' has not 2 numbers"));
    };
    let method = params.mode.map_or(0, |mode| mode.sampling_method);
    let resize = match choice(method, "mode of sampling")? {
        SamplingMethod::StrictAlignEndpoints => ResizeLayer::linear("align_corners"),
        // One point lies in the middle.
        SamplingMethod::AlignEndpoints if height > 1 && width > 1 => {
            ResizeLayer::linear("align_corners")
        }
        SamplingMethod::AlignEndpoints => ResizeLayer {
            region: Some([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
            ..ResizeLayer::linear("tf_crop_and_resize")
        },
        SamplingMethod::Upsample => ResizeLayer::linear("asymmetric"),
        // The ends are half a step inside.
        SamplingMethod::RoiAlign => {
            let top = 0.5 / float(height)?;
            let left = 0.5 / float(width)?;
            let region = [0.0, 0.0, top, left, 1.0, 1.0, 1.0 - top, 1.0 - left];
            ResizeLayer { region: Some(region), ..ResizeLayer::linear("tf_crop_and_resize") }
        }
    };
    let (image, form) = cx.image(call.input(0)?)?;
    let sizes = resized(cx, image, &wanted)?;
    let id = resize.add(cx, image, None, Some(sizes))?;
    Ok(vec![cx.unbatched(id, form)?])
}

/// One of the numbers of all boxes, `[N, 1]`.
fn coordinate(cx: &mut NetworkLowering, boxes: ValueId, at: usize) -> Result<ValueId, CoreMlError> {
    cx.slice(boxes, &[(1, int(at), int(at) + 1, 1)])
}

/// Where the ends of boxes lie on height, or on width: both `[N, 1]`.
fn ends(
    cx: &mut NetworkLowering,
    boxes: ValueId,
    mode: BoxCoordinates,
    wide: bool,
) -> Result<(ValueId, ValueId), CoreMlError> {
    let (center, height_first) = match mode {
        BoxCoordinates::CornersHeightFirst => (false, true),
        BoxCoordinates::CornersWidthFirst => (false, false),
        BoxCoordinates::CenterSizeHeightFirst => (true, true),
        BoxCoordinates::CenterSizeWidthFirst => (true, false),
    };
    let at = usize::from(wide == height_first);
    let first = coordinate(cx, boxes, at)?;
    let second = coordinate(cx, boxes, at + 2)?;
    if !center {
        return Ok((first, second));
    }
    let half = linear(cx, second, 0.5, 0.0)?;
    Ok((cx.node("Sub", &[first, half], &[])?, cx.node("Add", &[first, half], &[])?))
}

/// The points of an axis that boxes are sampled at, `[N, points]`, from -1 to 1 on the image.
fn points(
    cx: &mut NetworkLowering,
    begin: ValueId,
    end: ValueId,
    method: SamplingMethod,
    count: usize,
    last: ValueId,
) -> Result<ValueId, CoreMlError> {
    let n = float(count)?;
    let steps: Vec<f32> = (0..count).map(float_from_zero).collect::<Result<_, _>>()?;
    let intervals = (n - 1.0).max(1.0);
    let extent = cx.node("Sub", &[end, begin], &[])?;
    let zero = cx.scalar(0.0);
    // Point i lies at `begin + offset + i · step`, and no point behind the end of the box.
    let (offset, step) = match method {
        SamplingMethod::StrictAlignEndpoints => (zero, linear(cx, extent, 1.0 / intervals, 0.0)?),
        SamplingMethod::AlignEndpoints if count == 1 => (linear(cx, extent, 0.5, 0.0)?, zero),
        SamplingMethod::AlignEndpoints => (zero, linear(cx, extent, 1.0 / intervals, 0.0)?),
        SamplingMethod::Upsample => {
            let length = linear(cx, extent, 1.0, 1.0)?;
            (zero, linear(cx, length, 1.0 / n, 0.0)?)
        }
        SamplingMethod::RoiAlign => {
            let one = cx.scalar(1.0);
            let length = cx.node("Max", &[extent, one], &[])?;
            (linear(cx, length, 0.5 / n, 0.0)?, linear(cx, length, 1.0 / n, 0.0)?)
        }
    };
    let steps = cx.constant(Tensor::from_vec(&[1, count], steps)?);
    let first = cx.node("Add", &[begin, offset], &[])?;
    let along = cx.node("Mul", &[steps, step], &[])?;
    let found = cx.node("Add", &[first, along], &[])?;
    let found = cx.node("Min", &[found, end], &[])?;
    let one = cx.scalar(1.0);
    let last = cx.node("Max", &[last, one], &[])?;
    let share = cx.node("Div", &[found, last], &[])?;
    linear(cx, share, 2.0, -1.0)
}

fn float_from_zero(at: usize) -> Result<f32, CoreMlError> {
    u16::try_from(at).map(f32::from).map_err(|_| CoreMlError::invalid(format!("a size of {at}")))
}

/// `cropResize`: boxes of images, resized to one size.
pub(super) fn crop_resize(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: CropResize = call.read()?;
    let wanted = target(&params.target_size)?;
    let &[height, width] = &wanted[..] else {
        return Err(CoreMlError::invalid("'targetSize' has not 2 numbers"));
    };
    let method = choice(params.mode.map_or(0, |mode| mode.sampling_method), "mode of sampling")?;
    let mode = choice(params.box_indices_mode.map_or(0, |mode| mode.box_mode), "mode of boxes")?;
    let (image, form) = cx.image(call.input(0)?)?;
    if !matches!(form, super::blob::BatchForm::Hidden | super::blob::BatchForm::Same) {
        return Err(CoreMlError::invalid("images with more than one step of a sequence"));
    }
    let boxes = cx.exact(call.input(1)?)?;
    let numbers = match cx.dim(boxes, -3)? {
        Some(found @ (4 | 5)) => found,
        found => {
            let text = format!("boxes of {found:?} numbers, expected 4, or 5 with an image");
            return Err(CoreMlError::invalid(text));
        }
    };
    let boxes = cx.reshape(boxes, &[-1, int(numbers)])?;
    let four = cx.slice(boxes, &[(1, int(numbers) - 4, int(numbers), 1)])?;
    let scale = or_default(params.spatial_scale, 1.0);
    let mut lasts = Vec::new();
    for axis in [-2, -1] {
        let length = cx.length(image, axis)?;
        let length = cx.cast(length, DataType::Fp32)?;
        lasts.push(linear(cx, length, 1.0, -1.0)?);
    }
    let mut axes = Vec::new();
    for (wide, (&last, count)) in lasts.iter().zip([height, width]).enumerate() {
        let (begin, end) = ends(cx, four, mode, wide == 1)?;
        let mut scaled = Vec::new();
        for value in [begin, end] {
            let value = linear(cx, value, scale, 0.0)?;
            scaled.push(match params.normalized_coordinates {
                true => cx.node("Mul", &[value, last], &[])?,
                false => value,
            });
        }
        let &[begin, end] = &scaled[..] else { continue };
        axes.push(points(cx, begin, end, method, count, last)?);
    }
    let &[rows, columns] = &axes[..] else { return Err(CoreMlError::invalid("no axes")) };
    let grid = grid(cx, rows, columns, height, width)?;
    sample(cx, image, boxes, numbers, grid)
}

/// Points `[N, height, width, 2]`, with the horizontal coordinate first.
fn grid(
    cx: &mut NetworkLowering,
    rows: ValueId,
    columns: ValueId,
    height: usize,
    width: usize,
) -> Result<ValueId, CoreMlError> {
    let count = cx.length(rows, 0)?;
    let size = cx.longs(&ints(&[height, width]));
    let shape = cx.node("Concat", &[count, size], &[("axis", 0_i64.into())])?;
    let rows = cx.unsqueeze(rows, &[2])?;
    let rows = cx.node("Expand", &[rows, shape], &[])?;
    let rows = cx.unsqueeze(rows, &[3])?;
    let columns = cx.unsqueeze(columns, &[1])?;
    let columns = cx.node("Expand", &[columns, shape], &[])?;
    let columns = cx.unsqueeze(columns, &[3])?;
    cx.node("Concat", &[columns, rows], &[("axis", 3_i64.into())])
}

/// Images at the points of boxes: of the image that a box names, or of all images.
fn sample(
    cx: &mut NetworkLowering,
    image: ValueId,
    boxes: ValueId,
    numbers: usize,
    grid: ValueId,
) -> LayerOutputs {
    let attributes: [(&str, AttributeValue); 3] = [
        ("mode", text("linear")),
        ("align_corners", true.into()),
        ("padding_mode", text("border")),
    ];
    let joined = [("axis", 0_i64.into())];
    if numbers == 5 {
        let which = coordinate(cx, boxes, 0)?;
        let which = cx.squeeze(which, &[1])?;
        let which = cx.cast(which, DataType::Int64)?;
        let images = cx.node("Gather", &[image, which], &joined)?;
        let found = cx.node("GridSample", &[images, grid], &attributes)?;
        return Ok(vec![ScopeBlob::exact(cx.unsqueeze(found, &[1])?)]);
    }
    let shape = cx.shape(image)?;
    // All channels of all images are channels of one image.
    let planes = cx.reshape(image, &[1, -1, 0, 0])?;
    let count = cx.length(grid, 0)?;
    let ones = cx.longs(&[1, 1, 1]);
    let target = cx.node("Concat", &[count, ones], &joined)?;
    let copies = cx.node("Expand", &[planes, target], &[])?;
    let found = cx.node("GridSample", &[copies, grid], &attributes)?;
    let channels = cx.part(shape, 0, 2)?;
    let size = cx.shape(found)?;
    let size = cx.part(size, 2, 4)?;
    let target = cx.node("Concat", &[count, channels, size], &joined)?;
    Ok(vec![ScopeBlob::exact(cx.node("Reshape", &[found, target], &[])?)])
}
