//! Regions of images: those brought to one size, and those that overlap better ones.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::vision::{NonMaxSuppression, RoiAlign};

use super::EmitRow;
use super::matrix::product;
use super::take::gather_rows;
use crate::emit::ProgramEmitter;
use crate::lengths::SliceTake;
use crate::unwritable::{Result, refuse, small, small_all};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("NonMaxSuppression", suppress)
        .wide("FP16 has too few digits for places in an image"),
    EmitRow::onnx("RoiAlign", roi_align).wide("FP16 has too few digits for places in an image"),
];

/// One position of the last axis, with the axis.
fn column(emit: &mut ProgramEmitter<'_>, x: &MilVar, rank: usize, at: usize) -> Result<MilVar> {
    emit.cut(x, SliceTake::whole(rank).range(rank - 1, at, at + 1)?)
}

/// `x · factor + shift`.
fn scaled(emit: &mut ProgramEmitter<'_>, x: &MilVar, factor: f32, shift: f32) -> Result<MilVar> {
    let mut found = x.clone();
    if factor != 1.0 {
        let factor = emit.float(factor);
        found = emit.pair("mul", &found, factor)?;
    }
    if shift != 0.0 {
        let shift = emit.float(shift);
        found = emit.pair("add", &found, shift)?;
    }
    Ok(found)
}

/// How much each element along an axis counts in each cell of each region, `[regions, cells, length]`: lines
/// between two elements at each sample, and the mean of the samples. Places beyond the image count nothing.
#[allow(clippy::cast_precision_loss, reason = "lengths of images are far below 2^24")]
fn shares(
    emit: &mut ProgramEmitter<'_>,
    operator: &RoiAlign,
    start: &MilVar,
    end: &MilVar,
    cells: usize,
    length: usize,
) -> Result<MilVar> {
    let scale = operator.spatial_scale;
    let shift = if operator.half_pixel { -0.5 } else { 0.0 };
    let start = scaled(emit, start, scale, shift)?;
    let end = scaled(emit, end, scale, shift)?;
    let mut extent = emit.pair("sub", &end, &start)?;
    if !operator.half_pixel {
        let one = emit.float(1.0);
        extent = emit.pair("maximum", &extent, one)?;
    }
    let count = cells * operator.sampling_ratio;
    let places = (0..count).map(|at| (at as f32 + 0.5) / count as f32).collect();
    let places = emit.floats(&[1, count], places)?;
    let places = emit.pair("mul", &extent, &places)?;
    let places = emit.pair("add", &places, &start)?;
    let least = emit.float(-1.0);
    let most = emit.float(length as f32);
    let behind = emit.pair("greater_equal", &places, least)?;
    let before = emit.pair("less_equal", &places, most)?;
    let inside = emit.pair("logical_and", &behind, &before)?;
    let inside = emit.cast(&inside, emit.float_element())?;
    let first = emit.float(0.0);
    let last = emit.float(length as f32 - 1.0);
    let near = emit.pair("maximum", &places, first)?;
    let near = emit.pair("minimum", &near, last)?;
    let near = emit.unsqueeze(&near, &[2])?;
    let inside = emit.unsqueeze(&inside, &[2])?;
    let elements = (0..length).map(|at| at as f32).collect();
    let elements = emit.floats(&[1, 1, length], elements)?;
    let away = emit.pair("sub", &near, &elements)?;
    let away = emit.op("abs", vec![("x", MilArg::Var(away))])?;
    let away = scaled(emit, &away, -1.0, 1.0)?;
    let share = emit.op("relu", vec![("x", MilArg::Var(away))])?;
    let share = emit.pair("mul", &share, &inside)?;
    let shape = [-1, small(cells)?, small(operator.sampling_ratio)?, small(length)?];
    let inputs = vec![("x", MilArg::Var(share)), ("shape", MilArg::Ints(shape.to_vec()))];
    let share = emit.op("reshape", inputs)?;
    let inputs = vec![
        ("x", MilArg::Var(share)),
        ("axes", MilArg::Ints(vec![2])),
        ("keep_dims", MilArg::Bool(false)),
    ];
    emit.op("reduce_mean", inputs)
}

/// The means are those of rows and of columns, one after the other: two products of matrices.
fn roi_align(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<RoiAlign>() else { return refuse("another kind") };
    if operator.max {
        return refuse("the largest of samples, of which each element counts apart");
    }
    if operator.sampling_ratio == 0 {
        return refuse("as many samples as a region has elements");
    }
    let id = emit.input(node, 0)?;
    let height = emit.known_length(id, 2)?;
    let width = emit.known_length(id, 3)?;
    let x = emit.var(node, 0)?;
    let regions = emit.var(node, 1)?;
    let images = emit.var(node, 2)?;
    let mut edges = Vec::with_capacity(4);
    for at in 0..4 {
        edges.push(column(emit, &regions, 2, at)?);
    }
    let [left, top, right, bottom] = edges.as_slice() else { return refuse("no edges") };
    let rows = shares(emit, operator, top, bottom, operator.output[0], height)?;
    let columns = shares(emit, operator, left, right, operator.output[1], width)?;
    let rows = emit.unsqueeze(&rows, &[1])?;
    let columns = emit.unsqueeze(&columns, &[1])?;
    let each = gather_rows(emit, &x, &images, 0)?;
    let lines = product(emit, &rows, &each, false, false)?;
    Ok(vec![product(emit, &lines, &columns, false, true)?])
}

/// Boxes of each class of each image apart, as Core ML takes them: `[images · classes, 4, boxes]` by their
/// centres and sizes.
fn boxes_of(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    operator: &NonMaxSuppression,
    images: usize,
    classes: usize,
    count: usize,
) -> Result<MilVar> {
    let boxes = emit.var(node, 0)?;
    let boxes = match operator.center_point_box {
        true => boxes,
        false => {
            let mut all = Vec::with_capacity(4);
            for at in [1, 0, 3, 2] {
                all.push(column(emit, &boxes, 3, at)?);
            }
            let [x1, y1, x2, y2] = all.as_slice() else { return refuse("no edges") };
            let mut centres = Vec::with_capacity(4);
            for (low, high) in [(x1, x2), (y1, y2)] {
                let sum = emit.pair("add", low, high)?;
                centres.push(scaled(emit, &sum, 0.5, 0.0)?);
            }
            for (low, high) in [(x1, x2), (y1, y2)] {
                let length = emit.pair("sub", high, low)?;
                centres.push(emit.op("abs", vec![("x", MilArg::Var(length))])?);
            }
            emit.concat(centres, 2)?
        }
    };
    let turned = emit.transpose(&boxes, &[0, 2, 1])?;
    let turned = emit.reshape(&turned, &[images, 1, 4 * count])?;
    let reps = MilArg::Ints(small_all(&[1, classes, 1])?);
    let repeated = emit.op("tile", vec![("x", MilArg::Var(turned)), ("reps", reps)])?;
    emit.reshape(&repeated, &[images * classes, 4, count])
}

/// Core ML chooses at least one box, and fills up to the number that it may choose: those whose scores are
/// enough are looked up.
fn suppress(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<NonMaxSuppression>() else {
        return refuse("another kind");
    };
    if emit.opset() < 7 {
        return refuse("boxes that scores choose, in the form that came with version 8");
    }
    let shape = emit.shape(emit.input(node, 1)?)?;
    let &[images, classes, count] = shape.as_slice() else { return refuse("no three axes") };
    let most = match node.input(2) {
        Some(_) => emit.integers(node, 2)?.first().copied().unwrap_or(0),
        None => 0,
    };
    let most = usize::try_from(most).unwrap_or(0).min(count);
    if most == 0 {
        return refuse("no boxes at all");
    }
    let iou = if node.input(3).is_some() { emit.number(node, 3)? } else { 0.0 };
    let boxes = boxes_of(emit, node, operator, images, classes, count)?;
    let scores = emit.var(node, 1)?;
    let each = images * classes;
    let scores = emit.reshape(&scores, &[each, 1, count])?;
    let overlap = emit.float(iou);
    let inputs = vec![
        ("boxes", MilArg::Var(boxes)),
        ("scores", MilArg::Var(scores.clone())),
        ("iou_threshold", overlap),
        ("max_boxes", MilArg::Int(small(most)?)),
        ("per_class_suppression", MilArg::Bool(false)),
    ];
    let found = emit.op_of("non_maximum_suppression", inputs, 3)?;
    let [_, best, places] = found.as_slice() else { return refuse("no places") };
    let mut kept = emit.pair("greater_equal", places, MilArg::Int(0))?;
    if node.input(4).is_some() {
        let least = emit.number(node, 4)?;
        let least = emit.float(least);
        let best = emit.reshape(best, &[each, most])?;
        let enough = emit.pair("greater", &best, least)?;
        kept = emit.pair("logical_and", &kept, &enough)?;
    }
    let whole = chosen(emit, places, images, classes, most)?;
    let kept = emit.cast(&kept, MilElement::Int32)?;
    let kept = emit.reshape(&kept, &[each * most])?;
    let rows = emit.op("non_zero", vec![("x", MilArg::Var(kept))])?;
    let rows = emit.squeeze(&rows, &[1])?;
    Ok(vec![gather_rows(emit, &whole, &rows, 0)?])
}

/// Image, class and place of all boxes that may be chosen, `[images · classes · most, 3]`.
fn chosen(
    emit: &mut ProgramEmitter<'_>,
    places: &MilVar,
    images: usize,
    classes: usize,
    most: usize,
) -> Result<MilVar> {
    let count = images * classes * most;
    let mut owners = Vec::with_capacity(2 * count);
    for at in 0..count {
        owners.extend([small(at / most / classes)?, small(at / most % classes)?]);
    }
    let owners = emit.table(&[count, 2], owners)?;
    let places = emit.reshape(places, &[count, 1])?;
    emit.concat(vec![owners, places], 1)
}
