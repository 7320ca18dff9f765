//! Equality, order and containment, each look of which takes steps.

use std::cmp::Ordering;

use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::syntax::Comparator;
use super::value::{ListValue, TemplateValue};

/// Whether a comparison holds.
pub(super) fn compare(
    by: Comparator,
    a: &TemplateValue,
    b: &TemplateValue,
    meter: &RenderMeter<'_>,
) -> RenderResult<bool> {
    Ok(match by {
        Comparator::Equal => equal(a, b, meter)?,
        Comparator::Unequal => !equal(a, b, meter)?,
        Comparator::In => contains(b, a, meter)?,
        Comparator::NotIn => !contains(b, a, meter)?,
        Comparator::Less => order(a, b, "<", meter)? == Some(Ordering::Less),
        Comparator::Greater => order(a, b, ">", meter)? == Some(Ordering::Greater),
        Comparator::LessOrEqual => {
            matches!(order(a, b, "<=", meter)?, Some(Ordering::Less | Ordering::Equal))
        }
        Comparator::GreaterOrEqual => {
            matches!(order(a, b, ">=", meter)?, Some(Ordering::Greater | Ordering::Equal))
        }
    })
}

/// Whether two values are equal. Their depth is bounded.
pub(super) fn equal(
    a: &TemplateValue,
    b: &TemplateValue,
    meter: &RenderMeter<'_>,
) -> RenderResult<bool> {
    use TemplateValue as V;
    meter.step(1)?;
    Ok(match (a, b) {
        (V::Undefined(_), V::Undefined(_)) | (V::None, V::None) => true,
        (V::Text(a), V::Text(b)) => {
            meter.bytes(a.text.len().min(b.text.len()))?;
            a.text == b.text
        }
        (V::List(a), V::List(b)) => a.is_tuple == b.is_tuple && equal_lists(a, b, meter)?,
        (V::Map(a), V::Map(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for entry in a.entries() {
                match b.get(&entry.key, meter)? {
                    Some(value) if equal(&entry.value, value, meter)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (V::Namespace(a), V::Namespace(b)) => std::rc::Rc::ptr_eq(a, b),
        (V::Loop(a), V::Loop(b)) => std::rc::Rc::ptr_eq(a, b),
        (V::Macro(a), V::Macro(b)) => a.node == b.node && a.scope == b.scope,
        (V::Function(a), V::Function(b)) => a == b,
        _ => numbers(a, b) == Some(Ordering::Equal),
    })
}

fn equal_lists(a: &ListValue, b: &ListValue, meter: &RenderMeter<'_>) -> RenderResult<bool> {
    if a.items.len() != b.items.len() {
        return Ok(false);
    }
    for (a, b) in a.items.iter().zip(&b.items) {
        if !equal(a, b, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two numbers; none where one is no number.
fn numbers(a: &TemplateValue, b: &TemplateValue) -> Option<Ordering> {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => as_float(a)?.partial_cmp(&as_float(b)?),
    }
}

/// A number as a float.
#[expect(clippy::cast_precision_loss, reason = "Python converts integers in the same way")]
pub(super) fn as_float(value: &TemplateValue) -> Option<f64> {
    match value {
        TemplateValue::Float(number) => Some(*number),
        other => other.as_int().map(|number| number as f64),
    }
}

/// The order of two values; none where they have none, as with NaN.
///
/// # Errors
/// For values that cannot be compared.
pub(super) fn order(
    a: &TemplateValue,
    b: &TemplateValue,
    sign: &str,
    meter: &RenderMeter<'_>,
) -> RenderResult<Option<Ordering>> {
    use TemplateValue as V;
    meter.step(1)?;
    match (a.defined()?, b.defined()?) {
        (V::Text(a), V::Text(b)) => {
            meter.bytes(a.text.len().min(b.text.len()))?;
            Ok(Some(a.text.cmp(&b.text)))
        }
        (V::List(a), V::List(b)) if a.is_tuple == b.is_tuple => {
            for (a, b) in a.items.iter().zip(&b.items) {
                if !equal(a, b, meter)? {
                    return order(a, b, sign, meter);
                }
            }
            Ok(Some(a.items.len().cmp(&b.items.len())))
        }
        _ if as_float(a).is_some() && as_float(b).is_some() => Ok(numbers(a, b)),
        _ => Err(RenderFault::new(format!(
            "'{sign}' not supported between instances of '{}' and '{}'",
            a.type_name(),
            b.type_name()
        ))),
    }
}

/// Whether something is in a value.
pub(super) fn contains(
    value: &TemplateValue,
    item: &TemplateValue,
    meter: &RenderMeter<'_>,
) -> RenderResult<bool> {
    match value {
        TemplateValue::Text(text) => {
            let Some(part) = item.defined()?.as_str() else {
                let message = format!("cannot look for '{}' in a text", item.type_name());
                return Err(RenderFault::new(message));
            };
            meter.bytes(text.text.len() + part.len())?;
            Ok(text.text.contains(part))
        }
        TemplateValue::Map(map) => Ok(map.get(item, meter)?.is_some()),
        TemplateValue::Namespace(namespace) => match item.as_str() {
            Some(name) => Ok(namespace.get(name, meter)?.is_some()),
            None => Ok(false),
        },
        other => {
            for element in &other.elements(meter)?.items {
                if equal(element, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// Sorts values of which each has a key; those that are equal keep their order. Python's order is
/// none that the standard library may be given: it fails, and floats are not comparable throughout.
///
/// # Errors
/// For keys that cannot be compared.
pub(super) fn sort_by_keys(
    keyed: Vec<KeyedValue>,
    reverse: bool,
    meter: &RenderMeter<'_>,
) -> RenderResult<Vec<TemplateValue>> {
    let _held = meter.hold(keyed.len() * 2 * size_of::<usize>())?;
    let mut sorted: Vec<usize> = (0..keyed.len()).collect();
    let mut merged: Vec<usize> = Vec::with_capacity(sorted.len());
    let key = |place: Option<&usize>| place.and_then(|place| keyed.get(*place));
    let mut run = 1;
    while run < sorted.len() {
        merged.clear();
        for pair in sorted.chunks(run.saturating_mul(2)) {
            let (mut left, mut right) = pair.split_at(run.min(pair.len()));
            while let (Some(a), Some(b)) = (key(left.first()), key(right.first())) {
                let later = if reverse { Ordering::Less } else { Ordering::Greater };
                let swap = order(&a.key, &b.key, "<", meter)? == Some(later);
                let from = if swap { &mut right } else { &mut left };
                merged.extend(from.first());
                *from = from.get(1..).unwrap_or_default();
            }
            merged.extend(left.iter().chain(right));
        }
        std::mem::swap(&mut sorted, &mut merged);
        run = run.saturating_mul(2);
    }
    let mut values: Vec<Option<TemplateValue>> =
        keyed.into_iter().map(|of| Some(of.value)).collect();
    Ok(sorted.into_iter().filter_map(|place| values.get_mut(place)?.take()).collect())
}

/// A value and what it is sorted or told apart by.
pub(super) struct KeyedValue {
    pub(super) key: TemplateValue,
    pub(super) value: TemplateValue,
}
