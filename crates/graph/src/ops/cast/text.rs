//! Numbers as text.

use galatea_tensor::{ByteString, DataType};

use crate::error::OpError;
use crate::ops::values::integer_range;

/// Significant digits of a float as text. Source: ONNX Runtime prints with `%.8g`.
const DIGITS: usize = 8;

/// A float with eight significant digits at most, without trailing zeros; scientific where the
/// exponent is below −4 or beyond the digits.
pub(super) fn format_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let scientific = format!("{value:.*e}", DIGITS - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let stripped = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    let digits = i32::try_from(DIGITS).unwrap_or(i32::MAX);
    if (-4..digits).contains(&exponent) {
        let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
        return stripped(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", stripped(mantissa), exponent.unsigned_abs())
}

fn not_a(what: &str, text: &ByteString) -> OpError {
    OpError::new(format!("{text:?} is not {what}"))
}

/// The float that a text says, rounded for `FP32` once.
pub(super) fn parse_float(text: &ByteString, to: DataType) -> Result<f64, OpError> {
    let found = text.as_str().map(str::trim).and_then(|trimmed| match to {
        DataType::Fp32 => trimmed.parse::<f32>().ok().map(f64::from),
        _ => trimmed.parse().ok(),
    });
    found.ok_or_else(|| not_a("a number", text))
}

/// The integer that a text says.
pub(super) fn parse_integer(text: &ByteString, to: DataType) -> Result<i128, OpError> {
    let found = text.as_str().and_then(|text| text.trim().parse::<i128>().ok());
    let (low, high) = integer_range(to).unwrap_or((0, 0));
    found
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| not_a(&format!("an integer of type {to}"), text))
}
