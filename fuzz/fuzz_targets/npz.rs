//! Any bytes as a NumPy archive.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = galatea_formats::npy::read_npz_from(Cursor::new(data));
});
