//! Numbers that look random and are the same on every run.

/// A small xorshift generator.
#[derive(Clone, Debug)]
pub struct NoiseGenerator(u64);

impl NoiseGenerator {
    /// A generator; equal seeds give equal numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // A state of zero would stay zero, and small seeds would start alike.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03 | 1)
    }

    /// The next 48 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    /// A number below `bound`; 0 where that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.bits()).unwrap_or(0) % bound.max(1)
    }

    /// Whether something that happens once in `n` times happens.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of some things.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    /// One of some things, writable.
    pub fn pick_mut<'a, T>(&mut self, all: &'a mut [T]) -> Option<&'a mut T> {
        let at = self.below(all.len());
        all.get_mut(at)
    }

    /// An integer of the kind that breaks programs: small, a limit, or a power of two.
    #[allow(clippy::cast_possible_wrap, reason = "any number will do")]
    pub fn integer(&mut self) -> i64 {
        match self.below(8) {
            0..=3 => self.below(7) as i64 - 3,
            4 => self.below(300) as i64 - 20,
            5 => [i64::MIN, i64::MAX, i64::MAX - 1, i64::from(i32::MAX), i64::from(i32::MIN)]
                [self.below(5)],
            6 => 1 << self.below(63),
            _ => self.bits() as i64 - (1 << 47),
        }
    }

    /// A float of the kind that breaks programs.
    #[allow(clippy::cast_precision_loss, reason = "any number will do")]
    pub fn float(&mut self) -> f32 {
        match self.below(6) {
            0 => f32::NAN,
            1 => [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, -0.0, 1e-40]
                [self.below(6)],
            2 => self.integer() as f32,
            _ => self.below(64) as f32 / 8.0 - 4.0,
        }
    }
}
