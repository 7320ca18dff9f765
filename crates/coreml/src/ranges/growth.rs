//! Values that exceed FP16 on their way to results which do not: squares on their way to a root, exponentials to a
//! logarithm or a quotient.

use galatea_graph::ops::math::{Unary, UnaryKind};
use galatea_graph::ops::reduce::{Reduce, ReduceKind};
use galatea_graph::{Node, ValueId};

use super::patterns::{moves, subtracts_extreme};
use super::{GraphRanges, LONG};

/// Operators that values pass on the way, and how many at most.
const PASSED: &[&str] = &["Add", "Sub", "Mul", "Sum", "Neg", "Identity", "Max", "Clip"];
const MAX_PASSED: usize = 6;

/// Returns whether a node gives what is larger than what it is made of, and is made small again.
pub(super) fn passes_large(ranges: &GraphRanges<'_>, node: &Node) -> bool {
    let Some(result) = node.output(0) else { return false };
    match node.op_type.as_str() {
        "CumSum" => {
            let lengths = node.input(0).and_then(|id| ranges.shape(id)).unwrap_or_default();
            lengths.into_iter().max().is_some_and(|length| length >= LONG)
        }
        "Exp" => !is_below_extreme(ranges, node) && tamed(ranges, result, &["Log", "Div"]),
        "Mul" | "Pow" if is_square(ranges, node) => {
            let sums = ranges.readers(result);
            let sums = sums.filter(|node| node.operator::<Reduce>().is_some()).count();
            sums > 0 || tamed(ranges, result, &["Sqrt"])
        }
        _ => false,
    }
}

/// Returns whether a node multiplies a value with itself.
fn is_square(ranges: &GraphRanges<'_>, node: &Node) -> bool {
    let number = |id: ValueId| {
        let found = ranges.known(id).filter(|tensor| tensor.elements() == 1)?;
        let wide = galatea_graph::converted(found, galatea_tensor::DataType::Fp64).ok()?;
        wide.to_vec::<f64>().ok()?.first().copied()
    };
    match node.op_type.as_str() {
        "Mul" => node.input(0).is_some() && node.input(0) == node.input(1),
        _ => node.input(1).and_then(number).is_some_and(|exponent| exponent >= 2.0),
    }
}

/// Returns whether a node's input is a value less its greatest element: its exponentials are 1 at most.
fn is_below_extreme(ranges: &GraphRanges<'_>, node: &Node) -> bool {
    let mut from = node.input(0).and_then(|id| ranges.producer(id));
    while let Some(found) = from.filter(|found| moves(found)) {
        from = found.input(0).and_then(|id| ranges.producer(id));
    }
    from.is_some_and(|node| subtracts_extreme(ranges, node))
}

/// Returns whether a value reaches one of some operators through sums and factors.
pub(super) fn tamed(ranges: &GraphRanges<'_>, value: ValueId, by: &[&str]) -> bool {
    let mut waiting = vec![(value, 0)];
    while let Some((id, passed)) = waiting.pop() {
        for node in ranges.readers(id) {
            if by.contains(&node.op_type.as_str()) {
                return true;
            }
            let sum = node
                .operator::<Reduce>()
                .is_some_and(|reduce| matches!(reduce.kind, ReduceKind::Sum | ReduceKind::Mean));
            let passes = sum
                || moves(node)
                || PASSED.contains(&node.op_type.as_str())
                || node.operator::<Unary>().is_some_and(|one| one.kind == UnaryKind::Neg);
            if let Some(next) = node.output(0).filter(|_| passes && passed < MAX_PASSED) {
                waiting.push((next, passed + 1));
            }
        }
    }
    false
}
