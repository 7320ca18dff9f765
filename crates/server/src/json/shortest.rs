//! Decimal digits of a double by the Grisu2 algorithm: always digits that read back the same, almost always the
//! fewest, not always the closest of these. Clients compare texts, so the choices are RapidJSON's.
//!
//! Source: F. Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers", PLDI 2010.

use super::powers::POWERS;

/// Most digits that a double has here.
pub(super) const MAX_DIGITS: usize = 20;

/// Significand times a power of two.
#[derive(Clone, Copy)]
struct BinaryFloat {
    significand: u64,
    exponent: i32,
}

impl BinaryFloat {
    fn normalised(self) -> Self {
        let shift = self.significand.leading_zeros();
        Self {
            significand: self.significand << shift,
            exponent: self.exponent - shift.cast_signed(),
        }
    }

    /// The upper half of the product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.significand) * u128::from(other.significand);
        let rounded = (product + (1 << 63)) >> 64;
        Self {
            significand: u64::try_from(rounded).unwrap_or(u64::MAX),
            exponent: self.exponent + other.exponent + 64,
        }
    }
}

/// Digits being collected.
pub(super) struct DecimalDigits {
    bytes: [u8; MAX_DIGITS],
    len: usize,
    /// Power of ten of the last digit.
    pub(super) exponent: i32,
}

impl DecimalDigits {
    /// The digits as text.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    fn push(&mut self, digit: u64) {
        if digit == 0 && self.len == 0 {
            return;
        }
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = b'0' + u8::try_from(digit).unwrap_or(0);
            self.len += 1;
        }
    }

    /// Lowers the last digit while that brings the number closer to the value and stays inside the interval.
    fn round(&mut self, delta: u64, mut rest: u64, unit: u64, distance: u64) {
        while rest < distance
            && delta - rest >= unit
            && (rest + unit < distance || distance - rest > rest + unit - distance)
        {
            if let Some(last) = self.len.checked_sub(1).and_then(|last| self.bytes.get_mut(last)) {
                *last -= 1;
            }
            rest += unit;
        }
    }
}

/// The digits of a positive finite number.
pub(super) fn digits(value: f64) -> DecimalDigits {
    const FRACTION_BITS: u32 = 52;
    const HIDDEN: u64 = 1 << FRACTION_BITS;
    let bits = value.to_bits();
    let biased = i32::try_from((bits >> FRACTION_BITS) & 0x7FF).unwrap_or(0);
    let fraction = bits & (HIDDEN - 1);
    let float = if biased == 0 {
        BinaryFloat { significand: fraction, exponent: -1074 }
    } else {
        BinaryFloat { significand: fraction | HIDDEN, exponent: biased - 1075 }
    };
    // Half-way to the neighbours; below a power of two the lower one is nearer.
    let upper =
        BinaryFloat { significand: (float.significand << 1) + 1, exponent: float.exponent - 1 };
    let upper = upper.normalised();
    let lower = if float.significand == HIDDEN {
        BinaryFloat { significand: (float.significand << 2) - 1, exponent: float.exponent - 2 }
    } else {
        BinaryFloat { significand: (float.significand << 1) - 1, exponent: float.exponent - 1 }
    };
    let lower = BinaryFloat {
        significand: lower.significand << (lower.exponent - upper.exponent),
        exponent: upper.exponent,
    };
    let (power, exponent) = power_for(upper.exponent);
    let scaled = float.normalised().times(power);
    let mut high = upper.times(power);
    let low = lower.times(power);
    // One unit inwards on both sides makes up for the rounding of the products.
    high.significand -= 1;
    let delta = high.significand - (low.significand + 1);
    generate(scaled, high, delta, exponent)
}

/// A power of ten that brings a number of this binary exponent near 2^-61 ..= 2^-32, and the exponent it took away.
fn power_for(exponent: i32) -> (BinaryFloat, i32) {
    const LOG10_OF_2: f64 = 0.301_029_995_663_981_14;
    let wanted = (f64::from(-61 - exponent) * LOG10_OF_2 + 347.0).ceil();
    #[allow(clippy::cast_possible_truncation, reason = "between 0 and 700 for every double")]
    let index = (wanted as i32 >> 3) + 1;
    let (significand, exponent) =
        usize::try_from(index).ok().and_then(|index| POWERS.get(index)).copied().unwrap_or((1, 0));
    (BinaryFloat { significand, exponent }, 348 - 8 * index)
}

fn generate(value: BinaryFloat, high: BinaryFloat, mut delta: u64, exponent: i32) -> DecimalDigits {
    let mut digits = DecimalDigits { bytes: [0; MAX_DIGITS], len: 0, exponent };
    let shift = (-high.exponent).cast_unsigned();
    let one = 1_u64 << shift;
    let distance = high.significand - value.significand;
    let mut whole = high.significand >> shift;
    let mut part = high.significand & (one - 1);
    let mut places = whole.checked_ilog10().map_or(0, |log| log + 1);
    while places > 0 {
        places -= 1;
        let unit = 10_u64.pow(places);
        digits.push(whole / unit);
        whole %= unit;
        let rest = (whole << shift) + part;
        if rest <= delta {
            digits.exponent += places.cast_signed();
            digits.round(delta, rest, unit << shift, distance);
            return digits;
        }
    }
    let mut behind: u32 = 0;
    loop {
        part *= 10;
        delta *= 10;
        behind += 1;
        digits.push(part >> shift);
        part &= one - 1;
        if part < delta {
            digits.exponent -= behind.cast_signed();
            // RapidJSON does not round digits so far behind the point.
            let scale = if behind < 9 { 10_u64.pow(behind) } else { 0 };
            digits.round(delta, part, one, distance.wrapping_mul(scale));
            return digits;
        }
    }
}
