//! Devices that Core ML has, and the plan of those on which it means to run each operator of a model.

use std::path::Path;

use super::model::folder;
use super::{CoreMlDevice, CoreMlFault, CoreMlLoadOptions, CoreMlPlannedOperator, system};

/// Every device of this machine that Core ML can use.
///
/// # Errors
/// `Version` before macOS 14, `Unavailable` off macOS.
pub fn devices() -> Result<Vec<CoreMlDevice>, CoreMlFault> {
    system::devices()
}

/// The plan for a compiled model, in the order of its operators; functions are ordered by name. It
/// is a forecast: nothing says where an operator ran.
///
/// # Errors
/// `File` when there is no such folder, `Version` before macOS 14.4 and for options that this macOS
/// does not have, `Plan` when Core ML refuses, `Unavailable` off macOS.
pub fn plan(
    compiled: &Path,
    options: &CoreMlLoadOptions,
) -> Result<Vec<CoreMlPlannedOperator>, CoreMlFault> {
    folder(compiled)?;
    system::plan(compiled, options)
}

#[cfg(test)]
mod tests {
    use super::super::CoreMlFaultKind;
    use super::*;

    #[test]
    fn what_is_no_folder_has_no_plan() {
        let fault =
            plan(Path::new("/nowhere/a.mlmodelc"), &CoreMlLoadOptions::default()).unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::File);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_is_no_plan() {
        let folder = tempfile::tempdir().unwrap();
        let fault = plan(folder.path(), &CoreMlLoadOptions::default()).unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::Unavailable);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_are_no_devices() {
        let fault = devices().unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::Unavailable);
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn there_is_a_cpu_from_macos_14_on() {
        match devices() {
            Ok(devices) => assert!(devices.contains(&CoreMlDevice::Cpu)),
            Err(fault) => assert_eq!(fault.kind, CoreMlFaultKind::Version),
        }
    }
}
