//! Any bytes as a GGUF file; what can be read is written and read again as the same metadata and
//! tensors, and rows of tensors are computed.

use bytes::Bytes;
use galatea_formats::gguf::{GgufValue, GgufWriter, TensorData, parse};

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    let Ok(file) = parse(Bytes::copy_from_slice(data)) else { return };
    let mut writer = GgufWriter::new();
    for (key, value) in file.metadata().entries() {
        if let GgufValue::Array(array) = value {
            assert_eq!(array.iter().count(), array.len());
        }
        if key != "general.alignment" {
            writer.set(key, value.clone()).expect("keys differ");
        }
    }
    for entry in file.tensors() {
        let columns = entry.shape().last().copied().unwrap_or(1);
        if columns < 1 << 16 {
            let _ = entry.dequantize_row(0, &mut vec![0.0; columns]);
        }
        let bytes = TensorData::Bytes(Bytes::copy_from_slice(entry.bytes()));
        writer
            .tensor(entry.name(), entry.ggml_type(), entry.shape(), bytes)
            .expect("what was read can be written");
    }
    let mut bytes = Vec::new();
    writer.write(&mut bytes).expect("memory takes all bytes");
    let again = parse(bytes.into()).expect("what was written can be read");
    assert_eq!(file.tensors().len(), again.tensors().len());
    for (one, other) in file.tensors().iter().zip(again.tensors()) {
        assert_eq!((one.name(), one.shape()), (other.name(), other.shape()));
        assert_eq!(one.bytes(), other.bytes());
    }
}
