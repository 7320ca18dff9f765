use super::*;
use crate::attention::{
    AttentionRows, AttentionSizes, HeadRows, HeadStrides, ScoreMask, VisibleKeys, attention,
};
use crate::conv::ImageBatch;
use crate::gemm::{Transposition, test_values};
use crate::isa::nearest;
use crate::{ActivationFunction, ThreadPool};
use proptest::prelude::*;

fn rounded(x: f32) -> f64 {
    f64::from(f32::from_bits(u32::from(nearest(x)) << 16))
}

type Finisher<'a> = &'a dyn Fn(f64, usize, usize) -> f64;

fn halves(x: &[f32]) -> Vec<bf16> {
    x.iter().map(|&x| bf16::from_f32(x)).collect()
}

/// Products from BF16 to BF16 against those from FP32 to FP32 of the same values, rounded.
fn check_halves(m: usize, k: usize, n: usize, threads: usize) {
    let pool = ThreadPool::new(threads);
    let lda = k + 2;
    let ldc = n + 5;
    let a = halves(&test_values(m * lda, 1));
    let wide: Vec<f32> = a.iter().map(|x| x.to_f32()).collect();
    let b = test_values(k * n, 2);
    let bias = test_values(n, 3);
    let packed = PackedBf16::pack(k, n, &b, n, Transposition::No);
    let joins = halves(&test_values(m * ldc, 4));
    let joins_wide: Vec<f32> = joins.iter().map(|x| x.to_f32()).collect();
    for isa in Bf16Isa::available() {
        let exec = KernelContext::new(&pool);
        for (activation, join) in [
            (ActivationFunction::None, None),
            (ActivationFunction::Relu, Some(MatrixJoin::Add)),
            (ActivationFunction::Gelu, None),
            (ActivationFunction::Tanh, Some(MatrixJoin::Multiply)),
        ] {
            let plain = GemmEpilogue::bias(&bias).with_activation(activation);
            let data = Some(&joins_wide[..]);
            let residual = join.map(|join| crate::ResidualMatrix { data, ld: ldc, join });
            let epilogue = GemmEpilogue { residual, ..plain };
            let mut want = vec![f32::NAN; m * ldc];
            let from = StridedMatrix::new(wide[..].into(), lda);
            let to = StridedMatrix::new((&mut want[..]).into(), ldc);
            let ending = Bf16Epilogue { epilogue: &epilogue, beside: None };
            gemm_with(exec, isa, m, from, &packed, to, ending);
            let beside = join.map(|join| Bf16Summand { data: Some(&joins), ld: ldc, join });
            let mut c = vec![bf16::NAN; m * ldc];
            let from = StridedMatrix::new(a[..].into(), lda);
            let to = StridedMatrix::new((&mut c[..]).into(), ldc);
            let ending = Bf16Epilogue { epilogue: &plain, beside };
            gemm_with(exec, isa, m, from, &packed, to, ending);
            for i in 0..m {
                for j in 0..n {
                    let got = c[i * ldc + j].to_f32();
                    let want = want[i * ldc + j];
                    // Half the distance to the next BF16, the order of k sums, and what the short
                    // form of GELU may be off.
                    let short = if activation == ActivationFunction::Gelu { 2e-4 } else { 0.0 };
                    let sums = 3e-7 * (k as f32 + 4.0);
                    let near = (got - want).abs() <= want.abs() / 256.0 + sums + short;
                    let what = format!("{} {m}x{k}x{n} {activation:?} {join:?}", isa.name());
                    assert!(near, "{what}: ({i}, {j}): {got} for {want}");
                }
                let gap = i * ldc + n..((i + 1) * ldc).min(c.len());
                assert!(c[gap].iter().all(|x| x.is_nan()), "wrote between rows");
            }
        }
    }
}

#[test]
fn products_of_bf16_to_bf16_are_those_of_fp32_rounded() {
    for (m, k, n) in [
        (1, 2, 1),
        (3, 300, 33),
        (5, 16, 16),
        (17, 514, 47),
        (13, 17_000, 36),
        (130, 64, 300),
        (300, 96, 24),
        (514, 1300, 40),
    ] {
        // An emulated processor takes a minute for the large ones, which two threads cut as one does not.
        if m * k * n < 10_000_000 {
            check_halves(m, k, n, 1);
        }
        check_halves(m, k, n, 2);
    }
}

#[test]
#[should_panic(expected = "BF16 rows of 3, 4 apart, are not pairs")]
fn odd_rows_of_bf16_are_refused() {
    let pool = ThreadPool::new(1);
    let b = PackedBf16::pack(3, 2, &[0.0; 6], 2, Transposition::No);
    let a = [bf16::ZERO; 8];
    let mut c = [0.0; 4];
    let a = StridedMatrix::new(a[..].into(), 4);
    let c = StridedMatrix::new((&mut c[..]).into(), 2);
    gemm_reals(KernelContext::new(&pool), 2, a, &b, c, &GemmEpilogue::default(), None);
}

/// Attention of operands that are BF16 already against that of FP32.
fn check_attention(a: &AttentionSizes, masked: bool) {
    let pool = ThreadPool::new(2);
    let round = |x: &[f32]| -> Vec<f32> { halves(x).iter().map(|x| x.to_f32()).collect() };
    let strides = [
        HeadStrides::rows_first(a.heads, a.queries, a.head_size),
        HeadStrides::heads_first(a.kv_heads, a.keys, a.head_size),
        HeadStrides::rows_first(a.kv_heads, a.keys, a.value_size),
    ];
    let lens = [
        a.heads * a.queries * a.head_size,
        a.kv_heads * a.keys * a.head_size,
        a.kv_heads * a.keys * a.value_size,
    ];
    let qkv =
        [(0, 1), (1, 2), (2, 3)].map(|(i, seed)| round(&test_values(a.batch * lens[i], seed)));
    let half = qkv.each_ref().map(|x| halves(x));
    let mut m = test_values(a.batch * a.keys, 4);
    for x in m.iter_mut().step_by(5) {
        *x = f32::NEG_INFINITY;
    }
    let mask = masked
        .then_some(ScoreMask { data: &m, strides: HeadStrides { batch: a.keys, head: 0, row: 0 } });
    let out = HeadStrides::rows_first(a.heads, a.queries, a.value_size);
    let mut want = vec![0.0; a.batch * a.heads * a.queries * a.value_size];
    let rows = |at: usize| HeadRows { data: &qkv[at], strides: strides[at] };
    let x = AttentionRows { q: rows(0), k: rows(1), v: rows(2) };
    attention(KernelContext::new(&pool), a, x, mask, &mut want, out);
    for isa in crate::Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        let mut y = vec![f32::NAN; want.len()];
        let from = qkv.each_ref().map(|x| x[..].into());
        attention_bf16(exec, a, from, strides, mask, (&mut y[..]).into(), out);
        let mut y_half = vec![bf16::NAN; want.len()];
        let mut same = vec![f32::NAN; want.len()];
        if a.head_size.is_multiple_of(2) {
            let from = half.each_ref().map(|x| RealSlice::from(&x[..]));
            attention_bf16(exec, a, from, strides, mask, (&mut y_half[..]).into(), out);
            attention_bf16(exec, a, from, strides, mask, (&mut same[..]).into(), out);
            assert_eq!(y, same, "{} {a:?}: the same values as BF16", isa.name());
            assert_eq!(y_half, halves(&y), "{} {a:?}: rounded", isa.name());
        }
        for (i, (got, want)) in y.iter().zip(&want).enumerate() {
            // Weights that sum up to 1 are each off by 2^-9 of themselves, times values below 1.
            let near = (got - want).abs() <= 2.5e-3;
            assert!(near, "{} {a:?} {masked}: {i}: {got} for {want}", isa.name());
        }
    }
}

#[test]
fn attention_equals_that_of_fp32() {
    let shape = |queries, keys, head_size| AttentionSizes {
        batch: 2,
        heads: 2,
        kv_heads: 2,
        queries,
        keys,
        head_size,
        value_size: head_size,
        scale: 1.0 / (head_size as f32).sqrt(),
        sight: VisibleKeys::All,
    };
    for masked in [false, true] {
        check_attention(&shape(128, 128, 64), masked);
        check_attention(&shape(128, 128, 32), masked);
        check_attention(&shape(3, 7, 5), masked);
        check_attention(&shape(40, 33, 48), masked);
        check_attention(&AttentionSizes { value_size: 37, ..shape(150, 1100, 40) }, masked);
        let causal = AttentionSizes { heads: 4, sight: VisibleKeys::Causal, ..shape(300, 601, 32) };
        check_attention(&causal, masked);
        // The first queries see no key at all.
        check_attention(&AttentionSizes { queries: 20, keys: 10, ..causal }, masked);
    }
}

/// Products of rounded operands against a plain loop over the same rounded operands: what differs
/// is the order of the FP32 sums.
fn check(m: usize, k: usize, n: usize, threads: usize, trans: Transposition) {
    let pool = ThreadPool::new(threads);
    let lda = k + 3;
    let ldc = n + 5;
    let ldb = if trans == Transposition::No { n + 2 } else { k + 2 };
    let a = test_values(m * lda, 1);
    let b = test_values((if trans == Transposition::No { k } else { n }) * ldb, 2);
    let bias = test_values(n, 3);
    let other = test_values(m * ldc, 4);
    let packed = PackedBf16::pack(k, n, &b, ldb, trans);
    let at = |i: usize, x: usize| rounded(a[i * lda + x]);
    let bt = |x: usize, j: usize| {
        rounded(if trans == Transposition::No { b[x * ldb + j] } else { b[j * ldb + x] })
    };
    let mut sums = vec![0.0; m * n];
    for (at_c, sum) in sums.iter_mut().enumerate() {
        let i = at_c / n;
        let j = at_c % n;
        *sum = (0..k).map(|x| at(i, x) * bt(x, j)).sum::<f64>();
    }
    let plain = GemmEpilogue::default();
    let relu = GemmEpilogue::bias(&bias)
        .with_residual(&other, ldc)
        .with_activation(ActivationFunction::Relu);
    let gate =
        GemmEpilogue::bias(&bias).with_gate(&other, ldc).with_activation(ActivationFunction::Tanh);
    let epilogues: [(GemmEpilogue<'_>, Finisher<'_>); 3] = [
        (plain, &|x, _, _| x),
        (relu, &|x, i, j| (x + f64::from(bias[j]) + f64::from(other[i * ldc + j])).max(0.0)),
        (gate, &|x, i, j| ((x + f64::from(bias[j])) * f64::from(other[i * ldc + j])).tanh()),
    ];
    for isa in Bf16Isa::available() {
        let exec = KernelContext::new(&pool);
        for (which, (epilogue, finish)) in epilogues.iter().enumerate() {
            let mut c = vec![f32::NAN; m * ldc];
            gemm_with(
                exec,
                isa,
                m,
                StridedMatrix::new(a[..].into(), lda),
                &packed,
                StridedMatrix::new((&mut c[..]).into(), ldc),
                Bf16Epilogue { epilogue, beside: None },
            );
            let what = format!("{} {m}x{k}x{n} {trans:?} epilogue {which}", isa.name());
            // Each of k terms in -1..1 is rounded once, and so is each partial sum.
            let tolerance = 3e-7 * (k as f64 + 4.0);
            for i in 0..m {
                for j in 0..n {
                    let got = f64::from(c[i * ldc + j]);
                    let want = finish(sums[i * n + j], i, j);
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
        check(m, k, n, 1, Transposition::No);
        check(m, k, n, 2, Transposition::Yes);
    }
}

#[test]
fn depths_beyond_a_block_are_added_up() {
    check(514, 1300, 40, 1, Transposition::No);
    check(13, 17_000, 132, 2, Transposition::No);
}

#[test]
fn a_product_of_depth_zero_is_its_epilogue() {
    let pool = ThreadPool::new(2);
    for isa in Bf16Isa::available() {
        let packed = PackedBf16::pack(0, 5, &[], 5, Transposition::No);
        let bias = [1.0, -2.0, 3.0, -4.0, 5.0];
        for m in [1, 20] {
            let mut all = vec![f32::NAN; m * 5];
            let c = &mut all[..];
            let epilogue = GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
            let a = StridedMatrix::new(RealSlice::Fp32(&[]), 0);
            let c = StridedMatrix::new(RealsMut::Fp32(c), 5);
            let ending = Bf16Epilogue { epilogue: &epilogue, beside: None };
            gemm_with(KernelContext::new(&pool), isa, m, a, &packed, c, ending);
            assert_eq!(all, [1.0, 0.0, 3.0, 0.0, 5.0].repeat(m), "{}", isa.name());
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
    let k = 300;
    let n = 40;
    let a = test_values(50 * k, 1);
    let b = test_values(k * n, 2);
    let packed = PackedBf16::pack(k, n, &b, n, Transposition::No);
    for isa in Bf16Isa::available() {
        let run = |rows: usize| {
            let mut c = vec![0.0; rows * n];
            let plain = GemmEpilogue::default();
            let a = StridedMatrix::new(a[..].into(), k);
            let to = StridedMatrix::new((&mut c[..]).into(), n);
            let ending = Bf16Epilogue { epilogue: &plain, beside: None };
            gemm_with(KernelContext::new(&pool), isa, rows, a, &packed, to, ending);
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
    let b = PackedBf16::pack(4, 2, &[0.0; 8], 2, Transposition::No);
    gemm_bf16(
        KernelContext::new(&pool),
        3,
        &[0.0; 11],
        4,
        &b,
        &mut [0.0; 6],
        2,
        &GemmEpilogue::default(),
    );
}

#[test]
fn convolutions_equal_those_of_rounded_operands() {
    let pool = ThreadPool::new(2);
    // Tiles read images of whole steps where they lie.
    let kinds = [
        (38, 1, [1, 1], 1, 0),
        (38, 1, [3, 3], 1, 1),
        (38, 2, [3, 2], 2, 1),
        (64, 1, [1, 1], 1, 0),
        (64, 1, [1, 1], 2, 0),
        (32, 1, [3, 3], 1, 1),
        (64, 1, [3, 3], 2, 1),
        (64, 1, [2, 3], 1, 0),
    ];
    for (channels, groups, kernel, stride, pads) in kinds {
        let params = crate::conv::ConvParams {
            stride: [1, stride, stride],
            pads_begin: [0, pads, pads],
            pads_end: [0, pads, pads],
            groups,
            ..crate::conv::ConvParams::new_2d(channels, 34, kernel)
        };
        let batch = 2;
        let size = [1, 9, 11];
        let x = test_values(batch * 99 * channels, 1);
        let weights = test_values(34 * channels / groups * kernel[0] * kernel[1], 2);
        let bias = test_values(34, 3);
        let round = |values: &[f32]| -> Vec<f32> {
            values.iter().map(|&x| f32::from_bits(u32::from(nearest(x)) << 16)).collect()
        };
        let [_, height, width] = params.output_size(size);
        let mut want = vec![0.0; batch * height * width * 34];
        let epilogue = GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
        let exec = KernelContext::new(&pool);
        let exact = crate::conv::PackedConv::pack(exec.isa, params, &round(&weights));
        crate::conv::conv(exec, &exact, &round(&x), batch, size, &mut want, &epilogue);
        let packed = ConvBf16::pack(params, &weights);
        for isa in Bf16Isa::available() {
            let mut y = vec![f32::NAN; want.len()];
            let image = ImageBatch { batch, size };
            let ending = Bf16Epilogue { epilogue: &epilogue, beside: None };
            conv::conv_with(exec, isa, &packed, x[..].into(), image, (&mut y[..]).into(), ending);
            for (i, (got, want)) in y.iter().zip(&want).enumerate() {
                // Both round each of up to 576 sums of terms in -1..1.
                let near = (got - want).abs() <= 4e-4;
                assert!(near, "{} {params:?}: {i}: {got} for {want}", isa.name());
            }
            if (channels / groups) % 2 == 1 {
                continue;
            }
            // From BF16 to BF16, with what joins as BF16.
            let half = halves(&x);
            let joins = halves(&test_values(want.len(), 5));
            let beside = Bf16Summand { data: Some(&joins), ld: 34, join: MatrixJoin::Add };
            let plain = GemmEpilogue::bias(&bias);
            let mut y = vec![bf16::NAN; want.len()];
            let from = half[..].into();
            let ending = Bf16Epilogue { epilogue: &plain, beside: Some(beside) };
            conv::conv_with(exec, isa, &packed, from, image, (&mut y[..]).into(), ending);
            let mut over = joins.clone();
            let beside = Some(Bf16Summand { data: None, ..beside });
            let ending = Bf16Epilogue { epilogue: &plain, beside };
            conv::conv_with(
                exec,
                isa,
                &packed,
                half[..].into(),
                image,
                (&mut over[..]).into(),
                ending,
            );
            assert!(over == y, "{} {params:?}", isa.name());
            let mut want = vec![0.0; y.len()];
            crate::conv::conv(exec, &exact, &round(&x), batch, size, &mut want, &plain);
            for (i, (got, want)) in y.iter().zip(&want).enumerate() {
                let got = got.to_f32();
                let want = want + joins[i].to_f32();
                // Half the distance to the next BF16, and the order of sums.
                let near = (got - want).abs() <= want.abs() / 256.0 + 4e-4;
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
        trans in prop_oneof![Just(Transposition::No), Just(Transposition::Yes)],
    ) {
        check(m, k, n, threads, trans);
    }
}

#[test]
fn sums_of_another_product_are_finished_as_own_ones() {
    for (m, n) in [(1, 1), (3, 33), (40, 300), (700, 70)] {
        let pool = ThreadPool::new(2);
        let sums = test_values(m * n + BEHIND_SUMS, 1);
        let bias = test_values(n, 2);
        let ldc = n + 3;
        let joins = halves(&test_values(m * ldc, 3));
        for isa in crate::Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            let epilogue = GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Tanh);
            let beside = Bf16Summand { data: Some(&joins), ld: ldc, join: MatrixJoin::Add };
            let mut wide = vec![f32::NAN; m * ldc];
            let mut half = vec![bf16::NAN; m * ldc];
            let size = MatrixSize { rows: m, columns: n };
            let to = StridedMatrix::new((&mut wide[..]).into(), ldc);
            finish_reals(exec, size, &sums, to, &epilogue, Some(beside));
            let to = StridedMatrix::new((&mut half[..]).into(), ldc);
            finish_reals(exec, size, &sums, to, &epilogue, Some(beside));
            for i in 0..m {
                for j in 0..ldc {
                    let at = i * ldc + j;
                    let wide = wide[i * ldc + j];
                    if j >= n {
                        assert!(wide.is_nan() && half[at].is_nan(), "wrote between rows");
                        continue;
                    }
                    let want = (sums[i * n + j] + bias[j] + joins[at].to_f32()).tanh();
                    assert!((wide - want).abs() < 1e-6, "{} {wide} for {want}", isa.name());
                    let near = (half[at].to_f32() - want).abs() <= want.abs() / 256.0 + 1e-6;
                    assert!(near, "{} {} for {want}", isa.name(), half[at]);
                }
            }
        }
    }
}
