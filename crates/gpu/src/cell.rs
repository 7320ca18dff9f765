//! Elements that kernels only move: of 1, 2, 4 or 8 bytes, whatever they mean.
//!
//! Floats may change between FP32 and FP16 on the way; anything else keeps its bits.

use galatea_tensor::DataType;

use crate::element;
use crate::kernel::GpuNodeView;

/// Storage form of an element that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementCell {
    /// FP32, as `f32`.
    Float,
    /// FP16, as `f32`.
    Half,
    /// Four bytes, as `u32`.
    Word,
    /// A byte, as `u32`.
    Byte,
    /// Two bytes, as `u32`.
    Short,
    /// Eight bytes, as two words.
    Pair,
}

impl ElementCell {
    /// Returns the cell of a type, in a kernel that moves elements from one type to another.
    ///
    /// # Errors
    /// Fails when shaders cannot move them.
    pub(crate) fn of(own: DataType, other: DataType) -> Result<Self, String> {
        let float = |dtype: DataType| matches!(dtype, DataType::Fp32 | DataType::Fp16);
        match own {
            DataType::Fp32 => Ok(Self::Float),
            // Bits need not be understood where they stay the same.
            DataType::Fp16 if other == own => Ok(Self::Short),
            DataType::Fp16 => Ok(Self::Half),
            _ if own != other || float(own) => Err(format!("{own} does not become {other}")),
            _ => match own.size_bytes() {
                Some(1) => Ok(Self::Byte),
                Some(2) => Ok(Self::Short),
                Some(4) => Ok(Self::Word),
                Some(8) => Ok(Self::Pair),
                _ => Err(format!("shaders do not move {own}")),
            },
        }
    }

    /// Checks that nodes on such elements can be taken.
    ///
    /// # Errors
    /// Fails when they cannot.
    pub(crate) fn supports(view: &GpuNodeView<'_>, dtype: DataType) -> Result<(), String> {
        if dtype == DataType::Fp16 && !view.device.capabilities().f16 {
            return Err("this device has no FP16".into());
        }
        Self::of(dtype, dtype).map(|_| ())
    }

    /// The type in which an element travels.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Float | Self::Half => "f32",
            Self::Word | Self::Byte | Self::Short => "u32",
            Self::Pair => "vec2<u32>",
        }
    }

    /// Returns the element type of the array.
    fn array(self) -> &'static str {
        match self {
            Self::Float => "vec4<f32>",
            Self::Half => "vec4<f16>",
            Self::Word => "vec4<u32>",
            Self::Byte => "u32",
            Self::Short | Self::Pair => "vec2<u32>",
        }
    }

    /// The declaration of a binding of such elements.
    pub(crate) fn declare(self, binding: usize, name: &str) -> String {
        let array = self.array();
        format!("@group(0) @binding({binding}) var<storage, read_write> {name}: array<{array}>;\n")
    }

    /// The expression of the element with number `at`.
    pub(crate) fn load(self, name: &str, at: &str) -> String {
        match self {
            Self::Float => element::load(name, DataType::Fp32, at),
            Self::Half => element::load(name, DataType::Fp16, at),
            Self::Word => element::load(name, DataType::Uint32, at),
            Self::Byte => element::load(name, DataType::Uint8, at),
            Self::Short => format!(
                "((({name}[({at}) / 4u][(({at}) / 2u) % 2u]) >> ((({at}) % 2u) * 16u)) & 65535u)"
            ),
            Self::Pair => format!("{name}[{at}]"),
        }
    }

    /// The statements that write four elements, `v0` to `v3`, as the quad `at` of `count` elements.
    pub(crate) fn store_quad(self, name: &str, at: &str, count: &str) -> String {
        match self {
            Self::Float | Self::Word => {
                format!("{name}[{at}] = vec4<{}>(v0, v1, v2, v3);\n", self.value())
            }
            Self::Half => format!("{name}[{at}] = vec4<f16>(vec4<f32>(v0, v1, v2, v3));\n"),
            Self::Byte => format!("{name}[{at}] = v0 | (v1 << 8u) | (v2 << 16u) | (v3 << 24u);\n"),
            Self::Short => {
                format!("{name}[{at}] = vec2<u32>(v0 | (v1 << 16u), v2 | (v3 << 16u));\n")
            }
            Self::Pair => {
                let lane = |lane: usize| {
                    let index = format!("({at}) * 4u + {lane}u");
                    format!("if {index} < {count} {{ {name}[{index}] = v{lane}; }}\n")
                };
                (0..4).map(lane).collect()
            }
        }
    }

    /// Returns whether an element can be written without its neighbours.
    pub(crate) fn is_whole(self) -> bool {
        !matches!(self, Self::Byte | Self::Short)
    }

    /// The statement that writes one element, for those that [are whole](Self::is_whole).
    pub(crate) fn store(self, name: &str, at: &str, value: &str) -> String {
        match self {
            Self::Pair => format!("{name}[{at}] = {value};\n"),
            Self::Half => format!("{name}[({at}) / 4u][({at}) % 4u] = f16({value});\n"),
            _ => format!("{name}[({at}) / 4u][({at}) % 4u] = {value};\n"),
        }
    }
}

/// Storage forms of elements that move from one value to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellPair {
    /// Form in the source.
    pub(crate) from: ElementCell,
    /// Form in the result.
    pub(crate) to: ElementCell,
}

impl CellPair {
    /// Halves as floats, which are written without their neighbours.
    pub(crate) const HALVES: Self = Self { from: ElementCell::Half, to: ElementCell::Half };

    /// Returns the cells for elements that move from one type to another.
    ///
    /// # Errors
    /// Returns the same errors as [`ElementCell::of`].
    pub(crate) fn of(from: DataType, to: DataType) -> Result<Self, String> {
        Ok(Self { from: ElementCell::of(from, to)?, to: ElementCell::of(to, from)? })
    }

    /// The statement that copies the quad `source` of `x` to the quad `at` of `y`, where both forms allow it.
    pub(crate) fn copy_quad(self, source: &str, at: &str) -> String {
        match (self.from, self.to) {
            (ElementCell::Half, ElementCell::Float) => {
                format!("y[{at}] = vec4<f32>(x[{source}]);\n")
            }
            (ElementCell::Float, ElementCell::Half) => {
                format!("y[{at}] = vec4<f16>(x[{source}]);\n")
            }
            (ElementCell::Pair, _) => (0..4)
                .map(|lane| format!("y[{at} * 4u + {lane}u] = x[{source} * 4u + {lane}u];\n"))
                .collect(),
            _ => format!("y[{at}] = x[{source}];\n"),
        }
    }
}
