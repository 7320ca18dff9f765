//! Any bytes as a message of `ModelInfer`, which is answered.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| galatea_server::fuzzing::grpc_infer(data));
