//! Which unit of an imagined Mac takes a model where nobody says which: the one that is predicted to be done soonest.

use std::collections::HashMap;
use std::sync::Arc;

use galatea::devices::peaks_of;
use galatea_coreml::{CoreMlProvider, NeuralEngine};
use galatea_gpu::{GpuCapabilities, GpuDevice, GpuProvider, PoolConfig};
use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, Graph, ONNX_DOMAIN, ValueId, infer, rewrite,
};
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::chips;
use galatea_runtime::cost::{ComputeUnit, CostModel};
use galatea_runtime::partition::{live_bytes, partition};
use galatea_runtime::{ClaimRequest, ExecutionProvider, OptimiseLevel, typical_shapes};
use galatea_tensor::{DataType, Tensor};

/// A graph in the making.
struct Net {
    graph: Graph,
    count: usize,
}

impl Net {
    fn new(dtype: DataType, dims: Vec<Dim>) -> (Self, ValueId) {
        let mut graph = Graph::new("net");
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
        let x = graph.value_named("x");
        graph.value_mut(x).declared = Some(Fact::new(dtype, dims));
        graph.inputs.push(x);
        (Self { graph, count: 0 }, x)
    }

    fn constant(&mut self, tensor: Tensor) -> ValueId {
        self.count += 1;
        let id = self.graph.value_named(&format!("c{}", self.count));
        self.graph.value_mut(id).initializer = Some(tensor);
        id
    }

    fn zeros(&mut self, shape: &[usize]) -> ValueId {
        self.constant(Tensor::zeros(DataType::Fp32, shape).unwrap())
    }

    fn node(&mut self, operator: &str, attributes: &Attributes, inputs: &[ValueId]) -> ValueId {
        self.count += 1;
        let out = self.graph.value_named(&format!("v{}", self.count));
        let inputs = inputs.iter().copied().map(Some).collect();
        self.graph
            .add_node(ONNX_DOMAIN, operator, "", attributes, inputs, vec![Some(out)])
            .unwrap();
        out
    }

    fn plain(&mut self, operator: &str, inputs: &[ValueId]) -> ValueId {
        self.node(operator, &Attributes::new(), inputs)
    }

    fn layer(&mut self, x: ValueId, from: usize, to: usize) -> ValueId {
        let (w, b) = (self.zeros(&[from, to]), self.zeros(&[to]));
        let product = self.plain("MatMul", &[x, w]);
        self.plain("Add", &[product, b])
    }

    fn norm(&mut self, x: ValueId, width: usize) -> ValueId {
        let (scale, bias) = (self.zeros(&[width]), self.zeros(&[width]));
        self.plain("LayerNormalization", &[x, scale, bias])
    }

    /// Rows of heads: `[1, rows, width]` as `[1, heads, rows, width / heads]`, or with rows last.
    fn heads(&mut self, x: ValueId, heads: usize, width: usize, perm: [i64; 4]) -> ValueId {
        let lengths = [0, 0, heads, width / heads].map(|len| i64::try_from(len).unwrap());
        let shape = self.constant(Tensor::vector(lengths.to_vec()));
        let apart = self.plain("Reshape", &[x, shape]);
        self.node("Transpose", &ints("perm", &perm), &[apart])
    }

    /// A layer of an encoder.
    fn encoder(&mut self, x: ValueId, heads: usize, width: usize) -> ValueId {
        let [q, k, v] = [(); 3].map(|()| self.layer(x, width, width));
        let q = self.heads(q, heads, width, [0, 2, 1, 3]);
        let k = self.heads(k, heads, width, [0, 2, 3, 1]);
        let v = self.heads(v, heads, width, [0, 2, 1, 3]);
        let scores = self.plain("MatMul", &[q, k]);
        let shares = self.plain("Softmax", &[scores]);
        let seen = self.plain("MatMul", &[shares, v]);
        let together = self.node("Transpose", &ints("perm", &[0, 2, 1, 3]), &[seen]);
        let shape = self.constant(Tensor::vector(vec![0, 0, i64::try_from(width).unwrap()]));
        let together = self.plain("Reshape", &[together, shape]);
        let out = self.layer(together, width, width);
        let x = self.plain("Add", &[x, out]);
        let x = self.norm(x, width);
        let wide = self.layer(x, width, 4 * width);
        let wide = self.plain("Gelu", &[wide]);
        let narrow = self.layer(wide, 4 * width, width);
        let x = self.plain("Add", &[x, narrow]);
        self.norm(x, width)
    }

    fn convolution(&mut self, x: ValueId, from: usize, to: usize, kernel: usize) -> ValueId {
        let w = self.zeros(&[to, from, kernel, kernel]);
        let pad = i64::try_from(kernel / 2).unwrap();
        let y = self.node("Conv", &ints("pads", &[pad; 4]), &[x, w]);
        self.plain("Relu", &[y])
    }

    fn done(mut self, out: ValueId) -> Graph {
        self.graph.outputs.push(out);
        rewrite::optimise(&mut self.graph, OptimiseLevel::O1).unwrap();
        self.graph.sort().unwrap();
        self.graph
    }
}

fn ints(name: &str, values: &[i64]) -> Attributes {
    Attributes::from([(name.to_owned(), AttributeValue::Ints(values.to_vec()))])
}

/// Layers of an encoder over so many rows, or as many as a run brings.
fn encoder(layers: usize, heads: usize, width: usize, rows: Dim) -> Graph {
    let (mut net, mut x) = Net::new(DataType::Fp32, vec![Dim::Known(1), rows, Dim::Known(width)]);
    for _ in 0..layers {
        x = net.encoder(x, heads, width);
    }
    net.done(x)
}

/// As MiniLM's: six layers of 384.
fn mini_lm(rows: Dim) -> Graph {
    encoder(6, 12, 384, rows)
}

/// Bottlenecks of as much arithmetic as ResNet-50's.
fn image() -> Graph {
    let (mut net, mut x) = Net::new(DataType::Fp32, [1, 256, 28, 28].map(Dim::Known).to_vec());
    for _ in 0..8 {
        let narrow = net.convolution(x, 256, 128, 1);
        let wide = net.convolution(narrow, 128, 384, 3);
        let back = net.convolution(wide, 384, 256, 1);
        x = net.plain("Add", &[x, back]);
    }
    net.done(x)
}

/// A step of a decoder of one row: weights are read and next to nothing is computed.
fn step() -> Graph {
    encoder(6, 12, 768, Dim::Known(1))
}

/// The GPU of a chip, which computes nothing here.
fn gpu(chip: &str) -> Arc<dyn ExecutionProvider> {
    let able = GpuCapabilities {
        name: chip.to_owned(),
        unified: true,
        binding_bytes: 4 << 30,
        buffer_bytes: 4 << 30,
        workgroup_bytes: 32 << 10,
        workgroup_threads: 1024,
        workgroups: 65_535,
        alignment: 256,
        subgroup: Some((32, 32)),
        ..GpuCapabilities::default()
    };
    let device = GpuDevice::imagined(able, &PoolConfig::default()).unwrap();
    Arc::new(GpuProvider::on(device).with_stated(peaks_of(&format!("Apple {chip}"))))
}

/// The processor of a chip.
fn processor(chip: &str) -> Arc<dyn ExecutionProvider> {
    let known = chips::find(&format!("Apple {chip}")).unwrap();
    let cost = *CostModel::of(known.facts, 0).unit(ComputeUnit::Cpu).unwrap();
    Arc::new(CpuProvider::new().with_cost(cost))
}

/// Who runs most of a graph on a chip, with the milliseconds that each provider is predicted to need for it all.
fn winner(graph: &Graph, chip: &str) -> (&'static str, String) {
    let engine = CoreMlProvider::new().with_engine(NeuralEngine::of(chip).unwrap());
    let units: [Arc<dyn ExecutionProvider>; 3] = [Arc::new(engine), gpu(chip), processor(chip)];
    let facts = infer::facts(graph, &HashMap::new()).unwrap();
    let usual = typical_shapes(graph, &facts, &[]).unwrap();
    let offers = units.clone().map(|unit| {
        unit.claim(&ClaimRequest { typical: &usual, ..ClaimRequest::new(graph, &facts) })
    });
    let nodes = graph.nodes.len();
    let parts = partition(nodes, &offers, &live_bytes(graph, &usual), 16).unwrap();
    let most = parts.iter().max_by_key(|part| part.nodes.len()).unwrap();
    let told = units.iter().zip(&offers).map(|(unit, offer)| {
        let all: f64 = offer.claims.iter().map(|claim| claim.cost_ns).sum();
        let refused = offer.refusals.first().map_or("", |refusal| refusal.reason.as_str());
        let (name, claimed) = (unit.name(), offer.claims.len());
        let ms = (all + offer.launch_ns) / 1e6;
        format!("{name}: {ms:.2} ms for {claimed} of {nodes} nodes {refused}")
    });
    (units[most.provider].name(), format!("{chip}: {}", told.collect::<Vec<_>>().join("; ")))
}

#[test]
fn images_go_to_the_engine_unless_the_gpu_is_large() {
    let graph = image();
    for (chip, expected) in [("M1", "coreml"), ("M4", "coreml"), ("M4 Max", "gpu")] {
        let (found, why) = winner(&graph, chip);
        assert_eq!(found, expected, "{why}");
    }
}

#[test]
fn encoders_of_texts_go_to_the_engine_whether_their_length_is_known_or_not() {
    for rows in [Dim::Known(128), Dim::symbol("length")] {
        let (found, why) = winner(&mini_lm(rows), "M1");
        assert_eq!(found, "coreml", "{why}");
    }
    // A few rows are not worth a start.
    let (found, why) = winner(&mini_lm(Dim::Known(16)), "M4");
    assert_eq!(found, "cpu", "{why}");
}

#[test]
fn steps_that_read_weights_are_not_worth_the_starts_of_a_gpu() {
    // The engine reads halves, the processor of a larger chip more bytes.
    for (chip, expected) in [("M1", "coreml"), ("M4 Max", "cpu")] {
        let (found, why) = winner(&step(), chip);
        assert_eq!(found, expected, "{why}");
    }
}

#[test]
fn long_texts_go_to_a_large_gpu() {
    let (found, why) = winner(&encoder(6, 12, 768, Dim::Known(1024)), "M4 Max");
    assert_eq!(found, "gpu", "{why}");
}
