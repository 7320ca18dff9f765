//! `BlockMatMul`: products with each of some matrices of few bits.

use std::sync::Arc;

use galatea_graph::GALATEA_DOMAIN;
use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockMatMul, FusedActivation};
use galatea_runtime::Precision;
use galatea_tensor::DataType;
use minijinja::context;

use super::layout::Layout;
use super::pack::{Packed, Plan, pack};
use super::product::{Call, OUTPUTS, Operand, Product, Segment, activation};
use super::shared::shared;
use super::{Choice, dispatch};
use crate::device::{Device, Shader};
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step, fold, param, wgsl_float};
use crate::template::render;

pub(super) const ROW: KernelRow = KernelRow {
    name: "block_mat_mul",
    domain: GALATEA_DOMAIN,
    ops: &["BlockMatMul"],
    supports: |view| {
        let op = view.operator::<BlockMatMul>()?;
        let inputs: Vec<usize> = (0..=op.weights().len() + 1).collect();
        view.floats(&inputs)?;
        supports(view.device, op)?;
        if op.gate().is_some() && inputs.iter().skip(1).any(|&index| view.has(index)) {
            return Err("a gate with biases".into());
        }
        Ok(())
    },
    build: |view: &NodeView<'_>| {
        let op = view.operator::<BlockMatMul>()?;
        let made = kernel(view.device, op, view.precision, Choice::default())?;
        Ok(Box::new(made))
    },
};

fn supports(device: &Device, op: &BlockMatMul) -> Result<(), String> {
    op.weights().iter().try_for_each(|weights| row_fits(device, &**weights))
}

/// Refuses matrices that kernels do not know, or a row of which is larger than a binding.
pub(super) fn row_fits(device: &Device, weights: &dyn BlockWeights) -> Result<(), String> {
    let layout = Layout::of(weights)?;
    let row = layout.units(weights.columns()) * 16;
    if row as u64 > device.capabilities().binding_bytes.min(1 << 30) / 4 {
        return Err("a row is larger than a binding".into());
    }
    Ok(())
}

/// A matrix on its own, which nodes of the device share.
pub(super) fn whole(
    device: &Arc<Device>,
    weights: &Arc<dyn BlockWeights>,
) -> Result<Arc<Packed>, String> {
    let layout = Layout::of(&**weights)?;
    let limit = device.capabilities().binding_bytes;
    shared(device, weights, || {
        packed(device, (layout, 1), limit, weights.rows(), |row| (weights, row))
    })
}

/// The kernel of a node, with kernels for few and many rows as chosen.
///
/// # Errors
/// When there is no kernel for one of the matrices, or the device has no memory for it.
pub fn kernel(
    device: &Arc<Device>,
    op: &BlockMatMul,
    precision: Precision,
    choice: Choice,
) -> Result<BlockProducts, String> {
    supports(device, op)?;
    let (weights, gate) = (op.weights(), op.gate());
    let layouts: Vec<Layout> =
        weights.iter().map(|matrix| Layout::of(&**matrix)).collect::<Result<_, _>>()?;
    let limit = device.capabilities().binding_bytes;
    let limit = choice.binding_bytes.map_or(limit, |bytes| bytes.min(limit));
    let mut products = Vec::new();
    let mut rest = None;
    match (gate, weights, &layouts[..]) {
        (Some(_), [first, second], [own, other]) if own == other => {
            let segments = vec![Segment { first: 0, rows: 2 * first.rows(), matrix: 0 }];
            let both = [first, second];
            let packed =
                packed(device, (*own, 2), limit, 2 * first.rows(), |row| (both[row % 2], row / 2))?;
            products.push(Product { gate, ..Product::plain(Arc::new(packed), segments) });
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
    device: &Arc<Device>,
    layout: Layout,
    matrix: usize,
    weights: &[Arc<dyn BlockWeights>],
    limit: u64,
) -> Result<Product, String> {
    let mut segments: Vec<Segment> = Vec::new();
    for (at, own) in weights.iter().enumerate() {
        let first = segments.last().map_or(0, |last| last.first + last.rows);
        segments.push(Segment { first, rows: own.rows(), matrix: matrix + at });
    }
    if let [own] = weights
        && limit == device.capabilities().binding_bytes
    {
        let packed = whole(device, own)?;
        return Ok(Product::plain(packed, segments));
    }
    let rows = segments.last().map_or(0, |last| last.first + last.rows);
    let packed = packed(device, (layout, 1), limit, rows, |row| {
        let at = segments.iter().rposition(|segment| segment.first <= row).unwrap_or(0);
        (&weights[at], row - segments[at].first)
    })?;
    Ok(Product::plain(Arc::new(packed), segments))
}

fn packed<'a>(
    device: &Device,
    (layout, together): (Layout, usize),
    binding_bytes: u64,
    rows: usize,
    of: impl Fn(usize) -> (&'a Arc<dyn BlockWeights>, usize) + Sync,
) -> Result<Packed, String> {
    let columns = if rows == 0 { 0 } else { of(0).0.columns() };
    let plan = Plan { layout, rows, columns, binding_bytes, together };
    pack(device, &plan, &|row, to| {
        let (weights, row) = of(row);
        layout.fill(&**weights, row, to)
    })
}

/// A node's matrices on the device.
#[derive(Debug)]
pub struct BlockProducts {
    device: Arc<Device>,
    products: Vec<Product>,
    /// A gate that its product does not apply: the matrices have different layouts.
    rest: Option<FusedActivation>,
    choice: Choice,
}

impl Kernel for BlockProducts {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        self.bind_as(shapes, step, self.choice)
    }

    fn weight_bytes(&self) -> u64 {
        self.products.iter().map(|product| product.packed.size_bytes()).sum()
    }
}

impl BlockProducts {
    /// Binds as [`Kernel::bind`] does, with kernels chosen anew.
    ///
    /// # Errors
    /// When the shapes are beyond the device.
    pub fn bind_as(&self, shapes: &Shapes, step: &mut Step, choice: Choice) -> Result<(), String> {
        let (x, found) = (shapes.input(0)?, shapes.dtype(0)?);
        let (_, lead) = x.split_last().ok_or("X has no axes")?;
        let m: usize = lead.iter().product();
        let x = Operand { binding: Binding::Input(0), dtype: found };
        let matrices: usize = self.products.iter().map(|product| product.segments.len()).sum();
        let bias = |at: usize| -> Result<Option<Operand>, String> {
            if !shapes.has(at + 1) {
                return Ok(None);
            }
            Ok(Some(Operand { binding: Binding::Input(at + 1), dtype: shapes.dtype(at + 1)? }))
        };
        let biases = (0..matrices).map(bias).collect::<Result<_, _>>()?;
        let outputs = match self.rest {
            None => (0..matrices)
                .map(|at| {
                    // Nobody may want some of several products.
                    let wanted = shapes.wants(at);
                    let binding = if wanted {
                        Binding::Output(at)
                    } else {
                        let rows = self.rows_of(at);
                        Binding::Scratch(step.scratch((m * rows * 4) as u64))
                    };
                    let dtype = if wanted { shapes.output_dtype(at)? } else { DataType::Fp32 };
                    Ok(Operand { binding, dtype })
                })
                .collect::<Result<Vec<_>, String>>()?,
            Some(_) => (0..2)
                .map(|at| {
                    let scratch = step.scratch((m * self.rows_of(at) * 4) as u64);
                    Operand { binding: Binding::Scratch(scratch), dtype: DataType::Fp32 }
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
                let (input, dtype) = (matrices + 1, shapes.dtype(matrices + 1)?);
                if dtype == shapes.output_dtype(0)? {
                    step.in_place(input, 0);
                }
                Some(Operand { binding: Binding::Input(input), dtype })
            }
        };
        let call = Call { m, x, biases, more, outputs };
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
            let shader = Shader::new("block_mat_mul-gate", source).proved();
            let bindings = vec![first.binding.clone(), second.binding.clone(), Binding::Output(0)];
            let quads = elements.div_ceil(4);
            step.dispatch(shader, bindings, vec![param(quads)?], fold(quads.div_ceil(256))?);
        }
        Ok(())
    }

    /// Whether both have the same memory.
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
