//! Random numbers of C++'s default engine, which a seed of a model stands for.

/// Modulus of the engine.
const MODULUS: u64 = 2_147_483_647;
/// Factor of the engine.
const FACTOR: u64 = 16_807;

/// Minimal standard generator, which libstdc++ calls its default engine.
///
/// Source: Park and Miller, "Random number generators: good ones are hard to find" (1988).
#[derive(Clone, Debug)]
pub(super) struct SeededNumbers {
    state: u64,
}

impl SeededNumbers {
    pub(super) fn new(seed: u32) -> Self {
        Self { state: (u64::from(seed) % MODULUS).max(1) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state * FACTOR % MODULUS;
        self.state
    }

    /// A number from 0 to below 1, of two steps of the engine.
    #[allow(clippy::cast_precision_loss, reason = "31 bits are exact")]
    pub(super) fn unit(&mut self) -> f64 {
        let range = (MODULUS - 1) as f64;
        let low = (self.next() - 1) as f64;
        let high = (self.next() - 1) as f64;
        ((low + high * range) / (range * range)).min(1.0_f64.next_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_default_engine() {
        let mut numbers = SeededNumbers::new(1);
        // The standard names the ten thousandth number after seed 1.
        let last = (0..10_000).map(|_| numbers.next()).last();
        assert_eq!(last, Some(1_043_618_065));
        let mut numbers = SeededNumbers::new(0);
        assert!((numbers.unit() - 0.131_537_788).abs() < 1e-8);
        assert!((numbers.unit() - 0.458_650_131).abs() < 1e-8);
    }
}
