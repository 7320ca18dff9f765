//! Scale and zero point of a block of weights of four bits.

/// The greatest number of four bits.
const MOST: f32 = 15.0;
/// Number that represents zero where there are no zero points.
pub(super) const MIDDLE: u8 = 8;

/// Layout of blocks in which weights are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRounding {
    /// Weights of a row that share a scale.
    pub(super) block: usize,
    /// True if zero is always the number in the middle.
    pub(super) symmetric: bool,
}

/// The numbers of a block stand for `(q − zero) · scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlockGrid {
    pub(super) scale: f32,
    pub(super) zero: u8,
}

impl BlockGrid {
    /// For some weights.
    pub(super) fn of(weights: &[f32], symmetric: bool) -> Self {
        let (min, max) = weights
            .iter()
            .fold((0.0_f32, 0.0_f32), |(min, max), &weight| (min.min(weight), max.max(weight)));
        if symmetric {
            // There is one number more below the middle than above: the larger end gets it.
            let far = if -min >= max { min } else { max };
            let scale = far / -f32::from(MIDDLE);
            return Self { scale: if scale == 0.0 { 1.0 } else { scale }, zero: MIDDLE };
        }
        let scale = (max - min) / MOST;
        let scale = if scale >= f32::MIN_POSITIVE { scale } else { 1.0 };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 15"
        )]
        let zero = (-min / scale).round_ties_even().clamp(0.0, MOST) as u8;
        Self { scale, zero }
    }

    /// The number nearest to a weight.
    pub(super) fn round(self, weight: f32) -> u8 {
        let number = (weight / self.scale).round_ties_even() + f32::from(self.zero);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 15"
        )]
        let number = number.clamp(0.0, MOST) as u8;
        number
    }

    /// Returns the value that a number stands for.
    pub(super) fn value(self, number: u8) -> f32 {
        (f32::from(number) - f32::from(self.zero)) * self.scale
    }
}
