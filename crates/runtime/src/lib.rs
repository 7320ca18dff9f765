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
pub mod device_selector;
mod error;
mod executable;
mod explain;
mod intervals;
mod kernel_table;
mod options;
pub mod partition;
pub mod plan;
pub mod power;
pub mod prefetch;
mod profile;
mod provider;
pub mod quantize;
mod roofline;
mod session;
pub mod simulate;
mod subgraph;
pub mod tune;
mod typical_shapes;
mod watch;
mod work;
pub mod worker;

pub use binding::IoInfo;
pub use error::RuntimeError;
pub use executable::{
    BufferExchange, Executable, ExecutableTraits, MemoryReport, PartitionReport, PartitionResult,
    PartitionRun, PlacedOperator, PlanReport, RunFence, TunableKernels,
};
pub use explain::{NodeExplanation, SessionExplanation};
pub use intervals::{
    IntervalKind, IntervalNumber, IntervalRecorder, IntervalSource, RecordedInterval,
};
pub use kernel_table::{
    KernelBuild, KernelDevice, KernelRow, KernelTable, NodeShapes, NodeView, ValueShape,
};
pub use options::{
    CompileMode, GraphSource, MAX_SESSION_THREADS, OptimiseLevel, PaceSource, PackedSource,
    PackedWeights, PlacementOptions, Precision, SessionOptions, TurnSource,
};
pub use profile::{ArithmeticUnit, ProfileRow};
pub use provider::{
    ClaimRefusal, ClaimRequest, CompileRequest, ExecutionProvider, FallbackProviders, NodeClaim,
    ProviderClaims, ProviderTraits, ProviderWish,
};
pub use roofline::{DevicePeaks, RooflineBound};
pub use session::{
    KernelTuningLimits, KernelTuningReport, OutputMask, PlacementReport, PreparedGraph, Run,
    RunInputs, RunResult, Session, SessionGate, TuningInput, TuningStep, compile_fallback,
    predict_fallback_ns,
};
pub use subgraph::needed_nodes;
pub use typical_shapes::{sized, typical_shapes};
pub use watch::{PartRun, RunObserver, RunWatch, UnwatchedScope, WatchSource, watched_model};
pub use work::{ArithmeticWork, KnownFacts, NodeWork, product_operations};
