//! Elements that stay or go by their place.

use galatea_graph::ops::index::OneHot;
use galatea_graph::ops::shape::Trilu;

use super::index;
use super::strided::{head, start};
use crate::axis::position;
use crate::cell::{CellPair, ElementCell};
use crate::element::{DispatchParams, entry};
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, ShaderBinding, param};
use galatea_runtime::NodeShapes;

pub(super) const TRIANGLE: GpuKernelRow = GpuKernelRow {
    name: "triangle",
    domain: "",
    ops: &["Trilu"],
    supports: |view| {
        view.operator::<Trilu>()?;
        let dtype = view.input(0).ok_or("the input is missing")?.dtype;
        match view.is_known(1) {
            true => ElementCell::supports(view, dtype),
            false => Err("the diagonal is known only in a run".into()),
        }
    },
    build: |view| Ok(Box::new(TriangleKernel { upper: view.operator::<Trilu>()?.upper })),
};

pub(super) const CONTRIB_TRIANGLE: GpuKernelRow =
    GpuKernelRow { domain: "com.microsoft", ..TRIANGLE };

struct TriangleKernel {
    upper: bool,
}

impl GpuKernel for TriangleKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let shape = shapes.input(0)?;
        let elements: usize = shape.iter().product();
        param(elements)?;
        if elements == 0 {
            return Ok(());
        }
        let diagonal = match shapes.has(1) {
            true => shapes.integers(1).and_then(|all| all.first().copied()),
            false => Some(0),
        };
        let diagonal = diagonal.ok_or("the diagonal is not known")?;
        let most = i64::from(i32::MAX);
        let diagonal = i32::try_from(diagonal.clamp(-most, most)).unwrap_or(0);
        let cells = CellPair::of(shapes.dtype(0)?, shapes.output_dtype(0)?)?;
        let mut words = DispatchParams::default();
        let units = elements.div_ceil(4);
        let count = words.length(elements)?;
        let unit_count = words.length(units)?;
        let rows = words.length(shape[shape.len() - 2])?;
        let columns = words.length(shape[shape.len() - 1])?;
        let diagonal = words.word(diagonal.cast_unsigned());
        let sign = if self.upper { ">=" } else { "<=" };
        let mut text = head(cells, &words);
        text.push_str(&entry(&unit_count));
        for lane in 0..4 {
            text.push_str(&format!(
                "let n{lane} = min(at * 4u + {lane}u, {count} - 1u);\n\
                 let above{lane} = i32(n{lane} % {columns}) - i32((n{lane} / {columns}) % {rows});\n\
                 var v{lane} = {}();\nif above{lane} {sign} bitcast<i32>({diagonal}) {{ v{lane} = {}; }}\n",
                cells.from.value(),
                cells.from.load("x", &format!("n{lane}"))
            ));
        }
        text.push_str(&cells.to.store_quad("y", "at", &count));
        text.push_str("}\n");
        let bindings = vec![ShaderBinding::Input(0), ShaderBinding::Output(0)];
        start("triangle", &text, bindings, words, units, step)
    }
}

pub(super) const ONE_HOT: GpuKernelRow = GpuKernelRow {
    name: "one-hot",
    domain: "",
    ops: &["OneHot"],
    supports: |view| {
        view.operator::<OneHot>()?;
        index::supports(view, 0)?;
        let dtype = view.input(2).ok_or("the values are missing")?.dtype;
        match view.is_known(1) {
            true => ElementCell::supports(view, dtype),
            false => Err("the depth is known only in a run".into()),
        }
    },
    build: |view| Ok(Box::new(OneHotKernel { axis: view.operator::<OneHot>()?.axis })),
};

struct OneHotKernel {
    axis: i64,
}

impl GpuKernel for OneHotKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let result = shapes.output(0)?;
        let elements: usize = result.iter().product();
        param(elements)?;
        if elements == 0 {
            return Ok(());
        }
        let axis = position(self.axis, result.len())?;
        let cells = CellPair::of(shapes.dtype(2)?, shapes.output_dtype(0)?)?;
        let positions = shapes.dtype(0)?;
        let mut words = DispatchParams::default();
        let units = elements.div_ceil(4);
        let count = words.length(elements)?;
        let unit_count = words.length(units)?;
        let depth = words.length(result[axis])?;
        let inner = words.length(result[axis + 1..].iter().product())?;
        let mut text = index::declare(0, "positions", positions);
        text.push_str(&cells.from.declare(1, "x"));
        text.push_str(&cells.to.declare(2, "y"));
        text.push_str(&words.declare(3));
        text.push_str(&index::raw("positions", positions));
        text.push_str(&entry(&unit_count));
        for lane in 0..4 {
            text.push_str(&format!(
                "let n{lane} = min(at * 4u + {lane}u, {count} - 1u);\n\
                 var p{lane} = positions_raw((n{lane} / ({inner} * {depth})) * {inner} + n{lane} % {inner});\n\
                 if p{lane} < 0 {{ p{lane} += i32({depth}); }}\n\
                 let on{lane} = select(0u, 1u, p{lane} == i32((n{lane} / {inner}) % {depth}));\n\
                 let v{lane} = {};\n",
                cells.from.load("x", &format!("on{lane}"))
            ));
        }
        text.push_str(&cells.to.store_quad("y", "at", &count));
        text.push_str("}\n");
        let bindings =
            vec![ShaderBinding::Input(0), ShaderBinding::Input(2), ShaderBinding::Output(0)];
        start("one-hot", &text, bindings, words, units, step)
    }
}
