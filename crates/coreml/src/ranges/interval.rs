//! Intervals that values lie in, whatever the inputs of a run are.

use galatea_graph::ops::activation::{Activation, ActivationKind};
use galatea_graph::ops::convolution::ConvInteger;
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::math::{Binary, BinaryKind, Clip, Unary, UnaryKind, Variadic};
use galatea_graph::ops::reduce::{Reduce, ReduceKind};
use galatea_graph::{Node, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::number_interval::NumberInterval;
use super::patterns::{moves, subtracts_extreme};
use super::{GraphRanges, LARGEST, products};

/// Values that a type of few bits holds.
pub(super) fn of_type(dtype: DataType) -> Option<NumberInterval> {
    match dtype {
        DataType::Bool => NumberInterval::new(0.0, 1.0),
        DataType::Int8 => NumberInterval::new(-128.0, 127.0),
        DataType::Uint8 => NumberInterval::new(0.0, 255.0),
        DataType::Int16 => NumberInterval::new(-32768.0, 32767.0),
        DataType::Uint16 => NumberInterval::new(0.0, 65535.0),
        _ => None,
    }
}

/// Constants of more elements are not looked at one by one: their type bounds them, or nothing.
const LOOKED_AT: usize = 1 << 16;

/// The values of a constant. Floats beyond FP16, such as the -3.4e38 of a mask, are what nobody counts with: a program
/// has the largest number of FP16 in their place.
#[allow(clippy::cast_precision_loss, reason = "a bound")]
pub(super) fn of_constant(tensor: &Tensor) -> Option<NumberInterval> {
    if tensor.elements() > LOOKED_AT {
        return of_type(tensor.dtype());
    }
    let all: Vec<f64> = match tensor.dtype() {
        DataType::Fp32 => tensor.to_vec::<f32>().ok()?.into_iter().map(f64::from).collect(),
        dtype if dtype.is_float() => {
            let wide = galatea_graph::converted(tensor, DataType::Fp64).ok()?;
            wide.to_vec::<f64>().ok()?
        }
        dtype if dtype.is_integer() => {
            tensor.to_i64_vec().ok()?.into_iter().map(|value| value as f64).collect()
        }
        dtype => return of_type(dtype),
    };
    let beyond = |value: &f64| !value.is_finite() || value.abs() > LARGEST;
    if tensor.dtype().is_float() && all.iter().any(beyond) {
        return None;
    }
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    NumberInterval::new(low, all.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// The interval that the first result of a node lies in; none where nothing is known.
pub(super) fn of_node(ranges: &GraphRanges<'_>, node: &Node) -> Option<NumberInterval> {
    if let Some(operator) = node.operator::<FusedMatMul>() {
        return products::of_fused(ranges, node, operator);
    }
    if !node.domain.is_empty() {
        return None;
    }
    let of = |at: usize| node.input(at).and_then(|id| ranges.interval(id));
    let name = node.op_type.as_str();
    if moves(node) {
        let zero = NumberInterval::new(0.0, 0.0)?;
        return of(0).map(|found| found.join(zero));
    }
    match name {
        "Cast" | "CastLike" => {
            let to = node.output(0).and_then(|id| ranges.dtype(id))?;
            let own = of(0);
            if to.is_float() { own } else { of_type(to).or(own) }
        }
        "MatMulInteger" => sums(ranges, node, length(ranges, node).unwrap_or(UNKNOWN_LENGTH)),
        "ConvInteger" => {
            node.operator::<ConvInteger>()?;
            let window = ranges.lengths(node.input(1)?)?;
            let lengths = window.into_iter().skip(1).map(|len| len.unwrap_or(UNKNOWN_LENGTH));
            sums(ranges, node, lengths.fold(1, usize::saturating_mul))
        }
        "MatMul" => products::of_product(ranges, node)
            .or_else(|| terms(of(0)?.times(of(1)?)?, length(ranges, node)?).filter(is_held)),
        "DequantizeLinear" => {
            let codes = of(0)?;
            let zero = of(2).unwrap_or(NumberInterval { low: 0.0, high: 0.0 });
            codes.plus(zero.negative())?.times(of(1)?)
        }
        "CumSum" => terms(of(0)?, ranges.shape(node.input(0)?)?.into_iter().max()?),
        "Softmax" | "Hardmax" => NumberInterval::new(0.0, 1.0),
        "Sub" if subtracts_extreme(ranges, node) => {
            of(0).and_then(|own| NumberInterval::new(own.low - own.high, 0.0))
        }
        "Where" => Some(of(1)?.join(of(2)?)),
        "Concat" => joined(ranges, node),
        "Pow" => powered(of(0)?, of(1)?),
        "Clip" => clipped(node, of(0), [of(1), of(2)]),
        _ => None
            .or_else(|| of_binary(node.operator::<Binary>()?.kind, of(0), of(1)))
            .or_else(|| of_unary(node.operator::<Unary>()?.kind, of(0)))
            .or_else(|| of_activation(node.operator::<Activation>()?.kind, of(0)))
            .or_else(|| of_variadic(ranges, node))
            .or_else(|| of_reduce(ranges, node)),
    }
}

/// Returns whether FP16 holds every number of an interval.
fn is_held(found: &NumberInterval) -> bool {
    found.largest() <= LARGEST
}

/// Count that stands for a length known in a run only, where integers are summed.
const UNKNOWN_LENGTH: usize = 1 << 16;

/// How many products the sums of a matrix product have.
fn length(ranges: &GraphRanges<'_>, node: &Node) -> Option<usize> {
    let a = ranges.lengths(node.input(0)?)?;
    let b = ranges.lengths(node.input(1)?)?;
    let down = b.len().saturating_sub(2);
    a.last().copied().flatten().or_else(|| b.get(down).copied().flatten())
}

fn joined(ranges: &GraphRanges<'_>, node: &Node) -> Option<NumberInterval> {
    let each = node.inputs.iter().flatten().map(|&id| ranges.interval(id));
    each.collect::<Option<Vec<_>>>()?.into_iter().reduce(NumberInterval::join)
}

/// The sum of so many terms.
#[allow(clippy::cast_precision_loss, reason = "a bound")]
fn terms(one: NumberInterval, count: usize) -> Option<NumberInterval> {
    let zero = NumberInterval::new(0.0, 0.0)?;
    let count = count as f64;
    let one = one.join(zero);
    NumberInterval::new(one.low * count, one.high * count)
}

/// Sums of `length` products of bytes less their zero points.
fn sums(ranges: &GraphRanges<'_>, node: &Node, length: usize) -> Option<NumberInterval> {
    let centred = |at: usize, zero: usize| {
        let codes = ranges.interval(node.input(at)?)?;
        match node.input(zero) {
            None => Some(codes),
            Some(zero) => codes.plus(ranges.interval(zero)?.negative()),
        }
    };
    terms(centred(0, 2)?.times(centred(1, 3)?)?, length)
}

fn powered(base: NumberInterval, exponent: NumberInterval) -> Option<NumberInterval> {
    if exponent.low != exponent.high {
        return None;
    }
    let exponent = exponent.low;
    match exponent {
        2.0 => base.square(),
        0.5 if base.low >= 0.0 => base.rising(f64::sqrt),
        _ if exponent >= 1.0 => NumberInterval::around(base.largest().powf(exponent)),
        _ => None,
    }
}

fn clipped(
    node: &Node,
    x: Option<NumberInterval>,
    limits: [Option<NumberInterval>; 2],
) -> Option<NumberInterval> {
    let operator = node.operator::<Clip>()?;
    let [low, high] = limits;
    let low = operator.min.map(f64::from).or(low.map(|found| found.low));
    let high = operator.max.map(f64::from).or(high.map(|found| found.high));
    let (own_low, own_high) = x.map(|found| (found.low, found.high)).unzip();
    let low = match (low, own_low) {
        (Some(limit), Some(own)) => limit.max(own),
        (limit, own) => limit.or(own)?,
    };
    let high = match (high, own_high) {
        (Some(limit), Some(own)) => limit.min(own),
        (limit, own) => limit.or(own)?,
    };
    NumberInterval::new(low.min(high), high)
}

fn of_binary(
    kind: BinaryKind,
    a: Option<NumberInterval>,
    b: Option<NumberInterval>,
) -> Option<NumberInterval> {
    match kind {
        BinaryKind::Add => a?.plus(b?),
        BinaryKind::Sub => a?.plus(b?.negative()),
        BinaryKind::Mul => a?.times(b?),
        BinaryKind::Div => a?.times(b?.inverse()?),
        _ => None,
    }
}

fn of_unary(kind: UnaryKind, x: Option<NumberInterval>) -> Option<NumberInterval> {
    match kind {
        UnaryKind::Neg => Some(x?.negative()),
        UnaryKind::Abs => Some(x?.magnitude()),
        UnaryKind::Sqrt if x?.low >= 0.0 => x?.rising(f64::sqrt),
        UnaryKind::Exp => x?.rising(f64::exp),
        UnaryKind::Sinh => x?.rising(f64::sinh),
        UnaryKind::Cosh => x?.magnitude().rising(f64::cosh),
        UnaryKind::Log if x?.low > 0.0 => x?.rising(f64::ln),
        UnaryKind::Reciprocal => x?.inverse(),
        UnaryKind::Floor | UnaryKind::Ceil | UnaryKind::Round => {
            NumberInterval::new(x?.low.floor(), x?.high.ceil())
        }
        UnaryKind::Erf | UnaryKind::Sign | UnaryKind::Sin | UnaryKind::Cos => {
            NumberInterval::around(1.0)
        }
        UnaryKind::Atan | UnaryKind::Asin => NumberInterval::around(std::f64::consts::FRAC_PI_2),
        UnaryKind::Acos => NumberInterval::new(0.0, std::f64::consts::PI),
        _ => None,
    }
}

fn of_activation(kind: ActivationKind, x: Option<NumberInterval>) -> Option<NumberInterval> {
    match kind {
        ActivationKind::Relu => x?.rising(|value| value.max(0.0)),
        ActivationKind::Sigmoid | ActivationKind::HardSigmoid { .. } => {
            NumberInterval::new(0.0, 1.0)
        }
        ActivationKind::Tanh | ActivationKind::Softsign => NumberInterval::around(1.0),
        // Next to what they are for large inputs, and a little below zero.
        ActivationKind::Gelu { .. }
        | ActivationKind::HardSwish
        | ActivationKind::Mish
        | ActivationKind::Swish { alpha: 1.0 } => NumberInterval::new(-1.0, x?.high.max(0.0)),
        ActivationKind::Softplus => NumberInterval::new(0.0, x?.high.max(0.0) + 1.0),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss, reason = "nodes have few inputs")]
fn of_variadic(ranges: &GraphRanges<'_>, node: &Node) -> Option<NumberInterval> {
    use galatea_graph::ops::math::VariadicKind;
    let kind = node.operator::<Variadic>()?.kind;
    if matches!(kind, VariadicKind::Max | VariadicKind::Min) {
        return joined(ranges, node);
    }
    let each = node.inputs.iter().flatten().map(|&id| ranges.interval(id));
    let all = each.collect::<Option<Vec<_>>>()?;
    let count = all.len() as f64;
    let sum = all.into_iter().try_fold(NumberInterval::new(0.0, 0.0)?, NumberInterval::plus)?;
    match kind {
        VariadicKind::Mean => NumberInterval::new(sum.low / count, sum.high / count),
        _ => Some(sum),
    }
}

/// How many elements become one, where that is known.
pub(super) fn reduced(ranges: &GraphRanges<'_>, node: &Node) -> Option<usize> {
    let operator = node.operator::<Reduce>()?;
    let dims = ranges.lengths(node.input(0)?)?;
    let axes = match (&operator.axes, node.input(1)) {
        (Some(axes), _) => axes.clone(),
        (None, Some(id)) => ranges.known(id)?.to_i64_vec().ok()?,
        (None, None) => Vec::new(),
    };
    if axes.is_empty() {
        let all = || dims.iter().copied().product();
        return if operator.noop_with_empty_axes { Some(1) } else { all() };
    }
    let rank = i64::try_from(dims.len()).ok()?;
    let length = |axis: i64| {
        let at = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
        dims.get(at).copied().flatten()
    };
    axes.into_iter().map(length).product()
}

#[allow(clippy::cast_precision_loss, reason = "a bound")]
fn of_reduce(ranges: &GraphRanges<'_>, node: &Node) -> Option<NumberInterval> {
    let kind = node.operator::<Reduce>()?.kind;
    let x: ValueId = node.input(0)?;
    let own = ranges.interval(x)?;
    if matches!(kind, ReduceKind::Max | ReduceKind::Min | ReduceKind::Mean) {
        return Some(own);
    }
    let count = reduced(ranges, node)?;
    match kind {
        ReduceKind::Sum => terms(own, count),
        ReduceKind::L1 => terms(own.magnitude(), count),
        ReduceKind::SumSquare => terms(own.square()?, count),
        ReduceKind::L2 => terms(own.square()?, count)?.rising(f64::sqrt),
        ReduceKind::Prod => NumberInterval::around(own.largest().max(1.0).powf(count as f64)),
        ReduceKind::LogSumExp => {
            let more = (count.max(1) as f64).ln();
            NumberInterval::new(own.low, own.high + more)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> NumberInterval {
        NumberInterval::new(low, high).unwrap()
    }

    #[test]
    fn types_and_constants_have_intervals() {
        assert_eq!(terms(interval(1.0, 2.0), 10), Some(interval(0.0, 20.0)));
        assert_eq!(of_type(DataType::Uint8), Some(interval(0.0, 255.0)));
        assert_eq!(of_type(DataType::Int64), None);
        assert_eq!(of_constant(&Tensor::vector(vec![3_i8, -4])), Some(interval(-4.0, 3.0)));
        assert_eq!(of_constant(&Tensor::vector(vec![1.5_f32, 0.5])), Some(interval(0.5, 1.5)));
        for none in [f32::NAN, f32::MIN, 1e5] {
            assert_eq!(of_constant(&Tensor::vector(vec![1.0, none])), None, "{none}");
        }
        let empty = Tensor::zeros(DataType::Fp32, &[0]).unwrap();
        assert_eq!(of_constant(&empty), None);
    }
}
