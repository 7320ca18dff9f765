//! Execution providers: `cpu`, with packed and vectorised kernels, and `reference`, the plain
//! evaluation that every other provider is compared with.

#![forbid(unsafe_code)]

mod capabilities;
mod cores;
mod cost;
pub mod cpu;
mod host_peaks;
mod machine;
pub mod reference;

use std::sync::Arc;

pub use capabilities::{CoreKind, HostCapabilities, PeakEstimate};
pub use cores::HostCores;
use galatea_runtime::ExecutionProvider;
use galatea_runtime::cost::UnitCost;
pub use host_peaks::measure_host_peaks;
pub use machine::machine;

/// A provider and how to make it.
#[derive(Clone, Copy)]
pub struct ProviderRow {
    /// The name that options use.
    pub name: &'static str,
    /// Makes the provider, which predicts times from what its processor is known to reach; from what its cores may,
    /// where that is not known.
    pub make: fn(Option<UnitCost>) -> Arc<dyn ExecutionProvider>,
}

impl std::fmt::Debug for ProviderRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every provider, the preferred ones first.
pub const PROVIDERS: &[ProviderRow] = &[
    ProviderRow { name: cpu::NAME, make: processor },
    ProviderRow { name: reference::NAME, make: |_| Arc::new(reference::ReferenceProvider) },
];

fn processor(cost: Option<UnitCost>) -> Arc<dyn ExecutionProvider> {
    let provider = cpu::CpuProvider::new();
    Arc::new(match cost {
        Some(cost) => provider.with_cost(cost),
        None => provider,
    })
}

/// Every provider, the preferred ones first.
#[must_use]
pub fn all() -> Vec<Arc<dyn ExecutionProvider>> {
    PROVIDERS.iter().map(|row| (row.make)(None)).collect()
}

/// The provider with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<Arc<dyn ExecutionProvider>> {
    PROVIDERS.iter().find(|row| row.name == name).map(|row| (row.make)(None))
}
