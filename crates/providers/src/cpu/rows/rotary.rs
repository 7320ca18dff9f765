//! Rotary positions by rows of tables, as ONNX and ONNX Runtime write them.

use galatea_graph::ops::contrib::ContribRotaryEmbedding;
use galatea_graph::ops::transformer::RotaryEmbedding;
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_kernels::attention::{HeadRows, HeadStrides};
use galatea_kernels::rotary::{HeadRotation, RotarySizes as Sizes, turn_rows};

use super::CONTRIB_DOMAIN;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes, StepCall};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "rotary_embedding-f32",
        domain: ONNX_DOMAIN,
        ops: &["RotaryEmbedding"],
        supports: |view| view.floats(&[0, 1, 2]),
        build: |view| {
            let op = view.operator::<RotaryEmbedding>()?.clone();
            Ok(Box::new(ByRows { op, tables: [1, 2], positions: 3, one_is_first: false }))
        },
    },
    CpuKernelRow {
        name: "rotary_embedding-f32",
        domain: CONTRIB_DOMAIN,
        ops: &["RotaryEmbedding"],
        supports: |view| view.floats(&[0, 2, 3]),
        build: |view| {
            let op = view.operator::<ContribRotaryEmbedding>()?.rotary.clone();
            Ok(Box::new(ByRows { op, tables: [2, 3], positions: 1, one_is_first: true }))
        },
    },
];

struct ByRows {
    op: RotaryEmbedding,
    /// Inputs of cosines and sines.
    tables: [usize; 2],
    /// The input of positions, which may be missing.
    positions: usize,
    /// True if a single position is that of the first row.
    one_is_first: bool,
}

/// Where the rows of the tables are named.
#[derive(Clone, Copy)]
enum RotaryRows {
    /// A position for each batch and row.
    Each,
    /// The position of the first row of every batch.
    First,
    /// Rows follow each other, and begin again behind the last.
    InTurn,
}

/// Properties of a step that are known before its values are.
struct BoundRotary {
    sizes: Sizes,
    strides: HeadStrides,
    pairs: usize,
    interleaved: bool,
    named: RotaryRows,
    /// Rows of the tables.
    rows: usize,
    tables: [usize; 2],
    positions: usize,
}

impl ByRows {
    /// The sizes and strides of X, which keeps its layout.
    fn heads(&self, shape: &[usize], half: usize) -> Result<(Sizes, HeadStrides), String> {
        match *shape {
            [batch, heads, rows, width] => {
                let strides = HeadStrides::heads_first(heads, rows, width);
                Ok((Sizes { batch, heads, rows, width }, strides))
            }
            [batch, rows, hidden] => {
                // Without a number of heads the tables say how wide one is.
                let by_tables = || hidden.checked_div(2 * half).filter(|_| self.one_is_first);
                let heads = self.op.num_heads.or_else(by_tables);
                let heads = heads.filter(|&heads| heads > 0 && hidden.is_multiple_of(heads));
                let heads = heads.ok_or_else(|| format!("no heads of {hidden} elements"))?;
                let width = hidden / heads;
                let strides = HeadStrides::rows_first(heads, rows, width);
                Ok((Sizes { batch, heads, rows, width }, strides))
            }
            _ => Err(format!("X of shape {shape:?}, expected 3 or 4 axes")),
        }
    }
}

impl CpuKernel for ByRows {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let [cos, sin] = [shapes.input(self.tables[0])?, shapes.input(self.tables[1])?];
        let half = cos.last().copied().unwrap_or(0);
        let (sizes, strides) = self.heads(shapes.input(0)?, half)?;
        let pairs = self.op.pairs(sizes.width).map_err(|error| error.to_string())?;
        let batch = sizes.batch;
        let length = sizes.rows;
        let positions = shapes.input(self.positions).ok();
        let (named, rows) = match (cos, positions) {
            ([rows, _], Some([1])) if self.one_is_first => (RotaryRows::First, *rows),
            ([rows, _], Some(shape)) if *shape == [batch, length] => (RotaryRows::Each, *rows),
            ([own, rows, _], None) if (*own == batch || *own == 1) && *rows == length => {
                (RotaryRows::InTurn, own * rows)
            }
            _ => return Err(format!("tables of {cos:?} with positions of {positions:?}")),
        };
        if cos != sin || half != pairs {
            return Err(format!("tables of {cos:?} and {sin:?} for {pairs} pairs"));
        }
        let interleaved = self.op.interleaved;
        let tables = self.tables;
        let positions = self.positions;
        let bound =
            BoundRotary { sizes, strides, pairs, interleaved, named, rows, tables, positions };
        Ok(CpuStep::new(move |call| bound.run(call)))
    }
}

impl BoundRotary {
    fn run(&self, call: &mut StepCall<'_>) -> Result<(), OpError> {
        let rows = self.table_rows(call)?;
        let tables = [call.input::<f32>(self.tables[0])?, call.input::<f32>(self.tables[1])?];
        let Self { sizes, pairs, interleaved, strides, .. } = *self;
        let turn = HeadRotation { sizes, pairs, interleaved, rows: &rows, tables, y: strides };
        let x = HeadRows { data: call.input::<f32>(0)?, strides };
        let mut y = call.output::<f32>(0)?;
        turn_rows(call.exec, &turn, x, y.slice());
        Ok(())
    }

    /// The row of the tables for each batch and row of X.
    fn table_rows(&self, call: &StepCall<'_>) -> Result<Vec<usize>, OpError> {
        let count = self.sizes.batch * self.sizes.rows;
        let row = |position: i64| {
            let row = usize::try_from(position).ok().filter(|row| *row < self.rows);
            row.ok_or_else(|| {
                OpError::new(format!("position {position}, the caches have {} rows", self.rows))
            })
        };
        match self.named {
            RotaryRows::InTurn => Ok((0..count).map(|at| at % self.rows).collect()),
            RotaryRows::Each => {
                call.input::<i64>(self.positions)?.iter().map(|&p| row(p)).collect()
            }
            RotaryRows::First => {
                let first = call.input::<i64>(self.positions)?.first().copied().unwrap_or(0);
                let at = |at: usize| i64::try_from(at % self.sizes.rows).unwrap_or(i64::MAX);
                (0..count).map(|index| row(first.saturating_add(at(index)))).collect()
            }
        }
    }
}
