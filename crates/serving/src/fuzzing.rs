//! Entries of the fuzz targets in `fuzz/fuzz_targets` into what the core reads of others. Not for other users.
//!
//! Each takes any bytes. A panic is a finding: of the reader, or of an assertion on what it has read.

#![allow(clippy::missing_panics_doc, reason = "a panic is how a fuzz target reports")]

use serde_json::Value;

use crate::config;

pub use crate::backend::python::fuzzing::{archive, python_worker};
pub use crate::model_cache::fuzzing::cache_entry;

/// Reads bytes as a configuration in JSON, as loads bring along. What is read is written and read again.
pub fn config_json(data: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    if let Ok(config) = config::from_json(&json) {
        checked(config);
    }
}

/// Reads bytes as a `config.pbtxt`. What is read is written as JSON and read again.
pub fn config_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(config) = config::from_text(text) {
        checked(config);
    }
}

/// Does to a configuration what is done before its model is loaded.
fn checked(mut config: config::ModelConfig) {
    let again = config::from_json(&config::to_json(&config));
    // NaN is written as text, and equals nothing.
    let written = again.map(|again| config::to_json(&again));
    assert_eq!(written, Ok(config::to_json(&config)), "a configuration changes in JSON");
    config::normalise(&mut config);
    let _ = config::validate(&config).and_then(|()| config::validate_tensors(&config));
    let _ = config::validate_instances(&config, 1);
}

#[cfg(test)]
mod tests {
    use galatea_testkit::fuzz_corpus::hold;

    use super::*;

    #[test]
    fn committed_inputs_of_the_fuzz_targets_hold() {
        hold("config_json", 3, config_json);
        hold("config_text", 3, config_text);
        hold("archive", 3, archive);
        hold("cache_entry", 3, cache_entry);
        hold("python_worker", 3, python_worker);
    }
}
