//! Rounding that looks at what the weights are multiplied with.
//!
//! The weights of a row are rounded one after the other; the error of each is made up for by the
//! weights behind it, as far as inputs go together.
//!
//! Source: E. Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
//! Transformers", ICLR 2023.

use super::block_grid::{BlockGrid, BlockRounding};

/// Share of the mean of the diagonal that is added to it, so that inputs which never occur, or are
/// always the same, make no harm.
const DAMPING: f64 = 0.01;
/// Weights whose errors are made up for together: the rest of a row is passed over once for each.
const TOGETHER: usize = 64;

/// Sums of products of each pair of inputs of a matrix multiplication: `Σ x·xᵀ` over all rows of all samples.
#[derive(Clone, Debug)]
pub(super) struct LayerHessian {
    size: usize,
    sums: Vec<f64>,
}

/// The inverse of a [`LayerHessian`] as `Uᵀ·U`, `U` upper triangular.
#[derive(Clone, Debug)]
pub(super) struct HessianFactor {
    size: usize,
    upper: Vec<f64>,
}

impl LayerHessian {
    /// Creates an empty matrix for inputs of this length.
    pub(super) fn new(size: usize) -> Self {
        Self { size, sums: vec![0.0; size * size] }
    }

    /// Bytes that one of this size takes.
    pub(super) fn bytes(size: usize) -> usize {
        size.saturating_mul(size).saturating_mul(size_of::<f64>())
    }

    /// Adds the products of the inputs of some rows, `[size, size]`.
    pub(super) fn add(&mut self, products: &[f32]) {
        let pairs = self.sums.iter_mut().zip(products);
        pairs.for_each(|(sum, &product)| *sum += f64::from(product));
    }

    /// The factor of its inverse.
    ///
    /// With rows and columns in the opposite order the matrix is `L·Lᵀ`, so in its own order it is
    /// `R·Rᵀ` with `R` upper triangular, and `R⁻¹` is the factor.
    pub(super) fn factor(&self) -> HessianFactor {
        let size = self.size;
        let mean = (0..size).map(|at| self.sums[at * size + at]).sum::<f64>() / size.max(1) as f64;
        let mut damping = (mean * DAMPING).max(f64::MIN_POSITIVE.sqrt());
        loop {
            let mut lower: Vec<f64> = self.sums.iter().rev().copied().collect();
            (0..size).for_each(|at| lower[at * size + at] += damping);
            if cholesky(&mut lower, size) {
                let mut upper = inverse(&lower, size);
                upper.reverse();
                return HessianFactor { size, upper };
            }
            // Rounding has made it indefinite: what is added to the diagonal must be more.
            damping *= 10.0;
        }
    }
}

/// Rows that are worked on together, so that each of the others is read once for all of them.
const ROWS: usize = 16;
/// Sums that do not wait for each other.
const SUMS: usize = 8;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<SUMS>();
    let (b, b_rest) = b.as_chunks::<SUMS>();
    let mut sums = [0.0; SUMS];
    for (a, b) in a.iter().zip(b) {
        for at in 0..SUMS {
            sums[at] += a[at] * b[at];
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a * b);
    sums.iter().copied().chain(rest).sum()
}

/// Puts the lower triangle `L` of `L·Lᵀ` in the place of a symmetric matrix; false where there is
/// none.
fn cholesky(matrix: &mut [f64], size: usize) -> bool {
    for start in (0..size).step_by(ROWS) {
        let end = (start + ROWS).min(size);
        for column in 0..end {
            if column >= start {
                let current = &mut matrix[column * size..][..=column];
                let sum = current[column] - dot(&current[..column], &current[..column]);
                if !(sum > 0.0 && sum.is_finite()) {
                    return false;
                }
                current[column] = sum.sqrt();
            }
            let first = start.max(column + 1);
            let (above, rest) = matrix.split_at_mut(first * size);
            let other = &above[column * size..][..=column];
            for current in rest[..(end - first) * size].chunks_exact_mut(size) {
                let sum = current[column] - dot(&current[..column], &other[..column]);
                current[column] = sum / other[column];
            }
        }
    }
    true
}

/// The inverse of a lower triangle.
fn inverse(lower: &[f64], size: usize) -> Vec<f64> {
    let mut solved = vec![0.0; size * size];
    for start in (0..size).step_by(ROWS) {
        let end = (start + ROWS).min(size);
        for column in 0..end {
            if column >= start {
                let diagonal = lower[column * size + column];
                let current = &mut solved[column * size..][..=column];
                current[..column].iter_mut().for_each(|value| *value /= diagonal);
                current[column] = 1.0 / diagonal;
            }
            let first = start.max(column + 1);
            let (above, rest) = solved.split_at_mut(first * size);
            let other = &above[column * size..][..=column];
            for (row, current) in (first..end).zip(rest.chunks_exact_mut(size)) {
                let factor = lower[row * size + column];
                current.iter_mut().zip(other).for_each(|(value, other)| *value -= factor * other);
            }
        }
    }
    solved
}

impl HessianFactor {
    /// Rounds a row of weights.
    pub(super) fn round(
        &self,
        weights: &[f32],
        layout: BlockRounding,
    ) -> (Vec<u8>, Vec<BlockGrid>) {
        let mut row: Vec<f64> = weights.iter().map(|&weight| f64::from(weight)).collect();
        let mut numbers = Vec::with_capacity(row.len());
        let mut grids = Vec::new();
        for start in (0..row.len()).step_by(TOGETHER) {
            let end = (start + TOGETHER).min(row.len());
            let mut errors = [0.0; TOGETHER];
            for at in start..end {
                if at % layout.block == 0 {
                    let to = (at + layout.block).min(row.len());
                    // A block lies in the weights rounded together or starts with them, so that
                    // every error has reached it.
                    #[allow(clippy::cast_possible_truncation, reason = "weights are FP32")]
                    let now: Vec<f32> = row[at..to].iter().map(|&weight| weight as f32).collect();
                    grids.push(BlockGrid::of(&now, layout.symmetric));
                }
                let grid = grids[at / layout.block];
                #[allow(clippy::cast_possible_truncation, reason = "weights are FP32")]
                let number = grid.round(row[at] as f32);
                numbers.push(number);
                let factors = &self.upper[at * self.size..][..self.size];
                let error = (row[at] - f64::from(grid.value(number))) / factors[at];
                errors[at - start] = error;
                for (weight, factor) in row[at + 1..end].iter_mut().zip(&factors[at + 1..end]) {
                    *weight -= error * factor;
                }
            }
            for (at, error) in (start..end).zip(errors) {
                let factors = &self.upper[at * self.size..][end..self.size];
                row[end..].iter_mut().zip(factors).for_each(|(weight, f)| *weight -= error * f);
            }
        }
        (numbers, grids)
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::BlockedMatrix;
    use super::super::layer::WeightMatrix;
    use super::*;

    /// Repeatable numbers between -1 and 1.
    fn noise(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(next).collect()
    }

    fn add_rows(hessian: &mut LayerHessian, rows: &[f32]) {
        for row in rows.chunks_exact(hessian.size) {
            let products: Vec<f32> =
                row.iter().flat_map(|left| row.iter().map(move |right| left * right)).collect();
            hessian.add(&products);
        }
    }

    #[test]
    fn the_factor_is_one_of_the_inverse() {
        // Shorter and longer than what is worked on together.
        for size in [1, 7, 16, 41] {
            is_a_factor_of_the_inverse(size);
        }
    }

    fn is_a_factor_of_the_inverse(size: usize) {
        let mut hessian = LayerHessian::new(size);
        add_rows(&mut hessian, &noise(size * 40, 1));
        let factor = hessian.factor();
        let diagonal: f64 = (0..size).map(|at| hessian.sums[at * size + at]).sum();
        let damping = DAMPING * diagonal / size as f64;
        let entry = |row: usize, column: usize| {
            let sum = hessian.sums[row * size + column];
            if row == column { sum + damping } else { sum }
        };
        for row in 0..size {
            for column in 0..size {
                // (Uᵀ·U)·H = 1
                let inverse = |a: usize, b: usize| -> f64 {
                    (0..size).map(|n| factor.upper[n * size + a] * factor.upper[n * size + b]).sum()
                };
                let found: f64 = (0..size).map(|n| inverse(row, n) * entry(n, column)).sum();
                let wanted = if row == column { 1.0 } else { 0.0 };
                assert!((found - wanted).abs() < 1e-9, "{row} {column}: {found}");
            }
        }
    }

    /// Mean square of what rounding does to the results.
    fn loss(matrix: &WeightMatrix, blocks: &BlockedMatrix, inputs: &[f32]) -> f64 {
        let rounded = blocks.values().unwrap().permute(&[1, 0]).unwrap().to_vec::<f32>().unwrap();
        let mut sum = 0.0;
        for x in inputs.chunks(matrix.columns) {
            for (row, new) in
                matrix.values.chunks(matrix.columns).zip(rounded.chunks(matrix.columns))
            {
                let error: f32 = row.iter().zip(new).zip(x).map(|((w, q), x)| (w - q) * x).sum();
                sum += f64::from(error * error);
            }
        }
        sum
    }

    #[test]
    fn results_change_less_than_with_the_nearest_numbers() {
        let columns = 150;
        let rows = 6;
        let matrix = WeightMatrix { values: noise(columns * rows, 3), rows, columns };
        // Inputs that go together: each is mostly the one before it.
        let mut inputs = noise(columns * 300, 5);
        for at in 1..inputs.len() {
            inputs[at] = 0.8 * inputs[at - 1] + 0.3 * inputs[at];
        }
        let mut hessian = LayerHessian::new(columns);
        inputs.chunks(columns * 10).for_each(|part| add_rows(&mut hessian, part));
        for (block, symmetric) in [(32, false), (16, true), (128, false)] {
            let layout = BlockRounding { block, symmetric };
            let nearest = loss(&matrix, &BlockedMatrix::new(&matrix, layout, None), &inputs);
            let calibrated =
                loss(&matrix, &BlockedMatrix::new(&matrix, layout, Some(&hessian)), &inputs);
            assert!(calibrated < 0.5 * nearest, "{block}: {calibrated} {nearest}");
        }
    }

    #[test]
    fn inputs_that_never_occur_do_no_harm() {
        let matrix = WeightMatrix { values: noise(64, 7), rows: 2, columns: 32 };
        let hessian = LayerHessian::new(32);
        let blocks = BlockedMatrix::new(
            &matrix,
            BlockRounding { block: 32, symmetric: false },
            Some(&hessian),
        );
        let nearest =
            BlockedMatrix::new(&matrix, BlockRounding { block: 32, symmetric: false }, None);
        assert_eq!(blocks.values().unwrap(), nearest.values().unwrap());
    }
}
