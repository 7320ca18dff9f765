//! Elements as NumPy lays them out.

use galatea_tensor::{ByteString, DataType, Tensor, checked_elements};

use super::NpyError;

/// Most elements of an array of zero-width strings: they take no bytes in the file.
const MAX_EMPTY_STRINGS: usize = 1 << 20;
/// Bytes of one character of `U`.
const CHARACTER: usize = 4;

/// `(NumPy's kind and size, type)` for the types of fixed size.
const KINDS: &[(&str, DataType)] = &[
    ("b1", DataType::Bool),
    ("u1", DataType::Uint8),
    ("u2", DataType::Uint16),
    ("u4", DataType::Uint32),
    ("u8", DataType::Uint64),
    ("i1", DataType::Int8),
    ("i2", DataType::Int16),
    ("i4", DataType::Int32),
    ("i8", DataType::Int64),
    ("f2", DataType::Fp16),
    ("f4", DataType::Fp32),
    ("f8", DataType::Fp64),
    // `ml_dtypes` registers bfloat16 as a void of two bytes.
    ("V2", DataType::Bf16),
];

/// How one element is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NpyKind {
    Number(DataType),
    /// Text of this number of UTF-32 characters.
    Text(usize),
    /// Text of this number of bytes.
    Bytes(usize),
}

/// A parsed `descr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NpyDescr {
    kind: NpyKind,
    big_endian: bool,
}

impl NpyDescr {
    pub(super) fn parse(descr: &str) -> Result<Self, NpyError> {
        let unreadable = || NpyError::unsupported(format!("array type '{descr}' is not supported"));
        let (big_endian, name) = match descr.split_at_checked(1) {
            Some((">", name)) => (true, name),
            Some(("<" | "|" | "=", name)) => (false, name),
            _ => (false, descr),
        };
        if name == "bfloat16" {
            return Ok(Self { kind: NpyKind::Number(DataType::Bf16), big_endian });
        }
        if let Some((_, dtype)) = KINDS.iter().find(|(kind, _)| *kind == name) {
            return Ok(Self { kind: NpyKind::Number(*dtype), big_endian });
        }
        let (kind, width) = name.split_at_checked(1).ok_or_else(unreadable)?;
        let width = || width.parse::<usize>().map_err(|_| unreadable());
        let kind = match kind {
            "U" => NpyKind::Text(width()?),
            "S" | "a" => NpyKind::Bytes(width()?),
            "O" => {
                return Err(NpyError::unsupported(
                    "an array of Python objects is a pickle, which is never opened; give it a \
                     fixed type first: array.astype(str) for text, array.astype('S') for bytes, \
                     or a numeric type",
                ));
            }
            "c" => {
                return Err(NpyError::unsupported(format!(
                    "complex numbers ('{descr}') have no tensor type; save array.real and \
                     array.imag"
                )));
            }
            "M" | "m" => {
                return Err(NpyError::unsupported(format!(
                    "dates and durations ('{descr}') have no tensor type; save \
                     array.astype('int64')"
                )));
            }
            _ => return Err(unreadable()),
        };
        Ok(Self { kind, big_endian })
    }

    /// Bytes of one element; `usize::MAX` for a width beyond that.
    pub(super) fn item_bytes(self) -> usize {
        match self.kind {
            NpyKind::Number(dtype) => dtype.size_bytes().unwrap_or(1),
            NpyKind::Text(characters) => characters.saturating_mul(CHARACTER),
            NpyKind::Bytes(bytes) => bytes,
        }
    }

    /// The tensor of these bytes, in row-major order; the caller has checked their number.
    pub(super) fn decode(self, shape: &[usize], data: &[u8]) -> Result<Tensor, NpyError> {
        let size = self.item_bytes();
        if let NpyKind::Number(dtype) = self.kind {
            if !self.big_endian || size == 1 {
                return Ok(Tensor::from_bytes(dtype, shape, data)?);
            }
            let swapped: Vec<u8> =
                data.chunks_exact(size).flat_map(|item| item.iter().rev().copied()).collect();
            return Ok(Tensor::from_bytes(dtype, shape, &swapped)?);
        }
        let elements = checked_elements(shape)?;
        if size == 0 {
            if elements > MAX_EMPTY_STRINGS {
                return Err(NpyError::invalid(format!("{elements} strings of no width")));
            }
            return Ok(Tensor::zeros(DataType::Bytes, shape)?);
        }
        let items = data.chunks_exact(size);
        let strings: Result<Vec<ByteString>, NpyError> = match self.kind {
            NpyKind::Text(_) => {
                items.enumerate().map(|(index, item)| self.text(item, index)).collect()
            }
            _ => items.map(|item| Ok(ByteString::from(without_padding(item)))).collect(),
        };
        Ok(Tensor::from_vec(shape, strings?)?)
    }

    fn text(self, item: &[u8], index: usize) -> Result<ByteString, NpyError> {
        let mut text = String::new();
        for unit in item.as_chunks::<CHARACTER>().0 {
            let code =
                if self.big_endian { u32::from_be_bytes(*unit) } else { u32::from_le_bytes(*unit) };
            let character = char::from_u32(code).ok_or_else(|| {
                NpyError::invalid(format!("string {index}: U+{code:X} is no character"))
            })?;
            text.push(character);
        }
        Ok(ByteString::from(text.trim_end_matches('\0')))
    }
}

fn without_padding(item: &[u8]) -> &[u8] {
    let len = item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    item.get(..len).unwrap_or_default()
}

/// The `descr` and data of a tensor.
pub(super) fn encode(tensor: &Tensor) -> Result<(String, Vec<u8>), NpyError> {
    let dtype = tensor.dtype();
    if dtype == DataType::Bytes {
        return encode_strings(&tensor.to_vec::<ByteString>()?);
    }
    let known = KINDS.iter().find(|(_, found)| *found == dtype).map(|(name, _)| *name);
    // The types of `ml_dtypes` with fewer bits are voids of one byte.
    let name = known.unwrap_or("V1");
    let order = if dtype.size_bytes() == Some(1) { '|' } else { '<' };
    Ok((format!("{order}{name}"), tensor.contiguous()?.as_bytes()?.to_vec()))
}

fn encode_strings(strings: &[ByteString]) -> Result<(String, Vec<u8>), NpyError> {
    let texts: Option<Vec<&str>> =
        strings.iter().map(|string| string.as_str().filter(|text| !text.ends_with('\0'))).collect();
    let widest = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or(0).max(1);
    let reserve = |width: usize| {
        let mut data = Vec::new();
        let total = strings.len().checked_mul(width);
        match total.and_then(|bytes| data.try_reserve_exact(bytes).ok()) {
            Some(()) => Ok(data),
            None => Err(NpyError::unsupported(format!(
                "{} strings of {width} bytes each are more than fits in memory",
                strings.len()
            ))),
        }
    };
    if let Some(texts) = texts {
        let width = widest(&mut texts.iter().map(|text| text.chars().count()));
        let mut data = reserve(width.saturating_mul(CHARACTER))?;
        for text in texts {
            let end = data.len() + width * CHARACTER;
            data.extend(text.chars().flat_map(|c| u32::from(c).to_le_bytes()));
            data.resize(end, 0);
        }
        return Ok((format!("<U{width}"), data));
    }
    let width = widest(&mut strings.iter().map(|string| string.as_bytes().len()));
    let mut data = reserve(width)?;
    for string in strings {
        let end = data.len() + width;
        data.extend_from_slice(string.as_bytes());
        data.resize(end, 0);
    }
    Ok((format!("|S{width}"), data))
}
