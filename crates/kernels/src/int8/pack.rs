//! The right-hand bytes of a product, packed once, and what is known of its columns.

use super::ByteForm;
use super::full_groups::{FullGroups, GroupLists};
use crate::isa::{DotInstructions, DotIsa, DotKernel, LeftTerms, Simd};
use crate::matrix::MatrixSize;
use crate::memory::AlignedFloats;

/// Sizes of a set of integer instructions.
#[derive(Clone, Copy)]
struct InstructionSizes {
    width: usize,
    terms: usize,
    form: LeftTerms,
}

struct SizesQuery;

impl DotKernel for SizesQuery {
    type Output = InstructionSizes;
    #[inline(always)]
    fn run<D: DotInstructions>(self, _: D) -> InstructionSizes {
        InstructionSizes { width: D::S::LANES * D::TILE_VECTORS, terms: D::GROUP, form: D::FORM }
    }
}

/// A matrix of bytes, cut into panels as wide as the register tile.
///
/// A panel holds groups of rows one after the other; within a group the rows of a column are
/// adjacent, as the instructions take them. Missing rows and columns are zeros.
#[derive(Clone)]
pub struct PackedInt8 {
    dot: DotIsa,
    k: usize,
    n: usize,
    width: usize,
    groups: usize,
    /// The number that was subtracted from each value to make it a signed byte.
    shift: i32,
    data: AlignedFloats,
    /// Sum of each packed column.
    sums: Vec<i32>,
    /// The groups that products multiply, where they pass over others.
    full: Option<FullGroups>,
}

impl std::fmt::Debug for PackedInt8 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { dot, k, n, .. } = self;
        write!(f, "PackedInt8 {{ k: {k}, n: {n}, dot: {} }}", dot.name())
    }
}

/// Difference between an unsigned byte and its signed form.
pub(super) const HALF: i32 = 128;
/// The bit that converts between both forms.
pub(super) const FLIP: u8 = 0x80;

impl PackedInt8 {
    /// Packs a `k` x `n` matrix whose element in row `i` and column `j` is `b(i, j)`.
    #[must_use]
    pub fn pack(
        dot: DotIsa,
        k: usize,
        n: usize,
        signed: bool,
        b: impl Fn(usize, usize) -> u8,
    ) -> Self {
        let InstructionSizes { width, terms, .. } = dot.run(SizesQuery);
        let groups = k.div_ceil(terms);
        // Tiles take 16 groups at once: what lies behind the last panel meets zeros of A.
        let bytes = n.div_ceil(width) * width * groups * terms
            + (groups.next_multiple_of(16) - groups) * width * terms;
        let mut data = AlignedFloats::lasting(bytes.div_ceil(size_of::<f32>()));
        let flip = if signed { 0 } else { FLIP };
        let mut sums = vec![0_i32; n];
        let out = data.as_bytes_mut();
        for (column, sum) in sums.iter_mut().enumerate() {
            let panel = column / width;
            let inside = column % width;
            let start = panel * groups * width * terms + inside * terms;
            for row in 0..k {
                let byte = b(row, column) ^ flip;
                *sum += i32::from(byte.cast_signed());
                out[start + row / terms * width * terms + row % terms] = byte;
            }
        }
        let shift = if signed { 0 } else { HALF };
        Self { dot, k, n, width, groups, shift, data, sums, full: None }
    }

    /// Lets products pass over groups of terms that are zero in a vector of columns. Results stay the
    /// same. Without effect where the instructions have no kernel for it.
    #[must_use]
    pub fn passing_over_zeros(mut self) -> Self {
        let size = MatrixSize { rows: self.k, columns: self.n };
        self.full = FullGroups::of(self.dot, size, self.data.as_bytes());
        self
    }

    /// Rows: the length of the sums.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the product.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The instructions that the matrix is packed for.
    #[must_use]
    pub fn dot(&self) -> DotIsa {
        self.dot
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let lists = self.full.as_ref().map_or(0, FullGroups::size_bytes);
        size_of_val(self.data.as_slice()) + size_of_val(&self.sums[..]) + lists
    }

    pub(super) fn panels(&self) -> Int8Panels {
        let lists = self.full.as_ref().map(FullGroups::lists);
        Int8Panels { data: self.data.as_slice().as_ptr().cast(), groups: self.groups, lists }
    }
}

/// The packed matrix as a task sees it.
#[derive(Clone, Copy)]
pub(super) struct Int8Panels {
    pub(super) data: *const i8,
    pub(super) groups: usize,
    /// The groups that are multiplied, where not all are.
    pub(super) lists: Option<GroupLists>,
}

// SAFETY: a read-only view of a packed matrix that the caller of the product holds meanwhile.
unsafe impl Send for Int8Panels {}
// SAFETY: as for Send.
unsafe impl Sync for Int8Panels {}

/// Scales and offsets of the sums of each column; one value per column, and zeros up to a whole
/// panel.
#[derive(Clone, Debug)]
pub struct ColumnScales {
    /// Added to the sums: what the zero points make constant, and a bias.
    offsets: Vec<i32>,
    /// Taken away as often as the sum of the row says; empty where they are all 0.
    zeros: Vec<i32>,
    scales: Vec<f32>,
    biases: Vec<f32>,
    signed: bool,
    n: usize,
}

impl ColumnScales {
    /// Prepares the columns of `b` for an A of this form. `zeros` has the zero
    /// points of B, one or one a column. Scales are 1 and biases 0 at first.
    ///
    /// # Panics
    /// Panics when there are several zero points but not one for each column.
    #[must_use]
    pub fn new(b: &PackedInt8, form: ByteForm, zeros: &[i32]) -> Self {
        assert!(zeros.len() == 1 || zeros.len() == b.n, "{} zero points for {b:?}", zeros.len());
        let a_zero = form.zero
            + match (b.dot.run(SizesQuery).form, form.signed) {
                (LeftTerms::Unsigned, true) => HALF,
                (LeftTerms::Signed, false) => -HALF,
                _ => 0,
            };
        let of = |column: usize| zeros[if zeros.len() == 1 { 0 } else { column }] - b.shift;
        let padded = b.n.next_multiple_of(b.width);
        #[allow(clippy::cast_possible_truncation, reason = "wraps as the sums do")]
        let (k, mut offsets) = (b.k as i32, vec![0; padded]);
        for (column, (offset, sum)) in offsets.iter_mut().zip(&b.sums).enumerate() {
            let both = k.wrapping_mul(a_zero).wrapping_mul(of(column));
            *offset = both.wrapping_sub(a_zero.wrapping_mul(*sum));
        }
        let mut row_zeros = Vec::new();
        if (0..b.n).any(|column| of(column) != 0) {
            row_zeros =
                (0..padded).map(|column| if column < b.n { of(column) } else { 0 }).collect();
        }
        Self {
            offsets,
            zeros: row_zeros,
            scales: vec![1.0; padded],
            biases: vec![0.0; padded],
            signed: form.signed,
            n: b.n,
        }
    }

    /// With these added to the sums.
    ///
    /// # Panics
    /// Panics when there is not one for each column.
    #[must_use]
    pub fn with_sums(mut self, bias: &[i32]) -> Self {
        assert!(bias.len() == self.n, "{} biases for {} columns", bias.len(), self.n);
        for (offset, bias) in self.offsets.iter_mut().zip(bias) {
            *offset = offset.wrapping_add(*bias);
        }
        self
    }

    /// With a factor for each column: `factor(column)`.
    #[must_use]
    pub fn with_scales(mut self, factor: impl Fn(usize) -> f32) -> Self {
        self.scales.iter_mut().take(self.n).enumerate().for_each(|(at, scale)| *scale = factor(at));
        self
    }

    /// With these added to scaled sums; for results that are floats.
    ///
    /// # Panics
    /// Panics when there is not one for each column.
    #[must_use]
    pub fn with_biases(mut self, bias: &[f32]) -> Self {
        assert!(bias.len() == self.n, "{} biases for {} columns", bias.len(), self.n);
        self.biases[..bias.len()].copy_from_slice(bias);
        self
    }

    #[track_caller]
    pub(super) fn check(&self, b: &PackedInt8, signed: bool) {
        let fits = self.n == b.n
            && self.signed == signed
            && self.offsets.len() == b.n.next_multiple_of(b.width);
        assert!(fits, "columns prepared for another product than {b:?}");
    }

    pub(super) fn pointers(&self) -> ColumnPointers {
        ColumnPointers {
            offsets: self.offsets.as_ptr(),
            zeros: if self.zeros.is_empty() { std::ptr::null() } else { self.zeros.as_ptr() },
            scales: self.scales.as_ptr(),
            biases: self.biases.as_ptr(),
        }
    }
}

/// [`ColumnScales`] as a tile sees them.
#[derive(Clone, Copy)]
pub(super) struct ColumnPointers {
    pub(super) offsets: *const i32,
    /// Null where all are 0.
    pub(super) zeros: *const i32,
    pub(super) scales: *const f32,
    pub(super) biases: *const f32,
}

// SAFETY: a read-only view of columns that the caller of the product holds meanwhile.
unsafe impl Send for ColumnPointers {}
// SAFETY: as for Send.
unsafe impl Sync for ColumnPointers {}

impl ColumnPointers {
    /// The same from a column on.
    #[inline(always)]
    pub(super) fn shifted(&self, column: usize) -> Self {
        let zeros = self.zeros;
        Self {
            offsets: self.offsets.wrapping_add(column),
            zeros: if zeros.is_null() { zeros } else { zeros.wrapping_add(column) },
            scales: self.scales.wrapping_add(column),
            biases: self.biases.wrapping_add(column),
        }
    }
}
