//! Compiled forms of placements.

use std::sync::Arc;

use super::super::compiled::CompiledPartitions;
use super::super::compiled_graph::AnalysedGraph;
use super::{
    ChosenPlacement, Placement, PlacementRecipe, PlacementRunner, PlacementSet, PlacementState,
};
use crate::error::RuntimeError;

impl PlacementSet {
    /// Returns the compiled form of a placement, or the recipe for compiling it.
    pub(super) fn ready(
        &self,
        state: &PlacementState,
        number: usize,
    ) -> Result<Arc<CompiledPartitions>, PlacementRecipe> {
        match state.placements.get(number) {
            Some(Placement { compiled: Some(compiled), .. }) => Ok(Arc::clone(compiled)),
            Some(own) if number > 0 => Err(PlacementRecipe {
                partitions: own.partitions.clone(),
                hybrid: own.hybrid.clone(),
            }),
            _ => Ok(self.graph.current()),
        }
    }

    /// Compiles a placement and keeps it for later runs.
    ///
    /// # Errors
    /// Fails when a partition does not compile; the placement is not used then.
    pub(super) fn make_ready(
        &self,
        number: usize,
        recipe: &PlacementRecipe,
    ) -> Result<Arc<CompiledPartitions>, RuntimeError> {
        let made = self.compile_recipe(recipe);
        let mut state = self.state();
        let own = state.placements.get_mut(number).filter(|own| {
            let same = own.hybrid.is_some() == recipe.hybrid.is_some();
            same && own.partitions == recipe.partitions
        });
        match made {
            Ok(compiled) => {
                let compiled = Arc::new(compiled);
                if let Some(own) = own {
                    own.compiled = Some(Arc::clone(&compiled));
                }
                Ok(compiled)
            }
            Err(error) => {
                let model = &self.graph.graph.name;
                tracing::warn!(%model, placement = number, "a placement is not used: {error}");
                if let Some(own) = own {
                    own.failed = Some(error.to_string());
                }
                Err(error)
            }
        }
    }

    fn compile_recipe(&self, recipe: &PlacementRecipe) -> Result<CompiledPartitions, RuntimeError> {
        let PlacementRecipe { partitions, hybrid } = recipe;
        let analysed = match hybrid {
            Some(hybrid) => AnalysedGraph { graph: &hybrid.graph, facts: &hybrid.facts },
            None => self.graph.analysed(),
        };
        let compiled = self.graph.compile_partitions(analysed, partitions);
        let mut compiled = compiled.map_err(|failure| failure.error)?;
        if let Some(hybrid) = hybrid {
            for (part, beside) in compiled.parts.iter_mut().zip(&hybrid.beside) {
                part.beside = *beside;
            }
        }
        Ok(compiled)
    }

    /// Returns a placement on none of the devices of one that failed, ready to run.
    pub(in super::super) fn without(
        &self,
        failed: &ChosenPlacement,
    ) -> Option<Arc<CompiledPartitions>> {
        let gone: Vec<usize> = match &failed.runner {
            PlacementRunner::Whole(compiled) => {
                compiled.parts.iter().map(|part| part.provider).collect()
            }
            PlacementRunner::Split(_) => return None,
        };
        let state = self.state();
        let fits = |own: &Placement| {
            let whole = own.failed.is_none() && own.is_whole();
            whole && own.partitions.iter().all(|part| !gone.contains(&part.provider))
        };
        let number = state.placements.iter().position(fits)?;
        let ready = self.ready(&state, number);
        drop(state);
        ready.or_else(|recipe| self.make_ready(number, &recipe)).ok()
    }
}
