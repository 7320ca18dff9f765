//! Tests behind `is`.

use super::calls::CallValues;
use super::compare::{as_float, compare};
use super::filters;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::syntax::Comparator;
use super::value::{TemplateValue, whole};

/// Names of tests, for `is test`.
const NAMES: &[&str] = &[
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

/// Whether a test holds.
///
/// # Errors
/// For a test that is not known, and for values that it cannot compare.
pub(super) fn holds(
    name: &str,
    value: &TemplateValue,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<bool> {
    use TemplateValue as V;
    let _level = meter.deeper()?;
    meter.step(1)?;
    if let Some(by) = comparator(name) {
        return compare(by, value, arguments.need(name, 0, "other")?, meter);
    }
    let is_in = |names: &[&str]| value.as_str().is_some_and(|text| names.contains(&text));
    Ok(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => matches!(value, V::None),
        "boolean" => matches!(value, V::Bool(_)),
        "true" => matches!(value, V::Bool(true)),
        "false" => matches!(value, V::Bool(false)),
        "string" => matches!(value, V::Text(_)),
        "number" => as_float(value).is_some(),
        "integer" | "int" => matches!(value, V::Int(_)),
        "float" => matches!(value, V::Float(_)),
        "mapping" => matches!(value, V::Map(_)),
        "sequence" => matches!(value, V::Text(_) | V::List(_) | V::Map(_) | V::Undefined(_)),
        "iterable" => {
            matches!(value, V::Text(_) | V::List(_) | V::Map(_) | V::Undefined(_) | V::Loop(_))
        }
        "callable" => {
            matches!(value, V::Macro(_) | V::Function(_) | V::Method(_) | V::Undefined(_))
        }
        "escaped" | "safe" => false,
        "odd" | "even" | "divisibleby" => divides(name, value, arguments)?,
        "sameas" => same(value, arguments.need(name, 0, "other")?),
        "lower" | "upper" => {
            let text = value.as_str().unwrap_or_default();
            meter.bytes(text.len())?;
            let wrong = |c: char| if name == "lower" { c.is_uppercase() } else { c.is_lowercase() };
            text.chars().any(char::is_alphabetic) && !text.chars().any(wrong)
        }
        "startingwith" | "endingwith" => {
            let part = arguments.need_text(name, 0, "other")?;
            let text = value.defined()?.as_str().unwrap_or_default();
            meter.bytes(part.len())?;
            if name == "startingwith" { text.starts_with(part) } else { text.ends_with(part) }
        }
        "filter" => value.as_str().is_some_and(filters::exists),
        "test" => is_in(NAMES),
        other => {
            let name: String = other.chars().take(80).collect();
            return Err(RenderFault::new(format!("unknown test: test {name} is unknown")));
        }
    })
}

fn comparator(name: &str) -> Option<Comparator> {
    Some(match name {
        "eq" | "equalto" | "==" => Comparator::Equal,
        "ne" | "!=" => Comparator::Unequal,
        "lt" | "lessthan" | "<" => Comparator::Less,
        "le" | "<=" => Comparator::LessOrEqual,
        "gt" | "greaterthan" | ">" => Comparator::Greater,
        "ge" | ">=" => Comparator::GreaterOrEqual,
        "in" => Comparator::In,
        _ => return None,
    })
}

fn divides(name: &str, value: &TemplateValue, arguments: &CallValues) -> RenderResult<bool> {
    let value = value.defined()?;
    let number = match value {
        TemplateValue::Float(number) => whole(*number),
        other => other.as_int(),
    };
    let by = match name {
        "divisibleby" => arguments.int(name, 0, "num")?.unwrap_or(0),
        _ => 2,
    };
    let Some(number) = number else {
        let message = format!("is {name}: '{}' found, expected a whole number", value.type_name());
        return Err(RenderFault::new(message));
    };
    let Some(rest) = number.checked_rem(by) else {
        return Err(RenderFault::new("division by zero"));
    };
    Ok((rest == 0) != (name == "odd"))
}

/// Whether two values are one, which constants and small numbers are.
fn same(a: &TemplateValue, b: &TemplateValue) -> bool {
    use TemplateValue as V;
    match (a, b) {
        (V::None, V::None) | (V::Undefined(_), V::Undefined(_)) => true,
        (V::Bool(a), V::Bool(b)) => a == b,
        (V::Int(a), V::Int(b)) => a == b,
        (V::Float(a), V::Float(b)) => a.to_bits() == b.to_bits(),
        (V::Text(a), V::Text(b)) => std::rc::Rc::ptr_eq(a, b) || a.text == b.text,
        (V::List(a), V::List(b)) => std::rc::Rc::ptr_eq(a, b),
        (V::Map(a), V::Map(b)) => std::rc::Rc::ptr_eq(a, b),
        (V::Namespace(a), V::Namespace(b)) => std::rc::Rc::ptr_eq(a, b),
        (V::Loop(a), V::Loop(b)) => std::rc::Rc::ptr_eq(a, b),
        _ => false,
    }
}
