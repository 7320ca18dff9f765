//! Numbers of RapidJSON's grammar with its NaN and infinity extension.

/// A number with the type RapidJSON gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// An integer below zero that fits 64 bits.
    Negative(i64),
    /// An integer of zero or more that fits 64 bits.
    Natural(u64),
    /// Fractions, exponents, integers beyond 64 bits, NaN and infinities.
    Double(f64),
}

/// Sentence and offset of an error.
pub(super) type Failure = (&'static str, usize);

/// Reads the number at the start of `text`; answers how many bytes it has.
pub(super) fn read(text: &[u8]) -> Result<(Number, usize), Failure> {
    let peek = |at: usize| text.get(at).copied().unwrap_or(0);
    let negative = peek(0) == b'-';
    let start = usize::from(negative);
    let mut at = start;
    let mut natural = Some(0_u64);
    match peek(at) {
        b'0' => at += 1,
        b'1'..=b'9' => {
            while let digit @ b'0'..=b'9' = peek(at) {
                natural = natural
                    .and_then(|value| value.checked_mul(10))
                    .and_then(|value| value.checked_add(u64::from(digit - b'0')));
                at += 1;
            }
        }
        b'N' | b'I' => return special(text, negative),
        _ => return Err(("Invalid value.", at)),
    }
    let mut integer = true;
    if peek(at) == b'.' {
        integer = false;
        at += 1;
        if !peek(at).is_ascii_digit() {
            return Err(("Miss fraction part in number.", at));
        }
        while peek(at).is_ascii_digit() {
            at += 1;
        }
    }
    if matches!(peek(at), b'e' | b'E') {
        integer = false;
        at += 1;
        if matches!(peek(at), b'+' | b'-') {
            at += 1;
        }
        if !peek(at).is_ascii_digit() {
            return Err(("Miss exponent in number.", at));
        }
        while peek(at).is_ascii_digit() {
            at += 1;
        }
    }
    if let Some(value) = natural.filter(|_| integer) {
        if !negative {
            return Ok((Number::Natural(value), at));
        }
        // Minus zero is the integer zero for RapidJSON.
        if value == 0 {
            return Ok((Number::Natural(0), at));
        }
        if let Some(value) = 0_i64.checked_sub_unsigned(value) {
            return Ok((Number::Negative(value), at));
        }
    }
    double(text.get(..at).unwrap_or(&[])).map(|value| (Number::Double(value), at))
}

fn double(text: &[u8]) -> Result<f64, Failure> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    match parsed {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(("Number too big to be stored in double.", 0)),
        None => Err(("Invalid value.", 0)),
    }
}

fn special(text: &[u8], negative: bool) -> Result<(Number, usize), Failure> {
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
    Ok((Number::Double(if negative { -value } else { value }), start + word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_rapidjson() {
        for (text, number) in [
            ("0", Number::Natural(0)),
            ("-0", Number::Natural(0)),
            ("18446744073709551615", Number::Natural(u64::MAX)),
            ("18446744073709551616", Number::Double(18_446_744_073_709_551_616.0)),
            ("-9223372036854775808", Number::Negative(i64::MIN)),
            ("-9223372036854775809", Number::Double(-9_223_372_036_854_775_809.0)),
            ("1.0", Number::Double(1.0)),
            ("-1.5e+3", Number::Double(-1500.0)),
            ("1e-400", Number::Double(0.0)),
            ("-Inf", Number::Double(f64::NEG_INFINITY)),
            ("Infinity", Number::Double(f64::INFINITY)),
        ] {
            assert_eq!(read(text.as_bytes()), Ok((number, text.len())), "{text}");
        }
        assert!(matches!(read(b"NaN,"), Ok((Number::Double(value), 3)) if value.is_nan()));
    }

    #[test]
    fn broken_numbers_say_where() {
        assert_eq!(read(b"1.x"), Err(("Miss fraction part in number.", 2)));
        assert_eq!(read(b"1e+"), Err(("Miss exponent in number.", 3)));
        assert_eq!(read(b"-"), Err(("Invalid value.", 1)));
        assert_eq!(read(b"1e999"), Err(("Number too big to be stored in double.", 0)));
    }
}
