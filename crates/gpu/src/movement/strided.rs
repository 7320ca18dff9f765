//! Copies of elements that lie at steps: transposes, slices, repeats and the like.

use galatea_tensor::DataType;

use crate::cell::CellPair;
use crate::element::{DispatchParams, THREADS, entry, shader};
use crate::elementwise::broadcast::{contiguous, merge};
use crate::kernel::{DispatchStep, ShaderBinding, fold, param};

/// The elements of a result in order, as places of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StridedPlaces {
    /// Lengths of the result's axes.
    pub(crate) lengths: Vec<usize>,
    /// Distances between neighbours along each axis in the source.
    pub(crate) steps: Vec<isize>,
    /// Position of the first element.
    pub(crate) offset: usize,
}

/// Side of the squares of a transpose: a square of the source's rows becomes one of the result's.
const SIDE: usize = 32;

fn signed(step: usize) -> isize {
    step.cast_signed()
}

impl StridedPlaces {
    /// All elements of a shape in order.
    pub(crate) fn all(shape: &[usize]) -> Self {
        let steps = contiguous(shape).into_iter().map(signed).collect();
        Self { lengths: shape.to_vec(), steps, offset: 0 }
    }

    /// The axes in another order.
    pub(crate) fn permuted(&self, order: &[usize]) -> Self {
        let lengths = order.iter().map(|&axis| self.lengths[axis]).collect();
        let steps = order.iter().map(|&axis| self.steps[axis]).collect();
        Self { lengths, steps, offset: self.offset }
    }

    /// Every axis so often.
    pub(crate) fn repeated(&self, times: &[usize]) -> Self {
        let mut lengths = Vec::new();
        let mut steps = Vec::new();
        for ((&len, &step), &times) in self.lengths.iter().zip(&self.steps).zip(times) {
            lengths.extend([times, len]);
            steps.extend([0, step]);
        }
        Self { lengths, steps, offset: self.offset }
    }

    fn merged(&self) -> Self {
        let steps: Vec<usize> = self.steps.iter().map(|step| step.cast_unsigned()).collect();
        let (lengths, mut steps) = merge(&self.lengths, &[steps]);
        let steps = steps.pop().unwrap_or_default().into_iter().map(signed).collect();
        Self { lengths, steps, offset: self.offset }
    }

    fn elements(&self) -> usize {
        self.lengths.iter().product()
    }

    /// Returns whether quads of the result are quads of the source.
    fn in_quads(&self) -> bool {
        let last = self.steps.len() - 1;
        let outer = &self.steps[..self.steps.len() - 1];
        self.steps[last] == 1
            && self.lengths[last].is_multiple_of(4)
            && self.offset.is_multiple_of(4)
            && outer.iter().all(|step| step % 4 == 0)
    }

    /// The axis whose neighbours are adjacent in the source, where it is worth to turn squares.
    fn turned(&self) -> Option<usize> {
        let last = self.steps.len() - 1;
        let axis = self.steps.iter().position(|&step| step == 1).filter(|&axis| axis < last)?;
        let wide = self.lengths[axis] >= 8 && self.lengths[last] >= 8;
        (wide && self.steps.iter().all(|&step| step > 0)).then_some(axis)
    }
}

/// A value in a dispatch: where it is bound and of which type.
pub(crate) type BoundValue = (ShaderBinding, DataType);

/// Writes a whole value from places of another.
///
/// # Errors
/// Fails when shaders cannot move the elements or count them.
pub(crate) fn copy(
    places: &StridedPlaces,
    from: BoundValue,
    to: BoundValue,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let cells = CellPair::of(from.1, to.1)?;
    let places = places.merged();
    param(places.elements())?;
    if places.elements() == 0 {
        return Ok(());
    }
    let bindings = vec![from.0, to.0];
    match places.turned() {
        Some(axis) if from.1 == DataType::Fp16 && to.1 == from.1 => {
            turn(&places, axis, CellPair::HALVES, bindings, step)
        }
        Some(axis) if cells.to.is_whole() => turn(&places, axis, cells, bindings, step),
        _ => plain(&places, cells, bindings, step),
    }
}

/// Declarations of source, result and parameters.
pub(super) fn head(cells: CellPair, words: &DispatchParams) -> String {
    let mut text = cells.from.declare(0, "x");
    text.push_str(&cells.to.declare(1, "y"));
    text.push_str(&words.declare(2));
    text
}

/// Adds a dispatch of one thread for each unit.
pub(super) fn start(
    name: &str,
    text: &str,
    bindings: Vec<ShaderBinding>,
    words: DispatchParams,
    units: usize,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let shader = shader(name, text).proved();
    step.dispatch(shader, bindings, words.into_params(), fold(units.div_ceil(THREADS))?);
    Ok(())
}

/// The statement that finds `source` from the number of an element in the result.
fn source(
    places: &StridedPlaces,
    words: &mut DispatchParams,
    number: &str,
) -> Result<String, String> {
    let mut text = format!("var r = {number};\n");
    let mut sum = words.length(places.offset)?;
    for axis in (0..places.lengths.len()).rev() {
        let by = words.step(places.steps[axis])?;
        if axis == 0 {
            sum.push_str(&format!(" + r * {by}"));
            break;
        }
        let len = words.length(places.lengths[axis])?;
        text.push_str(&format!("let c{axis} = r % {len};\n"));
        text.push_str(&format!("r = r / {len};\n"));
        sum.push_str(&format!(" + c{axis} * {by}"));
    }
    text.push_str(&format!("let source = {sum};\n"));
    Ok(text)
}

/// A thread for each quad of the result.
fn plain(
    places: &StridedPlaces,
    cells: CellPair,
    bindings: Vec<ShaderBinding>,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let quads = places.elements().div_ceil(4);
    let mut words = DispatchParams::default();
    let count = words.length(places.elements())?;
    let quad_count = words.length(quads)?;
    let mut function = String::new();
    let mut body = entry(&quad_count);
    let whole = places.in_quads();
    if whole {
        body.push_str(&source(places, &mut words, "at * 4u")?);
        body.push_str(&cells.copy_quad("(source / 4u)", "at"));
    } else {
        let text = source(places, &mut words, "number")?;
        function = format!("fn find(number: u32) -> u32 {{\n{text}return source;\n}}\n");
        for lane in 0..4 {
            let number = format!("find(min(at * 4u + {lane}u, {count} - 1u))");
            body.push_str(&format!("let f{lane} = {number};\n"));
            body.push_str(&format!(
                "let v{lane} = {};\n",
                cells.from.load("x", &format!("f{lane}"))
            ));
        }
        body.push_str(&cells.to.store_quad("y", "at", &count));
    }
    body.push_str("}\n");
    let text = format!("{}{function}{body}", head(cells, &words));
    let name = if whole { "move-quads" } else { "move" };
    start(name, &text, bindings, words, quads, step)
}

/// A workgroup for each square: its rows are read as they lie, kept, and written as rows of the result.
fn turn(
    places: &StridedPlaces,
    axis: usize,
    cells: CellPair,
    bindings: Vec<ShaderBinding>,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let last = places.lengths.len() - 1;
    let out_steps = contiguous(&places.lengths);
    let mut words = DispatchParams::default();
    let rows = places.lengths[axis];
    let columns = places.lengths[last];
    let row_count = words.length(rows)?;
    let column_count = words.length(columns)?;
    let row_tiles = rows.div_ceil(SIDE);
    let column_tiles = columns.div_ceil(SIDE);
    let tall = words.length(row_tiles)?;
    let across = words.length(column_tiles)?;
    let squares = row_tiles
        * column_tiles
        * (0..last)
            .filter(|&other| other != axis)
            .map(|other| places.lengths[other])
            .product::<usize>();
    let square_count = words.length(squares)?;
    let mut first = format!(
        "var r = min(number, {square_count} - 1u);\nlet column = (r % {across}) * {SIDE}u;\nr = r / {across};\n\
         let row = (r % {tall}) * {SIDE}u;\nr = r / {tall};\nvar source = {};\nvar target_at = 0u;\n",
        words.length(places.offset)?
    );
    for other in (0..last).rev().filter(|&other| other != axis) {
        let len = words.length(places.lengths[other])?;
        let by = words.step(places.steps[other])?;
        let out = words.length(out_steps[other])?;
        first.push_str(&format!(
            "source = source + (r % {len}) * {by};\ntarget_at = target_at + (r % {len}) * {out};\nr = r / {len};\n"
        ));
    }
    let by = words.step(places.steps[last])?;
    let out = words.length(out_steps[axis])?;
    let load = cells.from.load("x", "source + i + row + j * BY").replace("BY", &by);
    let store = cells.to.store(
        "y",
        &format!("target_at + (i + row) * {out} + j"),
        "square[i * 33u + lane % 32u]",
    );
    let value = cells.from.value();
    let text = format!(
        "{}var<workgroup> square: array<{value}, 1056>;\n\
         @compute @workgroup_size({THREADS})\n\
         fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{\n\
         let number = group.x + group.y * groups.x;\n{first}\
         {{ let i = lane % 32u;\n\
         for (var k = lane / 32u; k < 32u; k += 8u) {{ let j = column + k;\n\
         if i + row < {row_count} && j < {column_count} {{ square[i * 33u + k] = {load}; }} }} }}\n\
         workgroupBarrier();\n\
         if number >= {square_count} {{ return; }}\n\
         let j = column + lane % 32u;\n\
         for (var i = lane / 32u; i < 32u; i += 8u) {{\n\
         if i + row < {row_count} && j < {column_count} {{ {store} }} }}\n}}\n",
        head(cells, &words)
    );
    step.dispatch(
        shader("move-turned", &text).proved(),
        bindings,
        words.into_params(),
        fold(squares)?,
    );
    Ok(())
}
