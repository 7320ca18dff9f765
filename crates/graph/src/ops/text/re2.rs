//! Patterns in the syntax of RE2, in which classes such as `\w` hold letters of ASCII only.

/// Writes a pattern of RE2 in the syntax of the crate `regex`, which gives `\w` and `\b` all letters of
/// Unicode, and a meaning to `[`, `&&`, `~~` and `--` inside brackets.
pub(crate) fn rust_syntax(pattern: &str) -> String {
    let mut writer = SyntaxWriter { out: String::with_capacity(pattern.len()), in_class: false };
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, writer.in_class) {
            ('\\', _) => match rest.next() {
                Some('Q') => quoted(&mut rest, &mut writer.out),
                Some(escaped) => writer.escape(escaped),
                None => writer.out.push('\\'),
            },
            ('[', false) => {
                writer.in_class = true;
                writer.out.push('[');
                writer.out.extend(rest.next_if_eq(&'^'));
                if rest.next_if_eq(&']').is_some() {
                    writer.out.push_str("\\]");
                }
            }
            ('[', true) if rest.peek() == Some(&':') => {
                // A named class ends with its own bracket.
                writer.out.push('[');
                for inside in rest.by_ref() {
                    writer.out.push(inside);
                    if inside == ']' {
                        break;
                    }
                }
            }
            (']', true) => {
                writer.in_class = false;
                writer.out.push(']');
            }
            ('[' | '&' | '~', true) => writer.out.extend(['\\', c]),
            ('-', true) if rest.peek() == Some(&'-') => writer.out.push_str("\\-"),
            _ => writer.out.push(c),
        }
    }
    writer.out
}

/// Writes what stands between `\Q` and `\E`.
fn quoted(rest: &mut impl Iterator<Item = char>, out: &mut String) {
    let mut text: String = rest
        .take_while({
            let mut last = ' ';
            move |&c| {
                let ends = last == '\\' && c == 'E';
                last = c;
                !ends
            }
        })
        .collect();
    if text.ends_with('\\') {
        text.pop();
    }
    out.push_str(&regex::escape(&text));
}

struct SyntaxWriter {
    out: String,
    /// True between brackets.
    in_class: bool,
}

impl SyntaxWriter {
    fn escape(&mut self, c: char) {
        let class = match c {
            'd' | 'D' => "0-9",
            'w' | 'W' => "0-9A-Za-z_",
            's' | 'S' => r"\t\n\f\r ",
            'b' | 'B' if !self.in_class => {
                self.out.push_str("(?-u:\\");
                self.out.extend([c, ')']);
                return;
            }
            _ => {
                self.out.extend(['\\', c]);
                return;
            }
        };
        let (open, close) = match (self.in_class, c.is_ascii_uppercase()) {
            (true, false) => ("", ""),
            (_, true) => ("[^", "]"),
            (false, false) => ("[", "]"),
        };
        self.out.extend([open, class, close]);
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn finds(pattern: &str, text: &str) -> Vec<String> {
        let compiled = Regex::new(&rust_syntax(pattern)).unwrap();
        compiled.find_iter(text).map(|found| found.as_str().to_owned()).collect()
    }

    #[test]
    fn classes_hold_letters_of_ascii() {
        assert_eq!(finds(r"\w+", "wörld 1"), ["w", "rld", "1"]);
        assert_eq!(finds(r"[\w.]+", "a.é.b"), ["a.", ".b"]);
        assert_eq!(finds(r"[^\W\d]+", "a1 é_"), ["a", "_"]);
        assert_eq!(finds(r"\b\w\w+\b", "ab c,def"), ["ab", "def"]);
        assert_eq!(finds(r"\p{L}+", "дом ab"), ["дом", "ab"]);
    }

    #[test]
    fn brackets_have_no_operators() {
        assert_eq!(finds(r"[[a&&b~]+", "[&b~x"), ["[&b~"]);
        assert_eq!(finds(r"[]a]+", "x]a"), ["]a"]);
        assert_eq!(finds(r"[^]a]+", "x]a"), ["x"]);
        assert_eq!(finds(r"[[:alpha:]_]+", "ab_1"), ["ab_"]);
        assert_eq!(finds(r"[a--]+", "a,-."), ["a", "-"]);
    }

    #[test]
    fn quoted_text_stands_for_itself() {
        assert_eq!(finds(r"\Qa.b\E+", "a.bb axb"), ["a.bb"]);
        assert_eq!(finds(r"\Qa.", "a. ab"), ["a."]);
    }
}
