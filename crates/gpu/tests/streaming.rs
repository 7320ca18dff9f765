//! Models whose weights are more than the device may hold.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::matrices;
use crate::matrices::Made;
use crate::support;
use crate::support::node::floats;
use galatea_gpu::{DeviceFault, GpuDevice, PoolConfig};
use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockGather, BlockMatMul};
use galatea_graph::{Attributes, Dim, Fact, GALATEA_DOMAIN, Graph};
use galatea_runtime::{Precision, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

const WIDTH: usize = 160;
const LAYERS: usize = 12;
/// A third of the weights.
const BUDGET: u64 = (WIDTH * WIDTH * 4 * LAYERS / 3) as u64;

fn limited(config: PoolConfig) -> Option<Arc<GpuDevice>> {
    support::device().map(|_| GpuDevice::open_with(support::index(), &config).unwrap())
}

/// Layers of a matrix and a sum each.
fn layers() -> Graph {
    let mut graph = Graph::new("layers");
    graph.opsets.insert(String::new(), 21);
    let mut x = graph.value_named("x");
    let dims = vec![Dim::symbol("rows"), Dim::Known(WIDTH)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    for layer in 0..LAYERS {
        // The same numbers in another order.
        let weights = floats(&[WIDTH, WIDTH], 0.1).to_vec::<f32>().unwrap();
        let weights: Vec<f32> =
            (0..WIDTH * WIDTH).map(|at| weights[(at + layer * 7) % weights.len()]).collect();
        let weights = Tensor::from_vec(&[WIDTH, WIDTH], weights).unwrap();
        let weights = graph.add_constant(&format!("w{layer}"), weights);
        let (product, sum) = (graph.fresh_value("product"), graph.fresh_value("sum"));
        for (op, second, from, to) in [("MatMul", weights, x, product), ("Add", x, product, sum)] {
            let inputs = vec![Some(from), Some(second)];
            graph.add_node("", op, op, &Attributes::new(), inputs, vec![Some(to)]).unwrap();
        }
        x = sum;
    }
    graph.outputs.push(x);
    graph
}

fn run(session: &Session, rows: usize) -> Tensor {
    session.run_tensors(Run::named(&[("x", floats(&[rows, WIDTH], 1.0))])).unwrap().remove(0)
}

#[test]
fn a_model_three_times_as_large_as_the_budget_gives_what_it_gives_whole() {
    let Some(whole) = support::device() else { return };
    for precision in [Precision::Fp32, Precision::Fp16] {
        let device = limited(PoolConfig::default().within(BUDGET)).unwrap();
        let options = SessionOptions { precision, ..SessionOptions::default() };
        let known = support::session(&whole, &layers(), &options).unwrap();
        let session = support::session(&device, &layers(), &options).unwrap();
        for rows in [1, 3, 40, 1] {
            assert_eq!(run(&session, rows), run(&known, rows), "{rows} rows in {precision}");
        }
        let found = device.streams();
        assert!(found.streamed_bytes > BUDGET && found.slot_bytes < BUDGET, "{found:?}");
        assert!(device.memory().peak_bytes <= BUDGET);
        let memory = session.report().memory;
        assert!(memory.mapped_bytes > memory.initializer_bytes, "{memory:?}");
        drop(session);
        assert_eq!(device.memory().used_bytes, 0);
    }
}

#[test]
fn weights_that_were_lost_on_their_way_are_streamed_anew() {
    let Some(whole) = support::device() else { return };
    let options = SessionOptions::default();
    let known = support::session(&whole, &layers(), &options).unwrap();
    let device = limited(PoolConfig::default().within(BUDGET)).unwrap();
    let session = support::session(&device, &layers(), &options).unwrap();
    assert_eq!(run(&session, 3), run(&known, 3));
    device.act_out(DeviceFault::LostCopies, 0);
    for rows in [3, 5, 3] {
        assert_eq!(run(&session, rows), run(&known, rows));
    }
    assert_eq!(device.counters.lost_runs.load(Ordering::Relaxed), 1);
}

#[test]
fn the_order_of_weights_is_foreseen_from_the_second_run_on() {
    let Some(device) = limited(PoolConfig::default().within(BUDGET)) else { return };
    let session = support::session(&device, &layers(), &SessionOptions::default()).unwrap();
    run(&session, 2);
    run(&session, 2);
    let first = device.streams().prefetch;
    for _ in 0..3 {
        run(&session, 2);
    }
    let later = device.streams().prefetch;
    assert_eq!(later.misses, first.misses);
    assert_eq!(later.guesses.0 - first.guesses.0, later.guesses.1 - first.guesses.1);
    // What stays from one run to the next is not brought again.
    let touches = (later.hits + later.late) - (first.hits + first.late);
    assert_eq!(touches, 3 * LAYERS as u64);
    assert!(later.loads - first.loads < touches, "{later:?}");
}

#[test]
fn without_reading_ahead_every_load_is_waited_for() {
    let config = PoolConfig::default().within(BUDGET).reading_ahead(0);
    let (Some(device), Some(whole)) = (limited(config), support::device()) else { return };
    let session = support::session(&device, &layers(), &SessionOptions::default()).unwrap();
    let known = support::session(&whole, &layers(), &SessionOptions::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(run(&session, 2), run(&known, 2));
    }
    let found = device.streams().prefetch;
    assert_eq!((found.late, found.loads), (0, found.misses));
}

#[test]
fn a_layer_larger_than_the_budget_is_refused_with_the_numbers() {
    let Some(device) = limited(PoolConfig::default().within(150_000)) else { return };
    let session = support::session(&device, &layers(), &SessionOptions::default()).unwrap();
    let error = session
        .run_tensors(Run::named(&[("x", floats(&[1, WIDTH], 1.0))]))
        .unwrap_err()
        .to_string();
    let layer = (WIDTH * WIDTH * 4).to_string();
    assert!(error.contains(&layer) && error.contains("150000"), "{error}");
}

#[test]
fn a_model_within_the_budget_stays_on_the_device() {
    let Some(device) = limited(PoolConfig::default().within(BUDGET * 6)) else { return };
    let session = support::session(&device, &layers(), &SessionOptions::default()).unwrap();
    run(&session, 2);
    let before = device.counters.upload_bytes.load(Ordering::Relaxed);
    run(&session, 2);
    assert_eq!(device.counters.upload_bytes.load(Ordering::Relaxed) - before, 2 * WIDTH as u64 * 4);
    assert_eq!(device.streams().streamed_bytes, 0);
}

#[test]
fn several_threads_may_stream_at_once() {
    let Some(device) = limited(PoolConfig::default().within(BUDGET * 2)) else { return };
    let session = support::session(&device, &layers(), &SessionOptions::default()).unwrap();
    let expected = run(&session, 5);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(run(&session, 5), expected));
        }
    });
}

/// Rows of a table, products with matrices, and the table as the last matrix.
fn packed() -> Graph {
    let mut graph = Graph::new("packed");
    let (_, format, scales) = matrices::formats().swap_remove(0);
    let made = |rows, seed| -> Arc<dyn BlockWeights> {
        Arc::new(Made { rows, columns: 512, format, scales, seed, at: None })
    };
    let table = made(2048, 1);
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::new(DataType::Int64, vec![Dim::symbol("rows")]));
    graph.inputs.push(x);
    let mut last = graph.fresh_value("rows");
    let gather = Arc::new(BlockGather::new(Arc::clone(&table)));
    graph.add_operator(GALATEA_DOMAIN, "BlockGather", gather, vec![Some(x)], vec![Some(last)]);
    for matrix in (2..8).map(|seed| made(512, seed)).chain([table]) {
        let next = graph.fresh_value("product");
        let product = Arc::new(BlockMatMul::new(vec![matrix]).unwrap());
        let op = "BlockMatMul";
        graph.add_operator(GALATEA_DOMAIN, op, product, vec![Some(last)], vec![Some(next)]);
        last = next;
    }
    graph.outputs.push(last);
    graph
}

#[test]
fn packed_weights_are_kept_in_a_file_and_give_the_same() {
    let Some(device) = limited(PoolConfig::default().within(500_000)) else { return };
    let whole = support::device().unwrap();
    let known = support::session(&whole, &packed(), &SessionOptions::default()).unwrap();
    let session = support::session(&device, &packed(), &SessionOptions::default()).unwrap();
    for rows in [1_i64, 20, 1] {
        let x = Tensor::vector((0..rows).map(|at| at * 97).collect::<Vec<_>>());
        let found = session.run_tensors(Run::named(&[("x", x.clone())])).unwrap();
        assert_eq!(found, known.run_tensors(Run::named(&[("x", x)])).unwrap());
    }
    assert!(device.streams().streamed_bytes > 1_000_000, "{:?}", device.streams());
    assert!(device.memory().peak_bytes <= 500_000);
}

#[test]
fn a_matrix_of_many_nodes_is_packed_once_though_threads_want_it_at_once() {
    let Some(device) = support::own_device() else { return };
    let (_, format, scales) = matrices::formats().swap_remove(0);
    let matrix: Arc<dyn BlockWeights> =
        Arc::new(Made { rows: 4096, columns: 1024, format, scales, seed: 1, at: None });
    let mut graph = Graph::new("same");
    let x = graph.value_named("x");
    let dims = vec![Dim::symbol("rows"), Dim::Known(1024)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    for _ in 0..8 {
        let product = Arc::new(BlockMatMul::new(vec![Arc::clone(&matrix)]).unwrap());
        let out = graph.fresh_value("product");
        let op = "BlockMatMul";
        graph.add_operator(GALATEA_DOMAIN, op, product, vec![Some(x)], vec![Some(out)]);
        graph.outputs.push(out);
    }
    let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
    let uploaded = device.counters.upload_bytes.load(Ordering::Relaxed);
    assert!((1 << 21..3 << 21).contains(&uploaded), "{uploaded}");
    let found = session.run_tensors(Run::named(&[("x", floats(&[2, 1024], 1.0))])).unwrap();
    assert!(found.iter().all(|one| *one == found[0]));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let config = PoolConfig::default().within(500_000);
    let config = config.spilling_to(std::path::Path::new("/nowhere"));
    let Some(device) = limited(config) else { return };
    let error = support::session(&device, &packed(), &SessionOptions::default()).unwrap_err();
    assert!(error.contains("'/nowhere'"), "{error}");
}
