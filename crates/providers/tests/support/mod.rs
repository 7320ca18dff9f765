//! Small graphs, run on `cpu` and on `reference`, and compared.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this")]

use std::ops::{Deref, DerefMut};

use galatea_graph::{AttributeValue, ValueId};
use galatea_providers::by_name;
use galatea_runtime::{OptimiseLevel, Precision, ProfileRow, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};
use galatea_testkit::graph_maker::GraphMaker;

#[allow(unused_imports, reason = "each test file uses a part of this")]
pub use galatea_testkit::graph_maker::{floats, ints, values};

/// A graph under construction, and how it is run.
pub struct Maker {
    pub made: GraphMaker,
    /// The precision in which `cpu` computes matrix multiplications.
    pub precision: Precision,
    /// How far the graph is rewritten.
    pub level: OptimiseLevel,
}

impl Deref for Maker {
    type Target = GraphMaker;

    fn deref(&self) -> &GraphMaker {
        &self.made
    }
}

impl DerefMut for Maker {
    fn deref_mut(&mut self) -> &mut GraphMaker {
        &mut self.made
    }
}

impl Maker {
    pub fn new() -> Self {
        Self { made: GraphMaker::new(), precision: Precision::Fp32, level: OptimiseLevel::O0 }
    }

    pub fn session(&self, provider: &str) -> Session {
        let options = SessionOptions {
            threads: 2,
            optimise: self.level,
            precision: self.precision,
            ..SessionOptions::default()
        };
        Session::new(self.graph.clone(), &[by_name(provider).unwrap()], &options).unwrap()
    }

    /// Runs on both providers; gives the outputs of `cpu` and what ran there.
    pub fn check(
        self,
        outputs: &[Option<ValueId>],
        terms: usize,
    ) -> (Vec<Tensor>, Vec<ProfileRow>) {
        self.compare(outputs, Tolerance::Accumulated { terms, accumulator: DataType::Fp32 })
    }

    /// The same with elements that may be so far apart.
    pub fn check_within(self, outputs: &[Option<ValueId>], distance: f64) -> Vec<ProfileRow> {
        self.compare(outputs, Tolerance::Within(distance)).1
    }

    fn compare(
        mut self,
        outputs: &[Option<ValueId>],
        tolerance: Tolerance,
    ) -> (Vec<Tensor>, Vec<ProfileRow>) {
        self.graph.outputs = outputs.iter().flatten().copied().collect();
        let inputs: Vec<(&str, Tensor)> =
            self.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let expected = self.session("reference").run_tensors(Run::named(&inputs)).unwrap();
        let session = self.session("cpu");
        let mut profiled = session.run(Run::named(&inputs).profiled()).unwrap();
        let rows = std::mem::take(&mut profiled.rows);
        let found = profiled.tensors().unwrap();
        // The second run finds the plan and a used arena.
        let again = session.run_tensors(Run::named(&inputs)).unwrap();
        // The third may write over its inputs.
        let over = session
            .run_tensors(Run::owned(inputs.iter().map(|(_, tensor)| copied(tensor)).collect()));
        let others = again.iter().zip(over.unwrap());
        for ((found, (again, over)), expected) in found.iter().zip(others).zip(&expected) {
            compare(found, expected, tolerance).unwrap();
            compare(again, found, Tolerance::Exact).unwrap();
            compare(&over, found, Tolerance::Exact).unwrap();
        }
        // Of the fourth only some outputs are wanted: the last one, and every other before it.
        let wanted: Vec<bool> = (1..=found.len()).rev().map(|left| left % 2 == 1).collect();
        let given = inputs.iter().map(|(_, tensor)| copied(tensor)).collect();
        let some = session.run_tensors(Run::owned(given).only(&wanted)).unwrap();
        let asked: Vec<&Tensor> = found
            .iter()
            .zip(&wanted)
            .filter_map(|(found, wanted)| wanted.then_some(found))
            .collect();
        assert_eq!(some.len(), asked.len());
        for (some, found) in some.iter().zip(asked) {
            compare(some, found, Tolerance::Exact).unwrap();
        }
        (found, rows)
    }
}

/// The same elements in memory of their own; strings share theirs.
fn copied(tensor: &Tensor) -> Tensor {
    match tensor.as_bytes() {
        Ok(bytes) => Tensor::from_bytes(tensor.dtype(), tensor.shape(), bytes).unwrap(),
        Err(_) => tensor.clone(),
    }
}

/// Checks that a node ran on the kernel with this name.
pub fn assert_kernel(rows: &[ProfileRow], kernel: &str) {
    assert!(rows.iter().any(|row| row.kernel == kernel), "expected {kernel}, found {rows:?}");
}

/// A graph of one node over inputs and constants; checks which kernel ran it.
pub fn check_node(
    op: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[Tensor],
    constants: &[Tensor],
    kernel: &str,
) -> Vec<Tensor> {
    check_outputs(op, attributes, inputs, constants, 1, kernel)
}

/// Checks like [`check_node`], with several outputs.
pub fn check_outputs(
    op: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[Tensor],
    constants: &[Tensor],
    outputs: usize,
    kernel: &str,
) -> Vec<Tensor> {
    let mut maker = Maker::new();
    let mut ids: Vec<Option<ValueId>> = Vec::new();
    for (index, tensor) in inputs.iter().enumerate() {
        ids.push(maker.input(&format!("x{index}"), tensor.clone()));
    }
    for tensor in constants {
        ids.push(maker.constant(tensor.clone()));
    }
    let made = maker.node(op, attributes, &ids, outputs);
    let (found, rows) = maker.check(&made, 256);
    assert_kernel(&rows, kernel);
    found
}
