//! Weights of four bits in blocks that share a scale.

use galatea_tensor::{Tensor, TensorError};

use super::block_grid::{BlockGrid, BlockRounding, MIDDLE};
use super::gptq::LayerHessian;
use super::layer::WeightMatrix;

/// The numbers of a row and the grids of its blocks.
type RoundedBlocks = (Vec<u8>, Vec<BlockGrid>);

/// Rounds every row of a matrix, on all cores: rows do not depend on each other.
fn each_row(
    values: &[f32],
    columns: usize,
    round: &(dyn Fn(&[f32]) -> RoundedBlocks + Sync),
) -> Vec<RoundedBlocks> {
    let columns = columns.max(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let part = (values.len() / columns).div_ceil(cores).max(1) * columns;
    let rows = |part: &[f32]| part.chunks(columns).map(round).collect::<Vec<_>>();
    if part >= values.len() {
        return rows(values);
    }
    std::thread::scope(|scope| {
        let parts: Vec<_> =
            values.chunks(part).map(|part| scope.spawn(move || rows(part))).collect();
        let joined = parts.into_iter().flat_map(|part| match part.join() {
            Ok(rows) => rows,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

/// A matrix whose rows are rounded in blocks.
#[derive(Clone, Debug)]
pub(super) struct BlockedMatrix {
    layout: BlockRounding,
    rows: usize,
    columns: usize,
    /// A number for each weight.
    numbers: Vec<u8>,
    /// A grid for each block.
    grids: Vec<BlockGrid>,
}

impl BlockedMatrix {
    /// Every weight becomes the nearest number, or with a Hessian the one that changes results
    /// least.
    pub(super) fn new(
        matrix: &WeightMatrix,
        layout: BlockRounding,
        hessian: Option<&LayerHessian>,
    ) -> Self {
        let WeightMatrix { values, rows, columns } = matrix;
        let mut blocks = Self {
            layout,
            rows: *rows,
            columns: *columns,
            numbers: Vec::with_capacity(values.len()),
            grids: Vec::new(),
        };
        let factor = hessian.map(LayerHessian::factor);
        let round = |row: &[f32]| match &factor {
            Some(factor) => factor.round(row, layout),
            None => nearest(row, layout),
        };
        for (numbers, grids) in each_row(values, *columns, &round) {
            blocks.numbers.extend(numbers);
            blocks.grids.extend(grids);
        }
        blocks
    }

    fn blocks_per_row(&self) -> usize {
        self.columns.div_ceil(self.layout.block)
    }

    /// The weights that the numbers stand for, as `[columns, rows]`.
    pub(super) fn values(&self) -> Result<Tensor, TensorError> {
        let mut values = vec![0.0_f32; self.numbers.len()];
        for (at, &number) in self.numbers.iter().enumerate() {
            let row = at / self.columns;
            let column = at % self.columns;
            let grid = self.grids[row * self.blocks_per_row() + column / self.layout.block];
            values[column * self.rows + row] = grid.value(number);
        }
        Tensor::from_vec(&[self.columns, self.rows], values)
    }

    /// The numbers as `MatMulNBits` has them, `[rows, blocks, bytes]`.
    pub(super) fn packed(&self) -> Result<Tensor, TensorError> {
        let blocks = self.blocks_per_row();
        let block = self.layout.block;
        let mut bytes = Vec::with_capacity(self.rows * blocks * block / 2);
        for (row, numbers) in self.numbers.chunks(self.columns.max(1)).enumerate() {
            for (at, part) in numbers.chunks(block).enumerate() {
                let zero = self.grids[row * blocks + at].zero;
                let number = |at: usize| part.get(at).copied().unwrap_or(zero);
                bytes.extend((0..block / 2).map(|at| number(2 * at) | number(2 * at + 1) << 4));
            }
        }
        Tensor::from_vec(&[self.rows, blocks, block / 2], bytes)
    }

    /// A scale for each block.
    pub(super) fn scales(&self) -> Tensor {
        Tensor::vector(self.grids.iter().map(|grid| grid.scale).collect())
    }

    /// The zero points, two in a byte; `None` where all are the middle.
    pub(super) fn zero_points(&self) -> Option<Tensor> {
        let pair = |pair: &[BlockGrid]| match pair {
            [low, high, ..] => low.zero | high.zero << 4,
            [low] => low.zero | MIDDLE << 4,
            [] => 0,
        };
        let row = |grids: &[BlockGrid]| grids.chunks(2).map(pair).collect::<Vec<u8>>();
        let rows = self.grids.chunks(self.blocks_per_row().max(1));
        (!self.layout.symmetric).then(|| Tensor::vector(rows.flat_map(row).collect()))
    }
}

/// The nearest number to each weight of a row.
fn nearest(row: &[f32], layout: BlockRounding) -> (Vec<u8>, Vec<BlockGrid>) {
    let grids: Vec<BlockGrid> =
        row.chunks(layout.block).map(|block| BlockGrid::of(block, layout.symmetric)).collect();
    let numbers =
        row.iter().enumerate().map(|(at, &weight)| grids[at / layout.block].round(weight));
    (numbers.collect(), grids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, columns: usize) -> WeightMatrix {
        let values = (0..rows * columns).map(|at| ((at * 37 % 101) as f32 - 40.0) / 50.0).collect();
        WeightMatrix { values, rows, columns }
    }

    #[test]
    fn weights_come_back_within_half_a_step() {
        for symmetric in [false, true] {
            let layout = BlockRounding { block: 16, symmetric };
            let matrix = matrix(3, 37);
            let blocks = BlockedMatrix::new(&matrix, layout, None);
            let back = blocks.values().unwrap().permute(&[1, 0]).unwrap().to_vec::<f32>().unwrap();
            for (at, (found, wanted)) in back.iter().zip(&matrix.values).enumerate() {
                let grid = blocks.grids[at / 37 * 3 + at % 37 / 16];
                // The end without a number of its own is a whole step away at most.
                let limit = grid.scale.abs() * if symmetric { 1.001 } else { 0.501 };
                assert!((found - wanted).abs() <= limit, "{found} {wanted} {grid:?}");
            }
        }
    }

    #[test]
    fn numbers_are_packed_from_the_low_bits_up_and_padded_with_zeros() {
        let matrix = WeightMatrix { values: vec![-8.0, 7.0, 1.0], rows: 1, columns: 3 };
        let blocks =
            BlockedMatrix::new(&matrix, BlockRounding { block: 16, symmetric: true }, None);
        let packed = blocks.packed().unwrap();
        assert_eq!(packed.shape(), [1, 1, 8]);
        assert_eq!(packed.to_vec::<u8>().unwrap()[..3], [0xf0, 0x89, 0x88]);
        assert_eq!(blocks.zero_points(), None);
        let blocks =
            BlockedMatrix::new(&matrix, BlockRounding { block: 16, symmetric: false }, None);
        assert_eq!(blocks.zero_points().unwrap().to_vec::<u8>().unwrap(), [0x88]);
    }
}
