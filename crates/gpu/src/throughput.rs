//! Prediction of the time of nodes: the longer of the times for their arithmetic and for their bytes, plus a
//! start.

use std::time::Duration;

use galatea_graph::{Fact, Node};
use galatea_runtime::{ArithmeticWork, DevicePeaks, NodeWork};

use crate::device::{GpuCapabilities, GpuDevice};

/// The part of a device's peak of arithmetic that kernels reach in whole models.
const REACHED_OPERATIONS: f64 = 0.5;
/// The same of its bytes.
const REACHED_BYTES: f64 = 0.7;

/// Rates that a device is assumed to reach if they are not known.
#[derive(Clone, Copy, Debug)]
struct ThroughputLowerBound {
    /// Operations on FP32 a second.
    operations: f64,
    /// Bytes of memory a second.
    bytes: f64,
    /// Nanoseconds of a dispatch among others, which follow each other without the host.
    dispatch_ns: f64,
}

/// Rates of a GPU in the CPU's memory: less than the smallest M1 has, of 7 cores. The time of a dispatch is
/// Metal's published one.
const UNIFIED: ThroughputLowerBound =
    ThroughputLowerBound { operations: 2e12, bytes: 6e10, dispatch_ns: 3_000.0 };
/// Rates of a GPU with memory of its own: about a small card of 2019.
const DISCRETE: ThroughputLowerBound =
    ThroughputLowerBound { operations: 4e12, bytes: 1.5e11, dispatch_ns: 400.0 };

/// Nanoseconds to hand a partition over and wait for it.
const LAUNCH_NS: f64 = 60_000.0;

/// Nanoseconds that a step waits for what the step before it wrote, beside its dispatch: measured on a GPU with memory
/// of its own.
const STEP_WAIT_NS: f64 = 2_500.0;

/// Rates from which times of nodes are predicted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThroughputModel {
    operations_per_ns: f64,
    bytes_per_ns: f64,
    dispatch_ns: f64,
    pub(crate) launch_ns: f64,
}

/// Dispatches of a node that wait for each other, because each computes a step of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSequence {
    /// Their number.
    pub(crate) dispatches: u64,
    /// Bytes of weights that each step reads anew.
    pub(crate) weight_bytes: u64,
}

impl ThroughputModel {
    /// Returns the pace of a device: as measured, else as stated, else that of its kind.
    pub(crate) fn of(device: &GpuDevice, stated: &DevicePeaks) -> Self {
        Self::from(device.capabilities(), device.peaks.get(), stated)
    }

    pub(crate) fn from(
        capabilities: &GpuCapabilities,
        measured: Option<&DevicePeaks>,
        stated: &DevicePeaks,
    ) -> Self {
        // A processor that plays a GPU is there to try what those with memory of their own do.
        let unified = capabilities.unified && !capabilities.software;
        let least = if unified { UNIFIED } else { DISCRETE };
        let known = |of: fn(&DevicePeaks) -> Option<f64>| {
            measured.and_then(of).or(of(stated)).filter(|peak| *peak > 0.0)
        };
        let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9;
        let operations = known(|peaks| peaks.vector_f32).unwrap_or(least.operations);
        let bytes = known(|peaks| peaks.bytes).unwrap_or(least.bytes);
        let dispatch = measured.and_then(|peaks| peaks.dispatch).or(stated.dispatch);
        let submit = measured.and_then(|peaks| peaks.submit).or(stated.submit);
        Self {
            operations_per_ns: operations * REACHED_OPERATIONS / 1e9,
            bytes_per_ns: bytes * REACHED_BYTES / 1e9,
            dispatch_ns: dispatch.map_or(least.dispatch_ns, nanoseconds),
            launch_ns: submit.map_or(LAUNCH_NS, nanoseconds),
        }
    }

    /// Nanoseconds of a dispatch that has at most this to do.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn dispatch_time_ns(&self, work: ArithmeticWork) -> f64 {
        let arithmetic = work.operations as f64 / self.operations_per_ns;
        let moved = work.bytes as f64 / self.bytes_per_ns;
        self.dispatch_ns + arithmetic.max(moved)
    }

    /// Nanoseconds of a node for lengths that are known, and of the steps that it takes one after the other.
    pub(crate) fn node_ns(
        &self,
        node: &Node,
        facts: &[Option<Fact>],
        sequence: Option<StepSequence>,
    ) -> f64 {
        let fact = |id: galatea_graph::ValueId| facts.get(id.index()).and_then(Option::as_ref);
        let work = NodeWork::of(node, &fact).total();
        match sequence {
            Some(steps) => self.sequence_time_ns(work, steps),
            None => self.dispatch_time_ns(work),
        }
    }

    /// Nanoseconds of dispatches that wait for each other, of which each step reads its weights.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn sequence_time_ns(&self, work: ArithmeticWork, steps: StepSequence) -> f64 {
        let bytes = work.bytes.saturating_add(steps.weight_bytes.saturating_mul(steps.dispatches));
        let all = self.dispatch_time_ns(ArithmeticWork { bytes, ..work });
        all + steps.dispatches as f64 * (self.dispatch_ns + STEP_WAIT_NS)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use galatea_graph::{Attributes, Graph, infer};
    use galatea_tensor::{DataType, Tensor};

    use super::*;

    /// A product of this many rows with a square matrix of 4096.
    fn product(rows: usize) -> (Graph, Vec<Option<Fact>>) {
        let mut graph = Graph::new("product");
        graph.opsets = [(String::new(), 21)].into_iter().collect();
        let [x, w, y] = ["x", "w", "y"].map(|name| graph.value_named(name));
        graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[rows, 4096]));
        let weights = Tensor::zeros(DataType::Fp32, &[4096, 4096]).unwrap();
        graph.value_mut(w).initializer = Some(weights);
        let inputs = vec![Some(x), Some(w)];
        graph.add_node("", "MatMul", "", &Attributes::new(), inputs, vec![Some(y)]).unwrap();
        (graph.inputs, graph.outputs) = (vec![x], vec![y]);
        let facts = infer::facts(&graph, &HashMap::new()).unwrap();
        (graph, facts)
    }

    fn ns(pace: &ThroughputModel, rows: usize) -> f64 {
        let (graph, facts) = product(rows);
        pace.node_ns(&graph.nodes[0], &facts, None)
    }

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < expected * 0.05
    }

    #[test]
    fn few_rows_take_as_long_as_bytes_and_many_as_arithmetic() {
        let stated =
            DevicePeaks { vector_f32: Some(4e12), bytes: Some(1e11), ..DevicePeaks::default() };
        let here = GpuCapabilities { unified: true, ..GpuCapabilities::default() };
        let pace = ThroughputModel::from(&here, None, &stated);
        // 64 MiB of 70 GB/s, and 34 Gflop of 2 Tflop/s.
        assert!(near(ns(&pace, 1), 962e3), "{}", ns(&pace, 1));
        assert!(near(ns(&pace, 1024), 17.2e6), "{}", ns(&pace, 1024));
    }

    #[test]
    fn what_was_measured_goes_before_what_is_stated() {
        let of = |rate: f64| DevicePeaks { vector_f32: Some(rate), ..DevicePeaks::default() };
        let here = GpuCapabilities { unified: true, ..GpuCapabilities::default() };
        let many = |measured: Option<&DevicePeaks>, stated: &DevicePeaks| {
            ns(&ThroughputModel::from(&here, measured, stated), 4096)
        };
        let slow = of(1e12);
        let fast = of(4e12);
        let none = DevicePeaks::default();
        assert!(near(many(Some(&slow), &fast), many(None, &slow)));
        assert!(near(many(Some(&none), &fast), many(None, &fast)));
        assert!(many(None, &none) > 1.9 * many(None, &fast));
        // A card of its own is taken to be more than a processor's GPU.
        let card = ThroughputModel::from(&GpuCapabilities::default(), None, &none);
        assert!(ns(&card, 4096) < many(None, &none));
    }
}
