//! The subjects of a selftest, and the units that each runs on.

use std::path::{Path, PathBuf};

use galatea_kernels::Isa;
use galatea_kernels::isa::DotIsa;

use super::line::{SubjectOutcome, SubjectReport};
use super::task::SubjectTask;
use super::{
    apple, core_ml, gpu, host, kernels, language, packages, products, suite, units, workers,
};

/// Unit of what belongs to no device.
pub(super) const HOST: &str = "host";
/// Hidden subject that lists the units.
pub(super) const UNITS: &str = "units";

/// The units that a subject runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubjectUnits {
    Host,
    Cpu,
    /// Each instruction set of the CPU.
    InstructionSets,
    /// Each set of integer instructions of the CPU.
    IntegerSets,
    Gpus,
    /// The CPU and each GPU.
    Devices,
    /// Core ML with each choice of units, or the interpreter.
    Engines,
}

/// A subject.
struct SubjectRow {
    name: &'static str,
    units: SubjectUnits,
    test: fn(&SubjectTask) -> SubjectOutcome,
}

/// The subjects beside packages and kernels, in the order of the report.
const ROWS: &[SubjectRow] = &[
    SubjectRow { name: "system", units: SubjectUnits::Host, test: host::system },
    SubjectRow { name: "chip", units: SubjectUnits::Host, test: host::chip },
    SubjectRow { name: "load", units: SubjectUnits::Host, test: apple::load },
    SubjectRow { name: "sensors", units: SubjectUnits::Host, test: apple::sensors },
    SubjectRow { name: "heat", units: SubjectUnits::Host, test: apple::heat },
    SubjectRow { name: "battery", units: SubjectUnits::Host, test: apple::battery },
    SubjectRow { name: "qos", units: SubjectUnits::Host, test: apple::qos },
    SubjectRow { name: "shared-memory", units: SubjectUnits::Host, test: host::shared_memory },
    SubjectRow { name: "temporary-files", units: SubjectUnits::Host, test: host::temporary_files },
    SubjectRow { name: "python-worker", units: SubjectUnits::Host, test: workers::python },
    SubjectRow { name: "peaks", units: SubjectUnits::Cpu, test: host::peaks },
    SubjectRow { name: "accelerate", units: SubjectUnits::Cpu, test: apple::accelerate },
    SubjectRow { name: "bnns", units: SubjectUnits::Cpu, test: apple::bnns },
    SubjectRow { name: "gemm-fp32", units: SubjectUnits::InstructionSets, test: products::fp32 },
    SubjectRow { name: "gemm-fp16", units: SubjectUnits::InstructionSets, test: products::fp16 },
    SubjectRow { name: "gemm-bf16", units: SubjectUnits::InstructionSets, test: products::bf16 },
    SubjectRow { name: "gemm-int8", units: SubjectUnits::IntegerSets, test: products::int8 },
    SubjectRow { name: "gpu-limits", units: SubjectUnits::Gpus, test: gpu::limits },
    SubjectRow { name: "gpu-peaks", units: SubjectUnits::Gpus, test: gpu::peaks },
    SubjectRow { name: "gpu-timestamps", units: SubjectUnits::Gpus, test: gpu::timestamps },
    SubjectRow {
        name: "gpu-zero-timestamps",
        units: SubjectUnits::Gpus,
        test: gpu::zero_timestamps,
    },
    SubjectRow { name: "gpu-failures", units: SubjectUnits::Gpus, test: gpu::failures },
    SubjectRow { name: "gpu-long-run", units: SubjectUnits::Gpus, test: gpu::long_run },
    SubjectRow { name: "idle-latency", units: SubjectUnits::Devices, test: kernels::idle_latency },
    SubjectRow {
        name: "worker-predictions",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(core_ml::predictions(task)),
    },
    SubjectRow {
        name: "worker-not-finite",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(core_ml::not_finite(task)),
    },
    SubjectRow {
        name: "worker-ranges",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(core_ml::ranges(task)),
    },
    SubjectRow {
        name: "worker-enumerated",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(core_ml::enumerated(task)),
    },
    SubjectRow {
        name: "worker-states",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(core_ml::states(task)),
    },
    SubjectRow {
        name: "worker-functions",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(core_ml::functions(task)),
    },
    SubjectRow {
        name: "worker-restart",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(core_ml::restart(task)),
    },
    SubjectRow { name: "language-model", units: SubjectUnits::Devices, test: language::steps },
    SubjectRow {
        name: "worker-language-model",
        units: SubjectUnits::Engines,
        test: |task| core_ml::told(language::chunks(task)),
    },
];

/// Subjects that run only where they are named.
const HIDDEN: &[SubjectRow] = &[
    SubjectRow { name: UNITS, units: SubjectUnits::Host, test: list_units },
    SubjectRow { name: "test-panic", units: SubjectUnits::Host, test: panics },
    SubjectRow { name: "test-abort", units: SubjectUnits::Host, test: |_| std::process::abort() },
    SubjectRow { name: "test-hang", units: SubjectUnits::Host, test: hangs },
    SubjectRow {
        name: "test-pass",
        units: SubjectUnits::Host,
        test: |_| Ok(SubjectReport::passed()),
    },
];

#[allow(clippy::panic, reason = "this is what it is for")]
fn panics(_: &SubjectTask) -> SubjectOutcome {
    panic!("a subject that panics")
}

fn hangs(_: &SubjectTask) -> SubjectOutcome {
    loop {
        std::thread::park();
    }
}

fn list_units(task: &SubjectTask) -> SubjectOutcome {
    let names: Vec<String> =
        units::all(task.effort).iter().map(|unit| unit.name().to_owned()).collect();
    Ok(SubjectReport::passed().fact(UNITS, names.join(" ")))
}

/// Returns whether a subject runs only where it is named.
pub(super) fn is_hidden(name: &str) -> bool {
    HIDDEN.iter().any(|row| row.name == name)
}

/// A subject that is to run on a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedSubject {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) file: Option<PathBuf>,
}

impl PlannedSubject {
    pub(super) fn of(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned(), file: None }
    }
}

/// Plans files of packages or models on these units.
pub(super) fn of_files(files: &[PathBuf], units: &[String]) -> Vec<PlannedSubject> {
    let each = files.iter().flat_map(|file| {
        let name = suite::stem(file);
        units.iter().map(move |unit| PlannedSubject {
            file: Some(file.clone()),
            ..PlannedSubject::of(&name, unit)
        })
    });
    each.collect()
}

/// Plans the whole suite on these units.
pub(super) fn planned(units: &[String]) -> Vec<PlannedSubject> {
    let mut all = Vec::new();
    for row in ROWS {
        all.extend(row.units.among(units).iter().map(|unit| PlannedSubject::of(row.name, unit)));
    }
    for name in kernels::names() {
        // One line says that there is no GPU.
        let there = SubjectUnits::Devices.among(units).into_iter().filter(|unit| unit != gpu::NONE);
        all.extend(there.map(|unit| PlannedSubject::of(&name, &unit)));
        if kernels::differs_by_isa(&name) {
            let sets = SubjectUnits::InstructionSets.among(units);
            all.extend(sets.iter().map(|unit| PlannedSubject::of(&name, unit)));
        }
    }
    for name in suite::names() {
        all.extend(units.iter().map(|unit| PlannedSubject::of(name, unit)));
    }
    all
}

impl SubjectUnits {
    /// Selects the units among those of this machine.
    fn among(self, units: &[String]) -> Vec<String> {
        let beginning = |start: &str, none: &str| -> Vec<String> {
            let found = units.iter().filter(|unit| unit.starts_with(start)).cloned();
            let found: Vec<String> = found.collect();
            if found.is_empty() { vec![none.to_owned()] } else { found }
        };
        let cpu = || vec!["cpu".to_owned()];
        match self {
            Self::Host => vec![HOST.to_owned()],
            Self::Cpu => cpu(),
            Self::InstructionSets => {
                Isa::available().iter().map(|isa| units::of_isa(*isa)).collect()
            }
            Self::IntegerSets => {
                DotIsa::available().iter().map(|dot| products::integer_unit(*dot)).collect()
            }
            Self::Gpus => beginning("gpu:", gpu::NONE),
            Self::Devices => cpu().into_iter().chain(beginning("gpu:", gpu::NONE)).collect(),
            Self::Engines => beginning("coreml-", core_ml::INTERPRETER),
        }
    }
}

/// Tests a subject in this process.
pub(super) fn test(task: &SubjectTask) -> SubjectOutcome {
    let name = task.subject.as_str();
    if let Some(file) = &task.file {
        return packages::test_file(task, Path::new(file));
    }
    if let Some(row) = ROWS.iter().chain(HIDDEN).find(|row| row.name == name) {
        return match task.unit == gpu::NONE {
            true => Ok(SubjectReport::skipped(gpu::why_none())),
            false => (row.test)(task),
        };
    }
    match kernels::find(name) {
        Some(kernel) => kernels::test(&kernel, task),
        None => packages::test(task),
    }
}
