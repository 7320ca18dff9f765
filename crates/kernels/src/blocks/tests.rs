use super::*;
use crate::gemm::test_values;
use crate::isa::Isa;
use crate::{Activation, ThreadPool};

fn numbers(k: usize, n: usize, bits: u32) -> Vec<u8> {
    let mask = u8::MAX >> (8 - bits);
    let mut state = 12_345_u32;
    (0..k * n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0] & mask
        })
        .collect()
}

/// Products of every row count with weights in blocks against a plain loop.
fn check(bits: u32, block: usize, (k, n): (usize, usize), own_zeros: bool) {
    let format = BlockFormat::new(bits, block).unwrap();
    let blocks = k.div_ceil(block);
    let all = numbers(k, n, bits);
    let range = f32::from(u8::MAX >> (8 - bits));
    let scales: Vec<f32> =
        test_values(n * blocks, 7).iter().map(|x| (x.abs() + 0.5) / range).collect();
    let points: Vec<f32> =
        test_values(n * blocks, 8).iter().map(|x| (x + 1.0) * range / 2.0).collect();
    let zero = (range + 1.0) / 2.0;
    let zeros = if own_zeros { Zeros::Each(&points) } else { Zeros::One(zero) };
    let packed = PackedBlocks::pack(format, (k, n), |i, j| all[j * k + i], &scales, zeros);
    let weight = |i: usize, j: usize| {
        let at = j * blocks + i / block;
        let zero = if own_zeros { points[at] } else { zero };
        (f64::from(all[j * k + i]) - f64::from(zero)) * f64::from(scales[at])
    };
    let bias = test_values(n, 3);
    for m in [1, 2, 3, 4, 7, 40] {
        let a = test_values(m * (k + 1), 1);
        let want = |row: usize, column: usize| {
            let sum: f64 =
                (0..k).map(|i| f64::from(a[row * (k + 1) + i]) * weight(i, column)).sum();
            (sum + f64::from(bias[column])).max(0.0)
        };
        for threads in [1, 2] {
            let pool = ThreadPool::new(threads);
            for isa in Isa::available() {
                for accuracy in [Accuracy::Full, Accuracy::Reduced] {
                    let epilogue = Epilogue::bias(&bias).with_activation(Activation::Relu);
                    let mut c = vec![f32::NAN; m * n];
                    let exec = Exec { pool: &pool, isa };
                    gemm_blocks(exec, m, (&a, k + 1), &packed, (&mut c, n), &epilogue, accuracy);
                    // Weights are below 1.5. A byte is off by 1/254 of the largest term, a BF16 by
                    // 2^-9 of itself; the errors of k terms are independent, so 6 deviations.
                    let tolerance = match accuracy {
                        Accuracy::Full => 1e-6 * (k as f64 + 4.0) * f64::from(range).max(4.0) / 4.0,
                        Accuracy::Reduced => 6.0 * (k as f64).sqrt() * 1.5 / 254.0,
                    };
                    for (at, &got) in c.iter().enumerate() {
                        let want = want(at / n, at % n);
                        let near = (f64::from(got) - want).abs() <= tolerance;
                        let name = isa.name();
                        assert!(
                            near,
                            "{name} {accuracy:?} {bits} bits / {block}, {m}x{k}x{n}: {at}: {got} for {want}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_of_every_width_are_right() {
    for bits in [2, 3, 4, 5, 6, 8] {
        check(bits, 32, (96, 40), false);
        check(bits, 64, (200, 17), true);
    }
}

#[test]
fn blocks_of_every_length_are_right() {
    for block in [32, 64, 128, 256] {
        check(4, block, (300, 300), true);
    }
    check(8, 256, (512, 16), false);
}

#[test]
fn formats_without_a_layout_are_none() {
    for (bits, block) in [(1, 32), (7, 32), (9, 32), (4, 16), (4, 0), (4, 48)] {
        assert_eq!(BlockFormat::new(bits, block), None);
    }
}
