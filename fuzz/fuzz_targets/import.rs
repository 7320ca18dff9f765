//! A model with something wrong: an error or a graph.

#![no_main]

use galatea_fuzz::{cross, memory, mutate};
use galatea_testkit::exercise;
use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| {
    // Functions may be inlined to 2^17 nodes whatever the size of the file, and sparse constants of
    // any file may have 64 MiB and 512 bytes for each of theirs.
    memory::within((192 << 20) + 1024 * data.len(), || drop(exercise::import(data)));
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});

fuzz_crossover!(|first: &[u8], second: &[u8], out: &mut [u8], seed: u32| {
    cross(first, second, out, seed)
});
