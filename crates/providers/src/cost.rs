//! Predicted times of nodes, from sizes alone.

use galatea_apple::ChipIdentity;
use galatea_graph::{Dim, Fact, Node, ValueId};
use galatea_kernels::Isa;
use galatea_runtime::cost::{ArithmeticClass, ComputeUnit, CostModel, UnitCost};
use galatea_runtime::{NodeWork, chips};

use crate::cores::HostCores;

/// Operations a second that products reach on a core with these instructions: estimates, which runs correct.
fn core_operations(isa: Isa) -> f64 {
    match isa.name() {
        "portable" => 4e9,
        "neon" => 20e9,
        "avx2" => 35e9,
        _ => 60e9,
    }
}

/// Returns the estimated speed of this host's CPU: the known figures of its chip, else an estimate
/// from its cores.
pub(crate) fn of_host(isa: Isa) -> UnitCost {
    let chip = ChipIdentity::detect().ok();
    let known = chip.and_then(|chip| chips::find(&chip.name));
    let model = known.map(|known| CostModel::of(known.facts, 0));
    let own = model.and_then(|model| model.unit(ComputeUnit::Cpu).copied());
    own.unwrap_or_else(|| UnitCost::of_cores(HostCores::detect().fast, core_operations(isa)))
}

/// Elements of a fact; lengths that are not known count as 1.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn elements(fact: &Fact) -> f64 {
    fact.shape.iter().flatten().map(|dim| Dim::known(dim).unwrap_or(1) as f64).product()
}

/// Work of a node on a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProcessorDemand {
    /// FLOPs, roughly: two per element of the output and element of the second operand's column for
    /// matrix multiplications, ten per element for everything else, and at least the operations
    /// that it cannot do without.
    pub(crate) operations: f64,
    /// Bytes that it reads and writes.
    pub(crate) bytes: f64,
    pub(crate) product: ArithmeticClass,
}

/// Operators that multiply matrices.
const PRODUCTS: [&str; 6] = ["MatMul", "Gemm", "Conv", "LSTM", "GRU", "RNN"];

/// Estimates the work of a node for these lengths.
pub(crate) fn demand(node: &Node, facts: &[Option<Fact>]) -> ProcessorDemand {
    let fact = |id: ValueId| facts.get(id.index()).and_then(Option::as_ref);
    let work = NodeWork::of(node, &fact).total();
    let multiplies = PRODUCTS.iter().any(|name| node.op_type.contains(name));
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let (least, bytes) = (work.operations as f64, work.bytes as f64);
    ProcessorDemand {
        operations: least.max(usual_operations(node, facts, multiplies)),
        bytes,
        product: if multiplies { ArithmeticClass::Yes } else { ArithmeticClass::No },
    }
}

fn usual_operations(node: &Node, facts: &[Option<Fact>], multiplies: bool) -> f64 {
    let fact = |id: Option<ValueId>| id.and_then(|id| facts[id.index()].as_ref());
    let written: f64 = node.outputs.iter().filter_map(|&id| fact(id)).map(elements).sum();
    let weights = fact(node.input(1)).map_or(1.0, elements);
    if !multiplies {
        return 10.0 * written.max(1.0);
    }
    let columns = fact(node.input(1))
        .and_then(|fact| fact.shape.as_ref())
        .and_then(|shape| if node.op_type.contains("Conv") { shape.first() } else { shape.last() })
        .and_then(Dim::known)
        .unwrap_or(1);
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let terms = weights / columns.max(1) as f64;
    2.0 * written.max(1.0) * terms.max(1.0)
}
