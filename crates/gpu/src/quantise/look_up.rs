//! `LookUp`: bytes replaced by those of a table.

use std::sync::Arc;

use galatea_graph::ops::fused::LookUp;
use minijinja::context;

use crate::device::Shader;
use crate::kernel::{Binding, Kernel, KernelRow, Shapes, Step, fold, param};
use crate::memory::Block;
use crate::template::render;

pub(super) const ROW: KernelRow = KernelRow {
    name: "look-up",
    domain: galatea_graph::GALATEA_DOMAIN,
    ops: &["LookUp"],
    supports: |view| {
        view.operator::<LookUp>()?;
        view.rank(0).map(drop)
    },
    build: |view| {
        let table = &view.operator::<LookUp>()?.table;
        let table = Block::with(view.device, table).map_err(|error| error.to_string())?;
        Ok(Box::new(Table(table)))
    },
};

struct Table(Arc<Block>);

impl Kernel for Table {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let words = shapes.input(0)?.iter().product::<usize>().div_ceil(4);
        let source = render(include_str!("look_up.wgsl"), context!())?;
        let table = Binding::Weights(Arc::clone(&self.0));
        let bindings = vec![Binding::Input(0), table, Binding::Output(0)];
        // A thread reads its word before it writes it.
        step.in_place(0, 0);
        if words > 0 {
            let groups = fold(words.div_ceil(256))?;
            let shader = Shader::new(ROW.name, source).proved();
            step.dispatch(shader, bindings, vec![param(words)?], groups);
        }
        Ok(())
    }

    fn weight_bytes(&self) -> u64 {
        256
    }
}
