//! Runs the tests of the GPU provider, on a Vulkan device that the processor plays where the machine is
//! told of one.

use crate::process::{cargo, run};
use crate::workspace::Workspace;

/// The program that runs another one on a software Vulkan device, such as `.ci/software-vulkan` makes.
const RUNNER: &str = "GALATEA_VULKAN_RUNNER";

/// Where cargo looks for a program that runs tests.
fn cargo_runner() -> String {
    let target = format!("{}_UNKNOWN_LINUX_GNU", std::env::consts::ARCH.to_uppercase());
    format!("CARGO_TARGET_{target}_RUNNER")
}

/// Runs the tests of the crate, and of models on the server's GPU provider.
pub(crate) fn test(workspace: &Workspace) -> Result<(), String> {
    let cases = crate::steps::onnx_cases(workspace)?;
    let runner = std::env::var(RUNNER).ok();
    if runner.is_none() {
        println!(
            "{RUNNER} is not set: the tests run on this machine's own GPU, or say that they skip"
        );
    }
    for arguments in [
        &["test", "--package", "galatea-gpu", "--no-fail-fast"][..],
        &[
            "test",
            "--package",
            "galatea",
            "--features",
            "gpu",
            "--test",
            "gpu_models",
            "--test",
            "gpu_decoders",
            "--test",
            "gpu_sampling",
            "--test",
            "gpu_tune",
            "--test",
            "gpu_units",
            "--test",
            "gpu_claims",
            "--test",
            "gpu_failures",
            "--test",
            "gpu_memory",
            "--test",
            "gpu_profile",
        ][..],
    ] {
        let mut command = cargo(&workspace.root);
        command.args(arguments).env("GALATEA_ONNX_NODE_DATA", &cases);
        if let Some(runner) = &runner {
            command.env(cargo_runner(), runner);
        }
        run(&mut command)?;
    }
    Ok(())
}

/// Writes the Metal texts of kernels.
pub(crate) fn write_metal(workspace: &Workspace) -> Result<(), String> {
    let test = ["test", "--package", "galatea-gpu", "--test", "metal"];
    run(cargo(&workspace.root).args(test).env("GALATEA_WRITE_METAL", "1"))
}
