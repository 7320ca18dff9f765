//! Compiling packages and loading models.

use std::fs;

use galatea_apple::coreml::{self, ComputeUnits, CoreMlFaultKind, CoreMlLoadOptions, LoadedModel};
use galatea_doubles::objc::core_ml::PlayedFailure;
use galatea_doubles::objc::runtime::hide;

use crate::player::{INT32, LoneTest, TestCoreMl, TestModel};

fn compiling(compile: Result<std::path::PathBuf, PlayedFailure>) -> LoneTest {
    LoneTest::of(TestCoreMl { compile: Some(compile), ..TestCoreMl::default() })
}

#[test]
fn a_compiled_package_is_moved_to_its_place() {
    let made = tempfile::tempdir().unwrap();
    let made = made.path().join("model.mlmodelc");
    fs::create_dir_all(&made).unwrap();
    fs::write(made.join("model.mil"), "program").unwrap();
    let test = compiling(Ok(made.clone()));
    let into = test.folder.path().join("a/b.mlmodelc");
    coreml::compile(test.folder.path(), &into).unwrap();
    assert_eq!(fs::read(into.join("model.mil")).unwrap(), b"program");
    assert!(!made.exists());
}

#[test]
fn a_package_that_is_not_compiled_is_a_fault_that_says_why() {
    let fault = |failure| {
        let test = compiling(Err(failure));
        coreml::compile(test.folder.path(), &test.folder.path().join("b")).unwrap_err()
    };
    let refused = fault(PlayedFailure::error(5, "There is no program."));
    assert_eq!(refused.kind, CoreMlFaultKind::Compile);
    assert!(refused.text.ends_with("There is no program. (com.apple.CoreML 5)"), "{refused}");
    for silent in [PlayedFailure::Nothing, PlayedFailure::Forgotten] {
        let fault = fault(silent);
        assert_eq!(fault.kind, CoreMlFaultKind::Compile);
        assert!(fault.text.contains("gives no folder"), "{fault}");
    }
}

#[test]
fn every_option_reaches_core_ml() {
    let test = LoneTest::with(TestModel::echo(INT32, &[1]));
    let options = CoreMlLoadOptions {
        units: ComputeUnits::CpuAndNeuralEngine,
        function: Some("decode".to_owned()),
        fast_prediction: true,
        infrequent_reshapes: true,
        low_precision_accumulation: true,
        display_name: Some("model".to_owned()),
    };
    drop(LoadedModel::load(test.folder.path(), &options).unwrap());
    drop(test.load());
    let seen = test.player.seen.lock().unwrap();
    assert_eq!((seen[0].units, seen[1].units), (3, 2));
    assert_eq!(seen[0].function.as_deref(), Some("decode"));
    assert_eq!(seen[0].display_name.as_deref(), Some("model"));
    assert!(seen[0].fast_prediction && seen[0].infrequent_reshapes && seen[0].low_precision);
    assert!(!seen[1].fast_prediction && !seen[1].infrequent_reshapes && !seen[1].low_precision);
    assert_eq!((&seen[1].function, &seen[1].display_name), (&None, &None));
}

#[test]
fn an_older_macos_is_told_what_it_lacks() {
    let test = LoneTest::with(TestModel::echo(INT32, &[1]));
    let fault = |lacks: &'static str, options: CoreMlLoadOptions| {
        let hidden = hide(&[lacks]);
        let fault = LoadedModel::load(test.folder.path(), &options).unwrap_err();
        drop(hidden);
        assert_eq!(fault.kind, CoreMlFaultKind::Version);
        fault.text
    };
    let function = Some("decode".to_owned());
    let of_function = CoreMlLoadOptions { function, ..CoreMlLoadOptions::default() };
    let text = fault("setFunctionName:", of_function);
    assert_eq!(text, "function `decode`: needs macOS 15 or later");
    let of_hints = CoreMlLoadOptions { fast_prediction: true, ..CoreMlLoadOptions::default() };
    let text = fault("setOptimizationHints:", of_hints.clone());
    assert_eq!(text, "optimization hints: needs macOS 14.4 or later");
    let text = fault("setSpecializationStrategy:", of_hints);
    assert_eq!(text, "fast prediction: needs macOS 15 or later");
}
