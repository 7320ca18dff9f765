use super::*;
use crate::gemm::test_values;
use crate::isa::Isa;
use crate::{ActivationFunction, MatrixSize, ThreadPool};

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
fn check(bits: u32, block: usize, k: usize, n: usize, own_zeros: bool) {
    let format = BlockFormat::new(bits, block).unwrap();
    let blocks = k.div_ceil(block);
    let all = numbers(k, n, bits);
    let range = f32::from(u8::MAX >> (8 - bits));
    let scales: Vec<f32> =
        test_values(n * blocks, 7).iter().map(|x| (x.abs() + 0.5) / range).collect();
    let points: Vec<f32> =
        test_values(n * blocks, 8).iter().map(|x| (x + 1.0) * range / 2.0).collect();
    let zero = (range + 1.0) / 2.0;
    let zeros = if own_zeros { StoredZeros::Each(&points) } else { StoredZeros::One(zero) };
    let number = |i, j| all[j * k + i];
    let pool = ThreadPool::new(2);
    let size = MatrixSize { rows: k, columns: n };
    let packed = PackedBlocks::pack(&pool, format, size, number, &scales, zeros);
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
                for accuracy in [BlockAccuracy::Full, BlockAccuracy::Reduced] {
                    let epilogue =
                        GemmEpilogue::bias(&bias).with_activation(ActivationFunction::Relu);
                    let mut c = vec![f32::NAN; m * n];
                    let exec = KernelContext { pool: &pool, isa };
                    let from = StridedMatrix::new(&a[..], k + 1);
                    let to = StridedMatrix::new(&mut c[..], n);
                    gemm_blocks(exec, m, from, &packed, to, &epilogue, accuracy);
                    // Weights are below 1.5. A byte is off by 1/254 of the largest term, a BF16 by
                    // 2^-9 of itself; the errors of k terms are independent, so 6 deviations.
                    let tolerance = match accuracy {
                        BlockAccuracy::Full => {
                            1e-6 * (k as f64 + 4.0) * f64::from(range).max(4.0) / 4.0
                        }
                        BlockAccuracy::Reduced => 6.0 * (k as f64).sqrt() * 1.5 / 254.0,
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
        check(bits, 32, 96, 40, false);
        check(bits, 64, 200, 17, true);
    }
}

#[test]
fn blocks_of_every_length_are_right() {
    for block in [32, 64, 128, 256] {
        check(4, block, 300, 300, true);
    }
    check(8, 256, 512, 16, false);
    // Two blocks make a unit, and the last unit has one.
    for (bits, k) in [(2, 210), (4, 40), (4, 200), (6, 16), (8, 80)] {
        check(bits, 16, k, 21, true);
        check(bits, 16, k, 21, false);
    }
}

#[test]
fn formats_without_a_layout_are_none() {
    for (bits, block) in [(1, 32), (7, 32), (9, 32), (4, 8), (4, 0), (4, 48)] {
        assert_eq!(BlockFormat::new(bits, block), None);
    }
}

/// Weights as [`BlockStorage`] says, and what they stand for.
struct Stored {
    packed: PackedBlocks,
    weights: Vec<f64>,
}

fn stored(storage: BlockStorage, k: usize, n: usize, seed: usize) -> Stored {
    let format = storage.format;
    let pool = ThreadPool::new(2);
    let block = format.block();
    let blocks = k.div_ceil(format.block());
    let all = numbers(k, n, format.bits());
    let range = f32::from(u8::MAX >> (8 - format.bits()));
    let whole = |at: usize| half::f16::from_f32(0.001 + ((at + seed) % 7) as f32 * 2e-4).to_f32();
    let per = match storage.factors {
        FactorForm::Nested(superblock) => superblock / block,
        _ => 1,
    };
    let factor = |column: usize, at: usize, from: f32| {
        let times = ((column * 31 + at * 17) % 63) as f32 - from;
        match storage.factors {
            FactorForm::Nested(_) => times * whole(column + at / per),
            FactorForm::Fp16 => half::f16::from_f32((times + 40.5) / range / 80.0).to_f32(),
            FactorForm::Bf16 => half::bf16::from_f32((times + 40.5) / range / 80.0).to_f32(),
            FactorForm::Fp32 => (times + 40.3) / range / 80.0,
        }
    };
    let shift = |column: usize, at: usize| match storage.shift {
        StoredShift::Zero(zero) => zero,
        StoredShift::Zeros => ((column + at) % 5) as f32,
        StoredShift::Offsets => -factor(column + 1, at, 0.0),
    };
    let packed: Result<PackedBlocks, ()> =
        PackedBlocks::pack_columns(&pool, storage, k, n, |column, to| {
            to.numbers.copy_from_slice(&all[column * k..(column + 1) * k]);
            for at in 0..blocks {
                to.scales[at] = factor(column, at, 31.0);
            }
            for (at, to) in to.shifts.iter_mut().enumerate() {
                *to = shift(column, at);
            }
            for at in 0..to.super_scales.len() {
                to.super_scales[at] = whole(column + at);
                to.super_shifts[at] = whole(column + 1 + at);
            }
            Ok(())
        });
    let weight = |column: usize, row: usize| {
        let number = all[column * k + row];
        let at = row / block;
        let number = match format.table() {
            Some(table) => f64::from(table[usize::from(number)]) - 128.0,
            None => number.into(),
        };
        let scale = f64::from(factor(column, at, 31.0));
        let shift = f64::from(shift(column, at));
        match storage.shift {
            StoredShift::Offsets => number * scale + shift,
            _ => (number - shift) * scale,
        }
    };
    let weights = (0..n).flat_map(|column| (0..k).map(move |row| (column, row)));
    let weights = weights.map(|(column, row)| weight(column, row)).collect();
    Stored { packed: packed.unwrap(), weights }
}

/// The sum of a row of `a` with a column, and what its terms amount to.
fn sum(a: &[f32], column: &[f64]) -> (f64, f64) {
    let terms = a.iter().zip(column).map(|(&a, w)| f64::from(a) * w);
    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term * term))
}

#[test]
fn scales_and_offsets_of_every_form_are_right() {
    let plain = |bits, block| BlockFormat::new(bits, block).unwrap();
    let table = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
    let table = BlockFormat::with_table(table, 32).unwrap();
    let k = 512;
    let n = 40;
    for (format, factors, shift) in [
        (plain(4, 32), FactorForm::Fp16, StoredShift::Zero(8.0)),
        (plain(4, 32), FactorForm::Nested(256), StoredShift::Offsets),
        (plain(6, 16), FactorForm::Nested(256), StoredShift::Zero(32.0)),
        (plain(2, 16), FactorForm::Nested(256), StoredShift::Offsets),
        (plain(3, 16), FactorForm::Nested(256), StoredShift::Zero(4.0)),
        (plain(5, 32), FactorForm::Fp16, StoredShift::Offsets),
        (plain(8, 32), FactorForm::Fp16, StoredShift::Zero(128.0)),
        (plain(8, 64), FactorForm::Bf16, StoredShift::Offsets),
        (plain(4, 64), FactorForm::Fp32, StoredShift::Zeros),
        (table, FactorForm::Nested(256), StoredShift::Zero(0.0)),
        (table, FactorForm::Fp16, StoredShift::Zero(0.0)),
    ] {
        let storage = BlockStorage { format, factors, shift };
        let [one, two] = [1, 5].map(|seed| stored(storage, k, n, seed));
        for m in [1, 3, 7, 70] {
            let a = test_values(m * k, 1);
            for isa in Isa::available() {
                for accuracy in [BlockAccuracy::Full, BlockAccuracy::Reduced] {
                    let pool = ThreadPool::new(2);
                    let exec = KernelContext { pool: &pool, isa };
                    let what = format!("{storage:?} {} {accuracy:?} {m}", isa.name());
                    let mut results = [vec![f32::NAN; m * n], vec![f32::NAN; m * n]];
                    let [c, d] = &mut results;
                    let epilogue = GemmEpilogue::default();
                    let mut both = [
                        BlockProduct { b: &one.packed, c, ldc: n, epilogue },
                        BlockProduct { b: &two.packed, c: d, ldc: n, epilogue },
                    ];
                    let from = StridedMatrix::new(&a[..], k);
                    gemm_blocks_each(exec, m, from, &mut both, accuracy);
                    let mut gated = vec![f32::NAN; m * n];
                    let gate =
                        BlockGate { matrix: &one.packed, activation: ActivationFunction::Relu };
                    let to = StridedMatrix::new(&mut gated[..], n);
                    gemm_blocks_gated(exec, m, from, gate, &two.packed, to, accuracy);
                    let own = if accuracy == BlockAccuracy::Full { 1e-5 } else { 0.03 };
                    for at in 0..m * n {
                        let row = &a[at / n * k..][..k];
                        let column = |of: &Stored| sum(row, &of.weights[at % n * k..][..k]);
                        let ((x, x_size), (y, y_size)) = (column(&one), column(&two));
                        let near = |found: f32, expected: f64, size: f64| {
                            let distance = (f64::from(found) - expected).abs();
                            assert!(distance <= own * size, "{what}: {found} for {expected}");
                        };
                        near(results[0][at], x, x_size.sqrt());
                        near(results[1][at], y, y_size.sqrt());
                        let size = x_size.sqrt() * y.abs() + y_size.sqrt() * x.abs();
                        near(gated[at], x.max(0.0) * y, size + own * (x_size * y_size).sqrt());
                    }
                }
            }
        }
    }
}

#[test]
fn a_column_that_fails_is_told() {
    let format = BlockFormat::new(4, 32).unwrap();
    let storage = BlockStorage { format, factors: FactorForm::Fp32, shift: StoredShift::Zero(0.0) };
    let packed = PackedBlocks::pack_columns(&ThreadPool::new(2), storage, 64, 100, |column, _| {
        if column % 40 == 39 { Err(column) } else { Ok(()) }
    });
    assert_eq!(packed.unwrap_err(), 39);
}

/// Products whose every sum is exact in FP32, so that only the right numbers give them.
fn check_halves(half: HalfKind, k: usize, n: usize) {
    let weight = |row: usize, column: usize| ((row * 7 + column * 3) % 33) as f32 / 8.0 - 2.0;
    let storage = BlockStorage {
        format: BlockFormat::halves(half),
        factors: FactorForm::Fp32,
        shift: StoredShift::Zero(0.0),
    };
    let pool = ThreadPool::new(2);
    let packed: Result<PackedBlocks, ()> =
        PackedBlocks::pack_columns(&pool, storage, k, n, |column, to| {
            assert!(to.scales.is_empty() && to.shifts.is_empty());
            for (row, to) in to.numbers.chunks_exact_mut(2).enumerate() {
                let number = weight(row, column);
                to.copy_from_slice(&match half {
                    HalfKind::Fp16 => half::f16::from_f32(number).to_le_bytes(),
                    HalfKind::Bf16 => half::bf16::from_f32(number).to_le_bytes(),
                });
            }
            Ok(())
        });
    let packed = packed.unwrap();
    let columns = n.next_multiple_of(16) * k.next_multiple_of(32);
    assert!(packed.size_bytes() <= 2 * columns + 64, "{} bytes", packed.size_bytes());
    for m in [1, 2, 3, 5, 16, 17, 70] {
        let a: Vec<f32> = (0..m * k).map(|at| (at % 13) as f32 - 6.0).collect();
        let want = |row: usize, column: usize| -> f32 {
            (0..k).map(|at| a[row * k + at] * weight(at, column)).sum()
        };
        for isa in Isa::available() {
            for accuracy in [BlockAccuracy::Full, BlockAccuracy::Reduced] {
                let exec = KernelContext { pool: &pool, isa };
                let what = format!("{} {half:?} {accuracy:?} {m}x{k}x{n}", isa.name());
                let mut c = vec![f32::NAN; m * n];
                let epilogue = GemmEpilogue::default();
                let from = StridedMatrix::new(&a[..], k);
                let to = StridedMatrix::new(&mut c[..], n);
                gemm_blocks(exec, m, from, &packed, to, &epilogue, accuracy);
                let mut gated = vec![f32::NAN; m * n];
                let gate = BlockGate { matrix: &packed, activation: ActivationFunction::Relu };
                let to = StridedMatrix::new(&mut gated[..], n);
                gemm_blocks_gated(exec, m, from, gate, &packed, to, accuracy);
                for at in 0..m * n {
                    let want = want(at / n, at % n);
                    assert_eq!(c[at], want, "{what}: {at}");
                    assert_eq!(gated[at], want.max(0.0) * want, "{what}: gated {at}");
                }
            }
        }
    }
}

#[test]
fn floats_of_16_bits_are_exact_and_stay_as_small_as_they_are() {
    for half in [HalfKind::Fp16, HalfKind::Bf16] {
        check_halves(half, 96, 40);
        check_halves(half, 45, 300);
    }
}
