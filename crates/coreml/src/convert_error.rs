//! Reasons why a graph has no package.

/// A node that has no form in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnconvertedNode {
    /// Place of the node, such as `node 3 'y' (NonZero)`.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// Why a graph has no package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The graph or its shapes are wrong.
    Graph(String),
    /// Nodes without a form in a program.
    Nodes(Vec<UnconvertedNode>),
}

impl std::fmt::Display for ConvertError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Graph(text) => f.write_str(text),
            Self::Nodes(all) => {
                let shown = all.iter().take(8).map(|one| format!("{}: {}", one.place, one.reason));
                let shown: Vec<String> = shown.collect();
                let more = all.len().saturating_sub(shown.len());
                f.write_str(&shown.join("; "))?;
                match more {
                    0 => Ok(()),
                    more => write!(f, "; and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for ConvertError {}
