//! Template context that describes a layout.

use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::layout::{CodeLayout, CodeShift, FactorLayout};

/// The type that shows a plane whose units have so many words.
pub(super) fn plane_type(words: usize) -> Option<&'static str> {
    match words {
        0 => None,
        1 => Some("u32"),
        2 => Some("vec2<u32>"),
        _ => Some("vec4<u32>"),
    }
}

fn float_name(dtype: DataType) -> &'static str {
    match dtype {
        DataType::Fp16 => "f16",
        DataType::Bf16 => "bf16",
        _ => "f32",
    }
}

/// Returns the bit positions of a group's codes in the words that shaders mask.
fn shifts(layout: &CodeLayout, group: usize) -> [u32; 4] {
    let first = if layout.bits == 4 && group % 2 == 1 { 4 } else { 0 };
    [first, first + 8, first, first + 8]
}

/// Four values as arguments.
fn four(values: [f32; 4]) -> String {
    values.map(|value| format!("{value:?}")).join(", ")
}

/// Returns whether numbers come out as multiples of their values, which a shader reverts.
pub(super) fn is_scaled(layout: &CodeLayout) -> bool {
    !layout.is_float() && !matches!(layout.shift, CodeShift::Table(_))
}

/// Returns the factors that turn the masked numbers of each group into their values.
pub(super) fn unscale(layout: &CodeLayout) -> Vec<String> {
    let of = |group: usize| match is_scaled(layout) {
        #[allow(clippy::cast_precision_loss, reason = "powers of two")]
        true => four(shifts(layout, group).map(|up| 1.0 / (1_u32 << up) as f32)),
        false => four([1.0; 4]),
    };
    (0..layout.groups()).map(of).collect()
}

/// Returns the context of the template part `codes`.
pub(super) fn codes(layout: &CodeLayout) -> Value {
    let [low, high] = layout.words().map(plane_type);
    let zero = match layout.shift {
        CodeShift::Zero(zero) => zero,
        _ => 0.0,
    };
    let mask: u32 = if layout.bits == 4 { 15 } else { 255 };
    let groups = 0..layout.groups();
    let masks = groups
        .clone()
        .map(|group| shifts(layout, group).map(|up| format!("{}u", mask << up)).join(", "));
    #[allow(clippy::cast_precision_loss, reason = "powers of two")]
    let zeros = groups.map(|group| {
        four(shifts(layout, group).map(|up| 8_388_608.0 + zero * (1_u32 << up) as f32))
    });
    let (factors, per_super) = match layout.factors {
        FactorLayout::Nothing => (None, 0),
        FactorLayout::Floats(dtype) => (Some(float_name(dtype)), 0),
        FactorLayout::Nested(numbers) => (Some("nested"), (numbers / layout.block.max(1)).ilog2()),
    };
    let table = match layout.shift {
        CodeShift::Table(table) => Some(table.map(|entry| format!("{entry:?}")).join(", ")),
        _ => None,
    };
    let float = match layout.shift {
        CodeShift::Float(dtype) => Some(float_name(dtype)),
        _ => None,
    };
    context!(
        low, high, factors, per_super, table, float,
        bits => layout.bits,
        groups => layout.groups(),
        unit => layout.unit(),
        masks => masks.collect::<Vec<_>>(),
        zeros => zeros.collect::<Vec<_>>(),
        pairs => layout.pairs(),
        zero_points => layout.shift == CodeShift::Zeros,
    )
}

/// Returns the factors that undo [`unscale`].
pub(super) fn restore(layout: &CodeLayout) -> Vec<String> {
    let of = |group: usize| match is_scaled(layout) {
        #[allow(clippy::cast_precision_loss, reason = "powers of two")]
        true => four(shifts(layout, group).map(|up| (1_u32 << up) as f32)),
        false => four([1.0; 4]),
    };
    (0..layout.groups()).map(of).collect()
}
