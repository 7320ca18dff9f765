//! Products of two matrices of a run, whose operands are rounded to BF16 as they are packed.
//!
//! The right-hand matrix is packed in groups of columns that stay in the cache, and each group is
//! multiplied at once. Products of a batch are divided between threads where there are enough of
//! them, and a single one by its rows and panels.

use super::panels::{PackColumns, PackRows, panel_floats};
use super::write::Bf16ResultCells;
use super::{
    Bf16Epilogue, Bf16Panels, Bf16Product, Bf16Summand, PANEL, STEP, multiply, multiply_here,
    rows_of,
};
use crate::KernelContext;
use crate::cell::{RealCell, RealSlice, RealsMut};
use crate::gemm::{DenseRows, GemmEpilogue, TileFinish, Transposition, check_matrix};
use crate::isa::{Bf16Isa, Isa};
use crate::matrix::{ProductSize, StridedMatrix};
use crate::memory::{DisjointSlice, with_scratch};

/// Most bytes of a packed group of columns: what a second-level cache keeps beside rows and sums.
const GROUP_BYTES: usize = 512 << 10;

/// Below this many multiply-adds products are not worth waking threads for.
const SERIAL_TERMS: usize = 200_000;

/// One side of a batched product of FP32 or BF16: matrices of the same size inside a slice.
#[derive(Clone, Copy, Debug)]
pub struct BatchedReals<'a> {
    /// The elements of all matrices.
    pub data: RealSlice<'a>,
    /// Offsets at which the matrices of the batch start; the same one may repeat (broadcast).
    pub offsets: &'a [usize],
    /// Distance between the rows that lie in memory.
    pub ld: usize,
    /// Transposition of the matrix in the multiplication.
    pub trans: Transposition,
}

impl BatchedReals<'_> {
    #[track_caller]
    fn check(&self, name: &str, batch: usize, rows: usize, columns: usize) {
        let (rows, columns) =
            if self.trans == Transposition::No { (rows, columns) } else { (columns, rows) };
        assert!(self.offsets.len() == batch, "{name}: {} offsets", self.offsets.len());
        for &offset in self.offsets {
            check_matrix(name, self.data.len().saturating_sub(offset), rows, columns, self.ld);
        }
    }
}

/// `C[i] = epilogue(A[i] B[i])` for every matrix of a batch, with operands rounded to BF16 and FP32
/// sums; `beside` joins as a residual of BF16.
///
/// Shapes: those of [`crate::gemm::matmul_batched`].
///
/// # Panics
/// Panics like [`crate::gemm::matmul_batched`]. Also panics when A is transposed, or is BF16 and its
/// rows, their distance or an offset are odd.
pub fn matmul_batched_bf16(
    exec: KernelContext<'_>,
    size: ProductSize,
    a: BatchedReals<'_>,
    b: BatchedReals<'_>,
    c: RealsMut<'_>,
    epilogue: &GemmEpilogue<'_>,
    beside: Option<Bf16Summand<'_>>,
) {
    let isa = Bf16Isa::of(exec.isa);
    batched_with(exec, isa, size, a, b, c, Bf16Epilogue { epilogue, beside });
}

/// [`matmul_batched_bf16`] with the instructions named.
pub(super) fn batched_with(
    exec: KernelContext<'_>,
    isa: Bf16Isa,
    size: ProductSize,
    a: BatchedReals<'_>,
    b: BatchedReals<'_>,
    c: RealsMut<'_>,
    ending: Bf16Epilogue<'_>,
) {
    let ProductSize { m, k, n } = size;
    let batch = a.offsets.len();
    assert!(a.trans == Transposition::No, "A is transposed");
    a.check("A", batch, m, k);
    b.check("B", batch, k, n);
    let rows = batch.saturating_mul(m);
    check_matrix("C", c.len(), rows, n, n);
    ending.epilogue.check(rows, n);
    if rows == 0 || n == 0 {
        return;
    }
    if let RealSlice::Bf16(_) = a.data {
        let even = a.offsets.iter().all(|offset| offset.is_multiple_of(2));
        assert!(even, "BF16 rows of A begin inside of pairs");
    }
    let (_, pairs) = rows_of(StridedMatrix::new(a.data, a.ld), k);
    let c = Bf16ResultCells::of(c);
    let product = |i: usize| {
        let from = RealRows { data: a.data, offset: a.offsets[i] };
        Bf16Product {
            m,
            n,
            k,
            a: from.rows(a.ld),
            pairs,
            b: Bf16Panels::of(std::ptr::null()),
            c: c.at(i * m * n),
            c_stride: n,
            adds: false,
            finish: TileFinish::new(ending.epilogue).shifted(i * m, 0),
            beside: ending.joined(rows, n, c).map(|beside| beside.shifted(i * m, 0)),
        }
    };
    let packs = PackedGroups { exec, isa, b, k, n };
    let terms = rows.saturating_mul(n).saturating_mul(k);
    let threads = exec.pool.threads();
    if terms < SERIAL_TERMS || threads == 1 {
        packs.multiply_some(0..batch, &product);
    } else if batch >= threads {
        let grain = (SERIAL_TERMS * batch / terms.max(1)).max(1);
        exec.pool.run_ranges(batch, grain, |range| packs.multiply_some(range, &product));
    } else {
        (0..batch).for_each(|i| packs.multiply_shared(b.offsets[i], &product(i)));
    }
}

/// Rows of A.
struct RealRows<'a> {
    data: RealSlice<'a>,
    offset: usize,
}

impl RealRows<'_> {
    /// The rows in the places of FP32, `ld` elements apart.
    fn rows(&self, ld: usize) -> DenseRows {
        match self.data {
            RealSlice::Fp32(a) => DenseRows::new(a.as_ptr().wrapping_add(self.offset), ld),
            RealSlice::Bf16(a) => {
                let start = a.as_ptr().wrapping_add(self.offset);
                DenseRows::new(start.cast(), ld / 2)
            }
        }
    }
}

/// Right-hand matrices that are packed in groups of columns.
struct PackedGroups<'a> {
    exec: KernelContext<'a>,
    isa: Bf16Isa,
    b: BatchedReals<'a>,
    k: usize,
    n: usize,
}

/// A product with a group of columns: its first column, and their number.
struct ColumnGroup {
    first: usize,
    count: usize,
}

impl PackedGroups<'_> {
    /// Columns of a group: whole panels.
    fn group(&self) -> usize {
        let column = self.k.div_ceil(STEP).max(1) * STEP * 2;
        let panels = GROUP_BYTES / column / PANEL;
        (panels.max(1) * PANEL).min(self.n.next_multiple_of(PANEL))
    }

    fn groups(&self) -> impl Iterator<Item = ColumnGroup> + use<> {
        let (n, size) = (self.n, self.group());
        (0..n).step_by(size).map(move |first| ColumnGroup { first, count: size.min(n - first) })
    }

    /// Multiplies some products of a batch on the thread that calls.
    fn multiply_some(
        &self,
        range: std::ops::Range<usize>,
        product: &(impl Fn(usize) -> Bf16Product<DenseRows> + Sync),
    ) {
        with_scratch(panel_floats(self.k, self.group()), |panels| {
            let to = DisjointSlice::new(panels);
            for group in self.groups() {
                let mut packed = None;
                for i in range.clone() {
                    let offset = self.b.offsets[i];
                    if packed != Some(offset) {
                        self.pack(self.exec.isa, offset, &group, to.ptr());
                        packed = Some(offset);
                    }
                    let part = of_group(&product(i), &group, to.ptr());
                    // SAFETY: the lengths are checked, the panels are packed, and nobody else has the
                    // part of C.
                    unsafe { multiply_here(self.isa, &part) };
                }
            }
        });
    }

    /// Multiplies one product on all threads.
    fn multiply_shared(&self, offset: usize, product: &Bf16Product<DenseRows>) {
        let exec = self.exec;
        with_scratch(panel_floats(self.k, self.group()), |panels| {
            let to = DisjointSlice::new(panels);
            for group in self.groups() {
                let panel = panel_floats(self.k, PANEL);
                exec.pool.run_ranges(group.count.div_ceil(PANEL), 4, |range| {
                    let first = range.start * PANEL;
                    let count = (range.end * PANEL).min(group.count) - first;
                    let some = ColumnGroup { first: group.first + first, count };
                    self.pack(exec.isa, offset, &some, to.at(range.start * panel).ptr());
                });
                let part = of_group(product, &group, to.ptr());
                // SAFETY: as above.
                unsafe { multiply(exec, self.isa, &part) };
            }
        });
    }

    /// Packs columns of the matrix that starts at an element.
    fn pack(&self, isa: Isa, offset: usize, group: &ColumnGroup, to: *mut f32) {
        match self.b.data {
            RealSlice::Fp32(b) => self.pack_cells(isa, b.as_ptr(), offset, group, to),
            RealSlice::Bf16(b) => self.pack_cells(isa, b.as_ptr(), offset, group, to),
        }
    }

    fn pack_cells<T: RealCell>(
        &self,
        isa: Isa,
        data: *const T,
        offset: usize,
        group: &ColumnGroup,
        to: *mut f32,
    ) {
        let (ld, terms, columns) = (self.b.ld, self.k, group.count);
        match self.b.trans {
            Transposition::No => {
                let data = data.wrapping_add(offset + group.first);
                isa.run(PackColumns { from: StridedMatrix::new(data, ld), columns, terms, to });
            }
            Transposition::Yes => {
                let data = data.wrapping_add(offset + group.first * ld);
                isa.run(PackRows { from: StridedMatrix::new(data, ld), columns, terms, to });
            }
        }
    }
}

/// The part of a product that a group of columns makes, whose panels lie at `panels`.
fn of_group(
    product: &Bf16Product<DenseRows>,
    group: &ColumnGroup,
    panels: *const f32,
) -> Bf16Product<DenseRows> {
    let column = group.first;
    Bf16Product {
        n: group.count,
        b: Bf16Panels::of(panels.cast()),
        c: product.c.at(column),
        finish: product.finish.shifted(0, column),
        beside: product.beside.map(|beside| beside.shifted(0, column)),
        ..*product
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::gemm::{MatrixJoin, test_values};
    use crate::{ActivationFunction, ThreadPool};

    fn rounded(x: &[f32]) -> Vec<bf16> {
        x.iter().map(|&x| bf16::from_f32(x)).collect()
    }

    /// Lengths of a case: the number of matrices that B has, fewer than products where they repeat.
    struct ProductBatch {
        size: ProductSize,
        batch: usize,
        matrices: usize,
    }

    /// Checks products of FP32 and of BF16, to FP32 and to BF16, against a plain loop.
    fn check(case: &ProductBatch, trans: Transposition, threads: usize) {
        let ProductBatch { size: ProductSize { m, k, n }, batch, matrices } = *case;
        let pool = ThreadPool::new(threads);
        let ld = if trans == Transposition::No { n } else { k } + 2;
        let lines = if trans == Transposition::No { k } else { n };
        let a = rounded(&test_values(batch * m * k, 1));
        let b = rounded(&test_values(matrices * lines * ld, 2));
        let bias = test_values(n, 3);
        let beside = rounded(&test_values(batch * m * n, 4));
        let wide = |x: &[bf16]| -> Vec<f32> { x.iter().map(|x| x.to_f32()).collect() };
        let (a_wide, b_wide, beside_wide) = (wide(&a), wide(&b), wide(&beside));
        let a_offsets: Vec<usize> = (0..batch).map(|i| i * m * k).collect();
        let b_offsets: Vec<usize> = (0..batch).map(|i| i % matrices * lines * ld).collect();
        let want = |at: usize| {
            let (i, row, column) = (at / n / m, at / n % m, at % n);
            let b = |x: usize| match trans {
                Transposition::No => b_wide[b_offsets[i] + x * ld + column],
                Transposition::Yes => b_wide[b_offsets[i] + column * ld + x],
            };
            let a = &a_wide[(i * m + row) * k..][..k];
            let sum: f64 = (0..k).map(|x| f64::from(a[x]) * f64::from(b(x))).sum();
            (sum + f64::from(bias[column]) + f64::from(beside_wide[at])).max(0.0)
        };
        let want: Vec<f64> = (0..batch * m * n).map(want).collect();
        let epilogue = GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
        let joined = Bf16Summand { data: Some(&beside), ld: n, join: MatrixJoin::Add };
        for isa in Bf16Isa::available() {
            let exec = KernelContext::new(&pool);
            for half in [false, true].into_iter().filter(|half| !half || k.is_multiple_of(2)) {
                let of = |half: bool| -> [RealSlice<'_>; 2] {
                    match half {
                        true => [RealSlice::Bf16(&a), RealSlice::Bf16(&b)],
                        false => [RealSlice::Fp32(&a_wide), RealSlice::Fp32(&b_wide)],
                    }
                };
                let [a, b] = of(half);
                let trans_a = Transposition::No;
                let a = BatchedReals { data: a, offsets: &a_offsets, ld: k, trans: trans_a };
                let b = BatchedReals { data: b, offsets: &b_offsets, ld, trans };
                let mut single = vec![f32::NAN; batch * m * n];
                let ending = Bf16Epilogue { epilogue: &epilogue, beside: Some(joined) };
                batched_with(exec, isa, case.size, a, b, (&mut single[..]).into(), ending);
                let mut short = vec![bf16::NAN; batch * m * n];
                batched_with(exec, isa, case.size, a, b, (&mut short[..]).into(), ending);
                for (at, (&single, short)) in single.iter().zip(&short).enumerate() {
                    let want = want[at];
                    let sums = 3e-7 * (k as f64 + 4.0);
                    let what = format!("{} {:?} {trans:?} {half} at {at}", isa.name(), case.size);
                    let near = (f64::from(single) - want).abs() <= sums;
                    assert!(near, "{what}: {single} for {want}");
                    let near = (f64::from(short.to_f32()) - want).abs() <= want / 256.0 + sums;
                    assert!(near, "{what}: {short} for {want}");
                }
            }
        }
    }

    #[test]
    fn products_of_two_matrices_of_a_run_equal_a_plain_loop() {
        for (m, k, n, batch, matrices) in [
            (1, 1, 1, 1, 1),
            (3, 30, 33, 5, 5),
            (17, 64, 40, 4, 2),
            (40, 33, 70, 2, 1),
            (96, 64, 96, 3, 3),
            // More columns than a group has, and more terms than a block.
            (9, 9_000, 70, 1, 1),
            (20, 1_100, 320, 1, 1),
        ] {
            let case = ProductBatch { size: ProductSize { m, k, n }, batch, matrices };
            for trans in [Transposition::No, Transposition::Yes] {
                check(&case, trans, 1);
                check(&case, trans, 2);
            }
        }
    }

    #[test]
    #[should_panic(expected = "BF16 rows of A begin inside of pairs")]
    fn rows_that_begin_inside_of_pairs_are_refused() {
        let pool = ThreadPool::new(1);
        let a = [bf16::ZERO; 8];
        let trans = Transposition::No;
        let side = |offsets| BatchedReals { data: RealSlice::Bf16(&a), offsets, ld: 2, trans };
        let size = ProductSize { m: 1, k: 2, n: 2 };
        let mut c = [0.0; 2];
        let (exec, none) = (KernelContext::new(&pool), GemmEpilogue::default());
        matmul_batched_bf16(exec, size, side(&[1]), side(&[0]), (&mut c[..]).into(), &none, None);
    }
}
