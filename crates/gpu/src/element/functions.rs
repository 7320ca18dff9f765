//! WGSL functions that kernels call, and ONNX's functions in terms of them.

use galatea_graph::ops::activation::ActivationKind;
use galatea_graph::ops::fused::ElementFunction;
use galatea_graph::ops::math::{BinaryKind, UnaryKind, VariadicKind};

use super::ShaderKind;

const TEXT: &str = include_str!("functions.wgsl");

/// A kernel's text with the functions that it calls in front of it, and those that they call.
pub(crate) fn with_functions(body: &str) -> String {
    let parts: Vec<(&str, &str)> =
        TEXT.split("//# ").filter_map(|part| part.split_once('\n')).collect();
    let mut called = vec![false; parts.len()];
    let calls = |text: &str, name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let whole = before.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            whole && text[at + name.len()..].starts_with('(')
        })
    };
    // A function calls those above it only.
    for at in (0..parts.len()).rev() {
        let below = (at + 1..parts.len()).filter(|&other| called[other]);
        called[at] = calls(body, parts[at].0)
            || below.into_iter().any(|other| calls(parts[other].1, parts[at].0));
    }
    let used = parts.iter().zip(&called).filter(|(_, called)| **called);
    let mut text: String = used.map(|((_, part), _)| *part).collect();
    text.push_str(body);
    text
}

/// `function(x)` of four floats.
pub(crate) fn unary(kind: UnaryKind, x: &str) -> Option<String> {
    let call = |name: &str| Some(format!("{name}({x})"));
    match kind {
        UnaryKind::Neg => Some(format!("-({x})")),
        UnaryKind::Abs => call("abs"),
        UnaryKind::Sqrt => call("sqrt"),
        UnaryKind::Exp => call("exp4"),
        UnaryKind::Log => call("log4"),
        UnaryKind::Erf => call("erf4"),
        UnaryKind::Reciprocal => Some(format!("1.0 / {x}")),
        UnaryKind::Floor => call("floor"),
        UnaryKind::Ceil => call("ceil"),
        UnaryKind::Round => call("round"),
        UnaryKind::Sign => call("sign4"),
        UnaryKind::Sin => Some(format!("sine4({x}, 0)")),
        UnaryKind::Cos => Some(format!("sine4({x}, 1)")),
        UnaryKind::Tan => call("tan4"),
        UnaryKind::Asin => call("asin4"),
        UnaryKind::Acos => call("acos4"),
        UnaryKind::Atan => call("atan4"),
        UnaryKind::Sinh => call("sinh4"),
        UnaryKind::Cosh => Some(format!("0.5 * (exp4({x}) + exp4(-({x})))")),
        UnaryKind::Asinh => call("asinh4"),
        UnaryKind::Acosh => Some(format!("log4({x} + sqrt(({x} - 1.0) * ({x} + 1.0)))")),
        UnaryKind::Atanh => call("atanh4"),
        UnaryKind::BitwiseNot => None,
    }
}

/// `function(x)` of four floats; `x` is a name.
pub(crate) fn activation(kind: ActivationKind, x: &str) -> String {
    let zero = "vec4<f32>(0.0)";
    // A NaN is not below 0, so it stays.
    let below = |other: &str| format!("select({x}, {other}, {x} < {zero})");
    let clamp01 = |inner: &str| format!("kept_nan4(clamp({inner}, {zero}, vec4<f32>(1.0)), {x})");
    match kind {
        ActivationKind::Relu => below(zero),
        ActivationKind::LeakyRelu { alpha } => below(&format!("{x} * {alpha:?}f")),
        ActivationKind::Elu { alpha } => below(&format!("{alpha:?}f * expm14({x})")),
        ActivationKind::Celu { alpha } => below(&format!("{alpha:?}f * expm14({x} / {alpha:?}f)")),
        ActivationKind::Selu { alpha, gamma } => {
            format!("{gamma:?}f * ({})", below(&format!("{alpha:?}f * expm14({x})")))
        }
        ActivationKind::Sigmoid => format!("sigmoid4({x})"),
        ActivationKind::HardSigmoid { alpha, beta } => {
            clamp01(&format!("{x} * {alpha:?}f + {beta:?}f"))
        }
        ActivationKind::HardSwish => {
            format!("{x} * clamp({x} * (1.0 / 6.0) + 0.5, {zero}, vec4<f32>(1.0))")
        }
        ActivationKind::Tanh => format!("tanh4({x})"),
        ActivationKind::Softplus => format!("softplus4({x})"),
        ActivationKind::Softsign => format!("{x} / (1.0 + abs({x}))"),
        ActivationKind::ThresholdedRelu { alpha } => {
            format!("select({zero}, {x}, {x} > vec4<f32>({alpha:?}f))")
        }
        ActivationKind::Gelu { tanh: false } => format!("gelu4({x})"),
        ActivationKind::Gelu { tanh: true } => format!("gelu_tanh4({x})"),
        ActivationKind::Mish => format!("{x} * tanh4(softplus4({x}))"),
        ActivationKind::Swish { alpha } => format!("{x} * sigmoid4({alpha:?}f * {x})"),
        ActivationKind::Shrink { bias, lambda } => format!(
            "select(select({zero}, {x} - {bias:?}f, {x} > vec4<f32>({lambda:?}f)), {x} + {bias:?}f, {x} < vec4<f32>(-({lambda:?}f)))"
        ),
    }
}

/// `function(a, b)` of four floats; `a` and `b` are names.
pub(crate) fn binary(kind: BinaryKind, a: &str, b: &str) -> Option<String> {
    match kind {
        BinaryKind::Add => Some(format!("{a} + {b}")),
        BinaryKind::Sub => Some(format!("{a} - {b}")),
        BinaryKind::Mul => Some(format!("{a} * {b}")),
        BinaryKind::Div => Some(format!("{a} / {b}")),
        BinaryKind::Mod { fmod: true } => Some(format!("c_remainder4({a}, {b})")),
        BinaryKind::Mod { fmod: false } => Some(format!("floor_remainder4({a}, {b})")),
        _ => None,
    }
}

/// The fold of a variadic function of four floats.
pub(crate) fn variadic(kind: VariadicKind, a: &str, b: &str) -> String {
    match kind {
        VariadicKind::Min => format!("min4({a}, {b})"),
        VariadicKind::Max => format!("max4({a}, {b})"),
        VariadicKind::Sum | VariadicKind::Mean => format!("{a} + {b}"),
    }
}

/// A function of a chain.
pub(crate) fn element(function: ElementFunction, a: &str, b: &str) -> Option<String> {
    match function {
        ElementFunction::Unary(kind) => unary(kind, a),
        ElementFunction::Activation(kind) => Some(activation(kind, a)),
        ElementFunction::Clip { min, max } => Some(clip(a, min, max)),
        ElementFunction::Binary(kind) => binary(kind, a, b),
        ElementFunction::Variadic(kind) => Some(variadic(kind, a, b)),
        ElementFunction::Pow => Some(format!("power4({a}, {b})")),
    }
}

/// `x` within bounds, which may be infinite; a NaN stays.
pub(crate) fn clip(x: &str, min: f32, max: f32) -> String {
    let mut text = x.to_owned();
    if min.is_finite() {
        text = format!("select({text}, vec4<f32>({min:?}f), {x} < vec4<f32>({min:?}f))");
    }
    if max.is_finite() {
        text = format!("select({text}, vec4<f32>({max:?}f), {x} > vec4<f32>({max:?}f))");
    }
    text
}

/// A function of one integer.
pub(crate) fn integer_unary(kind: UnaryKind, of: ShaderKind, x: &str) -> Option<String> {
    let zero = of.splat("0");
    match (kind, of) {
        (UnaryKind::BitwiseNot, ShaderKind::Signed | ShaderKind::Unsigned) => Some(format!("~{x}")),
        (UnaryKind::Abs | UnaryKind::Neg | UnaryKind::Sign, ShaderKind::Truth) => None,
        (UnaryKind::Abs, ShaderKind::Unsigned) => Some(x.to_owned()),
        (UnaryKind::Abs, _) => Some(format!("select({x}, {zero} - {x}, {x} < {zero})")),
        (UnaryKind::Neg, _) => Some(format!("{zero} - {x}")),
        (UnaryKind::Sign, ShaderKind::Unsigned) => {
            Some(format!("select({}, {zero}, {x} == {zero})", of.splat("1")))
        }
        (UnaryKind::Sign, _) => Some(format!(
            "select(select({zero}, {}, {x} > {zero}), {}, {x} < {zero})",
            of.splat("1"),
            of.splat("-1")
        )),
        _ => None,
    }
}

/// A function of two integers.
pub(crate) fn integer_binary(kind: BinaryKind, of: ShaderKind, a: &str, b: &str) -> Option<String> {
    let zero = of.splat("0");
    match kind {
        BinaryKind::Add => Some(format!("{a} + {b}")),
        BinaryKind::Sub => Some(format!("{a} - {b}")),
        BinaryKind::Mul => Some(format!("{a} * {b}")),
        BinaryKind::Div => Some(format!("{a} / {b}")),
        BinaryKind::Mod { fmod: true } => Some(format!("{a} % {b}")),
        BinaryKind::Mod { .. } if of == ShaderKind::Unsigned => Some(format!("{a} % {b}")),
        BinaryKind::Mod { .. } => Some(format!(
            "select({a} % {b}, {a} % {b} + {b}, ({a} % {b} != {zero}) & (({a} % {b} < {zero}) != ({b} < {zero})))"
        )),
        BinaryKind::BitShift { left } if of == ShaderKind::Unsigned => {
            let operator = if left { "<<" } else { ">>" };
            Some(format!(
                "select({zero}, {a} {operator} min({b}, vec4<u32>(31u)), {b} < vec4<u32>(32u))"
            ))
        }
        BinaryKind::BitShift { .. } => None,
        _ if of == ShaderKind::Wide => None,
        BinaryKind::BitwiseAnd => Some(format!("{a} & {b}")),
        BinaryKind::BitwiseOr => Some(format!("{a} | {b}")),
        BinaryKind::BitwiseXor => Some(format!("{a} ^ {b}")),
    }
}

/// The greater or the smaller of two integers.
pub(crate) fn integer_variadic(kind: VariadicKind, a: &str, b: &str) -> Option<String> {
    match kind {
        VariadicKind::Min => Some(format!("select({a}, {b}, {b} < {a})")),
        VariadicKind::Max => Some(format!("select({a}, {b}, {b} > {a})")),
        VariadicKind::Sum => Some(format!("{a} + {b}")),
        VariadicKind::Mean => None,
    }
}

/// Elements of one kind as another.
pub(crate) fn converted(from: ShaderKind, to: ShaderKind, x: &str) -> String {
    let zero = from.splat("0");
    match (from, to) {
        (from, to) if from == to => x.to_owned(),
        (ShaderKind::Float, ShaderKind::Signed) => format!("to_signed4({x})"),
        (ShaderKind::Float, ShaderKind::Unsigned) => format!("bitcast<vec4<u32>>(to_signed4({x}))"),
        (ShaderKind::Float, ShaderKind::Wide) => format!("to_wide4({x})"),
        // A NaN is not 0.
        (ShaderKind::Float, ShaderKind::Truth) => {
            format!("((bitcast<vec4<u32>>({x}) & vec4<u32>(0x7fffffffu)) != vec4<u32>())")
        }
        (_, ShaderKind::Truth) => format!("({x} != {zero})"),
        (ShaderKind::Truth, to) => format!("select({}, {}, {x})", to.splat("0"), to.splat("1")),
        (ShaderKind::Signed, ShaderKind::Unsigned) => format!("bitcast<vec4<u32>>({x})"),
        (ShaderKind::Unsigned, ShaderKind::Signed) => format!("bitcast<vec4<i32>>({x})"),
        (_, to) => format!("{}({x})", to.vector()),
    }
}

#[cfg(test)]
mod tests {
    use super::TEXT;

    #[test]
    fn no_function_chooses_a_nan_between_floats() {
        // Between integers it is safe.
        let float = |line: &&str| line.contains("select(") && !line.contains("select(full, vec4<i");
        let chosen = TEXT.lines().filter(float).find(|line| line.contains("is_nan("));
        assert_eq!(chosen, None);
        let uses = TEXT.matches("kept_nan4(").count();
        assert!(uses > 10, "{uses}");
    }
}
