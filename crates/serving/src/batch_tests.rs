use bytes::Bytes;

use super::*;
use crate::config::from_text;
use crate::payload::ExecutionContext;
use crate::request::{InferenceRequest, InputData, InputTensor};

struct Setup {
    config: Arc<ModelConfig>,
    requests: Vec<ActiveRequest>,
}

fn setup(config: &str) -> Setup {
    Setup {
        config: Arc::new(from_text(&format!("name: \"m\" {config}")).unwrap()),
        requests: Vec::new(),
    }
}

impl Setup {
    fn add(&mut self, batch_size: u64, inputs: Vec<InputTensor>, outputs: &[&str]) {
        let context = ExecutionContext::new("m", 1, Arc::clone(&self.config));
        let requested_outputs = outputs.iter().map(|&name| name.to_owned()).collect();
        let request = InferenceRequest { inputs, requested_outputs, ..InferenceRequest::default() };
        self.requests.push(ActiveRequest::new(request, batch_size, context, Box::new(|_| {})));
    }

    fn gathered(&self) -> NamedTensors {
        gather(&self.config, &self.requests).unwrap()
    }

    fn scattered(&self, outputs: NamedTensors) -> Vec<Vec<OutputTensor>> {
        scatter(&self.config, &self.requests, &outputs).into_iter().map(Result::unwrap).collect()
    }
}

fn ints(name: &str, shape: &[i64], values: &[i32]) -> InputTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let data = InputData::Raw(Bytes::from(bytes));
    InputTensor { name: name.to_owned(), datatype: DataType::Int32, shape: shape.to_vec(), data }
}

fn tensor(shape: &[usize], values: &[i32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

const INT: &str = "max_batch_size: 8 input { name: \"A\" data_type: TYPE_INT32 dims: 2 }";

#[test]
fn a_single_request_is_not_copied() {
    let mut setup = setup(INT);
    let wire = Bytes::from(vec![7; 32]);
    let start = wire.as_ptr().align_offset(4);
    let aligned = wire.slice(start..start + 16);
    let data = InputData::Raw(aligned.clone());
    setup.add(2, vec![InputTensor { data, ..ints("A", &[2, 2], &[]) }], &[]);
    let gathered = setup.gathered();
    assert_eq!(gathered[0].1.shape(), [2, 2]);
    assert_eq!(gathered[0].1.as_bytes().unwrap().as_ptr(), aligned.as_ptr());
}

#[test]
fn requests_are_joined_along_the_batch_and_given_their_rows_back() {
    let mut setup = setup(&format!("{INT} output [{{ name: \"X\" }}, {{ name: \"Y\" }}]"));
    setup.add(1, vec![ints("A", &[1, 2], &[1, 2])], &[]);
    let data = InputData::Tensor(tensor(&[2, 2], &[3, 4, 5, 6]));
    setup.add(2, vec![InputTensor { data, ..ints("A", &[2, 2], &[]) }], &["Y"]);
    assert_eq!(setup.gathered(), [("A".to_owned(), tensor(&[3, 2], &[1, 2, 3, 4, 5, 6]))]);
    let y = tensor(&[3, 1], &[10, 20, 30]);
    let x = tensor(&[3], &[7, 8, 9]);
    let shares = setup.scattered(vec![
        ("Y".to_owned(), y),
        ("X".to_owned(), x),
        ("Z".to_owned(), tensor(&[1], &[0])),
    ]);
    let named = |share: &[OutputTensor]| -> Vec<(String, Tensor)> {
        share.iter().map(|output| (output.name.clone(), output.tensor.clone())).collect()
    };
    assert_eq!(
        named(&shares[0]),
        [("X".to_owned(), tensor(&[1], &[7])), ("Y".to_owned(), tensor(&[1, 1], &[10]))]
    );
    assert_eq!(named(&shares[1]), [("Y".to_owned(), tensor(&[2, 1], &[20, 30]))]);
}

#[test]
fn a_shape_tensor_is_given_once_for_the_whole_batch() {
    let shapes = format!(
        "{INT} input {{ name: \"S\" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }}"
    );
    let mut setup = setup(&shapes);
    for start in [0, 2] {
        let values = ints("A", &[1, 2], &[start, start + 1]);
        setup.add(1, vec![values, ints("S", &[2], &[7, 9])], &[]);
    }
    let gathered = setup.gathered();
    assert_eq!(gathered[0].1.shape(), [2, 2]);
    assert_eq!(gathered[1].1.shape(), [2]);
    assert_eq!(gathered[1].1.to_vec::<i32>().unwrap(), [7, 9]);
}

#[test]
fn strings_are_joined() {
    let mut setup = setup("max_batch_size: 8 input { name: \"S\" data_type: TYPE_STRING dims: 1 }");
    for text in ["a", "bcd"] {
        let wire = [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
        let input = InputTensor {
            datatype: DataType::Bytes,
            data: InputData::Raw(wire.into()),
            ..ints("S", &[1, 1], &[])
        };
        setup.add(1, vec![input], &[]);
    }
    let strings = setup.gathered()[0].1.to_vec::<ByteString>().unwrap();
    assert_eq!(
        strings.iter().map(ByteString::as_str).collect::<Vec<_>>(),
        [Some("a"), Some("bcd")]
    );
}

#[test]
fn a_wrong_number_of_rows_is_an_error() {
    let mut setup = setup(&format!("{INT} output {{ name: \"X\" }}"));
    setup.add(2, vec![ints("A", &[2, 2], &[1, 2, 3, 4])], &[]);
    let results =
        scatter(&setup.config, &setup.requests, &vec![("X".to_owned(), tensor(&[3], &[1, 2, 3]))]);
    assert_eq!(
        results[0].as_ref().unwrap_err().message,
        "output 'X' of model 'm' has the shape [3], but the batch has 2 items"
    );
}

#[test]
fn reshapes_apply_both_ways() {
    let mut scalar = setup(
        "max_batch_size: 8 input { name: \"A\" data_type: TYPE_INT32 dims: 1 reshape { shape: [] } } \
         output { name: \"X\" dims: 1 reshape { shape: [] } }",
    );
    scalar.add(2, vec![ints("A", &[2, 1], &[1, 2])], &[]);
    assert_eq!(scalar.gathered()[0].1, tensor(&[2], &[1, 2]));
    let shares = scalar.scattered(vec![("X".to_owned(), tensor(&[2], &[3, 4]))]);
    assert_eq!(shares[0][0].tensor, tensor(&[2, 1], &[3, 4]));

    let mut variable = setup(
        "input { name: \"A\" data_type: TYPE_INT32 dims: [-1, 4] reshape { shape: [2, -1, 2] } }",
    );
    variable.add(1, vec![ints("A", &[3, 4], &[0; 12])], &[]);
    // Sizes follow their -1 in order; the fixed ones are given.
    assert_eq!(variable.gathered()[0].1.shape(), [2, 3, 2]);
}

#[test]
fn ragged_inputs_are_flat_and_their_batch_inputs_tell_them_apart() {
    let kinds = [
        ("BATCH_ELEMENT_COUNT", vec![3, 1], vec![2]),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT", vec![3, 4], vec![2]),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", vec![0, 3, 4], vec![3]),
        ("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", vec![0, 0, 0], vec![3]),
        ("BATCH_ITEM_SHAPE", vec![3, 1], vec![2, 1]),
        ("BATCH_ITEM_SHAPE_FLATTEN", vec![3, 1], vec![2]),
    ];
    for (kind, values, shape) in kinds {
        let mut setup = setup(&format!(
            "max_batch_size: 8 input {{ name: \"A\" data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true }} \
             batch_input {{ kind: {kind} target_name: \"N\" data_type: TYPE_INT32 source_input: \"A\" }} \
             batch_output {{ target_name: \"X\" source_input: \"A\" }} output {{ name: \"X\" dims: -1 }}"
        ));
        setup.add(1, vec![ints("A", &[1, 3], &[1, 2, 3])], &[]);
        setup.add(1, vec![ints("A", &[1, 1], &[4])], &[]);
        let gathered = setup.gathered();
        assert_eq!(gathered[0].1, tensor(&[4], &[1, 2, 3, 4]));
        assert_eq!(gathered[1], ("N".to_owned(), tensor(&shape, &values)), "{kind}");
        let shares = setup.scattered(vec![("X".to_owned(), tensor(&[4], &[5, 6, 7, 8]))]);
        assert_eq!(shares[0][0].tensor, tensor(&[1, 3], &[5, 6, 7]));
        assert_eq!(shares[1][0].tensor, tensor(&[1, 1], &[8]));
    }
}

/// An input of a request as a step of an ensemble hands it on.
fn handed(name: &str, tensor: Tensor) -> InputTensor {
    let shape = tensor.shape().iter().map(|&dim| i64::try_from(dim).unwrap()).collect();
    let datatype = tensor.dtype();
    InputTensor { name: name.to_owned(), datatype, shape, data: InputData::Tensor(tensor) }
}

#[test]
fn a_request_with_fewer_elements_than_its_rows_need_gets_nothing_of_its_neighbours() {
    let short = [
        handed("A", tensor(&[0, 2], &[])),
        ints("A", &[1, 2], &[]),
        ints("A", &[1, 2], &[1]),
        ints("A", &[1, 2], &[1, 2, 3]),
    ];
    for input in short {
        let mut setup = setup(INT);
        setup.add(1, vec![input], &[]);
        setup.add(1, vec![ints("A", &[1, 2], &[7, 8])], &[]);
        let error = gather(&setup.config, &setup.requests).unwrap_err();
        assert!(error.message.contains("input 'A'"), "{}", error.message);
    }
}

#[test]
fn a_request_without_its_strings_does_not_take_those_of_its_neighbours() {
    let config = "max_batch_size: 8 input { name: \"A\" data_type: TYPE_STRING dims: 1 }";
    let two = b"\x01\0\0\0a\x01\0\0\0b".to_vec();
    let input = |bytes: Vec<u8>| InputTensor {
        name: "A".to_owned(),
        datatype: DataType::Bytes,
        shape: vec![1, 1],
        data: InputData::Raw(Bytes::from(bytes)),
    };
    let mut setup = setup(config);
    setup.add(1, vec![input(Vec::new())], &[]);
    setup.add(1, vec![input(two)], &[]);
    let error = gather(&setup.config, &setup.requests).unwrap_err();
    assert!(error.message.contains("input 'A'"), "{}", error.message);
}
