//! Pooling.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::convolution::WindowPadding;
use galatea_graph::ops::pooling::{
    AveragePool, GlobalAveragePool, GlobalLpPool, LpPool, MaxPool, PoolWindow,
};
use galatea_tensor::DataType;

use super::EmitRow;
use super::convolution::{amounts, channels_first, channels_last, padded, padding, space, steps};
use super::dilated_pools::{DilatedWindow, has_gaps};
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse, small, small_all};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("MaxPool", max_pool),
    EmitRow::onnx("MaxPoolNhwc", max_pool).of("ai.galatea"),
    EmitRow::onnx("NhwcMaxPool", max_pool).of("com.microsoft"),
    EmitRow::onnx("AveragePool", average_pool),
    EmitRow::onnx("AveragePoolNhwc", average_pool).of("ai.galatea"),
    EmitRow::onnx("LpPool", lp_pool).wide("sums of squares soon exceed what FP16 holds"),
    EmitRow::onnx("GlobalAveragePool", global_average),
    EmitRow::onnx("GlobalAveragePoolNhwc", global_average).of("ai.galatea"),
    EmitRow::onnx("GlobalMaxPool", |emit, node| global(emit, node, "reduce_max", false)),
    EmitRow::onnx("GlobalLpPool", global_lp).wide("sums of squares soon exceed what FP16 holds"),
];

/// Parameters of an operation.
type OperationParameters = Vec<(&'static str, MilArg)>;

/// The window as parameters. Where a last window leaves the image, the pads behind it grow by what it
/// needs, as Core ML would round results up with equal pads on both sides only. The lengths of axes
/// that grow must be known; gives by how much each grows too.
fn parameters(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    window: &PoolWindow,
) -> Result<(OperationParameters, Vec<usize>)> {
    let id = emit.input(node, 0)?;
    let rank = emit.rank(id)?;
    let axes = space(rank)?;
    let mut all = vec![
        ("kernel_sizes", MilArg::Ints(small_all(&window.kernel_shape)?)),
        ("strides", steps(&window.strides, axes)?),
    ];
    let none = vec![0; axes];
    if !window.ceil_mode
        || matches!(window.pads, WindowPadding::SameUpper | WindowPadding::SameLower)
    {
        all.extend(padding(&window.pads, axes)?);
        all.push(("ceil_mode", MilArg::Bool(false)));
        return Ok((all, none));
    }
    let first = if window.channels_last { 1 } else { 2 };
    let lengths: Vec<usize> =
        (first..first + axes).map(|axis| emit.known_length(id, axis)).collect::<Result<_>>()?;
    let geometry = window.geometry(&lengths).or_else(|error| refuse(error.to_string()))?;
    let mut more = none;
    let mut behind = geometry.pads_end.clone();
    for (axis, more) in more.iter_mut().enumerate() {
        let stride = window.strides.get(axis).copied().unwrap_or(1);
        let needed = (geometry.output[axis] - 1) * stride + window.kernel_shape[axis];
        let there = lengths[axis] + geometry.pads_begin[axis] + geometry.pads_end[axis];
        *more = needed.saturating_sub(there);
        behind[axis] += *more;
    }
    all.extend([
        ("pad_type", MilArg::Text("custom")),
        ("pad", amounts(&geometry.pads_begin, &behind)?),
        ("ceil_mode", MilArg::Bool(false)),
    ]);
    Ok((all, more))
}

/// A window with gaps; none where it has none.
fn gapped(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    window: &PoolWindow,
) -> Result<Option<DilatedWindow>> {
    if !has_gaps(window) {
        return Ok(None);
    }
    let id = emit.input(node, 0)?;
    let axes = space(emit.rank(id)?)?;
    let first = if window.channels_last { 1 } else { 2 };
    let lengths = (first..first + axes).map(|axis| emit.known_length(id, axis));
    DilatedWindow::new(window, lengths.collect::<Result<_>>()?).map(Some)
}

/// Returns whether FP32 holds all numbers of a type of integers.
fn is_narrow(dtype: DataType) -> bool {
    use DataType::{Int8, Int16, Uint8, Uint16};
    matches!(dtype, Int8 | Int16 | Uint8 | Uint16)
}

/// Runs `body` on the image with its channels first. Integers are floats meanwhile.
fn over(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    last: bool,
    body: impl FnOnce(&mut ProgramEmitter<'_>, &MilVar) -> Result<MilVar>,
) -> Result<Vec<MilVar>> {
    let id = emit.input(node, 0)?;
    let rank = emit.rank(id)?;
    let dtype = emit.dtype(id)?;
    if !dtype.is_float() && !is_narrow(dtype) {
        return refuse(format!("a pool of {dtype}, programs have those of floats"));
    }
    let mut x = emit.var(node, 0)?;
    let held = emit.element_of(&x)?;
    if !dtype.is_float() {
        emit.widen();
        x = emit.cast(&x, MilElement::Fp32)?;
    }
    if last {
        x = emit.transpose(&x, &channels_first(rank))?;
    }
    let mut result = body(emit, &x)?;
    if last {
        result = emit.transpose(&result, &channels_last(rank))?;
    }
    Ok(vec![if dtype.is_float() { result } else { emit.cast(&result, held)? }])
}

fn max_pool(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<MaxPool>() else {
        return refuse("a pool of another kind");
    };
    if node.output(1).is_some() {
        return refuse("a pool that says where its results are from");
    }
    let last = operator.window.channels_last;
    if let Some(gapped) = gapped(emit, node, &operator.window)? {
        return over(emit, node, last, |emit, x| {
            gapped.combined(emit, x, "maximum", f32::NEG_INFINITY)
        });
    }
    let (mut inputs, _) = parameters(emit, node, &operator.window)?;
    over(emit, node, last, |emit, x| {
        inputs.push(("x", x.into()));
        emit.op("max_pool", inputs)
    })
}

fn average_pool(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<AveragePool>() else {
        return refuse("a pool of another kind");
    };
    let window = &operator.window;
    if let Some(gapped) = gapped(emit, node, window)? {
        // Sums of many elements lose digits in FP16.
        emit.widen();
        return over(emit, node, window.channels_last, |emit, x| {
            let sum = gapped.combined(emit, x, "add", 0.0)?;
            let counts = gapped.counts(emit, operator.count_include_pad)?;
            emit.pair("real_div", &sum, &counts)
        });
    }
    let (mut inputs, more) = parameters(emit, node, window)?;
    let mut around = None;
    if operator.count_include_pad && more.iter().any(|&more| more != 0) {
        // What is beyond the pads does not count, so that the pads are made part of the image.
        let pads = match &window.pads {
            WindowPadding::Explicit(pads) if !pads.is_empty() => pads.clone(),
            _ => vec![0; 2 * more.len()],
        };
        inputs.retain(|(name, _)| *name != "pad");
        inputs.push(("pad", amounts(&vec![0; more.len()], &more)?));
        around = Some(pads);
    }
    let without = !operator.count_include_pad || around.is_some();
    inputs.push(("exclude_padding_from_average", MilArg::Bool(without)));
    over(emit, node, window.channels_last, |emit, x| {
        let x = match &around {
            Some(pads) => {
                let (front, behind) = pads.split_at(pads.len() / 2);
                padded(emit, x, front, behind)?
            }
            None => x.clone(),
        };
        inputs.push(("x", MilArg::Var(x)));
        emit.op("avg_pool", inputs)
    })
}

/// Sums are means of as many elements as a window has.
#[allow(clippy::cast_precision_loss, reason = "windows are small")]
fn lp_pool(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<LpPool>() else {
        return refuse("a pool of another kind");
    };
    let window = &operator.window;
    let order = operator.p;
    let gapped = gapped(emit, node, window)?;
    let mut inputs = match gapped {
        Some(_) => Vec::new(),
        None => parameters(emit, node, window)?.0,
    };
    inputs.push(("exclude_padding_from_average", MilArg::Bool(false)));
    let count = window.kernel_shape.iter().product::<usize>() as f32;
    over(emit, node, window.channels_last, |emit, x| {
        let x = powers(emit, x, order)?;
        let sum = match gapped {
            Some(gapped) => gapped.combined(emit, &x, "add", 0.0)?,
            None => {
                inputs.push(("x", MilArg::Var(x)));
                let mean = emit.op("avg_pool", inputs)?;
                let count = emit.float(count);
                emit.pair("mul", &mean, count)?
            }
        };
        root(emit, sum, order)
    })
}

/// Magnitudes to the power of an order.
fn powers(emit: &mut ProgramEmitter<'_>, x: &MilVar, order: f64) -> Result<MilVar> {
    if order == 2.0 {
        return emit.op("square", vec![("x", x.into())]);
    }
    let sizes = emit.op("abs", vec![("x", x.into())])?;
    if order == 1.0 {
        return Ok(sizes);
    }
    #[allow(clippy::cast_possible_truncation, reason = "programs have orders in FP32")]
    let order = emit.float(order as f32);
    emit.pair("pow", &sizes, order)
}

/// The root of an order.
#[allow(clippy::cast_possible_truncation, reason = "programs have orders in FP32")]
fn root(emit: &mut ProgramEmitter<'_>, sum: MilVar, order: f64) -> Result<MilVar> {
    if order == 1.0 {
        return Ok(sum);
    }
    if order == 2.0 {
        return emit.op("sqrt", vec![("x", MilArg::Var(sum))]);
    }
    let part = emit.float((1.0 / order) as f32);
    emit.pair("pow", &sum, part)
}

fn global_average(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let last = node.operator::<GlobalAveragePool>().is_some_and(|one| one.channels_last);
    global(emit, node, "reduce_mean", last)
}

fn global_lp(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    match node.operator::<GlobalLpPool>().map(|operator| operator.p) {
        Some(1.0) => global(emit, node, "reduce_l1_norm", false),
        Some(2.0) => global(emit, node, "reduce_l2_norm", false),
        Some(order) if order > 0.0 => {
            let x = emit.var(node, 0)?;
            let powers = powers(emit, &x, order)?;
            let sum = reduced(emit, node, powers, "reduce_sum", false)?;
            Ok(vec![root(emit, sum, order)?])
        }
        other => refuse(format!("a pool with the norm of order {other:?}")),
    }
}

/// A reduction of all axes of space.
fn global(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    operator: &str,
    last: bool,
) -> Result<Vec<MilVar>> {
    let x = emit.var(node, 0)?;
    Ok(vec![reduced(emit, node, x, operator, last)?])
}

/// The same of another value in the node's shape.
fn reduced(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    x: MilVar,
    operator: &str,
    last: bool,
) -> Result<MilVar> {
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axes = if last { 1..rank - 1 } else { 2..rank };
    let axes = axes.map(small).collect::<Result<Vec<_>>>()?;
    let inputs = vec![
        ("x", MilArg::Var(x)),
        ("axes", MilArg::Ints(axes)),
        ("keep_dims", MilArg::Bool(true)),
    ];
    emit.op(operator, inputs)
}
