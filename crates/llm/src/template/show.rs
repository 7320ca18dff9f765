//! Values as Python writes them: `str` and `repr`.

use super::builder::{TextBuilder, WrittenText};
use super::meter::{RenderMeter, RenderResult};
use super::value::TemplateValue;

/// Receiver of a text that shows values.
pub(super) trait ShowSink {
    fn put(&mut self, text: &str) -> RenderResult<()>;
}

impl ShowSink for TextBuilder<'_, '_> {
    fn put(&mut self, text: &str) -> RenderResult<()> {
        self.push(text)
    }
}

/// A part of the output.
pub(super) struct OutputSink<'w, 'm, 'a> {
    pub(super) written: &'w mut WrittenText,
    pub(super) meter: &'m RenderMeter<'a>,
}

impl ShowSink for OutputSink<'_, '_, '_> {
    fn put(&mut self, text: &str) -> RenderResult<()> {
        self.written.push(text, self.meter)
    }
}

/// Writes a value as `str` does.
pub(super) fn show(
    value: &TemplateValue,
    meter: &RenderMeter<'_>,
    out: &mut impl ShowSink,
) -> RenderResult<()> {
    match value {
        TemplateValue::Undefined(_) => Ok(()),
        TemplateValue::Text(text) => out.put(&text.text),
        other => represent(other, meter, out),
    }
}

/// A value as a text, which is shared where it is one.
pub(super) fn shown(value: &TemplateValue, meter: &RenderMeter<'_>) -> RenderResult<TemplateValue> {
    if matches!(value, TemplateValue::Text(_)) {
        return Ok(value.clone());
    }
    let mut out = TextBuilder::new(meter)?;
    show(value, meter, &mut out)?;
    out.into_value()
}

/// Writes a value as `repr` does. Its depth is bounded.
pub(super) fn represent(
    value: &TemplateValue,
    meter: &RenderMeter<'_>,
    out: &mut impl ShowSink,
) -> RenderResult<()> {
    meter.step(1)?;
    match value {
        TemplateValue::Undefined(_) => out.put("Undefined"),
        TemplateValue::None => out.put("None"),
        TemplateValue::Bool(true) => out.put("True"),
        TemplateValue::Bool(false) => out.put("False"),
        TemplateValue::Int(number) => out.put(&number.to_string()),
        TemplateValue::Float(number) => out.put(&float(*number)),
        TemplateValue::Text(text) => {
            meter.characters(text.text.len())?;
            quote(&text.text, out)
        }
        TemplateValue::List(list) => {
            out.put(if list.is_tuple { "(" } else { "[" })?;
            for (i, item) in list.items.iter().enumerate() {
                if i > 0 {
                    out.put(", ")?;
                }
                represent(item, meter, out)?;
            }
            let single = list.is_tuple && list.items.len() == 1;
            out.put(if single {
                ",)"
            } else if list.is_tuple {
                ")"
            } else {
                "]"
            })
        }
        TemplateValue::Map(map) => {
            out.put("{")?;
            for (i, entry) in map.entries().iter().enumerate() {
                if i > 0 {
                    out.put(", ")?;
                }
                represent(&entry.key, meter, out)?;
                out.put(": ")?;
                represent(&entry.value, meter, out)?;
            }
            out.put("}")
        }
        TemplateValue::Namespace(namespace) => {
            out.put("<Namespace {")?;
            for (i, entry) in namespace.entries.borrow().iter().enumerate() {
                if i > 0 {
                    out.put(", ")?;
                }
                quote(&entry.name, out)?;
                out.put(": ")?;
                represent(&entry.value, meter, out)?;
            }
            out.put("}>")
        }
        TemplateValue::Loop(of) => {
            let at = of.index.get() + 1;
            out.put(&format!("<LoopContext {at}/{}>", of.items.items.len()))
        }
        TemplateValue::Macro(_) => out.put("<Macro>"),
        TemplateValue::Function(name) => out.put(&format!("<function {name}>")),
        TemplateValue::Method(method) => out.put(&format!("<method {}>", method.name)),
    }
}

/// A number as Python writes it: the shortest digits, with a point or an exponent.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Writes a text between quotation marks.
fn quote(text: &str, out: &mut impl ShowSink) -> RenderResult<()> {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut buffer = [0; 4];
    out.put(mark.encode_utf8(&mut buffer))?;
    let mut from = 0;
    for (at, character) in text.char_indices() {
        let Some(escaped) = escaped(character, mark) else { continue };
        out.put(text.get(from..at).unwrap_or_default())?;
        out.put(&escaped)?;
        from = at + character.len_utf8();
    }
    out.put(text.get(from..).unwrap_or_default())?;
    out.put(mark.encode_utf8(&mut buffer))
}

/// How a character is written that does not stand for itself.
fn escaped(character: char, mark: char) -> Option<String> {
    match character {
        '\n' => Some("\\n".to_owned()),
        '\r' => Some("\\r".to_owned()),
        '\t' => Some("\\t".to_owned()),
        '\\' => Some("\\\\".to_owned()),
        c if c == mark => Some(format!("\\{c}")),
        ' '..='~' => None,
        c => {
            // Behind a letter, Rust escapes what Python does, combining marks not among it.
            let plain = ['a', c].iter().collect::<String>().escape_debug().count() == 2;
            let code = u32::from(c);
            match code {
                _ if plain => None,
                0..=0xFF => Some(format!("\\x{code:02x}")),
                0x100..=0xFFFF => Some(format!("\\u{code:04x}")),
                _ => Some(format!("\\U{code:08x}")),
            }
        }
    }
}
