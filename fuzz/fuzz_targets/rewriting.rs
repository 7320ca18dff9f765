//! Shape inference and rewriting at every level, of a model with something wrong.

#![no_main]

use galatea_fuzz::{cross, memory, mutate};
use galatea_testkit::exercise;
use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| {
    memory::within((1 << 30) + 1024 * data.len(), || {
        if let Some(graph) = exercise::import(data) {
            exercise::rewrite(&graph);
        }
    });
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});

fuzz_crossover!(|first: &[u8], second: &[u8], out: &mut [u8], seed: u32| {
    cross(first, second, out, seed)
});
