//! The execution contract: providers, partitioning, memory plan, sessions. This crate knows no
//! provider.
//!
//! [`Session::new`] asks every [`ExecutionProvider`] which nodes it [claims](Claim), lets
//! [`partition::partition`] give each node to one of them, and has each partition compiled.
//! [`Session::run`] checks the inputs and runs the partitions in order; a partition whose compile
//! or first run fails goes to the next provider that claims its nodes. [`quantize`] makes models with
//! fewer bits.

#![forbid(unsafe_code)]

mod binding;
pub mod chips;
pub mod cost;
mod error;
mod explain;
mod options;
mod others;
pub mod partition;
pub mod plan;
pub mod power;
pub mod prefetch;
mod provider;
pub mod quantize;
mod roofline;
pub mod route;
mod session;
pub mod simulate;
mod subgraph;
pub mod tune;
mod usual;
mod watch;
mod work;

pub use binding::IoInfo;
pub use error::RuntimeError;
pub use explain::{Explanation, NodeExplanation, PlacedOperator};
pub use options::{
    CompileMode, OptimiseLevel, PaceSource, PackedSource, PackedWeights, Precision, Routing,
    SessionOptions, TurnSource,
};
pub use others::Others;
pub use provider::{
    Claim, Claims, Executable, ExecutionProvider, Fence, MemoryReport, PlanReport, ProfileRow,
    Refusal,
};
pub use roofline::{Bound, Peaks, Unit};
pub use session::{Prepared, RunTerms, Session, Tended, WayReport};
pub use subgraph::needed_nodes;
pub use usual::{sized, usual_facts};
pub use watch::{PartRun, RunObserver, RunWatch, Unwatched, WatchSource, watched_model};
pub use work::{Known, NodeWork, Work, product_operations};
