//! Attributes of values, and paths of attributes.

use std::rc::Rc;
use std::sync::Arc;

use super::arithmetic::item;
use super::meter::{RenderMeter, RenderResult};
use super::methods;
use super::value::{LoopValue, MethodValue, TemplateValue};

/// `value.name`; undefined where there is nothing. Methods come before keys, as in Jinja2.
///
/// # Errors
/// For an undefined value.
pub(super) fn member(
    value: &TemplateValue,
    name: &Arc<str>,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let found = match value.defined()? {
        TemplateValue::Namespace(namespace) => namespace.get(name, meter)?,
        TemplateValue::Loop(of) => loop_member(of, name),
        other if methods::exists(other, name) => {
            let method = MethodValue { of: other.clone(), name: Arc::clone(name) };
            Some(TemplateValue::Method(Rc::new(method)))
        }
        TemplateValue::Map(map) => map.get_text(name).cloned(),
        // What `groupby` gives has names.
        TemplateValue::List(list) if list.is_tuple && list.items.len() == 2 => match &**name {
            "grouper" => list.items.first().cloned(),
            "list" => list.items.last().cloned(),
            _ => None,
        },
        _ => None,
    };
    Ok(found.unwrap_or_else(|| TemplateValue::Undefined(Some(Arc::clone(name)))))
}

fn loop_member(of: &LoopValue, name: &str) -> Option<TemplateValue> {
    let index = of.index.get();
    let length = of.items.items.len();
    let near = |place: Option<usize>| {
        let found = place.and_then(|place| of.items.items.get(place)).cloned();
        found.unwrap_or(TemplateValue::Undefined(None))
    };
    Some(match name {
        "index" => TemplateValue::count(index + 1),
        "index0" => TemplateValue::count(index),
        "revindex" => TemplateValue::count(length.saturating_sub(index)),
        "revindex0" => TemplateValue::count(length.saturating_sub(index + 1)),
        "first" => TemplateValue::Bool(index == 0),
        "last" => TemplateValue::Bool(index + 1 == length),
        "length" => TemplateValue::count(length),
        "depth" => TemplateValue::Int(i128::from(of.depth) + 1),
        "depth0" => TemplateValue::Int(i128::from(of.depth)),
        "previtem" => near(index.checked_sub(1)),
        "nextitem" => near(index.checked_add(1)),
        _ => return None,
    })
}

/// The value at a path such as `function.name` or `0`.
///
/// # Errors
/// When something on the way is undefined.
pub(super) fn path(
    value: &TemplateValue,
    path: &TemplateValue,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let Some(text) = path.as_str() else { return item(value, path, meter) };
    let mut found = value.clone();
    for part in text.split('.') {
        meter.bytes(part.len())?;
        let place: Option<i128> =
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        found = match (place, &found) {
            (Some(place), _) => item(&found, &TemplateValue::Int(place), meter)?,
            (None, TemplateValue::Map(map)) => {
                map.get_text(part).cloned().unwrap_or(TemplateValue::Undefined(None))
            }
            (None, other) => member(other, &part.into(), meter)?,
        };
    }
    Ok(found)
}
