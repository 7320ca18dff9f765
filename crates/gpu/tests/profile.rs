//! Tests of what observers learn of runs: work, times, use and peaks of a device.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::node::floats;
use galatea_gpu::{DeviceFault, RunRecord, TimingObserver};
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_runtime::{
    ArithmeticUnit, ArithmeticWork, ProfileRow, RooflineBound, Run, SessionOptions,
};
use galatea_tensor::DataType;

/// `MatMul`, then so many `Softmax`: nothing that could become one kernel.
fn graph(layers: usize) -> Graph {
    let mut graph = Graph::new("layers");
    graph.opsets = [(String::new(), 21)].into_iter().collect();
    let x = graph.value_named("x");
    let dims = vec![Dim::symbol("rows"), Dim::Known(64)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    let weights = graph.add_constant("weights", floats(&[64, 48], 0.1));
    let none = Attributes::new();
    let mut last = graph.fresh_value("product");
    let inputs = vec![Some(x), Some(weights)];
    graph.add_node("", "MatMul", "multiply", &none, inputs, vec![Some(last)]).unwrap();
    for _ in 0..layers {
        let next = graph.fresh_value("layer");
        graph.add_node("", "Softmax", "", &none, vec![Some(last)], vec![Some(next)]).unwrap();
        last = next;
    }
    graph.inputs = vec![x];
    graph.outputs = vec![last];
    graph
}

/// Keeps what it is told.
#[derive(Default)]
struct Kept(Mutex<Vec<RunRecord>>);

impl TimingObserver for Kept {
    fn ran(&self, run: RunRecord) {
        self.0.lock().unwrap().push(run);
    }
}

fn sum(rows: &[ProfileRow]) -> ArithmeticWork {
    rows.iter().map(|row| row.work).fold(ArithmeticWork::default(), ArithmeticWork::plus)
}

#[test]
fn a_profile_has_the_work_of_every_kernel() {
    let Some(device) = support::device() else { return };
    let session = support::session(&device, &graph(1), &SessionOptions::default()).unwrap();
    let rows = session.run(Run::named(&[("x", floats(&[7, 64], 1.0))]).profiled()).unwrap().rows;
    let kernels: Vec<ProfileRow> = rows.into_iter().filter(|row| row.op != "host").collect();
    assert!(kernels.iter().all(|row| row.provider == "gpu"), "{kernels:?}");
    assert_eq!(sum(&kernels).operations, 2 * 7 * 64 * 48 + 7 * 48, "{kernels:?}");
    let softmax = kernels.last().unwrap();
    assert_eq!(softmax.work.bytes, 2 * 7 * 48 * 4);
    let least = (7 * 64 + 64 * 48 + 7 * 48) * 4;
    let product: u64 = kernels[..kernels.len() - 1].iter().map(|row| row.work.bytes).sum();
    assert!(product >= least, "{product} of {least}");
}

#[test]
fn an_observer_is_told_of_every_run_in_its_place() {
    let Some(device) = support::own_device() else { return };
    let kept = Arc::new(Kept::default());
    device.observe(Arc::<Kept>::clone(&kept)).unwrap();
    let session = support::session(&device, &graph(3), &SessionOptions::default()).unwrap();
    let start = Instant::now();
    for rows in [1, 5, 5] {
        session.run_tensors(Run::named(&[("x", floats(&[rows, 64], 1.0))])).unwrap();
    }
    let end = Instant::now();
    let runs = kept.0.lock().unwrap();
    assert_eq!(runs.len(), 3);
    let slack = Duration::from_micros(100);
    let mut last = start;
    for run in runs.iter() {
        assert_eq!((run.model.as_str(), run.labels.len()), ("layers", run.kernels.len()));
        let host = run.host;
        let moments =
            [start, host.begin, host.encode, host.submit, host.submitted, host.wait, host.done];
        assert!(moments.is_sorted() && host.done <= host.end && host.end <= end);
        assert!(run.begin + slack >= host.submit && run.begin + run.time <= host.done + slack);
        // Kernels follow each other inside of the run, and so do runs.
        assert!(run.begin >= last, "runs overlap");
        let mut before = run.begin;
        for kernel in &run.kernels {
            assert!(kernel.begin >= before, "kernels overlap");
            before = kernel.begin + kernel.time;
        }
        last = run.begin + run.time;
        assert!(before <= last);
        let sum: Duration = run.kernels.iter().map(|kernel| kernel.time).sum();
        assert!(!sum.is_zero() && sum <= run.time);
    }
    let label = &runs[1].labels[0];
    assert_eq!((label.node.as_str(), label.op.as_str()), ("multiply", "ai.galatea:FusedMatMul"));
    assert_eq!(label.shapes, "FP32[5,64] FP32[64,48] → FP32[5,48]");
    assert!(Arc::ptr_eq(&runs[1].labels, &runs[2].labels));
}

#[test]
fn use_is_measured_where_somebody_asks_for_it() {
    let Some(device) = support::own_device() else { return };
    let session = support::session(&device, &graph(2), &SessionOptions::default()).unwrap();
    let inputs = [("x", floats(&[9, 64], 1.0))];
    session.run_tensors(Run::named(&inputs)).unwrap();
    assert_eq!(device.usage(), None);
    device.measure_use();
    let start = Instant::now();
    session.run_tensors(Run::named(&inputs)).unwrap();
    let one = device.usage().unwrap();
    session.run_tensors(Run::named(&inputs)).unwrap();
    let (both, wall) = (device.usage().unwrap(), start.elapsed());
    assert_eq!((one.runs, both.runs), (1, 2));
    assert_eq!(both.work, one.work.plus(one.work));
    assert!(one.work.bytes > 0 && !one.busy.is_zero());
    assert!(both.busy > one.busy && both.busy <= wall, "{both:?} in {wall:?}");
    let rows = session.run(Run::named(&inputs).profiled()).unwrap().rows;
    assert_eq!(sum(&rows), one.work);
}

#[test]
fn plans_of_more_kernels_than_a_set_has_stamps_are_timed() {
    let Some(device) = support::device() else { return };
    let layers = 2100;
    let session = support::session(&device, &graph(layers), &SessionOptions::default()).unwrap();
    let rows = session.run(Run::named(&[("x", floats(&[1, 64], 1.0))]).profiled()).unwrap().rows;
    let timed = rows.iter().filter(|row| row.op == "Softmax" && !row.time.is_zero()).count();
    assert_eq!(timed, layers);
}

#[test]
fn peaks_are_measured_once_and_bound_kernels() {
    let Some(device) = support::device() else { return };
    let start = Instant::now();
    let peaks = device.peaks().unwrap();
    eprintln!("{peaks:?} in {:?}", start.elapsed());
    let of = |peak: Option<f64>| peak.unwrap();
    assert!(of(peaks.vector_f32) > 1e8 && of(peaks.bytes) > 1e8, "{peaks:?}");
    assert_eq!(peaks.vector_f16.is_some(), device.capabilities().f16);
    assert!(peaks.matrix_f16.is_none() || device.capabilities().wide_cooperative().is_some());
    let (dispatch, submit) = (peaks.dispatch.unwrap(), peaks.submit.unwrap());
    assert!(!dispatch.is_zero() && dispatch < submit, "{peaks:?}");
    assert_eq!(device.peaks().unwrap(), peaks);
    // As much arithmetic as there can be in the time, and nearly no bytes.
    let second = Duration::from_secs(1);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
    let operations = of(peaks.vector_f32) as u64;
    let work = ArithmeticWork { operations, bytes: 1 };
    assert_eq!(peaks.bound(work, ArithmeticUnit::Vector, 1, second), Some(RooflineBound::Compute));
    assert_eq!(peaks.bound(work, ArithmeticUnit::Vector, 1, dispatch), Some(RooflineBound::Launch));
}

#[test]
fn a_device_whose_timestamps_are_zero_is_measured_by_the_hosts_clock() {
    for fault in [DeviceFault::ZeroStamps, DeviceFault::RareStamps] {
        let Some(device) = support::own_device() else { return };
        device.act_out(fault, 0);
        assert!(device.trusts_stamps());
        let start = Instant::now();
        let peaks = device.peaks().unwrap();
        assert!(!device.trusts_stamps());
        // Of a second of the device's time for each rate, and compilation.
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        // A kernel that took no time would reach more than any device does.
        let plausible = |rate: Option<f64>| rate.is_some_and(|rate| rate > 1e8 && rate < 1e15);
        assert!(plausible(peaks.vector_f32) && plausible(peaks.bytes), "{peaks:?}");
        assert!(peaks.dispatch.is_some_and(|time| !time.is_zero()), "{peaks:?}");
    }
}

#[test]
fn what_zero_timestamps_would_say_is_absent() {
    let Some(device) = support::own_device() else { return };
    let session = support::session(&device, &graph(2), &SessionOptions::default()).unwrap();
    let inputs = [("x", floats(&[9, 64], 1.0))];
    device.measure_use();
    session.run_tensors(Run::named(&inputs)).unwrap();
    assert!(device.usage().is_some());
    device.act_out(DeviceFault::ZeroStamps, 0);
    // Commands of the next run may be ready already.
    for _ in 0..2 {
        session.run_tensors(Run::named(&inputs)).unwrap();
    }
    assert_eq!(device.usage(), None);
    let rows = session.run(Run::named(&inputs).profiled()).unwrap().rows;
    assert!(!rows.is_empty() && rows.iter().all(|row| row.op == "host"), "{rows:?}");
    let refused = device.observe(Arc::new(Kept::default())).unwrap_err().to_string();
    assert!(refused.contains("does not tell when kernels ran"), "{refused}");
    // The device that is opened in its place is not believed either.
    device.give_up("a test");
    session.run_tensors(Run::named(&inputs)).unwrap();
    assert!(!device.living().unwrap().trusts_stamps());
}
