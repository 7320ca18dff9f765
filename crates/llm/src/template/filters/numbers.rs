//! Filters that make numbers, and those for any value.

use super::super::calls::CallValues;
use super::super::compare::as_float;
use super::super::json::tojson;
use super::super::lexer::is_space;
use super::super::meter::{RenderFault, RenderResult};
use super::super::value::{TemplateValue, whole};
use super::super::{access, show};
use super::FilterCall;

/// The most decimals that a number is rounded to.
const MAX_DECIMALS: i128 = 300;

pub(super) const NAMES: &[&str] = &[
    "abs", "attr", "bool", "d", "default", "float", "int", "pprint", "round", "safe", "string",
    "tojson",
];

pub(super) fn apply(call: &FilterCall<'_, '_, '_>) -> Option<RenderResult<TemplateValue>> {
    Some(match call.name {
        "abs" => absolute(call),
        "attr" => attribute(call),
        "bool" => Ok(TemplateValue::Bool(call.value.is_true())),
        "d" | "default" => default(call),
        "float" => to_float(call),
        "int" => to_int(call),
        "pprint" => represented(call),
        "round" => round(call),
        "safe" => Ok(call.value.clone()),
        "string" => show::shown(call.value, call.meter),
        "tojson" => tojson(call.value, call.arguments, call.meter),
        _ => return None,
    })
}

fn represented(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    let mut out = super::super::builder::TextBuilder::new(call.meter)?;
    show::represent(call.value, call.meter, &mut out)?;
    out.into_value()
}

fn attribute(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    let name = call.arguments.need_text("attr", 0, "name")?;
    access::member(call.value, &name.into(), call.meter)
}

fn default(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["default_value", "boolean"])?;
    let replaced =
        call.value.is_undefined() || call.arguments.truth(1, "boolean") && !call.value.is_true();
    if !replaced {
        return Ok(call.value.clone());
    }
    match call.arguments.get(0, "default_value") {
        Some(value) => Ok(value.clone()),
        None => TemplateValue::text("", call.meter),
    }
}

fn absolute(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    match call.value.defined()? {
        TemplateValue::Float(number) => Ok(TemplateValue::Float(number.abs())),
        other => match other.as_int().and_then(i128::checked_abs) {
            Some(number) => Ok(TemplateValue::Int(number)),
            None => {
                let message = format!("bad operand type for abs(): '{}'", other.type_name());
                Err(RenderFault::new(message))
            }
        },
    }
}

fn fallback(arguments: &CallValues, otherwise: TemplateValue) -> TemplateValue {
    arguments.get(0, "default").cloned().unwrap_or(otherwise)
}

fn to_int(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["default", "base"])?;
    let base = call.arguments.int("int", 1, "base")?.unwrap_or(10);
    let found = match call.value {
        TemplateValue::Float(number) => whole(number.trunc()),
        TemplateValue::Text(text) => {
            call.meter.bytes(text.text.len())?;
            let text = text.text.trim_matches(is_space).replace('_', "");
            let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base));
            let digits = match base {
                Some(16) => text.trim_start_matches("0x").trim_start_matches("0X"),
                Some(8) => text.trim_start_matches("0o"),
                Some(2) => text.trim_start_matches("0b"),
                _ => text.as_str(),
            };
            let whole_number = i128::from_str_radix(digits, base.unwrap_or(10)).ok();
            whole_number.or_else(|| whole(text.parse::<f64>().ok()?.trunc()))
        }
        other => other.as_int(),
    };
    let otherwise = || fallback(call.arguments, TemplateValue::Int(0));
    Ok(found.map_or_else(otherwise, TemplateValue::Int))
}

fn to_float(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["default"])?;
    let found = match call.value {
        TemplateValue::Text(text) => {
            call.meter.bytes(text.text.len())?;
            text.text.trim_matches(is_space).replace('_', "").parse().ok()
        }
        other => as_float(other),
    };
    let otherwise = || fallback(call.arguments, TemplateValue::Float(0.0));
    Ok(found.map_or_else(otherwise, TemplateValue::Float))
}

fn round(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["precision", "method"])?;
    let precision = call.arguments.int("round", 0, "precision")?.unwrap_or(0);
    let method = call.arguments.text("round", 1, "method")?.unwrap_or("common");
    if !matches!(method, "common" | "ceil" | "floor") {
        return Err(RenderFault::new("round: method must be common, ceil or floor"));
    }
    let value = call.value.defined()?;
    if method == "common" && precision >= 0 && value.as_int().is_some() {
        return Ok(value.clone());
    }
    let number = as_float(value).ok_or_else(|| {
        RenderFault::new(format!("round: '{}' found, expected a number", value.type_name()))
    })?;
    let precision = precision.clamp(-MAX_DECIMALS, MAX_DECIMALS);
    let power = 10_f64.powi(i32::try_from(precision).unwrap_or(0));
    Ok(TemplateValue::Float(match (method, usize::try_from(precision)) {
        ("ceil", _) => (number * power).ceil() / power,
        ("floor", _) => (number * power).floor() / power,
        (_, Ok(decimals)) if number.is_finite() => {
            format!("{number:.decimals$}").parse().unwrap_or(number)
        }
        _ => (number * power).round_ties_even() / power,
    }))
}
