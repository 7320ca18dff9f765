//! Methods of Python's texts, lists and maps that templates call.

mod texts;

use std::rc::Rc;

use super::builder::ItemsBuilder;
use super::calls::CallValues;
use super::compare::equal;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::value::{MapEntry, MapValue, TemplateValue};

pub(super) use texts::{TextAlignment, lines, of_text, padded, replaced};

const OF_MAPS: &[&str] = &["copy", "get", "items", "keys", "values"];
const OF_LISTS: &[&str] = &["copy", "count", "index"];

/// Methods that change lists or maps, which templates may not do.
const CHANGING: &[&str] = &[
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
];

/// Whether values of this type have a method.
pub(super) fn exists(value: &TemplateValue, name: &str) -> bool {
    match value {
        TemplateValue::Text(_) => texts::NAMES.contains(&name),
        TemplateValue::List(_) => OF_LISTS.contains(&name),
        TemplateValue::Map(_) => OF_MAPS.contains(&name),
        _ => false,
    }
}

/// Calls a method.
///
/// # Errors
/// For one that there is not, and as the method says.
pub(super) fn call(
    value: &TemplateValue,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    meter.step(1)?;
    match value.defined()? {
        TemplateValue::Text(text) if exists(value, name) => {
            of_text(&text.text, name, arguments, meter)
        }
        TemplateValue::Map(map) if exists(value, name) => of_map(map, name, arguments, meter),
        TemplateValue::List(list) if exists(value, name) => match name {
            "copy" => Ok(TemplateValue::List(Rc::clone(list))),
            _ => {
                let wanted = arguments.need(name, 0, "value")?;
                let mut count = 0;
                for (at, item) in list.items.iter().enumerate() {
                    if equal(item, wanted, meter)? {
                        if name == "index" {
                            return Ok(TemplateValue::count(at));
                        }
                        count += 1;
                    }
                }
                if name == "index" {
                    return Err(RenderFault::new("the value is not in the list"));
                }
                Ok(TemplateValue::count(count))
            }
        },
        other => {
            let of = other.type_name();
            let name = name.chars().take(80).collect::<String>();
            let changes = matches!(other, TemplateValue::List(_) | TemplateValue::Map(_))
                && CHANGING.contains(&&*name);
            Err(RenderFault::new(match changes {
                true => format!("'{of}' objects cannot be changed by '{name}' in a template"),
                false => format!("'{of}' object has no method '{name}'"),
            }))
        }
    }
}

fn of_map(
    map: &Rc<MapValue>,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    match name {
        "copy" => Ok(TemplateValue::Map(Rc::clone(map))),
        "get" => {
            arguments.expect("get", &["key", "default"])?;
            let found = map.get(arguments.need("get", 0, "key")?, meter)?;
            let default = arguments.get(1, "default").cloned().unwrap_or(TemplateValue::None);
            Ok(found.cloned().unwrap_or(default))
        }
        "items" => items_of(map, meter),
        _ => {
            let mut out = ItemsBuilder::new(meter)?;
            for entry in map.entries() {
                out.push(if name == "keys" { &entry.key } else { &entry.value }.clone())?;
            }
            out.into_list()
        }
    }
}

/// The entries of a map as pairs.
pub(super) fn items_of(map: &MapValue, meter: &RenderMeter<'_>) -> RenderResult<TemplateValue> {
    let mut out = ItemsBuilder::new(meter)?;
    for MapEntry { key, value } in map.entries() {
        out.push(TemplateValue::tuple(vec![key.clone(), value.clone()], meter)?)?;
    }
    out.into_list()
}

/// The named arguments of a call as a map.
pub(super) fn map_of_named(
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let entry = |of: &super::calls::NamedValue| {
        Ok(MapEntry { key: TemplateValue::text(&*of.name, meter)?, value: of.value.clone() })
    };
    TemplateValue::map(arguments.named.iter().map(entry).collect::<RenderResult<_>>()?, meter)
}
