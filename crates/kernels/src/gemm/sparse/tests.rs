use super::super::{GemmEpilogue, test_values};
use super::*;
use crate::gemm::layout::LINE;
use crate::isa::Isa;
use crate::{
    ActivationFunction, KernelContext, MatrixSize, StridedMatrix, ThreadPool, Transposition,
};
use galatea_tensor::Tensor;
use proptest::prelude::*;

/// How the zeros of a matrix lie.
#[derive(Clone, Copy, Debug)]
enum ZeroPlaces {
    /// Rows of blocks of so many columns.
    Blocks(usize),
    /// Two of each four terms of a column, here and there more.
    Pairs,
    /// Everything is zero.
    All,
}

/// A `k` x `n` matrix with zeros, its rows as long as `n`.
fn sparse_values(size: MatrixSize, zeros: ZeroPlaces) -> Vec<f32> {
    let mut b = test_values(size.rows * size.columns, 7);
    for row in 0..size.rows {
        for column in 0..size.columns {
            let is_zero = match zeros {
                ZeroPlaces::Blocks(width) => (row * 31 + column / width * 17) % 5 < 3,
                ZeroPlaces::Pairs => {
                    let (group, term) = (row / 4 + 3 * column, row % 4);
                    (group + term) % 4 < 2 || group % 7 == 0
                }
                ZeroPlaces::All => true,
            };
            if is_zero {
                b[row * size.columns + column] = 0.0;
            }
        }
    }
    b
}

fn transposed(size: MatrixSize, b: &[f32]) -> Vec<f32> {
    let at = |i: usize| b[i % size.rows * size.columns + i / size.rows];
    (0..b.len()).map(at).collect()
}

/// Packs, takes the packed data apart and puts it together again.
#[track_caller]
fn packed_again(isa: Isa, matrix: PlainMatrix<'_>, layout: SparseLayout) -> PackedSparse {
    let first = PackedSparse::pack(isa, matrix, layout).unwrap();
    let all = Tensor::vector(first.data().to_vec());
    let size = MatrixSize { rows: matrix.k, columns: matrix.n };
    PackedSparse::from_data(isa, size, layout, &all, 0).unwrap()
}

#[track_caller]
fn check(m: usize, size: MatrixSize, zeros: ZeroPlaces, threads: usize) {
    let MatrixSize { rows: k, columns: n } = size;
    let pool = ThreadPool::new(threads);
    let (lda, ldc) = (k + 4, n + 3);
    let a = test_values(m * lda, 1);
    let b = sparse_values(size, zeros);
    let bt = transposed(size, &b);
    let bias = test_values(n, 2);
    let residual = test_values(m * ldc, 3);
    let epilogue = GemmEpilogue::bias(&bias)
        .with_residual(&residual, ldc)
        .with_activation(ActivationFunction::Relu);
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        for layout in SparseLayout::ALL {
            let pairs = matches!(zeros, ZeroPlaces::Pairs | ZeroPlaces::All) && k % 4 == 0;
            if layout == SparseLayout::TwoOfFour && !pairs || !layout.is_offered(isa) {
                continue;
            }
            for trans in [Transposition::No, Transposition::Yes] {
                let (data, stride) = match trans {
                    Transposition::No => (&b, n),
                    Transposition::Yes => (&bt, k),
                };
                let data = StridedMatrix::new(&data[..], stride);
                let packed = packed_again(isa, PlainMatrix { data, k, n, trans }, layout);
                let mut c = vec![f32::NAN; m * ldc];
                let a_rows = StridedMatrix::new(&a[..], lda);
                let c_rows = StridedMatrix::new(&mut c[..], ldc);
                gemm_sparse(exec, m, a_rows, &packed, c_rows, &epilogue);
                for (row, got) in c.chunks(ldc).enumerate() {
                    for (column, &got) in got[..n].iter().enumerate() {
                        let at =
                            |x: usize| f64::from(a[row * lda + x]) * f64::from(b[x * n + column]);
                        let sum: f64 = (0..k).map(at).sum();
                        let more =
                            f64::from(bias[column]) + f64::from(residual[row * ldc + column]);
                        let want = (sum + more).max(0.0);
                        let near = (f64::from(got) - want).abs() <= 3e-7 * (k as f64 + 4.0);
                        let place = format!("{} {layout:?} {trans:?} {row} {column}", isa.name());
                        assert!(near, "{place}: {got} for {want}");
                    }
                }
            }
        }
    }
}

#[test]
fn sparse_products_are_those_of_the_whole_matrix() {
    for threads in [1, 2] {
        for (m, k, n) in [(1, 4, 1), (2, 64, 70), (4, 516, 33), (5, 20, 64), (8, 1028, 100)] {
            let size = MatrixSize { rows: k, columns: n };
            for zeros in
                [ZeroPlaces::Blocks(1), ZeroPlaces::Blocks(16), ZeroPlaces::Pairs, ZeroPlaces::All]
            {
                check(m, size, zeros, threads);
            }
        }
        let size = MatrixSize { rows: 260, columns: 48 };
        check(61, size, ZeroPlaces::Pairs, threads);
        check(300, size, ZeroPlaces::Blocks(8), threads);
    }
    check(3, MatrixSize { rows: 0, columns: 5 }, ZeroPlaces::All, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn sparse_products_of_any_size(m in 1..40_usize, k in 1..70_usize, n in 1..90_usize, pairs: bool) {
        let zeros = if pairs { ZeroPlaces::Pairs } else { ZeroPlaces::Blocks(4) };
        check(m, MatrixSize { rows: k, columns: n }, zeros, 2);
    }
}

fn pattern_of(isa: Isa, size: MatrixSize, b: &[f32]) -> Option<ZeroPattern> {
    let data = StridedMatrix::new(b, size.columns);
    let (k, n) = (size.rows, size.columns);
    let plain = ZeroPattern::of(isa, &PlainMatrix { data, k, n, trans: Transposition::No });
    let turned = transposed(size, b);
    let data = StridedMatrix::new(&turned[..], k);
    let other = ZeroPattern::of(isa, &PlainMatrix { data, k, n, trans: Transposition::Yes });
    assert_eq!(plain, other);
    plain
}

#[test]
fn layouts_are_found_where_they_pay() {
    let size = MatrixSize { rows: 256, columns: 256 };
    for isa in Isa::available() {
        assert_eq!(pattern_of(isa, size, &test_values(256 * 256, 1)), None);
        let blocks = pattern_of(isa, size, &sparse_values(size, ZeroPlaces::Blocks(64))).unwrap();
        assert!((blocks.zeros() - 0.6).abs() < 0.01, "{}", blocks.zeros());
        assert!(matches!(blocks.layouts(8)[0], SparseLayout::Strips(_)), "{}", isa.name());
        let pairs = pattern_of(isa, size, &sparse_values(size, ZeroPlaces::Pairs)).unwrap();
        assert_eq!(pairs.layouts(1)[0], SparseLayout::TwoOfFour, "{}", isa.name());
        // Half of the values are zero, and no row of a strip is.
        let mut scattered = test_values(256 * 256, 5);
        for (i, x) in scattered.iter_mut().enumerate() {
            if (i * i + i / 256) % 7 < 4 {
                *x = 0.0;
            }
        }
        let scattered = pattern_of(isa, size, &scattered).unwrap();
        assert!(scattered.layouts(1).is_empty(), "{}: {scattered:?}", isa.name());
    }
}

#[test]
fn lists_that_lead_outside_are_refused() {
    let size = MatrixSize { rows: 64, columns: 40 };
    let b = sparse_values(size, ZeroPlaces::Pairs);
    let data = StridedMatrix::new(&b[..], 40);
    let matrix = PlainMatrix { data, k: 64, n: 40, trans: Transposition::No };
    for isa in Isa::available() {
        for layout in [SparseLayout::Strips(1), SparseLayout::TwoOfFour, SparseLayout::Columns] {
            let packed = PackedSparse::pack(isa, matrix, layout).unwrap();
            let given = |data: Vec<f32>| {
                PackedSparse::from_data(isa, size, layout, &Tensor::vector(data), 0).is_some()
            };
            assert!(given(packed.data().to_vec()));
            for at in 0..2 {
                let mut far = packed.data().to_vec();
                far[at] = f32::from_bits(1 << 20);
                assert!(!given(far), "{} {layout:?} {at}", isa.name());
            }
            if layout == SparseLayout::Columns {
                continue;
            }
            let short = packed.data()[..packed.data().len() - LINE].to_vec();
            assert!(!given(short), "{} {layout:?}", isa.name());
            if layout == SparseLayout::Strips(1) {
                let mut far = packed.data().to_vec();
                let first = far[0].to_bits() as usize * LINE;
                far[first] = f32::from_bits(64);
                assert!(!given(far), "{}", isa.name());
            }
        }
        let packed = PackedSparse::pack(isa, matrix, SparseLayout::Columns).unwrap();
        let mut far = packed.data().to_vec();
        let table = (40 + 1_usize).next_multiple_of(LINE);
        far[table] = f32::from_bits(64);
        let far = Tensor::vector(far);
        assert!(PackedSparse::from_data(isa, size, SparseLayout::Columns, &far, 0).is_none());
        let other = MatrixSize { rows: 128, columns: 40 };
        let packed = PackedSparse::pack(isa, matrix, SparseLayout::TwoOfFour).unwrap();
        let all = Tensor::vector(packed.data().to_vec());
        let layout = SparseLayout::TwoOfFour;
        assert!(PackedSparse::from_data(isa, other, layout, &all, 0).is_none());
    }
}
