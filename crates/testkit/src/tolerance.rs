//! How exact a result must be, by the operators that made it.

use std::collections::BTreeSet;

use galatea_graph::{NumericClass, ops};
use galatea_tensor::{DataType, Tensor, Tolerance};

/// Units in the last place for transcendental functions: two of them within 2 of the true value, and as much again
/// for the products around them.
const TRANSCENDENTAL_ULP: u32 = 8;

/// The tolerance for one output of a model with these operators.
///
/// Sums are as long as the largest input at most. They are kept in the narrowest float type that
/// occurs: the expected values come from NumPy, which rounds after each step. Models of several
/// nodes (the expanded forms of functions) round at each node.
#[must_use]
pub fn tolerance(
    operators: &BTreeSet<String>,
    nodes: usize,
    inputs: &[Tensor],
    expected: &Tensor,
) -> Tolerance {
    let any = |class: NumericClass| operators.iter().any(|name| is_of(class, name));
    let transcendental = any(NumericClass::Transcendental);
    if any(NumericClass::Accumulating) || (nodes > 1 && transcendental) {
        let terms = inputs.iter().map(Tensor::elements).max().unwrap_or(1).max(nodes);
        let types = inputs.iter().chain([expected]).map(Tensor::dtype);
        let accumulator = types.filter(|dtype| dtype.is_float()).min_by_key(|dtype| rank(*dtype));
        return Tolerance::Accumulated {
            terms,
            accumulator: accumulator.unwrap_or(DataType::Fp32),
        };
    }
    if transcendental { Tolerance::Ulp(TRANSCENDENTAL_ULP) } else { Tolerance::Exact }
}

/// Returns whether an operator of any domain has this name and this class.
fn is_of(class: NumericClass, name: &str) -> bool {
    ops::all().any(|def| def.name == name && def.traits.numeric == class)
}

/// Float types by their precision.
fn rank(dtype: DataType) -> u8 {
    match dtype {
        DataType::Bf16 => 0,
        DataType::Fp16 => 1,
        DataType::Fp32 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operator: &str) -> Tolerance {
        let input = Tensor::vector(vec![0_f32; 100]);
        tolerance(&BTreeSet::from([operator.to_owned()]), 1, std::slice::from_ref(&input), &input)
    }

    #[test]
    fn moving_elements_is_exact_and_sums_grow_with_their_length() {
        assert_eq!(of("Transpose"), Tolerance::Exact);
        assert_eq!(of("Exp"), Tolerance::Ulp(TRANSCENDENTAL_ULP));
        let accumulator = DataType::Fp32;
        assert_eq!(of("MatMul"), Tolerance::Accumulated { terms: 100, accumulator });
    }
}
