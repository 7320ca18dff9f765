//! Shared helpers of this crate's tests.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "each test uses some of it"
)]

pub(crate) mod node;

use std::sync::{Arc, OnceLock};

use galatea_gpu::{GpuDevice, GpuProvider, devices};
use std::collections::{HashMap, HashSet};

use galatea_graph::{Graph, infer};
use galatea_runtime::{ClaimRequest, ExecutionProvider, PreparedGraph, Session, SessionOptions};

/// With this variable set to a number, tests run on that device; without it on the first one.
const DEVICE: &str = "GALATEA_GPU_DEVICE";

/// The number of the device under test.
pub(crate) fn index() -> usize {
    std::env::var(DEVICE).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The device under test opened once more, for a test that counts what is done on it.
pub(crate) fn own_device() -> Option<Arc<GpuDevice>> {
    device().map(|_| GpuDevice::open(index()).unwrap())
}

/// The device under test; none where the host has none, which is said.
pub(crate) fn device() -> Option<Arc<GpuDevice>> {
    static DEVICES: OnceLock<Option<Arc<GpuDevice>>> = OnceLock::new();
    let open = || {
        if devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return None;
        }
        Some(GpuDevice::open(index()).unwrap())
    };
    DEVICES.get_or_init(open).clone()
}

/// A session on the GPU alone: what it does not take is an error.
pub(crate) fn session(
    device: &Arc<GpuDevice>,
    graph: &Graph,
    options: &SessionOptions,
) -> Result<Session, String> {
    let provider: Arc<dyn ExecutionProvider> = Arc::new(GpuProvider::on(Arc::clone(device)));
    Session::new(graph.clone(), &[provider], options).map_err(|error| error.to_string())
}

/// Returns whether the GPU claims every node of a graph, rewritten as a session rewrites it.
pub(crate) fn claims(device: &Arc<GpuDevice>, graph: &Graph, options: &SessionOptions) -> bool {
    let provider = GpuProvider::on(Arc::clone(device));
    let Ok(prepared) = PreparedGraph::new(graph.clone(), options.optimise) else { return false };
    let Ok(facts) = infer::facts(&prepared.graph, &HashMap::new()) else { return false };
    let claims = provider.claim(&ClaimRequest::new(&prepared.graph, &facts)).claims;
    let taken: HashSet<usize> = claims.into_iter().flat_map(|claim| claim.nodes).collect();
    taken.len() == prepared.graph.nodes.len() && !taken.is_empty()
}
