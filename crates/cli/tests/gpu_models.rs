//! Models on the GPU provider beside the processor.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea::devices;
use galatea_graph::Dim;
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, IoInfo, ProviderClaims,
    ProviderTraits, Run, RuntimeError, Session, SessionOptions,
};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models")
}

/// The providers with a GPU first; none where the host has not even a software one, which is said.
fn with_gpu() -> Option<devices::ProviderList> {
    let providers = galatea::Engine::new().providers(Some("gpu"));
    if let Err(error) = &providers {
        eprintln!("skipped: {error}");
    }
    providers.ok()
}

/// An input of numbers between 0 and 1, or of small integers.
fn made_up(info: &IoInfo, batch: usize) -> Option<Tensor> {
    let len = |dim: &Dim| match dim {
        Dim::Known(len) => *len,
        Dim::Symbol(name) if name.contains("batch") => batch,
        _ => 24,
    };
    let shape: Vec<usize> = info.dims.iter().map(len).collect();
    let count: usize = shape.iter().product();
    let number = |at: usize| (at * 37 + 11) % 101;
    match info.dtype {
        DataType::Fp32 => {
            let values = (0..count).map(|at| f32::from(u8::try_from(number(at)).unwrap()) / 101.0);
            Tensor::from_vec(&shape, values.collect()).ok()
        }
        DataType::Int64 => {
            let values = (0..count).map(|at| i64::try_from(number(at)).unwrap());
            Tensor::from_vec(&shape, values.collect()).ok()
        }
        _ => None,
    }
}

#[test]
fn sample_models_give_on_the_gpu_what_they_give_on_the_processor() {
    let Some(gpu) = with_gpu() else { return };
    let (mut tried, mut on_it) = (0, 0);
    for entry in std::fs::read_dir(samples()).unwrap() {
        let path = entry.unwrap().path().join("1/model.onnx");
        if !path.exists() {
            continue;
        }
        let graph = galatea_formats::onnx::load(&path).unwrap();
        let options = SessionOptions { threads: 2, ..SessionOptions::default() };
        let on_gpu = Session::new(graph.clone(), &gpu, &options).unwrap();
        let processor = Session::new(graph, &devices::processor(), &options).unwrap();
        on_it += usize::from(on_gpu.partition_providers().contains(&"gpu"));
        for batch in [1, 3] {
            let made = processor.inputs().iter().map(|info| made_up(info, batch));
            let Some(inputs) = made.collect::<Option<Vec<Tensor>>>() else { continue };
            let names = processor.inputs().iter().map(|info| info.name.as_str());
            let inputs: Vec<(&str, Tensor)> = names.zip(inputs).collect();
            let tolerance = Tolerance::Accumulated { terms: 1024, accumulator: DataType::Fp32 };
            let (found, expected) = (
                on_gpu.run_tensors(Run::named(&inputs)).unwrap(),
                processor.run_tensors(Run::named(&inputs)).unwrap(),
            );
            for (found, expected) in found.iter().zip(&expected) {
                compare(found, expected, tolerance).unwrap();
            }
            tried += 1;
        }
    }
    assert!(tried > 0 && on_it > 0, "{tried} runs, {on_it} models on the GPU");
}

/// A provider that takes whatever it can of some nodes, at no cost, and nothing else.
#[derive(Debug)]
struct Within(Arc<dyn ExecutionProvider>, Range<usize>);

impl ExecutionProvider for Within {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named(self.0.name())
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let mut claims = self.0.claim(request);
        claims.withdraw(&(0..self.1.start));
        claims.withdraw(&(self.1.end..request.graph.nodes.len()));
        claims.claims.iter_mut().for_each(|claim| claim.cost_ns = 0.0);
        ProviderClaims { launch_ns: 0.0, transfer_ns_per_byte: 0.0, order: None, ..claims }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        self.0.compile(request)
    }
}

#[test]
fn a_model_on_three_units_gives_what_it_gives_on_one() {
    if with_gpu().is_none() {
        return;
    }
    let units = galatea::Engine::new().providers(Some("gpu,coreml,cpu")).unwrap();
    let graph = galatea_formats::onnx::load(&samples().join("digits/1/model.onnx")).unwrap();
    let options = SessionOptions { threads: 2, ..SessionOptions::default() };
    let processor = Session::new(graph.clone(), &units[2..], &options).unwrap();
    let nodes = processor.graph().nodes.len();
    let (first, second) = (nodes / 3, 2 * nodes / 3);
    let shards: [Arc<dyn ExecutionProvider>; 3] = [
        Arc::new(Within(Arc::clone(&units[0]), 0..first)),
        Arc::new(Within(Arc::clone(&units[1]), first..second)),
        Arc::clone(&units[2]),
    ];
    let sharded = Session::new(graph, &shards, &options).unwrap();
    assert_eq!(sharded.partition_providers(), ["gpu", "coreml", "cpu"]);
    let inputs: Vec<(&str, Tensor)> = processor
        .inputs()
        .iter()
        .map(|info| (info.name.as_str(), made_up(info, 3).unwrap()))
        .collect();
    let (found, expected) = (
        sharded.run_tensors(Run::named(&inputs)).unwrap(),
        processor.run_tensors(Run::named(&inputs)).unwrap(),
    );
    for (found, expected) in found.iter().zip(&expected) {
        let [found, expected] = [found, expected].map(|one| one.to_vec::<f32>().unwrap());
        let largest = expected.iter().fold(0.0_f32, |most, one| most.max(one.abs()));
        // The engine computes in FP16.
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= largest * 0.01;
        assert!(found.iter().zip(&expected).all(near), "{found:?} is not {expected:?}");
    }
}
