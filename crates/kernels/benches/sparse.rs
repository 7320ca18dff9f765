//! Sparse matrix products beside dense ones of the same lengths: runs that take turns, the time that a fifth of them keeps below.
//!
//! `cargo bench -p galatea-kernels --bench sparse [-- THREADS [ROWS,K,N …]]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use std::time::Instant;

use galatea_kernels::bf16::{
    PackedBf16, ZERO_PAIRS, gemm_bf16, passes_over_zeros, sparse_share_bf16,
};
use galatea_kernels::gemm::{
    GemmBlocking, GemmEpilogue, PackedB, PackedSparse, PlainMatrix, SparseLayout, Transposition,
    ZeroPattern, gemm_cut, gemm_sparse,
};
use galatea_kernels::int8::{
    ByteForm, ColumnScales, Int8Target, PackedInt8, QuantizedBytes, gemm_int8, sparse_share,
    zero_group,
};
use galatea_kernels::isa::{Bf16Isa, DotIsa};
use galatea_kernels::{Isa, KernelContext, MatrixSize, ProductSize, StridedMatrix, ThreadPool};

/// Rounds of a comparison.
const ROUNDS: usize = 100;

/// Bytes of weights that turns pass through, more than the caches near a core hold.
const FAR_BYTES: usize = 24 << 20;

fn main() {
    let threads = timing::threads();
    let pool = ThreadPool::new(threads);
    let shapes = [(1, 1024, 1024), (8, 1024, 1024), (128, 1024, 1024), (128, 768, 3072)];
    for isa in Isa::available().into_iter().filter(|isa| isa.name() != "portable") {
        let exec = KernelContext { pool: &pool, isa };
        for (m, k, n) in shapes_of_arguments().unwrap_or_else(|| shapes.to_vec()) {
            for zeros in BenchZeros::ALL {
                let size = ProductSize { m, k, n };
                compare(exec, size, zeros);
                compare_bytes(exec, size, zeros);
                compare_bf16(exec, size, zeros);
            }
        }
    }
}

/// How the zeros of a matrix lie.
#[derive(Clone, Copy, Debug)]
enum BenchZeros {
    /// Two of each four terms of a column.
    TwoOfFour,
    /// Blocks of some terms times some columns, in percent of all.
    Blocks(usize, usize, usize),
    /// Anywhere, in percent of all.
    Anywhere(usize),
}

impl BenchZeros {
    const ALL: [Self; 7] = [
        Self::TwoOfFour,
        Self::Blocks(16, 16, 50),
        Self::Blocks(16, 16, 75),
        Self::Blocks(16, 16, 90),
        Self::Blocks(32, 32, 75),
        Self::Anywhere(75),
        Self::Anywhere(90),
    ];

    fn is_zero(self, row: usize, column: usize) -> bool {
        let mixed = |x: usize| {
            let x = (x ^ (x >> 9)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (x ^ (x >> 32)) % 100
        };
        match self {
            Self::TwoOfFour => (row + mixed(row / 4 * 8191 + column)) % 4 < 2,
            Self::Blocks(rows, columns, percent) => {
                mixed((row / rows) * 8191 + column / columns) < percent
            }
            Self::Anywhere(percent) => mixed(row * 8191 + column) < percent,
        }
    }
}

fn compare(exec: KernelContext<'_>, size: ProductSize, zeros: BenchZeros) {
    let ProductSize { m, k, n } = size;
    let a = timing::Floats::new(m * k, 0.5);
    let mut b = timing::Floats::new(k * n, 0.25);
    for (i, x) in b.iter_mut().enumerate() {
        if zeros.is_zero(i / n, i % n) {
            *x = 0.0;
        }
    }
    let data = StridedMatrix::new(&b[..], n);
    let matrix = PlainMatrix { data, k, n, trans: Transposition::No };
    let copies = (FAR_BYTES / (4 * k * n)).clamp(1, 32);
    let dense: Vec<PackedB> =
        (0..copies).map(|_| PackedB::pack(exec.isa, k, n, &b, n, Transposition::No)).collect();
    let pattern = ZeroPattern::of(exec.isa, &matrix);
    let chosen = pattern.as_ref().map(|pattern| pattern.layouts(m)).unwrap_or_default();
    let mut c = timing::Floats::new(m * n, 0.0);
    for layout in SparseLayout::ALL {
        let Some(first) = PackedSparse::pack(exec.isa, matrix, layout) else { continue };
        let mut sparse = vec![first];
        sparse.extend((1..copies).filter_map(|_| PackedSparse::pack(exec.isa, matrix, layout)));
        let mut times: [Vec<f64>; 2] = Default::default();
        for round in 0..ROUNDS {
            let at = round % copies;
            let rows = StridedMatrix::new(&a[..], k);
            let begin = Instant::now();
            let out = StridedMatrix::new(&mut c[..], n);
            let none = GemmEpilogue::default();
            gemm_cut(exec, GemmBlocking::Usual, m, rows, &dense[at], out, &none);
            times[0].push(begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            let out = StridedMatrix::new(&mut c[..], n);
            gemm_sparse(exec, m, rows, &sparse[at], out, &none);
            times[1].push(begin.elapsed().as_secs_f64());
        }
        let [dense, sparse] = times.map(|mut all| {
            all.sort_by(f64::total_cmp);
            all[all.len() / 5]
        });
        let expected = pattern.as_ref().and_then(|all| all.share(m, layout)).unwrap_or(0.0);
        let star = if chosen.first() == Some(&layout) { "*" } else { "" };
        println!(
            "{} {m}x{k}x{n} {zeros:?} {}{star}: dense {:.1} us, sparse {:.1} us, {:.2} times as fast, {:.2} expected",
            exec.isa.name(),
            layout.name(),
            dense * 1e6,
            sparse * 1e6,
            dense / sparse,
            1.0 / expected
        );
    }
}

/// Times of two products that take turns on copies of their weights, in seconds.
fn turns(copies: usize, mut run: impl FnMut(usize, bool)) -> [f64; 2] {
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..ROUNDS {
        for (sparse, times) in [false, true].into_iter().zip(&mut times) {
            let begin = Instant::now();
            run(round % copies, sparse);
            times.push(begin.elapsed().as_secs_f64());
        }
    }
    times.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 5]
    })
}

/// Prints the times of a product that passes over groups of zeros beside a dense one.
fn report(name: &str, size: ProductSize, zeros: BenchZeros, full: f64, times: [f64; 2]) {
    let ProductSize { m, k, n } = size;
    let [dense, sparse] = times;
    println!(
        "{name} {m}x{k}x{n} {zeros:?} groups, {:.0} % full: dense {:.1} us, sparse {:.1} us, {:.2} times as fast",
        full * 100.0,
        dense * 1e6,
        sparse * 1e6,
        dense / sparse
    );
}

/// Weights of bytes, as [`compare`] has them of floats.
fn compare_bytes(exec: KernelContext<'_>, size: ProductSize, zeros: BenchZeros) {
    let ProductSize { m, k, n } = size;
    let dot = DotIsa::of(exec.isa);
    let is_zero = |row: usize, column: usize| zeros.is_zero(row, column);
    let full = zero_group(dot)
        .ok()
        .and_then(|group| group.full_share(MatrixSize { rows: k, columns: n }, &is_zero));
    let Some(full) = full else { return };
    let a = vec![3_u8; m * k];
    let weight = |row, column| if zeros.is_zero(row, column) { 0 } else { 5 };
    let first = PackedInt8::pack(dot, k, n, true, weight);
    let columns = ColumnScales::new(&first, ByteForm { signed: false, zero: 128 }, &[0]);
    let copies = (FAR_BYTES / (k * n)).clamp(1, 32);
    let dense = vec![first; copies];
    let sparse: Vec<_> = dense.iter().cloned().map(PackedInt8::passing_over_zeros).collect();
    let mut c = vec![0.0_f32; m * n];
    let times = turns(copies, |at, is_sparse| {
        let b = if is_sparse { &sparse[at] } else { &dense[at] };
        let a = QuantizedBytes { data: &a, signed: false, zero: 128 };
        gemm_int8(exec, m, a, b, &columns, Int8Target::Floats(&mut c));
    });
    let star = if sparse_share(full).is_some() { "*" } else { "" };
    report(&format!("int8 {}{star}", dot.name()), size, zeros, full, times);
}

/// Weights of BF16, as [`compare`] has them of floats.
fn compare_bf16(exec: KernelContext<'_>, size: ProductSize, zeros: BenchZeros) {
    let ProductSize { m, k, n } = size;
    let isa = Bf16Isa::of(exec.isa);
    let is_zero = |row: usize, column: usize| zeros.is_zero(row, column);
    let full = ZERO_PAIRS.full_share(MatrixSize { rows: k, columns: n }, &is_zero);
    let Some(full) = full.filter(|_| passes_over_zeros(isa, m).is_ok()) else { return };
    let a = timing::Floats::new(m * k, 0.5);
    let mut b = timing::Floats::new(k * n, 0.25);
    for (i, x) in b.iter_mut().enumerate() {
        if zeros.is_zero(i / n, i % n) {
            *x = 0.0;
        }
    }
    let copies = (FAR_BYTES / (2 * k * n)).clamp(1, 32);
    let packed = |_| PackedBf16::pack(k, n, &b, n, Transposition::No);
    let dense: Vec<PackedBf16> = (0..copies).map(packed).collect();
    let sparse: Vec<_> = (0..copies).map(|at| packed(at).passing_over_zeros()).collect();
    let mut c = timing::Floats::new(m * n, 0.0);
    let none = GemmEpilogue::default();
    let times = turns(copies, |at, is_sparse| {
        let b = if is_sparse { &sparse[at] } else { &dense[at] };
        gemm_bf16(exec, m, &a, k, b, &mut c, n, &none);
    });
    let star = if sparse_share_bf16(full).is_some() { "*" } else { "" };
    report(&format!("bf16 {}{star}", isa.name()), size, zeros, full, times);
}

/// Shapes from arguments like `128,768,3072`.
fn shapes_of_arguments() -> Option<Vec<(usize, usize, usize)>> {
    let shape = |a: String| {
        let sizes: Vec<usize> = a.split(',').map_while(|x| x.parse().ok()).collect();
        <[usize; 3]>::try_from(sizes).ok().map(|[m, k, n]| (m, k, n))
    };
    let found: Vec<_> = std::env::args().skip(1).filter_map(shape).collect();
    (!found.is_empty()).then_some(found)
}
