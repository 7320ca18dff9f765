//! Intervals of numbers, and what arithmetic makes of them.

/// All numbers from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NumberInterval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl NumberInterval {
    /// The interval between two numbers; none where one of them is infinite or no number.
    pub(super) fn new(low: f64, high: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite() && low <= high).then_some(Self { low, high })
    }

    /// All numbers whose magnitude is at most this.
    pub(super) fn around(most: f64) -> Option<Self> {
        Self::new(-most, most)
    }

    /// The largest magnitude.
    pub(super) fn largest(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The number halfway between its ends.
    pub(super) fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// Half of the distance between its ends.
    pub(super) fn radius(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    pub(super) fn join(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        Self::new(self.low + other.low, self.high + other.high)
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        let ends = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ];
        let low = ends.into_iter().fold(f64::INFINITY, f64::min);
        Self::new(low, ends.into_iter().fold(f64::NEG_INFINITY, f64::max))
    }

    pub(super) fn negative(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    pub(super) fn magnitude(self) -> Self {
        let low = if self.low <= 0.0 && self.high >= 0.0 {
            0.0
        } else {
            self.low.abs().min(self.high.abs())
        };
        Self { low, high: self.largest() }
    }

    pub(super) fn square(self) -> Option<Self> {
        let size = self.magnitude();
        Self::new(size.low * size.low, size.high * size.high)
    }

    /// Range that a function that rises makes of it.
    pub(super) fn rising(self, function: impl Fn(f64) -> f64) -> Option<Self> {
        Self::new(function(self.low), function(self.high))
    }

    /// One over it; none where it has a zero.
    pub(super) fn inverse(self) -> Option<Self> {
        let apart = self.low > 0.0 || self.high < 0.0;
        if apart { Self::new(1.0 / self.high, 1.0 / self.low) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> NumberInterval {
        NumberInterval::new(low, high).unwrap()
    }

    #[test]
    fn intervals_hold_what_their_elements_give() {
        let a = interval(-2.0, 3.0);
        let b = interval(-5.0, 1.0);
        assert_eq!(a.times(b), Some(interval(-15.0, 10.0)));
        assert_eq!(a.plus(b), Some(interval(-7.0, 4.0)));
        assert_eq!(a.square(), Some(interval(0.0, 9.0)));
        assert_eq!((a.magnitude(), a.largest()), (interval(0.0, 3.0), 3.0));
        assert_eq!((a.inverse(), interval(2.0, 4.0).inverse()), (None, Some(interval(0.25, 0.5))));
        assert_eq!(interval(0.0, 1000.0).rising(f64::exp), None);
    }
}
