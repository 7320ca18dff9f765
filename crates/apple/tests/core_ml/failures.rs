//! Errors and exceptions, and those that end the process.

use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use galatea_apple::coreml::{
    CoreMlFault, CoreMlFaultKind, CoreMlLoadOptions, LoadedModel, Prediction,
};
use galatea_doubles::objc::core_ml::{ErrorContents, PlayedFailure, PlayedInterface};

use crate::player::{LoneTest, TestModel};

fn loaded(failure: PlayedFailure) -> CoreMlFault {
    let test = LoneTest::failing(failure);
    LoadedModel::load(test.folder.path(), &CoreMlLoadOptions::default()).unwrap_err()
}

fn predicted(failure: PlayedFailure) -> CoreMlFault {
    let model = TestModel::new(PlayedInterface::default(), move |_, _| Err(failure.clone()));
    let test = LoneTest::with(model);
    test.load().predict(Prediction::default()).unwrap_err()
}

#[test]
fn an_error_is_told_with_those_under_it() {
    let error = |code, description: &str, underlying: Vec<ErrorContents>| ErrorContents {
        domain: "com.apple.CoreML".to_owned(),
        code,
        description: description.to_owned(),
        reason: None,
        underlying,
    };
    let mut top = error(0, "Could not load.", vec![error(-4, "no such device", Vec::new())]);
    top.reason = Some("The folder is empty.".to_owned());
    let fault = loaded(PlayedFailure::Error(top));
    assert_eq!(fault.kind, CoreMlFaultKind::Load);
    let expected = "Could not load. (com.apple.CoreML 0); The folder is empty.; below it: no such \
                    device (com.apple.CoreML -4)";
    assert!(fault.text.ends_with(expected), "{fault}");
}

#[test]
fn an_exception_is_an_error_of_the_call_that_meets_it() {
    let fault = loaded(PlayedFailure::exception("no weights"));
    assert_eq!(fault.kind, CoreMlFaultKind::Load);
    let expected = "Objective-C exception NSInvalidArgumentException: no weights";
    assert!(fault.text.ends_with(expected), "{fault}");
    let fault = predicted(PlayedFailure::exception("no memory"));
    assert_eq!(fault.kind, CoreMlFaultKind::Predict);
    let expected = "prediction: Objective-C exception NSInvalidArgumentException: no memory";
    assert_eq!(fault.text, expected);
    let fault = predicted(PlayedFailure::OddException);
    assert_eq!(fault.text, "prediction: an Objective-C exception without a name");
}

#[test]
fn a_call_without_a_result_is_an_error() {
    assert_eq!(loaded(PlayedFailure::Nothing).kind, CoreMlFaultKind::Load);
    assert_eq!(predicted(PlayedFailure::Nothing).kind, CoreMlFaultKind::Predict);
}

/// Runs an ignored test of this program by itself, which must end with SIGABRT.
fn aborts(test: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args([test, "--exact", "--ignored"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(6), "{said}");
}

#[test]
fn an_exception_that_nobody_catches_ends_the_process() {
    aborts("failures::raises_on_a_thread_of_core_ml");
    aborts("failures::raises_through_catch_unwind");
}

#[test]
#[ignore = "ends the process"]
fn raises_on_a_thread_of_core_ml() {
    let model = TestModel::new(PlayedInterface::default(), |_, _| {
        Err(PlayedFailure::exception("on a thread of its own"))
    });
    let test = LoneTest::with(model);
    let (sender, receiver) = std::sync::mpsc::channel();
    test.load().submit(Default::default(), Box::new(move |done| drop(sender.send(done))));
    drop(receiver.recv());
}

#[test]
#[ignore = "ends the process"]
fn raises_through_catch_unwind() {
    let model = TestModel::new(PlayedInterface::default(), |_, _| {
        let raise = || galatea_doubles::objc::raise("NSGenericException", "no");
        drop(catch_unwind(AssertUnwindSafe(raise)));
        Ok(Vec::new())
    });
    let test = LoneTest::with(model);
    drop(test.load().predict(Prediction::default()));
}
