//! Products between quantised values become products of integers: `QLinearMatMul` and `QGemm`,
//! `MatMulIntegerToFloat` where the result stays a float, and that too for what quantises its input
//! as it runs.

use std::sync::Arc;

use galatea_tensor::DataType;

use super::ValueMaps;
use super::match_graph::make_node;
use super::quantized::{CONTRIB_DOMAIN, QuantizedValue, bias_in_units, dequantized, quantized};
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::cast::Cast;
use crate::ops::contrib::{DynamicQuantizeMatMul, MatMulIntegerToFloat, QGemm};
use crate::ops::matrix::{Gemm, MatMul, MatMulInteger, QLinearMatMul};
use crate::ops::quantize::DynamicQuantizeLinear;

type RewrittenProduct = Result<Option<Vec<Node>>, GraphError>;

const TO_FLOAT: &str = "MatMulIntegerToFloat";

/// Multiplication of two dequantised matrices.
struct DequantizedProduct {
    a: QuantizedValue,
    b: QuantizedValue,
    /// The `Gemm`, if it was one, with its bias in units of the sums.
    gemm: Option<(QGemm, Option<galatea_tensor::Tensor>)>,
}

fn product(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<DequantizedProduct> {
    let operand = |slot: usize| {
        let found = dequantized(graph, maps, node.input(slot)?)?;
        let rank = maps.fact(found.value)?.rank()?;
        (found.is_bytes() && rank >= 2).then_some(found)
    };
    if node.operator::<MatMul>().is_some() {
        let a = operand(0)?;
        let b = operand(1)?;
        let fits = match graph.constant(b.value) {
            Some(weights) => {
                let rank = weights.rank();
                let columns = *weights.shape().last()?;
                rank == 2 && b.is_along(graph, 1, rank, columns)
            }
            None => b.whole(graph).is_some(),
        };
        return (fits && a.whole(graph).is_some()).then_some(DequantizedProduct {
            a,
            b,
            gemm: None,
        });
    }
    let gemm = *node.operator::<Gemm>()?;
    let a = operand(0)?;
    let b = operand(1)?;
    let (a_scale, _) = a.whole(graph)?;
    let weights = graph.constant(b.value)?;
    let axis = usize::from(!gemm.trans_b);
    let columns = weights.shape()[axis];
    let bias = match node.input(2) {
        Some(id) if gemm.beta == 1.0 => {
            let scales = b.scales(graph)?;
            let unit = |column: usize| {
                let b_scale = scales[if scales.len() == 1 { 0 } else { column }];
                f64::from(gemm.alpha) * f64::from(a_scale) * f64::from(b_scale)
            };
            Some(bias_in_units(graph, maps, id, columns, unit)?)
        }
        Some(_) => return None,
        None => None,
    };
    let Gemm { alpha, trans_a, trans_b, .. } = gemm;
    let fits = !trans_a && alpha > 0.0 && b.is_along(graph, axis, 2, columns);
    fits.then(|| DequantizedProduct { a, b, gemm: Some((QGemm { alpha, trans_a, trans_b }, bias)) })
}

/// The node that computes a product; its result is quantised if `result` is there.
fn integer_product(
    graph: &mut Graph,
    after: &Node,
    product: DequantizedProduct,
    result: Option<QuantizedValue>,
) -> Option<Node> {
    let DequantizedProduct { a, b, gemm } = product;
    let a_zero = a.zero_point(graph)?;
    let b_zero = b.zero_point(graph)?;
    let mut inputs = vec![a.value, a.scale, a_zero, b.value, b.scale, b_zero]
        .into_iter()
        .map(Some)
        .collect::<Vec<_>>();
    let tail = match result {
        Some(result) => vec![Some(result.scale), Some(result.zero_point(graph)?)],
        None => Vec::new(),
    };
    match (gemm, tail.is_empty()) {
        (Some((operator, bias)), _) => {
            inputs.push(bias.map(|bias| graph.add_constant("bias", bias)));
            inputs.extend(tail);
            while inputs.last() == Some(&None) {
                inputs.pop();
            }
            Some(make_node(CONTRIB_DOMAIN, "QGemm", after, operator, inputs))
        }
        (None, false) => {
            inputs.extend(tail);
            Some(make_node("", "QLinearMatMul", after, QLinearMatMul, inputs))
        }
        (None, true) => {
            let inputs = [a.value, b.value, a.scale, b.scale, a_zero, b_zero].map(Some).to_vec();
            Some(make_node(CONTRIB_DOMAIN, TO_FLOAT, after, MatMulIntegerToFloat, inputs))
        }
    }
}

/// A product that is quantised again.
pub(super) fn into_integers(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenProduct {
    let node = graph.nodes[index].clone();
    let found = (|| {
        let result = quantized(maps, &node)?;
        result.whole(graph)?;
        let float = node.input(0)?;
        let before = &graph.nodes[maps.producer(float)?];
        let product = product(graph, maps, before).filter(|_| maps.read_once(graph, float))?;
        integer_product(graph, &node, product, Some(result))
    })();
    Ok(found.map(|node| vec![node]))
}

/// A product whose result stays a float.
pub(super) fn into_floats(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenProduct {
    let node = graph.nodes[index].clone();
    let found = product(graph, maps, &node)
        .and_then(|product| integer_product(graph, &node, product, None));
    Ok(found.map(|node| vec![node]))
}

/// `Cast(MatMulInteger(A, B)) * (scale of A * scale of B)`, as dynamic quantisation has it.
pub(super) fn dynamic(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenProduct {
    let node = &graph.nodes[index];
    let found = (|| {
        let sums_of = |id: ValueId| {
            let cast = maps.written_by(graph, id, "Cast")?;
            let to_float = cast.operator::<Cast>()?.to == DataType::Fp32;
            let sums = cast.input(0).filter(|_| to_float && maps.read_once(graph, id))?;
            let product = maps.written_by(graph, sums, "MatMulInteger")?;
            product.operator::<MatMulInteger>().filter(|_| maps.read_once(graph, sums))?;
            Some(product)
        };
        let (first, second) = times(node)?;
        let (product, scale) = match sums_of(first) {
            Some(product) => (product, second),
            None => (sums_of(second)?, first),
        };
        let (one, other) = times(maps.written_by(graph, scale, "Mul")?)?;
        let (a_scale, b_scale) =
            if graph.constant(one).is_some() { (other, one) } else { (one, other) };
        let columns = maps.fact(product.output(0)?)?.shape.as_ref()?.last()?.known();
        let count = graph.constant(b_scale)?.elements();
        let single = maps.fact(a_scale)?.known_shape()?.iter().product::<usize>() == 1;
        let floats = maps.is_fp32(a_scale) && maps.is_fp32(b_scale);
        let fits = single && floats && (count == 1 || Some(count) == columns);
        let inputs = vec![
            product.input(0),
            product.input(1),
            Some(a_scale),
            Some(b_scale),
            product.input(2),
            product.input(3),
        ];
        fits.then(|| make_node(CONTRIB_DOMAIN, TO_FLOAT, node, MatMulIntegerToFloat, inputs))
    })();
    Ok(found.map(|node| vec![node]))
}

/// `DynamicQuantizeMatMul` in its two parts, of which products of one value share the first.
pub(super) fn split_dynamic(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenProduct {
    let node = graph.nodes[index].clone();
    let weights = node.input(1).and_then(|id| graph.constant(id));
    let matrix = weights.is_some_and(|weights| weights.rank() == 2);
    let long = node.input(0).and_then(|id| maps.fact(id)?.rank()).is_some_and(|rank| rank >= 2);
    if node.operator::<DynamicQuantizeMatMul>().is_none() || !matrix || !long {
        return Ok(None);
    }
    let made = ["quantized", "scale", "zero_point"].map(|stem| graph.fresh_value(stem));
    let first = Node {
        name: format!("{}.quantized", node.name),
        domain: String::new(),
        op_type: "DynamicQuantizeLinear".to_owned(),
        inputs: vec![node.input(0)],
        outputs: made.map(Some).to_vec(),
        operator: Arc::new(DynamicQuantizeLinear),
        parsed: None,
    };
    let [quantized, scale, zero] = made;
    let mut inputs = vec![Some(quantized), node.input(1), Some(scale), node.input(2), Some(zero)];
    inputs.extend([node.input(3), node.input(4)]);
    while inputs.last() == Some(&None) {
        inputs.pop();
    }
    let second = make_node(CONTRIB_DOMAIN, TO_FLOAT, &node, MatMulIntegerToFloat, inputs);
    Ok(Some(vec![first, second]))
}

/// The factors of a `Mul`.
fn times(node: &Node) -> Option<(ValueId, ValueId)> {
    let multiplies = node.op_type == "Mul" && node.domain.is_empty();
    Some((node.input(0).filter(|_| multiplies)?, node.input(1)?))
}

/// A constant vector that is added to a product that stays a float.
pub(super) fn bias(graph: &mut Graph, maps: &ValueMaps, index: usize) -> RewrittenProduct {
    let node = &graph.nodes[index];
    if node.op_type != "Add" || !node.domain.is_empty() {
        return Ok(None);
    }
    let pair = |product: usize, vector: usize| {
        let product = node.input(product)?;
        let vector = node.input(vector)?;
        let before = maps.written_by(graph, product, "MatMulIntegerToFloat")?;
        before.operator::<MatMulIntegerToFloat>()?;
        let columns = maps.fact(product)?.shape.as_ref()?.last()?.known()?;
        let bias = graph.constant(vector)?;
        let constant_b = graph.constant(before.input(1)?).is_some();
        let fits = bias.shape() == [columns] && bias.dtype() == DataType::Fp32 && constant_b;
        let open = before.input(6).is_none() && maps.read_once(graph, product);
        let mut inputs: Vec<_> = (0..6).map(|slot| before.input(slot)).collect();
        inputs.push(Some(vector));
        (fits && open)
            .then(|| make_node(CONTRIB_DOMAIN, TO_FLOAT, node, MatMulIntegerToFloat, inputs))
    };
    Ok(pair(0, 1).or_else(|| pair(1, 0)).map(|node| vec![node]))
}
