//! Times runs of one graph that are cut into submissions of several predicted times: one JSON line each.
//!
//! `cuts ROWS WIDTH LAYERS [f16]`, on the device that `GALATEA_GPU_DEVICE` numbers. The graph multiplies rows by one
//! matrix as often as it has layers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for measurements"
)]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "rates")]

mod measuring;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use galatea_gpu::{GpuDevice, GpuProvider};
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_runtime::{ExecutionProvider, Precision, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};
use measuring::{Arguments, device, random};

/// Predicted milliseconds of a submission at most; none is cut with 0.
const BOUNDS: [u64; 5] = [0, 150, 50, 10, 1];
/// Rounds through all bounds, the middle of which counts.
const ROUNDS: usize = 15;

fn graph(width: usize, layers: usize) -> Graph {
    let mut graph = Graph::new("layers");
    graph.opsets.insert(String::new(), 17);
    let mut x = graph.value_named("x");
    let dims = vec![Dim::symbol("rows"), Dim::Known(width)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    let matrix =
        Tensor::from_bytes(DataType::Fp32, &[width, width], &random(width * width, DataType::Fp32));
    let matrix = graph.add_constant("w", matrix.unwrap());
    let none = Attributes::new();
    for _ in 0..layers {
        let (product, bounded) = (graph.fresh_value("product"), graph.fresh_value("bounded"));
        graph
            .add_node("", "MatMul", "", &none, vec![Some(x), Some(matrix)], vec![Some(product)])
            .unwrap();
        graph.add_node("", "Tanh", "", &none, vec![Some(product)], vec![Some(bounded)]).unwrap();
        x = bounded;
    }
    let y = graph.fresh_value("y");
    graph.add_node("", "ReduceMean", "", &none, vec![Some(x)], vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

/// A session whose plans are made with a bound.
struct BoundedSession {
    bound: u64,
    session: Session,
    /// Submissions of a run.
    submits: u64,
    ms: Vec<f64>,
}

fn submits(device: &GpuDevice) -> u64 {
    device.counters.submits.load(Ordering::Relaxed)
}

fn main() {
    let args = Arguments::new();
    let (rows, width, layers) = (args.number(0, 1024), args.number(1, 1024), args.number(2, 24));
    let precision = if args.has("f16") { Precision::Fp16 } else { Precision::Fp32 };
    let device = device();
    let x =
        Tensor::from_bytes(DataType::Fp32, &[rows, width], &random(rows * width, DataType::Fp32));
    let x = x.unwrap();
    let run = |session: &Session| {
        let start = Instant::now();
        session.run_tensors(Run::named(&[("x", x.clone())])).unwrap();
        start.elapsed().as_secs_f64() * 1e3
    };
    let graph = graph(width, layers);
    let provider: Arc<dyn ExecutionProvider> = Arc::new(GpuProvider::on(Arc::clone(&device)));
    let options = SessionOptions { precision, ..SessionOptions::default() };
    let mut all: Vec<BoundedSession> = Vec::new();
    for bound in BOUNDS {
        device.set_submission_bound(Duration::from_millis(bound));
        let session = Session::new(graph.clone(), &[Arc::clone(&provider)], &options).unwrap();
        run(&session);
        let before = submits(&device);
        run(&session);
        all.push(BoundedSession {
            bound,
            session,
            submits: submits(&device) - before,
            ms: Vec::new(),
        });
    }
    for _ in 0..ROUNDS {
        for one in &mut all {
            one.ms.push(run(&one.session));
        }
    }
    for one in &mut all {
        one.ms.sort_by(f64::total_cmp);
    }
    let whole = all[0].ms[ROUNDS / 2];
    for BoundedSession { bound, submits, ms, .. } in &all {
        let middle = ms[ROUNDS / 2];
        println!(
            "{{\"gpu\":\"{}\",\"rows\":{rows},\"width\":{width},\"layers\":{layers},\"bound_ms\":{bound},\
             \"submissions\":{submits},\"ms\":{middle:.3},\"least_ms\":{:.3},\"ratio\":{:.4}}}",
            device.capabilities().name,
            ms[0],
            middle / whole
        );
    }
}
