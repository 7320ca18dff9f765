//! Images that are read at given points.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::vision::{AffineGrid, GridSample, SampleMode, SamplePadding};

use super::EmitRow;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("GridSample", grid_sample),
    EmitRow::onnx("AffineGrid", affine_grid).wide("FP16 has too few digits for places in an image"),
];

fn grid_sample(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<GridSample>() else { return refuse("another kind") };
    let rank = emit.rank(emit.input(node, 0)?)?;
    if rank != 4 {
        return refuse(format!("points in {rank} axes, Core ML has them in 4"));
    }
    let mode = match operator.mode {
        SampleMode::Linear => "bilinear",
        SampleMode::Nearest => "nearest",
        SampleMode::Cubic => return cubic_sample(emit, node, operator),
    };
    let aligned = operator.align_corners;
    let padding = padding(operator);
    let x = emit.var(node, 0)?;
    let grid = emit.var(node, 1)?;
    if !matches!(emit.element_of(&x)?, MilElement::Fp16 | MilElement::Fp32) {
        return refuse("points between elements that are no floats");
    }
    let grid = emit.cast(&grid, MilElement::Fp32)?;
    let nothing = emit.float(0.0);
    let inputs = vec![
        ("x", MilArg::Var(x)),
        ("coordinates", MilArg::Var(grid)),
        ("sampling_mode", MilArg::Text(mode)),
        ("padding_mode", MilArg::Text(padding)),
        ("padding_value", nothing),
        ("coordinates_mode", MilArg::Text("normalized_minus_one_to_one")),
        ("align_corners", MilArg::Bool(aligned)),
    ];
    Ok(vec![emit.op("resample", inputs)?])
}

/// Image beyond its edges. It is mirrored at what -1 and 1 are: the centres of the outermost elements, or their edges.
fn padding(operator: &GridSample) -> &'static str {
    match operator.padding {
        SamplePadding::Zeros => "constant",
        SamplePadding::Border => "border",
        SamplePadding::Reflection if operator.align_corners => "reflection",
        SamplePadding::Reflection => "symmetric",
    }
}

/// Four neighbours along an axis and their weights, by points in elements.
struct CubicTaps {
    /// `[N, rows, columns, 1]` each.
    places: Vec<MilVar>,
    /// `[N, 1, rows, columns]` each.
    weights: Vec<MilVar>,
}

/// Weight of an element between one and two away, as a polynomial of the distance with its highest power first.
const FAR: [f32; 4] = [-0.75, 3.75, -6.0, 3.0];
/// Weight of an element at most one away.
const NEAR: [f32; 4] = [1.25, -2.25, 0.0, 1.0];

/// Sixteen neighbours of each point, which Core ML reads one by one, times their weights.
///
/// Source of the weights: Keys 1981, "Cubic convolution interpolation for digital image processing".
fn cubic_sample(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    operator: &GridSample,
) -> Result<Vec<MilVar>> {
    let shape = emit.shape(emit.input(node, 0)?)?;
    let &[_, _, height, width] = shape.as_slice() else { return refuse("an image of other axes") };
    emit.widen();
    let x = emit.var(node, 0)?;
    if !matches!(emit.element_of(&x)?, MilElement::Fp16 | MilElement::Fp32) {
        return refuse("points between elements that are no floats");
    }
    let x = emit.cast(&x, MilElement::Fp32)?;
    let grid = emit.var(node, 1)?;
    let grid = emit.cast(&grid, MilElement::Fp32)?;
    let halves =
        vec![("x", MilArg::Var(grid)), ("num_splits", MilArg::Int(2)), ("axis", MilArg::Int(3))];
    let halves = emit.op_of("split", halves, 2)?;
    let [across, down] = halves.as_slice() else { return refuse("points of other than two parts") };
    let across = cubic_taps(emit, across, width, operator)?;
    let down = cubic_taps(emit, down, height, operator)?;
    let mut total: Option<MilVar> = None;
    for (row, row_weight) in down.places.iter().zip(&down.weights) {
        let mut sum: Option<MilVar> = None;
        for (column, weight) in across.places.iter().zip(&across.weights) {
            let points = emit.joined(vec![column.clone(), row.clone()], 3)?;
            let nothing = emit.float(0.0);
            let inputs = vec![
                ("x", (&x).into()),
                ("coordinates", MilArg::Var(points)),
                ("sampling_mode", MilArg::Text("nearest")),
                ("padding_mode", MilArg::Text(padding(operator))),
                ("padding_value", nothing),
                ("coordinates_mode", MilArg::Text("unnormalized")),
                ("align_corners", MilArg::Bool(operator.align_corners)),
            ];
            let found = emit.op("resample", inputs)?;
            let part = emit.pair("mul", &found, weight)?;
            sum = Some(plus(emit, sum, part)?);
        }
        if let Some(sum) = sum {
            let part = emit.pair("mul", &sum, row_weight)?;
            total = Some(plus(emit, total, part)?);
        }
    }
    Ok(total.into_iter().collect())
}

fn plus(emit: &mut ProgramEmitter<'_>, sum: Option<MilVar>, part: MilVar) -> Result<MilVar> {
    match sum {
        Some(sum) => emit.pair("add", &sum, &part),
        None => Ok(part),
    }
}

/// The neighbours of points from -1 to 1 along an axis of so many elements.
fn cubic_taps(
    emit: &mut ProgramEmitter<'_>,
    points: &MilVar,
    length: usize,
    operator: &GridSample,
) -> Result<CubicTaps> {
    #[allow(clippy::cast_precision_loss, reason = "an axis has fewer than 2^24 elements")]
    let length = length as f32;
    let (low, range) = match operator.align_corners {
        true => (0.0, length - 1.0),
        false => (-0.5, length),
    };
    let mut at = polynomial(emit, points, &[range / 2.0, range / 2.0 + low])?;
    if operator.padding == SamplePadding::Reflection {
        at = reflected(emit, &at, low, range)?;
    }
    let first = emit.op("floor", vec![("x", (&at).into())])?;
    let rest = emit.pair("sub", &at, &first)?;
    let mut taps = CubicTaps { places: Vec::new(), weights: Vec::new() };
    for (step, powers) in [(-1.0_f32, FAR), (0.0, NEAR), (1.0, NEAR), (2.0, FAR)] {
        taps.places.push(polynomial(emit, &first, &[1.0, step])?);
        // The distance is `rest - step`, of which steps behind the point have the other sign.
        let sign = if step > 0.0 { -1.0 } else { 1.0 };
        let distance = polynomial(emit, &rest, &[sign, -sign * step])?;
        let weight = polynomial(emit, &distance, &powers)?;
        taps.weights.push(emit.transpose(&weight, &[0, 3, 1, 2])?);
    }
    Ok(taps)
}

/// Points mirrored at both ends of a range until they are inside.
fn reflected(emit: &mut ProgramEmitter<'_>, at: &MilVar, low: f32, range: f32) -> Result<MilVar> {
    if range <= 0.0 {
        return polynomial(emit, at, &[0.0, low]);
    }
    let from_low = polynomial(emit, at, &[1.0, -low])?;
    let size = emit.op("abs", vec![("x", MilArg::Var(from_low))])?;
    let twice = emit.float(2.0 * range);
    let turned = emit.pair("mod", &size, twice)?;
    let beyond = polynomial(emit, &turned, &[1.0, -range])?;
    let beyond = emit.op("abs", vec![("x", MilArg::Var(beyond))])?;
    polynomial(emit, &beyond, &[-1.0, low + range])
}

/// A polynomial with its highest power first.
fn polynomial(emit: &mut ProgramEmitter<'_>, x: &MilVar, powers: &[f32]) -> Result<MilVar> {
    let (Some(&first), rest) = (powers.first(), powers.get(1..).unwrap_or_default()) else {
        return refuse("a polynomial without powers");
    };
    let mut found: Option<MilVar> = None;
    for &next in rest {
        let product = match &found {
            None if first == 1.0 => x.clone(),
            None => {
                let first = emit.float(first);
                emit.pair("mul", x, first)?
            }
            Some(found) => emit.pair("mul", found, x)?,
        };
        let added = emit.float(next);
        found = Some(if next == 0.0 { product } else { emit.pair("add", &product, added)? });
    }
    Ok(found.unwrap_or_else(|| x.clone()))
}

/// Each place of the image, with a 1 behind it, times the matrices.
fn affine_grid(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<AffineGrid>() else { return refuse("another kind") };
    let aligned = operator.align_corners;
    let shape = emit.output_shape(node)?;
    let [batch, spatial @ .., parts] = shape.as_slice() else { return refuse("no axes") };
    let count: usize = spatial.iter().product();
    #[allow(clippy::cast_precision_loss, reason = "images have far fewer than 2^24 rows")]
    let place = |at: usize, len: usize| match (aligned, len) {
        (true, 1) => 0.0,
        (true, _) => 2.0 * at as f64 / (len as f64 - 1.0) - 1.0,
        (false, _) => (2.0 * at as f64 + 1.0) / len as f64 - 1.0,
    };
    let mut places = Vec::with_capacity(count * (parts + 1));
    for index in 0..count {
        // The last axis first.
        for axis in (0..spatial.len()).rev() {
            let inner: usize = spatial.iter().skip(axis + 1).product();
            #[allow(clippy::cast_possible_truncation, reason = "places are about 1")]
            places.push(place(index / inner % spatial[axis], spatial[axis]) as f32);
        }
        places.push(1.0);
    }
    let places = emit.floats(&[1, count, parts + 1], places)?;
    let matrices = emit.var(node, 0)?;
    let inputs = vec![
        ("x", MilArg::Var(places)),
        ("y", MilArg::Var(matrices)),
        ("transpose_x", MilArg::Bool(false)),
        ("transpose_y", MilArg::Bool(true)),
    ];
    let grid = emit.op("matmul", inputs)?;
    let whole: Vec<usize> = [&[*batch], spatial, &[*parts]].concat();
    Ok(vec![emit.reshape(&grid, &whole)?])
}
