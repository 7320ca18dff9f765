//! JSON as protobuf's reader takes it from clients: names may stand without quotes, and texts in single ones.

use std::iter::Peekable;
use std::str::CharIndices;

use serde_json::Value;

/// Reads JSON, strict or with these liberties.
///
/// # Errors
/// Returns what is wrong with the text as strict JSON.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let strict = serde_json::from_str(text);
    // Without liberties the rewritten text has the same error.
    strict.or_else(|error| serde_json::from_str(&strict_form(text)).map_err(|_| error.to_string()))
}

/// The same in strict JSON, as far as it is JSON at all.
fn strict_form(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' | '\'' => copy_text(&mut letters, letter, &mut out),
            _ if begins_name(letter) => {
                let mut end = at + letter.len_utf8();
                while let Some((at, next)) = letters.next_if(|&(_, next)| goes_on(next)) {
                    end = at + next.len_utf8();
                }
                let name = text.get(at..end).unwrap_or_default();
                let is_key = text.get(end..).is_some_and(|rest| rest.trim_start().starts_with(':'));
                let quote = if is_key { "\"" } else { "" };
                out.extend([quote, name, quote]);
            }
            _ => out.push(letter),
        }
    }
    out
}

fn begins_name(letter: char) -> bool {
    letter.is_ascii_alphabetic() || matches!(letter, '_' | '$')
}

fn goes_on(letter: char) -> bool {
    begins_name(letter) || letter.is_ascii_digit()
}

/// Copies the rest of a text up to the mark that ends it, into double quotes.
fn copy_text(letters: &mut Peekable<CharIndices<'_>>, mark: char, out: &mut String) {
    out.push('"');
    while let Some((_, letter)) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some((_, '\'')) => out.push('\''),
                Some((_, escaped)) => out.extend(['\\', escaped]),
                None => out.push('\\'),
            },
            '"' if mark == '\'' => out.push_str("\\\""),
            _ if letter == mark => {
                out.push('"');
                return;
            }
            _ => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_need_no_quotes_and_texts_may_have_single_ones() {
        for (text, value) in [
            (r#"{max_batch_size: 4}"#, json!({"max_batch_size": 4})),
            (
                r#"{"a": 'b"c\'d', _x1 : [true, null, {y:-1.5e3}]}"#,
                json!({
                    "a": "b\"c'd", "_x1": [true, null, {"y": -1500.0}],
                }),
            ),
            (r#"{'k: {v}': "it's: {fine}\""}"#, json!({"k: {v}": "it's: {fine}\""})),
            ("{é: 1}", Value::Null),
            ("{name: none}", Value::Null),
            ("{'open: 1}", Value::Null),
            ("{\\", Value::Null),
            ("", Value::Null),
        ] {
            let read = parse(text);
            assert_eq!(read.clone().unwrap_or_default(), value, "{text}: {read:?}");
        }
    }

    #[test]
    fn errors_are_about_the_text_as_it_was_given() {
        assert_eq!(parse("{a: }").unwrap_err(), "key must be a string at line 1 column 2");
    }
}
