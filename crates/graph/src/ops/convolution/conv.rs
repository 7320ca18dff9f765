//! `Conv`: convolution of images of any number of spatial axes.

use galatea_tensor::{DataType, Tensor};

use super::window::{ConvGeometry, SlidingWindow, WindowPadding};
use crate::attribute::{Attributes, named};
use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values;

/// ONNX `Conv`: inputs `X` `[N, C, spatial…]`, `W` `[M, C / group, kernel…]` and optionally `B`
/// `[M]`. As `ConvNhwc` of domain `ai.galatea` input and output are `[N, spatial…, channels]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Lengths of the window; those of the weights if absent.
    pub kernel_shape: Option<Vec<usize>>,
    /// Steps of the window; empty means ones.
    pub strides: Vec<usize>,
    /// Distances of neighbours inside the window; empty means ones.
    pub dilations: Vec<usize>,
    /// How far the window may leave the image.
    pub pads: WindowPadding,
    /// Into how many independent groups the channels fall.
    pub group: usize,
    /// True if the channels are the last axis of input and output.
    pub channels_last: bool,
}

/// An image with channels first and its weights, widened.
pub(crate) struct WidenedConv {
    /// The image, row-major.
    pub(crate) x: Vec<f64>,
    /// Its shape `[N, C, spatial…]`.
    pub(crate) x_shape: Vec<usize>,
    /// The weights, row-major.
    pub(crate) w: Vec<f64>,
    /// Their shape.
    pub(crate) w_shape: Vec<usize>,
}

/// The axes of channels-last data in channels-first order.
pub(crate) fn to_channels_first(rank: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    if rank > 2 {
        axes.remove(rank - 1);
        axes.insert(1, rank - 1);
    }
    axes
}

/// The axes of channels-first data in channels-last order.
pub(crate) fn to_channels_last(rank: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    if rank > 2 {
        axes.remove(1);
        axes.push(1);
    }
    axes
}

/// Reads a list of positive lengths; empty if absent.
pub(crate) fn list(
    context: &mut ParseContext<'_>,
    name: &'static str,
) -> Result<Vec<usize>, OpError> {
    bounds::lengths(&context.attributes.ints(name)?.unwrap_or_default(), name)
}

/// Refuses a bias of the wrong shape.
pub(crate) fn bias(input: Option<&Tensor>, channels: usize) -> Result<Option<Vec<f64>>, OpError> {
    let Some(bias) = input else { return Ok(None) };
    if bias.shape() != [channels] {
        return Err(OpError::new(format!(
            "a bias of shape {:?}, expected [{channels}]",
            bias.shape()
        )));
    }
    values::floats(bias).map(Some)
}

/// Refuses a bias that cannot have one element for each channel of the result.
fn check_bias(bias: Option<&Fact>, weights: &Fact) -> Result<(), OpError> {
    let Some(shape) = bias.and_then(|bias| bias.shape.as_deref()) else { return Ok(()) };
    let channels = weights.shape.as_deref().and_then(|shape| shape.first()?.known());
    let fits = |len: &Dim| match (len.known(), channels) {
        (Some(len), Some(channels)) => len == channels,
        _ => true,
    };
    if matches!(shape, [len] if fits(len)) {
        return Ok(());
    }
    let found: Vec<String> = shape.iter().map(Dim::to_string).collect();
    let channels = channels.map_or("channels".to_owned(), |channels| channels.to_string());
    Err(OpError::new(format!("a bias of shape [{}], expected [{channels}]", found.join(", "))))
}

impl Conv {
    /// Reads the attributes of `Conv`.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::read(context, false)?))
    }

    /// Reads the attributes of `ConvNhwc`.
    pub(crate) fn parse_channels_last(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::read(context, true)?))
    }

    /// Reads the attributes.
    pub(super) fn read(
        context: &mut ParseContext<'_>,
        channels_last: bool,
    ) -> Result<Self, OpError> {
        let kernel_shape = context.attributes.ints("kernel_shape")?;
        let kernel_shape =
            kernel_shape.map(|all| bounds::lengths(&all, "kernel_shape")).transpose()?;
        let group = bounds::length(context.attributes.int_or("group", 1)?, "attribute 'group'")?;
        if group == 0 {
            return Err(OpError::new("attribute 'group' is 0"));
        }
        Ok(Self {
            kernel_shape,
            strides: list(context, "strides")?,
            dilations: list(context, "dilations")?,
            pads: WindowPadding::parse(context)?,
            group,
            channels_last,
        })
    }

    fn window<'a>(&'a self, kernel: &'a [usize]) -> SlidingWindow<'a> {
        SlidingWindow {
            kernel,
            strides: &self.strides,
            dilations: &self.dilations,
            pads: &self.pads,
            ceil: false,
        }
    }

    /// Effective pads and output lengths.
    ///
    /// Shapes: both lists hold the spatial lengths only; `kernel_spatial` is that of the weights.
    ///
    /// # Errors
    /// Fails when the window does not fit the image, or a list has the wrong length.
    pub fn geometry(
        &self,
        input_spatial: &[usize],
        kernel_spatial: &[usize],
    ) -> Result<ConvGeometry, OpError> {
        self.check_kernel(kernel_spatial)?;
        self.window(kernel_spatial).geometry(input_spatial)
    }

    fn check_kernel(&self, kernel: &[usize]) -> Result<(), OpError> {
        match &self.kernel_shape {
            Some(declared) if declared != kernel => Err(OpError::new(format!(
                "kernel_shape {declared:?}, but the weights have {kernel:?}"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses weights that do not fit the image.
    pub(super) fn check(&self, x: &[usize], w: &[usize]) -> Result<(), OpError> {
        let fits = x.len() >= 3
            && x.len() == w.len()
            && w[1].checked_mul(self.group) == Some(x[1])
            && w[0].is_multiple_of(self.group);
        if fits {
            return self.check_kernel(&w[2..]);
        }
        Err(OpError::new(format!(
            "weights of shape {w:?} do not fit an image of shape {x:?} (channels first) in {} groups",
            self.group
        )))
    }

    /// The shape of the output from those of image and weights, as this operator lays them out.
    pub(crate) fn output_fact(&self, x: &Fact, w: &Fact, dtype: DataType) -> Result<Fact, OpError> {
        let (Some(image), Some(weights)) = (&x.shape, &w.shape) else {
            return Ok(match x.rank().or(w.rank()) {
                Some(rank) => Fact::new(dtype, vec![Dim::Unknown; rank]),
                None => Fact::unranked(dtype),
            });
        };
        if image.len() < 3 || image.len() != weights.len() {
            return Err(OpError::new(format!(
                "an image of rank {} with weights of rank {}",
                image.len(),
                weights.len()
            )));
        }
        let rank = image.len();
        let image: Vec<Dim> = if self.channels_last {
            to_channels_first(rank).into_iter().map(|axis| image[axis].clone()).collect()
        } else {
            image.clone()
        };
        if let (Some(channels), Some(kernel)) = (image[1].known(), w.known_shape()) {
            let known = [&[1, channels][..], &vec![1; rank - 2]].concat();
            self.check(&known, &kernel)?;
        }
        let kernel: Option<Vec<usize>> = collected_some(&mut weights[2..].iter().map(Dim::known));
        let spatial = match kernel.as_ref().or(self.kernel_shape.as_ref()) {
            Some(kernel) => self.window(kernel).output_dims(&image[2..])?,
            None => vec![Dim::Unknown; rank - 2],
        };
        let batch = image[0].clone();
        let channels = weights[0].clone();
        let shape = if self.channels_last {
            [&[batch], &spatial[..], &[channels]].concat()
        } else {
            [&[batch, channels], &spatial[..]].concat()
        };
        Ok(Fact::new(dtype, shape))
    }

    /// The image with channels first.
    pub(crate) fn image(&self, x: &Tensor) -> Result<Tensor, OpError> {
        if self.channels_last {
            return Ok(x.permute(&to_channels_first(x.rank()))?);
        }
        Ok(x.clone())
    }

    /// The convolution with channels first: its shape and elements.
    pub(crate) fn convolve(
        &self,
        operands: &WidenedConv,
        bias: Option<&[f64]>,
    ) -> Result<(Vec<usize>, Vec<f64>), OpError> {
        let WidenedConv { x, x_shape, w, w_shape } = operands;
        self.check(x_shape, w_shape)?;
        let kernel = &w_shape[2..];
        let input = &x_shape[2..];
        let window = self.window(kernel);
        let geometry = window.geometry(input)?;
        let batch = x_shape[0];
        let out_channels = w_shape[0];
        let shape = [&[batch, out_channels], &geometry.output[..]].concat();
        let mut result = vec![0.0; bounds::bounded(DataType::Fp64, &shape)?];
        let plane: usize = geometry.output.iter().product();
        let (pixels, cells): (usize, usize) = (input.iter().product(), kernel.iter().product());
        let in_group = w_shape[1];
        let out_group = out_channels / self.group;
        for (at, position) in bounds::indices(&geometry.output).enumerate() {
            let taps = window.taps(input, &geometry, &position);
            for n in 0..batch {
                for oc in 0..out_channels {
                    let first = n * x_shape[1] + (oc / out_group) * in_group;
                    let mut sum = bias.map_or(0.0, |bias| bias[oc]);
                    for ic in 0..in_group {
                        let x = &x[(first + ic) * pixels..];
                        let w = &w[(oc * in_group + ic) * cells..];
                        for &(pixel, cell) in &taps {
                            sum += x[pixel] * w[cell];
                        }
                    }
                    result[(n * out_channels + oc) * plane + at] = sum;
                }
            }
        }
        Ok((shape, result))
    }

    /// The result in the layout of the operator.
    pub(crate) fn laid_out(&self, result: &Tensor) -> Result<Tensor, OpError> {
        if self.channels_last {
            return bounds::owned(&result.permute(&to_channels_last(result.rank()))?);
        }
        Ok(result.clone())
    }
}

impl Operator for Conv {
    fn attributes(&self) -> Option<Attributes> {
        let kernel = self.kernel_shape.as_ref();
        let kernel = kernel.map(|kernel| ("kernel_shape", kernel.as_slice().into()));
        let group = i64::try_from(self.group).ok()?;
        let mut all = named([
            ("strides", self.strides.as_slice().into()),
            ("dilations", self.dilations.as_slice().into()),
            ("group", group.into()),
        ]);
        all.extend(named(kernel));
        all.extend(self.pads.attributes());
        Some(all)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        values::expect_float(x.dtype)?;
        check_bias(inputs.optional(2), w)?;
        Ok(vec![self.output_fact(x, w, x.dtype)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = self.image(inputs.required(0)?)?;
        let w = inputs.required(1)?;
        let bias = bias(inputs.optional(2), w.shape().first().copied().unwrap_or(0))?;
        let operands = WidenedConv {
            x: values::floats(&x)?,
            x_shape: x.shape().to_vec(),
            w: values::floats(w)?,
            w_shape: w.shape().to_vec(),
        };
        let (shape, result) = self.convolve(&operands, bias.as_deref())?;
        Ok(vec![self.laid_out(&values::from_floats(x.dtype(), &shape, result)?)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, int, ints, one, run, tensor, text};

    #[test]
    fn a_window_of_ones_sums_its_neighbours() {
        let x = counting(&[1, 1, 3, 3]);
        let w = tensor(&[1, 1, 3, 3], &[1_f32; 9]);
        let padded = attributes([("pads", ints(&[1, 1, 1, 1]))]);
        let expected = [8_f32, 15.0, 12.0, 21.0, 36.0, 27.0, 20.0, 33.0, 24.0];
        assert_eq!(one("Conv", 11, &padded, &[&x, &w]), tensor(&[1, 1, 3, 3], &expected));
        let same = attributes([("auto_pad", text("SAME_LOWER"))]);
        assert_eq!(one("Conv", 11, &same, &[&x, &w]), tensor(&[1, 1, 3, 3], &expected));
        let bias = tensor(&[1], &[0.5_f32]);
        let inner = one("Conv", 11, &attributes([]), &[&x, &w, &bias]);
        assert_eq!(inner, tensor(&[1, 1, 1, 1], &[36.5_f32]));
    }

    #[test]
    fn a_bias_that_fits_no_channels_is_refused_before_a_run() {
        let x = counting(&[1, 1, 3, 3]);
        let w = tensor(&[2, 1, 3, 3], &[1_f32; 18]);
        let facts = |bias: &[usize]| {
            let [x, w] = [&x, &w].map(|one| Fact::fixed(DataType::Fp32, one.shape()));
            let bias = Fact::fixed(DataType::Fp32, bias);
            inferred("Conv", 11, &attributes([]), &[&x, &w, &bias])
        };
        assert!(facts(&[2]).is_ok());
        for bias in [&[3][..], &[1, 0, 2], &[], &[1, 2, 1, 1]] {
            let text = facts(bias).unwrap_err();
            assert!(text.contains("a bias of shape [") && text.contains("expected [2]"), "{text}");
        }
    }

    #[test]
    fn groups_strides_and_dilations_in_one_and_three_axes() {
        let x = counting(&[1, 2, 5]);
        let w = tensor(&[2, 1, 2], &[1_f32, 1.0, 1.0, -1.0]);
        let list = [("group", int(2)), ("strides", ints(&[2])), ("dilations", ints(&[2]))];
        let result = one("Conv", 11, &attributes(list), &[&x, &w]);
        assert_eq!(result, tensor(&[1, 2, 2], &[2_f32, 6.0, -2.0, -2.0]));
        let cube = one(
            "Conv",
            22,
            &attributes([]),
            &[&counting(&[1, 1, 2, 2, 2]), &tensor(&[1, 1, 2, 2, 2], &[1_f32; 8])],
        );
        assert_eq!(cube.to_vec::<f32>().unwrap(), [28.0]);
    }

    #[test]
    fn channels_last_is_the_same_convolution() {
        let x = counting(&[2, 3, 4, 5]);
        let w = counting(&[2, 3, 3, 3]);
        let list = attributes([("pads", ints(&[0, 1, 2, 1]))]);
        let first = one("Conv", 11, &list, &[&x, &w]);
        let x_last = x.permute(&to_channels_last(4)).unwrap();
        let last = one("ai.galatea:ConvNhwc", 1, &list, &[&x_last, &w]);
        assert_eq!(last.permute(&to_channels_first(4)).unwrap(), first);
    }

    #[test]
    fn misfits_are_errors() {
        let x = counting(&[1, 2, 4, 4]);
        for (shape, pads) in [
            (vec![1, 3, 3, 3], vec![0_i64; 4]),
            (vec![1, 2, 3], vec![0; 4]),
            (vec![1, 2, 5, 5], vec![0; 4]),
            (vec![1, 2, 3, 3], vec![0; 3]),
            (vec![1, 2, 3, 3], vec![i64::MAX; 4]),
        ] {
            let w = counting(&shape);
            let list = attributes([("pads", AttributeValue::Ints(pads))]);
            assert!(run("Conv", 11, &list, &[Some(&x), Some(&w)], 1).is_err());
        }
        let zero = attributes([("group", int(0))]);
        assert!(run("Conv", 11, &zero, &[Some(&x), Some(&counting(&[1, 2, 3, 3]))], 1).is_err());
    }

    use crate::AttributeValue;
}
