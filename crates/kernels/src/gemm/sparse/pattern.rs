//! Places of the zeros of a matrix, and the cost of a product that leaves them out.

use super::plain::{GROUP, KEPT, PlainMatrix};
use super::tiling::ColumnTiling;
use crate::Transposition;
use crate::isa::Isa;
use crate::matrix::ProductSize;

/// How a sparse matrix is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SparseLayout {
    /// Strips of so many vectors of columns, whose zero rows are left out.
    Strips(usize),
    /// Two of each four terms of every column.
    TwoOfFour,
    /// Lists of the weights of every column.
    Columns,
}

impl SparseLayout {
    /// All layouts.
    pub const ALL: [Self; 4] = [Self::Strips(1), Self::Strips(2), Self::TwoOfFour, Self::Columns];

    /// A short name for reports and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strips(1) => "strips-1",
            Self::Strips(_) => "strips-2",
            Self::TwoOfFour => "two-of-four",
            Self::Columns => "columns",
        }
    }

    /// Vectors of a strip.
    pub(super) fn vectors(self) -> usize {
        match self {
            Self::Strips(vectors) => vectors,
            Self::TwoOfFour | Self::Columns => 1,
        }
    }

    /// Returns whether there are kernels for the layout.
    pub(crate) fn is_offered(self, isa: Isa) -> bool {
        match self {
            Self::Strips(vectors) => {
                (1..=2).contains(&vectors)
                    && (isa.tile_columns() / isa.lanes()).is_multiple_of(vectors)
            }
            Self::TwoOfFour | Self::Columns => true,
        }
    }
}

/// Fewest elements of a matrix whose zeros are looked for.
const FEWEST: usize = 4096;

/// Stretches of elements that are looked at first: few, as the rest of a mapped file may not have been
/// read yet.
const PROBES: usize = 16;

/// Elements of a stretch.
const PROBE: usize = 128;

/// Least share of zeros in the stretches that is worth a closer look.
const PROBED_ZEROS: f64 = 0.25;

/// Bytes of weights that come from memory while a vector is multiplied and added once.
const BYTES_PER_STEP: f64 = 6.0;

/// Share of the time of a dense product that a sparse one may be expected to take at most.
const WORTHWHILE: f64 = 0.9;

/// Where the zeros of a matrix are, for one instruction set.
#[derive(Clone, Debug, PartialEq)]
pub struct ZeroPattern {
    k: usize,
    n: usize,
    lanes: usize,
    /// Share of the elements that are zero.
    zeros: f64,
    /// Vectors, or elements of columns, that each layout keeps, if it can hold the matrix.
    kept: [Option<usize>; 4],
    isa: Isa,
    /// Bytes of a weight of the dense product.
    dense_bytes: usize,
}

impl ZeroPattern {
    /// Looks for the zeros of a matrix; `None` where there are too few to be of use.
    ///
    /// # Panics
    /// Panics when the matrix is shorter than it says, or its stride is less than its rows.
    #[must_use]
    pub fn of(isa: Isa, matrix: &PlainMatrix<'_>) -> Option<Self> {
        matrix.check();
        let PlainMatrix { k, n, .. } = *matrix;
        let elements = k.checked_mul(n)?;
        if elements < FEWEST || !promises_zeros(matrix.data.data) {
            return None;
        }
        let (zeros, one) = strip_rows(isa.lanes(), matrix);
        let (_, two) = strip_rows(2 * isa.lanes(), matrix);
        let lanes = isa.lanes();
        let two = SparseLayout::Strips(2).is_offered(isa).then_some(2 * two);
        let pairs = is_two_of_four(matrix).then(|| k / GROUP * KEPT * n.div_ceil(lanes));
        let kept = [Some(one), two, pairs, Some(elements - zeros)];
        let zeros = zeros as f64 / elements as f64;
        let dense_bytes = size_of::<f32>();
        Some(Self { k, n, lanes, zeros, kept, isa, dense_bytes })
    }

    /// The same beside dense weights of half the size.
    #[must_use]
    pub fn beside_halves(self) -> Self {
        Self { dense_bytes: size_of::<u16>(), ..self }
    }

    /// Share of the elements that are zero.
    #[must_use]
    pub fn zeros(&self) -> f64 {
        self.zeros
    }

    /// The layouts that are expected to be faster than a dense product of `m` rows, best first.
    #[must_use]
    pub fn layouts(&self, m: usize) -> Vec<SparseLayout> {
        let dense = self.dense_cost(m);
        let mut found: Vec<(f64, SparseLayout)> = SparseLayout::ALL
            .into_iter()
            .zip(self.kept)
            .filter_map(|(layout, kept)| Some((self.cost(m, layout, kept?), layout)))
            .filter(|(cost, _)| *cost < WORTHWHILE * dense)
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.into_iter().map(|(_, layout)| layout).collect()
    }

    /// The share of the time of a dense product of `m` rows that a layout is expected to take.
    #[must_use]
    pub fn share(&self, m: usize, layout: SparseLayout) -> Option<f64> {
        let at = SparseLayout::ALL.iter().position(|other| *other == layout)?;
        Some(self.cost(m, layout, self.kept[at]?) / self.dense_cost(m))
    }

    /// About how many vectors a dense product multiplies and adds.
    fn dense_cost(&self, m: usize) -> f64 {
        let vectors = self.k * self.n.div_ceil(self.lanes);
        let read = self.read(vectors * self.lanes) * self.dense_bytes as f64;
        m as f64 * vectors as f64 + read / size_of::<f32>() as f64
    }

    /// The same for what comes from memory meanwhile.
    fn read(&self, floats: usize) -> f64 {
        (floats * size_of::<f32>()) as f64 / BYTES_PER_STEP
    }

    /// About how many vectors a dense product multiplies and adds in the time of a sparse one.
    fn cost(&self, m: usize, layout: SparseLayout, kept: usize) -> f64 {
        let effort = match layout {
            SparseLayout::Strips(1) => 1.4,
            SparseLayout::Strips(_) => 1.25,
            // Terms are picked by one unit of the processor, where two multiply.
            SparseLayout::TwoOfFour if self.lanes >= 16 => 2.0,
            SparseLayout::TwoOfFour => 2.8,
            SparseLayout::Columns => {
                let tile = ColumnTiling::of(self.isa, ProductSize { m, k: self.k, n: self.n });
                let terms = tile.tiles as f64 * kept as f64;
                let each = tile.vectors as f64 * COLUMN_VECTOR + COLUMN_TERM;
                let starts = tile.tiles * tile.passes * self.n;
                let turned = (m * self.k) as f64 / self.lanes as f64 * TURNED_VECTOR;
                return terms * each + starts as f64 * LIST_START + turned + self.read(2 * kept);
            }
        };
        m as f64 * kept as f64 * effort + self.read(kept * self.lanes)
    }
}

/// Time of a vector of a column's tile, as a multiple of one of a dense product.
const COLUMN_VECTOR: f64 = 1.2;

/// Time of a term of a column's list beside its vectors.
const COLUMN_TERM: f64 = 5.5;

/// Time of a list beside its terms.
const LIST_START: f64 = 100.0;

/// Time in which a vector of A is transposed.
const TURNED_VECTOR: f64 = 6.0;

/// Returns whether a few stretches of elements have many zeros; where they have few, so have all.
pub(crate) fn promises_zeros(elements: &[f32]) -> bool {
    let stretch = PROBE.min(elements.len());
    let last = elements.len() - stretch;
    let zeros = (0..PROBES).map(|probe| {
        let start = last * probe / (PROBES - 1);
        elements[start..start + stretch].iter().filter(|x| **x == 0.0).count()
    });
    zeros.sum::<usize>() as f64 >= PROBED_ZEROS * (PROBES * stretch).max(1) as f64
}

/// Number of zeros, and of rows of strips `width` wide that are not zero as a whole.
fn strip_rows(width: usize, matrix: &PlainMatrix<'_>) -> (usize, usize) {
    let PlainMatrix { data, k, n, trans } = *matrix;
    let (mut zeros, mut rows) = (0, 0);
    let mut counts = vec![0_usize; k];
    for first in (0..n).step_by(width) {
        let columns = width.min(n - first);
        counts.fill(0);
        for line in 0..(if trans == Transposition::No { k } else { columns }) {
            match trans {
                Transposition::No => {
                    let row = &data.data[line * data.stride + first..][..columns];
                    counts[line] += row.iter().filter(|x| **x == 0.0).count();
                }
                Transposition::Yes => {
                    let column = &data.data[(first + line) * data.stride..][..k];
                    for (count, x) in counts.iter_mut().zip(column) {
                        *count += usize::from(*x == 0.0);
                    }
                }
            }
        }
        zeros += counts.iter().sum::<usize>();
        rows += counts.iter().filter(|count| **count < columns).count();
    }
    (zeros, rows)
}

/// Returns whether of four adjacent terms of a column at most two are not zero.
pub(super) fn is_two_of_four(matrix: &PlainMatrix<'_>) -> bool {
    let PlainMatrix { data, k, n, trans } = *matrix;
    if !k.is_multiple_of(GROUP) {
        return false;
    }
    let few = |count: u8| usize::from(count) <= KEPT;
    match trans {
        Transposition::Yes => (0..n).all(|column| {
            let groups = data.data[column * data.stride..][..k].chunks_exact(GROUP);
            groups.into_iter().all(|group| group.iter().filter(|x| **x != 0.0).count() <= KEPT)
        }),
        Transposition::No => {
            let mut counts = vec![0_u8; n];
            (0..k / GROUP).all(|group| {
                counts.fill(0);
                for row in group * GROUP..(group + 1) * GROUP {
                    for (count, x) in counts.iter_mut().zip(&data.data[row * data.stride..][..n]) {
                        *count += u8::from(*x != 0.0);
                    }
                }
                counts.iter().all(|count| few(*count))
            })
        }
    }
}
