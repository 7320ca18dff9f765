//! Numbers of RapidJSON's grammar with its NaN and infinity extension.

/// A number with the type RapidJSON gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum JsonNumber {
    /// An integer below zero that fits 64 bits.
    Negative(i64),
    /// An integer of zero or more that fits 64 bits.
    Natural(u64),
    /// Fractions, exponents, integers beyond 64 bits, NaN and infinities.
    Double(f64),
}

/// Sentence and offset of an error.
pub(super) type NumberFailure = (&'static str, usize);

/// Powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
/// Integers up to this one are doubles exactly.
const EXACT_INTEGERS: u64 = 1 << 53;

/// The digits of a number as they are read.
struct NumberScan<'a> {
    text: &'a [u8],
    at: usize,
    /// All digits as one integer, while that fits 64 bits.
    digits: Option<u64>,
}

impl NumberScan<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Takes digits, and answers how many there were.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while let digit @ b'0'..=b'9' = self.peek() {
            self.digits = self
                .digits
                .and_then(|value| value.checked_mul(10))
                .and_then(|value| value.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        self.at - start
    }

    /// Takes an exponent and answers its value; none where it is too large to matter here.
    fn exponent(&mut self) -> Result<Option<i32>, NumberFailure> {
        self.at += 1;
        let negative = self.peek() == b'-';
        if negative || self.peek() == b'+' {
            self.at += 1;
        }
        let digits = self.digits.replace(0);
        let count = self.digits();
        let value = std::mem::replace(&mut self.digits, digits);
        if count == 0 {
            return Err(("Miss exponent in number.", self.at));
        }
        let value = value.and_then(|value| i32::try_from(value).ok());
        Ok(value.map(|value| if negative { -value } else { value }))
    }
}

/// Reads the number at the start of `text`; answers how many bytes it has.
pub(super) fn read(text: &[u8]) -> Result<(JsonNumber, usize), NumberFailure> {
    let mut scan = NumberScan { text, at: 0, digits: Some(0) };
    let negative = scan.peek() == b'-';
    scan.at = usize::from(negative);
    match scan.peek() {
        b'0' => scan.at += 1,
        b'1'..=b'9' => {
            scan.digits();
        }
        b'N' | b'I' => return special(text, negative),
        _ => return Err(("Invalid value.", scan.at)),
    }
    if !matches!(scan.peek(), b'.' | b'e' | b'E')
        && let Some(integer) = scan.digits.and_then(|value| integer(value, negative))
    {
        return Ok((integer, scan.at));
    }
    let mut exponent = Some(0);
    if scan.peek() == b'.' {
        scan.at += 1;
        let count = scan.digits();
        if count == 0 {
            return Err(("Miss fraction part in number.", scan.at));
        }
        exponent = i32::try_from(count).ok().map(|count| -count);
    }
    if matches!(scan.peek(), b'e' | b'E') {
        let shift = scan.exponent()?;
        exponent = exponent.zip(shift).and_then(|(a, b)| a.checked_add(b));
    }
    let number = match scan.digits.zip(exponent).and_then(|(digits, e)| exact(digits, e)) {
        Some(value) => {
            if negative {
                -value
            } else {
                value
            }
        }
        None => double(text.get(..scan.at).unwrap_or(&[]))?,
    };
    Ok((JsonNumber::Double(number), scan.at))
}

/// An integer that fits 64 bits. Minus zero is the integer zero for RapidJSON.
fn integer(value: u64, negative: bool) -> Option<JsonNumber> {
    if !negative || value == 0 {
        return Some(JsonNumber::Natural(value));
    }
    0_i64.checked_sub_unsigned(value).map(JsonNumber::Negative)
}

/// Digits times a power of ten, where one correctly rounded operation gives the nearest double.
///
/// Source: W. Clinger, "How to Read Floating Point Numbers Accurately", PLDI 1990.
fn exact(digits: u64, exponent: i32) -> Option<f64> {
    if digits > EXACT_INTEGERS {
        return None;
    }
    let power = EXACT_POWERS.get(usize::try_from(exponent.unsigned_abs()).ok()?)?;
    let digits = digits as f64;
    Some(if exponent < 0 { digits / power } else { digits * power })
}

fn double(text: &[u8]) -> Result<f64, NumberFailure> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    match parsed {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(("Number too big to be stored in double.", 0)),
        None => Err(("Invalid value.", 0)),
    }
}

fn special(text: &[u8], negative: bool) -> Result<(JsonNumber, usize), NumberFailure> {
    let start = usize::from(negative);
    let rest = text.get(start..).unwrap_or(&[]);
    let (value, word) = if rest.starts_with(b"NaN") {
        (f64::NAN, 3)
    } else if rest.starts_with(b"Infinity") {
        (f64::INFINITY, 8)
    } else if rest.starts_with(b"Inf") {
        if rest.get(3) == Some(&b'i') {
            return Err(("Invalid value.", start + 4));
        }
        (f64::INFINITY, 3)
    } else {
        return Err(("Invalid value.", start + 1));
    };
    Ok((JsonNumber::Double(if negative { -value } else { value }), start + word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_rapidjson() {
        for (text, number) in [
            ("0", JsonNumber::Natural(0)),
            ("-0", JsonNumber::Natural(0)),
            ("18446744073709551615", JsonNumber::Natural(u64::MAX)),
            ("18446744073709551616", JsonNumber::Double(18_446_744_073_709_551_616.0)),
            ("-9223372036854775808", JsonNumber::Negative(i64::MIN)),
            ("-9223372036854775809", JsonNumber::Double(-9_223_372_036_854_775_809.0)),
            ("1.0", JsonNumber::Double(1.0)),
            ("-1.5e+3", JsonNumber::Double(-1500.0)),
            ("1e-400", JsonNumber::Double(0.0)),
            ("0.1", JsonNumber::Double(0.1)),
            ("-0.0", JsonNumber::Double(-0.0)),
            ("123456.789e-3", JsonNumber::Double(123.456_789)),
            ("0.30000000000000004", JsonNumber::Double(0.300_000_000_000_000_04)),
            ("1e22", JsonNumber::Double(1e22)),
            ("1e23", JsonNumber::Double(1e23)),
            ("99999999999999999999e-20", JsonNumber::Double(1.0)),
            ("-Inf", JsonNumber::Double(f64::NEG_INFINITY)),
            ("Infinity", JsonNumber::Double(f64::INFINITY)),
        ] {
            assert_eq!(read(text.as_bytes()), Ok((number, text.len())), "{text}");
        }
        assert!(matches!(read(b"NaN,"), Ok((JsonNumber::Double(value), 3)) if value.is_nan()));
    }

    #[test]
    fn doubles_are_the_nearest_ones() {
        let mut state = 0x1234_5678_9ABC_DEF1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let text = format!("{}.{}e{}", state >> 44, state & 0xFFF_FFFF, (state >> 32) % 60);
            let nearest: f64 = text.parse().unwrap();
            assert_eq!(
                read(text.as_bytes()),
                Ok((JsonNumber::Double(nearest), text.len())),
                "{text}"
            );
        }
    }

    #[test]
    fn broken_numbers_say_where() {
        assert_eq!(read(b"1.x"), Err(("Miss fraction part in number.", 2)));
        assert_eq!(read(b"1e+"), Err(("Miss exponent in number.", 3)));
        assert_eq!(read(b"-"), Err(("Invalid value.", 1)));
        assert_eq!(read(b"1e999"), Err(("Number too big to be stored in double.", 0)));
    }
}
