//! NumPy files: golden bytes written by NumPy 2.4, round trips and hostile headers.

use std::io::Cursor;

use galatea_formats::npy::{read_npy, read_npz_from, write_npy, write_npz_to};
use galatea_tensor::{ByteString, DataType, Tensor, bf16, f16, with_element};

/// The bytes that `numpy.save` writes for this header text and data.
fn npy(dict: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let padded = (10 + dict.len() + 1).next_multiple_of(64) - 10;
    bytes.extend_from_slice(&u16::try_from(padded).unwrap().to_le_bytes());
    bytes.extend_from_slice(dict.as_bytes());
    bytes.resize(10 + padded - 1, b' ');
    bytes.push(b'\n');
    bytes.extend_from_slice(data);
    bytes
}

fn written(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_npy(tensor, &mut bytes).unwrap();
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    read_npy(bytes).unwrap_err().to_string()
}

#[test]
fn a_written_file_is_byte_for_byte_the_one_numpy_writes() {
    // numpy.save(f, numpy.array([[1, 2, 3], [4, 5, 6]], 'float32'))
    let golden = npy(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        &[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat(),
    );
    let tensor = Tensor::from_vec(&[2, 3], vec![1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(written(&tensor), golden);
    assert_eq!(read_npy(&golden).unwrap(), tensor);
    // numpy.save(f, numpy.array(['a', 'é']))
    let golden = npy(
        "{'descr': '<U1', 'fortran_order': False, 'shape': (2,), }",
        &[b'a', 0, 0, 0, 0xE9, 0, 0, 0],
    );
    let tensor = Tensor::vector::<ByteString>(vec!["a".into(), "é".into()]);
    assert_eq!(written(&tensor), golden);
    assert_eq!(read_npy(&golden).unwrap(), tensor);
    // numpy.save(f, numpy.array([1.5, 2], ml_dtypes.bfloat16))
    let golden =
        npy("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }", &[0xC0, 0x3F, 0x00, 0x40]);
    let tensor = Tensor::vector(vec![bf16::from_f32(1.5), bf16::from_f32(2.0)]);
    assert_eq!(written(&tensor), golden);
    assert_eq!(read_npy(&golden).unwrap(), tensor);
}

#[test]
fn every_type_survives_an_archive() {
    let half = Tensor::vector(vec![f16::from_f32(0.5), f16::from_f32(-2.0)]);
    let mut arrays: Vec<(String, Tensor)> = vec![
        ("half".into(), half),
        ("bool".into(), Tensor::vector(vec![true, false, true])),
        ("scalar".into(), Tensor::scalar(-7_i64)),
        ("text".into(), Tensor::vector::<ByteString>(vec!["".into(), "日本".into()])),
        ("bytes".into(), Tensor::vector::<ByteString>(vec![vec![0, 255].into(), "x".into()])),
    ];
    for dtype in DataType::ALL {
        let zeros =
            with_element!(dtype, T => Tensor::from_vec::<T>(&[2, 1], vec![T::default(); 2]));
        arrays.push((format!("zeros/{dtype}"), zeros.unwrap()));
        arrays.push((format!("none/{dtype}"), Tensor::zeros(dtype, &[0, 3]).unwrap()));
    }
    let mut file = Cursor::new(Vec::new());
    write_npz_to(&mut file, arrays.iter().map(|(name, tensor)| (name.as_str(), tensor))).unwrap();
    file.set_position(0);
    assert_eq!(read_npz_from(file).unwrap(), arrays);
}

#[test]
fn other_byte_and_memory_orders_are_read() {
    let big = npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", &[1, 2, 0xFF, 0xFE]);
    assert_eq!(read_npy(&big).unwrap(), Tensor::vector(vec![0x0102_i16, -2]));
    let fortran =
        npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", &[1, 4, 2, 5, 3, 6]);
    let expected = Tensor::from_vec(&[2, 3], vec![1_u8, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(read_npy(&fortran).unwrap(), expected);
    let big =
        npy("{'descr': '>U2', 'fortran_order': False, 'shape': (), }", &[0, 0, 0, 65, 0, 0, 0, 0]);
    assert_eq!(read_npy(&big).unwrap(), Tensor::scalar(ByteString::from("A")));
}

#[test]
fn a_permuted_view_is_written_in_its_own_order() {
    let tensor = Tensor::from_vec(&[2, 3], vec![1_i32, 2, 3, 4, 5, 6]).unwrap();
    let turned = tensor.permute(&[1, 0]).unwrap();
    assert_eq!(read_npy(&written(&turned)).unwrap(), turned);
}

#[test]
fn types_without_a_tensor_form_say_what_to_do_instead() {
    let of = |descr: &str| {
        npy(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}"), &[0; 16])
    };
    assert!(refusal(&of("'|O'")).contains("astype(str)"));
    assert!(refusal(&of("'<c16'")).contains("array.real"));
    assert!(refusal(&of("'<M8[ns]'")).contains("astype('int64')"));
    assert!(refusal(&of("[('a', '<f4')]")).contains("structured"));
    assert!(refusal(&of("'<f16'")).contains("'<f16' is not supported"));
}

#[test]
fn hostile_headers_are_errors_that_take_no_memory() {
    let of = |descr: &str, shape: &str, data: &[u8]| {
        refusal(&npy(
            &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"),
            data,
        ))
    };
    assert!(of("<f4", "(9223372036854775807, 2)", &[]).contains("more elements"));
    assert!(of("<f4", "(4611686018427387904,)", &[]).contains("found 0"));
    assert!(of("<f4", "(99999999999999999999,)", &[]).contains("a length"));
    assert!(of("<f4", "(-1,)", &[]).contains("a length"));
    assert!(of("|S0", "(4611686018427387904,)", &[]).contains("no width"));
    assert!(of("<U4611686018427387905", "(3,)", &[]).contains("found 0"));
    assert!(of("<U1", "(1,)", &[0, 0, 0x11, 0]).contains("no character"));
    assert!(of("<f4", "(2,)", &[0; 7]).contains("takes 8 bytes, found 7"));
    assert!(refusal(b"PK\x03\x04").contains("magic"));
    assert!(refusal(b"\x93NUMPY\x09\x00").contains("version 9.0"));
    assert!(refusal(b"\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF").contains("longer than"));
    assert!(refusal(b"\x93NUMPY\x01\x00\x05").contains("ends inside"));
    assert!(refusal(&npy("{'descr': '<f4'}", &[])).contains("'fortran_order' is missing"));
    assert!(refusal(&npy("{'descr': ['<f4'", &[])).contains("structured"));
    assert!(refusal(&npy("(1, 2)", &[])).contains("byte 0: expected '{'"));
}

#[test]
fn damage_anywhere_is_an_error_or_another_array_never_a_panic() {
    let tensor = Tensor::from_vec(&[2, 2], vec![1_i16, 2, 3, 4]).unwrap();
    let mut file = Cursor::new(Vec::new());
    write_npz_to(&mut file, [("a", &tensor), ("b", &tensor)]).unwrap();
    let archive = file.into_inner();
    let array = written(&tensor);
    for bit in 0..array.len() * 8 {
        let mut bytes = array.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let _ = read_npy(&bytes);
    }
    for len in 0..array.len() {
        assert!(read_npy(&array[..len]).is_err());
    }
    for bit in 0..archive.len() * 8 {
        let mut bytes = archive.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let _ = read_npz_from(Cursor::new(bytes));
    }
    for len in 0..archive.len() {
        assert!(read_npz_from(Cursor::new(&archive[..len])).is_err());
    }
}
