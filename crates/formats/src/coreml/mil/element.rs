//! Element types of programs.

use std::fmt;

use galatea_tensor::{DataType, SmallType};

use crate::coreml::proto::mil;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum MilElement {
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
type ElementRow = (MilElement, mil::MilDataTypeProto, &'static str, usize, DataType);

const ROWS: &[ElementRow] = &[
    (MilElement::Bool, mil::MilDataTypeProto::Bool, "bool", 8, DataType::Bool),
    (MilElement::String, mil::MilDataTypeProto::String, "string", 0, DataType::Bytes),
    (MilElement::Fp16, mil::MilDataTypeProto::Float16, "fp16", 16, DataType::Fp16),
    (MilElement::Fp32, mil::MilDataTypeProto::Float32, "fp32", 32, DataType::Fp32),
    (MilElement::Fp64, mil::MilDataTypeProto::Float64, "fp64", 64, DataType::Fp64),
    (MilElement::Bf16, mil::MilDataTypeProto::Bfloat16, "bf16", 16, DataType::Bf16),
    (MilElement::Int4, mil::MilDataTypeProto::Int4, "int4", 4, DataType::Int8),
    (MilElement::Int8, mil::MilDataTypeProto::Int8, "int8", 8, DataType::Int8),
    (MilElement::Int16, mil::MilDataTypeProto::Int16, "int16", 16, DataType::Int16),
    (MilElement::Int32, mil::MilDataTypeProto::Int32, "int32", 32, DataType::Int32),
    (MilElement::Int64, mil::MilDataTypeProto::Int64, "int64", 64, DataType::Int64),
    (MilElement::Uint1, mil::MilDataTypeProto::Uint1, "uint1", 1, DataType::Uint8),
    (MilElement::Uint2, mil::MilDataTypeProto::Uint2, "uint2", 2, DataType::Uint8),
    (MilElement::Uint3, mil::MilDataTypeProto::Uint3, "uint3", 3, DataType::Uint8),
    (MilElement::Uint4, mil::MilDataTypeProto::Uint4, "uint4", 4, DataType::Uint8),
    (MilElement::Uint6, mil::MilDataTypeProto::Uint6, "uint6", 6, DataType::Uint8),
    (MilElement::Uint8, mil::MilDataTypeProto::Uint8, "uint8", 8, DataType::Uint8),
    (MilElement::Uint16, mil::MilDataTypeProto::Uint16, "uint16", 16, DataType::Uint16),
    (MilElement::Uint32, mil::MilDataTypeProto::Uint32, "uint32", 32, DataType::Uint32),
    (MilElement::Uint64, mil::MilDataTypeProto::Uint64, "uint64", 64, DataType::Uint64),
    (
        MilElement::Float8E4M3Fn,
        mil::MilDataTypeProto::Float8e4m3fn,
        "fp8e4m3fn",
        8,
        DataType::Small(SmallType::Float8E4M3Fn),
    ),
    (
        MilElement::Float8E5M2,
        mil::MilDataTypeProto::Float8e5m2,
        "fp8e5m2",
        8,
        DataType::Small(SmallType::Float8E5M2),
    ),
];

impl MilElement {
    fn row(self) -> &'static ElementRow {
        ROWS.iter()
            .find(|row| row.0 == self)
            .unwrap_or_else(|| unreachable!("every element has a row"))
    }

    /// The element with a number of the schema.
    #[must_use]
    pub fn from_proto(number: i32) -> Option<Self> {
        let number = mil::MilDataTypeProto::try_from(number).ok()?;
        ROWS.iter().find(|row| row.1 == number).map(|row| row.0)
    }

    /// Its number in the schema.
    #[must_use]
    pub fn proto(self) -> mil::MilDataTypeProto {
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
        let whole = |row: &&ElementRow| row.4 == dtype && (row.3 == 0 || row.3 >= 8);
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

    /// The stream of bits of elements that lie one a byte: what [`MilElement::unpack`] reads.
    #[must_use]
    pub fn pack(self, elements: &[u8]) -> Vec<u8> {
        let bits = self.bits();
        let mut packed = Vec::with_capacity((elements.len() * bits).div_ceil(8));
        let mut window = 0_u32;
        let mut filled = 0;
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

impl fmt::Display for MilElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_elements_come_back_from_their_bits() {
        for element in [
            MilElement::Uint1,
            MilElement::Uint2,
            MilElement::Uint3,
            MilElement::Uint4,
            MilElement::Uint6,
        ] {
            let top = 1_u8 << element.bits();
            let all: Vec<u8> = (0..37).map(|at| at % top).collect();
            let packed = element.pack(&all);
            assert_eq!(packed.len(), (37 * element.bits()).div_ceil(8), "{element}");
            assert_eq!(element.unpack(&packed, all.len()), all, "{element}");
        }
        let signed: Vec<u8> = (-8_i8..8).map(|value| value.to_ne_bytes()[0]).collect();
        assert_eq!(MilElement::Int4.unpack(&MilElement::Int4.pack(&signed), 16), signed);
        // The first element lies in the low bits.
        assert_eq!(MilElement::Uint4.pack(&[1, 2]), [0x21]);
        assert_eq!(MilElement::Uint3.pack(&[7, 0, 1]), [0b0100_0111, 0]);
    }

    #[test]
    fn every_type_of_tensors_has_one_element() {
        assert_eq!(MilElement::of(DataType::Int8), Some(MilElement::Int8));
        assert_eq!(MilElement::of(DataType::Uint8), Some(MilElement::Uint8));
        assert_eq!(MilElement::of(DataType::Bytes), Some(MilElement::String));
        assert_eq!(MilElement::of(DataType::Small(SmallType::Int4)), None);
    }
}
