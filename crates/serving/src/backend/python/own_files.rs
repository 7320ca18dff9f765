//! The backend's own Python files, which are part of the program.

/// Program that a worker runs.
pub(super) const WORKER: &str = "galatea_worker.py";

/// Python model that runs TorchScript files.
pub(super) const TORCH_MODEL: &str = "galatea_pytorch.py";

/// Python model that runs files of TensorFlow.
pub(super) const TENSORFLOW_MODEL: &str = "galatea_tensorflow.py";

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/python/", $name)))
    };
}

/// Name and text.
pub(super) const FILES: &[(&str, &str)] = &[
    file!("galatea_blocks.py"),
    file!("galatea_bls.py"),
    file!("galatea_calls.py"),
    file!("galatea_channel.py"),
    file!("galatea_control.py"),
    file!("galatea_descriptor.py"),
    file!("galatea_file_model.py"),
    file!("galatea_metrics.py"),
    file!("galatea_model_config.py"),
    file!("galatea_pytorch.py"),
    file!("galatea_requests.py"),
    file!("galatea_tensorflow.py"),
    file!("galatea_tensorflow_files.py"),
    file!("galatea_tensors.py"),
    file!("galatea_torch_files.py"),
    file!("galatea_watch.py"),
    file!("galatea_worker.py"),
    file!("triton_python_backend_utils.py"),
];
