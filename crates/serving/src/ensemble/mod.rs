//! Ensembles: data flows of models.

pub mod flow;
pub mod gate;
pub mod graph;
