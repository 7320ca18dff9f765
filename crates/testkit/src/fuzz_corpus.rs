//! Committed inputs of the fuzz targets, for ordinary tests: as they are, cut off, and with fixed changes.
//!
//! `GALATEA_MUTATIONS=N` tries N changes of each input in place of a few.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::noise::NoiseGenerator;

/// Places in which each input is cut off.
const CUTS: usize = 8;
/// Changes of each input, where nothing asks for more.
const MUTATIONS: usize = 16;
/// Changes that one input gets at most.
const MAX_CHANGES: usize = 4;
/// Texts that mean something in many formats.
const WORDS: &[&str] = &[
    "\0",
    "\x7f",
    "\r\n",
    " ",
    "\"",
    "{",
    "[",
    "0",
    "-1",
    "18446744073709551616",
    "\0\0\0\x01",
    "\u{1F600}",
];

/// Runs the entry of a fuzz target on all of its committed inputs, cut off in a few places and changed too.
///
/// # Panics
/// Panics where the entry does, and when the target has fewer inputs than `least`.
pub fn hold(target: &str, least: usize, entry: fn(&[u8])) {
    let inputs = read(target);
    assert!(inputs.len() >= least, "{target} has {} inputs, expected {least}", inputs.len());
    let mutations = std::env::var("GALATEA_MUTATIONS").ok().and_then(|text| text.parse().ok());
    let mut noise = NoiseGenerator::new(0x5EED);
    for input in &inputs {
        let bytes = input.as_slice();
        run(target, entry, bytes);
        for end in (0..bytes.len()).step_by(bytes.len() / CUTS + 1) {
            run(target, entry, bytes.get(..end).unwrap_or_default());
        }
        for _ in 0..mutations.unwrap_or(MUTATIONS) {
            run(target, entry, &changed(bytes, &inputs, &mut noise));
        }
    }
}

/// Reads the inputs in the order of their names, so that changes are the same on every machine.
fn read(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    paths.sort();
    let read =
        |path: &PathBuf| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    paths.iter().map(read).collect()
}

fn run(target: &str, entry: fn(&[u8]), bytes: &[u8]) {
    let _told = FailedInput { target, bytes };
    entry(bytes);
}

/// An input, changed in one to four places.
fn changed(bytes: &[u8], others: &[Vec<u8>], noise: &mut NoiseGenerator) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=noise.below(MAX_CHANGES) {
        change(&mut bytes, others, noise);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, others: &[Vec<u8>], noise: &mut NoiseGenerator) {
    let at = noise.below(bytes.len() + 1);
    let end = (at + noise.below(8)).min(bytes.len());
    match noise.below(6) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << noise.below(8);
            }
        }
        1 => drop(bytes.drain(at..end)),
        2 => {
            let part: Vec<u8> = bytes.get(at..end).unwrap_or_default().to_vec();
            bytes.splice(at..at, part);
        }
        3 => {
            let word = noise.pick(WORDS).copied().unwrap_or_default();
            bytes.splice(at..end, word.bytes());
        }
        4 => {
            let word = noise.pick(WORDS).copied().unwrap_or_default();
            bytes.splice(at..at, word.bytes());
        }
        _ => {
            let other = noise.pick(others).map(Vec::as_slice).unwrap_or_default();
            let from = noise.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(other.get(from..).unwrap_or_default());
        }
    }
}

/// An input, which is written to a file if the entry panics on it.
struct FailedInput<'a> {
    target: &'a str,
    bytes: &'a [u8],
}

impl Drop for FailedInput<'_> {
    #[allow(clippy::print_stderr, reason = "a test that fails says on which input")]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let path = std::env::temp_dir().join(format!("{}-finding", self.target));
        match fs::write(&path, self.bytes) {
            Ok(()) => eprintln!("the input is in {}", path.display()),
            Err(_) => eprintln!("the input is {:?}", self.bytes),
        }
    }
}
