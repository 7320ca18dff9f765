//! Devices that models run on.

use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol, ProtocolObject};
use objc2::{DefinedClass, define_class};
use objc2_core_ml::{
    MLCPUComputeDevice, MLComputeDeviceProtocol, MLGPUComputeDevice, MLNeuralEngineComputeDevice,
};
use objc2_foundation::{NSArray, NSString};
use objc2_metal::MTLDevice;

use super::made;
use super::played::{self, PlayedDevice};

pub(super) type PlayedDeviceObject = ProtocolObject<dyn MLComputeDeviceProtocol>;

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLCPUComputeDevice"]
    #[ivars = ()]
    pub(crate) struct CpuDouble;

    unsafe impl NSObjectProtocol for CpuDouble {}
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLGPUComputeDevice"]
    #[ivars = Option<String>]
    pub(crate) struct GpuDouble;

    unsafe impl NSObjectProtocol for GpuDouble {}

    impl GpuDouble {
        #[unsafe(method_id(metalDevice))]
        fn metal(&self) -> Option<Retained<ProtocolObject<dyn MTLDevice>>> {
            self.ivars().as_deref().map(metal)
        }
    }
);

fn metal(name: &str) -> Retained<ProtocolObject<dyn MTLDevice>> {
    let device = made!(MetalDouble, name.to_owned(), NSObject);
    // SAFETY: it answers what is asked of such devices here.
    unsafe { Retained::cast_unchecked(device) }
}

define_class!(
    /// GPU of Metal, which has nothing but its name.
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "GalateaMetalDevice"]
    #[ivars = String]
    pub(crate) struct MetalDouble;

    unsafe impl NSObjectProtocol for MetalDouble {}

    impl MetalDouble {
        #[unsafe(method_id(name))]
        fn name(&self) -> Retained<NSString> {
            NSString::from_str(self.ivars())
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLNeuralEngineComputeDevice"]
    #[ivars = isize]
    pub(crate) struct EngineDouble;

    unsafe impl NSObjectProtocol for EngineDouble {}

    impl EngineDouble {
        #[unsafe(method(totalCoreCount))]
        fn cores(&self) -> isize {
            *self.ivars()
        }
    }
);

define_class!(
    /// Device of a kind that Core ML does not have yet.
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "GalateaOtherDevice"]
    #[ivars = ()]
    pub(crate) struct OtherDeviceDouble;

    unsafe impl NSObjectProtocol for OtherDeviceDouble {}
);

/// Makes a device.
pub(super) fn device(of: &PlayedDevice) -> Retained<PlayedDeviceObject> {
    match of {
        PlayedDevice::Cpu => {
            ProtocolObject::from_retained(made!(CpuDouble, (), MLCPUComputeDevice))
        }
        PlayedDevice::Gpu(name) => {
            ProtocolObject::from_retained(made!(GpuDouble, name.clone(), MLGPUComputeDevice))
        }
        PlayedDevice::NeuralEngine(cores) => {
            ProtocolObject::from_retained(made!(EngineDouble, *cores, MLNeuralEngineComputeDevice))
        }
        PlayedDevice::Other => {
            let device = made!(OtherDeviceDouble, (), NSObject);
            // SAFETY: the protocol has no method.
            unsafe { Retained::cast_unchecked(device) }
        }
    }
}

/// Makes a list of devices.
pub(super) fn devices(of: &[PlayedDevice]) -> Retained<NSArray<PlayedDeviceObject>> {
    let devices: Vec<_> = of.iter().map(device).collect();
    NSArray::from_retained_slice(&devices)
}

/// Double of the function that lists devices; null where the player has none.
#[unsafe(no_mangle)]
extern "C-unwind" fn MLAllComputeDevices() -> *mut NSArray<PlayedDeviceObject> {
    let found = played::player().ok().and_then(|player| player.devices());
    found.map_or(std::ptr::null_mut(), |found| Retained::autorelease_return(devices(&found)))
}
