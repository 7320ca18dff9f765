//! Functions of cells in WGSL.

use galatea_graph::ops::activation::ActivationKind;
use galatea_graph::ops::recurrent::CellActivation;

use super::node::RecurrentSpec;
use crate::element::functions;

/// Returns the constant as shaders have it.
#[allow(clippy::cast_possible_truncation, reason = "shaders compute in FP32")]
fn single(constant: f64) -> f32 {
    constant as f32
}

/// `function(x)` of four floats; `x` is a name.
fn activation(function: CellActivation, x: &str) -> String {
    let kind = match function {
        CellActivation::Relu => ActivationKind::Relu,
        CellActivation::Tanh => ActivationKind::Tanh,
        CellActivation::Sigmoid => ActivationKind::Sigmoid,
        CellActivation::LeakyRelu(alpha) => ActivationKind::LeakyRelu { alpha: single(alpha) },
        CellActivation::HardSigmoid(alpha, beta) => {
            ActivationKind::HardSigmoid { alpha: single(alpha), beta: single(beta) }
        }
        CellActivation::Elu(alpha) => ActivationKind::Elu { alpha: single(alpha) },
        CellActivation::Softsign => ActivationKind::Softsign,
        CellActivation::Softplus => ActivationKind::Softplus,
        CellActivation::Affine(alpha, beta) => {
            return format!("{x} * {:?}f + {:?}f", single(alpha), single(beta));
        }
        CellActivation::ScaledTanh(alpha, beta) => {
            return format!("{:?}f * tanh4({x} * {:?}f)", single(alpha), single(beta));
        }
        // Cells keep the threshold itself, unlike the operator of this name.
        CellActivation::ThresholdedRelu(alpha) => {
            return format!("select(vec4<f32>(0.0), {x}, {x} >= vec4<f32>({:?}f))", single(alpha));
        }
    };
    functions::activation(kind, x)
}

/// The functions of a layer's cells, `cell0` and so on, and `limited`, which keeps their arguments within bounds.
pub(super) fn text(layer: &RecurrentSpec) -> String {
    let bound = layer.attributes.clip.map_or(f32::INFINITY, single);
    let limited = functions::clip("x", -bound, bound);
    let mut text = format!("fn limited(x: vec4<f32>) -> vec4<f32> {{\n    return {limited};\n}}\n");
    let each = layer.cell.functions();
    for which in 0..each {
        let of = |pass: usize| {
            let function = layer.attributes.activations.get(pass * each + which);
            function.copied().unwrap_or(CellActivation::Tanh)
        };
        text.push_str(&format!("fn cell{which}(x: vec4<f32>, direction: u32) -> vec4<f32> {{\n"));
        if layer.passes() == 2 && of(0) != of(1) {
            text.push_str(&format!(
                "    if direction == 1u {{ return {}; }}\n",
                activation(of(1), "x")
            ));
        }
        text.push_str(&format!("    return {};\n}}\n", activation(of(0), "x")));
    }
    text
}
