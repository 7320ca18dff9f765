//! `tojson` as Python's `json.dumps` writes it.

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, Value as Any};
use serde_json::Value;

/// The most spaces of one level.
const MAX_INDENT: usize = 64;

struct Style {
    indent: Option<usize>,
    between: String,
    after_key: String,
    sorted: bool,
    ascii: bool,
}

pub(super) fn tojson(value: &Any, arguments: &Kwargs) -> Result<Any, Error> {
    let invalid = |message: String| Error::new(ErrorKind::InvalidOperation, message);
    let indent: Option<usize> = arguments.get("indent")?;
    if let Some(indent) = indent.filter(|indent| *indent > MAX_INDENT) {
        return Err(invalid(format!("tojson: indent {indent}, expected at most {MAX_INDENT}")));
    }
    let separators: Option<Vec<String>> = arguments.get("separators")?;
    let (between, after_key) = match separators.as_deref() {
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
        Some([between, after_key]) => (between.clone(), after_key.clone()),
        Some(_) => return Err(invalid("tojson: expected two separators".to_owned())),
    };
    let style = Style {
        indent,
        between,
        after_key,
        sorted: arguments.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ascii: arguments.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
    };
    arguments.assert_all_used()?;
    let value = serde_json::to_value(value).map_err(|e| invalid(format!("tojson: {e}")))?;
    let mut out = String::new();
    write(&value, &style, 0, &mut out);
    Ok(Any::from(out))
}

fn write(value: &Value, style: &Style, level: usize, out: &mut String) {
    match value {
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                separate(style, i, level + 1, out);
                write(item, style, level + 1, out);
            }
            line(style, level, out);
            out.push(']');
        }
        Value::Object(entries) if entries.is_empty() => out.push_str("{}"),
        Value::Object(entries) => {
            let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
            if style.sorted {
                entries.sort_by_key(|(key, _)| key.as_str());
            }
            out.push('{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                separate(style, i, level + 1, out);
                text(key, style, out);
                out.push_str(&style.after_key);
                write(item, style, level + 1, out);
            }
            line(style, level, out);
            out.push('}');
        }
        Value::String(string) => text(string, style, out),
        other => out.push_str(&other.to_string()),
    }
}

fn separate(style: &Style, index: usize, level: usize, out: &mut String) {
    if index > 0 {
        out.push_str(&style.between);
    }
    line(style, level, out);
}

fn line(style: &Style, level: usize, out: &mut String) {
    if let Some(indent) = style.indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * level));
    }
}

fn text(string: &str, style: &Style, out: &mut String) {
    out.push('"');
    for character in string.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            c if c < ' ' || style.ascii && !c.is_ascii() => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
