//! Methods of texts.

use super::super::arithmetic::{StripSides, strip};
use super::super::builder::{ItemsBuilder, TextBuilder};
use super::super::calls::{CallValues, wrong};
use super::super::format::braces;
use super::super::lexer::is_space;
use super::super::meter::{RenderFault, RenderMeter, RenderResult};
use super::super::value::TemplateValue;

pub(super) const NAMES: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "islower",
    "isnumeric",
    "isspace",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];

/// Calls a method of a text, which is one of [`NAMES`].
pub(in super::super) fn of_text(
    text: &str,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    match by_characters(name) {
        true => meter.characters(text.len())?,
        false => meter.bytes(text.len())?,
    }
    match name {
        "startswith" | "endswith" => affixed(text, name, arguments, meter).map(TemplateValue::Bool),
        "strip" | "lstrip" | "rstrip" => {
            let of = arguments.text(name, 0, "chars")?;
            meter.bytes(text.len().saturating_mul(of.map_or(1, str::len)))?;
            let sides = StripSides { start: name != "rstrip", end: name != "lstrip" };
            TemplateValue::text(strip(text, of, sides), meter)
        }
        "split" | "rsplit" => split(text, name, arguments, meter),
        "splitlines" => split_lines(text, arguments, meter),
        "partition" | "rpartition" => partition(text, name, arguments, meter),
        "replace" => {
            let old = arguments.need_text(name, 0, "old")?;
            let new = arguments.need_text(name, 1, "new")?;
            let count = arguments.int(name, 2, "count")?.unwrap_or(-1);
            replaced(text, old, new, usize::try_from(count).unwrap_or(usize::MAX), meter)
        }
        "removeprefix" | "removesuffix" => {
            let part = arguments.need_text(name, 0, "affix")?;
            let cut = match name {
                "removeprefix" => text.strip_prefix(part),
                _ => text.strip_suffix(part),
            };
            TemplateValue::text(cut.unwrap_or(text), meter)
        }
        "find" | "rfind" | "index" | "rindex" | "count" => search(text, name, arguments, meter),
        "format" => braces(text, arguments, meter),
        "join" => join(text, arguments, meter),
        "center" | "ljust" | "rjust" => {
            let width = arguments.size(name, 0, "width")?.unwrap_or(0);
            let fill = arguments.text(name, 1, "fillchar")?.unwrap_or(" ");
            let alignment = match name {
                "center" => TextAlignment::Centre,
                "ljust" => TextAlignment::Left,
                _ => TextAlignment::Right,
            };
            padded(text, width, fill, alignment, meter)
        }
        "zfill" => {
            let width = arguments.size(name, 0, "width")?.unwrap_or(0);
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let mut out = TextBuilder::new(meter)?;
            out.push(text.get(..text.len() - digits.len()).unwrap_or_default())?;
            out.push_times("0", width.saturating_sub(text.chars().count()))?;
            out.push(digits)?;
            out.into_value()
        }
        "capitalize" | "casefold" | "lower" | "swapcase" | "title" | "upper" => {
            cased(text, name, meter)
        }
        _ => Ok(TemplateValue::Bool(consists(text, name))),
    }
}

/// Whether a method looks at each character.
fn by_characters(name: &str) -> bool {
    name.starts_with("is")
        || name.ends_with("case")
        || name.ends_with("fold")
        || matches!(name, "capitalize" | "lower" | "splitlines" | "title" | "upper")
}

/// Whether all characters of a text are of a kind.
fn consists(text: &str, name: &str) -> bool {
    let all = |is: fn(char) -> bool| !text.is_empty() && text.chars().all(is);
    let cased = |wrong: fn(char) -> bool| {
        text.chars().any(|c| c.is_lowercase() || c.is_uppercase()) && !text.chars().any(wrong)
    };
    match name {
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => text.is_ascii(),
        "islower" => cased(char::is_uppercase),
        "isupper" => cased(char::is_lowercase),
        "isspace" => all(is_space),
        _ => all(char::is_numeric),
    }
}

fn cased(text: &str, name: &str, meter: &RenderMeter<'_>) -> RenderResult<TemplateValue> {
    match name {
        "lower" | "casefold" => {
            let _held = meter.hold(text.len())?;
            return TemplateValue::text(text.to_lowercase(), meter);
        }
        "upper" => {
            let _held = meter.hold(text.len())?;
            return TemplateValue::text(text.to_uppercase(), meter);
        }
        _ => {}
    }
    let mut out = TextBuilder::new(meter)?;
    let mut begins = true;
    for character in text.chars() {
        let upper = match name {
            "swapcase" => character.is_lowercase(),
            _ => begins,
        };
        if upper {
            character.to_uppercase().try_for_each(|c| out.push_char(c))?;
        } else {
            character.to_lowercase().try_for_each(|c| out.push_char(c))?;
        }
        begins = name == "title" && !character.is_alphabetic();
    }
    out.into_value()
}

/// The part of a text between places that count characters.
fn within<'t>(
    text: &'t str,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TextPart<'t>> {
    let start = arguments.int(name, 1, "start")?;
    let stop = arguments.int(name, 2, "end")?;
    if start.is_none() && stop.is_none() {
        return Ok(TextPart { text, skipped: 0 });
    }
    meter.characters(text.len())?;
    let length = i128::try_from(text.chars().count()).unwrap_or(i128::MAX);
    let fit = |at: i128| {
        let at = if at < 0 { at.saturating_add(length) } else { at };
        usize::try_from(at.clamp(0, length)).unwrap_or(0)
    };
    let start = fit(start.unwrap_or(0));
    let stop = fit(stop.unwrap_or(length));
    let byte = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    let part = text.get(byte(start)..byte(stop.max(start))).unwrap_or_default();
    Ok(TextPart { text: part, skipped: start })
}

struct TextPart<'t> {
    text: &'t str,
    /// Characters in front of it.
    skipped: usize,
}

fn affixed(
    text: &str,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<bool> {
    let text = within(text, name, arguments, meter)?.text;
    let affix = arguments.need(name, 0, "affix")?;
    let affixes = match affix.defined()? {
        TemplateValue::List(list) if list.is_tuple => list.items.as_slice(),
        one => std::slice::from_ref(one),
    };
    for affix in affixes {
        let Some(affix) = affix.as_str() else {
            return Err(wrong(name, "the affix", "a text or a tuple of texts", affix));
        };
        meter.bytes(affix.len())?;
        let found =
            if name == "startswith" { text.starts_with(affix) } else { text.ends_with(affix) };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn search(
    text: &str,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let part = within(text, name, arguments, meter)?;
    let wanted = arguments.need_text(name, 0, "sub")?;
    meter.bytes(wanted.len())?;
    let text = part.text;
    if name == "count" {
        return Ok(TemplateValue::count(match wanted.is_empty() {
            true => text.chars().count() + 1,
            false => text.matches(wanted).count(),
        }));
    }
    let at = if name.starts_with('r') { text.rfind(wanted) } else { text.find(wanted) };
    match at {
        Some(at) => {
            let before = text.get(..at).unwrap_or_default().chars().count();
            Ok(TemplateValue::count(part.skipped + before))
        }
        None if name.ends_with("find") => Ok(TemplateValue::Int(-1)),
        None => Err(RenderFault::new("substring not found")),
    }
}

fn join(
    text: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let list = arguments.need("join", 0, "iterable")?.elements(meter)?;
    let mut out = TextBuilder::new(meter)?;
    for (i, item) in list.items.iter().enumerate() {
        if i > 0 {
            out.push(text)?;
        }
        let Some(item) = item.defined()?.as_str() else {
            return Err(wrong("join", "an element", "a text", item));
        };
        out.push(item)?;
    }
    out.into_value()
}

fn split(
    text: &str,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let most = arguments.int(name, 1, "maxsplit")?.unwrap_or(-1);
    let most = usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(1));
    let separator = arguments.text(name, 0, "sep")?;
    if separator == Some("") {
        return Err(RenderFault::new("empty separator"));
    }
    let mut out = ItemsBuilder::new(meter)?;
    let mut put = |part: &str| out.push(TemplateValue::text(part, meter)?);
    match (separator, name) {
        (Some(separator), "split") => {
            text.splitn(most, separator).try_for_each(&mut put)?;
        }
        (Some(separator), _) => text.rsplitn(most, separator).try_for_each(&mut put)?,
        (None, "split") => {
            meter.characters(text.len())?;
            let mut rest = text.trim_start_matches(is_space);
            let mut count = 1;
            while !rest.is_empty() {
                let end = rest.find(is_space).filter(|_| count < most).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                put(word)?;
                rest = after.trim_start_matches(is_space);
                count += 1;
            }
        }
        (None, _) => {
            meter.characters(text.len())?;
            let mut rest = text.trim_end_matches(is_space);
            let mut count = 1;
            while !rest.is_empty() {
                let begin = rest.rfind(is_space).filter(|_| count < most);
                let space = begin.and_then(|at| rest.get(at..)?.chars().next());
                let at = begin.map_or(0, |at| at + space.map_or(0, char::len_utf8));
                let (before, word) = rest.split_at(at);
                put(word)?;
                rest = before.trim_end_matches(is_space);
                count += 1;
            }
        }
    }
    let mut items = out.into_items();
    if name == "rsplit" {
        items.reverse();
    }
    TemplateValue::list(items, meter)
}

/// A line of a text.
pub(in super::super) struct TextLine<'t> {
    pub(in super::super) text: &'t str,
    /// With its end.
    whole: &'t str,
    /// Whether it has an end.
    pub(in super::super) ends: bool,
}

/// The lines of a text, as Python's `splitlines` finds them.
pub(in super::super) fn lines(text: &str) -> impl Iterator<Item = TextLine<'_>> {
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'
                ..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(is_end);
        let at = end.unwrap_or(rest.len());
        let mark = rest.get(at..).unwrap_or_default();
        let bytes = match mark.starts_with("\r\n") {
            true => 2,
            false => mark.chars().next().map_or(0, char::len_utf8),
        };
        let (whole, after) = rest.split_at(at + bytes);
        let text = rest.get(..at).unwrap_or_default();
        rest = after;
        Some(TextLine { text, whole, ends: end.is_some() })
    })
}

fn split_lines(
    text: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let keep = arguments.truth(0, "keepends");
    let mut out = ItemsBuilder::new(meter)?;
    for line in lines(text) {
        out.push(TemplateValue::text(if keep { line.whole } else { line.text }, meter)?)?;
    }
    out.into_list()
}

fn partition(
    text: &str,
    name: &str,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let separator = arguments.need_text(name, 0, "sep")?;
    if separator.is_empty() {
        return Err(RenderFault::new("empty separator"));
    }
    let first = name == "partition";
    let found = if first { text.split_once(separator) } else { text.rsplit_once(separator) };
    let (before, between, after) = match found {
        Some((before, after)) => (before, separator, after),
        None if first => (text, "", ""),
        None => ("", "", text),
    };
    let parts = [before, between, after].map(|part| TemplateValue::text(part, meter));
    TemplateValue::tuple(parts.into_iter().collect::<RenderResult<_>>()?, meter)
}

/// A text with another one in the place of a third.
pub(in super::super) fn replaced(
    text: &str,
    old: &str,
    new: &str,
    count: usize,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let mut out = TextBuilder::new(meter)?;
    let mut from = 0;
    for (at, _) in text.match_indices(old).take(count) {
        out.push(text.get(from..at).unwrap_or_default())?;
        out.push(new)?;
        from = at + old.len();
    }
    out.push(text.get(from..).unwrap_or_default())?;
    out.into_value()
}

/// Where a text stands in its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum TextAlignment {
    Left,
    Centre,
    Right,
}

/// A text with filling up to a width in characters.
pub(in super::super) fn padded(
    text: &str,
    width: usize,
    fill: &str,
    alignment: TextAlignment,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    if fill.chars().count() != 1 {
        return Err(RenderFault::new("the fill character must be exactly one character long"));
    }
    let missing = width.saturating_sub(text.chars().count());
    let before = match alignment {
        TextAlignment::Left => 0,
        TextAlignment::Right => missing,
        // As Python rounds it.
        TextAlignment::Centre => missing / 2 + (missing & width & 1),
    };
    let mut out = TextBuilder::new(meter)?;
    out.push_times(fill, before)?;
    out.push(text)?;
    out.push_times(fill, missing - before)?;
    out.into_value()
}
