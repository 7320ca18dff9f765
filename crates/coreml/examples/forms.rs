//! Converts an ONNX model to packages of Core ML at the levels O2 and O3 and prints what the programs
//! consist of, how long the processor takes for those in FP32 and the provider `coreml` in FP16, and how
//! far results are from those of the model itself, against the largest one.
//!
//! `core_ml_forms MODEL [--length NAME=N]… [--write FOLDER] [--dynamic]`: symbols of shapes without a number are 1;
//! `--write` keeps the packages of FP16; `--dynamic` quantises the model first, as `galatea quantize --mode dynamic` does,
//! and results are then compared with those of that model.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use galatea_coreml::{ConvertOptions, CoreMlProvider, convert};
use galatea_formats::coreml::mil::{MilElement, MilFunction};
use galatea_formats::coreml::{interpret, write_package};
use galatea_graph::rewrite::RewriteLevel;
use galatea_graph::{Dim, Fact, Graph};
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::quantize::{QuantizeContext, QuantizeMode, QuantizeOptions, quantize};
use galatea_runtime::{ExecutionProvider, OptimiseLevel, Run, Session, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, Tensor};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Words below 1000 for integers, everything seen by masks, numbers between -1 and 1.
fn made_up(name: &str, dtype: DataType, shape: &[usize]) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let spread = |at: usize| at * 7919 % 1000;
    let word = |at: usize| match name {
        name if name.contains("mask") => 1,
        name if name.contains("type") => 0,
        _ => i64::try_from(spread(at)).unwrap_or(0) + 1,
    };
    Ok(match dtype {
        DataType::Int64 => Tensor::from_vec(shape, (0..count).map(word).collect::<Vec<i64>>())?,
        _ => {
            let value = |at: usize| u16::try_from(spread(at)).map_or(0.0, f32::from) / 500.0 - 1.0;
            Tensor::from_vec(shape, (0..count).map(value).collect::<Vec<f32>>())?
        }
    })
}

/// Runs a graph on these providers at a level; returns its outputs and the time of its second run.
fn run(
    graph: Graph,
    (providers, level): (&[Arc<dyn ExecutionProvider>], OptimiseLevel),
    inputs: &[Tensor],
) -> Result<(Vec<Vec<f32>>, f64)> {
    let options = SessionOptions { optimise: level, ..SessionOptions::default() };
    let names: Vec<String> = graph.inputs.iter().map(|&id| graph.value(id).name.clone()).collect();
    let session = Session::new(graph, providers, &options)?;
    let fed: Vec<(&str, Tensor)> =
        names.iter().map(String::as_str).zip(inputs.iter().cloned()).collect();
    session.run_tensors(Run::named(&fed))?;
    let started = Instant::now();
    let found = session.run_tensors(Run::named(&fed))?;
    let seconds = started.elapsed().as_secs_f64();
    let wide = |tensor: &Tensor| -> Result<Vec<f32>> {
        Ok(galatea_graph::converted(&tensor.contiguous()?, DataType::Fp32)?.to_vec()?)
    };
    Ok((found.iter().map(wide).collect::<Result<_>>()?, seconds))
}

fn apart(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    let each = found.iter().zip(expected).map(|(found, expected)| {
        let largest = expected.iter().fold(1e-20_f32, |most, value| most.max(value.abs()));
        let far = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
        far.fold(0.0_f32, |most, far| if far.is_nan() { f32::NAN } else { most.max(far) }) / largest
    });
    each.fold(0.0_f32, |worst, far| if far.is_nan() { f32::INFINITY } else { worst.max(far) })
}

/// Operations of a program of FP16 that are computed in FP32.
fn computed_wide(function: &MilFunction) -> usize {
    let computed = function.block.operations.iter().filter(|operation| {
        !operation.operator.starts_with("const") && operation.operator != "cast"
    });
    let is_wide = |found: &galatea_formats::coreml::mil::MilType| {
        found.as_tensor().is_some_and(|one| one.element == MilElement::Fp32)
    };
    computed.filter(|operation| operation.outputs.iter().any(|(_, found)| is_wide(found))).count()
}

/// The graph with weights of 8 bits, and activations that are quantised as a run goes.
fn quantised(graph: &Graph) -> Result<Graph> {
    let providers: Vec<Arc<dyn ExecutionProvider>> = vec![Arc::new(CpuProvider::new())];
    let session = SessionOptions::default();
    let context = QuantizeContext {
        providers: &providers,
        session: &session,
        calibration: &[],
        evaluation: &[],
    };
    let options = QuantizeOptions::new(QuantizeMode::Dynamic);
    Ok(quantize(graph, &context, &options, &mut |_| {})?.graph)
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let path = words.first().ok_or("expected MODEL")?;
    let after = |name: &str| -> Vec<&String> {
        words.windows(2).filter(|pair| pair[0] == name).map(|pair| &pair[1]).collect()
    };
    let mut lengths = OrderedMap::new();
    for text in after("--length") {
        let (name, number) = text.split_once('=').ok_or("expected NAME=N")?;
        lengths.insert(name.to_owned(), number.parse::<usize>()?);
    }
    let mut graph = galatea_formats::onnx::load(Path::new(path))?;
    if words.iter().any(|word| word == "--dynamic") {
        graph = quantised(&graph)?;
    }
    graph.sort()?;
    let (mut shapes, mut inputs) = (OrderedMap::new(), Vec::new());
    for &id in &graph.inputs {
        let value = graph.value(id);
        let fact = value.declared.clone().ok_or("an input without a type")?;
        let number = |name: &str| Some(lengths.get(name).copied().unwrap_or(1));
        let dims = fact.shape.ok_or("an input without a shape")?;
        let shape: Vec<usize> =
            dims.iter().map(|dim: &Dim| dim.evaluate(&number).unwrap_or(1)).collect();
        inputs.push(made_up(&value.name, fact.dtype, &shape)?);
        shapes.insert(value.name.clone(), shape);
    }
    for (&id, tensor) in graph.inputs.clone().iter().zip(&inputs) {
        graph.value_mut(id).declared = Some(Fact::fixed(tensor.dtype(), tensor.shape()));
    }
    let cpu: Arc<dyn ExecutionProvider> = Arc::new(CpuProvider::new());
    let (expected, seconds) =
        run(graph.clone(), (&[Arc::clone(&cpu)], OptimiseLevel::O2), &inputs)?;
    println!("{path}: {:.0} ms as it is", seconds * 1e3);
    for (level, half) in [
        (RewriteLevel::O2, false),
        (RewriteLevel::O2, true),
        (RewriteLevel::O3, false),
        (RewriteLevel::O3, true),
    ] {
        let options =
            ConvertOptions { half, level, shapes: shapes.clone(), ..ConvertOptions::default() };
        let package = convert(&graph, &options)?;
        let function = &package.program.functions["main"];
        let mut counts: OrderedMap<&str, usize> = OrderedMap::new();
        for operation in &function.block.operations {
            *counts.entry(operation.operator.as_str()).or_default() += 1;
        }
        counts.remove("const");
        let all: usize = counts.values().sum();
        println!("{level}, FP{}: {all} operations {counts:?}", if half { 16 } else { 32 });
        if half {
            println!("  {} of them in FP32", computed_wide(function));
            if let Some(folder) = after("--write").first() {
                let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
                let name = format!("{stem}-{level}.mlpackage");
                write_package(&Path::new(folder).join(name), &package)?;
            }
            continue;
        }
        let fed = inputs.iter().map(|tensor| {
            let dtype = if tensor.dtype().is_float() { DataType::Fp32 } else { DataType::Int32 };
            galatea_graph::converted(tensor, dtype)
        });
        let fed = fed.collect::<std::result::Result<Vec<Tensor>, _>>()?;
        let program = interpret("main", function)?;
        let (found, seconds) = run(program, (&[Arc::clone(&cpu)], OptimiseLevel::O1), &fed)?;
        println!("  {:.1e} apart, {:.0} ms", apart(&found, &expected), seconds * 1e3);
    }
    let first = CoreMlProvider::new().forced();
    let (found, seconds) = run(graph, (&[first, cpu], OptimiseLevel::O2), &inputs)?;
    println!("provider, FP16: {:.1e} apart, {:.0} ms", apart(&found, &expected), seconds * 1e3);
    Ok(())
}
