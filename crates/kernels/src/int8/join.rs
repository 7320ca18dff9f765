//! Sums and products of two quantised values, as floats in between.

use super::{ByteLimits, Int8Summand};
use crate::isa::Simd;

/// Magnitudes of scales for which quotients by a product with the reciprocal are exact: nothing in
/// between overflows or underflows.
const EXACT: std::ops::RangeInclusive<f32> = 1e-12..=1e12;

/// Division by a constant: a product with the reciprocal and a correction, which gives the correctly
/// rounded quotient wherever the divisor's significand is not all ones.
///
/// Source: Markstein, *Computation of elementary functions on the IBM RISC System/6000 processor*
/// (1990), theorem 8.5 of Muller and others, *Handbook of Floating-Point Arithmetic*.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantDivisor {
    by: f32,
    /// The reciprocal, where quotients are exact so.
    reciprocal: Option<f32>,
}

impl ConstantDivisor {
    /// For dividends made of values with these scales.
    pub(super) fn new(by: f32, scales: [f32; 2]) -> Self {
        const SIGNIFICAND: u32 = (1 << (f32::MANTISSA_DIGITS - 1)) - 1;
        let all_ones = by.to_bits() & SIGNIFICAND == SIGNIFICAND;
        let exact =
            !all_ones && [by, scales[0], scales[1]].iter().all(|scale| EXACT.contains(scale));
        Self { by, reciprocal: exact.then(|| 1.0 / by) }
    }

    /// Returns whether quotients are exact without a division.
    pub(super) fn is_quick(&self) -> bool {
        self.reciprocal.is_some()
    }

    /// Divides; `QUICK` is what [`ConstantDivisor::is_quick`] says.
    #[inline(always)]
    pub(super) fn divide<S: Simd, const QUICK: bool>(&self, s: S, x: S::F) -> S::F {
        let by = s.splat(self.by);
        if !QUICK || !S::FUSED {
            return s.div(x, by);
        }
        let reciprocal = s.splat(self.reciprocal.unwrap_or_default());
        let near = s.mul(x, reciprocal);
        s.fma(s.fnma(near, by, x), reciprocal, near)
    }
}

/// How a summand of a product's own joins bytes of another tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct SummandJoin {
    signed: bool,
    zero: f32,
    scales: [f32; 2],
    divisor: ConstantDivisor,
    result: ByteLimits,
}

impl SummandJoin {
    pub(super) fn new(summand: &Int8Summand<'_>) -> Self {
        let scales = [summand.scales.own, summand.scales.other];
        Self {
            signed: summand.form.signed,
            zero: summand.form.zero as f32,
            scales,
            divisor: ConstantDivisor::new(summand.scales.result, scales),
            result: summand.result.limits(),
        }
    }

    /// Returns whether quotients are exact without a division.
    #[inline(always)]
    pub(super) fn is_quick(&self) -> bool {
        self.divisor.is_quick()
    }

    /// Sums in units of the result: of summands less what stands for zero, and of other bytes as
    /// floats. `QUICK` is what [`SummandJoin::is_quick`] says.
    #[inline(always)]
    pub(super) fn sum<S: Simd, const QUICK: bool>(&self, s: S, own: S::F, other: S::F) -> S::F {
        let other = s.mul(s.sub(other, s.splat(self.zero)), s.splat(self.scales[1]));
        // Rounded before the sum, as each of the two is elsewhere.
        let sum = s.add(s.mul(own, s.splat(self.scales[0])), other);
        self.divisor.divide::<_, QUICK>(s, sum)
    }

    /// Returns whether the other bytes are two's complement.
    #[inline(always)]
    pub(super) fn is_signed(&self) -> bool {
        self.signed
    }

    /// Returns the code of zero and the limits of results.
    #[inline(always)]
    pub(super) fn result(&self) -> ByteLimits {
        self.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{DotInstructions, DotIsa, DotKernel};

    struct Divide(f32, f32);

    impl DotKernel for Divide {
        type Output = f32;
        #[inline(always)]
        fn run<D: DotInstructions>(self, d: D) -> f32 {
            let s = d.simd();
            let divisor = ConstantDivisor::new(self.1, [1.0; 2]);
            let x = s.splat(self.0);
            s.reduce_max(match divisor.is_quick() {
                true => divisor.divide::<_, true>(s, x),
                false => divisor.divide::<_, false>(s, x),
            })
        }
    }

    #[test]
    fn quotients_are_those_of_a_division() {
        let mut seed = 7_u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(0x3000_0000 + seed % 0x2000_0000)
        };
        let mut pairs: Vec<(f32, f32)> = (0..20_000).map(|_| (next(), next())).collect();
        pairs.push((3.0, f32::from_bits(0x3fff_ffff)));
        for dot in DotIsa::available() {
            for &(x, by) in &pairs {
                assert_eq!(dot.run(Divide(x, by)), x / by, "{x} / {by} {dot:?}");
            }
        }
    }
}
