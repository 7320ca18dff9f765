//! Runs the tests of the GPU provider, on a Vulkan device that the processor plays where the machine is
//! told of one.

use crate::process::{cargo, run};
use crate::programs;
use crate::scope::CheckScope;
use crate::workspace::WorkspaceFolders;

/// The program that runs another one on a software Vulkan device, such as `.ci/software-vulkan` makes.
const RUNNER: &str = "GALATEA_VULKAN_RUNNER";

/// Runs the tests of the crate, and of models on the server's GPU provider.
pub(crate) fn test(workspace: &WorkspaceFolders, scope: &CheckScope) -> Result<(), String> {
    let cases = crate::steps::onnx_cases(workspace)?;
    let runner = std::env::var(RUNNER).ok();
    if runner.is_none() {
        println!(
            "{RUNNER} is not set: the tests run on this machine's own GPU, or say that they skip"
        );
    }
    let mut programs = programs::build(workspace)?;
    programs.retain(|program| program.needs_gpu() && scope.has_tests(&program.folder));
    programs::run_all(&programs, |program| {
        let mut command = program.command(runner.as_deref());
        command.env("GALATEA_ONNX_NODE_DATA", &cases);
        command
    })
}

/// Writes the Metal texts of kernels.
pub(crate) fn write_metal(workspace: &WorkspaceFolders) -> Result<(), String> {
    let test = ["test", "--package", "galatea-gpu", "--test", "metal"];
    run(cargo(&workspace.root).args(test).env("GALATEA_WRITE_METAL", "1"))
}
