//! Errors that can occur between a graph and its results.

use galatea_graph::GraphError;
use galatea_tensor::TensorError;

/// An error of a session or of a provider.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The inputs of a run are not what the model takes: the caller's mistake.
    #[error("{0}")]
    Input(String),
    /// The graph is wrong, or one of its operators refuses the values of this run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// No provider runs a node.
    #[error("no execution provider runs {node}: {reasons}")]
    Unclaimed {
        /// The node.
        node: String,
        /// Reason that each provider gave.
        reasons: String,
    },
    /// A provider failed.
    #[error("execution provider '{provider}': {message}")]
    Provider {
        /// Its name.
        provider: String,
        /// Description of the failure.
        message: String,
    },
    /// A provider's device is gone, and what was compiled for it with it. Compiled anew it may run again.
    #[error("execution provider '{provider}': {message}")]
    Lost {
        /// Its name.
        provider: String,
        /// Description of the failure.
        message: String,
        /// True if this very run did not end; it is not tried there again.
        hung: bool,
    },
    /// A run needs more memory than the options allow.
    #[error("a run needs {needed_bytes} bytes for intermediate values, {limit_bytes} are allowed")]
    MemoryLimit {
        /// Bytes that the plan needs.
        needed_bytes: usize,
        /// [`crate::SessionOptions::memory_limit_bytes`].
        limit_bytes: usize,
    },
    /// Nobody waits for the result any more, and the run gave up.
    #[error("the run was interrupted: nobody waits for its result")]
    Interrupted,
    /// A mapped file of the model was written to or became shorter. The model has to be loaded again.
    #[error("a file of the model was changed: {0}")]
    ChangedFile(String),
    /// A model cannot be quantised as it was asked for.
    #[error("{0}")]
    Quantise(String),
    /// A tensor could not be made or viewed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl RuntimeError {
    /// An error of a provider.
    pub fn provider(provider: &str, message: impl std::fmt::Display) -> Self {
        Self::Provider { provider: provider.to_owned(), message: message.to_string() }
    }

    /// Returns whether the caller gave wrong inputs, as opposed to a failure inside.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Input(_))
    }
}
