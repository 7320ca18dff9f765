//! Zeros of a constant matrix: blocks that are zero as a whole, and groups of four of which two are.

use galatea_tensor::Tensor;

/// Elements of a block along k and along columns.
pub(super) const DEEP: usize = 8;
pub(super) const WIDE: usize = 32;

/// Elements of a group along k, and those of them that are kept.
pub(super) const GROUP: usize = 4;
pub(super) const KEPT: usize = 2;

/// Places of a matrix that are looked at before all of it is, and elements of each.
const PLACES: usize = 16;
const SAMPLE: usize = 256;

/// A matrix of `k` rows and `n` columns in memory.
pub(super) struct SearchedMatrix<'a> {
    bytes: &'a [u8],
    /// Bytes of an element.
    size: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    /// True if columns lie behind one another, each along k.
    pub(super) along: bool,
}

impl<'a> SearchedMatrix<'a> {
    /// Returns the matrix of a contiguous tensor of floats; none where it is no single one.
    pub(super) fn of(tensor: &'a Tensor, transposed: bool) -> Option<Self> {
        let &[rows, columns] = tensor.shape() else { return None };
        let size = tensor.dtype().size_bytes()?;
        let (k, n) = if transposed { (columns, rows) } else { (rows, columns) };
        let bytes = tensor.unaligned_bytes().ok()?;
        (bytes.len() == k * n * size).then_some(Self { bytes, size, k, n, along: transposed })
    }

    /// Returns the bytes of an element.
    pub(super) fn element(&self, k: usize, n: usize) -> &'a [u8] {
        let at = if self.along { n * self.k + k } else { k * self.n + n };
        self.bytes.get(at * self.size..(at + 1) * self.size).unwrap_or_default()
    }

    fn is_zero(&self, element: &[u8]) -> bool {
        // Either zero: the sign is in the last byte.
        element.iter().take(self.size - 1).all(|byte| *byte == 0)
            && element.last().is_none_or(|byte| byte & 0x7f == 0)
    }

    pub(super) fn is_zero_at(&self, k: usize, n: usize) -> bool {
        self.is_zero(self.element(k, n))
    }

    /// Returns whether enough of some places is zero for the rest to be looked at. Most matrices have no zeros, and
    /// are not to be read twice.
    pub(super) fn seems_sparse(&self) -> bool {
        let count = self.k * self.n;
        let stretch = SAMPLE.min(count);
        let mut zeros = 0;
        for place in 0..PLACES {
            let first = (count - stretch) * place / (PLACES - 1);
            let part = &self.bytes[first * self.size..(first + stretch) * self.size];
            zeros += part.chunks_exact(self.size).filter(|one| self.is_zero(one)).count();
        }
        zeros * 4 >= PLACES * stretch
    }
}

/// Blocks of a matrix that have anything but zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FullBlocks {
    k: usize,
    n: usize,
    /// Columns of blocks one after the other, a bit for each block along k.
    words: Vec<u32>,
}

impl FullBlocks {
    pub(super) fn of(matrix: &SearchedMatrix<'_>) -> Self {
        let &SearchedMatrix { k, n, along, .. } = matrix;
        let mut blocks = Self { k, n, words: vec![0; n.div_ceil(WIDE) * Self::pitch(k)] };
        let (outer, inner) = if along { (n, k) } else { (k, n) };
        for major in 0..outer {
            for minor in 0..inner {
                let (row, column) = if along { (minor, major) } else { (major, minor) };
                if !matrix.is_zero_at(row, column) {
                    let word = column / WIDE * Self::pitch(k) + row / DEEP / 32;
                    blocks.words[word] |= 1 << (row / DEEP % 32);
                }
            }
        }
        blocks
    }

    /// Words of a column of blocks.
    fn pitch(k: usize) -> usize {
        k.div_ceil(DEEP).div_ceil(32)
    }

    fn is_full(&self, k: usize, column: usize) -> bool {
        let word = column / WIDE * Self::pitch(self.k) + k / DEEP / 32;
        self.words.get(word).is_some_and(|bits| bits >> (k / DEEP % 32) & 1 == 1)
    }

    /// The bits, as shaders read them.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Part of the blocks that are full.
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub(super) fn share(&self) -> f64 {
        let full: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        let all = self.n.div_ceil(WIDE) * self.k.div_ceil(DEEP);
        f64::from(full) / all.max(1) as f64
    }

    /// For each tile of so many columns, the starts of those parts of k, each of so many elements, in which it has
    /// anything: first where each tile's begin and where the last one's end, then the starts.
    pub(super) fn parts(&self, columns: usize, deep: usize) -> Vec<u32> {
        let tiles = self.n.div_ceil(columns);
        let mut all = vec![0_u32; tiles + 1];
        let word = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        for tile in 0..tiles {
            all[tile] = word(all.len());
            for first in (0..self.k).step_by(deep) {
                let last = (first + deep).min(self.k);
                let end = ((tile + 1) * columns).min(self.n);
                let mut blocks = (first..last).step_by(DEEP).flat_map(|k| {
                    (tile * columns..end).step_by(WIDE).map(move |column| (k, column))
                });
                if blocks.any(|(k, column)| self.is_full(k, column)) {
                    all.push(word(first));
                }
            }
        }
        all[tiles] = word(all.len());
        all
    }

    /// Part of all such parts that a product of tiles computes.
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub(super) fn share_of(&self, columns: usize, deep: usize) -> f64 {
        let tiles = self.n.div_ceil(columns);
        let listed = self.parts(columns, deep).len() - tiles - 1;
        listed as f64 / (tiles * self.k.div_ceil(deep)).max(1) as f64
    }
}

/// A matrix of which two of each four elements along k are kept: for each column the kept ones, and two bits for the
/// place of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptHalf {
    pub(super) values: Vec<u8>,
    pub(super) places: Vec<u8>,
}

impl KeptHalf {
    /// Returns the halves of a matrix of this pattern; none where it has another.
    pub(super) fn of(matrix: &SearchedMatrix<'_>) -> Option<Self> {
        let &SearchedMatrix { k, n, size, .. } = matrix;
        // A byte is for four kept elements, which are read together.
        if !k.is_multiple_of(2 * GROUP) {
            return None;
        }
        let mut half = Self {
            values: Vec::with_capacity(k / 2 * n * size),
            places: Vec::with_capacity(k / 8 * n),
        };
        for column in 0..n {
            for first in (0..k).step_by(2 * GROUP) {
                let mut code = 0;
                for group in 0..2 {
                    let start = first + group * GROUP;
                    let full = |at: &usize| !matrix.is_zero_at(start + at, column);
                    let mut kept: Vec<usize> = (0..GROUP).filter(full).collect();
                    if kept.len() > KEPT {
                        return None;
                    }
                    // Zeros fill what is left, of places that are not there already.
                    let spare = (0..GROUP).filter(|at| !kept.contains(at)).collect::<Vec<_>>();
                    kept.extend(spare.into_iter().take(KEPT - kept.len()));
                    for (number, &at) in kept.iter().enumerate() {
                        half.values.extend_from_slice(matrix.element(start + at, column));
                        code |= u8::try_from(at).unwrap_or(0) << (2 * (group * KEPT + number));
                    }
                }
                half.places.push(code);
            }
        }
        Some(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix of 16 rows and 40 columns, whose only numbers lie in rows 8 and 11 of column 33.
    fn matrix() -> Tensor {
        let mut values = vec![0.0_f32; 16 * 40];
        values[8 * 40 + 33] = 2.0;
        values[11 * 40 + 33] = -3.0;
        // A zero of the other sign is one too.
        values[5] = -0.0;
        Tensor::from_vec(&[16, 40], values).unwrap()
    }

    #[test]
    fn blocks_with_anything_are_listed_for_each_tile() {
        let tensor = matrix();
        let matrix = SearchedMatrix::of(&tensor, false).unwrap();
        assert!(matrix.seems_sparse());
        let blocks = FullBlocks::of(&matrix);
        assert_eq!(blocks.words(), [0, 0b10]);
        assert!((blocks.share() - 0.25).abs() < 1e-9);
        assert_eq!(blocks.parts(32, 8), [3, 3, 4, 8]);
        assert_eq!(blocks.parts(64, 16), [2, 3, 0]);
        assert!((blocks.share_of(32, 8) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn two_of_four_are_kept_with_their_places() {
        let tensor = matrix();
        let half = KeptHalf::of(&SearchedMatrix::of(&tensor, false).unwrap()).unwrap();
        let values: Vec<f32> = half
            .values
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        assert_eq!(values.len(), 8 * 40);
        assert_eq!(values[33 * 8 + 4..33 * 8 + 8], [2.0, -3.0, 0.0, 0.0]);
        assert_eq!(half.places[33 * 2 + 1], 0b01_00_11_00);
    }

    #[test]
    fn a_full_matrix_has_no_pattern() {
        let tensor = Tensor::from_vec(&[8, 32], vec![1.0_f32; 256]).unwrap();
        let matrix = SearchedMatrix::of(&tensor, true).unwrap();
        assert!(!matrix.seems_sparse());
        assert_eq!(KeptHalf::of(&matrix), None);
        assert!((FullBlocks::of(&matrix).share() - 1.0).abs() < 1e-9);
    }
}
