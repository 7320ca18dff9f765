//! Layers of transformers, made at random from the forms in which exporters write them.

use proptest::prelude::*;

use super::*;

/// How a layer is written.
#[derive(Clone, Debug)]
struct Layer {
    kv_heads: usize,
    copies: usize,
    half: usize,
    /// No rotation, by slices, by a split, or ONNX's operator.
    rotary: u8,
    /// No mask, one for all heads, or a bias for each head.
    mask: u8,
    past: bool,
    /// Where the factor on the scores is: on the queries, both operands, the scores, or nowhere.
    factor: u8,
    /// True if the gate of the feed-forward part is its first operand.
    gate_first: bool,
    activation: u8,
    /// True if rows are flattened for the output product.
    flat: bool,
}

fn layers() -> impl Strategy<Value = Layer> {
    let sizes = (1_usize..3, 1_usize..4, 1_usize..4);
    let forms = (0_u8..4, 0_u8..3, any::<bool>(), 0_u8..4, any::<bool>(), 0_u8..3, any::<bool>());
    (sizes, forms).prop_map(|((kv_heads, copies, half), forms)| {
        let (rotary, mask, past, factor, gate_first, activation, flat) = forms;
        Layer { kv_heads, copies, half, rotary, mask, past, factor, gate_first, activation, flat }
    })
}

struct Maker {
    b: Builder,
    layer: Layer,
    batch: Dim,
    sequence: Dim,
}

impl Maker {
    fn width(&self) -> usize {
        2 * self.layer.half
    }

    /// `[batch, heads, sequence, width]` from rows of all heads.
    fn heads(&mut self, rows: ValueId, heads: usize) -> ValueId {
        let target = [0, 0, i64::try_from(heads).unwrap(), i64::try_from(self.width()).unwrap()];
        let target = self.b.constant(Tensor::vector(target.to_vec()));
        let split = self.b.op("Reshape", &[rows, target], &[]);
        self.b.op("Transpose", &[split], &[("perm", ints(&[0, 2, 1, 3]))])
    }

    fn rotated(&mut self, x: ValueId, [cos, sin]: [ValueId; 2]) -> ValueId {
        let half = i64::try_from(self.layer.half).unwrap();
        let number = |b: &mut Builder, value: i64| b.constant(Tensor::vector(vec![value]));
        let last = [("axis", AttributeValue::Int(-1))];
        let (first, second) = match self.layer.rotary {
            0 => return x,
            1 => {
                let [zero, half, end, axis] =
                    [0, half, i64::MAX, 3].map(|value| number(&mut self.b, value));
                let first = self.b.op("Slice", &[x, zero, half, axis], &[]);
                (first, self.b.op("Slice", &[x, half, end, axis], &[]))
            }
            2 => {
                let sizes = self.b.constant(Tensor::vector(vec![half, half]));
                self.b.split(x, sizes, &last)
            }
            _ => return self.b.op("RotaryEmbedding", &[x, cos, sin], &[]),
        };
        let negative = self.b.op("Neg", &[second], &[]);
        let turned = self.b.op("Concat", &[negative, first], &last);
        let along = self.b.op("Mul", &[x, cos], &[]);
        let across = self.b.op("Mul", &[turned, sin], &[]);
        self.b.op("Add", &[along, across], &[])
    }

    /// Cosines and sines as the rotation wants them.
    fn tables(&mut self) -> [ValueId; 2] {
        let (half, width) = (Dim::Known(self.layer.half), Dim::Known(self.width()));
        let dims = match self.layer.rotary {
            3 => vec![self.batch.clone(), self.sequence.clone(), half],
            _ => vec![Dim::Known(1), Dim::Known(1), self.sequence.clone(), width],
        };
        ["cos", "sin"].map(|name| self.b.input(name, &dims))
    }

    /// Each head as often as queries share it.
    fn repeated(&mut self, x: ValueId) -> ValueId {
        if self.layer.copies == 1 {
            return x;
        }
        let axis = self.b.constant(Tensor::vector(vec![2_i64]));
        let single = self.b.op("Unsqueeze", &[x, axis], &[]);
        let shape = self.b.op("Shape", &[x], &[]);
        let mut part = |from: i64, to: i64| {
            let [from, to] = [from, to].map(|at| self.b.constant(Tensor::vector(vec![at])));
            self.b.op("Slice", &[shape, from, to], &[])
        };
        let (lead, tail, batch) = (part(0, 2), part(2, 4), part(0, 1));
        let copies = i64::try_from(self.layer.copies).unwrap();
        let all = i64::try_from(self.layer.copies * self.layer.kv_heads).unwrap();
        let axis = [("axis", AttributeValue::Int(0))];
        let copies = self.b.constant(Tensor::vector(vec![copies]));
        let wide = self.b.op("Concat", &[lead, copies, tail], &axis);
        let expanded = self.b.op("Expand", &[single, wide], &[]);
        let all = self.b.constant(Tensor::vector(vec![all]));
        let joined = self.b.op("Concat", &[batch, all, tail], &axis);
        self.b.op("Reshape", &[expanded, joined], &[])
    }

    fn scaled(&mut self, x: ValueId, factor: f32) -> ValueId {
        let factor = self.b.number(factor);
        self.b.op("Mul", &[x, factor], &[])
    }

    fn after_past(&mut self, name: &str, x: ValueId) -> ValueId {
        if !self.layer.past {
            return x;
        }
        let heads = Dim::Known(self.layer.kv_heads);
        let dims = [self.batch.clone(), heads, Dim::symbol("past"), Dim::Known(self.width())];
        let past = self.b.input(name, &dims);
        let all = self.b.op("Concat", &[past, x], &[("axis", AttributeValue::Int(-2))]);
        self.b.graph.outputs.push(all);
        all
    }

    fn attention(&mut self, x: ValueId) -> ValueId {
        let (kv_heads, width) = (self.layer.kv_heads, self.width());
        let heads = kv_heads * self.layer.copies;
        let mut product = |count: usize, seed: u32| {
            let weights = self.b.constant(noise(&[4, count * width], seed));
            let rows = self.b.op("MatMul", &[x, weights], &[]);
            self.heads(rows, count)
        };
        let (q, k, v) = (product(heads, 1), product(kv_heads, 2), product(kv_heads, 3));
        let tables = if self.layer.rotary == 0 { [x; 2] } else { self.tables() };
        let (mut q, k) = (self.rotated(q, tables), self.rotated(k, tables));
        let (k, v) = (self.after_past("past.key", k), self.after_past("past.value", v));
        let (k, v) = (self.repeated(k), self.repeated(v));
        let mut k = self.b.op("Transpose", &[k], &[("perm", ints(&[0, 1, 3, 2]))]);
        if matches!(self.layer.factor, 0 | 1) {
            q = self.scaled(q, 0.7);
        }
        if self.layer.factor == 1 {
            k = self.scaled(k, 0.7);
        }
        let mut scores = self.b.op("MatMul", &[q, k], &[]);
        if self.layer.factor == 2 {
            let divisor = self.b.number(1.4);
            scores = self.b.op("Div", &[scores, divisor], &[]);
        }
        if self.layer.mask > 0 {
            let heads = if self.layer.mask == 1 { 1 } else { heads };
            let keys = if self.layer.past { "past + sequence" } else { "sequence" };
            let keys = Dim::symbol(keys);
            let dims = [self.batch.clone(), Dim::Known(heads), self.sequence.clone(), keys];
            let mask = self.b.input("mask", &dims);
            scores = self.b.op("Add", &[scores, mask], &[]);
        }
        let weights = self.b.op("Softmax", &[scores], &[("axis", AttributeValue::Int(-1))]);
        let mixed = self.b.op("MatMul", &[weights, v], &[]);
        let turned = self.b.op("Transpose", &[mixed], &[("perm", ints(&[0, 2, 1, 3]))]);
        let columns = i64::try_from(heads * width).unwrap();
        let target = if self.layer.flat { vec![-1, columns] } else { vec![0, 0, columns] };
        let target = self.b.constant(Tensor::vector(target));
        let rows = self.b.op("Reshape", &[turned, target], &[]);
        let weights = self.b.constant(noise(&[heads * width, 4], 4));
        let mut product = self.b.op("MatMul", &[rows, weights], &[]);
        if self.layer.flat {
            let shape = self.b.op("Shape", &[x], &[]);
            product = self.b.op("Reshape", &[product, shape], &[]);
        }
        self.b.op("Add", &[x, product], &[])
    }

    fn feed_forward(&mut self, x: ValueId) -> ValueId {
        let [gate, up, down] = [([4, 6], 5), ([4, 6], 6), ([6, 4], 7)]
            .map(|(shape, seed)| self.b.constant(noise(&shape, seed)));
        let gate = self.b.op("MatMul", &[x, gate], &[]);
        let gate = match self.layer.activation {
            0 => {
                let open = self.b.op("Sigmoid", &[gate], &[]);
                self.b.op("Mul", &[gate, open], &[])
            }
            1 => self.b.op("Relu", &[gate], &[]),
            _ => gate,
        };
        let up = self.b.op("MatMul", &[x, up], &[]);
        let pair = if self.layer.gate_first { [gate, up] } else { [up, gate] };
        let inner = self.b.op("Mul", &pair, &[]);
        let product = self.b.op("MatMul", &[inner, down], &[]);
        self.b.op("Add", &[product, x], &[])
    }
}

impl Builder {
    pub(super) fn split(
        &mut self,
        x: ValueId,
        sizes: ValueId,
        attributes: &[(&str, AttributeValue)],
    ) -> (ValueId, ValueId) {
        self.next += 1;
        let outputs =
            ["first", "second"].map(|part| self.graph.value_named(&format!("{part}{}", self.next)));
        let attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let inputs = vec![Some(x), Some(sizes)];
        let name = format!("n{}", self.next);
        let outs = outputs.map(Some).to_vec();
        self.graph.add_node("", "Split", &name, &attributes, inputs, outs).unwrap();
        (outputs[0], outputs[1])
    }
}

fn build(layer: &Layer) -> Graph {
    let (batch, sequence) = (Dim::symbol("batch"), Dim::symbol("sequence"));
    let mut b = Builder::new();
    b.graph.opsets.insert(String::new(), 23);
    let x = b.input("x", &[batch.clone(), sequence.clone(), Dim::Known(4)]);
    let mut maker = Maker { b, layer: layer.clone(), batch, sequence };
    let attended = maker.attention(x);
    let output = maker.feed_forward(attended);
    maker.b.finish(output)
}

/// Inputs for a batch of two, five positions and three of the past.
fn inputs(graph: &Graph) -> Vec<Tensor> {
    let length = |dim: &Dim| {
        dim.evaluate(&|name| match name {
            "batch" => Some(2),
            "sequence" => Some(5),
            "past" => Some(3),
            _ => None,
        })
    };
    let tensor = |(seed, &id): (usize, &ValueId)| {
        let declared = graph.value(id).declared.as_ref().unwrap();
        let shape: Option<Vec<usize>> =
            declared.shape.as_ref().unwrap().iter().map(length).collect();
        noise(&shape.unwrap(), u32::try_from(seed).unwrap() + 20)
    };
    graph.inputs.iter().enumerate().map(tensor).collect()
}

fn check_layer(layer: &Layer) {
    let graph = build(layer);
    let inputs = inputs(&graph);
    for level in RewriteLevel::ALL {
        let mut rewritten = graph.clone();
        optimise(&mut rewritten, level).unwrap();
        rewritten.sort().unwrap();
        check_equal(&graph, &rewritten, &inputs);
        if level >= RewriteLevel::O2 {
            let count = |name: &str| op_types(&rewritten).iter().filter(|op| **op == name).count();
            assert_eq!(count("Attention"), 1, "{layer:?}");
            assert_eq!(count("Rotary"), if layer.rotary == 0 { 0 } else { 2 }, "{layer:?}");
            for gone in ["Expand", "Softmax", "MatMul", "Mul", "Neg", "Shape"] {
                assert_eq!(count(gone), 0, "{gone} in {layer:?}");
            }
            assert_eq!(count("FusedMatMul"), 7, "{layer:?}");
        }
    }
}

#[test]
fn a_layer_of_llama_becomes_its_few_operators() {
    check_layer(&Layer {
        kv_heads: 2,
        copies: 3,
        half: 2,
        rotary: 1,
        mask: 1,
        past: true,
        factor: 2,
        gate_first: true,
        activation: 0,
        flat: false,
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn layers_of_any_form_are_fused_and_compute_the_same(layer in layers()) {
        check_layer(&layer);
    }
}
