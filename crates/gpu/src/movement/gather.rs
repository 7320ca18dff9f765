//! Elements at positions that are values of the run.

use galatea_graph::ops::index::{Gather, GatherElements, GatherND};
use galatea_tensor::DataType;

use super::index;
use super::strided::start;
use crate::axis::position;
use crate::cell::{CellPair, ElementCell};
use crate::element::{DispatchParams, entry};
use crate::elementwise::broadcast::contiguous;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, param};
use crate::parts;
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "gather",
    domain: "",
    ops: &["Gather", "GatherElements", "GatherND"],
    supports,
    build,
};

enum GatherForm {
    /// Whole slices behind an axis.
    Slices(i64),
    /// Single elements.
    Elements(i64),
    /// Slices behind tuples of positions; so many leading axes are shared.
    Tuples(usize),
}

fn form(view: &GpuNodeView<'_>) -> Result<GatherForm, String> {
    if let Some(op) = view.node.operator::<Gather>() {
        return Ok(GatherForm::Slices(op.axis));
    }
    if let Some(op) = view.node.operator::<GatherElements>() {
        return Ok(GatherForm::Elements(op.axis));
    }
    Ok(GatherForm::Tuples(view.operator::<GatherND>()?.batch_dims))
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let data = view.input(0).ok_or("the input is missing")?;
    ElementCell::supports(view, data.dtype)?;
    index::supports(view, 1)?;
    match form(view)? {
        GatherForm::Slices(axis) | GatherForm::Elements(axis) => {
            position(axis, view.rank(0)?).map(|_| ())
        }
        // The length of the tuples says which axes they are for: lengths of the run do.
        GatherForm::Tuples(_) => Ok(()),
    }
}

/// Checks that rows of a constant table are gathered part by part.
///
/// # Errors
/// Fails when they are not.
pub(crate) fn supports_parts(view: &GpuNodeView<'_>) -> Result<(), String> {
    let GatherForm::Slices(axis) = form(view)? else {
        return Err("it is not picked by rows".into());
    };
    let shape = view.constant(0).ok_or("it is no constant")?.shape();
    let width: usize = shape.iter().skip(1).product();
    if position(axis, shape.len())? != 0 || !width.is_multiple_of(4) {
        return Err("only rows of whole vectors are picked from parts".into());
    }
    let (count, bytes) = parts::rows(view, 0)?;
    parts::cut(count, bytes, view.device.capabilities().binding_bytes).map(|_| ())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    Ok(Box::new(GatherKernel(form(view)?, view.device.capabilities().binding_bytes)))
}

/// A form, and the most bytes that a kernel sees of a value.
struct GatherKernel(GatherForm, u64);

/// Data that all forms share.
struct GatherParts {
    cells: CellPair,
    positions: DataType,
    elements: usize,
    words: DispatchParams,
}

impl GatherParts {
    /// Adds the dispatch of a kernel whose function `source(number)` finds the place of an element;
    /// `quads` says that those of a quad follow each other there.
    fn dispatch(
        mut self,
        source: &str,
        quads: bool,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let CellPair { from, to } = self.cells;
        let units = self.elements.div_ceil(4);
        let count = self.words.length(self.elements)?;
        let unit_count = self.words.length(units)?;
        let mut text = from.declare(0, "x");
        text.push_str(&index::declare(1, "positions", self.positions));
        text.push_str(&to.declare(2, "y"));
        text.push_str(&self.words.declare(3));
        text.push_str(&index::reader("positions", self.positions));
        text.push_str(&format!(
            "fn source(number: u32) -> u32 {{\n{source}}}\n{}",
            entry(&unit_count)
        ));
        if quads {
            text.push_str("let place = source(at * 4u) / 4u;\n");
            text.push_str(&self.cells.copy_quad("place", "at"));
        } else {
            for lane in 0..4 {
                text.push_str(&format!(
                    "let p{lane} = source(min(at * 4u + {lane}u, {count} - 1u));\nlet v{lane} = {};\n",
                    from.load("x", &format!("p{lane}"))
                ));
            }
            text.push_str(&to.store_quad("y", "at", &count));
        }
        text.push_str("}\n");
        let bindings =
            vec![ShaderBinding::Input(0), ShaderBinding::Input(1), ShaderBinding::Output(0)];
        start("gather", &text, bindings, self.words, units, step)
    }
}

impl GpuKernel for GatherKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let data = shapes.input(0)?;
        let picks = shapes.input(1)?;
        let result = shapes.output(0)?;
        let elements: usize = result.iter().product();
        param(elements)?;
        let element = shapes.dtype(0)?.size_bytes().unwrap_or(0);
        let bytes = (data.iter().product::<usize>() * element) as u64;
        let known = shapes.constants.first().is_some_and(Option::is_some);
        let beyond = known && bytes.next_multiple_of(16) > self.1;
        if !beyond {
            param(data.iter().product())?;
        }
        if elements == 0 {
            return Ok(());
        }
        if data.contains(&0) {
            return Err(format!("there is nothing to pick in shape {data:?}"));
        }
        let cells = CellPair::of(shapes.dtype(0)?, shapes.output_dtype(0)?)?;
        let parts = GatherParts {
            cells,
            positions: shapes.dtype(1)?,
            elements,
            words: DispatchParams::default(),
        };
        if beyond {
            let row_bytes = data[1..].iter().product::<usize>() * element;
            let parts = parts::cut(data[0], row_bytes, self.1)?;
            return picked_from(&parts, shapes, elements, step);
        }
        match self.0 {
            GatherForm::Slices(axis) => {
                slices(parts, position(axis, data.len())?, data, picks, step)
            }
            GatherForm::Elements(axis) => {
                single(parts, position(axis, data.len())?, data, picks, step)
            }
            GatherForm::Tuples(shared) => tuples(parts, shared, data, picks, step),
        }
    }
}

fn slices(
    mut parts: GatherParts,
    axis: usize,
    data: &[usize],
    picks: &[usize],
    step: &mut DispatchStep,
) -> Result<(), String> {
    let inner: usize = data[axis + 1..].iter().product();
    let words = &mut parts.words;
    let wide = words.length(inner)?;
    let len = words.length(data[axis])?;
    let picks = words.length(picks.iter().product())?;
    let source = format!(
        "let row = number / {wide};\nlet p = positions_at(row % {picks}, {len});\n\
         return ((row / {picks}) * {len} + p) * {wide} + number % {wide};\n"
    );
    parts.dispatch(&source, inner.is_multiple_of(4), step)
}

/// Whole rows of a table that is seen part by part; each dispatch writes the rows that its part has.
fn picked_from(
    parts: &[(usize, usize)],
    shapes: &NodeShapes,
    elements: usize,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let data = shapes.input(0)?;
    let positions = shapes.dtype(1)?;
    let cells = CellPair::of(shapes.dtype(0)?, shapes.output_dtype(0)?)?;
    let width: usize = data[1..].iter().product();
    let row_bytes = (width * shapes.dtype(0)?.size_bytes().unwrap_or(0)) as u64;
    for &(first, rows) in parts {
        let mut words = DispatchParams::default();
        let units = elements / 4;
        let unit_count = words.length(units)?;
        let wide = words.length(width / 4)?;
        let len = words.length(data[0])?;
        let from = words.length(first)?;
        let count = words.length(rows)?;
        let mut text = cells.from.declare(0, "x");
        text.push_str(&index::declare(1, "positions", positions));
        text.push_str(&cells.to.declare(2, "y"));
        text.push_str(&words.declare(3));
        text.push_str(&index::reader("positions", positions));
        text.push_str(&entry(&unit_count));
        text.push_str(&format!(
            "let row = positions_at(at / {wide}, {len});\n\
             if row < {from} || row - {from} >= {count} {{ return; }}\n\
             let place = (row - {from}) * {wide} + at % {wide};\n"
        ));
        text.push_str(&cells.copy_quad("place", "at"));
        text.push_str("}\n");
        let table = ShaderBinding::InputPart(0, first as u64 * row_bytes, rows as u64 * row_bytes);
        let bindings = vec![table, ShaderBinding::Input(1), ShaderBinding::Output(0)];
        start("gather-parts", &text, bindings, words, units, step)?;
    }
    Ok(())
}

fn single(
    mut parts: GatherParts,
    axis: usize,
    data: &[usize],
    picks: &[usize],
    step: &mut DispatchStep,
) -> Result<(), String> {
    let steps = contiguous(data);
    let words = &mut parts.words;
    let len = words.length(data[axis])?;
    let mut source = format!("var r = number;\nvar at = positions_at(number, {len}) * ");
    source.push_str(&format!("{};\n", words.length(steps[axis])?));
    for other in (0..data.len()).rev() {
        let own = words.length(picks[other])?;
        if other != axis {
            let by = words.length(steps[other])?;
            source.push_str(&format!("at += (r % {own}) * {by};\n"));
        }
        source.push_str(&format!("r = r / {own};\n"));
    }
    source.push_str("return at;\n");
    parts.dispatch(&source, false, step)
}

fn tuples(
    mut parts: GatherParts,
    shared: usize,
    data: &[usize],
    picks: &[usize],
    step: &mut DispatchStep,
) -> Result<(), String> {
    let (&tuple, rows) = picks.split_last().ok_or("the positions are a scalar")?;
    let depth = shared + tuple;
    if depth > data.len() || shared > rows.len() {
        return Err(format!("tuples of {tuple} positions in shape {data:?}"));
    }
    let inner: usize = data[depth..].iter().product();
    let steps = contiguous(data);
    let words = &mut parts.words;
    let wide = words.length(inner)?;
    let each = words.length(rows[shared..].iter().product())?;
    let batch = words.length(data[shared..].iter().product())?;
    let width = words.length(tuple)?;
    let mut source = format!(
        "let row = number / {wide};\nvar at = (row / {each}) * {batch} + number % {wide};\n"
    );
    for place in 0..tuple {
        let len = words.length(data[shared + place])?;
        let by = words.length(steps[shared + place])?;
        source.push_str(&format!("at += positions_at(row * {width} + {place}u, {len}) * {by};\n"));
    }
    source.push_str("return at;\n");
    parts.dispatch(&source, inner.is_multiple_of(4), step)
}
