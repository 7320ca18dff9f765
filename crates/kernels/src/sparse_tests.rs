//! Products of bytes and of BF16 that pass over zeros beside those that do not.

use crate::bf16::{
    ConvBf16, PackedBf16, ZERO_PAIRS, conv_bf16, gemm_bf16, passes_over_zeros, sparse_share_bf16,
};
use crate::conv::{ConvParams, ImageBatch};
use crate::int8::{
    ByteForm, ColumnScales, Int8Conv, Int8ConvWeights, Int8Target, PackedInt8, QuantizedBytes,
    conv_int8, gemm_int8, sparse_share, zero_group,
};
use crate::isa::{Bf16Isa, DotIsa};
use crate::{
    ActivationFunction, GemmEpilogue, Isa, KernelContext, MatrixSize, ThreadPool, Transposition,
};

/// Rows, terms and columns: whole groups and parts of them, few rows and several slices.
const SIZES: [[usize; 3]; 7] = [
    [1, 64, 64],
    [2, 130, 17],
    [5, 33, 70],
    [13, 258, 96],
    [25, 96, 300],
    [130, 64, 48],
    [290, 1300, 40],
];

/// Zeros by the place of an element.
type ZeroRule = fn(usize, usize) -> bool;

/// Blocks, single groups, everything, nothing, and all but one element.
const PATTERNS: [ZeroRule; 5] = [
    |row, column| (row / 16 + column / 16) % 3 != 0,
    |row, column| (row / 4 * 7 + column / 8 * 3) % 5 != 0,
    |_, _| true,
    |_, _| false,
    |row, column| row != 29 || column != 16,
];

fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn sums_of_bytes_are_the_same_where_zeros_are_passed_over() {
    for threads in [1, 3] {
        let pool = ThreadPool::new(threads);
        let exec = KernelContext::new(&pool);
        for dot in DotIsa::available() {
            for [m, k, n] in SIZES {
                for (pattern, is_zero) in PATTERNS.into_iter().enumerate() {
                    for [a_signed, b_signed] in [[false, true], [true, true], [true, false]] {
                        let a = noise(m * k, 1);
                        let mut b = noise(k * n, 2);
                        let zero = if b_signed { 0 } else { 128 };
                        for (at, byte) in b.iter_mut().enumerate() {
                            if is_zero(at / n, at % n) {
                                *byte = zero;
                            }
                        }
                        let packed = PackedInt8::pack(dot, k, n, b_signed, |i, j| b[i * n + j]);
                        let bytes = QuantizedBytes { data: &a, signed: a_signed, zero: 7 };
                        for zeros in [vec![i32::from(zero)], vec![i32::from(zero) + 3; n]] {
                            let columns = ColumnScales::new(&packed, bytes.form(), &zeros);
                            let mut dense = vec![0; m * n];
                            let target = Int8Target::Sums(&mut dense);
                            gemm_int8(exec, m, bytes, &packed, &columns, target);
                            let sparse = packed.clone().passing_over_zeros();
                            let mut found = vec![-1; m * n];
                            let target = Int8Target::Sums(&mut found);
                            gemm_int8(exec, m, bytes, &sparse, &columns, target);
                            let what = format!("{} {m}x{k}x{n} {pattern}", dot.name());
                            assert!(found == dense, "{what} {a_signed} {b_signed} {zeros:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn bytes_behind_sums_are_the_same_where_zeros_are_passed_over() {
    let pool = ThreadPool::new(2);
    let exec = KernelContext::new(&pool);
    let [m, k, n] = [19, 100, 90];
    let (a, mut b) = (noise(m * k, 3), noise(k * n, 4));
    for (at, byte) in b.iter_mut().enumerate() {
        if PATTERNS[0](at / n, at % n) {
            *byte = 0;
        }
    }
    for dot in DotIsa::available() {
        let dense = PackedInt8::pack(dot, k, n, true, |i, j| b[i * n + j]);
        let form = ByteForm { signed: false, zero: 100 };
        let scales = |column: usize| 1.0 / (200.0 + column as f32);
        let columns = ColumnScales::new(&dense, form, &[0]).with_scales(scales);
        let results = [dense.clone(), dense.passing_over_zeros()].map(|packed| {
            let mut out = vec![0; m * n];
            let target = Int8Target::Bytes { out: &mut out, zero: -3, low: -100, high: 127 };
            let bytes = QuantizedBytes { data: &a, signed: false, zero: 100 };
            gemm_int8(exec, m, bytes, &packed, &columns, target);
            out
        });
        assert!(results[0] == results[1], "{}", dot.name());
    }
}

#[test]
fn products_in_bf16_are_near_where_zeros_are_passed_over() {
    for threads in [1, 3] {
        let pool = ThreadPool::new(threads);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            for [m, k, n] in SIZES {
                for (pattern, is_zero) in PATTERNS.into_iter().enumerate() {
                    let a = crate::gemm::test_values(m * k, 1);
                    let mut b = crate::gemm::test_values(k * n, 2);
                    let bias = crate::gemm::test_values(n, 3);
                    for (at, x) in b.iter_mut().enumerate() {
                        if is_zero(at / n, at % n) {
                            // Zeros of either sign.
                            *x = if at.is_multiple_of(2) { 0.0 } else { -0.0 };
                        }
                    }
                    let epilogue =
                        GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
                    let dense = PackedBf16::pack(k, n, &b, n, Transposition::No);
                    let results = [dense.clone(), dense.passing_over_zeros()].map(|packed| {
                        let mut c = vec![f32::NAN; m * n];
                        gemm_bf16(exec, m, &a, k, &packed, &mut c, n, &epilogue);
                        c
                    });
                    let [want, found] = &results;
                    // The order of the sums is another.
                    let near = 3e-7 * (k as f32 + 4.0);
                    let off = want
                        .iter()
                        .zip(found)
                        .position(|(a, b)| (a - b).abs().is_nan() || (a - b).abs() > near);
                    assert_eq!(off, None, "{} {m}x{k}x{n} {pattern}", isa.name());
                }
            }
        }
    }
}

/// A convolution of 24 to 40 channels with windows of so many pixels in height and width, and its zeros.
fn convolution(side: usize, groups: usize) -> (ConvParams, impl Fn(usize) -> bool) {
    let params = ConvParams {
        in_channels: 24 * groups,
        out_channels: 40 * groups,
        kernel: [1, side, side],
        stride: [1, 1, 2],
        dilation: [1, 1, 1],
        pads_begin: [0, side / 2, side / 2],
        pads_end: [0, side / 2, side / 2],
        groups,
    };
    let taps = side * side;
    // Blocks of channels, the same for all taps but the first.
    let is_zero = move |at: usize| {
        let (column, channel, tap) = (at / (24 * taps), at / taps % 24, at % taps);
        tap > 0 && !(column / 16 + channel / 8).is_multiple_of(3)
            || side == 1 && !(column / 16 + channel / 8).is_multiple_of(2)
    };
    (params, is_zero)
}

/// An image of 2 × 1 × 7 × 9 pixels.
const IMAGE: ImageBatch = ImageBatch { batch: 2, size: [1, 7, 9] };

fn pixels(params: &ConvParams) -> usize {
    IMAGE.batch * params.output_size(IMAGE.size).iter().product::<usize>()
}

#[test]
fn convolutions_of_bytes_are_the_same_where_zeros_are_passed_over() {
    let pool = ThreadPool::new(2);
    let exec = KernelContext::new(&pool);
    for (side, groups) in [(1, 1), (3, 1), (3, 2)] {
        let (params, is_zero) = convolution(side, groups);
        let x = noise(2 * 7 * 9 * params.in_channels, 5);
        for (signed, zero) in [(true, 0_i32), (true, 4), (false, 128)] {
            let stored = if signed { 0 } else { 128 };
            let mut data = noise(params.out_channels * 24 * side * side, 6);
            let zeros = data.iter_mut().enumerate().filter(|(at, _)| is_zero(*at));
            zeros.for_each(|(_, byte)| *byte = stored);
            for dot in DotIsa::available() {
                let weights = Int8ConvWeights { data: &data, signed, zeros: &[zero] };
                let dense = Int8Conv::pack(dot, params, weights, false);
                let form = ByteForm { signed: false, zero: 100 };
                let columns = dense.columns(form, &[zero], None, |_| 1.0);
                let results = [dense.clone(), dense.passing_over_zeros()].map(|packed| {
                    let mut out = vec![-1; pixels(&params) * params.out_channels];
                    let bytes = QuantizedBytes { data: &x, signed: false, zero: 100 };
                    let target = Int8Target::Sums(&mut out);
                    conv_int8(exec, &packed, bytes, IMAGE, &columns, target);
                    out
                });
                assert!(results[0] == results[1], "{} {params:?} {signed} {zero}", dot.name());
            }
        }
    }
}

#[test]
fn convolutions_in_bf16_are_near_where_zeros_are_passed_over() {
    let pool = ThreadPool::new(2);
    for (side, groups) in [(1, 1), (3, 1), (3, 2)] {
        let (params, is_zero) = convolution(side, groups);
        let x = crate::gemm::test_values(2 * 7 * 9 * params.in_channels, 1);
        let mut weights = crate::gemm::test_values(params.out_channels * 24 * side * side, 2);
        let zeros = weights.iter_mut().enumerate().filter(|(at, _)| is_zero(*at));
        zeros.for_each(|(_, weight)| *weight = 0.0);
        let dense = ConvBf16::pack(params, &weights);
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            let results = [dense.clone(), dense.clone().passing_over_zeros()].map(|packed| {
                let mut y = vec![f32::NAN; pixels(&params) * params.out_channels];
                let none = GemmEpilogue::default();
                conv_bf16(exec, &packed, (&x[..]).into(), IMAGE, (&mut y[..]).into(), &none, None);
                y
            });
            let [want, found] = &results;
            let near = 3e-7 * (24 * side * side + 4) as f32;
            let mut both = want.iter().zip(found);
            let off = both.position(|(a, b)| (a - b).abs().is_nan() || (a - b).abs() > near);
            assert_eq!(off, None, "{} {params:?}", isa.name());
        }
    }
}

#[test]
fn zeros_are_passed_over_from_a_share_on_and_never_by_whole_tiles() {
    assert!(sparse_share(0.5).is_some() && sparse_share_bf16(0.5).is_some());
    assert!(sparse_share(0.95).is_none() && sparse_share_bf16(0.95).is_none());
    let size = MatrixSize { rows: 128, columns: 128 };
    let blocks = |row: usize, column: usize| (row / 16 + column / 16).is_multiple_of(2);
    for dot in DotIsa::available() {
        match zero_group(dot) {
            Ok(group) => assert_eq!(group.full_share(size, &blocks), Some(0.5), "{}", dot.name()),
            Err(reason) => assert!(reason.contains("multiplies whole tiles"), "{reason}"),
        }
    }
    assert_eq!(ZERO_PAIRS.full_share(size, &blocks), Some(0.5));
    for isa in Bf16Isa::available() {
        if isa.name() == "amx-bf16" || isa.name() == "neon-bfmmla" {
            let reason = passes_over_zeros(isa, 128).unwrap_err();
            assert!(reason.contains("multiplies whole tiles"), "{reason}");
        } else {
            assert_eq!(passes_over_zeros(isa, 128), Ok(()), "{}", isa.name());
        }
    }
}
