//! Any text as a program that Core ML has compiled, with another part of the bytes as its description.

use galatea_formats::coreml::load;

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    // A byte of zero ends the program.
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (program, description) = data.split_at(end);
    let folder = tempfile::tempdir().expect("a folder for the model");
    std::fs::write(folder.path().join("model.mil"), program).expect("files can be written");
    if let Some(description) = description.get(1..) {
        std::fs::write(folder.path().join("metadata.json"), description)
            .expect("files can be written");
    }
    let _ = load(folder.path());
}
