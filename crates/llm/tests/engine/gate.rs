//! A gate that a model's steps pass one by one, as a test says.

use std::fmt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, PartitionRun, ProviderClaims,
    ProviderTraits, RunFence, RuntimeError,
};

use crate::reference::Reference;

/// Outcome of a step at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOrder {
    Run,
    Panic,
}

/// The model's side: each step says that it has come and waits for an order.
pub(crate) struct StepGate {
    entered: Sender<()>,
    orders: Mutex<Receiver<StepOrder>>,
}

/// The test's side. Once it is dropped, steps run freely.
pub(crate) struct GateKeeper {
    entered: Receiver<()>,
    orders: Sender<StepOrder>,
}

impl fmt::Debug for StepGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepGate")
    }
}

impl StepGate {
    pub(crate) fn new() -> (Arc<Self>, GateKeeper) {
        let (enter, entered) = mpsc::channel();
        let (order, orders) = mpsc::channel();
        let gate = Self { entered: enter, orders: Mutex::new(orders) };
        (Arc::new(gate), GateKeeper { entered, orders: order })
    }

    /// Waits for the order to go on.
    pub(crate) fn pass(&self) {
        let _ = self.entered.send(());
        let order = self.orders.lock().unwrap().recv();
        assert_ne!(order, Ok(StepOrder::Panic), "the gate says so");
    }
}

impl GateKeeper {
    /// Waits until a step has come.
    pub(crate) fn wait(&self) {
        self.entered.recv_timeout(Duration::from_secs(60)).expect("a step comes");
    }

    pub(crate) fn order(&self, order: StepOrder) {
        self.orders.send(order).unwrap();
    }
}

/// The reference evaluation behind a gate.
#[derive(Debug)]
pub(crate) struct GatedReference(pub(crate) Arc<StepGate>);

impl ExecutionProvider for GatedReference {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named("reference")
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        Reference { failing: None }.claim(request)
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        let evaluation = Reference { failing: None }.compile(request)?;
        Ok(Box::new(GatedEvaluation { gate: Arc::clone(&self.0), evaluation }))
    }
}

struct GatedEvaluation {
    gate: Arc<StepGate>,
    evaluation: Box<dyn Executable>,
}

impl Executable for GatedEvaluation {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        self.gate.pass();
        self.evaluation.submit(run)
    }
}
