//! Local response normalisation: a thread for each quad of the result.

use galatea_graph::ops::normalize::Lrn;

use crate::element::{DispatchParams, THREADS, declare, entry, load, shader, store_quad};
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param,
};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow =
    GpuKernelRow { name: "lrn", domain: "", ops: &["LRN"], supports, build };

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    view.operator::<Lrn>()?;
    view.floats_throughout(&[0])
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    Ok(Box::new(LrnKernel(*view.operator::<Lrn>()?)))
}

struct LrnKernel(Lrn);

impl GpuKernel for LrnKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let Lrn { alpha, beta, bias, size } = self.0;
        let shape = shapes.input(0)?;
        let elements = shape.iter().product::<usize>();
        let channels = shape[1];
        param(elements)?;
        let from = shapes.dtype(0)?;
        let to = shapes.output_dtype(0)?;
        let mut words = DispatchParams::default();
        let count = words.length(elements)?;
        let quads = words.length(elements.div_ceil(4))?;
        let inner = words.length(shape[2..].iter().product())?;
        let channels = words.length(channels)?;
        let before = words.length((size - 1) / 2)?;
        let after = words.length(size / 2)?;
        #[allow(clippy::cast_precision_loss, reason = "the size is a small count")]
        let weight = words.float(alpha / size as f32);
        let beta = words.float(beta);
        let bias = words.float(bias);
        let neighbour =
            load("x", from, "(number + k * INNER - own * INNER)").replace("INNER", &inner);
        let text = format!(
            "{}{}{}fn response(number: u32) -> f32 {{\nlet own = (number / {inner}) % {channels};\n\
             let first = own - min(own, {before});\nlet last = min(own + {after}, {channels} - 1u);\n\
             var s = 0.0;\nfor (var k = first; k <= last; k++) {{ let v = {neighbour};\ns += v * v; }}\n\
             return {} * pow({bias} + {weight} * s, -{beta});\n}}\n{}\
             var v = vec4<f32>();\n\
             for (var k = 0u; k < 4u; k++) {{ v[k] = response(min(at * 4u + k, {count} - 1u)); }}\n{}}}\n",
            declare(0, "x", from)?,
            declare(1, "y", to)?,
            words.declare(2),
            load("x", from, "number"),
            entry(&quads),
            store_quad("y", to, "at", "v", &count),
        );
        let groups = fold(elements.div_ceil(4).div_ceil(THREADS))?;
        let bindings = vec![ShaderBinding::Input(0), ShaderBinding::Output(0)];
        step.dispatch(shader("lrn", &text).proved(), bindings, words.into_params(), groups);
        Ok(())
    }
}
