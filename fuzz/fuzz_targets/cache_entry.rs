//! Any bytes as an entry of the cache of prepared models.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_serving::fuzzing::cache_entry(data));
