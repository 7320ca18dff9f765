//! Products of BF16 on instruction sets that have none.

use super::bf16::{Bf16Instructions, Bf16Kernel};
use super::{IsaKernel, NoPairs, Simd, nearest};

/// Products of FP32 in place of those of BF16.
#[derive(Clone, Copy, Debug)]
pub struct WidenedBf16<S>(S);

/// A BF16 algorithm for instruction sets that have none.
pub(super) struct WideningKernel<K>(pub(super) K);

impl<K: Bf16Kernel> IsaKernel for WideningKernel<K> {
    type Output = K::Output;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> K::Output {
        self.0.run(WidenedBf16(s))
    }
}

impl<S: Simd> Bf16Instructions for WidenedBf16<S> {
    type S = S;
    type Pairs = NoPairs<S::F, S::I>;
    const TILE_ROWS: usize = 4;
    const TILE_COLUMNS: usize = 16;

    #[inline(always)]
    fn simd(self) -> S {
        self.0
    }
    #[inline(always)]
    fn enter<K: Bf16Kernel>(self, kernel: K) -> K::Output {
        self.0.enter(WideningKernel(kernel))
    }
    #[inline(always)]
    fn dot(self, sum: S::F, a: S::I, b: S::I) -> S::F {
        let s = self.0;
        let upper = s.splat_i(-0x1_0000);
        let low = |x| s.of_bits(s.shl16(x));
        let high = |x| s.of_bits(s.and_i(x, upper));
        s.fma(high(a), high(b), s.fma(low(a), low(b), sum))
    }
    #[inline(always)]
    unsafe fn narrow(self, x: *const f32, y: *mut u16) {
        // SAFETY: the caller vouches for both; arrays of numbers align as these.
        let (x, y) = unsafe { (&*x.cast::<[f32; 32]>(), &mut *y.cast::<[u16; 32]>()) };
        for (y, &x) in y.iter_mut().zip(x) {
            *y = nearest(x);
        }
    }
}
