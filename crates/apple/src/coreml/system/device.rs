//! `MLComputeDevice`.

use std::ffi::c_void;
use std::mem;
use std::ptr::NonNull;

use objc2::rc::Retained;
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_core_ml::{
    MLCPUComputeDevice, MLComputeDeviceProtocol, MLGPUComputeDevice, MLNeuralEngineComputeDevice,
};
use objc2_foundation::NSArray;
use objc2_metal::MTLDevice;

use super::super::{CoreMlDevice, CoreMlFault, CoreMlFaultKind};
use super::{guarded, property};
use crate::darwin;

type AnyDevice = ProtocolObject<dyn MLComputeDeviceProtocol>;

/// `MLAllComputeDevices`.
type AllDevices = unsafe extern "C-unwind" fn() -> *mut NSArray<AnyDevice>;

pub(in super::super) fn devices() -> Result<Vec<CoreMlDevice>, CoreMlFault> {
    let newer = || CoreMlFault::newer("the list of devices", "14");
    // SAFETY: the name is terminated; a missing function gives null.
    let found = unsafe { darwin::dlsym(darwin::RTLD_DEFAULT, c"MLAllComputeDevices".as_ptr()) };
    let found = NonNull::new(found).ok_or_else(newer)?;
    // SAFETY: Core ML declares the function of this name with this type.
    let all = unsafe { mem::transmute::<NonNull<c_void>, AllDevices>(found) };
    guarded(CoreMlFaultKind::Load, "the list of devices", || {
        // SAFETY: it takes nothing and gives a list that is released later.
        let list = unsafe { all() };
        // SAFETY: the list is alive, or null.
        let list = unsafe { Retained::retain_autoreleased(list) }.ok_or_else(newer)?;
        Ok(list.iter().map(|device| told(&device)).collect())
    })
}

/// Returns the kind of this device. A system with devices has their classes.
pub(super) fn told(device: &AnyDevice) -> CoreMlDevice {
    let object: &AnyObject = device.as_ref();
    if let Some(engine) = object.downcast_ref::<MLNeuralEngineComputeDevice>() {
        let cores = usize::try_from(property!(engine.totalCoreCount())).unwrap_or(0);
        return CoreMlDevice::NeuralEngine { cores };
    }
    if let Some(gpu) = object.downcast_ref::<MLGPUComputeDevice>() {
        let name = property!(gpu.metalDevice()).map(|device| device.name().to_string());
        return CoreMlDevice::Gpu { name: name.unwrap_or_default() };
    }
    if object.downcast_ref::<MLCPUComputeDevice>().is_some() {
        return CoreMlDevice::Cpu;
    }
    CoreMlDevice::Other
}
