//! Constants that FP16 has no number for: they make islands of FP32 of the nodes that compute with them.

use galatea_graph::ops::normalize::BatchNormalization;
use galatea_graph::{Node, converted};
use galatea_tensor::{DataType, Tensor, f16};

use super::{GraphRanges, LARGEST, growth};

/// Magnitudes from here on, below zero, are those of masks: what FP16 has in their place hides as well.
const MASK: f64 = -1e8;

/// The most that rounding to FP16 may take of a constant as a whole.
const LOSS: f64 = 1.0 / 256.0;

/// Magnitudes of which FP16 loses more than that whatever their digits are.
pub(super) const SMALL: f64 = 7.6e-6;

/// Elements of a large constant that are looked at: every so many.
const LOOKED_AT: usize = 1 << 14;

/// Faults of a constant in FP16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConstantFit {
    /// True if it has elements beyond FP16 that are no mask.
    pub(super) large: bool,
    /// True if FP16 loses too many of its digits, as its elements are next to nothing.
    pub(super) small: bool,
}

/// Looks at the elements of a constant of floats.
pub(super) fn fit_of(tensor: &Tensor) -> ConstantFit {
    let all = sample(tensor).unwrap_or_default();
    let large =
        |value: f64| value.is_finite() && (value > LARGEST || value < -LARGEST && value > MASK);
    let mut energy = 0.0;
    let mut loss = 0.0;
    for value in all.iter().copied().filter(|value| value.abs() <= LARGEST) {
        energy += value * value;
        loss += (value - f16::from_f64(value).to_f64()).powi(2);
    }
    ConstantFit { large: all.iter().copied().any(large), small: loss > energy * LOSS * LOSS }
}

/// The elements, of a large constant every so many of them.
fn sample(tensor: &Tensor) -> Option<Vec<f64>> {
    if !tensor.dtype().is_float() {
        return None;
    }
    if tensor.dtype() == DataType::Fp32
        && let Ok(all) = tensor.as_slice::<f32>()
    {
        let step = all.len().div_ceil(LOOKED_AT).max(1);
        return Some(all.iter().step_by(step).copied().map(f64::from).collect());
    }
    if tensor.elements() > LOOKED_AT {
        return None;
    }
    converted(&tensor.contiguous().ok()?, DataType::Fp64).ok()?.to_vec().ok()
}

/// Operators that a small sum or limit matters to: it keeps them from infinities.
const GUARDED: &[&str] = &["Sqrt", "Log", "Div", "Reciprocal", "Pow"];

/// Effect of constants on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConstantEffect {
    /// True if FP16 does not hold what it computes with.
    pub(super) wide: bool,
    /// True if its result may be beyond FP16.
    pub(super) large: bool,
    /// True if its result may be so small that FP16 loses its digits.
    pub(super) small: bool,
}

impl ConstantEffect {
    fn or(self, other: Self) -> Self {
        Self {
            wide: self.wide || other.wide,
            large: self.large || other.large,
            small: self.small || other.small,
        }
    }

    fn wide() -> Self {
        Self { wide: true, ..Self::default() }
    }

    fn large() -> Self {
        Self { wide: true, large: true, small: false }
    }

    fn small() -> Self {
        Self { wide: true, large: false, small: true }
    }
}

/// Finds out what the constants that a node computes with make of it.
pub(super) fn effect_of(ranges: &GraphRanges<'_>, node: &Node) -> ConstantEffect {
    if let Some(operator) = node.operator::<BatchNormalization>() {
        let wide = of_batch(ranges, node, operator);
        return ConstantEffect { wide, ..ConstantEffect::default() };
    }
    let each = node.inputs.iter().enumerate();
    let constants = each.filter_map(|(at, id)| Some((at, ranges.known((*id)?)?)));
    let effects = constants.map(|(at, tensor)| {
        let fit = fit_of(tensor);
        match (fit.small, fit.large) {
            (true, _) => of_small(ranges, node, at, tensor),
            (_, true) => of_large(node, at),
            _ => ConstantEffect::default(),
        }
    });
    effects.fold(ConstantEffect::default(), ConstantEffect::or)
}

/// The effect of a constant that is next to nothing.
fn of_small(ranges: &GraphRanges<'_>, node: &Node, at: usize, tensor: &Tensor) -> ConstantEffect {
    match (node.op_type.as_str(), at) {
        ("Div", 1) => ConstantEffect::large(),
        ("Mul" | "Div" | "DequantizeLinear", _) => ConstantEffect::small(),
        ("QuantizeLinear" | "Pow", 1) => ConstantEffect::wide(),
        ("Add" | "Sub" | "Sum" | "Max" | "Clip", _) if tensor.elements() == 1 => {
            let guards = node.output(0).is_some_and(|id| growth::tamed(ranges, id, GUARDED));
            if guards { ConstantEffect::small() } else { ConstantEffect::default() }
        }
        // A bias is nothing beside what it is added to.
        ("MatMul" | "Gemm" | "FusedMatMul" | "Conv" | "ConvTranspose" | "Einsum", _)
            if tensor.rank() >= 2 =>
        {
            ConstantEffect::small()
        }
        _ => ConstantEffect::default(),
    }
}

/// The effect of a constant that FP16 does not hold.
fn of_large(node: &Node, at: usize) -> ConstantEffect {
    match (node.op_type.as_str(), at) {
        ("Div", 1) => ConstantEffect::small(),
        ("QuantizeLinear" | "Pow", 1) => ConstantEffect::wide(),
        (
            "Add" | "Sub" | "Sum" | "Mul" | "Div" | "DequantizeLinear" | "MatMul" | "Gemm"
            | "FusedMatMul" | "Conv" | "ConvTranspose" | "Einsum",
            _,
        ) => ConstantEffect::large(),
        _ => ConstantEffect::default(),
    }
}

/// Returns whether a normalization has statistics or factors that FP16 does not hold.
fn of_batch(ranges: &GraphRanges<'_>, node: &Node, operator: &BatchNormalization) -> bool {
    let all = |at: usize| sample(ranges.known(node.input(at)?)?);
    let (Some(scale), Some(bias), Some(mean), Some(variance)) = (all(1), all(2), all(3), all(4))
    else {
        return false;
    };
    let beyond = |value: &f64| value.abs() > LARGEST;
    let each = scale.iter().zip(&variance);
    let factors: Vec<f64> = each
        .map(|(scale, variance)| (scale / (variance + f64::from(operator.epsilon)).sqrt()).abs())
        .collect();
    let largest = factors.iter().copied().fold(0.0, f64::max);
    bias.iter().chain(&mean).any(beyond) || largest > LARGEST || largest > 0.0 && largest < SMALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fit_or_are_large_or_small() {
        let of = |all: &[f32]| fit_of(&Tensor::vector(all.to_vec()));
        let fits = ConstantFit::default();
        for all in [&[1.0, -3.0, 0.0][..], &[1e-5], &[0.0], &[1.0, 1e-9], &[f32::MIN, 0.0]] {
            assert_eq!(of(all), fits, "{all:?}");
        }
        for mask in [f32::NEG_INFINITY, -1e9, f32::INFINITY] {
            assert_eq!(of(&[mask]), fits, "{mask}");
        }
        for large in [1e5, -1e6, f32::MAX] {
            assert_eq!(of(&[large, 1.0]), ConstantFit { large: true, small: false }, "{large}");
        }
        for small in [1e-6, 1e-12, -3e-8] {
            assert_eq!(of(&[small, 0.0]), ConstantFit { large: false, small: true }, "{small}");
        }
        let many = vec![1e-9_f32; 3 * LOOKED_AT];
        assert!(of(&many).small && !of(&vec![0.1; 3 * LOOKED_AT]).small);
    }
}
