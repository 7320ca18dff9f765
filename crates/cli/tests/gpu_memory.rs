//! Models on several GPUs, and how configurations say what their memory is like.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::program;
use galatea::devices;
use galatea_formats::onnx::{OnnxModelInfo, WriteOptions, write_model};
use galatea_gpu::{GpuDevice, GpuProvider, devices};
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_runtime::{ExecutionProvider, SessionOptions};
use galatea_serving::backend::graph::GraphBackend;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{Core, CoreOptions, InferenceRequest};
use galatea_tensor::{DataType, Tensor};

/// The first device opened so many times; none where the host has none, which is said.
fn opened(times: usize) -> Option<Vec<Arc<GpuDevice>>> {
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return None;
    }
    Some((0..times).map(|_| GpuDevice::open(0).unwrap()).collect())
}

/// A sample model with a configuration in a folder of models.
fn sample(root: &Path, name: &str, config: &str) {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models").join(name);
    let model = root.join(name);
    std::fs::create_dir_all(model.join("1")).unwrap();
    std::fs::copy(sample.join("1/model.onnx"), model.join("1/model.onnx")).unwrap();
    std::fs::write(model.join("config.pbtxt"), config).unwrap();
}

/// A server of the sample model `simple` with a configuration, on these GPUs.
fn serve(config: &str, gpus: &[Arc<GpuDevice>]) -> (Arc<Core>, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    sample(root.path(), "simple", config);
    let core = start(root.path(), gpus);
    (core, root)
}

/// A server of the models in a folder, on these GPUs.
fn start(root: &Path, gpus: &[Arc<GpuDevice>]) -> Arc<Core> {
    let provider = |device: &Arc<GpuDevice>| -> Arc<dyn ExecutionProvider> {
        Arc::new(GpuProvider::on(Arc::clone(device)))
    };
    let options = SessionOptions { providers: vec!["gpu".into()], ..SessionOptions::default() };
    let backend = GraphBackend::onnx(devices::processor(), options)
        .with_gpus(gpus.iter().map(provider).collect());
    let options = CoreOptions {
        repositories: vec![root.to_owned()],
        exit_on_error: false,
        gpus: u32::try_from(gpus.len()).unwrap(),
        ..CoreOptions::default()
    };
    Core::start(options, vec![Arc::new(backend)]).unwrap()
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
    let sums: Vec<i32> = (0..16).map(|at| at * 4).collect();
    assert_eq!(answer(core, request).to_vec::<i32>().unwrap(), sums);
}

/// The first output of a request.
fn answer(core: &Core, request: InferenceRequest) -> Tensor {
    let (to, from) = channel();
    core.infer(
        request,
        Box::new(move |answer: galatea_serving::SinkAnswer| {
            to.send(answer.result).unwrap();
        }),
    )
    .unwrap();
    let answer = from.recv_timeout(Duration::from_secs(120)).unwrap().unwrap();
    answer.expect("a response").outputs.swap_remove(0).tensor
}

#[test]
fn instances_on_several_gpus_share_the_load() {
    let Some(gpus) = opened(2) else { return };
    let config = "max_batch_size: 1 instance_group { kind: KIND_GPU gpus: [0, 1] count: 1 }";
    let (core, _root) = serve(config, &gpus);
    assert_eq!(core.load_failures(), []);
    let busy = |gpu: &Arc<GpuDevice>| gpu.counters.dispatches.load(Ordering::Relaxed) > 0;
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

/// Matrices one after the other, as many numbers of FP32 as `LAYERS` times the square of `WIDTH`.
pub(crate) const WIDTH: usize = 160;
pub(crate) const LAYERS: usize = 12;

/// A model of them in a folder of models.
pub(crate) fn layers(root: &Path, config: &str) {
    let mut graph = Graph::new("layers");
    graph.opsets.insert(String::new(), 21);
    let mut x = graph.value_named("x");
    let dims = vec![Dim::symbol("rows"), Dim::Known(WIDTH)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    for layer in 0..LAYERS {
        let numbers = (0..WIDTH * WIDTH)
            .map(|at| f32::from(u8::try_from((at * (layer + 3)) % 29).unwrap()) / 200.0 - 0.07);
        let weights = Tensor::from_vec(&[WIDTH, WIDTH], numbers.collect::<Vec<f32>>()).unwrap();
        let weights = graph.add_constant(&format!("w{layer}"), weights);
        let y = graph.value_named(&format!("y{layer}"));
        let inputs = vec![Some(x), Some(weights)];
        graph.add_node("", "MatMul", "", &Attributes::new(), inputs, vec![Some(y)]).unwrap();
        x = y;
    }
    graph.outputs.push(x);
    let model = root.join("layers");
    std::fs::create_dir_all(model.join("1")).unwrap();
    let (info, options) = (OnnxModelInfo::default(), WriteOptions::default());
    write_model(&graph, &info, &model.join("1/model.onnx"), options).unwrap();
    std::fs::write(model.join("config.pbtxt"), config).unwrap();
}

fn through_layers(core: &Core) -> Tensor {
    let x = (0..WIDTH).flat_map(|at| (f32::from(u8::try_from(at).unwrap()) / 80.0).to_le_bytes());
    let request = InferenceRequest {
        model_name: "layers".to_owned(),
        inputs: vec![InputTensor {
            name: "x".to_owned(),
            datatype: DataType::Fp32,
            shape: vec![1, i64::try_from(WIDTH).unwrap()],
            data: InputData::Raw(x.collect::<Vec<u8>>().into()),
        }],
        ..InferenceRequest::default()
    };
    answer(core, request)
}

#[test]
fn a_model_above_the_limit_of_its_configuration_is_streamed_and_gives_the_same() {
    let Some(gpus) = opened(2) else { return };
    let limit = WIDTH * WIDTH * 4 * LAYERS / 3;
    let limited = metal(&[("gpu_memory_limit", &limit.to_string())]);
    let whole = metal(&[]);
    let found = [(limited, &gpus[0]), (whole, &gpus[1])].map(|(config, gpu)| {
        let root = tempfile::tempdir().unwrap();
        layers(root.path(), &config);
        let core = start(root.path(), std::slice::from_ref(gpu));
        assert_eq!(core.load_failures(), []);
        (through_layers(&core), gpu.streams().streamed_bytes, gpu.memory().peak_bytes)
    });
    assert_eq!(found[0].0, found[1].0);
    let limit = limit as u64;
    assert!(found[0].1 > limit && found[0].2 <= limit, "{:?}", &found[0]);
    assert!(found[1].1 == 0 && found[1].2 > limit, "{:?}", &found[1]);
}

/// Returns the answer of a server to a request, once the server can be reached.
pub(crate) fn exchange(port: u16, request: &str) -> String {
    let start = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::yield_now();
    };
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// The value of the first line of a metrics page that starts so.
fn value(page: &str, start: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(start));
    assert!(line.is_some(), "no {start}: {page}");
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_metrics_page_says_what_was_streamed_and_how_far_ahead() {
    if opened(0).is_none() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let limit = WIDTH * WIDTH * 4 * LAYERS / 3;
    layers(root.path(), &metal(&[("gpu_memory_limit", &limit.to_string())]));
    let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (http, metrics) = (port(), port());
    let flags = [
        format!("--model-repository={}", root.path().display()),
        format!("--http-port={http}"),
        format!("--metrics-port={metrics}"),
        "--metrics-interval-ms=0".to_owned(),
        "--allow-grpc=false".to_owned(),
        "--allow-software-gpu=true".to_owned(),
        "--model-cache-byte-size=0".to_owned(),
    ];
    let mut server = program::galatea().arg("serve").args(flags).spawn().unwrap();
    let get = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(!exchange(metrics, get).contains("metal_prefetch"));
    let body = format!(
        r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1,{WIDTH}],"data":{:?}}}]}}"#,
        vec![0.5; WIDTH]
    );
    let head = "POST /v2/models/layers/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    for _ in 0..3 {
        exchange(http, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
    }
    let page = exchange(metrics, get);
    let touches = page.lines().filter(|line| line.starts_with("metal_prefetch_touches{"));
    let touches: f64 =
        touches.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    assert!(touches >= 9.0, "{page}");
    assert!(value(&page, "metal_prefetch_bytes{") >= limit as f64, "{page}");
    assert!(value(&page, "metal_prefetch_stall_seconds{") >= 0.0, "{page}");
    assert!(value(&page, "metal_prefetch_distance{") >= 1.0, "{page}");
    let process = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_flag_refuses_a_model_without_room_with_the_numbers() {
    if opened(0).is_none() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    sample(root.path(), "digits", "max_batch_size: 32 instance_group { kind: KIND_GPU count: 1 }");
    let log = root.path().join("log");
    let repository = format!("--model-repository={}", root.path().display());
    let log_file = format!("--log-file={}", log.display());
    let serve = |limit: &str| {
        let limit = format!("--gpu-memory-limit={limit}");
        let off = ["--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"];
        let mut command = program::galatea();
        command.args(["serve", &repository, &log_file, &limit, "--allow-software-gpu=true"]);
        command.arg("--model-cache-byte-size=0").args(off).status().unwrap().success()
    };
    assert!(!serve("much"));
    assert!(!serve("1KiB"));
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("of the 1024 that may be taken"), "{said}");
}

pub(crate) fn metal(parameters: &[(&str, &str)]) -> String {
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
        ("memory_pool_sizes", "4096, many", "'4096, many' found, expected a list"),
        ("memory_pool_sizes", "4096, 8192, 1024", "expected sizes that grow"),
        ("initial_pool_sizes", "3, -1", "initial_pool_sizes: '3, -1' found, expected a list"),
        ("unified_memory", "1", "unified_memory_threshold"),
    ] {
        let (core, _root) = serve(&metal(&[(field, value)]), &gpus);
        let failures = core.load_failures();
        let reason = &failures[0].reason;
        let place = "gpu_execution_accelerator 'metal'";
        assert!([field, said, place].iter().all(|part| reason.contains(part)), "{reason}");
    }
}
