//! Any bytes as a safetensors file or an index of shards; what can be read is written and read again
//! as the same tensors, and as layers of codes where it has some.

use bytes::Bytes;
use galatea_formats::mlx::MlxQuantization;
use galatea_formats::safetensors::{parse, parse_index, write};

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    let _ = parse_index(data);
    let Ok(all) = parse(Bytes::copy_from_slice(data)) else { return };
    let tensors = || all.tensors().iter().map(|(name, tensor)| (name.as_str(), tensor));
    let mut bytes = Vec::new();
    write(tensors(), all.metadata(), &mut bytes).expect("what was read can be written");
    let again = parse(bytes.into()).expect("what was written can be read");
    assert_eq!(all.metadata(), again.metadata());
    for ((name, one), (other_name, other)) in tensors().zip(again.tensors()) {
        assert_eq!((name, one.dtype(), one.shape()), (&**other_name, other.dtype(), other.shape()));
        assert_eq!(one.unaligned_bytes().ok(), other.unaligned_bytes().ok());
    }
    let config = r#"{"quantization": {"group_size": 32, "bits": 3}}"#;
    let config = serde_json::from_str(config).expect("the text above");
    let quantization =
        MlxQuantization::from_config(&config).expect("known bits").expect("an entry");
    for (name, _) in tensors() {
        let Some(layer) = name.strip_suffix(".weight") else { continue };
        let Ok(Some(matrix)) = quantization.matrix(&all, layer) else { continue };
        if matrix.columns() < 1 << 16 {
            let _ = matrix.dequantize_row(0, &mut vec![0.0; matrix.columns()]);
        }
    }
}
