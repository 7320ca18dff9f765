//! One pass over the text makes a flat tape of values; reading a value afterwards never fails on syntax.

use super::number;

/// Deepest nesting of arrays and objects that is accepted.
pub const MAX_DEPTH: usize = 100;

/// Why a text is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// RapidJSON's sentence and the byte at which it applies.
    Syntax {
        /// Description of the error.
        what: &'static str,
        /// Byte offset into the text.
        at: usize,
    },
    /// Arrays and objects are nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The text is longer than 4 GiB.
    TooLong,
}

/// The type of a value, with the value where it is a scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonKind<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer below zero that fits 64 bits.
    Negative(i64),
    /// An integer of zero or more that fits 64 bits.
    Natural(u64),
    /// Every other number.
    Double(f64),
    /// The bytes of a string after its escapes; they need not be UTF-8.
    String(&'a [u8]),
    /// An array of that many values.
    Array(usize),
    /// An object of that many members.
    Object(usize),
}

#[derive(Debug, Clone, Copy)]
enum JsonNode {
    Null,
    Bool(bool),
    Negative(i64),
    Natural(u64),
    Double(f64),
    /// A range of the text.
    Plain {
        start: u32,
        len: u32,
    },
    /// A range of the unescaped bytes.
    Escaped {
        start: u32,
        len: u32,
    },
    /// `end` is the index of the first node behind the container.
    Array {
        count: u32,
        end: u32,
    },
    Object {
        count: u32,
        end: u32,
    },
}

/// A parsed text.
#[derive(Debug)]
pub struct JsonDocument<'a> {
    text: &'a [u8],
    nodes: Vec<JsonNode>,
    unescaped: Vec<u8>,
}

/// A value inside a [`JsonDocument`].
#[derive(Debug, Clone, Copy)]
pub struct JsonValue<'d> {
    document: &'d JsonDocument<'d>,
    index: usize,
}

impl<'a> JsonDocument<'a> {
    /// Parses a text that must hold one value. A byte-order mark before it and NUL bytes behind it are ignored.
    ///
    /// # Errors
    /// Returns the first violation of the grammar, or of the nesting limit [`MAX_DEPTH`].
    pub fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        if u32::try_from(text.len()).is_err() {
            return Err(ParseError::TooLong);
        }
        let mut parser = JsonParser {
            text,
            at: if text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 },
            nodes: Vec::with_capacity(text.len() / 8),
            unescaped: Vec::new(),
            open: Vec::new(),
        };
        parser.document()?;
        Ok(Self { text, nodes: parser.nodes, unescaped: parser.unescaped })
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> JsonValue<'_> {
        // A document borrowed for 'd is a document of 'd: the text outlives the borrow.
        JsonValue { document: self, index: 0 }
    }
}

impl<'d> JsonValue<'d> {
    /// Type and, for scalars, content.
    #[must_use]
    pub fn kind(self) -> JsonKind<'d> {
        match self.node() {
            JsonNode::Null => JsonKind::Null,
            JsonNode::Bool(value) => JsonKind::Bool(value),
            JsonNode::Negative(value) => JsonKind::Negative(value),
            JsonNode::Natural(value) => JsonKind::Natural(value),
            JsonNode::Double(value) => JsonKind::Double(value),
            JsonNode::Plain { start, len } => {
                JsonKind::String(slice(self.document.text, start, len))
            }
            JsonNode::Escaped { start, len } => {
                JsonKind::String(slice(&self.document.unescaped, start, len))
            }
            JsonNode::Array { count, .. } => JsonKind::Array(count as usize),
            JsonNode::Object { count, .. } => JsonKind::Object(count as usize),
        }
    }

    /// The elements of an array; nothing for every other type.
    pub fn elements(self) -> impl Iterator<Item = JsonValue<'d>> {
        let count = match self.node() {
            JsonNode::Array { count, .. } => count,
            _ => 0,
        };
        let mut next = self.index + 1;
        (0..count).map(move |_| {
            let value = JsonValue { document: self.document, index: next };
            next = value.after();
            value
        })
    }

    /// Names and values of an object in the order of the text; nothing for every other type.
    pub fn members(self) -> impl Iterator<Item = (&'d [u8], JsonValue<'d>)> {
        let count = match self.node() {
            JsonNode::Object { count, .. } => count,
            _ => 0,
        };
        let mut next = self.index + 1;
        (0..count).map(move |_| {
            let name = JsonValue { document: self.document, index: next };
            let value = JsonValue { document: self.document, index: name.after() };
            next = value.after();
            let bytes = match name.kind() {
                JsonKind::String(bytes) => bytes,
                _ => &[],
            };
            (bytes, value)
        })
    }

    /// The first member of that name; none where the value is no object.
    #[must_use]
    pub fn member(self, name: &str) -> Option<JsonValue<'d>> {
        self.members().find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
    }

    fn node(self) -> JsonNode {
        self.document.nodes.get(self.index).copied().unwrap_or(JsonNode::Null)
    }

    fn after(self) -> usize {
        match self.node() {
            JsonNode::Array { end, .. } | JsonNode::Object { end, .. } => end as usize,
            _ => self.index + 1,
        }
    }
}

fn slice(bytes: &[u8], start: u32, len: u32) -> &[u8] {
    bytes.get(start as usize..start as usize + len as usize).unwrap_or(&[])
}

struct JsonParser<'a> {
    text: &'a [u8],
    at: usize,
    nodes: Vec<JsonNode>,
    unescaped: Vec<u8>,
    /// Node indices of the containers around the current value, with their counts so far.
    open: Vec<OpenContainer>,
}

#[derive(Clone, Copy)]
struct OpenContainer {
    node: usize,
    count: u32,
    object: bool,
}

const INVALID_VALUE: &str = "Invalid value.";
const BAD_ESCAPE: &str = "Invalid escape character in string.";

impl JsonParser<'_> {
    fn document(&mut self) -> Result<(), ParseError> {
        self.skip_space();
        if self.peek() == 0 {
            return self.fail("The document is empty.");
        }
        self.value()?;
        while let Some(open) = self.open.last().copied() {
            self.continue_container(open)?;
        }
        self.skip_space();
        if self.peek() == 0 {
            Ok(())
        } else {
            self.fail("The document root must not be followed by other values.")
        }
    }

    /// Behind an element or member: a comma and the next one, or the end of the container.
    fn continue_container(&mut self, open: OpenContainer) -> Result<(), ParseError> {
        self.skip_space();
        let close = if open.object { b'}' } else { b']' };
        match self.peek() {
            b',' if open.count > 0 => {
                self.at += 1;
                self.skip_space();
                self.count_up();
                if open.object { self.member() } else { self.value() }
            }
            byte if byte == close => {
                self.at += 1;
                self.close();
                Ok(())
            }
            _ if open.count == 0 => {
                self.count_up();
                if open.object { self.member() } else { self.value() }
            }
            _ if open.object => self.fail("Missing a comma or '}' after an object member."),
            _ => self.fail("Missing a comma or ']' after an array element."),
        }
    }

    fn count_up(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.count += 1;
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.pop() {
            let end = position(self.nodes.len());
            if let Some(node) = self.nodes.get_mut(open.node) {
                *node = if open.object {
                    JsonNode::Object { count: open.count, end }
                } else {
                    JsonNode::Array { count: open.count, end }
                };
            }
        }
    }

    fn member(&mut self) -> Result<(), ParseError> {
        if self.peek() != b'"' {
            return self.fail("Missing a name for object member.");
        }
        self.string()?;
        self.skip_space();
        if self.peek() != b':' {
            return self.fail("Missing a colon after a name of object member.");
        }
        self.at += 1;
        self.skip_space();
        self.value()
    }

    /// A scalar, or the opening of a container.
    fn value(&mut self) -> Result<(), ParseError> {
        match self.peek() {
            b'"' => self.string(),
            b'{' => self.open(true),
            b'[' => self.open(false),
            b't' => self.word(b"true", JsonNode::Bool(true)),
            b'f' => self.word(b"false", JsonNode::Bool(false)),
            b'n' => self.word(b"null", JsonNode::Null),
            _ => self.number(),
        }
    }

    fn open(&mut self, object: bool) -> Result<(), ParseError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        self.at += 1;
        self.open.push(OpenContainer { node: self.nodes.len(), count: 0, object });
        self.nodes.push(JsonNode::Null);
        Ok(())
    }

    fn word(&mut self, word: &[u8], node: JsonNode) -> Result<(), ParseError> {
        for &byte in word {
            if self.peek() != byte {
                return self.fail(INVALID_VALUE);
            }
            self.at += 1;
        }
        self.nodes.push(node);
        Ok(())
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        match number::read(rest) {
            Ok((number, len)) => {
                self.at += len;
                self.nodes.push(match number {
                    number::JsonNumber::Negative(value) => JsonNode::Negative(value),
                    number::JsonNumber::Natural(value) => JsonNode::Natural(value),
                    number::JsonNumber::Double(value) => JsonNode::Double(value),
                });
                Ok(())
            }
            Err((what, offset)) => Err(ParseError::Syntax { what, at: self.at + offset }),
        }
    }

    /// A string without escapes stays where it is in the text.
    fn string(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or(&[]);
        let Some(len) = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)
        else {
            self.at = self.text.len();
            return self.fail("Missing a closing quotation mark in string.");
        };
        if rest.get(len) == Some(&b'"') {
            self.at += len + 1;
            self.nodes.push(JsonNode::Plain { start: position(start), len: position(len) });
            return Ok(());
        }
        let copy = self.unescaped.len();
        self.unescaped.extend_from_slice(rest.get(..len).unwrap_or(&[]));
        self.at += len;
        self.escaped_rest()?;
        let len = self.unescaped.len() - copy;
        self.nodes.push(JsonNode::Escaped { start: position(copy), len: position(len) });
        Ok(())
    }

    fn escaped_rest(&mut self) -> Result<(), ParseError> {
        loop {
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0 => return self.fail("Missing a closing quotation mark in string."),
                // RapidJSON has the same sentence for a bare control character as for a bad escape.
                byte if byte < 0x20 => return self.fail(BAD_ESCAPE),
                byte => {
                    self.unescaped.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        self.at += 1;
        let plain = match self.peek() {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.at += 1;
                let scalar = self.code_point(start)?;
                let mut buffer = [0; 4];
                self.unescaped.extend_from_slice(scalar.encode_utf8(&mut buffer).as_bytes());
                return Ok(());
            }
            _ => return Err(ParseError::Syntax { what: BAD_ESCAPE, at: start }),
        };
        self.unescaped.push(plain);
        self.at += 1;
        Ok(())
    }

    fn code_point(&mut self, start: usize) -> Result<char, ParseError> {
        let broken =
            ParseError::Syntax { what: "The surrogate pair in string is invalid.", at: start };
        let high = self.hex4(start)?;
        if !(0xD800..0xE000).contains(&high) {
            return char::from_u32(high).ok_or(broken);
        }
        if high >= 0xDC00 || self.text.get(self.at..self.at + 2) != Some(b"\\u") {
            return Err(broken);
        }
        self.at += 2;
        let low = self.hex4(start)?;
        if !(0xDC00..0xE000).contains(&low) {
            return Err(broken);
        }
        char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)).ok_or(broken)
    }

    fn hex4(&mut self, start: usize) -> Result<u32, ParseError> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = char::from(self.peek()).to_digit(16) else {
                let what = "Incorrect hex digit after \\u escape in string.";
                return Err(ParseError::Syntax { what, at: start });
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// The current byte; zero at the end, which is what RapidJSON's stream gives too.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn fail(&self, what: &'static str) -> Result<(), ParseError> {
        Err(ParseError::Syntax { what, at: self.at.min(self.text.len()) })
    }
}

/// An offset into a text whose length was checked to fit.
fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> (String, usize) {
        match JsonDocument::parse(text.as_bytes()) {
            Err(ParseError::Syntax { what, at }) => (what.to_owned(), at),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn members_elements_and_scalars_are_found_again() {
        let text = br#" {"a":[1,-2,[3.5,"x\n\u00e9"],{}],"b":null,"c":true,"a":7} "#;
        let document = JsonDocument::parse(text).unwrap();
        let root = document.root();
        assert_eq!(root.kind(), JsonKind::Object(4));
        let kinds: Vec<JsonKind<'_>> =
            root.member("a").unwrap().elements().map(JsonValue::kind).collect();
        assert_eq!(
            kinds,
            [JsonKind::Natural(1), JsonKind::Negative(-2), JsonKind::Array(2), JsonKind::Object(0)]
        );
        let inner: Vec<JsonKind<'_>> = root
            .member("a")
            .unwrap()
            .elements()
            .nth(2)
            .unwrap()
            .elements()
            .map(JsonValue::kind)
            .collect();
        assert_eq!(inner, [JsonKind::Double(3.5), JsonKind::String("x\né".as_bytes())]);
        assert_eq!(root.member("b").unwrap().kind(), JsonKind::Null);
        assert_eq!(root.member("c").unwrap().kind(), JsonKind::Bool(true));
        assert!(root.member("d").is_none());
    }

    #[test]
    fn errors_are_rapidjsons() {
        for (text, what, at) in [
            ("  ", "The document is empty.", 2),
            ("garbage", "Invalid value.", 0),
            ("{'inputs':[]}", "Missing a name for object member.", 1),
            ("{}x", "The document root must not be followed by other values.", 2),
            ("[01]", "Missing a comma or ']' after an array element.", 2),
            ("[1", "Missing a comma or ']' after an array element.", 2),
            ("[1,]", "Invalid value.", 3),
            ("{\"a\" 1}", "Missing a colon after a name of object member.", 5),
            ("{\"a\":1 \"b\"}", "Missing a comma or '}' after an object member.", 7),
            ("[\"\\x\"]", "Invalid escape character in string.", 2),
            ("[\"a\nb\"]", "Invalid escape character in string.", 3),
            ("[\"\\ud800x\"]", "The surrogate pair in string is invalid.", 2),
            ("[\"\\u12g4\"]", "Incorrect hex digit after \\u escape in string.", 2),
            ("[\"abc", "Missing a closing quotation mark in string.", 5),
            ("[1e999]", "Number too big to be stored in double.", 1),
            ("[+1]", "Invalid value.", 1),
            ("tru", "Invalid value.", 3),
        ] {
            assert_eq!(error(text), (what.to_owned(), at), "{text}");
        }
    }

    #[test]
    fn a_mark_before_and_nul_behind_are_ignored_and_depth_is_bounded() {
        assert!(JsonDocument::parse(b"\xEF\xBB\xBF{}").is_ok());
        assert!(JsonDocument::parse(b"{}\0\0").is_ok());
        let deep = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
        assert!(JsonDocument::parse(deep.as_bytes()).is_ok());
        let deeper = "[".repeat(1_000_000);
        assert_eq!(JsonDocument::parse(deeper.as_bytes()).unwrap_err(), ParseError::TooDeep);
    }

    #[test]
    fn strings_need_not_be_utf8() {
        let document = JsonDocument::parse(b"[\"\xFF\"]").unwrap();
        let first = document.root().elements().next().unwrap();
        assert_eq!(first.kind(), JsonKind::String(b"\xFF"));
    }
}
