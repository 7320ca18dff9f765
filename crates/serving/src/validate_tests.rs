use galatea_tensor::{ByteString, Tensor};
use proptest::prelude::*;

use super::*;
use crate::config::from_text;

fn checker(inputs: &str) -> RequestChecker {
    RequestChecker::new(
        &from_text(&format!("name: \"m\" output {{ name: \"O\" }} {inputs}")).unwrap(),
    )
}

fn add_sub() -> RequestChecker {
    checker(
        "max_batch_size: 8 input [{ name: \"INPUT0\" data_type: TYPE_INT32 dims: 16 }, \
         { name: \"INPUT1\" data_type: TYPE_INT32 dims: 16 }]",
    )
}

fn raw(name: &str, shape: &[i64], bytes: usize) -> InputTensor {
    let data = InputData::Raw(Bytes::from(vec![0; bytes]));
    InputTensor { name: name.to_owned(), datatype: DataType::Int32, shape: shape.to_vec(), data }
}

fn strings(shape: &[i64], wire: &[u8]) -> InputTensor {
    let data = InputData::Raw(Bytes::copy_from_slice(wire));
    InputTensor { name: "S".to_owned(), datatype: DataType::Bytes, shape: shape.to_vec(), data }
}

fn check(checker: &RequestChecker, inputs: Vec<InputTensor>) -> Result<ScheduleTicket, String> {
    let mut request = InferenceRequest { inputs, ..InferenceRequest::default() };
    checker.check(&mut request).map_err(|fault| {
        let error = ServingError::from(fault);
        assert_eq!(error.code, crate::ErrorCode::InvalidArg);
        error.message
    })
}

fn fault(checker: &RequestChecker, inputs: Vec<InputTensor>) -> String {
    let message = check(checker, inputs).unwrap_err();
    message
        .strip_prefix("[request id: <id_unknown>] ")
        .map_or(format!("(bare) {message}"), str::to_owned)
}

#[test]
fn a_good_request_passes_and_its_batch_is_counted() {
    let good = check(&add_sub(), vec![raw("INPUT0", &[3, 16], 192), raw("INPUT1", &[3, 16], 192)])
        .unwrap();
    assert_eq!((good.batch_size, good.key), (3, BatchKey::default()));
    let tensor = InputData::Tensor(Tensor::from_vec(&[1, 16], vec![0_i32; 16]).unwrap());
    let tensor = InputTensor { data: tensor, ..raw("INPUT0", &[1, 16], 0) };
    assert!(check(&add_sub(), vec![tensor.clone(), raw("INPUT1", &[1, 16], 64)]).is_ok());
    let other = InputTensor { shape: vec![2, 16], ..tensor };
    assert!(check(&add_sub(), vec![other, raw("INPUT1", &[2, 16], 128)]).is_err());
}

#[test]
fn a_scalar_is_a_tensor_of_one_element_where_one_is_expected() {
    let single = checker("input { name: \"X\" data_type: TYPE_INT32 dims: 1 }");
    assert!(check(&single, vec![raw("X", &[], 4)]).is_ok());
    let tensor = InputData::Tensor(Tensor::scalar(7_i32));
    let scalar = InputTensor { data: tensor, ..raw("X", &[], 0) };
    let mut request = InferenceRequest { inputs: vec![scalar], ..InferenceRequest::default() };
    single.check(&mut request).unwrap();
    assert_eq!(request.inputs[0].shape, [1]);
    let open = checker("input { name: \"X\" data_type: TYPE_INT32 dims: -1 }");
    assert!(fault(&open, vec![raw("X", &[], 4)]).contains("Expected [-1], got []"));
    let batched = checker("max_batch_size: 2 input { name: \"X\" data_type: TYPE_INT32 dims: 1 }");
    assert!(fault(&batched, vec![raw("X", &[], 4)]).contains("has no shape"));
}

#[test]
fn strings_that_break_off_are_no_refusal() {
    let texts = checker("input { name: \"S\" data_type: TYPE_STRING dims: 1 }");
    let fault = |wire: &[u8]| {
        let inputs = vec![strings(&[1], wire)];
        let mut request = InferenceRequest { inputs, ..InferenceRequest::default() };
        texts.check(&mut request).unwrap_err()
    };
    assert!(matches!(fault(b"\x32\0\0\0ab"), RequestFault::BrokenStrings(_)));
    assert!(matches!(fault(b"\x32\0"), RequestFault::Refused(_)));
    assert!(matches!(fault(b""), RequestFault::Refused(_)));
}

/// The texts are those that a real Triton gave to the same requests.
#[test]
fn every_fault_has_tritons_text() {
    let model = add_sub();
    let i0 = |shape: &[i64], bytes| raw("INPUT0", shape, bytes);
    let i1 = || raw("INPUT1", &[1, 16], 64);
    let cases = [
        (
            vec![],
            "expected 2 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing required input(s) \
             ['INPUT0','INPUT1']. Please provide all required input(s).",
        ),
        (
            vec![i1()],
            "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['INPUT1'], but missing required input(s) \
             ['INPUT0']. Please provide all required input(s).",
        ),
        (
            vec![i0(&[1, 16], 64), i1(), raw("INPUT2", &[1], 4)],
            "expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['INPUT2','INPUT1','INPUT0'], but missing \
             required input(s) ]. Please provide all required input(s).",
        ),
        (
            vec![i0(&[1, 16], 64), i1(), i0(&[1, 16], 64)],
            "input 'INPUT0' already exists in request",
        ),
        (
            vec![raw("INPUT9", &[1, 16], 64), i1()],
            "(bare) unexpected inference input 'INPUT9' for model 'm'",
        ),
        (
            vec![i0(&[16], 64), i1()],
            "input 'INPUT0' batch size does not match other inputs for 'm'",
        ),
        (
            vec![i0(&[-1, 16], 64), i1()],
            "input 'INPUT0' batch size does not match other inputs for 'm'",
        ),
        (
            vec![i0(&[], 64), i1()],
            "input 'INPUT0' has no shape but model requires batch dimension for 'm'",
        ),
        (
            vec![i0(&[9, 16], 576), raw("INPUT1", &[9, 16], 576)],
            "inference request batch-size must be <= 8 for 'm'",
        ),
        (
            vec![i0(&[-1, 16], 64), raw("INPUT1", &[-1, 16], 64)],
            "inference request batch-size must be <= 8 for 'm'",
        ),
        (
            vec![i0(&[1, 16, 1], 64), i1()],
            "unexpected shape for input 'INPUT0' for model 'm'. Expected [-1,16], got [1,16,1]. NOTE: Setting a \
             non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input \
             shape. If you want to specify the full shape including the batch dim in your input dims config, try \
             setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.",
        ),
        (
            vec![i0(&[1, 16], 60), i1()],
            "input byte size mismatch for input 'INPUT0' for model 'm'. Expected 64, got 60",
        ),
        (
            vec![i0(&[0, 16], 0), raw("INPUT1", &[0, 16], 0)],
            "input byte size mismatch for input 'INPUT1' for model 'm'. Expected 64, got 0",
        ),
    ];
    for (inputs, expected) in cases {
        assert_eq!(fault(&model, inputs), expected);
    }
    let wrong_type = InputTensor { datatype: DataType::Uint32, ..i0(&[1, 16], 64) };
    assert_eq!(
        fault(&model, vec![wrong_type, i1()]),
        "inference input 'INPUT0' data-type is 'UINT32', but model 'm' expects 'INT32'"
    );
}

/// With a look at all others for each name this took minutes.
#[test]
fn names_of_very_many_inputs_are_compared_in_no_time_and_errors_stay_short() {
    let many = |count: usize| (0..count).map(|at| raw(&format!("{at:090}"), &[1], 4)).collect();
    let inputs: Vec<InputTensor> = many(200_000);
    let message = fault(&add_sub(), inputs);
    assert!(
        message.starts_with("expected 2 inputs but got 200000 inputs for model 'm'."),
        "{message}"
    );
    assert!(
        message.contains(",…], but missing required input(s) ['INPUT0','INPUT1']"),
        "{message}"
    );
    assert!(message.len() < 2000, "{}", message.len());
    let mut twice: Vec<InputTensor> = many(50_000);
    twice.push(raw(&format!("{:090}", 7), &[1], 4));
    assert!(fault(&add_sub(), twice).ends_with("7' already exists in request"));
    let long =
        fault(&add_sub(), vec![raw("INPUT0", &[1, 16], 64), raw(&"é".repeat(5000), &[1], 4)]);
    assert!(long.contains("é…'") && long.len() < 600, "{long}");
}

#[test]
fn unknown_outputs_win_over_bad_inputs() {
    let mut request = InferenceRequest {
        requested_outputs: vec!["O".to_owned(), "X".to_owned()],
        ..InferenceRequest::default()
    };
    let error = ServingError::from(add_sub().check(&mut request).unwrap_err());
    assert_eq!(error.message, "unexpected inference output 'X' for model 'm'");
}

#[test]
fn the_request_id_stands_before_the_text() {
    let mut request = InferenceRequest { id: "abc".to_owned(), ..InferenceRequest::default() };
    let error = ServingError::from(add_sub().check(&mut request).unwrap_err());
    assert!(error.message.starts_with("[request id: abc] expected 2 inputs"), "{error}");
}

#[test]
fn models_without_batching_take_whole_shapes_and_empty_variable_ones() {
    let model = checker("input { name: \"A\" data_type: TYPE_INT32 dims: [-1, 2] }");
    assert!(check(&model, vec![raw("A", &[0, 2], 0)]).is_ok());
    assert_eq!(
        fault(&model, vec![raw("A", &[2], 8)]),
        "unexpected shape for input 'A' for model 'm'. Expected [-1,2], got [2]. "
    );
    assert_eq!(
        fault(&model, vec![raw("A", &[i64::MAX, 2], 8)]),
        "invalid shape for input 'A': shape [9223372036854775807,2] causes total element count to exceed maximum \
         size of 9223372036854775807"
    );
    for rows in [1 << 62, i64::MAX] {
        let wide = checker("input { name: \"A\" data_type: TYPE_INT32 dims: [-1, 1] }");
        let overflow = format!("byte size overflow for input 'A': {rows} elements of type INT32");
        assert_eq!(fault(&wide, vec![raw("A", &[rows, 1], 8)]), overflow);
    }
}

#[test]
fn strings_are_counted_and_measured() {
    let model = checker("max_batch_size: 4 input { name: \"S\" data_type: TYPE_STRING dims: -1 }");
    let one =
        |text: &str| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
    assert!(check(&model, vec![strings(&[2, 1], &[one("ab"), one("")].concat())]).is_ok());
    assert!(check(&model, vec![strings(&[1, 0], &[])]).is_ok());
    assert_eq!(
        fault(&model, vec![strings(&[1, 2], &one("ab"))]),
        "expected 2 string elements for inference input 'S' for model 'm', got 1"
    );
    assert_eq!(
        fault(&model, vec![strings(&[1, 1], &[one("ab"), one("c")].concat())]),
        "unexpected number of string elements 2 for inference input 'S' for model 'm', expecting 1"
    );
    assert_eq!(
        fault(&model, vec![strings(&[1, 1], &[1, 0])]),
        "incomplete string length indicator for inference input 'S' for model 'm', expecting 4 bytes but only 2 bytes \
         available. Please make sure the string length indicator is in one buffer."
    );
    assert_eq!(
        fault(&model, vec![strings(&[1, 1], &[50, 0, 0, 0, b'a', b'b'])]),
        "(bare) incomplete string data for inference input 'S', expecting string of length 50 but only 2 bytes available"
    );
}

#[test]
fn optional_inputs_widen_the_count_and_divide_batches() {
    let model = checker(
        "max_batch_size: 8 input [{ name: \"A\" data_type: TYPE_INT32 dims: -1 }, \
         { name: \"B\" data_type: TYPE_INT32 dims: 1 optional: true }]",
    );
    let key = |inputs| check(&model, inputs).unwrap().key;
    let a = |n: i64| raw("A", &[1, n], usize::try_from(n).unwrap() * 4);
    let b = || raw("B", &[1, 1], 4);
    assert_eq!(key(vec![a(1), b()]), key(vec![b(), a(1)]));
    assert_ne!(key(vec![a(1), b()]), key(vec![a(1)]));
    assert_ne!(key(vec![a(1)]), key(vec![a(2)]));
    let missing = "expected number of inputs between 1 and 2 but got 1 inputs for model 'm'. Got input(s) ['B'], but \
                   missing required input(s) ['A']. Please provide all required input(s).";
    assert_eq!(fault(&model, vec![b()]), missing);
    let model = model.leaving_missing(true);
    assert_ne!(check(&model, vec![b()]).unwrap().key, check(&model, vec![a(1), b()]).unwrap().key);
    let none = "expected number of inputs between 1 and 2 but got 0 inputs for model 'm'. Got input(s) [], but \
                missing required input(s) ['A']. Please provide all required input(s).";
    assert_eq!(fault(&model, vec![]), none);
}

#[test]
fn shape_tensors_have_no_batch_dimension_and_divide_batches_by_their_values() {
    let checker = checker(
        "max_batch_size: 8 input [{ name: \"A\" data_type: TYPE_INT32 dims: 2 }, \
         { name: \"S\" data_type: TYPE_INT32 dims: 3 is_shape_tensor: true }]",
    );
    let shape = |values: [i32; 3]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        InputTensor { data: InputData::Raw(bytes.into()), ..raw("S", &[3], 0) }
    };
    let ticket = |values| check(&checker, vec![raw("A", &[4, 2], 32), shape(values)]).unwrap();
    assert_eq!(ticket([1, 2, 3]).batch_size, 4);
    assert_eq!(ticket([1, 2, 3]).key, ticket([1, 2, 3]).key);
    assert_ne!(ticket([1, 2, 3]).key, ticket([1, 2, 4]).key);
    assert_ne!(ticket([1, 2, 3]).key, ticket([3, 2, 1]).key);
    let text = fault(&checker, vec![raw("A", &[4, 2], 32), raw("S", &[4, 3], 48)]);
    assert!(
        text.starts_with("unexpected shape for input 'S' for model 'm'. Expected [3], got [4,3]"),
        "{text}"
    );
}

#[test]
fn ragged_inputs_do_not_divide_batches() {
    let model = checker(
        "max_batch_size: 8 input { name: \"A\" data_type: TYPE_INT32 dims: -1 allow_ragged_batch: true }",
    );
    let key = |n: i64| {
        check(&model, vec![raw("A", &[1, n], usize::try_from(n).unwrap() * 4)]).unwrap().key
    };
    assert_eq!(key(1), key(5));
}

proptest! {
    /// Bytes and tensors of one shape are taken or refused alike, whatever the batch: steps of ensembles and calls of
    /// models hand tensors on, and clients send bytes.
    #[test]
    fn tensors_are_held_to_the_same_numbers_of_elements_as_bytes(
        batch in 0_i64..4,
        dims in proptest::collection::vec(0_i64..3, 0..3),
        datatype in proptest::sample::select(vec![DataType::Uint8, DataType::Fp32, DataType::Int64, DataType::Bytes]),
        batching in any::<bool>(),
    ) {
        let variable = vec!["-1"; dims.len()].join(",");
        let kind = match datatype {
            DataType::Uint8 => "TYPE_UINT8",
            DataType::Fp32 => "TYPE_FP32",
            DataType::Int64 => "TYPE_INT64",
            _ => "TYPE_STRING",
        };
        let most = if batching { 8 } else { 0 };
        let config = format!("name: \"m\" max_batch_size: {most} input {{ name: \"A\" data_type: {kind} dims: [{variable}] }}");
        let checker = RequestChecker::new(&crate::config::from_text(&config).unwrap());
        let shape: Vec<i64> = batching.then_some(batch).into_iter().chain(dims).collect();
        let sizes: Vec<usize> = shape.iter().map(|&dim| usize::try_from(dim).unwrap()).collect();
        let tensor = match datatype.size_bytes() {
            Some(_) => Tensor::zeros(datatype, &sizes).unwrap(),
            None => Tensor::from_vec(&sizes, vec![ByteString::default(); sizes.iter().product()]).unwrap(),
        };
        let bytes = match datatype.size_bytes() {
            Some(_) => tensor.as_bytes().unwrap().to_vec(),
            None => vec![0; 4 * tensor.elements()],
        };
        let input = |data| vec![InputTensor { name: "A".to_owned(), datatype, shape: shape.clone(), data }];
        let sent = check(&checker, input(InputData::Raw(bytes.into())));
        let handed = check(&checker, input(InputData::Tensor(tensor)));
        prop_assert_eq!(sent.map(|ticket| ticket.batch_size), handed.map(|ticket| ticket.batch_size));
    }
}

#[test]
fn an_output_that_is_asked_for_twice_is_refused() {
    let ask = |outputs: &[&str]| {
        let inputs = vec![raw("INPUT0", &[1, 16], 64), raw("INPUT1", &[1, 16], 64)];
        let requested_outputs = outputs.iter().map(|&name| name.to_owned()).collect();
        let id = "r".to_owned();
        let mut request = InferenceRequest { id, inputs, requested_outputs, ..Default::default() };
        add_sub().check(&mut request).map(|_| ()).map_err(|fault| ServingError::from(fault).message)
    };
    assert_eq!(ask(&["O"]), Ok(()));
    let twice = "[request id: r] output 'O' already exists in request".to_owned();
    assert_eq!(ask(&["O", "O"]), Err(twice));
    let many: Vec<String> = (0..60_000).map(|at| format!("{:05}", at % 59_999)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(ask(&many).unwrap_err().ends_with("output '00000' already exists in request"));
}
