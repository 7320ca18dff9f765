//! Explanation of which provider runs each node, and why the others do not.

use std::fmt;

use crate::executable::PlacedOperator;
use crate::provider::ClaimRefusal;

/// One node's place.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeExplanation {
    /// The node, as in error messages.
    pub node: String,
    /// The operator.
    pub op: String,
    /// The provider that runs it.
    pub provider: String,
    /// Name of the code that runs the node there, such as the kernel's name.
    pub kernel: String,
    /// Predicted time in nanoseconds.
    pub cost_ns: f64,
    /// `(provider, reason)` of those that do not run it, or run it without a kernel of their own.
    pub refusals: Vec<(String, String)>,
}

/// Explanation of how a session runs its graph; `Display` prints a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionExplanation {
    /// The partitions in running order, each with its nodes.
    pub partitions: Vec<Vec<NodeExplanation>>,
    /// For each partition, the predicted times in nanoseconds, with a start, of every provider that takes all of its
    /// nodes: of its own one first.
    pub times: Vec<Vec<(String, f64)>>,
    /// For each partition, where a framework means to run its operators; nothing where no framework does or
    /// it has not said so yet.
    pub placed: Vec<Vec<PlacedOperator>>,
    /// Compiles and first runs that failed, with what was done.
    pub notes: Vec<String>,
}

impl SessionExplanation {
    /// A line about a partition: its provider, its nodes, its predicted time, and that of the others.
    #[must_use]
    pub fn heading(&self, partition: usize) -> String {
        let nodes = self.partitions.get(partition).map_or(&[][..], Vec::as_slice);
        let provider = nodes.first().map_or("", |node| node.provider.as_str());
        let mut times = self.times.get(partition).into_iter().flatten();
        let own = times.next().map_or(0.0, |(_, time)| time / 1e6);
        let others: Vec<String> =
            times.map(|(name, time)| format!("{name} {:.3} ms", time / 1e6)).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!(" ({})", others.join(", ")),
        };
        let count = nodes.len();
        format!("partition {partition} on {provider}: {count} nodes, predicted {own:.3} ms{others}")
    }
}

impl fmt::Display for SessionExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, nodes) in self.partitions.iter().enumerate() {
            writeln!(f, "{}", self.heading(index))?;
            for node in nodes {
                writeln!(f, "  {:<28} {}", node.kernel, node.node)?;
                for (provider, reason) in &node.refusals {
                    writeln!(f, "      {provider}: {reason}")?;
                }
            }
            for row in self.placed.get(index).into_iter().flatten() {
                write!(
                    f,
                    "    on {:<16} {:<24} {}",
                    row.planned,
                    row.operator,
                    row.outputs.join(", ")
                )?;
                if let Some(weight) = row.weight {
                    write!(f, ", {:.1} % of the cost", weight * 100.0)?;
                }
                if row.supported.len() > 1 {
                    write!(f, " (could: {})", row.supported.join(", "))?;
                }
                writeln!(f)?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// The reasons that each provider gave about a node.
pub(crate) fn reasons(
    names: &[String],
    refusals: &[Vec<ClaimRefusal>],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_where_a_framework_means_to_run_what() {
        let node = NodeExplanation {
            node: "node 0".to_owned(),
            op: "Conv".to_owned(),
            provider: "coreml".to_owned(),
            kernel: "coreml".to_owned(),
            cost_ns: 1e6,
            refusals: Vec::new(),
        };
        let placed = PlacedOperator {
            operator: "ios16.conv".to_owned(),
            outputs: vec!["y".to_owned()],
            planned: "Neural Engine".to_owned(),
            supported: vec!["CPU".to_owned(), "Neural Engine".to_owned()],
            weight: Some(0.25),
        };
        let partitions = vec![vec![node]];
        let placed = vec![vec![placed]];
        let time = |name: &str, time| (name.to_owned(), time);
        let times = vec![vec![time("coreml", 1.5e6), time("gpu", 4e6), time("cpu", 2e7)]];
        let report =
            SessionExplanation { partitions, times, placed, notes: Vec::new() }.to_string();
        let first = report.lines().next();
        let expected =
            "partition 0 on coreml: 1 nodes, predicted 1.500 ms (gpu 4.000 ms, cpu 20.000 ms)";
        assert_eq!(first, Some(expected));
        let line = report.lines().last().unwrap();
        let expected = ["on Neural Engine", "ios16.conv", "y, 25.0 % of the cost", "(could: CPU"];
        assert!(expected.iter().all(|part| line.contains(part)), "{report}");
    }
}
