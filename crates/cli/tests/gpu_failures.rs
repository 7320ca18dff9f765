//! The server lives on when its GPU is lost or has no room.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use galatea::devices;
use galatea_gpu::{GpuDevice, GpuProvider, PoolConfig, devices};
use galatea_runtime::SessionOptions;
use galatea_serving::backend::graph::GraphBackend;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{Core, CoreOptions, InferenceRequest};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/digits")
}

/// A repository with the model of digits under a name, its instances on a kind of unit.
fn repository(kinds: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind) in kinds {
        let own = folder.path().join(name);
        std::fs::create_dir_all(own.join("1")).unwrap();
        std::fs::copy(sample().join("1/model.onnx"), own.join("1/model.onnx")).unwrap();
        let config = format!(
            "name: \"{name}\" platform: \"onnxruntime_onnx\" max_batch_size: 32 \
             instance_group {{ kind: {kind} count: 1 }}"
        );
        std::fs::write(own.join("config.pbtxt"), config).unwrap();
    }
    folder
}

fn start(folder: &Path, device: &Arc<GpuDevice>) -> Arc<Core> {
    let options = CoreOptions {
        repositories: vec![folder.to_owned()],
        exit_on_error: false,
        gpus: 1,
        ..CoreOptions::default()
    };
    let gpu = Arc::new(GpuProvider::on(Arc::clone(device)));
    let backend = GraphBackend::onnx(devices::processor(), SessionOptions::default());
    Core::start(options, vec![Arc::new(backend.with_gpus(vec![gpu]))]).unwrap()
}

/// Runs the model on an image.
fn infer(core: &Core, model: &str) -> Result<Tensor, String> {
    let pixels: Vec<u8> = (0..64).flat_map(|at: u8| (f32::from(at % 17)).to_le_bytes()).collect();
    let request = InferenceRequest {
        model_name: model.to_owned(),
        inputs: vec![InputTensor {
            name: "IMAGE".into(),
            datatype: DataType::Fp32,
            shape: vec![1, 1, 8, 8],
            data: InputData::Raw(pixels.into()),
        }],
        ..InferenceRequest::default()
    };
    let (to, from) = channel();
    let answered = move |answer: galatea_serving::SinkAnswer| to.send(answer.result).unwrap();
    core.infer(request, Box::new(answered)).map_err(|error| error.to_string())?;
    let answer = from.recv_timeout(Duration::from_secs(100)).unwrap();
    let response = answer.map_err(|error| error.to_string())?.unwrap();
    Ok(response.outputs[0].tensor.clone())
}

/// One may have run on the processor.
fn same(found: &Tensor, expected: &Tensor) {
    compare(found, expected, Tolerance::Within(1e-4)).unwrap();
}

/// A device of its own for each test; none where the host has none, which is said.
fn device(pool: &PoolConfig) -> Option<Arc<GpuDevice>> {
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return None;
    }
    Some(GpuDevice::open_with(0, pool).unwrap())
}

#[test]
fn models_answer_again_after_their_gpu_was_lost() {
    let Some(device) = device(&PoolConfig::default()) else { return };
    let folder = repository(&[("one", "KIND_GPU"), ("other", "KIND_AUTO")]);
    let core = start(folder.path(), &device);
    let expected = infer(&core, "one").unwrap();
    same(&infer(&core, "other").unwrap(), &expected);
    device.give_up("pulled out");
    for model in ["one", "other", "one"] {
        same(&infer(&core, model).unwrap(), &expected);
    }
    assert!(
        device.living().unwrap().counters.submits.load(std::sync::atomic::Ordering::Relaxed) > 0
    );
}

#[test]
fn a_model_without_room_is_refused_where_the_gpu_was_asked_for_alone() {
    let Some(device) = device(&PoolConfig::default().within(1024)) else { return };
    let folder = repository(&[("asked", "KIND_GPU"), ("anywhere", "KIND_AUTO")]);
    let core = start(folder.path(), &device);
    let failures = core.load_failures();
    assert!(infer(&core, "anywhere").is_ok());
    let refused = infer(&core, "asked").is_err();
    let named = failures.iter().any(|failure| failure.reason.contains("GPU memory"));
    assert!(refused && named, "{failures:?}");
}
