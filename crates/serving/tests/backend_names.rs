//! Names of backends: `metal` and `metal_mps`, and names of other servers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, ProviderClaims, ProviderTraits,
    RuntimeError, SessionOptions,
};
use galatea_serving::backend::graph::{GraphBackend, MetalBackend};
use galatea_serving::backend::{ModelBackend, builtin};
use galatea_serving::{Core, CoreOptions};

use crate::plain::Plain;

/// A provider called as a GPU's, which counts the partitions that it compiles.
#[derive(Debug, Default)]
struct CountedGpu(AtomicUsize);

impl ExecutionProvider for CountedGpu {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named("gpu")
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        Plain.claim(request)
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Plain.compile(request)
    }
}

/// A core with the sample `simple` as `model`, for these providers, preferred ones first.
fn serve(config: &str, providers: Vec<Arc<dyn ExecutionProvider>>) -> Arc<Core> {
    let root = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/simple/1");
    std::fs::create_dir_all(root.path().join("model/1")).unwrap();
    std::fs::copy(sample.join("model.onnx"), root.path().join("model/1/any.onnx")).unwrap();
    std::fs::write(root.path().join("model/config.pbtxt"), config).unwrap();
    let options = CoreOptions {
        repositories: vec![root.path().to_owned()],
        exit_on_error: false,
        ..CoreOptions::default()
    };
    let onnx = GraphBackend::onnx(providers.clone(), SessionOptions::default());
    let core_ml = GraphBackend::core_ml(providers, SessionOptions::default());
    let metal = MetalBackend::of_formats(&onnx, &core_ml);
    let metal = metal.map(|one| -> Arc<dyn ModelBackend> { Arc::new(one) });
    let backends = [Arc::new(onnx) as Arc<dyn ModelBackend>, Arc::new(core_ml)];
    Core::start(options, backends.into_iter().chain(metal).collect()).unwrap()
}

#[test]
fn metal_runs_graphs_on_the_gpu_unless_their_instances_are_the_processors() {
    for (config, compiled) in [
        ("backend: \"metal\"", 1),
        ("backend: \"metal_mps\"", 1),
        ("backend: \"metal_mps\" instance_group { kind: KIND_CPU }", 0),
        ("backend: \"onnxruntime\"", 0),
    ] {
        let gpu = Arc::new(CountedGpu::default());
        let core = serve(config, vec![Arc::new(Plain), Arc::clone(&gpu) as _]);
        assert!(core.load_failures().is_empty(), "{config}: {:?}", core.load_failures());
        assert_eq!(gpu.0.load(Ordering::Relaxed), compiled, "{config}");
    }
}

#[test]
fn metal_runs_graphs_elsewhere_where_there_is_no_gpu() {
    let core = serve("backend: \"metal\"", vec![Arc::new(Plain)]);
    assert!(core.load_failures().is_empty(), "{:?}", core.load_failures());
    let config = core.resolve("model", "").unwrap().config();
    assert_eq!((config.backend.as_str(), config.platform.as_str()), ("metal", ""));
    assert_eq!(config.input.len(), 2);
}

#[test]
fn the_error_of_a_foreign_backend_says_what_to_write() {
    let core = serve("backend: \"tensorrt\"", vec![Arc::new(Plain)]);
    let failures = core.load_failures();
    let reason = &failures.first().expect("a failure").reason;
    assert!(reason.contains("This server has onnxruntime, coreml, metal_mps, metal;"), "{reason}");
    assert!(reason.contains("write backend: \"onnxruntime\""), "{reason}");
}

#[test]
fn a_wrong_goal_is_refused_also_where_one_unit_leaves_no_choice() {
    let parameter = "parameters { key: \"execution_goal\" value { string_value: \"speed\" } }";
    let core = serve(&format!("backend: \"onnxruntime\" {parameter}"), vec![Arc::new(Plain)]);
    let failures = core.load_failures();
    let reason = &failures.first().expect("a failure").reason;
    assert!(reason.contains("parameter 'execution_goal' of 'model'"), "{reason}");
}

#[test]
fn a_models_name_tells_its_backend_where_nothing_else_does() {
    let root = tempfile::tempdir().unwrap();
    let tensor = |io: &str| format!("{io}put {{ name: \"{io}\" data_type: TYPE_INT32 dims: 1 }} ");
    let io = tensor("in") + &tensor("out");
    for (model, config) in [
        ("plain.identity", io.clone()),
        ("plain.unknown", io.clone()),
        ("plain", io.clone()),
        ("other.identity", io + "default_model_filename: \"model.x\""),
    ] {
        let folder = root.path().join(model);
        std::fs::create_dir_all(folder.join("1")).unwrap();
        std::fs::write(folder.join("config.pbtxt"), config).unwrap();
    }
    let options = CoreOptions {
        repositories: vec![root.path().to_owned()],
        exit_on_error: false,
        ..CoreOptions::default()
    };
    let core = Core::start(options, builtin::all()).unwrap();
    let config = core.resolve("plain.identity", "").unwrap().config();
    assert_eq!(
        (config.backend.as_str(), config.default_model_filename.as_str()),
        ("identity", "model.identity")
    );
    let reason = |model: &str| {
        let failures = core.load_failures();
        failures.into_iter().find(|failure| failure.model == model).expect("a failure").reason
    };
    let unnamed = |model: &str| {
        format!(
            "Invalid model name: Could not determine backend for model '{model}' with no backend in model \
             configuration. Expected model name of the form 'model.<backend_name>'."
        )
    };
    for (model, text) in [
        (
            "plain.unknown",
            "unable to find backend library for backend 'unknown', try specifying runtime on the model configuration."
                .to_owned(),
        ),
        ("plain", unnamed("plain")),
        ("other.identity", unnamed("other.identity")),
    ] {
        assert!(reason(model).contains(&text), "{}", reason(model));
    }
}
