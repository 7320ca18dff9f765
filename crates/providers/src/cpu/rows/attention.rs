//! Fused attention, and the rotation of its queries and keys.

use galatea_graph::GALATEA_DOMAIN;
use galatea_graph::ops::fused::{FusedAttention, FusedRotary};
use galatea_kernels::attention::{
    AttentionRows, AttentionSizes as Sizes, HeadRows, HeadStrides, ScoreMask, VisibleKeys,
    attention,
};
use galatea_kernels::bf16::attention_bf16;
use galatea_kernels::isa::Bf16Isa;
use galatea_kernels::rotary::{RotaryAngles, RotarySizes, rotary};
use galatea_runtime::Precision;

use crate::cpu::{Bf16Operands, CpuKernel, CpuKernelRow, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "attention-bf16-online",
        domain: GALATEA_DOMAIN,
        ops: &["Attention"],
        supports: |view| {
            view.wants(Precision::Bf16)?;
            if !Bf16Isa::of(view.device.isa).has_products() {
                return Err("the processor has no products of BF16".into());
            }
            view.floats(&[0, 1, 2, 3])
        },
        build: |view| {
            let op = view.operator::<FusedAttention>()?.clone();
            Ok(Box::new(FusedAttentionKernel { op, reduced: true }))
        },
    },
    CpuKernelRow {
        name: "attention-f32-online",
        domain: GALATEA_DOMAIN,
        ops: &["Attention"],
        supports: |view| view.floats(&[0, 1, 2, 3]),
        build: |view| {
            let op = view.operator::<FusedAttention>()?.clone();
            Ok(Box::new(FusedAttentionKernel { op, reduced: false }))
        },
    },
    CpuKernelRow {
        name: "rotary-f32",
        domain: GALATEA_DOMAIN,
        ops: &["Rotary"],
        supports: |view| view.floats(&[0, 1, 2]),
        build: |view| Ok(Box::new(view.operator::<FusedRotary>()?.clone())),
    },
];

/// The lengths of `[batch, heads, rows, size]` and their strides, for axes stored in an order.
fn heads(shape: &[usize], order: [usize; 4]) -> Result<([usize; 4], HeadStrides), String> {
    if shape.len() != 4 || order[3] != 3 {
        return Err(format!("rows of shape {shape:?}, stored as {order:?}, are not adjacent"));
    }
    let stride = |axis: usize| shape[axis + 1..].iter().product();
    let [batch, head, row, _] = order.map(stride);
    Ok((order.map(|axis| shape[axis]), HeadStrides { batch, head, row }))
}

/// The strides of a mask or table that broadcasts to four axes and names each place of the last.
fn spread_strides(shape: &[usize], full: [usize; 4]) -> Result<HeadStrides, String> {
    let missing = 4_usize.checked_sub(shape.len()).ok_or("a value of more than four axes")?;
    let length = |axis: usize| axis.checked_sub(missing).map_or(1, |axis| shape[axis]);
    if length(3) != full[3] {
        return Err(format!("a value of shape {shape:?} does not name each of {}", full[3]));
    }
    let mut strides = [0; 3];
    let mut step = length(3);
    for axis in (0..3).rev() {
        match length(axis) {
            1 => {}
            len if len == full[axis] => strides[axis] = step,
            _ => return Err(format!("a value of shape {shape:?} for {full:?}")),
        }
        step *= length(axis);
    }
    let [batch, head, row] = strides;
    Ok(HeadStrides { batch, head, row })
}

/// Fewest query rows for which packing keys as BF16 pays.
const BF16_ROWS: usize = 8;

struct FusedAttentionKernel {
    op: FusedAttention,
    /// True if products are those of BF16.
    reduced: bool,
}

impl FusedAttentionKernel {
    /// Returns whether products are those of BF16 for these shapes.
    fn reduces(&self, shapes: &NodeShapes) -> bool {
        let rows = |shape: &[usize]| {
            let axis = self.op.q_perm.get(2).copied().unwrap_or(0);
            shape.get(axis).is_some_and(|&rows| rows >= BF16_ROWS)
        };
        self.reduced && shapes.input(0).is_ok_and(rows)
    }
}

impl CpuKernel for FusedAttentionKernel {
    fn halves(&self, shapes: &NodeShapes) -> Bf16Operands {
        // Queries of BF16 are read in pairs, from memory where they are adjacent.
        let pairs = |shape: &[usize]| shape.last().is_some_and(|len| len.is_multiple_of(2));
        if self.reduces(shapes) && shapes.input(0).is_ok_and(pairs) {
            Bf16Operands { inputs: &[0, 1, 2], output: true, together: true }
        } else {
            Bf16Operands::default()
        }
    }

    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let reduces = self.reduces(shapes);
        let this = &self.op;
        let ([batch, q_heads, queries, head_size], q_strides) =
            heads(shapes.input(0)?, this.q_perm)?;
        let (k, k_strides) = heads(shapes.input(1)?, this.k_perm)?;
        let (v, v_strides) = heads(shapes.input(2)?, this.v_perm)?;
        let ([_, kv_heads, keys, _], [.., value_size]) = (k, v);
        let wanted = ([batch, kv_heads, keys, head_size], [batch, kv_heads, keys, value_size]);
        if (k, v) != wanted || kv_heads == 0 || !q_heads.is_multiple_of(kv_heads) {
            let q = [batch, q_heads, queries, head_size];
            return Err(format!("queries {q:?}, keys {k:?} and values {v:?} do not fit"));
        }
        let full = [batch, q_heads, queries, keys];
        let mask = match shapes.input(3) {
            Ok(shape) => Some(spread_strides(shape, full)?),
            Err(_) => None,
        };
        let mut stored_at = [0; 4];
        for (stored, &axis) in this.out_perm.iter().enumerate() {
            stored_at[axis] = stored;
        }
        let (out, y_strides) = heads(shapes.output(0)?, stored_at)?;
        if out != [batch, q_heads, queries, value_size] {
            return Err(format!("an output of lengths {out:?}"));
        }
        let sight = if this.causal { VisibleKeys::Causal } else { VisibleKeys::All };
        let scale = this.scale;
        let heads = q_heads;
        let sizes =
            Sizes { batch, heads, kv_heads, queries, keys, head_size, value_size, scale, sight };
        if reduces {
            let strides = [q_strides, k_strides, v_strides];
            return Ok(CpuStep::new(move |call| {
                let qkv = [call.reals(0)?, call.reals(1)?, call.reals(2)?];
                let mask = match (mask, call.optional::<f32>(3)?) {
                    (Some(strides), Some(data)) => Some(ScoreMask { data, strides }),
                    _ => None,
                };
                let mut y = call.output_reals(0)?;
                attention_bf16(call.exec, &sizes, qkv, strides, mask, y.reals(), y_strides);
                Ok(())
            }));
        }
        Ok(CpuStep::new(move |call| {
            let x = AttentionRows {
                q: HeadRows { data: call.input::<f32>(0)?, strides: q_strides },
                k: HeadRows { data: call.input::<f32>(1)?, strides: k_strides },
                v: HeadRows { data: call.input::<f32>(2)?, strides: v_strides },
            };
            let mask = match (mask, call.optional::<f32>(3)?) {
                (Some(strides), Some(data)) => Some(ScoreMask { data, strides }),
                _ => None,
            };
            let mut y = call.output::<f32>(0)?;
            attention(call.exec, &sizes, x, mask, y.slice(), y_strides);
            Ok(())
        }))
    }
}

impl CpuKernel for FusedRotary {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let ([batch, head_count, rows, width], strides) = heads(shapes.input(0)?, self.perm)?;
        if width == 0 || !width.is_multiple_of(2) {
            return Err(format!("vectors of {width} elements have no halves"));
        }
        let table = |index: usize| -> Result<(HeadStrides, bool), String> {
            let shape = shapes.input(index)?;
            let half = shape.last() == Some(&(width / 2));
            let columns = if half { width / 2 } else { width };
            Ok((spread_strides(shape, [batch, head_count, rows, columns])?, half))
        };
        let cos = table(1)?;
        let sin = table(2)?;
        let sizes = RotarySizes { batch, heads: head_count, rows, width };
        Ok(CpuStep::new(move |call| {
            let x = HeadRows { data: call.input::<f32>(0)?, strides };
            let table = |index: usize, (strides, half): (HeadStrides, bool)| {
                call.input::<f32>(index).map(|data| RotaryAngles { data, strides, half })
            };
            let tables = [table(1, cos)?, table(2, sin)?];
            let mut y = call.output::<f32>(0)?;
            rotary(call.exec, &sizes, x, tables, y.slice());
            Ok(())
        }))
    }
}
