//! Writes values the way RapidJSON's writer does.

use super::shortest;

/// Appends a string in quotes. Bytes that are no UTF-8 go out as they are; a slash is not escaped.
pub fn write_str(out: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((&byte, tail)) = special.split_first() else { break };
        let short = match byte {
            b'"' | b'\\' => byte,
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => 0,
        };
        if short == 0 {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
        rest = tail;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends an integer.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends an integer.
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a double: the shortest digits that read back the same, plain between 1e-6 and 1e21 and always with a
/// point there, else as `1.5e30`; NaN and infinities bare.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        return out.extend_from_slice(b"Infinity");
    }
    if value == 0.0 {
        return out.extend_from_slice(b"0.0");
    }
    let digits = shortest::digits(value.abs());
    layout(out, digits.as_bytes(), digits.exponent);
}

/// Places the point as RapidJSON's `Prettify` does.
fn layout(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    let len = i32::try_from(digits.len()).unwrap_or(0);
    // The number lies in 10^(point - 1) ..= 10^point.
    let point = len + exponent;
    let zeros = |out: &mut Vec<u8>, count: i32| {
        out.resize(out.len() + usize::try_from(count).unwrap_or(0), b'0');
    };
    if exponent >= 0 && point <= 21 {
        out.extend_from_slice(digits);
        zeros(out, exponent);
        out.extend_from_slice(b".0");
    } else if point > 0 && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else if point > -6 && point <= 0 {
        out.extend_from_slice(b"0.");
        zeros(out, -point);
        out.extend_from_slice(digits);
    } else {
        let (first, fraction) = digits.split_at(1.min(digits.len()));
        out.extend_from_slice(first);
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        out.push(b'e');
        write_i64(out, i64::from(point - 1));
    }
}

/// Appends an array, of which `write` appends each item.
pub fn write_array<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: f64) -> String {
        let mut out = Vec::new();
        write_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_look_as_recorded_from_triton() {
        for (value, text) in [
            (f64::from(0.1_f32), "0.10000000149011612"),
            (f64::from(-3e-5_f32), "-0.000029999999242136256"),
            (f64::from(1e20_f32), "100000002004087730000.0"),
            (f64::from(f32::MAX), "3.4028234663852887e38"),
            (f64::from(1e-45_f32), "1.401298464324817e-45"),
            (1e21, "1e21"),
            (1e22, "1e22"),
            (1e17, "100000000000000000.0"),
            (1e-7, "1e-7"),
            (1e-5, "0.00001"),
            (123_456_789.125, "123456789.125"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e308"),
            (5e-324, "5e-324"),
            (2.225_073_858_507_201_4e-308, "2.2250738585072014e-308"),
            (-0.0, "-0.0"),
            (16_777_216.0, "16777216.0"),
            (-2.5, "-2.5"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(printed(value), text);
        }
    }

    #[test]
    fn every_printed_double_reads_back() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from_bits(state);
            if value.is_finite() {
                assert_eq!(printed(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
        }
    }

    #[test]
    fn strings_are_escaped_as_rapidjson_does() {
        let mut out = Vec::new();
        write_str(&mut out, b"a\"b\\c/\n\x01\x7f\xFF");
        assert_eq!(out, b"\"a\\\"b\\\\c/\\n\\u0001\x7f\xFF\"");
    }
}
