//! Values one behind the other along an axis.

use galatea_graph::ops::shape::Concat;
use galatea_tensor::DataType;

use super::strided::{head, start};
use crate::axis::position;
use crate::cell::{CellPair, ElementCell};
use crate::element::{DispatchParams, entry};
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, param};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow =
    GpuKernelRow { name: "concat", domain: "", ops: &["Concat"], supports, build };

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let op = view.operator::<Concat>()?;
    let data = view.input(0).ok_or("the input is missing")?;
    position(op.axis, view.rank(0)?)?;
    ElementCell::supports(view, data.dtype)
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    Ok(Box::new(ConcatKernel { axis: view.operator::<Concat>()?.axis }))
}

struct ConcatKernel {
    axis: i64,
}

/// Position of an input in the result: rows of `width` elements, `pitch` apart, from `offset` on.
pub(crate) struct ConcatWindow {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) pitch: usize,
    pub(crate) offset: usize,
}

/// Brings columns to their place in a result of the same floats: what is bound first to what is bound second.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(crate) fn put_columns(
    window: &ConcatWindow,
    dtype: DataType,
    bindings: Vec<ShaderBinding>,
    step: &mut DispatchStep,
) -> Result<(), String> {
    if window.rows * window.width == 0 {
        return Ok(());
    }
    param(window.rows * window.pitch)?;
    let halves = dtype == DataType::Fp16;
    let cells = if halves { CellPair::HALVES } else { CellPair::of(dtype, dtype)? };
    window.put(cells, bindings, step)
}

impl GpuKernel for ConcatKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let result = shapes.output(0)?;
        param(result.iter().product())?;
        let axis = position(self.axis, result.len())?;
        let rows = result[..axis].iter().product();
        let inner: usize = result[axis + 1..].iter().product();
        let pitch = result[axis] * inner;
        let mut offset = 0;
        for index in 0..shapes.inputs.len() {
            let width = shapes.input(index)?[axis] * inner;
            let window = ConcatWindow { rows, width, pitch, offset };
            offset += width;
            if rows * width == 0 {
                continue;
            }
            let from = shapes.dtype(index)?;
            let to = shapes.output_dtype(0)?;
            let halves = from == DataType::Fp16 && to == from;
            // Shaders that have halves write one without its neighbour.
            let cells = if halves { CellPair::HALVES } else { CellPair::of(from, to)? };
            let bindings = vec![ShaderBinding::Input(index), ShaderBinding::Output(0)];
            window.put(cells, bindings, step)?;
        }
        Ok(())
    }
}

impl ConcatWindow {
    fn put(
        &self,
        cells: CellPair,
        bindings: Vec<ShaderBinding>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let quads = [self.width, self.pitch, self.offset].iter().all(|length| length % 4 == 0);
        if quads {
            return self.put_quads(cells, bindings, step);
        }
        if cells.to.is_whole() {
            return self.put_each(cells, bindings, step);
        }
        self.put_words(cells, bindings, step)
    }

    fn put_quads(
        &self,
        cells: CellPair,
        bindings: Vec<ShaderBinding>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let units = self.rows * self.width / 4;
        let mut words = DispatchParams::default();
        let count = words.length(units)?;
        let width = words.length(self.width / 4)?;
        let pitch = words.length(self.pitch / 4)?;
        let offset = words.length(self.offset / 4)?;
        let mut body = entry(&count);
        body.push_str(&format!("let to = (at / {width}) * {pitch} + at % {width} + {offset};\n"));
        body.push_str(&cells.copy_quad("at", "to"));
        body.push_str("}\n");
        let text = format!("{}{body}", head(cells, &words));
        start("concat-quads", &text, bindings, words, units, step)
    }

    fn put_each(
        &self,
        cells: CellPair,
        bindings: Vec<ShaderBinding>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let units = self.rows * self.width;
        let mut words = DispatchParams::default();
        let count = words.length(units)?;
        let width = words.length(self.width)?;
        let pitch = words.length(self.pitch)?;
        let offset = words.length(self.offset)?;
        let mut body = entry(&count);
        body.push_str(&format!("let to = (at / {width}) * {pitch} + at % {width} + {offset};\n"));
        body.push_str(&cells.to.store("y", "to", &cells.from.load("x", "at")));
        body.push_str("}\n");
        let text = format!("{}{body}", head(cells, &words));
        start("concat", &text, bindings, words, units, step)
    }

    /// A thread for each quad of the result, which keeps what is not of this input.
    fn put_words(
        &self,
        cells: CellPair,
        bindings: Vec<ShaderBinding>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let units = (self.rows * self.pitch).div_ceil(4);
        let mut words = DispatchParams::default();
        let count = words.length(units)?;
        let all = words.length(self.rows * self.pitch)?;
        let width = words.length(self.width)?;
        let pitch = words.length(self.pitch)?;
        let offset = words.length(self.offset)?;
        let mut body = entry(&count);
        for lane in 0..4 {
            let kept = cells.to.load("y", "to");
            let own = cells.from.load("x", "from_at");
            body.push_str(&format!(
                "var v{lane} = 0u;\n{{ let to = min(at * 4u + {lane}u, {all} - 1u);\n\
                 let column = to % {pitch};\n\
                 if column >= {offset} && column < {offset} + {width} {{\n\
                 let from_at = (to / {pitch}) * {width} + column - {offset};\nv{lane} = {own};\n\
                 }} else {{ v{lane} = {kept}; }} }}\n"
            ));
        }
        body.push_str(&cells.to.store_quad("y", "at", &all));
        body.push_str("}\n");
        let text = format!("{}{body}", head(cells, &words));
        start("concat-words", &text, bindings, words, units, step)
    }
}
