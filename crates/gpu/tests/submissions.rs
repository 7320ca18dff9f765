//! Tests of runs that are cut into submissions: results, use and failures are those of runs that are not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support;
use crate::support::node::floats;
use galatea_gpu::{DeviceFault, GpuDevice, PoolConfig};
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::DataType;

/// Bound so short that each dispatch has a submission of its own.
const SHORT: Duration = Duration::from_nanos(1);

const LAYERS: usize = 6;

/// Graph of so many `Softmax` behind each other, with a second output half-way.
fn graph() -> Graph {
    let mut graph = Graph::new("layers");
    graph.opsets = [(String::new(), 21)].into_iter().collect();
    let x = graph.value_named("x");
    let dims = vec![Dim::symbol("rows"), Dim::Known(40)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    let none = Attributes::new();
    let mut values = vec![x];
    for _ in 0..LAYERS {
        let next = graph.fresh_value("layer");
        let inputs = vec![values.last().copied()];
        graph.add_node("", "Softmax", "", &none, inputs, vec![Some(next)]).unwrap();
        values.push(next);
    }
    graph.inputs = vec![x];
    graph.outputs = vec![values[LAYERS / 2], values[LAYERS]];
    graph
}

fn session(device: &std::sync::Arc<GpuDevice>) -> Session {
    support::session(device, &graph(), &SessionOptions::default()).unwrap()
}

fn outputs(session: &Session, rows: usize) -> Result<Vec<Vec<f32>>, String> {
    let inputs = [("x", floats(&[rows, 40], 1.0))];
    let found = session.run_tensors(Run::named(&inputs)).map_err(|error| error.to_string())?;
    Ok(found.iter().map(|one| one.to_vec::<f32>().unwrap()).collect())
}

fn submits(device: &GpuDevice) -> u64 {
    device.counters.submits.load(Ordering::Relaxed)
}

#[test]
fn a_run_that_is_cut_gives_the_same_numbers() {
    let (Some(whole), Some(cut)) = (support::own_device(), support::own_device()) else { return };
    whole.set_submission_bound(Duration::ZERO);
    cut.set_submission_bound(SHORT);
    let (one, other) = (session(&whole), session(&cut));
    cut.measure_use();
    // The last ones have their commands ready before.
    for rows in [1, 7, 7, 7, 3] {
        let before = [&whole, &cut].map(|device| submits(device));
        assert_eq!(outputs(&one, rows).unwrap(), outputs(&other, rows).unwrap());
        assert_eq!(submits(&whole) - before[0], 1);
        assert_eq!(submits(&cut) - before[1], LAYERS as u64);
    }
    assert!(cut.usage().is_some_and(|usage| usage.runs == 5 && !usage.busy.is_zero()));
    let inputs = [("x", floats(&[7, 40], 1.0))];
    let rows = other.run(Run::named(&inputs).profiled()).unwrap().rows;
    assert_eq!(rows.iter().filter(|row| row.op == "Softmax").count(), LAYERS);
    // What is predicted to be short is not cut.
    cut.set_submission_bound(Duration::from_millis(150));
    let before = submits(&cut);
    outputs(&other, 5).unwrap();
    assert_eq!(submits(&cut) - before, 1);
}

#[test]
fn the_smallest_bound_that_a_model_asks_for_applies() {
    let Some(device) = support::own_device() else { return };
    let session = session(&device);
    let cut = |rows: usize| {
        let before = submits(&device);
        outputs(&session, rows).unwrap();
        submits(&device) - before > 1
    };
    assert!(!cut(2), "a software device has no bound by itself");
    for (rows, bound, expected) in [(3, 1_000_000, false), (4, 1, true), (5, 1_000_000, true)] {
        let asked = PoolConfig::default().submitting(Duration::from_nanos(bound));
        device.configure(&asked).unwrap();
        assert_eq!(cut(rows), expected, "{bound} ns");
    }
}

#[test]
fn a_piece_in_the_middle_that_is_not_done_loses_the_run() {
    let Some(device) = support::own_device() else { return };
    device.set_submission_bound(SHORT);
    let session = session(&device);
    let right = outputs(&session, 3).unwrap();
    let owned = || session.run_tensors(Run::owned(vec![floats(&[3, 40], 1.0)]));
    owned().unwrap();
    device.act_out(DeviceFault::MiddlePass, 0);
    let lost = (0..2).find_map(|_| owned().err()).unwrap().to_string();
    assert!(lost.contains("pass 2 of 6 did not come to its end"), "{lost}");
    assert_eq!(outputs(&session, 3).unwrap(), right);
    // The device that is opened in its place keeps the bound, and the run is repeated on the next one.
    let second = device.living().unwrap();
    second.act_out(DeviceFault::MiddlePass, 0);
    for _ in 0..2 {
        assert_eq!(outputs(&session, 4).unwrap().len(), 2);
    }
    assert!(second.alive().unwrap_err().to_string().contains("pass 2 of 6"));
}

#[test]
fn a_piece_that_hangs_counts_as_the_run_that_hangs() {
    let Some(device) = support::own_device() else { return };
    device.set_submission_bound(SHORT);
    let session = session(&device);
    outputs(&session, 3).unwrap();
    device.set_watchdog(Duration::from_nanos(1));
    let error = outputs(&session, 4000).unwrap_err();
    assert!(error.contains("did not finish within"), "{error}");
}
