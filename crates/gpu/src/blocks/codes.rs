//! What templates are told of a layout.

use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::layout::{Factors, Layout, Shift};

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

/// How far up the codes of a group lie in the words that shaders mask.
fn shifts(layout: &Layout, group: usize) -> [u32; 4] {
    let first = if layout.bits == 4 && group % 2 == 1 { 4 } else { 0 };
    [first, first + 8, first, first + 8]
}

/// Four values as arguments.
fn four(values: [f32; 4]) -> String {
    values.map(|value| format!("{value:?}")).join(", ")
}

/// Whether numbers come out as multiples, which a shader takes back.
pub(super) fn is_scaled(layout: &Layout) -> bool {
    !layout.is_float() && !matches!(layout.shift, Shift::Table(_))
}

/// What the numbers of each group are multiplied by to be themselves.
pub(super) fn unscale(layout: &Layout) -> Vec<String> {
    let of = |group: usize| match is_scaled(layout) {
        #[allow(clippy::cast_precision_loss, reason = "powers of two")]
        true => four(shifts(layout, group).map(|up| 1.0 / (1_u32 << up) as f32)),
        false => four([1.0; 4]),
    };
    (0..layout.groups()).map(of).collect()
}

/// What the part `codes` is told.
pub(super) fn codes(layout: &Layout) -> Value {
    let [low, high] = layout.words().map(plane_type);
    let zero = match layout.shift {
        Shift::Zero(zero) => zero,
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
        Factors::Nothing => (None, 0),
        Factors::Floats(dtype) => (Some(float_name(dtype)), 0),
        Factors::Nested(numbers) => (Some("nested"), (numbers / layout.block.max(1)).ilog2()),
    };
    let table = match layout.shift {
        Shift::Table(table) => Some(table.map(|entry| format!("{entry:?}")).join(", ")),
        _ => None,
    };
    let float = match layout.shift {
        Shift::Float(dtype) => Some(float_name(dtype)),
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
        zero_points => layout.shift == Shift::Zeros,
    )
}

/// What undoes [`unscale`].
pub(super) fn restore(layout: &Layout) -> Vec<String> {
    let of = |group: usize| match is_scaled(layout) {
        #[allow(clippy::cast_precision_loss, reason = "powers of two")]
        true => four(shifts(layout, group).map(|up| (1_u32 << up) as f32)),
        false => four([1.0; 4]),
    };
    (0..layout.groups()).map(of).collect()
}
