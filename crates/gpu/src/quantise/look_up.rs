//! `LookUp`: bytes replaced by those of a table.

use std::sync::Arc;

use galatea_graph::ops::fused::LookUp;
use minijinja::context;

use crate::device::KernelShader;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, ShaderBinding, fold, param};
use crate::memory::DeviceBlock;
use crate::template::render;
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "look-up",
    domain: galatea_graph::GALATEA_DOMAIN,
    ops: &["LookUp"],
    supports: |view| {
        view.operator::<LookUp>()?;
        view.rank(0).map(drop)
    },
    build: |view| {
        let table = &view.operator::<LookUp>()?.table;
        let table = DeviceBlock::with(view.device, table).map_err(|error| error.to_string())?;
        Ok(Box::new(LookUpKernel(table)))
    },
};

struct LookUpKernel(Arc<DeviceBlock>);

impl GpuKernel for LookUpKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let words = shapes.input(0)?.iter().product::<usize>().div_ceil(4);
        let source = render(include_str!("look_up.wgsl"), context!())?;
        let table = ShaderBinding::Weights(Arc::clone(&self.0));
        let bindings = vec![ShaderBinding::Input(0), table, ShaderBinding::Output(0)];
        // A thread reads its word before it writes it.
        step.in_place(0, 0);
        if words > 0 {
            let groups = fold(words.div_ceil(256))?;
            let shader = KernelShader::new(ROW.name, source).proved();
            step.dispatch(shader, bindings, vec![param(words)?], groups);
        }
        Ok(())
    }

    fn weight_bytes(&self) -> u64 {
        256
    }
}
