//! The packed forms of a sparse matrix, and what tasks see of them.

use galatea_tensor::Tensor;

use super::pattern::{SparseLayout, is_two_of_four};
use super::plain::{GROUP, KEPT, PlainMatrix};
use super::tiling::LIST_TERMS;
use crate::gemm::depth::depth_blocks;
use crate::gemm::layout::LINE;
use crate::isa::Isa;
use crate::memory::{AlignedFloats, PackedStorage};

/// Groups whose positions one word of 32 bits holds.
pub(super) const GROUPS_PER_WORD: usize = 8;

/// Words of an entry of a column's list: the term and its weight.
pub(super) const ENTRY_WORDS: usize = 2;

/// Words of the table for a list: where it starts and how many entries it has.
const TABLE_WORDS: usize = 2;

/// The right-hand matrix of a product, packed without most of its zeros.
#[derive(Clone)]
pub struct PackedSparse {
    isa: Isa,
    k: usize,
    n: usize,
    layout: SparseLayout,
    data: PackedStorage,
}

impl std::fmt::Debug for PackedSparse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { isa, k, n, layout, .. } = self;
        write!(f, "PackedSparse {{ k: {k}, n: {n}, {}, isa: {} }}", layout.name(), isa.name())
    }
}

/// A strip of columns of a panel, and how many vectors it has.
#[derive(Clone, Copy, Debug)]
struct PanelStrip {
    first: usize,
    columns: usize,
    vectors: usize,
}

/// The strips of all panels, from left to right.
fn strips(isa: Isa, n: usize, layout: SparseLayout) -> impl Iterator<Item = PanelStrip> {
    let width = layout.vectors() * isa.lanes();
    (0..n).step_by(width).map(move |first| {
        let columns = width.min(n - first);
        PanelStrip { first, columns, vectors: columns.div_ceil(isa.lanes()) }
    })
}

impl PackedSparse {
    /// Packs a matrix for `isa`, whose zeros `pattern` tells of; `None` where the layout cannot hold
    /// it.
    ///
    /// # Panics
    /// Panics when the matrix is shorter than it says, or its stride is less than its rows.
    #[must_use]
    pub fn pack(isa: Isa, matrix: PlainMatrix<'_>, layout: SparseLayout) -> Option<Self> {
        matrix.check();
        let PlainMatrix { k, n, .. } = matrix;
        let fits = layout.is_offered(isa) && k.checked_mul(n)? < u32::MAX as usize / 4;
        if !fits || (layout == SparseLayout::TwoOfFour && !is_two_of_four(&matrix)) {
            return None;
        }
        if layout == SparseLayout::Columns {
            return Some(Self::pack_columns(isa, matrix));
        }
        let blocks = depth_blocks(k).count();
        let table = (strips(isa, n, layout).count() * blocks * TABLE_WORDS).next_multiple_of(LINE);
        let mut words = vec![0_u32; table];
        let all: Vec<PanelStrip> = strips(isa, n, layout).collect();
        let together = isa.tile_columns() / (layout.vectors() * isa.lanes());
        // In the order in which a product reads them: panel by panel, block by block.
        for (panel, panel_strips) in all.chunks(together).enumerate() {
            for (block, depth) in depth_blocks(k).enumerate() {
                for (i, &strip) in panel_strips.iter().enumerate() {
                    let start = words.len();
                    let (first, terms) = (depth.start, depth.terms);
                    let part = PackedPart { isa, matrix, strip, first, terms };
                    let count = match layout {
                        SparseLayout::Strips(_) => part.rows_left(&mut words),
                        _ => part.pairs(&mut words),
                    };
                    let entry = ((panel * together + i) * blocks + block) * TABLE_WORDS;
                    words[entry] = u32::try_from(start / LINE).ok()?;
                    words[entry + 1] = u32::try_from(count).ok()?;
                }
            }
        }
        Some(Self { isa, k, n, layout, data: stored(&words) })
    }

    /// Packs the lists of all columns behind a table of where each block of terms starts.
    fn pack_columns(isa: Isa, matrix: PlainMatrix<'_>) -> Self {
        let PlainMatrix { k, n, .. } = matrix;
        let lists = k.div_ceil(LIST_TERMS);
        let table = (n * lists + 1).next_multiple_of(LINE);
        let mut words = vec![0_u32; table];
        let entries = |words: &[u32]| word((words.len() - table) / ENTRY_WORDS);
        for column in 0..n {
            for list in 0..lists {
                words[column * lists + list] = entries(&words);
                for row in list * LIST_TERMS..k.min((list + 1) * LIST_TERMS) {
                    let value = matrix.at(row, column);
                    if value != 0.0 {
                        words.extend([word(row), value.to_bits()]);
                    }
                }
            }
        }
        words[n * lists] = entries(&words);
        words.resize(words.len().next_multiple_of(LINE), 0);
        let layout = SparseLayout::Columns;
        Self { isa, k, n, layout, data: stored(&words) }
    }

    /// A matrix that was packed before: [`PackedSparse::data`] of that time, in a vector from the
    /// position `at` on, `len` floats. `None` where they are no such matrix.
    #[must_use]
    pub fn from_data(
        isa: Isa,
        size: crate::MatrixSize,
        layout: SparseLayout,
        all: &Tensor,
        at: usize,
    ) -> Option<Self> {
        let len = all.elements().checked_sub(at)?;
        if len % LINE != 0 || !layout.is_offered(isa) {
            return None;
        }
        let data = PackedStorage::given(all, at, len)?;
        let packed = Self { isa, k: size.rows, n: size.columns, layout, data };
        packed.is_sound().then_some(packed)
    }

    /// Returns whether every list lies inside the data and names terms of its block.
    fn is_sound(&self) -> bool {
        let Self { isa, k, n, layout, .. } = *self;
        if layout == SparseLayout::Columns {
            return self.has_sound_columns();
        }
        let data = self.data.as_slice();
        let word = |at: usize| data.get(at).map(|word| word.to_bits() as usize);
        let mut entry = 0;
        for strip in strips(isa, n, layout) {
            for block in depth_blocks(k) {
                let (Some(line), Some(count)) = (word(entry), word(entry + 1)) else {
                    return false;
                };
                entry += TABLE_WORDS;
                let width = strip.vectors * isa.lanes();
                let start = line * LINE;
                let sound = match layout {
                    SparseLayout::Strips(_) => {
                        let indices = data.get(start..start + count);
                        let end = start + count.next_multiple_of(LINE) + count * width;
                        end <= data.len()
                            && indices.is_some_and(|all| {
                                all.iter().all(|index| (index.to_bits() as usize) < block.terms)
                            })
                    }
                    _ => {
                        let words = count.div_ceil(GROUPS_PER_WORD);
                        count * GROUP == block.terms
                            && start + (words + count * KEPT) * width <= data.len()
                    }
                };
                if !sound {
                    return false;
                }
            }
        }
        true
    }

    /// Returns whether the lists of columns follow each other and name terms of their blocks.
    fn has_sound_columns(&self) -> bool {
        let lists = self.k.div_ceil(LIST_TERMS);
        let table = (self.n * lists + 1).next_multiple_of(LINE);
        let Some((starts, entries)) = self.data.as_slice().split_at_checked(table) else {
            return false;
        };
        let start = |list: usize| starts[list].to_bits() as usize;
        let all = self.n * lists;
        let in_order = (0..all).all(|list| start(list) <= start(list + 1));
        if !in_order || start(0) != 0 || start(all) * ENTRY_WORDS > entries.len() {
            return false;
        }
        (0..all).all(|list| {
            let first = list % lists.max(1) * LIST_TERMS;
            let terms = first..self.k.min(first + LIST_TERMS);
            let own = &entries[start(list) * ENTRY_WORDS..start(list + 1) * ENTRY_WORDS];
            own.chunks_exact(ENTRY_WORDS).all(|x| terms.contains(&(x[0].to_bits() as usize)))
        })
    }

    /// The packed matrix: a whole number of cache lines.
    #[must_use]
    pub fn data(&self) -> &[f32] {
        self.data.as_slice()
    }

    /// Returns whether the packed matrix lies in a mapped file.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.data.is_mapped()
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

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> SparseLayout {
        self.layout
    }

    /// The instruction set that the matrix is packed for.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of_val(self.data.as_slice())
    }

    /// The lists of columns, where the layout has them.
    pub(crate) fn columns(&self) -> Option<SparseColumns> {
        (self.layout == SparseLayout::Columns).then(|| {
            let lists = self.k.div_ceil(LIST_TERMS);
            let table = (self.n * lists + 1).next_multiple_of(LINE);
            let data = self.data.as_slice().as_ptr();
            SparseColumns { starts: data, entries: data.wrapping_add(table), lists }
        })
    }

    pub(crate) fn panels(&self) -> SparsePanels {
        let strips = self.isa.tile_columns() / (self.layout.vectors() * self.isa.lanes());
        SparsePanels {
            data: self.data.as_slice().as_ptr(),
            layout: self.layout,
            blocks: depth_blocks(self.k).count(),
            strips,
        }
    }
}

/// A number as a word. Matrices whose numbers would not fit are not packed.
fn word(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Keeps words as floats.
fn stored(words: &[u32]) -> PackedStorage {
    let mut data = AlignedFloats::lasting(words.len());
    for (float, word) in data.as_mut_slice().iter_mut().zip(words) {
        *float = f32::from_bits(*word);
    }
    PackedStorage::own(data)
}

/// The part of a matrix that one list holds.
struct PackedPart<'a> {
    isa: Isa,
    matrix: PlainMatrix<'a>,
    strip: PanelStrip,
    first: usize,
    terms: usize,
}

impl PackedPart<'_> {
    fn width(&self) -> usize {
        self.strip.vectors * self.isa.lanes()
    }

    fn value(&self, row: usize, lane: usize) -> f32 {
        if lane < self.strip.columns { self.matrix.at(row, self.strip.first + lane) } else { 0.0 }
    }

    /// Appends the rows that are not zero, their positions first; gives their number.
    fn rows_left(&self, words: &mut Vec<u32>) -> usize {
        let rows = self.first..self.first + self.terms;
        let is_left =
            |row: &usize| (0..self.strip.columns).any(|lane| self.value(*row, lane) != 0.0);
        let left: Vec<usize> = rows.filter(is_left).collect();
        words.extend(left.iter().map(|row| word(row - self.first)));
        words.resize(words.len().next_multiple_of(LINE), 0);
        for &row in &left {
            words.extend((0..self.width()).map(|lane| self.value(row, lane).to_bits()));
        }
        words.resize(words.len().next_multiple_of(LINE), 0);
        left.len()
    }

    /// Appends two of each four terms, the positions of eight groups before their values; gives the
    /// number of groups.
    fn pairs(&self, words: &mut Vec<u32>) -> usize {
        let groups = self.terms / GROUP;
        let width = self.width();
        for part in 0..groups.div_ceil(GROUPS_PER_WORD) {
            let positions = words.len();
            words.resize(positions + width, 0);
            let end = groups.min((part + 1) * GROUPS_PER_WORD);
            for group in part * GROUPS_PER_WORD..end {
                let values = words.len();
                words.resize(values + KEPT * width, 0);
                for lane in 0..width {
                    let row = self.first + group * GROUP;
                    let kept = (0..GROUP).filter(|&term| self.value(row + term, lane) != 0.0);
                    for (at, term) in kept.take(KEPT).enumerate() {
                        let step = (group % GROUPS_PER_WORD) * KEPT + at;
                        words[values + at * width + lane] = self.value(row + term, lane).to_bits();
                        words[positions + lane] |= word(term) << (2 * step);
                    }
                }
            }
        }
        words.resize(words.len().next_multiple_of(LINE), 0);
        groups
    }
}

/// A packed sparse matrix as a task sees it.
#[derive(Clone, Copy)]
pub(crate) struct SparsePanels {
    data: *const f32,
    pub(super) layout: SparseLayout,
    /// Blocks of depth.
    blocks: usize,
    /// Strips of a panel of the dense machine.
    pub(super) strips: usize,
}

// SAFETY: a read-only view of a slice that the caller of the product holds while tasks run.
unsafe impl Send for SparsePanels {}
// SAFETY: as for Send.
unsafe impl Sync for SparsePanels {}

/// A list of terms of a strip.
#[derive(Clone, Copy)]
pub(super) struct SparseList {
    pub(super) data: *const f32,
    pub(super) count: usize,
}

impl SparsePanels {
    /// The list of a strip, counted over all panels, for a block of depth.
    ///
    /// # Safety
    /// The matrix has the strip and the block.
    #[inline(always)]
    pub(super) unsafe fn list(&self, strip: usize, block: usize) -> SparseList {
        let entry = (strip * self.blocks + block) * TABLE_WORDS;
        // SAFETY: the caller vouches for the entry.
        unsafe {
            let line = (*self.data.add(entry)).to_bits() as usize;
            let count = (*self.data.add(entry + 1)).to_bits() as usize;
            SparseList { data: self.data.add(line * LINE), count }
        }
    }
}

/// The lists of columns as a task sees them.
#[derive(Clone, Copy)]
pub(crate) struct SparseColumns {
    starts: *const f32,
    entries: *const f32,
    /// Lists of a column.
    pub(super) lists: usize,
}

// SAFETY: a read-only view of a slice that the caller of the product holds while tasks run.
unsafe impl Send for SparseColumns {}
// SAFETY: as for Send.
unsafe impl Sync for SparseColumns {}

impl SparseColumns {
    /// Some adjacent lists of a column: the first entry and the number of entries.
    ///
    /// # Safety
    /// The matrix has the column and the lists.
    #[inline(always)]
    pub(super) unsafe fn entries(
        &self,
        column: usize,
        lists: std::ops::Range<usize>,
    ) -> (*const f32, usize) {
        let at = column * self.lists;
        // SAFETY: the caller vouches for the lists.
        unsafe {
            let start = (*self.starts.add(at + lists.start)).to_bits() as usize;
            let end = (*self.starts.add(at + lists.end)).to_bits() as usize;
            (self.entries.add(start * ENTRY_WORDS), end - start)
        }
    }
}

/// A place in a sparse matrix.
#[derive(Clone, Copy)]
pub(crate) struct SparseBlock {
    /// The panel's number.
    pub(crate) panel: usize,
    /// The number of the block of depth.
    pub(crate) block: usize,
}
