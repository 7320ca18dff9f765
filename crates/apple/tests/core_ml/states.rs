//! States.

use std::sync::mpsc;

use galatea_apple::coreml::{
    CoreMlFaultKind, LoadedModel, Prediction, PredictionOutput, PredictionState,
    PredictionSubmission,
};
use galatea_doubles::objc::runtime::hide;

use crate::player::{INT32, LoneTest, TestModel, integers, numbers};

/// Adds a number to a state and returns the sum.
fn add(model: &LoadedModel, state: &mut PredictionState, number: i32) -> i32 {
    let input = integers(&[1], &[number]);
    let inputs = [("x", &input)];
    let prediction = Prediction { inputs: &inputs, backings: &mut [], state: Some(state) };
    let (_, output) = model.predict(prediction).unwrap().remove(0);
    let PredictionOutput::Array(array) = output else { panic!("{output:?}") };
    numbers(&array)[0]
}

#[test]
fn a_state_lasts_from_one_prediction_to_the_next() {
    let test = LoneTest::with(TestModel::sum(&[1]));
    let model = test.load();
    let mut one = model.new_state().unwrap();
    let mut other = model.new_state().unwrap();
    assert_eq!([add(&model, &mut one, 1), add(&model, &mut one, 2)], [1, 3]);
    assert_eq!(add(&model, &mut other, 5), 5);
    other.copy_from(&one).unwrap();
    assert_eq!([add(&model, &mut other, 4), add(&model, &mut one, 10)], [7, 13]);
}

#[test]
fn submissions_on_one_state_follow_each_other() {
    let test = LoneTest::with(TestModel::sum(&[2]));
    let model = test.load();
    let mut state = Some(model.new_state().unwrap());
    for (number, sums) in [(1, [1, 2]), (2, [3, 4]), (3, [6, 7])] {
        let (sender, receiver) = mpsc::channel();
        let more = if number == 1 { 2 } else { number };
        let submission = PredictionSubmission {
            inputs: vec![("x".to_owned(), integers(&[2], &[number, more]))],
            backings: vec![("y".to_owned(), integers(&[2], &[0, 0]))],
            state: state.take(),
        };
        model.submit(submission, Box::new(move |done| drop(sender.send(done))));
        let completed = receiver.recv().unwrap();
        assert!(matches!(completed.result.unwrap()[0].1, PredictionOutput::Backed));
        assert_eq!(numbers(&completed.submission.backings[0].1), sums);
        state = completed.submission.state;
    }
}

#[test]
fn there_are_no_states_where_there_are_none() {
    let test = LoneTest::with(TestModel::echo(INT32, &[1]));
    assert_eq!(test.load().new_state().unwrap_err().kind, CoreMlFaultKind::Argument);
    drop(test);
    let test = LoneTest::with(TestModel::sum(&[1]));
    let model = test.load();
    let hidden = hide(&["MLState"]);
    let fault = model.new_state().unwrap_err();
    drop(hidden);
    assert_eq!(fault.to_string(), "the state of a model: needs macOS 15 or later");
}
