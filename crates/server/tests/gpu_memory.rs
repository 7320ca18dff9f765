//! Models on several GPUs, and how configurations say what their memory is like.

#![cfg(any(feature = "gpu", target_os = "macos"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use galatea::units;
use galatea_gpu::{Device, GpuProvider, devices};
use galatea_runtime::{ExecutionProvider, SessionOptions};
use galatea_serving::backend::onnx::OnnxBackend;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{Core, CoreOptions, InferenceRequest};
use galatea_tensor::DataType;

/// The first device opened so many times; none where the host has none, which is said.
fn opened(times: usize) -> Option<Vec<Arc<Device>>> {
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return None;
    }
    Some((0..times).map(|_| Device::open(0).unwrap()).collect())
}

/// A server of the sample model `simple` with a configuration, on these GPUs.
fn serve(config: &str, gpus: &[Arc<Device>]) -> (Arc<Core>, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/simple");
    let model = root.path().join("simple");
    std::fs::create_dir_all(model.join("1")).unwrap();
    std::fs::copy(sample.join("1/model.onnx"), model.join("1/model.onnx")).unwrap();
    std::fs::write(model.join("config.pbtxt"), config).unwrap();
    let provider = |device: &Arc<Device>| -> Arc<dyn ExecutionProvider> {
        Arc::new(GpuProvider::on(Arc::clone(device)))
    };
    let options = SessionOptions { providers: vec!["gpu".into()], ..SessionOptions::default() };
    let backend = OnnxBackend::new(units::processor(), options)
        .with_gpus(gpus.iter().map(provider).collect());
    let options = CoreOptions {
        repositories: vec![root.path().to_owned()],
        exit_on_error: false,
        gpus: u32::try_from(gpus.len()).unwrap(),
        ..CoreOptions::default()
    };
    (Core::start(options, vec![Arc::new(backend)]).unwrap(), root)
}

/// Sums and differences of two vectors of 16 integers, checked.
fn ask(core: &Core) {
    let numbers = |step: i32| (0..16).flat_map(|at| (at * step).to_le_bytes()).collect::<Vec<u8>>();
    let input = |name: &str, step| InputTensor {
        name: name.to_owned(),
        datatype: DataType::Int32,
        shape: vec![1, 16],
        data: InputData::Raw(numbers(step).into()),
    };
    let request = InferenceRequest {
        model_name: "simple".to_owned(),
        inputs: vec![input("INPUT0", 3), input("INPUT1", 1)],
        ..InferenceRequest::default()
    };
    let (to, from) = channel();
    core.infer(
        request,
        Box::new(move |answer: galatea_serving::Answer| {
            to.send(answer.result).unwrap();
        }),
    )
    .unwrap();
    let answer = from.recv_timeout(Duration::from_secs(120)).unwrap().unwrap();
    let outputs = answer.expect("a response").outputs;
    let sums: Vec<i32> = (0..16).map(|at| at * 4).collect();
    assert_eq!(outputs[0].tensor.to_vec::<i32>().unwrap(), sums);
}

#[test]
fn instances_on_several_gpus_share_the_load() {
    let Some(gpus) = opened(2) else { return };
    let config = "max_batch_size: 1 instance_group { kind: KIND_GPU gpus: [0, 1] count: 1 }";
    let (core, _root) = serve(config, &gpus);
    assert_eq!(core.load_failures(), []);
    let busy = |gpu: &Arc<Device>| gpu.counters.dispatches.load(Ordering::Relaxed) > 0;
    for _ in 0..20 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..4).for_each(|_| ask(&core)));
            }
        });
        if gpus.iter().all(busy) {
            return;
        }
    }
    assert!(gpus.iter().all(busy), "one GPU got nothing of 320 requests");
}

fn metal(parameters: &[(&str, &str)]) -> String {
    let parameter = |(key, value): &(&str, &str)| {
        format!("parameters {{ key: \"{key}\" value: \"{value}\" }} ")
    };
    let parameters: String = parameters.iter().map(parameter).collect();
    format!(
        "max_batch_size: 1 instance_group {{ kind: KIND_GPU gpus: [0] }} optimization {{ \
         execution_accelerators {{ gpu_execution_accelerator {{ name: \"metal\" {parameters} }} }} }}"
    )
}

#[test]
fn a_configuration_says_how_a_gpu_keeps_memory() {
    let Some(gpus) = opened(1) else { return };
    let config = metal(&[
        ("memory_pool_sizes", "[768, 2304]"),
        ("initial_pool_sizes", "3, 2"),
        ("max_pool_sizes", "4 2"),
        ("unified_memory_threshold", "1024"),
    ]);
    let (core, _root) = serve(&config, &gpus);
    assert_eq!(core.load_failures(), []);
    ask(&core);
    let classes = gpus[0].memory().classes;
    let count = |bytes| {
        let of = classes.iter().filter(|class| class.bytes == bytes);
        of.map(|class| class.used + class.free).sum::<usize>()
    };
    assert!(count(768) >= 3 && count(2304) >= 2, "{classes:?}");
}

#[test]
fn wrong_pool_sizes_are_refused_by_their_field() {
    let Some(gpus) = opened(1) else { return };
    for (field, value, said) in [
        ("memory_pool_sizes", "4096, many", "'many' found, expected a number of bytes"),
        ("memory_pool_sizes", "4096, 1024", "expected sizes that grow"),
        ("max_pool_sizes", "3", "expected one for each of 0 memory_pool_sizes"),
        ("unified_memory", "1", "unified_memory_threshold"),
    ] {
        let (core, _root) = serve(&metal(&[(field, value)]), &gpus);
        let failures = core.load_failures();
        let reason = &failures[0].reason;
        let place = "gpu_execution_accelerator 'metal'";
        assert!([field, said, place].iter().all(|part| reason.contains(part)), "{reason}");
    }
}
