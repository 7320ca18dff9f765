//! Activations, alone or fused behind a matrix product or a convolution.

use crate::isa::{Isa, IsaKernel, Simd};
use crate::math;

/// A function applied to each output element.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum ActivationFunction {
    /// `x`.
    #[default]
    None,
    /// `max(0, x)`.
    Relu,
    /// `min(max, max(min, x))`; ReLU6 is `Clip { min: 0.0, max: 6.0 }`.
    Clip {
        /// Lower limit.
        min: f32,
        /// Upper limit.
        max: f32,
    },
    /// `x (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`.
    GeluTanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `tanh x`.
    Tanh,
    /// `x sigmoid(x)`.
    Silu,
    /// `x max(0, min(1, x / 6 + 1 / 2))`.
    HardSwish,
    /// `max(0, min(1, alpha x + beta))`.
    HardSigmoid {
        /// Slope.
        alpha: f32,
        /// Value at 0.
        beta: f32,
    },
    /// `x` for `x >= 0`, `alpha x` below.
    LeakyRelu {
        /// Slope below 0.
        alpha: f32,
    },
}

impl ActivationFunction {
    /// The limits of a plain clamp, which a matrix product applies in registers; `None` for an
    /// activation that needs more.
    pub(crate) fn as_clamp(self) -> Option<(f32, f32)> {
        match self {
            Self::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Self::Relu => Some((0.0, f32::INFINITY)),
            Self::Clip { min, max } => Some((min, max)),
            _ => None,
        }
    }
}

/// A function of one value, for a loop over slices.
pub(crate) trait VectorMap: Copy {
    fn map<S: Simd>(self, s: S, x: S::F) -> S::F;
}

/// Calls `$go!(map)` with the `VectorMap` of an activation.
macro_rules! with_map {
    ($activation:expr, $f:ident => $body:expr) => {
        match $activation {
            ActivationFunction::None => {
                let $f = ClampMap(f32::NEG_INFINITY, f32::INFINITY);
                $body
            }
            ActivationFunction::Relu => {
                let $f = ClampMap(0.0, f32::INFINITY);
                $body
            }
            ActivationFunction::Clip { min, max } => {
                let $f = ClampMap(min, max);
                $body
            }
            ActivationFunction::Gelu => {
                let $f = Gelu;
                $body
            }
            ActivationFunction::GeluTanh => {
                let $f = GeluTanh;
                $body
            }
            ActivationFunction::Sigmoid => {
                let $f = Sigmoid;
                $body
            }
            ActivationFunction::Tanh => {
                let $f = Tanh;
                $body
            }
            ActivationFunction::Silu => {
                let $f = Silu;
                $body
            }
            ActivationFunction::HardSwish => {
                let $f = HardSwish;
                $body
            }
            ActivationFunction::HardSigmoid { alpha, beta } => {
                let $f = HardSigmoid(alpha, beta);
                $body
            }
            ActivationFunction::LeakyRelu { alpha } => {
                let $f = LeakyRelu(alpha);
                $body
            }
        }
    };
}

macro_rules! maps {
    ($($name:ident = $function:path),*) => {$(
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl VectorMap for $name {
            #[inline(always)]
            fn map<S: Simd>(self, s: S, x: S::F) -> S::F {
                $function(s, x)
            }
        }
    )*};
}

maps!(
    Gelu = math::gelu,
    GeluShort = math::gelu_short,
    GeluTanh = math::gelu_tanh,
    Sigmoid = math::sigmoid,
    Tanh = math::tanh,
    Silu = math::silu,
    HardSwish = hard_swish
);

#[inline(always)]
fn hard_swish<S: Simd>(s: S, x: S::F) -> S::F {
    // The sum is exact near -3, where the result is small.
    let gate = math::clamp(s, s.add(x, s.splat(3.0)), s.splat(0.0), s.splat(6.0));
    // A sixth is a float and what that leaves of it.
    let sixth = s.fma(gate, s.splat(1.0 / 6.0), s.mul(gate, s.splat(-4.967_053_6e-9)));
    s.mul(x, sixth)
}

#[derive(Clone, Copy)]
pub(crate) struct ClampMap(pub(crate) f32, pub(crate) f32);
impl VectorMap for ClampMap {
    #[inline(always)]
    fn map<S: Simd>(self, s: S, x: S::F) -> S::F {
        math::clamp(s, x, s.splat(self.0), s.splat(self.1))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct HardSigmoid(f32, f32);
impl VectorMap for HardSigmoid {
    #[inline(always)]
    fn map<S: Simd>(self, s: S, x: S::F) -> S::F {
        let gate = s.fma(x, s.splat(self.0), s.splat(self.1));
        math::clamp(s, gate, s.splat(0.0), s.splat(1.0))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct LeakyRelu(f32);
impl VectorMap for LeakyRelu {
    #[inline(always)]
    fn map<S: Simd>(self, s: S, x: S::F) -> S::F {
        s.select(s.lt(x, s.splat(0.0)), s.mul(x, s.splat(self.0)), x)
    }
}

/// Applies `f` to `n` values at `src` and writes them to `dst`, which may be the same place.
///
/// # Safety
/// `src` and `dst` are valid for `n` values and are equal or do not overlap.
#[inline(always)]
pub(crate) unsafe fn map_run<S: Simd, F: VectorMap>(
    s: S,
    f: F,
    src: *const f32,
    dst: *mut f32,
    n: usize,
) {
    let mut i = 0;
    while i + S::LANES <= n {
        // SAFETY: i + LANES <= n, and the caller vouches for n values.
        unsafe { s.store(dst.add(i), f.map(s, s.load(src.add(i)))) };
        i += S::LANES;
    }
    if i < n {
        let m = s.tail(n - i);
        // SAFETY: the mask chooses the n - i values left.
        unsafe { s.store_tail(dst.add(i), m, f.map(s, s.load_tail(src.add(i), m))) };
    }
}

/// Applies an activation in place to `rows` runs of `columns` values, `stride` apart.
pub(crate) struct ActivateRows {
    pub(crate) activation: ActivationFunction,
    pub(crate) data: *mut f32,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) stride: usize,
}

struct MapRows<'a, F> {
    f: F,
    on: &'a ActivateRows,
}

impl<F: VectorMap> IsaKernel for MapRows<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for row in 0..self.on.rows {
            // SAFETY: whoever made ActivateRows vouches for these rows.
            unsafe {
                let p = self.on.data.add(row * self.on.stride);
                map_run(s, self.f, p, p, self.on.columns);
            }
        }
    }
}

impl ActivateRows {
    /// # Safety
    /// Each row is valid for writing `columns` values, and nobody else uses them.
    #[inline(always)]
    pub(crate) unsafe fn run<S: Simd>(&self, s: S) {
        with_map!(self.activation, f => s.enter(MapRows { f, on: self }));
    }

    /// Runs like [`ActivateRows::run`], for results that are rounded to BF16.
    ///
    /// # Safety
    /// The same as for [`ActivateRows::run`].
    #[inline(always)]
    pub(crate) unsafe fn run_short<S: Simd>(&self, s: S) {
        match self.activation {
            ActivationFunction::Gelu => s.enter(MapRows { f: GeluShort, on: self }),
            // SAFETY: as for this function.
            _ => unsafe { self.run(s) },
        }
    }
}

struct ActivationLoop<F> {
    f: F,
    src: *const f32,
    dst: *mut f32,
    n: usize,
}

impl<F: VectorMap> IsaKernel for ActivationLoop<F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // SAFETY: `apply` vouches for the pointers.
        unsafe { map_run(s, self.f, self.src, self.dst, self.n) };
    }
}

/// Applies `f` to `n` values; see [`map_run`].
///
/// # Safety
/// The same as for [`map_run`].
pub(crate) unsafe fn apply<F: VectorMap>(isa: Isa, f: F, src: *const f32, dst: *mut f32, n: usize) {
    isa.run(ActivationLoop { f, src, dst, n });
}

/// Applies an activation to `n` values; see [`map_run`].
///
/// # Safety
/// The same as for [`map_run`].
pub(crate) unsafe fn apply_activation(
    isa: Isa,
    activation: ActivationFunction,
    src: *const f32,
    dst: *mut f32,
    n: usize,
) {
    // SAFETY: the caller vouches for the pointers.
    with_map!(activation, f => unsafe { apply(isa, f, src, dst, n) });
}
