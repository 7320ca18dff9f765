//! Convolutions, poolings and what stands between them work with the channels as the last axis.
//!
//! Vectors over channels need no gathering then, and a 1×1 convolution is a matrix product as it
//! stands. Values change order only where a channels-last region meets an operator outside it.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_tensor::DataType;

use super::ValueMaps;
use super::quantized::CONTRIB_DOMAIN;
use crate::collect::collected_some;
use crate::error::GraphError;
use crate::graph::{Graph, Node, ValueId};
use crate::infer;
use crate::ops::contrib::QLinear;
use crate::ops::convolution::{Conv, FusedConv, QLinearConv};
use crate::ops::fused::{FusedActivation, FusedElementwise, LookUp};
use crate::ops::pooling::{AveragePool, GlobalAveragePool, MaxPool, PoolWindow};
use crate::ops::quantize::{DequantizeLinear, QuantizeLinear};
use crate::ops::reduce::Reduce;
use crate::ops::resize::Resize;
use crate::ops::shape::{Concat, Flatten, Split, Transpose};
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

/// Rewrites the graph; gives the number of operators that now work channels-last.
///
/// # Errors
/// Fails when an operator refuses its inputs.
pub fn channels_last(graph: &mut Graph) -> Result<usize, GraphError> {
    let facts = infer::facts(graph, &HashMap::new())?;
    let maps = ValueMaps::new(graph, facts);
    let nodes = std::mem::take(&mut graph.nodes);
    let mut pass =
        ChannelsLastPass { graph, maps, made: Vec::new(), twins: HashMap::new(), changed: 0 };
    for node in nodes {
        pass.place(node);
    }
    for output in pass.graph.outputs.clone() {
        pass.channels_first(output);
    }
    let ChannelsLastPass { made, changed, .. } = pass;
    graph.nodes = made;
    graph.remove_unused();
    // A model that turns values around its convolutions itself did so for the order that is gone.
    graph.sort()?;
    super::run(graph, super::RuleFunction::Graph(super::merge_views::apply))?;
    super::run(graph, super::RuleFunction::Graph(super::remove_identity::apply))?;
    super::run(graph, super::RuleFunction::Node(super::fuse_conv::residual))?;
    super::run(graph, super::RuleFunction::Node(super::fuse_conv::activation))?;
    super::run(graph, super::RuleFunction::Node(super::quantized_conv::residual))?;
    Ok(changed)
}

/// A value in channels-last order beside the model's own.
struct ChannelsLastTwin {
    last: ValueId,
    /// True if some node writes the model's own order too.
    has_first: bool,
}

struct ChannelsLastPass<'g> {
    graph: &'g mut Graph,
    maps: ValueMaps,
    made: Vec<Node>,
    twins: HashMap<ValueId, ChannelsLastTwin>,
    changed: usize,
}

impl ChannelsLastPass<'_> {
    fn rank(&self, id: ValueId) -> Option<usize> {
        self.maps.fact(id)?.rank()
    }

    fn name(&self, id: ValueId) -> String {
        self.graph.value(id).name.clone()
    }

    /// The value in channels-last order, transposed where no node writes it so.
    fn channels_last(&mut self, id: ValueId, rank: usize) -> ValueId {
        if let Some(twin) = self.twins.get(&id) {
            return twin.last;
        }
        let last = self.graph.fresh_value(&format!("{}.channels_last", self.name(id)));
        let perm = std::iter::once(0).chain(2..rank).chain([1]).collect();
        self.transpose(id, last, perm);
        self.twins.insert(id, ChannelsLastTwin { last, has_first: true });
        last
    }

    /// Makes sure that a node writes the value in the model's own order.
    fn channels_first(&mut self, id: ValueId) {
        let Some(twin) = self.twins.get_mut(&id) else { return };
        if std::mem::replace(&mut twin.has_first, true) {
            return;
        }
        let last = twin.last;
        let rank = self.rank(id).unwrap_or(4);
        let perm = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        self.transpose(last, id, perm);
    }

    fn transpose(&mut self, from: ValueId, to: ValueId, perm: Vec<usize>) {
        self.made.push(Node {
            name: format!("{}.order", self.name(to)),
            domain: ONNX_DOMAIN.to_owned(),
            op_type: "Transpose".to_owned(),
            inputs: vec![Some(from)],
            outputs: vec![Some(to)],
            operator: Arc::new(Transpose { perm: Some(perm) }),
            parsed: None,
        });
    }

    fn place(&mut self, node: Node) {
        let made = self
            .spatial(&node)
            .or_else(|| self.mean(&node))
            .or_else(|| self.concat(&node))
            .or_else(|| self.split(&node))
            .or_else(|| self.resize(&node))
            .or_else(|| self.elementwise(&node));
        match made {
            Some(made) => {
                self.changed += 1;
                self.made.push(made);
            }
            None => {
                for input in node.inputs.iter().flatten() {
                    self.channels_first(*input);
                }
                self.made.push(node);
            }
        }
    }

    /// The node with other inputs, writing the channels-last twin of its output.
    fn twin_node(
        &mut self,
        node: &Node,
        domain: &str,
        op_type: &str,
        operator: Arc<dyn crate::Operator>,
        inputs: Vec<Option<ValueId>>,
    ) -> Option<Node> {
        let output = node.output(0)?;
        let last = self.graph.fresh_value(&format!("{}.channels_last", self.name(output)));
        self.twins.insert(output, ChannelsLastTwin { last, has_first: false });
        Some(Node {
            name: node.name.clone(),
            domain: domain.to_owned(),
            op_type: op_type.to_owned(),
            inputs,
            outputs: vec![Some(last)],
            operator,
            parsed: None,
        })
    }

    /// Convolutions and poolings.
    fn spatial(&mut self, node: &Node) -> Option<Node> {
        let input = node.input(0)?;
        let rank = self.rank(input).filter(|rank| (3..=5).contains(rank))?;
        if let Some(conv) = node.operator::<QLinearConv>().filter(|conv| !conv.conv.channels_last) {
            self.graph.constant(node.input(3)?)?;
            let conv = Conv { channels_last: true, ..conv.conv.clone() };
            let mut inputs = node.inputs.clone();
            inputs[0] = Some(self.channels_last(input, rank));
            let operator = Arc::new(QLinearConv { conv });
            return self.twin_node(node, CONTRIB_DOMAIN, "QLinearConv", operator, inputs);
        }
        let bytes = self.maps.fact(input).is_some_and(|fact| {
            matches!(fact.dtype, DataType::Int8 | DataType::Uint8) && node.op_type == "MaxPool"
        });
        if !(bytes || self.maps.is_fp32(input)) || node.outputs.iter().skip(1).any(Option::is_some)
        {
            return None;
        }
        if let Some(fused) = as_fused_conv(node) {
            self.graph.constant(node.input(1)?)?;
            let x = self.channels_last(input, rank);
            if let Some(bias) = node.input(2) {
                self.channels_first(bias);
            }
            let residual = node.input(3).map(|id| self.channels_last(id, rank));
            let mut inputs = vec![Some(x), node.input(1), node.input(2), residual];
            while inputs.last() == Some(&None) {
                inputs.pop();
            }
            return self.twin_node(node, GALATEA_DOMAIN, "FusedConv", Arc::new(fused), inputs);
        }
        let (name, operator) = pool_channels_last(node)?;
        let x = self.channels_last(input, rank);
        self.twin_node(node, GALATEA_DOMAIN, name, operator, vec![Some(x)])
    }

    /// The mean over all pixels of what is channels-last: a global pooling.
    fn mean(&mut self, node: &Node) -> Option<Node> {
        let reduce = node.operator::<Reduce>().filter(|_| node.op_type == "ReduceMean")?;
        let input = node.input(0)?;
        let rank = self.rank(input).filter(|rank| (3..=5).contains(rank))?;
        let given = match node.input(1) {
            Some(axes) => self.maps.constant(self.graph, axes)?.to_i64_vec().ok()?,
            None => reduce.axes.clone()?,
        };
        let count = i64::try_from(rank).ok()?;
        let mut axes: Vec<i64> =
            given.iter().map(|&axis| if axis < 0 { axis + count } else { axis }).collect();
        axes.sort_unstable();
        if !self.maps.is_fp32(input) || !self.only_last(input) || !axes.into_iter().eq(2..count) {
            return None;
        }
        let inputs = vec![Some(self.channels_last(input, rank))];
        let (name, operator) = pooled();
        if reduce.keepdims {
            return self.twin_node(node, GALATEA_DOMAIN, name, operator, inputs);
        }
        let kept = self.graph.fresh_value(&format!("{}.pooled", self.name(node.output(0)?)));
        self.made.push(Node {
            name: format!("{}.pooled", node.name),
            domain: GALATEA_DOMAIN.to_owned(),
            op_type: name.to_owned(),
            inputs,
            outputs: vec![Some(kept)],
            operator,
            parsed: None,
        });
        Some(Node {
            domain: ONNX_DOMAIN.to_owned(),
            op_type: "Flatten".to_owned(),
            inputs: vec![Some(kept)],
            operator: Arc::new(Flatten { axis: 1 }),
            parsed: None,
            ..node.clone()
        })
    }

    /// Returns whether a value is at hand in channels-last order only.
    fn only_last(&self, id: ValueId) -> bool {
        self.twins.get(&id).is_some_and(|twin| !twin.has_first)
    }

    fn concat(&mut self, node: &Node) -> Option<Node> {
        let concat = node.operator::<Concat>()?;
        let inputs: Vec<ValueId> = collected_some(&mut node.inputs.iter().copied())?;
        let rank = self.rank(*inputs.first()?).filter(|rank| (3..=5).contains(rank))?;
        let axis = turned_axis(concat.axis, rank)?;
        let at_hand = inputs.iter().all(|id| self.twins.contains_key(id));
        if !at_hand || !inputs.iter().any(|&id| self.only_last(id)) {
            return None;
        }
        let inputs = inputs.into_iter().map(|id| Some(self.channels_last(id, rank))).collect();
        self.twin_node(node, ONNX_DOMAIN, "Concat", Arc::new(Concat { axis }), inputs)
    }

    /// A split of what is channels-last; its pieces are too.
    fn split(&mut self, node: &Node) -> Option<Node> {
        let split = node.operator::<Split>()?;
        let input = node.input(0)?;
        let rank = self.rank(input).filter(|rank| (3..=5).contains(rank))?;
        let axis = turned_axis(split.axis, rank)?;
        if !self.only_last(input) {
            return None;
        }
        let x = self.channels_last(input, rank);
        let outputs = node
            .outputs
            .iter()
            .map(|slot| {
                let output = (*slot)?;
                let name = format!("{}.channels_last", self.name(output));
                let last = self.graph.fresh_value(&name);
                self.twins.insert(output, ChannelsLastTwin { last, has_first: false });
                Some(last)
            })
            .collect();
        let inputs = std::iter::once(Some(x)).chain(node.inputs.iter().skip(1).copied()).collect();
        let operator = Arc::new(Split { axis, ..split.clone() });
        Some(Node { inputs, outputs, operator, parsed: None, ..node.clone() })
    }

    /// A change of size of what is channels-last.
    fn resize(&mut self, node: &Node) -> Option<Node> {
        let resize = node.operator::<Resize>()?;
        let input = node.input(0)?;
        let rank = self.rank(input).filter(|rank| (3..=5).contains(rank))?;
        if !self.only_last(input) {
            return None;
        }
        let all = || (0..rank).map(|axis| i64::try_from(axis).ok()).collect();
        let axes: Vec<i64> = resize.axes.clone().or_else(all)?;
        let axes = collected_some(&mut axes.into_iter().map(|axis| turned_axis(axis, rank)))?;
        let operator = Resize { axes: Some(axes), ..resize.clone() };
        let x = self.channels_last(input, rank);
        let inputs = std::iter::once(Some(x)).chain(node.inputs.iter().skip(1).copied()).collect();
        self.twin_node(node, &node.domain, &node.op_type, Arc::new(operator), inputs)
    }

    /// Elementwise operators all of whose inputs are channels-last already, or one number.
    fn elementwise(&mut self, node: &Node) -> Option<Node> {
        let scaled = node.operator::<QuantizeLinear>().is_some()
            || node.operator::<DequantizeLinear>().is_some();
        let single = scaled || node.traits().elementwise.is_some();
        let pair = node.operator::<QLinear>().is_some()
            && ["QLinearAdd", "QLinearMul"].contains(&node.op_type.as_str());
        let fused = node.operator::<FusedElementwise>().is_some();
        if !(single || pair || fused || node.operator::<LookUp>().is_some()) {
            return None;
        }
        let output = node.output(0)?;
        let rank = self.rank(output).filter(|rank| (3..=5).contains(rank))?;
        let is_number = |id: ValueId| {
            self.maps.constant(self.graph, id).is_some_and(|t| t.elements() == 1 && t.rank() <= 1)
        };
        let all: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
        let fits = |&id: &ValueId| {
            is_number(id) || (self.rank(id) == Some(rank) && self.twins.contains_key(&id))
        };
        if !all.iter().all(fits) || !all.iter().any(|&id| self.only_last(id)) {
            return None;
        }
        let numbers: Vec<bool> = all.iter().map(|&id| is_number(id)).collect();
        let mut numbers = numbers.into_iter();
        let inputs = node
            .inputs
            .iter()
            .map(|slot| {
                slot.map(|id| match numbers.next() {
                    Some(true) => id,
                    _ => self.channels_last(id, rank),
                })
            })
            .collect();
        self.twin_node(node, &node.domain, &node.op_type, node.operator.clone(), inputs)
    }
}

/// Where an axis of the model's own order lies when the channels come last.
fn turned_axis(axis: i64, rank: usize) -> Option<i64> {
    let count = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis.checked_add(count)? } else { axis };
    match axis {
        0 => Some(0),
        1 => Some(count - 1),
        _ => (axis < count).then_some(axis - 1),
    }
}

/// A convolution in the fused form, channels-last.
fn as_fused_conv(node: &Node) -> Option<FusedConv> {
    if let Some(fused) = node.operator::<FusedConv>() {
        let conv = Conv { channels_last: true, ..fused.conv.clone() };
        return (!fused.conv.channels_last).then_some(FusedConv { conv, ..fused.clone() });
    }
    let conv = node.operator::<Conv>()?;
    let activation = FusedActivation::None;
    let last = Conv { channels_last: true, ..conv.clone() };
    (!conv.channels_last).then_some(FusedConv { conv: last, activation })
}

/// A pooling as the channels-last operator and its name.
fn pool_channels_last(node: &Node) -> Option<(&'static str, Arc<dyn crate::Operator>)> {
    let turned = |window: &PoolWindow| {
        (!window.channels_last).then(|| PoolWindow { channels_last: true, ..window.clone() })
    };
    if let Some(pool) = node.operator::<MaxPool>() {
        let operator = MaxPool { window: turned(&pool.window)?, ..pool.clone() };
        return Some(("MaxPoolNhwc", Arc::new(operator)));
    }
    if let Some(pool) = node.operator::<AveragePool>() {
        let operator = AveragePool { window: turned(&pool.window)?, ..pool.clone() };
        return Some(("AveragePoolNhwc", Arc::new(operator)));
    }
    node.operator::<GlobalAveragePool>().filter(|pool| !pool.channels_last).map(|_| pooled())
}

/// The channels-last mean over all pixels, and its name.
fn pooled() -> (&'static str, Arc<dyn crate::Operator>) {
    ("GlobalAveragePoolNhwc", Arc::new(GlobalAveragePool { channels_last: true }))
}
