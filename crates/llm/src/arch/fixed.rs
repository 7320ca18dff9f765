//! Graphs of one sequence whose lengths are all known, as compilers of accelerators want them: no
//! looking up, no blocks, attention spelled out.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use galatea_graph::blocks::BlockWeights;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::built::{BuiltArchitecture, LookUpKey, RowTable};
use super::net::{LinearSizes, NetBuilder, int};
use super::operands::{AttentionOperands, LayerHeads, StepAngles};
use super::{CheckpointWeights, ModelShape, contradiction};
use crate::error::{LlmError, LlmErrorKind, Result};

/// The first version of ONNX that writes into caches.
const OPSET: i64 = 24;

/// Most logits of one product: the Neural Engine has no longer axes.
const MAX_LOGITS: usize = 16_384;

/// The inputs and outputs that have the same name in all graphs of this form.
const START: &str = "start";
const MASK: &str = "mask";
const HIDDEN: &str = "hidden";
const NEXT: &str = "next";

/// The lengths of a graph of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedOptions {
    /// Rows of a step.
    pub rows: usize,
    /// Most positions of a sequence.
    pub context: usize,
    /// Number of which both lengths of the caches, positions and elements of a head, are multiples; 1 adds nothing.
    /// Masks hide positions behind the context, and elements behind a head are zeros. The Neural Engine fails on
    /// states whose lengths are no multiples of 32.
    pub multiple: usize,
    /// Whether attention and turns stand as models are exported, keys repeated for the heads that share them:
    /// for conversions that know these whole and write them in forms of their own.
    pub exported: bool,
}

impl FixedOptions {
    /// Returns the positions of the caches.
    #[must_use]
    pub fn cache_positions(&self) -> usize {
        self.padded(self.context)
    }

    /// Returns a length with what is added to it in caches.
    #[must_use]
    pub fn padded(&self, length: usize) -> usize {
        length.next_multiple_of(self.multiple.max(1))
    }

    pub(super) fn check(&self, shape: &ModelShape) -> Result<()> {
        let Self { rows, context, .. } = *self;
        if rows == 0 || rows > context || context > shape.positions {
            let most = shape.positions;
            let text = format!(
                "{rows} rows of {context} positions found, expected rows from 1 to the positions, \
                 and those up to {most}"
            );
            return Err(LlmError::new(LlmErrorKind::Parameter, "context", text));
        }
        Ok(())
    }
}

/// Weights of which the graph holds the numbers themselves.
pub(super) struct PlainWeights<'w>(pub(super) &'w dyn CheckpointWeights);

impl CheckpointWeights for PlainWeights<'_> {
    fn tensor(&self, name: &str) -> Result<Tensor> {
        self.0.tensor(name)
    }

    fn turned_blocks(&self, _name: &str) -> Result<Option<Arc<dyn BlockWeights>>> {
        Ok(None)
    }

    fn release(&self) {
        self.0.release();
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

/// The inputs of a step of one sequence.
pub(super) struct FixedStep {
    options: FixedOptions,
    kv_heads: usize,
    head_size: usize,
    /// Elements of a head in the caches.
    cache_size: usize,
    start: ValueId,
    /// Keys and values of each layer.
    caches: Vec<[ValueId; 2]>,
}

impl FixedStep {
    pub(super) fn inputs(
        net: &mut NetBuilder<'_>,
        shape: &ModelShape,
        options: &FixedOptions,
    ) -> Self {
        net.set_opset(OPSET);
        let start = net.input(START, DataType::Int64, &[Dim::Known(1)]);
        let ModelShape { kv_heads, head_size, .. } = *shape;
        let cache_size = options.padded(head_size);
        let dims = [1, kv_heads, options.cache_positions(), cache_size].map(Dim::Known);
        let mut cache =
            |kind: &str, layer: usize| net.input(&format!("{kind}.{layer}"), DataType::Fp32, &dims);
        let caches =
            (0..shape.layers).map(|layer| [cache("key", layer), cache("value", layer)]).collect();
        Self { options: *options, kv_heads, head_size, cache_size, start, caches }
    }

    /// A row of a table for each row of the step.
    fn rows(
        &self,
        net: &mut NetBuilder<'_>,
        input: &str,
        by: LookUpKey,
        rows: Tensor,
        dims: &[usize],
    ) -> ValueId {
        let row = dims.get(1..).unwrap_or_default().to_vec();
        let dims: Vec<Dim> = dims.iter().copied().map(Dim::Known).collect();
        let id = net.input(input, DataType::Fp32, &dims);
        net.tables.push(RowTable { input: input.to_owned(), by, row, rows });
        id
    }

    /// A row of a matrix for each row of the step.
    pub(super) fn looked_up(
        &self,
        net: &mut NetBuilder<'_>,
        name: &str,
        sizes: [usize; 2],
        by: LookUpKey,
    ) -> Result<ValueId> {
        let table = net.weight(name, &sizes)?;
        let input = match by {
            LookUpKey::Token => "embeddings",
            LookUpKey::Position => "places",
        };
        Ok(self.rows(net, input, by, table, &[self.options.rows, sizes[1]]))
    }

    /// The angles of a row are those of all its heads.
    pub(super) fn angles(
        &self,
        net: &mut NetBuilder<'_>,
        kind: &str,
        cos: Tensor,
        sin: Tensor,
    ) -> StepAngles {
        let mut rows = |name: String, table: Tensor| {
            let dims = [self.options.rows, 1, table.shape().last().copied().unwrap_or(1)];
            self.rows(net, &name, LookUpKey::Position, table, &dims)
        };
        StepAngles { cos: rows(format!("cos{kind}"), cos), sin: rows(format!("sin{kind}"), sin) }
    }

    /// Both halves of each head turned.
    pub(super) fn turned(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        angles: StepAngles,
        heads: usize,
    ) -> Result<ValueId> {
        let rows = self.options.rows;
        if self.options.exported {
            let apart = self.by_head(net, x, heads)?;
            let pairs = [1, rows, self.head_size / 2];
            let cos = reshaped(net, angles.cos, &pairs)?;
            let sin = reshaped(net, angles.sin, &pairs)?;
            let turned = net.one("RotaryEmbedding", &[], &[apart, cos, sin])?;
            let back = turned_axes(net, turned, &[0, 2, 1, 3])?;
            return reshaped(net, back, &[rows, heads * self.head_size]);
        }
        let apart = reshaped(net, x, &[rows, heads, self.head_size])?;
        let last = ("axis", AttributeValue::Int(-1));
        let parts = ("num_outputs", AttributeValue::Int(2));
        let [first, second] = net.several("Split", &[last.clone(), parts], &[apart])?;
        let mut product = |a, b| net.one("Mul", &[], &[a, b]);
        let own = product(first, angles.cos)?;
        let other = product(second, angles.sin)?;
        let behind = product(second, angles.cos)?;
        let before = product(first, angles.sin)?;
        let front = net.one("Sub", &[], &[own, other])?;
        let back = net.one("Add", &[], &[behind, before])?;
        let turned = net.one("Concat", &[last], &[front, back])?;
        reshaped(net, turned, &[rows, heads * self.head_size])
    }

    /// Rows of heads as `[1, heads, rows, elements]`.
    fn by_head(&self, net: &mut NetBuilder<'_>, x: ValueId, heads: usize) -> Result<ValueId> {
        let apart = reshaped(net, x, &[1, self.options.rows, heads, self.head_size])?;
        turned_axes(net, apart, &[0, 2, 1, 3])
    }

    /// Rows of heads as `[1, heads, rows, elements]`, as long as those of the caches.
    fn as_cached(&self, net: &mut NetBuilder<'_>, x: ValueId, heads: usize) -> Result<ValueId> {
        let apart = self.by_head(net, x, heads)?;
        let missing = self.cache_size - self.head_size;
        if missing == 0 {
            return Ok(apart);
        }
        let pads = [0, 0, 0, 0, 0, 0, 0, missing].map(int).to_vec();
        let pads = net.constant("pads", Tensor::vector(pads));
        net.one("Pad", &[], &[apart, pads])
    }

    /// The elements of heads without what caches add.
    fn without_padding(&self, net: &mut NetBuilder<'_>, x: ValueId) -> Result<ValueId> {
        if self.cache_size == self.head_size {
            return Ok(x);
        }
        let mut vector = |name: &str, number: i64| net.constant(name, Tensor::vector(vec![number]));
        let cut = [vector("first", 0), vector("last", int(self.head_size)), vector("axis", 3)];
        net.one("Slice", &[], &[x, cut[0], cut[1], cut[2]])
    }

    /// Each head of a cache so many times, one behind the other.
    fn repeated(&self, net: &mut NetBuilder<'_>, cache: ValueId, times: usize) -> Result<ValueId> {
        let heads = self.kv_heads;
        let context = self.options.cache_positions();
        let size = self.cache_size;
        let axis = net.constant("axis", Tensor::vector(vec![2_i64]));
        let apart = net.one("Unsqueeze", &[], &[cache, axis])?;
        let shape = [1, heads, times, context, size].map(int).to_vec();
        let shape = net.constant("shape", Tensor::vector(shape));
        let spread = net.one("Expand", &[], &[apart, shape])?;
        reshaped(net, spread, &[1, heads * times, context, size])
    }

    /// Masks that hide positions from rows, of layers that see so many; 0 is all.
    fn mask(&self, net: &mut NetBuilder<'_>, window: usize) -> ValueId {
        let (rows, context) = (self.options.rows, self.options.cache_positions());
        let name = if window == 0 { MASK.to_owned() } else { format!("{MASK}_{window}") };
        net.input_once(&name, DataType::Fp32, &[1, 1, rows, context].map(Dim::Known))
    }

    /// Attention of a layer, and its caches after the step. Heads that share keys are more rows of one.
    pub(super) fn attended(
        &self,
        net: &mut NetBuilder<'_>,
        operands: AttentionOperands,
        heads: &LayerHeads,
        layer: usize,
    ) -> Result<(ValueId, Vec<ValueId>)> {
        let FixedOptions { rows, exported, .. } = self.options;
        let context = self.options.cache_positions();
        let size = self.cache_size;
        let own = heads.heads;
        let shared = heads.kv_heads;
        // Nobody knows attention whose scores are bent.
        let exported = exported && heads.softcap <= 0.0;
        let caches = self.caches.get(layer).copied();
        let caches = caches.ok_or_else(|| contradiction(format!("there is no layer {layer}")))?;
        let mut kept = [operands.key, operands.value];
        for (new, cache) in kept.iter_mut().zip(caches) {
            let rows = self.as_cached(net, *new, self.kv_heads)?;
            *new = net.one("TensorScatter", &[], &[cache, rows, self.start])?;
        }
        #[allow(clippy::cast_precision_loss, reason = "the length of a key")]
        let scale = heads.scale.unwrap_or_else(|| 1.0 / (self.head_size as f32).sqrt());
        let scale = net.constant("scale", Tensor::scalar(scale));
        // Before the product, so that its sums stay small.
        let query = net.one("Mul", &[], &[operands.query, scale])?;
        let mut query = self.as_cached(net, query, own)?;
        let joined = own / shared * rows;
        let grouped = own != shared && !exported;
        let mut keys = kept[0];
        let mut values = kept[1];
        // One head of keys is as good as many in a product.
        if own != shared && exported && shared > 1 {
            keys = self.repeated(net, keys, own / shared)?;
            values = self.repeated(net, values, own / shared)?;
        }
        if grouped {
            query = reshaped(net, query, &[1, shared, joined, size])?;
        }
        let keys = turned_axes(net, keys, &[0, 1, 3, 2])?;
        let mut scores = net.one("MatMul", &[], &[query, keys])?;
        if grouped {
            scores = reshaped(net, scores, &[1, own, rows, context])?;
        }
        if heads.softcap > 0.0 {
            let most = net.constant("softcap", Tensor::scalar(heads.softcap));
            let part = net.one("Div", &[], &[scores, most])?;
            let bent = net.one("Tanh", &[], &[part])?;
            scores = net.one("Mul", &[], &[bent, most])?;
        }
        // A window as long as a sequence hides nothing.
        let window = if heads.window < self.options.context { heads.window } else { 0 };
        let mask = self.mask(net, window);
        let scores = net.one("Add", &[], &[scores, mask])?;
        let mut shares = net.one("Softmax", &[("axis", AttributeValue::Int(-1))], &[scores])?;
        if grouped {
            shares = reshaped(net, shares, &[1, shared, joined, context])?;
        }
        let mut attended = net.one("MatMul", &[], &[shares, values])?;
        if grouped {
            attended = reshaped(net, attended, &[1, own, rows, size])?;
        }
        let attended = self.without_padding(net, attended)?;
        let attended = turned_axes(net, attended, &[0, 2, 1, 3])?;
        Ok((reshaped(net, attended, &[rows, own * self.head_size])?, kept.to_vec()))
    }

    /// Logits in parts that the Neural Engine has axes for.
    pub(super) fn logits(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        name: &str,
        sizes: LinearSizes,
    ) -> Result<Vec<ValueId>> {
        let LinearSizes { inputs, outputs } = sizes;
        let name = format!("{name}.weight");
        let matrix = net.weight(&name, &[outputs, inputs])?;
        let part = |first: usize| -> Result<ValueId> {
            let count = MAX_LOGITS.min(outputs - first);
            let rows = matrix.slice_axis(0, first, count, 1);
            let rows = rows
                .map_err(|error| LlmError::new(LlmErrorKind::Weights, &name, error.to_string()))?;
            let rows = net.as_floats(&name, rows)?;
            net.one("Gemm", &[("transB", AttributeValue::Int(1))], &[x, rows])
        };
        (0..outputs).step_by(MAX_LOGITS).map(part).collect()
    }

    /// Names the results: logits, and keys and values of each layer.
    pub(super) fn outputs(
        &self,
        net: &mut NetBuilder<'_>,
        logits: &[ValueId],
        caches: Vec<ValueId>,
    ) -> Result<()> {
        for (part, &logits) in logits.iter().enumerate() {
            net.output(&format!("logits_{part}"), logits)?;
        }
        for (at, cache) in caches.into_iter().enumerate() {
            let kind = if at % 2 == 0 { "key" } else { "value" };
            net.output(&format!("{kind}.{}.after", at / 2), cache)?;
        }
        Ok(())
    }
}

/// A value with another shape.
fn reshaped(net: &mut NetBuilder<'_>, x: ValueId, shape: &[usize]) -> Result<ValueId> {
    let shape = Tensor::vector(shape.iter().copied().map(int).collect::<Vec<i64>>());
    let shape = net.constant("shape", shape);
    net.one("Reshape", &[], &[x, shape])
}

/// A value with its axes in another order.
fn turned_axes(net: &mut NetBuilder<'_>, x: ValueId, order: &[i64]) -> Result<ValueId> {
    net.one("Transpose", &[("perm", AttributeValue::Ints(order.to_vec()))], &[x])
}

/// A decoder of one sequence whose lengths are all known, which can be cut between layers.
///
/// Its inputs are the position `start` `[1]` of the first row, rows of [`FixedGraph::tables`] under
/// their inputs' names, a mask `[1, 1, rows, positions]` for each window that layers have, `mask` without
/// a window and `mask_N` with one of `N` positions, whose numbers are 0 where a row sees a position and
/// about -10⁴ elsewhere, and for each layer `key.N` and `value.N` `[1, heads, positions, elements]`, of which the
/// last two lengths are padded ([`FixedOptions::multiple`]). Its outputs are the logits of all rows in parts `logits_0`, `logits_1` and so on, and `key.N.after` and `value.N.after`.
#[derive(Debug)]
pub struct FixedGraph {
    graph: Graph,
    tables: Vec<RowTable>,
    /// The rows behind each layer.
    ends: Vec<ValueId>,
    options: FixedOptions,
    shape: ModelShape,
}

impl FixedGraph {
    pub(super) fn new(
        built: BuiltArchitecture,
        options: FixedOptions,
        shape: ModelShape,
    ) -> Result<Self> {
        let BuiltArchitecture { graph, tables, ends } = built;
        if ends.len() != shape.layers {
            return Err(contradiction(format!("{} layers of {}", ends.len(), shape.layers)));
        }
        Ok(Self { graph, tables, ends, options, shape })
    }

    /// The whole graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Kinds of rows that are inputs.
    #[must_use]
    pub fn tables(&self) -> &[RowTable] {
        &self.tables
    }

    /// The model's sizes.
    #[must_use]
    pub fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// How many positions rows see in some layers; 0 is all.
    #[must_use]
    pub fn windows(&self) -> Vec<usize> {
        let window = |&id: &ValueId| {
            let window = self.graph.value(id).name.strip_prefix(MASK)?;
            if window.is_empty() { Some(0) } else { window.strip_prefix('_')?.parse().ok() }
        };
        self.graph.inputs.iter().filter_map(window).collect()
    }

    /// Numbers of the weights of each layer, and of what is behind all of them.
    #[must_use]
    pub fn weights(&self) -> (Vec<usize>, usize) {
        let count = |graph: Result<Graph>| {
            let graph = graph.unwrap_or_default();
            let numbers = |value: &galatea_graph::GraphValue| {
                value.initializer.as_ref().map(Tensor::elements)
            };
            graph.values().iter().filter_map(numbers).sum::<usize>()
        };
        let layers = (0..self.shape.layers).map(|at| count(self.cut(Some(at..at + 1))));
        (layers.collect(), count(self.cut(None)))
    }

    /// Some layers as a graph of their own: the first ones take what the whole takes, others the rows of
    /// those in front of them as `hidden` `[rows, width]`. It gives the rows behind them as `next`, and
    /// their keys and values, which are its last inputs and outputs.
    ///
    /// # Errors
    /// When there are no such layers.
    pub fn layers(&self, layers: Range<usize>) -> Result<Graph> {
        if layers.is_empty() || layers.end > self.shape.layers {
            let text = format!("{layers:?} found, there are {}", self.shape.layers);
            return Err(LlmError::new(LlmErrorKind::Parameter, "layers", text));
        }
        self.cut(Some(layers))
    }

    /// Graph behind the layers: from rows `hidden` `[rows, width]` to logits.
    ///
    /// # Errors
    /// When the graph is damaged.
    pub fn head(&self) -> Result<Graph> {
        self.cut(None)
    }

    fn cut(&self, layers: Option<Range<usize>>) -> Result<Graph> {
        let before = layers.as_ref().map_or(self.shape.layers, |layers| layers.start);
        let first = before.checked_sub(1).and_then(|at| self.ends.get(at)).copied();
        let mut outputs: Vec<(String, ValueId)> = Vec::new();
        if let Some(layers) = &layers {
            let last = layers.end.checked_sub(1).and_then(|at| self.ends.get(at));
            outputs.extend(last.map(|&id| (NEXT.to_owned(), id)));
        }
        for &id in &self.graph.outputs {
            let name = &self.graph.value(id).name;
            let wanted = match (&layers, layer_of(name)) {
                (Some(layers), Some(layer)) => layers.contains(&layer),
                (layers, layer) => layers.is_none() && layer.is_none(),
            };
            if wanted {
                outputs.push((name.clone(), id));
            }
        }
        let first = first.map(|id| (id, self.row_width()));
        let mut part = cut_out(&self.graph, first, &outputs, self.options.rows)?;
        // What is kept comes last, as among the outputs.
        let inputs = std::mem::take(&mut part.inputs);
        let (kept, given): (Vec<_>, Vec<_>) =
            inputs.into_iter().partition(|&id| is_cache(&part.value(id).name));
        part.inputs = given.into_iter().chain(kept).collect();
        Ok(part)
    }

    /// Length of a row between layers.
    fn row_width(&self) -> usize {
        let words = self.tables.iter().find(|table| table.by == LookUpKey::Token);
        words.and_then(|table| table.rows.shape().last().copied()).unwrap_or(1)
    }
}

/// Whether an input holds keys or values.
fn is_cache(name: &str) -> bool {
    ["key.", "value."].iter().any(|kind| name.starts_with(kind))
}

/// The layer that an output of keys or values belongs to.
fn layer_of(name: &str) -> Option<usize> {
    name.strip_suffix(".after")?.split_once('.')?.1.parse().ok()
}

/// The part of a graph that computes some values from its inputs, or from a value that becomes one.
fn cut_out(
    graph: &Graph,
    first: Option<(ValueId, usize)>,
    outputs: &[(String, ValueId)],
    rows: usize,
) -> Result<Graph> {
    let failed = |text: String| LlmError::new(LlmErrorKind::Weights, "the graph", text);
    let border = first.map(|(id, _)| id);
    let mut needed: HashSet<ValueId> = outputs.iter().map(|(_, id)| *id).collect();
    let mut nodes = Vec::new();
    for node in graph.nodes.iter().rev() {
        let gives = |id: &ValueId| needed.contains(id) && Some(*id) != border;
        if node.outputs.iter().flatten().any(gives) {
            needed.extend(node.inputs.iter().flatten());
            nodes.push(node);
        }
    }
    let mut part = Graph::new(graph.name.clone());
    part.opsets.clone_from(&graph.opsets);
    let mut names = vec![None; graph.values().len()];
    if let Some((id, width)) = first {
        let hidden = part.value_named(HIDDEN);
        let dims = [rows, width].map(Dim::Known);
        part.value_mut(hidden).declared = Some(Fact::new(DataType::Fp32, dims.to_vec()));
        part.inputs.push(hidden);
        names[id.index()] = Some(hidden);
    }
    for &id in graph.inputs.iter().filter(|id| needed.contains(id)) {
        let new = part.value_named(&graph.value(id).name);
        part.value_mut(new).declared.clone_from(&graph.value(id).declared);
        part.inputs.push(new);
        names[id.index()] = Some(new);
    }
    for node in nodes.into_iter().rev() {
        let mut renamed = node.clone();
        for slot in renamed.inputs.iter_mut().chain(&mut renamed.outputs).flatten() {
            let old = *slot;
            let known = names[old.index()];
            *slot = known.unwrap_or_else(|| part.value_named(&graph.value(old).name));
            names[old.index()] = Some(*slot);
            if part.value(*slot).initializer.is_none() {
                part.value_mut(*slot).initializer = graph.constant(old).cloned();
            }
        }
        part.nodes.push(renamed);
    }
    for (name, id) in outputs {
        let inside = names[id.index()].ok_or_else(|| failed(format!("nothing gives '{name}'")))?;
        if part.value(inside).name == *name {
            part.outputs.push(inside);
            continue;
        }
        let named = part.value_named(name);
        let nodes = (vec![Some(inside)], vec![Some(named)]);
        part.add_node(ONNX_DOMAIN, "Identity", "", &Attributes::new(), nodes.0, nodes.1)
            .map_err(|error| failed(error.to_string()))?;
        part.outputs.push(named);
    }
    part.sort().map_err(|error| failed(error.to_string()))?;
    Ok(part)
}
