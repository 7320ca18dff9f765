//! `convolution`, `convolution3d`, and the windows that pooling shares with them.

use galatea_graph::AttributeValue;

use super::lower::{
    LayerCall, LayerOutputs, NetworkLowering, choice, int, ints, list, size, sizes, text,
};
use super::weights;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    BorderAmounts, Convolution3dLayerProto, ConvolutionLayerProto, Padding3dProto, PaddingProto,
    SameMode, SamePadding, ValidPadding,
};

/// Attributes of a node.
pub(super) type NodeAttributes = Vec<(&'static str, AttributeValue)>;

/// Two lengths of height and width, or what stands for them where they are not set.
pub(super) fn two(found: &[u64], default: usize, what: &str) -> Result<Vec<usize>, CoreMlError> {
    let found = sizes(found)?;
    match found.len() {
        0 => Ok(vec![default; 2]),
        2 => Ok(found),
        n => Err(CoreMlError::invalid(format!("{n} numbers for '{what}', expected 2"))),
    }
}

/// Amounts at the begin of height and width, then at the end.
pub(super) fn borders(found: Option<&BorderAmounts>) -> Result<Vec<i64>, CoreMlError> {
    let Some(found) = found.filter(|found| !found.border_amounts.is_empty()) else {
        return Ok(vec![0; 4]);
    };
    let &[height, width] = &found.border_amounts[..] else {
        let n = found.border_amounts.len();
        return Err(CoreMlError::invalid(format!("{n} borders, expected those of 2 axes")));
    };
    let all =
        [height.start_edge_size, width.start_edge_size, height.end_edge_size, width.end_edge_size];
    Ok(ints(&sizes(&all)?))
}

/// The padding of windows: as stated, or so that the length is kept.
pub(super) fn valid_padding(found: &ValidPadding) -> Result<NodeAttributes, CoreMlError> {
    Ok(vec![("pads", list(borders(found.padding_amounts.as_ref())?))])
}

/// Padding that keeps the length; an odd one is longer at the end, or at the begin.
pub(super) fn same_padding(found: SamePadding) -> Result<NodeAttributes, CoreMlError> {
    let side = match choice(found.asymmetry_mode, "asymmetry of padding")? {
        SameMode::BottomRightHeavy => "SAME_UPPER",
        SameMode::TopLeftHeavy => "SAME_LOWER",
    };
    Ok(vec![("auto_pad", text(side))])
}

/// Parameters of a convolution of images or volumes.
struct NetworkWindow {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    groups: usize,
    input: usize,
    output: usize,
    transposed: bool,
    output_shape: Vec<usize>,
}

impl NetworkWindow {
    fn attributes(&self) -> NodeAttributes {
        vec![
            ("kernel_shape", list(ints(&self.kernel))),
            ("strides", list(ints(&self.strides))),
            ("dilations", list(ints(&self.dilations))),
            ("group", int(self.groups).into()),
        ]
    }

    /// The shape of the weights. `input` counts the channels of a kernel: those of a group, or all
    /// where it is transposed.
    fn weights(&self) -> Result<Vec<usize>, CoreMlError> {
        if !self.output.is_multiple_of(self.groups) {
            let text = format!("{} channels in {} groups", self.output, self.groups);
            return Err(CoreMlError::invalid(text));
        }
        let mut shape = match self.transposed {
            true => vec![self.input, self.output / self.groups],
            false => vec![self.output, self.input],
        };
        shape.extend(&self.kernel);
        Ok(shape)
    }

    /// The padding of a transposed window that makes the length that of the input times the step:
    /// what the full result has more is cut off, what it has less is added at the end.
    fn same_transposed(&self, heavy_begin: bool) -> NodeAttributes {
        let total = |(&kernel, &stride): (&usize, &usize)| int(kernel) - int(stride);
        let totals: Vec<i64> = self.kernel.iter().zip(&self.strides).map(total).collect();
        let less = |total: &i64| total.max(&0) / 2;
        let more = |total: &i64| total.max(&0) - total.max(&0) / 2;
        let (mut begin, mut end): (Vec<i64>, Vec<i64>) =
            (totals.iter().map(less).collect(), totals.iter().map(more).collect());
        if heavy_begin {
            std::mem::swap(&mut begin, &mut end);
        }
        begin.append(&mut end);
        let missing = totals.iter().map(|total| (-total).max(0)).collect();
        vec![("pads", list(begin)), ("output_padding", list(missing))]
    }

    fn output_shape(&self) -> Option<NodeAttributes> {
        let wanted = self.transposed && !self.output_shape.is_empty();
        let shape = || ("output_shape", list(ints(&self.output_shape)));
        wanted.then(|| vec![shape(), ("auto_pad", text("SAME_UPPER"))])
    }
}

fn set_or_one(found: i32, what: &str) -> Result<usize, CoreMlError> {
    match usize::try_from(found) {
        Ok(0) => Ok(1),
        Ok(found) => Ok(found),
        Err(_) => Err(CoreMlError::invalid(format!("{found} for '{what}'"))),
    }
}

/// Lengths of depth, height and width; those that are not set are 1.
pub(super) fn three(found: [i32; 3], what: &str) -> Result<Vec<usize>, CoreMlError> {
    found.into_iter().map(|found| set_or_one(found, what)).collect()
}

/// The padding of windows on volumes; the amounts are front, back, top, bottom, left, right.
pub(super) fn padding_3d(
    found: i32,
    amounts: [i32; 6],
) -> Result<(Padding3dProto, NodeAttributes), CoreMlError> {
    let kind = choice(found, "type of padding")?;
    let attributes = match kind {
        Padding3dProto::Valid => Vec::new(),
        Padding3dProto::Same => vec![("auto_pad", text("SAME_UPPER"))],
        Padding3dProto::Custom => {
            if let Some(negative) = amounts.iter().find(|&&amount| amount < 0) {
                return Err(CoreMlError::invalid(format!("a padding of {negative}")));
            }
            let [front, back, top, bottom, left, right] = amounts.map(i64::from);
            vec![("pads", list(vec![front, top, left, back, bottom, right]))]
        }
    };
    Ok((kind, attributes))
}

/// `convolution`: the weights are constants, or the second input.
pub(super) fn convolution(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ConvolutionLayerProto = call.read()?;
    let transposed = params.is_deconvolution;
    let dilations = if transposed { &[] } else { &params.dilation_factor[..] };
    let window = NetworkWindow {
        kernel: two(&params.kernel_size, 3, "kernelSize")?,
        strides: two(&params.stride, 1, "stride")?,
        dilations: two(dilations, 1, "dilationFactor")?,
        groups: size(params.n_groups)?.max(1),
        input: size(params.kernel_channels)?,
        output: size(params.output_channels)?,
        transposed,
        output_shape: sizes(&params.output_shape)?,
    };
    let mut attributes = window.attributes();
    attributes.extend(match (window.output_shape(), &params.padding) {
        (Some(wanted), _) => wanted,
        (None, Some(PaddingProto::Valid(valid))) => valid_padding(valid)?,
        (None, Some(PaddingProto::Same(same))) if transposed => {
            let mode: SameMode = choice(same.asymmetry_mode, "asymmetry of padding")?;
            window.same_transposed(mode == SameMode::TopLeftHeavy)
        }
        (None, Some(PaddingProto::Same(same))) => same_padding(*same)?,
        (None, None) => Vec::new(),
    });
    let (image, form) = cx.image(call.input(0)?)?;
    let mut inputs = vec![image];
    if call.inputs.len() > 1 {
        inputs.push(cx.exact(call.input(1)?)?);
    } else {
        let axis = usize::from(transposed);
        let shape = window.weights()?;
        let found = weights::tensor_along(params.weights.as_ref(), "weights", &shape, axis)?;
        inputs.push(cx.constant(found));
    }
    if call.inputs.len() > 2 {
        inputs.push(cx.exact(call.input(2)?)?);
    } else if params.has_bias {
        let bias = weights::tensor(params.bias.as_ref(), "bias", &[window.output])?;
        inputs.push(cx.constant(bias));
    }
    let operator = if transposed { "ConvTranspose" } else { "Conv" };
    let id = cx.node(operator, &inputs, &attributes)?;
    Ok(vec![cx.unbatched(id, form)?])
}

/// `convolution3d`.
pub(super) fn convolution_3d(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let p: Convolution3dLayerProto = call.read()?;
    let channels = |found: i32| {
        let wrong = || CoreMlError::invalid(format!("{found} channels"));
        usize::try_from(found).map_err(|_| wrong())
    };
    let groups = set_or_one(p.n_groups, "nGroups")?;
    let transposed = p.is_deconvolution;
    let input = channels(p.input_channels)?;
    let window = NetworkWindow {
        kernel: three([p.kernel_depth, p.kernel_height, p.kernel_width], "kernel")?,
        strides: three([p.stride_depth, p.stride_height, p.stride_width], "stride")?,
        dilations: three([p.dilation_depth, p.dilation_height, p.dilation_width], "dilation")?,
        groups,
        input: if transposed { input } else { input / groups },
        output: channels(p.output_channels)?,
        transposed,
        output_shape: sizes(&p.output_shape)?,
    };
    let amounts = [
        p.custom_padding_front,
        p.custom_padding_back,
        p.custom_padding_top,
        p.custom_padding_bottom,
        p.custom_padding_left,
        p.custom_padding_right,
    ];
    let (kind, padding) = padding_3d(p.padding_type, amounts)?;
    let mut attributes = window.attributes();
    attributes.extend(match window.output_shape() {
        Some(wanted) => wanted,
        None if transposed && kind == Padding3dProto::Same => window.same_transposed(false),
        None => padding,
    });
    let shape = window.weights()?;
    let axis = usize::from(transposed);
    let found = weights::tensor_along(p.weights.as_ref(), "weights", &shape, axis)?;
    let (volume, form) = cx.batched(call.input(0)?, 5)?;
    let mut inputs = vec![volume, cx.constant(found)];
    if p.has_bias {
        let bias = weights::tensor(p.bias.as_ref(), "bias", &[window.output])?;
        inputs.push(cx.constant(bias));
    }
    let operator = if transposed { "ConvTranspose" } else { "Conv" };
    let id = cx.node(operator, &inputs, &attributes)?;
    Ok(vec![cx.unbatched(id, form)?])
}
