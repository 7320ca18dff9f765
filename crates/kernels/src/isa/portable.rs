//! Plain Rust vectors: always there, the meaning that the other instruction sets are held to.

#![allow(clippy::cast_possible_truncation, reason = "exponents of f32 are far inside i32")]

use super::{IsaKernel, Simd};

/// No instruction set beyond the compilation target's baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portable;

const N: usize = 4;
type F = [f32; N];
type I = [i32; N];
type M = [bool; N];

impl Portable {
    /// The token; every processor has it.
    #[must_use]
    pub fn new() -> Option<Self> {
        Some(Self)
    }
}

#[inline(never)]
fn enter<K: IsaKernel>(s: Portable, kernel: K) -> K::Output {
    kernel.run(s)
}

#[inline(always)]
fn zip(a: F, b: F, f: impl Fn(f32, f32) -> f32) -> F {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// `2^n` for `n` in -126..=127.
#[inline(always)]
fn pow2(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

impl Simd for Portable {
    const LANES: usize = N;
    const TILE_ROWS: usize = 4;
    const TILE_VECTORS: usize = 2;
    const TILE_ROWS_BY_VECTORS: [usize; 4] = [Self::TILE_ROWS, Self::TILE_ROWS, 0, 0];
    const FUSED: bool = false;
    type F = F;
    type I = I;
    type M = M;

    #[inline(always)]
    fn enter<K: IsaKernel>(self, kernel: K) -> K::Output {
        enter(self, kernel)
    }
    #[inline(always)]
    fn splat(self, value: f32) -> F {
        [value; N]
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> F {
        // SAFETY: the caller vouches for LANES readable values; arrays of f32 align as f32.
        unsafe { *p.cast::<F>() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: F) {
        // SAFETY: the caller vouches for LANES writable values; arrays of f32 align as f32.
        unsafe { *p.cast::<F>() = v }
    }
    #[inline(always)]
    fn tail(self, n: usize) -> M {
        std::array::from_fn(|i| i < n)
    }
    #[inline(always)]
    unsafe fn load_tail(self, p: *const f32, m: M) -> F {
        let mut out = [0.0; N];
        for i in 0..N {
            if m[i] {
                // SAFETY: the lane is chosen, so the caller vouches for it.
                out[i] = unsafe { *p.add(i) };
            }
        }
        out
    }
    #[inline(always)]
    unsafe fn store_tail(self, p: *mut f32, m: M, v: F) {
        for i in 0..N {
            if m[i] {
                // SAFETY: the lane is chosen, so the caller vouches for it.
                unsafe { *p.add(i) = v[i] };
            }
        }
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        // A fused f32::mul_add without hardware support is a slow library call.
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn fnma(self, a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| c[i] - a[i] * b[i])
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        zip(a, b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        zip(a, b, |x, y| if x < y { x } else { y })
    }
    #[inline(always)]
    fn sqrt(self, a: F) -> F {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        a.map(f32::round_ties_even)
    }
    #[inline(always)]
    fn lt(self, a: F, b: F) -> M {
        std::array::from_fn(|i| a[i] < b[i])
    }
    #[inline(always)]
    fn any(self, m: M) -> bool {
        m.contains(&true)
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the rounding that is asked for")]
    fn fma_once(self, a: F, b: F, c: F) -> F {
        // A product of two floats is exact in double precision.
        std::array::from_fn(|i| (f64::from(a[i]) * f64::from(b[i]) + f64::from(c[i])) as f32)
    }
    #[inline(always)]
    fn select(self, m: M, a: F, b: F) -> F {
        std::array::from_fn(|i| if m[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn scale_pow2(self, v: F, n: F) -> F {
        zip(v, n, |x, n| {
            // Two factors keep each a normal number; a NaN exponent becomes 0 and x is NaN then.
            let n = n as i32;
            let half = n >> 1;
            x * pow2(half) * pow2(n - half)
        })
    }
    #[inline(always)]
    fn bits(self, a: F) -> I {
        a.map(|x| x.to_bits().cast_signed())
    }
    #[inline(always)]
    fn of_bits(self, a: I) -> F {
        a.map(|x| f32::from_bits(x.cast_unsigned()))
    }
    #[inline(always)]
    fn splat_i(self, value: i32) -> I {
        [value; N]
    }
    #[inline(always)]
    fn add_i(self, a: I, b: I) -> I {
        std::array::from_fn(|i| a[i].wrapping_add(b[i]))
    }
    #[inline(always)]
    fn mul_i(self, a: I, b: I) -> I {
        std::array::from_fn(|i| a[i].wrapping_mul(b[i]))
    }
    #[inline(always)]
    fn and_i(self, a: I, b: I) -> I {
        std::array::from_fn(|i| a[i] & b[i])
    }
    #[inline(always)]
    fn or_i(self, a: I, b: I) -> I {
        std::array::from_fn(|i| a[i] | b[i])
    }
    #[inline(always)]
    fn xor_i(self, a: I, b: I) -> I {
        std::array::from_fn(|i| a[i] ^ b[i])
    }
    #[inline(always)]
    fn shift_right(self, a: I, bits: u32) -> I {
        a.map(|x| (x.cast_unsigned() >> bits).cast_signed())
    }
    #[inline(always)]
    fn shift_left(self, a: I, bits: u32) -> I {
        a.map(|x| x << bits)
    }
    #[inline(always)]
    fn shr23(self, a: I) -> I {
        a.map(|x| x >> 23)
    }
    #[inline(always)]
    fn shl16(self, a: I) -> I {
        a.map(|x| x << 16)
    }
    #[inline(always)]
    fn to_float(self, a: I) -> F {
        a.map(|x| x as f32)
    }
    #[inline(always)]
    fn reduce_add(self, a: F) -> f32 {
        (a[0] + a[1]) + (a[2] + a[3])
    }
    #[inline(always)]
    fn reduce_max(self, a: F) -> f32 {
        let larger = |x: f32, y: f32| if x > y { x } else { y };
        larger(larger(a[0], a[1]), larger(a[2], a[3]))
    }
}
