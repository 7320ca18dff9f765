//! `BlockMatMul`: products with each of some matrices of few bits.

use std::sync::Arc;

use galatea_graph::GALATEA_DOMAIN;
use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockMatMul, FusedActivation};
use galatea_runtime::Precision;
use galatea_tensor::DataType;
use minijinja::context;

use super::layout::CodeLayout;
use super::pack::{PackedCodes, PackingPlan, pack};
use super::product::{
    BlockOperand, CodedProduct, CodedProductCall, OUTPUTS, OutputSegment, activation,
};
use super::shared::shared;
use super::{BlockKernelChoice, dispatch};
use crate::device::{GpuDevice, KernelShader};
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use crate::template::render;
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "block_mat_mul",
    domain: GALATEA_DOMAIN,
    ops: &["BlockMatMul"],
    supports: |view| {
        let op = view.operator::<BlockMatMul>()?;
        let inputs: Vec<usize> = (0..=op.weights().len() + 1).collect();
        view.floats_throughout(&inputs)?;
        supports(view.device, op)?;
        if op.gate().is_some() && inputs.iter().skip(1).any(|&index| view.has(index)) {
            return Err("a gate with biases".into());
        }
        Ok(())
    },
    build: |view: &GpuNodeView<'_>| {
        let op = view.operator::<BlockMatMul>()?;
        let made = kernel(view.device, op, view.precision, BlockKernelChoice::default())?;
        Ok(Box::new(made))
    },
};

fn supports(device: &GpuDevice, op: &BlockMatMul) -> Result<(), String> {
    op.weights().iter().try_for_each(|weights| row_fits(device, &**weights))
}

/// Refuses matrices that kernels do not know, or a row of which is larger than a binding.
pub(super) fn row_fits(device: &GpuDevice, weights: &dyn BlockWeights) -> Result<(), String> {
    let layout = CodeLayout::of(weights)?;
    let row = layout.units(weights.columns()) * 16;
    if row as u64 > device.capabilities().binding_bytes.min(1 << 30) / 4 {
        return Err("a row is larger than a binding".into());
    }
    Ok(())
}

/// A matrix on its own, which nodes of the device share.
pub(super) fn whole(
    device: &Arc<GpuDevice>,
    weights: &Arc<dyn BlockWeights>,
) -> Result<Arc<PackedCodes>, String> {
    let layout = CodeLayout::of(&**weights)?;
    let limit = device.capabilities().binding_bytes;
    shared(device, weights, || {
        packed(device, layout, 1, limit, weights.rows(), |row| (weights, row))
    })
}

/// The kernel of a node, with kernels for few and many rows as chosen.
///
/// # Errors
/// Fails when there is no kernel for one of the matrices, or the device has no memory for it.
pub fn kernel(
    device: &Arc<GpuDevice>,
    op: &BlockMatMul,
    precision: Precision,
    choice: BlockKernelChoice,
) -> Result<BlockProducts, String> {
    supports(device, op)?;
    let weights = op.weights();
    let gate = op.gate();
    let layouts: Vec<CodeLayout> =
        weights.iter().map(|matrix| CodeLayout::of(&**matrix)).collect::<Result<_, _>>()?;
    let limit = device.capabilities().binding_bytes;
    let limit = choice.binding_bytes.map_or(limit, |bytes| bytes.min(limit));
    let mut products = Vec::new();
    let mut rest = None;
    match (gate, weights, &layouts[..]) {
        (Some(_), [first, second], [own, other]) if own == other => {
            let segments = vec![OutputSegment { first: 0, rows: 2 * first.rows(), matrix: 0 }];
            let both = [first, second];
            let packed =
                packed(device, *own, 2, limit, 2 * first.rows(), |row| (both[row % 2], row / 2))?;
            products.push(CodedProduct { gate, ..CodedProduct::plain(Arc::new(packed), segments) });
        }
        _ => {
            rest = gate;
            let mut at = 0;
            while at < weights.len() {
                let same = layouts[at..].iter().take_while(|layout| **layout == layouts[at]);
                let count = same.count().min(OUTPUTS);
                products.push(joined(device, layouts[at], at, &weights[at..at + count], limit)?);
                at += count;
            }
        }
    }
    for product in &mut products {
        // What rounds rows to bytes elsewhere may round them to FP16 here; BF16 and FP32 have a wider range.
        let narrow = product.packed.layout.fits_halves();
        product.halves = precision == Precision::Fp16 || op.rounds_rows() && narrow;
        product.rounds = op.rounds_rows();
    }
    Ok(BlockProducts { device: Arc::clone(device), products, rest, choice })
}

/// Several matrices of one layout, one below the other.
fn joined(
    device: &Arc<GpuDevice>,
    layout: CodeLayout,
    matrix: usize,
    weights: &[Arc<dyn BlockWeights>],
    limit: u64,
) -> Result<CodedProduct, String> {
    let mut segments: Vec<OutputSegment> = Vec::new();
    for (at, own) in weights.iter().enumerate() {
        let first = segments.last().map_or(0, |last| last.first + last.rows);
        segments.push(OutputSegment { first, rows: own.rows(), matrix: matrix + at });
    }
    if let [own] = weights
        && limit == device.capabilities().binding_bytes
    {
        let packed = whole(device, own)?;
        return Ok(CodedProduct::plain(packed, segments));
    }
    let rows = segments.last().map_or(0, |last| last.first + last.rows);
    let packed = packed(device, layout, 1, limit, rows, |row| {
        let at = segments.iter().rposition(|segment| segment.first <= row).unwrap_or(0);
        (&weights[at], row - segments[at].first)
    })?;
    Ok(CodedProduct::plain(Arc::new(packed), segments))
}

fn packed<'a>(
    device: &GpuDevice,
    layout: CodeLayout,
    together: usize,
    binding_bytes: u64,
    rows: usize,
    matrix_row: impl Fn(usize) -> (&'a Arc<dyn BlockWeights>, usize) + Sync,
) -> Result<PackedCodes, String> {
    let columns = if rows == 0 { 0 } else { matrix_row(0).0.columns() };
    let plan = PackingPlan { layout, rows, columns, binding_bytes, together };
    pack(device, &plan, &|row, to| {
        let (weights, row) = matrix_row(row);
        layout.fill(&**weights, row, to)
    })
}

/// A node's matrices on the device.
#[derive(Debug)]
pub struct BlockProducts {
    device: Arc<GpuDevice>,
    products: Vec<CodedProduct>,
    /// A gate that its product does not apply: the matrices have different layouts.
    rest: Option<FusedActivation>,
    choice: BlockKernelChoice,
}

impl GpuKernel for BlockProducts {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        self.bind_as(shapes, step, self.choice)
    }

    fn weight_bytes(&self) -> u64 {
        self.products.iter().map(|product| product.packed.size_bytes()).sum()
    }
}

impl BlockProducts {
    /// Binds as [`GpuKernel::bind`] does, with kernels chosen anew.
    ///
    /// # Errors
    /// Fails when the shapes are beyond the device.
    pub fn bind_as(
        &self,
        shapes: &NodeShapes,
        step: &mut DispatchStep,
        choice: BlockKernelChoice,
    ) -> Result<(), String> {
        let x = shapes.input(0)?;
        let found = shapes.dtype(0)?;
        let (_, lead) = x.split_last().ok_or("X has no axes")?;
        let m: usize = lead.iter().product();
        let x = BlockOperand { binding: ShaderBinding::Input(0), dtype: found };
        let matrices: usize = self.products.iter().map(|product| product.segments.len()).sum();
        let bias = |at: usize| -> Result<Option<BlockOperand>, String> {
            if !shapes.has(at + 1) {
                return Ok(None);
            }
            Ok(Some(BlockOperand {
                binding: ShaderBinding::Input(at + 1),
                dtype: shapes.dtype(at + 1)?,
            }))
        };
        let biases = (0..matrices).map(bias).collect::<Result<_, _>>()?;
        let outputs = match self.rest {
            None => (0..matrices)
                .map(|at| {
                    // Nobody may want some of several products.
                    let wanted = shapes.wants(at);
                    let binding = if wanted {
                        ShaderBinding::Output(at)
                    } else {
                        let rows = self.rows_of(at);
                        ShaderBinding::Scratch(step.scratch((m * rows * 4) as u64))
                    };
                    let dtype = if wanted { shapes.output_dtype(at)? } else { DataType::Fp32 };
                    Ok(BlockOperand { binding, dtype })
                })
                .collect::<Result<Vec<_>, String>>()?,
            Some(_) => (0..2)
                .map(|at| {
                    let scratch = step.scratch((m * self.rows_of(at) * 4) as u64);
                    BlockOperand { binding: ShaderBinding::Scratch(scratch), dtype: DataType::Fp32 }
                })
                .collect(),
        };
        let more = match shapes.has(matrices + 1) {
            false => None,
            true if matrices > 1
                || self.rest.is_some()
                || shapes.input(matrices + 1)? != shapes.output(0)? =>
            {
                return Err("what is added has another shape than the product".into());
            }
            true => {
                let input = matrices + 1;
                let dtype = shapes.dtype(matrices + 1)?;
                if dtype == shapes.output_dtype(0)? {
                    step.in_place(input, 0);
                }
                Some(BlockOperand { binding: ShaderBinding::Input(input), dtype })
            }
        };
        let call = CodedProductCall { m, x, biases, more, outputs };
        for product in &self.products {
            dispatch(&self.device, product, &call, choice, step)?;
        }
        if let (Some(gate), [first, second]) = (self.rest, &call.outputs[..]) {
            let elements = m * self.rows_of(0);
            let dtype = shapes.output_dtype(0)?;
            let source = render(
                include_str!("gate.wgsl"),
                context!(y => wgsl_float(dtype)?, gated => activation(gate)),
            )?;
            let shader = KernelShader::new("block_mat_mul-gate", source).proved();
            let bindings =
                vec![first.binding.clone(), second.binding.clone(), ShaderBinding::Output(0)];
            let quads = elements.div_ceil(4);
            step.dispatch(shader, bindings, vec![param(quads)?], fold(quads.div_ceil(256))?);
        }
        Ok(())
    }

    /// Returns whether both use the same memory.
    #[must_use]
    pub fn shares(&self, other: &Self) -> bool {
        let both = self.products.iter().zip(&other.products);
        self.products.len() == other.products.len()
            && both.into_iter().all(|(own, other)| Arc::ptr_eq(&own.packed, &other.packed))
    }

    /// Columns of a matrix's product.
    fn rows_of(&self, matrix: usize) -> usize {
        let mut all = self.products.iter().flat_map(|product| &product.segments);
        all.find(|segment| segment.matrix == matrix).map_or(0, |segment| segment.rows)
    }
}
