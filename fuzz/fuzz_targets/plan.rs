//! A model with something wrong, split between the providers, planned for made-up lengths and run.

#![no_main]

use std::sync::{Arc, LazyLock};

use galatea_fuzz::{cross, memory, mutate};
use galatea_graph::limits::{self, GraphLimits};
use galatea_runtime::ExecutionProvider;
use galatea_testkit::exercise;
use galatea_testkit::noise::NoiseGenerator;
use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target};

static PROVIDERS: LazyLock<Vec<Arc<dyn ExecutionProvider>>> = LazyLock::new(|| {
    limits::set(GraphLimits { value_bytes: 1 << 20, iterations: 16 })
        .expect("nothing set limits yet");
    galatea_providers::all()
});

fuzz_target!(|data: &[u8]| {
    let providers = &*PROVIDERS;
    memory::within((1 << 30) + 1024 * data.len(), || {
        let Some(graph) = exercise::import(data) else { return };
        let seed = data.iter().fold(0_u64, |seed, &byte| seed.wrapping_mul(31) + u64::from(byte));
        let mut noise = NoiseGenerator::new(seed);
        exercise::run(&graph, providers, &mut noise);
    });
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});

fuzz_crossover!(|first: &[u8], second: &[u8], out: &mut [u8], seed: u32| {
    cross(first, second, out, seed)
});
