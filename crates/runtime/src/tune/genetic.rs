//! Candidates that are mixed and changed, generation after generation.

use super::config_space::{ConfigPoint, ConfigSpace};
use super::strategy::{MeasuredCandidate, RepeatableRandom, SearchStrategy, ranked};

/// Candidates of a generation.
const GENERATION: usize = 10;
/// The best candidates, of which new ones are made.
const PARENTS: usize = 6;
/// Chance in percent that a choice of a new candidate is changed.
const CHANGED: usize = 20;
/// Generations without an improvement after which the search ends.
const PATIENCE: usize = 3;

/// Genetic search.
#[derive(Clone, Debug)]
pub(super) struct GeneticSearch {
    random: RepeatableRandom,
    best: f64,
    stale: usize,
}

impl GeneticSearch {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: RepeatableRandom::new(seed), best: f64::INFINITY, stale: 0 }
    }

    /// A mix of two parents with some choices changed: by one step where neighbours are alike.
    fn child(&mut self, space: &ConfigSpace, parents: &[ConfigPoint]) -> ConfigPoint {
        let a = self.random.below(parents.len());
        let b = self.random.below(parents.len());
        // The better of two is drawn: the list begins with the fastest.
        let c = self.random.below(parents.len()).min(a);
        let mut child = parents[c].clone();
        for (at, axis) in space.axes().iter().enumerate() {
            if self.random.chance(50) {
                child[at] = parents[b][at];
            }
            if self.random.chance(CHANGED) {
                let count = axis.labels.len();
                child[at] = match (axis.ordered, self.random.chance(50)) {
                    (true, true) => (child[at] + 1).min(count.saturating_sub(1)),
                    (true, false) => child[at].saturating_sub(1),
                    (false, _) => self.random.below(count),
                };
            }
        }
        child
    }
}

impl SearchStrategy for GeneticSearch {
    fn next(&mut self, space: &ConfigSpace, seen: &[MeasuredCandidate]) -> Vec<usize> {
        let ranked = ranked(seen);
        let best = ranked.first().map_or(f64::INFINITY, |&(_, time)| time);
        self.stale = if best < self.best { 0 } else { self.stale + 1 };
        self.best = best;
        if seen.len() >= space.len() || (self.stale > PATIENCE && !seen.is_empty()) {
            return Vec::new();
        }
        let parents: Vec<ConfigPoint> =
            ranked.iter().take(PARENTS).map(|(candidate, _)| space.point(*candidate)).collect();
        let mut chosen: Vec<usize> = Vec::new();
        // Duplicates are thrown away: many draws may be needed where little is left.
        for _ in 0..GENERATION * 20 {
            let candidate = if parents.is_empty() || self.random.chance(10) {
                self.random.below(space.len())
            } else {
                space.candidate(&self.child(space, &parents))
            };
            let known = seen.iter().any(|trial| trial.candidate == candidate);
            if !known && !chosen.contains(&candidate) {
                chosen.push(candidate);
            }
            if chosen.len() == GENERATION {
                break;
            }
        }
        if seen.is_empty() && !chosen.contains(&0) {
            chosen.insert(0, 0);
        }
        chosen
    }
}
