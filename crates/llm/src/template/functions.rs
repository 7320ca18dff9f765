//! Functions that templates call.

use std::rc::Rc;

use super::builder::ItemsBuilder;
use super::calls::CallValues;
use super::compare::equal;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::value::{LoopValue, MapEntry, NamespaceValue, TemplateValue};

/// The longest range, as in Jinja2's sandbox.
const MAX_RANGE: i128 = 100_000;

/// The longest format of a time.
const MAX_FORMAT_BYTES: usize = 1024;

const NAMES: &[&str] = &["dict", "namespace", "raise_exception", "range", "strftime_now"];

/// The function of a name.
pub(super) fn global(name: &str) -> Option<TemplateValue> {
    NAMES.iter().find(|found| **found == name).map(|name| TemplateValue::Function(name))
}

/// Calls a function.
///
/// # Errors
/// Fails as each function says.
pub(super) fn call(
    name: &str,
    arguments: &CallValues,
    now: i64,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    meter.step(1)?;
    match name {
        "range" => range(arguments, meter),
        "dict" => TemplateValue::map(entries(arguments, meter)?, meter),
        "namespace" => {
            let namespace = NamespaceValue::new(meter)?;
            for MapEntry { key, value } in entries(arguments, meter)? {
                let name = key
                    .as_str()
                    .ok_or_else(|| RenderFault::new("the names of a namespace must be strings"))?;
                let name = name.into();
                namespace.set(&name, value, meter)?;
            }
            Ok(TemplateValue::Namespace(Rc::new(namespace)))
        }
        "raise_exception" => {
            let message = arguments.need(name, 0, "message")?;
            let shown = super::show::shown(message, meter)?;
            Err(RenderFault::new(shown.as_str().unwrap_or_default()))
        }
        _ => {
            let format = arguments.need_text(name, 0, "format")?;
            if format.len() > MAX_FORMAT_BYTES {
                let message =
                    format!("strftime_now: a format longer than {MAX_FORMAT_BYTES} bytes");
                return Err(RenderFault::new(message));
            }
            let invalid = |e: jiff::Error| RenderFault::new(e.to_string());
            let now = jiff::Timestamp::from_second(now).map_err(invalid)?;
            let now = now.to_zoned(jiff::tz::TimeZone::system());
            TemplateValue::text(jiff::fmt::strtime::format(format, &now).map_err(invalid)?, meter)
        }
    }
}

/// The entries of a map that is given, or of pairs, and named ones.
fn entries(arguments: &CallValues, meter: &RenderMeter<'_>) -> RenderResult<Vec<MapEntry>> {
    let mut entries = match arguments.positional.first() {
        None => Vec::new(),
        Some(TemplateValue::Map(map)) => {
            meter.elements(map.len())?;
            map.entries().to_vec()
        }
        Some(pairs) => {
            let pairs = pairs.defined()?.elements(meter)?;
            let mut entries = Vec::new();
            for pair in &pairs.items {
                meter.step(1)?;
                let pair = pair.elements(meter)?;
                let [key, value] = pair.items.as_slice() else {
                    return Err(RenderFault::new("dict: expected pairs of keys and values"));
                };
                let key = key.clone();
                let value = value.clone();
                entries.push(MapEntry { key, value });
            }
            entries
        }
    };
    for of in &arguments.named {
        let key = TemplateValue::text(&*of.name, meter)?;
        entries.push(MapEntry { key, value: of.value.clone() });
    }
    Ok(entries)
}

fn range(arguments: &CallValues, meter: &RenderMeter<'_>) -> RenderResult<TemplateValue> {
    arguments.expect("range", &["start", "stop", "step"])?;
    let bound = |at| {
        let value = arguments.positional.get(at).map(TemplateValue::defined).transpose()?;
        value.map_or(Ok(None), |value| match value.as_int() {
            Some(number) => Ok(Some(number)),
            None => {
                let found = value.type_name();
                let message = format!("range: '{found}' found, expected a whole number");
                Err(RenderFault::new(message))
            }
        })
    };
    let first = bound(0)?;
    let second = bound(1)?;
    let first = first.ok_or_else(|| RenderFault::new("range: the argument 'stop' is missing"))?;
    let (start, stop) = second.map_or((0, first), |stop| (first, stop));
    let step = bound(2)?.unwrap_or(1);
    if step == 0 {
        return Err(RenderFault::new("range: the step must not be zero"));
    }
    let span = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let count = if span <= 0 { 0 } else { (span - 1) / step.saturating_abs() + 1 };
    if count > MAX_RANGE {
        let message = format!("range: {count} numbers, expected at most {MAX_RANGE}");
        return Err(RenderFault::new(message));
    }
    let mut out = ItemsBuilder::new(meter)?;
    for at in 0..count {
        out.push(TemplateValue::Int(start + at * step))?;
    }
    out.into_list()
}

/// Calls a method of a loop.
pub(super) fn call_loop(
    of: &LoopValue,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    match name {
        "cycle" => {
            let count = arguments.positional.len();
            let place = of.index.get().checked_rem(count);
            let found = place.and_then(|place| arguments.positional.get(place));
            found.cloned().ok_or_else(|| RenderFault::new("loop.cycle: no items given"))
        }
        "changed" => {
            let values = TemplateValue::tuple(arguments.positional.clone(), meter)?;
            if values.changes() {
                return Err(RenderFault::new("loop.changed: a namespace or loop is in the value"));
            }
            let before = of.before.borrow().clone();
            let changed = match &before {
                Some(before) => !equal(before, &values, meter)?,
                None => true,
            };
            of.before.replace(Some(values));
            Ok(TemplateValue::Bool(changed))
        }
        _ => {
            let name: String = name.chars().take(80).collect();
            Err(RenderFault::new(format!("the loop has no method '{name}'")))
        }
    }
}
