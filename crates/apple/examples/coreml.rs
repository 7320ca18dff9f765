//! Tries a Core ML package on this machine: says what it takes and gives, on which devices its
//! operators would run, and how long predictions on zeros take with each choice of units.
//!
//! `cargo run -p galatea-apple --example coreml -- MODEL.mlpackage`

#![allow(clippy::print_stdout, reason = "a tool reports on its terminal")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use galatea_apple::coreml::{
    self, ArrayDataType, ArrayFeature, ComputeUnits, CoreMlFault, CoreMlLoadOptions, FeatureKind,
    LoadedModel, MultiArray, Prediction, PredictionOutput, PredictionSubmission,
};
use galatea_tensor::HostBuffer;

const UNITS: [ComputeUnits; 4] = [
    ComputeUnits::CpuOnly,
    ComputeUnits::CpuAndGpu,
    ComputeUnits::CpuAndNeuralEngine,
    ComputeUnits::All,
];

/// Predictions that are timed.
const RUNS: u32 = 20;

fn main() -> ExitCode {
    let Some(package) = std::env::args_os().nth(1).map(PathBuf::from) else {
        println!("usage: coreml MODEL.mlpackage");
        return ExitCode::FAILURE;
    };
    match attempt(&package) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            println!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(package: &Path) -> Result<(), CoreMlFault> {
    let compiled = package.with_extension("mlmodelc");
    if compiled.exists() {
        println!("{}: compiled earlier", compiled.display());
    } else {
        let start = Instant::now();
        coreml::compile(package, &compiled)?;
        println!("{}: compiled in {:.0?}", compiled.display(), start.elapsed());
    }
    match coreml::devices() {
        Ok(devices) => devices.iter().for_each(|device| println!("device: {device}")),
        Err(fault) => println!("{fault}"),
    }
    for units in UNITS {
        println!("\n{units:?}");
        let options = CoreMlLoadOptions { units, ..CoreMlLoadOptions::default() };
        match placed(&compiled, &options).and_then(|()| timed(&compiled, &options)) {
            Ok(()) => {}
            Err(fault) => println!("  {fault}"),
        }
    }
    Ok(())
}

/// Counts operators by the device that they would run on.
fn placed(compiled: &Path, options: &CoreMlLoadOptions) -> Result<(), CoreMlFault> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for operator in coreml::plan(compiled, options)? {
        let place = operator.preferred.map_or("none".to_owned(), |device| device.to_string());
        *counts.entry(place).or_default() += 1;
    }
    for (place, count) in counts {
        println!("  {count} operators: {place}");
    }
    Ok(())
}

fn timed(compiled: &Path, options: &CoreMlLoadOptions) -> Result<(), CoreMlFault> {
    let start = Instant::now();
    let model = LoadedModel::load(compiled, options)?;
    println!("  loaded in {:.0?}", start.elapsed());
    let described = model.describe();
    if options.units == ComputeUnits::CpuOnly {
        println!("  {described:#?}");
    }
    let mut inputs = Vec::new();
    for feature in described.inputs.iter().filter(|feature| !feature.optional) {
        if let FeatureKind::Array(array) = &feature.kind {
            inputs.push((feature.name.clone(), zeros(array)?));
        }
    }
    let mut backings = Vec::new();
    for feature in &described.outputs {
        if let FeatureKind::Array(array) = &feature.kind
            && !array.shape.is_empty()
        {
            let array = MultiArray::zeroed(array.data_type, &array.shape)?;
            backings.push((feature.name.clone(), array));
        }
    }
    let has_states = !described.states.is_empty();
    let mut state = if has_states { Some(model.new_state()?) } else { None };
    let start = Instant::now();
    for run in 0..RUNS {
        let given: Vec<(&str, &MultiArray)> = inputs.iter().map(|(n, a)| (n.as_str(), a)).collect();
        let mut taken: Vec<(&str, &mut MultiArray)> =
            backings.iter_mut().map(|(n, a)| (n.as_str(), a)).collect();
        let outputs = model.predict(Prediction {
            inputs: &given,
            backings: &mut taken,
            state: state.as_mut(),
        })?;
        if run == 0 {
            outputs.iter().for_each(|(name, output)| shown(name, output));
        }
    }
    println!("  a prediction takes {:.0?}", start.elapsed() / RUNS);
    submitted(&model, PredictionSubmission { inputs, backings, state })
}

/// The same once more, without waiting.
fn submitted(model: &LoadedModel, submission: PredictionSubmission) -> Result<(), CoreMlFault> {
    let (sender, receiver) = mpsc::channel();
    let start = Instant::now();
    model.submit(submission, Box::new(move |completed| drop(sender.send(completed))));
    let Ok(completed) = receiver.recv() else { return Ok(()) };
    println!("  a submission takes {:.0?}", start.elapsed());
    for (name, array) in completed.submission.backings {
        if let Ok(memory) = array.into_memory() {
            println!("  {name}: {} bytes without a copy", memory.len_bytes());
        }
    }
    completed.result.map(drop)
}

/// An input of zeros: FP16 in a surface, other types in memory that is not copied.
fn zeros(of: &ArrayFeature) -> Result<MultiArray, CoreMlFault> {
    if of.data_type == ArrayDataType::Float16 {
        let mut array = MultiArray::on_surface(of.data_type, &of.shape)?;
        array.copy_from(&vec![0; array.len_bytes()])?;
        return Ok(array);
    }
    let bytes = of.shape.iter().product::<usize>() * of.data_type.size_bytes();
    let memory = Arc::new(HostBuffer::zeroed(bytes));
    MultiArray::from_memory(memory, 0, of.data_type, &of.shape, None)
}

fn shown(name: &str, output: &PredictionOutput) {
    match output {
        PredictionOutput::Array(array) => {
            let mut bytes = vec![0; array.len_bytes()];
            let read = array.copy_to(&mut bytes);
            println!("  {name}: {} of shape {:?}: {read:?}", array.data_type(), array.shape());
        }
        other => println!("  {name}: {other:?}"),
    }
}
