//! Attention of rows of several sequences whose keys and values lie in blocks.

use galatea_graph::ops::fused::{PagedAttention, PagedShapes};
use galatea_graph::{GALATEA_DOMAIN, OpError};
use galatea_kernels::attention::AttentionRows;
use galatea_kernels::paged_attention::{PagedAttentionStep as Sizes, PagedCaches, paged_attention};
use galatea_tensor::{DataType, Element, bf16, f16};

use crate::cpu::kernel::StepOutput;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, StepCall};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "paged_attention-f32-online",
    domain: GALATEA_DOMAIN,
    ops: &["PagedAttention"],
    supports,
    build: |view| Ok(Box::new(*view.operator::<PagedAttention>()?)),
}];

/// Inputs and the outputs that may lie over them: keys and values.
const CACHES: [(usize, usize); 2] = [(3, 1), (4, 2)];
/// The same for the scales of keys and of values.
const SCALES: [(usize, usize); 2] = [(8, 3), (9, 4)];

fn supports(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.floats(&[0, 1, 2, SCALES[0].0, SCALES[1].0])?;
    let known = [DataType::Fp32, DataType::Fp16, DataType::Bf16, DataType::Int8];
    for (input, _) in CACHES {
        if let Some(fact) = view.input(input)
            && !known.contains(&fact.dtype)
        {
            return Err(format!("a cache of {}, the kernel takes {known:?}", fact.dtype));
        }
    }
    Ok(())
}

/// Properties of a step that are known before it runs.
struct BoundPagedAttention {
    op: PagedAttention,
    rows: [Vec<usize>; 3],
    caches: [Vec<usize>; 2],
    blocks: Vec<usize>,
    dtype: DataType,
}

impl CpuKernel for PagedAttention {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = |input: usize| shapes.input(input).map(<[usize]>::to_vec);
        let bound = BoundPagedAttention {
            op: *self,
            rows: [shape(0)?, shape(1)?, shape(2)?],
            caches: [shape(3)?, shape(4)?],
            blocks: shape(7)?,
            dtype: shapes.dtype(3)?,
        };
        if shapes.dtype(4)? != bound.dtype || bound.caches.iter().any(|axes| axes.contains(&0)) {
            return Err(format!("caches of shapes {:?}", bound.caches));
        }
        let vectors = bound.caches[1].get(..3);
        for (input, _) in SCALES {
            let found = shapes.input(input).ok();
            let wanted = vectors.filter(|_| bound.dtype == DataType::Int8);
            if found != wanted {
                return Err(format!("scales {found:?}, expected {wanted:?}"));
            }
        }
        let pairs = CACHES.into_iter().chain(SCALES);
        let step = CpuStep::new(move |call| bound.run(call));
        Ok(pairs.fold(step, |step, (input, output)| step.in_place(input, output)))
    }
}

impl BoundPagedAttention {
    fn run(&self, call: &mut StepCall<'_>) -> Result<(), OpError> {
        let shapes = PagedShapes {
            rows: self.rows.each_ref().map(Vec::as_slice),
            caches: self.caches.each_ref().map(Vec::as_slice),
            blocks: &self.blocks,
        };
        let starts = call.input::<i64>(5)?;
        let lengths = call.input::<i64>(6)?;
        // All is checked before anything is written: a step that is refused leaves the caches.
        let steps = self.op.steps_of(&shapes, starts, lengths, call.input::<i64>(7)?.to_vec())?;
        let [head_size, value_size] = steps.widths;
        #[allow(clippy::cast_precision_loss, reason = "the length of a vector")]
        let root = (head_size as f32).sqrt();
        let sizes = Sizes {
            heads: self.op.num_heads,
            kv_heads: self.op.kv_num_heads,
            head_size,
            value_size,
            block_size: steps.block,
            scale: self.op.scale.unwrap_or(1.0 / root),
            window: self.op.window,
            softcap: self.op.softcap,
            starts: &steps.starts,
            lengths: &steps.lengths,
            blocks: steps.blocks(),
        };
        let rows = AttentionRows {
            q: call.input::<f32>(0)?,
            k: call.input::<f32>(1)?,
            v: call.input::<f32>(2)?,
        };
        let mut y = call.output::<f32>(0)?;
        let exec = call.exec;
        let mut compute = |caches| paged_attention(exec, &sizes, rows, caches, y.slice());
        match self.dtype {
            DataType::Fp32 => {
                let mut own = both::<f32>(call, CACHES)?;
                compute(PagedCaches::Fp32(own.each_mut().map(StepOutput::slice)));
            }
            DataType::Fp16 => {
                let mut own = both::<f16>(call, CACHES)?;
                compute(PagedCaches::Fp16(own.each_mut().map(StepOutput::slice)));
            }
            DataType::Bf16 => {
                let mut own = both::<bf16>(call, CACHES)?;
                compute(PagedCaches::Bf16(own.each_mut().map(StepOutput::slice)));
            }
            DataType::Int8 => {
                let mut own = both::<i8>(call, CACHES)?;
                let mut scales = both::<f32>(call, SCALES)?;
                let caches = own.each_mut().map(StepOutput::slice);
                compute(PagedCaches::Int8 {
                    caches,
                    scales: scales.each_mut().map(StepOutput::slice),
                });
            }
            other => return Err(OpError::new(format!("caches of {other}"))),
        }
        Ok(())
    }
}

/// Two outputs with the elements of two inputs, which they may lie over already.
fn both<'a, T: Element + Copy>(
    call: &mut StepCall<'a>,
    pairs: [(usize, usize); 2],
) -> Result<[StepOutput<'a, T>; 2], OpError> {
    let [keys, values] = pairs.map(|(input, at)| {
        let mut output = call.output::<T>(at)?;
        if let Some(from) = call.optional::<T>(input)? {
            output.slice().copy_from_slice(from);
        }
        Ok::<_, OpError>(output)
    });
    Ok([keys?, values?])
}
