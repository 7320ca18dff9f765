//! Sparse matrix products beside dense ones of the same lengths: runs that take turns, the time that a fifth of them keeps below.
//!
//! `cargo bench -p galatea-kernels --bench sparse [-- THREADS [ROWS,K,N …]]`

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod timing;

use std::time::Instant;

use galatea_kernels::gemm::{
    GemmBlocking, GemmEpilogue, PackedB, PackedSparse, PlainMatrix, SparseLayout, Transposition,
    ZeroPattern, gemm_cut, gemm_sparse,
};
use galatea_kernels::{Isa, KernelContext, ProductSize, StridedMatrix, ThreadPool};

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
                compare(exec, ProductSize { m, k, n }, zeros);
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

/// Shapes from arguments like `128,768,3072`.
fn shapes_of_arguments() -> Option<Vec<(usize, usize, usize)>> {
    let shape = |a: String| {
        let sizes: Vec<usize> = a.split(',').map_while(|x| x.parse().ok()).collect();
        <[usize; 3]>::try_from(sizes).ok().map(|[m, k, n]| (m, k, n))
    };
    let found: Vec<_> = std::env::args().skip(1).filter_map(shape).collect();
    (!found.is_empty()).then_some(found)
}
