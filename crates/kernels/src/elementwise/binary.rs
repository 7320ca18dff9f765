//! Functions of two elements, with the broadcasts that models use.

use super::{COSTLY_GRAIN, GRAIN};
use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::math;
use crate::memory::DisjointSlice;

/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryFunction {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `b - a`: lets the broadcast side be the first operand.
    ReverseSub,
    /// `a b`.
    Mul,
    /// `a / b`.
    Div,
    /// `b / a`: lets the broadcast side be the first operand.
    ReverseDiv,
    /// The greater; NaN when either is.
    Max,
    /// The smaller; NaN when either is.
    Min,
    /// `a^b`, by the standard library.
    Pow,
    /// `b^a`, by the standard library.
    ReversePow,
    /// `a` above 0, else `a b`.
    Prelu,
}

/// How the second operand is spread over the first, a matrix of `rows` rows of `columns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperandBroadcast {
    /// Same shape.
    Same,
    /// One value for all.
    Scalar,
    /// One value per column: `columns` values, repeated for every row.
    Row {
        /// Length of a row.
        columns: usize,
    },
    /// One value per row: `a.len() / columns` values.
    Column {
        /// Length of a row.
        columns: usize,
    },
}

impl OperandBroadcast {
    /// Checks `b` against `a` and gives the length of a run in which the pattern is the same.
    fn check(self, a: usize, b: usize) {
        let fits = match self {
            Self::Same => a == b,
            Self::Scalar => b == 1,
            Self::Row { columns } => {
                b == columns && (a == 0 || columns > 0 && a.is_multiple_of(columns))
            }
            Self::Column { columns } => {
                a == 0 || columns > 0 && a.is_multiple_of(columns) && b == a / columns
            }
        };
        assert!(fits, "binary: {self:?} of {b} elements over {a}");
    }
}

/// `y[i] = f(a[i], b[..])`, with `b` spread as `broadcast` says.
///
/// # Panics
/// Panics when the lengths do not fit the broadcast, or `y` differs from `a` in length.
pub fn binary(
    exec: KernelContext<'_>,
    f: BinaryFunction,
    a: &[f32],
    b: &[f32],
    broadcast: OperandBroadcast,
    y: &mut [f32],
) {
    assert!(a.len() == y.len(), "binary: {} elements into {}", a.len(), y.len());
    // SAFETY: a is as long as y and does not overlap it.
    unsafe { run(exec, f, a.as_ptr(), b, broadcast, y) };
}

/// `a[i] = f(a[i], b[..])`, with `b` spread as `broadcast` says.
///
/// # Panics
/// Panics when the lengths do not fit the broadcast.
pub fn binary_inplace(
    exec: KernelContext<'_>,
    f: BinaryFunction,
    a: &mut [f32],
    b: &[f32],
    broadcast: OperandBroadcast,
) {
    // SAFETY: source and destination are one slice.
    unsafe { run(exec, f, a.as_ptr(), b, broadcast, a) };
}

/// # Safety
/// `a` is valid for as many values as `y` has, and is `y` itself or does not overlap it.
unsafe fn run(
    exec: KernelContext<'_>,
    f: BinaryFunction,
    a: *const f32,
    b: &[f32],
    broadcast: OperandBroadcast,
    y: &mut [f32],
) {
    let len = y.len();
    broadcast.check(len, b.len());
    let a = DisjointSlice::from_ptr(a.cast_mut());
    let y = DisjointSlice::new(y);
    let costly = matches!(f, BinaryFunction::Pow | BinaryFunction::ReversePow);
    let grain = if costly { COSTLY_GRAIN } else { GRAIN };
    let call = |start: usize, n: usize, b: &[f32], scalar: bool| {
        let a = a.at(start).ptr().cast_const();
        let y = y.at(start).ptr();
        // SAFETY: runs are disjoint parts of a and y; b is at least as long as each needs.
        unsafe { part(exec, f, a, b.as_ptr(), scalar, y, n) };
    };
    match broadcast {
        OperandBroadcast::Same => {
            exec.pool.run_ranges(len, grain, |r| call(r.start, r.len(), &b[r.start..], false));
        }
        OperandBroadcast::Scalar => {
            exec.pool.run_ranges(len, grain, |r| call(r.start, r.len(), b, true))
        }
        OperandBroadcast::Row { columns } | OperandBroadcast::Column { columns } if len > 0 => {
            exec.pool.run_ranges(len / columns, grain.div_ceil(columns), |rows| {
                for row in rows {
                    match broadcast {
                        OperandBroadcast::Row { .. } => call(row * columns, columns, b, false),
                        _ => call(row * columns, columns, &b[row..], true),
                    }
                }
            });
        }
        _ => {}
    }
}

struct BinaryRun<F> {
    f: F,
    a: *const f32,
    b: *const f32,
    scalar: bool,
    y: *mut f32,
    n: usize,
}

trait VectorCombine: Copy {
    fn combine<S: Simd>(self, s: S, a: S::F, b: S::F) -> S::F;
}

macro_rules! combines {
    ($($name:ident($s:ident, $a:ident, $b:ident) => $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl VectorCombine for $name {
            #[inline(always)]
            fn combine<S: Simd>(self, $s: S, $a: S::F, $b: S::F) -> S::F {
                $body
            }
        }
    )*};
}

combines! {
    Add(s, a, b) => s.add(a, b);
    Sub(s, a, b) => s.sub(a, b);
    ReverseSub(s, a, b) => s.sub(b, a);
    Mul(s, a, b) => s.mul(a, b);
    Div(s, a, b) => s.div(a, b);
    ReverseDiv(s, a, b) => s.div(b, a);
    Max(s, a, b) => math::keep_nan(s, a, s.max(a, b));
    Min(s, a, b) => math::keep_nan(s, a, s.min(a, b));
    Prelu(s, a, b) => s.select(s.lt(a, s.splat(0.0)), s.mul(a, b), a);
}

impl<F: VectorCombine> IsaKernel for BinaryRun<F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { f, a, b, scalar, y, n } = self;
        let mut i = 0;
        // SAFETY: every access is below n; a scalar b has one value.
        unsafe {
            if scalar {
                let b = s.splat(*b);
                while i + S::LANES <= n {
                    s.store(y.add(i), f.combine(s, s.load(a.add(i)), b));
                    i += S::LANES;
                }
                if i < n {
                    let m = s.tail(n - i);
                    s.store_tail(y.add(i), m, f.combine(s, s.load_tail(a.add(i), m), b));
                }
                return;
            }
            while i + S::LANES <= n {
                s.store(y.add(i), f.combine(s, s.load(a.add(i)), s.load(b.add(i))));
                i += S::LANES;
            }
            if i < n {
                let m = s.tail(n - i);
                let a = s.load_tail(a.add(i), m);
                let b = s.load_tail(b.add(i), m);
                s.store_tail(y.add(i), m, f.combine(s, a, b));
            }
        }
    }
}

/// # Safety
/// `a` and `y` are valid for `n` values and are equal or do not overlap; `b` is valid for `n`
/// values, or one if `scalar`, and is `y` itself (unless `scalar`) or does not overlap it.
pub(super) unsafe fn part(
    exec: KernelContext<'_>,
    f: BinaryFunction,
    a: *const f32,
    b: *const f32,
    scalar: bool,
    y: *mut f32,
    n: usize,
) {
    macro_rules! go {
        ($f:expr) => {
            exec.isa.run(BinaryRun { f: $f, a, b, scalar, y, n })
        };
    }
    if n == 0 {
        return;
    }
    match f {
        BinaryFunction::Add => go!(Add),
        BinaryFunction::Sub => go!(Sub),
        BinaryFunction::ReverseSub => go!(ReverseSub),
        BinaryFunction::Mul => go!(Mul),
        BinaryFunction::Div => go!(Div),
        BinaryFunction::ReverseDiv => go!(ReverseDiv),
        BinaryFunction::Max => go!(Max),
        BinaryFunction::Min => go!(Min),
        BinaryFunction::Prelu => go!(Prelu),
        BinaryFunction::Pow | BinaryFunction::ReversePow => {
            for i in 0..n {
                // SAFETY: i < n, and a scalar b is read at 0.
                unsafe {
                    let a = *a.add(i);
                    let b = *b.add(if scalar { 0 } else { i });
                    *y.add(i) = if f == BinaryFunction::Pow { pow(a, b) } else { pow(b, a) };
                }
            }
        }
    }
}

/// Small whole exponents, which normalisations use, need no library call.
fn pow(a: f32, b: f32) -> f32 {
    if b == 2.0 {
        a * a
    } else if b == 3.0 {
        a * a * a
    } else if b == 0.5 && a > 0.0 && a.is_finite() {
        a.sqrt()
    } else {
        a.powf(b)
    }
}
