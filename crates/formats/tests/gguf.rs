//! GGUF: golden files of the `gguf` package, round trips, hostile files, and blocks of every type.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use galatea_formats::blocks::{BlockMatrix, CodeMeaning};
use galatea_formats::checkpoint::{CheckpointError, CheckpointErrorKind};
use galatea_formats::gguf::{
    GgmlType, GgufArray, GgufFile, GgufValue, GgufValueType, GgufWriter, TensorData, open, parse,
};
use galatea_formats::safetensors;
use galatea_graph::blocks::{BlockWeights, SuperScales};
use galatea_tensor::{DataType, Tensor};
use proptest::prelude::*;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/gguf").join(name)
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|float| float.to_bits()).collect()
}

/// The numbers of a row by way of its codes.
fn by_codes(matrix: &BlockMatrix, row: usize) -> Vec<f32> {
    let format = matrix.format();
    let (mut codes, mut scales) = (vec![0; matrix.columns()], vec![0.0; matrix.blocks()]);
    let offsets = if format.meaning() == CodeMeaning::Offset { matrix.blocks() } else { 0 };
    let mut offsets = vec![0.0; offsets];
    matrix.unpack_row(row, &mut codes, &mut scales, &mut offsets).unwrap();
    assert!(codes.iter().all(|&code| u32::from(code) >> format.bits() == 0));
    let number = |(at, &code): (usize, &u8)| {
        let (block, code) = (at / format.block(), f32::from(code));
        match format.meaning() {
            CodeMeaning::Zero(zero) => scales[block] * (code - zero),
            CodeMeaning::Offset => scales[block] * code + offsets[block],
            CodeMeaning::Table(table) => scales[block] * table[usize::from(codes[at])],
            CodeMeaning::Float(dtype) => unreachable!("codes of {dtype}"),
        }
    };
    codes.iter().enumerate().map(number).collect()
}

/// Scales and offsets are multiples, from -128 to 127, of those of their superblock.
fn check_super_scales(matrix: &BlockMatrix, row: usize) {
    let superblock = matrix.superblock().unwrap();
    let (mut codes, mut scales) = (vec![0; matrix.columns()], vec![0.0; matrix.blocks()]);
    let mut offsets = vec![0.0; matrix.format().offsets(matrix.columns())];
    matrix.unpack_row(row, &mut codes, &mut scales, &mut offsets).unwrap();
    let mut whole = vec![0.0; matrix.columns() / superblock];
    let mut whole_offsets = whole.clone();
    let to = SuperScales { scales: &mut whole, offsets: &mut whole_offsets };
    matrix.super_scales(row, to).unwrap();
    let per = superblock / matrix.format().block();
    for (all, wholes) in [(&scales, &whole), (&offsets, &whole_offsets)] {
        for (at, &value) in all.iter().enumerate() {
            let unit = wholes[at / per];
            let times = if unit == 0.0 { 0.0 } else { (value / unit).round_ties_even() };
            assert!((-128.0..128.0).contains(&times) && times * unit == value, "{value} of {unit}");
        }
    }
}

#[test]
fn blocks_of_every_type_are_the_floats_that_ggml_computes() {
    let all = safetensors::open(&golden("blocks.safetensors")).unwrap();
    assert_eq!(all.metadata().get("gguf").unwrap(), "0.19.0");
    let (mut types, mut nested) = (0, 0);
    for kind in GgmlType::all().filter(|kind| kind.code_format().is_some()) {
        let blocks = all.tensor(&format!("{kind}.blocks")).unwrap();
        let floats = all.tensor(&format!("{kind}.floats")).unwrap();
        assert_eq!(blocks.shape()[1], kind.block_bytes(), "{kind}");
        assert_eq!(floats.shape()[1], kind.block(), "{kind}");
        let data = Bytes::copy_from_slice(blocks.as_bytes().unwrap());
        let mut writer = GgufWriter::new();
        writer.tensor("x", kind, floats.shape(), TensorData::Bytes(data)).unwrap();
        let file = parse(written(writer)).unwrap();
        let entry = file.tensor("x").unwrap();
        let matrix = entry.blocks().unwrap();
        let expected = floats.as_slice::<f32>().unwrap();
        assert_eq!(
            bits(matrix.dequantize().unwrap().as_slice().unwrap()),
            bits(expected),
            "{kind}"
        );
        for (row, expected) in expected.chunks(kind.block()).enumerate() {
            assert_eq!(bits(&by_codes(&matrix, row)), bits(expected), "{kind} by codes");
            if matrix.superblock().is_some() {
                check_super_scales(&matrix, row);
                nested += 1;
            }
            let mut out = vec![0.0; kind.block()];
            entry.dequantize_row(row, &mut out).unwrap();
            assert_eq!(bits(&out), bits(expected), "{kind} by entry");
        }
        types += 1;
    }
    assert_eq!((types, all.tensors().len()), (25, 50));
    assert!(nested >= 6, "{nested}");
}

#[test]
fn a_file_of_the_package_is_read_whole() {
    let file = open(&golden("every_value.gguf")).unwrap();
    let metadata = file.metadata();
    assert_eq!(file.version(), 3);
    assert_eq!(metadata.get::<&str>("general.architecture").unwrap(), "llama");
    for (bits, most) in [(8, 255_u64), (16, 65_535), (32, u32::MAX.into()), (64, u64::MAX)] {
        assert_eq!(metadata.get::<u64>(&format!("test.uint{bits}")).unwrap(), most);
        let least = metadata.get::<i64>(&format!("test.int{bits}")).unwrap();
        assert_eq!(least, i64::MIN >> (64 - bits));
    }
    assert_eq!(metadata.get::<f32>("test.float32").unwrap(), 0.1);
    assert_eq!(metadata.get::<f64>("test.float64").unwrap(), 0.1);
    assert!(metadata.get::<bool>("test.bool").unwrap());
    assert_eq!(metadata.get::<&str>("test.string").unwrap(), "Zürich");
    assert_eq!(metadata.get::<Vec<&str>>("test.strings").unwrap(), ["a", "", "日本"]);
    assert_eq!(metadata.get::<Vec<i32>>("test.ints").unwrap(), [1, -2, 3]);
    assert_eq!(metadata.get::<Vec<f32>>("test.floats").unwrap(), [0.5, -1.5]);
    assert_eq!(metadata.get::<Vec<bool>>("test.bools").unwrap(), [true, false]);

    let numbers = file.tensor("plain.f32").unwrap();
    assert_eq!((numbers.dims(), numbers.shape()), (&[64, 3][..], &[3, 64][..]));
    let exact = numbers.tensor().unwrap();
    assert!(exact.is_mapped());
    let ints = file.tensor("plain.i64").unwrap().tensor().unwrap();
    assert_eq!(ints.as_slice::<i64>().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(ints.shape(), [1, 2, 3]);
    for (name, error) in
        [("plain.f16", 1e-3), ("coded.bf16", 8e-3), ("coded.q8_0", 1e-2), ("coded.q4_0", 0.2)]
    {
        let entry = file.tensor(name).unwrap();
        let mut out = vec![0.0; 64];
        for (row, exact) in exact.as_slice::<f32>().unwrap().chunks(64).enumerate() {
            entry.dequantize_row(row, &mut out).unwrap();
            let most = exact.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            for (found, exact) in out.iter().zip(exact) {
                assert!((found - exact).abs() <= error * most, "{name}: {found}, {exact}");
            }
        }
        assert!(entry.dequantize_row(3, &mut out).is_err());
        assert!(entry.dequantize_row(0, &mut out[1..]).is_err());
    }
    let raw = file.tensor("coded.q4_0").unwrap().raw().unwrap();
    assert_eq!((raw.dtype(), raw.shape()), (DataType::Uint8, &[3, 36][..]));
    assert!(raw.is_mapped());
}

#[test]
fn parts_are_one_checkpoint_whichever_is_named() {
    for number in 1..=3 {
        let file = open(&golden(&format!("parts-0000{number}-of-00003.gguf"))).unwrap();
        assert_eq!(file.tensors().len(), 5);
        assert_eq!(file.files().len(), 3);
        assert_eq!(file.metadata().get::<u32>("llama.block_count").unwrap(), 5);
        for index in 0..5_u8 {
            let entry = file.tensor(&format!("blk.{index}.weight")).unwrap();
            assert_eq!(entry.tensor().unwrap().as_slice::<f32>().unwrap(), [f32::from(index); 8]);
        }
    }
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let part = |number: usize| format!("parts-0000{number}-of-00003.gguf");
    let put = |from: usize, to: &str| {
        std::fs::copy(golden(&part(from)), folder.path().join(to)).unwrap();
    };
    let refusal = |name: &str| open(&folder.path().join(name)).unwrap_err().to_string();
    put(1, &part(1));
    put(2, &part(2));
    assert!(refusal(&part(1)).contains(&part(3)), "a missing part is named");
    put(2, &part(3));
    assert!(refusal(&part(1)).contains("this is part 1"));
    put(1, "renamed.gguf");
    assert!(refusal("renamed.gguf").contains("-of-00003.gguf"));
    let error = parse(std::fs::read(golden(&part(1))).unwrap().into()).unwrap_err();
    assert_eq!(error.kind(), CheckpointErrorKind::Unsupported);
}

fn written(writer: GgufWriter<'_>) -> Bytes {
    let mut bytes = Vec::new();
    writer.write(&mut bytes).unwrap();
    bytes.into()
}

#[test]
fn typed_getters_name_key_and_types() {
    let mut writer = GgufWriter::new();
    writer.set("a", "text").unwrap().set("b", -1_i32).unwrap();
    writer.set("c", &[1_u32, 2][..]).unwrap();
    let file = parse(written(writer)).unwrap();
    let metadata = file.metadata();
    let says = |error: CheckpointError, kind: CheckpointErrorKind, parts: &[&str]| {
        assert_eq!(error.kind(), kind);
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let wrong = CheckpointErrorKind::WrongType;
    says(metadata.get::<u32>("a").unwrap_err(), wrong, &["'a'", "an integer", "type string"]);
    says(metadata.get::<u32>("b").unwrap_err(), wrong, &["'b'", "0 to 2^32", "type int32"]);
    says(metadata.get::<f32>("c").unwrap_err(), wrong, &["'c'", "array of 2 uint32"]);
    says(metadata.get::<Vec<&str>>("c").unwrap_err(), wrong, &["array of strings"]);
    let missing = CheckpointErrorKind::Missing;
    says(metadata.get::<bool>("d").unwrap_err(), missing, &["'d'", "missing", "a bool"]);
    assert_eq!(metadata.find::<bool>("d").unwrap(), None);
    assert_eq!(metadata.get::<i64>("b").unwrap(), -1);
    says(file.tensor("t").unwrap_err(), missing, &["tensor 't'"]);
}

/// A file of these parts: version, tensors, metadata, and what follows.
fn file(version: u32, tensors: u64, entries: u64, rest: &[&[u8]]) -> Bytes {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(tensors.to_le_bytes());
    bytes.extend(entries.to_le_bytes());
    rest.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.into()
}

fn text(value: &str) -> Vec<u8> {
    let len = u64::try_from(value.len()).unwrap();
    [&len.to_le_bytes()[..], value.as_bytes()].concat()
}

fn says(bytes: Bytes, parts: &[&str]) {
    let text = parse(bytes).unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "'{text}' lacks '{part}'");
    }
}

#[test]
fn other_versions_and_byte_orders_are_refused_clearly() {
    says(Bytes::new(), &["byte 0", "4 bytes are expected"]);
    says(Bytes::from_static(b"GGML\x03\0\0\0"), &["starts with GGML", "expected 'GGUF'"]);
    says(file(1, 0, 0, &[]), &["version 1"]);
    says(file(4, 0, 0, &[]), &["version 4", "supported are 2 and 3"]);
    says(file(3_u32.swap_bytes(), 0, 0, &[]), &["version 3", "big end"]);
    assert_eq!(parse(file(2, 0, 0, &[])).unwrap().version(), 2);
}

#[test]
fn hostile_metadata_is_refused_by_key_and_byte() {
    let (eight, nine) = (8_u32.to_le_bytes(), 9_u32.to_le_bytes());
    let most = u64::MAX.to_le_bytes();
    let key = text("key");
    says(file(3, 0, u64::MAX, &[]), &["18446744073709551615 metadata entries"]);
    says(file(3, u64::MAX, 0, &[]), &["18446744073709551615 tensors"]);
    says(file(3, 0, 1, &[&most, &[0; 20]]), &["metadata entry 0", "18446744073709551615 bytes"]);
    says(file(3, 0, 1, &[&text(""), &[0; 20]]), &["the key has 0 bytes"]);
    says(file(3, 0, 1, &[&text("\u{7f}")[..8], &[0xFF; 20]]), &["not valid UTF-8"]);
    says(file(3, 0, 1, &[&key, &eight, &most]), &["metadata 'key'", "byte 39"]);
    says(file(3, 0, 1, &[&key, &99_u32.to_le_bytes()]), &["'key'", "no type 99"]);
    says(file(3, 0, 1, &[&key, &7_u32.to_le_bytes(), &[2]]), &["'key'", "neither 0 nor 1"]);
    says(file(3, 0, 1, &[&key, &nine, &6_u32.to_le_bytes(), &most]), &["'key'", "values"]);
    let nested: Vec<u8> =
        (0..5).flat_map(|_| [&9_u32.to_le_bytes()[..], &1_u64.to_le_bytes()].concat()).collect();
    says(file(3, 0, 1, &[&key, &nine, &nested, &[0; 99]]), &["'key'", "more than 4 deep"]);
    let one = [&key[..], &0_u32.to_le_bytes(), &[1]].concat();
    says(file(3, 0, 2, &[&one, &one]), &["metadata 'key'", "given twice"]);
    let aligned = |value: u32| {
        [&text("general.alignment")[..], &4_u32.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    for value in [0, 3, u32::MAX, 1 << 21] {
        says(file(3, 0, 1, &[&aligned(value)]), &["general.alignment", &value.to_string()]);
    }
}

#[test]
fn hostile_directories_are_refused_by_tensor() {
    let entry = |name: &str, dims: &[u64], kind: u32, offset: u64| {
        let axes = u32::try_from(dims.len()).unwrap().to_le_bytes();
        let dims: Vec<u8> = dims.iter().flat_map(|len| len.to_le_bytes()).collect();
        [&text(name)[..], &axes, &dims, &kind.to_le_bytes(), &offset.to_le_bytes()].concat()
    };
    let one = |dims: &[u64], kind: u32, offset: u64| {
        file(3, 1, 0, &[&entry("x", dims, kind, offset), &[0; 200]])
    };
    says(one(&[1, 1, 1, 1, 1], 0, 0), &["tensor 'x'", "5 axes, at most 4"]);
    says(one(&[1 << 40, 1 << 40], 0, 0), &["tensor 'x'", "more elements"]);
    says(one(&[1 << 62, 1], 0, 0), &["tensor 'x'", "larger than memory"]);
    says(one(&[8], 4, 0), &["tensor 'x'", "no known type 4"]);
    says(one(&[33, 2], 2, 0), &["tensor 'x'", "[33, 2]", "whole blocks of Q4_0", "32"]);
    says(one(&[8], 0, 8), &["tensor 'x'", "no multiple of the alignment 32"]);
    says(one(&[8], 0, 1 << 20), &["tensor 'x'", "leave the file"]);
    says(one(&[8], 0, u64::MAX - 31), &["tensor 'x'", "leave the file"]);
    let two = [entry("x", &[16], 0, 0), entry("y", &[16], 0, 32)].concat();
    says(file(3, 2, 0, &[&two, &[0; 200]]), &["tensor 'y'", "overlap", "tensor 'x'"]);
    let twice = [entry("x", &[8], 0, 0), entry("x", &[8], 0, 32)].concat();
    says(file(3, 2, 0, &[&twice, &[0; 200]]), &["tensor 'x'", "given twice"]);
    let known = parse(one(&[256], 41, 0)).unwrap();
    let error = known.tensor("x").unwrap().blocks().unwrap_err();
    assert_eq!(error.kind(), CheckpointErrorKind::Unsupported);
    assert!(error.to_string().contains("Q1_0"), "{error}");
    assert!(known.tensor("x").unwrap().tensor().is_err());
    let plain = parse(one(&[8], 24, 0)).unwrap();
    let text = plain.tensor("x").unwrap().blocks().unwrap_err().to_string();
    assert!(text.contains("I8") && text.contains("single elements"), "{text}");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut writer = GgufWriter::new();
    let data = |len: usize| TensorData::Bytes(vec![0; len].into());
    assert!(writer.set("general.alignment", 32_u32).is_err());
    assert!(writer.set("k", 1_u8).is_ok() && writer.set("k", 1_u8).is_err());
    assert!(writer.align(48).is_err() && writer.align(64).is_ok() && writer.align(64).is_err());
    let text = writer.tensor("x", GgmlType::Q4_0, &[2, 32], data(35)).unwrap_err().to_string();
    assert!(text.contains("tensor 'x'") && text.contains("takes 36 bytes, found 35"), "{text}");
    assert!(writer.tensor("x", GgmlType::Q4_0, &[2, 31], data(36)).is_err());
    assert!(writer.tensor("x", GgmlType::Q4_0, &[2, 32], data(36)).is_ok());
    assert!(writer.tensor("x", GgmlType::F32, &[1], data(4)).is_err());
    let made = TensorData::Made(Box::new(|to| to.write_all(&[1, 2, 3])));
    writer.tensor("made", GgmlType::F32, &[1], made).unwrap();
    let text = writer.write(Vec::new()).unwrap_err().to_string();
    assert!(text.contains("tensor 'made': 3 bytes were made, expected 4"), "{text}");
}

fn value() -> impl Strategy<Value = GgufValue> {
    let array = prop_oneof![
        prop::collection::vec(any::<i64>(), 0..5).prop_map(|all| GgufValue::from(&all[..])),
        prop::collection::vec(any::<bool>(), 0..5).prop_map(|all| GgufValue::from(&all[..])),
        prop::collection::vec(".{0,6}", 0..5).prop_map(|all| {
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            GgufValue::from(&all[..])
        }),
    ];
    let nested = prop::collection::vec(array.clone(), 0..3).prop_map(|all| {
        let arrays: Vec<GgufArray> = all
            .into_iter()
            .filter_map(|value| match value {
                GgufValue::Array(array) => Some(array),
                _ => None,
            })
            .collect();
        GgufValue::from(&arrays[..])
    });
    prop_oneof![
        any::<u8>().prop_map(GgufValue::from),
        any::<i16>().prop_map(GgufValue::from),
        any::<u64>().prop_map(GgufValue::from),
        (-1e30_f32..1e30).prop_map(GgufValue::from),
        any::<bool>().prop_map(GgufValue::from),
        ".{0,9}".prop_map(|text| GgufValue::from(text.as_str())),
        array,
        nested,
    ]
}

fn same(file: &GgufFile, entries: &[(String, GgufValue)]) {
    let found = file.metadata().entries();
    let own: Vec<_> = found.iter().filter(|entry| entry.0 != "general.alignment").collect();
    assert_eq!(own, entries.iter().collect::<Vec<_>>());
    for (_, value) in own {
        if let GgufValue::Array(array) = value {
            assert_eq!(array.iter().count(), array.len());
            let strings = if array.value_type() == GgufValueType::String { array.len() } else { 0 };
            assert_eq!(array.strings().count(), strings);
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        entries in prop::collection::btree_map("[a-z.]{1,12}", value(), 0..6),
        tensors in prop::collection::btree_map(
            "[a-z.]{1,12}",
            (0_usize..34, prop::collection::vec(0_usize..4, 1..4), any::<u8>()),
            0..6,
        ),
        alignment in 0_u32..8,
    ) {
        let entries: Vec<(String, GgufValue)> = entries.into_iter().collect();
        let mut writer = GgufWriter::new();
        writer.align(1 << alignment).unwrap();
        for (key, value) in &entries {
            writer.set(key, value.clone()).unwrap();
        }
        let mut expected = Vec::new();
        for (name, (kind, mut shape, fill)) in tensors {
            let kind = GgmlType::all().nth(kind).unwrap();
            *shape.last_mut().unwrap() *= kind.block();
            let len = shape.iter().product::<usize>() / kind.block() * kind.block_bytes();
            let data = Bytes::from(vec![fill; len]);
            let copy = data.clone();
            let data = match fill % 2 {
                0 => TensorData::Bytes(data),
                _ => TensorData::Made(Box::new(move |to| to.write_all(&data))),
            };
            writer.tensor(&name, kind, &shape, data).unwrap();
            expected.push((name, kind, shape, copy));
        }
        let file = parse(written(writer)).unwrap();
        same(&file, &entries);
        prop_assert_eq!(file.tensors().len(), expected.len());
        for (name, kind, shape, data) in expected {
            let entry = file.tensor(&name).unwrap();
            prop_assert_eq!((entry.ggml_type(), entry.shape()), (kind, &shape[..]));
            prop_assert_eq!(entry.bytes(), &data[..]);
            prop_assert_eq!(entry.window().start % (1 << alignment), 0);
            if let Some(dtype) = kind.data_type() {
                prop_assert_eq!(entry.tensor().unwrap().dtype(), dtype);
            }
            if kind.code_format().is_some() {
                let whole = entry.blocks().unwrap().dequantize().unwrap();
                prop_assert_eq!(whole.shape(), &shape[..]);
            }
        }
    }

    #[test]
    fn damage_is_an_error_or_a_checkpoint(at in 0_usize..1200, value in any::<u8>(), cut in 0_usize..2900) {
        let mut bytes = std::fs::read(golden("every_value.gguf")).unwrap();
        bytes[at] = value;
        for bytes in [bytes.clone(), bytes[..cut.min(bytes.len())].to_vec()] {
            let Ok(file) = parse(bytes.into()) else { continue };
            for entry in file.tensors() {
                let mut out = vec![0.0; entry.shape().last().copied().unwrap_or(1).min(1 << 16)];
                let _ = (entry.tensor().is_ok(), entry.raw().is_ok());
                let _ = entry.dequantize_row(0, &mut out);
            }
        }
    }
}

#[test]
fn a_tensor_goes_through_a_file_on_disk_without_copies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gguf");
    let tensor = Tensor::from_vec(&[2, 3], vec![1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let mut writer = GgufWriter::new();
    writer.plain("x", &tensor).unwrap();
    writer.write(std::fs::File::create(&path).unwrap()).unwrap();
    let found = open(&path).unwrap();
    let read = found.tensor("x").unwrap().tensor().unwrap();
    assert!(read.is_mapped());
    assert_eq!(read, tensor);
    assert!(open(&folder.path().join("gone.gguf")).unwrap_err().to_string().contains("gone.gguf"));
    assert!(open(folder.path()).unwrap_err().to_string().contains("not a plain file"));
}
