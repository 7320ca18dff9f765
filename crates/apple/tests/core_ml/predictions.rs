//! Predictions that the caller waits for.

use std::sync::Arc;

use galatea_apple::coreml::{
    ArrayDataType, CoreMlFaultKind, LabelKeyKind, MultiArray, Prediction, PredictionOutput,
};
use galatea_doubles::c::PlayedMac;
use galatea_doubles::objc::core_ml::{
    LabelledNumber, OutputLayout, PlayedFeature, PlayedInterface, PlayedKind, PlayedLabel,
    PlayedOutput, PlayedTensor, PlayedValue,
};
use galatea_tensor::HostBuffer;

use crate::player::{FLOAT16, INT32, LoneTest, TestModel, integers, numbers};

const LAYOUTS: [OutputLayout; 4] = [
    OutputLayout::Padded,
    OutputLayout::PaddedUncounted,
    OutputLayout::Close,
    OutputLayout::Surface,
];

/// Bytes that tell elements apart.
fn counted(len: usize) -> Vec<u8> {
    (0..len).map(|byte| u8::try_from(byte % 251).unwrap()).collect()
}

#[test]
fn outputs_are_read_however_they_lie() {
    for layout in LAYOUTS {
        let test = LoneTest::with(TestModel { layout, ..TestModel::echo(FLOAT16, &[2, 5, 3]) });
        let model = test.load();
        let given = counted(60);
        let mut input = MultiArray::zeroed(ArrayDataType::Float16, &[2, 5, 3]).unwrap();
        input.copy_from(&given).unwrap();
        let inputs = [("x", &input)];
        let outputs = model.predict(Prediction { inputs: &inputs, ..Prediction::default() });
        let outputs = outputs.unwrap();
        let PredictionOutput::Array(array) = &outputs[0].1 else { panic!("{outputs:?}") };
        assert_eq!((outputs[0].0.as_str(), array.shape()), ("y", &[2, 5, 3][..]));
        let strides = array.read(|_, strides| strides.to_vec()).unwrap();
        assert_eq!(strides == [15, 3, 1], layout == OutputLayout::Close);
        let mut found = vec![0; 60];
        array.copy_to(&mut found).unwrap();
        assert_eq!(found, given, "{layout:?}");
    }
}

#[test]
fn inputs_may_be_windows_and_surfaces() {
    let test = LoneTest::with(TestModel::echo(FLOAT16, &[2, 3]));
    let model = test.load();
    let given = counted(12);
    let mut surface = MultiArray::on_surface(ArrayDataType::Float16, &[2, 3]).unwrap();
    surface.copy_from(&given).unwrap();
    assert_eq!(
        surface.read(|bytes, strides| (bytes.len(), strides.to_vec())).unwrap(),
        (128, vec![32, 1])
    );
    let memory = Arc::new(HostBuffer::try_copy(&given).unwrap());
    let window = MultiArray::from_memory(memory, 0, ArrayDataType::Float16, &[2, 3], None);
    for array in [surface, window.unwrap()] {
        let inputs = [("x", &array)];
        let outputs = model.predict(Prediction { inputs: &inputs, ..Prediction::default() });
        let (_, PredictionOutput::Array(array)) = outputs.unwrap().remove(0) else { panic!() };
        let mut found = vec![0; 12];
        array.copy_to(&mut found).unwrap();
        assert_eq!(found, given);
    }
}

/// Predicts with an array for the output, and returns whether it was taken.
fn backed(test: &LoneTest, backing: &mut MultiArray) -> bool {
    let model = test.load();
    let data_type = backing.data_type();
    let shape = backing.shape().to_vec();
    let mut input = MultiArray::zeroed(data_type, &shape).unwrap();
    input.copy_from(&counted(input.len_bytes())).unwrap();
    let inputs = [("x", &input)];
    let mut backings = [("y", &mut *backing)];
    let prediction = Prediction { inputs: &inputs, backings: &mut backings, state: None };
    let outputs = model.predict(prediction).unwrap();
    matches!(outputs[0].1, PredictionOutput::Backed)
}

#[test]
fn outputs_go_to_the_arrays_that_are_there_for_them() {
    let test = LoneTest::with(TestModel::echo(FLOAT16, &[2, 3]));
    let zeroed = MultiArray::zeroed(ArrayDataType::Float16, &[2, 3]).unwrap();
    let surface = MultiArray::on_surface(ArrayDataType::Float16, &[2, 3]).unwrap();
    for mut backing in [zeroed, surface] {
        assert!(backed(&test, &mut backing), "{backing:?}");
        let mut found = vec![0; 12];
        backing.copy_to(&mut found).unwrap();
        assert_eq!(found, counted(12));
    }
}

#[test]
fn core_ml_may_decline_an_array_for_an_output() {
    let model = TestModel { backings: false, ..TestModel::echo(FLOAT16, &[2, 3]) };
    let test = LoneTest::with(model);
    let mut backing = MultiArray::on_surface(ArrayDataType::Float16, &[2, 3]).unwrap();
    assert!(!backed(&test, &mut backing));
}

/// Predicts with a model that gives these values of its output `y`.
fn given(values: Vec<PlayedOutput>) -> Result<PredictionOutput, CoreMlFaultKind> {
    let kind = PlayedKind::Plain(1);
    let outputs = vec![PlayedFeature { name: "y".to_owned(), kind, optional: false }];
    let interface = PlayedInterface { outputs, ..PlayedInterface::default() };
    let test = LoneTest::with(TestModel::new(interface, move |_, _| Ok(values.clone())));
    let outputs = test.load().predict(Prediction::default());
    outputs.map(|mut all| all.remove(0).1).map_err(|fault| fault.kind)
}

fn value(value: PlayedValue) -> Result<PredictionOutput, CoreMlFaultKind> {
    given(vec![PlayedOutput { name: "y".to_owned(), value }])
}

#[test]
fn values_of_every_kind_are_told() {
    assert!(matches!(value(PlayedValue::Whole(-7)), Ok(PredictionOutput::Int64(-7))));
    assert!(matches!(value(PlayedValue::Real(0.5)), Ok(PredictionOutput::Double(0.5))));
    assert!(matches!(value(PlayedValue::Undefined), Ok(PredictionOutput::Undefined)));
    assert!(matches!(given(Vec::new()), Ok(PredictionOutput::Undefined)));
    let Ok(PredictionOutput::String(text)) = value(PlayedValue::Text("cat".into())) else {
        panic!("expected a text")
    };
    assert_eq!(text, "cat");
    assert!(matches!(value(PlayedValue::Other(4)), Err(CoreMlFaultKind::Predict)));
    assert!(matches!(value(PlayedValue::Other(5)), Ok(PredictionOutput::Undefined)));
}

#[test]
fn labels_are_texts_or_integers() {
    let pair = |label, number| LabelledNumber { label, number };
    let labels =
        vec![pair(PlayedLabel::Text("cat".into()), 0.75), pair(PlayedLabel::Whole(3), 0.25)];
    let Ok(PredictionOutput::Dictionary(found)) = value(PlayedValue::Dictionary(labels)) else {
        panic!("expected a dictionary")
    };
    let expected = [(LabelKeyKind::String("cat".into()), 0.75), (LabelKeyKind::Int64(3), 0.25)];
    assert_eq!(found, expected);
    let odd = PlayedValue::Dictionary(vec![pair(PlayedLabel::Odd, 1.0)]);
    assert!(matches!(value(odd), Err(CoreMlFaultKind::Predict)));
}

#[test]
fn an_array_of_an_unknown_type_is_an_error() {
    let tensor = PlayedTensor { data_type: 0x3_0008, shape: vec![2], bytes: vec![1, 2] };
    assert!(matches!(value(PlayedValue::Tensor(tensor)), Err(CoreMlFaultKind::Predict)));
}

#[test]
fn a_panic_in_a_handler_passes_to_who_reads() {
    let test = LoneTest::with(TestModel::echo(INT32, &[2]));
    let mut array = integers(&[2], &[1, 2]);
    let panics = |work: &mut dyn FnMut()| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
    };
    assert!(panics(&mut || array.read(|_, _| panic!("while it reads")).unwrap()));
    assert!(panics(&mut || array.write(|_, _| panic!("while it writes")).unwrap()));
    assert_eq!(numbers(&array), [1, 2]);
    drop(array);
    drop(test);
}

#[test]
fn a_surface_that_the_system_does_not_make_is_an_error() {
    let _test = LoneTest::with(TestModel::echo(INT32, &[2]));
    let fault = MultiArray::on_surface(ArrayDataType::Float16, &[20_000]).unwrap_err();
    assert_eq!(fault.kind, CoreMlFaultKind::Memory);
    assert!(fault.text.contains("CVPixelBufferCreate gives -6681"), "{fault}");
}

#[test]
fn bytes_are_elements_from_macos_26_on() {
    let _test = LoneTest::with(TestModel::echo(INT32, &[2]));
    let make = || MultiArray::on_surface(ArrayDataType::Int8, &[4, 3]);
    let on = |mac: &str| PlayedMac::parse(mac).unwrap().play(make);
    assert_eq!(on("m1-16gb,macos=15.4").unwrap_err().kind, CoreMlFaultKind::Version);
    let bytes = on("m1-16gb,macos=26.0").unwrap();
    assert_eq!(bytes.read(|_, strides| strides.to_vec()).unwrap(), [64, 1]);
}
