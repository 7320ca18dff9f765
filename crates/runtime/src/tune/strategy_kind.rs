//! The search strategies by name.

use super::adaptive::BayesianSearch;
use super::config_space::ConfigSpace;
use super::genetic::GeneticSearch;
use super::grid::GridSearch;
use super::strategy::{MeasuredCandidate, SearchStrategy, unseen};

/// The strategies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyKind {
    /// Every candidate.
    Exhaustive,
    /// A coarse grid, made finer around the best; names that are far behind are dropped.
    Grid,
    /// A model of the times says where an improvement is most to be expected.
    Adaptive,
    /// The best candidates are mixed and changed.
    Genetic,
}

impl StrategyKind {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("exhaustive", Self::Exhaustive),
        ("grid", Self::Grid),
        ("adaptive", Self::Adaptive),
        ("genetic", Self::Genetic),
    ];

    /// A search of this kind from its beginning. Equal seeds search alike.
    #[must_use]
    pub fn start(self, seed: u64) -> Box<dyn SearchStrategy> {
        match self {
            Self::Exhaustive => Box::new(ExhaustiveSearch),
            Self::Grid => Box::new(GridSearch::default()),
            Self::Adaptive => Box::new(BayesianSearch::new(seed)),
            Self::Genetic => Box::new(GeneticSearch::new(seed)),
        }
    }
}

/// Every candidate.
#[derive(Clone, Copy, Debug)]
struct ExhaustiveSearch;

impl SearchStrategy for ExhaustiveSearch {
    fn next(&mut self, space: &ConfigSpace, seen: &[MeasuredCandidate]) -> Vec<usize> {
        if seen.is_empty() { (0..space.len()).collect() } else { unseen(space, seen) }
    }
}
