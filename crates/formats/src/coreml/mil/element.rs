//! Element types of programs.

use std::fmt;

use galatea_tensor::{DataType, SmallType};

use crate::coreml::proto::mil;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Element {
    Bool,
    String,
    Fp16,
    Fp32,
    Fp64,
    Bf16,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint1,
    Uint2,
    Uint3,
    Uint4,
    Uint6,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float8E4M3Fn,
    Float8E5M2,
}

/// `(element, number in files, name, bits, type in memory)`.
type Row = (Element, mil::DataType, &'static str, usize, DataType);

const ROWS: &[Row] = &[
    (Element::Bool, mil::DataType::Bool, "bool", 8, DataType::Bool),
    (Element::String, mil::DataType::String, "string", 0, DataType::Bytes),
    (Element::Fp16, mil::DataType::Float16, "fp16", 16, DataType::Fp16),
    (Element::Fp32, mil::DataType::Float32, "fp32", 32, DataType::Fp32),
    (Element::Fp64, mil::DataType::Float64, "fp64", 64, DataType::Fp64),
    (Element::Bf16, mil::DataType::Bfloat16, "bf16", 16, DataType::Bf16),
    (Element::Int4, mil::DataType::Int4, "int4", 4, DataType::Int8),
    (Element::Int8, mil::DataType::Int8, "int8", 8, DataType::Int8),
    (Element::Int16, mil::DataType::Int16, "int16", 16, DataType::Int16),
    (Element::Int32, mil::DataType::Int32, "int32", 32, DataType::Int32),
    (Element::Int64, mil::DataType::Int64, "int64", 64, DataType::Int64),
    (Element::Uint1, mil::DataType::Uint1, "uint1", 1, DataType::Uint8),
    (Element::Uint2, mil::DataType::Uint2, "uint2", 2, DataType::Uint8),
    (Element::Uint3, mil::DataType::Uint3, "uint3", 3, DataType::Uint8),
    (Element::Uint4, mil::DataType::Uint4, "uint4", 4, DataType::Uint8),
    (Element::Uint6, mil::DataType::Uint6, "uint6", 6, DataType::Uint8),
    (Element::Uint8, mil::DataType::Uint8, "uint8", 8, DataType::Uint8),
    (Element::Uint16, mil::DataType::Uint16, "uint16", 16, DataType::Uint16),
    (Element::Uint32, mil::DataType::Uint32, "uint32", 32, DataType::Uint32),
    (Element::Uint64, mil::DataType::Uint64, "uint64", 64, DataType::Uint64),
    (
        Element::Float8E4M3Fn,
        mil::DataType::Float8e4m3fn,
        "fp8e4m3fn",
        8,
        DataType::Small(SmallType::Float8E4M3Fn),
    ),
    (
        Element::Float8E5M2,
        mil::DataType::Float8e5m2,
        "fp8e5m2",
        8,
        DataType::Small(SmallType::Float8E5M2),
    ),
];

impl Element {
    fn row(self) -> &'static Row {
        ROWS.iter()
            .find(|row| row.0 == self)
            .unwrap_or_else(|| unreachable!("every element has a row"))
    }

    /// The element with a number of the schema.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        let number = mil::DataType::try_from(number).ok()?;
        ROWS.iter().find(|row| row.1 == number).map(|row| row.0)
    }

    /// Its number in the schema.
    #[must_use]
    pub fn proto(self) -> mil::DataType {
        self.row().1
    }

    /// The element that a word such as `fp16` names, as parameters of operators do.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.2 == word).map(|row| row.0)
    }

    /// Bits of an element in a file; 0 for texts.
    #[must_use]
    pub fn bits(self) -> usize {
        self.row().3
    }

    /// The type of a tensor that holds such elements: narrow ones take a byte each.
    #[must_use]
    pub fn stored_as(self) -> DataType {
        self.row().4
    }

    /// The element that a tensor of this type holds.
    #[must_use]
    pub fn of(dtype: DataType) -> Option<Self> {
        let whole = |row: &&Row| row.4 == dtype && (row.3 == 0 || row.3 >= 8);
        ROWS.iter().find(whole).map(|row| row.0)
    }

    /// Elements of fewer than 8 bits, one a byte, from their stream of bits, lowest first. Bytes that
    /// are missing count as zero.
    #[must_use]
    pub fn unpack(self, packed: &[u8], count: usize) -> Vec<u8> {
        let bits = self.bits();
        let mask = (1_u16 << bits.min(8)) - 1;
        let byte = |at: usize| u16::from(packed.get(at).copied().unwrap_or(0));
        let signed = self == Self::Int4;
        let element = |index: usize| {
            let bit = index * bits;
            let window = byte(bit / 8) | byte(bit / 8 + 1) << 8;
            let value = (window >> (bit % 8)) & mask;
            let [low, _] = value.to_le_bytes();
            if signed && low & 8 != 0 { low | 0xf0 } else { low }
        };
        (0..count).map(element).collect()
    }

    /// The stream of bits of elements that lie one a byte: what [`Element::unpack`] reads.
    #[must_use]
    pub fn pack(self, elements: &[u8]) -> Vec<u8> {
        let bits = self.bits();
        let mut packed = Vec::with_capacity((elements.len() * bits).div_ceil(8));
        let (mut window, mut filled) = (0_u32, 0);
        let mask = (1_u32 << bits.min(8)) - 1;
        for &element in elements {
            window |= (u32::from(element) & mask) << filled;
            filled += bits;
            while filled >= 8 {
                let [low, ..] = window.to_le_bytes();
                packed.push(low);
                window >>= 8;
                filled -= 8;
            }
        }
        if filled > 0 {
            let [low, ..] = window.to_le_bytes();
            packed.push(low);
        }
        packed
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_elements_come_back_from_their_bits() {
        for element in
            [Element::Uint1, Element::Uint2, Element::Uint3, Element::Uint4, Element::Uint6]
        {
            let top = 1_u8 << element.bits();
            let all: Vec<u8> = (0..37).map(|at| at % top).collect();
            let packed = element.pack(&all);
            assert_eq!(packed.len(), (37 * element.bits()).div_ceil(8), "{element}");
            assert_eq!(element.unpack(&packed, all.len()), all, "{element}");
        }
        let signed: Vec<u8> = (-8_i8..8).map(|value| value.to_ne_bytes()[0]).collect();
        assert_eq!(Element::Int4.unpack(&Element::Int4.pack(&signed), 16), signed);
        // The first element lies in the low bits.
        assert_eq!(Element::Uint4.pack(&[1, 2]), [0x21]);
        assert_eq!(Element::Uint3.pack(&[7, 0, 1]), [0b0100_0111, 0]);
    }

    #[test]
    fn every_type_of_tensors_has_one_element() {
        assert_eq!(Element::of(DataType::Int8), Some(Element::Int8));
        assert_eq!(Element::of(DataType::Uint8), Some(Element::Uint8));
        assert_eq!(Element::of(DataType::Bytes), Some(Element::String));
        assert_eq!(Element::of(DataType::Small(SmallType::Int4)), None);
    }
}
