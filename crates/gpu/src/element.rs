//! Elements as shaders read, compute and write them: four at a time, whatever their type.
//!
//! A thread's unit is a quad, four elements that follow each other: a vector of floats or 32-bit integers,
//! one word of bytes, four integers of 64 bits. So a word of an output has one writer.

pub(crate) mod functions;

use galatea_tensor::DataType;

use crate::device::KernelShader;
use crate::kernel::{GpuNodeView, param};
use functions::with_functions;

/// Kind of number that shaders compute with, in vectors of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ShaderKind {
    /// FP32 and FP16, as `f32`.
    Float,
    /// INT32 and INT8, as `i32`.
    Signed,
    /// UINT32 and UINT8, as `u32`.
    Unsigned,
    /// BOOL, as `bool`.
    Truth,
    /// INT64, as `i64`.
    Wide,
}

impl ShaderKind {
    /// The kind of a type's elements, where the device computes with such.
    ///
    /// # Errors
    /// Fails when it does not.
    pub(crate) fn of(view: &GpuNodeView<'_>, dtype: DataType) -> Result<Self, String> {
        match dtype {
            DataType::Fp32 => Ok(Self::Float),
            DataType::Fp16 if view.device.capabilities().f16 => Ok(Self::Float),
            DataType::Int64 if view.device.capabilities().int64 => Ok(Self::Wide),
            DataType::Int32 | DataType::Int8 => Ok(Self::Signed),
            DataType::Uint32 | DataType::Uint8 => Ok(Self::Unsigned),
            DataType::Bool => Ok(Self::Truth),
            other => Err(format!("shaders of this device do not compute with {other}")),
        }
    }

    /// The type of one element in WGSL.
    pub(crate) fn scalar(self) -> &'static str {
        match self {
            Self::Float => "f32",
            Self::Signed => "i32",
            Self::Unsigned => "u32",
            Self::Truth => "bool",
            Self::Wide => "i64",
        }
    }

    /// The type of four of them.
    pub(crate) fn vector(self) -> String {
        format!("vec4<{}>", self.scalar())
    }

    /// Four times a literal.
    pub(crate) fn splat(self, literal: &str) -> String {
        format!("{}({literal})", self.vector())
    }
}

/// The declaration of a binding whose elements are of this type.
///
/// # Errors
/// Fails when shaders have no such elements.
pub(crate) fn declare(binding: usize, name: &str, dtype: DataType) -> Result<String, String> {
    let array = match dtype {
        DataType::Fp32 => "vec4<f32>",
        DataType::Fp16 => "vec4<f16>",
        DataType::Int32 => "vec4<i32>",
        DataType::Uint32 => "vec4<u32>",
        DataType::Int64 => "i64",
        DataType::Int8 | DataType::Uint8 | DataType::Bool => "u32",
        other => return Err(format!("{other} is no element of shaders")),
    };
    Ok(format!("@group(0) @binding({binding}) var<storage, read_write> {name}: array<{array}>;\n"))
}

/// The expression of the quad with number `at`, computed as `ShaderKind`.
pub(crate) fn load_quad(name: &str, dtype: DataType, at: &str) -> String {
    match dtype {
        DataType::Fp32 | DataType::Int32 | DataType::Uint32 => format!("{name}[{at}]"),
        DataType::Fp16 => format!("vec4<f32>({name}[{at}])"),
        DataType::Int8 => format!("signed_bytes({name}[{at}])"),
        DataType::Uint8 => format!("bytes({name}[{at}])"),
        DataType::Bool => format!("(bytes({name}[{at}]) != vec4<u32>())"),
        _ => {
            let lane = |lane: usize| format!("{name}[({at}) * 4u + {lane}u]");
            format!("vec4<i64>({}, {}, {}, {})", lane(0), lane(1), lane(2), lane(3))
        }
    }
}

/// The expression of the element with number `at`, computed as `ShaderKind`.
pub(crate) fn load(name: &str, dtype: DataType, at: &str) -> String {
    match dtype {
        DataType::Fp32 | DataType::Int32 | DataType::Uint32 => {
            format!("{name}[({at}) / 4u][({at}) % 4u]")
        }
        DataType::Fp16 => format!("f32({name}[({at}) / 4u][({at}) % 4u])"),
        DataType::Int8 => format!("signed_byte({name}[({at}) / 4u], {at})"),
        DataType::Uint8 => format!("byte({name}[({at}) / 4u], {at})"),
        DataType::Bool => format!("(byte({name}[({at}) / 4u], {at}) != 0u)"),
        _ => format!("{name}[{at}]"),
    }
}

/// The statement that writes a quad; `count` is how many elements there are in all.
pub(crate) fn store_quad(
    name: &str,
    dtype: DataType,
    at: &str,
    value: &str,
    count: &str,
) -> String {
    match dtype {
        DataType::Fp32 | DataType::Int32 | DataType::Uint32 => format!("{name}[{at}] = {value};\n"),
        DataType::Fp16 => format!("{name}[{at}] = vec4<f16>({value});\n"),
        DataType::Int8 => format!("{name}[{at}] = packed(bitcast<vec4<u32>>({value}));\n"),
        DataType::Uint8 => format!("{name}[{at}] = packed({value});\n"),
        DataType::Bool => {
            format!("{name}[{at}] = packed(select(vec4<u32>(), vec4<u32>(1u), {value}));\n")
        }
        _ => {
            let lane = |lane: usize| {
                format!(
                    "if ({at}) * 4u + {lane}u < {count} {{ {name}[({at}) * 4u + {lane}u] = {value}[{lane}]; }}\n"
                )
            };
            (0..4).map(lane).collect()
        }
    }
}

/// The parameters of a dispatch, collected while the text is written that reads them: the text names
/// places, the values come with the dispatch.
#[derive(Debug, Default)]
pub(crate) struct DispatchParams(Vec<u32>);

impl DispatchParams {
    /// Adds a length and gives the expression that reads it.
    ///
    /// # Errors
    /// Fails when it is beyond 32 bits.
    pub(crate) fn length(&mut self, length: usize) -> Result<String, String> {
        Ok(self.word(param(length)?))
    }

    /// Adds a word and gives the expression that reads it.
    pub(crate) fn word(&mut self, word: u32) -> String {
        let at = self.0.len();
        self.0.push(word);
        format!("params.v[{}].{}", at / 4, ["x", "y", "z", "w"][at % 4])
    }

    /// Adds a float and gives the expression that reads it.
    pub(crate) fn float(&mut self, value: f32) -> String {
        format!("bitcast<f32>({})", self.word(value.to_bits()))
    }

    /// Adds a difference of positions and gives the expression that reads it: added to a position, it
    /// goes round where it is negative.
    ///
    /// # Errors
    /// Fails when it is beyond 32 bits.
    pub(crate) fn step(&mut self, step: isize) -> Result<String, String> {
        let step =
            i32::try_from(step).map_err(|_| format!("a step of {step} is beyond 32 bits"))?;
        Ok(self.word(step.cast_unsigned()))
    }

    /// The declaration of the parameters.
    pub(crate) fn declare(&self, binding: usize) -> String {
        let count = self.0.len().div_ceil(4).max(1);
        format!(
            "struct Params {{ v: array<vec4<u32>, {count}> }}\n\
             @group(0) @binding({binding}) var<uniform> params: Params;\n"
        )
    }

    /// The values.
    pub(crate) fn into_params(mut self) -> Vec<u32> {
        self.0.resize(self.0.len().next_multiple_of(4).max(4), 0);
        self.0
    }
}

/// A kernel of this text, with the functions that it calls and the extension that it needs.
pub(crate) fn shader(name: &str, text: &str) -> KernelShader {
    let text = with_functions(text);
    let extension = if text.contains("f16") { "enable f16;\n" } else { "" };
    KernelShader::new(name, format!("{extension}{text}"))
}

/// Threads of a workgroup of kernels whose threads do not work together.
pub(crate) const THREADS: usize = 256;

/// The head of a kernel with a thread for each `at` below `count`.
pub(crate) fn entry(count: &str) -> String {
    format!(
        "@compute @workgroup_size({THREADS})\n\
         fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{\n\
         let at = (group.x + group.y * groups.x) * {THREADS}u + lane;\n\
         if at >= {count} {{ return; }}\n"
    )
}
