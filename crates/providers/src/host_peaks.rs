//! Peaks of this host's CPU, measured in about a second.

use std::hint::black_box;
use std::time::Instant;

use galatea_apple::accelerate::{
    BlasLibrary, BlasOperand, BlasSizes, GemmScaling, OperandOrientation,
};
use galatea_kernels::bf16::{PackedBf16, gemm_bf16};
use galatea_kernels::int8::{
    ByteForm, ColumnScales, Int8Target, PackedInt8, QuantizedBytes, gemm_int8,
};
use galatea_kernels::isa::DotIsa;
use galatea_kernels::peak::{flops_per_ns_of, read_bytes_per_ns};
use galatea_kernels::{GemmEpilogue, Isa, KernelContext, ThreadPool, Transposition};
use galatea_runtime::DevicePeaks;

use crate::cores::HostCores;

/// Rows, terms and columns of the matrices that are multiplied: their operands lie in caches.
const LENGTH: usize = 512;
/// Multiplications of which the fastest counts.
const ROUNDS: usize = 5;
/// Threads that read memory: more reach no more, and each needs bytes of its own.
const READERS: usize = 4;

/// Measures the peaks of the fast cores together: multiply-adds of FP32 in registers, matrix products of BF16 and of
/// bytes by the kernels of this crate's provider, and reads of memory. Where the system's library multiplies FP32
/// faster than registers allow, its matrix unit is the peak.
#[must_use]
pub fn measure_host_peaks() -> DevicePeaks {
    let threads = HostCores::detect().fast.max(1);
    let pool = ThreadPool::new(threads);
    let vector = flops_per_ns_of(threads);
    let library = library_flops_per_ns().unwrap_or(0.0);
    DevicePeaks {
        vector_f32: Some(vector.max(library) * 1e9),
        bf16: Some(bf16_flops_per_ns(&pool) * 1e9),
        int8: Some(int8_operations_per_ns(&pool) * 1e9),
        bytes: Some(read_bytes_per_ns(threads.min(READERS)) * 1e9),
        ..DevicePeaks::default()
    }
}

/// Operations in a nanosecond of a product of matrices of [`LENGTH`].
fn product(mut run: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    // The first one is a warm-up.
    for _ in 0..=ROUNDS {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_secs_f64() * 1e9);
    }
    2.0 * (LENGTH * LENGTH * LENGTH) as f64 / least.max(1.0)
}

fn bf16_flops_per_ns(pool: &ThreadPool) -> f64 {
    let a = vec![0.5_f32; LENGTH * LENGTH];
    let b = PackedBf16::pack(LENGTH, LENGTH, &a, LENGTH, Transposition::No);
    let mut c = vec![0.0_f32; LENGTH * LENGTH];
    let exec = KernelContext { pool, isa: Isa::detect() };
    let none = GemmEpilogue::default();
    let found = product(|| gemm_bf16(exec, LENGTH, &a, LENGTH, &b, &mut c, LENGTH, &none));
    black_box(&c);
    found
}

fn int8_operations_per_ns(pool: &ThreadPool) -> f64 {
    let isa = Isa::detect();
    let data = vec![3_u8; LENGTH * LENGTH];
    let b = PackedInt8::pack(DotIsa::of(isa), LENGTH, LENGTH, true, |_, _| 3);
    let columns = ColumnScales::new(&b, ByteForm { signed: true, zero: 0 }, &[0]);
    let mut c = vec![0.0_f32; LENGTH * LENGTH];
    let exec = KernelContext { pool, isa };
    let found = product(|| {
        let a = QuantizedBytes { data: &data, signed: true, zero: 0 };
        gemm_int8(exec, LENGTH, a, &b, &columns, Int8Target::Floats(&mut c));
    });
    black_box(&c);
    found
}

/// FP32 operations in a nanosecond of the system's library; none where there is none.
fn library_flops_per_ns() -> Option<f64> {
    let blas = BlasLibrary::system().ok()?;
    let a = vec![0.5_f32; LENGTH * LENGTH];
    let mut c = vec![0.0_f32; LENGTH * LENGTH];
    let sizes = BlasSizes { m: LENGTH, n: LENGTH, k: LENGTH };
    let scaling = GemmScaling { alpha: 1.0, beta: 0.0 };
    let plain = || BlasOperand { data: &a, stride: LENGTH, orientation: OperandOrientation::Plain };
    let mut worked = true;
    let found = product(|| {
        worked &= blas.sgemm(sizes, scaling, plain(), plain(), &mut c, LENGTH).is_ok();
    });
    black_box(&c);
    worked.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peak_of_the_cpu_is_measured() {
        let found = measure_host_peaks();
        for peak in [found.vector_f32, found.bf16, found.int8, found.bytes] {
            assert!(peak.is_some_and(|peak| peak.is_finite() && peak > 1e6), "{found:?}");
        }
        assert_eq!((found.matrix_f16, found.dispatch), (None, None));
    }
}
