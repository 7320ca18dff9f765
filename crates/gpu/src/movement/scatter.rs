//! Elements written to positions that are values of the run.
//!
//! The data is copied first. Updates that may meet at one element are the work of one thread, which makes
//! them in order.

use galatea_graph::ops::index::{ScatterElements, ScatterND, ScatterReduction};
use galatea_tensor::DataType;

use super::index;
use super::strided::{StridedPlaces, copy, start};
use crate::axis::position;
use crate::cell::ElementCell;
use crate::element::{DispatchParams, entry};
use crate::elementwise::broadcast::contiguous;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, param};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "scatter",
    domain: "",
    ops: &["Scatter", "ScatterElements", "ScatterND"],
    supports,
    build,
};

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let (_, reduction) = form(view)?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    ElementCell::supports(view, dtype)?;
    index::supports(view, 1)?;
    let words = matches!(dtype.size_bytes(), Some(4 | 8)) || dtype == DataType::Fp16;
    match (reduction, dtype) {
        _ if !words => Err(format!("shaders do not write single elements of {dtype}")),
        (ScatterReduction::None, _) | (_, DataType::Fp32 | DataType::Fp16) => Ok(()),
        (_, other) => Err(format!("shaders do not combine {other} here")),
    }
}

/// The axis of single elements, if it is they that are written.
fn form(view: &GpuNodeView<'_>) -> Result<(Option<i64>, ScatterReduction), String> {
    if let Some(op) = view.node.operator::<ScatterElements>() {
        return Ok((Some(op.axis), op.reduction));
    }
    Ok((None, view.operator::<ScatterND>()?.reduction))
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let (axis, reduction) = form(view)?;
    Ok(Box::new(ScatterKernel { axis, reduction }))
}

struct ScatterKernel {
    axis: Option<i64>,
    reduction: ScatterReduction,
}

/// Returns the cell of elements that are moved one by one, without regard to their meaning.
fn single(dtype: DataType) -> Result<ElementCell, String> {
    match dtype {
        DataType::Fp16 => Ok(ElementCell::Half),
        other => ElementCell::of(other, other),
    }
}

impl GpuKernel for ScatterKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let data = shapes.input(0)?;
        let picks = shapes.input(1)?;
        let updates: usize = shapes.input(2)?.iter().product();
        param(data.iter().product())?;
        let from = shapes.dtype(0)?;
        let to = shapes.output_dtype(0)?;
        copy(
            &StridedPlaces::all(data),
            (ShaderBinding::Input(0), from),
            (ShaderBinding::Output(0), to),
            step,
        )?;
        if updates == 0 || data.contains(&0) {
            return Ok(());
        }
        let mut words = DispatchParams::default();
        let (body, threads) = match self.axis {
            Some(axis) => lanes(position(axis, data.len())?, data, picks, &mut words)?,
            None => self.tuples(data, picks, &mut words)?,
        };
        let new = single(shapes.dtype(2)?)?;
        let old = single(to)?;
        let count = words.length(threads)?;
        let value = new.load("updates", "update");
        let held = old.load("y", "place");
        let value = match self.reduction {
            ScatterReduction::None => value,
            ScatterReduction::Add => format!("{held} + {value}"),
            ScatterReduction::Mul => format!("{held} * {value}"),
            ScatterReduction::Max => format!("max4(vec4<f32>({held}), vec4<f32>({value})).x"),
            ScatterReduction::Min => format!("min4(vec4<f32>({held}), vec4<f32>({value})).x"),
        };
        let positions = shapes.dtype(1)?;
        let text = format!(
            "{}{}{}{}{}{}{}}}\n",
            index::declare(0, "positions", positions),
            new.declare(1, "updates"),
            old.declare(2, "y"),
            words.declare(3),
            index::reader("positions", positions),
            entry(&count),
            body.replace("WRITE", &old.store("y", "place", &value)),
        );
        let bindings =
            vec![ShaderBinding::Input(1), ShaderBinding::Input(2), ShaderBinding::Output(0)];
        start("scatter", &text, bindings, words, threads, step)
    }
}

/// A thread for each lane of updates along the axis: those of other lanes are at other elements.
fn lanes(
    axis: usize,
    data: &[usize],
    picks: &[usize],
    words: &mut DispatchParams,
) -> Result<(String, usize), String> {
    let steps = contiguous(data);
    let own = contiguous(picks);
    let mut text = "var r = at;\nvar first = 0u;\nvar base = 0u;\n".to_owned();
    for other in (0..data.len()).rev().filter(|&other| other != axis) {
        let len = words.length(picks[other])?;
        let by = words.length(own[other])?;
        let to = words.length(steps[other])?;
        text.push_str(&format!(
            "first += (r % {len}) * {by};\nbase += (r % {len}) * {to};\nr = r / {len};\n"
        ));
    }
    let count = words.length(picks[axis])?;
    let by = words.length(own[axis])?;
    let len = words.length(data[axis])?;
    let to = words.length(steps[axis])?;
    text.push_str(&format!(
        "for (var j = 0u; j < {count}; j++) {{\nlet update = first + j * {by};\n\
         let place = base + positions_at(update, {len}) * {to};\nWRITE}}\n"
    ));
    let threads = picks.iter().enumerate().filter(|(other, _)| *other != axis);
    Ok((text, threads.map(|(_, len)| len).product()))
}

impl ScatterKernel {
    /// A thread for each element behind a tuple; where updates combine, one for all tuples.
    fn tuples(
        &self,
        data: &[usize],
        picks: &[usize],
        words: &mut DispatchParams,
    ) -> Result<(String, usize), String> {
        let (&tuple, rows) = picks.split_last().ok_or("the positions are a scalar")?;
        if tuple > data.len() {
            return Err(format!("tuples of {tuple} positions in shape {data:?}"));
        }
        let rows = rows.iter().product::<usize>();
        let inner = data[tuple..].iter().product::<usize>();
        let steps = contiguous(data);
        let row_count = words.length(rows)?;
        let wide = words.length(inner)?;
        let width = words.length(tuple)?;
        let mut write =
            format!("let update = row * {wide} + at % {wide};\nvar place = at % {wide};\n");
        for axis in 0..tuple {
            let len = words.length(data[axis])?;
            let by = words.length(steps[axis])?;
            write.push_str(&format!(
                "place += positions_at(row * {width} + {axis}u, {len}) * {by};\n"
            ));
        }
        Ok(match self.reduction {
            ScatterReduction::None => {
                (format!("let row = at / {wide};\n{write}WRITE"), rows * inner)
            }
            _ => (
                format!("for (var row = 0u; row < {row_count}; row++) {{\n{write}WRITE}}\n"),
                inner,
            ),
        })
    }
}
