//! Normalisation.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::contrib::SkipNormalization;
use galatea_graph::ops::normalize::{
    BatchNormalization, GroupNormalization, InstanceNormalization, LayerNormalization,
    LpNormalization, Lrn, MeanVarianceNormalization, RmsNormalization,
};
use galatea_graph::{Dim, Node};
use galatea_tensor::Tensor;

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse, small};

const SQUARES: &str = "sums of squares soon exceed what FP16 holds";

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("BatchNormalization", batch),
    EmitRow::onnx("InstanceNormalization", instance),
    EmitRow::onnx("LayerNormalization", layer),
    EmitRow::onnx("GroupNormalization", group),
    EmitRow::onnx("RMSNormalization", rms),
    EmitRow::onnx("SimplifiedLayerNormalization", rms),
    EmitRow::onnx("SimplifiedLayerNormalization", rms).of("com.microsoft"),
    EmitRow::onnx("SkipLayerNormalization", skip).of("com.microsoft"),
    EmitRow::onnx("SkipSimplifiedLayerNormalization", skip).of("com.microsoft"),
    EmitRow::onnx("LRN", local_response).wide(SQUARES),
    EmitRow::onnx("LpNormalization", lp).wide(SQUARES),
    EmitRow::onnx("MeanVarianceNormalization", mean_variance).wide(SQUARES),
];

/// Means and deviations are for training.
fn result_only(emit: &ProgramEmitter<'_>, node: &Node) -> Result<()> {
    let read = |at: usize| node.output(at).is_some_and(|id| emit.is_read(id));
    match read(1) || read(2) {
        true => refuse("means and deviations as outputs"),
        false => Ok(()),
    }
}

/// The deviation is made part of the scale, as variances may lie beyond what FP16 holds.
fn batch(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<BatchNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    if operator.training > 0 || operator.each_element {
        return refuse("statistics of the batch, or of single elements");
    }
    let rank = emit.rank(emit.input(node, 0)?)?;
    let parameters = (1..5).map(|at| emit.numbers(node, at)).collect::<Result<Vec<_>>>()?;
    let [scale, bias, mean, variance] = parameters.as_slice() else {
        return refuse("a normalisation without its parameters");
    };
    let deviation = |variance: &f32| (f64::from(*variance) + f64::from(operator.epsilon)).sqrt();
    #[allow(clippy::cast_possible_truncation, reason = "scales are floats")]
    let divided =
        |(scale, variance): (&f32, &f32)| (f64::from(*scale) / deviation(variance)) as f32;
    let factor: Vec<f32> = scale.iter().zip(variance).map(divided).collect();
    let count = factor.len();
    let x = emit.var(node, 0)?;
    if !(3..=5).contains(&rank) {
        // (x - mean) · factor + bias
        let mut shape = vec![1; rank];
        if let Some(channels) = shape.get_mut(1) {
            *channels = count;
        }
        let mean = emit.floats(&shape, mean.clone())?;
        let factor = emit.floats(&shape, factor)?;
        let bias = emit.floats(&shape, bias.clone())?;
        let centred = emit.pair("sub", &x, &mean)?;
        let scaled = emit.pair("mul", &centred, &factor)?;
        return Ok(vec![emit.pair("add", &scaled, &bias)?]);
    }
    let mean = emit.floats(&[count], mean.clone())?;
    let variance = emit.floats(&[count], vec![1.0; count])?;
    let gamma = emit.floats(&[count], factor)?;
    let beta = emit.floats(&[count], bias.clone())?;
    let epsilon = emit.float(0.0);
    let inputs = vec![
        ("x", MilArg::Var(x)),
        ("mean", MilArg::Var(mean)),
        ("variance", MilArg::Var(variance)),
        ("gamma", MilArg::Var(gamma)),
        ("beta", MilArg::Var(beta)),
        ("epsilon", epsilon),
    ];
    Ok(vec![emit.op("batch_norm", inputs)?])
}

/// `layer_norm` over some axes, without parameters.
fn plain_layer(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    axes: Vec<i32>,
    epsilon: f32,
) -> Result<MilVar> {
    let epsilon = emit.epsilon(epsilon);
    let inputs = vec![("x", x.into()), ("axes", MilArg::Ints(axes)), ("epsilon", epsilon)];
    emit.op("layer_norm", inputs)
}

/// `x · scale + bias` with one of each for a channel.
fn by_channel(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    x: &MilVar,
    rank: usize,
) -> Result<MilVar> {
    let mut result = x.clone();
    for (at, operator) in [(1, "mul"), (2, "add")] {
        let id = emit.input(node, at)?;
        let count = emit.known_length(id, 0)?;
        let parameter = emit.value(id)?;
        let parameter = emit.by_channel(&parameter, rank, count)?;
        result = emit.pair(operator, &result, &parameter)?;
    }
    Ok(result)
}

fn instance(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<InstanceNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let x = emit.var(node, 0)?;
    let known = emit.known(node, 1).is_some() && emit.known(node, 2).is_some();
    if known && (3..=4).contains(&rank) {
        let gamma = emit.var(node, 1)?;
        let beta = emit.var(node, 2)?;
        let epsilon = emit.epsilon(operator.epsilon);
        let inputs = vec![
            ("x", MilArg::Var(x)),
            ("gamma", MilArg::Var(gamma)),
            ("beta", MilArg::Var(beta)),
            ("epsilon", epsilon),
        ];
        return Ok(vec![emit.op("instance_norm", inputs)?]);
    }
    let axes = (2..rank).map(small).collect::<Result<Vec<_>>>()?;
    if axes.is_empty() {
        return refuse("a normalisation of channels without axes of space");
    }
    let normal = plain_layer(emit, &x, axes, operator.epsilon)?;
    Ok(vec![by_channel(emit, node, &normal, rank)?])
}

/// A constant parameter in the shape of a row; none where it is no constant or the row's lengths are
/// not known.
fn row_parameter(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    row: &[Dim],
) -> Result<Option<MilVar>> {
    let shape: Option<Vec<usize>> = row.iter().map(Dim::known).collect();
    let (Some(known), Some(shape)) = (emit.known(node, at), shape) else { return Ok(None) };
    if known.shape() == shape {
        return emit.var(node, at).map(Some);
    }
    let all = spread(&known, &shape);
    let Some(all) = all else { return Ok(None) };
    emit.floats(&shape, all).map(Some)
}

/// The numbers of a tensor that broadcasts to a shape.
fn spread(tensor: &Tensor, shape: &[usize]) -> Option<Vec<f32>> {
    let extra = tensor.rank().saturating_sub(shape.len());
    let own = tensor.reshape(tensor.shape().get(extra..)?).ok()?;
    let wide = own.broadcast_to(shape).ok()?.contiguous().ok()?;
    galatea_graph::converted(&wide, galatea_tensor::DataType::Fp32).ok()?.to_vec().ok()
}

fn layer(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<LayerNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    result_only(emit, node)?;
    let x = emit.var(node, 0)?;
    let places = AffineInputs { scale: 1, bias: 2 };
    let result = layer_of(emit, node, &x, operator.axis, operator.epsilon, places)?;
    // Nobody reads the others.
    Ok(vec![result; node.outputs.len()])
}

/// Places of a scale and a bias among a node's inputs.
#[derive(Clone, Copy)]
struct AffineInputs {
    /// The place of the scale.
    scale: usize,
    /// The place of the bias, which may be absent.
    bias: usize,
}

/// `layer_norm` from an axis on, with a scale and a bias.
fn layer_of(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    x: &MilVar,
    axis: i64,
    epsilon: f32,
    places: AffineInputs,
) -> Result<MilVar> {
    let dims = emit.dims(emit.input(node, 0)?)?;
    let first = emit.axis(axis, dims.len())?;
    let row = &dims[first..];
    let axes = (first..dims.len()).map(small).collect::<Result<Vec<_>>>()?;
    let gamma = row_parameter(emit, node, places.scale, row)?;
    let beta = match node.input(places.bias) {
        Some(_) => row_parameter(emit, node, places.bias, row)?,
        None => None,
    };
    let inside = gamma.is_some() && (beta.is_some() || node.input(places.bias).is_none());
    let epsilon = emit.epsilon(epsilon);
    let mut inputs = vec![("x", x.into()), ("axes", MilArg::Ints(axes)), ("epsilon", epsilon)];
    if inside {
        let each = [("gamma", gamma), ("beta", beta)];
        inputs.extend(each.into_iter().filter_map(|(name, var)| Some((name, MilArg::Var(var?)))));
        return emit.op("layer_norm", inputs);
    }
    let mut result = emit.op("layer_norm", inputs)?;
    for (at, operator) in [(places.scale, "mul"), (places.bias, "add")] {
        if let Some(parameter) = emit.optional(node, at)? {
            result = emit.pair(operator, &result, &parameter)?;
        }
    }
    Ok(result)
}

fn group(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<GroupNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    let dims = emit.dims(emit.input(node, 0)?)?;
    let groups = operator.num_groups;
    let x = emit.var(node, 0)?;
    let batch = dims.first().cloned().unwrap_or(Dim::Unknown);
    let rest: Option<Vec<usize>> = dims.iter().skip(1).map(Dim::known).collect();
    let elements =
        rest.map_or(Dim::Unknown, |all| Dim::Known(all.iter().product::<usize>() / groups));
    let inside = [batch, Dim::Known(groups), elements];
    let cut = emit.reshape_dims(&x, &dims, &inside)?;
    let mut normal = plain_layer(emit, &cut, vec![2], operator.epsilon)?;
    if operator.per_group {
        normal = by_channel(emit, node, &normal, 3)?;
    }
    let whole = emit.reshape_like(&normal, &x)?;
    match operator.per_group {
        true => Ok(vec![whole]),
        false => Ok(vec![by_channel(emit, node, &whole, dims.len())?]),
    }
}

/// `x / √(mean of x² + epsilon)` over the axes from `first` on. In FP16 squares would exceed what it holds: `x`
/// beside `-x` has the mean 0, so that its deviation, which `layer_norm` computes, is the root of the
/// mean of squares.
fn root_mean_square(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    first: usize,
    rank: usize,
    epsilon: f32,
) -> Result<MilVar> {
    let axes = (first..rank).map(small).collect::<Result<Vec<_>>>()?;
    if !emit.keeps_to_half() {
        let square = emit.op("square", vec![("x", x.into())])?;
        let inputs = vec![
            ("x", MilArg::Var(square)),
            ("axes", MilArg::Ints(axes)),
            ("keep_dims", MilArg::Bool(true)),
        ];
        let mean = emit.op("reduce_mean", inputs)?;
        let epsilon = emit.float(epsilon);
        let inverse = emit.op("rsqrt", vec![("x", MilArg::Var(mean)), ("epsilon", epsilon)])?;
        return emit.pair("mul", x, &inverse);
    }
    let minus = emit.float(-1.0);
    let negative = emit.pair("mul", x, minus)?;
    let inputs = vec![
        ("values", MilArg::Vars(vec![x.clone(), negative])),
        ("axis", MilArg::Int(-1)),
        ("interleave", MilArg::Bool(false)),
    ];
    let both = emit.op("concat", inputs)?;
    let normal = plain_layer(emit, &both, axes, epsilon)?;
    let inputs =
        vec![("x", MilArg::Var(normal)), ("num_splits", MilArg::Int(2)), ("axis", MilArg::Int(-1))];
    match emit.op_of("split", inputs, 2)?.into_iter().next() {
        Some(half) => Ok(half),
        None => refuse("a split without parts"),
    }
}

fn rms(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<RmsNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let first = emit.axis(operator.axis, rank)?;
    let x = emit.var(node, 0)?;
    let normal = root_mean_square(emit, &x, first, rank, operator.epsilon)?;
    let scale = emit.var(node, 1)?;
    Ok(vec![emit.pair("mul", &normal, &scale)?])
}

/// The sum of both inputs and a bias, normalised; the fourth output is the sum.
fn skip(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<SkipNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    result_only(emit, node)?;
    let rank = emit.rank(emit.input(node, 0)?)?;
    let x = emit.var(node, 0)?;
    let other = emit.var(node, 1)?;
    let mut sum = emit.pair("add", &x, &other)?;
    let bias = if operator.simplified { 3 } else { 4 };
    if let Some(bias) = emit.optional(node, bias)? {
        sum = emit.pair("add", &sum, &bias)?;
    }
    let result = match operator.simplified {
        false => {
            let places = AffineInputs { scale: 2, bias: 3 };
            layer_of(emit, node, &sum, -1, operator.epsilon, places)?
        }
        true => {
            let normal = root_mean_square(emit, &sum, rank - 1, rank, operator.epsilon)?;
            let gamma = emit.var(node, 2)?;
            emit.pair("mul", &normal, &gamma)?
        }
    };
    // Nobody reads the second and the third.
    Ok(vec![result, sum.clone(), sum.clone(), sum])
}

fn local_response(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Lrn>() else {
        return refuse("a normalisation of another kind");
    };
    let rank = emit.rank(emit.input(node, 0)?)?;
    if !(3..=4).contains(&rank) || operator.size.is_multiple_of(2) {
        return refuse(format!(
            "a window of {} channels of {rank} axes, programs have odd ones of 3 or 4 axes",
            operator.size
        ));
    }
    let x = emit.var(node, 0)?;
    let number = |emit: &ProgramEmitter<'_>, value: f32| emit.float(value);
    let inputs = vec![
        ("x", MilArg::Var(x)),
        ("size", MilArg::Int(small(operator.size)?)),
        ("alpha", number(emit, operator.alpha)),
        ("beta", number(emit, operator.beta)),
        ("k", number(emit, operator.bias)),
    ];
    Ok(vec![emit.op("local_response_norm", inputs)?])
}

/// A reduction that keeps its axes.
fn reduced(
    emit: &mut ProgramEmitter<'_>,
    operator: &str,
    x: &MilVar,
    axes: &[i32],
) -> Result<MilVar> {
    let inputs = vec![
        ("x", x.into()),
        ("axes", MilArg::Ints(axes.to_vec())),
        ("keep_dims", MilArg::Bool(true)),
    ];
    emit.op(operator, inputs)
}

/// A vector of zeros stays one: it is divided by 1.
fn lp(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<LpNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axis = small(emit.axis(operator.axis, rank)?)?;
    let x = emit.var(node, 0)?;
    let word = if operator.p == 1 { "reduce_l1_norm" } else { "reduce_l2_norm" };
    let norm = reduced(emit, word, &x, &[axis])?;
    let zero = emit.float(0.0);
    let one = emit.float(1.0);
    let nothing = emit.pair("equal", &norm, zero)?;
    let divisor = emit.select(&nothing, one, MilArg::Var(norm))?;
    Ok(vec![emit.pair("real_div", &x, &divisor)?])
}

/// ONNX adds 10⁻⁹ to the deviation.
fn mean_variance(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<MeanVarianceNormalization>() else {
        return refuse("a normalisation of another kind");
    };
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axes = operator.axes.iter().map(|&axis| small(emit.axis(axis, rank)?));
    let axes = axes.collect::<Result<Vec<_>>>()?;
    let x = emit.var(node, 0)?;
    let mean = reduced(emit, "reduce_mean", &x, &axes)?;
    let centred = emit.pair("sub", &x, &mean)?;
    let Some(least) = operator.epsilon else { return Ok(vec![centred]) };
    let square = emit.op("square", vec![("x", (&centred).into())])?;
    let variance = reduced(emit, "reduce_mean", &square, &axes)?;
    let deviation = emit.op("sqrt", vec![("x", MilArg::Var(variance))])?;
    #[allow(clippy::cast_possible_truncation, reason = "a distance from zero")]
    let least = emit.float(least as f32);
    let divisor = emit.pair("add", &deviation, least)?;
    Ok(vec![emit.pair("real_div", &centred, &divisor)?])
}
