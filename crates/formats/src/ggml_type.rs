//! The types of tensors in GGUF files.

use std::fmt;

use galatea_tensor::DataType;

use galatea_graph::blocks::{CodeFormat, CodeMeaning};

/// How the numbers of a tensor are stored; the names are those of ggml.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are ggml's types; `GgmlType::name` writes them out")]
#[non_exhaustive]
pub enum GgmlType {
    F32,
    F16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Q8K,
    Iq2Xxs,
    Iq2Xs,
    Iq3Xxs,
    Iq1S,
    Iq4Nl,
    Iq3S,
    Iq2S,
    Iq4Xs,
    I8,
    I16,
    I32,
    I64,
    F64,
    Iq1M,
    Bf16,
    Tq1_0,
    Tq2_0,
    Mxfp4,
    Nvfp4,
    Q1_0,
}

/// Properties of a type.
#[derive(Clone, Copy, Debug)]
struct TensorTypeRow {
    kind: GgmlType,
    number: u32,
    name: &'static str,
    /// Numbers of a block, and the bytes that they take.
    block: (usize, usize),
    form: BlockForm,
}

/// Content of the bytes of a block.
#[derive(Clone, Copy, Debug)]
enum BlockForm {
    /// Elements, one after the other.
    Plain(DataType),
    /// Codes of few bits.
    Coded(CodeFormat),
    /// Known by name and size only.
    Opaque,
}

const fn plain(kind: GgmlType, number: u32, name: &'static str, dtype: DataType) -> TensorTypeRow {
    let bytes = match dtype {
        DataType::Int8 => 1,
        DataType::Fp16 | DataType::Bf16 | DataType::Int16 => 2,
        DataType::Fp32 | DataType::Int32 => 4,
        _ => 8,
    };
    TensorTypeRow { kind, number, name, block: (1, bytes), form: BlockForm::Plain(dtype) }
}

const fn coded(
    kind: GgmlType,
    number: u32,
    name: &'static str,
    block: (usize, usize),
    code: CodeFormat,
) -> TensorTypeRow {
    let form = BlockForm::Coded(code);
    TensorTypeRow { kind, number, name, block, form }
}

const fn opaque(
    kind: GgmlType,
    number: u32,
    name: &'static str,
    block: (usize, usize),
) -> TensorTypeRow {
    TensorTypeRow { kind, number, name, block, form: BlockForm::Opaque }
}

/// The 16 values of IQ4. Source: `kvalues_iq4nl` of ggml.
const IQ4: CodeMeaning = CodeMeaning::Table(&[
    -127., -104., -83., -65., -49., -35., -22., -10., 1., 13., 25., 38., 53., 69., 89., 113.,
]);
/// Twice the values of a float of 4 bits (E2M1); scales are halves. Source: the OCP's specification
/// of microscaling formats.
const E2M1: CodeMeaning =
    CodeMeaning::Table(&[0., 1., 2., 3., 4., 6., 8., 12., 0., -1., -2., -3., -4., -6., -8., -12.]);
/// The numbers of the grids of IQ2 and IQ3, then the same below zero. Source: the grids of ggml.
const IQ2: CodeMeaning =
    CodeMeaning::Table(&[8., 25., 43., 0., 0., 0., 0., 0., -8., -25., -43., 0., 0., 0., 0., 0.]);
const IQ3_XXS: CodeMeaning = CodeMeaning::Table(&[
    4., 12., 20., 28., 36., 44., 52., 62., -4., -12., -20., -28., -36., -44., -52., -62.,
]);
const IQ3_S: CodeMeaning = CodeMeaning::Table(&[
    1., 3., 5., 7., 9., 11., 13., 15., -1., -3., -5., -7., -9., -11., -13., -15.,
]);
/// -1, 0 and 1 an eighth higher, then an eighth lower.
const IQ1: CodeMeaning = CodeMeaning::Table(&[
    -0.875, 0.125, 1.125, 0., 0., 0., 0., 0., -1.125, -0.125, 0.875, 0., 0., 0., 0., 0.,
]);
const OFFSET: CodeMeaning = CodeMeaning::Offset;

/// Every type, with sizes as in `ggml-common.h` of ggml. A coded type has the bits of a code, how
/// many numbers share a scale, and what a code means.
const ROWS: &[TensorTypeRow] = &[
    plain(GgmlType::F32, 0, "F32", DataType::Fp32),
    plain(GgmlType::F16, 1, "F16", DataType::Fp16),
    coded(GgmlType::Q4_0, 2, "Q4_0", (32, 18), CodeFormat::new(4, 32, CodeMeaning::Zero(8.))),
    coded(GgmlType::Q4_1, 3, "Q4_1", (32, 20), CodeFormat::new(4, 32, OFFSET)),
    coded(GgmlType::Q5_0, 6, "Q5_0", (32, 22), CodeFormat::new(5, 32, CodeMeaning::Zero(16.))),
    coded(GgmlType::Q5_1, 7, "Q5_1", (32, 24), CodeFormat::new(5, 32, OFFSET)),
    coded(GgmlType::Q8_0, 8, "Q8_0", (32, 34), CodeFormat::new(8, 32, CodeMeaning::Zero(128.))),
    coded(GgmlType::Q8_1, 9, "Q8_1", (32, 36), CodeFormat::new(8, 32, CodeMeaning::Zero(128.))),
    coded(GgmlType::Q2K, 10, "Q2_K", (256, 84), CodeFormat::new(2, 16, OFFSET)),
    coded(GgmlType::Q3K, 11, "Q3_K", (256, 110), CodeFormat::new(3, 16, CodeMeaning::Zero(4.))),
    coded(GgmlType::Q4K, 12, "Q4_K", (256, 144), CodeFormat::new(4, 32, OFFSET)),
    coded(GgmlType::Q5K, 13, "Q5_K", (256, 176), CodeFormat::new(5, 32, OFFSET)),
    coded(GgmlType::Q6K, 14, "Q6_K", (256, 210), CodeFormat::new(6, 16, CodeMeaning::Zero(32.))),
    coded(GgmlType::Q8K, 15, "Q8_K", (256, 292), CodeFormat::new(8, 256, CodeMeaning::Zero(128.))),
    coded(GgmlType::Iq2Xxs, 16, "IQ2_XXS", (256, 66), CodeFormat::new(4, 32, IQ2)),
    coded(GgmlType::Iq2Xs, 17, "IQ2_XS", (256, 74), CodeFormat::new(4, 16, IQ2)),
    coded(GgmlType::Iq3Xxs, 18, "IQ3_XXS", (256, 98), CodeFormat::new(4, 32, IQ3_XXS)),
    coded(GgmlType::Iq1S, 19, "IQ1_S", (256, 50), CodeFormat::new(4, 32, IQ1)),
    coded(GgmlType::Iq4Nl, 20, "IQ4_NL", (32, 18), CodeFormat::new(4, 32, IQ4)),
    coded(GgmlType::Iq3S, 21, "IQ3_S", (256, 110), CodeFormat::new(4, 32, IQ3_S)),
    coded(GgmlType::Iq2S, 22, "IQ2_S", (256, 82), CodeFormat::new(4, 16, IQ2)),
    coded(GgmlType::Iq4Xs, 23, "IQ4_XS", (256, 136), CodeFormat::new(4, 32, IQ4)),
    plain(GgmlType::I8, 24, "I8", DataType::Int8),
    plain(GgmlType::I16, 25, "I16", DataType::Int16),
    plain(GgmlType::I32, 26, "I32", DataType::Int32),
    plain(GgmlType::I64, 27, "I64", DataType::Int64),
    plain(GgmlType::F64, 28, "F64", DataType::Fp64),
    coded(GgmlType::Iq1M, 29, "IQ1_M", (256, 56), CodeFormat::new(4, 16, IQ1)),
    plain(GgmlType::Bf16, 30, "BF16", DataType::Bf16),
    coded(GgmlType::Tq1_0, 34, "TQ1_0", (256, 54), CodeFormat::new(2, 256, CodeMeaning::Zero(1.))),
    coded(GgmlType::Tq2_0, 35, "TQ2_0", (256, 66), CodeFormat::new(2, 256, CodeMeaning::Zero(1.))),
    coded(GgmlType::Mxfp4, 39, "MXFP4", (32, 17), CodeFormat::new(4, 32, E2M1)),
    coded(GgmlType::Nvfp4, 40, "NVFP4", (64, 36), CodeFormat::new(4, 16, E2M1)),
    opaque(GgmlType::Q1_0, 41, "Q1_0", (128, 18)),
];

impl GgmlType {
    /// Every type, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.kind)
    }

    fn row(self) -> &'static TensorTypeRow {
        // A test looks every type up.
        ROWS.iter().find(|row| row.kind == self).unwrap_or(&TensorTypeRow {
            kind: Self::F32,
            number: 0,
            name: "",
            block: (1, 4),
            form: BlockForm::Opaque,
        })
    }

    /// The type with this number in files.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        ROWS.iter().find(|row| row.number == number).map(|row| row.kind)
    }

    /// The number in files.
    #[must_use]
    pub fn number(self) -> u32 {
        self.row().number
    }

    /// The name that ggml gives it, such as `Q4_K`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the number of numbers that a block has.
    #[must_use]
    pub fn block(self) -> usize {
        self.row().block.0
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(self) -> usize {
        self.row().block.1
    }

    /// Bytes of a row of this many numbers; `None` if they are no whole blocks, or too many.
    #[must_use]
    pub fn row_bytes(self, numbers: usize) -> Option<usize> {
        let (block, bytes) = self.row().block;
        let blocks = numbers.checked_div(block).filter(|_| numbers.is_multiple_of(block));
        blocks.and_then(|blocks| blocks.checked_mul(bytes))
    }

    /// The type of the elements, where every number has bytes of its own.
    #[must_use]
    pub fn data_type(self) -> Option<DataType> {
        match self.row().form {
            BlockForm::Plain(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// Returns the format of the codes, for quantized types that can be taken apart here.
    #[must_use]
    pub fn code_format(self) -> Option<CodeFormat> {
        match self.row().form {
            BlockForm::Coded(format) => Some(format),
            _ => None,
        }
    }
}

/// Where a block has the FP16 values that its scales and offsets are whole multiples of, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SuperScalePlaces {
    pub(crate) scale: usize,
    pub(crate) minimum: Option<usize>,
}

impl GgmlType {
    /// Returns whether scales and offsets are FP16 in the file, and nothing else makes them.
    pub(crate) fn has_half_scales(self) -> bool {
        use GgmlType as Of;
        matches!(self, Of::Q4_0 | Of::Q4_1 | Of::Q5_0 | Of::Q5_1 | Of::Q8_0 | Of::Q8_1 | Of::Iq4Nl)
    }

    /// For types whose blocks have scales of few bits. Source: `ggml-common.h` of ggml.
    pub(crate) fn super_scales(self) -> Option<SuperScalePlaces> {
        let (scale, minimum) = match self {
            Self::Q2K => (80, Some(82)),
            Self::Q3K => (108, None),
            Self::Q4K | Self::Q5K => (0, Some(2)),
            Self::Q6K => (208, None),
            Self::Iq4Xs => (0, None),
            _ => return None,
        };
        Some(SuperScalePlaces { scale, minimum })
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_of_one_type_each() {
        let all: Vec<GgmlType> = GgmlType::all().collect();
        for kind in &all {
            assert_eq!(kind.row().kind, *kind);
            assert_eq!(GgmlType::from_number(kind.number()), Some(*kind));
            assert_eq!(all.iter().filter(|other| other.name() == kind.name()).count(), 1);
            if let Some(dtype) = kind.data_type() {
                assert_eq!(dtype.size_bytes(), Some(kind.block_bytes()));
            }
            if let Some(format) = kind.code_format() {
                assert!(kind.block().is_multiple_of(format.block()));
            }
        }
        assert_eq!(all.len(), 34);
        assert_eq!(GgmlType::from_number(4), None);
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(GgmlType::Q4K.row_bytes(512), Some(288));
        assert_eq!(GgmlType::Q4K.row_bytes(128), None);
        assert_eq!(GgmlType::F64.row_bytes(usize::MAX), None);
        assert_eq!(GgmlType::Q8_0.row_bytes(0), Some(0));
    }
}
