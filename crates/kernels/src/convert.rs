//! Conversions between `f32` and the 16-bit formats, to nearest with ties to even.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::KernelContext;
use crate::memory::DisjointSlice;

/// Elements per task.
const GRAIN: usize = 32_768;

macro_rules! conversions {
    ($widen:ident, $narrow:ident, $half:ty, $name:literal) => {
        #[doc = concat!("`y[i] = x[i]` from ", $name, "; exact.")]
        ///
        /// # Panics
        /// Panics when the lengths differ.
        pub fn $widen(exec: KernelContext<'_>, x: &[$half], y: &mut [f32]) {
            assert!(x.len() == y.len(), "convert: {} elements into {}", x.len(), y.len());
            let y = DisjointSlice::new(y);
            exec.pool.run_ranges(x.len(), GRAIN, |range| {
                // SAFETY: ranges are disjoint.
                let y = unsafe { y.range(range.clone()) };
                x[range].convert_to_f32_slice(y);
            });
        }

        #[doc = concat!("`y[i] = x[i]` to ", $name, ", rounded to nearest even.")]
        ///
        /// # Panics
        /// Panics when the lengths differ.
        pub fn $narrow(exec: KernelContext<'_>, x: &[f32], y: &mut [$half]) {
            assert!(x.len() == y.len(), "convert: {} elements into {}", x.len(), y.len());
            let y = DisjointSlice::new(y);
            exec.pool.run_ranges(x.len(), GRAIN, |range| {
                // SAFETY: ranges are disjoint.
                let y = unsafe { y.range(range.clone()) };
                y.convert_from_f32_slice(&x[range]);
            });
        }
    };
}

conversions!(f16_to_f32, f32_to_f16, f16, "IEEE half precision");
conversions!(bf16_to_f32, f32_to_bf16, bf16, "bfloat16");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadPool;

    #[test]
    fn every_half_value_survives_the_round_trip() {
        let pool = ThreadPool::new(2);
        let exec = KernelContext::new(&pool);
        let mut wide = vec![0.0; 65_536];
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut back = vec![f16::ZERO; 65_536];
        f16_to_f32(exec, &halves, &mut wide);
        f32_to_f16(exec, &wide, &mut back);
        for (a, b) in halves.iter().zip(&back) {
            assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
        }
        let brains: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
        let mut back = vec![bf16::ZERO; 65_536];
        bf16_to_f32(exec, &brains, &mut wide);
        f32_to_bf16(exec, &wide, &mut back);
        for (a, b) in brains.iter().zip(&back) {
            assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
        }
    }
}
