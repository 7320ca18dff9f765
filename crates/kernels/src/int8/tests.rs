#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "sizes and results of the tests are small"
)]

use super::*;
use crate::ThreadPool;
use crate::conv::{ConvParams, ImageBatch};
use crate::isa::{DotIsa, Isa};

/// Bytes that look random and are the same in every run.
fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn value(byte: u8, signed: bool) -> i32 {
    if signed { byte.cast_signed().into() } else { byte.into() }
}

/// Every instruction set with pools of one and of three threads.
fn everywhere(body: impl Fn(KernelContext<'_>)) {
    for threads in [1, 3] {
        let pool = ThreadPool::new(threads);
        for isa in Isa::available() {
            body(KernelContext { pool: &pool, isa });
        }
    }
}

/// Every set of integer instructions with pools of one and of three threads.
fn every_dot(body: impl Fn(KernelContext<'_>, DotIsa)) {
    for threads in [1, 3] {
        let pool = ThreadPool::new(threads);
        for dot in DotIsa::available() {
            body(KernelContext::new(&pool), dot);
        }
    }
}

const FORMS: [(bool, bool); 4] = [(false, true), (true, true), (false, false), (true, false)];

#[test]
fn sums_are_exact_for_every_form_and_size() {
    let sizes = [
        (1, 1, 1),
        (3, 5, 7),
        (13, 64, 16),
        (25, 130, 70),
        (40, 33, 300),
        (290, 96, 24),
        (33, 1700, 40),
    ];
    every_dot(|exec, dot| {
        for (m, k, n) in sizes {
            for (a_signed, b_signed) in FORMS {
                let a = noise(m * k, 1);
                let b = noise(k * n, 2);
                let a_zero = value(77, a_signed);
                for zeros in [vec![0], vec![value(200, b_signed)], noise_zeros(n, b_signed)] {
                    let packed = PackedInt8::pack(dot, k, n, b_signed, |i, j| b[i * n + j]);
                    let bytes = QuantizedBytes { data: &a, signed: a_signed, zero: a_zero };
                    let columns = ColumnScales::new(&packed, bytes.form(), &zeros);
                    let mut found = vec![0; m * n];
                    gemm_int8(exec, m, bytes, &packed, &columns, Int8Target::Sums(&mut found));
                    let expected = |at: usize| -> i32 {
                        let row = at / n;
                        let column = at % n;
                        let zero = zeros[if zeros.len() == 1 { 0 } else { column }];
                        let term = |i: usize| {
                            (value(a[row * k + i], a_signed) - a_zero)
                                * (value(b[i * n + column], b_signed) - zero)
                        };
                        (0..k).map(term).sum()
                    };
                    let expected: Vec<i32> = (0..m * n).map(expected).collect();
                    assert!(found == expected, "{m}x{k}x{n} {a_signed} {b_signed} {:?}", dot);
                }
            }
        }
    });
}

fn noise_zeros(n: usize, signed: bool) -> Vec<i32> {
    noise(n, 9).into_iter().map(|byte| value(byte, signed)).collect()
}

#[test]
fn sums_are_scaled_rounded_moved_and_limited() {
    everywhere(|exec| {
        let m = 7;
        let k = 20;
        let n = 37;
        let a = noise(m * k, 3);
        let b = noise(k * n, 4);
        let packed = PackedInt8::pack(DotIsa::of(exec.isa), k, n, true, |i, j| b[i * n + j]);
        let bias: Vec<i32> = (0..n as i32).map(|at| at * 100 - 900).collect();
        let scale = |column: usize| 1.0 / (200.0 + column as f32);
        let bytes = QuantizedBytes { data: &a, signed: false, zero: 100 };
        let columns = ColumnScales::new(&packed, bytes.form(), &[0]).with_sums(&bias);
        let columns = columns.with_scales(scale).with_biases(&vec![0.5; n]);
        let mut floats = vec![0.0; m * n];
        let mut out = vec![0; m * n];
        let mut sums = vec![0; m * n];
        gemm_int8(exec, m, bytes, &packed, &columns, Int8Target::Sums(&mut sums));
        gemm_int8(exec, m, bytes, &packed, &columns, Int8Target::Floats(&mut floats));
        let target = Int8Target::Bytes { out: &mut out, zero: -3, low: -100, high: 127 };
        gemm_int8(exec, m, bytes, &packed, &columns, target);
        for (at, &sum) in sums.iter().enumerate() {
            let scaled = sum as f32 * scale(at % n);
            assert!((floats[at] - (scaled + 0.5)).abs() <= 1e-4, "{} for {scaled}", floats[at]);
            let expected = (scaled.round_ties_even() as i32 - 3).clamp(-100, 127);
            assert_eq!(i32::from(out[at].cast_signed()), expected);
        }
        assert!(out.contains(&127) && out.contains(&(-100_i8).cast_unsigned()));
    });
}

/// A convolution by its definition, as scaled floats.
fn plain_conv(
    p: &ConvParams,
    x: QuantizedBytes<'_>,
    image: ImageBatch,
    w: Int8ConvWeights<'_>,
) -> Vec<i32> {
    let ImageBatch { batch, size } = image;
    let out = p.output_size(size);
    let cin = p.in_channels / p.groups;
    let cout = p.out_channels / p.groups;
    let mut sums = Vec::new();
    for pixel in 0..batch * out.iter().product::<usize>() {
        let rest = pixel / out[2];
        let ow = pixel % out[2];
        let (rest, oh) = (rest / out[1], rest % out[1]);
        let b = rest / out[0];
        let od = rest % out[0];
        for channel in 0..p.out_channels {
            let mut sum = 0;
            for at in 0..cin * p.taps() {
                let ci = at / p.taps();
                let tap = at % p.taps();
                let taps = [
                    tap / p.kernel[2] / p.kernel[1],
                    tap / p.kernel[2] % p.kernel[1],
                    tap % p.kernel[2],
                ];
                let place: Option<Vec<usize>> = (0..3)
                    .map(|d| {
                        let o = [od, oh, ow][d] * p.stride[d] + taps[d] * p.dilation[d];
                        o.checked_sub(p.pads_begin[d]).filter(|&at| at < size[d])
                    })
                    .collect();
                let Some(place) = place else { continue };
                let line = (b * size[0] + place[0]) * size[1] + place[1];
                let from = channel / cout * cin + ci;
                let pixel = (line * size[2] + place[2]) * p.in_channels + from;
                let weight = w.value(channel * cin * p.taps() + at) - w.zero(channel);
                sum += (value(x.data[pixel], x.signed) - x.zero) * weight;
            }
            sums.push(sum);
        }
    }
    sums
}

#[test]
fn convolutions_of_every_kind_are_right() {
    let dense = ConvParams {
        pads_begin: [0, 1, 1],
        pads_end: [0, 1, 2],
        ..ConvParams::new_2d(5, 7, [3, 3])
    };
    let kinds = [
        dense,
        ConvParams { stride: [1, 2, 2], dilation: [1, 1, 2], ..dense },
        ConvParams { groups: 2, in_channels: 6, out_channels: 8, ..dense },
        ConvParams { groups: 19, in_channels: 19, out_channels: 19, ..dense },
        ConvParams { groups: 32, in_channels: 32, out_channels: 32, stride: [1, 2, 2], ..dense },
        ConvParams { groups: 48, in_channels: 48, out_channels: 48, ..dense },
        ConvParams { groups: 16, in_channels: 16, out_channels: 16, kernel: [1, 5, 5], ..dense },
        ConvParams::new_2d(12, 20, [1, 1]),
        ConvParams { stride: [1, 2, 2], ..ConvParams::new_2d(12, 20, [1, 1]) },
    ];
    everywhere(|exec| {
        for p in &kinds {
            for (x_signed, w_signed) in FORMS {
                let zeros = noise_zeros(p.out_channels, w_signed);
                let image = ImageBatch { batch: 2, size: [1, 9, 11] };
                ConvCase::new(p, image, (x_signed, w_signed), &zeros).check(exec);
            }
        }
    });
}

/// Only tiles read an image in place.
#[cfg(target_arch = "x86_64")]
#[test]
fn convolutions_that_read_the_image_in_place_are_right() {
    let padded = |p: ConvParams| ConvParams { pads_begin: [0, 1, 1], pads_end: [0, 1, 2], ..p };
    let dense = ConvParams::new_2d(64, 70, [3, 3]);
    let stem = ConvParams::new_2d(3, 40, [7, 7]);
    let twice = |p: ConvParams| ConvParams { stride: [1, 2, 2], ..p };
    let kinds = [
        (padded(dense), (2, [1, 14, 18])),
        (dense, (1, [2, 9, 37])),
        (twice(padded(dense)), (3, [1, 17, 29])),
        (twice(dense), (1, [1, 15, 40])),
        (ConvParams { dilation: [1, 2, 3], ..padded(dense) }, (1, [1, 12, 20])),
        (
            twice(ConvParams { pads_begin: [0, 3, 3], pads_end: [0, 3, 3], ..stem }),
            (2, [1, 40, 44]),
        ),
        (stem, (1, [1, 9, 31])),
        (padded(ConvParams::new_2d(128, 33, [3, 3])), (2, [1, 7, 7])),
        (ConvParams::new_2d(12, 20, [1, 1]), (1, [1, 9, 11])),
        (ConvParams::new_2d(64, 300, [1, 1]), (1, [1, 1, 3])),
        (ConvParams::new_2d(130, 20, [1, 1]), (9, [1, 13, 15])),
        (twice(ConvParams::new_2d(70, 20, [1, 1])), (2, [1, 13, 16])),
        (padded(ConvParams::new_2d(65, 20, [1, 1])), (2, [1, 3, 16])),
    ];
    for (p, (batch, size)) in &kinds {
        let image = ImageBatch { batch: *batch, size: *size };
        for x_signed in [false, true] {
            let case = ConvCase::new(p, image, (x_signed, true), &[0]);
            everywhere(|exec| case.check(exec));
        }
    }
}

/// A convolution and what plain loops find.
struct ConvCase<'a> {
    p: &'a ConvParams,
    image: ImageBatch,
    signed: (bool, bool),
    zeros: &'a [i32],
    x: Vec<u8>,
    weights: Vec<u8>,
    zero: i32,
    sums: Vec<i32>,
}

impl<'a> ConvCase<'a> {
    fn new(p: &'a ConvParams, image: ImageBatch, signed: (bool, bool), zeros: &'a [i32]) -> Self {
        let x = noise(image.batch * image.size.iter().product::<usize>() * p.in_channels, 5);
        let zero = value(90, signed.0);
        let weights = noise(p.out_channels * p.in_channels / p.groups * p.taps(), 6);
        let of = Int8ConvWeights { data: &weights, signed: signed.1, zeros };
        let bytes = QuantizedBytes { data: &x, signed: signed.0, zero };
        let sums = plain_conv(p, bytes, image, of);
        Self { p, image, signed, zeros, x, weights, zero, sums }
    }

    /// Compares sums and bytes.
    fn check(&self, exec: KernelContext<'_>) {
        let Self { p, image, signed: (x_signed, w_signed), zeros, zero, .. } = *self;
        let weights = Int8ConvWeights { data: &self.weights, signed: w_signed, zeros };
        let expected = &self.sums;
        let dot = DotIsa::of(exec.isa);
        let bytes = QuantizedBytes { data: &self.x, signed: x_signed, zero };
        let packed = Int8Conv::pack(dot, *p, weights, false);
        let columns = packed.columns(bytes.form(), zeros, None, |_| 1.0);
        let mut sums = vec![0; expected.len()];
        conv_int8(exec, &packed, bytes, image, &columns, Int8Target::Sums(&mut sums));
        assert!(sums == *expected, "{p:?} {image:?} {x_signed} {w_signed} {dot:?}");
        let packed = Int8Conv::pack(dot, *p, weights, true);
        let bias: Vec<i32> = (0..p.out_channels as i32).map(|c| c * 1000).collect();
        let scale = |channel: usize| 1.0 / (1000.0 + channel as f32);
        let columns = packed.columns(bytes.form(), zeros, Some(&bias), scale);
        let mut out = vec![0; expected.len()];
        let target = Int8Target::Bytes { out: &mut out, zero: 120, low: 0, high: 255 };
        conv_int8(exec, &packed, bytes, image, &columns, target);
        for (at, (&found, sum)) in out.iter().zip(expected).enumerate() {
            let channel = at % p.out_channels;
            let scaled = (sum + bias[channel]) as f32 * scale(channel);
            let wanted = (scaled.round_ties_even() as i32 + 120).clamp(0, 255);
            assert_eq!(i32::from(found), wanted, "{p:?} {dot:?}");
        }
        if p.groups == 1 {
            // Together with a sum as the two after each other.
            let other = noise(out.len(), 8);
            let other = QuantizedBytes { data: &other, signed: x_signed, zero: 3 };
            let scales = SummandScales { own: 0.3, other: 0.7, result: 0.9 };
            let result = ByteForm { signed: true, zero: -5 };
            let mut expected = vec![0; out.len()];
            let own = QuantizedBytes { data: &out, signed: false, zero: 120 };
            let all = [scales.own, scales.other, scales.result];
            pair_bytes(exec, PairFunction::Sum, own, other, all, result, &mut expected);
            // The others lie elsewhere, or where the sums go.
            for (data, mut found) in
                [(Some(other.data), vec![0; out.len()]), (None, other.data.to_vec())]
            {
                let beside = Int8Summand { data, form: other.form(), scales, result };
                let target =
                    Int8Target::Sum { out: &mut found, zero: 120, low: 0, high: 255, beside };
                conv_int8(exec, &packed, bytes, image, &columns, target);
                assert!(found == expected, "{p:?} {image:?} {dot:?} {data:?}");
            }
        }
    }
}

#[test]
fn floats_become_bytes_and_come_back() {
    everywhere(|exec| {
        let x: Vec<f32> = (0..1003).map(|at| at as f32 * 0.37 - 150.0).collect();
        for signed in [false, true] {
            let mut q = vec![0; x.len()];
            let form = ByteForm { signed, zero: 7 };
            quantize(exec, &x, 0.5, form, &mut q);
            let ByteLimits { low, high, .. } = form.limits();
            for (&x, &q) in x.iter().zip(&q) {
                let expected = ((x / 0.5).round_ties_even() as i32 + 7).clamp(low, high);
                assert_eq!(value(q, signed), expected);
            }
            let mut back = vec![0.0; x.len()];
            dequantize(exec, QuantizedBytes { data: &q, signed, zero: 7 }, 0.25, &mut back);
            for (&q, &back) in q.iter().zip(&back) {
                assert_eq!(back, (value(q, signed) - 7) as f32 * 0.25);
            }
            let a = QuantizedBytes { data: &q, signed, zero: 7 };
            // As long, and a part that is repeated: 1003 = 17 * 59.
            for (pair, len) in
                [(PairFunction::Sum, x.len()), (PairFunction::Sum, 59), (PairFunction::Product, 17)]
            {
                let other = noise(len, 8);
                let b = QuantizedBytes { data: &other, signed: true, zero: -1 };
                let mut y = vec![0; x.len()];
                let form = ByteForm { signed: false, zero: 3 };
                pair_bytes(exec, pair, a, b, [0.5, 0.25, 2.0], form, &mut y);
                for ((&q, &o), &found) in q.iter().zip(other.iter().cycle()).zip(&y) {
                    let a = (value(q, signed) - 7) as f32 * 0.5;
                    let b = (value(o, true) + 1) as f32 * 0.25;
                    let both = if pair == PairFunction::Sum { a + b } else { a * b };
                    let expected = ((both / 2.0).round_ties_even() as i32 + 3).clamp(0, 255);
                    assert_eq!(i32::from(found), expected);
                }
            }
        }
        let table = std::array::from_fn(|at| (at as u8).reverse_bits());
        let mut y = vec![0; 300];
        let x = noise(300, 1);
        look_up(exec, &x, &table, &mut y);
        assert!(x.iter().zip(&y).all(|(x, y)| x.reverse_bits() == *y));
    });
}

#[test]
fn products_of_two_values_of_a_run_are_right() {
    everywhere(|exec| {
        let m = 5;
        let k = 19;
        let n = 40;
        let a = noise(3 * m * k, 1);
        let b = noise(2 * k * n, 2);
        let offsets = [0, k * n, 0];
        let left = Int8BatchedOperand {
            bytes: QuantizedBytes { data: &a, signed: true, zero: -7 },
            offsets: &[0, m * k, 2 * m * k],
        };
        let right = Int8BatchedOperand {
            bytes: QuantizedBytes { data: &b, signed: false, zero: 99 },
            offsets: &offsets,
        };
        let mut found = vec![0.0; 3 * m * n];
        let target = Int8Target::Floats(&mut found);
        matmul_int8_batched(exec, ProductSize { m, k, n }, left, right, 0.25, target);
        for (at, found) in found.iter().enumerate() {
            let row = at / n;
            let column = at % n;
            let b = &b[offsets[row / m]..];
            let term =
                |i| (value(a[row * k + i], true) + 7) * (value(b[i * n + column], false) - 99);
            let sum: i32 = (0..k).map(term).sum();
            assert_eq!(*found, sum as f32 * 0.25);
        }
    });
}

#[test]
fn the_largest_byte_of_each_window_and_the_extremes_are_found() {
    everywhere(|exec| {
        let p = ConvParams {
            stride: [1, 2, 2],
            pads_begin: [0, 1, 1],
            ..ConvParams::new_2d(21, 21, [3, 3])
        };
        let size = [1, 8, 9];
        let x = noise(2 * 72 * 21, 4);
        for signed in [false, true] {
            let out = p.output_size(size);
            let mut y = vec![0; 2 * out[1] * out[2] * 21];
            let image = ImageBatch { batch: 2, size };
            max_pool_bytes(exec, &p, &x, signed, image, &mut y);
            for (at, &found) in y.iter().enumerate() {
                let pixel = at / 21;
                let channel = at % 21;
                let row = pixel / out[2] % out[1];
                let column = pixel % out[2];
                let batch = pixel / out[2] / out[1];
                let seen = (0..9).filter_map(|tap| {
                    let h = (row * 2 + tap / 3).checked_sub(1).filter(|&h| h < 8)?;
                    let w = (column * 2 + tap % 3).checked_sub(1).filter(|&w| w < 9)?;
                    Some(value(x[((batch * 8 + h) * 9 + w) * 21 + channel], signed))
                });
                assert_eq!(Some(value(found, signed)), seen.max());
            }
        }
        for len in [0, 3, 1000, 50_000] {
            let x: Vec<f32> = noise(len, 3).iter().map(|&v| f32::from(v) - 70.0).collect();
            let expected = x.iter().fold((0.0_f32, 0.0_f32), |(l, h), &v| (l.min(v), h.max(v)));
            assert_eq!(extremes(exec, &x), expected);
        }
    });
}
