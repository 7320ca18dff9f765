//! From a written scalar to the value of a field.

use prost_reflect::{EnumDescriptor, Kind, Value};

use super::lexer::TextToken;
use super::suggest::suggest;

/// A scalar as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WrittenScalar {
    pub(super) negative: bool,
    pub(super) token: TextToken,
}

impl WrittenScalar {
    fn describe(&self) -> String {
        match (&self.token, self.negative) {
            (TextToken::Number(number), true) => format!("the number -{number}"),
            (token, true) => format!("'-' and {}", token.describe()),
            (token, false) => token.describe(),
        }
    }
}

/// The value of a field of this kind; the error says what is wrong.
pub(super) fn value(kind: &Kind, written: &WrittenScalar) -> Result<Value, String> {
    match kind {
        Kind::Bool => boolean(written).map(Value::Bool),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            integer(written, "a 32-bit integer").map(Value::I32)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            integer(written, "a 64-bit integer").map(Value::I64)
        }
        Kind::Uint32 | Kind::Fixed32 => {
            integer(written, "an unsigned 32-bit integer").map(Value::U32)
        }
        Kind::Uint64 | Kind::Fixed64 => {
            integer(written, "an unsigned 64-bit integer").map(Value::U64)
        }
        // The nearest single to the written number is the meaning of a float field.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a float field rounds to single precision"
        )]
        Kind::Float => real(written).map(|real| Value::F32(real as f32)),
        Kind::Double => real(written).map(Value::F64),
        Kind::Enum(descriptor) => enumerated(descriptor, written),
        Kind::String => string(written).and_then(|bytes| {
            String::from_utf8(bytes)
                .map(Value::String)
                .map_err(|_| "this string is not UTF-8".to_owned())
        }),
        Kind::Bytes => string(written).map(|bytes| Value::Bytes(bytes.into())),
        Kind::Message(message) => {
            Err(expected(&format!("a message of type {} in braces", message.name()), written))
        }
    }
}

fn expected(what: &str, written: &WrittenScalar) -> String {
    format!("expected {what}, found {}", written.describe())
}

fn boolean(written: &WrittenScalar) -> Result<bool, String> {
    let text = match &written.token {
        TextToken::Word(word) | TextToken::Number(word) if !written.negative => word.as_str(),
        _ => return Err(expected("true or false", written)),
    };
    match text {
        "true" | "True" | "t" | "1" => Ok(true),
        "false" | "False" | "f" | "0" => Ok(false),
        _ => Err(expected("true or false", written)),
    }
}

fn integer<T: TryFrom<i128>>(written: &WrittenScalar, what: &str) -> Result<T, String> {
    let TextToken::Number(number) = &written.token else { return Err(expected(what, written)) };
    let value = magnitude(number).ok_or_else(|| expected(what, written))?;
    let value = if written.negative { -value } else { value };
    T::try_from(value).map_err(|_| format!("{value} is out of the range of {what}"))
}

/// Decimal, hexadecimal after `0x`, octal after `0`.
fn magnitude(number: &str) -> Option<i128> {
    let lower = number.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return i128::from_str_radix(digits, 16).ok();
    }
    match lower.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => i128::from_str_radix(digits, 8).ok(),
        _ => lower.parse().ok(),
    }
}

fn real(written: &WrittenScalar) -> Result<f64, String> {
    let text = match &written.token {
        TextToken::Number(number) => number.to_ascii_lowercase(),
        TextToken::Word(word) => word.to_ascii_lowercase(),
        _ => return Err(expected("a number", written)),
    };
    let parsed = match (text.as_str(), &written.token) {
        ("inf" | "infinity", _) => Some(f64::INFINITY),
        ("nan", _) => Some(f64::NAN),
        (_, TextToken::Word(_)) => None,
        (text, _) => text.strip_suffix('f').unwrap_or(text).parse().ok(),
    };
    let value: f64 = parsed.ok_or_else(|| expected("a number", written))?;
    Ok(if written.negative { -value } else { value })
}

fn enumerated(descriptor: &EnumDescriptor, written: &WrittenScalar) -> Result<Value, String> {
    match &written.token {
        TextToken::Word(word) if !written.negative => match descriptor.get_value_by_name(word) {
            Some(found) => Ok(Value::EnumNumber(found.number())),
            None => {
                let names: Vec<String> =
                    descriptor.values().map(|value| value.name().to_owned()).collect();
                let hint = suggest(word, names.iter().map(String::as_str));
                let all = names.join(", ");
                let known =
                    if hint.is_empty() { format!("; one of {all} is expected") } else { hint };
                Err(format!("'{word}' is no value of {}{known}", descriptor.name()))
            }
        },
        TextToken::Number(_) => {
            let number: i32 = integer(written, "an enum value")?;
            match descriptor.get_value(number) {
                Some(_) => Ok(Value::EnumNumber(number)),
                None => Err(format!("{number} is no value of {}", descriptor.name())),
            }
        }
        _ => Err(expected(&format!("a value of {}", descriptor.name()), written)),
    }
}

fn string(written: &WrittenScalar) -> Result<Vec<u8>, String> {
    match &written.token {
        TextToken::Text(bytes) if !written.negative => Ok(bytes.clone()),
        TextToken::Word(word) if !written.negative => {
            Err(format!("expected a string, found {word} without quotes"))
        }
        _ => Err(expected("a string", written)),
    }
}
