//! Who runs what, and why not somebody else.

use std::fmt;

use crate::provider::Refusal;

/// One node's place.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeExplanation {
    /// The node, as in error messages.
    pub node: String,
    /// The operator.
    pub op: String,
    /// The provider that runs it.
    pub provider: String,
    /// What runs it there, such as the kernel's name.
    pub kernel: String,
    /// Predicted time in nanoseconds.
    pub cost_ns: f64,
    /// `(provider, reason)` of those that do not run it, or run it without a kernel of their own.
    pub refusals: Vec<(String, String)>,
}

/// How a session runs its graph; `Display` prints a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The partitions in running order, each with its nodes.
    pub partitions: Vec<Vec<NodeExplanation>>,
    /// Compiles and first runs that failed, with what was done.
    pub notes: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, nodes) in self.partitions.iter().enumerate() {
            let provider = nodes.first().map_or("", |node| node.provider.as_str());
            let total: f64 = nodes.iter().map(|node| node.cost_ns).sum();
            writeln!(
                f,
                "partition {index} on {provider}: {} nodes, predicted {:.3} ms",
                nodes.len(),
                total / 1e6
            )?;
            for node in nodes {
                writeln!(f, "  {:<28} {}", node.kernel, node.node)?;
                for (provider, reason) in &node.refusals {
                    writeln!(f, "      {provider}: {reason}")?;
                }
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// The reasons that each provider gave about a node.
pub(crate) fn reasons(
    names: &[String],
    refusals: &[Vec<Refusal>],
    node: usize,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, list) in names.iter().zip(refusals) {
        for refusal in list.iter().filter(|refusal| refusal.node == node) {
            found.push((name.clone(), refusal.reason.clone()));
        }
    }
    found
}
