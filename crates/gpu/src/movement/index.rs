//! Positions that are values of a run.

use galatea_tensor::DataType;

use crate::kernel::GpuNodeView;

/// The type of positions, where a kernel can read them.
///
/// # Errors
/// Fails when the input is missing or of another type.
pub(super) fn supports(view: &GpuNodeView<'_>, index: usize) -> Result<(), String> {
    match view.input(index).map(|fact| fact.dtype) {
        Some(DataType::Int32 | DataType::Int64) => Ok(()),
        Some(other) => Err(format!("positions are {other}")),
        None => Err(format!("input {index} is missing")),
    }
}

/// The declaration of a binding of positions.
pub(super) fn declare(binding: usize, name: &str, dtype: DataType) -> String {
    let array = if dtype == DataType::Int64 { "vec2<u32>" } else { "u32" };
    format!("@group(0) @binding({binding}) var<storage, read_write> {name}: array<{array}>;\n")
}

/// The function `NAME_raw(i)`, which gives the number `i` of positions as it is.
pub(super) fn raw(name: &str, dtype: DataType) -> String {
    let word = if dtype == DataType::Int64 { ".x" } else { "" };
    format!("fn {name}_raw(i: u32) -> i32 {{ return bitcast<i32>({name}[i]{word}); }}\n")
}

/// The function `NAME_at(i, len)`, which gives the position with number `i` on an axis of length `len`;
/// one that counts from the end is turned round. What lies outside is an error of the model, which a
/// shader cannot tell: it reads the last element.
pub(super) fn reader(name: &str, dtype: DataType) -> String {
    let read = match dtype {
        // The upper half of a position that fits says nothing more than the sign.
        DataType::Int64 => format!("bitcast<i32>({name}[i].x)"),
        _ => format!("bitcast<i32>({name}[i])"),
    };
    format!(
        "fn {name}_at(i: u32, len: u32) -> u32 {{\nvar p = {read};\n\
         if p < 0 {{ p += i32(len); }}\nreturn u32(clamp(p, 0, i32(len) - 1));\n}}\n"
    )
}
