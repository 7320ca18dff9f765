//! Bounds of products with constant matrices.

use galatea_graph::ops::fused::{FusedActivation, FusedMatMul};
use galatea_graph::{Node, converted};
use galatea_tensor::DataType;

use super::number_interval::NumberInterval;
use super::{GraphRanges, LARGEST};

/// Matrices of more elements are not looked at.
const LOOKED_AT: usize = 1 << 18;

/// How many deviations from what is expected a sum may be: more is nothing that data gives.
const DEVIATIONS: f64 = 4.0;

/// Sums over the columns of a matrix, the most of any of them.
#[derive(Clone, Copy, Debug, Default)]
struct ColumnSums {
    /// Magnitude of the sum.
    signed: f64,
    /// Sum of the magnitudes.
    magnitudes: f64,
    /// Root of the sum of squares.
    length: f64,
}

/// The interval of a product of a bounded value with a constant matrix. None where the sums exceed FP16 only if all terms
/// conspire: nothing is proven then.
pub(super) fn of_product(ranges: &GraphRanges<'_>, node: &Node) -> Option<NumberInterval> {
    let x = ranges.interval(node.input(0)?)?;
    let sums = columns(ranges, node)?;
    let most = x.largest() * sums.magnitudes;
    let expected = x.middle().abs() * sums.signed + x.radius() * sums.length * DEVIATIONS;
    let bound = NumberInterval::around(most)?;
    (most <= LARGEST || expected > LARGEST).then_some(bound)
}

/// The interval of a product with a bias and an activation.
pub(super) fn of_fused(
    ranges: &GraphRanges<'_>,
    node: &Node,
    operator: &FusedMatMul,
) -> Option<NumberInterval> {
    if operator.trans_b || node.input(3).is_some() {
        return None;
    }
    let product = of_product(ranges, node)?;
    let sum = match node.input(2) {
        None => product,
        Some(bias) => product.plus(ranges.interval(bias)?)?,
    };
    match operator.activation {
        FusedActivation::None => Some(sum),
        FusedActivation::Sigmoid => NumberInterval::new(0.0, 1.0),
        FusedActivation::Tanh => NumberInterval::around(1.0),
        // They give no more than they read, but for limits and slopes of any size.
        FusedActivation::Clip { .. } | FusedActivation::LeakyRelu { .. } => None,
        _ => NumberInterval::around(sum.largest()),
    }
}

fn columns(ranges: &GraphRanges<'_>, node: &Node) -> Option<ColumnSums> {
    let tensor = ranges.known(node.input(1)?)?;
    let &[rows, columns] = tensor.shape() else { return None };
    if rows * columns > LOOKED_AT || !tensor.dtype().is_float() {
        return None;
    }
    let wide = converted(&tensor.contiguous().ok()?, DataType::Fp64).ok()?;
    let all = wide.to_vec::<f64>().ok()?;
    let mut sums = vec![ColumnSums::default(); columns];
    for row in all.chunks(columns.max(1)) {
        for (sum, value) in sums.iter_mut().zip(row) {
            sum.signed += value;
            sum.magnitudes += value.abs();
            sum.length += value * value;
        }
    }
    let most = |of: fn(&ColumnSums) -> f64| sums.iter().map(of).fold(0.0, f64::max);
    Some(ColumnSums {
        signed: most(|sum| sum.signed.abs()),
        magnitudes: most(|sum| sum.magnitudes),
        length: most(|sum| sum.length.sqrt()),
    })
}
