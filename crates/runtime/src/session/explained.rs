//! Explanation of which provider runs each node of a session.

use std::collections::HashSet;

use galatea_graph::Datum;

use super::compiled::CompiledPart;
use super::compiled_graph::{ClaimSet, CompiledGraph, lock};
use crate::error::RuntimeError;
use crate::explain::{NodeExplanation, SessionExplanation, reasons};
use crate::partition::costs;
use crate::provider::ClaimRefusal;
use crate::tune::TuningProblem;

impl CompiledGraph {
    /// Explains which provider runs each node, and why the others do not.
    pub(super) fn explain(&self) -> SessionExplanation {
        let set = lock(&self.claims).clone();
        let names: Vec<String> = self.names.iter().map(|&name| name.to_owned()).collect();
        let refusals: Vec<Vec<ClaimRefusal>> =
            set.claims.iter().map(|claims| claims.refusals.clone()).collect();
        let explain = |provider: usize, node: usize| {
            let claim = set.claims[provider].claims.iter().find(|c| c.nodes.contains(&node));
            #[allow(clippy::cast_precision_loss, reason = "a count of nodes")]
            let share = |nodes: usize| 1.0 / nodes.max(1) as f64;
            NodeExplanation {
                node: self.graph.place(node).to_string(),
                op: self.graph.nodes[node].operator_name(),
                provider: names[provider].clone(),
                kernel: claim.map_or_else(String::new, |claim| claim.kernel.clone()),
                cost_ns: claim.map_or(0.0, |claim| claim.cost_ns * share(claim.nodes.len())),
                refusals: reasons(&names, &refusals, node),
            }
        };
        let current = self.current();
        let parts = &current.parts;
        let nodes =
            |part: &CompiledPart| part.nodes.clone().map(|n| explain(part.provider, n)).collect();
        SessionExplanation {
            partitions: parts.iter().map(nodes).collect(),
            times: parts.iter().map(|part| self.predicted_times(&set, part)).collect(),
            placed: parts.iter().map(|part| part.executable.report().placed).collect(),
            notes: set.notes.clone(),
        }
    }

    /// Returns the predicted time of each provider that claims all of a part, its own provider first.
    fn predicted_times(&self, set: &ClaimSet, part: &CompiledPart) -> Vec<(String, f64)> {
        let table = costs(self.graph.nodes.len(), &set.claims);
        let time = |provider: usize| {
            let all = table.get(part.nodes.clone()).into_iter().flatten();
            let sum: f64 = all.map(|row| row[provider]).sum();
            let start = set.claims[provider].launch_ns.max(0.0);
            sum.is_finite().then(|| (self.names[provider].to_owned(), sum + start))
        };
        let others = (0..self.providers.len()).filter(|&other| other != part.provider);
        std::iter::once(part.provider).chain(others).filter_map(time).collect()
    }

    /// Returns the problems with several possible kernels for these inputs, each family of kernels and bucket of
    /// lengths once. Between two nodes `pause` is called, which may hold up.
    ///
    /// # Errors
    /// Fails when the shapes are refused, or a part cannot run.
    pub(super) fn problems(
        &self,
        inputs: &[Datum],
        pause: &dyn Fn(),
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        let mut problems = Vec::new();
        self.current().walk(inputs, &mut |executable, given| {
            if let Some(tuning) = executable.traits().tuning {
                problems.extend(tuning.problems(given, pause)?);
            }
            Ok(())
        })?;
        let mut seen = HashSet::new();
        problems.retain(|problem| seen.insert((problem.family.clone(), problem.bucket.clone())));
        Ok(problems)
    }
}
