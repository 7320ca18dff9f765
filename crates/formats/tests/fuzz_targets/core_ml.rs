//! Any bytes as a model of Core ML, whose file of weights is another part of the bytes.

use bytes::Bytes;
use galatea_formats::coreml::read_model;

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    // The first byte says how many sixteenths the model is.
    let Some((&share, data)) = data.split_first() else { return };
    let (model, weights) = data.split_at(data.len() * usize::from(share % 17) / 16);
    let folder = tempfile::tempdir().expect("a folder for the weights");
    let file = folder.path().join("weights/weight.bin");
    std::fs::create_dir(folder.path().join("weights")).expect("a folder can be made");
    std::fs::write(file, weights).expect("the weights can be written");
    let _ = read_model(Bytes::copy_from_slice(model), Some(folder.path()));
}
