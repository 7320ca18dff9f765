//! `Resize` and `Upsample`: images of another size.

#![allow(
    clippy::cast_possible_truncation,
    reason = "interpolated integers go back to the type that they came from"
)]

use galatea_tensor::{DataType, Tensor};

use super::sampling::{
    AxisPlan, CoordinateMode, NearestMode, ResizeInterpolation, SharedSampling, WeightedSample,
};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks, values};

/// Effect of `sizes` on the proportions of an image (from opset 18 on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AspectRatio {
    /// Every axis gets its size.
    Stretch,
    /// Proportions stay and no axis exceeds its size.
    NotLarger,
    /// Proportions stay and no axis falls below its size.
    NotSmaller,
}

/// ONNX `Resize`, and `Upsample` before it had that name.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// How elements between positions come about.
    pub interpolation: ResizeInterpolation,
    /// How an output position maps to the input.
    pub coordinates: CoordinateMode,
    /// True if elements outside the input have no weight, instead of repeating the edge.
    pub exclude_outside: bool,
    /// True if a reduction averages over all that it replaces.
    pub antialias: bool,
    /// Value outside the input with `tf_crop_and_resize`.
    pub extrapolation_value: f64,
    /// The axes that scales and sizes are for; all if absent.
    pub axes: Option<Vec<i64>>,
    /// Effect of `sizes` on the proportions.
    pub aspect_ratio: AspectRatio,
    /// The scales of the attribute (`Upsample` before opset 9).
    pub scales: Option<Vec<f64>>,
    /// The input of the region of interest.
    pub roi_input: Option<usize>,
    /// The input of the scales.
    pub scales_input: Option<usize>,
    /// The input of the sizes.
    pub sizes_input: Option<usize>,
}

impl Resize {
    /// The operator before it had any choice: `x / scale`, downwards.
    fn simple(context: &mut ParseContext<'_>, nearest: NearestMode) -> Result<Self, OpError> {
        let linear = context.attributes.choice("mode", &["nearest", "linear", "bilinear"], 0)? > 0;
        Ok(Self {
            interpolation: if linear {
                ResizeInterpolation::Linear
            } else {
                ResizeInterpolation::Nearest(nearest)
            },
            coordinates: CoordinateMode::Asymmetric,
            exclude_outside: false,
            antialias: false,
            extrapolation_value: 0.0,
            axes: None,
            aspect_ratio: AspectRatio::Stretch,
            scales: None,
            roi_input: None,
            scales_input: Some(1),
            sizes_input: None,
        })
    }

    /// `Upsample` before opset 7, of images only.
    pub(super) fn parse_upsample_1(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let mut scale = |name: &'static str| {
            let found = context.attributes.float(name)?;
            let found = found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")));
            found.map(f64::from)
        };
        let scales = Some(vec![1.0, 1.0, scale("height_scale")?, scale("width_scale")?]);
        let simple = Self::simple(context, NearestMode::Floor)?;
        Ok(Box::new(Self { scales, scales_input: None, ..simple }))
    }

    /// `Upsample` of opsets 7 and 8.
    pub(super) fn parse_upsample_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let scales = context.attributes.floats("scales")?;
        let scales = scales.ok_or_else(|| OpError::new("attribute 'scales' is missing"))?;
        let scales = Some(scales.into_iter().map(f64::from).collect());
        let simple = Self::simple(context, NearestMode::Floor)?;
        Ok(Box::new(Self { scales, scales_input: None, ..simple }))
    }

    /// `Upsample` of domain `com.microsoft.nchwc`, by whole numbers.
    pub(crate) fn parse_blocked(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let scales = context.attributes.ints("scales")?;
        let scales = scales.ok_or_else(|| OpError::new("attribute 'scales' is missing"))?;
        let scales = bounds::lengths(&scales, "attribute 'scales'")?;
        #[allow(clippy::cast_precision_loss, reason = "images do not grow as much")]
        let scales = Some(scales.into_iter().map(|scale| scale as f64).collect());
        let names = ["asymmetric", "align_corners", "half_pixel"];
        let coordinates =
            [CoordinateMode::Asymmetric, CoordinateMode::AlignCorners, CoordinateMode::HalfPixel]
                [context.attributes.choice("coordinate_transformation_mode", &names, 0)?];
        let simple = Self::simple(context, NearestMode::Floor)?;
        Ok(Box::new(Self { scales, coordinates, scales_input: None, ..simple }))
    }

    /// `Upsample` of opset 9.
    pub(super) fn parse_upsample(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::simple(context, NearestMode::Floor)?))
    }

    /// `Resize` of opset 10.
    pub(super) fn parse_10(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::simple(context, NearestMode::Simple)?))
    }

    /// `Resize` of opset 11 and newer.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let coordinates = CoordinateMode::parse(context)?;
        let attributes = &mut context.attributes;
        let cubic = f64::from(attributes.float_or("cubic_coeff_a", -0.75)?);
        let names = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"];
        let nearest = [
            NearestMode::RoundPreferFloor,
            NearestMode::RoundPreferCeil,
            NearestMode::Floor,
            NearestMode::Ceil,
        ][attributes.choice("nearest_mode", &names, 0)?];
        let interpolation = match attributes.choice("mode", &["nearest", "linear", "cubic"], 0)? {
            0 => ResizeInterpolation::Nearest(nearest),
            1 => ResizeInterpolation::Linear,
            _ => ResizeInterpolation::Cubic(cubic),
        };
        let policies = ["stretch", "not_larger", "not_smaller"];
        let aspect_ratio = [AspectRatio::Stretch, AspectRatio::NotLarger, AspectRatio::NotSmaller]
            [attributes.choice("keep_aspect_ratio_policy", &policies, 0)?];
        Ok(Box::new(Self {
            interpolation,
            coordinates,
            exclude_outside: attributes.flag("exclude_outside", false)?,
            antialias: attributes.flag("antialias", false)?,
            extrapolation_value: f64::from(attributes.float_or("extrapolation_value", 0.0)?),
            axes: attributes.ints("axes")?,
            aspect_ratio,
            scales: None,
            roi_input: Some(1),
            scales_input: Some(2),
            sizes_input: Some(3),
        }))
    }

    /// The axes for a rank, checked against the number of scales or sizes.
    fn positions(&self, rank: usize, count: usize) -> Result<Vec<usize>, OpError> {
        let axes = match &self.axes {
            Some(axes) => bounds::axes(axes, rank)?,
            None => (0..rank).collect(),
        };
        if axes.len() == count {
            return Ok(axes);
        }
        Err(OpError::new(format!("{count} scales or sizes for {} axes", axes.len())))
    }

    /// Scales of the attribute or a value; none where the value is empty.
    fn scales_of(&self, value: Option<&Tensor>) -> Result<Option<Vec<f64>>, OpError> {
        match (&self.scales, value) {
            (Some(scales), _) => Ok(Some(scales.clone())),
            (None, Some(value)) if value.elements() > 0 => values::floats(value).map(Some),
            _ => Ok(None),
        }
    }

    /// How every axis changes.
    fn plan(
        &self,
        shape: &[usize],
        scales: Option<&[f64]>,
        sizes: Option<&[i64]>,
        roi: &[f64],
    ) -> Result<Vec<AxisPlan>, OpError> {
        let plain =
            |&len: &usize| AxisPlan { input: len, output: len, scale: 1.0, roi: (0.0, 1.0) };
        let mut plans: Vec<AxisPlan> = shape.iter().map(plain).collect();
        let axes = match (scales, sizes) {
            (Some(scales), _) => {
                let axes = self.positions(shape.len(), scales.len())?;
                for (&axis, &scale) in axes.iter().zip(scales) {
                    let output = (shape[axis] as f64 * scale).floor();
                    let output = num_traits::cast(output).filter(|_| scale > 0.0);
                    plans[axis].output =
                        output.ok_or_else(|| OpError::new(format!("a scale is {scale}")))?;
                    plans[axis].scale = scale;
                }
                axes
            }
            (None, Some(sizes)) => {
                let axes = self.positions(shape.len(), sizes.len())?;
                self.plan_sizes(&mut plans, &axes, &bounds::lengths(sizes, "a size")?)?;
                axes
            }
            (None, None) => return Err(OpError::new("there are neither scales nor sizes")),
        };
        if self.coordinates == CoordinateMode::TfCropAndResize {
            if roi.len() != 2 * axes.len() {
                return Err(OpError::new(format!("{} numbers of a region", roi.len())));
            }
            for (at, &axis) in axes.iter().enumerate() {
                plans[axis].roi = (roi[at], roi[at + axes.len()]);
            }
        }
        match plans.iter().find(|plan| plan.input == 0 && plan.output > 0) {
            Some(_) => Err(OpError::new(format!("shape {shape:?} has nothing to resize"))),
            None => Ok(plans),
        }
    }

    fn plan_sizes(
        &self,
        plans: &mut [AxisPlan],
        axes: &[usize],
        sizes: &[usize],
    ) -> Result<(), OpError> {
        let ratio =
            |(&axis, &size): (&usize, &usize)| size as f64 / plans[axis].input.max(1) as f64;
        let ratios: Vec<f64> = axes.iter().zip(sizes).map(ratio).collect();
        let common = match self.aspect_ratio {
            AspectRatio::Stretch => None,
            AspectRatio::NotLarger => Some(ratios.iter().copied().fold(f64::INFINITY, f64::min)),
            AspectRatio::NotSmaller => Some(ratios.iter().copied().fold(0.0, f64::max)),
        };
        for (at, &axis) in axes.iter().enumerate() {
            plans[axis].scale = common.unwrap_or(ratios[at]);
            plans[axis].output = match common {
                None => sizes[at],
                Some(scale) => num_traits::cast((plans[axis].input as f64 * scale).round())
                    .ok_or_else(|| OpError::new(format!("size {}", sizes[at])))?,
            };
        }
        Ok(())
    }

    fn sampling(&self) -> SharedSampling {
        SharedSampling {
            coordinates: self.coordinates,
            interpolation: self.interpolation,
            exclude_outside: self.exclude_outside,
            antialias: self.antialias,
        }
    }

    /// Returns the elements and weights that make up every position of each axis of the result.
    ///
    /// # Errors
    /// Returns an error if the values of the inputs do not fit the shape.
    pub fn samples(
        &self,
        shape: &[usize],
        scales: Option<&Tensor>,
        sizes: Option<&Tensor>,
        roi: Option<&Tensor>,
    ) -> Result<Vec<Vec<WeightedSample>>, OpError> {
        let scales = self.scales_of(scales)?;
        let sizes = sizes.map(Tensor::to_i64_vec).transpose()?;
        let roi = match roi {
            Some(roi) if roi.elements() > 0 => values::floats(roi)?,
            _ => Vec::new(),
        };
        let plans = self.plan(shape, scales.as_deref(), sizes.as_deref(), &roi)?;
        let shape: Vec<usize> = plans.iter().map(|plan| plan.output).collect();
        bounds::bounded(DataType::Fp64, &shape)?;
        let sampling = self.sampling();
        let whole = |plan: &AxisPlan| {
            let still = plan.input == plan.output && plan.scale == 1.0 && plan.roi == (0.0, 1.0);
            if still {
                (0..plan.input).map(|at| Some(vec![(at, 1.0)])).collect()
            } else {
                sampling.samples(plan)
            }
        };
        Ok(plans.iter().map(whole).collect())
    }

    /// Nearest neighbours move elements of any type.
    fn nearest(
        data: &Tensor,
        samples: &[Vec<WeightedSample>],
        outside: &Tensor,
    ) -> Result<Tensor, OpError> {
        let shape: Vec<usize> = samples.iter().map(Vec::len).collect();
        let steps = bounds::steps(data.shape());
        let offset = |index: Vec<usize>| {
            let sources = index.iter().zip(samples).map(|(&at, axis)| axis[at].as_ref());
            sources.zip(&steps).try_fold(0, |offset, (source, step)| {
                source.and_then(|all| all.first()).map(|(from, _)| offset + from * step)
            })
        };
        picks::picked_or(data, outside, &shape, &mut bounds::indices(&shape).map(offset))
    }

    /// Weighted sums, axis after axis: the weights are products of those of the axes.
    fn interpolate(
        &self,
        data: &Tensor,
        samples: &[Vec<WeightedSample>],
    ) -> Result<Tensor, OpError> {
        let dtype = data.dtype();
        let mut all = if dtype.is_integer() {
            data.to_i64_vec()?.into_iter().map(|value| value as f64).collect()
        } else {
            values::floats(data)?
        };
        let mut shape = data.shape().to_vec();
        for (axis, places) in samples.iter().enumerate() {
            let (len, inner): (usize, usize) = (shape[axis], shape[axis + 1..].iter().product());
            shape[axis] = places.len();
            let mut next = Vec::with_capacity(bounds::bounded(DataType::Fp64, &shape)?);
            for outer in 0..shape[..axis].iter().product::<usize>() {
                for place in places {
                    for at in 0..inner {
                        // A place outside stays outside, whatever the other axes say.
                        next.push(place.as_ref().map_or(f64::NAN, |weights| {
                            let term = |&(from, weight): &(usize, f64)| {
                                weight * all[(outer * len + from) * inner + at]
                            };
                            weights.iter().map(term).sum()
                        }));
                    }
                }
            }
            all = next;
        }
        if self.coordinates == CoordinateMode::TfCropAndResize {
            for (value, index) in all.iter_mut().zip(bounds::indices(&shape)) {
                if index.iter().zip(samples).any(|(&at, axis)| axis[at].is_none()) {
                    *value = self.extrapolation_value;
                }
            }
        }
        if dtype.is_integer() {
            // Cubic weights overshoot at edges, which must not wrap from the darkest to the brightest.
            let (least, most) = values::integer_range(dtype).unwrap_or((i128::MIN, i128::MAX));
            let whole = |value: f64| (value.round_ties_even() as i128).clamp(least, most);
            let whole: Vec<i128> = all.into_iter().map(whole).collect();
            return values::from_integers(dtype, &shape, &whole);
        }
        values::from_floats(dtype, &shape, all)
    }
}

fn optional<'a, T>(inputs: OperatorInputs<'a, T>, at: Option<usize>) -> Option<&'a T> {
    at.and_then(|at| inputs.optional(at))
}

impl Operator for Resize {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(dims) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let scales = optional(inputs, self.scales_input).and_then(|fact| fact.value.as_ref());
        let scales = self.scales_of(scales)?;
        let sizes = optional(inputs, self.sizes_input);
        let given = sizes.and_then(Fact::integers);
        if let (Some(shape), true) = (data.known_shape(), scales.is_some() || given.is_some()) {
            let whole = Self { coordinates: CoordinateMode::HalfPixel, ..self.clone() };
            let plans = whole.plan(&shape, scales.as_deref(), given.as_deref(), &[])?;
            let lengths = plans.into_iter().map(|plan| Dim::Known(plan.output)).collect();
            return Ok(vec![Fact::new(data.dtype, lengths)]);
        }
        let mut shape = vec![Dim::Unknown; dims.len()];
        if let Some(scales) = &scales {
            shape.clone_from(dims);
            for (axis, scale) in self.positions(dims.len(), scales.len())?.iter().zip(scales) {
                if *scale != 1.0 {
                    let scaled = |len: usize| num_traits::cast((len as f64 * scale).floor());
                    let known = dims[*axis].known().and_then(scaled);
                    shape[*axis] = known.map_or(Dim::Unknown, Dim::Known);
                }
            }
        } else if let (Some(lengths), AspectRatio::Stretch) =
            (sizes.and_then(Fact::lengths), self.aspect_ratio)
        {
            shape.clone_from(dims);
            for (axis, len) in self.positions(dims.len(), lengths.len())?.iter().zip(lengths) {
                shape[*axis] = len;
            }
        }
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let samples = self.samples(
            data.shape(),
            optional(inputs, self.scales_input),
            optional(inputs, self.sizes_input),
            optional(inputs, self.roi_input),
        )?;
        if !matches!(self.interpolation, ResizeInterpolation::Nearest(_)) {
            return Ok(vec![self.interpolate(data, &samples)?]);
        }
        let outside = if data.dtype().is_float() {
            values::from_floats(data.dtype(), &[], vec![self.extrapolation_value])?
        } else {
            Tensor::zeros(data.dtype(), &[])?
        };
        Ok(vec![Self::nearest(data, &samples, &outside)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, counting, int, one, run, tensor, text};

    fn resized(list: &[(&str, AttributeValue)], data: &Tensor, sizes: &[i64]) -> Vec<f32> {
        let list = list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let sizes = Tensor::vector(sizes.to_vec());
        let inputs = [Some(data), None, None, Some(&sizes)];
        run("Resize", 19, &list, &inputs, 1).unwrap().remove(0).to_vec().unwrap()
    }

    fn near(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-5, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn an_empty_image_as_long_as_no_memory_is_refused() {
        let data = Tensor::zeros(DataType::Fp32, &[0, 4]).unwrap();
        let list = attributes([]);
        let sizes = tensor(&[2], &[0_i64, 1 << 40]);
        let text = run("Resize", 18, &list, &[Some(&data), None, None, Some(&sizes)], 1);
        assert!(text.unwrap_err().contains("the limit of a value is"));
    }

    #[test]
    fn nearest_and_linear_on_a_line() {
        let data = tensor(&[2], &[0_f32, 1.0]);
        assert_eq!(resized(&[], &data, &[4]), [0.0, 0.0, 1.0, 1.0]);
        let linear = ("mode", text("linear"));
        near(&resized(std::slice::from_ref(&linear), &data, &[4]), &[0.0, 0.25, 0.75, 1.0]);
        let corners = ("coordinate_transformation_mode", text("align_corners"));
        let thirds = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0];
        near(&resized(&[linear.clone(), corners], &data, &[4]), &thirds);
        let asymmetric = ("coordinate_transformation_mode", text("asymmetric"));
        near(&resized(&[linear, asymmetric], &data, &[4]), &[0.0, 0.5, 1.0, 1.0]);
    }

    #[test]
    fn cubic_passes_through_a_straight_line_inside_and_antialias_averages() {
        let data = counting(&[8]);
        // Only the coefficient -1/2 reproduces straight lines.
        let cubic = [("mode", text("cubic")), ("cubic_coeff_a", AttributeValue::Float(-0.5))];
        near(&resized(&cubic, &data, &[16])[6..8], &[2.75, 3.25]);
        near(&resized(&cubic[..1], &data, &[16])[6..8], &[2.703_125, 3.296_875]);
        let smooth = [("mode", text("linear")), ("antialias", int(1))];
        near(&resized(&smooth, &data, &[1])[..], &[3.5]);
    }

    #[test]
    fn integers_are_rounded_and_saturate() {
        let sizes = Tensor::vector(vec![8_i64]);
        let cubic = attributes([("mode", text("cubic"))]);
        let resized = |x: &Tensor| {
            let inputs = [Some(x), None, None, Some(&sizes)];
            run("Resize", 19, &cubic, &inputs, 1).unwrap().remove(0)
        };
        let edge = [0_u8, 0, 255, 255];
        let found = resized(&Tensor::vector(edge.to_vec())).to_vec::<u8>().unwrap();
        let exact = resized(&Tensor::vector(edge.map(f32::from).to_vec())).to_vec::<f32>().unwrap();
        assert!(exact.iter().any(|&v| v < 0.0) && exact.iter().any(|&v| v > 255.0));
        let rounded: Vec<u8> =
            exact.iter().map(|v| v.round_ties_even().clamp(0.0, 255.0) as u8).collect();
        assert_eq!(found, rounded);
        let signed = resized(&Tensor::vector(vec![-128_i8, -128, 127, 127]));
        let signed = signed.to_vec::<i8>().unwrap();
        assert!(signed[..4].iter().all(|&v| v < 0) && signed[4..].iter().all(|&v| v > 0));
        for x in [
            Tensor::vector(vec![i16::MIN, i16::MIN, i16::MAX, i16::MAX]),
            Tensor::vector(vec![i32::MIN, i32::MIN, i32::MAX, i32::MAX]),
            Tensor::vector(vec![i64::MIN, i64::MIN, i64::MAX, i64::MAX]),
        ] {
            let found = resized(&x).to_i64_vec().unwrap();
            assert!(found[..4].iter().all(|&v| v < 0) && found[4..].iter().all(|&v| v > 0));
        }
        for x in [
            Tensor::vector(vec![0_u16, 0, u16::MAX, u16::MAX]),
            Tensor::vector(vec![0_u32, 0, u32::MAX, u32::MAX]),
        ] {
            let found = resized(&x).to_i64_vec().unwrap();
            assert!(found[..4].iter().max() < found[4..].iter().min(), "{found:?}");
        }
        // Linear weights meet halves: they go to the even neighbour.
        let sizes = Tensor::vector(vec![4_i64]);
        let list = attributes([
            ("mode", text("linear")),
            ("coordinate_transformation_mode", text("asymmetric")),
        ]);
        let inputs = [Some(&Tensor::vector(vec![1_i32, 2])), None, None, Some(&sizes)];
        let found = run("Resize", 19, &list, &inputs, 1).unwrap().remove(0);
        assert_eq!(found, Tensor::vector(vec![1_i32, 2, 2, 2]));
    }

    #[test]
    fn proportions_and_old_opsets() {
        let list = [("keep_aspect_ratio_policy", text("not_larger"))];
        assert_eq!(resized(&list, &counting(&[2, 4]), &[7, 8]).len(), 4 * 8);
        let scales = tensor(&[2], &[1_f32, 2.0]);
        let up = one("Upsample", 9, &attributes([]), &[&counting(&[1, 2]), &scales]);
        assert_eq!(up, tensor(&[1, 4], &[0_f32, 0.0, 1.0, 1.0]));
        let list = attributes([("scales", AttributeValue::Floats(vec![1.0, 2.0]))]);
        assert_eq!(one("Upsample", 7, &list, &[&counting(&[1, 2])]), up);
        let down = tensor(&[2], &[1_f32, 0.6]);
        let result = one("Resize", 10, &attributes([]), &[&counting(&[1, 4]), &down]);
        assert_eq!(result, tensor(&[1, 2], &[0_f32, 2.0]));
    }

    #[test]
    fn impossible_scales_are_errors() {
        for bad in [f32::NAN, -1.0, 0.0, 1e30] {
            let data = counting(&[2]);
            let scales = tensor(&[1], &[bad]);
            let inputs = [Some(&data), None, Some(&scales)];
            assert!(run("Resize", 13, &attributes([]), &inputs, 1).is_err());
        }
        let inputs = [Some(&counting(&[2]))];
        assert!(run("Resize", 13, &attributes([]), &inputs, 1).is_err());
    }
}
