//! Where the operands of a product come from: panels of B packed once, rows of A copied per block.

use super::layout::{LINE, Transposition};
use super::micro::{A_STRIDE, K_BLOCK, PrefetchStretch};
use super::sparse::{PackedSparse, SparsePanels};
use crate::isa::{Isa, IsaKernel, Simd};
use crate::memory::{AlignedFloats, DisjointSlice, PackedStorage};
use galatea_tensor::Tensor;
use half::f16;

/// The right-hand matrix of a product, cut into panels as wide as the register tile.
///
/// A panel holds its `k` rows one after the other, so a product reads it as one stream. The last
/// panel is as wide as whole vectors need, padded with zero columns.
#[derive(Clone)]
pub struct PackedB {
    isa: Isa,
    k: usize,
    n: usize,
    width: usize,
    data: PackedStorage,
}

impl std::fmt::Debug for PackedB {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { isa, k, n, width, .. } = self;
        write!(f, "PackedB {{ k: {k}, n: {n}, width: {width}, isa: {} }}", isa.name())
    }
}

impl PackedB {
    /// Packs a `k` x `n` matrix for `isa`. With [`Transposition::No`] `b` holds `k` rows of `n`, `ldb`
    /// apart; with [`Transposition::Yes`] it holds `n` rows of `k`, `ldb` apart.
    ///
    /// # Panics
    /// Panics when `b` is shorter than the matrix, or `ldb` is less than the length of its rows.
    #[must_use]
    pub fn pack(isa: Isa, k: usize, n: usize, b: &[f32], ldb: usize, trans: Transposition) -> Self {
        let (rows, columns) = if trans == Transposition::No { (k, n) } else { (n, k) };
        super::check_matrix("B", b.len(), rows, columns, ldb);
        let width = isa.tile_columns();
        let mut data = AlignedFloats::lasting(Self::len(isa, k, n));
        let out = data.as_mut_slice().as_mut_ptr();
        for (panel, start) in (0..n).step_by(width).enumerate() {
            let columns = width.min(n - start);
            let offset = if trans == Transposition::No { start } else { start * ldb };
            isa.run(PackPanel {
                b: b.as_ptr().wrapping_add(offset),
                ldb,
                trans,
                k,
                columns,
                out: out.wrapping_add(panel * width * k),
            });
        }
        Self { isa, k, n, width, data: PackedStorage::own(data) }
    }

    /// How many floats a packed `k` x `n` matrix has.
    fn len(isa: Isa, k: usize, n: usize) -> usize {
        let columns = n.div_ceil(isa.lanes()).saturating_mul(isa.lanes());
        columns.saturating_mul(k).div_ceil(LINE).saturating_mul(LINE)
    }

    /// A matrix that was packed before, for the same `isa`: [`PackedB::data`] of that time, in a
    /// vector from the position `at` on. `None` where the vector ends before, or starts on no cache line
    /// there.
    #[must_use]
    pub fn from_data(isa: Isa, k: usize, n: usize, all: &Tensor, at: usize) -> Option<Self> {
        let data = PackedStorage::given(all, at, Self::len(isa, k, n))?;
        Some(Self { isa, k, n, width: isa.tile_columns(), data })
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

    pub(crate) fn as_source(&self) -> BSource {
        BSource { data: self.data.as_slice().as_ptr(), form: PanelForm::Packed { k: self.k } }
    }
}

/// Packs `k` rows of `columns` columns into a panel, padded with zeros.
struct PackPanel {
    b: *const f32,
    ldb: usize,
    trans: Transposition,
    k: usize,
    columns: usize,
    out: *mut f32,
}

impl IsaKernel for PackPanel {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // SAFETY: `PackedB::pack` has checked B and allotted whole panels.
        unsafe { pack_panel(s, self.b, self.ldb, self.trans, self.k, self.columns, self.out) };
    }
}

/// Packs a panel as wide as the vectors that `columns` need, and gives that width.
///
/// # Safety
/// `b` is valid for the `k` x `columns` part; `out` for `k` rows of that width.
#[inline(always)]
pub(crate) unsafe fn pack_panel<S: Simd>(
    s: S,
    b: *const f32,
    ldb: usize,
    trans: Transposition,
    k: usize,
    columns: usize,
    out: *mut f32,
) -> usize {
    let width = columns.next_multiple_of(S::LANES);
    for first in (0..width).step_by(S::LANES) {
        let here = (columns - first).min(S::LANES);
        let out = out.wrapping_add(first);
        // SAFETY: lanes first..first + here are columns of B; out has whole rows.
        unsafe {
            match trans {
                Transposition::No => {
                    let m = s.tail(here);
                    for row in 0..k {
                        let x = if here == S::LANES {
                            s.load(b.add(row * ldb + first))
                        } else {
                            s.load_tail(b.add(row * ldb + first), m)
                        };
                        s.store(out.add(row * width), x);
                    }
                }
                Transposition::Yes => {
                    transpose_into(s, b.wrapping_add(first * ldb), ldb, here, k, out, width);
                }
            }
        }
    }
    width
}

/// Writes `rows` (at most `LANES`) rows of `k` values as `k` rows of `LANES`, padded with zeros.
///
/// # Safety
/// `src` is valid for the rows, `dst` for `k` rows of `LANES`, `dst_stride` apart.
#[inline(always)]
unsafe fn transpose_into<S: Simd>(
    s: S,
    src: *const f32,
    src_stride: usize,
    rows: usize,
    k: usize,
    dst: *mut f32,
    dst_stride: usize,
) {
    let mut done = 0;
    if rows == S::LANES {
        while done + S::LANES <= k {
            // SAFETY: a whole block inside both.
            unsafe {
                s.transpose_block(
                    src.add(done),
                    src_stride,
                    dst.add(done * dst_stride),
                    dst_stride,
                );
            }
            done += S::LANES;
        }
    }
    for kk in done..k {
        for r in 0..S::LANES {
            // SAFETY: r < rows for reads; every lane of row kk may be written.
            unsafe {
                let x = if r < rows { *src.add(r * src_stride + kk) } else { 0.0 };
                *dst.add(kk * dst_stride + r) = x;
            }
        }
    }
}

/// The right-hand matrix of a product, rounded to FP16: panels as those of [`PackedB`] in half the
/// memory. A product widens a block of a panel into the first-level cache before all rows of a chunk
/// meet it, so operands on the left and sums are FP32, and the weights have 11 significant bits.
///
/// Values beyond 65504 become infinite, and those below 2^-14 lose digits.
#[derive(Clone)]
pub struct PackedFp16 {
    isa: Isa,
    k: usize,
    n: usize,
    data: PackedStorage,
}

impl std::fmt::Debug for PackedFp16 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { isa, k, n, .. } = self;
        write!(f, "PackedFp16 {{ k: {k}, n: {n}, isa: {} }}", isa.name())
    }
}

impl PackedFp16 {
    /// Packs a `k` x `n` matrix for `isa`; arguments as for [`PackedB::pack`].
    ///
    /// # Panics
    /// Panics like [`PackedB::pack`].
    #[must_use]
    pub fn pack(isa: Isa, k: usize, n: usize, b: &[f32], ldb: usize, trans: Transposition) -> Self {
        let (rows, columns) = if trans == Transposition::No { (k, n) } else { (n, k) };
        super::check_matrix("B", b.len(), rows, columns, ldb);
        let width = isa.tile_columns();
        let mut data = AlignedFloats::lasting(Self::len(isa, k, n));
        let (halves, _) = data.as_bytes_mut().as_chunks_mut::<{ size_of::<f16>() }>();
        for column in 0..n {
            let panel = column / width * width;
            let stride = width.min(n - panel).next_multiple_of(isa.lanes());
            let start = panel * k + column - panel;
            for row in 0..k {
                let from = if trans == Transposition::No {
                    row * ldb + column
                } else {
                    column * ldb + row
                };
                halves[start + row * stride] = f16::from_f32(b[from]).to_ne_bytes();
            }
        }
        Self { isa, k, n, data: PackedStorage::own(data) }
    }

    /// How many floats the room of a packed `k` x `n` matrix has.
    fn len(isa: Isa, k: usize, n: usize) -> usize {
        PackedB::len(isa, k, n).div_ceil(2).next_multiple_of(LINE)
    }

    /// A matrix that was packed before, as [`PackedB::from_data`].
    #[must_use]
    pub fn from_data(isa: Isa, k: usize, n: usize, all: &Tensor, at: usize) -> Option<Self> {
        Some(Self { isa, k, n, data: PackedStorage::given(all, at, Self::len(isa, k, n))? })
    }

    /// The packed matrix, two FP16 in the place of an FP32: a whole number of cache lines.
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

    pub(crate) fn as_source(&self) -> BSource {
        BSource { data: self.data.as_slice().as_ptr(), form: PanelForm::Halves { k: self.k } }
    }
}

impl PackedSparse {
    pub(crate) fn as_source(&self) -> BSource {
        BSource { data: std::ptr::null(), form: PanelForm::Sparse(self.panels()) }
    }
}

/// The right-hand matrix as a task sees it.
#[derive(Clone, Copy)]
pub(crate) struct BSource {
    data: *const f32,
    form: PanelForm,
}

#[derive(Clone, Copy)]
enum PanelForm {
    /// Panels of `k` rows.
    Packed { k: usize },
    /// The same of FP16, widened block by block into scratch.
    Halves { k: usize },
    /// Panels without most zeros.
    Sparse(SparsePanels),
    /// A matrix in memory, packed block by block into scratch.
    Raw { ld: usize, trans: Transposition },
}

// SAFETY: a read-only view of a slice that the caller of the product holds while tasks run.
unsafe impl Send for BSource {}
// SAFETY: as for Send.
unsafe impl Sync for BSource {}

/// A block of a panel, ready for a register tile.
#[derive(Clone, Copy)]
pub(crate) struct PanelBlock {
    pub(crate) data: *const f32,
    pub(crate) stride: usize,
}

impl PanelBlock {
    /// No panel: a sparse matrix has lists.
    pub(crate) const NOTHING: Self = Self { data: std::ptr::null(), stride: 0 };
}

impl BSource {
    pub(crate) fn raw(data: *const f32, ld: usize, trans: Transposition) -> Self {
        Self { data, form: PanelForm::Raw { ld, trans } }
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.form, PanelForm::Packed { .. } | PanelForm::Sparse(_))
    }

    /// The panels of a sparse matrix.
    #[inline(always)]
    pub(crate) fn as_sparse(&self) -> Option<&SparsePanels> {
        match &self.form {
            PanelForm::Sparse(panels) => Some(panels),
            _ => None,
        }
    }

    /// Where rows `k0..k0 + k` of the panel that starts at column `start` lie, if they are packed.
    #[inline(always)]
    pub(crate) fn ahead(&self, k0: usize, k: usize, start: usize, width: usize) -> PrefetchStretch {
        match self.form {
            PanelForm::Packed { k: depth } => PrefetchStretch::floats(
                self.data.wrapping_add(start * depth + k0 * width),
                k * width,
            ),
            PanelForm::Halves { k: depth } => {
                let start = (start * depth + k0 * width) / 2;
                PrefetchStretch::floats(self.data.wrapping_add(start), k * width / 2)
            }
            PanelForm::Sparse(_) | PanelForm::Raw { .. } => PrefetchStretch::NOTHING,
        }
    }

    /// Rows `k0..k0 + k` of the panel that starts at column `start` (a multiple of the tile
    /// width) and has `columns` columns.
    ///
    /// # Safety
    /// The block is inside the matrix; `scratch` is valid for [`K_BLOCK`] rows of the tile width
    /// unless the matrix is packed, and `k <= K_BLOCK` then.
    #[inline(always)]
    pub(crate) unsafe fn panel<S: Simd>(
        &self,
        s: S,
        k0: usize,
        k: usize,
        start: usize,
        columns: usize,
        scratch: *mut f32,
    ) -> PanelBlock {
        match self.form {
            PanelForm::Packed { k: depth } => {
                let stride = columns.next_multiple_of(S::LANES);
                PanelBlock { data: self.data.wrapping_add(start * depth + k0 * stride), stride }
            }
            PanelForm::Halves { k: depth } => {
                let width = columns.next_multiple_of(S::LANES);
                let from = self.data.cast::<u16>().wrapping_add(start * depth + k0 * width);
                let mut at = 0;
                while at < k * width {
                    // SAFETY: the caller vouches for the block and for the scratch; rows are whole
                    // vectors.
                    unsafe { s.store(scratch.add(at), s.load_f16(from.add(at))) };
                    at += S::LANES;
                }
                PanelBlock { data: scratch, stride: width }
            }
            // Multiplied as it is, without a panel.
            PanelForm::Sparse(_) => PanelBlock::NOTHING,
            PanelForm::Raw { ld, trans } => {
                let offset =
                    if trans == Transposition::No { k0 * ld + start } else { start * ld + k0 };
                // SAFETY: the caller vouches for the block and for the scratch.
                let stride = unsafe {
                    let b = self.data.add(offset);
                    pack_panel(s, b, ld, trans, k, columns, scratch)
                };
                PanelBlock { data: scratch, stride }
            }
        }
    }
}

/// The left-hand matrix of a product: something that copies rows into a block.
pub(crate) trait RowSource: Copy + Send + Sync {
    /// Copies columns `k0..k0 + k` of rows `row..row + rows` to `out`, [`A_STRIDE`] apart.
    ///
    /// # Safety
    /// The part is inside the matrix, `k <= K_BLOCK`, and `out` is valid for `rows` block rows.
    unsafe fn copy<S: Simd>(
        &self,
        s: S,
        row: usize,
        rows: usize,
        k0: usize,
        k: usize,
        out: *mut f32,
    );

    /// Rows as they lie in memory, where they do: the pointer to row 0 and the row stride.
    fn direct(&self) -> Option<(*const f32, usize)>;
}

/// A matrix in memory, `stride` between rows.
#[derive(Clone, Copy)]
pub(crate) struct DenseRows {
    data: *const f32,
    stride: usize,
}

// SAFETY: a read-only view of a slice that the caller of the product holds while tasks run.
unsafe impl Send for DenseRows {}
// SAFETY: as for Send.
unsafe impl Sync for DenseRows {}

impl DenseRows {
    pub(crate) fn new(data: *const f32, stride: usize) -> Self {
        Self { data, stride }
    }
}

impl RowSource for DenseRows {
    #[inline(always)]
    unsafe fn copy<S: Simd>(
        &self,
        s: S,
        row: usize,
        rows: usize,
        k0: usize,
        k: usize,
        out: *mut f32,
    ) {
        // SAFETY: the caller vouches for the part and for the block rows.
        unsafe { copy_rows(s, self.data.add(row * self.stride + k0), self.stride, rows, k, out) };
    }

    fn direct(&self) -> Option<(*const f32, usize)> {
        Some((self.data, self.stride))
    }
}

/// A matrix stored transposed: element (row, k) at `k * stride + row`.
#[derive(Clone, Copy)]
pub(crate) struct TransposedRows {
    data: *const f32,
    stride: usize,
}

// SAFETY: a read-only view of a slice that the caller of the product holds while tasks run.
unsafe impl Send for TransposedRows {}
// SAFETY: as for Send.
unsafe impl Sync for TransposedRows {}

impl TransposedRows {
    pub(crate) fn new(data: *const f32, stride: usize) -> Self {
        Self { data, stride }
    }
}

impl RowSource for TransposedRows {
    #[inline(always)]
    unsafe fn copy<S: Simd>(
        &self,
        s: S,
        row: usize,
        rows: usize,
        k0: usize,
        k: usize,
        out: *mut f32,
    ) {
        debug_assert!(k <= K_BLOCK);
        let src = self.data.wrapping_add(k0 * self.stride + row);
        // Whole blocks of LANES terms; `rows` may be anything.
        let mut kk = 0;
        while kk < k {
            let terms = S::LANES.min(k - kk);
            // SAFETY: terms kk..kk + terms of all rows; the caller vouches for them.
            unsafe {
                let src = src.add(kk * self.stride);
                let out = out.add(kk);
                let mut r = 0;
                if terms == S::LANES {
                    while r + S::LANES <= rows {
                        let dst = out.add(r * A_STRIDE);
                        s.transpose_block(src.add(r), self.stride, dst, A_STRIDE);
                        r += S::LANES;
                    }
                }
                for r in r..rows {
                    for t in 0..terms {
                        *out.add(r * A_STRIDE + t) = *src.add(t * self.stride + r);
                    }
                }
            }
            kk += terms;
        }
    }

    fn direct(&self) -> Option<(*const f32, usize)> {
        None
    }
}

/// Copies `rows` rows of `n` values, `stride` apart, to block rows ([`A_STRIDE`] apart).
///
/// # Safety
/// `src` and `dst` are valid for the rows and do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_rows<S: Simd>(
    s: S,
    mut src: *const f32,
    stride: usize,
    rows: usize,
    n: usize,
    mut dst: *mut f32,
) {
    let whole = n / S::LANES * S::LANES;
    let mask = s.tail(n - whole);
    for _ in 0..rows {
        let mut i = 0;
        // SAFETY: every access is below n, in a row that the caller vouches for.
        unsafe {
            while i < whole {
                s.store(dst.add(i), s.load(src.add(i)));
                i += S::LANES;
            }
            if whole < n {
                s.store_tail(dst.add(i), mask, s.load_tail(src.add(i), mask));
            }
        }
        src = src.wrapping_add(stride);
        dst = dst.wrapping_add(A_STRIDE);
    }
}

/// Copies `n` values.
///
/// # Safety
/// `src` and `dst` are valid for `n` values and do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_run<S: Simd>(s: S, src: *const f32, n: usize, dst: *mut f32) {
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + S::LANES <= n {
            s.store(dst.add(i), s.load(src.add(i)));
            i += S::LANES;
        }
        if i < n {
            let m = s.tail(n - i);
            s.store_tail(dst.add(i), m, s.load_tail(src.add(i), m));
        }
    }
}

/// Writes `n` zeros.
///
/// # Safety
/// `dst` is valid for `n` values.
#[inline(always)]
pub(crate) unsafe fn zero_run<S: Simd>(s: S, n: usize, dst: *mut f32) {
    let zero = s.splat(0.0);
    let mut i = 0;
    // SAFETY: every access is below n.
    unsafe {
        while i + S::LANES <= n {
            s.store(dst.add(i), zero);
            i += S::LANES;
        }
        if i < n {
            s.store_tail(dst.add(i), s.tail(n - i), zero);
        }
    }
}

/// A block buffer shared by tasks that each fill some of its rows.
pub(crate) type SharedPanelBlock = DisjointSlice<f32>;
