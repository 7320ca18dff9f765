//! Log messages that say where operators run.

use galatea_tensor::OrderedMap;

use super::compiled_graph::CompiledGraph;

impl CompiledGraph {
    /// Logs which operators go to which provider, a line for each part.
    pub(super) fn log_parts(&self) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let model = &self.graph.name;
        for (number, part) in self.current().parts.iter().enumerate() {
            let mut operators: OrderedMap<String, usize> = OrderedMap::new();
            for node in self.graph.nodes.get(part.nodes.clone()).unwrap_or_default() {
                *operators.entry(node.operator_name()).or_default() += 1;
            }
            let each = operators.iter().map(|(name, count)| match count {
                1 => name.clone(),
                _ => format!("{count} {name}"),
            });
            let each = each.collect::<Vec<String>>().join(", ");
            let unit = part.name;
            tracing::debug!(%model, part = number, %unit, nodes = part.nodes.len(), "runs {each}");
        }
    }
}
