//! `tojson` as Python's `json.dumps` writes it.

use super::builder::TextBuilder;
use super::calls::CallValues;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::show::float;
use super::value::{MapEntry, TemplateValue};

/// The most spaces of one level.
const MAX_INDENT: usize = 64;

struct JsonStyle {
    indent: Option<String>,
    between: String,
    after_key: String,
    sorted: bool,
    ascii: bool,
}

/// Writes a value with the arguments `ensure_ascii`, `indent`, `separators` and `sort_keys`.
///
/// # Errors
/// Values that JSON does not know, and arguments of another form.
pub(super) fn tojson(
    value: &TemplateValue,
    arguments: &CallValues,
    meter: &RenderMeter<'_>,
) -> RenderResult<TemplateValue> {
    arguments.expect("tojson", &["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let truth = |at, name| arguments.get(at, name).is_some_and(TemplateValue::is_true);
    let indent = match arguments.get(1, "indent") {
        None | Some(TemplateValue::None | TemplateValue::Undefined(_)) => None,
        Some(TemplateValue::Text(text)) => Some(text.text.clone()),
        Some(other) => {
            let spaces = other.as_int().ok_or_else(|| {
                RenderFault::new(format!("tojson: indent '{}'", other.type_name()))
            })?;
            let spaces = usize::try_from(spaces.max(0)).unwrap_or(usize::MAX);
            Some(" ".repeat(spaces.min(MAX_INDENT + 1)))
        }
    };
    if indent.as_ref().is_some_and(|indent| indent.len() > MAX_INDENT) {
        let message = format!("tojson: the indent is larger than {MAX_INDENT}");
        return Err(RenderFault::new(message));
    }
    let (between, after_key) = match arguments.get(2, "separators") {
        None | Some(TemplateValue::None | TemplateValue::Undefined(_)) if indent.is_some() => {
            (",".to_owned(), ": ".to_owned())
        }
        None | Some(TemplateValue::None | TemplateValue::Undefined(_)) => {
            (", ".to_owned(), ": ".to_owned())
        }
        Some(TemplateValue::List(list)) => match list.items.as_slice() {
            [TemplateValue::Text(between), TemplateValue::Text(after_key)] => {
                (between.text.clone(), after_key.text.clone())
            }
            _ => return Err(RenderFault::new("tojson: expected two separators")),
        },
        Some(_) => return Err(RenderFault::new("tojson: expected two separators")),
    };
    let style = JsonStyle {
        indent,
        between,
        after_key,
        sorted: truth(3, "sort_keys"),
        ascii: truth(0, "ensure_ascii"),
    };
    let mut writer = JsonWriter { style: &style, meter, out: TextBuilder::new(meter)? };
    writer.write(value, 0)?;
    writer.out.into_value()
}

struct JsonWriter<'s, 'm, 'a> {
    style: &'s JsonStyle,
    meter: &'m RenderMeter<'a>,
    out: TextBuilder<'m, 'a>,
}

impl JsonWriter<'_, '_, '_> {
    /// Writes a value, whose depth is bounded.
    fn write(&mut self, value: &TemplateValue, level: usize) -> RenderResult<()> {
        self.meter.step(1)?;
        match value {
            TemplateValue::None | TemplateValue::Undefined(_) => self.out.push("null"),
            TemplateValue::Bool(truth) => self.out.push(if *truth { "true" } else { "false" }),
            TemplateValue::Int(number) => self.out.push(&number.to_string()),
            TemplateValue::Float(number) => self.out.push(&json_float(*number)),
            TemplateValue::Text(text) => self.text(&text.text),
            TemplateValue::List(list) if list.items.is_empty() => self.out.push("[]"),
            TemplateValue::List(list) => {
                self.out.push("[")?;
                for (i, item) in list.items.iter().enumerate() {
                    self.separate(i, level + 1)?;
                    self.write(item, level + 1)?;
                }
                self.line(level)?;
                self.out.push("]")
            }
            TemplateValue::Map(map) => {
                if !self.style.sorted {
                    return self.entries(map.entries().iter(), level);
                }
                let _held = self.meter.hold(map.len() * size_of::<&MapEntry>())?;
                let bytes =
                    map.entries().iter().map(|entry| entry.key.as_str().map_or(0, str::len));
                self.meter.bytes(bytes.sum::<usize>().saturating_mul(16))?;
                self.meter.elements(map.len().saturating_mul(16))?;
                let mut entries: Vec<&MapEntry> = map.entries().iter().collect();
                entries.sort_by_key(|entry| entry.key.as_str());
                self.entries(entries.into_iter(), level)
            }
            other => {
                let message =
                    format!("Object of type {} is not JSON serializable", other.type_name());
                Err(RenderFault::new(message))
            }
        }
    }

    fn entries<'e>(
        &mut self,
        entries: impl ExactSizeIterator<Item = &'e MapEntry>,
        level: usize,
    ) -> RenderResult<()> {
        if entries.len() == 0 {
            return self.out.push("{}");
        }
        self.out.push("{")?;
        for (i, entry) in entries.enumerate() {
            self.separate(i, level + 1)?;
            match &entry.key {
                TemplateValue::Text(text) => self.text(&text.text)?,
                TemplateValue::List(_) => {
                    return Err(RenderFault::new("keys must be str, int, float, bool or None"));
                }
                other => {
                    self.out.push("\"")?;
                    self.write(other, level)?;
                    self.out.push("\"")?;
                }
            }
            self.out.push(&self.style.after_key)?;
            self.write(&entry.value, level + 1)?;
        }
        self.line(level)?;
        self.out.push("}")
    }

    fn separate(&mut self, index: usize, level: usize) -> RenderResult<()> {
        if index > 0 {
            self.out.push(&self.style.between)?;
        }
        self.line(level)
    }

    fn line(&mut self, level: usize) -> RenderResult<()> {
        let Some(indent) = &self.style.indent else { return Ok(()) };
        self.out.push("\n")?;
        self.out.push_times(indent, level)
    }

    fn text(&mut self, text: &str) -> RenderResult<()> {
        self.meter.characters(text.len())?;
        self.out.push("\"")?;
        let mut from = 0;
        for (at, character) in text.char_indices() {
            let short = match character {
                '"' => "\\\"",
                '\\' => "\\\\",
                '\n' => "\\n",
                '\r' => "\\r",
                '\t' => "\\t",
                '\u{8}' => "\\b",
                '\u{C}' => "\\f",
                c if c < ' ' || self.style.ascii && !c.is_ascii() => "",
                _ => continue,
            };
            self.out.push(text.get(from..at).unwrap_or_default())?;
            from = at + character.len_utf8();
            self.out.push(short)?;
            if short.is_empty() {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    self.out.push(&format!("\\u{unit:04x}"))?;
                }
            }
        }
        self.out.push(text.get(from..).unwrap_or_default())?;
        self.out.push("\"")
    }
}

fn json_float(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        number if number.is_infinite() && number > 0.0 => "Infinity".to_owned(),
        number if number.is_infinite() => "-Infinity".to_owned(),
        number => float(number),
    }
}
