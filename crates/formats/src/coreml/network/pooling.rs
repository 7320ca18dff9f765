//! `pooling`, `pooling3d` and `globalPooling3d`.

use super::convolution::{NodeAttributes, padding_3d, same_padding, three, two, valid_padding};
use super::lower::{LayerCall, LayerOutputs, NetworkLowering, choice, ints, list};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    CompletePadding, GlobalPooling3d, Pooling3dLayerProto, PoolingLayerProto, PoolingPadding,
    PoolingType,
};

/// Windows whose last application includes the last pixel.
fn complete_padding(found: &CompletePadding) -> Result<NodeAttributes, CoreMlError> {
    let mut pads = ints(&two(&found.padding_amounts, 0, "paddingAmounts")?);
    pads.extend_from_within(..);
    Ok(vec![("pads", list(pads)), ("ceil_mode", true.into())])
}

/// `pooling`.
pub(super) fn pooling(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: PoolingLayerProto = call.read()?;
    let kind = choice(params.r#type, "type of pooling")?;
    let (image, form) = cx.image(call.input(0)?)?;
    let norm = || ("p", 2_i64.into());
    let id = if params.global_pooling {
        match kind {
            PoolingType::Max => cx.node("GlobalMaxPool", &[image], &[])?,
            PoolingType::Average => cx.node("GlobalAveragePool", &[image], &[])?,
            PoolingType::L2 => cx.node("GlobalLpPool", &[image], &[norm()])?,
        }
    } else {
        let mut attributes: NodeAttributes = vec![
            ("kernel_shape", list(ints(&two(&params.kernel_size, 3, "kernelSize")?))),
            ("strides", list(ints(&two(&params.stride, 1, "stride")?))),
        ];
        attributes.extend(match &params.padding {
            None => Vec::new(),
            Some(PoolingPadding::Valid(valid)) => valid_padding(valid)?,
            Some(PoolingPadding::Same(same)) => same_padding(*same)?,
            Some(PoolingPadding::IncludeLastPixel(found)) => complete_padding(found)?,
        });
        let operator = match kind {
            PoolingType::Max => "MaxPool",
            PoolingType::Average => {
                let padded = !params.avg_pool_exclude_padding;
                attributes.push(("count_include_pad", padded.into()));
                "AveragePool"
            }
            PoolingType::L2 => {
                attributes.push(norm());
                "LpPool"
            }
        };
        cx.node(operator, &[image], &attributes)?
    };
    Ok(vec![cx.unbatched(id, form)?])
}

/// `pooling3d`.
pub(super) fn pooling_3d(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let p: Pooling3dLayerProto = call.read()?;
    let kernel = three([p.kernel_depth, p.kernel_height, p.kernel_width], "kernel")?;
    let strides = three([p.stride_depth, p.stride_height, p.stride_width], "stride")?;
    let mut attributes: NodeAttributes =
        vec![("kernel_shape", list(ints(&kernel))), ("strides", list(ints(&strides)))];
    let amounts = [
        p.custom_padding_front,
        p.custom_padding_back,
        p.custom_padding_top,
        p.custom_padding_bottom,
        p.custom_padding_left,
        p.custom_padding_right,
    ];
    attributes.extend(padding_3d(p.padding_type, amounts)?.1);
    let operator = match choice(p.r#type, "type of pooling")? {
        PoolingType::Max => "MaxPool",
        PoolingType::Average => {
            attributes.push(("count_include_pad", (!p.count_exclude_padding).into()));
            "AveragePool"
        }
        PoolingType::L2 => return Err(CoreMlError::invalid("there is no type of pooling 2")),
    };
    let (volume, form) = cx.batched(call.input(0)?, 5)?;
    let id = cx.node(operator, &[volume], &attributes)?;
    Ok(vec![cx.unbatched(id, form)?])
}

/// `globalPooling3d`.
pub(super) fn global_pooling_3d(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: GlobalPooling3d = call.read()?;
    let operator = match choice(params.r#type, "type of pooling")? {
        PoolingType::Max => "GlobalMaxPool",
        PoolingType::Average => "GlobalAveragePool",
        PoolingType::L2 => return Err(CoreMlError::invalid("there is no type of pooling 2")),
    };
    let (volume, form) = cx.batched(call.input(0)?, 5)?;
    let id = cx.node(operator, &[volume], &[])?;
    Ok(vec![cx.unbatched(id, form)?])
}
