//! Filters of lists and maps.

use super::super::builder::{ItemsBuilder, TextBuilder};
use super::super::calls::{CallValues, NamedValue, wrong};
use super::super::compare::{KeyedValue, equal, order, sort_by_keys};
use super::super::meter::{RenderFault, RenderResult};
use super::super::show::show;
use super::super::syntax::ArithmeticSign;
use super::super::value::{MapEntry, MapValue, TemplateValue};
use super::super::{access, arithmetic, checks, methods};
use super::{FilterCall, apply as apply_filter};

pub(super) const NAMES: &[&str] = &[
    "batch",
    "chain",
    "count",
    "dictsort",
    "first",
    "groupby",
    "items",
    "join",
    "last",
    "length",
    "list",
    "map",
    "max",
    "min",
    "random",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
    "zip",
];

pub(super) fn apply(call: &FilterCall<'_, '_, '_>) -> Option<RenderResult<TemplateValue>> {
    Some(match call.name {
        "batch" => batch(call),
        "chain" => chain(call),
        "count" | "length" => length(call),
        "dictsort" => dictsort(call),
        "first" | "random" => end(call, true),
        "last" => end(call, false),
        "groupby" => groupby(call),
        "items" => items(call),
        "join" => join(call),
        "list" => call.value.elements(call.meter).and_then(|list| {
            let mut out = ItemsBuilder::new(call.meter)?;
            out.extend(&list.items)?;
            out.into_list()
        }),
        "map" => map(call),
        "max" => extreme(call, true),
        "min" => extreme(call, false),
        "reject" => select(call, false, false),
        "rejectattr" => select(call, true, false),
        "select" => select(call, false, true),
        "selectattr" => select(call, true, true),
        "reverse" => reverse(call),
        "slice" => slice(call),
        "sort" => sort(call),
        "sum" => sum(call),
        "unique" => unique(call),
        "zip" => zip(call),
        _ => return None,
    })
}

fn length(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    let count = match call.value {
        TemplateValue::Text(text) => {
            call.meter.bytes(text.text.len())?;
            text.text.chars().count()
        }
        TemplateValue::Map(map) => map.len(),
        TemplateValue::Loop(of) => of.items.items.len(),
        other => other.elements(call.meter)?.items.len(),
    };
    Ok(TemplateValue::count(count))
}

fn items(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    match call.value {
        TemplateValue::Undefined(_) => TemplateValue::list(Vec::new(), call.meter),
        TemplateValue::Map(map) => methods::items_of(map, call.meter),
        other => Err(wrong("items", "the value", "a mapping", other)),
    }
}

fn end(call: &FilterCall<'_, '_, '_>, first: bool) -> RenderResult<TemplateValue> {
    if let TemplateValue::Text(_) = call.value {
        let place = TemplateValue::Int(if first { 0 } else { -1 });
        return arithmetic::item(call.value, &place, call.meter);
    }
    let list = call.value.elements(call.meter)?;
    let found = if first { list.items.first() } else { list.items.last() };
    Ok(found.cloned().unwrap_or(TemplateValue::Undefined(None)))
}

fn reverse(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    if let TemplateValue::Text(text) = call.value {
        call.meter.bytes(text.text.len())?;
        let held = call.meter.hold(text.text.len())?;
        let reversed: String = text.text.chars().rev().collect();
        drop(held);
        return TemplateValue::text(reversed, call.meter);
    }
    let list = call.value.elements(call.meter)?;
    let mut out = ItemsBuilder::new(call.meter)?;
    for item in list.items.iter().rev() {
        out.push(item.clone())?;
    }
    out.into_list()
}

fn join(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["d", "attribute"])?;
    let attribute = call.arguments.get(1, "attribute");
    let list = call.value.elements(call.meter)?;
    let mut out = TextBuilder::new(call.meter)?;
    for (i, item) in list.items.iter().enumerate() {
        call.meter.step(1)?;
        if let Some(between) = call.arguments.get(0, "d").filter(|_| i > 0) {
            show(between, call.meter, &mut out)?;
        }
        match attribute {
            Some(path) => show(&access::path(item, path, call.meter)?, call.meter, &mut out)?,
            None => show(item, call.meter, &mut out)?,
        }
    }
    out.into_value()
}

/// Remains of a call whose first argument is a name.
fn behind_name(arguments: &CallValues, skipped: usize) -> CallValues {
    let named = arguments.named.iter();
    CallValues {
        positional: arguments.positional.get(skipped..).unwrap_or_default().to_vec(),
        named: named
            .map(|of| NamedValue { name: of.name.clone(), value: of.value.clone() })
            .collect(),
    }
}

fn map(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    // As in Jinja2, nothing is an empty list to filters that go through one.
    if !call.value.is_true() {
        return TemplateValue::list(Vec::new(), call.meter);
    }
    let list = call.value.elements(call.meter)?;
    let mut out = ItemsBuilder::new(call.meter)?;
    if let Some(path) = call.arguments.named("attribute") {
        for item in &list.items {
            let found = access::path(item, path, call.meter)?;
            let default = call.arguments.named("default").filter(|_| found.is_undefined());
            out.push(default.cloned().unwrap_or(found))?;
        }
        return out.into_list();
    }
    let name = call.arguments.need_text("map", 0, "filter")?;
    call.meter.elements(call.arguments.positional.len())?;
    let arguments = behind_name(call.arguments, 1);
    for value in &list.items {
        let inner = FilterCall { name, value, arguments: &arguments, meter: call.meter };
        out.push(apply_filter(&inner)?)?;
    }
    out.into_list()
}

fn select(call: &FilterCall<'_, '_, '_>, by_path: bool, kept: bool) -> RenderResult<TemplateValue> {
    let skipped = usize::from(by_path);
    let path = match by_path {
        true => Some(call.arguments.need(call.name, 0, "attribute")?),
        false => None,
    };
    let name = call.arguments.text(call.name, skipped, "test")?;
    call.meter.elements(call.arguments.positional.len())?;
    let arguments = behind_name(call.arguments, skipped + 1);
    if !call.value.is_true() {
        return TemplateValue::list(Vec::new(), call.meter);
    }
    let list = call.value.elements(call.meter)?;
    let mut out = ItemsBuilder::new(call.meter)?;
    for item in &list.items {
        call.meter.step(1)?;
        let value = match path {
            Some(path) => access::path(item, path, call.meter)?,
            None => item.clone(),
        };
        let holds = match name {
            Some(name) => checks::holds(name, &value, &arguments, call.meter)?,
            None => value.is_true(),
        };
        if holds == kept {
            out.push(item.clone())?;
        }
    }
    out.into_list()
}

/// Key that a value is sorted by: itself or an attribute, without its case.
fn sort_key(
    call: &FilterCall<'_, '_, '_>,
    value: &TemplateValue,
    path: Option<&TemplateValue>,
    case_sensitive: bool,
) -> RenderResult<TemplateValue> {
    let key = match path {
        Some(path) => access::path(value, path, call.meter)?,
        None => value.clone(),
    };
    match &key {
        TemplateValue::Text(text) if !case_sensitive => {
            TemplateValue::text(text.text.to_lowercase(), call.meter)
        }
        _ => Ok(key),
    }
}

fn sort(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["reverse", "case_sensitive", "attribute"])?;
    let list = call.value.elements(call.meter)?;
    let _held = call.meter.hold(list.items.len() * size_of::<KeyedValue>())?;
    let sensitive = call.arguments.truth(1, "case_sensitive");
    let several = match call.arguments.get(2, "attribute") {
        Some(TemplateValue::Text(text)) if text.text.contains(',') => {
            let paths = text.text.split(',').map(|path| TemplateValue::text(path, call.meter));
            Some(paths.collect::<RenderResult<Vec<_>>>()?)
        }
        _ => None,
    };
    let mut keyed = Vec::new();
    for value in &list.items {
        call.meter.step(1)?;
        let key = match &several {
            Some(paths) => {
                let keys = paths.iter().map(|path| sort_key(call, value, Some(path), sensitive));
                TemplateValue::tuple(keys.collect::<RenderResult<_>>()?, call.meter)?
            }
            None => sort_key(call, value, call.arguments.get(2, "attribute"), sensitive)?,
        };
        keyed.push(KeyedValue { key, value: value.clone() });
    }
    let sorted = sort_by_keys(keyed, call.arguments.truth(0, "reverse"), call.meter)?;
    TemplateValue::list(sorted, call.meter)
}

fn dictsort(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["case_sensitive", "by", "reverse"])?;
    let TemplateValue::Map(map) = call.value else {
        return Err(wrong("dictsort", "the value", "a mapping", call.value));
    };
    let by = call.arguments.text("dictsort", 1, "by")?.unwrap_or("key");
    if !matches!(by, "key" | "value") {
        return Err(RenderFault::new("dictsort: by must be key or value"));
    }
    let _held = call.meter.hold(map.len() * size_of::<KeyedValue>())?;
    let sensitive = call.arguments.truth(0, "case_sensitive");
    let mut keyed = Vec::new();
    for entry in map.entries() {
        call.meter.step(1)?;
        let of = if by == "key" { &entry.key } else { &entry.value };
        let key = sort_key(call, of, None, sensitive)?;
        let pair = vec![entry.key.clone(), entry.value.clone()];
        keyed.push(KeyedValue { key, value: TemplateValue::tuple(pair, call.meter)? });
    }
    let sorted = sort_by_keys(keyed, call.arguments.truth(2, "reverse"), call.meter)?;
    TemplateValue::list(sorted, call.meter)
}

fn extreme(call: &FilterCall<'_, '_, '_>, largest: bool) -> RenderResult<TemplateValue> {
    call.expect(&["case_sensitive", "attribute"])?;
    let sensitive = call.arguments.truth(0, "case_sensitive");
    let path = call.arguments.get(1, "attribute");
    let mut best: Option<KeyedValue> = None;
    for value in &call.value.elements(call.meter)?.items {
        let key = sort_key(call, value, path, sensitive)?;
        let wanted = if largest { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less };
        let better = match &best {
            Some(best) => order(&key, &best.key, "<", call.meter)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some(KeyedValue { key, value: value.clone() });
        }
    }
    Ok(best.map_or(TemplateValue::Undefined(None), |best| best.value))
}

fn sum(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["attribute", "start"])?;
    let path =
        call.arguments.get(0, "attribute").filter(|path| !matches!(path, TemplateValue::None));
    let mut total = call.arguments.get(1, "start").cloned().unwrap_or(TemplateValue::Int(0));
    for value in &call.value.elements(call.meter)?.items {
        call.meter.step(1)?;
        let value = match path {
            Some(path) => access::path(value, path, call.meter)?,
            None => value.clone(),
        };
        total = arithmetic::operate(ArithmeticSign::Add, &total, &value, call.meter)?;
    }
    Ok(total)
}

fn unique(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["case_sensitive", "attribute"])?;
    let sensitive = call.arguments.truth(0, "case_sensitive");
    let path = call.arguments.get(1, "attribute");
    let mut entries = Vec::new();
    let list = call.value.elements(call.meter)?;
    let _held = call.meter.hold(list.items.len() * size_of::<MapEntry>())?;
    for (at, value) in list.items.iter().enumerate() {
        call.meter.step(1)?;
        let key = sort_key(call, value, path, sensitive)?;
        entries.push(MapEntry { key, value: TemplateValue::count(at) });
    }
    // The first of those that are equal stays, so the map is made from behind.
    entries.reverse();
    let firsts = MapValue::new(entries, call.meter)?;
    let mut out = ItemsBuilder::new(call.meter)?;
    for (at, value) in list.items.iter().enumerate() {
        let key = sort_key(call, value, path, sensitive)?;
        let first = firsts.get(&key, call.meter)?.and_then(TemplateValue::as_int);
        if first == i128::try_from(at).ok() {
            out.push(value.clone())?;
        }
    }
    out.into_list()
}

fn groupby(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["attribute", "default", "case_sensitive"])?;
    let path = call.arguments.need("groupby", 0, "attribute")?;
    let sensitive = call.arguments.truth(2, "case_sensitive");
    let list = call.value.elements(call.meter)?;
    let _held = call.meter.hold(list.items.len() * size_of::<KeyedValue>())?;
    let mut keyed = Vec::new();
    for value in &list.items {
        call.meter.step(1)?;
        let mut key = sort_key(call, value, Some(path), sensitive)?;
        if let Some(default) = call.arguments.get(1, "default").filter(|_| key.is_undefined()) {
            key = default.clone();
        }
        let pair = TemplateValue::tuple(vec![key.clone(), value.clone()], call.meter)?;
        keyed.push(KeyedValue { key, value: pair });
    }
    let sorted = sort_by_keys(keyed, false, call.meter)?;
    let mut groups = ItemsBuilder::new(call.meter)?;
    let mut rest = sorted.as_slice();
    while let Some(first) = rest.first() {
        let key = arithmetic::item(first, &TemplateValue::Int(0), call.meter)?;
        let mut members = ItemsBuilder::new(call.meter)?;
        while let Some((pair, after)) = rest.split_first() {
            let other = arithmetic::item(pair, &TemplateValue::Int(0), call.meter)?;
            if !equal(&key, &other, call.meter)? {
                break;
            }
            members.push(arithmetic::item(pair, &TemplateValue::Int(1), call.meter)?)?;
            rest = after;
        }
        // Without progress, as with NaN, the element is a group of its own.
        if members.len() == 0 {
            members.push(arithmetic::item(first, &TemplateValue::Int(1), call.meter)?)?;
            rest = rest.get(1..).unwrap_or_default();
        }
        let group = vec![key, members.into_list()?];
        groups.push(TemplateValue::tuple(group, call.meter)?)?;
    }
    groups.into_list()
}

fn batch(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["linecount", "fill_with"])?;
    let count = call.arguments.size("batch", 0, "linecount")?.unwrap_or(0);
    if count == 0 {
        return Err(RenderFault::new("batch: linecount must be at least 1"));
    }
    let list = call.value.elements(call.meter)?;
    let mut out = ItemsBuilder::new(call.meter)?;
    for chunk in list.items.chunks(count) {
        let mut row = ItemsBuilder::new(call.meter)?;
        row.extend(chunk)?;
        if let Some(fill) = fill_with(call) {
            while row.len() < count {
                row.push(fill.clone())?;
            }
        }
        out.push(row.into_list()?)?;
    }
    out.into_list()
}

fn fill_with<'c>(call: &FilterCall<'c, '_, '_>) -> Option<&'c TemplateValue> {
    call.arguments.get(1, "fill_with").filter(|value| !matches!(value, TemplateValue::None))
}

fn slice(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    call.expect(&["slices", "fill_with"])?;
    let slices = call.arguments.size("slice", 0, "slices")?.unwrap_or(0);
    if slices == 0 {
        return Err(RenderFault::new("slice: slices must be at least 1"));
    }
    let list = call.value.elements(call.meter)?;
    let each = list.items.len() / slices;
    let longer = list.items.len() % slices;
    let mut out = ItemsBuilder::new(call.meter)?;
    let mut from = 0;
    for i in 0..slices {
        let to = from + each + usize::from(i < longer);
        let mut part = ItemsBuilder::new(call.meter)?;
        part.extend(list.items.get(from..to).unwrap_or_default())?;
        if let Some(fill) = fill_with(call).filter(|_| i >= longer) {
            part.push(fill.clone())?;
        }
        out.push(part.into_list()?)?;
        from = to;
    }
    out.into_list()
}

fn chain(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    let mut out = ItemsBuilder::new(call.meter)?;
    out.extend(&call.value.elements(call.meter)?.items)?;
    for other in &call.arguments.positional {
        out.extend(&other.elements(call.meter)?.items)?;
    }
    out.into_list()
}

fn zip(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    let mut lists = vec![call.value.elements(call.meter)?];
    for other in &call.arguments.positional {
        lists.push(other.elements(call.meter)?);
    }
    let shortest = lists.iter().map(|list| list.items.len()).min().unwrap_or(0);
    let mut out = ItemsBuilder::new(call.meter)?;
    for at in 0..shortest {
        call.meter.elements(lists.len())?;
        let row = lists.iter().filter_map(|list| list.items.get(at).cloned()).collect();
        out.push(TemplateValue::tuple(row, call.meter)?)?;
    }
    out.into_list()
}
