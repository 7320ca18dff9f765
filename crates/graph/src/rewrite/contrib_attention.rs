//! `Attention`, `MultiHeadAttention` and `QAttention` of `com.microsoft`, which ONNX Runtime's optimiser
//! writes, become the product of their projections and the fused `Attention`. A mask of keys becomes
//! numbers to add.

use galatea_tensor::{DataType, Tensor};

use super::ValueMaps;
use super::match_graph::make_node;
use super::quantized::CONTRIB_DOMAIN;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node, ValueId};
use crate::operator::Operator;
use crate::ops::contrib::{ContribAttention, MatMulIntegerToFloat, MultiHeadAttention, QAttention};
use crate::ops::fused;
use crate::ops::logic::{Compare, CompareKind, Where};
use crate::ops::math::{Binary, BinaryKind};
use crate::ops::matrix::MatMul;
use crate::ops::shape::{Reshape, Split, Unsqueeze};
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

/// The stored order of `[B, H, S, D]` in `[B, S, H, D]`, and back.
const BY_POSITION: [usize; 4] = [0, 2, 1, 3];

pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let Some(found) = find(maps, &node) else { return Ok(None) };
    let mut made = AttentionNodes { graph, node: &node, nodes: Vec::new() };
    let [q, k, v] = match found.stored {
        AttentionStorage::Apart(all) => all,
        AttentionStorage::Projected(widths) => {
            let all = made.product();
            made.columns(all, widths)
        }
        AttentionStorage::Quantised(widths) => {
            let all = made.integer_product();
            made.columns(all, widths)
        }
    };
    let heads = i64::try_from(found.heads).unwrap_or(i64::MAX);
    let mut split = |id: ValueId| made.reshaped(id, vec![0, 0, heads, -1]);
    let all = [split(q), split(k), split(v)];
    let mask = match found.mask {
        ContribMask::None => None,
        ContribMask::Numbers(id) => Some(id),
        ContribMask::Keys(id, dtype) => Some(made.mask(id, dtype, found.hidden)),
    };
    let operator = fused::FusedAttention {
        scale: found.scale,
        q_perm: BY_POSITION,
        k_perm: BY_POSITION,
        v_perm: BY_POSITION,
        out_perm: BY_POSITION,
        masked_to_zero: true,
        causal: found.causal,
    };
    let inputs = [all.map(Some).to_vec(), vec![mask]].concat();
    let attended = made.add(GALATEA_DOMAIN, "Attention", operator, inputs);
    let shape = made.constant("attended.shape", Tensor::vector(vec![0_i64, 0, -1]));
    let reshape = Reshape { allow_zero: false };
    let inputs = vec![Some(attended), Some(shape)];
    let mut nodes = made.nodes;
    nodes.push(Node {
        outputs: node.outputs[..1].to_vec(),
        ..make_node(ONNX_DOMAIN, "Reshape", &node, reshape, inputs)
    });
    Ok(Some(nodes))
}

/// Where queries, keys and values are.
enum AttentionStorage {
    /// They are inputs.
    Apart([ValueId; 3]),
    /// They are the columns of a product with the inputs 1 and 2, so many each.
    Projected([usize; 3]),
    /// They are the columns of a product of integers.
    Quantised([usize; 3]),
}

/// Mask that is added to the scores.
enum ContribMask {
    None,
    Numbers(ValueId),
    /// Flags for the keys of each batch that are seen.
    Keys(ValueId, DataType),
}

struct ContribAttentionMatch {
    stored: AttentionStorage,
    heads: usize,
    scale: f32,
    causal: bool,
    mask: ContribMask,
    /// Value added to the score of a hidden key.
    hidden: f32,
}

#[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
fn scale(given: Option<f32>, width: usize, heads: usize) -> Option<f32> {
    let fits = heads > 0 && width > 0 && width.is_multiple_of(heads);
    fits.then(|| given.unwrap_or_else(|| 1.0 / ((width / heads) as f32).sqrt()))
}

fn find(maps: &ValueMaps, node: &Node) -> Option<ContribAttentionMatch> {
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_deref());
    if node.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let x = node.input(0)?;
    let rows = shape(x).filter(|dims| dims.len() == 3)?;
    if let Some(op) = node.operator::<QAttention>() {
        let byte = |id| maps.fact(id).is_some_and(|fact| is_byte(fact.dtype));
        let floats = [2, 3, 4].map(|index| node.input(index)).into_iter().flatten();
        let fits = byte(x) && byte(node.input(1)?) && node.input(8).is_none();
        if !fits || !floats.into_iter().all(|id| maps.is_fp32(id)) {
            return None;
        }
        let found = projecting(maps, node, &op.attention, node.input(5), None)?;
        return Some(ContribAttentionMatch {
            stored: AttentionStorage::Quantised(found.1),
            ..found.0
        });
    }
    if !maps.is_fp32(x) {
        return None;
    }
    if let Some(op) = node.operator::<ContribAttention>() {
        if node.input(4).is_some() || node.input(6).is_some() {
            return None;
        }
        return Some(projecting(maps, node, op, node.input(3), node.input(5))?.0);
    }
    let op = node.operator::<MultiHeadAttention>()?;
    let k = node.input(1)?;
    let v = node.input(2)?;
    let keys = shape(k).filter(|dims| dims.len() == 3)?;
    let values = shape(v).filter(|dims| dims.len() == 3)?;
    let others = [3, 6, 7, 8, 9].iter().any(|&input| node.input(input).is_some());
    if others || (op.unidirectional && !rows[1].same(&keys[1])) {
        return None;
    }
    scale(None, values[2].known()?, op.num_heads)?;
    Some(ContribAttentionMatch {
        stored: AttentionStorage::Apart([x, k, v]),
        heads: op.num_heads,
        scale: scale(op.scale, rows[2].known()?, op.num_heads)?,
        causal: op.unidirectional,
        mask: mask(maps, node.input(4), node.input(5), &rows[0], &rows[1], &keys[1])?,
        hidden: op.mask_filter_value,
    })
}

fn is_byte(dtype: DataType) -> bool {
    matches!(dtype, DataType::Int8 | DataType::Uint8)
}

/// An attention that projects its input by the weights behind it, with a mask of keys and a bias on the
/// scores; and how many columns queries, keys and values have.
fn projecting(
    maps: &ValueMaps,
    node: &Node,
    op: &ContribAttention,
    keys: Option<ValueId>,
    bias: Option<ValueId>,
) -> Option<(ContribAttentionMatch, [usize; 3])> {
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_deref());
    let rows = shape(node.input(0)?)?;
    let columns = shape(node.input(1)?)?.get(1)?.known()?;
    let widths = op.qkv_hidden_sizes.unwrap_or([columns / 3; 3]);
    let fits = widths.iter().sum::<usize>() == columns
        && widths[0] == widths[1]
        && scale(None, widths[2], op.num_heads).is_some();
    if !fits {
        return None;
    }
    let found = ContribAttentionMatch {
        stored: AttentionStorage::Projected(widths),
        heads: op.num_heads,
        scale: scale(op.scale, widths[0], op.num_heads)?,
        causal: op.unidirectional,
        mask: mask(maps, keys, bias, &rows[0], &rows[1], &rows[1])?,
        hidden: op.mask_filter_value,
    };
    Some((found, widths))
}

/// A mask of keys or a bias on the scores of a batch of queries and keys; nothing where there are both, or
/// another form.
fn mask(
    maps: &ValueMaps,
    keys: Option<ValueId>,
    bias: Option<ValueId>,
    batch: &Dim,
    queries: &Dim,
    total: &Dim,
) -> Option<ContribMask> {
    let shape = |id| maps.fact(id).and_then(|fact| fact.shape.as_deref());
    match (keys, bias) {
        (None, None) => Some(ContribMask::None),
        (None, Some(bias)) => {
            let &[_, _, s, t] = &shape(bias)? else { return None };
            (maps.is_fp32(bias) && s.same(queries) && t.same(total))
                .then_some(ContribMask::Numbers(bias))
        }
        (Some(keys), None) => {
            let &[b, t] = &shape(keys)? else { return None };
            let dtype = maps.fact(keys)?.dtype;
            let fits = b.same(batch) && t.same(total);
            let integers = matches!(dtype, DataType::Int32 | DataType::Int64);
            (fits && integers).then_some(ContribMask::Keys(keys, dtype))
        }
        (Some(_), Some(_)) => None,
    }
}

/// Nodes in the place of one.
struct AttentionNodes<'a> {
    graph: &'a mut Graph,
    node: &'a Node,
    nodes: Vec<Node>,
}

impl AttentionNodes<'_> {
    /// Adds a node with one output.
    fn add(
        &mut self,
        domain: &str,
        op_type: &str,
        operator: impl Operator,
        inputs: Vec<Option<ValueId>>,
    ) -> ValueId {
        let value = self.graph.fresh_value(op_type);
        let made = make_node(domain, op_type, self.node, operator, inputs);
        self.nodes.push(Node { outputs: vec![Some(value)], ..made });
        value
    }

    fn constant(&mut self, name: &str, value: Tensor) -> ValueId {
        self.graph.add_constant(name, value)
    }

    fn reshaped(&mut self, id: ValueId, shape: Vec<i64>) -> ValueId {
        let shape = self.constant("heads.shape", Tensor::vector(shape));
        let operator = Reshape { allow_zero: false };
        self.add(ONNX_DOMAIN, "Reshape", operator, vec![Some(id), Some(shape)])
    }

    /// The input times the weights, and the bias.
    fn product(&mut self) -> ValueId {
        let inputs = vec![self.node.input(0), self.node.input(1)];
        let mut all = self.add(ONNX_DOMAIN, "MatMul", MatMul, inputs);
        if let Some(bias) = self.node.input(2) {
            let sum = Binary { kind: BinaryKind::Add };
            all = self.add(ONNX_DOMAIN, "Add", sum, vec![Some(all), Some(bias)]);
        }
        all
    }

    /// The same of integers with their scales and zero points.
    fn integer_product(&mut self) -> ValueId {
        let inputs = [0, 1, 3, 4, 6, 7, 2].map(|index| self.node.input(index)).to_vec();
        self.add(CONTRIB_DOMAIN, "MatMulIntegerToFloat", MatMulIntegerToFloat, inputs)
    }

    /// Queries, keys and values, so many columns each.
    fn columns(&mut self, all: ValueId, widths: [usize; 3]) -> [ValueId; 3] {
        let parts = ["q", "k", "v"].map(|name| self.graph.fresh_value(name));
        let widths = widths.iter().map(|&width| i64::try_from(width).unwrap_or(i64::MAX));
        let widths = self.constant("widths", Tensor::vector(widths.collect::<Vec<_>>()));
        let operator = Split { axis: 2, split: None, pieces: 3, uneven: true };
        let inputs = vec![Some(all), Some(widths)];
        let made = make_node(ONNX_DOMAIN, "Split", self.node, operator, inputs);
        self.nodes.push(Node { outputs: parts.map(Some).to_vec(), ..made });
        parts
    }

    /// Adds the nodes that turn a mask of keys into numbers added to the scores, `[B, 1, 1, T]`.
    fn mask(&mut self, keys: ValueId, dtype: DataType, hidden: f32) -> ValueId {
        let none = match dtype {
            DataType::Int64 => Tensor::scalar(0_i64),
            _ => Tensor::scalar(0_i32),
        };
        let none = self.constant("mask.none", none);
        let compare = Compare { kind: CompareKind::Greater };
        let inputs = vec![Some(keys), Some(none)];
        let seen = self.add(ONNX_DOMAIN, "Greater", compare, inputs);
        let shown = self.constant("mask.shown", Tensor::scalar(0.0_f32));
        let hidden = self.constant("mask.hidden", Tensor::scalar(hidden));
        let inputs = vec![Some(seen), Some(shown), Some(hidden)];
        let numbers = self.add(ONNX_DOMAIN, "Where", Where, inputs);
        let axes = self.constant("mask.axes", Tensor::vector(vec![1_i64, 2]));
        let operator = Unsqueeze { axes: None };
        self.add(ONNX_DOMAIN, "Unsqueeze", operator, vec![Some(numbers), Some(axes)])
    }
}
