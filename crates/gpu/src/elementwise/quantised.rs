//! Elements between floats and integers of 8 bits, with scales and zero points.

use galatea_graph::Dim;
use galatea_graph::ops::activation::Activation;
use galatea_graph::ops::contrib::QLinear;
use galatea_graph::ops::logic::Where;
use galatea_graph::ops::math::{Binary, BinaryKind};
use galatea_graph::ops::quantize::{DequantizeLinear, QuantizeLinear, ScaleGrouping};
use galatea_tensor::DataType;

use super::element_program::{ElementProgram, ProgramMatch, kind};
use crate::axis::position;
use crate::element::ShaderKind;
use crate::element::functions::{activation, converted};
use crate::kernel::GpuNodeView;

/// The program of an operator with scales, if the node is one.
pub(super) fn program(view: &GpuNodeView<'_>) -> ProgramMatch {
    if let Ok(op) = view.operator::<QuantizeLinear>() {
        return Some(quantise(view, &op.grouping));
    }
    if let Ok(op) = view.operator::<DequantizeLinear>() {
        return Some(dequantise(view, &op.grouping));
    }
    let op = view.operator::<QLinear>().ok()?;
    Some(between(view, op))
}

/// Inputs that a program reads, which it names by their order.
#[derive(Default)]
struct ProgramInputs(Vec<usize>);

impl ProgramInputs {
    fn name(&mut self, index: usize) -> String {
        self.0.push(index);
        format!("a{}", self.0.len() - 1)
    }

    /// An integer as one with a sign.
    fn integer(&mut self, view: &GpuNodeView<'_>, index: usize) -> Result<String, String> {
        match kind(view, index)? {
            from @ (ShaderKind::Signed | ShaderKind::Unsigned) => {
                Ok(converted(from, ShaderKind::Signed, &self.name(index)))
            }
            other => Err(format!("input {index} is of {other:?}, no integer of a shader")),
        }
    }

    fn scale(&mut self, view: &GpuNodeView<'_>, index: usize) -> Result<String, String> {
        match kind(view, index)? {
            ShaderKind::Float => Ok(self.name(index)),
            other => Err(format!("a scale of {other:?}")),
        }
    }

    /// The float that an integer stands for.
    fn float(
        &mut self,
        view: &GpuNodeView<'_>,
        value: usize,
        scale: usize,
        zero: usize,
    ) -> Result<String, String> {
        let mut text = self.integer(view, value)?;
        if view.has(zero) {
            text = format!("{text} - {}", self.integer(view, zero)?);
        }
        Ok(format!("vec4<f32>({text}) * {}", self.scale(view, scale)?))
    }

    /// The program whose result stands for a float.
    fn store(
        mut self,
        view: &GpuNodeView<'_>,
        value: &str,
        scale: usize,
        zero: usize,
    ) -> Result<ElementProgram, String> {
        let (low, high) = match view.output(0).map(|fact| fact.dtype) {
            Some(DataType::Int8) => ("-128.0", "127.0"),
            Some(DataType::Uint8) => ("0.0", "255.0"),
            other => return Err(format!("shaders do not quantise to {other:?}")),
        };
        let mut rounded = format!("round(({value}) / {})", self.scale(view, scale)?);
        if view.has(zero) {
            rounded = format!("{rounded} + vec4<f32>({})", self.integer(view, zero)?);
        }
        let lines = vec![
            format!("let rounded = {rounded};"),
            format!("let limited = clamp(rounded, vec4<f32>({low}), vec4<f32>({high}));"),
            "let whole = to_signed4(kept_nan4(limited, rounded));".to_owned(),
        ];
        let result = match view.output(0).map(|fact| fact.dtype) {
            Some(DataType::Uint8) => "bitcast<vec4<u32>>(whole)",
            _ => "whole",
        };
        Ok(ElementProgram { lines, ..ElementProgram::of(self.0, result.to_owned()) })
    }
}

/// The axis whose positions share scales by blocks; `None` where they do not.
fn blocks(
    view: &GpuNodeView<'_>,
    grouping: &ScaleGrouping,
) -> Result<Option<(usize, usize)>, String> {
    let size = grouping.block_size;
    if size == 0 {
        return Ok(None);
    }
    let dims = view.input(0).and_then(|fact| fact.shape.as_deref());
    let dims = dims.ok_or("the rank of input 0 is not known")?;
    let axis = position(grouping.axis, dims.len())?;
    let scales = view.input(1).and_then(|fact| fact.shape.as_deref());
    let along = |dims: &[Dim]| dims.get(axis).and_then(Dim::known);
    match (along(dims), scales.and_then(along)) {
        // A last block of fewer positions would need a kernel that counts.
        (Some(len), Some(count)) if count.checked_mul(size) == Some(len) => Ok(Some((axis, size))),
        _ => Err(format!("blocks of {size} that do not fill axis {axis} for certain")),
    }
}

/// The axis that scales go along; `None` where there is one scale for all.
fn axis(view: &GpuNodeView<'_>, grouping: &ScaleGrouping) -> Result<Option<i64>, String> {
    if grouping.block_size > 0 {
        return Ok(None);
    }
    let shape = view.input(1).and_then(|fact| fact.known_shape());
    match (view.rank(1)?, shape.as_deref()) {
        (0, _) | (1, Some([1])) => Ok(None),
        (1, _) => position(grouping.axis, view.rank(0)?).map(|_| Some(grouping.axis)),
        (rank, _) => Err(format!("scales of {rank} axes")),
    }
}

fn quantise(view: &GpuNodeView<'_>, grouping: &ScaleGrouping) -> Result<ElementProgram, String> {
    let axis = axis(view, grouping)?;
    let blocks = blocks(view, grouping)?;
    let mut read = ProgramInputs::default();
    let value = match kind(view, 0)? {
        ShaderKind::Float => read.name(0),
        _ => format!("vec4<f32>({})", read.integer(view, 0)?),
    };
    Ok(ElementProgram { axis, blocks, ..read.store(view, &value, 1, 2)? })
}

fn dequantise(view: &GpuNodeView<'_>, grouping: &ScaleGrouping) -> Result<ElementProgram, String> {
    let axis = axis(view, grouping)?;
    let blocks = blocks(view, grouping)?;
    let output = view.output(0).ok_or("the output is not wanted")?.dtype;
    if !view.is_float(output) {
        return Err(format!("shaders do not make {output} of integers"));
    }
    let mut read = ProgramInputs::default();
    let result = read.float(view, 0, 1, 2)?;
    Ok(ElementProgram { axis, blocks, ..ElementProgram::of(read.0, result) })
}

/// An operator on floats between quantised values.
fn between(view: &GpuNodeView<'_>, op: &QLinear) -> Result<ElementProgram, String> {
    let mut read = ProgramInputs::default();
    if let Some(Activation { kind }) = op.inner() {
        let x = read.float(view, 0, 1, 2)?;
        let mut program = read.store(view, &activation(*kind, "x"), 3, 4)?;
        program.lines.insert(0, format!("let x = {x};"));
        return Ok(program);
    }
    if let Some(Binary { kind }) = op.inner() {
        let a = read.float(view, 0, 1, 2)?;
        let b = read.float(view, 3, 4, 5)?;
        let sign = match kind {
            BinaryKind::Add => "+",
            BinaryKind::Mul => "*",
            other => return Err(format!("shaders have no quantised {other:?}")),
        };
        return read.store(view, &format!("({a}) {sign} ({b})"), 6, 7);
    }
    if op.inner::<Where>().is_some() {
        let condition = read.name(0);
        let a = read.float(view, 1, 2, 3)?;
        let b = read.float(view, 4, 5, 6)?;
        return read.store(view, &format!("select({b}, {a}, {condition})"), 7, 8);
    }
    Err("no kernel for this operator between quantised values".into())
}
