use super::finish as finish_c;
use super::*;
use crate::{ActivationFunction, Isa, ThreadPool};
use proptest::prelude::*;

/// Repeatable values in -1..1.
pub(crate) fn values(len: usize, seed: u32) -> Vec<f32> {
    let mut x = seed.wrapping_mul(2_654_435_761) | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            (x >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

fn gelu(x: f64) -> f64 {
    // The tanh form is within 5e-4 of erf's; the tests of `elementwise` hold each to its own.
    0.5 * x * (1.0 + (0.797_884_560_8 * (x + 0.044_715 * x * x * x)).tanh())
}

fn reference(
    size: ProductSize,
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
    finish: impl Fn(f64, usize, usize) -> f64,
) -> Vec<f64> {
    let mut c = Vec::with_capacity(size.m * size.n);
    for i in 0..size.m {
        for j in 0..size.n {
            let sum = (0..size.k).map(|x| f64::from(a(i, x)) * f64::from(b(x, j))).sum::<f64>();
            c.push(finish(sum, i, j));
        }
    }
    c
}

#[track_caller]
fn assert_near(got: &[f32], want: &[f64], k: usize, what: &str) {
    // Each of k terms in -1..1 is rounded once, and so is each partial sum.
    let tolerance = 3e-7 * (k as f64 + 4.0);
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(g) - w).abs() <= tolerance, "{what}: element {i}: {g} for {w}");
    }
}

#[test]
fn weights_of_fp16_are_those_of_fp32_rounded() {
    let pool = ThreadPool::new(2);
    for (m, k, n) in [(1, 1, 1), (1, 300, 70), (5, 17, 33), (40, 513, 47), (300, 260, 64)] {
        for trans in [Transposition::No, Transposition::Yes] {
            let ldb = if trans == Transposition::No { n + 2 } else { k + 2 };
            let rows = if trans == Transposition::No { k } else { n };
            let a = values(m * k, 1);
            let b = values(rows * ldb, 2);
            let bias = values(n, 3);
            let rounded: Vec<f32> = b.iter().map(|&b| half::f16::from_f32(b).to_f32()).collect();
            let at = |x: usize, j: usize| {
                if trans == Transposition::No { x * ldb + j } else { j * ldb + x }
            };
            let want = reference(
                ProductSize { m, k, n },
                |i, x| a[i * k + x],
                |x, j| rounded[at(x, j)],
                |sum, _, j| (sum + f64::from(bias[j])).max(0.0),
            );
            for isa in Isa::available() {
                let exec = KernelContext { pool: &pool, isa };
                let first = PackedFp16::pack(isa, k, n, &b, ldb, trans);
                let all = galatea_tensor::Tensor::vector(first.data().to_vec());
                let packed = PackedFp16::from_data(isa, k, n, &all, 0).unwrap();
                assert!(
                    packed.size_bytes() * 2
                        <= PackedB::pack(isa, k, n, &b, ldb, trans).size_bytes() + 128
                );
                let mut c = vec![f32::NAN; m * n];
                let epilogue = GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
                gemm_fp16(exec, m, &a, k, &packed, &mut c, n, &epilogue);
                assert_near(&c, &want, k, isa.name());
            }
        }
    }
}

struct Widen<'a>(&'a [u16], &'a mut [f32]);

impl crate::isa::IsaKernel for Widen<'_> {
    type Output = ();
    fn run<S: crate::isa::Simd>(self, s: S) {
        for at in (0..self.0.len()).step_by(S::LANES) {
            // SAFETY: the length is a whole number of vectors.
            unsafe { s.store(self.1.as_mut_ptr().add(at), s.load_f16(self.0.as_ptr().add(at))) };
        }
    }
}

#[test]
fn every_fp16_is_widened_exactly() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for isa in Isa::available() {
        let mut wide = vec![7.0_f32; all.len()];
        isa.run(Widen(&all, &mut wide));
        for (&bits, wide) in all.iter().zip(&wide) {
            let want = half::f16::from_bits(bits).to_f32();
            let same = wide.to_bits() == want.to_bits() || wide.is_nan() && want.is_nan();
            assert!(same, "{} {bits:x}: {wide} for {want}", isa.name());
        }
    }
}

fn check_gemm(m: usize, k: usize, n: usize, threads: usize, trans: Transposition) {
    let pool = ThreadPool::new(threads);
    let lda = k + 3;
    let ldc = n + 5;
    let ldb = if trans == Transposition::No { n + 2 } else { k + 2 };
    let a = values(m * lda, 1);
    let b = values((if trans == Transposition::No { k } else { n }) * ldb, 2);
    let bias = values(n, 3);
    let residual = values(m * ldc, 4);
    let at = |i: usize, x: usize| a[i * lda + x];
    let bt = |x: usize, j: usize| {
        if trans == Transposition::No { b[x * ldb + j] } else { b[j * ldb + x] }
    };
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        let packed = PackedB::pack(isa, k, n, &b, ldb, trans);
        type Finisher<'a> = &'a dyn Fn(f64, usize, usize) -> f64;
        let epilogues: [(GemmEpilogue<'_>, Finisher<'_>); 4] = [
            (GemmEpilogue::default(), &|x, _, _| x),
            (
                GemmEpilogue::bias(&bias)
                    .with_residual(&residual, ldc)
                    .with_activation(ActivationFunction::Relu),
                &|x, i, j| (x + f64::from(bias[j]) + f64::from(residual[i * ldc + j])).max(0.0),
            ),
            (GemmEpilogue::bias(&bias).with_gate(&residual, ldc), &|x, i, j| {
                (x + f64::from(bias[j])) * f64::from(residual[i * ldc + j])
            }),
            (
                GemmEpilogue::bias(&bias).with_activation(ActivationFunction::GeluTanh),
                &|x, _, j| gelu(x + f64::from(bias[j])),
            ),
        ];
        for (epilogue, finish) in &epilogues {
            let mut c = vec![f32::NAN; m * ldc];
            gemm(exec, m, &a, lda, &packed, &mut c, ldc, epilogue);
            // In two steps: the product, then what comes after it.
            let mut parts = vec![f32::NAN; m * ldc];
            gemm(exec, m, &a, lda, &packed, &mut parts, ldc, &GemmEpilogue::default());
            let size = MatrixSize { rows: m, columns: n };
            finish_c(exec, size, StridedMatrix::new(&mut parts, ldc), epilogue);
            let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits(&parts) == bits(&c), "{m}x{k}x{n} in two steps");
            let want = reference(ProductSize { m, k, n }, at, bt, finish);
            let what = format!("{} {m}x{k}x{n} {trans:?} {epilogue:?}", isa.name());
            for i in 0..m {
                let got = &c[i * ldc..i * ldc + n];
                let want = &want[i * n..(i + 1) * n];
                assert_near(got, want, k, &what[..what.len().min(90)]);
                let gap = i * ldc + n..((i + 1) * ldc).min(c.len());
                assert!(c[gap].iter().all(|x| x.is_nan()), "{what}: wrote between rows");
            }
        }
    }
}

#[test]
fn products_equal_the_reference_for_many_shapes() {
    let shapes = [
        (1, 1, 1),
        (1, 7, 100),
        (2, 300, 33),
        (3, 64, 65),
        (4, 5, 31),
        (5, 16, 16),
        (13, 257, 64),
        (14, 256, 32),
        (15, 513, 47),
        (29, 100, 130),
        (64, 64, 10),
        (230, 33, 40),
        (500, 20, 17),
    ];
    for (m, k, n) in shapes {
        for threads in [1, 2] {
            check_gemm(m, k, n, threads, Transposition::No);
        }
        check_gemm(m, k, n, 3, Transposition::Yes);
    }
}

#[test]
fn every_blocking_gives_the_same_bits() {
    for (m, k, n) in [(1, 7, 5), (9, 40, 70), (61, 1100, 130), (240, 64, 200)] {
        let a = values(m * k, 1);
        let b = values(k * n, 2);
        let bias = values(n, 3);
        for isa in Isa::available() {
            let packed = PackedB::pack(isa, k, n, &b, n, Transposition::No);
            for threads in [1, 3] {
                let pool = ThreadPool::new(threads);
                let product = |blocking: GemmBlocking| {
                    let mut c = vec![f32::NAN; m * n];
                    let epilogue = GemmEpilogue::bias(&bias);
                    let exec = KernelContext { pool: &pool, isa };
                    let to = StridedMatrix::new(&mut c[..], n);
                    let a = StridedMatrix::new(&a[..], k);
                    gemm_cut(exec, blocking, m, a, &packed, to, &epilogue);
                    c
                };
                let usual = product(GemmBlocking::Usual);
                for &(name, blocking) in GemmBlocking::ALL {
                    let same = product(blocking) == usual;
                    assert!(same, "{} {name} {m}x{k}x{n} on {threads}", isa.name());
                }
            }
        }
    }
}

#[test]
fn a_product_of_depth_zero_is_its_epilogue() {
    let pool = ThreadPool::new(2);
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        let packed = PackedB::pack(isa, 0, 5, &[], 5, Transposition::No);
        let bias = [1.0, -2.0, 3.0, -4.0, 5.0];
        for m in [1, 20] {
            let mut c = vec![f32::NAN; m * 5];
            let epilogue = GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
            gemm(exec, m, &[], 0, &packed, &mut c, 5, &epilogue);
            assert_eq!(c, [1.0, 0.0, 3.0, 0.0, 5.0].repeat(m));
        }
    }
}

#[test]
fn the_result_does_not_depend_on_the_rows_beside_it() {
    // A row in a batch is the row alone, whatever tile it falls into.
    let pool = ThreadPool::new(1);
    let k = 300;
    let n = 40;
    let a = values(30 * k, 1);
    let b = values(k * n, 2);
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        let packed = PackedB::pack(isa, k, n, &b, n, Transposition::No);
        let run = |rows: usize| {
            let mut c = vec![0.0; rows * n];
            gemm(exec, rows, &a[..rows * k], k, &packed, &mut c, n, &GemmEpilogue::default());
            c
        };
        let all = run(30);
        for rows in 5..30 {
            assert!(run(rows)[..] == all[..rows * n], "{} rows of {}", rows, isa.name());
        }
    }
}

#[test]
#[should_panic(expected = "A: 11 elements for 3 rows of 4")]
fn a_short_slice_is_refused() {
    let pool = ThreadPool::new(1);
    let exec = KernelContext::new(&pool);
    let b = PackedB::pack(exec.isa, 4, 2, &[0.0; 8], 2, Transposition::No);
    gemm(exec, 3, &[0.0; 11], 4, &b, &mut [0.0; 6], 2, &GemmEpilogue::default());
}

#[test]
fn equal_columns_have_equal_sums_whatever_their_panel() {
    let pool = ThreadPool::new(2);
    let k = 700;
    let n = 1000;
    let column = test_values(k, 5);
    let b: Vec<f32> = column.iter().flat_map(|&x| std::iter::repeat_n(x, n)).collect();
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        let packed = PackedB::pack(isa, k, n, &b, n, Transposition::No);
        for m in [1, 2, 3, 4, 5, 17] {
            let mut c = vec![0.0; m * n];
            gemm(exec, m, &test_values(m * k, 6), k, &packed, &mut c, n, &GemmEpilogue::default());
            for row in c.chunks_exact(n) {
                let same = row.iter().all(|x| x.to_bits() == row[0].to_bits());
                assert!(same, "{} with {m} rows", isa.name());
            }
        }
    }
}

fn check_batched(batch: usize, m: usize, k: usize, n: usize, ta: Transposition, tb: Transposition) {
    let pool = ThreadPool::new(2);
    let lda = if ta == Transposition::No { k } else { m } + 1;
    let ldb = if tb == Transposition::No { n } else { k } + 3;
    let a_size = lda * if ta == Transposition::No { m } else { k };
    let b_size = ldb * if tb == Transposition::No { k } else { n };
    let a = values(a_size * batch, 5);
    let b = values(b_size, 6);
    let a_offsets: Vec<usize> = (0..batch).map(|i| i * a_size).collect();
    let b_offsets = vec![0; batch];
    for isa in Isa::available() {
        let mut c = vec![f32::NAN; batch * m * n];
        matmul_batched(
            KernelContext { pool: &pool, isa },
            ProductSize { m, k, n },
            BatchedOperand { data: &a, offsets: &a_offsets, ld: lda, trans: ta },
            BatchedOperand { data: &b, offsets: &b_offsets, ld: ldb, trans: tb },
            &mut c,
            &GemmEpilogue::default(),
        );
        for i in 0..batch {
            let at = |r: usize, x: usize| {
                a[i * a_size + if ta == Transposition::No { r * lda + x } else { x * lda + r }]
            };
            let bt = |x: usize, j: usize| {
                b[if tb == Transposition::No { x * ldb + j } else { j * ldb + x }]
            };
            let want = reference(ProductSize { m, k, n }, at, bt, |x, _, _| x);
            let what = format!("{} {batch}x{m}x{k}x{n} {ta:?} {tb:?}", isa.name());
            assert_near(&c[i * m * n..(i + 1) * m * n], &want, k, &what);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn batched_products_equal_the_reference(
        batch in 1usize..4, m in 1usize..40, k in 0usize..300, n in 1usize..70,
        ta in prop_oneof![Just(Transposition::No), Just(Transposition::Yes)],
        tb in prop_oneof![Just(Transposition::No), Just(Transposition::Yes)],
    ) {
        check_batched(batch, m, k, n, ta, tb);
    }

    #[test]
    fn packed_products_equal_the_reference(
        m in 1usize..70, k in 0usize..600, n in 1usize..140, threads in 1usize..4,
        trans in prop_oneof![Just(Transposition::No), Just(Transposition::Yes)],
    ) {
        check_gemm(m, k, n, threads, trans);
    }
}
