//! Texts with places for values: `%` and `str.format`.

use super::builder::TextBuilder;
use super::calls::CallValues;
use super::compare::as_float;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::show::{float, represent, show};
use super::value::{ListValue, TemplateValue, place};

/// The most digits behind the point of a number.
const MAX_PRECISION: usize = 1000;

/// Fields of one place.
#[derive(Debug, Default)]
struct PlaceStyle {
    left: bool,
    centre: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    fill: Option<char>,
    width: usize,
    precision: Option<usize>,
}

/// A text whose places are marked by `%`, and the values for them.
///
/// # Errors
/// Too few and too many values, values of another type, and unknown marks.
pub(super) fn percent(
    text: &str,
    values: &TemplateValue,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let mut out = TextBuilder::new(meter)?;
    let items = match values {
        TemplateValue::List(list) if list.is_tuple => list.items.as_slice(),
        other => std::slice::from_ref(other),
    };
    let mut next = items.iter();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        meter.step(1)?;
        out.push(rest.get(..at).unwrap_or_default())?;
        rest = rest.get(at + 1..).unwrap_or_default();
        let mut named = None;
        if let Some(inner) = rest.strip_prefix('(') {
            let end = inner.find(')').ok_or_else(|| RenderFault::new("incomplete format key"))?;
            let TemplateValue::Map(map) = values else {
                return Err(RenderFault::new("format requires a mapping"));
            };
            let key = inner.get(..end).unwrap_or_default();
            let missing = || RenderFault::new(format!("the format key '{key}' is missing"));
            named = Some(map.get_text(key).ok_or_else(missing)?);
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        let mut take = || {
            let missing = || RenderFault::new("not enough arguments for format string");
            next.next().ok_or_else(missing)
        };
        let (style, after) = percent_style(rest, &mut take)?;
        let mut characters = after.chars();
        let Some(kind) = characters.next() else {
            return Err(RenderFault::new("incomplete format"));
        };
        rest = characters.as_str();
        if kind == '%' {
            out.push("%")?;
            continue;
        }
        let value = match named {
            Some(value) => value,
            None => take()?,
        };
        put(value, kind, &style, meter, &mut out)?;
    }
    out.push(rest)?;
    let is_map = matches!(values, TemplateValue::Map(_));
    if next.next().is_some() && !is_map && !items.is_empty() {
        return Err(RenderFault::new("not all arguments converted during string formatting"));
    }
    out.into_value()
}

/// Flags, width and precision.
fn percent_style<'t, 'v>(
    text: &'t str,
    take: &mut impl FnMut() -> RenderResult<&'v TemplateValue>,
) -> RenderResult<(PlaceStyle, &'t str)> {
    let mut style = PlaceStyle::default();
    let mut rest = text;
    while let Some(flag) = rest.chars().next().filter(|flag| "-+ 0#".contains(*flag)) {
        match flag {
            '-' => style.left = true,
            '+' => style.plus = true,
            ' ' => style.space = true,
            '0' => style.zero = true,
            _ => style.alternate = true,
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    let mut number = |rest: &mut &'t str| -> RenderResult<Option<usize>> {
        if let Some(after) = rest.strip_prefix('*') {
            *rest = after;
            let given = take()?.as_int();
            let given = given.ok_or_else(|| RenderFault::new("* wants int"))?;
            return Ok(Some(usize::try_from(given.unsigned_abs()).unwrap_or(usize::MAX)));
        }
        digits(rest)
    };
    style.width = number(&mut rest)?.unwrap_or(0);
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        style.precision = Some(number(&mut rest)?.unwrap_or(0));
    }
    Ok((style, rest.trim_start_matches(['h', 'l', 'L'])))
}

/// A number at the beginning of a text, which is passed.
fn digits(rest: &mut &str) -> RenderResult<Option<usize>> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    *rest = after;
    if number.is_empty() {
        return Ok(None);
    }
    let too_large = |_| RenderFault::new("a width or precision of the format is too large");
    number.parse().map(Some).map_err(too_large)
}

/// Writes a value as its place says.
fn put(
    value: &TemplateValue,
    kind: char,
    style: &PlaceStyle,
    meter: &RenderMeter<'_>,
    out: &mut TextBuilder<'_, '_>,
) -> RenderResult<()> {
    let type_of = value.type_name();
    let refused = |wanted: &str| {
        RenderFault::new(format!("%{kind} format: {wanted} is required, not '{type_of}'"))
    };
    match kind {
        's' | 'r' | 'a' => {
            let mut whole = TextBuilder::new(meter)?;
            match kind {
                's' => show(value, meter, &mut whole)?,
                _ => represent(value, meter, &mut whole)?,
            }
            let text = whole.as_str();
            let cut = style.precision.and_then(|most| text.char_indices().nth(most));
            let text = cut.map_or(text, |(end, _)| text.get(..end).unwrap_or_default());
            pad("", text, &PlaceStyle { zero: false, ..copy(style) }, !style.left, out)
        }
        'c' => {
            let code = value.as_int().and_then(|code| char::from_u32(u32::try_from(code).ok()?));
            let text = match (value.as_str(), code) {
                (Some(text), _) if text.chars().count() == 1 => text.to_owned(),
                (_, Some(character)) => character.to_string(),
                _ => return Err(refused("a character")),
            };
            pad("", &text, style, !style.left, out)
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'b' => {
            let number = match value {
                TemplateValue::Float(number) if "diu".contains(kind) => {
                    super::value::whole(number.trunc())
                }
                other => other.as_int(),
            };
            let number = number.ok_or_else(|| refused("a number"))?;
            let magnitude = number.unsigned_abs();
            let (prefix, digits) = match kind {
                'x' => ("0x", format!("{magnitude:x}")),
                'X' => ("0X", format!("{magnitude:X}")),
                'o' => ("0o", format!("{magnitude:o}")),
                'b' => ("0b", format!("{magnitude:b}")),
                _ => ("", magnitude.to_string()),
            };
            let prefix = if style.alternate { prefix } else { "" };
            let sign = sign(number < 0, style);
            pad(&format!("{sign}{prefix}"), &digits, style, !style.left, out)
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%' => {
            let number = as_float(value).ok_or_else(|| refused("a number"))?;
            let text = decimal(number, kind, style)?;
            pad(sign(number.is_sign_negative(), style), &text, style, !style.left, out)
        }
        other => Err(RenderFault::new(format!("unsupported format character '{other}'"))),
    }
}

fn copy(style: &PlaceStyle) -> PlaceStyle {
    PlaceStyle { ..*style }
}

fn sign(negative: bool, style: &PlaceStyle) -> &'static str {
    match (negative, style.plus, style.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

/// The magnitude of a float.
fn decimal(number: f64, kind: char, style: &PlaceStyle) -> RenderResult<String> {
    let precision = style.precision.unwrap_or(6);
    if precision > MAX_PRECISION {
        let message = format!("format: precision {precision}, expected at most {MAX_PRECISION}");
        return Err(RenderFault::new(message));
    }
    let magnitude = number.abs();
    if !magnitude.is_finite() {
        return Ok(float(magnitude));
    }
    let text = match kind {
        'f' | 'F' => format!("{magnitude:.precision$}"),
        '%' => format!("{:.precision$}%", magnitude * 100.0),
        'e' | 'E' => scientific(&format!("{magnitude:.precision$e}")),
        _ => {
            let precision = precision.max(1);
            let rounded = format!("{magnitude:.*e}", precision - 1);
            let exponent = rounded.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok());
            let exponent = exponent.unwrap_or(0);
            let most = i32::try_from(precision).unwrap_or(i32::MAX);
            if (-4..most).contains(&exponent) {
                let digits = usize::try_from(most - 1 - exponent).unwrap_or(0);
                trimmed(&format!("{magnitude:.digits$}"))
            } else {
                let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
                scientific(&format!("{}e{exponent}", trimmed(digits)))
            }
        }
    };
    Ok(if kind.is_ascii_uppercase() { text.to_uppercase() } else { text })
}

/// A number without zeros at the end of its fraction.
fn trimmed(digits: &str) -> String {
    if !digits.contains('.') {
        return digits.to_owned();
    }
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An exponent with its sign and two digits.
fn scientific(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let value: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", value.abs())
}

/// Writes a text in its width.
fn pad(
    sign: &str,
    text: &str,
    style: &PlaceStyle,
    right: bool,
    out: &mut TextBuilder<'_, '_>,
) -> RenderResult<()> {
    let length = sign.chars().count() + text.chars().count();
    let missing = style.width.saturating_sub(length);
    let fill = style.fill.unwrap_or(' ').to_string();
    if style.zero && !style.left {
        out.push(sign)?;
        out.push_times("0", missing)?;
        return out.push(text);
    }
    let before = if style.centre { missing / 2 } else { missing };
    if right || style.centre {
        out.push_times(&fill, before)?;
    }
    out.push(sign)?;
    out.push(text)?;
    let after = if style.centre { missing - before } else { missing };
    if !right || style.centre { out.push_times(&fill, after) } else { Ok(()) }
}

/// `text.format(…)`: places are braces, with names or numbers and styles.
///
/// # Errors
/// Values that are missing, and styles that are not known.
pub(super) fn braces(
    text: &str,
    values: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let mut out = TextBuilder::new(meter)?;
    let mut automatic = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        meter.elements(1 + values.named.len() / 8)?;
        out.push(rest.get(..at).unwrap_or_default())?;
        let (brace, after) = rest.get(at..).unwrap_or_default().split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            out.push(brace)?;
            rest = after;
            continue;
        }
        let Some(end) = after.find('}').filter(|_| brace == "{") else {
            return Err(RenderFault::new("a single brace in a format string"));
        };
        let field = after.get(..end).unwrap_or_default();
        rest = after.get(end + 1..).unwrap_or_default();
        let (field, style) = field.split_once(':').unwrap_or((field, ""));
        let (path, conversion) = field.split_once('!').unwrap_or((field, ""));
        let value = field_value(path, &mut automatic, values, meter)?;
        let mut style = brace_style(style)?;
        if conversion == "r" {
            style.kind = 'r';
        }
        let number = as_float(&value).is_some() && !matches!(value, TemplateValue::Bool(_));
        let kind = match (style.kind, &value) {
            ('\0', TemplateValue::Int(_)) => 'd',
            ('\0', TemplateValue::Float(_)) if style.style.precision.is_some() => 'g',
            ('\0', _) => 's',
            (kind, _) => kind,
        };
        style.style.left = style.style.left || !number && !style.right;
        put(&value, kind, &style.style, meter, &mut out)?;
    }
    out.push(rest)?;
    out.into_value()
}

/// The value that a field such as `0`, `name.key` or `list[0]` names.
fn field_value(
    path: &str,
    automatic: &mut usize,
    values: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (first, mut rest) = path.split_at(end);
    let missing = || RenderFault::new(format!("the format field '{first}' is missing"));
    let mut value = if first.is_empty() || first.bytes().all(|byte| byte.is_ascii_digit()) {
        let index = if first.is_empty() { *automatic } else { first.parse().unwrap_or(usize::MAX) };
        *automatic += usize::from(first.is_empty());
        values.positional.get(index).cloned().ok_or_else(missing)?
    } else {
        values.named(first).cloned().ok_or_else(missing)?
    };
    while !rest.is_empty() {
        let bracket = rest.starts_with('[');
        let inner = rest.get(1..).unwrap_or_default();
        let end = inner.find(if bracket { [']', ']'] } else { ['.', '['] });
        let end = end.unwrap_or(inner.len());
        let key = inner.get(..end).unwrap_or_default();
        value = match &value {
            TemplateValue::Map(map) => map.get_text(key).cloned(),
            TemplateValue::List(list) => element(list, key),
            TemplateValue::Namespace(namespace) => namespace.get(key, meter)?,
            _ => None,
        }
        .ok_or_else(|| RenderFault::new(format!("the format field has no '{key}'")))?;
        rest = inner.get(end + usize::from(bracket)..).unwrap_or_default();
    }
    Ok(value)
}

fn element(list: &ListValue, key: &str) -> Option<TemplateValue> {
    list.items.get(place(key.parse().ok()?, list.items.len())?).cloned()
}

/// The style behind a colon.
struct BraceStyle {
    style: PlaceStyle,
    right: bool,
    kind: char,
}

fn brace_style(text: &str) -> RenderResult<BraceStyle> {
    let mut style = PlaceStyle::default();
    let mut rest = text;
    let mut align = None;
    let second = rest.chars().nth(1).filter(|c| "<>^=".contains(*c));
    if let (Some(fill), Some(found)) = (rest.chars().next(), second) {
        style.fill = Some(fill);
        align = Some(found);
        rest = rest.get(fill.len_utf8() + 1..).unwrap_or_default();
    } else if let Some(found) = rest.chars().next().filter(|c| "<>^=".contains(*c)) {
        align = Some(found);
        rest = rest.get(1..).unwrap_or_default();
    }
    while let Some(flag) = rest.chars().next().filter(|flag| "+- #0".contains(*flag)) {
        match flag {
            '+' => style.plus = true,
            ' ' => style.space = true,
            '#' => style.alternate = true,
            '0' => style.zero = align.is_none(),
            _ => {}
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    style.width = digits(&mut rest)?.unwrap_or(0);
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        style.precision = digits(&mut rest)?;
    }
    style.left = align == Some('<');
    style.centre = align == Some('^');
    let mut kinds = rest.chars();
    let kind = kinds.next().unwrap_or('\0');
    if kinds.next().is_some() {
        return Err(RenderFault::new(format!("invalid format specifier '{text}'")));
    }
    Ok(BraceStyle { style, right: matches!(align, Some('>' | '=')), kind })
}
