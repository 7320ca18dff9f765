//! A small generator of random numbers that is the same on every platform.

use std::f64::consts::TAU;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::error::OpError;
use crate::operator::ParseContext;

/// Where a node's random numbers begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomSeed {
    /// At the same place in every run.
    Fixed(u64),
    /// Anywhere.
    Any,
}

impl RandomSeed {
    /// Reads the attribute `seed`.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let seed = context.attributes.float("seed")?;
        Ok(seed.map_or(Self::Any, |seed| Self::Fixed(seed.to_bits().into())))
    }

    /// The numbers from here on.
    pub(crate) fn generator(self) -> RandomGenerator {
        let state = match self {
            Self::Fixed(seed) => seed,
            // Keys of a hasher are the one source of randomness that needs no platform.
            Self::Any => RandomState::new().build_hasher().finish(),
        };
        RandomGenerator { state }
    }
}

/// Random numbers.
///
/// Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"
/// (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct RandomGenerator {
    state: u64,
}

impl RandomGenerator {
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 on and below 1, a multiple of 2⁻²⁴, so that a float of 32 bits holds it.
    #[allow(clippy::cast_precision_loss, reason = "24 bits fit")]
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.bits() >> 40) as f64 / f64::from(1 << 24)
    }

    /// Returns a number of the normal distribution of mean 0 and deviation 1.
    ///
    /// Source: Box and Muller 1958, "A note on the generation of random normal deviates".
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = 1.0 - self.uniform();
        let angle = self.uniform();
        (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_spread_as_they_should() {
        let mut generator = RandomSeed::Fixed(1).generator();
        let n = 20_000;
        let uniform: Vec<f64> = (0..n).map(|_| generator.uniform()).collect();
        assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
        let mean = |all: &[f64]| all.iter().sum::<f64>() / f64::from(n);
        assert!((mean(&uniform) - 0.5).abs() < 0.01);
        let normal: Vec<f64> = (0..n).map(|_| generator.normal()).collect();
        let squares: Vec<f64> = normal.iter().map(|x| x * x).collect();
        assert!(mean(&normal).abs() < 0.03 && (mean(&squares) - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_seed_repeats_its_numbers_and_none_does_not() {
        let first = |seed: RandomSeed| seed.generator().bits();
        assert_eq!(first(RandomSeed::Fixed(2)), first(RandomSeed::Fixed(2)));
        assert_ne!(first(RandomSeed::Fixed(2)), first(RandomSeed::Fixed(3)));
        assert_ne!(first(RandomSeed::Any), first(RandomSeed::Any));
    }
}
