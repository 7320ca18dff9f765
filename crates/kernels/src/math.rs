//! Vector versions of the elementary functions.
//!
//! Polynomials are minimax fits in the stated range, made for this crate by iteratively
//! reweighted least squares in double precision; the tests hold each function to its ULP bound
//! against `f64`.

use crate::isa::Simd;

/// Horner's rule, highest power first.
#[inline(always)]
fn poly<S: Simd, const N: usize>(s: S, x: S::F, coefficients: [f32; N]) -> S::F {
    let mut sum = s.splat(coefficients[0]);
    for &c in &coefficients[1..] {
        sum = s.fma(sum, x, s.splat(c));
    }
    sum
}

#[inline(always)]
pub(crate) fn abs<S: Simd>(s: S, x: S::F) -> S::F {
    s.of_bits(s.and_i(s.bits(x), s.splat_i(i32::MAX)))
}

#[inline(always)]
pub(crate) fn neg<S: Simd>(s: S, x: S::F) -> S::F {
    // Adding the lowest integer flips the sign bit.
    s.of_bits(s.add_i(s.bits(x), s.splat_i(i32::MIN)))
}

/// `magnitude` (not negative) with the sign of `x`.
#[inline(always)]
fn with_sign<S: Simd>(s: S, magnitude: S::F, x: S::F) -> S::F {
    let sign = s.and_i(s.bits(x), s.splat_i(i32::MIN));
    s.of_bits(s.or_i(s.bits(magnitude), sign))
}

/// Limits `x` to `low..=high`; NaN stays NaN.
#[inline(always)]
pub(crate) fn clamp<S: Simd>(s: S, x: S::F, low: S::F, high: S::F) -> S::F {
    s.min(high, s.max(low, x))
}

/// `x`, or NaN where `a` is NaN (a vector maximum keeps a NaN of its second operand only).
#[inline(always)]
pub(crate) fn keep_nan<S: Simd>(s: S, a: S::F, x: S::F) -> S::F {
    let number = s.lt(a, s.splat(f32::INFINITY));
    // Infinity is not below itself; there the sum of differences would be NaN, so ask again.
    let below = s.lt(s.splat(f32::MAX), a);
    s.select(number, x, s.select(below, x, a))
}

/// `e^x`, within 1.2 ULP (1 with fused multiply-add).
///
/// Source: `x = n ln 2 + r` with `|r| <= ln 2 / 2` (Cody and Waite), `ln 2` in two parts of which
/// the first times `n` is exact.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    // Beyond these the result rounds to 0 and to infinity.
    let x = clamp(s, x, s.splat(-104.0), s.splat(89.0));
    let ReducedExponent { n, r, q } = reduced(s, x);
    let e = s.fma(q, r, s.splat(1.0));
    s.scale_pow2(e, n)
}

/// `e^x` for `x` up to 0, within 1e-4 of itself: for what is rounded to BF16.
///
/// Source: `2^r` for `|r| <= 1/2` as a cubic polynomial of least relative error.
#[inline(always)]
pub(crate) fn exp_short<S: Simd>(s: S, x: S::F) -> S::F {
    // Far below the least number; a NaN stays.
    let t = s.max(s.splat(-200.0), s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let n = s.round(t);
    let r = s.sub(t, n);
    s.scale_pow2(poly(s, r, [0.055_171_665, 0.242_611_13, 0.693_260_97, 0.999_928_06]), n)
}

/// `e^x - 1` for `x` up to 0: near 0 nothing cancels, as it would in `exp(x) - 1`.
#[inline(always)]
pub(crate) fn exp_m1<S: Simd>(s: S, x: S::F) -> S::F {
    let x = clamp(s, x, s.splat(-104.0), s.splat(0.0));
    let ReducedExponent { n, r, q } = reduced(s, x);
    let one = s.splat(1.0);
    s.add(s.scale_pow2(s.mul(q, r), n), s.sub(s.scale_pow2(one, n), one))
}

/// Parts of an exponential, which is `2^n (1 + q r)`.
struct ReducedExponent<F> {
    /// A whole number.
    n: F,
    /// Remainder of the exponent, at most `ln 2 / 2` in magnitude.
    r: F,
    /// The quotient `(e^r - 1) / r`.
    q: F,
}

/// Returns the parts of `e^x`.
#[inline(always)]
fn reduced<S: Simd>(s: S, x: S::F) -> ReducedExponent<S::F> {
    reduced_pair(s, x, s.splat(0.0))
}

/// The same for the sum of `x` and a much smaller `rest`.
#[inline(always)]
fn reduced_pair<S: Simd>(s: S, x: S::F, rest: S::F) -> ReducedExponent<S::F> {
    let n = s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let r = s.fnma(n, s.splat(0.693_145_75), x);
    let r = s.add(s.fnma(n, s.splat(1.428_606_8e-6), r), rest);
    let q = poly(s, r, [0.001_395_049, 0.008_368_89, 0.041_666_206, 0.166_665_18, 0.5]);
    ReducedExponent { n, r, q: s.fma(q, r, s.splat(1.0)) }
}

/// `tanh x`, within 2 ULP.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let a = abs(s, x);
    let u = s.mul(x, x);
    // tanh(x)/x on 0..0.625 as a polynomial of x^2.
    let p = poly(
        s,
        u,
        [0.002_147_537, -0.008_182_674, 0.021_702_968, -0.053_947_203, 0.133_332_1, -0.333_333_3],
    );
    let small = s.fma(s.mul(p, u), a, a);
    let e = exp(s, s.add(a, a));
    let one = s.splat(1.0);
    let large = s.sub(one, s.div(s.splat(2.0), s.add(e, one)));
    // A NaN is not below the bound, and the large branch keeps it.
    with_sign(s, s.select(s.lt(a, s.splat(0.625)), small, large), x)
}

/// The error function, within 2 ULP.
#[inline(always)]
pub(crate) fn erf<S: Simd>(s: S, x: S::F) -> S::F {
    let a = abs(s, x);
    let u = s.mul(x, x);
    // erf(x)/x - 1 on 0..1 as a polynomial of x^2.
    let p = poly(
        s,
        u,
        [
            7.853_858e-5,
            -0.000_801_019_25,
            0.005_188_327_7,
            -0.026_853_811,
            0.112_835_854,
            -0.376_126_26,
            0.128_379_16,
        ],
    );
    let small = s.fma(a, p, a);
    // ln erfc(x) on 1..3.95; beyond, erf rounds to 1.
    let t = s.min(s.splat(3.95), a);
    let q = poly(s, t, LN_ERFC);
    let large = s.sub(s.splat(1.0), exp(s, q));
    with_sign(s, s.select(s.lt(a, s.splat(1.0)), small, large), x)
}

const LN_ERFC: [f32; 7] = [
    0.000_186_380_06,
    -0.002_947_666_4,
    0.021_838_095,
    -0.103_106_82,
    -0.638_144_73,
    -1.127_089_3,
    -0.000_341_512_96,
];

/// `ln x`, within 2 ULP; -infinity at 0, NaN below.
#[inline(always)]
pub(crate) fn log<S: Simd>(s: S, x: S::F) -> S::F {
    let tiny = s.lt(x, s.splat(f32::MIN_POSITIVE));
    // Subnormal numbers are first made normal.
    let y = s.select(tiny, s.mul(x, s.splat(16_777_216.0)), x);
    let shift = s.select(tiny, s.splat(24.0), s.splat(0.0));
    // y = m 2^e with m in sqrt(1/2)..sqrt(2).
    let offset = s.add_i(s.bits(y), s.splat_i(0x3f80_0000 - 0x3f35_04f3));
    let e = s.sub(s.to_float(s.shr23(s.add_i(offset, s.splat_i(-0x3f80_0000)))), shift);
    let m = s.add_i(s.and_i(offset, s.splat_i(0x007f_ffff)), s.splat_i(0x3f35_04f3));
    let f = s.sub(s.of_bits(m), s.splat(1.0));
    let q = poly(
        s,
        f,
        [
            0.067_466_01,
            -0.116_756_41,
            0.118_881_75,
            -0.124_055_915,
            0.142_195_51,
            -0.166_679_96,
            0.200_021_19,
            -0.250_000_1,
            0.333_333_13,
        ],
    );
    let f2 = s.mul(f, f);
    let r = s.mul(s.mul(f2, f), q);
    let r = s.fma(e, s.splat(1.428_606_8e-6), r);
    let r = s.fnma(s.splat(0.5), f2, r);
    let r = s.add(s.fma(e, s.splat(0.693_145_75), f), r);
    // Infinity, NaN and zero have no such parts.
    let r = s.select(s.lt(x, s.splat(f32::INFINITY)), r, s.add(x, x));
    let zero = s.splat(0.0);
    let r = s.select(s.lt(x, s.splat(f32::from_bits(1))), s.splat(f32::NEG_INFINITY), r);
    s.select(s.lt(x, zero), s.splat(f32::NAN), r)
}

/// `x / (1 + e^z)` of the parts of `e^z`, which may be too large for a float. The sum is divided by
/// the power where that is greater than 1, and so is the result.
#[inline(always)]
fn over_one_and_exp<S: Simd>(s: S, x: S::F, exp: ReducedExponent<S::F>) -> S::F {
    let ReducedExponent { n, r, q } = exp;
    let zero = s.splat(0.0);
    let one = s.splat(1.0);
    let power = s.scale_pow2(one, s.min(n, neg(s, n)));
    // 1 + power + power q r, or 1 + (power + q r): in either order the first sum is the smaller.
    let large = s.lt(zero, n);
    let q = s.select(large, q, s.mul(power, q));
    let first = s.fma(q, r, s.select(large, power, s.add(one, power)));
    let sum = s.add(first, s.select(large, one, zero));
    s.scale_pow2(s.div(x, sum), neg(s, s.max(n, zero)))
}

/// `y`, or NaN where `x` is -infinity: times a gate of 0, which the formulas have there.
#[inline(always)]
fn as_formula<S: Simd>(s: S, x: S::F, y: S::F) -> S::F {
    let zero = s.splat(0.0);
    s.fma(s.min(zero, x), zero, y)
}

/// `1 / (1 + e^-x)`, within 2 ULP.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let z = clamp(s, neg(s, x), s.splat(-104.0), s.splat(105.0));
    over_one_and_exp(s, s.splat(1.0), reduced(s, z))
}

/// `x / (1 + e^-x)`, within 2 ULP.
#[inline(always)]
pub(crate) fn silu<S: Simd>(s: S, x: S::F) -> S::F {
    let from = s.max(s.splat(-120.0), x);
    let parts = reduced(s, s.max(s.splat(-104.0), neg(s, from)));
    as_formula(s, x, over_one_and_exp(s, from, parts))
}

/// `x P(x)` with the normal distribution `P(x) = (1 + erf(x / sqrt 2)) / 2`, within 2 ULP (2.5
/// without fused multiply-add).
///
/// Near 0, `P` is 1/2 and `x` times a polynomial of `x^2`. Further out nothing may cancel on the
/// negative side: `x P(x) = max(0, x) - T(|x|)` with `T(a) = a P(-a) = e^(-a^2 / 2) M(a)`. `M` rises
/// slowly from 0.23 to `1 / sqrt(2 pi)`: a polynomial of `a` on 0.75..4, and one of `1 / a^2` beyond,
/// which is only computed where a lane needs it. What rounding takes from `a^2` joins the exponent.
#[inline(always)]
pub(crate) fn gelu<S: Simd>(s: S, x: S::F) -> S::F {
    let a = s.min(s.splat(15.0), abs(s, x));
    let u = s.mul(a, a);
    let near = s.fma(x, poly(s, u, NORMAL_NEAR), s.splat(0.5));
    let rest = s.mul(s.fma_once(a, a, neg(s, u)), s.splat(-0.5));
    let ReducedExponent { n, r, q } = reduced_pair(s, s.mul(u, s.splat(-0.5)), rest);
    let mut m = poly(s, s.sub(a, s.splat(2.25)), NORMAL_MILLS);
    let far = s.lt(s.splat(4.0), a);
    if s.any(far) {
        let inverse = s.div(s.splat(1.0), a);
        m = s.select(far, poly(s, s.mul(inverse, inverse), NORMAL_MILLS_FAR), m);
    }
    let t = s.scale_pow2(s.fma(m, s.mul(q, r), m), n);
    let out = s.sub(s.max(s.splat(0.0), x), t);
    // A NaN is not below the bound, and the last subtraction keeps it.
    as_formula(s, x, s.select(s.lt(a, s.splat(0.75)), s.mul(x, near), out))
}

/// `(P(x) - 1/2) / x` by `x^2`, for `|x|` up to 0.75; greatest relative error 2^-28.6.
const NORMAL_NEAR: [f32; 5] =
    [0.000_102_940_576, -0.001_181_285, 0.009_972_349, -0.066_490_29, 0.398_942_3];

/// `a e^(a^2 / 2) P(-a)` by `a - 2.25`, for `a` in 0.75..4; greatest relative error 2^-25.8.
const NORMAL_MILLS: [f32; 12] = [
    1.583_434_3e-7,
    -8.820_017e-7,
    2.697_382_1e-6,
    -1.009_366_2e-5,
    4.260_528_3e-5,
    -0.000_161_651_8,
    0.000_567_345_4,
    -0.001_865_448_3,
    0.005_626_841,
    -0.015_093_986,
    0.033_894_755,
    0.345_716_86,
];

/// The same by `1 / a^2`, for `a` in 4..14.6; greatest relative error 2^-25.3.
const NORMAL_MILLS_FAR: [f32; 6] =
    [-78.253_37, 26.803_23, -5.527_159, 1.189_298_9, -0.398_883_43, 0.398_942_1];

/// [`gelu`] within 2e-4, for results that are rounded to BF16: a quarter of the operations.
///
/// Source: `erf(t) / t` on 0..3.1 as a polynomial of `t^2` that is `1 / t` at its end, the greatest
/// error made least by weights (Lawson); beyond, erf counts as 1.
#[inline(always)]
pub(crate) fn gelu_short<S: Simd>(s: S, x: S::F) -> S::F {
    let t = s.mul(x, s.splat(std::f32::consts::FRAC_1_SQRT_2));
    let a = abs(s, t);
    let u = s.mul(t, t);
    let p = poly(
        s,
        u,
        [
            3.250_812_6e-8,
            -1.642_060_6e-6,
            3.650_11e-5,
            -0.000_474_834_4,
            0.004_072_953,
            -0.024_693_035,
            0.110_537_35,
            -0.374_997_68,
            1.128_215_3,
        ],
    );
    // A NaN is not below the bound, and the half of x keeps it.
    let e = s.select(s.lt(a, s.splat(3.1)), s.mul(a, p), s.splat(1.0));
    let half = s.mul(x, s.splat(0.5));
    s.fma(half, with_sign(s, e, x), half)
}

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`, through `1 + tanh y = 2 / (1 + e^-2y)`, within
/// 2 ULP (2.5 without fused multiply-add).
///
/// `2y = x (c + d x^2)` is made of two floats: an exponent of 80 must not be off by its last place.
/// `c` has a first part of so few bits that what the sum of `c` and `d x^2` loses is found exactly.
#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(s: S, x: S::F) -> S::F {
    // 2 sqrt(2 / pi) and that times 0.044715, each with what a float leaves.
    let c = s.splat(1.595_768_9);
    let c_rest = s.splat(1.930_779e-7);
    let d = s.splat(0.071_354_814);
    let d_rest = s.splat(2.398_832_5e-9);
    let from = s.max(s.splat(-12.0), x);
    let near = s.min(s.splat(12.0), from);
    let u = s.mul(near, near);
    let scale = s.fma(u, d, c);
    let lost = s.fma_once(u, d, s.sub(c, scale));
    let lost = s.fma(s.fma_once(near, near, neg(s, u)), d, lost);
    let lost = s.add(lost, s.fma(u, d_rest, c_rest));
    let minus = neg(s, near);
    let z = s.mul(minus, scale);
    let rest = s.fma(minus, lost, s.fma_once(minus, scale, neg(s, z)));
    as_formula(s, x, over_one_and_exp(s, from, reduced_pair(s, z, rest)))
}
