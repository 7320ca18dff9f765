use super::*;
use crate::gemm::SparseLayout;
use crate::gemm::test_values as values;
use crate::{ActivationFunction, ThreadPool};
use galatea_tensor::Tensor;
use proptest::prelude::*;

/// The definition, in double precision, channels last.
pub(super) fn reference(
    p: &ConvParams,
    w: &[f32],
    x: &[f32],
    batch: usize,
    size: [usize; 3],
) -> Vec<f64> {
    let out = p.output_size(size);
    let cin = p.in_channels / p.groups;
    let cout = p.out_channels / p.groups;
    let mut y = Vec::new();
    for pixel in 0..batch * out[0] * out[1] * out[2] {
        let place = [pixel / (out[2] * out[1]) % out[0], pixel / out[2] % out[1], pixel % out[2]];
        let b = pixel / (out[0] * out[1] * out[2]);
        for o in 0..p.out_channels {
            let mut sum = 0.0;
            for tap in 0..p.taps() {
                let t = [
                    tap / (p.kernel[1] * p.kernel[2]),
                    tap / p.kernel[2] % p.kernel[1],
                    tap % p.kernel[2],
                ];
                let at: [isize; 3] = std::array::from_fn(|d| {
                    (place[d] * p.stride[d] + t[d] * p.dilation[d]) as isize
                        - p.pads_begin[d] as isize
                });
                if (0..3).any(|d| at[d] < 0 || at[d] >= size[d] as isize) {
                    continue;
                }
                let at = at.map(|v| v as usize);
                let image = ((b * size[0] + at[0]) * size[1] + at[1]) * size[2] + at[2];
                for i in 0..cin {
                    let channel = o / cout * cin + i;
                    let weight = w[(o * cin + i) * p.taps() + tap];
                    sum += f64::from(x[image * p.in_channels + channel]) * f64::from(weight);
                }
            }
            y.push(sum);
        }
    }
    y
}

fn check(p: ConvParams, batch: usize, size: [usize; 3], threads: usize) {
    for algorithm in candidates(Isa::detect(), &p, batch, size) {
        check_algorithm(p, batch, size, threads, algorithm);
    }
}

/// How many times the error of a plain sum an algorithm may have: the transforms of minimal
/// filtering cancel, the more the greater their tiles.
fn growth(algorithm: CpuConvAlgorithm) -> f64 {
    match algorithm {
        CpuConvAlgorithm::Winograd6 => 8.0,
        _ => 1.0,
    }
}

fn check_algorithm(
    p: ConvParams,
    batch: usize,
    size: [usize; 3],
    threads: usize,
    algorithm: CpuConvAlgorithm,
) {
    let pool = ThreadPool::new(threads);
    let cin = p.in_channels / p.groups;
    let w = values(p.out_channels * cin * p.taps(), 1);
    let x = values(batch * size.iter().product::<usize>() * p.in_channels, 2);
    let want = reference(&p, &w, &x, batch, size);
    let bias = values(p.out_channels, 3);
    let residual = values(want.len(), 4);
    let n = p.out_channels;
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        let first = PackedConv::pack_with(isa, p, &w, algorithm);
        let all = Tensor::vector(first.data().concat());
        let packed = PackedConv::from_data(isa, p, algorithm, &all).unwrap();
        assert_eq!(packed.algorithm(), algorithm);
        assert_eq!(packed.data(), first.data());
        let mut y = vec![f32::NAN; want.len()];
        conv(exec, &packed, &x, batch, size, &mut y, &GemmEpilogue::default());
        let tolerance = 3e-7 * (cin * p.taps() + 4) as f64 * growth(algorithm);
        for (i, (&g, &w)) in y.iter().zip(&want).enumerate() {
            assert!(
                (f64::from(g) - w).abs() <= tolerance,
                "{} {algorithm:?} {p:?} {i}: {g} {w}",
                isa.name()
            );
        }
        let clip = ActivationFunction::Clip { min: 0.0, max: 0.5 };
        for activation in [clip, ActivationFunction::Sigmoid] {
            let plain = GemmEpilogue::bias(&bias).with_activation(activation);
            let epilogue = plain.with_residual(&residual, n);
            conv(exec, &packed, &x, batch, size, &mut y, &epilogue);
            if algorithm == CpuConvAlgorithm::Depthwise {
                check_depthwise_bf16(exec, &packed, ImageBatch { batch, size }, &x, &epilogue);
            }
            if packed.joins_result() {
                let mut over = residual.clone();
                conv(exec, &packed, &x, batch, size, &mut over, &plain.with_own_residual(n));
                assert!(over == y, "{} {algorithm:?} {p:?}", isa.name());
            }
            for (i, (&g, &w)) in y.iter().zip(&want).enumerate() {
                let v = w + f64::from(bias[i % n]) + f64::from(residual[i]);
                let v = match activation {
                    ActivationFunction::Sigmoid => 1.0 / (1.0 + (-v).exp()),
                    _ => v.clamp(0.0, 0.5),
                };
                assert!(
                    (f64::from(g) - v).abs() <= tolerance,
                    "{} {algorithm:?} {p:?} {i}: {g} {v}",
                    isa.name()
                );
            }
        }
    }
}

/// From BF16 to BF16 against FP32 of the same values.
fn check_depthwise_bf16(
    exec: KernelContext<'_>,
    packed: &PackedConv,
    image: ImageBatch,
    x: &[f32],
    epilogue: &GemmEpilogue<'_>,
) {
    let half: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
    let wide: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
    let out = packed.params().output_size(image.size);
    let len = image.batch * out.iter().product::<usize>() * packed.params().out_channels;
    let mut want = vec![0.0; len];
    let mut y = vec![bf16::NAN; len];
    conv(exec, packed, &wide, image.batch, image.size, &mut want, epilogue);
    conv_depthwise_bf16(exec, packed, &half, image, &mut y, epilogue);
    for (got, want) in y.iter().zip(&want) {
        // Rounded before and after the activation, whose slope is at most 1: what goes in is below 4.
        let late = if epilogue.activation.as_clamp().is_some() { 0.0 } else { 4.0 / 512.0 };
        let near = (got.to_f32() - want).abs() <= want.abs() / 256.0 + late;
        assert!(near, "{} {got} for {want}", exec.isa.name());
    }
}

fn params(
    channels: [usize; 2],
    kernel: usize,
    stride: usize,
    pad: usize,
    groups: usize,
) -> ConvParams {
    ConvParams {
        stride: [1, stride, stride],
        pads_begin: [0, pad, pad],
        pads_end: [0, pad, pad],
        groups,
        ..ConvParams::new_2d(channels[0], channels[1], [kernel, kernel])
    }
}

#[test]
fn the_layers_of_image_models_equal_the_reference() {
    for threads in [1, 2] {
        check(params([3, 20], 7, 2, 3, 1), 1, [1, 17, 19], threads);
        check(params([16, 33], 3, 1, 1, 1), 2, [1, 9, 8], threads);
        check(params([70, 16], 3, 2, 1, 1), 1, [1, 8, 7], threads);
        check(params([40, 24], 1, 1, 0, 1), 2, [1, 7, 7], threads);
        check(params([40, 24], 1, 2, 0, 1), 2, [1, 7, 7], threads);
        check(params([12, 18], 3, 1, 1, 3), 1, [1, 6, 6], threads);
        check(params([40, 40], 3, 1, 1, 40), 2, [1, 12, 13], threads);
        check(params([35, 35], 3, 2, 1, 35), 1, [1, 13, 25], threads);
        check(params([16, 16], 5, 1, 2, 16), 1, [1, 7, 7], threads);
        check(params([6, 12], 3, 1, 1, 6), 1, [1, 5, 5], threads);
        check(params([8, 8], 3, 1, 1, 8), 1, [1, 1, 1], threads);
        // More taps than one sweep of the depthwise kernel.
        check(params([18, 18], 9, 1, 4, 18), 1, [1, 12, 12], threads);
    }
}

#[test]
fn minimal_filtering_equals_the_reference_for_tiles_that_stick_out() {
    for threads in [1, 2] {
        for (size, pad) in [([1, 6, 6], 1), ([1, 13, 9], 1), ([1, 8, 23], 0), ([2, 3, 3], 2)] {
            check(params([16, 32], 3, 1, pad, 1), 1, size, threads);
            check(params([35, 19], 3, 1, pad, 1), 2, size, threads);
        }
        // Several blocks of channels and of columns; more tiles than columns, and fewer.
        check(params([400, 80], 3, 1, 1, 1), 1, [1, 7, 7], threads);
        check(params([5, 70], 3, 1, 1, 1), 3, [1, 40, 33], threads);
    }
}

#[test]
fn a_window_larger_than_the_image_sees_padding_only_where_it_must() {
    check(params([2, 2], 7, 1, 3, 2), 1, [1, 2, 3], 1);
    check(params([2, 3], 7, 1, 3, 1), 1, [1, 2, 3], 1);
    check(params([2, 2], 3, 1, 5, 2), 1, [1, 2, 2], 1);
    check(params([2, 3], 3, 1, 5, 1), 1, [1, 2, 2], 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_convolution_equals_the_reference(
        kernel in proptest::array::uniform3(1usize..4),
        stride in proptest::array::uniform3(1usize..4),
        dilation in proptest::array::uniform3(1usize..3),
        pads_begin in proptest::array::uniform3(0usize..3),
        pads_end in proptest::array::uniform3(0usize..3),
        size in proptest::array::uniform3(1usize..8),
        (groups, cin, cout) in (1usize..4, 1usize..20, 1usize..40),
        depthwise in proptest::bool::ANY,
        batch in 1usize..3,
    ) {
        let (cin, cout) = if depthwise { (1, 1) } else { (cin, cout) };
        let groups = if depthwise { groups * 11 } else { groups };
        let p = ConvParams {
            in_channels: groups * cin, out_channels: groups * cout,
            kernel, stride, dilation, pads_begin, pads_end, groups,
        };
        check(p, batch, size, 2);
    }
}

/// Weights of which `keep` chooses those that are not zero, by out-channel and place.
fn sparse_weights(p: &ConvParams, keep: impl Fn(usize, usize) -> bool) -> Vec<f32> {
    let each = p.in_channels * p.taps();
    let mut w = values(p.out_channels * each, 1);
    for (i, w) in w.iter_mut().enumerate() {
        // Place among the channels of a tap.
        let (channel, tap) = (i % each / p.taps(), i % p.taps());
        if !keep(i / each, tap * p.in_channels + channel) {
            *w = 0.0;
        }
    }
    w
}

#[test]
fn sparse_convolutions_equal_the_reference() {
    let layers =
        [params([64, 80], 1, 1, 0, 1), params([16, 70], 3, 1, 1, 1), params([8, 33], 3, 2, 1, 1)];
    for p in layers {
        let w = sparse_weights(&p, |out, row| (row + out / 16) % 4 < 2);
        let (batch, size) = (2, [1, 9, 7]);
        let x = values(batch * 63 * p.in_channels, 2);
        let want = reference(&p, &w, &x, batch, size);
        for isa in Isa::available() {
            for threads in [1, 2] {
                let pool = ThreadPool::new(threads);
                let exec = KernelContext { pool: &pool, isa };
                assert_eq!(weight_zeros(isa, &p, &w).is_some(), w.len() >= 4096);
                for layout in
                    [SparseLayout::Strips(1), SparseLayout::TwoOfFour, SparseLayout::Columns]
                {
                    let algorithm = CpuConvAlgorithm::Sparse(layout);
                    assert_eq!(CpuConvAlgorithm::of_name(algorithm.name()), Some(algorithm));
                    let first = PackedConv::pack_with(isa, p, &w, algorithm);
                    let all = Tensor::vector(first.data().concat());
                    let packed = PackedConv::from_data(isa, p, algorithm, &all).unwrap();
                    let mut y = vec![f32::NAN; want.len()];
                    conv(exec, &packed, &x, batch, size, &mut y, &GemmEpilogue::default());
                    let tolerance = 3e-7 * (p.in_channels * p.taps() + 4) as f64;
                    for (g, w) in y.iter().zip(&want) {
                        let near = (f64::from(*g) - w).abs() <= tolerance;
                        assert!(near, "{} {algorithm:?} {p:?}: {g} {w}", isa.name());
                    }
                }
            }
        }
    }
}

#[test]
fn sparse_weights_are_chosen_where_they_are_fewer_than_any_dense_algorithm_multiplies() {
    let isa = Isa::detect();
    let size = [1, 28, 28];
    let pointwise = params([256, 256], 1, 1, 0, 1);
    let w = sparse_weights(&pointwise, |out, row| (row / 8 + out / 64) % 4 == 0);
    let zeros = weight_zeros(isa, &pointwise, &w).unwrap();
    let found = sparse_candidates(isa, &pointwise, 1, size, &zeros);
    assert!(matches!(found.first(), Some(CpuConvAlgorithm::Sparse(_))), "{found:?}");
    // Minimal filtering leaves out more products than half of the weights are.
    let square = params([128, 128], 3, 1, 1, 1);
    let w = sparse_weights(&square, |out, row| (row / 8 + out / 64) % 2 == 0);
    let zeros = weight_zeros(isa, &square, &w).unwrap();
    assert_eq!(sparse_candidates(isa, &square, 1, size, &zeros), []);
    let w = sparse_weights(&square, |out, row| (row / 8 + out / 64) % 16 == 0);
    let zeros = weight_zeros(isa, &square, &w).unwrap();
    assert!(!sparse_candidates(isa, &square, 1, size, &zeros).is_empty());
}

#[test]
fn the_largest_tiles_are_allowed_where_weights_keep_their_error_small() {
    let p = params([64, 64], 3, 1, 1, 1);
    let scattered = values(64 * 64 * 9, 3);
    assert!(is_accurate(CpuConvAlgorithm::Winograd6, &p, &scattered));
    // One large weight for sums of very many small ones: the error of the large is theirs.
    let wide = params([4096, 8], 3, 1, 1, 1);
    assert!(!is_accurate(CpuConvAlgorithm::Winograd6, &wide, &values(4096 * 8 * 9, 3)));
    for algorithm in [CpuConvAlgorithm::Packed, CpuConvAlgorithm::Winograd4] {
        assert!(is_accurate(algorithm, &wide, &values(4096 * 8 * 9, 3)));
    }
    let strided = params([64, 64], 3, 2, 1, 1);
    assert!(!is_accurate(CpuConvAlgorithm::Winograd6, &strided, &scattered));
}

#[test]
fn the_expected_error_is_near_that_which_is_measured() {
    let pool = ThreadPool::new(2);
    for (cin, size) in [(32, [1, 12, 12]), (160, [1, 18, 12])] {
        let p = params([cin, 24], 3, 1, 1, 1);
        let w = values(24 * cin * 9, 5);
        let x = values(size.iter().product::<usize>() * cin, 6);
        let want = reference(&p, &w, &x, 1, size);
        let exec = KernelContext { pool: &pool, isa: Isa::detect() };
        let packed = PackedConv::pack_with(exec.isa, p, &w, CpuConvAlgorithm::Winograd6);
        let mut y = vec![0.0; want.len()];
        conv(exec, &packed, &x, 1, size, &mut y, &GemmEpilogue::default());
        let square = |all: &mut dyn Iterator<Item = f64>| all.map(|x| x * x).sum::<f64>().sqrt();
        let error = square(&mut y.iter().zip(&want).map(|(y, want)| f64::from(*y) - want));
        let measured = error / square(&mut want.iter().copied());
        let expected = winograd::expected_error(&p, winograd::TileSide::Six, &w);
        assert!(measured < expected && expected < 20.0 * measured, "{measured} {expected}");
    }
}
