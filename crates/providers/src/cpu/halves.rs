//! Which values of a run lie in memory as BF16: those that a kernel gives and kernels take so.
//!
//! Where products are computed in BF16, a value between two of them is rounded in any case; kept as
//! BF16 it takes half the memory and is rounded once, by the kernel that gives it.

use galatea_graph::{Fact, Graph, ValueId};
use galatea_tensor::DataType;

use super::kernel::{Bf16Operands, CpuKernel};
use galatea_runtime::NodeShapes;

/// A node that takes or gives BF16.
struct Bf16Party {
    inputs: Vec<usize>,
    output: Option<usize>,
    together: bool,
}

/// Makes the facts of those values facts of BF16; whether there are any. `root` gives, for each
/// value, the one whose elements it shares. Nodes that are not computed `now` keep what they read as it is.
pub(super) fn narrow(
    graph: &Graph,
    facts: &mut [Option<Fact>],
    root: &[usize],
    kernels: &[Option<Box<dyn CpuKernel>>],
    now: &[bool],
) -> bool {
    let float = |id: ValueId| {
        let fact = facts[id.index()].as_ref();
        fact.is_some_and(|fact| {
            fact.is_tensor() && fact.dtype == DataType::Fp32 && fact.value.is_none()
        })
    };
    let mut given = vec![false; facts.len()];
    let mut refused = vec![false; facts.len()];
    for output in &graph.outputs {
        refused[root[output.index()]] = true;
    }
    let mut parties = Vec::new();
    for ((node, kernel), now) in graph.nodes.iter().zip(kernels).zip(now) {
        if !now {
            let read = node.inputs.iter().flatten();
            read.for_each(|id| refused[root[id.index()]] = true);
            continue;
        }
        if let (true, Some(from), Some(to)) = (node.is_view(), node.input(0), node.output(0))
            && root[from.index()] == root[to.index()]
        {
            continue;
        }
        let taken = kernel
            .as_ref()
            .and_then(|kernel| Some(kernel.halves(&NodeShapes::known(node, facts)?)));
        let Bf16Operands { inputs, output, together } = taken.unwrap_or_default();
        let mut party = Bf16Party { inputs: Vec::new(), output: None, together };
        for (at, id) in node.inputs.iter().enumerate() {
            match *id {
                Some(id) if inputs.contains(&at) && float(id) => {
                    party.inputs.push(root[id.index()]);
                }
                Some(id) => refused[root[id.index()]] = true,
                None => {}
            }
        }
        if let Some(id) = node.output(0).filter(|&id| output && float(id)) {
            given[root[id.index()]] = true;
            party.output = Some(root[id.index()]);
        }
        parties.push(party);
    }
    let mut halves: Vec<bool> = given.iter().zip(&refused).map(|(&g, &r)| g && !r).collect();
    loop {
        let before = halves.clone();
        for party in parties.iter().filter(|party| party.together) {
            let all = || party.inputs.iter().chain(&party.output);
            if !all().all(|&value| halves[value]) {
                all().for_each(|&value| halves[value] = false);
            }
        }
        if halves == before {
            break;
        }
    }
    for (fact, &root) in facts.iter_mut().zip(root) {
        if let (Some(fact), true) = (fact, halves[root]) {
            fact.dtype = DataType::Bf16;
        }
    }
    halves.contains(&true)
}
