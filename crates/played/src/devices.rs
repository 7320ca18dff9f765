//! Devices of the Mac that is played, and those that a program is planned on.

use galatea_coreml::NeuralEngine;
use galatea_coreml::engine::EnginePlannedOperator;
use galatea_doubles::c::PlayedMac;
use galatea_doubles::objc::core_ml::{PlayedDevice, PlayedOperation, PlayedUsage};

/// First version of macOS that lists devices.
const LISTS_DEVICES: u32 = 14;

/// Numbers of `MLComputeUnits`.
const CPU_AND_GPU: isize = 1;
const ALL: isize = 2;
const CPU_AND_ENGINE: isize = 3;

/// Devices of the calling thread's Mac, the CPU first.
fn of_mac() -> Vec<PlayedDevice> {
    let engine = NeuralEngine::of_host().and_then(|engine| isize::try_from(engine.cores).ok());
    let name = NeuralEngine::of_host().map(|engine| engine.chip);
    let mut found = vec![PlayedDevice::Cpu, PlayedDevice::Gpu(name)];
    found.extend(engine.map(PlayedDevice::NeuralEngine));
    found
}

/// Lists the devices of the calling thread's Mac; none before macOS 14.
pub(crate) fn listed() -> Option<Vec<PlayedDevice>> {
    (PlayedMac::here().version.major >= LISTS_DEVICES).then(of_mac)
}

/// Devices that a model with these units may use, the preferred one last.
fn allowed(units: isize) -> Vec<PlayedDevice> {
    let wanted = |device: &PlayedDevice| match device {
        PlayedDevice::Cpu => true,
        PlayedDevice::Gpu(_) => [CPU_AND_GPU, ALL].contains(&units),
        _ => [CPU_AND_ENGINE, ALL].contains(&units),
    };
    of_mac().into_iter().filter(wanted).collect()
}

/// Plans operators of the interpreter's with these units. Each costs the same.
pub(crate) fn planned(rows: Vec<EnginePlannedOperator>, units: isize) -> Vec<PlayedOperation> {
    let supported = allowed(units);
    let counted = |row: &EnginePlannedOperator| row.planned.is_some() && row.operator != "Constant";
    #[allow(clippy::cast_precision_loss, reason = "a number of operators")]
    let weight = 1.0 / rows.iter().filter(|row| counted(row)).count().max(1) as f64;
    let usage = supported.last().map(|preferred| PlayedUsage {
        preferred: preferred.clone(),
        supported: supported.clone(),
    });
    let operation = |row: EnginePlannedOperator| {
        let counted = counted(&row);
        PlayedOperation {
            operator: row.operator,
            outputs: row.outputs,
            usage: usage.clone().filter(|_| counted),
            weight: counted.then_some(weight),
            ..PlayedOperation::default()
        }
    };
    rows.into_iter().map(operation).collect()
}
