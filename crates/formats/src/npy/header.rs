//! The header of a `.npy` file: a Python dictionary of type, memory order and shape.

use super::NpyError;

const MAGIC: &[u8] = b"\x93NUMPY";
/// The data starts at a multiple of this many bytes.
const ALIGNMENT: usize = 64;
/// NumPy refuses longer headers too; real ones are below 200 bytes.
const MAX_HEADER: usize = 1 << 16;
/// NumPy's limit on axes.
const MAX_RANK: usize = 64;

/// Content of the header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NpyHeader {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

impl NpyHeader {
    /// Splits a file into header and data.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), NpyError> {
        let cut = || NpyError::invalid("the file ends inside its header");
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| {
            NpyError::invalid("the bytes do not start with NumPy's magic '\\x93NUMPY'")
        })?;
        let ([major, minor], rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        let (len, rest) = match *major {
            1 => {
                let (len, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
                (usize::from(u16::from_le_bytes(*len)), rest)
            }
            2 | 3 => {
                let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
                (usize::try_from(u32::from_le_bytes(*len)).map_err(|_| cut())?, rest)
            }
            _ => {
                let text = format!("version {major}.{minor} of the format is not known");
                return Err(NpyError::unsupported(text));
            }
        };
        if len > MAX_HEADER {
            let text = format!("the header of {len} bytes is longer than {MAX_HEADER}");
            return Err(NpyError::invalid(text));
        }
        let (text, data) = rest.split_at_checked(len).ok_or_else(cut)?;
        let text = std::str::from_utf8(text)
            .map_err(|_| NpyError::invalid("the header is not valid UTF-8"))?;
        let mut parser = NpyParser { text, at: 0 };
        Ok((parser.header()?, data))
    }
}

/// The bytes before the data, for version 1.0.
pub(super) fn encode(descr: &str, shape: &[usize]) -> Vec<u8> {
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    let dims = match dims.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}").into_bytes();
    let before = MAGIC.len() + 4;
    let total = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.resize(total - before - 1, b' ');
    text.push(b'\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    // At most 64 axes of 20 digits: far below 65536.
    bytes.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend_from_slice(&text);
    bytes
}

/// Reads the few forms of Python's syntax that NumPy writes.
struct NpyParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> NpyParser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, expected: &str) -> NpyError {
        let found: String = self.rest().chars().take(20).collect();
        NpyError::invalid(format!("header, byte {}: expected {expected}, found '{found}'", self.at))
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Returns whether `token` comes next; it is consumed.
    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), NpyError> {
        if self.take(token) { Ok(()) } else { Err(self.error(&format!("'{token}'"))) }
    }

    fn header(&mut self) -> Result<NpyHeader, NpyError> {
        let mut descr = None;
        let mut fortran_order = None;
        let mut shape = None;
        self.expect("{")?;
        while !self.take("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                other => {
                    return Err(NpyError::invalid(format!("header: unknown key '{other}'")));
                }
            }
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        let missing = |key: &str| NpyError::invalid(format!("header: '{key}' is missing"));
        Ok(NpyHeader {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        self.skip_space();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('\'' | '"')) => quote,
            _ => return Err(self.error("a quoted text")),
        };
        let inner = self.rest().get(1..).unwrap_or_default();
        let Some(len) = inner.find(quote) else { return Err(self.error("a closing quote")) };
        self.at += len + 2;
        Ok(inner.get(..len).unwrap_or_default())
    }

    fn descr(&mut self) -> Result<String, NpyError> {
        if self.take("[") {
            return Err(NpyError::unsupported(
                "a structured array (one with named fields) has no tensor form; save each field as \
                 an array of its own",
            ));
        }
        self.string().map(str::to_owned)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        if self.take("True") {
            return Ok(true);
        }
        if self.take("False") {
            return Ok(false);
        }
        Err(self.error("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect("(")?;
        let mut shape = Vec::new();
        while !self.take(")") {
            self.skip_space();
            let rest = self.rest();
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number = rest.get(..digits).unwrap_or_default();
            let dim = number.parse().map_err(|_| self.error("a length"))?;
            self.at += digits;
            // Python 2 marked its long integers.
            self.take("L");
            shape.push(dim);
            if shape.len() > MAX_RANK {
                let text = format!("header: the shape has more than {MAX_RANK} axes");
                return Err(NpyError::invalid(text));
            }
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }
}
