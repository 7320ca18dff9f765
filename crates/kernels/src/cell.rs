//! Elements of matrices and images: FP32, or BF16 that kernels widen as they load and round as they
//! store.

use half::bf16;

use crate::activation::{ActivateRows, ActivationFunction};
use crate::isa::Simd;

/// Elements of an operand.
#[derive(Clone, Copy, Debug)]
pub enum RealSlice<'a> {
    /// Single precision.
    Fp32(&'a [f32]),
    /// The upper half of single precision.
    Bf16(&'a [bf16]),
}

/// Elements of a result. BF16 is rounded to nearest, ties to even.
#[derive(Debug)]
pub enum RealsMut<'a> {
    /// Single precision.
    Fp32(&'a mut [f32]),
    /// The upper half of single precision.
    Bf16(&'a mut [bf16]),
}

impl RealSlice<'_> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fp32(x) => x.len(),
            Self::Bf16(x) => x.len(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl RealsMut<'_> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fp32(x) => x.len(),
            Self::Bf16(x) => x.len(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [f32]> for RealSlice<'a> {
    fn from(x: &'a [f32]) -> Self {
        Self::Fp32(x)
    }
}

impl<'a> From<&'a [bf16]> for RealSlice<'a> {
    fn from(x: &'a [bf16]) -> Self {
        Self::Bf16(x)
    }
}

impl<'a> From<&'a mut [f32]> for RealsMut<'a> {
    fn from(x: &'a mut [f32]) -> Self {
        Self::Fp32(x)
    }
}

impl<'a> From<&'a mut [bf16]> for RealsMut<'a> {
    fn from(x: &'a mut [bf16]) -> Self {
        Self::Bf16(x)
    }
}

/// One of the types of elements, which vectors of FP32 are loaded from and stored to.
pub(crate) trait RealCell: Copy + Send + Sync + 'static {
    /// Loads a vector, or what a mask chooses of it.
    ///
    /// # Safety
    /// `p` is valid for that.
    unsafe fn load<S: Simd>(s: S, p: *const Self, mask: Option<S::M>) -> S::F;

    /// Stores a vector, or what a mask chooses of it.
    ///
    /// # Safety
    /// `p` is valid for that.
    unsafe fn store<S: Simd>(s: S, p: *mut Self, mask: Option<S::M>, x: S::F);

    /// Applies an activation in place to `n` values.
    ///
    /// # Safety
    /// `p` is valid for them.
    unsafe fn activate<S: Simd>(s: S, activation: ActivationFunction, p: *mut Self, n: usize);
}

impl RealCell for f32 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self, mask: Option<S::M>) -> S::F {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match mask {
                Some(mask) => s.load_tail(p, mask),
                None => s.load(p),
            }
        }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, mask: Option<S::M>, x: S::F) {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match mask {
                Some(mask) => s.store_tail(p, mask, x),
                None => s.store(p, x),
            }
        }
    }

    #[inline(always)]
    unsafe fn activate<S: Simd>(s: S, activation: ActivationFunction, data: *mut Self, n: usize) {
        // SAFETY: the caller vouches for the memory.
        unsafe { ActivateRows { activation, data, rows: 1, columns: n, stride: n }.run(s) };
    }
}

/// Values that are widened at once.
const WIDENED: usize = 512;

impl RealCell for bf16 {
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self, mask: Option<S::M>) -> S::F {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match mask {
                Some(mask) => s.load_bf16_tail(p.cast(), mask),
                None => s.load_bf16(p.cast()),
            }
        }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, mask: Option<S::M>, x: S::F) {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match mask {
                Some(mask) => s.store_bf16_tail(p.cast(), mask, x),
                None => s.store_bf16(p.cast(), x),
            }
        }
    }

    #[inline(always)]
    unsafe fn activate<S: Simd>(s: S, activation: ActivationFunction, p: *mut Self, n: usize) {
        let mut wide = [0.0_f32; WIDENED];
        for start in (0..n).step_by(WIDENED) {
            let here = WIDENED.min(n - start);
            // SAFETY: some of the caller's values; there is room for them.
            unsafe {
                copy_cells(s, p.cast_const().add(start), wide.as_mut_ptr(), here);
                f32::activate(s, activation, wide.as_mut_ptr(), here);
                copy_cells(s, wide.as_ptr(), p.add(start), here);
            }
        }
    }
}

/// Copies `n` values, which are widened or rounded.
///
/// # Safety
/// Both are valid for them.
#[inline(always)]
pub(crate) unsafe fn copy_cells<S: Simd, X: RealCell, Y: RealCell>(
    s: S,
    x: *const X,
    y: *mut Y,
    n: usize,
) {
    for at in (0..n).step_by(S::LANES) {
        let mask = (n - at < S::LANES).then(|| s.tail(n - at));
        // SAFETY: whole vectors, or what the mask chooses.
        unsafe { Y::store(s, y.add(at), mask, X::load(s, x.add(at), mask)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{IsaKernel, nearest};
    use crate::{Isa, gemm::test_values};

    struct Copy<'a>(&'a [f32], &'a mut [bf16], &'a mut [f32]);

    impl IsaKernel for Copy<'_> {
        type Output = ();
        fn run<S: Simd>(self, s: S) {
            for at in (0..self.0.len()).step_by(S::LANES) {
                let left = self.0.len() - at;
                let mask = (left < S::LANES).then(|| s.tail(left));
                // SAFETY: whole vectors, or what the mask chooses.
                unsafe {
                    let x = f32::load(s, self.0.as_ptr().add(at), mask);
                    bf16::store(s, self.1.as_mut_ptr().add(at), mask, x);
                    let x = bf16::load(s, self.1.as_ptr().add(at), mask);
                    f32::store(s, self.2.as_mut_ptr().add(at), mask, x);
                }
            }
        }
    }

    #[test]
    fn cells_are_rounded_to_nearest_even_and_widened_exactly() {
        let mut values = test_values(77, 1);
        values.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -3.4e38, 1e-40, -0.0]);
        values.extend([1.003_906_3, 1.011_718_8, f32::from_bits(0x7f80_0001)]);
        for len in [values.len(), 16, 17, 3] {
            let x = &values[values.len() - len..];
            for isa in Isa::available() {
                let mut half = vec![bf16::ONE; len + 1];
                let mut back = vec![7.0; len + 1];
                isa.run(Copy(x, &mut half[..len], &mut back[..len]));
                for i in 0..len {
                    let got = half[i].to_bits();
                    let want = nearest(x[i]);
                    let same = got == want || half[i].is_nan() && x[i].is_nan();
                    assert!(same, "{} {}: {got:x} for {want:x}", isa.name(), x[i]);
                    assert_eq!(back[i].to_bits() >> 16, u32::from(got), "{}", isa.name());
                }
                assert_eq!((half[len], back[len]), (bf16::ONE, 7.0), "wrote beyond the end");
            }
        }
    }
}
