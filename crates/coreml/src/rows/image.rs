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
        SampleMode::Cubic => return refuse("points between elements by cubic curves"),
    };
    let aligned = operator.align_corners;
    // Mirrored at what -1 and 1 are: the centres of the outermost elements, or their edges.
    let padding = match operator.padding {
        SamplePadding::Zeros => "constant",
        SamplePadding::Border => "border",
        SamplePadding::Reflection if aligned => "reflection",
        SamplePadding::Reflection => "symmetric",
    };
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
