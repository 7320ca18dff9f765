//! Graphs that are changed before they are prepared.

use std::fmt::Debug;
use std::sync::Arc;

use galatea_graph::Graph;
use galatea_runtime::{ExecutionProvider, SessionOptions};

/// A change of graphs that is made once for each model: the cache holds what comes of it.
pub trait GraphTransform: Debug + Send + Sync {
    /// Text that tells this change from every other one, with what it depends on besides the graph.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    fn name(&self) -> Result<String, String>;

    /// Changes a graph, and says in a line what was done, or why nothing was.
    fn change(
        &self,
        graph: Graph,
        providers: &[Arc<dyn ExecutionProvider>],
        options: &SessionOptions,
    ) -> (Graph, String);
}
