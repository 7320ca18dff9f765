//! Memory of the device: what runs reuse, and what happens at the end of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support;
use galatea_gpu::{DeviceBlock, GpuDevice, PoolConfig};
use galatea_graph::{Attributes, Dim, Fact, Graph, evaluate};
use galatea_runtime::{Run, SessionOptions};
use galatea_tensor::{Allocation, DataType, MappedFile, MemoryKind, Tensor, Tolerance, compare};

/// `Relu` of a vector of any length.
fn relu() -> Graph {
    let mut graph = Graph::new("relu");
    graph.opsets.insert(String::new(), 17);
    let (x, y) = (graph.value_named("x"), graph.value_named("y"));
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n")]));
    graph.inputs.push(x);
    let none = Attributes::new();
    graph.add_node("", "Relu", "relu", &none, vec![Some(x)], vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

fn with_pool(config: &PoolConfig) -> Option<Arc<GpuDevice>> {
    support::device().map(|_| GpuDevice::open_with(support::index(), config).unwrap())
}

#[test]
fn a_run_takes_no_memory_that_an_earlier_one_has_given_back() {
    let Some(device) = support::own_device() else { return };
    let session = support::session(&device, &relu(), &SessionOptions::default()).unwrap();
    let run = |len: usize| {
        let x = Tensor::from_vec(&[len], vec![-1.0_f32; len]).unwrap();
        let found = session.run_tensors(Run::named(&[("x", x)])).unwrap();
        assert_eq!(found[0], Tensor::from_vec(&[len], vec![0.0_f32; len]).unwrap());
    };
    run(5000);
    let first = device.memory();
    for len in [5000, 4000, 5000, 1] {
        run(len);
    }
    let later = device.memory();
    // What else is made are the parameters of the two new plans.
    assert_eq!(later.made - first.made, 2);
    assert!(later.used_bytes - first.used_bytes <= 2 * 256 && later.peak_bytes >= 40_000);
    drop(session);
    assert_eq!(device.memory().used_bytes, 0);
    assert!(device.trim() > 0 && device.memory().free_bytes == 0);
}

#[test]
fn a_model_beyond_the_budget_is_refused_with_the_numbers() {
    let Some(device) = with_pool(&PoolConfig::default().within(100_000)) else { return };
    let session = support::session(&device, &relu(), &SessionOptions::default()).unwrap();
    let run = |len: usize| {
        let x = Tensor::from_vec(&[len], vec![1.0_f32; len]).unwrap();
        session.run_tensors(Run::named(&[("x", x)])).map_err(|error| error.to_string())
    };
    assert!(run(100).is_ok());
    let error = run(1_000_000).unwrap_err();
    assert!(error.contains("of the 100000 that may be taken"), "{error}");
    // The device goes on with what it has room for.
    assert!(run(200).is_ok());
}

#[test]
fn buffers_wanted_from_the_start_are_there() {
    let config = PoolConfig::new(&[1 << 16, 1 << 20], &[2, 1], &[4, 1]).unwrap();
    let Some(device) = with_pool(&config) else { return };
    assert_eq!(device.memory().free_bytes, (2 << 16) + (1 << 20));
    let block = DeviceBlock::new(&device, 100_000).unwrap();
    let memory = device.memory();
    assert_eq!((block.bytes(), memory.made, memory.reused), (1 << 20, 0, 1));
}

/// Copy commands, copies by the processor, and outputs in place so far.
fn moved(device: &GpuDevice) -> [u64; 3] {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counters = &device.counters;
    [&counters.copies, &counters.host_copies, &counters.outputs_in_place].map(read)
}

/// Returns the counts since then.
fn since(device: &GpuDevice, before: [u64; 3]) -> [u64; 3] {
    let now = moved(device);
    std::array::from_fn(|at| now[at] - before[at])
}

fn ramp(len: usize) -> Tensor {
    let values = (0..len).map(|at| f32::from(i16::try_from(at % 3000).unwrap()) - 1500.0);
    Tensor::from_vec(&[len], values.collect()).unwrap()
}

fn clipped(tensor: &Tensor) -> Tensor {
    let values = tensor.to_vec::<f32>().unwrap();
    Tensor::from_vec(tensor.shape(), values.into_iter().map(|x| x.max(0.0)).collect()).unwrap()
}

#[test]
fn a_run_on_shared_memory_needs_no_copy_command() {
    let Some(device) = support::own_device() else { return };
    if !device.capabilities().unified || !device.capabilities().mappable {
        return;
    }
    let session = support::session(&device, &relu(), &SessionOptions::default()).unwrap();
    let x = ramp(50_000);
    let before = moved(&device);
    let found = session.run_tensors(Run::named(&[("x", x.clone())])).unwrap();
    assert_eq!(found[0], clipped(&x));
    let (memory, _) = found[0].whole_allocation().unwrap();
    assert_eq!(memory.kind(), MemoryKind::Unified);
    // The parameters of the plan, and the input: it goes straight to where the kernel reads it.
    assert_eq!(since(&device, before), [0, 2, 1]);
    let before = moved(&device);
    session.run_tensors(Run::named(&[("x", ramp(50_000))])).unwrap();
    assert_eq!(since(&device, before), [0, 1, 1]);
    // Of an input that lies there already nothing is copied at all.
    let mut placed = session.allocate_input(0, &[50_000]).unwrap().unwrap();
    let bytes = x.as_bytes().unwrap();
    placed.parts_mut().unwrap().write_parts(&[0], bytes.len(), bytes).unwrap();
    session.run_tensors(Run::owned(vec![placed.clone()])).unwrap();
    let before = moved(&device);
    let found = session.run_tensors(Run::owned(vec![placed.clone()])).unwrap();
    assert_eq!((found[0].clone(), &placed), (clipped(&x), &x));
    assert_eq!(since(&device, before), [0, 0, 1]);
}

#[test]
fn a_run_without_shared_memory_copies_each_input_and_output_once() {
    let Some(device) = with_pool(&PoolConfig::default().unified_up_to(0)) else { return };
    let session = support::session(&device, &relu(), &SessionOptions::default()).unwrap();
    session.run_tensors(Run::named(&[("x", ramp(50_000))])).unwrap();
    let before = moved(&device);
    let x = ramp(50_000);
    let found = session.run_tensors(Run::named(&[("x", x.clone())])).unwrap();
    assert_eq!(found[0], clipped(&x));
    // To the block beside the arena, from there to the arena, and to the block that is read.
    assert_eq!(since(&device, before), [2, 1, 1]);
    let before = moved(&device);
    let small = ramp(3);
    assert_eq!(
        session.run_tensors(Run::named(&[("x", small.clone())])).unwrap()[0],
        clipped(&small)
    );
    // A small output is copied once more, and the new plan has parameters.
    assert_eq!(since(&device, before), [3, 2, 0]);
}

#[test]
fn outputs_that_are_held_stay_as_they_are() {
    for unified_bytes in [0, u64::MAX] {
        let config = PoolConfig::default().unified_up_to(unified_bytes);
        let Some(device) = with_pool(&config) else { return };
        let session = support::session(&device, &relu(), &SessionOptions::default()).unwrap();
        let mut held = Vec::new();
        for step in 0..12 {
            let x = ramp(20_000 + step);
            held.push((session.run_tensors(Run::named(&[("x", x.clone())])).unwrap().remove(0), x));
        }
        for (found, x) in &held {
            assert_eq!(found, &clipped(x));
        }
        held.truncate(1);
        let x = ramp(20_000);
        let made = device.memory().made;
        for _ in 0..4 {
            assert_eq!(
                session.run_tensors(Run::named(&[("x", x.clone())])).unwrap()[0],
                clipped(&x)
            );
        }
        assert_eq!(device.memory().made, made);
        drop(session);
        assert_eq!(held[0].0, clipped(&held[0].1));
    }
}

#[test]
fn runs_of_several_threads_do_not_disturb_each_other() {
    for unified_bytes in [0, u64::MAX] {
        let config = PoolConfig::default().unified_up_to(unified_bytes);
        let Some(device) = with_pool(&config) else { return };
        let session = support::session(&device, &relu(), &SessionOptions::default()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let session = &session;
                scope.spawn(move || {
                    for step in 0..6 {
                        let x = ramp(17_000 + thread * 1000 + step % 2);
                        let found = session.run_tensors(Run::named(&[("x", x.clone())])).unwrap();
                        assert_eq!(found[0], clipped(&x));
                    }
                });
            }
        });
    }
}

#[test]
fn a_tensor_of_another_device_comes_through_the_host() {
    for unified_bytes in [0, u64::MAX] {
        let config = PoolConfig::default().unified_up_to(unified_bytes);
        let (Some(near), Some(far)) = (with_pool(&config), with_pool(&config)) else { return };
        let sessions = [&near, &far]
            .map(|device| support::session(device, &relu(), &SessionOptions::default()).unwrap());
        let x = ramp(20_000);
        let mut placed = sessions[1].allocate_input(0, &[20_000]).unwrap().unwrap();
        let bytes = x.as_bytes().unwrap();
        placed.parts_mut().unwrap().write_parts(&[0], bytes.len(), bytes).unwrap();
        for (device, session, peers) in [(&near, &sessions[0], 1), (&far, &sessions[1], 0)] {
            let found = session.run_tensors(Run::owned(vec![placed.clone()])).unwrap();
            assert_eq!(found[0], clipped(&x));
            let counters = &device.counters;
            assert_eq!(counters.peer_copies.load(Ordering::Relaxed), peers);
            let moved = counters.peer_copy_bytes.load(Ordering::Relaxed);
            assert_eq!(moved, peers * bytes.len() as u64);
        }
    }
}

/// Rows and columns of a matrix in a file.
const WIDTH: usize = 192;

/// A product with a matrix that lies in a mapped file, so many bytes from its start.
fn product_with_file(start: usize) -> (Graph, tempfile::NamedTempFile) {
    let numbers = support::node::floats(&[WIDTH, WIDTH], 0.5);
    let mut bytes = vec![0; start];
    bytes.extend_from_slice(numbers.as_bytes().unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let mapped: Arc<dyn Allocation> = Arc::new(MappedFile::open(file.path()).unwrap());
    let shape = [WIDTH, WIDTH];
    let weights = Tensor::from_allocation(DataType::Fp32, &shape, mapped, start).unwrap();
    let mut graph = Graph::new("product");
    graph.opsets.insert(String::new(), 17);
    let (x, y) = (graph.value_named("x"), graph.value_named("y"));
    let dims = vec![Dim::symbol("rows"), Dim::Known(WIDTH)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    let weights = graph.add_constant("weights", weights);
    let inputs = vec![Some(x), Some(weights)];
    graph.add_node("", "MatMul", "", &Attributes::new(), inputs, vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    (graph, file)
}

#[test]
fn weights_in_a_mapped_file_are_read_where_they_lie() {
    let matrix = (WIDTH * WIDTH * 4) as u64;
    // On the border of a page, inside one, and where no binding starts.
    for (start, lies) in [(0, true), (64, true), (4096 + 320, true), (8, false)] {
        let Some(device) = support::own_device() else { return };
        let (graph, _file) = product_with_file(start);
        let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
        for rows in [1, 7] {
            let x = support::node::floats(&[rows, WIDTH], 1.0);
            let found = session.run_tensors(Run::named(&[("x", x.clone())])).unwrap().remove(0);
            let expected = evaluate::run(&graph, &[x]).unwrap();
            compare(&found, &expected[0], Tolerance::Within(1e-4)).unwrap();
        }
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &device.counters;
        let imported = read(&counters.imported_bytes);
        let uploaded = read(&counters.upload_bytes);
        if lies && device.reads_pages() {
            assert_eq!(imported, matrix);
            assert!(uploaded < matrix, "{uploaded} bytes were copied");
        } else {
            if lies {
                eprintln!("this device takes no pages: the file is copied");
            }
            assert_eq!(imported, 0);
            assert!(uploaded > matrix, "{uploaded} bytes were copied");
        }
        assert!(device.memory().used_bytes >= matrix);
        drop(session);
        assert_eq!(device.memory().used_bytes, 0);
    }
}
