//! Operators, attributes, items and slices.

use std::cmp::Ordering;

use super::builder::{ItemsBuilder, TextBuilder};
use super::compare::as_float;
use super::format::percent;
use super::lexer::is_space;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::syntax::ArithmeticSign;
use super::value::{ListValue, TemplateValue, place};

/// The result of an operator.
///
/// # Errors
/// For values that it does not know, divisions by zero, and results out of bounds.
pub(super) fn operate(
    by: ArithmeticSign,
    a: &TemplateValue,
    b: &TemplateValue,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    use TemplateValue as V;
    match (by, a.defined()?, b.defined()?) {
        (ArithmeticSign::Add, V::Text(a), V::Text(b)) => {
            let mut out = TextBuilder::new(meter)?;
            out.push_both(&a.text, &b.text)?;
            out.into_value()
        }
        (ArithmeticSign::Add, V::List(a), V::List(b)) if a.is_tuple == b.is_tuple => {
            let _held = meter.hold((a.items.len() + b.items.len()) * size_of::<V>())?;
            meter.elements((a.items.len() + b.items.len()) / 8)?;
            let items = a.items.iter().chain(&b.items).cloned().collect();
            drop(_held);
            list_like(a, items, meter)
        }
        (ArithmeticSign::Multiply, V::Text(_) | V::List(_), times)
        | (ArithmeticSign::Multiply, times, V::Text(_) | V::List(_)) => {
            let repeated = if std::ptr::eq(times, b) { a } else { b };
            let Some(times) = times.as_int() else { return Err(unsupported(by, a, b)) };
            repeat(repeated, usize::try_from(times.max(0)).unwrap_or(usize::MAX), meter)
        }
        (ArithmeticSign::Remainder, V::Text(text), values) => percent(&text.text, values, meter),
        _ => match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) => integers(by, a, b),
            _ => match (as_float(a), as_float(b)) {
                (Some(x), Some(y)) => floats(by, x, y),
                _ => Err(unsupported(by, a, b)),
            },
        },
    }
}

fn unsupported(by: ArithmeticSign, a: &TemplateValue, b: &TemplateValue) -> RenderFault {
    let sign = by.sign();
    let a = a.type_name();
    let b = b.type_name();
    RenderFault::new(format!("unsupported operand type(s) for {sign}: '{a}' and '{b}'"))
}

/// A list or tuple, as another one is.
fn list_like(
    like: &ListValue,
    items: Vec<TemplateValue>,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    match like.is_tuple {
        true => TemplateValue::tuple(items, meter),
        false => TemplateValue::list(items, meter),
    }
}

fn repeat(
    value: &TemplateValue,
    times: usize,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    match value {
        TemplateValue::Text(text) => {
            let mut out = TextBuilder::new(meter)?;
            out.push_times(&text.text, times)?;
            out.into_value()
        }
        TemplateValue::List(list) => {
            let mut out = ItemsBuilder::new(meter)?;
            if !list.items.is_empty() {
                for _ in 0..times {
                    out.extend(&list.items)?;
                }
            }
            list_like(list, out.into_items(), meter)
        }
        other => Err(RenderFault::new(format!("'{}' cannot be repeated", other.type_name()))),
    }
}

fn integers(by: ArithmeticSign, a: i128, b: i128) -> RenderResult<TemplateValue> {
    let zero = matches!(
        by,
        ArithmeticSign::Divide | ArithmeticSign::FloorDivide | ArithmeticSign::Remainder
    );
    if zero && b == 0 {
        return Err(RenderFault::new("division by zero"));
    }
    let found = match by {
        ArithmeticSign::Add => a.checked_add(b),
        ArithmeticSign::Subtract => a.checked_sub(b),
        ArithmeticSign::Multiply => a.checked_mul(b),
        ArithmeticSign::FloorDivide => {
            let quotient = a.checked_div(b);
            let inexact = a.checked_rem(b).is_some_and(|rest| rest != 0);
            quotient.map(|quotient| quotient - i128::from(inexact && (a < 0) != (b < 0)))
        }
        ArithmeticSign::Remainder => a.checked_rem(b).map(|rest| {
            let wrong_side = rest != 0 && (rest < 0) != (b < 0);
            if wrong_side { rest + b } else { rest }
        }),
        ArithmeticSign::Power if b >= 0 => match a {
            0 | 1 => Some(if b == 0 { 1 } else { a }),
            -1 => Some(if b % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        },
        ArithmeticSign::Divide | ArithmeticSign::Power => {
            #[expect(clippy::cast_precision_loss, reason = "Python converts in the same way")]
            return floats(by, a as f64, b as f64);
        }
    };
    let too_large =
        || RenderFault::new(format!("the result of {a} {} {b} is too large", by.sign()));
    found.map(TemplateValue::Int).ok_or_else(too_large)
}

fn floats(by: ArithmeticSign, a: f64, b: f64) -> RenderResult<TemplateValue> {
    let divides = matches!(
        by,
        ArithmeticSign::Divide | ArithmeticSign::FloorDivide | ArithmeticSign::Remainder
    );
    if b == 0.0 && divides || a == 0.0 && b < 0.0 && by == ArithmeticSign::Power {
        return Err(RenderFault::new("division by zero"));
    }
    let rest = || {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
    };
    Ok(TemplateValue::Float(match by {
        ArithmeticSign::Add => a + b,
        ArithmeticSign::Subtract => a - b,
        ArithmeticSign::Multiply => a * b,
        ArithmeticSign::Divide => a / b,
        ArithmeticSign::FloorDivide => ((a - rest()) / b).round(),
        ArithmeticSign::Remainder => rest(),
        ArithmeticSign::Power => a.powf(b),
    }))
}

/// The negative of a number, or the number.
pub(super) fn signed(value: &TemplateValue, negative: bool) -> RenderResult<TemplateValue> {
    match value.defined()? {
        TemplateValue::Float(number) => {
            Ok(TemplateValue::Float(if negative { -number } else { *number }))
        }
        other => match other.as_int() {
            Some(number) if negative => {
                let too_large = || RenderFault::new(format!("-({number}) is too large"));
                number.checked_neg().map(TemplateValue::Int).ok_or_else(too_large)
            }
            Some(number) => Ok(TemplateValue::Int(number)),
            None => {
                let sign = if negative { '-' } else { '+' };
                let message = format!("bad operand type for unary {sign}: '{}'", other.type_name());
                Err(RenderFault::new(message))
            }
        },
    }
}

/// `value[key]`; undefined where there is nothing.
///
/// # Errors
/// For an undefined value.
pub(super) fn item(
    value: &TemplateValue,
    key: &TemplateValue,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let found = match value.defined()? {
        TemplateValue::Map(map) => map.get(key, meter)?.cloned(),
        TemplateValue::List(list) => {
            let at = key.as_int().and_then(|index| place(index, list.items.len()));
            at.and_then(|at| list.items.get(at)).cloned()
        }
        TemplateValue::Text(text) => match key.as_int() {
            Some(index) => character(&text.text, index, meter)?,
            None => None,
        },
        TemplateValue::Namespace(namespace) => match key.as_str() {
            Some(name) => namespace.get(name, meter)?,
            None => None,
        },
        _ => None,
    };
    Ok(found.unwrap_or(TemplateValue::Undefined(None)))
}

fn character(
    text: &str,
    index: i128,
    meter: &RenderMeter<'_>,
) -> RenderResult<Option<TemplateValue>> {
    // Only to count characters, all bytes are looked at.
    meter.bytes(text.len())?;
    if !text.is_ascii() {
        meter.characters(text.len())?;
    }
    let found = match usize::try_from(index) {
        Ok(at) if text.is_ascii() => text.as_bytes().get(at).map(|byte| char::from(*byte)),
        Ok(at) => text.chars().nth(at),
        Err(_) => match usize::try_from(-(index + 1)) {
            Ok(at) => text.chars().rev().nth(at),
            Err(_) => None,
        },
    };
    found.map(|character| TemplateValue::text(character, meter)).transpose()
}

/// Bounds of a slice, as far as they are given.
pub(super) struct GivenSlice {
    pub(super) start: TemplateValue,
    pub(super) stop: TemplateValue,
    pub(super) step: TemplateValue,
}

/// The places that a slice takes, in their order.
struct SlicePlaces {
    at: i128,
    stop: i128,
    step: i128,
}

impl Iterator for SlicePlaces {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let goes_on = if self.step > 0 { self.at < self.stop } else { self.at > self.stop };
        let place = goes_on.then_some(self.at)?;
        self.at = self.at.saturating_add(self.step);
        usize::try_from(place).ok()
    }
}

impl GivenSlice {
    fn places(&self, length: usize) -> RenderResult<SlicePlaces> {
        let length = i128::try_from(length).unwrap_or(i128::MAX);
        let bound = |value: &TemplateValue| match value {
            TemplateValue::None | TemplateValue::Undefined(_) => Ok(None),
            other => other.as_int().map(Some).ok_or_else(|| {
                let message = format!(
                    "slice indices must be integers or None, '{}' found",
                    other.type_name()
                );
                RenderFault::new(message)
            }),
        };
        let step = bound(&self.step)?.unwrap_or(1);
        let (low, high) = match step.cmp(&0) {
            Ordering::Equal => return Err(RenderFault::new("slice step cannot be zero")),
            Ordering::Greater => (0, length),
            Ordering::Less => (-1, length - 1),
        };
        let fit = |at: i128| {
            let at = if at < 0 { at.saturating_add(length) } else { at };
            at.clamp(low, high)
        };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let at = bound(&self.start)?.map_or(first, fit);
        Ok(SlicePlaces { at, stop: bound(&self.stop)?.map_or(last, fit), step })
    }

    /// The slice of a text, list or tuple.
    pub(super) fn of(
        &self,
        value: &TemplateValue,
        meter: &RenderMeter<'_>,
    ) -> RenderResult<TemplateValue> {
        match value.defined()? {
            TemplateValue::List(list) => {
                let mut out = ItemsBuilder::new(meter)?;
                let places = self.places(list.items.len())?;
                if places.step == 1 {
                    let start = usize::try_from(places.at).unwrap_or(0);
                    let stop = usize::try_from(places.stop).unwrap_or(0).max(start);
                    out.extend(list.items.get(start..stop).unwrap_or_default())?;
                } else {
                    for item in places.filter_map(|at| list.items.get(at)) {
                        out.push(item.clone())?;
                    }
                }
                list_like(list, out.into_items(), meter)
            }
            TemplateValue::Text(text) => self.of_text(&text.text, meter),
            other => {
                let message = format!("'{}' object cannot be sliced", other.type_name());
                Err(RenderFault::new(message))
            }
        }
    }

    fn of_text(&self, text: &str, meter: &RenderMeter<'_>) -> RenderResult<TemplateValue> {
        meter.bytes(text.len())?;
        let ascii = text.is_ascii();
        if !ascii {
            meter.characters(text.len())?;
        }
        let length = if ascii { text.len() } else { text.chars().count() };
        let places = self.places(length)?;
        if places.step == 1 {
            let byte = |place: i128| {
                let place = usize::try_from(place).unwrap_or(0);
                let at = || text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
                if ascii { place } else { at() }
            };
            let end = places.stop.max(places.at);
            let part = text.get(byte(places.at)..byte(end)).unwrap_or_default();
            return TemplateValue::text(part, meter);
        }
        let _held = meter.hold(length * size_of::<char>())?;
        let characters: Vec<char> = text.chars().collect();
        let mut out = TextBuilder::new(meter)?;
        for at in places {
            meter.step(1)?;
            if let Some(character) = characters.get(at) {
                out.push_char(*character)?;
            }
        }
        out.into_value()
    }
}

/// A text without white space, or without some characters, at its ends.
pub(super) fn strip<'t>(text: &'t str, of: Option<&str>, sides: StripSides) -> &'t str {
    let goes = |c: char| of.map_or_else(|| is_space(c), |of| of.contains(c));
    let text = if sides.start { text.trim_start_matches(goes) } else { text };
    if sides.end { text.trim_end_matches(goes) } else { text }
}

/// Where a text is stripped.
#[derive(Debug, Clone, Copy)]
pub(super) struct StripSides {
    pub(super) start: bool,
    pub(super) end: bool,
}
