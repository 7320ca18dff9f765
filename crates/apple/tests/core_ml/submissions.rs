//! Predictions that nobody waits for.

use std::sync::mpsc;

use galatea_apple::coreml::{
    CompletedPrediction, CoreMlFaultKind, LoadedModel, PredictionOutput, PredictionSubmission,
};
use galatea_doubles::objc::core_ml::{PlayedFailure, PlayedInterface};
use galatea_doubles::objc::runtime::hide;

use crate::player::{INT32, LoneTest, TestModel, integers, numbers};

fn submitted(model: &LoadedModel, submission: PredictionSubmission) -> CompletedPrediction {
    let (sender, receiver) = mpsc::channel();
    model.submit(submission, Box::new(move |done| drop(sender.send(done))));
    receiver.recv().unwrap()
}

#[test]
fn outputs_come_to_who_is_told() {
    let test = LoneTest::with(TestModel::echo(INT32, &[3]));
    let model = test.load();
    let inputs = vec![("x".to_owned(), integers(&[3], &[4, 5, 6]))];
    let submission = PredictionSubmission { inputs, ..PredictionSubmission::default() };
    let completed = submitted(&model, submission);
    let (name, output) = completed.result.unwrap().remove(0);
    let PredictionOutput::Array(array) = output else { panic!("{output:?}") };
    assert_eq!((name.as_str(), numbers(&array)), ("y", vec![4, 5, 6]));
    assert_eq!(numbers(&completed.submission.inputs[0].1), [4, 5, 6]);
}

/// Submits to a model that fails so, and returns what the failure says.
fn fault(failure: PlayedFailure) -> String {
    let model = TestModel::new(PlayedInterface::default(), move |_, _| Err(failure.clone()));
    let test = LoneTest::with(model);
    let fault = submitted(&test.load(), PredictionSubmission::default()).result.unwrap_err();
    assert_eq!(fault.kind, CoreMlFaultKind::Predict);
    fault.text
}

#[test]
fn a_failure_comes_to_who_is_told() {
    let text = fault(PlayedFailure::error(3, "no device"));
    assert_eq!(text, "prediction: no device (com.apple.CoreML 3)");
    let text = fault(PlayedFailure::Nothing);
    assert_eq!(text, "prediction: Core ML gives neither outputs nor an error");
    let text = fault(PlayedFailure::Forgotten);
    assert_eq!(text, "Core ML has ended the prediction without an answer");
}

#[test]
fn an_exception_before_the_prediction_begins_is_told_once() {
    let begin = Err(PlayedFailure::exception("no such array"));
    let test = LoneTest::with(TestModel { begin, ..TestModel::echo(INT32, &[1]) });
    let inputs = vec![("x".to_owned(), integers(&[1], &[1]))];
    let submission = PredictionSubmission { inputs, ..PredictionSubmission::default() };
    let completed = submitted(&test.load(), submission);
    let text = completed.result.unwrap_err().text;
    assert!(text.ends_with("NSInvalidArgumentException: no such array"), "{text}");
    assert_eq!(completed.submission.inputs.len(), 1);
}

#[test]
fn an_older_macos_predicts_only_while_somebody_waits() {
    let test = LoneTest::with(TestModel::new(PlayedInterface::default(), |_, _| Ok(Vec::new())));
    let model = test.load();
    let hidden = hide(&["predictionFromFeatures:options:completionHandler:"]);
    let fault = submitted(&model, PredictionSubmission::default()).result.unwrap_err();
    drop(hidden);
    assert_eq!(fault.kind, CoreMlFaultKind::Version);
}

#[test]
fn a_panic_of_who_is_told_does_not_pass_through_core_ml() {
    let test = LoneTest::with(TestModel::new(PlayedInterface::default(), |_, _| Ok(Vec::new())));
    let model = test.load();
    let (sender, receiver) = mpsc::channel();
    let told = move |_| {
        sender.send(()).unwrap();
        panic!("whoever is told panics");
    };
    model.submit(PredictionSubmission::default(), Box::new(told));
    receiver.recv().unwrap();
    assert!(submitted(&model, PredictionSubmission::default()).result.is_ok());
}
