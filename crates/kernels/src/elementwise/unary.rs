//! Functions of one element.

use super::{COSTLY_GRAIN, GRAIN};
use crate::KernelContext;
use crate::activation::{ActivationFunction, ClampMap, VectorMap, apply, apply_activation};
use crate::isa::{IsaKernel, Simd};
use crate::math;
use crate::memory::DisjointSlice;

/// A function of one element. Accuracy is against the exact result, in units in the last place.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScalarFunction {
    /// `e^x`, 1.2 ULP.
    Exp,
    /// `ln x`, 2 ULP.
    Log,
    /// `erf x`, 2 ULP.
    Erf,
    /// `tanh x`, 2 ULP.
    Tanh,
    /// `1 / (1 + e^-x)`, 2 ULP.
    Sigmoid,
    /// Square root, exactly rounded.
    Sqrt,
    /// `1 / sqrt x`, 1.5 ULP.
    Rsqrt,
    /// `1 / x`, exactly rounded.
    Reciprocal,
    /// `-x`.
    Neg,
    /// `|x|`.
    Abs,
    /// Greatest whole number not above `x`.
    Floor,
    /// Least whole number not below `x`.
    Ceil,
    /// Nearest whole number, ties to even.
    Round,
    /// -1, 0 or 1; NaN for NaN.
    Sign,
    /// `x^2`.
    Square,
    /// `ln(1 + e^x)`.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x` above 0, `alpha (e^x - 1)` below.
    Elu {
        /// Scale below 0.
        alpha: f32,
    },
    /// `x tanh(ln(1 + e^x))`.
    Mish,
    /// `x / (1 + e^(-alpha x))`.
    Swish {
        /// Factor of the exponent.
        alpha: f32,
    },
    /// Sine, by the standard library.
    Sin,
    /// Cosine, by the standard library.
    Cos,
    /// Tangent, by the standard library.
    Tan,
    /// Arc tangent, by the standard library.
    Atan,
    /// `scale x + shift`.
    Affine {
        /// Factor.
        scale: f32,
        /// Summand.
        shift: f32,
    },
    /// One of the activations.
    Activation(ActivationFunction),
}

macro_rules! vector_maps {
    ($($name:ident($s:ident, $x:ident) => $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl VectorMap for $name {
            #[inline(always)]
            fn map<S: Simd>(self, $s: S, $x: S::F) -> S::F {
                $body
            }
        }
    )*};
}

vector_maps! {
    Exp(s, x) => math::exp(s, x);
    Log(s, x) => math::log(s, x);
    Erf(s, x) => math::erf(s, x);
    Sqrt(s, x) => s.sqrt(x);
    Rsqrt(s, x) => s.div(s.splat(1.0), s.sqrt(x));
    Reciprocal(s, x) => s.div(s.splat(1.0), x);
    Neg(s, x) => math::neg(s, x);
    Abs(s, x) => math::abs(s, x);
    Square(s, x) => s.mul(x, x);
    Softsign(s, x) => s.div(x, s.add(s.splat(1.0), math::abs(s, x)));
    Softplus(s, x) => softplus(s, x);
    Mish(s, x) => s.mul(x, math::tanh(s, softplus(s, x)));
}

/// `max(0, x) + ln(1 + e^-|x|)`, which does not overflow.
#[inline(always)]
fn softplus<S: Simd>(s: S, x: S::F) -> S::F {
    let e = math::exp(s, math::neg(s, math::abs(s, x)));
    s.add(s.max(s.splat(0.0), x), log_1p(s, e))
}

/// `ln(1 + e)` for `e` in 0..=1, with the rounding of `1 + e` made good.
#[inline(always)]
fn log_1p<S: Simd>(s: S, e: S::F) -> S::F {
    let one = s.splat(1.0);
    let sum = s.add(one, e);
    let lost = s.sub(e, s.sub(sum, one));
    s.add(math::log(s, sum), s.div(lost, sum))
}

#[derive(Clone, Copy)]
struct AffineMap(f32, f32);
impl VectorMap for AffineMap {
    #[inline(always)]
    fn map<S: Simd>(self, s: S, x: S::F) -> S::F {
        s.fma(x, s.splat(self.0), s.splat(self.1))
    }
}

#[derive(Clone, Copy)]
struct SwishMap(f32);
impl VectorMap for SwishMap {
    #[inline(always)]
    fn map<S: Simd>(self, s: S, x: S::F) -> S::F {
        s.mul(x, math::sigmoid(s, s.mul(x, s.splat(self.0))))
    }
}

#[derive(Clone, Copy)]
struct EluMap(f32);
impl VectorMap for EluMap {
    #[inline(always)]
    fn map<S: Simd>(self, s: S, x: S::F) -> S::F {
        let zero = s.splat(0.0);
        let below = math::exp_m1(s, x);
        s.select(s.lt(x, zero), s.mul(below, s.splat(self.0)), x)
    }
}

/// `y[i] = f(x[i])`.
///
/// # Panics
/// Panics when the lengths differ.
pub fn unary(exec: KernelContext<'_>, f: ScalarFunction, x: &[f32], y: &mut [f32]) {
    assert!(x.len() == y.len(), "unary: {} elements into {}", x.len(), y.len());
    // SAFETY: the lengths are equal, and y is borrowed exclusively.
    unsafe { run(exec, f, x.as_ptr(), y) };
}

/// `x[i] = f(x[i])`.
pub fn unary_inplace(exec: KernelContext<'_>, f: ScalarFunction, x: &mut [f32]) {
    // SAFETY: source and destination are one slice, borrowed exclusively.
    unsafe { run(exec, f, x.as_ptr(), x) };
}

/// `y[i] = activation(x[i])`.
///
/// # Panics
/// Panics when the lengths differ.
pub fn activate(exec: KernelContext<'_>, activation: ActivationFunction, x: &[f32], y: &mut [f32]) {
    unary(exec, ScalarFunction::Activation(activation), x, y);
}

/// `x[i] = activation(x[i])`.
pub fn activate_inplace(exec: KernelContext<'_>, activation: ActivationFunction, x: &mut [f32]) {
    unary_inplace(exec, ScalarFunction::Activation(activation), x);
}

/// # Safety
/// `x` is valid for as many values as `y` has, and is `y` itself or does not overlap it.
unsafe fn run(exec: KernelContext<'_>, f: ScalarFunction, x: *const f32, y: &mut [f32]) {
    use ScalarFunction as U;
    let cheap = ActivationFunction::as_clamp;
    let grain = match f {
        U::Neg | U::Abs | U::Square | U::Affine { .. } | U::Sqrt => GRAIN,
        U::Activation(a) if cheap(a).is_some() => GRAIN,
        _ => COSTLY_GRAIN,
    };
    let x = DisjointSlice::from_ptr(x.cast_mut());
    let len = y.len();
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(len, grain, |r| {
        let x = x.at(r.start).ptr().cast_const();
        let y = y.at(r.start).ptr();
        let n = r.len();
        // SAFETY: ranges are disjoint parts of both.
        unsafe { part(exec, f, x, y, n) };
    });
}

/// # Safety
/// The same as for [`run`], for `n` values.
pub(super) unsafe fn part(
    exec: KernelContext<'_>,
    f: ScalarFunction,
    x: *const f32,
    y: *mut f32,
    n: usize,
) {
    use ScalarFunction as U;
    let isa = exec.isa;
    // SAFETY: the caller vouches for n values at both.
    unsafe {
        match f {
            U::Exp => apply(isa, Exp, x, y, n),
            U::Log => apply(isa, Log, x, y, n),
            U::Erf => apply(isa, Erf, x, y, n),
            U::Tanh => apply_activation(isa, ActivationFunction::Tanh, x, y, n),
            U::Sigmoid => apply_activation(isa, ActivationFunction::Sigmoid, x, y, n),
            U::Sqrt => apply(isa, Sqrt, x, y, n),
            U::Rsqrt => apply(isa, Rsqrt, x, y, n),
            U::Reciprocal => apply(isa, Reciprocal, x, y, n),
            U::Neg => apply(isa, Neg, x, y, n),
            U::Abs => apply(isa, Abs, x, y, n),
            U::Square => apply(isa, Square, x, y, n),
            U::Softplus => apply(isa, Softplus, x, y, n),
            U::Softsign => apply(isa, Softsign, x, y, n),
            U::Mish => apply(isa, Mish, x, y, n),
            U::Elu { alpha } => apply(isa, EluMap(alpha), x, y, n),
            U::Swish { alpha } => apply(isa, SwishMap(alpha), x, y, n),
            U::Affine { scale, shift } => apply(isa, AffineMap(scale, shift), x, y, n),
            U::Activation(ActivationFunction::Clip { min, max }) => {
                apply(isa, ClampMap(min, max), x, y, n)
            }
            U::Activation(activation) => apply_activation(isa, activation, x, y, n),
            U::Floor => isa.run(EachElement { f: Floor, x, y, n }),
            U::Ceil => isa.run(EachElement { f: Ceil, x, y, n }),
            U::Round => isa.run(EachElement { f: Round, x, y, n }),
            U::Sign => isa.run(EachElement { f: Sign, x, y, n }),
            U::Sin => each(f32::sin, x, y, n),
            U::Cos => each(f32::cos, x, y, n),
            U::Tan => each(f32::tan, x, y, n),
            U::Atan => each(f32::atan, x, y, n),
        }
    }
}

/// Function of one element that is an instruction of most processors: compilers find it.
trait ScalarMap: Copy {
    fn map(self, x: f32) -> f32;
}

macro_rules! scalar_maps {
    ($($name:ident($x:ident) => $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl ScalarMap for $name {
            #[inline(always)]
            fn map(self, $x: f32) -> f32 {
                $body
            }
        }
    )*};
}

scalar_maps! {
    Floor(x) => x.floor();
    Ceil(x) => x.ceil();
    Round(x) => x.round_ties_even();
    Sign(x) => if x == 0.0 || x.is_nan() { x } else { 1f32.copysign(x) };
}

/// A function of each of `n` elements at `x`, compiled for each instruction set.
struct EachElement<F> {
    f: F,
    x: *const f32,
    y: *mut f32,
    n: usize,
}

impl<F: ScalarMap> IsaKernel for EachElement<F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for i in 0..self.n {
            // SAFETY: who makes one vouches for n values at both, which may be the same memory.
            unsafe { *self.y.add(i) = self.f.map(*self.x.add(i)) };
        }
    }
}

/// # Safety
/// The same as for [`run`], for `n` values.
unsafe fn each(f: impl Fn(f32) -> f32, x: *const f32, y: *mut f32, n: usize) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *y.add(i) = f(*x.add(i)) };
    }
}
