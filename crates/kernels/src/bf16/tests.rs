use super::*;
use crate::gemm::{Trans, test_values};
use crate::isa::nearest;
use crate::{Activation, ThreadPool};
use proptest::prelude::*;

fn rounded(x: f32) -> f64 {
    f64::from(f32::from_bits(u32::from(nearest(x)) << 16))
}

type Finisher<'a> = &'a dyn Fn(f64, usize, usize) -> f64;

/// Products of rounded operands against a plain loop over the same rounded operands: what differs
/// is the order of the FP32 sums.
fn check(m: usize, k: usize, n: usize, threads: usize, trans: Trans) {
    let pool = ThreadPool::new(threads);
    let (lda, ldc) = (k + 3, n + 5);
    let ldb = if trans == Trans::No { n + 2 } else { k + 2 };
    let a = test_values(m * lda, 1);
    let b = test_values((if trans == Trans::No { k } else { n }) * ldb, 2);
    let (bias, other) = (test_values(n, 3), test_values(m * ldc, 4));
    let packed = PackedBf16::pack(k, n, &b, ldb, trans);
    let at = |i: usize, x: usize| rounded(a[i * lda + x]);
    let bt = |x: usize, j: usize| {
        rounded(if trans == Trans::No { b[x * ldb + j] } else { b[j * ldb + x] })
    };
    let mut sums = vec![0.0; m * n];
    for (at_c, sum) in sums.iter_mut().enumerate() {
        let (i, j) = (at_c / n, at_c % n);
        *sum = (0..k).map(|x| at(i, x) * bt(x, j)).sum::<f64>();
    }
    let plain = Epilogue::default();
    let relu = Epilogue::bias(&bias).with_residual(&other, ldc).with_activation(Activation::Relu);
    let gate = Epilogue::bias(&bias).with_gate(&other, ldc).with_activation(Activation::Tanh);
    let epilogues: [(Epilogue<'_>, Finisher<'_>); 3] = [
        (plain, &|x, _, _| x),
        (relu, &|x, i, j| (x + f64::from(bias[j]) + f64::from(other[i * ldc + j])).max(0.0)),
        (gate, &|x, i, j| ((x + f64::from(bias[j])) * f64::from(other[i * ldc + j])).tanh()),
    ];
    for isa in Bf16Isa::available() {
        let exec = Exec::new(&pool);
        for (which, (epilogue, finish)) in epilogues.iter().enumerate() {
            let mut c = vec![f32::NAN; m * ldc];
            gemm_with(exec, isa, m, (&a, lda), &packed, (&mut c, ldc), epilogue);
            let what = format!("{} {m}x{k}x{n} {trans:?} epilogue {which}", isa.name());
            // Each of k terms in -1..1 is rounded once, and so is each partial sum.
            let tolerance = 3e-7 * (k as f64 + 4.0);
            for i in 0..m {
                for j in 0..n {
                    let (got, want) = (f64::from(c[i * ldc + j]), finish(sums[i * n + j], i, j));
                    let near = (got - want).abs() <= tolerance;
                    assert!(near, "{what}: ({i}, {j}): {got} for {want}");
                }
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
        (1, 70, 100),
        (2, 300, 33),
        (3, 64, 65),
        (4, 5, 31),
        (5, 16, 16),
        (13, 257, 64),
        (16, 512, 32),
        (17, 513, 47),
        (29, 100, 300),
        (33, 32, 10),
        (49, 800, 48),
        (230, 33, 40),
        (600, 65, 17),
    ];
    for (m, k, n) in shapes {
        check(m, k, n, 1, Trans::No);
        check(m, k, n, 2, Trans::Yes);
    }
}

#[test]
fn depths_beyond_a_block_are_added_up() {
    check(514, 1300, 40, 1, Trans::No);
    check(40, 17_000, 260, 2, Trans::No);
}

#[test]
fn a_product_of_depth_zero_is_its_epilogue() {
    let pool = ThreadPool::new(2);
    for isa in Bf16Isa::available() {
        let packed = PackedBf16::pack(0, 5, &[], 5, Trans::No);
        let bias = [1.0, -2.0, 3.0, -4.0, 5.0];
        for m in [1, 20] {
            let mut c = vec![f32::NAN; m * 5];
            let epilogue = Epilogue::bias(&bias).with_activation(Activation::Relu);
            gemm_with(Exec::new(&pool), isa, m, (&[], 0), &packed, (&mut c, 5), &epilogue);
            assert_eq!(c, [1.0, 0.0, 3.0, 0.0, 5.0].repeat(m), "{}", isa.name());
        }
    }
}

#[test]
fn rounding_is_to_nearest_even_and_keeps_nan() {
    for (x, want) in [
        (1.0, 1.0),
        (1.003_906_3, 1.0),
        (1.011_718_8, 1.015_625),
        (-3.4e38, f32::NEG_INFINITY),
        (f32::INFINITY, f32::INFINITY),
    ] {
        assert_eq!(f32::from_bits(u32::from(nearest(x)) << 16), want, "{x}");
    }
    assert!(f32::from_bits(u32::from(nearest(f32::NAN)) << 16).is_nan());
    assert!(f32::from_bits(u32::from(nearest(f32::from_bits(0x7f80_0001))) << 16).is_nan());
}

#[test]
fn a_row_does_not_depend_on_the_rows_beside_it() {
    let pool = ThreadPool::new(1);
    let (k, n) = (300, 40);
    let (a, b) = (test_values(50 * k, 1), test_values(k * n, 2));
    let packed = PackedBf16::pack(k, n, &b, n, Trans::No);
    for isa in Bf16Isa::available() {
        let run = |rows: usize| {
            let mut c = vec![0.0; rows * n];
            let plain = Epilogue::default();
            gemm_with(Exec::new(&pool), isa, rows, (&a, k), &packed, (&mut c, n), &plain);
            c
        };
        let all = run(50);
        for rows in 5..50 {
            assert!(run(rows)[..] == all[..rows * n], "{} rows of {}", rows, isa.name());
        }
    }
}

#[test]
#[should_panic(expected = "A: 11 elements for 3 rows of 4")]
fn a_short_slice_is_refused() {
    let pool = ThreadPool::new(1);
    let b = PackedBf16::pack(4, 2, &[0.0; 8], 2, Trans::No);
    gemm_bf16(Exec::new(&pool), 3, &[0.0; 11], 4, &b, &mut [0.0; 6], 2, &Epilogue::default());
}

#[test]
fn convolutions_equal_those_of_rounded_operands() {
    let pool = ThreadPool::new(2);
    for (groups, kernel, stride, pads) in [(1, [1, 1], 1, 0), (1, [3, 3], 1, 1), (2, [3, 2], 2, 1)]
    {
        let params = crate::conv::ConvParams {
            stride: [1, stride, stride],
            pads_begin: [0, pads, pads],
            pads_end: [0, pads, pads],
            groups,
            ..crate::conv::ConvParams::new_2d(38, 34, kernel)
        };
        let (batch, size) = (2, [1, 9, 11]);
        let x = test_values(batch * 99 * 38, 1);
        let weights = test_values(34 * 38 / groups * kernel[0] * kernel[1], 2);
        let bias = test_values(34, 3);
        let round = |values: &[f32]| -> Vec<f32> {
            values.iter().map(|&x| f32::from_bits(u32::from(nearest(x)) << 16)).collect()
        };
        let [_, height, width] = params.output_size(size);
        let mut want = vec![0.0; batch * height * width * 34];
        let epilogue = Epilogue::bias(&bias).with_activation(Activation::Relu);
        let exec = Exec::new(&pool);
        let exact = crate::conv::PackedConv::pack(exec.isa, params, &round(&weights));
        crate::conv::conv(exec, &exact, &round(&x), batch, size, &mut want, &epilogue);
        let packed = ConvBf16::pack(params, &weights);
        for isa in Bf16Isa::available() {
            let mut y = vec![f32::NAN; want.len()];
            conv::conv_with(exec, isa, &packed, &x, (batch, size), &mut y, &epilogue);
            for (i, (got, want)) in y.iter().zip(&want).enumerate() {
                // Both round each of up to 342 sums of terms in -1..1.
                let near = (got - want).abs() <= 2e-4;
                assert!(near, "{} {params:?}: {i}: {got} for {want}", isa.name());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn packed_products_equal_the_reference(
        m in 1usize..90, k in 0usize..700, n in 1usize..140, threads in 1usize..4,
        trans in prop_oneof![Just(Trans::No), Just(Trans::Yes)],
    ) {
        check(m, k, n, threads, trans);
    }
}
