//! Checkpoints of safetensors: round trips, hostile headers and indices, and recorded checkpoints.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use galatea_formats::checkpoint::{CheckpointError, CheckpointErrorKind};
use galatea_formats::safetensors::{open, parse, parse_index, write};
use galatea_tensor::{DataType, OrderedMap, Tensor};
use proptest::prelude::*;

/// A file of this header text and as many bytes of data.
fn file(header: &str, data: usize) -> Bytes {
    let mut bytes = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend((0..data).map(|at| u8::try_from(at % 251).unwrap()));
    bytes.into()
}

fn refusal(header: &str, data: usize) -> CheckpointError {
    parse(file(header, data)).unwrap_err()
}

fn says(header: &str, data: usize, parts: &[&str]) {
    let text = refusal(header, data).to_string();
    for part in parts {
        assert!(text.contains(part), "'{text}' lacks '{part}'");
    }
}

fn written(tensors: &[(&str, Tensor)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(tensors.iter().map(|(name, tensor)| (*name, tensor)), &OrderedMap::new(), &mut bytes)
        .unwrap();
    bytes
}

#[test]
fn a_header_as_the_reference_library_writes_it_is_read() {
    let header = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"b":{"dtype":"I64","shape":[],"data_offsets":[12,20]},"none":{"dtype":"F32","shape":[0,4],"data_offsets":[20,20]}}  "#;
    let all = parse(file(header, 20)).unwrap();
    assert_eq!(all.metadata().get("format").unwrap(), "pt");
    assert_eq!(all.tensors().len(), 3);
    let a = all.tensor("a").unwrap();
    assert_eq!((a.dtype(), a.shape()), (DataType::Bf16, &[2, 3][..]));
    let expected: Vec<u8> = (0..12).collect();
    assert_eq!(a.unaligned_bytes().unwrap(), expected);
    let b = all.tensor("b").unwrap().to_vec::<i64>().unwrap();
    assert_eq!(b, [i64::from_le_bytes([12, 13, 14, 15, 16, 17, 18, 19])]);
    assert_eq!(all.tensor("none").unwrap().elements(), 0);
    assert_eq!(all.size_bytes(), 20);
}

#[test]
fn unaligned_tensors_have_the_same_elements() {
    let header = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}"#;
    let all = parse(file(header, 9)).unwrap();
    let expected = [[1, 2, 3, 4], [5, 6, 7, 8]].map(f32::from_le_bytes);
    assert_eq!(all.tensor("b").unwrap().as_slice::<f32>().unwrap(), expected);
}

#[test]
fn wrong_places_are_refused_by_tensor_and_number() {
    let one = |offsets: &str| {
        format!(r#"{{"x":{{"dtype":"F32","shape":[2],"data_offsets":{offsets}}}}}"#)
    };
    says(&one("[0,8]"), 7, &["tensor 'x'", "0 to 8", "7 bytes"]);
    says(&one("[8,0]"), 8, &["tensor 'x'", "8 to 0"]);
    says(&one("[0,4]"), 4, &["tensor 'x'", "takes 8 bytes", "are 4"]);
    says(&one("[0,8]"), 9, &["the last tensor ends at byte"]);
    says(&one("[1,9]"), 9, &["tensor 'x'", "starts 1 bytes behind"]);
    says(&one("[0,18446744073709551615]"), 9, &["tensor 'x'", "18446744073709551615"]);
    says(&one("[-1,8]"), 9, &["tensor 'x'", "damaged"]);
    let two = r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
    says(two, 12, &["tensor 'y'", "overlaps tensor 'x'"]);
    let huge = r#"{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#;
    says(huge, 8, &["tensor 'x'", "more elements"]);
}

#[test]
fn names_given_twice_are_refused() {
    let entry = r#"{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#;
    says(&format!(r#"{{"x":{entry},"x":{entry}}}"#), 1, &["tensor 'x' is given twice"]);
    says(r#"{"__metadata__":{},"__metadata__":{}}"#, 0, &["'__metadata__' is given twice"]);
}

#[test]
fn types_without_a_tensor_form_are_refused_by_name() {
    for dtype in ["F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "C64", "what"] {
        let header = format!(r#"{{"x":{{"dtype":"{dtype}","shape":[1],"data_offsets":[0,1]}}}}"#);
        let error = refusal(&header, 1);
        assert_eq!(error.kind(), CheckpointErrorKind::Unsupported);
        assert_eq!(error.place(), "tensor 'x'");
        assert!(error.to_string().contains(&format!("'{dtype}'")));
    }
}

#[test]
fn damaged_headers_are_errors() {
    assert!(parse(Bytes::new()).unwrap_err().to_string().contains("0 bytes"));
    let mut long = u64::MAX.to_le_bytes().to_vec();
    assert!(parse(long.clone().into()).unwrap_err().to_string().contains("at most 100000000"));
    long[..8].copy_from_slice(&100_u64.to_le_bytes());
    assert!(parse(long.into()).unwrap_err().to_string().contains("claims 100 bytes"));
    says("[]", 0, &["an object of tensors"]);
    says(r#"{"x":{"dtype":"F32"}}"#, 0, &["tensor 'x'", "shape"]);
    says(&"[".repeat(100_000), 0, &["damaged"]);
}

#[test]
fn what_cannot_be_written_is_refused_by_name() {
    let strings = Tensor::vector::<galatea_tensor::ByteString>(vec!["a".into()]);
    let numbers = Tensor::vector(vec![1_u8]);
    for (tensors, part) in [
        (vec![("s", &strings)], "tensor 's': safetensors have no type BYTES"),
        (vec![("n", &numbers), ("n", &numbers)], "tensor 'n': a second entry"),
    ] {
        let error = write(tensors, &OrderedMap::new(), Vec::new()).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// A folder with two shards and this index.
fn sharded(index: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tensor = |value: f32| Tensor::vector(vec![value; 3]);
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    put("one.safetensors", &written(&[("a", tensor(1.0)), ("b", tensor(2.0))]));
    put("two.safetensors", &written(&[("c", tensor(3.0))]));
    put("model.safetensors.index.json", format!("{{\"weight_map\":{{{index}}}}}").as_bytes());
    folder
}

const INDEX: &str = r#""a":"one.safetensors","b":"one.safetensors","c":"two.safetensors""#;

#[test]
fn shards_are_one_checkpoint_without_copies() {
    let folder = sharded(INDEX);
    let all = open(folder.path()).unwrap();
    assert_eq!(all.tensors().keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(all.files().len(), 2);
    assert_eq!(all.tensor("c").unwrap().as_slice::<f32>().unwrap(), [3.0; 3]);
    assert!(all.tensors().values().all(Tensor::is_mapped));
    let error = all.tensor("d").unwrap_err();
    assert_eq!(error.kind(), CheckpointErrorKind::Missing);
    assert!(error.to_string().contains("tensor 'd'"));
}

#[test]
fn an_index_that_disagrees_with_its_shards_is_refused() {
    let says = |index: &str, parts: &[&str]| {
        let folder = sharded(index);
        let text = open(folder.path()).unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "'{text}' lacks '{part}'");
        }
    };
    let lacking = INDEX.replace(r#","b":"one.safetensors""#, "");
    says(&lacking, &["one.safetensors", "tensor 'b'", "does not name"]);
    says(&format!(r#"{INDEX},"d":"two.safetensors""#), &["two.safetensors", "tensor 'd'"]);
    says(&format!(r#"{INDEX},"d":"three.safetensors""#), &["three.safetensors", "tensor 'd'"]);
    says(&format!(r#"{INDEX},"a":"two.safetensors""#), &["tensor 'a' is given twice"]);
    for outside in ["../one.safetensors", "/etc/passwd", "x/one.safetensors", "", ".", "a\\\\b"] {
        let index = format!(r#"{INDEX},"d":"{outside}""#);
        says(&index, &["tensor 'd'", "beside the index"]);
    }
}

#[test]
fn a_folder_without_a_checkpoint_is_an_error_that_says_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = open(folder.path()).unwrap_err().to_string();
    assert!(text.contains("model.safetensors.index.json"), "{text}");
    let one = written(&[("a", Tensor::vector(vec![1_u8]))]);
    std::fs::write(folder.path().join("any.safetensors"), &one).unwrap();
    assert_eq!(open(folder.path()).unwrap().tensors().len(), 1);
    std::fs::write(folder.path().join("other.safetensors"), &one).unwrap();
    assert!(open(folder.path()).unwrap_err().to_string().contains("2 other files"));
    assert!(open(&folder.path().join("gone.safetensors")).is_err());
}

const TYPES: [DataType; 13] = [
    DataType::Bool,
    DataType::Uint8,
    DataType::Int8,
    DataType::Uint16,
    DataType::Int16,
    DataType::Uint32,
    DataType::Int32,
    DataType::Uint64,
    DataType::Int64,
    DataType::Fp16,
    DataType::Bf16,
    DataType::Fp32,
    DataType::Fp64,
];

proptest! {
    #[test]
    fn what_is_written_is_read(
        all in prop::collection::btree_map(
            "[a-zé.\"\\\\0-9]{0,12}",
            (prop::sample::select(&TYPES[..]), prop::collection::vec(0_usize..5, 0..4), any::<u8>()),
            0..8,
        ),
    ) {
        let tensors: Vec<(String, Tensor)> = all
            .into_iter()
            .map(|(name, (dtype, shape, first))| {
                let len = shape.iter().product::<usize>() * dtype.size_bytes().unwrap();
                let limit = if dtype == DataType::Bool { 2 } else { 251 };
                let data: Vec<u8> =
                    (0..len).map(|at| u8::try_from((at + usize::from(first)) % limit).unwrap()).collect();
                (name, Tensor::from_bytes(dtype, &shape, &data).unwrap())
            })
            .collect();
        let mut bytes = Vec::new();
        let metadata = OrderedMap::from([("k".to_owned(), "v".to_owned())]);
        write(tensors.iter().map(|(n, t)| (n.as_str(), t)), &metadata, &mut bytes).unwrap();
        let read = parse(bytes.into()).unwrap();
        prop_assert_eq!(read.metadata(), &metadata);
        prop_assert_eq!(read.tensors().len(), tensors.len());
        for (name, tensor) in &tensors {
            let found = read.tensor(name).unwrap();
            prop_assert_eq!((found.dtype(), found.shape()), (tensor.dtype(), tensor.shape()));
            prop_assert_eq!(found.unaligned_bytes().unwrap(), tensor.as_bytes().unwrap());
        }
    }

    #[test]
    fn damage_is_an_error_or_a_checkpoint(at in 0_usize..400, value in any::<u8>(), cut in 0_usize..400) {
        let mut bytes = written(&[
            ("a", Tensor::vector(vec![1_f32; 7])),
            ("b", Tensor::vector(vec![1_u8; 5])),
        ]);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        if let Ok(all) = parse(bytes.clone().into()) {
            for tensor in all.tensors().values() {
                prop_assert!(tensor.unaligned_bytes().is_ok());
            }
        }
        bytes.truncate(cut.min(bytes.len() - 1));
        prop_assert!(parse(bytes.clone().into()).is_err());
        let _ = parse_index(&bytes);
    }
}

/// The folder of recorded checkpoints.
fn recorded() -> Option<PathBuf> {
    let found = std::env::var_os("GALATEA_SHARED").map(|path| Path::new(&path).join("models"));
    if found.is_none() {
        eprintln!("skipped: GALATEA_SHARED does not name the folder of recorded models");
    }
    found
}

#[test]
fn recorded_checkpoints_open_without_copies() {
    let Some(models) = recorded() else { return };
    for (name, files, bytes) in [
        ("books-gpt2-5m", 1, 10_775_552),
        ("books-qwen2-13m", 2, 25_183_488),
        ("books-t5-7m", 2, 18_361_856),
    ] {
        let all = open(&models.join(name)).unwrap();
        assert_eq!(all.files().len(), files, "{name}");
        assert_eq!(all.size_bytes(), bytes, "{name}");
        for (tensor, value) in all.tensors() {
            assert!(value.is_mapped(), "{name}: {tensor}");
            assert_eq!(value.dtype(), DataType::Bf16);
        }
    }
}
