use std::path::Path;

use galatea_tensor::Tensor;

use super::line::SelftestVerdict;
use super::task::{SelftestEffort, SubjectTask};
use super::*;

fn task(subject: &str, unit: &str, folder: &Path) -> SubjectTask {
    let folder = folder.join(format!("{subject}-{unit}"));
    std::fs::create_dir_all(&folder).unwrap();
    SubjectTask {
        subject: subject.to_owned(),
        unit: unit.to_owned(),
        folder,
        effort: SelftestEffort::Quick,
        file: None,
        lengths: Vec::new(),
    }
}

fn units() -> Vec<String> {
    ["reference", "cpu"].map(ToOwned::to_owned).to_vec()
}

#[test]
fn packages_of_the_suite_pass_on_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    assert!(suite::names().count() >= 9);
    for name in suite::names() {
        for unit in units() {
            let report = catalog::test(&task(name, &unit, folder.path())).unwrap();
            assert_eq!(report.outcome, SelftestVerdict::Passed, "{name} on {unit}: {report:?}");
            assert!(report.figures.contains_key("later_ms"), "{report:?}");
            let line = SelftestLine { subject: name.to_owned(), unit, report, seconds: 1.0 };
            let row = packages::row(&line).unwrap();
            assert!(row["passed"] == true && row["load_ms"].is_number(), "{row}");
            assert!(row.get("compile_ms").is_none() && row.get("plan").is_none(), "{row}");
        }
    }
}

#[test]
fn every_family_of_kernels_agrees_with_the_reference_on_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    for name in kernels::names() {
        let report = catalog::test(&task(&name, "cpu", folder.path())).unwrap();
        assert!(!report.outcome.is_failure(), "{name}: {report:?}");
    }
}

#[test]
fn kernels_of_every_instruction_set_agree_with_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let sets = galatea_kernels::Isa::available().into_iter().map(units::of_isa);
    let sets: Vec<String> = sets.collect();
    let names: Vec<String> =
        kernels::names().into_iter().filter(|name| kernels::differs_by_isa(name)).collect();
    for family in ["conv", "attention", "dot-product", "elements", "matmul-int8"] {
        assert!(names.iter().any(|name| name.contains(family)), "{family}");
    }
    for unit in &sets {
        for name in &names {
            let report = catalog::test(&task(name, unit, folder.path())).unwrap();
            assert_eq!(report.outcome, SelftestVerdict::Passed, "{name} on {unit}: {report:?}");
        }
    }
    for dot in galatea_kernels::isa::DotIsa::available() {
        let unit = products::integer_unit(dot);
        let report = catalog::test(&task("gemm-int8", &unit, folder.path())).unwrap();
        assert_eq!(report.outcome, SelftestVerdict::Passed, "{unit}: {report:?}");
    }
}

#[test]
fn packages_of_a_folder_are_compared_with_the_results_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    let made = suite::embedded(folder.path(), "layers").unwrap();
    let test = || {
        let mut task = task("layers", "cpu", folder.path());
        task.file = Some(made.package.clone());
        catalog::test(&task).unwrap().outcome
    };
    assert_eq!(test(), SelftestVerdict::Passed);
    let wrong: Vec<(String, Tensor)> = made
        .expected
        .iter()
        .map(|(name, tensor)| {
            let sevens = vec![7.0_f32; tensor.elements()];
            (name.clone(), Tensor::from_vec(tensor.shape(), sevens).unwrap())
        })
        .collect();
    let each = wrong.iter().map(|(name, tensor)| (name.as_str(), tensor));
    galatea_formats::npy::write_npz(&folder.path().join("layers.outputs.npz"), each).unwrap();
    assert_eq!(test(), SelftestVerdict::Failed);
}

#[test]
fn the_plan_has_many_subjects_and_each_once() {
    let all = catalog::planned(&units());
    assert!(all.len() >= 40, "{}", all.len());
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{one:?} is there twice");
    }
    assert!(all.iter().all(|one| !catalog::is_hidden(&one.name)));
    assert!(all.iter().any(|one| one.unit == "interpreter" || one.unit.starts_with("coreml-")));
}

#[test]
fn an_unknown_unit_or_subject_is_refused_with_those_that_there_are() {
    let chosen = |given: &[&str]| {
        let arguments = crate::arguments::parse::<SelftestArguments>(given).unwrap();
        chosen(catalog::planned(&units()), &arguments)
    };
    let error = chosen(&["--unit=npu"]).unwrap_err();
    assert!(error.contains("'npu'") && error.contains("cpu"), "{error}");
    let error = chosen(&["--subject=nothing"]).unwrap_err();
    assert!(error.contains("'nothing'") && error.contains("layers"), "{error}");
    let one = chosen(&["--unit=cpu", "--subject=layers"]).unwrap();
    assert_eq!(one, [catalog::PlannedSubject::of("layers", "cpu")]);
}
