//! Filters of texts.

use super::super::builder::TextBuilder;
use super::super::format::percent;
use super::super::meter::{RenderFault, RenderResult};
use super::super::methods;
use super::super::show::shown;
use super::super::value::TemplateValue;
use super::FilterCall;

pub(super) const NAMES: &[&str] = &[
    "capitalize",
    "center",
    "e",
    "escape",
    "forceescape",
    "format",
    "indent",
    "lines",
    "lower",
    "replace",
    "split",
    "striptags",
    "title",
    "trim",
    "truncate",
    "upper",
    "urlencode",
    "wordcount",
];

pub(super) fn apply(call: &FilterCall<'_, '_, '_>) -> Option<RenderResult<TemplateValue>> {
    NAMES.contains(&call.name).then(|| apply_known(call))
}

fn apply_known(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    let whole = shown(call.value, call.meter)?;
    let text = whole.as_str().unwrap_or_default();
    match call.name {
        "format" | "replace" | "split" | "trim" => call.meter.bytes(text.len())?,
        _ => call.meter.characters(text.len())?,
    }
    match call.name {
        "capitalize" | "lower" | "upper" => {
            methods::of_text(text, call.name, call.arguments, call.meter)
        }
        "center" => centre(call, text),
        "e" | "escape" | "forceescape" => escape(call, text),
        "format" => {
            let values = TemplateValue::tuple(call.arguments.positional.clone(), call.meter)?;
            if call.arguments.named.is_empty() {
                return percent(text, &values, call.meter);
            }
            let named = methods::map_of_named(call.arguments, call.meter)?;
            percent(text, &named, call.meter)
        }
        "indent" => indent(call, text),
        "lines" => methods::of_text(text, "splitlines", call.arguments, call.meter),
        "replace" => replace(call, text),
        "split" => methods::of_text(text, "split", call.arguments, call.meter),
        "striptags" => strip_tags(call, text),
        "title" => title(call, text),
        "trim" => methods::of_text(text, "strip", call.arguments, call.meter),
        "truncate" => truncate(call, text),
        "urlencode" => url_encode(call, text),
        _ => {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            Ok(TemplateValue::count(words.filter(|word| !word.is_empty()).count()))
        }
    }
}

fn centre(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    call.expect(&["width"])?;
    let width = call.arguments.size("center", 0, "width")?.unwrap_or(80);
    methods::padded(text, width, " ", methods::TextAlignment::Centre, call.meter)
}

fn escape(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    let mut out = TextBuilder::new(call.meter)?;
    let mut from = 0;
    for (at, mark) in text.match_indices(['&', '<', '>', '"', '\'']) {
        out.push(text.get(from..at).unwrap_or_default())?;
        out.push(match mark {
            "&" => "&amp;",
            "<" => "&lt;",
            ">" => "&gt;",
            "\"" => "&#34;",
            _ => "&#39;",
        })?;
        from = at + 1;
    }
    out.push(text.get(from..).unwrap_or_default())?;
    out.into_value()
}

fn indent(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    call.expect(&["width", "first", "blank"])?;
    let spaces;
    let indent = match call.arguments.get(0, "width") {
        Some(TemplateValue::Text(text)) => text.text.as_str(),
        _ => {
            let width = call.arguments.size("indent", 0, "width")?.unwrap_or(4);
            let mut out = TextBuilder::new(call.meter)?;
            out.push_times(" ", width)?;
            spaces = out.into_value()?;
            spaces.as_str().unwrap_or_default()
        }
    };
    let blank = call.arguments.truth(2, "blank");
    let mut out = TextBuilder::new(call.meter)?;
    if call.arguments.truth(1, "first") {
        out.push(indent)?;
    }
    // As in Jinja2, an end of line at the end begins one more line.
    let mut lines = methods::lines(text).peekable();
    let mut first = true;
    let ends_line = methods::lines(text).last().is_some_and(|line| line.ends) || text.is_empty();
    while let Some(line) = lines.next() {
        if !std::mem::take(&mut first) {
            out.push("\n")?;
            if blank || !line.text.is_empty() {
                out.push(indent)?;
            }
        }
        out.push(line.text)?;
        if lines.peek().is_none() && ends_line {
            out.push("\n")?;
            if blank {
                out.push(indent)?;
            }
        }
    }
    out.into_value()
}

fn replace(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    call.expect(&["old", "new", "count"])?;
    let old = shown(call.arguments.need("replace", 0, "old")?, call.meter)?;
    let new = shown(call.arguments.need("replace", 1, "new")?, call.meter)?;
    let count = call.arguments.size("replace", 2, "count")?;
    let old = old.as_str().unwrap_or_default();
    let new = new.as_str().unwrap_or_default();
    methods::replaced(text, old, new, count.unwrap_or(usize::MAX), call.meter)
}

fn strip_tags(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    let mut out = TextBuilder::new(call.meter)?;
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let Some(end) = rest.get(at..).and_then(|tag| tag.find('>')) else { break };
        out.push(rest.get(..at).unwrap_or_default())?;
        rest = rest.get(at + end + 1..).unwrap_or_default();
    }
    out.push(rest)?;
    let mut joined = TextBuilder::new(call.meter)?;
    for (i, word) in out.as_str().split_whitespace().enumerate() {
        joined.push(if i > 0 { " " } else { "" })?;
        joined.push(word)?;
    }
    joined.into_value()
}

/// The first letter of each word in upper case. Words begin behind spaces, `-` and brackets.
fn title(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    let mut out = TextBuilder::new(call.meter)?;
    let mut begins = true;
    for character in text.chars() {
        if begins {
            character.to_uppercase().try_for_each(|c| out.push_char(c))?;
        } else {
            character.to_lowercase().try_for_each(|c| out.push_char(c))?;
        }
        begins = character.is_whitespace() || "-({[<".contains(character);
    }
    out.into_value()
}

fn truncate(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    call.expect(&["length", "killwords", "end", "leeway"])?;
    let length = call.arguments.size("truncate", 0, "length")?.unwrap_or(255);
    let end = call.arguments.text("truncate", 2, "end")?.unwrap_or("...");
    let leeway = call.arguments.size("truncate", 3, "leeway")?.unwrap_or(5);
    let end_length = end.chars().count();
    if length < end_length {
        let message = format!("truncate: length {length}, expected at least {end_length}");
        return Err(RenderFault::new(message));
    }
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(call.value.clone());
    }
    let cut = text.char_indices().nth(length - end_length).map_or(text.len(), |(at, _)| at);
    let mut kept = text.get(..cut).unwrap_or_default();
    if !call.arguments.truth(1, "killwords") {
        kept = kept.rsplit_once(' ').map_or(kept, |(kept, _)| kept);
    }
    let mut out = TextBuilder::new(call.meter)?;
    out.push_both(kept, end)?;
    out.into_value()
}

fn url_encode(call: &FilterCall<'_, '_, '_>, text: &str) -> RenderResult<TemplateValue> {
    let mut out = TextBuilder::new(call.meter)?;
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push_char(char::from(byte))?;
            }
            _ => out.push(&format!("%{byte:02X}"))?,
        }
    }
    out.into_value()
}
