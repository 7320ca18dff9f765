//! The Metal text of every kernel, as wgpu gives it to an Apple GPU: that each is accepted by naga, keeps to the
//! limits of Apple's GPUs, and is the one that was looked at last.
//!
//! `golden/metal` has the texts, and digests of those that are like another one. `cargo xtask metal` writes it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod cases;
mod compiled;
mod computed;
mod golden;
#[path = "../support/matrices.rs"]
mod matrices;
mod specimens;
#[path = "../support/mod.rs"]
mod support;
mod translate;
mod untuned;
mod variants;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use galatea_gpu::{
    CooperativeMatrix, GpuCapabilities, GpuDevice, GpuKernelRow, GpuNodeView, KERNELS,
    KernelShader, PoolConfig,
};
use galatea_graph::{Fact, Graph, infer};
use galatea_runtime::{
    NodeWork, OptimiseLevel, Precision, Run, SessionOptions, product_operations,
};
use galatea_tensor::Tensor;

/// Returns the capabilities that wgpu reports for an Apple GPU.
fn apple() -> GpuCapabilities {
    let matrix = |wide_sums| CooperativeMatrix { size: 8, wide_sums };
    GpuCapabilities {
        name: "apple".into(),
        mappable: true,
        f16: true,
        int64: true,
        subgroup: Some((32, 32)),
        cooperative: vec![matrix(false), matrix(true)],
        timestamps: true,
        ..plain()
    }
}

/// A Metal device that has nothing which kernels can do without.
fn plain() -> GpuCapabilities {
    GpuCapabilities {
        name: "plain".into(),
        unified: true,
        binding_bytes: 4 << 30,
        buffer_bytes: 4 << 30,
        workgroup_bytes: 32 << 10,
        workgroup_threads: 1024,
        workgroups: 65_535,
        alignment: 256,
        ..GpuCapabilities::default()
    }
}

/// A row: its name, its domain and its operators.
pub(crate) type RowKey = (&'static str, &'static str, &'static [&'static str]);

/// A device, and what was seen of kernels on it.
struct Subject<'a> {
    device: &'a Arc<GpuDevice>,
    seen: usize,
    shaders: Vec<(&'static str, KernelShader)>,
    rows: HashSet<RowKey>,
    ops: HashSet<(String, String)>,
    /// Rows whose kernels ask a tuner which way to take.
    asking: HashSet<RowKey>,
    /// Operators whose work is not known.
    uncounted: BTreeSet<String>,
}

impl Subject<'_> {
    /// Runs a graph of one node, and notes which row takes it.
    fn run(
        &mut self,
        graph: &Graph,
        given: Vec<Tensor>,
        precision: Precision,
    ) -> Result<(), String> {
        let options =
            SessionOptions { precision, optimise: OptimiseLevel::O0, ..SessionOptions::default() };
        let session = support::session(self.device, graph, &options)?;
        let names = graph.inputs.iter().map(|&id| graph.value(id).name.as_str());
        let named: Vec<(&str, Tensor)> = names.zip(given.iter().cloned()).collect();
        let asks = !session.problems(&named).map_err(|error| error.to_string())?.is_empty();
        session.run_tensors(Run::owned(given.clone())).map_err(|error| error.to_string())?;
        let facts = infer::facts(graph, &HashMap::new()).map_err(|error| error.to_string())?;
        let node = &graph.nodes[0];
        let view = GpuNodeView { graph, node, facts: &facts, device: self.device, precision };
        let row = KERNELS.find(&view)?;
        self.count(graph, &given, row);
        let key = (row.name, row.domain, row.ops);
        self.rows.insert(key);
        if asks {
            self.asking.insert(key);
        }
        self.ops.insert((node.domain.clone(), node.op_type.clone()));
        Ok(())
    }

    /// Checks the work that a profile shows beside times: every node has bytes, and arithmetic unless it only
    /// moves elements.
    fn count(&mut self, graph: &Graph, given: &[Tensor], row: &GpuKernelRow) {
        let known = graph.inputs.iter().zip(given);
        let known = known.map(|(&id, tensor)| (id, Fact::constant(tensor.clone()))).collect();
        // Floats that a kernel reads as FP16 are not always what the operator takes.
        let (Ok(facts), node) = (infer::facts(graph, &known), &graph.nodes[0]) else { return };
        let written = node.outputs.iter().flatten().filter_map(|id| facts[id.index()].as_ref());
        let empty = written.filter_map(Fact::known_shape).all(|shape| shape.contains(&0));
        // What attention over caches has to do is in numbers that are 0 here.
        if empty || node.op_type == "PagedAttention" {
            return;
        }
        let work = NodeWork::of(node, &|id| facts[id.index()].as_ref()).total();
        let families = ["matmul", "conv", "attention", "block_mat_mul"];
        let product = families.iter().any(|family| row.name.starts_with(family));
        let products = product_operations(node, &facts);
        let wrong = work.bytes == 0
            || product && products == 0
            || work.operations == 0 && !MOVED.contains(&node.op_type.as_str());
        if wrong {
            self.uncounted.insert(format!("{} {}: {work:?}", node.domain, node.op_type));
        }
    }

    /// Counts what was compiled since the last call to a family.
    fn take(&mut self, family: &'static str) {
        let all = self.device.shaders();
        self.shaders.extend(all[self.seen..].iter().map(|shader| (family, shader.clone())));
        self.seen = all.len();
    }

    fn specimens(&mut self, all: Vec<specimens::Specimen>) {
        for specimens::Specimen { family, node } in all {
            let whole = |node: &support::node::Node| {
                let (graph, fed) = node.graph(false);
                (graph, fed.into_iter().map(|(_, tensor)| tensor).collect::<Vec<_>>())
            };
            let (graph, given) = whole(&node);
            let found = self.run(&graph, given.clone(), Precision::Fp32);
            if self.device.capabilities().f16 {
                found.unwrap();
                self.run(&graph, given, Precision::Fp16).unwrap();
                let (graph, given) = whole(&node.narrowed());
                // Some operators are of FP32 only.
                if infer::facts(&graph, &HashMap::new()).is_ok() {
                    self.run(&graph, given, Precision::Fp16).unwrap();
                }
            } else if let Err(reason) = found {
                // Types that only some devices have.
                assert!(reason.contains("of this device do not"), "{reason}");
            }
            self.take(family);
        }
    }

    fn variants(&mut self) {
        variants::products(self.device);
        self.take("matmul");
        variants::few_bits(self);
        self.take("blocks");
        variants::rotations(self);
        self.take("rotary");
        variants::attention(self);
        self.take("attention");
        variants::convolutions(self.device);
        self.take("conv");
    }
}

/// Everything that kernels become on a device that can do this.
fn check(capabilities: GpuCapabilities, more: impl Fn(&Subject<'_>)) {
    let name = capabilities.name.clone();
    let device = GpuDevice::imagined(capabilities, &PoolConfig::default()).unwrap();
    let mut subject = Subject {
        device: &device,
        seen: 0,
        shaders: Vec::new(),
        rows: HashSet::new(),
        ops: HashSet::new(),
        asking: HashSet::new(),
        uncounted: BTreeSet::new(),
    };
    subject.specimens(specimens::all());
    subject.variants();
    subject.specimens(specimens::composed());
    more(&subject);
    let mut texts = Vec::new();
    for (family, shader) in &subject.shaders {
        let checked = translate::check(shader).unwrap_or_else(|e| panic!("{}: {e}", shader.name));
        translate::limits(shader, &checked);
        let text = translate::metal(shader, &checked).unwrap();
        texts.push(golden::Text { family, name: shader.name.to_string(), text });
    }
    golden::compare(&name, &texts);
}

/// Operators that move elements and compute none.
const MOVED: &[&str] = &[
    "BlockGather",
    "Cast",
    "CastLike",
    "Concat",
    "DepthToSpace",
    "Expand",
    "Gather",
    "GatherElements",
    "GatherND",
    "OneHot",
    "Pad",
    "ScatterElements",
    "ScatterND",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Tile",
    "Transpose",
    "Trilu",
    "Where",
];

/// Operators whose kernels only copy what was computed beforehand, and those of old versions of ONNX.
const SAME: &[&str] = &["ConstantOfShape", "Range", "Scatter", "Shape", "Size", "Upsample"];

#[test]
fn every_kernel_is_metal_of_an_apple_gpu() {
    check(apple(), |subject| {
        let mut missing = Vec::new();
        for row in KERNELS.rows() {
            if !subject.rows.contains(&(row.name, row.domain, row.ops)) {
                missing.push(format!("{} of '{}' {:?}", row.name, row.domain, row.ops));
            }
            let own = row.ops.iter().filter(|op| !SAME.contains(op));
            let seen =
                |op: &&&str| subject.ops.contains(&(row.domain.to_owned(), (**op).to_owned()));
            missing.extend(own.filter(|op| !seen(op)).map(|op| format!("{} {op}", row.domain)));
        }
        assert!(missing.is_empty(), "no specimen of {missing:?}");
        let mut wrong = untuned::wrong(&subject.asking);
        wrong.extend(subject.uncounted.iter().map(|what| format!("no work of {what}")));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn every_kernel_is_metal_of_a_plain_gpu() {
    check(plain(), |_| ());
}
