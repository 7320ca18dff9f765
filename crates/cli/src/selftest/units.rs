//! The compute units that `galatea selftest` runs packages on, and one run of a package on one of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use galatea_apple::coreml::{
    self as door, ArrayDataType, ComputeUnits, CoreMlFaultKind, CoreMlLoadOptions,
    CoreMlPlannedOperator, LoadedModel, MultiArray, Prediction, PredictionOutput,
};
use galatea_formats::coreml;
use galatea_graph::converted;
use galatea_kernels::Isa;
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor, f16};

use super::suite::SelftestSubject;
use super::task::SelftestEffort;
use crate::engine;
use galatea::devices::{self, ProviderList};

/// Device or interpreter that a package runs on.
pub(super) enum SelftestUnit {
    /// The program operation by operation on a provider.
    Interpreter { name: String, providers: ProviderList },
    /// Core ML with these units.
    CoreMl { name: &'static str, units: ComputeUnits },
}

impl SelftestUnit {
    /// Its name in reports.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Interpreter { name, .. } => name,
            Self::CoreMl { name, .. } => name,
        }
    }
}

/// Every unit of this machine: the interpreter on the CPU and on each GPU, and those of Core ML.
pub(super) fn all(effort: SelftestEffort) -> Vec<SelftestUnit> {
    let mut found = Vec::new();
    for name in ["reference", "cpu"] {
        if let Ok(providers) = engine().providers(Some(name)) {
            found.push(SelftestUnit::Interpreter { name: name.to_owned(), providers });
        }
    }
    found.extend(gpus(effort));
    found.extend(core_ml());
    found
}

/// Names the unit of an instruction set of the CPU.
pub(super) fn of_isa(isa: Isa) -> String {
    format!("cpu-{}", isa.name())
}

/// The CPU with the kernels of each of its instruction sets, and without another library for products.
fn instruction_sets() -> Vec<SelftestUnit> {
    let unit = |isa: Isa| {
        let cpu: Arc<dyn ExecutionProvider> =
            Arc::new(CpuProvider::new().with_isa(isa).with_blas(None));
        let others = engine().providers(Some("reference")).unwrap_or_default();
        let providers = std::iter::once(cpu).chain(others).collect();
        SelftestUnit::Interpreter { name: of_isa(isa), providers }
    };
    Isa::available().into_iter().map(unit).collect()
}

/// Each GPU; those that the CPU emulates in a full test only.
fn gpus(effort: SelftestEffort) -> Vec<SelftestUnit> {
    let software = match effort {
        SelftestEffort::Quick => devices::SoftwareGpus::Ignored,
        SelftestEffort::Full => devices::SoftwareGpus::Counted,
    };
    let gpus = engine().gpu_providers(software).into_iter().enumerate();
    let unit = |(number, gpu): (usize, Arc<dyn ExecutionProvider>)| {
        let gpu = gpu.forced().unwrap_or(gpu);
        let providers = std::iter::once(gpu).chain(devices::processor()).collect();
        SelftestUnit::Interpreter { name: format!("gpu:{number}"), providers }
    };
    gpus.map(unit).collect()
}

/// Finds the unit of that name, and opens no other.
///
/// # Errors
/// Fails when there is none.
pub(super) fn find(name: &str, effort: SelftestEffort) -> Result<SelftestUnit, String> {
    let all = match name {
        "reference" | "cpu" => {
            let providers = engine().providers(Some(name))?;
            return Ok(SelftestUnit::Interpreter { name: name.to_owned(), providers });
        }
        _ if name.starts_with("gpu:") => gpus(effort),
        _ if name.starts_with("cpu-") => instruction_sets(),
        _ => core_ml(),
    };
    let found = all.into_iter().find(|unit| unit.name() == name);
    found.ok_or_else(|| format!("there is no unit '{name}'"))
}

/// Core ML's, as far as there are devices for them. Before macOS 14 nobody says which there are.
fn core_ml() -> Vec<SelftestUnit> {
    let devices = match door::devices() {
        Err(fault) if fault.kind == CoreMlFaultKind::Unavailable => return Vec::new(),
        found => found.ok(),
    };
    let has = |wanted: fn(&door::CoreMlDevice) -> bool| {
        devices.as_ref().is_none_or(|devices| devices.iter().any(wanted))
    };
    let gpu = has(|device| matches!(device, door::CoreMlDevice::Gpu { .. }));
    let engine = has(|device| matches!(device, door::CoreMlDevice::NeuralEngine { .. }));
    let units = [
        (true, "coreml-cpu", ComputeUnits::CpuOnly),
        (gpu, "coreml-cpu-gpu", ComputeUnits::CpuAndGpu),
        (engine, "coreml-cpu-ane", ComputeUnits::CpuAndNeuralEngine),
        (true, "coreml-all", ComputeUnits::All),
    ];
    let there = units.into_iter().filter(|(there, _, _)| *there);
    there.map(|(_, name, units)| SelftestUnit::CoreMl { name, units }).collect()
}

/// Results of a package on a device; those that were not found out are absent.
#[derive(Default)]
pub(super) struct SelftestOutcome {
    /// Why it failed.
    pub(super) error: Option<String>,
    /// The largest difference as a share of the largest value of an output.
    pub(super) difference: Option<f64>,
    pub(super) load_ms: Option<f64>,
    pub(super) first_ms: Option<f64>,
    /// The median of the runs behind the first.
    pub(super) later_ms: Option<f64>,
    /// Device on which Core ML plans to run each operator.
    pub(super) plan: Vec<CoreMlPlannedOperator>,
}

/// Runs behind the first that are timed.
const RUNS: usize = 9;

/// A package as this system compiles it, for the units of Core ML.
pub(super) struct SelftestPackage {
    pub(super) folder: Result<PathBuf, String>,
    pub(super) ms: f64,
}

/// Compiles a package into a folder that is not there yet.
pub(super) fn compile(package: &Path, into: &Path) -> SelftestPackage {
    let started = Instant::now();
    let made = door::compile(package, into).map_err(|fault| fault.to_string());
    SelftestPackage { folder: made.map(|()| into.to_owned()), ms: milliseconds(started) }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Runs a package on a unit and compares what it gives.
pub(super) fn run(
    unit: &SelftestUnit,
    subject: &SelftestSubject,
    compiled: Option<&SelftestPackage>,
) -> SelftestOutcome {
    let mut outcome = SelftestOutcome::default();
    let ran = match unit {
        SelftestUnit::Interpreter { providers, .. } => {
            interpreted(subject, providers, &mut outcome)
        }
        SelftestUnit::CoreMl { units, .. } => match compiled.map(|compiled| &compiled.folder) {
            Some(Ok(folder)) => predicted(subject, folder, *units, &mut outcome),
            Some(Err(error)) => Err(format!("compiling: {error}")),
            None => Err("the package was not compiled".to_owned()),
        },
    };
    if let Err(error) = ran {
        outcome.error = Some(error);
    }
    outcome
}

/// Times runs, the first one apart, and gives the results of the last.
fn timed(
    outcome: &mut SelftestOutcome,
    mut once: impl FnMut() -> Result<Vec<(String, Tensor)>, String>,
) -> Result<Vec<(String, Tensor)>, String> {
    let started = Instant::now();
    let mut found = once()?;
    outcome.first_ms = Some(milliseconds(started));
    let mut all = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let started = Instant::now();
        found = once()?;
        all.push(milliseconds(started));
    }
    all.sort_by(f64::total_cmp);
    outcome.later_ms = all.get(RUNS / 2).copied();
    Ok(found)
}

fn interpreted(
    subject: &SelftestSubject,
    providers: &ProviderList,
    outcome: &mut SelftestOutcome,
) -> Result<(), String> {
    let started = Instant::now();
    let model = coreml::load(&subject.package).map_err(|error| error.to_string())?;
    let function = model.function(None).map_err(|error| error.to_string())?;
    let session = Session::new(function.graph.clone(), providers, &SessionOptions::default());
    let session = session.map_err(|error| error.to_string())?;
    outcome.load_ms = Some(milliseconds(started));
    let inputs: Vec<(&str, Tensor)> =
        subject.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let found = timed(outcome, || {
        let found = session.run_tensors(Run::named(&inputs)).map_err(|error| error.to_string())?;
        let names = session.outputs().iter().map(|output| output.name.clone());
        Ok(names.zip(found).collect())
    })?;
    compare(subject, &found, outcome)
}

fn predicted(
    subject: &SelftestSubject,
    compiled: &Path,
    units: ComputeUnits,
    outcome: &mut SelftestOutcome,
) -> Result<(), String> {
    let options = CoreMlLoadOptions { units, ..CoreMlLoadOptions::default() };
    let started = Instant::now();
    let model = LoadedModel::load(compiled, &options).map_err(|fault| fault.to_string())?;
    outcome.load_ms = Some(milliseconds(started));
    // Before macOS 14.4 there is no plan.
    outcome.plan = door::plan(compiled, &options).unwrap_or_default();
    let mut arrays = Vec::with_capacity(subject.inputs.len());
    for (name, tensor) in &subject.inputs {
        arrays.push((name.as_str(), array(tensor)?));
    }
    let inputs: Vec<(&str, &MultiArray)> =
        arrays.iter().map(|(name, array)| (*name, array)).collect();
    let found = timed(outcome, || {
        let prediction = Prediction { inputs: &inputs, backings: &mut [], state: None };
        let given = model.predict(prediction).map_err(|fault| fault.to_string())?;
        let each = given.into_iter().map(|(name, output)| match output {
            PredictionOutput::Array(array) => Ok((name, tensor(&array)?)),
            other => Err(format!("output '{name}' is {other:?}, expected an array")),
        });
        each.collect()
    })?;
    compare(subject, &found, outcome)
}

/// A tensor as an array of Core ML's.
fn array(tensor: &Tensor) -> Result<MultiArray, String> {
    let fault = |error: &dyn std::fmt::Display| error.to_string();
    let (data_type, bytes) = match tensor.dtype() {
        DataType::Fp32 => {
            let all = tensor.to_vec::<f32>().map_err(|error| fault(&error))?;
            (
                ArrayDataType::Float32,
                all.into_iter().flat_map(f32::to_ne_bytes).collect::<Vec<u8>>(),
            )
        }
        DataType::Int32 => {
            let all = tensor.to_vec::<i32>().map_err(|error| fault(&error))?;
            (ArrayDataType::Int32, all.into_iter().flat_map(i32::to_ne_bytes).collect())
        }
        DataType::Fp16 => {
            let all = tensor.to_vec::<f16>().map_err(|error| fault(&error))?;
            (ArrayDataType::Float16, all.into_iter().flat_map(f16::to_ne_bytes).collect())
        }
        other => return Err(format!("an input of {other}, Core ML takes FP32, FP16 and INT32")),
    };
    let mut array = MultiArray::zeroed(data_type, tensor.shape()).map_err(|error| fault(&error))?;
    array.copy_from(&bytes).map_err(|error| fault(&error))?;
    Ok(array)
}

/// Elements of so many bytes each.
fn elements<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).filter_map(|chunk| chunk.try_into().ok()).map(read).collect()
}

/// An array of Core ML's as a tensor.
fn tensor(array: &MultiArray) -> Result<Tensor, String> {
    let mut bytes = vec![0; array.len_bytes()];
    array.copy_to(&mut bytes).map_err(|fault| fault.to_string())?;
    let shape = array.shape();
    let made = match array.data_type() {
        ArrayDataType::Float32 => Tensor::from_vec(shape, elements(&bytes, f32::from_ne_bytes)),
        ArrayDataType::Float16 => Tensor::from_vec(shape, elements(&bytes, f16::from_ne_bytes)),
        ArrayDataType::Double => Tensor::from_vec(shape, elements(&bytes, f64::from_ne_bytes)),
        ArrayDataType::Int32 => Tensor::from_vec(shape, elements(&bytes, i32::from_ne_bytes)),
        ArrayDataType::Int8 => Tensor::from_vec(shape, elements(&bytes, i8::from_ne_bytes)),
    };
    made.map_err(|error| error.to_string())
}

/// Compares results with the expected ones.
fn compare(
    subject: &SelftestSubject,
    found: &[(String, Tensor)],
    outcome: &mut SelftestOutcome,
) -> Result<(), String> {
    let worst = difference(&subject.expected, found)?;
    outcome.difference = Some(worst);
    within(worst, subject.tolerance)
}

/// Says by how much a difference is too large, if it is.
///
/// # Errors
/// Fails when it is.
pub(super) fn within(worst: f64, tolerance: f64) -> Result<(), String> {
    match worst <= tolerance {
        true => Ok(()),
        false => Err(format!("off by {worst:.2e} of the largest value, allowed {tolerance:.0e}")),
    }
}

/// Returns the largest difference as a share of the largest value of an output.
///
/// # Errors
/// Fails when an output is missing or has another shape.
pub(super) fn difference(
    expected: &[(String, Tensor)],
    found: &[(String, Tensor)],
) -> Result<f64, String> {
    let wide = |tensor: &Tensor| {
        let wide = converted(tensor, DataType::Fp64).and_then(|wide| Ok(wide.to_vec::<f64>()?));
        wide.map_err(|error| error.to_string())
    };
    let mut worst: f64 = 0.0;
    for (name, expected) in expected {
        let result = found.iter().find(|(known, _)| known == name);
        let (_, result) = result.ok_or_else(|| format!("output '{name}' is missing"))?;
        if result.elements() != expected.elements() {
            let found = result.shape();
            let wanted = expected.shape();
            return Err(format!("output '{name}' has shape {found:?}, expected {wanted:?}"));
        }
        let result = wide(result)?;
        let expected = wide(expected)?;
        // Beside an infinity every difference would be nothing.
        let finite = expected.iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0_f64, |most, value| most.max(value.abs()));
        for (a, b) in result.iter().zip(&expected) {
            let same = a == b || (a.is_nan() && b.is_nan());
            let off = if same { 0.0 } else { (a - b).abs() / largest.max(1e-6) };
            // What is no number is as far off as can be.
            worst = worst.max(if off.is_nan() { f64::INFINITY } else { off });
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(expected: Vec<f32>) -> SelftestSubject {
        SelftestSubject {
            name: "a".to_owned(),
            package: PathBuf::new(),
            inputs: Vec::new(),
            expected: vec![("y".to_owned(), Tensor::vector(expected))],
            tolerance: 1e-2,
        }
    }

    #[test]
    fn results_that_are_off_missing_or_no_numbers_fail() {
        let check = |found: &[(String, Tensor)]| {
            let mut outcome = SelftestOutcome::default();
            let result = compare(&subject(vec![1.0, 100.0]), found, &mut outcome);
            (result, outcome.difference)
        };
        let named = |all: Vec<f32>| [("y".to_owned(), Tensor::vector(all))];
        assert!(check(&named(vec![1.5, 100.0])).0.is_ok());
        assert!(check(&named(vec![1.0, 102.0])).0.unwrap_err().contains("off by 2.00e-2"));
        assert_eq!(check(&named(vec![f32::NAN, 100.0])).1, Some(f64::INFINITY));
        let masked = subject(vec![f32::NEG_INFINITY, 100.0]);
        for (first, second, right) in [
            (f32::NEG_INFINITY, 100.0, true),
            (f32::NEG_INFINITY, 50.0, false),
            (0.0, 100.0, false),
            (f32::NAN, 100.0, false),
        ] {
            let found =
                compare(&masked, &named(vec![first, second]), &mut SelftestOutcome::default());
            assert_eq!(found.is_ok(), right, "{first} {second}");
        }
        assert!(check(&named(vec![1.0])).0.unwrap_err().contains("shape [1]"));
        assert!(check(&[]).0.unwrap_err().contains("'y' is missing"));
    }

    #[test]
    fn bytes_become_elements_of_their_size() {
        let bytes: Vec<u8> = [1.5_f32, -2.0].into_iter().flat_map(f32::to_ne_bytes).collect();
        assert_eq!(elements(&bytes, f32::from_ne_bytes), [1.5, -2.0]);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_are_no_units_of_core_ml() {
        assert!(core_ml().is_empty());
        assert!(all(SelftestEffort::Quick).iter().any(|unit| unit.name() == "cpu"));
    }
}
