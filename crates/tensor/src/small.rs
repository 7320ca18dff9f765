//! ONNX's element types of 8 and fewer bits that Triton's wire has no names for.
//!
//! In memory every element takes one byte, its *code*: the bits of the element in the low bits,
//! zeros above them. Files pack the narrow types more densely; [`SmallType::unpack`] is the way in.
//! So views, permutations and slices need not know of these types.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "narrowing is what this module is for; each range is stated where a number is cut"
)]

use std::fmt;

/// An element type of 8 and fewer bits beside those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SmallType {
    /// 4 exponent bits, 3 of mantissa; no infinity, one NaN of each sign.
    Float8E4M3Fn,
    /// 4 exponent bits, 3 of mantissa; no infinity, one NaN, no negative zero.
    Float8E4M3FnUz,
    /// 5 exponent bits, 2 of mantissa; infinities and NaNs as IEEE 754 has them.
    Float8E5M2,
    /// 5 exponent bits, 2 of mantissa; no infinity, one NaN, no negative zero.
    Float8E5M2FnUz,
    /// 8 exponent bits and nothing else: powers of two, and one NaN. There is no zero.
    Float8E8M0,
    /// 2 exponent bits, 1 of mantissa; neither infinity nor NaN.
    Float4E2M1,
    /// Signed 4-bit integer.
    Int4,
    /// Unsigned 4-bit integer.
    Uint4,
    /// Signed 2-bit integer.
    Int2,
    /// Unsigned 2-bit integer.
    Uint2,
}

/// Result for a float that is too large for an 8-bit float. The 4-bit floats always saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverflowRule {
    /// The largest finite value of its sign.
    #[default]
    Saturate,
    /// An infinity where the type has one, else NaN.
    Special,
}

/// Which power of two a float becomes that lies between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExponentRounding {
    /// The larger one.
    #[default]
    Up,
    /// The smaller one.
    Down,
    /// The nearer one, the larger one from half way on.
    Nearest,
}

/// How floats are narrowed. Everything but [`SmallType::Float8E8M0`] rounds to nearest, ties to
/// even.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NarrowingRule {
    /// Treatment of values that are too large.
    pub overflow: OverflowRule,
    /// How [`SmallType::Float8E8M0`] rounds.
    pub exponent_rounding: ExponentRounding,
}

/// Meaning of the codes of a type.
enum SmallForm {
    /// Two's complement.
    Signed,
    Unsigned,
    /// A sign, an exponent and a mantissa.
    Float(FloatForm),
    /// An exponent.
    Exponent,
}

struct FloatForm {
    mantissa_bits: u32,
    bias: i32,
    /// The code of the largest finite value.
    largest: u8,
    /// The code without sign that overflow gives, or `None` where it saturates always.
    special: Option<u8>,
    /// Whether the code of the negative zero is the only NaN.
    unsigned_zero: bool,
}

impl FloatForm {
    const fn new(mantissa_bits: u32, bias: i32, largest: u8, special: Option<u8>) -> Self {
        Self { mantissa_bits, bias, largest, special, unsigned_zero: false }
    }

    const fn unsigned_zero(mantissa_bits: u32, bias: i32) -> Self {
        let special = Some(SIGN);
        Self { mantissa_bits, bias, largest: 0x7f, special, unsigned_zero: true }
    }
}

/// The sign bit of the 8-bit floats.
const SIGN: u8 = 0x80;
/// The NaN of [`SmallType::Float8E8M0`].
const EXPONENT_NAN: u8 = 0xff;
/// The exponent that code 0 of [`SmallType::Float8E8M0`] stands for.
const MIN_EXPONENT: i32 = -127;

/// 2 to a power of the range of normal `f64`.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent + 1023).clamp(0, 2047).unsigned_abs()) << 52)
}

/// The exponent of a positive finite number; that of the smallest normal ones for those below.
fn exponent_of(magnitude: f64) -> i32 {
    (magnitude.to_bits() >> 52) as i32 - 1023
}

impl SmallType {
    /// Every type, in declaration order.
    pub const ALL: [Self; 10] = [
        Self::Float8E4M3Fn,
        Self::Float8E4M3FnUz,
        Self::Float8E5M2,
        Self::Float8E5M2FnUz,
        Self::Float8E8M0,
        Self::Float4E2M1,
        Self::Int4,
        Self::Uint4,
        Self::Int2,
        Self::Uint2,
    ];

    /// The name in ONNX's `TensorProto.DataType`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float8E4M3Fn => "FLOAT8E4M3FN",
            Self::Float8E4M3FnUz => "FLOAT8E4M3FNUZ",
            Self::Float8E5M2 => "FLOAT8E5M2",
            Self::Float8E5M2FnUz => "FLOAT8E5M2FNUZ",
            Self::Float8E8M0 => "FLOAT8E8M0",
            Self::Float4E2M1 => "FLOAT4E2M1",
            Self::Int4 => "INT4",
            Self::Uint4 => "UINT4",
            Self::Int2 => "INT2",
            Self::Uint2 => "UINT2",
        }
    }

    /// Bits of one element in a file.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Self::Int2 | Self::Uint2 => 2,
            Self::Float4E2M1 | Self::Int4 | Self::Uint4 => 4,
            _ => 8,
        }
    }

    /// The bits of a byte that a code may have set.
    #[must_use]
    pub const fn mask(self) -> u8 {
        0xff >> (8 - self.bits())
    }

    /// Lowest and highest value of an integer type.
    #[must_use]
    pub const fn integer_range(self) -> Option<(i8, i8)> {
        match self {
            Self::Int4 => Some((-8, 7)),
            Self::Uint4 => Some((0, 15)),
            Self::Int2 => Some((-2, 1)),
            Self::Uint2 => Some((0, 3)),
            _ => None,
        }
    }

    const fn form(self) -> SmallForm {
        match self {
            Self::Float8E4M3Fn => SmallForm::Float(FloatForm::new(3, 7, 0x7e, Some(0x7f))),
            Self::Float8E4M3FnUz => SmallForm::Float(FloatForm::unsigned_zero(3, 8)),
            Self::Float8E5M2 => SmallForm::Float(FloatForm::new(2, 15, 0x7b, Some(0x7c))),
            Self::Float8E5M2FnUz => SmallForm::Float(FloatForm::unsigned_zero(2, 16)),
            Self::Float8E8M0 => SmallForm::Exponent,
            Self::Float4E2M1 => SmallForm::Float(FloatForm::new(1, 1, 0x7, None)),
            Self::Int4 | Self::Int2 => SmallForm::Signed,
            Self::Uint4 | Self::Uint2 => SmallForm::Unsigned,
        }
    }

    /// The value of a code, exactly. Bits above the type's do not count.
    #[must_use]
    pub fn value(self, code: u8) -> f64 {
        let code = code & self.mask();
        match self.form() {
            SmallForm::Unsigned => f64::from(code),
            SmallForm::Signed => {
                let above = 8 - self.bits();
                f64::from((code << above).cast_signed() >> above)
            }
            SmallForm::Exponent if code == EXPONENT_NAN => f64::NAN,
            SmallForm::Exponent => power_of_two(i32::from(code) + MIN_EXPONENT),
            SmallForm::Float(form) => self.float_value(&form, code),
        }
    }

    fn float_value(self, form: &FloatForm, code: u8) -> f64 {
        let sign_bit = self.mask() ^ (self.mask() >> 1);
        let negative = code & sign_bit != 0;
        let magnitude = code & !sign_bit;
        if form.unsigned_zero && code == SIGN {
            return f64::NAN;
        }
        let sign = if negative { -1.0 } else { 1.0 };
        if magnitude > form.largest {
            let infinite = self == Self::Float8E5M2 && Some(magnitude) == form.special;
            return if infinite { f64::INFINITY } else { f64::NAN }.copysign(sign);
        }
        let exponent = i32::from(magnitude >> form.mantissa_bits);
        let mantissa = magnitude & ((1 << form.mantissa_bits) - 1);
        let hidden = if exponent > 0 { 1 << form.mantissa_bits } else { 0 };
        let scale = exponent.max(1) - form.bias - form.mantissa_bits.cast_signed();
        sign * f64::from(mantissa + hidden) * power_of_two(scale)
    }

    /// The code of an integer: for integer types its low bits, for others that of its float.
    #[must_use]
    pub fn encode_integer(self, value: i128, narrowing: NarrowingRule) -> u8 {
        #[allow(clippy::cast_precision_loss, reason = "beyond 2^53 every type saturates or rounds")]
        match self.form() {
            SmallForm::Signed | SmallForm::Unsigned => value as u8 & self.mask(),
            _ => self.encode(value as f64, narrowing),
        }
    }

    /// The code of a float. Integer types take its integer part, limited to 32 bits, and of that
    /// the low bits; a NaN becomes a zero of the other sign in [`SmallType::Float4E2M1`]; of
    /// numbers below zero [`SmallType::Float8E8M0`] takes the magnitude.
    ///
    /// Source: ONNX `Cast` and, where it leaves a result open, the conversions of `ml_dtypes`.
    #[must_use]
    pub fn encode(self, value: f64, narrowing: NarrowingRule) -> u8 {
        match self.form() {
            SmallForm::Signed | SmallForm::Unsigned => value as i32 as u8 & self.mask(),
            SmallForm::Exponent => encode_exponent(value.abs(), narrowing),
            SmallForm::Float(form) => self.encode_float(&form, value, narrowing.overflow),
        }
    }

    fn encode_float(self, form: &FloatForm, value: f64, overflow: OverflowRule) -> u8 {
        let sign_bit = self.mask() ^ (self.mask() >> 1);
        let sign = if value.is_sign_negative() { sign_bit } else { 0 };
        if value.is_nan() {
            return match (form.special, self) {
                (None, _) => sign ^ sign_bit,
                (Some(special), _) if form.unsigned_zero => special,
                (Some(_), Self::Float8E5M2) => sign | 0x7e,
                (Some(special), _) => sign | special,
            };
        }
        let magnitude = value.abs();
        let lowest = 1 - form.bias;
        let exponent = exponent_of(magnitude).clamp(lowest, 128);
        // Scaling by a power of two is exact; what rounds up to the next power carries into the
        // exponent's bits by itself. Beyond 2^128 the quotient saturates.
        let scale = power_of_two(form.mantissa_bits.cast_signed() - exponent);
        let units = (magnitude * scale).round_ties_even() as u32;
        let code = (((exponent - lowest) as u32) << form.mantissa_bits).saturating_add(units);
        let code = match (u8::try_from(code), form.special) {
            (Ok(code), _) if code <= form.largest => code,
            (_, Some(special)) if overflow == OverflowRule::Special => special,
            _ => form.largest,
        };
        if form.unsigned_zero && code & !SIGN == 0 { code } else { sign | code }
    }

    /// The codes of `elements` elements, the first in the lowest bits of the first byte; zeros
    /// where the bytes end early.
    #[must_use]
    pub fn unpack(self, packed: &[u8], elements: usize) -> Vec<u8> {
        let each = 8 / self.bits();
        let code = |at: usize| {
            let byte = packed.get(at / each).copied().unwrap_or(0);
            (byte >> (at % each * self.bits())) & self.mask()
        };
        (0..elements).map(code).collect()
    }

    /// Whole bytes that so many elements take in a file; `None` beyond what can be addressed.
    #[must_use]
    pub fn packed_bytes(self, elements: usize) -> Option<usize> {
        Some(elements.checked_mul(self.bits())?.div_ceil(8))
    }
}

/// The power of two for a number that is not negative. What is below the smallest one is a NaN
/// where values do not saturate, as ONNX has it, even where rounding would reach it.
fn encode_exponent(value: f64, narrowing: NarrowingRule) -> u8 {
    if value.is_nan() {
        return EXPONENT_NAN;
    }
    let outside = |saturated| match narrowing.overflow {
        OverflowRule::Saturate => saturated,
        OverflowRule::Special => EXPONENT_NAN,
    };
    if value < power_of_two(MIN_EXPONENT) {
        return outside(0);
    }
    let exponent = exponent_of(value);
    let fraction = value / power_of_two(exponent);
    let up = match narrowing.exponent_rounding {
        ExponentRounding::Up => fraction > 1.0,
        ExponentRounding::Down => false,
        ExponentRounding::Nearest => fraction >= 1.5,
    };
    match u8::try_from(exponent - MIN_EXPONENT + i32::from(up)) {
        Ok(code) if code < EXPONENT_NAN && value.is_finite() => code,
        _ => outside(EXPONENT_NAN - 1),
    }
}

impl fmt::Display for SmallType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: NarrowingRule = NarrowingRule {
        overflow: OverflowRule::Special,
        exponent_rounding: ExponentRounding::Nearest,
    };

    #[test]
    fn every_code_survives_its_value() {
        for dtype in SmallType::ALL {
            for code in 0..=dtype.mask() {
                let value = dtype.value(code);
                let back = dtype.encode(value, STRICT);
                if value.is_nan() {
                    assert!(dtype.value(back).is_nan(), "{dtype} {code:#x}");
                } else {
                    assert_eq!(back, code, "{dtype} {value}");
                }
            }
        }
    }

    #[test]
    fn floats_round_to_the_nearest_code_and_ties_to_even_ones() {
        for dtype in &SmallType::ALL[..6] {
            if *dtype == SmallType::Float8E8M0 {
                continue;
            }
            for code in 0..dtype.mask() >> 1 {
                let low = dtype.value(code);
                let high = dtype.value(code + 1);
                if !high.is_finite() {
                    break;
                }
                let even = if code % 2 == 0 { code } else { code + 1 };
                let middle = f64::midpoint(low, high);
                let above = f64::from_bits(middle.to_bits() + 1);
                let below = f64::from_bits(middle.to_bits() - 1);
                let found = [below, middle, above].map(|v| dtype.encode(v, STRICT));
                assert_eq!(found, [code, even, code + 1], "{dtype} {middle}");
            }
        }
    }

    /// Codes that `ml_dtypes` 0.5.4 gives for the same values.
    #[test]
    fn special_values_become_what_ml_dtypes_makes_of_them() {
        let values = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 9.0, -8.0, -0.1];
        for (dtype, codes) in [
            (SmallType::Float4E2M1, [8, 0, 7, 15, 8, 7, 15, 8]),
            (SmallType::Float8E4M3Fn, [127, 255, 127, 255, 128, 81, 208, 157]),
            (SmallType::Float8E4M3FnUz, [128, 128, 128, 128, 0, 89, 216, 165]),
            (SmallType::Float8E5M2, [126, 254, 124, 252, 128, 72, 200, 174]),
            (SmallType::Float8E5M2FnUz, [128, 128, 128, 128, 0, 76, 204, 178]),
        ] {
            assert_eq!(values.map(|value| dtype.encode(value, STRICT)), codes, "{dtype}");
        }
    }

    #[test]
    fn large_values_saturate_unless_told_otherwise() {
        let plain = NarrowingRule::default();
        for (dtype, largest) in [
            (SmallType::Float8E4M3Fn, 448.0),
            (SmallType::Float8E4M3FnUz, 240.0),
            (SmallType::Float8E5M2, 57344.0),
            (SmallType::Float8E5M2FnUz, 57344.0),
            (SmallType::Float4E2M1, 6.0),
            (SmallType::Float8E8M0, 2_f64.powi(127)),
        ] {
            for huge in [largest * 2.1, 1e300, f64::INFINITY] {
                assert_eq!(dtype.value(dtype.encode(huge, plain)), largest, "{dtype} {huge}");
                let strict = dtype.value(dtype.encode(huge, STRICT));
                assert_eq!(strict.is_finite(), dtype == SmallType::Float4E2M1, "{dtype} {huge}");
            }
        }
        assert_eq!(SmallType::Float8E5M2.encode(1e6, STRICT), 0x7c);
    }

    #[test]
    fn powers_of_two_round_as_asked() {
        let of = |rounding, value| {
            let narrowing =
                NarrowingRule { exponent_rounding: rounding, ..NarrowingRule::default() };
            SmallType::Float8E8M0.value(SmallType::Float8E8M0.encode(value, narrowing))
        };
        assert_eq!([1.0, 1.1, 1.5].map(|v| of(ExponentRounding::Up, v)), [1.0, 2.0, 2.0]);
        assert_eq!([1.0, 1.1, 1.9].map(|v| of(ExponentRounding::Down, v)), [1.0, 1.0, 1.0]);
        assert_eq!([1.49, 1.5, 3.0].map(|v| of(ExponentRounding::Nearest, v)), [1.0, 2.0, 4.0]);
        assert_eq!(SmallType::Float8E8M0.encode(0.0, NarrowingRule::default()), 0);
        assert_eq!(SmallType::Float8E8M0.encode(0.0, STRICT), EXPONENT_NAN);
    }

    #[test]
    fn integers_wrap_and_unpack_from_the_low_bits_on() {
        let plain = NarrowingRule::default();
        let int4 = |value| SmallType::Int4.value(SmallType::Int4.encode_integer(value, plain));
        assert_eq!([7, 8, -8, -9, 16].map(int4), [7.0, -8.0, -8.0, 7.0, 0.0]);
        assert_eq!(SmallType::Uint2.encode(-1.9, plain), 3);
        assert_eq!(SmallType::Int4.unpack(&[0x21, 0xf3], 3), [1, 2, 3]);
        assert_eq!(SmallType::Uint2.unpack(&[0b11_10_01_00, 1], 5), [0, 1, 2, 3, 1]);
        assert_eq!(SmallType::Float8E5M2.unpack(&[0x81], 1), [0x81]);
        let sizes = [SmallType::Int4, SmallType::Int2].map(|dtype| dtype.packed_bytes(5));
        assert_eq!(sizes, [Some(3), Some(2)]);
    }
}
