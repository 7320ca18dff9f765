//! Between floats and bytes, element by element.

use super::join::ConstantDivisor;
use super::micro::{load_floats, narrowed, store_bytes};
use super::{ByteForm, ByteLimits, QuantizedBytes};
use crate::KernelContext;
use crate::isa::{DotInstructions, DotIsa, DotKernel, Simd};
use crate::memory::DisjointSlice;

/// Elements that one task has at least.
const GRAIN: usize = 16 * 1024;

/// Runs the body for whole vectors and then for what is left. A macro, not a function that takes a
/// closure: closures are not sure to be inlined, and only then have the target features.
macro_rules! for_vectors {
    ($D:ident, $len:expr, |$at:ident, $count:ident| $body:block) => {
        let len: usize = $len;
        let mut $at = 0;
        let $count = $D::S::LANES;
        while $at + $count <= len {
            $body
            $at += $count;
        }
        if $at < len {
            let $count = len - $at;
            $body
        }
    };
}

/// Divides by `scale`, rounds to even, adds the zero of `form` and limits to the type of the bytes.
///
/// # Panics
/// Panics when the slices have different lengths.
pub fn quantize(exec: KernelContext<'_>, x: &[f32], scale: f32, form: ByteForm, y: &mut [u8]) {
    assert!(x.len() == y.len(), "{} floats for {} bytes", x.len(), y.len());
    let dot = DotIsa::of(exec.isa);
    let y = DisjointSlice::new(y);
    let limits = form.limits();
    exec.pool.run_ranges(x.len(), GRAIN, |range| {
        // SAFETY: ranges do not overlap and are inside the result.
        let y = unsafe { y.range(range.clone()) };
        dot.run(QuantizeLoop { x: &x[range], y, scale, limits });
    });
}

struct QuantizeLoop<'a> {
    x: &'a [f32],
    y: &'a mut [u8],
    scale: f32,
    limits: ByteLimits,
}

impl DotKernel for QuantizeLoop<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let s = d.simd();
        let scale = s.splat(self.scale);
        for_vectors!(D, self.x.len(), |at, count| {
            // SAFETY: `count` elements from `at` on are inside both slices.
            unsafe {
                let x = load(s, self.x.as_ptr().add(at), count);
                let v = narrowed(s, s.div(x, scale), self.limits);
                store_bytes(d, self.y.as_mut_ptr().add(at), v, count);
            }
        });
    }
}

/// # Safety
/// `p` is valid for `count` elements, at most a vector.
#[inline(always)]
unsafe fn load<S: Simd>(s: S, p: *const f32, count: usize) -> S::F {
    // SAFETY: the caller vouches for the memory.
    unsafe { if count == S::LANES { s.load(p) } else { s.load_tail(p, s.tail(count)) } }
}

/// `(x - zero) * scale`.
///
/// # Panics
/// Panics when the slices have different lengths.
pub fn dequantize(exec: KernelContext<'_>, x: QuantizedBytes<'_>, scale: f32, y: &mut [f32]) {
    assert!(x.data.len() == y.len(), "{} bytes for {} floats", x.data.len(), y.len());
    let dot = DotIsa::of(exec.isa);
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(x.data.len(), GRAIN, |range| {
        // SAFETY: ranges do not overlap and are inside the result.
        let y = unsafe { y.range(range.clone()) };
        dot.run(DequantizeLoop { x: QuantizedBytes { data: &x.data[range], ..x }, y, scale });
    });
}

struct DequantizeLoop<'a> {
    x: QuantizedBytes<'a>,
    y: &'a mut [f32],
    scale: f32,
}

impl DotKernel for DequantizeLoop<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let s = d.simd();
        let scale = s.splat(self.scale);
        let zero = s.splat(self.x.zero as f32);
        for_vectors!(D, self.y.len(), |at, count| {
            // SAFETY: `count` elements from `at` on are inside both slices.
            unsafe {
                let x = load_floats(d, self.x.data.as_ptr().add(at), self.x.signed, count);
                let v = s.mul(s.sub(x, zero), scale);
                let p = self.y.as_mut_ptr().add(at);
                if count == D::S::LANES { s.store(p, v) } else { s.store_tail(p, s.tail(count), v) }
            }
        });
    }
}

/// How two values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairFunction {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
}

/// Two quantised tensors combined element by element and quantised again. `scales` are those of
/// `a`, `b` and the result. `b` is as long as `a`, or is repeated for each run of its length.
///
/// # Panics
/// Panics when `y` has another length than `a`, or `a` is no multiple of `b`.
pub fn pair_bytes(
    exec: KernelContext<'_>,
    pair: PairFunction,
    a: QuantizedBytes<'_>,
    b: QuantizedBytes<'_>,
    scales: [f32; 3],
    form: ByteForm,
    y: &mut [u8],
) {
    let len = a.data.len();
    let run = b.data.len();
    assert!(y.len() == len, "{len} bytes for {}", y.len());
    if len == 0 {
        return;
    }
    assert!(run > 0 && len.is_multiple_of(run), "{len} bytes with {run}");
    let dot = DotIsa::of(exec.isa);
    let y = DisjointSlice::new(y);
    let limits = form.limits();
    let task = |range: std::ops::Range<usize>, other: &[u8]| {
        // SAFETY: ranges do not overlap and are inside the result.
        let y = unsafe { y.range(range.clone()) };
        let a = QuantizedBytes { data: &a.data[range], ..a };
        let b = QuantizedBytes { data: other, ..b };
        dot.run(PairBytes { pair, a, b, y, scales, limits });
    };
    if run == len {
        exec.pool.run_ranges(len, GRAIN, |range| task(range.clone(), &b.data[range]));
        return;
    }
    exec.pool.run_ranges(len / run, GRAIN.div_ceil(run), |rows| {
        for row in rows {
            task(row * run..(row + 1) * run, b.data);
        }
    });
}

struct PairBytes<'a> {
    pair: PairFunction,
    a: QuantizedBytes<'a>,
    b: QuantizedBytes<'a>,
    y: &'a mut [u8],
    scales: [f32; 3],
    limits: ByteLimits,
}

impl DotKernel for PairBytes<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let [scale_a, scale_b, scale_y] = self.scales;
        let divisor = match self.pair {
            PairFunction::Sum => ConstantDivisor::new(scale_y, [scale_a, scale_b]),
            PairFunction::Product => ConstantDivisor::new(scale_y, [scale_a * scale_b, scale_a]),
        };
        match divisor.is_quick() {
            true => self.all::<D, true>(d, divisor),
            false => self.all::<D, false>(d, divisor),
        }
    }
}

impl PairBytes<'_> {
    #[inline(always)]
    fn all<D: DotInstructions, const QUICK: bool>(self, d: D, divisor: ConstantDivisor) {
        let s = d.simd();
        let a = self.a;
        let b = self.b;
        let scale_a = s.splat(self.scales[0]);
        let scale_b = s.splat(self.scales[1]);
        let zero_a = s.splat(a.zero as f32);
        let zero_b = s.splat(b.zero as f32);
        for_vectors!(D, self.y.len(), |at, count| {
            // SAFETY: `count` elements from `at` on are inside all slices.
            unsafe {
                let x = s.sub(load_floats(d, a.data.as_ptr().add(at), a.signed, count), zero_a);
                let z = s.sub(load_floats(d, b.data.as_ptr().add(at), b.signed, count), zero_b);
                let x = s.mul(x, scale_a);
                let z = s.mul(z, scale_b);
                let both = match self.pair {
                    PairFunction::Sum => s.add(x, z),
                    PairFunction::Product => s.mul(x, z),
                };
                let v = narrowed(s, divisor.divide::<_, QUICK>(s, both), self.limits);
                store_bytes(d, self.y.as_mut_ptr().add(at), v, count);
            }
        });
    }
}

/// The smallest and the largest of the elements and 0; what is no number does not count.
#[must_use]
pub fn extremes(exec: KernelContext<'_>, x: &[f32]) -> (f32, f32) {
    let threads = exec.pool.threads();
    let parts = if x.len() < 2 * GRAIN { 1 } else { threads };
    let mut found = vec![(0.0_f32, 0.0_f32); parts];
    let shared = DisjointSlice::new(&mut found);
    let dot = DotIsa::of(exec.isa);
    let part = |at: usize| {
        let x = &x[x.len() * at / parts..x.len() * (at + 1) / parts];
        // SAFETY: each part has an element of its own.
        unsafe { shared.range(at..at + 1)[0] = dot.run(ExtremesLoop(x)) };
    };
    if parts == 1 {
        part(0)
    } else {
        exec.pool.run(parts, part)
    }
    found.iter().fold((0.0, 0.0), |(low, high), part| (part.0.min(low), part.1.max(high)))
}

struct ExtremesLoop<'a>(&'a [f32]);

impl DotKernel for ExtremesLoop<'_> {
    type Output = (f32, f32);
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) -> (f32, f32) {
        let s = d.simd();
        let mut low = s.splat(0.0);
        let mut high = s.splat(0.0);
        for_vectors!(D, self.0.len(), |at, count| {
            // SAFETY: `count` elements from `at` on are inside the slice.
            let x = unsafe { load(s, self.0.as_ptr().add(at), count) };
            // Of two operands the second one is kept where either is no number.
            low = s.min(x, low);
            high = s.max(x, high);
        });
        (-s.reduce_max(s.sub(s.splat(0.0), low)), s.reduce_max(high))
    }
}

/// Replaces each byte by the one that a table has for it.
///
/// # Panics
/// Panics when the slices have different lengths.
pub fn look_up(exec: KernelContext<'_>, x: &[u8], table: &[u8; 256], y: &mut [u8]) {
    assert!(x.len() == y.len(), "{} bytes for {} bytes", x.len(), y.len());
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(x.len(), GRAIN, |range| {
        // SAFETY: ranges do not overlap and are inside the result.
        let y = unsafe { y.range(range.clone()) };
        for (y, &x) in y.iter_mut().zip(&x[range]) {
            *y = table[usize::from(x)];
        }
    });
}
