//! Memory of the device: what runs reuse, and what happens at the end of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use galatea_gpu::{Block, Device, PoolConfig};
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_runtime::SessionOptions;
use galatea_tensor::{DataType, Tensor};

/// `Relu` of a vector of any length.
fn relu() -> Graph {
    let mut graph = Graph::new("relu");
    graph.opsets.insert(String::new(), 17);
    let (x, y) = (graph.value_named("x"), graph.value_named("y"));
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n")]));
    graph.inputs.push(x);
    let none = Attributes::new();
    graph.add_node(("", "Relu"), "relu", &none, vec![Some(x)], vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

fn with_pool(config: &PoolConfig) -> Option<Arc<Device>> {
    support::device().map(|_| Device::open_with(support::index(), config).unwrap())
}

#[test]
fn a_run_takes_no_memory_that_an_earlier_one_has_given_back() {
    let Some(device) = support::own_device() else { return };
    let session = support::session(&device, &relu(), &SessionOptions::default()).unwrap();
    let run = |len: usize| {
        let x = Tensor::from_vec(&[len], vec![-1.0_f32; len]).unwrap();
        let found = session.run(&[("x", x)]).unwrap();
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
        session.run(&[("x", x)]).map_err(|error| error.to_string())
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
    let block = Block::new(&device, 100_000).unwrap();
    let memory = device.memory();
    assert_eq!((block.bytes(), memory.made, memory.reused), (1 << 20, 0, 1));
}
