//! Queries of the rules about quantised values: the integers that a float was made of, and the
//! integers made of it.

use galatea_tensor::{DataType, Tensor};

use super::ValueMaps;
use crate::collect::collected_some;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::quantize::{DequantizeLinear, QuantizeLinear, ScaleGrouping};

/// The domain of the integer operators that ONNX's own lacks.
pub(super) const CONTRIB_DOMAIN: &str = "com.microsoft";

/// A quantised value and its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuantizedValue {
    /// The integers.
    pub(super) value: ValueId,
    pub(super) scale: ValueId,
    /// Zeros if absent.
    pub(super) zero: Option<ValueId>,
    /// The type of the integers.
    pub(super) dtype: DataType,
    /// The axis of a scale that is no scalar.
    axis: i64,
}

/// Returns the integers and parameters of a 32-bit float that `DequantizeLinear` made without
/// blocks.
pub(super) fn dequantized(graph: &Graph, maps: &ValueMaps, id: ValueId) -> Option<QuantizedValue> {
    let node = &graph.nodes[maps.producer(id)?];
    let operator = node.operator::<DequantizeLinear>()?;
    let value = node.input(0)?;
    let found = parameters(node, &operator.grouping, value, maps.fact(value)?.dtype)?;
    maps.is_fp32(id).then_some(found)
}

/// Returns the integers and parameters that a node makes, if it is a `QuantizeLinear` without
/// blocks from 32-bit floats to bytes. The value is the node's result.
pub(super) fn quantized(maps: &ValueMaps, node: &Node) -> Option<QuantizedValue> {
    let operator = node.operator::<QuantizeLinear>()?;
    let value = node.output(0)?;
    let found = parameters(node, &operator.grouping, value, maps.fact(value)?.dtype)?;
    (found.is_bytes() && maps.is_fp32(node.input(0)?)).then_some(found)
}

fn parameters(
    node: &Node,
    grouping: &ScaleGrouping,
    value: ValueId,
    dtype: DataType,
) -> Option<QuantizedValue> {
    let scale = node.input(1)?;
    let zero = node.input(2);
    let ScaleGrouping { axis, block_size } = *grouping;
    (block_size == 0).then_some(QuantizedValue { value, scale, zero, dtype, axis })
}

impl QuantizedValue {
    /// Returns whether the integers have 8 bits.
    pub(super) fn is_bytes(&self) -> bool {
        matches!(self.dtype, DataType::Int8 | DataType::Uint8)
    }

    /// The scales, if they are constant and such that larger integers are larger values.
    pub(super) fn scales(&self, graph: &Graph) -> Option<Vec<f32>> {
        let scales = graph.constant(self.scale)?.to_vec::<f32>().ok()?;
        scales.iter().all(|scale| scale.is_finite() && *scale > 0.0).then_some(scales)
    }

    /// Scale and zero point, if they are constant and one for all.
    pub(super) fn whole(&self, graph: &Graph) -> Option<(f32, i64)> {
        let zeros = match self.zero {
            Some(zero) => graph.constant(zero)?.to_i64_vec().ok()?,
            None => vec![0],
        };
        match (&self.scales(graph)?[..], &zeros[..]) {
            (&[scale], &[zero]) => Some((scale, zero)),
            _ => None,
        }
    }

    /// Returns whether scale and zero point are constant, and one for all or one for each of
    /// `count` positions of `axis`, of `rank` axes.
    pub(super) fn is_along(&self, graph: &Graph, axis: usize, rank: usize, count: usize) -> bool {
        let Some(scales) = self.scales(graph) else { return false };
        let zeros = match self.zero {
            Some(zero) => graph.constant(zero).map(Tensor::elements),
            None => Some(scales.len()),
        };
        let own = usize::try_from(self.axis)
            .or_else(|_| usize::try_from(self.axis + i64::try_from(rank).unwrap_or(0)));
        let by_position = own == Ok(axis) && scales.len() == count;
        zeros == Some(scales.len()) && (scales.len() == 1 || by_position)
    }

    /// Returns whether both stand for the same values with the same integers.
    pub(super) fn is_like(&self, graph: &Graph, other: &Self) -> bool {
        let whole = self.whole(graph);
        self.dtype == other.dtype && whole.is_some() && whole == other.whole(graph)
    }

    /// The zero point, made where there is none.
    pub(super) fn zero_point(&self, graph: &mut Graph) -> Option<ValueId> {
        if let Some(zero) = self.zero {
            return Some(zero);
        }
        let shape = graph.constant(self.scale)?.shape().to_vec();
        let zeros = Tensor::zeros(self.dtype, &shape).ok()?;
        Some(graph.add_constant("zero_point", zeros))
    }
}

/// A constant bias as 32-bit integers in units of `unit(column)`: it is a constant of floats, or of
/// integers that are dequantised. `None` where one does not fit.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn bias_in_units(
    graph: &Graph,
    maps: &ValueMaps,
    id: ValueId,
    count: usize,
    unit: impl Fn(usize) -> f64,
) -> Option<Tensor> {
    let floats: Vec<f64> = match graph.constant(id) {
        Some(bias) => bias.to_vec::<f32>().ok()?.into_iter().map(f64::from).collect(),
        None => {
            let bias = dequantized(graph, maps, id)?;
            let integers = graph.constant(bias.value)?.to_i64_vec().ok()?;
            let zeros = match bias.zero {
                Some(zero) => graph.constant(zero)?.to_i64_vec().ok()?,
                None => vec![0],
            };
            let scales = bias.scales(graph)?;
            let one = |len: usize, at: usize| if len == 1 { 0 } else { at };
            let fits = |len: usize| len == 1 || len == integers.len();
            if !fits(zeros.len()) || !fits(scales.len()) {
                return None;
            }
            let value = |(at, integer): (usize, i64)| {
                let zero = zeros[one(zeros.len(), at)];
                (integer - zero) as f64 * f64::from(scales[one(scales.len(), at)])
            };
            integers.into_iter().enumerate().map(value).collect()
        }
    };
    if floats.len() != count {
        return None;
    }
    let units = floats.iter().enumerate().map(|(at, value)| (value / unit(at)).round_ties_even());
    let fitting = |value: f64| (value.abs() < f64::from(i32::MAX)).then_some(value as i32);
    let all: Option<Vec<i32>> = collected_some(&mut units.map(fitting));
    Some(Tensor::vector(all?))
}
