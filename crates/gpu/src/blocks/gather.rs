//! `BlockGather`: rows of a matrix of few bits.

use std::sync::Arc;

use galatea_graph::GALATEA_DOMAIN;
use galatea_graph::ops::fused::BlockGather;
use galatea_tensor::DataType;
use minijinja::context;

use super::codes::{codes, plane_type, unscale};
use super::mat_mul::{row_fits, whole};
use super::pack::PackedCodes;
use crate::device::KernelShader;
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use crate::template::render;
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "block_gather",
    domain: GALATEA_DOMAIN,
    ops: &["BlockGather"],
    supports: |view| {
        let op = view.operator::<BlockGather>()?;
        row_fits(view.device, &**op.weights())?;
        view.floats_throughout(&[])?;
        match view.input(0).map(|fact| fact.dtype) {
            Some(DataType::Int64) => Ok(()),
            other => Err(format!("indices of type {other:?}")),
        }
    },
    build: |view: &GpuNodeView<'_>| {
        let op = view.operator::<BlockGather>()?;
        Ok(Box::new(CodeGather { matrix: whole(view.device, op.weights())? }))
    },
};

struct CodeGather {
    matrix: Arc<PackedCodes>,
}

impl GpuKernel for CodeGather {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let layout = &self.matrix.layout;
        let columns = self.matrix.columns;
        let count: usize = shapes.input(0)?.iter().product();
        let units = layout.units(columns);
        let aligned = columns.is_multiple_of(4);
        let y = wgsl_float(shapes.output_dtype(0)?)?;
        let [own, wholes] = layout.factor_words(columns);
        let per_block = (layout.block / layout.unit()).max(1).ilog2();
        let [low, high] = layout.words().map(plane_type);
        let factors = (!layout.is_float()).then_some("u32");
        for piece in &self.matrix.pieces {
            let mut bindings = vec![ShaderBinding::Input(0), ShaderBinding::Output(0)];
            let mut declared = Vec::new();
            let parts = [("low", low), ("high", high), ("factors", factors)];
            for ((name, of), (start, bytes)) in parts.into_iter().zip(piece.regions) {
                let Some(of) = of else { continue };
                bindings.push(ShaderBinding::Part(Arc::clone(&piece.block), start, bytes));
                declared.push(context!(name, of));
            }
            let context = context!(
                bindings => declared,
                codes => codes(layout),
                unscale => unscale(layout),
                parts => layout.parts(),
                y, aligned, per_block,
            );
            let source = render(include_str!("gather.wgsl"), context)?;
            let shader = KernelShader::new(format!("block_gather-{}", layout.name()), source);
            let sizes = [units, columns, count, own + wholes, own];
            let rows = [piece.first, piece.rows, self.matrix.rows];
            let params = sizes.into_iter().chain(rows).map(param).collect::<Result<_, _>>()?;
            let groups = fold((count * units).div_ceil(64))?;
            step.dispatch(shader.proved(), bindings, params, groups);
        }
        Ok(())
    }

    fn weight_bytes(&self) -> u64 {
        self.matrix.size_bytes()
    }
}
